/* max.inc.c: how boxes are formed along a line, and their maxima in one plane, for one float
 * width; pool.c reads it for doubles, then for floats.
 *
 * All lines that a row of boxes reaches over become one first, in buffers of BOX_STRIP columns;
 * boxes are then formed along that line. Sums are doubles. Lanes are neighbours on the lines, and
 * then the boxes that lie 1 or 2 apart. The lines of several rows of tiles lie side by side, and
 * tiles of an even size are halved, their columns in pairs, until they are 1 or 2 apart. */
#include "simd/real.h"

typedef ireal R(box_mask) __attribute__((vector_size(MG_VECTOR_BYTES)));

MG_INLINE vec R(box_choose)(R(box_mask) mask, vec yes, vec no) {
    return (vec)((mask & (R(box_mask))yes) | (~mask & (R(box_mask))no));
}

/* The first `left` elements, up to a vector; the others are 0. */
MG_INLINE vec R(box_load)(const real *p, int64_t left) {
    if (BOX_MASKS) return v_load_n(p, (int)mg_min(left, LANES));
    return left >= LANES ? v_load(p) : v_load_n(p, (int)left);
}
MG_INLINE void R(box_store)(real *p, vec v, int64_t left) {
    if (left >= LANES) v_store(p, v);
    else v_store_n(p, v, (int)left);
}

/* The same as one store, where masks cost nothing: not for what is read again soon. */
MG_INLINE void R(box_store_far)(real *p, vec v, int64_t left) {
    if (MG_VECTOR_BYTES == 64) v_store_n(p, v, (int)mg_min(left, LANES));
    else R(box_store)(p, v, left);
}

/* Lane l < n: from[l * apart], apart 1 or 2; the other lanes are anything. */
MG_INLINE vec R(box_pick)(const real *from, int64_t apart, int64_t n) {
    int64_t reach = (n - 1) * apart + 1;
    vec low = R(box_load)(from, reach);
    if (apart == 1) return low;
    return TURN_SHUFFLE(low, R(box_load)(from + LANES, mg_max(reach - LANES, 0)), R(BOX_EVEN));
}

/* ---- along a line ---------------------------------------------------------------------------- */

/* The sum; or the larger, of which a NaN is one. */
MG_INLINE vec R(box_join)(bool largest, vec a, vec b) {
#if MG_HAS_WIDE
    if (largest) return R(v_largest)(a, b);
#else
    if (largest) return R(box_choose)((b > a) | (b != b), b, a);
#endif
    return a + b;
}
MG_INLINE real R(box_join_one)(bool largest, real a, real b) {
    real larger = b > a ? b : a;
    if (largest) return b != b ? b : larger;
    return a + b;
}

/* Of `size` elements, `step` apart. */
static MG_NOINLINE real R(box_fold)(bool largest, const real *from, int64_t size, int64_t step) {
    real value = from[0];
    int64_t j = 1;
    if (step == 1 && size >= 2 * LANES) {
        real lane[LANES];
        vec v = v_load(from);
        for (j = LANES; j + LANES <= size; j += LANES)
            v = R(box_join)(largest, v, v_load(from + j));
        v_store(lane, v);
        value = lane[0];
        MG_ROLLED
        for (int l = 1; l < LANES; l++) {
            MG_AS_IT_IS;
            value = R(box_join_one)(largest, value, lane[l]);
        }
    }
    for (; j < size; j++) {
        MG_AS_IT_IS;
        value = R(box_join_one)(largest, value, from[j * step]);
    }
    return value;
}

/* Of as many boxes as there are lanes, 1 or 2 apart. Reads two vectors from every element on. */
MG_INLINE vec R(box_over)(bool largest, const real *from, int64_t size, int64_t step,
                          int64_t apart) {
    vec v = {0}, next;
    for (int64_t j = 0; j < size; j++, from += step) {
        vec low = v_load(from);
        if (apart == 2) {
            vec high = v_load(from + LANES);
            next = TURN_SHUFFLE(low, high, R(BOX_EVEN));
            v = j == 0 ? next : R(box_join)(largest, v, next);
            if (step > 1 || j + 1 == size) continue;
            low = TURN_SHUFFLE(low, high, R(BOX_ODD)); /* the next of each box */
            from += step;
            j++;
        }
        v = j == 0 ? low : R(box_join)(largest, v, low);
    }
    return v;
}

