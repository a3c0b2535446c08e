/* scan.c: running sums, products and extrema along one axis, and linear recurrences.
 *
 * One thread scans a line from its first element to its last. Neighbouring lines go together. The
 * sums of a few long rows are cut into blocks, which threads share. First each block is summed, and
 * from these sums follows where each block begins. Results depend on neither the memory layout nor
 * the number of threads.
 *
 * Sums are kept in double, which makes up for the rounding errors of long sums. If x is double too,
 * a sum carries its rounding error. For terms of one sign cumsum is within 0.51 ULP in float32 up
 * to 10^7 terms, and within 1 ULP in float64.
 */
#include "kernels/iterate/contiguous.h"
#include "threads/pool.h"
#include "simd/exponent.h"
#include "kernels/iterate/lines.h"
#include "kernels/sort/order.h"
#include "kernels/sizes.h"
#include "vmath/vmath.h"

#include <math.h>

enum scan_kind {
    SCAN_SUM,
    SCAN_PROD,
    SCAN_LOG,        /* the logarithm of the running sum of exponentials */
    SCAN_RECURRENCE, /* y[i] = b[i] + x[i] * y[i - 1] */
    SCAN_FIRST_MAX,  /* index of the running maximum: the first of ties, NaN above all numbers */
    SCAN_FIRST_MIN   /* the same for the minimum, NaN below all numbers */
};

/* The state of a line at one element: see scan.inc.c. */
typedef struct {
    double s, e, m;
} scan_state;

/* s + e += x, where e collects the rounding errors of s (Ogita, Rump and Oishi, "Accurate sum and
 * dot product", 2005, algorithm 4.1). */
MG_INLINE void scan_add(scan_state *t, double x) {
    double sum = t->s + x, part = sum - t->s;
    t->e += (t->s - (sum - part)) + (x - part);
    t->s = sum;
}

MG_INLINE void scan_add_all(scan_state *t, scan_state other) {
    scan_add(t, other.s);
    t->e += other.e;
}

/* ---- one row, a vector at a time ---- */

#if MG_VECTOR_BYTES >= 32
enum { SCAN_WIDE = MG_VECTOR_BYTES / 8 };

/* Lane i becomes lane i - by, or lane i + by if `back`; 0 if there is none. */
MG_INLINE vec_f64 scan_slide(bool back, vec_f64 v, int by) {
#if defined(__AVX512F__)
    __m512i lane = _mm512_setr_epi64(0, 1, 2, 3, 4, 5, 6, 7);
    __m512i from = _mm512_add_epi64(lane, _mm512_set1_epi64(back ? by : -by));
    __mmask8 kept = (__mmask8)(back ? 0xff >> by : 0xff << by);
    return _mm512_maskz_permutexvar_pd(kept, from, v);
#else
    __m256i lane = _mm256_setr_epi64x(0, 1, 2, 3);
    __m256i from = _mm256_add_epi64(lane, _mm256_set1_epi64x(back ? by : -by));
    __m256i low = _mm256_slli_epi64(_mm256_and_si256(from, _mm256_set1_epi64x(3)), 1);
    __m256i halves = _mm256_add_epi32(_mm256_or_si256(low, _mm256_slli_epi64(low, 32)),
                                      _mm256_set1_epi64x((int64_t)1 << 32));
    __m256i none = _mm256_or_si256(_mm256_cmpgt_epi64(_mm256_setzero_si256(), from),
                                   _mm256_cmpgt_epi64(from, _mm256_set1_epi64x(3)));
    __m256 slid = _mm256_permutevar8x32_ps(_mm256_castpd_ps(v), halves);
    return _mm256_andnot_pd(_mm256_castsi256_pd(none), _mm256_castps_pd(slid));
#endif
}

MG_INLINE vec_f64 scan_spread(vec_f64 v, int lane) {
#if defined(__AVX512F__)
    return _mm512_permutexvar_pd(_mm512_set1_epi64(lane), v);
#else
    return lane ? _mm256_permute4x64_pd(v, 0xff) : _mm256_permute4x64_pd(v, 0);
#endif
}

/* The running sums of full vectors of a row of floats (Hillis and Steele, "Data parallel
 * algorithms", 1986). Returns the number of elements done. */
