/* attention.c: scaled dot-product attention, block by block, without a matrix of queries x keys.
 *
 * The method is that of Dao, Fu, Ermon, Rudra and Re, "FlashAttention", NeurIPS 2022. Forward keeps
 * two numbers for each query, and backward recomputes the weights from them. The blocks depend on
 * shapes alone, so the bits are the same for any number of threads.
 */
#include "memory/array.h"
#include "threads/pool.h"
#include "kernels/gemm/gemm.h"
#include "kernels/iterate/nditer.h"
#include "vmath/vmath.h"

#include <math.h>
#include <stdatomic.h>
#include <string.h>

enum { ATTENTION_AHEAD = 12 };

/* The matrix of one head: address of its first element, steps in elements. In results `col` is
 * 1. */
typedef struct {
    char *data;
    int64_t row, col, step[MG_MAX_NDIM];
    int itemsize;
} attention_operand;

typedef struct {
    int dtype, axes;
    int64_t size[MG_MAX_NDIM], heads, queries, keys, depth, values;
    attention_operand q, k, v, mask, out; /* mask.data may be NULL */
    attention_operand g, dq, dk, dv;      /* for backward only */
    bool mask_is_bool, causal;
    double scale;
    int64_t block; /* queries that are taken together */
    bool once; /* backward: one block of queries and keys covers a head */
    /* contiguous; dmask: the mask's gradient at each score, or NULL */
    char *statistics, *parts, *dmask;
    int64_t chunks;      /* of the keys of a head, in backward */
    /* work_bytes: the part of the scratch that a block of scores takes */
    size_t scratch_bytes, work_bytes;
    atomic_bool no_memory;
} attention_plan;

/* Addresses of the operands and results of one head. */
typedef struct {
    const char *q, *k, *v, *mask, *g;
    char *out, *dq, *dk, *dv, *statistics, *dmask;
    int64_t dq_row, dk_row, dv_row;
} attention_item;

/* 2^x for x <= 0, or NaN: a minimax polynomial of 2^f, |f| <= 1/2, times a power of two made by a
 * shift. A subnormal weight is flushed to 0, as it is negligible beside the largest weight, 1.
 * Error 0.6 ULP. */
MG_INLINE float attention_exp2_f32(float x) {
    const float magic = 0x1.8p23f + 127;
    x = x < -126 ? -127 : x;
    float t = x + magic, f = x - (t - magic), y = 0x1.44138ap-13f;
    y = fma_f32(y, f, 0x1.5f089p-10f);
    y = fma_f32(y, f, 0x1.3b2a54p-7f);
    y = fma_f32(y, f, 0x1.c6af6cp-5f);
    y = fma_f32(y, f, 0x1.ebfbep-3f);
    y = fma_f32(y, f, 0x1.62e43p-1f);
    y = fma_f32(y, f, 1.0f);
    return y * v_from_bits_f32(v_bits_f32(t) << 23);
}
MG_INLINE double attention_exp2_f64(double x) {
    const double magic = 0x1.8p52 + 1023;
    x = x < -1022 ? -1023 : x;
    double t = x + magic, f = x - (t - magic), y = 0x1.e9d3fe3952179p-32;
    y = fma_f64(y, f, 0x1.e6063f7217bc6p-28);
    y = fma_f64(y, f, 0x1.b524fae627834p-24);
    y = fma_f64(y, f, 0x1.62bfd47773353p-20);
    y = fma_f64(y, f, 0x1.ffcbfc670dcd4p-17);
    y = fma_f64(y, f, 0x1.430913096fd9fp-13);
    y = fma_f64(y, f, 0x1.5d87fe78a5276p-10);
    y = fma_f64(y, f, 0x1.3b2ab6fba1ddap-7);
    y = fma_f64(y, f, 0x1.c6b08d704a0c2p-5);
    y = fma_f64(y, f, 0x1.ebfbdff82c598p-3);
    y = fma_f64(y, f, 0x1.62e42fefa39efp-1);
    y = fma_f64(y, f, 1.0);
    return y * v_from_bits_f64(v_bits_f64(t) << 52);
}
#define ATTENTION_LOG2E 0x1.71547652b82fep+0

