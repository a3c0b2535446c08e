/* index.c: indexing by integer arrays: gather, scatter and their gradients.
 *
 * Views in Python bring every NumPy form of index to this one. A row is what one index selects: the
 * remaining axes. NULL in place of the k-th index array stands for the position on axis k of the
 * other index arrays. Selecting along one axis thus takes one index array. Scatters that combine
 * rows sort the indices by ranges of the result. A range then stays in cache and belongs to one
 * thread, while repeated indices are combined in their order.
 */
#include "kernels/iterate/contiguous.h"
#include "threads/pool.h"
#include "kernels/iterate/nditer.h"

#include <string.h>

typedef struct index_plan {
    int64_t count;     /* number of selected rows */
    int64_t *offsets;  /* of each row, in elements */
    size_t capacity;   /* of the block that holds the offsets */
    int64_t row;       /* elements of a row, which is contiguous */
    int64_t *order;    /* order in which a scatter takes the rows; NULL: as they come */
} index_plan;

/* offsets[i] = base + i * along + index i of `from` * stride; with `add` the last term is added to
 * offsets[i]. True if an index is out of range. The loop has no early exit, so that it is
 * vectorised if `from` is `straight`. */
MG_INLINE bool index_run(bool straight, bool add, int64_t *restrict offsets,
                         const int64_t *restrict from, int64_t step, int64_t n, int64_t base,
                         int64_t along, int64_t size, int64_t stride) {
    uint64_t outside = 0;
    for (int64_t i = 0; i < n; i++) {
        int64_t position = from[straight ? i : i * step];
        outside |= (uint64_t)position + (uint64_t)size >= 2 * (uint64_t)size;
        position += position < 0 ? size : 0;
        offsets[i] = (int64_t)((uint64_t)(add ? offsets[i] : base + i * along) +
                               (uint64_t)position * (uint64_t)stride);
    }
    return outside;
}

/* Computes offsets from one index array of any strides, for an axis of `size` elements that lie
 * `stride` apart. For the first array `others` holds the steps of the axes whose position is that
 * of the index array's own axes. The offsets of later arrays (`others` is NULL) are added. */
static int index_add_offsets(const index_plan *plan, const mg_array *index, int64_t size,
                             int64_t stride, const int64_t *others) {
    int inner = index->ndim - 1;
    int64_t run = inner < 0 ? 1 : index->shape[inner], step = inner < 0 ? 0 : index->strides[inner];
    int64_t at[MG_MAX_NDIM] = {0}, base = 0, along = others && inner >= 0 ? others[inner] : 0;
    const int64_t *from = (const int64_t *)index->data;
    for (int64_t done = 0; done < plan->count; done += run) {
        int64_t *offsets = plan->offsets + done;
        bool outside;
        if (!others) outside = index_run(false, true, offsets, from, step, run, 0, 0, size, stride);
        else if (step == 1)
            outside = index_run(true, false, offsets, from, 1, run, base, along, size, stride);
        else outside = index_run(false, false, offsets, from, step, run, base, along, size, stride);
        if (outside) { /* takes the last one if another thread changed them meanwhile */
            int64_t i = 0;
            while (i < run - 1 && from[i * step] >= -size && from[i * step] < size) i++;
            return mg_fail_code(MG_EINDEX, from[i * step], size);
        }
        for (int d = inner - 1; d >= 0; d--) {
            from += index->strides[d];
            base += others ? others[d] : 0;
            if (++at[d] < index->shape[d]) break;
            from -= at[d] * index->strides[d];
            base -= others ? at[d] * others[d] : 0;
            at[d] = 0;
        }
    }
    return MG_OK;
}

/* The first index array, whose shape all others have. NULL with an error set if there is none, or
 * more than there are axes. */
static const mg_array *index_first(int ndim, int count, mg_array **indices) {
    for (int k = 0; k < count && count <= ndim; k++)
        if (indices[k]) return indices[k];
    return mg_fail(MG_EINDEX, count, ndim);
}

