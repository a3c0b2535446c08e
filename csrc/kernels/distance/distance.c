/* distance.c: the inner loops of pairwise distances. */
#include "kernels/reduce/reduce.h"

#include <float.h>

#define MG_REAL 32
#include "distance.inc.c"
#define MG_REAL 64
#include "distance.inc.c"

void mg_distance_run(int dtype, void *out, int64_t out_row, const void *x, const void *y,
                     int64_t row, int64_t n, int64_t run, int64_t k) {
    (dtype == MG_FLOAT32 ? distance_run_f32 : distance_run_f64)(out, out_row, x, y, row, n, run, k);
}

int mg_distance_far(int dtype, const void *squares, int64_t n, int64_t k) {
    return (dtype == MG_FLOAT32 ? distance_far_f32 : distance_far_f64)(squares, n, k);
}

bool mg_distance_small(int dtype, const void *x, int64_t n) {
    return (dtype == MG_FLOAT32 ? distance_small_f32 : distance_small_f64)(x, n);
}

void mg_distance_run_vjp(int dtype, void *dx, void *dy, const void *g, const void *d, int64_t g_row,
                         const void *x, const void *y, int64_t row, int64_t n, int64_t run,
                         int64_t k) {
    (dtype == MG_FLOAT32 ? distance_run_vjp_f32 : distance_run_vjp_f64)(dx, dy, g, d, g_row, x, y,
                                                                         row, n, run, k);
}
