/* vmath_gates_f64.inc.h: sigmoid, silu, gelu and their slopes, of doubles (see vmath_num.h for how to
 * read it); after vmath_gates.inc.h and vmath_normal.inc.h. */

MG_INLINE num F(sigmoid)(num x) { return F(sigmoid_any)(x); }
MG_INLINE num F(silu_slope)(num x) { return F(silu_slope_any)(x); }
MG_INLINE num F(gelu_slope)(num x) { return F(gelu_slope_any)(x); }
MG_INLINE num F(gelu_tanh_slope)(num x) { return F(gelu_tanh_slope_any)(x); }

/* x / (1 + e^-t) where t has the sign of x and e describes e^-|t|: for x < 0, x e^-|t| / (1 +
 * e^-|t|). Numerator and denominator have low parts, and so has the quotient before its last
 * addition. */
MG_INLINE num F(gate)(num x, F(exp_terms) e) {
    num zero = n_set(0), one = n_set(1);
    F(two) y = F(exp_two)(e);
    num u = n_scale(y.high, e.n), u_low = n_scale(y.low, e.n), d = n_add(one, u);
    num d_low = n_add(n_sub(u, n_sub(d, one)), u_low), inverse = F(one_over)(d);
    num c = n_choose_less(x, zero, y.high, one), c_low = n_choose_less(x, zero, y.low, zero);
    num m = n_mul(x, c), q = n_mul(m, inverse);
    num m_low = n_fma(x, c_low, n_fma_exact(x, c, n_neg(m)));
    num rest = n_fnma(q, d_low, n_fma_exact(n_neg(q), d, m));
    q = n_fma(n_add(rest, m_low), inverse, q);
    return n_with_sign(n_scale(q, n_choose_less(x, zero, e.n, zero)), x); /* of 0 too */
}
MG_INLINE num F(silu)(num x) {
    num low = n_set(C(SILU_LOW));
    num y = F(gate)(n_max(low, x), F(exp_reduce)(n_max(low, n_or(x, C(SIGN)))));
    return n_choose_less(n_set(C(SILU_HIGH)), x, x, y);
}
/* x (1 + tanh u) / 2 = x / (1 + e^-2u) (D. Hendrycks and K. Gimpel, "Gaussian error linear units",
 * 2016) */
MG_INLINE num F(gelu_tanh)(num x) {
    num high = n_set(C(GELU_HIGH));
    num y = F(gate)(n_max(n_neg(high), x), F(gelu_decay)(n_min(high, n_abs(x))));
    return n_choose_less(high, x, x, y);
}

/* x ndtr(x) = max(x, 0) - a ndtr(-a), a = |x| */
MG_INLINE num F(gelu)(num x) {
    num a = n_min(n_set(C(NORMAL_HIGH)), n_abs(x));
    F(tail_terms) p = F(normal)(a);
    F(two) y = F(tail_product)(p);
    num h = n_mul(a, y.high), h_low = n_fma(a, y.low, n_fma_exact(a, y.high, n_neg(h)));
    num sum = n_add(h, h_low); /* what is left is nothing beside a subnormal number */
    num u = n_scale(sum, p.n), u_low = n_scale(n_add(n_sub(h, sum), h_low), p.n);
    num most = n_max(n_set(0), x), v = n_sub(most, u), low = n_sub(n_sub(n_sub(most, v), u), u_low);
    low = n_min(low, n_set(1)); /* it is NaN at infinity */
    return n_with_sign(n_abs(n_add(v, low)), x);
}
