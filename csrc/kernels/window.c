/* window.c: windows and boxes on the last one to three axes, for convolution and pooling.
 *
 * Windows have one size and lie at even steps: a view shows them all, and folding adds them back to
 * where they came from. Boxes have a start and a size of their own on every axis: pooling with
 * padding cut off, and adaptive pooling, take their sums and maxima. */
#include "../memory/array.h"
#include "../threads/pool.h"

#include <string.h>

enum {
    WINDOW_AXES = 3,
    WINDOW_GRAIN = 1 << 15 /* elements a parallel block works on, at least */
};

/* ---- windows: the view ----------------------------------------------------------------------- */

/* 0, or why `count` windows at these steps do not lie in n elements. */
static int window_check(int64_t n, int64_t count, int64_t kernel, int64_t stride,
                        int64_t dilation) {
    int64_t last, reach;
    if (count < 0 || kernel < 1 || stride < 1 || dilation < 1) return mg_fail_code(MG_EARG, 0, 0);
    if (count == 0) return MG_OK;
    if (__builtin_mul_overflow(count - 1, stride, &last) ||
        __builtin_mul_overflow(kernel - 1, dilation, &reach) ||
        __builtin_add_overflow(last, reach, &last))
        return mg_fail_code(MG_ESIZE, 0, 0);
    return last < n ? MG_OK : mg_fail_code(MG_EINDEX, last, n);
}

mg_array *mg_view_windows(mg_array *a, int axes, const int64_t *count, const int64_t *kernel,
                          const int64_t *stride, const int64_t *dilation) {
    int64_t shape[MG_MAX_NDIM], strides[MG_MAX_NDIM], size;
    if (axes < 1 || axes > a->ndim) return mg_fail(MG_ENDIM, axes, a->ndim);
    if (a->ndim + axes > MG_MAX_NDIM) return mg_fail(MG_ENDIM, a->ndim + axes, MG_MAX_NDIM);
    for (int d = 0; d < a->ndim; d++) {
        shape[d] = a->shape[d];
        strides[d] = a->strides[d];
    }
    for (int k = 0; k < axes; k++) {
        int d = a->ndim - axes + k;
        if (window_check(a->shape[d], count[k], kernel[k], stride[k], dilation[k])) return NULL;
        shape[d] = count[k];
        strides[d] = count[k] > 1 ? a->strides[d] * stride[k] : 1;
        shape[a->ndim + k] = kernel[k];
        strides[a->ndim + k] = kernel[k] > 1 ? a->strides[d] * dilation[k] : 1;
    }
    if (mg_count(a->ndim + axes, shape, (int)mg_itemsize(a->dtype), &size)) return NULL;
    return mg_alias(a, a->data, a->ndim + axes, shape, strides);
}

/* ---- planes ---------------------------------------------------------------------------------- */

/* The last `axes` of sizes as exactly three: ones in front. */
static void window_three(int axes, const int64_t *from, int64_t fill, int64_t *to) {
    for (int k = 0; k < WINDOW_AXES; k++) {
        int own = k - (WINDOW_AXES - axes);
        to[k] = own < 0 ? fill : from[own];
    }
}

static int64_t window_volume(const int64_t *sizes) { return sizes[0] * sizes[1] * sizes[2]; }

/* The axes before the last `axes` agree; 0 or an error code. */
static int window_check_lead(int lead, const int64_t *a, const int64_t *b) {
    for (int d = 0; d < lead; d++)
        if (a[d] != b[d]) return mg_fail_code(MG_ESHAPE, a[d], b[d]);
    return MG_OK;
}

/* How many planes a parallel block takes when each is `work` elements. */
static int64_t window_planes_per_block(int64_t work) {
    return mg_max(WINDOW_GRAIN / mg_max(work, 1), 1);
}

/* ---- windows: adding them back --------------------------------------------------------------- */

/* Steps in elements, of the result (`to`) and of the windows (`from`), by window and inside one. */
typedef struct {
    const mg_array *g;
    char *out;
    int lead;
    int64_t planes, per_block, plane;
    int64_t count[WINDOW_AXES], kernel[WINDOW_AXES];
    int64_t to_count[WINDOW_AXES], to_kernel[WINDOW_AXES];
    int64_t from_count[WINDOW_AXES], from_kernel[WINDOW_AXES];
} window_fold_job;

