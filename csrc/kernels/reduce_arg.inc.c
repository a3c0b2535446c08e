/* reduce_arg.inc.c: the place of the first maximum or minimum; the first NaN beats all numbers. */
#include "real.h"

/* Does x come before the best so far, b? */
MG_INLINE bool R(arg_better)(int kind, real x, real b) {
    bool beyond = kind == REDUCE_MAX ? x > b : x < b;
    return beyond | ((x != x) & (b == b));
}

/* The first i with x[i] tied with `best`, which is there. Whole steps first: their loops are
 * vectorised, which one that stops at the first hit is not. */
MG_INLINE int64_t R(arg_find)(const real *x, int64_t n, real best) {
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
MG_INLINE void R(arg_along_rows)(int kind, real *restrict best, int64_t *restrict index,
                                 int64_t y_step, const real *restrict x, int64_t x_step,
                                 int64_t rows, int64_t n, int64_t base) {
    for (int64_t r = 0; r < rows; r++, x += x_step) {
        real b = R(reduce_row_block)(kind, x, mg_min(REDUCE_BLOCK, n), x);
        int64_t where = 0;
        for (int64_t i = REDUCE_BLOCK; i < n; i += REDUCE_BLOCK) {
            reduce_fetch(x + i + REDUCE_BLOCK, sizeof(real));
            real t = R(reduce_row_block)(kind, x + i, mg_min(REDUCE_BLOCK, n - i), x);
            if (MG_LIKELY(!R(arg_better)(kind, t, b))) continue;
            b = t;
            where = i;
        }
        best[r * y_step] = b;
        index[r * y_step] = base + where + R(arg_find)(x + where, n - where, b);
    }
}

/* best[j], index[j] of column j; width <= REDUCE_STRIP. */
MG_INLINE void R(arg_along_columns)(int kind, real *restrict best, int64_t *restrict index,
                                    int64_t y_step, const real *restrict x, int64_t stride,
                                    int64_t width, int64_t n, int64_t base) {
    real b[REDUCE_STRIP];
    ireal where[REDUCE_STRIP];
    for (int64_t j = 0; j < width; j++) {
        b[j] = x[j];
        where[j] = 0;
    }
    for (int64_t i = 1; i < n; i++)
        for (int64_t j = 0; j < width; j++) {
            real t = x[i * stride + j];
            bool take = R(arg_better)(kind, t, b[j]);
            b[j] = take ? t : b[j];
            where[j] = take ? (ireal)i : where[j];
        }
    for (int64_t j = 0; j < width; j++) {
        best[j * y_step] = b[j];
        index[j * y_step] = base + where[j];
    }
}

MG_INLINE void R(arg_along)(int kind, const reduce_plan *p, real *best, int64_t *index,
                            const real *x, int64_t run, int64_t n, int64_t base) {
    if (p->columns) R(arg_along_columns)(kind, best, index, p->run_y, x, p->stride, run, n, base);
    else R(arg_along_rows)(kind, best, index, p->run_y, x, p->run_x, run, n, base);
}

/* `run` results from n <= ARG_SEGMENT elements each, the first of which has the index `base`. */
static void R(arg_piece)(int kind, const reduce_plan *p, void *best, int64_t *index, const void *x,
                         int64_t run, int64_t n, int64_t base) {
    if (kind == REDUCE_MAX) R(arg_along)(REDUCE_MAX, p, best, index, x, run, n, base);
    else R(arg_along)(REDUCE_MIN, p, best, index, x, run, n, base);
}

/* The first of the best over `segments` rows of `width`, into the first row. */
static void R(arg_merge)(int kind, void *best, int64_t *index, int64_t segments, int64_t width) {
    real *b = best;
    for (int64_t s = 1; s < segments; s++)
        for (int64_t j = 0; j < width; j++) {
            if (!R(arg_better)(kind, b[s * width + j], b[j])) continue;
            b[j] = b[s * width + j];
            index[j] = index[s * width + j];
        }
}
