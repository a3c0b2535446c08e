/* one.inc.h: the operations of wide.inc.h on one element, for one float width. */
#include "real.h"

#define ureal R(one_bits)
#define bits R(v_bits)
#define from_bits R(v_from_bits)

typedef struct {
    real a, b, c;
} R(v_stage);

MG_INLINE real R(s_set)(real a) { return a; }
MG_INLINE real R(s_add)(real a, real b) { return a + b; }
MG_INLINE real R(s_sub)(real a, real b) { return a - b; }
MG_INLINE real R(s_mul)(real a, real b) { return a * b; }
MG_INLINE real R(s_div)(real a, real b) { return a / b; }
MG_INLINE real R(s_from_bits)(ureal a) { return from_bits(a); }
MG_INLINE real R(s_neg)(real a) { return -a; }
MG_INLINE real R(s_fma)(real a, real b, real c) { return fma_real(a, b, c); }
MG_INLINE real R(s_fnma)(real a, real b, real c) { return fma_real(-a, b, c); }
MG_INLINE real R(s_line)(real x, real c1, real c0) { return fma_real(x, c1, c0); }
MG_INLINE real R(s_min)(real a, real b) { return a < b ? a : b; }
MG_INLINE real R(s_max)(real a, real b) { return a > b ? a : b; }
MG_INLINE real R(s_clip)(real a, real b) { return R(s_max)(-b, R(s_min)(a, b)); }
MG_INLINE real R(s_near_root)(real a) {
    return sizeof(real) == 4 ? (real)__builtin_sqrtf((float)a) : (real)__builtin_sqrt((double)a);
}
MG_INLINE real R(s_abs)(real a) { return R(v_abs)(a); }
MG_INLINE real R(s_with_sign)(real a, real b) {
    return from_bits(bits(a) | (bits(b) & ~(~(ureal)0 >> 1)));
}
MG_INLINE real R(s_flip_sign)(real a, real b) {
    return from_bits(bits(a) ^ (bits(b) & ~(~(ureal)0 >> 1)));
}
MG_INLINE real R(s_choose_less)(real a, real b, real x, real y) { return a < b ? x : y; }
MG_INLINE real R(s_choose_zero)(real i, ureal mask, real x, real y) {
    return bits(i) & mask ? y : x;
}
MG_INLINE real R(s_and)(real a, ureal mask) { return from_bits(bits(a) & mask); }
MG_INLINE real R(s_or)(real a, ureal mask) { return from_bits(bits(a) | mask); }
MG_INLINE real R(s_add_bits)(real a, ureal b) { return from_bits(bits(a) + b); }
MG_INLINE real R(s_plus_bits)(real a, real b) { return from_bits(bits(a) + bits(b)); }
MG_INLINE real R(s_less_bits)(real a, real b) { return from_bits(bits(a) - bits(b)); }
MG_INLINE real R(s_shift_left)(real a, int count) { return from_bits(bits(a) << count); }
MG_INLINE real R(s_shift_right)(real a, int count) { return from_bits(bits(a) >> count); }
MG_INLINE real R(s_scale)(real x, real n) {
    const int fraction = sizeof(real) == 4 ? 23 : 52;
    ureal t = bits(n + REAL_C(fraction == 23 ? 0x1.8p23 + 254 : 0x1.8p52 + 2046)), half = t >> 1;
    return x * from_bits(half << fraction) * from_bits((t - half) << fraction);
}
MG_INLINE real R(s_farther)(real a, real b) { return R(s_max)(R(v_abs)(a), R(v_abs)(b)); }
MG_INLINE bool R(s_below)(real a, real limit) { return a < limit; }
MG_INLINE bool R(s_small)(real a, real limit) { return R(v_abs)(a) < limit; }
/* Always false: a single element takes both the rare and the usual path, without a branch. */
MG_INLINE bool R(s_within_bits)(real x, ureal low, ureal high) {
    return (void)x, (void)low, (void)high, false;
}

#undef ureal
#undef bits
#undef from_bits
