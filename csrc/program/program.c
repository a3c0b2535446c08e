/* program.c: replay of recorded programs.
 *
 * A program is a list of operations on numbered slots, read from a list of integers and a list of
 * floats. mg_program_new checks both, so a damaged list is an error. The first slots are given
 * anew for each run. A step releases the slots that no later step reads.
 *
 * The integers begin with the numbers of slots, given arrays, steps, live integers and live floats.
 * A 1 follows if a step writes into given memory, else a 0. The given arrays, the steps and the
 * positions of live numbers come next.
 *
 * given array: dtype, dimensions, shape, strides, number of the first given array on its buffer
 * step: operation, expected answer or -1, inputs (a count, then slots), saved (0, or 1 and three
 *     slots), integers (a count, then values), number of floats, outputs (a count, then slots),
 *     releases (a count, then slots)
 * position of a live number: a step, an index
 */
#include "program.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Nanoseconds after which a run pauses, so that the caller can handle signals; steps between two
 * looks at the clock. */
enum { PROGRAM_PAUSE = 50000000, PROGRAM_LOOK = 16 };

/* ---- reading ---- */

typedef struct {
    const int64_t *at, *end;
    bool failed;
} program_reader;

static int64_t read_one(program_reader *r) {
    if (r->at == r->end) {
        r->failed = true;
        return 0;
    }
    return *r->at++;
}

/* A number in low..high. */
static int64_t read_within(program_reader *r, int64_t low, int64_t high) {
    int64_t value = read_one(r);
    if (value < low || value > high) r->failed = true;
    return r->failed ? low : value;
}

/* A number of items that follow. */
static int64_t read_count(program_reader *r) { return read_within(r, 0, r->end - r->at - 1); }

static const int32_t *read_slots(program_reader *r, mg_program *p, int32_t **pool, int32_t *count, int32_t low) {
    int32_t *slots = *pool;
    *count = (int32_t)read_count(r);
    for (int32_t i = 0; i < *count; i++) slots[i] = (int32_t)read_within(r, low, p->slots - 1);
    *pool += *count;
    return slots;
}

/* True if the integers, floats and arrays of a step are as many as its signature wants. `least` gets
 * the least dtype of each input: only kernels of stored arrays take storage dtypes. */
static bool step_fits(program_step *s, int64_t ints, int64_t floats, int8_t *least) {
    const char *letter = mg_run_signature(s->op);
    const int64_t *value = s->ints, *end = s->ints + ints;
    int64_t arrays = s->inputs, saved = 0;
    /* a derivative that writes over the gradient hands that on, and its caller owns it no longer */
    if (s->op / mg_elementwise_count() == 2) return false;
    s->least = least;
    for (; *letter && *letter != ':'; letter++) {
        if (*letter == 'p') return false; /* an address */
        if (*letter == 'a' || *letter == 's' || *letter == 'm') {
            if (--arrays < 0 || (*letter != 'm' && s->in[s->inputs - 1 - arrays] < 0)) return false;
            *least++ = *letter == 's' ? MG_UINT8 : MG_BOOL;
        } else if (*letter == 'k') saved++;
        else if (*letter == 'd') floats--;
        else {
            if (value == end) return false;
            int64_t count = *value++;
            if (*letter == 'i') continue;
            if (count > INT32_MAX) return false;
            count = mg_max(count, 0);
            if (*letter == 'A' || *letter == 'S') {
                if ((arrays -= count) < 0) return false;
                for (; count > 0; count--) *least++ = *letter == 'S' ? MG_UINT8 : MG_BOOL;
            } else if (*letter == 'D') floats -= count;
            else if (count > end - value) return false;
            else value += count;
        }
        if (arrays < 0 || floats < 0) return false;
    }
    char result = letter[1];
    int outputs = result == '1' ? 1 : result == 'n' ? 4 : 0;
    bool question = result == '?';
    s->makes = outputs > 0;
    return arrays == 0 && floats == 0 && value == end && saved <= 1 && (saved || !s->has_saved) &&
           s->outputs <= outputs && question == (s->expected >= 0);
}

/* True if an integer of a step is a number by itself, and not in a list or the length of one. */
static bool step_is_number(const program_step *s, int64_t place) {
    const char *letter = mg_run_signature(s->op);
    for (int64_t at = 0; *letter != ':' && at <= place; letter++) {
        if (*letter == 'i' && at++ == place) return true;
        if (strchr("ASILD", *letter)) at += 1 + (strchr("IL", *letter) ? mg_max(s->ints[at], 0) : 0);
    }
    return false;
}