/* Converts the index arrays to element offsets, for an array of this shape and these strides. 0 or
 * an error code. The caller gives back the block of offsets. */
static int index_resolve(index_plan *plan, int ndim, const int64_t *shape, const int64_t *strides,
                         int count, mg_array **indices) {
    const mg_array *first = index_first(ndim, count, indices);
    if (!first) return mg_error();
    plan->count = first->size;
    for (int k = 0; k < count; k++) {
        if (!indices[k]) continue;
        if (indices[k]->dtype != MG_INT64) return mg_fail_code(MG_EDTYPE, indices[k]->dtype, k);
        if (!mg_same_shape(indices[k], first))
            return mg_fail_code(MG_ESHAPE, first->size, indices[k]->size);
    }
    int64_t others[MG_MAX_NDIM] = {0};
    for (int k = 0; k < count; k++) {
        if (indices[k]) continue;
        if (k >= first->ndim) return mg_fail_code(MG_ENDIM, first->ndim, k);
        if (plan->count > 0 && first->shape[k] > shape[k])
            return mg_fail_code(MG_EINDEX, first->shape[k] - 1, shape[k]);
        others[k] = strides[k];
    }
    plan->offsets = mg_block_take((size_t)plan->count * sizeof(int64_t), &plan->capacity);
    if (!plan->offsets) return mg_fail_code(MG_ENOMEM, plan->count * 8, 0);
    int code = MG_OK;
    const int64_t *start = others; /* for the first array only, which may occur again */
    for (int k = 0; k < count && !code; k++) {
        if (!indices[k]) continue;
        code = index_add_offsets(plan, indices[k], shape[k], strides[k], start);
        start = NULL;
    }
    if (code) mg_block_give(plan->offsets, plan->capacity);
    return code;
}

/* The shape of the indices followed by the axes that are not indexed. Returns its ndim, or -1 with
 * an error set. */
static int index_result_shape(int ndim, const int64_t *shape, int count, const mg_array *index,
                              int64_t *result) {
    int total = index->ndim + ndim - count;
    if (total > MG_MAX_NDIM) {
        mg_fail(MG_ENDIM, total, MG_MAX_NDIM);
        return -1;
    }
    memcpy(result, index->shape, sizeof(int64_t) * (size_t)index->ndim);
    memcpy(result + index->ndim, shape + count, sizeof(int64_t) * (size_t)(ndim - count));
    return total;
}

/* True if rows, the axes of `a` behind its first `count`, are contiguous. */
static bool index_rows_whole(const mg_array *a, int count) {
    int64_t inner[MG_MAX_NDIM];
    mg_row_major(a->ndim, a->shape, inner);
    for (int d = count; d < a->ndim; d++)
        if (a->shape[d] != 1 && a->strides[d] != inner[d]) return false;
    return true;
}

static int64_t index_row_size(int ndim, const int64_t *shape, int count) {
    int64_t row = 1;
    for (int d = count; d < ndim; d++) {
        MG_AS_IT_IS;
        row *= shape[d];
    }
    return row;
}

int mg_index_within(mg_array *index, int64_t n) {
    if (index->dtype != MG_INT64) return mg_fail_code(MG_EDTYPE, index->dtype, 0);
    mg_array *from = mg_contiguous(index);
    if (!from) return mg_error();
    const int64_t *at = (const int64_t *)from->data;
    uint64_t largest = 0; /* negative indices count as large */
    for (int64_t i = 0; i < from->size; i++)
        largest = (uint64_t)at[i] > largest ? (uint64_t)at[i] : largest;
    bool within = from->size == 0 || largest < (uint64_t)n;
    mg_release(from);
    return within ? MG_OK : mg_fail_code(MG_EINDEX, (int64_t)largest, n);
}

enum {
    INDEX_FETCH = 4096     /* bytes to prefetch; beyond, the processor does so itself */
};

/* ---- gather ---- */

