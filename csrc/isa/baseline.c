#define MG_ISA baseline
#include "kernels.c"
