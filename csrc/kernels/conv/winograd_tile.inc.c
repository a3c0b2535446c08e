/* winograd_tile.inc.c: Winograd's transforms and products for 3 x 3 taps, of floats; a part of
 * conv.c.
 *
 * A 2 x 2 square of outputs takes a 4 x 4 square of inputs, and for each channel 36 products with
 * the weights. Winograd's method takes 16 products, of sums of inputs with sums of weights. The
 * outputs are sums of these products (Lavin and Gray, "Fast algorithms for convolutional neural
 * networks", arXiv:1509.09308, 2015). Two outputs along one axis are
 *
 *     a = (d0 - d2) 2g0    b = (d1 + d2) (g0 + g1 + g2)    2 y0 = a + b + c
 *     e = (d1 - d3) 2g2    c = (d2 - d1) (g0 - g1 + g2)    2 y1 = b - c - e
 *
 * Three weight gradients, from the gradients g of two outputs, are
 *
 *     a = (d0 - d2) g0     b = (d1 + d2) (g0 + g1)         w0 = a + (b + c) / 2
 *     e = (d1 - d3) g1     c = (d2 - d1) (g0 - g1)         w1 = (b - c) / 2    w2 = (b + c) / 2 - e
 *
 * There are thus 16 planes each of transformed inputs, transformed weights and products. A plane of
 * products is a matrix product summed over the channels, or over the squares for gradients. Nothing
 * is halved before it is summed, which would cost subnormal weights their bits.
 *
 * An output reads only its own inputs, but in other sums. Its error is some units of the largest
 * input times the largest weight, instead of its own terms. If its inputs have an infinity or come
 * near overflow, the output may be NaN. A call with a result that is not finite is therefore
 * computed again, term by term.
 */
#include "simd/real.h"

/* ---- transforms along one axis --------------------------------------------------------------- */

/* The transform of one place. */
MG_INLINE void R(winograd_step)(const conv_winograd of, vec *y, const vec *d) {
    const vec half = v_set1(REAL_C(0.5));
    if (of == WINOGRAD_INPUTS) {
        y[0] = d[0] - d[2];
        y[1] = d[1] + d[2];
        y[2] = d[2] - d[1];
        y[3] = d[1] - d[3];
    } else if (of == WINOGRAD_WEIGHTS) {
        vec sum = d[0] + d[2];
        y[0] = d[0] + d[0];
        y[1] = sum + d[1];
        y[2] = sum - d[1];
        y[3] = d[2] + d[2];
    } else if (of == WINOGRAD_UPSTREAM) {
        y[0] = d[0];
        y[1] = d[0] + d[1];
        y[2] = d[0] - d[1];
        y[3] = d[1];
    } else if (of == WINOGRAD_OUTPUTS) {
        y[0] = half * (d[0] + (d[1] + d[2]));
        y[1] = half * ((d[1] - d[2]) - d[3]);
    } else {
        vec sum = half * (d[1] + d[2]);
        y[0] = sum + d[0];
        y[1] = half * (d[1] - d[2]);
        y[2] = sum - d[3];
    }
}

/* Layout of the transforms of `times` lines of n elements. Term i lies at from + i % 2 * near + i /
 * 2 * far, and the results lie `next` apart. */
typedef struct {
    const real *from;
    real *to;
    int64_t near, far, next, n, times, from_line, to_line;
} R(winograd_lines);

