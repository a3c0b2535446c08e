/* apply.c: applies a row of the op table: runs its kernel or its forward in Python, and records a
 * node. */
#include "speed.h"

#include <string.h>

/* ---- functions made at run time ---- */

static void holder_free(PyObject *capsule) {
    holder *self = PyCapsule_GetPointer(capsule, NULL);
    Py_DECREF(self->module);
    Py_DECREF(self->first);
    Py_DECREF(self->second);
    PyMem_Free(self);
}

PyObject *holder_function(PyMethodDef *method, holder *made, PyObject *module) {
    PyObject *capsule = PyCapsule_New(made, NULL, holder_free);
    if (!capsule) {
        PyMem_Free(made);
        return NULL;
    }
    Py_INCREF(made->module = module);
    Py_INCREF(made->first);
    Py_INCREF(made->second);
    made->s = state_of(module);
    PyObject *run = PyCFunction_NewEx(method, capsule, NULL);
    Py_DECREF(capsule);
    return run;
}

/* ---- operations ---- */

/* Calling conventions of an operation's function. */
typedef enum { TAKES_INPUTS, TAKES_ONE_AND_ARGS, TAKES_LIST_AND_ARGS } apply_style;

typedef struct {
    holder held;  /* the row, and its forward: a function of arrays and arguments, or None */
    int kernel;   /* number of the operation that is run; -1 for none */
    int style;    /* an apply_style */
    int arity;    /* -1 for any number of inputs; then nothing is saved */
    int fits;     /* number of a question that must be answered with yes first; -1 for none */
    int elementwise, differentiable, wants_shape;
    int reduces;  /* reduces all axes, if it is called with inputs alone */
    int moves;    /* takes storage dtypes without a cast, from the second input on */
    /* For each set of inputs that need gradients, the three arrays to save, as numbers. A number
     * below the count of inputs is an input, the count itself is the result, and all above are
     * none. */
    char saved[];
} operation;

/* One call of an operation. */
typedef struct {
    const operation *op;
    speed_state *s;
    PyObject *const *inputs; /* tensors */
    int n;
    PyObject *args;   /* other arguments: a tuple, or NULL */
    PyObject **arrays, *few[OPERANDS]; /* the arrays of the inputs before the call */
    /* the shapes of the inputs before the call; NULL if unknown */
    PyObject *shapes[OPERANDS];
    PyObject *result;                  /* the array of the result */
} application;

static const int64_t all_axes[] = {-1, 0};

/* Reads the arrays of the inputs. False if an input is no tensor, or with an error set if it has no
 * array. */
static bool apply_inputs(application *a) {
    for (int i = 0; i < a->n; i++) {
        if (!tensor_is(a->s, a->inputs[i])) return false;
        PyObject *array = tensor_array(a->s, a->inputs[i]);
        if (!array) return false;
        Py_INCREF(array); /* another thread may replace it meanwhile */
        a->arrays[i] = array;
        if (i < OPERANDS) {
            a->shapes[i] = ((tensor *)a->inputs[i])->fields[TENSOR_SHAPE];
            Py_XINCREF(a->shapes[i]);
        }
    }
    return true;
}

static void apply_free(application *a) {
    for (int i = 0; i < a->n; i++) {
        Py_XDECREF(a->arrays[i]);
        if (i < OPERANDS) Py_XDECREF(a->shapes[i]);
    }
    if (a->arrays != a->few) PyMem_Free(a->arrays);
    Py_XDECREF(a->result);
}

/* The arrays and the other arguments as one tuple. */
static PyObject *apply_all(const application *a) {
    Py_ssize_t more = a->args ? PyTuple_Size(a->args) : 0;
    PyObject *all = PyTuple_New(a->n + more);
    for (Py_ssize_t i = 0; all && i < a->n + more; i++) {
        PyObject *one = i < a->n ? a->arrays[i] : PyTuple_GetItem(a->args, i - a->n);
        Py_INCREF(one);
        PyTuple_SetItem(all, i, one);
    }
    return all;
}