MG_INLINE int64_t scan_row_wide(bool back, float *restrict y, const float *restrict x, int64_t n,
                                scan_state *t) {
    vec_f64 carry = v_set1_f64(t->s);
    int64_t i = 0;
    for (; i + SCAN_WIDE <= n; i += SCAN_WIDE) {
        int64_t at = back ? n - i - SCAN_WIDE : i;
        vec_f64 v = v_load_floats(x + at);
        for (int by = 1; by < SCAN_WIDE; by *= 2) v += scan_slide(back, v, by);
        v += carry;
        v_store_floats(y + at, v);
        carry = scan_spread(v, back ? 0 : SCAN_WIDE - 1);
    }
    t->s = carry[0];
    return i;
}
#else
MG_INLINE int64_t scan_row_wide(bool back, float *y, const float *x, int64_t n, scan_state *t) {
    (void)back, (void)y, (void)x, (void)n, (void)t;
    return 0;
}
#endif

enum { SCAN_WITHIN = 900 << 20 }; /* exponents that doubles have room for, in units of 2^-20 */

#define MG_REAL 32
#include "scan.inc.c"
#define MG_REAL 64
#include "scan.inc.c"

/* ---- integers, and indices of extrema ---- */

static void scan_piece_int(int kind, bool back, int64_t *restrict y, const int64_t *restrict x,
                           int64_t stride, int64_t n, int64_t width) {
    bool rows = stride == 1;
    for (int64_t j = 0; j < width; j++) {
        uint64_t s = kind == SCAN_PROD; /* wraps around */
        for (int64_t k = 0; k < n; k++) {
            int64_t i = back ? n - 1 - k : k, at = rows ? j * n + i : i * stride + j;
            uint64_t next = (uint64_t)x[at];
            s = kind == SCAN_PROD ? s * next : s + next;
            y[at] = (int64_t)s;
        }
    }
}

/* `flip` is all ones for a running minimum and reverses the order. NaN is on top either way. */
MG_INLINE uint64_t scan_rank(int dtype, uint64_t flip, const void *x, int64_t i) {
    uint64_t order = order_at(dtype, x, i);
    return mg_is_float(dtype) && order == order_nan ? order : order ^ flip;
}

/* One line of n elements. */
MG_INLINE void scan_places_row(int dtype, uint64_t flip, int64_t *restrict y,
                               const void *restrict x, int64_t n) {
    uint64_t best = 0;
    for (int64_t i = 0, first = 0; i < n; i++) {
        uint64_t rank = scan_rank(dtype, flip, x, i);
        first = rank > best ? i : first;
        best = rank > best ? rank : best;
        y[i] = first;
    }
}

/* `width` neighbouring lines. The last unit is padded. */
MG_INLINE void scan_places_columns(int dtype, uint64_t flip, int64_t *restrict y, const char *x,
                                   int64_t stride, int64_t n, int64_t width) {
    uint64_t best[SCAN_STRIP] = {0}, padded[SCAN_UNIT] = {0};
    int64_t first[SCAN_STRIP] = {0};
    for (int64_t i = 0; i < n; i++, y += stride, x += stride * mg_itemsize(dtype))
        for (int64_t j = 0; j < width; j += SCAN_UNIT) {
            int64_t some = mg_min(width - j, SCAN_UNIT);
            const char *from = x + j * mg_itemsize(dtype);
            if (some < SCAN_UNIT)
                from = memcpy(padded, from, (size_t)(some * mg_itemsize(dtype)));
            for (int k = 0; k < SCAN_UNIT; k++) {
                uint64_t rank = scan_rank(dtype, flip, from, k);
                bool beyond = rank > best[j + k];
                best[j + k] = beyond ? rank : best[j + k];
                first[j + k] = beyond ? i : first[j + k];
            }
            if (some == SCAN_UNIT) memcpy(y + j, first + j, SCAN_UNIT * sizeof *y);
            else memcpy(y + j, first + j, (size_t)some * sizeof *y);
        }
}

MG_INLINE void scan_places(int dtype, uint64_t flip, int64_t *y, const char *x, int64_t stride,
                           int64_t n, int64_t width) {
    if (stride > 1) scan_places_columns(dtype, flip, y, x, stride, n, width);
    else
        for (int64_t j = 0; j < width; j++)
            scan_places_row(dtype, flip, y + j * n, x + j * n * mg_itemsize(dtype), n);
}

