/* wide.inc.h: the operations of wide.h on one float width. */
#include "real.h"

#define wide R(wide)
#define ureal R(wide_bits)
#define uvec R(wide_bits_vec)
#define lanes R(lanes)
#define ALL_LANES (sizeof(real) == 4 ? V_ALL_LANES_F32 : V_ALL_LANES_F64)
#define REAL_SIGN ((ureal)1 << (8 * sizeof(real) - 1))
#define EACH for (int k = 0; k < WIDE_VECTORS; k++)
#define w_abs R(w_abs)
#define w_add R(w_add)
#define w_add_bits R(w_add_bits)
#define w_and R(w_and)
#define w_choose_less R(w_choose_less)
#define w_div R(w_div)
#define w_fma R(w_fma)
#define w_fnma R(w_fnma)
#define w_line R(w_line)
#define w_load R(w_load)
#define w_map R(w_map)
#define w_map_inside R(w_map_inside)
#define w_max R(w_max)
#define w_min R(w_min)
#define w_mul R(w_mul)
#define w_neg R(w_neg)
#define w_or R(w_or)
#define w_scale R(w_scale)
#define w_set R(w_set)
#define w_shift_left R(w_shift_left)
#define w_shift_right R(w_shift_right)
#define w_store R(w_store)
#define w_sub R(w_sub)
#define w_with_sign R(w_with_sign)
#define w_choose_zero R(w_choose_zero)
#define w_xor R(w_xor)
#define WIDE_LANES (WIDE_VECTORS * LANES)

typedef struct {
    vec v[WIDE_VECTORS];
} wide;
/* Values that the first of two stages of a function passes to the second */
typedef struct {
    wide a, b, c;
} R(w_stage);

MG_INLINE wide w_set(real s) {
    wide a;
    EACH a.v[k] = v_set1(s);
    return a;
}
MG_INLINE wide R(w_from_bits)(ureal bits) {
    real s;
    __builtin_memcpy(&s, &bits, sizeof s);
    return w_set(s);
}
MG_INLINE wide w_load(const real *p) {
    wide a;
    EACH a.v[k] = v_load(p + k * LANES);
    return a;
}
MG_INLINE void w_store(real *p, wide a) { EACH v_store(p + k * LANES, a.v[k]); }

MG_INLINE wide w_add(wide a, wide b) {
    EACH a.v[k] = a.v[k] + b.v[k];
    return a;
}
MG_INLINE wide w_sub(wide a, wide b) {
    EACH a.v[k] = a.v[k] - b.v[k];
    return a;
}
MG_INLINE wide w_mul(wide a, wide b) {
    EACH a.v[k] = a.v[k] * b.v[k];
    return a;
}
MG_INLINE wide w_div(wide a, wide b) {
    EACH a.v[k] = a.v[k] / b.v[k];
    return a;
}
MG_INLINE wide w_neg(wide a) {
    EACH a.v[k] = -a.v[k];
    return a;
}
MG_INLINE wide w_fma(wide a, wide b, wide c) {
    EACH a.v[k] = v_fma(a.v[k], b.v[k], c.v[k]);
    return a;
}
/* a b + c, rounded once on any instruction set */
MG_INLINE wide R(w_fma_exact)(wide a, wide b, wide c) { return w_fma(a, b, c); }
/* c - a b */
MG_INLINE wide w_fnma(wide a, wide b, wide c) {
    EACH a.v[k] = v_fma(-a.v[k], b.v[k], c.v[k]);
    return a;
}
/* The second operand if either is NaN. */
MG_INLINE wide w_min(wide a, wide b) {
    EACH a.v[k] = R(v_min)(a.v[k], b.v[k]);
    return a;
}
MG_INLINE wide w_max(wide a, wide b) {
    EACH a.v[k] = R(v_max)(a.v[k], b.v[k]);
    return a;
}
MG_INLINE wide R(w_clip)(wide a, real b) {
    EACH a.v[k] = R(v_clip)(a.v[k], v_set1(b));
    return a;
}
/* a < b ? x : y */
MG_INLINE wide w_choose_less(wide a, wide b, wide x, wide y) {
    EACH a.v[k] = R(v_choose_less)(a.v[k], b.v[k], x.v[k], y.v[k]);
    return a;
}
/* x 2^n, as v_scale */
MG_INLINE wide w_scale(wide x, wide n) {
    EACH x.v[k] = R(v_scale)(x.v[k], n.v[k]);
    return x;
}
/* True if x < limit in every lane, for x >= 0 or NaN. */
MG_INLINE bool R(w_below)(wide x, real limit) { return R(v_all_below)(x.v, limit); }
/* The larger of |a| and |b|, neither NaN */
MG_INLINE wide R(w_farther)(wide a, wide b) {
    EACH a.v[k] = R(v_farther)(a.v[k], b.v[k]);
    return a;
}
/* True if |x| < limit in every lane that is not NaN. No lane may be a signaling NaN; results of
 * arithmetic never are. */
