/* lines.h: a contiguous array seen as lines along one axis. */
#ifndef MG_LINES_H
#define MG_LINES_H

#include "memory/array.h"

/* Element i of line (o, j) lies at (o * n + i) * inner + j. */
typedef struct mg_lines {
    int64_t outer, n, inner;
} mg_lines;

/* The lines of a's shape along `axis`; 0 or an error code. */
MG_INLINE int lines_along(mg_lines *l, const mg_array *a, int axis) {
    uint32_t mask;
    if (mg_axes_mask(a->ndim, 1, (int32_t[]){axis}, &mask)) return mg_error();
    l->outer = l->n = l->inner = 1;
    for (int d = 0; d < a->ndim; d++)
        *(mask >> d == 1 ? &l->n : mask >> d ? &l->outer : &l->inner) *= a->shape[d];
    return MG_OK;
}

/* 0, or an error code if two arrays have different shapes. */
MG_INLINE int lines_differ(const mg_array *a, const mg_array *b) {
    if (a->ndim != b->ndim) return mg_fail_code(MG_ESHAPE, a->ndim, b->ndim);
    for (int d = 0; d < a->ndim; d++)
        if (a->shape[d] != b->shape[d]) return mg_fail_code(MG_ESHAPE, a->shape[d], b->shape[d]);
    return MG_OK;
}

#endif
