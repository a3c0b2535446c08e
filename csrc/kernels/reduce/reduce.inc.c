/* reduce.inc.c: reductions along a row, with the terms and joins of reduce.h, for one float width.
 *
 * The reduced index has stride 1, and the lanes of the tree are lanes of vectors. `kind` is a
 * constant wherever these functions are inlined.
 */
#include "simd/real.h"

/* True if x equals the extremum c, or both are NaN. */
MG_INLINE bool R(reduce_tied)(real x, real c) { return (x == c) | ((x != x) & (c != c)); }

MG_INLINE real R(reduce_join)(int kind, real a, real b) {
    switch (kind) {
    case REDUCE_MAX: return ((b > a) | (b != b)) ? b : a; /* a NaN in a stays: b > NaN is false */
    case REDUCE_MIN: return ((b < a) | (b != b)) ? b : a;
    case REDUCE_PROD: return a * b;
    default: return a + b;
    }
}

typedef ireal R(reduce_mask) __attribute__((vector_size(MG_VECTOR_BYTES)));

MG_INLINE vec R(reduce_choose)(R(reduce_mask) mask, vec yes, vec no) {
    return (vec)((mask & (R(reduce_mask))yes) | (~mask & (R(reduce_mask))no));
}

MG_INLINE vec R(reduce_term_vec)(int kind, vec x, vec c) {
    if (kind == REDUCE_DEVIATION) return x - c;
    if (kind == REDUCE_SQUARES) return (x - c) * (x - c);
    if (kind == REDUCE_DOT) return x * c;
    if (kind != REDUCE_TIES) return x;
    vec one = v_set1(1);
    return R(reduce_choose)((x == c) | ((x != x) & (c != c)), one, one - one);
}

/* For numbers only. NaN is checked once for a block. */
MG_INLINE vec R(reduce_join_vec)(int kind, vec a, vec b) {
    switch (kind) {
#if MG_HAS_WIDE
    case REDUCE_MAX: return R(v_max)(b, a);
    case REDUCE_MIN: return R(v_min)(b, a);
#else
    case REDUCE_MAX: return R(reduce_choose)(b > a, b, a);
    case REDUCE_MIN: return R(reduce_choose)(b < a, b, a);
#endif
    case REDUCE_PROD: return a * b;
    default: return a + b;
    }
}

MG_INLINE vec R(reduce_load)(const real *p, int64_t used) {
    return used == LANES ? v_load(p) : v_load_n(p, (int)used);
}
MG_INLINE void R(reduce_store)(real *p, vec v, int64_t used) {
    if (used == LANES) v_store(p, v);
    else v_store_n(p, v, (int)used);
}

/* A mask of the first `used` lanes. */
MG_INLINE R(reduce_mask) R(reduce_used)(int64_t used) {
    R(reduce_mask) lane = {0};
    MG_UNROLL
    for (int i = 0; i < LANES; i++) lane[i] = i;
    return lane < (ireal)used;
}

/* The terms of 0 <= used <= LANES elements at x; the kind's identity in the other lanes. */
MG_INLINE vec R(reduce_load_part)(int kind, const real *x, int64_t used, vec c) {
    vec term = R(reduce_term_vec)(kind, R(reduce_load)(x, used), c);
    if (used == LANES || kind == REDUCE_SUM) return term;
    return R(reduce_choose)(R(reduce_used)(used), term, v_set1(REAL_C(reduce_identity(kind))));
}

/* True if any lane is NaN. */
MG_INLINE bool R(reduce_any_nan)(vec v) {
#if MG_HAS_WIDE
    return !R(v_inside)(v, v_set1(REAL_C(-INFINITY)), v_set1(REAL_C(INFINITY)));
#else
    for (int i = 0; i < LANES; i++)
        if (v[i] != v[i]) return true;
    return false;
#endif
}

/* Lane i becomes the join of lanes i and i ^ by. */
MG_INLINE vec R(reduce_fold)(int kind, vec v, int by) {
    vec other = v;
    MG_UNROLL
    for (int i = 0; i < LANES; i++) other[i] = v[(i ^ by) % LANES];
    return R(reduce_join_vec)(kind, v, other);
}

