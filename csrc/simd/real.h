/* real.h: names the float type that a kernel file is being compiled for.
 *
 * A kernel for both widths is a `*.inc.c` file that uses `real`, `vec`, `LANES`, `v_load` and so
 * on. It names what it defines `R(name)`. The file that includes it has
 *     #define MG_REAL 32
 *     #include "kernels/gemm/gemm.inc.c"       (whose first line includes this header)
 *     #define MG_REAL 64
 *     #include "kernels/gemm/gemm.inc.c"
 * and gets name_f32 and name_f64. This header has no include guard, as it is read once per width.
 */
#include "vec.h"

#undef real
#undef R
#undef vec
#undef LANES
#undef ireal
#undef REAL_C
#undef REAL_DTYPE
#undef BY_WIDTH

#if MG_REAL == 32
#define real float
#define ireal int32_t /* the integer of the same width */
#define REAL_C(x) ((float)(x))
#define R(name) name##_f32
#define REAL_DTYPE MG_FLOAT32
#else
#define real double
#define ireal int64_t
#define REAL_C(x) ((double)(x))
#define R(name) name##_f64
#define REAL_DTYPE MG_FLOAT64
#endif
/* A constant of this width, given for both widths. */
#define BY_WIDTH(f32, f64) REAL_C(sizeof(real) == 4 ? (f32) : (f64))
#define LANES ((int)(MG_VECTOR_BYTES / sizeof(real)))

#define vec R(vec)
#define v_load R(v_load)
#define v_store R(v_store)
#define v_set1 R(v_set1)
#define v_fma R(v_fma)
#define v_load_n R(v_load_n)
#define v_load_some R(v_load_some)
#define v_store_n R(v_store_n)
#define fma_real R(fma)

#undef MG_REAL
