/* system.h: CPUs and memory granted to this process, and properties of the processor. */
#ifndef MG_SYSTEM_H
#define MG_SYSTEM_H

#include <stdatomic.h>

#include "platform.h"

/* CPUs of the affinity mask, at most the control group's quota rounded up; at least 1. */
int mg_system_cpus(void);
/* Bytes of physical memory, or the control group's limit if that is lower. */
int64_t mg_system_memory(void);
/* Bytes of a core's L2 cache; half a MB if the system does not say. */
int64_t mg_system_cache(void);

/* Least size in bytes of a result that is written with non-temporal stores (mg_nditer_streams). All
 * arrays together must also take more than twice as many. The size is half of L3 on processors
 * where that was measured to pay, else INT64_MAX. The environment variable MINIGRAD_STREAM_BYTES
 * overrides it. Copies that repeat values use them from twice that size on (copy.c). Normalised
 * rows and channels use them from three quarters of it. */
int64_t mg_system_streams(void);
/* 3, 4 or 5 on AMD's Zen 3, 4 or 5, whose behaviour with large memory has been measured; 0
 * elsewhere. Zen 4 and 5 prefetch several streams of memory across pages, so kernels prefetch none
 * of them. On Zen 4 this also holds beside non-temporal stores, if there is little work between the
 * loads. */
int mg_system_ask_zen(void);
extern MG_OWN _Atomic int mg_system_known_zen; /* -1 until first asked for */
static inline int mg_system_zen(void) {
    int zen = atomic_load_explicit(&mg_system_known_zen, memory_order_relaxed);
    return MG_LIKELY(zen >= 0) ? zen : mg_system_ask_zen();
}
/* Distance in bytes between what is read of a stream of memory and what is prefetched. */
extern MG_OWN int64_t mg_system_reach;
/* True if square roots and quotients of 8 doubles cost hardly more than the work around them.
 * Elsewhere they take up to three times as long as Newton's steps. False until the processor has
 * been identified. */
static inline bool mg_system_roots(void) {
    return atomic_load_explicit(&mg_system_known_zen, memory_order_relaxed) >= 4;
}

/* A non-negative integer from an environment variable; -1 if it is unset or anything else. A comma
 * ends the number, as in OMP_NUM_THREADS=4,2. */
int64_t mg_system_env(const char *name);

#endif
