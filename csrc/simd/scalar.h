/* scalar.h: single floats and doubles: bits, signs, roots and rounding errors.
 *
 * None of these functions branches, so that loops over them become vector code on every instruction
 * set. There is no 64-bit integer conversion and no 64-bit arithmetic shift, which SSE2 and AVX2
 * lack.
 */
#ifndef MG_SIMD_SCALAR_H
#define MG_SIMD_SCALAR_H

#include "vec.h"

#define V_INF_F32 __builtin_inff()
#define V_NAN_F32 __builtin_nanf("")

MG_INLINE uint32_t v_bits_f32(float x) {
    uint32_t u;
    __builtin_memcpy(&u, &x, sizeof u);
    return u;
}
MG_INLINE float v_from_bits_f32(uint32_t u) {
    float x;
    __builtin_memcpy(&x, &u, sizeof x);
    return x;
}
MG_INLINE float v_abs_f32(float x) { return v_from_bits_f32(v_bits_f32(x) & 0x7fffffffu); }
MG_INLINE float v_copysign_f32(float x, float sign) {
    return v_from_bits_f32((v_bits_f32(x) & 0x7fffffffu) | (v_bits_f32(sign) & 0x80000000u));
}

/* c - a b where a b is close to c: the residual of a rounded quotient or root a. */
MG_INLINE float v_residual_f32(float a, float b, float c) {
#if MG_HAS_FMA
    return fma_f32(-a, b, c);
#else
    return (float)((double)c - (double)a * (double)b);
#endif
}

#define V_INF_F64 __builtin_inf()
#define V_NAN_F64 __builtin_nan("")

#define V_SIGN_F64 0x8000000000000000u
#define V_FRACTION_F64 0x000fffffffffffffu

MG_INLINE uint64_t v_bits_f64(double x) {
    uint64_t u;
    __builtin_memcpy(&u, &x, sizeof u);
    return u;
}
MG_INLINE double v_from_bits_f64(uint64_t u) {
    double x;
    __builtin_memcpy(&x, &u, sizeof x);
    return x;
}
MG_INLINE double v_abs_f64(double x) { return v_from_bits_f64(v_bits_f64(x) & ~V_SIGN_F64); }
MG_INLINE double v_copysign_f64(double x, double sign) {
    return v_from_bits_f64((v_bits_f64(x) & ~V_SIGN_F64) | (v_bits_f64(sign) & V_SIGN_F64));
}

/* The smaller of two as signed integers, which for positive floats is their order too. Compilers
 * make one instruction of it. A clamp of floats would split the code after it into two paths. */
MG_INLINE uint64_t v_min_bits_f64(uint64_t a, uint64_t b) {
#if defined(__SSE2__) && !defined(__AVX2__)
    /* there is no 64-bit integer comparison here */
    return v_from_bits_f64(a) < v_from_bits_f64(b) ? a : b;
#else
    return (uint64_t)((int64_t)a < (int64_t)b ? (int64_t)a : (int64_t)b);
#endif
}

/* a * b - p, exactly, for p = a * b rounded. Without fma by Dekker's product (pair.h), for factors
 * below 2^996. */
MG_INLINE double v_mul_low_f64(double a, double b, double p) {
#if MG_HAS_FMA
    return fma_f64(a, b, -p);
#else
    double ca = a * 0x1.000002p+27, cb = b * 0x1.000002p+27;
    double ah = ca - (ca - a), bh = cb - (cb - b), al = a - ah, bl = b - bh;
    return ((ah * bh - p) + ah * bl + al * bh) + al * bl;
#endif
}

/* c - a b where a b is close to c */
MG_INLINE double v_residual_f64(double a, double b, double c) {
#if MG_HAS_FMA
    return fma_f64(-a, b, c);
#else
    double p = a * b;
    return (c - p) - v_mul_low_f64(a, b, p);
#endif
}

/* 1 / d to 2^-46, for d in the range of a float. A division of doubles takes several times as
 * long. */
MG_INLINE double v_reciprocal_f64(double d) {
    double r = (double)(1.0f / (float)d);
    return fma_f64(fma_f64(-d, r, 1.0), r, r);
}

MG_INLINE float v_sqrt_f32(float x) { return __builtin_sqrtf(x); }
MG_INLINE double v_sqrt_f64(double x) { return __builtin_sqrt(x); }

/* 1 / d to 1.5 %, for d > 0; something finite for 0. That suffices to multiply a rounding error.
 * The difference of the bits is good to 12 %, as the bits are a piecewise linear logarithm.
 * Newton's step squares that error. */
MG_INLINE float v_rough_inverse_f32(float d) {
    float r = v_from_bits_f32(0x7ef311c7u - v_bits_f32(d));
    return r * fma_f32(-d, r, 2.0f);
}
MG_INLINE double v_rough_inverse_f64(double d) {
    double r = v_from_bits_f64(0x7fde623822fc16e6u - v_bits_f64(d));
    return r * fma_f64(-d, r, 2.0);
}

#endif
