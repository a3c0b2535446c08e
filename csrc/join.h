/* join.h: tensors side by side, which is one call of a kernel and a node with any number of parents. */
#ifndef MG_JOIN_H
#define MG_JOIN_H

#include "operation.h"

MG_PLANNING

/* Where each part begins along the axis, and the last ends. */
static PyObject *join_bounds(mg_array **parts, int count, int axis) {
    PyObject *made = PyTuple_New(count + 1);
    int64_t at = 0;
    for (int i = 0; made && i <= count; i++) {
        PyObject *bound = PyLong_FromLongLong(at);
        if (!bound || PyTuple_SetItem(made, i, bound)) Py_CLEAR(made);
        if (i < count) at += parts[i]->shape[axis];
    }
    return made;
}

/* Gives the result a node if a part wants a gradient. */
static bool join_record(PyObject *row, PyObject *parts, mg_array **arrays, int axis, bool stacked,
                        tensor *made) {
    int count = (int)PyTuple_Size(parts);
    PyObject **given = PyMem_Malloc((size_t)(NODE_GIVEN + count) * sizeof *given);
    if (!given) {
        PyErr_NoMemory();
        return false;
    }
    int found = 0;
    bool wanted = false;
    for (; found < count; found++) {
        PyObject *parent = given[NODE_GIVEN + found] = tensor_parent(PyTuple_GetItem(parts, found));
        if (!parent) break;
        wanted = wanted || parent != Py_None;
    }
    bool done = found == count;
    if (done && wanted && arrays[0]->dtype >= MG_FLOAT32 && !operation_paused()) {
        given[NODE_OP] = row;
        given[NODE_SAVED] = given[NODE_ADAPTED] = Py_None;
        given[NODE_ARGS] = stacked ? Py_BuildValue("(ii)", axis, count)
                                   : Py_BuildValue("(iN)", axis, join_bounds(arrays, count, axis));
        done = given[NODE_ARGS] && tensor_record(made, given, NODE_GIVEN + count);
        Py_XDECREF(given[NODE_ARGS]);
    }
    while (found) Py_DECREF(given[NODE_GIVEN + --found]);
    PyMem_Free(given);
    return done && !PyErr_Occurred();
}

/* The parts as a tuple of tensors with dtypes of their own, and their arrays; else false. */
static bool join_reads(PyObject *parts, mg_array **arrays, PyObject **handles) {
    for (Py_ssize_t i = 0; i < PyTuple_Size(parts); i++) {
        PyObject *part = PyTuple_GetItem(parts, i), *handle = tensor_is(part) ? tensor_handle(part) : NULL;
        if (!handle) return false;
        Py_INCREF(handle); /* others may replace it meanwhile */
        handles[i] = handle;
        arrays[i] = handle_array(handle);
        if (arrays[i]->weak) return false;
    }
    return true;
}

/* join(row, tensors, dim, stacked): the result; None where Python has to see to it. */
static PyObject *tensor_join(PyObject *unused, PyObject *const *given, Py_ssize_t args) {
    (void)unused;
    bool listed = args == 4 && (PyList_Check(given[1]) || PyTuple_Check(given[1]));
    if (!listed || !PyLong_CheckExact(given[2]) || PyList_Size(tensor_uses[TRACERS])) Py_RETURN_NONE;
    bool stacked = given[3] == Py_True;
    long axis = PyLong_AsLong(given[2]);
    if (axis == -1 && PyErr_Occurred()) {
        PyErr_Clear();
        Py_RETURN_NONE;
    }
    PyObject *parts = PySequence_Tuple(given[1]);
    if (!parts) return NULL;
    Py_ssize_t count = PyTuple_Size(parts);
    PyObject *made = NULL, **handles = PyMem_Calloc((size_t)count + 1, sizeof *handles);
    mg_array **arrays = PyMem_Calloc((size_t)count + 1, sizeof *arrays), *out = NULL;
    if (handles && arrays && count && count <= INT32_MAX && join_reads(parts, arrays, handles)) {
        if (axis < 0) axis += arrays[0]->ndim + stacked;
        Py_BEGIN_ALLOW_THREADS
        if (axis >= 0 && axis <= arrays[0]->ndim)
            out = (stacked ? mg_stack : mg_concatenate)((int)count, arrays, (int)axis);
        Py_END_ALLOW_THREADS
    }
    PyErr_Clear();
    if (out) {
        made = tensor_of(out);
        if (made && !join_record(given[0], parts, arrays, (int)axis, stacked, (tensor *)made))
            Py_CLEAR(made);
    } else {
        made = Py_None;
        Py_INCREF(made);
    }
    for (Py_ssize_t i = 0; handles && i < count; i++) Py_XDECREF(handles[i]);
    PyMem_Free(handles);
    PyMem_Free(arrays);
    Py_DECREF(parts);
    return made;
}
MG_PLANNING_END

#endif
