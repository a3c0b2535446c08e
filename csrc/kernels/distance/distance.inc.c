/* distance.inc.c: distances from points x to a run of points y, of one float width.
 *
 * The points y are transposed: a row for each coordinate, `row` elements apart. Rows can be read up
 * to a full vector.
 */
#include "simd/real.h"

/* out[i, j] = |x_i - y_j|^2, for n points x and `run` points y; rows of out are `out_row` apart. */
static void R(distance_run)(void *to, int64_t out_row, const void *from, const void *others,
                            int64_t row, int64_t n, int64_t run, int64_t k) {
    real *out = to;
    const real *x = from, *y = others;
    for (int64_t i = 0; i < n; i++, x += k, out += out_row)
        for (int64_t j = 0; j < run; j += LANES) {
            vec square = v_set1(0);
            for (int64_t p = 0; p < k;) {
                vec part = v_set1(0);
                for (int64_t end = mg_min(p + DISTANCE_TERMS, k); p < end; p++) {
                    vec d = v_set1(x[p]) - v_load(y + p * row + j);
                    part = v_fma(d, d, part);
                }
                square += part;
            }
            R(reduce_store)(out + j, square, mg_min(LANES, run - j));
        }
}

/* Tells whether sums of k squares may be wrong: whether one lost terms or overflowed, or is 0. */
static int R(distance_far)(const void *squares, int64_t n, int64_t k) {
    const real *s = squares, low = REAL_C(2 * (double)k * (sizeof(real) == 4 ? FLT_MIN : DBL_MIN));
    const real most = REAL_C(sizeof(real) == 4 ? FLT_MAX : DBL_MAX);
    ireal lost = 0, zero = 0;
    for (int64_t i = 0; i < n; i++) {
        lost |= !((s[i] >= low) & (s[i] <= most)) & (s[i] != 0);
        zero |= s[i] == 0;
    }
    return lost ? MG_DISTANCE_LOST : zero ? MG_DISTANCE_ZERO : 0;
}

/* True if a coordinate is so small that squares of differences may vanish. */
static bool R(distance_small)(const void *from, int64_t n) {
    const real *x = from, low = REAL_C(sizeof(real) == 4 ? 0x1p-50 : 0x1p-480);
    ireal small = 0;
    for (int64_t i = 0; i < n; i++) small |= (x[i] < low) & (x[i] > -low) & (x[i] != 0);
    return small != 0;
}

/* dx_i = sum over j of g_ij (x_i - y_j) / d_ij. dy, which is transposed like y, gets the same with
 * the sign changed. A distance of 0 or a g of 0 contributes nothing. */
static void R(distance_run_vjp)(void *to, void *others_to, const void *upstream,
                                const void *distances, int64_t g_row, const void *from,
                                const void *others, int64_t row, int64_t n, int64_t run,
                                int64_t k) {
    real *dx = to, *dy = others_to, partial[MG_DISTANCE_RUN];
    const real *g = upstream, *d = distances, *x = from, *y = others;
    const vec none = v_set1(0), least = v_set1(REAL_C(sizeof(real) == 4 ? FLT_MIN : DBL_MIN));
    const vec most = v_set1(REAL_C(sizeof(real) == 4 ? FLT_MAX : DBL_MAX));
    for (int64_t i = 0; i < n; i++, x += k, dx += k, g += g_row, d += g_row) {
        R(reduce_mask) left = {0};
        for (int64_t j = 0; j < run; j += LANES) {
            int64_t some = mg_min(LANES, run - j);
            vec length = R(reduce_load)(d + j, some), w = R(reduce_load)(g + j, some);
            R(reduce_mask) no = (length == none) | (w == none);
            vec made = R(reduce_choose)(no, none, w / length), size = R(reduce_choose)(made < none, none - made, made);
            v_store(partial + j, made);
            left |= ~no & ~((size >= least) & (size <= most));
        }
        bool far = false;
        for (int l = 0; l < LANES; l++) far |= left[l] != 0;
        for (int64_t p = 0; p < k; p++) {
            const real *at = y + p * row;
            real *onto = dy + p * row;
            vec own = v_set1(x[p]), sum = none;
            for (int64_t j = 0; j < run; j += LANES) {
                vec w = v_load(partial + j), part = w * (own - v_load(at + j));
                /* divides first; with an infinite distance the result is NaN */
                if (MG_UNLIKELY(far)) {
                    int64_t some = mg_min(LANES, run - j);
                    vec length = R(reduce_load)(d + j, some);
                    w = R(reduce_load)(g + j, some);
                    w = R(reduce_choose)(length == none, none, w);
                    part = w * ((own - v_load(at + j)) / (length + (length - length)));
                }
                part = R(reduce_choose)(w == none, none, part);
                sum += part;
                v_store(onto + j, v_load(onto + j) - part);
            }
            dx[p] = R(reduce_across)(REDUCE_SUM, sum);
        }
    }
}
