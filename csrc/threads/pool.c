/* pool.c: the worker threads behind mg_parallel_for.
 *
 * One loop runs at a time. Its caller opens it by offering seats, works on it too, and closes it
 * when no block is left. A worker that comes too late finds no seat, so nobody waits for a sleeping
 * worker to wake up. A loop thus costs at worst what the caller alone needs for it. A thread that
 * finds the pool taken runs its loop alone, whether another thread or its own outer loop has taken
 * it.
 *
 * The blocks of a loop are divided into runs of neighbours, as many as there are seats and the
 * caller. Each thread begins with the same run in every loop, whose data may still be in its
 * caches. A thread that is done with its run helps with the runs that follow.
 *
 * Workers start at the first loop that wants them. They spin briefly for the next loop, then sleep.
 * They are woken once that pays. They avoid the processor that their caller runs on. A forked child
 * starts without workers.
 */
#include "pool.h"
#include "base/gil.h"

enum { POOL_MAX_THREADS = 256 };

#ifdef MG_NO_THREADS

void mg_parallel_for(int64_t blocks, mg_block_fn fn, void *context) {
    if (blocks > 1) mg_gil_give_up();
    for (int64_t b = 0; b < blocks; b++) fn(context, b);
}
int mg_get_num_threads(void) { return 1; }
int mg_set_num_threads(int n) {
    return n >= 1 && n <= POOL_MAX_THREADS ? 0 : mg_fail_code(MG_EARG, n, POOL_MAX_THREADS);
}

#else

#include "base/spin.h"
#include "base/system.h"

#include <pthread.h>
#include <signal.h>

/* How long to spin before sleeping: about the time that waking a sleeping worker costs its caller.
 * That is 20 to 150 microseconds on virtual processors, while a spinning worker starts in less than
 * one. */
enum { POOL_SPIN_NS = 200000, POOL_YIELD_NS = 3000 };

/* Time from waking a sleeping worker until it has come: a first guess, and an upper limit for
 * measurements. */
enum { POOL_LATE_NS = 20000, POOL_LATE_MOST_NS = 100000 };

/* The state of the current loop in one word, so that joining it is one compare-and-swap. It holds
 * the number of the loop, the seats left for workers (0: closed), and the workers inside. */
typedef uint64_t pool_word;
#define POOL_INSIDE ((pool_word)1)
#define POOL_CALLER_SLEEPS ((pool_word)1 << 15)
#define POOL_SEAT ((pool_word)1 << 16)
#define POOL_LOOP ((pool_word)1 << 32)
MG_INLINE int pool_inside(pool_word word) { return (int)(word & (POOL_CALLER_SLEEPS - 1)); }
MG_INLINE int pool_seats(pool_word word) { return (int)(word >> 16 & 0xffff); }
MG_INLINE uint64_t pool_loop(pool_word word) { return word / POOL_LOOP; }

/* All fields but the state are written only by the caller of the loop, while the loop is closed and
 * empty. They share the cache line of the state, which workers poll. */
static struct {
    _Alignas(64) _Atomic pool_word state;
    mg_block_fn fn;
    void *context;
    int64_t blocks, runs;
    unsigned float_mode;
} pool_job;

/* The next block of each run. */
static struct {
    _Alignas(64) _Atomic int64_t next;
} pool_runs[POOL_MAX_THREADS];

static _Alignas(64) atomic_bool pool_taken; /* a thread runs a loop or changes the workers */
static pthread_t pool_threads[POOL_MAX_THREADS];
/* Only the thread that has taken the pool uses these. */
static int pool_started; /* workers that exist */
static int pool_caller;  /* the processor that workers avoid */
/* time in loops while workers slept, and the time when the last such loop ended */
static int64_t pool_alone, pool_alone_until;
static int64_t pool_each;                    /* time of the last block in such a loop */

static _Atomic int pool_wanted; /* threads, with the caller; 0 until the default is found out */
static _Atomic int pool_keep;   /* workers from this index on shall end */

static pthread_mutex_t pool_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t pool_work = PTHREAD_COND_INITIALIZER; /* a loop was opened */
static pthread_cond_t pool_done = PTHREAD_COND_INITIALIZER; /* the last worker has left the loop */
static _Atomic int pool_sleepers;                           /* changed under the mutex */
/* when sleeping workers were last called */
static _Atomic int64_t pool_called_at;
static _Atomic int64_t pool_late = POOL_LATE_NS;            /* time that they take to come */

