/* inverse_trig.inc.h: asin, acos, atan and atan2; a template (simd/num.h). */

/* asin s = s + v, for s = |x| up to 1/2. Beyond 1/2, asin |x| = pi/2 - 2 asin s with s = sqrt((1 -
 * |x|) / 2), where 1 - |x| is exact (W. J. Cody and W. Waite, "Software manual for the elementary
 * functions", 1980, chapter 10). In that case v includes the rounding error of the root. */

/* s and s^2, before the root was rounded */
typedef struct {
    num s, z;
} F(asin_terms);

MG_INLINE F(asin_terms) F(asin_reduce)(num a) {
    num half = n_set(0.5f), z = n_choose_less(half, a, n_line(a, -0.5f, 0.5f), n_mul(a, a));
    return (F(asin_terms)){n_choose_less(half, a, n_near_root(z), a), z};
}
/* The error of the root's square, and from it the error of the root. The root's inverse comes from
 * its bits, good to 12 %. */
MG_INLINE num F(square_lost)(F(asin_terms) p) { return n_fma_exact(n_neg(p.s), p.s, p.z); }
MG_INLINE num F(root_lost)(F(asin_terms) p, num more) {
    return n_fma(F(square_lost)(p), n_less_bits(n_from_bits(C(HALF_RECIPROCAL)), p.s), more);
}
/* base + k (s + v + more) + low for |base| >= |k s|, or base = 0 */
MG_INLINE num F(arc_sum)(num base, num k, F(asin_terms) p, num more, num low) {
    num y = n_fma(k, p.s, base), v = n_fma(n_mul(p.s, p.z), SHORT(p.z, asin), more);
    low = n_add(n_fma(k, p.s, n_sub(base, y)), low);
    return n_add(y, n_fma(k, v, low));
}

/* For floats both formulas are nearly the same at 1/2, where this counts most. */
MG_INLINE num F(asin)(num x) {
    num a = n_abs(x), half = n_set(0.5f), zero = n_set(0), more = n_set(-0.25f * C(PI_LOW));
    F(asin_terms) p = F(asin_reduce)(a);
    more = sizeof(C(TYPE)) == 4 ? n_add(F(square_lost)(p), more) : F(root_lost)(p, more);
    more = n_choose_less(half, a, more, zero);
    num base = n_choose_less(half, a, n_set(0.5f * C(PI)), zero);
    num k = n_choose_less(half, a, n_set(-2), n_set(1));
    return n_with_sign(F(arc_sum)(base, k, p, more, n_set(-0.0f)), x);
}
MG_INLINE num F(acos)(num x) {
    num a = n_abs(x), half = n_set(0.5f), zero = n_set(0);
    F(asin_terms) p = F(asin_reduce)(a);
    num more = n_choose_less(half, a, F(root_lost)(p, zero), zero);
    num parts = n_choose_less(half, a, n_choose_less(x, zero, n_set(1), zero), half);
    num k = n_flip_sign(n_choose_less(half, a, n_set(2), n_set(-1)), x);
    return F(arc_sum)(n_mul(parts, n_set(C(PI))), k, p, more, n_mul(parts, n_set(C(PI_LOW))));
}

/* atan q = atan c + atan((q - c) / (1 + q c)). Two bits of the exponent of q + 1/4 and two of its
 * fraction choose c. It is 0 up to q = 1/4, and the last one from 13/4 on. The constants c are such
 * that atan c is a short number (Gal's method). Adding it, or taking it from pi, loses no digit. */
MG_INLINE num F(atan_piece)(num q) {
    return n_shift_right(n_min(n_set(3.75f), n_add(q, n_set(0.25f))), C(PIECE_INDEX));
}
/* atan t for |t| <= 1/4, from t and its rounding error. */
MG_INLINE num F(atan_short)(num t, num t_low) {
    num z = n_mul(t, t);
    return n_add(t, n_fma(n_mul(t, z), HORNER(z, atan), t_low));
}
/* atan c, and t = (q - c) / (1 + q c) */
MG_INLINE F(stage) F(atan_first)(num x) {
    num a = n_min(n_set(C(ATAN_HIGH)), n_abs(x)), i = F(atan_piece)(a);
    num c = n_look_up(T(atan_table)[0], i);
    num t = n_div(n_sub(a, c), n_fma(a, c, n_set(1)));
    return (F(stage)){.a = n_look_up(T(atan_table)[1], i), .b = t};
}
MG_INLINE num F(atan_last)(F(stage) s, num x) {
    num t = s.b, z = n_mul(t, t), angle = n_fma(n_mul(t, z), HORNER(z, atan), t);
    return n_with_sign(n_add(s.a, angle), x);
}
MG_INLINE num F(atan)(num x) { return F(atan_last)(F(atan_first)(x), x); }