/* Of two vectors, each element with an even number and the next one. With 32 bytes what is joined
 * comes of each 16 of both vectors, and is put in order afterwards. */
MG_INLINE vec R(box_pairs)(bool largest, vec low, vec high) {
#if MG_VECTOR_BYTES == 32
    vec even = TURN_SHUFFLE(low, high, R(TURN_EVEN)), odd = TURN_SHUFFLE(low, high, R(TURN_ODD));
    __m256d both = (__m256d)R(box_join)(largest, even, odd);
    return (vec)_mm256_permute4x64_pd(both, 0xd8);
#else
    vec even = TURN_SHUFFLE(low, high, R(BOX_EVEN)), odd = TURN_SHUFFLE(low, high, R(BOX_ODD));
    return R(box_join)(largest, even, odd);
#endif
}

/* to[k] = columns 2k and 2k + 1 of the line, k < n; it may be the line. */
MG_INLINE void R(box_halve)(bool largest, real *to, const real *line, int64_t n) {
    for (int64_t k = 0; k < n; k += LANES) {
        vec low = v_load(line + 2 * k), high = v_load(line + 2 * k + LANES);
        R(box_store)(to + k, R(box_pairs)(largest, low, high), n - k);
    }
}

/* line = each of its first n columns `size` times, in place. Writes up to two vectors more. */
static MG_NOINLINE void R(box_repeat)(real *line, int64_t n, int64_t size) {
    int64_t odd = size / (size & -size);
    for (int64_t k = n; odd > 1 && k-- > 0;) /* from the last one on */
        for (int64_t c = 0; c < odd; c++) {
            MG_AS_IT_IS;
            line[k * odd + c] = line[k];
        }
    for (int64_t width = n * odd; width < n * size; width *= 2) /* each column twice */
        for (int64_t c = (width - 1) / LANES * LANES; c >= 0; c -= LANES) {
            vec v = v_load(line + c);
            v_store(line + 2 * c, TURN_SHUFFLE(v, v, R(TURN_LO)));
            v_store(line + 2 * c + LANES, TURN_SHUFFLE(v, v, R(TURN_HI)));
        }
}

/* value[k] = box k of a batch on a line whose column `at` is line[0]; if `paired`, of a line of
 * pairs of columns. */
static MG_NOINLINE void R(box_along)(bool largest, real *restrict value, real *restrict line,
                                     const box_set *b, const box_batch *t, int64_t at,
                                     bool paired) {
    int64_t n = t->rows * t->n, step = b->step[2];
    int64_t apart = b->apart >> paired, size = b->size[2][t->i] >> paired;
    while (b->paired && size % 2 == 0 && apart % 2 == 0) {
        apart /= 2;
        size /= 2;
        R(box_halve)(largest, apart == 1 ? value : line, line, n * apart);
        if (apart == 1) return;
    }
    for (int64_t k = 0, m; k < n; k += m) {
        const real *from = line + (b->tiled ? k * apart : b->start[2][t->i + k] - at);
        if (!b->tiled) size = b->size[2][t->i + k];
        m = apart > 2 ? 1 : mg_min(box_alike(b, t->i + k, LANES), n - k);
        if (m == 1) value[k] = R(box_fold)(largest, from, size, step);
        else R(box_store)(value + k, R(box_over)(largest, from, size, step, apart), m);
    }
}

/* ---- maxima ---------------------------------------------------------------------------------- */

/* line[c] = the maximum of column c of lines that lie `gap` apart, and what is there if `add`, for
 * nv vectors of columns, of the last of which only so many are read. */
