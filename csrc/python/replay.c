/* replay.c: runs of recorded programs, and the class of functions that try them first.
 *
 * The run is defined in minigrad/_compile/recorded.py. A Replay checks the same conditions, on a
 * description that minigrad/_compile/replaying.py makes. It gives Ellipsis if one does not hold,
 * before anything is changed; the call then takes the way in Python.
 */
#include "speed.h"

#include <string.h>

/* Where an array comes from: the tensor of a target, its gradient, or a constant. */
enum { FROM_TENSOR, FROM_GRAD, FROM_CONSTANT };
/* What a call leaves: a result of the program, one with a history, a target, or its gradient. */
enum { LEFT_MADE, LEFT_LIVING, LEFT_TENSOR, LEFT_GRAD };
/* Kinds of edges: none, that of a leaf, a node. A value that is no tensor must equal a constant. */
enum { EDGE_NONE, EDGE_LEAF, EDGE_NODE, EDGE_CONSTANT };
/* Kinds of guards: an item of a container, the content of a cell, all items of a list, all keys or
 * all values of a dict, a length, all items of a mapping, an attribute, and a function that says
 * whether the guard holds. These are the numbers of Check in minigrad/_compile/surroundings.py. */
enum { GUARD_ITEM, GUARD_CELL, GUARD_LIST, GUARD_KEYS, GUARD_VALUES, GUARD_LENGTH, GUARD_ITEMS, GUARD_ATTRIBUTE,
       GUARD_CALL };
/* Kinds of events: a step of an optimizer, and something that is done in Python. */
enum { EVENT_MOVE, EVENT_ACT };

/* The parts of the description, a tuple. A target is a number of a value, or a tensor. */
enum {
    PART_ADDRESS,  /* of the program */
    PART_VALUES,   /* tuple of (kind of edge, constant or tensor or None), for each value given */
    PART_NAMES,    /* tuple: names of the last values, which are given by name */
    PART_IDLE,     /* tuple of lists that must be empty */
    PART_RECORDS,  /* bool: operations are recorded */
    PART_GUARDS,   /* tuple of (kind, container, key, value) */
    PART_LEAVES,   /* tuple of (target, True if it has no grad or None, kind of edge) */
    PART_SOURCES,  /* tuple of (where from, target or array) */
    PART_EVENTS,   /* tuple: see read_event */
    PART_RESULTS,  /* tuple: the slots of the results */
    PART_HISTORY,  /* None, or a tuple: see read_history */
    PART_LEFT,     /* tuple of (kind, number or target, edge) */
    PART_GRADS,    /* tuple of (target, number of what is left or None) */
    PART_OUTPUTS,  /* tuple: numbers of what is left */
    PART_FILL,     /* the result as replay_part takes it, or a function of the list of outputs */
    PART_BEGIN,    /* None, or a function that notes how to undo what events do */
    PART_STOPPED,  /* function: the result after the program stopped */
    PART_OPERATIONS, /* tuple of numbers: run, accepts, take, end */
    PARTS,
};

/* Containers in a result. */
enum { PARTS_TUPLE, PARTS_LIST, PARTS_DICT };

enum { MOST_VALUES = 64, FEW_BYTES = 4096 };

typedef struct {
    Py_ssize_t place; /* of a value; -1 for a tensor */
    PyObject *tensor;
} target;

typedef struct {
    int kind;
    PyObject *where, *key, *value;
    getter cell;
} guard;

typedef struct {
    target of;
    int without; /* 1 if it has no grad, 0 if it has one, -1 if that does not count */
    int edge;
} leaf;

typedef struct {
    int from;
    target of;
    PyObject *array;
} source;

typedef struct {
    int kind;
    PyObject *run;     /* a function; for a step, of lists that get the integers and the floats */
    PyObject *group;   /* dict of the options of a step */
    PyObject *counted; /* tuple of dicts with a number of steps */
    Py_ssize_t ints, floats, step;  /* how many there are; which integer is the number of the step */
    bool known;                     /* the numbers below are those of the options below */
    long turn;                      /* counts the times that options were noted */
    PyObject **options;             /* keys and values of the group */
    Py_ssize_t option_count, room;
    int64_t *kept_ints;
    double *kept_floats;
} event;

typedef struct {
    int from;
    Py_ssize_t number;
    target of;
    PyObject *edge;
} left;

typedef struct {
    target of;
    Py_ssize_t place; /* -1 for None */
} gradient;

typedef struct {
    PyObject_HEAD
    speed_state *s;
    PyObject *description; /* all objects below are its own, but for options */
    int64_t address;
    int run, accepts, take, end;
    bool records, acts;
    Py_ssize_t value_count, name_count, guard_count, leaf_count, source_count, drawn_count, event_count,
        result_count, left_count, grad_count, output_count, int_count, float_count, idle_count;
    int *edges;
    PyObject **constants, **names, **idle;
    guard *guards;
    leaf *leaves;
    source *sources;
    event *events;
    int64_t *results;
    left *leaving;
    gradient *grads;
    Py_ssize_t *outputs;
    PyObject *fill, *begin, *stopped;
    /* the history: places of arrays by threes, of further arrays, ends of the graph, operations */
    Py_ssize_t group_count, loose_count, end_count, living_count, *groups, *loose, *living;
    target *ends;
    PyObject *op, **output_ops;
    size_t room; /* bytes for one call */
} replay;

/* ---- reading the description ---- */

static void *items_room(PyObject *tuple, Py_ssize_t *count, size_t size) {
    *count = PyTuple_Size(tuple);
    void *made = *count < 0 ? NULL : PyMem_Calloc((size_t)*count + 1, size);
    if (!made && !PyErr_Occurred()) PyErr_NoMemory();
    return made;
}

