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

/* What exp and its relatives share: x = n ln 2 + r_high + r_low, |r| <= ln 2 / 2, the high part
 * exact, and e^r = 1 + r + r^2 q(r). Where n would exceed n_max it stays there and r grows. */
typedef struct {
    float r_high, r_low, r;
    uint32_t n; /* n + 254 in the low nine bits */
} v_exp_parts_f32;

MG_INLINE v_exp_parts_f32 v_exp_split_f32(float x, float n_max) {
    const float magic = 0x1.8p23f + 254;
    float t = fma_f32(x, V_LOG2E_F32, magic);
    uint32_t bits = v_min_bits_f32(v_bits_f32(t), v_bits_f32(magic + n_max));
    float n = v_from_bits_f32(bits) - magic;
    float r_high = fma_f32(n, -V_LN2_HI_F32, x), r_low = n * -V_LN2_LO_F32;
    float r = r_high + r_low;
    return (v_exp_parts_f32){r_high, r_low, r, bits};
}
/* 2^n as one factor, -126 <= n <= 127, or as two, -252 <= n <= 254. */
MG_INLINE float v_pow2_f32(uint32_t n) { return v_from_bits_f32((n - 127) << 23); }
MG_INLINE float v_pow2_half_f32(uint32_t n) { return v_from_bits_f32((n >> 1) << 23); }
MG_INLINE float v_pow2_rest_f32(uint32_t n) { return v_from_bits_f32((n - (n >> 1)) << 23); }

/* r_low + r^2 q(r), the error of q weighed against e^r, for e^r - 1 - r_high */
MG_INLINE float v_exp_tail_f32(v_exp_parts_f32 p) {
    float r = p.r, z = r * r;
    float a = fma_f32(r, 0x1.555492p-3f, 0x1.fffffcp-2f);
    float b = fma_f32(r, 0x1.12398ep-7f, 0x1.5558bp-5f);
    return fma_f32(z, fma_f32(z, fma_f32(z, 0x1.6a4f1ep-10f, b), a), p.r_low);
}
/* The same with the error weighed against e^r - 1 */
MG_INLINE float v_expm1_tail_f32(v_exp_parts_f32 p) {
    float r = p.r, z = r * r;
    float a = fma_f32(r, 0x1.555554p-3f, 0.5f);
    float b = fma_f32(r, 0x1.1112e2p-7f, 0x1.5554f8p-5f);
    float c = fma_f32(r, 0x1.9e5cfcp-13f, 0x1.6d3a48p-10f);
    return fma_f32(z, fma_f32(z, fma_f32(z, c, b), a), p.r_low);
}

/* Error 0.880 at -0x1.df55e8p+5; without fma 0.889. */
MG_INLINE float v_exp_f32(float x) {
    v_exp_parts_f32 p = v_exp_split_f32(x, 128.0f);
    float w = p.r_high + v_exp_tail_f32(p);
    float half = v_pow2_half_f32(p.n);
    float y = fma_f32(w, half, half) * v_pow2_rest_f32(p.n);
    return x < -104.0f ? 0.0f : y;
}

/* 2^n w + (2^n - 1) with w = e^r - 1, in halves so that 2^128 is never formed.
 * Error 0.964 at 0x1.6fb3d2p-2; without fma 1.05. */
MG_INLINE float v_expm1_f32(float x) {
    v_exp_parts_f32 p = v_exp_split_f32(x, 128.0f);
    float v = v_expm1_tail_f32(p);
    float w = p.r_high + v, w_low = v - (w - p.r_high);
    float s = v_pow2_f32(p.n - 1), d = s - 0.5f, d_low = (s - d) - 0.5f;
    float y = fma_f32(s, w, d);
    y = 2.0f * (y + (fma_f32(s, w_low, fma_f32(s, w, d - y)) + d_low));
    y = x < -18.0f ? -1.0f : y;
    y = x > 88.8f ? V_INF_F32 : y;
    return v_abs_f32(x) < 0x1p-25f ? x : y;
}

/* x + x^3 p(x^2) below 0.9, above 1 - 2 / (1 + e^(2|x|)): there the quotient is small enough for
 * its own rounding errors not to matter. Error 0.968 at 0x1.cdfe56p-1; without fma 1.11. */
MG_INLINE float v_tanh_f32(float x) {
    float a = v_abs_f32(x);
    v_exp_parts_f32 e = v_exp_split_f32(a + a, 40.0f);
    float w = e.r_high + v_exp_tail_f32(e), s = v_pow2_f32(e.n);
    float large = 1.0f - 2.0f / fma_f32(w, s, s + 1.0f);
    float z = x * x, zz = z * z;
    float p0 = fma_f32(z, 0x1.110f38p-3f, -0x1.55554ep-2f);
    float p2 = fma_f32(z, 0x1.62f1eap-6f, -0x1.b9ca5p-5f);
    float p4 = fma_f32(z, 0x1.52a0a6p-9f, -0x1.0ed85cp-7f);
    p4 = fma_f32(zz, -0x1.dde3c2p-12f, p4);
    float p = fma_f32(zz, fma_f32(zz, p4, p2), p0);
    float small = fma_f32(a * z, p, a);
    return v_copysign_f32(a < 0.9f ? small : large, x);
}

