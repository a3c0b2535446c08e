/* rule.h: rules that are one call of a kernel, or of a function of Python's: what a node of such an
 * operation makes of its gradient. */
#ifndef MG_RULE_H
#define MG_RULE_H

#include "adding.h"
#include "view.h"

typedef struct {
    PyObject *kernel, *slopes; /* as in a holder */
    int number, arity, pointwise;
    PyObject *slope[OPERANDS]; /* for each input None where the kernel computes its gradient; True
                                * where that is the upstream one itself; else a function of that */
} rule;

/* In place of a kernel's number, where Python has a function of the gradient and the node's arguments:
 * that is all; or it is the way back of a sum; or, with the number of multiplication, of a mean. */
enum { RULE_ASKED = -2, RULE_OF_SUM = -1 };

static bool rule_linear(const rule *rule) { return rule->arity == 1 && !rule->pointwise; }

/* The gradient of a sum or mean at every element that was reduced; NULL if it failed. */
static mg_array *rule_spread(const rule *rule, mg_array *g, PyObject *args) {
    int64_t shape[MG_MAX_NDIM], numbers[MG_MAX_NDIM];
    int32_t axes[MG_MAX_NDIM];
    double elements = 1;
    if (PyTuple_Size(args) < 2) return NULL;
    int ndim = single_numbers(PyTuple_GetItem(args, 0), shape);
    int count = single_numbers(PyTuple_GetItem(args, 1), numbers);
    if (ndim < 0 || count < 0) return NULL;
    for (int i = 0; i < count; i++) {
        axes[i] = (int32_t)numbers[i];
        if (numbers[i] >= 0 && numbers[i] < ndim) elements *= (double)shape[numbers[i]];
    }
    if (rule->number == RULE_OF_SUM) return mg_view_spread(g, ndim, shape, count, axes);
    mg_array *share = mg_weak_float(1 / (elements ? elements : 1));
    mg_array *scaled = share ? mg_binary(rule->number, g, share) : NULL;
    mg_array *made = scaled ? mg_view_spread(scaled, ndim, shape, count, axes) : NULL;
    mg_release(share);
    mg_release(scaled);
    return made;
}

/* Of a linear operation; by Python's function where it is not a sum or mean, failed or is watched. */
static PyObject *rule_transposed(const rule *rule, PyObject *g, PyObject *args) {
    mg_array *made = NULL;
    Py_INCREF(g); /* others may replace them meanwhile */
    Py_INCREF(args);
    if (rule->number != RULE_ASKED && !back_watched()) {
        Py_BEGIN_ALLOW_THREADS
        made = rule_spread(rule, handle_array(g), args);
        Py_END_ALLOW_THREADS
        PyErr_Clear();
    }
    PyObject *handle = made ? handle_around(made) : single_ask(rule->kernel, g, args);
    Py_DECREF(g);
    Py_DECREF(args);
    return handle;
}

/* The kernel's results for the inputs in `wanted`, one of them g itself if that may be written `over`;
 * false if it failed. */
static bool rule_kernel(const rule *rule, int wanted, mg_array *g, bool over, mg_saved *saved,
                        mg_array *made[OPERANDS]) {
    if (rule->pointwise && rule->arity == 1) {
        made[0] = (over ? mg_unary_vjp_over : mg_unary_vjp)(rule->number, g, saved);
        return made[0];
    }
    mg_arrays *all = !rule->pointwise ? mg_bilinear_vjp(rule->number, wanted, g, saved)
                     : over           ? mg_binary_vjp_over(rule->number, wanted, g, saved)
                                      : mg_binary_vjp(rule->number, wanted, g, saved);
    for (int i = 0; all && i < rule->arity; i++) made[i] = all->made[i];
    return all;
}

/* A failure is raised, and who watches is told. */
static bool rule_settle(const rule *rule, int wanted, PyObject *g, PyObject *saved, PyObject *made) {
    PyObject *args = rule->pointwise && rule->arity == 1
                         ? Py_BuildValue("(iOO)", rule->number, g, saved)
                         : Py_BuildValue("(iiOO)", rule->number, wanted, g, saved);
    PyObject *done =
        args ? PyObject_CallFunctionObjArgs(tensor_uses[SETTLE], made, rule->kernel, args, NULL) : NULL;
    Py_XDECREF(args);
    Py_XDECREF(done);
    return done;
}

/* Calls the kernel for the inputs in `wanted`, and makes handles of its results; of g overwritten it is
 * the handle that there is. */
