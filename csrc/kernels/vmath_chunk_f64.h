/* vmath_chunk_f64.h: the double-precision twins of vmath_chunk_f32.h; read that one first. */
#ifndef MG_VMATH_CHUNK_F64_H
#define MG_VMATH_CHUNK_F64_H

#include "vmath_wide.h"

#if MG_HAS_WIDE
#define MG_REAL 64
#include "real.h"

/* e^(x + x_low) = 2^n (1 + r_high + tail), the error of r_high + tail below that of the sum */
typedef struct {
    wide_f64 n, r_high, tail;
} w_exp_parts_f64;

MG_INLINE w_exp_parts_f64 w_exp_split_f64(wide_f64 x, wide_f64 x_low) {
    const double magic = 0x1.8p52;
    wide_f64 n = w_sub(w_fma(x, w_set(V_LOG2E_F64), w_set(magic)), w_set(magic));
    wide_f64 r_high = w_fma(n, w_set(-V_LN2_HI_F64), x);
    wide_f64 r_low = w_fma(n, w_set(-V_LN2_LO_F64), x_low);
    wide_f64 r = w_add(r_high, r_low), z = w_mul(r, r), zz = w_mul(z, z);
    wide_f64 q0 = w_line(r, 0x1.5555555555559p-3, 0.5);
    wide_f64 q2 = w_line(r, 0x1.111111110f6fdp-7, 0x1.5555555555558p-5);
    wide_f64 q4 = w_line(r, 0x1.a01a01afa95d8p-13, 0x1.6c16c16c17152p-10);
    wide_f64 q6 = w_line(r, 0x1.71ddf9087c1dbp-19, 0x1.a01a019b87d28p-16);
    wide_f64 q8 = w_line(r, 0x1.af5d6dd4e6ecap-26, 0x1.27e4fdd3c41ffp-22);
    q8 = w_fma(z, w_set(0x1.1f329f586bb8bp-29), q8);
    q4 = w_fma(z, q6, q4);
    q0 = w_fma(z, q2, q0);
    wide_f64 tail = w_fma(z, w_fma(zz, w_fma(zz, q8, q4), q0), r_low);
    return (w_exp_parts_f64){n, r_high, tail};
}
MG_INLINE wide_f64 w_exp_f64(wide_f64 x) {
    w_exp_parts_f64 p = w_exp_split_f64(w_max(w_set(-746.0), w_min(w_set(710.0), x)), w_set(0.0));
    return w_scale(w_add(w_set(1.0), w_add(p.r_high, p.tail)), p.n);
}
MG_INLINE wide_f64 w_sigmoid_f64(wide_f64 x) {
    w_exp_parts_f64 p = w_exp_split_f64(w_min(w_set(750.0), w_abs(x)), w_set(0.0));
    wide_f64 one = w_set(1.0), n = w_neg(p.n), s = w_scale(one, n);
    wide_f64 w = w_add(p.r_high, p.tail), b = w_add(one, s), d = w_add(b, w);
    wide_f64 b_low = w_sub(s, w_sub(b, one)), d_low = w_add(w_add(w_sub(b, d), w), b_low);
    wide_f64 y = w_reciprocal_f64(d);
    y = w_fma(y, w_fnma(y, d_low, w_fnma(y, d, one)), y);
    y = w_scale(y, n);
    return w_choose_less(x, w_set(0.0), y, w_sub(one, y));
}
MG_INLINE wide_f64 w_tanh_f64(wide_f64 x) {
    wide_f64 a = w_min(w_set(20.0), w_abs(x));
    w_exp_parts_f64 p = w_exp_split_f64(w_add(a, a), w_set(0.0));
    wide_f64 w = w_add(p.r_high, p.tail), w_low = w_sub(p.tail, w_sub(w, p.r_high));
    wide_f64 one = w_set(1.0), s = w_scale(one, w_neg(p.n));
    wide_f64 g = w_sub(one, s), h = w_add(one, s);
    wide_f64 h_low = w_sub(s, w_sub(h, one)), g_low = w_sub(w_sub(one, g), s);
    wide_f64 m = w_add(g, w), m_low = w_add(w_add(w_sub(g, m), w), w_add(w_low, g_low));
    wide_f64 b = w_add(h, w), b_low = w_add(w_add(w_sub(h, b), w), w_add(w_low, h_low));
    wide_f64 inverse = w_reciprocal_f64(b), y = w_mul(m, inverse);
    wide_f64 residual = w_add(w_fnma(y, b_low, w_fnma(y, b, m)), m_low);
    return w_with_sign(w_abs(w_fma(residual, inverse, y)), x);
}
/* Right for 2^-1022 <= x < inf. */
MG_INLINE wide_f64 w_log_f64(wide_f64 x) {
    wide_f64 u = w_add_bits(x, V_LOG_SHIFT_F64);
    wide_f64 k = w_sub(w_or(w_shift_right(u, 52), 0x4330000000000000u), w_set(0x1p52 + 1023));
    wide_f64 f = w_add_bits(w_and(u, V_FRACTION_F64), V_SQRT_HALF_BITS_F64);
    f = w_sub(f, w_set(1.0));
    wide_f64 d = w_add(w_set(2.0), f), inverse = w_reciprocal_f64(d), s = w_mul(f, inverse);
    s = w_fma(w_fnma(s, d, f), inverse, s);
    wide_f64 z = w_mul(s, s), zz = w_mul(z, z);
    wide_f64 h = w_mul(w_mul(w_set(0.5), f), f);
    wide_f64 p0 = w_line(z, 0x1.999999997f9fbp-2, 0x1.5555555555593p-1);
    wide_f64 p2 = w_line(z, 0x1.c71c51d815bbcp-3, 0x1.2492494229feap-2);
    wide_f64 p4 = w_line(z, 0x1.39a097537b678p-3, 0x1.7466499f6d17ap-3);
    p4 = w_fma(zz, w_set(0x1.2f116b7904b87p-3), p4);
    wide_f64 p = w_fma(zz, w_fma(zz, p4, p2), p0);
    wide_f64 tail = w_fma(s, w_fma(z, p, h), w_neg(h));
    wide_f64 hi = w_set(V_LN2_HI_F64), y = w_fma(k, hi, f);
    wide_f64 low = w_add(w_fma(k, hi, w_neg(y)), f);
    return w_add(y, w_add(w_fma(k, w_set(V_LN2_LO_F64), low), tail));
}
#else
#define w_exp_f64 v_exp_f64
#define w_log_f64 v_log_f64
#define w_tanh_f64 v_tanh_f64
#define w_sigmoid_f64 v_sigmoid_f64
#endif

static inline void v_exp_chunk_f64(double *restrict out, const double *restrict x, int64_t n) {
    w_map_f64(out, x, n, w_exp_f64);
}
static inline void v_log_chunk_f64(double *restrict out, const double *restrict x, int64_t n) {
    w_map_inside_f64(out, x, n, w_log_f64, v_log_f64, 0x1p-1022, V_INF_F64);
}
static inline void v_tanh_chunk_f64(double *restrict out, const double *restrict x, int64_t n) {
    w_map_f64(out, x, n, w_tanh_f64);
}
static inline void v_sigmoid_chunk_f64(double *restrict out, const double *restrict x, int64_t n) {
    w_map_f64(out, x, n, w_sigmoid_f64);
}

#endif
