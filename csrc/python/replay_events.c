/* replay_events.c: steps of optimizers, draws and schedules in recorded calls.
 *
 * A step's numbers are read anew for each run. While the options of its group are the same objects,
 * or equal numbers, they are those of the last run.
 */
#include "replay.h"

#include <string.h>

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

void event_forget(replay_event *e) {
    e->known = false;
    while (e->option_count > 0) Py_DECREF(e->options[--e->option_count]);
}

static bool event_same(const replay_event *e) {
    Py_ssize_t at = 0, i = 0;
    PyObject *key, *value;
    for (; PyDict_Next(e->group, &at, &key, &value); i += 2)
        if (i == e->option_count || key != e->options[i] || !replay_same(value, e->options[i + 1])) return false;
    return i == e->option_count;
}

/* Notes the options of a group. False if they may change unseen. */
static bool event_remember(replay_event *e) {
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
static long long event_step(speed_state *s, const replay_event *e) {
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
static bool event_count_up(speed_state *s, const replay_event *e) {
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
static bool event_take(replay_run *c, replay_event *e, PyObject *ints, PyObject *floats) {
    if (PyList_Size(ints) != e->ints || PyList_Size(floats) != e->floats) return false;
    for (Py_ssize_t i = 0; i < e->ints; i++) e->kept_ints[i] = PyLong_AsLongLong(PyList_GetItem(ints, i));
    for (Py_ssize_t i = 0; i < e->floats; i++) e->kept_floats[i] = PyFloat_AsDouble(PyList_GetItem(floats, i));
    memcpy(c->ints + c->ints_used, e->kept_ints, (size_t)e->ints * sizeof *e->kept_ints);
    memcpy(c->floats + c->floats_used, e->kept_floats, (size_t)e->floats * sizeof *e->kept_floats);
    return !PyErr_Occurred();
}

/* Renews the numbers of a step in Python. 1 if done, 0 if there is no such step, -1 with an error set. */
static int event_renew(replay_run *c, replay_event *e, PyObject **note) {
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
static int event_move(replay_run *c, replay_event *e, PyObject **note) {
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
static int event_act(replay_run *c, const replay_event *e) {
    PyObject *made = PyObject_CallFunctionObjArgs(e->run, NULL);
    if (!made) return -1;
    bool fits = !tensor_is(c->r->s, made) || replay_give(c, tensor_field(made, TENSOR_ARRAY));
    Py_DECREF(made);
    return fits;
}

int replay_events(replay_run *c) {
    for (Py_ssize_t i = 0; i < c->r->event_count; i++) {
        replay_event *e = &c->r->events[i];
        int done = e->kind == EVENT_ACT ? event_act(c, e) : event_move(c, e, &c->notes[i]);
        if (done != 1) return done;
    }
    return 1;
}

bool replay_notes(replay_run *c) {
    for (Py_ssize_t i = 0; i < c->r->event_count; i++) {
        const replay_event *e = &c->r->events[i];
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

void replay_note(replay_run *c, Py_ssize_t i) {
    replay_event *e = &c->r->events[i];
    if (e->kind == EVENT_ACT || c->notes[i]) return;
    c->ints_used = c->floats_used = 0;
    if (event_renew(c, e, &c->notes[i]) == 1) return;
    PyErr_Clear(); /* another thread changed the options: the program must still come to its end */
    Py_CLEAR(c->notes[i]);
}
