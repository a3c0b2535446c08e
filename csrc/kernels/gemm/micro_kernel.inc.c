/* micro_kernel.inc.c: the micro-kernel of matrix products: a tile of C in registers; a template.
 *
 * The micro-kernel is one function, inlined with its sizes as constants. Every loop over the tile
 * is thus unrolled, and the accumulators stay in registers. For each step down k it loads `nv`
 * vectors of a row of B and broadcasts `mr` elements of A.
 */
#include "simd/real.h"

#define GEMM_NR (GEMM_NV * LANES)

/* C (mr x (nv - 1) * LANES + tail) = A B, plus the rows at `plus` (which may be C) if it is not
 * NULL. `masked`: only `tail` lanes of the last vector of B are readable. Otherwise all of its
 * lanes are. */
MG_INLINE void R(gemm_micro_kernel)(const int mr, const int nv, const bool masked, real *c, int64_t c_row,
                            const real *restrict a, int64_t a_row, int64_t a_col,
                            const real *restrict b, int64_t b_row, int64_t k, int tail,
                            const real *plus, int64_t plus_row) {
    vec sum[GEMM_MR][GEMM_NV];
    MG_UNROLL
    for (int i = 0; i < mr; i++) {
        MG_UNROLL
        for (int v = 0; v < nv; v++) sum[i][v] = v_set1(0);
    }

    /* Pointers to groups of four rows of A: few enough to stay in registers. */
    const real *group[(GEMM_MR + 3) / 4];
    MG_UNROLL
    for (int g = 0; g < (mr + 3) / 4; g++) group[g] = a + 4 * g * a_row;

    for (; k > 0; k--, b += b_row) {
        vec row[GEMM_NV];
        MG_UNROLL
        for (int v = 0; v < nv; v++)
            row[v] = masked && v == nv - 1 ? v_load_n(b + v * LANES, tail) : v_load(b + v * LANES);
        /* Rows of an unpacked B may be far apart, where the hardware does not prefetch. */
        MG_UNROLL
        for (int v = 0; v < nv; v += GEMM_LINE) __builtin_prefetch(b + 8 * b_row + v * LANES);
        MG_UNROLL
        for (int v = 0; GEMM_READS > 0 && v < nv; v++) {
            MG_UNROLL
            /* the elements without an index in their address */
            for (int g = 0; g < (mr + 3) / 4; g++) {
                sum[4 * g][v] = v_fma(v_set1(*group[g]), row[v], sum[4 * g][v]);
                MG_ANEW(group[g]);
            }
        }
        MG_UNROLL
        for (int i = 0; i < mr; i++) {
            if (GEMM_READS > 0 && i % 4 == 0) continue;
            vec x = v_set1(group[i / 4][i % 4 * a_row]);
            MG_UNROLL
            for (int v = 0; v < nv; v++) sum[i][v] = v_fma(x, row[v], sum[i][v]);
        }
        MG_UNROLL
        for (int g = 0; g < (mr + 3) / 4; g++) group[g] += a_col;
    }

    MG_UNROLL
    for (int i = 0; i < mr; i++, c += c_row) {
        MG_UNROLL
        for (int v = 0; v < nv; v++) {
            real *out = c + v * LANES;
            /* with 64 bytes masks are free */
            if (v < nv - 1 || (MG_VECTOR_BYTES < 64 && tail == LANES)) {
                if (plus) sum[i][v] += v_load(plus + i * plus_row + v * LANES);
                v_store(out, sum[i][v]);
            } else {
                if (plus) sum[i][v] += v_load_n(plus + i * plus_row + v * LANES, tail);
                v_store_n(out, sum[i][v], tail);
            }
        }
    }
}

/* The tile with any strides, its height chosen at run time (1..GEMM_MR). */
MG_INLINE void R(gemm_micro_kernel_rows)(int rows, const int nv, const bool masked, real *c, int64_t c_row,
                                 const real *a, int64_t a_row, int64_t a_col, const real *b,
                                 int64_t b_row, int64_t k, int tail, const real *plus,
                                 int64_t plus_row) {
    switch (rows) {
#define GEMM_CASE(r)                                                                               \
    case r:                                                                                        \
        if (r <= GEMM_MR)                                                                          \
            R(gemm_micro_kernel)(r, nv, masked, c, c_row, a, a_row, a_col, b, b_row, k, tail, plus, \
                         plus_row);                                                                \
        break;
        GEMM_CASE(1) GEMM_CASE(2) GEMM_CASE(3) GEMM_CASE(4) GEMM_CASE(5) GEMM_CASE(6) GEMM_CASE(7)
        GEMM_CASE(8) GEMM_CASE(9) GEMM_CASE(10) GEMM_CASE(11) GEMM_CASE(12) GEMM_CASE(13)
        GEMM_CASE(14)
#undef GEMM_CASE
    }
}

static MG_NOINLINE void R(gemm_micro_kernel_wide)(int rows, real *c, int64_t c_row, const real *a,
                                          int64_t a_row, int64_t a_col, const real *b,
                                          int64_t b_row, int64_t k, int tail, const real *plus,
                                          int64_t plus_row) {
    R(gemm_micro_kernel_rows)(rows, 2, GEMM_MASKS, c, c_row, a, a_row, a_col, b, b_row, k, tail, plus,
                      plus_row);
}

