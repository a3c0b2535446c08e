/* norm.inc.c: layer normalisation of rows and its gradients; a template for each float width.
 *
 * Values are brought to mean 0 and variance 1, then multiplied by a weight and added to a bias.
 *
 * Sums run over four segments of neighbouring elements at once, so that no addition waits for the
 * one before. Each segment has 64 bytes of lanes, folded by halves.
 */
#include "simd/real.h"

/* Loads the first LANES of the `left` elements, or all if there are fewer. The remaining lanes are
 * 0. */
MG_INLINE vec R(norm_load)(const real *p, int64_t left) {
    return left >= LANES ? v_load(p) : v_load_n(p, (int)left);
}
MG_INLINE void R(norm_store)(real *p, vec v, int64_t left) {
    if (left >= LANES) v_store(p, v);
    else v_store_n(p, v, (int)left);
}
/* A store. If `streams`, a non-temporal one, for rows of whole vectors. */
MG_INLINE void R(norm_put)(real *p, vec v, int64_t left, bool streams) {
    if (streams) v_stream(p, (vec_f32)v);
    else R(norm_store)(p, v, left);
}

/* ---- sums ---- */

enum { R(NORM_VECTORS) = 64 / MG_VECTOR_BYTES };

typedef struct {
    real a, b;
} R(norm_pair);

typedef ireal R(norm_mask) __attribute__((vector_size(MG_VECTOR_BYTES)));

MG_INLINE void R(norm_add)(int kind, vec *a, vec *b, vec x, vec mean, vec g, vec w) {
    if (kind == NORM_SUM) {
        *a += x;
        return;
    }
    vec d = x - mean, t = d;
    if (kind != NORM_SPREAD) {
        t = kind == NORM_WEIGHTED_PARTIALS ? (vec)(g * w) : g;
        d = (vec)((R(norm_mask))d & (g != 0));
    }
    *a += t;
    *b = v_fma(t, d, *b);
}

/* Lane i holds the sum of lanes i and i ^ by. */
MG_INLINE vec R(norm_swap_add)(vec v, int by) {
    vec other = v;
    MG_UNROLL
    for (int i = 0; i < LANES; i++) other[i] = v[(i ^ by) % LANES];
    return v + other;
}

MG_INLINE real R(norm_fold)(vec *v) {
    for (int half = R(NORM_VECTORS) / 2; half > 0; half /= 2)
        for (int p = 0; p < half; p++) v[p] += v[p + half];
    vec sum = v[0]; /* unrolled by hand: a shuffle needs a constant distance */
    if (LANES > 8) sum = R(norm_swap_add)(sum, 8);
    if (LANES > 4) sum = R(norm_swap_add)(sum, 4);
    if (LANES > 2) sum = R(norm_swap_add)(sum, 2);
    return R(norm_swap_add)(sum, 1)[0];
}

/* The sums of `kind` over `count` <= `most` segments of n <= NORM_BLOCK elements, `step` apart. */
MG_INLINE void R(norm_sums_of)(int kind, int most, R(norm_pair) *sums, const real *x, const real *g,
                               const real *w, int64_t count, int64_t step, int64_t n,
                               const real *mean) {
    vec a[NORM_FOUR][R(NORM_VECTORS)] = {0}, b[NORM_FOUR][R(NORM_VECTORS)] = {0};
    vec m[NORM_FOUR];
    int64_t at[NORM_FOUR]; /* missing segments repeat the first */
    for (int k = 0; k < most; k++) {
        at[k] = k < count ? k * step : 0;
        m[k] = v_set1(mean[k < count ? k : 0]);
    }
    int64_t i = 0;
    for (; i + R(NORM_VECTORS) * LANES <= n; i += R(NORM_VECTORS) * LANES)
        for (int k = 0; k < most; k++)
            for (int p = 0; p < R(NORM_VECTORS); p++) {
                int64_t j = i + p * LANES;
                R(norm_add)(kind, &a[k][p], &b[k][p], v_load(x + at[k] + j), m[k],
                            v_load(g + at[k] + j), v_load(w + j));
            }
    if (i < n) {
        for (int k = 0; k < most; k++)
            for (int p = 0; p < R(NORM_VECTORS); p++) { /* lanes beyond the end: 0 - 0 */
                int64_t j = mg_min(i + p * LANES, n);
                int left = (int)mg_min(n - j, LANES);
                real means[LANES];
                v_store(means, m[k]);
                R(norm_add)(kind, &a[k][p], &b[k][p], v_load_n(x + at[k] + j, left),
                            v_load_n(means, left), v_load_n(g + at[k] + j, left),
                            v_load_n(w + j, left));
            }
    }
    for (int k = 0; k < most; k++) {
        sums[k].a = R(norm_fold)(a[k]);
        sums[k].b = R(norm_fold)(b[k]);
    }
}