/* The join of all lanes. Written out, as only a constant distance makes a shuffle. */
MG_INLINE real R(reduce_across)(int kind, vec v) {
    if (LANES > 8) v = R(reduce_fold)(kind, v, 8);
    if (LANES > 4) v = R(reduce_fold)(kind, v, 4);
    if (LANES > 2) v = R(reduce_fold)(kind, v, 2);
    return R(reduce_fold)(kind, v, 1)[0];
}

/* out[i] = exp(x[i] - c[i]), or added to out[i] if `adds`. x may exceed c hardly at all. For
 * infinite x or c the result is arbitrary. */
MG_SHARED(void, R(mg_reduce_exp), (bool adds, real *restrict out, const real *restrict x,
                                const real *restrict c, int64_t n));

/* The same for n > 0 neighbouring elements with one c. `ahead`: meanwhile prefetches the next n
 * elements and the place of their results. */
MG_INLINE void R(reduce_exp)(bool ahead, real *restrict out, const real *restrict x, real c,
                             int64_t n) {
    int64_t i = 0;
#if MG_HAS_WIDE
    enum { WIDE = WIDE_VECTORS * LANES, LINE = 64 / sizeof(real) };
    for (; i + WIDE <= n; i += WIDE) {
        for (int k = 0; k < WIDE && ahead; k += LINE) {
            __builtin_prefetch(x + i + n + k);
            __builtin_prefetch(out + i + n + k, 1);
        }
        R(w_store)(out + i, R(w_exp_below)(R(w_sub)(R(w_load)(x + i), R(w_set)(c))));
    }
#else
    (void)ahead;
#endif
    real centre[REDUCE_BLOCK];
    for (int64_t k = 0; k < mg_min(n - i, REDUCE_BLOCK); k++) centre[k] = c;
    for (; i < n; i += REDUCE_BLOCK)
        R(mg_reduce_exp)(false, out + i, x + i, centre, mg_min(n - i, REDUCE_BLOCK));
}

/* v, or the first NaN among n elements. */
MG_SHARED(real, R(mg_reduce_or_nan), (real v, const real *x, int64_t n));

/* The extrema, lane by lane, of n >= side * LANES neighbouring elements. The order of elements does
 * not matter and they may be read twice, so the last step goes back to a full step. The sums in
 * *probe are NaN if an element is NaN. */
MG_INLINE vec R(reduce_extrema)(int kind, int side, const real *x, int64_t n, vec *probe) {
    enum { MOST = 4 };
    vec a[MOST], seen[MOST];
    const int64_t step = side * LANES;
    const real *last = x + n - step;
    MG_UNROLL
    for (int v = 0; v < side; v++) seen[v] = a[v] = v_load(x + v * LANES);
    MG_ROLLED /* which gcc forgets if nothing follows an unrolled loop */
    for (const real *next; x < last; x = next) {
        if (side == MOST) reduce_fetch(x, step * (int64_t)sizeof(real));
        next = last - x < step ? last : x + step;
        MG_ANEW(next);
        MG_UNROLL
        for (int v = 0; v < side; v++) {
            vec term = v_load(next + v * LANES);
            MG_HELD(term);
            seen[v] += term;
            a[v] = R(reduce_join_vec)(kind, a[v], term);
        }
    }
    for (int half = side / 2; half > 0; half /= 2)
        MG_UNROLL
        for (int v = 0; v < half; v++) {
            seen[v] += seen[v + half];
            a[v] = R(reduce_join_vec)(kind, a[v], a[v + half]);
        }
    *probe = seen[0];
    return a[0];
}

/* The same for `rows` rows, `apart` from each other, into out[row]. Each step takes four vectors of
 * a row. There are n >= 4 * LANES elements, and all rows share one probe. */