MG_INLINE bool R(w_small)(wide x, real limit) {
    vec most = R(v_farther)(x.v[0], x.v[1]);
    for (int k = 2; k < WIDE_VECTORS; k++) most = R(v_farther)(most, x.v[k]);
    return R(v_all)(R(v_below)(ALL_LANES, most, v_set1(limit)));
}
/* c1 x + c0, the innermost step of a polynomial */
MG_INLINE wide w_line(wide x, real c1, real c0) { return w_fma(x, w_set(c1), w_set(c0)); }
/* Operations on the bits. */
MG_INLINE wide w_and(wide a, ureal mask) {
    EACH a.v[k] = (vec)((uvec)a.v[k] & mask);
    return a;
}
MG_INLINE wide w_or(wide a, ureal mask) {
    EACH a.v[k] = (vec)((uvec)a.v[k] | mask);
    return a;
}
MG_INLINE wide w_add_bits(wide a, ureal b) {
    EACH a.v[k] = (vec)((uvec)a.v[k] + b);
    return a;
}
/* The sum, and the difference, of the bits of a and b as integers. */
MG_INLINE wide R(w_plus_bits)(wide a, wide b) {
    EACH a.v[k] = (vec)((uvec)a.v[k] + (uvec)b.v[k]);
    return a;
}
MG_INLINE wide R(w_less_bits)(wide a, wide b) {
    EACH a.v[k] = (vec)((uvec)a.v[k] - (uvec)b.v[k]);
    return a;
}
/* True if low <= bits < high in every lane, tested vector by vector. */
MG_INLINE bool R(w_each_within_bits)(wide x, ureal low, ureal high) {
    lanes all = ALL_LANES;
    EACH all = R(v_within_bits)(all, (vec)((uvec)x.v[k] - low), high - low);
    return R(v_all)(all);
}
MG_INLINE wide w_shift_right(wide a, int count) {
    EACH a.v[k] = (vec)((uvec)a.v[k] >> count);
    return a;
}
MG_INLINE wide w_shift_left(wide a, int count) {
    EACH a.v[k] = (vec)((uvec)a.v[k] << count);
    return a;
}
MG_INLINE wide w_xor(wide a, wide b) {
    EACH a.v[k] = (vec)((uvec)a.v[k] ^ (uvec)b.v[k]);
    return a;
}
/* x if the bits of i under the mask are all 0, else y */
MG_INLINE wide w_choose_zero(wide i, ureal mask, wide x, wide y) {
    EACH x.v[k] = R(v_choose_zero)(i.v[k], mask, x.v[k], y.v[k]);
    return x;
}
MG_INLINE wide R(w_from_exponent)(wide a) {
    EACH a.v[k] = R(v_from_exponent)(a.v[k]);
    return a;
}
/* table[i mod 16] */
MG_INLINE wide R(w_look_up)(const real *table, wide i) {
    EACH i.v[k] = R(v_look_up)(table, i.v[k]);
    return i;
}
MG_INLINE wide w_abs(wide a) { return w_and(a, ~REAL_SIGN); }
#if defined(__AVX512F__) /* one operation, which compilers do not find */
#define SIGNS ((__m512i)((uvec){0} + REAL_SIGN))
#define OR_SIGN(a, b) (vec) _mm512_ternarylogic_epi64((__m512i)a, (__m512i)b, SIGNS, 0xf8)
#define XOR_SIGN(a, b) (vec) _mm512_ternarylogic_epi64((__m512i)a, (__m512i)b, SIGNS, 0x78)
#else
#define OR_SIGN(a, b) (vec)((uvec)a | ((uvec)b & REAL_SIGN))
#define XOR_SIGN(a, b) (vec)((uvec)a ^ ((uvec)b & REAL_SIGN))
#endif
/* a with the sign of b. The sign of a must be positive or that of b. */
MG_INLINE wide w_with_sign(wide a, wide b) {
    EACH a.v[k] = OR_SIGN(a.v[k], b.v[k]);
    return a;
}
/* a, with the sign flipped if b is negative. */
MG_INLINE wide R(w_flip_sign)(wide a, wide b) {
    EACH a.v[k] = XOR_SIGN(a.v[k], b.v[k]);
    return a;
}
#undef SIGNS
#undef OR_SIGN
#undef XOR_SIGN
MG_INLINE wide R(w_sqrt)(wide a) {
    EACH a.v[k] = R(v_square_root)(a.v[k]);
    return a;
}
#if defined(__AVX512F__)
/* sqrt(a) from y, an approximation of 1 / sqrt(a) to 14 bits. For a from 2^-60 on, in double from
 * 2^-900 on, and for 0 with y = 0. The instruction for 64 bytes takes 12 cycles in float and 24 in
 * double, and blocks its unit meanwhile. Newton's steps take a half and a third of that. The last
 * step has an exact residual and rounds correctly, so the bits are those of the instruction. (P.
 * Markstein, "IA-64 and elementary functions", 2000, chapter 9.) Tested for every fraction of
 * a float and both parities of the exponent. In double tested for the fractions whose root is
 * nearest to the middle between two numbers. */
