/* conv.c: convolutions of arrays, their transposes and the gradients of their weights. */
#include "conv_plan.h"
#include "../base/spin.h"
#include "../threads/pool.h"
#include "nditer.h"
#include "turn.h"

#include <stdlib.h>
#include <string.h>

/* The register tile is up to CONV_MR numbers by CONV_NV vectors, as in matrix products; where there
 * are the registers, one vector by CONV_TALL numbers too, for kernels of CONV_TAPS along a line, and
 * for their gradients one vector by CONV_TAPS taps of CONV_SIDE channels. */
#if MG_VECTOR_BYTES == 64
enum { CONV_MR = 14, CONV_NV = 2 };
#elif defined(__aarch64__)
enum { CONV_MR = 12, CONV_NV = 2 };
#else
enum { CONV_MR = 6, CONV_NV = 2 };
#endif
enum { CONV_TAPS = 3, CONV_TALL = 28, CONV_SIDE = 8, CONV_BY_TAPS = MG_VECTOR_BYTES == 64 };
/* Does each number of a tile have a place of its own? So few have registers for it, and then tiles
 * are full, wherever lines end. */
enum { CONV_PLACED = CONV_MR <= 6 };
/* Are several lines of a channel alone summed together? */
enum { CONV_BY_LINES = MG_VECTOR_BYTES == 32 };
/* Are planes that are a group of their own summed where they lie? At most so many lines of so many
 * taps are in registers. */
#define CONV_BY_PLANES (MG_VECTOR_BYTES == 64)
enum { PLANE_TAPS = 5, PLANE_HIGH = 3 };
/* Are there squares of outputs by Winograd's method? The baseline is kept small without. */
enum { CONV_SQUARES = MG_VECTOR_BYTES > 16 || CONV_MR > 6 };
/* Keeps a value in its register after its last use, where a sum would be put in its place. */
#define CONV_KEEP(value) __asm__("" : : "X"(value))

/* Height of the next tile when `rows` are left: the last two share what remains. */
MG_INLINE int64_t conv_next(int64_t rows) {
    return rows >= 2 * CONV_MR ? CONV_MR : rows > CONV_MR ? (rows + 1) / 2 : rows;
}

/* Height of the tiles that n are cut into: as equal as possible, and one that a tile has. */
MG_INLINE int64_t conv_height(int64_t n) {
    int64_t height = conv_even(n, CONV_MR);
    return height > 8 ? (height + 1) / 2 * 2 : height;
}

/* Inputs that are asked for, into the second cache, while others are summed: `span` bytes of each
 * of the channels from there on, `share` lines of cache at a time. */
typedef struct {
    const char *from;
    int64_t channels, plane, span, at, share;
} conv_ahead;

