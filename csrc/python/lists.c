/* lists.c: converts nested lists and tuples of numbers to arrays, and arrays to nested lists. */
#include "speed.h"

/* Bytes of an element. */
static int64_t lists_itemsize(int dtype) {
    switch (dtype) {
    case MG_BOOL:
    case MG_UINT8:
    case MG_INT8: return 1;
    case MG_INT16:
    case MG_FLOAT16:
    case MG_BFLOAT16: return 2;
    case MG_INT32:
    case MG_FLOAT32: return 4;
    }
    return 8;
}

/* The length of a list or tuple, ignoring what a subclass says. */
static Py_ssize_t lists_count(PyObject *given) {
    return PyTuple_Check(given) ? PyTuple_Size(given) : PyList_Check(given) ? PyList_Size(given) : 0;
}

/* ---- from lists ---- */

/* State while nested lists are read into an array. The shape is that of the first list at each
 * depth. */
typedef struct {
    int floats; /* the dtype of floats */
    /* dtype that numbers are read in; after a number that needs more, that number's dtype, or
     * NO_NUMBER */
    int dtype;
    int ndim;
    int64_t shape[MG_MAX_NDIM];
    char *next; /* address of the next number; NULL if only the sizes of the lists are checked */
} lists_reading;

/* not a number, or a list of the wrong size: Python decides */
enum { LISTS_NO_NUMBER = MG_FLOAT64 + 1 };

static bool lists_nested(PyObject *x) { return PyList_CheckExact(x) || PyTuple_CheckExact(x); }

/* Borrowed reference. */
MG_INLINE PyObject *lists_item(PyObject *list, Py_ssize_t i) {
    return PyList_CheckExact(list) ? PyList_GetItem(list, i) : PyTuple_GetItem(list, i);
}

MG_INLINE int lists_dtype(PyObject *x, int floats) {
    if (PyFloat_CheckExact(x)) return floats;
    if (PyLong_CheckExact(x)) return MG_INT64;
    return PyBool_Check(x) ? MG_BOOL : LISTS_NO_NUMBER;
}

/* Finds the shape, and the dtype of the first number, or the dtype of floats if there is no
 * number. */
static void lists_begin(lists_reading *to, PyObject *data) {
    for (to->ndim = 0; lists_nested(data); data = lists_item(data, 0)) {
        to->dtype = to->ndim < MG_MAX_NDIM ? to->floats : LISTS_NO_NUMBER;
        if (to->dtype == LISTS_NO_NUMBER) return;
        Py_ssize_t count = lists_count(data);
        to->shape[to->ndim++] = count;
        if (!count) return;
    }
    to->dtype = lists_dtype(data, to->floats);
}

/* Reads a number. False if it does not fit the dtype. */
MG_INLINE bool lists_number(lists_reading *to, PyObject *x) {
    int dtype = lists_dtype(x, to->floats), beyond = 0;
    if (dtype > to->dtype) {
        to->dtype = dtype;
        return false;
    }
    int64_t whole = 0;
    double real;
    if (is_float(dtype)) real = PyFloat_AsDouble(x);
    else real = (double)(whole = PyLong_AsLongLongAndOverflow(x, &beyond));
    if (beyond) to->dtype = LISTS_NO_NUMBER;
    switch (to->dtype) {
    case MG_BOOL: *to->next = (char)whole; break;
    case MG_INT64: *(int64_t *)to->next = whole; break;
    case MG_FLOAT32: *(float *)to->next = (float)real; break;
    case MG_FLOAT64: *(double *)to->next = real; break;
    }
    to->next += lists_itemsize(to->dtype);
    return !beyond;
}

/* Reads all numbers of a list. False if one does not fit the dtype. */
static bool lists_fill(lists_reading *to, PyObject *data, int depth) {
    bool last = depth + 1 == to->ndim, fits = lists_nested(data);
    Py_ssize_t count = fits ? lists_count(data) : 0;
    if (!fits || count != to->shape[depth]) {
        to->dtype = LISTS_NO_NUMBER;
        return false;
    }
    if (last && !to->next) return true;
    for (Py_ssize_t i = 0; fits && i < count; i++) {
        PyObject *item = lists_item(data, i);
        fits = last ? lists_number(to, item) : lists_fill(to, item, depth + 1);
    }
    return fits;
}

