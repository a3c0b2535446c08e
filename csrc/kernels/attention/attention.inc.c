/* attention.inc.c: attention between a block of queries and a block of keys, in one float width.
 *
 * Scores are stored key by key: scores[j * width + i] belongs to query i and key j. The maximum and
 * the sum over keys are thus found lane by lane for many queries at once. `width` is the number of
 * queries, `rows`, rounded up to full vectors. A query that is alone would leave lanes idle: its
 * width is 1, and its keys are spread over the lanes. Scores are logarithms to base 2.
 */
#include "simd/real.h"

typedef ireal R(attention_mask) __attribute__((vector_size(MG_VECTOR_BYTES)));

#define ATTENTION_EACH_LANE for (int l = 0; l < LANES; l++)

MG_INLINE int64_t R(attention_width)(int64_t rows) {
    return rows == 1 ? 1 : mg_ceil_div(rows, LANES) * LANES;
}

MG_INLINE void R(attention_scale_row)(real *restrict scaled, const real *restrict q, int64_t step,
                                      real scale, int64_t depth) {
    for (int64_t d = 0; d < depth; d++) scaled[d] = q[d * step] * scale;
}

/* scaled = q * scale * log2(e) for `rows` queries from `at` on. `scaled` is contiguous. */
static void R(attention_scale)(real *restrict scaled, const attention_plan *t,
                               const attention_item *head, int64_t at, int64_t rows) {
    const real *q = (const real *)head->q + at * t->q.row, scale = (real)(t->scale * ATTENTION_LOG2E);
    int64_t step = t->q.col, depth = t->depth;
    for (int64_t i = 0; i < rows; i++, q += t->q.row, scaled += depth)
        if (step == 1) R(attention_scale_row)(scaled, q, 1, scale, depth);
        else R(attention_scale_row)(scaled, q, step, scale, depth);
}

/* The first query that sees key j, rounded down to a full vector. All queries of the block see
 * `common` keys, and each query sees one key more than the query before. */
MG_INLINE int64_t R(attention_first)(int64_t j, int64_t common) {
    return mg_max(0, j - common + 1) / LANES * LANES;
}

/* to = x y^T for keys x and queries y. Steps of queries that see none of the keys are left out. */
static void R(attention_by_query)(real *to, const real *x, int64_t x_row, int64_t x_col,
                                  const real *y, int64_t depth, int64_t rows, int64_t keys,
                                  int64_t common, int64_t width) {
    for (int64_t i = 0, n; i < rows; i += n) {
        n = common < keys ? mg_min(ATTENTION_STEP, rows - i) : rows;
        int64_t seen = mg_min(keys, common + i + n - 1);
        mg_gemm_shape product = {seen, n, depth, x_row, x_col, 1, depth, width};
        R(mg_gemm_block)(to + i, x, y + i * depth, &product, false);
    }
}

/* to = weights^T x, or += if `add`, for keys x: a row of `to` for each query. */
static void R(attention_from_keys)(real *to, int64_t to_row, const real *weights, const real *x,
                                   int64_t x_row, int64_t x_col, int64_t depth, int64_t rows,
                                   int64_t keys, int64_t common, int64_t width, bool add) {
    for (int64_t i = 0, n; i < rows; i += n) {
        n = common < keys ? mg_min(ATTENTION_LINES, rows - i) : rows;
        int64_t seen = mg_min(keys, common + i + n - 1);
        mg_gemm_shape product = {n, depth, seen, 1, width, x_row, x_col, to_row};
        R(mg_gemm_block)(to + i * to_row, weights + i, x, &product, add);
    }
}

