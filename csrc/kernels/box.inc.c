/* box.inc.c: the boxes of one plane, for one float width; read twice by box.c.
 *
 * Lanes are boxes: an element of each of several that lie 1 or 2 apart on a line. Where there are
 * no such boxes, lanes are neighbours in one box, and are folded at the end. */
#include "real.h"

/* ---- lanes ----------------------------------------------------------------------------------- */

/* v[l] = from[l * apart], l < n; the others are 0, or anything where `apart` is 2. */
MG_INLINE void R(box_pick)(real *restrict v, const real *restrict from, int64_t apart, int64_t n) {
    int64_t reach = (n - 1) * apart + 1;
    vec low = reach >= LANES ? v_load(from) : v_load_n(from, (int)reach);
    if (apart == 2) {
        vec high = v_load_n(from + LANES, (int)mg_max(reach - LANES, 0));
        low = TURN_SHUFFLE(low, high, R(BOX_EVEN));
    }
    v_store(v, low);
}

/* The same out of one box: elements j to j + n of a line. */
MG_INLINE void R(box_pick_line)(real *restrict v, const real *restrict line, int64_t step,
                                int64_t j, int64_t n) {
    if (step == 1) R(box_pick)(v, line + j, 1, n);
    else
        for (int l = 0; l < LANES; l++) v[l] = l < n ? line[(j + l) * step] : 0;
}

/* sum[l] = the elements of box i + l; of one box, every LANES-th. */
static MG_NOINLINE void R(box_add)(double *restrict sum, const real *restrict x, const box_set *b,
                                   const box_row *row, int64_t i, int64_t n) {
    real v[LANES];
    int64_t size = b->size[2][i], step = b->step[2], lines = row->size1;
    if (n == 1 && size == b->n[2] && b->step[1] == 1) { /* whole lines, one after the other */
        size *= lines;
        lines = 1;
    }
    for (int l = 0; l < LANES; l++) sum[l] = 0;
    for (int64_t j0 = 0; j0 < row->size0; j0++)
        for (int64_t j1 = 0; j1 < lines; j1++) {
            const real *line = x + box_at(b, row, i, j0, j1);
            for (int64_t j = 0; j < size; j += n > 1 ? 1 : LANES) {
                if (n > 1) R(box_pick)(v, line + j * step, b->apart, n);
                else R(box_pick_line)(v, line, step, j, mg_min(LANES, size - j));
                for (int l = 0; l < LANES; l++) sum[l] += v[l];
            }
        }
    if (n == 1)
        for (int l = 1; l < LANES; l++) sum[0] += sum[l];
}

/* best[l], at[l] = the maximum of box i + l and its place, from the first element of the box on.
 * The first of ties, or the first NaN. */
static MG_NOINLINE void R(box_find)(real *restrict best, ireal *restrict at, const real *restrict x,
                                    const box_set *b, const box_row *row, int64_t i, int64_t n) {
    real v[LANES];
    const real *start = x + box_at(b, row, i, 0, 0);
    int64_t size = b->size[2][i], step = b->step[2], wide = mg_min(LANES, size);
    for (int l = 0; l < LANES; l++) best[l] = -REAL_C(INFINITY);
    for (int l = 0; l < LANES; l++) at[l] = n > 1 ? 0 : l * (ireal)step;
    for (int64_t j0 = 0; j0 < row->size0; j0++)
        for (int64_t j1 = 0; j1 < row->size1; j1++) {
            const real *line = x + box_at(b, row, i, j0, j1);
            for (int64_t next = 0; next < size; next += n > 1 ? 1 : LANES) {
                int64_t j = n > 1 ? next : mg_min(next, size - wide);
                if (n > 1) R(box_pick)(v, line + j * step, b->apart, n);
                else R(box_pick_line)(v, line, step, j, wide);
                ireal place = (ireal)(line - start + j * step), apart = n > 1 ? 0 : (ireal)step;
                for (int l = 0; l < LANES; l++) {
                    /* Larger than the best so far, or the first NaN. */
                    bool beats = (v[l] > best[l]) | ((v[l] != v[l]) & (best[l] == best[l]));
                    best[l] = beats ? v[l] : best[l];
                    at[l] = beats ? place + l * apart : at[l];
                }
            }
        }
    for (int l = 1; n == 1 && l < wide; l++) {
        bool nan = best[l] != best[l], had = best[0] != best[0];
        bool same = (nan & had) | (best[l] == best[0]);
        if (same ? at[l] < at[0] : best[l] > best[0] || (nan && !had)) {
            best[0] = best[l];
            at[0] = at[l];
        }
    }
}

