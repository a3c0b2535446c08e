/* pool.c: sums and maxima over pooling windows on the last one to three axes, and their gradients.
 *
 * A window has a start and a size of its own on every axis. Padding is thus cut off, and adaptive
 * pooling is the same operation.
 */
#include "kernels/iterate/contiguous.h"
#include "plan.h"
#include "base/system.h"
#include "threads/pool.h"
#include "simd/transpose.h"
#include "simd/wide.h"

#include <math.h>
#include <string.h>

/* Lane numbers that select the even, or the odd, elements of two vectors. */
#define POOL_EVEN_2 0, 2
#define POOL_EVEN_4 0, 2, 4, 6
#define POOL_EVEN_8 POOL_EVEN_4, 8, 10, 12, 14
#define POOL_EVEN_16 POOL_EVEN_8, 16, 18, 20, 22, 24, 26, 28, 30
#define POOL_ODD_2 1, 3
#define POOL_ODD_4 1, 3, 5, 7
#define POOL_ODD_8 POOL_ODD_4, 9, 11, 13, 15
#define POOL_ODD_16 POOL_ODD_8, 17, 19, 21, 23, 25, 27, 29, 31
#if MG_VECTOR_BYTES == 64
#define POOL_EVEN_f32 POOL_EVEN_16
#define POOL_ODD_f32 POOL_ODD_16
#define POOL_EVEN_f64 POOL_EVEN_8
#define POOL_ODD_f64 POOL_ODD_8
#elif MG_VECTOR_BYTES == 32
#define POOL_EVEN_f32 POOL_EVEN_8
#define POOL_ODD_f32 POOL_ODD_8
#define POOL_EVEN_f64 POOL_EVEN_4
#define POOL_ODD_f64 POOL_ODD_4
#else
#define POOL_EVEN_f32 POOL_EVEN_4
#define POOL_ODD_f32 POOL_ODD_4
#define POOL_EVEN_f64 POOL_EVEN_2
#define POOL_ODD_f64 POOL_ODD_2
#endif

/* Loads as many elements as there are doubles in a vector as doubles, and stores them back. */
MG_INLINE vec_f64 pool_widen_f64(const double *p) { return v_load_f64(p); }
MG_INLINE void pool_narrow_f64(double *p, vec_f64 v) { v_store_f64(p, v); }
#if MG_HAS_WIDE
MG_INLINE vec_f64 pool_widen_f32(const float *p) { return v_load_floats(p); }
MG_INLINE vec_f64 pool_widen_both_f32(const float *p, const float *q) {
    return v_load_sums_of_floats(p, q);
}
MG_INLINE void pool_narrow_f32(float *p, vec_f64 v) { v_store_floats(p, v); }
#else
MG_INLINE vec_f64 pool_widen_f32(const float *p) { return (vec_f64){(double)p[0], (double)p[1]}; }
MG_INLINE vec_f64 pool_widen_both_f32(const float *p, const float *q) {
    return (vec_f64){(double)(p[0] + q[0]), (double)(p[1] + q[1])};
}
MG_INLINE void pool_narrow_f32(float *p, vec_f64 v) {
    p[0] = (float)v[0];
    p[1] = (float)v[1];
}
#endif

MG_INLINE vec_f64 pool_widen_both_f64(const double *p, const double *q) {
    return v_load_f64(p) + v_load_f64(q);
}

#define MG_REAL 64
#include "max.inc.c"
#define MG_REAL 64
#include "sum.inc.c"
#define MG_REAL 64
#include "small_planes.inc.c"
#define MG_REAL 32
#include "max.inc.c"
#define MG_REAL 32
#include "sum.inc.c"
#define MG_REAL 32
#include "small_planes.inc.c"

/* Integers, one by one: the maxima, or their indices. */
static void pool_max_i64(int64_t *restrict out, const int64_t *restrict x, const pool_set *b,
                        bool places) {
    for (pool_row row = pool_first(b); row.left > 0; pool_next(b, &row, 1))
        for (int64_t i = 0; i < b->count[2]; i++) {
            int64_t best = pool_line(b, &row, 0) + b->start[2][i];
            for (int64_t q = 0; q < row.lines; q++)
                for (int64_t j = 0; j < b->size[2][i]; j++) {
                    int64_t at = pool_line(b, &row, q) + b->start[2][i] + j * b->step[2];
                    if (x[at] > x[best]) best = at;
                }
            *out++ = places ? best : x[best];
        }
}

/* ---- planes ---------------------------------------------------------------------------------- */

typedef struct {
    const pool_set *windows;
    int op, dtype;
    int64_t planes, per_block, n, m; /* elements and windows of a plane */
    int64_t together;                /* planes that are worked on at a time */
    bool interleaved;                      /* each plane is a lane */
    char *out;
    const char *x, *g; /* x: with elements of whole planes; g: with one element for each window */
} pool_job;

