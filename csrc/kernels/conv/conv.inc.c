/* conv.inc.c: the loops of correlations and of weight gradients over chunks; a template for each
 * float width. */
#include "simd/real.h"

/* ---- outputs --------------------------------------------------------------------------------- */

/* Packs the weights of one tile of output channels in the order of the terms. */
static MG_NOINLINE void R(conv_pack_tile)(const conv_correlation *s, int64_t block, real *to) {
    const conv_plan *p = &s->plan;
    const conv_axis *a = p->axis;
    int64_t out = block % s->tiles * s->height, count = mg_min(s->height, p->outs - out);
    const real *w = (const real *)s->w + block / s->tiles * p->w_group + out * p->w_out;
    const int64_t *order = s->order;
    if (conv_whole(p) && p->w_channel == p->taps) {
        R(conv_pack)(to, s->height, w, p->w_out, 1, count, p->terms, 0, 8 * LANES, order);
        return;
    }
    bool whole = conv_whole(p);
    int64_t runs = whole ? 1 : a[0].taps * a[1].taps, n = whole ? p->taps : a[2].taps;
    for (int64_t c = 0; c < p->channels; c++, w += p->w_channel)
        for (int64_t r = 0; r < runs; r++) {
            int64_t k0 = r / a[1].taps, k1 = r % a[1].taps;
            const real *from = w + (a[0].tap + k0 * a[0].tap_step) * p->w_stride[0] +
                               (a[1].tap + k1 * a[1].tap_step) * p->w_stride[1] + a[2].tap;
            R(conv_pack)(to, s->height, from, p->w_out, a[2].tap_step, count, n,
                         whole ? (p->channels - 1 - c) * n : 0, 4 * p->w_channel, order);
            if (order) order += n;
            else to += s->height * n;
        }
}

static void R(conv_pack_weights)(void *context, int64_t block) {
    const conv_correlation *s = context;
    R(conv_pack_tile)(s, block, (real *)s->packed + block * s->height * s->plan.terms);
}

/* The first input of a chunk, in the array or in a copy made here. */
MG_INLINE const real *R(conv_inputs)(const real *x, const conv_plan *p, const conv_chunk *t,
                                     real *copy) {
    if (p->copied) {
        for (int64_t m = 0; m < t->images; m++)
            R(conv_copy)(copy + m * p->image, x, p, t, t->image + m);
        return copy;
    }
    const conv_axis *a = p->axis;
    return x + (t->image * p->groups + t->group) * p->channels * p->in_plane +
           (a[0].at + t->i0 * a[0].step) * p->in_stride[0] +
           (a[1].at + t->i1 * a[1].step) * p->in_stride[1] + a[2].at + t->i2 * a[2].step;
}

/* Sums for a line of outputs, or for two where lines are short, whose inputs lie `apart`. If the
 * lanes are output channels, a tile is some neighbours of the line by a row of packed weights. The
 * second line's sums then lie `skip` behind the first line's. Else a tile is some output channels
 * by vectors of the line, and each of two lines has one vector. `y`: where the sums will be
 * written, to prefetch it, or NULL. `ahead`: weights needed later. Returns where the sums of the
 * next line go. */
