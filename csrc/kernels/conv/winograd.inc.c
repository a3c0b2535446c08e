/* winograd.inc.c: when Winograd's method serves a convolution with 3 x 3 taps, and in which chunks;
 * a part of conv.c. */

enum { WINOGRAD_LANES = MG_VECTOR_BYTES / sizeof(float) };

/* True if Winograd's method applies and is faster. It needs 3 x 3 taps, and outputs that are
 * neighbours from the start of their lines on. Interleaved outputs wait at the end of a line, so
 * they are refused. Costs are counted in multiply-adds for each image, channel and output. A square
 * costs a little more for the transforms of each channel's inputs and of each output. Every call
 * pays for the transform of the weights. */
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

/* Cuts the outputs into chunks of about `places` outputs and at most `images` images, and sizes the
 * planes. From here on an output of the plan is a block of squares with all their inputs. With
 * dilation the squares of a block interleave: they lie between each other's lines and columns. 0 or
 * an error code. */
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

/* Packs and transforms the weights of a tile. */
static void winograd_pack(const conv_correlation *s, int64_t item, float *to, float *scratch) {
    conv_pack_tile_f32(s, item, scratch);
    winograd_weights_f32(s, to, scratch);
}

/* Transforms the inputs of a chunk, whose copies take the first part of the scratch memory. */
static void winograd_read(const conv_correlation *s, const conv_chunk *t, float *to, float *scratch) {
    const conv_plan *p = &s->plan;
    winograd_inputs_f32(p, &s->planes, t, to, s->x, scratch, scratch + p->images * p->copy_size);
}

static void winograd_write(const conv_correlation *s, const conv_chunk *t, int64_t tile,
                           const float *inputs, const float *weights, float *scratch) {
    if (!winograd_outputs_f32(s, t, tile, inputs, weights, scratch))
        atomic_store_explicit(s->lost, true, memory_order_relaxed);
}

/* Chunk by chunk, with the transformed weights of all tiles kept in memory. */
static void winograd_pack_block(void *context, int64_t item) {
    const conv_correlation *s = context;
    int slot = conv_take(&s->slots);
    winograd_pack(s, item, (float *)s->packed + item * s->height * s->plan.channels,
                  (float *)(s->slots.memory + (size_t)slot * s->slots.each));
    conv_give(&s->slots, slot);
}

static void winograd_chunk_block(void *context, int64_t item) {
    const conv_correlation *s = context;
    int64_t units = conv_units(&s->plan), tile_size = s->height * s->plan.channels;
    conv_chunk t = conv_chunk_at(&s->plan, item % units, item / units);
    if (atomic_load_explicit(s->lost, memory_order_relaxed)) return;
    int slot = conv_take(&s->slots);
    float *inputs = (float *)(s->slots.memory + (size_t)slot * s->slots.each);
    float *scratch = inputs + 16 * s->planes.inputs;
    const float *weights = (const float *)s->packed + t.group * s->tiles * tile_size;
    winograd_read(s, &t, inputs, scratch);
    for (int64_t tile = 0; tile < s->tiles; tile++, weights += tile_size)
        winograd_write(s, &t, tile, inputs, weights, scratch);
    conv_give(&s->slots, slot);
}

/* Tile by tile, with the transformed inputs of all chunks kept in memory. */
static void winograd_read_block(void *context, int64_t item) {
    const conv_correlation *s = context;
    int64_t units = conv_units(&s->plan);
    conv_chunk t = conv_chunk_at(&s->plan, item % units, item / units);
    int slot = conv_take(&s->slots);
    winograd_read(s, &t, (float *)s->packed + item * 16 * s->planes.inputs,
                  (float *)(s->slots.memory + (size_t)slot * s->slots.each));
    conv_give(&s->slots, slot);
}

