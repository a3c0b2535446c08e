/* copy.inc.c: copies of inputs and weights into scratch memory, and of sums out of scratch; a
 * template. */
#include "simd/real.h"

/* ---- copies ---------------------------------------------------------------------------------- */

/* to[i] = 0 for i < n, and for up to a vector more. */
MG_INLINE void R(conv_zero)(real *to, int64_t n) {
    for (int64_t i = 0; i < n; i += LANES) {
        MG_AS_IT_IS;
        v_store(to + i, v_set1(0));
    }
}

/* Copies lines into a block of `lines` lines of `pitch` elements. Lines `first` to `last` receive
 * `count` elements each, from element `begin` on; all else is set to 0. `from`: the first line that
 * is copied. Writes up to a vector more. `ahead`: distance from `from` to what will be copied
 * later. */
MG_INLINE void R(conv_copy_lines)(real *restrict to, int64_t pitch, int64_t lines, int64_t first,
                                  int64_t last, int64_t begin, int64_t count,
                                  const real *restrict from, int64_t apart, int64_t ahead) {
    if (first >= last) first = last = lines, begin = 0;
    R(conv_zero)(to, first * pitch + begin);
    /* Zeros reach up to the next line's elements; mostly a line's last vector holds them. */
    int rest = (int)(count % LANES);
    for (int64_t q = first; q < last; q++, from += apart) {
        real *line = to + q * pitch + begin;
        int64_t i = 0, end = q + 1 < last ? pitch : pitch - begin;
        for (; i + LANES <= count; i += LANES) {
            __builtin_prefetch(from + ahead + i);
            v_store(line + i, v_load(from + i));
        }
        if (i < end) {
            __builtin_prefetch(from + ahead + i);
            v_store(line + i, v_load_n(from + i, rest));
        }
        R(conv_zero)(line + i + LANES, end - i - LANES);
    }
    R(conv_zero)(to + last * pitch, (lines - last) * pitch);
}

/* The first min(n, LANES) elements at even offsets, as a vector; 0 in the other lanes. */
MG_INLINE vec R(conv_evens)(const real *from, int64_t n) {
    if (n >= LANES) return R(v_evens)(from);
    int reach = 2 * (int)n - 1, low = mg_min(reach, LANES - 1);
    return TRANSPOSE_SHUFFLE(v_load_n(from, low), v_load_n(from + low, reach - low), R(TRANSPOSE_EVENS));
}

/* Folds a line: part f receives elements f, f + fold, and so on. The line has elements from `begin`
 * to `end`, both given as a quotient and remainder by `fold`; all else is 0. Writes up to a vector
 * more. */
static MG_NOINLINE void R(conv_fold_line)(real *restrict to, int64_t part, int64_t fold,
                                          const real *restrict from, lldiv_t begin, lldiv_t end) {
    for (int64_t f = 0; f < fold; f++, to += part) {
        int64_t n = begin.quot + (f < begin.rem), last = end.quot + (f < end.rem);
        const real *x = from + f;
        R(conv_zero)(to, n);
        for (; fold == 2 && n < last; n += LANES)
            v_store(to + n, R(conv_evens)(x + 2 * n, last - n));
        for (; n < last; n++) {
            MG_AS_IT_IS;
            to[n] = x[n * fold];
        }
        R(conv_zero)(to + n, part - n);
    }
}

/* Copies the inputs of a chunk of one image with their zero padding. Memory behind the copy that
 * idle lanes read is set to 0 too. Leftovers there may be subnormal, and multiply-adds of subnormal
 * numbers take a hundred times as long. */