/* to = weights x, or += if `add`, for queries x: a row of `to` for each key. */
static void R(attention_from_queries)(real *to, int64_t to_row, const real *weights, const real *x,
                                      int64_t x_row, int64_t x_col, int64_t depth, int64_t rows,
                                      int64_t keys, int64_t common, int64_t width, bool add) {
    for (int64_t j = 0, n; j < keys; j += n) {
        n = mg_min((j > 0 ? 0 : common - 1) + ATTENTION_LINES, keys - j);
        int64_t i = j > 0 ? j - common + 1 : 0; /* the first query that sees key j */
        mg_gemm_shape product = {n, depth, rows - i, width, 1, x_row, x_col, to_row};
        R(mg_gemm_block)(to + j * to_row, weights + j * width + i, x + i * x_row, &product, add);
    }
}

/* scores = k scaled^T plus the mask, for `keys` keys from `first` on. A hidden key has the score
 * -inf. Queries before the first vector with a query that sees the key have arbitrary scores. */
static void R(attention_scores)(real *restrict scores, const real *scaled, const attention_plan *t,
                                const attention_item *head, int64_t at, int64_t rows,
                                int64_t first, int64_t keys) {
    const attention_operand *k = &t->k, *m = &t->mask;
    int64_t width = R(attention_width)(rows), hidden = t->causal ? first + keys - 1 - at : 0;
    R(attention_by_query)(scores, (const real *)head->k + first * k->row, k->row, k->col, scaled,
                          t->depth, rows, keys, keys - mg_max(hidden, 0), width);
    for (int64_t j = keys; width == 1 && j % LANES > 0; j++) scores[j] = -(real)INFINITY;
    if (!head->mask && hidden <= 0 && rows == width) return;
    int64_t lines = width == 1 ? 1 : keys, side = width == 1 ? keys : rows;
    int64_t step = width == 1 ? m->col : m->row;
    for (int64_t j = first; j < first + lines; j++, scores += width) {
        for (int64_t i = rows; i < width; i++) scores[i] = 0;
        int64_t place = at * m->row + j * m->col;
        if (t->mask_is_bool)
            for (int64_t i = 0; i < side; i++)
                scores[i] = ((const uint8_t *)head->mask)[place + i * step] ? scores[i]
                                                                            : -(real)INFINITY;
        else if (head->mask)
            for (int64_t i = 0; i < side; i++)
                scores[i] += ((const real *)head->mask)[place + i * step] * (real)ATTENTION_LOG2E;
        int64_t end = t->causal ? mg_min(j - at, rows) : 0;
        for (int64_t i = mg_max(0, j - at) / LANES * LANES; i < end; i++)
            scores[i] = -(real)INFINITY;
    }
}

/* top[i] = the largest of top[i] and the scores of query i. NaN is ignored. */
MG_INLINE void R(attention_top)(real *restrict top, const real *restrict scores, int64_t keys,
                                int64_t common, int64_t width) {
    for (int64_t j = 0; j < keys; j++)
        for (int64_t i = R(attention_first)(j, common); i < width; i += LANES) {
            const real *s = scores + j * width + i;
            ATTENTION_EACH_LANE top[i + l] = s[l] > top[i + l] ? s[l] : top[i + l];
        }
}

/* Sets all lanes to their maximum, or to their sum. */
MG_INLINE void R(attention_join)(real *restrict lane, bool largest) {
    for (int l = 1; l < LANES; l++)
        lane[0] = !largest ? lane[0] + lane[l] : lane[l] > lane[0] ? lane[l] : lane[0];
    for (int l = 1; l < LANES; l++) lane[l] = lane[0];
}

/* out = softmax(scores) v for `rows` queries from `at` on. Keys are taken block by block. If a
 * block has a larger score, the result so far is scaled down (Milakov and Gimelshein 2018). A query
 * that sees no key gets zeros. The statistics of a query are two numbers. The first is its shift,
 * the largest score, which is subtracted from the scores. The second is 1 / the sum of the
 * exponentials. */
