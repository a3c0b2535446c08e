/* matmul.c: matrix products of arrays, by the rules of NumPy's matmul. */
#include "kernels/iterate/contiguous.h"
#include "memory/array.h"
#include "threads/pool.h"
#include "gemm.h"
#include "kernels/iterate/nditer.h"

#include <string.h>

/* A product of stacks of matrices. Batch axes go from the outermost to the innermost. The results
 * are contiguous. */
typedef struct {
    mg_gemm_shape gemm;
    int axes;
    int64_t items; /* product of size */
    int64_t size[MG_MAX_NDIM], a_step[MG_MAX_NDIM], b_step[MG_MAX_NDIM];
    bool one_b[MG_MAX_NDIM]; /* by its shape B is broadcast along the axis */
    int dtype;
    char *c;
    const char *a, *b, *bias; /* bias: a row added to every row of every product, or NULL */
    int64_t items_per_block;
} matmul_plan;

/* One product of int64 or bool matrices. Sums wrap around; for bool it is "or" of "and". */
static void matmul_int64(int64_t *c, const int64_t *a, const int64_t *b, const mg_gemm_shape *s) {
    for (int64_t i = 0; i < s->m; i++) {
        uint64_t *row = (uint64_t *)c + i * s->c_row;
        for (int64_t j = 0; j < s->n; j++) row[j] = 0;
        for (int64_t p = 0; p < s->k; p++) {
            uint64_t x = (uint64_t)a[i * s->a_row + p * s->a_col];
            const int64_t *from = b + p * s->b_row;
            for (int64_t j = 0; j < s->n; j++) row[j] += x * (uint64_t)from[j * s->b_col];
        }
    }
}

static void matmul_bool(uint8_t *c, const uint8_t *a, const uint8_t *b, const mg_gemm_shape *s) {
    for (int64_t i = 0; i < s->m; i++) {
        uint8_t *row = c + i * s->c_row;
        for (int64_t j = 0; j < s->n; j++) row[j] = 0;
        for (int64_t p = 0; p < s->k; p++) {
            uint8_t x = a[i * s->a_row + p * s->a_col];
            const uint8_t *from = b + p * s->b_row;
            for (int64_t j = 0; j < s->n; j++) row[j] |= x & from[j * s->b_col];
        }
    }
}

/* Products `first` .. `last` of the stack. */
static void matmul_items(const matmul_plan *t, int64_t first, int64_t last, void *scratch) {
    int64_t at[MG_MAX_NDIM], a = 0, b = 0, rest = first;
    for (int d = t->axes - 1; d >= 0; d--) {
        at[d] = rest % t->size[d];
        rest /= t->size[d];
        a += at[d] * t->a_step[d];
        b += at[d] * t->b_step[d];
    }
    const mg_gemm_shape *s = &t->gemm;
    for (int64_t item = first; item < last; item++) {
        int64_t c = item * s->m * s->n;
        switch (t->dtype) {
        case MG_FLOAT32:
            mg_gemm_f32((float *)t->c + c, (const float *)t->bias, 0, (const float *)t->a + a,
                        (const float *)t->b + b, s, scratch);
            break;
        case MG_FLOAT64:
            mg_gemm_f64((double *)t->c + c, (const double *)t->bias, 0, (const double *)t->a + a,
                        (const double *)t->b + b, s, scratch);
            break;
        case MG_INT64:
            matmul_int64((int64_t *)t->c + c, (const int64_t *)t->a + a, (const int64_t *)t->b + b,
                         s);
            break;
        default:
            matmul_bool((uint8_t *)t->c + c, (const uint8_t *)t->a + a, (const uint8_t *)t->b + b,
                        s);
        }
        for (int d = t->axes - 1; d >= 0; d--) {
            a += t->a_step[d];
            b += t->b_step[d];
            if (++at[d] < t->size[d]) break;
            a -= at[d] * t->a_step[d];
            b -= at[d] * t->b_step[d];
            at[d] = 0;
        }
    }
}

static void matmul_block(void *context, int64_t block) {
    const matmul_plan *t = context;
    int64_t first = block * t->items_per_block;
    matmul_items(t, first, mg_min(first + t->items_per_block, t->items), NULL);
}

