/* attention.inc.c: attention between a block of queries and a block of keys, in one float width.
 *
 * Scores lie by keys: scores[j * width + i] is that of query i and key j. So what a query takes from
 * all keys, their maximum and their sum, is found lane by lane for many queries at once. `width` is
 * the number of queries, `rows`, rounded up to whole vectors. A query that is alone has no idle lanes
 * beside it: its width is 1, and its keys are shared out to the lanes. Scores are logarithms to base
 * 2. */
#include "real.h"

#define ATTENTION_EACH_LANE for (int l = 0; l < LANES; l++)

MG_INLINE int64_t R(attention_width)(int64_t rows) {
    return rows == 1 ? 1 : mg_ceil_div(rows, LANES) * LANES;
}

MG_INLINE void R(attention_scale_row)(real *restrict scaled, const real *restrict q, int64_t step,
                                      real scale, int64_t depth) {
    for (int64_t d = 0; d < depth; d++) scaled[d] = q[d * step] * scale;
}

/* scaled = q * scale for `rows` queries from `at` on, in base 2, and as long as q is used. */
static void R(attention_scale)(real *restrict scaled, const attention_plan *t,
                               const attention_item *head, int64_t at, int64_t rows) {
    const real *q = (const real *)head->q + at * t->q.row, scale = (real)(t->scale * ATTENTION_LOG2E);
    int64_t step = t->q.col, depth = t->depth;
    for (int64_t i = 0; i < rows; i++, q += t->q.row, scaled += depth)
        if (step == 1) R(attention_scale_row)(scaled, q, 1, scale, depth);
        else R(attention_scale_row)(scaled, q, step, scale, depth);
}

/* scores = k scaled^T with the mask added, -inf where a query must not look, for the `keys` keys from
 * `first` on. */
static void R(attention_scores)(real *restrict scores, const real *scaled, const attention_plan *t,
                                const attention_item *head, int64_t at, int64_t rows,
                                int64_t first, int64_t keys) {
    const attention_operand *k = &t->k, *m = &t->mask;
    int64_t width = R(attention_width)(rows), hidden = t->causal ? first + keys - 1 - at : 0;
    mg_gemm_shape product = {keys, rows, t->depth, k->row, k->col, 1, t->depth, width};
    R(mg_gemm_block)(scores, (const real *)head->k + first * k->row, scaled, &product, false);
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
        for (int64_t i = 0; i < mg_min(hidden - (first + keys - 1 - j), rows); i++)
            scores[i] = -(real)INFINITY;
    }
}

/* top[i] = the largest of top[i] and the scores of query i; a NaN is passed over. */
MG_INLINE void R(attention_top)(real *restrict top, const real *restrict scores, int64_t keys,
                                int64_t width) {
    for (int64_t j = 0; j < keys; j++)
        for (int64_t i = 0; i < width; i += LANES) {
            const real *s = scores + j * width + i;
            ATTENTION_EACH_LANE top[i + l] = s[l] > top[i + l] ? s[l] : top[i + l];
        }
}

/* All lanes become their largest, or their sum. */
MG_INLINE void R(attention_join)(real *restrict lane, bool largest) {
    for (int l = 1; l < LANES; l++)
        lane[0] = !largest ? lane[0] + lane[l] : lane[l] > lane[0] ? lane[l] : lane[0];
    for (int l = 1; l < LANES; l++) lane[l] = lane[0];
}

