/* chain.inc.c: several elementwise operations in one pass over memory, interpreted chunk by chunk.
 *
 * A chain is a list of instructions on registers. The first registers are the operands, broadcast to
 * one shape. All others hold a chunk of intermediate values, which stays in the L1 cache. Each
 * instruction runs the loop that the operation runs by itself, so the bits of results are the same.
 *
 * The code is a list of integers: the number of registers, the number of results, the register of
 * each result, then the instructions. An instruction is: kind, operation, input (of a derivative),
 * number of inputs, registers of the inputs, register of the result.
 */

enum { CHAIN_OPERANDS = 16, CHAIN_REGISTERS = 32, CHAIN_STEPS = 256, CHAIN_RESULTS = 4, CHAIN_INPUTS = 5 };
/* Bytes of a chunk of floats: sixteen registers fill an L1 cache. */
enum { CHAIN_BYTES = 2048, CHAIN_UNIT = NDITER_UNIT_MAX };

typedef struct {
    mg_kernel kernel;
    int inputs, in[CHAIN_INPUTS], out;
} chain_step;

typedef struct {
    int operands, registers, steps, results;
    int64_t size, chunk; /* elements, in all and of a chunk */
    int ndim;
    int64_t shape[MG_MAX_NDIM];
    struct chain_operand {
        const char *data;
        int itemsize;
        bool contiguous, constant;
        int64_t strides[MG_MAX_NDIM];
    } operand[CHAIN_OPERANDS];
    int itemsize[CHAIN_REGISTERS]; /* 0 before a register is written */
    int result[CHAIN_REGISTERS];   /* the result that a register is, or -1 */
    int last[CHAIN_OPERANDS];      /* the last instruction that reads an operand */
    int made[CHAIN_RESULTS];       /* the instruction that makes a result */
    bool late[CHAIN_RESULTS];      /* a later instruction still reads the operand that a result replaces */
    char *out[CHAIN_RESULTS];
    int reduced; /* the register that is reduced, or -1 */
    bool streams;
    chain_step list[CHAIN_STEPS];
} chain;

/* ---- reading the code ---- */

/* The loop of an instruction, and the item size of its result; NULL if there is none. */
static mg_kernel chain_kernel(const int64_t *code, int dtype, const int *sizes, int *out) {
    int64_t kind = code[0], op = code[1], input = code[2], inputs = code[3];
    int width = (int)mg_itemsize(dtype), wide = dtype - MG_FLOAT32;
    bool floats = true, bools = true;
    for (int64_t i = 0; i < inputs; i++) {
        floats &= sizes[i] == width;
        bools &= sizes[i] == 1;
    }
    *out = width;
    switch (kind) {
    case MG_CHAIN_FORWARD:
        if (op < 0 || op >= OP_COUNT || float_rows[op].arity != inputs) return NULL;
        if (bools || float_rows[op].tells) *out = 1;
        return floats ? float_rows[op].kernel[wide] : bools ? bool_kernels[op] : NULL;
    case MG_CHAIN_VJP:
        if (op < 0 || op >= OP_COUNT || input < 0 || input >= float_rows[op].arity) return NULL;
        return floats && inputs == float_rows[op].arity + 2 ? float_rows[op].vjp[input][wide] : NULL;
    case MG_CHAIN_WHERE:
        if (inputs != 3 || sizes[0] != 1 || sizes[1] != width || sizes[2] != width) return NULL;
        return width == 4 ? where_4 : where_8;
    case MG_CHAIN_CLAMP: return floats && inputs == 3 ? (wide ? clamp_f64 : clamp_f32) : NULL;
    default: return NULL;
    }
}

