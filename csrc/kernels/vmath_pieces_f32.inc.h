/* vmath_pieces_f32.inc.h: tanh, sigmoid, silu, gelu and its slope, of floats (see vmath_num.h for
 * how to read it); after vmath_gates.inc.h and vmath_normal.inc.h.
 *
 * All but tanh are s(x) - u(a), where a = |x| and s is max(x, 0), or the step from 0 to 1; u falls as
 * e^-a or faster and is computed by pieces, as tanh is (vmath_normal_fits.h). Far below 0 there is
 * nothing but u, which must not lose its digits there: in blocks that reach so far, it is made of
 * an exponential. */

MG_INLINE F(stage) F(tanh_first)(num x) { return F(odd_first)(x, C(TANH_HIGH), C(TANH_STEP)); }
MG_INLINE num F(tanh_last)(F(stage) s, num x) { return F(odd_last)(s, x, T(tanh_table)); }
MG_INLINE num F(tanh)(num x) { return F(tanh_last)(F(tanh_first)(x), x); }

/* u by the integer nearest to a (k1 + k2 a): pieces are narrower where u bends more. Where u is a / 2
 * nearly, half of a is taken from max(x, 0), so that no digit is lost in the difference. Look-ups
 * are what takes the time: one is of two coefficients of 16 bits, another of a coefficient
 * and, in its last bits, that half. */
MG_INLINE num F(by_pieces)(num x, const v_pieces *p, bool step) {
    num a = n_min(n_set(p->high), n_abs(x)), zero = n_set(0), one = n_set(1);
    num i = n_fma(a, n_fma(a, n_set(p->k2), n_set(p->k1)), n_set(C(MAGIC)));
    num d = n_sub(a, n_look_up_32(p->table[0], i)), w = n_look_up_32(p->table[5], i);
    num pair = n_look_up_32(p->table[6], i);
    num q = n_fma(n_fma(n_shift_left(pair, 16), d, pair), d, w);
    for (int row = 4; row >= 2; row--) q = n_fma(q, d, n_look_up_32(p->table[row], i));
    num u = n_fma(q, d, n_look_up_32(p->table[1], i));
    if (step) return n_choose_less(x, zero, u, n_sub(one, u));
    return n_sub(n_fma(a, n_shift_left(w, 24), n_max(zero, x)), u);
}

/* x e^t (1 - e^t), for t so low that this is x / (1 + e^-t) */
MG_INLINE num F(gate_tail)(num x, F(exp_terms) e) {
    F(two) y = F(exp_two)(e);
    num m = n_mul(x, y.high), low = n_fma(x, y.low, n_fma_exact(x, y.high, n_neg(m)));
    return n_scale(n_add(m, n_fnma(m, n_scale(y.high, e.n), low)), e.n);
}
MG_INLINE num F(silu_tail)(num x) {
    x = n_max(n_set(C(SILU_LOW)), x);
    return F(gate_tail)(x, F(exp_reduce)(x));
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
MG_INLINE num F(gelu_slope)(num x, num y) {
    const v_pieces *p = &v_gelu_slope_pieces;
    num slope = F(by_pieces)(x, p, true);
    if (MG_LIKELY(n_within_bits(x, 0, v_bits_f32(p->low)))) return slope;
    return n_choose_less(x, n_set(p->low), F(gelu_slope_any)(x, y), slope);
}