/* Boxes on three axes. Box i of axis d takes elements start[d][i] + j * step[d], j < size[d][i]. */
typedef struct {
    int64_t count[WINDOW_AXES], step[WINDOW_AXES], n[WINDOW_AXES];
    const int64_t *start[WINDOW_AXES], *size[WINDOW_AXES];
} window_boxes;

/* Where row (j0, j1) of box (i0, i1) starts. */
MG_INLINE int64_t window_row(const window_boxes *b, int64_t i0, int64_t j0, int64_t i1,
                             int64_t j1) {
    int64_t at0 = b->start[0][i0] + j0 * b->step[0], at1 = b->start[1][i1] + j1 * b->step[1];
    return (at0 * b->n[1] + at1) * b->n[2];
}

#define MG_REAL 32
#include "window.inc.c"
#define MG_REAL 64
#include "window.inc.c"

static void window_fold_block(void *context, int64_t block) {
    const window_fold_job *job = context;
    const mg_array *g = job->g;
    int64_t end = mg_min((block + 1) * job->per_block, job->planes);
    for (int64_t plane = block * job->per_block; plane < end; plane++) {
        int64_t rest = plane, from = 0, to = plane * job->plane;
        for (int d = job->lead - 1; d >= 0; d--) {
            from += rest % g->shape[d] * g->strides[d];
            rest /= g->shape[d];
        }
        if (g->dtype == MG_FLOAT32)
            window_fold_f32((float *)job->out + to, (const float *)g->data + from, job);
        else window_fold_f64((double *)job->out + to, (const double *)g->data + from, job);
    }
}

mg_array *mg_fold_windows(mg_array *g, int ndim, const int64_t *shape, int axes,
                          const int64_t *stride, const int64_t *dilation) {
    int64_t row_major[MG_MAX_NDIM];
    int lead = ndim - axes;
    if (!mg_is_float(g->dtype)) return mg_fail(MG_EDTYPE, g->dtype, 0);
    if (axes < 1 || axes > WINDOW_AXES || lead < 0) return mg_fail(MG_ENDIM, axes, WINDOW_AXES);
    if (g->ndim != ndim + axes) return mg_fail(MG_ENDIM, g->ndim, ndim + axes);
    if (window_check_lead(lead, g->shape, shape)) return NULL;
    const int64_t *count = g->shape + lead, *kernel = g->shape + ndim;
    for (int k = 0; k < axes; k++)
        if (window_check(shape[lead + k], count[k], kernel[k], stride[k], dilation[k])) return NULL;
    mg_array *out = mg_full(g->dtype, ndim, shape, 0, 0);
    if (!out || g->size == 0) return out;

    window_fold_job job = {.g = g, .out = out->data, .lead = lead, .planes = 1, .plane = 1};
    int64_t to_count[WINDOW_AXES], to_kernel[WINDOW_AXES];
    mg_row_major(ndim, shape, row_major);
    for (int d = 0; d < lead; d++) job.planes *= shape[d];
    for (int k = 0; k < axes; k++) {
        job.plane *= shape[lead + k];
        to_count[k] = count[k] > 1 ? stride[k] * row_major[lead + k] : 0;
        to_kernel[k] = kernel[k] > 1 ? dilation[k] * row_major[lead + k] : 0;
    }
    window_three(axes, count, 1, job.count);
    window_three(axes, kernel, 1, job.kernel);
    window_three(axes, to_count, 0, job.to_count);
    window_three(axes, to_kernel, 0, job.to_kernel);
    window_three(axes, g->strides + lead, 0, job.from_count);
    window_three(axes, g->strides + ndim, 0, job.from_kernel);
    job.per_block = window_planes_per_block(window_volume(job.count) * window_volume(job.kernel));
    mg_parallel_for(mg_ceil_div(job.planes, job.per_block), window_fold_block, &job);
    return out;
}

/* ---- boxes ----------------------------------------------------------------------------------- */