typedef struct index_gather {
    index_plan plan;
    char *to;
    const char *from;
    int itemsize;
    bool far; /* rows come from beyond L2 */
    int64_t rows_per_block;
    /* rows are gathered from each of `lines` lines, which are line_step apart */
    int64_t lines, line_step, lines_per_block;
} index_gather;

/* Copies a row from beyond L2. Prefetches the next row, and the place of rows to come. */
MG_INLINE void index_copy_row(char *restrict to, const char *restrict from, const char *next,
                              int64_t bytes) {
    int64_t i = 0;
    for (; i + 64 <= bytes; i += 64) {
        __builtin_prefetch(next + i);
        __builtin_prefetch(to + i + INDEX_FETCH);
        memcpy(to + i, from + i, 64);
    }
    if (i < bytes) memcpy(to + i, from + i, (size_t)(bytes - i));
}

/* Short rows, each copied as its first and its last `size` bytes, which may overlap. */
MG_INLINE void index_gather_ends(const int size, const index_gather *job, char *restrict to,
                                 const char *base, int64_t begin, int64_t end, int64_t bytes) {
    for (int64_t i = begin; i < end; i++, to += bytes) {
        const char *restrict from = base + job->plan.offsets[i] * job->itemsize;
        memcpy(to, from, (size_t)size);
        memcpy(to + bytes - size, from + bytes - size, (size_t)size);
    }
}

static void index_gather_rows(const index_gather *job, char *to, const char *from, int64_t begin,
                              int64_t end) {
    const int64_t *offsets = job->plan.offsets;
    int64_t row = job->plan.row, bytes = row * job->itemsize;
    bool brief = row > 1 && bytes <= NDITER_SHORT && !job->far;
    if (brief && bytes >= 64) index_gather_ends(64, job, to, from, begin, end, bytes);
    else if (brief && bytes >= 32) index_gather_ends(32, job, to, from, begin, end, bytes);
    else if (brief && bytes >= 16) index_gather_ends(16, job, to, from, begin, end, bytes);
    else if (brief && bytes >= 8) index_gather_ends(8, job, to, from, begin, end, bytes);
    else if (row == 1 && job->itemsize == 4)
        for (int64_t i = begin; i < end; i++)
            ((uint32_t *)to)[i - begin] = ((const uint32_t *)from)[offsets[i]];
    else if (row == 1 && job->itemsize == 2)
        for (int64_t i = begin; i < end; i++)
            ((uint16_t *)to)[i - begin] = ((const uint16_t *)from)[offsets[i]];
    else if (row == 1 && job->itemsize == 8)
        for (int64_t i = begin; i < end; i++)
            ((uint64_t *)to)[i - begin] = ((const uint64_t *)from)[offsets[i]];
    else
        for (int64_t i = begin; i < end; i++, to += bytes) {
            const char *one = from + offsets[i] * job->itemsize;
            const char *next = from + offsets[i + (i + 1 < end)] * job->itemsize;
            if (job->far) index_copy_row(to, one, next, bytes);
            else mg_copy_run(to, one, row, 1, job->itemsize);
        }
}

static void index_gather_block(void *context, int64_t block) {
    const index_gather *job = context;
    int64_t count = job->plan.count, blocks = mg_ceil_div(count, job->rows_per_block);
    int64_t begin = block % blocks * job->rows_per_block, line = block / blocks * job->lines_per_block;
    int64_t end = mg_min(begin + job->rows_per_block, count);
    for (int64_t last = mg_min(line + job->lines_per_block, job->lines); line < last; line++)
        index_gather_rows(job, job->to + (line * count + begin) * job->plan.row * job->itemsize,
                          job->from + line * job->line_step * job->itemsize, begin, end);
}

/* True if there is one index, on the last of `count` axes, for all positions on the axes before it.
 * These axes must form lines of x that follow one another. */
static bool index_along_lines(const mg_array *x, int count, mg_array **indices) {
    const mg_array *index = indices[count - 1];
    if (count < 2 || !index || index->ndim != count) return false;
    for (int d = 0; d < count - 1; d++) {
        MG_AS_IT_IS;
        if (indices[d] || (index->strides[d] != 0 && index->shape[d] > 1)) return false;
        if (index->shape[d] != x->shape[d]) return false;
        if (d && x->strides[d - 1] != x->shape[d] * x->strides[d]) return false;
    }
    return true;
}

