#define MG_ISA avx512
#include "kernels.c"
