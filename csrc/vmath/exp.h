/* exp.h: e^x and 2^x of chunks, and e^x of a double in parts.
 *
 * The parts in double (v_exp_parts_f64 and relatives) serve functions that keep all but the last
 * addition as an unevaluated sum of two (pair.h). The last rounding is then the only one that
 * counts. If the result is subnormal, the rounding before it counts, too.
 */
#ifndef MG_VMATH_EXP_H
#define MG_VMATH_EXP_H

#include "chunk.h"
#include "pair.h"

#if defined(__AVX512F__)
V_CHUNKS(exp)
#else
V_NEAR_OF(exp, float, f32)
V_NEAR_OF(exp, double, f64)
#endif
V_NEAR_OF(exp2, float, f32)
V_NEAR_OF(exp2, double, f64)
V_ANY_OF(exp, float, f32)
V_ANY_OF(exp, double, f64)

/* ---- in parts ---- */

typedef struct {
    double r_high, r_low, r;
    uint64_t n; /* n + 2046 in the low twelve bits */
} v_exp_parts_f64;

MG_INLINE v_exp_parts_f64 v_exp_split_f64(double x, double x_low, double n_top) {
    const double magic = 0x1.8p52 + 2046;
    double t = fma_f64(x, V_LOG2E_F64, magic);
    uint64_t bits = v_min_bits_f64(v_bits_f64(t), v_bits_f64(magic + n_top));
    double n = v_from_bits_f64(bits) - magic;
    double r_high = fma_f64(n, -V_LN2_HI_F64, x), r_low = fma_f64(n, -V_LN2_LO_F64, x_low);
    double r = r_high + r_low;
    return (v_exp_parts_f64){r_high, r_low, r, bits};
}
MG_INLINE double v_pow2_f64(uint64_t n) { return v_from_bits_f64((n - 1023) << 52); }
MG_INLINE double v_pow2_half_f64(uint64_t n) { return v_from_bits_f64((n >> 1) << 52); }
MG_INLINE double v_pow2_rest_f64(uint64_t n) { return v_from_bits_f64((n - (n >> 1)) << 52); }

/* x limited to `limit` in magnitude. NaN becomes the limit. */
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
/* e^r - 1 = r + h + r^3 q(r), h = r^2 / 2, with the first two terms added without loss. */
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

#endif
