/* norm_channels.inc.c: the same for values in planes, (batch, channels, plane), with a weight and a
 * bias for each channel. A set of planes is normalised together: a channel's of all samples, or
 * neighbouring ones of one sample. Planes of one element are done as columns, side by side. */
#include "real.h"

/* ---- planes ---- */

static norm_moments R(norm_planes_moments)(const real *x, int64_t count, int64_t step, int64_t n) {
    if (count == 1) return R(norm_moments_of)(x, n, true);
    int64_t half = count / 2;
    return norm_join(R(norm_planes_moments)(x, half, step, n),
                     R(norm_planes_moments)(x + half * step, count - half, step, n));
}

/* y = ((x - mean) * rstd + shift) * w + b */
static void R(norm_set)(const norm_set *set, void *out, void *statistics, const void *input,
                        const void *weight, const void *bias, double eps) {
    real *y = out, *stats = statistics;
    const real *x = input, *w = weight, *b = bias;
    int64_t n = set->n;
    if (set->own) {
        bool row = set->step == n; /* planes without a gap are one */
        norm_moments of = R(norm_planes_moments)(x, row ? 1 : set->count, set->step,
                                                 row ? set->count * n : n);
        R(norm_keep)(stats, set->sets, of, eps);
    }
    real mean = stats[NORM_MEAN * set->sets], shift = stats[NORM_SHIFT * set->sets];
    real rstd = stats[NORM_RSTD * set->sets];
    for (int64_t k = 0; k < set->count; k++, w += set->w_step, b += set->w_step) {
        real *restrict to = y + k * set->step;
        const real *restrict from = x + k * set->step;
        real scale = rstd * *w, offset = fma_real(shift, *w, *b);
        for (int64_t i = 0; i < n; i++) to[i] = fma_real(from[i] - mean, scale, offset);
    }
}

/* The sums over k of w[k] a[k] and w[k] b[k], pairwise. */
static R(norm_pair) R(norm_over_planes)(const real *a, const real *b, const real *w, int64_t count,
                                        int64_t step, int64_t w_step) {
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
    int64_t n = set->n, planes = set->step / n;
    for (int64_t k = 0; k < set->count; k++) {
        int64_t at = k * set->step;
        R(norm_pair) v = R(norm_sums)(NORM_SLOPES, x + at, g + at, x, n,
                                      stats[NORM_MEAN * set->sets]);
        sum_g[k * planes] = v.a;
        sum_gh[k * planes] = R(norm_sum_vh)(stats, set->sets, v);
    }
    R(norm_pair) v = R(norm_over_planes)(sum_g, sum_gh, w, set->count, planes, set->w_step);
    R(norm_back) of = R(norm_back_of)(stats, set->sets, v.a, v.b, set->count * n, true);
    bool drop = !R(norm_regular)(stats, set->sets);
    for (int64_t k = 0; k < set->count && drop; k++)
        drop = R(norm_all_zero)(g + k * set->step, n);
    for (int64_t k = 0; k < set->count; k++) {
        real *restrict to = dx + k * set->step, weight_k = w[k * set->w_step];
        const real *restrict gk = g + k * set->step, *restrict xk = x + k * set->step;
        if (drop) {
            memset(to, 0, (size_t)n * sizeof(real));
        } else if (set->own) {
            for (int64_t i = 0; i < n; i++) to[i] = R(norm_dx)(of, gk[i] * weight_k, xk[i]);
        } else {
            real scale = of.rstd * weight_k;
            for (int64_t i = 0; i < n; i++) to[i] = gk[i] * scale;
        }
    }
}

/* dw and db: the sums over the samples of what each plane adds. */
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

/* a and b: the sums that `kind` says, of up to NORM_ROWS rows. */
MG_INLINE void R(norm_columns_of)(int kind, real *restrict a, real *restrict b,
                                  const real *restrict x, const real *restrict g,
                                  const real *restrict mean, int64_t rows, int64_t stride,
                                  int64_t width) {
    for (int64_t j = 0; j < width; j++) a[j] = b[j] = 0;
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < width; j++) {
            real d = x[i * stride + j] - mean[j];
            real t = kind == NORM_SUM ? x[i * stride + j] : kind == NORM_SPREAD ? d
                                                                                : g[i * stride + j];
            a[j] += t;
            if (kind == NORM_SLOPES && t == 0) d = 0;
            if (kind != NORM_SUM) b[j] = fma_real(t, d, b[j]);
        }
}

