/* gelu_f32.inc.h: GELU, by ndtr and by tanh, and its partial, of floats; a template (simd/num.h).
 *
 * GELU is max(x, 0) - u(a), where a = |x|. Its partial is made in the same way, from the step from
 * 0 to 1. u falls as e^-a or faster. It is computed by pieces, as tanh is
 * (vmath/coefficients/erf.h). Far below 0 the result is -u alone, which must keep its digits.
 * Blocks that reach so far compute u from an exponential.
 */

MG_INLINE num F(pieces_limit)(num x, const v_pieces *p) { return n_min(n_set(p->high), n_abs(x)); }
/* The piece of u: the integer nearest to a (k1 + k2 a). Pieces are narrower where u bends more.
 * Where u is nearly a / 2, half of a is taken from max(x, 0), so that the difference loses no
 * digit. Most of the time goes into look-ups. One look-up therefore gives two coefficients of 16
 * bits. Another gives a coefficient and, in its last bits, that half. */
MG_INLINE num F(pieces_number)(num a, const v_pieces *p) {
    return n_fma(a, n_fma(a, n_set(p->k2), n_set(p->k1)), n_set(C(MAGIC)));
}
/* not for one vector where several go together */
#define BY_PIECES (LANE_BY_LANE == MG_LANE_BY_LANE)
#if LANE_BY_LANE
MG_INLINE num F(pieces_offset)(num a, const v_pieces *p) {
    return n_and(n_shift_left(F(pieces_number)(a, p), 5), 31 << 5);
}
MG_INLINE num F(by_pieces_at)(num x, num a, const F(offsets) *at, const v_pieces *p, bool step) {
    num u, w, zero = n_set(0), one = n_set(1);
    for (int k = 0; k < WIDE_VECTORS; k++)
        u.v[k] = v_short_piece_f32(a.v[k], p->by_piece, at->of[k], &w.v[k]);
    if (step) return n_choose_less(x, zero, u, n_sub(one, u));
    return n_sub(n_fma(a, n_shift_left(w, 24), n_max(zero, x)), u);
}
MG_INLINE num F(by_pieces)(num x, const v_pieces *p, bool step) {
    num a = F(pieces_limit)(x, p);
    F(offsets) at = F(offsets_of)(F(pieces_offset)(a, p));
    return F(by_pieces_at)(x, a, &at, p, step);
}
#elif BY_PIECES
MG_INLINE num F(by_pieces)(num x, const v_pieces *p, bool step) {
    num a = F(pieces_limit)(x, p), i = F(pieces_number)(a, p), zero = n_set(0), one = n_set(1);
    num d = n_sub(a, n_look_up_32(p->table[0], i)), w = n_look_up_32(p->table[5], i);
    num pair = n_look_up_32(p->table[6], i);
    num q = n_fma(n_fma(n_shift_left(pair, 16), d, pair), d, w);
    for (int row = 4; row >= 2; row--) q = n_fma(q, d, n_look_up_32(p->table[row], i));
    num u = n_fma(q, d, n_look_up_32(p->table[1], i));
    if (step) return n_choose_less(x, zero, u, n_sub(one, u));
    return n_sub(n_fma(a, n_shift_left(w, 24), n_max(zero, x)), u);
}
#endif

/* x (1 + tanh u) / 2 = x / (1 + e^-2u) (D. Hendrycks and K. Gimpel, "Gaussian error linear units",
 * 2016) */
MG_INLINE num F(gelu_tanh_tail)(num x) {
    num a = n_min(n_set(C(GELU_HIGH)), n_abs(x));
    F(two) t = F(gelu_twice)(a);
    F(exp_terms) e = F(exp_reduce)(n_neg(t.high));
    e.r_low = n_sub(e.r_low, t.low);
    return F(gate_tail)(n_neg(a), e);
}
/* x ndtr(x) */
MG_INLINE num F(gelu_tail)(num x) {
    num a = n_min(n_set(C(NORMAL_HIGH)), n_abs(x)), minus = n_neg(a);
    F(tail_terms) p = F(normal)(a);
    F(two) y = F(tail_product)(p);
    num h = n_mul(minus, y.high), low = n_fma_exact(minus, y.high, n_neg(h));
    return n_scale(n_add(h, n_fma(minus, y.low, low)), p.n);
}

/* f where x is below the pieces, else y. */
MG_INLINE num F(with_tail)(num x, num y, const v_pieces *p, num (*f)(num)) {
    return n_choose_less(x, n_set(p->low), f(x), y);
}
#if BY_PIECES
MG_INLINE num F(gelu_partial)(num x, num y) {
    const v_pieces *p = &v_gelu_partial_pieces;
    num partial = F(by_pieces)(x, p, true);
    if (MG_LIKELY(n_within_bits(x, 0, v_bits_f32(p->low)))) return partial;
    return n_choose_less(x, n_set(p->low), F(gelu_partial_any)(x, y), partial);
}
#endif
