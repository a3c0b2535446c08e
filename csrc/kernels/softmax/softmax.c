/* softmax.c: softmax and log_softmax along one axis, and their gradients, for floats.
 *
 * A line whose maximum is NaN or infinite gives NaN. -inf beside a finite maximum is allowed:
 * softmax gives 0 there and log_softmax -inf.
 *
 * Lines that fit into cache are processed one by one, or as a strip of neighbours. For long rows of
 * softmax the exponentials are kept, and a second pass scales them. For all other lines, one pass
 * computes the sums of all lines and a second pass reads the elements again. Along columns the
 * second pass computes the exponentials again: that is less work than to write and read them.
 */
#include "kernels/iterate/contiguous.h"
#include "threads/pool.h"
#include "kernels/iterate/lines.h"
#include "kernels/iterate/nditer.h"
#include "kernels/reduce/reduce.h"

enum softmax_op {
    SOFTMAX_FORWARD,
    SOFTMAX_BACKWARD,
    LOG_SOFTMAX_FORWARD,
    LOG_SOFTMAX_BACKWARD,
    SOFTMAX_EXP, /* the two halves of SOFTMAX_FORWARD */
    SOFTMAX_SCALE
};

#define MG_REAL 32
#include "softmax.inc.c"
#define MG_REAL 64
#include "softmax.inc.c"

typedef struct {
    int op, dtype;
    int64_t itemsize;
    mg_lines lines;
    reduce_plan plan; /* for a strip of lines */
    char *out, *m, *s;
    const char *a, *b;
    char *scales; /* scales of the pieces of long rows, or NULL */
    bool streams; /* use non-temporal stores */
    int64_t step, steps; /* lines or rows in a block; blocks in all, or for each `outer` */
} softmax_job;

/* Processes a strip of lines that fits into cache. */
static void softmax_block(void *context, int64_t block) {
    const softmax_job *job = context;
    const mg_lines *l = &job->lines;
    bool rows = l->inner == 1;
    int64_t first = block % job->steps * job->step, outer = block / job->steps;
    int64_t end = mg_min(first + job->step, rows ? l->outer : l->inner);
    int64_t most = rows ? mg_min(mg_max(SOFTMAX_FITS / l->n, 1), REDUCE_STRIP) : job->step;
    for (; first < end; first += most) {
        int64_t at = (outer * l->n * l->inner + first * job->plan.run_x) * job->itemsize;
        (job->dtype == MG_FLOAT32 ? softmax_strip_f32 : softmax_strip_f64)(
            job->op, job->streams, &job->plan, job->out + at, job->a + at, job->b + at,
            mg_min(most, end - first));
    }
    if (job->streams) v_stream_end();
}

/* True if columns are written with non-temporal stores: on a Zen 4, if they are half of L3 or more,
 * for any number of threads. Plain stores would evict the operands from L3. Rows that fit into
 * cache gain nothing. */
static bool softmax_columns_stream(const softmax_job *job) {
    const mg_lines *l = &job->lines;
    int64_t bytes = l->outer * l->n * l->inner * job->itemsize;
    return l->inner > 1 && mg_system_zen() == 4 && bytes >= mg_system_streams();
}

static void softmax_in_cache(softmax_job *job) {
    const mg_lines *l = &job->lines;
    bool rows = l->inner == 1;
    job->plan = (reduce_plan){.columns = !rows, .n = l->n, .stride = l->inner, .run_y = 1};
    job->plan.run_x = job->plan.run_c = rows ? l->n : 1;
    job->streams = softmax_columns_stream(job);
    job->step = rows           ? mg_max(REDUCE_GRAIN / l->n, 1)
                : job->streams ? REDUCE_WIDE / job->itemsize
                               : REDUCE_STRIP;
    job->steps = mg_ceil_div(rows ? l->outer : l->inner, job->step);
    int64_t blocks = rows ? job->steps : job->steps * l->outer;
    mg_parallel_if(l->outer * l->n * l->inner >= REDUCE_PARALLEL, blocks, softmax_block, job);
}

