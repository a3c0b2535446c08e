/* depthwise_plane.inc.c: a plane of a depthwise convolution with 3 x 3 or 5 x 5 taps; a template.
 *
 * Lanes are neighbours on a line. A vector of columns is walked from the plane's first line to its
 * last. Each line is read once for all the lines of outputs, or of upstream gradients, that use it.
 * Nothing is copied or packed. Lanes whose input is padding are masked, and lines of padding are
 * skipped.
 */
#include "simd/real.h"

/* A vector of neighbours on a line.
 * `of`: for each tap, in the order of the inputs, the mask of lanes whose input is not padding.
 * `n`: the number of lanes in use. */
typedef struct {
    unsigned of[PLANE_TAPS];
    int n;
} R(plane_lanes);

/* The masks of the outputs from output j on. */
MG_INLINE R(plane_lanes) R(plane_lanes_at)(const int taps, const conv_axis *a, int64_t j) {
    R(plane_lanes) lanes = {.n = (int)mg_min(LANES, a->outputs - j)};
    MG_UNROLL
    for (int t = 0; t < taps; t++) {
        int64_t at = conv_low(a) + j + t * conv_apart(a);
        int from = (int)mg_min(mg_max(-at, 0), lanes.n);
        int end = (int)mg_max(mg_min(a->inputs - at, lanes.n), from);
        lanes.of[t] = (1u << end) - (1u << from);
    }
    return lanes;
}

/* The part of `count` lines of inputs, the first being line i, that is inside the plane. Counted
 * from line i. */
MG_INLINE conv_range R(plane_lines)(const conv_axis *a, int64_t i, int64_t count) {
    int64_t from = mg_max(-i, 0);
    return (conv_range){from, mg_max(mg_min(a->inputs - i, count), from)};
}

/* ---- outputs --------------------------------------------------------------------------------- */

/* Computes `rows` lines of outputs from line i on, and prefetches the lines that come next. */
MG_INLINE void R(plane_sum_taps)(const int taps, const conv_plan *p, real *y, const real *x,
                                 const real *w, real bias, int64_t i, int64_t rows) {
    const conv_axis *a = p->axis;
    int64_t line = p->in_stride[1], to_next = p->out_stride[1], apart = conv_apart(&a[2]);
    int64_t first = conv_low(&a[1]) + i, lines = rows + taps - 1;
    conv_range inside = R(plane_lines)(&a[1], first, lines);
    vec weight[PLANE_TAPS][PLANE_TAPS];
    MG_UNROLL
    for (int k = 0; k < taps; k++) {
        MG_UNROLL
        for (int t = 0; t < taps; t++)
            weight[k][t] = v_set1(w[(a[1].per_tap < 0 ? taps - 1 - k : k) * taps +
                                    (a[2].per_tap < 0 ? taps - 1 - t : t)]);
    }
    x += first * line + conv_low(&a[2]);
    y += i * to_next;
    for (int64_t j = 0; j < a[2].outputs; j += LANES) {
        const R(plane_lanes) lanes = R(plane_lanes_at)(taps, &a[2], j);
        const real *from = x + j;
        real *to = y + j;
        /* of the output lines that this line is a term of, the first line's first */
        vec sum[PLANE_TAPS];
        MG_UNROLL
        for (int k = 0; k < taps; k++) sum[k] = v_set1(bias);
        for (int64_t q = 0; q < lines; q++, from += line) {
            if (q >= inside.from && q < inside.end) {
                MG_UNROLL
                for (int t = 0; t < taps; t++) {
                    vec input = v_load_some(from + t * apart, lanes.of[t]);
                    MG_UNROLL
                    for (int k = 0; k < taps; k++)
                        sum[k] = v_fma(weight[taps - 1 - k][t], input, sum[k]);
                }
            }
            __builtin_prefetch(from + rows * line);
            if (q >= taps - 1) {
                __builtin_prefetch(to + rows * to_next, 1);
                v_store_n(to, sum[0], lanes.n);
                to += to_next;
            }
            MG_UNROLL
            for (int k = 0; k + 1 < taps; k++) sum[k] = sum[k + 1];
            sum[taps - 1] = v_set1(bias);
        }
    }
}

/* Item: some lines of a plane of inputs, for all its output channels. */
static void R(plane_sum)(const conv_correlation *s, int64_t item) {
    const conv_plan *p = &s->plan;
    int64_t plane = item / p->chunks_all, i = item % p->chunks_all * p->rows;
    int64_t group = plane % p->groups, rows = mg_min(p->rows, p->axis[1].outputs - i);
    const real *x = (const real *)s->x + plane * p->in_plane;
    for (int64_t o = 0; o < p->outs; o++) {
        int64_t out = group * p->outs + o;
        real *y = (real *)s->y + (plane * p->outs + o) * p->out_plane;
        const real *w = (const real *)s->w + group * p->w_group + o * p->w_out;
        real bias = s->bias ? ((const real *)s->bias)[out] : 0;
        if (p->axis[1].taps == 3) R(plane_sum_taps)(3, p, y, x, w, bias, i, rows);
        else R(plane_sum_taps)(5, p, y, x, w, bias, i, rows);
    }
}

