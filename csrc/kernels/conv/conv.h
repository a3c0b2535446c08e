/* conv.h: descriptions of convolutions as correlations along three axes.
 *
 * A convolution, its transpose and its weights' gradient are all made of one thing: sums of inputs
 * at evenly spaced places times weights. Nothing is unfolded: a table says for each term of a sum
 * where its factors lie (Dukhan, "The indirect convolution algorithm", arXiv:1907.02129, 2019).
 */
#ifndef MG_CONV_H
#define MG_CONV_H

#include "memory/array.h"
#include "kernels/sizes.h"

enum { CONV_AXES = 3 };

/* One axis. Output t lies at first + t * apart; its term for tap k is the input at
 * at + t * step + k * per_tap, zero beyond the inputs, times the weight at tap + k * tap_step.
 * `other`: where in a line those lie, side by side, that belong in front of its outputs; 0: there are
 * none, or where they belong. */
typedef struct {
    int64_t inputs, outputs;
    int64_t first, apart, other;
    int64_t at, step, per_tap;
    int64_t taps, tap, tap_step;
} conv_axis;

/* The fate of values between the outputs of a line: it stays; is lost, as it will be
 * written later and need not be waited for; or comes from `other`, and is written with them. */
typedef enum { CONV_STAYS, CONV_LOST, CONV_INTERLEAVED } conv_between;

MG_INLINE conv_between conv_between_of(const conv_axis *a) {
    return a->other ? CONV_INTERLEAVED : a->first == 0 ? CONV_LOST : CONV_STAYS;
}

/* A correlation of all images; a group has `channels` inputs and `outs` outputs. Strides count
 * elements. */
typedef struct {
    conv_axis axis[CONV_AXES];
    int64_t batch, groups, channels, outs;
    int64_t in_stride[CONV_AXES], in_plane, out_stride[CONV_AXES], out_plane;
    int64_t w_stride[CONV_AXES], w_kernel, w_channel, w_out, w_group;
    int64_t taps, terms; /* of all axes; of a sum: channels * taps */

    /* Outputs are computed in chunks: one place on axis 0, `rows` on axis 1, `cols` on axis 2. */
    int64_t rows, cols, chunks[CONV_AXES], chunks_all;
    int64_t images, image; /* images of a chunk, more than one where it is whole; how far apart */
    /* The inputs of a chunk, where they are or copied with the zeros around them: how far apart
     * channels, taps of axis 0 and lines are, and which input is the first on axes 1 and 2. In a
     * folded line every fold-th input is the next one's neighbour; the parts lie `part` apart. */
    bool copied;
    int64_t channel, slice, line, low[CONV_AXES], fold, part, copy_size;
} conv_plan;

/* A chunk of one group of some images, from output (i0, i1, i2) on. */
typedef struct {
    int64_t image, images, group, i0, i1, i2, rows, cols;
} conv_chunk;

/* Where the factors of one term lie. */
typedef struct {
    int64_t a, b;
} conv_term;

/* Those from one to before another. */
typedef struct {
    int64_t from, end;
} conv_range;

/* ---- axes ------------------------------------------------------------------------------------ */

/* n in as equal parts of at most `most` as possible: their size. */
MG_INLINE int64_t conv_even(int64_t n, int64_t most) {
    return n > 0 ? mg_ceil_div(n, mg_ceil_div(n, most)) : 1;
}

/* How far apart the inputs of neighbouring taps are. */
MG_INLINE int64_t conv_apart(const conv_axis *a) {
    return a->per_tap < 0 ? -a->per_tap : a->per_tap;
}

/* How many inputs an output reaches over, and the first input of output 0. */
MG_INLINE int64_t conv_reach(const conv_axis *a) {
    return a->taps ? (a->taps - 1) * conv_apart(a) + 1 : 1;
}
MG_INLINE int64_t conv_low(const conv_axis *a) {
    return a->per_tap < 0 && a->taps ? a->at + (a->taps - 1) * a->per_tap : a->at;
}

/* Has every output all its inputs? */
MG_INLINE bool conv_inside(const conv_axis *a) {
    int64_t low = conv_low(a);
    return low >= 0 && low + (a->outputs - 1) * a->step + conv_reach(a) <= a->inputs;
}

/* The outputs that have an input for tap k. */
MG_INLINE conv_range conv_having(const conv_axis *a, int64_t k) {
    int64_t at = a->at + k * a->per_tap, last = a->inputs - 1 - at;
    int64_t from = at < 0 ? mg_min(mg_ceil_div(-at, a->step), a->outputs) : 0;
    int64_t end = last < 0 ? 0 : mg_min(last / a->step + 1, a->outputs);
    return (conv_range){from, mg_max(from, end)};
}

