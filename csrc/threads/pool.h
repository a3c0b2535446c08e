/* pool.h: the parallel loop, which all threads go through.
 *
 * The range 0..blocks is worked through by the calling thread and the pool's workers. Boundaries of
 * blocks are the caller's. Boundaries that a result depends on never depend on the number of threads. */
#ifndef MG_POOL_H
#define MG_POOL_H

#include "base/error.h"

typedef void (*mg_block_fn)(void *context, int64_t block);

/* Calls fn(context, b) once for every b in 0..blocks. Runs serially when there is one block, one
 * thread, or when called from inside a parallel loop. Returns when all blocks are done.
 *
 * As many runs of neighbouring blocks as threads that may come are begun at once, each by a thread of
 * its own, the same for all loops: what it reads in one may still lie in its caches in the next. */
void mg_parallel_for(int64_t blocks, mg_block_fn fn, void *context);
/* The first block of a run; run `runs` begins at the end. */
MG_INLINE int64_t mg_run_begin(int64_t run, int64_t runs, int64_t blocks) {
    return blocks * run / runs;
}
/* The same by the caller alone where the work is not `worth` a call to others. */
MG_INLINE void mg_parallel_if(bool worth, int64_t blocks, mg_block_fn fn, void *context) {
    if (worth) mg_parallel_for(blocks, fn, context);
    else
        for (int64_t b = 0; b < blocks; b++) fn(context, b);
}

#endif
