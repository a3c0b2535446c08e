/* optim.c: one pass over a parameter, its gradient and its state, in blocks shared by the threads. */
#include "../threads/pool.h"
#include "nditer.h"

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

#define MG_REAL 32
#include "optim.inc.c"
#define MG_REAL 64
#include "optim.inc.c"

enum { OPTIM_MAX_STATE = 3 };

typedef struct optim_job {
    char *p, *state[OPTIM_MAX_STATE];
    const char *g;
    int dtype;
    int64_t size;
    const optim_sgd_options *sgd; /* one of the two */
    const optim_adam_options *adam;
} optim_job;

static void optim_block(void *context, int64_t block) {
    const optim_job *job = context;
    int64_t begin = block * NDITER_BLOCK, n = mg_min(NDITER_BLOCK, job->size - begin);
    int64_t at = begin * mg_itemsize(job->dtype);
    char *s[OPTIM_MAX_STATE];
    for (int i = 0; i < OPTIM_MAX_STATE; i++) s[i] = job->state[i] ? job->state[i] + at : NULL;
    void *p = job->p + at;
    const void *g = job->g + at;
    if (job->dtype == MG_FLOAT32) {
        if (job->sgd) optim_sgd_f32(p, (float *)s[0], g, n, job->sgd);
        else optim_adam_f32(p, (float *)s[0], (float *)s[1], (float *)s[2], g, n, job->adam);
    } else {
        if (job->sgd) optim_sgd_f64(p, (double *)s[0], g, n, job->sgd);
        else optim_adam_f64(p, (double *)s[0], (double *)s[1], (double *)s[2], g, n, job->adam);
    }
}

/* Checks and runs; p and the state must be contiguous and each own its memory. */
static int optim_run(optim_job *job, mg_array *p, mg_array *g, mg_array *const *state) {
    if (!mg_is_float(p->dtype)) return mg_fail_code(MG_EDTYPE, p->dtype, 0);
    mg_array *all[1 + OPTIM_MAX_STATE] = {p, state[0], state[1], state[2]};
    for (int i = 0; i <= OPTIM_MAX_STATE; i++) {
        mg_array *a = i == OPTIM_MAX_STATE ? g : all[i + 1];
        if (!a) continue;
        if (a->dtype != p->dtype) return mg_fail_code(MG_EDTYPE, a->dtype, p->dtype);
        if (a->ndim != p->ndim || memcmp(a->shape, p->shape, sizeof(int64_t) * (size_t)p->ndim))
            return mg_fail_code(MG_ESHAPE, p->size, a->size);
    }
    for (int i = 0; i <= OPTIM_MAX_STATE; i++) {
        if (!all[i]) continue;
        if (!all[i]->buffer->writable) return mg_fail_code(MG_EREADONLY, i, 0);
        if (!mg_is_contiguous(all[i])) return mg_fail_code(MG_EOVERLAP, i, 0);
        for (int j = 0; j < i; j++)
            if (all[j] && all[j]->buffer == all[i]->buffer) return mg_fail_code(MG_EOVERLAP, i, j);
    }
    mg_array *from = p->buffer == g->buffer ? mg_copy(g) : mg_contiguous(g);
    if (!from) return mg_error();
    job->p = p->data;
    job->g = from->data;
    job->dtype = p->dtype;
    job->size = p->size;
    for (int i = 0; i < OPTIM_MAX_STATE; i++) job->state[i] = state[i] ? state[i]->data : NULL;
    mg_parallel_for(mg_ceil_div(p->size, NDITER_BLOCK), optim_block, job);
    mg_release(from);
    for (int i = 0; i <= OPTIM_MAX_STATE; i++)
        if (all[i]) mg_buffer_touch(all[i]->buffer);
    return MG_OK;
}

int mg_sgd_step(mg_array *p, mg_array *g, mg_array *momentum_buffer, double lr, double momentum,
                double dampening, double weight_decay, int nesterov, int maximize) {
    optim_sgd_options options = {lr, momentum, dampening, weight_decay, nesterov != 0, maximize != 0};
    optim_job job = {.sgd = &options};
    return optim_run(&job, p, g, (mg_array *[]){momentum_buffer, NULL, NULL});
}

int mg_adam_step(mg_array *p, mg_array *g, mg_array *m, mg_array *v, mg_array *v_max, double lr,
                 double beta1, double beta2, double eps, double weight_decay, int decoupled,
                 int64_t step, int maximize) {
    if (!m || !v || step < 1) return mg_fail_code(MG_EARG, step, 0);
    optim_adam_options options = {
        .lr = lr, .beta1 = beta1, .beta2 = beta2, .eps = eps, .weight_decay = weight_decay,
        .correction1 = 1 - pow(beta1, (double)step),
        .root_correction2 = sqrt(1 - pow(beta2, (double)step)),
        .decoupled = decoupled != 0, .maximize = maximize != 0};
    optim_job job = {.adam = &options};
    return optim_run(&job, p, g, (mg_array *[]){m, v, v_max});
}
