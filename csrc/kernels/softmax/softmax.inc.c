/* softmax.inc.c: the loops of softmax and log_softmax; a template for each float width.
 *
 * The loops compute results, and their gradients, once a line's maximum m and sum s are known.
 *
 * Lines lie in rows or in columns. A strip is a run of neighbouring rows, or of neighbouring
 * columns. Element i of column j lies at [i * stride + j], in inputs and outputs alike.
 */
#include "simd/real.h"

/* out = exp(a - m), for contiguous rows of n elements, each a line. Short rows are processed
 * together. */
static MG_NOINLINE void R(softmax_exp_rows)(real *restrict out, const real *restrict a,
                                            const real *restrict m, int64_t count, int64_t n) {
    real centre[REDUCE_STRIP];
    if (n > REDUCE_STRIP / 2) {
        for (int64_t r = 0; r < count; r++) R(reduce_exp)(true, out + r * n, a + r * n, m[r], n);
        return;
    }
    while (count > 0) {
        int64_t some = mg_min(count, REDUCE_STRIP / n);
        for (int64_t r = 0; r < some; r++)
            for (int64_t j = 0; j < n; j++) centre[r * n + j] = m[r];
        R(mg_reduce_exp)(false, out, a, centre, some * n);
        out += some * n;
        a += some * n;
        m += some;
        count -= some;
    }
}

/* Computes the results of `op`: for some rows, each a line, or for one row whose columns are lines.
 * A gradient is 0 where one of its factors is 0, whatever the other factor is. */
MG_INLINE void R(softmax_part_of)(bool rows, int op, real *restrict out, const real *restrict a,
                                  const real *restrict b, const real *restrict m,
                                  const real *restrict s, int64_t count, int64_t n) {
    if (op == SOFTMAX_EXP || op == SOFTMAX_FORWARD) {
        if (rows) R(softmax_exp_rows)(out, a, m, count, n);
        else R(mg_reduce_exp)(false, out, a, m, n);
    }
    if (op == LOG_SOFTMAX_BACKWARD) R(v_exp_any)(out, b, count * n);
    for (int64_t r = 0; r < (rows ? count : 1); r++, out += n, a += n, b += n)
        switch (op) {
        case SOFTMAX_FORWARD: /* y = exp(x - m) * s; s = 1 / sum */
        case SOFTMAX_SCALE:   /* the scaling after SOFTMAX_EXP */
            MG_APART
            for (int64_t j = 0; j < n; j++) out[j] *= s[rows ? r : j];
            break;
        case SOFTMAX_BACKWARD: /* dx = y * (g - s); s = sum of g * y */
            MG_APART
            for (int64_t j = 0; j < n; j++) {
                real d = a[j] - s[rows ? r : j];
                out[j] = d == 0 ? 0 : b[j] * d;
            }
            break;
        case LOG_SOFTMAX_FORWARD: /* y = (x - m) - s; s = log sum */
            MG_APART
            for (int64_t j = 0; j < n; j++) out[j] = (a[j] - m[rows ? r : j]) - s[rows ? r : j];
            break;
        case LOG_SOFTMAX_BACKWARD: /* dx = g - exp(y) * s; s = sum of g */
            MG_APART
            for (int64_t j = 0; j < n; j++) {
                real sum = s[rows ? r : j], p = out[j] * sum;
                out[j] = a[j] - (((out[j] == 0) | (sum == 0)) ? 0 : p);
            }
            break;
        }
}

/* Computes `count` rows of n elements, each a line. */
static void R(softmax_rows)(int op, real *out, const real *a, const real *b, const real *m,
                            const real *s, int64_t count, int64_t n) {
    R(softmax_part_of)(true, op, out, a, b, m, s, count, n);
}

/* Computes a row of n elements, whose columns are lines. */
static MG_NOINLINE void R(softmax_row)(int op, real *out, const real *a, const real *b,
                                       const real *m, const real *s, int64_t n) {
    R(softmax_part_of)(false, op, out, a, b, m, s, 1, n);
}

