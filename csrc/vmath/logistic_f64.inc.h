/* logistic_f64.inc.h: sigmoid and silu of doubles; a template (simd/num.h). */

MG_INLINE num F(sigmoid)(num x) { return F(sigmoid_any)(x); }

/* x / (1 + e^-t), where t has the sign of x. For x < 0 a scaled unit replaces 1 and is taken off
 * last, so that a subnormal result is rounded once. For x > 0 the unit is 1, as x may be large or
 * tiny. */
MG_INLINE F(stage) F(gate_first)(num x, num t, num t_low) {
    num whole = n_set(C(GROWTH_MAGIC)), scaled = n_set(C(GROWTH_MAGIC) - C(GATE_SCALE));
    num magic = n_choose_less(x, n_set(0), scaled, whole), bits = n_fma(t, n_set(-C(LOG2E)), magic);
    F(growth) e = F(growth_of)(n_neg(t), bits, n_sub(bits, magic));
    return F(growth_stage)(F(growth_plus)(e, n_neg(t_low)));
}
MG_INLINE num F(gate_last)(F(stage) s, num x) {
    num zero = n_set(0), one = n_set(1), unit = n_choose_less(x, zero, n_set(C(GATE_UNIT)), one);
    F(logistic_terms) p = F(logistic)(s, unit, true);
    num y = n_mul(x, p.inverse), more = n_fma(y, p.low, n_fma_exact(y, p.high, n_neg(x)));
    y = n_fnma(n_min(more, one), p.inverse, y); /* NaN at infinity */
    return n_mul(y, unit);
}
MG_INLINE F(stage) F(silu_first)(num x) {
    x = n_max(n_set(C(SILU_LOW)), x);
    return F(gate_first)(x, n_min(n_set(C(GATE_HIGH)), x), n_set(0));
}
MG_INLINE num F(silu_last)(F(stage) s, num x) {
    return F(gate_last)(s, n_max(n_set(C(SILU_LOW)), x));
}
MG_INLINE num F(silu)(num x) { return F(silu_last)(F(silu_first)(x), x); }
