/* backward.inc.c: gradients of reductions, element by element; a template for each float width. */
#include "simd/real.h"

/* out = g / count, the number of elements that share g; out and count are the same array. */
static void R(back_share)(void *out, const void *const *in, int64_t n) {
    real *y = out;
    const real *g = in[0], *count = in[1];
    nditer_full_vectors(n, sizeof(real));
    MG_APART
    for (int64_t i = 0; i < n; i++) y[i] = g[i] / count[i];
}

/* partial = (g / y) * scale, or g * scale without y; out and g are the same array. The partial is 0
 * if g or g / y is 0, whatever the other factors are, and if the root y is 0. True if a partial
 * lost digits or overflowed, though its product with a deviation may be in range. */
static bool R(back_partial)(void *out, const void *from, const void *root, int64_t n, double scale) {
    const real least = REAL_C(sizeof(real) == 4 ? FLT_MIN : DBL_MIN);
    const real most = REAL_C(sizeof(real) == 4 ? FLT_MAX : DBL_MAX);
    real *partial = out; /* a subnormal root itself has few digits */
    const real *g = from, *y = root;
    ireal left = 0;
    for (int64_t i = 0; i < n; i++) { /* g is overwritten below */
        real by = y ? y[i] : 1, part = g[i] / by * REAL_C(scale), size = part < 0 ? -part : part;
        left |= !((size >= least) & (size <= most) & (by >= least)) & (g[i] != 0) & (by != 0);
    }
    MG_APART
    for (int64_t i = 0; i < n; i++) {
        real t = !y ? g[i] : ((y[i] == 0) | (g[i] == 0)) ? 0 : g[i] / y[i];
        partial[i] = t == 0 ? 0 : t * REAL_C(scale);
    }
    return left != 0;
}

/* For an extremum y: the share, if x is tied with y. */
MG_INLINE real R(back_spread)(real x, real y, real share) {
    return R(reduce_tied)(x, y) ? share : 0;
}
/* For a sum of squares about the mean: 0 if the partial is 0, whatever x is. */
MG_INLINE real R(back_lean)(real x, real mean, real partial) {
    return partial == 0 ? 0 : partial * (x - mean);
}

typedef real (*R(back_fn))(real x, real centre, real partial);

MG_INLINE void R(back_loop)(void *out, const void *const *in, int64_t n, R(back_fn) f) {
    real *restrict dx = out;
    const real *restrict x = in[0], *restrict centre = in[1], *restrict partial = in[2];
    nditer_full_vectors(n, sizeof(real));
    MG_APART
    for (int64_t i = 0; i < n; i++) dx[i] = f(x[i], centre[i], partial[i]);
}
static void R(back_spread_kernel)(void *out, const void *const *in, int64_t n) {
    R(back_loop)(out, in, n, R(back_spread));
}
static void R(back_lean_kernel)(void *out, const void *const *in, int64_t n) {
    R(back_loop)(out, in, n, R(back_lean));
}
/* True if a mean is so large beside the deviations that its rounding error matters for them. Three
 * elements decide. Among numbers around 0, hardly ever are all three so near their mean. */