/* The same for a `kind` unknown to the compiler, and for any n. An argument that the kind does not
 * use may be any readable memory of that size. */
static MG_NOINLINE void R(norm_sums)(int kind, R(norm_pair) *sums, const real *x, const real *g,
                                     const real *w, int64_t count, int64_t step, int64_t n,
                                     const real *mean) {
    if (n > NORM_BLOCK) {
        int64_t half = mg_ceil_div(n, 2 * NORM_BLOCK) * NORM_BLOCK;
        R(norm_pair) rest[NORM_FOUR];
        R(norm_sums)(kind, sums, x, g, w, count, step, half, mean);
        R(norm_sums)(kind, rest, x + half, g + half, w + half, count, step, n - half, mean);
        for (int k = 0; k < count; k++) {
            sums[k].a += rest[k].a;
            sums[k].b += rest[k].b;
        }
        return;
    }
    switch (kind) {
    case NORM_SPREAD:
        R(norm_sums_of)(NORM_SPREAD, NORM_FOUR, sums, x, g, w, count, step, n, mean);
        break;
    case NORM_PARTIALS:
        R(norm_sums_of)(NORM_PARTIALS, NORM_FOUR, sums, x, g, w, count, step, n, mean);
        break;
    default:
        if (NORM_STREAMS && count == 1)
            R(norm_sums_of)(NORM_WEIGHTED_PARTIALS, 1, sums, x, g, w, 1, step, n, mean);
        else
            R(norm_sums_of)(NORM_WEIGHTED_PARTIALS, NORM_FOUR, sums, x, g, w, count, step, n, mean);
    }
}

/* ---- statistics ---- */

/* Moments of up to four segments. If not centred, the mean counts as 0. If centred, deviations are
 * taken from the mean of the first few elements, and the squares are corrected for that. Deviations
 * are taken again from the segment's mean, if the correction is more than half of the squares or
 * the squares overflow. */
static MG_NOINLINE void R(norm_moments_of)(norm_moments *of, const real *x, int64_t count,
                                           int64_t step, int64_t n, bool centred) {
    if (n > NORM_BLOCK) {
        int64_t half = mg_ceil_div(n, 2 * NORM_BLOCK) * NORM_BLOCK;
        norm_moments rest[NORM_FOUR];
        R(norm_moments_of)(of, x, count, step, half, centred);
        R(norm_moments_of)(rest, x + half, count, step, n - half, centred);
        for (int k = 0; k < NORM_FOUR; k++) of[k] = norm_join(of[k], rest[k]);
        return;
    }
    real mean[NORM_FOUR] = {0};
    R(norm_pair) sums[NORM_FOUR];
    int few = (int)mg_min(n, 64 / (int64_t)sizeof(real));
    for (int k = 0; k < count && centred; k++) {
        vec v[R(NORM_VECTORS)];
        for (int p = 0; p < R(NORM_VECTORS); p++) {
            int at = (int)mg_min(p * LANES, few);
            v[p] = v_load_n(x + k * step + at, (int)mg_min(few - at, LANES));
        }
        mean[k] = R(norm_fold)(v) / (real)few;
    }
    /* each segment decides alone, independent of its neighbours */
    bool takes[NORM_FOUR] = {true, true, true, true};
    for (bool first = centred, far = true; far; first = false) {
        R(norm_sums)(NORM_SPREAD, sums, x, x, x, count, step, n, mean);
        far = false;
        for (int k = 0; k < NORM_FOUR; k++) {
            if (!takes[k]) continue;
            of[k] = norm_corrected((double)mean[k], centred ? (double)sums[k].a : 0,
                                   (double)sums[k].b, (double)n);
            far |= takes[k] = first && !(of[k].squares > (double)sums[k].b / 2);
            mean[k] = (real)of[k].mean;
        }
    }
}

