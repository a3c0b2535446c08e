/* wide.h: several vectors at a time, for functions that are one long chain of operations.
 *
 * Each operation of such a chain waits for the one before. A processor looks ahead by fewer
 * instructions than one chain has. A `wide` is a few vectors that are treated alike, one operation
 * after the other. Independent instructions thus stand next to each other. This needs fused
 * multiply-add and vectors of 32 bytes or more. Elsewhere MG_HAS_WIDE is 0 and a `wide` is one
 * element.
 */
#ifndef MG_SIMD_WIDE_H
#define MG_SIMD_WIDE_H

#include "base/system.h"
#include "scalar.h"

#if MG_VECTOR_BYTES >= 32
#define MG_HAS_WIDE 1

#if defined(__AVX512F__)
#define WIDE_VECTORS 4
/* The second operand if either is NaN. */
MG_INLINE vec_f32 v_min_f32(vec_f32 a, vec_f32 b) { return _mm512_min_ps(a, b); }
MG_INLINE vec_f64 v_min_f64(vec_f64 a, vec_f64 b) { return _mm512_min_pd(a, b); }
MG_INLINE vec_f32 v_max_f32(vec_f32 a, vec_f32 b) { return _mm512_max_ps(a, b); }
MG_INLINE vec_f64 v_max_f64(vec_f64 a, vec_f64 b) { return _mm512_max_pd(a, b); }
/* The larger, a if they are equal; NaN if either is NaN. */
MG_INLINE vec_f32 v_largest_f32(vec_f32 a, vec_f32 b) {
    return _mm512_mask_max_ps(b, _mm512_cmp_ps_mask(b, b, _CMP_ORD_Q), b, a);
}
MG_INLINE vec_f64 v_largest_f64(vec_f64 a, vec_f64 b) {
    return _mm512_mask_max_pd(b, _mm512_cmp_pd_mask(b, b, _CMP_ORD_Q), b, a);
}
/* a clipped to [-b, b] for positive b; b if a is NaN */
MG_INLINE vec_f32 v_clip_f32(vec_f32 a, vec_f32 b) { return _mm512_range_ps(a, b, 2); }
MG_INLINE vec_f64 v_clip_f64(vec_f64 a, vec_f64 b) { return _mm512_range_pd(a, b, 2); }
/* The larger of |a| and |b|, neither NaN */
MG_INLINE vec_f32 v_farther_f32(vec_f32 a, vec_f32 b) { return _mm512_range_ps(a, b, 11); }
MG_INLINE vec_f64 v_farther_f64(vec_f64 a, vec_f64 b) { return _mm512_range_pd(a, b, 11); }
MG_INLINE vec_f32 v_square_root_f32(vec_f32 a) { return _mm512_sqrt_ps(a); }
MG_INLINE vec_f64 v_square_root_f64(vec_f64 a) { return _mm512_sqrt_pd(a); }
/* 1 / sqrt(a) to 14 bits */
#define MG_ROUGH_ROOTS 1
MG_INLINE vec_f32 v_rough_root_inverse_f32(vec_f32 a) { return _mm512_rsqrt14_ps(a); }
MG_INLINE vec_f64 v_rough_root_inverse_f64(vec_f64 a) { return _mm512_rsqrt14_pd(a); }
/* The same, and 0 for 0 */
MG_INLINE vec_f64 v_rough_root_inverse_or_zero(vec_f64 a) {
    __m512i bits = _mm512_castpd_si512(a);
    return _mm512_maskz_rsqrt14_pd(_mm512_test_epi64_mask(bits, bits), a);
}
/* a < b ? x : y */
MG_INLINE vec_f32 v_choose_less_f32(vec_f32 a, vec_f32 b, vec_f32 x, vec_f32 y) {
    return _mm512_mask_blend_ps(_mm512_cmp_ps_mask(a, b, _CMP_LT_OQ), y, x);
}
MG_INLINE vec_f64 v_choose_less_f64(vec_f64 a, vec_f64 b, vec_f64 x, vec_f64 y) {
    return _mm512_mask_blend_pd(_mm512_cmp_pd_mask(a, b, _CMP_LT_OQ), y, x);
}
/* x if b is larger than a, or b is NaN and a is not; else y */
MG_INLINE vec_f32 v_choose_passed_f32(vec_f32 a, vec_f32 b, vec_f32 x, vec_f32 y) {
    __mmask16 number = _mm512_cmp_ps_mask(a, a, _CMP_ORD_Q);
    return _mm512_mask_blend_ps(_mm512_mask_cmp_ps_mask(number, b, a, _CMP_NLE_UQ), y, x);
}
MG_INLINE vec_f64 v_choose_passed_f64(vec_f64 a, vec_f64 b, vec_f64 x, vec_f64 y) {
    __mmask8 number = _mm512_cmp_pd_mask(a, a, _CMP_ORD_Q);
    return _mm512_mask_blend_pd(_mm512_mask_cmp_pd_mask(number, b, a, _CMP_NLE_UQ), y, x);
}
/* x if the bits of i under the mask are all 0, else y */
MG_INLINE vec_f32 v_choose_zero_f32(vec_f32 i, uint32_t mask, vec_f32 x, vec_f32 y) {
    __mmask16 m = _mm512_test_epi32_mask(_mm512_castps_si512(i), _mm512_set1_epi32((int)mask));
    return _mm512_mask_blend_ps(m, x, y);
}
MG_INLINE vec_f64 v_choose_zero_f64(vec_f64 i, uint64_t mask, vec_f64 x, vec_f64 y) {
    __m512i bits = _mm512_castpd_si512(i);
    return _mm512_mask_blend_pd(
        _mm512_test_epi64_mask(bits, _mm512_set1_epi64((long long)mask)), x, y);
}
/* True if low <= x < high in every lane. */
MG_INLINE bool v_inside_f32(vec_f32 x, vec_f32 low, vec_f32 high) {
    __mmask16 m = _mm512_cmp_ps_mask(x, low, _CMP_GE_OQ);
    return _mm512_mask_cmp_ps_mask(m, x, high, _CMP_LT_OQ) == 0xffff;
}
MG_INLINE bool v_inside_f64(vec_f64 x, vec_f64 low, vec_f64 high) {
    __mmask8 m = _mm512_cmp_pd_mask(x, low, _CMP_GE_OQ);
    return _mm512_mask_cmp_pd_mask(m, x, high, _CMP_LT_OQ) == 0xff;
}
/* A set of lanes; the set of all lanes; true if a set holds all lanes. */
typedef __mmask16 lanes_f32;
typedef __mmask8 lanes_f64;
#define V_ALL_LANES_F32 ((lanes_f32)-1)
#define V_ALL_LANES_F64 ((lanes_f64)-1)
MG_INLINE bool v_all_f32(lanes_f32 m) { return m == V_ALL_LANES_F32; }
MG_INLINE bool v_all_f64(lanes_f64 m) { return m == V_ALL_LANES_F64; }
/* The lanes of m whose bits, as unsigned integers, are less than the limit. */
MG_INLINE lanes_f32 v_within_bits_f32(lanes_f32 m, vec_f32 x, uint32_t limit) {
    __m512i bits = _mm512_castps_si512(x);
    return _mm512_mask_cmplt_epu32_mask(m, bits, _mm512_set1_epi32((int)limit));
}
MG_INLINE lanes_f64 v_within_bits_f64(lanes_f64 m, vec_f64 x, uint64_t limit) {
    __m512i bits = _mm512_castpd_si512(x);
    return _mm512_mask_cmplt_epu64_mask(m, bits, _mm512_set1_epi64((long long)limit));
}
/* The larger of two, compared as unsigned integers */
MG_INLINE vec_f32 v_most_bits(vec_f32 a, vec_f32 b) {
    return _mm512_castsi512_ps(_mm512_max_epu32(_mm512_castps_si512(a), _mm512_castps_si512(b)));
}
/* The lanes of m that are less than the limit. */
MG_INLINE lanes_f32 v_below_f32(lanes_f32 m, vec_f32 x, vec_f32 limit) {
    return _mm512_mask_cmp_ps_mask(m, x, limit, _CMP_LT_OQ);
}
MG_INLINE lanes_f64 v_below_f64(lanes_f64 m, vec_f64 x, vec_f64 limit) {
    return _mm512_mask_cmp_pd_mask(m, x, limit, _CMP_LT_OQ);
}
/* Converts an exponent k, whose bits are at the place of an exponent, to a number in units of
 * w_exponent_unit.
 */
