#define MG_ISA "avx512"
#include "../core.c"