static MG_NOINLINE void R(gemm_micro_kernel_narrow)(int rows, real *c, int64_t c_row, const real *a,
                                            int64_t a_row, int64_t a_col, const real *b,
                                            int64_t b_row, int64_t k, int tail, const real *plus,
                                            int64_t plus_row) {
    R(gemm_micro_kernel_rows)(rows, 1, GEMM_MASKS, c, c_row, a, a_row, a_col, b, b_row, k, tail, plus,
                      plus_row);
}

/* A tile of up to GEMM_MR x GEMM_NR with any strides in A. If GEMM_MASKS is 0, the row of B must be
 * readable up to a multiple of the vector. */
MG_INLINE void R(gemm_micro_kernel_any)(int rows, int cols, real *c, int64_t c_row, const real *a,
                                int64_t a_row, int64_t a_col, const real *b, int64_t b_row,
                                int64_t k, const real *plus, int64_t plus_row) {
    if (cols > LANES)
        R(gemm_micro_kernel_wide)(rows, c, c_row, a, a_row, a_col, b, b_row, k, cols - LANES, plus,
                          plus_row);
    else
        R(gemm_micro_kernel_narrow)(rows, c, c_row, a, a_row, a_col, b, b_row, k, cols, plus, plus_row);
}

/* Prefetches the cache lines of GEMM_NR elements, into L1 or (far) L2. If the elements do not begin
 * with a line, the columns before have already fetched the first one. */
MG_INLINE void R(gemm_fetch)(const real *row, const bool far) {
    enum { LINE = 64 / sizeof(real) };
    MG_UNROLL
    for (int i = LINE - 1; i < GEMM_NR; i += LINE) {
        if (far)
            __builtin_prefetch(row + i, 0, 2);
        else
            __builtin_prefetch(row + i);
    }
}

/* Adds a packed column of A times a row of B to the tile. */
MG_INLINE void R(gemm_step)(vec sum[GEMM_MR][GEMM_NV], const real *a, const real *b) {
    vec row[GEMM_NV];
    MG_UNROLL
    for (int v = 0; v < GEMM_NV; v++) row[v] = v_load(b + v * LANES);
    MG_UNROLL
    for (int v = 0; v < GEMM_NV; v++) {
        if (v > 0) MG_ANEW(a);
        MG_UNROLL
        for (int i = 0; i < GEMM_READS; i++) sum[i][v] = v_fma(v_set1(a[i]), row[v], sum[i][v]);
    }
    MG_UNROLL
    for (int i = GEMM_READS; i < GEMM_MR; i++) {
        vec x = v_set1(a[i]);
        MG_UNROLL
        for (int v = 0; v < GEMM_NV; v++) sum[i][v] = v_fma(x, row[v], sum[i][v]);
    }
}

/* Copies a row of B to its place in a panel. */
MG_INLINE void R(gemm_keep)(real *restrict packed, const real *restrict b) {
    MG_UNROLL
    for (int v = 0; v < GEMM_NV; v++) v_store(packed + v * LANES, v_load(b + v * LANES));
}

/* The full tile for a packed panel of A, which the hardware prefetches, and full rows of B. Rows of
 * B that are not packed are prefetched into L1 some steps ahead, and packed to `kept` unless it is
 * NULL. The first pairs of steps each prefetch a row into L2: first the rows of C, then `share`
 * rows of B. These lie ahead_row apart from `ahead` on. Pairs of steps leave more room for that
 * than single steps. */
static MG_NOINLINE void R(gemm_micro_kernel_packed)(real *c, int64_t c_row, const real *a, const real *b,
                                            int64_t b_row, int64_t k, const real *plus,
                                            int64_t plus_row, real *kept, const real *ahead,
                                            int64_t ahead_row, int64_t share) {
    vec sum[GEMM_MR][GEMM_NV];
    MG_UNROLL
    for (int i = 0; i < GEMM_MR; i++) {
        MG_UNROLL
        for (int v = 0; v < GEMM_NV; v++) sum[i][v] = v_set1(0);
    }
    const real *near = b_row == GEMM_NR ? NULL : b + 8 * b_row, *far = c;
    int64_t far_row = c_row, fetches = GEMM_MR + share;
    for (; k >= 2; k -= 2) {
        if (near) {
            R(gemm_fetch)(near, false);
            R(gemm_fetch)(near + b_row, false);
            near += 2 * b_row;
            if (kept) {
                R(gemm_keep)(kept, b);
                R(gemm_keep)(kept + GEMM_NR, b + b_row);
                kept += 2 * GEMM_NR;
            }
        }
        if (fetches > 0) {
            R(gemm_fetch)(far, true);
            far += far_row;
            if (--fetches == share) {
                far = ahead;
                far_row = ahead_row;
            }
        }
        MG_UNROLL
        for (int step = 0; step < 2; step++, a += GEMM_MR, b += b_row) R(gemm_step)(sum, a, b);
    }
    if (k > 0) {
        if (kept) R(gemm_keep)(kept, b);
        R(gemm_step)(sum, a, b);
    }
    MG_UNROLL
    for (int i = 0; i < GEMM_MR; i++, c += c_row) {
        MG_UNROLL
        for (int v = 0; v < GEMM_NV; v++) {
            if (plus) sum[i][v] += v_load(plus + i * plus_row + v * LANES);
            v_store(c + v * LANES, sum[i][v]);
        }
    }
}

