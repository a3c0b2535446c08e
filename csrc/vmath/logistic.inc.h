/* logistic.inc.h: the logistic function and its logarithm, softplus and logsigmoid; a template
 * (simd/num.h).
 *
 * Functions named _any are right everywhere. For floats there is a shorter way for most numbers
 * (logistic_f32.inc.h).
 */

/* e^r as an unevaluated sum of two */
typedef struct {
    num high, low;
} F(two);

MG_INLINE F(two) F(exp_two)(F(exp_terms) e) {
    num one = n_set(1), r = n_add(e.r_high, e.r_low), p = F(exp_factor)(r);
    num high = n_fma_exact(r, p, one), low = n_fma_exact(r, p, n_sub(one, high));
    num rounding = n_sub(e.r_low, n_sub(r, e.r_high));
    return (F(two)){high, n_fma(rounding, high, low)};
}

/* The terms of 2^k e^x, where the magic number is GROWTH_MAGIC + k. The power must be a normal
 * number. */
MG_INLINE F(growth) F(growth_within)(num x, C(TYPE) magic) {
    num bits = n_line(x, C(LOG2E), magic);
    return F(growth_of)(x, bits, n_sub(bits, n_set(magic)));
}

/* unit (1 + e^-x) = high + low, and approximately 1 / high */
typedef struct {
    num high, low, inverse;
} F(logistic_terms);

/* From T and w of unit e^-x = T (1 + w). The unit keeps the power in the range. With `any` either
 * term may be the smaller one, else the unit is. The division overlaps with other work. */
MG_INLINE F(logistic_terms) F(logistic)(F(stage) p, num unit, bool any) {
    num power = p.a, rest = p.b;
    num more = any ? n_max(unit, power) : power, less = any ? n_min(unit, power) : unit;
    num sum = n_add(power, unit), low = n_sub(less, n_sub(sum, more));
    num high = n_fma(power, rest, sum);
    low = n_add(n_fma(power, rest, n_sub(sum, high)), low);
    return (F(logistic_terms)){high, low, n_div(n_set(1), high)};
}
MG_INLINE F(stage) F(growth_stage)(F(growth) p) {
    return (F(stage)){.a = F(growth_power)(p), .b = F(growth_rest)(p)};
}
/* 1 / (1 + e^a) for a >= 0, from the terms of GATE_UNIT e^a */
MG_INLINE num F(logistic_below)(F(stage) p) {
    num one = n_set(1), unit = n_set(C(GATE_UNIT));
    F(logistic_terms) l = F(logistic)(p, unit, false);
    num rest = n_fnma(l.inverse, l.low, n_fma_exact(n_neg(l.inverse), l.high, one));
    return n_mul(n_fma(l.inverse, rest, l.inverse), unit);
}

MG_INLINE F(stage) F(sigmoid_first)(num x) {
    num a = n_min(n_set(C(SIGMOID_HIGH)), n_abs(x));
    return F(growth_stage)(F(growth_within)(a, C(GROWTH_MAGIC) - C(GATE_SCALE)));
}
MG_INLINE num F(sigmoid_last)(F(stage) s, num x) {
    num q = F(logistic_below)(s);
    return n_choose_less(x, n_set(0), q, n_sub(n_set(1), q));
}
MG_INLINE num F(sigmoid_any)(num x) { return F(sigmoid_last)(F(sigmoid_first)(x), x); }

/* max(x, 0) + log(1 + e^-|x|). The exponential has a low part, which counts where the exponential
 * is the whole result. */
MG_INLINE num F(softplus_power)(num x, num *lower) {
    num low = n_max(n_set(C(SOFTPLUS_LOW)), n_or(x, C(SIGN))), unit = n_set(C(GATE_UNIT));
    F(growth) e = F(growth_within)(low, C(GROWTH_MAGIC) + C(GATE_SCALE));
    num power = F(growth_power)(e), rest = F(growth_rest)(e), y = n_fma(power, rest, power);
    *lower = n_mul(n_fma(power, rest, n_sub(power, y)), unit);
    return n_mul(y, unit);
}
MG_INLINE num F(softplus_of)(num x, num u, num u_low) {
    F(log_terms) p = F(log1p_reduce)(u);
    num s = n_fma(p.k, n_set(C(LN2_HI) * n_exponent_unit), p.t), more = n_max(n_set(0), x);
    num sum = n_add(s, more), lost = n_sub(more, n_sub(sum, s)), log;
    if (sizeof(C(TYPE)) == 4) {
        log = n_add(p.r, n_fma(F(log_factor)(p.r), p.r, n_mul(u_low, p.c)));
        log = n_fma(p.k, n_set(C(LN2_LO) * n_exponent_unit), log);
        log = n_add(sum, n_add(log, lost));
    } else {
        log = n_add(sum, p.r);
        lost = n_fma(u_low, p.c, n_add(lost, n_sub(p.r, n_sub(log, sum))));
        log = n_add(log, F(log_tail)(p, lost));
    }
    return n_max(log, x); /* infinity and NaN */
}
/* -softplus(-x) */
MG_INLINE num F(logsigmoid_power)(num x, num *lower) { return F(softplus_power)(n_neg(x), lower); }
MG_INLINE num F(logsigmoid_of)(num x, num u, num u_low) {
    return n_neg(F(softplus_of)(n_neg(x), u, u_low));
}
