/* conv.inc.c: sums of chunks, for one float width; read twice by conv.c. */
#include "real.h"

/* ---- outputs --------------------------------------------------------------------------------- */

MG_PLANNING

/* The weights of one tile of outputs in the order of the terms. */
static MG_NOINLINE void R(conv_pack_tile)(const conv_sum *s, int64_t block, real *to) {
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
    const conv_sum *s = context;
    R(conv_pack_tile)(s, block, (real *)s->packed + block * s->height * s->plan.terms);
}

MG_PLANNING_END

/* Where the inputs of a chunk begin. */
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

/* Where line q of output o of a chunk goes, and where its inputs begin. */
MG_INLINE real *R(conv_to)(const conv_plan *p, const conv_chunk *t, real *y, int64_t o, int64_t q) {
    int64_t image = q / t->rows, i = t->i1 + q % t->rows;
    return y + (image * p->groups * p->outs + o) * p->out_plane +
           (p->axis[1].first + i * p->axis[1].apart) * p->out_stride[1];
}
MG_INLINE int64_t R(conv_from)(const conv_plan *p, const conv_chunk *t, int64_t q) {
    return q / t->rows * p->image + q % t->rows * p->axis[1].step * p->line;
}

/* Sums of a line of outputs, or of two where lines are short, whose inputs lie `apart`. With the
 * outputs' channels as lanes a tile is some neighbours of the line by a row of packed weights, and
 * the second line's sums lie `skip` behind the first one's; else some channels by vectors of the
 * line, of which two lines have one each. `y` is where they will be written, NULL if they are in
 * cache, `ahead` what is needed later. Returns where the sums of the next line go. */
MG_INLINE real *R(conv_sum_line)(const conv_sum *s, real *c, const real *y, const real *row,
                                 const real *w, int64_t outs, int64_t cols, bool pair,
                                 int64_t apart, int64_t skip, const real *ahead,
                                 const conv_term *term, int64_t k, bool add) {
    const conv_plan *p = &s->plan;
    int64_t next = p->fold > 1 ? 1 : p->axis[2].step; /* from an output's input to the next one's */
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

/* Sums of k terms of n outputs, with their channels as lanes and wherever lines end: those of a
 * chunk from `place` on, whose first one's inputs begin at x and which will be written at y. */
static void R(conv_sum_places)(const conv_sum *s, real *c, const real *y, const real *x,
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

/* The sums of all outputs of a chunk without the terms that are left out: some channels at a time,
 * part by part, of the lines one after the other that take the same run of terms. */
static MG_NOINLINE void R(conv_sum_inside)(const conv_sum *s, const conv_chunk *t, real *c,
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
                    R(conv_sum_places)(s, c + q * n * NR, to, x, w, outs, s->place + q * n,
                                       (end - i) * n, inputs, run, k, add);
                for (int64_t l = 0, both; !CONV_PLACED && l < lines; l += both) {
                    int64_t q = l % t->images * t->rows + i + l / t->images;
                    int64_t e = (l + 1) % t->images * t->rows + i + (l + 1) / t->images;
                    int64_t from = R(conv_from)(p, t, q), apart = R(conv_from)(p, t, e) - from;
                    conv_ask(inputs);
                    both = 1 + (pairs && l + 1 < lines);
                    R(conv_sum_line)(s, c + (q * t->cols + cols.from) * NR,
                                     to ? R(conv_to)(p, t, y, 0, q) : NULL, row + from, w, outs, n,
                                     both > 1, apart, ((e - q) * t->cols - n) * NR,
                                     ahead + (i * t->images + l) * (round * s->height / all), run,
                                     k, add);
                }
            }
            term += round;
        }
}

/* Sums of k terms of a line of outputs, some channels by vectors of the line, where they belong.
 * They are added to `bias`, the same for all places, or to what other terms made, if that is NULL
 * and `add`. */
