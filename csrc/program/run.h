/* run.h: helpers of the thunks made from ops.def: the type of their table, and readers of
 * arguments. */
#ifndef MG_RUN_H
#define MG_RUN_H

#include "../base/error.h"
#include "../base/gil.h"
#include "../memory/array.h"

#include <limits.h>

typedef struct {
    const char *name, *title; /* of the kernel; of the public operation, for errors */
    /* a letter for each argument, a colon, one for the result: see mg_run_signature */
    const char *signature;
    int (*run)(mg_array *const *in, const mg_args *args, mg_arrays *out);
} op_entry;

/* Clamps to the range of int. No kernel accepts a number outside that range, so a clamped one is
 * refused too. */
MG_INLINE int64_t op_int(int64_t value) { return mg_max(INT_MIN, mg_min(value, INT_MAX)); }

/* True if no array of a list is NULL. */
MG_INLINE bool op_all_there(mg_array *const *list, int64_t count) {
    for (int64_t i = 0; i < count; i++)
        if (!list[i]) return false;
    return true;
}

/* Reads axes, and returns the address of the next argument. Counts above MG_MAX_NDIM + 1 are cut
 * off. Among so many axes one is always out of range or repeated. */
MG_INLINE const int64_t *op_axes(const int64_t *i, int64_t *count, int32_t axes[MG_MAX_NDIM + 1]) {
    int64_t given = *count;
    *count = mg_min(given, MG_MAX_NDIM + 1);
    for (int64_t k = 0; k < *count; k++) axes[k] = (int32_t)op_int(i[k]);
    return i + mg_max(given, 0);
}

/* Reads mg_windows. First comes the number of axes; then the counts and steps of all axes. The
 * starts of all windows follow, then their sizes and, if given, their divisors. */
static bool op_read_windows(const int64_t *i, int64_t n, mg_windows *to) {
    int64_t axes = n > 0 ? i[0] : 0, total = 0;
    if (axes < 1 || axes > 3 || n < 1 + 2 * axes) return false;
    to->axes = axes;
    for (int64_t d = 0; d < axes; d++) {
        to->count[d] = i[1 + d];
        to->step[d] = i[1 + axes + d];
        if (to->count[d] < 0) return false;
        total += to->count[d];
    }
    int64_t rest = n - 1 - 2 * axes;
    if (rest != 2 * total && rest != 3 * total) return false;
    to->starts = i + 1 + 2 * axes;
    to->sizes = to->starts + total;
    to->divisors = rest == 3 * total && total ? to->sizes + total : NULL;
    return true;
}

/* Reads mg_conv: the number of axes, the groups, then the lists, with a number for each axis. */
static bool op_read_conv(const int64_t *i, int64_t n, mg_conv *to) {
    int64_t axes = n > 0 ? i[0] : 0, *lists[] = {to->size,   to->kernel,   to->counts,
                                                 to->stride, to->dilation, to->before};
    if (axes < 1 || axes > 3 || n != 2 + 6 * axes) return false;
    to->axes = axes;
    to->groups = i[1];
    for (int k = 0; k < 6; k++)
        for (int64_t d = 0; d < axes; d++) lists[k][d] = i[2 + k * axes + d];
    return true;
}

MG_INLINE int op_made(mg_arrays *out, mg_array *made) {
    out->count = 1;
    out->made[0] = made;
    return made ? MG_OK : mg_error();
}
MG_INLINE int op_made_several(mg_arrays *out, const mg_arrays *made) {
    if (made) *out = *made;
    return made ? MG_OK : mg_error();
}

#endif
