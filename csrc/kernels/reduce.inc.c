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
    if (kind == REDUCE_RESIDUE) return x - c;
    if (kind == REDUCE_SUMSQ) return (x - c) * (x - c);
    if (kind == REDUCE_SUMEXP) return R(v_exp)(x - c);
    if (kind == REDUCE_DOT) return x * c;
    if (kind == REDUCE_TIES) return (real)R(reduce_tied)(x, c);
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
    case REDUCE_RESIDUE:
        R(reduce_rows_of)(REDUCE_RESIDUE, out, x, stride, rows, width, c, 0);
        break;
    case REDUCE_SUMSQ:
        R(reduce_rows_of)(REDUCE_SUMSQ, out, x, stride, rows, width, c, 0);
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

MG_INLINE vec R(reduce_join_vec)(int kind, vec a, vec b) {
    switch (kind) {
    case REDUCE_MAX: return R(reduce_choose)((b > a) | (b != b), b, a);
    case REDUCE_MIN: return R(reduce_choose)((b < a) | (b != b), b, a);
    case REDUCE_PROD: return a * b;
    default: return a + b;
    }
}

/* Lanes `part` * LANES and following of the n elements at x, then the identity of the kind. */
MG_INLINE vec R(reduce_load_part)(int kind, const real *x, int64_t n, int part) {
    x += part * LANES;
    n -= part * LANES;
    if (n >= LANES) return v_load(x);
    int used = (int)mg_max(n, 0);
    vec v = v_load_n(x, used);
    if (kind <= REDUCE_TIES) return v; /* zeros */
    R(reduce_mask) lane = {0};
    for (int i = 0; i < LANES; i++) lane[i] = i;
    return R(reduce_choose)(lane < used, v, v_set1(REAL_C(reduce_identity(kind))));
}

/* Lane i holds the join of lanes i and i ^ by. */
MG_INLINE vec R(reduce_fold)(int kind, vec v, int by) {
    vec other = v;
    for (int i = 0; i < LANES; i++) other[i] = v[(i ^ by) % LANES];
    return R(reduce_join_vec)(kind, v, other);
}

/* The join of n <= 128 neighbouring elements, the lanes in registers. */
MG_INLINE real R(reduce_row_block)(int kind, const real *x, int64_t n, real c) {
    enum { PARTS = REDUCE_LANES / LANES };
    real terms[REDUCE_BLOCK];
    vec lanes[PARTS];
    if (kind >= REDUCE_RESIDUE && kind <= REDUCE_TIES) {
        for (int64_t i = 0; i < n; i++) terms[i] = R(reduce_term)(kind, x[i], c);
        x = terms;
    }
    int64_t done = mg_min(n, REDUCE_LANES);
    for (int p = 0; p < PARTS; p++)
        lanes[p] = R(reduce_load_part)(kind, x, n, p);
    for (; done + REDUCE_LANES <= n; done += REDUCE_LANES)
        for (int p = 0; p < PARTS; p++)
            lanes[p] = R(reduce_join_vec)(kind, lanes[p], v_load(x + done + p * LANES));
    if (done < n)
        for (int p = 0; p < PARTS; p++)
            lanes[p] = R(reduce_join_vec)(kind, lanes[p],
                                          R(reduce_load_part)(kind, x + done, n - done, p));
    for (int half = PARTS / 2; half > 0; half /= 2)
        for (int p = 0; p < half; p++)
            lanes[p] = R(reduce_join_vec)(kind, lanes[p], lanes[p + half]);
    vec v = lanes[0]; /* written out: only a constant distance makes a shuffle */
    if (LANES > 8) v = R(reduce_fold)(kind, v, 8);
    if (LANES > 4) v = R(reduce_fold)(kind, v, 4);
    if (LANES > 2) v = R(reduce_fold)(kind, v, 2);
    return R(reduce_fold)(kind, v, 1)[0];
}

/* The join of n neighbouring elements, with the binary counter of reduce_strip. */
MG_INLINE real R(reduce_row)(int kind, const real *x, int64_t n, real c) {
    real stack[REDUCE_ALL_LEVELS];
    int64_t done = 0;
    for (; n > REDUCE_BLOCK; n -= REDUCE_BLOCK, x += REDUCE_BLOCK) {
        real v = R(reduce_row_block)(kind, x, REDUCE_BLOCK, c);
        int level = 0;
        for (int64_t carry = done++; carry & 1; carry >>= 1)
            v = R(reduce_join)(kind, stack[level++], v);
        stack[level] = v;
    }
    real v = R(reduce_row_block)(kind, x, n, c);
    for (int level = 0; done > 0; done >>= 1, level++)
        if (done & 1) v = R(reduce_join)(kind, stack[level], v);
    return v;
}

/* ---- results ---- */

/* Sums are never -0, so that lanes may be left out or padded with zeros alike. */
MG_INLINE real R(reduce_finish)(int kind, real a) { return kind <= REDUCE_TIES ? a + 0 : a; }

/* y[r] = the join of row r */
MG_INLINE void R(reduce_along_rows)(int kind, real *restrict y, int64_t y_step,
                                    const real *restrict x, int64_t x_step, int64_t rows, int64_t n,
                                    const real *restrict c, int64_t c_step) {
    for (int64_t r = 0; r < rows; r++) {
        real a = R(reduce_row)(kind, x + r * x_step, n, c[r * c_step]);
        y[r * y_step] = R(reduce_finish)(kind, a);
    }
}

