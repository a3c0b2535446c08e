/* reduce.inc.c: joins float terms along one index in the order given in reduce.h.
 *
 * There are two directions. Along rows the reduced index lies at stride 1 and each row gives one
 * result; the lanes are registers. Along columns a strip of neighbouring columns is reduced side by
 * side while its rows stream by. Its lanes lie as lanes[l * width + j], so that folding halves is
 * one loop over memory, and a narrow strip of whole rows can take 16 rows as one long row.
 * `kind` is a constant wherever these functions are inlined. */
#include "real.h"

/* Is x the extremum c? If that is NaN, the NaNs are. */
MG_INLINE bool R(reduce_tied)(real x, real c) { return (x == c) | ((x != x) & (c != c)); }

MG_INLINE real R(reduce_term)(int kind, real x, real c) {
    if (kind == REDUCE_DEVIATION) return x - c;
    if (kind == REDUCE_SQUARES) return (x - c) * (x - c);
    if (kind == REDUCE_SUMEXP) return R(v_exp)(x - c);
    if (kind == REDUCE_DOT) return x * c;
    if (kind == REDUCE_TIES) return R(reduce_tied)(x, c) ? 1 : 0;
    return x;
}

MG_INLINE real R(reduce_join)(int kind, real a, real b) {
    switch (kind) {
    case REDUCE_MAX: return ((b > a) | (b != b)) ? b : a; /* a NaN in a stays: b > NaN is false */
    case REDUCE_MIN: return ((b < a) | (b != b)) ? b : a;
    case REDUCE_PROD: return a * b;
    default: return a + b;
    }
}

/* out[j] = the terms of column j in `rows` rows, joined in order; row k has the centres at
 * c + k * c_stride. A lane of a full block is joined in registers; exponentials are too long to be
 * written out 8 times. */
MG_INLINE void R(reduce_rows_of)(int kind, real *restrict out, const real *restrict x,
                                 int64_t stride, int64_t rows, int64_t width,
                                 const real *restrict c, int64_t c_stride) {
    if (rows == REDUCE_DEPTH && kind != REDUCE_SUMEXP) {
        for (int64_t j = 0; j < width; j++) {
            real a = R(reduce_term)(kind, x[j], c[j]);
            for (int k = 1; k < REDUCE_DEPTH; k++)
                a = R(reduce_join)(kind, a,
                                   R(reduce_term)(kind, x[k * stride + j], c[k * c_stride + j]));
            out[j] = a;
        }
        return;
    }
    for (int64_t j = 0; j < width; j++) out[j] = R(reduce_term)(kind, x[j], c[j]);
    for (int64_t k = 1; k < rows; k++)
        for (int64_t j = 0; j < width; j++)
            out[j] = R(reduce_join)(kind, out[j],
                                    R(reduce_term)(kind, x[k * stride + j], c[k * c_stride + j]));
}

/* The same for a kind that is no constant. This function and the next are all of a reduction along
 * columns that is compiled for each kind, and never inlined: what surrounds them is long. */
static MG_NOINLINE void R(reduce_rows)(int kind, real *out, const real *x, int64_t stride,
                                       int64_t rows, int64_t width, const real *c,
                                       int64_t c_stride) {
    switch (kind) {
    case REDUCE_DEVIATION:
        R(reduce_rows_of)(REDUCE_DEVIATION, out, x, stride, rows, width, c, 0);
        break;
    case REDUCE_SQUARES:
        R(reduce_rows_of)(REDUCE_SQUARES, out, x, stride, rows, width, c, 0);
        break;
    case REDUCE_SUMEXP:
        R(reduce_rows_of)(REDUCE_SUMEXP, out, x, stride, rows, width, c, 0);
        break;
    case REDUCE_DOT:
        R(reduce_rows_of)(REDUCE_DOT, out, x, stride, rows, width, c, c_stride);
        break;
    case REDUCE_TIES:
        R(reduce_rows_of)(REDUCE_TIES, out, x, stride, rows, width, c, 0);
        break;
    case REDUCE_MAX: R(reduce_rows_of)(REDUCE_MAX, out, x, stride, rows, width, c, 0); break;
    case REDUCE_MIN: R(reduce_rows_of)(REDUCE_MIN, out, x, stride, rows, width, c, 0); break;
    case REDUCE_PROD: R(reduce_rows_of)(REDUCE_PROD, out, x, stride, rows, width, c, 0); break;
    default: R(reduce_rows_of)(REDUCE_SUM, out, x, stride, rows, width, c, 0);
    }
}

