/* inverse_trig.h: asin, acos, atan and atan2 of chunks, and the partials of atan2. */
#ifndef MG_VMATH_INVERSE_TRIG_H
#define MG_VMATH_INVERSE_TRIG_H

#include "chunk.h"

V_STAGES(atan)
MG_CHAINS
V_CHUNKS(asin)
V_CHUNKS(acos)
V_STAGES_2_OF(atan2, float, f32)
V_STAGES_2_OF(atan2, double, f64)
MG_CHAINS_END

/* out[i] = g[i] sign b[i] / (a[i]^2 + b[i]^2), and 0 where g is 0. The sign is 1 or -1. `out` may
 * be g. */
#if MG_HAS_WIDE
#define ANGLE_PARTIAL_OF(type, width)                                                              \
    static MG_NOINLINE void w_angle_partial_block_##width(type *out, const type *g, const type *a, \
                                                        const type *b, type sign) {                \
        wide_##width partial = w_angle_partial_##width(w_load_##width(a), w_load_##width(b));      \
        wide_##width by = w_flip_sign_##width(w_load_##width(g), w_set_##width(sign));             \
        w_store_##width(out, w_times_partial_##width(by, partial));                                \
    }                                                                                              \
    static MG_NOINLINE void v_angle_vjp_chunk_##width(type *out, const type *g,                    \
                                                        const type *restrict a,                    \
                                                        const type *restrict b, int64_t n,         \
                                                        type sign) {                               \
        const int lanes = WIDE_VECTORS * MG_VECTOR_BYTES / sizeof(type);                           \
        if (n % lanes) __builtin_unreachable();                                                    \
        for (int64_t i = 0; i < n; i += lanes) {                                                   \
            bool right;                                                                            \
            wide_##width partial =                                                                 \
                w_angle_partial_near_##width(w_load_##width(a + i), w_load_##width(b + i), &right); \
            wide_##width by = w_flip_sign_##width(w_load_##width(g + i), w_set_##width(sign));     \
            if (MG_LIKELY(right)) w_store_##width(out + i, w_times_partial_##width(by, partial));  \
            else w_angle_partial_block_##width(out + i, g + i, a + i, b + i, sign);                \
        }                                                                                          \
    }
#else
#define ANGLE_PARTIAL_OF(type, width)                                                              \
    static MG_NOINLINE void v_angle_vjp_chunk_##width(type *out, const type *g,                    \
                                                        const type *restrict a,                    \
                                                        const type *restrict b, int64_t n,         \
                                                        type sign) {                               \
        for (int64_t i = 0; i < n; i++) {                                                          \
            type partial = sign * v_angle_partial_##width(a[i], b[i]);                             \
            out[i] = g[i] == 0 ? 0 : g[i] * partial;                                               \
        }                                                                                          \
    }
#endif
ANGLE_PARTIAL_OF(float, f32)
ANGLE_PARTIAL_OF(double, f64)
#undef ANGLE_PARTIAL_OF

#endif
