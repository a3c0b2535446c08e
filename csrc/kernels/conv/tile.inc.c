/* tile.inc.c: the micro-kernel of convolutions: a tile of sums in registers; a template. */
#include "simd/real.h"

enum { R(CONV_NR) = CONV_NV * LANES };

/* Operands of a tile: columns of A and rows of B. The elements of a column lie a_row apart or, if
 * `place` is not NULL, where `place` says. The vectors of a row lie `gap` apart. If `half` is not
 * 0, the second half of a column lies `half` behind the first. Its sums then lie `skip` further
 * than the next row. `ahead`: memory to prefetch, or NULL. `plus`: rows that the sums are added to,
 * plus_row apart, or NULL. */
typedef struct {
    const real *a, *b, *ahead;
    int64_t a_row, half, skip, gap;
    const real *plus;
    int64_t plus_row;
    const conv_term *place;
} R(conv_factors);

/* ---- the tile -------------------------------------------------------------------------------- */

/* sum (mr x nv vectors) += k products of a column of A and a row of B, at the offsets of the table.
 * `close`: a column's elements are neighbours. `fetch`: prefetches f.ahead, a little with every
 * term. */
MG_INLINE void R(conv_terms)(const int mr, const int nv, const bool close, const bool fetch,
                             vec sum[CONV_MR][CONV_NV], R(conv_factors) f,
                             const conv_term *restrict term, int64_t k) {
    enum { GROUPS = 2 }; /* of half a column or of an odd height; neither has more than 8 rows */
    const int first = mr % 2 ? mr : mr / 2;
    /* Pointers to groups of four elements: few enough to stay in registers. */
    const real *group[2][GROUPS], *row[CONV_NV], *own[CONV_MR];
    MG_UNROLL
    for (int g = 0; g < GROUPS; g++) {
        group[0][g] = f.a + 4 * g * f.a_row;
        group[1][g] = f.a + f.half + 4 * g * f.a_row;
    }
    MG_UNROLL
    for (int i = 0; CONV_PLACED && i < mr; i++) {
        own[i] = f.a + (f.place ? f.place[i].a : i * f.a_row);
        MG_ANEW(own[i]);
    }
    MG_UNROLL
    for (int v = 0; v < nv; v++) {
        row[v] = f.b + v * f.gap;
        MG_ANEW(row[v]);
    }

    const char *ahead = (const char *)f.ahead;
    for (; k > 0; k--, term++, ahead += CONV_FETCH) {
        const real *column = f.a + term->a;
        MG_ANEW(column);
        vec rows[CONV_NV];
        if (fetch) __builtin_prefetch(ahead);
        MG_UNROLL
        for (int v = 0; v < nv; v++) rows[v] = v_load(row[v] + term->b);
        MG_UNROLL
        for (int i = 0; i < mr; i++) {
            int at = i % first;
            vec x = v_set1(close         ? column[i]
                           : CONV_PLACED ? own[i][term->a]
                                         : (group[i / first][at / 4] + term->a)[at % 4 * f.a_row]);
            MG_UNROLL
            for (int v = 0; v < nv; v++) sum[i][v] = v_fma(x, rows[v], sum[i][v]);
        }
    }
}

/* C (mr x nv vectors) = the sum of k such products, plus `plus`. */
MG_INLINE void R(conv_tile)(const int mr, const int nv, const bool close, real *c, int64_t c_row,
                            R(conv_factors) f, const conv_term *term, int64_t k) {
    vec sum[CONV_MR][CONV_NV];
    MG_UNROLL
    for (int i = 0; i < mr; i++) {
        MG_UNROLL
        for (int v = 0; v < nv; v++) sum[i][v] = v_set1(0);
    }
    if (!CONV_PLACED && mr * nv == CONV_MR * CONV_NV && !close && f.ahead)
        R(conv_terms)(mr, nv, close, true, sum, f, term, k);
    else
        R(conv_terms)(mr, nv, close, false, sum, f, term, k);
    const int first = mr % 2 ? mr : mr / 2;
    if (f.plus) {
        MG_UNROLL
        for (int i = 0; i < mr; i++, f.plus += f.plus_row) {
            if (!CONV_PLACED && !close && i == first) f.plus += f.skip;
            MG_UNROLL
            for (int v = 0; v < nv; v++) sum[i][v] += v_load(f.plus + v * LANES);
        }
    }
    MG_UNROLL
    for (int i = 0; i < mr; i++, c += c_row) {
        if (!CONV_PLACED && !close && i == first) c += f.skip;
        MG_UNROLL
        for (int v = 0; v < nv; v++) v_store(c + v * LANES, sum[i][v]);
    }
}