/* The taps for which output t has an input: neighbours, as its inputs are evenly spaced. */
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

/* Is every output its own input, times one weight? */
MG_INLINE bool conv_plain(const conv_axis *a) {
    return a->taps == 1 && a->tap == 0 && a->at == 0 && a->step == 1 && a->apart == 1 &&
           a->first == 0 && a->inputs == a->outputs;
}

/* Are the taps all of the kernel's, in order? */
MG_INLINE bool conv_whole(const conv_plan *p) {
    for (int d = 0; d < CONV_AXES; d++)
        if (p->axis[d].tap_step != 1) return false;
    return p->taps == p->w_kernel;
}

/* Is it a product of a matrix of weights with one of inputs, image by image? Planes of inputs and of
 * outputs are then alike, and the two may change places; so it does not do that an axis has one output
 * if it has several inputs. */
MG_INLINE bool conv_is_product(const conv_plan *p) {
    return conv_plain(&p->axis[0]) && conv_plain(&p->axis[1]) && conv_plain(&p->axis[2]);
}

/* Are its terms three lines of three taps, the lines of outputs that follow each other one line
 * apart, and the outputs neighbours? */
MG_INLINE bool conv_is_nine(const conv_plan *p) {
    const conv_axis *a = p->axis;
    return p->terms == 9 && a[1].taps == 3 && a[2].taps == 3 && a[1].step == 1 &&
           a[1].per_tap * a[1].per_tap == 1 && a[2].apart == 1;
}

/* The chunks of a group. */
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

/* For a tap: the lines of outputs that have an input for it, those that its list of places is of, and
 * how many outputs of each line there are. */
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

/* Sums of Winograd's method along an axis. */
typedef enum {
    WINOGRAD_INPUTS,
    WINOGRAD_WEIGHTS,
    WINOGRAD_UPSTREAM,
    WINOGRAD_OUTPUTS,
    WINOGRAD_GRADIENTS
} conv_winograd;

/* Winograd's method: outputs along each axis, and whether inputs come in falling order there; the
 * squares of a chunk; how far apart the inputs of channels are in a plane, and the planes of inputs,
 * of weights (or of upstream gradients), and of products. */
typedef struct {
    int64_t outputs[CONV_AXES], squares, pitch, inputs, others, products;
    bool back[CONV_AXES];
} conv_planes;

/* Sums of inputs times weights. The weights are packed in tiles of `height` outputs: as vectors
 * where the lanes are outputs, else as numbers that multiply lanes along a line. If `some` is not 0,
 * terms whose inputs are zeros around those there are left out: of so many channels at a time, a line
 * of outputs takes the run of terms whose taps find a line of inputs; and if they come in `parts`,
 * one for each tap along a line, only the outputs that have an input there take a part. */
typedef struct {
    conv_plan plan;
    int dtype;
    const void *x, *w, *bias;
    void *y, *packed;
    conv_term *term, *place; /* place: of a chunk's inputs and outputs, if lanes are channels */
    int64_t *order;          /* where each term comes, by channel and tap, if some are left out */
    bool lanes_are_outs, by_taps; /* by_taps: neighbours on a line share what they read */
    int64_t height, tiles, per_block, some, parts;
    conv_planes planes; /* by Winograd's method, `packed` being planes of weights or inputs, */
    _Atomic bool *lost; /* and whether an output is not finite */
    conv_slots slots;
} conv_correlation;

/* Gradients of weights: sums over all images of inputs times upstream gradients. Each of `runs`
 * parts adds up `run` chunks. */
typedef struct {
    conv_plan plan;
    int dtype;
    const void *x, *g;
    void *out, *parts, *copies; /* copies: the inputs of all images, if all are copied first */
    conv_term *term, *place; /* place: of the outputs that have an input, for each tap; or all */
    conv_given *given;       /* of each tap, or NULL: all of them */
    bool by_dots, by_taps; /* along lines; by tiles of taps, or else of channels */
    bool swapped;          /* the inputs take the place of the upstream gradients, and they theirs */
    int64_t tiles, together, runs, run; /* tiles of a group, and how many share copied inputs */
    conv_planes planes; /* by Winograd's method, */
    _Atomic bool *lost; /* and whether a gradient is not finite; else NULL */
    conv_slots slots;
} conv_weight_gradient;

#endif
