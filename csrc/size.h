/* size.h: the class of shapes, a tuple whose slices and sums are shapes too. */
#ifndef MG_SIZE_H
#define MG_SIZE_H

#include "handle.h"

static PyTypeObject *size_class;

/* The items of a tuple, which is taken over, as a shape. */
static PyObject *size_of_tuple(PyObject *items) {
    Py_ssize_t count = items ? PyTuple_Size(items) : 0;
    PyObject *made = items ? PyType_GenericAlloc(size_class, count) : NULL;
    for (Py_ssize_t i = 0; made && i < count; i++) {
        PyObject *item = PyTuple_GetItem(items, i);
        Py_INCREF(item);
        if (PyTuple_SetItem(made, i, item)) Py_CLEAR(made);
    }
    Py_XDECREF(items);
    return made;
}

/* The shape of an array. */
static PyObject *size_of_array(const mg_array *array) {
    PyObject *made = PyType_GenericAlloc(size_class, array->ndim);
    for (int d = 0; made && d < array->ndim; d++) {
        PyObject *value = PyLong_FromLongLong(array->shape[d]);
        if (!value || PyTuple_SetItem(made, d, value)) Py_CLEAR(made);
    }
    return made;
}

/* Apply the method of tuple to the items and an operand; the result is a shape. */
static PyObject *size_as_tuple(PyObject *self, binaryfunc run, PyObject *operand) {
    PyObject *items = PyTuple_GetSlice(self, 0, PyTuple_Size(self));
    PyObject *made = items ? run(items, operand) : NULL;
    Py_XDECREF(items);
    return size_of_tuple(made);
}

static PyObject *size_item(PyObject *self, PyObject *index) {
    if (PySlice_Check(index)) return size_as_tuple(self, PyObject_GetItem, index);
    Py_ssize_t at = PyNumber_AsSsize_t(index, PyExc_IndexError);
    if (at == -1 && PyErr_Occurred()) return NULL;
    PyObject *item = PyTuple_GetItem(self, at < 0 ? at + PyTuple_Size(self) : at);
    Py_XINCREF(item);
    return item;
}

static PyObject *size_joined(PyObject *self, PyObject *other) {
    return size_as_tuple(self, PySequence_Concat, other);
}

static PyObject *size_numel(PyObject *self, PyObject *unused) {
    (void)unused;
    PyObject *product = PyLong_FromLong(1);
    for (Py_ssize_t i = 0; product && i < PyTuple_Size(self); i++) {
        PyObject *before = product;
        product = PyNumber_Multiply(before, PyTuple_GetItem(self, i));
        Py_DECREF(before);
    }
    return product;
}

static PyMethodDef size_methods[] = {
    {"numel", size_numel, METH_NOARGS, "numel()\n--\n\nThe number of elements of such a shape."},
    {NULL, NULL, 0, NULL},
};
static PyType_Slot size_slots[] = {
    {Py_tp_doc, "A shape: a tuple of the size of each dimension, with numel().\n\n"
                ">>> import minigrad as mg\n"
                ">>> mg.zeros(2, 3, 4).shape[1:].numel()\n"
                "12\n"},
    {Py_tp_base, &PyTuple_Type},
    {Py_tp_methods, size_methods},
    {Py_mp_subscript, (void *)size_item},
    {Py_sq_concat, (void *)size_joined},
    {0, NULL},
};
static PyType_Spec size_spec = {"minigrad.Size", 0, 0, Py_TPFLAGS_DEFAULT, size_slots};

static bool size_make_class(void) {
    size_class = (PyTypeObject *)PyType_FromSpec(&size_spec);
    return size_class;
}

#endif
