/* exponent.h: numbers with separate exponents, for products that overflow or underflow on the way.
 *
 * Fast loops do not check for that. The processor records overflow and underflow in sticky flags.
 * If one is set, the product is computed again with such numbers.
 */
#ifndef MG_SIMD_EXPONENT_H
#define MG_SIMD_EXPONENT_H

#include "base/platform.h"

#include <float.h>
#include <math.h>
#if defined(__SSE2__)
#include <emmintrin.h>
#elif !defined(__aarch64__)
#include <fenv.h>
#endif

/* The number part * 2^(512 power). The part is between 2^-256 and 2^256, or 0, infinite or NaN. */
typedef struct {
    double part;
    int64_t power;
} apart;

MG_INLINE apart apart_settled(apart a) {
    while (MG_UNLIKELY(fabs(a.part) > 0x1p256 && fabs(a.part) <= DBL_MAX)) {
        a.part *= 0x1p-512;
        a.power++;
    }
    while (MG_UNLIKELY(fabs(a.part) < 0x1p-256 && a.part != 0)) {
        a.part *= 0x1p512;
        a.power--;
    }
    return a;
}

MG_INLINE apart apart_of(double x) { return apart_settled((apart){x, 0}); }

MG_INLINE apart apart_times(apart a, apart b) {
    return apart_settled((apart){a.part * b.part, a.power + b.power});
}

/* The sum. A term that is at least 2^512 times smaller than the other is ignored. */
MG_INLINE apart apart_plus(apart a, apart b) {
    if (a.part == 0) return b;
    if (b.part == 0) return a;
    if (a.power == b.power) return apart_settled((apart){a.part + b.part, a.power});
    apart most = a.power > b.power ? a : b, least = a.power > b.power ? b : a;
    if (least.part - least.part != 0) return least;
    if (most.power - least.power == 1) most.part += least.part * 0x1p-512;
    return apart_settled(most);
}

MG_INLINE double apart_value(apart a) {
    if (a.power == 0) return a.part;
    int power = a.power > 4 ? 4 : a.power < -4 ? -4 : (int)a.power;
    return ldexp(a.part, 512 * power);
}

/* Tests whether this thread's last calculation overflowed or underflowed. First apart_watch clears
 * the flags and returns their old state. Later apart_left reads the flags and restores those that
 * were set. Only loops that read and write memory are observed. */
#if defined(__SSE2__)
enum { APART_FLAGS = 0x18 }; /* overflow and underflow */
MG_INLINE unsigned apart_flags(void) { return _mm_getcsr() & APART_FLAGS; }
MG_INLINE void apart_flags_become(unsigned flags) {
    _mm_setcsr((_mm_getcsr() & ~(unsigned)APART_FLAGS) | flags);
}
#elif defined(__aarch64__)
enum { APART_FLAGS = 0x0c };
MG_INLINE unsigned apart_flags(void) {
    uint64_t fpsr;
    __asm__ volatile("mrs %0, fpsr" : "=r"(fpsr));
    return (unsigned)fpsr & APART_FLAGS;
}
MG_INLINE void apart_flags_become(unsigned flags) {
    uint64_t fpsr;
    __asm__ volatile("mrs %0, fpsr" : "=r"(fpsr));
    fpsr = (fpsr & ~(uint64_t)APART_FLAGS) | flags;
    __asm__ volatile("msr fpsr, %0" : : "r"(fpsr));
}
#else
enum { APART_FLAGS = FE_OVERFLOW | FE_UNDERFLOW };
MG_INLINE unsigned apart_flags(void) { return (unsigned)fetestexcept(APART_FLAGS); }
MG_INLINE void apart_flags_become(unsigned flags) {
    feclearexcept(APART_FLAGS);
    if (flags) feraiseexcept((int)flags);
}
#endif

MG_INLINE unsigned apart_watch(void) {
    unsigned before = apart_flags();
    if (before) apart_flags_become(0);
    __asm__ volatile("" ::: "memory");
    return before;
}

MG_INLINE bool apart_left(unsigned before) {
    __asm__ volatile("" ::: "memory");
    bool left = apart_flags() != 0;
    if (before) apart_flags_become(before | apart_flags());
    return left;
}

#endif