static void pool_resize(int workers);
static void pool_keep_off_caller(void);
static int64_t pool_clock(void);
static void pool_wake(int workers);
static void pool_wait_until_empty(void);

/* ---- floating-point mode -------------------------------------------------------------------- */

/* A worker computes in its caller's floating-point mode (rounding, denormals). Results then do not
 * depend on which thread does a block. */
#if defined(__SSE__)
MG_INLINE unsigned pool_get_float_mode(void) { return __builtin_ia32_stmxcsr() & ~0x3fu; }
MG_INLINE void pool_set_float_mode(unsigned mode) { __builtin_ia32_ldmxcsr(mode); }
#elif defined(__aarch64__)
MG_INLINE unsigned pool_get_float_mode(void) {
    uint64_t mode;
    __asm__ volatile("mrs %0, fpcr" : "=r"(mode));
    return (unsigned)mode;
}
MG_INLINE void pool_set_float_mode(unsigned mode) {
    __asm__ volatile("msr fpcr, %0" : : "r"((uint64_t)mode));
}
#else
MG_INLINE unsigned pool_get_float_mode(void) { return 0; }
MG_INLINE void pool_set_float_mode(unsigned mode) { (void)mode; }
#endif

/* ---- affinity ------------------------------------------------------------------------------ */

/* A scheduler may place a woken thread on the processor of the thread that wakes it. Virtual
 * machines of two processors nearly always do. There the worker would wait until the loop is over.
 * Workers may therefore run wherever their caller may, except on the caller's current processor. */
#ifdef __linux__
static void pool_keep_off_caller(void) {
    int processor = sched_getcpu();
    if (MG_LIKELY(pool_caller == processor)) return;
    pool_caller = processor;
    cpu_set_t others;
    if (pthread_getaffinity_np(pthread_self(), sizeof others, &others)) return;
    CPU_CLR((size_t)processor, &others);
    if (CPU_COUNT(&others) == 0) return;
    for (int i = 0; i < pool_started; i++)
        pthread_setaffinity_np(pool_threads[i], sizeof others, &others);
}
#else
static void pool_keep_off_caller(void) {}
#endif

/* ---- working on a loop -------------------------------------------------------------------- */

/* Position of a thread: the run that it takes blocks from, and the runs it has not seen the end
 * of. */
typedef struct {
    int64_t run, left;
} pool_place;

/* Takes the next block, from this run or the following runs; -1 if none is left. */
MG_INLINE int64_t pool_take(pool_place *at) {
    for (; at->left > 0; at->left--, at->run = at->run + 1 < pool_job.runs ? at->run + 1 : 0) {
        _Atomic int64_t *next = &pool_runs[at->run].next;
        int64_t end = mg_run_begin(at->run + 1, pool_job.runs, pool_job.blocks), b;
        if (atomic_load_explicit(next, memory_order_relaxed) >= end) continue;
        b = atomic_fetch_add_explicit(next, 1, memory_order_relaxed);
        if (b < end) return b;
    }
    return -1;
}

/* The work of the thread with this number; the caller has number 0. */
static void pool_work_off(int thread) {
    pool_place at = {thread % pool_job.runs, pool_job.runs};
    for (int64_t b; (b = pool_take(&at)) >= 0;) pool_job.fn(pool_job.context, b);
}

/* The caller's work while workers sleep. It wakes them once that pays. That is when the loops since
 * the last pause and the rest of this loop are worth twice the time of waking. The caller learns
 * the length of a loop from the time of its blocks, and before that from the last loop's blocks.
 * Each loop run alone lowers the estimate of the time of waking a little, so that it is measured
 * anew at times. */
static void pool_work_off_or_wake(int seats) {
    int64_t begin = pool_clock(), now = begin, left = pool_job.blocks, b;
    int64_t late = atomic_load(&pool_late);
    if (begin - pool_alone_until > POOL_SPIN_NS) pool_alone = 0;
    bool alone = true;
    pool_place at = {0, pool_job.runs};
    for (;; left--) {
        if (alone && left > 0 && pool_alone + now - begin + left * pool_each >= 2 * late) {
            alone = false;
            pool_wake(seats);
        }
        b = pool_take(&at);
        if (b < 0) break;
        int64_t start = pool_clock();
        pool_job.fn(pool_job.context, b);
        now = pool_clock();
        pool_each = now - start;
    }
    pool_alone = alone ? pool_alone + now - begin : 0;
    pool_alone_until = now;
    if (alone) atomic_store(&pool_late, late - late / 32);
}

