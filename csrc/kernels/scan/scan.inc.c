/* scan.inc.c: running sums, products and recurrences of float lines; a template.
 *
 * The state of a line is kept in double: s, the result so far; e, the rounding error of s; m, the
 * maximum. There is no e where double is accurate enough. `kind` is a constant wherever these
 * functions are inlined.
 */
#include "simd/real.h"

/* s + e. If s is infinite or NaN, e is NaN and does not count. */
MG_INLINE double R(scan_total)(const scan_state *t) {
    double total = t->s + t->e;
    return total - total == 0 ? total : t->s;
}

/* log(exp(x0) + exp(x1) + ...) = c + log s, with s = sum of exp(xi - c) and c the maximum so far.
 * If the maximum is infinite or NaN, c is 0 and s decides the result. */
MG_INLINE real R(scan_log)(scan_state *t, real x) {
    real last = (real)t->m, top = ((x > last) | (x != x)) ? x : last;
    real c = top - top == 0 ? top : 0;
    real from = last - last == 0 ? last : 0;
    double scale = last == -INFINITY ? 0 : from == c ? 1 : R(v_exp)(from - c);
    t->s *= scale;
    t->e *= scale;
    scan_add(t, R(v_exp)(x - c));
    t->m = top;
    return c + R(v_log)((real)R(scan_total)(t));
}

/* The next result of a line, from its next element x (and b). */
MG_INLINE real R(scan_step)(int kind, scan_state *t, real x, real b) {
    switch (kind) {
    case SCAN_SUM:
        if (sizeof(real) < sizeof(double)) return (real)(t->s += x);
        scan_add(t, x);
        return (real)R(scan_total)(t);
    case SCAN_PROD: return (real)(t->s *= x);
    case SCAN_LOG: return R(scan_log)(t, x);
    default: return (real)(t->s = t->s == 0 ? b : b + t->s * x); /* 0 stays 0, whatever x is */
    }
}

/* The next results of SCAN_UNIT neighbouring lines; updates their states. */
MG_INLINE void R(scan_unit)(int kind, real *restrict y, const real *restrict x,
                            const real *restrict b, double *restrict s, double *restrict e,
                            double *restrict m) {
    for (int j = 0; j < SCAN_UNIT; j++) {
        scan_state t = {s[j], e[j], m[j]};
        y[j] = R(scan_step)(kind, &t, x[j], b[j]);
        s[j] = t.s;
        e[j] = t.e;
        m[j] = t.m;
    }
}

/* `width` <= SCAN_STRIP neighbouring lines of n elements. Element i of line j is at [i * stride +
 * j]. */
MG_INLINE void R(scan_columns)(int kind, real *restrict y, const real *restrict x,
                               const real *restrict b, int64_t stride, int64_t n, int64_t width) {
    enum { LINE = 64 / sizeof(real) };
    double s[SCAN_STRIP], e[SCAN_STRIP] = {0}, m[SCAN_STRIP];
    real padded[3][SCAN_UNIT] = {{0}};
    for (int64_t j = 0; j < SCAN_STRIP; j++) {
        s[j] = kind == SCAN_PROD;
        m[j] = -INFINITY;
    }
    for (int64_t i = 0; i < n; i++, x += stride, b += stride, y += stride) {
        for (int64_t j = 0; j < width; j += LINE) { /* prefetches the next row */
            __builtin_prefetch(x + stride + j);
            __builtin_prefetch(y + stride + j);
        }
        int64_t j = 0;
        /* short enough for code of its own */
        for (; j + SCAN_UNIT <= width && kind != SCAN_LOG; j += SCAN_UNIT)
            R(scan_unit)(kind, y + j, x + j, b + j, s + j, e + j, m + j);
        for (; j < width; j += SCAN_UNIT) { /* the last unit is padded */
            bool whole = j + SCAN_UNIT <= width;
            size_t some = (size_t)(width - j) * sizeof(real);
            if (!whole) memcpy(padded[1], x + j, some);
            if (!whole) memcpy(padded[2], b + j, some);
            R(scan_unit)(kind, whole ? y + j : padded[0], whole ? x + j : padded[1],
                         whole ? b + j : padded[2], s + j, e + j, m + j);
            if (!whole) memcpy(y + j, padded[0], some);
        }
    }
}

/* n <= SCAN_RUN elements of a running log-sum with one centre. False if one centre does not
 * suffice. The first maximum must be near the last, so that no sum is small beside the centre's own
 * exponential. */