/* y[j] = the join of column j, n <= REDUCE_CHUNK and width <= REDUCE_STRIP. */
static void R(reduce_along_columns)(int kind, real *y, int64_t y_step, const real *x,
                                    int64_t stride, int64_t width, int64_t n, const real *c,
                                    int64_t c_step) {
    real lanes[REDUCE_LANES * REDUCE_STRIP], stack[REDUCE_LEVELS * REDUCE_STRIP];
    real centre[REDUCE_STRIP];
    bool dense = stride == width && width <= REDUCE_STRIP / REDUCE_LANES;
    bool centred = kind >= REDUCE_RESIDUE && kind <= REDUCE_TIES;
    if (centred)
        for (int64_t i = 0; i < (dense ? REDUCE_LANES : 1); i++)
            for (int64_t j = 0; j < width; j++) centre[i * width + j] = c[j * c_step];
    R(reduce_strip)(kind, lanes, stack, x, stride, n, width, dense, centred ? centre : x, 0);
    for (int64_t j = 0; j < width; j++) y[j * y_step] = R(reduce_finish)(kind, lanes[j]);
}

/* `run` results from n <= REDUCE_CHUNK elements each, by the strides of the plan. */
static void R(reduce_piece)(int kind, const reduce_plan *p, void *out, const void *in, int64_t run,
                            int64_t n, const void *centre) {
    real *y = out;
    const real *x = in, *c = centre ? centre : in; /* without centres c is never read */
    int64_t ys = p->run_y, xs = p->run_x, cs = p->run_c;
    if (p->columns) {
        R(reduce_along_columns)(kind, y, ys, x, p->stride, run, n, c, cs);
        return;
    }
    switch (kind) {
    case REDUCE_SUM: R(reduce_along_rows)(REDUCE_SUM, y, ys, x, xs, run, n, c, cs); break;
    case REDUCE_RESIDUE: R(reduce_along_rows)(REDUCE_RESIDUE, y, ys, x, xs, run, n, c, cs); break;
    case REDUCE_SUMSQ: R(reduce_along_rows)(REDUCE_SUMSQ, y, ys, x, xs, run, n, c, cs); break;
    case REDUCE_SUMEXP: R(reduce_along_rows)(REDUCE_SUMEXP, y, ys, x, xs, run, n, c, cs); break;
    case REDUCE_TIES: R(reduce_along_rows)(REDUCE_TIES, y, ys, x, xs, run, n, c, cs); break;
    case REDUCE_MAX: R(reduce_along_rows)(REDUCE_MAX, y, ys, x, xs, run, n, c, cs); break;
    case REDUCE_MIN: R(reduce_along_rows)(REDUCE_MIN, y, ys, x, xs, run, n, c, cs); break;
    case REDUCE_PROD: R(reduce_along_rows)(REDUCE_PROD, y, ys, x, xs, run, n, c, cs); break;
    }
}

/* y[j] = the pairwise join of parts[i][j] over `chunks` rows of `width`; parts is overwritten. */
static void R(reduce_parts)(int kind, void *out, void *in, int64_t chunks, int64_t width) {
    real *y = out, *parts = in;
    for (int64_t step = 1; step < chunks; step *= 2)
        for (int64_t i = 0; i + step < chunks; i += 2 * step)
            R(reduce_into)(kind, parts + i * width, parts + (i + step) * width, width);
    for (int64_t j = 0; j < width; j++) y[j] = parts[j];
}

static void R(reduce_fill)(void *out, int64_t n, double value) {
    real *y = out;
    for (int64_t i = 0; i < n; i++) y[i] = REAL_C(value);
}

/* y /= divisor */
static void R(reduce_divide)(void *out, int64_t n, double divisor) {
    real *y = out, d = REAL_C(divisor);
    for (int64_t i = 0; i < n; i++) y[i] /= d;
}

/* y -= residue^2 / n: what the sum of squares has too much because the mean was rounded. */
static void R(reduce_correct)(void *out, const void *residue, int64_t n, double count) {
    real *restrict y = out;
    const real *restrict r = residue;
    for (int64_t i = 0; i < n; i++) {
        real extra = r[i] - r[i] == 0 ? r[i] * (r[i] / REAL_C(count)) : 0;
        y[i] = y[i] < extra ? 0 : y[i] - extra;
    }
}

/* y = c + log(y) where c is finite, else c: c is the maximum, which decides NaN, inf and -inf. */
static void R(reduce_add_log)(void *out, const void *centre, int64_t n) {
    real *restrict y = out;
    const real *restrict c = centre;
    for (int64_t i = 0; i < n; i++) {
        real sum = c[i] + R(v_log)(y[i]);
        y[i] = c[i] - c[i] == 0 ? sum : c[i];
    }
}

/* out = g / (how many share it); out and the count are the same array. */
static void R(reduce_share)(void *out, const void *const *in, int64_t n) {
    real *y = out;
    const real *g = in[0], *count = in[1];
    for (int64_t i = 0; i < n; i++) y[i] = g[i] / count[i];
}

/* dx = x tied with y ? share : 0 */
static void R(reduce_spread)(void *out, const void *const *in, int64_t n) {
    real *restrict dx = out;
    const real *restrict x = in[0], *restrict y = in[1], *restrict share = in[2];
    for (int64_t i = 0; i < n; i++) dx[i] = R(reduce_tied)(x[i], y[i]) ? share[i] : 0;
}
