/* vjp.c: vector-Jacobian products that are a single call of a kernel or of a Python function. */
#include "speed.h"

typedef enum { RULE_LINEAR, RULE_UNARY, RULE_SEVERAL } rule_kind;

typedef struct {
    /* Python function of the gradient's array and the node's arguments; the partials */
    holder held;
    int kind, arity; /* a rule_kind; number of inputs */
    /* number of the operation to run; -1 for a linear operation that calls the Python function */
    int kernel;
    int over;        /* number of the same operation that writes over the gradient; -1 for none */
    /* How each input gets its gradient. None: the kernel computes it. True: it is the upstream
     * gradient itself. Else: a function of the upstream gradient. */
    PyObject *partial[OPERANDS];
} rule;

/* The VJP of a linear operation: calls the kernel, or the Python function, with the gradient and
 * the node's arguments. */
static PyObject *rule_transposed(const rule *rule, PyObject *g, PyObject *args) {
    speed_state *s = rule->held.s;
    enum { FEW = 8 };
    PyObject *all[FEW], *made = NULL;
    Py_ssize_t count = PyTuple_Size(args) + 1;
    if (rule->kernel < 0 || count > FEW || call_watched(s)) {
        PyObject *given = PyTuple_New(count);
        for (Py_ssize_t i = 0; given && i < count; i++) {
            PyObject *one = i ? PyTuple_GetItem(args, i - 1) : g;
            Py_INCREF(one);
            PyTuple_SetItem(given, i, one);
        }
        made = given ? PyObject_Call(rule->held.first, given, NULL) : NULL;
        Py_XDECREF(given);
        return made;
    }
    /* The kernel takes as many of the arguments as its signature has. */
    Py_ssize_t taken = s->signatures[rule->kernel].count;
    if (taken < count) count = taken;
    Py_INCREF(g); /* another thread may replace them meanwhile */
    Py_INCREF(args);
    for (Py_ssize_t i = 0; i < count; i++) all[i] = i ? PyTuple_GetItem(args, i - 1) : g;
    request r;
    mg_arrays out;
    if (request_read(s, &r, rule->kernel, all, count)) {
        if (request_run(s, &r, rule->kernel, &out)) call_check(s, true, rule->kernel, all, count, Py_None);
        else made = array_object(s, out.made[0]);
    }
    request_free(&r);
    Py_DECREF(g);
    Py_DECREF(args);
    return made;
}

/* Raises the error of a failed call, or reports a call to the tracers. */
static bool rule_check(const rule *rule, bool failed, int needs_grad, PyObject *g, PyObject *saved,
                       PyObject *made) {
    PyObject *bits = PyLong_FromLong(needs_grad), *args[] = {bits, g, saved};
    bool unary = rule->kind == RULE_UNARY, done = false;
    if (bits) done = call_check(rule->held.s, failed, rule->kernel, args + unary, 3 - unary, made);
    Py_XDECREF(bits);
    return done;
}

/* Runs the kernel for the inputs in `needs_grad` and wraps its results. If `over`, one of the
 * results is g's own array. */
static bool rule_call(const rule *rule, int needs_grad, PyObject *g, bool over, PyObject *saved,
                      PyObject *arrays[OPERANDS]) {
    speed_state *s = rule->held.s;
    mg_array *in = handle_array(g);
    mg_arrays out = {.count = 0};
    mg_args args = {.ints = (int64_t[]){needs_grad}};
    Py_INCREF(g); /* another thread may replace them meanwhile */
    Py_INCREF(saved);
    if (saved_is(s, saved)) args.saved = handle_saved(saved);
    void *outer = gil_enter();
    bool failed = s->core->run(over ? rule->over : rule->kernel, 1, &in, &args, &out);
    gil_leave(outer);
    bool done = !failed;
    for (int i = 0; !failed && i < rule->arity && i < out.count; i++) {
        if (!out.made[i]) continue; /* not needed */
        if (out.made[i] == in) Py_INCREF(arrays[i] = g);
        else arrays[i] = array_object(s, out.made[i]);
        if (!arrays[i]) done = false;
    }
    if (failed) rule_check(rule, true, needs_grad, g, saved, Py_None);
    else if (done && call_watched(s)) {
        PyObject *each[OPERANDS] = {NULL}, *results;
        for (int i = 0; i < rule->arity; i++) each[i] = arrays[i] ? arrays[i] : Py_None;
        results = rule->arity == 1 ? Py_NewRef(each[0])
                                   : PyTuple_Pack(rule->arity, each[0], each[1], each[2]);
        done = results && rule_check(rule, false, needs_grad, g, saved, results);
        Py_XDECREF(results);
    }
    Py_DECREF(g);
    Py_DECREF(saved);
    return done;
}

