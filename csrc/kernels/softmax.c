/* softmax.c: softmax and log_softmax along one axis, and their gradients, for floats.
 *
 * A line whose maximum is NaN or infinite comes out as NaN, except that log_softmax and softmax
 * take any number of -inf beside a finite maximum: there the results are -inf and 0. */
#include "../threads/pool.h"
#include "reduce.h"

enum softmax_op { SOFTMAX_FORWARD, SOFTMAX_BACKWARD, LOG_SOFTMAX_FORWARD, LOG_SOFTMAX_BACKWARD };

enum {
    SOFTMAX_STRIP = 256, /* lines side by side, at most */
    SOFTMAX_WORK = REDUCE_LANES + REDUCE_ALL_LEVELS + 2
};

#define MG_REAL 32
#include "softmax.inc.c"
#define MG_REAL 64
#include "softmax.inc.c"

typedef struct {
    int op, dtype;
    int64_t itemsize, outer, n, inner;
    char *out;
    const char *a, *b;
    int64_t strip, strips; /* lines done together, and how many such there are in all or in a row */
} softmax_job;

static void softmax_block(void *context, int64_t block) {
    const softmax_job *job = context;
    bool rows = job->inner == 1;
    int64_t first = block % job->strips * job->strip, outer = block / job->strips;
    int64_t width = mg_min(job->strip, (rows ? job->outer : job->inner) - first);
    int64_t at = (outer * job->n * job->inner + first * (rows ? job->n : 1)) * job->itemsize;
    const char *a = job->a + at, *b = job->b + at;
    char *out = job->out + at;
    if (rows)
        (job->dtype == MG_FLOAT32 ? softmax_rows_f32 : softmax_rows_f64)(job->op, out, a, b, width,
                                                                        job->n);
    else
        (job->dtype == MG_FLOAT32 ? softmax_columns_f32 : softmax_columns_f64)(
            job->op, out, a, b, job->inner, job->n, width);
}

/* b is NULL for a forward op. */
static mg_array *softmax_run(int op, mg_array *a, mg_array *b, int axis) {
    uint32_t mask;
    if (!mg_is_float(a->dtype)) return mg_fail(MG_EDTYPE, a->dtype, 0);
    if (b && b->dtype != a->dtype) return mg_fail(MG_EDTYPE, a->dtype, b->dtype);
    if (b && b->ndim != a->ndim) return mg_fail(MG_ESHAPE, a->ndim, b->ndim);
    for (int d = 0; b && d < a->ndim; d++)
        if (a->shape[d] != b->shape[d]) return mg_fail(MG_ESHAPE, a->shape[d], b->shape[d]);
    if (mg_axes_mask(a->ndim, 1, (int32_t[]){axis}, &mask)) return NULL;
    mg_array *y = mg_new(a->dtype, a->ndim, a->shape);
    if (!y || y->size == 0) return y;
    mg_array *from_a = mg_contiguous(a), *from_b = from_a && b ? mg_contiguous(b) : NULL;
    if (!from_a || (b && !from_b)) {
        mg_release(from_a);
        mg_release(y);
        return NULL;
    }
    softmax_job job = {.op = op, .dtype = a->dtype, .itemsize = mg_itemsize(a->dtype)};
    job.outer = job.n = job.inner = 1;
    for (int d = 0; d < a->ndim; d++)
        *(mask >> d == 1 ? &job.n : mask >> d ? &job.outer : &job.inner) *= a->shape[d];
    job.out = y->data;
    job.a = from_a->data;
    job.b = b ? from_b->data : job.a;
    bool rows = job.inner == 1;
    job.strip = rows ? mg_max(REDUCE_GRAIN / job.n, 1) : SOFTMAX_STRIP;
    job.strips = mg_ceil_div(rows ? job.outer : job.inner, job.strip);
    int64_t blocks = rows ? job.strips : job.strips * job.outer;
    if (y->size >= REDUCE_PARALLEL) mg_parallel_for(blocks, softmax_block, &job);
    else
        for (int64_t block = 0; block < blocks; block++) softmax_block(&job, block);
    mg_release(from_b);
    mg_release(from_a);
    return y;
}

mg_array *mg_softmax(mg_array *x, int axis) { return softmax_run(SOFTMAX_FORWARD, x, NULL, axis); }

mg_array *mg_softmax_vjp(mg_array *g, mg_array *y, int axis) {
    return softmax_run(SOFTMAX_BACKWARD, g, y, axis);
}

mg_array *mg_log_softmax(mg_array *x, int axis) {
    return softmax_run(LOG_SOFTMAX_FORWARD, x, NULL, axis);
}

mg_array *mg_log_softmax_vjp(mg_array *g, mg_array *y, int axis) {
    return softmax_run(LOG_SOFTMAX_BACKWARD, g, y, axis);
}
