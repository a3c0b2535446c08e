/* explog.h: the functions that are written once (simd/num.h): for one element (v_name_f32),
 * for several vectors (w_name_f32) and for contiguous elements (v_name_chunk_f32).
 *
 * The largest errors seen in units of the last place, with fma and without: of float over every
 * 500th to every 7th number (asin, acos, atan and tan with fma: over all; exp and gates with fma: all
 * from 2^-12 on; these and logarithms without: every 13th), and all of them near 1 and where errors
 * are largest, against double precision, powers over some millions; of double over one or two million
 * samples (uniform, dense around 0 and 1, of all sizes, at the ends of the range; of exp, exp2, tanh
 * and gates six to nine, most of them where errors are largest, as for subnormal results) against long
 * double, those from asin on and powers against 113 bits.
 *
 *              float        double                  float        double
 *     exp      0.92 0.92    0.81 0.81    sigmoid    0.85 0.85    0.79 0.82
 *     exp2     0.92 0.92    0.79 0.80    softplus   0.82 0.80    0.83 0.84
 *     expm1    0.77 0.78    0.82 0.84    silu       0.89 0.89    0.79 0.80
 *     sinh     0.84 0.84    0.77 0.77    gelu_tanh  0.99 1.19    0.67 0.67
 *     cosh     0.55 0.56    0.61 0.64    asin       0.76 0.76    0.63 0.65
 *     log      0.81 0.80    0.80 0.80    acos       0.69 0.71    0.60 0.65
 *     log2     0.98 1.52    0.94 1.31    atan       0.89 0.86    0.86 0.86
 *     log10    1.00 1.57    0.98 1.33    atan2      0.82 0.82    0.82 0.82
 *     log1p    0.81 0.80    0.80 0.80    tan        0.54 0.53    0.56 0.56
 *     tanh     0.78 0.76    0.86 0.85    erf, erfc  0.88 0.87    0.93 0.93
 *     pow      0.78 0.78    0.78 0.75    ndtr       0.81 0.81    0.88 0.88
 *                                        gelu       0.95 1.16    0.90 0.90
 */
#ifndef MG_VMATH_EXPLOG_H
#define MG_VMATH_EXPLOG_H

#include "vmath/coefficients/inverse_trig.h"
#include "vmath/coefficients/f32.h"
#include "vmath/coefficients/f64.h"
#include "vmath/coefficients/logistic_f32.h"
#include "vmath/coefficients/erf.h"
#include "simd/num.h"

/* Both numbers of the row of a table of logarithms that four bits of i choose. */
typedef const float (*v_log_rows_f32)[16];
#define LOG_ROW(num, name, width)                                                                  \
    MG_INLINE void name##_log_row_##width(v_log_rows_##width table, num i, num *c, num *t) {       \
        *c = name##_look_up_##width(table[0], i), *t = name##_look_up_##width(table[1], i);        \
    }
LOG_ROW(float, s, f32)
#if MG_HAS_WIDE
LOG_ROW(wide_f32, w, f32)
#endif
#if MG_LANE_BY_LANE
MG_INLINE void s_log_row_f64(v_log_rows_f64 table, double i, double *c, double *t) {
    const double *row = table[v_bits_f64(i) & 15u];
    *c = row[0], *t = row[1];
}
MG_INLINE void w_log_row_f64(v_log_rows_f64 table, wide_f64 i, wide_f64 *c, wide_f64 *t) {
    _Alignas(32) double at[4 * WIDE_VECTORS];
    w_store_f64(at, w_and_f64(w_shift_left_f64(i, 4), 15 << 4));
    w_load_pairs(table, at, c, t);
}
#else
LOG_ROW(double, s, f64)
#if MG_HAS_WIDE
/* Read for each block, since the four registers of a table serve better for what is in flight. */
MG_INLINE void w_log_row_f64(v_log_rows_f64 table, wide_f64 i, wide_f64 *c, wide_f64 *t) {
    MG_ANEW(table);
    *c = w_look_up_f64(table[0], i), *t = w_look_up_f64(table[1], i);
}
#endif
#endif
#undef LOG_ROW

