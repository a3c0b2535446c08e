/* vec.h: one vector type per float width for the instruction set being compiled.
 *
 * Types `vec_f32` and `vec_f64` are native vectors, so `+ - * /` work on them in gcc and clang.
 * Every other operation is an inline function with the type as its suffix. Kernels compiled for
 * both widths write `v_load(p)` and get the right one through real.h. Loads and stores never need
 * alignment.
 */
#ifndef MG_SIMD_VEC_H
#define MG_SIMD_VEC_H

#include "base/platform.h"

#if defined(__AVX512F__)
#include <immintrin.h>
typedef __m512 vec_f32;
typedef __m512d vec_f64;
#define MG_VECTOR_BYTES 64
MG_INLINE vec_f32 v_load_f32(const float *p) { return _mm512_loadu_ps(p); }
MG_INLINE vec_f64 v_load_f64(const double *p) { return _mm512_loadu_pd(p); }
MG_INLINE void v_store_f32(float *p, vec_f32 v) { _mm512_storeu_ps(p, v); }
MG_INLINE void v_store_f64(double *p, vec_f64 v) { _mm512_storeu_pd(p, v); }
MG_INLINE vec_f32 v_set1_f32(float s) { return _mm512_set1_ps(s); }
MG_INLINE vec_f64 v_set1_f64(double s) { return _mm512_set1_pd(s); }
MG_INLINE vec_f32 v_fma_f32(vec_f32 a, vec_f32 b, vec_f32 c) { return _mm512_fmadd_ps(a, b, c); }
MG_INLINE vec_f64 v_fma_f64(vec_f64 a, vec_f64 b, vec_f64 c) { return _mm512_fmadd_pd(a, b, c); }

/* Only the first n lanes (0 <= n <= lanes). The other lanes read as zero and are not written. */
MG_INLINE vec_f32 v_load_n_f32(const float *p, int n) {
    return _mm512_maskz_loadu_ps((__mmask16)((1u << n) - 1), p);
}
MG_INLINE vec_f64 v_load_n_f64(const double *p, int n) {
    return _mm512_maskz_loadu_pd((__mmask8)((1u << n) - 1), p);
}
MG_INLINE void v_store_n_f32(float *p, vec_f32 v, int n) {
    _mm512_mask_storeu_ps(p, (__mmask16)((1u << n) - 1), v);
}
MG_INLINE void v_store_n_f64(double *p, vec_f64 v, int n) {
    _mm512_mask_storeu_pd(p, (__mmask8)((1u << n) - 1), v);
}
/* Only the lanes whose bits are set. */
MG_INLINE vec_f32 v_load_some_f32(const float *p, unsigned lanes) {
    return _mm512_maskz_loadu_ps((__mmask16)lanes, p);
}
MG_INLINE vec_f64 v_load_some_f64(const double *p, unsigned lanes) {
    return _mm512_maskz_loadu_pd((__mmask8)lanes, p);
}

#else

#if defined(__AVX2__) && defined(__FMA__)
#include <immintrin.h>
typedef __m256 vec_f32;
typedef __m256d vec_f64;
#define MG_VECTOR_BYTES 32
MG_INLINE vec_f32 v_fma_f32(vec_f32 a, vec_f32 b, vec_f32 c) { return _mm256_fmadd_ps(a, b, c); }
MG_INLINE vec_f64 v_fma_f64(vec_f64 a, vec_f64 b, vec_f64 c) { return _mm256_fmadd_pd(a, b, c); }
#define MG_HAS_MASKS 1
/* Lane masks from a sliding window: n ones, then zeros. */
static const int32_t vec_window[16] = {-1, -1, -1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0};
MG_INLINE __m256i vec_mask_32(int n) {
    return _mm256_loadu_si256((const __m256i *)(vec_window + 8 - n));
}
MG_INLINE __m256i vec_mask_64(int n) {
    return _mm256_loadu_si256((const __m256i *)(vec_window + 8 - 2 * n));
}
MG_INLINE vec_f32 v_load_n_f32(const float *p, int n) {
    return _mm256_maskload_ps(p, vec_mask_32(n));
}
MG_INLINE vec_f64 v_load_n_f64(const double *p, int n) {
    return _mm256_maskload_pd(p, vec_mask_64(n));
}
/* Without masks: an AMD processor takes 16 cycles for a masked store of any length. */
MG_INLINE void v_store_n_f32(float *p, vec_f32 v, int n) {
    __m128 part = _mm256_castps256_ps128(v);
    if (n & 8) {
        _mm256_storeu_ps(p, v);
        return;
    }
    if (n & 4) {
        _mm_storeu_ps(p, part);
        part = _mm256_extractf128_ps(v, 1);
        p += 4;
    }
    if (n & 2) {
        _mm_storel_pi((__m64 *)p, part);
        part = _mm_movehl_ps(part, part);
        p += 2;
    }
    if (n & 1) _mm_store_ss(p, part);
}
MG_INLINE void v_store_n_f64(double *p, vec_f64 v, int n) {
    __m128d part = _mm256_castpd256_pd128(v);
    if (n & 4) {
        _mm256_storeu_pd(p, v);
        return;
    }
    if (n & 2) {
        _mm_storeu_pd(p, part);
        part = _mm256_extractf128_pd(v, 1);
        p += 2;
    }
    if (n & 1) _mm_store_sd(p, part);
}