mg_array *mg_gather(mg_array *x, int count, mg_array **indices) {
    index_gather job = {.itemsize = (int)mg_itemsize(x->dtype)};
    int64_t shape[MG_MAX_NDIM];
    const mg_array *first = index_first(x->ndim, count, indices);
    int ndim = first ? index_result_shape(x->ndim, x->shape, count, first, shape) : -1;
    if (ndim < 0) return NULL;
    /* The indexed axes may have any strides. */
    mg_array *from = index_rows_whole(x, count) ? mg_retain(x) : mg_copy(x);
    mg_array *out = from ? mg_new(x->dtype, ndim, shape) : NULL;
    if (out) {
        mg_array line, *one = &line;
        int axis = 0;
        job.lines = 1;
        job.plan.row = index_row_size(x->ndim, x->shape, count);
        if (out->size > 0 && index_along_lines(from, count, indices)) {
            axis = count - 1;
            line = mg_header(indices[axis]);
            line.ndim = 1;
            line.size = line.shape[0] = indices[axis]->shape[axis];
            line.strides[0] = indices[axis]->strides[axis];
            job.lines = indices[axis]->size / line.size;
            job.line_step = from->strides[axis - 1];
        }
        if (index_resolve(&job.plan, x->ndim - axis, x->shape + axis, from->strides + axis,
                          count - axis, axis ? &one : indices)) {
            mg_release(out);
            out = NULL;
        } else if (out->size > 0) {
            job.to = out->data;
            job.from = from->data;
            job.far = x->size * job.itemsize > INDEX_NEAR / 2;
            job.rows_per_block = mg_max(NDITER_BLOCK / job.plan.row, 1);
            job.lines_per_block = mg_max(NDITER_BLOCK / (job.plan.count * job.plan.row), 1);
            mg_parallel_for(mg_ceil_div(job.plan.count, job.rows_per_block) *
                                mg_ceil_div(job.lines, job.lines_per_block),
                            index_gather_block, &job);
        }
        if (out) mg_block_give(job.plan.offsets, job.plan.capacity);
    }
    mg_release(from);
    return out;
}

/* ---- writes ---- */

/* Writes the contiguous rows of `from` to x's rows at the plan's offsets. */
static void index_write(mg_array *x, const mg_array *from, int count, const index_plan *plan) {
    int64_t itemsize = mg_itemsize(x->dtype), row = plan->row;
    if (row == 1 && itemsize == 4)
        for (int64_t i = 0; i < plan->count; i++)
            ((uint32_t *)x->data)[plan->offsets[i]] = ((const uint32_t *)from->data)[i];
    else if (row == 1 && itemsize == 8)
        for (int64_t i = 0; i < plan->count; i++)
            ((uint64_t *)x->data)[plan->offsets[i]] = ((const uint64_t *)from->data)[i];
    else if (index_rows_whole(x, count))
        for (int64_t i = 0; i < plan->count; i++)
            memcpy(x->data + plan->offsets[i] * itemsize, from->data + i * row * itemsize,
                   (size_t)(row * itemsize));
    else { /* row by row through a header on x */
        mg_array window = mg_header(x), source = mg_header(from);
        window.ndim = source.ndim = x->ndim - count;
        window.size = source.size = row;
        for (int d = 0; d < window.ndim; d++) {
            window.shape[d] = source.shape[d] = x->shape[d + count];
            window.strides[d] = x->strides[d + count];
        }
        mg_row_major(source.ndim, source.shape, source.strides);
        for (int64_t i = 0; i < plan->count; i++) {
            window.data = x->data + plan->offsets[i] * itemsize;
            source.data = from->data + i * row * itemsize;
            mg_copy_strided(&window, &source);
        }
    }
}

/* ---- scatter ---- */

/* The number of the k-th row in sorted order. Prefetches the row after it, which may lie
 * anywhere. */
