/* recurrent.inc.c: the steps of a recurrent layer for a block of sequences, in one float width. */
#include "real.h"

/* out = tanh or the logistic function of n <= RECURRENT_STRIP numbers. What stands behind them up to a
 * whole unit is made of zeros. */
MG_INLINE void R(recurrent_gate)(real *restrict out, const real *restrict x, int64_t n, bool bent) {
    _Alignas(64) real in[RECURRENT_STRIP];
    int64_t whole = mg_ceil_div(n, NDITER_UNIT_MAX) * NDITER_UNIT_MAX;
    memcpy(in, x, (size_t)n * sizeof(real));
    memset(in + n, 0, (size_t)(whole - n) * sizeof(real));
    if (bent) R(v_tanh_chunk)(out, in, whole);
    else R(v_sigmoid_chunk)(out, in, whole);
}

/* c = f c' + i g and h = o tanh(c); the gates, which hold their sums, become i, f, g and o. */
static void R(lstm_step)(real *restrict h, real *restrict c, real *restrict gates,
                         const real *restrict before, int64_t size) {
    _Alignas(64) real i[RECURRENT_STRIP], f[RECURRENT_STRIP], g[RECURRENT_STRIP],
        o[RECURRENT_STRIP], bent[RECURRENT_STRIP];
    for (int64_t at = 0; at < size; at += RECURRENT_STRIP) {
        int64_t n = mg_min(RECURRENT_STRIP, size - at);
        real *own = gates + at;
        R(recurrent_gate)(i, own, n, false);
        R(recurrent_gate)(f, own + size, n, false);
        R(recurrent_gate)(g, own + 2 * size, n, true);
        R(recurrent_gate)(o, own + 3 * size, n, false);
        for (int64_t j = 0; j < n; j++) c[at + j] = f[j] * before[at + j] + i[j] * g[j];
        R(recurrent_gate)(bent, c + at, n, true);
        for (int64_t j = 0; j < n; j++) h[at + j] = o[j] * bent[j];
        memcpy(own, i, (size_t)n * sizeof(real));
        memcpy(own + size, f, (size_t)n * sizeof(real));
        memcpy(own + 2 * size, g, (size_t)n * sizeof(real));
        memcpy(own + 3 * size, o, (size_t)n * sizeof(real));
    }
}

/* Backward of lstm_step: dsums from the gradients of h and c, of which g_h and g_c arrive from outside
 * and dh and dc from the step behind; dc becomes that of the step before. */
static void R(lstm_step_back)(real *restrict dsums, real *restrict dc, const real *restrict dh,
                              const real *restrict g_h, const real *restrict g_c,
                              const real *restrict gates, const real *restrict c,
                              const real *restrict before, int64_t size) {
    _Alignas(64) real bent[RECURRENT_STRIP];
    for (int64_t at = 0; at < size; at += RECURRENT_STRIP) {
        int64_t n = mg_min(RECURRENT_STRIP, size - at);
        R(recurrent_gate)(bent, c + at, n, true);
        for (int64_t j = 0; j < n; j++) {
            int64_t k = at + j;
            real i = gates[k], f = gates[size + k], g = gates[2 * size + k], o = gates[3 * size + k];
            real by_h = g_h[k] + dh[k]; /* h = o tanh(c) */
            real by_c = g_c[k] + dc[k] + by_h * o * (1 - bent[j] * bent[j]);
            dsums[3 * size + k] = by_h * bent[j] * (o * (1 - o));
            dsums[k] = by_c * g * (i * (1 - i)); /* c = f c' + i g */
            dsums[size + k] = by_c * before[k] * (f * (1 - f));
            dsums[2 * size + k] = by_c * i * (1 - g * g);
            dc[k] = by_c * f;
        }
    }
}

/* h = tanh or relu of the sums that it holds. */
static void R(elman_step)(real *h, bool bent, int64_t size) {
    _Alignas(64) real out[RECURRENT_STRIP];
    if (!bent)
        for (int64_t j = 0; j < size; j++) h[j] = h[j] < 0 ? 0 : h[j];
    for (int64_t at = 0; bent && at < size; at += RECURRENT_STRIP) {
        int64_t n = mg_min(RECURRENT_STRIP, size - at);
        R(recurrent_gate)(out, h + at, n, true);
        memcpy(h + at, out, (size_t)n * sizeof(real));
    }
}
static void R(elman_step_back)(real *restrict dsums, const real *restrict dh,
                               const real *restrict g_h, const real *restrict h, bool bent,
                               int64_t size) {
    for (int64_t j = 0; j < size; j++) {
        real by_h = g_h[j] + dh[j];
        dsums[j] = bent ? by_h * (1 - h[j] * h[j]) : h[j] > 0 ? by_h : 0;
    }
}

