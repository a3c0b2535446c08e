/* rounding.h: rounding to integers, division with remainder and other exact functions of both float
 * widths. */
#ifndef MG_VMATH_ROUNDING_H
#define MG_VMATH_ROUNDING_H

#include "simd/scalar.h"

/* 1 if an instruction rounds to an integer. In that case nothing calls the C library. */
#if defined(__SSE4_1__) || defined(__aarch64__)
#define V_HAS_ROUND 1
MG_INLINE float v_floor_f32(float x) { return __builtin_floorf(x); }
MG_INLINE double v_floor_f64(double x) { return __builtin_floor(x); }
MG_INLINE float v_ceil_f32(float x) { return __builtin_ceilf(x); }
MG_INLINE double v_ceil_f64(double x) { return __builtin_ceil(x); }
MG_INLINE float v_trunc_f32(float x) { return __builtin_truncf(x); }
MG_INLINE double v_trunc_f64(double x) { return __builtin_trunc(x); }
/* Rounds half to even. */
MG_INLINE float v_round_f32(float x) { return __builtin_rintf(x); }
MG_INLINE double v_round_f64(double x) { return __builtin_rint(x); }
#else
#define V_HAS_ROUND 0
#endif

/* fmod for |x| >= |y| by long division of the significands, eleven quotient bits at a time. */
static MG_NOINLINE double v_fmod_long(double x, double y) {
    uint64_t ux = v_bits_f64(x) & ~V_SIGN_F64, uy = v_bits_f64(y) & ~V_SIGN_F64;
    int ex = (int)(ux >> 52), ey = (int)(uy >> 52);
    if (ex == 2047 || ey == 2047 || uy == 0) return V_NAN_F64;
    uint64_t mx = ux & V_FRACTION_F64, my = uy & V_FRACTION_F64;
    if (ex) mx |= V_FRACTION_F64 + 1;
    if (ey) my |= V_FRACTION_F64 + 1;
    int exponent = ey ? ey - 1 : 0, shift = (ex ? ex - 1 : 0) - exponent; /* of the last bits */
    uint64_t r = mx % my;
    while (shift > 0 && r) {
        int step = shift < 11 ? shift : 11;
        r = (r << step) % my;
        shift -= step;
    }
    uint64_t unit = exponent < 52 ? (uint64_t)1 << exponent : (uint64_t)(exponent - 51) << 52;
    return v_copysign_f64((double)r * v_from_bits_f64(unit), x);
}

#define MG_REAL 32
#include "rounding.inc.h"
#define MG_REAL 64
#include "rounding.inc.h"

#endif