/* Raises the error of a failed call, or reports a call to the tracers. */
static bool apply_check(const application *a, bool failed, PyObject *made) {
    PyObject *all = apply_all(a);
    PyObject *done = all ? PyObject_CallFunction(a->s->uses[USE_CHECK_RESULT], "OiOO",
                                                 failed ? Py_True : Py_False, a->op->kernel, all, made)
                         : NULL;
    Py_XDECREF(all);
    Py_XDECREF(done);
    return done;
}

/* Runs the kernel on the arrays alone. False with an error set. */
static bool apply_kernel(application *a) {
    mg_array *in[OPERANDS] = {NULL};
    mg_arrays out;
    mg_args args = {.ints = all_axes};
    for (int i = 0; i < a->n; i++) in[i] = handle_array(a->arrays[i]);
    void *outer = gil_enter();
    int code = a->s->core->run(a->op->kernel, a->n, in, &args, &out);
    gil_leave(outer);
    if (code) {
        apply_check(a, true, Py_None);
        return false;
    }
    a->result = array_object(a->s, out.made[0]);
    return a->result && (!call_watched(a->s) || apply_check(a, false, a->result));
}

/* Runs the kernel with other arguments. False with an error set. */
static bool apply_kernel_with_args(application *a) {
    enum { FEW = 8 };
    PyObject *all[FEW];
    Py_ssize_t more = a->args ? PyTuple_Size(a->args) : 0, count = a->n + more;
    if (count > FEW) {
        PyErr_SetString(PyExc_TypeError, "too many arguments of a kernel");
        return false;
    }
    for (Py_ssize_t i = 0; i < count; i++)
        all[i] = i < a->n ? a->arrays[i] : PyTuple_GetItem(a->args, i - a->n);
    request r;
    mg_arrays out;
    bool done = request_read(a->s, &r, a->op->kernel, all, count);
    if (done) {
        int code = request_run(a->s, &r, a->op->kernel, &out);
        if (code) apply_check(a, true, Py_None);
        else a->result = array_object(a->s, out.made[0]);
        done = a->result && (!call_watched(a->s) || apply_check(a, false, a->result));
    }
    request_free(&r);
    return done;
}

/* Runs the forward in Python. False with an error set. */
static bool apply_forward(application *a) {
    PyObject *all = apply_all(a);
    a->result = all ? PyObject_Call(a->op->held.second, all, NULL) : NULL;
    Py_XDECREF(all);
    if (a->result && !array_is(a->s, a->result)) {
        PyErr_SetString(PyExc_TypeError, "a forward returns an array");
        return false;
    }
    return a->result;
}

/* ---- recording ---- */

bool apply_paused(const speed_state *s) {
    if (!PyList_Size(s->uses[USE_PAUSES])) return false;
    PyObject *enabled = PyObject_CallFunctionObjArgs(s->uses[USE_ENABLED], NULL);
    Py_XDECREF(enabled);
    return enabled != Py_True;
}

/* The saved arrays that the derivative needs, or None. */
static PyObject *apply_saved(const application *a, int needs_grad) {
    const char *place = &a->op->saved[3 * needs_grad];
    mg_array *kept[3] = {NULL};
    if (a->op->arity < 0) Py_RETURN_NONE;
    for (int i = 0; i < 3; i++) {
        if (place[i] < a->n) kept[i] = handle_array(a->arrays[(int)place[i]]);
        else if (place[i] == a->n) kept[i] = handle_array(a->result);
    }
    if (!kept[0] && !kept[1] && !kept[2]) Py_RETURN_NONE;
    return array_save(a->s, kept[0], kept[1], kept[2], a->s->kernel_saved);
}

/* Arguments of the derivative apart from the gradient and the saved arrays. These are the
 * operation's arguments, preceded by the input's shape if the derivative needs it. For a reduction
 * of all axes: shape, axes and keepdims. */
static PyObject *apply_args(const application *a) {
    if (a->op->reduces) {
        int ndim = handle_array(a->arrays[0])->ndim;
        PyObject *axes = PyTuple_New(ndim);
        for (int d = 0; axes && d < ndim; d++) PyTuple_SetItem(axes, d, PyLong_FromLong(d));
        return Py_BuildValue("(NNO)", array_shape(handle_array(a->arrays[0])), axes, Py_False);
    }
    if (!a->args) return PyTuple_New(0);
    if (!a->op->wants_shape) return Py_NewRef(a->args);
    PyObject *shape = tensor_shape(a->s, a->inputs[0]);
    PyObject *first = shape ? PyTuple_Pack(1, shape) : NULL;
    PyObject *made = first ? PySequence_Concat(first, a->args) : NULL;
    Py_XDECREF(shape);
    Py_XDECREF(first);
    return made;
}

