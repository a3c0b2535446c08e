/* hyperbolic.inc.h: expm1, sinh and cosh, from F(power_terms); a template (simd/num.h). */

/* (T - 1) + T (e^r - 1), both with low parts. The constants have two bits less than a number. For T
 * above ONE_LOST, T - 1 is therefore T, with a low part of -1. `few`: a few numbers may be so
 * large. */
MG_INLINE num F(expm1_of)(F(power_terms) p, num x, bool few) {
    num one = n_set(1), r = n_add(p.r_high, p.r_low);
    num w = n_fma(n_mul(r, r), HORNER(r, short_exp), p.r_low), power = F(power_up)(p.bits);
    num d = n_sub(power, one), low = n_sub(power, n_add(d, one));
    if (few) low = n_choose_less(n_set(C(ONE_LOST)), power, n_set(-1), low);
    num y = n_fma_exact(power, p.r_high, n_fma(power, w, low));
    return n_with_sign(n_add(d, y), x); /* of 0 too */
}
MG_INLINE num F(expm1)(num x) {
    num most = n_max(n_set(C(EXPM1_LOW)), x);
    return F(expm1_of)(F(power_reduce)(most, C(POWER_MAGIC), C(POWER_LAST)), x, true);
}
/* The same near 0. *right is set if all x are near 0. The test reads a value computed from x: a
 * signaling NaN in x would hide the number compared with. */
MG_INLINE num F(expm1_near)(num x, bool *right) {
    F(power_terms) p = F(power_within)(x, C(POWER_MAGIC));
    *right = n_small(n_sub(p.bits, n_set(C(POWER_MAGIC))), C(EXPM1_NEAR));
    return F(expm1_of)(p, x, false);
}

/* For x >= 0. With e^r = C + S, the even and the odd part, a = T / 2 and b = 1 / 2T:
 *  sinh x = (a - b) C + (a + b) S, cosh x = (a + b) C + (a - b) S. */
MG_INLINE F(power_terms) F(half_power)(num x, bool near) {
    const C(TYPE) magic = C(POWER_MAGIC) - 1;
    x = n_abs(x);
    return near ? F(power_within)(x, magic) : F(power_reduce)(x, magic, C(POWER_LAST) + 1);
}
/* 1 / 2T. It is negligible beside T / 2 long before it leaves the range, and near 0 it does not
 * leave the range. */
MG_INLINE num F(power_down)(num bits, bool near) {
    num most = near ? bits : n_min(n_set(C(POWER_MAGIC) + 60), bits);
    return n_less_bits(n_look_up_held(T(power_table)[1], bits), n_shift_left(most, C(INDEX)));
}
/* C - 1 from z = r^2 */
MG_INLINE num F(even_part)(num z) { return n_mul(z, HORNER(z, short_cosh)); }

/* Near 0, where it would matter, the constants make a + b exact. The first stage needs many
 * registers and leaves few, in both functions. */
MG_INLINE num F(sinh_of)(F(power_terms) p, num x, bool near) {
    num r = n_add(p.r_high, p.r_low), z = n_mul(r, r), even = F(even_part)(z);
    num odd = n_fma(n_mul(z, r), HORNER(z, short_sinh), p.r_low); /* S - r_high */
    num a = F(power_up)(p.bits), b = F(power_down)(p.bits, near), d = n_sub(a, b);
    num y = n_fma(d, even, n_sub(n_sub(a, d), b)), s = n_fma(b, n_set(2), d);
    y = n_fma_exact(s, p.r_high, n_fma(s, odd, y));
    return n_with_sign(n_add(d, y), x);
}
MG_INLINE num F(cosh_of)(F(power_terms) p, bool near) {
    num r = n_add(p.r_high, p.r_low), a = F(power_up)(p.bits), b = F(power_down)(p.bits, near);
    num s = n_add(a, b), d = n_sub(a, b), low = n_sub(b, n_sub(s, a)), z = n_mul(r, r);
    num odd = n_fma(n_mul(z, r), HORNER(z, short_sinh), r);
    return n_add(s, n_fma(d, odd, n_fma(s, F(even_part)(z), low)));
}
MG_INLINE num F(sinh)(num x) { return F(sinh_of)(F(half_power)(x, false), x, false); }
MG_INLINE num F(cosh)(num x) { return F(cosh_of)(F(half_power)(x, false), false); }
/* The same near 0, with the same bits. *right is set if all x are near 0, judged by the power,
 * which is no signaling NaN. */
MG_INLINE F(power_terms) F(half_power_near)(num x, bool *right) {
    F(power_terms) p = F(half_power)(x, true);
    *right = n_small(n_sub(p.bits, n_set(C(POWER_MAGIC) - 1)), 58);
    return p;
}
MG_INLINE num F(sinh_near)(num x, bool *right) {
    return F(sinh_of)(F(half_power_near)(x, right), x, true);
}
MG_INLINE num F(cosh_near)(num x, bool *right) {
    return F(cosh_of)(F(half_power_near)(x, right), true);
}
