/* exp.inc.h: e^x and 2^x, and e^x in parts for functions derived from it; a template (simd/num.h).
 *
 * There are three ways, by the parts of e^x that a function needs:
 *    F(exp_terms)    e^x = 2^n e^r with x = n ln 2 + r, |r| <= ln 2 / 2 and ln 2 in two parts
 *    F(power_terms)  e^x = T e^r with T = 2^n c, x = n ln 2 + log c + r and |r| <= ln 2 / 32
 *    F(eighths)      e^x = T (1 + w), 2^x likewise
 *
 * A sum whose rounding error would reach the result carries that error beside it.
 */

/* ---- by powers of two ---- */

typedef struct {
    num n, r_high, r_low; /* r_high is exact */
} F(exp_terms);

MG_INLINE F(exp_terms) F(exp_reduce)(num x) {
    num n = n_sub(n_line(x, C(LOG2E), C(MAGIC)), n_set(C(MAGIC)));
    num r_high = n_fma(n, n_set(-C(LN2_HI)), x);
    return (F(exp_terms)){n, r_high, n_mul(n, n_set(-C(LN2_LO)))};
}
/* p in e^r = 1 + r p */
MG_INLINE num F(exp_factor)(num r) {
    return n_fma(SHORT(r, exp), r, n_set(1));
}
/* e^r - 1 - r_high, accurate relative to e^r */
MG_INLINE num F(exp_rest)(F(exp_terms) e) {
    num r = n_add(e.r_high, e.r_low);
    return n_fma(n_mul(r, r), POLYNOMIAL(r, exp), e.r_low);
}

/* ---- by powers of two to a sixteenth --------------------------------------------------------- */

/* x log2 e rounded to 1/16: n in the bits from the fourth on, i below them */
typedef struct {
    num bits, r_high, r_low; /* r_high is exact */
} F(power_terms);

MG_INLINE F(power_terms) F(power_of)(num x, num bits, num n) {
    num r_high = n_fma_exact(n, n_set(-C(LN2)), x);
    num r_low = n_fma(n, n_set(-C(LN2_LOW)), n_look_up_held(T(power_table)[2], bits));
    return (F(power_terms)){bits, r_high, r_low};
}
/* 2^k e^x, where the magic number is POWER_MAGIC + k. The power must be a normal number. */
MG_INLINE F(power_terms) F(power_within)(num x, C(TYPE) magic) {
    num bits = n_line(x, C(LOG2E), magic);
    return F(power_of)(x, bits, n_sub(bits, n_set(magic)));
}
/* The same, with the exponent limited to `last`. */
MG_INLINE F(power_terms) F(power_reduce)(num x, C(TYPE) magic, C(TYPE) last) {
    num bits = n_min(n_set(magic + last), n_line(x, C(LOG2E), magic));
    return F(power_of)(x, bits, n_sub(bits, n_set(magic)));
}
/* e^r - 1, accurate relative to e^r */
MG_INLINE num F(power_rest)(F(power_terms) p) {
    num r = n_add(p.r_high, p.r_low);
    return n_fma(n_mul(r, r), POLYNOMIAL(r, short_exp), r);
}

/* T */
MG_INLINE num F(power_up)(num bits) {
    return n_plus_bits(n_look_up_held(T(power_table)[0], bits), n_shift_left(bits, C(INDEX)));
}

/* ---- e^x and 2^x, by powers of two to an eighth ---------------------------------------------- */

/* n = k/8, held in the bits */
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
/* The result where T is a normal number; then the result anywhere, with whole powers of two applied
 * last. */
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
/* The same up to x = 40. Without a scaling instruction, 2^64 T is a normal number, and the rest is
 * rounded once. */
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