#define MG_REAL 32
#include "attention.inc.c"
#define MG_REAL 64
#include "attention.inc.c"

/* ---- heads and blocks ---- */

static attention_item attention_head(const attention_plan *t, int64_t head) {
    int64_t at[MG_MAX_NDIM], rest = head, size = mg_itemsize(t->dtype);
    for (int d = t->axes - 1; d >= 0; d--) {
        at[d] = rest % t->size[d];
        rest /= t->size[d];
    }
    const attention_operand *operands[] = {&t->q,   &t->k,  &t->v,  &t->mask, &t->g,
                                           &t->out, &t->dq, &t->dk, &t->dv};
    char *data[9];
    for (int i = 0; i < 9; i++) {
        data[i] = operands[i]->data;
        for (int d = 0; data[i] && d < t->axes; d++)
            data[i] += at[d] * operands[i]->step[d] * operands[i]->itemsize;
    }
    return (attention_item){
        .q = data[0], .k = data[1], .v = data[2], .mask = data[3], .g = data[4],
        .out = data[5], .dq = data[6], .dk = data[7], .dv = data[8],
        .dq_row = t->dq.row, .dk_row = t->dk.row, .dv_row = t->dv.row,
        .statistics = t->statistics + head * 2 * t->queries * size,
        .dmask = t->dmask ? t->dmask + head * t->queries * t->keys * size : NULL,
    };
}

static void attention_forward_block(void *context, int64_t block) {
    attention_plan *t = context;
    size_t capacity;
    void *scratch = mg_block_take(t->scratch_bytes, &capacity);
    if (!scratch) {
        t->no_memory = true;
        return;
    }
    int64_t blocks = mg_ceil_div(t->queries, t->block);
    int64_t at = block % blocks * t->block, rows = mg_min(t->block, t->queries - at);
    attention_item head = attention_head(t, block / blocks);
    (t->dtype == MG_FLOAT32 ? attention_forward_f32 : attention_forward_f64)(t, &head, at, rows,
                                                                           scratch);
    mg_block_give(scratch, capacity);
}

/* Copies lines of `bytes` each, stored one after the other, to places `step` elements apart. The
 * processor does not predict such steps, so later lines are prefetched. */
static void attention_lay(const attention_plan *t, char *to, int64_t step, const char *from,
                          int64_t lines, int64_t bytes) {
    step *= mg_itemsize(t->dtype);
    for (int64_t i = 0; i < lines; i++) {
        const char *later = to + (i + ATTENTION_AHEAD) * step;
        for (int64_t b = 0; b < bytes; b += 64) __builtin_prefetch(later + b, 1);
        memcpy(to + i * step, from + i * bytes, (size_t)bytes);
    }
}

/* A chunk of the keys of a head with all its queries. Gradients are summed in scratch memory. Each
 * chunk but the first sums dq in a part of its own. */
