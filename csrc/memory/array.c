/* array.c: creation of arrays, and views that share a buffer. */
#include "array.h"
#include "base/gil.h"

#include <string.h>

/* elements; filling an array of this size takes tens of microseconds or more */
enum { ARRAY_LONG = 1 << 16 };

/* ---- layout ---- */

inline void mg_row_major(int ndim, const int64_t *shape, int64_t *strides) {
    int64_t step = 1;
    for (int d = ndim - 1; d >= 0; d--) {
        MG_AS_IT_IS;
        strides[d] = step;
        step *= mg_max(shape[d], 1);
    }
}

bool mg_is_contiguous(const mg_array *a) {
    if (a->size == 0) return true;
    int64_t expected = 1;
    for (int d = a->ndim - 1; d >= 0; d--) {
        if (a->shape[d] != 1 && a->strides[d] != expected) return false;
        expected *= a->shape[d];
    }
    return true;
}

int mg_contiguous_now(const mg_array *a) { return mg_is_contiguous(a); }

int mg_alike(const mg_array *a, const mg_array *b) {
    return a->dtype == b->dtype && mg_same_shape(a, b);
}

inline int mg_count(int ndim, const int64_t *shape, int itemsize, int64_t *count) {
    if (ndim < 0 || ndim > MG_MAX_NDIM) return mg_fail_code(MG_ENDIM, ndim, MG_MAX_NDIM);
    int64_t extent = itemsize;
    bool empty = false;
    for (int d = 0; d < ndim; d++) {
        if (shape[d] < 0) return mg_fail_code(MG_ESHAPE, shape[d], d);
        if (shape[d] == 0) empty = true;
        else if (__builtin_mul_overflow(extent, shape[d], &extent)) return mg_fail_code(MG_ESIZE, 0, 0);
    }
    *count = empty ? 0 : extent / itemsize;
    return MG_OK;
}

int mg_axes_mask(int ndim, int naxes, const int32_t *axes, uint32_t *mask) {
    *mask = 0;
    if (naxes < 0) {
        *mask = (uint32_t)((1u << ndim) - 1);
        return MG_OK;
    }
    for (int i = 0; i < naxes; i++) {
        int axis = axes[i] < 0 ? axes[i] + ndim : axes[i];
        if (axis < 0 || axis >= ndim) return mg_fail_code(MG_EAXIS, axes[i], ndim);
        if (*mask >> axis & 1) return mg_fail_code(MG_EAXIS, axes[i], -1);
        *mask |= 1u << axis;
    }
    return MG_OK;
}

/* ---- making and releasing ---- */

/* Copies sizes or strides. There are few axes. */
MG_INLINE void array_copy_axes(int64_t *restrict to, const int64_t *restrict from, int ndim) {
    for (int d = 0; d < ndim; d++) {
        MG_AS_IT_IS;
        to[d] = from[d];
    }
}

/* An array header over `buffer`. Takes over the reference; on failure releases it. */
MG_INLINE mg_array *array_over(mg_buffer *buffer, char *data, int dtype, int ndim,
                               const int64_t *shape, int64_t size) {
    size_t capacity;
    mg_array *a = mg_block_take(sizeof(mg_array), &capacity);
    if (!a) {
        mg_buffer_release(buffer);
        return mg_fail(MG_ENOMEM, sizeof(mg_array), 0);
    }
    a->data = data;
    a->buffer = buffer;
    a->size = size;
    a->dtype = dtype;
    a->ndim = ndim;
    a->refs = 1;
    a->weak = 0;
    a->adapted = a->spare = 0;
    array_copy_axes(a->shape, shape, ndim);
    return a;
}

mg_array *mg_new(int dtype, int ndim, const int64_t *shape) {
    int64_t count = 0;
    if (dtype < MG_UINT8 || dtype > MG_FLOAT64) return mg_fail(MG_EDTYPE, dtype, 0);
    if (mg_count(ndim, shape, (int)mg_itemsize(dtype), &count)) return NULL;
    if (count > ARRAY_LONG) mg_gil_give_up(); /* filling it takes a while */
    mg_buffer *buffer = mg_buffer_new((size_t)(count * mg_itemsize(dtype)));
    if (!buffer) return mg_fail(MG_ENOMEM, count * mg_itemsize(dtype), 0);
    mg_array *a = array_over(buffer, buffer->data, dtype, ndim, shape, count);
    if (a) mg_row_major(ndim, a->shape, a->strides);
    return a;
}