/* Stores the statistics of one set of values. The four statistics lie `sets` elements apart. */
static MG_NOINLINE void R(norm_keep)(real *stats, int64_t sets, norm_moments of, double eps) {
    double var = of.squares / of.count, rstd = 1 / sqrt(var + eps);
    real mean = (real)of.mean;
    stats[NORM_MEAN * sets] = mean;
    stats[NORM_SHIFT * sets] = (real)(((double)mean - of.mean) * rstd);
    stats[NORM_RSTD * sets] = (real)rstd;
    stats[NORM_VAR * sets] = (real)var;
}

/* True if a variance is so large, or for this eps so small, that squares may have left the
 * range. */
static bool R(norm_lost)(const void *statistics, int64_t sets, double eps) {
    const real most = REAL_C(sizeof(real) == 4 ? 0x1p100 : 0x1p960), *var = statistics;
    const real least = eps > 1 / (double)most ? -1 : 1 / most;
    ireal lost = 0;
    var += NORM_VAR * sets;
    for (int64_t s = 0; s < sets; s++) lost |= !((var[s] <= most) & (var[s] > least));
    return lost != 0;
}

/* Stores statistics from given means and variances. */
static void R(norm_given)(void *statistics, const void *means, const void *variances, int64_t sets,
                          double eps) {
    real *stats = statistics;
    const real *mean = means, *var = variances;
    MG_APART
    for (int64_t s = 0; s < sets; s++) {
        double rstd = 1 / sqrt((double)var[s] + eps), rest = (double)(mean[s] - mean[s]);
        stats[NORM_MEAN * sets + s] = mean[s];
        stats[NORM_SHIFT * sets + s] = (real)(rest * rstd); /* 0, or NaN */
        stats[NORM_RSTD * sets + s] = (real)rstd;
        stats[NORM_VAR * sets + s] = var[s];
    }
}

/* running = (1 - momentum) running + momentum factor now */
static void R(norm_track)(void *running, int64_t step, const void *statistics, int64_t sets,
                          double momentum, double factor) {
    real *to = running;
    const real *now = statistics;
    for (int64_t s = 0; s < sets; s++, to += step) {
        MG_AS_IT_IS;
        *to = fma_real(*to, REAL_C(1 - momentum), now[s] * REAL_C(factor * momentum));
    }
}

/* True if a set has finite statistics and a variance above 0. */
MG_INLINE bool R(norm_regular)(const real *stats, int64_t sets) {
    real mean = stats[NORM_MEAN * sets], rstd = stats[NORM_RSTD * sets];
    return mean - mean == 0 && rstd - rstd == 0 && rstd > 0;
}

static MG_NOINLINE bool R(norm_all_zero)(const real *g, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        if (g[i] != 0) return false;
    return true;
}

/* Terms that the gradients of a set share. With h = normalised x and v = w g,
 *      dx = rstd (v - mean(v) - h mean(v h)) = rstd (v - base - (x - mean) partial) */
typedef struct {
    real mean, shift, rstd, base, partial;
} R(norm_back);

/* The sum of v h, from the sums of v and v (x - mean). If both are 0 the result is 0, whatever h
 * is. */
MG_INLINE real R(norm_sum_vh)(const real *stats, int64_t sets, R(norm_pair) v) {
    if (v.a == 0 && v.b == 0) return 0;
    return fma_real(stats[NORM_RSTD * sets], v.b, stats[NORM_SHIFT * sets] * v.a);
}

