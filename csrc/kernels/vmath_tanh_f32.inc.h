/* vmath_tanh_f32.inc.h: tanh of floats by pieces (see vmath_num.h for how to read it). */

MG_INLINE num F(tanh)(num x) {
    num a = n_min(n_set(14.0f), n_abs(x)), b = n_add(a, n_set(1.0f)), i = n_shift_right(b, 21);
    num d = n_sub(a, n_look_up(v_tanh_table[0], i));
    num start = n_choose_less(b, n_set(1.25f), a, n_look_up(v_tanh_table[1], i));
    num q = n_look_up(v_tanh_table[7], i);
    for (int row = 6; row >= 2; row--) q = n_fma(q, d, n_look_up(v_tanh_table[row], i));
    return n_with_sign(n_fma_exact(q, d, start), x);
}