static bool R(scan_log_run)(scan_state *t, real *restrict y, const real *restrict x, int64_t n) {
    real near[SCAN_RUN], terms[SCAN_RUN], sums[SCAN_RUN];
    real first = x[0] > (real)t->m ? x[0] : (real)t->m, top = first;
    for (int i = 0; i < SCAN_RUN; i++) near[i] = x[0];
    memcpy(near, x, (size_t)n * sizeof(real));
    for (int i = 0; i < SCAN_RUN; i++) top = near[i] > top ? near[i] : top;
    bool numbers = true;
    for (int i = 0; i < SCAN_RUN; i++) numbers &= near[i] == near[i];
    if (!(numbers && top - first <= 1 && top - top == 0 && t->m == t->m)) return false;
    if (top > t->m) {
        double scale = R(v_exp)((real)t->m - top);
        t->s *= scale;
        t->e *= scale;
        t->m = top;
    }
    for (int i = 0; i < SCAN_RUN; i++) near[i] -= top;
    R(v_exp_any)(terms, near, SCAN_RUN);
    for (int64_t i = 0; i < n; i++) sums[i] = R(scan_step)(SCAN_SUM, t, terms[i], 0);
    R(v_log_any)(y, sums, n);
    for (int64_t i = 0; i < n; i++) y[i] += top;
    return true;
}

/* A row of n elements from the first to the last, or backwards. */
MG_INLINE void R(scan_row)(int kind, bool back, real *restrict y, const real *restrict x,
                           const real *restrict b, int64_t n, scan_state *t) {
    int64_t i = 0;
    if (kind == SCAN_SUM && sizeof(real) < sizeof(double))
        i = scan_row_wide(back, (float *)y, (const float *)x, n, t);
    if (kind == SCAN_LOG)
        while (i < n) {
            int64_t end = mg_min(i + SCAN_RUN, n);
            if (R(scan_log_run)(t, y + i, x + i, end - i)) i = end;
            while (i < end) {
                y[i] = R(scan_log)(t, x[i]);
                i++;
            }
        }
    for (; i < n; i++) {
        int64_t at = back ? n - 1 - i : i;
        y[at] = R(scan_step)(kind, t, x[at], b[at]);
    }
}

MG_INLINE void R(scan_lines)(int kind, bool rows, bool back, real *y, const real *x, const real *b,
                             int64_t stride, int64_t n, int64_t width) {
    if (!rows) {
        int64_t first = back ? (n - 1) * stride : 0;
        R(scan_columns)(kind, y + first, x + first, b + first, back ? -stride : stride, n, width);
        return;
    }
    for (int64_t at = 0; at < width * n; at += n) {
        scan_state t = {kind == SCAN_PROD, 0, -INFINITY};
        if (back) R(scan_row)(kind, true, y + at, x + at, b + at, n, &t);
        else R(scan_row)(kind, false, y + at, x + at, b + at, n, &t);
    }
}

/* Only sums run backwards. */
static void R(scan_piece)(int kind, bool rows, bool back, void *y, const void *x, const void *b,
                          int64_t stride, int64_t n, int64_t width) {
    switch (kind) {
    case SCAN_SUM: R(scan_lines)(SCAN_SUM, rows, back, y, x, x, stride, n, width); break;
    case SCAN_PROD: R(scan_lines)(SCAN_PROD, rows, false, y, x, x, stride, n, width); break;
    case SCAN_LOG: R(scan_lines)(SCAN_LOG, rows, false, y, x, x, stride, n, width); break;
    case SCAN_RECURRENCE:
        R(scan_lines)(SCAN_RECURRENCE, rows, false, y, x, b, stride, n, width);
        break;
    }
}

/* ---- one long row ---- */

/* The sum of n elements, with its rounding error. */
static scan_state R(scan_sum)(const void *from, int64_t n) {
    const real *x = from;
    double s[SCAN_SIDE] = {0}, e[SCAN_SIDE] = {0};
    int64_t i = 0;
    for (; i + SCAN_SIDE <= n; i += SCAN_SIDE)
        for (int j = 0; j < SCAN_SIDE; j++) {
            scan_state t = {s[j], e[j], 0};
            if (sizeof(real) < sizeof(double)) t.s += (double)x[i + j];
            else scan_add(&t, (double)x[i + j]);
            s[j] = t.s;
            e[j] = t.e;
        }
    scan_state all = {0};
    for (int j = 0; j < SCAN_SIDE; j++) scan_add_all(&all, (scan_state){s[j], e[j], 0});
    for (; i < n; i++) scan_add(&all, (double)x[i]);
    return all;
}

static void R(scan_part)(bool back, void *y, const void *x, int64_t n, scan_state t) {
    if (back) R(scan_row)(SCAN_SUM, true, y, x, x, n, &t);
    else R(scan_row)(SCAN_SUM, false, y, x, x, n, &t);
}

/* ---- products whose factors leave the range ---- */

/* Recomputes the running products of `width` lines, with separate exponents. */
static void R(scan_products)(bool rows, void *out, const void *from, int64_t stride, int64_t n,
                             int64_t width) {
    real *y = out;
    const real *x = from;
    for (int64_t j = 0; j < width; j++) {
        apart product = {1, 0};
        for (int64_t i = 0; i < n; i++) {
            int64_t at = rows ? j * n + i : i * stride + j;
            product = apart_times(product, apart_of((double)x[at]));
            y[at] = REAL_C(apart_value(product));
        }
    }
}

