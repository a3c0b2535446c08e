/* norm.c: normalisation of rows and of channels, with their gradients.
 *
 * Deviations are taken from the mean of a block's first few elements. If the block's own mean is
 * far from that, deviations from the own mean follow, while the block is in cache. Blocks are
 * joined pairwise, in double (Chan, Golub and LeVeque, "Algorithms for computing the sample
 * variance", 1983, on shifted data, and equation 2.1).
 *
 * The shape alone decides which elements make a block and in what order blocks are joined. The bits
 * therefore do not depend on the number of threads.
 */
#include "kernels/iterate/contiguous.h"
#include "base/system.h"
#include "memory/array.h"
#include "threads/pool.h"
#include "kernels/sizes.h"
#include "simd/vec.h"

#include <math.h>
#include <string.h>

/* Statistics kept for each set of values normalised together. x becomes (x - mean) * rstd + shift,
 * where shift corrects the rounding of the mean. */
enum norm_statistic { NORM_MEAN, NORM_SHIFT, NORM_RSTD, NORM_VAR, NORM_STATISTICS };

/* Two sums, a and b, over elements x with weights w and upstream gradients g. */
enum norm_kind {
    NORM_SUM,            /* a: x */
    NORM_SPREAD,         /* a: x - mean, b: (x - mean)^2 */
    NORM_PARTIALS,         /* a: g, b: g (x - mean), 0 where g is 0 */
    NORM_WEIGHTED_PARTIALS /* a: w g, b: w g (x - mean) */
};

enum {
    NORM_FOUR = 4,                  /* segments summed side by side */
    /* a masked load of the first n lanes costs no more than a load */
    NORM_MASKS = MG_VECTOR_BYTES > 16,
    /* non-temporal stores pay on wide vectors only: no code on others */
    NORM_STREAMS = MG_VECTOR_BYTES == 64,
    /* a strip and whole vectors behind it */
    NORM_ROOM = NORM_STRIP + NORM_FOUR * MG_VECTOR_BYTES / 4,
};

typedef struct {
    double count, mean, squares; /* squares: the sum of squared deviations from the mean */
} norm_moments;

MG_INLINE norm_moments norm_join(norm_moments a, norm_moments b) {
    double count = a.count + b.count, share = b.count / count, apart = b.mean - a.mean;
    return (norm_moments){count, a.mean + apart * share,
                          a.squares + b.squares + apart * apart * (a.count * share)};
}

/* Moments of n values, from the sums of deviations from a rounded mean and of their squares. */
MG_INLINE norm_moments norm_corrected(double mean, double a, double b, double n) {
    double missing = a / n, squares = b - a * missing;
    return (norm_moments){n, mean + missing, squares < 0 ? 0 : squares};
}

/* A set of planes of n elements that are normalised together. `own`: by statistics of their own.
 * `run`: planes and sets follow each other without gaps, and statistics are computed for four sets
 * at a time. */
typedef struct {
    int64_t count, step, n, w_step; /* number of planes, their distance, their weights' distance */
    int64_t sets;                   /* the statistics of a set lie this far apart */
    bool own, run, streams;
} norm_set;

#define MG_REAL 32
#include "norm.inc.c"
#define MG_REAL 64
#include "norm.inc.c"
#define MG_REAL 32
#include "channels.inc.c"
#define MG_REAL 64
#include "channels.inc.c"

/* ---- shared by rows and channels ---- */

/* Takes contiguous versions of arrays of one float dtype. 0, or an error code with nothing held. */
static int norm_take(int count, mg_array **held, mg_array *const *given) {
    for (int i = 0; i < count; i++) {
        if (!mg_is_float(given[0]->dtype) || given[i]->dtype != given[0]->dtype)
            return mg_fail_code(MG_EDTYPE, given[0]->dtype, given[i]->dtype);
        held[i] = NULL;
    }
    for (int i = 0; i < count; i++) {
        if ((held[i] = mg_contiguous(given[i]))) continue;
        while (i-- > 0) mg_release(held[i]);
        return MG_ENOMEM;
    }
    return MG_OK;
}

static void norm_give(int count, mg_array **held) {
    while (count-- > 0) mg_release(held[count]);
}

/* True if results of `bytes` bytes, in rows of `width`, are written with non-temporal stores. That
 * is so if results and operands together take three quarters of L3 or more. */
static bool norm_streams(int64_t width, int64_t bytes) {
    return NORM_STREAMS && width % MG_VECTOR_BYTES == 0 && bytes / 3 >= mg_system_streams() / 4;
}

