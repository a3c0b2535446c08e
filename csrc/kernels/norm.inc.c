/* norm.inc.c: values brought to mean 0 and variance 1, then times a weight and plus a bias; and
 * back. Sums over neighbouring elements are made in 128 bytes of lanes, which are folded by halves.
 */
#include "real.h"

/* ---- sums over neighbours ---- */

enum {
    R(NORM_VECTORS) = 128 / MG_VECTOR_BYTES,
    R(NORM_STEP) = 128 / sizeof(real), /* elements that these vectors hold */
};

typedef struct {
    real a, b;
} R(norm_pair);

typedef ireal R(norm_mask) __attribute__((vector_size(MG_VECTOR_BYTES)));

MG_INLINE void R(norm_add)(int kind, vec *a, vec *b, vec x, vec mean, vec g, vec w) {
    vec d = x - mean;
    if (kind == NORM_SUM) {
        *a += x;
        return;
    }
    vec t = d;
    if (kind != NORM_SPREAD) {
        t = g;
        if (kind == NORM_WEIGHTED_SLOPES) t *= w;
        d = (vec)((R(norm_mask))d & (g != 0));
    }
    *a += t;
    *b = v_fma(t, d, *b);
}

/* The sum of all lanes of all vectors. */
MG_INLINE real R(norm_fold)(vec *v) {
    real lane[LANES];
    for (int half = R(NORM_VECTORS) / 2; half > 0; half /= 2)
        for (int p = 0; p < half; p++) v[p] += v[p + half];
    v_store(lane, v[0]);
    for (int half = LANES / 2; half > 0; half /= 2)
        for (int i = 0; i < half; i++) lane[i] += lane[i + half];
    return lane[0];
}

/* n elements; what a kind has no use for may be anything readable of that size. */
MG_INLINE R(norm_pair) R(norm_sums_of)(int kind, const real *x, const real *g, const real *w,
                                       int64_t n, real mean) {
    vec a[R(NORM_VECTORS)] = {0}, b[R(NORM_VECTORS)] = {0}, m = v_set1(mean);
    real means[LANES];
    int64_t i = 0;
    for (; i + R(NORM_STEP) <= n; i += R(NORM_STEP))
        for (int p = 0; p < R(NORM_VECTORS); p++) {
            int64_t at = i + p * LANES;
            R(norm_add)(kind, &a[p], &b[p], v_load(x + at), m, v_load(g + at), v_load(w + at));
        }
    if (i < n) {
        v_store(means, m);
        for (int p = 0; p < R(NORM_VECTORS); p++) { /* lanes beyond the end: 0 - 0 */
            int64_t at = mg_min(i + p * LANES, n);
            int left = (int)mg_min(n - at, LANES);
            R(norm_add)(kind, &a[p], &b[p], v_load_n(x + at, left), v_load_n(means, left),
                        v_load_n(g + at, left), v_load_n(w + at, left));
        }
    }
    R(norm_pair) sums = {R(norm_fold)(a), 0};
    if (kind != NORM_SUM) sums.b = R(norm_fold)(b);
    return sums;
}

/* The same for any n and a kind that is no constant, block by block, joined pairwise. */
static MG_NOINLINE R(norm_pair) R(norm_sums)(int kind, const real *x, const real *g,
                                             const real *w, int64_t n, real mean) {
    if (n > NORM_BLOCK) {
        int64_t half = mg_ceil_div(n, 2 * NORM_BLOCK) * NORM_BLOCK;
        R(norm_pair) first = R(norm_sums)(kind, x, g, w, half, mean);
        R(norm_pair) rest = R(norm_sums)(kind, x + half, g + half, w + half, n - half, mean);
        return (R(norm_pair)){first.a + rest.a, first.b + rest.b};
    }
    switch (kind) {
    case NORM_SUM: return R(norm_sums_of)(NORM_SUM, x, g, w, n, mean);
    case NORM_SPREAD: return R(norm_sums_of)(NORM_SPREAD, x, g, w, n, mean);
    case NORM_SLOPES: return R(norm_sums_of)(NORM_SLOPES, x, g, w, n, mean);
    default: return R(norm_sums_of)(NORM_WEIGHTED_SLOPES, x, g, w, n, mean);
    }
}

