/* columns.inc.c: reductions along the outer axis: a strip of neighbouring columns is reduced as
 * rows stream by.
 *
 * The lanes of a narrow strip lie as lanes[l * width + j]. Folding halves is then one loop over
 * memory, and a strip of full rows can take 16 rows as one long row. In a wide strip few lanes wait
 * at a time. A complete lane is joined at once with its partners in the tree. Memory is thus read
 * without pause and in long runs.
 */
#include "simd/real.h"

/* For any numbers, also NaN. */
MG_INLINE vec R(reduce_join_any)(int kind, vec a, vec b) {
#if MG_HAS_WIDE
    if (kind == REDUCE_MAX) return R(v_largest)(a, b);
#endif
    vec v = R(reduce_join_vec)(kind, a, b);
    return reduce_is_extremum(kind) ? R(reduce_choose)(b != b, b, v) : v;
}

/* The terms of one vector of columns. */
MG_INLINE vec R(reduce_terms)(int kind, const real *x, const real *c, int64_t used) {
    bool centred = kind == REDUCE_DOT || reduce_is_centred(kind);
    vec v = R(reduce_load)(x, used);
    return centred ? R(reduce_term_vec)(kind, v, R(reduce_load)(c, used)) : v;
}

/* Lines of partial results, `pitch` apart, that wait for their partners in the tree. The next
 * partial result is joined with line q if bit q of `joins` is set, in the order of q. */
typedef struct {
    const real *lines;
    int64_t pitch;
    unsigned joins;
} R(reduce_waiting);

/* Joins `side` vectors of columns, with `used` lanes each. Prefetches the element `ahead` of each.
 * Rows are often pages apart, and the processor's own prefetching starts anew with each page.
 * REDUCE_SIDE vectors of extrema are joined as numbers. In that case the result is false, and
 * nothing is stored, if an element may be NaN. */
MG_INLINE bool R(reduce_vectors_of)(int kind, int side, int64_t used, real *out, const real *x,
                                    int64_t stride, int64_t rows, const real *c,
                                    int64_t c_stride, int64_t ahead,
                                    const R(reduce_waiting) *with, int64_t at) {
    enum { PROBES = 4, LINE = 64 / sizeof(real) };
    bool many = side == REDUCE_SIDE, probed = many && reduce_is_extremum(kind);
    vec a[REDUCE_SIDE], probe[PROBES] = {{0}};
    const real *far = x + ahead;
    MG_UNROLL
    for (int v = 0; v < side; v++) {
        if (v * LANES % LINE == 0) __builtin_prefetch(far + v * LANES);
        a[v] = R(reduce_terms)(kind, x + v * LANES, c + v * LANES, used);
        if (probed) probe[v % PROBES] += a[v];
    }
    MG_ROLLED
    for (int64_t k = 1; k < rows; k++) {
        x += stride;
        c += c_stride;
        far += stride;
        if (many) MG_ANEW(far); /* else gcc keeps an index for each of its lines */
        MG_UNROLL
        for (int v = 0; v < side; v++) {
            if (v * LANES % LINE == 0) __builtin_prefetch((many ? far : x + ahead) + v * LANES);
            vec term = R(reduce_terms)(kind, x + v * LANES, c + v * LANES, used);
            if (probed) {
                MG_HELD(term);
                probe[v % PROBES] += term;
            }
            a[v] = probed ? R(reduce_join_vec)(kind, a[v], term)
                          : R(reduce_join_any)(kind, a[v], term);
        }
    }
    if (probed && R(reduce_any_nan)((probe[0] + probe[1]) + (probe[2] + probe[3]))) return false;
    for (unsigned joins = with->joins; joins; joins &= joins - 1) {
        const real *line = with->lines + __builtin_ctz(joins) * with->pitch + at;
        MG_UNROLL
        for (int v = 0; v < side; v++)
            a[v] = R(reduce_join_any)(kind, R(reduce_load)(line + v * LANES, used), a[v]);
    }
    MG_UNROLL
    for (int v = 0; v < side; v++) R(reduce_store)(out + v * LANES, a[v], used);
    return true;
}

/* out[j] = the join of column j of `rows` rows, in order, after the lines that wait. Row k has its
 * centres at c + k * c_stride.
 *
 * With half of the lane's rows or more, memory 8 KB further on is prefetched, on Zen 4 4 KB. It
 * lies in these rows or in the rows `ahead`. More would evict itself from L1, as rows are often so
 * far apart that they share cache sets. Extrema that may include a NaN continue in shorter steps.
 */