/* Reads the code into a chain; false if it is none. It has results if it `stores`. */
static bool chain_read(chain *c, int dtype, int words, const int64_t *code, bool stores) {
    const int64_t *at = code, *end = code + words;
    if (words < 2 || at[0] < c->operands || at[0] > CHAIN_REGISTERS || at[1] < stores || at[1] > CHAIN_RESULTS)
        return false;
    c->registers = (int)*at++;
    c->results = (int)*at++;
    if (end - at < c->results) return false;
    for (int r = 0; r < c->registers; r++) c->result[r] = -1;
    for (int k = 0; k < c->results; k++, at++) {
        if (*at < c->operands || *at >= c->registers || c->result[*at] >= 0) return false;
        c->result[*at] = k;
    }
    for (c->steps = 0; at < end; c->steps++) {
        chain_step *s = &c->list[c->steps];
        int sizes[CHAIN_INPUTS], made;
        if (c->steps == CHAIN_STEPS || end - at < 4 || at[3] < 1 || at[3] > CHAIN_INPUTS || end - at < 5 + at[3])
            return false;
        s->inputs = (int)at[3];
        int64_t out = at[4 + s->inputs];
        if (out < c->operands || out >= c->registers) return false;
        for (int i = 0; i < s->inputs; i++) {
            int64_t in = at[4 + i];
            if (in < 0 || in >= c->registers || in == out || !c->itemsize[in]) return false;
            s->in[i] = (int)in;
            sizes[i] = c->itemsize[in];
            if (in < c->operands) c->last[in] = c->steps;
        }
        s->kernel = chain_kernel(at, dtype, sizes, &made);
        if (!s->kernel || (c->result[out] >= 0 && c->itemsize[out])) return false; /* written once */
        s->out = (int)out;
        c->itemsize[out] = made;
        if (c->result[out] >= 0) c->made[c->result[out]] = c->steps;
        at += 5 + s->inputs;
    }
    for (int r = 0; r < c->registers; r++)
        if (c->result[r] >= 0 && !c->itemsize[r]) return false;
    return true;
}

/* ---- running ---- */

/* Gathers n elements of an operand from element `at` on. */
static void chain_gather(const chain *c, const struct chain_operand *op, int64_t at, char *to, int64_t n) {
    int64_t index[MG_MAX_NDIM], rest = at;
    int inner = c->ndim - 1;
    for (int d = inner; d >= 0; d--) {
        index[d] = rest % c->shape[d];
        rest /= c->shape[d];
    }
    while (n > 0) {
        const char *from = op->data;
        for (int d = 0; d <= inner; d++) from += index[d] * op->strides[d] * op->itemsize;
        int64_t run = mg_min(n, c->shape[inner] - index[inner]);
        mg_copy_run(to, from, run, op->strides[inner], op->itemsize);
        to += run * op->itemsize;
        n -= run;
        index[inner] = 0;
        for (int d = inner - 1; d >= 0; d--) {
            if (++index[d] < c->shape[d]) break;
            index[d] = 0;
        }
    }
}

/* Fills up n elements to whole units with copies of the first. */
static void chain_pad(char *to, int64_t n, int itemsize) {
    int64_t whole = mg_ceil_div(n, CHAIN_UNIT) * CHAIN_UNIT;
    mg_copy_run(to + n * itemsize, to, whole - n, 0, itemsize);
}

/* The memory of a chain's registers in a thread. */
typedef struct {
    _Alignas(64) char room[CHAIN_REGISTERS][CHAIN_BYTES];
    const void *value[CHAIN_REGISTERS]; /* where a register's chunk lies */
} chain_memory;

static void chain_begin(const chain *c, chain_memory *m) {
    for (int i = 0; i < c->operands; i++) {
        const struct chain_operand *op = &c->operand[i];
        m->value[i] = m->room[i];
        if (op->constant) mg_copy_run(m->room[i], op->data, c->chunk, 0, op->itemsize);
    }
}

/* Puts n elements of all operands from element `at` on in order, in whole units. */
static void chain_read_operands(const chain *c, chain_memory *m, int64_t at, int64_t n, bool whole) {
    for (int i = 0; i < c->operands; i++) {
        const struct chain_operand *op = &c->operand[i];
        if (op->constant) continue;
        const char *from = op->data + at * op->itemsize;
        m->value[i] = op->contiguous && whole ? from : m->room[i];
        if (op->contiguous && whole) continue;
        if (op->contiguous) memcpy(m->room[i], from, (size_t)(n * op->itemsize));
        else chain_gather(c, op, at, m->room[i], n);
        if (!whole) chain_pad(m->room[i], n, op->itemsize);
    }
}

