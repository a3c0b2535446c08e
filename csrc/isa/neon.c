#define MG_ISA neon
#include "kernels.c"
