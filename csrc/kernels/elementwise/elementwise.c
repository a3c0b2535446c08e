/* elementwise.c: the table of elementwise operations and the functions that run them. */
#include "kernels/iterate/nditer.h"
#include "kernels/reduce/reduce.h"
#include "threads/pool.h"
#include "vmath/vmath.h"
#include "vmath/erfcx.h"
#include "simd/reciprocal.h"

#include <string.h>

#define MG_REAL 32
#define ELEMENTWISE_WIDTH 32
#include "elementwise.inc.c"
#undef ELEMENTWISE_WIDTH
#define MG_REAL 64
#define ELEMENTWISE_WIDTH 64
#include "elementwise.inc.c"

#include "non_temporal.inc.c"
#include "integers.inc.c"

/* ---- the table ---- */

enum elementwise_id {
#define UNARY(name, forward, by_x) OP_##name,
#define UNARY_CHUNK(name, forward, by_x) OP_##name,
#define UNARY_PAIR(name, forward, sign, by_x) OP_##name,
#define UNARY_RESULT(name, forward, by_x) OP_##name,
#define UNARY_OVER(name, forward, d) OP_##name,
#define UNARY_OVER_ROOT(name, forward, sign, d) OP_##name,
#define UNARY_ROOT_ABOVE(name, forward) OP_##name,
#define UNARY_FORWARD(name, forward) OP_##name,
#define UNARY_FORWARD_CHUNK(name, forward) OP_##name,
#define BINARY(name, forward, by_a, by_b) OP_##name,
#define BINARY_CHUNK(name, forward, by_a, by_b) OP_##name,
#define BINARY_PAIR(name, forward, by_a, by_b) OP_##name,
#define BINARY_RESULT(name, forward, by_a, by_b) OP_##name,
#define BINARY_FORWARD(name, forward) OP_##name,
#define BINARY_FORWARD_CHUNK(name, forward) OP_##name,
#define TEST(name, expression) OP_##name,
#define COMPARE(name, expression) OP_##name,
#define BITS_UNARY(name) OP_##name,
#define BITS_BINARY(name) OP_##name,
#include "elementwise.def"
    OP_COUNT
};

typedef struct elementwise_row {
    const char *name;
    int arity;
    bool tells;          /* the result is a bool whatever the operands are */
    mg_kernel kernel[2]; /* for floats and doubles; NULL if there is none */
    mg_kernel vjp[2][2]; /* by input; NULL if there is only a formula, or no derivative */
} elementwise_row;

static const elementwise_row float_rows[OP_COUNT] = {
#define ROW(op, inputs, ...) [OP_##op] = {.name = #op, .arity = inputs, __VA_ARGS__},
#define FLOATS(op, part) {op##_##part##_f32, op##_##part##_f64}
#define UNARY(op, forward, by_x) ROW(op, 1, .kernel = FLOATS(op, kernel), .vjp = {FLOATS(op, vjp)})
#define UNARY_CHUNK(op, forward, by_x) UNARY(op, forward, by_x)
#define UNARY_PAIR(op, forward, sign, by_x) UNARY(op, forward, by_x)
#define UNARY_RESULT(op, forward, by_x) UNARY(op, forward, by_x)
#define UNARY_OVER(op, forward, d) UNARY(op, forward, d)
#define UNARY_OVER_ROOT(op, forward, sign, d) UNARY(op, forward, d)
#define UNARY_ROOT_ABOVE(op, forward) UNARY(op, forward, )
#define UNARY_FORWARD(op, forward) ROW(op, 1, .kernel = FLOATS(op, kernel))
#define UNARY_FORWARD_CHUNK(op, forward) UNARY_FORWARD(op, forward)
#define BINARY(op, forward, by_a, by_b)                                                            \
    ROW(op, 2, .kernel = FLOATS(op, kernel), .vjp = {FLOATS(op, vjp_a), FLOATS(op, vjp_b)})
#define BINARY_CHUNK(op, forward, by_a, by_b) BINARY(op, forward, by_a, by_b)
#define BINARY_PAIR(op, forward, by_a, by_b) BINARY(op, forward, by_a, by_b)
#define BINARY_RESULT(op, forward, by_a, by_b) BINARY(op, forward, by_a, by_b)
#define BINARY_FORWARD(op, forward) ROW(op, 2, .kernel = FLOATS(op, kernel))
#define BINARY_FORWARD_CHUNK(op, forward) BINARY_FORWARD(op, forward)
#define TEST(op, expression) ROW(op, 1, .tells = true, .kernel = FLOATS(op, kernel))
#define COMPARE(op, expression) ROW(op, 2, .tells = true, .kernel = FLOATS(op, kernel))
#define BITS_UNARY(op) ROW(op, 1, .tells = false)
#define BITS_BINARY(op) ROW(op, 2, .tells = false)
#include "elementwise.def"
#undef ROW
};

