/* cross_entropy.inc.c: the loops of cross_entropy.c; a template for each float width. */
#include "simd/real.h"

/* The maximum of n > 0 elements, NaN left out. -inf if there is no other element. */
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

/* dx = e^(x - m) factor for n elements that are at most m, and 0 where the power is 0. Prefetches
 * the elements that follow. */
static MG_NOINLINE void R(entropy_exp_by)(real *restrict dx, const real *restrict x, int64_t n,
                                          real m, real factor) {
#if MG_HAS_WIDE
    enum { WIDE = WIDE_VECTORS * LANES };
    R(wide) centre = R(w_set)(m);
    int64_t ahead = mg_min(n, ENTROPY_BLOCK);
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
        for (int k = 0; k < WIDE_VECTORS; k++) {
            vec p = e.v[k];
            e.v[k] = R(reduce_choose)(p != 0, p * v_set1(factor), p);
        }
        R(w_store)(whole ? dx + i : part, e);
        if (!whole) memcpy(dx + i, part, (size_t)(n - i) * sizeof(real));
    }
#else
    for (int64_t i = 0; i < n; i++) dx[i] = R(v_exp_below)(x[i] - m);
    for (int64_t i = 0; i < n; i++) dx[i] = dx[i] == 0 ? 0 : dx[i] * factor;
#endif
}

/* The sum of n <= REDUCE_ROWS terms, in the tree order of column sums. Prefetches the elements that
 * lie `ahead` further on. */
MG_INLINE real R(entropy_tree)(int kind, const real *x, int64_t n, real centre, int64_t ahead) {
    real part[REDUCE_ROWS / REDUCE_BLOCK] = {0};
    int64_t blocks = 0;
    for (int64_t i = 0; i < n; i += REDUCE_BLOCK) {
        for (int k = 0; k < REDUCE_BLOCK && ahead; k += 64 / (int)sizeof(real))
            __builtin_prefetch(x + i + ahead + k);
        part[blocks++] =
            R(reduce_row_block)(kind, x + i, mg_min(n - i, REDUCE_BLOCK), &centre);
    }
    for (int64_t pairs; blocks > 1; blocks -= pairs) {
        pairs = blocks / 2;
        for (int64_t i = 0; i < pairs; i++) part[i] = part[2 * i] + part[2 * i + 1];
        if (blocks & 1) part[pairs] = part[blocks - 1];
    }
    return part[0];
}

#if MG_HAS_WIDE
/* The same for the exponentials of REDUCE_ROWS elements. Their blocks are folded together. */
static MG_NOINLINE real R(entropy_exp_run)(const real *x, real m, int64_t ahead) {
    enum {
        WIDE = WIDE_VECTORS * LANES,
        STEP = WIDE > REDUCE_LANES ? WIDE : REDUCE_LANES,
        PARTS = REDUCE_LANES / LANES,
        BLOCKS = REDUCE_ROWS / REDUCE_BLOCK
    };
    vec b[BLOCKS];
    MG_ROLLED
    for (int k = 0; k < BLOCKS; k++) {
        vec lanes[PARTS];
        for (int p = 0; p < PARTS; p++) lanes[p] = v_set1(0);
        MG_ROLLED
        for (int done = 0; done < REDUCE_BLOCK; done += STEP, x += STEP)
            MG_UNROLL
            for (int at = 0; at < STEP; at += WIDE) {
                for (int f = 0; f < WIDE; f += 64 / (int)sizeof(real))
                    __builtin_prefetch(x + at + ahead + f);
                R(wide) e = R(w_exp_below)(R(w_sub)(R(w_load)(x + at), R(w_set)(m)));
                MG_UNROLL
                for (int v = 0; v < WIDE_VECTORS; v++) lanes[(at / LANES + v) % PARTS] += e.v[v];
            }
        for (int half = PARTS / 2; half > 0; half /= 2)
            MG_UNROLL
            for (int p = 0; p < half; p++) lanes[p] += lanes[p + half];
        b[k] = lanes[0];
    }
    for (int pairs = BLOCKS / 2; pairs > 0; pairs /= 2)
        for (int i = 0; i < pairs; i++)
            b[i] = R(reduce_fold_two)(REDUCE_SUM, b[2 * i], b[2 * i + 1]);
    return R(reduce_across)(REDUCE_SUM, b[0]);
}
#endif
static MG_NOINLINE real R(entropy_exp_sum)(const real *x, int64_t n, real m, int64_t ahead) {
#if MG_HAS_WIDE
    if (n == REDUCE_ROWS) return R(entropy_exp_run)(x, m, ahead);
#endif
    return R(entropy_tree)(REDUCE_SUMEXP, x, n, m, ahead);
}
static MG_NOINLINE real R(entropy_deviation)(const real *x, int64_t n, real m) {
    return R(entropy_tree)(REDUCE_DEVIATION, x, n, m, 0);
}