MG_INLINE void R(box_columns_max)(const int nv, const bool whole, real *line, const real *x,
                                  int64_t gap, int64_t lines, int64_t left, bool add) {
    vec v[2];
    MG_UNROLL
    for (int k = 0; k < nv; k++)
        v[k] = whole ? v_load(x + k * LANES) : v_load_n(x + k * LANES, (int)left);
    for (const real *from = x; --lines > 0;) {
        from += gap;
        __builtin_prefetch((const char *)from + BOX_AHEAD);
        MG_UNROLL
        for (int k = 0; k < nv; k++) {
            const real *at = from + k * LANES;
            v[k] = R(box_join)(true, v[k], whole ? v_load(at) : v_load_n(at, (int)left));
        }
    }
    __builtin_prefetch((const char *)x + BOX_AHEAD);
    MG_UNROLL
    for (int k = 0; k < nv; k++) {
        if (add) v[k] = R(box_join)(true, v_load(line + k * LANES), v[k]);
        v_store(line + k * LANES, v[k]);
    }
}

/* The same of `width` columns, and then of further rows of boxes, `below` on, whose columns come
 * `side` later. Masks cost little where there are 16 lanes: few columns are whole vectors then. */
static MG_NOINLINE void R(box_lines_max)(real *restrict line, const real *restrict x, int64_t gap,
                                         int64_t lines, int64_t width, bool add, int64_t rows,
                                         int64_t below, int64_t side) {
    for (; !BOX_PAIRWISE && rows > 0; rows--, x += below, line += side) {
        int64_t c = 0;
        for (; c + 2 * LANES <= width; c += 2 * LANES)
            R(box_columns_max)(2, true, line + c, x + c, gap, lines, 0, add);
        for (; c < width; c += LANES) { /* some twice */
            int64_t at = width < LANES ? 0 : mg_min(c, width - LANES);
            if (width < LANES) R(box_columns_max)(1, false, line, x, gap, lines, width, add);
            else R(box_columns_max)(1, true, line + at, x + at, gap, lines, 0, add);
        }
    }
    for (; rows > 0; rows--, x += below, line += side) {
        const real *from = x;
        bool join = add;
        for (int64_t left = lines; left > 0; left -= 2 - left % 2, join = true) {
            bool two = left % 2 == 0; /* the first alone if they are odd */
            for (int64_t c = 0; c < width; c += LANES) {
                const real *next = from + gap;
                __builtin_prefetch((const char *)(from + c) + BOX_AHEAD);
                vec v = R(box_load)(from + c, width - c);
                if (two) {
                    __builtin_prefetch((const char *)(next + c) + BOX_AHEAD);
                    v = R(box_join)(true, v, R(box_load)(next + c, width - c));
                }
                if (join) v = R(box_join)(true, v_load(line + c), v);
                v_store(line + c, v);
            }
            from += (1 + two) * gap;
        }
    }
}

/* The columns of n <= LANES tiles of two, in one line. */
MG_INLINE void R(box_load_pairs)(vec *low, vec *high, const real *line, int64_t n, int64_t ahead) {
    bool whole = n == LANES;
    *low = whole ? v_load(line) : R(box_load)(line, 2 * n);
    *high = whole ? v_load(line + LANES) : R(box_load)(line + LANES, mg_max(2 * n - LANES, 0));
    __builtin_prefetch((const char *)line + ahead);
}

/* out[k] = the maximum of tile k of those, of one line or of another `gap` later. */
MG_INLINE void R(box_some_pairs_max)(real *out, const real *x, int64_t n, int64_t gap,
                                     int64_t ahead) {
    vec low, high, low2, high2;
    R(box_load_pairs)(&low, &high, x, n, ahead);
    if (gap > 0) {
        R(box_load_pairs)(&low2, &high2, x + gap, n, ahead);
        low = R(box_join)(true, low, low2);
        high = R(box_join)(true, high, high2);
    }
    __builtin_prefetch((const char *)out + ahead, 1);
    R(box_store)(out, R(box_pairs)(true, low, high), n);
}

