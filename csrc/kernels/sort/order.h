/* order.h: order-preserving conversion of elements to unsigned integers, so that one loop sorts
 * every dtype.
 *
 * NaN comes after all numbers, and -0 equals 0.
 */
#ifndef MG_ORDER_H
#define MG_ORDER_H

#include "memory/array.h"

#include <string.h>

static const uint32_t order_nan32 = UINT32_MAX;
static const uint64_t order_nan = UINT64_MAX;

/* The bits of a positive float are already in its order; those of negative floats are in the
 * reverse order. */
MG_INLINE uint32_t order_of_f32(float x) {
    uint32_t bits;
    x += 0.0f; /* -0 becomes 0 */
    memcpy(&bits, &x, sizeof bits);
    if (x != x) return order_nan32;
    return bits ^ ((0u - (bits >> 31)) | 0x80000000u);
}

MG_INLINE uint64_t order_of_f64(double x) {
    uint64_t bits;
    x += 0.0;
    memcpy(&bits, &x, sizeof bits);
    if (x != x) return order_nan;
    return bits ^ ((0u - (bits >> 63)) | ((uint64_t)1 << 63));
}

/* Element i of contiguous memory. A float32 gets the key of the same value as float64. */
MG_INLINE uint64_t order_at(int dtype, const void *x, int64_t i) {
    switch (dtype) {
    case MG_BOOL: return ((const uint8_t *)x)[i] != 0;
    case MG_INT64: return (uint64_t)((const int64_t *)x)[i] ^ ((uint64_t)1 << 63);
    case MG_FLOAT32: return order_of_f64((double)((const float *)x)[i]);
    default: return order_of_f64(((const double *)x)[i]);
    }
}

#endif
