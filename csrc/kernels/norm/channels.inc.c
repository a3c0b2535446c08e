/* channels.inc.c: batch and group normalisation; a template for each float width.
 *
 * As norm.inc.c, for values in planes, (batch, channels, plane), with a weight and a bias for each
 * channel. A set of planes is normalised together. Such a set is one channel's planes in all
 * samples, or neighbouring planes of one sample. Planes of one element are processed as columns,
 * side by side.
 */
#include "simd/real.h"

/* ---- planes ---- */

static MG_NOINLINE norm_moments R(norm_planes_moments)(const real *x, int64_t count, int64_t step,
                                                       int64_t n) {
    if (count > NORM_FOUR) {
        int64_t half = mg_ceil_div(count, 2 * NORM_FOUR) * NORM_FOUR;
        return norm_join(R(norm_planes_moments)(x, half, step, n),
                         R(norm_planes_moments)(x + half * step, count - half, step, n));
    }
    norm_moments of[NORM_FOUR];
    R(norm_moments_of)(of, x, count, step, n, true);
    for (int64_t k = 1; k < count; k++) of[0] = norm_join(of[0], of[k]);
    return of[0];
}

/* Stores the statistics of up to four consecutive sets, each contiguous. */
static MG_NOINLINE void R(norm_runs_keep)(const norm_set *set, void *statistics, const void *input,
                                          int64_t runs, double eps) {
    real *stats = statistics;
    norm_moments of[NORM_FOUR];
    int64_t n = set->count * set->n;
    R(norm_moments_of)(of, input, runs, n, n, true);
    for (int64_t k = 0; k < runs; k++) R(norm_keep)(stats + k, set->sets, of[k], eps);
}

/* Distance from a set to the next one, which is prefetched while non-temporal stores write
 * results. */
MG_INLINE int64_t R(norm_next)(const norm_set *set) {
    return set->step == set->n ? set->count * set->n : set->n;
}

/* y = ((x - mean) * rstd + shift) * w + b. If `run`, the statistics are stored already. */
static void R(norm_set)(const norm_set *set, void *out, void *statistics, const void *input,
                        const void *weight, const void *bias, double eps) {
    real *y = out, *stats = statistics;
    const real *x = input, *w = weight, *b = bias;
    int64_t n = set->n, ahead = R(norm_next)(set);
    bool streams = NORM_STREAMS && set->streams;
    if (set->own && !set->run)
        R(norm_keep)(stats, set->sets, R(norm_planes_moments)(x, set->count, set->step, n), eps);
    vec mean = v_set1(stats[NORM_MEAN * set->sets]);
    for (int64_t k = 0; k < set->count; k++, w += set->w_step, b += set->w_step) {
        vec scale = v_set1(stats[NORM_RSTD * set->sets] * *w);
        vec offset = v_set1(fma_real(stats[NORM_SHIFT * set->sets], *w, *b));
        int64_t at = k * set->step;
        for (int64_t i = 0; i < n; i += LANES, at += LANES) {
            if (streams) __builtin_prefetch(x + at + ahead);
            R(norm_put)(y + at, v_fma(R(norm_load)(x + at, n - i) - mean, scale, offset), n - i,
                        streams);
        }
    }
}

/* The sums over k of w[k] a[k] and w[k] b[k], pairwise. */
static MG_NOINLINE R(norm_pair) R(norm_over_planes)(const real *a, const real *b, const real *w,
                                                    int64_t count, int64_t step, int64_t w_step) {
    if (count == 1) return (R(norm_pair)){*w * *a, *w * *b};
    int64_t half = count / 2;
    R(norm_pair) p = R(norm_over_planes)(a, b, w, half, step, w_step);
    R(norm_pair) q = R(norm_over_planes)(a + half * step, b + half * step, w + half * w_step,
                                         count - half, step, w_step);
    return (R(norm_pair)){p.a + q.a, p.b + q.b};
}