/* Results may overwrite their terms. A final result that is not finite turns `lost` into NaN. */
MG_INLINE void R(winograd_along)(const conv_winograd of, const R(winograd_lines) * s, vec *lost) {
    const int terms = of == WINOGRAD_WEIGHTS ? 3 : of == WINOGRAD_UPSTREAM ? 2 : 4;
    const int sums = of == WINOGRAD_OUTPUTS ? 2 : of == WINOGRAD_GRADIENTS ? 3 : 4;
    const bool results = sums < 4;
    for (int64_t t = 0; t < s->times; t++)
        for (int64_t j = 0; j < s->n; j += LANES) {
            const real *from = s->from + t * s->from_line + j;
            real *to = s->to + t * s->to_line + j;
            vec d[4], y[4];
            MG_UNROLL
            for (int i = 0; i < terms; i++) d[i] = v_load(from + i % 2 * s->near + i / 2 * s->far);
            R(winograd_step)(of, y, d);
            MG_UNROLL
            for (int i = 0; i < sums; i++) {
                v_store(to + i * s->next, y[i]);
                if (results) *lost = v_fma(y[i], v_set1(0), *lost);
            }
        }
}

/* True if all final results are finite. */
static MG_NOINLINE bool R(winograd_sums)(conv_winograd of, const R(winograd_lines) * s) {
    vec lost = v_set1(0);
    switch (of) {
    case WINOGRAD_INPUTS: R(winograd_along)(WINOGRAD_INPUTS, s, &lost); break;
    case WINOGRAD_WEIGHTS: R(winograd_along)(WINOGRAD_WEIGHTS, s, &lost); break;
    case WINOGRAD_UPSTREAM: R(winograd_along)(WINOGRAD_UPSTREAM, s, &lost); break;
    case WINOGRAD_OUTPUTS: R(winograd_along)(WINOGRAD_OUTPUTS, s, &lost); break;
    case WINOGRAD_GRADIENTS: R(winograd_along)(WINOGRAD_GRADIENTS, s, &lost); break;
    }
    bool finite = true;
    for (int l = 0; l < LANES; l++) {
        MG_AS_IT_IS;
        finite &= lost[l] == 0;
    }
    return finite;
}

/* A vector of inputs at every second or every fourth element. */
MG_INLINE vec R(winograd_every)(const real *x, int64_t step) {
    if (step == 2) return R(v_evens)(x);
    return TRANSPOSE_SHUFFLE(R(v_evens)(x), R(v_evens)(x + 2 * LANES - 2), R(TRANSPOSE_EVENS));
}

/* Transforms the inputs of a chunk, which are copied to x, to planes[channel][square]. `half`: room
 * for the transforms along the lines of a channel. There the first and third lines of the squares
 * come before the second and fourth. */
static MG_NOINLINE void R(winograd_inputs)(const conv_plan *p, const conv_planes *planes,
                                           const conv_chunk *t, real *to, const real *from, real *x,
                                           real *half) {
    int64_t high = p->axis[1].step / 2, wide = p->axis[2].step / 2;
    int64_t cols = t->cols * wide, block = high * cols, n = t->rows * block;
    int64_t odd = n + block + LANES, size = 2 * odd;
    for (int64_t m = 0; m < t->images; m++)
        R(conv_copy)(x + m * p->image, from, p, t, t->image + m);
    for (int64_t c = 0; c < p->channels; c++, to += planes->pitch)
        for (int64_t m = 0; m < t->images; m++) {
            const real *line = x + m * p->image + c * p->channel;
            for (int64_t i = 0; i < (t->rows + 1) * 2 * high; i++, line += p->line) {
                int64_t b = i / high;
                real *sums = half + b % 2 * odd + (b / 2 * high + i % high) * cols;
                for (int64_t f = 0; f < wide; f++, sums += t->cols)
                    for (int64_t j = 0; j < t->cols; j += LANES) {
                        vec d[4], y[4];
                        MG_UNROLL
                        for (int k = 0; k < 4; k++)
                            d[k] = R(winograd_every)(line + f + (2 * j + k) * wide, 2 * wide);
                        R(winograd_step)(WINOGRAD_INPUTS, y, d);
                        MG_UNROLL
                        for (int k = 0; k < 4; k++) v_store(sums + j + k * size, y[k]);
                    }
            }
            R(winograd_lines) s = {half, to + m * n, odd, block, 4 * planes->inputs, n, 1, 0, 0};
            for (int k = 0; k < 4; k++, s.from += size, s.to += planes->inputs)
                R(winograd_sums)(WINOGRAD_INPUTS, &s);
        }
}

