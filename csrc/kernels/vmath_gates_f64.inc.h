/* vmath_gates_f64.inc.h: sigmoid, silu, gelu and their slopes, of doubles (see vmath_num.h for how to
 * read it); after vmath_gates.inc.h and vmath_normal.inc.h. */

MG_INLINE num F(sigmoid)(num x) { return F(sigmoid_any)(x); }
MG_INLINE num F(silu_slope)(num x) { return F(silu_slope_any)(x); }
MG_INLINE num F(gelu_slope)(num x) { return F(gelu_slope_any)(x); }
MG_INLINE num F(gelu_tanh_slope)(num x) { return F(gelu_tanh_slope_any)(x); }

/* x / (1 + e^-t) = max(x, 0) - a / (1 + e^|t|), where t has the sign of x, a = |x| and p is of |t|.
 * For x < 0 the power of two comes last, so that a subnormal result is rounded once. */
MG_INLINE num F(gate)(num x, num a, F(logistic_terms) p) {
    num zero = n_set(0), one = n_set(1);
    a = n_mul(a, n_choose_less(x, zero, one, p.power));
    num m = n_mul(a, p.inverse), m_low = n_fma(m, p.rest, n_fma_exact(a, p.inverse, n_neg(m)));
    num most = n_max(zero, x), y = n_sub(most, m), low = n_add(n_add(m, n_sub(y, most)), m_low);
    y = n_sub(y, n_max(low, n_set(-1))); /* it is NaN at infinity */
    return n_scale(y, n_choose_less(x, zero, p.n, zero));
}
MG_INLINE num F(silu)(num x) {
    num a = n_min(n_set(-C(SILU_LOW)), n_abs(x));
    return F(gate)(x, a, F(logistic)(a, n_set(0)));
}
/* x (1 + tanh u) / 2 = x / (1 + e^-2u) (D. Hendrycks and K. Gimpel, "Gaussian error linear units",
 * 2016) */
MG_INLINE num F(gelu_tanh)(num x) {
    num a = n_min(n_set(C(GELU_HIGH)), n_abs(x));
    F(two) t = F(gelu_twice)(a);
    return F(gate)(x, a, F(logistic)(t.high, t.low));
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