/* Those of a chunk, unless they are near or `calls`, which ask for them, too few. */
static MG_NOINLINE conv_ahead conv_ahead_of(const conv_sum *s, const conv_chunk *t, int64_t calls) {
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
#include "conv_tile.inc.c"
#define MG_REAL 32
#include "conv_move.inc.c"
#define MG_REAL 32
#include "conv_line.inc.c"
#if CONV_BY_PLANES
#define MG_REAL 32
#include "conv_plane.inc.c"
#endif
#define MG_REAL 32
#include "conv.inc.c"
#define MG_REAL 32
#include "conv_winograd.inc.c"
#define MG_REAL 64
#include "conv_tile.inc.c"
#define MG_REAL 64
#include "conv_move.inc.c"
#define MG_REAL 64
#include "conv_line.inc.c"
#if CONV_BY_PLANES
#define MG_REAL 64
#include "conv_plane.inc.c"
#endif
#define MG_REAL 64
#include "conv.inc.c"

MG_PLANNING

/* ---- scratch --------------------------------------------------------------------------------- */

MG_INLINE size_t conv_round(size_t bytes) { return (bytes + 63) / 64 * 64; }

/* Bytes for so many slots. */
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

/* A slot that no other thread has; there is one as soon as a block ends. */
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

/* ---- by Winograd's method -------------------------------------------------------------------- */

enum { WINOGRAD_LANES = MG_VECTOR_BYTES / sizeof(float) };

/* Are its terms three taps by three, the outputs neighbours, from the start of their lines on (those
 * that wait to be woven lie at the end), and is it faster so? In multiply-adds for each image,
 * channel and output, a square costs a little more for the sums of each channel's inputs and of each
 * output, and every call the sums of weights. */
static bool winograd_suits(const conv_plan *p, int dtype) {
    enum { SQUARE = 16, SUMS = 10, WEIGHTS = 200 };
    if (dtype != MG_FLOAT32 || p->axis[0].taps != 1 || !conv_whole(p)) return false;
    double terms = (double)p->axis[0].outputs, squares = terms;
    for (int d = 1; d < CONV_AXES; d++) {
        const conv_axis *a = &p->axis[d];
        if (a->taps != CONV_TAPS || a->step != 1 || a->apart != 1 || a->first) return false;
        terms *= conv_filled(a) * (double)(CONV_TAPS * a->outputs);
        squares *= (double)(mg_ceil_div(a->outputs, 2 * conv_apart(a)) * conv_apart(a));
    }
    double more = SUMS / (double)p->channels + SUMS / (double)p->outs;
    return conv_apart(&p->axis[2]) <= 2 &&
           SQUARE * squares * (1 + more) + WEIGHTS / (double)p->batch < terms;
}

/* Chunks of about so many outputs and of so many images at most; the planes of their inputs. From
 * here on an output of the plan is a block of the squares that lie between each other's lines and
 * columns, and takes all their inputs. 0 or an error code. */
static int winograd_lay_out(conv_plan *p, conv_planes *planes, int64_t places, int64_t images) {
    enum { LINE = 64 / sizeof(float) };
    conv_axis *a = p->axis;
    images = mg_min(images, mg_max(places / (a[1].outputs * a[2].outputs), 1));
    for (int d = 1; d < CONV_AXES; d++) {
        int64_t apart = conv_apart(&a[d]);
        planes->outputs[d] = a[d].outputs;
        planes->back[d] = a[d].per_tap < 0;
        a[d] = (conv_axis){.inputs = a[d].inputs,
                           .outputs = mg_ceil_div(a[d].outputs, 2 * apart),
                           .at = conv_low(&a[d]),
                           .step = 2 * apart,
                           .per_tap = 1,
                           .taps = 4 * apart,
                           .tap_step = 1};
    }
    int64_t squares = a[1].step * a[2].step / 4;
    places = mg_max(places / (4 * squares), 1);
    int code = conv_lay_out(p, places / a[2].outputs, places, 1, 1, true, 2 * CONV_COPY);
    p->images = mg_min(p->images, images);
    planes->squares = squares * p->images * p->rows * p->cols;
    /* Odd numbers of cache lines; vectors may reach behind the last square. */
    planes->pitch = (mg_ceil_div(planes->squares + WINOGRAD_LANES - 1, LINE) | 1) * LINE;
    planes->inputs = p->channels * planes->pitch + LINE;
    return code;
}

static void winograd_pack_block(void *context, int64_t block) {
    const conv_sum *s = context;
    const conv_plan *p = &s->plan;
    int slot = conv_take(&s->slots);
    void *scratch = s->slots.memory + (size_t)slot * s->slots.each;
    conv_pack_tile_f32(s, block, scratch);
    winograd_weights_f32(s, (float *)s->packed + block * s->height * p->channels, scratch);
    conv_give(&s->slots, slot);
}

static void winograd_block(void *context, int64_t item) {
    const conv_sum *s = context;
    int64_t units = conv_units(&s->plan);
    conv_chunk t = conv_chunk_at(&s->plan, item % units, item / units);
    if (atomic_load_explicit(s->lost, memory_order_relaxed)) return;
    int slot = conv_take(&s->slots);
    if (!winograd_chunk_f32(s, &t, (float *)(s->slots.memory + (size_t)slot * s->slots.each)))
        atomic_store_explicit(s->lost, true, memory_order_relaxed);
    conv_give(&s->slots, slot);
}

/* 0 or an error code. *lost: some output is not finite, and all are to be computed otherwise. */
static int winograd_sum_run(const conv_sum *given, _Atomic bool *lost) {
    enum { SIZE = sizeof(float), LINE = WINOGRAD_LANES, WIDTH = CONV_NV * LINE };
    conv_sum sum = *given, *s = &sum;
    conv_plan *p = &s->plan;
    conv_planes *planes = &s->planes;
    /* Chunks for all threads; what an output is does not depend on them. */
    int64_t each = mg_ceil_div(p->batch * p->groups, mg_get_num_threads());
    int64_t places = p->axis[1].outputs * p->axis[2].outputs * each;
    places = mg_min(mg_max(places, CONV_PLACES / 4), CONV_PLACES);
    int code = winograd_lay_out(p, planes, places, each);
    if (code) return code;
    s->height = mg_min(CONV_NV, mg_ceil_div(p->outs, LINE)) * LINE;
    s->tiles = mg_ceil_div(p->outs, s->height);
    s->lost = lost;
    int64_t blocks = conv_units(p) * p->groups;
    int64_t all_tiles = p->groups * s->tiles, weights = all_tiles * s->height * p->channels;
    planes->others = weights + LINE;
    planes->products = planes->squares * WIDTH + LINE;

    size_t terms = conv_round((size_t)p->channels * sizeof(conv_term));
    size_t packed = conv_round((size_t)(16 * planes->others * SIZE));
    /* The sums of outputs take the place of the halfway sums of inputs, which are fewer. */
    int64_t sums = p->images * p->copy_size + (4 * planes->squares + LINE) * WIDTH;
    sums += 16 * (planes->inputs + planes->products);
    sums = mg_max(sums, s->height * p->terms); /* or weights that are packed */
    size_t slots = conv_slots_size(&s->slots, mg_max(blocks, all_tiles), (size_t)(sums * SIZE));
    size_t all = terms + packed + slots, capacity;
    char *scratch = mg_block_take(all, &capacity);
    if (!scratch) return mg_fail_code(MG_ENOMEM, (int64_t)all, 0);
    s->term = (conv_term *)scratch;
    s->packed = scratch + terms;
    conv_slots_place(&s->slots, scratch + terms + packed);
    for (int64_t c = 0; c < p->channels; c++)
        s->term[c] = (conv_term){c * planes->pitch, c * s->height};
    mg_parallel_for(all_tiles, winograd_pack_block, s);
    mg_parallel_for(blocks, winograd_block, s);
    mg_block_give(scratch, capacity);
    return MG_OK;
}

/* ---- planes where they lie ------------------------------------------------------------------- */

#if CONV_BY_PLANES

/* Is a plane a group of its own, and summed by squares of taps at each of its places? */
static bool plane_suits(const conv_plan *p) {
    const conv_axis *a = p->axis;
    for (int d = 1; d < CONV_AXES; d++)
        if (a[d].step != 1 || a[d].apart != 1 || (a[d].taps != 3 && a[d].taps != 5)) return false;
    return p->channels == 1 && conv_plain(&a[0]) && a[0].outputs == 1 && conv_whole(p) &&
           a[1].taps == a[2].taps && conv_apart(&a[1]) == 1;
}

/* Some lines of a plane at a time: those that stay in the first cache. */
static void plane_lay_out(conv_plan *p, int64_t itemsize) {
    const conv_axis *a = p->axis;
    int64_t places = CONV_NEAR / 4 / itemsize;
    p->rows = conv_even(a[1].outputs, mg_max(places / mg_max(a[2].inputs, 1), 1));
    p->chunks_all = mg_ceil_div(a[1].outputs, p->rows);
}

static void plane_sum_block(void *context, int64_t block) {
    const conv_sum *s = context;
    const conv_plan *p = &s->plan;
    int64_t end = mg_min((block + 1) * s->per_block, p->batch * p->groups * p->chunks_all);
    for (int64_t item = block * s->per_block; item < end; item++)
        if (s->dtype == MG_FLOAT32) plane_sum_f32(s, item);
        else plane_sum_f64(s, item);
}

static void plane_sum_run(conv_sum *s) {
    conv_plan *p = &s->plan;
    plane_lay_out(p, mg_itemsize(s->dtype));
    int64_t work = p->rows * p->axis[2].outputs * p->taps * p->outs;
    s->per_block = mg_max(CONV_BLOCK_WORK / work, 1);
    int64_t items = p->batch * p->groups * p->chunks_all;
    mg_parallel_for(mg_ceil_div(items, s->per_block), plane_sum_block, s);
}

static void plane_dots_block(void *context, int64_t item) {
    const conv_grad *s = context;
    if (s->dtype == MG_FLOAT32) plane_dots_f32(s, item);
    else plane_dots_f64(s, item);
}

/* 0 or an error code. */
static int plane_dots_run(conv_grad *s) {
    conv_plan *p = &s->plan;
    int64_t itemsize = mg_itemsize(s->dtype), outs = p->groups * p->outs;
    plane_lay_out(p, itemsize);
    int64_t units = p->batch * p->chunks_all;
    double work = (double)units * (double)(p->rows * p->axis[2].outputs * p->taps * outs);
    s->runs = mg_min(mg_ceil_div(CONV_RUNS, outs), mg_max((int64_t)(work / CONV_BLOCK_WORK), 1));
    s->run = mg_ceil_div(units, mg_min(s->runs, units));
    s->runs = mg_ceil_div(units, s->run);
    size_t size = s->runs > 1 ? (size_t)(s->runs * outs * p->taps * itemsize) : 0, capacity;
    if (size) s->parts = mg_block_take(size, &capacity);
    if (size && !s->parts) return mg_fail_code(MG_ENOMEM, (int64_t)size, 0);
    mg_parallel_if(work >= CONV_BLOCK_WORK, s->runs * outs, plane_dots_block, s);
    if (size && s->dtype == MG_FLOAT32) plane_gather_f32(s);
    else if (size) plane_gather_f64(s);
    if (size) mg_block_give(s->parts, capacity);
    return MG_OK;
}

#endif

/* ---- sums ------------------------------------------------------------------------------------ */

static void conv_sum_block(void *context, int64_t block) {
    const conv_sum *s = context;
    const conv_plan *p = &s->plan;
    int64_t units = conv_units(p);
    int64_t end = mg_min((block + 1) * s->per_block, units * p->groups);
    int slot = conv_take(&s->slots);
    void *scratch = s->slots.memory + (size_t)slot * s->slots.each;
    for (int64_t item = block * s->per_block; item < end; item++) {
        conv_chunk t = conv_chunk_at(p, item % units, item / units);
        /* Behind its own block a thread's next one is that after those that others have. */
        int64_t next = item + 1 + (item + 1 < end ? 0 : (mg_get_num_threads() - 1) * s->per_block);
        if (next >= units * p->groups) next = item;
        conv_chunk later = conv_chunk_at(p, next % units, next / units);
        if (s->dtype == MG_FLOAT32) conv_outputs_f32(s, &t, &later, scratch);
        else conv_outputs_f64(s, &t, &later, scratch);
    }
    conv_give(&s->slots, slot);
}

/* How long so many vectors take: a low tile of one has too few sums not to wait for them. */
static double conv_vectors(int64_t n) { return (double)n + (CONV_PLACED && n % 2 ? 1. / 3 : 0); }

/* Lanes are the outputs' channels, or neighbours on a line: whichever takes less time. The former
 * must be turned when they are written, at the cost of about CONV_TURN terms; of the latter two
 * lines of one vector share a tile. */
static bool conv_choose_lanes(const conv_plan *p, int64_t lanes) {
    enum { CONV_TURN = 10 };
    double n = (double)p->axis[2].outputs, outs = (double)p->outs, terms = (double)p->terms;
    double by_outs = n * conv_vectors(mg_ceil_div(p->outs, lanes)) * (terms + CONV_TURN);
    int64_t along = mg_ceil_div(p->axis[2].outputs, lanes);
    return by_outs < outs * (along > 1 ? conv_vectors(along) : 1) * terms;
}

/* Whether, and how, terms without an input are left out. Those of one tap along a line apart from
 * others are few, their sums are added up as often, and a tile is not as full: it takes enough of
 * them, and of those left out. */
static void conv_leave_out(conv_sum *s) {
    enum { CONV_APART = 48 };
    const conv_plan *p = &s->plan;
    const conv_axis *a = p->axis;
    int64_t taps = a[0].taps * a[1].taps;
    bool apart = !CONV_PLACED && !s->by_taps && p->channels * taps >= CONV_APART &&
                 conv_filled(&a[2]) < 63. / 64;
    s->parts = apart ? a[2].taps : 1;
    s->some = 0;
    if (s->lanes_are_outs && p->terms > CONV_DEPTH && p->taps <= CONV_DEPTH &&
        p->cols == a[2].outputs && (apart || !conv_inside(&a[1])))
        s->some = conv_even(p->channels, CONV_DEPTH * s->parts / p->taps);
}

/* 0 or an error code. */
static int conv_sum_run(conv_sum *s) {
    conv_plan *p = &s->plan;
    int64_t itemsize = mg_itemsize(s->dtype), lanes = MG_VECTOR_BYTES / itemsize;
    conv_join(p);
    const conv_axis *a = p->axis;
    if (p->batch * p->outs * a[0].outputs * a[1].outputs * a[2].outputs == 0) return MG_OK;
    if (CONV_SQUARES && winograd_suits(p, s->dtype)) {
        _Atomic bool lost = false;
        int code = winograd_sum_run(s, &lost);
        if (code || !lost) return code;
    }
#if CONV_BY_PLANES
    if (plane_suits(p)) {
        plane_sum_run(s);
        return MG_OK;
    }
#endif

    s->lanes_are_outs = conv_choose_lanes(p, lanes);
    s->height = s->lanes_are_outs ? mg_min(CONV_NV, mg_ceil_div(p->outs, lanes)) * lanes
                : p->outs % CONV_MR == 0 || p->outs % CONV_MR >= 4 ? mg_min(p->outs, CONV_MR)
                                                                   : conv_height(p->outs);
    s->tiles = mg_ceil_div(p->outs, s->height);
    s->by_taps = CONV_BY_TAPS && s->dtype == MG_FLOAT32 && s->lanes_are_outs &&
                 s->height <= lanes && a[2].taps == CONV_TAPS && a[2].step == 1 &&
                 a[2].per_tap * a[2].per_tap == 1;
    int64_t work = mg_max(p->terms * p->outs, 1), width = CONV_NV * lanes; /* of one place */
    int64_t most = s->height > 1 ? CONV_PLACES : CONV_COPY;
    int64_t least = a[2].other ? a[2].outputs : 4 * CONV_MR; /* whole lines, where they are woven */
    int64_t cols = mg_max(mg_min(CONV_CHUNK_WORK / work, most), least);
    bool copied = !s->lanes_are_outs && (a[2].step != 1 || a[2].outputs % lanes);
    if (!s->lanes_are_outs && s->height > 1 && conv_is_product(p)) {
        /* Lines of channels far apart would fall onto few sets of the cache, and on many pages. */
        copied = true;
        cols = mg_max(CONV_NEAR / (p->channels * itemsize) / width, 1) * width;
    }
    int code = conv_lay_out(p, cols / a[2].outputs, cols, s->lanes_are_outs ? CONV_MR : width,
                            s->lanes_are_outs ? 1 : (int)lanes, copied, 2 * CONV_COPY);
    if (code) return code;
    int64_t lines = p->images * p->rows;
    s->per_block = mg_max(CONV_BLOCK_WORK / (work * lines * p->cols), 1);
    int64_t blocks = mg_ceil_div(conv_units(p) * p->groups, s->per_block);

    int64_t sums = s->lanes_are_outs ? (lines * p->cols + lanes) * width
                                     : lines * mg_ceil_div(p->cols, width) * width * s->height;
    size_t terms = conv_round((size_t)p->terms * sizeof(conv_term));
    size_t packed = conv_round((size_t)(p->groups * s->tiles * s->height * p->terms * itemsize));
    conv_leave_out(s);
    int64_t places = CONV_PLACED && s->lanes_are_outs ? lines * p->cols : 0;
    size_t table = conv_round((size_t)places * sizeof(conv_term));
    size_t order = s->some ? conv_round((size_t)p->terms * sizeof(int64_t)) : 0;
    size_t each = (size_t)((p->images * p->copy_size + sums) * itemsize);
    size_t slots = conv_slots_size(&s->slots, blocks, each), capacity;
    size_t all = terms + table + order + packed + slots;
    char *scratch = mg_block_take(all, &capacity);
    if (!scratch) return mg_fail_code(MG_ENOMEM, (int64_t)all, 0);
    s->term = (conv_term *)scratch;
    s->place = (conv_term *)(scratch + terms);
    s->order = s->some ? (int64_t *)(scratch + terms + table) : NULL;
    s->packed = scratch + terms + table + order;
    conv_slots_place(&s->slots, scratch + terms + table + order + packed);
    conv_fill_terms(p, s->term, !s->lanes_are_outs, s->height, s->order, s->some, s->parts);
    if (places)
        conv_fill_places(p, s->place, (conv_range){0, p->rows}, (conv_range){0, p->cols}, 0);
    mg_block_fn pack = s->dtype == MG_FLOAT32 ? conv_pack_weights_f32 : conv_pack_weights_f64;
    if (p->terms * p->outs * p->groups >= CONV_BLOCK_WORK)
        mg_parallel_for(p->groups * s->tiles, pack, s);
    else
        for (int64_t i = 0; i < p->groups * s->tiles; i++) pack(s, i);
    mg_parallel_for(blocks, conv_sum_block, s);
    mg_block_give(scratch, capacity);
    return MG_OK;
}

/* ---- gradients of weights -------------------------------------------------------------------- */

static void conv_copy_block(void *context, int64_t item) {
    const conv_grad *s = context;
    const conv_plan *p = &s->plan;
    conv_chunk t = conv_chunk_at(p, 0, item / p->batch);
    char *to = (char *)s->copies + item * p->copy_size * mg_itemsize(s->dtype);
    if (s->dtype == MG_FLOAT32) conv_copy_f32((float *)to, s->x, p, &t, item % p->batch);
    else conv_copy_f64((double *)to, s->x, p, &t, item % p->batch);
}

static void conv_gather_block(void *context, int64_t item) {
    const conv_grad *s = context;
    bool finite = true;
    if (CONV_SQUARES && s->lost) finite = winograd_gather_f32(s, item);
    else if (s->dtype == MG_FLOAT32) conv_gather_f32(s, item);
    else conv_gather_f64(s, item);
    if (!finite) atomic_store_explicit(s->lost, true, memory_order_relaxed);
}

/* Item: a run of chunks, a group and some tiles of its outputs. If it is the only run, their
 * gradients are done. */
static void conv_grad_block(void *context, int64_t item) {
    const conv_grad *s = context;
    const conv_plan *p = &s->plan;
    int64_t shares = mg_ceil_div(s->tiles, s->together), tile = item % shares * s->together;
    int64_t group = item / shares % p->groups, run = item / shares / p->groups;
    int slot = conv_take(&s->slots);
    void *scratch = s->slots.memory + (size_t)slot * s->slots.each;
    if (CONV_SQUARES && s->lost) winograd_run_f32(s, run, group, tile, scratch);
    else if (s->dtype == MG_FLOAT32) conv_weights_f32(s, run, group, tile, scratch);
    else conv_weights_f64(s, run, group, tile, scratch);
    conv_give(&s->slots, slot);
    int64_t end = mg_min(tile + s->together, s->tiles);
    for (; s->runs == 1 && tile < end; tile++) conv_gather_block(context, group * s->tiles + tile);
}

/* Are outputs without an input for a tap left out of its sum, each tap with a list of the others?
 * The lists are made for each call, and take some of the cache. */
static bool conv_gives(const conv_grad *s, int64_t lanes) {
    enum { CONV_LISTS = 32, CONV_WORTH = 1 << 11 };
    const conv_plan *p = &s->plan;
    return !s->by_dots && !s->by_taps && p->cols == p->axis[2].outputs && p->taps <= CONV_LISTS &&
           p->outs > lanes && p->channels * p->outs >= CONV_WORTH &&
           conv_filled(&p->axis[1]) * conv_filled(&p->axis[2]) < 31. / 32;
}

/* The runs of chunks of so many outputs; and how many tiles share copied inputs: two, or as many as
 * leave work for all threads. What is summed does not depend on it. */
static void conv_grad_share(conv_grad *s, int64_t places, bool shared) {
    const conv_plan *p = &s->plan;
    int64_t units = conv_units(p), tiles = p->groups * s->tiles;
    double work = (double)units * (double)places * (double)(p->terms * p->outs * p->groups);
    s->runs = mg_min(mg_ceil_div(CONV_RUNS, tiles), mg_max((int64_t)(work / CONV_BLOCK_WORK), 1));
    s->run = mg_ceil_div(units, mg_min(s->runs, units));
    s->runs = mg_ceil_div(units, s->run);
    int64_t shares = s->runs * tiles / (4 * mg_get_num_threads());
    s->together = shared ? mg_min(mg_max(shares, 2), s->tiles) : 1;
}

/* By Winograd's method: 0 or an error code. *lost: some gradient is not finite, and all are to be
 * computed otherwise. */
static int winograd_grad_run(const conv_grad *given, _Atomic bool *lost) {
    enum { SIZE = sizeof(float), LINE = WINOGRAD_LANES, WIDTH = CONV_NV * LINE };
    conv_grad grad = *given, *s = &grad;
    conv_plan *p = &s->plan;
    conv_planes *planes = &s->planes;
    int code = winograd_lay_out(p, planes, CONV_PLACES, p->batch);
    if (code) return code;
    s->lost = lost;
    s->tiles = mg_ceil_div(p->outs, WIDTH);
    conv_grad_share(s, 4 * planes->squares, true);
    int64_t squares = planes->squares, tiles = p->groups * s->tiles;
    planes->others = squares * WIDTH + LINE;
    planes->products = p->channels * WIDTH + LINE;

    size_t table = conv_round((size_t)squares * sizeof(conv_term));
    int64_t parts = 16 * s->runs * tiles * planes->products;
    /* The upstream gradients take the place of the halfway sums of inputs, which are fewer. */
    int64_t each = p->images * p->copy_size + (4 * squares + LINE) * WIDTH;
    each += 16 * (planes->inputs + planes->others);
    size_t slots = conv_slots_size(&s->slots, s->runs * tiles, (size_t)(each * SIZE));
    size_t all = table + (size_t)(parts * SIZE) + slots, capacity;
    char *scratch = mg_block_take(all, &capacity);
    if (!scratch) return mg_fail_code(MG_ENOMEM, (int64_t)all, 0);
    s->place = (conv_term *)scratch;
    s->parts = scratch + table;
    conv_slots_place(&s->slots, (char *)s->parts + parts * SIZE);
    for (int64_t i = 0; i < squares; i++) s->place[i] = (conv_term){i, i * WIDTH};
    mg_parallel_for(s->runs * p->groups * mg_ceil_div(s->tiles, s->together), conv_grad_block, s);
    if (s->runs > 1) mg_parallel_for(tiles, conv_gather_block, s);
    mg_block_give(scratch, capacity);
    return MG_OK;
}

/* 0 or an error code. There are weights and outputs. */
static int conv_grad_run(conv_grad *s) {
    conv_plan *p = &s->plan;
    int64_t itemsize = mg_itemsize(s->dtype), lanes = MG_VECTOR_BYTES / itemsize;
    int64_t width = CONV_NV * lanes;
    conv_join(p);
    const conv_axis *a = p->axis;
    if (CONV_SQUARES && winograd_suits(p, s->dtype)) {
        _Atomic bool lost = false;
        int code = winograd_grad_run(s, &lost);
        if (code || !lost) return code;
    }
#if CONV_BY_PLANES
    if (plane_suits(p)) return plane_dots_run(s);
#endif
    s->tiles = mg_ceil_div(p->outs, width);
    bool many = s->tiles > 2; /* enough of them for all threads */
    s->by_dots = p->outs <= lanes / 2 && 2 * a[2].outputs >= lanes;
    s->by_taps = conv_even(a[2].taps, CONV_MR) > conv_even(p->channels, CONV_MR);
    /* Channels that lie a power of two apart would share few sets of the cache. */
    bool copied = s->by_dots ? a[2].step != 1
                             : !s->by_taps && p->channels > 4 && p->in_plane * itemsize % 1024 == 0;
    int64_t most = s->by_dots ? CONV_COPY : CONV_PLACES;
    int code = conv_lay_out(p, most / a[2].outputs, most, 1, s->by_dots ? (int)lanes : 1, copied,
                            (many ? 8 : 2) * CONV_COPY);
    if (code) return code;

    /* Each item would copy the inputs of whole images again. */
    int64_t copies = p->batch * p->groups * p->copy_size;
    bool first = many && p->copied && p->chunks_all == 1 && copies <= CONV_COPIES;
    if (!first) copies = 0;
    int64_t tiles = p->groups * s->tiles, places = p->images * p->rows * p->cols;
    conv_grad_share(s, places, p->copied && !first);

    size_t terms = conv_round((size_t)p->terms * sizeof(conv_term));
    if (s->by_dots) places = 0; /* neither packed nor looked up */
    bool given = conv_gives(s, lanes);
    size_t table = conv_round((size_t)(places * (given ? p->taps : 1)) * sizeof(conv_term));
    size_t gives = given ? conv_round((size_t)p->taps * sizeof(conv_given)) : 0;
    size_t parts = (size_t)(s->runs * tiles * (p->terms + lanes) * width * itemsize);
    size_t each = (size_t)((places * width + (first ? 0 : p->images * p->copy_size)) * itemsize);
    size_t slots = conv_slots_size(&s->slots, s->runs * tiles, each);
    size_t all = terms + table + gives + parts + slots + (size_t)(copies * itemsize), capacity;
    char *scratch = mg_block_take(all, &capacity);
    if (!scratch) return mg_fail_code(MG_ENOMEM, (int64_t)all, 0);
    s->term = (conv_term *)scratch;
    s->place = (conv_term *)(scratch + terms);
    s->given = given ? (conv_given *)(scratch + terms + table) : NULL;
    s->parts = scratch + terms + table + gives;
    conv_slots_place(&s->slots, (char *)s->parts + parts);
    s->copies = first ? (char *)s->parts + parts + slots : NULL;
    conv_fill_terms(p, s->term, false, 0, NULL, 0, 0);
    if (given) conv_fill_given(p, s->given, s->place, width);
    else if (places)
        conv_fill_places(p, s->place, (conv_range){0, p->rows}, (conv_range){0, p->cols}, width);
    int64_t items = s->runs * p->groups * mg_ceil_div(s->tiles, s->together);
    if (first) mg_parallel_for(p->batch * p->groups, conv_copy_block, s);
    mg_parallel_for(items, conv_grad_block, s);
    if (s->runs > 1) mg_parallel_for(tiles, conv_gather_block, s);
    mg_block_give(scratch, capacity);
    return MG_OK;
}

/* ---- arrays ---------------------------------------------------------------------------------- */

/* Contiguous operands of one float dtype; an error code unless there are such. */
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

/* The channels of a group; -1 with an error set where there is no equal share. */
static int64_t conv_share(int64_t channels, const mg_conv *conv) {
    if (channels % conv->groups == 0) return channels / conv->groups;
    mg_fail_code(MG_ESHAPE, channels, conv->groups);
    return -1;
}

mg_array *mg_conv_sum(mg_array *x, mg_array *w, mg_array *bias, const mg_conv *given) {
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
        conv_sum s = {.plan = conv_forward(&conv, x->shape[0], channels, outs),
                      .dtype = y->dtype,
                      .x = used[0]->data,
                      .w = used[1]->data,
                      .bias = bias ? used[2]->data : NULL,
                      .y = y->data};
        if (conv_sum_run(&s)) {
            mg_release(y);
            y = NULL;
        }
    }
    conv_drop(count, used);
    return y;
}

