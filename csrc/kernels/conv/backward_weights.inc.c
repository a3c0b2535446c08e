/* backward_weights.inc.c: backward weights: partial sums over runs of chunks, their tiles, and the
 * same by Winograd's method; a part of conv.c. */

static void conv_copy_block(void *context, int64_t item) {
    const conv_weight_gradient *s = context;
    const conv_plan *p = &s->plan;
    conv_chunk t = conv_chunk_at(p, 0, item / p->batch);
    char *to = (char *)s->copies + item * p->copy_size * mg_itemsize(s->dtype);
    if (s->dtype == MG_FLOAT32) conv_copy_f32((float *)to, s->x, p, &t, item % p->batch);
    else conv_copy_f64((double *)to, s->x, p, &t, item % p->batch);
}

static void conv_gather_block(void *context, int64_t item) {
    const conv_weight_gradient *s = context;
    bool finite = true;
    if (CONV_SQUARES && s->lost) finite = winograd_gather_f32(s, item);
    else if (s->dtype == MG_FLOAT32) conv_gather_f32(s, item);
    else conv_gather_f64(s, item);
    if (!finite) atomic_store_explicit(s->lost, true, memory_order_relaxed);
}

/* Item: a run of chunks, a group and some tiles of its outputs. If there is only one run, the
 * gradients of the tiles are finished here. */
static void conv_backward_weights_block(void *context, int64_t item) {
    const conv_weight_gradient *s = context;
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

/* True if each tap has a list of the outputs whose input is not padding, and sums only those. The
 * lists are made for each call and take some of the cache. */
static bool conv_gives(const conv_weight_gradient *s, int64_t lanes) {
    const conv_plan *p = &s->plan;
    return !s->by_dots && !s->by_taps && p->cols == p->axis[2].outputs && p->taps <= CONV_LISTS &&
           p->outs > lanes && p->channels * p->outs >= CONV_WORTH &&
           conv_filled(&p->axis[1]) * conv_filled(&p->axis[2]) < 31. / 32;
}

/* Sets the runs of chunks of `places` outputs, and the number of tiles that share copied inputs.
 * Two tiles share them, or as many as leave work for all threads. The result does not depend on
 * that number. */
static void conv_backward_weights_share(conv_weight_gradient *s, int64_t places, bool shared) {
    const conv_plan *p = &s->plan;
    int64_t units = conv_units(p), tiles = p->groups * s->tiles;
    double work = (double)units * (double)places * (double)(p->terms * p->outs * p->groups);
    s->runs = mg_min(mg_ceil_div(CONV_RUNS, tiles), mg_max((int64_t)(work / CONV_BLOCK_WORK), 1));
    s->run = mg_ceil_div(units, mg_min(s->runs, units));
    s->runs = mg_ceil_div(units, s->run);
    int64_t shares = s->runs * tiles / (4 * mg_get_num_threads());
    s->together = shared ? mg_min(mg_max(shares, 2), s->tiles) : 1;
}

/* Backward weights by Winograd's method; 0 or an error code. `lost` is set if a gradient is not
 * finite; all are then to be computed the other way. */
static int winograd_backward_weights_run(const conv_weight_gradient *given, _Atomic bool *lost) {
    enum { SIZE = sizeof(float), LINE = WINOGRAD_LANES, WIDTH = CONV_NV * LINE };
    conv_weight_gradient grad = *given, *s = &grad;
    conv_plan *p = &s->plan;
    conv_planes *planes = &s->planes;
    int code = winograd_lay_out(p, planes, CONV_PLACES, p->batch);
    if (code) return code;
    s->lost = lost;
    s->tiles = mg_ceil_div(p->outs, WIDTH);
    conv_backward_weights_share(s, 4 * planes->squares, true);
    int64_t squares = planes->squares, tiles = p->groups * s->tiles;
    planes->others = squares * WIDTH + LINE;
    planes->products = p->channels * WIDTH + LINE;

    size_t table = conv_round((size_t)squares * sizeof(conv_term));
    int64_t parts = 16 * s->runs * tiles * planes->products;
    /* The upstream gradients reuse the memory of the halfway sums of inputs, which take less. */
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
    mg_parallel_for(s->runs * p->groups * mg_ceil_div(s->tiles, s->together), conv_backward_weights_block, s);
    if (s->runs > 1) mg_parallel_for(tiles, conv_gather_block, s);
    mg_block_give(scratch, capacity);
    return MG_OK;
}

/* 0 or an error code. There is at least one weight and one output. */
static int conv_backward_weights_run(conv_weight_gradient *s) {
    conv_plan *p = &s->plan;
    int64_t itemsize = mg_itemsize(s->dtype), lanes = MG_VECTOR_BYTES / itemsize;
    int64_t width = CONV_NV * lanes;
    conv_join(p);
    const conv_axis *a = p->axis;
    if (CONV_SQUARES && winograd_suits(p, s->dtype)) {
        _Atomic bool lost = false;
        int code = winograd_backward_weights_run(s, &lost);
        if (code || !lost) return code;
    }
#if CONV_BY_PLANES
    if (plane_suits(p)) return plane_dots_run(s);
#endif
    s->tiles = mg_ceil_div(p->outs, width);
    bool many = s->tiles > 2; /* enough tiles for all threads */
    s->by_dots = p->outs <= lanes / 2 && 2 * a[2].outputs >= lanes;
    s->by_taps = conv_even(a[2].taps, CONV_MR) > conv_even(p->channels, CONV_MR);
    /* Channels that lie a power of two apart would share few cache sets. */
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
    conv_backward_weights_share(s, places, p->copied && !first);

    size_t terms = conv_round((size_t)p->terms * sizeof(conv_term));
    if (s->by_dots) places = 0; /* upstream gradients are neither packed nor looked up */
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
    mg_parallel_for(items, conv_backward_weights_block, s);
    if (s->runs > 1) mg_parallel_for(tiles, conv_gather_block, s);
    mg_block_give(scratch, capacity);
    return MG_OK;
}
