/* distance.c: Euclidean distances between all pairs of two sets of points, by differences.
 *
 * A run of points of the second set stays in cache, transposed into vectors, while all points of
 * the first pass. Each run makes a part of the gradient of the first set, and the parts are then
 * summed. The bits do not depend on the number of threads.
 */
#include "kernels/iterate/contiguous.h"
#include "memory/array.h"
#include "threads/pool.h"

#include <float.h>
#include <math.h>

/* Stacks of n points x and m points y with k coordinates. y and dy are transposed, in rows of `row`
 * elements. */
typedef struct {
    int dtype;
    int64_t items, n, m, k, row, runs, rows; /* rows: points x in a block */
    char *x, *y, *out, *g, *d, *dx, *dy;
} distance_plan;

static void distance_block(void *context, int64_t block) {
    const distance_plan *t = context;
    int64_t blocks = mg_ceil_div(t->n, t->rows), size = mg_itemsize(t->dtype);
    int64_t j = block % t->runs * MG_DISTANCE_RUN, i = block / t->runs % blocks * t->rows;
    int64_t item = block / t->runs / blocks, run = mg_min(MG_DISTANCE_RUN, t->m - j);
    int64_t rows = mg_min(t->rows, t->n - i), first = item * t->n + i;
    const char *x = t->x + first * t->k * size, *y = t->y + (item * t->k * t->row + j) * size;
    int64_t out = (first * t->m + j) * size;
    if (t->out) {
        mg_distance_run(t->dtype, t->out + out, t->m, x, y, t->row, rows, run, t->k);
        return;
    }
    int64_t dx = (block % t->runs * t->items * t->n + first) * t->k * size;
    mg_distance_run_vjp(t->dtype, t->dx + dx, t->dy + (y - t->y), t->g + out, t->d + out, t->m, x, y,
                        t->row, rows, run, t->k);
}

static int distance_lay_out(distance_plan *t, const mg_array *a, const mg_array *b) {
    int last = a->ndim - 1;
    *t = (distance_plan){.dtype = a->dtype, .items = 1};
    if (!mg_is_float(a->dtype) || a->dtype != b->dtype)
        return mg_fail_code(MG_EDTYPE, a->dtype, b->dtype);
    if (last < 1 || b->ndim != a->ndim) return mg_fail_code(MG_ENDIM, a->ndim, b->ndim);
    for (int d = 0; d <= last; d++) {
        if (d != last - 1 && a->shape[d] != b->shape[d])
            return mg_fail_code(MG_ESHAPE, a->shape[d], b->shape[d]);
        if (d < last - 1) t->items *= a->shape[d];
    }
    t->n = a->shape[last - 1];
    t->m = b->shape[last - 1];
    t->k = a->shape[last];
    t->row = mg_ceil_div(t->m, 64) * 64;
    t->runs = mg_ceil_div(t->m, MG_DISTANCE_RUN);
    return MG_OK;
}

/* A transposed array of zeros for the points `b`, and in `inside` a header for their place
 * there. */
static mg_array *distance_transposed(const distance_plan *t, const mg_array *b, mg_array *inside) {
    mg_array *made = mg_new(t->dtype, 3, (int64_t[]){t->items, t->k, t->row});
    if (!made) return NULL;
    memset(made->data, 0, (size_t)(made->size * mg_itemsize(t->dtype)));
    mg_array shape = mg_transposed(b), whole = mg_header(made);
    whole.ndim = b->ndim;
    whole.size = b->size;
    memcpy(whole.shape, shape.shape, sizeof shape.shape);
    whole.shape[b->ndim - 1] = t->row;
    mg_row_major(b->ndim, whole.shape, whole.strides);
    whole.shape[b->ndim - 1] = t->m;
    *inside = whole;
    return made;
}

/* ---- distances whose squares leave the range ---- */

static double distance_element(int dtype, const char *x, int64_t i) {
    return dtype == MG_FLOAT32 ? (double)((const float *)x)[i] : ((const double *)x)[i];
}

/* Half of the difference in a coordinate, which cannot overflow. */
static double distance_half(const distance_plan *t, const char *x, const char *y, int64_t p) {
    return distance_element(t->dtype, x, p) / 2 - distance_element(t->dtype, y, p * t->row) / 2;
}

/* The distance of two points, computed relative to the largest difference. The coordinates of y are
 * `row` apart. */
