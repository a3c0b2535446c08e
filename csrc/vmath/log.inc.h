/* log.inc.h: logarithms to the bases e, 2 and 10, and log(1 + x); a template (simd/num.h).
 *
 * x = 2^k m with m from about 3/4 to 3/2. Four bits of m choose a constant c near 1 / m; around 1,
 * c is 1. With m c = 1 + r,
 *      log x = k log 2 - log c + log(1 + r),    |r| <= 1/15 (log of doubles: 1/31)
 * The constants c are such that -log c is a short number to six bits more than a result has. The
 * sum of the first two terms is then exact (S. Gal, "Computing elementary functions: a new approach
 * for achieving high accuracy and good performance", LNCS 235, 1986).
 */

typedef struct {
    num k, r, t, c; /* k in units of n_exponent_unit, t = -log c */
} F(log_terms);

MG_INLINE F(log_terms) F(log_reduce)(num x, T(log_rows) table, uint64_t first) {
    num u = n_add_bits(x, -first), k = n_and(u, C(EXPONENT)), i = n_shift_right(u, C(INDEX)), c, t;
    P(log_row)(table, i, &c, &t);
    num r = n_fma_exact(n_less_bits(x, k), c, n_set(-1));
    return (F(log_terms)){n_from_exponent(k), r, t, c};
}
/* For 1 + x: k and c are from the rounded sum, r from x itself. The constants are a few bits short,
 * so that 2^-k c - 1 is exact where that matters. */
MG_INLINE F(log_terms) F(log1p_reduce)(num x) {
    num u = n_add_bits(n_add(n_set(1), x), -C(LOG_FIRST)), k = n_and(u, C(EXPONENT));
    num i = n_shift_right(u, C(INDEX)), c, t;
    P(log_row)(T(log_table), i, &c, &t);
    c = n_less_bits(c, k);
    num r = n_fma_exact(x, c, n_sub(c, n_set(1)));
    return (F(log_terms)){n_from_exponent(k), r, t, c};
}
/* k log 2 - log c + y, with log 2 in two parts */
MG_INLINE num F(log_sum)(F(log_terms) p, num y, C(TYPE) two_high, C(TYPE) two_low) {
    num s = n_fma(p.k, n_set(two_high * n_exponent_unit), p.t);
    return n_add(s, n_fma(p.k, n_set(two_low * n_exponent_unit), y));
}
/* log(1 + r) / r - 1, of a float */
MG_INLINE num F(log_factor)(num r) { return n_mul(SHORT(r, log), r); }
/* For a double: lost + k (log 2 - LN2_HI) + log(1 + r) - r */
MG_INLINE num F(log_tail)(F(log_terms) p, num lost) {
    lost = n_fma(p.k, n_set(C(LN2_LO) * n_exponent_unit), lost);
    return n_fma(n_mul(p.r, p.r), POLYNOMIAL(p.r, log), lost);
}
/* The logarithm from its terms. For doubles, fewer entries have c = 1, so that |r| is half as
 * large. The rounding error of adding r would show, and is carried along. (s is 0, or not below r's
 * binade.) */
MG_INLINE num F(log_of)(F(log_terms) p) {
    if (sizeof(C(TYPE)) == 4) {
        num y = n_fma(F(log_factor)(p.r), p.r, p.r);
        return F(log_sum)(p, y, C(LN2_HI), C(LN2_LO));
    }
    num s = n_fma(p.k, n_set(C(LN2_HI) * n_exponent_unit), p.t), sum = n_add(s, p.r);
    return n_add(sum, F(log_tail)(p, n_sub(p.r, n_sub(sum, s))));
}

/* For arguments that are not normal or not positive. A subnormal argument is multiplied by a power
 * of two. The logarithm of that power is so nearly a short number that subtracting it does no
 * harm. */
