/* run.h: helpers of the thunks of ops.def: the type of their table, and readers of arguments. */
#ifndef MG_RUN_H
#define MG_RUN_H

#include "../base/error.h"
#include "../base/gil.h"
#include "../memory/array.h"

#include <limits.h>

typedef struct {
    const char *name, *title; /* of the kernel; of the operation that errors name */
    const char *signature;    /* a letter for each argument, a colon, one for the result: see mg_op_signature */
    int (*run)(mg_array *const *in, const mg_args *args, mg_arrays *out);
} op_entry;

/* As an int: no kernel takes a number outside its range for a valid one. */
MG_INLINE int64_t op_int(int64_t value) { return mg_max(INT_MIN, mg_min(value, INT_MAX)); }

/* Reads axes, and returns where the next argument is. More than an array can have are cut off: some of
 * the rest is out of range, or twice there. */
MG_INLINE const int64_t *op_axes(const int64_t *i, int64_t *count, int32_t axes[MG_MAX_NDIM + 1]) {
    int64_t given = *count;
    *count = mg_min(given, MG_MAX_NDIM + 1);
    for (int64_t k = 0; k < *count; k++) axes[k] = (int32_t)op_int(i[k]);
    return i + mg_max(given, 0);
}

/* The number of axes, of each axis the windows' count and step, of all of them where they start, how
 * large they are and, if there are any, their divisors. */
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

/* The number of axes, the groups, then for each of mg_conv's lists as many numbers. */
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
