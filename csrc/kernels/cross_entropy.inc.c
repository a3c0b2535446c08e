/* cross_entropy.inc.c: the rows of cross_entropy.c in one float width. */
#include "real.h"

/* The largest of n > 0 elements, of which NaN is none; -inf of nothing else. */
static MG_NOINLINE real R(entropy_max)(const real *x, int64_t n) {
    enum { SIDE = 4 };
    vec most[SIDE];
    MG_UNROLL
    for (int k = 0; k < SIDE; k++) most[k] = v_set1(REAL_C(-INFINITY));
    for (; n >= SIDE * LANES; n -= SIDE * LANES, x += SIDE * LANES)
        MG_UNROLL
        for (int k = 0; k < SIDE; k++)
            most[k] = R(reduce_join_vec)(REDUCE_MAX, most[k], v_load(x + k * LANES));
    for (; n > 0; n -= LANES, x += LANES) {
        vec rest = R(reduce_load_part)(REDUCE_MAX, x, mg_min(n, LANES), most[0]);
        most[0] = R(reduce_join_vec)(REDUCE_MAX, most[0], rest);
    }
    most[0] = R(reduce_join_vec)(REDUCE_MAX, most[0], most[1]);
    most[2] = R(reduce_join_vec)(REDUCE_MAX, most[2], most[3]);
    return R(reduce_across)(REDUCE_MAX, R(reduce_join_vec)(REDUCE_MAX, most[0], most[2]));
}

/* e^(x - m) of n elements that are at most m: their sum, or, given dx, what they are by `factor`
 * there, and 0 for 0. Meanwhile those that lie `ahead` elements further on are fetched. */
MG_INLINE real R(entropy_exp)(real *restrict dx, const real *restrict x, int64_t n, real m,
                              real factor, int64_t ahead) {
#if MG_HAS_WIDE
    enum { WIDE = WIDE_VECTORS * LANES };
    R(wide) sum = R(w_set)(0), centre = R(w_set)(m);
    for (int64_t i = 0; i < n; i += WIDE) {
        real part[WIDE];
        bool whole = n - i >= WIDE;
        for (int k = 0; k < WIDE; k += 64 / (int)sizeof(real))
            __builtin_prefetch(x + i + ahead + k);
        if (!whole) {
            R(w_store)(part, R(w_set)(REAL_C(-INFINITY)));
            memcpy(part, x + i, (size_t)(n - i) * sizeof(real));
        }
        R(wide) e = R(w_exp_below)(R(w_sub)(R(w_load)(whole ? x + i : part), centre));
        if (!dx) {
            sum = R(w_add)(sum, e);
            continue;
        }
        for (int k = 0; k < WIDE_VECTORS; k++) {
            vec p = e.v[k];
            e.v[k] = R(reduce_choose)(p != 0, p * v_set1(factor), p);
        }
        R(w_store)(whole ? dx + i : part, e);
        if (!whole) memcpy(dx + i, part, (size_t)(n - i) * sizeof(real));
    }
    vec all = sum.v[0];
    for (int k = 1; k < WIDE_VECTORS; k++) all += sum.v[k];
    return dx ? 0 : R(reduce_across)(REDUCE_SUM, all);
#else
    double sum = 0;
    (void)ahead;
    for (int64_t i = 0; i < n && dx; i++) dx[i] = R(v_exp_below)(x[i] - m);
    for (int64_t i = 0; i < n && dx; i++) dx[i] = dx[i] == 0 ? 0 : dx[i] * factor;
    for (int64_t i = 0; i < n && !dx; i++) sum += (double)R(v_exp_below)(x[i] - m);
    return (real)sum;
#endif
}
static MG_NOINLINE real R(entropy_exp_sum)(const real *x, int64_t n, real m, int64_t ahead) {
    return R(entropy_exp)(NULL, x, n, m, 1, ahead);
}
static MG_NOINLINE void R(entropy_exp_by)(real *restrict dx, const real *restrict x, int64_t n,
                                          real m, real factor) {
    R(entropy_exp)(dx, x, n, m, factor, mg_min(n, ENTROPY_BLOCK));
}

