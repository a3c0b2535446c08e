/* copy.c: copies, casts and writes between arrays of any strides. */
#include "contiguous.h"
#include "base/system.h"
#include "threads/pool.h"
#include "nditer.h"

#include <string.h>

/* ---- one dtype, any strides on both sides ---- */

typedef struct copy_plan {
    char *to;
    const char *from;
    int itemsize, ndim;
    int64_t shape[MG_MAX_NDIM];
    int64_t strides[2][MG_MAX_NDIM]; /* of `to`, of `from` */
    int64_t rows_per_block;
    bool fetches; /* larger than the cache: prefetch */
    bool streams; /* use non-temporal stores */
    bool strings; /* repeats that are to stay in cache: string instructions */
} copy_plan;

MG_INLINE void copy_element(char *to, const char *from, int itemsize) {
    if (itemsize == 4) memcpy(to, from, 4);
    else if (itemsize == 8) memcpy(to, from, 8);
    else if (itemsize == 2) memcpy(to, from, 2);
    else *to = *from;
}

MG_INLINE void copy_row(char *to, const char *from, int64_t n, int64_t to_stride,
                        int64_t from_stride, int itemsize) {
    for (int64_t i = 0; i < n; i++)
        copy_element(to + i * to_stride * itemsize, from + i * from_stride * itemsize, itemsize);
}

static void copy_run(char *to, const char *from, int64_t n, int64_t to_stride, int64_t from_stride,
                     int itemsize) {
    if (to_stride == 1) mg_copy_run(to, from, n, from_stride, itemsize);
    else if (itemsize == 4) copy_row(to, from, n, to_stride, from_stride, 4);
    else if (itemsize == 8) copy_row(to, from, n, to_stride, from_stride, 8);
    else if (itemsize == 2) copy_row(to, from, n, to_stride, from_stride, 2);
    else copy_row(to, from, n, to_stride, from_stride, 1);
}

/* Copies a contiguous row, from a contiguous row or from one repeated element (stride 0). */
static void copy_straight(const copy_plan *p, char *to, const char *from, int64_t n,
                          int64_t stride) {
    _Alignas(64) char stage[COPY_CHUNK];
    int64_t size = p->itemsize, step = p->fetches || p->streams ? COPY_CHUNK / size : n;
    if (p->streams && stride == 0) mg_copy_run(stage, from, mg_min(n, step), 0, p->itemsize);
    for (int64_t at = 0; at < n; at += step, to += step * size, from += step * stride * size) {
        int64_t some = mg_min(step, n - at);
        if (p->fetches) nditer_fetch(to, some * size, NDITER_AHEAD);
        if (p->fetches && stride) nditer_fetch(from, some * size, NDITER_AHEAD);
        if (p->streams) mg_stream(to, stride ? from : stage, some * size);
        else mg_copy_run(to, from, some, stride, p->itemsize);
    }
}

/* Repeats each of `rows` elements over a short row of `bytes`. Each row is written by its first and
 * its last `size` bytes. */
MG_INLINE void copy_each(const int size, int itemsize, char *restrict to, int64_t to_step,
                         const char *restrict from, int64_t from_step, int64_t rows, int64_t bytes) {
    for (; rows > 0; rows--, to += to_step, from += from_step) {
        uint64_t word, again[4];
        if (itemsize == 8) memcpy(&word, from, 8);
        else {
            uint32_t half = (uint8_t)*from * 0x01010101u;
            uint16_t quarter;
            if (itemsize == 4) memcpy(&half, from, 4);
            if (itemsize == 2) {
                memcpy(&quarter, from, 2);
                half = quarter * 0x10001u;
            }
            word = half | (uint64_t)half << 32;
        }
        for (int k = 0; k < 4; k++) again[k] = word;
        memcpy(to, again, (size_t)size);
        memcpy(to + bytes - size, again, (size_t)size);
    }
}

/* Repeats elements over rows of 8 to 64 bytes. */
static void copy_repeated(int itemsize, char *to, int64_t to_step, const char *from,
                          int64_t from_step, int64_t rows, int64_t bytes) {
    if (bytes >= 32) copy_each(32, itemsize, to, to_step, from, from_step, rows, bytes);
    else if (bytes >= 16) copy_each(16, itemsize, to, to_step, from, from_step, rows, bytes);
    else copy_each(8, itemsize, to, to_step, from, from_step, rows, bytes);
}

