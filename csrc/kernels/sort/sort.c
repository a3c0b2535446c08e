/* sort.c: stable sorting along one axis, order statistics, medians and binary search. */
#include "kernels/iterate/contiguous.h"
#include "threads/pool.h"
#include "kernels/iterate/lines.h"
#include "order.h"
#include "kernels/sizes.h"
#include "simd/vec.h"

#include <math.h>

static uint32_t sort_key_32(int dtype, const void *x, int64_t i) {
    return dtype == MG_BOOL ? ((const uint8_t *)x)[i] != 0 : order_of_f32(((const float *)x)[i]);
}

static uint64_t sort_key_64(int dtype, const void *x, int64_t i) { return order_at(dtype, x, i); }

/* The indices that are computed for each line.
 * SORT_FIRST: of the first elements in sorted order.
 * SORT_ORDER_STATISTICS: of the elements of some ranks.
 * SORT_MIDDLE, SORT_NANMIDDLE: of the lower and upper median, of all elements or of those that are
 * not NaN. */
typedef enum { SORT_FIRST, SORT_ORDER_STATISTICS, SORT_MIDDLE, SORT_NANMIDDLE } sort_task;

typedef struct {
    sort_task task;
    int dtype;
    bool descending, narrow; /* narrow: keys and indices fit 32 bits */
    const int64_t *ranks;
    bool nan_all; /* a line with a NaN has it at all ranks */
    /* sorts long lines, as more is asked for than one rank or two neighbouring ranks */
    bool sorts;
    int64_t *places;
    int64_t found; /* number of indices for each line; -1 for all */
    const void *x;
    mg_lines lines;
    char *scratch;
    int64_t scratch_size; /* of one block */
    int64_t per_block;
} sort_job;

/* The f-th rank that is asked for. `greatest`: number of elements with the greatest key, which NaN
 * has. */
static int64_t rank_asked(const sort_job *job, int64_t greatest, int64_t f) {
    int64_t n = job->lines.n, nan = mg_is_float(job->dtype) ? greatest : 0;
    int64_t count = job->task == SORT_NANMIDDLE ? n - nan : n;
    if (nan && (job->nan_all || job->task == SORT_MIDDLE)) return n - 1;
    if (job->task == SORT_ORDER_STATISTICS) return job->ranks[f];
    return f ? count / 2 : mg_max(count - 1, 0) / 2;
}

#define S(name) name##_32
#define SORT_VEC(name) name##_f32
#define SORT_REAL float
#define SORT_WORD uint32_t
#define SORT_SIGNED int32_t
#define SORT_COMPARED true
#include "sort.inc.c"
#undef S
#undef SORT_VEC
#undef SORT_REAL
#undef SORT_WORD
#undef SORT_SIGNED
#undef SORT_COMPARED
#define S(name) name##_64
#define SORT_VEC(name) name##_f64
#define SORT_REAL double
#define SORT_WORD uint64_t
#define SORT_SIGNED int64_t
#if defined(__x86_64__) && !defined(__SSE4_2__)
#define SORT_COMPARED false
#else
#define SORT_COMPARED true
#endif
#include "sort.inc.c"
#undef S
#undef SORT_VEC
#undef SORT_REAL
#undef SORT_WORD
#undef SORT_SIGNED
#undef SORT_COMPARED

/* ---- all lines ---- */

static void sort_block(void *context, int64_t block) {
    const sort_job *job = context;
    int64_t n = job->lines.n, inner = job->lines.inner;
    int64_t end = mg_min((block + 1) * job->per_block, job->lines.outer * inner);
    void *scratch = job->scratch + block * job->scratch_size;
    void (*run)(const sort_job *, int64_t *, int64_t, void *) =
        job->task == SORT_FIRST ? (job->narrow ? sort_line_32 : sort_line_64)
                                : (job->narrow ? rank_line_32 : rank_line_64);
    int64_t line = block * job->per_block, o = line / inner, j = line % inner;
    for (; line < end; line++) {
        run(job, job->places + o * job->found * inner + j, o * n * inner + j, scratch);
        if (++j < inner) continue;
        j = 0;
        o++;
    }
}

