/* adding.h: gradients added up where they lie, and what arrives in the `grad` of a leaf. */
#ifndef MG_ADDING_H
#define MG_ADDING_H

#include "asked.h"

/* May it be added to where it lies? */
static bool back_sole(PyObject *x) {
    if (!tensor_is(x)) return false;
    PyObject *handle = ((tensor *)x)->fields[TENSOR_HANDLE];
    return handle && Py_TYPE(handle) == handle_array_class && mg_sole_owner(handle_array(handle));
}

/* True if the caller's reference is the only one to the gradient and to its memory: no hook has kept
 * it, and no other edge gets it. */
static bool back_alone(PyObject *g) {
    return Py_REFCNT(g) == 1 && tensor_is(g) && !((tensor *)g)->weak && back_sole(g) &&
           Py_REFCNT(((tensor *)g)->fields[TENSOR_HANDLE]) == 1;
}

/* True if, moreover, no tracer watches, so that the buffer can be reused for the result. */
static bool back_unseen(PyObject *g) {
    return (PyObject *)Py_TYPE(g) == tensor_uses[RESULTS] &&
           ((tensor *)g)->fields[TENSOR_EDGE] == Py_None && back_alone(g) && !back_watched();
}

/* True if a user's write over this gradient is seen nowhere else, or is refused. */
static bool back_writable_alone(PyObject *g) {
    PyObject *handle = tensor_is(g) ? tensor_handle(g) : NULL;
    if (!handle) PyErr_Clear();
    return !handle || back_alone(g) || mg_check_writable(handle_array(handle));
}

/* Have two tensors the same dtype? */
static bool back_same_dtype(PyObject *a, PyObject *b) {
    PyObject *x = tensor_handle(a), *y = x && tensor_is(b) ? tensor_handle(b) : NULL;
    return y && handle_array(x)->dtype == handle_array(y)->dtype;
}

/* Adds a gradient to one that may be added to. */
static bool back_accumulate(PyObject *to, PyObject *g) {
    PyObject *handle = tensor_handle(to), *other = tensor_is(g) ? tensor_handle(g) : NULL;
    bool failed = !handle || !other || back_watched();
    if (!failed) {
        Py_INCREF(handle);
        Py_INCREF(other);
        Py_BEGIN_ALLOW_THREADS
        failed = mg_accumulate(handle_array(handle), handle_array(other));
        Py_END_ALLOW_THREADS
        Py_DECREF(handle);
        Py_DECREF(other);
    }
    if (!failed) return true;
    PyErr_Clear();
    PyObject *done = PyObject_CallMethod(to, "accumulate_", "O", g);
    Py_XDECREF(done);
    return done;
}

/* A contiguous copy that the tape knows nothing of; where there is a place for another one, perhaps
 * that too, as one reading serves both. */
static PyObject *back_copied(PyObject *g, PyObject **spare) {
    PyObject *handle = tensor_handle(g);
    mg_array *made = NULL, *also = NULL;
    if (!handle) return NULL;
    if (!back_watched()) {
        Py_INCREF(handle); /* others may replace it meanwhile */
        Py_BEGIN_ALLOW_THREADS
        made = spare ? mg_copy_twice(handle_array(handle), &also) : mg_copy(handle_array(handle));
        Py_END_ALLOW_THREADS
        Py_DECREF(handle);
    }
    if (also && !(*spare = tensor_of(also))) PyErr_Clear(); /* it is copied when its turn comes */
    return made ? tensor_of(made) : PyObject_CallFunctionObjArgs(tensor_uses[COPIED], g, NULL);
}

static bool back_empty(PyObject *leaf) {
    PyObject *held = tensor_is(leaf) ? ((tensor *)leaf)->fields[TENSOR_GRAD] : leaf;
    return !held || held == Py_None;
}

/* The sum of what a leaf has and a gradient: where that lies, if it may be added to. */
static PyObject *back_sum(PyObject *held, PyObject *g) {
    PyObject *edge = tensor_is(held) ? tensor_parent(held) : NULL, *made = NULL;
    if (edge == Py_None && back_sole(held) && back_same_dtype(held, g) &&
        tensor_handle(held) != tensor_handle(g)) {
        if (back_accumulate(held, g)) Py_INCREF(made = held);
    } else {
        PyErr_Clear();
        made = back_ask("added", held, g);
    }
    Py_XDECREF(edge);
    return made;
}

/* Adds a gradient to a leaf's `grad`, which never shares memory with anything else.
 *
 * Another thread may bring one while this one copies or adds. So who adds takes out what is there, and
 * puts in the sum once there is nothing. */
static bool back_deliver(PyObject *leaf, PyObject *g, bool shared) {
    PyObject **place = &((tensor *)leaf)->fields[TENSOR_GRAD], *held, *made = NULL;
    bool done = true;
    if (back_empty(leaf)) {
        if (shared || !back_sole(g)) made = back_copied(g, NULL);
        else Py_INCREF(made = g);
        done = made;
    }
    while (done && !(made && back_empty(leaf))) {
        held = *place;
        Py_INCREF(*place = Py_None);
        PyObject *sum = back_sum(held, made ? made : g);
        Py_XDECREF(made);
        done = sum;
        made = done ? sum : held; /* which goes back */
        if (done) Py_DECREF(held);
    }
    if (!made) return false;
    held = *place;
    *place = made;
    Py_XDECREF(held);
    return done;
}

#endif