/* With e^|x| = 2^n (1 + w), q = 2^-n / (1 + 2^-n + w) is the value for x < 0, and 1 - q for x >= 0.
 * Error 0.907 at -0x1.0b8e8ep+6; without fma 1.28. */
MG_INLINE float v_sigmoid_f32(float x) {
    float a = v_from_bits_f32(v_min_bits_f32(v_bits_f32(v_abs_f32(x)), v_bits_f32(105.0f)));
    v_exp_parts_f32 p = v_exp_split_f32(a, 152.0f);
    uint32_t n = 2 * v_bits_f32(0x1.8p23f + 254) - p.n; /* minus n, in the same form */
    float half = v_pow2_half_f32(n), rest = v_pow2_rest_f32(n), s = half * rest;
    float w = p.r_high + v_exp_tail_f32(p);
    float b = 1.0f + s, b_low = s - (b - 1.0f);
    float d = b + w, d_low = (b - d) + w + b_low;
    float y = 1.0f / d;
    y = fma_f32(y, fma_f32(-y, d_low, fma_f32(-y, d, 1.0f)), y);
    y = y * half * rest;
    y = x < 0.0f ? y : 1.0f - y;
    return x == x ? y : x;
}

/* log(1 + f) - f for sqrt(1/2) - 1 <= f < sqrt(2) - 1 */
MG_INLINE float v_log_tail_f32(float f) {
    float z = f * f;
    float p0 = fma_f32(f, -0x1.000226p-2f, 0x1.555554p-2f);
    float p2 = fma_f32(f, -0x1.54728ep-3f, 0x1.99a01ep-3f);
    float p4 = fma_f32(f, -0x1.0d81b6p-3f, 0x1.22d8e2p-3f);
    float p6 = fma_f32(f, -0x1.38d158p-4f, 0x1.0560aep-3f);
    float p = fma_f32(z * z, fma_f32(z, p6, p4), fma_f32(z, p2, p0));
    return z * fma_f32(f, p, -0.5f);
}
/* k ln 2 + f + tail, the two large terms added without loss */
MG_INLINE float v_log_sum_f32(float k, float f, float tail) {
    float kh = k * V_LN2_HI_F32, s = kh + f, s_low = (kh - s) + f;
    return s + (fma_f32(k, V_LN2_LO_F32, s_low) + tail);
}
/* Infinity and NaN pass through; 0 gives -inf; what is below gives NaN. */
MG_INLINE float v_log_edges_f32(float x, float y) {
    y = x < V_INF_F32 ? y : x;
    return x > 0.0f ? y : (x == 0.0f ? -V_INF_F32 : V_NAN_F32);
}

#define V_LOG_SHIFT_F32 (0x3f800000u - 0x3f3504f3u) /* the bits of 1, less those of sqrt(1/2) */

/* Error 0.933 at 0x1.69c994p-1; without fma 0.898. */
MG_INLINE float v_log_f32(float x) {
    bool tiny = x < 0x1p-126f;
    float scaled = tiny ? x * 0x1p23f : x;
    uint32_t u = v_bits_f32(scaled) + V_LOG_SHIFT_F32;
    float k = v_from_bits_f32((u >> 23) | 0x4b000000u) - (tiny ? 0x1p23f + 150 : 0x1p23f + 127);
    float f = v_from_bits_f32((u & 0x7fffffu) + 0x3f3504f3u) - 1.0f;
    return v_log_edges_f32(x, v_log_sum_f32(k, f, v_log_tail_f32(f)));
}

/* The exponent k is that of 1 + x rounded; f = (1 + x) / 2^k - 1 comes from x itself.
 * Error 0.933 at -0x1.2c6cd8p-2; without fma 0.962. */
MG_INLINE float v_log1p_f32(float x) {
    uint32_t u = v_bits_f32(1.0f + x) + V_LOG_SHIFT_F32, e = u >> 23;
    float k = v_from_bits_f32(e | 0x4b000000u) - (0x1p23f + 127);
    float scale = v_from_bits_f32((256u - e) << 23) * 0.25f; /* 2^-k; k may be 128 */
    float g = scale - 1.0f;
    float f = fma_f32(x, scale, g), f_low = fma_f32(x, scale, g - f);
    float y = v_log_sum_f32(k, f, fma_f32(f_low, 1.0f - f, v_log_tail_f32(f)));
    y = x == 0.0f ? x : y;
    return v_log_edges_f32(1.0f + x, y);
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
