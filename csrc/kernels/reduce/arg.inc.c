/* arg.inc.c: the index of the first maximum of x, or of -x; the first NaN wins over all numbers. */
#include "simd/real.h"

/* True if x beats the best value so far, b. */
MG_INLINE bool R(arg_better)(real x, real b) { return !(x <= b) & (b == b); }

/* The first i with x[i] tied with `best`, which occurs. Full steps come first: their loops are
 * vectorised, which a loop that stops at the first hit is not. */
static MG_NOINLINE int64_t R(arg_find)(const real *x, int64_t n, real best) {
    int64_t i = 0;
    for (; i + ARG_STEP <= n; i += ARG_STEP) {
        ireal found = 0, first = ARG_STEP;
        for (int j = 0; j < ARG_STEP; j++) found |= R(reduce_tied)(x[i + j], best);
        if (!found) continue;
        for (int j = 0; j < ARG_STEP; j++) {
            ireal here = R(reduce_tied)(x[i + j], best) ? j : ARG_STEP;
            first = here < first ? here : first;
        }
        return i + first;
    }
    while (!R(reduce_tied)(x[i], best)) i++;
    return i;
}

/* The extrema of four lines of n elements, `apart` from each other, and the blocks in which they
 * occur. */
static MG_NOINLINE void R(arg_blocks_apart)(int sign, real *best, int64_t *where, const real *x,
                                            int64_t apart, int64_t n) {
    for (int64_t i = 0; i < n; i += REDUCE_BLOCK) {
        real t[LANES];
        /* a last block that is not full begins earlier; the elements read twice are no better */
        int64_t at = mg_min(i, n - REDUCE_BLOCK);
        v_store(t, sign > 0 ? R(reduce_extremum_apart)(REDUCE_MAX, x + at, apart, REDUCE_BLOCK)
                            : R(reduce_extremum_apart)(REDUCE_MIN, x + at, apart, REDUCE_BLOCK));
        MG_UNROLL
        for (int r = 0; r < REDUCE_APART; r++) {
            if (i > 0 && MG_LIKELY(!R(arg_better)(sign * t[r], best[r]))) continue;
            best[r] = sign * t[r];
            where[r] = at;
        }
    }
}

/* best[r], index[r] of row r, four rows at once as in reduce_along_rows, or four parts of a long
 * row. Returns the number of rows done. */
static MG_NOINLINE int64_t R(arg_rows_apart)(int sign, real *restrict best, int64_t *restrict index,
                                             int64_t y_step, const real *restrict x, int64_t x_step,
                                             int64_t rows, int64_t n, int64_t base) {
    real b[REDUCE_APART];
    int64_t in[REDUCE_APART], apart = rows / REDUCE_APART, part = n / REDUCE_APART, r = 0;
    for (; r < apart; r++) {
        R(arg_blocks_apart)(sign, b, in, x + r * x_step, apart * x_step, n);
        for (int64_t i = 0, row = r; i < REDUCE_APART; i++, row += apart) {
            const real *from = x + row * x_step + in[i];
            best[row * y_step] = b[i];
            index[row * y_step] = base + in[i] + R(arg_find)(from, n - in[i], sign * b[i]);
        }
    }
    for (r *= REDUCE_APART; r < rows && part >= REDUCE_CHUNK / 2; r++) {
        const real *row = x + r * x_step;
        R(arg_blocks_apart)(sign, b, in, row, part, part);
        int64_t where = in[0];
        for (int i = 1; i < REDUCE_APART; i++) {
            if (!R(arg_better)(b[i], b[0])) continue;
            b[0] = b[i];
            where = i * part + in[i];
        }
        for (int64_t i = REDUCE_APART * part; i < n; i++) {
            if (!R(arg_better)(sign * row[i], b[0])) continue;
            b[0] = sign * row[i];
            where = i;
        }
        best[r * y_step] = b[0];
        index[r * y_step] = base + where + R(arg_find)(row + where, n - where, sign * b[0]);
    }
    return r;
}

/* The extremum of n >= 128 neighbouring elements and its index. For NaN, the index where to start
 * the search. Each lane keeps its own extremum and the first block of it. The block is kept as a
 * float, which is exact below ARG_SEGMENT. The loop thus has no unpredictable branch. */
