/* sinc.h: sin(pi x) / (pi x), for both float widths; "error" is as in roots.h. */
#ifndef MG_VMATH_SINC_H
#define MG_VMATH_SINC_H

#include "simd/scalar.h"

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
#include "sinc.inc.h"
#define MG_REAL 64
#include "sinc.inc.h"

#endif