/* The largest element m, and the sum of exp(x - m); both NaN where one is NaN or the largest is
 * infinite. */
static void R(entropy_sum)(const real *x, int64_t n, real *m, real *s) {
    real most = REAL_C(-INFINITY);
    double sum = 0;
    for (int64_t i = 0; i < n; i += ENTROPY_BLOCK) {
        int64_t count = mg_min(n - i, ENTROPY_BLOCK);
        real here = R(entropy_max)(x + i, count);
        if (here > most) {
            if (sum != 0) sum *= v_exp_f64((double)most - (double)here);
            most = here;
        }
        real centre = most - most == 0 ? most : 0; /* a block of -inf has no share, unless it has NaN */
        for (int64_t j = 0; j < count; j += ENTROPY_RUN)
            sum += (double)R(entropy_exp_sum)(x + i + j, mg_min(count - j, ENTROPY_RUN), centre,
                                              count);
    }
    bool finite = most - most == 0 && sum == sum;
    *m = finite ? most : REAL_C(NAN);
    *s = finite ? (real)sum : REAL_C(NAN);
}

/* to[r * n + j] = v[r] */
static MG_NOINLINE void R(entropy_repeat)(real *restrict to, const real *restrict v, int64_t rows,
                                          int64_t n) {
    for (int64_t r = 0; r < rows; r++, to += n)
        for (int64_t j = 0; j < n; j++) to[j] = v[r];
}

/* What entropy_sum finds, of rows of which several fit a strip: their exponentials together. */
static MG_NOINLINE void R(entropy_sums)(const real *x, int64_t rows, int64_t n, real *m, real *s) {
    real centre[REDUCE_STRIP], e[REDUCE_STRIP];
    for (int64_t some; rows > 0; rows -= some, x += some * n, m += some, s += some) {
        some = mg_min(rows, REDUCE_STRIP / n);
        for (int64_t r = 0; r < some; r++) m[r] = R(entropy_max)(x + r * n, n);
        R(entropy_repeat)(centre, m, some, n);
        R(mg_reduce_exp)(false, e, x, centre, some * n);
        for (int64_t r = 0; r < some; r++) {
            vec lanes = v_set1(0);
            for (int64_t i = 0; i < n; i += LANES)
                lanes += v_load_n(e + r * n + i, (int)mg_min(n - i, LANES));
            s[r] = R(reduce_across)(REDUCE_SUM, lanes);
            if (m[r] - m[r] != 0 || s[r] != s[r]) m[r] = s[r] = REAL_C(NAN);
        }
    }
}

/* dx[r * n + j] = e^(x - m[r]) factor[r], and 0 for 0, of rows that fit a strip. */
static MG_NOINLINE void R(entropy_exps_by)(real *restrict dx, const real *restrict x, int64_t rows,
                                           int64_t n, const real *m, const real *factor) {
    real many[REDUCE_STRIP];
    R(entropy_repeat)(many, m, rows, n);
    R(mg_reduce_exp)(false, dx, x, many, rows * n);
    R(entropy_repeat)(many, factor, rows, n);
    for (int64_t i = 0; i < rows * n; i++) dx[i] = dx[i] == 0 ? 0 : dx[i] * many[i];
}

/* w[t], or 1 */
MG_INLINE real R(entropy_weight)(const real *w, int64_t t) { return w ? w[t] : 1; }

/* a b, 0 where a is */
MG_INLINE real R(entropy_product)(real a, real b) { return a == 0 ? 0 : a * b; }

