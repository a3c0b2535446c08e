/* fill.c: arrays of one number, and of numbers in steps (full and arange). */
#include "memory/array.h"

static void fill_16(mg_array *a, uint16_t bits) {
    for (int64_t i = 0; i < a->size; i++) ((uint16_t *)a->data)[i] = bits;
}

static void fill(mg_array *a, double value, int64_t integer) {
    switch (a->dtype) {
    case MG_UINT8:
    case MG_INT8: memset(a->data, (uint8_t)integer, (size_t)a->size); break;
    case MG_INT16: fill_16(a, (uint16_t)integer); break;
    case MG_FLOAT16: fill_16(a, mg_to_f16(mg_to_odd(value))); break;
    case MG_BFLOAT16: fill_16(a, mg_to_bf16(mg_to_odd(value))); break;
    case MG_INT32:
        for (int64_t i = 0; i < a->size; i++) ((int32_t *)a->data)[i] = (int32_t)integer;
        break;
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
    if (mg_is_storage(dtype)) {
        mg_array *wide = mg_arange(mg_wide(dtype), start, step, start_int, step_int, count);
        mg_array *narrow = wide ? mg_cast(wide, dtype) : NULL;
        mg_release(wide);
        return narrow;
    }
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