#define w_exponent_unit_f32 0x1p-23f
#define w_exponent_unit_f64 0x1p-52
MG_INLINE vec_f32 v_from_exponent_f32(vec_f32 k) {
    return _mm512_cvtepi32_ps(_mm512_castps_si512(k));
}
MG_INLINE vec_f64 v_from_exponent_f64(vec_f64 k) {
    return _mm512_cvtepi64_pd(_mm512_castpd_si512(k));
}
MG_INLINE vec_f64 v_look_up_f64(const double *table, vec_f64 i) {
    return _mm512_permutex2var_pd(_mm512_loadu_pd(table), _mm512_castpd_si512(i),
                                  _mm512_loadu_pd(table + 8));
}
/* x 2^n, rounded once, for whole n from -252 to 254; in double from -2044 to 2046. */
MG_INLINE vec_f32 v_scale_f32(vec_f32 x, vec_f32 n) { return _mm512_scalef_ps(x, n); }
MG_INLINE vec_f64 v_scale_f64(vec_f64 x, vec_f64 n) { return _mm512_scalef_pd(x, n); }
/* x 2^floor(n), for n that is a multiple of 1/8. With AVX-512 n may be any number, also infinite. A
 * normal x then gives infinity or 0, and NaN if n is NaN. */
#define w_scales_any_f32 true
#define w_scales_any_f64 true
MG_INLINE vec_f32 v_scale_floor_f32(vec_f32 x, vec_f32 n) { return _mm512_scalef_ps(x, n); }
MG_INLINE vec_f64 v_scale_floor_f64(vec_f64 x, vec_f64 n) { return _mm512_scalef_pd(x, n); }
/* table[i mod 8] */
MG_INLINE vec_f32 v_look_up_8_f32(const float *table, vec_f32 i) {
    __m512 twice = _mm512_castpd_ps(_mm512_broadcast_f64x4(_mm256_loadu_pd((const double *)table)));
    return _mm512_permutexvar_ps(_mm512_castps_si512(i), twice);
}
MG_INLINE vec_f64 v_look_up_8_f64(const double *table, vec_f64 i) {
    return _mm512_permutexvar_pd(_mm512_castpd_si512(i), _mm512_loadu_pd(table));
}
/* table[i mod 16] of a table of 16 floats; i is the integer in the bits of each lane */
MG_INLINE vec_f32 v_look_up_f32(const float *table, vec_f32 i) {
    return _mm512_permutexvar_ps(_mm512_castps_si512(i), _mm512_loadu_ps(table));
}
/* table[i mod 32] */
MG_INLINE vec_f32 v_look_up_32(const float *table, vec_f32 i) {
    return _mm512_permutex2var_ps(_mm512_loadu_ps(table), _mm512_castps_si512(i),
                                  _mm512_loadu_ps(table + 16));
}
MG_INLINE vec_f64 v_load_floats(const float *p) { return _mm512_cvtps_pd(_mm256_loadu_ps(p)); }
MG_INLINE vec_f64 v_load_sums_of_floats(const float *p, const float *q) {
    return _mm512_cvtps_pd(_mm256_add_ps(_mm256_loadu_ps(p), _mm256_loadu_ps(q)));
}
MG_INLINE void v_store_floats(float *p, vec_f64 x) { _mm256_storeu_ps(p, _mm512_cvtpd_ps(x)); }
#else
#define WIDE_VECTORS 2
#define MG_ROUGH_ROOTS 0
MG_INLINE vec_f32 v_min_f32(vec_f32 a, vec_f32 b) { return _mm256_min_ps(a, b); }
MG_INLINE vec_f64 v_min_f64(vec_f64 a, vec_f64 b) { return _mm256_min_pd(a, b); }
MG_INLINE vec_f32 v_max_f32(vec_f32 a, vec_f32 b) { return _mm256_max_ps(a, b); }
MG_INLINE vec_f64 v_max_f64(vec_f64 a, vec_f64 b) { return _mm256_max_pd(a, b); }
MG_INLINE vec_f32 v_largest_f32(vec_f32 a, vec_f32 b) {
    return _mm256_blendv_ps(_mm256_max_ps(b, a), b, _mm256_cmp_ps(b, b, _CMP_UNORD_Q));
}
MG_INLINE vec_f64 v_largest_f64(vec_f64 a, vec_f64 b) {
    return _mm256_blendv_pd(_mm256_max_pd(b, a), b, _mm256_cmp_pd(b, b, _CMP_UNORD_Q));
}
MG_INLINE vec_f32 v_clip_f32(vec_f32 a, vec_f32 b) { return v_max_f32(-b, v_min_f32(a, b)); }
MG_INLINE vec_f64 v_clip_f64(vec_f64 a, vec_f64 b) { return v_max_f64(-b, v_min_f64(a, b)); }
MG_INLINE vec_f32 v_farther_f32(vec_f32 a, vec_f32 b) {
    const vec_f32 sign = v_set1_f32(-0.0f);
    return _mm256_max_ps(_mm256_andnot_ps(sign, a), _mm256_andnot_ps(sign, b));
}
MG_INLINE vec_f64 v_farther_f64(vec_f64 a, vec_f64 b) {
    const vec_f64 sign = v_set1_f64(-0.0);
    return _mm256_max_pd(_mm256_andnot_pd(sign, a), _mm256_andnot_pd(sign, b));
}
MG_INLINE vec_f32 v_square_root_f32(vec_f32 a) { return _mm256_sqrt_ps(a); }
MG_INLINE vec_f64 v_square_root_f64(vec_f64 a) { return _mm256_sqrt_pd(a); }
MG_INLINE vec_f32 v_choose_less_f32(vec_f32 a, vec_f32 b, vec_f32 x, vec_f32 y) {
    return _mm256_blendv_ps(y, x, (vec_f32)(a < b));
}
MG_INLINE vec_f64 v_choose_less_f64(vec_f64 a, vec_f64 b, vec_f64 x, vec_f64 y) {
    return _mm256_blendv_pd(y, x, (vec_f64)(a < b));
}
MG_INLINE vec_f32 v_choose_passed_f32(vec_f32 a, vec_f32 b, vec_f32 x, vec_f32 y) {
    vec_f32 number = _mm256_cmp_ps(a, a, _CMP_ORD_Q);
    return _mm256_blendv_ps(y, x, _mm256_and_ps(number, _mm256_cmp_ps(b, a, _CMP_NLE_UQ)));
}
MG_INLINE vec_f64 v_choose_passed_f64(vec_f64 a, vec_f64 b, vec_f64 x, vec_f64 y) {
    vec_f64 number = _mm256_cmp_pd(a, a, _CMP_ORD_Q);
    return _mm256_blendv_pd(y, x, _mm256_and_pd(number, _mm256_cmp_pd(b, a, _CMP_NLE_UQ)));
}
MG_INLINE vec_f32 v_choose_zero_f32(vec_f32 i, uint32_t mask, vec_f32 x, vec_f32 y) {
    __m256i bits = _mm256_and_si256(_mm256_castps_si256(i), _mm256_set1_epi32((int)mask));
    __m256i zero = _mm256_cmpeq_epi32(bits, _mm256_setzero_si256());
    return _mm256_blendv_ps(y, x, _mm256_castsi256_ps(zero));
}
MG_INLINE vec_f64 v_choose_zero_f64(vec_f64 i, uint64_t mask, vec_f64 x, vec_f64 y) {
    __m256i bits = _mm256_and_si256(_mm256_castpd_si256(i), _mm256_set1_epi64x((long long)mask));
    __m256i zero = _mm256_cmpeq_epi64(bits, _mm256_setzero_si256());
    return _mm256_blendv_pd(y, x, _mm256_castsi256_pd(zero));
}
MG_INLINE bool v_inside_f32(vec_f32 x, vec_f32 low, vec_f32 high) {
    return _mm256_movemask_ps(_mm256_and_ps(_mm256_cmp_ps(x, low, _CMP_GE_OQ),
                                            _mm256_cmp_ps(x, high, _CMP_LT_OQ))) == 0xff;
}
MG_INLINE bool v_inside_f64(vec_f64 x, vec_f64 low, vec_f64 high) {
    return _mm256_movemask_pd(_mm256_and_pd(_mm256_cmp_pd(x, low, _CMP_GE_OQ),
                                            _mm256_cmp_pd(x, high, _CMP_LT_OQ))) == 0xf;
}
typedef __m256i lanes_f32;
typedef __m256i lanes_f64;
#define V_ALL_LANES_F32 _mm256_set1_epi32(-1)
#define V_ALL_LANES_F64 _mm256_set1_epi32(-1)
MG_INLINE bool v_all_f32(lanes_f32 m) { return _mm256_movemask_epi8(m) == -1; }
MG_INLINE bool v_all_f64(lanes_f64 m) { return _mm256_movemask_epi8(m) == -1; }
MG_INLINE lanes_f32 v_within_bits_f32(lanes_f32 m, vec_f32 x, uint32_t limit) {
    __m256i bits = _mm256_castps_si256(x), last = _mm256_set1_epi32((int)(limit - 1));
    return _mm256_and_si256(m, _mm256_cmpeq_epi32(_mm256_min_epu32(bits, last), bits));
}
MG_INLINE lanes_f64 v_within_bits_f64(lanes_f64 m, vec_f64 x, uint64_t limit) {
    const uint64_t sign = (uint64_t)1 << 63; /* there is no unsigned comparison */
    __m256i bits = _mm256_xor_si256(_mm256_castpd_si256(x), _mm256_set1_epi64x((long long)sign));
    __m256i end = _mm256_set1_epi64x((long long)(limit ^ sign));
    return _mm256_and_si256(m, _mm256_cmpgt_epi64(end, bits));
}
MG_INLINE vec_f32 v_most_bits(vec_f32 a, vec_f32 b) {
    return _mm256_castsi256_ps(_mm256_max_epu32(_mm256_castps_si256(a), _mm256_castps_si256(b)));
}
MG_INLINE lanes_f32 v_below_f32(lanes_f32 m, vec_f32 x, vec_f32 limit) {
    return _mm256_and_si256(m, _mm256_castps_si256(_mm256_cmp_ps(x, limit, _CMP_LT_OQ)));
}
MG_INLINE lanes_f64 v_below_f64(lanes_f64 m, vec_f64 x, vec_f64 limit) {
    return _mm256_and_si256(m, _mm256_castpd_si256(_mm256_cmp_pd(x, limit, _CMP_LT_OQ)));
}
#define w_exponent_unit_f32 0x1p-23f
#define w_exponent_unit_f64 1.0
MG_INLINE vec_f32 v_from_exponent_f32(vec_f32 k) {
    return _mm256_cvtepi32_ps(_mm256_castps_si256(k));
}
MG_INLINE vec_f64 v_from_exponent_f64(vec_f64 k) { /* there is no conversion of 64-bit integers */
    __m256i bits = _mm256_add_epi64(_mm256_castpd_si256(k), _mm256_set1_epi64x(1024LL << 52));
    bits = _mm256_or_si256(_mm256_srli_epi64(bits, 52), _mm256_set1_epi64x(0x4330000000000000));
    return _mm256_castsi256_pd(bits) - v_set1_f64(0x1p52 + 1024);
}
/* One by one: gathers are several times slower than loads on processors patched against "Gather
 * data sampling" (Intel, 2023), and elsewhere no faster. */
