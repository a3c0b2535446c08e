/* box.c: boxes on the last one to three axes. They have a start and a size of their own on every
 * axis: pooling with the padding cut off, and adaptive pooling, take their sums and maxima. */
#include "../memory/array.h"
#include "../threads/pool.h"
#include "turn.h"
#include "vmath_wide.h"

#include <math.h>
#include <string.h>

enum {
    BOX_AXES = 3,
    BOX_STRIP = 512,                 /* columns that are worked on at a time, and boxes */
    BOX_WIDE = MG_VECTOR_BYTES / 8,  /* doubles in a vector */
    BOX_GRAIN = 1 << 15,             /* elements a parallel block works on, at least */
    BOX_MASKS = MG_VECTOR_BYTES > 16 /* a load of the first n lanes costs what a load costs */
};
/* In and before a short loop that is to stay as it is: neither vectors nor several rounds. */
#define BOX_AS_IT_IS __asm__ volatile("")
#define BOX_ROLLED _Pragma("GCC unroll 1")

/* Boxes on three axes, those of mg_boxes last. Those on the last axis from even0 to even1 have one
 * size and one divisor, and lie `apart` from each other. */
typedef struct {
    int64_t count[BOX_AXES], step[BOX_AXES], n[BOX_AXES];
    const int64_t *start[BOX_AXES], *size[BOX_AXES], *divisor[BOX_AXES];
    int64_t even0, even1, apart;
    int64_t reach; /* from the first element of a box to its last, at most */
} box_set;

/* The boxes that agree on the first two axes: which, where they lie there, by what to divide. */
typedef struct {
    int64_t i0, i1, left, size0, size1;
    double divisor;
} box_row;

static void box_enter(const box_set *b, box_row *row) {
    row->size0 = b->size[0][row->i0];
    row->size1 = b->size[1][row->i1];
    if (b->divisor[0])
        row->divisor = (double)b->divisor[0][row->i0] * (double)b->divisor[1][row->i1];
}

/* There is at least one. */
static box_row box_first(const box_set *b) {
    box_row row = {.left = b->count[0] * b->count[1]};
    box_enter(b, &row);
    return row;
}

static void box_next(const box_set *b, box_row *row) {
    if (--row->left == 0) return;
    if (++row->i1 == b->count[1]) {
        row->i1 = 0;
        row->i0++;
    }
    box_enter(b, row);
}

/* Where line (j0, j1) of the boxes of a row starts. */
MG_INLINE int64_t box_line(const box_set *b, const box_row *row, int64_t j0, int64_t j1) {
    int64_t at0 = b->start[0][row->i0] + j0 * b->step[0];
    int64_t at1 = b->start[1][row->i1] + j1 * b->step[1];
    return (at0 * b->n[1] + at1) * b->n[2];
}

/* How many boxes from i on, at most so many, differ in nothing but the place. */
MG_INLINE int64_t box_alike(const box_set *b, int64_t i, int64_t most) {
    return i < b->even0 || i >= b->even1 ? 1 : mg_min(most, b->even1 - i);
}

/* From the first column of box i to its last. */
MG_INLINE int64_t box_reach(const box_set *b, int64_t i) {
    return (b->size[2][i] - 1) * b->step[2] + 1;
}

/* How many boxes from i on are worked on together: those of a short line, or which a strip holds. */
MG_INLINE int64_t box_together(const box_set *b, int64_t i) {
    if (b->n[2] <= BOX_STRIP) return mg_min(b->count[2] - i, BOX_STRIP);
    int64_t room = BOX_STRIP - box_reach(b, i);
    return room < 0 ? 1 : box_alike(b, i, room / b->apart + 1);
}

/* The columns of the n boxes from i on: their number, and the first. */
MG_INLINE int64_t box_width(const box_set *b, int64_t i, int64_t n, int64_t *first) {
    bool whole = b->n[2] <= BOX_STRIP;
    *first = whole ? 0 : b->start[2][i];
    return whole ? b->n[2] : (n - 1) * b->apart + box_reach(b, i);
}

/* The elements of box i from j on that a strip holds: their number in *size, and the columns. */
MG_INLINE int64_t box_piece(const box_set *b, int64_t i, int64_t j, int64_t *size) {
    int64_t step = b->step[2];
    *size = mg_min(b->size[2][i] - j, mg_max(BOX_STRIP / step, 1));
    return (*size - 1) * step + 1;
}

