/* arg.c: argmax and argmin along one axis or over the flattened array. */
#include "threads/pool.h"
#include "reduce.h"

#include <string.h>

/* A long index is cut into segments, so that threads can share it and an index fits 32 bits. */

#define MG_REAL 32
#include "arg.inc.c"
#define MG_REAL 64
#include "arg.inc.c"

typedef struct {
    const reduce_plan *plan;
    int sign, dtype; /* 1 for maxima, -1 for minima, which are maxima of -x */
    int64_t itemsize, kept;
    const char *x;
    char *best;     /* [segment][kept] */
    int64_t *index; /* [segment][kept] */
    int64_t strip, strips, pieces, per_block;
} arg_job;

static void arg_block(void *context, int64_t block) {
    const arg_job *job = context;
    const reduce_plan *p = job->plan;
    int64_t end = mg_min((block + 1) * job->per_block, job->pieces);
    for (int64_t piece = block * job->per_block; piece < end; piece++) {
        int64_t first = piece % job->strips * job->strip, x, y, c;
        int64_t segment = reduce_seek(p, piece / job->strips, first, &x, &y, &c);
        int64_t base = segment * ARG_SEGMENT;
        x += base * p->stride;
        y += segment * job->kept;
        (job->dtype == MG_FLOAT32 ? arg_piece_f32 : arg_piece_f64)(
            job->sign, p, job->best + y * job->itemsize, job->index + y, job->x + x * job->itemsize,
            mg_min(job->strip, p->run - first), mg_min(ARG_SEGMENT, p->n - base), base);
    }
}

/* Stores the indices in y, by the plan. 0 or an error code. */
static int arg_run(int sign, const reduce_plan *p, mg_array *y, const mg_array *x) {
    arg_job job = {.plan = p, .sign = sign, .dtype = x->dtype, .kept = y->size, .x = x->data};
    job.itemsize = mg_itemsize(x->dtype);
    int64_t segments = mg_ceil_div(p->n, ARG_SEGMENT), n = mg_min(p->n, ARG_SEGMENT);
    int64_t results = segments * job.kept;
    size_t capacity, bytes = (size_t)(results * ((int64_t)sizeof(int64_t) + job.itemsize));
    char *scratch = mg_block_take(bytes, &capacity);
    if (!scratch) return mg_fail_code(MG_ENOMEM, (int64_t)bytes, 0);
    job.index = segments > 1 ? (int64_t *)scratch : (int64_t *)y->data;
    job.best = scratch + results * (int64_t)sizeof(int64_t);
    job.strip = mg_min(p->columns ? REDUCE_STRIP : mg_max(REDUCE_GRAIN / n, 1), p->run);
    job.strips = mg_ceil_div(p->run, job.strip);
    job.pieces = job.strips * p->count * segments;
    if (n * job.strip * job.pieces < REDUCE_PARALLEL) {
        job.per_block = job.pieces;
        arg_block(&job, 0);
    } else {
        job.per_block = mg_ceil_div(REDUCE_GRAIN, n * job.strip);
        mg_parallel_for(mg_ceil_div(job.pieces, job.per_block), arg_block, &job);
    }
    if (segments > 1) {
        (x->dtype == MG_FLOAT32 ? arg_merge_f32 : arg_merge_f64)(job.best, job.index, segments,
                                                                job.kept);
        memcpy(y->data, job.index, (size_t)job.kept * sizeof(int64_t));
    }
    mg_block_give(scratch, capacity);
    return MG_OK;
}

/* Integers and truth values: y[o][j] = the index over i in x[o][i][j], x contiguous. */
static void arg_plain(int op, void *out, const mg_array *x, int64_t outer, int64_t n,
                      int64_t inner) {
    int64_t *y = out;
    for (int64_t o = 0; o < outer; o++)
        for (int64_t j = 0; j < inner; j++) {
            int64_t best = 0, where = 0;
            for (int64_t i = 0; i < n; i++) {
                int64_t at = (o * n + i) * inner + j;
                int64_t v = x->dtype == MG_BOOL ? x->data[at] != 0 : ((const int64_t *)x->data)[at];
                if (i > 0 && (op == MG_MAX ? v <= best : v >= best)) continue;
                best = v;
                where = i;
            }
            y[o * inner + j] = where;
        }
}

/* Converts indices in `seen` to indices in x. `seen` is x without repeated elements. The first
 * repetition is the first extremum in x. */
static void arg_unfold(int64_t *y, int64_t size, const mg_array *x, const mg_array *seen,
                       uint32_t mask) {
    for (int64_t i = 0; i < size; i++) {
        int64_t rest = y[i], step = 1, place = 0;
        for (int d = x->ndim - 1; d >= 0; d--) {
            if (!(mask >> d & 1)) continue;
            place += rest % seen->shape[d] * step;
            rest /= seen->shape[d];
            step *= x->shape[d];
        }
        y[i] = place;
    }
}

/* Stores the indices in y. False if there is no memory. */
static bool arg_find(int op, mg_array *y, mg_array *x, uint32_t mask) {
    int64_t n = 1, inner = 1;
    for (int d = 0; d < x->ndim; d++) {
        if (mask >> d & 1) n *= x->shape[d];
        else inner = mask >> d ? 1 : inner * x->shape[d];
    }
    bool plain = !mg_is_float(x->dtype), done = true;
    reduce_plan plan;
    mg_array *from = x;
    if (plain ? !mg_is_contiguous(x) : !mg_reduce_layout(&plan, x, mask, NULL)) {
        from = mg_copy(x);
        if (!from) return false;
        if (!plain) mg_reduce_layout(&plan, from, mask, NULL);
    }
    if (plain) arg_plain(op, (int64_t *)y->data, from, y->size / inner, n, inner);
    else done = !arg_run(op == MG_MAX ? 1 : -1, &plan, y, from);
    if (from != x) mg_release(from);
    return done;
}

mg_array *mg_arg_reduce(int op, mg_array *x, int axis, int all, int keepdims) {
    uint32_t mask;
    int64_t shape[MG_MAX_NDIM], folded;
    int ndim = 0;
    if (op != MG_MAX && op != MG_MIN) return mg_fail(MG_EARG, op, 0);
    if (mg_axes_mask(x->ndim, all ? -1 : 1, (int32_t[]){axis}, &mask)) return NULL;
    if (mg_reduce_check_empty(x, mask)) return NULL;
    for (int d = 0; d < x->ndim; d++) {
        bool gone = mask >> d & 1;
        if (!gone || keepdims) shape[ndim++] = gone ? 1 : x->shape[d];
    }
    mg_array *y = mg_new(MG_INT64, ndim, shape);
    if (!y || y->size == 0) return y;
    mg_array seen = mg_reduce_fold(x, mask, &folded);
    if (!arg_find(op, y, &seen, mask)) {
        mg_release(y);
        return NULL;
    }
    if (folded > 1) arg_unfold((int64_t *)y->data, y->size, x, &seen, mask);
    return y;
}

