/* isa.c: finds the instruction sets that were built and that this machine runs, and binds the
 * kernels of one.
 *
 * The build defines MG_ISAS, a list of MG_EACH_ISA(name) for each instruction set that was built.
 * The one that all machines of a kind have comes first.
 */
#include "base/error.h"
#include "isa.h"
#include "base/platform.h"

#include <string.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#define MG_EACH_ISA(name) extern const mg_kernels MG_KERNELS(name);
MG_ISAS
#undef MG_EACH_ISA
#define MG_EACH_ISA(name) &MG_KERNELS(name),
static const mg_kernels *const isa_built[] = {MG_ISAS};
static const mg_kernels *isa_used;

#define MG_KERNEL(type, name, args, operation) type(*name) args;
#include "ops.def"

#if defined(__x86_64__)

/* Extended control register 0: the register files that the operating system saves and restores. */
static uint64_t isa_xcr0(void) {
    uint32_t low, high;
    __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (uint64_t)high << 32 | low;
}

/* Intel SDM vol. 1, 14.3 and 15.2-15.4: a feature needs both the processor's bit and the
 * system's. */
static bool isa_runs(const char *isa) {
    bool avx512 = strcmp(isa, "avx512") == 0;
    if (!avx512 && strcmp(isa, "avx2") != 0) return true;
    uint32_t a, b, c, d;
    if (!__get_cpuid(1, &a, &b, &c, &d)) return false;
    bool osxsave = c >> 27 & 1, avx = c >> 28 & 1, fma = c >> 12 & 1;
    if (!osxsave || !avx || !fma) return false;
    uint64_t saved = isa_xcr0();
    if ((saved & 0x6) != 0x6 || !__get_cpuid_count(7, 0, &a, &b, &c, &d)) return false;
    bool avx2 = b >> 5 & 1, bmi2 = b >> 8 & 1;
    bool f = b >> 16 & 1, dq = b >> 17 & 1, bw = b >> 30 & 1, vl = b >> 31 & 1;
    return avx2 && bmi2 && (!avx512 || (f && dq && bw && vl && (saved & 0xe6) == 0xe6));
}

#else
static bool isa_runs(const char *isa) { return isa != NULL; }
#endif

static const mg_kernels *isa_offered(int i) {
    for (size_t k = 0; k < sizeof isa_built / sizeof *isa_built; k++)
        if (isa_runs(isa_built[k]->isa) && i-- == 0) return isa_built[k];
    return NULL;
}

const char *mg_isa_offered(int i) {
    const mg_kernels *found = isa_offered(i);
    return found ? found->isa : NULL;
}

int mg_isa_use(int i) {
    isa_used = isa_offered(i);
    if (!isa_used) return mg_fail_code(MG_EARG, i, 0);
    isa_used->begin();
#define MG_KERNEL(type, name, args, operation) name = isa_used->name;
#include "ops.def"
    return MG_OK;
}

const char *mg_isa(void) { return isa_used->isa; }

const char *mg_compiler(void) {
#if defined(__clang__)
    return "clang " __clang_version__;
#else
    return "gcc " __VERSION__;
#endif
}
