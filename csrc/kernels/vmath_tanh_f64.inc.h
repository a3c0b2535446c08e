/* vmath_tanh_f64.inc.h: tanh of doubles (see vmath_num.h for how to read it).
 *
 * m / (2 + m) with m = e^(2|x|) - 1 = 2^n (w + 1 - 2^-n): both over 2^n, and both kept as
 * unevaluated sums, which needs no polynomial for small x beside. */

MG_INLINE num F(tanh)(num x) {
    num one = n_set(1.0), a = n_min(n_set(20.0), n_abs(x));
    F(exp_terms) e = F(exp_reduce)(n_add(a, a));
    num tail = F(exp_rest)(e), w = n_add(e.r_high, tail), w_low = n_sub(tail, n_sub(w, e.r_high));
    num s = n_scale(one, n_neg(e.n)), g = n_sub(one, s), h = n_add(one, s);
    num g_low = n_sub(n_sub(one, g), s), h_low = n_sub(s, n_sub(h, one));
    num m = n_add(g, w), m_low = n_add(n_add(n_sub(g, m), w), n_add(w_low, g_low));
    num d = n_add(h, w), d_low = n_add(n_add(n_sub(h, d), w), n_add(w_low, h_low));
    num inverse = F(one_over)(d), y = n_mul(m, inverse);
    num rest = n_add(n_fnma(y, d_low, n_fma_exact(n_neg(y), d, m)), m_low);
    return n_with_sign(n_abs(n_fma(rest, inverse, y)), x);
}