/* The maxima of a plane of such tiles, straight from their lines. Of a line that is no whole number
 * of vectors the last ones are made twice. */
static MG_NOINLINE void R(box_pairs_max)(real *restrict out, const real *restrict x,
                                         const box_set *b) {
    int64_t n = b->count[2], below, gap, ahead = b->ahead;
    x += box_pairs_first(b, &gap, &below);
    for (int64_t r = b->count[1]; r > 0; r--, x += below, out += n) {
        if (BOX_SHORT && n < LANES) R(box_some_pairs_max)(out, x, n, gap, ahead);
        for (int64_t c = 0; (!BOX_SHORT || n >= LANES) && c < n; c += LANES) {
            int64_t at = mg_min(c, n - LANES);
            R(box_some_pairs_max)(out + at, x + 2 * at, LANES, gap, ahead);
        }
    }
}

/* The same of all lines of a row, from column `at` on, and of `rows` rows if they are alike. */
MG_INLINE void R(box_row_max)(real *restrict line, const real *restrict x, const box_set *b,
                              const box_row *row, int64_t at, int64_t width, int64_t rows,
                              int64_t side) {
    int64_t gap = b->step[1] * b->n[2], some = b->size[1][row->i1];
    for (int64_t q = 0; q < row->lines; q += some)
        R(box_lines_max)(line, x + box_line(b, row, q) + at, gap, some, width, q > 0, rows,
                         b->below * b->n[2], side);
}

/* best[k] = the maximum of box k of a batch. */
static MG_NOINLINE void R(box_best)(real *restrict best, const real *restrict x, const box_set *b,
                                    const box_batch *t) {
    _Alignas(64) real line[BOX_STRIP + 2 * LANES], *end = line;
    int64_t at, width = box_width(b, t, &at), size;
    box_row row = t->row;
    if (width <= BOX_STRIP) {
        int64_t some = box_rows(b, t), side = t->n * b->apart;
        for (int64_t r = 0; r < t->rows; r += some, box_next(b, &row, some), end += some * side)
            R(box_row_max)(end, x, b, &row, at, width, some, side);
        R(box_along)(true, best, line, b, t, at, false);
        return;
    }
    for (int64_t j = 0; j < b->size[2][t->i]; j += size) {
        width = box_piece(b, t->i, j, &size);
        R(box_row_max)(line, x, b, &row, at + j * b->step[2], width, 1, 0);
        real most = R(box_fold)(true, line, size, b->step[2]);
        *best = j ? R(box_join_one)(true, *best, most) : most;
    }
}

/* out[box] = its maximum. */
static void R(box_max)(real *restrict out, const real *restrict x, const box_set *b) {
    if (b->pairs && (BOX_SHORT || b->count[2] >= LANES)) {
        R(box_pairs_max)(out, x, b);
        return;
    }
    for (box_batch t = box_first_batch(b); t.n > 0; box_next_batch(b, &t)) {
        R(box_best)(out, x, b, &t);
        out += t.rows * t.n;
    }
}

/* at[k] = where the maximum of box i + k is, from its first element on: the first of ties, or the
 * first NaN. */
static MG_NOINLINE void R(box_find)(ireal *restrict at, const real *restrict best,
                                    const real *restrict x, const box_set *b, const box_row *row,
                                    int64_t i, int64_t n) {
    int64_t size = b->size[2][i], step = b->step[2];
    const real *start = x + box_line(b, row, 0) + b->start[2][i];
    R(box_mask) found = {0};
    vec y = v_load_n(best, (int)n);
    for (int64_t q = row->lines; q-- > 0;) { /* the first comes last */
        const real *line = x + box_line(b, row, q) + b->start[2][i];
        for (int64_t j = size; j-- > 0;) {
            vec v = R(box_pick)(line + j * step, b->apart, n);
            R(box_mask) hit = (v == y) | (v != v);
            R(box_mask) place = (ireal)(line - start + j * step) - (R(box_mask)){0};
            found = (hit & place) | (~hit & found);
        }
    }
    v_store((real *)at, (vec)found);
}

