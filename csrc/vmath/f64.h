/* f64.h: the double-precision twins of f32.h; read that file first. No 64-bit integer
 * conversion or arithmetic shift is used: SSE2 and AVX2 have none.
 *
 * "Error" is the largest seen against quadruple precision over samples: uniform over the range that
 * matters, dense around 0 and 1, all bit patterns at random, and the special values.
 */
#ifndef MG_VMATH_F64_H
#define MG_VMATH_F64_H

#include "simd/vec.h"

#define V_INF_F64 __builtin_inf()
#define V_NAN_F64 __builtin_nan("")

/* ln 2 = HI + LO; HI has 42 bits, so that n * HI is exact with and without fma. */
#define V_LN2_HI_F64 0x1.62e42fefa38p-1
#define V_LN2_LO_F64 0x1.ef35793c7673p-45
#define V_LN2_F64 0x1.62e42fefa39efp-1
#define V_LOG2E_F64 0x1.71547652b82fep+0

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

/* The smaller of two as signed integers: for positive floats their order too. A compiler makes one
 * instruction of it, where a clamp written with floats tears the code after it into two paths. */
MG_INLINE uint64_t v_min_bits_f64(uint64_t a, uint64_t b) {
#if defined(__SSE2__) && !defined(__AVX2__)
    return v_from_bits_f64(a) < v_from_bits_f64(b) ? a : b; /* no 64-bit integer comparison here */
#else
    return (uint64_t)((int64_t)a < (int64_t)b ? (int64_t)a : (int64_t)b);
#endif
}

/* a * b - p, exactly, for p = a * b rounded; without fma by Dekker's product (pair.h), for
 * factors below 2^996. */
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

/* 1 / d to 2^-46, for d in the range of a float: dividing doubles takes several times as long. */
MG_INLINE double v_reciprocal_f64(double d) {
    double r = (double)(1.0f / (float)d);
    return fma_f64(fma_f64(-d, r, 1.0), r, r);
}

typedef struct {
    double r_high, r_low, r;
    uint64_t n; /* n + 2046 in the low twelve bits */
} v_exp_parts_f64;

MG_INLINE v_exp_parts_f64 v_exp_split_f64(double x, double x_low, double n_top) {
    const double magic = 0x1.8p52 + 2046;
    double t = fma_f64(x, V_LOG2E_F64, magic);
    uint64_t bits = v_min_bits_f64(v_bits_f64(t), v_bits_f64(magic + n_top));
    double n = v_from_bits_f64(bits) - magic;
    double r_high = fma_f64(n, -V_LN2_HI_F64, x), r_low = fma_f64(n, -V_LN2_LO_F64, x_low);
    double r = r_high + r_low;
    return (v_exp_parts_f64){r_high, r_low, r, bits};
}
MG_INLINE double v_pow2_f64(uint64_t n) { return v_from_bits_f64((n - 1023) << 52); }
MG_INLINE double v_pow2_half_f64(uint64_t n) { return v_from_bits_f64((n >> 1) << 52); }
MG_INLINE double v_pow2_rest_f64(uint64_t n) { return v_from_bits_f64((n - (n >> 1)) << 52); }

/* log(1 + f) = 2 atanh(s) = f - h + s q, where s = f / (2 + f), h = f^2/2 and q = h + R(s^2) */
typedef struct {
    double s, q, h;
} v_log_series_f64;

MG_INLINE v_log_series_f64 v_log_series_of_f64(double f) {
    double d = 2.0 + f, inverse = v_reciprocal_f64(d), s = f * inverse;
    s = fma_f64(fma_f64(-s, d, f), inverse, s);
    double z = s * s, h = 0.5 * f * f;
    double zz = z * z;
    double p0 = fma_f64(z, 0x1.999999997f9fbp-2, 0x1.5555555555593p-1);
    double p2 = fma_f64(z, 0x1.c71c51d815bbcp-3, 0x1.2492494229feap-2);
    double p4 = fma_f64(z, 0x1.39a097537b678p-3, 0x1.7466499f6d17ap-3);
    p4 = fma_f64(zz, 0x1.2f116b7904b87p-3, p4);
    double p = fma_f64(zz, fma_f64(zz, p4, p2), p0);
    return (v_log_series_f64){s, fma_f64(z, p, h), h};
}

#define V_SQRT_HALF_BITS_F64 0x3fe6a09e667f3bcdu
#define V_LOG_SHIFT_F64 (0x3ff0000000000000u - V_SQRT_HALF_BITS_F64)

/* What log and its relatives share: 2^k (1 + f + f_low), sqrt(1/2) <= 1 + f < sqrt(2). */
typedef struct {
    double k, f, f_low;
} v_log_parts_f64;

