/* tables.h: fills the tables of vmath that are computed when the instruction set is chosen. */
#ifndef MG_VMATH_TABLES_H
#define MG_VMATH_TABLES_H

#include "base/platform.h"

MG_SHARED(void, v_begin, (void));

#endif
