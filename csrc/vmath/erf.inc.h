/* erf.inc.h: the error function, the normal distribution and odd functions by pieces, for
 * one float width (see simd/num.h for how to read it), by the tables of vmath/coefficients/erf.h. */

/* f(c + d) = start + q d */
typedef struct {
    num start, q, d;
} F(piece);

/* For a, on the piece that two bits of the exponent of b and two of its fraction choose. */
#if LANE_BY_LANE
MG_INLINE num F(piece_offset)(num b) {
    return n_and(n_shift_right(b, C(PIECE_INDEX) - C(PIECE_SHIFT)), 15 << C(PIECE_SHIFT));
}
#endif
MG_INLINE F(piece) F(find_piece)(num a, num b, F(rows) table) {
#if LANE_BY_LANE
    F(offsets) at = F(offsets_of)(F(piece_offset)(b));
    F(piece) p;
    T(find_pieces)(a, table, &at, &p.start, &p.q, &p.d);
    return p;
#else
    num i = n_shift_right(b, C(PIECE_INDEX)), d = n_sub(a, n_look_up(table[0], i));
    num q = n_look_up(table[C(PIECE_ROWS) - 1], i);
    for (int row = C(PIECE_ROWS) - 2; row >= 2; row--) q = n_fma(q, d, n_look_up(table[row], i));
    return (F(piece)){n_look_up(table[1], i), q, d};
#endif
}

/* An odd function, by pieces of 1 + STEP a; the first, alone in starting from 0, starts from a, which is
 * up to 1/4 in it, and others start above that. */
MG_INLINE F(stage) F(odd_first)(num x, C(TYPE) high, C(TYPE) step) {
    num a = n_min(n_set(high), n_abs(x));
    return (F(stage)){.a = a, .b = n_line(a, step, 1)};
}
MG_INLINE num F(odd_last)(F(stage) s, num x, F(rows) table) {
    F(piece) p = F(find_piece)(s.a, s.b, table);
    num start = n_max(p.start, n_min(n_set(0.25f), s.a));
    return n_with_sign(n_fma_exact(p.q, p.d, start), x);
}
MG_INLINE F(stage) F(erf_first)(num x) { return F(odd_first)(x, C(ERF_HIGH), 1); }
MG_INLINE num F(erf_last)(F(stage) s, num x) { return F(odd_last)(s, x, F(erf_table)); }
MG_INLINE num F(erf)(num x) { return F(erf_last)(F(erf_first)(x), x); }

/* e^(-k a^2) g, both factors as sums of two; the exponential lacks its power of two n. */
typedef struct {
    F(two) e, g;
    num n;
} F(tail_terms);

MG_INLINE F(two) F(piece_sum)(F(piece) p) {
    num g = n_fma_exact(p.q, p.d, p.start);
    return (F(two)){g, n_fma_exact(p.q, p.d, n_sub(p.start, g))};
}
/* All but g */
MG_INLINE F(tail_terms) F(tail_power)(num a, C(TYPE) k) {
    num m = n_mul(a, n_set(-k)), t = n_mul(m, a), t_low = n_fma_exact(m, a, n_neg(t));
    num n = n_sub(n_line(t, C(LOG2E), C(MAGIC)), n_set(C(MAGIC)));
    num r = n_fma_exact(n, n_set(-C(LN2)), t), r_low = n_fma(n, n_set(-C(LN2_LOW)), t_low);
    num factor = F(exp_factor)(r), one = n_set(1), e = n_fma_exact(r, factor, one);
    num e_low = n_fma(r_low, e, n_fma_exact(r, factor, n_sub(one, e)));
    return (F(tail_terms)){.e = {e, e_low}, .n = n};
}
MG_INLINE F(tail_terms) F(tail)(num a, C(TYPE) step, C(TYPE) k, F(rows) table) {
    F(piece) g = F(find_piece)(a, n_line(a, step, 1), table);
    F(tail_terms) p = F(tail_power)(a, k);
    p.g = F(piece_sum)(g);
    return p;
}
MG_INLINE F(two) F(tail_product)(F(tail_terms) p) {
    num y = n_mul(p.e.high, p.g.high), low = n_fma_exact(p.e.high, p.g.high, n_neg(y));
    return (F(two)){y, n_fma(p.e.low, p.g.high, n_fma(p.e.high, p.g.low, low))};
}
/* The normal distribution at -a */
MG_INLINE F(tail_terms) F(normal)(num a) {
    return F(tail)(a, C(NORMAL_STEP), 0.5f, F(normal_table));
}

