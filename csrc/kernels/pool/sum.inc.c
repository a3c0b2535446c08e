/* sum.inc.c: sums over the pooling windows of one plane, and their gradient; a template. */
#include "simd/real.h"

/* ---- sums ------------------------------------------------------------------------------------ */

/* The divisor for the sum of window i. For floats, whose sums are doubles, its inverse. */
MG_INLINE double R(pool_by)(const pool_set *b, const pool_row *row, int64_t i) {
    double divisor = b->divisor[2] ? row->divisor * (double)b->divisor[2][i] : 1;
    return sizeof(real) == 4 ? 1 / divisor : divisor;
}
MG_INLINE vec_f64 R(pool_scaled)(vec_f64 sum, double by) {
    return sizeof(real) == 4 ? sum * v_set1_f64(by) : sum / v_set1_f64(by);
}

MG_INLINE real R(pool_scaled_one)(double sum, double by) {
    return (real)(sizeof(real) == 4 ? sum * by : sum / by);
}

/* Adds two vectors of doubles to a line, or the sums of their pairs. */
MG_INLINE void R(pool_add_columns)(double *line, vec_f64 low, vec_f64 high, pool_sums of, bool add) {
    bool both = of == POOL_COLUMNS;
    if (of == POOL_PAIRS) low = pool_pairs_f64(false, low, high);
    else if (!both) low += high;
    if (add) low += v_load_f64(line);
    v_store_f64(line, low);
    if (add && both) high += v_load_f64(line + POOL_WIDE);
    if (both) v_store_f64(line + POOL_WIDE, high);
}

/* line[c] = the sum of column c, or of columns 2c and 2c + 1, over lines that lie `gap` apart; plus
 * line[c] if `add`. The same for further rows of windows, which lie `below` further and are written
 * `side` further. */
static MG_NOINLINE void R(pool_lines_sum)(double *restrict line, const real *restrict x, int64_t gap,
                                         int64_t lines, int64_t width, pool_sums of, bool add,
                                         int64_t rows, int64_t below, int64_t side) {
    enum { WIDTH = 2 * POOL_WIDE };
    for (; rows > 0; rows--, x += below, line += side) {
        const real *from = x;
        bool join = add;
        for (int64_t left = lines; left > 0; left -= 2 - left % 2, join = true) {
            bool two = left % 2 == 0; /* an odd number: the first line alone */
            for (int64_t c = 0; c < width; c += WIDTH) {
                real part[2][WIDTH];
                const real *these = from + c, *those = two ? these + gap : these;
                __builtin_prefetch((const char *)these + POOL_AHEAD);
                __builtin_prefetch((const char *)those + POOL_AHEAD);
                if (width - c < WIDTH) {
                    for (int l = 0; l < WIDTH; l += LANES) {
                        int some = (int)mg_max(mg_min(width - c - l, LANES), 0);
                        v_store(part[0] + l, v_load_n(these + l, some));
                        v_store(part[1] + l, v_load_n(those + l, some));
                    }
                    these = part[0];
                    those = part[1];
                }
                vec_f64 low = R(pool_widen)(these), high = R(pool_widen)(these + POOL_WIDE);
                if (two) {
                    low += R(pool_widen)(those);
                    high += R(pool_widen)(those + POOL_WIDE);
                }
                R(pool_add_columns)(line + (c >> (of != POOL_COLUMNS)), low, high, of, join);
            }
            from += (1 + two) * gap;
        }
    }
}

/* Lane-wise sums of n elements. With `pairs` two floats are added before they become a double,
 * which costs half a unit of the sum of magnitudes. Sums are multiply-adds by 1, as conversions
 * keep the adders busy. Memory is prefetched `ahead` bytes before it is needed. */
