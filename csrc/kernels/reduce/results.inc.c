/* results.inc.c: the last steps of reductions: joins of partial results, division and square root;
 * a template. */
#include "simd/real.h"

/* Sums are never -0, so that lanes may be left out or padded with zeros alike. */
MG_INLINE real R(reduce_finish)(int kind, real a) { return kind <= REDUCE_TIES ? a + 0 : a; }

MG_NOINLINE real R(mg_reduce_or_nan)(real v, const real *x, int64_t n) {
    int64_t i = 0;
    while (i + LANES <= n && !R(reduce_any_nan)(v_load(x + i))) i += LANES;
    for (; i < n; i++)
        if (x[i] != x[i]) return x[i];
    return v;
}

/* y[r] = the join of row r. With vectors of 32 bytes four rows that lie far apart are read at once.
 * The processor then prefetches each of the four. */
MG_INLINE void R(reduce_along_rows)(int kind, real *restrict y, int64_t y_step,
                                    const real *restrict x, int64_t x_step, int64_t rows, int64_t n,
                                    const real *restrict c, int64_t c_step) {
    int64_t r = 0, apart = rows / REDUCE_APART;
    bool sums = kind == REDUCE_SUM || kind == REDUCE_SQUARES;
    if (MG_VECTOR_BYTES == 32 && (sums || reduce_is_extremum(kind)) && n >= REDUCE_BLOCK) {
        for (; r < apart; r++) {
            const real *row = x + r * x_step;
            vec a = sums ? R(reduce_row_apart)(kind, row, apart * x_step, n, c + r * c_step,
                                               apart * c_step)
                         : R(reduce_extremum_apart)(kind, row, apart * x_step, n);
            MG_UNROLL
            for (int i = 0; i < REDUCE_APART; i++)
                y[(r + i * apart) * y_step] = R(reduce_finish)(kind, a[i]);
        }
        r *= REDUCE_APART;
    }
    for (; r < rows; r++) {
        const real *row = x + r * x_step;
        real a = reduce_is_extremum(kind) ? R(reduce_extremum)(kind, row, n)
                                          : R(reduce_row)(kind, row, n, c + r * c_step);
        y[r * y_step] = R(reduce_finish)(kind, a);
    }
}

/* y[j] = the join of column j, n <= REDUCE_ROWS and width within REDUCE_WIDE. */
static MG_NOINLINE void R(reduce_along_columns)(int kind, real *y, int64_t y_step, const real *x,
                                                int64_t stride, int64_t width, int64_t n,
                                                const real *c, int64_t c_step) {
    real all[REDUCE_WIDE / sizeof(real)], centre[REDUCE_WIDE / sizeof(real)];
    bool dot = kind == REDUCE_DOT, dense = !dot && reduce_is_dense(stride, width);
    if (reduce_is_centred(kind) && (dense || c_step != 1)) {
        for (int64_t i = 0; i < (dense ? REDUCE_LANES : 1); i++)
            for (int64_t j = 0; j < width; j++) centre[i * width + j] = c[j * c_step];
        c = centre;
    }
    real *made = y_step == 1 ? y : all;
    R(reduce_strip)(kind, made, x, stride, n, width, dense, c, dot ? stride : 0);
    if (kind <= REDUCE_TIES)
        MG_APART
        for (int64_t j = 0; j < width; j++) made[j] += 0; /* as in reduce_finish */
    if (made == y) return;
    for (int64_t j = 0; j < width; j++) y[j * y_step] = all[j];
}

/* `run` results, and second results for a pair, from n <= REDUCE_CHUNK elements each, with the
 * plan's strides. Kinds without centres have c NULL; for REDUCE_DOT it has the layout of x. */
static void R(reduce_piece)(int kind, const reduce_plan *p, void *out, void *out2, const void *in,
                            int64_t run, int64_t n, const void *centre) {
    real *y = out, *y2 = out2;
    const real *x = in, *c = centre ? centre : in, zero = 0;
    int64_t ys = p->run_y, xs = p->run_x, cs = p->run_c;
    if (p->columns && y2) R(pair_along_columns)(kind, y, y2, ys, x, p->stride, run, n, c, cs);
    else if (p->columns) R(reduce_along_columns)(kind, y, ys, x, p->stride, run, n, c, cs);
    else switch (kind) {
    case REDUCE_SUM: R(reduce_along_rows)(REDUCE_SUM, y, ys, x, xs, run, n, c, cs); break;
    case REDUCE_SQUARES: /* of a norm, about 0, which takes no operation */
        R(reduce_along_rows)(REDUCE_SQUARES, y, ys, x, xs, run, n, &zero, 0);
        break;
    case REDUCE_DOT: R(reduce_along_rows)(REDUCE_DOT, y, ys, x, xs, run, n, c, cs); break;
    case REDUCE_TIES: R(reduce_along_rows)(REDUCE_TIES, y, ys, x, xs, run, n, c, cs); break;
    case REDUCE_MAX: R(reduce_along_rows)(REDUCE_MAX, y, ys, x, xs, run, n, c, cs); break;
    case REDUCE_MIN: R(reduce_along_rows)(REDUCE_MIN, y, ys, x, xs, run, n, c, cs); break;
    case REDUCE_PROD: R(reduce_along_rows)(REDUCE_PROD, y, ys, x, xs, run, n, c, cs); break;
    case REDUCE_MOMENTS: R(pair_along_rows)(REDUCE_MOMENTS, y, y2, ys, x, xs, run, n, c, cs); break;
    case REDUCE_LOGSUM: R(pair_along_rows)(REDUCE_LOGSUM, y, y2, ys, x, xs, run, n, c, cs); break;
    }
}