/* y of `width` columns, as of sets with one channel each. */
static void R(norm_columns)(const norm_set *set, void *out, void *statistics, const void *input,
                            const void *weight, const void *bias, int64_t width, double eps) {
    real *restrict y = out, *restrict stats = statistics;
    const real *restrict x = input, *restrict w = weight, *restrict b = bias;
    real mean[NORM_STRIP] = {0}, s[NORM_STRIP], t[NORM_STRIP];
    norm_moments of[NORM_STRIP] = {0};
    for (int64_t i = 0; set->own && i < set->count; i += NORM_ROWS) {
        int64_t rows = mg_min(set->count - i, NORM_ROWS);
        const real *from = x + i * set->step;
        R(norm_columns_of)(NORM_SUM, s, t, from, x, mean, rows, set->step, width);
        for (int64_t j = 0; j < width; j++) mean[j] = s[j] / (real)rows;
        R(norm_columns_of)(NORM_SPREAD, s, t, from, x, mean, rows, set->step, width);
        for (int64_t j = 0; j < width; j++)
            of[j] = norm_join(of[j], R(norm_corrected)(mean[j], s[j], t[j], rows, true));
    }
    for (int64_t j = 0; j < width; j++) {
        if (set->own) R(norm_keep)(stats + j, set->sets, of[j], eps);
        mean[j] = stats[j + NORM_MEAN * set->sets];
        s[j] = stats[j + NORM_RSTD * set->sets] * w[j];
        t[j] = fma_real(stats[j + NORM_SHIFT * set->sets], w[j], b[j]);
    }
    for (int64_t i = 0; i < set->count; i++)
        for (int64_t j = 0; j < width; j++) {
            int64_t at = i * set->step + j;
            y[at] = fma_real(x[at] - mean[j], s[j], t[j]);
        }
}

/* dx of `width` columns, dw and db. */
static void R(norm_columns_back)(const norm_set *set, void *out, void *by_weight, void *by_bias,
                                 const void *upstream, const void *input, const void *weight,
                                 const void *statistics, int64_t width) {
    real *restrict dx = out, *restrict dw = by_weight, *restrict db = by_bias;
    const real *restrict g = upstream, *restrict x = input, *restrict w = weight;
    const real *restrict stats = statistics;
    real a[NORM_STRIP], b[NORM_STRIP];
    R(norm_pair) sums[NORM_STRIP] = {0};
    const real *mean = stats + NORM_MEAN * set->sets;
    for (int64_t i = 0; i < set->count; i += NORM_ROWS) {
        int64_t at = i * set->step, rows = mg_min(set->count - i, NORM_ROWS);
        R(norm_columns_of)(NORM_SLOPES, a, b, x + at, g + at, mean, rows, set->step, width);
        for (int64_t j = 0; j < width; j++) {
            sums[j].a += a[j];
            sums[j].b += b[j];
        }
    }
    real base[NORM_STRIP], slope[NORM_STRIP];
    for (int64_t j = 0; j < width; j++) {
        db[j] = sums[j].a;
        dw[j] = R(norm_sum_vh)(stats + j, set->sets, sums[j]);
        R(norm_back) of = R(norm_back_of)(stats + j, set->sets, w[j] * db[j], w[j] * dw[j],
                                          set->count, true);
        base[j] = set->own ? of.base : 0;
        slope[j] = set->own ? of.slope : 0;
    }
    const real *rstd = stats + NORM_RSTD * set->sets;
    for (int64_t i = 0; i < set->count; i++)
        for (int64_t j = 0; j < width; j++) {
            int64_t at = i * set->step + j;
            real apart = slope[j] == 0 ? 0 : mean[j] - x[at];
            dx[at] = rstd[j] * fma_real(apart, slope[j], g[at] * w[j] - base[j]);
        }
}
