/* systems.c: linear systems, determinants, Cholesky and QR factors of stacks of matrices.
 *
 * All is computed in doubles and in place. Triangles are split in halves recursively. The update of
 * the second half by the first is a matrix product (Toledo, "Locality of reference in LU
 * decomposition with partial pivoting", 1997). Up to SYSTEM_SMALL columns are done row by row.
 *
 * A matrix that holds a NaN or an infinity gives NaN, except in determinants, where infinities
 * count.
 */
#include "kernels/sizes.h"
#include "memory/array.h"
#include "threads/pool.h"

#include <float.h>
#include <math.h>

static MG_NOINLINE bool system_bounded(const double *x, int64_t n, double most) {
    int64_t beyond = 0; /* NaN too */
    for (int64_t j = 0; j < n; j++) beyond |= !(fabs(x[j]) <= most);
    return !beyond;
}

/* ---- one matrix ------------------------------------------------------------------------------ */

/* Replaces X, n rows of `width` elements, by L^-1 X for the lower triangle L of A. The diagonal
 * counts as ones if `unit`. Negative strides make it the upper triangle, run backwards. */
static void system_substitute(const double *a, int64_t a_row, int64_t a_col, bool unit, double *x,
                              int64_t x_row, int64_t n, int64_t width) {
    if (n > SYSTEM_SMALL && width > 0) {
        int64_t half = n / 2;
        system_substitute(a, a_row, a_col, unit, x, x_row, half, width);
        const double *below = a + half * a_row;
        mg_eliminate_product(x + half * x_row, below, a_row, a_col, x, x_row, n - half, width, half);
        system_substitute(below + half * a_col, a_row, a_col, unit, x + half * x_row, x_row,
                          n - half, width);
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        double *row = x + i * x_row, pivot = a[i * (a_row + a_col)];
        mg_eliminate_rows(row, a + i * a_row, a_col, x, x_row, i, width);
        for (int64_t j = 0; !unit && j < width; j++) row[j] /= pivot;
    }
}

/* A, n x n with rows `row` apart, and X, n rows of `width`, which is transformed with A. */
typedef struct {
    double *a, *x;
    int64_t n, row, width;
    bool odd; /* an odd number of rows were swapped */
} system_pair;

static void system_swap(double *a, double *b, int64_t n) {
    for (int64_t j = 0; j < n; j++) {
        double kept = a[j];
        a[j] = b[j];
        b[j] = kept;
    }
}

/* Gaussian elimination of columns `first` to `last`, after the columns before. A becomes U and,
 * below its diagonal, L. Whole rows are swapped, with those of X. */
static void system_eliminate(system_pair *t, int64_t first, int64_t last) {
    double *a = t->a;
    int64_t n = t->n, row = t->row;
    if (last - first > SYSTEM_SMALL) {
        int64_t middle = (first + last) / 2;
        system_eliminate(t, first, middle);
        double *right = a + first * row + middle, *below = a + middle * row;
        system_substitute(a + first * (row + 1), row, 1, true, right, row, middle - first,
                          last - middle);
        mg_eliminate_product(below + middle, below + first, row, 1, right, row, n - middle,
                        last - middle, middle - first);
        system_eliminate(t, middle, last);
        return;
    }
    for (int64_t k = first; k < last; k++) {
        double *pivot = a + k * row;
        int64_t most = k;
        for (int64_t i = k + 1; i < n; i++)
            if (fabs(a[i * row + k]) > fabs(a[most * row + k])) most = i;
        if (most != k) {
            system_swap(pivot, a + most * row, n);
            system_swap(t->x + k * t->width, t->x + most * t->width, t->width);
            t->odd = !t->odd;
        }
        if (pivot[k] == 0) continue; /* the elements below it are 0 too */
        for (int64_t i = k + 1; i < n; i++) a[i * row + k] /= pivot[k];
        double *below = pivot + row + k;
        mg_eliminate_outer(below + 1, row, below, row, pivot + k + 1, n - k - 1, last - k - 1);
    }
}

/* Replaces A by U with U^T U = A. Only the upper triangle is read; below the diagonal the result is
 * arbitrary. If A is not positive definite, U has a 0 on its diagonal, and the result is false. */
