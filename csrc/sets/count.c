/* count.c: counts and distinct values: bincount, histograms, unique rows, one-hot vectors and
 * others.
 *
 * Also here: triangle indices, parts of an axis, and interpolation between order statistics. The
 * loops take one element after the other, so one version serves all instruction sets. If another
 * thread writes to an array meanwhile, counts may be wrong, but no access leaves its array.
 */
#include "kernels/iterate/contiguous.h"
#include "memory/array.h"
#include "kernels/sort/order.h"

enum { SPANS_MOST = 4 };

/* ---- integers ---- */

/* Lowers *least to the least value and raises *most to the largest. */
static void count_range(const mg_array *x, int64_t *least, int64_t *most) {
    const int64_t *value = (const int64_t *)x->data;
    for (int64_t i = 0; i < x->size; i++) {
        if (value[i] < *least) *least = value[i];
        if (value[i] > *most) *most = value[i];
    }
}

mg_array *mg_bincount(mg_array *x, int64_t size) {
    if (x->dtype != MG_INT64) return mg_fail(MG_EDTYPE, x->dtype, 0);
    mg_array *from = mg_contiguous(x), *out = NULL;
    if (!from) return NULL;
    int64_t least = 0, most = size - 1;
    count_range(from, &least, &most);
    if (least < 0) mg_fail(MG_EARG, least, 0);
    else if (most == INT64_MAX) mg_fail(MG_ESIZE, 0, 0);
    else out = mg_full(MG_INT64, 1, (int64_t[]){most + 1}, 0, 0);
    for (int64_t i = 0; out && i < from->size; i++) {
        int64_t value = ((const int64_t *)from->data)[i];
        if ((uint64_t)value <= (uint64_t)most) ((int64_t *)out->data)[value]++;
    }
    mg_release(from);
    return out;
}

mg_array *mg_one_hot(mg_array *classes, int64_t count) {
    if (classes->dtype != MG_INT64) return mg_fail(MG_EDTYPE, classes->dtype, 0);
    if (classes->ndim == MG_MAX_NDIM) return mg_fail(MG_ENDIM, MG_MAX_NDIM + 1, MG_MAX_NDIM);
    mg_array *from = mg_contiguous(classes), *out = NULL;
    if (!from) return NULL;
    int64_t least = 0, most = -1, shape[MG_MAX_NDIM];
    count_range(from, &least, &most);
    if (count < 0 && most < INT64_MAX) count = most + 1;
    memcpy(shape, from->shape, sizeof shape);
    shape[from->ndim] = count;
    if (least < 0 || most >= count) mg_fail(MG_EINDEX, least < 0 ? least : most, count);
    else out = mg_full(MG_INT64, from->ndim + 1, shape, 0, 0);
    for (int64_t i = 0; out && i < from->size; i++) {
        int64_t value = ((const int64_t *)from->data)[i];
        if ((uint64_t)value < (uint64_t)count) ((int64_t *)out->data)[i * count + value] = 1;
    }
    mg_release(from);
    return out;
}

/* ---- triangles ---- */

/* Elements of a row from its start to the diagonal `right`, counted from the row's start. It may be
 * negative. */
static int64_t triangle_width(int64_t right, int64_t columns) {
    return mg_min(mg_max(right + 1, 0), columns);
}

mg_array *mg_triangle_indices(int64_t rows, int64_t columns, int64_t offset, int lower) {
    int64_t all, shift = lower ? offset : offset - 1;
    if (mg_count(2, (int64_t[]){rows, columns}, sizeof(int64_t), &all)) return NULL;
    if (offset < -rows || offset > columns) return mg_fail(MG_EARG, offset, 0);
    /* Rows get longer from row `first` to row `whole`, and all rows from there on have all
     * columns. */
    int64_t first = mg_min(mg_max(-shift, 0), rows), whole = mg_min(mg_max(columns - shift, 0), rows);
    int64_t below = (rows - whole) * columns, least = triangle_width(first + shift, columns);
    if (whole > first)
        below += (whole - first) * least + (whole - first) * (whole - first - 1) / 2;
    int64_t n = lower ? below : all - below;
    mg_array *out = mg_new(MG_INT64, 2, (int64_t[]){2, n});
    int64_t *row = out ? (int64_t *)out->data : NULL, *column = row + n;
    for (int64_t i = lower ? first : 0; out && n; i++) {
        int64_t width = triangle_width(i + shift, columns);
        int64_t j = lower ? 0 : width, end = lower ? width : columns;
        for (; j < end && n; j++, n--) {
            *row++ = i;
            *column++ = j;
        }
    }
    return out;
}

