/* recurrent.inc.c: the steps of a recurrent layer for a block of sequences; a template for each
 * float width. */
#include "simd/real.h"

/* out = tanh (if `bent`) or the logistic function of n <= RECURRENT_STRIP numbers. The rest up to a
 * whole unit is padded with zeros. */
MG_INLINE void R(recurrent_gate)(real *restrict out, const real *restrict x, int64_t n, bool bent) {
    _Alignas(64) real in[RECURRENT_STRIP];
    int64_t whole = mg_ceil_div(n, NDITER_UNIT_MAX) * NDITER_UNIT_MAX;
    memcpy(in, x, (size_t)n * sizeof(real));
    memset(in + n, 0, (size_t)(whole - n) * sizeof(real));
    if (bent) R(v_tanh_chunk)(out, in, whole);
    else R(v_sigmoid_chunk)(out, in, whole);
}

/* c = f c' + i g and h = o tanh(c). `gates` holds the sums and receives i, f, g and o. */
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

/* Backward of lstm_step: dsums from the gradients of h and c. dc becomes the gradient of the
 * previous step's c. */
static void R(lstm_step_back)(real *restrict dsums, real *restrict dc, const real *restrict dh,
                              const real *restrict gates, const real *restrict c,
                              const real *restrict before, int64_t size) {
    _Alignas(64) real bent[RECURRENT_STRIP];
    for (int64_t at = 0; at < size; at += RECURRENT_STRIP) {
        int64_t n = mg_min(RECURRENT_STRIP, size - at);
        R(recurrent_gate)(bent, c + at, n, true);
        for (int64_t j = 0; j < n; j++) {
            int64_t k = at + j;
            real i = gates[k], f = gates[size + k], g = gates[2 * size + k], o = gates[3 * size + k];
            real by_c = dc[k] + dh[k] * o * (1 - bent[j] * bent[j]); /* h = o tanh(c) */
            dsums[3 * size + k] = dh[k] * bent[j] * (o * (1 - o));
            dsums[k] = by_c * g * (i * (1 - i)); /* c = f c' + i g */
            dsums[size + k] = by_c * before[k] * (f * (1 - f));
            dsums[2 * size + k] = by_c * i * (1 - g * g);
            dc[k] = by_c * f;
        }
    }
}

/* h = n + z (h' - n), with n = tanh(own_n + r m). `sums` are the terms of r, z and m from h' W^T,
 * `own` the terms from the input. r, z, m and n are stored in place of the sums. */
static void R(gru_step)(real *restrict h, real *restrict sums, const real *restrict own,
                        const real *restrict before, int64_t size) {
    _Alignas(64) real r[RECURRENT_STRIP], z[RECURRENT_STRIP], n[RECURRENT_STRIP];
    for (int64_t j = 0; j < 2 * size; j++) sums[j] += own[j];
    for (int64_t at = 0; at < size; at += RECURRENT_STRIP) {
        int64_t count = mg_min(RECURRENT_STRIP, size - at);
        real *kept = sums + at, *m = kept + 2 * size, *last = kept + 3 * size;
        R(recurrent_gate)(r, kept, count, false);
        R(recurrent_gate)(z, kept + size, count, false);
        for (int64_t j = 0; j < count; j++) last[j] = own[2 * size + at + j] + r[j] * m[j];
        R(recurrent_gate)(n, last, count, true);
        for (int64_t j = 0; j < count; j++) h[at + j] = n[j] + z[j] * (before[at + j] - n[j]);
        memcpy(kept, r, (size_t)count * sizeof(real));
        memcpy(kept + size, z, (size_t)count * sizeof(real));
        memcpy(last, n, (size_t)count * sizeof(real));
    }
}

/* Backward of gru_step: the gradients of `own` and of the sums, from dh. dh becomes the part of the
 * gradient of h' that does not pass through the sums. */
static void R(gru_step_back)(real *restrict down, real *restrict dsums, real *restrict dh,
                             const real *restrict kept, const real *restrict before, int64_t size) {
    for (int64_t k = 0; k < size; k++) {
        real r = kept[k], z = kept[size + k], m = kept[2 * size + k], n = kept[3 * size + k];
        real by_n = dh[k] * (1 - z) * (1 - n * n); /* h = n + z (h' - n) */
        real by_z = dh[k] * (before[k] - n) * (z * (1 - z));
        real by_r = by_n * m * (r * (1 - r)); /* n = tanh(own + r m) */
        down[k] = dsums[k] = by_r;
        down[size + k] = dsums[size + k] = by_z;
        down[2 * size + k] = by_n;
        dsums[2 * size + k] = by_n * r;
        dh[k] *= z;
    }
}

