/* rsqrt.inc.h: 1 / sqrt(x); a template (simd/num.h).
 *
 * The start is good to 3.5 %, from the bits (C. Lomont, "Fast inverse square root", 2003). Steps of
 * third order follow, in float then one of second order. With ROUGH_ROOTS an instruction's 11 or 14
 * bits replace the start and the first step. The last step has second order and an exact residual:
 * x y^2 is computed from x y, which cannot underflow.
 *
 * That takes half the time of a root and a quotient, which serve where no residual is exact. Error
 * 0.501, without fma 1.49.
 *
 * Floats are rounded correctly with each of the three starts. This was tried for every fraction and
 * both parities of the exponent. The exceptions are 4 less two units and its multiples by powers of
 * 4. (Instructions as inexact as their makers allow would leave up to 15 other exceptions in 2^24.)
 * Halving takes one from the exponent.
 */
#if MG_HAS_FMA
MG_INLINE num F(rsqrt)(num x) {
    bool usual = n_within_bits(x, C(SMALLEST_BITS), C(INF_BITS));
    num one = n_set(1), zero = n_set(0), smallest = n_set(C(SMALLEST)), a = x;
    if (MG_UNLIKELY(!usual)) a = n_choose_less(x, smallest, n_mul(x, n_set(C(RSQRT_SCALE))), x);
#if ROUGH_ROOTS
    num y = n_rough_root_inverse(a);
#else
    num y = n_less_bits(n_from_bits(C(RSQRT)), n_shift_right(a, 1));
#endif
    for (int step = ROUGH_ROOTS; step < C(RSQRT_STEPS); step++) {
        num e = n_fnma(n_mul(a, y), y, one);
        y = n_fma(n_mul(y, e), n_line(e, 0.375f, 0.5f), y);
    }
    if (sizeof(C(TYPE)) == 4)
        y = n_fma(n_add_bits(y, -C(SMALLEST_BITS)), n_fnma(n_mul(a, y), y, one), y);
    num p = n_mul(a, y), p_low = n_fma_exact(a, y, n_neg(p));
    num e = n_fnma(p_low, y, n_fma_exact(n_neg(p), y, one));
    y = n_fma(n_add_bits(y, -C(SMALLEST_BITS)), e, y);
    if (MG_UNLIKELY(!usual)) {
        y = n_choose_less(x, smallest, n_mul(y, n_set(C(RSQRT_BACK))), y);
        num outside = n_choose_less(x, zero, n_set(C(NAN)), n_div(one, x)); /* 0, infinity, NaN */
        y = n_choose_less(zero, x, n_choose_less(x, n_set(C(INF)), y, outside), outside);
    }
    return y;
}
#else
MG_INLINE num F(rsqrt)(num x) { return n_div(n_set(1), n_near_root(x)); }
#endif
