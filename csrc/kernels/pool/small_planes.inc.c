/* small_planes.inc.c: small planes, as many at a time as there are lanes, for one float width.
 *
 * Element k of plane l of them becomes number k * LANES + l. So a line is LANES times as long, a
 * column is a vector, and all vectors are full, whatever boxes lie on a plane. Lines are joined as
 * those of one plane are, by a box_set whose n[2] says how long they now are; maxima are taken in the
 * same order, and so are sums, but that pairs of columns of floats are added up after all lines. */
#include "simd/real.h"

/* together[k * LANES + l] = element k < n of plane l, or of the last of `count`; or, if `back`, the
 * other way. */
static MG_NOINLINE void R(box_weave)(real *restrict together, real *restrict planes, int64_t n,
                                     int64_t count, bool back) {
    real lines[LANES * LANES];
    bool whole = count == LANES && n >= LANES;
    for (int64_t k = 0; k < n; k += LANES) {
        int64_t at = whole ? mg_min(k, n - LANES) : k; /* the last ones twice */
        real *those = together + at * LANES, *these = whole ? planes + at : lines;
        int64_t apart = whole ? n : LANES;
        if (back) R(v_turn_square)(these, apart, those, LANES, NULL);
        for (int64_t l = 0; !whole && l < LANES; l++) {
            real *plane = planes + mg_min(l, count - 1) * n + at;
            if (back) R(box_store)(plane, v_load(lines + l * LANES), n - at);
            else v_store(lines + l * LANES, R(box_load)(plane, n - at));
        }
        if (!back) R(v_turn_square)(those, LANES, these, apart, NULL);
    }
}

/* out[box] = the sum of its elements by its divisor. */
static void R(box_lanes_sum)(real *restrict out, const real *restrict x, const box_set *b) {
    enum { SIDE = LANES / BOX_WIDE };
    _Alignas(64) double line[BOX_SMALL * LANES];
    const bool pairs = b->paired && SIDE == 1; /* of doubles a column is a vector, of floats two */
    const int64_t first = pairs ? b->start[2][0] : 0, skipped = first * LANES;
    for (box_row row = box_first(b); row.left > 0; box_next(b, &row, 1)) {
        int64_t some = b->size[1][row.i1], next = b->step[2] * LANES;
        for (int64_t q = 0; q < row.lines; q += some)
            R(box_lines_sum)(line, x + box_line(b, &row, q) + skipped, b->step[1] * b->n[2], some,
                             b->n[2] - skipped, pairs ? BOX_VECTORS : BOX_COLUMNS, q > 0, 1, 0, 0);
        for (int64_t i = 0; i < b->count[2]; i++, out += LANES) {
            double *from = line + ((b->start[2][i] - first) >> pairs) * LANES;
            double by = R(box_by)(b, &row, i);
            int64_t size = b->size[2][i] >> pairs, apart = b->apart >> pairs;
            /* In pairs, as tiles along a line are. */
            for (; b->paired && size % 2 == 0 && apart % 2 == 0; size /= 2, apart /= 2)
                for (int64_t j = 0; j < size / 2 * LANES; j += BOX_WIDE) {
                    double *pair = from + j + j / LANES * LANES;
                    v_store_f64(from + j, v_load_f64(pair) + v_load_f64(pair + LANES));
                }
            MG_UNROLL
            for (int k = 0; k < SIDE; k++, from += BOX_WIDE) {
                vec_f64 sum = v_load_f64(from);
                for (int64_t j = 1; j < size; j++) sum += v_load_f64(from + j * next);
                R(box_narrow)(out + k * BOX_WIDE, R(box_scaled)(sum, by));
            }
        }
    }
}

/* out[...] = the sum of g[box] by its divisor over the boxes that an element lies in. */
static void R(box_lanes_spread)(real *restrict out, const real *restrict g, const box_set *b) {
    _Alignas(64) real line[BOX_SMALL * LANES], shares[LANES * LANES];
    int64_t fresh = 0, lines = b->n[0] * b->n[1], step = b->step[2];
    for (box_row row = box_first(b); row.left > 0; box_next(b, &row, 1)) {
        memset(line, 0, (size_t)b->n[2] * sizeof(real));
        for (int64_t i = 0, m; i < b->count[2]; i += m) {
            m = b->apart > 2 ? 1 : mg_min(box_alike(b, i, LANES), b->count[2] - i);
            int64_t most = 0;
            for (int64_t k = 0; k < m; k++, g += LANES) {
                R(box_shares)(shares + k * LANES, g, LANES, b, &row, i + k);
                most = mg_max(most, b->size[2][i + k]);
            }
            for (int64_t j = 0; j < most; j++)
                for (int64_t k = 0; k < m; k++) {
                    real *to = line + (b->start[2][i + k] + j * step) * LANES;
                    v_store(to, v_load(to) + v_load(shares + k * LANES));
                }
        }
        fresh = R(box_add_line)(out, line, b, &row, 0, b->n[2], fresh);
    }
    memset(out + fresh * b->n[2], 0, (size_t)((lines - fresh) * b->n[2]) * sizeof(real));
}

/* out[box] = its maximum. Given g, out[...] = the sum of g[box] over the boxes whose maximum, the first
 * of ties or the first NaN, an element is. */
static void R(box_lanes_max)(real *restrict out, const real *restrict g, const real *restrict x,
                             const box_set *b) {
    _Alignas(64) real line[BOX_SMALL * LANES];
    int64_t apart = b->step[2] * LANES;
    if (g) memset(out, 0, (size_t)(b->n[0] * b->n[1] * b->n[2]) * sizeof(real));
    for (box_row row = box_first(b); row.left > 0; box_next(b, &row, 1)) {
        R(box_row_max)(line, x, b, &row, 0, b->n[2], 1, 0);
        for (int64_t i = 0; i < b->count[2]; i++) {
            int64_t size = b->size[2][i], start = b->start[2][i] * LANES;
            vec most = v_load(line + start), left;
            for (int64_t j = 1; j < size; j++)
                most = R(box_join)(true, most, v_load(line + start + j * apart));
            if (!g) {
                v_store(out, most);
                out += LANES;
                continue;
            }
            left = v_load(g);
            g += LANES;
            for (int64_t q = 0; q < row.lines; q++)
                for (int64_t j = 0; j < size; j++) {
                    int64_t at = box_line(b, &row, q) + start + j * apart;
                    vec v = v_load(x + at);
                    R(box_mask) hit = (v == most) | (v != v);
                    v_store(out + at, v_load(out + at) + (vec)(hit & (R(box_mask))left));
                    left = (vec)(~hit & (R(box_mask))left);
                }
        }
    }
}

/* What `op` makes of `count` planes of n elements and m boxes; b as above. */
static MG_NOINLINE void R(box_lanes)(int op, real *restrict out, const real *restrict x,
                                     const real *restrict g, const box_set *b, int64_t n, int64_t m,
                                     int64_t count) {
    enum { ROOM = (BOX_SMALL + LANES) * LANES }; /* the last square may hold less */
    _Alignas(64) real from_x[ROOM], from_g[ROOM], made[ROOM];
    if (x) R(box_weave)(from_x, (real *)x, n, count, false);
    if (g) R(box_weave)(from_g, (real *)g, m, count, false);
    if (op == BOX_SUM) R(box_lanes_sum)(made, from_x, b);
    else if (op == BOX_SPREAD) R(box_lanes_spread)(made, from_g, b);
    else R(box_lanes_max)(made, g ? from_g : NULL, from_x, b);
    R(box_weave)(made, out, g ? n : m, count, true);
}
