/* vmath_over.inc.h: reciprocals for one float width, with the bits that divisions and roots have, but
 * for some subnormal results and for negative numbers whose fraction is all ones. */
#include "real.h"

/* 1 / d from r, at most a unit above: the residual is exact, and the result rounded correctly
 * (P. Markstein, "IA-64 and elementary functions", 2000, chapter 8). */
MG_INLINE vec R(v_inverse_step)(vec d, vec r) {
    return v_fma(v_fma(-d, r, v_set1(1)), r, r);
}
/* 1 / d. The start lacks e + e^2 + ... of itself; up, so that a fraction of all ones meets no tie. */
MG_INLINE vec R(v_over)(vec d) {
    vec start = R(v_rough_inverse_of)(d), e = v_fma(-d, start, v_set1(1)), q = v_fma(e, e, e);
    if (sizeof(real) == 8) q = v_fma(e * e, q, q);
    vec r = R(v_inverse_step)(d, R(v_fma_up)(q, start, start));
    return R(v_if_extreme)(start, start, r);
}
/* 1 / sqrt(d), the root rounded too, for 0 and from 2^-60 on, in double from 2^-900 */
MG_INLINE vec R(v_over_root)(vec d) {
    vec half = v_set1(REAL_C(0.5)), start = R(v_rough_root_inverse)(d), s = d * start;
    vec h = start * half;
    for (int step = 0; step < (sizeof(real) == 4 ? 1 : 2); step++) {
        vec e = v_fma(-s, h, half);
        s = v_fma(s, e, s);
        h = v_fma(h, e, h);
    }
    s = v_fma(v_fma(-s, s, d), h, s);
    vec r = h + h;
    r = R(v_inverse_step)(s, R(v_fma_up)(v_fma(-s, r, v_set1(1)), r, r));
    return R(v_if_extreme)(start, start, r);
}