/* Of two sums whose outputs alternate on a line of so many, the first one's lie side by side at
 * its end, from where the second one fetches them: a vector at a time, it writes no further than
 * it has read. */
static void conv_weave(conv_axis *a, int64_t size) {
    if (a->first == 0) {
        a->first = size - a->outputs;
        a->apart = 1;
    } else {
        a->other = a->outputs;
    }
}

mg_array *mg_conv_spread(mg_array *g, mg_array *w, const mg_conv *given) {
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
    bool woven = conv.stride[2] == 2 && phases[2] == 2 && conv.size[2] <= 2 * CONV_PLACES;
    int code = MG_OK;
    for (phase[0] = 0; x && phase[0] < phases[0]; phase[0]++)
        for (phase[1] = 0; phase[1] < phases[1]; phase[1]++)
            for (phase[2] = 0; phase[2] < phases[2] && !code; phase[2]++) {
                conv_sum s = {.plan = conv_backward(&conv, g->shape[0], channels, outs, phase),
                              .dtype = x->dtype,
                              .x = used[0]->data,
                              .w = used[1]->data,
                              .y = x->data};
                if (woven) conv_weave(&s.plan.axis[CONV_AXES - 1], conv.size[CONV_AXES - 1]);
                code = conv_sum_run(&s);
            }
    if (x) x->adapted = cast;
    if (code) {
        mg_release(x);
        x = NULL;
    }
    conv_drop(2, used);
    return x;
}

mg_array *mg_conv_weight(mg_array *g, mg_array *x, const mg_conv *given) {
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
            conv_grad s = {.plan = conv_forward(&conv, x->shape[0], channels, outs),
                           .dtype = w->dtype,
                           .x = used[1]->data,
                           .g = used[0]->data,
                           .out = w->data};
            conv_plan joined = s.plan;
            conv_join(&joined);
            s.swapped = conv_is_product(&joined) && channels < outs;
            if (s.swapped) { /* what is packed is the smaller one */
                s.plan = conv_forward(&conv, x->shape[0], outs, channels);
                s.x = used[0]->data;
                s.g = used[1]->data;
            }
            if (conv_grad_run(&s)) {
                mg_release(w);
                w = NULL;
            }
        }
    }
    conv_drop(2, used);
    return w;
}

MG_PLANNING_END