/* dx, and the sums of g and of g h for each plane. */
static void R(norm_set_back)(const norm_set *set, void *out, void *by_g, void *by_gh,
                             const void *upstream, const void *input, const void *weight,
                             const void *statistics) {
    real *dx = out, *sum_g = by_g, *sum_gh = by_gh;
    const real *g = upstream, *x = input, *w = weight, *stats = statistics;
    int64_t n = set->n, planes = set->step / n, ahead = R(norm_next)(set);
    bool streams = NORM_STREAMS && set->streams;
    real mean = stats[NORM_MEAN * set->sets], means[NORM_FOUR] = {mean, mean, mean, mean};
    for (int64_t k = 0; k < set->count; k += NORM_FOUR) {
        int64_t at = k * set->step, count = mg_min(set->count - k, NORM_FOUR);
        R(norm_pair) v[NORM_FOUR];
        R(norm_sums)(NORM_PARTIALS, v, x + at, g + at, x, count, set->step, n, means);
        for (int64_t i = 0; i < count; i++) {
            sum_g[(k + i) * planes] = v[i].a;
            sum_gh[(k + i) * planes] = R(norm_sum_vh)(stats, set->sets, v[i]);
        }
    }
    R(norm_pair) v = R(norm_over_planes)(sum_g, sum_gh, w, set->count, planes, set->w_step);
    R(norm_back) of = R(norm_back_of)(stats, set->sets, v.a, v.b, set->count * n, true);
    bool drop = !R(norm_regular)(stats, set->sets);
    for (int64_t k = 0; k < set->count && drop; k++)
        drop = R(norm_all_zero)(g + k * set->step, n);
    for (int64_t k = 0; k < set->count; k++) {
        int64_t at = k * set->step;
        vec wk = v_set1(w[k * set->w_step]), scale = wk * v_set1(of.rstd);
        for (int64_t i = 0; i < n; i += LANES, at += LANES) {
            vec dxi = R(norm_load)(g + at, n - i);
            if (streams) {
                __builtin_prefetch(g + at + ahead);
                __builtin_prefetch(x + at + ahead);
            }
            if (set->own) dxi = R(norm_dx)(of, dxi * wk, R(norm_load)(x + at, n - i));
            else dxi *= scale;
            R(norm_put)(dx + at, drop ? (vec){0} : dxi, n - i, streams);
        }
    }
}

/* dw and db: sums over the samples of each plane's contribution. */
static void R(norm_channel_sums)(void *by_weight, void *by_bias, const void *by_gh,
                                 const void *by_g, int64_t samples, int64_t channels) {
    real *dw = by_weight, *db = by_bias, one = 1;
    const real *sum_gh = by_gh, *sum_g = by_g;
    for (int64_t c = 0; c < channels; c++) {
        R(norm_pair) v = R(norm_over_planes)(sum_gh + c, sum_g + c, &one, samples, channels, 0);
        dw[c] = v.a;
        db[c] = v.b;
    }
}

/* ---- columns ---- */

/* The sums of `kind` over `rows` rows of up to NORM_FOUR vectors of columns. */
MG_INLINE void R(norm_columns_sums)(int kind, real *a, real *b, const real *x, const real *g,
                                    const real *mean, int64_t rows, int64_t step, int64_t width) {
    vec sum_a[NORM_FOUR] = {0}, sum_b[NORM_FOUR] = {0}, m[NORM_FOUR];
    int left[NORM_FOUR];
    for (int k = 0; k < NORM_FOUR; k++) {
        m[k] = v_load(mean + k * LANES);
        left[k] = (int)mg_min(mg_max(width - k * LANES, 0), LANES);
    }
    for (int64_t i = 0; i < rows; i++, x += step, g += step)
        for (int k = 0; k < NORM_FOUR; k++) {
            const real *xk = x + k * LANES, *gk = g + k * LANES;
            R(norm_add)(kind, &sum_a[k], &sum_b[k],
                        NORM_MASKS ? v_load_n(xk, left[k]) : R(norm_load)(xk, left[k]), m[k],
                        NORM_MASKS ? v_load_n(gk, left[k]) : R(norm_load)(gk, left[k]), m[k]);
        }
    for (int k = 0; k < NORM_FOUR; k++) {
        v_store(a + k * LANES, sum_a[k]);
        v_store(b + k * LANES, sum_b[k]);
    }
}

/* Stores the statistics of up to NORM_STRIP columns. Each block of rows takes deviations from the
 * mean of the blocks before, and is then joined with them. The first block takes deviations from
 * the mean of its own rows. */
static MG_NOINLINE void R(norm_columns_keep)(const norm_set *set, real *stats, const real *x,
                                             int64_t columns, double eps) {
    double mean[NORM_ROOM] = {0}, squares[NORM_ROOM] = {0};
    real from[NORM_ROOM] = {0}, a[NORM_ROOM] = {0}, b[NORM_ROOM] = {0};
    for (int64_t i = 0; i < set->count; i += NORM_ROWS, x += NORM_ROWS * set->step) {
        int64_t rows = mg_min(set->count - i, NORM_ROWS);
        double count = (double)rows, share = count / (double)(i + rows);
        for (int64_t j = 0; j < columns && i == 0; j += NORM_FOUR * LANES)
            R(norm_columns_sums)(NORM_SUM, from + j, b + j, x + j, x + j, from + j, rows, set->step,
                                 columns - j);
        for (int j = 0; j < NORM_ROOM && i == 0; j++) from[j] /= (real)rows;
        for (int64_t j = 0; j < columns; j += NORM_FOUR * LANES)
            R(norm_columns_sums)(NORM_SPREAD, a + j, b + j, x + j, x + j, from + j, rows, set->step,
                                 columns - j);
        for (int j = 0; j < NORM_ROOM; j++) { /* norm_join, vectorised over columns */
            norm_moments of = norm_corrected((double)from[j], (double)a[j], (double)b[j], count);
            double apart = of.mean - mean[j];
            mean[j] += apart * share;
            squares[j] += of.squares + apart * apart * ((double)i * share);
            from[j] = (real)mean[j];
        }
    }
    for (int64_t j = 0; j < columns; j++)
        R(norm_keep)(stats + j, set->sets,
                     (norm_moments){(double)set->count, mean[j], squares[j]}, eps);
}

