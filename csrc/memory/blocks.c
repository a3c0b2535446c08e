/* blocks.c: the block cache.
 *
 * Every eager operation takes a block for its result and soon gives it back, so both must be cheap.
 * A large result must also not fault in fresh pages each time.
 *
 * Small blocks (below 4 MiB) come from malloc, in classes of four steps to a power of two. Each
 * class has 64 bytes more, so that a header and a round size fit together. A class is a stack
 * behind a spin lock: taking or giving is one atomic exchange and a plain store. Large blocks are
 * mappings of whole huge pages, in classes of eight steps to a power of two.
 *
 * The cache holds at most MINIGRAD_CACHE_LIMIT bytes (a quarter of the memory unless set; 0 turns
 * it off). Small blocks get up to half of it and keep it. When large blocks exceed their part, the
 * oldest goes first.
 *
 * Tests can make requests to the system fail, to see the consequences. Meanwhile nothing is cached,
 * so that every block is requested. A normal take from the cache does not check this.
 */
#include "base/spin.h"
#include "base/system.h"
#include "buffer.h"

#include <stdlib.h>
#include <sys/mman.h>
#ifndef MG_NO_THREADS
#include <pthread.h>
#endif

#if !defined(MAP_ANONYMOUS) && defined(MAP_ANON)
#define MAP_ANONYMOUS MAP_ANON
#endif

enum {
    BLOCKS_UNIT = 64,            /* small blocks: alignment and finest step */
    BLOCKS_PAGE = 2 << 20,       /* large blocks: a huge page */
    /* small blocks of several times this size start at multiples of it */
    BLOCKS_OFFSET = 4096,
    BLOCKS_SMALL_MAX = (4 << 20) - BLOCKS_UNIT, /* larger blocks are large blocks */
    BLOCKS_SMALL_CLASSES = 61,   /* 64 bytes .. 4 MiB */
    BLOCKS_LARGE_CLASSES = 193,  /* 4 MiB .. 128 TiB, the whole address space */
    BLOCKS_GRANT = 64 << 10      /* a small class is granted room in steps of at least this */
};

typedef struct blocks_free { /* lies in the first bytes of a cached small block */
    struct blocks_free *next;
} blocks_free;

static struct blocks_bin {
    _Alignas(64) mg_spin lock;
    blocks_free *top;
    int64_t cached;  /* blocks on the stack */
    int64_t allowed; /* blocks that the stack may hold; grows by grants from the common limit */
    int64_t made;    /* blocks that exist, cached or in use */
} blocks_bins[BLOCKS_SMALL_CLASSES];

static _Atomic int64_t blocks_granted; /* bytes that small classes may cache together */

typedef struct blocks_region { /* lies in the first bytes of a cached large block */
    struct blocks_region *newer, *older;
    uint64_t since;
} blocks_region;

static struct {
    mg_spin lock;
    struct { blocks_region *newest, *oldest; } classes[BLOCKS_LARGE_CLASSES];
    uint64_t clock;
    int64_t cached; /* bytes */
    int64_t made;   /* bytes, cached or in use */
} blocks_large;

/* Set by mg_deny_blocks. */
static struct {
    _Atomic bool on;
    _Atomic int64_t asked, first, last; /* requests since then; the numbers of requests that fail */
} blocks_denied;

static void *blocks_small_make(int class, size_t bytes);
static void blocks_small_overflow(void *block, int class);
static void *blocks_large_take(size_t bytes, size_t *capacity);
static void blocks_large_give(void *block, size_t bytes);
static void blocks_large_clear(void);

/* ---- classes ------------------------------------------------------------------------------ */

/* Sizes 1, 2, .. 2^(bits+1), then 2^bits steps to each power of two. These are floating-point
 * numbers with `bits` bits of fraction, rounded up. */
MG_INLINE int blocks_class(uint64_t size, int bits) {
    if (size <= (uint64_t)2 << bits)
        return (int)size;
    int shift = 63 - __builtin_clzll(size - 1) - bits;
    return (int)((uint64_t)shift << bits) + (int)((size - 1) >> shift) + 1;
}