MG_INLINE bool R(back_is_near)(real x, real mean) {
    real apart = x - mean, size = mean < 0 ? -mean : mean;
    return size > 64 * (apart < 0 ? -apart : apart);
}
MG_INLINE bool R(back_is_far)(real mean, real first, real middle, real last) {
    return R(back_is_near)(first, mean) & R(back_is_near)(middle, mean) & R(back_is_near)(last, mean);
}
/* Gradients about a mean must add up to 0. Subtracts the mean of their actual sum. */
static MG_NOINLINE void R(back_recentre)(real *restrict dx, int64_t n) {
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += (double)dx[i];
    sum /= (double)n;
    for (int64_t i = 0; i < n; i++) dx[i] = (real)((double)dx[i] - sum);
}
static void R(back_far_kernel)(void *out, const void *const *in, int64_t n) {
    real *far = out;
    const real *mean = in[0], *first = in[1], *middle = in[2], *last = in[3];
    for (int64_t i = 0; i < n; i++) far[i] = R(back_is_far)(mean[i], first[i], middle[i], last[i]);
}
static void R(back_less_kernel)(void *out, const void *const *in, int64_t n) {
    real *dx = out; /* also the first operand */
    const real *from = in[0], *less = in[1];
    for (int64_t i = 0; i < n; i++) dx[i] = from[i] - less[i];
}
static bool R(back_any)(const void *of, int64_t n) {
    const real *a = of;
    for (int64_t i = 0; i < n; i++)
        if (a[i] != 0) return true;
    return false;
}
/* The same about 0, for x and the partial. This loop is so short that it must prefetch x itself.
 * Without prefetching it took up to 1.2 times as long. */
static void R(back_scale_kernel)(void *out, const void *const *in, int64_t n) {
    enum { STEP = 4 * LANES };
    real *restrict dx = out;
    const real *restrict x = in[0], *restrict partial = in[1];
    nditer_full_vectors(n, sizeof(real));
    for (int64_t at = 0; at < n; at += STEP, dx += STEP, x += STEP, partial += STEP) {
        nditer_fetch((const char *)x, STEP * sizeof(real), NDITER_AHEAD);
        MG_APART
        for (int64_t i = 0; i < STEP; i++) dx[i] = R(back_lean)(x[i], 0, partial[i]);
    }
}

/* g (x - mean) / y scale, from factors of any size. The deviation is first divided by y, so that
 * the quotient is near 1. Both are halved if they could overflow. Without a root, y is 1. */
static void R(back_apart_kernel)(void *out, const void *const *in, int64_t n) {
    real *dx = out;
    const real *x = in[0], *mean = in[1], *y = in[2], *g = in[3], *scale = in[4];
    for (int64_t i = 0; i < n; i++) {
        double half = (double)y[i] > 1 ? 0.5 : 1, root = (double)y[i] * half;
        double part = ((double)x[i] * half - (double)mean[i] * half) / root;
        bool none = (y[i] == 0) | (g[i] == 0);
        dx[i] = none ? 0 : REAL_C((double)g[i] * (part * (double)scale[i]));
    }
}
/* The same where the divisor is 0: infinite, except for elements at the mean, and NaN if all are
 * equal. In that case `spread` is 0. */
static void R(back_limit_kernel)(void *out, const void *const *in, int64_t n) {
    real *dx = out;
    const real *x = in[0], *mean = in[1], *spread = in[2], *g = in[3];
    for (int64_t i = 0; i < n; i++) {
        real apart = x[i] - mean[i], limit = apart == 0 ? 0 : g[i] * REAL_C(INFINITY) * apart;
        dx[i] = g[i] == 0 ? 0 : spread[i] == 0 ? REAL_C(NAN) : limit;
    }
}

/* True if roots are so small or large that they, or quotients by them, may have lost digits. */
static bool R(back_far)(const void *roots, int64_t n) {
    const real most = REAL_C(sizeof(real) == 4 ? 0x1p96 : 0x1p960), *y = roots;
    ireal far = 0;
    for (int64_t i = 0; i < n; i++) far |= (y[i] != 0) & !((y[i] >= 1 / most) & (y[i] <= most));
    return far != 0;
}

/* Powers of two that bring such roots nearer to 1, and 1 for others. With `all`, all roots are
 * brought near 1. */
