/* buffer.c: reference-counted memory and the write clock.
 *
 * A small buffer and its data are one block, with the struct in the first 64 bytes and the aligned
 * data behind it. That halves the calls of the block cache. Large data has a block of its own,
 * which starts at a huge page.
 */
#include "buffer.h"

enum { BUFFER_HEADER = 64, BUFFER_SPLIT = (4 << 20) - 2 * BUFFER_HEADER };

_Static_assert(sizeof(mg_buffer) <= BUFFER_HEADER, "the data would not stay aligned");

static _Atomic int64_t buffer_clock;

MG_INLINE char *buffer_inside(mg_buffer *buffer) { return (char *)buffer + BUFFER_HEADER; }

MG_INLINE mg_buffer *buffer_init(mg_buffer *buffer, void *data, size_t bytes) {
    *buffer = (mg_buffer){.data = data, .bytes = bytes, .writable = true};
    atomic_init(&buffer->refs, 1);
    atomic_init(&buffer->written, atomic_load_explicit(&buffer_clock, memory_order_relaxed));
    return buffer;
}

inline mg_buffer *mg_buffer_new(size_t bytes) {
    bool split = bytes >= BUFFER_SPLIT;
    size_t whole, usable;
    bytes += bytes == 0; /* even then data points into the block */
    mg_buffer *buffer = mg_block_take(split ? BUFFER_HEADER : bytes + BUFFER_HEADER, &whole);
    if (MG_UNLIKELY(!buffer))
        return mg_fail(MG_ENOMEM, (int64_t)bytes, 0);
    if (MG_LIKELY(!split))
        return buffer_init(buffer, buffer_inside(buffer), whole - BUFFER_HEADER);
    void *data = mg_block_take(bytes, &usable);
    if (MG_UNLIKELY(!data)) {
        mg_block_give(buffer, whole);
        return mg_fail(MG_ENOMEM, (int64_t)bytes, 0);
    }
    return buffer_init(buffer, data, usable);
}

mg_buffer *mg_buffer_borrow(void *data, size_t bytes, bool writable) {
    size_t whole;
    mg_buffer *buffer = mg_block_take(BUFFER_HEADER, &whole);
    if (!buffer)
        return mg_fail(MG_ENOMEM, BUFFER_HEADER, 0);
    buffer_init(buffer, data, bytes);
    buffer->borrowed = true;
    atomic_init(&buffer->shared, 1);
    buffer->writable = writable;
    return buffer;
}

inline void mg_buffer_release(mg_buffer *buffer) {
    /* A sole reference belongs to the caller and cannot be copied meanwhile, so no atomic decrement
     * is needed. */
    if (atomic_load_explicit(&buffer->refs, memory_order_acquire) != 1 &&
        atomic_fetch_sub_explicit(&buffer->refs, 1, memory_order_acq_rel) != 1)
        return;
    if (buffer->borrowed) {
        if (buffer->release)
            buffer->release(buffer->owner);
    } else if (buffer->data == buffer_inside(buffer)) {
        mg_block_give(buffer, buffer->bytes + BUFFER_HEADER);
        return;
    } else {
        mg_block_give(buffer->data, buffer->bytes);
    }
    mg_block_give(buffer, BUFFER_HEADER);
}

int64_t mg_clock_tick(void) {
    return atomic_fetch_add_explicit(&buffer_clock, 1, memory_order_acq_rel) + 1;
}

int64_t mg_clock_now(void) { return atomic_load_explicit(&buffer_clock, memory_order_acquire); }

void mg_buffer_touch(mg_buffer *buffer) {
    atomic_store_explicit(&buffer->written, mg_clock_tick(), memory_order_release);
}