/* The shared terms, from the sums of v and of v h over n elements. */
MG_INLINE R(norm_back) R(norm_back_of)(const real *stats, int64_t sets, real v, real vh, int64_t n,
                                       bool centred) {
    real shift = stats[NORM_SHIFT * sets], rstd = stats[NORM_RSTD * sets], along = vh / (real)n;
    real base = fma_real(shift, along, centred ? v / (real)n : 0);
    return (R(norm_back)){stats[NORM_MEAN * sets], shift, rstd, base, rstd * along};
}

MG_INLINE vec R(norm_dx)(R(norm_back) of, vec v, vec x) {
    return v_set1(of.rstd) *
           v_fma(v_set1(of.mean) - x, v_set1(of.partial), v - v_set1(of.base));
}

/* ---- rows, with weight and bias for each column ---- */

/* Distance from the four rows being written to the elements to prefetch. These are the next four
 * rows, or a little further along rows that are too long for that. 0 if all `sets` rows are in
 * cache. */
MG_INLINE int64_t R(norm_ahead)(int64_t sets, int64_t n) {
    if (sets * n * (int64_t)sizeof(real) < NORM_NEAR) return 0;
    return n <= NORM_LONG ? NORM_FOUR * n : NORM_BLOCK;
}

/* y = ((x - mean) * rstd + shift) * w + b */
static void R(norm_rows)(void *out, void *statistics, const void *input, const void *weight,
                         const void *bias, int64_t rows, int64_t sets, int64_t n, bool centred,
                         double eps, bool streams) {
    streams &= NORM_STREAMS;
    real *y = out, *stats = statistics;
    const real *x = input, *w = weight, *b = bias;
    int64_t ahead = R(norm_ahead)(sets, n);
    for (int64_t r = 0, count; r < rows; r += count) {
        norm_moments of[NORM_FOUR];
        count = mg_min(rows - r, NORM_FOUR);
        R(norm_moments_of)(of, x, count, n, n, centred);
        for (int64_t k = 0; k < count; k++) R(norm_keep)(stats + k, sets, of[k], eps);
        for (int64_t k = 0; k < count; k++, x += n, y += n, stats++) {
            vec mean = v_set1(stats[NORM_MEAN * sets]), shift = v_set1(stats[NORM_SHIFT * sets]);
            vec rstd = v_set1(stats[NORM_RSTD * sets]);
            for (int64_t i = 0; i < n; i += LANES) {
                if (ahead) {
                    __builtin_prefetch(x + ahead + i);
                    if (!streams) __builtin_prefetch(y + ahead / NORM_FOUR + i, 1);
                }
                vec h = v_fma(R(norm_load)(x + i, n - i) - mean, rstd, shift);
                vec wi = R(norm_load)(w + i, n - i), bi = R(norm_load)(b + i, n - i);
                R(norm_put)(y + i, v_fma(h, wi, bi), n - i, streams);
            }
        }
    }
}

/* Computes dx of a row with non-temporal stores, and prefetches the row after the next. */
static MG_NOINLINE void R(norm_row_non_temporal)(R(norm_back) of, real *dx, const real *g, const real *x,
                                         const real *w, int64_t n, int64_t ahead) {
    for (int64_t i = 0; i < n; i += LANES) {
        __builtin_prefetch(g + ahead + i);
        __builtin_prefetch(x + ahead + i);
        v_stream(dx + i, (vec_f32)R(norm_dx)(of, v_load(g + i) * v_load(w + i), v_load(x + i)));
    }
}

/* Computes dx of `count` rows, unless dx is NULL, and adds to dw and db. `count` is a compile-time
 * constant. */