static Py_ssize_t item_number(PyObject *tuple, Py_ssize_t i) {
    PyObject *item = PyTuple_GetItem(tuple, i);
    return item ? item == Py_None ? -1 : PyLong_AsSsize_t(item) : -1;
}

static target read_target(PyObject *x) {
    target made = {-1, x};
    if (x && PyLong_CheckExact(x)) made = (target){PyLong_AsSsize_t(x), NULL};
    return made;
}

static PyObject **read_objects(PyObject *tuple, Py_ssize_t *count) {
    PyObject **made = items_room(tuple, count, sizeof *made);
    for (Py_ssize_t i = 0; made && i < *count; i++) made[i] = PyTuple_GetItem(tuple, i);
    return made;
}

static Py_ssize_t *read_numbers(PyObject *tuple, Py_ssize_t *count) {
    Py_ssize_t *made = items_room(tuple, count, sizeof *made);
    for (Py_ssize_t i = 0; made && i < *count; i++) made[i] = item_number(tuple, i);
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

static guard read_guard(PyObject *x) {
    guard made = {(int)item_number(x, 0), PyTuple_GetItem(x, 1), PyTuple_GetItem(x, 2), PyTuple_GetItem(x, 3), NULL};
    if (made.kind == GUARD_CELL && made.where) made.cell = cell_getter(made.where);
    return made;
}

/* (kind, function, group, counted dicts, number of integers, of floats, place of the step) */
static void read_event(replay *r, event *e, PyObject *x) {
    *e = (event){.kind = (int)item_number(x, 0), .run = PyTuple_GetItem(x, 1), .group = PyTuple_GetItem(x, 2),
                 .counted = PyTuple_GetItem(x, 3), .ints = item_number(x, 4), .floats = item_number(x, 5),
                 .step = item_number(x, 6)};
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

static bool replay_read(replay *r) {
    PyObject *part;
    r->address = PyLong_AsLongLong(PART(PART_ADDRESS));
    PART(PART_VALUES);
    READ(edges, value_count, x, r->edges[i] = (int)item_number(x, 0))
    READ(constants, value_count, x, r->constants[i] = PyTuple_GetItem(x, 1))
    r->names = read_objects(PART(PART_NAMES), &r->name_count);
    r->idle = read_objects(PART(PART_IDLE), &r->idle_count);
    r->records = PART(PART_RECORDS) == Py_True;
    PART(PART_GUARDS);
    READ(guards, guard_count, x, r->guards[i] = read_guard(x))
    PART(PART_LEAVES);
    READ(leaves, leaf_count, x, {
        PyObject *without = PyTuple_GetItem(x, 1);
        r->leaves[i] = (leaf){read_target(PyTuple_GetItem(x, 0)), without == Py_None ? -1 : without == Py_True,
                              (int)item_number(x, 2)};
    })
    PART(PART_SOURCES);
    READ(sources, source_count, x, {
        PyObject *of = PyTuple_GetItem(x, 1);
        r->sources[i] = (source){(int)item_number(x, 0), read_target(of), of};
    })
    PART(PART_EVENTS);
    READ(events, event_count, x, read_event(r, &r->events[i], x))
    PART(PART_RESULTS);
    READ(results, result_count, x, r->results[i] = PyLong_AsLongLong(x))
    read_history(r, PART(PART_HISTORY));
    PART(PART_LEFT);
    READ(leaving, left_count, x, {
        int from = (int)item_number(x, 0);
        PyObject *of = PyTuple_GetItem(x, 1);
        Py_ssize_t number = from == LEFT_MADE || from == LEFT_LIVING ? PyLong_AsSsize_t(of) : -1;
        r->leaving[i] = (left){from, number, read_target(of), PyTuple_GetItem(x, 2)};
    })
    PART(PART_GRADS);
    READ(grads, grad_count, x, r->grads[i] = (gradient){read_target(PyTuple_GetItem(x, 0)), item_number(x, 1)})
    r->outputs = read_numbers(PART(PART_OUTPUTS), &r->output_count);
    r->fill = PART(PART_FILL);
    r->begin = PART(PART_BEGIN);
    r->stopped = PART(PART_STOPPED);
    PART(PART_OPERATIONS);
    r->run = (int)item_number(part, 0);
    r->accepts = (int)item_number(part, 1);
    r->take = (int)item_number(part, 2);
    r->end = (int)item_number(part, 3);
    for (Py_ssize_t i = 0; i < r->event_count && !PyErr_Occurred(); i++)
        r->drawn_count += r->events[i].kind == EVENT_ACT;
    r->room = (size_t)(4 + r->int_count + r->float_count) * 8 +
              (size_t)(2 * (r->source_count + r->drawn_count) + r->result_count + r->left_count + r->event_count) *
                  sizeof(void *);
    if (r->value_count > MOST_VALUES) PyErr_SetString(PyExc_ValueError, "replay: too many values");
    return !PyErr_Occurred();
}

/* ---- does it fit? ---- */

/* True for the same object, and for equal integers, floats or texts. 0.0 is not -0.0. */
static bool replay_same(PyObject *now, PyObject *value) {
    if (now == value) return true;
    if (!now || !value || Py_TYPE(now) != Py_TYPE(value)) return false;
    if (PyFloat_CheckExact(now)) {
        double a = PyFloat_AsDouble(now), b = PyFloat_AsDouble(value);
        return a == b && memcmp(&a, &b, sizeof a) == 0;
    }
    return (PyLong_CheckExact(now) || PyUnicode_CheckExact(now)) &&
           PyObject_RichCompareBool(now, value, Py_EQ) == 1;
}

static bool guard_list_holds(const guard *g) {
    Py_ssize_t count = PyTuple_Size(g->value);
    if (PyList_Size(g->where) != count) return false;
    for (Py_ssize_t i = 0; i < count; i++)
        if (!replay_same(PyList_GetItem(g->where, i), PyTuple_GetItem(g->value, i))) return false;
    return true;
}

static bool guard_dict_holds(const guard *g) {
    Py_ssize_t count = PyTuple_Size(g->value), at = 0;
    PyObject *key, *value;
    if (PyDict_Size(g->where) != count) return false;
    for (Py_ssize_t i = 0; i < count && PyDict_Next(g->where, &at, &key, &value); i++)
        if (!replay_same(g->kind == GUARD_KEYS ? key : value, PyTuple_GetItem(g->value, i))) return false;
    return true;
}

static bool guard_items_hold(const guard *g) {
    Py_ssize_t count = PyTuple_Size(g->value);
    if (PyObject_Size(g->where) != count) return false;
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *now = PyObject_GetItem(g->where, PyTuple_GetItem(g->key, i));
        bool holds = replay_same(now, PyTuple_GetItem(g->value, i));
        Py_XDECREF(now);
        if (!holds) return false;
    }
    return true;
}

static bool guard_holds(const guard *g) {
    PyObject *now = NULL;
    bool holds;
    switch (g->kind) {
    case GUARD_LIST: return guard_list_holds(g);
    case GUARD_KEYS:
    case GUARD_VALUES: return guard_dict_holds(g);
    case GUARD_ITEMS: return guard_items_hold(g);
    case GUARD_LENGTH: return PyObject_Size(g->where) == PyLong_AsSsize_t(g->value);
    case GUARD_CALL:
        now = PyObject_CallFunctionObjArgs(g->where, NULL);
        holds = now == Py_True;
        Py_XDECREF(now);
        return holds;
    case GUARD_CELL: now = g->cell(g->where, NULL); break;
    case GUARD_ATTRIBUTE: now = PyObject_GetAttr(g->where, g->key); break;
    default:
        if (PyDict_Check(g->where)) return replay_same(PyDict_GetItemWithError(g->where, g->key), g->value);
        now = PyObject_GetItem(g->where, g->key);
    }
    holds = replay_same(now, g->value);
    Py_XDECREF(now);
    return holds;
}

/* The state of one call. */
typedef struct {
    replay *r;
    PyObject *args, *named;
    PyObject *values[MOST_VALUES];
    int64_t *ints;
    double *floats;
    mg_array **arrays;
    PyObject **given, **made, **left, **notes; /* own references */
    Py_ssize_t given_count, made_count, left_count, ints_used, floats_used;
    PyObject *back; /* list of functions that undo what events did */
} replay_run;

MG_INLINE PyObject *target_of(const replay_run *c, const target *t) {
    return t->place < 0 ? t->tensor : c->values[t->place];
}

MG_INLINE PyObject *tensor_field(PyObject *x, int field) {
    PyObject *held = ((tensor *)x)->fields[field];
    return held ? held : Py_None;
}

static bool edge_fits(const speed_state *s, PyObject *x, int kind) {
    PyObject *edge = tensor_field(x, TENSOR_EDGE);
    if (kind == EDGE_NODE) return node_is(s, edge);
    return edge == (kind == EDGE_LEAF ? Py_True : Py_None);
}

/* True if a tensor has hooks of its own. */
static bool tensor_hooked(PyObject *x) {
    PyObject *hooks = tensor_field(x, TENSOR_HOOKS);
    if (hooks == Py_None) return false;
    if (PyObject_Size(hooks)) return true;
    PyObject *after = PyObject_GetAttrString(hooks, "after");
    bool some = !after || PyObject_Size(after);
    Py_XDECREF(after);
    return some;
}

/* Lays the arguments of a call out as values. */
static bool replay_values(replay_run *c) {
    replay *r = c->r;
    Py_ssize_t count = PyTuple_Size(c->args), names = c->named ? PyDict_Size(c->named) : 0, at = 0;
    if (names != r->name_count || count + names != r->value_count) return false;
    for (Py_ssize_t i = 0; i < count; i++) c->values[i] = PyTuple_GetItem(c->args, i);
    for (Py_ssize_t i = 0; i < names; i++) {
        PyObject *key;
        if (!PyDict_Next(c->named, &at, &key, &c->values[count + i]) || !replay_same(key, r->names[i])) return false;
    }
    return true;
}

static bool replay_values_fit(const replay_run *c) {
    const replay *r = c->r;
    for (Py_ssize_t i = 0; i < r->value_count; i++) {
        PyObject *x = c->values[i];
        if (r->edges[i] == EDGE_CONSTANT) {
            if (!replay_same(x, r->constants[i])) return false;
            continue;
        }
        if ((PyObject *)Py_TYPE(x) != r->s->uses[USE_RESULT] || !edge_fits(r->s, x, r->edges[i])) return false;
        if ((r->constants[i] != Py_None && x != r->constants[i]) || tensor_hooked(x)) return false;
        for (Py_ssize_t k = 0; k < i; k++)
            if (x == c->values[k]) return false;
    }
    return true;
}

/* True if the call is like the recorded one, as far as Python objects say. */
static bool replay_fits(replay_run *c) {
    replay *r = c->r;
    speed_state *s = r->s;
    if (call_watched(s) || !replay_values(c) || !replay_values_fit(c)) return false;
    for (Py_ssize_t i = 0; i < r->idle_count; i++)
        if (PyList_Size(r->idle[i])) return false;
    if (apply_paused(s) == r->records) return false;
    for (Py_ssize_t i = 0; i < r->leaf_count; i++) {
        const leaf *l = &r->leaves[i];
        PyObject *x = target_of(c, &l->of);
        if (l->without >= 0 && (tensor_field(x, TENSOR_GRAD) == Py_None) != l->without) return false;
        if (!edge_fits(s, x, l->edge)) return false;
        for (Py_ssize_t k = 0; l->of.tensor && k < r->value_count; k++)
            if (x == c->values[k]) return false;
    }
    for (Py_ssize_t i = 0; i < r->guard_count; i++)
        if (!guard_holds(&r->guards[i])) return false;
    return true;
}

/* ---- what is given ---- */

/* Gives the program one more array, borrowed here. */
static bool replay_give(replay_run *c, PyObject *array) {
    if (!array || !array_is(c->r->s, array)) return false;
    c->arrays[c->given_count] = handle_array(array);
    c->given[c->given_count++] = Py_NewRef(array); /* a kernel may give up the lock */
    return true;
}

static bool replay_gather(replay_run *c) {
    for (Py_ssize_t i = 0; i < c->r->source_count; i++) {
        const source *from = &c->r->sources[i];
        PyObject *x = from->array;
        if (from->from != FROM_CONSTANT) {
            x = target_of(c, &from->of);
            if (from->from == FROM_GRAD) x = tensor_field(x, TENSOR_GRAD);
            if (!tensor_is(c->r->s, x)) return false;
            x = tensor_field(x, TENSOR_ARRAY);
        }
        if (!replay_give(c, x)) return false;
    }
    return true;
}

/* ---- events ---- */

/* True if a value is the same whenever it is the same object. */
static bool option_is_constant(PyObject *x) {
    if (x == Py_None || x == Py_True || x == Py_False) return true;
    if (PyFloat_CheckExact(x) || PyLong_CheckExact(x) || PyUnicode_CheckExact(x)) return true;
    if (!PyTuple_CheckExact(x)) return false;
    for (Py_ssize_t i = 0; i < PyTuple_Size(x); i++) {
        PyObject *item = PyTuple_GetItem(x, i);
        if (!PyFloat_CheckExact(item) && !PyLong_CheckExact(item)) return false;
    }
    return true;
}

static void event_forget(event *e) {
    e->known = false;
    while (e->option_count > 0) Py_DECREF(e->options[--e->option_count]);
}

static bool event_same(const event *e) {
    Py_ssize_t at = 0, i = 0;
    PyObject *key, *value;
    for (; PyDict_Next(e->group, &at, &key, &value); i += 2)
        if (i == e->option_count || key != e->options[i] || !replay_same(value, e->options[i + 1])) return false;
    return i == e->option_count;
}

/* Notes the options of a group. False if they may change unseen. */
static bool event_remember(event *e) {
    event_forget(e);
    e->turn++;
    Py_ssize_t count = 2 * PyDict_Size(e->group), at = 0;
    PyObject *key, *value;
    if (count > e->room) {
        PyObject **room = PyMem_Realloc(e->options, (size_t)count * sizeof *room);
        if (!room) return false;
        e->options = room;
        e->room = count;
    }
    while (PyDict_Next(e->group, &at, &key, &value)) {
        e->options[e->option_count++] = Py_NewRef(key);
        e->options[e->option_count++] = Py_NewRef(value);
        bool names = PyUnicode_CheckExact(key) && (!PyUnicode_CompareWithASCIIString(key, "params") ||
                                                   !PyUnicode_CompareWithASCIIString(key, "param_names"));
        if (!names && !option_is_constant(value)) {
            event_forget(e);
            return false;
        }
    }
    return true;
}

/* The number of steps in a state, or -1. */
static long long step_in(speed_state *s, PyObject *state) {
    PyObject *step = PyDict_GetItemWithError(state, s->names[NAME_STEP]);
    if (!step || !PyLong_CheckExact(step)) return -1;
    int beyond;
    long long count = PyLong_AsLongLongAndOverflow(step, &beyond);
    return beyond || count < 0 || count >= (1LL << 53) ? -1 : count;
}

/* The number of steps in all states that are counted; -1 if there is no such number. */
static long long event_step(speed_state *s, const event *e) {
    long long first = -1;
    PyObject *before = NULL;
    for (Py_ssize_t i = 0; i < PyTuple_Size(e->counted); i++) {
        PyObject *state = PyTuple_GetItem(e->counted, i);
        PyObject *step = PyDict_GetItemWithError(state, s->names[NAME_STEP]);
        if (i && step == before) continue;
        long long count = step_in(s, state);
        if (count < 0 || (i && e->step >= 0 && count != first)) return -1;
        first = count;
        before = step;
    }
    return first;
}

/* Counts a step in the states. */
static bool event_count_up(speed_state *s, const event *e) {
    PyObject *before = NULL, *after = NULL;
    bool done = true;
    for (Py_ssize_t i = 0; done && i < PyTuple_Size(e->counted); i++) {
        PyObject *state = PyTuple_GetItem(e->counted, i);
        PyObject *step = PyDict_GetItemWithError(state, s->names[NAME_STEP]);
        if (!after || step != before) {
            long long count = step_in(s, state);
            if (count < 0) continue;
            Py_XDECREF(after);
            Py_XDECREF(before);
            before = Py_NewRef(step);
            after = PyLong_FromLongLong(count + 1);
        }
        done = after && !PyDict_SetItem(state, s->names[NAME_STEP], after);
    }
    Py_XDECREF(before);
    Py_XDECREF(after);
    return done;
}

/* Moves the numbers of a step from lists to the call and to the event. */
static bool event_take(replay_run *c, event *e, PyObject *ints, PyObject *floats) {
    if (PyList_Size(ints) != e->ints || PyList_Size(floats) != e->floats) return false;
    for (Py_ssize_t i = 0; i < e->ints; i++) e->kept_ints[i] = PyLong_AsLongLong(PyList_GetItem(ints, i));
    for (Py_ssize_t i = 0; i < e->floats; i++) e->kept_floats[i] = PyFloat_AsDouble(PyList_GetItem(floats, i));
    memcpy(c->ints + c->ints_used, e->kept_ints, (size_t)e->ints * sizeof *e->kept_ints);
    memcpy(c->floats + c->floats_used, e->kept_floats, (size_t)e->floats * sizeof *e->kept_floats);
    return !PyErr_Occurred();
}

/* Renews the numbers of a step in Python. 1 if done, 0 if there is no such step, -1 with an error set. */
static int event_renew(replay_run *c, event *e, PyObject **note) {
    bool constant = event_remember(e);
    long turn = e->turn;
    PyObject *ints = PyList_New(0), *floats = PyList_New(0);
    *note = ints && floats ? PyObject_CallFunctionObjArgs(e->run, ints, floats, NULL) : NULL;
    int done = !*note ? -1 : *note == Py_Ellipsis ? 0 : event_take(c, e, ints, floats);
    if (done == 0) Py_CLEAR(*note);
    if (done == 0 && PyErr_Occurred()) done = -1;
    Py_XDECREF(ints);
    Py_XDECREF(floats);
    /* another thread may have changed the options, or have renewed this event, meanwhile */
    e->known = done == 1 && constant && turn == e->turn && event_same(e);
    return done;
}

/* The numbers of an optimizer's step: the last ones, if its options are those of the last time. */
static int event_move(replay_run *c, event *e, PyObject **note) {
    long long step = -1;
    bool counts = PyTuple_Size(e->counted) > 0;
    int done = 1;
    if (e->known && event_same(e) && (!counts || (step = event_step(c->r->s, e)) >= 0)) {
        memcpy(c->ints + c->ints_used, e->kept_ints, (size_t)e->ints * sizeof *e->kept_ints);
        memcpy(c->floats + c->floats_used, e->kept_floats, (size_t)e->floats * sizeof *e->kept_floats);
        if (counts && e->step >= 0) c->ints[c->ints_used + e->step] = step + 1;
        *note = NULL;
    } else {
        done = event_renew(c, e, note);
    }
    c->ints_used += e->ints;
    c->floats_used += e->floats;
    return done;
}

/* Does something in Python: a draw, whose array is given to the program, or the step of a schedule. */
static int event_act(replay_run *c, const event *e) {
    PyObject *made = PyObject_CallFunctionObjArgs(e->run, NULL);
    if (!made) return -1;
    bool fits = !tensor_is(c->r->s, made) || replay_give(c, tensor_field(made, TENSOR_ARRAY));
    Py_DECREF(made);
    return fits;
}

static int replay_events(replay_run *c) {
    for (Py_ssize_t i = 0; i < c->r->event_count; i++) {
        event *e = &c->r->events[i];
        int done = e->kind == EVENT_ACT ? event_act(c, e) : event_move(c, e, &c->notes[i]);
        if (done != 1) return done;
    }
    return 1;
}

/* Calls the functions that note the steps of optimizers. */
static bool replay_notes(replay_run *c) {
    for (Py_ssize_t i = 0; i < c->r->event_count; i++) {
        const event *e = &c->r->events[i];
        if (e->kind == EVENT_ACT || c->notes[i] == Py_None) continue;
        if (!c->notes[i]) {
            if (!event_count_up(c->r->s, e)) return false;
            continue;
        }
        PyObject *done = PyObject_CallFunctionObjArgs(c->notes[i], NULL);
        if (!done) return false;
        Py_DECREF(done);
    }
    return true;
}

/* ---- running ---- */

/* Calls an operation of programs. The core's answer. */
static int replay_core(replay *r, int number, int count, mg_array **arrays, const int64_t *ints, const double *floats,
                       mg_arrays *out) {
    void *outer = gil_enter();
    int code = r->s->core->run(number, count, arrays, &(mg_args){ints, floats, NULL}, out);
    gil_leave(outer);
    return code;
}

static bool replay_accepts(replay_run *c) {
    int64_t ints[] = {c->r->address, c->given_count};
    mg_arrays out;
    return replay_core(c->r, c->r->accepts, (int)c->given_count, c->arrays, ints, NULL, &out) != 0;
}

/* Runs the program. False if it did not come to its end. */
static bool replay_program(replay_run *c) {
    replay *r = c->r;
    int64_t *numbers = c->ints - 3;
    mg_arrays out;
    numbers[0] = r->address;
    numbers[1] = c->given_count;
    numbers[2] = r->int_count;
    numbers[3 + r->int_count] = r->float_count;
    return !replay_core(r, r->run, (int)c->given_count, c->arrays, numbers, c->floats, &out);
}

static bool replay_take(replay_run *c) {
    replay *r = c->r;
    mg_arrays out;
    for (; c->made_count < r->result_count; c->made_count++) {
        int64_t ints[] = {r->address, r->results[c->made_count]};
        PyObject *array = NULL;
        if (r->s->core->run(r->take, 0, NULL, &(mg_args){ints, NULL, NULL}, &out))
            PyErr_SetString(PyExc_RuntimeError, "[compile] a result is missing");
        else array = array_object(r->s, out.made[0]);
        if (!(c->made[c->made_count] = array)) break;
    }
    replay_core(r, r->end, 0, NULL, &r->address, NULL, &out);
    return c->made_count == r->result_count;
}

/* ---- what a call leaves ---- */

static PyObject *replay_kept(const replay_run *c, Py_ssize_t place) {
    return place < c->given_count ? c->given[place] : c->made[place - c->given_count];
}

/* The arrays that the call keeps for backward, as minigrad/_compile/history.py has them. */
static PyObject *replay_saved(const replay_run *c) {
    replay *r = c->r;
    PyObject *saved = PyTuple_New(r->group_count / 3), *loose = PyTuple_New(r->loose_count), *both = NULL;
    bool done = saved && loose;
    for (Py_ssize_t i = 0; done && i < r->group_count; i += 3) {
        mg_array *arrays[3];
        for (int k = 0; k < 3; k++)
            arrays[k] = r->groups[i + k] < 0 ? NULL : handle_array(replay_kept(c, r->groups[i + k]));
        PyObject *group = array_save(r->s, arrays[0], arrays[1], arrays[2], r->s->kernel_saved);
        done = group && !PyTuple_SetItem(saved, i / 3, group);
    }
    for (Py_ssize_t i = 0; done && i < r->loose_count; i++)
        done = !PyTuple_SetItem(loose, i, Py_NewRef(replay_kept(c, r->loose[i])));
    if (done) both = PyTuple_Pack(2, saved, loose);
    Py_XDECREF(saved);
    Py_XDECREF(loose);
    return both;
}

/* The node of the call. */
static PyObject *replay_node(const replay_run *c) {
    replay *r = c->r;
    PyObject *made = replay_saved(c), *none = PyTuple_New(0), *edge = NULL;
    PyObject **fields = PyMem_Calloc((size_t)(NODE_GIVEN + r->end_count), sizeof *fields);
    Py_ssize_t parents = 0;
    if (!fields) PyErr_NoMemory();
    bool done = made && none && fields;
    for (; done && parents < r->end_count; parents += done) {
        PyObject *parent = tensor_parent(r->s, target_of(c, &r->ends[parents]));
        done = parent != NULL;
        fields[NODE_GIVEN + parents] = parent;
    }
    if (done) {
        fields[NODE_OP] = r->op;
        fields[NODE_SAVED] = made;
        fields[NODE_ARGS] = none;
        fields[NODE_INPUTS] = Py_None;
        edge = node_record(r->s, fields, NODE_GIVEN + parents);
    }
    while (parents > 0) Py_DECREF(fields[NODE_GIVEN + --parents]);
    PyMem_Free(fields);
    Py_XDECREF(made);
    Py_XDECREF(none);
    return edge;
}

/* A tensor for a result with a history: its edge is the node, or one of its outputs. */
static PyObject *replay_living(const replay_run *c, Py_ssize_t number, PyObject *edge) {
    replay *r = c->r;
    PyObject *array = c->made[r->living[number]], *own = Py_NewRef(edge);
    if (r->living_count > 1) {
        PyObject *none = PyTuple_New(0), *fields[] = {r->output_ops[number], Py_None, none, Py_None, edge};
        Py_DECREF(own);
        own = none ? node_record(r->s, fields, NODE_GIVEN + 1) : NULL;
        Py_XDECREF(none);
    }
    PyObject *made = own ? tensor_around(r->s, Py_NewRef(array), own, Py_None) : NULL;
    Py_XDECREF(own);
    return made;
}

static bool replay_leave(replay_run *c) {
    replay *r = c->r;
    PyObject *edge = r->op ? replay_node(c) : NULL;
    if (r->op && !edge) return false;
    for (; c->left_count < r->left_count; c->left_count++) {
        const left *l = &r->leaving[c->left_count];
        PyObject *x;
        if (l->from == LEFT_MADE) x = tensor_around(r->s, Py_NewRef(c->made[l->number]), l->edge, Py_None);
        else if (l->from == LEFT_LIVING) x = replay_living(c, l->number, edge);
        else if (l->from == LEFT_TENSOR) x = Py_NewRef(target_of(c, &l->of));
        else x = Py_NewRef(tensor_field(target_of(c, &l->of), TENSOR_GRAD));
        if (!(c->left[c->left_count] = x)) break;
    }
    Py_XDECREF(edge);
    return c->left_count == r->left_count;
}

static void replay_grads(const replay_run *c) {
    for (Py_ssize_t i = 0; i < c->r->grad_count; i++) {
        const gradient *g = &c->r->grads[i];
        PyObject **field = &((tensor *)target_of(c, &g->of))->fields[TENSOR_GRAD], *before = *field;
        *field = Py_NewRef(g->place < 0 ? Py_None : c->left[g->place]);
        Py_XDECREF(before);
    }
}

/* A part of the result: the next output for Ellipsis, the value for (value,), else a container from
 * (kind, parts, keys). */
static PyObject *replay_part(const replay_run *c, PyObject *part, Py_ssize_t *next) {
    if (part == Py_Ellipsis) return Py_NewRef(c->left[c->r->outputs[(*next)++]]);
    if (PyTuple_Size(part) == 1) return Py_NewRef(PyTuple_GetItem(part, 0));
    Py_ssize_t kind = item_number(part, 0);
    PyObject *parts = PyTuple_GetItem(part, 1), *keys = PyTuple_GetItem(part, 2);
    Py_ssize_t count = PyTuple_Size(parts);
    PyObject *made = kind == PARTS_TUPLE ? PyTuple_New(count) : kind == PARTS_LIST ? PyList_New(count) : PyDict_New();
    for (Py_ssize_t i = 0; made && i < count; i++) {
        PyObject *item = replay_part(c, PyTuple_GetItem(parts, i), next);
        int failed = !item;
        if (item && kind == PARTS_TUPLE) failed = PyTuple_SetItem(made, i, item);
        else if (item && kind == PARTS_LIST) failed = PyList_SetItem(made, i, item);
        else if (item) {
            failed = PyDict_SetItem(made, PyTuple_GetItem(keys, i), item);
            Py_DECREF(item);
        }
        if (failed) Py_CLEAR(made);
    }
    return made;
}

/* The outputs of the call, filled into its result. */
static PyObject *replay_outputs(const replay_run *c) {
    replay *r = c->r;
    Py_ssize_t next = 0;
    if (PyTuple_Check(r->fill) || r->fill == Py_Ellipsis) return replay_part(c, r->fill, &next);
    PyObject *found = PyList_New(r->output_count), *result = NULL;
    for (Py_ssize_t i = 0; found && i < r->output_count; i++)
        PyList_SetItem(found, i, Py_NewRef(c->left[r->outputs[i]]));
    if (found) result = PyObject_CallFunctionObjArgs(r->fill, found, NULL);
    Py_XDECREF(found);
    return result;
}

static PyObject *list_of(PyObject **items, Py_ssize_t count) {
    PyObject *made = PyList_New(count);
    for (Py_ssize_t i = 0; made && i < count; i++) PyList_SetItem(made, i, Py_NewRef(items[i] ? items[i] : Py_None));
    return made;
}

/* The result after the program stopped, as Python finds it. */
static PyObject *replay_stopped(replay_run *c) {
    replay *r = c->r;
    PyObject *given = list_of(c->given, c->given_count), *result = NULL;
    bool done = given;
    for (Py_ssize_t i = 0; done && i < r->event_count; i++) { /* the notes that steps in C do without */
        event *e = &r->events[i];
        if (e->kind == EVENT_MOVE && !c->notes[i]) {
            c->ints_used = c->floats_used = 0;
            done = event_renew(c, e, &c->notes[i]) == 1;
        }
    }
    PyObject *notes = done ? list_of(c->notes, r->event_count) : NULL;
    if (notes)
        result = PyObject_CallFunctionObjArgs(r->stopped, c->args, c->named ? c->named : Py_None,
                                              c->back ? c->back : Py_None, notes, given, NULL);
    Py_XDECREF(notes);
    Py_XDECREF(given);
    if (!result && !PyErr_Occurred()) result = Py_NewRef(Py_Ellipsis);
    return result;
}

/* Undoes what events did. Ellipsis. */
static PyObject *replay_back(const replay_run *c) {
    for (Py_ssize_t i = 0; c->back && i < PyList_Size(c->back); i++) {
        PyObject *done = PyObject_CallFunctionObjArgs(PyList_GetItem(c->back, i), NULL);
        if (!done) return NULL;
        Py_DECREF(done);
    }
    return Py_NewRef(Py_Ellipsis);
}

static PyObject *replay_go(replay_run *c) {
    replay *r = c->r;
    if (!replay_gather(c)) return Py_NewRef(Py_Ellipsis);
    if (r->acts) {
        if (!replay_accepts(c)) return Py_NewRef(Py_Ellipsis);
        if (!(c->back = PyObject_CallFunctionObjArgs(r->begin, NULL))) return NULL;
    }
    int ready = replay_events(c);
    if (ready < 0) return NULL;
    if (!ready) return replay_back(c);
    if (!replay_program(c)) return replay_stopped(c);
    if (!replay_take(c) || !replay_notes(c) || !replay_leave(c)) return NULL;
    replay_grads(c);
    return replay_outputs(c);
}

/* Runs the program for a call that fits. */
static PyObject *replay_fitted(replay_run *c) {
    const replay *r = c->r;
    int64_t few[FEW_BYTES / 8], *memory = r->room <= FEW_BYTES ? few : PyMem_Malloc(r->room);
    if (!memory) return PyErr_NoMemory();
    Py_ssize_t most = r->source_count + r->drawn_count;
    memset(memory, 0, r->room);
    c->ints = memory + 3;
    c->floats = (double *)(c->ints + r->int_count + 1);
    c->arrays = (mg_array **)(c->floats + r->float_count);
    c->given = (PyObject **)(c->arrays + most);
    c->made = c->given + most;
    c->left = c->made + r->result_count;
    c->notes = c->left + r->left_count;
    c->given_count = c->made_count = c->left_count = c->ints_used = c->floats_used = 0;
    c->back = NULL;
    PyObject *result = replay_go(c);
    for (Py_ssize_t i = 0; i < r->event_count; i++) Py_XDECREF(c->notes[i]);
    while (c->left_count > 0) Py_DECREF(c->left[--c->left_count]);
    while (c->made_count > 0) Py_DECREF(c->made[--c->made_count]);
    while (c->given_count > 0) Py_DECREF(c->given[--c->given_count]);
    Py_XDECREF(c->back);
    if (memory != few) PyMem_Free(memory);
    return result;
}

/* The result of a call, or Ellipsis if it takes another way. */
static PyObject *replay_try(replay *r, PyObject *args, PyObject *named) {
    replay_run c;
    c.r = r;
    c.args = args;
    c.named = named;
    PyObject *result = NULL;
    Py_INCREF(r); /* the function may be recorded again meanwhile */
    if (replay_fits(&c)) result = replay_fitted(&c);
    else if (!PyErr_Occurred() || PyErr_ExceptionMatches(PyExc_Exception)) {
        PyErr_Clear();
        result = Py_NewRef(Py_Ellipsis);
    }
    Py_DECREF(r);
    return result;
}

/* ---- the class of replays ---- */

static int replay_traverse(PyObject *self, visitproc visit, void *arg) {
    replay *r = (replay *)self;
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(r->description);
    for (Py_ssize_t i = 0; r->events && i < r->event_count; i++)
        for (Py_ssize_t k = 0; k < r->events[i].option_count; k++) Py_VISIT(r->events[i].options[k]);
    return 0;
}

static void replay_free(PyObject *self) {
    PyTypeObject *class = Py_TYPE(self);
    replay *r = (replay *)self;
    PyObject_GC_UnTrack(self);
    for (Py_ssize_t i = 0; r->events && i < r->event_count; i++) {
        event *e = &r->events[i];
        event_forget(e);
        PyMem_Free(e->options);
        PyMem_Free(e->kept_ints);
        PyMem_Free(e->kept_floats);
    }
    void *blocks[] = {r->edges, r->constants, r->names, r->idle, r->guards, r->leaves, r->sources, r->events,
                      r->results, r->leaving, r->grads, r->outputs, r->groups, r->loose, r->living, r->ends,
                      r->output_ops};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) PyMem_Free(blocks[i]);
    Py_XDECREF(r->description);
    PyObject_GC_Del(self);
    Py_DECREF(class);
}