mg_array *mg_alias(const mg_array *base, char *data, int ndim, const int64_t *shape,
                   const int64_t *strides) {
    int64_t size = 1;
    for (int d = 0; d < ndim; d++) {
        MG_AS_IT_IS;
        size *= shape[d];
    }
    mg_buffer_retain(base->buffer);
    mg_array *a = array_over(base->buffer, data, base->dtype, ndim, shape, size);
    if (!a) return NULL;
    a->weak = base->weak;
    array_copy_axes(a->strides, strides, ndim);
    return a;
}

void mg_release(mg_array *a) {
    if (!a) return;
    if (__atomic_load_n(&a->refs, __ATOMIC_ACQUIRE) != 1 && /* as in mg_buffer_release */
        __atomic_sub_fetch(&a->refs, 1, __ATOMIC_ACQ_REL) > 0)
        return;
    mg_buffer_release(a->buffer);
    mg_block_give(a, sizeof(mg_array));
}

mg_arrays *mg_arrays_of(int count, mg_array *const *made) {
    static _Thread_local mg_arrays several;
    several.count = count;
    for (int i = 0; i < count; i++) several.made[i] = made[i];
    return &several;
}

mg_array *mg_empty(int dtype, int ndim, const int64_t *shape) { return mg_new(dtype, ndim, shape); }

/* An array for a Python number: 0-d, and it takes the dtype of the operand it meets. */
static mg_array *array_number(int dtype) {
    mg_array *a = mg_new(dtype, 0, NULL);
    if (a) a->weak = 1;
    return a;
}

mg_array *mg_python_float(double value) {
    mg_array *a = array_number(MG_FLOAT64);
    if (a) *(double *)a->data = value;
    return a;
}
mg_array *mg_python_int(int64_t value) {
    mg_array *a = array_number(MG_INT64);
    if (a) *(int64_t *)a->data = value;
    return a;
}
mg_array *mg_python_bool(int value) {
    mg_array *a = array_number(MG_BOOL);
    if (a) *(uint8_t *)a->data = value != 0;
    return a;
}

mg_array *mg_borrow(void *data, int dtype, int ndim, const int64_t *shape, const int64_t *strides,
                    int writable) {
    int64_t count = 0;
    if (dtype < MG_UINT8 || dtype > MG_FLOAT64) return mg_fail(MG_EDTYPE, dtype, 0);
    if (mg_count(ndim, shape, (int)mg_itemsize(dtype), &count)) return NULL;
    mg_buffer *buffer = mg_buffer_borrow(data, (size_t)(count * mg_itemsize(dtype)), writable != 0);
    if (!buffer) return mg_fail(MG_ENOMEM, sizeof(mg_buffer), 0);
    mg_array *a = array_over(buffer, data, dtype, ndim, shape, count);
    if (a) array_copy_axes(a->strides, strides, ndim);
    return a;
}

double mg_real_at(int dtype, const char *at) {
    switch (dtype) {
    case MG_FLOAT16: return mg_from_f16(*(const uint16_t *)at);
    case MG_BFLOAT16: return mg_from_bf16(*(const uint16_t *)at);
    case MG_FLOAT32: return *(const float *)at;
    case MG_FLOAT64: return *(const double *)at;
    default: return (double)mg_whole_at(dtype, at);
    }
}

int64_t mg_whole_at(int dtype, const char *at) {
    switch (dtype) {
    case MG_UINT8: return *(const uint8_t *)at;
    case MG_INT8: return *(const int8_t *)at;
    case MG_INT16: return *(const int16_t *)at;
    case MG_INT32: return *(const int32_t *)at;
    case MG_BOOL: return *at != 0;
    case MG_INT64: return *(const int64_t *)at;
    default: return (int64_t)mg_real_at(dtype, at);
    }
}

