/* chunk.h: macros that make loops over contiguous elements from a function template.
 *
 * The loops are v_name_chunk_f32 and v_name_chunk_f64, and the chunks of the function's partial.
 */
#ifndef MG_VMATH_CHUNK_H
#define MG_VMATH_CHUNK_H

#include "instantiate.h"

#if MG_HAS_WIDE
#define V_CHUNK(name) w_##name
#else
#define V_CHUNK(name) v_##name
#endif
/* v_name_chunk: out[i] = f(x[i]), for whole blocks. `out` and x do not overlap. */
#define V_CHUNKS_OF(name, type, width)                                                             \
    static inline void v_##name##_chunk_##width(type *restrict out, const type *restrict x,        \
                                                int64_t n) {                                       \
        w_map_##width(out, x, n, V_CHUNK(name##_##width));                                         \
    }
#if MG_HAS_WIDE
/* The same in two stages (w_map_stages), and by a shorter way for nearly all x (w_map_near). */
#define V_STAGES_OF(name, begin, type, width)                                                      \
    static inline void v_##name##_chunk_##width(type *restrict out, const type *restrict x,        \
                                                int64_t n) {                                       \
        w_map_stages_##width(out, x, n, w_##begin##_first_##width, w_##name##_last_##width);       \
    }
/* In two loops, where registers are few (w_map_halves). */
#if defined(__AVX512F__)
#define V_HALVES_OF(name, type, width) V_CHUNKS_OF(name, type, width)
#else
#define V_HALVES_OF(name, type, width)                                                             \
    static inline void v_##name##_chunk_##width(type *restrict out, const type *restrict x,        \
                                                int64_t n) {                                       \
        w_map_halves_##width(out, x, n, w_##name##_first_##width, w_##name##_last_##width);        \
    }
#endif
#define V_NEAR_OF(name, type, width)                                                               \
    static MG_NOINLINE void w_##name##_block_##width(type *out, const type *x) {                   \
        w_store_##width(out, w_##name##_##width(w_load_##width(x)));                               \
    }                                                                                              \
    static inline void v_##name##_chunk_##width(type *restrict out, const type *restrict x,        \
                                                int64_t n) {                                       \
        w_map_near_##width(out, x, n, w_##name##_near_##width, w_##name##_block_##width);          \
    }
#else
#define V_STAGES_OF(name, begin, type, width) V_CHUNKS_OF(name, type, width)
#define V_HALVES_OF(name, type, width) V_CHUNKS_OF(name, type, width)
#define V_NEAR_OF(name, type, width) V_CHUNKS_OF(name, type, width)
#endif
#define V_STAGES(name)                                                                             \
    V_STAGES_OF(name, name, float, f32)                                                            \
    V_STAGES_OF(name, name, double, f64)
#define V_CHUNKS(name)                                                                             \
    V_CHUNKS_OF(name, float, f32)                                                                  \
    V_CHUNKS_OF(name, double, f64)
/* In two parts. */
#define V_CHUNKS_BY_PARTS_OF(name, type, width)                                                    \
    static inline void v_##name##_chunk_##width(type *restrict out, const type *restrict x,        \
                                                int64_t n) {                                       \
        w_map_parts_##width(out, x, n, V_CHUNK(name##_power_##width), V_CHUNK(name##_of_##width)); \
    }
/* For two operands. */
#define V_CHUNKS_2_OF(name, type, width)                                                           \
    static inline void v_##name##_chunk_##width(type *restrict out, const type *restrict a,        \
                                                const type *restrict b, int64_t n) {               \
        w_map_2_##width(out, a, b, n, V_CHUNK(name##_##width));                                    \
    }
/* In two stages, and by a shorter way for nearly all operands. */
#if MG_HAS_WIDE
#define V_BLOCK_2_OF(name, type, width)                                                            \
    static MG_NOINLINE void w_##name##_block_##width(type *out, const type *a, const type *b) {    \
        w_store_##width(out, w_##name##_##width(w_load_##width(a), w_load_##width(b)));            \
    }
#define V_STAGES_2_OF(name, type, width)                                                           \
    V_BLOCK_2_OF(name, type, width)                                                                \
    static __attribute__((unused)) void v_##name##_chunk_##width(                                  \
        type *restrict out, const type *restrict a, const type *restrict b, int64_t n) {           \
        w_map_stages_2_##width(out, a, b, n, w_##name##_first_##width, w_##name##_last_##width,    \
                               w_##name##_block_##width);                                          \
    }
#define V_NEAR_2_OF(name, type, width)                                                             \
    V_BLOCK_2_OF(name, type, width)                                                                \
    static __attribute__((unused)) void v_##name##_chunk_##width(                                  \
        type *restrict out, const type *restrict a, const type *restrict b, int64_t n) {           \
        w_map_near_2_##width(out, a, b, n, w_##name##_near_##width, w_##name##_block_##width);     \
    }
#else
#define V_STAGES_2_OF(name, type, width) V_CHUNKS_2_OF(name, type, width)
#define V_NEAR_2_OF(name, type, width) V_CHUNKS_2_OF(name, type, width)
#endif
/* A chunk of any n. */
#define V_ANY_OF(name, type, width)                                                                \
    static inline void v_##name##_any_##width(type *restrict out, const type *restrict x,          \
                                              int64_t n) {                                         \
        w_map_any_##width(out, x, n, v_##name##_chunk_##width);                                    \
    }
/* v_name_vjp_chunk: out[i] = g[i] f(x[i], y[i]), and 0 where g is 0; out may be g */
#if MG_HAS_WIDE
#define V_PARTIAL_BY(name) w_##name
#else
#define V_PARTIAL_BY(name) v_##name
#endif
#define V_PARTIAL_OF(name, type, width)                                                            \
    static inline void v_##name##_vjp_chunk_##width(                                               \
        type *out, const type *g, const type *restrict x, const type *restrict y, int64_t n) {     \
        w_map_partial_##width(out, g, x, y, n, V_PARTIAL_BY(name##_partial_##width));              \
    }
#define V_PARTIALS(name)                                                                           \
    V_PARTIAL_OF(name, float, f32)                                                                 \
    V_PARTIAL_OF(name, double, f64)
#if MG_LANE_BY_LANE
#define V_NEAR_PARTIALS(name)                                                                      \
    V_PARTIAL_OF(name, float, f32)                                                                 \
    static MG_NOINLINE void w_##name##_partial_block(double *out, const double *g, const double *x, \
                                                   const double *y) {                              \
        w_map_partial_f64(out, g, x, y, 8, w_##name##_partial_f64);                                \
    }                                                                                              \
    static inline void v_##name##_vjp_chunk_f64(                                                   \
        double *out, const double *g, const double *restrict x, const double *restrict y,          \
        int64_t n) {                                                                               \
        w_map_partial_near_f64(out, g, x, y, n, w_##name##_partial_near_f64, w_##name##_partial_block); \
    }
#else
#define V_NEAR_PARTIALS(name) V_PARTIALS(name)
#endif

#endif
