/* correlate.inc.c: forward and backward data as correlations: which axis fills the lanes, and in
 * which chunks; a part of conv.c. */

static void conv_correlate_block(void *context, int64_t block) {
    const conv_correlation *s = context;
    const conv_plan *p = &s->plan;
    int64_t units = conv_units(p);
    int64_t end = mg_min((block + 1) * s->per_block, units * p->groups);
    int slot = conv_take(&s->slots);
    void *scratch = s->slots.memory + (size_t)slot * s->slots.each;
    for (int64_t item = block * s->per_block; item < end; item++) {
        conv_chunk t = conv_chunk_at(p, item % units, item / units);
        int64_t next = item + 1 < units * p->groups ? item + 1 : item;
        conv_chunk later = conv_chunk_at(p, next % units, next / units);
        if (s->dtype == MG_FLOAT32) conv_outputs_f32(s, &t, &later, scratch);
        else conv_outputs_f64(s, &t, &later, scratch);
    }
    conv_give(&s->slots, slot);
}

/* Relative time of n vectors. A low tile of one vector has too few sums to hide the latency of the
 * additions. */
static double conv_vectors(int64_t n) { return (double)n + (CONV_PLACED && n % 2 ? 1. / 3 : 0); }

/* True if the lanes shall be output channels, false if neighbours on a line: whichever takes less
 * time. Output channels must be transposed when written, which costs about CONV_TRANSPOSE terms.
 * With neighbours as lanes, two lines of one vector each share a tile. */
static bool conv_choose_lanes(const conv_plan *p, int64_t lanes) {
    enum { CONV_TRANSPOSE = 10 };
    double n = (double)p->axis[2].outputs, outs = (double)p->outs, terms = (double)p->terms;
    double by_outs = n * conv_vectors(mg_ceil_div(p->outs, lanes)) * (terms + CONV_TRANSPOSE);
    int64_t along = mg_ceil_div(p->axis[2].outputs, lanes);
    return by_outs < outs * (along > 1 ? conv_vectors(along) : 1) * terms;
}

/* Decides whether, and how, terms whose input is padding are left out. Summing each tap along a
 * line apart leaves out more terms. But each tap then has few terms, sums are loaded and stored
 * once for each tap, and tiles are less full. Separate taps therefore need CONV_APART terms each,
 * and 1/64 of the terms to leave out. */
static void conv_leave_out(conv_correlation *s) {
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
static int conv_correlate_run(conv_correlation *s) {
    conv_plan *p = &s->plan;
    int64_t itemsize = mg_itemsize(s->dtype), lanes = MG_VECTOR_BYTES / itemsize;
    conv_join(p);
    const conv_axis *a = p->axis;
    if (p->batch * p->outs * a[0].outputs * a[1].outputs * a[2].outputs == 0) return MG_OK;
    if (CONV_SQUARES && winograd_suits(p, s->dtype)) {
        _Atomic bool lost = false;
        int code = winograd_correlate_run(s, &lost);
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
    /* whole lines, if outputs are interleaved */
    int64_t least = a[2].other ? a[2].outputs : 4 * CONV_MR;
    int64_t cols = mg_max(mg_min(CONV_CHUNK_WORK / work, most), least);
    bool copied = !s->lanes_are_outs && (a[2].step != 1 || a[2].outputs % lanes);
    if (!s->lanes_are_outs && s->height > 1 && conv_is_product(p)) {
        /* Lines of channels far apart would fall into few cache sets and onto many pages. */
        copied = true;
        cols = mg_max(CONV_NEAR / (mg_max(p->channels, 1) * itemsize) / width, 1) * width;
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
    mg_parallel_for(blocks, conv_correlate_block, s);
    mg_block_give(scratch, capacity);
    return MG_OK;
}
