/* turn.h: squares of vectors transposed in registers: v_turn_f32, v_turn_f64. */
#ifndef MG_TURN_H
#define MG_TURN_H

#include "vec.h"

/* Lane numbers that interleave the lower (LO) or upper (HI) halves of two vectors. */
#define TURN_LO_2 0, 2
#define TURN_HI_2 1, 3
#define TURN_LO_4 0, 4, 1, 5
#define TURN_HI_4 2, 6, 3, 7
#define TURN_LO_8 0, 8, 1, 9, 2, 10, 3, 11
#define TURN_HI_8 4, 12, 5, 13, 6, 14, 7, 15
#define TURN_LO_16 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23
#define TURN_HI_16 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31
#if MG_VECTOR_BYTES == 64
#define TURN_LO_f32 TURN_LO_16
#define TURN_HI_f32 TURN_HI_16
#define TURN_LO_f64 TURN_LO_8
#define TURN_HI_f64 TURN_HI_8
#elif MG_VECTOR_BYTES == 32
#define TURN_LO_f32 TURN_LO_8
#define TURN_HI_f32 TURN_HI_8
#define TURN_LO_f64 TURN_LO_4
#define TURN_HI_f64 TURN_HI_4
#else
#define TURN_LO_f32 TURN_LO_4
#define TURN_HI_f32 TURN_HI_4
#define TURN_LO_f64 TURN_LO_2
#define TURN_HI_f64 TURN_HI_2
#endif
#if defined(__clang__) || __GNUC__ >= 12
#define TURN_SHUFFLE(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define TURN_SHUFFLE(a, b, ...)                                                                    \
    __builtin_shuffle(a, b, (ireal __attribute__((vector_size(MG_VECTOR_BYTES)))){__VA_ARGS__})
#endif

#define MG_REAL 32
#include "turn.inc.h"
#define MG_REAL 64
#include "turn.inc.h"

#endif
