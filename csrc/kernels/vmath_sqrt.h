/* vmath_sqrt.h: square roots of a chunk, correctly rounded, for both float widths. */
#ifndef MG_VMATH_SQRT_H
#define MG_VMATH_SQRT_H

#include "vmath_inverse.h"
#include "vmath_wide.h"

#define MG_REAL 32
#include "vmath_sqrt.inc.h"
#define MG_REAL 64
#include "vmath_sqrt.inc.h"

#endif
