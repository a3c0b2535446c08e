/* vmath_f32.h: elementary functions of one float, written without branches, so that a loop over
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

#include "vec.h"
#include "vmath_f64.h"

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

/* The smaller of two as signed integers: for positive floats their order too. A compiler makes one
 * instruction of it, where a clamp written with floats tears the code after it into two paths. */
MG_INLINE uint32_t v_min_bits_f32(uint32_t a, uint32_t b) {
    return (uint32_t)((int32_t)a < (int32_t)b ? (int32_t)a : (int32_t)b);
}

/* c - a b where a b is close to c: what the rounding of a, a quotient or a root, has lost. */
MG_INLINE float v_residual_f32(float a, float b, float c) {
#if MG_HAS_FMA
    return fma_f32(-a, b, c);
#else
    return (float)((double)c - (double)a * (double)b);
#endif
}

/* tanh on 16 pieces, numbered by the top bits of 1 + |x| modulo 16: four pieces for 2 to 4, four to
 * 8, four to 16, and last those for 1 to 2. Row 0 is the point c where a piece is expanded, chosen
 * so that tanh c is very nearly the float in row 1 (S. Gal, "Computing elementary functions: a new
 * approach for achieving high accuracy and good performance", LNCS 235, 1986); the others are the
 * coefficients of (tanh(c + d) - tanh c) / d. The piece at 0 starts from x instead. */
static const __attribute__((unused)) float v_tanh_table[8][16] = {
    {0x1.3fed1ep+0f, 0x1.bfec0ap+0f, 0x1.1fea62p+1f, 0x1.5ff05ep+1f, 0x1.bfeb86p+1f,
     0x1.1fed18p+2f, 0x1.5fe8bep+2f, 0x1.9fef1cp+2f, 0x1.ffd12p+2f, 0x1.4p+3f, 0x1.8p+3f,
     0x1.cp+3f, 0, 0x1.7ff0f8p-2f, 0x1.4003d8p-1f, 0x1.bfe934p-1f},
    {0x1.b247a4p-1f, 0x1.e1f76ep-1f, 0x1.f4bc14p-1f, 0x1.fbd406p-1f, 0x1.ff10ep-1f,
     0x1.ffdf94p-1f, 0x1.fffb9cp-1f, 0x1.ffff68p-1f, 0x1.fffff8p-1f, 0x1p+0f, 0x1p+0f, 0x1p+0f,
     0, 0x1.6ee824p-2f, 0x1.1bf728p-1f, 0x1.685adp-1f},
    {0x1.1f48fcp-2f, 0x1.d27108p-4f, 0x1.64863cp-5f, 0x1.09e80cp-6f, 0x1.ddd2ap-9f,
     0x1.035938p-11f, 0x1.190056p-14f, 0x1.30004ap-17f, 0x1.e61c12p-22f, 0, 0, 0, 0,
     0x1.be446cp-1f, 0x1.6281dp-1f, 0x1.02603cp-1f},
    {-0x1.e75a3p-3f, -0x1.b71498p-4f, -0x1.5cae0ap-5f, -0x1.07bd62p-6f, -0x1.dcf286p-9f,
     -0x1.03484ep-11f, -0x1.18fd56p-14f, -0x1.30065ep-17f, -0x1.03d1c8p-22f, 0, 0, 0,
     -0x1.269682p-20f, -0x1.3fcd44p-2f, -0x1.893bc2p-2f, -0x1.6bb2fap-2f},
    {0x1.bbc34p-4f, 0x1.01df12p-4f, 0x1.bc56dp-6f, 0x1.59e694p-7f, 0x1.3c81a8p-9f,
     0x1.592ca4p-12f, 0x1.763ad8p-15f, 0x1.9513cp-18f, 0x1.42c3f6p-22f, 0, 0, 0, -0x1.5544c8p-2f,
     -0x1.6dd6d6p-3f, -0x1.240152p-6f, 0x1.4ee266p-4f},
    {-0x1.9b79c2p-7f, -0x1.8182dep-6f, -0x1.943be2p-7f, -0x1.4e8892p-8f, -0x1.3a468cp-10f,
     -0x1.58ea16p-13f, -0x1.76463ep-16f, -0x1.9470a8p-19f, -0x1.7850e2p-21f, 0, 0, 0,
     -0x1.364e32p-10f, 0x1.584fecp-3f, 0x1.1a629ap-3f, 0x1.f269f6p-5f},
    {-0x1.430544p-6f, 0x1.c7f5b4p-9f, 0x1.04d184p-8f, 0x1.f634b8p-10f, 0x1.015c2ep-11f,
     0x1.1f1cc6p-14f, 0x1.3831f4p-17f, 0x1.4fe24ap-20f, 0x1.1dbad2p-24f, 0, 0, 0, 0x1.25095cp-3f,
     0x1.31e726p-6f, -0x1.bcc15p-5f, -0x1.de1994p-5f},
    {0x1.eed94p-7f, 0x1.12dc0cp-9f, -0x1.77c6dap-11f, -0x1.1def84p-11f, -0x1.4aac7ep-13f,
     -0x1.7b673ep-16f, -0x1.9de8eap-19f, -0x1.c914f2p-22f, 0x1.6cdabap-22f, 0, 0, 0,
     -0x1.2eea54p-5f, -0x1.1e5452p-4f, -0x1.867944p-6f, 0x1.b02018p-7f},
};

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