MG_INLINE wide R(w_root_steps)(wide a, wide y) {
    wide half = w_set(REAL_C(0.5)), s = w_mul(a, y), h = w_mul(y, half);
    for (int step = 0; step < (sizeof(real) == 4 ? 1 : 2); step++) {
        wide e = w_fnma(s, h, half);
        s = w_fma(s, e, s);
        h = w_fma(h, e, h);
    }
    return w_fma(w_fnma(s, s, a), h, s);
}
MG_INLINE wide R(w_rough_root_inverse)(wide a) {
    EACH a.v[k] = R(v_rough_root_inverse)(a.v[k]);
    return a;
}
/* Square roots, `instructions` vectors of them by the instruction, while the others are computed by
 * steps. */
MG_INLINE wide R(w_root_by)(wide a, int instructions) {
    wide s = R(w_root_steps)(a, R(w_rough_root_inverse)(a));
    for (int k = 0; k < instructions; k++) s.v[k] = R(v_square_root)(a.v[k]);
    return s;
}
#endif

/* out[i] = f(x[i]) for full blocks; out and x do not overlap. */
MG_INLINE void w_map(real *restrict out, const real *restrict x, int64_t n, wide (*f)(wide)) {
    if (n % WIDE_LANES) __builtin_unreachable();
    for (int64_t i = 0; i < n; i += WIDE_LANES) w_store(out + i, f(w_load(x + i)));
}
/* out[i] = f(x[i], y[i]) */
MG_INLINE void R(w_map_2)(real *restrict out, const real *restrict x, const real *restrict y,
                          int64_t n, wide (*f)(wide, wide)) {
    if (n % WIDE_LANES) __builtin_unreachable();
    for (int64_t i = 0; i < n; i += WIDE_LANES)
        w_store(out + i, f(w_load(x + i), w_load(y + i)));
}
/* g partial, or 0 if g is 0 */
MG_INLINE wide R(w_times_partial)(wide g, wide partial) {
#if defined(__AVX512F__)
    return w_choose_zero(g, ~REAL_SIGN, w_set(0), w_mul(g, partial));
#else
    EACH partial.v[k] = (vec)((uvec)(g.v[k] * partial.v[k]) & (uvec)(g.v[k] != 0));
    return partial;
#endif
}
/* out[i] = g[i] f(x[i], y[i]), or 0 if g is 0; out may be g */
MG_INLINE void R(w_map_partial)(real *out, const real *g, const real *restrict x,
                              const real *restrict y, int64_t n, wide (*f)(wide, wide)) {
    if (n % WIDE_LANES) __builtin_unreachable();
    for (int64_t i = 0; i < n; i += WIDE_LANES) {
        wide partial = f(w_load(x + i), w_load(y + i));
        w_store(out + i, R(w_times_partial)(w_load(g + i), partial));
    }
}
#if !defined(__AVX512F__)
/* The same for an f that also reports whether its result is right for the whole block, as it nearly
 * always is. If not, `any` computes the block. With few registers it is faster not to clip
 * arguments. */
