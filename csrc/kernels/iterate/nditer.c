/* nditer.c: the iterator over operands of any strides, with broadcasting and strided copies. */
#include "nditer.h"

#include "base/system.h"
#include "threads/pool.h"
#include <string.h>

int mg_broadcast_shape(int count, mg_array *const *arrays, int *ndim, int64_t *shape) {
    *ndim = 0;
    for (int i = 0; i < count; i++)
        if (arrays[i]->ndim > *ndim) *ndim = arrays[i]->ndim;
    for (int d = 0; d < *ndim; d++) {
        int64_t size = 1;
        for (int i = 0; i < count; i++) {
            int own = d - (*ndim - arrays[i]->ndim);
            int64_t s = own < 0 ? 1 : arrays[i]->shape[own];
            if (s == 1 || s == size) continue;
            if (size != 1) return mg_fail_code(MG_ESHAPE, size, s);
            size = s;
        }
        shape[d] = size;
    }
    return MG_OK;
}

void mg_broadcast_strides(const mg_array *a, int ndim, const int64_t *shape, int64_t *strides) {
    int added = ndim - a->ndim;
    for (int d = 0; d < ndim; d++) {
        MG_AS_IT_IS;
        bool own = d >= added && (a->shape[d - added] != 1 || shape[d] == 1);
        strides[d] = own ? a->strides[d - added] : 0;
    }
}

int mg_collapse(int ndim, int64_t *shape, int count, int64_t (*strides)[MG_MAX_NDIM]) {
    int kept = 0;
    for (int d = 0; d < ndim; d++) {
        if (shape[d] == 1) continue;
        bool merges = kept > 0;
        for (int i = 0; merges && i < count; i++)
            merges = strides[i][kept - 1] == strides[i][d] * shape[d];
        if (merges) {
            shape[kept - 1] *= shape[d];
            for (int i = 0; i < count; i++) strides[i][kept - 1] = strides[i][d];
        } else {
            shape[kept] = shape[d];
            for (int i = 0; i < count; i++) strides[i][kept] = strides[i][d];
            kept++;
        }
    }
    return kept;
}

/* ---- staging: n elements of one operand, of any strides, into contiguous memory ------- */

typedef uint16_t __attribute__((may_alias)) nditer_2; /* elements of 2, 4 and 8 bytes */
typedef uint32_t __attribute__((may_alias)) nditer_4;
typedef uint64_t __attribute__((may_alias)) nditer_8;

/* True if memcpy would be very slow on a Zen, as memcpy takes string instructions for this many
 * bytes. That is so if, modulo a page, the result lies less than a cache line after its source. */
MG_INLINE bool nditer_crawls(const char *to, const char *from, int64_t bytes) {
    return bytes >= NDITER_CRAWLS && ((uintptr_t)(to - from) - 1) % 4096 < 63;
}

static MG_NOINLINE void nditer_move(char *restrict to, const char *restrict from, int64_t bytes) {
    int64_t at = -(intptr_t)to & 63;
    memcpy(to, from, (size_t)at);
    MG_UNROLL_4
    for (; at + MG_VECTOR_BYTES <= bytes; at += MG_VECTOR_BYTES)
        v_store_f32((float *)(to + at), v_load_f32((const float *)(from + at)));
    memcpy(to + at, from + at, (size_t)(bytes - at));
}

