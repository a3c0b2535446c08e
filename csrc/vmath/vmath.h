/* vmath.h: elementary functions for vector loops, both float widths, the errors beside each.
 *
 * v_<name>_f32 and v_<name>_f64 take one element and are for loops that do more than the function;
 * v_<name>_chunk_f32 and v_<name>_chunk_f64 take contiguous elements, are faster, and give the same
 * bits. Exponentials, logarithms and what is made of them are in explog.h. */
#ifndef MG_VMATH_H
#define MG_VMATH_H
#include "f32.h"
#include "f64.h"
#include "explog.h"
#include "logistic.h"
#include "trig.h"
#include "roots.h"
#include "rounding.h"
#include "sinc.h"
#include "sqrt.h"
#include "tan.h"
#include "explog_f32.h"
#include "inverse_hyperbolic.h"
#include "explog_f64.h"
#include "erf.h"
#include "gamma.h"
#include "bessel.h"
#endif