#define C(name) V_##name##_F32
#define T(name) v_##name##_f32
#define LANE_BY_LANE 0
#define ROUGH_ROOTS 0
#define num float
#define P(name) s_##name##_f32
#define F(name) v_##name##_f32
#include "log.inc.h"
#include "hyperbolic.inc.h"
#include "exp.inc.h"
#include "growth_f32.inc.h"
#include "logistic.inc.h"
#include "pow.inc.h"
#include "erf.inc.h"
#include "logistic_f32.inc.h"
#include "inverse_trig.inc.h"
#include "tan.inc.h"
#include "rsqrt.inc.h"
#undef LANE_BY_LANE
#undef num
#undef P
#undef F
#if MG_HAS_WIDE
#define LANE_BY_LANE 0
#define num wide_f32
#define P(name) w_##name##_f32
#define F(name) w_##name##_f32
#include "log.inc.h"
#include "hyperbolic.inc.h"
#include "exp.inc.h"
#include "growth_f32.inc.h"
#include "logistic.inc.h"
#include "pow.inc.h"
#include "erf.inc.h"
#undef LANE_BY_LANE
#define LANE_BY_LANE MG_LANE_BY_LANE
#include "logistic_f32.inc.h"
#include "inverse_trig.inc.h"
#include "tan.inc.h"
#undef ROUGH_ROOTS
#define ROUGH_ROOTS 1
#include "rsqrt.inc.h"
#undef LANE_BY_LANE
#undef num
#undef P
#undef F
#endif
#undef C
#undef T
#undef ROUGH_ROOTS
#define ROUGH_ROOTS 0
#define C(name) V_##name##_F64
#define T(name) v_##name##_f64
#define LANE_BY_LANE 0
#define num double
#define P(name) s_##name##_f64
#define F(name) v_##name##_f64
#include "log.inc.h"
#include "hyperbolic.inc.h"
#include "exp.inc.h"
#include "growth_f64.inc.h"
#include "logistic.inc.h"
#include "pow.inc.h"
#include "erf.inc.h"
#include "logistic_f64.inc.h"
#include "inverse_trig.inc.h"
#include "tan.inc.h"
#include "rsqrt.inc.h"
#undef LANE_BY_LANE
#undef num
#undef P
#undef F
#if MG_HAS_WIDE
#define LANE_BY_LANE MG_LANE_BY_LANE
#define num wide_f64
#define P(name) w_##name##_f64
#define F(name) w_##name##_f64
#include "log.inc.h"
#include "hyperbolic.inc.h"
#include "exp.inc.h"
#include "growth_f64.inc.h"
#include "logistic.inc.h"
#include "pow.inc.h"
#include "erf.inc.h"
#include "logistic_f64.inc.h"
#include "inverse_trig.inc.h"
#include "tan.inc.h"
#undef ROUGH_ROOTS
#define ROUGH_ROOTS MG_ROUGH_ROOTS
#include "rsqrt.inc.h"
#undef LANE_BY_LANE
#undef num
#undef P
#undef F
#endif
#undef C
#undef T
#undef ROUGH_ROOTS

#if MG_HAS_WIDE
#define CHUNK(name) w_##name
#else
#define CHUNK(name) v_##name
#endif
/* v_name_chunk: out[i] = f(x[i]), whole blocks; out and x do not overlap. */
#define CHUNKS_OF(name, type, width)                                                               \
    static inline void v_##name##_chunk_##width(type *restrict out, const type *restrict x,        \
                                                int64_t n) {                                       \
        w_map_##width(out, x, n, CHUNK(name##_##width));                                           \
    }
#if MG_HAS_WIDE
/* The same by two stages (w_map_stages), and by a shorter way for nearly all x (w_map_near). */
#define STAGES_OF(name, begin, type, width)                                                        \
    static inline void v_##name##_chunk_##width(type *restrict out, const type *restrict x,        \
                                                int64_t n) {                                       \
        w_map_stages_##width(out, x, n, w_##begin##_first_##width, w_##name##_last_##width);       \
    }
/* In two loops where there are few registers (w_map_halves). */
#if defined(__AVX512F__)
#define HALVES_OF(name, type, width) CHUNKS_OF(name, type, width)
#else
#define HALVES_OF(name, type, width)                                                               \
    static inline void v_##name##_chunk_##width(type *restrict out, const type *restrict x,        \
                                                int64_t n) {                                       \
        w_map_halves_##width(out, x, n, w_##name##_first_##width, w_##name##_last_##width);        \
    }