/* Lanes with an even number, out of two vectors, and with an odd one. */
#define BOX_EVEN_2 0, 2
#define BOX_EVEN_4 0, 2, 4, 6
#define BOX_EVEN_8 BOX_EVEN_4, 8, 10, 12, 14
#define BOX_EVEN_16 BOX_EVEN_8, 16, 18, 20, 22, 24, 26, 28, 30
#define BOX_ODD_2 1, 3
#define BOX_ODD_4 1, 3, 5, 7
#define BOX_ODD_8 BOX_ODD_4, 9, 11, 13, 15
#define BOX_ODD_16 BOX_ODD_8, 17, 19, 21, 23, 25, 27, 29, 31
#if MG_VECTOR_BYTES == 64
#define BOX_EVEN_f32 BOX_EVEN_16
#define BOX_ODD_f32 BOX_ODD_16
#define BOX_EVEN_f64 BOX_EVEN_8
#define BOX_ODD_f64 BOX_ODD_8
#elif MG_VECTOR_BYTES == 32
#define BOX_EVEN_f32 BOX_EVEN_8
#define BOX_ODD_f32 BOX_ODD_8
#define BOX_EVEN_f64 BOX_EVEN_4
#define BOX_ODD_f64 BOX_ODD_4
#else
#define BOX_EVEN_f32 BOX_EVEN_4
#define BOX_ODD_f32 BOX_ODD_4
#define BOX_EVEN_f64 BOX_EVEN_2
#define BOX_ODD_f64 BOX_ODD_2
#endif

/* As many elements as there are doubles in a vector, as doubles and back. */
MG_INLINE vec_f64 box_widen_f64(const double *p) { return v_load_f64(p); }
MG_INLINE void box_narrow_f64(double *p, vec_f64 v) { v_store_f64(p, v); }
#if MG_HAS_WIDE
MG_INLINE vec_f64 box_widen_f32(const float *p) { return v_load_floats(p); }
MG_INLINE void box_narrow_f32(float *p, vec_f64 v) { v_store_floats(p, v); }
#else
MG_INLINE vec_f64 box_widen_f32(const float *p) { return (vec_f64){(double)p[0], (double)p[1]}; }
MG_INLINE void box_narrow_f32(float *p, vec_f64 v) {
    p[0] = (float)v[0];
    p[1] = (float)v[1];
}
#endif

#define MG_REAL 64
#include "box.inc.c"
#define MG_REAL 32
#include "box.inc.c"

/* Integers, one by one: the maxima, or their places. */
static void box_max_i64(int64_t *restrict out, const int64_t *restrict x, const box_set *b,
                        bool places) {
    for (box_row row = box_first(b); row.left > 0; box_next(b, &row))
        for (int64_t i = 0; i < b->count[2]; i++) {
            int64_t best = box_line(b, &row, 0, 0) + b->start[2][i];
            for (int64_t j0 = 0; j0 < row.size0; j0++)
                for (int64_t j1 = 0; j1 < row.size1; j1++)
                    for (int64_t j2 = 0; j2 < b->size[2][i]; j2++) {
                        int64_t at =
                            box_line(b, &row, j0, j1) + b->start[2][i] + j2 * b->step[2];
                        if (x[at] > x[best]) best = at;
                    }
            *out++ = places ? best : x[best];
        }
}

/* ---- planes ---------------------------------------------------------------------------------- */

enum box_op { BOX_SUM, BOX_SPREAD, BOX_MAX, BOX_ARGMAX, BOX_MAX_VJP };

typedef struct {
    box_set boxes;
    int op, dtype;
    int64_t planes, per_block, n, m; /* elements and boxes a plane */
    char *out;
    const char *x, *g; /* as large as a plane, and one element a box */
} box_job;

static void box_plane(const box_job *job, int64_t plane) {
    const box_set *b = &job->boxes;
    int64_t itemsize = mg_itemsize(job->dtype);
    int64_t full = plane * job->n * itemsize, boxes = plane * job->m * itemsize;
    const void *x = job->x ? job->x + full : NULL, *g = job->g ? job->g + boxes : NULL;
    void *out = job->out + (job->op == BOX_SPREAD || job->op == BOX_MAX_VJP ? full
                            : job->op == BOX_ARGMAX ? plane * job->m * mg_itemsize(MG_INT64)
                                                     : boxes);
    bool f32 = job->dtype == MG_FLOAT32;
    if (job->op == BOX_MAX_VJP) memset(out, 0, (size_t)(job->n * itemsize));
    if (job->op == BOX_SUM) {
        if (f32) box_sum_f32(out, x, b);
        else box_sum_f64(out, x, b);
    } else if (job->op == BOX_SPREAD) {
        if (f32) box_spread_f32(out, g, b);
        else box_spread_f64(out, g, b);
    } else if (job->dtype == MG_INT64) {
        box_max_i64(out, x, b, job->op == BOX_ARGMAX);
    } else if (job->op == BOX_MAX) {
        if (f32) box_max_f32(out, x, b);
        else box_max_f64(out, x, b);
    } else {
        int64_t *places = job->op == BOX_ARGMAX ? out : NULL;
        if (f32) box_argmax_f32(places, out, g, x, b);
        else box_argmax_f64(places, out, g, x, b);
    }
}

