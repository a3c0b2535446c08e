/* reduce.h: reductions along axes: kinds, plans and the summation tree.
 *
 * A line is the run of elements that one result is reduced from. To join is to combine two terms or
 * two partial results: by +, *, max or min.
 */
#ifndef MG_REDUCE_H
#define MG_REDUCE_H

#include "base/system.h"
#include "memory/array.h"
#include "kernels/sizes.h"
#include "simd/transpose.h"
#include "vmath/vmath.h"

#include <math.h>
#include <stdatomic.h>
#include <string.h>

/* Reductions of the float kernels over one index: a join of terms. */
enum reduce_kind {
    REDUCE_SUM,     /* x0 + x1 + ... */
    REDUCE_DEVIATION, /* (x0 - c) + (x1 - c) + ... */
    REDUCE_SQUARES, /* (x0 - c)^2 + (x1 - c)^2 + ... */
    REDUCE_SUMEXP,  /* exp(x0 - c) + exp(x1 - c) + ...; c: the maximum */
    REDUCE_DOT,     /* x0 * c0 + x1 * c1 + ...; each x has its own c */
    REDUCE_TIES,    /* how many x are equal to c, the extremum; here NaN is equal to NaN */
    REDUCE_MAX,     /* a NaN wins */
    REDUCE_MIN,
    REDUCE_PROD,
    /* Two values for each line, computed by pair.inc.c: */
    REDUCE_MOMENTS, /* the sum of x - c for a c near the values; the sum of (x - mean)^2 */
    REDUCE_LOGSUM   /* the maximum m; the sum of exp(x - m) */
};

/* True if the terms of a line share one centre c. */
MG_INLINE bool reduce_is_centred(int kind) {
    return kind >= REDUCE_DEVIATION && kind <= REDUCE_TIES && kind != REDUCE_DOT;
}

/* True for max and min. The order of terms does not matter, except for which of 0 and -0 is the
 * result. */
MG_INLINE bool reduce_is_extremum(int kind) { return kind == REDUCE_MAX || kind == REDUCE_MIN; }

MG_INLINE double reduce_identity(int kind) {
    switch (kind) {
    case REDUCE_MAX: return -INFINITY;
    case REDUCE_MIN: return INFINITY;
    default: return kind == REDUCE_PROD;
    }
}

/* The tree in which n terms are joined. It is the same for every memory layout and thread count.
 *   lanes   term i of a block goes to lane i % 16; a lane joins its 8 terms one after the other
 *   block   128 terms: the 16 lanes, folded by halves (16 -> 8 -> 4 -> 2 -> 1)
 *   chunk   64 blocks, or 4 of columns, joined pairwise: neighbours first, then pairs of these, ...
 *   all     the chunks, joined pairwise in the same way, as one tree of blocks
 * A last block or chunk that is not full has only the lanes and blocks that its terms fill. The
 * rounding error of a sum of n terms is below (11 + log2(n / 128)) ulp of the sum of their
 * magnitudes (Higham, "The accuracy of floating point summation", 1993, section 3). */
enum {
    REDUCE_GROUP_LEVEL = 3, /* in a row 2^3 blocks are joined together, a group */
    REDUCE_GROUP = 1 << REDUCE_GROUP_LEVEL,
    REDUCE_ALL_LEVELS = 30, /* no memory has 2^30 blocks */
    REDUCE_LEVELS = 3,              /* the 2^2 blocks of a chunk of columns need levels 0..2 */
    REDUCE_APART = 4, /* rows that are read at once, a quarter of all rows apart */
    REDUCE_SHARES = 4,  /* blocks for each thread; neighbouring columns share a block */
};
/* terms of an expanded array, at most */
#define REDUCE_MOST ((int64_t)REDUCE_BLOCK << REDUCE_ALL_LEVELS)

/* True if narrow rows follow each other without a gap, so that a strip may take 16 of them as one
 * row. */
MG_INLINE bool reduce_is_dense(int64_t stride, int64_t width) {
    return stride == width && width <= REDUCE_STRIP / REDUCE_LANES;
}

/* The layout of a reduction of x. It has the reduced index, a run of kept elements that is done
 * side by side, and all other kept axes. */
typedef struct {
    _Atomic bool *left; /* NULL, or set if a term overflowed or underflowed */
    bool columns;      /* true: the run has stride 1 in x; false: the reduced index has */
    int64_t n, stride; /* the reduced index */
    int64_t run, run_x, run_y, run_c; /* the run: size, strides in x, in the result and in c */
    int64_t count;                    /* product of the other kept sizes */
    int ndim;
    int64_t shape[MG_MAX_NDIM], x[MG_MAX_NDIM], y[MG_MAX_NDIM], c[MG_MAX_NDIM];
} reduce_plan;