MG_INLINE real *R(conv_correlate_line)(const conv_correlation *s, real *c, const real *y, const real *row,
                                 const real *w, int64_t outs, int64_t cols, bool pair,
                                 int64_t apart, int64_t skip, const real *ahead,
                                 const conv_term *term, int64_t k, bool add) {
    const conv_plan *p = &s->plan;
    /* from an output's input to the next output's */
    int64_t next = p->fold > 1 ? 1 : p->axis[2].step;
    R(conv_factors) f = {.a = row, .b = w, .a_row = next, .gap = LANES, .plus_row = R(CONV_NR)};
    if (!s->lanes_are_outs)
        f = (R(conv_factors)){.a = w, .b = row, .a_row = 1, .gap = pair ? apart : LANES,
                              .plus_row = R(CONV_NR)};
    if (s->lanes_are_outs && pair) {
        f.ahead = ahead;
        f.half = apart;
        f.skip = skip;
        f.plus = add ? c : NULL;
        R(conv_tile_any)(2 * cols, outs, c, R(CONV_NR), f, term, k);
        return c + 2 * cols * R(CONV_NR);
    }
    for (int64_t j = 0, n; j < cols; j += n) {
        f.plus = add ? c : NULL;
        bool tall = s->by_taps && cols - j >= CONV_TALL;
        n = tall ? CONV_TALL : s->lanes_are_outs ? conv_next(cols - j) : R(CONV_NR);
        for (int64_t i = 0; y && i < outs; i++) {
            const real *to = y + i * p->out_plane + j * p->axis[2].apart;
            __builtin_prefetch(to, 1);
            if (!s->lanes_are_outs || p->axis[2].apart > 1) __builtin_prefetch(to + LANES, 1);
        }
        if (CONV_BY_TAPS && sizeof(real) == 4 && tall) {
            R(conv_tile_taps)(c, R(CONV_NR), row + j, w, term, k, p->axis[2].per_tap < 0, add);
        } else if (s->lanes_are_outs) {
            f.a = row + j * next;
            R(conv_tile_any)(n, outs, c, R(CONV_NR), f, term, k);
        } else {
            f.b = row + j;
            R(conv_tile_any)(outs, pair ? n : cols - j, c, R(CONV_NR), f, term, k);
        }
        c += (s->lanes_are_outs ? n : outs) * R(CONV_NR);
    }
    return c;
}

/* Sums of k terms for n outputs, with output channels as lanes, regardless of where lines end.
 * `place`: entries of the outputs in the table of places. x: the first input. y: where the sums
 * will be written. */
static void R(conv_correlate_places)(const conv_correlation *s, real *c, const real *y, const real *x,
                               const real *w, int64_t outs, const conv_term *place, int64_t n,
                               conv_ahead *inputs, const conv_term *term, int64_t k, bool add) {
    R(conv_factors) f = {.a = x, .b = w, .gap = LANES, .plus_row = R(CONV_NR), .place = place};
    for (int64_t rows; n > 0; n -= rows, c += rows * R(CONV_NR), f.place += rows) {
        rows = conv_next(n);
        conv_ask(inputs);
        for (int64_t i = 0; y && i < outs; i++) {
            const real *to = y + f.place->b + i * s->plan.out_plane;
            __builtin_prefetch(to, 1);
            if (s->plan.axis[2].apart > 1) __builtin_prefetch(to + LANES, 1);
        }
        f.plus = add ? c : NULL;
        R(conv_tile_any)(rows, outs, c, R(CONV_NR), f, term, k);
    }
}

/* Sums for all outputs of a chunk without the terms that are left out. Channels are taken `some` at
 * a time, and part by part. Lines that take the same run of terms go together. */