MG_INLINE uint64_t blocks_class_size(int class, int bits) {
    if (class <= 2 << bits)
        return (uint64_t)class;
    int shift = ((class - 1) >> bits) - 1;
    return (uint64_t)(((class - 1) & ((1 << bits) - 1)) + (1 << bits) + 1) << shift;
}

/* Class 0 holds 64 bytes: the unit that each class has on top. */
MG_INLINE int blocks_small_class(size_t bytes) {
    return blocks_class((bytes - (bytes > 0)) / BLOCKS_UNIT, 2);
}
MG_INLINE size_t blocks_small_capacity(int class) {
    size_t bytes = (size_t)(blocks_class_size(class, 2) + 1) * BLOCKS_UNIT;
    return bytes < BLOCKS_SMALL_MAX ? bytes : BLOCKS_SMALL_MAX;
}
MG_INLINE int blocks_large_class(size_t bytes) {
    return blocks_class((bytes - 1) / BLOCKS_PAGE + 1, 3);
}
MG_INLINE size_t blocks_large_capacity(int class) {
    return (size_t)blocks_class_size(class, 3) * BLOCKS_PAGE;
}

/* ---- public ------------------------------------------------------------------------------- */

void *mg_block_take(size_t bytes, size_t *capacity) {
    if (MG_UNLIKELY(bytes > BLOCKS_SMALL_MAX))
        return blocks_large_take(bytes, capacity);
    int class = blocks_small_class(bytes);
    *capacity = blocks_small_capacity(class);
    struct blocks_bin *bin = &blocks_bins[class];
    mg_spin_lock(&bin->lock);
    blocks_free *block = bin->top;
    if (MG_LIKELY(block != NULL)) {
        bin->top = block->next;
        bin->cached--;
        mg_spin_unlock(&bin->lock);
        return block;
    }
    mg_spin_unlock(&bin->lock);
    return blocks_small_make(class, *capacity);
}

void mg_block_give(void *block, size_t bytes) {
    if (MG_UNLIKELY(bytes > BLOCKS_SMALL_MAX)) {
        blocks_large_give(block, bytes);
        return;
    }
    int class = blocks_small_class(bytes);
    struct blocks_bin *bin = &blocks_bins[class];
    mg_spin_lock(&bin->lock);
    if (MG_LIKELY(bin->cached < bin->allowed)) {
        ((blocks_free *)block)->next = bin->top;
        bin->top = block;
        bin->cached++;
        mg_spin_unlock(&bin->lock);
        return;
    }
    mg_spin_unlock(&bin->lock);
    blocks_small_overflow(block, class);
}

void mg_cache_clear(void) {
    for (int class = 0; class < BLOCKS_SMALL_CLASSES; class++) {
        struct blocks_bin *bin = &blocks_bins[class];
        mg_spin_lock(&bin->lock);
        blocks_free *block = bin->top;
        int64_t room = bin->allowed * (int64_t)blocks_small_capacity(class);
        bin->made -= bin->cached;
        bin->top = NULL;
        bin->cached = bin->allowed = 0;
        mg_spin_unlock(&bin->lock);
        atomic_fetch_sub(&blocks_granted, room);
        while (block) {
            blocks_free *next = block->next;
            free(block);
            block = next;
        }
    }
    blocks_large_clear();
}

/* Bytes of all blocks that exist, and of those in the cache. */
static void blocks_count(int64_t *made, int64_t *cached) {
    mg_spin_lock(&blocks_large.lock);
    *made = blocks_large.made;
    *cached = blocks_large.cached;
    mg_spin_unlock(&blocks_large.lock);
    for (int class = 0; class < BLOCKS_SMALL_CLASSES; class++) {
        struct blocks_bin *bin = &blocks_bins[class];
        mg_spin_lock(&bin->lock);
        *made += bin->made * (int64_t)blocks_small_capacity(class);
        *cached += bin->cached * (int64_t)blocks_small_capacity(class);
        mg_spin_unlock(&bin->lock);
    }
}

int64_t mg_cache_bytes(void) {
    int64_t made, cached;
    blocks_count(&made, &cached);
    return cached;
}

int64_t mg_live_bytes(void) {
    int64_t made, cached;
    blocks_count(&made, &cached);
    return made - cached;
}