/* ---- statistics ---- */

/* From the sums of n values, whose mean was rounded to `mean`, less it, and their squares. */
MG_INLINE norm_moments R(norm_corrected)(real mean, real a, real b, int64_t n, bool centred) {
    double missing = centred ? (double)a / (double)n : 0;
    double squares = (double)b - (double)a * missing;
    return (norm_moments){(double)n, (double)mean + missing, squares < 0 ? 0 : squares};
}

/* Of n elements; not centred, the mean counts as 0. */
static norm_moments R(norm_moments_of)(const real *x, int64_t n, bool centred) {
    if (n > NORM_BLOCK) {
        int64_t half = mg_ceil_div(n, 2 * NORM_BLOCK) * NORM_BLOCK;
        return norm_join(R(norm_moments_of)(x, half, centred),
                         R(norm_moments_of)(x + half, n - half, centred));
    }
    real mean = centred ? R(norm_sums)(NORM_SUM, x, x, x, n, 0).a / (real)n : 0;
    R(norm_pair) spread = R(norm_sums)(NORM_SPREAD, x, x, x, n, mean);
    return R(norm_corrected)(mean, spread.a, spread.b, n, centred);
}

/* The statistics of one set of values, one every `sets` elements. */
MG_INLINE void R(norm_keep)(real *stats, int64_t sets, norm_moments of, double eps) {
    double var = of.squares / of.count, rstd = 1 / sqrt(var + eps);
    real mean = (real)of.mean;
    stats[NORM_MEAN * sets] = mean;
    stats[NORM_SHIFT * sets] = (real)(((double)mean - of.mean) * rstd);
    stats[NORM_RSTD * sets] = (real)rstd;
    stats[NORM_VAR * sets] = (real)var;
}

/* Those of `sets` sets whose mean and variance are given. */
static void R(norm_given)(void *statistics, const void *means, const void *variances, int64_t sets,
                          double eps) {
    real *stats = statistics;
    const real *mean = means, *var = variances;
    for (int64_t s = 0; s < sets; s++)
        R(norm_keep)(stats + s, sets, (norm_moments){1, (double)mean[s], (double)var[s]}, eps);
}

/* running = (1 - momentum) running + momentum factor now */
static void R(norm_track)(void *running, int64_t stride, const void *statistics, int which,
                          int64_t sets, double momentum, double factor) {
    real *to = running;
    const real *now = (const real *)statistics + which * sets;
    for (int64_t s = 0; s < sets; s++)
        to[s * stride] = (real)((double)to[s * stride] * (1 - momentum) +
                                (double)now[s] * factor * momentum);
}

/* What the gradient of a set has in common. With h for x normalised and v for w g,
 *     dx = rstd (v - mean(v) - h mean(v h)) = rstd (v - base - (x - mean) slope) */
typedef struct {
    real mean, shift, rstd, base, slope;
} R(norm_back);

/* The sum of v h, from those of v and v (x - mean); of nothing it is 0, whatever h is. */
MG_INLINE real R(norm_sum_vh)(const real *stats, int64_t sets, R(norm_pair) v) {
    if (v.a == 0 && v.b == 0) return 0;
    return fma_real(stats[NORM_RSTD * sets], v.b, stats[NORM_SHIFT * sets] * v.a);
}

/* From the sums of v and of v h over n elements. */
MG_INLINE R(norm_back) R(norm_back_of)(const real *stats, int64_t sets, real v, real vh, int64_t n,
                                       bool centred) {
    real shift = stats[NORM_SHIFT * sets], rstd = stats[NORM_RSTD * sets], along = vh / (real)n;
    real base = fma_real(shift, along, centred ? v / (real)n : 0);
    return (R(norm_back)){stats[NORM_MEAN * sets], shift, rstd, base, rstd * along};
}

MG_INLINE real R(norm_dx)(R(norm_back) of, real v, real x) {
    return of.rstd * fma_real(of.mean - x, of.slope, v - of.base);
}

/* Whether values have finite statistics and some spread. */
MG_INLINE bool R(norm_regular)(const real *stats, int64_t sets) {
    real mean = stats[NORM_MEAN * sets], rstd = stats[NORM_RSTD * sets];
    return mean - mean == 0 && rstd - rstd == 0 && rstd > 0;
}