double mg_item_float(const mg_array *a) { return a->size ? mg_real_at(a->dtype, a->data) : 0; }
int64_t mg_item_int(const mg_array *a) { return a->size ? mg_whole_at(a->dtype, a->data) : 0; }

/* ---- views ---- */

mg_array *mg_view_alias(mg_array *a) { return mg_alias(a, a->data, a->ndim, a->shape, a->strides); }

mg_array *mg_view_as(mg_array *a, int dtype) {
    if (dtype < MG_UINT8 || dtype > MG_FLOAT64 || mg_itemsize(dtype) != mg_itemsize(a->dtype))
        return mg_fail(MG_EDTYPE, dtype, 0);
    mg_array *view = mg_view_alias(a);
    if (view) view->dtype = dtype;
    return view;
}

/* Copies `shape` and replaces its one -1 by the size that fits. 0 or an error code. */
static int view_resolve(const mg_array *a, int ndim, const int64_t *shape, int64_t *resolved) {
    if (ndim < 0 || ndim > MG_MAX_NDIM) return mg_fail_code(MG_ENDIM, ndim, MG_MAX_NDIM);
    int64_t known = 1, count;
    int unknown = -1;
    for (int d = 0; d < ndim; d++) {
        resolved[d] = shape[d];
        if (shape[d] == -1 && unknown < 0) unknown = d;
        else if (shape[d] < 0 || __builtin_mul_overflow(known, shape[d], &known))
            return mg_fail_code(MG_ESHAPE, a->size, -1);
    }
    if (unknown >= 0) {
        if (known == 0 || a->size % known != 0) return mg_fail_code(MG_ESHAPE, a->size, known);
        resolved[unknown] = a->size / known;
    } else if (known != a->size) return mg_fail_code(MG_ESHAPE, a->size, known);
    /* With a size of 0 the other sizes are arbitrary, and strides are their products. */
    return a->size ? MG_OK : mg_count(ndim, resolved, (int)mg_itemsize(a->dtype), &count);
}

/* Strides under which a's elements, in order, have another shape of the same size. False if there
 * are none. A run of new axes must lie within a run of old axes that is contiguous in itself. */
static bool view_strides(const mg_array *a, int ndim, const int64_t *shape, int64_t *strides) {
    int64_t old_shape[MG_MAX_NDIM], old_strides[MG_MAX_NDIM];
    int old_ndim = 0;
    for (int d = 0; d < a->ndim; d++) {
        if (a->shape[d] == 1) continue;
        old_shape[old_ndim] = a->shape[d];
        old_strides[old_ndim++] = a->strides[d];
    }
    int o = 0, n = 0;
    while (o < old_ndim) {
        int o_end = o + 1, n_end = n;
        int64_t old_count = old_shape[o], new_count = 1;
        while (n_end < ndim && (new_count != old_count || new_count == 1)) {
            if (new_count > old_count) break;
            new_count *= shape[n_end++];
            while (new_count > old_count && o_end < old_ndim) {
                if (old_strides[o_end - 1] != old_shape[o_end] * old_strides[o_end]) return false;
                old_count *= old_shape[o_end++];
            }
        }
        if (new_count != old_count) return false;
        int64_t step = old_strides[o_end - 1];
        for (int d = n_end - 1; d >= n; d--) {
            strides[d] = step;
            step *= shape[d];
        }
        o = o_end;
        n = n_end;
    }
    for (; n < ndim; n++) strides[n] = 1; /* the remaining axes have size 1 */
    return true;
}

mg_array *mg_view_reshape(mg_array *a, int ndim, const int64_t *shape) {
    int64_t resolved[MG_MAX_NDIM], strides[MG_MAX_NDIM];
    if (view_resolve(a, ndim, shape, resolved)) return NULL;
    if (mg_is_contiguous(a)) mg_row_major(ndim, resolved, strides);
    else if (!view_strides(a, ndim, resolved, strides)) return mg_fail(MG_ESHAPE, -1, -1);
    return mg_alias(a, a->data, ndim, resolved, strides);
}