static void R(back_units)(void *out, const void *roots, int64_t n, bool all) {
    enum { FAR = sizeof(real) == 4 ? 126 : 1022 };
    const real most = REAL_C(sizeof(real) == 4 ? 0x1p96 : 0x1p960), *y = roots;
    const real unit = REAL_C(sizeof(real) == 4 ? 0x1p64 : 0x1p512);
    real *units = out;
    for (int64_t i = 0; i < n; i++) {
        int power = 0;
        units[i] = y[i] > most ? 1 / unit : (y[i] < 1 / most) & (y[i] > 0) ? unit : 1;
        if (!all || y[i] - y[i] != 0) continue;
        frexp((double)y[i], &power);
        units[i] = REAL_C(ldexp(1, -(int)mg_min(mg_max(power, -FAR), FAR)));
    }
}

static bool R(back_finite)(const void *from, int64_t n) {
    const real *a = from;
    real sum = 0;
    for (int64_t i = 0; i < n; i++) sum += a[i] - a[i];
    return sum == 0;
}

/* The mean of a row. If the sum overflowed, it is computed from smaller terms. */
MG_INLINE real R(back_mean)(real sum, const real *x, int64_t n) {
    if (MG_UNLIKELY(sum - sum != 0)) {
        real mean = 0;
        for (int64_t i = 0; i < n; i++) mean += x[i] / (real)n;
        return mean;
    }
    return sum / (real)n;
}

#if MG_HAS_WIDE
/* True if all of y are finite and no g is 0. Then g * exp(x - y) needs no special cases. */
static bool R(back_is_plain)(const void *of, int64_t n, const void *upstream, int64_t gs) {
    const real *y = of, *g = upstream;
    R(one_bits) other = 0; /* as wide as the float, so that both loops are vectorised */
    MG_APART for (int64_t i = 0; i < n; i++) other |= y[i] - y[i] == 0 ? 0 : 1;
    MG_APART for (int64_t i = 0; i < gs; i++) other |= g[i] == 0 ? 1 : 0;
    return other == 0;
}

/* dx = g * exp(x - y), the share of x in y. For an infinite y the factor is 1 at +inf and 0
 * elsewhere. There are n elements of y and g, or one if `y_step` or `g_step` is 0 instead of 1. Few
 * elements are done at a time, so that results are stored while exponentials are computed. The last
 * step goes back to a full step. */
static MG_NOINLINE void R(back_weigh)(void *out, const void *in, const void *of, int64_t y_step,
                                      const void *upstream, int64_t g_step, int64_t n, bool plain) {
    real *restrict dx = out;
    const real *restrict x = in, *y = of, *g = upstream;
    enum { WIDE = WIDE_VECTORS * LANES, LINE = 64 / sizeof(real) };
    enum { AHEAD = NDITER_AHEAD / sizeof(real) };
    real many[2][WIDE];
    if (y_step == 0) {
        R(w_store)(many[0], R(w_set)(y[0]));
        y = many[0];
    }
    if (g_step == 0) {
        R(w_store)(many[1], R(w_set)(g[0]));
        g = many[1];
    }
    for (int64_t i = 0;; i = mg_min(i + WIDE, n - WIDE)) {
        const real *c = y + i * y_step, *h = g + i * g_step;
        for (int k = 0; k < WIDE; k += LINE) {
            __builtin_prefetch(x + i + k + AHEAD);
            __builtin_prefetch(dx + i + k + AHEAD);
        }
        R(wide) share = R(w_exp_below)(R(w_sub)(R(w_load)(x + i), R(w_load)(c)));
        share = R(w_mul)(share, R(w_load)(h));
        MG_ANEW(plain); /* one loop instead of two */
        for (int k = 0; k < WIDE && !plain; k += LANES) {
            vec a = v_load(x + i + k), b = v_load(c + k), whole = v_load(h + k);
            R(reduce_mask) none = (whole == 0) | (b == v_set1(-REAL_C(INFINITY)));
            vec v = R(reduce_choose)(a == b, whole, share.v[k / LANES]);
            share.v[k / LANES] = R(reduce_choose)(none, v_set1(0), v);
        }
        R(w_store)(dx + i, share);
        if (i + WIDE == n) return;
    }
}
static void R(back_weigh_kernel)(void *out, const void *const *in, int64_t n) {
    nditer_full_vectors(n, sizeof(real));
    R(back_weigh)(out, in[1], in[2], 1, in[0], 1, n, false);
}
#else
/* dx = g * exp(x - y), the share of x in y. For an infinite y the factor is 1 at +inf and 0
 * elsewhere. */