static bool R(norm_all_zero)(const real *g, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        if (g[i] != 0) return false;
    return true;
}

/* ---- rows, with weight and bias for each column ---- */

/* y = ((x - mean) * rstd + shift) * w + b */
static void R(norm_rows)(void *out, void *statistics, const void *input, const void *weight,
                         const void *bias, int64_t rows, int64_t sets, int64_t n, bool centred,
                         double eps) {
    real *restrict y = out, *restrict stats = statistics;
    const real *restrict x = input, *restrict w = weight, *restrict b = bias;
    for (int64_t r = 0; r < rows; r++, x += n, y += n, stats++) {
        R(norm_keep)(stats, sets, R(norm_moments_of)(x, n, centred), eps);
        real mean = stats[NORM_MEAN * sets], shift = stats[NORM_SHIFT * sets];
        real rstd = stats[NORM_RSTD * sets];
        for (int64_t i = 0; i < n; i++)
            y[i] = fma_real(fma_real(x[i] - mean, rstd, shift), w[i], b[i]);
    }
}

/* dx of `count` rows, a constant, and what they add to dw and db. */
MG_INLINE void R(norm_rows_add)(int count, const R(norm_back) *of, real *restrict dx,
                                real *restrict dw, real *restrict db, const real *restrict g,
                                const real *restrict x, const real *restrict w, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        real by_w[4] = {0}, by_b[4] = {0};
        for (int r = 0; r < count; r++) {
            real gi = g[r * n + i], xi = x[r * n + i];
            real h = fma_real(xi - of[r].mean, of[r].rstd, of[r].shift);
            by_w[r] = gi == 0 ? 0 : gi * h;
            by_b[r] = gi;
            dx[r * n + i] = R(norm_dx)(of[r], gi * w[i], xi);
        }
        dw[i] += (by_w[0] + by_w[1]) + (by_w[2] + by_w[3]);
        db[i] += (by_b[0] + by_b[1]) + (by_b[2] + by_b[3]);
    }
}

/* dx, and the sums of g h and of g over the rows. */
static void R(norm_rows_back)(void *out, void *by_weight, void *by_bias, const void *upstream,
                              const void *input, const void *weight, const void *statistics,
                              int64_t rows, int64_t sets, int64_t n, bool centred) {
    real *dx = out, *dw = by_weight, *db = by_bias;
    const real *g = upstream, *x = input, *w = weight, *stats = statistics;
    memset(dw, 0, (size_t)n * sizeof(real));
    memset(db, 0, (size_t)n * sizeof(real));
    for (int64_t r = 0, count; r < rows; r += count, g += count * n, x += count * n,
                 dx += count * n, stats += count) {
        R(norm_back) of[4];
        count = rows - r < 4 ? 1 : 4;
        for (int64_t k = 0; k < count; k++) {
            R(norm_pair) v = R(norm_sums)(NORM_WEIGHTED_SLOPES, x + k * n, g + k * n, w, n,
                                          stats[k + NORM_MEAN * sets]);
            of[k] = R(norm_back_of)(stats + k, sets, v.a, R(norm_sum_vh)(stats + k, sets, v), n,
                                    centred);
        }
        if (count == 4) R(norm_rows_add)(4, of, dx, dw, db, g, x, w, n);
        else R(norm_rows_add)(1, of, dx, dw, db, g, x, w, n);
        for (int64_t k = 0; k < count; k++)
            if (!R(norm_regular)(stats + k, sets) && R(norm_all_zero)(g + k * n, n))
                memset(dx + k * n, 0, (size_t)n * sizeof(real));
    }
}

/* parts[0] += parts[1] += ..., pairwise; each has n elements. */
static void R(norm_join_parts)(void *parts, int64_t count, int64_t n) {
    real *p = parts;
    for (int64_t step = 1; step < count; step *= 2)
        for (int64_t k = 0; k + step < count; k += 2 * step) {
            real *restrict to = p + k * n;
            const real *restrict from = to + step * n;
            for (int64_t i = 0; i < n; i++) to[i] += from[i];
        }
}
