/* kernels.c: all kernels as one translation unit, compiled once for every instruction set (isa/), whose
 * name MG_ISA is. Nothing of it is known outside but their table. */
#define MG_KERNEL(type, name, args, operation) static type name args;
#include "minigrad.h"

#include "base/isa.h"
#include "kernels/nditer.c"
#include "kernels/fill.c"
#include "kernels/copy.c"
#include "kernels/elementwise.c"
#include "kernels/reduce.c"
#include "kernels/reduce_back.c"
#include "kernels/reduce_plain.c"
#include "kernels/reduce_arg.c"
#include "kernels/softmax.c"
#include "kernels/norm.c"
#include "kernels/cross_entropy.c"
#include "kernels/scan.c"
#include "kernels/sort.c"
#include "kernels/gemm.c"
#include "kernels/matmul.c"
#include "kernels/rows.c"
#include "kernels/distance.c"
#include "kernels/attention.c"
#include "kernels/recurrent.c"
#include "kernels/index.c"
#include "kernels/window.c"
#include "kernels/tap.c"
#include "kernels/box.c"
#include "kernels/conv.c"
#include "kernels/random.c"
#include "kernels/optim.c"

const mg_kernels MG_KERNELS(MG_ISA) = {
    .isa = MG_QUOTED(MG_ISA),
    .begin = v_begin,
#define MG_KERNEL(type, name, args, operation) .name = name,
#include "ops.def"
};
