/* vmath_pow.h: x^y = e^(y log |x|) with the sign and the special cases of C99 Annex F.
 *
 * The exponent may reach 745 and its error becomes the result's relative error, so the logarithm
 * needs ten bits more than the result has: the float function works in double, the double function
 * carries the logarithm as an unevaluated sum of two (T. J. Dekker, "A floating-point technique
 * for extending the available precision", Numer. Math. 18, 1971).
 */
#ifndef MG_VMATH_POW_H
#define MG_VMATH_POW_H

#include "vmath_explog.h"
#include "vmath_f32.h"
#include "vmath_pair.h"
#include "vmath_wide.h"

/* e^(y log |a|): log a = high + low by s = (a - 1) / (a + 1), every product with its error. */
MG_INLINE double v_pow_core_f64(double a, double y) {
#if !MG_HAS_FMA
    /* beyond, the power is 0, 1 or infinity, and v_mul_low_f64 fails */
    uint64_t size = v_min_bits_f64(v_bits_f64(v_abs_f64(y)), v_bits_f64(0x1p900));
    y = v_copysign_f64(v_from_bits_f64(size), y);
#endif
    v_log_parts_f64 parts = v_log_split_f64(a);
    double k = parts.k, f = parts.f;
    double d = 2.0 + f, d_low = f - (d - 2.0), inverse = v_reciprocal_f64(d);
    double s = f * inverse;
    s = fma_f64(fma_f64(-s, d, f), inverse, s);
    double sd = s * d;
    double s_low = ((f - sd) - v_mul_low_f64(s, d, sd) - s * d_low) * inverse;
    double z = s * s, z_low = v_mul_low_f64(s, s, z) + 2.0 * (s * s_low);
    double zz = z * z;
    double p0 = fma_f64(z, 0x1.2492492492f56p-2, 0x1.9999999999996p-2);
    double p2 = fma_f64(z, 0x1.745d1829f0292p-3, 0x1.c71c71c595946p-3);
    double p4 = fma_f64(z, 0x1.1120770f3968dp-3, 0x1.3b136499d45c1p-3);
    double p6 = fma_f64(z, 0x1.ead1901924c1ap-4, 0x1.de3c18baed14bp-4);
    p0 = fma_f64(zz * zz, fma_f64(zz, p6, p4), fma_f64(zz, p2, p0));
    double p = z * p0, p_low = v_mul_low_f64(z, p0, p);
    const double c = 0x1.5555555555555p-1, c_low = 0x1.5555555555555p-55;
    double q = c + p, q_low = ((c - q) + p) + (c_low + p_low);
    double v = z * q, v_low = v_mul_low_f64(z, q, v) + (z * q_low + z_low * q);
    double w = s * v, w_low = v_mul_low_f64(s, v, w) + (s * v_low + s_low * v);
    double kh = k * V_LN2_HI_F64, s2 = 2.0 * s;
    double g = kh + s2, g_low = (kh - g) + s2;
    double h = g + w, h_low = (g - h) + w;
    double low = ((g_low + h_low) + 2.0 * s_low) + (w_low + k * V_LN2_LO_F64);
    double high = h + low;
    low = (h - high) + low;
    double t = y * high, t_low = v_mul_low_f64(y, high, t) + y * low;
    double e = v_from_bits_f64(v_min_bits_f64(v_bits_f64(v_abs_f64(t)), v_bits_f64(800.0)));
    v_exp_parts_f64 x = v_exp_split_f64(v_copysign_f64(e, t), e < 800.0 ? t_low : 0.0, 1100.0);
    double b = 1.0 + x.r_high; /* a second rounding here would be one too many */
    double e_r = b + ((x.r_high - (b - 1.0)) + v_exp_tail_f64(x));
    return e_r * v_pow2_half_f64(x.n) * v_pow2_rest_f64(x.n);
}

MG_INLINE bool v_is_integer_f32(float a) { /* a >= 0 */
    return (a >= 0x1p23f) | ((a + 0x1p23f) - 0x1p23f == a);
}
/* Error 0.501 at (0.307122260, 28.2829227), sampled. */
MG_INLINE float v_pow_f32(float x, float y) {
    float a = v_abs_f32(x), b = v_abs_f32(y);
    float r = (float)v_pow_float_f64((double)a, (double)y);
    /* 0 and infinity have logarithms that no formula gives; y = inf follows y = 2^24. */
    float edge = (a == 0.0f) == (y < 0.0f) ? V_INF_F32 : 0.0f;
    r = ((a == 0.0f) | (a == V_INF_F32)) ? edge : r;
    bool whole = v_is_integer_f32(b), odd = whole & !v_is_integer_f32(0.5f * b);
    r = odd ? v_copysign_f32(r, x) : r;
    r = ((x < 0.0f) & (a < V_INF_F32) & !whole) ? V_NAN_F32 : r;
    r = ((x != x) | (y != y)) ? x + y : r;
    bool one = (x == 1.0f) | (y == 0.0f) | ((a == 1.0f) & (b == V_INF_F32));
    return one ? 1.0f : r;
}