static MG_NOINLINE vec_f64 R(pool_lane_sums)(const real *x, int64_t n, bool pairs, int64_t ahead) {
    enum { PAIR = 2 * POOL_WIDE, WIDTH = POOL_SIDE * PAIR, LINE = 64 / sizeof(real) };
    vec_f64 sum[POOL_SIDE], by = v_set1_f64(1);
    int64_t i = 0;
    MG_HELD(by);
    MG_UNROLL
    for (int k = 0; k < POOL_SIDE; k++) sum[k] = v_set1_f64(0);
    for (; pairs && i + WIDTH <= n; i += WIDTH) {
        for (int l = 0; l < WIDTH; l += LINE) __builtin_prefetch((const char *)(x + i + l) + ahead);
        MG_UNROLL
        for (int k = 0; k < POOL_SIDE; k++) {
            const real *at = x + i + k * PAIR;
            sum[k] = v_fma_f64(R(pool_widen_both)(at, at + POOL_WIDE), by, sum[k]);
        }
    }
    bool few = i == 0; /* two sums */
    for (; pairs && i + PAIR <= n; i += PAIR)
        sum[0] += R(pool_widen_both)(x + i, x + i + POOL_WIDE);
    for (; i < n; i += POOL_WIDE) {
        real part[LANES];
        v_store(part, R(pool_load)(x + i, mg_min(n - i, POOL_WIDE)));
        sum[1] += R(pool_widen)(part);
    }
    if (few) return sum[0] + sum[1];
    for (int half = POOL_SIDE / 2; half > 0; half /= 2)
        MG_UNROLL
        for (int k = 0; k < half; k++) sum[k] += sum[k + half];
    return sum[0];
}

/* The sum of n elements that lie `step` apart. If a pair of floats overflows, each is widened
 * alone. */
static MG_NOINLINE double R(pool_piece_sum)(const real *x, int64_t n, int64_t step, bool pairs,
                                           int64_t ahead) {
    double lane[POOL_WIDE], one = 0;
    for (int64_t i = 0; i < n && step != 1; i++) one += (double)x[i * step];
    if (step != 1) return one;
    v_store_f64(lane, R(pool_lane_sums)(x, n, pairs, ahead));
    MG_UNROLL
    for (int half = POOL_WIDE / 2; half > 0; half /= 2)
        MG_UNROLL
        for (int l = 0; l < half; l++) lane[l] += lane[l + half];
    one = lane[0];
    return pairs && one - one != 0 ? R(pool_piece_sum)(x, n, step, false, 0) : one;
}

/* out[k] = sum[k] scaled by the value of pool_by, k < n. */
static MG_NOINLINE void R(pool_divide)(real *restrict out, const double *restrict sum, double by,
                                      int64_t n) {
    for (int64_t k = 0; k < n; k += POOL_WIDE) {
        real mean[LANES];
        vec_f64 v = R(pool_scaled)(v_load_f64(sum + k), by);
        __builtin_prefetch((const char *)(out + k) + POOL_AHEAD, 1);
        R(pool_narrow)(n - k >= POOL_WIDE ? out + k : mean, v);
        if (n - k < POOL_WIDE) v_store_n(out + k, v_load(mean), (int)(n - k));
    }
}

/* out[k] = the sum of window k of a batch, over its divisor. */
static MG_NOINLINE void R(pool_mean)(real *restrict out, const real *restrict x, const pool_set *b,
                                    const pool_batch *t) {
    _Alignas(64) double line[POOL_STRIP + 2 * LANES], value[POOL_STRIP + POOL_WIDE], *end = line;
    int64_t at, width = pool_width(b, t, &at), n = t->rows * t->n;
    const double *sum = value;
    pool_row row = t->row;
    if (width <= POOL_STRIP) {
        int64_t rows = pool_rows(b, t), side = t->n * b->apart >> b->paired;
        for (int64_t r = 0; r < t->rows; r += rows, pool_next(b, &row, rows)) {
            int64_t some = b->size[1][row.i1]; /* lines that are evenly spaced */
            for (int64_t q = 0; q < row.lines; q += some)
                R(pool_lines_sum)(end, x + pool_line(b, &row, q) + at, b->step[1] * b->n[2], some,
                                 width, b->paired ? POOL_PAIRS : POOL_COLUMNS, q > 0, rows,
                                 b->below * b->n[2], side);
            end += rows * side;
        }
        if (b->paired && b->apart == 2) sum = line;
        else pool_along_f64(false, value, line, b, t, at, b->paired);
    } else {
        int64_t step = b->step[2], all = b->size[2][t->i];
        double one = 0, by = R(pool_by)(b, &t->row, b->tiled ? 0 : t->i);
        for (int64_t q = 0; q < row.lines; q++)
            for (int64_t j = 0; j < all; j += POOL_PIECE)
                one += R(pool_piece_sum)(x + pool_line(b, &row, q) + at + j * step,
                                        mg_min(all - j, POOL_PIECE), step, step == 1, 4 * b->ahead);
        *out = R(pool_scaled_one)(one, by);
        return; /* a vector load of *out would wait for the store */
    }
    for (int64_t k = 0, m; k < n; k += m) {
        m = mg_min(pool_alike(b, t->i + k, n), n - k);
        R(pool_divide)(out + k, sum + k, R(pool_by)(b, &t->row, b->tiled ? 0 : t->i + k), m);
    }
}