#else
typedef float vec_f32 __attribute__((vector_size(16)));
typedef double vec_f64 __attribute__((vector_size(16)));
#define MG_VECTOR_BYTES 16
#if defined(__aarch64__)
#include <arm_neon.h>
MG_INLINE vec_f32 v_fma_f32(vec_f32 a, vec_f32 b, vec_f32 c) {
    return (vec_f32)vfmaq_f32((float32x4_t)c, (float32x4_t)a, (float32x4_t)b);
}
MG_INLINE vec_f64 v_fma_f64(vec_f64 a, vec_f64 b, vec_f64 c) {
    return (vec_f64)vfmaq_f64((float64x2_t)c, (float64x2_t)a, (float64x2_t)b);
}
#else
/* There is no fused multiply-add here, so two roundings. */
MG_INLINE vec_f32 v_fma_f32(vec_f32 a, vec_f32 b, vec_f32 c) { return a * b + c; }
MG_INLINE vec_f64 v_fma_f64(vec_f64 a, vec_f64 b, vec_f64 c) { return a * b + c; }
#endif
#endif

MG_INLINE vec_f32 v_load_f32(const float *p) {
    vec_f32 v;
    __builtin_memcpy(&v, p, sizeof v);
    return v;
}
MG_INLINE vec_f64 v_load_f64(const double *p) {
    vec_f64 v;
    __builtin_memcpy(&v, p, sizeof v);
    return v;
}
MG_INLINE void v_store_f32(float *p, vec_f32 v) { __builtin_memcpy(p, &v, sizeof v); }
MG_INLINE void v_store_f64(double *p, vec_f64 v) { __builtin_memcpy(p, &v, sizeof v); }
MG_INLINE vec_f32 v_set1_f32(float s) { return s - (vec_f32){0}; }
MG_INLINE vec_f64 v_set1_f64(double s) { return s - (vec_f64){0}; }
#ifndef MG_HAS_MASKS
MG_INLINE vec_f32 v_load_n_f32(const float *p, int n) {
    vec_f32 v = {0};
    __builtin_memcpy(&v, p, (size_t)n * sizeof *p);
    return v;
}
MG_INLINE vec_f64 v_load_n_f64(const double *p, int n) {
    vec_f64 v = {0};
    __builtin_memcpy(&v, p, (size_t)n * sizeof *p);
    return v;
}
MG_INLINE void v_store_n_f32(float *p, vec_f32 v, int n) {
    __builtin_memcpy(p, &v, (size_t)n * sizeof *p);
}
MG_INLINE void v_store_n_f64(double *p, vec_f64 v, int n) {
    __builtin_memcpy(p, &v, (size_t)n * sizeof *p);
}
#endif
#endif

/* Non-temporal store of a vector to a multiple of its size: the cache line is not read first. Other
 * threads may not see the vector before v_stream_end. */
#if defined(__x86_64__)
#include <xmmintrin.h>
MG_INLINE void v_stream(void *to, vec_f32 v) {
#if MG_VECTOR_BYTES == 64
    _mm512_stream_ps(to, v);
#elif MG_VECTOR_BYTES == 32
    _mm256_stream_ps(to, v);
#else
    _mm_stream_ps(to, v);
#endif
}
MG_INLINE void v_stream_end(void) { _mm_sfence(); }
#else
MG_INLINE void v_stream(void *to, vec_f32 v) { v_store_f32(to, v); }
MG_INLINE void v_stream_end(void) {}
#endif

/* Scalar fused multiply-add: one instruction if the processor has one, and never a library call. */
#if defined(__FMA__) || defined(__aarch64__)
MG_INLINE float fma_f32(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
MG_INLINE double fma_f64(double a, double b, double c) { return __builtin_fma(a, b, c); }
#define MG_HAS_FMA 1
#else
MG_INLINE float fma_f32(float a, float b, float c) { return a * b + c; }
MG_INLINE double fma_f64(double a, double b, double c) { return a * b + c; }
#define MG_HAS_FMA 0
#endif

#endif
