/* vmath_gelu_f32.inc.h: gelu and silu of floats (see vmath_num.h for how to read it); after
 * vmath_gates.inc.h and vmath_normal.inc.h.
 *
 * All three are max(x, 0) - u(a) with a = |x|, where u rises from 0 and falls again as e^-a or
 * faster, and is computed by pieces, as tanh is (vmath_normal_fits.h). Where u is half of a nearly, x / 2
 * takes the place of the first term. Far below 0 there is nothing but u, which must not lose its
 * digits; there it is made of an exponential, in blocks that reach so far. */

/* The piece is the integer nearest to a (k1 + k2 a), so that pieces are narrower where u bends more.
 */
MG_INLINE num F(less_piece)(num x, float high, float k1, float k2, const float (*table)[32]) {
    num a = n_min(n_set(high), n_abs(x)), i = n_fma(a, n_line(a, k2, k1), n_set(C(MAGIC)));
    num d = n_sub(a, n_look_up_32(table[0], i)), q = n_look_up_32(table[8], i);
    for (int row = 7; row >= 3; row--) q = n_fma(q, d, n_look_up_32(table[row], i));
    num most = n_fma(a, n_look_up_32(table[1], i), n_max(n_set(0), x));
    return n_sub(most, n_fma(q, d, n_look_up_32(table[2], i)));
}
/* x e^t (1 - e^t), for t so low that this is x / (1 + e^-t) */
MG_INLINE num F(gate_tail)(num x, F(exp_terms) e) {
    F(two) y = F(exp_two)(e);
    num m = n_mul(x, y.high), low = n_fma(x, y.low, n_fma_exact(x, y.high, n_neg(m)));
    return n_scale(n_add(m, n_fnma(m, n_scale(y.high, e.n), low)), e.n);
}

MG_INLINE num F(silu)(num x) {
    num y = F(less_piece)(x, V_SILU_PIECES_F32, v_silu_table);
    if (MG_LIKELY(n_within_bits(x, 0, V_SILU_TAIL_BITS_F32))) return y;
    num z = n_max(n_set(C(SILU_LOW)), x);
    return n_choose_less(x, n_from_bits(V_SILU_TAIL_BITS_F32), F(gate_tail)(z, F(exp_reduce)(z)), y);
}
/* x (1 + tanh u) / 2 = x / (1 + e^-2u) (D. Hendrycks and K. Gimpel, "Gaussian error linear units",
 * 2016) */
MG_INLINE num F(gelu_tanh)(num x) {
    num y = F(less_piece)(x, V_GELU_TANH_PIECES_F32, v_gelu_tanh_table);
    if (MG_LIKELY(n_within_bits(x, 0, V_GELU_TANH_TAIL_BITS_F32))) return y;
    num a = n_min(n_set(C(GELU_HIGH)), n_abs(x));
    num tail = F(gate_tail)(n_neg(a), F(gelu_decay)(a));
    return n_choose_less(x, n_from_bits(V_GELU_TANH_TAIL_BITS_F32), tail, y);
}
/* x ndtr(x) */
MG_INLINE num F(gelu)(num x) {
    num y = F(less_piece)(x, V_GELU_PIECES_F32, v_gelu_table);
    if (MG_LIKELY(n_within_bits(x, 0, V_GELU_TAIL_BITS_F32))) return y;
    num a = n_min(n_set(C(NORMAL_HIGH)), n_abs(x)), minus = n_neg(a);
    F(tail_terms) p = F(normal)(a);
    F(two) t = F(tail_product)(p);
    num h = n_mul(minus, t.high);
    h = n_add(h, n_fma(minus, t.low, n_fma_exact(minus, t.high, n_neg(h))));
    return n_choose_less(x, n_from_bits(V_GELU_TAIL_BITS_F32), n_scale(h, p.n), y);
}