static MG_NOINLINE void R(conv_copy)(real *to, const real *x, const conv_plan *p,
                                     const conv_chunk *t, int64_t image) {
    const conv_axis *axis = p->axis;
    int64_t lines = (t->rows - 1) * axis[1].step + conv_reach(&axis[1]);
    int64_t width = (t->cols - 1) * axis[2].step + conv_reach(&axis[2]);
    int64_t y = p->low[1] + t->i1 * axis[1].step, at = p->low[2] + t->i2 * axis[2].step;
    int64_t first = mg_min(mg_max(-y, 0), lines);
    int64_t last = mg_max(mg_min(axis[1].inputs - y, lines), first);
    int64_t begin = mg_min(mg_max(-at, 0), width);
    int64_t end = mg_max(mg_min(axis[2].inputs - at, width), begin);
    lldiv_t low = lldiv(begin, p->fold), high = lldiv(end, p->fold);
    int64_t ahead = (lines > 1 ? 3 : 2) * p->in_plane; /* distance to what will be copied later */
    x += (image * p->groups + t->group) * p->channels * p->in_plane + y * p->in_stride[1] + at;
    for (int64_t c = 0; c < p->channels; c++)
        for (int64_t k0 = 0; k0 < axis[0].taps; k0++) {
            int64_t z = axis[0].at + t->i0 * axis[0].step + k0 * axis[0].per_tap;
            int64_t none = z < 0 || z >= axis[0].inputs ? lines : 0;
            const real *from = x + c * p->in_plane + z * p->in_stride[0];
            real *block = to + c * p->channel + k0 * p->slice;
            if (p->fold == 1)
                R(conv_copy_lines)(block, p->line, lines, mg_max(first, none), last, begin,
                                   end - begin, from + first * p->in_stride[1] + begin,
                                   p->in_stride[1], ahead);
            for (int64_t q = 0; p->fold > 1 && q < lines; q++) {
                bool inside = q >= mg_max(first, none) && q < last;
                const real *line = from + q * p->in_stride[1];
                for (int64_t i = 0; i < width; i += 64 / (int)sizeof(real))
                    __builtin_prefetch(line + ahead + i);
                if (inside)
                    R(conv_fold_line)(block + q * p->line, p->part, p->fold, line, low, high);
                else
                    R(conv_zero)(block + q * p->line, p->line);
            }
            v_store(block + lines * p->line, v_set1(0));
        }
}

/* packed[j * width + i] = from[i * apart + j * step] for i < count, and 0 for the rest of the
 * width. `more`: columns that may be written beyond n; as many elements may be read behind the last
 * line. `ahead`: distance to what will be packed later. If `order` is not NULL, column j goes to
 * column order[j], and no more columns are written. */
static MG_NOINLINE void R(conv_pack)(real *restrict packed, int64_t width,
                                     const real *restrict from, int64_t apart, int64_t step,
                                     int64_t count, int64_t n, int64_t more, int64_t ahead,
                                     const int64_t *restrict order) {
    int64_t j = 0;
    for (; step == 1 && width % LANES == 0 && j < n; j += LANES) {
        if (n > LANES) j = mg_min(j, n - LANES); /* some columns are written twice */
        int depth = (int)mg_min(LANES, n - j);
        for (int64_t i = 0; i < width; i += LANES) {
            const real *at = from + i * apart + j;
            real *to = packed + j * width + i;
            vec lines[LANES];
            MG_ROLLED
            for (int l = 0; l < LANES; l++) {
                __builtin_prefetch(at + l * apart + ahead);
                int64_t next = j + l + LANES;
                if (order) next = order[mg_min(next, n - 1)];
                __builtin_prefetch(packed + next * width + i, 1);
            }
            if (!order && LANES - depth <= more && i + LANES <= count) {
                R(v_transpose_square)(to, width, at, apart, NULL);
                continue;
            }
            MG_ROLLED
            for (int l = 0; l < LANES; l++)
                lines[l] = i + l < count ? v_load_n(at + l * apart, depth) : v_set1(0);
            R(v_transpose_square)((real *)lines, LANES, (real *)lines, LANES, NULL);
            MG_ROLLED
            for (int l = 0; l < depth; l++)
                v_store(order ? packed + order[j + l] * width + i : to + l * width, lines[l]);
        }
    }
    for (; j < n; j++)
        for (int64_t i = 0; i < width; i++) {
            MG_AS_IT_IS;
            packed[(order ? order[j] : j) * width + i] = i < count ? from[i * apart + j * step] : 0;
        }
}

/* ---- writing --------------------------------------------------------------------------------- */