MG_INLINE bool v_is_integer_f64(double a) { /* a >= 0 */
    return (a >= 0x1p52) | ((a + 0x1p52) - 0x1p52 == a);
}
/* Error 0.923 at (1.4055746090775567, 2037.799173788977), sampled against quadruple precision,
 * densest where the error is largest: 1.36 < x < 1.42 and results near the ends of the range. */
MG_INLINE double v_pow_f64(double x, double y) {
    double a = v_abs_f64(x), b = v_abs_f64(y);
    double r = v_pow_core_f64(a, y);
    /* 0 and infinity have logarithms that no formula gives; y = inf follows y = 2^24. */
    double edge = (a == 0.0) == (y < 0.0) ? V_INF_F64 : 0.0;
    r = ((a == 0.0) | (a == V_INF_F64)) ? edge : r;
    bool whole = v_is_integer_f64(b), odd = whole & !v_is_integer_f64(0.5 * b);
    r = odd ? v_copysign_f64(r, x) : r;
    r = ((x < 0.0) & (a < V_INF_F64) & !whole) ? V_NAN_F64 : r;
    r = ((x != x) | (y != y)) ? x + y : r;
    bool one = (x == 1.0) | (y == 0.0) | ((a == 1.0) & (b == V_INF_F64));
    return one ? 1.0 : r;
}

#if MG_HAS_WIDE
#define MG_REAL 64
#include "real.h"

/* e^(x + x_low) = 2^n (1 + r_high + tail), the error of r_high + tail below that of the sum */
typedef struct {
    wide_f64 n, r_high, tail;
} w_exp_parts_f64;