/* The means of a plane of such tiles, straight from their lines. The last tiles are computed twice
 * if a line is not a multiple of the vector. */
static MG_NOINLINE void R(pool_pairs_mean)(real *restrict out, const real *restrict x,
                                          const pool_set *b) {
    enum { WIDTH = 2 * POOL_WIDE };
    pool_row row = pool_first(b);
    int64_t width = 2 * b->count[2], gap = b->step[1] * b->n[2];
    bool two = b->size[1][0] == 2;
    double by = R(pool_by)(b, &row, 0);
    x += pool_line(b, &row, 0) + b->start[2][0];
    for (int64_t r = 0; r < b->count[1]; r++, x += b->below * b->n[2], out += b->count[2])
        for (int64_t c = 0; c < width; c += WIDTH) {
            int64_t at = mg_min(c, width - WIDTH);
            const real *these = x + at, *those = these + gap;
            vec_f64 low = R(pool_widen)(these), high = R(pool_widen)(these + POOL_WIDE);
            __builtin_prefetch((const char *)these + b->ahead);
            if (two) {
                low += R(pool_widen)(those);
                high += R(pool_widen)(those + POOL_WIDE);
                __builtin_prefetch((const char *)those + b->ahead);
            }
            low = pool_pairs_f64(false, low, high);
            __builtin_prefetch((const char *)(out + at / 2) + b->ahead, 1);
            R(pool_narrow)(out + at / 2, R(pool_scaled)(low, by));
        }
}

/* out[window] = the sum of the window's elements over its divisor. */
static void R(pool_sum)(real *restrict out, const real *restrict x, const pool_set *b) {
    if (b->single) {
        pool_row row = pool_first(b);
        double sum = 0;
        for (int64_t j = 0; j < b->n[2]; j += POOL_PIECE)
            sum += R(pool_piece_sum)(x + j, mg_min(b->n[2] - j, POOL_PIECE), 1, true, 4 * b->ahead);
        *out = R(pool_scaled_one)(sum, R(pool_by)(b, &row, 0));
        return;
    }
    if (b->halves) {
        R(pool_pairs_mean)(out, x, b);
        return;
    }
    for (pool_batch t = pool_first_batch(b); t.n > 0; pool_next_batch(b, &t)) {
        R(pool_mean)(out, x, b, &t);
        out += t.rows * t.n;
    }
}

/* The means of as many planes as there are doubles in a vector, each one window of n elements.
 * Their lane sums are transposed and then added side by side. */
static MG_NOINLINE void R(pool_planes_mean)(real *restrict out, const real *restrict x,
                                           const pool_set *b, int64_t n) {
    vec_f64 sum[POOL_WIDE];
    pool_row row = pool_first(b);
    MG_ROLLED
    for (int k = 0; k < POOL_WIDE; k++) sum[k] = R(pool_lane_sums)(x + k * n, n, true, 4 * b->ahead);
    v_transpose_f64(sum);
    MG_UNROLL
    for (int half = POOL_WIDE / 2; half > 0; half /= 2)
        MG_UNROLL
        for (int l = 0; l < half; l++) sum[l] += sum[l + half];
    R(pool_narrow)(out, R(pool_scaled)(sum[0], R(pool_by)(b, &row, 0)));
    for (int k = 0; k < POOL_WIDE; k++)
        if (sum[0][k] - sum[0][k] != 0) R(pool_sum)(out + k, x + k * n, b);
}