/* The losses of `rows` rows, and m and s of each. */
static void R(entropy_rows)(const entropy_job *job, int64_t first, int64_t rows) {
    int64_t n = job->n;
    const real *w = (const real *)job->w, *x = (const real *)job->x + first * n;
    real *losses = (real *)job->out + first, *m = (real *)job->stats + first, *s = m + job->rows;
    real kept = REAL_C(1 - job->smoothing), spread = REAL_C(job->smoothing / (double)n);
    bool together = entropy_is_short(n);
    if (together) R(entropy_sums)(x, rows, n, m, s);
    for (int64_t r = 0; r < rows; r++) {
        if (job->target[first + r] == job->ignore) m[r] = s[r] = 0;
        else if (!together) R(entropy_sum)(x + r * n, n, &m[r], &s[r]);
    }
    R(v_log_any)(losses, s, rows);
    for (int64_t r = 0; r < rows; r++, x += n) {
        int64_t t = job->target[first + r];
        real log_s = losses[r];
        losses[r] = 0;
        if (t == job->ignore) continue;
        losses[r] = R(entropy_product)(kept * R(entropy_weight)(w, t), log_s - (x[t] - m[r]));
        if (spread == 0) continue;
        double rest = 0;
        for (int64_t i = 0; i < n; i++)
            rest += (double)R(entropy_product)(R(entropy_weight)(w, i), log_s - (x[i] - m[r]));
        losses[r] += spread * (real)rest;
    }
}

/* With p for softmax(x) and q for the target's share in each class, dx = scale (p sum(q) - q). */
static void R(entropy_rows_back)(const entropy_job *job, int64_t first, int64_t rows) {
    int64_t n = job->n;
    const real *w = (const real *)job->w, *x = (const real *)job->x + first * n;
    const real *m = (const real *)job->stats + first, *s = m + job->rows, *g = (const real *)job->g;
    real *dx = (real *)job->out + first * n;
    real kept = REAL_C(1 - job->smoothing), spread = REAL_C(job->smoothing / (double)n);
    int64_t most = entropy_is_short(n) ? REDUCE_STRIP / n : 1, end = first + rows;
    for (int64_t some; first < end; first += some, m += some, s += some) {
        real scale[REDUCE_STRIP], by_p[REDUCE_STRIP];
        some = mg_min(end - first, most);
        for (int64_t r = 0; r < some; r++) {
            int64_t t = job->target[first + r];
            by_p[r] = scale[r] = 0;
            if (t == job->ignore) continue;
            scale[r] = (job->each ? g[first + r] : g[0]) / REAL_C(job->total);
            real right = kept * R(entropy_weight)(w, t);
            by_p[r] = scale[r] * (right + spread * REAL_C(job->weights)) / s[r];
        }
        if (most > 1) R(entropy_exps_by)(dx, x, some, n, m, by_p);
        else if (scale[0] != 0) R(entropy_exp_by)(dx, x, n, m[0], by_p[0]);
        for (int64_t r = 0; r < some; r++, x += n, dx += n) {
            int64_t t = job->target[first + r];
            if (scale[r] == 0) {
                memset(dx, 0, (size_t)n * sizeof(real));
                continue;
            }
            dx[t] -= scale[r] * (kept * R(entropy_weight)(w, t));
            for (int64_t i = 0; i < n && spread != 0; i++)
                dx[i] -= scale[r] * (spread * R(entropy_weight)(w, i));
        }
    }
}

/* The weights of all targets that count, added up. */
static double R(entropy_total)(const entropy_job *job) {
    double total = 0;
    for (int64_t r = 0; r < job->rows; r++)
        if (job->target[r] != job->ignore)
            total += (double)R(entropy_weight)((const real *)job->w, job->target[r]);
    return total;
}

/* The weights of all classes, added up. */
static double R(entropy_weights)(const entropy_job *job) {
    double sum = job->w ? 0 : (double)job->n;
    for (int64_t i = 0; i < job->n && job->w; i++) sum += (double)((const real *)job->w)[i];
    return sum;
}