MG_INLINE vec_f64 v_look_up_f64(const double *table, vec_f64 i) {
    __m256i index = _mm256_and_si256(_mm256_castpd_si256(i), _mm256_set1_epi64x(15));
    return (vec_f64){table[index[0]], table[index[1]], table[index[2]], table[index[3]]};
}
MG_INLINE vec_f32 v_scale_f32(vec_f32 x, vec_f32 n) {
    __m256i t = _mm256_castps_si256(n + v_set1_f32(0x1.8p23f + 254));
    __m256i half = _mm256_srli_epi32(t, 1);
    x *= _mm256_castsi256_ps(_mm256_slli_epi32(half, 23));
    return x * _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_sub_epi32(t, half), 23));
}
MG_INLINE vec_f64 v_scale_f64(vec_f64 x, vec_f64 n) {
    __m256i t = _mm256_castpd_si256(n + v_set1_f64(0x1.8p52 + 2046));
    __m256i half = _mm256_srli_epi64(t, 1);
    x *= _mm256_castsi256_pd(_mm256_slli_epi64(half, 52));
    return x * _mm256_castsi256_pd(_mm256_slli_epi64(_mm256_sub_epi64(t, half), 52));
}
#define w_scales_any_f32 false
#define w_scales_any_f64 false
MG_INLINE vec_f32 v_scale_floor_f32(vec_f32 x, vec_f32 n) {
    __m256i t = _mm256_castps_si256(n + v_set1_f32(0x1.8p20f + 254));
    __m256i half = _mm256_srli_epi32(t, 4);
    x *= _mm256_castsi256_ps(_mm256_slli_epi32(half, 23));
    t = _mm256_sub_epi32(_mm256_srli_epi32(t, 3), half);
    return x * _mm256_castsi256_ps(_mm256_slli_epi32(t, 23));
}
MG_INLINE vec_f64 v_scale_floor_f64(vec_f64 x, vec_f64 n) {
    __m256i t = _mm256_castpd_si256(n + v_set1_f64(0x1.8p49 + 2046));
    __m256i half = _mm256_srli_epi64(t, 4);
    x *= _mm256_castsi256_pd(_mm256_slli_epi64(half, 52));
    t = _mm256_sub_epi64(_mm256_srli_epi64(t, 3), half);
    return x * _mm256_castsi256_pd(_mm256_slli_epi64(t, 52));
}
MG_INLINE vec_f32 v_look_up_8_f32(const float *table, vec_f32 i) {
    vec_f32 held = v_load_f32(table);
    MG_HELD(held); /* as w_look_up_held */
    return _mm256_permutevar8x32_ps(held, _mm256_castps_si256(i));
}
/* Looks up the halves of the numbers. The shuffles of the table itself are done once, outside the
 * loop. */