MG_NOINLINE void mg_copy_run(char *restrict to, const char *restrict from, int64_t n,
                             int64_t stride, int itemsize) {
    nditer_2 *restrict to_2 = (nditer_2 *)to;
    nditer_4 *restrict to_4 = (nditer_4 *)to;
    nditer_8 *restrict to_8 = (nditer_8 *)to;
    const nditer_2 *from_2 = (const nditer_2 *)from;
    const nditer_4 *from_4 = (const nditer_4 *)from;
    const nditer_8 *from_8 = (const nditer_8 *)from;
    if (stride == 1 && nditer_crawls(to, from, n * itemsize)) nditer_move(to, from, n * itemsize);
    else if (stride == 1) memcpy(to, from, (size_t)(n * itemsize));
    else if (itemsize == 1)
        for (int64_t i = 0; i < n; i++) to[i] = from[i * stride];
    else if (itemsize == 2)
        for (int64_t i = 0; i < n; i++) to_2[i] = from_2[i * stride];
    else if (itemsize == 4 && stride == 0)
        for (int64_t i = 0; i < n; i++) to_4[i] = *from_4;
    else if (itemsize == 4)
        MG_UNROLL_4
        for (int64_t i = 0; i < n; i++) to_4[i] = from_4[i * stride];
    else if (stride == 0)
        for (int64_t i = 0; i < n; i++) to_8[i] = *from_8;
    else
        MG_UNROLL_4
        for (int64_t i = 0; i < n; i++) to_8[i] = from_8[i * stride];
}

/* Copies each row by its first and its last `size` bytes, which may overlap. */
MG_INLINE void nditer_copy_ends(const int size, char *restrict to, int64_t to_step,
                                const char *restrict from, int64_t from_step, int64_t rows,
                                int64_t bytes) {
    for (; rows > 0; rows--, to += to_step, from += from_step) {
        memcpy(to, from, (size_t)size);
        memcpy(to + bytes - size, from + bytes - size, (size_t)size);
    }
}

MG_NOINLINE void mg_copy_short(char *restrict to, int64_t to_step, const char *restrict from,
                               int64_t from_step, int64_t rows, int64_t bytes) {
    if (bytes >= 64) nditer_copy_ends(64, to, to_step, from, from_step, rows, bytes);
    else if (bytes >= 32) nditer_copy_ends(32, to, to_step, from, from_step, rows, bytes);
    else if (bytes >= 16) nditer_copy_ends(16, to, to_step, from, from_step, rows, bytes);
    else if (bytes >= 8) nditer_copy_ends(8, to, to_step, from, from_step, rows, bytes);
    else if (bytes >= 4) nditer_copy_ends(4, to, to_step, from, from_step, rows, bytes);
    else
        for (int64_t at = 0; at < bytes; at++)
            nditer_copy_ends(1, to + at, to_step, from + at, from_step, rows, 1);
}

MG_NOINLINE void mg_stream(char *restrict to, const char *restrict from, int64_t bytes) {
    enum { LINE = 64, VECTORS = LINE / MG_VECTOR_BYTES }; /* parts of lines are stored as usual */
    int64_t at = mg_min(-(intptr_t)to & (LINE - 1), bytes);
    if (at > 0) memcpy(to, from, (size_t)at);
    for (; at + LINE <= bytes; at += LINE)
        MG_UNROLL
        for (int k = 0; k < VECTORS; k++) {
            int64_t here = at + k * MG_VECTOR_BYTES;
            v_stream(to + here, v_load_f32((const float *)(from + here)));
        }
    if (at < bytes) memcpy(to + at, from + at, (size_t)(bytes - at));
}

/* Gathers n elements starting at multi-index `index`, in row-major order. */
static void nditer_gather(const nditer *it, const struct nditer_operand *op, const int64_t *index,
                          char *to, int64_t n) {
    int inner = it->ndim - 1, itemsize = op->itemsize;
    int64_t at[MG_MAX_NDIM];
    const char *from = op->data;
    for (int d = 0; d < it->ndim; d++) {
        at[d] = index[d];
        from += index[d] * op->strides[d] * itemsize;
    }
    while (n > 0) {
        int64_t run = mg_min(n, it->shape[inner] - at[inner]), bytes = run * itemsize, rows = 1;
        /* as many rows of the next axis as there are */
        if (op->strides[inner] == 1 && bytes <= NDITER_SHORT) {
            int64_t from_step = 0;
            if (inner > 0 && n > run && at[inner] == 0) {
                rows = mg_min(n / run, it->shape[inner - 1] - at[inner - 1]);
                from_step = op->strides[inner - 1] * itemsize;
            }
            mg_copy_short(to, bytes, from, from_step, rows, bytes);
        } else {
            mg_copy_run(to, from, run, op->strides[inner], itemsize);
        }
        to += rows * bytes;
        n -= rows * run;
        from -= at[inner] * op->strides[inner] * itemsize;
        at[inner] = 0;
        for (int d = inner - 1; d >= 0; d--, rows = 1) {
            from += rows * op->strides[d] * itemsize;
            if ((at[d] += rows) < it->shape[d]) break;
            from -= at[d] * op->strides[d] * itemsize;
            at[d] = 0;
        }
    }
}

