#define MG_ISA "neon"
#include "../core.c"