MG_INLINE void R(reduce_extrema_apart)(int kind, int rows, vec *out, const real *x, int64_t apart,
                                       int64_t n, vec *probe) {
    vec a[REDUCE_APART][2], seen[4] = {{0}};
    const int64_t step = 4 * LANES;
    const real *row[REDUCE_APART];
    MG_UNROLL
    for (int r = 0; r < rows; r++) {
        row[r] = x + r * apart;
        a[r][0] = v_load(row[r]);
        a[r][1] = v_load(row[r] + LANES);
    }
    MG_ROLLED
    for (int64_t left = n - step, on = 1; on > 0; left -= on) {
        if (rows == 1) reduce_fetch(row[0], step * (int64_t)sizeof(real));
        on = mg_min(left, step);
        MG_UNROLL
        for (int r = 0; r < rows; r++) {
            MG_UNROLL
            for (int v = 0; v < 2; v++) {
                vec one = v_load(row[r] + v * LANES), two = v_load(row[r] + (v + 2) * LANES);
                MG_HELD(one);
                MG_HELD(two);
                seen[(2 * r + v) % 4] += one + two;
                a[r][v] = R(reduce_join_vec)(kind, a[r][v], R(reduce_join_vec)(kind, one, two));
            }
            row[r] += on;
            MG_ANEW(row[r]);
        }
    }
    MG_UNROLL
    for (int r = 0; r < rows; r++) out[r] = R(reduce_join_vec)(kind, a[r][0], a[r][1]);
    *probe = (seen[0] + seen[1]) + (seen[2] + seen[3]);
}

/* The extremum of n > 0 neighbouring elements. */
MG_INLINE real R(reduce_extremum)(int kind, const real *x, int64_t n) {
    vec v, probe;
    if (MG_VECTOR_BYTES == 32 && n >= 4 * LANES) {
        R(reduce_extrema_apart)(kind, 1, &v, x, 0, n, &probe);
    } else if (n >= 4 * LANES) {
        v = R(reduce_extrema)(kind, 4, x, n, &probe);
    } else {
        reduce_fetch(x, n * (int64_t)sizeof(real));
        if (n >= LANES) {
            v = R(reduce_extrema)(kind, 1, x, n, &probe);
        } else if (MG_VECTOR_BYTES > 16) {
            probe = R(reduce_load)(x, n);
            v = R(reduce_load_part)(kind, x, n, probe);
        } else {
            real joined = x[0];
            for (int64_t i = 1; i < n; i++) joined = R(reduce_join)(kind, joined, x[i]);
            return joined;
        }
    }
    real joined = R(reduce_across)(kind, v);
    return MG_UNLIKELY(R(reduce_any_nan)(probe)) ? R(mg_reduce_or_nan)(joined, x, n) : joined;
}

/* Lane 2 i becomes the join of a's lanes i and i + LANES / 2; lane 2 i + 1 the same of b's. */
MG_INLINE vec R(reduce_fold_two)(int kind, vec a, vec b) {
    vec low = TRANSPOSE_SHUFFLE(a, b, R(TRANSPOSE_LO)), high = TRANSPOSE_SHUFFLE(a, b, R(TRANSPOSE_HI));
    return R(reduce_join_vec)(kind, low, high);
}

/* Lane r of the first four becomes the join of row[r]'s lanes, in the order of reduce_across. */
MG_INLINE vec R(reduce_across_apart)(int kind, const vec *row) {
    vec v = R(reduce_fold_two)(kind, R(reduce_fold_two)(kind, row[0], row[2]),
                               R(reduce_fold_two)(kind, row[1], row[3]));
    return LANES > REDUCE_APART ? R(reduce_fold)(kind, v, LANES / 2) : v;
}

/* The extrema of four rows as lanes, n >= 4 * LANES. */
MG_INLINE vec R(reduce_extremum_apart)(int kind, const real *x, int64_t apart, int64_t n) {
    vec row[REDUCE_APART], probe;
    R(reduce_extrema_apart)(kind, REDUCE_APART, row, x, apart, n, &probe);
    vec v = R(reduce_across_apart)(kind, row);
    if (MG_UNLIKELY(R(reduce_any_nan)(probe)))
        for (int r = 0; r < REDUCE_APART; r++) v[r] = R(mg_reduce_or_nan)(v[r], x + r * apart, n);
    return v;
}

