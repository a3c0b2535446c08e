/* sqrt.h: square roots of a chunk, correctly rounded, for both float widths. */
#ifndef MG_VMATH_SQRT_H
#define MG_VMATH_SQRT_H

#include "roots.h"
#include "simd/wide.h"

#define MG_REAL 32
#include "sqrt.inc.h"
#define MG_REAL 64
#include "sqrt.inc.h"

#endif
