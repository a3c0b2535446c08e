/* plan.h: plans of a convolution: which inputs an output sums, and the chunks that outputs are
 * computed in. */
#ifndef MG_CONV_PLAN_H
#define MG_CONV_PLAN_H

#include "conv.h"

enum {
    CONV_FAR = 1 << 22,        /* bytes of inputs above which they are expected to lie in memory */
    CONV_SHARE = 32,           /* cache lines to prefetch at a time, at most */
    CONV_FETCH = 18            /* bytes of the next weights that are prefetched with each term */
};

/* ---- plans ----------------------------------------------------------------------------------- */

/* The convolution on three axes; axes that it lacks are put in front, with size 1. */
static int conv_read(mg_conv *to, const mg_conv *from) {
    int own = (int)from->axes;
    if (own < 1 || own > CONV_AXES) return mg_fail_code(MG_ENDIM, own, CONV_AXES);
    if (from->groups < 1) return mg_fail_code(MG_EARG, from->groups, 0);
    *to = (mg_conv){.axes = own, .groups = from->groups};
    for (int d = 0; d < CONV_AXES; d++) {
        int k = d - (CONV_AXES - own);
        to->size[d] = k < 0 ? 1 : from->size[k];
        to->kernel[d] = k < 0 ? 1 : from->kernel[k];
        to->counts[d] = k < 0 ? 1 : from->counts[k];
        to->stride[d] = k < 0 ? 1 : from->stride[k];
        to->dilation[d] = k < 0 ? 1 : from->dilation[k];
        to->before[d] = k < 0 ? 0 : from->before[k];
        int64_t last, reach;
        if (to->size[d] < 0 || to->counts[d] < 0 || to->kernel[d] < 1 || to->stride[d] < 1 ||
            to->dilation[d] < 1 || to->before[d] < 0)
            return mg_fail_code(MG_EARG, 0, 0);
        if (__builtin_mul_overflow(to->counts[d], to->stride[d], &last) ||
            __builtin_mul_overflow(to->kernel[d], to->dilation[d], &reach) ||
            __builtin_add_overflow(last, reach, &last) ||
            __builtin_add_overflow(last, to->before[d], &last))
            return mg_fail_code(MG_ESIZE, 0, 0);
        /* A stride or dilation that is never used is cut to the inputs' size, so that copies have
         * room for it. */
        int64_t far = mg_max(to->size[d], 1);
        if (to->counts[d] <= 1) to->stride[d] = mg_min(to->stride[d], far);
        if (to->kernel[d] == 1) to->dilation[d] = mg_min(to->dilation[d], far);
    }
    return MG_OK;
}

/* Checks that `a` has the shape (first, second, sizes of the convolution's axes). 0 or an error
 * code. */
static int conv_check(const mg_array *a, int64_t first, int64_t second, const int64_t *sizes,
                      const mg_conv *conv) {
    int own = (int)conv->axes;
    if (a->ndim != 2 + own) return mg_fail_code(MG_ENDIM, a->ndim, 2 + own);
    if (a->shape[0] != first) return mg_fail_code(MG_ESHAPE, a->shape[0], first);
    if (a->shape[1] != second) return mg_fail_code(MG_ESHAPE, a->shape[1], second);
    for (int k = 0; k < own; k++) {
        int64_t expected = sizes[CONV_AXES - own + k];
        if (a->shape[2 + k] != expected) return mg_fail_code(MG_ESHAPE, a->shape[2 + k], expected);
    }
    return MG_OK;
}

static int64_t conv_row_major(const int64_t *sizes, int64_t *strides) {
    int64_t step = 1;
    for (int d = CONV_AXES - 1; d >= 0; d--) {
        strides[d] = step;
        step *= sizes[d];
    }
    return step;
}

/* The plan of forward: y[o] = sum of x[c] w[o][c]. */
static conv_plan conv_plan_forward(const mg_conv *conv, int64_t batch, int64_t channels, int64_t outs) {
    conv_plan p = {.batch = batch, .groups = conv->groups, .channels = channels, .outs = outs};
    p.in_plane = conv_row_major(conv->size, p.in_stride);
    p.out_plane = conv_row_major(conv->counts, p.out_stride);
    p.w_channel = p.w_kernel = conv_row_major(conv->kernel, p.w_stride);
    p.w_out = channels * p.w_channel;
    p.w_group = outs * p.w_out;
    for (int d = 0; d < CONV_AXES; d++)
        p.axis[d] = (conv_axis){.inputs = conv->size[d],
                                .outputs = conv->counts[d],
                                .apart = 1,
                                .at = -conv->before[d],
                                .step = conv->stride[d],
                                .per_tap = conv->dilation[d],
                                .taps = conv->kernel[d],
                                .tap_step = 1};
    return p;
}

/* The plan of backward data, x[c] = sum of y[o] w[o][c], for every stride-th place from `phase` on.
 * The term of tap k of x[i] is y[j] where i + before = j * stride + k * dilation. */
