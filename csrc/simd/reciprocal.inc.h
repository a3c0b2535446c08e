/* reciprocal.inc.h: reciprocals for one float width, with the bits of divisions and roots.
 *
 * Some subnormal results differ, and so do results for negative numbers whose fraction is all ones.
 */
#include "real.h"

/* 1 / d from r, which is at most one unit too large. The residual is exact, and the result is
 * rounded correctly (P. Markstein, "IA-64 and elementary functions", 2000, chapter 8). */
MG_INLINE vec R(v_inverse_step)(vec d, vec r) {
    return v_fma(v_fma(-d, r, v_set1(1)), r, r);
}
/* 1 / d. With e the relative error of the start, the correction is the factor 1 + e + e^2 + ... It
 * is rounded up, so that a fraction of all ones meets no tie. */
MG_INLINE vec R(v_over_steps)(vec d) {
    vec start = R(v_rough_inverse_of)(d), e = v_fma(-d, start, v_set1(1)), q = v_fma(e, e, e);
    if (sizeof(real) == 8) q = v_fma(e * e, q, q);
    vec r = R(v_inverse_step)(d, R(v_fma_up)(q, start, start));
    return R(v_if_extreme)(start, start, r);
}
/* The same by the instruction, if that takes less time than the eleven operations of the steps */
MG_INLINE vec R(v_over)(vec d) {
    if (sizeof(real) == 8 && mg_system_roots()) return v_set1(1) / d;
    return R(v_over_steps)(d);
}
/* sqrt(d) rounded, and nearly half of its inverse, from 14 bits of the inverse */
typedef struct {
    vec root, half_inverse;
} R(v_root_terms);
MG_INLINE R(v_root_terms) R(v_root_of)(vec d, vec start) {
    vec half = v_set1(REAL_C(0.5)), s = d * start, h = start * half;
    for (int step = 0; step < (sizeof(real) == 4 ? 1 : 2); step++) {
        vec e = v_fma(-s, h, half);
        s = v_fma(s, e, s);
        h = v_fma(h, e, h);
    }
    return (R(v_root_terms)){v_fma(v_fma(-s, s, d), h, s), h};
}
/* 1 / sqrt(d) with the root rounded too, for 0 and from 2^-60 on, in double from 2^-900 on */
MG_INLINE vec R(v_over_root)(vec d) {
    if (mg_system_roots()) return R(v_over_steps)(R(v_square_root)(d));
    vec start = R(v_rough_root_inverse)(d);
    R(v_root_terms) t = R(v_root_of)(d, start);
    vec s = t.root, r = t.half_inverse + t.half_inverse;
    r = R(v_inverse_step)(s, R(v_fma_up)(v_fma(-s, r, v_set1(1)), r, r));
    return R(v_if_extreme)(start, start, r);
}
/* sqrt(1 + y^2), never less than |y|, and equal to |y| long before y^2 overflows */
MG_INLINE vec R(v_root_above)(vec y) {
    vec a = R(v_max)(y, -y), z = R(v_min)(v_set1(REAL_C(0x1p40)), a);
    vec d = v_fma(z, z, v_set1(1));
    return R(v_max)(R(v_root_of)(d, R(v_rough_root_inverse)(d)).root, a);
}
