/* resample.inc.c: the loops of interpolation; a template for each float width. */
#include "simd/real.h"

/* to = a from, or if `adds` to += a from. */
static MG_NOINLINE void R(resample_add)(bool adds, real *restrict to, const real *restrict from, real a,
                                   int64_t n) {
    for (int64_t j = 0; j < n; j += LANES) {
        int64_t used = mg_min(n - j, LANES);
        vec v = v_set1(a) * R(reduce_load)(from + j, used);
        MG_ANEW(adds); /* one loop, not two */
        if (adds) v += R(reduce_load)(to + j, used);
        R(reduce_store)(to + j, v, used);
    }
}

/* Interpolates up to RESAMPLE_WIDTH neighbours on the axes after this one. */
static void R(resample_part)(const resample_job *job, int64_t outer, int64_t part) {
    int64_t n = job->n, m = job->m, inner = job->inner, at = part * RESAMPLE_WIDTH;
    int64_t width = mg_min(inner - at, RESAMPLE_WIDTH);
    const real *from = (const real *)job->from + outer * (job->back ? m : n) * inner + at;
    real *to = (real *)job->to + outer * (job->back ? n : m) * inner + at;
    for (int64_t i = 0; job->back && i < n; i++)
        memset(to + i * inner, 0, (size_t)width * sizeof(real));
    for (int64_t i = 0; i < m; i++) {
        bool adds = job->back;
        for (int k = 0; k < job->count; k++) {
            int64_t place = job->place[k][i];
            real w = ((const real *)job->weight[k])[i];
            if (w == 0) continue;
            R(resample_add)(adds, to + (job->back ? place : i) * inner,
                       from + (job->back ? i : place) * inner, w, width);
            adds = true;
        }
        if (!adds) memset(to + i * inner, 0, (size_t)width * sizeof(real));
    }
}

/* Interpolates `rows` rows along this axis, the last one. */
MG_INLINE void R(resample_rows_of)(const resample_job *job, int count, bool back, int64_t first, int64_t rows) {
    int64_t n = job->n, m = job->m;
    const real *from = (const real *)job->from + first * (back ? m : n);
    real *to = (real *)job->to + first * (back ? n : m);
    if (back) memset(to, 0, (size_t)(rows * n) * sizeof(real));
    for (int64_t i = 0; i < m; i++) {
        MG_AS_IT_IS;
        for (int k = 0; k < count; k++) {
            int64_t place = job->place[k][i], take = back ? i : place, put = back ? place : i;
            real w = ((const real *)job->weight[k])[i];
            for (int64_t r = 0; r < rows; r++) {
                real term = w == 0 ? 0 : w * from[take + r * (back ? m : n)];
                real *at = to + put + r * (back ? n : m);
                *at = back || k ? *at + term : term;
            }
        }
    }
}
static void R(resample_rows_any)(const resample_job *job, int64_t first, int64_t rows) {
    R(resample_rows_of)(job, job->count, job->back, first, rows);
}

static void R(resample_rows)(const resample_job *job, int64_t first, int64_t rows) {
    if (rows < RESAMPLE_ROWS || job->count != 2) R(resample_rows_any)(job, first, rows);
    else if (job->back) R(resample_rows_of)(job, 2, true, first, RESAMPLE_ROWS);
    else R(resample_rows_of)(job, 2, false, first, RESAMPLE_ROWS);
}
