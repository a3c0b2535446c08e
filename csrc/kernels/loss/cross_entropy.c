/* cross_entropy.c: cross entropy, NLL and multi-class margin losses of lines of scores.
 *
 * The gradients are here, too. A row of scores is read once, block by block. The sum of
 * exponentials is rescaled when a block has a larger maximum than the blocks before (Milakov and
 * Gimelshein, "Online normalizer calculation for softmax", 2018). For images, the scores of a pixel
 * lie in a column. A strip of pixels stays in cache while its maxima and sums are computed. Maxima
 * and sums are kept for every line, so that the gradient takes one more pass.
 *
 * Lines of logarithms of probabilities (NLL) need no maxima and sums: elements are only picked.
 * Margin losses need none either.
 */
#include "kernels/iterate/contiguous.h"
#include "memory/array.h"
#include "threads/pool.h"
#include "kernels/reduce/reduce.h"

typedef struct {
    int64_t rows, n, ignore, ignored, rows_per_block;
    int64_t inner; /* class i of row r lies at ((r / inner) n + i) inner + r % inner */
    bool narrow, each; /* each: the upstream gradient has one element for each row */
    int kind;
    double smoothing, margin;
    double weights, total; /* the sum of all weights; the divisor of a mean */
    const int64_t *target;
    const char *g, *x, *w;
    char *out, *stats; /* out: losses or dx; stats: maxima, then sums */
} entropy_job;

MG_INLINE bool entropy_is_margin(int kind) { return kind == MG_OF_MARGINS || kind == MG_OF_SQUARES; }

/* The index of row r's first element. */
MG_INLINE int64_t entropy_at(const entropy_job *job, int64_t r) {
    return r / job->inner * job->n * job->inner + r % job->inner;
}

/* True if several rows fit a strip. */
MG_INLINE bool entropy_is_short(const entropy_job *job) {
    return job->inner == 1 && job->n > 0 && job->n <= REDUCE_STRIP / 2;
}

/* True if some target is no class. Counts the ignored targets. If `all`, no target is ignored. */
static MG_NOINLINE bool entropy_is_wrong(entropy_job *job, bool all) {
    bool wrong = false;
    int64_t ignored = 0, n = job->n, ignore = job->ignore;
    for (int64_t r = 0; r < job->rows; r++) {
        int64_t t = job->target[r], hidden = !all & (t == ignore);
        wrong |= ((t < 0) | (t >= n)) & !hidden;
        ignored += hidden;
    }
    job->ignored = ignored;
    return wrong;
}

#define MG_REAL 32
#include "cross_entropy.inc.c"
#define MG_REAL 64
#include "cross_entropy.inc.c"

static void entropy_block(void *context, int64_t block) {
    const entropy_job *job = context;
    int64_t first = block * job->rows_per_block, inner = job->inner;
    int64_t end = mg_min(first + job->rows_per_block, job->rows);
    for (int64_t rows; first < end; first += rows) {
        rows = end - first;
        if (inner > 1) rows = mg_min(mg_min(rows, REDUCE_STRIP), inner - first % inner);
        if (entropy_is_margin(job->kind))
            (job->narrow ? entropy_margins_f32 : entropy_margins_f64)(job, first, rows);
        else if (job->kind == MG_OF_LOGS)
            (job->narrow ? entropy_logs_f32 : entropy_logs_f64)(job, first, rows);
        else if (job->g) (job->narrow ? entropy_rows_back_f32 : entropy_rows_back_f64)(job, first, rows);
        else (job->narrow ? entropy_rows_f32 : entropy_rows_f64)(job, first, rows);
    }
}

/* Contiguous operands, held during one call. */
typedef struct {
    mg_array *x, *target, *w, *g;
} entropy_held;

static void entropy_give(entropy_held *held) {
    mg_release(held->g);
    mg_release(held->w);
    mg_release(held->target);
    mg_release(held->x);
}

