/* tanh_f64.inc.h: tanh of doubles, by pieces; a template (simd/num.h).
 *
 * tanh(c + d) = T + (1 - T^2) tanh d / (1 + T tanh d). T = tanh c is a number (S. Gal's method,
 * vmath/coefficients/erf.h). tanh d = d (q + p) / q with polynomials p and q of d^2. On the first
 * two pieces c is 0, and d p / q is added to a itself. The added part is less than a sixth of the
 * result, so that its own rounding hardly shows.
 */

MG_INLINE num F(tanh_limit)(num x) { return n_min(n_set(C(TANH_HIGH)), n_abs(x)); }
/* The number of a's piece, shifted left by `after` bits. */
MG_INLINE num F(tanh_piece)(num a, int after) {
    return n_shift_right(n_line(a, C(TANH_STEP), 1), C(PIECE_INDEX) - after);
}
MG_INLINE num F(tanh_of)(num x, num a, num d, num t, num rest) {
    num zero = n_set(0), z = n_mul(d, d), q = HORNER(z, tanh_q), p = n_mul(z, HORNER(z, tanh_p));
    num u = n_mul(d, n_choose_less(zero, t, n_add(q, p), p));
    num y = n_div(n_mul(u, rest), n_fma(t, u, q));
    return n_with_sign(n_add(n_choose_less(zero, t, t, a), y), x);
}
/* Only the piece is handed to the second stage: all that is kept between stages has to be
 * stored. */
MG_INLINE F(stage) F(tanh_first)(num x) {
    return (F(stage)){.a = F(tanh_piece)(F(tanh_limit)(x), 0)};
}
MG_INLINE num F(tanh_last)(F(stage) s, num x) {
    num a = F(tanh_limit)(x), d = n_sub(a, n_look_up(T(tanh_table)[0], s.a));
    num t = n_look_up(T(tanh_table)[1], s.a), rest = n_look_up(T(tanh_table)[2], s.a);
    return F(tanh_of)(x, a, d, t, rest);
}
MG_INLINE num F(tanh)(num x) { return F(tanh_last)(F(tanh_first)(x), x); }