/* ---- outputs --------------------------------------------------------------------------------- */

/* planes[row][out] = or += the sums of `depth` products of rows of inputs and a tile of outputs, at
 * the offsets of the table. */
static void R(winograd_products)(const conv_planes *planes, real *to, R(conv_factors) f,
                                 const conv_term *term, int64_t rows, int64_t depth, int64_t outs,
                                 bool add) {
    int64_t some = conv_even(depth, CONV_DEPTH);
    for (int plane = 0; plane < 16; plane++)
        for (int64_t k = 0; k < depth; k += some) {
            R(conv_factors) g = f;
            real *c = to + plane * planes->products;
            g.a += plane * planes->inputs;
            g.b += plane * planes->others;
            for (int64_t i = 0, n; i < rows; i += n, c += n * R(CONV_NR), g.a += n * f.a_row) {
                n = conv_next(rows - i);
                g.plus = add || k > 0 ? c : NULL;
                (outs > LANES ? R(conv_tile_wide) : R(conv_tile_narrow))(
                    (int)n, c, R(CONV_NR), &g, term + k, mg_min(some, depth - k));
            }
        }
}

/* Transforms across lines, in place: `times` runs of n elements that lie `line` apart in each
 * plane. */
static bool R(winograd_across)(conv_winograd of, real *planes, int64_t plane, int64_t n,
                               int64_t times, int64_t line) {
    R(winograd_lines) s = {planes, planes, 4 * plane, 8 * plane, 4 * plane, n, times, line, line};
    bool finite = true;
    for (int k = 0; k < 4; k++, s.from = s.to += plane) finite &= R(winograd_sums)(of, &s);
    return finite;
}

/* Transforms along lines of squares: from planes to places of outputs, line by line, or back. */
static bool R(winograd_places)(conv_winograd of, const conv_plan *p, const conv_chunk *t,
                               real *planes, int64_t plane, real *places, int64_t outs) {
    int64_t high = p->axis[1].step / 2, wide = p->axis[2].step / 2, each = t->cols;
    int64_t step = 2 * wide * R(CONV_NR);
    bool finite = true, back = of == WINOGRAD_UPSTREAM;
    for (int64_t q = 0; q < t->images * t->rows * high; q++)
        for (int64_t f = 0; f < wide; f++, planes += each * R(CONV_NR))
            for (int64_t i = 0; i < 2; i++) {
                int64_t row = q / high * 2 * high + q % high + i * high;
                real *from = planes + 4 * i * plane;
                real *to = places + row * each * step + f * R(CONV_NR);
                R(winograd_lines) s = {from, to, plane, 2 * plane, wide * R(CONV_NR), outs, each,
                                       R(CONV_NR), step};
                if (back)
                    s = (R(winograd_lines)){to, from, wide * R(CONV_NR), 0, plane, outs, each, step,
                                            R(CONV_NR)};
                finite &= R(winograd_sums)(of, &s);
            }
    return finite;
}

/* Transforms the weights of a tile, packed at `from` in the order of the terms, to
 * planes[channel][out]. */
static void R(winograd_weights)(const conv_correlation *s, real *to, const real *from) {
    const conv_plan *p = &s->plan;
    int64_t line = CONV_TAPS * s->height, next = s->height, plane = s->planes.others;
    if (s->planes.back[1]) from += 2 * line, line = -line;
    if (s->planes.back[2]) from += 2 * next, next = -next;
    for (int64_t c = 0, n; c < p->channels; c += n) {
        n = mg_min(WINOGRAD_SOME, p->channels - c);
        R(winograd_lines) f = {from, to, next, 2 * next, plane, s->height, n,
                               p->taps * s->height, s->height};
        for (int i = 0; i < CONV_TAPS; i++, f.from += line, f.to += 4 * plane)
            R(winograd_sums)(WINOGRAD_WEIGHTS, &f);
        R(winograd_across)(WINOGRAD_WEIGHTS, to, plane, s->height, n, s->height);
        from += n * p->taps * s->height;
        to += n * s->height;
    }
}