static const mg_kernel int_kernels[OP_COUNT] = {
#define TEST(op, expression) [OP_##op] = op##_kernel_i64,
#define COMPARE(op, expression) [OP_##op] = op##_kernel_i64,
#define INT_UNARY(op, expression) [OP_##op] = op##_kernel_i64,
#define INT_BINARY(op, expression) [OP_##op] = op##_kernel_i64,
#include "elementwise.def"
};

static const mg_kernel bool_kernels[OP_COUNT] = {
#define TEST(op, expression) [OP_##op] = op##_kernel_b8,
#define COMPARE(op, expression) [OP_##op] = op##_kernel_b8,
#define BOOL_UNARY(op, expression) [OP_##op] = op##_kernel_b8,
#define BOOL_BINARY(op, expression) [OP_##op] = op##_kernel_b8,
#include "elementwise.def"
};

static mg_kernel elementwise_kernel(int op, int dtype) {
    return dtype == MG_INT64 ? int_kernels[op]
           : dtype == MG_BOOL ? bool_kernels[op]
                              : float_rows[op].kernel[dtype - MG_FLOAT32];
}

/* The dtype in which an operation on `dtype` is computed. Bools without a kernel of their own
 * become integers, and integers become floats. Negation and difference of bools are refused, as
 * they are ambiguous (`not`, or 0 - x). */
MG_INLINE int elementwise_dtype(int op, int dtype, bool weak) {
    if (op == OP_scale || (dtype == MG_BOOL && (op == OP_neg || op == OP_sub))) return dtype;
    if (dtype == MG_BOOL && !bool_kernels[op]) dtype = MG_INT64;
    if (dtype == MG_INT64 && !int_kernels[op]) dtype = weak ? MG_FLOAT64 : MG_FLOAT32;
    return dtype;
}

int mg_op_count(void) { return OP_COUNT; }
const char *mg_op_name(int op) { return op < 0 || op >= OP_COUNT ? NULL : float_rows[op].name; }
int mg_op_arity(int op) { return op < 0 || op >= OP_COUNT ? 0 : float_rows[op].arity; }
int mg_op_has_vjp(int op) {
    return op >= 0 && op < OP_COUNT && float_rows[op].vjp[0][0] != NULL;
}

/* ---- promotion ---- */

/* The dtype that operands are promoted to. A Python scalar only raises the kind (bool, integer,
 * float). A Python float with an integer array gives float32. Python scalars alone keep full
 * precision. */
int mg_promote(int count, mg_array *const *arrays) {
    int highest = MG_BOOL, strong = -1;
    for (int i = 0; i < count; i++) {
        int dtype = arrays[i]->dtype;
        if (dtype > highest) highest = dtype;
        if (!arrays[i]->weak && dtype > strong) strong = dtype;
    }
    if (strong < 0 || !mg_is_float(highest)) return highest;
    return mg_is_float(strong) ? strong : MG_FLOAT32;
}

/* A Python scalar as a float of that dtype, rounded once. */
static mg_array *elementwise_number(const mg_array *a, int dtype) {
    mg_array *out = mg_new(dtype, 0, NULL);
    if (!out) return NULL;
    bool whole = a->dtype != MG_FLOAT64;
    if (dtype == MG_FLOAT64) *(double *)out->data = whole ? (double)mg_item_int(a) : mg_item_float(a);
    else *(float *)out->data = whole ? (float)mg_item_int(a) : (float)mg_item_float(a);
    return out;
}

