/* softmax.inc.c: softmax and log_softmax over lines, and their gradients.
 *
 * A strip is `width` neighbouring lines of n elements; element i of line j lies at [i * stride + j]
 * in inputs and output alike. A row is a strip of width 1 and stride 1; mostly it stays in cache
 * between passes. A wider strip does not, if only because lines a power of two apart evict each
 * other: its passes stream, and exponentials are computed again rather than written and read back.
 * Sums are joined in the order given in reduce.h. `work` has SOFTMAX_WORK * width elements. */
#include "real.h"

/* out[j] = the join of line j of x; c: one for each line, for REDUCE_DOT as many as x, for kinds
 * that need none anything readable. */
MG_INLINE void R(softmax_join)(int kind, real *out, real *work, const real *x, int64_t stride,
                               int64_t n, int64_t width, const real *c) {
    if (stride == 1) {
        out[0] = R(reduce_row)(kind, x, n, c);
        return;
    }
    R(reduce_strip)(kind, work, work + REDUCE_LANES * width, x, stride, n, width, false, c,
                    kind == REDUCE_DOT ? stride : 0);
    for (int64_t j = 0; j < width; j++) out[j] = work[j];
}

/* y = exp(x - m) / s, m = max(x), s = sum of exp(x - m) */
MG_INLINE void R(softmax_forward)(real *restrict y, const real *restrict x, real *restrict work,
                                  int64_t stride, int64_t n, int64_t width) {
    real *m = work, *s = work + width;
    work += 2 * width;
    R(softmax_join)(REDUCE_MAX, m, work, x, stride, n, width, x);
    if (stride == 1) {
        for (int64_t i = 0; i < n; i++) y[i] = R(v_exp)(x[i] - m[0]);
        real scale = 1 / R(reduce_row)(REDUCE_SUM, y, n, y);
        for (int64_t i = 0; i < n; i++) y[i] *= scale;
        return;
    }
    R(softmax_join)(REDUCE_SUMEXP, s, work, x, stride, n, width, m);
    for (int64_t j = 0; j < width; j++) s[j] = 1 / s[j];
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < width; j++)
            y[i * stride + j] = R(v_exp)(x[i * stride + j] - m[j]) * s[j];
}

/* The sum of g * y is 0 for lines where g is, also if y is NaN: a line of y is NaN throughout. */
static void R(softmax_drop)(real *s, const real *g, int64_t stride, int64_t n, int64_t width) {
    for (int64_t j = 0; j < width; j++) {
        if (s[j] == s[j]) continue;
        bool zero = true;
        for (int64_t i = 0; i < n; i++) zero &= g[i * stride + j] == 0;
        if (zero) s[j] = 0;
    }
}

/* dx = y * (g - sum of g * y), 0 where the difference is, whatever y is */
MG_INLINE void R(softmax_backward)(real *restrict dx, const real *restrict g,
                                   const real *restrict y, real *restrict work, int64_t stride,
                                   int64_t n, int64_t width) {
    real *s = work;
    work += width;
    if (stride == 1) {
        for (int64_t i = 0; i < n; i++) dx[i] = g[i] * y[i];
        s[0] = R(reduce_row)(REDUCE_SUM, dx, n, dx);
    } else {
        R(softmax_join)(REDUCE_DOT, s, work, g, stride, n, width, y);
    }
    R(softmax_drop)(s, g, stride, n, width);
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < width; j++) {
            real d = g[i * stride + j] - s[j];
            dx[i * stride + j] = d == 0 ? 0 : y[i * stride + j] * d;
        }
}

/* y = (x - m) - log s, m = max(x), s = sum of exp(x - m) */
MG_INLINE void R(log_softmax_forward)(real *restrict y, const real *restrict x, real *restrict work,
                                      int64_t stride, int64_t n, int64_t width) {
    real *m = work, *s = work + width;
    work += 2 * width;
    R(softmax_join)(REDUCE_MAX, m, work, x, stride, n, width, x);
    R(softmax_join)(REDUCE_SUMEXP, s, work, x, stride, n, width, m);
    for (int64_t j = 0; j < width; j++) s[j] = R(v_log)(s[j]);
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < width; j++) y[i * stride + j] = (x[i * stride + j] - m[j]) - s[j];
}

/* dx = g - exp(y) * sum of g; where a factor is 0 the product is 0, whatever the other is */
MG_INLINE void R(log_softmax_backward)(real *restrict dx, const real *restrict g,
                                       const real *restrict y, real *restrict work, int64_t stride,
                                       int64_t n, int64_t width) {
    real *s = work;
    work += width;
    R(softmax_join)(REDUCE_SUM, s, work, g, stride, n, width, g);
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < width; j++) {
            real p = R(v_exp)(y[i * stride + j]);
            dx[i * stride + j] = g[i * stride + j] - (p == 0 || s[j] == 0 ? 0 : p * s[j]);
        }
}

MG_INLINE void R(softmax_strip)(int op, real *out, const real *a, const real *b, real *work,
                                int64_t stride, int64_t n, int64_t width) {
    switch (op) {
    case SOFTMAX_FORWARD: R(softmax_forward)(out, a, work, stride, n, width); break;
    case SOFTMAX_BACKWARD: R(softmax_backward)(out, a, b, work, stride, n, width); break;
    case LOG_SOFTMAX_FORWARD: R(log_softmax_forward)(out, a, work, stride, n, width); break;
    case LOG_SOFTMAX_BACKWARD: R(log_softmax_backward)(out, a, b, work, stride, n, width); break;
    }
}

/* A strip of width <= SOFTMAX_STRIP, stride > 1. */
static void R(softmax_columns)(int op, void *out, const void *a, const void *b, int64_t stride,
                               int64_t n, int64_t width) {
    real work[SOFTMAX_WORK * SOFTMAX_STRIP];
    if (stride > 1) R(softmax_strip)(op, out, a, b, work, stride, n, width);
}

/* `rows` lines of n elements, one after the other. */
static void R(softmax_rows)(int op, void *out, const void *a, const void *b, int64_t rows,
                            int64_t n) {
    real work[SOFTMAX_WORK], *y = out;
    const real *p = a, *q = b;
    for (int64_t r = 0; r < rows; r++, y += n, p += n, q += n)
        R(softmax_strip)(op, y, p, q, work, 1, n, 1);
}
