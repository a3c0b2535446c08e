/* kernels.c: all kernels as one translation unit, compiled once for every instruction set (isa/), whose
 * name MG_ISA is. Nothing of it is known outside but their table. */
#define MG_KERNEL(type, name, args) static type name args;
#include "minigrad.h"

#include "base/isa.h"
#include "vmath/tables.c"
#include "kernels/iterate/nditer.c"
#include "kernels/iterate/fill.c"
#include "kernels/iterate/copy.c"
#include "kernels/elementwise/elementwise.c"
#include "kernels/reduce/reduce.c"
#include "kernels/reduce/backward.c"
#include "kernels/reduce/integers.c"
#include "kernels/reduce/arg.c"
#include "kernels/softmax/softmax.c"
#include "kernels/norm/norm.c"
#include "kernels/loss/cross_entropy.c"
#include "kernels/scan/scan.c"
#include "kernels/sort/sort.c"
#include "kernels/gemm/gemm.c"
#include "kernels/gemm/matmul.c"
#include "kernels/gemm/rows.c"
#include "kernels/distance/distance.c"
#include "kernels/attention/attention.c"
#include "kernels/recurrent/recurrent.c"
#include "kernels/index/index.c"
#include "kernels/pool/fold.c"
#include "kernels/resample/resample.c"
#include "kernels/pool/pool.c"
#include "kernels/conv/conv.c"
#include "kernels/random/random.c"
#include "kernels/optim/optim.c"

const mg_kernels MG_KERNELS(MG_ISA) = {
    .isa = MG_QUOTED(MG_ISA),
    .begin = v_begin,
#define MG_KERNEL(type, name, args) .name = name,
#include "kernels.def"
#undef MG_KERNEL
};