MG_INLINE real R(arg_of_blocks)(int kind, const real *x, int64_t n, int64_t *where) {
    vec lane = {0}, in = {0}, seen, probe, top;
    top = R(reduce_extrema)(kind, 4, x, REDUCE_BLOCK, &seen);
    for (int64_t i = REDUCE_BLOCK; i < n; i += REDUCE_BLOCK) {
        /* a last block that is not full begins earlier; the elements read twice are no better */
        int64_t at = mg_min(i, n - REDUCE_BLOCK);
        reduce_fetch(x + at, REDUCE_BLOCK * sizeof(real));
        vec v = R(reduce_extrema)(kind, 4, x + at, REDUCE_BLOCK, &probe);
        in = R(reduce_choose)(kind == REDUCE_MAX ? v > top : v < top, v_set1((real)at), in);
        top = R(reduce_join_vec)(kind, top, v);
        seen += probe;
    }
    real b = R(reduce_across)(kind, top);
    if (MG_UNLIKELY(R(reduce_any_nan)(seen))) b = R(mg_reduce_or_nan)(b, x, n);
    *where = 0;
    if (b != b) return b;
    in = R(reduce_choose)(top == v_set1(b), in, v_set1((real)n));
    x += *where = (int64_t)R(reduce_across)(REDUCE_MIN, in);
    MG_UNROLL
    for (int k = 0; k < LANES; k++) lane[k] = (real)k;
    in = v_set1(REDUCE_BLOCK);
    for (int k = REDUCE_BLOCK - LANES; k >= 0; k -= LANES)
        in = R(reduce_choose)(v_load(x + k) == v_set1(b), lane + v_set1((real)k), in);
    *where += (int64_t)R(reduce_across)(REDUCE_MIN, in);
    return b;
}

/* best[r], index[r] of row r */
MG_INLINE void R(arg_along_rows)(int sign, real *restrict best, int64_t *restrict index,
                                 int64_t y_step, const real *restrict x, int64_t x_step,
                                 int64_t rows, int64_t n, int64_t base) {
    int kind = sign > 0 ? REDUCE_MAX : REDUCE_MIN;
    for (int64_t r = 0; r < rows; r++, x += x_step) {
        int64_t where = 0;
        bool blocks = n >= REDUCE_BLOCK;
        real b = blocks ? R(arg_of_blocks)(kind, x, n, &where) : R(reduce_extremum)(kind, x, n);
        if (!blocks || MG_UNLIKELY(b != b)) where = R(arg_find)(x, n, b);
        best[r * y_step] = sign * b;
        index[r * y_step] = base + where;
    }
}

/* Joins element i of some columns, the terms t. */
MG_INLINE void R(arg_step)(vec *b, R(reduce_mask) *where, vec t, int64_t i) {
    R(reduce_mask) here = {0}, take = ~(t <= *b) & (*b == *b);
    here += (ireal)i;
    *b = R(reduce_choose)(take, t, *b);
    *where = (take & here) | (~take & *where);
}

/* best[j], index[j] of column j; width <= REDUCE_STRIP. */
static void R(arg_along_columns)(real sign, real *restrict best, int64_t *restrict index,
                                 int64_t y_step, const real *restrict x, int64_t stride,
                                 int64_t width, int64_t n, int64_t base) {
    vec b[REDUCE_STRIP / LANES];
    R(reduce_mask) where[REDUCE_STRIP / LANES];
    for (int64_t v = 0; v * LANES < width; v++) {
        b[v] = v_set1(REAL_C(-INFINITY));
        where[v] = (R(reduce_mask)){0};
    }
    for (int64_t i = 0; i < n; i++, x += stride) {
        int64_t v = 0;
        for (; (v + 1) * LANES <= width; v++) {
            if (stride > width) __builtin_prefetch(x + stride + v * LANES);
            R(arg_step)(b + v, where + v, sign * v_load(x + v * LANES), i);
        }
        int64_t rest = width - v * LANES;
        if (rest) R(arg_step)(b + v, where + v, sign * v_load_n(x + v * LANES, (int)rest), i);
    }
    for (int64_t j = 0; j < width; j++) {
        best[j * y_step] = b[j / LANES][j % LANES];
        index[j * y_step] = base + where[j / LANES][j % LANES];
    }
}

/* `run` results from n <= ARG_SEGMENT elements each, the first of which has the index `base`. */
static void R(arg_piece)(int sign, const reduce_plan *p, void *best, int64_t *index, const void *x,
                         int64_t run, int64_t n, int64_t base) {
    real *b = best;
    const real *rows = x;
    if (MG_VECTOR_BYTES == 32 && !p->columns && n >= REDUCE_BLOCK) {
        int64_t r = R(arg_rows_apart)(sign, b, index, p->run_y, rows, p->run_x, run, n, base);
        b += r * p->run_y;
        index += r * p->run_y;
        rows += r * p->run_x;
        run -= r;
    }
    if (p->columns) R(arg_along_columns)(sign, best, index, p->run_y, x, p->stride, run, n, base);
    else if (sign > 0) R(arg_along_rows)(1, b, index, p->run_y, rows, p->run_x, run, n, base);
    else R(arg_along_rows)(-1, b, index, p->run_y, rows, p->run_x, run, n, base);
}

/* Joins `segments` rows of `width` into the first row; ties go to the first segment. */
static void R(arg_merge)(void *best, int64_t *index, int64_t segments, int64_t width) {
    real *b = best;
    for (int64_t s = 1; s < segments; s++)
        for (int64_t j = 0; j < width; j++) {
            if (!R(arg_better)(b[s * width + j], b[j])) continue;
            b[j] = b[s * width + j];
            index[j] = index[s * width + j];
        }
}
