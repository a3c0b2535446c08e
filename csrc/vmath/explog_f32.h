/* explog_f32.h: the cube root of one float, by the formula of explog_f64.h in double, where it
 * needs no care. "Error" is the largest seen over all floats (of a function that is even or odd: all
 * positive ones) against double precision, compiled with fma; without fma it is the same.
 */
#ifndef MG_VMATH_EXPLOG_F32_H
#define MG_VMATH_EXPLOG_F32_H

#include "explog_f64.h"

/* Error 0.500 at 0x1.06a76ap-125. */
MG_INLINE float v_cbrt_f32(float x) {
    double a = (double)v_abs_f32(x);
    v_cbrt_parts_f64 p = v_cbrt_split_f64(a);
    float y = (float)(p.y * v_pow2_f64(p.n));
    return ((a > 0.0) & (a < V_INF_F64)) ? v_copysign_f32(y, x) : x;
}

#endif