MG_INLINE void R(w_map_partial_near)(real *out, const real *g, const real *restrict x,
                                   const real *restrict y, int64_t n,
                                   wide (*f)(wide, wide, bool *),
                                   void (*any)(real *, const real *, const real *, const real *)) {
    if (n % WIDE_LANES) __builtin_unreachable();
    for (int64_t i = 0; i < n; i += WIDE_LANES) {
        bool right;
        wide partial = f(w_load(x + i), w_load(y + i), &right);
        if (MG_LIKELY(right)) w_store(out + i, R(w_times_partial)(w_load(g + i), partial));
        else any(out + i, g + i, x + i, y + i);
    }
}
#endif
/* out[i] = last(first(x[i]), x[i]), n > 0. The first stage of a block is interleaved with the last
 * stage of the block before, as they are independent. A processor that looks ahead by less than a
 * block thus finds more to do. */
MG_INLINE void R(w_map_stages)(real *restrict out, const real *restrict x, int64_t n,
                               R(w_stage) (*first)(wide), wide (*last)(R(w_stage), wide)) {
    if (n % WIDE_LANES) __builtin_unreachable();
    R(w_stage) s = first(w_load(x));
    for (int64_t i = 0; i < n; i += WIDE_LANES) {
        R(w_stage) next = first(w_load(x + (i + WIDE_LANES < n ? i + WIDE_LANES : i)));
        w_store(out + i, last(s, w_load(x + i)));
        s = next;
    }
}
#if !defined(__AVX512F__)
/* The same in two loops, with a and b of the first stage kept in memory. With few registers, more
 * operations overlap than with both stages in one loop. */
MG_INLINE void R(w_map_halves)(real *restrict out, const real *restrict x, int64_t n,
                               R(w_stage) (*first)(wide), wide (*last)(R(w_stage), wide)) {
    enum { PART = 256 };
    _Alignas(64) real a[PART], b[PART];
    if (n % WIDE_LANES) __builtin_unreachable();
    for (int64_t at = 0; at < n; at += PART) {
        int64_t m = n - at < PART ? n - at : PART;
        for (int64_t i = 0; i < m; i += WIDE_LANES) {
            R(w_stage) s = first(w_load(x + at + i));
            w_store(a + i, s.a);
            w_store(b + i, s.b);
        }
        for (int64_t i = 0; i < m; i += WIDE_LANES) {
            R(w_stage) s = {.a = w_load(a + i), .b = w_load(b + i)};
            w_store(out + at + i, last(s, w_load(x + at + i)));
        }
    }
}
#endif
/* As w_map_stages, for two operands. `first` also reports whether both stages are right for the
 * whole block, as they nearly always are. If not, `any` computes the block. */
MG_INLINE void R(w_map_stages_2)(real *restrict out, const real *restrict x, const real *restrict y,
                                 int64_t n, R(w_stage) (*first)(wide, wide, bool *),
                                 wide (*last)(R(w_stage), wide, wide),
                                 void (*any)(real *, const real *, const real *)) {
    if (n % WIDE_LANES) __builtin_unreachable();
    bool right, next_right;
    R(w_stage) s = first(w_load(x), w_load(y), &right);
    for (int64_t i = 0; i < n; i += WIDE_LANES) {
        int64_t at = i + WIDE_LANES < n ? i + WIDE_LANES : i;
        R(w_stage) next = first(w_load(x + at), w_load(y + at), &next_right);
        w_store(out + i, last(s, w_load(x + i), w_load(y + i)));
        if (MG_UNLIKELY(!right)) any(out + i, x + i, y + i);
        s = next;
        right = next_right;
    }
}
/* As w_map, for an f that also reports whether its result is right for the whole block, as it
 * nearly always is. If not, `any` computes the block. The loop thus keeps in registers nothing that
 * only rare numbers need, and branches only at its end. */
MG_INLINE void R(w_map_near)(real *restrict out, const real *restrict x, int64_t n,
                             wide (*f)(wide, bool *), void (*any)(real *, const real *)) {
    if (n % WIDE_LANES) __builtin_unreachable();
    for (int64_t i = 0; i < n; i += WIDE_LANES) {
        bool right;
        w_store(out + i, f(w_load(x + i), &right));
        if (MG_UNLIKELY(!right)) any(out + i, x + i);
    }
}
/* The same, but a rare block is computed again by the same code. `before` first scales its numbers
 * so that f is right, or at least harmless. `after` then corrects the results. */
