/* transpose.h: transposes of squares of vectors in registers, and every second element of a row. */
#ifndef MG_SIMD_TRANSPOSE_H
#define MG_SIMD_TRANSPOSE_H

#include "vec.h"

/* Lane numbers that interleave the lower (LO) or upper (HI) halves of two vectors. */
#define TRANSPOSE_LO_2 0, 2
#define TRANSPOSE_HI_2 1, 3
#define TRANSPOSE_LO_4 0, 4, 1, 5
#define TRANSPOSE_HI_4 2, 6, 3, 7
#define TRANSPOSE_LO_8 0, 8, 1, 9, 2, 10, 3, 11
#define TRANSPOSE_HI_8 4, 12, 5, 13, 6, 14, 7, 15
#define TRANSPOSE_LO_16 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23
#define TRANSPOSE_HI_16 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31
#if MG_VECTOR_BYTES == 64
#define TRANSPOSE_LO_f32 TRANSPOSE_LO_16
#define TRANSPOSE_HI_f32 TRANSPOSE_HI_16
#define TRANSPOSE_LO_f64 TRANSPOSE_LO_8
#define TRANSPOSE_HI_f64 TRANSPOSE_HI_8
#elif MG_VECTOR_BYTES == 32
#define TRANSPOSE_LO_f32 TRANSPOSE_LO_8
#define TRANSPOSE_HI_f32 TRANSPOSE_HI_8
#define TRANSPOSE_LO_f64 TRANSPOSE_LO_4
#define TRANSPOSE_HI_f64 TRANSPOSE_HI_4
#else
#define TRANSPOSE_LO_f32 TRANSPOSE_LO_4
#define TRANSPOSE_HI_f32 TRANSPOSE_HI_4
#define TRANSPOSE_LO_f64 TRANSPOSE_LO_2
#define TRANSPOSE_HI_f64 TRANSPOSE_HI_2
#endif
/* Lane numbers that select from two vectors:
 *   EVEN, ODD     within each 16 bytes, elements with even or odd numbers of both vectors
 *   FIRST, SECOND blocks of 16 bytes with even or odd numbers, of the first vector, then the second
 *   EVENS         elements with even numbers of the first vector and odd ones of the second */
#if MG_VECTOR_BYTES == 64
#define TRANSPOSE_EVEN_f32 0, 2, 16, 18, 4, 6, 20, 22, 8, 10, 24, 26, 12, 14, 28, 30
#define TRANSPOSE_ODD_f32 1, 3, 17, 19, 5, 7, 21, 23, 9, 11, 25, 27, 13, 15, 29, 31
#define TRANSPOSE_FIRST_f32 0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27
#define TRANSPOSE_SECOND_f32 4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23, 28, 29, 30, 31
#define TRANSPOSE_EVENS_f32 0, 2, 4, 6, 8, 10, 12, 14, 17, 19, 21, 23, 25, 27, 29, 31
#define TRANSPOSE_EVEN_f64 0, 8, 2, 10, 4, 12, 6, 14
#define TRANSPOSE_ODD_f64 1, 9, 3, 11, 5, 13, 7, 15
#define TRANSPOSE_FIRST_f64 0, 1, 4, 5, 8, 9, 12, 13
#define TRANSPOSE_SECOND_f64 2, 3, 6, 7, 10, 11, 14, 15
#define TRANSPOSE_EVENS_f64 0, 2, 4, 6, 9, 11, 13, 15
#elif MG_VECTOR_BYTES == 32
#define TRANSPOSE_EVEN_f32 0, 2, 8, 10, 4, 6, 12, 14
#define TRANSPOSE_ODD_f32 1, 3, 9, 11, 5, 7, 13, 15
#define TRANSPOSE_FIRST_f32 0, 1, 2, 3, 8, 9, 10, 11
#define TRANSPOSE_SECOND_f32 4, 5, 6, 7, 12, 13, 14, 15
#define TRANSPOSE_EVENS_f32 0, 2, 4, 6, 9, 11, 13, 15
#define TRANSPOSE_EVEN_f64 0, 4, 2, 6
#define TRANSPOSE_ODD_f64 1, 5, 3, 7
#define TRANSPOSE_FIRST_f64 0, 1, 4, 5
#define TRANSPOSE_SECOND_f64 2, 3, 6, 7
#define TRANSPOSE_EVENS_f64 0, 2, 5, 7
#else /* one block */
#define TRANSPOSE_EVEN_f32 0, 2, 4, 6
#define TRANSPOSE_ODD_f32 1, 3, 5, 7
#define TRANSPOSE_FIRST_f32 TRANSPOSE_EVEN_f32
#define TRANSPOSE_SECOND_f32 TRANSPOSE_ODD_f32
#define TRANSPOSE_EVENS_f32 0, 2, 5, 7
#define TRANSPOSE_EVEN_f64 0, 2
#define TRANSPOSE_ODD_f64 1, 3
#define TRANSPOSE_FIRST_f64 TRANSPOSE_EVEN_f64
#define TRANSPOSE_SECOND_f64 TRANSPOSE_ODD_f64
#define TRANSPOSE_EVENS_f64 0, 3
#endif
#if defined(__clang__) || __GNUC__ >= 12
#define TRANSPOSE_SHUFFLE(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define TRANSPOSE_SHUFFLE(a, b, ...)                                                               \
    __builtin_shuffle(a, b, (ireal __attribute__((vector_size(MG_VECTOR_BYTES)))){__VA_ARGS__})
#endif

#define MG_REAL 32
#include "transpose.inc.h"
#define MG_REAL 64
#include "transpose.inc.h"

#endif