/* ---- gradients of sums ----------------------------------------------------------------------- */

/* to[k] = g[k] over the divisor of window i, k < n. Full vectors are written. */
MG_INLINE void R(pool_shares)(real *restrict to, const real *restrict g, int64_t n, const pool_set *b,
                             const pool_row *row, int64_t i) {
    double by = R(pool_by)(b, row, i);
    for (int64_t k = 0; k < n; k += POOL_WIDE) {
        real part[LANES];
        bool whole = n - k >= POOL_WIDE;
        if (!whole) v_store(part, v_load_n(g + k, (int)(n - k)));
        R(pool_narrow)(to + k, R(pool_scaled)(R(pool_widen)(whole ? g + k : part), by));
    }
}

/* line[c] = the sum of g[k] over its divisor, for the windows i + k that contain column at + c. */
MG_INLINE void R(pool_share)(real *restrict line, const real *restrict g, const pool_set *b,
                            const pool_batch *t, int64_t at, int64_t width) {
    real shares[POOL_STRIP + LANES];
    int64_t step = b->step[2];
    for (int64_t k = 0, m; k < t->n; k += m) {
        m = mg_min(pool_alike(b, t->i + k, t->n), t->n - k);
        R(pool_shares)(shares + k, g + k, m, b, &t->row, t->i + k);
    }
    for (int64_t c = 0; c < width + 2 * LANES; c += LANES) v_store(line + c, v_set1(0));
    for (int64_t k = 0, m; k < t->n; k += m) {
        int64_t i = t->i + k;
        m = b->apart > 2 ? 1 : mg_min(pool_alike(b, i, LANES), t->n - k);
        vec share = R(pool_load)(shares + k, m);
        real *to = line + b->start[2][i] - at, *last = to + (b->size[2][i] - 1) * step;
        for (; to <= last; to += step)
            if (m == 1) {
                *to += shares[k];
            } else if (b->apart == 1) {
                v_store(to, v_load(to) + share);
            } else { /* also the next elements of the windows, if they are the next columns */
                bool both = step == 1 && to < last;
                vec next = both ? share : v_set1(0); /* share may be infinite or NaN */
                vec low = TRANSPOSE_SHUFFLE(share, next, R(TRANSPOSE_LO));
                vec high = TRANSPOSE_SHUFFLE(share, next, R(TRANSPOSE_HI));
                v_store(to, v_load(to) + low);
                v_store(to + LANES, v_load(to + LANES) + high);
                to += both;
            }
    }
}

/* The same for a batch of tiles that cover their lines: each share is repeated for all columns of
 * its tile. */
MG_INLINE void R(pool_tile)(real *restrict line, const real *restrict g, const pool_set *b,
                           const pool_batch *t) {
    int64_t n = t->rows * t->n;
    R(pool_shares)(line, g, n, b, &t->row, 0);
    R(pool_repeat)(line, n, b->size[2][t->i]);
}

/* Adds the line to columns at .. at + width of all lines of a row. Lines from `fresh` on are
 * written instead. Lines that are left out become 0. Returns the next `fresh`. */
static MG_NOINLINE int64_t R(pool_add_line)(real *restrict out, const real *restrict line,
                                           const pool_set *b, const pool_row *row, int64_t at,
                                           int64_t width, int64_t fresh) {
    for (int64_t q = 0; q < row->lines; q++) {
        int64_t number = pool_number(b, row, q);
        bool add = number < fresh;
        real *to = out + number * b->n[2] + at;
        if (number > fresh)
            memset(out + fresh * b->n[2], 0, (size_t)((number - fresh) * b->n[2]) * sizeof(real));
        for (int64_t c = 0; c < width; c += LANES) {
            vec v = v_load(line + c);
            __builtin_prefetch((const char *)(to + c) + POOL_AHEAD, 1);
            if (add) v += R(pool_load)(to + c, width - c);
            R(pool_store)(to + c, v, width - c);
        }
        fresh = mg_max(fresh, number + 1);
    }
    return fresh;
}

