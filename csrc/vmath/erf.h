/* erf.h: the error function and functions derived from it.
 *
 * erfc(x) = e^(-x^2) g(x) for x >= 0, where (x + c) g(x) is a polynomial in q = (x - 4) / (x + 4).
 * This map is from M. M. Shepherd and J. G. Laframboise, "Chebyshev approximation of (1 + 2x)
 * exp(x^2) erfc x in 0 <= x < infinity", Math. Comp. 36 (1981). The functions here need more digits
 * than the tables of erf.inc.h have. The factors are therefore carried as unevaluated sums of two
 * (pair.h). The float functions compute in double.
 *
 * "Error" is the largest error seen, in units of the last place. It was measured against 113-bit
 * arithmetic, and partly against mpmath. There were some 10^5 samples for each function: uniform,
 * logarithmic, and in the tails down to the subnormals. The error of the float functions is 0.500.
 * All polynomials are our own least-squares fits at Chebyshev points. Their coefficients were
 * rounded one by one and the rest refitted.
 */
#ifndef MG_VMATH_ERF_H
#define MG_VMATH_ERF_H

#include "chunk.h"
#include "exp.h"
#include "log.h"
#include "pair.h"
#include "piecewise_f32.h"

#define V_SQRT_HALF_LOW_F64 -0x1.bdd3413b26456p-55

/* ---- double ---- */

/* e^(a^2) erfc(a) for 0 <= a <= 28, where a has a low part. The polynomial is divided by a + 7/8.
 * It is nearly flat in q, so that rounding errors of q and of all terms but two hardly count. */
MG_INLINE v_pair_f64 v_erfcx_pair_f64(double a, double a_low) {
    double m = a - 4.0, d = a + 4.0, r = v_reciprocal_f64(d), q = m * r;
    q = fma_f64(fma_f64(-q, d, m), r, q);
    double z = q * q, zz = z * z;
    double p0 = fma_f64(q, -0x1.c3595544906d4p-6, 0x1.6f7371be1c3b9p-4);
    double p2 = fma_f64(q, 0x1.7c1ffdb50f084p-6, -0x1.3c7c0a6c99f0ap-7);
    double p4 = fma_f64(q, 0x1.c3204c65eeb8cp-7, -0x1.5f13b339348acp-6);
    double p6 = fma_f64(q, 0x1.227f1ad1be9c3p-9, -0x1.aefb78b8698a4p-8);
    double p8 = fma_f64(q, -0x1.25a447ae03a7fp-14, -0x1.95d937059db79p-12);
    double p10 = fma_f64(q, -0x1.b14cd09383bfdp-17, 0x1.18661d887d891p-14);
    double p12 = fma_f64(q, 0x1.6a9c2eab354b5p-19, -0x1.2e711ba2ed101p-18);
    double p14 = fma_f64(q, -0x1.947d0750a4acdp-22, 0x1.595379a1905efp-25);
    double p16 = fma_f64(q, 0x1.a80942318edcp-25, 0x1.942192a07d0e8p-25);
    double p18 = fma_f64(q, -0x1.b6f87e3ac1b1cp-28, -0x1.578e3113c70a3p-27);
    double p20 = fma_f64(q, 0x1.4d07664c60f6dp-31, 0x1.1fe17533efc85p-30);
    p0 = fma_f64(z, p2, p0);
    p4 = fma_f64(z, p6, p4);
    p8 = fma_f64(z, p10, p8);
    p12 = fma_f64(z, p14, p12);
    p16 = fma_f64(z, p18, p16);
    p16 = fma_f64(zz, p20, p16);
    p12 = fma_f64(zz, p16, p12);
    p8 = fma_f64(zz, p12, p8);
    p4 = fma_f64(zz, p8, p4);
    p0 = fma_f64(zz, p4, p0);
    const double c0 = 0x1.55f35d8d2d29fp-1, c1 = -0x1.55efb0613c39bp-3;
    double h = fma_f64(q, c1, c0), h_low = fma_f64(q, c1, c0 - h) + -0x1.383605a62811bp-55;
    v_pair_f64 p = v_fast_sum_f64(h, z * p0), n = v_sum_f64(a, 0.875);
    p.low += h_low;
    n.low += a_low;
    return v_quotient_f64(p, n);
}

