/* vmath_chunk_f32.h: the functions of vmath_f32.h over contiguous elements, many at a time.
 *
 * The formulas are those of vmath_f32.h and give the same bits; read them there, with their errors.
 * What differs is only how an element out of range is met: a clamp where that file selects, or a
 * whole block left to the scalar function. Without MG_HAS_WIDE that function does all the work.
 */
#ifndef MG_VMATH_CHUNK_F32_H
#define MG_VMATH_CHUNK_F32_H

#include "vmath_wide.h"

#if MG_HAS_WIDE
#define MG_REAL 32
#include "real.h"

/* e^x = 2^n (1 + w) */
MG_INLINE wide_f32 w_exp_parts_f32(wide_f32 x, wide_f32 *n) {
    const float magic = 0x1.8p23f;
    *n = w_sub(w_fma(x, w_set(V_LOG2E_F32), w_set(magic)), w_set(magic));
    wide_f32 r_high = w_fma(*n, w_set(-V_LN2_HI_F32), x), r_low = w_mul(*n, w_set(-V_LN2_LO_F32));
    wide_f32 r = w_add(r_high, r_low), z = w_mul(r, r);
    wide_f32 a = w_line(r, 0x1.555492p-3f, 0x1.fffffcp-2f);
    wide_f32 b = w_line(r, 0x1.12398ep-7f, 0x1.5558bp-5f);
    b = w_fma(z, w_set(0x1.6a4f1ep-10f), b);
    return w_add(r_high, w_fma(z, w_fma(z, b, a), r_low));
}
MG_INLINE wide_f32 w_exp_f32(wide_f32 x) {
    x = w_max(w_set(-104.0f), w_min(w_set(89.0f), x));
    wide_f32 n, w = w_exp_parts_f32(x, &n);
    return w_scale(w_add(w_set(1.0f), w), n);
}
MG_INLINE wide_f32 w_sigmoid_f32(wide_f32 x) {
    wide_f32 one = w_set(1.0f), n, w = w_exp_parts_f32(w_min(w_set(105.0f), w_abs(x)), &n);
    n = w_neg(n);
    wide_f32 s = w_scale(one, n), b = w_add(one, s), d = w_add(b, w);
    wide_f32 low = w_add(w_add(w_sub(b, d), w), w_sub(s, w_sub(b, one)));
    wide_f32 y = w_div(one, d);
    y = w_fma(y, w_fnma(y, low, w_fnma(y, d, one)), y);
    y = w_scale(y, n);
    return w_choose_less(x, w_set(0.0f), y, w_sub(one, y));
}
MG_INLINE wide_f32 w_tanh_f32(wide_f32 x) {
    wide_f32 a = w_min(w_set(14.0f), w_abs(x)), b = w_add(a, w_set(1.0f));
    wide_f32 i = w_shift_right(b, 21);
    wide_f32 d = w_sub(a, w_look_up_f32(v_tanh_table[0], i));
    wide_f32 start = w_choose_less(b, w_set(1.25f), a, w_look_up_f32(v_tanh_table[1], i));
    wide_f32 q = w_look_up_f32(v_tanh_table[7], i);
    for (int row = 6; row >= 2; row--) q = w_fma(q, d, w_look_up_f32(v_tanh_table[row], i));
    return w_with_sign(w_fma(q, d, start), x);
}
/* Right for 2^-126 <= x < inf. */
MG_INLINE wide_f32 w_log_f32(wide_f32 x) {
    wide_f32 u = w_add_bits(x, V_LOG_SHIFT_F32);
    wide_f32 k = w_sub(w_or(w_shift_right(u, 23), 0x4b000000u), w_set(0x1p23f + 127));
    wide_f32 f = w_sub(w_add_bits(w_and(u, 0x7fffffu), 0x3f3504f3u), w_set(1.0f));
    wide_f32 z = w_mul(f, f);
    wide_f32 p0 = w_line(f, -0x1.000226p-2f, 0x1.555554p-2f);
    wide_f32 p2 = w_line(f, -0x1.54728ep-3f, 0x1.99a01ep-3f);
    wide_f32 p4 = w_line(f, -0x1.0d81b6p-3f, 0x1.22d8e2p-3f);
    wide_f32 p6 = w_line(f, -0x1.38d158p-4f, 0x1.0560aep-3f);
    wide_f32 p = w_fma(w_mul(z, z), w_fma(z, p6, p4), w_fma(z, p2, p0));
    wide_f32 tail = w_mul(z, w_fma(f, p, w_set(-0.5f)));
    wide_f32 hi = w_set(V_LN2_HI_F32);
    wide_f32 s = w_fma(k, hi, f), s_low = w_add(w_fma(k, hi, w_neg(s)), f);
    return w_add(s, w_add(w_fma(k, w_set(V_LN2_LO_F32), s_low), tail));
}
#else
#define w_exp_f32 v_exp_f32
#define w_log_f32 v_log_f32
#define w_tanh_f32 v_tanh_f32
#define w_sigmoid_f32 v_sigmoid_f32
#endif

/* out[i] = e^x[i], any n; out and x do not overlap. Those below are its like. */
static inline void v_exp_chunk_f32(float *restrict out, const float *restrict x, int64_t n) {
    w_map_f32(out, x, n, w_exp_f32);
}
static inline void v_log_chunk_f32(float *restrict out, const float *restrict x, int64_t n) {
    w_map_inside_f32(out, x, n, w_log_f32, v_log_f32, 0x1p-126f, V_INF_F32);
}
static inline void v_tanh_chunk_f32(float *restrict out, const float *restrict x, int64_t n) {
    w_map_f32(out, x, n, w_tanh_f32);
}
static inline void v_sigmoid_chunk_f32(float *restrict out, const float *restrict x, int64_t n) {
    w_map_f32(out, x, n, w_sigmoid_f32);
}

#endif
