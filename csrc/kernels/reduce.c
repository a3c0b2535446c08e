/* reduce.c: sum, mean, prod, max, min, all, any, var and logsumexp over any axes.
 *
 * Reduced axes with no kept axis of size > 1 between them form one group, which is reduced as one
 * row-major index; the last group goes first. Within a group terms are joined in the order given in
 * reduce.h. Shape and axes alone decide all of this, so that a result has the same bits for every
 * memory layout and thread count. */
#include "reduce.h"
#include "../threads/pool.h"
#include "nditer.h"

/* ---- planning ---- */

/* Product of the sizes of the axes in `mask`. */
static int64_t reduce_extent(const mg_array *x, uint32_t mask) {
    int64_t n = 1;
    for (int d = 0; d < x->ndim; d++)
        if (mask >> d & 1) n *= x->shape[d];
    return n;
}

/* The axes of the last group in `mask`. */
static uint32_t reduce_last_group(const mg_array *x, uint32_t mask) {
    uint32_t group = 0;
    for (int d = x->ndim - 1; d >= 0; d--) {
        if (mask >> d & 1) group |= 1u << d;
        else if (group && x->shape[d] != 1) break;
    }
    return group;
}

bool mg_reduce_layout(reduce_plan *p, const mg_array *x, uint32_t group, const mg_array *c) {
    p->n = 1;
    p->stride = 0;
    p->ndim = 0;
    int64_t y_stride = 1;
    for (int d = x->ndim - 1; d >= 0; d--) {
        int64_t size = x->shape[d], stride = x->strides[d];
        if (size == 1) continue;
        if (group >> d & 1) {
            if (p->n > 1 && stride != p->stride * p->n) return false;
            if (p->n == 1) p->stride = stride;
            p->n *= size;
            continue;
        }
        int64_t c_stride = c && c->shape[d] > 1 ? c->strides[d] : 0;
        int last = p->ndim - 1;
        if (last >= 0 && stride == p->x[last] * p->shape[last] &&
            y_stride == p->y[last] * p->shape[last] &&
            (!c || c_stride == p->c[last] * p->shape[last])) {
            p->shape[last] *= size;
        } else {
            last = p->ndim++;
            p->shape[last] = size;
            p->x[last] = stride;
            p->y[last] = y_stride;
            p->c[last] = c_stride;
        }
        y_stride *= size;
    }
    int run = 0; /* the kept axis that becomes the run */
    p->columns = false;
    for (int d = 0; d < p->ndim; d++) {
        if (p->shape[d] > p->shape[run]) run = d;
        if (p->x[d] == 1 && (p->stride != 1 || p->n == 1)) {
            p->columns = true;
            run = d;
            break;
        }
    }
    if (!p->columns && p->stride != 1 && p->n > 1) return false;
    p->run = p->run_x = p->run_y = p->count = 1;
    p->run_c = 0;
    if (p->ndim == 0) return true;
    p->run = p->shape[run];
    p->run_x = p->x[run];
    p->run_y = p->y[run];
    p->run_c = p->c[run];
    p->ndim--;
    for (int d = run; d < p->ndim; d++) {
        p->shape[d] = p->shape[d + 1];
        p->x[d] = p->x[d + 1];
        p->y[d] = p->y[d + 1];
        p->c[d] = p->c[d + 1];
    }
    for (int d = 0; d < p->ndim; d++) p->count *= p->shape[d];
    return true;
}

/* ---- running a plan ---- */

typedef struct {
    const reduce_plan *plan;
    int kind, dtype;
    int64_t itemsize, kept;     /* kept: elements of the result */
    const char *x, *c;
    char *y;                    /* one result for each chunk: y[chunk][kept] */
    int64_t chunks, strips, strip, pieces, per_block;
} reduce_job;

static void reduce_block_of_pieces(void *context, int64_t block) {
    const reduce_job *job = context;
    const reduce_plan *p = job->plan;
    int64_t end = mg_min((block + 1) * job->per_block, job->pieces);
    for (int64_t piece = block * job->per_block; piece < end; piece++) {
        int64_t first = piece % job->strips * job->strip, x, y, c;
        int64_t chunk = reduce_seek(p, piece / job->strips, first, &x, &y, &c);
        int64_t start = chunk * REDUCE_CHUNK;
        x += start * p->stride;
        y += chunk * job->kept;
        (job->dtype == MG_FLOAT32 ? reduce_piece_f32 : reduce_piece_f64)(
            job->kind, p, job->y + y * job->itemsize, job->x + x * job->itemsize,
            mg_min(job->strip, p->run - first), mg_min(REDUCE_CHUNK, p->n - start),
            job->c ? job->c + c * job->itemsize : NULL);
    }
}

