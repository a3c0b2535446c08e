/* backward.c: gradients of extrema, variances, norms and logsumexp.
 *
 * They first need a value of each line: the number of ties with the extremum, or the mean. Lines of
 * neighbouring elements that fit into cache are read from memory once for both.
 */
#include "kernels/iterate/contiguous.h"
#include "threads/pool.h"
#include "kernels/iterate/nditer.h"
#include "reduce.h"

#include <float.h>
#include <stdatomic.h>

#define MG_REAL 32
#include "backward.inc.c"
#define MG_REAL 64
#include "backward.inc.c"

/* `a` with the size-1 axes that a reduction of x over `mask` dropped; MG_ESHAPE if `a` does not
 * fit. */
static mg_array *back_unsqueeze(const mg_array *a, const mg_array *x, uint32_t mask, int keepdims) {
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

/* Describes x as lines of n elements along one group of axes, with `inner` of them side by side.
 * False if x has more groups or another layout. */
static bool back_as_lines(const mg_array *x, uint32_t mask, const mg_array *y, const mg_array *g,
                          int64_t *n, int64_t *inner) {
    bool before = false; /* on the axes before the group */
    *n = *inner = 1;
    for (int d = x->ndim - 1; d >= 0; d--) {
        bool gone = mask >> d & 1;
        if (x->shape[d] == 1) continue;
        if (gone && before) return false;
        before |= *n > 1 && !gone;
        if (gone) *n *= x->shape[d];
        else if (!before) *inner *= x->shape[d];
    }
    return x->size > 0 && mg_is_contiguous(x) && mg_is_contiguous(y) && mg_is_contiguous(g);
}

typedef struct {
    int kind, dtype;
    reduce_plan plan;
    char *dx;
    const char *x, *y, *g;
    int64_t lines, step; /* in all, and in a slab */
    int64_t slabs, per_block;
} back_job;

static void back_block(void *context, int64_t block) {
    const back_job *job = context;
    int64_t itemsize = mg_itemsize(job->dtype);
    int64_t end = mg_min((block + 1) * job->per_block, job->slabs);
    for (int64_t slab = block * job->per_block; slab < end; slab++) {
        int64_t first = slab * job->step, line = first * itemsize, at = line * job->plan.n;
        (job->dtype == MG_FLOAT32 ? back_lines_f32 : back_lines_f64)(
            job->kind, &job->plan, job->dx + at, job->x + at, job->y + line, job->g + line,
            mg_min(job->step, job->lines - first));
    }
}

/* The gradient in one pass, if lines are neighbouring elements that fit into cache; else false.
 * `kind`: the value that is needed of each line. */
static bool back_in_cache(int kind, mg_array *dx, const mg_array *x, uint32_t mask,
                          const mg_array *y, const mg_array *g) {
    back_job job = {.kind = kind, .dtype = x->dtype, .plan = {.stride = 1}};
    int64_t n, inner;
    if (!back_as_lines(x, mask, y, g, &n, &inner) || inner > 1 || n > BACK_SLAB) return false;
    job.plan.n = job.plan.run_x = n;
    job.plan.run_y = job.plan.run_c = 1;
    job.dx = dx->data;
    job.x = x->data;
    job.y = y->data;
    job.g = g->data;
    job.lines = x->size / n;
    job.step = mg_min(BACK_SLAB / n, REDUCE_STRIP);
    job.slabs = mg_ceil_div(job.lines, job.step);
    job.per_block = mg_ceil_div(REDUCE_GRAIN, job.step * n);
    if (x->size < REDUCE_PARALLEL) job.per_block = job.slabs;
    mg_parallel_for(mg_ceil_div(job.slabs, job.per_block), back_block, &job);
    return true;
}

/* ---- extrema without ties ------------ */

typedef struct {
    int dtype;
    int64_t itemsize, size, n, inner; /* element i of line (o, j) lies at (o * n + i) * inner + j */
    char *dx;
    const char *x, *y, *g;
    _Atomic int64_t ties;
} back_tied_job;

static void back_tied_block(void *context, int64_t block) {
    back_tied_job *job = context;
    int64_t at = block * NDITER_BLOCK, end = mg_min(at + NDITER_BLOCK, job->size), ties = 0;
    int64_t run = job->inner > 1 ? job->inner : job->n, some;
    for (; at < end; at += some) {
        int64_t line = at / (job->n * job->inner) * job->inner + at % job->inner;
        some = mg_min(run - at % run, end - at);
        int64_t here = at * job->itemsize;
        line *= job->itemsize;
        ties += (job->dtype == MG_FLOAT32 ? back_tied_f32 : back_tied_f64)(
            job->dx + here, job->x + here, job->y + line, job->g + line, some, job->inner == 1);
    }
    atomic_fetch_add(&job->ties, ties);
}

/* The gradient in one pass, which is useless if an extremum occurs twice in a line; the result is
 * then false. Every line has its extremum. No line thus has it twice if there are as many ties as
 * lines. */
static bool back_untied(mg_array *dx, const mg_array *x, uint32_t mask, const mg_array *y,
                        const mg_array *g) {
    back_tied_job job = {.dtype = x->dtype, .itemsize = mg_itemsize(x->dtype)};
    if (!back_as_lines(x, mask, y, g, &job.n, &job.inner)) return false;
    job.size = x->size;
    job.dx = dx->data;
    job.x = x->data;
    job.y = y->data;
    job.g = g->data;
    mg_parallel_for(mg_ceil_div(x->size, NDITER_BLOCK), back_tied_block, &job);
    return job.ties == y->size;
}

/* y = max or min of x over axes: the elements equal to y share g evenly. Ties are counted first, as
 * a sum of terms 1 and 0 with y as centres. */
mg_array *mg_extremum_vjp(mg_array *g, mg_array *x, mg_array *y, int naxes, const int32_t *axes,
                          int keepdims) {
    uint32_t mask;
    bool narrow = x->dtype == MG_FLOAT32;
    if (!mg_is_float(x->dtype)) return mg_fail(MG_EDTYPE, x->dtype, 0);
    if (g->dtype != x->dtype || y->dtype != x->dtype) return mg_fail(MG_EDTYPE, g->dtype, y->dtype);
    if (mg_axes_mask(x->ndim, naxes, axes, &mask)) return NULL;
    mg_array *seen_y = back_unsqueeze(y, x, mask, keepdims), *share = NULL;
    mg_array *seen_g = seen_y ? back_unsqueeze(g, x, mask, keepdims) : NULL;
    mg_array *dx = seen_g ? mg_new(x->dtype, x->ndim, x->shape) : NULL;
    if (dx && !back_in_cache(REDUCE_TIES, dx, x, mask, seen_y, seen_g) &&
        !back_untied(dx, x, mask, seen_y, seen_g)) {
        share = mg_reduce_groups(REDUCE_TIES, x, mask, seen_y);
        if (share) {
            mg_nditer_run(share, 2, (mg_array *[]){seen_g, share},
                          narrow ? back_share_f32 : back_share_f64);
            mg_nditer_run(dx, 3, (mg_array *[]){x, seen_y, share},
                          narrow ? back_spread_kernel_f32 : back_spread_kernel_f64);
        } else {
            mg_release(dx);
            dx = NULL;
        }
    }
    mg_release(share);
    mg_release(seen_g);
    mg_release(seen_y);
    return dx;
}

/* The means over `mask`. If a sum overflowed, they are computed from smaller terms. */
static mg_array *back_means(mg_array *x, uint32_t mask) {
    bool narrow = x->dtype == MG_FLOAT32;
    double n = (double)mg_reduce_extent(x, mask), part = 1;
    mg_array *sums = mg_reduce_groups(REDUCE_SUM, x, mask, NULL);
    if (sums && x->size && !(narrow ? back_finite_f32 : back_finite_f64)(sums->data, sums->size)) {
        while (part * n > 1) part /= 2;
        mg_array *unit = mg_full(x->dtype, 0, NULL, part, 0);
        mg_array *scaled = unit ? mg_reduce_scaled(x, unit) : NULL;
        mg_release(unit);
        mg_release(sums);
        sums = scaled ? mg_reduce_groups(REDUCE_SUM, scaled, mask, NULL) : NULL;
        mg_release(scaled);
    }
    if (sums) mg_reduce_divide(sums, n * part, false);
    return sums;
}

int mg_roots_extreme(mg_array *y) {
    bool far = true;
    mg_array *held = mg_is_float(y->dtype) ? mg_contiguous(y) : NULL;
    if (held)
        far = (y->dtype == MG_FLOAT32 ? back_far_f32 : back_far_f64)(held->data, held->size);
    mg_release(held);
    return far;
}

mg_array *mg_scale_units(mg_array *y, int all) {
    if (!mg_is_float(y->dtype)) return mg_fail(MG_EDTYPE, y->dtype, 0);
    mg_array *held = mg_contiguous(y), *units = held ? mg_new(y->dtype, y->ndim, y->shape) : NULL;
    if (units)
        (y->dtype == MG_FLOAT32 ? back_units_f32 : back_units_f64)(units->data, held->data,
                                                                    held->size, all);
    mg_release(held);
    return units;
}

/* Computes dx from all factors at once, if partials left the range, or if `scale` is infinite
 * (division by 0). A root y that may have lost digits is recomputed from scaled x. y is NULL for a
 * variance. Otherwise y and g have the reduced axes. 0 or an error code. */
static int back_with_care(mg_array *dx, mg_array *x, mg_array *y, mg_array *g, uint32_t mask,
                          bool centred, double scale) {
    bool narrow = x->dtype == MG_FLOAT32, limit = isinf(scale);
    int32_t axes[MG_MAX_NDIM], naxes = 0;
    for (int32_t d = 0; d < x->ndim; d++)
        if (mask >> d & 1) axes[naxes++] = d;
    mg_array *root = NULL, *units = NULL, *in = mg_retain(x);
    if (limit) {
        root = mg_var(true, x, naxes, axes, 0, true);
    } else if (!y) {
        root = mg_full(x->dtype, 0, NULL, 1, 0);
    } else if (mg_roots_extreme(y)) {
        units = mg_scale_units(y, false);
        mg_release(in);
        in = units ? mg_reduce_scaled(x, units) : NULL;
        if (in && centred) { /* sqrt(squares / n) in place of sqrt(squares * scale) */
            root = mg_var(true, in, naxes, axes, 0, true);
            scale = sqrt(scale / (double)mg_reduce_extent(x, mask));
        } else if (in) {
            root = mg_norm(in, naxes, axes, true);
        }
    } else {
        root = mg_retain(y);
    }
    mg_array *centre = !root ? NULL : centred ? back_means(in, mask) : mg_full(x->dtype, 0, NULL, 0, 0);
    mg_array *factor = centre ? mg_full(x->dtype, 0, NULL, scale, 0) : NULL;
    if (factor && limit)
        mg_nditer_run(dx, 4, (mg_array *[]){in, centre, root, g},
                      narrow ? back_limit_kernel_f32 : back_limit_kernel_f64);
    else if (factor)
        mg_nditer_run(dx, 5, (mg_array *[]){in, centre, root, g, factor},
                      narrow ? back_apart_kernel_f32 : back_apart_kernel_f64);
    int code = factor ? MG_OK : MG_ENOMEM;
    mg_release(factor);
    mg_release(centre);
    mg_release(root);
    mg_release(units);
    mg_release(in);
    return code;
}

/* For large means: subtracts from the gradients of each line the mean of their sum, which should be
 * 0. 0 or an error code. */
static int back_recentre(mg_array *dx, mg_array *x, mg_array *mean, uint32_t mask) {
    bool narrow = x->dtype == MG_FLOAT32;
    int64_t shape[MG_MAX_NDIM], middle = 0, last = 0;
    if (!x->size) return MG_OK;
    for (int d = 0; d < x->ndim; d++) {
        bool gone = mask >> d & 1;
        shape[d] = gone ? 1 : x->shape[d];
        middle += gone ? x->shape[d] / 2 * x->strides[d] : 0;
        last += gone ? (x->shape[d] - 1) * x->strides[d] : 0;
    }
    int64_t places[] = {0, middle, last};
    mg_array *from[] = {mean, NULL, NULL, NULL}, *sums = NULL;
    mg_array *far = mg_new(x->dtype, x->ndim, shape);
    for (int k = 0; k < 3 && far; k++) {
        char *at = (char *)x->data + places[k] * mg_itemsize(x->dtype);
        from[k + 1] = mg_alias(x, at, x->ndim, shape, x->strides);
    }
    int code = far && from[1] && from[2] && from[3] ? MG_OK : MG_ENOMEM;
    if (!code)
        mg_nditer_run(far, 4, from, narrow ? back_far_kernel_f32 : back_far_kernel_f64);
    if (!code && (narrow ? back_any_f32 : back_any_f64)(far->data, far->size)) {
        sums = mg_reduce_groups(REDUCE_SUM, dx, mask, NULL);
        code = sums ? MG_OK : MG_ENOMEM;
        if (sums) {
            mg_reduce_divide(sums, (double)mg_reduce_extent(x, mask), false);
            mg_nditer_run(dx, 2, (mg_array *[]){dx, sums},
                          narrow ? back_less_kernel_f32 : back_less_kernel_f64);
        }
    }
    mg_release(sums);
    mg_release(far);
    for (int k = 1; k < 4; k++) mg_release(from[k]);
    return code;
}

/* y = the variance of x, its square root, or the norm: dx = scale * g * (x - mean), divided by y
 * for a root. The norm's mean is 0. `y` is NULL for the variance. */
mg_array *mg_deviation_vjp(mg_array *g, mg_array *x, mg_array *y, int naxes, const int32_t *axes,
                        double scale, int centred, int keepdims) {
    uint32_t mask;
    bool narrow = x->dtype == MG_FLOAT32, care = isinf(scale);
    if (!mg_is_float(x->dtype)) return mg_fail(MG_EDTYPE, x->dtype, 0);
    if (g->dtype != x->dtype) return mg_fail(MG_EDTYPE, g->dtype, x->dtype);
    if (y && y->dtype != x->dtype) return mg_fail(MG_EDTYPE, y->dtype, x->dtype);
    if (y && y->size != g->size) return mg_fail(MG_ESHAPE, y->size, g->size);
    if (mg_axes_mask(x->ndim, naxes, axes, &mask)) return NULL;
    mg_array *seen = back_unsqueeze(g, x, mask, keepdims), *mean = NULL, *seen_y = NULL;
    mg_array *partial = seen ? mg_copy(seen) : NULL;
    mg_array *root = y && partial ? mg_contiguous(y) : NULL;
    mg_array *dx = partial && (root || !y) ? mg_new(x->dtype, x->ndim, x->shape) : NULL;
    bool failed = !dx;
    if (dx)
        care |= (narrow ? back_partial_f32 : back_partial_f64)(
            partial->data, partial->data, y ? root->data : NULL, partial->size, scale);
    mg_release(root);
    if (dx && care && y) failed = !(seen_y = back_unsqueeze(y, x, mask, keepdims));
    if (!failed && care) {
        failed = back_with_care(dx, x, seen_y, seen, mask, centred, scale);
    } else if (!failed && !centred) {
        mg_nditer_run(dx, 2, (mg_array *[]){x, partial},
                      narrow ? back_scale_kernel_f32 : back_scale_kernel_f64);
    } else if (!failed && !back_in_cache(REDUCE_SUM, dx, x, mask, partial, partial)) {
        failed = !(mean = back_means(x, mask));
        if (!failed)
            mg_nditer_run(dx, 3, (mg_array *[]){x, mean, partial},
                          narrow ? back_lean_kernel_f32 : back_lean_kernel_f64);
        failed = failed || back_recentre(dx, x, mean, mask);
    }
    mg_release(mean);
    mg_release(partial);
    mg_release(seen_y);
    mg_release(seen);
    if (!failed) return dx;
    mg_release(dx);
    return NULL;
}

/* ---- shares of a logsumexp ---- */

#if MG_HAS_WIDE

/* x and dx as runs of n elements. Along each run y is one element or n neighbours, and so is g. A
 * long run is cut into pieces, and short runs are done some at a time. */
typedef struct {
    int dtype, ndim;
    int64_t itemsize, n, pieces, runs, per_block;
    int64_t shape[MG_MAX_NDIM], strides[2][MG_MAX_NDIM]; /* of the runs, in y and g */
    int64_t step[2];                                     /* within a run */
    char *dx;
    const char *x, *y, *g;
} back_runs_job;

static void back_runs_block(void *context, int64_t block) {
    const back_runs_job *job = context;
    bool narrow = job->dtype == MG_FLOAT32, plain = false;
    int64_t part = block % job->pieces, run = block / job->pieces * job->per_block;
    int64_t end = mg_min(run + job->per_block, job->runs), first = run;
    int64_t from = job->n * part / job->pieces, n = job->n * (part + 1) / job->pieces - from;
    const char *last_y = NULL, *last_g = NULL;
    for (; run < end; run++) {
        int64_t rest = run, at = (run * job->n + from) * job->itemsize;
        int64_t offset[2] = {from * job->step[0], from * job->step[1]};
        for (int d = job->ndim - 1; d >= 0; d--, rest /= job->shape[d + 1])
            for (int k = 0; k < 2; k++) offset[k] += rest % job->shape[d] * job->strides[k][d];
        const char *y = job->y + offset[0] * job->itemsize, *g = job->g + offset[1] * job->itemsize;
        if (run == first || y != last_y || g != last_g)
            plain = (narrow ? back_is_plain_f32 : back_is_plain_f64)(
                y, job->step[0] ? n : 1, g, job->step[1] ? n : 1);
        (narrow ? back_weigh_f32 : back_weigh_f64)(job->dx + at, job->x + at, y, job->step[0], g,
                                                   job->step[1], n, plain);
        last_y = y;
        last_g = g;
    }
}

/* The gradient run by run. False if x has no such runs, or they are short, or non-temporal stores
 * are better. */
static bool back_runs(mg_array *dx, const mg_array *x, const mg_array *y, const mg_array *g) {
    int64_t bytes = x->size * mg_itemsize(x->dtype);
    if (!mg_is_contiguous(x) || x->size < BACK_RUN) return false;
    if (mg_nditer_streams(bytes, 2 * bytes, false)) return false;
    back_runs_job job = {.dtype = x->dtype, .itemsize = mg_itemsize(x->dtype)};
    mg_broadcast_strides(y, x->ndim, x->shape, job.strides[0]);
    mg_broadcast_strides(g, x->ndim, x->shape, job.strides[1]);
    memcpy(job.shape, x->shape, sizeof(int64_t) * (size_t)x->ndim);
    job.ndim = mg_collapse(x->ndim, job.shape, 2, job.strides) - 1;
    job.n = job.shape[job.ndim];
    for (int k = 0; k < 2; k++) {
        job.step[k] = job.strides[k][job.ndim];
        if (job.step[k] != 0 && job.step[k] != 1) return false;
    }
    if (job.n < BACK_RUN) return false;
    job.runs = x->size / job.n;
    job.pieces = mg_ceil_div(job.n, NDITER_BLOCK);
    job.per_block = mg_max(NDITER_BLOCK / job.n, 1);
    job.dx = dx->data;
    job.x = x->data;
    job.y = y->data;
    job.g = g->data;
    mg_parallel_for(mg_ceil_div(job.runs, job.per_block) * job.pieces, back_runs_block, &job);
    return true;
}
#else
#define back_runs(dx, x, y, g) false
#endif

/* y = logsumexp of x: each element gets its share of g. */
mg_array *mg_logsumexp_vjp(mg_array *g, mg_array *x, mg_array *y, int naxes, const int32_t *axes,
                           int keepdims) {
    uint32_t mask;
    if (!mg_is_float(x->dtype)) return mg_fail(MG_EDTYPE, x->dtype, 0);
    if (g->dtype != x->dtype || y->dtype != x->dtype) return mg_fail(MG_EDTYPE, g->dtype, y->dtype);
    if (mg_axes_mask(x->ndim, naxes, axes, &mask)) return NULL;
    mg_array *seen_y = back_unsqueeze(y, x, mask, keepdims);
    mg_array *seen_g = seen_y ? back_unsqueeze(g, x, mask, keepdims) : NULL;
    mg_array *dx = seen_g ? mg_new(x->dtype, x->ndim, x->shape) : NULL;
    if (dx && !back_runs(dx, x, seen_y, seen_g))
        mg_nditer_run(dx, 3, (mg_array *[]){seen_g, x, seen_y},
                      x->dtype == MG_FLOAT32 ? back_weigh_kernel_f32 : back_weigh_kernel_f64);
    mg_release(seen_g);
    mg_release(seen_y);
    return dx;
}