MG_INLINE void R(reduce_rows_of)(int kind, real *out, const real *x, int64_t stride, int64_t rows,
                                 int64_t width, const real *c, int64_t c_stride,
                                 int64_t ahead, const R(reduce_waiting) *with) {
    enum {
        MANY = REDUCE_SIDE * LANES,
        SOME = MANY / 2,
        LATER = 4096 / (int)sizeof(real)
    };
    /* worth the code only if there are enough registers */
    bool often = kind == REDUCE_SUM || reduce_is_extremum(kind);
    int64_t j = 0;
    if (MG_VECTOR_BYTES == 64 && often && rows >= REDUCE_DEPTH / 2 && width >= MANY) {
        int64_t whole = width / MANY * MANY, asked = mg_system_zen() == 4 ? LATER : 2 * LATER;
        int64_t later = mg_min(whole, asked / rows);
        while (j < whole &&
               R(reduce_vectors_of)(kind, REDUCE_SIDE, LANES, out + j, x + j, stride, rows, c + j,
                                    c_stride,
                                    j + later < whole ? later : ahead + later - whole, with, j))
            j += MANY;
    }
    for (; j + SOME <= width; j += SOME)
        R(reduce_vectors_of)(kind, REDUCE_SIDE / 2, LANES, out + j, x + j, stride, rows, c + j,
                             c_stride, ahead, with, j);
    for (; j < width; j += LANES)
        R(reduce_vectors_of)(kind, 1, mg_min(width - j, LANES), out + j, x + j, stride, rows, c + j,
                             c_stride, ahead, with, j);
}

MG_NOINLINE void R(mg_reduce_exp)(bool adds, real *restrict out, const real *restrict x,
                                  const real *restrict c, int64_t n) {
#if MG_HAS_WIDE
    enum { WIDE = WIDE_VECTORS * LANES };
    int64_t i = 0;
    for (; i + WIDE <= n; i += WIDE) {
        R(wide) e = R(w_exp_below)(R(w_sub)(R(w_load)(x + i), R(w_load)(c + i)));
        MG_ANEW(adds); /* one loop instead of two */
        if (adds) e = R(w_add)(R(w_load)(out + i), e);
        R(w_store)(out + i, e);
    }
    if (i == n) return;
    R(wide) rest = R(w_set)(0);
    for (int64_t k = 0; i + k < n; k += LANES) {
        int used = (int)mg_min(n - i - k, LANES);
        rest.v[k / LANES] = v_load_n(x + i + k, used) - v_load_n(c + i + k, used);
    }
    rest = R(w_exp_below)(rest);
    for (int64_t k = 0; i + k < n; k += LANES) {
        int used = (int)mg_min(n - i - k, LANES);
        vec e = rest.v[k / LANES];
        if (adds) e += v_load_n(out + i + k, used);
        v_store_n(out + i + k, e, used);
    }
#else
    for (int64_t i = 0; i < n; i++) out[i] = (adds ? out[i] : 0) + R(v_exp_below)(x[i] - c[i]);
#endif
}

/* The same for exponentials of width <= REDUCE_STRIP columns. There are no waiting lines. */
static void R(reduce_rows_of_exp)(real *restrict out, const real *x, int64_t stride, int64_t rows,
                                  int64_t width, const real *c, int64_t ahead) {
    enum { LINE = 64 / sizeof(real) };
    for (int64_t k = 0; k < rows; k++, x += stride) {
        for (int64_t j = 0; j < width && ahead; j += LINE) __builtin_prefetch(x + ahead + j);
        R(mg_reduce_exp)(k > 0, out, x, c, width);
    }
}

/* The same for a variable kind. Only this function and the next are compiled for each kind; they
 * are not inlined, as their callers are long. */