/* y = x reduced by the plan; 0 or an error code. Sizes are not 0. */
static int reduce_run(int kind, const reduce_plan *p, mg_array *y, const mg_array *x,
                      const mg_array *c) {
    reduce_job job = {.plan = p, .kind = kind, .dtype = x->dtype, .kept = y->size};
    job.itemsize = mg_itemsize(x->dtype);
    job.x = x->data;
    job.c = c ? c->data : NULL;
    job.y = y->data;
    job.chunks = mg_ceil_div(p->n, REDUCE_CHUNK);
    size_t capacity = 0;
    if (job.chunks > 1) {
        job.y = mg_block_take((size_t)(job.chunks * job.kept * job.itemsize), &capacity);
        if (!job.y) return mg_fail_code(MG_ENOMEM, job.chunks * job.kept * job.itemsize, 0);
    }
    int64_t n = mg_min(p->n, REDUCE_CHUNK);
    job.strip = p->columns ? REDUCE_STRIP : mg_max(REDUCE_GRAIN / n, 1);
    job.strip = mg_min(job.strip, p->run);
    job.strips = mg_ceil_div(p->run, job.strip);
    job.pieces = job.strips * p->count * job.chunks;
    if (n * job.strip * job.pieces < REDUCE_PARALLEL) {
        job.per_block = job.pieces;
        reduce_block_of_pieces(&job, 0);
    } else {
        job.per_block = mg_ceil_div(REDUCE_GRAIN, n * job.strip);
        mg_parallel_for(mg_ceil_div(job.pieces, job.per_block), reduce_block_of_pieces, &job);
    }
    if (job.chunks > 1) {
        (x->dtype == MG_FLOAT32 ? reduce_parts_f32 : reduce_parts_f64)(kind, y->data, job.y,
                                                                      job.chunks, job.kept);
        mg_block_give(job.y, capacity);
    }
    return MG_OK;
}

/* ---- groups of axes ---- */

/* x reduced over one group, whose axes stay with size 1. */
static mg_array *reduce_group(int kind, mg_array *x, uint32_t group, const mg_array *c) {
    int64_t shape[MG_MAX_NDIM];
    for (int d = 0; d < x->ndim; d++) shape[d] = group >> d & 1 ? 1 : x->shape[d];
    mg_array *y = mg_new(x->dtype, x->ndim, shape);
    if (!y || y->size == 0) return y;
    if (x->size == 0) {
        (x->dtype == MG_FLOAT32 ? reduce_fill_f32 : reduce_fill_f64)(y->data, y->size,
                                                                    reduce_identity(kind));
        return y;
    }
    reduce_plan plan;
    mg_array *from = mg_retain(x);
    if (!mg_reduce_layout(&plan, from, group, c)) {
        mg_release(from);
        from = mg_copy(x); /* a contiguous array always has a layout */
        if (from) mg_reduce_layout(&plan, from, group, c);
    }
    if (!from || reduce_run(kind, &plan, y, from, c)) {
        mg_release(y);
        y = NULL;
    }
    mg_release(from);
    return y;
}

/* The same for integers and truth values; all and any make truth values of x first. */
static mg_array *reduce_group_plain(int op, mg_array *x, uint32_t group) {
    int64_t shape[MG_MAX_NDIM];
    for (int d = 0; d < x->ndim; d++) shape[d] = group >> d & 1 ? 1 : x->shape[d];
    bool truth = op == MG_ALL || op == MG_ANY;
    int dtype = truth ? MG_BOOL : op == MG_MAX || op == MG_MIN ? x->dtype : MG_INT64;
    mg_array *y = mg_new(dtype, x->ndim, shape);
    if (!y) return NULL;
    mg_array *from = truth && x->dtype != MG_BOOL ? mg_cast(x, MG_BOOL) : mg_contiguous(x);
    if (!from) {
        mg_release(y);
        return NULL;
    }
    mg_reduce_plain(op, y, from, group);
    mg_release(from);
    return y;
}

