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