/* erfc(a) = (high + low) 2^n, where s + s_low = a^2 */
typedef struct {
    double high, low;
    uint64_t n; /* as in v_exp_parts_f64 */
} v_erfc_parts_f64;

MG_INLINE v_erfc_parts_f64 v_erfc_split_f64(double a, double a_low, double s, double s_low) {
    v_pair_f64 g = v_erfcx_pair_f64(a, a_low);
    v_exp_parts_f64 x = v_exp_split_f64(-s, -s_low, 1024.0);
    v_pair_f64 e = v_exp_pair_f64(x), y = v_product_f64(e.high, g.high);
    y.low += fma_f64(e.high, g.low, e.low * g.high);
    return (v_erfc_parts_f64){y.high, y.low, x.n};
}
/* For a = |x| up to 28 */
MG_INLINE v_erfc_parts_f64 v_erfc_of_f64(double a) {
    double s = a * a;
    return v_erfc_split_f64(a, 0.0, s, v_mul_low_f64(a, a, s));
}
/* erfc(a / sqrt 2) / 2, the normal distribution at -a, for a up to 39.5 */
MG_INLINE v_erfc_parts_f64 v_ndtr_of_f64(double a) {
    double h = 0.5 * a, s = h * a, u = a * V_SQRT_HALF_F64;
    double u_low = v_mul_low_f64(a, V_SQRT_HALF_F64, u) + a * V_SQRT_HALF_LOW_F64;
    v_erfc_parts_f64 p = v_erfc_split_f64(u, u_low, s, v_mul_low_f64(h, a, s));
    return (v_erfc_parts_f64){0.5 * p.high, 0.5 * p.low, p.n};
}
/* erf(x) / x - 1, |x| <= 0.5 */
MG_INLINE double v_erf_tail_f64(double z) {
    double zz = z * z;
    double p0 = fma_f64(z, -0x1.812746b03798ep-2, 0x1.06eba8214db68p-3);
    double p2 = fma_f64(z, -0x1.b82ce30e55f72p-6, 0x1.ce2f21a03b63fp-4);
    double p4 = fma_f64(z, -0x1.c02d44e4b32afp-11, 0x1.565bcbcc5f825p-8);
    double p6 = fma_f64(z, -0x1.f20ad8e6949d4p-17, 0x1.f98c478cd609ep-14);
    p0 = fma_f64(zz, p2, p0);
    p4 = fma_f64(zz, p6, p4);
    p4 = fma_f64((zz * zz), 0x1.8a8712b6790e5p-20, p4);
    p0 = fma_f64((zz * zz), p4, p0);
    return p0;
}

/* log(y + y_low), y > 0 */
MG_INLINE v_pair_f64 v_log_of_pair_f64(v_pair_f64 y) {
    v_pair_f64 l = v_log_pair_f64(v_log_split_f64(y.high));
    l.low += y.low / y.high;
    return l;
}
/* log ndtr(x), computed in three ranges. Between -1 and 0 it is the logarithm of the pair, and
 * above 0 the logarithm of 1 less the upper tail. Below -1 it is log(g / 2) - x^2 / 2 with g =
 * e^(x^2 / 2) erfc(-x / sqrt 2). Beyond the range of g's polynomial the asymptotic series serves
 * (M. Abramowitz and I. A. Stegun, "Handbook of Mathematical Functions", 1964, 7.1.23). Error 0.984
 * at 0x1.ec104a30b579p-2. */
