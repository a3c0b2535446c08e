/* vmath_trig.h: sine and cosine of every argument: chunk kernels that run the vector loop and then
 * redo the elements beyond its range, of which there are hardly ever any.
 *
 * Large arguments follow M. H. Payne and R. N. Hanek, "Radian reduction for trigonometric
 * functions", SIGNUM Newsletter 18 (1983): only those bits of 2/pi are multiplied that can reach
 * the quadrant and the fraction.
 */
#ifndef MG_VMATH_TRIG_H
#define MG_VMATH_TRIG_H

#include "vmath_f32.h"
#include "vmath_f64.h"

/* 64 zeros, then the fraction of 2/pi: bit i of the row has the weight 2^(63 - i). */
static const uint64_t trig_two_over_pi[20] = {
    0x0000000000000000u, 0xa2f9836e4e441529u, 0xfc2757d1f534ddc0u, 0xdb6295993c439041u,
    0xfe5163abdebbc561u, 0xb7246e3a424dd2e0u, 0x06492eea09d1921cu, 0xfe1deb1cb129a73eu,
    0xe88235f52ebb4484u, 0xe99c7026b45f7e41u, 0x3991d639835339f4u, 0x9c845f8bbdf9283bu,
    0x1ff897ffde05980fu, 0xef2f118b5a0a6d1fu, 0x6d367ecf27cb09b7u, 0x4f463f669e5fea2du,
    0x7527bac7ebe5f17bu, 0x3d0739f78a5292eau, 0x6bfb5fb11f8d5d08u, 0x56033046fc7b6babu};

__extension__ typedef unsigned __int128 trig_u128;

/* |x| = n pi/2 + r + r_low for finite |x| >= 1. With x = m 2^e, x 2/pi mod 4 needs the bits of 2/pi
 * from 2^(1 - e) downwards; those above contribute multiples of four. */
static v_trig_parts_f64 trig_reduce_large(double x) {
    uint64_t bits = v_bits_f64(x) & ~V_SIGN_F64;
    uint64_t m = (bits & V_FRACTION_F64) | (V_FRACTION_F64 + 1);
    int start = (int)(bits >> 52) - 1075 - 2 + 64, word = start / 64, shift = start % 64;
    uint64_t c[3];
    for (int i = 0; i < 3; i++) {
        const uint64_t *t = trig_two_over_pi + word + i;
        c[i] = shift ? t[0] << shift | t[1] >> (64 - shift) : t[0];
    }
    /* (high, middle) = m c mod 1: two bits of quadrant, then its fraction; the third word of the
     * product is lost, its carry is not. */
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

static MG_NOINLINE __attribute__((unused)) double v_sin_large_f64(double x) {
    if (!(v_abs_f64(x) > V_TRIG_MAX_F64 && v_abs_f64(x) < V_INF_F64)) {
        return v_sin_f64(x);
    }
    v_trig_parts_f64 p = trig_reduce_large(x);
    return v_trig_eval_f64(p, p.quadrant, v_bits_f64(x) & V_SIGN_F64);
}
static MG_NOINLINE __attribute__((unused)) double v_cos_large_f64(double x) {
    if (!(v_abs_f64(x) > V_TRIG_MAX_F64 && v_abs_f64(x) < V_INF_F64)) {
        return v_cos_f64(x);
    }
    v_trig_parts_f64 p = trig_reduce_large(x);
    return v_trig_eval_f64(p, p.quadrant + 1, 0);
}
/* A float is exact as a double, so the wider function serves. */
MG_INLINE float v_sin_large_f32(float x) { return (float)v_sin_large_f64((double)x); }
MG_INLINE float v_cos_large_f32(float x) { return (float)v_cos_large_f64((double)x); }

/* out[i] = sin x[i], any n; out and x do not overlap. The three below are its like. */
static inline void v_sin_chunk_f32(float *restrict out, const float *restrict x, int64_t n) {
    uint32_t beyond = 0;
    for (int64_t i = 0; i < n; i++) {
        float a = v_abs_f32(x[i]);
        beyond |= a > V_TRIG_MAX_F32 ? v_bits_f32(a) : 0;
        out[i] = v_sin_f32(x[i]);
    }
    if (MG_UNLIKELY(beyond)) {
        for (int64_t i = 0; i < n; i++) {
            if (v_abs_f32(x[i]) > V_TRIG_MAX_F32) {
                out[i] = v_sin_large_f32(x[i]);
            }
        }
    }
}
static inline void v_cos_chunk_f32(float *restrict out, const float *restrict x, int64_t n) {
    uint32_t beyond = 0;
    for (int64_t i = 0; i < n; i++) {
        float a = v_abs_f32(x[i]);
        beyond |= a > V_TRIG_MAX_F32 ? v_bits_f32(a) : 0;
        out[i] = v_cos_f32(x[i]);
    }
    if (MG_UNLIKELY(beyond)) {
        for (int64_t i = 0; i < n; i++) {
            if (v_abs_f32(x[i]) > V_TRIG_MAX_F32) {
                out[i] = v_cos_large_f32(x[i]);
            }
        }
    }
}
static inline void v_sin_chunk_f64(double *restrict out, const double *restrict x, int64_t n) {
    uint64_t beyond = 0;
    for (int64_t i = 0; i < n; i++) {
        double a = v_abs_f64(x[i]);
        beyond |= a > V_TRIG_MAX_F64 ? v_bits_f64(a) : 0;
        out[i] = v_sin_f64(x[i]);
    }
    if (MG_UNLIKELY(beyond)) {
        for (int64_t i = 0; i < n; i++) {
            if (v_abs_f64(x[i]) > V_TRIG_MAX_F64) {
                out[i] = v_sin_large_f64(x[i]);
            }
        }
    }
}
static inline void v_cos_chunk_f64(double *restrict out, const double *restrict x, int64_t n) {
    uint64_t beyond = 0;
    for (int64_t i = 0; i < n; i++) {
        double a = v_abs_f64(x[i]);
        beyond |= a > V_TRIG_MAX_F64 ? v_bits_f64(a) : 0;
        out[i] = v_cos_f64(x[i]);
    }
    if (MG_UNLIKELY(beyond)) {
        for (int64_t i = 0; i < n; i++) {
            if (v_abs_f64(x[i]) > V_TRIG_MAX_F64) {
                out[i] = v_cos_large_f64(x[i]);
            }
        }
    }
}

#endif
