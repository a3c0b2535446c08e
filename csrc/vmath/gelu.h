/* gelu.h: GELU of chunks, by the normal distribution and by tanh, and its partials.
 *
 * All chunks of floats share one loop. The loop calls a function for the rare block with an element
 * below the pieces (gelu_f32.inc.h).
 */
#ifndef MG_VMATH_GELU_H
#define MG_VMATH_GELU_H

#include "erf.h"

#if MG_HAS_WIDE
enum { PIECES_BLOCK = WIDE_VECTORS * MG_VECTOR_BYTES / 4 };
/* Corrects one block: `out` has the results of the pieces. For GELU by tanh the code is kept small,
 * one vector at a time. For GELU by ndtr this would make the compiler read the tables one number at
 * a time. */
typedef void (*pieces_tail)(float *restrict out, const float *restrict x);
MG_INLINE void v_pieces_tail(float *restrict out, const float *restrict x, const v_pieces *p,
                             float (*f)(float)) {
    _Pragma("GCC unroll 1")
    for (int i = 0; i < PIECES_BLOCK; i++) out[i] = v_with_tail_f32(x[i], out[i], p, f);
}
MG_INLINE void w_pieces_tail(float *restrict out, const float *restrict x, const v_pieces *p,
                             wide_f32 (*f)(wide_f32)) {
    w_store_f32(out, w_with_tail_f32(w_load_f32(x), w_load_f32(out), p, f));
}

static MG_NOINLINE void pieces_chunk(float *restrict out, const float *restrict x, int64_t n,
                                     const v_pieces *p, pieces_tail tail) {
    if (n % PIECES_BLOCK) __builtin_unreachable();
#if MG_LANE_BY_LANE
    enum { PART = 256 };
    w_offsets_f32 offsets[PART / PIECES_BLOCK];
    for (int64_t at = 0; at < n; at += PART) {
        int64_t m = n - at < PART ? n - at : PART;
        for (int64_t i = 0; i < m; i += PIECES_BLOCK) {
            wide_f32 a = w_pieces_limit_f32(w_load_f32(x + at + i), p);
            offsets[i / PIECES_BLOCK] = w_offsets_of_f32(w_pieces_offset_f32(a, p));
        }
        for (int64_t i = at; i < at + m; i += PIECES_BLOCK) {
            wide_f32 b = w_load_f32(x + i), a = w_pieces_limit_f32(b, p);
            const w_offsets_f32 *o = &offsets[(i - at) / PIECES_BLOCK];
            w_store_f32(out + i, w_by_pieces_at_f32(b, a, o, p, false));
            if (MG_UNLIKELY(!w_within_bits_f32(b, 0, v_bits_f32(p->low)))) tail(out + i, x + i);
        }
    }
#else
    for (int64_t i = 0; i < n; i += PIECES_BLOCK) {
        wide_f32 a = w_load_f32(x + i);
        w_store_f32(out + i, w_by_pieces_f32(a, p, false));
        if (MG_UNLIKELY(!w_within_bits_f32(a, 0, v_bits_f32(p->low)))) tail(out + i, x + i);
    }
#endif
}
#endif

/* v_name_chunk_f32: out[i] = f(x[i]), whole blocks; out and x do not overlap. */
#if MG_HAS_WIDE
#define PIECES(name, kind)                                                                         \
    static MG_NOINLINE void name##_tail_block(float *restrict out, const float *restrict x) {      \
        kind##_pieces_tail(out, x, &v_##name##_pieces, kind##_##name##_tail_f32);                  \
    }                                                                                              \
    static inline void v_##name##_chunk_f32(float *restrict out, const float *restrict x,          \
                                            int64_t n) {                                           \
        pieces_chunk(out, x, n, &v_##name##_pieces, name##_tail_block);                            \
    }
#else
#define PIECES(name, kind)                                                                         \
    MG_INLINE float v_##name##_f32(float x) {                                                      \
        float y = v_by_pieces_f32(x, &v_##name##_pieces, false);                                   \
        return v_with_tail_f32(x, y, &v_##name##_pieces, v_##name##_tail_f32);                     \
    }                                                                                              \
    static inline void v_##name##_chunk_f32(float *restrict out, const float *restrict x,          \
                                            int64_t n) {                                           \
        w_map_f32(out, x, n, v_##name##_f32);                                                      \
    }
#endif
PIECES(gelu, w)
PIECES(gelu_tanh, v)
#undef PIECES

#if MG_LANE_BY_LANE
TAIL(gelu, NORMAL, 0.5, w_normal_table_f64)
#undef TAIL
#else
V_CHUNKS_OF(gelu, double, f64)
#endif
MG_CHAINS
V_HALVES_OF(gelu_tanh, double, f64)
V_NEAR_PARTIALS(gelu)
MG_CHAINS_END
V_PARTIALS(gelu_tanh)

#endif
