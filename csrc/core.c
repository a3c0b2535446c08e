/* core.c: what is the same whatever the instruction set, as one translation unit. */
#include "minigrad.h"
#include "base/platform.h"

MG_PLANNING
#include "base/error.c"
#include "base/system.c"
#include "base/isa.c"
MG_PLANNING_END
#include "memory/blocks.c"
#include "memory/buffer.c"
#include "memory/array.c"
#include "memory/saved.c"
#include "threads/pool.c"
#include "lapack/systems.c"
#include "distance/distance.c"
#include "sets/count.c"
