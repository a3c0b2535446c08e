/* tables.h: what must be made before the first call of a function. */
#ifndef MG_VMATH_TABLES_H
#define MG_VMATH_TABLES_H

#include "base/platform.h"

MG_SHARED(void, v_begin, (void));

#endif
