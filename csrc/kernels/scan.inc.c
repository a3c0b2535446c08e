/* scan.inc.c: the running sums, products and recurrences of float lines.
 *
 * The state of a line is kept in double: s what was joined so far, e the rounding error of s (none
 * where double is wide enough as it is), m the maximum. `kind` is a constant wherever these
 * functions are inlined. */
#include "real.h"

/* s + e += x, where e collects what rounding takes from s (Ogita, Rump and Oishi, "Accurate sum and
 * dot product", 2005, algorithm 4.1). */
MG_INLINE void R(scan_add)(double *s, double *e, double x) {
    double sum = *s + x, part = sum - *s;
    *e += (*s - (sum - part)) + (x - part);
    *s = sum;
}

/* s + e; where s is infinite or NaN, e is NaN and does not count. */
MG_INLINE double R(scan_total)(double s, double e) {
    double total = s + e;
    return total - total == 0 ? total : s;
}

/* log(exp(x0) + exp(x1) + ...) = c + log s, s = sum of exp(xi - c), c the maximum so far; where
 * that is infinite or NaN c is 0, and s decides. */
MG_INLINE real R(scan_log)(double *s, double *e, double *m, real x) {
    real last = (real)*m, top = ((x > last) | (x != x)) ? x : last;
    real c = top - top == 0 ? top : 0;
    real from = last - last == 0 ? last : 0;
    double scale = last == -INFINITY ? 0 : from == c ? 1 : R(v_exp)(from - c);
    *s *= scale;
    *e *= scale;
    R(scan_add)(s, e, R(v_exp)(x - c));
    *m = top;
    return c + R(v_log)((real)R(scan_total)(*s, *e));
}

/* The next result of a line, from its next element x (and b). */
MG_INLINE real R(scan_step)(int kind, double *s, double *e, double *m, real x, real b) {
    switch (kind) {
    case SCAN_SUM:
        if (sizeof(real) < sizeof(double)) return (real)(*s += x);
        R(scan_add)(s, e, x);
        return (real)R(scan_total)(*s, *e);
    case SCAN_PROD: return (real)(*s *= x);
    case SCAN_LOG: return R(scan_log)(s, e, m, x);
    default: return (real)(*s = *s == 0 ? b : b + *s * x); /* 0 stays 0, whatever x is */
    }
}

/* `width` <= SCAN_STRIP neighbouring lines of n elements; element i of line j is at
 * [i * stride + j]. */
MG_INLINE void R(scan_columns)(int kind, real *restrict y, const real *restrict x,
                               const real *restrict b, int64_t stride, int64_t n, int64_t width) {
    double s[SCAN_STRIP], e[SCAN_STRIP] = {0}, m[SCAN_STRIP];
    for (int64_t j = 0; j < width; j++) {
        s[j] = kind == SCAN_PROD;
        m[j] = -INFINITY;
    }
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < width; j++) {
            int64_t at = i * stride + j;
            y[at] = R(scan_step)(kind, s + j, e + j, m + j, x[at], b[at]);
        }
}

/* `width` lines of n elements, one after the other. */
MG_INLINE void R(scan_rows)(int kind, real *restrict y, const real *restrict x,
                            const real *restrict b, int64_t n, int64_t width) {
    for (int64_t at = 0, j = 0; j < width; j++) {
        double s = kind == SCAN_PROD, e = 0, m = -INFINITY;
        for (int64_t i = 0; i < n; i++, at++)
            y[at] = R(scan_step)(kind, &s, &e, &m, x[at], b[at]);
    }
}

MG_INLINE void R(scan_lines)(int kind, void *y, const void *x, const void *b, int64_t stride,
                             int64_t n, int64_t width) {
    if (stride == 1) R(scan_rows)(kind, y, x, b, n, width);
    else R(scan_columns)(kind, y, x, b, stride, n, width);
}

static void R(scan_piece)(int kind, void *y, const void *x, const void *b, int64_t stride,
                          int64_t n, int64_t width) {
    switch (kind) {
    case SCAN_SUM: R(scan_lines)(SCAN_SUM, y, x, x, stride, n, width); break;
    case SCAN_PROD: R(scan_lines)(SCAN_PROD, y, x, x, stride, n, width); break;
    case SCAN_LOG: R(scan_lines)(SCAN_LOG, y, x, x, stride, n, width); break;
    case SCAN_RECURRENCE: R(scan_lines)(SCAN_RECURRENCE, y, x, b, stride, n, width); break;
    }
}