/* ---- bins ---------------- */

typedef struct {
    double low, high, step;
    int64_t bins;
} count_parts;

static double count_edge(const count_parts *p, int64_t k) {
    return k < p->bins ? p->low + (double)k * p->step : p->high;
}

/* The last bin that begins at or before a value of the range. The value's share of the range gives
 * the bin, unless rounding interferes, which may make many bins the same. */
static int64_t count_part(const count_parts *p, double value) {
    double share = (value - p->low) / (p->high - p->low) * (double)p->bins;
    int64_t k = share < (double)p->bins ? (int64_t)share : p->bins - 1, above = p->bins;
    if (count_edge(p, k) <= value && (k + 1 == p->bins || value < count_edge(p, k + 1))) return k;
    for (k = 0; above - k > 1;) {
        int64_t middle = k + (above - k) / 2;
        if (count_edge(p, middle) <= value) k = middle;
        else above = middle;
    }
    return k;
}

mg_array *mg_histc(mg_array *x, int64_t bins, double low, double high) {
    if (!mg_is_float(x->dtype)) return mg_fail(MG_EDTYPE, x->dtype, 0);
    if (bins < 1) return mg_fail(MG_EARG, bins, 0);
    count_parts parts = {low, high, (high - low) / (double)bins, bins};
    mg_array *from = mg_contiguous(x), *out = from ? mg_full(MG_INT64, 1, &bins, 0, 0) : NULL;
    for (int64_t i = 0; out && i < from->size; i++) {
        double value = from->dtype == MG_FLOAT32 ? (double)((const float *)from->data)[i]
                                                 : ((const double *)from->data)[i];
        if (value >= low && value <= high) ((int64_t *)out->data)[count_part(&parts, value)]++;
    }
    mg_release(from);
    return out;
}

/* ---- distinct rows -------- */

/* The rows of a contiguous matrix. */
typedef struct {
    const mg_array *x;
    int64_t rows, columns;
} distinct_rows;

/* Compares rows a and b element by element: below 0, 0 or above 0. A row with a NaN equals no row,
 * but comes before a row with the same NaN. */
static MG_NOINLINE int distinct_compare(const distinct_rows *m, int64_t a, int64_t b) {
    const mg_array *x = m->x;
    int like = 0;
    for (int64_t c = 0; c < m->columns; c++) {
        uint64_t first = order_at(x->dtype, x->data, a * m->columns + c);
        uint64_t second = order_at(x->dtype, x->data, b * m->columns + c);
        if (first != second) return first > second ? 1 : -1;
        if (first == order_nan && mg_is_float(x->dtype)) like = -1;
    }
    return like;
}

/* Sorts the numbers of rows, for few columns, by one column after the other, the last first. False
 * without memory. */
static bool distinct_by_columns(const distinct_rows *m, int64_t *order, int64_t *other) {
    mg_array *keys = mg_new(m->x->dtype, 1, &m->rows);
    int64_t size = mg_itemsize(m->x->dtype), c = keys ? m->columns : -1;
    while (--c >= 0) {
        for (int64_t i = 0; i < m->rows; i++) {
            int64_t at = order[i] * m->columns + c;
            if (size == 8) ((uint64_t *)keys->data)[i] = ((const uint64_t *)m->x->data)[at];
            else if (size == 4) ((uint32_t *)keys->data)[i] = ((const uint32_t *)m->x->data)[at];
            else keys->data[i] = m->x->data[at];
        }
        mg_array *sorted = mg_argsort(keys, 0, 0);
        if (!sorted) break;
        memcpy(other, order, (size_t)m->rows * sizeof *order);
        for (int64_t i = 0; i < m->rows; i++) order[i] = other[((const int64_t *)sorted->data)[i]];
        mg_release(sorted);
    }
    mg_release(keys);
    return keys && c < 0;
}

