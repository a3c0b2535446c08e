/* rows.c: the row operations of Gaussian elimination, on rows of doubles. */
#include "memory/buffer.h"
#include "gemm.h"
#include "simd/vec.h"

enum { ROWS_LANES = MG_VECTOR_BYTES / 8 };

void mg_eliminate_rows(double *y, const double *s, int64_t s_step, const double *x, int64_t x_row,
                  int64_t m, int64_t n) {
    for (int64_t j = 0; j < n; j += ROWS_LANES) {
        int some = (int)mg_min(ROWS_LANES, n - j);
        vec_f64 left = v_load_n_f64(y + j, some);
        for (int64_t i = 0; i < m; i++)
            left = v_fma_f64(v_set1_f64(-s[i * s_step]), v_load_n_f64(x + i * x_row + j, some), left);
        v_store_n_f64(y + j, left, some);
    }
}

void mg_eliminate_outer(double *y, int64_t y_row, const double *s, int64_t s_step, const double *x,
                       int64_t m, int64_t n) {
    for (int64_t j = 0; j < n; j += ROWS_LANES) {
        int some = (int)mg_min(ROWS_LANES, n - j);
        vec_f64 row = v_load_n_f64(x + j, some);
        for (int64_t i = 0; i < m; i++) {
            double *at = y + i * y_row + j;
            vec_f64 left = v_load_n_f64(at, some);
            v_store_n_f64(at, v_fma_f64(v_set1_f64(-s[i * s_step]), row, left), some);
        }
    }
}

static MG_NOINLINE void rows_negate(double *x, int64_t row, int64_t m, int64_t n) {
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) x[i * row + j] = -x[i * row + j];
}

void mg_eliminate_product(double *c, const double *a, int64_t a_row, int64_t a_col, const double *b,
                     int64_t row, int64_t m, int64_t n, int64_t k) {
    mg_gemm_shape s = {m, n, k, a_row, a_col, row, 1, row};
    size_t bytes = mg_gemm_scratch_f64(&s), capacity;
    void *scratch = bytes ? mg_block_take(bytes, &capacity) : NULL;
    rows_negate(c, row, m, n);
    if (scratch) {
        mg_gemm_f64(c, c, row, a, b, &s, scratch);
        mg_block_give(scratch, capacity);
    } else {
        mg_gemm_block_f64(c, a, b, &s, true);
    }
    rows_negate(c, row, m, n);
}