/* Computes elements begin..end. The reduced register, which is no result, is written to `terms`. */
static void chain_span(const chain *c, chain_memory *m, int64_t begin, int64_t end, char *terms) {
    for (int64_t at = begin, n; at < end; at += n) {
        n = mg_min(c->chunk, end - at);
        bool whole = n % CHAIN_UNIT == 0, direct = whole && !c->streams;
        int64_t units = mg_ceil_div(n, CHAIN_UNIT) * CHAIN_UNIT;
        chain_read_operands(c, m, at, n, whole);
        for (int k = 0; k < c->steps; k++) {
            const chain_step *s = &c->list[k];
            const void *in[CHAIN_INPUTS];
            int result = c->result[s->out];
            for (int i = 0; i < s->inputs; i++) in[i] = m->value[s->in[i]];
            bool there = direct && result >= 0 && !c->late[result];
            char *to = there ? c->out[result] + at * c->itemsize[s->out] : m->room[s->out];
            if (s->out == c->reduced && whole) to = terms + (at - begin) * c->itemsize[s->out];
            s->kernel(to, in, units);
            m->value[s->out] = to;
        }
        if (!whole && c->reduced >= 0) {
            int64_t size = c->itemsize[c->reduced];
            memcpy(terms + (at - begin) * size, m->value[c->reduced], (size_t)(n * size));
        }
        for (int r = c->operands; r < c->registers; r++) {
            if (c->result[r] < 0 || (direct && !c->late[c->result[r]])) continue;
            char *to = c->out[c->result[r]] + at * c->itemsize[r];
            if (c->streams) mg_stream(to, m->room[r], n * c->itemsize[r]);
            else memcpy(to, m->room[r], (size_t)(n * c->itemsize[r]));
        }
    }
    if (c->streams) v_stream_end();
}

static void chain_block(void *context, int64_t block) {
    const chain *c = context;
    chain_memory memory;
    chain_begin(c, &memory);
    int64_t begin = block * NDITER_BLOCK;
    chain_span(c, &memory, begin, mg_min(begin + NDITER_BLOCK, c->size), NULL);
}

/* Makes n terms of a reduction. See reduce_terms. */
static void chain_put(const void *context, char *to, int64_t line, int64_t first, int64_t n) {
    const chain *c = context;
    chain_memory memory;
    chain_begin(c, &memory);
    chain_span(c, &memory, line + first, line + first + n, to);
}

/* Lays the operands out; false with an error set if one does not fit. */
static bool chain_lay_out(chain *c, int count, mg_array *const *operands) {
    if (mg_broadcast_shape(count, operands, &c->ndim, c->shape)) return false;
    c->size = 1;
    for (int d = 0; d < c->ndim; d++) c->size *= c->shape[d];
    for (int i = 0; i < count; i++) {
        const mg_array *x = operands[i];
        struct chain_operand *op = &c->operand[i];
        op->data = x->data;
        op->itemsize = c->itemsize[i] = (int)mg_itemsize(x->dtype);
        op->contiguous = x->size == c->size && mg_is_contiguous(x);
        op->constant = x->size == 1 && !op->contiguous;
        if (!op->contiguous) mg_broadcast_strides(x, c->ndim, c->shape, op->strides);
    }
    return true;
}

/* A new array for a result, or a spare operand of the same layout that is no result yet. */
static mg_array *chain_result(chain *c, int place, int dtype, int count, mg_array *const *given,
                              mg_array *const *operands) {
    int result = c->result[place];
    dtype = c->itemsize[place] == 1 ? MG_BOOL : dtype;
    c->late[result] = false;
    for (int i = 0; i < count; i++) {
        mg_array *x = given[i];
        if (!x->spare || x != operands[i] || !c->operand[i].contiguous || x->dtype != dtype || x->ndim != c->ndim)
            continue;
        bool alone = true;
        for (int k = 0; k < count; k++) alone &= k == i || given[k] != x;
        for (int k = 0; k < c->ndim; k++) alone &= x->shape[k] == c->shape[k];
        if (!alone) continue;
        x->spare = 0;
        c->late[result] = c->last[i] >= c->made[result];
        return mg_retain(x);
    }
    return mg_new(dtype, c->ndim, c->shape);
}

