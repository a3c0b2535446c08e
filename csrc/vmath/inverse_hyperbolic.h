/* inverse_hyperbolic.h: asinh, acosh and atanh.
 *
 * Functions of one float are logarithms of a ratio u / v. With m = 2^k v close to u,
 *      log(u / v) = k ln 2 + 2 atanh s,    s = (u - m) / (u + m),    -0.12 <= s <= 0.29
 * u - m is exact but for the low parts of u and v. "Error" is the largest error seen over every 7th
 * float, against double precision. Functions of one double are logarithms in parts (log.h).
 */
#ifndef MG_VMATH_INVERSE_HYPERBOLIC_H
#define MG_VMATH_INVERSE_HYPERBOLIC_H

#include "log.h"
#include "simd/scalar.h"

#define V_LN2_HIGH_F32 0x1.62e4p-1f /* 15 bits: whole multiples are exact */
#define V_LN2_REST_F32 0x1.7f7d1cp-20f

/* k of the power 2^k that makes s small: u / v is between 0.79 and 1.79 times 2^k. */
MG_INLINE uint32_t v_ratio_exponent_f32(float u, float v) {
    return (v_bits_f32(u) - v_bits_f32(v) + (1u << 21)) >> 23;
}
MG_INLINE float v_power_of_two_f32(uint32_t k) { return v_from_bits_f32((k + 127u) << 23); }

/* k ln 2 + 2 atanh(s + s_low) */
MG_INLINE float v_area_sum_f32(float k, float s, float s_low) {
    float z = s * s, h = fma_f32(z, 0x1.0c930ep-3f, 0x1.21b104p-3f);
    h = fma_f32(z, fma_f32(z, h, 0x1.99ad98p-3f), 0x1.55554p-2f);
    float base = k * V_LN2_HIGH_F32, twice = s + s, sum = base + twice;
    float low = fma_f32(twice * z, h, fma_f32(k, V_LN2_REST_F32, s_low + s_low));
    return sum + (((base - sum) + twice) + low);
}

/* Half the logarithm of (1 + a) / (1 - a). Error 0.875 at 0x1.d8daf4p-2; without fma 0.833. */
MG_INLINE float v_atanh_f32(float x) {
    float a = v_abs_f32(x), u = 1.0f + a, v = 1.0f - a;
    float u_low = (1.0f - u) + a, v_low = (1.0f - v) - a;
    uint32_t k = v_ratio_exponent_f32(u, v);
    float scale = v_power_of_two_f32(k), m = v * scale;
    float num = (u - m) + fma_f32(-v_low, scale, u_low), den = u + m;
    float inverse = 1.0f / den, s = num * inverse;
    float y = 0.5f * v_area_sum_f32((float)(int32_t)k, s, v_residual_f32(s, den, num) * inverse);
    y = a < 1.0f ? y : (a == 1.0f ? V_INF_F32 : V_NAN_F32);
    return v_copysign_f32(y, x);
}

/* The logarithm of y = base + root + root_low, 1 <= y. For y close to 1, s = (y - 1) / (y + 1) is
 * given as num / den. All arguments are an eighth of the true values, since y + m may overflow. */
MG_INLINE float v_area_log_f32(float base, float root, float root_low, float num, float num_low,
                               float den, float den_low) {
    base *= 0.125f;
    root *= 0.125f;
    float y = base + root, other = y - base;
    float y_low = (root - other) + (base - (y - other)) + 0.125f * root_low;
    uint32_t k = v_ratio_exponent_f32(y, 0.125f);
    float m = v_power_of_two_f32(k - 3u), sum = y + m;
    bool near = k == 0;
    num = near ? num : y - m;
    num_low = near ? num_low : y_low;
    den_low = near ? den_low : ((m > y ? m : y) - sum) + (m > y ? y : m) + y_low;
    den = near ? den : sum;
    float inverse = 1.0f / den, s = num * inverse;
    float s_low = (v_residual_f32(s, den, num) + fma_f32(-s, den_low, num_low)) * inverse;
    return v_area_sum_f32((float)(int32_t)k, s, s_low);
}

/* The logarithm of a + sqrt(a^2 + 1). Error 0.652 at 0x1.029eccp-1; without fma 0.609. */
MG_INLINE float v_asinh_f32(float x) {
    float a = v_abs_f32(x), p = a * a, p_low = -v_residual_f32(a, a, p);
    bool large = a > 0x1p30f, above = p > 1.0f;
    float q = 1.0f + p, q_low = ((above ? p : 1.0f) - q) + (above ? 1.0f : p) + p_low;
    float r = v_sqrt_f32(q);
    float r_low = (v_residual_f32(r, r, q) + q_low) * 0.5f * v_rough_inverse_f32(r);
    r = large ? a : r;
    r_low = large ? 0.0f : r_low;
    float d = 1.0f + r;
    float y = v_area_log_f32(a, r, r_low, a, 0.0f, d, ((r - d) + 1.0f) + r_low);
    y = a < 0x1p-13f ? a : y;
    return a < V_INF_F32 ? v_copysign_f32(y, x) : x;
}

/* The logarithm of x + sqrt(x^2 - 1). Error 0.629 at 0x1.1b9e3ep+0; without fma 0.591. */
MG_INLINE float v_acosh_f32(float x) {
    float t = x - 1.0f, w = x + 1.0f, w_low = (x - w) + 1.0f;
    bool large = x > 0x1p30f;
    float q = t * w, q_low = fma_f32(t, w_low, -v_residual_f32(t, w, q));
    float r = v_sqrt_f32(q);
    float r_low = (v_residual_f32(r, r, q) + q_low) * 0.5f * v_rough_inverse_f32(r);
    r = large ? x : r;
    r_low = large ? 0.0f : r_low;
    float y = v_area_log_f32(x, r, r_low, r, r_low, w, w_low);
    y = x < V_INF_F32 ? y : x;
    return x >= 1.0f ? y : V_NAN_F32;
}

/* ---- double ---- */

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

#endif
