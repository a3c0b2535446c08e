/* reduce.c: sum, mean, prod, max, min, all, any, var and logsumexp over any axes.
 *
 * Reduced axes with no kept axis of size > 1 between them form one group, which is reduced as one
 * row-major index. The last group goes first. Within a group terms are joined in the order given in
 * reduce.h. Shape and axes alone decide the order. A result thus has the same bits for every memory
 * layout and thread count.
 */
#include "kernels/iterate/contiguous.h"
#include "reduce.h"
#include "threads/pool.h"
#include "simd/exponent.h"
#include "kernels/iterate/nditer.h"

#include <float.h>
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>

#define MG_REAL 32
#include "columns.inc.c"
#define MG_REAL 64
#include "columns.inc.c"
#define MG_REAL 32
#include "pair.inc.c"
#define MG_REAL 64
#include "pair.inc.c"
#define MG_REAL 32
#include "results.inc.c"
#define MG_REAL 64
#include "results.inc.c"

/* ---- planning ---- */

int64_t mg_reduce_extent(const mg_array *x, uint32_t mask) {
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
    p->left = NULL;
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

/* ---- expanded arrays ---- */

/* A reduced index without a single stride. Its elements are gathered a chunk at a time. */
typedef struct {
    const char *data;
    int itemsize, ndim;
    int64_t shape[MG_MAX_NDIM], strides[1][MG_MAX_NDIM];
} reduce_gather;

/* True if elements share memory. A copy could then take any amount of memory. */
static bool reduce_is_expanded(const mg_array *x) {
    for (int d = 0; d < x->ndim; d++)
        if (x->strides[d] == 0 && x->shape[d] > 1) return true;
    return false;
}

mg_array mg_reduce_fold(const mg_array *x, uint32_t mask, int64_t *folded) {
    mg_array seen = mg_header(x);
    *folded = 1;
    for (int d = 0; d < x->ndim; d++) {
        if (!(mask >> d & 1) || x->strides[d] != 0 || x->shape[d] <= 1) continue;
        *folded *= x->shape[d];
        seen.shape[d] = 1;
    }
    seen.size = x->size / *folded;
    return seen;
}

/* Plans one row for each kept element, for an x without a layout. The rows are gathered. */
static void reduce_lay_out_gathered(reduce_plan *p, reduce_gather *gather, const mg_array *x,
                                    uint32_t group, const mg_array *c) {
    mg_array kept = mg_header(x);
    int axes = 0;
    for (int d = 0; d < x->ndim; d++) {
        if (!(group >> d & 1)) continue;
        gather->shape[axes] = x->shape[d];
        gather->strides[0][axes++] = x->strides[d];
        kept.shape[d] = 1;
    }
    gather->data = x->data;
    gather->itemsize = (int)mg_itemsize(x->dtype);
    gather->ndim = mg_collapse(axes, gather->shape, 1, gather->strides);
    mg_reduce_layout(p, &kept, group, c); /* without a reduced index there always is a layout */
    p->columns = false;
    p->n = mg_reduce_extent(x, group);
    p->stride = 1;
}

/* Copies n elements of the line that begins at element x, from number `first` on. */
static void reduce_gather_line(const void *context, char *to, int64_t x, int64_t first, int64_t n) {
    const reduce_gather *gather = context;
    int64_t at[MG_MAX_NDIM];
    int inner = gather->ndim - 1, itemsize = gather->itemsize;
    const char *from = gather->data + x * itemsize;
    for (int d = inner; d >= 0; d--) {
        at[d] = first % gather->shape[d];
        first /= gather->shape[d];
        from += at[d] * gather->strides[0][d] * itemsize;
    }
    while (n > 0) {
        int64_t run = mg_min(n, gather->shape[inner] - at[inner]);
        mg_copy_run(to, from, run, gather->strides[0][inner], itemsize);
        to += run * itemsize;
        n -= run;
        at[inner] += run;
        from += run * gather->strides[0][inner] * itemsize;
        for (int d = inner; d > 0 && at[d] == gather->shape[d]; d--) {
            from -= at[d] * gather->strides[0][d] * itemsize;
            at[d] = 0;
            at[d - 1]++;
            from += gather->strides[0][d - 1] * itemsize;
        }
    }
}

/* ---- running a plan ---- */

void mg_reduce_piece(int kind, int dtype, const reduce_plan *p, void *y, void *y2, const void *x,
                     int64_t run, int64_t n, const void *c) {
    (dtype == MG_FLOAT32 ? reduce_piece_f32 : reduce_piece_f64)(kind, p, y, y2, x, run, n, c);
}

typedef struct {
    const reduce_plan *plan;
    const reduce_terms *terms; /* NULL if the terms lie in memory, with the plan's stride */
    int kind, dtype;
    int64_t itemsize, kept; /* kept: elements of the result */
    const char *x, *c;
    char *y, *y2;           /* one result for each chunk: y[chunk][kept] */
    int64_t chunk, chunks, strips, strip, pieces, per_block;
    int64_t along; /* chunks of one long row in a piece; 0 if rows are short */
} reduce_job;

/* Reduces some chunks of one row as if they were rows. */
static void reduce_along_row(const reduce_job *job, int64_t piece) {
    const reduce_plan *p = job->plan;
    int64_t pieces = mg_ceil_div(job->chunks, job->along), row = piece / pieces, x, y, c;
    int64_t first = piece % pieces * job->along, end = mg_min(first + job->along, job->chunks);
    int64_t whole = mg_min(end, p->n / job->chunk);
    reduce_seek(p, row / p->run, row % p->run, &x, &y, &c);
    reduce_plan rows = {.run_x = job->chunk, .run_y = job->kept};
    if (job->kind == REDUCE_DOT) rows.run_c = job->chunk;
    for (int64_t some; first < end; first += some) {
        some = mg_max(whole - first, 1);
        int64_t at = (x + first * job->chunk) * job->itemsize;
        int64_t to = (y + first * job->kept) * job->itemsize;
        const char *centre = job->kind == REDUCE_DOT ? job->c + at : job->c + c * job->itemsize;
        mg_reduce_piece(job->kind, job->dtype, &rows, job->y + to, job->y2 ? job->y2 + to : NULL,
                        job->x + at, some, mg_min(job->chunk, p->n - first * job->chunk),
                        job->c ? centre : NULL);
    }
}

/* Puts a strip of rows, or a chunk of one row, in order and reduces it. */
static void reduce_put_in_order(const reduce_job *job, int64_t piece) {
    _Alignas(64) char stage[REDUCE_CHUNK * sizeof(double)];
    const reduce_plan *p = job->plan;
    int64_t first = piece % job->strips * job->strip, x, y, c;
    int64_t chunk = reduce_seek(p, piece / job->strips, first, &x, &y, &c);
    int64_t start = chunk * job->chunk, n = mg_min(job->chunk, p->n - start);
    int64_t rows = mg_min(job->strip, p->run - first);
    reduce_plan dense = {.run_x = n, .run_y = p->run_y};
    job->terms->put(job->terms->context, stage, x, start, rows * n);
    y = (y + chunk * job->kept) * job->itemsize;
    mg_reduce_piece(job->kind, job->dtype, &dense, job->y + y, job->y2 ? job->y2 + y : NULL, stage,
                    rows, n, job->c ? job->c + c * job->itemsize : NULL);
}

static void reduce_pieces(const reduce_job *job, int64_t block) {
    const reduce_plan *p = job->plan;
    int64_t end = mg_min((block + 1) * job->per_block, job->pieces);
    for (int64_t piece = block * job->per_block; piece < end; piece++) {
        if (job->along || job->terms) {
            (job->terms ? reduce_put_in_order : reduce_along_row)(job, piece);
            continue;
        }
        int64_t first = piece % job->strips * job->strip, x, y, c;
        int64_t chunk = reduce_seek(p, piece / job->strips, first, &x, &y, &c);
        int64_t start = chunk * job->chunk;
        x += start * p->stride;
        y += chunk * job->kept;
        if (job->kind == REDUCE_DOT) c = x;
        mg_reduce_piece(job->kind, job->dtype, p, job->y + y * job->itemsize,
                        job->y2 ? job->y2 + y * job->itemsize : NULL, job->x + x * job->itemsize,
                        mg_min(job->strip, p->run - first), mg_min(job->chunk, p->n - start),
                        job->c ? job->c + c * job->itemsize : NULL);
    }
}

static void reduce_block_of_pieces(void *context, int64_t block) {
    const reduce_job *job = context;
    if (!job->plan->left) {
        reduce_pieces(job, block);
        return;
    }
    unsigned before = apart_watch();
    reduce_pieces(job, block);
    if (apart_left(before)) *job->plan->left = true;
}

/* `x` may lack memory if `terms` are given. */
static int reduce_run(int kind, const reduce_plan *p, const reduce_terms *terms, mg_array *y,
                      mg_array *y2, const mg_array *x, const mg_array *c) {
    reduce_job job = {.plan = p, .kind = kind, .dtype = x->dtype, .kept = y->size};
    job.terms = terms;
    job.itemsize = mg_itemsize(x->dtype);
    job.x = x->data;
    job.c = c ? c->data : NULL;
    job.y = y->data;
    job.y2 = y2 ? y2->data : NULL;
    job.chunk = p->columns ? REDUCE_ROWS : REDUCE_CHUNK;
    job.chunks = mg_ceil_div(p->n, job.chunk);
    size_t capacity = 0;
    if (job.chunks > 1) {
        int64_t bytes = job.chunks * job.kept * job.itemsize;
        job.y = mg_block_take((size_t)(y2 ? 2 * bytes : bytes), &capacity);
        if (!job.y) return mg_fail_code(MG_ENOMEM, bytes, 0);
        if (y2) job.y2 = job.y + bytes;
    }
    int64_t n = mg_min(p->n, job.chunk);
    int64_t grain = mg_max(x->size / REDUCE_PIECES / mg_get_num_threads(), REDUCE_GRAIN);
    job.strip = p->columns ? REDUCE_WIDE / job.itemsize : mg_max(grain / n, 1);
    if (terms) job.strip = terms->dense ? mg_max(REDUCE_CHUNK / p->n, 1) : 1;
    job.strip = mg_min(job.strip, p->run);
    job.strips = mg_ceil_div(p->run, job.strip);
    job.pieces = job.strips * p->count * job.chunks;
    if (job.chunks > 1 && !p->columns && !terms) {
        job.along = grain / REDUCE_CHUNK;
        job.strip = mg_min(job.along, job.chunks);
        job.pieces = p->run * p->count * mg_ceil_div(job.chunks, job.along);
    }
    if (n * job.strip * job.pieces < REDUCE_PARALLEL) {
        job.per_block = job.pieces;
        reduce_block_of_pieces(&job, 0);
    } else {
        job.per_block = mg_ceil_div(REDUCE_GRAIN, n * job.strip);
        if (p->columns)
            job.per_block = mg_max(job.per_block,
                                   job.pieces / mg_get_num_threads() / REDUCE_SHARES);
        mg_parallel_for(mg_ceil_div(job.pieces, job.per_block), reduce_block_of_pieces, &job);
    }
    if (job.chunks > 1) {
        unsigned before = p->left ? apart_watch() : 0;
        (x->dtype == MG_FLOAT32 ? reduce_parts_f32 : reduce_parts_f64)(
            kind, y->data, y2 ? y2->data : NULL, job.y, job.y2, job.chunks, job.chunk, job.kept,
            p->n);
        if (p->left && apart_left(before)) *p->left = true;
        mg_block_give(job.y, capacity);
    }
    return MG_OK;
}

int mg_reduce_run(int kind, const reduce_plan *p, mg_array *y, mg_array *y2, const mg_array *x,
                  const mg_array *c) {
    return reduce_run(kind, p, NULL, y, y2, x, c);
}

/* Reduces an expanded x without a layout, without copying all of it. */
static int reduce_run_expanded(int kind, mg_array *y, mg_array *y2, const mg_array *x,
                               uint32_t group, const mg_array *c, _Atomic bool *left) {
    reduce_plan plan;
    reduce_gather gather;
    reduce_lay_out_gathered(&plan, &gather, x, group, c);
    plan.left = left;
    if (plan.n > REDUCE_MOST) return mg_fail_code(MG_ENOMEM, x->size * mg_itemsize(x->dtype), 0);
    return reduce_run(kind, &plan, &(reduce_terms){reduce_gather_line, &gather, false}, y, y2, x, c);
}

/* ---- groups of axes ---- */

/* A new array of x's shape with size 1 on the axes in `mask`. */
static mg_array *reduce_new(int dtype, const mg_array *x, uint32_t mask) {
    int64_t shape[MG_MAX_NDIM];
    for (int d = 0; d < x->ndim; d++) shape[d] = mask >> d & 1 ? 1 : x->shape[d];
    return mg_new(dtype, x->ndim, shape);
}

static void reduce_fill(mg_array *y, double value) {
    (y->dtype == MG_FLOAT32 ? reduce_fill_f32 : reduce_fill_f64)(y->data, y->size, value);
}

/* x reduced over one group, whose axes stay with size 1. `second` receives the second values of a
 * pair, else it is NULL. `left` (or NULL) is set if a product overflowed or underflowed. */
static mg_array *reduce_group(int kind, mg_array *x, uint32_t group, const mg_array *c,
                              mg_array **second, _Atomic bool *left) {
    reduce_plan plan;
    mg_array *y = reduce_new(x->dtype, x, group), *from = NULL;
    if (second) *second = reduce_new(x->dtype, x, group);
    if (!y || (second && !*second)) goto failed;
    if (y->size == 0) return y;
    if (x->size == 0) {
        reduce_fill(y, reduce_identity(kind));
        if (second) reduce_fill(*second, 0);
        return y;
    }
    from = mg_retain(x);
    if (!mg_reduce_layout(&plan, from, group, c)) {
        if (reduce_is_expanded(x)) {
            if (reduce_run_expanded(kind, y, second ? *second : NULL, x, group, c, left))
                goto failed;
            mg_release(from);
            return y;
        }
        mg_release(from);
        from = mg_copy(x); /* a contiguous array always has a layout */
        if (from) mg_reduce_layout(&plan, from, group, c);
    }
    plan.left = left;
    if (!from || mg_reduce_run(kind, &plan, y, second ? *second : NULL, from, c)) goto failed;
    mg_release(from);
    return y;
failed:
    mg_release(from);
    mg_release(y);
    if (second) {
        mg_release(*second);
        *second = NULL; /* the caller releases what it finds there */
    }
    return NULL;
}

/* Joins each element of y with itself `times` times: multiplies it, or raises it to a power. */
static void reduce_repeat(int op, mg_array *y, int64_t times) {
    uint64_t *value = (uint64_t *)y->data;
    for (int64_t i = 0; i < y->size && op == MG_SUM; i++) value[i] *= (uint64_t)times;
    for (int64_t i = 0; i < y->size && op == MG_PROD; i++) {
        uint64_t power = 1, base = value[i];
        for (int64_t left = times; left > 0; left >>= 1, base *= base)
            if (left & 1) power *= base;
        value[i] = power;
    }
}

/* The same for integers and truth values. `all` and `any` first convert x to truth values. Elements
 * that share memory are read once. */
static mg_array *reduce_group_plain(int op, mg_array *x, uint32_t group) {
    bool truth = op == MG_ALL || op == MG_ANY;
    int dtype = truth ? MG_BOOL : op == MG_MAX || op == MG_MIN ? x->dtype : MG_INT64;
    int64_t times;
    mg_array *y = reduce_new(dtype, x, group), seen = mg_reduce_fold(x, group, &times);
    if (!y) return NULL;
    mg_array *from = truth && x->dtype != MG_BOOL ? mg_cast(&seen, MG_BOOL)
                     : mg_is_contiguous(&seen)    ? &seen
                                                  : mg_copy(&seen);
    if (!from) {
        mg_release(y);
        return NULL;
    }
    mg_reduce_plain(op, y, from, group);
    if (times > 1 && (op == MG_SUM || op == MG_PROD)) reduce_repeat(op, y, times);
    if (from != &seen) mg_release(from);
    return y;
}

/* The first step makes the terms of x and c, if the kind has a c. The other steps add them up. */
static mg_array *reduce_groups(bool plain, int op, mg_array *x, uint32_t mask, const mg_array *c,
                               _Atomic bool *left) {
    mg_array *y = mg_retain(x);
    do {
        uint32_t group = reduce_last_group(y, mask);
        mg_array *next = plain ? reduce_group_plain(op, y, group)
                               : reduce_group(op, y, group, c, NULL, left);
        mg_release(y);
        y = next;
        mask &= ~group;
        if (c) op = REDUCE_SUM;
        c = NULL;
    } while (y && mask);
    return y;
}

mg_array *mg_reduce_groups(int kind, mg_array *x, uint32_t mask, const mg_array *c) {
    return reduce_groups(false, kind, x, mask, c, NULL);
}

/* Drops the size-1 axes in `mask` from y, which has no other owner yet. */
static mg_array *reduce_squeeze(mg_array *y, uint32_t mask, int keepdims) {
    if (!y || keepdims) return y;
    int ndim = 0;
    for (int d = 0; d < y->ndim; d++)
        if (!(mask >> d & 1)) y->shape[ndim++] = y->shape[d];
    y->ndim = ndim;
    mg_row_major(ndim, y->shape, y->strides);
    return y;
}

void mg_reduce_divide(mg_array *y, double divisor, bool root) {
    (y->dtype == MG_FLOAT32 ? reduce_divide_f32 : reduce_divide_f64)(y->data, y->size, divisor,
                                                                    root);
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

/* True if a sum of n of these integers may overflow int64. */
static bool reduce_may_wrap(mg_array *x, int64_t n) {
    if (x->dtype != MG_INT64 || x->size == 0) return false;
    mg_array *least = mg_reduce(MG_MIN, x, -1, NULL, 0), *most = mg_reduce(MG_MAX, x, -1, NULL, 0);
    bool within = least && most && *(const int64_t *)least->data >= INT64_MIN / n &&
                  *(const int64_t *)most->data <= INT64_MAX / n;
    mg_release(least);
    mg_release(most);
    return !within;
}

/* The sums of integers in float64. */
static mg_array *reduce_wide_sum(mg_array *x, int naxes, const int32_t *axes) {
    mg_array *wide = mg_cast(x, MG_FLOAT64);
    mg_array *sum = wide ? mg_reduce(MG_SUM, wide, naxes, axes, 1) : NULL;
    mg_release(wide);
    return sum;
}

/* The mean of integers, in float32, from their sum in int64. `wide`, the sum in float64, is given
 * if the int64 sum may have wrapped around. It tells how often. */
static mg_array *reduce_mean_of_sum(mg_array *sum, const mg_array *wide, int64_t n) {
    mg_array *y = sum ? mg_new(MG_FLOAT32, sum->ndim, sum->shape) : NULL;
    for (int64_t i = 0; y && i < y->size; i++) {
        double s = (double)((const int64_t *)sum->data)[i];
        if (wide) s += 0x1p64 * floor((((const double *)wide->data)[i] - s) * 0x1p-64 + 0.5);
        ((float *)y->data)[i] = (float)(s / (double)n);
    }
    mg_release(sum);
    return y;
}

/* A view of x with its reduced axes moved behind the others. */
static mg_array *reduce_transposed(mg_array *x, uint32_t mask) {
    int32_t axes[MG_MAX_NDIM], count = 0;
    for (uint32_t last = 0; last < 2; last++)
        for (int32_t d = 0; d < x->ndim; d++)
            if ((mask >> d & 1) == last) axes[count++] = d;
    return mg_view_permute(x, x->ndim, axes);
}

/* Recomputes the products of lines in y, with separate exponents. 0 or an error code. */
static int reduce_products_apart(mg_array *y, mg_array *x, uint32_t mask) {
    mg_array *transposed = reduce_transposed(x, mask), *lines = transposed ? mg_contiguous(transposed) : NULL;
    int64_t n = mg_reduce_extent(x, mask);
    for (int64_t i = 0; lines && i < y->size; i++)
        (x->dtype == MG_FLOAT32 ? reduce_product_apart_f32 : reduce_product_apart_f64)(
            y->data, lines->data, i, n);
    int code = lines ? MG_OK : MG_ENOMEM;
    mg_release(lines);
    mg_release(transposed);
    return code;
}

static const int reduce_kind_of[] = {[MG_SUM] = REDUCE_SUM,
                                     [MG_MEAN] = REDUCE_SUM,
                                     [MG_PROD] = REDUCE_PROD,
                                     [MG_MAX] = REDUCE_MAX,
                                     [MG_MIN] = REDUCE_MIN};

mg_array *mg_reduce_made(int op, int dtype, int ndim, const int64_t *shape, int axes, int keepdims,
                         const reduce_terms *terms) {
    mg_array x = {.dtype = dtype, .ndim = ndim, .size = 1};
    uint32_t mask = 0;
    for (int d = 0; d < ndim; d++) {
        x.size *= x.shape[d] = shape[d];
        if (d >= ndim - axes) mask |= 1u << d;
    }
    mg_row_major(ndim, x.shape, x.strides);
    reduce_plan plan;
    mg_array *y = reduce_new(dtype, &x, mask);
    mg_reduce_layout(&plan, &x, mask, NULL);
    plan.left = NULL;
    plan.columns = false; /* of lines of one term */
    if (y && reduce_run(reduce_kind_of[op], &plan, terms, y, NULL, &x, NULL)) {
        mg_release(y);
        return NULL;
    }
    if (y && op == MG_MEAN) mg_reduce_divide(y, (double)plan.n, false);
    return reduce_squeeze(y, mask, keepdims);
}

mg_array *mg_reduce(int op, mg_array *x, int naxes, const int32_t *axes, int keepdims) {
    uint32_t mask;
    if (op < MG_SUM || op > MG_ANY) return mg_fail(MG_EARG, op, 0);
    if (mg_axes_mask(x->ndim, naxes, axes, &mask)) return NULL;
    if ((op == MG_MAX || op == MG_MIN) && mg_reduce_check_empty(x, mask)) return NULL;
    bool plain = !mg_is_float(x->dtype) || op == MG_ALL || op == MG_ANY;
    int step = !plain ? reduce_kind_of[op] : op == MG_MEAN ? MG_SUM : op;
    _Atomic bool left = false;
    bool product = op == MG_PROD && !plain;
    mg_array *y = reduce_groups(plain, step, x, mask, NULL, product ? &left : NULL);
    if (y && left && reduce_products_apart(y, x, mask)) {
        mg_release(y);
        return NULL;
    }
    if (op == MG_MEAN) {
        int64_t n = mg_reduce_extent(x, mask);
        bool may_wrap = plain && y && reduce_may_wrap(x, n);
        mg_array *wide = may_wrap ? reduce_wide_sum(x, naxes, axes) : NULL;
        if (may_wrap && !wide) {
            mg_release(y);
            return NULL;
        }
        if (plain) y = reduce_mean_of_sum(y, wide, n);
        else if (y) mg_reduce_divide(y, (double)n, false);
        mg_release(wide);
    }
    return reduce_squeeze(y, mask, keepdims);
}

/* A view of the first element of each line. */
static mg_array *reduce_first(mg_array *x, uint32_t mask) {
    int64_t start[MG_MAX_NDIM] = {0}, step[MG_MAX_NDIM], count[MG_MAX_NDIM];
    for (int d = 0; d < x->ndim; d++) {
        step[d] = 1;
        count[d] = mask >> d & 1 ? mg_min(x->shape[d], 1) : x->shape[d];
    }
    return mg_view_slice(x, start, step, count);
}

/* The sums of (x - mean)^2 over `mask`, whose axes stay with size 1. With several groups of axes,
 * the squares about the means of one group are added up over the next group. The squares of the
 * means themselves are computed in the same way. */
static mg_array *reduce_squares(mg_array *x, uint32_t mask) {
    mg_array *squares = NULL, *sums = mg_retain(x);
    double terms = 1; /* in each of the sums */
    do {
        uint32_t group = reduce_last_group(sums, mask);
        mg_array *second = NULL, *c = reduce_first(sums, mask);
        double size = (double)mg_reduce_extent(sums, group);
        mg_array *next = c ? reduce_group(REDUCE_MOMENTS, sums, group, c, &second, NULL) : NULL;
        mg_release(c);
        mg_release(sums);
        sums = next;
        if (sums && squares) {
            mg_array *all = reduce_group(REDUCE_SUM, squares, group, NULL, NULL, NULL);
            if (all)
                (all->dtype == MG_FLOAT32 ? reduce_add_between_f32 : reduce_add_between_f64)(
                    all->data, second->data, all->size, terms);
            mg_release(second);
            second = all;
        }
        mg_release(squares);
        squares = second;
        terms *= size;
        mask &= ~group;
    } while (sums && squares && mask);
    if (!sums) {
        mg_release(squares);
        squares = NULL;
    }
    mg_release(sums);
    return squares;
}

/* The sums of squares over `mask`, about the mean or about 0. */
static mg_array *reduce_sums_of_squares(mg_array *x, uint32_t mask, bool centred) {
    if (centred) return reduce_squares(x, mask);
    mg_array *zero = reduce_new(x->dtype, x, UINT32_MAX);
    if (!zero) return NULL;
    reduce_fill(zero, 0);
    mg_array *y = mg_reduce_groups(REDUCE_SQUARES, x, mask, zero);
    mg_release(zero);
    return y;
}

mg_array *mg_reduce_scaled(mg_array *x, mg_array *factor) {
    mg_array *y = mg_new(x->dtype, x->ndim, x->shape);
    if (y)
        mg_nditer_run(y, 2, (mg_array *[]){x, factor},
                      x->dtype == MG_FLOAT32 ? reduce_times_f32 : reduce_times_f64);
    return y;
}

int mg_squares_lost(mg_array *sums, int64_t count) {
    bool narrow = sums->dtype == MG_FLOAT32;
    double low = 2 * (double)count * (narrow ? FLT_MIN : DBL_MIN);
    if (!mg_is_contiguous(sums) || !mg_is_float(sums->dtype)) return true;
    return (narrow ? reduce_lost_f32 : reduce_lost_f64)(sums->data, sums->size, low);
}

/* Finds units for lines whose sum of squares lost terms that a result within the range would show.
 * `units` becomes NULL if there are none. Else each line has a power of two, 1 if the line lost
 * nothing. Returns 0 or an error code. */
static int reduce_find_units(mg_array **units, mg_array *x, uint32_t mask, mg_array *sums) {
    bool narrow = x->dtype == MG_FLOAT32;
    int64_t n = mg_reduce_extent(x, mask);
    double low = 2 * (double)n * (narrow ? FLT_MIN : DBL_MIN);
    *units = NULL;
    if (!mg_squares_lost(sums, n)) return MG_OK;
    mg_array *top = mg_reduce_groups(REDUCE_MAX, x, mask, NULL);
    mg_array *least = top ? mg_reduce_groups(REDUCE_MIN, x, mask, NULL) : NULL;
    if (least && (narrow ? reduce_units_f32 : reduce_units_f64)(top->data, least->data, sums->data,
                                                                sums->size, low))
        *units = mg_retain(top);
    int code = least ? MG_OK : MG_ENOMEM;
    mg_release(least);
    mg_release(top);
    return code;
}

/* The sums of squares, about the mean if `centred`, over the divisor, or their square roots. If
 * squares overflowed or underflowed they are recomputed from scaled x, in a second pass that is
 * rare. All other lines get the same bits again. */
static mg_array *reduce_sizes(mg_array *x, uint32_t mask, bool centred, double divisor, bool root) {
    bool narrow = x->dtype == MG_FLOAT32;
    mg_array *units = NULL, *y = reduce_sums_of_squares(x, mask, centred);
    if (!y) return NULL;
    if (reduce_find_units(&units, x, mask, y)) {
        mg_release(y);
        return NULL;
    }
    if (units) {
        mg_array *scaled = mg_reduce_scaled(x, units);
        mg_release(y);
        y = scaled ? reduce_sums_of_squares(scaled, mask, centred) : NULL;
        mg_release(scaled);
    }
    if (y) mg_reduce_divide(y, divisor, root);
    if (y && units)
        (narrow ? reduce_out_of_units_f32 : reduce_out_of_units_f64)(y->data, units->data, y->size,
                                                                     root ? 1 : 2);
    mg_release(units);
    return y;
}

/* The sum of (x - mean)^2 over max(n - correction, 0), or its square root. */
mg_array *mg_var(int root, mg_array *x, int naxes, const int32_t *axes, double correction,
                 int keepdims) {
    uint32_t mask;
    if (!mg_is_float(x->dtype)) return mg_fail(MG_EDTYPE, x->dtype, 0);
    if (mg_axes_mask(x->ndim, naxes, axes, &mask)) return NULL;
    double n = (double)mg_reduce_extent(x, mask), degrees = n > correction ? n - correction : 0;
    return reduce_squeeze(reduce_sizes(x, mask, true, degrees, root), mask, keepdims);
}

/* The square root of the sum of squares. */
mg_array *mg_norm(mg_array *x, int naxes, const int32_t *axes, int keepdims) {
    uint32_t mask;
    if (!mg_is_float(x->dtype)) return mg_fail(MG_EDTYPE, x->dtype, 0);
    if (mg_axes_mask(x->ndim, naxes, axes, &mask)) return NULL;
    return reduce_squeeze(reduce_sizes(x, mask, false, 1, true), mask, keepdims);
}

/* m + log(sum of exp(x - m)) with m the maximum, or m itself if it is NaN or infinite. Groups are
 * reduced one by one: the logsumexp of logsumexps is that of all elements. */
mg_array *mg_logsumexp(mg_array *x, int naxes, const int32_t *axes, int keepdims) {
    uint32_t mask;
    if (!mg_is_float(x->dtype)) return mg_fail(MG_EDTYPE, x->dtype, 0);
    if (mg_axes_mask(x->ndim, naxes, axes, &mask)) return NULL;
    mg_array *y = mg_retain(x);
    uint32_t left = mask;
    do {
        uint32_t group = reduce_last_group(y, left);
        mg_array *sums = NULL, *tops = reduce_group(REDUCE_LOGSUM, y, group, NULL, &sums, NULL);
        if (tops)
            (x->dtype == MG_FLOAT32 ? reduce_add_log_f32 : reduce_add_log_f64)(
                sums->data, tops->data, sums->size);
        mg_release(y);
        mg_release(tops);
        y = tops ? sums : NULL;
        left &= ~group;
    } while (y && left);
    return reduce_squeeze(y, mask, keepdims);
}

mg_array *mg_sum_to(mg_array *a, int ndim, const int64_t *shape) {
    int32_t axes[MG_MAX_NDIM];
    int naxes = 0, added = a->ndim - ndim;
    if (added < 0) return mg_fail(MG_ENDIM, a->ndim, ndim);
    for (int d = 0; d < a->ndim; d++) {
        int64_t wanted = d < added ? 1 : shape[d - added];
        if (d < added || (wanted == 1 && a->shape[d] != 1)) axes[naxes++] = d;
        else if (wanted != a->shape[d]) return mg_fail(MG_ESHAPE, a->shape[d], wanted);
    }
    if (naxes == 0) return mg_view_alias(a);
    mg_array *sum = mg_reduce(MG_SUM, a, naxes, axes, 1);
    if (!sum) return NULL;
    mg_array *out = mg_view_reshape(sum, ndim, shape);
    mg_release(sum);
    return out;
}
