/* fill.c: arrays of one number, and of numbers in steps. */
#include "../memory/array.h"

static void fill(mg_array *a, double value, int64_t integer) {
    switch (a->dtype) {
    case MG_BOOL: memset(a->data, integer != 0 || (integer == 0 && value != 0), (size_t)a->size); break;
    case MG_INT64:
        for (int64_t i = 0; i < a->size; i++) ((int64_t *)a->data)[i] = integer;
        break;
    case MG_FLOAT32:
        for (int64_t i = 0; i < a->size; i++) ((float *)a->data)[i] = (float)value;
        break;
    default:
        for (int64_t i = 0; i < a->size; i++) ((double *)a->data)[i] = value;
    }
}

mg_array *mg_full(int dtype, int ndim, const int64_t *shape, double value, int64_t integer) {
    mg_array *a = mg_new(dtype, ndim, shape);
    if (a) fill(a, value, integer);
    return a;
}

mg_array *mg_arange(int dtype, double start, double step, int64_t start_int, int64_t step_int,
                    int64_t count) {
    mg_array *a = mg_new(dtype, 1, &count);
    if (!a) return NULL;
    switch (dtype) {
    case MG_BOOL:
        for (int64_t i = 0; i < count; i++) {
            MG_AS_IT_IS;
            a->data[i] = start + (double)i * step != 0;
        }
        break;
    case MG_INT64:
        for (int64_t i = 0; i < count; i++)
            ((int64_t *)a->data)[i] = (int64_t)((uint64_t)start_int + (uint64_t)i * (uint64_t)step_int);
        break;
    case MG_FLOAT32:
        for (int64_t i = 0; i < count; i++)
            ((float *)a->data)[i] = (float)(start + (double)i * step);
        break;
    default:
        for (int64_t i = 0; i < count; i++) ((double *)a->data)[i] = start + (double)i * step;
    }
    return a;
}
