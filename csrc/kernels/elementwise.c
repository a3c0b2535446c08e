/* elementwise.c: the table of elementwise operations and the calls that run them. */
#include "nditer.h"
#include "vmath.h"

#include <string.h>

#define MG_REAL 32
#include "elementwise.inc.c"
#define MG_REAL 64
#include "elementwise.inc.c"

/* ---- int64 and bool ---- */

MG_INLINE uint64_t u(int64_t x) { return (uint64_t)x; }

/* Wraps around; negative exponents have been refused. */
static uint64_t i_pow(int64_t base, int64_t exponent) {
    uint64_t power = 1, square = u(base);
    for (; exponent; exponent >>= 1, square *= square)
        if (exponent & 1) power *= square;
    return power;
}

#define UNARY(name, forward, by_x)
#define UNARY_CHUNK(name, forward, by_x)
#define UNARY_PAIR(name, forward, sign, by_x)
#define BINARY_CHUNK(name, forward, by_a, by_b)
#define BINARY(name, forward, by_a, by_b)
#define COMPARE(name, expression)                                                                   \
    static void name##_kernel_i64(void *out, const void *const *in, int64_t n) {                    \
        const int64_t *restrict va = in[0], *restrict vb = in[1];                                   \
        for (int64_t i = 0; i < n; i++) {                                                           \
            int64_t a = va[i], b = vb[i];                                                           \
            ((uint8_t *restrict)out)[i] = expression;                                               \
        }                                                                                           \
    }                                                                                               \
    static void name##_kernel_b8(void *out, const void *const *in, int64_t n) {                     \
        const uint8_t *restrict va = in[0], *restrict vb = in[1];                                   \
        for (int64_t i = 0; i < n; i++) {                                                           \
            uint8_t a = va[i], b = vb[i];                                                           \
            ((uint8_t *restrict)out)[i] = expression;                                               \
        }                                                                                           \
    }
#define INT_UNARY(name, expression)                                                                 \
    static void name##_kernel_i64(void *out, const void *const *in, int64_t n) {                    \
        const int64_t *restrict vx = in[0];                                                         \
        for (int64_t i = 0; i < n; i++) {                                                           \
            int64_t x = vx[i];                                                                      \
            ((int64_t *restrict)out)[i] = (int64_t)(expression);                                    \
        }                                                                                           \
    }
#define INT_BINARY(name, expression)                                                                \
    static void name##_kernel_i64(void *out, const void *const *in, int64_t n) {                    \
        const int64_t *restrict va = in[0], *restrict vb = in[1];                                   \
        for (int64_t i = 0; i < n; i++) {                                                           \
            int64_t a = va[i], b = vb[i];                                                           \
            ((int64_t *restrict)out)[i] = (int64_t)(expression);                                    \
        }                                                                                           \
    }
#define BOOL_BINARY(name, expression)                                                               \
    static void name##_kernel_b8(void *out, const void *const *in, int64_t n) {                     \
        const uint8_t *restrict va = in[0], *restrict vb = in[1];                                   \
        for (int64_t i = 0; i < n; i++) {                                                           \
            uint8_t a = va[i] != 0, b = vb[i] != 0;                                                 \
            ((uint8_t *restrict)out)[i] = expression;                                               \
        }                                                                                           \
    }
#include "elementwise.def"

/* ---- the table ---- */

enum elementwise_id {
#define UNARY(name, forward, by_x) OP_##name,
#define UNARY_CHUNK(name, forward, by_x) OP_##name,
#define UNARY_PAIR(name, forward, sign, by_x) OP_##name,
#define BINARY_CHUNK(name, forward, by_a, by_b) OP_##name,
#define BINARY(name, forward, by_a, by_b) OP_##name,
#define COMPARE(name, expression) OP_##name,
#define INT_UNARY(name, expression)
#define INT_BINARY(name, expression)
#define BOOL_BINARY(name, expression)
#include "elementwise.def"
    OP_COUNT
};

typedef struct elementwise_row {
    const char *name;
    int arity;
    bool compares;
    mg_kernel kernel[4]; /* by dtype; NULL where it is not offered */
    mg_kernel vjp[2][4]; /* by input and dtype; NULL for integers and comparisons */
} elementwise_row;