/* The inputs that a step releases, if its kernel can write over them: a chain, or the derivative of
 * an elementwise operation. */
static uint32_t step_spares(const program_step *s) {
    uint32_t found = 0;
    bool able = s->op / mg_elementwise_count() == 1 || !strncmp(mg_run_name(s->op), "chain", 5);
    for (int32_t i = 0; able && i < s->inputs && i < 16; i++)
        for (int32_t k = 0; k < s->releases; k++)
            if (s->release[k] == s->in[i]) found |= UINT32_C(1) << i;
    return found;
}

static void read_step(program_reader *r, mg_program *p, program_step *s, int32_t **pool, int64_t **ints,
                      double **floats, const double *floats_end) {
    s->op = (int32_t)read_within(r, 0, mg_run_count() - 1);
    s->expected = (int32_t)read_within(r, -1, 1);
    s->in = read_slots(r, p, pool, &s->inputs, -1);
    s->has_saved = read_within(r, 0, 1);
    for (int i = 0; i < 3; i++) s->saved[i] = s->has_saved ? (int32_t)read_within(r, -1, p->slots - 1) : -1;
    int64_t count = read_count(r);
    s->ints = *ints;
    for (int64_t i = 0; i < count; i++) (*ints)[i] = *r->at++;
    *ints += count;
    int64_t reals = read_within(r, 0, floats_end - *floats);
    s->floats = *floats;
    *floats += reals;
    s->out = read_slots(r, p, pool, &s->outputs, -1);
    s->release = read_slots(r, p, pool, &s->releases, 0);
    int8_t *least = p->least_pool + (s->in - p->slot_pool);
    if (!r->failed && !step_fits(s, count, reals, least)) r->failed = true;
    s->spare = r->failed ? 0 : step_spares(s);
}

static void read_given(program_reader *r, mg_program *p, program_given *g, int64_t **ints) {
    g->dtype = (int32_t)read_within(r, MG_UINT8, MG_FLOAT64);
    g->ndim = (int32_t)read_within(r, 0, mg_min(MG_MAX_NDIM, (r->end - r->at) / 2));
    g->shape = *ints;
    g->strides = *ints + g->ndim;
    for (int i = 0; i < 2 * g->ndim; i++) *(*ints)++ = read_one(r);
    g->alias = (int32_t)read_within(r, 0, p->given);
}

static void *program_memory(mg_program *p, int place, int64_t count, size_t size) {
    return p->memory[place] = calloc((size_t)mg_max(count, 1), size);
}

void mg_program_free(mg_program *p) {
    if (!p) return;
    for (int32_t i = 0; p->arrays && i < p->slots; i++) mg_release(p->arrays[i]);
    for (int i = 0; i < PROGRAM_MEMORY; i++) free(p->memory[i]);
    free(p);
}

static bool program_room(mg_program *p, int64_t count, int64_t floats) {
    p->arrays = program_memory(p, 0, p->slots, sizeof *p->arrays);
    p->list = program_memory(p, 1, p->steps, sizeof *p->list);
    p->live_ints = program_memory(p, 2, p->int_count, sizeof *p->live_ints);
    p->live_floats = program_memory(p, 3, p->float_count, sizeof *p->live_floats);
    p->slot_pool = program_memory(p, 4, count, sizeof *p->slot_pool);
    p->int_pool = program_memory(p, 5, count, sizeof *p->int_pool);
    p->float_pool = program_memory(p, 6, floats, sizeof *p->float_pool);
    p->in = program_memory(p, 7, count, sizeof *p->in);
    p->expected = program_memory(p, 8, p->given, sizeof *p->expected);
    p->least_pool = program_memory(p, 10, count, sizeof *p->least_pool);
    for (p->table_mask = 1; p->table_mask < 4 * (int64_t)p->given; p->table_mask *= 2) continue;
    p->table = program_memory(p, 9, p->table_mask, 2 * sizeof *p->table);
    p->table_mask--;
    for (int i = 0; i < PROGRAM_MEMORY; i++)
        if (!p->memory[i]) return false;
    return true;
}

