/* max.inc.c: maxima over the pooling windows of one plane, and how windows are formed along a line;
 * a template.
 *
 * First all lines that a row of windows covers are joined to one line, in buffers of POOL_STRIP
 * columns. Windows are then formed along that line. Sums are doubles. Lanes are neighbours on the
 * lines, and later the windows that lie 1 or 2 apart. The lines of several rows of tiles are put
 * side by side. Tiles of an even size are halved, their columns in pairs, until tiles are 1 or 2
 * apart.
 */
#include "simd/real.h"

typedef ireal R(pool_mask) __attribute__((vector_size(MG_VECTOR_BYTES)));

MG_INLINE vec R(pool_choose)(R(pool_mask) mask, vec yes, vec no) {
    return (vec)((mask & (R(pool_mask))yes) | (~mask & (R(pool_mask))no));
}

/* The first `left` elements, at most a vector; 0 in the other lanes. */
MG_INLINE vec R(pool_load)(const real *p, int64_t left) {
    if (POOL_MASKS) return v_load_n(p, (int)mg_min(left, LANES));
    return left >= LANES ? v_load(p) : v_load_n(p, (int)left);
}
MG_INLINE void R(pool_store)(real *p, vec v, int64_t left) {
    if (left >= LANES) v_store(p, v);
    else v_store_n(p, v, (int)left);
}

/* The same as a single store, if masks cost nothing. Not for memory that is soon read again. */
MG_INLINE void R(pool_store_far)(real *p, vec v, int64_t left) {
    if (MG_VECTOR_BYTES == 64) v_store_n(p, v, (int)mg_min(left, LANES));
    else R(pool_store)(p, v, left);
}

/* Lane l < n: from[l * apart], with apart 1 or 2. Other lanes are arbitrary. */
MG_INLINE vec R(pool_pick)(const real *from, int64_t apart, int64_t n) {
    int64_t reach = (n - 1) * apart + 1;
    vec low = R(pool_load)(from, reach);
    if (apart == 1) return low;
    return TRANSPOSE_SHUFFLE(low, R(pool_load)(from + LANES, mg_max(reach - LANES, 0)), R(POOL_EVEN));
}

/* ---- along a line ---------------------------------------------------------------------------- */

/* The sum; or the larger, where NaN is larger than all numbers. */
MG_INLINE vec R(pool_join)(bool largest, vec a, vec b) {
#if MG_HAS_WIDE
    if (largest) return R(v_largest)(a, b);
#else
    if (largest) return R(pool_choose)((b > a) | (b != b), b, a);
#endif
    return a + b;
}
MG_INLINE real R(pool_join_one)(bool largest, real a, real b) {
    real larger = b > a ? b : a;
    if (largest) return b != b ? b : larger;
    return a + b;
}

/* The sum or maximum of `size` elements that lie `step` apart. */
static MG_NOINLINE real R(pool_fold)(bool largest, const real *from, int64_t size, int64_t step) {
    real value = from[0];
    int64_t j = 1;
    if (step == 1 && size >= 2 * LANES) {
        real lane[LANES];
        vec v = v_load(from);
        for (j = LANES; j + LANES <= size; j += LANES)
            v = R(pool_join)(largest, v, v_load(from + j));
        v_store(lane, v);
        value = lane[0];
        MG_ROLLED
        for (int l = 1; l < LANES; l++) {
            MG_AS_IT_IS;
            value = R(pool_join_one)(largest, value, lane[l]);
        }
    }
    for (; j < size; j++) {
        MG_AS_IT_IS;
        value = R(pool_join_one)(largest, value, from[j * step]);
    }
    return value;
}

/* The sums or maxima of LANES windows that lie 1 or 2 apart. Reads two vectors from every element
 * on. */
