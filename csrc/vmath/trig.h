/* trig.h: sine and cosine of every argument.
 *
 * Chunk kernels run the vector loop. Blocks with elements beyond its range are rare, and go to a
 * slower loop.
 *
 * Large arguments follow M. H. Payne and R. N. Hanek, "Radian reduction for trigonometric
 * functions", SIGNUM Newsletter 18 (1983). Only the bits of 2/pi that can reach the quadrant and
 * the fraction are multiplied.
 *
 * Rounding to an integer adds 1.5 * 2^23, in double 2^52. The integer then stands in the low bits.
 * A sum a + b whose rounding error matters carries the error as b - ((a + b) - a), which is right
 * for |a| >= |b|.
 *
 * "Error" is the largest error seen, in units of the last place, and its argument. Floats were
 * compared with double precision. With fma, all floats from 2^-30 to 2^15 and every 61st beyond
 * were tried, without fma every 97th. Doubles were compared with quadruple precision. Their samples
 * are uniform over the range that matters, dense around 0 and 1, bit patterns at random, and the
 * special values.
 *
 * Polynomials are minimax fits (Remez). Their coefficients were rounded one by one and the rest
 * refitted.
 */
#ifndef MG_VMATH_TRIG_H
#define MG_VMATH_TRIG_H

#include "simd/wide.h"

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

#define V_TRIG_MAX_F64 1.0e6

typedef struct {
    double r, r_low;
    uint64_t quadrant;
} v_trig_parts_f64;

MG_INLINE v_trig_parts_f64 v_trig_reduce_f64(double a) {
    const double magic = 0x1.8p52;
    double t = fma_f64(a, 0x1.45f306dc9c883p-1, magic);
    double n = t - magic;
#if MG_HAS_FMA
    double r = fma_f64(n, -0x1.921fb54442d18p+0, a);
#else
    double r = (a - n * 0x1.921fb544p+0) - n * 0x1.0b46p-34;
#endif
    double s = fma_f64(n, -0x1.1a626331p-54, r);
    double low = fma_f64(n, -0x1.1a626331p-54, r - s);
    low = fma_f64(n, -0x1.1701b839a252p-88, low);
    return (v_trig_parts_f64){s, low, v_bits_f64(t)};
}
MG_INLINE double v_trig_eval_f64(v_trig_parts_f64 p, uint64_t quadrant, uint64_t sign) {
    double r = p.r, z = r * r;
    double zz = z * z;
    double s0 = fma_f64(z, 0x1.111111110f73p-7, -0x1.5555555555548p-3);
    double s2 = fma_f64(z, 0x1.71de35552963fp-19, -0x1.a01a019be9204p-13);
    double s4 = fma_f64(z, 0x1.5d8b54c7675e2p-33, -0x1.ae5e4b81ce0e9p-26);
    double s = fma_f64(zz, fma_f64(zz, s4, s2), s0);
    s = r + fma_f64(r, z * s, p.r_low);
    double c0 = fma_f64(z, -0x1.6c16c16c15219p-10, 0x1.555555555554cp-5);
    double c2 = fma_f64(z, -0x1.27e4f811bb1c7p-22, 0x1.a01a019cbe5f9p-16);
    double c4 = fma_f64(z, -0x1.8fb0b3cfa74f9p-37, 0x1.1ee9f08229f68p-29);
    double c = fma_f64(zz, fma_f64(zz, c4, c2), c0);
    double h = fma_f64(z, -0.5, 1.0);
    c = h + fma_f64(zz, c, fma_f64(-r, p.r_low, fma_f64(z, -0.5, 1.0 - h)));
    double y = v_from_bits_f64((quadrant & 1u) << 52) > 0.0 ? c : s; /* 2^-1022 or 0 */
    return v_from_bits_f64(v_bits_f64(y) ^ ((quadrant << 62) & V_SIGN_F64) ^ sign);
}

