/* isa.h: the type of the table of all kernels of one instruction set. */
#ifndef MG_ISA_H
#define MG_ISA_H

#include "minigrad.h"

typedef struct {
    const char *isa;
    void (*begin)(void); /* called once, before the others */
#define MG_KERNEL(type, name, args, operation) type(*name) args;
#include "ops.def"
} mg_kernels;

/* Name of the table of an instruction set. */
#define MG_KERNELS(isa) MG_KERNELS_OF(isa)
#define MG_KERNELS_OF(isa) mg_kernels_##isa

#endif
