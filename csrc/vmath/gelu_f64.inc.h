/* gelu_f64.inc.h: GELU of doubles, by ndtr and by tanh, and its partials near 0; a template
 * (simd/num.h). */

MG_INLINE num F(gelu_partial)(num x, num y) { return F(gelu_partial_any)(x, y); }

/* x (1 + tanh u) / 2 = x / (1 + e^-2u) (D. Hendrycks and K. Gimpel, "Gaussian error linear units",
 * 2016) */
MG_INLINE F(stage) F(gelu_tanh_first)(num x) {
    x = n_max(n_set(-C(GELU_HIGH)), x);
    F(two) t = F(gelu_twice)(n_min(n_set(C(GELU_ALL)), x));
    return F(gate_first)(x, t.high, t.low);
}
MG_INLINE num F(gelu_tanh_last)(F(stage) s, num x) {
    return F(gate_last)(s, n_max(n_set(-C(GELU_HIGH)), x));
}
MG_INLINE num F(gelu_tanh)(num x) { return F(gelu_tanh_last)(F(gelu_tanh_first)(x), x); }

/* x ndtr(x) = max(x, 0) - a ndtr(-a), a = |x| */
MG_INLINE num F(gelu_limit)(num x) { return n_min(n_set(C(NORMAL_HIGH)), n_abs(x)); }
MG_INLINE num F(gelu_of)(num x, num a, F(tail_terms) p) {
    F(two) y = F(tail_product)(p);
    num h = n_mul(a, y.high), h_low = n_fma(a, y.low, n_fma_exact(a, y.high, n_neg(h)));
    num sum = n_add(h, h_low); /* what is left is negligible beside a subnormal number */
    num u = n_scale(sum, p.n), u_low = n_scale(n_add(n_sub(h, sum), h_low), p.n);
    num most = n_max(n_set(0), x), v = n_sub(most, u), low = n_sub(n_sub(n_sub(most, v), u), u_low);
    low = n_min(low, n_set(1)); /* NaN at infinity */
    return n_with_sign(n_abs(n_add(v, low)), x);
}
MG_INLINE num F(gelu_from)(num x, F(tail_terms) p) { return F(gelu_of)(x, F(gelu_limit)(x), p); }
MG_INLINE num F(gelu)(num x) {
    num a = F(gelu_limit)(x);
    return F(gelu_of)(x, a, F(normal)(a));
}

/* The partials near 0, with the same bits. *right is set if all x are near 0. */
MG_INLINE num F(bell_near)(num x, C(TYPE) k, C(TYPE) peak, bool *right) {
    num m = n_mul(x, n_set(-k)), t = n_mul(m, x), y = n_mul(n_set(peak), F(exp_near)(t, right));
    return n_fma(y, n_fma_exact(m, x, n_neg(t)), y);
}
MG_INLINE num F(gelu_partial_near)(num x, num y, bool *right) {
    num bell = F(bell_near)(x, 0.5f, C(SQRT_HALF_OVER_PI), right), quotient = n_div(y, x);
    num q = n_choose_less(n_abs(x), n_set(0x1p-60f), n_set(0.5f), quotient);
    return n_fma(x, bell, q);
}
MG_INLINE num F(expm1_partial_near)(num x, num y, bool *right) {
    return (void)y, F(exp_near)(x, right);
}