/* Right for |x| <= V_TRIG_MAX_F64. Error 0.825 at -0x1.4f79a8fc040cp+14. */
MG_INLINE double v_sin_f64(double x) {
    v_trig_parts_f64 p = v_trig_reduce_f64(v_abs_f64(x));
    return v_trig_eval_f64(p, p.quadrant, v_bits_f64(x) & V_SIGN_F64);
}
/* Right for |x| <= V_TRIG_MAX_F64. Error 0.818 at 0x1.9ab5ff1ca86bcp-1. */
MG_INLINE double v_cos_f64(double x) {
    v_trig_parts_f64 p = v_trig_reduce_f64(v_abs_f64(x));
    return v_trig_eval_f64(p, p.quadrant + 1u, 0);
}

/* 64 zeros, then the fraction of 2/pi: bit i of the row has the weight 2^(63 - i). */
static const uint64_t trig_two_over_pi[20] = {
    0x0000000000000000u, 0xa2f9836e4e441529u, 0xfc2757d1f534ddc0u, 0xdb6295993c439041u,
    0xfe5163abdebbc561u, 0xb7246e3a424dd2e0u, 0x06492eea09d1921cu, 0xfe1deb1cb129a73eu,
    0xe88235f52ebb4484u, 0xe99c7026b45f7e41u, 0x3991d639835339f4u, 0x9c845f8bbdf9283bu,
    0x1ff897ffde05980fu, 0xef2f118b5a0a6d1fu, 0x6d367ecf27cb09b7u, 0x4f463f669e5fea2du,
    0x7527bac7ebe5f17bu, 0x3d0739f78a5292eau, 0x6bfb5fb11f8d5d08u, 0x56033046fc7b6babu};

__extension__ typedef unsigned __int128 trig_u128;

/* Reduces finite |x| >= 1 to n pi/2 + r + r_low. With x = m 2^e, x 2/pi mod 4 needs the bits of
 * 2/pi from 2^(1 - e) downwards. The bits above contribute multiples of four. */
static v_trig_parts_f64 trig_reduce_large(double x) {
    uint64_t bits = v_bits_f64(x) & ~V_SIGN_F64;
    uint64_t m = (bits & V_FRACTION_F64) | (V_FRACTION_F64 + 1);
    int start = (int)(bits >> 52) - 1075 - 2 + 64, word = start / 64, shift = start % 64;
    uint64_t c[3];
    for (int i = 0; i < 3; i++) {
        const uint64_t *t = trig_two_over_pi + word + i;
        c[i] = shift ? t[0] << shift | t[1] >> (64 - shift) : t[0];
    }
    /* (high, middle) = m c mod 1: two bits of quadrant, then the fraction. The third word of the
     * product is dropped, but its carry is added. */
    trig_u128 p2 = (trig_u128)m * c[2];
    trig_u128 p1 = (trig_u128)m * c[1] + (uint64_t)(p2 >> 64);
    uint64_t high = m * c[0] + (uint64_t)(p1 >> 64), middle = (uint64_t)p1, low = (uint64_t)p2;
    uint64_t quadrant = ((high >> 61) + 1) >> 1; /* rounded to the nearest */
    high = high << 2 | middle >> 62;
    middle = middle << 2 | low >> 62;
    bool negative = high >> 63;
    if (negative) {
        high = ~high;
        middle = ~middle;
    }
    int zeros = 0;
    if (high == 0) { /* the closest double is within 2^-61 of a multiple of pi/2 */
        high = middle;
        middle = 0;
        zeros = 64;
    }
    int lead = __builtin_clzll(high | 1);
    uint64_t fraction = lead ? high << lead | middle >> (64 - lead) : high;
    trig_u128 product = (trig_u128)fraction * 0xc90fdaa22168c235u; /* times pi/2, 2^63 */
    double scale = v_from_bits_f64((uint64_t)(1023 - zeros - lead) << 52);
    scale = negative ? -scale : scale;
    double r = (double)(uint64_t)(product >> 75) * 0x1p-52 * scale;
    double r_low = (double)(uint64_t)(product >> 11) * 0x1p-116 * scale;
    return (v_trig_parts_f64){r, r_low, quadrant};
}