static MG_NOINLINE void R(conv_correlate_inside)(const conv_correlation *s, const conv_chunk *t, real *c,
                                           real *y, const real *x, const real *w, int64_t outs,
                                           bool pairs, conv_ahead *inputs) {
    enum { NR = R(CONV_NR) };
    const conv_plan *p = &s->plan;
    const conv_axis *a = p->axis;
    const conv_term *term = s->term;
    const real *ahead = w; /* weights of the next round */
    int64_t all = t->images * t->rows, per_line = p->taps / a[1].taps / s->parts;
    if (s->parts > 1) R(conv_zero)(c, all * t->cols * NR);
    for (int64_t first = 0; first < p->channels; first += s->some)
        for (int64_t part = 0; part < s->parts; part++) {
            int64_t each = mg_min(s->some, p->channels - first) * per_line;
            int64_t round = each * a[1].taps;
            conv_range cols = s->parts > 1 ? conv_having(&a[2], part) : (conv_range){0, t->cols};
            int64_t n = cols.end - cols.from;
            const real *row = x + cols.from * a[2].step, *to = first + part == 0 ? y : NULL;
            bool add = first > 0 || s->parts > 1;
            ahead += round * s->height;
            for (int64_t i = 0, end; i < t->rows && n > 0; i = end) {
                conv_range k1 = conv_taps(&a[1], t->i1 + i), next = k1;
                for (end = i + 1; end < t->rows; end++) {
                    next = conv_taps(&a[1], t->i1 + end);
                    if (next.from != k1.from || next.end != k1.end) break;
                }
                const conv_term *run = term + k1.from * each;
                int64_t k = (k1.end - k1.from) * each, lines = (end - i) * t->images;
                for (int64_t q = i; CONV_PLACED && q < all; q += t->rows)
                    R(conv_correlate_places)(s, c + q * n * NR, to, x, w, outs, s->place + q * n,
                                       (end - i) * n, inputs, run, k, add);
                for (int64_t l = 0, both; !CONV_PLACED && l < lines; l += both) {
                    int64_t q = l % t->images * t->rows + i + l / t->images;
                    int64_t e = (l + 1) % t->images * t->rows + i + (l + 1) / t->images;
                    int64_t from = R(conv_from)(p, t, q), apart = R(conv_from)(p, t, e) - from;
                    conv_ask(inputs);
                    both = 1 + (pairs && l + 1 < lines);
                    R(conv_correlate_line)(s, c + (q * t->cols + cols.from) * NR,
                                     to ? R(conv_to)(p, t, y, 0, q) : NULL, row + from, w, outs, n,
                                     both > 1, apart, ((e - q) * t->cols - n) * NR,
                                     ahead + (i * t->images + l) * (round * s->height / all), run,
                                     k, add);
                }
            }
            term += round;
        }
}

/* Sums of k terms for a line of outputs, written straight to y: some output channels by vectors of
 * the line. The sums are added to `bias`, one row for all places. If `bias` is NULL and `add`, they
 * are added to y. */
static MG_NOINLINE void R(conv_correlate_there)(const conv_correlation *s, real *y, const real *row,
                                          const real *w, const real *bias, int64_t outs,
                                          int64_t cols, const conv_term *term, int64_t k,
                                          bool add) {
    int64_t plane = s->plan.out_plane;
    R(conv_factors) f = {.a = w, .b = row, .a_row = 1, .gap = LANES, .plus = bias,
                         .plus_row = bias ? R(CONV_NR) : plane};
    for (int64_t j = 0; j < cols; j += R(CONV_NR), y += R(CONV_NR), f.b += R(CONV_NR)) {
        for (int64_t i = 0; !add && i < outs; i++) {
            __builtin_prefetch(y + i * plane, 1);
            __builtin_prefetch(y + i * plane + LANES, 1);
        }
        if (add) f.plus = y;
        R(conv_tile_any)(outs, cols - j, y, plane, f, term, k);
    }
}

/* Writes the sums of conv_correlate_line. */
static const real *R(conv_write_line)(const conv_correlation *s, real *y, const real *c, const real *bias,
                                      int64_t outs, int64_t cols, bool pair) {
    const conv_plan *p = &s->plan;
    int64_t apart = p->axis[2].apart, next = p->axis[1].apart * p->out_stride[1];
    conv_between between = conv_between_of(&p->axis[2]);
    const real *other = R(conv_other)(p, y);
    if (s->lanes_are_outs) {
        R(conv_write_transposed)(y, p->out_plane, apart, between, other, c, R(CONV_NR), bias, outs,
                             cols);
        return c + cols * R(CONV_NR);
    }
    if (pair)
        R(conv_write)(y + next, p->out_plane, apart, between, other + next, c + LANES, R(CONV_NR),
                      bias, outs, cols);
    for (int64_t j = 0; j < cols; j += R(CONV_NR), c += outs * R(CONV_NR))
        R(conv_write)(y + j * apart, p->out_plane, apart, between, other + j, c, R(CONV_NR), bias,
                      outs, mg_min(R(CONV_NR), cols - j));
    return c;
}

/* Number of lines from line q on that are summed together, 1 or 2. Lanes along a line need lines of
 * one image. */
MG_INLINE int64_t R(conv_together)(const conv_correlation *s, const conv_chunk *t, bool pairs, int64_t q,
                                   int64_t end) {
    return 1 + (pairs && q + 1 < end && (s->lanes_are_outs || q % t->rows + 1 < t->rows));
}