static void winograd_tile_block(void *context, int64_t item) {
    const conv_correlation *s = context;
    int64_t units = conv_units(&s->plan), group = item / s->tiles, tile = item % s->tiles;
    if (atomic_load_explicit(s->lost, memory_order_relaxed)) return;
    int slot = conv_take(&s->slots);
    float *weights = (float *)(s->slots.memory + (size_t)slot * s->slots.each);
    float *scratch = weights + 16 * s->planes.others;
    const float *inputs = (const float *)s->packed + group * units * 16 * s->planes.inputs;
    winograd_pack(s, item, weights, scratch);
    for (int64_t unit = 0; unit < units; unit++, inputs += 16 * s->planes.inputs) {
        conv_chunk t = conv_chunk_at(&s->plan, unit, group);
        winograd_write(s, &t, tile, inputs, weights, scratch);
    }
    conv_give(&s->slots, slot);
}

/* 0 or an error code. *lost: set if an output is not finite; all are then to be computed the other
 * way. */
static int winograd_correlate_run(const conv_correlation *given, _Atomic bool *lost) {
    enum { SIZE = sizeof(float), LINE = WINOGRAD_LANES, WIDTH = CONV_NV * LINE };
    conv_correlation sum = *given, *s = &sum;
    conv_plan *p = &s->plan;
    conv_planes *planes = &s->planes;
    /* Chunks for all threads; the result does not depend on them. */
    int64_t each = mg_ceil_div(p->batch * p->groups, mg_get_num_threads());
    int64_t places = p->axis[1].outputs * p->axis[2].outputs * each;
    places = mg_min(mg_max(places, CONV_PLACES / 4), CONV_PLACES);
    int code = winograd_lay_out(p, planes, places, each);
    if (code) return code;
    s->height = mg_min(CONV_NV, mg_ceil_div(p->outs, LINE)) * LINE;
    s->tiles = mg_ceil_div(p->outs, s->height);
    s->lost = lost;
    int64_t blocks = conv_units(p) * p->groups, tiles = s->tiles * p->groups;
    int64_t inputs = blocks * planes->inputs, weights = tiles * s->height * p->channels + LINE;
    /* The smaller of inputs and weights is kept for all items, as it is read from a far cache or
     * another processor's. */
    bool by_tiles = inputs < weights;
    planes->others = by_tiles ? s->height * p->channels + LINE : weights;
    planes->products = planes->squares * WIDTH + LINE;

    size_t terms = conv_round((size_t)p->channels * sizeof(conv_term));
    size_t packed = conv_round((size_t)(16 * mg_min(inputs, weights) * SIZE));
    /* A slot holds the operand that is not kept, and behind it one of three. These are copies with
     * the halfway sums of inputs, packed weights, or products with the outputs' sums. */
    int64_t sums = (4 * planes->squares + LINE) * WIDTH;
    int64_t room = mg_max(p->images * p->copy_size + sums, 16 * planes->products + sums);
    room = mg_max(room, s->height * p->terms) + 16 * (by_tiles ? planes->others : planes->inputs);
    size_t slots = conv_slots_size(&s->slots, mg_max(blocks, tiles), (size_t)(room * SIZE));
    size_t all = terms + packed + slots, capacity;
    char *scratch = mg_block_take(all, &capacity);
    if (!scratch) return mg_fail_code(MG_ENOMEM, (int64_t)all, 0);
    s->term = (conv_term *)scratch;
    s->packed = scratch + terms;
    conv_slots_place(&s->slots, scratch + terms + packed);
    for (int64_t c = 0; c < p->channels; c++)
        s->term[c] = (conv_term){c * planes->pitch, c * s->height};
    if (by_tiles) {
        mg_parallel_for(blocks, winograd_read_block, s);
        mg_parallel_for(tiles, winograd_tile_block, s);
    } else {
        mg_parallel_for(tiles, winograd_pack_block, s);
        mg_parallel_for(blocks, winograd_chunk_block, s);
    }
    mg_block_give(scratch, capacity);
    return MG_OK;
}