/* The shape and dtype of each input if one of them was broadcast or cast, else None. */
static PyObject *apply_input_meta(const application *a) {
    if (a->op->style == TAKES_ONE_AND_ARGS || !handle_array(a->result)->adapted) Py_RETURN_NONE;
    PyObject *made = PyTuple_New(a->n);
    for (int i = 0; made && i < a->n; i++) {
        const mg_array *x = handle_array(a->arrays[i]);
        PyObject *both = Py_BuildValue("(Ni)", array_shape(x), x->dtype);
        if (!both || PyTuple_SetItem(made, i, both) < 0) Py_CLEAR(made);
    }
    return made;
}

/* Tells the tools that watch of a result that has a node now. */
static bool apply_tell(const application *a, PyObject *made) {
    if (!call_watched(a->s)) return true;
    PyObject *told = engine_callback(a->s, "recorded", made, NULL, NULL);
    Py_XDECREF(told);
    return told;
}

/* Gives the result a node with these parents, which are taken over. */
static bool apply_node(const application *a, PyObject *made, PyObject **given, int needs_grad) {
    Py_INCREF(given[NODE_OP] = a->op->held.first);
    given[NODE_SAVED] = apply_saved(a, needs_grad);
    given[NODE_ARGS] = apply_args(a);
    given[NODE_INPUTS] = apply_input_meta(a);
    bool done = given[NODE_SAVED] && given[NODE_ARGS] && given[NODE_INPUTS] && !PyErr_Occurred() &&
                tensor_record(a->s, made, given, NODE_GIVEN + a->n) && apply_tell(a, made);
    if (!done || !a->op->elementwise || given[NODE_INPUTS] != Py_None) return done;
    for (int i = 0; i < a->n; i++) { /* an input that needs a gradient has the result's shape */
        PyObject *shape = needs_grad >> i & 1 ? a->shapes[i] : NULL;
        if (!shape) continue;
        PyObject **place = &((tensor *)made)->fields[TENSOR_SHAPE], *before = *place;
        Py_INCREF(*place = shape);
        Py_DECREF(before);
        break;
    }
    return true;
}

/* Records the result if an input needs a gradient. If the result shares the memory of its input, it
 * is also listed among the input's views. */
static bool apply_record(const application *a, PyObject *made) {
    PyObject *few[NODE_GIVEN + OPERANDS] = {NULL}, **given = few, **parents;
    const mg_array *result = handle_array(a->result);
    if (a->n > OPERANDS) {
        given = PyMem_Calloc((size_t)(NODE_GIVEN + a->n), sizeof *given);
        if (!given) return PyErr_NoMemory();
    }
    parents = given + NODE_GIVEN;
    int needs_grad = 0;
    bool done = true, tracked = false, paused = false;
    for (int i = 0; done && i < a->n; i++) {
        parents[i] = tensor_parent(a->s, a->inputs[i]);
        done = parents[i];
        if (!done || parents[i] == Py_None) continue;
        tracked = true;
        if (i < 31) needs_grad |= 1 << i;
    }
    tracked = done && tracked && is_float(result->dtype);
    bool shares = done && a->op->style == TAKES_ONE_AND_ARGS &&
                  result->buffer == handle_array(a->arrays[0])->buffer;
    if (tracked || shares) {
        paused = apply_paused(a->s);
        done = !PyErr_Occurred(); /* apply_paused runs bytecode, which an interrupt may end */
    }
    if (done && shares)
        done = paused ? views_mark(a->s, made, a->inputs[0])
                      : views_link(a->s, made, a->inputs[0], a->op->held.first, a->args);
    if (done && tracked && !paused) done = apply_node(a, made, given, needs_grad);
    for (int i = 0; i < NODE_GIVEN + a->n; i++) Py_XDECREF(given[i]);
    if (given != few) PyMem_Free(given);
    return done && !PyErr_Occurred();
}