/* A new array for the numbers; NULL if there is no memory. */
static mg_array *lists_empty(speed_state *s, const lists_reading *to) {
    int64_t ints[2 + MG_MAX_NDIM] = {to->dtype, to->ndim};
    for (int d = 0; d < to->ndim; d++) ints[2 + d] = to->shape[d];
    mg_args args = {.ints = ints};
    mg_arrays out;
    void *outer = gil_enter();
    int code = s->core->run(s->kernel_empty, 0, NULL, &args, &out);
    gil_leave(outer);
    return code ? NULL : out.made[0];
}

/* from_lists(data, floats, weak): a tensor from a Python number, or from nested lists and tuples of
 * numbers. `floats`: the dtype of floats. None for anything else, and for wrong input, which Python
 * reports.
 *
 * While lists are read, no Python code and no other thread runs. Lists may change only while memory
 * is allocated, so every size is checked after that.
 */
PyObject *speed_from_lists(PyObject *module, PyObject *const *given, Py_ssize_t count) {
    speed_state *s = state_of(module);
    if (count != 3) return PyErr_Format(PyExc_TypeError, "from_lists(data, floats, weak)");
    PyObject *data = given[0];
    lists_reading to = {.floats = (int)PyLong_AsLong(given[1])};
    mg_array *made = NULL;
    bool done = false;
    lists_begin(&to, data);
    /* in at most three dtypes, each wider than the last */
    while (!done && to.dtype != LISTS_NO_NUMBER) {
        s->core->release(made);
        made = lists_empty(s, &to);
        to.next = made ? made->data : NULL;
        if (to.ndim) done = lists_fill(&to, data, 0);
        else done = !made || lists_number(&to, data);
        if (done && !made) { /* the allocation failed, and the lists are right */
            call_check(s, true, s->kernel_tensor, NULL, 0, Py_None);
            return NULL;
        }
    }
    if (!done) {
        s->core->release(made);
        Py_RETURN_NONE;
    }
    made->weak = given[2] == Py_True;
    return tensor_of(s, made);
}

/* ---- to lists ---- */

MG_INLINE PyObject *lists_of_number(speed_state *s, int dtype, const char *at) {
    switch (dtype) {
    case MG_BOOL: return PyBool_FromLong(*at);
    case MG_INT64: return PyLong_FromLongLong(*(const int64_t *)at);
    case MG_FLOAT32: return PyFloat_FromDouble(*(const float *)at);
    case MG_FLOAT64: return PyFloat_FromDouble(*(const double *)at);
    }
    return dtype == MG_FLOAT16 || dtype == MG_BFLOAT16
               ? PyFloat_FromDouble(s->core->real_at(dtype, at))
               : PyLong_FromLongLong(s->core->whole_at(dtype, at));
}

static PyObject *lists_of(speed_state *s, const mg_array *x, const char *at, int depth) {
    if (depth == x->ndim) return lists_of_number(s, x->dtype, at);
    const bool last = depth + 1 == x->ndim;
    const int dtype = x->dtype;
    const int64_t count = x->shape[depth], step = x->strides[depth] * lists_itemsize(dtype);
    PyObject *made = PyList_New((Py_ssize_t)count);
    for (int64_t i = 0; made && i < count; i++, at += step) {
        PyObject *item = last ? lists_of_number(s, dtype, at) : lists_of(s, x, at, depth + 1);
        if (!item || PyList_SetItem(made, (Py_ssize_t)i, item) < 0) Py_CLEAR(made);
        if ((i & 0xFFFF) == 0xFFFF && made && PyErr_CheckSignals() < 0) Py_CLEAR(made);
    }
    return made;
}

/* to_lists(array): the numbers in nested lists; a plain number for 0-d arrays. */
PyObject *speed_to_lists(PyObject *module, PyObject *array) {
    speed_state *s = state_of(module);
    if (!array_is(s, array)) {
        PyErr_SetString(PyExc_TypeError, "to_lists(array)");
        return batched_again(s, "batched_lists", array, NULL, NULL);
    }
    const mg_array *x = handle_array(array);
    return lists_of(s, x, x->data, 0);
}