static void R(conv_tile_wide)(int rows, real *c, int64_t c_row, const R(conv_factors) * f,
                              const conv_term *term, int64_t k);
static void R(conv_tile_narrow)(int rows, real *c, int64_t c_row, const R(conv_factors) * f,
                                const conv_term *term, int64_t k);

/* The tile with its height chosen at run time (1..CONV_MR). Neighbouring elements at heights
 * CONV_MR and CONV_MR - 1 have code of their own. An odd height above 8 is computed as two
 * tiles. */
MG_INLINE void R(conv_tile_rows)(int rows, const int nv, real *c, int64_t c_row,
                                 const R(conv_factors) * from, const conv_term *term, int64_t k) {
    R(conv_factors) f = *from;
    bool close = f.a_row == 1 && f.half == 0;
    if (CONV_MR > 8 && close && rows == CONV_MR - 1) {
        R(conv_tile)(CONV_MR - 1, nv, true, c, c_row, f, term, k);
        return;
    }
    if (CONV_MR > 8 && rows > 8 && rows % 2) {
        int first = rows / 2;
        (nv > 1 ? R(conv_tile_wide) : R(conv_tile_narrow))(first, c, c_row, from, term, k);
        c += first * c_row;
        f.a += first * f.a_row;
        if (f.plus) f.plus += first * f.plus_row;
        rows -= first;
    }
    if (close && rows == CONV_MR) {
        R(conv_tile)(CONV_MR, nv, true, c, c_row, f, term, k);
        return;
    }
    if (f.half == 0) f.half = rows / 2 * f.a_row;
    switch (rows) {
#define CONV_CASE(r)                                                                               \
    case r:                                                                                        \
        if (r <= CONV_MR) R(conv_tile)(r, nv, false, c, c_row, f, term, k);                        \
        break;
        CONV_CASE(1) CONV_CASE(2) CONV_CASE(3) CONV_CASE(4) CONV_CASE(5) CONV_CASE(6) CONV_CASE(7)
        CONV_CASE(8) CONV_CASE(10) CONV_CASE(12) CONV_CASE(14)
#undef CONV_CASE
    }
}

static MG_NOINLINE void R(conv_tile_wide)(int rows, real *c, int64_t c_row,
                                          const R(conv_factors) * f, const conv_term *term,
                                          int64_t k) {
    R(conv_tile_rows)(rows, 2, c, c_row, f, term, k);
}

static MG_NOINLINE void R(conv_tile_narrow)(int rows, real *c, int64_t c_row,
                                            const R(conv_factors) * f, const conv_term *term,
                                            int64_t k) {
    R(conv_tile_rows)(rows, 1, c, c_row, f, term, k);
}

/* A tile of `rows` by up to CONV_NR lanes. */
MG_INLINE void R(conv_tile_any)(int64_t rows, int64_t cols, real *c, int64_t c_row,
                                R(conv_factors) f, const conv_term *term, int64_t k) {
    if (cols > LANES) R(conv_tile_wide)((int)rows, c, c_row, &f, term, k);
    else R(conv_tile_narrow)((int)rows, c, c_row, &f, term, k);
}

/* C (CONV_TALL vectors) = or += k products of neighbouring elements and a vector. Terms come in
 * threes, as neighbouring taps (`back`: in falling order). Each input is broadcast once for all
 * three taps. */
