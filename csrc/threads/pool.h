/* pool.h: the parallel loop, which all threads go through.
 *
 * The calling thread and the workers of the pool share the blocks 0..blocks. The caller chooses the
 * blocks. Boundaries that affect a result must not depend on the number of threads.
 */
#ifndef MG_POOL_H
#define MG_POOL_H

#include "base/error.h"

typedef void (*mg_block_fn)(void *context, int64_t block);

/* Calls fn(context, b) once for every b in 0..blocks, and returns when all are done. Runs serially
 * if there is one block or one thread, or inside another parallel loop.
 *
 * The blocks are divided into runs of neighbours, one for each thread that may come. A thread
 * begins with the same run in every loop, whose data may still be in its caches.
 */
void mg_parallel_for(int64_t blocks, mg_block_fn fn, void *context);
/* The first block of a run. Run number `runs` begins at the end. */
MG_INLINE int64_t mg_run_begin(int64_t run, int64_t runs, int64_t blocks) {
    return blocks * run / runs;
}
/* The same, but the caller runs all blocks if the work is not `worth` waking others. */
MG_INLINE void mg_parallel_if(bool worth, int64_t blocks, mg_block_fn fn, void *context) {
    if (worth) mg_parallel_for(blocks, fn, context);
    else
        for (int64_t b = 0; b < blocks; b++) fn(context, b);
}

#endif