/* `a` in that dtype: retained, or a cast copy. */
mg_array *mg_as(mg_array *a, int dtype) {
    if (a->dtype == dtype) return mg_retain(a);
    bool number = a->weak && !a->ndim && a->dtype != MG_FLOAT32 && mg_is_float(dtype);
    return number ? elementwise_number(a, dtype) : mg_cast(a, dtype);
}

/* The same for a call during which `a` stays alive. If it has the dtype it is returned without
 * counting a reference, which would be an atomic step. Release it by elementwise_drop. */
MG_INLINE mg_array *elementwise_operand(mg_array *a, int dtype) {
    return a->dtype == dtype ? a : mg_as(a, dtype);
}
MG_INLINE void elementwise_drop(mg_array *operand, const mg_array *a) {
    if (operand != a) mg_release(operand);
}

/* ---- calls ---- */

mg_array *mg_unary(int op, mg_array *x) {
    if (op < 0 || op >= OP_COUNT || float_rows[op].arity != 1) return mg_fail(MG_EARG, op, 0);
    int dtype = elementwise_dtype(op, x->dtype, x->weak);
    mg_kernel kernel = elementwise_kernel(op, dtype);
    if (!kernel) return mg_fail(MG_EDTYPE, x->dtype, 0);
    mg_array *from = elementwise_operand(x, dtype);
    if (!from) return NULL;
    mg_array *out = mg_new(float_rows[op].tells ? MG_BOOL : dtype, x->ndim, x->shape);
    if (out) {
        out->weak = x->weak && !float_rows[op].tells;
        out->adapted = dtype != x->dtype;
        mg_kernel non_temporal = non_temporal_of(kernel, out->size);
        mg_nditer_run_streaming(out, 1, &from, kernel, non_temporal);
    }
    elementwise_drop(from, x);
    return out;
}

/* Checks for integer results that do not exist: negative powers and divisions by zero. 0 or an
 * error code. */
static int elementwise_check_integers(int op, mg_array *b) {
    bool power = op == OP_pow;
    bool divides = op == OP_floor_divide || op == OP_remainder || op == OP_fmod;
    if ((!power && !divides) || b->size == 0) return MG_OK;
    mg_array *worst = mg_reduce(power ? MG_MIN : MG_ALL, b, -1, NULL, 0);
    if (!worst) return mg_error();
    int64_t found = mg_item_int(worst);
    mg_release(worst);
    if (power) return found < 0 ? mg_fail_code(MG_EARG, 0, 0) : MG_OK;
    return found == 0 ? mg_fail_code(MG_EZERO, 0, 0) : MG_OK;
}

/* The value of a Python scalar, else NaN. */
MG_INLINE double pow_number(const mg_array *exponent) {
    return exponent->weak && !exponent->ndim ? mg_item_float(exponent) : __builtin_nan("");
}

/* Powers by a Python scalar that have a cheaper exact form. */
static int pow_shortcut(const mg_array *exponent) {
    double n = pow_number(exponent);
    return n == 2 ? OP_square : n == -1 ? OP_reciprocal : -1;
}

/* Powers by a Python scalar that have kernels of their own: for the power, and for the gradient of
 * the base if no power was saved. */
typedef struct {
    double exponent;
    mg_kernel kernel[2], vjp[2];
} pow_kernels;
static const pow_kernels pow_by_numbers[] = {
#if MG_HAS_FMA
    {3, FLOATS(cube, kernel), FLOATS(cube, vjp_alone)},
    {0.5, FLOATS(half_power, kernel), FLOATS(half_power, vjp_alone)},
    {-0.5, FLOATS(less_half_power, kernel), FLOATS(less_half_power, vjp_alone)},
#endif
    {0, {0}, FLOATS(pow, vjp_alone)}, /* all others */
};
#undef FLOATS
static const pow_kernels *pow_by_number(const mg_array *exponent) {
    const pow_kernels *found = pow_by_numbers;
    for (double n = pow_number(exponent); found->kernel[0] && found->exponent != n;) found++;
    return found;
}