/* The outputs of a chunk of squares that exist. */
static conv_chunk R(winograd_given)(const conv_plan *p, const conv_planes *planes, conv_chunk t) {
    t.i1 *= p->axis[1].step;
    t.i2 *= p->axis[2].step;
    t.rows = mg_min(t.rows * p->axis[1].step, planes->outputs[1] - t.i1);
    t.cols = mg_min(t.cols * p->axis[2].step, planes->outputs[2] - t.i2);
    return t;
}

/* Computes the outputs of a chunk and a tile from transformed inputs and weights, the latter
 * `others` apart in planes. True if all outputs are finite. */
static bool R(winograd_outputs)(const conv_correlation *s, const conv_chunk *t, int64_t tile,
                                const real *inputs, const real *w, real *scratch) {
    const conv_plan *p = &s->plan;
    const conv_planes *planes = &s->planes;
    const conv_chunk given = R(winograd_given)(p, planes, *t);
    real *products = scratch, *sums = products + 16 * planes->products;
    int64_t rows = t->rows * p->axis[1].step, cols = t->cols * p->axis[2].step;
    int64_t o = tile * s->height, outs = mg_min(s->height, p->outs - o);
    int64_t first = t->group * p->outs + o, n = t->images * rows * cols / 4;
    R(conv_factors) f = {inputs, w, .a_row = 1, .gap = LANES, .plus_row = R(CONV_NR)};
    R(winograd_products)(planes, products, f, s->term, n, p->channels, outs, false);
    bool finite = R(winograd_across)(WINOGRAD_OUTPUTS, products, planes->products, outs, n,
                                     R(CONV_NR));
    finite &= R(winograd_places)(WINOGRAD_OUTPUTS, p, t, products, planes->products, sums, outs);

    const real *bias = s->bias ? (const real *)s->bias + first : NULL;
    real *y = (real *)s->y + (t->image * p->groups * p->outs + first) * p->out_plane +
              (p->axis[0].first + t->i0 * p->axis[0].apart) * p->out_stride[0] +
              given.i1 * p->out_stride[1] + given.i2;
    /* Whole lines follow each other. */
    int64_t lines = cols == p->out_stride[1] ? given.rows : 1;
    for (int64_t m = 0; m < t->images; m++)
        for (int64_t i = 0; i < given.rows; i += lines)
            R(conv_write_transposed)(y + m * p->groups * p->outs * p->out_plane +
                                     i * p->out_stride[1],
                                 p->out_plane, 1, CONV_LOST, NULL,
                                 sums + (m * rows + i) * cols * R(CONV_NR), R(CONV_NR), bias, outs,
                                 lines * given.cols);
    return finite;
}

/* ---- backward weights ------------------------------------------------------------------------ */

/* Packs the upstream gradients of a chunk's squares from output o on, by places; 0 beyond the
 * outputs. */
static void R(winograd_pack)(const conv_weight_gradient *s, const conv_chunk *t, int64_t o, real *to) {
    const conv_plan *p = &s->plan;
    const conv_chunk given = R(winograd_given)(p, &s->planes, *t);
    int64_t rows = t->rows * p->axis[1].step, width = t->cols * p->axis[2].step * R(CONV_NR);
    const real *g = (const real *)s->g +
                    ((t->image * p->groups + t->group) * p->outs + o) * p->out_plane +
                    t->i0 * p->out_stride[0] + given.i1 * p->out_stride[1] + given.i2;
    for (int64_t m = 0; m < t->images; m++, g += p->groups * p->outs * p->out_plane)
        for (int64_t i = 0; i < rows; i++, to += width) {
            R(conv_zero)(to, width);
            if (i < given.rows)
                R(conv_pack)(to, R(CONV_NR), g + i * p->out_stride[1], p->out_plane, 1,
                             mg_min(R(CONV_NR), p->outs - o), given.cols, 0, 8 * LANES, NULL);
        }
}

