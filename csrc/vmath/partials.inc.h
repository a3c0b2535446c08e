/* partials.inc.h: partial derivatives of functions of one number; a template (simd/num.h).
 *
 * They take x and the result y, although most need only one of the two.
 */

/* peak e^(-k x^2), corrected for the rounding error of the square */
MG_INLINE num F(bell)(num x, C(TYPE) k, C(TYPE) peak) {
    num a = n_min(n_set(C(NORMAL_HIGH)), n_abs(x)), m = n_mul(a, n_set(-k)), t = n_mul(m, a);
    num y = n_mul(n_set(peak), F(exp_below)(t));
    return n_fma(y, n_fma_exact(m, a, n_neg(t)), y);
}
MG_INLINE num F(erf_partial)(num x, num y) { return (void)y, F(bell)(x, 1, C(TWO_OVER_ROOT_PI)); }
MG_INLINE num F(erfc_partial)(num x, num y) { return (void)y, F(bell)(x, 1, -C(TWO_OVER_ROOT_PI)); }
MG_INLINE num F(ndtr_partial)(num x, num y) { return (void)y, F(bell)(x, 0.5f, C(SQRT_HALF_OVER_PI)); }
MG_INLINE num F(expm1_partial)(num x, num y) { return (void)y, F(exp)(x); }
MG_INLINE num F(cosh_partial)(num x, num y) { return (void)y, F(sinh)(x); }
/* 1 - e^-|y| is sigmoid(x) at softplus(x) = y, and sigmoid(-x) at logsigmoid(x) = y */
MG_INLINE num F(softplus_partial)(num x, num y) {
    return (void)x, n_neg(F(expm1)(n_or(y, C(SIGN))));
}

/* ---- partials by x and y = x q, with q from 0 to 1: q + x q' ---- */

typedef struct {
    num q, x, rest; /* x and rest = x - y up to where q is 0 or 1 */
} F(share);
MG_INLINE F(share) F(share_of)(num x, num y) {
    num most = n_set(0x1p30f), a = n_abs(x);
    x = n_max(n_neg(most), n_min(most, x));
    y = n_min(most, y);
    return (F(share)){n_choose_less(a, n_set(0x1p-60f), n_set(0.5f), n_div(y, x)), x, n_sub(x, y)};
}
/* q = 1 / (1 + e^-u) has the partial q (1 - q) u', and x (1 - q) is `rest`, exact above 0. For silu
 * u = x. For gelu_tanh u' = k (1 + 3 c x^2), and the rounding of y counts u' times. */
MG_INLINE num F(silu_partial)(num x, num y) {
    F(share) s = F(share_of)(x, y);
    return n_fma(s.q, s.rest, s.q);
}
MG_INLINE num F(gelu_tanh_partial)(num x, num y) {
    const C(TYPE) k = C(GELU_FIRST) + C(GELU_FIRST_LOW);
    F(share) s = F(share_of)(x, y);
    num steep = n_fma(n_mul(s.x, s.x), n_set(3 * (C(TYPE))0.044715 * k), n_set(k));
    return n_fma(n_mul(s.q, s.rest), steep, s.q);
}
/* q = ndtr(x) */
MG_INLINE num F(gelu_partial_any)(num x, num y) {
    num bell = F(ndtr_partial)(x, y); /* first, as it needs most registers */
    F(share) s = F(share_of)(x, y);
    return n_fma(s.x, bell, s.q);
}
