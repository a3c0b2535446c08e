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
    _Atomic int64_t written; /* the write clock when the buffer was made or last written in place */
    _Atomic int32_t pins;    /* how often the tape has saved it */
    _Atomic int32_t shared;  /* number of outside writers: foreign memory, live NumPy views */
    bool writable;
    bool borrowed;
    /* of borrowed memory: the object that keeps it, released if not NULL */
    void *owner;
    void (*release)(void *owner);
};

/* A new buffer of uninitialised bytes. NULL and MG_ENOMEM if there is no memory. */
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

/* Takes a block from the cache, 64-byte aligned, also for 0 bytes. `*capacity` receives the usable
 * bytes. NULL (and no error set) if there is no memory even after the cache is emptied.
 * mg_block_give takes the capacity, or the number of bytes that was requested. Thread-safe. */
void *mg_block_take(size_t bytes, size_t *capacity);
void mg_block_give(void *block, size_t bytes);

#endif