/* Replay(description) */
static PyObject *replay_new(PyTypeObject *class, PyObject *args, PyObject *named) {
    PyObject *description;
    if (named || !PyArg_ParseTuple(args, "O!:Replay", &PyTuple_Type, &description)) return NULL;
    if (PyTuple_Size(description) != PARTS) return PyErr_Format(PyExc_TypeError, "Replay(description)");
    replay *r = (replay *)PyType_GenericAlloc(class, 0);
    if (!r) return NULL;
    r->s = PyType_GetModuleState(class);
    r->description = Py_NewRef(description);
    if (!replay_read(r)) Py_CLEAR(r);
    return (PyObject *)r;
}

static PyObject *replay_call(PyObject *self, PyObject *args, PyObject *named) {
    return replay_try((replay *)self, args, named);
}

static PyType_Slot replay_slots[] = {{Py_tp_doc, "A recorded call; a call of it gives Ellipsis if it does not fit."},
                                     {Py_tp_new, (void *)replay_new},
                                     {Py_tp_dealloc, (void *)replay_free},
                                     {Py_tp_traverse, (void *)replay_traverse},
                                     {Py_tp_call, (void *)replay_call},
                                     {0, NULL}};
static PyType_Spec replay_spec = {"minigrad._speed.Replay", sizeof(replay), 0,
                                  Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, replay_slots};

