/* contiguous.h: contiguous versions of arrays, copied where they are not contiguous. */
#ifndef MG_KERNELS_ITERATE_CONTIGUOUS_H
#define MG_KERNELS_ITERATE_CONTIGUOUS_H

#include "memory/array.h"

/* `a` itself, retained, if contiguous, else a contiguous copy. The caller releases the result in
 * both cases. */
MG_INLINE mg_array *mg_contiguous(mg_array *a) {
    return mg_is_contiguous(a) ? mg_retain(a) : mg_copy(a);
}

/* A view of `a` in another shape, in which one size may be -1. If the strides allow no such view, a
 * view of a copy. */
MG_INLINE mg_array *mg_view_or_copy(mg_array *a, int ndim, const int64_t *shape) {
    mg_array *view = mg_view_reshape(a, ndim, shape);
    bool strided = !view && mg_error() == MG_ESHAPE && mg_error_detail(0) == -1;
    mg_array *copy = strided ? mg_copy(a) : NULL;
    if (!copy) return view;
    view = mg_view_reshape(copy, ndim, shape);
    mg_release(copy);
    return view;
}

#endif
