/* recurrent.c: recurrent layers (RNN, GRU, LSTM) over all steps, from inputs already projected.
 *
 * The layers are:
 * - RNN: h = tanh or relu of x + h W^T (Elman, "Finding structure in time", 1990).
 * - GRU: gated recurrent units (Cho et al., "Learning phrase representations using RNN
 * encoder-decoder", 2014), with the reset gate applied after the product.
 * - LSTM: long short-term memory (Hochreiter and Schmidhuber 1997), with the forget gates of Gers,
 * Schmidhuber and Cummins 2000. h may be projected (Sak, Senior and Beaufays 2014).
 *
 * One thread carries a block of sequences through all steps. Blocks depend on shapes alone. The
 * order of a sum depends neither on blocks nor on threads. The backward pass reads nothing from the
 * result, which may be overwritten.
 */
#include "kernels/iterate/contiguous.h"
#include "base/gil.h"
#include "memory/array.h"
#include "threads/pool.h"
#include "kernels/gemm/gemm.h"
#include "kernels/iterate/nditer.h"
#include "vmath/vmath.h"

#include <string.h>

/* The values kept of a step: i, f, g and o of LSTM; r, z, h W_n^T + b_n and n of GRU. */
enum { RECURRENT_KEPT = 4 };

/* All arrays are contiguous, with steps * batch rows. `y` and `g` hold h of all steps, then LSTM's
 * c of the last `cells` steps. `state` holds h, then c. */
typedef struct {
    int dtype, kind;
    /* out: width of h, equal to `size` without projection */
    int64_t steps, batch, gates, size, out, cells;
    const char *projected, *g;
    const char *weight, *projection; /* packed: transposed for forward, as is for backward */
    const char *bias;                /* of h W^T, for GRU */
    char *y;
    char *h, *c;  /* including the state before the first step, in front */
    char *kept;   /* RECURRENT_KEPT gates */
    char *inside; /* h before its projection */
    char *dprojected, *dsums, *dstate; /* dsums: gradient of h W^T */
    char *dh, *dinside;                /* with projection: dh of all steps, dinside of one step */
} recurrent_plan;

#define MG_REAL 32
#include "recurrent.inc.c"
#define MG_REAL 64
#include "recurrent.inc.c"

static void recurrent_block(void *context, int64_t block) {
    const recurrent_plan *t = context;
    int64_t first = block * RECURRENT_ROWS, rows = mg_min(RECURRENT_ROWS, t->batch - first);
    if (t->g)
        (t->dtype == MG_FLOAT32 ? recurrent_backward_f32 : recurrent_backward_f64)(t, first, rows);
    else (t->dtype == MG_FLOAT32 ? recurrent_forward_f32 : recurrent_forward_f64)(t, first, rows);
}

static void recurrent_run(recurrent_plan *t) {
    double work = (double)(t->steps * t->batch) * (double)(t->gates * t->size * t->out);
    bool worth = work >= MG_GEMM_THREAD_WORK;
    if (worth) mg_gil_give_up(); /* also for one block: its steps are many */
    mg_parallel_if(worth, mg_ceil_div(t->batch, RECURRENT_ROWS), recurrent_block, t);
}

/* Lays out the sizes. `projected` is (T, B, gates * H) and `weight` (gates * H, P). `state` has B *
 * P elements, and B * H more for LSTM. `extra` is GRU's bias (gates * H), LSTM's projection (P, H),
 * or NULL. All have one float dtype. 0 or an error code. */
