/* box.inc.c: the boxes of one plane, for one type of elements; read by box.c for each.
 *
 * Boxes of an even run on a line are done together, BOX_TOGETHER at a time: for each element of a
 * box, that of all boxes. The others one by one. */

#ifdef BOX_FLOATS

/* ---- sums ------------------------------------------------------------------------------------ */

/* sum[i] = the elements of box first + i, i < n; they lie `apart` from each other. */
MG_INLINE void P(box_add)(const int64_t apart, double *restrict sum, const item *restrict x,
                          const box_set *b, const box_row *row, int64_t first, int64_t n) {
    for (int64_t i = 0; i < n; i++) sum[i] = 0;
    for (int64_t j0 = 0; j0 < row->size0; j0++)
        for (int64_t j1 = 0; j1 < row->size1; j1++)
            for (int64_t j2 = 0; j2 < b->size[2][first]; j2++) {
                const item *at = x + box_at(b, row, first, j0, j1, j2);
                for (int64_t i = 0; i < n; i++) sum[i] += at[i * apart];
            }
}

/* The sum of one box, in eight lanes. */
static MG_NOINLINE double P(box_total)(const item *restrict x, const box_set *b,
                                       const box_row *row, int64_t box) {
    double lane[8] = {0};
    int64_t n = b->size[2][box], step = b->step[2], lines = row->size1;
    if (n == b->n[2] && b->step[1] == 1) { /* whole lines, one after the other */
        n *= lines;
        lines = 1;
    }
    for (int64_t j0 = 0; j0 < row->size0; j0++)
        for (int64_t j1 = 0; j1 < lines; j1++) {
            const item *at = x + box_at(b, row, box, j0, j1, 0);
            int64_t j = 0;
            if (step == 1)
                for (; j + 8 <= n; j += 8)
                    for (int l = 0; l < 8; l++) lane[l] += at[j + l];
            for (; j < n; j++) lane[j % 8] += at[j * step];
        }
    return ((lane[0] + lane[4]) + (lane[2] + lane[6])) + ((lane[1] + lane[5]) + (lane[3] + lane[7]));
}

/* out[box] = the sum of its elements, in double precision, by its divisor. */
static void P(box_sum)(item *restrict out, const item *restrict x, const box_set *b) {
    double sum[BOX_TOGETHER];
    for (box_row row = box_first(b); row.left > 0; box_next(b, &row))
        for (int64_t i = 0, n; i < b->count[2]; i += n, out += n) {
            n = box_together(b, i);
            if (n == 1) sum[0] = P(box_total)(x, b, &row, i);
            else if (b->apart == 1) P(box_add)(1, sum, x, b, &row, i, n);
            else P(box_add)(2, sum, x, b, &row, i, n);
            double scale = box_scale(b, &row, i, BOX_BY_RECIPROCAL);
            for (int64_t k = 0; k < n; k++)
                out[k] = (item)(BOX_BY_RECIPROCAL ? sum[k] * scale : sum[k] / scale);
        }
}

/* out[...] += g[box] by its divisor at every element of the box. */
static void P(box_spread)(item *restrict out, const item *restrict g, const box_set *b) {
    item share[BOX_TOGETHER];
    for (box_row row = box_first(b); row.left > 0; box_next(b, &row))
        for (int64_t i = 0, n; i < b->count[2]; i += n, g += n) {
            n = box_together(b, i);
            double scale = box_scale(b, &row, i, BOX_BY_RECIPROCAL);
            for (int64_t k = 0; k < n; k++)
                share[k] = (item)(BOX_BY_RECIPROCAL ? g[k] * scale : g[k] / scale);
            int64_t step = b->step[2], size = b->size[2][i];
            for (int64_t j0 = 0; j0 < row.size0; j0++)
                for (int64_t j1 = 0; j1 < row.size1; j1++) {
                    item *at = out + box_at(b, &row, i, j0, j1, 0);
                    if (n == 1)
                        for (int64_t j = 0; j < size; j++) at[j * step] += share[0];
                    else if (b->apart == 1)
                        for (int64_t j = 0; j < size; j++)
                            for (int64_t k = 0; k < n; k++) at[j * step + k] += share[k];
                    else if (size == 2 && step == 1)
                        for (int64_t k = 0; k < n; k++) {
                            at[2 * k] += share[k];
                            at[2 * k + 1] += share[k];
                        }
                    else
                        for (int64_t k = 0; k < n; k++)
                            for (int64_t j = 0; j < size; j++) at[j * step + 2 * k] += share[k];
                }
        }
}

/* ---- maxima of several boxes ----------------------------------------------------------------- */

/* best[i] = the maximum of box first + i, i < n; at[i], if wanted, its place from the first one of
 * the box on. The first of ties, or the first NaN. */