#if GEMM_RUNS
/* A run of full tiles, down a panel of B or along the rows of C. Each tile lies `a_next`, `b_next`
 * and so on from the tile before. */
typedef struct {
    real *c;
    const real *plus, *a, *b, *ahead;
    int64_t c_row, plus_row, a_row, b_row, ahead_row, k, share, tiles;
    int64_t c_next, plus_next, a_next, b_next;
} R(gemm_tiles);

/* A step down k, in assembly. gcc would overwrite factors by products and then move registers. */
MG_INLINE void R(gemm_run_step)(vec sum[GEMM_MR][GEMM_NV], const real *a, const real *a3,
                                int64_t a_row, const real *b) {
    vec row[GEMM_NV] = {v_load(b), v_load(b + LANES)}, x;
    MG_UNROLL
    for (int i = 0; i < GEMM_MR; i++)
        __asm__("vbroadcast" R(GEMM_ONE) " %[a], %[x]\n\t"
                "vfmadd231" R(GEMM_ALL) " %[row0], %[x], %[sum0]\n\t"
                "vfmadd231" R(GEMM_ALL) " %[row1], %[x], %[sum1]"
                : [sum0] "+&x"(sum[i][0]), [sum1] "+x"(sum[i][1]), [x] "=&x"(x)
                : [a] "m"(*(i < 3 ? a + i * a_row : a3 + (i - 3) * a_row)), [row0] "x"(row[0]),
                  [row1] "x"(row[1]));
}

/* A run of tiles with little work between one tile and the next. Prefetching takes no branch. Four
 * steps make a round, so that rounds are few enough for their end to be predicted. An A that `lies`
 * is read in place, and the rows of B are prefetched. Else both are packed. The first rounds each
 * prefetch a row of C, and the next `share` rounds a row at `ahead`. */
MG_INLINE void R(gemm_run_tiles)(const bool lies, const R(gemm_tiles) *t) {
    enum { STEPS = 4 };
    const int64_t a_row = lies ? t->a_row : 1, a_col = lies ? 1 : GEMM_MR;
    const int64_t b_row = lies ? t->b_row : GEMM_NR;
    const real *a = t->a, *b = t->b, *plus = t->plus, *ahead = t->ahead;
    real *c = t->c;
    for (int64_t tiles = t->tiles; tiles > 0; tiles--) {
        vec sum[GEMM_MR][GEMM_NV];
        MG_UNROLL
        for (int i = 0; i < GEMM_MR; i++) sum[i][0] = sum[i][1] = v_set1(0);
        const real *x = a, *x3 = a + 3 * a_row, *y = b, *far = c;
        int64_t far_row = t->c_row, share = t->share, left = t->k / STEPS;
        int64_t rounds = lies ? left : mg_min(left, GEMM_MR);
        while (left > 0) {
            left -= rounds;
            do {
                if (!lies) R(gemm_fetch)(far, false);
                far += far_row;
                MG_UNROLL
                for (int step = 0; step < STEPS; step++, y += b_row) {
                    if (lies) R(gemm_fetch)(y + 8 * b_row, false);
                    R(gemm_run_step)(sum, x + step * a_col, x3 + step * a_col, a_row, y);
                }
                x += STEPS * a_col;
                x3 += STEPS * a_col;
            } while (--rounds > 0);
            far = share > 0 ? ahead : c; /* C has been prefetched */
            far_row = share > 0 ? t->ahead_row : 0;
            rounds = share > 0 ? mg_min(left, share) : left;
            share = 0;
        }
        MG_ROLLED
        for (int64_t p = t->k % STEPS; p > 0; p--, x += a_col, x3 += a_col, y += b_row)
            R(gemm_run_step)(sum, x, x3, a_row, y);

        const real *from = plus;
        real *to = c;
        MG_UNROLL
        for (int i = 0; plus && i < GEMM_MR; i++, from += t->plus_row) {
            sum[i][0] += v_load(from);
            sum[i][1] += v_load(from + LANES);
        }
        MG_UNROLL
        for (int i = 0; i < GEMM_MR; i++, to += t->c_row) {
            v_store(to, sum[i][0]);
            v_store(to + LANES, sum[i][1]);
        }
        if (plus) plus += t->plus_next;
        c += t->c_next;
        a += t->a_next;
        b += t->b_next;
        ahead += t->share * t->ahead_row;
    }
}

static MG_NOINLINE void R(gemm_run_packed)(const R(gemm_tiles) *t) {
    R(gemm_run_tiles)(false, t);
}

static MG_NOINLINE void R(gemm_run_lying)(const R(gemm_tiles) *t) {
    R(gemm_run_tiles)(true, t);
}
#endif
