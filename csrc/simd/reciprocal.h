/* reciprocal.h: 1 / d and 1 / sqrt(d) of a vector, faster than by division. */
#ifndef MG_SIMD_RECIPROCAL_H
#define MG_SIMD_RECIPROCAL_H

#include "wide.h"

/* A division of 16 floats blocks the divider for 10 cycles, of 8 doubles for 16 cycles, and roots
 * for longer. The steps below take half of that. They start from 14 bits, which only AVX-512
 * provides. */
#if defined(__AVX512F__)
#define MG_HAS_OVER 1
#define V_EXTREME 0x1e
#define V_UP (_MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC)
/* 1 / a to 14 bits; infinity for 0 and 0 for infinity */
MG_INLINE vec_f32 v_rough_inverse_of_f32(vec_f32 a) { return _mm512_rcp14_ps(a); }
MG_INLINE vec_f64 v_rough_inverse_of_f64(vec_f64 a) { return _mm512_rcp14_pd(a); }
/* a b + c, rounded up */
MG_INLINE vec_f32 v_fma_up_f32(vec_f32 a, vec_f32 b, vec_f32 c) {
    return _mm512_fmadd_round_ps(a, b, c, V_UP);
}
MG_INLINE vec_f64 v_fma_up_f64(vec_f64 a, vec_f64 b, vec_f64 c) {
    return _mm512_fmadd_round_pd(a, b, c, V_UP);
}
/* x if a is 0 or infinite, else y */
MG_INLINE vec_f32 v_if_extreme_f32(vec_f32 a, vec_f32 x, vec_f32 y) {
    return _mm512_mask_mov_ps(y, _mm512_fpclass_ps_mask(a, V_EXTREME), x);
}
MG_INLINE vec_f64 v_if_extreme_f64(vec_f64 a, vec_f64 x, vec_f64 y) {
    return _mm512_mask_mov_pd(y, _mm512_fpclass_pd_mask(a, V_EXTREME), x);
}
/* g p, or 0 if g is 0 */
MG_INLINE vec_f32 v_times_f32(vec_f32 g, vec_f32 p) {
    return _mm512_maskz_mul_ps(_mm512_cmp_ps_mask(g, _mm512_setzero_ps(), _CMP_NEQ_UQ), g, p);
}
MG_INLINE vec_f64 v_times_f64(vec_f64 g, vec_f64 p) {
    return _mm512_maskz_mul_pd(_mm512_cmp_pd_mask(g, _mm512_setzero_pd(), _CMP_NEQ_UQ), g, p);
}
#undef V_UP
#undef V_EXTREME

#define MG_REAL 32
#include "reciprocal.inc.h"
#define MG_REAL 64
#include "reciprocal.inc.h"
#else
#define MG_HAS_OVER 0
#endif

#endif