static void box_block(void *context, int64_t block) {
    const box_job *job = context;
    int64_t end = mg_min((block + 1) * job->per_block, job->planes);
    for (int64_t plane = block * job->per_block; plane < end; plane++) box_plane(job, plane);
}

/* ---- boxes ----------------------------------------------------------------------------------- */

MG_INLINE bool box_is_even(const box_set *b, int64_t i, int64_t mid) {
    const int64_t *divisor = b->divisor[2];
    return b->size[2][i] == b->size[2][mid] && (!divisor || divisor[i] == divisor[mid]) &&
           b->start[2][i] == b->start[2][mid] + (i - mid) * b->apart;
}

/* The longest even run on the last axis that holds the box in the middle. */
static void box_find_even(box_set *b) {
    const int64_t *start = b->start[2];
    int64_t count = b->count[2], mid = count / 2;
    b->even0 = b->even1 = mid;
    b->apart = mid > 0 ? mg_max(start[mid] - start[mid - 1], 1) : 1;
    while (b->even1 < count && box_is_even(b, b->even1, mid)) b->even1++;
    while (b->even0 > 0 && box_is_even(b, b->even0 - 1, mid)) b->even0--;
}

/* The boxes on axes of sizes n as those on three; 0, or why they do not lie in n. */
static int box_read(box_set *b, const int64_t *n, const mg_boxes *from) {
    static const int64_t zero = 0, one = 1;
    const int64_t *starts = from->starts, *sizes = from->sizes, *divisors = from->divisors;
    if (from->axes < 1 || from->axes > BOX_AXES)
        return mg_fail_code(MG_ENDIM, from->axes, BOX_AXES);
    for (int d = 0; d < BOX_AXES; d++) {
        int k = d - (BOX_AXES - (int)from->axes);
        b->n[d] = k < 0 ? 1 : n[k];
        b->count[d] = k < 0 ? 1 : from->count[k];
        b->step[d] = k < 0 ? 1 : from->step[k];
        b->start[d] = k < 0 ? &zero : starts;
        b->size[d] = k < 0 ? &one : sizes;
        b->divisor[d] = !divisors ? NULL : k < 0 ? &one : divisors;
        if (k < 0) continue;
        if (b->count[d] < 0 || b->step[d] < 1) return mg_fail_code(MG_EARG, 0, 0);
        for (int64_t i = 0; i < b->count[d]; i++) {
            if (sizes[i] < 1 || starts[i] < 0) return mg_fail_code(MG_EARG, sizes[i], starts[i]);
            if (starts[i] >= b->n[d] || (sizes[i] - 1) > (b->n[d] - 1 - starts[i]) / b->step[d])
                return mg_fail_code(MG_EINDEX, starts[i], b->n[d]);
        }
        starts += b->count[d];
        sizes += b->count[d];
        if (divisors) divisors += b->count[d];
    }
    box_find_even(b);
    b->reach = 0;
    for (int d = 0; d < BOX_AXES; d++) {
        int64_t longest = 1;
        for (int64_t i = 0; i < b->count[d]; i++) longest = mg_max(longest, b->size[d][i]);
        b->reach = b->reach * b->n[d] + (longest - 1) * b->step[d];
    }
    return MG_OK;
}

/* Fills out from x, which has whole planes, or g, which has an element a box, or both. Elements of
 * whole planes: `full`. 0 or an error code. */
