/* conv.c: convolutions: forward, backward_data and backward_weights. */
#include "kernels/iterate/contiguous.h"
#include "plan.h"
#include "base/spin.h"
#include "threads/pool.h"
#include "kernels/iterate/nditer.h"
#include "simd/transpose.h"

#include <stdlib.h>
#include <string.h>

/* The register tile has up to CONV_MR x CONV_NV vectors, as in matrix products. With enough
 * registers there are two more tiles for kernels of CONV_TAPS taps along a line. One has CONV_TALL
 * outputs by one vector, for forward and backward data. The other has CONV_SIDE channels x
 * CONV_TAPS taps by one vector, for backward weights. */
enum { CONV_NV = 2, CONV_TAPS = 3, CONV_BY_TAPS = MG_VECTOR_BYTES == 64 };
/* True if each row of a tile has a pointer of its own. Only low tiles have the registers for that.
 * Tiles are then full wherever lines end. */
enum { CONV_PLACED = CONV_MR <= 6 };
/* True if several lines are summed together where a group has one channel. */
enum { CONV_BY_LINES = MG_VECTOR_BYTES == 32 };
/* True if depthwise convolutions read their planes in place. The weights of at most PLANE_HIGH
 * lines of PLANE_TAPS taps are in registers. */
#define CONV_BY_PLANES (MG_VECTOR_BYTES == 64)
enum { PLANE_TAPS = 5, PLANE_HIGH = 3 };
/* True if Winograd's method is compiled. The baseline leaves it out to stay small. */
enum { CONV_SQUARES = MG_VECTOR_BYTES > 16 || CONV_MR > 6 };
/* Keeps a value in its register after its last use, where the compiler would put a sum there. */
#define CONV_KEEP(value) __asm__("" : : "X"(value))

/* Height of the next tile when `rows` are left. The last two tiles share what remains. */
MG_INLINE int64_t conv_next(int64_t rows) {
    return rows >= 2 * CONV_MR ? CONV_MR : rows > CONV_MR ? (rows + 1) / 2 : rows;
}

/* Height of the tiles that n rows are cut into: as equal as possible, and a height that has a
 * tile. */
MG_INLINE int64_t conv_height(int64_t n) {
    int64_t height = conv_even(n, CONV_MR);
    return height > 8 ? (height + 1) / 2 * 2 : height;
}

/* Prefetch into L2 of the inputs of the next chunk while a chunk is summed. In each channel `span`
 * bytes are fetched, `share` cache lines at a time. */
typedef struct {
    const char *from;
    int64_t channels, plane, span, at, share;
} conv_ahead;

/* The prefetch for chunk t. Nothing is fetched if the inputs are near, or if `calls`, the number of
 * times that conv_ask will be called, is too small. */
static MG_NOINLINE conv_ahead conv_ahead_of(const conv_correlation *s, const conv_chunk *t, int64_t calls) {
    const conv_plan *p = &s->plan;
    const conv_axis *a = &p->axis[1];
    int64_t y = p->low[1] + t->i1 * a->step, first = mg_max(y, 0), size = mg_itemsize(s->dtype);
    int64_t last = mg_min(y + (t->rows - 1) * a->step + conv_reach(a), a->inputs);
    int64_t plane = p->in_plane * size, line = p->in_stride[1] * size, image = p->channels * plane;
    int64_t span = (last - first) * line, share = span * p->channels / 64 / mg_max(calls, 1) + 1;
    bool far = p->batch * p->groups * image > CONV_FAR;
    bool asks = far && span > 0 && p->axis[0].inputs == 1 && share <= CONV_SHARE;
    int64_t at = (t->image * p->groups + t->group) * image + first * line;
    return (conv_ahead){(const char *)s->x + at, asks ? p->channels : 0, plane, span, 0, share};
}

static MG_NOINLINE void conv_ask(conv_ahead *to) {
    for (int64_t n = to->share; n > 0 && to->channels > 0; n--) {
        __builtin_prefetch(to->from + to->at, 0, 2);
        to->at += 64;
        if (to->at >= to->span) {
            to->at = 0;
            to->channels--;
            to->from += to->plane;
        }
    }
}

#define MG_REAL 32
#include "tile.inc.c"
#define MG_REAL 32
#include "copy.inc.c"
#define MG_REAL 32
#include "line.inc.c"
#if CONV_BY_PLANES
#define MG_REAL 32
#include "depthwise_plane.inc.c"
#endif
#define MG_REAL 32
#include "conv.inc.c"
#define MG_REAL 32
#include "winograd_tile.inc.c"
#define MG_REAL 64
#include "tile.inc.c"
#define MG_REAL 64
#include "copy.inc.c"
#define MG_REAL 64
#include "line.inc.c"
#if CONV_BY_PLANES
#define MG_REAL 64
#include "depthwise_plane.inc.c"
#endif
#define MG_REAL 64
#include "conv.inc.c"

