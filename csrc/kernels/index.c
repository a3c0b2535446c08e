/* index.c: elements picked by integer arrays on the first axes, and their transposes.
 *
 * Every NumPy index form is brought to this one by views in Python. A "row" is what one index picks: the
 * remaining axes. Scatters run in index order in one thread a column block, so that repeated indices
 * add in a fixed order. */
#include "../threads/pool.h"
#include "nditer.h"

#include <string.h>

typedef struct index_plan {
    int64_t count;     /* how many rows are picked */
    int64_t *offsets;  /* of each, in elements */
    size_t capacity;   /* of the block that holds them */
    int64_t row;       /* elements a row, contiguous */
} index_plan;

/* Resolves the index arrays against `shape` and `strides` into element offsets; 0 or an error code.
 * The block of offsets is the caller's to give back. */
static int index_resolve(index_plan *plan, int ndim, const int64_t *shape, const int64_t *strides,
                         int count, mg_array **indices) {
    if (count < 1 || count > ndim) return mg_fail_code(MG_EINDEX, count, ndim);
    plan->count = indices[0]->size;
    for (int k = 0; k < count; k++) {
        if (indices[k]->dtype != MG_INT64) return mg_fail_code(MG_EDTYPE, indices[k]->dtype, k);
        if (indices[k]->ndim != indices[0]->ndim ||
            memcmp(indices[k]->shape, indices[0]->shape,
                   sizeof(int64_t) * (size_t)indices[0]->ndim))
            return mg_fail_code(MG_ESHAPE, indices[0]->size, indices[k]->size);
    }
    plan->offsets = mg_block_take((size_t)plan->count * sizeof(int64_t), &plan->capacity);
    if (!plan->offsets) return mg_fail_code(MG_ENOMEM, plan->count * 8, 0);
    memset(plan->offsets, 0, (size_t)plan->count * sizeof(int64_t));
    int code = MG_OK;
    for (int k = 0; k < count && !code; k++) {
        mg_array *index = mg_contiguous(indices[k]);
        if (!index) {
            code = mg_error();
            break;
        }
        const int64_t *at = (const int64_t *)index->data;
        for (int64_t i = 0; i < plan->count; i++) {
            int64_t position = at[i] < 0 ? at[i] + shape[k] : at[i];
            if (position < 0 || position >= shape[k]) {
                code = mg_fail_code(MG_EINDEX, at[i], shape[k]);
                break;
            }
            plan->offsets[i] += position * strides[k];
        }
        mg_release(index);
    }
    if (code) mg_block_give(plan->offsets, plan->capacity);
    return code;
}

/* Index shape followed by the axes of `shape` that are not indexed; its ndim, or -1 with an error. */
static int index_result_shape(int ndim, const int64_t *shape, int count, const mg_array *index,
                              int64_t *result) {
    int total = index->ndim + ndim - count;
    if (total > MG_MAX_NDIM) {
        mg_fail(MG_ENDIM, total, MG_MAX_NDIM);
        return -1;
    }
    for (int d = 0; d < index->ndim; d++) result[d] = index->shape[d];
    for (int d = count; d < ndim; d++) result[index->ndim + d - count] = shape[d];
    return total;
}

static int64_t index_row_size(int ndim, const int64_t *shape, int count) {
    int64_t row = 1;
    for (int d = count; d < ndim; d++) row *= shape[d];
    return row;
}

/* ---- gather ---- */

typedef struct index_gather {
    index_plan plan;
    char *to;
    const char *from;
    int itemsize;
    int64_t rows_per_block;
} index_gather;

static void index_gather_block(void *context, int64_t block) {
    const index_gather *job = context;
    int64_t begin = block * job->rows_per_block;
    int64_t end = mg_min(begin + job->rows_per_block, job->plan.count);
    int64_t row = job->plan.row;
    if (row == 1 && job->itemsize == 4)
        for (int64_t i = begin; i < end; i++)
            ((uint32_t *)job->to)[i] = ((const uint32_t *)job->from)[job->plan.offsets[i]];
    else if (row == 1 && job->itemsize == 8)
        for (int64_t i = begin; i < end; i++)
            ((uint64_t *)job->to)[i] = ((const uint64_t *)job->from)[job->plan.offsets[i]];
    else
        for (int64_t i = begin; i < end; i++)
            memcpy(job->to + i * row * job->itemsize,
                   job->from + job->plan.offsets[i] * job->itemsize, (size_t)(row * job->itemsize));
}

mg_array *mg_gather(mg_array *x, int count, mg_array **indices) {
    index_gather job = {.itemsize = (int)mg_itemsize(x->dtype)};
    int64_t shape[MG_MAX_NDIM], inner[MG_MAX_NDIM];
    if (count < 1 || count > x->ndim) return mg_fail(MG_EINDEX, count, x->ndim);
    int ndim = index_result_shape(x->ndim, x->shape, count, indices[0], shape);
    if (ndim < 0) return NULL;
    /* Rows must be contiguous; the indexed axes may have any strides. */
    mg_row_major(x->ndim, x->shape, inner);
    bool rows = true;
    for (int d = count; d < x->ndim; d++)
        rows = rows && (x->shape[d] == 1 || x->strides[d] == inner[d]);
    mg_array *from = rows ? mg_retain(x) : mg_copy(x);
    mg_array *out = from ? mg_new(x->dtype, ndim, shape) : NULL;
    if (out) {
        job.plan.row = index_row_size(x->ndim, x->shape, count);
        if (index_resolve(&job.plan, x->ndim, x->shape, from->strides, count, indices)) {
            mg_release(out);
            out = NULL;
        } else if (out->size > 0) {
            job.to = out->data;
            job.from = from->data;
            job.rows_per_block = mg_max(NDITER_BLOCK / job.plan.row, 1);
            mg_parallel_for(mg_ceil_div(job.plan.count, job.rows_per_block), index_gather_block,
                            &job);
        }
        if (out) mg_block_give(job.plan.offsets, job.plan.capacity);
    }
    mg_release(from);
    return out;
}