static MG_NOINLINE int64_t index_sorted(const index_plan *plan, const char *from, int64_t itemsize,
                                        int64_t k, int64_t end) {
    int64_t bytes = plan->row * itemsize, next = plan->order[k + (k + 1 < end)] * bytes;
    for (int64_t i = 0; i < mg_min(bytes, INDEX_FETCH); i += 64)
        __builtin_prefetch(from + next + i);
    return plan->order[k];
}

#define ELEMENT float
#define ARITHMETIC float
#define INDEX_NAME(name) name##_f32
#include "index.inc.c"
#define ELEMENT double
#define ARITHMETIC double
#define INDEX_NAME(name) name##_f64
#include "index.inc.c"
#define ELEMENT int64_t
#define ARITHMETIC uint64_t
#define INDEX_NAME(name) name##_i64
#include "index.inc.c"
#define ELEMENT uint8_t
#define ARITHMETIC uint8_t
#define INDEX_NAME(name) name##_b8
#include "index.inc.c"

typedef struct index_scatter {
    index_plan plan;
    int op, dtype;
    bool zeros; /* the result is not yet filled with zeros */
    char *to;
    const char *from;
    int64_t size, range; /* elements */
    int64_t *ends;       /* end of each range, in the order of rows */
} index_scatter;

/* The range that row i lies in. The row's middle decides, so that rounding moves no row to another
 * range. */
MG_INLINE int64_t index_range(const index_scatter *job, int64_t i, double share) {
    return (int64_t)((double)(2 * job->plan.offsets[i] + job->plan.row) * share);
}

/* Sorts rows by range, stably. `ends` are 0 on entry. */
static void index_sort(index_scatter *job, int64_t ranges) {
    double share = 0.5 / (double)job->range;
    int64_t begin = 0;
    for (int64_t i = 0; i < job->plan.count; i++) job->ends[index_range(job, i, share)]++;
    for (int64_t r = 0; r < ranges; r++) {
        int64_t count = job->ends[r];
        job->ends[r] = begin;
        begin += count;
    }
    for (int64_t i = 0; i < job->plan.count; i++)
        job->plan.order[job->ends[index_range(job, i, share)]++] = i;
}

static void index_scatter_block(void *context, int64_t block) {
    const index_scatter *job = context;
    int64_t low = block * job->range, high = mg_min(low + job->range, job->size);
    int64_t begin = block ? job->ends[block - 1] : 0, end = job->ends[block];
    int64_t itemsize = mg_itemsize(job->dtype);
    if (job->zeros) memset(job->to + low * itemsize, 0, (size_t)((high - low) * itemsize));
    switch (job->dtype) {
    case MG_FLOAT32: index_rows_f32(job->op, job->to, job->from, &job->plan, begin, end); break;
    case MG_FLOAT64: index_rows_f64(job->op, job->to, job->from, &job->plan, begin, end); break;
    case MG_INT64: index_rows_i64(job->op, job->to, job->from, &job->plan, begin, end); break;
    default: index_rows_b8(job->op, job->to, job->from, &job->plan, begin, end);
    }
}

/* x[i0, i1, ...] op= value for a contiguous x and a value of the selected shape. If `zeros`, x
 * counts as zero. */