/* The lines are divided among as many blocks as there are threads, each with scratch of its own. */
static mg_array *sorted_places(mg_array *x, int axis, sort_job job) {
    int64_t shape[MG_MAX_NDIM];
    if (lines_along(&job.lines, x, axis)) return NULL;
    if (job.found < 0) job.found = job.lines.n;
    for (int d = 0; d < x->ndim; d++) shape[d] = x->shape[d];
    shape[axis < 0 ? axis + x->ndim : axis] = job.found;
    /* rank 0 stands for the median */
    for (int64_t f = 0; f < job.found && job.task != SORT_FIRST; f++) {
        int64_t rank = job.task == SORT_ORDER_STATISTICS ? job.ranks[f] : 0;
        if (rank < 0 || rank >= job.lines.n) return mg_fail(MG_EARG, rank, job.lines.n);
    }
    mg_array *places = mg_new(MG_INT64, x->ndim, shape);
    if (!places || places->size == 0) return places;
    job.dtype = x->dtype;
    job.narrow = mg_itemsize(x->dtype) <= 4 && job.lines.n <= UINT32_MAX;
    job.sorts = job.task == SORT_FIRST || job.found > 2 ||
                (job.task == SORT_ORDER_STATISTICS && (uint64_t)(job.ranks[job.found - 1] - job.ranks[0]) > 1);
    job.scratch_size = (job.sorts || job.lines.n <= SORT_SHORT_64 ? 2 : 1) * job.lines.n *
                       (int64_t)(job.narrow ? sizeof(sort_item_32) : sizeof(sort_item_64));
    int64_t count = job.lines.outer * job.lines.inner;
    int64_t blocks = x->size < 4096 ? 1 : mg_min(count, mg_get_num_threads());
    job.per_block = mg_ceil_div(count, blocks);
    blocks = mg_ceil_div(count, job.per_block);
    size_t capacity, bytes = (size_t)(blocks * job.scratch_size);
    mg_array *from = mg_contiguous(x);
    job.scratch = from ? mg_block_take(bytes, &capacity) : NULL;
    if (!job.scratch) {
        if (from) mg_fail(MG_ENOMEM, (int64_t)bytes, 0);
        mg_release(from);
        mg_release(places);
        return NULL;
    }
    job.places = (int64_t *)places->data;
    job.x = from->data;
    mg_parallel_for(blocks, sort_block, &job);
    mg_block_give(job.scratch, capacity);
    mg_release(from);
    return places;
}

mg_array *mg_argsort(mg_array *x, int axis, int descending) {
    return sorted_places(x, axis, (sort_job){.descending = descending != 0, .found = -1});
}

mg_array *mg_order_statistics(mg_array *x, int count, const int64_t *ranks, int nan_all, int axis) {
    if (count < 0) return mg_fail(MG_EARG, count, 0);
    return sorted_places(x, axis, (sort_job){.task = SORT_ORDER_STATISTICS, .ranks = ranks,
                                             .nan_all = nan_all != 0, .found = count});
}

mg_array *mg_median(mg_array *x, int axis, int skip_nan) {
    sort_task task = skip_nan ? SORT_NANMIDDLE : SORT_MIDDLE;
    return sorted_places(x, axis, (sort_job){.task = task, .found = 2});
}

/* ---- top k ------------ */

typedef struct {
    int dtype;
    bool largest;
    int64_t k;
    int64_t *places;
    const void *x;
    mg_lines lines;
    int64_t per_block;
} top_job;

/* Keeps the k best elements so far in order. Almost every element is worse than the last of
 * them. */
static void top_line(const top_job *job, int64_t *places, int64_t first) {
    uint64_t best[TOP_MOST];
    int64_t place[TOP_MOST], inner = job->lines.inner, found = 0;
    for (int64_t i = 0; i < job->lines.n; i++) {
        uint64_t key = order_at(job->dtype, job->x, first + i * inner);
        if (job->largest) key = ~key;
        if (found == job->k && key >= best[found - 1]) continue;
        int64_t to = found < job->k ? found++ : found - 1;
        for (; to > 0 && best[to - 1] > key; to--) {
            best[to] = best[to - 1];
            place[to] = place[to - 1];
        }
        best[to] = key;
        place[to] = i;
    }
    for (int64_t i = 0; i < found; i++) places[i * inner] = place[i];
}

static void top_block(void *context, int64_t block) {
    const top_job *job = context;
    int64_t inner = job->lines.inner, end = job->lines.outer * inner;
    end = mg_min((block + 1) * job->per_block, end);
    for (int64_t line = block * job->per_block; line < end; line++) {
        int64_t o = line / inner, j = line % inner;
        top_line(job, job->places + o * job->k * inner + j, o * job->lines.n * inner + j);
    }
}

mg_array *mg_topk(mg_array *x, int64_t k, int axis, int largest) {
    top_job job = {.dtype = x->dtype, .largest = largest != 0, .k = k};
    int64_t shape[MG_MAX_NDIM];
    if (lines_along(&job.lines, x, axis)) return NULL;
    if (k < 0 || k > job.lines.n) return mg_fail(MG_EARG, k, job.lines.n);
    for (int d = 0; d < x->ndim; d++) shape[d] = x->shape[d];
    shape[axis < 0 ? axis + x->ndim : axis] = k;
    if (k > TOP_MOST)
        return sorted_places(x, axis, (sort_job){.descending = job.largest, .found = k});
    mg_array *places = mg_new(MG_INT64, x->ndim, shape);
    if (!places || places->size == 0) return places;
    mg_array *from = mg_contiguous(x);
    if (!from) {
        mg_release(places);
        return NULL;
    }
    job.places = (int64_t *)places->data;
    job.x = from->data;
    job.per_block = mg_ceil_div(TOP_BLOCK, job.lines.n);
    mg_parallel_for(mg_ceil_div(job.lines.outer * job.lines.inner, job.per_block), top_block, &job);
    mg_release(from);
    return places;
}