/* x reduced over `mask`, whose axes stay with size 1: group by group, the last one first. A kind
 * that makes terms of x and c makes them in the first step; the other steps add them up. */
static mg_array *reduce_groups(bool plain, int op, mg_array *x, uint32_t mask, const mg_array *c) {
    mg_array *y = mg_retain(x);
    do {
        uint32_t group = reduce_last_group(y, mask);
        mg_array *next = plain ? reduce_group_plain(op, y, group) : reduce_group(op, y, group, c);
        mg_release(y);
        y = next;
        mask &= ~group;
        if (c) op = REDUCE_SUM;
        c = NULL;
    } while (y && mask);
    return y;
}

/* Drops the size-1 axes in `mask` from y, which nobody else holds yet. */
static mg_array *reduce_squeeze(mg_array *y, uint32_t mask, int keepdims) {
    if (!y || keepdims) return y;
    int ndim = 0;
    for (int d = 0; d < y->ndim; d++)
        if (!(mask >> d & 1)) y->shape[ndim++] = y->shape[d];
    y->ndim = ndim;
    mg_row_major(ndim, y->shape, y->strides);
    return y;
}

static void reduce_divide(mg_array *y, double divisor) {
    (y->dtype == MG_FLOAT32 ? reduce_divide_f32 : reduce_divide_f64)(y->data, y->size, divisor);
}

/* ---- the operations ---- */

int mg_reduce_check_empty(const mg_array *x, uint32_t mask) {
    int empty = -1;
    for (int d = 0; d < x->ndim; d++) {
        if (x->shape[d] != 0) continue;
        if (!(mask >> d & 1)) return MG_OK;
        if (empty < 0) empty = d;
    }
    return empty < 0 ? MG_OK : mg_fail_code(MG_EEMPTY, empty, 0);
}

/* The mean of integers, in float32 from an exact sum. */
static mg_array *reduce_mean_of_sum(mg_array *sum, int64_t n) {
    mg_array *y = sum ? mg_new(MG_FLOAT32, sum->ndim, sum->shape) : NULL;
    for (int64_t i = 0; y && i < y->size; i++)
        ((float *)y->data)[i] = (float)((double)((const int64_t *)sum->data)[i] / (double)n);
    mg_release(sum);
    return y;
}

mg_array *mg_reduce(int op, mg_array *x, int naxes, const int32_t *axes, int keepdims) {
    static const int kinds[] = {[MG_SUM] = REDUCE_SUM,
                                [MG_MEAN] = REDUCE_SUM,
                                [MG_PROD] = REDUCE_PROD,
                                [MG_MAX] = REDUCE_MAX,
                                [MG_MIN] = REDUCE_MIN};
    uint32_t mask;
    if (op < MG_SUM || op > MG_ANY) return mg_fail(MG_EARG, op, 0);
    if (mg_axes_mask(x->ndim, naxes, axes, &mask)) return NULL;
    if ((op == MG_MAX || op == MG_MIN) && mg_reduce_check_empty(x, mask)) return NULL;
    bool plain = !mg_is_float(x->dtype) || op == MG_ALL || op == MG_ANY;
    int step = !plain ? kinds[op] : op == MG_MEAN ? MG_SUM : op;
    mg_array *y = reduce_groups(plain, step, x, mask, NULL);
    if (op == MG_MEAN) {
        int64_t n = reduce_extent(x, mask);
        if (plain) y = reduce_mean_of_sum(y, n);
        else if (y) reduce_divide(y, (double)n);
    }
    return reduce_squeeze(y, mask, keepdims);
}

/* The mean, then the sum of (x - mean)^2 over max(n - correction, 0). A mean that is large beside
 * the deviations is rounded by much of their size; the sum of x - mean says by how much, and
 * corrects that (Chan, Golub and LeVeque, "Algorithms for computing the sample variance", 1983,
 * equation 1.7). */
