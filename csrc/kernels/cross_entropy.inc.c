/* cross_entropy.inc.c: the lines of cross_entropy.c in one float width. */
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

MG_PLANNING
/* What entropy_sum finds, of at most REDUCE_STRIP neighbouring columns of n elements. */
static void R(entropy_columns)(const real *x, int64_t stride, int64_t n, int64_t width, real *m,
                               real *s) {
    const reduce_plan columns = {.columns = true, .stride = stride, .run_x = 1, .run_y = 1,
                                 .run_c = 1};
    real part[REDUCE_STRIP];
    for (int pass = 0; pass < 2; pass++)
        for (int64_t i = 0; i < n; i += REDUCE_ROWS) {
            real *all = pass ? s : m;
            int kind = pass ? REDUCE_SUMEXP : REDUCE_MAX;
            mg_reduce_piece(kind, REAL_DTYPE, &columns, i ? part : all, NULL, x + i * stride, width,
                            mg_min(n - i, REDUCE_ROWS), pass ? m : NULL);
            for (int64_t j = 0; j < width && i; j++)
                all[j] = R(reduce_join)(pass ? REDUCE_SUM : REDUCE_MAX, all[j], part[j]);
        }
    for (int64_t j = 0; j < width; j += LANES) {
        int64_t used = mg_min(width - j, LANES);
        vec most = R(reduce_load)(m + j, used), sum = R(reduce_load)(s + j, used);
        vec bad = (most - most) + (sum - sum); /* NaN unless both are finite */
        R(reduce_store)(m + j, most + bad, used);
        R(reduce_store)(s + j, sum + bad, used);
    }
}
MG_PLANNING_END

/* dx = e^(x - m) factor, 0 where one of them is, of a row of `width` columns. */
static MG_NOINLINE void R(entropy_row_by)(real *restrict dx, const real *restrict x,
                                          const real *restrict m, const real *restrict factor,
                                          int64_t width) {
    R(mg_reduce_exp)(false, dx, x, m, width);
    for (int64_t j = 0; j < width; j += LANES) {
        int64_t used = mg_min(width - j, LANES);
        vec p = R(reduce_load)(dx + j, used), by = R(reduce_load)(factor + j, used);
        p = R(reduce_choose)((p == 0) | (by == 0), v_set1(0), p * by);
        R(reduce_store)(dx + j, p, used);
    }
}

/* dx -= a b, or b; 0 where a is. */
static MG_NOINLINE void R(entropy_less)(real *restrict dx, const real *restrict a, real b, int64_t n) {
    for (int64_t i = 0; i < n; i += LANES) {
        int64_t used = mg_min(n - i, LANES);
        vec by = a ? R(reduce_load)(a + i, used) : v_set1(1);
        by = R(reduce_choose)(by == 0, by, by * v_set1(b));
        R(reduce_store)(dx + i, R(reduce_load)(dx + i, used) - by, used);
    }
}

/* w[t], or 1 */
MG_INLINE real R(entropy_weight)(const real *w, int64_t t) { return w ? w[t] : 1; }

/* a b, 0 where a is */
MG_INLINE real R(entropy_product)(real a, real b) { return a == 0 ? 0 : a * b; }

/* w (log_s - (x - m)) of all classes of a row, added up. */
static MG_NOINLINE double R(entropy_rest)(const real *x, const real *w, int64_t n, real m,
                                          real log_s) {
    double rest = 0;
    for (int64_t end; n > 0; n -= end, x += end, w += w ? end : 0) {
        vec sum = v_set1(0);
        end = mg_min(n, ENTROPY_RUN);
        for (int64_t i = 0; i < end; i += LANES) {
            int64_t used = mg_min(end - i, LANES);
            vec by = w ? R(reduce_load)(w + i, used) : v_set1(1);
            vec loss = by * (v_set1(log_s) - (R(reduce_load)(x + i, used) - v_set1(m)));
            sum += R(reduce_choose)((by != 0) & R(reduce_used)(used), loss, v_set1(0));
        }
        rest += (double)R(reduce_across)(REDUCE_SUM, sum);
    }
    return rest;
}

/* What n elements x come above -base: the sum, of squares where they are asked for; or, given dx, that
 * of their slopes times `scale`, which go there. */