static void norm_run(int64_t blocks, int64_t size, mg_block_fn fn, void *context) {
    if (size >= NORM_PARALLEL) mg_parallel_for(blocks, fn, context);
    else
        for (int64_t block = 0; block < blocks; block++) fn(context, block);
}

/* Checks that `stats` has room for all statistics of `sets` sets of x. 0 or an error code. */
static int norm_check_stats(const mg_array *stats, const mg_array *x, int64_t sets) {
    if (stats->dtype != x->dtype) return mg_fail_code(MG_EDTYPE, stats->dtype, x->dtype);
    if (stats->size == NORM_STATISTICS * sets && mg_is_contiguous(stats)) return MG_OK;
    return mg_fail_code(MG_ESHAPE, stats->size, NORM_STATISTICS * sets);
}

int mg_norm_lost(mg_array *stats, double eps) {
    int64_t sets = stats->size / NORM_STATISTICS;
    if (!mg_is_float(stats->dtype) || !mg_is_contiguous(stats)) return true;
    return (stats->dtype == MG_FLOAT32 ? norm_lost_f32 : norm_lost_f64)(stats->data, sets, eps);
}

/* ---- rows ---- */

typedef struct {
    int64_t itemsize, rows, n, rows_per_block, blocks, per_task;
    bool narrow, centred, streams;
    double eps;
    char *out, *stats, *parts; /* out: y or dx; parts: dw and db of each block of rows */
    const char *g, *x, *w, *b;
} norm_rows_job;

static void norm_rows_task(void *context, int64_t task) {
    const norm_rows_job *job = context;
    int64_t begin = task * job->per_task, end = mg_min(begin + job->per_task, job->blocks);
    for (int64_t block = begin; block < end; block++) {
        int64_t first = block * job->rows_per_block;
        int64_t rows = mg_min(job->rows_per_block, job->rows - first);
        int64_t at = first * job->n * job->itemsize, width = job->n * job->itemsize;
        char *stats = job->stats + first * job->itemsize, *dw = job->parts + 2 * block * width;
        if (!job->g)
            (job->narrow ? norm_rows_f32 : norm_rows_f64)(job->out + at, stats, job->x + at, job->w,
                                                          job->b, rows, job->rows, job->n,
                                                          job->centred, job->eps, job->streams);
        else
            (job->narrow ? norm_rows_back_f32 : norm_rows_back_f64)(
                job->out + at, dw, dw + width, job->g + at, job->x + at, job->w, stats, rows,
                job->rows, job->n, job->centred, job->streams);
    }
    if (job->streams) v_stream_end();
}

/* Lays out the job for x in rows of w's size. 0 or an error code. */
static int norm_rows_plan(norm_rows_job *job, const mg_array *x, const mg_array *w,
                          const mg_array *stats, int centred) {
    int64_t n = w->size;
    if (n == 0 || x->size == 0 || x->size % n) return mg_fail_code(MG_ESHAPE, x->size, n);
    *job = (norm_rows_job){.itemsize = mg_itemsize(x->dtype), .rows = x->size / n, .n = n};
    job->rows_per_block = mg_min(mg_max(65536 / n, 16), 128);
    job->blocks = mg_ceil_div(job->rows, job->rows_per_block);
    job->per_task = mg_ceil_div(NORM_GRAIN, job->rows_per_block * n);
    job->narrow = x->dtype == MG_FLOAT32;
    job->centred = centred;
    job->streams = norm_streams(n * job->itemsize, x->size * job->itemsize);
    job->stats = stats->data;
    return norm_check_stats(stats, x, job->rows);
}

mg_array *mg_norm_rows(mg_array *x, mg_array *w, mg_array *b, mg_array *stats, int centred,
                       double eps) {
    mg_array *held[3];
    norm_rows_job job;
    if (norm_rows_plan(&job, x, w, stats, centred)) return NULL;
    if (b->size != w->size) return mg_fail(MG_ESHAPE, b->size, w->size);
    if (norm_take(3, held, (mg_array *[]){x, w, b})) return NULL;
    mg_array *y = mg_new(x->dtype, x->ndim, x->shape);
    if (y) {
        job.eps = eps;
        job.out = y->data;
        job.x = held[0]->data;
        job.w = held[1]->data;
        job.b = held[2]->data;
        norm_run(mg_ceil_div(job.blocks, job.per_task), x->size, norm_rows_task, &job);
    }
    norm_give(3, held);
    return y;
}

