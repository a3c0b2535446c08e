/* pow.inc.h: x^y = e^(y log |x|), with the sign and special cases of C99 Annex F; a template
 * (simd/num.h).
 *
 * The exponent may reach 745, and its error becomes the relative error of the result. The logarithm
 * therefore needs ten bits more than the result has. It is carried as an unevaluated sum of two.
 */

/* The logarithm of a normal x > 0, less `less` powers of two. This is as F(log), with three
 * differences. The constants have so few bits that r is exact. Their logarithms have a second part.
 * In
 *      log(1 + r) = r (1 + r (-1/2 + r p))
 * all terms but p carry their rounding errors. Only the entry around 1 has the constant 1, so that
 * r is small where the logarithm is. */
MG_INLINE F(two) F(log_two)(num x, num less) {
    num u = n_add_bits(x, -C(POW_FIRST)), e = n_and(u, C(EXPONENT)), i = n_shift_right(u, C(INDEX));
    num one = n_set(1), half = n_set(-0.5f), k = n_sub(n_from_exponent(e), less);
    num r = n_fma_exact(n_less_bits(x, e), n_look_up(T(pow_table)[0], i), n_neg(one));
    num p = HORNER(r, pow), q = n_fma(r, p, half);
    num q_low = n_fma_exact(r, p, n_sub(half, q)), s = n_fma(r, q, one);
    num s_low = n_fma(r, q_low, n_fma_exact(r, q, n_sub(one, s)));
    num base = n_fma(k, n_set(C(LN2_HI) * n_exponent_unit), n_look_up(T(pow_table)[1], i));
    num low = n_fma(k, n_set(C(LN2_LO) * n_exponent_unit), n_look_up(T(pow_table)[2], i));
    num high = n_fma(r, s, base), lost = n_fma_exact(r, s, n_sub(base, high));
    return (F(two)){high, n_add(lost, n_fma(r, s_low, low))};
}
MG_INLINE F(two) F(times_two)(num y, F(two) t) {
    num high = n_mul(y, t.high);
    return (F(two)){high, n_fma(y, t.low, n_fma_exact(y, t.high, n_neg(high)))};
}
/* e^t for |t| < POW_USUAL, where the powers of two are normal numbers */
MG_INLINE num F(exp_of_two_usual)(F(two) t) {
    F(growth) p = F(growth_plus)(F(growth_within)(t.high, C(GROWTH_MAGIC)), t.low);
    num power = F(growth_power)(p);
    return n_fma(power, F(growth_rest)(p), power);
}
/* e^t for |t| < POW_LIMIT, which is beyond both ends of the range. Whole powers of two are applied
 * last, so that the bits equal those of exp_of_two_usual. No lane's result depends on another lane
 * of its block. */
MG_INLINE num F(exp_of_two)(F(two) t) {
    F(growth) p = F(growth_plus)(F(growth_within)(t.high, C(GROWTH_MAGIC)), t.low);
    num magic = n_set(C(MAGIC)), n = n_sub(p.bits, n_set(C(GROWTH_MAGIC)));
    n = n_sub(n_add(n, magic), magic);
    p.bits = n_sub(p.bits, n);
    num power = F(growth_power)(p);
    return n_scale(n_fma(power, F(growth_rest)(p), power), n);
}

/* a^y for any a > 0 and any y. The results for 0, infinity and NaN are arbitrary. */
MG_INLINE num F(pow_wherever)(num a, num y) {
    num zero = n_set(0), limit = n_set(C(POW_LIMIT)), smallest = n_set(C(SMALLEST));
    num less = n_choose_less(a, smallest, n_set(64 / (C(TYPE))n_exponent_unit), zero);
    a = n_choose_less(a, smallest, n_mul(a, n_set(0x1p64f)), a);
    y = n_max(n_set(-0x1p100f), n_min(n_set(0x1p100f), y)); /* 1^infinity is 1 */
    F(two) t = F(times_two)(y, F(log_two)(a, less));
    t.low = n_choose_less(n_abs(t.high), limit, t.low, zero);
    t.high = n_max(n_neg(limit), n_min(limit, t.high));
    return F(exp_of_two)(t);
}
/* x^y from r = |x|^y. With |y| = 2n + d, d from -1 to 1, y is odd if |d| = 1, and an integer if |d|
 * is 0 or 1. */
MG_INLINE num F(pow_edges)(num x, num y, num r) {
    num zero = n_set(0), one = n_set(1), infinity = n_set(C(INF)), a = n_abs(x), b = n_abs(y);
    num round = n_set(C(MAGIC) / 1.5f), most = n_min(n_set(C(MAGIC) / 0.75f), b);
    num n = n_sub(n_fma(most, n_set(0.5f), round), round), d = n_abs(n_fma(n, n_set(-2), most));
    num broken = n_choose_less(zero, d, n_choose_less(d, one, n_set(C(NAN)), r), r);
    r = n_choose_less(x, zero, broken, r);
    r = n_choose_less(zero, a, r, n_choose_less(y, zero, infinity, zero));
    r = n_choose_less(a, infinity, r, n_choose_less(y, zero, zero, infinity));
    /* NaN, but for the next two lines */
    r = n_fma(zero, n_min(one, a), n_fma(zero, n_min(one, b), r));
    r = n_choose_less(x, one, r, n_choose_less(one, x, r, n_fma(zero, x, one)));
    r = n_choose_less(zero, b, r, n_choose_less(b, one, one, r));
    return n_choose_less(d, one, r, n_with_sign(r, x));
}
/* y log x as a sum of two. *right is set if all x are normal and positive, and all powers
 * normal. */
MG_INLINE F(stage) F(pow_first)(num x, num y, bool *right) {
    F(two) t = F(times_two)(y, F(log_two)(x, n_set(0)));
    *right = n_within_bits(x, C(SMALLEST_BITS), C(INF_BITS)) &&
             n_below(n_abs(t.high), C(POW_USUAL));
    return (F(stage)){.a = t.high, .b = t.low};
}
MG_INLINE num F(pow_last)(F(stage) s, num x, num y) {
    (void)x, (void)y;
    return F(exp_of_two_usual)((F(two)){s.a, s.b});
}
MG_INLINE num F(pow_near)(num x, num y, bool *right) {
    return F(pow_last)(F(pow_first)(x, y, right), x, y);
}
/* For any operands, with the same bits. */
MG_INLINE num F(pow)(num x, num y) { return F(pow_edges)(x, y, F(pow_wherever)(n_abs(x), y)); }

/* The partial of y = a^b by a, b y / a. *right is set if all y are normal numbers and all b y
 * finite. */
MG_INLINE num F(pow_base_partial)(num a, num b, num y, bool *right) {
    num more = n_mul(b, y);
    *right = n_within_bits(n_abs(y), C(SMALLEST_BITS), C(INF_BITS)) &&
             n_within_bits(n_abs(more), 0, C(INF_BITS));
    return n_choose_zero(b, ~C(SIGN), n_set(0), n_div(more, a));
}