/* ---- binary search ---- */

typedef struct {
    int dtype;
    bool right, shared; /* shared: one sorted line for all values */
    int64_t n, run;     /* length of a sorted line, and number of values that are looked up in it */
    int64_t size;
    const void *sorted, *values;
    int64_t *out;
} search_job;

/* For each value: the number of elements of a sorted line that come before it. A step halves the
 * rest of the line by arithmetic on the comparison, as a branch would be unpredictable. Several
 * values go together, so that none waits for another. NaN comes after `last`, which is infinity. */
#define SEARCH(name, type, last)                                                                   \
    static void search_##name(const type *line, int64_t n, const type *values, int64_t count,      \
                              bool right, int64_t *out) {                                          \
        for (int64_t i = 0; i < count; i += SEARCH_GROUP) {                                        \
            int64_t low[SEARCH_GROUP] = {0}, some = mg_min(count - i, SEARCH_GROUP);               \
            type value[SEARCH_GROUP];                                                              \
            bool after[SEARCH_GROUP]; /* equal elements come before it */                          \
            for (int j = 0; j < SEARCH_GROUP; j++) {                                               \
                type v = values[i + (j < some ? j : 0)];                                           \
                after[j] = right | (v != v);                                                       \
                value[j] = v != v ? last : v;                                                      \
            }                                                                                      \
            for (int64_t left = n, half; left > 0; left -= half) {                                 \
                half = (left + 1) / 2;                                                             \
                for (int j = 0; j < SEARCH_GROUP; j++) {                                           \
                    type at = line[low[j] + half - 1];                                             \
                    bool before = (at < value[j]) | (after[j] & (at == value[j]));                 \
                    low[j] += half & -(int64_t)before;                                             \
                }                                                                                  \
            }                                                                                      \
            for (int j = 0; j < some; j++)                                                         \
                out[i + j] = right && values[i + j] != values[i + j] ? n : low[j];                 \
        }                                                                                          \
    }
SEARCH(bool, uint8_t, 0)
SEARCH(int64, int64_t, 0)
SEARCH(f32, float, INFINITY)
SEARCH(f64, double, INFINITY)

static void search_block(void *context, int64_t block) {
    const search_job *job = context;
    int64_t i = block * SEARCH_BLOCK, end = mg_min(i + SEARCH_BLOCK, job->size), count;
    for (; i < end; i += count) {
        int64_t line = i / job->run;
        count = mg_min(end, (line + 1) * job->run) - i;
#define SEARCH_RUN(name, type)                                                                     \
    search_##name((const type *)job->sorted + (job->shared ? 0 : line * job->n), job->n,           \
                  (const type *)job->values + i, count, job->right, job->out + i)
        switch (job->dtype) {
        case MG_BOOL: SEARCH_RUN(bool, uint8_t); break;
        case MG_INT64: SEARCH_RUN(int64, int64_t); break;
        case MG_FLOAT32: SEARCH_RUN(f32, float); break;
        default: SEARCH_RUN(f64, double);
        }
#undef SEARCH_RUN
    }
}

mg_array *mg_searchsorted(mg_array *sorted, mg_array *values, int right) {
    bool shared = sorted->ndim == 1;
    if (sorted->dtype != values->dtype) return mg_fail(MG_EDTYPE, sorted->dtype, values->dtype);
    if (sorted->ndim < 1) return mg_fail(MG_ESHAPE, 0, 1);
    if (!shared && sorted->ndim != values->ndim)
        return mg_fail(MG_ESHAPE, sorted->ndim, values->ndim);
    for (int d = 0; !shared && d < sorted->ndim - 1; d++)
        if (sorted->shape[d] != values->shape[d])
            return mg_fail(MG_ESHAPE, sorted->shape[d], values->shape[d]);
    mg_array *out = mg_new(MG_INT64, values->ndim, values->shape);
    if (!out || out->size == 0) return out;
    mg_array *in = mg_contiguous(sorted), *of = in ? mg_contiguous(values) : NULL;
    if (of) {
        search_job job = {.dtype = values->dtype,
                          .right = right != 0,
                          .shared = shared,
                          .n = sorted->shape[sorted->ndim - 1],
                          .run = shared ? out->size : values->shape[values->ndim - 1],
                          .size = out->size,
                          .sorted = in->data,
                          .values = of->data,
                          .out = (int64_t *)out->data};
        mg_parallel_for(mg_ceil_div(out->size, SEARCH_BLOCK), search_block, &job);
    } else {
        mg_release(out);
        out = NULL;
    }
    mg_release(of);
    mg_release(in);
    return out;
}