/* The same of one box, whose neighbouring columns are the lanes. */
static MG_NOINLINE ireal R(box_find_one)(real best, const real *restrict x, const box_set *b,
                                         const box_row *row, int64_t i) {
    int64_t size = b->size[2][i], step = b->step[2];
    const real *start = x + box_line(b, row, 0) + b->start[2][i];
    const ireal beyond = (ireal)(~(uint64_t)0 >> (65 - 8 * sizeof(ireal)));
    R(box_mask) lane, found = beyond - (R(box_mask)){0};
    vec y = v_set1(best);
    for (int l = 0; l < LANES; l++) lane[l] = l;
    for (int64_t q = 0; q < row->lines; q++) {
        const real *line = x + box_line(b, row, q) + b->start[2][i];
        for (int64_t j = 0; j < size; j += LANES) {
            int64_t left = mg_min(size - j, LANES);
            real part[LANES] = {0};
            MG_ROLLED
            for (int64_t l = 0; l < left && step > 1; l++) {
                MG_AS_IT_IS;
                part[l] = line[(j + l) * step];
            }
            vec v = step > 1 ? v_load(part) : R(box_load)(line + j, left);
            R(box_mask) place = lane * (ireal)step + (ireal)(line - start + j * step);
            R(box_mask) hit = ((v == y) | (v != v)) & (lane < (ireal)left) & (place < found);
            found = (hit & place) | (~hit & found);
        }
    }
    ireal first = beyond;
    for (int l = 0; l < LANES; l++) first = found[l] < first ? found[l] : first;
    return first;
}

/* How many columns of a batch of tiles are their tile's maximum, or NaN. `top`: the maxima, each in
 * all columns of its tile. Given `up`, out gets what that has for a column there, 0 elsewhere. */
static MG_NOINLINE int64_t R(box_hits)(real *restrict out, const real *restrict up,
                                       const real *restrict top, const real *restrict x,
                                       const box_set *b, const box_batch *t) {
    int64_t first, width = box_width(b, t, &first), hits = 0;
    R(box_mask) lane, count = {0};
    for (int l = 0; l < LANES; l++) lane[l] = l;
    box_row row = t->row;
    for (int64_t r = 0; r < t->rows; r++, box_next(b, &row, 1), top += width)
        for (int64_t q = 0; q < row.lines; q++) {
            int64_t at = box_line(b, &row, q) + first;
            for (int64_t c = 0; c < width; c += LANES) {
                int64_t left = width - c;
                vec v = R(box_load)(x + at + c, left);
                R(box_mask) hit = ((v == v_load(top + c)) | (v != v)) & (lane < (ireal)left);
                count -= hit;
                if (!up) continue;
                __builtin_prefetch((const char *)(out + at + c) + BOX_AHEAD, 1);
                vec upstream = v_load(up + r * width + c);
                R(box_store)(out + at + c, (vec)(hit & (R(box_mask))upstream), left);
            }
        }
    for (int l = 0; l < LANES; l++) hits += count[l];
    return hits;
}

/* out[...] = g[box] where the box has its maximum, 0 elsewhere, for a batch of tiles. False if some
 * have several such places: then it is 0 everywhere. */
static MG_NOINLINE bool R(box_to_max)(real *restrict out, const real *restrict g,
                                      const real *restrict best, const real *restrict x,
                                      const box_set *b, const box_batch *t) {
    _Alignas(64) real top[BOX_STRIP + 3 * LANES], up[BOX_STRIP + 3 * LANES];
    int64_t n = t->rows * t->n;
    memcpy(top, best, (size_t)n * sizeof(real));
    R(box_repeat)(top, n, b->apart);
    bool single = R(box_hits)(NULL, NULL, top, x, b, t) == n;
    for (int64_t k = 0; k < n; k += LANES) {
        int64_t left = single ? mg_min(n - k, LANES) : 0;
        v_store(up + k, v_load_n(g + k, (int)left));
    }
    R(box_repeat)(up, n, b->apart);
    R(box_hits)(out, up, top, x, b, t);
    return single;
}

