/* optim.c: optimiser steps: SGD, Adam and RMSprop.
 *
 * A step is one pass over parameters, gradients and state, in blocks shared by the threads. All
 * parameters of a group go through one parallel loop.
 */
#include "kernels/iterate/contiguous.h"
#include "threads/pool.h"
#include "kernels/iterate/nditer.h"

#include <math.h>
#include <string.h>

typedef struct optim_sgd_options {
    double lr, momentum, dampening, weight_decay;
    bool nesterov, maximize;
} optim_sgd_options;

typedef struct optim_adam_options {
    double lr, beta1, beta2, eps, weight_decay, correction1, root_correction2;
    bool decoupled, maximize;
} optim_adam_options;

typedef struct optim_rmsprop_options {
    double lr, alpha, eps, weight_decay, momentum;
    bool maximize;
} optim_rmsprop_options;

enum optim_method { OPTIM_SGD, OPTIM_ADAM, OPTIM_RMSPROP };

#define MG_REAL 32
#include "optim.inc.c"
#define MG_REAL 64
#include "optim.inc.c"

enum { OPTIM_MAX_STATE = 3, OPTIM_PARTS = OPTIM_MAX_STATE + 2, OPTIM_BLOCK = NDITER_BLOCK };

/* One parameter. `first` is the index of its first block among the blocks of all parameters. */
typedef struct {
    char *parts[OPTIM_PARTS]; /* the parameter, its state or NULL, the gradient */
    mg_array *gradient;       /* contiguous */
    int dtype;
    int64_t size, first;
} optim_item;

typedef struct {
    int method, count;
    const void *options;
    optim_item *items;
} optim_job;

static void optim_block(void *context, int64_t block) {
    const optim_job *job = context;
    /* binary search: the last item that begins at or before `block` */
    int low = 0, high = job->count - 1;
    while (low < high) {
        int middle = (low + high + 1) / 2;
        if (job->items[middle].first <= block) low = middle;
        else high = middle - 1;
    }
    const optim_item *t = &job->items[low];
    int64_t begin = (block - t->first) * OPTIM_BLOCK, size = mg_itemsize(t->dtype);
    int64_t n = mg_min(OPTIM_BLOCK, t->size - begin), rest = n % nditer_unit((size_t)size);
    void *parts[OPTIM_PARTS], *padded[OPTIM_PARTS]; /* the rest is padded to a whole unit */
    _Alignas(64) char stage[OPTIM_PARTS][NDITER_UNIT_MAX * 8];
    for (int i = 0; i < OPTIM_PARTS; i++) {
        parts[i] = t->parts[i] ? t->parts[i] + begin * size : NULL;
        padded[i] = parts[i] ? stage[i] : NULL;
    }
    void (*step)(int, void *const *, int64_t, const void *) =
        t->dtype == MG_FLOAT32 ? optim_step_f32 : optim_step_f64;
    if (n > rest) step(job->method, parts, n - rest, job->options);
    if (!rest) return;
    for (int i = 0; i < OPTIM_PARTS; i++) {
        if (!parts[i]) continue;
        memset(stage[i], 0, (size_t)(nditer_unit((size_t)size) * size));
        memcpy(stage[i], (char *)parts[i] + (n - rest) * size, (size_t)(rest * size));
    }
    step(job->method, padded, nditer_unit((size_t)size), job->options);
    for (int i = 0; i < OPTIM_PARTS - 1; i++)
        if (parts[i]) memcpy((char *)parts[i] + (n - rest) * size, stage[i], (size_t)(rest * size));
}

/* Checks that a parameter, its state and its gradient fit together. p and the state must be
 * contiguous, and each own its memory. 0 or an error code. */
static int optim_check(mg_array *p, mg_array *g, mg_array *const *state) {
    if (!mg_is_float(p->dtype)) return mg_fail_code(MG_EDTYPE, p->dtype, 0);
    mg_array *all[1 + OPTIM_MAX_STATE] = {p, state[0], state[1], state[2]};
    for (int i = 0; i <= OPTIM_MAX_STATE; i++) {
        mg_array *a = i == OPTIM_MAX_STATE ? g : all[i + 1];
        if (!a) continue;
        if (a->dtype != p->dtype) return mg_fail_code(MG_EDTYPE, a->dtype, p->dtype);
        if (!mg_same_shape(a, p)) return mg_fail_code(MG_ESHAPE, p->size, a->size);
    }
    for (int i = 0; i <= OPTIM_MAX_STATE; i++) {
        if (!all[i]) continue;
        if (!all[i]->buffer->writable) return mg_fail_code(MG_EREADONLY, i, 0);
        if (!mg_is_contiguous(all[i])) return mg_fail_code(MG_EOVERLAP, i, 0);
        for (int j = 0; j < i; j++)
            if (all[j] && all[j]->buffer == all[i]->buffer) return mg_fail_code(MG_EOVERLAP, i, j);
    }
    return MG_OK;
}

/* True if no two parameters of a call share elements. Parameters that share elements are updated
 * one by one. */