/* Sorts them for many columns, by merging runs of doubling length. */
static void distinct_merge(const distinct_rows *m, int64_t *order, int64_t *other) {
    int64_t *from = order, *to = other;
    for (int64_t run = 1; run < m->rows; run *= 2) {
        for (int64_t at = 0; at < m->rows; at += 2 * run) {
            int64_t middle = mg_min(at + run, m->rows), end = mg_min(at + 2 * run, m->rows);
            int64_t a = at, b = middle, *next = to + at;
            while (a < middle && b < end)
                *next++ = distinct_compare(m, from[a], from[b]) > 0 ? from[b++] : from[a++];
            while (a < middle) *next++ = from[a++];
            while (b < end) *next++ = from[b++];
        }
        int64_t *merged = to;
        to = from;
        from = merged;
    }
    if (from != order) memcpy(order, from, (size_t)m->rows * sizeof *order);
}

/* The numbers of the rows in sorted order; NULL with an error set. */
static mg_array *distinct_sorted(const distinct_rows *m) {
    mg_array *order = mg_arange(MG_INT64, 0, 0, 0, 1, m->rows);
    mg_array *other = order ? mg_new(MG_INT64, 1, &m->rows) : NULL;
    bool few = m->columns < 31 && m->rows >> 2 * m->columns > 0, done = other;
    if (other && few)
        done = distinct_by_columns(m, (int64_t *)order->data, (int64_t *)other->data);
    else if (other) distinct_merge(m, (int64_t *)order->data, (int64_t *)other->data);
    mg_release(other);
    if (done) return order;
    mg_release(order);
    return NULL;
}

/* Finds the rows that differ from the row before in sorted order. `starts` receives their
 * positions. `number`, unless it is NULL, receives for each row the number of its distinct row.
 * Returns the count of distinct rows. */
static int64_t distinct_starts(const distinct_rows *m, const int64_t *sorted, int64_t *starts,
                               int64_t *number) {
    bool words = m->columns == 1 && m->x->dtype == MG_INT64; /* the most common case */
    const int64_t *word = (const int64_t *)m->x->data;
    int64_t found = 0;
    for (int64_t k = 0, i, before = 0; k < m->rows; k++, before = i) {
        i = sorted ? sorted[k] : k;
        starts[found] = k; /* kept if it is a new row */
        bool like = words ? word[i] == word[before] : !distinct_compare(m, i, before);
        found += !like || k == 0;
        if (number) number[i] = found - 1;
    }
    return found;
}

mg_arrays *mg_distinct(mg_array *x, int arrange, int inverse) {
    if (x->ndim != 2) return mg_fail(MG_ENDIM, x->ndim, 2);
    int64_t n = x->shape[0];
    mg_array *from = mg_contiguous(x), *order = NULL, *number = NULL, *places = NULL, *counts = NULL;
    mg_array *starts = from ? mg_new(MG_INT64, 1, &n) : NULL;
    if (starts && inverse) number = mg_new(MG_INT64, 1, &n);
    distinct_rows m = {from, n, x->shape[1]};
    bool ready = starts && (number || !inverse);
    if (ready && arrange) order = m.columns == 1 ? mg_argsort(from, 0, 0) : distinct_sorted(&m);
    if (ready && (order || !arrange)) {
        const int64_t *sorted = order ? (const int64_t *)order->data : NULL;
        int64_t *at = (int64_t *)starts->data;
        int64_t found = distinct_starts(&m, sorted, at, number ? (int64_t *)number->data : NULL);
        places = mg_new(MG_INT64, 1, &found);
        counts = places ? mg_new(MG_INT64, 1, &found) : NULL;
        for (int64_t r = 0; counts && r < found; r++) {
            ((int64_t *)places->data)[r] = sorted ? sorted[at[r]] : at[r];
            ((int64_t *)counts->data)[r] = (r + 1 < found ? at[r + 1] : n) - at[r];
        }
    }
    mg_release(starts);
    mg_release(order);
    mg_release(from);
    if (counts) return mg_arrays_of(3, (mg_array *[]){places, counts, number});
    mg_release(places);
    mg_release(number);
    return NULL;
}

