/* conv.h: descriptions of convolutions as correlations along three axes.
 *
 * The forward pass and both gradients are sums of inputs at evenly spaced places times weights. No
 * input is unfolded (there is no im2col). A table says for each term of a sum where its two factors
 * lie (Dukhan, "The indirect convolution algorithm", arXiv:1907.02129, 2019).
 *
 * A line is a run of neighbours along axis 2, and a plane is all of one channel of one image. The
 * words "inputs" and "outputs" mean those of the correlation. In backward data the inputs are the
 * upstream gradients.
 */
#ifndef MG_CONV_H
#define MG_CONV_H

#include "memory/array.h"
#include "kernels/sizes.h"

enum { CONV_AXES = 3 };

/* One axis of a correlation. Output t lies at first + t * apart. Its term for tap k is an input
 * times a weight.
 * Input: at at + t * step + k * per_tap; zero outside [0, inputs).
 * Weight: at tap + k * tap_step.
 * `other`: where values lie, side by side, that are interleaved with the outputs, one in front of
 * each. `other` is 0 if there are none or if they already lie in place. */
typedef struct {
    int64_t inputs, outputs;
    int64_t first, apart, other;
    int64_t at, step, per_tap;
    int64_t taps, tap, tap_step;
} conv_axis;

/* The fate of the values between the outputs of a line.
 * CONV_STAYS: they are kept.
 * CONV_LOST: they may be overwritten, as they are computed later, and need not be read first.
 * CONV_INTERLEAVED: they are read from `other` and written together with the outputs. */
typedef enum { CONV_STAYS, CONV_LOST, CONV_INTERLEAVED } conv_between;

MG_INLINE conv_between conv_between_of(const conv_axis *a) {
    return a->other ? CONV_INTERLEAVED : a->first == 0 ? CONV_LOST : CONV_STAYS;
}

/* A correlation of all images. Each group has `channels` input channels and `outs` output channels.
 * Strides count elements. */
typedef struct {
    conv_axis axis[CONV_AXES];
    int64_t batch, groups, channels, outs;
    int64_t in_stride[CONV_AXES], in_plane, out_stride[CONV_AXES], out_plane;
    int64_t w_stride[CONV_AXES], w_kernel, w_channel, w_out, w_group;
    int64_t taps, terms; /* taps: of all axes together; terms: of one sum, channels * taps */

    /* Outputs are computed in chunks: one place on axis 0, `rows` on axis 1, `cols` on axis 2. */
    int64_t rows, cols, chunks[CONV_AXES], chunks_all;
    /* Images of a chunk, more than one only if a chunk holds a whole plane; distance from one image
     * to the next. */
    int64_t images, image;
    /* Layout of a chunk's inputs, which lie in the array or are copied with their zero padding.
     * `channel`, `slice`, `line`: distance between channels, between taps of axis 0, between lines.
     * `low`: the first input on axes 1 and 2.
     * `fold`: in a folded line every fold-th input is stored next to the one before.
     * `part`: distance between the `fold` parts of a folded line. */
    bool copied;
    int64_t channel, slice, line, low[CONV_AXES], fold, part, copy_size;
} conv_plan;

/* A chunk of one group and some images, starting at output (i0, i1, i2). */
typedef struct {
    int64_t image, images, group, i0, i1, i2, rows, cols;
} conv_chunk;

/* Offsets of the two factors of one term. */
typedef struct {
    int64_t a, b;
} conv_term;

/* The half-open range [from, end). */
typedef struct {
    int64_t from, end;
} conv_range;

/* ---- axes ------------------------------------------------------------------------------------ */

/* Size of the parts if n is cut into parts of at most `most`, as equal as possible. */
MG_INLINE int64_t conv_even(int64_t n, int64_t most) {
    return n > 0 ? mg_ceil_div(n, mg_ceil_div(n, most)) : 1;
}