MG_INLINE void R(reduce_into_of)(int kind, real *restrict a, const real *restrict b,
                                 int64_t width) {
    for (int64_t j = 0; j < width; j++) a[j] = R(reduce_join)(kind, a[j], b[j]);
}

/* a[j] = a[j] join b[j] */
static MG_NOINLINE void R(reduce_into)(int kind, real *a, const real *b, int64_t width) {
    switch (kind) {
    case REDUCE_MAX: R(reduce_into_of)(REDUCE_MAX, a, b, width); break;
    case REDUCE_MIN: R(reduce_into_of)(REDUCE_MIN, a, b, width); break;
    case REDUCE_PROD: R(reduce_into_of)(REDUCE_PROD, a, b, width); break;
    default: R(reduce_into_of)(REDUCE_SUM, a, b, width);
    }
}

/* One block of n <= 128 rows into lanes[0..width). `dense`: rows follow each other without a gap,
 * and then c holds the centres 16 times over. */
static void R(reduce_block)(int kind, real *lanes, const real *x, int64_t stride, int64_t n,
                            int64_t width, bool dense, const real *c, int64_t c_stride) {
    int64_t used = mg_min(n, REDUCE_LANES);
    if (dense) { /* 16 rows are one; the last of those may be short */
        int64_t line = REDUCE_LANES * width, full = n / REDUCE_LANES;
        int64_t rest = n % REDUCE_LANES * width;
        if (rest > 0) R(reduce_rows)(kind, lanes, x, line, full + 1, rest, c, 0);
        if (full > 0)
            R(reduce_rows)(kind, lanes + rest, x + rest, line, full, line - rest, c + rest, 0);
    } else {
        for (int64_t l = 0; l < used; l++)
            R(reduce_rows)(kind, lanes + l * width, x + l * stride, REDUCE_LANES * stride,
                           mg_ceil_div(n - l, REDUCE_LANES), width, c + l * c_stride,
                           REDUCE_LANES * c_stride);
    }
    for (int half = REDUCE_LANES / 2; half > 0; half /= 2) {
        if (used <= half) continue;
        R(reduce_into)(kind, lanes, lanes + half * width, (used - half) * width);
        used = half;
    }
}

/* n rows into lanes[0..width). The blocks are joined like the carries of a binary counter: level i
 * of the stack (of `width` each) holds the join of 2^i blocks where bit i of the number of blocks
 * done is set. That joins whole chunks too, because a chunk has a power of two of blocks. */
static void R(reduce_strip)(int kind, real *lanes, real *stack, const real *x, int64_t stride,
                            int64_t n, int64_t width, bool dense, const real *c,
                            int64_t c_stride) {
    size_t bytes = (size_t)width * sizeof(real);
    int64_t done = 0;
    for (; n > REDUCE_BLOCK; n -= REDUCE_BLOCK) {
        R(reduce_block)(kind, lanes, x, stride, REDUCE_BLOCK, width, dense, c, c_stride);
        x += REDUCE_BLOCK * stride;
        c += REDUCE_BLOCK * c_stride;
        real *top = stack;
        const real *last = lanes;
        for (int64_t carry = done++; carry & 1; carry >>= 1, top += width) {
            R(reduce_into)(kind, top, last, width);
            last = top;
        }
        memcpy(top, last, bytes);
    }
    R(reduce_block)(kind, lanes, x, stride, n, width, dense, c, c_stride);
    const real *last = lanes;
    for (; done > 0; done >>= 1, stack += width) {
        if (!(done & 1)) continue;
        R(reduce_into)(kind, stack, last, width);
        last = stack;
    }
    if (last != lanes) memcpy(lanes, last, bytes);
}

/* ---- along a row ---- */

typedef ireal R(reduce_mask) __attribute__((vector_size(MG_VECTOR_BYTES)));

MG_INLINE vec R(reduce_choose)(R(reduce_mask) mask, vec yes, vec no) {
    return (vec)((mask & (R(reduce_mask))yes) | (~mask & (R(reduce_mask))no));
}

MG_INLINE vec R(reduce_term_vec)(int kind, vec x, real c) {
    if (kind == REDUCE_DEVIATION) return x - c;
    if (kind == REDUCE_SQUARES) return (x - c) * (x - c);
    if (kind != REDUCE_TIES) return x;
    vec centre = v_set1(c), one = v_set1(1);
    return R(reduce_choose)((x == centre) | ((x != x) & (centre != centre)), one, one - one);
}

/* Of numbers: NaN is looked for once in a block. */
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