/* Raises a line's maximum *most to `here`, if that is larger, and rescales its sum of
 * exponentials. Returns the centre of the exponentials to come. A block of -inf adds nothing,
 * unless it has NaN. */
MG_INLINE real R(entropy_rise)(real here, real *most, double *sum) {
    if (here > *most) {
        if (*sum != 0) *sum *= v_exp_f64((double)*most - (double)here);
        *most = here;
    }
    return *most - *most == 0 ? *most : 0;
}

/* Stores the maximum and the sum, or NaN for both. */
MG_INLINE void R(entropy_found)(real most, double sum, real *m, real *s) {
    bool finite = most - most == 0 && sum == sum;
    *m = finite ? most : REAL_C(NAN);
    *s = finite ? (real)sum : REAL_C(NAN);
}

/* The maximum m of n elements, and the sum s of exp(x - m). Both are NaN if an element is NaN or
 * the maximum is infinite. */
static void R(entropy_sum)(const real *x, int64_t n, real *m, real *s) {
    real most = REAL_C(-INFINITY);
    double sum = 0;
    for (int64_t i = 0; i < n; i += ENTROPY_BLOCK) {
        int64_t count = mg_min(n - i, ENTROPY_BLOCK);
        real centre = R(entropy_rise)(R(entropy_max)(x + i, count), &most, &sum);
        for (int64_t j = 0; j < count; j += REDUCE_ROWS)
            sum += (double)R(entropy_exp_sum)(x + i + j, mg_min(count - j, REDUCE_ROWS), centre,
                                              count);
    }
    R(entropy_found)(most, sum, m, s);
}

/* to[r * n + j] = v[r] */
static MG_NOINLINE void R(entropy_repeat)(real *restrict to, const real *restrict v, int64_t rows,
                                          int64_t n) {
    for (int64_t r = 0; r < rows; r++, to += n)
        for (int64_t j = 0; j < n; j++) to[j] = v[r];
}

/* As entropy_sum, for rows of which several fit a strip. Their exponentials are computed
 * together. */
static MG_NOINLINE void R(entropy_sums)(const real *x, int64_t rows, int64_t n, real *m, real *s) {
    real centre[REDUCE_STRIP], e[REDUCE_STRIP];
    for (int64_t some; rows > 0; rows -= some, x += some * n, m += some, s += some) {
        some = mg_min(rows, REDUCE_STRIP / n);
        for (int64_t r = 0; r < some; r++) m[r] = R(entropy_max)(x + r * n, n);
        R(entropy_repeat)(centre, m, some, n);
        R(mg_reduce_exp)(false, e, x, centre, some * n);
        for (int64_t r = 0; r < some; r++) {
            s[r] = n <= LANES /* the same bits without a block */
                       ? R(reduce_across)(REDUCE_SUM, v_load_n(e + r * n, (int)n))
                       : R(reduce_row_block)(REDUCE_SUM, e + r * n, n, NULL);
            if (m[r] - m[r] != 0 || s[r] != s[r]) m[r] = s[r] = REAL_C(NAN);
        }
    }
}

/* dx[r * n + j] = e^(x - m[r]) factor[r], 0 where power or factor is 0, for rows that fit a
 * strip. */