static int recurrent_lay_out(recurrent_plan *t, int kind, const mg_array *projected,
                             const mg_array *state, const mg_array *weight, const mg_array *extra,
                             int64_t cells) {
    bool lstm = kind == MG_LSTM, gru = kind == MG_GRU;
    int dtype = projected->dtype;
    if (kind < MG_RNN_TANH || kind > MG_LSTM || (extra ? !lstm && !gru : gru))
        return mg_fail_code(MG_EARG, kind, 0);
    if (!mg_is_float(dtype) || state->dtype != dtype || weight->dtype != dtype)
        return mg_fail_code(MG_EDTYPE, dtype, state->dtype != dtype ? state->dtype : weight->dtype);
    if (extra && extra->dtype != dtype) return mg_fail_code(MG_EDTYPE, dtype, extra->dtype);
    if (projected->ndim != 3 || weight->ndim != 2 || (lstm && extra && extra->ndim != 2))
        return mg_fail_code(MG_EARG, projected->ndim, weight->ndim);
    *t = (recurrent_plan){.dtype = dtype,
                          .kind = kind,
                          .steps = projected->shape[0],
                          .batch = projected->shape[1],
                          .gates = lstm  ? 4
                                   : gru ? 3
                                         : 1,
                          .out = weight->shape[1],
                          .cells = cells};
    int64_t wide = weight->shape[0], size = t->size = wide / t->gates;
    int64_t states = t->batch * (lstm ? t->out + size : t->out);
    if (wide != t->gates * size) return mg_fail_code(MG_ESHAPE, wide, t->gates * size);
    if (projected->shape[2] != wide) return mg_fail_code(MG_ESHAPE, projected->shape[2], wide);
    if (state->size != states) return mg_fail_code(MG_ESHAPE, state->size, states);
    if (lstm && extra && extra->shape[0] != t->out)
        return mg_fail_code(MG_ESHAPE, extra->shape[0], t->out);
    if (lstm && extra && extra->shape[1] != size)
        return mg_fail_code(MG_ESHAPE, extra->shape[1], size);
    if (gru && extra->size != wide) return mg_fail_code(MG_ESHAPE, extra->size, wide);
    if (!(lstm && extra) && t->out != size) return mg_fail_code(MG_ESHAPE, t->out, size);
    if (cells < 0 || cells > (lstm ? t->steps : 0)) return mg_fail_code(MG_EARG, cells, t->steps);
    return MG_OK;
}

/* The number of elements of the result. */
static int64_t recurrent_count(const recurrent_plan *t) {
    return t->batch * (t->steps * t->out + t->cells * t->size);
}

/* The number of elements kept for the backward pass. If `at` is not NULL, places them in the plan
 * from `at` on. */
static int64_t recurrent_keep(recurrent_plan *t, char *at, bool projects) {
    int64_t rows = t->steps * t->batch, item = mg_itemsize(t->dtype), total = 0;
    bool lstm = t->kind == MG_LSTM, gated = lstm || t->kind == MG_GRU;
    struct {
        char **place;
        int64_t count;
    } parts[] = {
        {&t->h, (rows + t->batch) * t->out},
        {&t->c, lstm ? (rows + t->batch) * t->size : 0},
        {&t->kept, gated ? rows * RECURRENT_KEPT * t->size : 0},
        {&t->inside, projects ? rows * t->size : 0},
    };
    for (int i = 0; i < 4; i++) {
        if (at) *parts[i].place = at + total * item;
        total += parts[i].count;
    }
    return total;
}

/* Packs a matrix, or its transpose, for recurrent_product. */
static mg_array *recurrent_packed(mg_array *w, bool transposed) {
    mg_array *from = mg_contiguous(w), *to = from ? mg_new(w->dtype, 1, &w->size) : NULL;
    if (to) {
        int64_t height = w->shape[0], width = w->shape[1];
        int64_t k = transposed ? width : height, n = transposed ? height : width;
        int64_t row = transposed ? 1 : width, col = transposed ? width : 1;
        if (w->dtype == MG_FLOAT32)
            recurrent_pack_f32((float *)to->data, (const float *)from->data, k, n, row, col);
        else recurrent_pack_f64((double *)to->data, (const double *)from->data, k, n, row, col);
    }
    mg_release(from);
    return to;
}

/* Packs the weights for the steps. `in` receives the weight, and the array made from `extra` if
 * that is not NULL. The caller releases both, even after a failure. */
static bool recurrent_weights(recurrent_plan *t, mg_array *weight, mg_array *extra, bool transposed,
                              mg_array **in) {
    bool gru = t->kind == MG_GRU;
    in[0] = recurrent_packed(weight, transposed);
    in[1] = !extra ? NULL : gru ? mg_contiguous(extra) : recurrent_packed(extra, transposed);
    if (!in[0] || (extra && !in[1])) return false;
    t->weight = in[0]->data;
    if (extra) *(gru ? &t->bias : &t->projection) = in[1]->data;
    return true;
}

