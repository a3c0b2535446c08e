/* cross_entropy.inc.c: the rows of cross_entropy.c in one float width. */
#include "real.h"

typedef ireal R(entropy_mask) __attribute__((vector_size(MG_VECTOR_BYTES)));

/* The largest of n elements; NaN wins. */
static MG_NOINLINE real R(entropy_max)(const real *x, int64_t n) {
    vec most = v_set1(x[0]);
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        vec v = v_load(x + i);
        R(entropy_mask) beyond = (v > most) | (v != v);
        most = (vec)((beyond & (R(entropy_mask))v) | (~beyond & (R(entropy_mask))most));
    }
    real m = most[0];
    for (int k = 1; k < LANES; k++) m = most[k] > m || most[k] != most[k] ? most[k] : m;
    for (; i < n; i++) m = x[i] > m || x[i] != x[i] ? x[i] : m;
    return m;
}

/* out = exp(x - m), n <= ENTROPY_BLOCK; the sum. */
static MG_NOINLINE real R(entropy_exp)(real *restrict out, const real *restrict x, int64_t n,
                                       real m) {
    real apart[ENTROPY_BLOCK];
    vec sum[4] = {0}, less = v_set1(m);
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES) v_store(apart + i, v_load(x + i) - less);
    for (; i < n; i++) apart[i] = x[i] - m;
    R(v_exp_any)(out, apart, n);
    for (i = 0; i + 4 * LANES <= n; i += 4 * LANES)
        for (int p = 0; p < 4; p++) sum[p] += v_load(out + i + p * LANES);
    vec all = (sum[0] + sum[1]) + (sum[2] + sum[3]);
    real total = 0;
    for (; i < n; i++) total += out[i];
    for (int k = 0; k < LANES; k++) total += all[k];
    return total;
}

/* The largest element m, and the sum of exp(x - m); both NaN where the largest is infinite. */
static void R(entropy_sum)(const real *x, int64_t n, real *m, real *s) {
    real terms[ENTROPY_BLOCK], most = x[0];
    double sum = 0;
    for (int64_t i = 0; i < n; i += ENTROPY_BLOCK) {
        int64_t count = mg_min(n - i, ENTROPY_BLOCK);
        real here = R(entropy_max)(x + i, count);
        if (here > most || here != here) {
            if (sum != 0) sum *= v_exp_f64((double)most - (double)here);
            most = here;
        }
        if (most - most == 0) sum += (double)R(entropy_exp)(terms, x + i, count, most);
    }
    *m = most - most == 0 ? most : REAL_C(NAN);
    *s = most - most == 0 ? (real)sum : REAL_C(NAN);
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
    for (int64_t r = 0; r < rows; r++, x += n) {
        int64_t t = job->target[first + r];
        losses[r] = m[r] = s[r] = 0;
        if (t == job->ignore) continue;
        R(entropy_sum)(x, n, &m[r], &s[r]);
        real log_s = R(v_log)(s[r]), wt = R(entropy_weight)(w, t);
        losses[r] = R(entropy_product)(kept * wt, log_s - (x[t] - m[r]));
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
    for (int64_t r = 0; r < rows; r++, x += n, dx += n) {
        int64_t t = job->target[first + r];
        real scale = (job->each ? g[first + r] : g[0]) / REAL_C(job->total);
        if (t == job->ignore || scale == 0) {
            memset(dx, 0, (size_t)n * sizeof(real));
            continue;
        }
        real right = kept * R(entropy_weight)(w, t);
        real by_p = scale * (right + spread * REAL_C(job->weights)) / s[r];
        for (int64_t i = 0; i < n; i += ENTROPY_BLOCK) {
            int64_t count = mg_min(n - i, ENTROPY_BLOCK), j = i;
            R(entropy_exp)(dx + i, x + i, count, m[r]);
            vec factor = v_set1(by_p);
            for (; j + LANES <= i + count; j += LANES) {
                vec p = v_load(dx + j);
                v_store(dx + j, (vec)((R(entropy_mask))(p * factor) & (p != 0)));
            }
            for (; j < i + count; j++) dx[j] = R(entropy_product)(dx[j], by_p);
        }
        dx[t] -= scale * right;
        for (int64_t i = 0; i < n && spread != 0; i++)
            dx[i] -= scale * (spread * R(entropy_weight)(w, i));
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
