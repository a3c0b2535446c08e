/* recurrent.c: all steps of a recurrent layer, whose inputs are projected already: h = tanh or relu of
 * x + h W^T (Elman, "Finding structure in time", 1990), and long short-term memory (Hochreiter and
 * Schmidhuber 1997, with the forget gates of Gers, Schmidhuber and Cummins 2000).
 *
 * A block of sequences is carried through all steps by one thread. The blocks depend on shapes alone,
 * and a number's sum on neither. */
#include "../memory/array.h"
#include "../threads/pool.h"
#include "gemm.h"
#include "nditer.h"
#include "vmath.h"

#include <string.h>

enum { RECURRENT_STATES = 2, RECURRENT_GATES = 4 };

/* All arrays are contiguous; `y` and `g` are (states, steps, batch, size), h before c. */
typedef struct {
    int dtype, kind;
    int64_t states, gates, steps, batch, size;
    const char *projected, *state, *g;
    const char *weight; /* packed: its transpose for forward, as it is for backward */
    char *y, *kept, *dprojected, *dstate; /* kept: the gates of all steps, for LSTM */
} recurrent_plan;

#define MG_REAL 32
#include "recurrent.inc.c"
#define MG_REAL 64
#include "recurrent.inc.c"

MG_PLANNING

static void recurrent_block(void *context, int64_t block) {
    const recurrent_plan *t = context;
    int64_t first = block * RECURRENT_ROWS, rows = mg_min(RECURRENT_ROWS, t->batch - first);
    if (t->g)
        (t->dtype == MG_FLOAT32 ? recurrent_backward_f32 : recurrent_backward_f64)(t, first, rows);
    else (t->dtype == MG_FLOAT32 ? recurrent_forward_f32 : recurrent_forward_f64)(t, first, rows);
}

static void recurrent_run(recurrent_plan *t) {
    double work = (double)(t->steps * t->batch) * (double)(t->gates * t->size * t->size);
    mg_parallel_if(work >= MG_GEMM_THREAD_WORK, mg_ceil_div(t->batch, RECURRENT_ROWS),
                   recurrent_block, t);
}

/* The sizes, for projected (T, B, gates * H), state (states, B, H) and weight (gates * H, H) of one
 * float dtype; 0 or an error code. */
static int recurrent_lay_out(recurrent_plan *t, int kind, const mg_array *projected,
                             const mg_array *state, const mg_array *weight) {
    bool lstm = kind == MG_LSTM;
    int dtype = projected->dtype;
    if (kind < MG_RNN_TANH || kind > MG_LSTM) return mg_fail_code(MG_EARG, kind, 0);
    if (!mg_is_float(dtype) || state->dtype != dtype || weight->dtype != dtype)
        return mg_fail_code(MG_EDTYPE, dtype, state->dtype != dtype ? state->dtype : weight->dtype);
    if (projected->ndim != 3 || state->ndim != 3 || weight->ndim != 2)
        return mg_fail_code(MG_EARG, projected->ndim, state->ndim);
    *t = (recurrent_plan){.dtype = dtype,
                          .kind = kind,
                          .states = lstm ? RECURRENT_STATES : 1,
                          .gates = lstm ? RECURRENT_GATES : 1,
                          .steps = projected->shape[0],
                          .batch = projected->shape[1],
                          .size = weight->shape[1]};
    int64_t wide = t->gates * t->size;
    if (weight->shape[0] != wide) return mg_fail_code(MG_ESHAPE, weight->shape[0], wide);
    if (projected->shape[2] != wide) return mg_fail_code(MG_ESHAPE, projected->shape[2], wide);
    if (state->shape[0] != t->states) return mg_fail_code(MG_ESHAPE, state->shape[0], t->states);
    if (state->shape[1] != t->batch) return mg_fail_code(MG_ESHAPE, state->shape[1], t->batch);
    if (state->shape[2] != t->size) return mg_fail_code(MG_ESHAPE, state->shape[2], t->size);
    return MG_OK;
}

/* The weight, or its transpose, as recurrent_product reads it. */
static mg_array *recurrent_weight(const recurrent_plan *t, mg_array *w, bool turned) {
    mg_array *from = mg_contiguous(w), *to = from ? mg_new(t->dtype, 1, &w->size) : NULL;
    if (to) {
        int64_t wide = t->gates * t->size, k = turned ? t->size : wide, n = turned ? wide : t->size;
        int64_t row = turned ? 1 : t->size, col = turned ? t->size : 1;
        if (t->dtype == MG_FLOAT32)
            recurrent_pack_f32((float *)to->data, (const float *)from->data, k, n, row, col);
        else recurrent_pack_f64((double *)to->data, (const double *)from->data, k, n, row, col);
    }
    mg_release(from);
    return to;
}