/* ---- scratch --------------------------------------------------------------------------------- */

MG_INLINE size_t conv_round(size_t bytes) { return (bytes + 63) / 64 * 64; }

/* Lays out a slot for each thread, at most `blocks`. Returns the size of all slots in bytes. */
static size_t conv_slots_size(conv_slots *s, int64_t blocks, size_t each) {
    s->count = (int)mg_min(blocks, mg_get_num_threads());
    s->each = conv_round(each);
    return (size_t)s->count * s->each + conv_round((size_t)s->count);
}

static void conv_slots_place(conv_slots *s, char *memory) {
    s->memory = memory;
    s->taken = (_Atomic bool *)(memory + (size_t)s->count * s->each);
    for (int i = 0; i < s->count; i++) atomic_init(&s->taken[i], false);
}

/* Takes a slot that no other thread uses. A slot becomes free as soon as a block ends. */
static int conv_take(const conv_slots *s) {
    for (;;) {
        for (int i = 0; i < s->count; i++)
            if (!atomic_exchange_explicit(&s->taken[i], true, memory_order_acquire)) return i;
        mg_cpu_pause();
    }
}

static void conv_give(const conv_slots *s, int slot) {
    atomic_store_explicit(&s->taken[slot], false, memory_order_release);
}

/* ---- the ways to sum ------------------------------------------------------------------------- */

#include "winograd.inc.c"
#include "depthwise.inc.c"
#include "correlate.inc.c"
#include "backward_weights.inc.c"

/* ---- arrays ---------------------------------------------------------------------------------- */

/* Converts the operands to contiguous arrays of one float dtype. Returns 0 or an error code. */
static int conv_operands(int count, mg_array **from, mg_array **to, bool *cast) {
    int dtype = mg_promote(count, from), code = MG_OK;
    for (int i = 0; i < count; i++) {
        to[i] = NULL;
        *cast |= from[i]->dtype != dtype;
    }
    if (!mg_is_float(dtype)) return mg_fail_code(MG_EDTYPE, dtype, 0);
    for (int i = 0; i < count && !code; i++) {
        mg_array *same = mg_as(from[i], dtype);
        to[i] = same ? mg_contiguous(same) : NULL;
        mg_release(same);
        if (!to[i]) code = mg_error();
    }
    return code;
}

static void conv_drop(int count, mg_array **arrays) {
    for (int i = 0; i < count; i++) mg_release(arrays[i]);
}

static mg_array *conv_result(int dtype, int64_t first, int64_t second, const mg_conv *conv,
                             const int64_t *sizes) {
    int64_t shape[2 + CONV_AXES] = {first, second};
    for (int k = 0; k < conv->axes; k++) shape[2 + k] = sizes[CONV_AXES - conv->axes + k];
    return mg_new(dtype, 2 + (int)conv->axes, shape);
}

/* The channels of a group, or -1 with an error set if the channels cannot be shared out equally. */
static int64_t conv_share(int64_t channels, const mg_conv *conv) {
    if (channels % conv->groups == 0) return channels / conv->groups;
    mg_fail_code(MG_ESHAPE, channels, conv->groups);
    return -1;
}

mg_array *mg_conv_forward(mg_array *x, mg_array *w, mg_array *bias, const mg_conv *given) {
    mg_conv conv;
    if (conv_read(&conv, given)) return NULL;
    if (x->ndim < 2 || w->ndim < 2) return mg_fail(MG_ENDIM, mg_min(x->ndim, w->ndim), 2);
    int64_t channels = w->shape[1], outs = conv_share(w->shape[0], &conv);
    if (outs < 0 || conv_check(w, w->shape[0], channels, conv.kernel, &conv) ||
        conv_check(x, x->shape[0], channels * conv.groups, conv.size, &conv))
        return NULL;
    if (bias && bias->ndim != 1) return mg_fail(MG_ENDIM, bias->ndim, 1);
    if (bias && bias->shape[0] != w->shape[0])
        return mg_fail(MG_ESHAPE, bias->shape[0], w->shape[0]);

    mg_array *used[3], *y = NULL;
    int count = bias ? 3 : 2;
    bool cast = false;
    if (!conv_operands(count, (mg_array *[]){x, w, bias}, used, &cast))
        y = conv_result(used[0]->dtype, x->shape[0], w->shape[0], &conv, conv.counts);
    if (y) {
        y->adapted = cast;
        conv_correlation s = {.plan = conv_plan_forward(&conv, x->shape[0], channels, outs),
                      .dtype = y->dtype,
                      .x = used[0]->data,
                      .w = used[1]->data,
                      .bias = bias ? used[2]->data : NULL,
                      .y = y->data};
        if (conv_correlate_run(&s)) {
            mg_release(y);
            y = NULL;
        }
    }
    conv_drop(count, used);
    return y;
}