mg_array *mg_view_permute(mg_array *a, int ndim, const int32_t *axes) {
    uint32_t seen;
    if (ndim != a->ndim) return mg_fail(MG_EAXIS, ndim, a->ndim);
    if (mg_axes_mask(a->ndim, ndim, axes, &seen)) return NULL;
    int64_t shape[MG_MAX_NDIM], strides[MG_MAX_NDIM];
    for (int d = 0; d < ndim; d++) {
        int axis = axes[d] < 0 ? axes[d] + ndim : axes[d];
        shape[d] = a->shape[axis];
        strides[d] = a->strides[axis];
    }
    return mg_alias(a, a->data, ndim, shape, strides);
}

mg_array *mg_view_expand(mg_array *a, int ndim, const int64_t *shape) {
    int64_t count, strides[MG_MAX_NDIM];
    if (mg_count(ndim, shape, (int)mg_itemsize(a->dtype), &count)) return NULL;
    if (ndim < a->ndim) return mg_fail(MG_ENDIM, ndim, a->ndim);
    int added = ndim - a->ndim;
    for (int d = 0; d < ndim; d++) {
        int64_t old = d < added ? 1 : a->shape[d - added];
        if (old != 1 && old != shape[d]) return mg_fail(MG_ESHAPE, old, shape[d]);
        strides[d] = d < added || (old == 1 && shape[d] != 1) ? 0 : a->strides[d - added];
    }
    return mg_alias(a, a->data, ndim, shape, strides);
}

mg_array *mg_view_repeat(mg_array *a, int ndim, const int64_t *shape, int naxes,
                         const int32_t *axes) {
    int64_t count, strides[MG_MAX_NDIM];
    uint32_t reduced;
    if (mg_count(ndim, shape, (int)mg_itemsize(a->dtype), &count)) return NULL;
    if (mg_axes_mask(ndim, naxes, axes, &reduced)) return NULL;
    bool kept = a->ndim == ndim; /* the reduced axes are still there, with size 1 */
    if (!kept && a->ndim != ndim - __builtin_popcount(reduced))
        return mg_fail(MG_ENDIM, a->ndim, ndim);
    for (int d = 0, own = 0; d < ndim; d++) {
        bool spread = reduced >> d & 1;
        strides[d] = spread ? 0 : a->strides[own];
        int64_t size = spread ? 1 : shape[d];
        if ((kept || !spread) && a->shape[own] != size) return mg_fail(MG_ESHAPE, a->shape[own], size);
        if (kept || !spread) own++;
    }
    return mg_alias(a, a->data, ndim, shape, strides);
}

mg_array *mg_view_slice(mg_array *a, const int64_t *start, const int64_t *step,
                        const int64_t *count) {
    int64_t strides[MG_MAX_NDIM];
    char *data = a->data;
    bool empty = false;
    for (int d = 0; d < a->ndim; d++) {
        int64_t last;
        if (count[d] < 0) return mg_fail(MG_EARG, d, 0);
        if (count[d] == 0) empty = true;
        else if (__builtin_mul_overflow(count[d] - 1, step[d], &last) ||
                 __builtin_add_overflow(start[d], last, &last) || start[d] < 0 ||
                 start[d] >= a->shape[d] || last < 0 || last >= a->shape[d])
            return mg_fail(MG_EINDEX, start[d], a->shape[d]);
        strides[d] = count[d] > 1 ? a->strides[d] * step[d] : 1;
    }
    if (!empty)
        for (int d = 0; d < a->ndim; d++)
            data += start[d] * a->strides[d] * mg_itemsize(a->dtype);
    return mg_alias(a, data, a->ndim, count, strides);
}

mg_array *mg_view_slice_reshape(mg_array *a, const int64_t *start, const int64_t *step,
                                const int64_t *count, int ndim, const int64_t *shape) {
    mg_array *slice = mg_view_slice(a, start, step, count);
    mg_array *view = slice ? mg_view_reshape(slice, ndim, shape) : NULL;
    mg_release(slice);
    return view;
}