static void R(attention_forward)(const attention_plan *t, const attention_item *head, int64_t at,
                                 int64_t rows, void *scratch) {
    const bool alone = rows == 1;
    int64_t pitch = R(attention_width)(rows), width = mg_max(pitch, LANES), values = t->values;
    int64_t seen = t->causal ? mg_min(at + rows, t->keys) : t->keys;
    real *scores = scratch, *scaled = scores + ATTENTION_KEYS * pitch;
    int64_t out_row = t->out.row;
    real *out = (real *)head->out + at * out_row;
    real top[ATTENTION_QUERIES], shift[ATTENTION_QUERIES], total[ATTENTION_QUERIES];
    real factor[ATTENTION_QUERIES], part[ATTENTION_QUERIES];
    for (int64_t i = 0; i < width; i++) {
        top[i] = -(real)INFINITY;
        total[i] = 0;
    }
    R(attention_scale)(scaled, t, head, at, rows);
    for (int64_t first = 0; first < seen; first += ATTENTION_KEYS) {
        int64_t keys = mg_min(ATTENTION_KEYS, seen - first);
        int64_t lines = alone ? mg_ceil_div(keys, LANES) : keys;
        int64_t common = t->causal ? mg_min(keys, at - first + 1) : keys;
        R(attention_scores)(scores, scaled, t, head, at, rows, first, keys);
        for (int64_t i = 0; i < width; i++) factor[i] = top[i];
        R(attention_top)(top, scores, lines, common, width);
        if (alone) R(attention_join)(top, true);
        bool moved = false;
        for (int64_t i = 0; i < width; i++) {
            shift[i] = top[i] == -(real)INFINITY ? 0 : top[i];
            moved |= factor[i] != shift[i];
            factor[i] = R(attention_exp2)(factor[i] - shift[i]);
            part[i] = 0;
        }
        for (int64_t j = 0; j < lines; j++) {
            int64_t from = R(attention_first)(j, common);
            MG_ROLLED
            for (int64_t i = 0; i < from; i += LANES) v_store(scores + j * width + i, v_set1(0));
            MG_ROLLED
            for (int64_t i = from; i < width; i += LANES) {
                real *s = scores + j * width + i;
                ATTENTION_EACH_LANE s[l] = R(attention_exp2)(s[l] - shift[i + l]);
                v_store(part + i, v_load(part + i) + v_load(s));
            }
        }
        for (int64_t i = 0; i < width; i++) total[i] = total[i] * factor[i] + part[i];
        for (int64_t i = 0; first > 0 && moved && i < rows; i++)
            for (int64_t d = 0; d < values; d++) out[i * out_row + d] *= factor[i];
        R(attention_from_keys)(out, out_row, scores, (const real *)head->v + first * t->v.row,
                               t->v.row, t->v.col, values, rows, keys, common, pitch, first > 0);
    }
    if (alone) R(attention_join)(total, false);
    real *statistics = (real *)head->statistics;
    for (int64_t i = 0; i < rows; i++) {
        real share = total[i] == 0 ? 0 : 1 / total[i];
        statistics[at + i] = shift[i];
        statistics[t->queries + at + i] = share;
        for (int64_t d = 0; d < values; d++) out[i * out_row + d] *= share;
    }
}

/* h = g * share; returns the sum of h * out. Elements where g is 0 are skipped, whatever `out`
 * holds. */
static MG_NOINLINE real R(attention_share)(real *h, const real *g, int64_t step, const real *out,
                                           real share, int64_t values) {
    vec part = v_set1(0);
    real sums[LANES], sum = 0;
    for (int64_t d = 0; step != 1 && d < values; d++) h[d] = g[d * step];
    if (step != 1) g = h;
    MG_ROLLED
    for (int64_t d = 0; d < values; d += LANES) {
        int n = (int)mg_min(LANES, values - d);
        vec x = v_load_n(g + d, n), y = v_load_n(out + d, n);
        R(attention_mask) any = x != 0;
        x = (vec)((R(attention_mask))(x * share) & any);
        if (n == LANES) v_store(h + d, x);
        else v_store_n(h + d, x, n);
        part = v_fma(x, (vec)((R(attention_mask))y & any), part);
    }
    v_store(sums, part);
    MG_ROLLED
    for (int l = 0; l < LANES; l++) sum += sums[l];
    return sum;
}

