/* reduce_arg.inc.c: the place of the first maximum of x, or of -x; the first NaN beats all numbers. */
#include "real.h"

/* Does x come before the best so far, b? */
MG_INLINE bool R(arg_better)(real x, real b) { return !(x <= b) & (b == b); }

/* The first i with x[i] tied with `best`, which is there. Whole steps first: their loops are
 * vectorised, which one that stops at the first hit is not. */
static MG_NOINLINE int64_t R(arg_find)(const real *x, int64_t n, real best) {
    enum { STEP = 64 };
    int64_t i = 0;
    for (; i + STEP <= n; i += STEP) {
        ireal found = 0, first = STEP;
        for (int j = 0; j < STEP; j++) found |= R(reduce_tied)(x[i + j], best);
        if (!found) continue;
        for (int j = 0; j < STEP; j++) {
            ireal here = R(reduce_tied)(x[i + j], best) ? j : STEP;
            first = here < first ? here : first;
        }
        return i + first;
    }
    while (!R(reduce_tied)(x[i], best)) i++;
    return i;
}

/* best[r], index[r] of row r: the extremum by blocks, then its place in the block that has it. */
MG_INLINE void R(arg_along_rows)(int sign, real *restrict best, int64_t *restrict index,
                                 int64_t y_step, const real *restrict x, int64_t x_step,
                                 int64_t rows, int64_t n, int64_t base) {
    int kind = sign > 0 ? REDUCE_MAX : REDUCE_MIN;
    for (int64_t r = 0; r < rows; r++, x += x_step) {
        real b = 0;
        int64_t where = 0;
        for (int64_t i = 0; i < n; i += REDUCE_BLOCK) {
            reduce_fetch(x + i + REDUCE_BLOCK, REDUCE_BLOCK * sizeof(real));
            real t = sign * R(reduce_extremum)(kind, x + i, mg_min(REDUCE_BLOCK, n - i));
            if (i > 0 && MG_LIKELY(!R(arg_better)(t, b))) continue;
            b = t;
            where = i;
        }
        best[r * y_step] = b;
        index[r * y_step] = base + where + R(arg_find)(x + where, n - where, sign * b);
    }
}

/* Element i of some columns, the terms t. */
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
    if (p->columns) R(arg_along_columns)(sign, best, index, p->run_y, x, p->stride, run, n, base);
    else if (sign > 0) R(arg_along_rows)(1, best, index, p->run_y, x, p->run_x, run, n, base);
    else R(arg_along_rows)(-1, best, index, p->run_y, x, p->run_x, run, n, base);
}

/* The first of the best over `segments` rows of `width`, into the first row. */
static void R(arg_merge)(void *best, int64_t *index, int64_t segments, int64_t width) {
    real *b = best;
    for (int64_t s = 1; s < segments; s++)
        for (int64_t j = 0; j < width; j++) {
            if (!R(arg_better)(b[s * width + j], b[j])) continue;
            b[j] = b[s * width + j];
            index[j] = index[s * width + j];
        }
}