/* Runs all products of the stack. An error code if there is no memory for packing. */
static int matmul_run(matmul_plan *t) {
    const mg_gemm_shape *s = &t->gemm;
    size_t scratch_bytes = t->dtype == MG_FLOAT32   ? mg_gemm_scratch_f32(s)
                           : t->dtype == MG_FLOAT64 ? mg_gemm_scratch_f64(s)
                                                    : 0;
    if (scratch_bytes) {
        /* A block this large has huge pages, in which packed operands do not collide in L2. Smaller
         * blocks collide less, and a page of 2 MB would be much of what a small model takes. */
        if (scratch_bytes > 768 << 10) scratch_bytes = mg_max(scratch_bytes, 4 << 20);
        size_t capacity;
        void *scratch = mg_block_take(scratch_bytes, &capacity);
        if (!scratch) return mg_fail_code(MG_ENOMEM, (int64_t)scratch_bytes, 0);
        matmul_items(t, 0, t->items, scratch);
        mg_block_give(scratch, capacity);
        return MG_OK;
    }
    /* Many small products are divided among the threads. Each of a few larger products uses all
     * threads. */
    double item_work = (double)s->m * (double)s->n * (double)s->k;
    if (t->items < 8 || item_work * (double)t->items < MG_GEMM_THREAD_WORK) {
        matmul_items(t, 0, t->items, NULL);
        return MG_OK;
    }
    t->items_per_block = mg_max(1, (int64_t)(MG_GEMM_THREAD_WORK / 8 / item_work));
    mg_parallel_for(mg_ceil_div(t->items, t->items_per_block), matmul_block, t);
    return MG_OK;
}

/* Adds a batch axis inside those of the plan. It is joined with the last axis if the steps
 * allow. */
static void matmul_add_axis(matmul_plan *t, int64_t size, int64_t a_step, int64_t b_step,
                            bool one_b) {
    if (size == 1) return;
    t->items *= size;
    int d = t->axes - 1;
    if (d >= 0 && t->a_step[d] == a_step * size && t->b_step[d] == b_step * size &&
        t->one_b[d] == one_b) {
        t->size[d] *= size;
    } else {
        d = t->axes++;
        t->size[d] = size;
    }
    t->a_step[d] = a_step;
    t->b_step[d] = b_step;
    t->one_b[d] = one_b;
}

/* A stack of A times one B is one product with more rows, if the rows of A are evenly spaced.
 * Vectors are summed in another order than matrices. For vectors only the shape of B counts, and
 * not its strides. */
static void matmul_fold_rows(matmul_plan *t) {
    mg_gemm_shape *s = &t->gemm;
    bool vector = s->m == 1 || s->n == 1;
    while (t->axes > 0) {
        int d = t->axes - 1;
        if (vector && !t->one_b[d]) return;
        if (t->b_step[d] != 0 || (s->m > 1 && t->a_step[d] != s->m * s->a_row)) return;
        if (s->m == 1) s->a_row = t->a_step[d];
        s->m *= t->size[d];
        t->items /= t->size[d];
        t->axes--;
    }
}

/* c = a @ b, plus a contiguous row of c's width if `bias` is not NULL, for operands of one dtype.
 * The shape and the plan are computed together. */
