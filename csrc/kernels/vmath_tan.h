/* vmath_tan.h: tangent of every argument, and sinc, for both float widths. Read vmath_trig.h first;
 * "error" is as in vmath_inverse.h. */
#ifndef MG_VMATH_TAN_H
#define MG_VMATH_TAN_H

#include "vmath_inverse.h"
#include "vmath_trig.h"

/* tan of a reduced argument r, by that of its half t: 2 t / (1 - t^2) in even quadrants, in odd ones
 * minus the inverse. Numbers are carried as sums of two, and the quotient is corrected once. */
MG_INLINE double v_tan_eval_f64(v_trig_parts_f64 p, uint64_t sign) {
    double r = p.r + p.r_low, r_low = (p.r - r) + p.r_low; /* r_low may be large for tiny r */
    double u = 0.5 * r, z = u * u, zz = z * z;
    double q0 = fma_f64(z, 0x1.111111110c04ep-3, 0x1.5555555555581p-2);
    double q2 = fma_f64(z, 0x1.664f465e4a242p-6, 0x1.ba1ba1c0b3485p-5);
    double q4 = fma_f64(z, 0x1.d6bcf05bca71p-9, 0x1.226e9b1402d48p-7);
    double q6 = fma_f64(z, 0x1.24901be055beep-11, 0x1.7f38e54326c43p-10);
    q6 = fma_f64(zz, 0x1.5a54be32fc814p-12, q6);
    q0 = fma_f64(zz, q2, q0);
    q4 = fma_f64(zz, q6, q4);
    double w = z * fma_f64(zz * zz, q4, q0), t = fma_f64(u, w, u), square = t * t;
    double t_low = fma_f64(u, w, u - t) + 0.5 * fma_f64(square, r_low, r_low);
    double n = t + t, n_low = t_low + t_low;
    double d = 1.0 - square;
    double d_low = ((1.0 - d) - square) - fma_f64(n, t_low, v_mul_low_f64(t, t, square));
    bool odd = v_from_bits_f64((p.quadrant & 1u) << 52) > 0.0;
    double den = odd ? n : d, den_low = odd ? n_low : d_low;
    n = odd ? -d : n;
    n_low = odd ? -d_low : n_low;
    double inverse = v_reciprocal_f64(den), y = n * inverse;
    double rest = fma_f64(-y, den_low, v_residual_f64(y, den, n)) + n_low;
    return v_from_bits_f64(v_bits_f64(fma_f64(rest, inverse, y)) ^ sign);
}

/* Right for |x| <= V_TRIG_MAX_F64. Error 0.728 at -0x1.8cb2e17456d2ap-1; without fma 0.685. */
MG_INLINE double v_tan_f64(double x) {
    double a = v_abs_f64(x), y = v_tan_eval_f64(v_trig_reduce_f64(a), v_bits_f64(x) & V_SIGN_F64);
    return a < 0x1p-27 ? x : y;
}
/* Right for |x| <= V_TRIG_MAX_F32. Error 0.779 at 0x1.91573ap+8, over every 37th
 * float; without fma 0.833. */
MG_INLINE float v_tan_f32(float x) {
    v_trig_parts_f32 p = v_trig_reduce_f32(v_abs_f32(x));
    float r = p.r, z = r * r;
    float q0 = fma_f32(z, 0x1.110d9ep-3f, 0x1.55556p-2f);
    float q2 = fma_f32(z, 0x1.5cc134p-6f, 0x1.bad9bep-5f);
    float q4 = fma_f32(z, 0x1.9ea934p-14f, 0x1.62c82p-7f);
    q4 = fma_f32(z * z, 0x1.1e8b6cp-8f, q4);
    float q = fma_f32(z * z, fma_f32(z * z, q4, q2), q0), w = z * q;
    float w_low = fma_f32(-v_residual_f32(r, r, z), q, -v_residual_f32(z, q, w));
    float t = fma_f32(r, w, r), low = fma_f32(r, w_low, fma_f32(r, w, r - t));
    low += fma_f32(t * t, p.r_low, p.r_low);
    float even = t + low, odd = -1.0f / even;
    low = (t - even) + low;
    odd = fma_f32(odd, fma_f32(odd, low, v_residual_f32(-odd, even, 1.0f)), odd);
    float y = (p.quadrant & 1u) ? odd : even;
    return v_from_bits_f32(v_bits_f32(y) ^ (v_bits_f32(x) & 0x80000000u));
}

/* Right for every x. */
static MG_NOINLINE __attribute__((unused)) double v_tan_any_f64(double x) {
    if (!(v_abs_f64(x) > V_TRIG_MAX_F64 && v_abs_f64(x) < V_INF_F64)) {
        return v_tan_f64(x);
    }
    return v_tan_eval_f64(trig_reduce_large(x), v_bits_f64(x) & V_SIGN_F64);
}
MG_INLINE float v_tan_any_f32(float x) { return (float)v_tan_any_f64((double)x); }

/* sin(pi r) / (pi r) = 1 + z (c0 + u(z)) for z = r^2, |r| <= 1/2 */
#define V_SINC_FIRST_F32 -0x1.a51a66p+0f
#define V_SINC_FIRST_F64 -0x1.a51a6625307d3p+0
MG_INLINE float v_sinc_rest_f32(float z) {
    float p0 = fma_f32(z, -0x1.86a584p-3f, 0x1.9f9ca6p-1f);
    float p2 = fma_f32(z, -0x1.22632cp-9f, 0x1.abb33ap-6f);
    return z * fma_f32(z * z, p2, p0);
}
MG_INLINE double v_sinc_rest_f64(double z) {
    double zz = z * z;
    double p0 = fma_f64(z, -0x1.86a8e4720a1dbp-3, 0x1.9f9cb402bc429p-1);
    double p2 = fma_f64(z, -0x1.33816997b98cdp-9, 0x1.ac6805cc8999dp-6);
    double p4 = fma_f64(z, -0x1.d3e6a35ceed2ap-18, 0x1.3746a183fc3ddp-13);
    p4 = fma_f64(zz, 0x1.07436bc7e26d7p-22, p4);
    return z * fma_f64(zz, fma_f64(zz, p4, p2), p0);
}

#define MG_REAL 32
#include "vmath_tan.inc.h"
#define MG_REAL 64
#include "vmath_tan.inc.h"

#endif
