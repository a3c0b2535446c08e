/* logistic_f32.inc.h: tanh, sigmoid, silu, gelu and its slope, of floats (see simd/num.h for
 * how to read it); after logistic.inc.h and erf.inc.h.
 *
 * GELU is max(x, 0) - u(a), where a = |x|, and its slope, from the step from 0 to 1, too; u falls as
 * e^-a or faster and is computed by pieces, as tanh is (vmath/coefficients/erf.h). Far below 0 there is
 * nothing but u, which must not lose its digits there: in blocks that reach so far, it is made of
 * an exponential. So are sigmoid and silu everywhere. */

MG_INLINE F(stage) F(tanh_first)(num x) { return F(odd_first)(x, C(TANH_HIGH), C(TANH_STEP)); }
MG_INLINE num F(tanh_last)(F(stage) s, num x) { return F(odd_last)(s, x, F(tanh_table)); }
MG_INLINE num F(tanh)(num x) { return F(tanh_last)(F(tanh_first)(x), x); }

/* 1 + e^-x = sum + power rest, by a table as in hyperbolic.inc.h, but of constants c so short
 * that for |x| < GATE_NEAR the sum 1 + T is exact. So the remainder of a division by the rounded
 * whole tells what that lacks. What n ln 2 lacks costs a fifth of a unit. */
typedef struct {
    num sum, power, rest;
} F(gate_terms);

MG_INLINE F(gate_terms) F(gate_near)(num x, bool *right) {
    num magic = n_set(C(POWER_MAGIC)), bits = n_fma(x, n_set(-C(LOG2E)), magic);
    num n = n_sub(bits, magic), r = n_fma_exact(n, n_set(C(LN2)), x);
    *right = n_small(n, C(GATE_NEAR_POWER)); /* not of x: see expm1_near */
    r = n_add(r, n_look_up_held(T(gate_table)[1], bits));
    num power = n_plus_bits(n_look_up_held(T(gate_table)[0], bits), n_shift_left(bits, C(INDEX)));
    num rest = n_fma(n_mul(r, r), HORNER(r, gate), n_neg(r));
    return (F(gate_terms)){n_add(power, n_set(1)), power, rest};
}
/* Near 0, and whether all are; a quotient, from which is taken what it has too much. */
MG_INLINE num F(sigmoid_near)(num x, bool *right) {
    F(gate_terms) p = F(gate_near)(x, right);
    num one = n_set(1), y = n_div(one, n_fma(p.power, p.rest, p.sum));
    num lack = n_fma_exact(n_neg(y), p.sum, one);
    return n_fma(y, n_fnma(n_mul(y, p.power), p.rest, lack), y);
}
MG_INLINE num F(silu_near)(num x, bool *right) {
    F(gate_terms) p = F(gate_near)(x, right);
    num all = n_fma(p.power, p.rest, p.sum), y = n_div(x, all);
    num excess = n_fma(n_mul(y, p.power), p.rest, n_fma_exact(y, p.sum, n_neg(x)));
    return n_fnma(excess, n_less_bits(n_from_bits(C(RECIPROCAL)), all), y);
}
MG_INLINE num F(pieces_limit)(num x, const v_pieces *p) { return n_min(n_set(p->high), n_abs(x)); }
/* u by the integer nearest to a (k1 + k2 a): pieces are narrower where u bends more. Where u is a / 2
 * nearly, half of a is taken from max(x, 0), so that no digit is lost in the difference. Look-ups
 * are what takes the time: one is of two coefficients of 16 bits, another of a coefficient
 * and, in its last bits, that half. */
MG_INLINE num F(pieces_number)(num a, const v_pieces *p) {
    return n_fma(a, n_fma(a, n_set(p->k2), n_set(p->k1)), n_set(C(MAGIC)));
}
#define BY_PIECES (LANE_BY_LANE == MG_LANE_BY_LANE) /* of single vectors not where several are */
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

/* x e^t (1 - e^t), for t so low that this is x / (1 + e^-t) */
MG_INLINE num F(gate_tail)(num x, F(exp_terms) e) {
    F(two) y = F(exp_two)(e);
    num m = n_mul(x, y.high), low = n_fma(x, y.low, n_fma_exact(x, y.high, n_neg(m)));
    return n_scale(n_add(m, n_fnma(m, n_scale(y.high, e.n), low)), e.n);
}
/* k / (1 + e^|x|) and what is made of it, for |x| >= GATE_NEAR */
MG_INLINE num F(gate_far)(num k, num x) {
    return F(gate_tail)(k, F(exp_reduce)(n_neg(n_min(n_set(C(GATE_LAST)), n_abs(x)))));
}
MG_INLINE num F(sigmoid_far)(num x) {
    num one = n_set(1), u = F(gate_far)(one, x);
    return n_choose_less(x, n_set(0), u, n_sub(one, u));
}
MG_INLINE num F(silu_far)(num x) {
    return n_sub(n_max(n_set(-0.0f), x), F(gate_far)(n_min(n_set(C(GATE_LAST)), n_abs(x)), x));
}
/* f where x is far, else y: of a NaN too, whose sign shall not depend on what stands beside it */
MG_INLINE num F(with_far)(num x, num y, num (*f)(num)) {
    return n_choose_less(n_set(C(GATE_NEAR)), n_abs(x), f(x), y);
}
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

/* f where x is below the pieces */
MG_INLINE num F(with_tail)(num x, num y, const v_pieces *p, num (*f)(num)) {
    return n_choose_less(x, n_set(p->low), f(x), y);
}
#if BY_PIECES
MG_INLINE num F(gelu_slope)(num x, num y) {
    const v_pieces *p = &v_gelu_slope_pieces;
    num slope = F(by_pieces)(x, p, true);
    if (MG_LIKELY(n_within_bits(x, 0, v_bits_f32(p->low)))) return slope;
    return n_choose_less(x, n_set(p->low), F(gelu_slope_any)(x, y), slope);
}
#endif