mg_arrays *mg_recurrent(int kind, mg_array *projected, mg_array *state, mg_array *weight,
                        mg_array *extra, int64_t cells) {
    recurrent_plan t;
    if (recurrent_lay_out(&t, kind, projected, state, weight, extra, cells)) return NULL;
    bool projects = kind == MG_LSTM && extra;
    mg_array *in[4] = {mg_contiguous(projected), mg_contiguous(state)}, *out[2] = {NULL, NULL};
    bool ready = recurrent_weights(&t, weight, extra, true, in + 2) && in[0] && in[1];
    if (ready) {
        out[0] = mg_new(t.dtype, 1, (int64_t[]){recurrent_count(&t)});
        out[1] = mg_new(t.dtype, 1, (int64_t[]){recurrent_keep(&t, NULL, projects)});
        ready = out[0] && out[1];
    }
    if (ready && out[0]->size > 0) {
        recurrent_keep(&t, out[1]->data, projects);
        t.projected = in[0]->data, t.y = out[0]->data;
        size_t item = (size_t)mg_itemsize(t.dtype), first = (size_t)(t.batch * t.out) * item;
        memcpy(t.h, in[1]->data, first);
        memcpy(t.c, in[1]->data + first, (size_t)state->size * item - first);
        recurrent_run(&t);
    }
    for (int i = 0; i < 4; i++) mg_release(in[i]);
    for (int i = 0; i < 2 && !ready; i++) mg_release(out[i]);
    return ready ? mg_arrays_of(2, out) : NULL;
}

/* A header of shape (steps * batch, columns) for rows inside the memory of an array. */
static mg_array recurrent_rows(const recurrent_plan *t, const mg_array *in, char *data,
                               int64_t columns) {
    mg_array x = mg_header(in);
    x.data = data, x.ndim = 2;
    x.shape[0] = t->steps * t->batch, x.shape[1] = columns;
    x.size = x.shape[0] * columns;
    mg_row_major(2, x.shape, x.strides);
    return x;
}

/* a^T b, over all steps at once. */
static mg_array *recurrent_over_steps(const mg_array *a, mg_array *b) {
    mg_array transposed = mg_transposed(a);
    return mg_matmul(&transposed, b);
}

mg_arrays *mg_recurrent_vjp(int kind, mg_array *g, mg_array *projected, mg_array *state,
                            mg_array *weight, mg_array *extra, mg_array *kept, int64_t cells) {
    recurrent_plan t;
    if (recurrent_lay_out(&t, kind, projected, state, weight, extra, cells)) return NULL;
    bool gru = kind == MG_GRU, projects = kind == MG_LSTM && extra;
    int64_t count = recurrent_count(&t), needed = recurrent_keep(&t, NULL, projects);
    if (g->dtype != t.dtype || kept->dtype != t.dtype)
        return mg_fail(MG_EDTYPE, g->dtype, kept->dtype);
    if (g->size != count) return mg_fail(MG_ESHAPE, g->size, count);
    if (kept->size != needed || !mg_is_contiguous(kept))
        return mg_fail(MG_ESHAPE, kept->size, needed);
    /* For GRU: gradients of the recurrent sums, kept apart from the gradients of the inputs. With a
     * projection: the gradients of every h, and of one step's h before projection. */
    int64_t wide = t.gates * t.size, rows = t.steps * t.batch;
    int64_t apart = gru ? rows * wide : projects ? rows * t.out + t.batch * t.size : 0;
    mg_array *out[4] = {mg_new(t.dtype, 3, projected->shape),
                        mg_new(t.dtype, state->ndim, state->shape), NULL, NULL};
    mg_array *in[4] = {mg_contiguous(g), mg_new(t.dtype, 1, &apart)};
    bool ready = recurrent_weights(&t, weight, extra, false, in + 2);
    ready = ready && in[0] && in[1] && out[0] && out[1];
    if (ready) {
        recurrent_keep(&t, kept->data, projects);
        t.g = in[0]->data, t.dprojected = out[0]->data, t.dstate = out[1]->data;
        t.dsums = gru ? in[1]->data : t.dprojected;
        t.dh = in[1]->data, t.dinside = t.dh + rows * t.out * mg_itemsize(t.dtype);
        if (out[1]->size > 0) recurrent_run(&t);
        mg_array sums = recurrent_rows(&t, gru ? in[1] : out[0], t.dsums, wide);
        mg_array h = recurrent_rows(&t, kept, t.h, t.out);
        out[2] = recurrent_over_steps(&sums, &h);
        if (gru) out[3] = mg_reduce(MG_SUM, &sums, 1, (int32_t[]){0}, false);
        if (projects) {
            mg_array dh = recurrent_rows(&t, in[1], t.dh, t.out);
            mg_array inside = recurrent_rows(&t, kept, t.inside, t.size);
            out[3] = recurrent_over_steps(&dh, &inside);
        }
        ready = out[2] && (out[3] || !extra);
    }
    for (int i = 0; i < 4; i++) mg_release(in[i]);
    for (int i = 0; i < 4 && !ready; i++) mg_release(out[i]);
    return ready ? mg_arrays_of(extra ? 4 : 3, out) : NULL;
}

