/* sizes.h: the constants of sizes.def as enumerators. */
#ifndef MG_SIZES_H
#define MG_SIZES_H

#include "simd/vec.h"

#if defined(__aarch64__)
#define MG_SIZE_BY_VECTORS(name, by64, by32, by16, neon, unit, families) name = neon,
#elif MG_VECTOR_BYTES == 64
#define MG_SIZE_BY_VECTORS(name, by64, by32, by16, neon, unit, families) name = by64,
#elif MG_VECTOR_BYTES == 32
#define MG_SIZE_BY_VECTORS(name, by64, by32, by16, neon, unit, families) name = by32,
#else
#define MG_SIZE_BY_VECTORS(name, by64, by32, by16, neon, unit, families) name = by16,
#endif
#define MG_SIZE(name, value, unit, families) name = value,
enum {
#include "sizes.def"
};
#undef MG_SIZE
#undef MG_SIZE_BY_VECTORS

#endif