static double distance_with_care(const distance_plan *t, const char *x, const char *y) {
    double most = 0, square = 0;
    for (int64_t p = 0; p < t->k; p++) {
        double apart = distance_half(t, x, y, p);
        if (apart != apart) return NAN;
        most = fmax(most, fabs(apart));
    }
    if (most == 0 || isinf(most)) return most;
    int power;
    frexp(most, &power);
    for (int64_t p = 0; p < t->k; p++) {
        double apart = ldexp(distance_half(t, x, y, p), -power);
        square += apart * apart;
    }
    return ldexp(sqrt(square), power + 1);
}

/* Recomputes distances whose square overflowed or lost terms. `far` is what mg_distance_far
 * returned. A distance of 0 is right, as from a point to itself, unless some coordinate is so small
 * that squares vanish. */
static void distance_again(const distance_plan *t, char *out, int far) {
    bool narrow = t->dtype == MG_FLOAT32;
    double low = sqrt(2.5 * (double)t->k * (narrow ? FLT_MIN : DBL_MIN));
    int64_t size = mg_itemsize(t->dtype), points = t->items * t->n;
    if (far == MG_DISTANCE_ZERO && !mg_distance_small(t->dtype, t->x, points * t->k) &&
        !mg_distance_small(t->dtype, t->y, t->items * t->k * t->row))
        return;
    for (int64_t i = 0; i < points * t->m; i++) {
        double root = distance_element(t->dtype, out, i);
        if (root >= low && root <= DBL_MAX) continue;
        int64_t point = i / t->m, item = point / t->n;
        double made = distance_with_care(t, t->x + point * t->k * size,
                                         t->y + (item * t->k * t->row + i % t->m) * size);
        if (narrow) ((float *)out)[i] = (float)made;
        else ((double *)out)[i] = made;
    }
}

static void distance_run_all(distance_plan *t) {
    int64_t blocks = t->items * t->runs * mg_ceil_div(t->n, t->rows);
    mg_parallel_if(t->items * t->n * t->m * t->k > 1 << 16, blocks, distance_block, t);
}

mg_array *mg_cdist(mg_array *a, mg_array *b) {
    distance_plan t;
    if (distance_lay_out(&t, a, b) != MG_OK) return NULL;
    int64_t shape[MG_MAX_NDIM];
    memcpy(shape, a->shape, sizeof shape);
    shape[a->ndim - 1] = t.m;
    mg_array inside, transposed = mg_transposed(b), *out = NULL;
    mg_array *x = mg_contiguous(a), *y = distance_transposed(&t, b, &inside);
    if (x && y && mg_write(&inside, &transposed) == MG_OK) out = mg_new(a->dtype, a->ndim, shape);
    if (out && out->size) {
        t.x = x->data, t.y = y->data, t.out = out->data;
        t.rows = 64;
        distance_run_all(&t);
        int far = mg_distance_far(out->dtype, out->data, out->size, t.k);
        mg_reduce_divide(out, 1, true);
        if (far) distance_again(&t, out->data, far);
    }
    mg_release(x);
    mg_release(y);
    return out;
}

/* Each run makes a part of the gradient of `a`, and the parts are summed. */
mg_arrays *mg_cdist_vjp(mg_array *g, mg_array *a, mg_array *b, mg_array *d) {
    distance_plan t;
    if (distance_lay_out(&t, a, b) != MG_OK) return NULL;
    int64_t shape[MG_MAX_NDIM + 1] = {mg_max(t.runs, 1)};
    memcpy(shape + 1, a->shape, sizeof a->shape);
    mg_array inside, to, transposed = mg_transposed(b), *made[2] = {NULL};
    mg_array *x = mg_contiguous(a), *y = distance_transposed(&t, b, &inside);
    mg_array *dy = distance_transposed(&t, b, &to), *upstream = mg_contiguous(g), *root = mg_contiguous(d);
    mg_array *parts = mg_new(a->dtype, a->ndim + 1, shape);
    if (x && y && dy && upstream && root && parts && mg_write(&inside, &transposed) == MG_OK) {
        t.x = x->data, t.y = y->data, t.g = upstream->data, t.d = root->data;
        t.dx = parts->data, t.dy = dy->data;
        t.rows = mg_max(t.n, 1);
        if (t.runs == 0) memset(t.dx, 0, (size_t)(parts->size * mg_itemsize(a->dtype)));
        distance_run_all(&t);
        made[0] = mg_reduce(MG_SUM, parts, 1, (int32_t[]){0}, 0);
        to = mg_transposed(&to);
        made[1] = made[0] ? mg_copy(&to) : NULL;
    }
    for (int i = 0; i < 6; i++) mg_release((mg_array *[]){x, y, dy, upstream, root, parts}[i]);
    if (made[1]) return mg_arrays_of(2, made);
    mg_release(made[0]);
    return NULL;
}

