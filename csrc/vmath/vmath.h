/* vmath.h: elementary functions for vector loops, in both float widths, a file per function.
 *
 * v_<name>_f32 and v_<name>_f64 take one element. They are for loops that compute more than the
 * function. v_<name>_chunk_f32 and v_<name>_chunk_f64 take contiguous elements. They are faster and
 * give the same bits. The largest errors of functions written as templates are in instantiate.h,
 * all others at each function.
 */
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