MG_INLINE vec R(pool_over)(bool largest, const real *from, int64_t size, int64_t step,
                          int64_t apart) {
    vec v = {0}, next;
    for (int64_t j = 0; j < size; j++, from += step) {
        vec low = v_load(from);
        if (apart == 2) {
            vec high = v_load(from + LANES);
            next = TRANSPOSE_SHUFFLE(low, high, R(POOL_EVEN));
            v = j == 0 ? next : R(pool_join)(largest, v, next);
            if (step > 1 || j + 1 == size) continue;
            low = TRANSPOSE_SHUFFLE(low, high, R(POOL_ODD)); /* the next element of each window */
            from += step;
            j++;
        }
        v = j == 0 ? low : R(pool_join)(largest, v, low);
    }
    return v;
}

/* Joins each even element of two vectors with the next element. With 32 bytes the elements of each
 * 16 bytes of both vectors are joined, and put in order afterwards. */
MG_INLINE vec R(pool_pairs)(bool largest, vec low, vec high) {
#if MG_VECTOR_BYTES == 32
    vec even = TRANSPOSE_SHUFFLE(low, high, R(TRANSPOSE_EVEN)), odd = TRANSPOSE_SHUFFLE(low, high, R(TRANSPOSE_ODD));
    __m256d both = (__m256d)R(pool_join)(largest, even, odd);
    return (vec)_mm256_permute4x64_pd(both, 0xd8);
#else
    vec even = TRANSPOSE_SHUFFLE(low, high, R(POOL_EVEN)), odd = TRANSPOSE_SHUFFLE(low, high, R(POOL_ODD));
    return R(pool_join)(largest, even, odd);
#endif
}

/* to[k] = the join of columns 2k and 2k + 1 of the line, k < n. `to` may be the line. */
MG_INLINE void R(pool_halve)(bool largest, real *to, const real *line, int64_t n) {
    for (int64_t k = 0; k < n; k += LANES) {
        vec low = v_load(line + 2 * k), high = v_load(line + 2 * k + LANES);
        R(pool_store)(to + k, R(pool_pairs)(largest, low, high), n - k);
    }
}

/* Repeats each of the first n columns of a line `size` times, in place. Writes up to two vectors
 * more. */
static MG_NOINLINE void R(pool_repeat)(real *line, int64_t n, int64_t size) {
    int64_t odd = size / (size & -size);
    for (int64_t k = n; odd > 1 && k-- > 0;) /* from the last one on */
        for (int64_t c = 0; c < odd; c++) {
            MG_AS_IT_IS;
            line[k * odd + c] = line[k];
        }
    for (int64_t width = n * odd; width < n * size; width *= 2) /* each column twice */
        for (int64_t c = (width - 1) / LANES * LANES; c >= 0; c -= LANES) {
            vec v = v_load(line + c);
            v_store(line + 2 * c, TRANSPOSE_SHUFFLE(v, v, R(TRANSPOSE_LO)));
            v_store(line + 2 * c + LANES, TRANSPOSE_SHUFFLE(v, v, R(TRANSPOSE_HI)));
        }
}

/* value[k] = window k of a batch, on a line whose column `at` is line[0]. With `paired` the columns
 * of the line are already joined in pairs. */
static MG_NOINLINE void R(pool_along)(bool largest, real *restrict value, real *restrict line,
                                     const pool_set *b, const pool_batch *t, int64_t at,
                                     bool paired) {
    int64_t n = t->rows * t->n, step = b->step[2];
    int64_t apart = b->apart >> paired, size = b->size[2][t->i] >> paired;
    while (b->paired && size % 2 == 0 && apart % 2 == 0) {
        apart /= 2;
        size /= 2;
        R(pool_halve)(largest, apart == 1 ? value : line, line, n * apart);
        if (apart == 1) return;
    }
    for (int64_t k = 0, m; k < n; k += m) {
        const real *from = line + (b->tiled ? k * apart : b->start[2][t->i + k] - at);
        if (!b->tiled) size = b->size[2][t->i + k];
        m = apart > 2 ? 1 : mg_min(pool_alike(b, t->i + k, LANES), n - k);
        if (m == 1) value[k] = R(pool_fold)(largest, from, size, step);
        else R(pool_store)(value + k, R(pool_over)(largest, from, size, step, apart), m);
    }
}