static MG_NOINLINE double v_sin_large_f64(double x) {
    if (!(v_abs_f64(x) > V_TRIG_MAX_F64 && v_abs_f64(x) < V_INF_F64)) {
        return v_sin_f64(x);
    }
    v_trig_parts_f64 p = trig_reduce_large(x);
    return v_trig_eval_f64(p, p.quadrant, v_bits_f64(x) & V_SIGN_F64);
}
static MG_NOINLINE double v_cos_large_f64(double x) {
    if (!(v_abs_f64(x) > V_TRIG_MAX_F64 && v_abs_f64(x) < V_INF_F64)) {
        return v_cos_f64(x);
    }
    v_trig_parts_f64 p = trig_reduce_large(x);
    return v_trig_eval_f64(p, p.quadrant + 1, 0);
}
/* A float is exact as a double, so the wider function serves. */
MG_INLINE float v_sin_large_f32(float x) { return (float)v_sin_large_f64((double)x); }
MG_INLINE float v_cos_large_f32(float x) { return (float)v_cos_large_f64((double)x); }

/* Right for every x. */
MG_INLINE float v_sin_any_f32(float x) {
    return v_abs_f32(x) > V_TRIG_MAX_F32 ? v_sin_large_f32(x) : v_sin_f32(x);
}
MG_INLINE float v_cos_any_f32(float x) {
    return v_abs_f32(x) > V_TRIG_MAX_F32 ? v_cos_large_f32(x) : v_cos_f32(x);
}
MG_INLINE double v_sin_any_f64(double x) { return v_sin_large_f64(x); }
MG_INLINE double v_cos_any_f64(double x) { return v_cos_large_f64(x); }

#if MG_HAS_WIDE
#define MG_REAL 32
#include "simd/real.h"
/* sin(|x| + shift pi/2), with its sign turned where `sign` has a bit set. The bits equal those of
 * v_trig_reduce_f32 and v_trig_eval_f32. One polynomial is evaluated, with coefficients chosen for
 * each lane. The choice runs beside multiply-adds, while a second polynomial would take four more
 * of these. */
MG_INLINE wide_f32 w_trig_f32(wide_f32 x, uint32_t shift, wide_f32 sign) {
    const float magic = 0x1.8p23f;
    wide_f32 a = w_abs(x), t = w_fma(a, w_set(0x1.45f306p-1f), w_set(magic));
    wide_f32 n = w_sub(t, w_set(magic)), c2 = w_set(0x1.778p-25f), quadrant = w_add_bits(t, shift);
    wide_f32 high = w_fma(n, w_set(-0x1.921fb6p+0f), a), r = w_fma(n, c2, high);
    wide_f32 r_low = w_fma(n, c2, w_sub(high, r));
    r_low = w_fma(n, w_set(-0x1.68c234p-39f), r_low);
#define EITHER(sine, cosine) w_choose_zero(quadrant, 1, sine, cosine)
    wide_f32 z = w_mul(r, r);
    wide_f32 p = EITHER(w_set(-0x1.9953dcp-13f), w_set(0x1.99e0f2p-16f));
    p = w_fma(p, z, EITHER(w_set(0x1.110778p-7f), w_set(-0x1.6c0c1ap-10f)));
    p = w_fma(p, z, EITHER(w_set(-0x1.555546p-3f), w_set(0x1.55554ap-5f)));
    wide_f32 h = w_line(z, -0.5f, 1.0f), h_low = w_fma(z, w_set(-0.5f), w_sub(w_set(1.0f), h));
    wide_f32 rest = EITHER(r_low, w_fnma(r, r_low, h_low));
    rest = w_fma(EITHER(r, p), w_mul(z, EITHER(p, z)), rest);
    wide_f32 y = w_add(EITHER(r, h), rest);
#undef EITHER
    return w_flip_sign_f32(y, w_xor(w_shift_left(quadrant, 30), sign));
}
MG_INLINE wide_f32 w_sin_f32(wide_f32 x) { return w_trig_f32(x, 0, x); }
MG_INLINE wide_f32 w_cos_f32(wide_f32 x) { return w_trig_f32(x, 1, w_set(0.0f)); }

