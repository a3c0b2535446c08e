/* accumulate.c: accumulation of gradients in place, and in the `grad` of a leaf. */
#include "speed.h"

bool accumulate_sole(speed_state *s, PyObject *x) {
    if (!tensor_is(s, x)) return false;
    PyObject *array = ((tensor *)x)->fields[TENSOR_ARRAY];
    return array && array_is(s, array) && s->core->sole_owner(handle_array(array));
}

/* True if no hook has kept the gradient and no other edge gets it. */
bool accumulate_alone(speed_state *s, PyObject *g) {
    return Py_REFCNT(g) == 1 && tensor_is(s, g) && !((tensor *)g)->weak && accumulate_sole(s, g) &&
           Py_REFCNT(((tensor *)g)->fields[TENSOR_ARRAY]) == 1;
}

/* True if, moreover, no tracer is active, so that the buffer can be reused for the result. */
bool accumulate_unseen(speed_state *s, PyObject *g) {
    return (PyObject *)Py_TYPE(g) == s->uses[USE_RESULT] &&
           ((tensor *)g)->fields[TENSOR_EDGE] == Py_None && accumulate_alone(s, g) && !call_watched(s);
}

/* True if a user's write to this gradient is visible nowhere else, or is refused. */
bool accumulate_writable_alone(speed_state *s, PyObject *g) {
    PyObject *array = tensor_is(s, g) ? tensor_array(s, g) : NULL;
    if (!array) PyErr_Clear();
    return !array || accumulate_alone(s, g) || !s->core->writable(handle_array(array)) ||
           s->core->overlaps_itself(handle_array(array));
}

/* True if two tensors have the same dtype. */
static bool accumulate_same_dtype(speed_state *s, PyObject *a, PyObject *b) {
    PyObject *x = tensor_array(s, a), *y = x && tensor_is(s, b) ? tensor_array(s, b) : NULL;
    return y && handle_array(x)->dtype == handle_array(y)->dtype;
}

bool accumulate_into(speed_state *s, PyObject *to, PyObject *g) {
    PyObject *array = tensor_array(s, to), *other = tensor_is(s, g) ? tensor_array(s, g) : NULL;
    bool failed = !array || !other || call_watched(s);
    if (!failed) {
        mg_array *in[] = {handle_array(array), handle_array(other)};
        mg_arrays out;
        Py_INCREF(array);
        Py_INCREF(other);
        void *outer = gil_enter();
        failed = s->core->run(s->kernel_accumulate, 2, in, &(mg_args){NULL}, &out);
        gil_leave(outer);
        Py_DECREF(array);
        Py_DECREF(other);
    }
    if (!failed) return true;
    PyErr_Clear();
    PyObject *done = PyObject_CallMethod(to, "accumulate_", "O", g);
    Py_XDECREF(done);
    return done;
}

/* A contiguous copy that is not on the tape. */
PyObject *accumulate_copied(speed_state *s, PyObject *g) {
    PyObject *array = tensor_array(s, g);
    mg_arrays out;
    if (!array) return NULL;
    if (!call_watched(s)) {
        mg_array *in = handle_array(array);
        Py_INCREF(array); /* another thread may replace it meanwhile */
        void *outer = gil_enter();
        int code = s->core->run(s->kernel_copy, 1, &in, &(mg_args){NULL}, &out);
        gil_leave(outer);
        Py_DECREF(array);
        if (!code) return tensor_of(s, out.made[0]);
    }
    return PyObject_CallFunctionObjArgs(s->uses[USE_COPIED], g, NULL);
}

bool accumulate_leaf_empty(speed_state *s, PyObject *leaf) {
    PyObject *held = tensor_is(s, leaf) ? ((tensor *)leaf)->fields[TENSOR_GRAD] : leaf;
    return !held || held == Py_None;
}

/* The sum of a leaf's `grad` and a gradient, computed in place if the `grad` may be written. */
static PyObject *accumulate_sum(speed_state *s, PyObject *held, PyObject *g) {
    PyObject *edge = tensor_is(s, held) ? tensor_parent(s, held) : NULL, *made = NULL;
    if (edge == Py_None && accumulate_sole(s, held) && accumulate_same_dtype(s, held, g) &&
        tensor_array(s, held) != tensor_array(s, g)) {
        if (accumulate_into(s, held, g)) Py_INCREF(made = held);
    } else {
        PyErr_Clear();
        made = engine_callback(s, "added", held, g, NULL);
    }
    Py_XDECREF(edge);
    return made;
}

/* Another thread may add a gradient while this one copies or adds. This thread therefore takes the
 * leaf's `grad` out, and puts the sum back only once the leaf has none. */
bool accumulate_leaf(speed_state *s, PyObject *leaf, PyObject *g, bool shared) {
    PyObject **place = &((tensor *)leaf)->fields[TENSOR_GRAD], *held, *made = NULL;
    bool done = true;
    if (accumulate_leaf_empty(s, leaf)) {
        if (shared || !accumulate_sole(s, g)) made = accumulate_copied(s, g);
        else Py_INCREF(made = g);
        done = made;
    }
    while (done && !(made && accumulate_leaf_empty(s, leaf))) {
        held = *place;
        Py_INCREF(*place = Py_None);
        PyObject *sum = accumulate_sum(s, held, made ? made : g);
        Py_XDECREF(made);
        done = sum;
        made = done ? sum : held; /* after an error the old `grad` goes back */
        if (done) Py_DECREF(held);
    }
    if (!made) return false;
    held = *place;
    *place = made;
    Py_XDECREF(held);
    return done;
}
