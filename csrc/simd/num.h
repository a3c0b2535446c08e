/* num.h: functions that are written once, for one element and for several vectors.
 *
 * Such a function is in a *.inc.h file. It uses the type `num` and operations n_... on `num`. It
 * names what it defines F(name). Its constants are C(...), its polynomials and tables T(...). The
 * file is included twice, for one float with
 *     #define num float
 *     #define P(name) s_##name##_f32
 *     #define F(name) v_##name##_f32
 * and for several vectors (wide.h) with `wide_f32`, w_##name##_f32 and w_##name##_f32. Both give
 * the same bits. The operations are explained in wide.inc.h.
 */
#ifndef MG_SIMD_NUM_H
#define MG_SIMD_NUM_H

#include "wide.h"

#define n_abs P(abs)
#define n_add P(add)
#define n_add_bits P(add_bits)
#define n_and P(and)
#define n_below P(below)
#define n_choose_less P(choose_less)
#define n_choose_zero P(choose_zero)
#define n_clip P(clip)
#define n_div P(div)
#define n_each_within_bits P(each_within_bits)
#define n_exponent_unit P(exponent_unit)
#define n_farther P(farther)
#define n_flip_sign P(flip_sign)
#define n_fma P(fma)
#define n_fma_exact P(fma_exact)
#define n_fnma P(fnma)
#define n_from_bits P(from_bits)
#define n_from_exponent P(from_exponent)
#define n_less_bits P(less_bits)
#define n_line P(line)
#define n_look_up P(look_up)
#define n_look_up_32 P(look_up_32)
#define n_look_up_8 P(look_up_8)
#define n_look_up_held P(look_up_held)
#define n_max P(max)
#define n_min P(min)
#define n_mul P(mul)
#define n_near_root P(near_root)
#define n_neg P(neg)
#define n_or P(or)
#define n_plus_bits P(plus_bits)
#define n_rough_root_inverse P(rough_root_inverse)
#define n_scale P(scale)
#define n_scale_floor P(scale_floor)
#define n_scales_any P(scales_any)
#define n_set P(set)
#define n_small P(small)
#define n_shift_left P(shift_left)
#define n_shift_right P(shift_right)
#define n_sub P(sub)
#define n_with_sign P(with_sign)
#define n_within_bits P(within_bits)

typedef uint32_t one_bits_f32;
typedef uint64_t one_bits_f64;
#define MG_REAL 32
#include "one.inc.h"
#define MG_REAL 64
#include "one.inc.h"

#define s_each_within_bits_f32 s_within_bits_f32
#define s_each_within_bits_f64 s_within_bits_f64
#define s_exponent_unit_f32 0x1p-23f
#define s_exponent_unit_f64 0x1p-52
MG_INLINE float s_from_exponent_f32(float k) { return (float)(int32_t)v_bits_f32(k); }
MG_INLINE double s_from_exponent_f64(double k) { return (double)(int64_t)v_bits_f64(k); }
MG_INLINE float s_look_up_f32(const float *table, float i) { return table[v_bits_f32(i) & 15u]; }
MG_INLINE double s_look_up_f64(const double *table, double i) { return table[v_bits_f64(i) & 15u]; }
#define s_look_up_held_f32 s_look_up_f32
#define s_look_up_held_f64 s_look_up_f64
MG_INLINE double s_look_up_8_f64(const double *table, double i) {
    return table[v_bits_f64(i) & 7u];
}
MG_INLINE float s_look_up_8_f32(const float *table, float i) { return table[v_bits_f32(i) & 7u]; }
#define s_scales_any_f32 false
#define s_scales_any_f64 false
MG_INLINE float s_scale_floor_f32(float x, float n) {
    uint32_t t = v_bits_f32(n + (0x1.8p20f + 254)) >> 3, half = t >> 1;
    return x * v_from_bits_f32(half << 23) * v_from_bits_f32((t - half) << 23);
}
MG_INLINE double s_scale_floor_f64(double x, double n) {
    uint64_t t = v_bits_f64(n + (0x1.8p49 + 2046)) >> 3, half = t >> 1;
    return x * v_from_bits_f64(half << 52) * v_from_bits_f64((t - half) << 52);
}
MG_INLINE float s_look_up_32_f32(const float *table, float i) {
    return table[v_bits_f32(i) & 31u];
}
/* a b + c rounded once, with or without the instruction. Without the instruction doubles are
 * rounded twice if a factor is beyond 2^996. */
MG_INLINE float s_fma_exact_f32(float a, float b, float c) {
#if MG_HAS_FMA
    return fma_f32(a, b, c);
#else
    return (float)((double)a * (double)b + (double)c);
#endif
}
MG_INLINE double s_fma_exact_f64(double a, double b, double c) {
#if MG_HAS_FMA
    return fma_f64(a, b, c);
#else
    double p = a * b, s = p + c, t = s - p;
    double lost = ((p - (s - t)) + (c - t)) + v_mul_low_f64(a, b, p);
    return lost == lost ? s + lost : s;
#endif
}

#endif