static MG_NOINLINE void R(entropy_exps_by)(real *restrict dx, const real *restrict x, int64_t rows,
                                           int64_t n, const real *m, const real *factor) {
    real many[REDUCE_STRIP];
    R(entropy_repeat)(many, m, rows, n);
    R(mg_reduce_exp)(false, dx, x, many, rows * n);
    R(entropy_repeat)(many, factor, rows, n);
    for (int64_t i = 0; i < rows * n; i++)
        dx[i] = (dx[i] == 0) | (many[i] == 0) ? 0 : dx[i] * many[i];
}

/* As entropy_sum, for at most REDUCE_STRIP neighbouring columns of n elements. */
static void R(entropy_columns)(const real *x, int64_t stride, int64_t n, int64_t width, real *m,
                               real *s) {
    const reduce_plan columns = {.columns = true, .stride = stride, .run_x = 1, .run_y = 1,
                                 .run_c = 1};
    if (n <= REDUCE_ROWS) {
        mg_reduce_piece(REDUCE_MAX, REAL_DTYPE, &columns, m, NULL, x, width, n, NULL);
        mg_reduce_piece(REDUCE_SUMEXP, REAL_DTYPE, &columns, s, NULL, x, width, n, m);
        for (int64_t j = 0; j < width; j += LANES) {
            int64_t used = mg_min(width - j, LANES);
            vec most = R(reduce_load)(m + j, used), sum = R(reduce_load)(s + j, used);
            vec bad = (most - most) + (sum - sum); /* NaN unless both are finite */
            R(reduce_store)(m + j, most + bad, used);
            R(reduce_store)(s + j, sum + bad, used);
        }
        return;
    }
    real here[REDUCE_STRIP], part[REDUCE_STRIP];
    double sum[REDUCE_STRIP];
    for (int64_t j = 0; j < width; j++) m[j] = REAL_C(-INFINITY), sum[j] = 0;
    for (int64_t i = 0; i < n; i += ENTROPY_BLOCK) {
        int64_t count = mg_min(n - i, ENTROPY_BLOCK);
        for (int64_t k = 0; k < count; k += REDUCE_ROWS) {
            mg_reduce_piece(REDUCE_MAX, REAL_DTYPE, &columns, k ? part : here, NULL,
                            x + (i + k) * stride, width, mg_min(count - k, REDUCE_ROWS), NULL);
            for (int64_t j = 0; j < width && k; j++)
                here[j] = R(reduce_join)(REDUCE_MAX, here[j], part[j]);
        }
        for (int64_t j = 0; j < width; j++) here[j] = R(entropy_rise)(here[j], &m[j], &sum[j]);
        for (int64_t k = 0; k < count; k += REDUCE_ROWS) {
            mg_reduce_piece(REDUCE_SUMEXP, REAL_DTYPE, &columns, part, NULL, x + (i + k) * stride,
                            width, mg_min(count - k, REDUCE_ROWS), here);
            for (int64_t j = 0; j < width; j++) sum[j] += (double)part[j];
        }
    }
    for (int64_t j = 0; j < width; j++) R(entropy_found)(m[j], sum[j], &m[j], &s[j]);
}

/* dx = e^(x - m) factor for a row of `width` columns, 0 where the power or the factor is 0. */
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

/* dx -= a b, or dx -= b without a. Nothing changes where a or b is 0. */
static MG_NOINLINE void R(entropy_less)(real *restrict dx, const real *restrict a, real b, int64_t n) {
    for (int64_t i = 0; i < n && b != 0; i += LANES) {
        int64_t used = mg_min(n - i, LANES);
        vec by = a ? R(reduce_load)(a + i, used) : v_set1(1);
        by = R(reduce_choose)(by == 0, by, by * v_set1(b));
        R(reduce_store)(dx + i, R(reduce_load)(dx + i, used) - by, used);
    }
}

/* w[t], or 1 */
MG_INLINE real R(entropy_weight)(const real *w, int64_t t) { return w ? w[t] : 1; }

/* a b, or 0 where a is 0 */
MG_INLINE real R(entropy_product)(real a, real b) { return a == 0 ? 0 : a * b; }

