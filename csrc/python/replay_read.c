/* replay_read.c: the description of a recorded call, read into structs.
 *
 * minigrad/_compile/replaying.py makes the description.
 */
#include "replay.h"

#include <string.h>

static void *items_room(PyObject *tuple, Py_ssize_t *count, size_t size) {
    *count = PyTuple_Size(tuple);
    void *made = *count < 0 ? NULL : PyMem_Calloc((size_t)*count + 1, size);
    if (!made && !PyErr_Occurred()) PyErr_NoMemory();
    return made;
}

Py_ssize_t replay_number(PyObject *tuple, Py_ssize_t i) {
    PyObject *item = PyTuple_GetItem(tuple, i);
    return item ? item == Py_None ? -1 : PyLong_AsSsize_t(item) : -1;
}

static replay_target read_target(PyObject *x) {
    replay_target made = {-1, x};
    if (x && PyLong_CheckExact(x)) made = (replay_target){PyLong_AsSsize_t(x), NULL};
    return made;
}

static PyObject **read_objects(PyObject *tuple, Py_ssize_t *count) {
    PyObject **made = items_room(tuple, count, sizeof *made);
    for (Py_ssize_t i = 0; made && i < *count; i++) made[i] = PyTuple_GetItem(tuple, i);
    return made;
}

static Py_ssize_t *read_numbers(PyObject *tuple, Py_ssize_t *count) {
    Py_ssize_t *made = items_room(tuple, count, sizeof *made);
    for (Py_ssize_t i = 0; made && i < *count; i++) made[i] = replay_number(tuple, i);
    return made;
}

/* The function that reads a cell. */
static getter cell_getter(PyObject *cell) {
    PyGetSetDef *found = PyType_GetSlot(Py_TYPE(cell), Py_tp_getset);
    for (; found && found->name; found++)
        if (strcmp(found->name, "cell_contents") == 0) return found->get;
    PyErr_SetString(PyExc_TypeError, "replay: a cell has no content");
    return NULL;
}

static replay_guard read_guard(PyObject *x) {
    replay_guard made = {(int)replay_number(x, 0), PyTuple_GetItem(x, 1), PyTuple_GetItem(x, 2), PyTuple_GetItem(x, 3), NULL};
    if (made.kind == GUARD_CELL && made.where) made.cell = cell_getter(made.where);
    return made;
}

/* (kind, function, group, counted dicts, number of integers, of floats, place of the step) */
static void read_event(replay *r, replay_event *e, PyObject *x) {
    *e = (replay_event){.kind = (int)replay_number(x, 0), .run = PyTuple_GetItem(x, 1), .group = PyTuple_GetItem(x, 2),
                 .counted = PyTuple_GetItem(x, 3), .ints = replay_number(x, 4), .floats = replay_number(x, 5),
                 .step = replay_number(x, 6)};
    if (PyErr_Occurred()) return;
    if (e->kind == EVENT_ACT) {
        r->acts = true;
        return;
    }
    r->int_count += e->ints;
    r->float_count += e->floats;
    e->kept_ints = PyMem_Calloc((size_t)e->ints + 1, sizeof *e->kept_ints);
    e->kept_floats = PyMem_Calloc((size_t)e->floats + 1, sizeof *e->kept_floats);
    if (!e->kept_ints || !e->kept_floats) PyErr_NoMemory();
}

/* (operation, places of saved arrays by threes, of loose ones, ends, operations of outputs, numbers
 * of results) */
static void read_history(replay *r, PyObject *x) {
    if (x == Py_None) return;
    Py_ssize_t ops;
    r->op = PyTuple_GetItem(x, 0);
    r->groups = read_numbers(PyTuple_GetItem(x, 1), &r->group_count);
    r->loose = read_numbers(PyTuple_GetItem(x, 2), &r->loose_count);
    PyObject *ends = PyTuple_GetItem(x, 3);
    r->ends = items_room(ends, &r->end_count, sizeof *r->ends);
    for (Py_ssize_t i = 0; r->ends && i < r->end_count; i++) r->ends[i] = read_target(PyTuple_GetItem(ends, i));
    r->output_ops = read_objects(PyTuple_GetItem(x, 4), &ops);
    r->living = read_numbers(PyTuple_GetItem(x, 5), &r->living_count);
}