/* ---- calls of the kernel ---- */

/* Copies n elements and pads them with the first element up to a whole unit, so that vectors of any
 * type are whole. */
MG_INLINE void nditer_pad(char *restrict to, const char *restrict from, int64_t n, int64_t unit,
                          int itemsize) {
    vec_f32 spread = itemsize == 4 ? v_set1_f32(*(const float *)from)
                     : itemsize == 8 ? (vec_f32)v_set1_f64(*(const double *)from)
                                     : v_set1_f32(0);
    if (itemsize == 1) memset(to, *from, (size_t)unit);
    if (itemsize == 2) mg_copy_run(to, from, unit, 0, 2);
    for (int64_t at = 0; itemsize > 2 && at < unit * itemsize; at += MG_VECTOR_BYTES)
        v_store_f32((float *)(to + at), spread);
    if (n > 1) memcpy(to, from, (size_t)(n * itemsize));
}

/* Computes the end of n elements that are not a multiple of the unit. Usually the last whole unit
 * is computed again. In place, this would apply the operation twice. There, and if n is less than a
 * unit, the rest is padded with its first element. */
static MG_NOINLINE void nditer_rest(const nditer *it, int64_t begin, const void *const *in,
                                    int64_t n) {
    _Alignas(64) char stage[NDITER_MAX_OPERANDS + 1][NDITER_UNIT_MAX * 8];
    const void *last[NDITER_MAX_OPERANDS];
    bool again = n >= it->unit && !it->in_place;
    int64_t rest = n % it->unit, at = n - (again ? it->unit : rest);
    for (int i = 0; i < it->operands; i++) {
        int itemsize = it->operand[i].itemsize;
        const char *from = (const char *)in[i] + at * itemsize;
        last[i] = again ? from : stage[i];
        if (again) continue;
        nditer_pad(stage[i], from, rest, it->unit, itemsize);
    }
    for (int r = it->results - 1; r >= 0; r--) {
        char *end = it->result[r].out + (begin + at) * it->out_itemsize;
        char *padded = stage[NDITER_MAX_OPERANDS];
        it->result[r].kernel(again ? end : padded, last, it->unit);
        if (!again) memcpy(end, padded, (size_t)(rest * it->out_itemsize));
    }
}

/* Computes n elements of the results from `begin` on. The first result is computed last: its memory
 * may be an operand's. */
MG_INLINE void nditer_call(const nditer *it, int64_t begin, const void *const *in, int64_t n) {
    int64_t rest = n & (it->unit - 1);
    for (int r = it->results - 1; r >= 0 && n > rest; r--)
        it->result[r].kernel(it->result[r].out + begin * it->out_itemsize, in, n - rest);
    if (rest) nditer_rest(it, begin, in, n);
}

/* The same with non-temporal stores. A kernel needs no second version for this: its output is
 * staged and copied. Where computing takes about as long as memory, though, nothing hides the time
 * of the copy. */