static int box_run(int op, mg_array *out, mg_array *x, mg_array *g, int64_t full,
                    const box_set *b) {
    mg_array *from_x = NULL, *from_g = NULL;
    box_job job = {.boxes = *b, .op = op, .dtype = x ? x->dtype : g->dtype, .out = out->data};
    job.n = b->n[0] * b->n[1] * b->n[2];
    job.m = b->count[0] * b->count[1] * b->count[2];
    if (full == 0) return MG_OK;
    if (job.dtype == MG_FLOAT32 && x && op != BOX_SUM && b->reach > INT32_MAX)
        return mg_fail_code(MG_ESIZE, 0, 0); /* places are counted in 32 bits */
    if (job.m == 0) {
        memset(out->data, 0, (size_t)(out->size * mg_itemsize(out->dtype)));
        return MG_OK;
    }
    int code = MG_OK;
    if (x && !(from_x = mg_contiguous(x))) code = mg_error();
    if (!code && g && !(from_g = mg_contiguous(g))) code = mg_error();
    if (!code) {
        job.x = from_x ? from_x->data : NULL;
        job.g = from_g ? from_g->data : NULL;
        job.planes = full / job.n;
        job.per_block = mg_max(BOX_GRAIN / (job.n + job.m), 1);
        mg_parallel_for(mg_ceil_div(job.planes, job.per_block), box_block, &job);
    }
    mg_release(from_x);
    mg_release(from_g);
    return code;
}

static mg_array *box_filled(int code, mg_array *out) {
    if (!code) return out;
    mg_release(out);
    return NULL;
}

/* An element a box, in a new array. */
static mg_array *box_reduce(int op, mg_array *x, const mg_boxes *boxes) {
    box_set b;
    int64_t shape[MG_MAX_NDIM];
    int lead = x->ndim - (int)boxes->axes;
    if (lead < 0) return mg_fail(MG_ENDIM, boxes->axes, x->ndim);
    if (box_read(&b, x->shape + lead, boxes)) return NULL;
    for (int d = 0; d < x->ndim; d++) shape[d] = d < lead ? x->shape[d] : boxes->count[d - lead];
    mg_array *y = mg_new(op == BOX_ARGMAX ? MG_INT64 : x->dtype, x->ndim, shape);
    return y ? box_filled(box_run(op, y, x, NULL, x->size, &b), y) : NULL;
}

/* The boxes on the last axes of a shape, of each of which g has an element; 0 or an error code. */
static int box_match(box_set *b, const mg_array *g, int ndim, const int64_t *shape,
                      const mg_boxes *boxes) {
    int lead = ndim - (int)boxes->axes;
    if (lead < 0 || g->ndim != ndim) return mg_fail_code(MG_ENDIM, g->ndim, ndim);
    for (int d = 0; d < ndim; d++) {
        int64_t expected = d < lead ? shape[d] : boxes->count[d - lead];
        if (g->shape[d] != expected) return mg_fail_code(MG_ESHAPE, g->shape[d], expected);
    }
    return box_read(b, shape + lead, boxes);
}

/* ---- arrays ---------------------------------------------------------------------------------- */

mg_array *mg_box_sum(mg_array *x, const mg_boxes *boxes) {
    if (!mg_is_float(x->dtype)) return mg_fail(MG_EDTYPE, x->dtype, 0);
    return box_reduce(BOX_SUM, x, boxes);
}

mg_array *mg_box_spread(mg_array *g, int ndim, const int64_t *shape, const mg_boxes *boxes) {
    box_set b;
    if (!mg_is_float(g->dtype)) return mg_fail(MG_EDTYPE, g->dtype, 0);
    if (box_match(&b, g, ndim, shape, boxes)) return NULL;
    mg_array *out = mg_new(g->dtype, ndim, shape);
    return out ? box_filled(box_run(BOX_SPREAD, out, NULL, g, out->size, &b), out) : NULL;
}

mg_array *mg_box_max(mg_array *x, const mg_boxes *boxes) {
    if (x->dtype == MG_BOOL) return mg_fail(MG_EDTYPE, x->dtype, 0);
    return box_reduce(BOX_MAX, x, boxes);
}

mg_array *mg_box_argmax(mg_array *x, const mg_boxes *boxes) {
    if (x->dtype == MG_BOOL) return mg_fail(MG_EDTYPE, x->dtype, 0);
    return box_reduce(BOX_ARGMAX, x, boxes);
}

mg_array *mg_box_max_vjp(mg_array *g, mg_array *x, const mg_boxes *boxes) {
    box_set b;
    if (!mg_is_float(x->dtype) || g->dtype != x->dtype) return mg_fail(MG_EDTYPE, g->dtype, 0);
    if (box_match(&b, g, x->ndim, x->shape, boxes)) return NULL;
    mg_array *out = mg_new(x->dtype, x->ndim, x->shape);
    return out ? box_filled(box_run(BOX_MAX_VJP, out, x, g, x->size, &b), out) : NULL;
}