/* ---- repeated elements and rows, by string instructions -------------------------------------- */

static void copy_string(char *to, const char *from, int64_t bytes) {
#if defined(__x86_64__)
    __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(bytes) : : "memory");
#else
    memcpy(to, from, (size_t)bytes);
#endif
}

/* Repeats one element n times. */
static void copy_string_one(char *to, const char *from, int64_t n, int itemsize) {
#if defined(__x86_64__)
    uint64_t eight;
    int64_t words = n * itemsize / 8, rest = n * itemsize % 8;
    mg_copy_run((char *)&eight, from, 8 / itemsize, 0, itemsize);
    __asm__ volatile("rep stosq" : "+D"(to), "+c"(words) : "a"(eight) : "memory");
    memcpy(to, &eight, (size_t)rest);
#else
    mg_copy_run(to, from, n, 0, itemsize);
#endif
}

/* Repeats one row of `bytes`, without gaps. */
static void copy_string_rows(char *to, const char *from, int64_t rows, int64_t bytes) {
    char stage[COPY_STRING];
    int64_t times = mg_min(mg_max(COPY_STRING / bytes, 1), rows);
    for (int64_t k = 0; k < times && times > 1; k++) memcpy(stage + k * bytes, from, (size_t)bytes);
    for (int64_t some; rows > 0; rows -= some, to += some * bytes) {
        some = mg_min(times, rows);
        copy_string(to, times > 1 ? stage : from, some * bytes);
    }
}

/* Copies a band of up to COPY_TILE rows, tile by tile. Both sides thus stay in cache where one of
 * them has no contiguous rows. */
static void copy_band(const copy_plan *p, char *to, const char *from, int64_t rows) {
    int r = p->ndim - 2, c = p->ndim - 1, size = p->itemsize;
    for (int64_t column = 0; column < p->shape[c]; column += COPY_TILE) {
        int64_t n = mg_min(COPY_TILE, p->shape[c] - column);
        for (int64_t row = 0; row < rows; row++)
            copy_run(to + (row * p->strides[0][r] + column * p->strides[0][c]) * size,
                     from + (row * p->strides[1][r] + column * p->strides[1][c]) * size, n,
                     p->strides[0][c], p->strides[1][c], size);
    }
}

static void copy_block(void *context, int64_t block) {
    const copy_plan *p = context;
    int outer = p->ndim - 2; /* the last two axes are a matrix; the others enumerate matrices */
    int64_t bands = mg_ceil_div(p->shape[outer], p->rows_per_block);
    int64_t band = block % bands, rest = block / bands, to = 0, from = 0;
    for (int d = outer - 1; d >= 0; d--) {
        to += rest % p->shape[d] * p->strides[0][d];
        from += rest % p->shape[d] * p->strides[1][d];
        rest /= p->shape[d];
    }
    int64_t begin = band * p->rows_per_block;
    int64_t end = mg_min(begin + p->rows_per_block, p->shape[outer]);
    int64_t n = p->shape[outer + 1];
    int64_t of_row = p->strides[1][outer], of_one = p->strides[1][outer + 1];
    /* Rows that are contiguous on both sides, or repeat one element, need no tiles. */
    bool straight = p->strides[0][outer + 1] == 1 && (uint64_t)of_one <= 1;
    bool strings = straight && p->strings;
    bool one = strings && of_one == 0 && n * p->itemsize >= COPY_STRING_ONE;
    bool same = strings && of_one == 1 && of_row == 0 && p->strides[0][outer] == n;
    int64_t bytes = n * p->itemsize;
    bool brief = of_one ? bytes <= NDITER_SHORT && !p->fetches && !p->streams
                        : bytes >= 8 && bytes <= NDITER_SHORT / 2;
    if (straight && brief) {
        char *t = p->to + (to + begin * p->strides[0][outer]) * p->itemsize;
        const char *f = p->from + (from + begin * of_row) * p->itemsize;
        int64_t to_step = p->strides[0][outer] * p->itemsize;
        if (of_one) mg_copy_short(t, to_step, f, of_row * p->itemsize, end - begin, bytes);
        else copy_repeated(p->itemsize, t, to_step, f, of_row * p->itemsize, end - begin, bytes);
        return;
    }
    int64_t step = same ? end - begin : straight ? 1 : COPY_TILE;
    for (int64_t row = begin; row < end; row += step) {
        char *t = p->to + (to + row * p->strides[0][outer]) * p->itemsize;
        const char *f = p->from + (from + row * of_row) * p->itemsize;
        if (one) copy_string_one(t, f, n, p->itemsize);
        else if (same) copy_string_rows(t, f, step, n * p->itemsize);
        else if (straight) copy_straight(p, t, f, n, of_one);
        else copy_band(p, t, f, mg_min(step, end - row));
    }
    if (p->streams) v_stream_end();
}