mg_array *mg_var(mg_array *x, int naxes, const int32_t *axes, double correction, int keepdims) {
    uint32_t mask;
    if (!mg_is_float(x->dtype)) return mg_fail(MG_EDTYPE, x->dtype, 0);
    if (mg_axes_mask(x->ndim, naxes, axes, &mask)) return NULL;
    double n = (double)reduce_extent(x, mask);
    mg_array *mean = reduce_groups(false, REDUCE_SUM, x, mask, NULL);
    if (!mean) return NULL;
    reduce_divide(mean, n);
    mg_array *y = reduce_groups(false, REDUCE_SUMSQ, x, mask, mean);
    mg_array *residue = y ? reduce_groups(false, REDUCE_RESIDUE, x, mask, mean) : NULL;
    mg_release(mean);
    if (!residue) {
        mg_release(y);
        return NULL;
    }
    (x->dtype == MG_FLOAT32 ? reduce_correct_f32 : reduce_correct_f64)(y->data, residue->data,
                                                                      y->size, n);
    mg_release(residue);
    reduce_divide(y, n > correction ? n - correction : 0);
    return reduce_squeeze(y, mask, keepdims);
}

/* m + log(sum of exp(x - m)) with m the maximum; m itself where that is NaN or infinite. */
mg_array *mg_logsumexp(mg_array *x, int naxes, const int32_t *axes, int keepdims) {
    uint32_t mask;
    if (!mg_is_float(x->dtype)) return mg_fail(MG_EDTYPE, x->dtype, 0);
    if (mg_axes_mask(x->ndim, naxes, axes, &mask)) return NULL;
    mg_array *m = reduce_groups(false, REDUCE_MAX, x, mask, NULL);
    if (!m) return NULL;
    mg_array *y = reduce_groups(false, REDUCE_SUMEXP, x, mask, m);
    if (y)
        (x->dtype == MG_FLOAT32 ? reduce_add_log_f32 : reduce_add_log_f64)(y->data, m->data,
                                                                          y->size);
    mg_release(m);
    return reduce_squeeze(y, mask, keepdims);
}

/* ---- the gradient of max and min ---- */

/* `a` with the size-1 axes that reducing x over `mask` took away; MG_ESHAPE if it does not fit. */
static mg_array *reduce_unsqueeze(const mg_array *a, const mg_array *x, uint32_t mask,
                                  int keepdims) {
    int64_t shape[MG_MAX_NDIM], strides[MG_MAX_NDIM];
    int from = 0;
    for (int d = 0; d < x->ndim; d++) {
        bool gone = mask >> d & 1;
        shape[d] = gone ? 1 : x->shape[d];
        strides[d] = 0;
        if (gone && !keepdims) continue;
        if (from >= a->ndim || a->shape[from] != shape[d]) return mg_fail(MG_ESHAPE, d, shape[d]);
        strides[d] = a->strides[from++];
    }
    if (from != a->ndim) return mg_fail(MG_ESHAPE, a->ndim, from);
    return mg_alias(a, a->data, x->ndim, shape, strides);
}

/* y = max or min of x over axes: the elements equal to it share g evenly. Those are counted first,
 * as a sum of terms 1 and 0 whose centres are y. */
mg_array *mg_extremum_vjp(mg_array *g, mg_array *x, mg_array *y, int naxes, const int32_t *axes,
                          int keepdims) {
    uint32_t mask;
    bool narrow = x->dtype == MG_FLOAT32;
    if (!mg_is_float(x->dtype)) return mg_fail(MG_EDTYPE, x->dtype, 0);
    if (g->dtype != x->dtype || y->dtype != x->dtype) return mg_fail(MG_EDTYPE, g->dtype, y->dtype);
    if (mg_axes_mask(x->ndim, naxes, axes, &mask)) return NULL;
    mg_array *seen_y = reduce_unsqueeze(y, x, mask, keepdims);
    mg_array *seen_g = seen_y ? reduce_unsqueeze(g, x, mask, keepdims) : NULL;
    mg_array *share = seen_g ? reduce_groups(false, REDUCE_TIES, x, mask, seen_y) : NULL;
    mg_array *dx = share ? mg_new(x->dtype, x->ndim, x->shape) : NULL;
    if (dx) {
        mg_nditer_run(share, 2, (mg_array *[]){seen_g, share},
                      narrow ? reduce_share_f32 : reduce_share_f64);
        mg_nditer_run(dx, 3, (mg_array *[]){x, seen_y, share},
                      narrow ? reduce_spread_f32 : reduce_spread_f64);
    }
    mg_release(share);
    mg_release(seen_g);
    mg_release(seen_y);
    return dx;
}