/* Computes the results of some rows of elements, from the known sums of their lines. */
static void softmax_finish(void *context, int64_t block) {
    const softmax_job *job = context;
    const mg_lines *l = &job->lines;
    int64_t first = block % job->steps * job->step, outer = block / job->steps;
    int64_t at = (outer * l->n + first) * l->inner * job->itemsize;
    int64_t line = outer * l->inner * job->itemsize;
    bool columns = l->inner > 1;
    int64_t n = mg_min(job->step, l->n - first), piece = columns ? n : SOFTMAX_PIECE;
    _Alignas(64) char stage[SOFTMAX_PIECE * sizeof(double)];
    for (int64_t i = 0; i < n; i += piece) {
        int64_t some = mg_min(piece, n - i), bytes = columns ? 0 : some * job->itemsize;
        int64_t here = at + i * l->inner * job->itemsize;
        char *out = job->streams && !columns ? stage : job->out + here;
        nditer_fetch(out, bytes, NDITER_AHEAD);
        nditer_fetch(job->a + here, bytes, NDITER_AHEAD);
        nditer_fetch(job->b + here, bytes, NDITER_AHEAD);
        (job->dtype == MG_FLOAT32 ? softmax_lines_f32 : softmax_lines_f64)(
            job->op, columns, job->streams, out, job->a + here, job->b + here, job->m + line,
            job->s + line, l->inner, some, l->inner);
        if (job->streams) mg_stream(job->out + here, stage, bytes);
    }
    if (job->streams) v_stream_end();
}

/* Runs the job in two passes over memory. 0 or an error code. */
static int softmax_streamed(softmax_job *job, const mg_array *a, const mg_array *b, int axis) {
    const mg_lines *l = &job->lines;
    bool narrow = a->dtype == MG_FLOAT32, drop = job->op == SOFTMAX_BACKWARD;
    int kind = !b ? REDUCE_LOGSUM : drop ? REDUCE_DOT : REDUCE_SUM;
    int64_t shape[MG_MAX_NDIM];
    for (int d = 0; d < a->ndim; d++) shape[d] = d == axis ? 1 : a->shape[d];
    mg_array *s = mg_new(a->dtype, a->ndim, shape), *m = NULL;
    if (s) m = b ? mg_retain(s) : mg_new(a->dtype, a->ndim, shape);
    mg_reduce_layout(&job->plan, a, 1u << axis, drop ? b : NULL);
    if (!m || mg_reduce_run(kind, &job->plan, m, b ? NULL : s, a, drop ? b : NULL)) {
        mg_release(m);
        mg_release(s);
        return mg_error();
    }
    if (!b) (narrow ? softmax_sums_f32 : softmax_sums_f64)(job->op, s->data, m->data, s->size);
    for (int64_t o = 0; o < l->outer && drop; o++)
        (narrow ? softmax_drop_f32 : softmax_drop_f64)(
            s->data + o * l->inner * job->itemsize, job->a + o * l->n * l->inner * job->itemsize,
            l->inner, 1, l->n, l->inner);
    job->m = m->data;
    job->s = s->data;
    job->step = mg_max(REDUCE_GRAIN / l->inner, 1);
    job->steps = mg_ceil_div(l->n, job->step);
    int64_t bytes = a->size * job->itemsize;
    job->streams = l->inner > 1 ? softmax_columns_stream(job)
                                : mg_nditer_streams(bytes, bytes * (b ? 3 : 2), true);
    mg_parallel_for(job->steps * l->outer, softmax_finish, job);
    mg_release(m);
    mg_release(s);
    return MG_OK;
}

/* Computes some pieces of long rows or, once there are scales, scales them. */
static void softmax_pieces(void *context, int64_t block) {
    const softmax_job *job = context;
    int64_t row = job->lines.n, all = job->lines.outer * job->steps;
    int64_t end = mg_min((block + 1) * job->step, all);
    for (int64_t i = block * job->step; i < end; i++) {
        int64_t first = i % job->steps * SOFTMAX_KEPT, n = mg_min(row - first, SOFTMAX_KEPT);
        int64_t at = (i / job->steps * row + first) * job->itemsize, own = i * job->itemsize;
        char *out = job->out + at;
        if (!job->scales)
            (job->dtype == MG_FLOAT32 ? softmax_piece_f32 : softmax_piece_f64)(
                out, job->a + at, job->m + own, job->s + own, n);
        else
            (job->dtype == MG_FLOAT32 ? softmax_lines_f32 : softmax_lines_f64)(
                SOFTMAX_SCALE, false, false, out, out, out, NULL, job->scales + own, n, n, 1);
    }
}

