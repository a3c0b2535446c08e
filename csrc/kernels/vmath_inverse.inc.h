/* vmath_inverse.inc.h: the inverse trigonometric functions of one float width. */
#include "real.h"

#define v_abs R(v_abs)
#define v_bits R(v_bits)
#define v_from_bits R(v_from_bits)
#define v_copysign R(v_copysign)
#define v_sqrt R(v_sqrt)
#define v_residual R(v_residual)
#define v_arc R(v_arc)
#define v_keep R(v_keep)
#define HALF REAL_C(0.5)
#define INFINITE REAL_C(__builtin_inf())
/* pi is PI + PI_LOW; halves and quarters of both are exact. */
#define PI BY_WIDTH(0x1.921fb6p+1, 0x1.921fb54442d18p+1)
#define PI_LOW BY_WIDTH(-0x1.777a5cp-24, 0x1.1a62633145c07p-53)

/* An angle as the sum of two, the second small beside the first. */
typedef struct {
    real high, low;
} v_arc;

/* base + angle for |base| >= |angle|, or for base = 0 */
MG_INLINE v_arc R(v_arc_from)(real base, real base_low, real high, real low) {
    real sum = base + high;
    return (v_arc){sum, ((base - sum) + high) + (base_low + low)};
}

/* asin |x| for |x| <= 1/2, else asin sqrt((1 - |x|) / 2) */
MG_INLINE v_arc R(v_asin_core)(real a, bool steep) {
    real z = steep ? HALF - HALF * a : a * a, s = steep ? v_sqrt(z) : a;
    real s_low = steep ? v_residual(s, s, z) * (HALF * R(v_rough_inverse)(s)) : 0;
    return (v_arc){s, fma_real(s * z, R(v_asin_tail)(z), s_low)};
}
/* Error 0.642 at 0x1.09b81p-1, without fma 0.641;
 * in double 0.642 at -0x1.01bab11f798cep-1, without fma 0.673. NaN for |x| > 1. */
MG_INLINE real R(v_asin)(real x) {
    real a = v_abs(x);
    bool steep = a > HALF;
    v_arc p = R(v_asin_core)(a, steep);
    real scale = steep ? -2 : 1;
    real parts = steep ? HALF : 0; /* of pi */
    p = R(v_arc_from)(parts * PI, parts * PI_LOW, scale * p.high, scale * p.low);
    return v_copysign(p.high + p.low, x);
}
/* Error 0.606 at 0x1.15f36ap-1, without fma 0.622;
 * in double 0.616 at 0x1.14bb1b1b5188cp-1, without fma 0.623. NaN for |x| > 1. */
MG_INLINE real R(v_acos)(real x) {
    real a = v_abs(x);
    bool steep = a > HALF;
    v_arc p = R(v_asin_core)(a, steep);
    real parts = steep ? (x < 0 ? 1 : 0) : HALF;
    real scale = v_copysign(steep ? 2 : 1, steep ? x : -x);
    p = R(v_arc_from)(parts * PI, parts * PI_LOW, scale * p.high, scale * p.low);
    return p.high + p.low;
}

/* x where the mask is ones, 0 where it is zeros. Choices that several values hang on are written
 * with masks: of ?: a compiler makes separate paths. */
MG_INLINE real v_keep(ireal mask, real x) { return v_from_bits((ireal)v_bits(x) & mask); }

/* atan(y / x) for 0 <= y, x, not both 0, both within the middle of the range. The angle itself, in
 * double the angle less pi/4, or the angle less pi/2 is the arc tangent of num / den, which is at most
 * 1, in double 1/2. */
MG_INLINE v_arc R(v_atan_core)(real y, real x) {
    const real most = BY_WIDTH(1, 0.5);
    ireal steeper = -(ireal)(y > most * x), steep = -(ireal)(most * y > x);
    real num = v_keep(~steep, y) - v_keep(steeper, x); /* exact */
    real den_1 = v_keep(~steeper, x) + v_keep(steeper, y), den_2 = v_keep(steeper & ~steep, x);
    real den = den_1 + den_2, part = den - den_1;
    real den_low = most < 1 ? (den_1 - (den - part)) + (den_2 - part) : 0;
    real inverse = 1 / den, t = num * inverse, low;
    real t_low = fma_real(-t, den_low, v_residual(t, den, num)) * inverse;
    real high = R(v_atan_reduced)(t, t_low, &low);
    real parts = v_keep(steeper, REAL_C(0.25)) + v_keep(steep, REAL_C(0.25));
    return R(v_arc_from)(parts * PI, parts * PI_LOW, high, low);
}
/* Error 0.882 at 0x1.fd2a4ep-4, without fma 0.873;
 * in double 0.762 at -0x1.f81d13832e4eap-2, without fma 0.758. */
MG_INLINE real R(v_atan)(real x) {
    const real most = BY_WIDTH(0x1p30, 0x1p60);
    v_arc p = R(v_atan_core)(v_from_bits(R(v_min_bits)(v_bits(v_abs(x)), v_bits(most))), 1);
    return x == x ? v_copysign(p.high + p.low, x) : x;
}
/* The angle of (x, y), with the zeros and infinities of C99 Annex F. Both are scaled away from
 * where a residual would underflow or a sum overflow; what the scaling itself can lose does not
 * reach the quotient.
 * Error 0.863 at (0x1.028324p-1, 0x1.0ad068p+6), without fma 0.873;
 * in double 0.760 at (0x1.389f715a381d2p+4, 0x1.41c22cea3436dp+5), without fma 0.750. */
MG_INLINE real R(v_atan2)(real y, real x) {
    const real many = BY_WIDTH(0x1p60, 0x1p500), up = BY_WIDTH(0x1p50, 0x1p200);
    real a = v_abs(y), b = v_abs(x), most = a > b ? a : b, scale = most < many ? up : 1 / up;
    ireal finite = -(ireal)(most < INFINITE);
    real n = v_keep(finite, a * scale) + (a == INFINITE ? 1 : 0);
    real d = v_keep(finite, b * scale) + (b == INFINITE ? 1 : 0);
    d = most == 0 ? 1 : d;
    v_arc p = R(v_atan_core)(n, d), back = R(v_arc_from)(PI, PI_LOW, -p.high, -p.low);
    bool left = v_copysign(1, x) < 0; /* also for -0 */
    real angle = left ? back.high + back.low : p.high + p.low;
    return ((y != y) | (x != x)) ? x + y : v_copysign(angle, y);
}

#undef v_abs
#undef v_bits
#undef v_from_bits
#undef v_keep
#undef v_copysign
#undef v_sqrt
#undef v_residual
#undef v_arc
#undef HALF
#undef INFINITE
#undef PI
#undef PI_LOW