/* Three results with the shapes of x, w and w. 0, or an error code with no array made. */
static int norm_results(mg_array **out, const mg_array *x, const mg_array *w) {
    out[0] = mg_new(x->dtype, x->ndim, x->shape);
    out[1] = mg_new(x->dtype, w->ndim, w->shape);
    out[2] = mg_new(x->dtype, w->ndim, w->shape);
    if (out[0] && out[1] && out[2]) return MG_OK;
    norm_give(3, out);
    return MG_ENOMEM;
}

mg_arrays *mg_norm_rows_vjp(mg_array *g, mg_array *x, mg_array *w, mg_array *stats, int centred) {
    mg_array *held[3], *out[3];
    norm_rows_job job;
    if (norm_rows_plan(&job, x, w, stats, centred)) return NULL;
    if (g->size != x->size) return mg_fail(MG_ESHAPE, g->size, x->size);
    if (norm_take(3, held, (mg_array *[]){x, w, g})) return NULL;
    size_t width = (size_t)(2 * job.n * job.itemsize), capacity;
    job.parts = mg_block_take((size_t)job.blocks * width, &capacity);
    if (!job.parts) mg_fail(MG_ENOMEM, job.blocks * (int64_t)width, 0);
    int failed = !job.parts || norm_results(out, x, w);
    if (!failed) {
        job.out = out[0]->data;
        job.x = held[0]->data;
        job.w = held[1]->data;
        job.g = held[2]->data;
        norm_run(mg_ceil_div(job.blocks, job.per_task), x->size, norm_rows_task, &job);
        (job.narrow ? norm_join_parts_f32 : norm_join_parts_f64)(job.parts, job.blocks, 2 * job.n);
        memcpy(out[1]->data, job.parts, width / 2);
        memcpy(out[2]->data, job.parts + width / 2, width / 2);
    }
    if (job.parts) mg_block_give(job.parts, capacity);
    norm_give(3, held);
    return failed ? NULL : mg_arrays_of(3, out);
}

/* ---- channels ---- */

typedef struct {
    norm_set set;
    int64_t itemsize, samples, channels, groups; /* groups of a sample; 0: a set is a channel */
    int64_t per_task;                            /* number of sets, or of columns */
    bool narrow, columns;
    double eps;
    char *out, *stats, *dw, *db; /* out: y or dx; dw and db: by plane, or by column */
    const char *g, *x, *w, *b;
} norm_channels_job;

/* Lays out the sets of a job, without its data. 0 or an error code. */
static int norm_channels_plan(norm_channels_job *job, const mg_array *x, const mg_array *w,
                              const mg_array *stats, int groups, bool own) {
    if (x->ndim < 2 || x->size == 0) return mg_fail_code(MG_ESHAPE, x->ndim, x->size);
    int64_t samples = x->shape[0], channels = x->shape[1], n = x->size / (samples * channels);
    if (w->size != channels) return mg_fail_code(MG_ESHAPE, w->size, channels);
    if (groups < 0 || (groups && channels % groups)) return mg_fail_code(MG_EARG, groups, channels);
    *job = (norm_channels_job){.itemsize = mg_itemsize(x->dtype), .samples = samples,
                               .channels = channels, .groups = groups};
    job->narrow = x->dtype == MG_FLOAT32;
    job->columns = !groups && n == 1;
    job->stats = stats->data;
    job->set = (norm_set){.count = groups ? channels / groups : samples,
                          .step = groups ? n : channels * n, .n = n, .w_step = groups ? 1 : 0,
                          .sets = groups ? samples * groups : channels, .own = own,
                          .streams = norm_streams(n * job->itemsize, x->size * job->itemsize)};
    /* Four long sets would leave L1 before their results are computed. */
    bool brief = job->set.count == 1 || job->set.count * n <= NORM_LONG;
    job->set.run = own && groups > 0 && brief;
    job->per_task = job->columns ? NORM_STRIP : mg_ceil_div(NORM_GRAIN, job->set.count * n);
    return norm_check_stats(stats, x, job->set.sets);
}