/* h = tanh or relu of the n sums in h. */
static void R(elman_step)(real *h, bool bent, int64_t n) {
    _Alignas(64) real out[RECURRENT_STRIP];
    if (!bent)
        for (int64_t j = 0; j < n; j++) h[j] = h[j] < 0 ? 0 : h[j];
    for (int64_t at = 0; bent && at < n; at += RECURRENT_STRIP) {
        int64_t count = mg_min(RECURRENT_STRIP, n - at);
        R(recurrent_gate)(out, h + at, count, true);
        memcpy(h + at, out, (size_t)count * sizeof(real));
    }
}
static void R(elman_step_back)(real *restrict dsums, const real *restrict dh,
                               const real *restrict h, bool bent, int64_t n) {
    for (int64_t j = 0; j < n; j++)
        dsums[j] = bent ? dh[j] * (1 - h[j] * h[j]) : h[j] > 0 ? dh[j] : 0;
}

/* Packs B (k x n) in panels as wide as the register tile. The rows of a panel follow each other, so
 * that each step of a tile reads the next row. */
enum { R(RECURRENT_PANEL) = GEMM_NV * LANES };

static void R(recurrent_pack)(real *restrict to, const real *b, int64_t k, int64_t n, int64_t b_row,
                              int64_t b_col) {
    for (int64_t j = 0; j < n; j += R(RECURRENT_PANEL)) {
        int64_t width = mg_min(R(RECURRENT_PANEL), n - j);
        for (int64_t i = 0; i < k; i++)
            for (int64_t l = 0; l < width; l++) *to++ = b[i * b_row + (j + l) * b_col];
    }
}

/* C = A B, or with `add` C += A B, for a packed B. A (m x k) is contiguous, and the rows of C (m x
 * n) lie c_row apart. */
static void R(recurrent_product)(real *c, int64_t c_row, const real *a, const char *packed, int64_t m,
                                 int64_t n, int64_t k, bool add) {
    for (int64_t j = 0; j < n; j += R(RECURRENT_PANEL)) {
        int64_t width = mg_min(R(RECURRENT_PANEL), n - j);
        mg_gemm_shape product = {m, width, k, k, 1, width, 1, c_row};
        R(mg_gemm_block)(c + j, a, (const real *)packed + j * k, &product, add);
    }
}

MG_INLINE void R(recurrent_copy)(real *restrict to, const real *restrict x, int64_t n) {
    memcpy(to, x, (size_t)n * sizeof(real));
}
MG_INLINE void R(recurrent_add)(real *restrict to, const real *restrict x, int64_t n) {
    for (int64_t j = 0; j < n; j++) to[j] += x[j];
}

/* One step of a block of sequences, forward and backward, for each kind. `at` is the block's first
 * row among the rows of all steps. In a backward step dh is the gradient of the step's h, and
 * becomes the gradient of the previous h. */
static void R(elman_forward)(const recurrent_plan *t, int64_t at, int64_t rows) {
    int64_t size = t->size, n = rows * size;
    real *h = (real *)t->h + at * size, *next = h + t->batch * size;
    R(recurrent_copy)(next, (const real *)t->projected + at * size, n);
    R(recurrent_product)(next, size, h, t->weight, rows, size, size, true);
    R(elman_step)(next, t->kind == MG_RNN_TANH, n);
}
static void R(elman_backward)(const recurrent_plan *t, int64_t at, int64_t rows, real *dh) {
    int64_t size = t->size;
    real *dsums = (real *)t->dsums + at * size;
    const real *h = (const real *)t->h + (at + t->batch) * size;
    R(elman_step_back)(dsums, dh, h, t->kind == MG_RNN_TANH, rows * size);
    R(recurrent_product)(dh, size, dsums, t->weight, rows, size, size, false);
}

static void R(gru_forward)(const recurrent_plan *t, int64_t at, int64_t rows) {
    int64_t size = t->size, wide = 3 * size, room = RECURRENT_KEPT * size;
    const real *own = (const real *)t->projected + at * wide;
    real *kept = (real *)t->kept + at * room;
    real *h = (real *)t->h + at * size, *next = h + t->batch * size;
    for (int64_t i = 0; i < rows; i++)
        R(recurrent_copy)(kept + i * room, (const real *)t->bias, wide);
    R(recurrent_product)(kept, room, h, t->weight, rows, wide, size, true);
    for (int64_t i = 0; i < rows; i++)
        R(gru_step)(next + i * size, kept + i * room, own + i * wide, h + i * size, size);
}
static void R(gru_backward)(const recurrent_plan *t, int64_t at, int64_t rows, real *dh) {
    int64_t size = t->size, wide = 3 * size, room = RECURRENT_KEPT * size;
    real *down = (real *)t->dprojected + at * wide, *dsums = (real *)t->dsums + at * wide;
    const real *kept = (const real *)t->kept + at * room, *h = (const real *)t->h + at * size;
    for (int64_t i = 0; i < rows; i++)
        R(gru_step_back)(down + i * wide, dsums + i * wide, dh + i * size, kept + i * room,
                         h + i * size, size);
    R(recurrent_product)(dh, size, dsums, t->weight, rows, size, wide, true);
}

