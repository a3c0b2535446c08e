/* vmath_erf_f32.h: the error function of one float, and of several vectors. */
#ifndef MG_VMATH_ERF_F32_H
#define MG_VMATH_ERF_F32_H

#include "vmath_f32.h"
#include "vmath_wide.h"

/* erf on pieces of [0, 4], numbered and expanded as those of tanh (v_tanh_table): row 0 is the point c
 * of a piece, row 1 the float very near erf c, the others are the coefficients of
 * (erf(c + d) - erf c) / d. The piece at 0 starts from x instead. Those from 5 on are not needed. */
static const __attribute__((unused)) float v_erf_table[8][16] = {
    {0x1.3c09d8p+0f, 0x1.bc1a3cp+0f, 0x1.1e22fap+1f, 0x1.5e01ecp+1f, 0x1.bcp+1f, 0x1p+2f,
     0x1p+2f, 0x1p+2f, 0x1p+2f, 0x1p+2f, 0x1p+2f, 0x1p+2f, 0, 0x1.781d64p-2f, 0x1.3c18ccp-1f,
     0x1.bc1ef6p-1f},
    {0x1.d69d44p-1f, 0x1.f8c0dep-1f, 0x1.ff3232p-1f, 0x1.fff19p-1f, 0x1.ffffep-1f, 0x1p+0f,
     0x1p+0f, 0x1p+0f, 0x1p+0f, 0x1p+0f, 0x1p+0f, 0x1p+0f, 0, 0x1.96103p-2f, 0x1.3c1ae8p-1f,
     0x1.8f65bcp-1f},
    {0x1.f761c6p-3f, 0x1.c7e36ap-5f, 0x1.f3a978p-8f, 0x1.4ec798p-11f, 0x1.c285fep-18f, 0, 0, 0,
     0, 0, 0, 0, 0x1.06eba8p-3f, 0x1.f8d164p-1f, 0x1.8aa1b6p-1f, 0x1.103d5ep-1f},
    {-0x1.36b7fcp-2f, -0x1.8b6f7cp-4f, -0x1.173e08p-6f, -0x1.c9b032p-10f, -0x1.73b536p-16f, 0, 0,
     0, 0, 0, 0, 0, -0x1.0f225ep-21f, -0x1.72d6cp-2f, -0x1.e745d4p-2f, -0x1.d84b5ap-2f},
    {0x1.57a18ep-3f, 0x1.7d6afap-4f, 0x1.768e8cp-6f, 0x1.8509aep-9f, 0x1.a5c38ap-15f, 0, 0, 0, 0,
     0, 0, 0, -0x1.811eeap-2f, -0x1.eb773ep-3f, -0x1.f44542p-5f, 0x1.6e7c1cp-4f},
    {-0x1.3e3f1p-9f, -0x1.8d976ep-5f, -0x1.45879ep-6f, -0x1.c88998p-9f, -0x1.7ec48p-14f, 0, 0, 0,
     0, 0, 0, 0, -0x1.410b76p-11f, 0x1.517976p-3f, 0x1.6b6ce4p-3f, 0x1.d6c1p-4f},
    {-0x1.8ecc16p-5f, 0x1.51a966p-8f, 0x1.62a678p-7f, 0x1.86a7b2p-9f, 0x1.f4ad62p-14f, 0, 0, 0,
     0, 0, 0, 0, 0x1.e2ea9ap-4f, 0x1.83d5a4p-5f, -0x1.9e5884p-6f, -0x1.0eee72p-4f},
    {0x1.4f9cc2p-6f, 0x1.29d378p-7f, -0x1.6a433cp-9f, -0x1.b648f8p-10f, -0x1.423b44p-14f, 0, 0,
     0, 0, 0, 0, 0, -0x1.372c2p-6f, -0x1.92ab02p-5f, -0x1.4fe8f6p-5f, -0x1.6fce7p-7f}
};

/* Error 0.870 at 0x1.bb709cp+1, over every 7th float; without fma 0.864. */
MG_INLINE float v_erf_f32(float x) {
    float a = v_from_bits_f32(v_min_bits_f32(v_bits_f32(v_abs_f32(x)), v_bits_f32(4.0f)));
    float b = a + 1.0f;
    uint32_t i = (v_bits_f32(b) >> 21) & 15u;
    float d = a - v_erf_table[0][i], start = b < 1.25f ? a : v_erf_table[1][i];
    float q = v_erf_table[7][i];
    for (int row = 6; row >= 2; row--) q = fma_f32(q, d, v_erf_table[row][i]);
#if MG_HAS_FMA
    float y = fma_f32(q, d, start);
#else
    float y = (float)((double)q * (double)d + (double)start);
#endif
    return x == x ? v_copysign_f32(y, x) : x;
}

#if MG_HAS_WIDE
#define MG_REAL 32
#include "real.h"
MG_INLINE wide_f32 w_erf_f32(wide_f32 x) {
    wide_f32 a = w_min(w_set(4.0f), w_abs(x)), b = w_add(a, w_set(1.0f));
    wide_f32 i = w_shift_right(b, 21);
    wide_f32 d = w_sub(a, w_look_up_f32(v_erf_table[0], i));
    wide_f32 start = w_choose_less(b, w_set(1.25f), a, w_look_up_f32(v_erf_table[1], i));
    wide_f32 q = w_look_up_f32(v_erf_table[7], i);
    for (int row = 6; row >= 2; row--) q = w_fma(q, d, w_look_up_f32(v_erf_table[row], i));
    return w_with_sign(w_fma(q, d, start), x);
}
#else
#define w_erf_f32 v_erf_f32
#endif

static inline void v_erf_chunk_f32(float *restrict out, const float *restrict x, int64_t n) {
    w_map_f32(out, x, n, w_erf_f32);
}

#endif
