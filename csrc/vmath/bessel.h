/* bessel.h: modified Bessel functions of the first kind, I0 and I1, and e^-|x| times I0 and I1.
 *
 * For |x| < 8 the power series in (x / 2)^2 serves. Beyond it, the result is e^x / sqrt(x) times a
 * function of 1 / x (M. Abramowitz and I. A. Stegun, "Handbook of Mathematical Functions", 1964,
 * 9.6.10 and 9.7.1). Both are refitted. The float functions compute in double, with error 0.500.
 * Errors and fits are as in erf.h.
 */
#ifndef MG_VMATH_BESSEL_H
#define MG_VMATH_BESSEL_H

#include "erf.h"

static const double v_i0_small[] = { /* (I0(x) - 1) / y in y = (x / 2)^2, y <= 16 */
    0x1p+0, 0x1p-2, 0x1.c71c71c71c71cp-6, 0x1.c71c71c71c733p-10, 0x1.23456789abb03p-14,
    0x1.02e85c089b76ep-19, 0x1.522a43f602038p-25, 0x1.522a43fce2da3p-31, 0x1.0b31322bd0cc8p-37,
    0x1.56018fef71c2p-44, 0x1.69ca2ba525453p-51, 0x1.419c74031b0afp-58, 0x1.e6db693f8f799p-66,
    0x1.3fa7e1a816e2cp-73, 0x1.5ffa992227642p-81, 0x1.89cdb0a2f1373p-89, 0x1.4d3422a9fe81dp-97};
static const double v_i1_small[] = { /* (2 I1(x) / x - 1) / y */
    0x1p-1, 0x1.5555555555555p-4, 0x1.c71c71c71c733p-8, 0x1.6c16c16c169acp-12,
    0x1.845c8a0ce9a46p-17, 0x1.27e4fb7733249p-22, 0x1.522a43ff06dffp-28, 0x1.2c97583db742p-34,
    0x1.ab81fa8dc919bp-41, 0x1.f1756181be545p-48, 0x1.e274cabd873dap-55, 0x1.8b17dd9001febp-62,
    0x1.1bd7e98d55227p-69, 0x1.17d0f2f96761bp-77, 0x1.8e264606d8452p-84, -0x1.88544c81b11a9p-91,
    0x1.02e8705543987p-97};
static const double v_i0_large[] = { /* e^-x I0(x) sqrt(x) in 16 / x - 1, x >= 8 */
    0x1.9bd428ad249a5p-2, 0x1.b87969bb93a86p-9, 0x1.1daa72b5c2a5bp-13, 0x1.75e5ee7715603p-17,
    0x1.8e513cdd036eap-20, 0x1.3f4995f1ae054p-22, 0x1.7d0c8ac0c95bdp-24, 0x1.51d527390627ap-25,
    0x1.728eea202e002p-26, 0x1.02e0df014dbbfp-27, -0x1.d78b5ef681198p-28, -0x1.c9e17ee156f91p-27,
    -0x1.57f68349ade25p-28, 0x1.f81f75a6bbbc8p-28, 0x1.bef264deae83bp-28, -0x1.aed141ebba53ap-29,
    -0x1.361cdfd06bdc6p-28, 0x1.2fc06b6451149p-30, 0x1.27e13cfe8f2dbp-29, -0x1.343a883418a17p-32,
    -0x1.62f9921faf5a7p-31, 0x1.3f3b630754f6p-35, 0x1.8e64c9955b78ap-34};
static const double v_i1_large[] = { /* e^-x I1(x) sqrt(x) in 16 / x - 1, x >= 8 */
    0x1.8ebe783a8403p-2, -0x1.3f796198ee5f2p-7, -0x1.cbc54df1e050bp-13, -0x1.f89c230b1cf25p-17,
    -0x1.ec8e11b45e967p-20, -0x1.76136f223df93p-22, -0x1.ad8b9d61657c8p-24, -0x1.7280319bad32p-25,
    -0x1.91d68464f4c3p-26, -0x1.20eff2f37ec91p-27, 0x1.d55d045483b3p-28, 0x1.df9cb79858459p-27,
    0x1.822bde3dab62ep-28, -0x1.ff940358dd6f7p-28, -0x1.e302078014e24p-28, 0x1.a842332c07ef2p-29,
    0x1.4e06c7992ad89p-28, -0x1.2338832d065dcp-30, -0x1.4088592c4dc8ap-29, 0x1.219eba5c76178p-32,
    0x1.8401b5638e90dp-31, -0x1.2806d79db870dp-35, -0x1.b7ad7dda6c9b3p-34};

