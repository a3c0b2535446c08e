/* gemm.h: dense matrix products C = A B in one float width.
 *
 * The scheme is that of Goto and van de Geijn, "Anatomy of high-performance matrix multiplication"
 * (ACM TOMS 34(3), 2008). Its form is that of Van Zee and van de Geijn, "BLIS: a framework for
 * rapidly instantiating BLAS functionality" (ACM TOMS 41(3), 2015). A micro-kernel holds a small
 * tile of C in registers while it walks down k. Loops around it keep its operands in cache. Small
 * and narrow products skip the packing. Products with vectors have kernels of their own.
 *
 * Every element of C is a sum over k in ascending order within blocks of GEMM_KC (vectors: see
 * vector.inc.c). Its bits thus depend on neither the number of threads nor the memory layout of
 * matrices.
 */
#ifndef MG_GEMM_H
#define MG_GEMM_H

#include "base/platform.h"
#include "kernels/sizes.h"

enum { GEMM_NV = 2 }; /* vectors in a row of a tile of C */

/* Sizes of one product, and strides in elements. A is m x k, B is k x n, and C is m x n. C is
 * row-major with neighbouring columns. A and B may have any strides, also 0 and negative ones. */
typedef struct mg_gemm_shape {
    int64_t m, n, k;
    int64_t a_row, a_col, b_row, b_col, c_row;
} mg_gemm_shape;

/* Bytes of 64-byte aligned scratch that mg_gemm_* needs for this shape; 0 if it takes NULL. */
MG_SHARED(size_t, mg_gemm_scratch_f32, (const mg_gemm_shape *shape));
MG_SHARED(size_t, mg_gemm_scratch_f64, (const mg_gemm_shape *shape));

/* C = A B, plus the rows at `plus` if it is not NULL. These are `plus_row` elements apart (0: one
 * row for all). They must not overlap C, but may be C if scratch is needed. m, n and k are at least
 * 1. */
MG_SHARED(void, mg_gemm_f32, (float *c, const float *plus, int64_t plus_row, const float *a,
                           const float *b, const mg_gemm_shape *shape, void *scratch));
MG_SHARED(void, mg_gemm_f64, (double *c, const double *plus, int64_t plus_row, const double *a,
                           const double *b, const mg_gemm_shape *shape, void *scratch));

/* C = A B, or C += A B if `add`, in the calling thread and without packing. For products inside
 * other kernels, whose operands are in cache. */
MG_SHARED(void, mg_gemm_block_f32, (float *c, const float *a, const float *b,
                                 const mg_gemm_shape *shape, bool add));
MG_SHARED(void, mg_gemm_block_f64, (double *c, const double *a, const double *b,
                                 const mg_gemm_shape *shape, bool add));

#endif