/* to[l] = v[l] for even l < n. Odd elements are kept, or lost if `fresh`. */
MG_INLINE void R(conv_blend)(real *to, vec v, int n, bool fresh) {
    typedef ireal bits __attribute__((vector_size(MG_VECTOR_BYTES)));
    if (fresh) {
        v_store_n(to, v, n);
        return;
    }
    bits even, old = (bits)v_load_n(to, n);
    for (int l = 0; l < LANES; l++) even[l] = l % 2 - 1;
    v_store_n(to, (vec)(((bits)v & even) | (old & ~even)), n);
}

/* to[l * apart] = v[l] for l < n. The values between are kept, lost, or taken from other[l], one in
 * front of each. All of `other` is read first. */
static MG_NOINLINE void R(conv_scatter)(real *to, int64_t apart, conv_between between,
                                        const real *other, vec v, int n) {
    if (between == CONV_INTERLEAVED) {
        vec u = v_load_n(other, n);
        int low = mg_min(2 * n, LANES);
        v_store_n(to - 1, TRANSPOSE_SHUFFLE(u, v, R(TRANSPOSE_LO)), low);
        v_store_n(to - 1 + LANES, TRANSPOSE_SHUFFLE(u, v, R(TRANSPOSE_HI)), 2 * n - low);
        return;
    }
    if (apart == 2 && n > 1) {
        int reach = 2 * n - 1, low = reach < LANES ? reach : LANES;
        R(conv_blend)(to, TRANSPOSE_SHUFFLE(v, v, R(TRANSPOSE_LO)), low, between == CONV_LOST);
        R(conv_blend)(to + LANES, TRANSPOSE_SHUFFLE(v, v, R(TRANSPOSE_HI)), reach - low,
                      between == CONV_LOST);
        return;
    }
    real lane[LANES];
    v_store(lane, v);
    for (int l = 0; l < n; l++) {
        MG_AS_IT_IS;
        to[l * apart] = lane[l];
    }
}

/* y[i * y_row + j * apart] = c[j * c_row + i] + bias[i] for m x n elements. `between` and `other`
 * are those of conv_scatter, `other` for the first element. Reads c up to the next whole square. */
static MG_NOINLINE void R(conv_write_transposed)(real *y, int64_t y_row, int64_t apart,
                                             conv_between between, const real *other,
                                             const real *restrict c, int64_t c_row,
                                             const real *restrict bias, int64_t m, int64_t n) {
    for (int64_t i = 0; i < m; i += LANES, y += LANES * y_row, c += LANES) {
        int rows = (int)mg_min(LANES, m - i);
        vec plus = bias ? v_load_n(bias + i, rows) : v_set1(0), lines[LANES];
        for (int64_t j = 0; j < n; j += LANES) {
            /* some elements are written twice */
            if (apart == 1 && n > LANES) j = mg_min(j, n - LANES);
            int cols = (int)mg_min(LANES, n - j);
            bool whole = apart == 1 && cols == LANES && rows == LANES;
            R(v_transpose_square)(whole ? y + j : (real *)lines, whole ? y_row : LANES, c + j * c_row, c_row,
                         bias ? &plus : NULL);
            MG_ROLLED
            for (int l = 0; !whole && l < rows; l++) {
                real *to = y + l * y_row + j * apart;
                if (apart == 1) v_store_n(to, lines[l], cols);
                else
                    R(conv_scatter)(to, apart, between, other + (i + l) * y_row + j, lines[l],
                                    cols);
            }
        }
    }
}

/* y[i * y_row + j * apart] = c[i * c_row + j] + bias[i] for m x n elements, `other` as above. */
static MG_NOINLINE void R(conv_write)(real *y, int64_t y_row, int64_t apart, conv_between between,
                                      const real *other, const real *restrict c, int64_t c_row,
                                      const real *restrict bias, int64_t m, int64_t n) {
    for (int64_t i = 0; i < m; i++, y += y_row, c += c_row)
        for (int64_t j = 0; j < n; j += LANES) {
            int cols = (int)mg_min(LANES, n - j);
            vec line = v_load(c + j);
            if (bias) line += v_set1(bias[i]);
            if (apart == 1 && cols == LANES) v_store(y + j, line);
            else if (apart == 1) v_store_n(y + j, line, cols);
            else
                R(conv_scatter)(y + j * apart, apart, between, other + i * y_row + j, line, cols);
        }
}
