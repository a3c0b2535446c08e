/* vmath_inverse.h: inverse trigonometric functions and hypot, for both float widths.
 *
 * asin, acos: up to 1/2 an odd polynomial; beyond, asin x = pi/2 - 2 asin sqrt((1 - x) / 2), in
 * which 1 - x is exact. atan: up to 1/2 an odd polynomial; beyond, the angle less pi/4 or pi/2, as
 * in W. J. Cody and W. Waite, "Software manual for the elementary functions", 1980, chapters 10 and
 * 11, in float up to 1 and beyond less pi/2. What a rounded square root or quotient lost is
 * carried beside it, so that only the last addition rounds by much.
 *
 * "Error" is as in vmath_f32.h and vmath_f64.h, here over every 7th float, and for two arguments
 * over samples: all bit patterns at random, close exponents, close values, the ends of the range.
 * Polynomials are minimax fits (Remez), their coefficients rounded one by one and the rest
 * refitted.
 */
#ifndef MG_VMATH_INVERSE_H
#define MG_VMATH_INVERSE_H

#include "vmath_f32.h"
#include "vmath_f64.h"
#include "vmath_pair.h"

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

/* (asin(s) - s) / s^3 of z = s^2, 0 <= s <= 1/2 */
MG_INLINE float v_asin_tail_f32(float z) {
    float p0 = fma_f32(z, 0x1.3338aap-4f, 0x1.55554cp-3f);
    float p2 = fma_f32(z, 0x1.04cd0ep-5f, 0x1.6ca7dcp-5f);
    float p4 = fma_f32(z, 0x1.349e7p-5f, 0x1.d589a8p-7f);
    return fma_f32(z * z, fma_f32(z * z, p4, p2), p0);
}
MG_INLINE double v_asin_tail_f64(double z) {
    double zz = z * z;
    double p0 = fma_f64(z, 0x1.333333332df1fp-4, 0x1.5555555555578p-3);
    double p2 = fma_f64(z, 0x1.f1c71a8bec783p-6, 0x1.6db6db722abadp-5);
    double p4 = fma_f64(z, 0x1.1c49decd3cedep-6, 0x1.6e8bdfdc6b921p-6);
    double p6 = fma_f64(z, 0x1.757843c91d7abp-7, 0x1.ca212f8117c83p-7);
    double p8 = fma_f64(z, 0x1.e19ef1944c44dp-9, 0x1.61867acc68263p-7);
    double p10 = fma_f64(z, -0x1.59d6ad7083d7cp-6, 0x1.64ec6f005d754p-6);
    p10 = fma_f64(zz, 0x1.0bda0f157234dp-5, p10);
    p8 = fma_f64(zz, p10, p8);
    p4 = fma_f64(zz, p6, p4);
    p0 = fma_f64(zz, p2, p0);
    return fma_f64(zz * zz, fma_f64(zz * zz, p8, p4), p0);
}

/* atan(t + t_low) as the sum of what is returned and *low, |t| <= 1: 0.89 t, which leaves a small
 * part to the polynomial in t^2 - 1/2 and to its rounding errors. The slope is about 1 - t^2 / 2. */
MG_INLINE float v_atan_reduced_f32(float t, float t_low, float *low) {
    const float most = 0x1.c7ae14p-1f;
    float z = t * t, u = z - 0.5f, uu = u * u;
    float q1 = fma_f32(u, 0x1.55a292p-4f, -0x1.a1494cp-3f);
    float q3 = fma_f32(u, 0x1.5913fap-6f, -0x1.49b378p-5f);
    float q5 = fma_f32(u, 0x1.a413dcp-8f, -0x1.7ac8d4p-7f);
    float q7 = fma_f32(u, 0x1.72f27p-9f, -0x1.e589bap-9f);
    q7 = fma_f32(uu, -0x1.c2f77p-10f, q7);
    q5 = fma_f32(uu, q7, q5);
    q3 = fma_f32(uu, q5, q3);
    q1 = fma_f32(uu, q3, q1);
    float g = fma_f32(u, q1, -0x1.40cd72p-6f), part = most * t;
    bool tiny = z < 0x1p-26f;
    float rest = fma_f32(-0.5f * z, t_low, t_low) - v_residual_f32(most, t, part);
    *low = tiny ? t_low : fma_f32(t, g, rest);
    return tiny ? t : part;
}

/* (atan(t) - t) / t^3 of z = t^2, 0 <= t <= 1/2 */
MG_INLINE double v_atan_tail_f64(double z) {
    double zz = z * z;
    double p0 = fma_f64(z, 0x1.99999999990e8p-3, -0x1.5555555555552p-2);
    double p2 = fma_f64(z, 0x1.c71c71ab39d4ap-4, -0x1.249249245408cp-3);
    double p4 = fma_f64(z, 0x1.3b13615e1970ap-4, -0x1.745d13985d0f8p-4);
    double p6 = fma_f64(z, 0x1.e18366960911dp-5, -0x1.110c799eba321p-4);
    double p8 = fma_f64(z, 0x1.78086e10765c4p-5, -0x1.ac75e38332e46p-5);
    double p10 = fma_f64(z, 0x1.83ff010dc9268p-6, -0x1.303b6844b1f11p-5);
    p10 = fma_f64(zz, -0x1.12a91a1a9a527p-7, p10);
    p8 = fma_f64(zz, p10, p8);
    p4 = fma_f64(zz, p6, p4);
    p0 = fma_f64(zz, p2, p0);
    return fma_f64(zz * zz, fma_f64(zz * zz, p8, p4), p0);
}
/* As v_atan_reduced_f32, |t| <= 1/2. */
MG_INLINE double v_atan_reduced_f64(double t, double t_low, double *low) {
    double z = t * t;
    *low = fma_f64(t * z, v_atan_tail_f64(z), fma_f64(-z, t_low, t_low));
    return t;
}

#define MG_REAL 32
#include "vmath_inverse.inc.h"
#define MG_REAL 64
#include "vmath_inverse.inc.h"

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

/* b / (a^2 + b^2), by which the angle of (b, a) grows with a; 0 at the origin and at infinity.
 * Float in double, where no square leaves the range. */
MG_INLINE float v_angle_slope_f32(float a, float b) {
    double x = (double)a, y = (double)b, d = fma_f64(x, x, y * y), r = v_rough_inverse_f64(d);
    r = fma_f64(r, fma_f64(-d, r, 1.0), r);
    double e = fma_f64(-d, r, 1.0);
    float slope = (float)(y * fma_f64(r, fma_f64(e, e, e), r));
    bool infinite = (v_abs_f32(a) == V_INF_F32) | (v_abs_f32(b) == V_INF_F32);
    return ((d == 0.0) | infinite) ? 0.0f : slope;
}
MG_INLINE double v_angle_slope_f64(double a, double b) {
    double r = v_hypot_f64(a, b), inverse = 1.0 / r;
    return ((r == 0.0) | (r == V_INF_F64)) ? 0.0 : inverse * (inverse * b);
}

#endif
