/* roots.h: roots, rough inverses and hypot, for both float widths.
 *
 * "Error" is as in f32.h and f64.h, over samples: all bit patterns at random, close
 * exponents, close values, the ends of the range.
 */
#ifndef MG_VMATH_INVERSE_H
#define MG_VMATH_INVERSE_H

#include "f32.h"
#include "f64.h"
#include "pair.h"

/* A constant of a file read once per width (real.h). */
#define BY_WIDTH(f32, f64) REAL_C(sizeof(real) == 4 ? (f32) : (f64))

MG_INLINE float v_sqrt_f32(float x) { return __builtin_sqrtf(x); }
MG_INLINE double v_sqrt_f64(double x) { return __builtin_sqrt(x); }

/* 1 / d to 1.5 %, for d > 0 and, as something finite, for 0: enough where it multiplies what a
 * rounding has lost. The difference of the bits is good to 12 % (its logarithm is one of straight
 * lines), and Newton's step squares that. */
MG_INLINE float v_rough_inverse_f32(float d) {
    float r = v_from_bits_f32(0x7ef311c7u - v_bits_f32(d));
    return r * fma_f32(-d, r, 2.0f);
}
MG_INLINE double v_rough_inverse_f64(double d) {
    double r = v_from_bits_f64(0x7fde623822fc16e6u - v_bits_f64(d));
    return r * fma_f64(-d, r, 2.0);
}

/* sqrt(a^2 + b^2), infinite where either is, whatever the other. In double nothing can overflow.
 * Error 0.501, with and without fma. */
MG_INLINE float v_hypot_f32(float a, float b) {
    double x = (double)a, y = (double)b;
    float r = (float)__builtin_sqrt(fma_f64(x, x, y * y));
    a = v_abs_f32(a);
    b = v_abs_f32(b);
    return ((a == V_INF_F32) | (b == V_INF_F32)) ? V_INF_F32 : r;
}
/* Scaled by a power of two where a square would leave the range. The root takes one Newton step
 * towards that of the exact sum (C. F. Borges, "Algorithm 1014: an improved algorithm for
 * hypot(x, y)", ACM TOMS 47, 2020). Error 0.501, with and without fma; 0.721 for subnormal results,
 * which are rounded twice. */
MG_INLINE double v_hypot_f64(double a, double b) {
    a = v_abs_f64(a);
    b = v_abs_f64(b);
    double large = a > b ? a : b, small = a > b ? b : a;
    double scale = large > 0x1p500 ? 0x1p-600 : large < 0x1p-450 ? 0x1p600 : 1.0;
    double back = large > 0x1p500 ? 0x1p600 : large < 0x1p-450 ? 0x1p-600 : 1.0;
    large *= scale;
    small *= scale;
    double square = large * large, other = small * small, sum = square + other;
    double lost = v_residual_f64(large, large, square) + v_residual_f64(small, small, other);
    double low = ((square - sum) + other) - lost, root = __builtin_sqrt(sum);
    double inverse = v_rough_inverse_f64(root);
    double r = root + (v_residual_f64(root, root, sum) + low) * (0.5 * inverse);
    return ((a == V_INF_F64) | (b == V_INF_F64)) ? V_INF_F64 : r * back;
}

#endif
