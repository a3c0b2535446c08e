/* buffer.h: reference-counted, 64-byte aligned memory with the time of its last write. */
#ifndef MG_BUFFER_H
#define MG_BUFFER_H

#include "base/error.h"
#include <stdatomic.h>

/* A buffer owns its bytes (taken from the block cache) or borrows foreign memory. */
struct mg_buffer {
    char *data;
    size_t bytes;        /* usable bytes */
    _Atomic int64_t refs;
    _Atomic int64_t written; /* the write clock when it was made, or at the last in-place write */
    _Atomic int32_t pins;    /* how many times the tape has saved it */
    _Atomic int32_t shared;  /* how many others may write it: foreign memory, live NumPy views */
    bool writable;
    bool borrowed;
    void *owner;             /* borrowed memory: who keeps it, to be released if not NULL */
    void (*release)(void *owner);
};

/* Bytes are uninitialised. NULL and MG_ENOMEM when there is no memory. */
mg_buffer *mg_buffer_new(size_t bytes);
mg_buffer *mg_buffer_borrow(void *data, size_t bytes, bool writable);
MG_INLINE void mg_buffer_retain(mg_buffer *buffer) {
    atomic_fetch_add_explicit(&buffer->refs, 1, memory_order_relaxed);
}
void mg_buffer_release(mg_buffer *buffer);

/* The write clock counts the in-place writes of the whole process. tick returns the new time. */
int64_t mg_clock_tick(void);
int64_t mg_clock_now(void);
void mg_buffer_touch(mg_buffer *buffer); /* written = tick */

/* Blocks of memory from the cache, 64-byte aligned, also for 0 bytes; `*capacity` gets the usable
 * bytes. NULL (and no error set) when there is no memory even with an empty cache. give takes the
 * capacity or the number of bytes that was asked for. Thread-safe. */
void *mg_block_take(size_t bytes, size_t *capacity);
void mg_block_give(void *block, size_t bytes);

#endif
