/* program_data.h: a recorded program as data. Lists have a second name with their length. */
#ifndef PROGRAM_DATA_H
#define PROGRAM_DATA_H

#include <math.h>
#include <stdint.h>
#include <stddef.h>

/* An array that a run is given: its values in the order of memory, NULL for an argument; 1 for a
 * Python number; where the axes of the array are in memory; dtype, dimensions and shape. */
typedef struct {
    const unsigned char *values;
    int32_t weak, axes[16], dtype, ndim;
    int64_t shape[16];
} program_given_array;

typedef struct { int32_t first, second; } program_pair;
typedef struct { int32_t number; const char *name; } program_kernel;

extern const int64_t program_code[], program_code_count; /* see csrc/program/program.c */
extern const double program_floats[];
extern const int64_t program_floats_count;
extern int64_t program_live_ints[]; /* numbers of the optimizers' steps, which may be changed */
extern double program_live_floats[];
extern const int64_t program_live_ints_count, program_live_floats_count;
extern const int32_t program_counts[]; /* live integers that count the steps */
extern const int64_t program_counts_count;
extern const int64_t program_results[], program_results_count; /* slots */
extern const program_given_array program_given_arrays[];
extern const int64_t program_given_arrays_count;
extern const program_pair program_left[]; /* given arrays that a result takes the place of */
extern const int64_t program_left_count;
extern const program_pair program_shown[]; /* tensors of the result: 1 and a result, or 0 and a given array */
extern const int64_t program_shown_count;
extern const program_kernel program_kernels[]; /* the kernels that the program uses */
extern const int64_t program_kernels_count;
extern const int32_t program_arguments;  /* the first given arrays are arguments */
extern const int32_t program_operations; /* of the version that recorded the program */

#endif