static bool optim_apart(const optim_item *items, mg_array *const *p, int count) {
    for (int i = 1; i < count; i++) {
        const mg_buffer *own = p[i]->buffer;
        if (!own->borrowed && atomic_load_explicit(&own->refs, memory_order_relaxed) == 1) continue;
        const char *from = p[i]->data, *to = from + p[i]->size * mg_itemsize(p[i]->dtype);
        for (int j = 0; j < i; j++) {
            const char *first = items[j].parts[0];
            if (first < to && from < first + items[j].size * mg_itemsize(items[j].dtype)) return false;
        }
    }
    return true;
}

/* Runs a step. All checks come before the first write. state[i] is NULL, or has one array for
 * each parameter. A single parameter, with a contiguous gradient in separate memory, allocates
 * nothing. */
static int optim_run(int method, const void *options, int count, mg_array **p, mg_array **g,
                     mg_array **const *state) {
    size_t capacity = 0;
    optim_item one, *items = &one;
    if (count > 1) items = mg_block_take((size_t)count * sizeof *items, &capacity);
    if (!items) return mg_fail_code(MG_ENOMEM, count * (int64_t)sizeof *items, 0);
    int code = MG_OK, ready = 0;
    int64_t blocks = 0, elements = 0;
    for (; ready < count && !code; ready++) {
        mg_array *own[OPTIM_MAX_STATE], *param = p[ready], *gradient = g[ready];
        for (int i = 0; i < OPTIM_MAX_STATE; i++) own[i] = state[i] ? state[i][ready] : NULL;
        code = optim_check(param, gradient, own);
        optim_item *t = &items[ready];
        *t = (optim_item){.parts = {param->data}, .dtype = param->dtype, .size = param->size};
        t->first = blocks;
        if (code) continue;
        t->gradient = param->buffer == gradient->buffer ? mg_copy(gradient) : mg_contiguous(gradient);
        if (!t->gradient) code = mg_error();
        else t->parts[OPTIM_PARTS - 1] = t->gradient->data;
        for (int i = 0; i < OPTIM_MAX_STATE; i++) t->parts[i + 1] = own[i] ? own[i]->data : NULL;
        blocks += mg_ceil_div(param->size, OPTIM_BLOCK);
        elements += param->size;
    }
    if (!code) {
        optim_job job = {method, count, options, items};
        if (count < 2 || optim_apart(items, p, count))
            mg_parallel_if(elements > OPTIM_BLOCK, blocks, optim_block, &job);
        else
            for (int k = 0; k < count; k++) {
                optim_job alone = {method, 1, options, &items[k]};
                items[k].first = 0;
                mg_parallel_if(items[k].size > OPTIM_BLOCK, mg_ceil_div(items[k].size, OPTIM_BLOCK),
                               optim_block, &alone);
            }
    }
    for (int k = 0; k < ready; k++) {
        mg_release(items[k].gradient);
        if (code) continue;
        mg_buffer_touch(p[k]->buffer);
        for (int i = 0; i < OPTIM_MAX_STATE; i++)
            if (state[i]) mg_buffer_touch(state[i][k]->buffer);
    }
    if (count > 1) mg_block_give(items, capacity);
    return code;
}

int mg_step_check(int count, mg_array **p, mg_array **g, mg_array **state0, mg_array **state1,
                  mg_array **state2) {
    mg_array **state[OPTIM_MAX_STATE] = {state0, state1, state2};
    int code = MG_OK;
    for (int k = 0; k < count && !code; k++) {
        mg_array *own[OPTIM_MAX_STATE];
        for (int i = 0; i < OPTIM_MAX_STATE; i++) own[i] = state[i] ? state[i][k] : NULL;
        code = optim_check(p[k], g[k], own);
    }
    return code;
}

int mg_sgd_step(int count, mg_array **p, mg_array **g, mg_array **momentum_buffer, double lr,
                double momentum, double dampening, double weight_decay, int nesterov,
                int maximize) {
    optim_sgd_options options = {lr, momentum, dampening, weight_decay, nesterov != 0, maximize != 0};
    return optim_run(OPTIM_SGD, &options, count, p, g, (mg_array **[]){momentum_buffer, NULL, NULL});
}

int mg_adam_step(int count, mg_array **p, mg_array **g, mg_array **m, mg_array **v, mg_array **v_max,
                 double lr, double beta1, double beta2, double eps, double weight_decay,
                 int decoupled, int64_t step, int maximize) {
    if (!m || !v || step < 1) return mg_fail_code(MG_EARG, step, 0);
    optim_adam_options options = {
        .lr = lr, .beta1 = beta1, .beta2 = beta2, .eps = eps, .weight_decay = weight_decay,
        .correction1 = 1 - pow(beta1, (double)step),
        .root_correction2 = sqrt(1 - pow(beta2, (double)step)),
        .decoupled = decoupled != 0, .maximize = maximize != 0};
    return optim_run(OPTIM_ADAM, &options, count, p, g, (mg_array **[]){m, v, v_max});
}

int mg_rmsprop_step(int count, mg_array **p, mg_array **g, mg_array **square,
                    mg_array **momentum_buffer, mg_array **mean, double lr, double alpha, double eps,
                    double weight_decay, double momentum, int maximize) {
    if (!square) return mg_fail_code(MG_EARG, 0, 0);
    optim_rmsprop_options options = {lr, alpha, eps, weight_decay, momentum, maximize != 0};
    return optim_run(OPTIM_RMSPROP, &options, count, p, g,
                     (mg_array **[]){square, momentum_buffer, mean});
}

