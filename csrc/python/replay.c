/* replay.c: runs of recorded programs, for calls that pass tensors alone.
 *
 * The run is defined in minigrad/_compile/recorded.py. A function made here checks the same
 * conditions. It returns Ellipsis if one does not hold, before it changes anything; the call then
 * takes the way in Python.
 */
#include "speed.h"

/* Where an array comes from: an argument, a tensor, the gradient of either, or a constant. */
enum { FROM_ARGUMENT, FROM_TENSOR, FROM_ARGUMENT_GRAD, FROM_TENSOR_GRAD, FROM_CONSTANT };
/* Kinds of outputs of a call: a result of the program, an argument, or a tensor. */
enum { GIVES_MADE, GIVES_ARGUMENT, GIVES_TENSOR };

/* The parts of the description, a tuple. */
enum {
    PART_ADDRESS,   /* of the program */
    PART_EDGES,     /* tuple: the edge of each argument, None or LEAF */
    PART_IDLE,      /* tuple of lists that must be empty */
    PART_RECORDS,   /* bool: operations are recorded */
    PART_GUARDS,    /* tuple of (container, key, value) */
    PART_LEAVES,    /* tuple of (argument number or tensor, True if it has no grad, edge) */
    PART_SOURCES,   /* tuple of (where from, argument number, tensor or array) */
    PART_EVENTS,    /* tuple of functions that add live integers and floats to two lists */
    PART_RESULTS,   /* tuple: the slots of the results */
    PART_GRADS,     /* tuple of (argument number or tensor, number of a result or None) */
    PART_OUTPUTS,   /* tuple of (kind, its number or tensor, edge) */
    PART_FILL,      /* None, or a function of the list of outputs */
    PART_OPERATIONS, /* tuple of numbers: run, take, end */
    PARTS,
};

/* `first` of the holder is the description. */
typedef struct {
    holder held;
    int64_t address;
    int run, take, end;
} replay;

#define EACH(item, tuple)                                                                          \
    for (Py_ssize_t each = 0, end_of_##item = PyTuple_Size(tuple); each < end_of_##item; each++)   \
        for (PyObject *item = PyTuple_GetItem(tuple, each); item; item = NULL)

static PyObject *replay_part(const replay *r, int part) { return PyTuple_GetItem(r->held.first, part); }

/* The tensor that a number of an argument, or a tensor itself, stands for. Borrowed. */
static PyObject *replay_tensor(PyObject *args, PyObject *which) {
    return PyLong_CheckExact(which) ? PyTuple_GetItem(args, PyLong_AsSsize_t(which)) : which;
}

static PyObject *replay_field(PyObject *x, int field) {
    PyObject *held = ((tensor *)x)->fields[field];
    return held ? held : Py_None;
}

/* True if an object is the value, or an equal int. */
static bool replay_same(PyObject *now, PyObject *value) {
    return now == value || (PyLong_CheckExact(now) && PyLong_CheckExact(value) &&
                            PyObject_RichCompareBool(now, value, Py_EQ) == 1);
}

static bool replay_guards_hold(PyObject *guards) {
    EACH(guard, guards) {
        PyObject *where = PyTuple_GetItem(guard, 0), *key = PyTuple_GetItem(guard, 1), *now;
        if (PyDict_Check(where)) now = Py_XNewRef(PyDict_GetItemWithError(where, key));
        else if (key == Py_Ellipsis) now = PyObject_GetAttrString(where, "cell_contents");
        else now = PyObject_GetItem(where, key);
        bool holds = now && replay_same(now, PyTuple_GetItem(guard, 2));
        Py_XDECREF(now);
        if (!holds) return false;
    }
    return true;
}

/* True if the call is like the recorded one, as far as Python objects say. */
static bool replay_fits(replay *r, PyObject *args) {
    speed_state *s = r->held.s;
    PyObject *edges = replay_part(r, PART_EDGES);
    Py_ssize_t count = PyTuple_Size(edges);
    if (PyTuple_Size(args) != count || call_watched(s)) return false;
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *x = PyTuple_GetItem(args, i);
        if ((PyObject *)Py_TYPE(x) != s->uses[USE_RESULT]) return false;
        if (replay_field(x, TENSOR_EDGE) != PyTuple_GetItem(edges, i)) return false;
        for (Py_ssize_t k = 0; k < i; k++)
            if (x == PyTuple_GetItem(args, k)) return false;
    }
    EACH(list, replay_part(r, PART_IDLE)) if (PyList_Size(list)) return false;
    if (apply_paused(s) == (replay_part(r, PART_RECORDS) == Py_True)) return false;
    EACH(leaf, replay_part(r, PART_LEAVES)) {
        PyObject *x = replay_tensor(args, PyTuple_GetItem(leaf, 0));
        PyObject *without = PyTuple_GetItem(leaf, 1);
        bool has_none = replay_field(x, TENSOR_GRAD) == Py_None;
        if (without != Py_None && has_none != (without == Py_True)) return false;
        if (replay_field(x, TENSOR_EDGE) != PyTuple_GetItem(leaf, 2)) return false;
        for (Py_ssize_t i = 0; x == PyTuple_GetItem(leaf, 0) && i < count; i++)
            if (x == PyTuple_GetItem(args, i)) return false;
    }
    return replay_guards_hold(replay_part(r, PART_GUARDS));
}