MG_INLINE void R(w_map_scaled)(real *restrict out, const real *restrict x, int64_t n,
                               wide (*f)(wide, bool *), void (*before)(real *, const real *, real),
                               real power, void (*after)(real *, const real *, real), real power_f) {
    _Alignas(64) real scaled[WIDE_LANES];
    const real *from = x;
    if (n % WIDE_LANES) __builtin_unreachable();
    for (int64_t i = 0; i < n;) {
        bool right;
        w_store(out + i, f(w_load(from), &right));
        if (MG_UNLIKELY(!right || from == scaled)) {
            if (from != scaled) {
                before(scaled, from, power);
                from = scaled;
                continue;
            }
            after(out + i, x + i, power_f);
        }
        i += WIDE_LANES;
        from = x + i;
    }
}
MG_INLINE void R(w_map_near_2)(real *restrict out, const real *restrict x, const real *restrict y,
                               int64_t n, wide (*f)(wide, wide, bool *),
                               void (*any)(real *, const real *, const real *)) {
    if (n % WIDE_LANES) __builtin_unreachable();
    for (int64_t i = 0; i < n; i += WIDE_LANES) {
        bool right;
        w_store(out + i, f(w_load(x + i), w_load(y + i), &right));
        if (MG_UNLIKELY(!right)) any(out + i, x + i, y + i);
    }
}
/* out[i] = g(x[i], high, low) for the two numbers that f makes of x[i], in two loops. One loop
 * would be longer than a processor looks ahead, and need more numbers than there are registers. */
MG_INLINE void R(w_map_parts)(real *restrict out, const real *restrict x, int64_t n,
                              wide (*f)(wide, wide *), wide (*g)(wide, wide, wide)) {
    enum { PART = 256 };
    _Alignas(64) real high[PART], low[PART];
    if (n % WIDE_LANES) __builtin_unreachable();
    for (int64_t at = 0; at < n; at += PART) {
        int64_t m = n - at < PART ? n - at : PART;
        for (int64_t i = 0; i < m; i += WIDE_LANES) {
            wide lower, higher = f(w_load(x + at + i), &lower);
            w_store(high + i, higher);
            w_store(low + i, lower);
        }
        for (int64_t i = 0; i < m; i += WIDE_LANES)
            w_store(out + at + i, g(w_load(x + at + i), w_load(high + i), w_load(low + i)));
    }
}
/* out[i] = g(x[i]) for a block, one by one */
static MG_NOINLINE void R(w_one_by_one)(real *out, const real *x, real (*g)(real)) {
    for (int j = 0; j < WIDE_LANES; j++) out[j] = g(x[j]);
}
/* As w_map, for an f that is right only for |x| < limit, and a scalar g that is right everywhere.
 * Wrong results of f are overwritten, so that the loop branches only at its end. */
MG_INLINE void w_map_inside(real *restrict out, const real *restrict x, int64_t n,
                            wide (*f)(wide), real (*g)(real), real limit) {
    if (n % WIDE_LANES) __builtin_unreachable();
    for (int64_t i = 0; i < n; i += WIDE_LANES) {
        wide a = w_load(x + i);
        w_store(out + i, f(a));
        if (MG_UNLIKELY(!R(w_below)(w_abs(a), limit))) R(w_one_by_one)(out + i, x + i, g);
    }
}
/* Any n, by a function of full blocks. The tail is padded to a block. */
static inline void R(w_map_any)(real *restrict out, const real *restrict x, int64_t n,
                                void (*whole)(real *restrict, const real *restrict, int64_t)) {
    int64_t left = n % WIDE_LANES, done = n - left;
    if (done) whole(out, x, done);
    if (left) {
        real padded[WIDE_LANES], y[WIDE_LANES];
        w_store(padded, w_set(1));
        __builtin_memcpy(padded, x + done, (size_t)left * sizeof(real));
        whole(y, padded, WIDE_LANES);
        __builtin_memcpy(out + done, y, (size_t)left * sizeof(real));
    }
}
#undef EACH
#undef wide
#undef ureal
#undef uvec
#undef lanes
#undef ALL_LANES
#undef REAL_SIGN
#undef WIDE_LANES
