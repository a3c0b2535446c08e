/* program.h: recorded programs, lists of operations that are run again in one call. */
#ifndef MG_PROGRAM_H
#define MG_PROGRAM_H

#include "../base/gil.h"
#include "../memory/array.h"

/* One operation of a program. Slots are numbers of arrays; -1 stands for NULL. */
typedef struct {
    int32_t op;
    int32_t expected; /* the answer of a question that was recorded; -1 for any other operation */
    int32_t inputs, outputs, releases;
    const int32_t *in, *out, *release; /* slots read, made, and released afterwards */
    const int8_t *least;               /* the least dtype that each input may have */
    int32_t saved[3];                  /* slots of the saved arrays */
    bool has_saved, makes;
    uint32_t spare;                    /* bit i: input i is read for the last time, and may be written over */
    int64_t *ints;
    double *floats;
} program_step;

/* The look that a given array must have. `alias` is the first given array on its buffer. */
typedef struct {
    int32_t dtype, ndim, alias;
    const int64_t *shape, *strides;
} program_given;

enum { PROGRAM_MEMORY = 11 }; /* blocks that a program has */

struct mg_program {
    int32_t slots, given, steps;
    int32_t at; /* the step that runs next */
    void *_Atomic owner; /* the thread that runs it; NULL between runs */
    int64_t int_count, float_count; /* live numbers */
    mg_array **arrays;              /* by slot */
    program_step *list;
    program_given *expected;
    int64_t **live_ints; /* where live numbers go */
    double **live_floats;
    int32_t *slot_pool;
    int8_t *least_pool;
    int64_t *int_pool;
    double *float_pool;
    mg_array **in; /* the inputs of one step */
    uint64_t *table; /* hash table of buffers, each with the first array on it */
    int64_t table_mask;
    bool writes; /* arrays that are given: then it counts which share memory */
    void *memory[PROGRAM_MEMORY];
};

#endif