/* Computes the outputs of a chunk and prefetches the inputs of a later chunk. If there are many
 * terms, `depth` terms are summed for all lines before the next, so that their weights stay in
 * L1. */
static MG_NOINLINE void R(conv_outputs)(const conv_correlation *s, const conv_chunk *t,
                                        const conv_chunk *later, real *scratch) {
    const conv_plan *p = &s->plan;
    const conv_axis *a = p->axis;
    real *sums = scratch + p->images * p->copy_size;
    const real *x = R(conv_inputs)((const real *)s->x, p, t, scratch);
    const real *w = (const real *)s->packed + t->group * s->tiles * s->height * p->terms;
    int64_t first_out = t->group * p->outs;
    real *y = (real *)s->y + (t->image * p->groups * p->outs + first_out) * p->out_plane +
              (a[0].first + t->i0 * a[0].apart) * p->out_stride[0] + a[2].first +
              t->i2 * a[2].apart;
    bool pairs = t->cols <= (s->lanes_are_outs ? CONV_MR / 2 : LANES);
    int64_t lines = t->images * t->rows, depth = conv_even(p->terms, CONV_DEPTH);
    if (s->by_taps) depth = mg_ceil_div(depth, CONV_TAPS) * CONV_TAPS;
    int64_t band = p->terms > depth || s->some ? lines : 1 + pairs;
    bool placed = CONV_PLACED && s->lanes_are_outs;
    if (placed) band = mg_max(band, CONV_DEPTH / t->cols);
    bool whole = a[1].apart == 1 && a[2].apart == 1 && t->cols == p->out_stride[1];
    bool there = !s->lanes_are_outs && s->height > 1 && !pairs && a[2].apart == 1 &&
                 t->cols % LANES == 0;

    conv_ahead inputs = {0};
    if (p->copied && s->lanes_are_outs && p->images == 1)
        inputs = conv_ahead_of(s, later, s->tiles * mg_ceil_div(p->terms, depth) *
                                             (placed ? lines * t->cols / CONV_MR : lines));
    for (int64_t o = 0; o < p->outs; o += s->height, w += s->height * p->terms) {
        int64_t outs = mg_min(s->height, p->outs - o);
        const real *bias = s->bias ? (const real *)s->bias + first_out + o : NULL;
        if (s->height == 1) R(conv_lines)(s, t, y + o * p->out_plane, x, w, bias ? *bias : 0);
        for (int64_t i = 0; there && bias && i < outs; i++)
            for (int64_t l = 0; l < R(CONV_NR); l += LANES) {
                MG_AS_IT_IS;
                v_store(sums + i * R(CONV_NR) + l, v_set1(bias[i]));
            }
        for (int64_t k = 0; there && (k == 0 || k < p->terms); k += depth)
            for (int64_t q = 0; q < lines; q++)
                R(conv_correlate_there)(s, R(conv_to)(p, t, y, o, q), x + R(conv_from)(p, t, q),
                                  w, bias && k == 0 ? sums : NULL, outs, t->cols,
                                  s->term + k, mg_min(depth, p->terms - k), k > 0);
        for (int64_t q = 0, end; s->height > 1 && !there && q < lines; q = end) {
            end = mg_min(q + band, lines);
            if (s->some)
                R(conv_correlate_inside)(s, t, sums, y + o * p->out_plane, x, w, outs, pairs, &inputs);
            for (int64_t k = 0; !s->some && (k == 0 || k < p->terms); k += depth) {
                real *c = sums, *first = k == 0 ? R(conv_to)(p, t, y, o, 0) : NULL;
                const real *ahead = w + (k + depth) * s->height; /* weights of the next round */
                int64_t share = depth * s->height / (end - q);
                if (placed)
                    R(conv_correlate_places)(s, c, first, x, w, outs,
                                       s->place + q * t->cols, (end - q) * t->cols, &inputs,
                                       s->term + k, mg_min(depth, p->terms - k), k > 0);
                for (int64_t r = placed ? end : q, n; r < end; r += n) {
                    int64_t from = R(conv_from)(p, t, r);
                    conv_ask(&inputs);
                    n = R(conv_together)(s, t, pairs, r, end);
                    c = R(conv_correlate_line)(s, c, first ? R(conv_to)(p, t, y, o, r) : NULL,
                                         x + from, w, outs, t->cols, n > 1,
                                         R(conv_from)(p, t, r + 1) - from, 0,
                                         ahead + (r - q) * share, s->term + k,
                                         mg_min(depth, p->terms - k), k > 0);
                }
            }
            const real *c = sums;
            for (int64_t r = q, n; r < end; r += n) {
                bool pair = false;
                if (!s->lanes_are_outs)
                    pair = (n = R(conv_together)(s, t, pairs, r, end)) > 1;
                else /* neighbouring lines of an image are written as one */
                    n = whole ? mg_min(end, (r / t->rows + 1) * t->rows) - r : 1;
                c = R(conv_write_line)(s, R(conv_to)(p, t, y, o, r), c, bias, outs,
                                       s->lanes_are_outs ? n * t->cols : t->cols, pair);
            }
        }
    }
}

