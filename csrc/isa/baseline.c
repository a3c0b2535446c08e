#define MG_ISA "baseline"
#include "../core.c"