MG_INLINE w_exp_parts_f64 w_exp_split_f64(wide_f64 x, wide_f64 x_low) {
    const double magic = 0x1.8p52;
    wide_f64 n = w_sub(w_fma(x, w_set(V_LOG2E_F64), w_set(magic)), w_set(magic));
    wide_f64 r_high = w_fma(n, w_set(-V_LN2_HI_F64), x);
    wide_f64 r_low = w_fma(n, w_set(-V_LN2_LO_F64), x_low);
    wide_f64 r = w_add(r_high, r_low), z = w_mul(r, r), zz = w_mul(z, z);
    wide_f64 q0 = w_line(r, 0x1.5555555555559p-3, 0.5);
    wide_f64 q2 = w_line(r, 0x1.111111110f6fdp-7, 0x1.5555555555558p-5);
    wide_f64 q4 = w_line(r, 0x1.a01a01afa95d8p-13, 0x1.6c16c16c17152p-10);
    wide_f64 q6 = w_line(r, 0x1.71ddf9087c1dbp-19, 0x1.a01a019b87d28p-16);
    wide_f64 q8 = w_line(r, 0x1.af5d6dd4e6ecap-26, 0x1.27e4fdd3c41ffp-22);
    q8 = w_fma(z, w_set(0x1.1f329f586bb8bp-29), q8);
    q4 = w_fma(z, q6, q4);
    q0 = w_fma(z, q2, q0);
    wide_f64 tail = w_fma(z, w_fma(zz, w_fma(zz, q8, q4), q0), r_low);
    return (w_exp_parts_f64){n, r_high, tail};
}
/* The low part of a b, where p is its rounded value */
MG_INLINE wide_f64 w_mul_low_f64(wide_f64 a, wide_f64 b, wide_f64 p) {
    return w_fma(a, b, w_neg(p));
}
/* v_pow_core_f64, for normal a > 0 and |y| < 2^1000 */
MG_INLINE wide_f64 w_pow_core_f64(wide_f64 a, wide_f64 y) {
    wide_f64 u = w_add_bits(a, V_LOG_SHIFT_F64), two = w_set(2.0);
    wide_f64 k = w_sub(w_or(w_shift_right(u, 52), 0x4330000000000000u), w_set(0x1p52 + 1023));
    wide_f64 f = w_add_bits(w_and(u, V_FRACTION_F64), V_SQRT_HALF_BITS_F64);
    f = w_sub(f, w_set(1.0));
    wide_f64 d = w_add(two, f), d_low = w_sub(f, w_sub(d, two)), inverse = w_reciprocal_f64(d);
    wide_f64 s = w_mul(f, inverse);
    s = w_fma(w_fnma(s, d, f), inverse, s);
    wide_f64 sd = w_mul(s, d);
    wide_f64 s_low = w_sub(w_sub(f, sd), w_mul_low_f64(s, d, sd));
    s_low = w_mul(w_sub(s_low, w_mul(s, d_low)), inverse);
    wide_f64 z = w_mul(s, s), zz = w_mul(z, z);
    wide_f64 z_low = w_add(w_mul_low_f64(s, s, z), w_mul(two, w_mul(s, s_low)));
    wide_f64 p0 = w_line(z, 0x1.2492492492f56p-2, 0x1.9999999999996p-2);
    wide_f64 p2 = w_line(z, 0x1.745d1829f0292p-3, 0x1.c71c71c595946p-3);
    wide_f64 p4 = w_line(z, 0x1.1120770f3968dp-3, 0x1.3b136499d45c1p-3);
    wide_f64 p6 = w_line(z, 0x1.ead1901924c1ap-4, 0x1.de3c18baed14bp-4);
    p0 = w_fma(w_mul(zz, zz), w_fma(zz, p6, p4), w_fma(zz, p2, p0));
    wide_f64 p = w_mul(z, p0), p_low = w_mul_low_f64(z, p0, p);
    wide_f64 c = w_set(0x1.5555555555555p-1), q = w_add(c, p);
    wide_f64 q_low = w_add(w_add(w_sub(c, q), p), w_add(w_set(0x1.5555555555555p-55), p_low));
    wide_f64 v = w_mul(z, q), v_low = w_add(w_mul(z, q_low), w_mul(z_low, q));
    v_low = w_add(w_mul_low_f64(z, q, v), v_low);
    wide_f64 w = w_mul(s, v), w_low = w_add(w_mul(s, v_low), w_mul(s_low, v));
    w_low = w_add(w_mul_low_f64(s, v, w), w_low);
    wide_f64 kh = w_mul(k, w_set(V_LN2_HI_F64)), s2 = w_mul(two, s);
    wide_f64 g = w_add(kh, s2), g_low = w_add(w_sub(kh, g), s2);
    wide_f64 h = w_add(g, w), h_low = w_add(w_sub(g, h), w);
    wide_f64 low = w_add(w_add(g_low, h_low), w_mul(two, s_low));
    low = w_add(low, w_add(w_low, w_mul(k, w_set(V_LN2_LO_F64))));
    wide_f64 high = w_add(h, low);
    low = w_add(w_sub(h, high), low);
    wide_f64 t = w_mul(y, high), t_low = w_add(w_mul_low_f64(y, high, t), w_mul(y, low));
    t_low = w_choose_less(w_abs(t), w_set(800.0), t_low, w_set(0.0));
    t = w_max(w_set(-800.0), w_min(w_set(800.0), t));
    w_exp_parts_f64 x = w_exp_split_f64(t, t_low);
    wide_f64 one = w_set(1.0), b = w_add(one, x.r_high);
    wide_f64 e_r = w_add(b, w_add(w_sub(x.r_high, w_sub(b, one)), x.tail));
    return w_scale(e_r, x.n);
}
#endif

/* out[i] = x[i]^y[i], whole blocks; out overlaps neither. */
static inline void v_pow_chunk_f32(float *restrict out, const float *restrict x,
                                   const float *restrict y, int64_t n) {
#if MG_HAS_WIDE
    const int64_t block = WIDE_VECTORS * MG_VECTOR_BYTES / 8;
    if (n % block) __builtin_unreachable();
    for (int64_t i = 0; i < n; i += block) {
        wide_f64 a = w_load_floats(x + i), b = w_load_floats(y + i);
        if (MG_LIKELY(w_inside(a, 0x1p-149, V_INF_F64) && w_inside(b, -0x1p127, 0x1p127)))
            w_store_floats(out + i, w_pow_float_f64(a, b));
        else
            for (int64_t j = i; j < i + block; j++) out[j] = v_pow_f32(x[j], y[j]);
    }
#else
    for (int64_t i = 0; i < n; i++) out[i] = v_pow_f32(x[i], y[i]);
#endif
}
static inline void v_pow_chunk_f64(double *restrict out, const double *restrict x,
                                   const double *restrict y, int64_t n) {
#if MG_HAS_WIDE
    const int64_t block = WIDE_VECTORS * MG_VECTOR_BYTES / 8;
    if (n % block) __builtin_unreachable();
    for (int64_t i = 0; i < n; i += block) {
        wide_f64 a = w_load(x + i), b = w_load(y + i);
        if (MG_LIKELY(w_inside(a, 0x1p-1022, V_INF_F64) && w_inside(b, -0x1p1000, 0x1p1000)))
            w_store(out + i, w_pow_core_f64(a, b));
        else
            for (int64_t j = i; j < i + block; j++) out[j] = v_pow_f64(x[j], y[j]);
    }
#else
    for (int64_t i = 0; i < n; i++) out[i] = v_pow_f64(x[i], y[i]);
#endif
}

#endif