/* Computes n rows of `width` columns. Narrow rows without gaps are processed together, with m and s
 * repeated. `streams`: use non-temporal stores. */
static void R(softmax_columns)(int op, bool streams, real *out, const real *a, const real *b,
                               const real *m, const real *s, int64_t stride, int64_t n,
                               int64_t width) {
    real many_m[REDUCE_STRIP], many_s[REDUCE_STRIP];
    if (stride == width && width <= REDUCE_STRIP / 2) {
        int64_t times = mg_min(n, REDUCE_STRIP / width);
        for (int64_t i = 0; i < times; i++)
            for (int64_t j = 0; j < width; j++) {
                many_m[i * width + j] = m[j];
                many_s[i * width + j] = s[j];
            }
        m = many_m;
        s = many_s;
        stride = times * width;
        int64_t rest = n % times * width;
        n /= times;
        int64_t at = n * stride;
        if (rest > 0) R(softmax_row)(op, out + at, a + at, b + at, m, s, rest);
        width = stride;
    }
    /* A strip that was summed is in cache. For it, the next row of results and the inputs of the
     * next strip are prefetched. For whole rows, the elements a little ahead are prefetched. */
    enum { LINE = 64 / sizeof(real), AHEAD = NDITER_AHEAD / sizeof(real) };
    _Alignas(64) real stage[REDUCE_STRIP];
    int64_t next = width < stride ? stride : AHEAD, beyond = width < stride ? width : AHEAD;
    for (int64_t at = 0; at < n * stride; at += stride)
        for (int64_t j = 0; j < width; j += REDUCE_STRIP) {
            int64_t here = at + j, some = mg_min(width - j, REDUCE_STRIP);
            for (int64_t k = here; k < here + some && op != SOFTMAX_SCALE; k += LINE) {
                if (!streams) __builtin_prefetch(out + next + k, 1);
                __builtin_prefetch(a + beyond + k);
                if (b != a) __builtin_prefetch(b + beyond + k);
            }
            real *to = streams ? stage : out + here;
            R(softmax_row)(op, to, a + here, b + here, m + j, s + j, some);
            if (streams)
                mg_stream((char *)(out + here), (char *)stage, some * (int64_t)sizeof(real));
        }
}

/* Computes results from known sums: n rows of `width` columns, or `width` rows of n elements. */
static MG_NOINLINE void R(softmax_lines)(int op, bool columns, bool streams, void *to,
                                         const void *from, const void *beside, const void *maxima,
                                         const void *sums, int64_t stride, int64_t n,
                                         int64_t width) {
    if (columns)
        R(softmax_columns)(op, streams, to, from, beside, maxima, sums, stride, n, width);
    else R(softmax_rows)(op, to, from, beside, maxima, sums, width, n);
}

/* Sets the sum of g * y to 0 for lines where g is all 0, even if y is NaN. A line of y with a NaN
 * is NaN throughout. Element i of line j lies at [i * stride + j * step]. */
static void R(softmax_drop)(void *sums, const void *upstream, int64_t stride, int64_t step,
                            int64_t n, int64_t width) {
    real *s = sums;
    const real *g = upstream;
    for (int64_t j = 0; j < width; j++) {
        if (s[j] == s[j]) continue;
        bool zero = true;
        for (int64_t i = 0; i < n; i++) zero &= g[i * stride + j * step] == 0;
        if (zero) s[j] = 0;
    }
}

/* Turns the sums of lines into the form that softmax_part_of takes. An infinite or NaN maximum
 * makes a whole line NaN. */