#endif
#define NEAR_OF(name, type, width)                                                                 \
    static MG_NOINLINE void w_##name##_block_##width(type *out, const type *x) {                   \
        w_store_##width(out, w_##name##_##width(w_load_##width(x)));                               \
    }                                                                                              \
    static inline void v_##name##_chunk_##width(type *restrict out, const type *restrict x,        \
                                                int64_t n) {                                       \
        w_map_near_##width(out, x, n, w_##name##_near_##width, w_##name##_block_##width);          \
    }
#else
#define STAGES_OF(name, begin, type, width) CHUNKS_OF(name, type, width)
#define HALVES_OF(name, type, width) CHUNKS_OF(name, type, width)
#define NEAR_OF(name, type, width) CHUNKS_OF(name, type, width)
#endif
#define STAGES(name)                                                                               \
    STAGES_OF(name, name, float, f32)                                                              \
    STAGES_OF(name, name, double, f64)
#define CHUNKS(name)                                                                               \
    CHUNKS_OF(name, float, f32)                                                                    \
    CHUNKS_OF(name, double, f64)
#if defined(__AVX512F__)
CHUNKS(exp)
#else
NEAR_OF(exp, float, f32)
NEAR_OF(exp, double, f64)
#endif
NEAR_OF(exp2, float, f32)
NEAR_OF(exp2, double, f64)
MG_CHAINS
NEAR_OF(expm1, float, f32)
NEAR_OF(expm1, double, f64)
NEAR_OF(sinh, float, f32)
MG_CHAINS_END
CHUNKS_OF(sinh, double, f64)
NEAR_OF(cosh, float, f32)
CHUNKS_OF(cosh, double, f64)
#if MG_LANE_BY_LANE
/* By pieces, four vectors at a time (v_look_up_bytes), while those of the next four are found. */
static v_bytes_f32 v_tanh_bytes, v_erf_bytes, v_erfcx_bytes, v_normal_bytes;
static void v_begin(void) {
    v_bytes_make(&v_tanh_bytes, v_tanh_table_f32);
    v_bytes_make(&v_erf_bytes, v_erf_table_f32);
    v_bytes_make(&v_erfcx_bytes, v_erfcx_table_f32);
    v_bytes_make(&v_normal_bytes, v_normal_table_f32);
}
#define EACH for (int k = 0; k < 4; k++)
MG_INLINE vec_f32 v_limit_f32(const float *x, float high) {
    return v_min_f32(v_set1_f32(high), _mm256_andnot_ps(v_set1_f32(-0.0f), v_load_f32(x)));
}
MG_INLINE __m256i v_next_pieces(const float *x, float high) {
    vec_f32 b[4];
    MG_ANEW(x);
    EACH b[k] = v_limit_f32(x + 8 * k, high) + v_set1_f32(1);
    return v_pieces_of(b);
}
/* As w_piece_f32 */
typedef struct {
    vec_f32 start[4], q[4], d[4];
} v_four_pieces;
MG_INLINE v_four_pieces v_find_four(const float *x, float high, __m256i i,
                                    const v_bytes_f32 *table) {
    v_four_pieces p;
    vec_f32 r[4];
    MG_ANEW(x); /* cheaper than keeping what was read of it, or of the table, in memory elsewhere */
    MG_ANEW(table);
    v_look_up_bytes(table->of[0], i, r);
    EACH p.d[k] = v_limit_f32(x + 8 * k, high) - r[k];
    v_look_up_bytes(table->of[7], i, p.q);
    for (int row = 6; row >= 2; row--) {
        v_look_up_bytes(table->of[row], i, r);
        EACH p.q[k] = v_fma_f32(p.q[k], p.d[k], r[k]);
    }
    v_look_up_bytes(table->of[1], i, p.start);
    return p;
}
/* The first piece's start is -0, and its d is a. */
static MG_NOINLINE void v_odd_chunk_f32(float *restrict out, const float *restrict x, int64_t n,
                                        float high, const v_bytes_f32 *table) {
    __m256i i = v_next_pieces(x, high);
    for (const float *last = x + n - 32;; x += 32, out += 32) {
        const float *now = x;
        __m256i next = v_next_pieces(x < last ? x + 32 : x, high);
        v_four_pieces p = v_find_four(now, high, i, table);
        MG_ANEW(now);
        EACH {
            vec_f32 start = _mm256_blendv_ps(p.start[k], p.d[k], p.start[k]);
            vec_f32 sign = _mm256_and_ps(v_set1_f32(-0.0f), v_load_f32(now + 8 * k));
            v_store_f32(out + 8 * k, _mm256_or_ps(v_fma_f32(p.q[k], p.d[k], start), sign));
        }
        if (x == last) return;
        i = next;
    }
}
static inline void v_tanh_chunk_f32(float *restrict out, const float *restrict x, int64_t n) {
    v_odd_chunk_f32(out, x, n, V_TANH_HIGH_F32, &v_tanh_bytes);
}
static inline void v_erf_chunk_f32(float *restrict out, const float *restrict x, int64_t n) {
    v_odd_chunk_f32(out, x, n, V_ERF_HIGH_F32, &v_erf_bytes);
}
/* As erfc and ndtr, in two loops, of which the second has e^(-scale x^2). */
static MG_NOINLINE void v_tail_chunk_f32(float *restrict out, const float *restrict x, int64_t n,
                                         float high, float scale, float side, float both,
                                         const v_bytes_f32 *table) {
    enum { PART = 256, STEP = 2 * MG_VECTOR_BYTES / sizeof(float) };
    _Alignas(64) float g[PART], g_low[PART];
    if (n % (2 * STEP)) __builtin_unreachable();
    for (int64_t at = 0; at < n; at += PART, x += PART, out += PART) {
        int64_t m = n - at < PART ? n - at : PART;
        for (int64_t j = 0; j < m; j += 2 * STEP) {
            v_four_pieces p = v_find_four(x + j, high, v_next_pieces(x + j, high), table);
            EACH {
                vec_f32 sum = v_fma_f32(p.q[k], p.d[k], p.start[k]);
                v_store_f32(g + j + 8 * k, sum);
                v_store_f32(g_low + j + 8 * k, v_fma_f32(p.q[k], p.d[k], p.start[k] - sum));
            }
        }
        for (int64_t j = 0; j < m; j += STEP) {
            wide_f32 b = w_load_f32(x + j), a = w_min_f32(w_set_f32(high), w_abs_f32(b));
            w_tail_terms_f32 terms = w_tail_power_f32(a, scale);
            terms.g = (w_two_f32){w_load_f32(g + j), w_load_f32(g_low + j)};
            w_store_f32(out + j, w_tail_at_f32(w_mul_f32(b, w_set_f32(side)), terms, both));
        }
    }
}
static inline void v_erfc_chunk_f32(float *restrict out, const float *restrict x, int64_t n) {
    v_tail_chunk_f32(out, x, n, V_ERFC_HIGH_F32, 1, -1, 2, &v_erfcx_bytes);
}
static inline void v_ndtr_chunk_f32(float *restrict out, const float *restrict x, int64_t n) {
    v_tail_chunk_f32(out, x, n, V_NORMAL_HIGH_F32, 0.5f, 1, 1, &v_normal_bytes);
}
#undef EACH
#else
static void v_begin(void) {}
MG_CHAINS
CHUNKS_OF(erfc, float, f32)
CHUNKS_OF(ndtr, float, f32)
STAGES_OF(tanh, tanh, float, f32)
STAGES_OF(erf, erf, float, f32)
MG_CHAINS_END
#endif
#if MG_HAS_WIDE && !defined(__AVX512F__)
/* In two loops, the first of which finds the pieces. A number of c and T is loaded at once, and
 * 1 - T^2 made of T, to the same bits as in the table. */
