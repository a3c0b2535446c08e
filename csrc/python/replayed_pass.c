/* replayed_pass.c: runs of recorded backward passes, which minigrad/_compile/history.py records.
 *
 * The pass is the program of a compiled call's gradients. Its arrays are those that the call kept,
 * and the gradients of its results.
 */
#include "speed.h"

/* Where an array comes from: saved arrays, kept arrays that are not watched, an upstream gradient,
 * or a constant. */
enum { FROM_SAVED, FROM_LOOSE, FROM_UPSTREAM, FROM_CONSTANT };

/* The parts of the description, a tuple. */
enum {
    PART_ADDRESS,    /* of the program */
    PART_SOURCES,    /* tuple of (where from, number, number of the array among three; or array) */
    PART_RESULTS,    /* tuple: the slots of the results */
    PART_ENDS,       /* tuple of (number of a result or None, True if others have its memory too) */
    PART_OPERATIONS, /* tuple of numbers: run, take, end, view_alias */
    PARTS,
};

typedef struct {
    int from;
    Py_ssize_t number;
    int64_t place;
    PyObject *array;
} pass_source;

typedef struct {
    Py_ssize_t result; /* -1 for no gradient */
    bool shared;
} pass_end;

/* `first` of the holder is the description. */
typedef struct {
    holder held;
    int64_t address;
    int run, take, end, alias;
    Py_ssize_t sources, results, ends;
} pass;

/* The memory of a pass: its sources, slots and ends follow the struct in this order. */
static pass_source *pass_sources(pass *p) { return (pass_source *)(p + 1); }
static int64_t *pass_slots(pass *p) { return (int64_t *)(pass_sources(p) + p->sources); }
static pass_end *pass_ends(pass *p) { return (pass_end *)(pass_slots(p) + p->results); }

/* The array of a source, a new reference. NULL if there is none now, or with an error set. */
static PyObject *pass_array(const pass *p, const pass_source *from, PyObject *made, PyObject *upstream) {
    speed_state *s = p->held.s;
    if (from->from == FROM_CONSTANT) return Py_NewRef(from->array);
    if (from->from == FROM_LOOSE) return Py_XNewRef(PyTuple_GetItem(PyTuple_GetItem(made, 1), from->number));
    if (from->from == FROM_UPSTREAM) {
        PyObject *g = PyList_GetItem(upstream, from->number);
        return g && tensor_is(s, g) ? Py_XNewRef(((tensor *)g)->fields[TENSOR_ARRAY]) : NULL;
    }
    PyObject *saved = PyTuple_GetItem(PyTuple_GetItem(made, 0), from->number);
    mg_arrays out;
    if (!saved || !saved_is(s, saved) ||
        s->core->run(s->kernel_saved, 0, NULL, &(mg_args){&from->place, NULL, handle_saved(saved)}, &out))
        return NULL; /* overwritten */
    return array_object(s, out.made[0]);
}

static int pass_core(const pass *p, int number, int count, mg_array **arrays, const int64_t *ints, mg_arrays *out) {
    void *outer = gil_enter();
    int code = p->held.s->core->run(number, count, arrays, &(mg_args){ints, NULL, NULL}, out);
    gil_leave(outer);
    return code;
}

/* Takes the results of the program. */
static bool pass_take(pass *p, PyObject **results) {
    mg_arrays out;
    Py_ssize_t taken = 0;
    for (; taken < p->results; taken++) {
        int64_t ints[] = {p->address, pass_slots(p)[taken]};
        if (pass_core(p, p->take, 0, NULL, ints, &out))
            PyErr_SetString(PyExc_RuntimeError, "[compile] a result is missing");
        else results[taken] = array_object(p->held.s, out.made[0]);
        if (!results[taken]) break;
    }
    pass_core(p, p->end, 0, NULL, &p->address, &out);
    return taken == p->results;
}

/* A gradient, a view of the result if others have its memory too. */
static PyObject *pass_gradient(pass *p, const pass_end *end, PyObject *const *results) {
    speed_state *s = p->held.s;
    if (end->result < 0) Py_RETURN_NONE;
    PyObject *array = results[end->result];
    if (!end->shared) return tensor_around(s, Py_NewRef(array), Py_None, Py_None);
    mg_array *from = handle_array(array);
    mg_arrays out;
    if (pass_core(p, p->alias, 1, &from, NULL, &out)) return PyErr_NoMemory();
    return tensor_of(s, out.made[0]);
}

/* The gradients as a list; NotImplemented if the program stopped. */
static PyObject *pass_go(pass *p, mg_array **arrays, PyObject **results) {
    int64_t ints[] = {p->address, p->sources, 0, 0};
    double none = 0;
    mg_arrays out;
    void *outer = gil_enter();
    int stopped =
        p->held.s->core->run(p->run, (int)p->sources, arrays, &(mg_args){ints, &none, NULL}, &out);
    gil_leave(outer);
    if (stopped) return Py_NewRef(Py_NotImplemented);
    if (!pass_take(p, results)) return NULL;
    PyObject *found = PyList_New(p->ends);
    for (Py_ssize_t i = 0; found && i < p->ends; i++) {
        PyObject *g = pass_gradient(p, &pass_ends(p)[i], results);
        if (!g || PyList_SetItem(found, i, g)) Py_CLEAR(found);
    }
    return found;
}