static void scan_piece_places(int kind, int dtype, int64_t *y, const void *x, int64_t stride,
                              int64_t n, int64_t width) {
    uint64_t flip = kind == SCAN_FIRST_MIN ? UINT64_MAX : 0;
    switch (dtype) {
    case MG_INT64: scan_places(MG_INT64, flip, y, x, stride, n, width); break;
    case MG_FLOAT32: scan_places(MG_FLOAT32, flip, y, x, stride, n, width); break;
    default: scan_places(MG_FLOAT64, flip, y, x, stride, n, width);
    }
}

/* ---- all lines ---- */

typedef struct {
    int kind, dtype;
    bool back;                 /* from the last element to the first */
    int64_t in_size, out_size; /* of an element */
    char *y;
    const char *x, *b;
    mg_lines lines;
    /* lines done together; number of such strips in a row of lines, or in all */
    int64_t strip, strips;
} scan_job;

static void scan_block(void *context, int64_t block) {
    const scan_job *job = context;
    int64_t n = job->lines.n, inner = job->lines.inner;
    bool rows = inner == 1;
    int64_t first = block % job->strips * job->strip, outer = block / job->strips;
    int64_t width = mg_min(job->strip, (rows ? job->lines.outer : inner) - first);
    int64_t at = outer * n * inner + first * (rows ? n : 1);
    void *y = job->y + at * job->out_size;
    const void *x = job->x + at * job->in_size, *b = job->b + at * job->in_size;
    if (job->kind >= SCAN_FIRST_MAX)
        scan_piece_places(job->kind, job->dtype, y, x, inner, n, width);
    else if (job->dtype == MG_INT64) scan_piece_int(job->kind, job->back, y, x, inner, n, width);
    else {
        bool narrow = job->dtype == MG_FLOAT32, product = job->kind == SCAN_PROD;
        unsigned before = product ? apart_watch() : 0;
        (narrow ? scan_piece_f32 : scan_piece_f64)(job->kind, rows, job->back, y, x, b, inner, n,
                                                   width);
        if (product && apart_left(before))
            (narrow ? scan_products_f32 : scan_products_f64)(rows, y, x, inner, n, width);
    }
}

/* Some blocks of a long row of floats, in the order of the scan. */
typedef struct {
    const scan_job *job;
    int64_t line, first, n; /* offset of the row; first element of the blocks; size of the row */
    scan_state state[SCAN_PARTS + 1]; /* at the beginning of each block */
} scan_parts;

/* Offset of block `part`, and its size. */
static int64_t scan_place(const scan_parts *p, int64_t part, int64_t *size) {
    int64_t begin = p->first + part * SCAN_PART;
    *size = mg_min(SCAN_PART, p->n - begin);
    return p->line + (p->job->back ? p->n - begin - *size : begin);
}

static void scan_sum_part(void *context, int64_t part) {
    scan_parts *p = context;
    int64_t n, at = scan_place(p, part, &n);
    const char *x = p->job->x + at * p->job->in_size;
    p->state[part + 1] = (p->job->dtype == MG_FLOAT32 ? scan_sum_f32 : scan_sum_f64)(x, n);
}

static void scan_run_part(void *context, int64_t part) {
    scan_parts *p = context;
    int64_t n, at = scan_place(p, part, &n) * p->job->in_size;
    (p->job->dtype == MG_FLOAT32 ? scan_part_f32 : scan_part_f64)(
        p->job->back, p->job->y + at, p->job->x + at, n, p->state[part]);
}

/* The running sums of long rows. */
static void scan_long(const scan_job *job) {
    int64_t n = job->lines.n;
    for (int64_t o = 0; o < job->lines.outer; o++) {
        scan_parts p = {.job = job, .line = o * n, .n = n};
        for (; p.first < n; p.first += SCAN_PARTS * SCAN_PART) {
            int64_t parts = mg_min(mg_ceil_div(n - p.first, SCAN_PART), SCAN_PARTS);
            mg_parallel_for(parts, scan_sum_part, &p);
            for (int64_t i = 1; i <= parts; i++) {
                scan_state before = p.state[i - 1];
                scan_add_all(&before, p.state[i]);
                p.state[i] = before;
            }
            mg_parallel_for(parts, scan_run_part, &p);
            p.state[0] = p.state[parts];
        }
    }
}