MG_INLINE num F(log_scaled)(num x, C(TYPE) power) {
    return n_choose_less(x, n_set(C(SMALLEST)), n_mul(x, n_set(power)), x);
}
MG_INLINE num F(log_outside)(num x, num y) {
    num nothing = n_choose_less(x, n_set(0), n_set(C(NAN)), n_set(-C(INF)));
    y = n_choose_less(n_set(0), x, y, nothing);
    return n_choose_less(x, n_set(C(INF)), y, x);
}
MG_INLINE num F(log_rest)(num x, num y, C(TYPE) power_log) {
    y = n_choose_less(x, n_set(C(SMALLEST)), n_sub(y, n_set(power_log)), y);
    return F(log_outside)(x, y);
}

/* Functions named _near are for positive normal numbers. They report, by k, whether all numbers are
 * such. k is beyond the limit for zeros, negative numbers, infinity and NaN, and may be for the
 * first and last normal numbers. All other functions are right everywhere, with the same bits. */
MG_INLINE bool F(log_usual)(F(log_terms) p, int limit) {
    return n_small(p.k, limit / (C(TYPE))n_exponent_unit);
}
MG_INLINE num F(log_near)(num x, bool *right) {
    F(log_terms) p = F(log_reduce)(x, T(log_table), C(LOG_FIRST));
    *right = F(log_usual)(p, C(LOG_USUAL));
    return F(log_of)(p);
}
MG_INLINE num F(log)(num x) {
    bool usual;
    return F(log_rest)(x, F(log_near)(F(log_scaled)(x, C(LOG_POWER)), &usual), C(LOG_OF_POWER));
}
MG_INLINE num F(log2_near)(num x, bool *right) {
    F(log_terms) p = F(log_reduce)(x, T(log2_table), C(LOG_BASE_FIRST));
    num s = n_fma(p.k, n_set(n_exponent_unit), p.t);
    *right = F(log_usual)(p, C(LOG_USUAL));
    return n_add(s, n_fma(p.r, n_set(C(LOG2E)), n_mul(SHORT(p.r, log2), p.r)));
}
MG_INLINE num F(log2)(num x) {
    bool usual;
    num y = F(log2_near)(F(log_scaled)(x, C(LOG2_POWER)), &usual);
    return F(log_rest)(x, y, C(LOG2_OF_POWER));
}
MG_INLINE num F(log10_near)(num x, bool *right) {
    F(log_terms) p = F(log_reduce)(x, T(log10_table), C(LOG_BASE_FIRST));
    num y = n_fma(p.r, n_set(C(LOG10E)), n_mul(SHORT(p.r, log10), p.r));
    *right = F(log_usual)(p, C(LOG_USUAL));
    return F(log_sum)(p, y, C(LOG10_2_HI), C(LOG10_2_LO));
}
MG_INLINE num F(log10)(num x) {
    bool usual;
    num y = F(log10_near)(F(log_scaled)(x, C(LOG10_POWER)), &usual);
    return F(log_rest)(x, y, C(LOG10_OF_POWER));
}
MG_INLINE num F(log1p_near)(num x, bool *right) {
    F(log_terms) p = F(log1p_reduce)(x);
    *right = F(log_usual)(p, C(LOG1P_USUAL));
    return n_with_sign(F(log_of)(p), x); /* of 0, too */
}
/* Very large x are scaled, as subnormal x are above: adding 1 makes no difference to them. */
MG_INLINE num F(log1p_scaled)(num x, C(TYPE) power) {
    return n_choose_less(x, n_set(C(LOG1P_LARGE)), x, n_mul(x, n_set(power)));
}
MG_INLINE num F(log1p_rest)(num x, num y, C(TYPE) power_log) {
    y = n_choose_less(x, n_set(C(LOG1P_LARGE)), y, n_sub(y, n_set(power_log)));
    return n_with_sign(F(log_outside)(n_add(n_set(1), x), y), x);
}
MG_INLINE num F(log1p)(num x) {
    bool usual;
    num y = F(log1p_near)(F(log1p_scaled)(x, 1 / C(LOG_POWER)), &usual);
    return F(log1p_rest)(x, y, -C(LOG_OF_POWER));
}