mg_array *mg_binary(int op, mg_array *a, mg_array *b) {
    if (op < 0 || op >= OP_COUNT || float_rows[op].arity != 2) return mg_fail(MG_EARG, op, 0);
    if (a->dtype == b->dtype && mg_is_float(a->dtype) && !a->weak && !b->weak &&
        mg_same_shape(a, b)) { /* nothing to promote or broadcast */
        mg_kernel kernel = float_rows[op].kernel[a->dtype - MG_FLOAT32];
        if (!kernel) return mg_fail(MG_EDTYPE, a->dtype, 0);
        mg_array *out = mg_new(float_rows[op].tells ? MG_BOOL : a->dtype, a->ndim, a->shape);
        if (out) mg_nditer_run(out, 2, (mg_array *[]){a, b}, kernel);
        return out;
    }
    bool weak = a->weak && b->weak;
    int dtype = elementwise_dtype(op, mg_promote(2, (mg_array *[]){a, b}), weak);
    mg_kernel kernel = elementwise_kernel(op, dtype);
    if (!kernel) return mg_fail(MG_EDTYPE, dtype, 0);
    if (dtype == MG_INT64 && elementwise_check_integers(op, b)) return NULL;
    if (op == OP_pow && mg_is_float(dtype)) {
        if (a->dtype == dtype && pow_shortcut(b) >= 0) return mg_unary(pow_shortcut(b), a);
        mg_kernel own = pow_by_number(b)->kernel[dtype - MG_FLOAT32];
        if (own) kernel = own;
    }

    int ndim;
    int64_t shape[MG_MAX_NDIM];
    if (mg_broadcast_shape(2, (mg_array *[]){a, b}, &ndim, shape)) return NULL;
    mg_array *operands[2] = {elementwise_operand(a, dtype), elementwise_operand(b, dtype)};
    mg_array *out = NULL;
    if (operands[0] && operands[1])
        out = mg_new(float_rows[op].tells ? MG_BOOL : dtype, ndim, shape);
    if (out) {
        out->weak = weak && !float_rows[op].tells;
        for (int i = 0; i < 2; i++) {
            const mg_array *x = i ? b : a;
            if (!x->weak && (x->dtype != dtype || !mg_same_shape(x, out))) out->adapted = 1;
        }
        mg_nditer_run(out, 2, operands, kernel);
    }
    elementwise_drop(operands[0], a);
    elementwise_drop(operands[1], b);
    return out;
}

/* Runs `results` VJP kernels on g and the saved arrays, in one pass over memory. An array that was
 * not saved is never read, and g stands in its place. With `over`, or if g is spare, the first result
 * is written over g, and is g itself. 0 or an error code. */
static int elementwise_vjp(mg_array **out, int results, const mg_kernel *kernels, mg_array *g,
                           bool over, mg_saved *saved, int count) {
    mg_array *operands[4] = {g};
    int made = 1, done = 0;
    for (int i = 0; i < count; i++, made++) {
        mg_array *kept = saved->arrays[i];
        if (kept && kept->buffer->written > saved->time) {
            mg_fail(MG_ESTALE, i, 0);
            break;
        }
        operands[i + 1] = kept ? elementwise_operand(kept, g->dtype) : g;
        if (!operands[i + 1]) break;
    }
    bool fits = made == count + 1, spare = !over && g->spare;
    for (int i = 0; i < count; i++) spare &= saved->arrays[i] != g;
    for (int i = 1; fits && i <= count; i++) { /* a wrong shape here would read out of bounds */
        if (mg_same_shape(g, operands[i])) continue;
        int ndim;
        int64_t shape[MG_MAX_NDIM];
        fits = !mg_broadcast_shape(2, (mg_array *[]){g, operands[i]}, &ndim, shape);
        for (int d = 0; fits && d < ndim; d++) fits = ndim == g->ndim && shape[d] == g->shape[d];
        if (!fits) mg_fail(MG_ESHAPE, g->size, operands[i]->size);
    }
    for (; fits && done < results; done++) {
        if (done == 0 && (over || spare)) out[0] = spare ? mg_retain(g) : g;
        else out[done] = mg_new(g->dtype, g->ndim, g->shape);
        if (!out[done]) break;
    }
    bool whole = done == results;
    mg_kernel non_temporal = results == 1 ? non_temporal_of(kernels[0], g->size) : NULL;
    if (whole) mg_nditer_run_back(results, out, count + 1, operands, kernels, non_temporal);
    for (int r = over; !whole && r < done; r++) mg_release(out[r]);
    for (int i = 1; i < made; i++)
        elementwise_drop(operands[i], saved->arrays[i - 1] ? saved->arrays[i - 1] : g);
    return whole ? MG_OK : mg_error();
}

