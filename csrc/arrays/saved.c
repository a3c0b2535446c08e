/* saved.c: arrays that the tape saves for a backward pass, and how later writes to them are
 * noticed.
 *
 * Writes advance a process-wide clock and stamp the buffer with the new time. One number thus tells
 * for all saved arrays whether they were written since. Memory that NumPy can write gets no stamp.
 * It is copied when it is saved, and NumPy sees saved memory read-only.
 */
#include "memory/array.h"

static mg_array *saved_keep(mg_array *a, bool as_is) {
    mg_buffer *buffer = a->buffer;
    bool exposed = atomic_load_explicit(&buffer->shared, memory_order_relaxed) > 0;
    bool widened = !as_is && mg_is_storage(a->dtype);
    mg_array *kept = widened   ? mg_cast(a, mg_wide(a->dtype))
                     : exposed ? mg_copy(a)
                               : mg_retain(a);
    if (kept) atomic_fetch_add_explicit(&kept->buffer->pins, 1, memory_order_relaxed);
    return kept;
}

static mg_saved *saved_make(int count, mg_array *const *given, bool as_is) {
    size_t capacity;
    mg_saved *saved = mg_block_take(sizeof(mg_saved), &capacity);
    if (!saved) return mg_fail(MG_ENOMEM, sizeof(mg_saved), 0);
    for (int i = 0; i < 3; i++) saved->arrays[i] = NULL;
    saved->time = mg_clock_now();
    for (int i = 0; i < count; i++) {
        if (given[i] && !(saved->arrays[i] = saved_keep(given[i], as_is))) {
            mg_unsave(saved);
            return NULL;
        }
    }
    return saved;
}

mg_saved *mg_save(mg_array *a, mg_array *b, mg_array *c) {
    return saved_make(3, (mg_array *[]){a, b, c}, false);
}

mg_saved *mg_save_as_is(mg_array *a) { return saved_make(1, &a, true); }

void mg_unsave(mg_saved *saved) {
    if (!saved) return;
    for (int i = 0; i < 3; i++) {
        if (!saved->arrays[i]) continue;
        atomic_fetch_sub_explicit(&saved->arrays[i]->buffer->pins, 1, memory_order_relaxed);
        mg_release(saved->arrays[i]);
    }
    mg_block_give(saved, sizeof(mg_saved));
}

mg_array *mg_saved_array(mg_saved *saved, int i) {
    if (i < 0 || i > 2 || !saved->arrays[i]) return mg_fail(MG_EARG, i, 0);
    if (saved->arrays[i]->buffer->written > saved->time) return mg_fail(MG_ESTALE, i, 0);
    return mg_retain(saved->arrays[i]);
}

uint64_t mg_saved_buffer(const mg_saved *saved, int i) {
    return i < 0 || i > 2 || !saved->arrays[i] ? 0 : mg_buffer_id(saved->arrays[i]);
}

int mg_set_owner(mg_array *a, void *owner, void (*release)(void *owner)) {
    mg_buffer *buffer = a->buffer;
    if (!buffer->borrowed || buffer->release) return mg_fail_code(MG_EARG, 0, 0);
    buffer->owner = owner;
    buffer->release = release;
    return MG_OK;
}