/* Computes `count` planes from this one on: one, or as many as are worked on together. */
static void pool_plane(const pool_job *job, int64_t plane, int64_t count) {
    const pool_set *b = job->windows;
    int64_t itemsize = mg_itemsize(job->dtype);
    int64_t full = plane * job->n * itemsize, windows = plane * job->m * itemsize;
    const void *x = job->x ? job->x + full : NULL, *g = job->g ? job->g + windows : NULL;
    void *out = job->out + (job->op == POOL_SPREAD || job->op == POOL_MAX_VJP ? full
                            : job->op == POOL_ARGMAX ? plane * job->m * mg_itemsize(MG_INT64)
                                                     : windows);
    bool f32 = job->dtype == MG_FLOAT32;
    if (job->interleaved) {
        if (f32) pool_lanes_f32(job->op, out, x, g, b, job->n, job->m, count);
        else pool_lanes_f64(job->op, out, x, g, b, job->n, job->m, count);
        return;
    }
    if (count > 1) {
        if (f32) pool_planes_mean_f32(out, x, b, job->n);
        else pool_planes_mean_f64(out, x, b, job->n);
        return;
    }
    if (job->op == POOL_MAX_VJP && !b->fills && !(MG_HAS_WIDE && b->doubles))
        memset(out, 0, (size_t)(job->n * itemsize));
    if (job->op == POOL_SUM) {
        if (f32) pool_sum_f32(out, x, b);
        else pool_sum_f64(out, x, b);
    } else if (job->op == POOL_SPREAD) {
        if (f32) pool_spread_f32(out, g, b);
        else pool_spread_f64(out, g, b);
    } else if (job->dtype == MG_INT64) {
        pool_max_i64(out, x, b, job->op == POOL_ARGMAX);
    } else if (job->op == POOL_MAX) {
        if (f32) pool_max_f32(out, x, b);
        else pool_max_f64(out, x, b);
    } else {
        int64_t *places = job->op == POOL_ARGMAX ? out : NULL;
        if (f32) pool_argmax_f32(places, out, g, x, b);
        else pool_argmax_f64(places, out, g, x, b);
    }
}

static void pool_block(void *context, int64_t block) {
    const pool_job *job = context;
    int64_t end = mg_min((block + 1) * job->per_block, job->planes);
    for (int64_t plane = block * job->per_block, count; plane < end; plane += count) {
        count = mg_min(job->together, end - plane);
        if (!job->interleaved && count < job->together) count = 1;
        pool_plane(job, plane, count);
    }
}

/* Decides which planes are worked on together: small ones as lanes; for means of whole planes as
 * many as there are doubles in a vector. Maxima of pairs whose line fills a third of a vector have
 * a faster way. */
static void pool_put_together(pool_job *job, pool_set *b) {
    bool sums = job->op == POOL_SUM || job->op == POOL_SPREAD, whole = sums && b->single;
    int64_t lanes = MG_VECTOR_BYTES / mg_itemsize(job->dtype);
    bool small = mg_max(job->n, job->m) <= POOL_SMALL;
    job->interleaved = small && !whole && job->planes >= lanes / 2 && job->dtype != MG_INT64 &&
                 job->op != POOL_ARGMAX && (sums || !b->pairs || 3 * b->count[2] < lanes);
    bool means = job->op == POOL_SUM && whole && job->n <= POOL_PIECE;
    job->together = job->interleaved ? lanes : means ? POOL_WIDE : 1;
    if (job->interleaved) b->n[2] *= lanes;
}

/* ---- runs ------------------------------------------------------------------------------------ */

/* Fills out from x, which has whole planes, or from g, which has an element for each window, or
 * from both. `full`: number of elements of the whole planes. 0 or an error code. */