/* B (k x n) in slivers as wide as the register tile, the rows of each side by side, so that a tile's
 * rows are neighbours in every step. */
enum { R(RECURRENT_SLIVER) = GEMM_NV * LANES };

static void R(recurrent_pack)(real *restrict to, const real *b, int64_t k, int64_t n, int64_t b_row,
                              int64_t b_col) {
    for (int64_t j = 0; j < n; j += R(RECURRENT_SLIVER)) {
        int64_t width = mg_min(R(RECURRENT_SLIVER), n - j);
        for (int64_t i = 0; i < k; i++)
            for (int64_t l = 0; l < width; l++) *to++ = b[i * b_row + (j + l) * b_col];
    }
}

/* C = A B, or C += A B with `add`, for a packed B and contiguous A (m x k) and C (m x n). */
static void R(recurrent_product)(real *c, const real *a, const char *packed, int64_t m, int64_t n,
                                 int64_t k, bool add) {
    for (int64_t j = 0; j < n; j += R(RECURRENT_SLIVER)) {
        int64_t width = mg_min(R(RECURRENT_SLIVER), n - j);
        mg_gemm_shape product = {m, width, k, k, 1, width, 1, n};
        R(mg_gemm_block)(c + j, a, (const real *)packed + j * k, &product, add);
    }
}

/* Sequences do not meet, so a block of them goes through all steps by itself. */
static void R(recurrent_forward)(const recurrent_plan *t, int64_t first, int64_t rows) {
    int64_t size = t->size, wide = t->gates * size, step = t->batch * size;
    bool lstm = t->kind == MG_LSTM;
    const real *h = (const real *)t->state + first * size, *c = lstm ? h + step : h;
    real *y = (real *)t->y + first * size;
    for (int64_t s = 0; s < t->steps; s++, y += step) {
        int64_t at = (s * t->batch + first) * wide;
        real *sums = lstm ? (real *)t->kept + at : y;
        memcpy(sums, (const real *)t->projected + at, (size_t)(rows * wide) * sizeof(real));
        R(recurrent_product)(sums, h, t->weight, rows, wide, size, true);
        real *cells = lstm ? y + t->steps * step : y;
        for (int64_t i = 0; i < rows; i++)
            if (lstm)
                R(lstm_step)(y + i * size, cells + i * size, sums + i * wide, c + i * size, size);
            else R(elman_step)(y + i * size, t->kind == MG_RNN_TANH, size);
        h = y, c = cells;
    }
}

static void R(recurrent_backward)(const recurrent_plan *t, int64_t first, int64_t rows) {
    int64_t size = t->size, wide = t->gates * size, step = t->batch * size;
    bool lstm = t->kind == MG_LSTM;
    real *dh = (real *)t->dstate + first * size, *dc = lstm ? dh + step : dh;
    memset(dh, 0, (size_t)(rows * size) * sizeof(real));
    memset(dc, 0, (size_t)(rows * size) * sizeof(real));
    for (int64_t s = t->steps - 1; s >= 0; s--) {
        int64_t at = s * step + first * size, cell = t->steps * step + at;
        real *dsums = (real *)t->dprojected + at * t->gates;
        const real *y = (const real *)t->y, *g = (const real *)t->g;
        const real *kept = (const real *)t->kept + (lstm ? at * t->gates : 0);
        const real *start = (const real *)t->state + (lstm ? step : 0) + first * size;
        const real *before = s && lstm ? y + cell - step : start;
        for (int64_t i = 0; i < rows; i++) {
            int64_t k = i * size;
            if (lstm)
                R(lstm_step_back)(dsums + i * wide, dc + k, dh + k, g + at + k, g + cell + k,
                                  kept + i * wide, y + cell + k, before + k, size);
            else
                R(elman_step_back)(dsums + k, dh + k, g + at + k, y + at + k,
                                   t->kind == MG_RNN_TANH, size);
        }
        R(recurrent_product)(dh, dsums, t->weight, rows, size, wide, false);
    }
}
