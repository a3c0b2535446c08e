/* vmath.h: elementary functions for vector loops, both float widths, a file per function.
 *
 * v_<name>_f32 and v_<name>_f64 take one element and are for loops that do more than the function;
 * v_<name>_chunk_f32 and v_<name>_chunk_f64 take contiguous elements, are faster, and give the same
 * bits. The largest errors of functions written as templates stand in instantiate.h, of others beside
 * each. */
#ifndef MG_VMATH_H
#define MG_VMATH_H

#include "bessel.h"
#include "erf.h"
#include "erfcx.h"
#include "exp.h"
#include "gamma.h"
#include "gelu.h"
#include "hyperbolic.h"
#include "inverse_hyperbolic.h"
#include "inverse_trig.h"
#include "log.h"
#include "logaddexp.h"
#include "logistic.h"
#include "pow.h"
#include "roots.h"
#include "rounding.h"
#include "sinc.h"
#include "tan.h"
#include "trig.h"

#endif