static MG_NOINLINE void R(reduce_rows)(int kind, real *out, const real *x, int64_t stride,
                                       int64_t rows, int64_t width, const real *c,
                                       int64_t c_stride, int64_t ahead,
                                       const R(reduce_waiting) *with) {
    switch (kind) {
    case REDUCE_DEVIATION:
        R(reduce_rows_of)(REDUCE_DEVIATION, out, x, stride, rows, width, c, 0, ahead, with);
        break;
    case REDUCE_SQUARES:
        R(reduce_rows_of)(REDUCE_SQUARES, out, x, stride, rows, width, c, 0, ahead, with);
        break;
    case REDUCE_SUMEXP: R(reduce_rows_of_exp)(out, x, stride, rows, width, c, ahead); break;
    case REDUCE_DOT:
        R(reduce_rows_of)(REDUCE_DOT, out, x, stride, rows, width, c, c_stride, ahead, with);
        break;
    case REDUCE_TIES:
        R(reduce_rows_of)(REDUCE_TIES, out, x, stride, rows, width, c, 0, ahead, with);
        break;
    case REDUCE_MAX:
        R(reduce_rows_of)(REDUCE_MAX, out, x, stride, rows, width, c, 0, ahead, with);
        break;
    case REDUCE_MIN:
        R(reduce_rows_of)(REDUCE_MIN, out, x, stride, rows, width, c, 0, ahead, with);
        break;
    case REDUCE_PROD:
        R(reduce_rows_of)(REDUCE_PROD, out, x, stride, rows, width, c, 0, ahead, with);
        break;
    default: R(reduce_rows_of)(REDUCE_SUM, out, x, stride, rows, width, c, 0, ahead, with);
    }
}

MG_INLINE void R(reduce_into_of)(int kind, real *a, const real *b, int64_t width) {
    for (int64_t j = 0; j < width; j += LANES) {
        int64_t used = mg_min(width - j, LANES);
        vec v = R(reduce_load)(b + j, used);
        R(reduce_store)(a + j, R(reduce_join_any)(kind, R(reduce_load)(a + j, used), v), used);
    }
}

/* a[j] = a[j] join b[j] */
static MG_NOINLINE void R(reduce_into)(int kind, real *a, const real *b, int64_t width) {
    switch (kind) {
    case REDUCE_MAX: R(reduce_into_of)(REDUCE_MAX, a, b, width); break;
    case REDUCE_MIN: R(reduce_into_of)(REDUCE_MIN, a, b, width); break;
    case REDUCE_PROD: R(reduce_into_of)(REDUCE_PROD, a, b, width); break;
    default: R(reduce_into_of)(REDUCE_SUM, a, b, width);
    }
}

/* A block of wide rows, with the lanes in depth-first order: 0, 8, 4, 12, 2, ... At each level lane
 * l, or the subtree that it is part of, has a partner `half` lanes back or `half` lanes on. A
 * partner further back is already waiting; for a partner further on l waits. Or there is no
 * partner. `lanes` has room for one line more than there are levels. */
static void R(reduce_block_deep)(int kind, real *lanes, const real *x, int64_t stride, int64_t n,
                                 int64_t width, const real *c, int64_t c_stride,
                                 const real *next) {
    int64_t used = mg_min(n, REDUCE_LANES);
    R(reduce_waiting) with = {.lines = lanes + width, .pitch = width};
    for (int64_t l = 0, after, half;; l = after) {
        int level = 0;
        with.joins = 0;
        for (half = REDUCE_LANES / 2; half > 0; half /= 2, level++) {
            if (l & half) with.joins |= 1u << level;
            else if (l % half + half < used) break;
        }
        after = half ? l % half + half : 0;
        R(reduce_rows)(kind, half ? lanes + (level + 1) * width : lanes, x + l * stride,
                       REDUCE_LANES * stride, mg_ceil_div(n - l, REDUCE_LANES), width,
                       c + l * c_stride, REDUCE_LANES * c_stride,
                       half ? (after - l) * stride : next - x - l * stride, &with);
        if (half == 0) return;
    }
}

/* The same for extrema, which need no lanes: the rows in order, joined with the rows before. */
static void R(reduce_block_in_order)(int kind, real *line, const real *x, int64_t stride, int64_t n,
                                     int64_t width, const real *next) {
    R(reduce_waiting) before = {.lines = line};
    for (int64_t l = 0, some; l < n; l += some, before.joins = 1) {
        some = mg_min(n - l, REDUCE_DEPTH);
        int64_t ahead = l + some < n ? some * stride : next - x - l * stride;
        R(reduce_rows)(kind, line, x + l * stride, stride, some, width, x, 0, ahead, &before);
    }
}