/* ---- backward weights ------------------------------------------------------------------------ */

/* Lines of a plane of inputs and of a plane of upstream gradients, from line i on; `rows` lines of
 * gradients. */
typedef struct {
    const real *x, *g;
    int64_t i, rows;
} R(plane_part);

MG_INLINE R(plane_part) R(plane_part_at)(const conv_weight_gradient *s, int64_t out, int64_t unit) {
    const conv_plan *p = &s->plan;
    int64_t image = unit / p->chunks_all, i = unit % p->chunks_all * p->rows;
    int64_t group = image * p->groups + out / p->outs, plane = image * p->groups * p->outs + out;
    return (R(plane_part)){(const real *)s->x + group * p->in_plane + i * p->in_stride[1],
                           (const real *)s->g + plane * p->out_plane + i * p->out_stride[1], i,
                           mg_min(p->rows, p->axis[1].outputs - i)};
}

/* total[tap] += a part's sums for `high` lines of `taps` taps, from tap line k on. Prefetches the
 * next part. */
MG_INLINE void R(plane_dots_taps)(const int high, const int taps, const conv_plan *p, vec *total,
                                  int64_t k, const R(plane_part) * part,
                                  const R(plane_part) * next) {
    const conv_axis *a = p->axis;
    int64_t line = p->in_stride[1], apart = conv_apart(&a[2]), rows = part->rows;
    int64_t first = conv_low(&a[1]) + k, lines = rows + high - 1;
    conv_range inside = R(plane_lines)(&a[1], first + part->i, lines);
    const real *x = part->x + first * line + conv_low(&a[2]);
    int64_t next_x = next->x - part->x, next_g = next->g - part->g;
    vec sum[PLANE_HIGH][PLANE_TAPS];
    MG_UNROLL
    for (int h = 0; h < high; h++) {
        MG_UNROLL
        for (int t = 0; t < taps; t++) sum[h][t] = v_set1(0);
    }
    for (int64_t j = 0; j < a[2].outputs; j += LANES) {
        const R(plane_lanes) lanes = R(plane_lanes_at)(taps, &a[2], j);
        const real *from = x + j, *by = part->g + j;
        vec up[PLANE_HIGH]; /* the gradients of this line and of the lines before */
        MG_UNROLL
        for (int h = 0; h < high; h++) up[h] = v_set1(0);
        for (int64_t q = 0; q < lines; q++, from += line) {
            MG_UNROLL
            for (int h = high - 1; h > 0; h--) up[h] = up[h - 1];
            if (q < rows) {
                __builtin_prefetch(by + next_g);
                up[0] = v_load_n(by, lanes.n);
                by += p->out_stride[1];
            }
            __builtin_prefetch(from + next_x);
            if (q < inside.from || q >= inside.end) continue;
            vec input[PLANE_TAPS];
            MG_UNROLL
            for (int t = 0; t < taps; t++)
                input[t] = v_load_some(from + t * apart, lanes.of[t]);
            MG_UNROLL
            for (int h = 0; h < high; h++) {
                if (h > q || q - h >= rows) continue;
                MG_UNROLL
                for (int t = 0; t < taps; t++) sum[h][t] = v_fma(input[t], up[h], sum[h][t]);
            }
        }
    }
    MG_UNROLL
    for (int h = 0; h < high; h++) {
        MG_UNROLL
        for (int t = 0; t < taps; t++) total[(k + h) * taps + t] += sum[h][t];
    }
}

/* Item: a run of parts of planes of all images, and one output channel. */
static void R(plane_dots)(const conv_weight_gradient *s, int64_t item) {
    const conv_plan *p = &s->plan;
    int64_t outs = p->groups * p->outs, out = item % outs, run = item / outs;
    int64_t end = mg_min((run + 1) * s->run, p->batch * p->chunks_all);
    vec total[PLANE_TAPS * PLANE_TAPS];
    for (int k = 0; k < p->taps; k++) total[k] = v_set1(0);
    R(plane_part) part = R(plane_part_at)(s, out, run * s->run), next;
    for (int64_t unit = run * s->run; unit < end; unit++, part = next) {
        next = unit + 1 < end ? R(plane_part_at)(s, out, unit + 1) : part;
        if (p->axis[1].taps == 3) {
            R(plane_dots_taps)(3, 3, p, total, 0, &part, &next);
        } else {
            R(plane_dots_taps)(3, 5, p, total, 0, &part, &next);
            R(plane_dots_taps)(2, 5, p, total, 3, &part, &next);
        }
    }
    real *to = (real *)(s->runs > 1 ? s->parts : s->out) + item * p->taps;
    for (int k = 0; k < p->taps; k++) to[k] = R(conv_fold)((real *)&total[k]);
}

/* Adds up the partial sums of all runs in order. */
static void R(plane_gather)(const conv_weight_gradient *s) {
    const real *part = s->parts;
    real *out = s->out;
    int64_t n = s->plan.groups * s->plan.outs * s->plan.taps;
    for (int64_t k = 0; k < n; k++) {
        out[k] = part[k];
        for (int64_t run = 1; run < s->runs; run++) out[k] += part[run * n + k];
    }
}