MG_INLINE void P(box_find)(const int64_t apart, const bool places, item *restrict best,
                           place *restrict at, const item *restrict x, const box_set *b,
                           const box_row *row, int64_t first, int64_t n) {
    const item *start = x + box_at(b, row, first, 0, 0, 0);
    for (int64_t i = 0; i < n; i++) best[i] = start[i * apart];
    if (places)
        for (int64_t i = 0; i < n; i++) at[i] = 0;
    for (int64_t j0 = 0; j0 < row->size0; j0++)
        for (int64_t j1 = 0; j1 < row->size1; j1++)
            for (int64_t j2 = 0; j2 < b->size[2][first]; j2++) {
                const item *from = x + box_at(b, row, first, j0, j1, j2);
                place here = (place)(from - start);
                for (int64_t i = 0; i < n; i++) {
                    item v = from[i * apart];
                    /* Larger than the best so far, or the first NaN. */
                    bool beats = (v > best[i]) | ((v != v) & (best[i] == best[i]));
                    best[i] = beats ? v : best[i];
                    if (places) at[i] = beats ? here : at[i];
                }
            }
}

/* The places in the plane. */
static MG_NOINLINE void P(box_places)(int64_t *restrict to, const item *restrict x,
                                      const box_set *b, const box_row *row, int64_t first,
                                      int64_t n) {
    item best[BOX_TOGETHER];
    place at[BOX_TOGETHER];
    if (b->apart == 1) P(box_find)(1, true, best, at, x, b, row, first, n);
    else P(box_find)(2, true, best, at, x, b, row, first, n);
    int64_t start = box_at(b, row, first, 0, 0, 0);
    for (int64_t i = 0; i < n; i++) to[i] = start + i * b->apart + at[i];
}

#endif

/* ---- maxima ---------------------------------------------------------------------------------- */

/* Where in the plane the maximum of one box is. */
static MG_NOINLINE int64_t P(box_place)(const item *restrict x, const box_set *b,
                                        const box_row *row, int64_t box) {
    int64_t best = box_at(b, row, box, 0, 0, 0);
    for (int64_t j0 = 0; j0 < row->size0; j0++)
        for (int64_t j1 = 0; j1 < row->size1; j1++) {
            int64_t line = box_at(b, row, box, j0, j1, 0);
            for (int64_t j = 0; j < b->size[2][box]; j++) {
                int64_t at = line + j * b->step[2];
                if (x[at] > x[best] || (BOX_IS_NAN(x[at]) && !BOX_IS_NAN(x[best]))) best = at;
            }
        }
    return best;
}

/* out[box] = its maximum. */
static void P(box_max)(item *restrict out, const item *restrict x, const box_set *b) {
    for (box_row row = box_first(b); row.left > 0; box_next(b, &row))
        for (int64_t i = 0, n; i < b->count[2]; i += n, out += n) {
            n = box_together(b, i);
#ifdef BOX_FLOATS
            if (n > 1 && b->apart == 1) P(box_find)(1, false, out, NULL, x, b, &row, i, n);
            else if (n > 1) P(box_find)(2, false, out, NULL, x, b, &row, i, n);
            else
#endif
                for (int64_t k = 0; k < n; k++) out[k] = x[P(box_place)(x, b, &row, i + k)];
        }
}

/* out[box] = where in the plane its maximum is. */
static void P(box_argmax)(int64_t *restrict out, const item *restrict x, const box_set *b) {
    for (box_row row = box_first(b); row.left > 0; box_next(b, &row))
        for (int64_t i = 0, n; i < b->count[2]; i += n, out += n) {
            n = box_together(b, i);
#ifdef BOX_FLOATS
            if (n > 1) P(box_places)(out, x, b, &row, i, n);
            else
#endif
                for (int64_t k = 0; k < n; k++) out[k] = P(box_place)(x, b, &row, i + k);
        }
}

#ifdef BOX_FLOATS

/* out[where the maximum of a box is] += g[box]. */
static void P(box_max_vjp)(item *restrict out, const item *restrict g, const item *restrict x,
                           const box_set *b) {
    int64_t at[BOX_TOGETHER];
    for (box_row row = box_first(b); row.left > 0; box_next(b, &row))
        for (int64_t i = 0, n; i < b->count[2]; i += n, g += n) {
            n = box_together(b, i);
            if (n > 1) P(box_places)(at, x, b, &row, i, n);
            else at[0] = P(box_place)(x, b, &row, i);
            for (int64_t k = 0; k < n; k++) out[at[k]] += g[k];
        }
}

#endif
#undef item
#undef place
#undef P
#undef BOX_BY_RECIPROCAL
#undef BOX_IS_NAN