static mg_array *elementwise_unary_vjp(int op, mg_array *g, bool over, mg_saved *saved) {
    mg_array *out, *x = saved->arrays[0], *y = saved->arrays[1], *again = NULL;
    mg_saved kept = {.arrays = {x, y}, .time = saved->time};
    if (!mg_op_has_vjp(op) || float_rows[op].arity != 1) return mg_fail(MG_EARG, op, 0);
    if (!mg_is_float(g->dtype)) return mg_fail(MG_EDTYPE, g->dtype, 0);
    if (x && y && y->buffer->written > saved->time) { /* an overwritten result can be recomputed */
        kept.arrays[1] = again = mg_unary(op, x);
        if (!again) return NULL;
        again->buffer->written = saved->time; /* counts as the saved array */
    }
    const mg_kernel *vjp = &float_rows[op].vjp[0][g->dtype - MG_FLOAT32];
    int failed = elementwise_vjp(&out, 1, vjp, g, over, &kept, 2);
    mg_release(again);
    return failed ? NULL : out;
}

static mg_arrays *elementwise_binary_vjp(int op, int wanted, mg_array *g, bool over,
                                         mg_saved *saved) {
    mg_array *made[2] = {NULL}, *again = NULL;
    mg_array *a = saved->arrays[0], *b = saved->arrays[1], *y = saved->arrays[2];
    mg_saved kept = {.arrays = {a, b, y}, .time = saved->time};
    mg_kernel kernels[2];
    int count = 0;
    if (!mg_op_has_vjp(op) || float_rows[op].arity != 2) return mg_fail(MG_EARG, op, 0);
    if (!mg_is_float(g->dtype)) return mg_fail(MG_EDTYPE, g->dtype, 0);
    for (int i = 0; i < 2; i++)
        if (wanted >> i & 1) kernels[count++] = float_rows[op].vjp[i][g->dtype - MG_FLOAT32];
    if (op == OP_pow && wanted == 1 && b && !y)
        kernels[0] = pow_by_number(b)->vjp[g->dtype - MG_FLOAT32];
    if (op == OP_pow && wanted == 1 && b && pow_shortcut(b) == OP_square) {
        mg_saved base = {.arrays = {a}, .time = saved->time};
        made[0] = elementwise_unary_vjp(OP_square, g, over, &base);
        if (!made[0]) return NULL;
    } else if (count) {
        /* recomputed, as in elementwise_unary_vjp */
        if (a && b && y && y->buffer->written > saved->time) {
            kept.arrays[2] = again = mg_binary(op, a, b);
            if (!again) return NULL;
            again->buffer->written = saved->time;
        }
        mg_array **first = wanted == 2 ? made + 1 : made;
        int failed = elementwise_vjp(first, count, kernels, g, over, &kept, 3);
        mg_release(again);
        if (failed) return NULL;
    }
    return mg_arrays_of(2, made);
}

mg_array *mg_unary_vjp(int op, mg_array *g, mg_saved *saved) {
    return elementwise_unary_vjp(op, g, false, saved);
}
mg_array *mg_unary_vjp_over(int op, mg_array *g, mg_saved *saved) {
    return elementwise_unary_vjp(op, g, true, saved);
}
mg_arrays *mg_binary_vjp(int op, int wanted, mg_array *g, mg_saved *saved) {
    return elementwise_binary_vjp(op, wanted, g, false, saved);
}
mg_arrays *mg_binary_vjp_over(int op, int wanted, mg_array *g, mg_saved *saved) {
    return elementwise_binary_vjp(op, wanted, g, true, saved);
}

/* ---- clamp, fused, where, accumulate ---- */

static void clamp_i64(void *out, const void *const *in, int64_t n) {
    const int64_t *restrict x = in[0], *restrict low = in[1], *restrict high = in[2];
    nditer_full_vectors(n, sizeof *x);
    MG_APART
    for (int64_t i = 0; i < n; i++) {
        int64_t raised = x[i] > low[i] ? x[i] : low[i];
        ((int64_t *restrict)out)[i] = raised < high[i] ? raised : high[i];
    }
}