static const elementwise_row float_rows[OP_COUNT] = {
#define UNARY(op, forward, by_x)                                                                    \
    [OP_##op] = {.name = #op, .arity = 1,                                                           \
                 .kernel = {[MG_FLOAT32] = op##_kernel_f32, [MG_FLOAT64] = op##_kernel_f64},        \
                 .vjp = {{[MG_FLOAT32] = op##_vjp_f32, [MG_FLOAT64] = op##_vjp_f64}}},
#define UNARY_CHUNK(op, forward, by_x) UNARY(op, forward, by_x)
#define UNARY_PAIR(op, forward, sign, by_x) UNARY(op, forward, by_x)
#define BINARY_CHUNK(op, forward, by_a, by_b) BINARY(op, forward, by_a, by_b)
#define BINARY(op, forward, by_a, by_b)                                                             \
    [OP_##op] = {.name = #op, .arity = 2,                                                           \
                 .kernel = {[MG_FLOAT32] = op##_kernel_f32, [MG_FLOAT64] = op##_kernel_f64},        \
                 .vjp = {{[MG_FLOAT32] = op##_vjp_a_f32, [MG_FLOAT64] = op##_vjp_a_f64},            \
                         {[MG_FLOAT32] = op##_vjp_b_f32, [MG_FLOAT64] = op##_vjp_b_f64}}},
#define COMPARE(op, expression)                                                                     \
    [OP_##op] = {.name = #op, .arity = 2, .compares = true,                                         \
                 .kernel = {op##_kernel_b8, op##_kernel_i64, op##_kernel_f32, op##_kernel_f64}},
#define INT_UNARY(name, expression)
#define INT_BINARY(name, expression)
#define BOOL_BINARY(name, expression)
#include "elementwise.def"
};

static const mg_kernel int_kernels[OP_COUNT] = {
#define UNARY(name, forward, by_x)
#define UNARY_CHUNK(name, forward, by_x)
#define UNARY_PAIR(name, forward, sign, by_x)
#define BINARY_CHUNK(name, forward, by_a, by_b)
#define BINARY(name, forward, by_a, by_b)
#define COMPARE(op, expression) [OP_##op] = op##_kernel_i64,
#define INT_UNARY(op, expression) [OP_##op] = op##_kernel_i64,
#define INT_BINARY(op, expression) [OP_##op] = op##_kernel_i64,
#define BOOL_BINARY(name, expression)
#include "elementwise.def"
};

static const mg_kernel bool_kernels[OP_COUNT] = {
#define UNARY(name, forward, by_x)
#define UNARY_CHUNK(name, forward, by_x)
#define UNARY_PAIR(name, forward, sign, by_x)
#define BINARY_CHUNK(name, forward, by_a, by_b)
#define BINARY(name, forward, by_a, by_b)
#define COMPARE(op, expression) [OP_##op] = op##_kernel_b8,
#define INT_UNARY(name, expression)
#define INT_BINARY(name, expression)
#define BOOL_BINARY(op, expression) [OP_##op] = op##_kernel_b8,
#include "elementwise.def"
};

static mg_kernel elementwise_kernel(int op, int dtype) {
    return dtype == MG_INT64 ? int_kernels[op]
           : dtype == MG_BOOL ? bool_kernels[op]
                              : float_rows[op].kernel[dtype];
}

int mg_op_count(void) { return OP_COUNT; }
const char *mg_op_name(int op) { return op < 0 || op >= OP_COUNT ? NULL : float_rows[op].name; }
int mg_op_arity(int op) { return op < 0 || op >= OP_COUNT ? 0 : float_rows[op].arity; }

/* ---- promotion ---- */

/* The dtype two operands meet in. A weak scalar only raises the kind (bool, integer, float), and with
 * an integer array a weak float gives float32. Weak scalars alone stay weak, in full precision. */
static int elementwise_promote(const mg_array *a, const mg_array *b) {
    int higher = a->dtype > b->dtype ? a->dtype : b->dtype;
    if (a->weak == b->weak) return higher;
    const mg_array *weak = a->weak ? a : b, *strong = a->weak ? b : a;
    if (!mg_is_float(weak->dtype)) return higher;
    return mg_is_float(strong->dtype) ? strong->dtype : MG_FLOAT32;
}

/* `a` in that dtype: itself retained, or a cast copy. */
static mg_array *elementwise_as(mg_array *a, int dtype) {
    return a->dtype == dtype ? mg_retain(a) : mg_cast(a, dtype);
}

/* ---- calls ---- */

mg_array *mg_unary(int op, mg_array *x) {
    if (op < 0 || op >= OP_COUNT || float_rows[op].arity != 1) return mg_fail(MG_EARG, op, 0);
    int dtype = x->dtype;
    if (dtype == MG_BOOL && op == OP_neg) return mg_fail(MG_EDTYPE, dtype, 0); /* `not`, or 0 - x? */
    if (!elementwise_kernel(op, dtype)) dtype = x->weak ? MG_FLOAT64 : MG_FLOAT32;
    mg_array *from = elementwise_as(x, dtype);
    if (!from) return NULL;
    mg_array *out = mg_new(dtype, x->ndim, x->shape);
    if (out) {
        out->weak = x->weak;
        out->adapted = dtype != x->dtype;
        mg_nditer_run(out, 1, &from, elementwise_kernel(op, dtype));
    }
    mg_release(from);
    return out;
}

static bool elementwise_any_negative(mg_array *exponent) {
    mg_array *least = exponent->size ? mg_reduce(MG_MIN, exponent, -1, NULL, 0) : NULL;
    bool negative = least && mg_item_int(least) < 0;
    mg_release(least);
    return negative;
}

/* Powers by a plain number that have a cheaper exact form. */
static int pow_shortcut(const mg_array *exponent) {
    if (!exponent->weak) return -1;
    double n = mg_item_float(exponent);
    return n == 2 ? OP_square : n == -1 ? OP_reciprocal : -1;
}

static bool elementwise_same_shape(const mg_array *a, const mg_array *b) {
    if (a->ndim != b->ndim) return false;
    for (int d = 0; d < a->ndim; d++)
        if (a->shape[d] != b->shape[d]) return false;
    return true;
}

mg_array *mg_binary(int op, mg_array *a, mg_array *b) {
    if (op < 0 || op >= OP_COUNT || float_rows[op].arity != 2) return mg_fail(MG_EARG, op, 0);
    if (a->dtype == b->dtype && mg_is_float(a->dtype) && !a->weak && !b->weak &&
        elementwise_same_shape(a, b)) { /* nothing to promote or broadcast */
        mg_array *out = mg_new(float_rows[op].compares ? MG_BOOL : a->dtype, a->ndim, a->shape);
        if (out) mg_nditer_run(out, 2, (mg_array *[]){a, b}, float_rows[op].kernel[a->dtype]);
        return out;
    }
    int dtype = elementwise_promote(a, b);
    bool weak = a->weak && b->weak;
    if (op == OP_div && !mg_is_float(dtype)) dtype = weak ? MG_FLOAT64 : MG_FLOAT32;
    mg_kernel kernel = elementwise_kernel(op, dtype);
    if (!kernel && dtype == MG_BOOL && op == OP_pow) kernel = elementwise_kernel(op, dtype = MG_INT64);
    if (!kernel) return mg_fail(MG_EDTYPE, dtype, 0);
    if (op == OP_pow && dtype == MG_INT64 && elementwise_any_negative(b)) return mg_fail(MG_EARG, 0, 0);
    if (op == OP_pow && mg_is_float(dtype) && a->dtype == dtype && pow_shortcut(b) >= 0)
        return mg_unary(pow_shortcut(b), a);

    int ndim;
    int64_t shape[MG_MAX_NDIM];
    if (mg_broadcast_shape(2, (mg_array *[]){a, b}, &ndim, shape)) return NULL;
    mg_array *operands[2] = {elementwise_as(a, dtype), elementwise_as(b, dtype)};
    mg_array *out = NULL;
    if (operands[0] && operands[1])
        out = mg_new(float_rows[op].compares ? MG_BOOL : dtype, ndim, shape);
    if (out) {
        out->weak = weak && !float_rows[op].compares;
        for (int i = 0; i < 2; i++) {
            const mg_array *x = i ? b : a;
            if (!x->weak && (x->dtype != dtype || !elementwise_same_shape(x, out))) out->adapted = 1;
        }
        mg_nditer_run(out, 2, operands, kernel);
    }
    mg_release(operands[0]);
    mg_release(operands[1]);
    return out;
}

/* Runs a VJP kernel on g and the saved arrays; a place that was not saved is never read and shows g. */
static mg_array *elementwise_vjp(mg_kernel kernel, mg_array *g, mg_saved *saved, int count) {
    mg_array *operands[4] = {mg_retain(g)};
    int made = 1;
    for (int i = 0; i < count; i++, made++) {
        mg_array *kept = saved->arrays[i];
        if (kept && kept->buffer->written > saved->time) {
            mg_fail(MG_ESTALE, i, 0);
            break;
        }
        operands[i + 1] = elementwise_as(kept ? kept : g, g->dtype);
        if (!operands[i + 1]) break;
    }
    mg_array *out = NULL;
    if (made == count + 1) out = mg_new(g->dtype, g->ndim, g->shape);
    for (int i = 1; out && i <= count; i++) { /* a wrong shape here would read out of bounds */
        if (elementwise_same_shape(g, operands[i])) continue;
        int ndim;
        int64_t shape[MG_MAX_NDIM];
        bool fits = !mg_broadcast_shape(2, (mg_array *[]){g, operands[i]}, &ndim, shape);
        for (int d = 0; fits && d < ndim; d++) fits = ndim == g->ndim && shape[d] == g->shape[d];
        if (!fits) {
            mg_release(out);
            out = mg_fail(MG_ESHAPE, g->size, operands[i]->size);
        }
    }
    if (out) mg_nditer_run(out, count + 1, operands, kernel);
    for (int i = 0; i < made; i++) mg_release(operands[i]);
    return out;
}

mg_array *mg_unary_vjp(int op, mg_array *g, mg_saved *saved) {
    if (op < 0 || op >= OP_COUNT || float_rows[op].arity != 1) return mg_fail(MG_EARG, op, 0);
    if (!mg_is_float(g->dtype)) return mg_fail(MG_EDTYPE, g->dtype, 0);
    return elementwise_vjp(float_rows[op].vjp[0][g->dtype], g, saved, 2);
}

mg_array *mg_binary_vjp(int op, int i, mg_array *g, mg_saved *saved) {
    if (op < 0 || op >= OP_COUNT || float_rows[op].arity != 2 || float_rows[op].compares || i < 0 ||
        i > 1)
        return mg_fail(MG_EARG, op, i);
    if (!mg_is_float(g->dtype)) return mg_fail(MG_EDTYPE, g->dtype, 0);
    if (op == OP_pow && i == 0 && saved->arrays[1] && pow_shortcut(saved->arrays[1]) == OP_square) {
        mg_saved base = {.arrays = {saved->arrays[0]}, .time = saved->time};
        return mg_unary_vjp(OP_square, g, &base);
    }
    return elementwise_vjp(float_rows[op].vjp[i][g->dtype], g, saved, 3);
}

/* ---- where, accumulate ---- */

#define WHERE_LOOP(name, TYPE)                                                                      \
    static void where_##name(void *out, const void *const *in, int64_t n) {                         \
        const uint8_t *restrict c = in[0];                                                          \
        const TYPE *restrict a = in[1], *restrict b = in[2];                                        \
        for (int64_t i = 0; i < n; i++) ((TYPE *restrict)out)[i] = c[i] ? a[i] : b[i];              \
    }
WHERE_LOOP(b8, uint8_t)
WHERE_LOOP(i64, int64_t)
WHERE_LOOP(f32, float)
WHERE_LOOP(f64, double)

mg_array *mg_where(mg_array *condition, mg_array *a, mg_array *b) {
    static const mg_kernel kernels[4] = {where_b8, where_i64, where_f32, where_f64};
    if (condition->dtype != MG_BOOL) return mg_fail(MG_EDTYPE, condition->dtype, 0);
    int dtype = elementwise_promote(a, b), ndim;
    if (a->weak && b->weak && mg_is_float(dtype)) dtype = MG_FLOAT32;
    int64_t shape[MG_MAX_NDIM];
    if (mg_broadcast_shape(3, (mg_array *[]){condition, a, b}, &ndim, shape)) return NULL;
    mg_array *operands[3] = {condition, elementwise_as(a, dtype), elementwise_as(b, dtype)};
    mg_array *out = operands[1] && operands[2] ? mg_new(dtype, ndim, shape) : NULL;
    if (out) {
        out->adapted = 1; /* condition and numbers seldom have the result's shape and dtype */
        mg_nditer_run(out, 3, operands, kernels[dtype]);
    }
    mg_release(operands[1]);
    mg_release(operands[2]);
    return out;
}

static void accumulate_f32(void *out, const void *const *in, int64_t n) {
    float *restrict to = out;
    const float *restrict from = in[0];
    for (int64_t i = 0; i < n; i++) to[i] += from[i];
}

static void accumulate_f64(void *out, const void *const *in, int64_t n) {
    double *restrict to = out;
    const double *restrict from = in[0];
    for (int64_t i = 0; i < n; i++) to[i] += from[i];
}

int mg_accumulate(mg_array *dst, mg_array *src) {
    if (dst->dtype != src->dtype || !mg_is_float(dst->dtype))
        return mg_fail_code(MG_EDTYPE, dst->dtype, src->dtype);
    if (dst->ndim != src->ndim || memcmp(dst->shape, src->shape, sizeof(int64_t) * (size_t)dst->ndim))
        return mg_fail_code(MG_ESHAPE, dst->size, src->size);
    if (!dst->buffer->writable) return mg_fail_code(MG_EREADONLY, 0, 0);
    if (!mg_is_contiguous(dst) || dst->buffer == src->buffer) return mg_fail_code(MG_EOVERLAP, 0, 0);
    mg_nditer_run(dst, 1, &src, dst->dtype == MG_FLOAT32 ? accumulate_f32 : accumulate_f64);
    mg_buffer_touch(dst->buffer);
    return MG_OK;
}
