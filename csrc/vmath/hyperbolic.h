/* hyperbolic.h: expm1, sinh, cosh and tanh of chunks, and partials of expm1 and cosh. */
#ifndef MG_VMATH_HYPERBOLIC_H
#define MG_VMATH_HYPERBOLIC_H

#include "chunk.h"
#include "piecewise_f32.h"

MG_CHAINS
V_NEAR_OF(expm1, float, f32)
V_NEAR_OF(expm1, double, f64)
V_NEAR_OF(sinh, float, f32)
MG_CHAINS_END
V_CHUNKS_OF(sinh, double, f64)
V_NEAR_OF(cosh, float, f32)
V_CHUNKS_OF(cosh, double, f64)

#if MG_LANE_BY_LANE
static inline void v_tanh_chunk_f32(float *restrict out, const float *restrict x, int64_t n) {
    v_odd_chunk_f32(out, x, n, V_TANH_HIGH_F32, &v_tanh_bytes);
}
#else
MG_CHAINS
V_STAGES_OF(tanh, tanh, float, f32)
MG_CHAINS_END
#endif
#if MG_HAS_WIDE && !defined(__AVX512F__)
/* tanh in two loops. The first loop finds the pieces. c and T are loaded as one pair, and 1 - T^2
 * is computed from T, with the same bits as in the table. */
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
V_STAGES_OF(tanh, tanh, double, f64)
#endif

MG_CHAINS
V_NEAR_PARTIALS(expm1)
MG_CHAINS_END
V_PARTIALS(cosh)

#endif
