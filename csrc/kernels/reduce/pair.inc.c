/* pair.inc.c: reductions with two results for each line, moments and logsumexp; a template.
 *
 *   REDUCE_MOMENTS   first: the sum of x - c; second: the sum of (x - mean)^2
 *   REDUCE_LOGSUM    first: the maximum m; second: the sum of exp(x - m)
 * Each line is read from memory once. The second result needs the first, so each block of 128 terms
 * is read twice while it is in cache. Blocks and chunks are joined in the tree of reduce.h. Moments
 * are joined as in Chan, Golub and LeVeque ("Algorithms for computing the sample variance", 1983,
 * equation 2.1). Any element of the line serves as c. Subtracting c keeps a large mean from costing
 * digits.
 */
#include "simd/real.h"

/* Factors for the join of the moments of `na` terms with those of `nb` terms. */
typedef struct {
    real a, b, both;
} R(pair_weights);

MG_INLINE R(pair_weights) R(pair_weigh)(int64_t na, int64_t nb) {
    double a = (double)na, b = (double)nb;
    return (R(pair_weights)){REAL_C(1 / a), REAL_C(1 / b), REAL_C(a * b / (a + b))};
}

/* Joins the moments (*a, *a2) with (b, b2). */
MG_INLINE void R(pair_join)(real *a, real *a2, real b, real b2, R(pair_weights) w) {
    real apart = b * w.b - *a * w.a;
    *a2 += b2 + apart * apart * w.both;
    *a += b;
}

/* The mean minus c: sum / n. */
MG_INLINE real R(pair_off)(real sum, int64_t n) {
    return n == REDUCE_BLOCK ? sum * (REAL_C(1) / REDUCE_BLOCK) : sum / (real)n;
}

/* Corrects squares about the rounded mean `mean` = c + off to squares about the exact mean. */
MG_INLINE real R(pair_correct)(real squares, real c, real mean, real off, int64_t n) {
    real rest = (c - mean) + off, extra = rest * rest * (real)n;
    return squares < extra ? 0 : extra - extra == 0 ? squares - extra : squares;
}

/* ---- along a row ---- */

/* Joins maxima a[j] and sums a2[j] of exponentials with b[j], b2[j], of width <= REDUCE_STRIP
 * lines. If a maximum is infinite or NaN it decides the result, and the sums do not count. */
MG_INLINE void R(pair_logsums_join)(real *restrict a, real *restrict a2, const real *restrict b,
                                    const real *restrict b2, int64_t width) {
    real low[REDUCE_STRIP], top[REDUCE_STRIP], fade[REDUCE_STRIP];
    for (int64_t j = 0; j < width; j++) {
        real high = R(reduce_join)(REDUCE_MAX, a[j], b[j]), other = b[j] > a[j] ? a[j] : b[j];
        low[j] = other == high ? 0 : other;
        top[j] = other == high ? 0 : high;
    }
    R(mg_reduce_exp)(false, fade, low, top, width);
    for (int64_t j = 0; j < width; j++) {
        a2[j] = b[j] > a[j] ? b2[j] + a2[j] * fade[j] : a2[j] + b2[j] * fade[j];
        a[j] = R(reduce_join)(REDUCE_MAX, a[j], b[j]);
    }
}

/* Joins a[j], a2[j] with b[j], b2[j]. */
static MG_NOINLINE void R(pair_into)(int kind, real *restrict a, real *restrict a2,
                                     const real *restrict b, const real *restrict b2,
                                     int64_t width, int64_t na, int64_t nb) {
    R(pair_weights) w = R(pair_weigh)(na, nb);
    if (kind == REDUCE_MOMENTS)
        for (int64_t j = 0; j < width; j++) R(pair_join)(a + j, a2 + j, b[j], b2[j], w);
    else
        for (int64_t j = 0; j < width; j += REDUCE_STRIP)
            R(pair_logsums_join)(a + j, a2 + j, b + j, b2 + j, mg_min(width - j, REDUCE_STRIP));
}

/* The moments of n <= REDUCE_CHUNK neighbouring elements: the first values of all blocks, then the
 * second. Blocks are independent, so a processor can work on several at a time. */