/* The partial products planes[channel][out] of a run of chunks for some tiles. */
static void R(winograd_run)(const conv_weight_gradient *s, int64_t run, int64_t group, int64_t first,
                            real *scratch) {
    const conv_plan *p = &s->plan;
    const conv_planes *planes = &s->planes;
    real *inputs = scratch + p->images * p->copy_size, *up = inputs + 16 * planes->inputs;
    real *packed = up + 16 * planes->others;
    int64_t end = mg_min((run + 1) * s->run, conv_units(p));
    for (int64_t unit = run * s->run; unit < end; unit++) {
        const conv_chunk t = conv_chunk_at(p, unit, group);
        int64_t n = t.images * t.rows * t.cols * p->axis[1].step * p->axis[2].step / 4;
        R(winograd_inputs)(p, planes, &t, inputs, s->x, scratch, packed);
        for (int64_t i = first; i < mg_min(first + s->together, s->tiles); i++) {
            int64_t o = i * R(CONV_NR), outs = mg_min(R(CONV_NR), p->outs - o);
            R(winograd_pack)(s, &t, o, packed);
            R(winograd_places)(WINOGRAD_UPSTREAM, p, &t, up, planes->others, packed, outs);
            R(winograd_across)(WINOGRAD_UPSTREAM, up, planes->others, outs, n, R(CONV_NR));
            real *part = (real *)s->parts +
                         ((run * p->groups + group) * s->tiles + i) * 16 * planes->products;
            R(conv_factors) f = {inputs, up, .a_row = planes->pitch, .gap = LANES,
                                 .plus_row = R(CONV_NR)};
            R(winograd_products)(planes, part, f, s->place, p->channels, n, outs,
                                 unit > run * s->run);
        }
    }
}

/* The weight gradient of a tile from its partial sums, added in order. True if all are finite. */
static MG_NOINLINE bool R(winograd_gather)(const conv_weight_gradient *s, int64_t item) {
    enum { NR = R(CONV_NR), TAPS = CONV_TAPS };
    const conv_plan *p = &s->plan;
    int64_t plane = s->planes.products, size = 16 * plane, all = p->groups * s->tiles * size;
    int64_t o = item % s->tiles * NR, outs = mg_min(NR, p->outs - o);
    real *part = (real *)s->parts + item * size, sums[WINOGRAD_SOME * TAPS * TAPS * NR];
    real *out = (real *)s->out + (item / s->tiles * p->outs + o) * p->terms;
    for (int64_t run = 1; run < s->runs; run++)
        for (int64_t i = 0; i < size; i += LANES)
            v_store(part + i, v_load(part + i) + v_load(part + run * all + i));
    bool finite = true;
    for (int64_t c = 0, n; c < p->channels; c += n, part += n * NR, out += n * p->taps) {
        n = mg_min(WINOGRAD_SOME, p->channels - c);
        R(winograd_across)(WINOGRAD_GRADIENTS, part, plane, outs, n, NR);
        R(winograd_lines) f = {part, sums, plane, 2 * plane, NR, outs, n, NR, p->taps * NR};
        for (int i = 0; i < TAPS; i++, f.from += 4 * plane, f.to += TAPS * NR)
            finite &= R(winograd_sums)(WINOGRAD_GRADIENTS, &f);
        R(conv_write_transposed)(out, p->terms, 1, CONV_LOST, NULL, sums, NR, NULL, outs, n * p->taps);
    }
    return finite;
}

