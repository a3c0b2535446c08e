/* vmath_pieces_f32.h: the functions of vmath_pieces_f32.inc.h, of one float and of a chunk. All
 * chunks are one loop, which calls a function for the rare block with something below the pieces.
 */
#ifndef MG_VMATH_PIECES_F32_H
#define MG_VMATH_PIECES_F32_H

#include "vmath_explog.h"

#if MG_HAS_WIDE
enum { PIECES_BLOCK = WIDE_VECTORS * MG_VECTOR_BYTES / 4 };
/* Of one block: out has what the pieces gave. The code of GELU by tanh is kept small, a vector at a
 * time; of the others a compiler would read tables one by one, and sigmoid and silu may well be asked
 * far below 0. */
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

MG_INLINE void pieces_loop(float *restrict out, const float *restrict x, int64_t n,
                           const v_pieces *p, bool step, pieces_tail tail) {
    if (n % PIECES_BLOCK) __builtin_unreachable();
    for (int64_t i = 0; i < n; i += PIECES_BLOCK) {
        wide_f32 a = w_load_f32(x + i);
        w_store_f32(out + i, w_by_pieces_f32(a, p, step));
        if (MG_UNLIKELY(!w_within_bits_f32(a, 0, v_bits_f32(p->low)))) tail(out + i, x + i);
    }
}
static MG_NOINLINE void pieces_chunk(float *restrict out, const float *restrict x, int64_t n,
                                     const v_pieces *p, pieces_tail tail) {
    pieces_loop(out, x, n, p, false, tail);
}
static MG_NOINLINE void pieces_step_chunk(float *restrict out, const float *restrict x, int64_t n,
                                          const v_pieces *p, pieces_tail tail) {
    pieces_loop(out, x, n, p, true, tail);
}
#endif

/* v_name_chunk_f32: out[i] = f(x[i]), whole blocks; out and x do not overlap. */
#if MG_HAS_WIDE
#define PIECES(name, step, chunk, kind, below)                                                      \
    static MG_NOINLINE void name##_tail_block(float *restrict out, const float *restrict x) {       \
        kind##_pieces_tail(out, x, &v_##name##_pieces, kind##_##below##_f32);                       \
    }                                                                                               \
    static inline void v_##name##_chunk_f32(float *restrict out, const float *restrict x,           \
                                            int64_t n) {                                            \
        chunk(out, x, n, &v_##name##_pieces, name##_tail_block);                                    \
    }
#else
#define PIECES(name, step, chunk, kind, below)                                                      \
    MG_INLINE float v_##name##_f32(float x) {                                                       \
        float y = v_by_pieces_f32(x, &v_##name##_pieces, step);                                     \
        return v_with_tail_f32(x, y, &v_##name##_pieces, v_##below##_f32);                          \
    }                                                                                               \
    static inline void v_##name##_chunk_f32(float *restrict out, const float *restrict x,           \
                                            int64_t n) {                                            \
        w_map_f32(out, x, n, v_##name##_f32);                                                       \
    }
#endif
PIECES(sigmoid, true, pieces_step_chunk, w, sigmoid_any)
PIECES(silu, false, pieces_chunk, w, silu_tail)
PIECES(gelu, false, pieces_chunk, w, gelu_tail)
PIECES(gelu_tanh, false, pieces_chunk, v, gelu_tanh_tail)
#undef PIECES

#endif