/* The array of a source, borrowed; NULL if it is none. */
static PyObject *replay_array(replay *r, PyObject *args, PyObject *source) {
    long from = PyLong_AsLong(PyTuple_GetItem(source, 0));
    PyObject *which = PyTuple_GetItem(source, 1);
    if (from == FROM_CONSTANT) return which;
    PyObject *x = replay_tensor(args, which);
    if (from == FROM_ARGUMENT_GRAD || from == FROM_TENSOR_GRAD) x = replay_field(x, TENSOR_GRAD);
    if (!tensor_is(r->held.s, x)) return NULL;
    PyObject *array = ((tensor *)x)->fields[TENSOR_ARRAY];
    return array && array_is(r->held.s, array) ? array : NULL;
}

/* Appends the numbers of a list to those of a call; false with an error set. */
static bool replay_numbers(PyObject *list, int64_t *ints, double *floats) {
    Py_ssize_t count = PyList_Size(list);
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *item = PyList_GetItem(list, i);
        if (ints) ints[i] = PyLong_AsLongLong(item);
        else floats[i] = PyFloat_AsDouble(item);
    }
    return !PyErr_Occurred();
}

/* Runs the events; the functions that note them afterwards are in `notes`. False with an error set. */
static bool replay_events(replay *r, PyObject *ints, PyObject *floats, PyObject *notes) {
    EACH(event, replay_part(r, PART_EVENTS)) {
        PyObject *note = PyObject_CallFunctionObjArgs(event, ints, floats, NULL);
        int failed = !note || (note != Py_None && PyList_Append(notes, note));
        Py_XDECREF(note);
        if (failed) return false;
    }
    return true;
}

/* Runs the program. 1 if it ran, 0 if it did not begin, -1 with an error set; -2 if it stopped. */
static int replay_run(replay *r, PyObject *args, PyObject *ints, PyObject *floats) {
    speed_state *s = r->held.s;
    PyObject *sources = replay_part(r, PART_SOURCES);
    Py_ssize_t count = PyTuple_Size(sources), whole = PyList_Size(ints), real = PyList_Size(floats);
    size_t room = (size_t)count * (sizeof(mg_array *) + sizeof(PyObject *)) + (size_t)(whole + real + 4) * 8;
    char *memory = PyMem_Malloc(room);
    if (!memory) {
        PyErr_NoMemory();
        return -1;
    }
    int64_t *numbers = (int64_t *)memory;
    double *reals = (double *)(numbers + whole + 4);
    mg_array **arrays = (mg_array **)(reals + real);
    PyObject **objects = (PyObject **)(arrays + count);
    Py_ssize_t held = 0;
    int done = 1;
    for (; held < count; held++) {
        PyObject *array = replay_array(r, args, PyTuple_GetItem(sources, held));
        if (!array) break;
        objects[held] = Py_NewRef(array); /* a kernel may give up the lock */
        arrays[held] = handle_array(array);
    }
    if (held < count) done = 0;
    numbers[0] = r->address;
    numbers[1] = count;
    numbers[2] = whole;
    numbers[3 + whole] = real;
    if (done && (!replay_numbers(ints, numbers + 3, NULL) || !replay_numbers(floats, NULL, reals))) done = -1;
    if (done == 1) {
        mg_arrays out;
        void *outer = gil_enter();
        int stopped = s->core->run(r->run, (int)count, arrays, &(mg_args){numbers, reals, NULL}, &out);
        gil_leave(outer);
        if (stopped) done = -2;
    }
    while (held > 0) Py_DECREF(objects[--held]);
    PyMem_Free(memory);
    return done;
}

/* The arrays of the results as a list. */
static PyObject *replay_results(replay *r) {
    speed_state *s = r->held.s;
    PyObject *slots = replay_part(r, PART_RESULTS);
    Py_ssize_t count = PyTuple_Size(slots);
    PyObject *made = PyList_New(count);
    for (Py_ssize_t i = 0; made && i < count; i++) {
        int64_t ints[] = {r->address, PyLong_AsLongLong(PyTuple_GetItem(slots, i))};
        mg_arrays out;
        PyObject *array = NULL;
        if (s->core->run(r->take, 0, NULL, &(mg_args){ints, NULL, NULL}, &out))
            PyErr_SetString(PyExc_RuntimeError, "[compile] a result is missing");
        else array = array_object(s, out.made[0]);
        if (!array || PyList_SetItem(made, i, array) < 0) Py_CLEAR(made);
    }
    return made;
}

