/* asked.h: what a run back asks of Python: the functions of backprop.py, by name. */
#ifndef MG_ASKED_H
#define MG_ASKED_H

#include "tensor.h"

/* Calls a function of backprop.py. Arguments that are NULL are none. */
static PyObject *back_ask_of(const char *name, PyObject *a, PyObject *b, PyObject *c) {
    static PyObject *module; /* loaded only when something runs back */
    if (!module) module = PyImport_ImportModule("minigrad.backprop");
    PyObject *function = module ? PyObject_GetAttrString(module, name) : NULL;
    PyObject *made = function ? PyObject_CallFunctionObjArgs(function, a, b, c, NULL) : NULL;
    Py_XDECREF(function);
    return made;
}

static PyObject *back_ask(const char *name, PyObject *a, PyObject *b) {
    return back_ask_of(name, a, b, NULL);
}

/* Raises an error that a function of backprop.py makes of these. */
static void back_raise(const char *name, PyObject *a, PyObject *b) {
    PyObject *error = back_ask(name, a, b);
    if (error) PyErr_SetObject((PyObject *)Py_TYPE(error), error);
    Py_XDECREF(error);
}

static bool back_watched(void) { return PyList_Size(tensor_uses[TRACERS]); }

#endif
