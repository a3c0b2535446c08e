/* platform.h: what every C file may rely on. */
#ifndef MG_PLATFORM_H
#define MG_PLATFORM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MG_INLINE static inline __attribute__((always_inline, unused))
/* One compiled copy for all callers: gcc would make another for those that pass a constant. */
#if defined(__clang__)
#define MG_NOINLINE __attribute__((noinline))
#else
#define MG_NOINLINE __attribute__((noinline, noclone))
#endif
/* Before a loop of constant length over registers: unroll it whole, early enough that the array it
 * walks becomes registers. (clang takes `GCC unroll` for a hint to a later pass: too late.) */
#if defined(__clang__)
#define MG_UNROLL _Pragma("clang loop unroll(full)")
#else
#define MG_UNROLL _Pragma("GCC unroll 16")
#endif
/* Before a loop over arrays that are the same or do not overlap: `restrict` is lost where a function
 * is inlined, and the compiler then checks, and keeps a scalar loop for when they do. On a line of
 * its own it also says that the loop must become vectors, which csrc/vectorised.py checks. (clang would
 * warn of those that cannot.) */
#if defined(__clang__)
#define MG_APART
#else
#define MG_APART _Pragma("GCC ivdep")
#endif
#define MG_LIKELY(x) __builtin_expect(!!(x), 1)
#define MG_UNLIKELY(x) __builtin_expect(!!(x), 0)

MG_INLINE int64_t mg_min(int64_t a, int64_t b) { return a < b ? a : b; }
MG_INLINE int64_t mg_max(int64_t a, int64_t b) { return a > b ? a : b; }
MG_INLINE int64_t mg_ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

#endif
