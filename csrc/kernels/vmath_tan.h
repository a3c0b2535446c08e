/* vmath_tan.h: tangent of every argument, and sinc, for both float widths. Read vmath_trig.h first;
 * "error" is as in vmath_inverse.h. */
#ifndef MG_VMATH_TAN_H
#define MG_VMATH_TAN_H

#include "vmath_inverse.h"
#include "vmath_trig.h"

/* tan of a reduced argument: t = r + r^3 q(r^2) in even quadrants, -1/t in odd ones, both for t
 * carried as a sum of two. */
MG_INLINE double v_tan_eval_f64(v_trig_parts_f64 p, uint64_t sign) {
    double r = p.r, z = r * r, zz = z * z;
    double p0 = fma_f64(z, 0x1.11111111105b3p-3, 0x1.555555555555ep-2);
    double p2 = fma_f64(z, 0x1.664f485caaeddp-6, 0x1.ba1ba1bac15bdp-5);
    double p4 = fma_f64(z, 0x1.d6d2e5898090bp-9, 0x1.226e3a900c52fp-7);
    double p6 = fma_f64(z, 0x1.34bb41af24c7ep-11, 0x1.7db1a93b0f3aep-10);
    double p8 = fma_f64(z, 0x1.5e5532251693dp-14, 0x1.ff380ebf101b5p-13);
    double p10 = fma_f64(z, -0x1.ae8db5d29da0cp-16, 0x1.1a1f589e025e0p-14);
    double p12 = fma_f64(z, -0x1.972651f1ad110p-16, 0x1.98096d851700ap-15);
    p12 = fma_f64(zz, 0x1.48b1b354833e9p-17, p12);
    p8 = fma_f64(zz, p10, p8);
    p4 = fma_f64(zz, p6, p4);
    p0 = fma_f64(zz, p2, p0);
    double q = fma_f64(zz * zz, fma_f64(zz * zz, fma_f64(zz * zz, p12, p8), p4), p0), w = z * q;
    double w_low = fma_f64(-v_residual_f64(r, r, z), q, -v_residual_f64(z, q, w));
    double t = fma_f64(r, w, r), low = fma_f64(r, w_low, fma_f64(r, w, r - t));
    low += fma_f64(t * t, p.r_low, p.r_low);
    double even = t + low, odd = -1.0 / even; /* r_low may be large for tiny r */
    low = (t - even) + low;
    odd = fma_f64(odd, fma_f64(odd, low, v_residual_f64(-odd, even, 1.0)), odd);
    double y = v_from_bits_f64((p.quadrant & 1u) << 52) > 0.0 ? odd : even;
    return v_from_bits_f64(v_bits_f64(y) ^ sign);
}

/* Right for |x| <= V_TRIG_MAX_F64. Error 0.858 at 0x1.f4a2a6a2f83fp+1; without fma 0.918. */
MG_INLINE double v_tan_f64(double x) {
    return v_tan_eval_f64(v_trig_reduce_f64(v_abs_f64(x)), v_bits_f64(x) & V_SIGN_F64);
}
/* Right for |x| <= V_TRIG_MAX_F32. Error 0.000; without fma 0.000. */
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