MG_INLINE real R(pair_moments)(real *second, const real *x, int64_t n, real c) {
    real a[REDUCE_CHUNK / REDUCE_BLOCK], a2[REDUCE_CHUNK / REDUCE_BLOCK];
    real centre[REDUCE_CHUNK / REDUCE_BLOCK];
    int64_t blocks = mg_ceil_div(n, REDUCE_BLOCK);
    for (int64_t i = 0; i < blocks; i++) {
        int64_t at = i * REDUCE_BLOCK, terms = mg_min(n - at, REDUCE_BLOCK);
        reduce_fetch(x + at, REDUCE_BLOCK * sizeof(real));
        a[i] = R(reduce_row_block)(REDUCE_DEVIATION, x + at, terms, &c);
        centre[i] = c + R(pair_off)(a[i], terms);
    }
    for (int64_t i = 0; i < blocks; i++) {
        int64_t at = i * REDUCE_BLOCK, terms = mg_min(n - at, REDUCE_BLOCK);
        a2[i] = R(reduce_row_block)(REDUCE_SQUARES, x + at, terms, &centre[i]);
        a2[i] = R(pair_correct)(a2[i], c, centre[i], R(pair_off)(a[i], terms), terms);
    }
    for (int64_t step = 1; step < blocks; step *= 2) {
        int64_t terms = step * REDUCE_BLOCK;
        R(pair_weights) full = R(pair_weigh)(terms, terms);
        for (int64_t i = 0; i + step < blocks; i += 2 * step) {
            int64_t after = mg_min(n - (i + step) * REDUCE_BLOCK, terms);
            R(pair_join)(a + i, a2 + i, a[i + step], a2[i + step],
                         after == terms ? full : R(pair_weigh)(terms, after));
        }
    }
    *second = a2[0];
    return a[0];
}

/* The maxima and sums of exponentials of a few rows. A row has `pitch` blocks, and all rows have at
 * most REDUCE_CHUNK / REDUCE_BLOCK. Missing blocks count as empty, so that neighbours in all rows
 * are joined as vectors. Meanwhile the elements at `next` are prefetched. */
MG_INLINE void R(pair_logsums)(real *y, real *y2, int64_t y_step, const real *x, int64_t x_step,
                               int64_t rows, int64_t n, int64_t pitch, const real *next) {
    enum { MOST = REDUCE_CHUNK / REDUCE_BLOCK };
    real a[MOST], a2[MOST], odd[MOST / 2] = {0}, odd2[MOST / 2] = {0};
    for (int64_t i = 0; i < MOST; i++) {
        a[i] = -REAL_C(INFINITY);
        a2[i] = 0;
    }
    for (int64_t r = 0; r < rows; r++)
        for (int64_t at = 0, i = r * pitch; at < n; at += REDUCE_BLOCK, i++)
            a[i] = R(reduce_extremum)(REDUCE_MAX, x + r * x_step + at,
                                      mg_min(n - at, REDUCE_BLOCK));
    for (int64_t r = 0; r < rows; r++)
        for (int64_t at = 0, i = r * pitch; at < n; at += REDUCE_BLOCK, i++) {
            real centre = a[i] - a[i] == 0 ? a[i] : 0;
            int64_t here = r * x_step + at;
            for (int64_t k = 0; k < REDUCE_BLOCK; k += 64 / (int64_t)sizeof(real))
                __builtin_prefetch(next + here + k);
            a2[i] = R(reduce_row_block)(REDUCE_SUMEXP, x + here, mg_min(n - at, REDUCE_BLOCK),
                                        &centre);
        }
    for (int64_t some = rows * pitch / 2; some >= rows; some /= 2) {
        for (int64_t i = 0; i < some; i++) {
            odd[i] = a[2 * i + 1];
            odd2[i] = a2[2 * i + 1];
            a[i] = a[2 * i];
            a2[i] = a2[2 * i];
        }
        R(pair_into)(REDUCE_LOGSUM, a, a2, odd, odd2, mg_ceil_div(some, LANES) * LANES, 1, 1);
    }
    for (int64_t r = 0; r < rows; r++) {
        y[r * y_step] = a[r];
        y2[r * y_step] = a2[r];
    }
}

MG_INLINE void R(pair_along_rows)(int kind, real *restrict y, real *restrict y2, int64_t y_step,
                                  const real *restrict x, int64_t x_step, int64_t rows, int64_t n,
                                  const real *restrict c, int64_t c_step) {
    if (kind == REDUCE_MOMENTS) {
        for (int64_t r = 0; r < rows; r++)
            y[r * y_step] = R(pair_moments)(y2 + r * y_step, x + r * x_step, n, c[r * c_step]);
        return;
    }
    int64_t pitch = 1;
    while (pitch * REDUCE_BLOCK < n) pitch *= 2;
    for (int64_t r = 0, some; r < rows; r += some) {
        some = mg_min(REDUCE_CHUNK / REDUCE_BLOCK / pitch, rows - r);
        R(pair_logsums)(y + r * y_step, y2 + r * y_step, y_step, x + r * x_step, x_step, some, n,
                        pitch, x + (r + some) * x_step);
    }
}