/* ---- running ---- */

/* The operation after an error, where inputs or arguments are batched: see batched_again. */
static PyObject *apply_batched(const application *a, PyObject *const *inputs, Py_ssize_t count,
                               PyObject *args) {
    PyObject *type, *error, *trace;
    PyErr_Fetch(&type, &error, &trace);
    PyObject *given = PyTuple_New(count), *more = args ? Py_NewRef(args) : PyTuple_New(0);
    for (Py_ssize_t i = 0; given && i < count; i++) PyTuple_SetItem(given, i, Py_NewRef(inputs[i]));
    PyErr_Restore(type, error, trace);
    PyObject *made = more ? batched_again(a->s, "batched_row", a->op->held.first, given,
                                          a->op->reduces ? Py_None : more)
                          : NULL;
    Py_XDECREF(given);
    Py_XDECREF(more);
    return made;
}

/* Wraps the result's array in a tensor and records it. */
static PyObject *apply_finish(application *a) {
    bool alike = a->op->elementwise && a->n == 1 && a->shapes[0];
    PyObject *made = tensor_around(a->s, Py_NewRef(a->result), Py_None, alike ? a->shapes[0] : Py_None);
    if (made && a->op->differentiable && !apply_record(a, made)) Py_CLEAR(made);
    return made;
}

/* The result for a tensor and a Python number whose tensor is cached; else NotImplemented. */
static MG_NOINLINE PyObject *apply_beside_number(PyObject *function, speed_state *s,
                                                 PyObject *const *inputs) {
    PyObject *both[] = {inputs[0], inputs[1]}, **number = tensor_is(s, both[0]) ? &both[1] : &both[0];
    PyObject *known = PyLong_CheckExact(*number)    ? s->uses[USE_INTS]
                      : PyFloat_CheckExact(*number) ? s->uses[USE_FLOATS]
                                                    : NULL;
    PyObject *found = known && tensor_is(s, both[number == both]) ? PyDict_GetItem(known, *number) : NULL;
    if (!found) Py_RETURN_NOTIMPLEMENTED;
    Py_INCREF(found); /* the cache may drop it meanwhile */
    *number = found;
    PyObject *made = apply_run(function, both, 2);
    Py_DECREF(found);
    return made;
}

/* The result for operands with storage dtypes, which are first cast to the dtypes that are computed
 * in. `where` moves storage dtypes without a cast; Python promotes two different ones. */
static MG_NOINLINE PyObject *apply_widened(PyObject *function, application *a) {
    PyObject *wide[OPERANDS] = {NULL}, *made = NULL;
    int done = 0;
    if (a->op->moves) Py_RETURN_NOTIMPLEMENTED;
    for (; done < a->n; done++) {
        if (!is_storage(handle_array(a->arrays[done])->dtype)) {
            Py_INCREF(wide[done] = a->inputs[done]);
            continue;
        }
        PyObject *cast = array_widened(a->s, a->arrays[done]);
        if (!cast || !(wide[done] = tensor_around(a->s, cast, Py_None, Py_None))) break;
    }
    if (done == a->n) made = apply_run(function, wide, a->n);
    for (int i = 0; i < a->n; i++) Py_XDECREF(wide[i]);
    return made;
}

static bool apply_has_storage(const application *a) {
    bool stored = false;
    for (int i = 0; i < a->n; i++) stored |= is_storage(handle_array(a->arrays[i])->dtype);
    if (!stored || !a->op->moves) return stored;
    mg_array *x = handle_array(a->arrays[1]), *y = handle_array(a->arrays[2]);
    return is_storage(handle_array(a->arrays[0])->dtype) || x->dtype != y->dtype;
}

/* True if the kernel takes these operands, by the operation's question. */
static bool apply_fits(const application *a) {
    mg_array *in[OPERANDS] = {NULL};
    mg_arrays out;
    if (a->op->fits < 0) return true;
    for (int i = 0; i < a->n; i++) in[i] = handle_array(a->arrays[i]);
    return a->s->core->run(a->op->fits, OPERANDS, in, &(mg_args){NULL}, &out);
}