/* ---- requests that fail ------------------------------------------------------------------ */

int64_t mg_deny_blocks(int64_t first, int64_t last) {
    int64_t asked = atomic_exchange(&blocks_denied.asked, 0);
    atomic_store(&blocks_denied.first, first);
    atomic_store(&blocks_denied.last, last);
    atomic_store(&blocks_denied.on, first <= last);
    mg_cache_clear();
    return asked;
}

/* True if the current request to the system is to fail. */
static bool blocks_deny(void) {
    if (MG_LIKELY(!atomic_load_explicit(&blocks_denied.on, memory_order_relaxed))) return false;
    int64_t number = atomic_fetch_add(&blocks_denied.asked, 1) + 1;
    return number >= blocks_denied.first && number <= blocks_denied.last;
}

/* ---- the limit, small blocks -------------------------------------------------------------- */

static int64_t blocks_limit(void) {
    static _Atomic int64_t known = -1;
    int64_t limit = atomic_load_explicit(&known, memory_order_relaxed);
    if (MG_UNLIKELY(atomic_load_explicit(&blocks_denied.on, memory_order_relaxed))) return 0;
    /* two threads may both find out the limit, with the same result */
    if (MG_UNLIKELY(limit < 0)) {
        limit = mg_system_env("MINIGRAD_CACHE_LIMIT");
        if (limit < 0)
            limit = mg_system_memory() / 4;
        atomic_store_explicit(&known, limit, memory_order_relaxed);
    }
    return limit;
}

/* A processor first compares addresses by their last 12 bits. A load waits for a recent store whose
 * address has the same 12 bits (4K aliasing). If all arrays of a loop start at the same offset in a
 * page, no load waits. */
static void *blocks_small_make(int class, size_t bytes) {
    void *block = NULL;
    size_t alignment = bytes < 8 * BLOCKS_OFFSET ? BLOCKS_UNIT : BLOCKS_OFFSET;
    if (blocks_deny())
        return NULL;
    if (posix_memalign(&block, alignment, bytes) != 0) {
        mg_cache_clear();
        if (posix_memalign(&block, alignment, bytes) != 0)
            return NULL;
    }
    struct blocks_bin *bin = &blocks_bins[class];
    mg_spin_lock(&bin->lock);
    bin->made++;
    mg_spin_unlock(&bin->lock);
    return block;
}

int mg_cache_grant(int64_t room) {
    bool granted = atomic_fetch_add(&blocks_granted, room) + room <= blocks_limit() / 2;
    if (!granted)
        atomic_fetch_sub(&blocks_granted, room);
    return granted;
}

/* The class is full: enlarges it while small blocks have not used up their half of the limit. */
static void blocks_small_overflow(void *block, int class) {
    int64_t capacity = (int64_t)blocks_small_capacity(class);
    int64_t more = mg_max(BLOCKS_GRANT / capacity, 1);
    bool granted = mg_cache_grant(more * capacity);
    struct blocks_bin *bin = &blocks_bins[class];
    mg_spin_lock(&bin->lock);
    if (granted)
        bin->allowed += more;
    bool keep = bin->cached < bin->allowed;
    if (keep) {
        ((blocks_free *)block)->next = bin->top;
        bin->top = block;
        bin->cached++;
    } else {
        bin->made--;
    }
    mg_spin_unlock(&bin->lock);
    if (!keep)
        free(block);
}

/* ---- large blocks ------------------------------------------------------------------------- */

/* A mapping that starts at a huge page: maps one page too many and trims both ends. */
static void *blocks_map(size_t bytes) {
    size_t total = bytes + BLOCKS_PAGE;
    char *map = mmap(NULL, total, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED)
        return NULL;
    size_t head = (size_t)(-(uintptr_t)map % BLOCKS_PAGE);
    if (head > 0)
        munmap(map, head);
    munmap(map + head + bytes, BLOCKS_PAGE - head);
#ifdef MADV_HUGEPAGE
    madvise(map + head, bytes, MADV_HUGEPAGE);
#endif
    return map + head;
}

