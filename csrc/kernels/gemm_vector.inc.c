/* gemm_vector.inc.c: a row vector times a matrix, at the speed of memory.
 *
 * A matrix times a column vector is the same product transposed. What counts is which way the matrix
 * lies: along its rows it is read as a weighted sum of rows, along its columns as dot products. */
#include "real.h"

enum { R(GEMM_V_COLS) = 8192 / sizeof(real), R(GEMM_V_DEPTH) = 8192 / sizeof(real) };

/* y[j] = or += sum over `rows` of x[p] * b[p][j], rows in ascending order. */
MG_INLINE void R(gemm_axpy)(const int rows, real *restrict y, const real *restrict x, int64_t x_step,
                            const real *restrict b, int64_t b_row, int64_t n, bool add) {
    vec w[8];
    GEMM_UNROLL
    for (int p = 0; p < rows; p++) w[p] = v_set1(x[p * x_step]);
    int64_t j = 0;
    for (; j + LANES <= n; j += LANES) {
        vec sum = add ? v_load(y + j) : v_set1(0);
        GEMM_UNROLL
        for (int p = 0; p < rows; p++) sum = v_fma(w[p], v_load(b + p * b_row + j), sum);
        v_store(y + j, sum);
    }
    if (j < n) {
        int tail = (int)(n - j);
        vec sum = add ? v_load_n(y + j, tail) : v_set1(0);
        GEMM_UNROLL
        for (int p = 0; p < rows; p++) sum = v_fma(w[p], v_load_n(b + p * b_row + j, tail), sum);
        v_store_n(y + j, sum, tail);
    }
}

/* Rows lie along memory: weighted sums of several rows at a time, y in L1. Eight rows while B is in
 * cache; four from memory, where more streams than that get in each other's way. */
static void R(gemm_vector_rows)(real *restrict y, const real *restrict x, int64_t x_step,
                                const real *restrict b, int64_t b_row, int64_t n, int64_t k) {
    bool cached = n * k <= (int64_t)((1 << 20) / sizeof(real));
    for (int64_t j = 0; j < n; j += R(GEMM_V_COLS)) {
        int64_t cols = mg_min(R(GEMM_V_COLS), n - j), p = 0;
        for (; cached && p + 8 <= k; p += 8)
            R(gemm_axpy)(8, y + j, x + p * x_step, x_step, b + p * b_row + j, b_row, cols, p > 0);
        for (; p + 4 <= k; p += 4)
            R(gemm_axpy)(4, y + j, x + p * x_step, x_step, b + p * b_row + j, b_row, cols, p > 0);
        for (; p < k; p++)
            R(gemm_axpy)(1, y + j, x + p * x_step, x_step, b + p * b_row + j, b_row, cols, p > 0);
    }
}

/* dots[j] = lane-wise partial sums of x . b[:, j] for `cols` columns, each from `parts` chains. */
MG_INLINE void R(gemm_dots)(const int cols, const int parts, vec *restrict dots,
                            const real *restrict x, const real *restrict b, int64_t b_col, int64_t k) {
    vec sum[4][8];
    GEMM_UNROLL
    for (int j = 0; j < cols; j++) {
        GEMM_UNROLL
        for (int s = 0; s < parts; s++) sum[j][s] = v_set1(0);
    }
    int64_t p = 0;
    for (; p + parts * LANES <= k; p += parts * LANES) {
        GEMM_UNROLL
        for (int s = 0; s < parts; s++) {
            vec xs = v_load(x + p + s * LANES);
            GEMM_UNROLL
            for (int j = 0; j < cols; j++)
                sum[j][s] = v_fma(xs, v_load(b + j * b_col + p + s * LANES), sum[j][s]);
        }
    }
    for (; p < k; p += LANES) {
        int lanes = (int)mg_min(LANES, k - p);
        vec xs = lanes == LANES ? v_load(x + p) : v_load_n(x + p, lanes);
        GEMM_UNROLL
        for (int j = 0; j < cols; j++) {
            const real *at = b + j * b_col + p;
            sum[j][0] = v_fma(xs, lanes == LANES ? v_load(at) : v_load_n(at, lanes), sum[j][0]);
        }
    }
    GEMM_UNROLL
    for (int j = 0; j < cols; j++) {
        GEMM_UNROLL
        for (int s = 1; s < parts; s++) sum[j][0] += sum[j][s];
        dots[j] = sum[j][0];
    }
}

/* Columns lie along memory: LANES dot products at a time, x in L1; their partial sums are transposed
 * so that one tree of vector additions finishes them all. */
static void R(gemm_vector_cols)(real *restrict y, const real *restrict x, int64_t x_step,
                                const real *restrict b, int64_t b_col, int64_t n, int64_t k) {
    enum { TOGETHER = LANES < 4 ? LANES : 4 };
    real copy[R(GEMM_V_DEPTH)];
    for (int64_t p = 0; p < k; p += R(GEMM_V_DEPTH)) {
        int64_t depth = mg_min(R(GEMM_V_DEPTH), k - p);
        const real *part = x + p;
        if (x_step != 1) {
            for (int64_t i = 0; i < depth; i++) copy[i] = x[(p + i) * x_step];
            part = copy;
        }
        for (int64_t j = 0; j < n; j += LANES) {
            int cols = (int)mg_min(LANES, n - j), c = 0;
            const real *at = b + j * b_col + p;
            vec dots[LANES];
            for (; c + TOGETHER <= cols; c += TOGETHER)
                R(gemm_dots)(TOGETHER, 2, dots + c, part, at + c * b_col, b_col, depth);
            for (; c < cols; c++) R(gemm_dots)(1, 8, dots + c, part, at + c * b_col, b_col, depth);
            for (; c < LANES; c++) dots[c] = v_set1(0);
            R(gemm_transpose)(dots);
            for (int w = LANES / 2; w > 0; w /= 2)
                for (int i = 0; i < w; i++) dots[i] += dots[i + w];
            if (p > 0) dots[0] += v_load_n(y + j, cols);
            v_store_n(y + j, dots[0], cols);
        }
    }
}