static void attention_backward_block(void *context, int64_t block) {
    attention_plan *t = context;
    size_t capacity;
    char *scratch = mg_block_take(t->scratch_bytes, &capacity);
    if (!scratch) {
        t->no_memory = true;
        return;
    }
    int64_t index = block / t->chunks, chunk = block % t->chunks, size = mg_itemsize(t->dtype);
    int64_t k_line = t->depth * size, v_line = t->values * size;
    attention_item head = attention_head(t, index), sums = head;
    if (t->once) {
        (t->dtype == MG_FLOAT32 ? attention_backward_f32 : attention_backward_f64)(
            t, &head, 0, t->queries, 0, t->keys, false, scratch);
        mg_block_give(scratch, capacity);
        return;
    }
    sums.dk_row = sums.dq_row = t->depth;
    sums.dv_row = t->values;
    sums.dk = scratch + t->work_bytes;
    sums.dv = sums.dk + ATTENTION_KEYS * k_line;
    sums.dq = sums.dv + ATTENTION_KEYS * v_line;
    if (chunk > 0) sums.dq = t->parts + (index * (t->chunks - 1) + chunk - 1) * t->queries * k_line;
    memset(sums.dq, 0, (size_t)(t->queries * k_line));
    int64_t blocks = mg_ceil_div(t->keys, ATTENTION_KEYS);
    int64_t end = mg_min((chunk + 1) * blocks / t->chunks * ATTENTION_KEYS, t->keys);
    for (int64_t first = chunk * blocks / t->chunks * ATTENTION_KEYS; first < end;
         first += ATTENTION_KEYS) {
        int64_t keys = mg_min(ATTENTION_KEYS, end - first);
        memset(sums.dk, 0, (size_t)(keys * k_line));
        memset(sums.dv, 0, (size_t)(keys * v_line));
        int64_t start = t->causal ? first / t->block * t->block : 0;
        for (int64_t at = start; at < t->queries; at += t->block) {
            int64_t rows = mg_min(t->block, t->queries - at);
            int64_t seen = t->causal ? mg_min(keys, at + rows - first) : keys;
            (t->dtype == MG_FLOAT32 ? attention_backward_f32 : attention_backward_f64)(
                t, &sums, at, rows, first, seen, true, scratch);
        }
        attention_lay(t, head.dk + first * t->dk.row * size, t->dk.row, sums.dk, keys, k_line);
        attention_lay(t, head.dv + first * t->dv.row * size, t->dv.row, sums.dv, keys, v_line);
    }
    if (chunk == 0) attention_lay(t, head.dq, t->dq.row, sums.dq, t->queries, k_line);
    mg_block_give(scratch, capacity);
}

/* ---- arrays ---- */

/* Strides of the last two axes of `a` and of the head axes. Axes that `a` lacks, or has once, are
 * broadcast. */
static attention_operand attention_place(const mg_array *a, int axes) {
    int own = a->ndim - 2;
    attention_operand p = {.data = a->data, .itemsize = (int)mg_itemsize(a->dtype)};
    p.row = a->shape[own] == 1 ? 0 : a->strides[own];
    p.col = a->shape[own + 1] == 1 ? 0 : a->strides[own + 1];
    for (int d = 0; d < own; d++)
        p.step[axes - own + d] = a->shape[d] == 1 ? 0 : a->strides[d];
    return p;
}

/* Casts the operands to one dtype; a bool mask stays as it is. A missing mask is NULL. The caller
 * releases them. */
static int attention_cast(mg_array **to, mg_array *const *from) {
    bool added = from[3] && from[3]->dtype != MG_BOOL;
    int dtype = mg_promote(3 + added, from);
    if (!mg_is_float(dtype)) return mg_fail_code(MG_EDTYPE, dtype, 0);
    for (int i = 0; i < 4; i++) {
        to[i] = from[i] ? mg_as(from[i], i == 3 && !added ? MG_BOOL : dtype) : NULL;
        if (from[i] && !to[i]) return mg_error();
    }
    return MG_OK;
}