static MG_NOINLINE void R(conv_tile_taps)(real *restrict c, int64_t c_row, const real *a,
                                          const real *b, const conv_term *restrict term, int64_t k,
                                          bool back, bool add) {
    enum { TAPS = CONV_TAPS, HALF = CONV_TALL / 2, PART = HALF + TAPS / 2 };
    const int64_t first = back ? TAPS - 1 : 0, next = back ? -1 : 1;
    vec sum[2 * HALF];
    MG_UNROLL
    for (int i = 0; i < HALF; i++) sum[i] = sum[i + HALF] = v_set1(0);
    for (; k > 0; k -= TAPS, term += TAPS) {
        const real *column = a + term[first].a;
        vec rows[TAPS];
        MG_UNROLL
        for (int t = 0; t < TAPS; t++) rows[t] = v_load(b + term[first + t * next].b);
        MG_UNROLL
        for (int part = 0; part < 2; part++) {
            MG_UNROLL
            for (int i = part * PART; i < (part + 1) * PART; i++) {
                vec x = v_set1(column[i]);
                MG_UNROLL
                for (int t = 0; t < TAPS; t++)
                    if (i >= t && i - t < 2 * HALF) sum[i - t] = v_fma(x, rows[t], sum[i - t]);
                CONV_KEEP(x);
            }
        }
    }
    MG_UNROLL
    for (int part = 0; part < 2; part++) {
        MG_UNROLL
        for (int i = part * HALF; i < (part + 1) * HALF; i++, c += c_row) {
            if (add) sum[i] += v_load(c);
            v_store(c, sum[i]);
        }
    }
}

/* sum[channel][tap] += the inputs at one place of a line, a_row apart, times the gradients that use
 * them with taps `first` to `end`. */
MG_INLINE void R(conv_place)(const int first, const int end, vec sum[CONV_SIDE][CONV_TAPS],
                             const real *a, int64_t a_row, const real *b) {
    const real *half[2] = {a, a + CONV_SIDE / 2 * a_row};
    vec rows[CONV_TAPS];
    MG_UNROLL
    for (int t = first; t < end; t++) rows[t] = v_load(b - t * R(CONV_NR));
    MG_UNROLL
    for (int i = 0; i < CONV_SIDE; i++) {
        vec x = v_set1(half[i / (CONV_SIDE / 2)][i % (CONV_SIDE / 2) * a_row]);
        MG_UNROLL
        for (int t = first; t < end; t++) sum[i][t] = v_fma(x, rows[t], sum[i][t]);
        CONV_KEEP(x);
    }
}

/* C[channel][tap] = or += sums over lines of n > 1 inputs times a vector of gradients. The tile has
 * CONV_SIDE channels, c_row apart in C and a_row apart in the inputs, and neighbouring taps. Lines
 * begin where the table says. Each input is broadcast once for all taps. */
static MG_NOINLINE void R(conv_tile_lines)(real *restrict c, int64_t c_row, const real *restrict a,
                                           int64_t a_row, const real *restrict b,
                                           const conv_term *restrict place, int64_t lines,
                                           int64_t n, bool add) {
    enum { NR = R(CONV_NR) };
    vec sum[CONV_SIDE][CONV_TAPS];
    MG_UNROLL
    for (int i = 0; i < CONV_SIDE; i++) {
        MG_UNROLL
        for (int t = 0; t < CONV_TAPS; t++) sum[i][t] = v_set1(0);
    }
    for (; lines > 0; lines--, place += n) {
        const real *x = a + place->a, *end = x + n;
        R(conv_place)(0, 1, sum, x, a_row, b);
        R(conv_place)(0, 2, sum, x + 1, a_row, b + NR);
        for (x += 2, b += 2 * NR; x < end; x++, b += NR)
            R(conv_place)(0, CONV_TAPS, sum, x, a_row, b);
        R(conv_place)(1, CONV_TAPS, sum, x, a_row, b);
        R(conv_place)(2, CONV_TAPS, sum, x + 1, a_row, b + NR);
    }
    MG_UNROLL
    for (int i = 0; i < CONV_SIDE; i++, c += c_row) {
        MG_UNROLL
        for (int t = 0; t < CONV_TAPS; t++) {
            if (add) sum[i][t] += v_load(c + t * NR);
            v_store(c + t * NR, sum[i][t]);
        }
    }
}
