/* integers.c: reductions of integers and truth values.
 *
 * The order of joins does not change the result, so these are plain loops over contiguous memory.
 * Truth values are counted, and the count decides all reductions of them.
 */
#include "reduce.h"

MG_INLINE int64_t plain_load(int dtype, const void *x, int64_t i) {
    return dtype == MG_BOOL ? ((const uint8_t *)x)[i] != 0 : ((const int64_t *)x)[i];
}

MG_INLINE int64_t plain_join(int op, int64_t a, int64_t b) {
    switch (op) {
    case MG_PROD: return (int64_t)((uint64_t)a * (uint64_t)b); /* wraps around, as in NumPy */
    case MG_MAX: return a > b ? a : b;
    case MG_MIN: return a < b ? a : b;
    default: return (int64_t)((uint64_t)a + (uint64_t)b);
    }
}

/* acc[k] = the join of n elements that are `step` apart, the first at x[first + k], and the
 * identity. If `step` is 1, acc[k] = the join of row k of n elements. `op` and `dtype` are
 * constants. */
MG_INLINE void plain_join_all(int op, int dtype, int64_t *restrict acc, int64_t identity,
                              const void *restrict x, int64_t first, int64_t step, int64_t n,
                              int64_t width) {
    if (step == 1) {
        for (int64_t k = 0; k < width; k++, first += n) {
            int64_t a = identity;
            for (int64_t i = 0; i < n; i++) a = plain_join(op, a, plain_load(dtype, x, first + i));
            acc[k] = a;
        }
        return;
    }
    for (int64_t k = 0; k < width; k++) acc[k] = n & 1 ? plain_load(dtype, x, first + k) : identity;
    for (int64_t i = n & 1; i < n; i += 2) { /* two rows at a time: fewer loads and stores of acc */
        int64_t at = first + i * step;
        MG_APART
        for (int64_t k = 0; k < width; k++) {
            int64_t a = plain_join(op, acc[k], plain_load(dtype, x, at + k));
            acc[k] = plain_join(op, a, plain_load(dtype, x, at + step + k));
        }
    }
}

/* The same for a variable op, as a call. Inlined, the compiler would copy all the code around it
 * for each op. */
static MG_NOINLINE void plain_strip(int op, bool truth, int64_t *acc, const void *x, int64_t first,
                                    int64_t step, int64_t n, int64_t width) {
    if (truth) plain_join_all(MG_SUM, MG_BOOL, acc, 0, x, first, step, n, width);
    else if (op == MG_MAX)
        plain_join_all(MG_MAX, MG_INT64, acc, INT64_MIN, x, first, step, n, width);
    else if (op == MG_MIN)
        plain_join_all(MG_MIN, MG_INT64, acc, INT64_MAX, x, first, step, n, width);
    else if (op == MG_PROD) plain_join_all(MG_PROD, MG_INT64, acc, 1, x, first, step, n, width);
    else plain_join_all(MG_SUM, MG_INT64, acc, 0, x, first, step, n, width);
}

/* The result of a reduction of n truth values of which `count` are true. */
static int64_t plain_of_count(int op, int64_t count, int64_t n) {
    switch (op) {
    case MG_MAX: return count > 0;
    case MG_MIN:
    case MG_PROD: return count == n;
    default: return count;
    }
}

/* y[o][j] = the join of x[o][i][j] over i */
static void plain_loops(int op, mg_array *y, const mg_array *x, int64_t outer, int64_t n,
                        int64_t inner) {
    int64_t acc[PLAIN_STRIP];
    bool truth = x->dtype == MG_BOOL;
    int64_t rows = inner == 1 ? PLAIN_STRIP : 1; /* rows side by side */
    for (int64_t o = 0; o < outer; o += rows)
        for (int64_t j = 0; j < inner; j += PLAIN_STRIP) {
            int64_t width = mg_min(PLAIN_STRIP, inner == 1 ? outer - o : inner - j);
            int64_t at = o * n * inner + j;
            plain_strip(op, truth, acc, x->data, at, inner, n, width);
            for (int64_t k = 0; k < width; k++) {
                int64_t made = truth ? plain_of_count(op, acc[k], n) : acc[k];
                if (y->dtype == MG_BOOL) ((uint8_t *)y->data)[o * inner + j + k] = made != 0;
                else ((int64_t *)y->data)[o * inner + j + k] = made;
            }
        }
}

void mg_reduce_plain(int op, mg_array *y, const mg_array *x, uint32_t group) {
    int64_t n = 1, inner = 1;
    bool after = true; /* still on the axes after the group */
    for (int d = x->ndim - 1; d >= 0; d--) {
        if (group >> d & 1) {
            n *= x->shape[d];
            after = false;
        } else if (after) inner *= x->shape[d];
    }
    if (y->size == 0) return;
    int64_t outer = y->size / inner;
    if (op == MG_ALL) op = MG_MIN; /* of truth values */
    if (op == MG_ANY) op = MG_MAX;
    plain_loops(op, y, x, outer, n, inner);
}