/* Sets all of the plan but the outputs, for operands q, k, v and mask of one dtype. */
static int attention_lay_out(attention_plan *t, mg_array *const *in, double scale, int causal) {
    int ndim = 2;
    for (int i = 0; i < 4; i++) {
        if (!in[i]) continue;
        if (in[i]->ndim < 2) return mg_fail_code(MG_EARG, in[i]->ndim, i);
        if (in[i]->ndim > ndim) ndim = in[i]->ndim;
    }
    *t = (attention_plan){.dtype = in[0]->dtype, .axes = ndim - 2, .heads = 1};
    for (int d = 0; d < t->axes; d++) {
        t->size[d] = 1;
        for (int i = 0; i < 4; i++) {
            int own = in[i] ? d - (ndim - in[i]->ndim) : -1;
            int64_t n = own < 0 ? 1 : in[i]->shape[own];
            if (n == 1 || n == t->size[d]) continue;
            if (t->size[d] != 1) return mg_fail_code(MG_ESHAPE, t->size[d], n);
            t->size[d] = n;
        }
        t->heads *= t->size[d];
    }
    const int64_t *q = in[0]->shape + in[0]->ndim - 2, *k = in[1]->shape + in[1]->ndim - 2;
    const int64_t *v = in[2]->shape + in[2]->ndim - 2, *m = in[3] ? in[3]->shape + in[3]->ndim - 2 : q;
    if (q[1] != k[1]) return mg_fail_code(MG_ESHAPE, q[1], k[1]);
    if (k[0] != v[0]) return mg_fail_code(MG_ESHAPE, k[0], v[0]);
    t->queries = q[0], t->keys = k[0], t->depth = q[1], t->values = v[1];
    /* they would fill at most an eighth of a vector's lanes */
    bool few = 8 * t->queries * mg_itemsize(t->dtype) <= MG_VECTOR_BYTES;
    t->block = few ? 1 : ATTENTION_QUERIES;
    if (in[3] && m[0] != 1 && m[0] != q[0]) return mg_fail_code(MG_ESHAPE, m[0], q[0]);
    if (in[3] && m[1] != 1 && m[1] != k[0]) return mg_fail_code(MG_ESHAPE, m[1], k[0]);
    t->q = attention_place(in[0], t->axes);
    t->k = attention_place(in[1], t->axes);
    t->v = attention_place(in[2], t->axes);
    if (in[3]) t->mask = attention_place(in[3], t->axes);
    t->mask_is_bool = in[3] && in[3]->dtype == MG_BOOL;
    t->scale = scale;
    t->causal = causal != 0;
    return MG_OK;
}

/* A new array with a matrix for each head. */
static mg_array *attention_new(const attention_plan *t, int64_t rows, int64_t columns) {
    int64_t shape[MG_MAX_NDIM];
    memcpy(shape, t->size, sizeof(int64_t) * (size_t)t->axes);
    shape[t->axes] = rows;
    shape[t->axes + 1] = columns;
    return mg_new(t->dtype, t->axes + 2, shape);
}

/* Gives a new array the memory order of `strides`, except for the last axis, which stays
 * innermost. */
static void attention_order(mg_array *a, const int64_t *strides) {
    int order[MG_MAX_NDIM], last = a->ndim - 1;
    for (int d = 0; d < last; d++) {
        int place = d;
        for (; place > 0 && strides[order[place - 1]] < strides[d]; place--)
            order[place] = order[place - 1];
        order[place] = d;
    }
    int64_t step = a->shape[last];
    for (int place = last - 1; place >= 0; place--) {
        a->strides[order[place]] = step;
        step *= mg_max(a->shape[order[place]], 1);
    }
}

/* A new array in the memory order of `like`. Heads that are slices of one row stay so. A model that
 * splits rows into heads can then merge the heads without a copy. */
static mg_array *attention_new_like(const attention_plan *t, int64_t rows, int64_t columns,
                                    const mg_array *like) {
    mg_array *a = attention_new(t, rows, columns);
    if (a && like->ndim == a->ndim) attention_order(a, like->strides);
    return a;
}

/* The distance between queries, keys and values that are slices of one projection's result. They
 * must have one shape and lie evenly spaced in one array; else 0. */
static int64_t attention_spacing(const attention_plan *t, mg_array *const *in) {
    const mg_array *q = in[0];
    int64_t gap = in[1]->data - q->data;
    if (q->ndim == MG_MAX_NDIM || q->size != t->heads * t->queries * t->depth) return 0;
    for (int i = 1; i < 3; i++) {
        if (in[i]->buffer != q->buffer || in[i]->ndim != q->ndim) return 0;
        if (in[i]->data - in[i - 1]->data != gap) return 0;
        for (int d = 0; d < q->ndim; d++)
            if (in[i]->shape[d] != q->shape[d] || in[i]->strides[d] != q->strides[d]) return 0;
    }
    return gap > 0 ? gap / mg_itemsize(t->dtype) : 0;
}

