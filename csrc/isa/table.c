/* table.c: the table of all kernels of one instruction set, MG_ISA. */
#include "isa.h"
#include "vmath/tables.h"

const mg_kernels MG_KERNELS(MG_ISA) = {
    .isa = MG_QUOTED(MG_ISA),
    .begin = v_begin,
#define MG_KERNEL(type, name, args, operation) .name = name,
#include "ops.def"
};
