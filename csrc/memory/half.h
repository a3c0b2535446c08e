/* half.h: conversions of float16 (IEEE 754 binary16) and bfloat16, as bits in an integer, from and
 * to float.
 *
 * Conversions round to nearest, ties to even. NaN keeps its sign and the upper part of its payload.
 * There are no branches, so that loops over conversions are vectorised. A subnormal float16 is read
 * off the sum of the float and 0.5. That sum rounds at the last place of a subnormal (Giesen,
 * "Float->half variants", 2012).
 */
#ifndef MG_HALF_H
#define MG_HALF_H

#include "base/platform.h"

#include <stdint.h>
#include <string.h>

MG_INLINE uint32_t half_bits(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}
MG_INLINE float half_float(uint32_t bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

MG_INLINE float mg_from_f16(uint16_t half) {
    uint32_t sign = (uint32_t)(half & 0x8000) << 16, magnitude = half & 0x7fff;
    uint32_t subnormal = half_bits((float)(int32_t)magnitude * 0x1p-24f);
    uint32_t normal = (magnitude << 13) + ((127u - 15) << 23);
    uint32_t beyond = (magnitude << 13) + ((255u - 31) << 23);
    uint32_t bits = magnitude < 0x7c00 ? normal : beyond;
    return half_float(sign | (magnitude < 0x400 ? subnormal : bits));
}

MG_INLINE uint16_t mg_to_f16(float x) {
    uint32_t bits = half_bits(x), sign = bits >> 16 & 0x8000, magnitude = bits & 0x7fffffff;
    uint32_t subnormal = half_bits(half_float(magnitude) + 0.5f) - half_bits(0.5f);
    uint32_t normal = (magnitude - ((127u - 15) << 23) + 0xfff + (magnitude >> 13 & 1)) >> 13;
    uint32_t beyond = magnitude > 0x7f800000 ? 0x7e00 | (magnitude >> 13 & 0x3ff) : 0x7c00;
    uint32_t large = magnitude < 0x47800000 ? normal : beyond; /* 2^16 */
    return (uint16_t)(sign | (magnitude < 0x38800000 ? subnormal : large)); /* 2^-14 */
}

MG_INLINE float mg_from_bf16(uint16_t half) { return half_float((uint32_t)half << 16); }

MG_INLINE uint16_t mg_to_bf16(float x) {
    uint32_t bits = half_bits(x), nan = bits >> 16 | 0x40;
    uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
    return (uint16_t)((bits & 0x7fffffff) > 0x7f800000 ? nan : rounded);
}

/* The double rounded to odd: cut off to a float, whose last bit is set if anything was lost.
 * Rounding that float again gives the same as rounding the double. (Boldo and Melquiond, "Emulation
 * of FMA and correctly rounded sums: proved algorithms using rounding to odd", 2008.) */
MG_INLINE float mg_to_odd(double x) {
    float near = (float)x;
    uint32_t above = __builtin_fabs((double)near) > __builtin_fabs(x), inexact = (double)near != x;
    return half_float((half_bits(near) - above) | inexact);
}

#endif
