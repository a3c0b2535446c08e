/* resample.c: interpolation along an axis, and its transpose.
 *
 * Each result is a weighted sum of two or four elements, with given indices and weights.
 */
#include "kernels/iterate/contiguous.h"
#include "memory/array.h"
#include "threads/pool.h"
#include "kernels/reduce/reduce.h"

#include <string.h>

enum {
    RESAMPLE_MOST = 4,
    RESAMPLE_ROWS = 4,     /* rows at once, if the axis is last: sums do not wait */
};

/* The axis has n elements on the side of the indices, and m on the side of the sums. */
typedef struct {
    int64_t outer, n, m, inner;
    int64_t parts, per_block; /* pieces of the inner axes; parts or rows in a block */
    int count;
    bool narrow, back;
    const int64_t *place[RESAMPLE_MOST];
    const char *weight[RESAMPLE_MOST], *from;
    char *to;
} resample_job;

#define MG_REAL 32
#include "resample.inc.c"
#define MG_REAL 64
#include "resample.inc.c"

static void resample_block(void *context, int64_t block) {
    const resample_job *job = context;
    bool rows = job->inner == 1;
    int64_t all = rows ? job->outer : job->outer * job->parts;
    int64_t end = mg_min((block + 1) * job->per_block, all);
    for (int64_t i = block * job->per_block, some; i < end; i += some) {
        some = rows ? mg_min(end - i, RESAMPLE_ROWS) : 1;
        if (rows) (job->narrow ? resample_rows_f32 : resample_rows_f64)(job, i, some);
        else (job->narrow ? resample_part_f32 : resample_part_f64)(job, i / job->parts, i % job->parts);
    }
}

/* Runs mg_resample or its transpose. The result has `n` elements on the axis. */
static mg_array *resample_run(mg_array *x, bool back, int axis, int64_t n, int count, mg_array **places,
                         mg_array **weights) {
    if (!mg_is_float(x->dtype)) return mg_fail(MG_EDTYPE, x->dtype, 0);
    if (axis < 0 || axis >= x->ndim) return mg_fail(MG_EAXIS, axis, x->ndim);
    if (count < 1 || count > RESAMPLE_MOST) return mg_fail(MG_EARG, count, RESAMPLE_MOST);
    int64_t shape[MG_MAX_NDIM], least = back ? n : x->shape[axis], m = back ? x->shape[axis] : n;
    resample_job job = {.outer = 1, .n = least, .m = m, .inner = 1, .count = count, .back = back};
    for (int d = 0; d < x->ndim; d++) {
        shape[d] = d == axis ? n : x->shape[d];
        if (d != axis) *(d < axis ? &job.outer : &job.inner) *= shape[d];
    }
    for (int k = 0; k < count; k++) {
        if (places[k]->dtype != MG_INT64 || weights[k]->dtype != x->dtype)
            return mg_fail(MG_EDTYPE, places[k]->dtype, weights[k]->dtype);
        if (places[k]->size != m || weights[k]->size != m || !mg_is_contiguous(places[k]) ||
            !mg_is_contiguous(weights[k]))
            return mg_fail(MG_ESHAPE, places[k]->size, m);
        job.place[k] = (const int64_t *)places[k]->data;
        job.weight[k] = weights[k]->data;
        for (int64_t i = 0; i < m; i++)
            if (job.place[k][i] < 0 || job.place[k][i] >= least)
                return mg_fail(MG_EINDEX, job.place[k][i], least);
    }
    mg_array *y = mg_new(x->dtype, x->ndim, shape), *from = y ? mg_contiguous(x) : NULL;
    if (y && y->size && from) {
        int64_t wide = mg_min(job.inner, RESAMPLE_WIDTH) * mg_max(m, least);
        bool rows = job.inner == 1;
        job.parts = mg_ceil_div(job.inner, RESAMPLE_WIDTH);
        job.per_block = mg_max(RESAMPLE_GRAIN / mg_max(wide, 1), rows ? RESAMPLE_ROWS : 1);
        job.narrow = x->dtype == MG_FLOAT32;
        job.from = from->data;
        job.to = y->data;
        int64_t all = job.outer * job.parts;
        mg_parallel_if(all * wide >= 3 * RESAMPLE_GRAIN, mg_ceil_div(all, job.per_block), resample_block, &job);
    }
    if (!from) {
        mg_release(y);
        return NULL;
    }
    mg_release(from);
    return y;
}

mg_array *mg_resample(mg_array *x, int axis, int count, mg_array **places, mg_array **weights) {
    return resample_run(x, false, axis, count > 0 ? places[0]->size : 0, count, places, weights);
}

mg_array *mg_resample_vjp(mg_array *x, int axis, int64_t n, int count, mg_array **places,
                   mg_array **weights) {
    return resample_run(x, true, axis, n, count, places, weights);
}

