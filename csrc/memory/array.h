/* array.h: dtype, shape and strides over a buffer. */
#ifndef MG_ARRAY_H
#define MG_ARRAY_H

#include "buffer.h"
#include "half.h"

#include <string.h>

/* A digit for each dtype, from the first on. */
MG_INLINE int64_t mg_itemsize(int dtype) { return 0x8481224211 >> 4 * (dtype - MG_UINT8) & 15; }
MG_INLINE bool mg_is_float(int dtype) { return dtype >= MG_FLOAT32; }
MG_INLINE bool mg_is_storage(int dtype) { return dtype < MG_BOOL; }
/* The dtype that a storage dtype is computed in, which has all its values. */
MG_INLINE int mg_wide(int dtype) {
    return !mg_is_storage(dtype) ? dtype : dtype <= MG_INT32 ? MG_INT64 : MG_FLOAT32;
}

/* New contiguous array of uninitialised memory; checks ndim, sizes and their product. */
mg_array *mg_new(int dtype, int ndim, const int64_t *shape);
/* A view of base's buffer starting at `data`; nothing is checked. */
mg_array *mg_alias(const mg_array *base, char *data, int ndim, const int64_t *shape,
                   const int64_t *strides);
MG_INLINE mg_array *mg_retain(mg_array *a) {
    __atomic_fetch_add(&a->refs, 1, __ATOMIC_RELAXED);
    return a;
}

/* True if both have as many axes, of the same sizes. */
MG_INLINE bool mg_same_shape(const mg_array *a, const mg_array *b) {
    if (a->ndim != b->ndim) return false;
    for (int d = 0; d < a->ndim; d++)
        if (a->shape[d] != b->shape[d]) return false;
    return true;
}

/* A header over x's memory that a call changes as it needs and never gives away. References are not
 * copied: other threads may be counting x's. */
MG_INLINE mg_array mg_header(const mg_array *x) {
    mg_array header;
    memcpy(&header, x, offsetof(mg_array, refs));
    memcpy(&header.weak, &x->weak, sizeof header - offsetof(mg_array, weak));
    header.refs = 1;
    return header;
}

/* The transposition of x's last two axes, likewise. */
MG_INLINE mg_array mg_transposed(const mg_array *x) {
    mg_array y = mg_header(x);
    for (int d = 0, last = x->ndim - 1; d < 2; d++) {
        y.shape[last - d] = x->shape[last - 1 + d];
        y.strides[last - d] = x->strides[last - 1 + d];
    }
    return y;
}

/* The element at an address. */
double mg_real_at(int dtype, const char *at);
int64_t mg_whole_at(int dtype, const char *at);

/* Several arrays as one result, which this thread's next call overwrites. */
mg_arrays *mg_arrays_of(int count, mg_array *const *made);

/* Row-major without gaps (size-1 axes may have any stride; empty arrays are contiguous). */
bool mg_is_contiguous(const mg_array *a);
/* Row-major strides of a shape. */
void mg_row_major(int ndim, const int64_t *shape, int64_t *strides);

/* The number of elements; 0 or an error code. Every product that could be formed must fit in bytes,
 * so that strides of empty arrays cannot overflow either. */
int mg_count(int ndim, const int64_t *shape, int itemsize, int64_t *count);

/* Normalise axes: negative ones counted from the end, range and repeats checked. Returns a bit mask
 * of axes in *mask. naxes < 0 means all axes. */
int mg_axes_mask(int ndim, int naxes, const int32_t *axes, uint32_t *mask);

#endif
