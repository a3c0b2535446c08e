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

/* 1 / d to 2^-20, for 2^-100 < d < 2^100. Taking the bits of d from a constant gives t / d with t
 * from 0.7071 to 0.7286, and there 1 / t is nearly SCALE ((FIRST - t)^2 + SECOND), the minimax
 * polynomial. A processor divides several times slower. */
MG_INLINE num F(near_inverse)(num d) {
    num r = n_less_bits(n_from_bits(C(RECIPROCAL)), d), e = n_fnma(d, r, n_set(C(INVERSE_FIRST)));
    return n_mul(n_mul(r, n_set(C(INVERSE_SCALE))), n_fma(e, e, n_set(C(INVERSE_SECOND))));
}

/* 1 / d, good enough for a quotient that a correction follows: other work hides the division of 16
 * floats, but not of 8 doubles. */
MG_INLINE num F(inverse)(num d) {
    num one = n_set(1), r = sizeof(C(TYPE)) == 4 ? n_div(one, d) : F(near_inverse)(d);
    return sizeof(C(TYPE)) == 4 ? r : n_fma(r, n_fnma(d, r, one), r);
}

/* 1 / (1 + e^t) = 2^n inverse (1 + rest), with e^t = 2^-n (1 + w) */
typedef struct {
    num n, power, inverse, rest; /* power = 2^n */
} F(logistic_terms);

/* For t >= 0 and what it lacks. With d = 1 + 2^n + w as a sum of two, the inverse of the larger is
 * good to 20 bits, and with its error e the rest is e + e^2, less what the smaller adds. */
MG_INLINE F(logistic_terms) F(logistic)(num t, num t_low) {
    num one = n_set(1), n = n_sub(n_line(t, -C(LOG2E), C(MAGIC)), n_set(C(MAGIC)));
    F(exp_terms) p = {n, n_fma(n, n_set(C(LN2_HI)), t), n_fma(n, n_set(C(LN2_LO)), t_low)};
    num w = F(exp_rest)(p), s = n_scale(one, n), b = n_add(one, s), c = n_add(b, p.r_high);
    num low = n_add(n_add(n_sub(b, c), p.r_high), n_sub(s, n_sub(b, one))), d = n_add(c, w);
    low = n_add(low, n_add(n_sub(c, d), w));
    num r = F(near_inverse)(d), e = n_fma_exact(n_neg(r), d, one);
    return (F(logistic_terms)){n, s, r, n_fma(e, e, n_fnma(r, low, e))};
}
/* What it is at -t */
MG_INLINE num F(logistic_below)(F(logistic_terms) p) {
    return n_scale(n_fma(p.inverse, p.rest, p.inverse), p.n);
}

MG_INLINE num F(sigmoid_any)(num x) {
    num a = n_min(n_set(C(SIGMOID_HIGH)), n_abs(x)), zero = n_set(0);
    num q = F(logistic_below)(F(logistic)(a, zero));
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

/* The slope of x / (1 + e^-t), where t has the sign of x and the slope `steep`, and p is of |t|. */
MG_INLINE num F(gate_slope)(num x, num steep, F(logistic_terms) p) {
    num q = F(logistic_below)(p), rest = n_sub(n_set(1), q);
    return n_fma(n_mul(n_mul(x, steep), q), rest, n_choose_less(x, n_set(0), q, rest));
}

MG_INLINE num F(silu_slope_any)(num x) {
    num a = n_min(n_set(-C(SILU_LOW)), n_abs(x));
    return F(gate_slope)(n_with_sign(a, x), n_set(1), F(logistic)(a, n_set(0)));
}

/* 2u for a >= 0, u = sqrt(2 / pi) (a + 0.044715 a^3), with every product's low part. */
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
    return F(gate_slope)(n_with_sign(a, x), steep, F(logistic)(t.high, t.low));
}