static conv_plan conv_plan_backward_data(const mg_conv *conv, int64_t batch, int64_t channels, int64_t outs,
                               const int64_t *phase) {
    conv_plan p = {.batch = batch, .groups = conv->groups, .channels = outs, .outs = channels};
    p.in_plane = conv_row_major(conv->counts, p.in_stride);
    p.out_plane = conv_row_major(conv->size, p.out_stride);
    p.w_out = p.w_kernel = conv_row_major(conv->kernel, p.w_stride);
    p.w_channel = channels * p.w_out;
    p.w_group = outs * p.w_channel;
    for (int d = 0; d < CONV_AXES; d++) {
        int64_t s = conv->stride[d], dilation = conv->dilation[d];
        int64_t i = phase[d] + conv->before[d], every = 1, tap = 0;
        while (every < conv->kernel[d] && every * dilation % s) every++;
        while (tap < every && (i - tap * dilation) % s) tap++;
        int64_t left = conv->kernel[d] - tap;
        p.axis[d] = (conv_axis){.inputs = conv->counts[d],
                                .outputs = mg_ceil_div(conv->size[d] - phase[d], s),
                                .first = phase[d],
                                .apart = s,
                                .at = (i - tap * dilation) / s,
                                .step = 1,
                                .per_tap = -(every * dilation / s),
                                .taps = tap < every && left > 0 ? mg_ceil_div(left, every) : 0,
                                .tap = tap,
                                .tap_step = every};
    }
    return p;
}

/* Joins axes along which each output is only the input at its place. The other axes keep their
 * taps. */
static void conv_join(conv_plan *p) {
    conv_axis *last = &p->axis[CONV_AXES - 1];
    for (int d = CONV_AXES - 2; d >= 0 && conv_plain(last) && conv_plain(&p->axis[d]); d--) {
        last->inputs = last->outputs *= p->axis[d].outputs;
        p->axis[d].inputs = p->axis[d].outputs = 1;
    }
    p->taps = p->axis[0].taps * p->axis[1].taps * p->axis[2].taps;
    p->terms = p->channels * p->taps;
}

/* Cuts the outputs into chunks of about `rows` x `cols` and decides where their inputs lie. `unit`:
 * columns come in multiples of it. `lanes`: vectors are loaded along the lines of inputs. `room`:
 * elements that the copies of whole images may have. 0 or an error code. */
static int conv_lay_out(conv_plan *p, int64_t rows, int64_t cols, int64_t unit, int lanes,
                        bool copied, int64_t room) {
    conv_axis *a = p->axis;
    p->copied = copied;
    for (int d = 0; d < CONV_AXES; d++) {
        p->copied |= !conv_inside(&a[d]);
        p->low[d] = conv_low(&a[d]);
    }
    if (cols < a[2].outputs)
        cols = mg_ceil_div(conv_even(a[2].outputs, mg_max(cols, 1)), unit) * unit;
    p->cols = mg_min(cols, a[2].outputs);
    p->rows = conv_even(a[1].outputs, mg_max(rows, 1));
    p->fold = lanes > 1 ? a[2].step : 1;
    p->channel = p->in_plane;
    p->slice = a[0].per_tap * p->in_stride[0];
    p->line = p->in_stride[1];
    p->copy_size = 0;
    if (p->copied) {
        double size;
        for (;; p->rows = conv_even(p->rows, mg_max(p->rows / 2, 1))) {
            int64_t lines = (p->rows - 1) * a[1].step + conv_reach(&a[1]);
            p->part = mg_ceil_div((p->cols - 1) * a[2].step + conv_reach(&a[2]), p->fold);
            p->line = p->part * p->fold;
            size = (double)lines * (double)p->line * (double)(p->channels * a[0].taps);
            p->slice = lines * p->line;
            if (p->rows == 1 || size <= CONV_COPY) break;
        }
        if (size > 0x1p40) return mg_fail_code(MG_ESIZE, 0, 0);
        /* An odd number of cache lines, so that neighbouring channels fall into different cache
         * sets. */
        p->channel = (mg_ceil_div(a[0].taps * p->slice, 16) | 1) * 16;
        p->copy_size = p->channels * p->channel + CONV_ROOM;
    } else {
        for (int d = 0; d < CONV_AXES; d++) p->low[d] = a[d].at;
    }
    p->chunks[0] = a[0].outputs;
    p->chunks[1] = mg_ceil_div(a[1].outputs, p->rows);
    p->chunks[2] = mg_ceil_div(a[2].outputs, p->cols);
    p->chunks_all = p->chunks[0] * p->chunks[1] * p->chunks[2];
    int64_t images = mg_min(CONV_PLACES / (p->rows * p->cols), room / (p->copy_size + 1));
    p->images = p->chunks_all > 1 ? 1 : conv_even(p->batch, mg_max(images, 1));
    p->image = p->copied ? p->copy_size : p->groups * p->channels * p->in_plane;
    return MG_OK;
}

