/* vector.inc.c: a row vector times a matrix, at the speed of memory; a template.
 *
 * A matrix times a column vector is the same product, transposed. The layout of the matrix decides
 * the method. Along its rows it is read as a weighted sum of rows, and along its columns as dot
 * products.
 */
#include "simd/real.h"

/* Outputs at a time, and depth of dot products, half of a small L1: both are best read in long
 * runs. */
enum { R(GEMM_V_CHUNK) = 16384 / sizeof(real), R(GEMM_V_DEPTH) = 16384 / sizeof(real) };
/* Outputs at a time for a matrix that is copied, and columns that gemm_dots takes together. */
enum { R(GEMM_V_PART) = 1024 / sizeof(real), R(GEMM_V_TOGETHER) = LANES < 4 ? LANES : 4 };

/* y = x B for `nv` vectors of columns, held in registers. The last vector has `tail` columns. */
MG_INLINE void R(gemm_sum_rows)(const int nv, const bool masked, real *restrict y,
                                const real *restrict x, int64_t x_step, const real *restrict b,
                                int64_t b_row, int64_t k, int tail) {
    vec sum[8];
    MG_UNROLL
    for (int v = 0; v < nv; v++) sum[v] = v_set1(0);
    for (; k > 0; k--, x += x_step, b += b_row) {
        vec w = v_set1(*x);
        MG_UNROLL
        for (int v = 0; v < nv; v++) {
            const real *at = b + v * LANES;
            sum[v] = v_fma(w, masked && v == nv - 1 ? v_load_n(at, tail) : v_load(at), sum[v]);
        }
    }
    MG_UNROLL
    for (int v = 0; v < nv; v++) {
        if (masked && v == nv - 1)
            v_store_n(y + v * LANES, sum[v], tail);
        else
            v_store(y + v * LANES, sum[v]);
    }
}

/* y = or += x B for `rows` rows and full vectors of columns. Reads the rows as parallel streams. */
MG_INLINE void R(gemm_add_rows)(const int rows, real *restrict y, const real *restrict x,
                                int64_t x_step, const real *restrict b, int64_t b_row, int64_t n,
                                bool add) {
    vec w[8];
    MG_UNROLL
    for (int p = 0; p < rows; p++) w[p] = v_set1(x[p * x_step]);
    for (int64_t j = 0; j < n; j += LANES) {
        vec sum = add ? v_load(y + j) : v_set1(0);
        MG_UNROLL
        for (int p = 0; p < rows; p++) sum = v_fma(w[p], v_load(b + p * b_row + j), sum);
        v_store(y + j, sum);
    }
}

/* The same for a B with contiguous rows in neither direction. A part of each row is copied
 * first. */
static MG_NOINLINE void R(gemm_vector_steps)(real *restrict y, const real *restrict x, int64_t x_step,
                                             const real *restrict b, int64_t b_row, int64_t b_col,
                                             int64_t n, int64_t k) {
    real sums[R(GEMM_V_PART)], part[R(GEMM_V_PART)] = {0};
    for (int64_t j = 0; j < n; j += R(GEMM_V_PART)) {
        int64_t cols = mg_min(R(GEMM_V_PART), n - j), whole = (cols + LANES - 1) / LANES * LANES;
        for (int64_t p = 0; p < k; p++) {
            for (int64_t i = 0; i < cols; i++) part[i] = b[p * b_row + (j + i) * b_col];
            R(gemm_add_rows)(1, sums, x + p * x_step, x_step, part, 0, whole, p > 0);
        }
        memcpy(y + j, sums, (size_t)cols * sizeof(real));
    }
}

/* y = x B for contiguous rows. If B comes from L2 or nearer: eight vectors of y in registers, down
 * all rows. From further away: eight rows at a time as streams for the prefetchers, with y in L1.
 * Zen 5, which needs no help, and vectors of 32 bytes take four rows instead in some cases. They do
 * if B comes from L3, or if its rows fall into the same sets of L1. With vectors of 32 bytes they
 * also do if a row takes more than two pages. Either way each y is summed in ascending order of
 * rows, so the bits are the same. */
static void R(gemm_vector_rows)(real *restrict y, const real *restrict x, int64_t x_step,
                                const real *restrict b, int64_t b_row, int64_t n, int64_t k) {
    int64_t j = 0, bytes = n * k * (int)sizeof(real);
    int64_t row = b_row * (int)sizeof(real);
    bool apart = row % 2048 != 0 && (MG_VECTOR_BYTES != 32 || row <= 8192);
    bool eight = MG_VECTOR_BYTES != 32 && mg_system_zen() != 5;
    eight = eight || (apart && bytes >= mg_system_streams());
    if (n >= 8 * LANES && bytes > 1 << 19)
        for (int64_t whole = n / LANES * LANES; j < whole; j += R(GEMM_V_CHUNK)) {
            int64_t cols = mg_min(R(GEMM_V_CHUNK), whole - j), p = 0;
            for (; eight && p + 8 <= k; p += 8)
                R(gemm_add_rows)(8, y + j, x + p * x_step, x_step, b + p * b_row + j, b_row, cols,
                                 p > 0);
            for (; p + 4 <= k; p += 4)
                R(gemm_add_rows)(4, y + j, x + p * x_step, x_step, b + p * b_row + j, b_row, cols,
                                 p > 0);
            for (; p < k; p++)
                R(gemm_add_rows)(1, y + j, x + p * x_step, x_step, b + p * b_row + j, b_row, cols,
                                 p > 0);
        }
    j = mg_min(j, n / LANES * LANES);
    for (; n - j >= 8 * LANES; j += 8 * LANES)
        R(gemm_sum_rows)(8, false, y + j, x, x_step, b + j, b_row, k, 0);
    for (; n - j >= 4 * LANES; j += 4 * LANES)
        R(gemm_sum_rows)(4, false, y + j, x, x_step, b + j, b_row, k, 0);
    for (; n - j >= LANES; j += LANES)
        R(gemm_sum_rows)(1, false, y + j, x, x_step, b + j, b_row, k, 0);
    if (n > j) R(gemm_sum_rows)(1, true, y + j, x, x_step, b + j, b_row, k, (int)(n - j));
}