/* ---- public ------------------------------------------------------------------------------- */

void mg_parallel_for(int64_t blocks, mg_block_fn fn, void *context) {
    if (blocks > 1) mg_gil_give_up();
    if (blocks < 2 || mg_get_num_threads() < 2 ||
        atomic_exchange_explicit(&pool_taken, true, memory_order_acquire)) {
        for (int64_t b = 0; b < blocks; b++) fn(context, b);
        return;
    }
    int others = mg_get_num_threads() - 1;
    if (MG_UNLIKELY(pool_started != others)) pool_resize(others);
    int seats = (int)mg_min(pool_started, blocks - 1);
    if (atomic_load(&pool_sleepers) < pool_started) pool_keep_off_caller();

    int runs = seats + 1;
    for (int run = 0; run < runs; run++)
        atomic_store_explicit(&pool_runs[run].next, mg_run_begin(run, runs, blocks),
                              memory_order_relaxed);
    pool_job.fn = fn;
    pool_job.context = context;
    pool_job.blocks = blocks;
    pool_job.runs = runs;
    pool_job.float_mode = pool_get_float_mode();
    pool_word loop = pool_loop(atomic_load_explicit(&pool_job.state, memory_order_relaxed)) + 1;
    atomic_store(&pool_job.state, loop * POOL_LOOP + (pool_word)seats * POOL_SEAT);

    if (atomic_load(&pool_sleepers) == 0) pool_work_off(0);
    else pool_work_off_or_wake(seats);
    pool_wait_until_empty();
    atomic_store_explicit(&pool_taken, false, memory_order_release);
}

static MG_NOINLINE int pool_default_threads(void) {
    int64_t threads = mg_min(mg_system_cpus(), POOL_MAX_THREADS);
    int64_t asked = mg_system_env("MINIGRAD_NUM_THREADS");
    if (asked < 1) asked = mg_system_env("OMP_NUM_THREADS");
    return (int)(asked < 1 ? threads : mg_min(threads, asked));
}

int mg_get_num_threads(void) {
    int threads = atomic_load_explicit(&pool_wanted, memory_order_relaxed);
    if (MG_LIKELY(threads > 0)) return threads;
    int none = 0; /* unless another thread sets it meanwhile */
    threads = pool_default_threads();
    return atomic_compare_exchange_strong(&pool_wanted, &none, threads) ? threads : none;
}

int mg_set_num_threads(int n) {
    if (n < 1 || n > POOL_MAX_THREADS) return mg_fail_code(MG_EARG, n, POOL_MAX_THREADS);
    atomic_store(&pool_wanted, n);
    /* Surplus workers end now, or before the next loop. Missing workers start when needed. */
    if (!atomic_exchange_explicit(&pool_taken, true, memory_order_acquire)) {
        if (pool_started > n - 1) pool_resize(n - 1);
        atomic_store_explicit(&pool_taken, false, memory_order_release);
    }
    return 0;
}

/* ---- waiting and waking ------------------------------------------------------------------- */