MG_INLINE vec_f64 v_look_up_8_f64(const double *table, vec_f64 i) {
    vec_f32 a = _mm256_castpd_ps(v_load_f64(table)), b = _mm256_castpd_ps(v_load_f64(table + 4));
    vec_f64 low = _mm256_castps_pd(_mm256_shuffle_ps(a, b, 0x88));
    vec_f64 high = _mm256_castps_pd(_mm256_shuffle_ps(a, b, 0xdd));
    __m256i index = _mm256_castps_si256(_mm256_moveldup_ps(_mm256_castpd_ps(i)));
    low = _mm256_permute4x64_pd(low, 0xd8), high = _mm256_permute4x64_pd(high, 0xd8);
    /* keeps them in registers: from memory the permutation takes twice as long */
    __asm__("" : "+x"(low), "+x"(high));
    a = _mm256_permutevar8x32_ps(_mm256_castpd_ps(low), index);
    b = _mm256_permutevar8x32_ps(_mm256_castpd_ps(high), index);
    return _mm256_castps_pd(_mm256_blend_ps(a, b, 0xaa));
}
MG_INLINE vec_f32 v_look_up_f32(const float *table, vec_f32 i) {
    __m256i index = _mm256_castps_si256(i);
    vec_f32 low = _mm256_permutevar8x32_ps(v_load_f32(table), index);
    vec_f32 high = _mm256_permutevar8x32_ps(v_load_f32(table + 8), index);
    return _mm256_blendv_ps(low, high, _mm256_castsi256_ps(_mm256_slli_epi32(index, 28)));
}
/* The same with the table in registers. Permuting from memory takes two cycles, from registers
 * one. */