static MG_NOINLINE void nditer_call_streaming(const nditer *it, int64_t begin,
                                              const void *const *in, int64_t n) {
    _Alignas(64) char stage[NDITER_STREAM];
    int64_t size = it->out_itemsize, rest = n & (it->unit - 1);
    for (int r = 0; r < it->results && n > rest; r++) {
        char *to = it->result[r].out + begin * size;
        if (it->non_temporal) {
            it->non_temporal(to, in, n - rest);
            continue;
        }
        it->result[r].kernel(stage, in, n - rest);
        mg_stream(to, stage, (n - rest) * size);
    }
    if (rest) nditer_rest(it, begin, in, n);
}

/* The number of elements in a chunk, whole units. */
static int64_t nditer_chunk(const nditer *it) {
    if (!it->streams) {
        if (it->fetches) return NDITER_AHEAD / 16;
        return it->results > 1 ? NDITER_SHARED / it->out_itemsize : NDITER_BLOCK;
    }
    if (it->non_temporal && !it->fetches) return NDITER_BLOCK; /* no staging, no prefetch */
    int64_t asked = 0;
    for (int i = 0; i < it->operands; i++)
        if (it->operand[i].contiguous && !it->operand[i].again) asked += it->operand[i].itemsize;
    int64_t waits = it->fetches ? NDITER_WAITS : NDITER_FOLLOWS;
    int64_t most = NDITER_STREAM / it->out_itemsize, n = waits / mg_max(asked, 1);
    return mg_max(mg_min(n, most) & -it->unit, it->unit);
}

/* The block to process in place of `block`. Each thread's run of blocks is processed from last to
 * first. The runs are as in the forward order, so that a thread finds its blocks in its own
 * cache. */
static int64_t nditer_from_end(int64_t block, int64_t blocks, int64_t threads) {
    int64_t runs = mg_min(threads, blocks), run = ((block + 1) * runs - 1) / blocks;
    return mg_run_begin(run, runs, blocks) + mg_run_begin(run + 1, runs, blocks) - 1 - block;
}

/* The address of n elements of a contiguous operand. Prefetches what follows. */
MG_INLINE const void *nditer_in_order(const nditer *it, const struct nditer_operand *op, int64_t at,
                                      int64_t n) {
    const char *from = op->data + at * op->itemsize;
    int64_t ahead = it->streams ? NDITER_STREAM_AHEAD : NDITER_AHEAD;
    if (it->fetches && !op->again) nditer_fetch(from, n * op->itemsize, ahead);
    return from;
}

/* The address of n elements of any other operand, in order. They are read where they lie, if `rows`
 * and contiguous along the last axis, else gathered. */
MG_INLINE const void *nditer_put_in_order(const nditer *it, const struct nditer_operand *op,
                                          const int64_t *index, char *stage, int64_t n, bool rows) {
    if (!rows || op->strides[it->ndim - 1] != 1) {
        nditer_gather(it, op, index, stage, n);
        return stage;
    }
    const char *from = op->data;
    for (int d = 0; d < it->ndim; d++) from += index[d] * op->strides[d] * op->itemsize;
    return from;
}

/* Computes n elements of the results from `at` on, with or without non-temporal stores. */
MG_INLINE void nditer_chunk_of(const nditer *it, int64_t at, const void *const *in, int64_t n) {
    int64_t size = it->out_itemsize;
    if (it->streams) {
        nditer_call_streaming(it, at, in, n);
        return;
    }
    for (int r = 0; r < it->results && it->fetches; r++)
        nditer_fetch(it->result[r].out + at * size, n * size, NDITER_AHEAD);
    nditer_call(it, at, in, n);
}

/* Computes elements begin..end where every operand is contiguous, or constant and spread in `in`.
 * Little happens between two chunks. A core therefore issues the loads of the next chunk while it
 * waits for this one. */
static MG_NOINLINE void nditer_whole_block(const nditer *it, const void **in, int64_t chunk,
                                           int64_t begin, int64_t end) {
    for (int64_t at = begin, n; at < end; at += n) {
        n = mg_min(chunk, end - at);
        for (int i = 0; i < it->operands; i++) {
            const struct nditer_operand *op = &it->operand[i];
            if (!op->constant) in[i] = nditer_in_order(it, op, at, n);
        }
        nditer_chunk_of(it, at, in, n);
    }
}