/* ---- scatter ---- */

static void index_add_f32(float *to, const float *g, const index_plan *plan) {
    for (int64_t i = 0; i < plan->count; i++) {
        float *restrict row = to + plan->offsets[i];
        const float *restrict from = g + i * plan->row;
        for (int64_t j = 0; j < plan->row; j++) row[j] += from[j];
    }
}

static void index_add_f64(double *to, const double *g, const index_plan *plan) {
    for (int64_t i = 0; i < plan->count; i++) {
        double *restrict row = to + plan->offsets[i];
        const double *restrict from = g + i * plan->row;
        for (int64_t j = 0; j < plan->row; j++) row[j] += from[j];
    }
}

mg_array *mg_scatter_add(int ndim, const int64_t *shape, int count, mg_array **indices,
                         mg_array *g) {
    if (!mg_is_float(g->dtype)) return mg_fail(MG_EDTYPE, g->dtype, 0);
    if (count < 1 || count > ndim) return mg_fail(MG_EINDEX, count, ndim);
    int64_t expected[MG_MAX_NDIM];
    int g_ndim = index_result_shape(ndim, shape, count, indices[0], expected);
    if (g_ndim < 0) return NULL;
    if (g->ndim != g_ndim) return mg_fail(MG_ENDIM, g->ndim, g_ndim);
    for (int d = 0; d < g_ndim; d++)
        if (g->shape[d] != expected[d]) return mg_fail(MG_ESHAPE, expected[d], g->shape[d]);
    mg_array *out = mg_full(g->dtype, ndim, shape, 0, 0);
    mg_array *from = out ? mg_contiguous(g) : NULL;
    index_plan plan = {0};
    if (!from || index_resolve(&plan, ndim, shape, out->strides, count, indices)) {
        mg_release(out);
        mg_release(from);
        return NULL;
    }
    plan.row = index_row_size(ndim, shape, count);
    if (g->dtype == MG_FLOAT32) index_add_f32((float *)out->data, (float *)from->data, &plan);
    else index_add_f64((double *)out->data, (double *)from->data, &plan);
    mg_block_give(plan.offsets, plan.capacity);
    mg_release(from);
    return out;
}

int mg_scatter_write(mg_array *x, int count, mg_array **indices, mg_array *value) {
    if (mg_check_writable(x)) return mg_error();
    if (count < 1 || count > x->ndim) return mg_fail_code(MG_EINDEX, count, x->ndim);
    int64_t shape[MG_MAX_NDIM];
    int ndim = index_result_shape(x->ndim, x->shape, count, indices[0], shape);
    if (ndim < 0) return mg_error();
    mg_array *seen = mg_view_expand(value, ndim, shape);
    if (!seen) return mg_error();
    mg_array *from = mg_cast(seen, x->dtype); /* contiguous, and no longer x's own memory */
    mg_release(seen);
    if (!from) return mg_error();
    index_plan plan = {.row = index_row_size(x->ndim, x->shape, count)};
    int code = index_resolve(&plan, x->ndim, x->shape, x->strides, count, indices);
    if (!code && from->size > 0) {
        /* x's remaining axes may have any strides: write row by row through a window on them. */
        mg_array window = *x, row = *from;
        window.ndim = row.ndim = x->ndim - count;
        window.size = row.size = plan.row;
        for (int d = 0; d < window.ndim; d++) {
            window.shape[d] = row.shape[d] = x->shape[d + count];
            window.strides[d] = x->strides[d + count];
        }
        mg_row_major(row.ndim, row.shape, row.strides);
        int64_t itemsize = mg_itemsize(x->dtype);
        for (int64_t i = 0; i < plan.count; i++) {
            window.data = x->data + plan.offsets[i] * itemsize;
            row.data = from->data + i * plan.row * itemsize;
            copy_strided(&window, &row);
        }
        mg_buffer_touch(x->buffer);
    }
    if (!code) mg_block_give(plan.offsets, plan.capacity);
    mg_release(from);
    return code;
}

mg_array *mg_nonzero(mg_array *mask) {
    if (mask->dtype != MG_BOOL) return mg_fail(MG_EDTYPE, mask->dtype, 0);
    mg_array *from = mg_contiguous(mask);
    if (!from) return NULL;
    const uint8_t *m = (const uint8_t *)from->data;
    int64_t found = 0;
    for (int64_t i = 0; i < from->size; i++) found += m[i] != 0;
    mg_array *out = mg_new(MG_INT64, 2, (int64_t[]){mask->ndim, found});
    if (out) {
        int64_t at[MG_MAX_NDIM] = {0}, k = 0;
        int64_t *to = (int64_t *)out->data;
        for (int64_t i = 0; i < from->size; i++) {
            if (m[i]) {
                for (int d = 0; d < mask->ndim; d++) to[d * found + k] = at[d];
                k++;
            }
            for (int d = mask->ndim - 1; d >= 0 && ++at[d] == mask->shape[d]; d--) at[d] = 0;
        }
    }
    mg_release(from);
    return out;
}
