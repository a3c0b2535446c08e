/* flow.h: what flows from a node to its parents, a gradient for each edge. */
#ifndef MG_FLOW_H
#define MG_FLOW_H

#include "operation.h"

typedef struct {
    Py_ssize_t count;
    struct flow_edge {
        PyObject *parent, *g; /* NULL where none is wanted, or none comes */
    } *edges, few[OPERANDS];  /* hardly a node has more parents */
} flow;

/* Makes room for so many. */
static bool flow_open(flow *all, Py_ssize_t count) {
    size_t bytes = (size_t)count * sizeof *all->edges;
    struct flow_edge *edges = count <= OPERANDS ? all->few : PyMem_Malloc(bytes);
    if (!edges) return PyErr_NoMemory();
    for (Py_ssize_t i = 0; i < count; i++) edges[i] = (struct flow_edge){NULL, NULL};
    all->edges = edges;
    all->count = count;
    return true;
}

static void flow_close(flow *all) {
    for (Py_ssize_t i = 0; i < all->count; i++) {
        Py_XDECREF(all->edges[i].parent);
        Py_XDECREF(all->edges[i].g);
    }
    if (all->count > OPERANDS) PyMem_Free(all->edges);
    all->count = 0;
}

/* NULL for None, else one of our own. */
static PyObject *flow_some(PyObject *x) {
    if (x == Py_None) return NULL;
    Py_INCREF(x);
    return x;
}

/* What Python has as a sequence, one for each edge; parents where there is nothing yet. */
static bool flow_take(flow *all, PyObject *given, bool parents) {
    PyObject *each = given ? PySequence_Tuple(given) : NULL;
    Py_ssize_t count = each ? PyTuple_Size(each) : 0;
    bool done = each && (!parents || flow_open(all, count));
    for (Py_ssize_t i = 0; done && i < count && i < all->count; i++) {
        struct flow_edge *one = &all->edges[i];
        *(parents ? &one->parent : &one->g) = flow_some(PyTuple_GetItem(each, i));
    }
    Py_XDECREF(each);
    return done;
}

#endif
