/* vmath_float.inc.h: functions of floats that are computed in doubles (see vmath_num.h for how to
 * read it); after vmath_explog.inc.h and vmath_gates.inc.h, for doubles. */

/* 2^x to 2^-34, |x| <= 1000 */
MG_INLINE num F(exp2_short)(num x) {
    num n = n_sub(n_add(x, n_set(C(MAGIC))), n_set(C(MAGIC))), r = n_sub(x, n);
    return n_scale(n_fma(POLYNOMIAL(r, exp2_short), r, n_set(1)), n);
}
/* a^y for normal a > 0, to 2^-28; out of range it saturates beyond what a float holds. */
MG_INLINE num F(pow_float)(num a, num y) {
    F(log_terms) p = F(log_reduce)(a, T(log2_table));
    num s = n_fma(p.k, n_set(n_exponent_unit), p.t);
    num t = n_mul(y, n_fma(POLYNOMIAL(p.r, log2_short), p.r, s));
    return F(exp2_short)(n_max(n_set(-160), n_min(n_set(160), t)));
}

/* The normal distribution at -a and its density by sqrt(2 pi) for 0 <= a <= 15: e^(-a^2 / 2) times
 * a polynomial in (u - 4) / (u + 4), u = a / sqrt 2; see vmath_erf.h. */
typedef struct {
    num tail, density;
} F(normal_terms);

MG_INLINE F(normal_terms) F(normal)(num a) {
    num r = F(one_over)(n_line(a, C(SQRT_HALF), 4)), q = n_line(r, -8, 1);
    num e = F(exp2_short)(n_mul(n_mul(a, n_set(-0.5 * C(LOG2E))), a));
    num p = n_mul(POLYNOMIAL(q, erfc_short), n_mul(r, n_set(0.5)));
    return (F(normal_terms)){n_mul(p, e), e};
}
/* x times the normal distribution; in its tails what it tends to, -0 and x */
MG_INLINE num F(gelu_float)(num x) {
    num a = n_min(n_set(15), n_abs(x)), tail = F(normal)(a).tail;
    num y = n_mul(a, n_choose_less(x, n_set(0), tail, n_sub(n_set(1), tail)));
    return n_choose_less(n_set(14), x, x, n_with_sign(y, x));
}
MG_INLINE num F(gelu_slope_float)(num x) {
    num a = n_min(n_set(15), n_abs(x));
    F(normal_terms) p = F(normal)(a);
    num y = n_choose_less(x, n_set(0), p.tail, n_sub(n_set(1), p.tail));
    num slope = n_mul(n_mul(a, n_set(0x1.9884533d43651p-2)), p.density); /* 1 / sqrt(2 pi) */
    return n_add(y, n_with_sign(slope, x));
}
