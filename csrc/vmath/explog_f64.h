/* explog_f64.h: functions of one double made of exponentials and logarithms.
 *
 * All of them split their argument as v_exp_f64 and v_log_f64 do, but keep what comes before the
 * last addition as an unevaluated sum of two (pair.h), so that the only rounding that counts
 * is the last one; where the result is subnormal, the one before it too. "Error" is as in
 * f64.h; without fma it is the same unless another is given.
 */
#ifndef MG_VMATH_EXPLOG_F64_H
#define MG_VMATH_EXPLOG_F64_H

#include "pair.h"

/* What V_LOG2E_F64 lacks. */
#define V_LOG2E_LOW_F64 0x1.777d0ffda0d24p-56

/* ---- what they share ---- */

/* x as a number not above limit in magnitude; NaN becomes the limit. */
MG_INLINE double v_limit_f64(double x, double limit) {
    double a = v_from_bits_f64(v_min_bits_f64(v_bits_f64(v_abs_f64(x)), v_bits_f64(limit)));
    return v_copysign_f64(a, x);
}

/* As v_exp_split_f64 for 2^(x + x_low): r = (x - n) ln 2. */
MG_INLINE v_exp_parts_f64 v_exp2_split_f64(double x, double x_low, double n_top) {
    const double magic = 0x1.8p52 + 2046;
    uint64_t bits = v_min_bits_f64(v_bits_f64(x + magic), v_bits_f64(magic + n_top));
    double d = x - (v_from_bits_f64(bits) - magic);
    v_pair_f64 r = v_product_f64(d, V_LN2_F64);
    r.low += fma_f64(d, V_LN2_LOW_F64, x_low * V_LN2_F64);
    return (v_exp_parts_f64){r.high, r.low, r.high + r.low, bits};
}
/* e^r - 1 = r + h + r^3 q(r), h = r^2 / 2, the first two terms added without loss. */
MG_INLINE v_pair_f64 v_expm1_pair_f64(v_exp_parts_f64 p) {
    double r = p.r, rounding = (p.r_high - r) + p.r_low, z = r * r, zz = z * z;
    double q0 = fma_f64(r, 0x1.5555555555555p-5, 0x1.5555555555556p-3);
    double q2 = fma_f64(r, 0x1.6c16c16c167e1p-10, 0x1.11111111109b3p-7);
    double q4 = fma_f64(r, 0x1.a01a01a47b054p-16, 0x1.a01a01a7c41d5p-13);
    double q6 = fma_f64(r, 0x1.27e4e1f48534fp-22, 0x1.71de0dae63bb3p-19);
    double q8 = fma_f64(r, 0x1.1f66df7fca49fp-29, 0x1.af38a9b0ec855p-26);
    double q = fma_f64(zz, fma_f64(zz, q8, fma_f64(z, q6, q4)), fma_f64(z, q2, q0));
    v_pair_f64 h = v_product_f64(0.5 * r, r), y = v_fast_sum_f64(p.r_high, h.high);
    double low = fma_f64(rounding, r, h.low) + (y.low + p.r_low);
    return v_fast_sum_f64(y.high, fma_f64(z * r, q, low));
}
/* e^r */
MG_INLINE v_pair_f64 v_exp_pair_f64(v_exp_parts_f64 p) {
    v_pair_f64 w = v_expm1_pair_f64(p), e = v_fast_sum_f64(1.0, w.high);
    return v_fast_sum_f64(e.high, e.low + w.low);
}
/* y 2^n, rounded where the result is subnormal */
MG_INLINE double v_scale_bits_f64(double y, uint64_t n) {
    return y * v_pow2_half_f64(n) * v_pow2_rest_f64(n);
}

/* The natural logarithm k ln 2 + f - h + s q + f_low / (1 + f), as v_log_series_f64 has it, the
 * first three terms added without loss. The low part may have several bits of the high one's. */
MG_INLINE v_pair_f64 v_log_pair_f64(v_log_parts_f64 p) {
    v_pair_f64 y = v_fast_sum_f64(p.k * V_LN2_HI_F64, p.f), h = v_product_f64(0.5 * p.f, p.f);
    v_pair_f64 t = v_fast_sum_f64(y.high, -h.high);
    v_log_series_f64 l = v_log_series_of_f64(p.f);
    double low = fma_f64(p.f_low, 1.0 - p.f, -h.low);
    low = fma_f64(l.s, l.q, low) + (y.low + t.low);
    return (v_pair_f64){t.high, fma_f64(p.k, V_LN2_LO_F64, low)};
}
/* The logarithm to a base b by per_e = 1 / log b and per_2 = log 2 / log b, whose high part has
 * 42 bits. */