static void R(back_weigh_kernel)(void *out, const void *const *in, int64_t n) {
    real *restrict dx = out;
    const real *restrict g = in[0], *restrict x = in[1], *restrict y = in[2];
    nditer_full_vectors(n, sizeof(real));
    for (int64_t i = 0; i < n; i++) {
        real share = R(v_exp_below)(x[i] == y[i] ? 0 : x[i] - y[i]);
        dx[i] = ((g[i] == 0) | (y[i] == -REAL_C(INFINITY))) ? 0 : g[i] * share;
    }
}
#endif

/* dx = g where x is tied with the extremum y, else 0. That is right if only one element of the line
 * is tied. `same`: y and g are single values; else each element has its own. Returns the number of
 * ties. */
static int64_t R(back_tied)(void *out, const void *in, const void *of, const void *upstream,
                            int64_t n, bool same) {
    enum { AHEAD = NDITER_AHEAD / sizeof(real) };
    real *dx = out;
    const real *x = in, *y = of, *g = upstream;
    R(reduce_mask) lanes = {0};
    int64_t ties = 0;
    for (int64_t i = 0; i < n; i += LANES) {
        int64_t used = mg_min(n - i, LANES);
        __builtin_prefetch(dx + i + AHEAD);
        __builtin_prefetch(x + i + AHEAD);
        vec v = R(reduce_load)(x + i, used), c = same ? v_set1(y[0]) : R(reduce_load)(y + i, used);
        vec share = same ? v_set1(g[0]) : R(reduce_load)(g + i, used);
        R(reduce_mask) tied = ((v == c) | ((v != v) & (c != c))) & R(reduce_used)(used);
        R(reduce_store)(dx + i, (vec)(tied & (R(reduce_mask))share), used);
        lanes -= tied;
    }
    for (int k = 0; k < LANES; k++) ties += lanes[k];
    return ties;
}

/* ---- lines that fit into cache ---- */

MG_INLINE void R(back_line)(real *restrict dx, const real *restrict x, int64_t n, real centre,
                            real partial, R(back_fn) f) {
    for (int64_t at = 0; at < n; at += BACK_STEP) {
        int64_t some = mg_min(n - at, BACK_STEP);
        nditer_fetch((char *)(dx + at), some * (int64_t)sizeof(real), NDITER_AHEAD);
        MG_APART
        for (int64_t i = at; i < at + some; i++) dx[i] = f(x[i], centre, partial);
    }
}

/* Gradients of `lines` <= REDUCE_STRIP rows of n elements, one after the other. Their sums are
 * computed first, which leaves the rows in cache. For an extremum y, g is shared. For squares, g is
 * the partial, and y is not read. */
static void R(back_lines)(int kind, const reduce_plan *p, void *out, const void *in, const void *of,
                          const void *upstream, int64_t lines) {
    real sums[REDUCE_STRIP];
    real *restrict dx = out;
    const real *restrict x = in, *restrict y = of, *restrict g = upstream;
    int64_t n = p->n;
    mg_reduce_piece(kind, REAL_DTYPE, p, sums, NULL, x, lines, n, y);
    for (int64_t r = 0; r < lines; r++, x += n, dx += n)
        if (kind == REDUCE_TIES) R(back_line)(dx, x, n, y[r], g[r] / sums[r], R(back_spread));
        else {
            real mean = R(back_mean)(sums[r], x, n);
            R(back_line)(dx, x, n, mean, g[r], R(back_lean));
            if (R(back_is_far)(mean, x[0], x[n / 2], x[n - 1])) R(back_recentre)(dx, n);
        }
}