/* Chooses how to write `bytes` bytes. The limit is half of L3.
 *
 * Repeated values stay in cache up to twice the limit. Rows on a Zen 4 are an exception: they would
 * evict the operands of the gradient. For plain copies, one thread uses non-temporal stores from
 * the limit on. Several threads do so only beyond it, and so does a Zen 5.
 *
 * Repeated values that stay in cache are written by string instructions on a Zen 5, above half the
 * limit. Before a Zen 4 these pay for one element only, from a sixteenth of the limit up to the
 * limit. Copies by them take from 0.7 to 9 times as long, depending on addresses. On a Zen 4
 * neither string instructions nor prefetches pay. With prefetch, repeated rows take up to 1.6 times
 * as long there.
 */
static void copy_ways(copy_plan *p, int64_t bytes) {
    int64_t limit = mg_system_streams();
    int zen = mg_system_zen();
    bool several = zen == 5 || mg_get_num_threads() > 1;
    bool repeats = false, one = p->ndim > 0 && p->strides[1][p->ndim - 1] == 0;
    for (int d = 0; d < p->ndim; d++) repeats |= p->strides[1][d] == 0;
    bool few = one && bytes > limit / 16 && bytes < limit;
    bool early = repeats ? zen == 4 && !one : !several;
    p->streams = early ? bytes >= limit : bytes / (1 + repeats) > limit;
    p->strings = !p->streams && zen != 4 && (zen == 5 ? repeats && bytes > limit / 2 : few);
    p->fetches = !p->streams && zen < 4 && bytes > COPY_IN_CACHE;
}

void mg_copy_strided(const mg_array *to, const mg_array *from) {
    if (to->size == 0) return;
    copy_plan p = {.to = to->data, .from = from->data, .itemsize = (int)mg_itemsize(to->dtype)};
    memcpy(p.shape, to->shape, sizeof(int64_t) * (size_t)to->ndim);
    memcpy(p.strides[0], to->strides, sizeof(int64_t) * (size_t)to->ndim);
    memcpy(p.strides[1], from->strides, sizeof(int64_t) * (size_t)to->ndim);
    p.ndim = mg_collapse(to->ndim, p.shape, 2, p.strides);
    copy_ways(&p, to->size * p.itemsize);
    if (p.ndim <= 1) { /* one run, cut into rows so that threads can share a long one */
        int64_t n = p.ndim ? p.shape[0] : 1, row = COPY_BLOCK / p.itemsize;
        int64_t to_stride = p.ndim ? p.strides[0][0] : 1, from_stride = p.ndim ? p.strides[1][0] : 1;
        int64_t whole = n / row * row;
        if (whole < n)
            copy_run(p.to + whole * to_stride * p.itemsize, p.from + whole * from_stride * p.itemsize,
                     n - whole, to_stride, from_stride, p.itemsize);
        if (!whole) return;
        p.ndim = 2;
        p.shape[0] = whole / row;
        p.shape[1] = row;
        p.strides[0][0] = row * to_stride;
        p.strides[1][0] = row * from_stride;
        p.strides[0][1] = to_stride;
        p.strides[1][1] = from_stride;
    }
    int r = p.ndim - 2, c = p.ndim - 1;
    int64_t row_bytes = p.shape[c] * p.itemsize;
    p.rows_per_block = mg_max(COPY_BLOCK / row_bytes / COPY_TILE, 1) * COPY_TILE;
    if (row_bytes >= COPY_BLOCK) p.rows_per_block = 1;
    int64_t blocks = mg_ceil_div(p.shape[r], p.rows_per_block);
    for (int d = 0; d < r; d++) blocks *= p.shape[d];
    mg_parallel_for(blocks, copy_block, &p);
}