/* The same for tiles of two columns and at most two lines that fill a plane. */
static MG_NOINLINE void R(pool_pairs_spread)(real *restrict out, const real *restrict g,
                                            const pool_set *b) {
    real shares[POOL_STRIP + LANES];
    pool_row row = pool_first(b);
    int64_t n = b->count[2], left = b->count[1], some = mg_min(b->joined, left);
    for (; left > 0; left -= some, g += some * n) {
        some = mg_min(some, left);
        R(pool_shares)(shares, g, some * n, b, &row, 0);
        for (int64_t r = 0; r < some; r++)
            for (int64_t q = 0; q < b->size[1][0]; q++, out += 2 * n)
                for (int64_t k = 0; k < n; k += LANES) {
                    int64_t at = mg_min(k, n - LANES);
                    vec share = v_load(shares + r * n + at);
                    for (int half = 0; half < 128; half += 64)
                        __builtin_prefetch((char *)(out + 2 * at) + b->ahead + half, 1);
                    v_store(out + 2 * at, TRANSPOSE_SHUFFLE(share, share, R(TRANSPOSE_LO)));
                    v_store(out + 2 * at + LANES, TRANSPOSE_SHUFFLE(share, share, R(TRANSPOSE_HI)));
                }
    }
}

/* out[...] = the sum of g[window] over its divisor, for the windows that contain the element. */
static void R(pool_spread)(real *restrict out, const real *restrict g, const pool_set *b) {
    _Alignas(64) real line[POOL_STRIP + 3 * LANES];
    if (b->single) {
        pool_row row = pool_first(b);
        vec share = v_set1(R(pool_scaled_one)((double)*g, R(pool_by)(b, &row, 0)));
        for (int64_t j = 0; j < b->n[2]; j += LANES) R(pool_store)(out + j, share, b->n[2] - j);
        return;
    }
    if (b->doubles && b->count[2] >= LANES) {
        R(pool_pairs_spread)(out, g, b);
        return;
    }
    bool each = b->covers || b->n[2] <= POOL_STRIP; /* all columns of a line are written */
    int64_t lines = b->n[0] * b->n[1], step = b->step[2], fresh = each ? 0 : lines, at;
    if (fresh) memset(out, 0, (size_t)(lines * b->n[2]) * sizeof(real));
    for (pool_batch t = pool_first_batch(b); t.n > 0; pool_next_batch(b, &t)) {
        int64_t width = pool_width(b, &t, &at), next = fresh, size;
        pool_row row = t.row;
        if (width <= POOL_STRIP) {
            if (b->tiled) R(pool_tile)(line, g, b, &t);
            else R(pool_share)(line, g, b, &t, at, width);
            for (int64_t r = 0; r < t.rows; r++, pool_next(b, &row, 1))
                next = R(pool_add_line)(out, line + r * width, b, &row, at, width, next);
        } else {
            real share[LANES];
            R(pool_shares)(share, g, 1, b, &row, t.i);
            vec all = v_set1(step == 1 ? *share : 0);
            for (int64_t c = 0; c < POOL_STRIP; c += LANES) v_store(line + c, all);
            for (int64_t c = 0; step > 1 && c < POOL_STRIP; c += step) {
                MG_AS_IT_IS;
                line[c] = *share;
            }
            for (int64_t j = 0; j < b->size[2][t.i]; j += size) {
                width = pool_piece(b, t.i, j, &size);
                next = R(pool_add_line)(out, line, b, &row, at + j * step, width, fresh);
            }
        }
        g += t.rows * t.n;
        /* Batches of one row share no column, unless each batch has all the columns of its
         * lines. */
        if (pool_by_lines(b) || t.i + t.n == b->count[2]) fresh = next;
    }
    if (fresh < lines)
        memset(out + fresh * b->n[2], 0, (size_t)((lines - fresh) * b->n[2]) * sizeof(real));
}