static inline void v_tanh_chunk_f64(double *restrict out, const double *restrict x, int64_t n) {
    enum { PART = 256, STEP = 2 * MG_VECTOR_BYTES / sizeof(double) };
    _Alignas(64) double piece[PART];
    if (n % STEP) __builtin_unreachable();
    for (int64_t at = 0; at < n; at += PART) {
        int64_t m = n - at < PART ? n - at : PART;
        for (int64_t i = 0; i < m; i += STEP) {
            wide_f64 a = w_tanh_limit_f64(w_load_f64(x + at + i));
            w_store_f64(piece + i, w_and_f64(w_tanh_piece_f64(a, 4), 15 << 4));
        }
        for (int64_t i = 0; i < m; i += STEP) {
            wide_f64 b = w_load_f64(x + at + i), a = w_tanh_limit_f64(b), c, t;
            w_load_pairs(v_tanh_rows_f64, piece + i, &c, &t);
            wide_f64 d = w_sub_f64(a, c), rest = w_fnma_f64(t, t, w_set_f64(1));
            w_store_f64(out + at + i, w_tanh_of_f64(b, a, d, t, rest));
        }
    }
}
#else
STAGES_OF(tanh, tanh, double, f64)
#endif
/* Logarithms, by the function itself for nearly all x, and others multiplied by a power first. */
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
#define LOG_OF(name, by, power, power_log, type, width) CHUNKS_OF(name, type, width)
#endif
#define LOG(name, by, power, power_log)                                                            \
    LOG_OF(name, by, power##_F32, power_log##_F32, float, f32)                                     \
    LOG_OF(name, by, power##_F64, power_log##_F64, double, f64)
LOG(log, log, V_LOG_POWER, V_LOG_OF_POWER)
LOG(log2, log, V_LOG2_POWER, V_LOG2_OF_POWER)
LOG(log10, log, V_LOG10_POWER, V_LOG10_OF_POWER)
CHUNKS(rsqrt)
STAGES(atan)
HALVES_OF(sigmoid, double, f64)
MG_CHAINS
LOG(log1p, log1p, 1 / V_LOG_POWER, -V_LOG_OF_POWER)
CHUNKS(asin)
CHUNKS(acos)
HALVES_OF(silu, double, f64)
HALVES_OF(gelu_tanh, double, f64)
MG_CHAINS_END
#undef LOG
#undef LOG_OF
#if MG_LANE_BY_LANE
/* The error function and what is made of it, of doubles: a loop finds the pieces of 256 numbers, one
 * takes the polynomials of two vectors in step, as what one vector waits for is longer than a
 * processor looks ahead, and one makes the rest. */
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
#define TAIL(name, of, k, table)                                                                    \
    static inline void v_##name##_chunk_f64(double *restrict out, const double *restrict x,         \
                                            int64_t n) {                                            \
        w_map_tail(out, x, n, V_##of##_HIGH_F64, V_##of##_STEP_F64, k, table, w_##name##_from_f64); \
    }
TAIL(erfc, ERFC, 1, w_erfcx_table_f64)
TAIL(ndtr, NORMAL, 0.5, w_normal_table_f64)
TAIL(gelu, NORMAL, 0.5, w_normal_table_f64)
#undef TAIL
#else
CHUNKS_OF(erf, double, f64)
CHUNKS_OF(erfc, double, f64)
CHUNKS_OF(ndtr, double, f64)
CHUNKS_OF(gelu, double, f64)
#endif
/* In two parts. */
#define CHUNKS_BY_PARTS_OF(name, type, width)                                                      \
    static inline void v_##name##_chunk_##width(type *restrict out, const type *restrict x,        \
                                                int64_t n) {                                       \
        w_map_parts_##width(out, x, n, CHUNK(name##_power_##width), CHUNK(name##_of_##width));     \
    }
CHUNKS_BY_PARTS_OF(softplus, float, f32)
CHUNKS_BY_PARTS_OF(softplus, double, f64)
CHUNKS_BY_PARTS_OF(logsigmoid, float, f32)
CHUNKS_BY_PARTS_OF(logsigmoid, double, f64)
#undef CHUNKS_BY_PARTS_OF
/* Of two operands. */
#define CHUNKS_2_OF(name, type, width)                                                             \
    static inline void v_##name##_chunk_##width(type *restrict out, const type *restrict a,        \
                                                const type *restrict b, int64_t n) {               \
        w_map_2_##width(out, a, b, n, CHUNK(name##_##width));                                      \
    }