mg_program *mg_program_new(int64_t count, const int64_t *code, int64_t floats, const double *values) {
    program_reader r = {code, code + count, false};
    mg_program *p = calloc(1, sizeof *p);
    if (!p) return mg_fail(MG_ENOMEM, sizeof *p, 0);
    p->slots = (int32_t)read_within(&r, 0, mg_min(count, INT32_MAX));
    p->given = (int32_t)read_within(&r, 0, p->slots);
    p->steps = (int32_t)read_within(&r, 0, mg_min(count, INT32_MAX));
    p->int_count = read_within(&r, 0, count);
    p->float_count = read_within(&r, 0, count);
    p->writes = read_within(&r, 0, 1);
    if (!program_room(p, count, floats)) {
        mg_program_free(p);
        return mg_fail(MG_ENOMEM, count * (int64_t)sizeof *code, 0);
    }
    int32_t *slots = p->slot_pool;
    int64_t *ints = p->int_pool;
    double *reals = p->float_pool;
    for (int64_t i = 0; i < floats; i++) reals[i] = values[i];
    for (int32_t i = 0; i < p->given && !r.failed; i++) read_given(&r, p, &p->expected[i], &ints);
    for (int32_t i = 0; i < p->steps && !r.failed; i++)
        read_step(&r, p, &p->list[i], &slots, &ints, &reals, p->float_pool + floats);
    for (int64_t i = 0; i < p->int_count && !r.failed; i++) {
        int64_t step = read_within(&r, 0, p->steps - 1), place = read_within(&r, 0, count);
        if (r.failed || !step_is_number(&p->list[step], place)) r.failed = true;
        else p->live_ints[i] = p->list[step].ints + place;
    }
    for (int64_t i = 0; i < p->float_count && !r.failed; i++) {
        int64_t step = read_within(&r, 0, p->steps - 1), place = read_within(&r, 0, count);
        if (r.failed || p->list[step].floats + place >= reals) r.failed = true;
        else p->live_floats[i] = p->list[step].floats + place;
    }
    if (!r.failed && r.at == r.end && reals == p->float_pool + floats) return p;
    mg_program_free(p);
    return mg_fail(MG_EARG, r.at - code, 0);
}

/* ---- running ---- */

static int64_t program_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* The array in a slot, or NULL for no slot. *sound becomes false if the slot is empty, or if its
 * dtype is below the least one. */
MG_INLINE mg_array *program_input(const mg_program *p, int32_t slot, int least, bool *sound) {
    if (slot < 0) return NULL;
    mg_array *x = p->arrays[slot];
    if (!x || x->dtype < least) *sound = false;
    return x;
}

static int program_step_run(mg_program *p, const program_step *s) {
    mg_arrays out;
    mg_saved saved = {{NULL}, INT64_MAX};
    bool sound = true;
    for (int32_t i = 0; i < s->inputs; i++) p->in[i] = program_input(p, s->in[i], s->least[i], &sound);
    for (int i = 0; i < 3; i++) saved.arrays[i] = program_input(p, s->saved[i], MG_BOOL, &sound);
    if (!sound) {
        mg_fail_code(MG_EARG, p->at, 0);
        return MG_PROGRAM_FAILED;
    }
    for (int32_t i = 0; s->spare >> i; i++)
        if (s->spare >> i & 1) p->in[i]->spare = mg_sole_owner(p->in[i]);
    int code = mg_run(s->op, s->inputs, p->in, &(mg_args){s->ints, s->floats, &saved}, &out);
    for (int32_t i = 0; s->spare >> i; i++)
        if (s->spare >> i & 1) p->in[i]->spare = 0;
    if (s->expected >= 0) return (code != 0) != s->expected ? MG_PROGRAM_DIFFERS : MG_PROGRAM_DONE;
    if (code) return MG_PROGRAM_FAILED;
    for (int32_t i = 0; s->makes && i < out.count; i++) {
        int32_t slot = i < s->outputs ? s->out[i] : -1;
        mg_release(slot < 0 ? out.made[i] : p->arrays[slot]);
        if (slot >= 0) p->arrays[slot] = out.made[i];
    }
    for (int32_t i = 0; i < s->releases; i++) {
        mg_release(p->arrays[s->release[i]]);
        p->arrays[s->release[i]] = NULL;
    }
    return MG_PROGRAM_DONE;
}

static _Thread_local int program_state; /* of this thread's last run; its address names the thread */