/* Adds the gradients between `rows` queries from `at` on and `keys` keys from `first` on to dq, dk
 * and dv. Without `add` the gradients are stored. dk and dv start at key `first`. With p =
 * 2^(scores - shift), not normalised, and h = the upstream gradient * share, which normalises:
 *   dv = p^T h,  ds = p (h v^T - sum of h * out),  dq = ds k * scale,  dk = ds^T q * scale */
static void R(attention_backward)(const attention_plan *t, const attention_item *head, int64_t at,
                                  int64_t rows, int64_t first, int64_t keys, bool add,
                                  void *scratch) {
    int64_t width = R(attention_width)(rows), values = t->values, depth = t->depth;
    int64_t common = t->causal ? mg_min(keys, at - first + 1) : keys;
    int64_t lines = width == 1 ? mg_ceil_div(keys, LANES) : keys, pitch = mg_max(width, LANES);
    real *p = scratch, *ds = p + ATTENTION_KEYS * width, *h = ds + ATTENTION_KEYS * width;
    real *scaled = h + width * values, shift[ATTENTION_QUERIES] = {0}, mean[ATTENTION_QUERIES] = {0};
    const real *statistics = (const real *)head->statistics, scale = (real)t->scale;
    const real *g = (const real *)head->g + at * t->g.row, *out = (const real *)head->out;
    for (int64_t i = 0; i < rows; i++) {
        const real *line = g + i * t->g.row, *result = out + (at + i) * t->out.row;
        real share = statistics[t->queries + at + i];
        shift[i] = statistics[at + i];
        mean[i] = R(attention_share)(h + i * values, line, t->g.col, result, share, values);
    }
    for (int l = 1; rows == 1 && l < LANES; l++) {
        shift[l] = shift[0];
        mean[l] = mean[0];
    }
    const real *q = (const real *)head->q + at * t->q.row;
    const real *k = (const real *)head->k + first * t->k.row;
    const real *v = (const real *)head->v + first * t->v.row;
    R(attention_scale)(scaled, t, head, at, rows);
    R(attention_scores)(p, scaled, t, head, at, rows, first, keys);
    R(attention_by_query)(ds, v, t->v.row, t->v.col, h, values, rows, keys, common, width);
    const real factor = head->dmask ? 1 : scale;
    for (int64_t j = 0; j < lines; j++) {
        int64_t from = R(attention_first)(j, common);
        MG_ROLLED
        for (int64_t i = 0; i < from; i += LANES) {
            v_store(p + j * pitch + i, v_set1(0));
            v_store(ds + j * pitch + i, v_set1(0));
        }
        MG_ROLLED
        for (int64_t i = from; i < pitch; i += LANES) {
            real *w = p + j * pitch + i, *s = ds + j * pitch + i;
            ATTENTION_EACH_LANE {
                real d = s[l] - mean[i + l];
                w[l] = R(attention_exp2)(w[l] - shift[i + l]);
                s[l] = ((d == 0) | (w[l] == 0)) ? 0 : w[l] * d * factor;
            }
        }
    }
    real *dmask = (real *)head->dmask + at * t->keys + first;
    for (int64_t i = 0; head->dmask && i < rows; i++)
        for (int64_t j = 0; j < keys; j++) dmask[i * t->keys + j] = ds[j * width + i];
    for (int64_t j = 0; head->dmask && j < keys * width; j++) ds[j] *= scale;
    R(attention_from_queries)((real *)head->dv, head->dv_row, p, h, values, 1, values, rows, keys,
                              common, width, add);
    R(attention_from_queries)((real *)head->dk, head->dk_row, ds, q, t->q.row, t->q.col, depth,
                              rows, keys, common, width, add);
    R(attention_from_keys)((real *)head->dq + at * head->dq_row, head->dq_row, ds, k, t->k.row,
                           t->k.col, depth, rows, keys, common, width, add);
}
#undef ATTENTION_EACH_LANE
