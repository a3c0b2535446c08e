/* box.inc.c: the boxes of one plane, for one float width; box.c reads it for doubles, then for
 * floats.
 *
 * All lines that a row of boxes reaches over become one first, in buffers of BOX_STRIP columns;
 * boxes are then formed along that line. Sums are doubles. Lanes are neighbours on the lines, and
 * then the boxes that lie 1 or 2 apart. */
#include "real.h"

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
    if (largest) return R(box_choose)((b > a) | (b != b), b, a);
    return a + b;
}
MG_INLINE real R(box_join_one)(bool largest, real a, real b) {
    real larger = b > a ? b : a;
    if (largest) return b != b ? b : larger;
    return a + b;
}

/* Of `size` elements, `step` apart. */
MG_INLINE real R(box_fold)(bool largest, const real *from, int64_t size, int64_t step) {
    real value = from[0];
    int64_t j = 1;
    if (step == 1 && size >= 2 * LANES) {
        real lane[LANES];
        vec v = v_load(from);
        for (j = LANES; j + LANES <= size; j += LANES) v = R(box_join)(largest, v, v_load(from + j));
        v_store(lane, v);
        value = lane[0];
        BOX_ROLLED
        for (int l = 1; l < LANES; l++) {
            BOX_AS_IT_IS;
            value = R(box_join_one)(largest, value, lane[l]);
        }
    }
    for (; j < size; j++) {
        BOX_AS_IT_IS;
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

/* value[k] = box i + k of a line whose column `at` is line[0], k < n. */
static MG_NOINLINE void R(box_along)(bool largest, real *restrict value, const real *restrict line,
                            const box_set *b, int64_t at, int64_t i, int64_t n) {
    int64_t step = b->step[2];
    for (int64_t end = i + n, m; i < end; i += m, value += m) {
        const real *from = line + b->start[2][i] - at;
        int64_t size = b->size[2][i];
        m = b->apart > 2 ? 1 : mg_min(box_alike(b, i, LANES), end - i);
        if (m == 1) {
            *value = R(box_fold)(largest, from, size, step);
            continue;
        }
        vec v = R(box_over)(largest, from, size, step, b->apart);
        R(box_store)(value, v, m);
    }
}

/* ---- maxima ---------------------------------------------------------------------------------- */

/* line[c] = the maximum of column at + c of all lines of a row; two vectors of 0 behind them. */
MG_INLINE void R(box_lines_max)(real *restrict line, const real *restrict x, const box_set *b,
                                const box_row *row, int64_t at, int64_t width) {
    for (int64_t j0 = 0; j0 < row->size0; j0++)
        for (int64_t j1 = 0; j1 < row->size1; j1++) {
            const real *from = x + box_line(b, row, j0, j1) + at;
            for (int64_t c = 0; c < width; c += LANES) {
                vec v = R(box_load)(from + c, width - c);
                if (j0 + j1 > 0) v = R(box_join)(true, v_load(line + c), v);
                v_store(line + c, v);
            }
        }
    v_store(line + width, v_set1(0));
    v_store(line + width + LANES, v_set1(0));
}

/* best[k] = the maximum of box i + k of a row, k < n, which lie on one strip; or i's alone. */
static MG_NOINLINE void R(box_best)(real *restrict best, const real *restrict x, const box_set *b,
                                    const box_row *row, int64_t i, int64_t n) {
    real line[BOX_STRIP + 2 * LANES];
    int64_t at, width = box_width(b, i, n, &at), size;
    if (width <= BOX_STRIP) {
        R(box_lines_max)(line, x, b, row, at, width);
        R(box_along)(true, best, line, b, at, i, n);
        return;
    }
    for (int64_t j = 0; j < b->size[2][i]; j += size) {
        width = box_piece(b, i, j, &size);
        R(box_lines_max)(line, x, b, row, at + j * b->step[2], width);
        real most = R(box_fold)(true, line, size, b->step[2]);
        *best = j ? R(box_join_one)(true, *best, most) : most;
    }
}

/* out[box] = its maximum. */
static void R(box_max)(real *restrict out, const real *restrict x, const box_set *b) {
    for (box_row row = box_first(b); row.left > 0; box_next(b, &row))
        for (int64_t i = 0, n; i < b->count[2]; i += n, out += n) {
            n = box_together(b, i);
            R(box_best)(out, x, b, &row, i, n);
        }
}

/* at[k] = where the maximum of box i + k is, from its first element on: the first of ties, or the
 * first NaN. */
static MG_NOINLINE void R(box_find)(ireal *restrict at, const real *restrict best,
                                    const real *restrict x, const box_set *b, const box_row *row,
                                    int64_t i, int64_t n) {
    int64_t size = b->size[2][i], step = b->step[2];
    const real *start = x + box_line(b, row, 0, 0) + b->start[2][i];
    R(box_mask) found = {0};
    vec y = v_load_n(best, (int)n);
    for (int64_t j0 = row->size0; j0-- > 0;) /* the first comes last */
        for (int64_t j1 = row->size1; j1-- > 0;) {
            const real *line = x + box_line(b, row, j0, j1) + b->start[2][i];
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
    const real *start = x + box_line(b, row, 0, 0) + b->start[2][i];
    const ireal beyond = (ireal)(~(uint64_t)0 >> (65 - 8 * sizeof(ireal)));
    R(box_mask) lane, found = beyond - (R(box_mask)){0};
    vec y = v_set1(best);
    for (int l = 0; l < LANES; l++) lane[l] = l;
    for (int64_t j0 = 0; j0 < row->size0; j0++)
        for (int64_t j1 = 0; j1 < row->size1; j1++) {
            const real *line = x + box_line(b, row, j0, j1) + b->start[2][i];
            for (int64_t j = 0; j < size; j += LANES) {
                int64_t left = mg_min(size - j, LANES);
                real part[LANES] = {0};
                BOX_ROLLED
                for (int64_t l = 0; l < left && step > 1; l++) {
                    BOX_AS_IT_IS;
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

/* places[box] = where in the plane its maximum is, or out[there] += g[box]. */
static void R(box_argmax)(int64_t *restrict places, real *restrict out, const real *restrict g,
                          const real *restrict x, const box_set *b) {
    real best[BOX_STRIP];
    ireal at[LANES];
    for (box_row row = box_first(b); row.left > 0; box_next(b, &row))
        for (int64_t i = 0, n; i < b->count[2]; i += n) {
            n = box_together(b, i);
            R(box_best)(best, x, b, &row, i, n);
            for (int64_t k = 0, m; k < n; k += m) {
                m = b->apart > 2 ? 1 : mg_min(box_alike(b, i + k, LANES), n - k);
                if (m > 1) R(box_find)(at, best + k, x, b, &row, i + k, m);
                else at[0] = R(box_find_one)(best[k], x, b, &row, i + k);
                int64_t start = box_line(b, &row, 0, 0) + b->start[2][i + k];
                BOX_ROLLED
                for (int64_t l = 0; l < m; l++) {
                    BOX_AS_IT_IS;
                    int64_t place = start + l * b->apart + at[l];
                    if (places) *places++ = place;
                    else out[place] += *g++;
                }
            }
        }
}

/* ---- sums ------------------------------------------------------------------------------------ */

/* By the divisor of box i: for floats, whose sums are doubles still, times its reciprocal. */
MG_INLINE vec_f64 R(box_scaled)(vec_f64 sum, const box_set *b, const box_row *row, int64_t i) {
    if (!b->divisor[2]) return sum;
    double divisor = row->divisor * (double)b->divisor[2][i];
    return sizeof(real) == 4 ? sum * v_set1_f64(1 / divisor) : sum / v_set1_f64(divisor);
}

/* line[c] = the sum of column at + c of all lines of a row; two vectors of 0 behind them. */
MG_INLINE void R(box_lines_sum)(double *restrict line, const real *restrict x, const box_set *b,
                                const box_row *row, int64_t at, int64_t width) {
    for (int64_t j0 = 0; j0 < row->size0; j0++)
        for (int64_t j1 = 0; j1 < row->size1; j1++) {
            const real *from = x + box_line(b, row, j0, j1) + at;
            for (int64_t c = 0; c < width; c += BOX_WIDE) {
                real part[LANES];
                bool whole = width - c >= BOX_WIDE;
                if (!whole) v_store(part, v_load_n(from + c, (int)(width - c)));
                vec_f64 v = R(box_widen)(whole ? from + c : part);
                if (j0 + j1 > 0) v += v_load_f64(line + c);
                v_store_f64(line + c, v);
            }
        }
    v_store_f64(line + width, v_set1_f64(0));
    v_store_f64(line + width + BOX_WIDE, v_set1_f64(0));
}

/* out[k] = the sum of box i + k of a row by its divisor; as box_best. */
static MG_NOINLINE void R(box_mean)(real *restrict out, const real *restrict x, const box_set *b,
                                    const box_row *row, int64_t i, int64_t n) {
    double line[BOX_STRIP + 2 * BOX_WIDE], sum[BOX_STRIP];
    int64_t at, width = box_width(b, i, n, &at), size;
    if (width <= BOX_STRIP) {
        R(box_lines_sum)(line, x, b, row, at, width);
        box_along_f64(false, sum, line, b, at, i, n);
    } else {
        sum[0] = 0;
        for (int64_t j = 0; j < b->size[2][i]; j += size) {
            width = box_piece(b, i, j, &size);
            R(box_lines_sum)(line, x, b, row, at + j * b->step[2], width);
            sum[0] += box_fold_f64(false, line, size, b->step[2]);
        }
    }
    for (int64_t k = 0, m; k < n; k += m) {
        real mean[LANES];
        m = mg_min(box_alike(b, i + k, BOX_WIDE), n - k);
        vec_f64 v = R(box_scaled)(box_load_f64(sum + k, m), b, row, i + k);
        R(box_narrow)(m == BOX_WIDE ? out + k : mean, v);
        if (m < BOX_WIDE) v_store_n(out + k, v_load(mean), (int)m);
    }
}

/* out[box] = the sum of its elements by its divisor. */
static void R(box_sum)(real *restrict out, const real *restrict x, const box_set *b) {
    for (box_row row = box_first(b); row.left > 0; box_next(b, &row))
        for (int64_t i = 0, n; i < b->count[2]; i += n, out += n) {
            n = box_together(b, i);
            R(box_mean)(out, x, b, &row, i, n);
        }
}

/* ---- sums, the way back ---------------------------------------------------------------------- */

/* The first n of g by the divisor of box i, n <= LANES; the others are 0. */
MG_INLINE vec R(box_shares)(const real *g, int64_t n, const box_set *b, const box_row *row,
                            int64_t i) {
    real share[LANES];
    v_store(share, R(box_load)(g, n));
    for (int l = 0; l < LANES; l += BOX_WIDE)
        R(box_narrow)(share + l, R(box_scaled)(R(box_widen)(share + l), b, row, i));
    return v_load(share);
}

/* line[c] = the sum of g[k] by its divisor over the boxes i + k that column at + c lies in. */
MG_INLINE void R(box_share)(real *restrict line, const real *restrict g, const box_set *b,
                            const box_row *row, int64_t at, int64_t width, int64_t i, int64_t n) {
    int64_t step = b->step[2];
    for (int64_t c = 0; c < width + 2 * LANES; c += LANES) v_store(line + c, v_set1(0));
    for (int64_t end = i + n, m; i < end; i += m, g += m) {
        m = b->apart > 2 ? 1 : mg_min(box_alike(b, i, LANES), end - i);
        vec share = R(box_shares)(g, m, b, row, i);
        real *to = line + b->start[2][i] - at, *last = to + (b->size[2][i] - 1) * step;
        for (; to <= last; to += step)
            if (m == 1) {
                *to += share[0];
            } else if (b->apart == 1) {
                v_store(to, v_load(to) + share);
            } else { /* what comes next in the boxes, at once if it is the next column */
                bool both = step == 1 && to < last;
                vec next = v_set1(both ? 1 : 0) * share;
                vec low = TURN_SHUFFLE(share, next, R(TURN_LO));
                vec high = TURN_SHUFFLE(share, next, R(TURN_HI));
                v_store(to, v_load(to) + low);
                v_store(to + LANES, v_load(to + LANES) + high);
                to += both;
            }
    }
}

/* The line is added to columns at to at + width of all lines of a row, or written, with all of
 * their columns, to those from `fresh` on. Returns the next `fresh`. */
static MG_NOINLINE int64_t R(box_add_line)(real *restrict out, const real *restrict line,
                                           const box_set *b, const box_row *row, int64_t at,
                                           int64_t width, int64_t fresh) {
    for (int64_t j0 = 0; j0 < row->size0; j0++)
        for (int64_t j1 = 0; j1 < row->size1; j1++) {
            int64_t first = box_line(b, row, j0, j1), number = first / b->n[2];
            bool add = number < fresh;
            real *to = out + first + at;
            if (number > fresh)
                memset(out + fresh * b->n[2], 0,
                       (size_t)((number - fresh) * b->n[2]) * sizeof(real));
            for (int64_t c = 0; c < width; c += LANES) {
                vec v = v_load(line + c);
                if (add) v += R(box_load)(to + c, width - c);
                R(box_store)(to + c, v, width - c);
            }
            fresh = mg_max(fresh, number + 1);
        }
    return fresh;
}

/* out[...] = the sum of g[box] by its divisor over the boxes that an element lies in. */
static void R(box_spread)(real *restrict out, const real *restrict g, const box_set *b) {
    real line[BOX_STRIP + 3 * LANES];
    int64_t lines = b->n[0] * b->n[1], fresh = b->n[2] <= BOX_STRIP ? 0 : lines, at;
    if (fresh) memset(out, 0, (size_t)(lines * b->n[2]) * sizeof(real));
    for (box_row row = box_first(b); row.left > 0; box_next(b, &row))
        for (int64_t i = 0, n; i < b->count[2]; i += n, g += n) {
            n = box_together(b, i);
            int64_t width = box_width(b, i, n, &at);
            if (width <= BOX_STRIP) {
                R(box_share)(line, g, b, &row, at, width, i, n);
                fresh = R(box_add_line)(out, line, b, &row, at, width, fresh);
                continue;
            }
            real share = R(box_shares)(g, 1, b, &row, i)[0];
            for (int64_t j0 = 0; j0 < row.size0; j0++)
                for (int64_t j1 = 0; j1 < row.size1; j1++) {
                    real *to = out + box_line(b, &row, j0, j1) + at;
                    for (int64_t j = 0; j < b->size[2][i]; j++) {
                        BOX_AS_IT_IS;
                        to[j * b->step[2]] += share;
                    }
                }
        }
    if (fresh < lines)
        memset(out + fresh * b->n[2], 0, (size_t)((lines - fresh) * b->n[2]) * sizeof(real));
}