MG_INLINE vec_f32 v_look_up_held_f32(const float *table, vec_f32 i) {
    __m256i index = _mm256_castps_si256(i);
    vec_f32 low = v_load_f32(table), high = v_load_f32(table + 8);
    MG_HELD(low);
    MG_HELD(high);
    low = _mm256_permutevar8x32_ps(low, index);
    high = _mm256_permutevar8x32_ps(high, index);
    return _mm256_blendv_ps(low, high, _mm256_castsi256_ps(_mm256_slli_epi32(index, 28)));
}
MG_INLINE vec_f32 v_look_up_32(const float *table, vec_f32 i) {
    __m256i fourth = _mm256_slli_epi32(_mm256_castps_si256(i), 27);
    vec_f32 low = v_look_up_f32(table, i), high = v_look_up_f32(table + 16, i);
    return _mm256_blendv_ps(low, high, _mm256_castsi256_ps(fourth));
}
MG_INLINE vec_f64 v_load_floats(const float *p) { return _mm256_cvtps_pd(_mm_loadu_ps(p)); }
MG_INLINE vec_f64 v_load_sums_of_floats(const float *p, const float *q) {
    return _mm256_cvtps_pd(_mm_add_ps(_mm_loadu_ps(p), _mm_loadu_ps(q)));
}
MG_INLINE void v_store_floats(float *p, vec_f64 x) { _mm_storeu_ps(p, _mm256_cvtpd_ps(x)); }
#endif