#define MG_REAL 64
#include "simd/real.h"
MG_INLINE wide_f64 w_trig_f64(wide_f64 x, uint64_t shift, wide_f64 sign) {
    const double magic = 0x1.8p52;
    wide_f64 a = w_abs(x), t = w_fma(a, w_set(0x1.45f306dc9c883p-1), w_set(magic));
    wide_f64 n = w_sub(t, w_set(magic)), c2 = w_set(-0x1.1a626331p-54);
    wide_f64 high = w_fma(n, w_set(-0x1.921fb54442d18p+0), a), r = w_fma(n, c2, high);
    wide_f64 r_low = w_fma(n, c2, w_sub(high, r));
    r_low = w_fma(n, w_set(-0x1.1701b839a252p-88), r_low);
    wide_f64 z = w_mul(r, r), zz = w_mul(z, z);
    wide_f64 s0 = w_line(z, 0x1.111111110f73p-7, -0x1.5555555555548p-3);
    wide_f64 s2 = w_line(z, 0x1.71de35552963fp-19, -0x1.a01a019be9204p-13);
    wide_f64 s4 = w_line(z, 0x1.5d8b54c7675e2p-33, -0x1.ae5e4b81ce0e9p-26);
    wide_f64 s = w_fma(zz, w_fma(zz, s4, s2), s0);
    s = w_add(r, w_fma(r, w_mul(z, s), r_low));
    wide_f64 c0 = w_line(z, -0x1.6c16c16c15219p-10, 0x1.555555555554cp-5);
    wide_f64 c4 = w_line(z, -0x1.8fb0b3cfa74f9p-37, 0x1.1ee9f08229f68p-29);
    wide_f64 c6 = w_line(z, -0x1.27e4f811bb1c7p-22, 0x1.a01a019cbe5f9p-16);
    wide_f64 c = w_fma(zz, w_fma(zz, c4, c6), c0);
    wide_f64 h = w_line(z, -0.5, 1.0), h_low = w_fma(z, w_set(-0.5), w_sub(w_set(1.0), h));
    c = w_add(h, w_fma(zz, c, w_fnma(r, r_low, h_low)));
    wide_f64 quadrant = w_add_bits(t, shift);
    wide_f64 y = w_choose_zero(quadrant, 1, s, c);
    return w_xor(w_xor(y, w_and(w_shift_left(quadrant, 62), V_SIGN_F64)), sign);
}
MG_INLINE wide_f64 w_sin_f64(wide_f64 x) { return w_trig_f64(x, 0, w_and(x, V_SIGN_F64)); }
MG_INLINE wide_f64 w_cos_f64(wide_f64 x) { return w_trig_f64(x, 1, w_set(0.0)); }
#else
#define w_sin_f32 v_sin_f32
#define w_cos_f32 v_cos_f32
#define w_sin_f64 v_sin_f64
#define w_cos_f64 v_cos_f64
#endif

/* out[i] = sin x[i], for whole blocks. `out` and x do not overlap. The next three functions are
 * alike. */
static inline void v_sin_chunk_f32(float *restrict out, const float *restrict x, int64_t n) {
    w_map_inside_f32(out, x, n, w_sin_f32, v_sin_any_f32, V_TRIG_MAX_F32);
}
static inline void v_cos_chunk_f32(float *restrict out, const float *restrict x, int64_t n) {
    w_map_inside_f32(out, x, n, w_cos_f32, v_cos_any_f32, V_TRIG_MAX_F32);
}
MG_CHAINS
static inline void v_sin_chunk_f64(double *restrict out, const double *restrict x, int64_t n) {
    w_map_inside_f64(out, x, n, w_sin_f64, v_sin_any_f64, V_TRIG_MAX_F64);
}
static inline void v_cos_chunk_f64(double *restrict out, const double *restrict x, int64_t n) {
    w_map_inside_f64(out, x, n, w_cos_f64, v_cos_any_f64, V_TRIG_MAX_F64);
}
MG_CHAINS_END

#endif