/* ---- the base of compiled functions ---- */

typedef struct {
    PyObject_HEAD
    PyObject *replays; /* list */
} caller;

static int caller_traverse(PyObject *self, visitproc visit, void *arg) {
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(((caller *)self)->replays);
    return 0;
}

static int caller_clear(PyObject *self) {
    Py_CLEAR(((caller *)self)->replays);
    return 0;
}

static void caller_free(PyObject *self) {
    PyTypeObject *class = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    caller_clear(self);
    PyObject_GC_Del(self);
    Py_DECREF(class);
}

/* The result of the first replay that fits, or of the method `_call`. */
static PyObject *caller_call(PyObject *self, PyObject *args, PyObject *named) {
    PyObject *replays = Py_XNewRef(((caller *)self)->replays), *result = Py_Ellipsis;
    for (Py_ssize_t i = 0; result == Py_Ellipsis && replays && i < PyList_Size(replays); i++) {
        result = replay_try((replay *)PyList_GetItem(replays, i), args, named);
        if (result == Py_Ellipsis) Py_DECREF(result);
    }
    Py_XDECREF(replays);
    if (result != Py_Ellipsis) return result;
    PyObject *method = PyObject_GetAttrString(self, "_call");
    result = method ? PyObject_Call(method, args, named) : NULL;
    Py_XDECREF(method);
    return result;
}

static PyMemberDef caller_members[] = {
    {"_replays", T_OBJECT_EX, offsetof(caller, replays), 0, NULL},
    {NULL, 0, 0, 0, NULL},
};
static PyType_Slot caller_slots[] = {{Py_tp_doc, "Base of functions that try replays before their own method `_call`."},
                                     {Py_tp_dealloc, (void *)caller_free},
                                     {Py_tp_traverse, (void *)caller_traverse},
                                     {Py_tp_clear, (void *)caller_clear},
                                     {Py_tp_call, (void *)caller_call},
                                     {Py_tp_members, caller_members},
                                     {0, NULL}};
static PyType_Spec caller_spec = {"minigrad._speed.Caller", sizeof(caller), 0,
                                  Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, caller_slots};

bool replay_make_types(PyObject *module) {
    PyType_Spec *specs[] = {&replay_spec, &caller_spec};
    const char *names[] = {"Replay", "Caller"};
    for (int i = 0; i < 2; i++) {
        PyObject *type = PyType_FromModuleAndSpec(module, specs[i], NULL);
        if (!type || PyModule_AddObjectRef(module, names[i], type)) return false;
        Py_DECREF(type);
    }
    return true;
}
