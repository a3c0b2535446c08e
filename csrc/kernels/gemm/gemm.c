/* gemm.c: matrix products of both float widths: block sizes, and the templates put together. */
#include "gemm.h"
#include "base/system.h"
#include "threads/pool.h"
#include "simd/transpose.h"
#include "simd/vec.h"
#include <stdatomic.h>
#include <string.h>

/* The register tile is GEMM_MR rows by GEMM_NV vectors. It has as many accumulators as fit the
 * registers beside GEMM_NV vectors of B and a broadcast element of A.
 *
 * In sizes.def:
 * GEMM_KC  depth of a block: the deeper, the less often C is read and written
 * GEMM_MC  rows of a block for each MB of L2: the packed block of A (MC x KC) takes a quarter to a
 *          third of it
 * GEMM_NC  columns of B packed at a time: a share of L3
 *
 * Here:
 * GEMM_MASKS  a masked load costs no more than a load
 * GEMM_PACKS  packs a B whose rows fall into one set of L1, for more than one tile of rows: a tile
 *             reads a single cache line of each row, which is evicted before the next tile reads it
 * GEMM_READS  rows of a packed A that the multiply-adds broadcast from memory themselves, anew for
 *             each vector: one more load and one instruction less
 */
#if MG_VECTOR_BYTES == 64
enum { GEMM_MASKS = 1, GEMM_PACKS = 0, GEMM_READS = 4 };
#elif defined(__aarch64__)
enum { GEMM_MASKS = 0, GEMM_PACKS = 0, GEMM_READS = 0 };
#else /* 16 registers */
enum { GEMM_MASKS = 0, GEMM_PACKS = 1, GEMM_READS = 0 };
#endif
/* Runs of full tiles have a kernel of their own. These name the width in its instructions. */
#define GEMM_RUNS (MG_VECTOR_BYTES == 32)
#define GEMM_ONE_f32 "ss"
#define GEMM_ALL_f32 "ps"
#define GEMM_ONE_f64 "sd"
#define GEMM_ALL_f64 "pd"
enum { GEMM_LINE = 64 / MG_VECTOR_BYTES }; /* vectors in a cache line */
_Static_assert(GEMM_MR <= 14, "gemm_micro_kernel_rows has a case for each height");
enum { GEMM_GROUP = 4 };           /* panels of B that one thread packs and uses, at most */

MG_INLINE int64_t gemm_round_up(int64_t n, int64_t unit) { return mg_ceil_div(n, unit) * unit; }

/* `rows` for each MB of L2, in full tiles. Only this size depends on the machine. Depths of blocks
 * decide how sums are rounded, and the bits must not depend on a cache. */
static int64_t gemm_most_rows(int64_t rows) {
    static _Atomic int64_t cache; /* two threads may find it out at once, with the same result */
    int64_t bytes = atomic_load_explicit(&cache, memory_order_relaxed);
    if (bytes == 0) {
        bytes = mg_system_cache();
        atomic_store_explicit(&cache, bytes, memory_order_relaxed);
    }
    return mg_max((rows * bytes >> 20) / GEMM_MR, 2) * GEMM_MR;
}

#define MG_REAL 32
#include "micro_kernel.inc.c"
#define MG_REAL 32
#include "pack.inc.c"
#define MG_REAL 32
#include "vector.inc.c"
#define MG_REAL 32
#include "gemm.inc.c"

#define MG_REAL 64
#include "micro_kernel.inc.c"
#define MG_REAL 64
#include "pack.inc.c"
#define MG_REAL 64
#include "vector.inc.c"
#define MG_REAL 64
#include "gemm.inc.c"