/* ---- maxima ---------------------------------------------------------------------------------- */

/* line[c] = the maximum of column c over lines that lie `gap` apart, and over line[c] if `add`. For
 * nv vectors of columns. Only `left` lanes of the last vector are read unless `whole`. */
MG_INLINE void R(pool_columns_max)(const int nv, const bool whole, real *line, const real *x,
                                  int64_t gap, int64_t lines, int64_t left, bool add) {
    vec v[2];
    MG_UNROLL
    for (int k = 0; k < nv; k++)
        v[k] = whole ? v_load(x + k * LANES) : v_load_n(x + k * LANES, (int)left);
    for (const real *from = x; --lines > 0;) {
        from += gap;
        __builtin_prefetch((const char *)from + POOL_AHEAD);
        MG_UNROLL
        for (int k = 0; k < nv; k++) {
            const real *at = from + k * LANES;
            v[k] = R(pool_join)(true, v[k], whole ? v_load(at) : v_load_n(at, (int)left));
        }
    }
    __builtin_prefetch((const char *)x + POOL_AHEAD);
    MG_UNROLL
    for (int k = 0; k < nv; k++) {
        if (add) v[k] = R(pool_join)(true, v_load(line + k * LANES), v[k]);
        v_store(line + k * LANES, v[k]);
    }
}

/* The same for `width` columns, and for further rows of windows, which lie `below` further and are
 * written `side` further. With 16 lanes masks cost little, and few widths are full vectors. */
static MG_NOINLINE void R(pool_lines_max)(real *restrict line, const real *restrict x, int64_t gap,
                                         int64_t lines, int64_t width, bool add, int64_t rows,
                                         int64_t below, int64_t side) {
    for (; !POOL_PAIRWISE && rows > 0; rows--, x += below, line += side) {
        int64_t c = 0;
        for (; c + 2 * LANES <= width; c += 2 * LANES)
            R(pool_columns_max)(2, true, line + c, x + c, gap, lines, 0, add);
        for (; c < width; c += LANES) { /* some columns twice */
            int64_t at = width < LANES ? 0 : mg_min(c, width - LANES);
            if (width < LANES) R(pool_columns_max)(1, false, line, x, gap, lines, width, add);
            else R(pool_columns_max)(1, true, line + at, x + at, gap, lines, 0, add);
        }
    }
    for (; rows > 0; rows--, x += below, line += side) {
        const real *from = x;
        bool join = add;
        for (int64_t left = lines; left > 0; left -= 2 - left % 2, join = true) {
            bool two = left % 2 == 0; /* an odd number: the first line alone */
            for (int64_t c = 0; c < width; c += LANES) {
                const real *next = from + gap;
                __builtin_prefetch((const char *)(from + c) + POOL_AHEAD);
                vec v = R(pool_load)(from + c, width - c);
                if (two) {
                    __builtin_prefetch((const char *)(next + c) + POOL_AHEAD);
                    v = R(pool_join)(true, v, R(pool_load)(next + c, width - c));
                }
                if (join) v = R(pool_join)(true, v_load(line + c), v);
                v_store(line + c, v);
            }
            from += (1 + two) * gap;
        }
    }
}

/* Loads the columns of n <= LANES tiles of two columns, in one line. */
MG_INLINE void R(pool_load_pairs)(vec *low, vec *high, const real *line, int64_t n, int64_t ahead) {
    bool whole = n == LANES;
    *low = whole ? v_load(line) : R(pool_load)(line, 2 * n);
    *high = whole ? v_load(line + LANES) : R(pool_load)(line + LANES, mg_max(2 * n - LANES, 0));
    __builtin_prefetch((const char *)line + ahead);
}

