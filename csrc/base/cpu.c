/* cpu.c: which instruction set this module was compiled for, and which this machine can run. */
#include "../minigrad.h"
#include "platform.h"

#if defined(__x86_64__)
#include <cpuid.h>

/* Extended control register 0: which register files the operating system saves and restores. */
static uint64_t cpu_xcr0(void) {
    uint32_t low, high;
    __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (uint64_t)high << 32 | low;
}

/* Intel SDM vol. 1, 14.3 and 15.2-15.4: the processor's bits count only with the system's. */
const char *mg_best_isa(void) {
    uint32_t a, b, c, d;
    if (!__get_cpuid(1, &a, &b, &c, &d)) return "baseline";
    bool osxsave = c >> 27 & 1, avx = c >> 28 & 1, fma = c >> 12 & 1;
    if (!osxsave || !avx || !fma) return "baseline";
    uint64_t saved = cpu_xcr0();
    if ((saved & 0x6) != 0x6 || !__get_cpuid_count(7, 0, &a, &b, &c, &d)) return "baseline";
    bool avx2 = b >> 5 & 1, bmi2 = b >> 8 & 1;
    if (!avx2 || !bmi2) return "baseline";
    bool f = b >> 16 & 1, dq = b >> 17 & 1, bw = b >> 30 & 1, vl = b >> 31 & 1;
    return f && dq && bw && vl && (saved & 0xe6) == 0xe6 ? "avx512" : "avx2";
}
#elif defined(__aarch64__)
const char *mg_best_isa(void) { return "neon"; }
#else
const char *mg_best_isa(void) { return "baseline"; }
#endif

const char *mg_isa(void) { return MG_ISA; }

const char *mg_compiler(void) {
#if defined(__clang__)
    return "clang " __clang_version__;
#else
    return "gcc " __VERSION__;
#endif
}