MG_INLINE void R(norm_rows_add)(int count, const R(norm_back) *of, real *dx, real *dw, real *db,
                                const real *g, const real *x, const real *w, int64_t n,
                                int64_t ahead) {
    for (int64_t i = 0; i < n; i += LANES) {
        int64_t left = n - i;
        vec by_w[NORM_FOUR] = {0}, by_b[NORM_FOUR] = {0}, by_x[NORM_FOUR];
        vec wi = R(norm_load)(w + i, left);
        for (int r = 0; r < count; r++) {
            int64_t at = r * n + i;
            if (ahead) {
                __builtin_prefetch(g + ahead + at);
                __builtin_prefetch(x + ahead + at);
                __builtin_prefetch(dx + ahead + at, 1);
            }
            vec gi = R(norm_load)(g + at, left), xi = R(norm_load)(x + at, left);
            vec h = v_fma(xi - v_set1(of[r].mean), v_set1(of[r].rstd), v_set1(of[r].shift));
            by_w[r] = gi * (vec)((R(norm_mask))h & (gi != 0));
            by_b[r] = gi;
            by_x[r] = R(norm_dx)(of[r], gi * wi, xi);
        }
        for (int r = 0; dx && r < count; r++) R(norm_store)(dx + r * n + i, by_x[r], left);
        R(norm_store)(dw + i,
                      R(norm_load)(dw + i, left) + ((by_w[0] + by_w[1]) + (by_w[2] + by_w[3])),
                      left);
        R(norm_store)(db + i,
                      R(norm_load)(db + i, left) + ((by_b[0] + by_b[1]) + (by_b[2] + by_b[3])),
                      left);
    }
}

/* Computes dx, and the sums of g h and of g over the rows. With non-temporal stores rows are
 * processed one by one, so that every stream is sequential. */
static void R(norm_rows_back)(void *out, void *by_weight, void *by_bias, const void *upstream,
                              const void *input, const void *weight, const void *statistics,
                              int64_t rows, int64_t sets, int64_t n, bool centred, bool streams) {
    streams &= NORM_STREAMS;
    real *dx = out, *dw = by_weight, *db = by_bias;
    const real *g = upstream, *x = input, *w = weight, *stats = statistics;
    int64_t ahead = R(norm_ahead)(sets, n);
    memset(dw, 0, (size_t)n * sizeof(real));
    memset(db, 0, (size_t)n * sizeof(real));
    for (int64_t r = 0, count; r < rows; r += count) {
        R(norm_pair) v[NORM_FOUR];
        R(norm_back) of[NORM_FOUR];
        count = mg_min(rows - r, NORM_FOUR);
        for (int64_t k = 0; k < count; k++) {
            int64_t at = k * n;
            if (streams || k == 0)
                R(norm_sums)(NORM_WEIGHTED_PARTIALS, v + k, x + at, g + at, w, streams ? 1 : count, n,
                             n, stats + k);
            of[k] = R(norm_back_of)(stats + k, sets, v[k].a, R(norm_sum_vh)(stats + k, sets, v[k]),
                                    n, centred);
            if (streams) R(norm_row_non_temporal)(of[k], dx + at, g + at, x + at, w, n, mg_min(ahead, 2 * n));
        }
        real *near = streams ? NULL : dx;
        if (count == NORM_FOUR)
            R(norm_rows_add)(NORM_FOUR, of, near, dw, db, g, x, w, n, streams ? 0 : ahead);
        for (int64_t k = 0; k < count; k++, dx += n, g += n, x += n, stats++) {
            if (count < NORM_FOUR)
                R(norm_rows_add)(1, of + k, streams ? NULL : dx, dw, db, g, x, w, n, 0);
            if (!R(norm_regular)(stats, sets) && R(norm_all_zero)(g, n))
                memset(dx, 0, (size_t)n * sizeof(real));
        }
    }
}

/* parts[0] += parts[1] += ..., pairwise. Each part has n elements. */
static void R(norm_join_parts)(void *parts, int64_t count, int64_t n) {
    real *p = parts;
    for (int64_t step = 1; step < count; step *= 2)
        for (int64_t k = 0; k + step < count; k += 2 * step) {
            real *to = p + k * n, *from = to + step * n;
            for (int64_t i = 0; i < n; i += LANES)
                R(norm_store)(to + i,
                              R(norm_load)(to + i, n - i) + R(norm_load)(from + i, n - i), n - i);
        }
}
