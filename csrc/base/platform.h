/* platform.h: attributes, pragmas and small helpers that every C file may use. */
#ifndef MG_PLATFORM_H
#define MG_PLATFORM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MG_INLINE static inline __attribute__((always_inline, unused))
/* One compiled copy for all callers: gcc would make another for those that pass a constant. Headers hold
 * some that not every file calls. */
#if defined(__clang__)
#define MG_NOINLINE __attribute__((noinline, unused))
#else
#define MG_NOINLINE __attribute__((noinline, noclone, unused))
#endif
/* A variable of another translation unit of this library: its address is known, and not looked up. */
#define MG_OWN __attribute__((visibility("hidden")))
#define MG_QUOTED(text) MG_QUOTED_TEXT(text)
#define MG_QUOTED_TEXT(text) #text
/* The files of kernels/ and vmath/ are compiled once for each instruction set, MG_ISA, and linked into one
 * library. Functions shared between these files, and each kernel of ops.def, are declared by these macros: C
 * calls it `name`, the linker name_avx2 and so on. */
#ifdef MG_ISA
#define MG_LINKED_AS(name)                                                                         \
    __asm__(MG_QUOTED(__USER_LABEL_PREFIX__) MG_QUOTED(name) "_" MG_QUOTED(MG_ISA))
#define MG_SHARED(type, name, args) extern MG_OWN type name args MG_LINKED_AS(name)
#define MG_SHARED_TABLE(type, name) extern MG_OWN type name MG_LINKED_AS(name)
#define MG_KERNEL(type, name, args, operation) MG_SHARED(type, name, args);
#endif
/* Between these: loops over several vectors, each one long chain of operations. gcc puts instructions in
 * order before it shares out registers too, with an eye on how many there are, so that where 32 vectors
 * fit chains stand further apart. Left alone it only does so afterwards, when registers used twice hold
 * instructions back; without a chain, as for roots, that is the better way. */
#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ >= 12 && defined(__AVX512F__)
#define MG_CHAINS                                                                                  \
    _Pragma("GCC push_options") _Pragma("GCC optimize(\"schedule-insns\", \"sched-pressure\")")
#define MG_CHAINS_END _Pragma("GCC pop_options")
#else
#define MG_CHAINS
#define MG_CHAINS_END
#endif
/* Before a loop of constant length over registers: unroll it whole, early enough that the array it
 * walks becomes registers. (clang takes `GCC unroll` for a hint to a later pass: too late.) */
#if defined(__clang__)
#define MG_UNROLL _Pragma("clang loop unroll(full)")
#else
#define MG_UNROLL _Pragma("GCC unroll 16")
#endif
/* Before a loop of few instructions, which would be slower where it crosses a line of the code's cache. */
#if defined(__clang__)
#define MG_UNROLL_4 _Pragma("clang loop unroll_count(4)")
#else
#define MG_UNROLL_4 _Pragma("GCC unroll 4")
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
/* In a loop that is rarely taken, or short: no vectors, and no call of memcpy or memset. */
#define MG_AS_IT_IS __asm__ volatile("")
/* Before one of few rounds: they are not written out. */
#define MG_ROLLED _Pragma("GCC unroll 1")
/* The compiler knows no more of a pointer from here on than that it is in a register. The address is therefore
 * added up before its use (a multiply-add that reads from memory is one operation to the processor's front
 * end if there is no index in the address, else two), and what was read through it is read again. */
#define MG_ANEW(pointer) __asm__("" : "+r"(pointer))
/* A vector that was read stays in a register for all its uses: none of them reads it again. */
#if defined(__aarch64__)
#define MG_HELD(vector) __asm__("" : "+w"(vector))
#else
#define MG_HELD(vector) __asm__("" : "+v"(vector))
#endif
#define MG_LIKELY(x) __builtin_expect(!!(x), 1)
#define MG_UNLIKELY(x) __builtin_expect(!!(x), 0)

MG_INLINE int64_t mg_min(int64_t a, int64_t b) { return a < b ? a : b; }
MG_INLINE int64_t mg_max(int64_t a, int64_t b) { return a > b ? a : b; }
MG_INLINE int64_t mg_ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

#endif
