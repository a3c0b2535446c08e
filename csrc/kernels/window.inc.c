/* window.inc.c: windows and boxes of one plane, for one float width; read twice by window.c. */
#include "real.h"

/* out[c * step + k * dilation] += g[c, k], windows c innermost: every sum in one fixed order. */
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
                            for (int64_t c2 = 0; c2 < count[2]; c2++) to[c2] += from[c2];
                        else
                            for (int64_t c2 = 0; c2 < count[2]; c2++)
                                to[c2 * step] += from[c2 * from_step];
                    }
            }
}

/* out[box] = the sum of its elements: by rows, in double precision. */
static void R(window_box_sum)(real *out, const real *x, const window_boxes *b) {
    for (int64_t i0 = 0; i0 < b->count[0]; i0++)
        for (int64_t i1 = 0; i1 < b->count[1]; i1++)
            for (int64_t i2 = 0; i2 < b->count[2]; i2++) {
                double total = 0;
                for (int64_t j0 = 0; j0 < b->size[0][i0]; j0++)
                    for (int64_t j1 = 0; j1 < b->size[1][i1]; j1++) {
                        const real *row = x + window_row(b, i0, j0, i1, j1) + b->start[2][i2];
                        double sum = 0;
                        for (int64_t j2 = 0; j2 < b->size[2][i2]; j2++) sum += row[j2 * b->step[2]];
                        total += sum;
                    }
                *out++ = (real)total;
            }
}

/* out[...] += g[box] at every element of the box. */
static void R(window_box_spread)(real *out, const real *g, const window_boxes *b) {
    for (int64_t i0 = 0; i0 < b->count[0]; i0++)
        for (int64_t i1 = 0; i1 < b->count[1]; i1++)
            for (int64_t i2 = 0; i2 < b->count[2]; i2++) {
                real share = *g++;
                for (int64_t j0 = 0; j0 < b->size[0][i0]; j0++)
                    for (int64_t j1 = 0; j1 < b->size[1][i1]; j1++) {
                        real *row = out + window_row(b, i0, j0, i1, j1) + b->start[2][i2];
                        for (int64_t j2 = 0; j2 < b->size[2][i2]; j2++)
                            row[j2 * b->step[2]] += share;
                    }
            }
}