static mg_array *matmul_same_dtype(const mg_array *a, const mg_array *b, const mg_array *bias) {
    int a_batch = a->ndim > 2 ? a->ndim - 2 : 0, b_batch = b->ndim > 2 ? b->ndim - 2 : 0;
    int batch = a_batch > b_batch ? a_batch : b_batch;
    const int64_t *a_shape = a->shape + a_batch, *a_strides = a->strides + a_batch;
    const int64_t *b_shape = b->shape + b_batch, *b_strides = b->strides + b_batch;
    bool a_flat = a->ndim == 1, b_flat = b->ndim == 1;

    matmul_plan t = {.items = 1, .dtype = a->dtype, .a = a->data, .b = b->data};
    t.bias = bias ? bias->data : NULL;
    mg_gemm_shape *s = &t.gemm;
    s->m = a_flat ? 1 : a_shape[0];
    s->a_row = a_flat ? 0 : a_strides[0];
    s->k = a_shape[!a_flat];
    s->a_col = a_strides[!a_flat];
    s->b_row = b_strides[0];
    s->n = b_flat ? 1 : b_shape[1];
    s->b_col = b_flat ? 0 : b_strides[1];
    s->c_row = s->n;
    if (b_shape[0] != s->k) return mg_fail(MG_ESHAPE, s->k, b_shape[0]);

    int64_t shape[MG_MAX_NDIM];
    bool broadcast = false;
    for (int d = 0; d < batch; d++) {
        int da = d - (batch - a_batch), db = d - (batch - b_batch);
        int64_t na = da < 0 ? 1 : a->shape[da], nb = db < 0 ? 1 : b->shape[db];
        if (na != nb && na != 1 && nb != 1) return mg_fail(MG_ESHAPE, na, nb);
        shape[d] = na == 1 ? nb : na;
        broadcast |= da < 0 || db < 0 || na != nb;
        matmul_add_axis(&t, shape[d], na == 1 ? 0 : a->strides[da], nb == 1 ? 0 : b->strides[db],
                        nb == 1);
    }
    int ndim = batch;
    if (!a_flat) shape[ndim++] = s->m;
    if (!b_flat) shape[ndim++] = s->n;
    mg_array *c = mg_new(a->dtype, ndim, shape);
    if (!c) return NULL;
    c->adapted = broadcast;
    if (c->size == 0) return c;
    if (s->k == 0) {
        int64_t bytes = s->n * mg_itemsize(c->dtype);
        for (int64_t i = 0; i < c->size / s->n; i++)
            if (bias)
                memcpy(c->data + i * bytes, bias->data, (size_t)bytes);
            else
                memset(c->data + i * bytes, 0, (size_t)bytes);
        return c;
    }
    t.c = c->data;
    matmul_fold_rows(&t);
    if (matmul_run(&t) != MG_OK) {
        mg_release(c);
        return NULL;
    }
    return c;
}

mg_array *mg_matmul(mg_array *a, mg_array *b) {
    if (a->ndim == 0 || b->ndim == 0) return mg_fail(MG_EARG, 0, 0);
    if (a->dtype == b->dtype) return matmul_same_dtype(a, b, NULL);
    int dtype = mg_promote(2, (mg_array *[]){a, b});
    mg_array *from_a = mg_as(a, dtype), *from_b = mg_as(b, dtype);
    mg_array *c = from_a && from_b ? matmul_same_dtype(from_a, from_b, NULL) : NULL;
    mg_release(from_a);
    mg_release(from_b);
    if (c) c->adapted = 1;
    return c;
}

/* A header of x with an axis of size 1 inserted before axis `at`. */
static mg_array matmul_with_axis(const mg_array *x, int at) {
    mg_array y = mg_header(x);
    for (int d = y.ndim++; d > at; d--) {
        y.shape[d] = x->shape[d - 1];
        y.strides[d] = x->strides[d - 1];
    }
    y.shape[at] = 1;
    y.strides[at] = 0;
    return y;
}

/* Drops axis `at` of c, which has size 1. */
static void matmul_drop_axis(mg_array *c, int at) {
    c->ndim--;
    for (int d = at; d < c->ndim; d++) c->shape[d] = c->shape[d + 1];
    mg_row_major(c->ndim, c->shape, c->strides);
}

/* For c = a @ b: the gradient of a, g @ b^T, or (i = 1) of b, a^T @ g, with all batch axes of c. A
 * vector counts as a row on the left and as a column on the right, as in the product. */
static mg_array *matmul_vjp(int i, mg_array *g, mg_array *a, mg_array *b) {
    bool row = a->ndim == 1, column = b->ndim == 1;
    mg_array a_matrix = row ? matmul_with_axis(a, 0) : mg_header(a);
    mg_array b_matrix = column ? matmul_with_axis(b, 1) : mg_header(b);
    mg_array g_matrix = column ? matmul_with_axis(g, g->ndim) : mg_header(g);
    if (row) g_matrix = matmul_with_axis(&g_matrix, g_matrix.ndim - 1);
    mg_array transposed = mg_transposed(i ? &a_matrix : &b_matrix);
    mg_array *c = i ? mg_matmul(&transposed, &g_matrix) : mg_matmul(&g_matrix, &transposed);
    if (c && (i ? column : row)) matmul_drop_axis(c, c->ndim - 1 - (i == 0));
    return c;
}