/* run(*inputs); NotImplemented if the kernel does not take such operands. */
static PyObject *apply_to_inputs(PyObject *function, application *a, PyObject *const *given,
                                 Py_ssize_t count) {
    PyObject *made = NULL;
    a->inputs = given;
    if (count != a->op->arity) Py_RETURN_NOTIMPLEMENTED;
    a->n = (int)count;
    if (!apply_inputs(a)) {
        if (PyErr_Occurred()) return apply_batched(a, given, count, NULL);
        if (a->op->elementwise && count == 2) return apply_beside_number(function, a->s, given);
        Py_RETURN_NOTIMPLEMENTED;
    }
    if (apply_has_storage(a)) return apply_widened(function, a);
    if (!apply_fits(a)) Py_RETURN_NOTIMPLEMENTED;
    if (apply_kernel(a)) made = apply_finish(a);
    return made;
}

/* run(x, args), or run(inputs, args) */
static PyObject *apply_with_args(application *a, PyObject *const *given, Py_ssize_t count) {
    bool listed = a->op->style == TAKES_LIST_AND_ARGS;
    if (count != 2 || !PyTuple_Check(given[1]) || (listed && !PyTuple_Check(given[0])))
        return PyErr_Format(PyExc_TypeError, "run(tensor or tuple of tensors, arguments)");
    Py_ssize_t n = listed ? PyTuple_Size(given[0]) : 1;
    PyObject *few[OPERANDS], **inputs = few, *made = NULL;
    if (n > OPERANDS) {
        inputs = PyMem_Malloc((size_t)n * sizeof *inputs);
        a->arrays = PyMem_Calloc((size_t)n, sizeof *a->arrays);
        if (!inputs || !a->arrays) {
            PyMem_Free(inputs);
            return PyErr_NoMemory();
        }
    }
    for (Py_ssize_t i = 0; i < n; i++) inputs[i] = listed ? PyTuple_GetItem(given[0], i) : given[0];
    a->inputs = inputs;
    a->args = given[1];
    a->n = (int)n;
    if (apply_inputs(a)) {
        if (a->op->kernel >= 0 ? apply_kernel_with_args(a) : apply_forward(a)) made = apply_finish(a);
    } else if (!PyErr_Occurred()) {
        PyErr_SetString(PyExc_TypeError, "run(tensor or tuple of tensors, arguments)");
    }
    if (!made) made = apply_batched(a, inputs, n, given[1]);
    if (inputs != few) PyMem_Free(inputs);
    return made;
}

PyObject *apply_run(PyObject *function, PyObject *const *given, Py_ssize_t count) {
    const operation *op = PyCapsule_GetPointer(function, NULL);
    application a = {.op = op, .s = op->held.s, .arrays = NULL};
    a.arrays = a.few;
    PyObject *made = op->style == TAKES_INPUTS ? apply_to_inputs(function, &a, given, count)
                                               : apply_with_args(&a, given, count);
    apply_free(&a);
    return made;
}

static PyMethodDef apply_method = METHOD("run", apply_run, METH_FASTCALL);

/* operation(row, forward, kernel, style, arity, fits, elementwise, differentiable, wants_shape,
 * reduces, moves, saved): creates the function that applies a row. */
PyObject *apply_operation(PyObject *module, PyObject *args) {
    operation from, *made;
    PyObject *saved;
    if (!PyArg_ParseTuple(args, "OOiiiiiiiiiS", &from.held.first, &from.held.second, &from.kernel,
                          &from.style, &from.arity, &from.fits, &from.elementwise, &from.differentiable,
                          &from.wants_shape, &from.reduces, &from.moves, &saved))
        return NULL;
    Py_ssize_t bytes = PyBytes_Size(saved);
    if (from.style == TAKES_INPUTS && from.arity > OPERANDS)
        return PyErr_Format(PyExc_ValueError, "operation: too many inputs");
    made = PyMem_Malloc(sizeof *made + (size_t)bytes);
    if (!made) return PyErr_NoMemory();
    *made = from;
    memcpy(made->saved, PyBytes_AsString(saved), (size_t)bytes);
    return holder_function(&apply_method, &made->held, module);
}