/* out[k] = the maximum of such a tile k, in one line or also in the line `gap` further. */
MG_INLINE void R(pool_some_pairs_max)(real *out, const real *x, int64_t n, int64_t gap,
                                     int64_t ahead) {
    vec low, high, low2, high2;
    R(pool_load_pairs)(&low, &high, x, n, ahead);
    if (gap > 0) {
        R(pool_load_pairs)(&low2, &high2, x + gap, n, ahead);
        low = R(pool_join)(true, low, low2);
        high = R(pool_join)(true, high, high2);
    }
    __builtin_prefetch((const char *)out + ahead, 1);
    R(pool_store)(out, R(pool_pairs)(true, low, high), n);
}

/* The maxima of a plane of such tiles, straight from their lines. The last tiles are computed twice
 * if a line is not a multiple of the vector. */
static MG_NOINLINE void R(pool_pairs_max)(real *restrict out, const real *restrict x,
                                         const pool_set *b) {
    int64_t n = b->count[2], below, gap, ahead = b->ahead;
    x += pool_pairs_first(b, &gap, &below);
    for (int64_t r = b->count[1]; r > 0; r--, x += below, out += n) {
        if (POOL_SHORT && n < LANES) R(pool_some_pairs_max)(out, x, n, gap, ahead);
        for (int64_t c = 0; (!POOL_SHORT || n >= LANES) && c < n; c += LANES) {
            int64_t at = mg_min(c, n - LANES);
            R(pool_some_pairs_max)(out + at, x + 2 * at, LANES, gap, ahead);
        }
    }
}

/* The same for all lines of a row from column `at` on, and for `rows` rows if they are alike. */
MG_INLINE void R(pool_row_max)(real *restrict line, const real *restrict x, const pool_set *b,
                              const pool_row *row, int64_t at, int64_t width, int64_t rows,
                              int64_t side) {
    int64_t gap = b->step[1] * b->n[2], some = b->size[1][row->i1];
    for (int64_t q = 0; q < row->lines; q += some)
        R(pool_lines_max)(line, x + pool_line(b, row, q) + at, gap, some, width, q > 0, rows,
                         b->below * b->n[2], side);
}

/* best[k] = the maximum of window k of a batch. */
static MG_NOINLINE void R(pool_best)(real *restrict best, const real *restrict x, const pool_set *b,
                                    const pool_batch *t) {
    _Alignas(64) real line[POOL_STRIP + 2 * LANES], *end = line;
    int64_t at, width = pool_width(b, t, &at), size;
    pool_row row = t->row;
    if (width <= POOL_STRIP) {
        int64_t some = pool_rows(b, t), side = t->n * b->apart;
        for (int64_t r = 0; r < t->rows; r += some, pool_next(b, &row, some), end += some * side)
            R(pool_row_max)(end, x, b, &row, at, width, some, side);
        R(pool_along)(true, best, line, b, t, at, false);
        return;
    }
    for (int64_t j = 0; j < b->size[2][t->i]; j += size) {
        width = pool_piece(b, t->i, j, &size);
        R(pool_row_max)(line, x, b, &row, at + j * b->step[2], width, 1, 0);
        real most = R(pool_fold)(true, line, size, b->step[2]);
        *best = j ? R(pool_join_one)(true, *best, most) : most;
    }
}

/* out[window] = the window's maximum. */
static void R(pool_max)(real *restrict out, const real *restrict x, const pool_set *b) {
    if (b->pairs && (POOL_SHORT || b->count[2] >= LANES)) {
        R(pool_pairs_max)(out, x, b);
        return;
    }
    for (pool_batch t = pool_first_batch(b); t.n > 0; pool_next_batch(b, &t)) {
        R(pool_best)(out, x, b, &t);
        out += t.rows * t.n;
    }
}

/* at[k] = the offset of the maximum of window i + k from its first element: the first of ties, or
 * the first NaN. */