/* out = softmax(scores) v for `rows` queries from `at` on; statistics: of each query the shift that
 * its scores were seen with, their largest, and one by the sum of their exponentials. Block by block
 * of keys; what was added before is scaled down when a larger score turns up (Milakov and
 * Gimelshein 2018). A query that sees no key gets zeros. */
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
        R(attention_scores)(scores, scaled, t, head, at, rows, first, keys);
        for (int64_t i = 0; i < width; i++) factor[i] = top[i];
        R(attention_top)(top, scores, lines, width);
        if (alone) R(attention_join)(top, true);
        bool moved = false;
        for (int64_t i = 0; i < width; i++) {
            shift[i] = top[i] == -(real)INFINITY ? 0 : top[i];
            moved |= factor[i] != shift[i];
            factor[i] = R(attention_exp2)(factor[i] - shift[i]);
            part[i] = 0;
        }
        for (int64_t j = 0; j < lines; j++)
            MG_ROLLED
            for (int64_t i = 0; i < width; i += LANES) {
                real *s = scores + j * width + i;
                ATTENTION_EACH_LANE s[l] = R(attention_exp2)(s[l] - shift[i + l]);
                v_store(part + i, v_load(part + i) + v_load(s));
            }
        for (int64_t i = 0; i < width; i++) total[i] = total[i] * factor[i] + part[i];
        for (int64_t i = 0; first > 0 && moved && i < rows; i++)
            for (int64_t d = 0; d < values; d++) out[i * out_row + d] *= factor[i];
        mg_gemm_shape product = {rows, values, keys, 1, pitch, t->v.row, t->v.col, out_row};
        R(mg_gemm_block)(out, scores, (const real *)head->v + first * t->v.row, &product, first > 0);
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

/* The gradients that the block of `rows` queries from `at` on and the `keys` keys from `first` on
 * give each other, added to those in dq, dk and dv, whose lines follow one another; dk and dv start
 * at `first`. With p = 2^(scores - shift), unnormalised, and h the gradient of the result times
 * `share`, which normalises:
 *   dv = p^T h,  ds = p (h v^T - sum of h * out),  dq = ds k * scale,  dk = ds^T q * scale */
static void R(attention_backward)(const attention_plan *t, const attention_item *head, int64_t at,
                                  int64_t rows, int64_t first, int64_t keys, void *scratch) {
    int64_t width = R(attention_width)(rows), values = t->values, depth = t->depth;
    real *p = scratch, *ds = p + ATTENTION_KEYS * width, *h = ds + ATTENTION_KEYS * width;
    real *scaled = h + width * values, shift[ATTENTION_QUERIES] = {0}, mean[ATTENTION_QUERIES] = {0};
    const real *statistics = (const real *)head->statistics, scale = (real)t->scale;
    const real *g = (const real *)head->g + at * t->g.row, *out = (const real *)head->out;
    for (int64_t i = 0; i < rows; i++) {
        real sum = 0, share = statistics[t->queries + at + i];
        for (int64_t d = 0; d < values; d++) {
            real x = g[i * t->g.row + d * t->g.col];
            h[i * values + d] = x == 0 ? 0 : x * share;
            sum += x == 0 ? 0 : h[i * values + d] * out[(at + i) * t->out.row + d];
        }
        shift[i] = statistics[at + i];
        mean[i] = sum;
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
    mg_gemm_shape by_value = {keys, rows, values, t->v.row, t->v.col, 1, values, width};
    R(mg_gemm_block)(ds, v, h, &by_value, false);
    const real factor = head->dmask ? 1 : scale;
    for (int64_t j = 0, step = mg_max(width, LANES); j < keys * width; j += step)
        for (int64_t i = 0; i < step; i += LANES) {
            real *w = p + j + i, *s = ds + j + i;
            ATTENTION_EACH_LANE {
                real d = s[l] - mean[i + l];
                w[l] = R(attention_exp2)(w[l] - shift[i + l]);
                s[l] = ((d == 0) | (w[l] == 0)) ? 0 : w[l] * d * factor;
            }
        }
    real *dmask = (real *)head->dmask + at * t->keys + first;
    for (int64_t i = 0; head->dmask && i < rows; i++)
        for (int64_t j = 0; j < keys; j++) dmask[i * t->keys + j] = ds[j * width + i];
    for (int64_t j = 0; head->dmask && j < keys * width; j++) ds[j] *= scale;
    mg_gemm_shape to_value = {keys, values, rows, width, 1, values, 1, values};
    R(mg_gemm_block)((real *)head->dv, p, h, &to_value, true);
    mg_gemm_shape to_key = {keys, depth, rows, width, 1, t->q.row, t->q.col, depth};
    R(mg_gemm_block)((real *)head->dk, ds, q, &to_key, true);
    mg_gemm_shape to_query = {rows, depth, keys, 1, width, t->k.row, t->k.col, depth};
    R(mg_gemm_block)((real *)head->dq + at * depth, ds, k, &to_query, true);
}
#undef ATTENTION_EACH_LANE
