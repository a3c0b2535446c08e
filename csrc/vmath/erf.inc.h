/* erf.inc.h: the error function, the normal distribution and other piecewise functions; a template
 * (simd/num.h).
 *
 * The tables are in coefficients/erf.h.
 */

/* f(c + d) = start + q d */
typedef struct {
    num start, q, d;
} F(piece);

/* For a: the polynomial of its piece. Two bits of the exponent of b and two of its fraction choose
 * the piece. */
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

/* An odd function, by pieces of 1 + STEP a. The first piece is expanded about 0 and starts from a
 * itself, which is up to 1/4 there. All other pieces start above that. */
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

/* e^(-k a^2) g, with both factors as sums of two. The exponential still lacks its power of two,
 * n. */
typedef struct {
    F(two) e, g;
    num n;
} F(tail_terms);

MG_INLINE F(two) F(piece_sum)(F(piece) p) {
    num g = n_fma_exact(p.q, p.d, p.start);
    return (F(two)){g, n_fma_exact(p.q, p.d, n_sub(p.start, g))};
}
/* All terms but g. */
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
/* The normal distribution at -a. */
MG_INLINE F(tail_terms) F(normal)(num a) {
    return F(tail)(a, C(NORMAL_STEP), 0.5f, F(normal_table));
}

/* The value at x, from the value at -|x| and the sum of both. */
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