/* Creates the gradients of queries, keys and values, each in the memory order of its operand. If
 * the operands are slices of one array, so are the gradients. The array's gradient then needs no
 * copy. */
static int attention_new_gradients(const attention_plan *t, mg_array **out, mg_array *const *in) {
    const mg_array *q = in[0];
    int64_t shape[MG_MAX_NDIM] = {3}, strides[MG_MAX_NDIM] = {attention_spacing(t, in)};
    if (!strides[0]) {
        out[0] = attention_new_like(t, t->queries, t->depth, in[0]);
        out[1] = attention_new_like(t, t->keys, t->depth, in[1]);
        out[2] = attention_new_like(t, t->keys, t->values, in[2]);
    } else {
        memcpy(shape + 1, q->shape, sizeof(int64_t) * (size_t)q->ndim);
        memcpy(strides + 1, q->strides, sizeof(int64_t) * (size_t)q->ndim);
        mg_array *all = mg_new(t->dtype, q->ndim + 1, shape);
        if (!all) return mg_error();
        attention_order(all, strides);
        for (int i = 0; i < 3; i++)
            out[i] = mg_alias(all, all->data + i * all->strides[0] * mg_itemsize(t->dtype), q->ndim,
                              shape + 1, all->strides + 1);
        mg_release(all);
    }
    return out[0] && out[1] && out[2] ? MG_OK : mg_error();
}

/* True if an operand was cast or is broadcast. */
static bool attention_adapts(const attention_plan *t, mg_array *const *in, mg_array *const *from) {
    for (int i = 0; i < 4; i++) {
        if (!in[i]) continue;
        if (in[i] != from[i] || in[i]->ndim != t->axes + 2) return true;
        for (int d = 0; d < t->axes; d++)
            if (in[i]->shape[d] != t->size[d]) return true;
    }
    const int64_t *mask = in[3] ? in[3]->shape + t->axes : NULL;
    return mask && (mask[0] != t->queries || mask[1] != t->keys);
}

/* Bytes of `lines` numbers for each query of a block, the queries rounded up to full vectors. */
static size_t attention_scratch(const attention_plan *t, int64_t lines) {
    int64_t width = mg_min(mg_ceil_div(t->queries, 16) * 16, ATTENTION_QUERIES);
    return (size_t)(lines * width * mg_itemsize(t->dtype));
}

static int attention_run(attention_plan *t, int64_t blocks, mg_block_fn fn) {
    double work = (double)(t->heads * t->queries * t->keys) * (double)(t->depth + t->values);
    if (work >= MG_GEMM_THREAD_WORK) mg_parallel_for(blocks, fn, t);
    else
        for (int64_t b = 0; b < blocks; b++) fn(t, b);
    return t->no_memory ? mg_fail_code(MG_ENOMEM, (int64_t)t->scratch_bytes, 0) : MG_OK;
}

mg_arrays *mg_attention(mg_array *q, mg_array *k, mg_array *v, mg_array *mask, double scale,
                        int causal) {
    mg_array *from[] = {q, k, v, mask}, *in[4] = {NULL}, *out = NULL, *statistics = NULL;
    attention_plan t;
    int code = attention_cast(in, from);
    if (!code) code = attention_lay_out(&t, in, scale, causal);
    if (!code) {
        out = attention_new_like(&t, t.queries, t.values, in[0]);
        statistics = attention_new(&t, 2, t.queries);
        if (!out || !statistics) code = mg_error();
    }
    if (!code && out->size > 0) {
        t.out = attention_place(out, t.axes);
        t.statistics = statistics->data;
        t.scratch_bytes = attention_scratch(&t, ATTENTION_KEYS + t.depth);
        code = attention_run(&t, t.heads * mg_ceil_div(t.queries, t.block), attention_forward_block);
    }
    if (!code) {
        out->adapted = attention_adapts(&t, in, from);
    } else {
        mg_release(out);
        mg_release(statistics);
    }
    for (int i = 0; i < 4; i++) mg_release(in[i]);
    return code ? NULL : mg_arrays_of(2, (mg_array *[]){out, statistics});
}