/* True if all lanes are within the limit, compared as integers, or below it, for non-negative
 * numbers. The largest is taken first, as integers. A float comparison would take the place of a
 * multiply-add. A maximum of integers runs on any unit. */
MG_INLINE bool v_all_within_f32(const vec_f32 *x, uint32_t limit) {
    vec_f32 most = x[0];
    for (int k = 1; k < WIDE_VECTORS; k++) most = v_most_bits(most, x[k]);
    return v_all_f32(v_within_bits_f32(V_ALL_LANES_F32, most, limit));
}
MG_INLINE bool v_all_below_f32(const vec_f32 *x, float limit) {
    return v_all_within_f32(x, v_bits_f32(limit));
}
#if defined(__AVX512F__)
MG_INLINE bool v_all_within_f64(const vec_f64 *x, uint64_t limit) {
    __m512i most = _mm512_castpd_si512(x[0]);
    for (int k = 1; k < WIDE_VECTORS; k++)
        most = _mm512_max_epu64(most, _mm512_castpd_si512(x[k]));
    return v_all_f64(v_within_bits_f64(V_ALL_LANES_F64, _mm512_castsi512_pd(most), limit));
}
MG_INLINE bool v_all_below_f64(const vec_f64 *x, double limit) {
    return v_all_within_f64(x, v_bits_f64(limit));
}
#else /* AVX2 has no maximum of 64-bit integers */
MG_INLINE bool v_all_below_f64(const vec_f64 *x, double limit) {
    lanes_f64 all = V_ALL_LANES_F64;
    for (int k = 0; k < WIDE_VECTORS; k++) all = v_below_f64(all, x[k], v_set1_f64(limit));
    return v_all_f64(all);
}
#endif

