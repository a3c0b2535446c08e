/* vmath.h: elementary functions for vector loops, both float widths, the errors beside each.
 *
 * v_<name>_f32 and v_<name>_f64 take one element and are for loops that do more than the function;
 * v_<name>_chunk_f32 and v_<name>_chunk_f64 take contiguous elements, are faster, and give the same
 * bits. Exponentials, logarithms and what is made of them are in vmath_explog.h. */
#ifndef MG_VMATH_H
#define MG_VMATH_H
#include "vmath_f32.h"
#include "vmath_f64.h"
#include "vmath_explog.h"
#include "vmath_pieces_f32.h"
#include "vmath_trig.h"
#include "vmath_inverse.h"
#include "vmath_round.h"
#include "vmath_sinc.h"
#include "vmath_sqrt.h"
#include "vmath_tan.h"
#include "vmath_explog_f32.h"
#include "vmath_area_f32.h"
#include "vmath_explog_f64.h"
#include "vmath_erf.h"
#include "vmath_gamma.h"
#include "vmath_bessel.h"
#endif