/* The terms of 0 <= used <= LANES elements at x, then the kind's identity; *probe collects x. */
MG_INLINE vec R(reduce_load_part)(int kind, const real *x, int64_t used, real c, vec *probe) {
    vec v = used == LANES ? v_load(x) : v_load_n(x, (int)used), term = R(reduce_term_vec)(kind, v, c);
    *probe += v;
    if (used == LANES || kind == REDUCE_SUM) return term;
    R(reduce_mask) lane = {0};
    for (int i = 0; i < LANES; i++) lane[i] = i;
    return R(reduce_choose)(lane < (ireal)used, term, v_set1(REAL_C(reduce_identity(kind))));
}

/* Are all lanes finite? */
MG_INLINE bool R(reduce_finite)(vec v) {
    v -= v;
#if MG_HAS_WIDE
    return R(v_inside)(v, v_set1(0), v_set1(1));
#else
    for (int i = 0; i < LANES; i++)
        if (v[i] != 0) return false;
    return true;
#endif
}

/* Lane i holds the join of lanes i and i ^ by. */
MG_INLINE vec R(reduce_fold)(int kind, vec v, int by) {
    vec other = v;
    for (int i = 0; i < LANES; i++) other[i] = v[(i ^ by) % LANES];
    return R(reduce_join_vec)(kind, v, other);
}

/* The join of 0 < n <= 128 neighbouring elements, the lanes in registers. centre: one, and
 * for REDUCE_DOT as many as x; not read by kinds without centres. */
MG_INLINE real R(reduce_row_block)(int kind, const real *x, int64_t n, const real *centre) {
    enum { PARTS = REDUCE_LANES / LANES };
    real below[REDUCE_BLOCK], terms[REDUCE_BLOCK];
    vec lanes[PARTS], probe = {0};
    real c = reduce_is_centred(kind) ? centre[0] : 0;
    if (kind == REDUCE_SUMEXP) {
        for (int64_t i = 0; i < n; i++) below[i] = x[i] - c;
        R(v_exp_chunk)(terms, below, n);
    }
    if (kind == REDUCE_DOT)
        for (int64_t i = 0; i < n; i++) terms[i] = x[i] * centre[i];
    if (kind == REDUCE_SUMEXP || kind == REDUCE_DOT) {
        x = terms;
        kind = REDUCE_SUM;
    }
    for (int p = 0; p < PARTS; p++)
        lanes[p] = R(reduce_load_part)(kind, x + p * LANES,
                                       mg_max(mg_min(n - p * LANES, LANES), 0), c, &probe);
    int64_t done = REDUCE_LANES;
    for (; done + REDUCE_LANES <= n; done += REDUCE_LANES)
        for (int p = 0; p < PARTS; p++)
            lanes[p] = R(reduce_join_vec)(
                kind, lanes[p],
                R(reduce_load_part)(kind, x + done + p * LANES, LANES, c, &probe));
    if (done < n)
        for (int p = 0; p < PARTS; p++)
            lanes[p] = R(reduce_join_vec)(
                kind, lanes[p],
                R(reduce_load_part)(kind, x + done + p * LANES,
                                    mg_max(mg_min(n - done - p * LANES, LANES), 0), c, &probe));
    for (int half = PARTS / 2; half > 0; half /= 2)
        for (int p = 0; p < half; p++)
            lanes[p] = R(reduce_join_vec)(kind, lanes[p], lanes[p + half]);
    vec v = lanes[0]; /* written out: only a constant distance makes a shuffle */
    if (LANES > 8) v = R(reduce_fold)(kind, v, 8);
    if (LANES > 4) v = R(reduce_fold)(kind, v, 4);
    if (LANES > 2) v = R(reduce_fold)(kind, v, 2);
    v = R(reduce_fold)(kind, v, 1);
    if ((kind == REDUCE_MAX || kind == REDUCE_MIN) && MG_UNLIKELY(!R(reduce_finite)(probe)))
        for (int64_t i = 0; i < n; i++)
            if (x[i] != x[i]) return x[i];
    return v[0];
}

/* The join of n neighbouring elements, with the binary counter of reduce_strip. */
MG_INLINE real R(reduce_row)(int kind, const real *x, int64_t n, const real *c) {
    real stack[REDUCE_ALL_LEVELS];
    for (int64_t done = 0;; done++, n -= REDUCE_BLOCK, x += REDUCE_BLOCK) {
        real v = R(reduce_row_block)(kind, x, mg_min(n, REDUCE_BLOCK), c);
        bool last = n <= REDUCE_BLOCK;
        int level = 0;
        for (int64_t carry = done; last ? carry > 0 : carry & 1; carry >>= 1, level++)
            if (carry & 1) v = R(reduce_join)(kind, stack[level], v);
        if (last) return v;
        stack[level] = v;
        if (kind == REDUCE_DOT) c += REDUCE_BLOCK;
    }
}