mg_array *mg_copy(mg_array *a) {
    mg_array *out = mg_new(a->dtype, a->ndim, a->shape);
    if (!out) return NULL;
    out->weak = a->weak;
    mg_copy_strided(out, a);
    return out;
}

/* ---- casts ---- */

#define CAST_LOOP(name, TO, FROM, expression)                                                      \
    static void cast_##name(void *out, const void *const *in, int64_t n) {                         \
        TO *restrict to = out;                                                                     \
        const FROM *restrict from = in[0];                                                         \
        nditer_full_vectors(n, sizeof(TO) < sizeof(FROM) ? sizeof(TO) : sizeof(FROM));             \
        MG_APART for (int64_t i = 0; i < n; i++) {                                                 \
            FROM x = from[i];                                                                      \
            to[i] = (expression);                                                                  \
        }                                                                                          \
    }

/* A float outside the int64 range becomes the smallest int64, as by the x86 instruction. C leaves
 * it undefined. The bounds are exact in both float types. */
MG_INLINE int64_t cast_to_int(double x) {
    return x >= -9223372036854775808.0 && x < 9223372036854775808.0 ? (int64_t)x : INT64_MIN;
}

/* As cast_to_int, to int32. Narrower integers keep the lowest bits. */
#define CAST_TO_NARROW(name, FLOAT)                                                                \
    MG_INLINE int32_t name(FLOAT x) {                                                              \
        return x >= -2147483648.0f && x < 2147483648.0f ? (int32_t)x : INT32_MIN;                  \
    }
CAST_TO_NARROW(cast_to_narrow_f32, float)
CAST_TO_NARROW(cast_to_narrow_f64, double)

CAST_LOOP(f32_f64, double, float, (double)x)
CAST_LOOP(f64_f32, float, double, (float)x)
CAST_LOOP(i64_f32, float, int64_t, (float)x)
CAST_LOOP(i64_f64, double, int64_t, (double)x)
CAST_LOOP(b8_f32, float, uint8_t, (float)(x != 0))
CAST_LOOP(b8_f64, double, uint8_t, (double)(x != 0))
CAST_LOOP(b8_i64, int64_t, uint8_t, (int64_t)(x != 0))
CAST_LOOP(f32_i64, int64_t, float, cast_to_int((double)x))
CAST_LOOP(f64_i64, int64_t, double, cast_to_int(x))
CAST_LOOP(f32_b8, uint8_t, float, x != 0)
CAST_LOOP(f64_b8, uint8_t, double, x != 0)
CAST_LOOP(i64_b8, uint8_t, int64_t, x != 0)

