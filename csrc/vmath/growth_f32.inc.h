/* growth_f32.inc.h: e^x = T e^r of floats, for the logistic function and pow; a template
 * (simd/num.h). */

typedef F(power_terms) F(growth);
MG_INLINE F(growth) F(growth_of)(num x, num bits, num n) { return F(power_of)(x, bits, n); }
MG_INLINE F(growth) F(growth_plus)(F(growth) p, num x_low) {
    p.r_low = n_add(p.r_low, x_low);
    return p;
}
MG_INLINE num F(growth_power)(F(growth) p) { return F(power_up)(p.bits); }
MG_INLINE num F(growth_rest)(F(growth) p) { return F(power_rest)(p); }