typedef uint32_t wide_bits_f32;
typedef uint64_t wide_bits_f64;
typedef uint32_t wide_bits_vec_f32 __attribute__((vector_size(MG_VECTOR_BYTES)));
typedef uint64_t wide_bits_vec_f64 __attribute__((vector_size(MG_VECTOR_BYTES)));

#define MG_REAL 32
#include "wide.inc.h"
#define MG_REAL 64
#include "wide.inc.h"

/* True if low <= bits < high in every lane */
MG_INLINE bool w_within_bits_f32(wide_f32 x, uint32_t low, uint32_t high) {
    return v_all_within_f32(w_add_bits_f32(x, -low).v, high - low);
}
#if defined(__AVX512F__)
MG_INLINE bool w_within_bits_f64(wide_f64 x, uint64_t low, uint64_t high) {
    return v_all_within_f64(w_add_bits_f64(x, -low).v, high - low);
}
#else
#define w_within_bits_f64 w_each_within_bits_f64
#endif

/* sqrt(a) for a = 0 and a from 2^-900 on; NaN below 0 */
MG_INLINE wide_f64 w_near_root_f64(wide_f64 a) {
#if defined(__AVX512F__)
    /* tested in the loop, as a second version of every loop would be long */
    if (mg_system_roots()) return w_sqrt_f64(a);
    wide_f64 y;
    for (int k = 0; k < WIDE_VECTORS; k++) y.v[k] = v_rough_root_inverse_or_zero(a.v[k]);
    return w_root_steps_f64(a, y);
#else
    return w_sqrt_f64(a);
#endif
}
#define w_near_root_f32 w_sqrt_f32 /* other work hides the latency of the instruction */
MG_INLINE wide_f32 w_look_up_8_f32(const float *table, wide_f32 i) {
    for (int k = 0; k < WIDE_VECTORS; k++) i.v[k] = v_look_up_8_f32(table, i.v[k]);
    return i;
}
MG_INLINE wide_f64 w_look_up_8_f64(const double *table, wide_f64 i) {
    for (int k = 0; k < WIDE_VECTORS; k++) i.v[k] = v_look_up_8_f64(table, i.v[k]);
    return i;
}
#define w_look_up_held_f64 w_look_up_f64
#if defined(__AVX512F__)
#define w_look_up_held_f32 w_look_up_f32
#else
/* 1 / sqrt(a) to 11 bits */
MG_INLINE wide_f32 w_rough_root_inverse_f32(wide_f32 a) {
    for (int k = 0; k < WIDE_VECTORS; k++) a.v[k] = _mm256_rsqrt_ps(a.v[k]);
    return a;
}
MG_INLINE wide_f32 w_look_up_held_f32(const float *table, wide_f32 i) {
    for (int k = 0; k < WIDE_VECTORS; k++) i.v[k] = v_look_up_held_f32(table, i.v[k]);
    return i;
}
/* Loads rows of two numbers, at byte offsets given by the bits of `at`, as two vectors. Each row is
 * combined with another by a broadcast and a load that reads one row too many. The table therefore
 * has a row more. */
