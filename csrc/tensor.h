/* tensor.h: what Tensor is made of: an array's handle and its place on the tape. */
#ifndef MG_TENSOR_H
#define MG_TENSOR_H

#include "handle.h"
#include "node.h"
#include "size.h"

enum {
    TENSOR_HANDLE,
    TENSOR_EDGE,
    TENSOR_SHAPE,
    TENSOR_GRAD,
    TENSOR_ALIAS,
    TENSOR_VIEWS,
    TENSOR_HOOKS, /* of a leaf; a result's are its node's */
    TENSOR_DICT,  /* attributes that users set: a dict once there is one */
    TENSOR_FIELDS,
};

typedef struct {
    PyObject_HEAD
    PyObject *weak;
    PyObject *fields[TENSOR_FIELDS];
} tensor;

static PyTypeObject *tensor_class;

/* What C has from Python, in the order in which `use` is given it. */
enum {
    RESULTS, /* the class of results */
    LAGGING, /* the class of views whose edge has to be asked for */
    SETTLE,  /* a function: what is left to do after a call that failed, or that somebody watches */
    TRACERS, /* a list: those who watch */
    ENABLED, /* a function: is anything recorded in this thread? */
    PAUSES,  /* a list: the scopes, of any thread, in which nothing is; while it is empty all is */
    INTS,    /* a dict: the tensors of Python's integers in recent use */
    FLOATS,  /* and of its floats */
    COPIED,  /* a function: a contiguous copy without a history */
    PART,    /* the class of gradients of slices */
    VIEWS,   /* the class of what knows a tensor's views */
    ROW,     /* the class of rows of the op table */
    ADD,     /* a pair: the operation, and a function for operands that are no tensors; so .. */
    SUB, /* .. for each operator */
    MUL,
    DIV,
    POW,
    USES,
};
static PyObject *tensor_uses[USES];

static bool tensor_is(PyObject *x) {
    return (PyObject *)Py_TYPE(x) == tensor_uses[RESULTS] || PyObject_TypeCheck(x, tensor_class);
}

/* Borrowed; AttributeError where it has none. */
static PyObject *tensor_handle(PyObject *x) {
    PyObject *handle = ((tensor *)x)->fields[TENSOR_HANDLE];
    if (handle && Py_TYPE(handle) == handle_array_class) return handle;
    PyErr_SetString(PyExc_AttributeError, "a tensor that holds no array has no attribute '_h'");
    return NULL;
}

/* ---- the class ---- */

static int tensor_traverse(PyObject *self, visitproc visit, void *arg) {
    Py_VISIT(Py_TYPE(self));
    for (int i = 0; i < TENSOR_FIELDS; i++) Py_VISIT(((tensor *)self)->fields[i]);
    return 0;
}

static int tensor_clear(PyObject *self) {
    for (int i = 0; i < TENSOR_FIELDS; i++) Py_CLEAR(((tensor *)self)->fields[i]);
    return 0;
}

static void tensor_free(PyObject *self) {
    PyTypeObject *class = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    if (((tensor *)self)->weak) PyObject_ClearWeakRefs(self);
    tensor_clear(self);
    PyObject_GC_Del(self);
    Py_DECREF(class);
}

/* Takes over the handle, which may be NULL. */
static PyObject *tensor_around(PyObject *handle, PyObject *edge, PyObject *shape) {
    PyTypeObject *class = (PyTypeObject *)tensor_uses[RESULTS];
    tensor *made = handle ? (tensor *)PyType_GenericAlloc(class, 0) : NULL;
    if (!made) {
        Py_XDECREF(handle);
        return NULL;
    }
    PyObject *fields[] = {handle, edge, shape, Py_None};
    for (int i = 0; i < 4; i++) {
        if (i) Py_INCREF(fields[i]);
        made->fields[i] = fields[i];
    }
    return (PyObject *)made;
}

/* A new array, which is taken over, as a tensor that the tape knows nothing of. */
static PyObject *tensor_of(mg_array *made) {
    return tensor_around(handle_around(made), Py_None, Py_None);
}

static PyObject *tensor_wrap(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    (void)self;
    if (count != 1 && count != 2)
        return PyErr_Format(PyExc_TypeError, "wrap(handle, edge=None)");
    Py_INCREF(given[0]);
    return tensor_around(given[0], count == 2 ? given[1] : Py_None, Py_None);
}

static PyObject *tensor_shape(PyObject *self, void *unused) {
    (void)unused;
    PyObject **fields = ((tensor *)self)->fields, *shape = fields[TENSOR_SHAPE];
    if (!shape || shape == Py_None) {
        PyObject *handle = tensor_handle(self);
        if (!handle) return NULL;
        Py_INCREF(handle); /* a tuple may be what garbage is collected for, and others run then */
        PyObject *made = size_of_array(handle_array(handle));
        Py_DECREF(handle);
        if (!made) return NULL;
        shape = fields[TENSOR_SHAPE];
        fields[TENSOR_SHAPE] = made;
        Py_XDECREF(shape);
        shape = made;
    }
    Py_INCREF(shape);
    return shape;
}

/* Gives a result its place on the tape: a node of these fields and parents, `count` in all. */
static bool tensor_record(tensor *made, PyObject *const *given, Py_ssize_t count) {
    PyObject *node = node_record(node_class, given, count);
    if (!node) return false;
    Py_DECREF(made->fields[TENSOR_EDGE]); /* None: it is new */
    made->fields[TENSOR_EDGE] = node;
    return true;
}

/* What a node has for this input: None, a node, or the leaf. */
static PyObject *tensor_parent(PyObject *x) {
    PyObject *edge = ((tensor *)x)->fields[TENSOR_EDGE];
    if ((PyObject *)Py_TYPE(x) == tensor_uses[LAGGING]) edge = PyObject_GetAttrString(x, "_edge");
    else if (edge) Py_INCREF(edge);
    else PyErr_SetString(PyExc_AttributeError, "a tensor made of nothing has no attribute '_edge'");
    if (edge != Py_True) return edge;
    Py_DECREF(edge);
    Py_INCREF(x);
    return x;
}

#endif