static bool system_cholesky(double *a, int64_t row, int64_t n) {
    if (n > SYSTEM_SMALL) {
        int64_t half = n / 2;
        double *right = a + half, *rest = right + half * row;
        if (!system_cholesky(a, row, half)) return false;
        system_substitute(a, 1, row, false, right, row, half, n - half);
        mg_eliminate_product(rest, right, 1, row, right, row, n - half, n - half, half);
        return system_cholesky(rest, row, n - half);
    }
    for (int64_t k = 0; k < n; k++) {
        double *pivot = a + k * (row + 1), square = *pivot;
        *pivot = square > 0 ? sqrt(square) : 0;
        if (*pivot == 0) return false;
        for (int64_t j = 1; j < n - k; j++) pivot[j] /= *pivot;
        mg_eliminate_outer(pivot + row + 1, row, pivot + 1, 1, pivot + 1, n - k - 1, n - k - 1);
    }
    return true;
}

/* Householder's reflection I - tau v v^T of the column x of n elements, `step` apart, to a
 * multiple of e1. It stores the result in x[0], and v without its leading 1 in the rest of x.
 * Returns tau. */
static double system_householder(double *x, int64_t step, int64_t n) {
    double most = 0, sum = 0;
    for (int64_t i = 1; i < n; i++) most = fmax(most, fabs(x[i * step]));
    if (most == 0) return 0;
    int power;
    frexp(fmax(most, fabs(x[0])), &power);
    /* half the power, applied twice, as the whole may be out of range */
    double scale = ldexp(1, -power / 2);
    for (int64_t i = 0; i < n; i++) {
        double part = x[i * step] * scale * scale;
        sum += part * part;
    }
    double length = copysign(sqrt(sum) / scale / scale, -x[0]), first = x[0];
    for (int64_t i = 1; i < n; i++) x[i * step] /= first - length;
    x[0] = length;
    return (length - first) / length;
}

/* Applies the reflection to X, m rows of n elements `row` apart. w has room for n. v[0] holds
 * another value, and is 1 meanwhile. */
static void system_reflect(double tau, double *v, int64_t step, double *x, int64_t row, int64_t m,
                           int64_t n, double *w) {
    double first = v[0];
    v[0] = 1;
    for (int64_t j = 0; j < n; j++) w[j] = 0;
    mg_eliminate_rows(w, v, step, x, row, m, n); /* w = -v^T X */
    for (int64_t j = 0; j < n; j++) w[j] *= -tau;
    mg_eliminate_outer(x, row, v, step, w, m, n);
    v[0] = first;
}

/* Q, m x n, and below it R, for A, m x n with m >= n. A is overwritten. */
static void system_qr(double *a, int64_t m, int64_t n, double *q) {
    double tau[MG_QR_COLUMNS], w[MG_QR_COLUMNS], *r = q + m * n;
    for (int64_t k = 0; k < n; k++) {
        double *at = a + k * (n + 1);
        tau[k] = system_householder(at, n, m - k);
        system_reflect(tau[k], at, n, at + 1, n, m - k, n - k - 1, w);
    }
    memset(q, 0, (size_t)((m + n) * n) * sizeof *q);
    for (int64_t k = n - 1; k >= 0; k--) {
        q[k * (n + 1)] = 1;
        system_reflect(tau[k], a + k * (n + 1), n, q + k * (n + 1), n, m - k, n - k, w);
        for (int64_t j = k; j < n; j++) r[k * n + j] = a[k * n + j];
    }
}

/* ---- stacks ---------------------------------------------------------------------------------- */

enum system_kind {
    SYSTEM_SOLVE,
    SYSTEM_LOWER,
    SYSTEM_UPPER,
    SYSTEM_CHOLESKY,
    SYSTEM_QR,
    SYSTEM_DET,
    SYSTEM_LOG
};

typedef struct {
    enum system_kind kind;
    bool unit;
    /* Matrices of m rows, `row` apart, and n columns. Each has `results` results in rows of
     * `width`. */
    double *a, *x;
    int64_t m, n, row, width, results, items, items_per_block;
} system_plan;

/* True if all elements that are read of a matrix are finite; for determinants, if none is NaN. */
static bool system_sound(const system_plan *t, const double *a) {
    bool lower = t->kind == SYSTEM_LOWER || t->kind == SYSTEM_CHOLESKY;
    for (int64_t i = 0; i < t->m; i++) {
        int64_t first = t->kind == SYSTEM_UPPER ? i + t->unit : 0;
        int64_t last = lower ? i + !t->unit : t->n;
        double most = t->kind >= SYSTEM_DET ? INFINITY : DBL_MAX;
        if (!system_bounded(a + i * t->row + first, last - first, most)) return false;
    }
    return true;
}

/* The determinant from the pivots: part * 2^power, with a part near 1, so that only the end can
 * overflow. With `logarithm`: its sign, and the logarithm of its magnitude. */