mg_array *mg_view_around(mg_array *a, mg_array *b, int axis, int64_t a_start, int64_t b_start,
                         const int64_t *shape) {
    int64_t strides[MG_MAX_NDIM], item = mg_itemsize(a->dtype);
    int64_t count, apart, most = (int64_t)a->buffer->bytes / item;
    if (axis < 0 || axis >= a->ndim || a->buffer != b->buffer || a->dtype != b->dtype || a_start == b_start ||
        __builtin_sub_overflow(b_start, a_start, &apart))
        return mg_fail(MG_EARG, axis, 0);
    int code = mg_count(a->ndim, shape, (int)item, &count);
    if (code) return mg_fail(code, axis, 0);
    memcpy(strides, a->strides, sizeof(int64_t) * (size_t)a->ndim);
    strides[axis] = (b->data - a->data) / item / apart;
    /* the lowest and the highest element */
    int64_t first, low, high;
    bool inside = !__builtin_mul_overflow(a_start, strides[axis], &first) &&
                  !__builtin_sub_overflow((a->data - a->buffer->data) / item, first, &first);
    low = high = first;
    for (int d = 0; inside && d < a->ndim; d++) {
        int64_t *end = strides[d] < 0 ? &low : &high, length;
        inside = shape[d] > 0 && !__builtin_mul_overflow(shape[d] - 1, strides[d], &length) &&
                 !__builtin_add_overflow(*end, length, end);
    }
    if (!inside || low < 0 || high >= most) return mg_fail(MG_EARG, axis, 0);
    return mg_alias(a, a->buffer->data + first * item, a->ndim, shape, strides);
}

mg_array *mg_view_diagonal(mg_array *a, int64_t offset) {
    int r = a->ndim - 2, c = a->ndim - 1;
    if (r < 0) return mg_fail(MG_ENDIM, a->ndim, 2);
    int64_t shape[MG_MAX_NDIM], strides[MG_MAX_NDIM];
    memcpy(shape, a->shape, sizeof(int64_t) * (size_t)r);
    memcpy(strides, a->strides, sizeof(int64_t) * (size_t)r);
    int64_t rows = offset < 0 ? a->shape[r] + offset : a->shape[r];
    int64_t columns = offset > 0 ? a->shape[c] - offset : a->shape[c];
    shape[r] = mg_max(mg_min(rows, columns), 0);
    strides[r] = a->strides[r] + a->strides[c];
    char *data = a->data;
    if (shape[r] > 0) {
        int64_t skipped = offset < 0 ? -offset * a->strides[r] : offset * a->strides[c];
        data += skipped * mg_itemsize(a->dtype);
    }
    return mg_alias(a, data, c, shape, strides);
}

/* True unless the axes, sorted by stride, nest: each stride steps over all elements of the smaller
 * strides. If they nest, no elements overlap, and every non-overlapping view that this file makes
 * nests. */
int mg_overlaps_itself(const mg_array *a) {
    if (a->size <= 1) return 0;
    int64_t reach = 0;
    uint32_t left = 0;
    for (int d = 0; d < a->ndim; d++)
        if (a->shape[d] > 1) left |= 1u << d;
    while (left) {
        int smallest = -1;
        int64_t step = INT64_MAX;
        for (int d = 0; d < a->ndim; d++) {
            int64_t s = a->strides[d] < 0 ? -a->strides[d] : a->strides[d];
            if ((left >> d & 1) && s < step) {
                step = s;
                smallest = d;
            }
        }
        if (step <= reach) return 1;
        reach += step * (a->shape[smallest] - 1);
        left &= ~(1u << smallest);
    }
    return 0;
}

/* ---- ownership of buffers ---- */

int64_t mg_version(const mg_array *a) { return a->buffer->written; }
int64_t mg_pins(const mg_array *a) { return a->buffer->pins; }
int mg_writable(const mg_array *a) { return a->buffer->writable; }
uint64_t mg_buffer_id(const mg_array *a) { return (uint64_t)(uintptr_t)a->buffer; }
int mg_sole_owner(const mg_array *a) {
    return a->refs == 1 && a->buffer->refs == 1 && a->buffer->pins == 0 && a->buffer->shared == 0 &&
           a->buffer->writable && mg_is_contiguous(a);
}
void mg_seal(mg_array *a) { a->buffer->writable = false; }
void mg_share(mg_array *a, int count) { atomic_fetch_add(&a->buffer->shared, count); }
