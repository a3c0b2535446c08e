/* small_planes.inc.c: pooling of small planes, interleaved so that each lane holds a plane; a
 * template.
 *
 * Element k of plane l becomes number k * LANES + l. A line is LANES times as long, a column is a
 * vector, and all vectors are full, whatever the windows. Lines are joined like those of one plane,
 * by a pool_set whose n[2] has their new length. Maxima and sums are taken in the same order,
 * except that pairs of columns of floats are added after all lines.
 */
#include "simd/real.h"

/* together[k * LANES + l] = element k < n of plane l; missing planes repeat the last of `count`.
 * With `back` the planes are written from `together`. */
static MG_NOINLINE void R(pool_interleave)(real *restrict together, real *restrict planes, int64_t n,
                                     int64_t count, bool back) {
    real lines[LANES * LANES];
    bool whole = count == LANES && n >= LANES;
    for (int64_t k = 0; k < n; k += LANES) {
        int64_t at = whole ? mg_min(k, n - LANES) : k; /* the last elements twice */
        real *those = together + at * LANES, *these = whole ? planes + at : lines;
        int64_t apart = whole ? n : LANES;
        if (back) R(v_transpose_square)(these, apart, those, LANES, NULL);
        for (int64_t l = 0; !whole && l < LANES; l++) {
            real *plane = planes + mg_min(l, count - 1) * n + at;
            if (back) R(pool_store)(plane, v_load(lines + l * LANES), n - at);
            else v_store(lines + l * LANES, R(pool_load)(plane, n - at));
        }
        if (!back) R(v_transpose_square)(those, LANES, these, apart, NULL);
    }
}

/* out[window] = the sum of the window's elements over its divisor. */
static void R(pool_lanes_sum)(real *restrict out, const real *restrict x, const pool_set *b) {
    enum { SIDE = LANES / POOL_WIDE };
    _Alignas(64) double line[POOL_SMALL * LANES];
    /* a column is one vector of doubles, or for floats two */
    const bool pairs = b->paired && SIDE == 1;
    const int64_t first = pairs ? b->start[2][0] : 0, skipped = first * LANES;
    for (pool_row row = pool_first(b); row.left > 0; pool_next(b, &row, 1)) {
        int64_t some = b->size[1][row.i1], next = b->step[2] * LANES;
        for (int64_t q = 0; q < row.lines; q += some)
            R(pool_lines_sum)(line, x + pool_line(b, &row, q) + skipped, b->step[1] * b->n[2], some,
                             b->n[2] - skipped, pairs ? POOL_VECTORS : POOL_COLUMNS, q > 0, 1, 0, 0);
        for (int64_t i = 0; i < b->count[2]; i++, out += LANES) {
            double *from = line + ((b->start[2][i] - first) >> pairs) * LANES;
            double by = R(pool_by)(b, &row, i);
            int64_t size = b->size[2][i] >> pairs, apart = b->apart >> pairs;
            /* In pairs, as tiles along a line. */
            for (; b->paired && size % 2 == 0 && apart % 2 == 0; size /= 2, apart /= 2)
                for (int64_t j = 0; j < size / 2 * LANES; j += POOL_WIDE) {
                    double *pair = from + j + j / LANES * LANES;
                    v_store_f64(from + j, v_load_f64(pair) + v_load_f64(pair + LANES));
                }
            MG_UNROLL
            for (int k = 0; k < SIDE; k++, from += POOL_WIDE) {
                vec_f64 sum = v_load_f64(from);
                for (int64_t j = 1; j < size; j++) sum += v_load_f64(from + j * next);
                R(pool_narrow)(out + k * POOL_WIDE, R(pool_scaled)(sum, by));
            }
        }
    }
}

