/* gamma.h: the logarithm of the gamma function and its derivatives.
 *
 * Large arguments use Stirling's series, cut and fitted. Small arguments use the recurrence to an
 * interval with a polynomial. Negative arguments use reflection (M. Abramowitz and I. A. Stegun,
 * "Handbook of Mathematical Functions", 1964, chapter 6). The float functions compute in double,
 * with error 0.500. Errors and fits are as in erf.h. NaN and the infinities follow the limits.
 */
#ifndef MG_VMATH_GAMMA_H
#define MG_VMATH_GAMMA_H

#include "erf.h"
#include "trig.h"

#define V_PI_F64 0x1.921fb54442d18p+1
#define V_PI_LOW_F64 0x1.1a62633145c07p-53

static const double v_lgamma_middle[] = { /* (lgamma(2 + t) / t - its value at 0) / t */
    0x1.4a34cc4a60fa6p-2, -0x1.13e001a55760ap-4, 0x1.51322ac7d874bp-6, -0x1.e404fc218d9b2p-8,
    0x1.7add6ead6879fp-9, -0x1.38ac5c2d5aff5p-10, 0x1.0b36afa8333dfp-11, -0x1.d3fd4b5c4b6edp-13,
    0x1.a127a02597d5ap-14, -0x1.78de9ca4b4d8dp-15, 0x1.5810571629c28p-16, -0x1.3cb38c5ce062cp-17,
    0x1.255a7fb5669cbp-18, -0x1.1279e1407f095p-19, 0x1.03f7b0a6e9271p-20, -0x1.cde689a229b91p-22,
    0x1.88b21fcacab7ap-23, -0x1.205df6a3f0e31p-23, 0x1.581470b4425f1p-24};
static const double v_lgamma_large[] = { /* Stirling's series times x, in 1 / x^2, x >= 8 */
    0x1.5555555555555p-4, -0x1.6c16c16c10957p-9, 0x1.a01a015d9dfcfp-11, -0x1.381331ca80625p-11,
    0x1.b920c2e7ceed1p-11, -0x1.ee6910ec571b5p-10, 0x1.466272eadade1p-8};
static const double v_digamma_middle[] = { /* (p(w) - p(0)) / w for p = digamma(x) / (x - root) */
    -0x1.b1cb63005ee98p-2, 0x1.eca189b8e6f7bp-3, -0x1.2feeeb98a7961p-3, 0x1.8512e59037f07p-4,
    -0x1.fb44202a1bd18p-5, 0x1.4de9aa1800cd1p-5, -0x1.b9f8b11dba4e1p-6, 0x1.25647156b1781p-6,
    -0x1.863563b6477b1p-7, 0x1.03c0b2a5da7d8p-7, -0x1.5a06ab358c285p-8, 0x1.cd1f2996cbcebp-9,
    -0x1.336d71fa9f401p-9, 0x1.99e185b9bfbf1p-10, -0x1.0fb647d696ac9p-10, 0x1.69bbf3a4575f6p-11,
    -0x1.fd6f4b74fd743p-12, 0x1.56bdc604763c3p-12, -0x1.30121b6be52fp-13, 0x1.80599e58d6e82p-14,
    -0x1.757b2cbfb692dp-13, 0x1.00a7631104dcp-13};
static const double v_digamma_large[] = { /* (log(x) - 1 / (2 x) - digamma(x)) x^2 in 1 / x^2 */
    0x1.5555555555555p-4, -0x1.111111110a7ap-7, 0x1.041040cad2181p-8, -0x1.1110b764e8df9p-8,
    0x1.f039a6380387fp-8, -0x1.5334eac56a6ap-6, 0x1.050ca54735c78p-4};
static const double v_trigamma_large[] = { /* (trigamma(x) - 1 / x - 1 / (2 x^2)) x^3 in 1 / x^2 */
    0x1.5555555555555p-3, -0x1.111111110f973p-5, 0x1.86186178ff949p-6, -0x1.111104e4077d3p-5,
    0x1.3647c75a5d984p-4, -0x1.026ababbece0fp-2, 0x1.1b9fd705964cdp+0, -0x1.233f7cc5eb4b5p+2};