static void R(lstm_forward)(const recurrent_plan *t, int64_t at, int64_t rows) {
    int64_t size = t->size, out = t->out, wide = RECURRENT_KEPT * size;
    real *kept = (real *)t->kept + at * wide;
    real *h = (real *)t->h + at * out, *next = h + t->batch * out;
    real *c = (real *)t->c + at * size, *c_next = c + t->batch * size;
    real *inside = t->projection ? (real *)t->inside + at * size : next;
    R(recurrent_copy)(kept, (const real *)t->projected + at * wide, rows * wide);
    R(recurrent_product)(kept, wide, h, t->weight, rows, wide, out, true);
    for (int64_t i = 0; i < rows; i++) {
        int64_t k = i * size;
        R(lstm_step)(inside + k, c_next + k, kept + i * wide, c + k, size);
    }
    if (t->projection)
        R(recurrent_product)(next, out, inside, t->projection, rows, out, size, false);
}
static void R(lstm_backward)(const recurrent_plan *t, int64_t at, int64_t rows, real *dh, real *dc) {
    int64_t size = t->size, out = t->out, wide = RECURRENT_KEPT * size;
    real *dsums = (real *)t->dsums + at * wide, *by_inside = dh;
    const real *kept = (const real *)t->kept + at * wide, *before = (const real *)t->c + at * size;
    const real *c = before + t->batch * size;
    if (t->projection) {
        by_inside = (real *)t->dinside + at % t->batch * size;
        R(recurrent_copy)((real *)t->dh + at * out, dh, rows * out);
        R(recurrent_product)(by_inside, size, dh, t->projection, rows, size, out, false);
    }
    for (int64_t i = 0; i < rows; i++) {
        int64_t k = i * size;
        R(lstm_step_back)(dsums + i * wide, dc + k, by_inside + k, kept + i * wide, c + k,
                          before + k, size);
    }
    R(recurrent_product)(dh, out, dsums, t->weight, rows, out, wide, false);
}

/* Sequences are independent: a block of them goes through all steps by itself. */
static void R(recurrent_forward)(const recurrent_plan *t, int64_t first, int64_t rows) {
    int64_t size = t->size, out = t->out;
    real *y = (real *)t->y, *cells = y + t->steps * t->batch * out;
    for (int64_t s = 0; s < t->steps; s++) {
        int64_t at = s * t->batch + first, then = at + t->batch, cell = s - (t->steps - t->cells);
        if (t->kind == MG_LSTM) R(lstm_forward)(t, at, rows);
        else if (t->kind == MG_GRU) R(gru_forward)(t, at, rows);
        else R(elman_forward)(t, at, rows);
        R(recurrent_copy)(y + at * out, (const real *)t->h + then * out, rows * out);
        if (cell >= 0)
            R(recurrent_copy)(cells + (cell * t->batch + first) * size,
                              (const real *)t->c + then * size, rows * size);
    }
}

static void R(recurrent_backward)(const recurrent_plan *t, int64_t first, int64_t rows) {
    int64_t size = t->size, out = t->out;
    const real *g = (const real *)t->g, *g_c = g + t->steps * t->batch * out;
    real *dh = (real *)t->dstate + first * out, *dc = (real *)t->dstate + t->batch * out + first * size;
    memset(dh, 0, (size_t)(rows * out) * sizeof(real));
    if (t->kind == MG_LSTM) memset(dc, 0, (size_t)(rows * size) * sizeof(real));
    for (int64_t s = t->steps - 1; s >= 0; s--) {
        int64_t at = s * t->batch + first, cell = s - (t->steps - t->cells);
        R(recurrent_add)(dh, g + at * out, rows * out);
        if (cell >= 0) R(recurrent_add)(dc, g_c + (cell * t->batch + first) * size, rows * size);
        if (t->kind == MG_LSTM) R(lstm_backward)(t, at, rows, dh, dc);
        else if (t->kind == MG_GRU) R(gru_backward)(t, at, rows, dh);
        else R(elman_backward)(t, at, rows, dh);
    }
}