/* The angle of (b, a), where a and b are not negative, or pi less that angle if x has a sign. Gives
 * atan c, and t with its rounding error. The bits of a less the bits of b approximate the logarithm
 * of their ratio, well enough to choose c. */
MG_INLINE F(stage) F(angle_first)(num a, num b, num ratio) {
    num i = F(atan_piece)(n_add_bits(ratio, C(RATIO_ONE)));
    num c = n_look_up(T(atan_table)[0], i);
    num n = n_fma_exact(n_neg(b), c, a), d = n_fma_exact(a, c, b);
    num inverse = n_div(n_set(1), d), t = n_mul(n, inverse);
    num t_low = n_mul(n_fma_exact(n_neg(t), d, n), inverse);
    return (F(stage)){n_look_up(T(atan_table)[1], i), t, t_low};
}
MG_INLINE num F(angle_last)(F(stage) s, num x) {
    num angle = F(atan_short)(s.b, s.c), k = n_with_sign(n_set(1), x), zero = n_set(0);
    num base = n_choose_less(k, zero, n_set(C(PI)), zero);
    num low = n_choose_less(k, zero, n_set(C(PI_LOW)), zero);
    return n_add(n_fma(k, s.a, base), n_fma(k, angle, low));
}
/* For operands in the middle of the range. *right is set if all are. */
MG_INLINE F(stage) F(atan2_first)(num y, num x, bool *right) {
    num a = n_abs(y), b = n_abs(x);
    *right = n_each_within_bits(a, C(ATAN2_LOW), C(ATAN2_HIGH)) &&
             n_each_within_bits(b, C(ATAN2_LOW), C(ATAN2_HIGH));
    return F(angle_first)(a, b, n_less_bits(a, b));
}
MG_INLINE num F(atan2_last)(F(stage) s, num y, num x) { return n_with_sign(F(angle_last)(s, x), y); }
/* For any operands, with the same bits. Operands beyond the middle are scaled by a power of two. An
 * underflow from that does not show. Infinite operands count as 1 beside 0. If both are 0, x counts
 * as 1, too. */
MG_INLINE num F(atan2)(num y, num x) {
    num a = n_abs(y), b = n_abs(x), most = n_max(a, b), many = n_from_bits(C(ATAN2_HIGH));
    num zero = n_set(0), one = n_set(1), infinity = n_set(C(INF)), tiny = n_set(0x1p-20f);
    num scale = n_choose_less(most, many, n_set(C(ATAN2_SCALE)), n_set(1 / C(ATAN2_SCALE)));
    num n = n_choose_less(most, infinity, n_mul(a, scale), n_choose_less(a, infinity, zero, one));
    num d = n_choose_less(most, infinity, n_mul(b, scale), n_choose_less(b, infinity, zero, one));
    d = n_choose_less(zero, most, d, one);
    num ratio = n_less_bits(n_max(n, n_mul(d, tiny)), n_max(d, n_mul(n, tiny)));
    num angle = F(angle_last)(F(angle_first)(n, d, ratio), x);
    angle = n_fma(zero, n_min(one, a), n_fma(zero, n_min(one, b), angle)); /* NaN */
    return n_with_sign(angle, y);
}

/* b / (a^2 + b^2), the partial of atan2(a, b) by a. The partial by b is that of (b, a) with the
 * opposite sign. The result is 0 if both are 0, or one is infinite. If the larger is outside the
 * middle of the range, both are scaled. It is then from 1 to 4 unless it is very small. The error
 * is below 3 units, from three roundings; 2.4 in samples. */
MG_INLINE num F(angle_partial_near)(num a, num b, bool *right) {
    *right = n_within_bits(n_farther(a, b), C(ATAN2_LOW), C(ATAN2_HIGH));
    return n_div(b, n_fma(a, a, n_mul(b, b)));
}
MG_INLINE num F(angle_partial)(num a, num b) {
    num largest = n_from_bits(C(INF_BITS) - 1), one = n_set(1), zero = n_set(0);
    num p = n_abs(a), q = n_abs(b), most = n_max(n_max(p, q), n_set(C(ATAN2_TINY)));
    num scale = n_and(n_min(largest, most), C(EXPONENT));
    scale = n_less_bits(n_from_bits(C(INF_BITS)), scale);
    num usual = n_choose_less(most, n_from_bits(C(ATAN2_HIGH)), one, scale);
    scale = n_choose_less(most, n_from_bits(C(ATAN2_LOW)), scale, usual);
    a = n_mul(a, scale);
    b = n_mul(b, scale);
    num d = n_max(n_set(C(ATAN2_NOTHING)), n_fma(a, a, n_mul(b, b)));
    num partial = n_mul(n_div(b, d), scale);
    return n_choose_less(largest, p, zero, n_choose_less(largest, q, zero, partial));
}