/* The sum of w (log_s - (x - m)) over n contiguous classes of a row. */
static MG_NOINLINE double R(entropy_weighed)(const real *x, const real *w, int64_t n, real m,
                                             real log_s) {
    vec sum = v_set1(0);
    for (int64_t i = 0; i < n; i += LANES) {
        int64_t used = mg_min(n - i, LANES);
        vec by = R(reduce_load)(w + i, used);
        vec loss = by * (v_set1(log_s) - (R(reduce_load)(x + i, used) - v_set1(m)));
        sum += R(reduce_choose)((by != 0) & R(reduce_used)(used), loss, v_set1(0));
    }
    return (double)R(reduce_across)(REDUCE_SUM, sum);
}

/* The same without weights, from the sum of x - m. */
MG_INLINE real R(entropy_even)(int64_t n, real log_s, double deviation) {
    return (real)((double)n * (double)log_s - deviation);
}

/* The same for a whole row, whose elements lie `stride` apart. All layouts give the same bits. */
static MG_NOINLINE real R(entropy_rest)(const real *x, int64_t stride, const real *w, int64_t n,
                                        real m, real log_s) {
    double all = 0;
    for (int64_t i = 0; i < n; i += REDUCE_ROWS) {
        real run[REDUCE_ROWS];
        int64_t count = mg_min(n - i, REDUCE_ROWS);
        for (int64_t k = 0; k < count && stride > 1; k++) run[k] = x[(i + k) * stride];
        const real *from = stride > 1 ? run : x + i;
        all += w ? R(entropy_weighed)(from, w + i, count, m, log_s)
                 : (double)R(entropy_deviation)(from, count, m);
    }
    return w ? (real)all : R(entropy_even)(n, log_s, all);
}

/* The sum over n elements x of how far each lies above -base, or if `square` of the squares. Given
 * dx, writes the partials times `scale` there and returns their sum. */
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

/* As entropy_rest, for a strip of columns. */
static void R(entropy_rests)(real *rest, const real *x, const real *w, int64_t stride, int64_t n,
                             int64_t width, const real *m, const real *log_s) {
    const reduce_plan columns = {.columns = true, .n = n, .stride = stride, .run_x = 1, .run_y = 1,
                                 .run_c = 1};
    if (!w && n <= REDUCE_ROWS) {
        mg_reduce_piece(REDUCE_DEVIATION, REAL_DTYPE, &columns, rest, NULL, x, width, n, m);
        for (int64_t j = 0; j < width; j++)
            rest[j] = R(entropy_even)(n, log_s[j], (double)rest[j]);
        return;
    }
    for (int64_t j = 0; j < width; j++)
        rest[j] = R(entropy_rest)(x + j, stride, w, n, m[j], log_s[j]);
}

/* Computes the losses of `rows` rows, with m and s of each, or of the columns of a strip. */
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
        losses[r] += spread * (stride > 1 ? rests[r] : R(entropy_rest)(x, 1, w, n, m[r], log_s));
    }
}

/* Picks logarithms of probabilities. Given g, writes the gradient: zeros except at the targets. */
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

/* With p = softmax(x) and q the target's share in each class, dx = scale (p sum(q) - q). */
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
            scale[r] = !counts ? 0 : job->each ? g[first + r] : share; /* shares add up to 1 */
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
        else if (by_p[0] != 0) R(entropy_exp_by)(dx, x, n, m[0], by_p[0]);
        else memset(dx, 0, (size_t)n * sizeof(real));
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
        for (int64_t r = 0; r < some && columns; r++) scale[r] *= spread;
        for (int64_t i = 0; i < n && spread != 0 && columns; i++)
            R(entropy_less)(dx + i * stride, scale, R(entropy_weight)(w, i), some);
        x += some * n;
        dx += some * n;
    }
}

/* For each row, the margin loss over all scores but the target's: how far each lies above the
 * target's score less the margin. Given g, the gradient. */
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

/* The sum of the weights of all targets that count. */
static double R(entropy_total)(const entropy_job *job) {
    double total = 0;
    for (int64_t r = 0; r < job->rows; r++)
        if (job->target[r] != job->ignore)
            total += (double)R(entropy_weight)((const real *)job->w, job->target[r]);
    return total;
}

/* The sum of the weights of all classes. */
static double R(entropy_weights)(const entropy_job *job) {
    double sum = job->w ? 0 : (double)job->n;
    for (int64_t i = 0; i < job->n && job->w; i++) sum += (double)((const real *)job->w)[i];
    return sum;
}