/* A normal x > 0, and any. */
MG_INLINE v_log_parts_f64 v_log_split_normal_f64(double x) {
    uint64_t u = v_bits_f64(x) + V_LOG_SHIFT_F64;
    double k = v_from_bits_f64((u >> 52) | 0x4330000000000000u) - (0x1p52 + 1023);
    double f = v_from_bits_f64((u & V_FRACTION_F64) + V_SQRT_HALF_BITS_F64) - 1.0;
    return (v_log_parts_f64){k, f, 0.0};
}
MG_INLINE v_log_parts_f64 v_log_split_f64(double x) {
    bool tiny = x < 0x1p-1022;
    v_log_parts_f64 p = v_log_split_normal_f64(tiny ? x * 0x1p52 : x);
    p.k -= tiny ? 52.0 : 0.0;
    return p;
}
/* 1 + x + x_low, x > -1: k is the exponent of 1 + x rounded; f comes from x itself. */
MG_INLINE v_log_parts_f64 v_log1p_split_f64(double x, double x_low) {
    uint64_t u = v_bits_f64(1.0 + x) + V_LOG_SHIFT_F64, e = u >> 52;
    double k = v_from_bits_f64(e | 0x4330000000000000u) - (0x1p52 + 1023);
    double scale = v_from_bits_f64((2048u - e) << 52) * 0.25; /* 2^-k; k may be 1024 */
    double g = scale - 1.0, f = fma_f64(x, scale, g);
    return (v_log_parts_f64){k, f, fma_f64(x, scale, g - f) + x_low * scale};
}

#define V_TRIG_MAX_F64 1.0e6

typedef struct {
    double r, r_low;
    uint64_t quadrant;
} v_trig_parts_f64;

MG_INLINE v_trig_parts_f64 v_trig_reduce_f64(double a) {
    const double magic = 0x1.8p52;
    double t = fma_f64(a, 0x1.45f306dc9c883p-1, magic);
    double n = t - magic;
#if MG_HAS_FMA
    double r = fma_f64(n, -0x1.921fb54442d18p+0, a);
#else
    double r = (a - n * 0x1.921fb544p+0) - n * 0x1.0b46p-34;
#endif
    double s = fma_f64(n, -0x1.1a626331p-54, r);
    double low = fma_f64(n, -0x1.1a626331p-54, r - s);
    low = fma_f64(n, -0x1.1701b839a252p-88, low);
    return (v_trig_parts_f64){s, low, v_bits_f64(t)};
}
MG_INLINE double v_trig_eval_f64(v_trig_parts_f64 p, uint64_t quadrant, uint64_t sign) {
    double r = p.r, z = r * r;
    double zz = z * z;
    double s0 = fma_f64(z, 0x1.111111110f73p-7, -0x1.5555555555548p-3);
    double s2 = fma_f64(z, 0x1.71de35552963fp-19, -0x1.a01a019be9204p-13);
    double s4 = fma_f64(z, 0x1.5d8b54c7675e2p-33, -0x1.ae5e4b81ce0e9p-26);
    double s = fma_f64(zz, fma_f64(zz, s4, s2), s0);
    s = r + fma_f64(r, z * s, p.r_low);
    double c0 = fma_f64(z, -0x1.6c16c16c15219p-10, 0x1.555555555554cp-5);
    double c2 = fma_f64(z, -0x1.27e4f811bb1c7p-22, 0x1.a01a019cbe5f9p-16);
    double c4 = fma_f64(z, -0x1.8fb0b3cfa74f9p-37, 0x1.1ee9f08229f68p-29);
    double c = fma_f64(zz, fma_f64(zz, c4, c2), c0);
    double h = fma_f64(z, -0.5, 1.0);
    c = h + fma_f64(zz, c, fma_f64(-r, p.r_low, fma_f64(z, -0.5, 1.0 - h)));
    double y = v_from_bits_f64((quadrant & 1u) << 52) > 0.0 ? c : s; /* 2^-1022 or 0 */
    return v_from_bits_f64(v_bits_f64(y) ^ ((quadrant << 62) & V_SIGN_F64) ^ sign);
}

/* Right for |x| <= V_TRIG_MAX_F64. Error 0.825 at -0x1.4f79a8fc040cp+14. */
MG_INLINE double v_sin_f64(double x) {
    v_trig_parts_f64 p = v_trig_reduce_f64(v_abs_f64(x));
    return v_trig_eval_f64(p, p.quadrant, v_bits_f64(x) & V_SIGN_F64);
}
/* Right for |x| <= V_TRIG_MAX_F64. Error 0.818 at 0x1.9ab5ff1ca86bcp-1. */
MG_INLINE double v_cos_f64(double x) {
    v_trig_parts_f64 p = v_trig_reduce_f64(v_abs_f64(x));
    return v_trig_eval_f64(p, p.quadrant + 1u, 0);
}

#endif