mg_arrays *mg_recurrent(int kind, mg_array *projected, mg_array *state, mg_array *weight) {
    recurrent_plan t;
    if (recurrent_lay_out(&t, kind, projected, state, weight)) return NULL;
    bool lstm = kind == MG_LSTM;
    mg_array *out[] = {
        mg_new(t.dtype, 4, (int64_t[]){t.states, t.steps, t.batch, t.size}),
        lstm ? mg_new(t.dtype, 3, (int64_t[]){t.steps, t.batch, t.gates * t.size}) : NULL,
    };
    mg_array *in[] = {mg_contiguous(projected), mg_contiguous(state),
                      recurrent_weight(&t, weight, true)};
    bool ready = out[0] && (out[1] || !lstm) && in[0] && in[1] && in[2];
    if (ready && out[0]->size > 0) {
        t.projected = in[0]->data, t.state = in[1]->data, t.weight = in[2]->data;
        t.y = out[0]->data, t.kept = lstm ? out[1]->data : NULL;
        recurrent_run(&t);
    }
    for (int i = 0; i < 3; i++) mg_release(in[i]);
    for (int i = 0; i < 2 && !ready; i++) mg_release(out[i]);
    return ready ? mg_arrays_of(2, out) : NULL;
}

/* dsums^T h', over all steps at once, where h' are the h of the step before. */
static mg_array *recurrent_by_weight(const recurrent_plan *t, const mg_array *dprojected) {
    int64_t rows = t->steps * t->batch, wide = t->gates * t->size;
    mg_array *before = mg_new(t->dtype, 2, (int64_t[]){rows, t->size});
    if (!before) return NULL;
    size_t step = (size_t)(t->batch * t->size * mg_itemsize(t->dtype));
    if (before->size > 0) {
        memcpy(before->data, t->state, step);
        memcpy(before->data + step, t->y, step * (size_t)(t->steps - 1));
    }
    mg_array sums = mg_header(dprojected);
    sums.ndim = 2;
    sums.shape[0] = wide, sums.shape[1] = rows;
    sums.strides[0] = 1, sums.strides[1] = wide;
    mg_array *made = mg_matmul(&sums, before);
    mg_release(before);
    return made;
}

mg_arrays *mg_recurrent_vjp(int kind, mg_array *g, mg_array *projected, mg_array *state,
                            mg_array *weight, mg_array *y, mg_array *kept) {
    recurrent_plan t;
    if (recurrent_lay_out(&t, kind, projected, state, weight)) return NULL;
    bool lstm = kind == MG_LSTM;
    int64_t count = t.states * t.steps * t.batch * t.size;
    if (g->dtype != t.dtype || y->dtype != t.dtype || (lstm && kept->dtype != t.dtype))
        return mg_fail(MG_EDTYPE, g->dtype, y->dtype);
    if (g->size != count || y->size != count || !mg_is_contiguous(y))
        return mg_fail(MG_ESHAPE, g->size, count);
    if (lstm && (kept->size != projected->size || !mg_is_contiguous(kept)))
        return mg_fail(MG_ESHAPE, kept->size, projected->size);
    mg_array *out[] = {mg_new(t.dtype, 3, projected->shape), mg_new(t.dtype, 3, state->shape), NULL};
    mg_array *in[] = {mg_contiguous(g), mg_contiguous(state),
                      recurrent_weight(&t, weight, false)};
    bool ready = out[0] && out[1] && in[0] && in[1] && in[2];
    if (ready) {
        t.g = in[0]->data, t.state = in[1]->data, t.weight = in[2]->data;
        t.y = y->data, t.kept = lstm ? kept->data : NULL;
        t.dprojected = out[0]->data, t.dstate = out[1]->data;
        if (out[0]->size > 0) recurrent_run(&t);
        ready = (out[2] = recurrent_by_weight(&t, out[0])) != NULL;
    }
    for (int i = 0; i < 3; i++) mg_release(in[i]);
    for (int i = 0; i < 3 && !ready; i++) mg_release(out[i]);
    return ready ? mg_arrays_of(3, out) : NULL;
}

MG_PLANNING_END
