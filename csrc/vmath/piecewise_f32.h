/* piecewise_f32.h: piecewise float functions with AVX2.
 *
 * Tables are looked up by bytes, for four vectors at a time.
 */
#ifndef MG_VMATH_PIECEWISE_F32_H
#define MG_VMATH_PIECEWISE_F32_H

#include "instantiate.h"

#if MG_LANE_BY_LANE
/* Evaluates pieces of four vectors at a time (v_look_up_bytes), while the pieces of the next four
 * are found. */
/* The tables are filled by v_begin (tables.c). */
MG_SHARED_TABLE(v_bytes_f32, v_tanh_bytes);
MG_SHARED_TABLE(v_bytes_f32, v_erf_bytes);
MG_SHARED_TABLE(v_bytes_f32, v_erfcx_bytes);
MG_SHARED_TABLE(v_bytes_f32, v_normal_bytes);
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
    MG_ANEW(x); /* loads x again: cheaper than spilling x or the table */
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
/* As erfc and ndtr, in two loops. The second computes e^(-scale x^2). */
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
#undef EACH
#endif

#endif
