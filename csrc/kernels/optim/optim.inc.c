/* optim.inc.c: optimiser steps over n elements of one parameter, in place; a template for each
 * float width. */
#include "simd/real.h"

/* Sutskever et al. 2013, in the form PyTorch documents. `buffer` is NULL without momentum. */
static void R(optim_sgd)(real *restrict p, real *restrict buffer, const real *restrict g, int64_t n,
                         const optim_sgd_options *o) {
    const real lr = (real)o->lr, decay = (real)o->weight_decay, sign = o->maximize ? -1 : 1;
    const real momentum = (real)o->momentum, fresh = (real)(1 - o->dampening);
    const real look_ahead = o->nesterov ? momentum : 0, direct = o->nesterov ? 1 : 0;
    if (!buffer) {
        MG_APART
        for (int64_t i = 0; i < n; i++) p[i] -= lr * (sign * g[i] + decay * p[i]);
        return;
    }
    MG_APART
    for (int64_t i = 0; i < n; i++) {
        real d = sign * g[i] + decay * p[i];
        real b = momentum * buffer[i] + fresh * d;
        buffer[i] = b;
        p[i] -= lr * (o->nesterov ? direct * d + look_ahead * b : b);
    }
}

MG_INLINE real R(optim_root)(real x) {
    return (real)(sizeof(real) == 4 ? __builtin_sqrtf((float)x) : __builtin_sqrt((double)x));
}

/* Kingma & Ba 2015, algorithm 1. With `decoupled` weight decay Loshchilov & Hutter 2019. If v_max
 * is not NULL, Reddi et al. 2018 (AMSGrad). */
static void R(optim_adam)(real *restrict p, real *restrict m, real *restrict v, real *restrict v_max,
                          const real *restrict g, int64_t n, const optim_adam_options *o) {
    const real beta1 = (real)o->beta1, beta2 = (real)o->beta2, eps = (real)o->eps;
    const real fresh1 = (real)(1 - o->beta1), fresh2 = (real)(1 - o->beta2);
    const real step = (real)(o->lr / o->correction1), unbias = (real)(1 / o->root_correction2);
    const real sign = o->maximize ? -1 : 1;
    const real coupled = (real)(o->decoupled ? 0 : o->weight_decay);
    const real shrink = (real)(o->decoupled ? 1 - o->lr * o->weight_decay : 1);
    MG_APART
    for (int64_t i = 0; i < n; i++) {
        real d = sign * g[i] + coupled * p[i];
        real first = beta1 * m[i] + fresh1 * d, second = beta2 * v[i] + fresh2 * d * d;
        m[i] = first;
        v[i] = second;
        if (v_max) {
            second = v_max[i] > second ? v_max[i] : second;
            v_max[i] = second;
        }
        p[i] = p[i] * shrink - step * first / (R(optim_root)(second) * unbias + eps);
    }
}

/* Tieleman & Hinton 2012, in the form PyTorch documents. `mean` is NULL unless the second moment is
 * centred (Graves 2013). `buffer` is NULL without momentum. */
static void R(optim_rmsprop)(real *restrict p, real *restrict square, real *restrict buffer,
                             real *restrict mean, const real *restrict g, int64_t n,
                             const optim_rmsprop_options *o) {
    const real lr = (real)o->lr, decay = (real)o->weight_decay, sign = o->maximize ? -1 : 1;
    const real alpha = (real)o->alpha, fresh = (real)(1 - o->alpha), eps = (real)o->eps;
    const real momentum = (real)o->momentum;
    MG_APART
    for (int64_t i = 0; i < n; i++) {
        real d = sign * g[i] + decay * p[i];
        real second = alpha * square[i] + fresh * d * d;
        square[i] = second;
        if (mean) {
            real m = mean[i] + fresh * (d - mean[i]);
            mean[i] = m;
            second -= m * m;
        }
        real move = d / (R(optim_root)(second) + eps);
        if (buffer) {
            move = momentum * buffer[i] + move;
            buffer[i] = move;
        }
        p[i] -= lr * move;
    }
}

/* parts: p, the state arrays, g */
static void R(optim_step)(int method, void *const *parts, int64_t n, const void *options) {
    real *p = parts[0], *s0 = parts[1], *s1 = parts[2], *s2 = parts[3];
    const real *g = parts[4];
    nditer_full_vectors(n, sizeof(real));
    if (method == OPTIM_SGD) R(optim_sgd)(p, s0, g, n, options);
    else if (method == OPTIM_ADAM) R(optim_adam)(p, s0, s1, s2, g, n, options);
    else R(optim_rmsprop)(p, s0, s1, s2, g, n, options);
}