MG_INLINE void w_load_pairs(const double (*rows)[2], const double *at, wide_f64 *a, wide_f64 *b) {
    const char *from = (const char *)rows;
    for (int k = 0; k < WIDE_VECTORS; k++, at += 4) {
        vec_f32 half[2];
        for (int j = 0; j < 2; j++) {
            half[j] = _mm256_broadcast_ps((const __m128 *)(from + v_bits_f64(at[j + 2])));
            __asm__("" : "+x"(half[j]));
            const float *low = (const float *)(from + v_bits_f64(at[j]));
            half[j] = _mm256_blend_ps(half[j], _mm256_loadu_ps(low), 0x0f);
        }
        vec_f64 even = _mm256_castps_pd(half[0]), odd = _mm256_castps_pd(half[1]);
        a->v[k] = _mm256_unpacklo_pd(even, odd);
        b->v[k] = _mm256_unpackhi_pd(even, odd);
    }
}
#endif
MG_INLINE wide_f32 w_scale_floor_f32(wide_f32 x, wide_f32 n) {
    for (int k = 0; k < WIDE_VECTORS; k++) x.v[k] = v_scale_floor_f32(x.v[k], n.v[k]);
    return x;
}
MG_INLINE wide_f64 w_scale_floor_f64(wide_f64 x, wide_f64 n) {
    for (int k = 0; k < WIDE_VECTORS; k++) x.v[k] = v_scale_floor_f64(x.v[k], n.v[k]);
    return x;
}
/* table[i mod 32] */
MG_INLINE wide_f32 w_look_up_32_f32(const float *table, wide_f32 i) {
    for (int k = 0; k < WIDE_VECTORS; k++) i.v[k] = v_look_up_32(table, i.v[k]);
    return i;
}

#else
#define MG_HAS_WIDE 0
typedef float wide_f32;
typedef double wide_f64;
MG_INLINE void w_map_f32(float *restrict out, const float *restrict x, int64_t n,
                         float (*f)(float)) {
    for (int64_t i = 0; i < n; i++) out[i] = f(x[i]);
}
MG_INLINE void w_map_f64(double *restrict out, const double *restrict x, int64_t n,
                         double (*f)(double)) {
    for (int64_t i = 0; i < n; i++) out[i] = f(x[i]);
}
MG_INLINE void w_map_2_f32(float *restrict out, const float *restrict x, const float *restrict y,
                           int64_t n, float (*f)(float, float)) {
    for (int64_t i = 0; i < n; i++) out[i] = f(x[i], y[i]);
}
MG_INLINE void w_map_2_f64(double *restrict out, const double *restrict x,
                           const double *restrict y, int64_t n, double (*f)(double, double)) {
    for (int64_t i = 0; i < n; i++) out[i] = f(x[i], y[i]);
}
MG_INLINE void w_map_partial_f32(float *out, const float *g, const float *restrict x,
                             const float *restrict y, int64_t n, float (*f)(float, float)) {
    for (int64_t i = 0; i < n; i++) out[i] = g[i] == 0 ? 0 : g[i] * f(x[i], y[i]);
}
MG_INLINE void w_map_partial_f64(double *out, const double *g, const double *restrict x,
                             const double *restrict y, int64_t n, double (*f)(double, double)) {
    for (int64_t i = 0; i < n; i++) out[i] = g[i] == 0 ? 0 : g[i] * f(x[i], y[i]);
}
MG_INLINE void w_map_parts_f32(float *restrict out, const float *restrict x, int64_t n,
                               float (*f)(float, float *), float (*g)(float, float, float)) {
    for (int64_t i = 0; i < n; i++) {
        float low, high = f(x[i], &low);
        out[i] = g(x[i], high, low);
    }
}
MG_INLINE void w_map_parts_f64(double *restrict out, const double *restrict x, int64_t n,
                               double (*f)(double, double *), double (*g)(double, double, double)) {
    for (int64_t i = 0; i < n; i++) {
        double low, high = f(x[i], &low);
        out[i] = g(x[i], high, low);
    }
}
MG_INLINE void w_map_inside_f32(float *restrict out, const float *restrict x, int64_t n,
                                float (*f)(float), float (*g)(float), float limit) {
    (void)f, (void)limit;
    w_map_f32(out, x, n, g);
}
MG_INLINE void w_map_inside_f64(double *restrict out, const double *restrict x, int64_t n,
                                double (*f)(double), double (*g)(double), double limit) {
    (void)f, (void)limit;
    w_map_f64(out, x, n, g);
}
MG_INLINE void w_map_any_f32(float *restrict out, const float *restrict x, int64_t n,
                             void (*f)(float *restrict, const float *restrict, int64_t)) {
    f(out, x, n);
}
MG_INLINE void w_map_any_f64(double *restrict out, const double *restrict x, int64_t n,
                             void (*f)(double *restrict, const double *restrict, int64_t)) {
    f(out, x, n);
}
#endif
#endif
