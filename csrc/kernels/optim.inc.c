/* optim.inc.c: optimiser steps over n elements of one parameter; everything is updated in place. */
#include "real.h"

/* Sutskever et al. 2013, in the form PyTorch documents. `buffer` is NULL without momentum. */
static void R(optim_sgd)(real *restrict p, real *restrict buffer, const real *restrict g, int64_t n,
                         const optim_sgd_options *o) {
    const real lr = (real)o->lr, decay = (real)o->weight_decay, sign = o->maximize ? -1 : 1;
    const real momentum = (real)o->momentum, fresh = (real)(1 - o->dampening);
    const real look_ahead = o->nesterov ? momentum : 0, direct = o->nesterov ? 1 : 0;
    if (!buffer) {
        for (int64_t i = 0; i < n; i++) p[i] -= lr * (sign * g[i] + decay * p[i]);
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        real d = sign * g[i] + decay * p[i];
        real b = momentum * buffer[i] + fresh * d;
        buffer[i] = b;
        p[i] -= lr * (o->nesterov ? direct * d + look_ahead * b : b);
    }
}

/* Kingma & Ba 2015, algorithm 1; Loshchilov & Hutter 2019 when the decay is decoupled; Reddi et al.
 * 2018 (AMSGrad) when v_max is not NULL. */
static void R(optim_adam)(real *restrict p, real *restrict m, real *restrict v, real *restrict v_max,
                          const real *restrict g, int64_t n, const optim_adam_options *o) {
    const real beta1 = (real)o->beta1, beta2 = (real)o->beta2, eps = (real)o->eps;
    const real fresh1 = (real)(1 - o->beta1), fresh2 = (real)(1 - o->beta2);
    const real step = (real)(o->lr / o->correction1), unbias = (real)(1 / o->root_correction2);
    const real sign = o->maximize ? -1 : 1;
    const real coupled = (real)(o->decoupled ? 0 : o->weight_decay);
    const real shrink = (real)(o->decoupled ? 1 - o->lr * o->weight_decay : 1);
    for (int64_t i = 0; i < n; i++) {
        real d = sign * g[i] + coupled * p[i];
        m[i] = beta1 * m[i] + fresh1 * d;
        v[i] = beta2 * v[i] + fresh2 * d * d;
        real second = v[i];
        if (v_max) {
            second = v_max[i] > second ? v_max[i] : second;
            v_max[i] = second;
        }
        real root = (real)(sizeof(real) == 4 ? __builtin_sqrtf((float)second)
                                             : __builtin_sqrt((double)second));
        p[i] = p[i] * shrink - step * m[i] / (root * unbias + eps);
    }
}