/* What it is at x, from that at -|x| and the sum of both */
MG_INLINE num F(tail_at)(num x, F(tail_terms) p, C(TYPE) both) {
    F(two) y = F(tail_product)(p);
    num u = n_scale(n_add(y.high, y.low), p.n);
    return n_choose_less(x, n_set(0), u, n_sub(n_set(both), u));
}
MG_INLINE num F(erfc_from)(num x, F(tail_terms) p) { return F(tail_at)(n_neg(x), p, 2); }
MG_INLINE num F(ndtr_from)(num x, F(tail_terms) p) { return F(tail_at)(x, p, 1); }
MG_INLINE num F(erfc)(num x) {
    num a = n_min(n_set(C(ERFC_HIGH)), n_abs(x));
    return F(erfc_from)(x, F(tail)(a, C(ERFC_STEP), 1, F(erfcx_table)));
}
MG_INLINE num F(ndtr)(num x) {
    return F(ndtr_from)(x, F(normal)(n_min(n_set(C(NORMAL_HIGH)), n_abs(x))));
}

/* peak e^(-k x^2), with what the square's rounding loses */
MG_INLINE num F(bell)(num x, C(TYPE) k, C(TYPE) peak) {
    num a = n_min(n_set(C(NORMAL_HIGH)), n_abs(x)), m = n_mul(a, n_set(-k)), t = n_mul(m, a);
    num y = n_mul(n_set(peak), F(exp_below)(t));
    return n_fma(y, n_fma_exact(m, a, n_neg(t)), y);
}
/* Slopes by x and by the result, which most do not need. */
MG_INLINE num F(erf_slope)(num x, num y) { return (void)y, F(bell)(x, 1, C(TWO_OVER_ROOT_PI)); }
MG_INLINE num F(erfc_slope)(num x, num y) { return (void)y, F(bell)(x, 1, -C(TWO_OVER_ROOT_PI)); }
MG_INLINE num F(ndtr_slope)(num x, num y) { return (void)y, F(bell)(x, 0.5f, C(SQRT_HALF_OVER_PI)); }
MG_INLINE num F(expm1_slope)(num x, num y) { return (void)y, F(exp)(x); }
MG_INLINE num F(cosh_slope)(num x, num y) { return (void)y, F(sinh)(x); }
/* 1 - e^-|y| is sigmoid(x) at softplus(x) = y, and sigmoid(-x) at logsigmoid(x) = y */
MG_INLINE num F(softplus_slope)(num x, num y) {
    return (void)x, n_neg(F(expm1)(n_or(y, C(SIGN))));
}

/* ---- slopes by x and y = x q, with q from 0 to 1: q + x q' ---- */

typedef struct {
    num q, x, rest; /* x and rest = x - y up to where q is 0 or 1 */
} F(share);
MG_INLINE F(share) F(share_of)(num x, num y) {
    num most = n_set(0x1p30f), a = n_abs(x);
    x = n_max(n_neg(most), n_min(most, x));
    y = n_min(most, y);
    return (F(share)){n_choose_less(a, n_set(0x1p-60f), n_set(0.5f), n_div(y, x)), x, n_sub(x, y)};
}
/* q = 1 / (1 + e^-u) has the slope q (1 - q) u', and x (1 - q) is the rest, exact above 0; u = x, and
 * below u' = k (1 + 3 c x^2). What counts is the rounding of y, u' times. */
MG_INLINE num F(silu_slope)(num x, num y) {
    F(share) s = F(share_of)(x, y);
    return n_fma(s.q, s.rest, s.q);
}
MG_INLINE num F(gelu_tanh_slope)(num x, num y) {
    const C(TYPE) k = C(GELU_FIRST) + C(GELU_FIRST_LOW);
    F(share) s = F(share_of)(x, y);
    num steep = n_fma(n_mul(s.x, s.x), n_set(3 * (C(TYPE))0.044715 * k), n_set(k));
    return n_fma(n_mul(s.q, s.rest), steep, s.q);
}
/* q = ndtr(x) */
MG_INLINE num F(gelu_slope_any)(num x, num y) {
    num bell = F(ndtr_slope)(x, y); /* first, as it needs most registers */
    F(share) s = F(share_of)(x, y);
    return n_fma(s.x, bell, s.q);
}
