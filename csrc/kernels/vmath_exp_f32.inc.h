/* vmath_exp_f32.inc.h: e^x and 2^x of floats (see vmath_num.h for how to read it); after
 * vmath_powers.inc.h. */

/* n and r, of x up to where e^x would overflow */
MG_INLINE F(stage) F(exp_start)(num x) {
    F(exp_terms) e = F(exp_reduce)(n_max(n_set(C(EXP_LOW)), x));
    return (F(stage)){.a = e.n, .b = n_fma(e.n, n_set(-C(LN2_LO)), e.r_high)};
}
MG_INLINE F(stage) F(exp_first)(num x) { return F(exp_start)(n_min(n_set(C(EXP_HIGH)), x)); }
MG_INLINE num F(exp_last)(F(stage) s, num x) {
    (void)x;
    return n_scale(n_fma(s.b, F(exp_factor)(s.b), n_set(1)), s.a);
}
/* e^x up to x = 40. Without an instruction that scales, 2^(n + 65) is a normal number, which one shift
 * makes, and what is left is rounded once. */
MG_INLINE num F(exp_below)(num x) {
#if defined(__AVX512F__)
    return F(exp_last)(F(exp_start)(x), x);
#else
    const C(TYPE) magic = C(MAGIC) + 127 + 65;
    x = n_max(n_set(C(EXP_LOW)), x);
    num t = n_line(x, C(LOG2E), magic), n = n_sub(t, n_set(magic));
    num r = n_fma(n, n_set(-C(LN2_LO)), n_fma(n, n_set(-C(LN2_HI)), x));
    num y = n_fma(r, F(exp_factor)(r), n_set(1));
    return n_mul(n_mul(y, n_shift_left(t, 23)), n_set(0x1p-65f));
#endif
}
MG_INLINE num F(exp)(num x) { return F(exp_last)(F(exp_first)(x), x); }
MG_INLINE num F(exp2)(num x) {
    x = n_max(n_set(C(EXP2_LOW)), n_min(n_set(C(EXP2_HIGH)), x));
    num n = n_nearest(x), r = n_sub(x, n), p = n_fma(HORNER(r, exp2), r, n_set(C(LN2)));
    return n_scale(n_fma(r, p, n_set(1)), n);
}

/* What gates and pow ask of e^x = T e^r */
typedef F(power_terms) F(growth);
MG_INLINE F(growth) F(growth_of)(num x, num bits, num n) { return F(power_of)(x, bits, n); }
MG_INLINE F(growth) F(growth_plus)(F(growth) p, num x_low) {
    p.r_low = n_add(p.r_low, x_low);
    return p;
}
MG_INLINE num F(growth_power)(F(growth) p) { return F(power_up)(p.bits); }
MG_INLINE num F(growth_rest)(F(growth) p) { return F(power_rest)(p); }
