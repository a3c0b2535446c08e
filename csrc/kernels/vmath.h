/* vmath.h: elementary functions for vector loops, both float widths, the errors beside each. */
#ifndef MG_VMATH_H
#define MG_VMATH_H
#include "vmath_f32.h"
#include "vmath_f64.h"
#include "vmath_pow.h"
#include "vmath_trig.h"
#endif