static MG_NOINLINE void R(conv_sum_there)(const conv_sum *s, real *y, const real *row,
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

/* What is woven with the outputs of a line that begins at y. */
MG_INLINE const real *R(conv_other)(const conv_plan *p, const real *y) {
    return y + p->axis[2].other - p->axis[2].first;
}

/* Writes what conv_sum_line has summed. */
static const real *R(conv_write_line)(const conv_sum *s, real *y, const real *c, const real *bias,
                                      int64_t outs, int64_t cols, bool pair) {
    const conv_plan *p = &s->plan;
    int64_t apart = p->axis[2].apart, next = p->axis[1].apart * p->out_stride[1];
    conv_between between = conv_between_of(&p->axis[2]);
    const real *other = R(conv_other)(p, y);
    if (s->lanes_are_outs) {
        R(conv_write_turned)(y, p->out_plane, apart, between, other, c, R(CONV_NR), bias, outs,
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

/* nv vectors of a line of outputs of one channel. */
MG_INLINE void R(conv_line_part)(const int nv, real *y, int64_t apart, conv_between between,
                                 const real *other, const real *restrict x,
                                 const real *restrict w, const conv_term *restrict term,
                                 int64_t terms, real bias, int64_t n) {
    vec total[4];
    MG_UNROLL
    for (int v = 0; v < nv; v++) total[v] = v_set1(bias);
    for (int64_t k = 0, end; k < terms; k = end) {
        vec sum[4];
        MG_UNROLL
        for (int v = 0; v < nv; v++) sum[v] = v_set1(0);
        for (end = mg_min(k + CONV_DEPTH, terms); k < end; k++) {
            vec weight = v_set1(w[k]);
            MG_UNROLL
            for (int v = 0; v < nv; v++)
                sum[v] = v_fma(weight, v_load(x + term[k].b + v * LANES), sum[v]);
        }
        MG_UNROLL
        for (int v = 0; v < nv; v++) total[v] += sum[v];
    }
    MG_UNROLL
    for (int v = 0; v < nv; v++) {
        int cols = (int)mg_min(LANES, n - v * LANES);
        real *to = y + v * LANES * apart;
        if (apart == 1) v_store_n(to, total[v], cols);
        else R(conv_scatter)(to, apart, between, other + v * LANES, total[v], cols);
    }
}

/* A line of outputs of the only channel of its group. */
static MG_NOINLINE void R(conv_line)(real *y, int64_t apart, conv_between between,
                                     const real *other, const real *x, const real *w,
                                     const conv_term *term, int64_t terms, real bias, int64_t n) {
    for (int64_t j = 0, done; j < n; j += done) {
        real *to = y + j * apart;
        done = n - j > 3 * LANES ? 4 * LANES : n - j > LANES ? 2 * LANES : LANES;
        if (done == 4 * LANES)
            R(conv_line_part)(4, to, apart, between, other + j, x + j, w, term, terms, bias,
                              n - j);
        else if (done == 2 * LANES)
            R(conv_line_part)(2, to, apart, between, other + j, x + j, w, term, terms, bias,
                              n - j);
        else
            R(conv_line_part)(1, to, apart, between, other + j, x + j, w, term, terms, bias,
                              n - j);
    }
}

/* Few columns of four lines of outputs likewise: in a line alone they would be few sums, which wait
 * for their own last additions. */
static MG_NOINLINE void R(conv_four_lines)(const conv_sum *s, real *y, const real *x,
                                           const real *w, real bias, int64_t n) {
    const conv_plan *p = &s->plan;
    const conv_axis *a = p->axis;
    const conv_term *term = s->term;
    int64_t from_next = a[1].step * p->line, to_next = a[1].apart * p->out_stride[1];
    for (int64_t j = 0; j < n; j += LANES, x += LANES, y += LANES * a[2].apart) {
        vec total[4];
        MG_UNROLL
        for (int l = 0; l < 4; l++) total[l] = v_set1(bias);
        for (int64_t k = 0, end; k < p->terms; k = end) {
            vec sum[4];
            MG_UNROLL
            for (int l = 0; l < 4; l++) sum[l] = v_set1(0);
            for (end = mg_min(k + CONV_DEPTH, p->terms); k < end; k++) {
                vec weight = v_set1(w[k]);
                const real *from = x + term[k].b;
                MG_UNROLL
                for (int l = 0; l < 4; l++, from += from_next)
                    sum[l] = v_fma(weight, v_load(from), sum[l]);
            }
            MG_UNROLL
            for (int l = 0; l < 4; l++) total[l] += sum[l];
        }
        real *to = y;
        MG_UNROLL
        for (int l = 0; l < 4; l++, to += to_next) {
            int cols = (int)mg_min(LANES, n - j);
            if (a[2].apart == 1) v_store_n(to, total[l], cols);
            else R(conv_scatter)(to, a[2].apart, conv_between_of(&a[2]), to, total[l], cols);
        }
    }
}

/* Four lines of outputs of the only channel of its group, by three lines of three taps, the next
 * one's inputs a line on: a vector of inputs is read once for all lines that it is a term of. */
static MG_NOINLINE void R(conv_nine)(real *y, int64_t to_next, const real *x, int64_t from_next,
                                     const real *w, const conv_term *term, real bias, int64_t n) {
    enum { LINES = 4, TAPS = CONV_TAPS };
    vec weight[TAPS][TAPS];
    MG_UNROLL
    for (int k = 0; k < TAPS * TAPS; k++) weight[k / TAPS][k % TAPS] = v_set1(w[k]);
    for (int64_t j = 0; j < n; j += LANES) {
        if (n > LANES) j = mg_min(j, n - LANES); /* some are written twice */
        const real *from = x + j;
        vec sum[LINES];
        MG_UNROLL
        for (int l = 0; l < LINES; l++) sum[l] = v_set1(0);
        MG_UNROLL
        for (int i = 0; i < LINES + TAPS - 1; i++, from += from_next) {
            MG_UNROLL
            for (int t = 0; t < TAPS; t++) {
                vec input = v_load(from + term[t].b);
                MG_UNROLL
                for (int l = 0; l < LINES; l++)
                    if (l <= i && i - l < TAPS) sum[l] = v_fma(weight[i - l][t], input, sum[l]);
            }
        }
        real *to = y + j;
        MG_UNROLL
        for (int l = 0; l < LINES; l++, to += to_next) {
            vec total = v_set1(bias) + sum[l];
            if (n < LANES) v_store_n(to, total, (int)n);
            else v_store(to, total);
        }
    }
}

/* How many lines from line q on are summed together, 1 or 2; as vectors those of one image. */
MG_INLINE int64_t R(conv_together)(const conv_sum *s, const conv_chunk *t, bool pairs, int64_t q,
                                   int64_t end) {
    return 1 + (pairs && q + 1 < end && (s->lanes_are_outs || q % t->rows + 1 < t->rows));
}

/* The outputs of a chunk of the only channel of its group. What is woven is written once, all else
 * perhaps twice. */
static MG_NOINLINE void R(conv_lines)(const conv_sum *s, const conv_chunk *t, real *y,
                                      const real *x, const real *w, real bias) {
    const conv_plan *p = &s->plan;
    const conv_axis *a = &p->axis[2];
    if (CONV_BY_LINES && conv_is_nine(p) && t->rows >= 4) {
        bool back = p->axis[1].per_tap < 0; /* from the last line on, as taps come in order */
        int64_t to_next = p->axis[1].apart * p->out_stride[1], way = back ? -1 : 1;
        for (int64_t m = 0; m < t->images; m++)
            for (int64_t i = 0; i < t->rows; i += 4) {
                int64_t q = m * t->rows + mg_min(i, t->rows - 4) + (back ? 3 : 0);
                R(conv_nine)(R(conv_to)(p, t, y, 0, q), way * to_next, x + R(conv_from)(p, t, q),
                             way * p->line, w, s->term, bias, t->cols);
            }
        return;
    }
    bool fours = t->rows >= 4 && !a->other && t->cols % (4 * LANES) <= 3 * LANES;
    int64_t along = fours ? t->cols / (4 * LANES) * (4 * LANES) : t->cols, rest = t->cols - along;
    for (int64_t q = 0; along > 0 && q < t->images * t->rows; q++) {
        real *to = R(conv_to)(p, t, y, 0, q);
        R(conv_line)(to, a->apart, conv_between_of(a), R(conv_other)(p, to),
                     x + R(conv_from)(p, t, q), w, s->term, p->terms, bias, along);
    }
    for (int64_t m = 0; rest > 0 && m < t->images; m++)
        for (int64_t i = 0; i < t->rows; i += 4) {
            int64_t q = m * t->rows + mg_min(i, t->rows - 4);
            R(conv_four_lines)(s, R(conv_to)(p, t, y, 0, q) + along * a->apart,
                               x + R(conv_from)(p, t, q) + along, w, bias, rest);
        }
}

/* The outputs of a chunk, while the inputs of a later one are asked for. Where the terms are many, some
 * of them for all lines, so that their weights stay in the first cache. */
static MG_NOINLINE void R(conv_outputs)(const conv_sum *s, const conv_chunk *t,
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
                R(conv_sum_there)(s, R(conv_to)(p, t, y, o, q), x + R(conv_from)(p, t, q),
                                  w, bias && k == 0 ? sums : NULL, outs, t->cols,
                                  s->term + k, mg_min(depth, p->terms - k), k > 0);
        for (int64_t q = 0, end; s->height > 1 && !there && q < lines; q = end) {
            end = mg_min(q + band, lines);
            if (s->some)
                R(conv_sum_inside)(s, t, sums, y + o * p->out_plane, x, w, outs, pairs, &inputs);
            for (int64_t k = 0; !s->some && (k == 0 || k < p->terms); k += depth) {
                real *c = sums, *first = k == 0 ? R(conv_to)(p, t, y, o, 0) : NULL;
                const real *ahead = w + (k + depth) * s->height; /* weights of the next round */
                int64_t share = depth * s->height / (end - q);
                if (placed)
                    R(conv_sum_places)(s, c, first, x, w, outs,
                                       s->place + q * t->cols, (end - q) * t->cols, &inputs,
                                       s->term + k, mg_min(depth, p->terms - k), k > 0);
                for (int64_t r = placed ? end : q, n; r < end; r += n) {
                    int64_t from = R(conv_from)(p, t, r);
                    conv_ask(&inputs);
                    n = R(conv_together)(s, t, pairs, r, end);
                    c = R(conv_sum_line)(s, c, first ? R(conv_to)(p, t, y, o, r) : NULL,
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
                else /* those of an image that follow each other are one */
                    n = whole ? mg_min(end, (r / t->rows + 1) * t->rows) - r : 1;
                c = R(conv_write_line)(s, R(conv_to)(p, t, y, o, r), c, bias, outs,
                                       s->lanes_are_outs ? n * t->cols : t->cols, pair);
            }
        }
    }
}

/* ---- weights' gradients ---------------------------------------------------------------------- */

/* The elements of a part of a tile; those that are turned with the last ones included. */
MG_INLINE int64_t R(conv_part)(const conv_plan *p) { return (p->terms + LANES) * R(CONV_NR); }

/* The sum of a vector's lanes, pairwise. */
static MG_NOINLINE real R(conv_fold)(real *lane) {
    for (int w = LANES / 2; w > 0; w /= 2)
        for (int l = 0; l < w; l++) lane[l] += lane[l + w];
    return lane[0];
}

/* part[term][out] = or += the sums along the lines of a chunk of nt inputs times no gradients. */
MG_INLINE void R(conv_dot_tile)(const int nt, const int no, real *restrict part,
                                const conv_plan *p, const conv_chunk *t, const real *restrict x,
                                const conv_term *term, const real *restrict g, bool add) {
    vec sum[4][2];
    MG_UNROLL
    for (int k = 0; k < nt; k++) {
        MG_UNROLL
        for (int o = 0; o < no; o++) sum[k][o] = v_set1(0);
    }
    for (int64_t q = 0; q < t->images * t->rows; q++) {
        int64_t m = q / t->rows, i = q % t->rows;
        const real *from = x + m * p->image + i * p->axis[1].step * p->line;
        const real *by = g + m * p->groups * p->outs * p->out_plane + i * p->out_stride[1];
        for (int64_t j = 0; j < t->cols; j += LANES) {
            int n = (int)mg_min(LANES, t->cols - j);
            vec gs[2];
            MG_UNROLL
            for (int o = 0; o < no; o++) gs[o] = v_load_n(by + o * p->out_plane + j, n);
            MG_UNROLL
            for (int k = 0; k < nt; k++) {
                vec xs = v_load_n(from + term[k].a + j, n);
                MG_UNROLL
                for (int o = 0; o < no; o++) sum[k][o] = v_fma(xs, gs[o], sum[k][o]);
            }
        }
    }
    for (int k = 0; k < nt; k++)
        for (int o = 0; o < no; o++) {
            real lane[LANES], *to = part + k * R(CONV_NR) + o;
            v_store(lane, sum[k][o]);
            real dot = R(conv_fold)(lane);
            *to = add ? *to + dot : dot;
        }
}

/* sum[k1][k2] += the inputs of a line by the gradients of the lines k1 before, of which there are
 * those from `first` to `end`. */
MG_INLINE void R(conv_dot_line)(const int first, const int end, const bool whole, int n,
                                vec sum[CONV_TAPS][CONV_TAPS], const real *x, const conv_term *term,
                                const vec *g) {
    MG_UNROLL
    for (int t = 0; t < CONV_TAPS; t++) {
        const real *from = x + term[t].a;
        vec input = whole ? v_load(from) : v_load_n(from, n);
        MG_UNROLL
        for (int k = first; k < end; k++) sum[k][t] = v_fma(input, g[k], sum[k][t]);
    }
}

/* sum[k1][k2] += the sums down a vector of columns, of at least two lines. */
MG_INLINE void R(conv_dot_columns)(const bool whole, int n, vec sum[CONV_TAPS][CONV_TAPS],
                                   const real *x, int64_t line, const conv_term *term,
                                   const real *g, int64_t next, int64_t rows) {
    vec up[CONV_TAPS]; /* the gradients of this line and of those before */
    up[0] = whole ? v_load(g) : v_load_n(g, n);
    R(conv_dot_line)(0, 1, whole, n, sum, x, term, up);
    up[1] = up[0];
    up[0] = whole ? v_load(g += next) : v_load_n(g += next, n);
    R(conv_dot_line)(0, 2, whole, n, sum, x += line, term, up);
    for (int64_t i = 2; i < rows; i++) {
        up[2] = up[1];
        up[1] = up[0];
        up[0] = whole ? v_load(g += next) : v_load_n(g += next, n);
        R(conv_dot_line)(0, 3, whole, n, sum, x += line, term, up);
    }
    up[2] = up[1];
    up[1] = up[0];
    R(conv_dot_line)(1, 3, whole, n, sum, x += line, term, up);
    up[2] = up[1];
    R(conv_dot_line)(2, 3, whole, n, sum, x + line, term, up);
}

/* The gradients that an output has from a chunk by three lines of three taps: a vector of inputs is
 * read once for all lines of gradients that it meets. */
static MG_NOINLINE void R(conv_dot_nine)(real *restrict part, const conv_plan *p,
                                         const conv_chunk *t, const real *restrict x,
                                         const conv_term *term, const real *restrict g, bool add) {
    vec sum[CONV_TAPS][CONV_TAPS];
    int64_t next = p->out_stride[1];
    MG_UNROLL
    for (int k = 0; k < CONV_TAPS * CONV_TAPS; k++) sum[k / CONV_TAPS][k % CONV_TAPS] = v_set1(0);
    for (int64_t m = 0; m < t->images; m++) {
        const real *from = x + m * p->image, *by = g + m * p->groups * p->outs * p->out_plane;
        int64_t j = 0;
        for (; j + LANES <= t->cols; j += LANES)
            R(conv_dot_columns)(true, 0, sum, from + j, p->line, term, by + j, next, t->rows);
        if (j < t->cols)
            R(conv_dot_columns)(false, (int)(t->cols - j), sum, from + j, p->line, term, by + j,
                                next, t->rows);
    }
    MG_UNROLL
    for (int k = 0; k < CONV_TAPS * CONV_TAPS; k++) {
        real lane[LANES], *to = part + k * R(CONV_NR);
        v_store(lane, sum[k / CONV_TAPS][k % CONV_TAPS]);
        real dot = R(conv_fold)(lane);
        *to = add ? *to + dot : dot;
    }
}

/* The gradients that few outputs have from a chunk: dot products along the lines. */
static MG_NOINLINE void R(conv_dots)(const conv_grad *s, const conv_chunk *t, real *part,
                                     const real *x, const real *g, int64_t outs, bool add) {
    const conv_plan *p = &s->plan;
    if (CONV_BY_LINES && outs == 1 && conv_is_nine(p) && t->rows > 1) {
        R(conv_dot_nine)(part, p, t, x, s->term, g, add);
        return;
    }
    for (int64_t o = 0; o < outs; o += 2, g += 2 * p->out_plane)
        for (int64_t k = 0, n; k < p->terms; k += n) {
            real *to = part + k * R(CONV_NR) + o;
            const conv_term *term = s->term + k;
            n = p->terms - k >= 4 ? 4 : 1;
            if (n == 4 && o + 1 < outs) R(conv_dot_tile)(4, 2, to, p, t, x, term, g, add);
            else if (n == 4) R(conv_dot_tile)(4, 1, to, p, t, x, term, g, add);
            else if (o + 1 < outs) R(conv_dot_tile)(1, 2, to, p, t, x, term, g, add);
            else R(conv_dot_tile)(1, 1, to, p, t, x, term, g, add);
        }
}

/* What a chunk, whose inputs begin at x, adds to the gradients of a tile of outputs:
 * part[channel][tap][out]. The inputs of neighbouring channels or of neighbouring taps make a tile
 * with the upstream gradients, which are packed at g, or those of both where there is one vector of
 * outputs; some places at a time, so that all taps find both in the first cache. */
static MG_NOINLINE void R(conv_weights_tile)(const conv_grad *s, const conv_chunk *t, int64_t tile,
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

/* What a run of chunks adds to the gradients of some tiles, which share the copied inputs. */
static void R(conv_weights)(const conv_grad *s, int64_t run, int64_t group, int64_t first,
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

/* The sum of the parts of a tile, in order, as lines of the weights' gradient. */
static void R(conv_gather)(const conv_grad *s, int64_t item) {
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
        R(conv_write_turned)(out + o * p->terms, p->terms, 1, CONV_STAYS, out, part, R(CONV_NR), NULL,
                             outs, p->terms);
}