/* Prepares two sums whose outputs alternate on a line of `size` elements. The first sum writes its
 * outputs side by side at the end of the line. The second sum reads them there and writes both
 * interleaved. It proceeds a vector at a time, and never writes beyond what it has read. */
static void conv_interleave(conv_axis *a, int64_t size) {
    if (a->first == 0) {
        a->first = size - a->outputs;
        a->apart = 1;
    } else {
        a->other = a->outputs;
    }
}

mg_array *mg_conv_backward_data(mg_array *g, mg_array *w, const mg_conv *given) {
    mg_conv conv;
    if (conv_read(&conv, given)) return NULL;
    if (g->ndim < 2 || w->ndim < 2) return mg_fail(MG_ENDIM, mg_min(g->ndim, w->ndim), 2);
    int64_t channels = w->shape[1], outs = conv_share(w->shape[0], &conv);
    if (outs < 0 || conv_check(w, w->shape[0], channels, conv.kernel, &conv) ||
        conv_check(g, g->shape[0], w->shape[0], conv.counts, &conv))
        return NULL;

    mg_array *used[2], *x = NULL;
    bool cast = false;
    if (!conv_operands(2, (mg_array *[]){g, w}, used, &cast))
        x = conv_result(used[0]->dtype, g->shape[0], channels * conv.groups, &conv, conv.size);
    int64_t phase[CONV_AXES], phases[CONV_AXES];
    for (int d = 0; d < CONV_AXES; d++) phases[d] = mg_min(conv.stride[d], conv.size[d]);
    bool interleaved = conv.stride[2] == 2 && phases[2] == 2 && conv.size[2] <= 2 * CONV_PLACES;
    int code = MG_OK;
    for (phase[0] = 0; x && phase[0] < phases[0]; phase[0]++)
        for (phase[1] = 0; phase[1] < phases[1]; phase[1]++)
            for (phase[2] = 0; phase[2] < phases[2] && !code; phase[2]++) {
                conv_correlation s = {.plan = conv_plan_backward_data(&conv, g->shape[0], channels, outs, phase),
                              .dtype = x->dtype,
                              .x = used[0]->data,
                              .w = used[1]->data,
                              .y = x->data};
                if (interleaved) conv_interleave(&s.plan.axis[CONV_AXES - 1], conv.size[CONV_AXES - 1]);
                code = conv_correlate_run(&s);
            }
    if (x) x->adapted = cast;
    if (code) {
        mg_release(x);
        x = NULL;
    }
    conv_drop(2, used);
    return x;
}

mg_array *mg_conv_backward_weights(mg_array *g, mg_array *x, const mg_conv *given) {
    mg_conv conv;
    if (conv_read(&conv, given)) return NULL;
    if (g->ndim < 2 || x->ndim < 2) return mg_fail(MG_ENDIM, mg_min(g->ndim, x->ndim), 2);
    int64_t channels = conv_share(x->shape[1], &conv), outs = conv_share(g->shape[1], &conv);
    if (channels < 0 || outs < 0 ||
        conv_check(g, x->shape[0], g->shape[1], conv.counts, &conv) ||
        conv_check(x, x->shape[0], x->shape[1], conv.size, &conv))
        return NULL;

    mg_array *used[2], *w = NULL;
    bool cast = false;
    if (!conv_operands(2, (mg_array *[]){g, x}, used, &cast))
        w = conv_result(used[0]->dtype, g->shape[1], channels, &conv, conv.kernel);
    if (w && w->size > 0) {
        w->adapted = cast;
        if (g->size == 0) {
            memset(w->data, 0, (size_t)(w->size * mg_itemsize(w->dtype)));
        } else {
            conv_weight_gradient s = {.plan = conv_plan_forward(&conv, x->shape[0], channels, outs),
                           .dtype = w->dtype,
                           .x = used[1]->data,
                           .g = used[0]->data,
                           .out = w->data};
            s.swapped = conv_is_product(&s.plan) && channels < outs;
            if (s.swapped) { /* the smaller array is packed */
                s.plan = conv_plan_forward(&conv, x->shape[0], outs, channels);
                s.x = used[0]->data;
                s.g = used[1]->data;
            }
            if (conv_backward_weights_run(&s)) {
                mg_release(w);
                w = NULL;
            }
        }
    }
    conv_drop(2, used);
    return w;
}

