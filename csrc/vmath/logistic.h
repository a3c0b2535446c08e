/* logistic.h: sigmoid, silu, softplus and logsigmoid of chunks, and all partials but of sigmoid. */
#ifndef MG_VMATH_LOGISTIC_H
#define MG_VMATH_LOGISTIC_H

#include "chunk.h"

#if MG_HAS_WIDE
#define GATE(name)                                                                                 \
    static MG_NOINLINE void name##_far_block(float *out, const float *x) {                         \
        wide_f32 a = w_load_f32(x);                                                                \
        w_store_f32(out, w_with_far_f32(a, w_load_f32(out), w_##name##_far_f32));                  \
    }                                                                                              \
    static inline void v_##name##_chunk_f32(float *restrict out, const float *restrict x,          \
                                            int64_t n) {                                           \
        w_map_near_f32(out, x, n, w_##name##_near_f32, name##_far_block);                          \
    }
#else
#define GATE(name)                                                                                 \
    MG_INLINE float v_##name##_f32(float x) {                                                      \
        bool near;                                                                                 \
        return v_with_far_f32(x, v_##name##_near_f32(x, &near), v_##name##_far_f32);               \
    }                                                                                              \
    static inline void v_##name##_chunk_f32(float *restrict out, const float *restrict x,          \
                                            int64_t n) {                                           \
        w_map_f32(out, x, n, v_##name##_f32);                                                      \
    }
#endif
GATE(sigmoid)
GATE(silu)
#undef GATE
V_HALVES_OF(sigmoid, double, f64)
MG_CHAINS
V_HALVES_OF(silu, double, f64)
MG_CHAINS_END
V_CHUNKS_BY_PARTS_OF(softplus, float, f32)
V_CHUNKS_BY_PARTS_OF(softplus, double, f64)
V_CHUNKS_BY_PARTS_OF(logsigmoid, float, f32)
V_CHUNKS_BY_PARTS_OF(logsigmoid, double, f64)
MG_CHAINS
V_PARTIALS(softplus)
MG_CHAINS_END
V_PARTIALS(silu)

#endif
