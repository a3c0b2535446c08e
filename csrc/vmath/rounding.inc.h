/* rounding.inc.h: rounding, division with remainder and other exact functions; a template for each
 * float width. */
#include "simd/real.h"

#define v_bits R(v_bits)
#define v_from_bits R(v_from_bits)
#define v_abs R(v_abs)
#define v_copysign R(v_copysign)
#define v_floor R(v_floor)
#define v_round R(v_round)
#define v_fmod R(v_fmod)
#define v_residual R(v_residual)

#if !V_HAS_ROUND
/* Rounds half to even: adding 2^23, in double 2^52, pushes the fraction out. */
MG_INLINE real v_round(real x) {
    const real whole = BY_WIDTH(0x1p23, 0x1p52);
    real a = v_abs(x), r = (a + whole) - whole;
    return v_copysign(a < whole ? r : a, x);
}
MG_INLINE real v_floor(real x) {
    real r = v_round(x);
    return r > x ? r - 1 : r;
}
MG_INLINE real R(v_ceil)(real x) {
    real r = v_round(x);
    return v_copysign(r < x ? r + 1 : r, x);
}
MG_INLINE real R(v_trunc)(real x) { return v_copysign(v_floor(v_abs(x)), x); }
#endif

MG_INLINE bool R(v_signbit)(real x) { return (ireal)v_bits(x) < 0; }

/* The next number after a towards b. If both are equal, b, so that nextafter(0, -0) is -0. */
MG_INLINE real R(v_nextafter)(real a, real b) {
    ireal outwards = (b > a) == (a > 0) ? 1 : -1;
    real next = v_from_bits(v_bits(a) + outwards);
    next = a == 0 ? v_copysign(v_from_bits(1), b) : next;
    next = a == b ? b : next;
    return ((a != a) | (b != b)) ? a + b : next;
}

/* NaN only if both are NaN. */
MG_INLINE real R(v_fmax)(real a, real b) { return ((a >= b) | (b != b)) ? a : b; }
MG_INLINE real R(v_fmin)(real a, real b) { return ((a <= b) | (b != b)) ? a : b; }

/* x - n y with n = x / y rounded towards 0, exact for |x / y| < 2^24, in double 2^53. The remainder
 * of a whole quotient is a number, even if the quotient was rounded up to n + 1. */
MG_INLINE real R(v_fmod_near)(real x, real y) {
    real a = v_abs(x), b = v_abs(y), r = v_residual(R(v_trunc)(a / b), b, a);
    r = r < 0 ? r + b : r;
    return v_copysign(a < b ? a : r, x); /* b may be infinite */
}
MG_INLINE bool R(v_fmod_is_far)(real x, real y) {
    real a = v_abs(x), b = v_abs(y);
    bool overflow = !MG_HAS_FMA && b > BY_WIDTH(__builtin_inf(), 0x1p990); /* in v_residual_f64 */
    return (a > b * BY_WIDTH(0x1p24, 0x1p53)) | ((a >= b) & overflow);
}
MG_INLINE real v_fmod(real x, real y) {
    return MG_UNLIKELY(R(v_fmod_is_far)(x, y)) ? (real)v_fmod_long(x, y) : R(v_fmod_near)(x, y);
}

/* The results of the three kinds of division, from r = fmod(x, y). */
MG_INLINE real R(v_fmod_of)(real x, real y, real r) {
    (void)x, (void)y;
    return r;
}
/* Python's and NumPy's %: fmod moved to the divisor's side. A zero has the divisor's sign, too. */
MG_INLINE real R(v_remainder_of)(real x, real y, real r) {
    (void)x;
    real moved = (r < 0) != (y < 0) ? r + y : r;
    return r == 0 ? v_copysign(0, y) : moved;
}
/* Python's and NumPy's //: (x - x % y) / y rounded to an integer; x / y if y is 0. */
MG_INLINE real R(v_floor_divide_of)(real x, real y, real r) {
    real quotient = (x - r) / y;
    quotient = ((r != 0) & ((r < 0) != (y < 0))) ? quotient - 1 : quotient;
    real whole = v_floor(quotient);
    whole = quotient - whole > REAL_C(0.5) ? whole + 1 : whole;
    whole = quotient == 0 ? v_copysign(0, x / y) : whole;
    return y == 0 ? x / y : whole;
}

/* out[i] = of(x[i], y[i], fmod(x[i], y[i])), for whole blocks. `out` overlaps neither operand. */
MG_INLINE void R(v_divide_chunk)(real *restrict out, const real *restrict x, const real *restrict y,
                                 int64_t n, real (*of)(real x, real y, real r)) {
    ireal far = 0;
    if (n % (4 * LANES)) __builtin_unreachable();
    MG_APART
    for (int64_t i = 0; i < n; i++) {
        out[i] = of(x[i], y[i], R(v_fmod_near)(x[i], y[i]));
        far |= R(v_fmod_is_far)(x[i], y[i]) ? 1 : 0;
    }
    for (int64_t i = 0; MG_UNLIKELY(far) && i < n; i++) out[i] = of(x[i], y[i], v_fmod(x[i], y[i]));
}
static inline void R(v_fmod_chunk)(real *restrict out, const real *restrict x,
                                   const real *restrict y, int64_t n) {
    R(v_divide_chunk)(out, x, y, n, R(v_fmod_of));
}
static inline void R(v_remainder_chunk)(real *restrict out, const real *restrict x,
                                        const real *restrict y, int64_t n) {
    R(v_divide_chunk)(out, x, y, n, R(v_remainder_of));
}
static inline void R(v_floor_divide_chunk)(real *restrict out, const real *restrict x,
                                           const real *restrict y, int64_t n) {
    R(v_divide_chunk)(out, x, y, n, R(v_floor_divide_of));
}

#undef v_bits
#undef v_from_bits
#undef v_abs
#undef v_copysign
#undef v_floor
#undef v_round
#undef v_fmod
#undef v_residual
