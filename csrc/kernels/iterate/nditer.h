/* nditer.h: the iterator that runs an elementwise kernel over operands of any strides.
 *
 * A kernel is one plain loop over whole vectors of contiguous memory. The iterator makes that enough:
 * it broadcasts the operands to one shape, merges axes that are contiguous together in all of them, and
 * hands the kernel chunks; an operand that is not contiguous within a chunk is first gathered into a
 * stack buffer of a few kilobytes, a constant one is spread there once. The rest at the end is
 * computed once more with the elements before it, or padded. The output is always contiguous. */
#ifndef MG_NDITER_H
#define MG_NDITER_H

#include "memory/array.h"
#include "kernels/sizes.h"
#include "simd/vec.h"

enum {
    NDITER_MAX_OPERANDS = 5,
    NDITER_MAX_RESULTS = 2,
    NDITER_AHEAD = 2048,            /* bytes of each array to ask for before they are needed */
    NDITER_STREAM_AHEAD = 4096,     /* the same where results are written past the caches */
    NDITER_WAITS = 24 * 64,         /* bytes of all operands to ask for at once: as a core waits for */
    NDITER_FOLLOWS = 12 * 64,       /* and to read at once where nothing is asked for */
};

/* out[i] = f(in[0][i], in[1][i], ...) for i in 0..n. The arrays do not overlap, but out may be one of
 * the operands. n is a multiple of nditer_unit of the narrowest type, in or out, so that a loop needs
 * no second version of itself for the end: it tells the compiler so by nditer_full_vectors. */
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
    bool from_end; /* the last block first */
    int threads;   /* as it was at the start: another thread may set it meanwhile */
    bool whole;    /* every operand is contiguous or constant: no position to keep */
    bool fetches;  /* memory is asked for ahead */
    bool streams;  /* the results are written past the caches */
    mg_kernel non_temporal; /* NULL, or a version of the kernel that does so itself */
    int64_t size;
    int64_t shape[MG_MAX_NDIM];
    struct nditer_operand {
        const char *data;
        int itemsize;
        bool contiguous; /* over the whole shape */
        bool constant;   /* one element for the whole shape */
        bool again;      /* the same memory as an operand before it */
        int64_t strides[MG_MAX_NDIM];
    } operand[NDITER_MAX_OPERANDS];
} nditer;

/* Asks for what lies a little beyond a chunk that is about to be worked on: most processors' own
 * prefetching starts anew at every page, which costs a tenth of the bandwidth of memory and a sixth of
 * that of the last cache. */
MG_INLINE void nditer_fetch(const char *chunk, int64_t bytes, int64_t ahead) {
    for (int64_t i = 0; i < bytes; i += 64) __builtin_prefetch(chunk + ahead + i);
}

/* to[...] = from[...], equal shapes and item sizes, no overlap. */
MG_SHARED(void, mg_copy_strided, (const mg_array *to, const mg_array *from));
/* n elements into contiguous memory; stride 0 repeats one. */
MG_SHARED(void, mg_copy_run, (char *restrict to, const char *restrict from, int64_t n, int64_t stride,
                           int itemsize));
/* Rows of `bytes`, NDITER_SHORT at most, that lie in order but for steps of so many bytes between them. */
MG_SHARED(void, mg_copy_short, (char *restrict to, int64_t to_step, const char *restrict from,
                             int64_t from_step, int64_t rows, int64_t bytes));

/* Whether `written` bytes of results go past the caches, which with what they are made of are
 * `held`. Twice the limit of mg_system_streams, what just fills the third cache, is left there for
 * several cores; one stores faster past it, if a kernel has `few` operands to wait for. */
MG_SHARED(bool, mg_nditer_streams, (int64_t written, int64_t held, bool few));

/* Bytes past the caches; other threads may not see them before v_stream_end. */
MG_SHARED(void, mg_stream, (char *restrict to, const char *restrict from, int64_t bytes));

/* Shape to which all operands broadcast: 0, or an error code with the two sizes that differ. */
MG_SHARED(int, mg_broadcast_shape, (int count, mg_array *const *arrays, int *ndim, int64_t *shape));
/* Strides of `a` seen in a broadcast shape. */
MG_SHARED(void, mg_broadcast_strides, (const mg_array *a, int ndim, const int64_t *shape,
                                    int64_t *strides));
/* Drops size-1 axes and merges neighbours that are contiguous together in all `count` stride rows;
 * returns the new ndim. */
MG_SHARED(int, mg_collapse, (int ndim, int64_t *shape, int count, int64_t (*strides)[MG_MAX_NDIM]));

MG_SHARED(int, mg_promote, (int count, mg_array *const *arrays)); /* the dtype that operands meet in */
/* `a` in a dtype: itself retained, or a copy. */
MG_SHARED(mg_array *, mg_as, (mg_array *a, int dtype));

/* Runs the kernel on operands that broadcast to out's shape, threaded when large. */
MG_SHARED(void, mg_nditer_run,
          (mg_array *out, int operands, mg_array *const *inputs, mg_kernel kernel));
/* The same; for results that are written past the caches there is a version of the kernel that does so
 * itself, whose `out` starts at a cache line, or NULL. */
MG_SHARED(void, mg_nditer_run_streaming,
          (mg_array *out, int operands, mg_array *const *inputs, mg_kernel kernel,
           mg_kernel non_temporal));
/* The same for derivatives: for several results of one shape and dtype, in one pass over the operands,
 * and the last block first; the first result may be one of the operands. A cache still holds the end of
 * what went forward, and then the beginning of what goes forward next. */
MG_SHARED(void, mg_nditer_run_back,
          (int results, mg_array *const *outs, int operands, mg_array *const *inputs,
           const mg_kernel *kernels, mg_kernel non_temporal));

#endif