mg_array *mg_clamp(mg_array *x, mg_array *low, mg_array *high) {
    static const mg_kernel kernels[4] = {NULL, clamp_i64, clamp_f32, clamp_f64};
    mg_array *given[3] = {x, low, high}, *operands[3] = {NULL};
    int dtype = mg_promote(3, given), ndim;
    if (!kernels[dtype]) return mg_fail(MG_EDTYPE, dtype, 0);
    int64_t shape[MG_MAX_NDIM];
    if (mg_broadcast_shape(3, given, &ndim, shape)) return NULL;
    for (int i = 0; i < 3; i++) operands[i] = mg_as(given[i], dtype);
    mg_array *out =
        operands[0] && operands[1] && operands[2] ? mg_new(dtype, ndim, shape) : NULL;
    if (out) {
        out->adapted = 1; /* the bounds seldom have the result's shape and dtype */
        mg_nditer_run(out, 3, operands, kernels[dtype]);
    }
    for (int i = 0; i < 3; i++) mg_release(operands[i]);
    return out;
}

/* Fused operations on arrays of one dtype and shape, and numbers. */
mg_array *mg_fused(int kind, int count, mg_array **given, int numbers, const double *values) {
    static const mg_kernel kernels[][2] = {
#define MIXED(kind, name) [kind] = {name##_f32, name##_f64}
        MIXED(MG_SHRINK, shrink),        MIXED(MG_SHRINK_VJP, shrink_vjp),
        MIXED(MG_HARDTANH, clamp),          MIXED(MG_HARDTANH_VJP, hardtanh_vjp),
        MIXED(MG_CLAMP, clamp),          MIXED(MG_CLAMP_VJP, clamp_vjp),
        MIXED(MG_ELU, elu),            MIXED(MG_ELU_VJP, elu_vjp),
        MIXED(MG_HUBER, huber),         MIXED(MG_HUBER_VJP, huber_vjp),
        MIXED(MG_BCE, entropy),     MIXED(MG_BCE_VJP, entropy_vjp),
        MIXED(MG_BCE_LOGITS, entropy_of_scores), MIXED(MG_BCE_LOGITS_VJP, entropy_of_scores_vjp),
#undef MIXED
    };
    mg_array by[NDITER_MAX_OPERANDS], *operands[NDITER_MAX_OPERANDS];
    float narrow[NDITER_MAX_OPERANDS];
    static const int takes[] = {
        [MG_SHRINK] = 5, [MG_SHRINK_VJP] = 4, [MG_HARDTANH] = 3, [MG_HARDTANH_VJP] = 4, [MG_CLAMP] = 3,
        [MG_CLAMP_VJP] = 4, [MG_ELU] = 4, [MG_ELU_VJP] = 5, [MG_HUBER] = 5, [MG_HUBER_VJP] = 5,
        [MG_BCE] = 2, [MG_BCE_VJP] = 3, [MG_BCE_LOGITS] = 3, [MG_BCE_LOGITS_VJP] = 4,
    };
    if (kind < 0 || kind > MG_BCE_LOGITS_VJP || count < 1 || count > takes[kind] ||
        numbers != takes[kind] - count)
        return mg_fail(MG_EARG, kind, count);
    const mg_array *x = given[0];
    if (!mg_is_float(x->dtype)) return mg_fail(MG_EDTYPE, x->dtype, 0);
    for (int i = 0; i < count; i++) {
        if (given[i]->dtype != x->dtype) return mg_fail(MG_EDTYPE, x->dtype, given[i]->dtype);
        if (!mg_same_shape(given[i], x)) return mg_fail(MG_ESHAPE, x->size, given[i]->size);
        operands[i] = given[i];
    }
    for (int i = 0; i < numbers; i++) {
        narrow[i] = (float)values[i];
        by[i] = (mg_array){.size = 1, .dtype = x->dtype, .refs = 1};
        by[i].data = x->dtype == MG_FLOAT32 ? (char *)&narrow[i] : (char *)&values[i];
        operands[count + i] = &by[i];
    }
    mg_array *out = mg_new(x->dtype, x->ndim, x->shape);
    if (out) mg_nditer_run(out, count + numbers, operands, kernels[kind][x->dtype - MG_FLOAT32]);
    return out;
}

