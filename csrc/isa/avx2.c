#define MG_ISA "avx2"
#include "../core.c"