static int index_combine(int op, mg_array *x, bool zeros, int count, mg_array **indices,
                         mg_array *value) {
    if (value->dtype != x->dtype) return mg_fail_code(MG_EDTYPE, value->dtype, 1);
    int64_t expected[MG_MAX_NDIM];
    const mg_array *first = index_first(x->ndim, count, indices);
    int ndim = first ? index_result_shape(x->ndim, x->shape, count, first, expected) : -1;
    if (ndim < 0) return mg_error();
    if (value->ndim != ndim) return mg_fail_code(MG_ENDIM, value->ndim, ndim);
    for (int d = 0; d < ndim; d++)
        if (value->shape[d] != expected[d])
            return mg_fail_code(MG_ESHAPE, expected[d], value->shape[d]);
    index_plan plan = {.row = index_row_size(x->ndim, x->shape, count)};
    int code = index_resolve(&plan, x->ndim, x->shape, x->strides, count, indices);
    if (code) return code;
    mg_array *from = mg_contiguous(value);
    if (from && x->size > 0) {
        index_scatter job = {.plan = plan, .op = op, .dtype = x->dtype, .zeros = zeros,
                             .to = x->data, .from = from->data, .size = x->size,
                             .range = x->size, .ends = &plan.count};
        if (x->dtype == MG_BOOL && op == MG_PROD) job.op = MG_MIN;
        if (x->dtype == MG_BOOL && op == MG_SUM) job.op = MG_MAX;
        int64_t itemsize = mg_itemsize(x->dtype), bytes = plan.row * itemsize;
        size_t capacity = 0;
        if (bytes >= INDEX_ROW && x->size * itemsize > INDEX_NEAR) {
            job.range = mg_max(INDEX_RANGE / bytes, 1) * plan.row;
            int64_t ranges = mg_ceil_div(x->size, job.range);
            size_t room = (size_t)(ranges + plan.count) * sizeof(int64_t);
            job.ends = mg_block_take(room, &capacity);
            if (job.ends) {
                memset(job.ends, 0, (size_t)ranges * sizeof(int64_t));
                job.plan.order = job.ends + ranges;
                index_sort(&job, ranges);
            } else code = mg_fail_code(MG_ENOMEM, (int64_t)room, 0);
        }
        if (!code)
            mg_parallel_for(mg_ceil_div(x->size, job.range), index_scatter_block, &job);
        if (capacity) mg_block_give(job.ends, capacity);
    }
    mg_block_give(plan.offsets, plan.capacity);
    if (!from) return mg_error();
    mg_release(from);
    return code;
}

mg_array *mg_scatter_add(int ndim, const int64_t *shape, int count, mg_array **indices,
                         mg_array *g) {
    mg_array *out = mg_new(g->dtype, ndim, shape);
    if (out && index_combine(MG_SUM, out, true, count, indices, g)) {
        mg_release(out);
        return NULL;
    }
    return out;
}

mg_array *mg_scatter_reduce(int op, mg_array *x, int count, mg_array **indices, mg_array *value) {
    if (op != MG_SUM && op != MG_PROD && op != MG_MAX && op != MG_MIN)
        return mg_fail(MG_EARG, op, 0);
    mg_array *out = mg_copy(x);
    if (out && index_combine(op, out, false, count, indices, value)) {
        mg_release(out);
        return NULL;
    }
    return out;
}

int mg_scatter_write(mg_array *x, int count, mg_array **indices, mg_array *value) {
    if (mg_check_writable(x)) return mg_error();
    int64_t shape[MG_MAX_NDIM];
    const mg_array *first = index_first(x->ndim, count, indices);
    int ndim = first ? index_result_shape(x->ndim, x->shape, count, first, shape) : -1;
    if (ndim < 0) return mg_error();
    mg_array *seen = mg_view_expand(value, ndim, shape);
    if (!seen) return mg_error();
    mg_array *from = mg_cast(seen, x->dtype); /* contiguous, and no longer x's own memory */
    mg_release(seen);
    if (!from) return mg_error();
    index_plan plan = {.row = index_row_size(x->ndim, x->shape, count)};
    int code = index_resolve(&plan, x->ndim, x->shape, x->strides, count, indices);
    if (!code && from->size > 0) {
        index_write(x, from, count, &plan);
        mg_buffer_touch(x->buffer);
    }
    if (!code) mg_block_give(plan.offsets, plan.capacity);
    mg_release(from);
    return code;
}