#if MG_HAS_WIDE
/* out[...] = g[box] where the box has its maximum, the first of ties or the first NaN, and 0
 * elsewhere in it, for tiles of two columns and one or two lines in rows that share no line. One
 * line is two that are the same, of which the first is written last. */
static MG_NOINLINE void R(box_pairs_to_max)(real *restrict out, const real *restrict g,
                                            const real *restrict x, const box_set *b) {
    const vec none = v_set1(0);
    int64_t n = b->count[2], below, gap, ahead = b->ahead, start = box_pairs_first(b, &gap, &below);
    x += start;
    out += start;
    for (int64_t r = b->count[1]; r > 0; r--, x += below, out += below, g += n)
        for (int64_t c = 0; c < n; c += LANES) {
            vec first[2], second[2], most[2], share[2], up;
            int64_t at = mg_max(mg_min(c, n - LANES), 0), left = 2 * (n - at);
            int64_t more = mg_max(left - LANES, 0);
            const real *from = x + 2 * at;
            real *to = out + 2 * at + gap;
            MG_UNROLL
            for (int k = 0; k < 2; k++, from += gap) {
                vec low = R(box_load)(from, left), high = R(box_load)(from + LANES, more);
                __builtin_prefetch((const char *)from + ahead);
                first[k] = TURN_SHUFFLE(low, high, R(BOX_EVEN));
                second[k] = TURN_SHUFFLE(low, high, R(BOX_ODD));
                most[k] = R(v_choose_passed)(first[k], second[k], second[k], first[k]);
            }
            up = R(box_load)(g + at, n - at);
            share[0] = R(v_choose_passed)(most[0], most[1], none, up);
            share[1] = R(v_choose_passed)(most[0], most[1], up, none);
            MG_UNROLL
            for (int k = 1; k >= 0; k--, to -= gap) {
                vec a = R(v_choose_passed)(first[k], second[k], none, share[k]);
                vec z = R(v_choose_passed)(first[k], second[k], share[k], none);
                __builtin_prefetch((const char *)to + ahead, 1);
                R(box_store_far)(to, TURN_SHUFFLE(a, z, R(TURN_LO)), left);
                R(box_store_far)(to + LANES, TURN_SHUFFLE(a, z, R(TURN_HI)), more);
            }
        }
}
#endif

/* places[box] = where in the plane its maximum is, or out[there] += g[box]. */
static void R(box_argmax)(int64_t *restrict places, real *restrict out, const real *restrict g,
                          const real *restrict x, const box_set *b) {
    real best[BOX_STRIP];
    ireal at[LANES];
#if MG_HAS_WIDE
    if (!places && b->pairs && b->size[1][0] * b->step[1] <= b->below) {
        R(box_pairs_to_max)(out, g, x, b);
        return;
    }
#endif
    for (box_batch t = box_first_batch(b); t.n > 0; box_next_batch(b, &t)) {
        R(box_best)(best, x, b, &t);
        if (b->fills && !places && R(box_to_max)(out, g, best, x, b, &t)) {
            g += t.rows * t.n;
            continue;
        }
        box_row row = t.row;
        for (int64_t r = 0, k = 0, m; r < t.rows; r++, box_next(b, &row, 1), k = 0)
            for (const real *top = best + r * t.n; k < t.n; k += m) {
                int64_t i = t.i + k;
                m = b->apart > 2 ? 1 : mg_min(box_alike(b, i, LANES), t.n - k);
                if (m > 1) R(box_find)(at, top + k, x, b, &row, i, m);
                else at[0] = R(box_find_one)(top[k], x, b, &row, i);
                int64_t start = box_line(b, &row, 0) + b->start[2][i];
                MG_ROLLED
                for (int64_t l = 0; l < m; l++) {
                    MG_AS_IT_IS;
                    int64_t place = start + l * b->apart + at[l];
                    if (places) *places++ = place;
                    else out[place] += *g++;
                }
            }
    }
}