/* Sets up all of a job but its result. 0, or an error code with nothing held. */
static int entropy_take(entropy_job *job, entropy_held *held, mg_array *x, mg_array *target,
                        mg_array *w, mg_array *g, mg_array *stats, int64_t ignore,
                        double smoothing, int reduction, int kind) {
    if (!mg_is_float(x->dtype) || target->dtype != MG_INT64)
        return mg_fail_code(MG_EDTYPE, x->dtype, target->dtype);
    if ((w && w->dtype != x->dtype) || (g && g->dtype != x->dtype))
        return mg_fail_code(MG_EDTYPE, x->dtype, w ? w->dtype : g->dtype);
    if (x->ndim != 2 && x->ndim != 3) return mg_fail_code(MG_ESHAPE, x->ndim, 2);
    int64_t inner = x->ndim == 3 ? x->shape[2] : 1, rows = x->shape[0] * inner, n = x->shape[1];
    if (target->size != rows) return mg_fail_code(MG_ESHAPE, target->size, rows);
    bool margin = entropy_is_margin(kind);
    if (margin && x->ndim != 2) return mg_fail_code(MG_ESHAPE, x->ndim, 2);
    if (w && w->size != n) return mg_fail_code(MG_ESHAPE, w->size, n);
    if (!stats == (kind == MG_OF_SCORES)) return mg_fail_code(MG_EARG, kind, 0);
    if (stats && (stats->size != 2 * rows || !mg_is_contiguous(stats) || stats->dtype != x->dtype))
        return mg_fail_code(MG_ESHAPE, stats->size, 2 * rows);
    if (g && g->size != (reduction == MG_LOSS_NONE ? rows : 1))
        return mg_fail_code(MG_ESHAPE, g->size, rows);
    *held = (entropy_held){mg_contiguous(x), mg_contiguous(target), w ? mg_contiguous(w) : NULL,
                           g ? mg_contiguous(g) : NULL};
    if (!held->x || !held->target || (w && !held->w) || (g && !held->g)) {
        entropy_give(held);
        return MG_ENOMEM;
    }
    *job = (entropy_job){.rows = rows, .n = n, .ignore = ignore, .kind = kind};
    *(margin ? &job->margin : &job->smoothing) = smoothing;
    job->inner = mg_max(inner, 1);
    job->rows_per_block = mg_max(ENTROPY_GRAIN / mg_max(n, 1), inner > 1 ? REDUCE_STRIP : 1);
    job->narrow = x->dtype == MG_FLOAT32;
    job->target = (const int64_t *)held->target->data;
    job->x = held->x->data;
    job->w = w ? held->w->data : NULL;
    job->g = g ? held->g->data : NULL;
    job->stats = stats ? stats->data : NULL;
    job->each = reduction == MG_LOSS_NONE;
    bool wrong = entropy_is_wrong(job, margin);
    for (int64_t r = 0; wrong; r++) {
        int64_t t = job->target[r];
        if ((t == ignore && !margin) || (t >= 0 && t < n)) continue;
        entropy_give(held);
        return mg_fail_code(MG_EINDEX, t, n);
    }
    job->weights = (job->narrow ? entropy_weights_f32 : entropy_weights_f64)(job);
    double total = w ? (job->narrow ? entropy_total_f32 : entropy_total_f64)(job)
                     : (double)(rows - job->ignored);
    job->total = reduction != MG_LOSS_MEAN ? 1 : margin ? (double)rows : total;
    return MG_OK;
}

static void entropy_run(entropy_job *job) {
    int64_t blocks = mg_ceil_div(job->rows, job->rows_per_block);
    mg_parallel_if(job->rows * job->n >= ENTROPY_PARALLEL, blocks, entropy_block, job);
}

mg_array *mg_cross_entropy(mg_array *x, mg_array *target, mg_array *w, mg_array *stats,
                           int64_t ignore, double smoothing, int reduction, int kind) {
    entropy_job job;
    entropy_held held = {0};
    if (entropy_take(&job, &held, x, target, w, NULL, stats, ignore, smoothing, reduction, kind))
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
                               mg_array *stats, int64_t ignore, double smoothing, int reduction,
                               int kind) {
    entropy_job job;
    entropy_held held = {0};
    if (entropy_take(&job, &held, x, target, w, g, stats, ignore, smoothing, reduction, kind))
        return NULL;
    mg_array *dx = mg_new(x->dtype, x->ndim, x->shape);
    if (dx) {
        job.out = dx->data;
        entropy_run(&job);
    }
    entropy_give(&held);
    return dx;
}