static MG_NOINLINE double R(entropy_excess)(real *dx, const real *x, int64_t n, real base, real scale,
                                            bool square) {
    double all = 0;
    for (int64_t end; n > 0; n -= end, x += end, dx += dx ? end : 0) {
        vec sum = v_set1(0);
        end = mg_min(n, ENTROPY_RUN);
        for (int64_t i = 0; i < end; i += LANES) {
            int64_t used = mg_min(end - i, LANES);
            vec v = R(reduce_load)(x + i, used) + v_set1(base), term = v_set1(scale), by = v;
            MG_ANEW(dx); /* one loop, not several */
            if (dx) by += v;
            else term = v;
            MG_ANEW(square);
            if (square) term *= by;
            term = R(reduce_choose)(~(v <= 0) & R(reduce_used)(used), term, v_set1(0));
            if (dx) R(reduce_store)(dx + i, term, used);
            sum += term;
        }
        all += (double)R(reduce_across)(REDUCE_SUM, sum);
    }
    return all;
}

MG_PLANNING
/* The same of a strip of columns. */
static void R(entropy_rests)(real *rest, const real *x, const real *w, int64_t stride, int64_t n,
                             int64_t width, const real *m, const real *log_s) {
    const reduce_plan columns = {.columns = true, .n = n, .stride = stride, .run_x = 1, .run_y = 1,
                                 .run_c = 1};
    if (!w && n <= REDUCE_ROWS) {
        mg_reduce_piece(REDUCE_DEVIATION, REAL_DTYPE, &columns, rest, NULL, x, width, n, m);
        for (int64_t j = 0; j < width; j++) rest[j] = REAL_C(n) * log_s[j] - rest[j];
        return;
    }
    for (int64_t j = 0; j < width; j++) {
        double sum = 0;
        for (int64_t i = 0; i < n; i++)
            sum += (double)R(entropy_product)(R(entropy_weight)(w, i),
                                              log_s[j] - (x[i * stride + j] - m[j]));
        rest[j] = (real)sum;
    }
}

/* The losses of `rows` rows, and m and s of each; where they are columns, of a strip. */
static void R(entropy_rows)(const entropy_job *job, int64_t first, int64_t rows) {
    int64_t n = job->n, stride = job->inner, step = stride > 1 ? 1 : n;
    const real *w = (const real *)job->w, *x = (const real *)job->x + entropy_at(job, first);
    real *losses = (real *)job->out + first, *m = (real *)job->stats + first, *s = m + job->rows;
    real kept = REAL_C(1 - job->smoothing), spread = REAL_C(job->smoothing / (double)n);
    bool together = entropy_is_short(job), known = together || stride > 1;
    if (stride > 1) R(entropy_columns)(x, stride, n, rows, m, s);
    else if (together) R(entropy_sums)(x, rows, n, m, s);
    for (int64_t r = 0; r < rows && !(known && job->ignored == 0); r++) {
        if (job->target[first + r] == job->ignore) m[r] = s[r] = 0;
        else if (!known) R(entropy_sum)(x + r * n, n, &m[r], &s[r]);
    }
    R(v_log_any)(losses, s, rows);
    real rests[REDUCE_STRIP];
    if (stride > 1 && spread != 0) R(entropy_rests)(rests, x, w, stride, n, rows, m, losses);
    for (int64_t r = 0; r < rows; r++, x += step) {
        int64_t t = job->target[first + r];
        real log_s = losses[r];
        losses[r] = 0;
        if (t == job->ignore) continue;
        losses[r] =
            R(entropy_product)(kept * R(entropy_weight)(w, t), log_s - (x[t * stride] - m[r]));
        if (spread == 0) continue;
        losses[r] += spread * (stride > 1 ? rests[r] : (real)R(entropy_rest)(x, w, n, m[r], log_s));
    }
}

/* Of logarithms of probabilities what is picked; or, given g, zeros but for its gradient. */
static void R(entropy_logs)(const entropy_job *job, int64_t first, int64_t rows) {
    int64_t n = job->n, stride = job->inner, step = stride > 1 ? 1 : n;
    int64_t at = entropy_at(job, first), lines = stride > 1 ? n : 1;
    const real *w = (const real *)job->w, *x = (const real *)job->x + at, *g = (const real *)job->g;
    real *out = (real *)job->out + (g ? at : first), share = g ? g[0] / REAL_C(job->total) : 0;
    for (int64_t i = 0; g && i < lines; i++)
        memset(out + i * stride, 0, (size_t)(rows * step) * sizeof(real));
    for (int64_t r = 0; r < rows; r++) {
        int64_t t = job->target[first + r];
        bool counts = t != job->ignore;
        int64_t place = counts ? r * step + t * stride : 0;
        real by = counts ? R(entropy_weight)(w, t) : 0;
        if (!g) out[r] = R(entropy_product)(by, counts ? -x[place] : 0);
        else if (counts)
            out[place] -= R(entropy_product)(job->each ? g[first + r] : share, by);
    }
}