/* dq += the parts of the other chunks, in order. */
static void attention_join_block(void *context, int64_t head) {
    const attention_plan *t = context;
    char *dq = attention_head(t, head).dq;
    for (int64_t chunk = 1; chunk < t->chunks; chunk++)
        for (int64_t i = 0; i < t->queries; i++) {
            int64_t to = i * t->dq.row;
            int64_t from = ((head * (t->chunks - 1) + chunk - 1) * t->queries + i) * t->depth;
            if (t->dtype == MG_FLOAT32)
                for (int64_t d = 0; d < t->depth; d++)
                    ((float *)dq)[to + d] += ((float *)t->parts)[from + d];
            else
                for (int64_t d = 0; d < t->depth; d++)
                    ((double *)dq)[to + d] += ((double *)t->parts)[from + d];
        }
}

mg_arrays *mg_attention_vjp(mg_array *g, mg_array *q, mg_array *k, mg_array *v, mg_array *mask,
                            mg_array *y, mg_array *statistics, double scale, int causal,
                            int by_mask) {
    mg_array *from[] = {q, k, v, mask}, *in[4] = {NULL}, *out[4] = {NULL};
    int count = by_mask ? 4 : 3;
    attention_plan t;
    int code = attention_cast(in, from);
    if (!code) code = attention_lay_out(&t, in, scale, causal);
    if (!code && (g->ndim != t.axes + 2 || g->dtype != t.dtype || y->dtype != t.dtype))
        code = mg_fail_code(MG_EDTYPE, g->dtype, y->dtype);
    if (!code) {
        code = attention_new_gradients(&t, out, in);
        if (by_mask && !(out[3] = attention_new(&t, t.queries, t.keys))) code = mg_error();
    }
    if (!code && y->size > 0) {
        int64_t size = mg_itemsize(t.dtype);
        t.g = attention_place(g, t.axes);
        t.out = attention_place(y, t.axes);
        t.statistics = statistics->data;
        t.dq = attention_place(out[0], t.axes);
        t.dk = attention_place(out[1], t.axes);
        t.dv = attention_place(out[2], t.axes);
        t.dmask = by_mask ? out[3]->data : NULL;
        if (t.dmask) memset(t.dmask, 0, (size_t)(out[3]->size * size));
        /* There may be fewer heads than threads; the keys of a head are then cut into chunks. */
        t.once = t.queries <= t.block && t.keys > 0 &&
                 t.keys <= (t.causal ? t.queries : ATTENTION_KEYS);
        t.chunks = mg_max(1, mg_min(mg_ceil_div(t.keys, ATTENTION_KEYS), ATTENTION_TASKS / t.heads));
        t.work_bytes = attention_scratch(&t, 2 * ATTENTION_KEYS + t.values + t.depth);
        int64_t sums = ATTENTION_KEYS * (t.depth + t.values) + t.queries * t.depth;
        t.scratch_bytes = t.work_bytes + (size_t)(sums * size);
        size_t bytes = (size_t)((t.chunks - 1) * out[0]->size * size), capacity;
        t.parts = bytes ? mg_block_take(bytes, &capacity) : NULL;
        if (bytes && !t.parts) code = mg_fail_code(MG_ENOMEM, (int64_t)bytes, 0);
        if (!code) code = attention_run(&t, t.heads * t.chunks, attention_backward_block);
        if (!code && t.parts) mg_parallel_for(t.heads, attention_join_block, &t);
        if (t.parts) mg_block_give(t.parts, capacity);
    }
    for (int i = 0; i < 4; i++) mg_release(in[i]);
    for (int i = 0; code && i < count; i++) mg_release(out[i]);
    return code ? NULL : mg_arrays_of(count, out);
}