static void system_determinant(const system_pair *t, bool logarithm, double *to) {
    double part = t->odd ? -1 : 1;
    int power = 0, more = 0;
    bool zero = false;
    for (int64_t i = 0; i < t->n; i++) {
        double pivot = t->a[i * (t->row + 1)];
        zero |= pivot == 0;
        part *= frexp(pivot, &more);
        power += more;
        part = frexp(part, &more);
        power += more;
    }
    if (zero) part = 0;
    if (!logarithm) {
        *to = ldexp(part, power);
        return;
    }
    if (fabs(part) < 0.70710678118654752) {
        part *= 2;
        power--;
    }
    to[0] = part > 0 ? 1 : part < 0 ? -1 : part;
    to[1] = log(fabs(part)) + power * 0.69314718055994531;
}

static void system_item(const system_plan *t, double *a, double *x) {
    int64_t n = t->n, row = t->row, width = t->width;
    if (!system_sound(t, a)) {
        for (int64_t i = 0; i < n; i++) a[i * (row + 1)] = NAN; /* not singular */
        for (int64_t i = 0; i < t->results; i++) x[i] = NAN;
        return;
    }
    system_pair pair = {a, x, n, row, width, false};
    switch (t->kind) {
    case SYSTEM_SOLVE:
        system_eliminate(&pair, 0, n);
        system_substitute(a, row, 1, true, x, width, n, width);
        /* fall through */
    case SYSTEM_UPPER:
        system_substitute(a + (n - 1) * (row + 1), -row, -1, t->unit, x + (n - 1) * width, -width,
                          n, width);
        break;
    case SYSTEM_LOWER:
        system_substitute(a, row, 1, t->unit, x, width, n, width);
        break;
    case SYSTEM_CHOLESKY: /* the lower factor is the transpose of the upper factor */
        for (int64_t i = 1; i < n; i++)
            for (int64_t j = 0; j < i; j++) a[j * n + i] = a[i * n + j];
        system_cholesky(a, n, n);
        for (int64_t i = 1; i < n; i++)
            for (int64_t j = 0; j < i; j++) {
                a[i * n + j] = a[j * n + i];
                a[j * n + i] = 0;
            }
        break;
    case SYSTEM_QR: system_qr(a, t->m, n, x); break;
    default:
        pair.width = 0;
        system_eliminate(&pair, 0, n);
        system_determinant(&pair, t->kind == SYSTEM_LOG, x);
    }
}

static void system_block(void *context, int64_t block) {
    const system_plan *t = context;
    int64_t first = block * t->items_per_block;
    int64_t last = mg_min(first + t->items_per_block, t->items);
    for (int64_t i = first; i < last; i++)
        system_item(t, t->a + i * t->m * t->row, t->x + i * t->results);
}

/* A copy in doubles to be overwritten. Its rows are a cache line longer if they would fall into few
 * cache sets. */
static mg_array *system_copy(system_plan *t, mg_array *a) {
    int64_t shape[MG_MAX_NDIM], last = a->ndim - 1;
    t->n = a->shape[last];
    if (t->n < 128 || t->n % 32) return mg_cast(a, MG_FLOAT64);
    memcpy(shape, a->shape, sizeof shape);
    shape[last] += 8;
    mg_array *made = mg_new(MG_FLOAT64, a->ndim, shape);
    if (!made) return NULL;
    mg_array inside = mg_header(made);
    inside.shape[last] = t->n;
    inside.size = a->size;
    if (mg_write(&inside, a) == MG_OK) return made;
    mg_release(made);
    return NULL;
}

/* Processes the stack. A and X are contiguous arrays of doubles; X is NULL if A itself is the
 * result. MG_ESINGULAR with the number of the first matrix that has a 0 on its diagonal where it is
 * divided by. */
static int system_run(system_plan *t, mg_array *a, mg_array *x) {
    if (!x) x = a;
    t->row = a->shape[a->ndim - 1];
    t->a = (double *)a->data;
    t->x = (double *)x->data;
    t->m = a->shape[a->ndim - 2];
    if (!t->n) t->n = t->row;
    t->items = 1;
    for (int d = 0; d < a->ndim - 2; d++) t->items *= a->shape[d];
    if (t->items == 0 || (t->n == 0 && x->size == 0)) return MG_OK; /* however many there are */
    t->results = x->size / t->items;
    int64_t work = t->n * (t->m * t->n + t->results) + 1;
    t->items_per_block = mg_max(1, SYSTEM_GRAIN / work);
    mg_parallel_for(mg_ceil_div(t->items, t->items_per_block), system_block, t);
    for (int64_t i = 0; !t->unit && t->kind < SYSTEM_QR && i < t->items; i++)
        for (int64_t j = 0; j < t->n; j++)
            if (t->a[(i * t->n + j) * t->row + j] == 0) return mg_fail_code(MG_ESINGULAR, i, 0);
    return MG_OK;
}

