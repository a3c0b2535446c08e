/* logistic_f64.inc.h: tanh, sigmoid, silu and gelu, of doubles (see simd/num.h for
 * how to read it); after logistic.inc.h and erf.inc.h. */

MG_INLINE num F(sigmoid)(num x) { return F(sigmoid_any)(x); }
MG_INLINE num F(gelu_slope)(num x, num y) { return F(gelu_slope_any)(x, y); }

/* tanh(c + d) = T + (1 - T^2) tanh d / (1 + T tanh d), where T = tanh c is a number (S. Gal's
 * method, vmath/coefficients/erf.h) and tanh d = d (q + p) / q with polynomials p and q of d^2. On the
 * first two pieces c is 0, and d p / q is added to a itself. What is added is less than a sixth of
 * the result, so that its own rounding hardly shows. */
MG_INLINE num F(tanh_limit)(num x) { return n_min(n_set(C(TANH_HIGH)), n_abs(x)); }
/* The number of a's piece, in four bits after that many others */
MG_INLINE num F(tanh_piece)(num a, int after) {
    return n_shift_right(n_line(a, C(TANH_STEP), 1), C(PIECE_INDEX) - after);
}
MG_INLINE num F(tanh_of)(num x, num a, num d, num t, num rest) {
    num zero = n_set(0), z = n_mul(d, d), q = HORNER(z, tanh_q), p = n_mul(z, HORNER(z, tanh_p));
    num u = n_mul(d, n_choose_less(zero, t, n_add(q, p), p));
    num y = n_div(n_mul(u, rest), n_fma(t, u, q));
    return n_with_sign(n_add(n_choose_less(zero, t, t, a), y), x);
}
/* The piece alone is handed over: what is kept between the stages has to be stored. */
MG_INLINE F(stage) F(tanh_first)(num x) {
    return (F(stage)){.a = F(tanh_piece)(F(tanh_limit)(x), 0)};
}
MG_INLINE num F(tanh_last)(F(stage) s, num x) {
    num a = F(tanh_limit)(x), d = n_sub(a, n_look_up(T(tanh_table)[0], s.a));
    num t = n_look_up(T(tanh_table)[1], s.a), rest = n_look_up(T(tanh_table)[2], s.a);
    return F(tanh_of)(x, a, d, t, rest);
}
MG_INLINE num F(tanh)(num x) { return F(tanh_last)(F(tanh_first)(x), x); }

/* x / (1 + e^-t), where t has the sign of x. For x < 0 the unit is taken off last, so that a
 * subnormal result is rounded once; for x > 0 it is 1, as x may be large or tiny. */
MG_INLINE F(stage) F(gate_first)(num x, num t, num t_low) {
    num whole = n_set(C(GROWTH_MAGIC)), scaled = n_set(C(GROWTH_MAGIC) - C(GATE_SCALE));
    num magic = n_choose_less(x, n_set(0), scaled, whole), bits = n_fma(t, n_set(-C(LOG2E)), magic);
    F(growth) e = F(growth_of)(n_neg(t), bits, n_sub(bits, magic));
    return F(growth_stage)(F(growth_plus)(e, n_neg(t_low)));
}
MG_INLINE num F(gate_last)(F(stage) s, num x) {
    num zero = n_set(0), one = n_set(1), unit = n_choose_less(x, zero, n_set(C(GATE_UNIT)), one);
    F(logistic_terms) p = F(logistic)(s, unit, true);
    num y = n_mul(x, p.inverse), more = n_fma(y, p.low, n_fma_exact(y, p.high, n_neg(x)));
    y = n_fnma(n_min(more, one), p.inverse, y); /* it is NaN at infinity */
    return n_mul(y, unit);
}
MG_INLINE F(stage) F(silu_first)(num x) {
    x = n_max(n_set(C(SILU_LOW)), x);
    return F(gate_first)(x, n_min(n_set(C(GATE_HIGH)), x), n_set(0));
}
MG_INLINE num F(silu_last)(F(stage) s, num x) {
    return F(gate_last)(s, n_max(n_set(C(SILU_LOW)), x));
}
MG_INLINE num F(silu)(num x) { return F(silu_last)(F(silu_first)(x), x); }
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
    num sum = n_add(h, h_low); /* what is left is nothing beside a subnormal number */
    num u = n_scale(sum, p.n), u_low = n_scale(n_add(n_sub(h, sum), h_low), p.n);
    num most = n_max(n_set(0), x), v = n_sub(most, u), low = n_sub(n_sub(n_sub(most, v), u), u_low);
    low = n_min(low, n_set(1)); /* it is NaN at infinity */
    return n_with_sign(n_abs(n_add(v, low)), x);
}
MG_INLINE num F(gelu_from)(num x, F(tail_terms) p) { return F(gelu_of)(x, F(gelu_limit)(x), p); }
MG_INLINE num F(gelu)(num x) {
    num a = F(gelu_limit)(x);
    return F(gelu_of)(x, a, F(normal)(a));
}

/* Slopes near 0, with the same bits, and whether all are */
MG_INLINE num F(bell_near)(num x, C(TYPE) k, C(TYPE) peak, bool *right) {
    num m = n_mul(x, n_set(-k)), t = n_mul(m, x), y = n_mul(n_set(peak), F(exp_near)(t, right));
    return n_fma(y, n_fma_exact(m, x, n_neg(t)), y);
}
MG_INLINE num F(gelu_slope_near)(num x, num y, bool *right) {
    num bell = F(bell_near)(x, 0.5f, C(SQRT_HALF_OVER_PI), right), quotient = n_div(y, x);
    num q = n_choose_less(n_abs(x), n_set(0x1p-60f), n_set(0.5f), quotient);
    return n_fma(x, bell, q);
}
MG_INLINE num F(expm1_slope_near)(num x, num y, bool *right) {
    return (void)y, F(exp_near)(x, right);
}
