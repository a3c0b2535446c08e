/* array.h: the array: dtype, shape and strides over a buffer. */
#ifndef MG_ARRAY_H
#define MG_ARRAY_H

#include "buffer.h"
#include "half.h"

#include <string.h>

/* One hexadecimal digit for each dtype, from MG_UINT8 on. */
MG_INLINE int64_t mg_itemsize(int dtype) { return 0x8481224211 >> 4 * (dtype - MG_UINT8) & 15; }
MG_INLINE bool mg_is_float(int dtype) { return dtype >= MG_FLOAT32; }
MG_INLINE bool mg_is_storage(int dtype) { return dtype < MG_BOOL; }
/* The dtype that a storage dtype is computed in. It represents all values of the storage dtype. */
MG_INLINE int mg_wide(int dtype) {
    return !mg_is_storage(dtype) ? dtype : dtype <= MG_INT32 ? MG_INT64 : MG_FLOAT32;
}

/* A new contiguous array of uninitialised memory. Checks ndim, sizes and their product. */
mg_array *mg_new(int dtype, int ndim, const int64_t *shape);
/* A view of base's buffer that starts at `data`. Checks nothing. */
mg_array *mg_alias(const mg_array *base, char *data, int ndim, const int64_t *shape,
                   const int64_t *strides);
MG_INLINE mg_array *mg_retain(mg_array *a) {
    __atomic_fetch_add(&a->refs, 1, __ATOMIC_RELAXED);
    return a;
}

/* True if both have the same shape. */
MG_INLINE bool mg_same_shape(const mg_array *a, const mg_array *b) {
    if (a->ndim != b->ndim) return false;
    for (int d = 0; d < a->ndim; d++)
        if (a->shape[d] != b->shape[d]) return false;
    return true;
}

/* A copy of x's header that a function may change, and never hands out. The reference count is not
 * copied, as other threads may be changing x's. */
MG_INLINE mg_array mg_header(const mg_array *x) {
    mg_array header;
    memcpy(&header, x, offsetof(mg_array, refs));
    memcpy(&header.weak, &x->weak, sizeof header - offsetof(mg_array, weak));
    header.refs = 1;
    return header;
}

/* A header of x with the last two axes transposed, for the same use. */
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

/* Several arrays as one result. The thread's next call overwrites it. */
mg_arrays *mg_arrays_of(int count, mg_array *const *made);

/* True if the elements are row-major without gaps. Axes of size 1 may have any stride; empty arrays
 * count. */
bool mg_is_contiguous(const mg_array *a);
/* Row-major strides of a shape. */
void mg_row_major(int ndim, const int64_t *shape, int64_t *strides);

/* Computes the number of elements; 0 or an error code. The product of all non-zero sizes must fit
 * in bytes, so that strides of empty arrays cannot overflow either. */
int mg_count(int ndim, const int64_t *shape, int itemsize, int64_t *count);

/* Normalises axes: negative ones count from the end; range and repeats are checked. The bit
 * mask of the axes is stored in *mask. naxes < 0 means all axes. */
int mg_axes_mask(int ndim, int naxes, const int32_t *axes, uint32_t *mask);

#endif