/* Offset of the input of a term from the first input of its output. */
MG_INLINE int64_t conv_input_at(const conv_plan *p, int64_t c, int64_t k0, int64_t k1, int64_t k2) {
    const conv_axis *a = p->axis;
    int64_t along = k2 * a[2].per_tap + a[2].at - p->low[2];
    if (p->fold > 1) along = along % p->fold * p->part + along / p->fold;
    return c * p->channel + k0 * p->slice + (k1 * a[1].per_tap + a[1].at - p->low[1]) * p->line +
           along;
}

/* Fills the table of the terms' factors, in the order of channel and tap. If `order` is given,
 * terms are regrouped, and `order` receives the position of each term. Groups then hold `some`
 * channels in `parts` parts, one for each tap along a line or one for all. Within a part the taps
 * across lines come first. `step`: distance from a weight to the next. */
static void conv_fill_terms(const conv_plan *p, conv_term *term, bool inputs_are_b, int64_t step,
                            int64_t *order, int64_t some, int64_t parts) {
    const conv_axis *a = p->axis;
    int64_t n = 0, first = 0, count = some;
    for (int64_t c = 0; c < p->channels; c++) {
        if (c == first + some) first = c;
        count = mg_min(some, p->channels - first);
        for (int64_t k0 = 0; k0 < a[0].taps; k0++)
            for (int64_t k1 = 0; k1 < a[1].taps; k1++)
                for (int64_t k2 = 0; k2 < a[2].taps; k2++, n++) {
                    MG_AS_IT_IS;
                    int64_t input = conv_input_at(p, c, k0, k1, k2), k = n;
                    if (order) {
                        k = ((parts > 1 ? k2 * a[1].taps : 0) + k1) * count + c - first;
                        k = k * a[0].taps + k0;
                        if (parts == 1) k = k * a[2].taps + k2;
                        order[n] = k += first * p->taps;
                    }
                    term[k] = inputs_are_b ? (conv_term){k * step, input}
                                           : (conv_term){input, k * step};
                }
    }
}

/* The share of an axis' terms whose input is not padding. */
static double conv_filled(const conv_axis *a) {
    int64_t having = 0;
    for (int64_t k = 0; k < a->taps; k++) {
        conv_range of = conv_having(a, k);
        having += of.end - of.from;
    }
    return (double)having / (double)mg_max(a->taps * a->outputs, 1);
}

/* Fills the table of places for some lines and columns of a chunk's outputs. `a` is the offset of
 * an output's first input. `b` is the output's offset, or `width` times the output's number if
 * `width` is not 0. */
static void conv_fill_places(const conv_plan *p, conv_term *place, conv_range rows, conv_range cols,
                             int64_t width) {
    const conv_axis *a = p->axis;
    for (int64_t m = 0; m < p->images; m++)
        for (int64_t i = rows.from; i < rows.end; i++)
            for (int64_t j = cols.from; j < cols.end; j++) {
                MG_AS_IT_IS;
                int64_t k = (m * p->rows + i) * p->cols + j;
                int64_t to = m * p->groups * p->outs * p->out_plane +
                             i * a[1].apart * p->out_stride[1] + j * a[2].apart;
                int64_t from = m * p->image + i * a[1].step * p->line + j * a[2].step;
                *place++ = (conv_term){from, width ? k * width : to};
            }
}

/* Fills for each tap the list of outputs whose input is not padding. If an image has several
 * chunks, the lists cover all lines of a chunk. */
static void conv_fill_given(const conv_plan *p, conv_given *given, conv_term *place,
                            int64_t width) {
    const conv_axis *a = p->axis;
    for (int64_t k = 0; k < p->taps; k++, given++, place += p->images * p->rows * p->cols) {
        conv_range rows = conv_having(&a[1], k / a[2].taps % a[1].taps);
        conv_range cols = conv_having(&a[2], k % a[2].taps);
        conv_range listed = p->images > 1 ? rows : (conv_range){0, p->rows};
        *given = (conv_given){rows, listed, cols.end - cols.from};
        conv_fill_places(p, place, listed, cols, width);
    }
}

/* Line q of a chunk as image and line. With one image, the index behind the last line stays in that
 * image. */
typedef struct {
    int64_t image, i;
} conv_line_of;

MG_INLINE conv_line_of conv_line_at(const conv_plan *p, int64_t q) {
    return p->images > 1 ? (conv_line_of){q / p->rows, q % p->rows} : (conv_line_of){0, q};
}

/* Position in the lists of tap k's first place that is not before a line of a chunk. */
MG_INLINE int64_t conv_listed(const conv_plan *p, const conv_chunk *t, const conv_given *given,
                              int64_t k, conv_line_of line) {
    const conv_given *of = given + k;
    int64_t i = mg_min(mg_max(line.i, of->rows.from - t->i1), of->rows.end - t->i1);
    int64_t lines = line.image * (of->listed.end - of->listed.from);
    lines += mg_max(i, 0) - of->listed.from;
    return k * p->images * p->rows * p->cols + lines * of->cols;
}

#endif