static bool rule_call(const rule *rule, int wanted, PyObject *g, bool over, PyObject *saved,
                      PyObject *handles[OPERANDS]) {
    mg_array *made[OPERANDS] = {NULL};
    bool settled, none = Py_TYPE(saved) != handle_saved_class;
    Py_INCREF(g); /* others may replace them meanwhile */
    Py_INCREF(saved);
    Py_BEGIN_ALLOW_THREADS
    mg_saved *kept = none ? NULL : ((handle *)saved)->held;
    settled = rule_kernel(rule, wanted, handle_array(g), over, kept, made);
    Py_END_ALLOW_THREADS
    bool failed = !settled;
    for (int i = 0; !failed && i < rule->arity; i++) {
        if (!made[i]) continue; /* none is wanted */
        if (made[i] == handle_array(g)) Py_INCREF(handles[i] = g);
        else handles[i] = handle_around(made[i]);
        if (!handles[i]) settled = false;
    }
    if (failed || (settled && back_watched())) {
        PyObject *results = failed ? Py_None : rule->arity == 1 ? handles[0] : NULL;
        Py_XINCREF(results);
        if (!results) {
            PyObject *each[OPERANDS] = {NULL};
            for (int i = 0; i < rule->arity; i++) each[i] = handles[i] ? handles[i] : Py_None;
            results = PyTuple_Pack(rule->arity, each[0], each[1], each[2]);
        }
        settled = results && rule_settle(rule, wanted, g, saved, results) && !failed;
        Py_XDECREF(results);
    }
    Py_DECREF(g);
    Py_DECREF(saved);
    return settled;
}

/* The gradients of a node's inputs, NULL where none is wanted; none of them, and false, where that
 * failed. *over: may the first of them take the place of g, and does it? */
static bool rule_run(const rule *rule, node *of, PyObject *g, bool *over, PyObject *made[OPERANDS]) {
    PyObject *saved = of->fields[NODE_SAVED], *args = of->fields[NODE_ARGS];
    PyObject *handle = tensor_handle(g);
    if (!handle) return false;
    bool whole = Py_SIZE(of) == rule->arity && saved && args && PyTuple_Check(args);
    int wanted = 0, computed = 0;
    for (int i = 0; whole && i < rule->arity; i++) {
        if (of->parents[i] == Py_None) continue;
        wanted |= 1 << i;
        if (rule->slope[i] == Py_None) computed |= 1 << i;
    }
    if (!whole || (computed && rule->pointwise && Py_TYPE(saved) != handle_saved_class)) {
        back_raise("freed_error", (PyObject *)of, NULL); /* by another thread, meanwhile */
        return false;
    }
    *over = *over && rule->pointwise && computed && computed == wanted && back_unseen(g);
    PyObject *handles[OPERANDS] = {NULL};
    bool done = !computed;
    if (!done && rule_linear(rule)) {
        handles[0] = rule_transposed(rule, handle, args);
        done = handles[0];
    } else if (!done) {
        done = rule_call(rule, computed, handle, *over, saved, handles);
    }
    for (int i = 0; i < rule->arity; i++) {
        PyObject *slope = rule->slope[i];
        made[i] = NULL;
        if (!done) Py_XDECREF(handles[i]);
        else if (!(wanted >> i & 1)) continue;
        else if (handles[i] == handle) {
            Py_DECREF(handle);
            Py_INCREF(made[i] = g);
        } else if (slope == Py_None) made[i] = tensor_around(handles[i], Py_None, Py_None);
        else if (slope == Py_True) Py_INCREF(made[i] = g);
        else made[i] = PyObject_CallFunctionObjArgs(slope, g, NULL);
        done = done && made[i];
    }
    for (int i = 0; !done && i < rule->arity; i++) Py_CLEAR(made[i]);
    return done;
}

/* The same for Python: (node, gradient) -> a tuple, with None where none is wanted. */
static PyObject *rule_called(PyObject *capsule, PyObject *const *given, Py_ssize_t count) {
    const rule *rule = PyCapsule_GetPointer(capsule, NULL);
    PyObject *each[OPERANDS];
    bool over = false; /* it is the caller's */
    if (count != 2 || !node_is(given[0]) || !tensor_is(given[1]))
        return PyErr_Format(PyExc_TypeError, "a rule takes a node and its gradient");
    if (!rule_run(rule, (node *)given[0], given[1], &over, each)) return NULL;
    PyObject *made = PyTuple_New(rule->arity);
    for (int i = 0; i < rule->arity; i++) {
        if (!each[i]) Py_INCREF(each[i] = Py_None);
        if (made) PyTuple_SetItem(made, i, each[i]);
        else Py_DECREF(each[i]);
    }
    return made;
}

static PyMethodDef rule_method = METHOD("rule", rule_called, METH_FASTCALL);

/* rule(kernel, number, pointwise, slopes); of a linear operation Python's function, RULE_.., .. */
static PyObject *rule_new(PyObject *unused, PyObject *args) {
    (void)unused;
    rule *made = PyMem_Malloc(sizeof *made);
    if (!made) return PyErr_NoMemory();
    if (!PyArg_ParseTuple(args, "OiiO", &made->kernel, &made->number, &made->pointwise,
                          &made->slopes)) {
        PyMem_Free(made);
        return NULL;
    }
    made->arity = (int)PyTuple_Size(made->slopes);
    for (int i = 0; i < made->arity; i++) made->slope[i] = PyTuple_GetItem(made->slopes, i);
    return holder_function(&rule_method, made);
}

#endif
