/* cross_entropy.c: the cross entropy of rows of scores with a class each, and its gradient.
 *
 * A row of scores is read once, block by block: the sum of exponentials is rescaled when a block
 * has a larger maximum than those before (Milakov and Gimelshein, "Online normalizer calculation
 * for softmax", 2018). Of a row its maximum and that sum are kept; the gradient then is one more
 * pass. */
#include "../memory/array.h"
#include "../threads/pool.h"
#include "reduce.h"

enum {
    ENTROPY_BLOCK = 2048,  /* elements done together while they are in cache */
    ENTROPY_RUN = 512,     /* terms that are added up before they are in double */
    ENTROPY_GRAIN = 8192,  /* least number of elements worth a block of a parallel loop */
    ENTROPY_PARALLEL = 3 * ENTROPY_GRAIN
};

typedef struct {
    int64_t rows, n, ignore, rows_per_block;
    bool narrow, each; /* each: the upstream gradient has an element for each row */
    double smoothing, weights, total; /* the sum of all weights; what a mean divides by */
    const int64_t *target;
    const char *g, *x, *w;
    char *out, *stats; /* out: losses or dx; stats: maxima, then sums */
} entropy_job;

/* Do several rows of n elements fit a strip? */
MG_INLINE bool entropy_is_short(int64_t n) { return n > 0 && n <= REDUCE_STRIP / 2; }

#define MG_REAL 32
#include "cross_entropy.inc.c"
#define MG_REAL 64
#include "cross_entropy.inc.c"

MG_PLANNING

static void entropy_block(void *context, int64_t block) {
    const entropy_job *job = context;
    int64_t first = block * job->rows_per_block;
    int64_t rows = mg_min(job->rows_per_block, job->rows - first);
    if (job->g) (job->narrow ? entropy_rows_back_f32 : entropy_rows_back_f64)(job, first, rows);
    else (job->narrow ? entropy_rows_f32 : entropy_rows_f64)(job, first, rows);
}

/* Contiguous arrays, taken for one call. */
typedef struct {
    mg_array *x, *target, *w, *g;
} entropy_held;

static void entropy_give(entropy_held *held) {
    mg_release(held->g);
    mg_release(held->w);
    mg_release(held->target);
    mg_release(held->x);
}

/* All that a job needs but its result; 0 or an error code, with nothing held. */
static int entropy_take(entropy_job *job, entropy_held *held, mg_array *x, mg_array *target,
                        mg_array *w, mg_array *g, mg_array *stats, int64_t ignore,
                        double smoothing, int reduction) {
    if (!mg_is_float(x->dtype) || target->dtype != MG_INT64)
        return mg_fail_code(MG_EDTYPE, x->dtype, target->dtype);
    if ((w && w->dtype != x->dtype) || (g && g->dtype != x->dtype) || stats->dtype != x->dtype)
        return mg_fail_code(MG_EDTYPE, x->dtype, stats->dtype);
    if (x->ndim != 2 || target->size != x->shape[0])
        return mg_fail_code(MG_ESHAPE, target->size, x->shape[0]);
    int64_t rows = x->shape[0], n = x->shape[1];
    if (w && w->size != n) return mg_fail_code(MG_ESHAPE, w->size, n);
    if (stats->size != 2 * rows || !mg_is_contiguous(stats))
        return mg_fail_code(MG_ESHAPE, stats->size, 2 * rows);
    if (g && g->size != (reduction == MG_LOSS_NONE ? rows : 1))
        return mg_fail_code(MG_ESHAPE, g->size, rows);
    *held = (entropy_held){mg_contiguous(x), mg_contiguous(target), w ? mg_contiguous(w) : NULL,
                           g ? mg_contiguous(g) : NULL};
    if (!held->x || !held->target || (w && !held->w) || (g && !held->g)) {
        entropy_give(held);
        return MG_ENOMEM;
    }
    *job = (entropy_job){.rows = rows, .n = n, .ignore = ignore, .smoothing = smoothing};
    job->rows_per_block = mg_max(ENTROPY_GRAIN / mg_max(n, 1), 1);
    job->narrow = x->dtype == MG_FLOAT32;
    job->target = (const int64_t *)held->target->data;
    job->x = held->x->data;
    job->w = w ? held->w->data : NULL;
    job->g = g ? held->g->data : NULL;
    job->stats = stats->data;
    job->each = reduction == MG_LOSS_NONE;
    for (int64_t r = 0; r < rows; r++) {
        int64_t t = job->target[r];
        if (t == ignore || (t >= 0 && t < n)) continue;
        entropy_give(held);
        return mg_fail_code(MG_EINDEX, t, n);
    }
    job->weights = (job->narrow ? entropy_weights_f32 : entropy_weights_f64)(job);
    double total = (job->narrow ? entropy_total_f32 : entropy_total_f64)(job);
    job->total = reduction == MG_LOSS_MEAN ? total : 1;
    return MG_OK;
}

static void entropy_run(entropy_job *job) {
    int64_t blocks = mg_ceil_div(job->rows, job->rows_per_block);
    mg_parallel_if(job->rows * job->n >= ENTROPY_PARALLEL, blocks, entropy_block, job);
}

mg_array *mg_cross_entropy(mg_array *x, mg_array *target, mg_array *w, mg_array *stats,
                           int64_t ignore, double smoothing, int reduction) {
    entropy_job job;
    entropy_held held = {0};
    if (entropy_take(&job, &held, x, target, w, NULL, stats, ignore, smoothing, reduction))
        return NULL;
    mg_array *losses = mg_new(x->dtype, 1, &job.rows);
    if (losses) {
        job.out = losses->data;
        entropy_run(&job);
    }
    entropy_give(&held);
    if (!losses || reduction == MG_LOSS_NONE) return losses;
    mg_array *sum = mg_reduce(MG_SUM, losses, -1, NULL, false);
    mg_release(losses);
    if (sum && job.narrow) *(float *)sum->data /= (float)job.total;
    else if (sum) *(double *)sum->data /= job.total;
    return sum;
}

mg_array *mg_cross_entropy_vjp(mg_array *g, mg_array *x, mg_array *target, mg_array *w,
                               mg_array *stats, int64_t ignore, double smoothing, int reduction) {
    entropy_job job;
    entropy_held held = {0};
    if (entropy_take(&job, &held, x, target, w, g, stats, ignore, smoothing, reduction))
        return NULL;
    mg_array *dx = mg_new(x->dtype, 2, x->shape);
    if (dx) {
        job.out = dx->data;
        entropy_run(&job);
    }
    entropy_give(&held);
    return dx;
}

MG_PLANNING_END