/* By two stages, and by a shorter way for nearly all. */
#if MG_HAS_WIDE
#define BLOCK_2_OF(name, type, width)                                                              \
    static MG_NOINLINE void w_##name##_block_##width(type *out, const type *a, const type *b) {    \
        w_store_##width(out, w_##name##_##width(w_load_##width(a), w_load_##width(b)));            \
    }
#define STAGES_2_OF(name, type, width)                                                             \
    BLOCK_2_OF(name, type, width)                                                                  \
    static __attribute__((unused)) void v_##name##_chunk_##width(                                  \
        type *restrict out, const type *restrict a, const type *restrict b, int64_t n) {           \
        w_map_stages_2_##width(out, a, b, n, w_##name##_first_##width, w_##name##_last_##width,    \
                               w_##name##_block_##width);                                          \
    }
#define NEAR_2_OF(name, type, width)                                                               \
    BLOCK_2_OF(name, type, width)                                                                  \
    static __attribute__((unused)) void v_##name##_chunk_##width(                                  \
        type *restrict out, const type *restrict a, const type *restrict b, int64_t n) {           \
        w_map_near_2_##width(out, a, b, n, w_##name##_near_##width, w_##name##_block_##width);     \
    }
#else
#define STAGES_2_OF(name, type, width) CHUNKS_2_OF(name, type, width)
#define NEAR_2_OF(name, type, width) CHUNKS_2_OF(name, type, width)
#endif
MG_CHAINS
STAGES_2_OF(atan2, float, f32)
STAGES_2_OF(atan2, double, f64)
MG_CHAINS_END
#if defined(__AVX512F__) /* whose registers suffice for the whole */
NEAR_2_OF(pow, float, f32)
NEAR_2_OF(pow, double, f64)
#else
STAGES_2_OF(pow, float, f32)
STAGES_2_OF(pow, double, f64)
#endif
#undef BLOCK_2_OF
#undef STAGES_2_OF
#undef NEAR_2_OF
/* The same for any n. */
#define ANY_OF(name, type, width)                                                                  \
    static inline void v_##name##_any_##width(type *restrict out, const type *restrict x,          \
                                              int64_t n) {                                         \
        w_map_any_##width(out, x, n, v_##name##_chunk_##width);                                    \
    }
