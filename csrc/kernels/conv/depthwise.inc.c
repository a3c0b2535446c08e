/* depthwise.inc.c: depthwise convolutions that read their planes in place; a part of conv.c. */

#if CONV_BY_PLANES

/* True for a depthwise convolution of stride 1 with 3 x 3 or 5 x 5 taps. Lines are written from
 * their start on, so interleaved outputs, which wait at the end of a line, are refused. */
static bool plane_suits(const conv_plan *p) {
    const conv_axis *a = p->axis;
    for (int d = 1; d < CONV_AXES; d++) {
        if (a[d].step != 1 || a[d].apart != 1 || a[d].first) return false;
        if (a[d].taps != 3 && a[d].taps != 5) return false;
    }
    return p->channels == 1 && conv_plain(&a[0]) && a[0].outputs == 1 && conv_whole(p) &&
           a[1].taps == a[2].taps && conv_apart(&a[1]) == 1;
}

/* Cuts planes into parts of some lines, so that a part stays in L1. */
static void plane_lay_out(conv_plan *p, int64_t itemsize) {
    const conv_axis *a = p->axis;
    int64_t places = CONV_NEAR / 4 / itemsize;
    p->rows = conv_even(a[1].outputs, mg_max(places / mg_max(a[2].inputs, 1), 1));
    p->chunks_all = mg_ceil_div(a[1].outputs, p->rows);
}

static void plane_sum_block(void *context, int64_t block) {
    const conv_correlation *s = context;
    const conv_plan *p = &s->plan;
    int64_t end = mg_min((block + 1) * s->per_block, p->batch * p->groups * p->chunks_all);
    for (int64_t item = block * s->per_block; item < end; item++)
        if (s->dtype == MG_FLOAT32) plane_sum_f32(s, item);
        else plane_sum_f64(s, item);
}

static void plane_sum_run(conv_correlation *s) {
    conv_plan *p = &s->plan;
    plane_lay_out(p, mg_itemsize(s->dtype));
    int64_t work = p->rows * p->axis[2].outputs * p->taps * p->outs;
    s->per_block = mg_max(CONV_BLOCK_WORK / work, 1);
    int64_t items = p->batch * p->groups * p->chunks_all;
    mg_parallel_for(mg_ceil_div(items, s->per_block), plane_sum_block, s);
}

static void plane_dots_block(void *context, int64_t item) {
    const conv_weight_gradient *s = context;
    if (s->dtype == MG_FLOAT32) plane_dots_f32(s, item);
    else plane_dots_f64(s, item);
}

/* 0 or an error code. */
static int plane_dots_run(conv_weight_gradient *s) {
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