/* dots[j] = lane-wise partial sums of x . b[:, j] for `cols` columns, each from `parts` chains. */
MG_INLINE void R(gemm_dots)(const int cols, const int parts, vec *restrict dots,
                            const real *restrict x, const real *restrict b, int64_t b_col,
                            int64_t k) {
    vec sum[4][8];
    MG_UNROLL
    for (int j = 0; j < cols; j++) {
        MG_UNROLL
        for (int s = 0; s < parts; s++) sum[j][s] = v_set1(0);
    }
    int64_t p = 0;
    for (; p + parts * LANES <= k; p += parts * LANES) {
        MG_UNROLL
        for (int s = 0; s < parts; s++) {
            vec xs = v_load(x + p + s * LANES);
            MG_UNROLL
            for (int j = 0; j < cols; j++)
                sum[j][s] = v_fma(xs, v_load(b + j * b_col + p + s * LANES), sum[j][s]);
        }
    }
    for (; p < k; p += LANES) {
        int lanes = (int)mg_min(LANES, k - p);
        vec xs = lanes == LANES ? v_load(x + p) : v_load_n(x + p, lanes);
        MG_UNROLL
        for (int j = 0; j < cols; j++) {
            const real *at = b + j * b_col + p;
            sum[j][0] = v_fma(xs, lanes == LANES ? v_load(at) : v_load_n(at, lanes), sum[j][0]);
        }
    }
    MG_UNROLL
    for (int j = 0; j < cols; j++) {
        MG_UNROLL
        for (int s = 1; s < parts; s++) sum[j][0] += sum[j][s];
        dots[j] = sum[j][0];
    }
}

/* Copies `cols` columns, whose elements are b_row apart, one after the other. */
static void R(gemm_columns)(real *restrict to, const real *restrict b, int64_t b_row, int64_t b_col,
                            int cols, int64_t k) {
    for (int j = 0; j < cols; j++)
        for (int64_t p = 0; p < k; p++) to[j * k + p] = b[j * b_col + p * b_row];
}

/* dots[j] for `cols` columns, a few together. Each has two chains, whatever columns stand beside
 * it. Only a lone column has more chains. */
MG_INLINE void R(gemm_dots_of)(vec *restrict dots, const real *restrict x, const real *restrict b,
                               int64_t b_col, int cols, int64_t k, bool lone) {
    enum { TOGETHER = R(GEMM_V_TOGETHER) };
    int c = 0;
    for (; c + TOGETHER <= cols; c += TOGETHER)
        R(gemm_dots)(TOGETHER, 2, dots + c, x, b + c * b_col, b_col, k);
    for (; c + 2 <= cols; c += 2) R(gemm_dots)(2, 2, dots + c, x, b + c * b_col, b_col, k);
    if (lone) R(gemm_dots)(1, 8, dots, x, b, b_col, k);
    else if (c < cols) R(gemm_dots)(1, 2, dots + c, x, b + c * b_col, b_col, k);
}

/* The same product for columns that are copied first. */
static MG_NOINLINE void R(gemm_dots_of_copies)(vec *restrict dots, const real *restrict x,
                                               const real *restrict b, int64_t b_row,
                                               int64_t b_col, int cols, int64_t k, bool lone) {
    enum { TOGETHER = R(GEMM_V_TOGETHER) };
    real copy[TOGETHER * R(GEMM_V_DEPTH)];
    for (int c = 0; c < cols; c += TOGETHER) {
        int some = (int)mg_min(TOGETHER, cols - c);
        R(gemm_columns)(copy, b + c * b_col, b_row, b_col, some, k);
        R(gemm_dots_of)(dots + c, x, copy, k, some, k, lone);
    }
}

/* y = x B by columns, which are contiguous or else copied: LANES dot products at a time, with x in
 * L1. Their partial sums are transposed, so that one tree of vector additions finishes all of
 * them. */
static void R(gemm_vector_cols)(real *restrict y, const real *restrict x, int64_t x_step,
                                const real *restrict b, int64_t b_row, int64_t b_col, int64_t n,
                                int64_t k, bool lone) {
    real copy[R(GEMM_V_DEPTH)];
    for (int64_t p = 0; p < k; p += R(GEMM_V_DEPTH)) {
        int64_t depth = mg_min(R(GEMM_V_DEPTH), k - p);
        const real *part = x + p;
        if (x_step != 1) {
            for (int64_t i = 0; i < depth; i++) copy[i] = x[(p + i) * x_step];
            part = copy;
        }
        for (int64_t j = 0; j < n; j += LANES) {
            int cols = (int)mg_min(LANES, n - j);
            const real *at = b + j * b_col + p * b_row;
            vec dots[LANES];
            if (b_row == 1) R(gemm_dots_of)(dots, part, at, b_col, cols, depth, lone);
            else R(gemm_dots_of_copies)(dots, part, at, b_row, b_col, cols, depth, lone);
            for (int c = cols; c < LANES; c++) dots[c] = v_set1(0);
            R(v_transpose)(dots);
            for (int w = LANES / 2; w > 0; w /= 2)
                for (int i = 0; i < w; i++) dots[i] += dots[i + w];
            if (p > 0) dots[0] += v_load_n(y + j, cols);
            v_store_n(y + j, dots[0], cols);
        }
    }
}