ANY_OF(exp, float, f32)
ANY_OF(exp, double, f64)
ANY_OF(log, float, f32)
ANY_OF(log, double, f64)
#undef ANY_OF
#undef CHUNK
/* v_name_slope_chunk: out[i] = g[i] f(x[i], y[i]), and 0 where g is 0; out may be g */
#if MG_HAS_WIDE
#define SLOPE_BY(name) w_##name
#else
#define SLOPE_BY(name) v_##name
#endif
#define SLOPE_OF(name, type, width)                                                                \
    static inline void v_##name##_slope_chunk_##width(                                             \
        type *out, const type *g, const type *restrict x, const type *restrict y, int64_t n) {     \
        w_map_slope_##width(out, g, x, y, n, SLOPE_BY(name##_slope_##width));                      \
    }
#define SLOPES(name)                                                                               \
    SLOPE_OF(name, float, f32)                                                                     \
    SLOPE_OF(name, double, f64)
#if MG_LANE_BY_LANE
#define NEAR_SLOPES(name)                                                                          \
    SLOPE_OF(name, float, f32)                                                                     \
    static MG_NOINLINE void w_##name##_slope_block(double *out, const double *g, const double *x,  \
                                                   const double *y) {                              \
        w_map_slope_f64(out, g, x, y, 8, w_##name##_slope_f64);                                    \
    }                                                                                              \
    static inline void v_##name##_slope_chunk_f64(                                                 \
        double *out, const double *g, const double *restrict x, const double *restrict y,          \
        int64_t n) {                                                                               \
        w_map_slope_near_f64(out, g, x, y, n, w_##name##_slope_near_f64, w_##name##_slope_block);  \
    }
/* Bells are one loop. */
static MG_NOINLINE void w_bell_block(double *out, const double *g, const double *x, double k,
                                     double peak) {
    wide_f64 slope = w_bell_f64(w_load_f64(x), k, peak);
    w_store_f64(out, w_times_slope_f64(w_load_f64(g), slope));
}
static MG_NOINLINE void w_bell_chunk(double *out, const double *g, const double *restrict x, int64_t n,
                                     double k, double peak) {
    if (n % 8) __builtin_unreachable();
    for (int64_t i = 0; i < n; i += 8) {
        bool right;
        wide_f64 slope = w_bell_near_f64(w_load_f64(x + i), k, peak, &right);
        if (MG_LIKELY(right)) w_store_f64(out + i, w_times_slope_f64(w_load_f64(g + i), slope));
        else w_bell_block(out + i, g + i, x + i, k, peak);
    }
}
#define BELL_SLOPES(name, k, peak)                                                                 \
    SLOPE_OF(name, float, f32)                                                                     \
    static inline void v_##name##_slope_chunk_f64(                                                 \
        double *out, const double *g, const double *restrict x, const double *restrict y,          \
        int64_t n) {                                                                               \
        (void)y, w_bell_chunk(out, g, x, n, k, peak);                                              \
    }
