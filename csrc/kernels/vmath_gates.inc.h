/* vmath_gates.inc.h: the logistic function and what is made of it, for one float width (see
 * vmath_num.h for how to read it); after vmath_explog.inc.h. Those called _any are right everywhere,
 * but floats have a shorter way for most numbers (vmath_pieces_f32.inc.h). */

/* e^r as an unevaluated sum of two */
typedef struct {
    num high, low;
} F(two);

MG_INLINE F(two) F(exp_two)(F(exp_terms) e) {
    num one = n_set(1), r = n_add(e.r_high, e.r_low), p = F(exp_factor)(r);
    num high = n_fma_exact(r, p, one), low = n_fma_exact(r, p, n_sub(one, high));
    num rounding = n_sub(e.r_low, n_sub(r, e.r_high));
    return (F(two)){high, n_fma(rounding, high, low)};
}

/* 1 / d to 2^-24 for 2^-100 < d < 2^100, or in double to 2^-36, which is enough for a quotient that
 * is corrected: a start good to four bits by taking the bits of d from a constant, a step of third
 * order and one of second, or of third again. A processor divides several times slower. */
MG_INLINE num F(one_over)(num d) {
    num one = n_set(1), r = n_less_bits(n_from_bits(C(RECIPROCAL)), d), e = n_fnma(d, r, one);
    r = n_fma(r, n_fma(e, e, e), r);
    e = n_fnma(d, r, one);
    return n_fma(r, sizeof(C(TYPE)) == 4 ? e : n_fma(e, e, e), r);
}

/* The same as fast as may be: other work hides the division of 16 floats, but not of 8 doubles. */
MG_INLINE num F(inverse)(num d) {
    return sizeof(C(TYPE)) == 4 ? n_div(n_set(1), d) : F(one_over)(d);
}

/* With e^|x| = 2^-n (1 + w), the value at -|x| is q = 2^n / (1 + 2^n + w); at |x| it is 1 - q. */
MG_INLINE num F(sigmoid_any)(num x) {
    num one = n_set(1), a = n_min(n_set(C(SIGMOID_HIGH)), n_abs(x));
    num n = n_sub(n_line(a, -C(LOG2E), C(MAGIC)), n_set(C(MAGIC))), s = n_scale(one, n);
    F(exp_terms) e = {n, n_fma(n, n_set(C(LN2_HI)), a), n_mul(n, n_set(C(LN2_LO)))};
    num w = n_add(e.r_high, F(exp_rest)(e));
    num b = n_add(one, s), d = n_add(b, w);
    num low = n_add(n_add(n_sub(b, d), w), n_sub(s, n_sub(b, one)));
    num q = F(one_over)(d);
    q = n_fma(q, n_fnma(q, low, n_fma_exact(n_neg(q), d, one)), q);
    q = n_mul(q, s);
    return n_choose_less(x, n_set(0), q, n_sub(one, q));
}

/* max(x, 0) + log(1 + e^-|x|), the exponential with a low part, which tells where it is all there
 * is. */
MG_INLINE num F(softplus)(num x) {
    F(exp_terms) e = F(exp_reduce)(n_max(n_set(C(SOFTPLUS_LOW)), n_or(x, C(SIGN))));
    F(two) y = F(exp_two)(e);
    num u = n_scale(y.high, e.n), u_low = n_scale(y.low, e.n);
    F(log_terms) p = F(log1p_reduce)(u);
    num log = n_add(p.r, n_fma(F(log_factor)(p.r), p.r, n_mul(u_low, p.c)));
    num s = n_fma(p.k, n_set(C(LN2_HI) * n_exponent_unit), p.t);
    log = n_fma(p.k, n_set(C(LN2_LO) * n_exponent_unit), log);
    num more = n_max(n_set(0), x), sum = n_add(s, more);
    log = n_add(sum, n_add(log, n_sub(more, n_sub(sum, s))));
    return n_max(log, x); /* infinity and NaN */
}
MG_INLINE num F(logsigmoid)(num x) {
    return n_neg(F(softplus)(n_neg(x)));
}

/* Its slope, with that of t. */
MG_INLINE num F(gate_slope)(num x, num steep, F(exp_terms) e) {
    num one = n_set(1), r = n_add(e.r_high, e.r_low);
    num u = n_scale(n_fma(r, F(exp_factor)(r), one), e.n), d = n_add(one, u);
    num d_low = n_sub(u, n_sub(d, one)), large = F(one_over)(d);
    large = n_fma(large, n_fnma(large, d_low, n_fma_exact(n_neg(large), d, one)), large);
    num small = n_mul(u, large), y = n_choose_less(x, n_set(0), small, large);
    return n_fma(n_mul(x, steep), n_mul(small, large), y);
}

MG_INLINE num F(silu_slope_any)(num x) {
    num low = n_max(n_set(C(SILU_LOW)), n_or(x, C(SIGN))), a = n_abs(low);
    return F(gate_slope)(n_with_sign(a, x), n_set(1), F(exp_reduce)(low));
}

/* e^-2u for a >= 0, u = sqrt(2 / pi) (a + 0.044715 a^3), with every product's low part. */
MG_INLINE F(exp_terms) F(gelu_decay)(num a) {
    num one = n_set(1), k = n_set(C(GELU_CUBE)), twice = n_set(-C(GELU_TWICE));
    num z = n_mul(a, a), z_low = n_fma_exact(a, a, n_neg(z)), h = n_fma_exact(k, z, one);
    num h_low = n_fma(n_set(C(GELU_CUBE_LOW)), z, n_fma_exact(k, z, n_sub(one, h)));
    num c = n_mul(twice, a), c_low = n_fma_exact(twice, a, n_neg(c)), t = n_mul(c, h);
    c_low = n_fma(n_set(-C(GELU_TWICE_LOW)), a, c_low);
    num t_low = n_fma(c, n_fma(k, z_low, h_low), n_fma_exact(c, h, n_neg(t)));
    F(exp_terms) e = F(exp_reduce)(t);
    e.r_low = n_add(e.r_low, n_fma(c_low, h, t_low));
    return e;
}
MG_INLINE num F(gelu_tanh_slope_any)(num x) {
    num a = n_min(n_set(C(GELU_HIGH)), n_abs(x));
    num steep = n_fma(n_mul(a, a), n_set(3 * C(GELU_CUBE) * C(GELU_TWICE)), n_set(C(GELU_TWICE)));
    return F(gate_slope)(n_with_sign(a, x), steep, F(gelu_decay)(a));
}