/* Sets the gradients that a call leaves behind; false with an error set. */
static bool replay_grads(replay *r, PyObject *args, PyObject *made) {
    EACH(grad, replay_part(r, PART_GRADS)) {
        PyObject *x = replay_tensor(args, PyTuple_GetItem(grad, 0)), *place = PyTuple_GetItem(grad, 1), *g;
        if (place == Py_None) g = Py_NewRef(Py_None);
        else {
            PyObject *array = PyList_GetItem(made, PyLong_AsSsize_t(place));
            g = tensor_around(r->held.s, Py_NewRef(array), Py_None, Py_None);
        }
        if (!g) return false;
        PyObject **field = &((tensor *)x)->fields[TENSOR_GRAD], *before = *field;
        *field = g;
        Py_XDECREF(before);
    }
    return true;
}

/* The outputs of the call, filled into its result. */
static PyObject *replay_outputs(replay *r, PyObject *args, PyObject *made) {
    PyObject *outputs = replay_part(r, PART_OUTPUTS), *fill = replay_part(r, PART_FILL);
    Py_ssize_t count = PyTuple_Size(outputs);
    PyObject *found = PyList_New(count);
    for (Py_ssize_t i = 0; found && i < count; i++) {
        PyObject *output = PyTuple_GetItem(outputs, i), *value = PyTuple_GetItem(output, 1), *x;
        if (PyLong_AsLong(PyTuple_GetItem(output, 0)) == GIVES_MADE) {
            PyObject *array = PyList_GetItem(made, PyLong_AsSsize_t(value));
            x = tensor_around(r->held.s, Py_NewRef(array), PyTuple_GetItem(output, 2), Py_None);
        } else {
            x = Py_NewRef(replay_tensor(args, value));
        }
        if (!x || PyList_SetItem(found, i, x) < 0) Py_CLEAR(found);
    }
    if (!found) return NULL;
    PyObject *result = fill == Py_None ? Py_NewRef(PyList_GetItem(found, 0))
                                       : PyObject_CallFunctionObjArgs(fill, found, NULL);
    Py_DECREF(found);
    return result;
}

static bool replay_notes(PyObject *notes) {
    for (Py_ssize_t i = 0; i < PyList_Size(notes); i++) {
        PyObject *done = PyObject_CallNoArgs(PyList_GetItem(notes, i));
        if (!done) return false;
        Py_DECREF(done);
    }
    return true;
}

static void replay_end(replay *r) {
    mg_arrays out;
    r->held.s->core->run(r->end, 0, NULL, &(mg_args){&r->address, NULL, NULL}, &out);
}

/* run(args): the result, Ellipsis if the call takes another way, or NotImplemented if the program
 * stopped. */
static PyObject *replay_call(PyObject *capsule, PyObject *args) {
    replay *r = PyCapsule_GetPointer(capsule, NULL);
    if (!r || !PyTuple_Check(args)) return PyErr_Format(PyExc_TypeError, "run(tuple of tensors)");
    if (!replay_fits(r, args)) {
        PyErr_Clear();
        return Py_NewRef(Py_Ellipsis);
    }
    PyObject *ints = PyList_New(0), *floats = PyList_New(0), *notes = PyList_New(0), *result = NULL;
    if (ints && floats && notes && replay_events(r, ints, floats, notes)) {
        int ran = replay_run(r, args, ints, floats);
        if (ran == 0) result = Py_NewRef(Py_Ellipsis);
        if (ran == -2) result = Py_NewRef(Py_NotImplemented);
        if (ran == 1) {
            PyObject *made = replay_results(r);
            replay_end(r);
            if (made && replay_notes(notes) && replay_grads(r, args, made))
                result = replay_outputs(r, args, made);
            Py_XDECREF(made);
        }
    }
    Py_XDECREF(ints);
    Py_XDECREF(floats);
    Py_XDECREF(notes);
    return result;
}

static PyMethodDef replay_method = METHOD("replay", replay_call, METH_O);

/* replay(description): a function that runs a program on a tuple of arguments. */
PyObject *replay_function(PyObject *module, PyObject *description) {
    if (!PyTuple_Check(description) || PyTuple_Size(description) != PARTS)
        return PyErr_Format(PyExc_TypeError, "replay(description)");
    replay *made = PyMem_Calloc(1, sizeof *made);
    if (!made) return PyErr_NoMemory();
    PyObject *numbers = PyTuple_GetItem(description, PART_OPERATIONS);
    made->held.first = description;
    made->held.second = Py_None;
    made->address = PyLong_AsLongLong(PyTuple_GetItem(description, PART_ADDRESS));
    made->run = (int)PyLong_AsLong(PyTuple_GetItem(numbers, 0));
    made->take = (int)PyLong_AsLong(PyTuple_GetItem(numbers, 1));
    made->end = (int)PyLong_AsLong(PyTuple_GetItem(numbers, 2));
    if (PyErr_Occurred()) {
        PyMem_Free(made);
        return NULL;
    }
    return holder_function(&replay_method, &made->held, module);
}
