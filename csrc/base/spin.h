/* spin.h: waiting for nanoseconds: the pause instruction, and a spin lock for a few instructions.
 *
 * Taking the lock is one atomic exchange, and releasing it a plain store. That is half the cost of
 * a pthread mutex without contention.
 */
#ifndef MG_SPIN_H
#define MG_SPIN_H

#include "platform.h"

#include <sched.h>
#include <stdatomic.h>
#include <time.h>

MG_INLINE void mg_cpu_pause(void) {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb"); /* yield does nothing on most cores; isb takes some 10 ns */
#endif
}

typedef struct {
    atomic_bool held;
} mg_spin;

static MG_NOINLINE void mg_spin_wait(mg_spin *lock) {
    for (int tries = 0;; tries++) {
        if (!atomic_load_explicit(&lock->held, memory_order_relaxed) &&
            !atomic_exchange_explicit(&lock->held, true, memory_order_acquire))
            return;
        if (tries < 64) mg_cpu_pause();
        else if (tries < 128) sched_yield();
        else nanosleep(&(struct timespec){.tv_nsec = 50000}, NULL);
    }
}

MG_INLINE void mg_spin_lock(mg_spin *lock) {
    if (MG_UNLIKELY(atomic_exchange_explicit(&lock->held, true, memory_order_acquire)))
        mg_spin_wait(lock);
}

MG_INLINE void mg_spin_unlock(mg_spin *lock) {
    atomic_store_explicit(&lock->held, false, memory_order_release);
}

#endif