/* The lanes of a block of 0 < n <= 128 neighbouring elements, joined until they fill one vector.
 * For vectors without masks n is a multiple of the lanes. */
MG_INLINE vec R(reduce_lanes)(int kind, const real *x, int64_t n, vec c) {
    enum { PARTS = REDUCE_LANES / LANES };
    vec lanes[PARTS];
    MG_UNROLL
    for (int p = 0; p < PARTS; p++)
        lanes[p] = R(reduce_load_part)(kind, x + p * LANES,
                                       MG_VECTOR_BYTES > 16
                                           ? mg_max(mg_min(n - p * LANES, LANES), 0)
                                           : LANES,
                                       c);
    int64_t done = REDUCE_LANES;
    for (; done + REDUCE_LANES <= n; done += REDUCE_LANES)
        MG_UNROLL
        for (int p = 0; p < PARTS; p++)
            lanes[p] = R(reduce_join_vec)(
                kind, lanes[p],
                R(reduce_load_part)(kind, x + done + p * LANES, LANES, c));
    if (MG_VECTOR_BYTES > 16 && done < n)
        MG_UNROLL
        for (int p = 0; p < PARTS; p++)
            lanes[p] = R(reduce_join_vec)(
                kind, lanes[p],
                R(reduce_load_part)(kind, x + done + p * LANES,
                                    mg_max(mg_min(n - done - p * LANES, LANES), 0), c));
    for (int half = PARTS / 2; half > 0; half /= 2)
        MG_UNROLL
        for (int p = 0; p < half; p++)
            lanes[p] = R(reduce_join_vec)(kind, lanes[p], lanes[p + half]);
    return lanes[0];
}

/* The join of 0 < n <= 128 terms; `terms` has room for padding. One function serves all kinds with
 * the same join. */
static MG_NOINLINE real R(reduce_terms_block)(int join, real *terms, int64_t n) {
    vec none = {0};
    for (; n % REDUCE_LANES; n++) terms[n] = REAL_C(reduce_identity(join));
    if (join == REDUCE_PROD)
        return R(reduce_across)(REDUCE_PROD, R(reduce_lanes)(REDUCE_PROD, terms, n, none));
    return R(reduce_across)(REDUCE_SUM, R(reduce_lanes)(REDUCE_SUM, terms, n, none));
}

/* The sum of exp(x - c) of a full block, with the lanes in registers. Inlined, it would cost other
 * kinds some registers. */
#if MG_HAS_WIDE
static MG_NOINLINE real R(reduce_exp_block)(const real *x, real c) {
    enum {
        WIDE = WIDE_VECTORS * LANES,
        STEP = WIDE > REDUCE_LANES ? WIDE : REDUCE_LANES,
        PARTS = REDUCE_LANES / LANES
    };
    vec lanes[PARTS];
    for (int p = 0; p < PARTS; p++) lanes[p] = v_set1(0);
    MG_ROLLED
    for (int done = 0; done < REDUCE_BLOCK; done += STEP)
        MG_UNROLL
        for (int at = 0; at < STEP; at += WIDE) {
            R(wide) e = R(w_exp_below)(R(w_sub)(R(w_load)(x + done + at), R(w_set)(c)));
            MG_UNROLL
            for (int k = 0; k < WIDE_VECTORS; k++) lanes[(at / LANES + k) % PARTS] += e.v[k];
        }
    for (int half = PARTS / 2; half > 0; half /= 2)
        MG_UNROLL
        for (int p = 0; p < half; p++) lanes[p] += lanes[p + half];
    return R(reduce_across)(REDUCE_SUM, lanes[0]);
}
#endif

/* The join of 0 < n <= 128 neighbouring elements, with the lanes in registers. `centre`: one value,
 * for REDUCE_DOT as many as x, and unused by kinds without centres. */
