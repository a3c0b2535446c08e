/* vmath_gelu_tanh.h: the tanh form of GELU (D. Hendrycks and K. Gimpel, "Gaussian error linear units",
 * 2016), x (1 + tanh u) / 2 = x sigmoid(2 u) with u = sqrt(2 / pi) (x + 0.044715 x^3), and its slope. */
#ifndef MG_VMATH_GELU_TANH_H
#define MG_VMATH_GELU_TANH_H

#include "vmath_erf.h"

#define V_GELU_CUBE_F64 0x1.6e4e26d4801f7p-5 /* 0.044715 */
#define V_GELU_CUBE_LOW_F64 0x1.441355475a31ap-59
#define V_GELU_TWICE_F64 0x1.9884533d43651p+0 /* 2 sqrt(2 / pi) */
#define V_GELU_TWICE_LOW_F64 -0x1.cbc0d30ebfd15p-54

/* e^-(2 u) = (high + low) 2^n for 0 <= a <= 22; beyond, it is 0 beside 1 and as a factor of a. */
MG_INLINE v_erfc_parts_f64 v_gelu_decay_f64(double a) {
    double z = a * a, z_low = v_mul_low_f64(a, a, z);
    v_pair_f64 k = v_product_f64(V_GELU_CUBE_F64, z), sum = v_sum_f64(1.0, k.high);
    double p = sum.high, p_low = fma_f64(V_GELU_CUBE_F64, z_low, V_GELU_CUBE_LOW_F64 * z);
    p_low += sum.low + k.low;
    double c = V_GELU_TWICE_F64 * a;
    double c_low = fma_f64(V_GELU_TWICE_LOW_F64, a, v_mul_low_f64(V_GELU_TWICE_F64, a, c));
    double t = c * p, t_low = v_mul_low_f64(c, p, t) + fma_f64(c, p_low, c_low * p);
    v_exp_parts_f64 x = v_exp_split_f64(-t, -t_low, 1024.0);
    v_pair_f64 e = v_exp_pair_f64(x);
    return (v_erfc_parts_f64){e.high, e.low, x.n};
}
/* Error 2.30 at -0x1.b297898e74c2ap+2, with and without fma. */
MG_INLINE double v_gelu_tanh_f64(double x) {
    double a = v_limit_f64(v_abs_f64(x), 22.0);
    v_erfc_parts_f64 p = v_gelu_decay_f64(a);
    double e = p.high + p.low, q = a / (1.0 + v_scale_bits_f64(e, p.n));
    double y = v_copysign_f64(x < 0.0 ? v_scale_bits_f64(q * e, p.n) : q, x);
    y = x > 21.0 ? x : y;
    return x == x ? y : x;
}
MG_INLINE double v_gelu_tanh_slope_f64(double x) {
    double a = v_limit_f64(v_abs_f64(x), 22.0);
    v_erfc_parts_f64 p = v_gelu_decay_f64(a);
    double e = v_scale_bits_f64(p.high + p.low, p.n), r = 1.0 / (1.0 + e);
    double steep = V_GELU_TWICE_F64 * fma_f64(3.0 * V_GELU_CUBE_F64, a * a, 1.0);
    double rest = a * steep * (e * r) * r;
    double y = x < 0.0 ? e * r - rest : r + rest;
    return x == x ? y : x;
}
/* In double, without the low parts. */
MG_INLINE double v_gelu_decay_f32(double a) {
    return v_exp_f64(-V_GELU_TWICE_F64 * a * fma_f64(V_GELU_CUBE_F64 * a, a, 1.0));
}
MG_INLINE float v_gelu_tanh_f32(float x) {
    double a = v_limit_f64((double)v_abs_f32(x), 15.0), e = v_gelu_decay_f32(a);
    float y = v_copysign_f32((float)((x < 0.0f ? a * e : a) * v_reciprocal_f64(1.0 + e)), x);
    y = x > 14.0f ? x : y;
    return x == x ? y : x;
}
MG_INLINE float v_gelu_tanh_slope_f32(float x) {
    double a = v_limit_f64((double)v_abs_f32(x), 15.0), e = v_gelu_decay_f32(a);
    double r = v_reciprocal_f64(1.0 + e);
    double steep = V_GELU_TWICE_F64 * fma_f64(3.0 * V_GELU_CUBE_F64, a * a, 1.0);
    double rest = a * steep * (e * r) * r;
    float y = (float)(x < 0.0f ? e * r - rest : r + rest);
    return x == x ? y : x;
}

#endif
