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

/* 1 + e^-x = 2^-n (high - less), with e^-x = 2^-n (1 + w), and nearly 1 / high */
typedef struct {
    num n, high, less, inverse;
} F(logistic_terms);

/* For x <= 0 and the negative of what it lacks; or for any x, where what belongs to x > 0 is not
 * scaled by 2^-n. Other work hides the division. */
MG_INLINE F(logistic_terms) F(logistic)(num x, num x_less, bool any) {
    num one = n_set(1), n = n_sub(n_line(x, C(LOG2E), C(MAGIC)), n_set(C(MAGIC)));
    F(exp_terms) p = {n, n_fma(n, n_set(C(LN2_HI)), n_neg(x)), n_fma(n, n_set(C(LN2_LO)), x_less)};
    num w = F(exp_rest)(p), r = p.r_high, s = n_scale(one, any ? n_or(n, C(SIGN)) : n);
    if (any) {
        num k = n_choose_less(n_set(0), n, s, one);
        r = n_mul(k, r), w = n_mul(k, w);
    }
    num b = n_add(one, s), c = n_add(b, r), d = n_add(c, w);
    num less = n_sub(n_sub(n_sub(c, b), r), n_sub(s, n_sub(b, one)));
    return (F(logistic_terms)){n, d, n_add(less, n_sub(n_sub(d, c), w)), n_div(one, d)};
}
/* 1 / (1 + e^-x) for x <= 0 and the negative of what it lacks */
MG_INLINE num F(logistic_below)(num x, num x_less) {
    F(logistic_terms) p = F(logistic)(x, x_less, false);
    num rest = n_fma(p.inverse, p.less, n_fma_exact(n_neg(p.inverse), p.high, n_set(1)));
    return n_scale(n_fma(p.inverse, rest, p.inverse), p.n);
}

MG_INLINE num F(sigmoid_any)(num x) {
    num a = n_min(n_set(C(SIGMOID_HIGH)), n_abs(x)), zero = n_set(0);
    num q = F(logistic_below)(n_neg(a), zero);
    return n_choose_less(x, zero, q, n_sub(n_set(1), q));
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

/* The slope of x / (1 + e^-t), where t has the sign of x and the slope `steep`, from |t|. */
MG_INLINE num F(gate_slope)(num x, num steep, num t, num t_low) {
    num q = F(logistic_below)(n_neg(t), t_low), rest = n_sub(n_set(1), q);
    return n_fma(n_mul(n_mul(x, steep), q), rest, n_choose_less(x, n_set(0), q, rest));
}

MG_INLINE num F(silu_slope_any)(num x) {
    num a = n_min(n_set(-C(SILU_LOW)), n_abs(x));
    return F(gate_slope)(n_with_sign(a, x), n_set(1), a, n_set(0));
}

/* 2u, u = sqrt(2 / pi) (a + 0.044715 a^3), with every product's low part. */
MG_INLINE F(two) F(gelu_twice)(num a) {
    num one = n_set(1), k = n_set(C(GELU_CUBE)), twice = n_set(C(GELU_TWICE));
    num z = n_mul(a, a), z_low = n_fma_exact(a, a, n_neg(z)), h = n_fma_exact(k, z, one);
    num h_low = n_fma(n_set(C(GELU_CUBE_LOW)), z, n_fma_exact(k, z, n_sub(one, h)));
    num c = n_mul(twice, a), c_low = n_fma_exact(twice, a, n_neg(c)), t = n_mul(c, h);
    c_low = n_fma(n_set(C(GELU_TWICE_LOW)), a, c_low);
    num t_low = n_fma(c, n_fma(k, z_low, h_low), n_fma_exact(c, h, n_neg(t)));
    return (F(two)){t, n_fma(c_low, h, t_low)};
}
MG_INLINE num F(gelu_tanh_slope_any)(num x) {
    num a = n_min(n_set(C(GELU_HIGH)), n_abs(x));
    num steep = n_fma(n_mul(a, a), n_set(3 * C(GELU_CUBE) * C(GELU_TWICE)), n_set(C(GELU_TWICE)));
    F(two) t = F(gelu_twice)(a);
    return F(gate_slope)(n_with_sign(a, x), steep, t.high, t.low);
}