static int program_go_on(mg_program *p) {
    int64_t end = 0;
    program_state = MG_PROGRAM_DONE;
    for (int32_t looked = 1; p->at < p->steps; p->at++, looked++) {
        if (looked % PROGRAM_LOOK == 0) {
            mg_gil_give_up();
            int64_t now = program_now();
            if (!end) end = now + PROGRAM_PAUSE;
            else if (now > end) return program_state = MG_PROGRAM_PAUSED;
        }
        if ((program_state = program_step_run(p, &p->list[p->at]))) return program_state;
    }
    return program_state;
}

/* The number of the first array on the same buffer, among those since the table was cleared. */
static int32_t program_first_on(mg_program *p, const mg_buffer *buffer, int32_t number) {
    uint64_t key = (uint64_t)(uintptr_t)buffer;
    for (uint64_t at = key * 0x9E3779B97F4A7C15u >> 32;; at++) {
        uint64_t *entry = p->table + 2 * (at & (uint64_t)p->table_mask);
        if (entry[0] == key) return (int32_t)entry[1];
        if (entry[0] == 0) {
            entry[0] = key;
            entry[1] = (uint64_t)number;
            return number;
        }
    }
}

/* True if the given arrays look as expected, and share memory as expected. */
static bool program_fits(mg_program *p, int count, mg_array *const *given) {
    if (count > p->given) return false;
    if (p->writes) memset(p->table, 0, (size_t)(p->table_mask + 1) * 2 * sizeof *p->table);
    for (int i = 0; i < count; i++) {
        const mg_array *x = given[i];
        const program_given *g = &p->expected[i];
        if (!x || x->dtype != g->dtype || x->ndim != g->ndim) return false;
        for (int d = 0; d < x->ndim; d++)
            if (x->shape[d] != g->shape[d] || (x->strides[d] != g->strides[d] && x->shape[d] > 1)) return false;
        if (p->writes && program_first_on(p, x->buffer, i) != g->alias) return false;
    }
    return true;
}

int mg_program_accepts(void *program, int count, mg_array **given) { return program_fits(program, count, given); }

int mg_program_run(void *program, int count, mg_array **given, int numbers, const int64_t *ints, int reals,
                   const double *floats) {
    mg_program *p = program;
    void *nobody = NULL, *me = &program_state;
    if (!atomic_compare_exchange_strong(&p->owner, &nobody, me))
        return program_state = nobody == me ? MG_PROGRAM_AGAIN : MG_PROGRAM_BUSY;
    if (count != p->given || numbers != p->int_count || reals != p->float_count || !program_fits(p, count, given)) {
        atomic_store(&p->owner, NULL);
        return program_state = MG_PROGRAM_MISFIT;
    }
    for (int i = 0; i < count; i++) p->arrays[i] = mg_retain(given[i]);
    for (int i = 0; i < numbers; i++) *p->live_ints[i] = ints[i];
    for (int i = 0; i < reals; i++) *p->live_floats[i] = floats[i];
    p->at = 0;
    return program_go_on(p);
}

int mg_program_resume(void *program) { return program_go_on(program); }

/* The array in a slot, which the program keeps. */
mg_array *mg_program_slot(void *program, int64_t slot) {
    mg_program *p = program;
    if (slot < 0 || slot >= p->slots || !p->arrays[slot]) return mg_fail(MG_EARG, slot, 0);
    return mg_retain(p->arrays[slot]);
}

/* The array in a slot, which the program has no longer. */
mg_array *mg_program_take(void *program, int64_t slot) {
    mg_array *made = mg_program_slot(program, slot);
    if (!made) return NULL;
    mg_release(made);
    ((mg_program *)program)->arrays[slot] = NULL;
    return made;
}

int mg_program_end(void *program) {
    mg_program *p = program;
    if (atomic_load(&p->owner) != (void *)&program_state) return MG_OK;
    for (int32_t i = 0; i < p->slots; i++) {
        mg_release(p->arrays[i]);
        p->arrays[i] = NULL;
    }
    atomic_store(&p->owner, NULL);
    return MG_OK;
}

/* True if the only element is not 0. */
int mg_truth(mg_array *x) { return x->size == 1 && mg_item_float(x) != 0; }

int mg_program_state(void) { return program_state; }
int mg_program_at(const mg_program *p) { return p->at; }