/* Converts a new array of doubles to another dtype, and releases it. */
static mg_array *system_result(mg_array *made, int dtype) {
    if (!made || dtype == MG_FLOAT64) return made;
    mg_array *cast = mg_cast(made, dtype);
    mg_release(made);
    return cast;
}

/* True for a stack of float matrices that are square, or, if `tall`, have at least as many rows as
 * columns. */
static bool system_takes(const mg_array *a, bool tall) {
    if (!mg_is_float(a->dtype)) return mg_fail(MG_EDTYPE, a->dtype, 0);
    if (a->ndim < 2) return mg_fail(MG_ENDIM, a->ndim, 2);
    int64_t m = a->shape[a->ndim - 2], n = a->shape[a->ndim - 1];
    return (tall ? m >= n : m == n) || mg_fail(MG_ESHAPE, m, n);
}

/* X with A X = B, or the inverse of A if B is NULL. */
static mg_array *system_solve(system_plan *t, mg_array *a, mg_array *b) {
    if (!system_takes(a, false)) return NULL;
    if (b && b->ndim != a->ndim) return mg_fail(MG_ESHAPE, a->ndim, b->ndim);
    for (int d = 0; b && d < a->ndim - 1; d++)
        if (b->shape[d] != a->shape[d]) return mg_fail(MG_ESHAPE, a->shape[d], b->shape[d]);
    mg_array *work = system_copy(t, a);
    mg_array *x = !work ? NULL : b ? mg_cast(b, MG_FLOAT64) : mg_new(MG_FLOAT64, a->ndim, a->shape);
    if (x) {
        int64_t n = x->shape[x->ndim - 2];
        t->width = x->shape[x->ndim - 1];
        double *to = (double *)x->data;
        if (!b && x->size) {
            memset(to, 0, (size_t)x->size * sizeof *to);
            for (int64_t i = 0; i < x->size / n; i++) to[i * n + i % n] = 1;
        }
        if (system_run(t, work, x) != MG_OK) {
            mg_release(x);
            x = NULL;
        }
    }
    mg_release(work);
    return system_result(x, a->dtype);
}

mg_array *mg_solve(mg_array *a, mg_array *b) {
    return system_solve(&(system_plan){.kind = SYSTEM_SOLVE}, a, b);
}

mg_array *mg_inv(mg_array *a) { return system_solve(&(system_plan){.kind = SYSTEM_SOLVE}, a, NULL); }

mg_array *mg_solve_triangular(mg_array *a, mg_array *b, int upper, int unit) {
    system_plan t = {.kind = upper ? SYSTEM_UPPER : SYSTEM_LOWER, .unit = unit};
    return system_solve(&t, a, b);
}

mg_array *mg_cholesky(mg_array *a) {
    mg_array *made = system_takes(a, false) ? mg_cast(a, MG_FLOAT64) : NULL;
    if (made && system_run(&(system_plan){.kind = SYSTEM_CHOLESKY}, made, NULL) != MG_OK) {
        mg_release(made);
        made = NULL;
    }
    return system_result(made, a->dtype);
}

mg_array *mg_det(mg_array *a, int logarithm) {
    if (!system_takes(a, false)) return NULL;
    int64_t shape[MG_MAX_NDIM];
    memcpy(shape, a->shape, sizeof shape);
    int ndim = a->ndim - 2;
    if (logarithm) shape[ndim++] = 2;
    system_plan t = {.kind = logarithm ? SYSTEM_LOG : SYSTEM_DET};
    mg_array *work = system_copy(&t, a), *x = work ? mg_new(MG_FLOAT64, ndim, shape) : NULL;
    if (x) system_run(&t, work, x);
    mg_release(work);
    return system_result(x, a->dtype);
}

mg_array *mg_qr(mg_array *a) {
    if (!system_takes(a, true)) return NULL;
    int64_t shape[MG_MAX_NDIM], n = a->shape[a->ndim - 1];
    if (n > MG_QR_COLUMNS) return mg_fail(MG_EARG, n, MG_QR_COLUMNS);
    memcpy(shape, a->shape, sizeof shape);
    shape[a->ndim - 2] += n;
    mg_array *work = mg_cast(a, MG_FLOAT64);
    mg_array *made = work ? mg_new(MG_FLOAT64, a->ndim, shape) : NULL;
    if (made) system_run(&(system_plan){.kind = SYSTEM_QR}, work, made);
    mg_release(work);
    return system_result(made, a->dtype);
}