/* With p for softmax(x) and q for the target's share in each class, dx = scale (p sum(q) - q). */
static void R(entropy_rows_back)(const entropy_job *job, int64_t first, int64_t rows) {
    int64_t n = job->n, stride = job->inner, at = entropy_at(job, first);
    const real *w = (const real *)job->w, *x = (const real *)job->x + at;
    const real *m = (const real *)job->stats + first, *s = m + job->rows, *g = (const real *)job->g;
    real *dx = (real *)job->out + at;
    real kept = REAL_C(1 - job->smoothing), spread = REAL_C(job->smoothing / (double)n);
    real share = g[0] / REAL_C(job->total);
    bool together = entropy_is_short(job), columns = stride > 1;
    int64_t most = columns ? rows : together ? REDUCE_STRIP / n : 1, end = first + rows;
    for (int64_t some; first < end; first += some, m += some, s += some) {
        real scale[REDUCE_STRIP], by_p[REDUCE_STRIP];
        some = mg_min(end - first, most);
        scale[0] = 0;
        for (int64_t r = 0; r < some; r++) {
            int64_t t = job->target[first + r];
            bool counts = t != job->ignore;
            scale[r] = !counts ? 0 : job->each ? g[first + r] : share; /* whose total is 1 */
            real right = counts ? kept * R(entropy_weight)(w, t) : 0;
            by_p[r] = scale[r] * (right + spread * REAL_C(job->weights));
        }
        for (int64_t r = 0; r < some; r += LANES) {
            int64_t used = mg_min(some - r, LANES);
            vec by = R(reduce_load)(by_p + r, used), p = by / R(reduce_load)(s + r, used);
            R(reduce_store)(by_p + r, R(reduce_choose)(by == 0, v_set1(0), p), used);
        }
        if (columns)
            for (int64_t i = 0; i < n; i++)
                R(entropy_row_by)(dx + i * stride, x + i * stride, m, by_p, some);
        else if (together) R(entropy_exps_by)(dx, x, some, n, m, by_p);
        else if (scale[0] != 0) R(entropy_exp_by)(dx, x, n, m[0], by_p[0]);
        for (int64_t r = 0; r < some; r++) {
            real *line = dx + (columns ? r : r * n);
            int64_t t = job->target[first + r];
            if (scale[r] == 0) {
                if (!columns) memset(line, 0, (size_t)n * sizeof(real));
                continue;
            }
            line[t * stride] -= scale[r] * (kept * R(entropy_weight)(w, t));
            if (spread != 0 && !columns) R(entropy_less)(line, w, scale[r] * spread, n);
        }
        for (int64_t i = 0; i < n && spread != 0 && columns; i++)
            R(entropy_less)(dx + i * stride, scale, spread * R(entropy_weight)(w, i), some);
        x += some * n;
        dx += some * n;
    }
}

/* Of each row how far its scores, but for the right one, come above that less the margin; or, given g,
 * the gradient. */
static void R(entropy_margins)(const entropy_job *job, int64_t first, int64_t rows) {
    int64_t n = job->n;
    bool square = job->kind == MG_OF_SQUARES;
    const real *x = (const real *)job->x + first * n, *g = (const real *)job->g;
    real *out = (real *)job->out + first * (g ? n : 1);
    for (int64_t r = first; r < first + rows; r++, x += n, out += g ? n : 1) {
        int64_t t = job->target[r];
        real base = REAL_C(job->margin) - x[t], share = R(entropy_weight)((const real *)job->w, t);
        share /= REAL_C(n);
        real scale = g ? (job->each ? g[r] : g[0]) / REAL_C(job->total) * share : 0;
        if (g && scale == 0) {
            memset(out, 0, (size_t)n * sizeof(real));
            continue;
        }
        double sum = R(entropy_excess)(g ? out : NULL, x, t, base, scale, square);
        sum += R(entropy_excess)(g ? out + t + 1 : NULL, x + t + 1, n - t - 1, base, scale, square);
        out[g ? t : 0] = g ? -(real)sum : R(entropy_product)(share, (real)sum);
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
MG_PLANNING_END
