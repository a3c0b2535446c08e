/* logistic_f32.inc.h: sigmoid and silu of floats; a template (simd/num.h).
 *
 * Near 0 a table serves, far from it an exponential.
 */

/* 1 + e^-x = sum + power rest, by a table as in hyperbolic.inc.h. The constants c have so few bits
 * that for |x| < GATE_NEAR the sum 1 + T is exact. The quotient by the rounded sum is corrected by
 * the remainder of the division. The error of n ln 2 costs a fifth of a unit. */
typedef struct {
    num sum, power, rest;
} F(gate_terms);

MG_INLINE F(gate_terms) F(gate_near)(num x, bool *right) {
    num magic = n_set(C(POWER_MAGIC)), bits = n_fma(x, n_set(-C(LOG2E)), magic);
    num n = n_sub(bits, magic), r = n_fma_exact(n, n_set(C(LN2)), x);
    *right = n_small(n, C(GATE_NEAR_POWER)); /* not of x: see expm1_near */
    r = n_add(r, n_look_up_held(T(gate_table)[1], bits));
    num power = n_plus_bits(n_look_up_held(T(gate_table)[0], bits), n_shift_left(bits, C(INDEX)));
    num rest = n_fma(n_mul(r, r), HORNER(r, gate), n_neg(r));
    return (F(gate_terms)){n_add(power, n_set(1)), power, rest};
}
/* Near 0: a quotient, corrected by its exact remainder. *right is set if all x are near 0. */
MG_INLINE num F(sigmoid_near)(num x, bool *right) {
    F(gate_terms) p = F(gate_near)(x, right);
    num one = n_set(1), y = n_div(one, n_fma(p.power, p.rest, p.sum));
    num lack = n_fma_exact(n_neg(y), p.sum, one);
    return n_fma(y, n_fnma(n_mul(y, p.power), p.rest, lack), y);
}
MG_INLINE num F(silu_near)(num x, bool *right) {
    F(gate_terms) p = F(gate_near)(x, right);
    num all = n_fma(p.power, p.rest, p.sum), y = n_div(x, all);
    num excess = n_fma(n_mul(y, p.power), p.rest, n_fma_exact(y, p.sum, n_neg(x)));
    return n_fnma(excess, n_less_bits(n_from_bits(C(RECIPROCAL)), all), y);
}

/* x e^t (1 - e^t), for t so low that this equals x / (1 + e^-t) */
MG_INLINE num F(gate_tail)(num x, F(exp_terms) e) {
    F(two) y = F(exp_two)(e);
    num m = n_mul(x, y.high), low = n_fma(x, y.low, n_fma_exact(x, y.high, n_neg(m)));
    return n_scale(n_add(m, n_fnma(m, n_scale(y.high, e.n), low)), e.n);
}
/* k / (1 + e^|x|), for |x| >= GATE_NEAR */
MG_INLINE num F(gate_far)(num k, num x) {
    return F(gate_tail)(k, F(exp_reduce)(n_neg(n_min(n_set(C(GATE_LAST)), n_abs(x)))));
}
MG_INLINE num F(sigmoid_far)(num x) {
    num one = n_set(1), u = F(gate_far)(one, x);
    return n_choose_less(x, n_set(0), u, n_sub(one, u));
}
MG_INLINE num F(silu_far)(num x) {
    return n_sub(n_max(n_set(-0.0f), x), F(gate_far)(n_min(n_set(C(GATE_LAST)), n_abs(x)), x));
}
/* f where x is far, else y. NaN gives y, too, so that its sign does not depend on neighbouring
 * lanes. */
MG_INLINE num F(with_far)(num x, num y, num (*f)(num)) {
    return n_choose_less(n_set(C(GATE_NEAR)), n_abs(x), f(x), y);
}