/* A new array with the scans of x along `axis`. b (or NULL) has x's shape and dtype. */
static mg_array *scan_run(int kind, bool back, mg_array *x, mg_array *b, int axis) {
    scan_job job = {.kind = kind, .back = back, .dtype = x->dtype};
    job.in_size = mg_itemsize(x->dtype);
    if (lines_along(&job.lines, x, axis)) return NULL;
    int dtype = kind >= SCAN_FIRST_MAX ? MG_INT64 : x->dtype;
    mg_array *y = mg_new(dtype, x->ndim, x->shape);
    if (!y || y->size == 0) return y;
    mg_array *from_x = mg_contiguous(x), *from_b = from_x && b ? mg_contiguous(b) : NULL;
    if (!from_x || (b && !from_b)) {
        mg_release(from_x);
        mg_release(y);
        return NULL;
    }
    job.out_size = mg_itemsize(dtype);
    job.y = y->data;
    job.x = from_x->data;
    job.b = b ? from_b->data : job.x;
    bool rows = job.lines.inner == 1;
    job.strip = rows ? mg_max(SCAN_GRAIN / job.lines.n, 1) : SCAN_STRIP;
    job.strips = mg_ceil_div(rows ? job.lines.outer : job.lines.inner, job.strip);
    int64_t blocks = rows ? job.strips : job.strips * job.lines.outer;
    if (kind == SCAN_SUM && mg_is_float(x->dtype) && rows && job.lines.outer < 8 &&
        job.lines.n >= 4 * SCAN_PART)
        scan_long(&job);
    else mg_parallel_if(y->size >= 2 * SCAN_GRAIN, blocks, scan_block, &job);
    mg_release(from_b);
    mg_release(from_x);
    return y;
}

/* Truth values count as integers. */
static mg_array *scan_numbers(int kind, bool back, mg_array *x, int axis) {
    if (x->dtype != MG_BOOL) return scan_run(kind, back, x, NULL, axis);
    mg_array *numbers = mg_cast(x, MG_INT64);
    mg_array *y = numbers ? scan_run(kind, back, numbers, NULL, axis) : NULL;
    mg_release(numbers);
    return y;
}

mg_array *mg_cumsum(mg_array *x, int axis, int back) {
    return scan_numbers(SCAN_SUM, back, x, axis);
}

mg_array *mg_cumprod(mg_array *x, int axis) { return scan_numbers(SCAN_PROD, false, x, axis); }

mg_array *mg_logcumsumexp(mg_array *x, int axis) {
    if (!mg_is_float(x->dtype)) return mg_fail(MG_EDTYPE, x->dtype, 0);
    return scan_run(SCAN_LOG, false, x, NULL, axis);
}

/* ---- gradients of products ---- */

typedef struct {
    bool narrow, last; /* last: g has one element for each line, the gradient of its last result */
    mg_lines lines;
    char *dx;
    const char *x, *g;
    apart *room; /* n for each block */
    int64_t per_block;
} scan_back_job;

static void scan_back_block(void *context, int64_t block) {
    const scan_back_job *job = context;
    int64_t n = job->lines.n, inner = job->lines.inner, size = job->narrow ? 4 : 8;
    int64_t end = mg_min((block + 1) * job->per_block, job->lines.outer * inner);
    for (int64_t line = block * job->per_block; line < end; line++) {
        int64_t at = (line / inner * n * inner + line % inner) * size;
        (job->narrow ? scan_products_back_f32 : scan_products_back_f64)(
            job->dx + at, job->x + at, job->last ? job->g + line * size : job->g + at, job->last,
            inner, n, job->room + block * n);
    }
}

/* The gradient of running products along an axis. With `last`, g is the gradient of the last result
 * of each line. */