#define WHERE_LOOP(name, TYPE)                                                                     \
    static void where_##name(void *out, const void *const *in, int64_t n) {                        \
        const uint8_t *restrict c = in[0];                                                         \
        const TYPE *restrict a = in[1], *restrict b = in[2];                                       \
        nditer_full_vectors(n, sizeof *c);                                                         \
        MG_APART for (int64_t i = 0; i < n; i++) ((TYPE *)out)[i] = c[i] ? a[i] : b[i];            \
    }
WHERE_LOOP(1, uint8_t)
WHERE_LOOP(2, uint16_t)
WHERE_LOOP(4, uint32_t)
WHERE_LOOP(8, uint64_t)

mg_array *mg_where(mg_array *condition, mg_array *a, mg_array *b) {
    if (condition->dtype != MG_BOOL) return mg_fail(MG_EDTYPE, condition->dtype, 0);
    bool storage = mg_is_storage(a->dtype) || mg_is_storage(b->dtype);
    if (storage && a->dtype != b->dtype) return mg_fail(MG_EDTYPE, a->dtype, b->dtype);
    int dtype = storage ? a->dtype : mg_promote(2, (mg_array *[]){a, b}), ndim;
    if (a->weak && b->weak && mg_is_float(dtype)) dtype = MG_FLOAT32;
    int64_t shape[MG_MAX_NDIM], size = mg_itemsize(dtype);
    if (mg_broadcast_shape(3, (mg_array *[]){condition, a, b}, &ndim, shape)) return NULL;
    mg_array *operands[3] = {condition, mg_as(a, dtype), mg_as(b, dtype)};
    mg_array *out = operands[1] && operands[2] ? mg_new(dtype, ndim, shape) : NULL;
    if (out) {
        out->adapted = 1; /* condition and numbers seldom have the result's shape and dtype */
        mg_nditer_run(out, 3, operands,
                      size == 1 ? where_1 : size == 2 ? where_2 : size == 4 ? where_4 : where_8);
    }
    mg_release(operands[1]);
    mg_release(operands[2]);
    return out;
}

/* to[i] = a[i] + b[i], where `to` is a */
#define ACCUMULATE_LOOP(name, TYPE)                                                                \
    static void accumulate_##name(void *out, const void *const *in, int64_t n) {                   \
        TYPE *to = out;                                                                            \
        const TYPE *a = in[0], *restrict b = in[1];                                                \
        nditer_full_vectors(n, sizeof(TYPE));                                                      \
        MG_APART for (int64_t i = 0; i < n; i++) to[i] = a[i] + b[i];                              \
    }
ACCUMULATE_LOOP(f32, float)
ACCUMULATE_LOOP(f64, double)

int mg_accumulate(mg_array *dst, mg_array *src) {
    if (dst->dtype != src->dtype || !mg_is_float(dst->dtype))
        return mg_fail_code(MG_EDTYPE, dst->dtype, src->dtype);
    if (!mg_same_shape(dst, src)) return mg_fail_code(MG_ESHAPE, dst->size, src->size);
    if (!dst->buffer->writable) return mg_fail_code(MG_EREADONLY, 0, 0);
    if (!mg_is_contiguous(dst) || dst->buffer == src->buffer) return mg_fail_code(MG_EOVERLAP, 0, 0);
    mg_nditer_run(dst, 2, (mg_array *[]){dst, src},
                  dst->dtype == MG_FLOAT32 ? accumulate_f32 : accumulate_f64);
    mg_buffer_touch(dst->buffer);
    return MG_OK;
}

/* ---- chains ---- */

#include "chain.inc.c"

/* ---- means ---- */

/* The gradient of a mean at every element that was reduced, as a view. */
mg_array *mg_repeat_mean(mg_array *a, int ndim, const int64_t *shape, int naxes,
                         const int32_t *axes) {
    double elements = 1;
    for (int i = 0; i < naxes; i++)
        if (axes[i] >= 0 && axes[i] < ndim) elements *= (double)shape[axes[i]];
    mg_array *share = mg_python_float(1 / (elements ? elements : 1));
    mg_array *scaled = share ? mg_binary(OP_mul, a, share) : NULL;
    mg_array *made = scaled ? mg_view_repeat(scaled, ndim, shape, naxes, axes) : NULL;
    mg_release(share);
    mg_release(scaled);
    return made;
}
