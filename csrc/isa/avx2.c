#define MG_ISA avx2
#include "kernels.c"
