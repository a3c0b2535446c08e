/* pack.inc.c: copies panels of a matrix into the order in which the micro-kernel reads them; a
 * template.
 *
 * A panel is `width` rows of A (or columns of B) by k: packed[p * width + i]. The same function
 * packs both operands, with the two strides exchanged.
 */
#include "simd/real.h"

/* Elements of a packed panel. Vector stores may run past the last one. */
#define GEMM_PANEL(width, k) (((int64_t)(width) * (k) + 2 * LANES - 1) / LANES * LANES)

/* Lanes are neighbours in memory: copies rows. The next store overwrites the surplus. */
MG_INLINE void R(gemm_pack_copy)(const int width, int count, real *restrict packed,
                                 const real *restrict src, int64_t step, int64_t k) {
    for (int64_t p = 0; p < k; p++, packed += width, src += step) {
        for (int i = 0; i < width; i += LANES)
            v_store(packed + i, count - i >= LANES ? v_load(src + i)
                                : count > i        ? v_load_n(src + i, count - i)
                                                   : v_set1(0));
    }
}

/* Steps down k are neighbours in memory: transposes blocks of LANES x LANES. It goes along LANES
 * rows, as many as the hardware prefetches, and then along the next. The last lanes come first. The
 * first lanes of the next step overwrite the surplus of their stores. */
MG_INLINE void R(gemm_pack_transpose)(const int width, int count, real *restrict packed,
                                 const real *restrict src, int64_t lane, int64_t k) {
    for (int i = (width - 1) / LANES * LANES; i >= 0; i -= LANES) {
        for (int64_t p = 0; p < k; p += LANES) {
            int depth = (int)mg_min(LANES, k - p);
            vec rows[LANES];
            const real *at = src + i * lane + p;
            if (depth == LANES && count >= i + LANES) {
                MG_UNROLL
                for (int l = 0; l < LANES; l++) rows[l] = v_load(at + l * lane);
            } else {
                MG_UNROLL
                for (int l = 0; l < LANES; l++)
                    rows[l] = i + l >= count   ? v_set1(0)
                              : depth == LANES ? v_load(at + l * lane)
                                               : v_load_n(at + l * lane, depth);
            }
            R(v_transpose)(rows);
            real *to = packed + p * width + i;
            MG_UNROLL
            for (int l = 0; l < LANES; l++)
                if (l < depth) v_store(to + l * width, rows[l]);
        }
    }
}

/* All lanes are one element. */
MG_INLINE void R(gemm_pack_fill)(const int width, real *restrict packed, const real *restrict src,
                                 int64_t step, int64_t k) {
    for (int64_t p = 0; p < k; p++, packed += width, src += step)
        for (int i = 0; i < width; i += LANES) v_store(packed + i, v_set1(*src));
}

/* Copies n elements that lie `step` apart. */
static MG_NOINLINE void R(gemm_gather)(real *restrict to, const real *restrict from, int64_t step,
                                       int64_t n) {
    int64_t i = 0;
    for (; step == 2 && i + LANES <= n; i += LANES) v_store(to + i, R(v_evens)(from + 2 * i));
    for (; i < n; i++) to[i] = from[i * step];
}

/* packed[p * width + i] = src[i * lane + p * step] for i < count, and arbitrary values for other i.
 * A matrix with gaps both ways is gathered along its smaller stride. It is gathered to its place,
 * or to contiguous rows that are then transposed. */
MG_INLINE void R(gemm_pack)(const int width, int count, real *restrict packed,
                            const real *restrict src, int64_t lane, int64_t step, int64_t k) {
    enum { DEPTH = GEMM_GATHER / sizeof(real), ROW = DEPTH + 64 / sizeof(real) };
    enum { WIDEST = GEMM_MR > GEMM_NR ? GEMM_MR : GEMM_NR };
    if (lane == 1 && count == width) { /* all sizes are constants */
        R(gemm_pack_copy)(width, width, packed, src, step, k);
    } else if (lane == 1) {
        R(gemm_pack_copy)(width, count, packed, src, step, k);
    } else if (lane == 0) {
        R(gemm_pack_fill)(width, packed, src, step, k);
    } else if (step != 1 && mg_max(lane, -lane) <= mg_max(step, -step)) {
        for (int64_t p = 0; p < k; p++, packed += width, src += step) {
            R(gemm_gather)(packed, src, lane, count);
            for (int i = count; i < width; i++) packed[i] = 0;
        }
    } else {
        _Alignas(64) real rows[WIDEST * ROW];
        int64_t most = step == 1 ? k : DEPTH;
        for (int64_t p = 0; p < k; p += most) {
            int64_t depth = mg_min(most, k - p);
            for (int i = 0; step != 1 && i < count; i++)
                R(gemm_gather)(rows + i * ROW, src + i * lane + p * step, step, depth);
            R(gemm_pack_transpose)(width, count, packed + p * width, step == 1 ? src : rows,
                              step == 1 ? lane : ROW, depth);
        }
    }
}

static MG_NOINLINE void R(gemm_pack_a)(real *packed, const real *a, int64_t a_row, int64_t a_col,
                                       int rows, int64_t k) {
    R(gemm_pack)(GEMM_MR, rows, packed, a, a_row, a_col, k);
}

/* Copies up to GEMM_MR rows of A: to rows of `row` elements if they are contiguous, else to a
 * packed panel. */
static MG_NOINLINE void R(gemm_copy_a)(real *copy, int64_t row, const real *a, int64_t a_row,
                                       int64_t a_col, int rows, int64_t k) {
    if (a_col != 1) {
        R(gemm_pack_a)(copy, a, a_row, a_col, rows, k);
        return;
    }
    for (int i = 0; i < rows; i++, copy += row, a += a_row) {
        int64_t p = 0;
        for (; p + LANES <= k; p += LANES) v_store(copy + p, v_load(a + p));
        if (p < k) v_store(copy + p, v_load_n(a + p, (int)(k - p)));
    }
}

static MG_NOINLINE void R(gemm_pack_b)(real *packed, const real *b, int64_t b_row, int64_t b_col,
                                       int cols, int64_t k) {
    R(gemm_pack)(GEMM_NR, cols, packed, b, b_col, b_row, k);
}
