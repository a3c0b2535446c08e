/* system.h: CPUs and memory granted to this process, and facts of the processor. */
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
/* 3, 4 or 5 on AMD's Zen 3, 4 or 5, whose ways with large memory have been measured; 0 elsewhere. The
 * last two follow several streams of memory from page to page, so that none is asked for ahead, a
 * Zen 4 also beside stores past the caches where little lies between its loads. */
int mg_system_ask_zen(void);
extern MG_OWN _Atomic int mg_system_known_zen; /* -1 until asked for */
static inline int mg_system_zen(void) {
    int zen = atomic_load_explicit(&mg_system_known_zen, memory_order_relaxed);
    return MG_LIKELY(zen >= 0) ? zen : mg_system_ask_zen();
}
/* Bytes from what is read of one stream of memory to what is asked for meanwhile. */
extern MG_OWN int64_t mg_system_reach;
/* Whether the root and the quotient of 8 doubles take hardly longer than other work beside them, and
 * not up to three times as long as Newton's steps. False until the processor has been asked for. */
static inline bool mg_system_roots(void) {
    return atomic_load_explicit(&mg_system_known_zen, memory_order_relaxed) >= 4;
}

/* A whole number >= 0 from an environment variable; -1 when it is unset or anything else. A comma
 * ends the number, as in OMP_NUM_THREADS=4,2. */
int64_t mg_system_env(const char *name);

#endif