/* ---- planes ---------------------------------------------------------------------------------- */

/* What a sum is divided by; a factor for float32, whose sums are doubles still. */
MG_INLINE double R(box_scale)(const box_set *b, const box_row *row, int64_t i) {
    if (!b->divisor[2]) return 1;
    double divisor = row->divisor * (double)b->divisor[2][i];
    return sizeof(real) == 4 ? 1 / divisor : divisor;
}
MG_INLINE real R(box_scaled)(double sum, double scale) {
    return (real)(sizeof(real) == 4 ? sum * scale : sum / scale);
}

/* out[box] = the sum of its elements, in double precision, by its divisor. */
static void R(box_sum)(real *restrict out, const real *restrict x, const box_set *b) {
    double sum[LANES];
    real v[LANES];
    for (box_row row = box_first(b); row.left > 0; box_next(b, &row))
        for (int64_t i = 0, n; i < b->count[2]; i += n, out += n) {
            n = box_together(b, i, LANES);
            R(box_add)(sum, x, b, &row, i, n);
            double scale = R(box_scale)(b, &row, i);
            for (int l = 0; l < LANES; l++) v[l] = R(box_scaled)(sum[l], scale);
            v_store_n(out, v_load(v), (int)n);
        }
}

MG_INLINE void R(box_add_to)(real *restrict to, vec v, int64_t n) {
    v_store_n(to, v_load_n(to, (int)n) + v, (int)n);
}

/* out[...] += g[box] by its divisor at every element of the box. */
static void R(box_spread)(real *restrict out, const real *restrict g, const box_set *b) {
    real v[LANES];
    for (box_row row = box_first(b); row.left > 0; box_next(b, &row))
        for (int64_t i = 0, n; i < b->count[2]; i += n, g += n) {
            n = box_together(b, i, LANES);
            double scale = R(box_scale)(b, &row, i);
            v_store(v, v_load_n(g, (int)n));
            for (int l = 0; l < LANES; l++) v[l] = R(box_scaled)(v[l], scale);
            vec share = v_load(v);
            int64_t size = b->size[2][i], step = b->step[2], reach = 2 * n - 1;
            for (int64_t j0 = 0; j0 < row.size0; j0++)
                for (int64_t j1 = 0; j1 < row.size1; j1++) {
                    real *line = out + box_at(b, &row, i, j0, j1);
                    if (n == 1) {
                        for (int64_t j = 0; j < size; j++) line[j * step] += v[0];
                        continue;
                    }
                    for (real *to = line; to < line + size * step; to += step) {
                        if (b->apart == 1) {
                            R(box_add_to)(to, share, n);
                            continue;
                        }
                        vec low = TURN_SHUFFLE(share, v_set1(0), R(TURN_LO));
                        vec high = TURN_SHUFFLE(share, v_set1(0), R(TURN_HI));
                        R(box_add_to)(to, low, mg_min(LANES, reach));
                        if (reach > LANES) R(box_add_to)(to + LANES, high, reach - LANES);
                    }
                }
        }
}

/* out[box] = its maximum. */
static void R(box_max)(real *restrict out, const real *restrict x, const box_set *b) {
    real best[LANES];
    ireal at[LANES];
    for (box_row row = box_first(b); row.left > 0; box_next(b, &row))
        for (int64_t i = 0, n; i < b->count[2]; i += n, out += n) {
            n = box_together(b, i, LANES);
            R(box_find)(best, at, x, b, &row, i, n);
            v_store_n(out, v_load(best), (int)n);
        }
}

/* places[box] = where in the plane its maximum is, or out[there] += g[box]. */
static void R(box_argmax)(int64_t *restrict places, real *restrict out, const real *restrict g,
                          const real *restrict x, const box_set *b) {
    real best[LANES];
    ireal at[LANES];
    for (box_row row = box_first(b); row.left > 0; box_next(b, &row))
        for (int64_t i = 0, n; i < b->count[2]; i += n) {
            n = box_together(b, i, LANES);
            R(box_find)(best, at, x, b, &row, i, n);
            int64_t start = box_at(b, &row, i, 0, 0);
            for (int64_t k = 0; k < n; k++) {
                int64_t place = start + k * b->apart + at[k];
                if (places) *places++ = place;
                else out[place] += *g++;
            }
        }
}
