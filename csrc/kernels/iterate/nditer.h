/* nditer.h: the iterator that runs an elementwise kernel over operands of any strides.
 *
 * A kernel is one plain loop over whole vectors of contiguous memory. The iterator broadcasts the
 * operands to one shape and merges axes that are contiguous together in all of them. It then calls
 * the kernel chunk by chunk. An operand that is not contiguous within a chunk is first gathered
 * into a stack buffer of a few kilobytes. A constant operand is spread in that buffer once.
 * Elements left at the end are computed once more with the elements before them, or padded. The
 * output is always contiguous.
 */
#ifndef MG_NDITER_H
#define MG_NDITER_H

#include "memory/array.h"
#include "kernels/sizes.h"
#include "simd/vec.h"

enum {
    NDITER_MAX_OPERANDS = 5,
    NDITER_MAX_RESULTS = 2,
    NDITER_AHEAD = 2048,            /* bytes to prefetch ahead in each array */
    NDITER_STREAM_AHEAD = 4096,     /* the same for non-temporal results */
    NDITER_WAITS = 24 * 64,         /* bytes of a chunk of all operands, with prefetch */
    NDITER_FOLLOWS = 12 * 64,       /* the same without prefetch */
};

/* out[i] = f(in[0][i], in[1][i], ...) for i in 0..n. The arrays do not overlap, but out may be one
 * of the operands. n is a multiple of nditer_unit of the narrowest type, in or out. A loop
 * therefore needs no second version for the end. nditer_full_vectors tells the compiler. */
typedef void (*mg_kernel)(void *out, const void *const *in, int64_t n);

MG_INLINE int64_t nditer_unit(size_t narrowest) {
    return narrowest < 4 ? NDITER_UNIT_MAX : 4 * MG_VECTOR_BYTES / (int64_t)narrowest;
}
MG_INLINE void nditer_full_vectors(int64_t n, size_t narrowest) {
    if (n & (nditer_unit(narrowest) - 1)) __builtin_unreachable();
}

typedef struct nditer {
    int results;
    struct nditer_result {
        mg_kernel kernel;
        char *out;
    } result[NDITER_MAX_RESULTS];
    int out_itemsize;
    int ndim;
    int operands;
    int64_t unit;
    bool in_place; /* the first result is one of the operands */
    bool from_end; /* process the last block first */
    int threads;   /* the setting at the start: another thread may change it */
    bool whole;    /* every operand is contiguous or constant: no multi-index is kept */
    bool fetches;  /* prefetch ahead */
    bool streams;  /* write the results with non-temporal stores */
    mg_kernel non_temporal; /* NULL, or a version of the kernel with non-temporal stores */
    int64_t size;
    int64_t shape[MG_MAX_NDIM];
    struct nditer_operand {
        const char *data;
        int itemsize;
        bool contiguous; /* over the whole shape */
        bool constant;   /* one element for the whole shape */
        bool again;      /* the same memory as an earlier operand */
        int64_t strides[MG_MAX_NDIM];
    } operand[NDITER_MAX_OPERANDS];
} nditer;

/* Prefetches what lies `ahead` bytes beyond a chunk about to be processed. Most processors'
 * hardware prefetchers restart at every page. That costs a tenth of memory bandwidth and a sixth of
 * L3 bandwidth. */
MG_INLINE void nditer_fetch(const char *chunk, int64_t bytes, int64_t ahead) {
    for (int64_t i = 0; i < bytes; i += 64) __builtin_prefetch(chunk + ahead + i);
}

/* to[...] = from[...], for equal shapes and item sizes without overlap. */
MG_SHARED(void, mg_copy_strided, (const mg_array *to, const mg_array *from));
/* Copies n elements into contiguous memory. Stride 0 repeats one element. */
MG_SHARED(void, mg_copy_run, (char *restrict to, const char *restrict from, int64_t n, int64_t stride,
                           int itemsize));
/* Copies rows of `bytes` contiguous bytes each, NDITER_SHORT at most. Rows lie the given steps
 * apart, in bytes. */
MG_SHARED(void, mg_copy_short, (char *restrict to, int64_t to_step, const char *restrict from,
                             int64_t from_step, int64_t rows, int64_t bytes));

/* True if `written` bytes of results go past the caches. `held` is their size with the operands.
 * The threshold is twice mg_system_streams for several cores, which just fills L3. One core stores
 * faster past L3, if a kernel waits for `few` operands. */
MG_SHARED(bool, mg_nditer_streams, (int64_t written, int64_t held, bool few));

/* Copies bytes with non-temporal stores. Other threads may not see them before v_stream_end. */
MG_SHARED(void, mg_stream, (char *restrict to, const char *restrict from, int64_t bytes));

/* The shape to which all operands broadcast: 0, or an error code with the two sizes that differ. */
MG_SHARED(int, mg_broadcast_shape, (int count, mg_array *const *arrays, int *ndim, int64_t *shape));
/* The strides of `a` when broadcast to a shape. */
MG_SHARED(void, mg_broadcast_strides, (const mg_array *a, int ndim, const int64_t *shape,
                                    int64_t *strides));
/* Drops axes of size 1 and merges neighbouring axes that are contiguous together in all `count`
 * rows of strides. Returns the new ndim. */
MG_SHARED(int, mg_collapse, (int ndim, int64_t *shape, int count, int64_t (*strides)[MG_MAX_NDIM]));

MG_SHARED(int, mg_promote, (int count, mg_array *const *arrays)); /* the common dtype */
/* `a` in a dtype: `a` itself retained, or a copy. */
MG_SHARED(mg_array *, mg_as, (mg_array *a, int dtype));

/* Runs the kernel on operands that broadcast to out's shape, in several threads if large. */
MG_SHARED(void, mg_nditer_run,
          (mg_array *out, int operands, mg_array *const *inputs, mg_kernel kernel));
/* The same. `non_temporal` is NULL or a version of the kernel with non-temporal stores, whose `out`
 * starts at a cache line. */
MG_SHARED(void, mg_nditer_run_streaming,
          (mg_array *out, int operands, mg_array *const *inputs, mg_kernel kernel,
           mg_kernel non_temporal));
/* The same for derivatives: several results of one shape and dtype in one pass over the operands.
 * The first result may be one of the operands. The last block comes first: a cache still holds the
 * end of what the forward pass wrote. After that it holds the beginning, where the next pass
 * starts. */
MG_SHARED(void, mg_nditer_run_back,
          (int results, mg_array *const *outs, int operands, mg_array *const *inputs,
           const mg_kernel *kernels, mg_kernel non_temporal));

#endif