/* A bound of the sum, or else of the largest, of |log2 x| over all x != 0, in units of 2^-20. The
 * bits of a double, read as an integer, are its logarithm to within 0.09. */
static int64_t R(scan_powers_of)(const real *x, int64_t stride, int64_t n, bool sum) {
    int64_t all = 0;
    for (int64_t i = 0; i < n; i++) {
        double v = fabs((double)x[i * stride]);
        int64_t bits, power;
        memcpy(&bits, &v, sizeof bits);
        power = (bits >> 32) - ((int64_t)1023 << 20);
        power = v == 0 ? 0 : (power < 0 ? -power : power) + ((int64_t)1 << 17);
        all = sum ? all + power : mg_max(all, power);
    }
    return all;
}

/* scan_products_back for numbers whose products all stay in the range of doubles. Both factors
 * are computed in one loop, as each waits only for itself. `room` holds two numbers for each
 * element. */
static void R(scan_products_back_within)(real *dx, const real *x, const real *g, bool last,
                                         int64_t stride, int64_t n, double *room) {
    double *restrict before = room, *restrict after = room + n;
    double product = 1, r = last ? (double)g[0] : 0;
    for (int64_t i = 0, k = n - 1; i < n; i++, k--) {
        before[i] = product;
        product *= (double)x[i * stride];
        if (!last) r += (double)g[k * stride];
        after[k] = r;
        r *= (double)x[k * stride];
    }
    for (int64_t i = 0; i < n; i++) dx[i * stride] = REAL_C(after[i] == 0 ? 0 : before[i] * after[i]);
}

/* dx[i] = (x[0] ... x[i - 1]) r[i] with r[i] = g[i] + x[i + 1] r[i + 1]. There is no division. The
 * first factor is kept in `room`. dx is 0 where r is 0, whatever x is. `last`: g is the gradient of
 * the last product. */
static void R(scan_products_back)(void *out, const void *from, const void *upstream, bool last,
                                  int64_t stride, int64_t n, apart *room) {
    real *dx = out;
    const real *x = from, *g = upstream;
    if (R(scan_powers_of)(x, stride, n, true) + R(scan_powers_of)(g, stride, last ? 1 : n, false) <
        SCAN_WITHIN) {
        R(scan_products_back_within)(dx, x, g, last, stride, n, (double *)room);
        return;
    }
    apart product = {1, 0}, r = {0, 0};
    for (int64_t i = 0; i < n; i++) {
        room[i] = product;
        product = apart_times(product, apart_of((double)x[i * stride]));
    }
    for (int64_t i = n - 1; i >= 0; i--) {
        real own = !last ? g[i * stride] : i == n - 1 ? g[0] : 0;
        if (r.part != 0) r = apart_times(r, apart_of((double)x[(i + 1) * stride]));
        r = apart_plus(r, apart_of((double)own));
        dx[i * stride] = r.part == 0 ? 0 : REAL_C(apart_value(apart_times(room[i], r)));
    }
}

/* True if products of neighbours in a line, zeros left out, may leave the range. */
static bool R(scan_far)(const void *from, int64_t stride, int64_t n) {
    const real *x = from;
    const double most = sizeof(real) == 4 ? 0x1p50 : 0x1p480;
    double product = 1;
    for (int64_t i = 0; i < n; i++) {
        double v = fabs((double)x[i * stride]);
        if (v == 0 || v - v != 0) continue;
        product *= v;
        if (product > most || product < 1 / most) return true;
    }
    return false;
}

/* Exponents of 2 such that products of neighbours stay near 1 if each element is scaled by its own
 * power. Zeros and elements that are not finite have exponent 0. `others`: the sum of all other
 * elements' exponents, with the sign changed. */
static void R(scan_powers)(int64_t *out, const void *from, int64_t stride, int64_t n, bool others) {
    const real *x = from;
    double product = 1;
    int64_t all = 0;
    for (int64_t i = 0; i < n; i++) {
        double v = (double)x[i * stride];
        int power = 0, more = 0;
        if (v != 0 && v - v == 0) product = frexp(product * frexp(v, &power), &more);
        out[i * stride] = -(int64_t)(power + more);
        all += power + more;
    }
    for (int64_t i = 0; i < n && others; i++) out[i * stride] += all;
}

static void R(scan_shifted)(void *out, const void *from, const int64_t *powers, int64_t n) {
    real *y = out;
    const real *x = from;
    for (int64_t i = 0; i < n; i++)
        y[i] = REAL_C(ldexp((double)x[i], (int)mg_min(mg_max(powers[i], -5000), 5000)));
}