static int64_t pool_clock(void) { /* nanoseconds */
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* Spins until ready(arg) or the time is up; true if it was ready. On a busy machine the awaited
 * thread may need this very processor, so it is yielded after a few microseconds. */
MG_INLINE bool pool_spin(bool (*ready)(const void *arg), const void *arg) {
    int64_t end = 0;
    for (;;) {
        for (int i = 0; i < 16; i++) {
            if (ready(arg)) return true;
            mg_cpu_pause();
        }
        int64_t now = pool_clock();
        if (end == 0) end = now + POOL_SPIN_NS;
        else if (now >= end) return false;
        else if (now >= end - POOL_SPIN_NS + POOL_YIELD_NS) sched_yield();
    }
}

/* Taking the mutex ensures that every worker counted as sleeping really sleeps. */
static void pool_wake(int workers) {
    pool_keep_off_caller();
    pthread_mutex_lock(&pool_mutex);
    int sleepers = atomic_load(&pool_sleepers);
    pthread_mutex_unlock(&pool_mutex);
    atomic_store(&pool_called_at, pool_clock());
    if (workers >= sleepers) pthread_cond_broadcast(&pool_work);
    else while (workers-- > 0) pthread_cond_signal(&pool_work);
}

MG_INLINE bool pool_is_empty(const void *unused) {
    (void)unused;
    return pool_inside(atomic_load_explicit(&pool_job.state, memory_order_acquire)) == 0;
}

/* Closes the loop and returns when all workers have left it. */
static void pool_wait_until_empty(void) {
    pool_word word = atomic_fetch_and(&pool_job.state, ~(POOL_LOOP - POOL_SEAT));
    if (pool_inside(word) == 0 || pool_spin(pool_is_empty, NULL)) return;
    pthread_mutex_lock(&pool_mutex);
    atomic_fetch_or(&pool_job.state, POOL_CALLER_SLEEPS);
    while (!pool_is_empty(NULL)) pthread_cond_wait(&pool_done, &pool_mutex);
    pthread_mutex_unlock(&pool_mutex);
}

/* ---- workers ------------------------------------------------------------------------------ */

typedef struct {
    int index;
    uint64_t seen; /* the last loop that this worker was in */
} pool_worker;

/* True if there is a loop with a free seat that the worker has not been in, or if the worker shall
 * end. */
MG_INLINE bool pool_is_called(const void *arg) {
    const pool_worker *self = arg;
    pool_word word = atomic_load(&pool_job.state);
    return (pool_seats(word) > 0 && pool_loop(word) != self->seen) ||
           atomic_load(&pool_keep) <= self->index;
}

static void *pool_run(void *start) {
    pool_worker self = {.index = (int)(intptr_t)start};
    for (;;) {
        if (!pool_spin(pool_is_called, &self)) {
            pthread_mutex_lock(&pool_mutex);
            atomic_fetch_add(&pool_sleepers, 1);
            if (!pool_is_called(&self)) pthread_cond_wait(&pool_work, &pool_mutex);
            atomic_fetch_sub(&pool_sleepers, 1);
            atomic_store(&pool_late, mg_min(pool_clock() - pool_called_at, POOL_LATE_MOST_NS));
            pthread_mutex_unlock(&pool_mutex);
            continue; /* spins again even if the loop is over, as another may follow */
        }
        if (atomic_load(&pool_keep) <= self.index) return NULL;
        pool_word word = atomic_load(&pool_job.state);
        if (pool_seats(word) == 0 || pool_loop(word) == self.seen ||
            !atomic_compare_exchange_strong(&pool_job.state, &word, word - POOL_SEAT + POOL_INSIDE))
            continue;

        self.seen = pool_loop(word);
        if (pool_get_float_mode() != pool_job.float_mode) pool_set_float_mode(pool_job.float_mode);
        pool_work_off(self.index + 1);

        word = atomic_fetch_sub(&pool_job.state, POOL_INSIDE);
        if (pool_inside(word) == 1 && (word & POOL_CALLER_SLEEPS)) {
            pthread_mutex_lock(&pool_mutex); /* not between the caller's check and its sleep */
            pthread_mutex_unlock(&pool_mutex);
            pthread_cond_signal(&pool_done);
        }
    }
}

/* Ends or starts workers until there are `workers`. The caller has taken the pool. If the system
 * refuses to start one, the number of threads is lowered to what there is. */
static void pool_resize(int workers) {
    if (pool_started > workers) {
        atomic_store(&pool_keep, workers);
        pthread_mutex_lock(&pool_mutex);
        pthread_cond_broadcast(&pool_work);
        pthread_mutex_unlock(&pool_mutex);
        while (pool_started > workers) pthread_join(pool_threads[--pool_started], NULL);
        return;
    }
    /* Signals are for the threads of the program. */
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    atomic_store(&pool_keep, workers);
    while (pool_started < workers &&
           pthread_create(&pool_threads[pool_started], NULL, pool_run,
                          (void *)(intptr_t)pool_started) == 0)
        pool_started++;
    pool_caller = -1; /* unknown to the new workers */
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    int asked = workers + 1; /* unless another thread has changed it since */
    if (pool_started < workers)
        atomic_compare_exchange_strong(&pool_wanted, &asked, pool_started + 1);
}

/* ---- fork --------------------------------------------------------------------------------- */

static void pool_before_fork(void) { pthread_mutex_lock(&pool_mutex); }
static void pool_after_fork(void) { pthread_mutex_unlock(&pool_mutex); }

/* The child has one thread and no workers, even if a loop was running in another thread. */
static void pool_in_child(void) {
    pool_started = 0;
    pool_job.state = 0;
    pool_taken = false;
    pool_sleepers = 0;
    pool_mutex = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    pool_work = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
    pool_done = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
}

__attribute__((constructor)) static void pool_watch_fork(void) {
    pthread_atfork(pool_before_fork, pool_after_fork, pool_in_child);
}

#endif