MG_INLINE v_pair_f64 v_log_base_f64(v_log_parts_f64 p, v_pair_f64 per_e, v_pair_f64 per_2) {
    v_pair_f64 a = v_log_pair_f64((v_log_parts_f64){0.0, p.f, p.f_low});
    v_pair_f64 b = v_product_f64(a.high, per_e.high);
    b.low += fma_f64(a.high, per_e.low, a.low * per_e.high);
    v_pair_f64 y = v_fast_sum_f64(p.k * per_2.high, b.high);
    y.low += fma_f64(p.k, per_2.low, b.low);
    return y;
}
MG_INLINE v_pair_f64 v_log2_pair_f64(v_log_parts_f64 p) {
    const v_pair_f64 per_e = {V_LOG2E_F64, V_LOG2E_LOW_F64}, per_2 = {1.0, 0.0};
    return v_log_base_f64(p, per_e, per_2);
}
/* 1 + 2^n e^r */
MG_INLINE v_log_parts_f64 v_log1p_exp_split_f64(v_exp_parts_f64 p) {
    v_pair_f64 e = v_exp_pair_f64(p);
    return v_log1p_split_f64(v_scale_bits_f64(e.high, p.n), v_scale_bits_f64(e.low, p.n));
}
/* log(1 + u), or log 2a where a is so large that u would overflow and 2a says the same */
MG_INLINE double v_log1p_or_log_f64(v_pair_f64 u, double a) {
    bool large = a > 0x1p60;
    v_log_parts_f64 p = v_log1p_split_f64(large ? a : u.high, large ? 0.0 : u.low);
    p.k += large ? 1.0 : 0.0;
    v_pair_f64 y = v_log_pair_f64(p);
    return a < V_INF_F64 ? y.high + y.low : a;
}

/* ---- inverse hyperbolic functions ---- */

/* log(1 + u), where u = a + a^2 / (1 + sqrt(1 + a^2)). Error 0.641 at -0x1.693f732341a5bp-2. */
MG_INLINE double v_asinh_f64(double x) {
    double a = v_abs_f64(x);
    v_pair_f64 square = v_product_f64(a, a), t = v_sum_f64(1.0, square.high);
    t.low += square.low;
    v_pair_f64 root = v_root_f64(t), d = v_fast_sum_f64(root.high, 1.0);
    d.low += root.low;
    v_pair_f64 q = v_quotient_f64(square, d), u = v_fast_sum_f64(a, q.high);
    u.low += q.low;
    return v_copysign_f64(v_log1p_or_log_f64(u, a), x);
}

/* log(1 + u), where u = (x - 1) + sqrt(x^2 - 1). Error 0.642 at 0x1.100f12f7d3a28p+0. */
MG_INLINE double v_acosh_f64(double x) {
    v_pair_f64 square = v_product_f64(x, x), t = v_fast_sum_f64(square.high, -1.0);
    t = v_fast_sum_f64(t.high, t.low + square.low); /* much was cancelled near x = 1 */
    v_pair_f64 root = v_root_f64(t), less = v_fast_sum_f64(x, -1.0);
    v_pair_f64 u = v_fast_sum_f64(root.high, less.high);
    u.low += root.low + less.low;
    return x > 1.0 ? v_log1p_or_log_f64(u, x) : (x == 1.0 ? 0.0 : V_NAN_F64);
}

/* log(1 + u) / 2, where u = 2a / (1 - a). Error 0.648 at 0x1.5aea7027bdae6p-3. */
MG_INLINE double v_atanh_f64(double x) {
    double a = v_abs_f64(x);
    v_pair_f64 u = v_quotient_f64((v_pair_f64){2.0 * a, 0.0}, v_fast_sum_f64(1.0, -a));
    v_pair_f64 log = v_log_pair_f64(v_log1p_split_f64(u.high, u.low));
    double y = a < 1.0 ? 0.5 * (log.high + log.low) : (a == 1.0 ? V_INF_F64 : V_NAN_F64);
    return v_copysign_f64(y, x);
}

/* ---- log(e^a + e^b) ---- */

/* What logaddexp and logaddexp2 do with infinities and NaN. */
MG_INLINE double v_logaddexp_edges_f64(double a, double b, double y) {
    double m = a > b ? a : b;
    y = v_abs_f64(m) < V_INF_F64 ? y : m;
    return ((a != a) | (b != b)) ? a + b : y;
}

/* m + log(1 + e^-|a - b|), m = max(a, b). Where the result is less than |m| / 2, the terms having
 * cancelled, the error is 0.728 units of m at (-0x1.843328b56297ep-3, -0x1.196021b018121p+0);
 * elsewhere 0.969 units of the result at (-0x1.c269968b46304p-3, -0x1.1d3e9f8310eccp+0). */