/* ---- parts of an axis ---- */

/* The slice of x with a start, a step and a count along one axis. */
static mg_array *span_of(mg_array *x, int axis, int64_t first, int64_t by, int64_t count) {
    int64_t start[MG_MAX_NDIM] = {0}, step[MG_MAX_NDIM], size[MG_MAX_NDIM];
    for (int d = 0; d < x->ndim; d++) {
        step[d] = 1;
        size[d] = x->shape[d];
    }
    size[axis] = count;
    if (count > 0) start[axis] = first;
    if (count > 1) step[axis] = by;
    return mg_view_slice(x, start, step, size);
}

mg_array *mg_spans(mg_array *x, int axis, int numbers, const int64_t *spans) {
    mg_array *parts[SPANS_MOST] = {NULL}, *out = NULL;
    int count = numbers / 3;
    if (axis < 0 || axis >= x->ndim || count < 1 || count > SPANS_MOST)
        return mg_fail(MG_EARG, axis, count);
    int made = 0;
    for (const int64_t *s = spans; made < count; made++, s += 3)
        if (!(parts[made] = span_of(x, axis, s[0], s[1], s[2]))) break;
    if (made == count) out = mg_concatenate(count, parts, axis);
    while (made) mg_release(parts[--made]);
    return out;
}

mg_array *mg_spans_added(int add, mg_array *g, int axis, int64_t size, int numbers,
                         const int64_t *spans) {
    int64_t shape[MG_MAX_NDIM], at = 0;
    int count = numbers / 3;
    if (axis < 0 || axis >= g->ndim) return mg_fail(MG_EARG, axis, count);
    memcpy(shape, g->shape, sizeof shape);
    shape[axis] = size;
    mg_array *out = mg_full(g->dtype, g->ndim, shape, 0, 0);
    for (const int64_t *s = spans; out && count > 0; count--, at += s[2], s += 3) {
        mg_array *part = span_of(g, axis, at, 1, s[2]);
        mg_array *there = part ? span_of(out, axis, s[0], s[1], s[2]) : NULL;
        mg_array *sum = !there ? NULL : at ? mg_binary(add, there, part) : mg_retain(part);
        if (!sum || mg_write(there, sum)) {
            mg_release(out);
            out = NULL;
        }
        mg_release(sum);
        mg_release(there);
        mg_release(part);
    }
    return out;
}

/* ---- interpolation --------- */

#define BETWEEN(type)                                                                              \
    for (int64_t i = 0; i < out->size; i++) {                                                      \
        type a = ((const type *)from[0]->data)[i], b = ((const type *)from[1]->data)[i];           \
        type p = ((const type *)from[2]->data)[i % count], q = 1 - p, gap = b - a;                 \
        type mixed = (q ? q * a : 0) + (p ? p * b : 0);                                            \
        ((type *)out->data)[i] = gap - gap == 0 ? a + p * gap : mixed;                             \
    }

mg_array *mg_between(mg_array *a, mg_array *b, mg_array *part) {
    mg_array *given[3] = {a, b, part}, *from[3] = {NULL}, *out = NULL;
    int64_t count = part->size;
    if (!mg_is_float(a->dtype) || b->dtype != a->dtype || part->dtype != a->dtype)
        return mg_fail(MG_EDTYPE, a->dtype, 0);
    bool alike = mg_same_shape(a, part), line = part->ndim == 1 && a->ndim > 0;
    line = line && a->shape[a->ndim - 1] == count;
    if (!mg_same_shape(a, b) || !(alike || line)) return mg_fail(MG_ESHAPE, a->size, count);
    int made = 0;
    while (made < 3 && (from[made] = mg_contiguous(given[made]))) made++;
    if (made == 3) out = mg_new(a->dtype, a->ndim, a->shape);
    if (out && out->dtype == MG_FLOAT32) {
        BETWEEN(float)
    } else if (out) {
        BETWEEN(double)
    }
    while (made) mg_release(from[--made]);
    return out;
}