/* Computes elements begin..end where some operand has to be gathered, or is contiguous along the
 * last axis only. `in` and `stage` hold the constant operands. */
static void nditer_strided_block(const nditer *it, const void **in, char (*stage)[NDITER_CHUNK * 8],
                                 int64_t chunk, int64_t begin, int64_t end) {
    int64_t index[MG_MAX_NDIM], rest = begin;
    int inner = it->ndim - 1;
    for (int d = inner; d >= 0; d--) {
        index[d] = rest % it->shape[d];
        rest /= it->shape[d];
    }
    bool rows = it->shape[inner] >= NDITER_CHUNK / 4;
    for (int64_t at = begin, n; at < end; at += n) {
        n = mg_min(chunk, end - at);
        if (rows) n = mg_min(n, it->shape[inner] - index[inner]);
        for (int i = 0; i < it->operands; i++) {
            const struct nditer_operand *op = &it->operand[i];
            if (op->constant) continue;
            if (op->contiguous) in[i] = nditer_in_order(it, op, at, n);
            else if (!rows || op->strides[inner] != 0 || index[inner] == 0 || at == begin)
                in[i] = nditer_put_in_order(it, op, index, stage[i], n, rows);
            /* else one element repeats along the row: spread at the row's first chunk */
        }
        nditer_chunk_of(it, at, in, n);
        index[inner] += n;
        for (int d = inner; d > 0 && index[d] >= it->shape[d]; d--) {
            index[d - 1] += index[d] / it->shape[d];
            index[d] %= it->shape[d];
        }
    }
}

static void nditer_block(void *context, int64_t block) {
    const nditer *it = context;
    if (it->from_end)
        block = nditer_from_end(block, mg_ceil_div(it->size, NDITER_BLOCK), it->threads);
    int64_t begin = block * NDITER_BLOCK, end = mg_min(begin + NDITER_BLOCK, it->size);
    _Alignas(64) char stage[NDITER_MAX_OPERANDS][NDITER_CHUNK * 8];
    const void *in[NDITER_MAX_OPERANDS];
    int64_t chunk = nditer_chunk(it);
    for (int i = 0; i < it->operands; i++) {
        const struct nditer_operand *op = &it->operand[i];
        if (!op->contiguous) chunk = mg_min(chunk, NDITER_CHUNK);
        if (op->constant) {
            mg_copy_run(stage[i], op->data, mg_min(end - begin, NDITER_CHUNK), 0, op->itemsize);
            in[i] = stage[i];
        }
    }
    if (it->whole) nditer_whole_block(it, in, chunk, begin, end);
    else nditer_strided_block(it, in, stage, chunk, begin, end);
    if (it->streams) v_stream_end();
}

/* True if every operand is contiguous and of out's size: the usual case, and the only one for small
 * arrays. */
static bool nditer_is_direct(const mg_array *out, int operands, mg_array *const *inputs) {
    for (int i = 0; i < operands; i++)
        if (inputs[i]->size != out->size || !mg_is_contiguous(inputs[i])) return false;
    return true;
}

MG_NOINLINE bool mg_nditer_streams(int64_t written, int64_t held, bool few) {
    int64_t limit = mg_system_streams();
    return written >= limit && held / 2 + (few && mg_get_num_threads() == 1) > limit;
}

/* Broadcasts the operands and merges axes, if some operand does not have the result's layout. */
static void nditer_lay_out(nditer *it, const mg_array *out, mg_array *const *inputs) {
    int64_t strides[NDITER_MAX_OPERANDS][MG_MAX_NDIM];
    for (int i = 0; i < it->operands; i++)
        mg_broadcast_strides(inputs[i], out->ndim, out->shape, strides[i]);
    memcpy(it->shape, out->shape, sizeof(int64_t) * (size_t)out->ndim);
    it->ndim = mg_collapse(out->ndim, it->shape, it->operands, strides);
    for (int i = 0; i < it->operands; i++) {
        struct nditer_operand *op = &it->operand[i];
        op->constant = true;
        for (int d = 0; d < it->ndim; d++) {
            op->strides[d] = strides[i][d];
            op->constant = op->constant && strides[i][d] == 0;
        }
    }
}