/* Softmax of long rows. Exponentials are computed once, piece by piece, each about the piece's own
 * maximum. They are scaled when the maximum of the row is known. 0 or an error code. */
static int softmax_kept(softmax_job *job) {
    job->steps = mg_ceil_div(job->lines.n, SOFTMAX_KEPT);
    job->step = REDUCE_GRAIN / SOFTMAX_KEPT;
    int64_t pieces = job->lines.outer * job->steps, bytes = pieces * job->itemsize;
    size_t capacity;
    job->m = mg_block_take((size_t)(3 * bytes), &capacity);
    if (!job->m) return mg_fail_code(MG_ENOMEM, 3 * bytes, 0);
    job->s = job->m + bytes;
    mg_parallel_for(mg_ceil_div(pieces, job->step), softmax_pieces, job);
    job->scales = job->s + bytes;
    for (int64_t row = 0; row < bytes; row += job->steps * job->itemsize)
        (job->dtype == MG_FLOAT32 ? softmax_scales_f32 : softmax_scales_f64)(
            job->scales + row, job->m + row, job->s + row, job->steps);
    mg_parallel_for(mg_ceil_div(pieces, job->step), softmax_pieces, job);
    mg_block_give(job->m, capacity);
    return MG_OK;
}

/* b is NULL for a forward op. */
static mg_array *softmax_run(int op, mg_array *a, mg_array *b, int axis) {
    softmax_job job = {.op = op, .dtype = a->dtype, .itemsize = mg_itemsize(a->dtype)};
    if (!mg_is_float(a->dtype)) return mg_fail(MG_EDTYPE, a->dtype, 0);
    if (b && b->dtype != a->dtype) return mg_fail(MG_EDTYPE, a->dtype, b->dtype);
    if (b && lines_differ(a, b)) return NULL;
    if (lines_along(&job.lines, a, axis)) return NULL;
    mg_array *y = mg_new(a->dtype, a->ndim, a->shape);
    if (!y || y->size == 0) return y;
    mg_array *from_a = mg_contiguous(a), *from_b = from_a && b ? mg_contiguous(b) : NULL;
    int failed = !from_a || (b && !from_b);
    if (!failed) {
        const mg_lines *l = &job.lines;
        int64_t most = l->inner > 1 ? REDUCE_BLOCK : REDUCE_CHUNK * mg_min(l->outer, 8);
        job.out = y->data;
        job.a = from_a->data;
        job.b = b ? from_b->data : job.a;
        if (l->n <= most) softmax_in_cache(&job);
        else if (op == SOFTMAX_FORWARD && l->inner == 1) failed = softmax_kept(&job);
        else failed = softmax_streamed(&job, from_a, from_b, axis < 0 ? axis + a->ndim : axis);
    }
    mg_release(from_b);
    mg_release(from_a);
    if (failed) {
        mg_release(y);
        y = NULL;
    }
    return y;
}

mg_array *mg_softmax(mg_array *x, int axis) { return softmax_run(SOFTMAX_FORWARD, x, NULL, axis); }

mg_array *mg_softmax_vjp(mg_array *g, mg_array *y, int axis) {
    return softmax_run(SOFTMAX_BACKWARD, g, y, axis);
}

mg_array *mg_log_softmax(mg_array *x, int axis) {
    return softmax_run(LOG_SOFTMAX_FORWARD, x, NULL, axis);
}

mg_array *mg_log_softmax_vjp(mg_array *g, mg_array *y, int axis) {
    return softmax_run(LOG_SOFTMAX_BACKWARD, g, y, axis);
}