static MG_NOINLINE void R(pool_find)(ireal *restrict at, const real *restrict best,
                                    const real *restrict x, const pool_set *b, const pool_row *row,
                                    int64_t i, int64_t n) {
    int64_t size = b->size[2][i], step = b->step[2];
    const real *start = x + pool_line(b, row, 0) + b->start[2][i];
    R(pool_mask) found = {0};
    vec y = v_load_n(best, (int)n);
    for (int64_t q = row->lines; q-- > 0;) { /* the first match comes last */
        const real *line = x + pool_line(b, row, q) + b->start[2][i];
        for (int64_t j = size; j-- > 0;) {
            vec v = R(pool_pick)(line + j * step, b->apart, n);
            R(pool_mask) hit = (v == y) | (v != v);
            R(pool_mask) place = (ireal)(line - start + j * step) - (R(pool_mask)){0};
            found = (hit & place) | (~hit & found);
        }
    }
    v_store((real *)at, (vec)found);
}

/* The same for one window, whose neighbouring columns are the lanes. */
static MG_NOINLINE ireal R(pool_find_one)(real best, const real *restrict x, const pool_set *b,
                                         const pool_row *row, int64_t i) {
    int64_t size = b->size[2][i], step = b->step[2];
    const real *start = x + pool_line(b, row, 0) + b->start[2][i];
    const ireal beyond = (ireal)(~(uint64_t)0 >> (65 - 8 * sizeof(ireal)));
    R(pool_mask) lane, found = beyond - (R(pool_mask)){0};
    vec y = v_set1(best);
    for (int l = 0; l < LANES; l++) lane[l] = l;
    for (int64_t q = 0; q < row->lines; q++) {
        const real *line = x + pool_line(b, row, q) + b->start[2][i];
        for (int64_t j = 0; j < size; j += LANES) {
            int64_t left = mg_min(size - j, LANES);
            real part[LANES] = {0};
            MG_ROLLED
            for (int64_t l = 0; l < left && step > 1; l++) {
                MG_AS_IT_IS;
                part[l] = line[(j + l) * step];
            }
            vec v = step > 1 ? v_load(part) : R(pool_load)(line + j, left);
            R(pool_mask) place = lane * (ireal)step + (ireal)(line - start + j * step);
            R(pool_mask) hit = ((v == y) | (v != v)) & (lane < (ireal)left) & (place < found);
            found = (hit & place) | (~hit & found);
        }
    }
    ireal first = beyond;
    for (int l = 0; l < LANES; l++) first = found[l] < first ? found[l] : first;
    return first;
}

/* Counts the columns of a batch of tiles that are their tile's maximum, or NaN. `top`: the maxima,
 * each repeated for all columns of its tile. With `up`, out receives up's value in columns that
 * match, and 0 elsewhere. */
static MG_NOINLINE int64_t R(pool_hits)(real *restrict out, const real *restrict up,
                                       const real *restrict top, const real *restrict x,
                                       const pool_set *b, const pool_batch *t) {
    int64_t first, width = pool_width(b, t, &first), hits = 0;
    R(pool_mask) lane, count = {0};
    for (int l = 0; l < LANES; l++) lane[l] = l;
    pool_row row = t->row;
    for (int64_t r = 0; r < t->rows; r++, pool_next(b, &row, 1), top += width)
        for (int64_t q = 0; q < row.lines; q++) {
            int64_t at = pool_line(b, &row, q) + first;
            for (int64_t c = 0; c < width; c += LANES) {
                int64_t left = width - c;
                vec v = R(pool_load)(x + at + c, left);
                R(pool_mask) hit = ((v == v_load(top + c)) | (v != v)) & (lane < (ireal)left);
                count -= hit;
                if (!up) continue;
                __builtin_prefetch((const char *)(out + at + c) + POOL_AHEAD, 1);
                vec upstream = v_load(up + r * width + c);
                R(pool_store)(out + at + c, (vec)(hit & (R(pool_mask))upstream), left);
            }
        }
    for (int l = 0; l < LANES; l++) hits += count[l];
    return hits;
}

/* out[...] = g[window] where the window has its maximum, 0 elsewhere, for a batch of tiles. False
 * if some tile has several maxima; then out is 0 everywhere. */