MG_INLINE real R(reduce_row_block)(int kind, const real *x, int64_t n, const real *centre) {
    real terms[REDUCE_BLOCK];
    vec c = v_set1(reduce_is_centred(kind) ? centre[0] : 0);
#if MG_HAS_WIDE
    if (kind == REDUCE_SUMEXP && n == REDUCE_BLOCK) return R(reduce_exp_block)(x, centre[0]);
#endif
    if (kind == REDUCE_SUMEXP) R(reduce_exp)(false, terms, x, centre[0], n);
    else if (kind == REDUCE_DOT)
        for (int64_t i = 0; i < n; i++) terms[i] = x[i] * centre[i];
    else if (MG_VECTOR_BYTES == 16 && n % REDUCE_LANES)
        for (int64_t i = 0; i < n; i++) terms[i] = R(reduce_term_vec)(kind, v_set1(x[i]), c)[0];
    if (kind == REDUCE_SUMEXP || kind == REDUCE_DOT || (MG_VECTOR_BYTES == 16 && n % REDUCE_LANES))
        return R(reduce_terms_block)(kind <= REDUCE_TIES ? REDUCE_SUM : kind, terms, n);
    return R(reduce_across)(kind, R(reduce_lanes)(kind, x, n, c));
}

/* The same for a group of full blocks, whose lanes are folded two by two into one vector. Each step
 * joins the halves of two vectors, and appends a bit of the block's number to the lane's number.
 * When the lanes of each block are joined, the lanes left are the blocks, with neighbours in the
 * halves. */
MG_INLINE real R(reduce_row_group)(int kind, const real *x, const real *centre) {
    vec b[REDUCE_GROUP], c = v_set1(reduce_is_centred(kind) ? centre[0] : 0);
    for (int i = 0; i < REDUCE_GROUP; i++) {
        reduce_fetch(x + i * REDUCE_BLOCK, REDUCE_BLOCK * sizeof(real));
        b[i] = R(reduce_lanes)(kind, x + i * REDUCE_BLOCK, REDUCE_BLOCK, c);
    }
    for (int pairs = REDUCE_GROUP / 2; pairs > 0; pairs /= 2)
        for (int i = 0; i < pairs; i++) b[i] = R(reduce_fold_two)(kind, b[2 * i], b[2 * i + 1]);
    return R(reduce_across)(kind, b[0]);
}

/* The join of n neighbouring elements in the tree, with a binary counter as in reduce_strip. Full
 * groups enter the counter at their own level. Groups pay where vectors are long and shuffles
 * few. */
MG_INLINE real R(reduce_row)(int kind, const real *x, int64_t n, const real *c) {
    enum { GROUP = REDUCE_GROUP * REDUCE_BLOCK };
    bool grouped = MG_VECTOR_BYTES == 64 && (kind == REDUCE_SUM || kind == REDUCE_SQUARES);
    real stack[REDUCE_ALL_LEVELS];
    for (int64_t done = 0;;) {
        bool group = grouped && n >= GROUP;
        int64_t terms = group ? GROUP : mg_min(n, REDUCE_BLOCK);
        real v;
        if (group) {
            v = R(reduce_row_group)(kind, x, c);
        } else if (n < REDUCE_BLOCK) {
            reduce_fetch(x, n * (int64_t)sizeof(real));
            v = R(reduce_row_block)(kind, x, n, c);
        } else { /* a constant length, so without a loop */
            reduce_fetch(x, REDUCE_BLOCK * sizeof(real));
            v = R(reduce_row_block)(kind, x, REDUCE_BLOCK, c);
        }
        bool last = terms == n;
        int level = group ? REDUCE_GROUP_LEVEL : 0;
        for (int64_t carry = done >> level; last ? carry > 0 : carry & 1; carry >>= 1, level++)
            if (carry & 1) v = R(reduce_join)(kind, stack[level], v);
        if (last) return v;
        stack[level] = v;
        done += group ? REDUCE_GROUP : 1;
        n -= terms;
        x += terms;
        if (kind == REDUCE_DOT) c += REDUCE_BLOCK;
    }
}

