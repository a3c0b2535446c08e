/* system.h: what the machine and its administrator grant this process. */
#ifndef MG_SYSTEM_H
#define MG_SYSTEM_H

#include <stdatomic.h>

#include "platform.h"

/* CPUs: those of the affinity mask, at most the control group's quota rounded up; at least 1. */
int mg_system_cpus(void);
/* Bytes of physical memory, or the control group's limit where that is lower. */
int64_t mg_system_memory(void);
/* Bytes of one core's second-level cache; half a MB where the system does not say. */
int64_t mg_system_cache(void);

/* A result of at least so many bytes is written past the caches, if with what it is made of it
 * takes more than twice as many (mg_nditer_streams): half of the third cache where that has been
 * measured to pay, or the environment variable MINIGRAD_STREAM_BYTES; else INT64_MAX. Copies
 * that repeat values go past from twice as much on (copy.c), normalised rows and channels from three
 * quarters of it. */
int64_t mg_system_streams(void);
/* Whether to ask for memory ahead of several streams of it: not where the processor is known to follow
 * them from page to page. */
bool mg_system_fetches(void);
/* Whether the root of 8 doubles takes hardly longer than other work beside it, and not three times
 * as long as Newton's steps. False until one of the two above has been asked. */
extern _Atomic bool mg_system_has_roots;
static inline bool mg_system_roots(void) {
    return atomic_load_explicit(&mg_system_has_roots, memory_order_relaxed);
}

/* A whole number >= 0 from an environment variable; -1 when it is unset or anything else. A comma
 * ends the number, as in OMP_NUM_THREADS=4,2. */
int64_t mg_system_env(const char *name);

#endif
