/* gelu.inc.h: the argument of tanh in GELU, for both float widths; a template (simd/num.h). */

/* 2u = a (first + third a^2), u = sqrt(2 / pi) (a + 0.044715 a^3), with the low part of every
 * product. The first term of the sum has few bits, so that the sum's rounding error is exact. */
MG_INLINE F(two) F(gelu_twice)(num a) {
    num z = n_mul(a, a), z_low = n_fma_exact(a, a, n_neg(z));
    num first = n_set(C(GELU_FIRST)), third = n_set(C(GELU_THIRD));
    num h = n_fma_exact(third, z, first), lost = n_fma_exact(third, z, n_sub(first, h));
    num h_low = n_fma(n_set(C(GELU_THIRD_LOW)), z, n_set(C(GELU_FIRST_LOW)));
    h_low = n_add(n_fma(third, z_low, h_low), lost);
    num t = n_mul(a, h);
    return (F(two)){t, n_fma(a, h_low, n_fma_exact(a, h, n_neg(t)))};
}