/* Is x[at] larger than x[best], or the first NaN? */
MG_INLINE bool window_beats(int dtype, const char *x, int64_t at, int64_t best) {
    if (dtype == MG_FLOAT32) {
        float v = ((const float *)x)[at], b = ((const float *)x)[best];
        return v > b || (v != v && b == b);
    }
    if (dtype == MG_FLOAT64) {
        double v = ((const double *)x)[at], b = ((const double *)x)[best];
        return v > b || (v != v && b == b);
    }
    return ((const int64_t *)x)[at] > ((const int64_t *)x)[best];
}

/* out[box] = where in the plane its maximum is: the first of ties, or the first NaN. */
MG_INLINE void window_box_argmax(int dtype, int64_t *out, const char *x, const window_boxes *b) {
    for (int64_t i0 = 0; i0 < b->count[0]; i0++)
        for (int64_t i1 = 0; i1 < b->count[1]; i1++)
            for (int64_t i2 = 0; i2 < b->count[2]; i2++) {
                int64_t best = window_row(b, i0, 0, i1, 0) + b->start[2][i2];
                for (int64_t j0 = 0; j0 < b->size[0][i0]; j0++)
                    for (int64_t j1 = 0; j1 < b->size[1][i1]; j1++) {
                        int64_t row = window_row(b, i0, j0, i1, j1) + b->start[2][i2];
                        for (int64_t j2 = 0; j2 < b->size[2][i2]; j2++) {
                            int64_t at = row + j2 * b->step[2];
                            if (window_beats(dtype, x, at, best)) best = at;
                        }
                    }
                *out++ = best;
            }
}

enum window_box_op { BOX_SUM, BOX_SPREAD, BOX_ARGMAX };

typedef struct {
    window_boxes boxes;
    int op, dtype;
    int64_t planes, per_block, n, m; /* elements and boxes a plane */
    char *out;
    const char *in;
} window_box_job;

static void window_box_plane(const window_box_job *job, int64_t plane) {
    int64_t itemsize = mg_itemsize(job->dtype);
    int64_t full = plane * job->n * itemsize, boxes = plane * job->m * itemsize;
    const window_boxes *b = &job->boxes;
    bool f32 = job->dtype == MG_FLOAT32;
    if (job->op == BOX_SUM) {
        void *out = job->out + boxes;
        const void *x = job->in + full;
        if (f32) window_box_sum_f32(out, x, b);
        else window_box_sum_f64(out, x, b);
    } else if (job->op == BOX_SPREAD) {
        void *out = job->out + full;
        const void *g = job->in + boxes;
        if (f32) window_box_spread_f32(out, g, b);
        else window_box_spread_f64(out, g, b);
    } else {
        int64_t *out = (int64_t *)job->out + plane * job->m;
        const char *x = job->in + full;
        if (f32) window_box_argmax(MG_FLOAT32, out, x, b);
        else if (job->dtype == MG_FLOAT64) window_box_argmax(MG_FLOAT64, out, x, b);
        else window_box_argmax(MG_INT64, out, x, b);
    }
}

static void window_box_block(void *context, int64_t block) {
    const window_box_job *job = context;
    int64_t end = mg_min((block + 1) * job->per_block, job->planes);
    for (int64_t plane = block * job->per_block; plane < end; plane++) window_box_plane(job, plane);
}

/* The boxes of `axes` axes of sizes n as those of three; 0, or why they do not lie in n. */
static int window_boxes_read(window_boxes *b, int axes, const int64_t *n, const int64_t *count,
                             const int64_t *starts, const int64_t *sizes, const int64_t *step) {
    static const int64_t zero = 0, one = 1;
    if (axes < 1 || axes > WINDOW_AXES) return mg_fail_code(MG_ENDIM, axes, WINDOW_AXES);
    window_three(axes, n, 1, b->n);
    window_three(axes, count, 1, b->count);
    window_three(axes, step, 1, b->step);
    for (int k = 0; k < WINDOW_AXES; k++) {
        bool own = k >= WINDOW_AXES - axes;
        b->start[k] = own ? starts : &zero;
        b->size[k] = own ? sizes : &one;
        if (!own) continue;
        if (b->count[k] < 0 || b->step[k] < 1) return mg_fail_code(MG_EARG, 0, 0);
        for (int64_t i = 0; i < b->count[k]; i++) {
            if (sizes[i] < 1 || starts[i] < 0) return mg_fail_code(MG_EARG, sizes[i], starts[i]);
            if (starts[i] >= b->n[k] || (sizes[i] - 1) > (b->n[k] - 1 - starts[i]) / b->step[k])
                return mg_fail_code(MG_EINDEX, starts[i], b->n[k]);
        }
        starts += b->count[k];
        sizes += b->count[k];
    }
    return MG_OK;
}