MG_INLINE double v_logaddexp_f64(double a, double b) {
    double m = a > b ? a : b, o = a > b ? b : a;
    v_pair_f64 d = v_sum_f64(o, -m);
    double low = d.high > -800.0 ? d.low : 0.0;
    v_exp_parts_f64 p = v_exp_split_f64(v_limit_f64(d.high, 800.0), low, 1024.0);
    v_pair_f64 log = v_log_pair_f64(v_log1p_exp_split_f64(p)), y = v_sum_f64(m, log.high);
    return v_logaddexp_edges_f64(a, b, y.high + (y.low + log.low));
}
/* The same with powers and logarithms of 2. A power near the subnormal numbers is multiplied with
 * log2 e before it is scaled, since it would be rounded there before and after. Error likewise:
 * 0.909 units of m at (-0x1.f3480fae50a5p-3, -0x1.9d8653f5b34ep+0), elsewhere 0.926 units of the
 * result at (-0x1.becf6e4f23628p-3, -0x1.a3ef4a92ec41fp+0). */
MG_INLINE double v_logaddexp2_f64(double a, double b) {
    double m = a > b ? a : b, o = a > b ? b : a;
    v_pair_f64 d = v_sum_f64(o, -m);
    double low = d.high > -1100.0 ? d.low : 0.0;
    v_exp_parts_f64 p = v_exp2_split_f64(v_limit_f64(d.high, 1100.0), low, 1024.0);
    v_pair_f64 log = v_log2_pair_f64(v_log1p_exp_split_f64(p)), y = v_sum_f64(m, log.high);
    v_pair_f64 e = v_exp_pair_f64(p), t = v_product_f64(e.high, V_LOG2E_F64);
    t.low += fma_f64(e.high, V_LOG2E_LOW_F64, e.low * V_LOG2E_F64);
    double tiny = m + v_scale_bits_f64(t.high + t.low, p.n);
    return v_logaddexp_edges_f64(a, b, d.high < -1000.0 ? tiny : y.high + (y.low + log.low));
}

/* ---- roots ---- */

/* The cube root of 2^m (1 + f), m = -1, 0 or 1, before its last correction (error 2^-49):
 * z is a polynomial for t^(-1/3), then one step of third order, and the root is t z^2. */
typedef struct {
    double t, y, z;
    uint64_t n; /* the exponent of the result, as in v_exp_parts_f64 */
} v_cbrt_parts_f64;

MG_INLINE v_cbrt_parts_f64 v_cbrt_split_f64(double a) {
    const double magic = 0x1.8p52 + 2046;
    v_log_parts_f64 p = v_log_split_f64(a);
    double n = fma_f64(p.k, 0x1.5555555555555p-2, magic), m = fma_f64(n - magic, -3.0, p.k);
    double t = (1.0 + p.f) * (m < 0.0 ? 0.5 : (m > 0.0 ? 2.0 : 1.0));
    double f = p.f, ff = f * f;
    double z0 = fma_f64(f, -0x1.55425db424c18p-2, 0x1.0000408885053p+0);
    double z2 = fma_f64(f, -0x1.68139545f34a5p-3, 0x1.c5d8eb62af18cp-3);
    double z4 = fma_f64(f, -0x1.baa0c7fa48141p-4, 0x1.48889cac8b49bp-3);
    double z = fma_f64(ff, fma_f64(ff, z4, z2), z0);
    z *= m < 0.0 ? 0x1.428a2f98d728bp+0 : (m > 0.0 ? 0x1.965fea53d6e3dp-1 : 1.0);
    double e = fma_f64(-t * z, z * z, 1.0);
    z = fma_f64(z * e, fma_f64(e, 0x1.c71c71c71c71cp-3, 0x1.5555555555555p-2), z);
    return (v_cbrt_parts_f64){t, t * (z * z), z, v_bits_f64(n)};
}

/* The correction is a Newton step with an exact residual t - y^3, so that the root of a perfect
 * cube is exact. Error 0.500 at 0x1.c64f4826f3e9ep+3. */
MG_INLINE double v_cbrt_f64(double x) {
    double a = v_abs_f64(x);
    v_cbrt_parts_f64 p = v_cbrt_split_f64(a);
    v_pair_f64 square = v_product_f64(p.y, p.y), cube = v_product_f64(square.high, p.y);
    double residual = ((p.t - cube.high) - cube.low) - square.low * p.y;
    double y = fma_f64(residual * (p.z * p.z), 0x1.5555555555555p-2, p.y) * v_pow2_f64(p.n);
    return ((a > 0.0) & (a < V_INF_F64)) ? v_copysign_f64(y, x) : x;
}

#endif