mg_array *mg_index_previous(int ndim, const int64_t *shape, int count, mg_array **indices) {
    const mg_array *first = index_first(ndim, count, indices);
    mg_array *last = first ? mg_full(MG_INT64, count, shape, 0, -1) : NULL;
    if (!last) return NULL;
    index_plan plan = {.row = 1};
    mg_array *out = NULL;
    if (!index_resolve(&plan, count, shape, last->strides, count, indices)) {
        out = mg_new(MG_INT64, first->ndim, first->shape);
        for (int64_t i = 0; out && i < plan.count; i++) {
            int64_t *place = (int64_t *)last->data + plan.offsets[i];
            ((int64_t *)out->data)[i] = *place < 0 ? plan.count : *place;
            *place = i;
        }
        mg_block_give(plan.offsets, plan.capacity);
    }
    mg_release(last);
    return out;
}

mg_array *mg_gather_last(mg_array *x, int count, mg_array **indices) {
    mg_array *out = mg_gather(x, count, indices), *last = NULL;
    index_plan plan = {.row = 1};
    if (out) last = mg_new(MG_INT64, count, x->shape);
    int code = !last || index_resolve(&plan, count, x->shape, last->strides, count, indices);
    if (!code) {
        int64_t *at = (int64_t *)last->data, bytes = out->size * mg_itemsize(out->dtype);
        if (plan.count) bytes /= plan.count;
        for (int64_t i = 0; i < plan.count; i++) at[plan.offsets[i]] = i;
        for (int64_t i = 0; i < plan.count; i++)
            if (at[plan.offsets[i]] != i) memset(out->data + i * bytes, 0, (size_t)bytes);
        mg_block_give(plan.offsets, plan.capacity);
    } else {
        mg_release(out);
        out = NULL;
    }
    mg_release(last);
    return out;
}

/* ---- index arrays made from data ---- */

mg_array *mg_repeat_positions(mg_array *repeats) {
    if (repeats->dtype != MG_INT64 || repeats->ndim != 1)
        return mg_fail(MG_EDTYPE, repeats->dtype, 0);
    const int64_t *times = (const int64_t *)repeats->data;
    int64_t step = repeats->strides[0], total = 0;
    for (int64_t i = 0; i < repeats->size; i++) {
        if (times[i * step] < 0) return mg_fail(MG_EARG, times[i * step], i);
        if (__builtin_add_overflow(total, times[i * step], &total)) return mg_fail(MG_ESIZE, 0, 0);
    }
    mg_array *out = mg_new(MG_INT64, 1, &total);
    int64_t *to = out ? (int64_t *)out->data : NULL;
    for (int64_t i = 0; out && i < repeats->size; i++)
        for (int64_t k = 0; k < times[i * step]; k++) *to++ = i;
    return out;
}

mg_array *mg_nonzero(mg_array *mask) {
    if (mask->dtype != MG_BOOL) return mg_fail(MG_EDTYPE, mask->dtype, 0);
    mg_array *from = mg_contiguous(mask);
    if (!from) return NULL;
    const uint8_t *m = (const uint8_t *)from->data;
    int64_t found = 0, n = from->size, ndim = mask->ndim;
    for (int64_t i = 0; i < n; i++) found += m[i] != 0;
    mg_array *out = mg_new(MG_INT64, 2, (int64_t[]){ndim, found});
    if (out && ndim) {
        int64_t *to = (int64_t *)out->data, *last = to + (ndim - 1) * found;
        int64_t width = mask->shape[ndim - 1], at[MG_MAX_NDIM] = {0}, row = 0, k = 0;
        /* Every index is written, and kept if it is selected. Other threads may have cleared some
         * meanwhile. */
        for (int64_t i = 0; i < n && k < found; k += m[i++] != 0) last[k] = i;
        for (; k < found; k++) {
            MG_AS_IT_IS;
            last[k] = n - 1;
        }
        /* from an index into the flat array to an index on each axis */
        for (k = 0; k < found && ndim > 1; k++) {
            for (; last[k] - row >= width; row += width)
                for (int64_t d = ndim - 2; d >= 0 && ++at[d] == mask->shape[d]; d--) at[d] = 0;
            last[k] -= row;
            for (int64_t d = 0; d < ndim - 1; d++) to[d * found + k] = at[d];
        }
    }
    mg_release(from);
    return out;
}