static void blocks_unlink(int class, blocks_region *region) {
    *(region->newer ? &region->newer->older : &blocks_large.classes[class].newest) = region->older;
    *(region->older ? &region->older->newer : &blocks_large.classes[class].oldest) = region->newer;
    blocks_large.cached -= (int64_t)blocks_large_capacity(class);
}

static void *blocks_large_take(size_t bytes, size_t *capacity) {
    if (bytes > PTRDIFF_MAX / 4 || (uint64_t)bytes > (uint64_t)1 << 47)
        return NULL;
    int class = blocks_large_class(bytes);
    size_t whole = *capacity = blocks_large_capacity(class);
    mg_spin_lock(&blocks_large.lock);
    blocks_region *region = blocks_large.classes[class].newest;
    if (region)
        blocks_unlink(class, region);
    mg_spin_unlock(&blocks_large.lock);
    if (region)
        return region;

    if (blocks_deny())
        return NULL;
    void *block = blocks_map(whole);
    if (!block) {
        mg_cache_clear();
        block = blocks_map(whole);
        if (!block)
            return NULL;
    }
    mg_spin_lock(&blocks_large.lock);
    blocks_large.made += (int64_t)whole;
    mg_spin_unlock(&blocks_large.lock);
    return block;
}

/* Unmaps the oldest cached blocks until at most `limit` bytes are cached. Releases the lock, which
 * the caller holds. */
static void blocks_large_shrink(int64_t limit) {
    while (blocks_large.cached > limit) {
        int oldest = -1;
        for (int class = 0; class < BLOCKS_LARGE_CLASSES; class++) {
            blocks_region *region = blocks_large.classes[class].oldest;
            if (region && (oldest < 0 ||
                           region->since < blocks_large.classes[oldest].oldest->since))
                oldest = class;
        }
        if (oldest < 0)
            break;
        size_t capacity = blocks_large_capacity(oldest);
        blocks_region *region = blocks_large.classes[oldest].oldest;
        blocks_unlink(oldest, region);
        blocks_large.made -= (int64_t)capacity;
        mg_spin_unlock(&blocks_large.lock); /* unmapping takes long */
        munmap(region, capacity);
        mg_spin_lock(&blocks_large.lock);
    }
    mg_spin_unlock(&blocks_large.lock);
}

static void blocks_large_give(void *block, size_t bytes) {
    int class = blocks_large_class(bytes);
    size_t capacity = blocks_large_capacity(class);
    int64_t limit = mg_max(blocks_limit() - atomic_load(&blocks_granted), 0);
    mg_spin_lock(&blocks_large.lock);
    if ((int64_t)capacity > limit) { /* would only evict all others */
        blocks_large.made -= (int64_t)capacity;
        mg_spin_unlock(&blocks_large.lock);
        munmap(block, capacity);
        return;
    }
    blocks_region *region = block, *next = blocks_large.classes[class].newest;
    *region = (blocks_region){.older = next, .since = ++blocks_large.clock};
    *(next ? &next->newer : &blocks_large.classes[class].oldest) = region;
    blocks_large.classes[class].newest = region;
    blocks_large.cached += (int64_t)capacity;
    blocks_large_shrink(limit);
}

static void blocks_large_clear(void) {
    mg_spin_lock(&blocks_large.lock);
    blocks_large_shrink(0);
}

/* ---- fork --------------------------------------------------------------------------------- */
#ifndef MG_NO_THREADS

/* All locks are held during fork, so that the child finds every list complete and every lock free.
 * No thread ever holds two of the locks otherwise. */
static void blocks_before_fork(void) {
    for (int class = 0; class < BLOCKS_SMALL_CLASSES; class++)
        mg_spin_lock(&blocks_bins[class].lock);
    mg_spin_lock(&blocks_large.lock);
}

static void blocks_after_fork(void) {
    mg_spin_unlock(&blocks_large.lock);
    for (int class = 0; class < BLOCKS_SMALL_CLASSES; class++)
        mg_spin_unlock(&blocks_bins[class].lock);
}

__attribute__((constructor)) static void blocks_watch_fork(void) {
    pthread_atfork(blocks_before_fork, blocks_after_fork, blocks_after_fork);
}

#endif