static int pool_run(int op, mg_array *out, mg_array *x, mg_array *g, int64_t full, pool_set *b) {
    mg_array *from_x = NULL, *from_g = NULL;
    pool_job job = {.windows = b, .op = op, .dtype = x ? x->dtype : g->dtype, .out = out->data};
    job.n = b->n[0] * b->n[1] * b->n[2];
    job.m = b->count[0] * b->count[1] * b->count[2];
    if (full == 0) return MG_OK;
    if (job.dtype == MG_FLOAT32 && x && op != POOL_SUM && b->reach > INT32_MAX)
        return mg_fail_code(MG_ESIZE, 0, 0); /* indices are 32-bit */
    if (job.m == 0) {
        memset(out->data, 0, (size_t)(out->size * mg_itemsize(out->dtype)));
        return MG_OK;
    }
    /* Zen 4 prefetches memory that is read in order itself, if it comes from far away. */
    bool follows = mg_system_zen() == 4 && full * mg_itemsize(job.dtype) > POOL_IN_CACHE;
    b->ahead = follows ? 0 : POOL_AHEAD;
    int code = MG_OK;
    if (x && !(from_x = mg_contiguous(x))) code = mg_error();
    if (!code && g && !(from_g = mg_contiguous(g))) code = mg_error();
    if (!code) {
        job.x = from_x ? from_x->data : NULL;
        job.g = from_g ? from_g->data : NULL;
        job.planes = full / job.n;
        pool_put_together(&job, b);
        int64_t some = mg_max(POOL_GRAIN / (job.n + job.m), 1);
        job.per_block = mg_ceil_div(some, job.together) * job.together;
        mg_parallel_for(mg_ceil_div(job.planes, job.per_block), pool_block, &job);
    }
    mg_release(from_x);
    mg_release(from_g);
    return code;
}

static mg_array *pool_filled(int code, mg_array *out) {
    if (!code) return out;
    mg_release(out);
    return NULL;
}

/* A new array with an element for each window. */
static mg_array *pool_reduce(int op, mg_array *x, const mg_windows *windows) {
    pool_set b;
    int64_t shape[MG_MAX_NDIM];
    int lead = x->ndim - (int)windows->axes;
    if (lead < 0) return mg_fail(MG_ENDIM, windows->axes, x->ndim);
    if (pool_read(&b, x->shape + lead, windows)) return NULL;
    for (int d = 0; d < x->ndim; d++) shape[d] = d < lead ? x->shape[d] : windows->count[d - lead];
    mg_array *y = mg_new(op == POOL_ARGMAX ? MG_INT64 : x->dtype, x->ndim, shape);
    return y ? pool_filled(pool_run(op, y, x, NULL, x->size, &b), y) : NULL;
}

/* Reads the windows on the last axes of a shape, and checks that g has an element for each. 0 or an
 * error code. */
static int pool_match(pool_set *b, const mg_array *g, int ndim, const int64_t *shape,
                      const mg_windows *windows) {
    int lead = ndim - (int)windows->axes;
    if (lead < 0 || g->ndim != ndim) return mg_fail_code(MG_ENDIM, g->ndim, ndim);
    for (int d = 0; d < ndim; d++) {
        int64_t expected = d < lead ? shape[d] : windows->count[d - lead];
        if (g->shape[d] != expected) return mg_fail_code(MG_ESHAPE, g->shape[d], expected);
    }
    return pool_read(b, shape + lead, windows);
}

/* ---- arrays ---------------------------------------------------------------------------------- */

mg_array *mg_pool_sum(mg_array *x, const mg_windows *windows) {
    if (!mg_is_float(x->dtype)) return mg_fail(MG_EDTYPE, x->dtype, 0);
    return pool_reduce(POOL_SUM, x, windows);
}

mg_array *mg_pool_sum_vjp(mg_array *g, int ndim, const int64_t *shape, const mg_windows *windows) {
    pool_set b;
    if (!mg_is_float(g->dtype)) return mg_fail(MG_EDTYPE, g->dtype, 0);
    if (pool_match(&b, g, ndim, shape, windows)) return NULL;
    if (!b.covers) { /* columns between the windows are written too */
        b.tiled = false;
        b.joined = 1;
    }
    mg_array *out = mg_new(g->dtype, ndim, shape);
    return out ? pool_filled(pool_run(POOL_SPREAD, out, NULL, g, out->size, &b), out) : NULL;
}

mg_array *mg_pool_max(mg_array *x, const mg_windows *windows) {
    if (x->dtype == MG_BOOL) return mg_fail(MG_EDTYPE, x->dtype, 0);
    return pool_reduce(POOL_MAX, x, windows);
}

mg_array *mg_pool_argmax(mg_array *x, const mg_windows *windows) {
    if (x->dtype == MG_BOOL) return mg_fail(MG_EDTYPE, x->dtype, 0);
    return pool_reduce(POOL_ARGMAX, x, windows);
}

mg_array *mg_pool_max_vjp(mg_array *g, mg_array *x, const mg_windows *windows) {
    pool_set b;
    if (!mg_is_float(x->dtype) || g->dtype != x->dtype) return mg_fail(MG_EDTYPE, g->dtype, 0);
    if (pool_match(&b, g, x->ndim, x->shape, windows)) return NULL;
    mg_array *out = mg_new(x->dtype, x->ndim, x->shape);
    return out ? pool_filled(pool_run(POOL_MAX_VJP, out, x, g, x->size, &b), out) : NULL;
}

