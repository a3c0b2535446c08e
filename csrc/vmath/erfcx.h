/* erfcx.h: the scaled complementary error function e^(x^2) erfc(x).
 *
 * The function neither underflows nor loses digits where erfc does. Ratios of normal densities and
 * distributions need it.
 */
#ifndef MG_VMATH_ERFCX_H
#define MG_VMATH_ERFCX_H

#include "erf.h"

/* e^(x^2) erfc(x) = 2 e^(x^2) - e^(x^2) erfc(-x). Beyond 28 the asymptotic series serves (NIST
 * Digital Library of Mathematical Functions, 7.12.1). Error 2.02 at -0x1.c44f38521a428p-1, with and
 * without fma. */
static MG_NOINLINE double v_erfcx_f64(double x) {
    double a = v_abs_f64(x);
    if (!(a < 28.0)) {
        double v = 0.5 / (a * a), p = fma_f64(v, 10395.0, -945.0);
        p = fma_f64(v, fma_f64(v, fma_f64(v, fma_f64(v, p, 105.0), -15.0), 3.0), -1.0);
        double y = fma_f64(v, p, 1.0) * 0x1.20dd750429b6dp-1 / a; /* 1 / sqrt pi */
        return x < 0.0 ? V_INF_F64 : y;
    }
    v_pair_f64 g = v_erfcx_pair_f64(a, 0.0);
    double s = a * a, e = v_exp_f64(s);
    e = fma_f64(e, v_mul_low_f64(a, a, s), e);
    return x < 0.0 ? (x < -26.64 ? V_INF_F64 : 2.0 * e - g.high) : g.high + g.low;
}
MG_INLINE float v_erfcx_f32(float x) { return (float)v_erfcx_f64((double)x); }

#endif
