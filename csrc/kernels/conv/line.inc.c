/* line.inc.c: correlations along lines for groups of one channel, and weight gradients of few
 * outputs; a template for each float width. */
#include "simd/real.h"

/* Where line q of output channel o of a chunk is written, and the offset of the line's inputs. */
MG_INLINE real *R(conv_to)(const conv_plan *p, const conv_chunk *t, real *y, int64_t o, int64_t q) {
    int64_t image = q / t->rows, i = t->i1 + q % t->rows;
    return y + (image * p->groups * p->outs + o) * p->out_plane +
           (p->axis[1].first + i * p->axis[1].apart) * p->out_stride[1];
}
MG_INLINE int64_t R(conv_from)(const conv_plan *p, const conv_chunk *t, int64_t q) {
    return q / t->rows * p->image + q % t->rows * p->axis[1].step * p->line;
}

/* The values interleaved with the outputs of a line that begins at y. */
MG_INLINE const real *R(conv_other)(const conv_plan *p, const real *y) {
    return y + p->axis[2].other - p->axis[2].first;
}

/* ---- outputs --------------------------------------------------------------------------------- */

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

/* A line of outputs where the group has one channel. */
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

/* The same for a few columns of four lines. One line alone would have few sums, and each addition
 * would wait for the one before. */
static MG_NOINLINE void R(conv_four_lines)(const conv_correlation *s, real *y, const real *x,
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

/* Four lines of outputs of a group of one channel, with 3 x 3 taps, where the next line reads one
 * input line further. Each vector of inputs is loaded once for all lines that use it. */
static MG_NOINLINE void R(conv_nine)(real *y, int64_t to_next, const real *x, int64_t from_next,
                                     const real *w, const conv_term *term, real bias, int64_t n) {
    enum { LINES = 4, TAPS = CONV_TAPS };
    vec weight[TAPS][TAPS];
    MG_UNROLL
    for (int k = 0; k < TAPS * TAPS; k++) weight[k / TAPS][k % TAPS] = v_set1(w[k]);
    for (int64_t j = 0; j < n; j += LANES) {
        if (n > LANES) j = mg_min(j, n - LANES); /* some outputs are written twice */
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

/* The outputs of a chunk of a group of one channel. Interleaved values are written once; others may
 * be written twice. */
static MG_NOINLINE void R(conv_lines)(const conv_correlation *s, const conv_chunk *t, real *y,
                                      const real *x, const real *w, real bias) {
    const conv_plan *p = &s->plan;
    const conv_axis *a = &p->axis[2];
    if (CONV_BY_LINES && conv_is_nine(p) && t->rows >= 4) {
        /* from the last line on, as the weights keep their order */
        bool back = p->axis[1].per_tap < 0;
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

/* ---- backward weights ------------------------------------------------------------------------ */

/* The sum of a vector's lanes, pairwise. */
static MG_NOINLINE real R(conv_fold)(real *lane) {
    for (int w = LANES / 2; w > 0; w /= 2)
        for (int l = 0; l < w; l++) lane[l] += lane[l + w];
    return lane[0];
}

/* part[term][out] = or += nt inputs times no gradients, summed along the lines of a chunk. */
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

/* sum[k1][k2] += the inputs of a line times the gradients k1 lines before, for the k1 from `first`
 * to `end`. */
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

/* sum[k1][k2] += the sums down a vector of columns of at least two lines. */
MG_INLINE void R(conv_dot_columns)(const bool whole, int n, vec sum[CONV_TAPS][CONV_TAPS],
                                   const real *x, int64_t line, const conv_term *term,
                                   const real *g, int64_t next, int64_t rows) {
    vec up[CONV_TAPS]; /* the gradients of this line and of the two lines before */
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

/* The partial weight gradient of one output channel with 3 x 3 taps. Each vector of inputs is
 * loaded once for all lines of gradients that use it. */
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

/* The partial weight gradients of few output channels: dot products along the lines. */
static MG_NOINLINE void R(conv_dots)(const conv_weight_gradient *s, const conv_chunk *t, real *part,
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