/* Distance between the inputs of neighbouring taps. */
MG_INLINE int64_t conv_apart(const conv_axis *a) {
    return a->per_tap < 0 ? -a->per_tap : a->per_tap;
}

/* Number of inputs from an output's first to its last, and the first input of output 0. */
MG_INLINE int64_t conv_reach(const conv_axis *a) {
    return a->taps ? (a->taps - 1) * conv_apart(a) + 1 : 1;
}
MG_INLINE int64_t conv_low(const conv_axis *a) {
    return a->per_tap < 0 && a->taps ? a->at + (a->taps - 1) * a->per_tap : a->at;
}

/* True if no output reads the zero padding. */
MG_INLINE bool conv_inside(const conv_axis *a) {
    int64_t low = conv_low(a);
    return low >= 0 && low + (a->outputs - 1) * a->step + conv_reach(a) <= a->inputs;
}

/* The outputs whose input for tap k is not padding. */
MG_INLINE conv_range conv_having(const conv_axis *a, int64_t k) {
    int64_t at = a->at + k * a->per_tap, last = a->inputs - 1 - at;
    int64_t from = at < 0 ? mg_min(mg_ceil_div(-at, a->step), a->outputs) : 0;
    int64_t end = last < 0 ? 0 : mg_min(last / a->step + 1, a->outputs);
    return (conv_range){from, mg_max(from, end)};
}

/* The taps for which the input of output t is not padding. The taps are neighbours, as inputs are
 * evenly spaced. */
MG_INLINE conv_range conv_taps(const conv_axis *a, int64_t t) {
    conv_range k = {0, 0};
    for (int64_t i = 0, at = a->at + t * a->step; i < a->taps; i++, at += a->per_tap) {
        MG_AS_IT_IS;
        if (at < 0 || at >= a->inputs) continue;
        if (k.end == 0) k.from = i;
        k.end = i + 1;
    }
    return k;
}

/* True if every output is the input at the same place times one weight. */
MG_INLINE bool conv_plain(const conv_axis *a) {
    return a->taps == 1 && a->tap == 0 && a->at == 0 && a->step == 1 && a->apart == 1 &&
           a->first == 0 && a->inputs == a->outputs;
}

/* True if the correlation uses every tap of the kernel, in order. */
MG_INLINE bool conv_whole(const conv_plan *p) {
    for (int d = 0; d < CONV_AXES; d++)
        if (p->axis[d].tap_step != 1) return false;
    return p->taps == p->w_kernel;
}

/* True if the correlation is a product of a weight matrix with an input matrix for each image.
 * Planes of inputs and outputs then have the same size, so the two can be exchanged. An axis with
 * one output but several inputs therefore does not count. */
MG_INLINE bool conv_is_product(const conv_plan *p) {
    return conv_plain(&p->axis[0]) && conv_plain(&p->axis[1]) && conv_plain(&p->axis[2]);
}

/* True if a sum has 3 x 3 terms and neighbouring outputs of a line lie side by side. The inputs of
 * neighbouring lines must also be one line apart. */
MG_INLINE bool conv_is_nine(const conv_plan *p) {
    const conv_axis *a = p->axis;
    return p->terms == 9 && a[1].taps == 3 && a[2].taps == 3 && a[1].step == 1 &&
           a[1].per_tap * a[1].per_tap == 1 && a[2].apart == 1;
}

/* Number of chunks of a group. */
MG_INLINE int64_t conv_units(const conv_plan *p) {
    return mg_ceil_div(p->batch, p->images) * p->chunks_all;
}

static MG_NOINLINE conv_chunk conv_chunk_at(const conv_plan *p, int64_t unit, int64_t group) {
    int64_t image = unit / p->chunks_all * p->images, chunk = unit % p->chunks_all;
    int64_t i2 = chunk % p->chunks[2] * p->cols, i1 = chunk / p->chunks[2] % p->chunks[1] * p->rows;
    int64_t i0 = chunk / p->chunks[2] / p->chunks[1];
    return (conv_chunk){image, mg_min(p->images, p->batch - image), group, i0, i1, i2,
                        mg_min(p->rows, p->axis[1].outputs - i1),
                        mg_min(p->cols, p->axis[2].outputs - i2)};
}