/* run(made, upstream): the gradients; None if an array is not there, Ellipsis if somebody watches
 * calls, NotImplemented if the program stopped. */
static PyObject *pass_call(PyObject *capsule, PyObject *const *args, Py_ssize_t count) {
    pass *p = PyCapsule_GetPointer(capsule, NULL);
    if (!p || count != 2 || !PyTuple_Check(args[0]) || !PyList_Check(args[1]))
        return PyErr_Format(PyExc_TypeError, "run(made, upstream)");
    if (call_watched(p->held.s)) return Py_NewRef(Py_Ellipsis);
    void **memory = PyMem_Calloc((size_t)(2 * p->sources + p->results + 1), sizeof *memory);
    if (!memory) return PyErr_NoMemory();
    mg_array **arrays = (mg_array **)memory;
    PyObject **objects = (PyObject **)memory + p->sources, **results = objects + p->sources, *found = NULL;
    Py_ssize_t held = 0;
    for (; held < p->sources; held++) {
        objects[held] = pass_array(p, &pass_sources(p)[held], args[0], args[1]);
        if (!objects[held] || !array_is(p->held.s, objects[held])) break;
        arrays[held] = handle_array(objects[held]);
    }
    if (held == p->sources) found = pass_go(p, arrays, results);
    else if (!PyErr_Occurred()) found = Py_NewRef(Py_None);
    for (Py_ssize_t i = 0; i < p->sources; i++) Py_XDECREF(objects[i]);
    for (Py_ssize_t i = 0; i < p->results; i++) Py_XDECREF(results[i]);
    PyMem_Free(memory);
    return found;
}

static PyMethodDef pass_method = METHOD("backward", pass_call, METH_FASTCALL);

static void pass_read(pass *p, PyObject *description) {
    for (Py_ssize_t i = 0; i < p->sources && !PyErr_Occurred(); i++) {
        PyObject *x = PyTuple_GetItem(PyTuple_GetItem(description, PART_SOURCES), i), *last = PyTuple_GetItem(x, 2);
        pass_source *to = &pass_sources(p)[i];
        to->from = (int)PyLong_AsLong(PyTuple_GetItem(x, 0));
        to->number = PyLong_AsSsize_t(PyTuple_GetItem(x, 1));
        if (to->from == FROM_CONSTANT) to->array = last;
        else to->place = PyLong_AsLongLong(last);
    }
    for (Py_ssize_t i = 0; i < p->results; i++)
        pass_slots(p)[i] = PyLong_AsLongLong(PyTuple_GetItem(PyTuple_GetItem(description, PART_RESULTS), i));
    for (Py_ssize_t i = 0; i < p->ends && !PyErr_Occurred(); i++) {
        PyObject *x = PyTuple_GetItem(PyTuple_GetItem(description, PART_ENDS), i), *number = PyTuple_GetItem(x, 0);
        pass_ends(p)[i].result = number == Py_None ? -1 : PyLong_AsSsize_t(number);
        pass_ends(p)[i].shared = PyTuple_GetItem(x, 1) == Py_True;
    }
}

/* replayed_pass(description): a function that runs a recorded backward pass. */
PyObject *replayed_pass(PyObject *module, PyObject *description) {
    if (!PyTuple_Check(description) || PyTuple_Size(description) != PARTS)
        return PyErr_Format(PyExc_TypeError, "replayed_pass(description)");
    Py_ssize_t sources = PyTuple_Size(PyTuple_GetItem(description, PART_SOURCES));
    Py_ssize_t results = PyTuple_Size(PyTuple_GetItem(description, PART_RESULTS));
    Py_ssize_t ends = PyTuple_Size(PyTuple_GetItem(description, PART_ENDS));
    if (PyErr_Occurred()) return NULL;
    size_t room = sizeof(pass) + (size_t)sources * sizeof(pass_source) + (size_t)results * sizeof(int64_t) +
                  (size_t)ends * sizeof(pass_end);
    pass *p = PyMem_Calloc(1, room);
    if (!p) return PyErr_NoMemory();
    PyObject *numbers = PyTuple_GetItem(description, PART_OPERATIONS);
    p->held.first = description;
    p->held.second = Py_None;
    p->sources = sources;
    p->results = results;
    p->ends = ends;
    p->address = PyLong_AsLongLong(PyTuple_GetItem(description, PART_ADDRESS));
    int *to[] = {&p->run, &p->take, &p->end, &p->alias};
    for (int i = 0; i < 4; i++) *to[i] = (int)PyLong_AsLong(PyTuple_GetItem(numbers, i));
    pass_read(p, description);
    if (!PyErr_Occurred()) return holder_function(&pass_method, &p->held, module);
    PyMem_Free(p);
    return NULL;
}