static MG_NOINLINE bool R(pool_to_max)(real *restrict out, const real *restrict g,
                                      const real *restrict best, const real *restrict x,
                                      const pool_set *b, const pool_batch *t) {
    _Alignas(64) real top[POOL_STRIP + 3 * LANES], up[POOL_STRIP + 3 * LANES];
    int64_t n = t->rows * t->n;
    memcpy(top, best, (size_t)n * sizeof(real));
    R(pool_repeat)(top, n, b->apart);
    bool single = R(pool_hits)(NULL, NULL, top, x, b, t) == n;
    for (int64_t k = 0; k < n; k += LANES) {
        int64_t left = single ? mg_min(n - k, LANES) : 0;
        v_store(up + k, v_load_n(g + k, (int)left));
    }
    R(pool_repeat)(up, n, b->apart);
    R(pool_hits)(out, up, top, x, b, t);
    return single;
}

#if MG_HAS_WIDE
/* out[...] = g[window] where the window has its maximum, the first of ties or the first NaN, and 0
 * elsewhere. For tiles of two columns and one or two lines, in rows that share no line. One line
 * counts as two equal lines; the result of the first is written last. */
static MG_NOINLINE void R(pool_pairs_to_max)(real *restrict out, const real *restrict g,
                                            const real *restrict x, const pool_set *b) {
    const vec none = v_set1(0);
    int64_t n = b->count[2], below, gap, ahead = b->ahead, start = pool_pairs_first(b, &gap, &below);
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
                vec low = R(pool_load)(from, left), high = R(pool_load)(from + LANES, more);
                __builtin_prefetch((const char *)from + ahead);
                first[k] = TRANSPOSE_SHUFFLE(low, high, R(POOL_EVEN));
                second[k] = TRANSPOSE_SHUFFLE(low, high, R(POOL_ODD));
                most[k] = R(v_choose_passed)(first[k], second[k], second[k], first[k]);
            }
            up = R(pool_load)(g + at, n - at);
            share[0] = R(v_choose_passed)(most[0], most[1], none, up);
            share[1] = R(v_choose_passed)(most[0], most[1], up, none);
            MG_UNROLL
            for (int k = 1; k >= 0; k--, to -= gap) {
                vec a = R(v_choose_passed)(first[k], second[k], none, share[k]);
                vec z = R(v_choose_passed)(first[k], second[k], share[k], none);
                __builtin_prefetch((const char *)to + ahead, 1);
                R(pool_store_far)(to, TRANSPOSE_SHUFFLE(a, z, R(TRANSPOSE_LO)), left);
                R(pool_store_far)(to + LANES, TRANSPOSE_SHUFFLE(a, z, R(TRANSPOSE_HI)), more);
            }
        }
}
#endif

/* places[window] = the index in the plane of the window's maximum; or out[index] += g[window]. */
static void R(pool_argmax)(int64_t *restrict places, real *restrict out, const real *restrict g,
                          const real *restrict x, const pool_set *b) {
    real best[POOL_STRIP];
    ireal at[LANES];
#if MG_HAS_WIDE
    if (!places && b->pairs && b->size[1][0] * b->step[1] <= b->below) {
        R(pool_pairs_to_max)(out, g, x, b);
        return;
    }
#endif
    for (pool_batch t = pool_first_batch(b); t.n > 0; pool_next_batch(b, &t)) {
        R(pool_best)(best, x, b, &t);
        if (b->fills && !places && R(pool_to_max)(out, g, best, x, b, &t)) {
            g += t.rows * t.n;
            continue;
        }
        pool_row row = t.row;
        for (int64_t r = 0, k = 0, m; r < t.rows; r++, pool_next(b, &row, 1), k = 0)
            for (const real *top = best + r * t.n; k < t.n; k += m) {
                int64_t i = t.i + k;
                m = b->apart > 2 ? 1 : mg_min(pool_alike(b, i, LANES), t.n - k);
                if (m > 1) R(pool_find)(at, top + k, x, b, &row, i, m);
                else at[0] = R(pool_find_one)(top[k], x, b, &row, i);
                int64_t start = pool_line(b, &row, 0) + b->start[2][i];
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