/* ---- backward weights ------------------------------------------------------------------------ */

/* Elements of a tile's partial sum, with room for a transpose that reads beyond the last row. */
MG_INLINE int64_t R(conv_part)(const conv_plan *p) { return (p->terms + LANES) * R(CONV_NR); }

/* Adds a chunk to the partial gradients part[channel][tap][out] of a tile of output channels. `x`
 * is the chunk's first input, and `g` is scratch for the packed upstream gradients. A tile is the
 * inputs of neighbouring channels, or of neighbouring taps, by a row of upstream gradients. If the
 * outputs fill one vector, a tile has CONV_SIDE channels and CONV_TAPS taps. The places are taken
 * in runs, so that all taps find inputs and gradients in L1. */
static MG_NOINLINE void R(conv_weights_tile)(const conv_weight_gradient *s, const conv_chunk *t, int64_t tile,
                                             real *part, const real *x, real *g, bool add) {
    const conv_plan *p = &s->plan;
    const conv_axis *a = p->axis;
    int64_t o = tile * R(CONV_NR), outs = mg_min(R(CONV_NR), p->outs - o);
    int64_t step = p->taps * R(CONV_NR);
    int64_t high = conv_height(s->by_taps ? a[2].taps : p->channels);
    const real *up = (const real *)s->g +
                     ((t->image * p->groups + t->group) * p->outs + o) * p->out_plane +
                     t->i0 * p->out_stride[0] + t->i1 * p->out_stride[1] + t->i2;
    if (s->by_dots) {
        R(conv_dots)(s, t, part, x, up, outs, add);
        return;
    }
    int64_t places = t->rows * t->cols, n = t->images * places;
    for (int64_t m = 0; m < t->images; m++) {
        const real *from = up + m * p->groups * p->outs * p->out_plane;
        real *to = g + m * places * R(CONV_NR);
        if (t->rows == 1 || t->cols == p->out_stride[1])
            R(conv_pack)(to, R(CONV_NR), from, p->out_plane, 1, outs, places, 0, 8 * LANES,
                         NULL);
        else
            for (int64_t i = 0; i < t->rows; i++)
                R(conv_pack)(to + i * t->cols * R(CONV_NR), R(CONV_NR),
                             from + i * p->out_stride[1], p->out_plane, 1, outs, t->cols, 0,
                             8 * LANES, NULL);
    }
    R(conv_factors) f = {.a = x, .b = g, .a_row = s->by_taps ? a[2].per_tap : p->channel,
                         .gap = LANES, .plus_row = s->by_taps ? R(CONV_NR) : step};
    if (s->by_taps)
        for (int64_t k = 0; k < p->terms; k += a[2].taps)
            for (int64_t j = 0; j < a[2].taps; j += high) {
                f.a = x + s->term[k + j].a;
                real *to = part + (k + j) * R(CONV_NR);
                f.plus = add ? to : NULL;
                R(conv_tile_any)(mg_min(high, a[2].taps - j), outs, to, R(CONV_NR), f, s->place, n);
            }
    int64_t c = 0, lines = t->images * t->rows, band = mg_max(CONV_DEPTH / t->cols, 1);
    bool threes = CONV_BY_TAPS && sizeof(real) == 4 && !s->by_taps && !s->given && outs <= LANES &&
                  t->cols > 1 && a[2].taps == CONV_TAPS && a[2].step == 1 && a[2].per_tap == 1;
    for (; threes && c + CONV_SIDE <= p->channels; c += CONV_SIDE)
        for (int64_t q = 0; q < lines; q += band)
            for (int64_t k = 0; k < p->taps; k += CONV_TAPS)
                R(conv_tile_lines)(part + c * step + k * R(CONV_NR), step,
                                   x + s->term[c * p->taps + k].a, p->channel,
                                   g + q * t->cols * R(CONV_NR), s->place + q * t->cols,
                                   mg_min(band, lines - q), t->cols, add || q > 0);
    int64_t some = s->given ? conv_even(lines, band) * t->cols : conv_even(n, CONV_DEPTH);
    for (; !s->by_taps && c < p->channels; c += high)
        for (int64_t at = 0, next; at < n; at = next) {
            next = mg_min(at + some, n);
            conv_line_of low = conv_line_at(p, at / t->cols), end = conv_line_at(p, next / t->cols);
            for (int64_t k = 0; k < p->taps; k++) {
                conv_range own = {at, next}; /* of the places */
                if (s->given)
                    own = (conv_range){conv_listed(p, t, s->given, k, low),
                                       conv_listed(p, t, s->given, k, end)};
                f.a = x + s->term[c * p->taps + k].a;
                real *to = part + c * step + k * R(CONV_NR);
                f.plus = add || at > 0 ? to : NULL;
                R(conv_tile_any)(mg_min(high, p->channels - c), outs, to, step, f,
                                 s->place + own.from, own.end - own.from);
            }
        }
}

