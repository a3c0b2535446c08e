/* fold.inc.c: fold of one plane; a template for each float width. */
#include "simd/real.h"

/* out[c * step + k * dilation] += g[c, k], with windows c innermost, so that every sum has one
 * fixed order. */
static void R(window_fold)(real *out, const real *g, const window_fold_job *job) {
    const int64_t *kernel = job->kernel, *count = job->count;
    for (int64_t k0 = 0; k0 < kernel[0]; k0++)
        for (int64_t k1 = 0; k1 < kernel[1]; k1++)
            for (int64_t k2 = 0; k2 < kernel[2]; k2++) {
                real *to_k = out + k0 * job->to_kernel[0] + k1 * job->to_kernel[1] +
                             k2 * job->to_kernel[2];
                const real *from_k = g + k0 * job->from_kernel[0] + k1 * job->from_kernel[1] +
                                     k2 * job->from_kernel[2];
                for (int64_t c0 = 0; c0 < count[0]; c0++)
                    for (int64_t c1 = 0; c1 < count[1]; c1++) {
                        real *to = to_k + c0 * job->to_count[0] + c1 * job->to_count[1];
                        const real *from =
                            from_k + c0 * job->from_count[0] + c1 * job->from_count[1];
                        int64_t step = job->to_count[2], from_step = job->from_count[2];
                        if (step == 1 && from_step == 1)
                            MG_APART for (int64_t c2 = 0; c2 < count[2]; c2++) to[c2] += from[c2];
                        else
                            for (int64_t c2 = 0; c2 < count[2]; c2++) {
                                MG_AS_IT_IS;
                                to[c2 * step] += from[c2 * from_step];
                            }
                    }
            }
}