static MG_NOINLINE double v_log_ndtr_f64(double x) {
    if (!(x > -0x1p500)) {
        return -0.5 * x * x;
    }
    double a = v_abs_f64(x);
    if (x > -1.0) {
        v_erfc_parts_f64 p = v_ndtr_of_f64(a < 39.5 ? a : 39.5);
        v_pair_f64 y = {v_scale_bits_f64(p.high, p.n), v_scale_bits_f64(p.low, p.n)};
        v_pair_f64 l = x < 0.0 ? v_log_of_pair_f64(y)
                               : v_log_pair_f64(v_log1p_split_f64(-y.high, -y.low));
        return l.high + l.low;
    }
    v_pair_f64 g, u = v_product_f64(a, V_SQRT_HALF_F64), s = v_product_f64(0.5 * a, a);
    if (u.high < 28.0) {
        g = v_erfcx_pair_f64(u.high, fma_f64(a, V_SQRT_HALF_LOW_F64, u.low));
        g = (v_pair_f64){0.5 * g.high, 0.5 * g.low};
    } else { /* sqrt(2 pi) a g / 2 = 1 - v + 3 v^2 - ... */
        double v = 1.0 / (a * a), t = fma_f64(v, fma_f64(v, -945.0, 105.0), -15.0);
        t = fma_f64(v, fma_f64(v, fma_f64(v, t, 3.0), -1.0), 1.0);
        g = (v_pair_f64){t * 0x1.9884533d43651p-2 / a, 0.0};
    }
    v_pair_f64 l = v_log_of_pair_f64(g), y = v_sum_f64(-s.high, l.high);
    return y.high + (y.low + (l.low - s.low));
}

#define V_HORNER_F64(c, x) v_horner_f64(x, c, (int)(sizeof c / sizeof *c))

static const double v_erfinv_middle[] = { /* erfinv(x) / x at w - 2.5, w = -log(1 - x^2) < 5 */
    0x1.805c587a27c0dp+0, 0x1.f91eca33af336p-3, -0x1.11ad202749f92p-8, -0x1.48a9a51f3ef77p-10,
    0x1.c785aecac04c3p-13, -0x1.262e379f1055ap-18, -0x1.a9c6d15243cd7p-19, 0x1.6fc88411157f9p-22};
static const double v_erfinv_tail[] = { /* erfinv(x) at sqrt(w) - 4 */
    0x1.eb7e145f0f63cp+1, 0x1.026db28776784p+0, 0x1.44fbf26934f56p-10, -0x1.b462e36f32fa3p-11,
    0x1.46d9eeeaa838bp-12, -0x1.a658c1e37d773p-14, 0x1.1d2bb96e25c72p-16};

/* Starts from a value good to 20 bits in w = -log(1 - x^2) (M. Giles, "Approximating the erfinv
 * function", GPU Computing Gems 2, 2010). One step of Halley's method follows, with the error
 * function as a pair. NaN beyond +-1. Error 0.908 at 0x1.ffffffffff79fp-1. */
static MG_NOINLINE double v_erfinv_f64(double x) {
    double a = v_abs_f64(x);
    if (!(a < 1.0)) {
        return a == 1.0 ? v_copysign_f64(V_INF_F64, x) : V_NAN_F64;
    }
    double c = 1.0 - a, w = -v_log_f64(c * (1.0 + a)), y, error;
    if (a < 0.5) {
        w = -v_log1p_f64(-a * a);
        y = a * V_HORNER_F64(v_erfinv_middle, w - 2.5);
        error = fma_f64(y, v_erf_tail_f64(y * y), y - a);
    } else {
        y = w < 5.0 ? a * V_HORNER_F64(v_erfinv_middle, w - 2.5)
                    : V_HORNER_F64(v_erfinv_tail, __builtin_sqrt(w) - 4.0);
        v_erfc_parts_f64 p = v_erfc_of_f64(y);
        error = (c - v_scale_bits_f64(p.high, p.n)) - v_scale_bits_f64(p.low, p.n);
    }
    double step = error * 0x1.c5bf891b4ef6bp-1 * v_exp_f64(y * y);
    y -= step / fma_f64(step, y, 1.0);
    return v_copysign_f64(y, x);
}