/* The partial gradients of a run of chunks for some tiles, which share the copied inputs. */
static void R(conv_weights)(const conv_weight_gradient *s, int64_t run, int64_t group, int64_t first,
                            real *scratch) {
    const conv_plan *p = &s->plan;
    int64_t packed = s->by_dots ? 0 : p->images * p->rows * p->cols * R(CONV_NR);
    int64_t end = mg_min((run + 1) * s->run, conv_units(p));
    for (int64_t unit = run * s->run; unit < end; unit++) {
        conv_chunk t = conv_chunk_at(p, unit, group);
        const real *x =
            s->copies ? (const real *)s->copies + (group * p->batch + t.image) * p->copy_size
                      : R(conv_inputs)((const real *)s->x, p, &t, scratch + packed);
        for (int64_t i = first; i < mg_min(first + s->together, s->tiles); i++) {
            int64_t number = (run * p->groups + group) * s->tiles + i;
            R(conv_weights_tile)(s, &t, i, (real *)s->parts + number * R(conv_part)(p), x, scratch,
                                 unit > run * s->run);
        }
    }
}

/* Adds up the partial gradients of a tile in order, and writes them as lines of the weight
 * gradient. */
static void R(conv_gather)(const conv_weight_gradient *s, int64_t item) {
    const conv_plan *p = &s->plan;
    int64_t o = item % s->tiles * R(CONV_NR), group = item / s->tiles;
    int64_t size = R(conv_part)(p), all = p->groups * s->tiles * size;
    real *part = (real *)s->parts + item * size;
    for (int64_t run = 1; run < s->runs; run++)
        for (int64_t i = 0; i < p->terms * R(CONV_NR); i += LANES)
            v_store(part + i, v_load(part + i) + v_load(part + run * all + i));
    real *out = (real *)s->out + group * p->outs * p->terms;
    int64_t outs = mg_min(R(CONV_NR), p->outs - o);
    if (s->swapped)
        R(conv_write)(out + o, p->outs, 1, CONV_STAYS, out, part, R(CONV_NR), NULL, p->terms, outs);
    else
        R(conv_write_transposed)(out + o * p->terms, p->terms, 1, CONV_STAYS, out, part, R(CONV_NR), NULL,
                             outs, p->terms);
}