#define V_BESSEL_TERMS_SMALL 17
#define V_BESSEL_TERMS_LARGE 23

/* I0(a), or 2 I1(a) / a, for a = |x| < 8. The rounding error of y counts fourfold in the result. It
 * is multiplied by the derivative, which Horner's rule gives on the way, and added. */
MG_INLINE double v_bessel_small_f64(const double *c, double a) {
    v_pair_f64 y = v_product_f64(0.5 * a, 0.5 * a);
    double p = c[V_BESSEL_TERMS_SMALL - 1], partial = 0.0;
    for (int i = V_BESSEL_TERMS_SMALL - 2; i >= 0; i--) {
        partial = fma_f64(partial, y.high, p);
        p = fma_f64(p, y.high, c[i]);
    }
    partial = fma_f64(partial, y.high, p);
    return 1.0 + fma_f64(y.high, p, y.low * partial);
}
/* a >= 8: e^-a I(a) */
MG_INLINE double v_bessel_large_f64(const double *c, double a) {
    return v_horner_f64(16.0 / a - 1.0, c, V_BESSEL_TERMS_LARGE) / __builtin_sqrt(a);
}
/* e^x y, scaled last: e^x overflows before the product does */
MG_INLINE double v_bessel_scale_f64(double a, double y) {
    v_exp_parts_f64 p = v_exp_split_f64(a < 720.0 ? a : 720.0, 0.0, 1100.0);
    v_pair_f64 e = v_exp_pair_f64(p);
    double z = v_scale_bits_f64(fma_f64(e.high, y, e.low * y), p.n);
    return a > 720.0 ? V_INF_F64 : z; /* for large x, y alone goes to 0 */
}

/* Error 2.51 at 0x1.01cca1fb75b14p+4; without fma 2.84. */
static MG_NOINLINE double v_i0_f64(double x) {
    double a = v_abs_f64(x);
    if (a >= 8.0) {
        return v_bessel_scale_f64(a, v_bessel_large_f64(v_i0_large, a));
    }
    return v_bessel_small_f64(v_i0_small, a);
}
/* Error 2.12 at 0x1.dc3eedf90bad5p+1; without fma 2.84. */
static MG_NOINLINE double v_i0e_f64(double x) {
    double a = v_abs_f64(x);
    if (a >= 8.0) {
        return v_bessel_large_f64(v_i0_large, a);
    }
    return v_bessel_scale_f64(-a, v_bessel_small_f64(v_i0_small, a));
}
/* Error 2.64 at 0x1.e1932dff3e531p+2; without fma 2.85. */
static MG_NOINLINE double v_i1_f64(double x) {
    double a = v_abs_f64(x);
    if (a >= 8.0) {
        return v_copysign_f64(v_bessel_scale_f64(a, v_bessel_large_f64(v_i1_large, a)), x);
    }
    return 0.5 * x * v_bessel_small_f64(v_i1_small, a);
}
/* Error 2.22 at 0x1.49e93a246a762p+1; without fma 2.56. */
static MG_NOINLINE double v_i1e_f64(double x) {
    double a = v_abs_f64(x);
    if (a >= 8.0) {
        return v_copysign_f64(v_bessel_large_f64(v_i1_large, a), x);
    }
    return v_bessel_scale_f64(-a, 0.5 * x * v_bessel_small_f64(v_i1_small, a));
}

MG_INLINE float v_i0_f32(float x) { return (float)v_i0_f64((double)x); }
MG_INLINE float v_i0e_f32(float x) { return (float)v_i0e_f64((double)x); }
MG_INLINE float v_i1_f32(float x) { return (float)v_i1_f64((double)x); }
MG_INLINE float v_i1e_f32(float x) { return (float)v_i1e_f64((double)x); }

#endif