MG_INLINE bool v_is_integer_f64(double a) { /* a >= 0 */
    return (a >= 0x1p52) | ((a + 0x1p52) - 0x1p52 == a);
}
/* x less the nearest integer */
MG_INLINE double v_fraction_f64(double x) {
    double a = v_abs_f64(x);
    return a < 0x1p51 ? x - ((x + 0x1.8p52) - 0x1.8p52) : v_is_integer_f64(a) ? 0.0 : 0.5;
}
/* sin and cos of pi f, |f| <= 0.5 */
MG_INLINE v_trig_parts_f64 v_half_turn_f64(double f) {
    double t = fma_f64(f, 2.0, 0x1.8p52), g = fma_f64(t - 0x1.8p52, -0.5, f);
    double r = g * V_PI_F64, r_low = v_mul_low_f64(g, V_PI_F64, r) + g * V_PI_LOW_F64;
    return (v_trig_parts_f64){r, r_low, v_bits_f64(t)};
}
MG_INLINE double v_sin_half_turn_f64(double f) {
    v_trig_parts_f64 p = v_half_turn_f64(f);
    return v_trig_eval_f64(p, p.quadrant, 0);
}
MG_INLINE double v_cos_half_turn_f64(double f) {
    v_trig_parts_f64 p = v_half_turn_f64(f);
    return v_trig_eval_f64(p, p.quadrant + 1u, 0);
}

MG_INLINE v_pair_f64 v_add_pairs_f64(v_pair_f64 a, v_pair_f64 b) {
    v_pair_f64 s = v_sum_f64(a.high, b.high);
    return v_fast_sum_f64(s.high, s.low + (a.low + b.low));
}

/* lgamma(2 + t), |t| <= 0.5 */
MG_INLINE v_pair_f64 v_lgamma_middle_pair_f64(double t) {
    v_pair_f64 y = v_product_f64(t, 0x1.b0ee6072093cep-2);
    double rest = fma_f64(t, V_HORNER_F64(v_lgamma_middle, t), 0x1.70c5b7955292dp-58);
    return v_fast_sum_f64(y.high, fma_f64(t, rest, y.low));
}
/* x >= 8: (x - 1/2) (log x - 1) + (log(2 pi) - 1) / 2 + the series */
MG_INLINE v_pair_f64 v_lgamma_large_f64(double x) {
    double v = 1.0 / x, tail = v * V_HORNER_F64(v_lgamma_large, v * v);
    v_pair_f64 l = v_add_pairs_f64(v_log_pair_f64(v_log_split_f64(x)), (v_pair_f64){-1.0, 0.0});
    v_pair_f64 y = v_product_f64(x - 0.5, l.high);
    y.low = fma_f64(x - 0.5, l.low, y.low);
    return v_add_pairs_f64(y, (v_pair_f64){0x1.acfe390c97d69p-2, tail + 0x1.3494bc9001442p-56});
}

/* log |gamma(x)|. Between -18 and 8 it is lgamma(2 + t) and the logarithm of the factors i + t
 * between. Here t = x - n for the nearest integer n. All sums and products have two parts. The
 * result is therefore accurate near the zeros, too. Below -18 the zeros are closer to the poles
 * than any double is.
 *
 * Error 1.84 at 0x1.7be495961604ap+0 for x > 0, 1.00 for x < -18, and between 0.65 away from the
 * zeros. Within 0.01 of the zeros of negative x the absolute error is below 2e-17. Infinity at the
 * poles.
 */
static MG_NOINLINE double v_lgamma_f64(double x) {
    double a = v_abs_f64(x);
    if (!(a < V_INF_F64)) {
        return x == x ? V_INF_F64 : x;
    }
    if (x > 0x1p900) { /* products of two parts overflow before their sum does */
        return x * (v_log_f64(x) - 1.0);
    }
    if (x >= 8.0) {
        v_pair_f64 y = v_lgamma_large_f64(x);
        return y.high + y.low;
    }
    double f = v_fraction_f64(x);
    if (x < -18.0) { /* gamma(x) gamma(-x) = -pi / (x sin pi x) */
        v_pair_f64 y = v_lgamma_large_f64(a);
        double sine = v_abs_f64(v_sin_half_turn_f64(f));
        return sine == 0.0 ? V_INF_F64 : (v_log_f64(V_PI_F64 / a / sine) - y.high) - y.low;
    }
    double n = x - f;
    v_pair_f64 y = v_lgamma_middle_pair_f64(f), product = {1.0, 0.0};
    for (double i = n > 2.0 ? 2.0 : n; i < (n > 2.0 ? n : 2.0); i += 1.0) {
        v_pair_f64 factor = v_sum_f64(i, f), p = v_product_f64(product.high, factor.high);
        p.low += fma_f64(product.high, factor.low, product.low * factor.high);
        product = v_fast_sum_f64(p.high, p.low);
    }
    if (product.high == 0.0) {
        return V_INF_F64;
    }
    if (product.high < 0.0) {
        product = (v_pair_f64){-product.high, -product.low};
    }
    v_pair_f64 l = v_log_of_pair_f64(product);
    y = v_add_pairs_f64(y, n > 2.0 ? l : (v_pair_f64){-l.high, -l.low});
    return y.high + y.low;
}

#define V_DIGAMMA_ROOT_F64 0x1.762d86356be3fp+0
#define V_DIGAMMA_ROOT_LOW_F64 0x1.b86a722197829p-54

