/* platform.h: attributes, pragmas and small helpers that every C file may use. */
#ifndef MG_PLATFORM_H
#define MG_PLATFORM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MG_INLINE static inline __attribute__((always_inline, unused))
/* A function with one compiled copy for all callers. gcc would otherwise clone it for constant
 * arguments. `unused`: headers hold some that not every file calls. */
#if defined(__clang__)
#define MG_NOINLINE __attribute__((noinline, unused))
#else
#define MG_NOINLINE __attribute__((noinline, noclone, unused))
#endif
/* A variable of another translation unit of this library. Its address needs no look-up at run
 * time. */
#define MG_OWN __attribute__((visibility("hidden")))
#define MG_QUOTED(text) MG_QUOTED_TEXT(text)
#define MG_QUOTED_TEXT(text) #text
/* The files of kernels/ and vmath/ are compiled once for each instruction set, MG_ISA, and linked
 * into one library. These macros declare each kernel of ops.def and the functions that such files
 * share. C calls a function `name`, and the linker calls it name_avx2 and so on. */
#ifdef MG_ISA
#define MG_LINKED_AS(name)                                                                         \
    __asm__(MG_QUOTED(__USER_LABEL_PREFIX__) MG_QUOTED(name) "_" MG_QUOTED(MG_ISA))
#define MG_SHARED(type, name, args) extern MG_OWN type name args MG_LINKED_AS(name)
#define MG_SHARED_TABLE(type, name) extern MG_OWN type name MG_LINKED_AS(name)
#define MG_KERNEL(type, name, args, operation) MG_SHARED(type, name, args);
#endif
/* Encloses loops over several vectors, each with one long chain of dependent operations. In
 * between, gcc schedules instructions before register allocation, with register pressure in mind.
 * Chains then stand further apart where 32 vector registers allow. By default gcc schedules only
 * after register allocation, when reused registers hold instructions back. Without a chain, as for
 * roots, the default is better. */
#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ >= 12 && defined(__AVX512F__)
#define MG_CHAINS                                                                                  \
    _Pragma("GCC push_options") _Pragma("GCC optimize(\"schedule-insns\", \"sched-pressure\")")
#define MG_CHAINS_END _Pragma("GCC pop_options")
#else
#define MG_CHAINS
#define MG_CHAINS_END
#endif
/* Before a loop of constant length over registers: unrolls all of it. This happens early enough for
 * the array it walks to become registers. (clang takes `GCC unroll` for a hint to a later pass,
 * which is too late.) */
#if defined(__clang__)
#define MG_UNROLL _Pragma("clang loop unroll(full)")
#else
#define MG_UNROLL _Pragma("GCC unroll 16")
#endif
/* Before a loop of few instructions, which would be slower where it crosses a line of the
 * instruction cache. */
#if defined(__clang__)
#define MG_UNROLL_4 _Pragma("clang loop unroll_count(4)")
#else
#define MG_UNROLL_4 _Pragma("GCC unroll 4")
#endif
/* Before a loop over arrays that are the same or do not overlap. `restrict` is lost when a function
 * is inlined. The compiler then checks for overlap, and keeps a scalar loop. On a line of its own
 * it also says that the loop must be vectorised, which csrc/vectorised.py checks. (clang would warn
 * of loops that it cannot vectorise.) */
#if defined(__clang__)
#define MG_APART
#else
#define MG_APART _Pragma("GCC ivdep")
#endif
/* In a loop that is rarely taken or short: prevents vectorisation, and calls of memcpy or
 * memset. */
#define MG_AS_IT_IS __asm__ volatile("")
/* Before a loop of few rounds: prevents unrolling. */
#define MG_ROLLED _Pragma("GCC unroll 1")
/* From here on the compiler knows of a pointer only that it is in a register. It therefore computes
 * the address before its use, and reads again what was read through the pointer. A multiply-add
 * that reads memory is one operation to the front end if its address has no index, else two. */
#define MG_ANEW(pointer) __asm__("" : "+r"(pointer))
/* Keeps a vector that was loaded in a register for all its uses, so that none of them loads it
 * again. */
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