bool vjp_run(const void *given, node *of, PyObject *g, bool *over, PyObject *made[OPERANDS]) {
    const rule *rule = given;
    speed_state *s = rule->held.s;
    PyObject *saved = of->fields[NODE_SAVED], *args = of->fields[NODE_ARGS];
    PyObject *array = tensor_array(s, g);
    if (!array) return false;
    bool whole = Py_SIZE(of) == rule->arity && saved && args && PyTuple_Check(args);
    int needs_grad = 0, computed = 0;
    for (int i = 0; whole && i < rule->arity; i++) {
        if (of->parents[i] == Py_None) continue;
        needs_grad |= 1 << i;
        if (rule->partial[i] == Py_None) computed |= 1 << i;
    }
    bool pointwise = rule->over >= 0;
    if (!whole || (computed && pointwise && !saved_is(s, saved))) {
        /* another thread freed the node meanwhile */
        engine_raise(s, "freed_error", (PyObject *)of, NULL);
        return false;
    }
    *over = *over && pointwise && computed && computed == needs_grad && accumulate_unseen(s, g);
    PyObject *arrays[OPERANDS] = {NULL};
    bool done = !computed;
    if (!done && rule->kind == RULE_LINEAR) {
        arrays[0] = rule_transposed(rule, array, args);
        done = arrays[0];
    } else if (!done) {
        done = rule_call(rule, computed, array, *over, saved, arrays);
    }
    for (int i = 0; i < rule->arity; i++) {
        PyObject *partial = rule->partial[i];
        made[i] = NULL;
        if (!done) Py_XDECREF(arrays[i]);
        else if (!(needs_grad >> i & 1)) continue;
        else if (arrays[i] == array) {
            Py_DECREF(array);
            Py_INCREF(made[i] = g);
        } else if (partial == Py_None) made[i] = tensor_around(s, arrays[i], Py_None, Py_None);
        else if (partial == Py_True) Py_INCREF(made[i] = g);
        else made[i] = PyObject_CallFunctionObjArgs(partial, g, NULL);
        done = done && made[i];
    }
    for (int i = 0; !done && i < rule->arity; i++) Py_CLEAR(made[i]);
    return done;
}

int vjp_arity(const void *given) { return ((const rule *)given)->arity; }

/* The rule as a Python function: (node, gradient) -> tuple of gradients, None if not needed. */
static PyObject *rule_called(PyObject *capsule, PyObject *const *given, Py_ssize_t count) {
    const rule *rule = PyCapsule_GetPointer(capsule, NULL);
    PyObject *each[OPERANDS];
    bool over = false; /* the gradient belongs to the caller */
    if (count != 2 || !node_is(rule->held.s, given[0]) || !tensor_is(rule->held.s, given[1]))
        return PyErr_Format(PyExc_TypeError, "a rule takes a node and its gradient");
    if (!vjp_run(rule, (node *)given[0], given[1], &over, each)) return NULL;
    PyObject *made = PyTuple_New(rule->arity);
    for (int i = 0; i < rule->arity; i++) {
        if (!each[i]) Py_INCREF(each[i] = Py_None);
        if (made) PyTuple_SetItem(made, i, each[i]);
        else Py_DECREF(each[i]);
    }
    return made;
}

static PyMethodDef rule_method = METHOD("rule", rule_called, METH_FASTCALL);

void *vjp_found(PyObject *function) {
    bool ours = PyCFunction_Check(function) && PyCFunction_GetFunction(function) == rule_method.ml_meth;
    return ours ? PyCapsule_GetPointer(PyCFunction_GetSelf(function), NULL) : NULL;
}

/* rule(function, partials, kind, kernel, over) */
PyObject *vjp_rule(PyObject *module, PyObject *args) {
    rule *made = PyMem_Malloc(sizeof *made);
    if (!made) return PyErr_NoMemory();
    if (!PyArg_ParseTuple(args, "OO!iii", &made->held.first, &PyTuple_Type, &made->held.second, &made->kind,
                          &made->kernel, &made->over)) {
        PyMem_Free(made);
        return NULL;
    }
    made->arity = (int)PyTuple_Size(made->held.second);
    for (int i = 0; i < made->arity && i < OPERANDS; i++)
        made->partial[i] = PyTuple_GetItem(made->held.second, i);
    return holder_function(&rule_method, &made->held, module);
}
