/* log.h: logarithms of chunks, and the logarithm of a double in parts.
 *
 * The parts in double (v_log_parts_f64) serve functions that keep all but the last addition as an
 * unevaluated sum of two (pair.h). The last rounding is then the only one that counts. If the
 * result is subnormal, the rounding before it counts, too.
 */
#ifndef MG_VMATH_LOG_H
#define MG_VMATH_LOG_H

#include "chunk.h"
#include "exp.h"
#include "pair.h"

/* Logarithms of chunks. Nearly all x go to the function itself. All other x are first multiplied by
 * a power of two. */
#if MG_HAS_WIDE
#define SCALED_BY(name, type, width)                                                               \
    static MG_NOINLINE void w_##name##_before_##width(type *to, const type *x, type power) {       \
        w_store_##width(to, w_##name##_scaled_##width(w_load_##width(x), power));                  \
    }                                                                                              \
    static MG_NOINLINE void w_##name##_after_##width(type *out, const type *x, type power_log) {   \
        wide_##width y = w_load_##width(out);                                                      \
        w_store_##width(out, w_##name##_rest_##width(w_load_##width(x), y, power_log));            \
    }
SCALED_BY(log, float, f32)
SCALED_BY(log, double, f64)
SCALED_BY(log1p, float, f32)
SCALED_BY(log1p, double, f64)
#undef SCALED_BY
#define LOG_OF(name, by, power, power_log, type, width)                                            \
    static inline void v_##name##_chunk_##width(type *restrict out, const type *restrict x,        \
                                                int64_t n) {                                       \
        w_map_scaled_##width(out, x, n, w_##name##_near_##width, w_##by##_before_##width, power,   \
                             w_##by##_after_##width, power_log);                                   \
    }
#else
#define LOG_OF(name, by, power, power_log, type, width) V_CHUNKS_OF(name, type, width)
#endif
#define LOG(name, by, power, power_log)                                                            \
    LOG_OF(name, by, power##_F32, power_log##_F32, float, f32)                                     \
    LOG_OF(name, by, power##_F64, power_log##_F64, double, f64)
LOG(log, log, V_LOG_POWER, V_LOG_OF_POWER)
LOG(log2, log, V_LOG2_POWER, V_LOG2_OF_POWER)
LOG(log10, log, V_LOG10_POWER, V_LOG10_OF_POWER)
MG_CHAINS
LOG(log1p, log1p, 1 / V_LOG_POWER, -V_LOG_OF_POWER)
MG_CHAINS_END
#undef LOG
#undef LOG_OF
V_ANY_OF(log, float, f32)
V_ANY_OF(log, double, f64)

/* ---- in parts ---- */

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

/* The reduction shared by log and its relatives: 2^k (1 + f + f_low), sqrt(1/2) <= 1 + f <
 * sqrt(2). */
typedef struct {
    double k, f, f_low;
} v_log_parts_f64;

/* The parts of a normal x > 0, then of any x. */
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
/* The parts of 1 + x + x_low, x > -1. k is the exponent of the rounded sum 1 + x, while f comes
 * from x itself. */
MG_INLINE v_log_parts_f64 v_log1p_split_f64(double x, double x_low) {
    uint64_t u = v_bits_f64(1.0 + x) + V_LOG_SHIFT_F64, e = u >> 52;
    double k = v_from_bits_f64(e | 0x4330000000000000u) - (0x1p52 + 1023);
    double scale = v_from_bits_f64((2048u - e) << 52) * 0.25; /* 2^-k; k may be 1024 */
    double g = scale - 1.0, f = fma_f64(x, scale, g);
    return (v_log_parts_f64){k, f, fma_f64(x, scale, g - f) + x_low * scale};
}

/* The natural logarithm k ln 2 + f - h + s q + f_low / (1 + f), as in v_log_series_f64. The first
 * three terms are added without loss. The low part may overlap the high one by several bits. */
MG_INLINE v_pair_f64 v_log_pair_f64(v_log_parts_f64 p) {
    v_pair_f64 y = v_fast_sum_f64(p.k * V_LN2_HI_F64, p.f), h = v_product_f64(0.5 * p.f, p.f);
    v_pair_f64 t = v_fast_sum_f64(y.high, -h.high);
    v_log_series_f64 l = v_log_series_of_f64(p.f);
    double low = fma_f64(p.f_low, 1.0 - p.f, -h.low);
    low = fma_f64(l.s, l.q, low) + (y.low + t.low);
    return (v_pair_f64){t.high, fma_f64(p.k, V_LN2_LO_F64, low)};
}
/* The logarithm to a base b, from per_e = 1 / log b and per_2 = log 2 / log b. The high part of
 * per_2 has 42 bits. */
MG_INLINE v_pair_f64 v_log_base_f64(v_log_parts_f64 p, v_pair_f64 per_e, v_pair_f64 per_2) {
    v_pair_f64 a = v_log_pair_f64((v_log_parts_f64){0.0, p.f, p.f_low});
    v_pair_f64 b = v_product_f64(a.high, per_e.high);
    b.low += fma_f64(a.high, per_e.low, a.low * per_e.high);
    v_pair_f64 y = v_fast_sum_f64(p.k * per_2.high, b.high);
    y.low += fma_f64(p.k, per_2.low, b.low);
    return y;
}
MG_INLINE v_pair_f64 v_log2_pair_f64(v_log_parts_f64 p) {
    const v_pair_f64 per_e = {V_LOG2E_F64, V_LOG2E_LOW_F64}, per_2 = {1.0, 0.0};
    return v_log_base_f64(p, per_e, per_2);
}
/* 1 + 2^n e^r */
MG_INLINE v_log_parts_f64 v_log1p_exp_split_f64(v_exp_parts_f64 p) {
    v_pair_f64 e = v_exp_pair_f64(p);
    return v_log1p_split_f64(v_scale_bits_f64(e.high, p.n), v_scale_bits_f64(e.low, p.n));
}
/* log(1 + u), or log 2a if a is so large that u would overflow. There both are equal. */
MG_INLINE double v_log1p_or_log_f64(v_pair_f64 u, double a) {
    bool large = a > 0x1p60;
    v_log_parts_f64 p = v_log1p_split_f64(large ? a : u.high, large ? 0.0 : u.low);
    p.k += large ? 1.0 : 0.0;
    v_pair_f64 y = v_log_pair_f64(p);
    return a < V_INF_F64 ? y.high + y.low : a;
}

#endif