int mg_linear_fits(const mg_array *x, const mg_array *w, const mg_array *bias) {
    if (!mg_is_float(w->dtype) || x->dtype != w->dtype || x->ndim < 2 || w->ndim != 2) return 0;
    if (x->shape[x->ndim - 1] != w->shape[1]) return 0;
    return !bias || (bias->dtype == w->dtype && bias->ndim == 1 && bias->shape[0] == w->shape[0]);
}

mg_array *mg_linear(mg_array *x, mg_array *w, mg_array *bias) {
    if (w->ndim != 2 || x->ndim < 1) return mg_fail(MG_ENDIM, w->ndim, 2);
    if (x->dtype != w->dtype || (bias && bias->dtype != w->dtype)) return mg_fail(MG_EDTYPE, x->dtype, w->dtype);
    if (bias && bias->size != w->shape[0]) return mg_fail(MG_ESHAPE, bias->size, w->shape[0]);
    mg_array transposed = mg_transposed(w);
    mg_array *row = bias ? mg_contiguous(bias) : NULL;
    mg_array *y = bias && !row ? NULL : matmul_same_dtype(x, &transposed, row);
    /* the derivatives sum over all rows, so there is nothing to unbroadcast */
    if (y) y->adapted = 0;
    mg_release(row);
    return y;
}

/* x as a matrix with its last axis as the columns. The caller releases it. */
static mg_array *linear_rows(mg_array *x) {
    int last = x->ndim - 1;
    int64_t shape[2] = {1, x->shape[last]};
    for (int d = 0; d < last; d++) shape[0] *= x->shape[d];
    return mg_view_or_copy(x, 2, shape);
}

/* For y = x @ w^T + bias: the gradient of x, g @ w; of w, g^T @ x; or of bias, g. The last two are
 * summed over all rows. Arrays that the gradient does not need may be NULL. */
static mg_array *linear_vjp(int i, mg_array *g, mg_array *x, mg_array *w) {
    if (i == 0) return mg_matmul(g, w);
    if (i == 2) return mg_sum_to(g, 1, &g->shape[g->ndim - 1]);
    mg_array *g_rows = linear_rows(g), *x_rows = linear_rows(x), *dw = NULL;
    if (g_rows && x_rows) {
        mg_array transposed = mg_transposed(g_rows);
        dw = mg_matmul(&transposed, x_rows);
    }
    mg_release(g_rows);
    mg_release(x_rows);
    return dw;
}

/* ---- derivatives ----------------------------------------------------------------------------- */

/* True if the gradient of operand i can be computed: its arrays are there, with enough axes. */
static bool bilinear_fits(int product, int i, const mg_array *g, const mg_array *a, const mg_array *b) {
    if (product == MG_LINEAR) return g->ndim > 0 && (i == 2 || (i ? a && a->ndim > 0 : b != NULL));
    if (!a || !b || a->ndim < 1 || b->ndim < 1) return false;
    int axes = (int)mg_max(mg_max(a->ndim, b->ndim), 2);
    return g->ndim == axes - (a->ndim == 1) - (b->ndim == 1);
}

mg_arrays *mg_bilinear_vjp(int product, int wanted, mg_array *g, mg_saved *saved) {
    mg_array *kept[2] = {NULL}, *made[3] = {NULL};
    int count = product == MG_LINEAR ? 3 : 2;
    for (int s = 0; saved && s < 2; s++) {
        kept[s] = saved->arrays[s];
        if (kept[s] && kept[s]->buffer->written > saved->time) return mg_fail(MG_ESTALE, s, 0);
    }
    for (int i = 0; i < count; i++) {
        if (!(wanted >> i & 1)) continue;
        bool fits = bilinear_fits(product, i, g, kept[0], kept[1]);
        if (!fits) mg_fail(MG_EARG, i, 0);
        else made[i] = (product == MG_LINEAR ? linear_vjp : matmul_vjp)(i, g, kept[0], kept[1]);
        if (made[i]) continue;
        while (i-- > 0) mg_release(made[i]);
        return NULL;
    }
    return mg_arrays_of(count, made);
}

