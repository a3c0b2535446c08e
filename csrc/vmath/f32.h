/* f32.h: elementary functions of one float, written without branches, so that a loop over
 * contiguous elements becomes vector code by itself on every instruction set.
 *
 * Rounding to an integer adds 1.5 * 2^23, after which the integer stands in the low bits of the
 * float; powers of two are made by shifting it into the exponent. Sums a + b whose rounding error
 * matters carry it beside them as b - ((a + b) - a), right for |a| >= |b|.
 *
 * "Error" is the largest seen against double precision, in units of the last place, and where: all
 * floats from 2^-30 to 2^15 and every 61st beyond, compiled with fma. "Without fma" samples every
 * 97th. Polynomials are minimax fits (Remez), their coefficients rounded one by one and the rest
 * refitted.
 */
#ifndef MG_VMATH_F32_H
#define MG_VMATH_F32_H

#include "simd/vec.h"
#include "f64.h"

#define V_INF_F32 __builtin_inff()
#define V_NAN_F32 __builtin_nanf("")

/* ln 2 = HI + LO; HI has 15 bits, so that n * HI is exact with and without fma. */
#define V_LN2_HI_F32 0x1.62e4p-1f
#define V_LN2_LO_F32 0x1.7f7d1cp-20f
#define V_LOG2E_F32 0x1.715476p+0f

MG_INLINE uint32_t v_bits_f32(float x) {
    uint32_t u;
    __builtin_memcpy(&u, &x, sizeof u);
    return u;
}
MG_INLINE float v_from_bits_f32(uint32_t u) {
    float x;
    __builtin_memcpy(&x, &u, sizeof x);
    return x;
}
MG_INLINE float v_abs_f32(float x) { return v_from_bits_f32(v_bits_f32(x) & 0x7fffffffu); }
MG_INLINE float v_copysign_f32(float x, float sign) {
    return v_from_bits_f32((v_bits_f32(x) & 0x7fffffffu) | (v_bits_f32(sign) & 0x80000000u));
}

/* c - a b where a b is close to c: what the rounding of a, a quotient or a root, has lost. */
MG_INLINE float v_residual_f32(float a, float b, float c) {
#if MG_HAS_FMA
    return fma_f32(-a, b, c);
#else
    return (float)((double)c - (double)a * (double)b);
#endif
}

/* Beyond this the three-part pi/2 is too short; see v_sin_chunk_f32. */
#define V_TRIG_MAX_F32 6000.0f

/* |x| = n pi/2 + r + r_low. The first product is exact; so is n times the second part, which has
 * 12 bits. */
typedef struct {
    float r, r_low;
    uint32_t quadrant; /* n in the low bits */
} v_trig_parts_f32;

MG_INLINE v_trig_parts_f32 v_trig_reduce_f32(float a) {
    const float magic = 0x1.8p23f;
    float t = fma_f32(a, 0x1.45f306p-1f, magic);
    float n = t - magic;
#if MG_HAS_FMA
    float r = fma_f32(n, -0x1.921fb6p+0f, a);
#else
    float r = (a - n * 0x1.922p+0f) - n * -0x1.28p-18f;
#endif
    float s = fma_f32(n, 0x1.778p-25f, r);
    float low = fma_f32(n, 0x1.778p-25f, r - s);
    low = fma_f32(n, -0x1.68c234p-39f, low);
    return (v_trig_parts_f32){s, low, v_bits_f32(t)};
}
MG_INLINE float v_trig_eval_f32(v_trig_parts_f32 p, uint32_t quadrant, uint32_t sign) {
    float r = p.r, z = r * r;
    float s = -0x1.9953dcp-13f;
    s = fma_f32(s, z, 0x1.110778p-7f);
    s = fma_f32(s, z, -0x1.555546p-3f);
    s = r + fma_f32(r, z * s, p.r_low);
    float c = 0x1.99e0f2p-16f;
    c = fma_f32(c, z, -0x1.6c0c1ap-10f);
    c = fma_f32(c, z, 0x1.55554ap-5f);
    float h = fma_f32(z, -0.5f, 1.0f);
    c = h + fma_f32(z * z, c, fma_f32(-r, p.r_low, fma_f32(z, -0.5f, 1.0f - h)));
    float y = (quadrant & 1u) ? c : s;
    return v_from_bits_f32(v_bits_f32(y) ^ ((quadrant << 30) & 0x80000000u) ^ sign);
}

/* Right for |x| <= V_TRIG_MAX_F32. Error 0.919 at 0x1.4501eep+12; without fma 0.87. */
MG_INLINE float v_sin_f32(float x) {
    v_trig_parts_f32 p = v_trig_reduce_f32(v_abs_f32(x));
    return v_trig_eval_f32(p, p.quadrant, v_bits_f32(x) & 0x80000000u);
}
/* Right for |x| <= V_TRIG_MAX_F32. Error 0.897 at 0x1.6cac4p+12; without fma 0.83. */
MG_INLINE float v_cos_f32(float x) {
    v_trig_parts_f32 p = v_trig_reduce_f32(v_abs_f32(x));
    return v_trig_eval_f32(p, p.quadrant + 1u, 0);
}

#endif