#else
#define NEAR_SLOPES(name) SLOPES(name)
#define BELL_SLOPES(name, k, peak) SLOPES(name)
#endif
/* out[i] = g[i] sign b[i] / (a[i]^2 + b[i]^2), and 0 where g is 0; the sign is 1 or -1; out may be g */
#if MG_HAS_WIDE
#define ANGLE_SLOPE_OF(type, width)                                                                \
    static MG_NOINLINE void w_angle_slope_block_##width(type *out, const type *g, const type *a,   \
                                                        const type *b, type sign) {                \
        wide_##width slope = w_angle_slope_##width(w_load_##width(a), w_load_##width(b));          \
        wide_##width by = w_flip_sign_##width(w_load_##width(g), w_set_##width(sign));             \
        w_store_##width(out, w_times_slope_##width(by, slope));                                    \
    }                                                                                              \
    static MG_NOINLINE void v_angle_slope_chunk_##width(type *out, const type *g,                  \
                                                        const type *restrict a,                    \
                                                        const type *restrict b, int64_t n,         \
                                                        type sign) {                               \
        const int lanes = WIDE_VECTORS * MG_VECTOR_BYTES / sizeof(type);                           \
        if (n % lanes) __builtin_unreachable();                                                    \
        for (int64_t i = 0; i < n; i += lanes) {                                                   \
            bool right;                                                                            \
            wide_##width slope =                                                                   \
                w_angle_slope_near_##width(w_load_##width(a + i), w_load_##width(b + i), &right);  \
            wide_##width by = w_flip_sign_##width(w_load_##width(g + i), w_set_##width(sign));     \
            if (MG_LIKELY(right)) w_store_##width(out + i, w_times_slope_##width(by, slope));      \
            else w_angle_slope_block_##width(out + i, g + i, a + i, b + i, sign);                  \
        }                                                                                          \
    }
#else
#define ANGLE_SLOPE_OF(type, width)                                                                \
    static MG_NOINLINE void v_angle_slope_chunk_##width(type *out, const type *g,                  \
                                                        const type *restrict a,                    \
                                                        const type *restrict b, int64_t n,         \
                                                        type sign) {                               \
        for (int64_t i = 0; i < n; i++) {                                                          \
            type slope = sign * v_angle_slope_##width(a[i], b[i]);                                 \
            out[i] = g[i] == 0 ? 0 : g[i] * slope;                                                 \
        }                                                                                          \
    }
#endif
ANGLE_SLOPE_OF(float, f32)
ANGLE_SLOPE_OF(double, f64)
#undef ANGLE_SLOPE_OF
MG_CHAINS
NEAR_SLOPES(expm1)
NEAR_SLOPES(gelu)
SLOPES(softplus)
MG_CHAINS_END
BELL_SLOPES(erf, 1, V_TWO_OVER_ROOT_PI_F64)
BELL_SLOPES(erfc, 1, -V_TWO_OVER_ROOT_PI_F64)
BELL_SLOPES(ndtr, 0.5, V_SQRT_HALF_OVER_PI_F64)
SLOPES(cosh)
SLOPES(silu)
SLOPES(gelu_tanh)
#undef SLOPE_BY
#undef SLOPE_OF
#undef SLOPES
#undef NEAR_SLOPES
#undef BELL_SLOPES
#undef CHUNKS
#undef CHUNKS_OF
#undef STAGES
#undef STAGES_OF
#undef NEAR_OF
#undef CHUNKS_2_OF

#endif