/* A reduction of a register of a chain over its last axes. */
typedef struct {
    int op, axes, keepdims, of;
} chain_reduction;

static bool chain_reduces(const chain *c, const chain_reduction *r, int dtype) {
    bool known = r->op == MG_SUM || r->op == MG_MEAN || r->op == MG_MAX || r->op == MG_MIN;
    return known && r->axes >= 0 && r->axes <= c->ndim && r->of >= c->operands && r->of < c->registers &&
           c->result[r->of] < 0 && c->itemsize[r->of] == mg_itemsize(dtype) && c->size && c->results < CHAIN_RESULTS;
}

static mg_arrays *chain_run(int dtype, int count, mg_array **given, int words, const int64_t *code,
                            const chain_reduction *reduction) {
    if ((dtype != MG_FLOAT32 && dtype != MG_FLOAT64) || count < 1 || count > CHAIN_OPERANDS)
        return mg_fail(MG_EARG, dtype, count);
    mg_array *operands[CHAIN_OPERANDS], *made[CHAIN_RESULTS] = {NULL};
    chain c;
    memset(c.itemsize, 0, sizeof c.itemsize);
    memset(c.last, 0, sizeof c.last);
    c.operands = count;
    c.chunk = CHAIN_BYTES / mg_itemsize(dtype);
    int held = 0;
    for (; held < count; held++) {
        const mg_array *x = given[held];
        bool fits = x->dtype == dtype || x->dtype == MG_BOOL || x->weak;
        if (!fits) mg_fail(MG_EDTYPE, x->dtype, dtype);
        operands[held] = fits ? elementwise_operand(given[held], x->dtype == MG_BOOL && !x->weak ? MG_BOOL : dtype) : NULL;
        if (!operands[held]) break;
    }
    bool ready = held == count && chain_lay_out(&c, count, operands);
    if (ready && (!chain_read(&c, dtype, words, code, !reduction) ||
                  (reduction && !chain_reduces(&c, reduction, dtype)))) {
        mg_fail(MG_EARG, words, count);
        ready = false;
    }
    c.reduced = reduction ? reduction->of : -1;
    int64_t written = 0, bytes = 0;
    for (int r = 0; ready && r < c.registers; r++) {
        bytes += r < count && c.operand[r].contiguous ? c.size * c.itemsize[r] : 0;
        if (c.result[r] < 0) continue;
        mg_array *out = chain_result(&c, r, dtype, count, given, operands);
        if (!out) ready = false;
        else c.out[c.result[r]] = (made[c.result[r]] = out)->data;
        written += c.size * c.itemsize[r];
    }
    int results = ready ? c.results : 0;
    if (ready) c.streams = mg_nditer_streams(written, written + bytes, count < 3);
    if (ready && reduction) {
        reduce_terms terms = {chain_put, &c, true};
        made[results] = mg_reduce_made(reduction->op, dtype, c.ndim, c.shape, reduction->axes,
                                       reduction->keepdims, &terms);
        ready = made[results++] != NULL;
    } else if (ready && c.size) {
        mg_parallel_for(mg_ceil_div(c.size, NDITER_BLOCK), chain_block, &c);
    }
    for (int i = 0; i < held; i++) elementwise_drop(operands[i], given[i]);
    if (ready) return mg_arrays_of(results, made);
    for (int i = 0; i < CHAIN_RESULTS; i++) mg_release(made[i]);
    return NULL;
}

mg_arrays *mg_chain(int dtype, int count, mg_array **given, int words, const int64_t *code) {
    return chain_run(dtype, count, given, words, code, NULL);
}

mg_arrays *mg_chain_reduce(int op, int axes, int keepdims, int of, int dtype, int count, mg_array **given,
                           int words, const int64_t *code) {
    return chain_run(dtype, count, given, words, code, &(chain_reduction){op, axes, keepdims, of});
}