static MG_NOINLINE void nditer_run(bool from_end, int results, mg_array *const *outs, int operands,
                                   mg_array *const *inputs, const mg_kernel *kernels,
                                   mg_kernel non_temporal) {
    const mg_array *out = outs[0];
    nditer it; /* large: set only what is read */
    it.size = out->size;
    if (it.size == 0) return;
    it.results = results;
    for (int r = 0; r < results; r++)
        it.result[r] = (struct nditer_result){kernels[r], outs[r]->data};
    it.out_itemsize = (int)mg_itemsize(out->dtype);
    it.operands = operands;
    it.in_place = false;
    int narrowest = it.out_itemsize, bytes = results * it.out_itemsize, whole = bytes;
    const void *in[NDITER_MAX_OPERANDS];
    for (int i = 0; i < operands; i++) {
        struct nditer_operand *op = &it.operand[i];
        in[i] = op->data = inputs[i]->data;
        op->itemsize = (int)mg_itemsize(inputs[i]->dtype);
        if (op->itemsize < narrowest) narrowest = op->itemsize;
        bytes += op->itemsize;
        if (inputs[i]->size == it.size) whole += op->itemsize;
        it.in_place |= op->data == out->data;
    }
    it.unit = nditer_unit((size_t)narrowest);
    bool direct = nditer_is_direct(out, operands, inputs);
    if (direct && it.size <= NDITER_BLOCK) {
        nditer_call(&it, 0, in, it.size);
        return;
    }
    it.streams = !it.in_place && mg_nditer_streams(it.size * it.out_itemsize * results,
                                                   it.size * whole, operands < 3);
    bool lines = direct && results == 1 && ((uintptr_t)out->data & 63) == 0;
    it.non_temporal = it.streams && lines ? non_temporal : NULL;
    it.threads = mg_get_num_threads();
    for (int i = 0; i < operands; i++) {
        bool same_size = inputs[i]->size == out->size;
        it.operand[i].contiguous = direct || (same_size && mg_is_contiguous(inputs[i]));
        it.operand[i].constant = it.operand[i].again = false;
        for (int k = 0; k < i; k++) it.operand[i].again |= in[k] == in[i];
    }
    it.ndim = 1;
    if (!direct) nditer_lay_out(&it, out, inputs);
    it.whole = true;
    for (int i = 0; i < operands; i++)
        it.whole &= it.operand[i].contiguous || it.operand[i].constant;
    it.fetches = false;
    if (it.streams) it.fetches = !it.whole || mg_system_zen() != 4;
    else if (it.size * bytes >= NDITER_IN_CACHE) it.fetches = mg_system_zen() < 4;
    it.from_end = from_end && !it.fetches && !it.streams;
    mg_parallel_for(mg_ceil_div(it.size, NDITER_BLOCK), nditer_block, &it);
}

void mg_nditer_run(mg_array *out, int operands, mg_array *const *inputs, mg_kernel kernel) {
    nditer_run(false, 1, &out, operands, inputs, &kernel, NULL);
}

void mg_nditer_run_streaming(mg_array *out, int operands, mg_array *const *inputs, mg_kernel kernel,
                             mg_kernel non_temporal) {
    nditer_run(false, 1, &out, operands, inputs, &kernel, non_temporal);
}

void mg_nditer_run_back(int results, mg_array *const *outs, int operands, mg_array *const *inputs,
                        const mg_kernel *kernels, mg_kernel non_temporal) {
    nditer_run(true, results, outs, operands, inputs, kernels, non_temporal);
}