/* ---- float, in double ---- */

/* Error 0.500, both. */
MG_INLINE float v_log_ndtr_f32(float x) { return (float)v_log_ndtr_f64((double)x); }
MG_INLINE float v_erfinv_f32(float x) { return (float)v_erfinv_f64((double)x); }

/* ---- chunks of erf, erfc and ndtr ---- */

#if MG_LANE_BY_LANE
static inline void v_erf_chunk_f32(float *restrict out, const float *restrict x, int64_t n) {
    v_odd_chunk_f32(out, x, n, V_ERF_HIGH_F32, &v_erf_bytes);
}
static inline void v_erfc_chunk_f32(float *restrict out, const float *restrict x, int64_t n) {
    v_tail_chunk_f32(out, x, n, V_ERFC_HIGH_F32, 1, -1, 2, &v_erfcx_bytes);
}
static inline void v_ndtr_chunk_f32(float *restrict out, const float *restrict x, int64_t n) {
    v_tail_chunk_f32(out, x, n, V_NORMAL_HIGH_F32, 0.5f, 1, 1, &v_normal_bytes);
}
#else
MG_CHAINS
V_CHUNKS_OF(erfc, float, f32)
V_CHUNKS_OF(ndtr, float, f32)
V_STAGES_OF(erf, erf, float, f32)
MG_CHAINS_END
#endif
#if MG_LANE_BY_LANE
/* The error function and functions derived from it, for doubles, in three loops. The first loop
 * finds the pieces of 256 numbers. The second evaluates the polynomials, two vectors in step, as
 * one vector's chain of operations is longer than a processor looks ahead. The third computes the
 * results. */