/* ---- along columns ---- */

/* Reduces one block of n <= 128 rows; the second values go to lanes[0..width). `dense`, c and
 * `next` are those of reduce_block. */
static void R(pair_block)(int kind, real *first, real *lanes, const real *x, int64_t stride,
                          int64_t n, int64_t width, bool dense, const real *c,
                          const real *next) {
    bool moments = kind == REDUCE_MOMENTS;
    real centre[REDUCE_STRIP];
    R(reduce_block)(moments ? REDUCE_DEVIATION : REDUCE_MAX, lanes, x, stride, n, width, dense, c,
                    0, next);
    memcpy(first, lanes, (size_t)width * sizeof(real));
    if (moments)
        for (int64_t j = 0; j < width; j++) centre[j] = c[j] + R(pair_off)(first[j], n);
    else
        for (int64_t j = 0; j < width; j++) centre[j] = first[j] - first[j] == 0 ? first[j] : 0;
    for (int64_t j = width; j < REDUCE_LANES * width && dense; j++) centre[j] = centre[j - width];
    R(reduce_block)(moments ? REDUCE_SQUARES : REDUCE_SUMEXP, lanes, x, stride, n, width, dense,
                    centre, 0, next);
    for (int64_t j = 0; j < width && moments; j++)
        lanes[j] = R(pair_correct)(lanes[j], c[j], centre[j], R(pair_off)(first[j], n), n);
}

/* y[j], y2[j] of column j, n <= REDUCE_ROWS and width within REDUCE_WIDE. */
static MG_NOINLINE void R(pair_along_columns)(int kind, real *y, real *y2, int64_t y_step,
                                              const real *x, int64_t stride, int64_t width,
                                              int64_t n, const real *c, int64_t c_step) {
    enum { WIDE = REDUCE_WIDE / sizeof(real) };
    real lanes[REDUCE_LANES * REDUCE_STRIP], first[REDUCE_STRIP], centre[WIDE];
    real firsts[REDUCE_LEVELS][WIDE], seconds[REDUCE_LEVELS][WIDE];
    const real *begin = x;
    bool dense = reduce_is_dense(stride, width);
    if (dense || c_step != 1) {
        for (int64_t i = 0; i < (dense ? REDUCE_LANES : 1); i++)
            for (int64_t j = 0; j < width; j++) centre[i * width + j] = c[j * c_step];
        c = centre;
    }
    for (int64_t done = 0;; done++, n -= REDUCE_BLOCK, x += REDUCE_BLOCK * stride) {
        bool last = n <= REDUCE_BLOCK;
        for (int64_t j = 0; j < width; j += REDUCE_STRIP) {
            int64_t terms = mg_min(n, REDUCE_BLOCK), some = mg_min(width - j, REDUCE_STRIP);
            const real *next = j + REDUCE_STRIP < width ? x + j + REDUCE_STRIP
                               : last ? begin + width : x + REDUCE_BLOCK * stride;
            R(pair_block)(kind, first, lanes, x + j, stride, terms, some, dense, c + j, next);
            const real *b = first, *b2 = lanes;
            int level = 0;
            for (int64_t carry = done; last ? carry > 0 : carry & 1; carry >>= 1, level++) {
                if (!(carry & 1)) continue;
                int64_t before = (int64_t)REDUCE_BLOCK << level;
                R(pair_into)(kind, firsts[level] + j, seconds[level] + j, b, b2, some, before,
                             terms);
                b = firsts[level] + j;
                b2 = seconds[level] + j;
                terms += before;
            }
            for (int64_t i = 0; i < some && last && y_step != 1; i++) {
                y[(j + i) * y_step] = b[i];
                y2[(j + i) * y_step] = b2[i];
            }
            if (last && y_step != 1) continue;
            memcpy(last ? y + j : firsts[level] + j, b, (size_t)some * sizeof(real));
            memcpy(last ? y2 + j : seconds[level] + j, b2, (size_t)some * sizeof(real));
        }
        if (last) return;
    }
}