/* Reduces one block of n <= 128 rows to lanes[0..width). `dense`: rows follow each other without a
 * gap; c then holds the centres 16 times. `next`: the next block, or x itself. Exponentials come
 * second, when x is in cache, and prefetch all of `next`. Other kinds prefetch its first rows. */
static void R(reduce_block)(int kind, real *lanes, const real *x, int64_t stride, int64_t n,
                            int64_t width, bool dense, const real *c, int64_t c_stride,
                            const real *next) {
    int64_t used = mg_min(n, REDUCE_LANES);
    R(reduce_waiting) none = {.joins = 0};
    if (width > REDUCE_STRIP && reduce_is_extremum(kind)) {
        R(reduce_block_in_order)(kind, lanes, x, stride, n, width, next);
        return;
    }
    if (width > REDUCE_STRIP) {
        R(reduce_block_deep)(kind, lanes, x, stride, n, width, c, c_stride, next);
        return;
    }
    if (dense) { /* 16 rows are one; the last one may be short */
        int64_t line = REDUCE_LANES * width, full = n / REDUCE_LANES;
        int64_t rest = n % REDUCE_LANES * width;
        if (rest > 0) R(reduce_rows)(kind, lanes, x, line, full + 1, rest, c, 0, 0, &none);
        if (full > 0)
            R(reduce_rows)(kind, lanes + rest, x + rest, line, full, line - rest, c + rest, 0, 0,
                           &none);
    } else {
        for (int64_t l = 0; l < used; l++) {
            int64_t ahead = kind == REDUCE_SUMEXP ? next - x
                            : l + 1 < used        ? stride
                                                  : next - x - l * stride;
            R(reduce_rows)(kind, lanes + l * width, x + l * stride, REDUCE_LANES * stride,
                           mg_ceil_div(n - l, REDUCE_LANES), width, c + l * c_stride,
                           REDUCE_LANES * c_stride, ahead, &none);
        }
    }
    for (int half = REDUCE_LANES / 2; half > 0; half /= 2) {
        if (used <= half) continue;
        R(reduce_into)(kind, lanes, lanes + half * width, (used - half) * width);
        used = half;
    }
}

/* y[j] = the join of column j of n <= REDUCE_ROWS rows. Blocks are joined like the carries of a
 * binary counter. Level i of the stack holds the join of 2^i blocks if bit i of the number of
 * finished blocks is set. `dense` and c are those of reduce_block. */
static void R(reduce_strip)(int kind, real *y, const real *x, int64_t stride, int64_t n,
                            int64_t width, bool dense, const real *c, int64_t c_stride) {
    enum { WIDEST = REDUCE_WIDE / sizeof(real) };
    /* also enough for five of the widest lines */
    _Alignas(64) real lanes[REDUCE_LANES * REDUCE_STRIP + WIDEST];
    _Alignas(64) real stack[REDUCE_LEVELS][WIDEST];
    bool wide = width > WIDEST * 3 / 4 && kind != REDUCE_SUMEXP;
    /* pages are read one at a time */
    bool whole = reduce_is_extremum(kind) || mg_system_zen() == 4;
    int64_t strip = !wide ? REDUCE_STRIP : whole ? width : REDUCE_WIDER;
    const real *begin = x;
    for (int64_t done = 0;; done++, n -= REDUCE_BLOCK) {
        bool last = n <= REDUCE_BLOCK;
        for (int64_t j = 0; j < width; j += strip) {
            int64_t some = mg_min(width - j, strip);
            const real *next = j + some < width ? x + j + some
                               : last           ? (stride > width ? begin + width : x + n * stride)
                                                : x + REDUCE_BLOCK * stride;
            R(reduce_block)(kind, lanes, x + j, stride, mg_min(n, REDUCE_BLOCK), some, dense, c + j,
                            c_stride, next);
            const real *top = lanes;
            int level = 0;
            for (int64_t carry = done; last ? carry > 0 : carry & 1; carry >>= 1, level++) {
                if (!(carry & 1)) continue;
                R(reduce_into)(kind, stack[level] + j, top, some);
                top = stack[level] + j;
            }
            memcpy(last ? y + j : stack[level] + j, top, (size_t)some * sizeof(real));
        }
        if (last) return;
        x += REDUCE_BLOCK * stride;
        c += REDUCE_BLOCK * c_stride;
    }
}