static mg_array *scan_products_back(mg_array *g, mg_array *x, int axis, bool last) {
    scan_back_job job = {.narrow = x->dtype == MG_FLOAT32, .last = last};
    if (!mg_is_float(x->dtype) || g->dtype != x->dtype) return mg_fail(MG_EDTYPE, x->dtype, g->dtype);
    if (lines_along(&job.lines, x, axis)) return NULL;
    int64_t lines = job.lines.outer * job.lines.inner, n = job.lines.n;
    if (last ? g->size != lines : lines_differ(g, x) != MG_OK)
        return last ? mg_fail(MG_ESHAPE, g->size, lines) : NULL;
    mg_array *dx = mg_new(x->dtype, x->ndim, x->shape);
    if (!dx || dx->size == 0) return dx;
    int64_t blocks = mg_min(mg_ceil_div(x->size, SCAN_GRAIN), mg_min(lines, 64));
    job.per_block = mg_ceil_div(lines, blocks);
    blocks = mg_ceil_div(lines, job.per_block);
    size_t capacity, bytes = (size_t)(blocks * n) * sizeof(apart);
    mg_array *from_x = mg_contiguous(x), *from_g = from_x ? mg_contiguous(g) : NULL;
    job.room = from_g ? mg_block_take(bytes, &capacity) : NULL;
    if (job.room) {
        job.dx = dx->data;
        job.x = from_x->data;
        job.g = from_g->data;
        mg_parallel_if(x->size >= 2 * SCAN_GRAIN, blocks, scan_back_block, &job);
        mg_block_give(job.room, capacity);
    } else {
        if (from_g) mg_fail(MG_ENOMEM, (int64_t)bytes, 0);
        mg_release(dx);
        dx = NULL;
    }
    mg_release(from_g);
    mg_release(from_x);
    return dx;
}

mg_array *mg_cumprod_vjp(mg_array *g, mg_array *x, int axis) {
    return scan_products_back(g, x, axis, false);
}

mg_array *mg_prod_vjp(mg_array *g, mg_array *x, int axis) {
    return scan_products_back(g, x, axis, true);
}

int mg_product_overflows(mg_array *x, int axis) {
    mg_lines lines;
    if (!mg_is_float(x->dtype) || lines_along(&lines, x, axis)) return true;
    mg_array *held = mg_contiguous(x);
    bool far = !held;
    for (int64_t i = 0; held && x->size && !far && i < lines.outer * lines.inner; i++) {
        int64_t at = i / lines.inner * lines.n * lines.inner + i % lines.inner;
        const char *from = held->data + at * mg_itemsize(x->dtype);
        far = (x->dtype == MG_FLOAT32 ? scan_far_f32 : scan_far_f64)(from, lines.inner, lines.n);
    }
    mg_release(held);
    return far;
}

mg_array *mg_product_exponents(mg_array *x, int axis, int others) {
    if (!mg_is_float(x->dtype)) return mg_fail(MG_EDTYPE, x->dtype, 0);
    mg_lines lines;
    if (lines_along(&lines, x, axis)) return NULL;
    mg_array *held = mg_contiguous(x), *y = held ? mg_new(MG_INT64, x->ndim, x->shape) : NULL;
    for (int64_t i = 0; y && y->size && i < lines.outer * lines.inner; i++) {
        int64_t at = i / lines.inner * lines.n * lines.inner + i % lines.inner;
        (x->dtype == MG_FLOAT32 ? scan_powers_f32 : scan_powers_f64)(
            (int64_t *)y->data + at, held->data + at * mg_itemsize(x->dtype), lines.inner, lines.n,
            others);
    }
    mg_release(held);
    return y;
}

mg_array *mg_scale_by_exponents(mg_array *x, mg_array *powers) {
    if (!mg_is_float(x->dtype) || powers->dtype != MG_INT64)
        return mg_fail(MG_EDTYPE, x->dtype, powers->dtype);
    if (lines_differ(x, powers)) return NULL;
    mg_array *held = mg_contiguous(x), *y = held ? mg_new(x->dtype, x->ndim, x->shape) : NULL;
    if (y && mg_is_contiguous(powers))
        (x->dtype == MG_FLOAT32 ? scan_shifted_f32 : scan_shifted_f64)(
            y->data, held->data, (const int64_t *)powers->data, x->size);
    mg_release(held);
    return y;
}

mg_array *mg_recurrence(mg_array *a, mg_array *b, int axis) {
    if (!mg_is_float(a->dtype) || b->dtype != a->dtype)
        return mg_fail(MG_EDTYPE, a->dtype, b->dtype);
    if (lines_differ(a, b)) return NULL;
    return scan_run(SCAN_RECURRENCE, false, a, b, axis);
}

mg_array *mg_cummax(mg_array *x, int axis) { return scan_numbers(SCAN_FIRST_MAX, false, x, axis); }

mg_array *mg_cummin(mg_array *x, int axis) { return scan_numbers(SCAN_FIRST_MIN, false, x, axis); }

