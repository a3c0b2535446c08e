/* tan.inc.h: the tangent; a template (simd/num.h). */

/* x = turns pi/16 + r + r_low, |r| <= pi/32. The number of turns is in the low bits. */
typedef struct {
    num turns, r, r_low;
} F(tan_terms);

/* The first product and its difference are exact. The parts of pi/16 are positive, so that -0 stays
 * -0. */
MG_INLINE F(tan_terms) F(tan_reduce)(num x) {
    num t = n_line(x, C(TURNS), C(MAGIC)), n = n_sub(t, n_set(C(MAGIC)));
    num high = n_fma_exact(n, n_set(-C(TURN_1)), x), r = n_fma_exact(n, n_set(-C(TURN_2)), high);
    num r_low = n_fma_exact(n, n_set(-C(TURN_2)), n_sub(high, r));
    return (F(tan_terms)){t, r, n_fma(n, n_set(-C(TURN_3)), r_low)};
}
/* (s + c t) / (c - s t), with t = tan r and s / c the tangent of the turns. s and c are scaled so
 * that both are nearly exact. All terms are carried as sums of two, t as r and the rest. The
 * quotient is corrected once, by its excess, in a way that keeps -0. */
MG_INLINE num F(tan_of)(F(tan_terms) p) {
    num z = n_mul(p.r, p.r), rest = n_fma(n_mul(p.r, z), HORNER(z, tan), p.r_low);
    num minus = n_neg(p.r);
    num s = n_look_up(T(tan_table)[0], p.turns), c = n_look_up(T(tan_table)[1], p.turns);
    num n = n_fma_exact(p.r, c, s), d = n_fma_exact(minus, s, c);
    num d_low = n_fnma(rest, s, n_fma_exact(minus, s, n_sub(c, d)));
    num n_low = n_fma(rest, c, n_fma_exact(p.r, c, n_sub(s, n)));
    num inverse = n_div(n_set(1), n_add(d, d_low));
    /* for a double, n_low would show */
    num y = n_mul(sizeof(C(TYPE)) == 4 ? n : n_add(n, n_low), inverse);
    num excess = n_add(n_fma_exact(y, d, n_neg(n)), n_fma(y, d_low, n_neg(n_low)));
    return n_fnma(excess, inverse, y);
}
/* Right for |x| <= V_TRIG_MAX. */
MG_INLINE num F(tan)(num x) {
    if (sizeof(C(TYPE)) == 4) return F(tan_of)(F(tan_reduce)(x));
    return n_flip_sign(F(tan_of)(F(tan_reduce)(n_abs(x))), x);
}