/* 1 <= x <= 2 */
MG_INLINE v_pair_f64 v_digamma_middle_pair_f64(v_pair_f64 x) {
    const double c = 0x1.e6f0cbb873616p-1, c_low = 0x1.8bc51cb49ef03p-55;
    double w = x.high - 1.5, p = V_HORNER_F64(v_digamma_middle, w);
    double q = fma_f64(w, p, c), q_low = fma_f64(w, p, c - q) + c_low;
    double z = x.high - V_DIGAMMA_ROOT_F64, z_low = x.low - V_DIGAMMA_ROOT_LOW_F64;
    v_pair_f64 y = v_product_f64(z, q);
    y.low += fma_f64(z, q_low, z_low * q);
    return y;
}
MG_INLINE double v_digamma_large_of_f64(double x) { /* x >= 8 */
    double v = 1.0 / x, tail = v * fma_f64(v, V_HORNER_F64(v_digamma_large, v * v), 0.5);
    v_pair_f64 l = v_log_pair_f64(v_log_split_f64(x));
    return l.high + (l.low - tail);
}
/* Between -8 and 8, the polynomial on [1, 2] and the terms 1 / (i + f) of the recurrence. Here f =
 * x - n for the nearest integer n. The zero on [1, 2] is split off from the polynomial. Below -8,
 * reflection.
 *
 * Error 0.765 at -0x1.fe4de63d3b4dap-2, for x > 0 and down to -8 away from the zeros. Within 0.01
 * of these zeros the absolute error is below 2e-17. Below -8 the absolute error of the finite part
 * is below three units in the last place of log |x|. At 0 the result is infinite, with the sign of
 * -x. At the negative integers it is NaN.
 */
static MG_NOINLINE double v_digamma_f64(double x) {
    if (v_abs_f64(x) < 0x1p-60) {
        return -1.0 / x;
    }
    if (!(x < 8.0)) {
        return x < V_INF_F64 ? v_digamma_large_of_f64(x) : x;
    }
    double f = v_fraction_f64(x), n = x - f;
    if (x < 0.0 && f == 0.0) {
        return V_NAN_F64;
    }
    if (x < -8.0) {
        double cotangent = v_cos_half_turn_f64(f) / v_sin_half_turn_f64(f);
        return fma_f64(-V_PI_F64, cotangent, v_digamma_large_of_f64(1.0 - x));
    }
    double m = f < 0.0 ? 2.0 : 1.0; /* 1 <= m + f <= 2 */
    v_pair_f64 y = v_digamma_middle_pair_f64(v_sum_f64(m, f)), sum = {0.0, 0.0};
    for (double i = n > m ? m : n; i < (n > m ? n : m); i += 1.0) {
        sum = v_add_pairs_f64(sum, v_quotient_f64((v_pair_f64){1.0, 0.0}, v_sum_f64(i, f)));
    }
    y = v_add_pairs_f64(y, n > m ? sum : (v_pair_f64){-sum.high, -sum.low});
    return y.high + y.low;
}

MG_INLINE double v_trigamma_large_of_f64(double x) { /* x >= 8 */
    double v = 1.0 / x;
    return fma_f64(v * v, fma_f64(v, V_HORNER_F64(v_trigamma_large, v * v), 0.5), v);
}
/* Between -8 and 8 the recurrence, below it reflection. Error 1.83 at 0x1.6f4b6477bdfc7p-486 for x
 * > -8, below that 3.96 at -0x1.16d334426f6adp+3. Infinite at the poles. */
static MG_NOINLINE double v_trigamma_f64(double x) {
    if (v_abs_f64(x) < 0x1p-60) {
        return 1.0 / x * (1.0 / x);
    }
    if (!(x < 8.0)) {
        return v_trigamma_large_of_f64(x);
    }
    double f = v_fraction_f64(x);
    if (x < 0.0 && f == 0.0) {
        return V_INF_F64;
    }
    if (x < -8.0) { /* trigamma(x) + trigamma(1 - x) = (pi / sin pi x)^2 */
        double s = V_PI_F64 / v_sin_half_turn_f64(f);
        return fma_f64(s, s, -v_trigamma_large_of_f64(1.0 - x));
    }
    int steps = (int)(9.0 - x);
    v_pair_f64 y = {v_trigamma_large_of_f64(x + steps), 0.0};
    for (int i = steps - 1; i >= 0; i--) {
        double t = x + i;
        v_pair_f64 s = v_sum_f64(y.high, 1.0 / (t * t));
        y = (v_pair_f64){s.high, y.low + s.low};
    }
    return y.high + y.low;
}

MG_INLINE float v_lgamma_f32(float x) { return (float)v_lgamma_f64((double)x); }
MG_INLINE float v_digamma_f32(float x) { return (float)v_digamma_f64((double)x); }
MG_INLINE float v_trigamma_f32(float x) { return (float)v_trigamma_f64((double)x); }

#endif