/* The outputs whose input for one tap is not padding.
 * `rows`: the lines that have such outputs.
 * `listed`: the lines that the tap's list of places covers.
 * `cols`: the number of outputs listed for each line. */
typedef struct {
    conv_range rows, listed;
    int64_t cols;
} conv_given;

/* ---- jobs ------------------------------------------------------------------------------------ */

/* Scratch memory for as many blocks as run at a time. */
typedef struct {
    char *memory;
    size_t each;
    int count;
    _Atomic bool *taken;
} conv_slots;

/* The transforms of Winograd's method along an axis. */
typedef enum {
    WINOGRAD_INPUTS,
    WINOGRAD_WEIGHTS,
    WINOGRAD_UPSTREAM,
    WINOGRAD_OUTPUTS,
    WINOGRAD_GRADIENTS
} conv_winograd;

/* Layout of Winograd's method.
 * `outputs`: outputs along each axis.
 * `back`: true if the taps of that axis read the inputs in falling order.
 * `squares`: 2 x 2 squares of outputs in a chunk.
 * `pitch`: distance between channels in a plane of inputs.
 * `inputs`, `others`, `products`: sizes of a plane of transformed inputs, of transformed weights
 * (or upstream gradients), and of products. */
typedef struct {
    int64_t outputs[CONV_AXES], squares, pitch, inputs, others, products;
    bool back[CONV_AXES];
} conv_planes;

/* Forward or backward data: sums of inputs times weights. The weights are packed in tiles of
 * `height` output channels. If the lanes are output channels, a tile holds vectors; else it holds
 * numbers that multiply lanes along a line.
 *
 * If `some` is not 0, terms whose inputs are padding are left out. `some` is then the number of
 * channels that are summed at a time. Each line of outputs takes only the taps of axis 1 that find
 * a line of inputs. If also `parts` is the number of taps along a line, each such tap is summed for
 * only those outputs whose input is not padding.
 */
typedef struct {
    conv_plan plan;
    int dtype;
    const void *x, *w, *bias;
    void *y, *packed;
    /* place: input and output offsets of a chunk's outputs, if the lanes are output channels */
    conv_term *term, *place;
    int64_t *order;          /* position of each term, by channel and tap, if some are left out */
    /* by_taps: neighbouring outputs of a line share the inputs they read */
    bool lanes_are_outs, by_taps;
    int64_t height, tiles, per_block, some, parts;
    /* for Winograd's method: `packed` then holds planes of transformed weights or inputs */
    conv_planes planes;
    _Atomic bool *lost; /* for Winograd's method: set if an output is not finite */
    conv_slots slots;
} conv_correlation;

/* Backward weights: sums over all images of inputs times upstream gradients. The work is cut into
 * `runs` partial sums of `run` chunks each. */
typedef struct {
    conv_plan plan;
    int dtype;
    const void *x, *g;
    /* copies: the inputs of all images, if they are copied before the loops */
    void *out, *parts, *copies;
    /* place: for each tap, the outputs whose input is not padding; or all outputs */
    conv_term *term, *place;
    conv_given *given;       /* for each tap, or NULL if no term is left out */
    /* by_dots: dot products along lines; by_taps: tiles of taps instead of channels */
    bool by_dots, by_taps;
    bool swapped;          /* inputs and upstream gradients are exchanged */
    /* tiles of a group, and the number of tiles that share copied inputs */
    int64_t tiles, together, runs, run;
    conv_planes planes; /* for Winograd's method */
    _Atomic bool *lost; /* for Winograd's method: set if a gradient is not finite; else NULL */
    conv_slots slots;
} conv_weight_gradient;

#endif