#define READ(field, count, item, ...)                                                              \
    if (!PyErr_Occurred() && (r->field = items_room(part, &r->count, sizeof *r->field)))           \
        for (Py_ssize_t i = 0; i < r->count && !PyErr_Occurred(); i++) {                           \
            PyObject *item = PyTuple_GetItem(part, i);                                             \
            if (item) __VA_ARGS__;                                                                 \
        }
#define PART(number) (part = PyTuple_GetItem(r->description, number))

bool replay_read(replay *r) {
    PyObject *part;
    r->address = PyLong_AsLongLong(PART(PART_ADDRESS));
    PART(PART_VALUES);
    READ(edges, value_count, x, r->edges[i] = (int)replay_number(x, 0))
    READ(constants, value_count, x, r->constants[i] = PyTuple_GetItem(x, 1))
    r->names = read_objects(PART(PART_NAMES), &r->name_count);
    r->idle = read_objects(PART(PART_IDLE), &r->idle_count);
    r->records = PART(PART_RECORDS) == Py_True;
    PART(PART_GUARDS);
    READ(guards, guard_count, x, r->guards[i] = read_guard(x))
    PART(PART_LEAVES);
    READ(leaves, leaf_count, x, {
        PyObject *without = PyTuple_GetItem(x, 1);
        r->leaves[i] = (replay_leaf){read_target(PyTuple_GetItem(x, 0)), without == Py_None ? -1 : without == Py_True,
                              (int)replay_number(x, 2)};
    })
    PART(PART_SOURCES);
    READ(sources, source_count, x, {
        PyObject *of = PyTuple_GetItem(x, 1);
        r->sources[i] = (replay_source){(int)replay_number(x, 0), read_target(of), of};
    })
    PART(PART_EVENTS);
    READ(events, event_count, x, read_event(r, &r->events[i], x))
    PART(PART_RESULTS);
    READ(results, result_count, x, r->results[i] = PyLong_AsLongLong(x))
    read_history(r, PART(PART_HISTORY));
    PART(PART_LEFT);
    READ(leaving, left_count, x, {
        int from = (int)replay_number(x, 0);
        PyObject *of = PyTuple_GetItem(x, 1);
        Py_ssize_t number = from == LEFT_MADE || from == LEFT_LIVING ? PyLong_AsSsize_t(of) : -1;
        r->leaving[i] = (replay_left){from, number, read_target(of), PyTuple_GetItem(x, 2)};
    })
    PART(PART_GRADS);
    READ(grads, grad_count, x, r->grads[i] = (replay_gradient){read_target(PyTuple_GetItem(x, 0)), replay_number(x, 1)})
    r->outputs = read_numbers(PART(PART_OUTPUTS), &r->output_count);
    r->fill = PART(PART_FILL);
    r->begin = PART(PART_BEGIN);
    r->undo = read_numbers(PART(PART_UNDO), &r->undo_count);
    r->stopped = PART(PART_STOPPED);
    PART(PART_CLEARED);
    READ(cleared, cleared_count, x, r->cleared[i] = read_target(x))
    PART(PART_OPERATIONS);
    r->run = (int)replay_number(part, 0);
    r->accepts = (int)replay_number(part, 1);
    r->take = (int)replay_number(part, 2);
    r->end = (int)replay_number(part, 3);
    for (Py_ssize_t i = 0; i < r->event_count && !PyErr_Occurred(); i++)
        r->drawn_count += r->events[i].kind == EVENT_ACT;
    r->room = (size_t)(4 + r->int_count + r->float_count) * 8 +
              (size_t)(2 * (r->source_count + r->drawn_count) + r->result_count + r->left_count + r->event_count) *
                  sizeof(void *);
    if (r->value_count > MOST_VALUES) PyErr_SetString(PyExc_ValueError, "replay: too many values");
    return !PyErr_Occurred();
}