static void norm_channels_task(void *context, int64_t task) {
    const norm_channels_job *job = context;
    const norm_set *set = &job->set;
    int64_t first = task * job->per_task, end = mg_min(first + job->per_task, set->sets);
    int64_t size = job->itemsize;
    if (job->columns) {
        int64_t at = first * size;
        if (!job->g)
            (job->narrow ? norm_columns_f32 : norm_columns_f64)(
                set, job->out + at, job->stats + at, job->x + at, job->w + at, job->b + at,
                end - first, job->eps);
        else
            (job->narrow ? norm_columns_back_f32 : norm_columns_back_f64)(
                set, job->out + at, job->dw + at, job->db + at, job->g + at, job->x + at,
                job->w + at, job->stats + at, end - first);
        return;
    }
    for (int64_t s = first; s < end; s++) {
        int64_t plane = s * (job->groups ? set->count : 1), at = plane * set->n * size;
        int64_t channel = plane % job->channels * size;
        if (set->run && !job->g && (s - first) % NORM_FOUR == 0)
            (job->narrow ? norm_runs_keep_f32 : norm_runs_keep_f64)(
                set, job->stats + s * size, job->x + at, mg_min(end - s, NORM_FOUR), job->eps);
        if (!job->g)
            (job->narrow ? norm_set_f32 : norm_set_f64)(set, job->out + at, job->stats + s * size,
                                                        job->x + at, job->w + channel,
                                                        job->b + channel, job->eps);
        else
            (job->narrow ? norm_set_back_f32 : norm_set_back_f64)(
                set, job->out + at, job->db + plane * size, job->dw + plane * size, job->g + at,
                job->x + at, job->w + channel, job->stats + s * size);
    }
    if (set->streams) v_stream_end();
}

mg_array *mg_norm_channels(mg_array *x, mg_array *w, mg_array *b, mg_array *stats, int groups,
                           mg_array *mean, mg_array *var, double eps) {
    mg_array *held[5];
    norm_channels_job job;
    int count = mean ? 5 : 3;
    if (norm_channels_plan(&job, x, w, stats, groups, !mean)) return NULL;
    mg_array *given[] = {x, w, b, mean, var};
    for (int i = 2; i < count; i++)
        if (given[i]->size != job.channels)
            return mg_fail(MG_ESHAPE, given[i]->size, job.channels);
    if (norm_take(count, held, given)) return NULL;
    mg_array *y = mg_new(x->dtype, x->ndim, x->shape);
    if (y) {
        job.eps = eps;
        job.out = y->data;
        job.x = held[0]->data;
        job.w = held[1]->data;
        job.b = held[2]->data;
        if (mean)
            (job.narrow ? norm_given_f32 : norm_given_f64)(stats->data, held[3]->data,
                                                           held[4]->data, job.channels, eps);
        norm_run(mg_ceil_div(job.set.sets, job.per_task), x->size, norm_channels_task, &job);
    }
    norm_give(count, held);
    return y;
}

mg_arrays *mg_norm_channels_vjp(mg_array *g, mg_array *x, mg_array *w, mg_array *stats, int groups,
                                int own) {
    mg_array *held[3], *out[3];
    norm_channels_job job;
    if (norm_channels_plan(&job, x, w, stats, groups, own)) return NULL;
    if (g->size != x->size) return mg_fail(MG_ESHAPE, g->size, x->size);
    if (norm_take(3, held, (mg_array *[]){x, w, g})) return NULL;
    size_t part = (size_t)(job.samples * job.channels * job.itemsize), capacity = 0;
    char *parts = job.columns ? NULL : mg_block_take(2 * part, &capacity);
    if (!parts && !job.columns) mg_fail(MG_ENOMEM, 2 * (int64_t)part, 0);
    int failed = (!parts && !job.columns) || norm_results(out, x, w);
    if (!failed) {
        job.out = out[0]->data;
        job.dw = parts ? parts : out[1]->data;
        job.db = parts ? parts + part : out[2]->data;
        job.x = held[0]->data;
        job.w = held[1]->data;
        job.g = held[2]->data;
        norm_run(mg_ceil_div(job.set.sets, job.per_task), x->size, norm_channels_task, &job);
        if (parts)
            (job.narrow ? norm_channel_sums_f32 : norm_channel_sums_f64)(
                out[1]->data, out[2]->data, job.dw, job.db, job.samples, job.channels);
    }
    if (parts) mg_block_give(parts, capacity);
    norm_give(3, held);
    return failed ? NULL : mg_arrays_of(3, out);
}

/* ---- running statistics ---- */

int mg_norm_track(mg_array *running, mg_array *stats, int variance, double momentum,
                  double factor) {
    if (running->dtype != stats->dtype)
        return mg_fail_code(MG_EDTYPE, running->dtype, stats->dtype);
    if (running->ndim != 1 || NORM_STATISTICS * running->size != stats->size)
        return mg_fail_code(MG_ESHAPE, running->size, stats->size / NORM_STATISTICS);
    if (mg_check_writable(running)) return mg_error();
    mg_buffer_touch(running->buffer);
    int64_t first = (variance ? NORM_VAR : NORM_MEAN) * running->size * mg_itemsize(stats->dtype);
    (stats->dtype == MG_FLOAT32 ? norm_track_f32 : norm_track_f64)(
        running->data, running->strides[0], stats->data + first, running->size, momentum, factor);
    return MG_OK;
}