/* Lays out the reduction of x over `group`, a group of axes as described in reduce.c, into a
 * contiguous result. `c` (or NULL) has x's shape or size 1 on each axis. False if the reduced index
 * has no single stride, or if neither it nor a kept axis has stride 1. A contiguous x always has a
 * layout. */
MG_SHARED(bool, mg_reduce_layout, (reduce_plan *p, const mg_array *x, uint32_t group,
                                const mg_array *c));

/* Offsets in x, the result and c of element `first` of run i % count. Returns i / count. */
MG_INLINE int64_t reduce_seek(const reduce_plan *p, int64_t i, int64_t first, int64_t *x,
                              int64_t *y, int64_t *c) {
    *x = first * p->run_x;
    *y = first * p->run_y;
    *c = first * p->run_c;
    for (int d = 0; d < p->ndim; d++) {
        int64_t index = i % p->shape[d];
        i /= p->shape[d];
        *x += index * p->x[d];
        *y += index * p->y[d];
        *c += index * p->c[d];
    }
    return i;
}

/* y = x reduced by the plan. y2 receives the second values of a pair, else it is NULL. No size is
 * 0. 0 or an error code. */
MG_SHARED(int, mg_reduce_run, (int kind, const reduce_plan *p, mg_array *y, mg_array *y2,
                            const mg_array *x, const mg_array *c));

/* Reduces `run` neighbouring lines of n elements in the calling thread: rows, or columns within
 * REDUCE_WIDE. Pairs need n <= REDUCE_CHUNK, and columns need n <= REDUCE_ROWS. Only `columns` and
 * the strides of the plan are used. */
MG_SHARED(void, mg_reduce_piece, (int kind, int dtype, const reduce_plan *p, void *y, void *y2,
                               const void *x, int64_t run, int64_t n, const void *c));

/* Source of terms that are not in memory in order. `put` writes n terms of the line that begins at element x,
 * from number `first` on. If `dense`, the lines follow one another, and n may reach into the next. */
typedef struct {
    void (*put)(const void *context, char *to, int64_t x, int64_t first, int64_t n);
    const void *context;
    bool dense;
} reduce_terms;

/* The sum, mean, maximum or minimum over the last `axes` axes of a row-major array of terms that
 * are made. No size is 0. The bits are those of mg_reduce. NULL with an error set. */
MG_SHARED(mg_array *, mg_reduce_made, (int op, int dtype, int ndim, const int64_t *shape, int axes,
                                       int keepdims, const reduce_terms *terms));

/* A header of x with size 1 on the axes of `mask` along which elements share memory (stride 0).
 * Reductions without an order need not repeat such elements. `*folded` receives how often each is
 * repeated. The header must not outlive the call. */
MG_SHARED(mg_array, mg_reduce_fold, (const mg_array *x, uint32_t mask, int64_t *folded));

/* Product of the sizes of the axes in `mask`. */
MG_SHARED(int64_t, mg_reduce_extent, (const mg_array *x, uint32_t mask));

/* x reduced over `mask`, whose axes stay with size 1: group by group, the last one first. `c` as
 * for mg_reduce_layout, or NULL. */
MG_SHARED(mg_array *, mg_reduce_groups, (int kind, mg_array *x, uint32_t mask, const mg_array *c));

/* x times powers of two, which are broadcast. */
MG_SHARED(mg_array *, mg_reduce_scaled, (mg_array *x, mg_array *factor));

/* MG_EEMPTY if x has lines without elements, which have no maximum; 0 otherwise, or if there are no
 * lines. */
MG_SHARED(int, mg_reduce_check_empty, (const mg_array *x, uint32_t mask));

/* y = x reduced over `group`, for integers and truth values. `all` and `any` take truth values
 * only. Both arrays are contiguous, and y has the group's axes with size 1. */
MG_SHARED(void, mg_reduce_plain, (int op, mg_array *y, const mg_array *x, uint32_t group));

/* While `bytes` are read at x, prefetches as many further on. The processor's own prefetching
 * starts anew at every page, where it does not do better alone. */
MG_INLINE void reduce_fetch(const void *x, int64_t bytes) {
    const char *ahead = (const char *)x + mg_system_reach;
    MG_ANEW(ahead); /* else gcc keeps an address for each line */
    for (int64_t i = 0; i < bytes; i += 64) __builtin_prefetch(ahead + i);
}

#define MG_REAL 32
#include "reduce.inc.c"
#define MG_REAL 64
#include "reduce.inc.c"

#endif