/* Fills out; the boxes lie in the last axes of `in`, of a spread in those of `out`. 0 or an error
 * code. */
static int window_box_run(int op, mg_array *out, mg_array *in, const window_boxes *boxes) {
    window_box_job job = {.boxes = *boxes, .op = op, .dtype = in->dtype, .out = out->data};
    job.n = window_volume(boxes->n);
    job.m = window_volume(boxes->count);
    int64_t full = op == BOX_SPREAD ? out->size : in->size;
    if (full == 0 || job.m == 0) return MG_OK;
    mg_array *from = mg_contiguous(in);
    if (!from) return mg_error();
    job.in = from->data;
    job.planes = full / job.n;
    job.per_block = window_planes_per_block(job.n + job.m);
    mg_parallel_for(mg_ceil_div(job.planes, job.per_block), window_box_block, &job);
    mg_release(from);
    return MG_OK;
}

/* One element a box: their sums or places in a new array. */
static mg_array *window_box_reduce(int op, mg_array *x, int axes, const int64_t *count,
                                   const int64_t *starts, const int64_t *sizes,
                                   const int64_t *step) {
    window_boxes boxes;
    int64_t shape[MG_MAX_NDIM];
    int lead = x->ndim - axes;
    if (lead < 0) return mg_fail(MG_ENDIM, axes, x->ndim);
    if (window_boxes_read(&boxes, axes, x->shape + lead, count, starts, sizes, step)) return NULL;
    for (int d = 0; d < x->ndim; d++) shape[d] = d < lead ? x->shape[d] : count[d - lead];
    mg_array *y = mg_new(op == BOX_ARGMAX ? MG_INT64 : x->dtype, x->ndim, shape);
    if (y && window_box_run(op, y, x, &boxes)) {
        mg_release(y);
        return NULL;
    }
    return y;
}

mg_array *mg_box_sum(mg_array *x, int axes, const int64_t *count, const int64_t *starts,
                     const int64_t *sizes, const int64_t *step) {
    if (!mg_is_float(x->dtype)) return mg_fail(MG_EDTYPE, x->dtype, 0);
    return window_box_reduce(BOX_SUM, x, axes, count, starts, sizes, step);
}

mg_array *mg_box_argmax(mg_array *x, int axes, const int64_t *count, const int64_t *starts,
                        const int64_t *sizes, const int64_t *step) {
    if (x->dtype == MG_BOOL) return mg_fail(MG_EDTYPE, x->dtype, 0);
    return window_box_reduce(BOX_ARGMAX, x, axes, count, starts, sizes, step);
}

mg_array *mg_box_spread(mg_array *g, int ndim, const int64_t *shape, int axes, const int64_t *count,
                        const int64_t *starts, const int64_t *sizes, const int64_t *step) {
    window_boxes boxes;
    int lead = ndim - axes;
    if (!mg_is_float(g->dtype)) return mg_fail(MG_EDTYPE, g->dtype, 0);
    if (lead < 0 || g->ndim != ndim) return mg_fail(MG_ENDIM, g->ndim, ndim);
    if (window_boxes_read(&boxes, axes, shape + lead, count, starts, sizes, step)) return NULL;
    if (window_check_lead(lead, g->shape, shape)) return NULL;
    if (window_check_lead(axes, g->shape + lead, count)) return NULL;
    mg_array *out = mg_full(g->dtype, ndim, shape, 0, 0);
    if (out && window_box_run(BOX_SPREAD, out, g, &boxes)) {
        mg_release(out);
        return NULL;
    }
    return out;
}