/* out[...] = the sum of g[window] over its divisor, for the windows that contain the element. */
static void R(pool_lanes_spread)(real *restrict out, const real *restrict g, const pool_set *b) {
    _Alignas(64) real line[POOL_SMALL * LANES], shares[LANES * LANES];
    int64_t fresh = 0, lines = b->n[0] * b->n[1], step = b->step[2];
    for (pool_row row = pool_first(b); row.left > 0; pool_next(b, &row, 1)) {
        memset(line, 0, (size_t)b->n[2] * sizeof(real));
        for (int64_t i = 0, m; i < b->count[2]; i += m) {
            m = b->apart > 2 ? 1 : mg_min(pool_alike(b, i, LANES), b->count[2] - i);
            int64_t most = 0;
            for (int64_t k = 0; k < m; k++, g += LANES) {
                R(pool_shares)(shares + k * LANES, g, LANES, b, &row, i + k);
                most = mg_max(most, b->size[2][i + k]);
            }
            for (int64_t j = 0; j < most; j++)
                for (int64_t k = 0; k < m; k++) {
                    real *to = line + (b->start[2][i + k] + j * step) * LANES;
                    v_store(to, v_load(to) + v_load(shares + k * LANES));
                }
        }
        fresh = R(pool_add_line)(out, line, b, &row, 0, b->n[2], fresh);
    }
    memset(out + fresh * b->n[2], 0, (size_t)((lines - fresh) * b->n[2]) * sizeof(real));
}

/* out[window] = the window's maximum. With g, out[...] = the sum of g[window] over the windows
 * whose maximum the element is: the first of ties or the first NaN. */
static void R(pool_lanes_max)(real *restrict out, const real *restrict g, const real *restrict x,
                             const pool_set *b) {
    _Alignas(64) real line[POOL_SMALL * LANES];
    int64_t apart = b->step[2] * LANES;
    if (g) memset(out, 0, (size_t)(b->n[0] * b->n[1] * b->n[2]) * sizeof(real));
    for (pool_row row = pool_first(b); row.left > 0; pool_next(b, &row, 1)) {
        R(pool_row_max)(line, x, b, &row, 0, b->n[2], 1, 0);
        for (int64_t i = 0; i < b->count[2]; i++) {
            int64_t size = b->size[2][i], start = b->start[2][i] * LANES;
            vec most = v_load(line + start), left;
            for (int64_t j = 1; j < size; j++)
                most = R(pool_join)(true, most, v_load(line + start + j * apart));
            if (!g) {
                v_store(out, most);
                out += LANES;
                continue;
            }
            left = v_load(g);
            g += LANES;
            for (int64_t q = 0; q < row.lines; q++)
                for (int64_t j = 0; j < size; j++) {
                    int64_t at = pool_line(b, &row, q) + start + j * apart;
                    vec v = v_load(x + at);
                    R(pool_mask) hit = (v == most) | (v != v);
                    v_store(out + at, v_load(out + at) + (vec)(hit & (R(pool_mask))left));
                    left = (vec)(~hit & (R(pool_mask))left);
                }
        }
    }
}

/* The results of `op` for `count` planes of n elements and m windows. */
static MG_NOINLINE void R(pool_lanes)(int op, real *restrict out, const real *restrict x,
                                     const real *restrict g, const pool_set *b, int64_t n, int64_t m,
                                     int64_t count) {
    enum { ROOM = (POOL_SMALL + LANES) * LANES }; /* the last square may hold less */
    _Alignas(64) real from_x[ROOM], from_g[ROOM], made[ROOM];
    if (x) R(pool_interleave)(from_x, (real *)x, n, count, false);
    if (g) R(pool_interleave)(from_g, (real *)g, m, count, false);
    if (op == POOL_SUM) R(pool_lanes_sum)(made, from_x, b);
    else if (op == POOL_SPREAD) R(pool_lanes_spread)(made, from_g, b);
    else R(pool_lanes_max)(made, g ? from_g : NULL, from_x, b);
    R(pool_interleave)(made, out, g ? n : m, count, true);
}