enum { PIECES_PART = 256 };
static MG_NOINLINE void w_pieces_f64(double *restrict g, double *restrict low,
                                     const double *restrict x, int64_t n, double high, double step,
                                     w_rows_f64 table, uint64_t sign) {
    _Alignas(32) const char *piece[PIECES_PART];
    if (n % 8) __builtin_unreachable();
    for (int64_t i = 0; i < n; i += 8) {
        wide_f64 a = w_min_f64(w_set_f64(high), w_abs_f64(w_load_f64(x + i)));
        wide_f64 offset = w_piece_offset_f64(w_line_f64(a, step, 1));
        w_store_f64((double *)piece + i, w_add_bits_f64(offset, (uintptr_t)table));
    }
    for (int64_t i = 0; i < n; i += 8) {
        wide_f64 b = w_load_f64(x + i), a = w_min_f64(w_set_f64(high), w_abs_f64(b));
        w_piece_f64 p;
        v_pieces_at(a, piece + i, &p.start, &p.q, &p.d);
        p.start = w_choose_less_f64(w_set_f64(0), p.start, p.start, a);
        w_two_f64 y = w_piece_sum_f64(p);
        w_store_f64(low + i, y.low);
        for (int k = 0; k < WIDE_VECTORS; k++)
            y.high.v[k] = (vec_f64)((wide_bits_vec_f64)y.high.v[k] |
                                    ((wide_bits_vec_f64)b.v[k] & sign));
        w_store_f64(g + i, y.high);
    }
}
static MG_NOINLINE void w_tail_powers_f64(double (*restrict e)[PIECES_PART],
                                          const double *restrict x, int64_t n, double high,
                                          double k) {
    if (n % 8) __builtin_unreachable();
    for (int64_t i = 0; i < n; i += 8) {
        wide_f64 a = w_min_f64(w_set_f64(high), w_abs_f64(w_load_f64(x + i)));
        w_tail_terms_f64 p = w_tail_power_f64(a, k);
        w_store_f64(e[0] + i, p.e.high);
        w_store_f64(e[1] + i, p.e.low);
        w_store_f64(e[2] + i, p.n);
    }
}
MG_INLINE void w_map_tail(double *restrict out, const double *restrict x, int64_t n, double high,
                          double step, double k, w_rows_f64 table,
                          wide_f64 (*f)(wide_f64, w_tail_terms_f64)) {
    _Alignas(32) double g[PIECES_PART], low[PIECES_PART], e[3][PIECES_PART];
    if (n % 8) __builtin_unreachable();
    for (int64_t at = 0; at < n; at += PIECES_PART) {
        int64_t m = n - at < PIECES_PART ? n - at : PIECES_PART;
        w_pieces_f64(g, low, x + at, m, high, step, table, 0);
        w_tail_powers_f64(e, x + at, m, high, k);
        for (int64_t i = 0; i < m; i += 8) {
            w_tail_terms_f64 p = {{w_load_f64(e[0] + i), w_load_f64(e[1] + i)},
                                  {w_load_f64(g + i), w_load_f64(low + i)},
                                  w_load_f64(e[2] + i)};
            w_store_f64(out + at + i, f(w_load_f64(x + at + i), p));
        }
    }
}
static inline void v_erf_chunk_f64(double *restrict out, const double *restrict x, int64_t n) {
    double low[PIECES_PART];
    for (int64_t at = 0; at < n; at += PIECES_PART) {
        int64_t m = n - at < PIECES_PART ? n - at : PIECES_PART;
        w_pieces_f64(out + at, low, x + at, m, V_ERF_HIGH_F64, 1, w_erf_table_f64, V_SIGN_F64);
    }
}
#define TAIL(name, of, k, table)                                                                   \
    static inline void v_##name##_chunk_f64(double *restrict out, const double *restrict x,        \
                                            int64_t n) {                                           \
        w_map_tail(out, x, n, V_##of##_HIGH_F64, V_##of##_STEP_F64, k, table, w_##name##_from_f64); \
    }
TAIL(erfc, ERFC, 1, w_erfcx_table_f64)
TAIL(ndtr, NORMAL, 0.5, w_normal_table_f64)
#else
V_CHUNKS_OF(erf, double, f64)
V_CHUNKS_OF(erfc, double, f64)
V_CHUNKS_OF(ndtr, double, f64)
#endif

/* ---- partials ---- */

#if MG_LANE_BY_LANE
/* Bells are one loop. */
static MG_NOINLINE void w_bell_block(double *out, const double *g, const double *x, double k,
                                     double peak) {
    wide_f64 partial = w_bell_f64(w_load_f64(x), k, peak);
    w_store_f64(out, w_times_partial_f64(w_load_f64(g), partial));
}
static MG_NOINLINE void w_bell_chunk(double *out, const double *g, const double *restrict x, int64_t n,
                                     double k, double peak) {
    if (n % 8) __builtin_unreachable();
    for (int64_t i = 0; i < n; i += 8) {
        bool right;
        wide_f64 partial = w_bell_near_f64(w_load_f64(x + i), k, peak, &right);
        if (MG_LIKELY(right)) w_store_f64(out + i, w_times_partial_f64(w_load_f64(g + i), partial));
        else w_bell_block(out + i, g + i, x + i, k, peak);
    }
}
#define V_BELL_PARTIALS(name, k, peak)                                                             \
    V_PARTIAL_OF(name, float, f32)                                                                 \
    static inline void v_##name##_vjp_chunk_f64(                                                   \
        double *out, const double *g, const double *restrict x, const double *restrict y,          \
        int64_t n) {                                                                               \
        (void)y, w_bell_chunk(out, g, x, n, k, peak);                                              \
    }
#else
#define V_BELL_PARTIALS(name, k, peak) V_PARTIALS(name)
#endif
V_BELL_PARTIALS(erf, 1, V_TWO_OVER_ROOT_PI_F64)
V_BELL_PARTIALS(erfc, 1, -V_TWO_OVER_ROOT_PI_F64)
V_BELL_PARTIALS(ndtr, 0.5, V_SQRT_HALF_OVER_PI_F64)

#endif
