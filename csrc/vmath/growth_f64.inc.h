/* growth_f64.inc.h: e^x = T (1 + w) of doubles, for the logistic function and pow; a template
 * (simd/num.h). */

typedef F(eighths) F(growth);
MG_INLINE F(growth) F(growth_of)(num x, num bits, num n) { return F(eighths_of)(x, bits, n); }
MG_INLINE F(growth) F(growth_plus)(F(growth) p, num x_low) {
    p.r = n_add(p.r, x_low);
    return p;
}
MG_INLINE num F(growth_power)(F(growth) p) { return F(eighths_up)(p.bits); }
MG_INLINE num F(growth_rest)(F(growth) p) { return POLYNOMIAL(p.r, exp_eighths); }
