/* roots.h: square roots, their inverses, cube roots and hypot.
 *
 * "Error" is the largest error seen over samples, in units of the last place. Samples are bit
 * patterns at random, close exponents, close values, and the ends of the range. For cube roots of
 * floats, all floats were tried. Without fma the error is the same.
 */
#ifndef MG_VMATH_ROOTS_H
#define MG_VMATH_ROOTS_H

#include "chunk.h"
#include "log.h"

/* sqrt(a^2 + b^2). It is infinite if a or b is, even if the other operand is NaN. In double nothing
 * can overflow. Error 0.501, with and without fma. */
MG_INLINE float v_hypot_f32(float a, float b) {
    double x = (double)a, y = (double)b;
    float r = (float)__builtin_sqrt(fma_f64(x, x, y * y));
    a = v_abs_f32(a);
    b = v_abs_f32(b);
    return ((a == V_INF_F32) | (b == V_INF_F32)) ? V_INF_F32 : r;
}
/* The operands are scaled by a power of two where a square would leave the range. The root takes
 * one Newton step towards the root of the exact sum (C. F. Borges, "Algorithm 1014: an improved
 * algorithm for hypot(x, y)", ACM TOMS 47, 2020). Error 0.501, with and without fma. For subnormal
 * results, which are rounded twice, 0.721. */
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

/* ---- cube roots ---- */

/* The cube root of t = 2^m (1 + f), m = -1, 0 or 1, before its last correction (error 2^-49). z
 * approximates t^(-1/3), by a polynomial and one step of third order. The root is t z^2. */
typedef struct {
    double t, y, z;
    uint64_t n; /* the exponent of the result, as in v_exp_parts_f64 */
} v_cbrt_parts_f64;

MG_INLINE v_cbrt_parts_f64 v_cbrt_split_f64(double a) {
    const double magic = 0x1.8p52 + 2046;
    v_log_parts_f64 p = v_log_split_f64(a);
    double n = fma_f64(p.k, 0x1.5555555555555p-2, magic), m = fma_f64(n - magic, -3.0, p.k);
    double t = (1.0 + p.f) * (m < 0.0 ? 0.5 : (m > 0.0 ? 2.0 : 1.0));
    double f = p.f, ff = f * f;
    double z0 = fma_f64(f, -0x1.55425db424c18p-2, 0x1.0000408885053p+0);
    double z2 = fma_f64(f, -0x1.68139545f34a5p-3, 0x1.c5d8eb62af18cp-3);
    double z4 = fma_f64(f, -0x1.baa0c7fa48141p-4, 0x1.48889cac8b49bp-3);
    double z = fma_f64(ff, fma_f64(ff, z4, z2), z0);
    z *= m < 0.0 ? 0x1.428a2f98d728bp+0 : (m > 0.0 ? 0x1.965fea53d6e3dp-1 : 1.0);
    double e = fma_f64(-t * z, z * z, 1.0);
    z = fma_f64(z * e, fma_f64(e, 0x1.c71c71c71c71cp-3, 0x1.5555555555555p-2), z);
    return (v_cbrt_parts_f64){t, t * (z * z), z, v_bits_f64(n)};
}

/* The correction is a Newton step with an exact residual t - y^3, so that the root of a perfect
 * cube is exact. Error 0.500 at 0x1.c64f4826f3e9ep+3. */
MG_INLINE double v_cbrt_f64(double x) {
    double a = v_abs_f64(x);
    v_cbrt_parts_f64 p = v_cbrt_split_f64(a);
    v_pair_f64 square = v_product_f64(p.y, p.y), cube = v_product_f64(square.high, p.y);
    double residual = ((p.t - cube.high) - cube.low) - square.low * p.y;
    double y = fma_f64(residual * (p.z * p.z), 0x1.5555555555555p-2, p.y) * v_pow2_f64(p.n);
    return ((a > 0.0) & (a < V_INF_F64)) ? v_copysign_f64(y, x) : x;
}

/* The same formula in double, where rounding needs no care. Error 0.500 at 0x1.06a76ap-125. */
MG_INLINE float v_cbrt_f32(float x) {
    double a = (double)v_abs_f32(x);
    v_cbrt_parts_f64 p = v_cbrt_split_f64(a);
    float y = (float)(p.y * v_pow2_f64(p.n));
    return ((a > 0.0) & (a < V_INF_F64)) ? v_copysign_f32(y, x) : x;
}

/* ---- chunks ---- */

V_CHUNKS(rsqrt)
#define MG_REAL 32
#include "sqrt.inc.h"
#define MG_REAL 64
#include "sqrt.inc.h"

#endif
