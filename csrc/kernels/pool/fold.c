/* fold.c: sliding windows as a view (unfold), and fold, which adds windows back to their
 * elements. */
#include "memory/array.h"
#include "threads/pool.h"
#include "kernels/sizes.h"

#include <string.h>

enum {
    WINDOW_AXES = 3,
};

/* ---- windows: the view ----------------------------------------------------------------------- */

/* 0, or an error code if `count` windows with these steps do not lie within n elements. */
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

/* The last `axes` sizes as three sizes, with `fill` in front. */
static void window_three(int axes, const int64_t *from, int64_t fill, int64_t *to) {
    for (int k = 0; k < WINDOW_AXES; k++) {
        int own = k - (WINDOW_AXES - axes);
        to[k] = own < 0 ? fill : from[own];
    }
}

static int64_t window_volume(const int64_t *sizes) { return sizes[0] * sizes[1] * sizes[2]; }

/* Checks that the axes before the last `axes` agree. 0 or an error code. */
static int window_check_lead(int lead, const int64_t *a, const int64_t *b) {
    for (int d = 0; d < lead; d++)
        if (a[d] != b[d]) return mg_fail_code(MG_ESHAPE, a[d], b[d]);
    return MG_OK;
}

/* Planes of `work` elements that a parallel block takes. */
static int64_t window_planes_per_block(int64_t work) {
    return mg_max(WINDOW_GRAIN / mg_max(work, 1), 1);
}

/* ---- fold ------------------------------------------------------------------------------------ */

/* Strides in elements, of the result (`to`) and of the windows (`from`), from window to window and
 * within one. */
typedef struct {
    const mg_array *g;
    char *out;
    int lead;
    int64_t planes, per_block, plane;
    int64_t count[WINDOW_AXES], kernel[WINDOW_AXES];
    int64_t to_count[WINDOW_AXES], to_kernel[WINDOW_AXES];
    int64_t from_count[WINDOW_AXES], from_kernel[WINDOW_AXES];
} window_fold_job;

#define MG_REAL 32
#include "fold.inc.c"
#define MG_REAL 64
#include "fold.inc.c"

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