#define CAST_INTEGER(name, TYPE)                                                                   \
    CAST_LOOP(name##_i64, int64_t, TYPE, x)                                                        \
    CAST_LOOP(name##_f32, float, TYPE, (float)x)                                                   \
    CAST_LOOP(i64_##name, TYPE, int64_t, (TYPE)x)                                                  \
    CAST_LOOP(f32_##name, TYPE, float, (TYPE)cast_to_narrow_f32(x))                                \
    CAST_LOOP(f64_##name, TYPE, double, (TYPE)cast_to_narrow_f64(x))
CAST_INTEGER(u8, uint8_t)
CAST_INTEGER(i8, int8_t)
CAST_INTEGER(i16, int16_t)
CAST_INTEGER(i32, int32_t)
CAST_LOOP(f16_f32, float, uint16_t, mg_from_f16(x))
CAST_LOOP(bf16_f32, float, uint16_t, mg_from_bf16(x))
CAST_LOOP(f32_f16, uint16_t, float, mg_to_f16(x))
CAST_LOOP(f32_bf16, uint16_t, float, mg_to_bf16(x))
CAST_LOOP(f64_f16, uint16_t, double, mg_to_f16(mg_to_odd(x)))
CAST_LOOP(f64_bf16, uint16_t, double, mg_to_bf16(mg_to_odd(x)))

/* In the order of mg_dtype: between wide dtypes, from storage dtypes to wide ones, and back. */
static const mg_kernel cast_kernels[4][4] = {
    {NULL, cast_b8_i64, cast_b8_f32, cast_b8_f64},
    {cast_i64_b8, NULL, cast_i64_f32, cast_i64_f64},
    {cast_f32_b8, cast_f32_i64, NULL, cast_f32_f64},
    {cast_f64_b8, cast_f64_i64, cast_f64_f32, NULL},
};
static const mg_kernel cast_widening[6][4] = {
    {NULL, cast_u8_i64, cast_u8_f32},   {NULL, cast_i8_i64, cast_i8_f32},
    {NULL, cast_i16_i64, cast_i16_f32}, {NULL, cast_i32_i64, cast_i32_f32},
    {NULL, NULL, cast_f16_f32},         {NULL, NULL, cast_bf16_f32},
};
static const mg_kernel cast_narrowing[4][6] = {
    {NULL},
    {cast_i64_u8, cast_i64_i8, cast_i64_i16, cast_i64_i32, NULL, NULL},
    {cast_f32_u8, cast_f32_i8, cast_f32_i16, cast_f32_i32, cast_f32_f16, cast_f32_bf16},
    {cast_f64_u8, cast_f64_i8, cast_f64_i16, cast_f64_i32, cast_f64_f16, cast_f64_bf16},
};

/* NULL if there is none. */
static mg_kernel cast_kernel(int from, int to) {
    if (mg_is_storage(from)) return mg_is_storage(to) ? NULL : cast_widening[from - MG_UINT8][to];
    return mg_is_storage(to) ? cast_narrowing[from][to - MG_UINT8] : cast_kernels[from][to];
}

mg_array *mg_cast(mg_array *a, int dtype) {
    if (dtype < MG_UINT8 || dtype > MG_FLOAT64) return mg_fail(MG_EDTYPE, dtype, 0);
    if (dtype == a->dtype) {
        mg_array *same = mg_copy(a);
        if (same) same->weak = 0;
        return same;
    }
    mg_kernel kernel = cast_kernel(a->dtype, dtype);
    if (!kernel) { /* in two steps: integers by int64, half floats by float32 */
        bool halves = mg_wide(a->dtype) == MG_FLOAT32 || mg_wide(dtype) == MG_FLOAT32;
        mg_array *wide = mg_cast(a, halves ? MG_FLOAT32 : MG_INT64);
        mg_array *made = wide ? mg_cast(wide, dtype) : NULL;
        mg_release(wide);
        return made;
    }
    mg_array *out = mg_new(dtype, a->ndim, a->shape);
    if (out) mg_nditer_run(out, 1, &a, kernel);
    return out;
}

/* ---- writes ---- */

int mg_check_writable(const mg_array *a) {
    if (!a->buffer->writable) return mg_fail_code(MG_EREADONLY, 0, 0);
    if (mg_overlaps_itself(a)) return mg_fail_code(MG_EOVERLAP, 0, 0);
    return MG_OK;
}

/* The first address of an array's elements, and the address beyond the last. */
static void copy_extent(const mg_array *a, uintptr_t ends[2]) {
    ends[0] = (uintptr_t)a->data;
    ends[1] = ends[0] + (uintptr_t)mg_itemsize(a->dtype);
    for (int d = 0; d < a->ndim; d++) {
        int64_t reach = a->strides[d] * (a->shape[d] - 1) * mg_itemsize(a->dtype);
        ends[reach > 0] += (uintptr_t)reach;
    }
}

/* True if the arrays may share memory. One NumPy array can be seen through several buffers. */
static bool copy_overlap(const mg_array *a, const mg_array *b) {
    uintptr_t of_a[2], of_b[2];
    copy_extent(a, of_a);
    copy_extent(b, of_b);
    return a->size > 0 && of_a[0] < of_b[1] && of_b[0] < of_a[1];
}

int mg_write(mg_array *dst, mg_array *src) {
    if (mg_check_writable(dst)) return mg_error();
    mg_array *seen = mg_view_expand(src, dst->ndim, dst->shape);
    if (!seen) return mg_error();
    mg_array *from = seen->dtype != dst->dtype   ? mg_cast(seen, dst->dtype)
                     : copy_overlap(seen, dst)   ? mg_copy(seen)
                                                 : mg_retain(seen);
    mg_release(seen);
    if (!from) return mg_error();
    mg_copy_strided(dst, from);
    mg_release(from);
    mg_buffer_touch(dst->buffer);
    return MG_OK;
}

/* Joins arrays along an existing axis, or if `stacked` along a new one. */
static mg_array *copy_joined(int count, mg_array **arrays, int axis, bool stacked) {
    if (count < 1) return mg_fail(MG_EARG, count, 0);
    const mg_array *first = arrays[0];
    int ndim = first->ndim;
    if (axis < 0 || axis >= ndim + stacked) return mg_fail(MG_EAXIS, axis, ndim + stacked);
    if (stacked && ndim == MG_MAX_NDIM) return mg_fail(MG_ENDIM, ndim + 1, MG_MAX_NDIM);
    int64_t shape[MG_MAX_NDIM] = {0}, total = stacked ? count : 0;
    for (int i = 0; i < count; i++) {
        if (arrays[i]->dtype != first->dtype) return mg_fail(MG_EDTYPE, arrays[i]->dtype, i);
        if (arrays[i]->ndim != ndim) return mg_fail(MG_ENDIM, arrays[i]->ndim, ndim);
        for (int d = 0; d < ndim; d++)
            if ((stacked || d != axis) && arrays[i]->shape[d] != first->shape[d])
                return mg_fail(MG_ESHAPE, first->shape[d], arrays[i]->shape[d]);
        if (!stacked && __builtin_add_overflow(total, arrays[i]->shape[axis], &total))
            return mg_fail(MG_ESIZE, 0, 0);
    }
    for (int d = 0; d < ndim; d++) shape[d + (stacked && d >= axis)] = first->shape[d];
    shape[axis] = total;
    mg_array *out = mg_new(first->dtype, ndim + stacked, shape);
    if (!out) return NULL;
    mg_array part = mg_header(out); /* a view of `out` that slides along the axis */
    int64_t step = part.strides[axis] * mg_itemsize(part.dtype);
    if (stacked) {
        part.ndim = ndim;
        for (int d = axis; d < ndim; d++) {
            part.shape[d] = out->shape[d + 1];
            part.strides[d] = out->strides[d + 1];
        }
    }
    for (int i = 0; i < count; i++) {
        if (!stacked) part.shape[axis] = arrays[i]->shape[axis];
        part.size = arrays[i]->size;
        mg_copy_strided(&part, arrays[i]);
        part.data += stacked ? step : part.shape[axis] * step;
    }
    return out;
}

mg_array *mg_concatenate(int count, mg_array **arrays, int axis) {
    return copy_joined(count, arrays, axis, false);
}

mg_array *mg_stack(int count, mg_array **arrays, int axis) {
    return copy_joined(count, arrays, axis, true);
}

/* ---- triangles ---- */

typedef struct copy_triangle {
    char *to;
    const char *from;
    int64_t all, rows, columns, rows_per_block, offset;
    int itemsize, lower;
} copy_triangle;

static void copy_triangle_block(void *context, int64_t block) {
    const copy_triangle *p = context;
    int64_t end = mg_min((block + 1) * p->rows_per_block, p->all), bytes = p->columns * p->itemsize;
    for (int64_t r = block * p->rows_per_block; r < end; r++) {
        int64_t edge = mg_min(mg_max(r % p->rows + p->offset + p->lower, 0), p->columns);
        int64_t first = p->lower ? 0 : edge * p->itemsize, last = p->lower ? edge * p->itemsize : bytes;
        char *to = p->to + r * bytes;
        memset(to, 0, (size_t)first);
        memcpy(to + first, p->from + r * bytes + first, (size_t)(last - first));
        memset(to + last, 0, (size_t)(bytes - last));
    }
}

mg_array *mg_triangle(mg_array *a, int64_t offset, int lower) {
    if (a->ndim < 2) return mg_fail(MG_ENDIM, a->ndim, 2);
    int64_t rows = a->shape[a->ndim - 2], columns = a->shape[a->ndim - 1];
    mg_array *out = mg_new(a->dtype, a->ndim, a->shape), *from = out ? mg_contiguous(a) : NULL;
    if (from && out->size) {
        copy_triangle p = {.to = out->data, .from = from->data, .all = out->size / columns,
                           .rows = rows, .columns = columns, .itemsize = (int)mg_itemsize(a->dtype),
                           .offset = mg_min(mg_max(offset, -rows), columns), .lower = lower};
        p.rows_per_block = mg_max(COPY_BLOCK / (columns * p.itemsize), 1);
        mg_parallel_for(mg_ceil_div(p.all, p.rows_per_block), copy_triangle_block, &p);
    }
    mg_release(from);
    if (!from) {
        mg_release(out);
        return NULL;
    }
    return out;
}