/* The last block of a row, which is not full. */
static MG_NOINLINE real R(reduce_row_end)(int kind, const real *x, int64_t n, const real *c) {
    return kind == REDUCE_SQUARES ? R(reduce_row_block)(REDUCE_SQUARES, x, n, c)
                                  : R(reduce_row_block)(REDUCE_SUM, x, n, c);
}

/* Step i of some lanes of a block of each of four rows. */
MG_INLINE void R(reduce_step_apart)(int kind, vec (*a)[2], const real *const *row, int i,
                                    const vec *c) {
    MG_UNROLL
    for (int r = 0; r < REDUCE_APART; r++)
        MG_UNROLL
        for (int h = 0; h < 2; h++) {
            const real *at = row[r] + i * REDUCE_LANES + h * REDUCE_LANES / 2;
            a[r][h] = R(reduce_join_vec)(kind, a[r][h], R(reduce_term_vec)(kind, v_load(at), c[r]));
        }
}

/* The lanes of a block of each of four rows, joined to one vector for each row. There are not
 * enough registers for all lanes, so they are done in parts. The loop is unrolled for sums only. */
MG_INLINE void R(reduce_lanes_apart)(int kind, vec *out, const real *x, int64_t apart,
                                     const vec *c) {
    enum { HALF = REDUCE_LANES / LANES / 2 };
    MG_UNROLL
    for (int p = 0; p < HALF; p++) {
        vec a[REDUCE_APART][2];
        const real *row[REDUCE_APART];
        MG_UNROLL
        for (int r = 0; r < REDUCE_APART; r++) {
            row[r] = x + r * apart + p * LANES;
            MG_ANEW(row[r]);
            a[r][0] = a[r][1] = v_set1(REAL_C(-0.0));
        }
        if (kind == REDUCE_SUM)
            MG_UNROLL
            for (int i = 0; i < REDUCE_DEPTH; i++) R(reduce_step_apart)(kind, a, row, i, c);
        else
            MG_ROLLED
            for (int i = 0; i < REDUCE_DEPTH; i++) {
                R(reduce_step_apart)(kind, a, row, 0, c);
                MG_UNROLL
                for (int r = 0; r < REDUCE_APART; r++) {
                    row[r] += REDUCE_LANES;
                    MG_ANEW(row[r]);
                }
            }
        MG_UNROLL
        for (int r = 0; r < REDUCE_APART; r++) {
            vec v = R(reduce_join_vec)(kind, a[r][0], a[r][1]);
            out[r] = p == 0 ? v : R(reduce_join_vec)(kind, out[r], v);
        }
    }
}

/* The joins of four rows as lanes, in the tree of reduce_row: sums, or sums of squares. */
MG_INLINE vec R(reduce_row_apart)(int kind, const real *x, int64_t apart, int64_t n, const real *c,
                                  int64_t c_apart) {
    vec stack[REDUCE_ALL_LEVELS], centre[REDUCE_APART], lanes[REDUCE_APART], v;
    MG_UNROLL
    for (int r = 0; r < REDUCE_APART; r++)
        centre[r] = v_set1(reduce_is_centred(kind) ? c[r * c_apart] : 0);
    for (int64_t done = 0;; done++, n -= REDUCE_BLOCK, x += REDUCE_BLOCK) {
        if (n >= REDUCE_BLOCK) {
            R(reduce_lanes_apart)(kind, lanes, x, apart, centre);
            v = R(reduce_across_apart)(kind, lanes);
        } else {
            for (int r = 0; r < REDUCE_APART; r++)
                v[r] = R(reduce_row_end)(kind, x + r * apart, n, c + r * c_apart);
        }
        bool last = n <= REDUCE_BLOCK;
        int level = 0;
        for (int64_t carry = done; last ? carry > 0 : carry & 1; carry >>= 1, level++)
            if (carry & 1) v = R(reduce_join_vec)(kind, stack[level], v);
        if (last) return v;
        stack[level] = v;
    }
}