/* y of up to NORM_STRIP columns, each a set with one channel. */
static void R(norm_columns)(const norm_set *set, void *out, void *statistics, const void *input,
                            const void *weight, const void *bias, int64_t columns, double eps) {
    real *y = out, *stats = statistics, scale[NORM_STRIP], offset[NORM_STRIP];
    const real *x = input, *w = weight, *b = bias;
    if (set->own) R(norm_columns_keep)(set, stats, x, columns, eps);
    for (int64_t j = 0; j < columns; j++) {
        scale[j] = stats[j + NORM_RSTD * set->sets] * w[j];
        offset[j] = fma_real(stats[j + NORM_SHIFT * set->sets], w[j], b[j]);
    }
    for (int64_t i = 0; i < set->count; i++, x += set->step, y += set->step)
        for (int64_t j = 0; j < columns; j += LANES) {
            int64_t left = columns - j;
            vec d = R(norm_load)(x + j, left) - R(norm_load)(stats + j, left);
            R(norm_store)(y + j, v_fma(d, v_load(scale + j), v_load(offset + j)), left);
        }
}

/* Sets dx = 0 in a column whose upstream gradient is all 0. */
static MG_NOINLINE void R(norm_drop_column)(const norm_set *set, real *dx, const real *g) {
    for (int64_t i = 0; i < set->count; i++)
        if (g[i * set->step] != 0) return;
    for (int64_t i = 0; i < set->count; i++) dx[i * set->step] = 0;
}

/* Computes dx of up to NORM_STRIP columns, and dw and db. */
static void R(norm_columns_back)(const norm_set *set, void *out, void *by_weight, void *by_bias,
                                 const void *upstream, const void *input, const void *weight,
                                 const void *statistics, int64_t columns) {
    real *dx = out, *dw = by_weight, *db = by_bias;
    const real *g = upstream, *x = input, *w = weight, *mean = statistics;
    const real *stats = statistics, *rstd = stats + NORM_RSTD * set->sets;
    real a[NORM_ROOM] = {0}, b[NORM_ROOM] = {0}, means[NORM_ROOM] = {0};
    real base[NORM_STRIP], partial[NORM_STRIP];
    memcpy(means, mean, (size_t)columns * sizeof(real));
    for (int64_t i = 0; i < set->count; i += NORM_ROWS) {
        int64_t rows = mg_min(set->count - i, NORM_ROWS);
        for (int64_t j = 0, at = i * set->step; j < columns; j += NORM_FOUR * LANES) {
            real more_a[NORM_FOUR * LANES], more_b[NORM_FOUR * LANES];
            R(norm_columns_sums)(NORM_PARTIALS, more_a, more_b, x + at + j, g + at + j, means + j,
                                 rows, set->step, columns - j);
            for (int k = 0; k < NORM_FOUR * LANES; k++) {
                a[j + k] += more_a[k];
                b[j + k] += more_b[k];
            }
        }
    }
    for (int64_t j = 0; j < columns; j++) {
        db[j] = a[j];
        dw[j] = R(norm_sum_vh)(stats + j, set->sets, (R(norm_pair)){a[j], b[j]});
        R(norm_back) of = R(norm_back_of)(stats + j, set->sets, w[j] * db[j], w[j] * dw[j],
                                          set->count, true);
        base[j] = of.base;
        partial[j] = of.partial;
    }
    for (int64_t i = 0, row = 0; i < set->count; i++, row += set->step)
        for (int64_t j = 0, at = row; j < columns; j += LANES, at += LANES) {
            int64_t left = columns - j;
            vec dxi = R(norm_load)(g + at, left) * R(norm_load)(w + j, left);
            if (set->own)
                dxi = v_fma(R(norm_load)(mean + j, left) - R(norm_load)(x + at, left),
                            v_load(partial + j), dxi - v_load(base + j));
            R(norm_store)(dx + at, dxi * R(norm_load)(rstd + j, left), left);
        }
    for (int64_t j = 0; j < columns && set->own; j++)
        if (!R(norm_regular)(stats + j, set->sets)) R(norm_drop_column)(set, dx + j, g + j);
}
