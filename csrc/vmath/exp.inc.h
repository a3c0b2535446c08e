/* exp.inc.h: e^x and 2^x, for one float width (see simd/num.h for how to read it); after
 * log.inc.h.
 *
 * Both are 2^(k/8) e^r = T (1 + w) with whole k and T = e^s 2^(k/8), for which three bits choose
 * from a table, and w = e^(r - s) - 1, a polynomial of r. One s for all, in double near 2^-19.7, is
 * such that e^s is nearly a number, and so are the others of the table, within 0.03 units (Gal's
 * method, as for logarithms, without a second table for what each is off).
 */

/* n = k/8, which is in the bits */
typedef struct {
    num bits, n, r;
} F(eighths);

MG_INLINE F(eighths) F(eighths_of)(num x, num bits, num n) {
    num r_high = n_fma(n, n_set(-C(EIGHTHS_LN2_HI)), x); /* exact */
    return (F(eighths)){bits, n, n_fma(n, n_set(-C(EIGHTHS_LN2_LO)), r_high)};
}
MG_INLINE F(eighths) F(exp_eighths)(num x, C(TYPE) magic) {
    num bits = n_line(x, C(LOG2E), magic);
    return F(eighths_of)(x, bits, n_sub(bits, n_set(magic)));
}
/* r in powers of 2 */
MG_INLINE F(eighths) F(exp2_eighths)(num x) {
    num bits = n_add(x, n_set(C(EIGHTHS_MAGIC))), n = n_sub(bits, n_set(C(EIGHTHS_MAGIC)));
    return (F(eighths)){bits, n, n_sub(x, n)};
}
MG_INLINE num F(exp_eighths_rest)(num r) { return HORNER(r, exp_eighths); }
MG_INLINE num F(exp2_eighths_rest)(num r) { return SHORT(r, exp2_eighths); }
/* T, a normal number */
MG_INLINE num F(eighths_up)(num bits) {
    return n_plus_bits(n_look_up_8(T(eighths_table), bits), n_shift_left(bits, C(EIGHTHS_SHIFT)));
}
/* Where T is a normal number, and anywhere: whole powers of two come last. */
MG_INLINE num F(power_of_eighths)(F(eighths) p, num w) {
    num t = F(eighths_up)(p.bits);
    return n_fma(t, w, t);
}
MG_INLINE num F(scaled_eighths)(F(eighths) p, num w) {
    num t = n_look_up_8(T(eighths_scaled), p.bits);
    return n_scale_floor(n_fma(t, w, t), p.n);
}

MG_INLINE num F(exp_near)(num x, bool *right) {
    F(eighths) p = F(exp_eighths)(x, C(EIGHTHS_MAGIC));
    *right = n_small(p.n, C(EIGHTHS_USUAL));
    return F(power_of_eighths)(p, F(exp_eighths_rest)(p.r));
}
MG_INLINE num F(exp)(num x) {
    if (!n_scales_any) x = n_max(n_set(C(EXP_LOW)), n_min(n_set(C(EXP_HIGH)), x));
    F(eighths) p = F(exp_eighths)(x, C(EIGHTHS_MAGIC));
    if (n_scales_any) p.r = n_clip(p.r, 1);
    return F(scaled_eighths)(p, F(exp_eighths_rest)(p.r));
}
/* The same up to x = 40. Without an instruction that scales, 2^64 T is a normal number, and what is
 * left is rounded once. */
MG_INLINE num F(exp_below)(num x) {
#if defined(__AVX512F__)
    return F(exp)(x);
#else
    x = n_max(n_set(C(EXP_LOW)), x);
    F(eighths) p = F(exp_eighths)(x, C(EIGHTHS_MAGIC) + 64);
    return n_mul(F(power_of_eighths)(p, F(exp_eighths_rest)(p.r)), n_set(0x1p-64f));
#endif
}

MG_INLINE num F(exp2_near)(num x, bool *right) {
    F(eighths) p = F(exp2_eighths)(x);
    *right = n_small(p.n, C(EIGHTHS_USUAL));
    return F(power_of_eighths)(p, F(exp2_eighths_rest)(p.r));
}
MG_INLINE num F(exp2)(num x) {
    if (!n_scales_any) x = n_max(n_set(C(EXP2_LOW)), n_min(n_set(C(EXP2_HIGH)), x));
    F(eighths) p = F(exp2_eighths)(x);
    if (n_scales_any) p.r = n_clip(p.r, 1);
    return F(scaled_eighths)(p, F(exp2_eighths_rest)(p.r));
}