/* y[j] = the pairwise join of parts[i][j] over `chunks` rows of `width`. Each part has `chunk`
 * terms, except the last; n terms in all. The parts are overwritten. */
static void R(reduce_parts)(int kind, void *out, void *out2, void *in, void *in2, int64_t chunks,
                            int64_t chunk, int64_t width, int64_t n) {
    real *parts = in, *parts2 = in2;
    for (int64_t step = 1; step < chunks; step *= 2)
        for (int64_t i = 0; i + step < chunks; i += 2 * step) {
            real *a = parts + i * width, *b = a + step * width;
            int64_t terms = step * chunk;
            int64_t after = mg_min(n - (i + step) * chunk, terms);
            if (out2)
                R(pair_into)(kind, a, parts2 + i * width, b, parts2 + (i + step) * width, width,
                             terms, after);
            else R(reduce_into)(kind, a, b, width);
        }
    memcpy(out, parts, (size_t)width * sizeof(real));
    if (out2) memcpy(out2, parts2, (size_t)width * sizeof(real));
}

static void R(reduce_fill)(void *out, int64_t n, double value) {
    real *y = out;
    for (int64_t i = 0; i < n; i++) y[i] = REAL_C(value);
}

/* y /= divisor, then the square root if `root` */
static void R(reduce_divide)(void *out, int64_t n, double divisor, bool root) {
    real *y = out, d = REAL_C(divisor);
    for (int64_t i = 0; i < n; i++) y[i] /= d;
    for (int64_t i = 0; i < n && root; i++)
        y[i] = sizeof(real) == 4 ? (real)__builtin_sqrtf((float)y[i]) : (real)__builtin_sqrt(y[i]);
}

/* y = y + rest / terms: adds the squares of the means of `terms` elements each. */
static void R(reduce_add_between)(void *out, const void *rest, int64_t n, double terms) {
    real *restrict y = out;
    const real *restrict q = rest;
    for (int64_t i = 0; i < n; i++) y[i] += q[i] / REAL_C(terms);
}

/* y = c + log(y) where c is finite, else c: the maximum c decides about NaN, inf and -inf. */
static void R(reduce_add_log)(void *out, const void *centre, int64_t n) {
    real *restrict y = out, logs[REDUCE_STRIP];
    const real *restrict c = centre;
    for (int64_t some; n > 0; n -= some, y += some, c += some) {
        some = mg_min(n, REDUCE_STRIP);
        R(v_log_any)(logs, y, some);
        MG_APART
        for (int64_t i = 0; i < some; i++) y[i] = c[i] - c[i] == 0 ? c[i] + logs[i] : c[i];
    }
}

/* ---- squares beyond the range ---- */

/* True if a sum of squares may have lost terms, as it is below `low`, or overflowed. */
static bool R(reduce_lost)(const void *sums, int64_t n, double low) {
    const real *s = sums, least = REAL_C(low), most = REAL_C(sizeof(real) == 4 ? FLT_MAX : DBL_MAX);
    ireal lost = 0;
    for (int64_t i = 0; i < n; i++) lost |= !((s[i] >= least) & (s[i] <= most));
    return lost != 0;
}

/* top = the power of two that scales the largest magnitude of a line to near 1. It is 1 if no term
 * was lost, or the magnitude is near 1, 0 or infinite. On entry `top` and `least` are the extrema.
 * True if one of the powers is not 1. */
static bool R(reduce_units)(void *out, const void *low, const void *sums, int64_t n, double limit) {
    enum { NEAR = 16, FAR = sizeof(real) == 4 ? 126 : 1022 };
    real *top = out;
    const real *least = low;
    bool any = false;
    for (int64_t i = 0; i < n; i++) {
        double size = fmax((double)top[i], -(double)least[i]);
        int power = 0;
        if (size - size == 0) frexp(size, &power);
        bool lost = R(reduce_lost)((const real *)sums + i, 1, limit) && abs(power) > NEAR;
        top[i] = lost ? REAL_C(ldexp(1, -(int)mg_min(mg_max(power, -FAR), FAR))) : 1;
        any |= lost;
    }
    return any;
}

static void R(reduce_times)(void *out, const void *const *in, int64_t n) {
    real *y = out;
    const real *x = in[0], *factor = in[1];
    nditer_full_vectors(n, sizeof(real));
    MG_APART
    for (int64_t i = 0; i < n; i++) y[i] = x[i] * factor[i];
}

/* y /= the units, `times` times. */
static void R(reduce_out_of_units)(void *out, const void *units, int64_t n, int times) {
    real *restrict y = out;
    const real *restrict unit = units;
    for (; times > 0; times--)
        for (int64_t i = 0; i < n; i++) y[i] /= unit[i];
}

/* y[i] = the product of line i of n neighbouring elements, even if partial products leave the
 * range. If nothing was lost y[i] is kept: the bits of a line do not depend on other lines. */
static void R(reduce_product_apart)(void *out, const void *lines, int64_t i, int64_t n) {
    real *y = out;
    const real *x = (const real *)lines + i * n;
    apart product = {1, 0};
    for (int64_t k = 0; k < n; k++) product = apart_times(product, apart_of((double)x[k]));
    real value = REAL_C(apart_value(product));
    double unit = sizeof(real) == 4 ? FLT_EPSILON : DBL_EPSILON;
    if (!(fabs((double)y[i] - (double)value) <= (double)n * unit * fabs((double)value))) y[i] = value;
}