static void R(softmax_sums)(int op, void *sums, const void *maxima, int64_t width) {
    real *s = sums, logs[REDUCE_STRIP];
    const real *m = maxima;
    for (int64_t some; width > 0; width -= some, s += some, m += some) {
        some = mg_min(width, REDUCE_STRIP);
        if (op != SOFTMAX_FORWARD) R(v_log_any)(logs, s, some);
        MG_APART
        for (int64_t j = 0; j < some; j++) {
            real sum = op == SOFTMAX_FORWARD ? 1 / s[j] : logs[j];
            s[j] = m[j] - m[j] == 0 ? sum : m[j] - m[j];
        }
    }
}

/* Computes a strip of lines that stays in cache between passes. It has at most as many lines as
 * REDUCE_WIDE has columns. Results with non-temporal stores are not read back: the exponentials are
 * computed again. */
static void R(softmax_strip)(int op, bool streams, const reduce_plan *p, void *out, const void *a,
                             const void *b, int64_t width) {
    real m[REDUCE_WIDE / sizeof(real)], s[REDUCE_WIDE / sizeof(real)];
    int64_t n = p->n, stride = p->stride;
    bool columns = p->columns;
    if (op == SOFTMAX_BACKWARD || op == LOG_SOFTMAX_BACKWARD) {
        int kind = op == SOFTMAX_BACKWARD ? REDUCE_DOT : REDUCE_SUM;
        mg_reduce_piece(kind, REAL_DTYPE, p, s, NULL, a, width, n, b);
        if (op == SOFTMAX_BACKWARD) R(softmax_drop)(s, a, stride, p->run_x, n, width);
        R(softmax_lines)(op, columns, streams, out, a, b, s, s, stride, n, width);
        return;
    }
    mg_reduce_piece(REDUCE_MAX, REAL_DTYPE, p, m, NULL, a, width, n, NULL);
    if (columns && (streams || op == LOG_SOFTMAX_FORWARD))
        mg_reduce_piece(REDUCE_SUMEXP, REAL_DTYPE, p, s, NULL, a, width, n, m);
    else {
        R(softmax_lines)(SOFTMAX_EXP, columns, false, out, a, b, m, m, stride, n, width);
        mg_reduce_piece(REDUCE_SUM, REAL_DTYPE, p, s, NULL, out, width, n, NULL);
    }
    R(softmax_sums)(op, s, m, width);
    if (op == SOFTMAX_FORWARD && !streams) op = SOFTMAX_SCALE;
    R(softmax_lines)(op, columns, streams, out, a, b, m, s, stride, n, width);
}

/* Computes a piece of a long row: out = exp(a - m) about the piece's own maximum m, and the sum
 * s. */
static void R(softmax_piece)(void *out, const void *a, void *maximum, void *sum, int64_t n) {
    const reduce_plan row = {.run_x = n, .run_y = 1};
    real *m = maximum;
    mg_reduce_piece(REDUCE_MAX, REAL_DTYPE, &row, m, NULL, a, 1, n, NULL);
    real centre = *m - *m == 0 ? *m : 0;
    R(softmax_exp_rows)(out, a, &centre, 1, n);
    mg_reduce_piece(REDUCE_SUM, REAL_DTYPE, &row, sum, NULL, out, 1, n, NULL);
}

/* The factor of each of `count` pieces of a row, with maxima m and sums s. A factor brings a piece
 * about the row's maximum and divides by the row's sum. */
static void R(softmax_scales)(void *scales, const void *maxima, const void *sums, int64_t count) {
    const reduce_plan row = {.run_x = count, .run_y = 1, .run_c = count};
    real *scale = scales, top, sum;
    mg_reduce_piece(REDUCE_MAX, REAL_DTYPE, &row, &top, NULL, maxima, 1, count, NULL);
    R(reduce_exp)(false, scale, maxima, top, count);
    mg_reduce_piece(REDUCE_DOT, REAL_DTYPE, &row, &sum, NULL, scale, 1, count, sums);
    R(softmax_sums)(SOFTMAX_FORWARD, &sum, &top, 1);
    for (int64_t i = 0; i < count; i++) scale[i] = top - top == 0 ? scale[i] * sum : sum;
}
