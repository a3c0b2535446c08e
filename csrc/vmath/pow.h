/* pow.h: x^y of chunks. */
#ifndef MG_VMATH_POW_H
#define MG_VMATH_POW_H

#include "chunk.h"

#if defined(__AVX512F__) /* whose registers hold all values */
V_NEAR_2_OF(pow, float, f32)
V_NEAR_2_OF(pow, double, f64)
#else
V_STAGES_2_OF(pow, float, f32)
V_STAGES_2_OF(pow, double, f64)
#endif

#endif
