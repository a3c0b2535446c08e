/* tensor.h: what Tensor is made of, and operations that are one call of a kernel; views are, and what
 * else has one input and other arguments is one call of Python's function of it.
 *
 * The class holds an array's handle and its place on the tape. An operation calls its kernel, makes
 * the Tensor and the node: Python sees to operands that are no tensors, to failures and to what
 * watches. From Python's bytecode each of these steps took as long as adding up 64 numbers. */
#ifndef MG_TENSOR_H
#define MG_TENSOR_H

#include "handle.h"
#include "node.h"

enum {
    TENSOR_HANDLE,
    TENSOR_EDGE,
    TENSOR_SHAPE,
    TENSOR_GRAD,
    TENSOR_ALIAS,
    TENSOR_VIEWS,
    TENSOR_FIELDS,
};

typedef struct {
    PyObject_HEAD
    PyObject *weak;
    PyObject *fields[TENSOR_FIELDS];
} tensor;

enum { OPERANDS = 3 };

static PyTypeObject *tensor_class;

/* What C has from Python, in the order in which `use` is given it. */
enum {
    RESULTS, /* the class of results */
    LAGGING, /* that of views whose edge has to be asked for */
    SETTLE,  /* what a failed call is brought to, and one that .. */
    TRACERS, /* .. watch */
    ENABLED, /* is anything recorded, if there are .. */
    PAUSES,
    INTS, /* the tensors of integers and floats in recent use */
    FLOATS,
    COPIED, /* a contiguous copy without a history */
    PART,   /* the class of gradients of slices */
    VIEWS, /* the class of what knows a tensor's views */
    ADD, /* of each operator its operation, and a function for operands that are no tensors */
    SUB,
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

static PyObject *tensor_wrap(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    (void)self;
    if (count != 1 && count != 2) {
        PyErr_SetString(PyExc_TypeError, "wrap(handle, edge=None)");
        return NULL;
    }
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
        PyObject *made = handle_each_axis(handle, (void *)offsetof(mg_array, shape));
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

/* ---- functions that hold what they were made of ---- */

/* How their structs begin: with two objects that they hold. */
typedef struct {
    PyObject *first, *second;
} holder;

static void holder_free(PyObject *capsule) {
    holder *self = PyCapsule_GetPointer(capsule, NULL);
    Py_DECREF(self->first);
    Py_DECREF(self->second);
    PyMem_Free(self);
}

/* The function of a method that gets this struct, which is taken over, as a capsule. */
static PyObject *holder_function(PyMethodDef *method, void *made) {
    holder *self = made;
    PyObject *capsule = PyCapsule_New(made, NULL, holder_free);
    if (!capsule) {
        PyMem_Free(made);
        return NULL;
    }
    Py_INCREF(self->first);
    Py_INCREF(self->second);
    PyObject *run = PyCFunction_NewEx(method, capsule, NULL);
    Py_DECREF(capsule);
    return run;
}

/* ---- operations ---- */

typedef struct {
    PyObject *row, *kernel; /* as in a holder */
    int number; /* by which the kernel knows the operation */
    int arity, pointwise, differentiable;
    /* For each set of inputs that want gradients, the three that are saved: places among the inputs,
     * after which comes the result, and then nothing. */
    char saved[1 << OPERANDS][3];
} operation;

/* One call of an operation. */
typedef struct {
    const operation *op;
    PyObject *const *inputs;
    PyObject *handles[OPERANDS], *shapes[OPERANDS]; /* as they were before the call; NULL for none */
    mg_array *arrays[OPERANDS + 2];
} operation_call;

static mg_array *operation_kernel(const operation *op, mg_array **x) {
    if (op->arity == 1)
        return op->pointwise ? mg_unary(op->number, x[0]) : mg_reduce(op->number, x[0], -1, NULL, 0);
    if (op->pointwise) return mg_binary(op->number, x[0], x[1]);
    return op->number == MG_LINEAR ? mg_linear(x[0], x[1], x[2]) : mg_bilinear(op->number, x[0], x[1]);
}

/* May the kernel be called? A linear layer's says first whether it takes the operands. */
static bool operation_fits(const operation *op, mg_array **x) {
    bool linear = op->arity > 1 && !op->pointwise && op->number == MG_LINEAR;
    return !linear || mg_linear_fits(x[0], x[1], x[2]);
}

/* A failure is raised, and who watches is told. */
static bool operation_settle(const operation_call *call, PyObject *made) {
    const operation *op = call->op;
    PyObject *const *x = call->handles;
    PyObject *args = op->arity == 1   ? Py_BuildValue("(iO)", op->number, x[0])
                     : op->arity == 2 ? Py_BuildValue("(iOO)", op->number, x[0], x[1])
                                      : Py_BuildValue("(OOO)", x[0], x[1], x[2]);
    PyObject *done =
        args ? PyObject_CallFunctionObjArgs(tensor_uses[SETTLE], made, op->kernel, args, NULL) : NULL;
    Py_XDECREF(args);
    Py_XDECREF(done);
    return done;
}

/* What the derivative needs; None for nothing. */
static PyObject *operation_saved(const operation_call *call, int wanted) {
    const char *place = call->op->saved[wanted];
    mg_array *kept[3];
    for (int i = 0; i < 3; i++) kept[i] = call->arrays[(int)place[i]];
    if (!kept[0] && !kept[1] && !kept[2]) Py_RETURN_NONE;
    mg_saved *saved;
    Py_BEGIN_ALLOW_THREADS
    saved = mg_save(kept[0], kept[1], kept[2]);
    Py_END_ALLOW_THREADS
    if (!saved && !operation_settle(call, Py_None)) return NULL;
    return handle_new(&handle_saved_class, &handle_saved_spec, saved);
}

/* What Python's rule of a reduction takes beside the gradient: shape, axes and whether they stay. */
static PyObject *operation_args(const operation_call *call) {
    if (call->op->pointwise || call->op->arity > 1) return PyTuple_New(0);
    int ndim = call->arrays[0]->ndim;
    PyObject *axes = PyTuple_New(ndim);
    for (int d = 0; axes && d < ndim; d++) PyTuple_SetItem(axes, d, PyLong_FromLong(d));
    PyObject *shape = handle_each_axis(call->handles[0], (void *)offsetof(mg_array, shape));
    return Py_BuildValue("(NNO)", shape, axes, Py_False);
}

/* The shape and dtype's code of each input where one was broadcast or cast, else None. */
static PyObject *operation_adapted(const operation_call *call) {
    int arity = call->op->arity;
    if (!call->arrays[arity]->adapted) Py_RETURN_NONE;
    PyObject *made = PyTuple_New(arity);
    for (int i = 0; made && i < arity; i++) {
        PyObject *shape = handle_each_axis(call->handles[i], (void *)offsetof(mg_array, shape));
        PyObject *both = shape ? Py_BuildValue("(Ni)", shape, call->arrays[i]->dtype) : NULL;
        if (!both || PyTuple_SetItem(made, i, both) < 0) Py_CLEAR(made);
    }
    return made;
}

/* In a scope in which nothing is recorded? */
static bool operation_paused(void) {
    if (!PyList_Size(tensor_uses[PAUSES])) return false;
    PyObject *enabled = PyObject_CallFunctionObjArgs(tensor_uses[ENABLED], NULL);
    Py_XDECREF(enabled);
    return enabled != Py_True;
}

/* Gives the result a node if an input wants a gradient. */
static bool operation_record(const operation_call *call, tensor *made) {
    const operation *op = call->op;
    PyObject *given[NODE_GIVEN + OPERANDS] = {NULL}, **parents = given + NODE_GIVEN, *shape = NULL;
    int wanted = 0;
    bool done = true;
    for (int i = 0; done && i < op->arity; i++) {
        parents[i] = tensor_parent(call->inputs[i]);
        done = parents[i];
        if (!done || parents[i] == Py_None) continue;
        wanted |= 1 << i;
        if (op->pointwise) shape = call->shapes[i];
    }
    if (done && wanted && !operation_paused()) {
        Py_INCREF(op->row);
        given[NODE_OP] = op->row;
        given[NODE_SAVED] = operation_saved(call, wanted);
        given[NODE_ARGS] = operation_args(call);
        given[NODE_ADAPTED] = operation_adapted(call);
        done = given[NODE_SAVED] && given[NODE_ARGS] && given[NODE_ADAPTED] && !PyErr_Occurred();
        PyObject *node = done ? node_record(node_class, given, NODE_GIVEN + op->arity) : NULL;
        done = node;
        if (node) {
            Py_DECREF(made->fields[TENSOR_EDGE]);
            made->fields[TENSOR_EDGE] = node;
        }
        /* What wants a gradient has the result's shape. */
        if (shape && given[NODE_ADAPTED] == Py_None) {
            Py_INCREF(shape);
            Py_DECREF(made->fields[TENSOR_SHAPE]);
            made->fields[TENSOR_SHAPE] = shape;
        }
    }
    for (int i = 0; i < NODE_GIVEN + OPERANDS; i++) Py_XDECREF(given[i]);
    return done && !PyErr_Occurred();
}

static PyObject *operation_run(PyObject *capsule, PyObject *const *inputs, Py_ssize_t count);

/* The result of a tensor and a number whose tensor is known; else NotImplemented. */
static MG_NOINLINE PyObject *operation_beside_number(PyObject *capsule, PyObject *const *inputs) {
    PyObject *both[] = {inputs[0], inputs[1]}, **number = tensor_is(both[0]) ? &both[1] : &both[0];
    PyObject *known = PyLong_CheckExact(*number)    ? tensor_uses[INTS]
                      : PyFloat_CheckExact(*number) ? tensor_uses[FLOATS]
                                                    : NULL;
    PyObject *found = known && tensor_is(both[number == both]) ? PyDict_GetItem(known, *number) : NULL;
    PyObject *made = found ? found : Py_NotImplemented;
    Py_INCREF(made);
    if (!found) return made;
    *number = found;
    made = operation_run(capsule, both, 2);
    Py_DECREF(found);
    return made;
}

/* The result; NotImplemented where the kernel does not take such operands. */
static PyObject *operation_run(PyObject *capsule, PyObject *const *inputs, Py_ssize_t count) {
    operation_call call = {.op = PyCapsule_GetPointer(capsule, NULL), .inputs = inputs};
    bool fits = count == call.op->arity;
    for (int i = 0; fits && i < count; i++) {
        fits = tensor_is(inputs[i]);
        if (!fits) break;
        call.handles[i] = tensor_handle(inputs[i]);
        if (!call.handles[i]) return NULL;
        call.shapes[i] = ((tensor *)inputs[i])->fields[TENSOR_SHAPE];
        call.arrays[i] = handle_array(call.handles[i]);
    }
    if (!fits && count == 2 && call.op->pointwise && call.op->arity == 2)
        return operation_beside_number(capsule, inputs);
    if (!fits || !operation_fits(call.op, call.arrays)) {
        Py_INCREF(Py_NotImplemented);
        return Py_NotImplemented;
    }
    for (int i = 0; i < count; i++) { /* others may replace them meanwhile */
        Py_INCREF(call.handles[i]);
        Py_XINCREF(call.shapes[i]);
    }
    Py_BEGIN_ALLOW_THREADS
    call.arrays[count] = operation_kernel(call.op, call.arrays);
    Py_END_ALLOW_THREADS
    PyObject *handle = handle_new(&handle_array_class, &handle_array_spec, call.arrays[count]);
    bool settled = handle && call.arrays[count] && !PyList_Size(tensor_uses[TRACERS]);
    if (handle && !settled && !operation_settle(&call, handle)) Py_CLEAR(handle);
    bool alike = call.op->pointwise && count == 1 && call.shapes[0];
    PyObject *made = tensor_around(handle, Py_None, alike ? call.shapes[0] : Py_None);
    if (made && call.op->differentiable && !operation_record(&call, (tensor *)made)) Py_CLEAR(made);
    for (int i = 0; i < count; i++) {
        Py_DECREF(call.handles[i]);
        Py_XDECREF(call.shapes[i]);
    }
    return made;
}

static PyMethodDef operation_method = {"run", (PyCFunction)(void (*)(void))operation_run,
                                       METH_FASTCALL, NULL};

/* operation(row, kernel, number, arity, pointwise, differentiable, saved) */
static PyObject *operation_new(PyObject *unused, PyObject *args) {
    (void)unused;
    operation *made = PyMem_Malloc(sizeof *made);
    PyObject *saved;
    if (!made) return PyErr_NoMemory();
    if (!PyArg_ParseTuple(args, "OOiiiiS", &made->row, &made->kernel, &made->number, &made->arity,
                          &made->pointwise, &made->differentiable, &saved)) {
        PyMem_Free(made);
        return NULL;
    }
    memcpy(made->saved, PyBytes_AsString(saved), sizeof made->saved);
    return holder_function(&operation_method, made);
}

/* ---- rows with one input and other arguments ---- */

MG_PLANNING

typedef struct {
    PyObject *row, *forward; /* as in a holder */
    int view; /* by which number the view is known here, if it is one */
    int wants_shape, keeps_input, keeps_result;
} single;

/* The numbers of a tuple; how many, or -1. */
static int single_numbers(PyObject *given, int64_t *numbers) {
    Py_ssize_t count = PyTuple_Check(given) ? PyTuple_Size(given) : -1;
    if (count > MG_MAX_NDIM) return -1;
    for (Py_ssize_t i = 0; i < count; i++) {
        numbers[i] = PyLong_AsLongLong(PyTuple_GetItem(given, i));
        if (numbers[i] == -1 && PyErr_Occurred()) return -1;
    }
    return (int)count;
}

/* NULL where it is not known, or its arguments are wrong. */
static mg_array *single_view(int view, mg_array *x, PyObject *args) {
    int64_t numbers[4][MG_MAX_NDIM];
    int32_t axes[MG_MAX_NDIM];
    int given = (int)PyTuple_Size(args), count[4];
    if (view == MG_VIEW_OTHER || given > 4) return NULL;
    for (int i = 0; i < given; i++) {
        count[i] = single_numbers(PyTuple_GetItem(args, i), numbers[i]);
        if (count[i] < 0) return NULL;
        if (view >= MG_VIEW_SLICE && i < 3 && count[i] != x->ndim) return NULL;
    }
    switch (view) {
    case MG_VIEW_RESHAPE: return mg_view_reshape(x, count[0], numbers[0]);
    case MG_VIEW_OR_COPY: return mg_reshape(x, count[0], numbers[0]);
    case MG_VIEW_EXPAND: return mg_view_expand(x, count[0], numbers[0]);
    case MG_VIEW_PERMUTE:
        for (int d = 0; d < count[0]; d++) axes[d] = (int32_t)numbers[0][d];
        return mg_view_permute(x, count[0], axes);
    }
    mg_array *part = mg_view_slice(x, numbers[0], numbers[1], numbers[2]);
    if (view == MG_VIEW_SLICE || !part) return part;
    mg_array *shown = mg_view_reshape(part, count[3], numbers[3]);
    mg_release(part);
    return shown;
}

/* Calls a function of Python's on an array and a tuple of other arguments. */
static PyObject *single_ask(PyObject *function, PyObject *handle, PyObject *args) {
    PyObject *all = PyTuple_New(1 + PyTuple_Size(args));
    for (Py_ssize_t i = 0; all && i < PyTuple_Size(all); i++) {
        PyObject *one = i ? PyTuple_GetItem(args, i - 1) : handle;
        Py_INCREF(one);
        PyTuple_SetItem(all, i, one);
    }
    PyObject *made = all ? PyObject_Call(function, all, NULL) : NULL;
    Py_XDECREF(all);
    return made;
}

/* The result; Python's forward where it is none of these views, failed or is watched. */
static PyObject *single_forward(const single *self, PyObject *handle, PyObject *args) {
    if (self->view && !PyList_Size(tensor_uses[TRACERS])) {
        mg_array *made;
        Py_BEGIN_ALLOW_THREADS
        made = single_view(self->view, handle_array(handle), args);
        Py_END_ALLOW_THREADS
        PyErr_Clear();
        if (made) return handle_new(&handle_array_class, &handle_array_spec, made);
    }
    return single_ask(self->forward, handle, args);
}

static PyObject *single_names[2]; /* "refs" and "current", of what knows a tensor's views */
enum { SINGLE_DEAD = 15 };         /* how often those that are dead are looked for, as bits */

/* Notes that `view` shows the memory of `base` through a row of the table. */
static bool single_link(PyObject *view, PyObject *base, PyObject *row, PyObject *args) {
    PyObject **place = &((tensor *)base)->fields[TENSOR_VIEWS];
    if (!*place) {
        PyObject *first = PyObject_CallFunctionObjArgs(tensor_uses[VIEWS], NULL);
        if (*place) Py_XDECREF(first); /* another thread's is there by now */
        else *place = first;
    }
    PyObject *views = *place, *ref = NULL;
    Py_XINCREF(views); /* whatever becomes of the base's */
    if (views) ref = PyWeakref_NewRef(view, NULL);
    PyObject **alias = &((tensor *)view)->fields[TENSOR_ALIAS], *before = *alias;
    *alias = ref ? PyTuple_Pack(3, base, row, args) : NULL;
    Py_XDECREF(before);
    bool done = *alias;
    for (int i = 0; done && i < 2; i++) {
        PyObject *refs = PyObject_GetAttr(views, single_names[i]);
        done = refs && !PyList_Append(refs, ref);
        if (done && !i && !(PyList_Size(refs) & SINGLE_DEAD)) {
            PyObject *sorted = PyObject_CallMethod(views, "sort_out", NULL);
            Py_XDECREF(sorted);
            done = sorted;
        }
        Py_XDECREF(refs);
    }
    Py_XDECREF(views);
    Py_XDECREF(ref);
    return done;
}

/* What the derivative needs; None for nothing. */
static PyObject *single_saved(const single *self, PyObject *input, PyObject *result) {
    if (!self->keeps_input && !self->keeps_result) Py_RETURN_NONE;
    mg_saved *saved = mg_save(self->keeps_input ? handle_array(input) : NULL, NULL,
                              self->keeps_result ? handle_array(result) : NULL);
    if (saved) return handle_new(&handle_saved_class, &handle_saved_spec, saved);
    PyObject *none = PyTuple_New(0);
    return PyObject_CallFunctionObjArgs(tensor_uses[SETTLE], Py_None, self->forward, none, NULL);
}

/* Gives the result its place on the tape, and among the views of x. */
static bool single_record(const single *self, PyObject *x, PyObject *input, PyObject *args,
                          tensor *made) {
    PyObject *given[NODE_GIVEN + 1] = {self->row, NULL, args, Py_None, tensor_parent(x)};
    PyObject *handle = made->fields[TENSOR_HANDLE], *parent = given[NODE_GIVEN], *shape = NULL;
    bool tracked = parent != Py_None && handle_array(handle)->dtype >= MG_FLOAT32;
    bool done = parent;
    if (!done || (!tracked && !self->view) || operation_paused()) goto out;
    if (self->view && handle_array(handle)->buffer == handle_array(input)->buffer)
        done = single_link((PyObject *)made, x, self->row, args);
    if (!done || !tracked) goto out;
    PyObject *first = self->wants_shape ? tensor_shape(x, NULL) : NULL;
    PyObject *before = first ? PyTuple_Pack(1, first) : NULL;
    if (before) given[NODE_ARGS] = shape = PySequence_Concat(before, args);
    Py_XDECREF(first);
    Py_XDECREF(before);
    given[NODE_SAVED] = single_saved(self, input, handle);
    PyObject *node = given[NODE_ARGS] && given[NODE_SAVED] && !PyErr_Occurred()
                         ? node_record(node_class, given, NODE_GIVEN + 1)
                         : NULL;
    done = node;
    if (node) {
        Py_DECREF(made->fields[TENSOR_EDGE]);
        made->fields[TENSOR_EDGE] = node;
    }
    Py_XDECREF(shape);
    Py_XDECREF(given[NODE_SAVED]);
out:
    Py_XDECREF(parent);
    return done && !PyErr_Occurred();
}

/* link(view, base, row, args) */
static PyObject *tensor_link(PyObject *unused, PyObject *const *given, Py_ssize_t count) {
    (void)unused;
    if (count != 4 || !tensor_is(given[0]) || !tensor_is(given[1])) {
        PyErr_SetString(PyExc_TypeError, "link(view, base, row, args)");
        return NULL;
    }
    if (!single_link(given[0], given[1], given[2], given[3])) return NULL;
    Py_RETURN_NONE;
}

/* run(x, args): the result for a tensor, recorded. */
static PyObject *single_run(PyObject *capsule, PyObject *const *given, Py_ssize_t count) {
    const single *self = PyCapsule_GetPointer(capsule, NULL);
    if (count != 2 || !tensor_is(given[0]) || !PyTuple_Check(given[1])) {
        PyErr_SetString(PyExc_TypeError, "run(tensor, arguments)");
        return NULL;
    }
    PyObject *input = tensor_handle(given[0]);
    if (!input) return NULL;
    Py_INCREF(input); /* others may replace it meanwhile */
    PyObject *made = tensor_around(single_forward(self, input, given[1]), Py_None, Py_None);
    if (made && !single_record(self, given[0], input, given[1], (tensor *)made)) Py_CLEAR(made);
    Py_DECREF(input);
    return made;
}

static PyMethodDef single_method = {"run", (PyCFunction)(void (*)(void))single_run, METH_FASTCALL,
                                    NULL};

/* single(row, forward, view, wants_shape, keeps_input, keeps_result) */
static PyObject *single_new(PyObject *unused, PyObject *args) {
    (void)unused;
    single *made = PyMem_Malloc(sizeof *made);
    if (!made) return PyErr_NoMemory();
    if (!PyArg_ParseTuple(args, "OOiiii", &made->row, &made->forward, &made->view, &made->wants_shape,
                          &made->keeps_input, &made->keeps_result)) {
        PyMem_Free(made);
        return NULL;
    }
    return holder_function(&single_method, made);
}

/* ---- indices that make views ---- */

enum { CUT_ITEMS = 64 };

/* In the stable ABI since 3.7; cffi asks for an older one, whose headers lack them. */
PyAPI_FUNC(int) PySlice_Unpack(PyObject *slice, Py_ssize_t *start, Py_ssize_t *stop, Py_ssize_t *step);
PyAPI_FUNC(Py_ssize_t) PySlice_AdjustIndices(Py_ssize_t length, Py_ssize_t *start, Py_ssize_t *stop,
                                             Py_ssize_t step);

static PyObject *cut_tuple(const int64_t *numbers, int count) {
    PyObject *made = PyTuple_New(count);
    for (int i = 0; made && i < count; i++) {
        PyObject *number = PyLong_FromLongLong(numbers[i]);
        if (!number || PyTuple_SetItem(made, i, number)) Py_CLEAR(made);
    }
    return made;
}

/* What an integer or slice takes of an axis of so many elements; false where it is wrong. */
static bool cut_axis(PyObject *item, int64_t size, int64_t *start, int64_t *step, int64_t *count) {
    Py_ssize_t first, last = 0, by = 1;
    *count = *step = 1;
    if (PyLong_CheckExact(item)) {
        first = PyLong_AsSsize_t(item);
        if (first < 0) first += size;
        *start = first;
        return !PyErr_Occurred() && first >= 0 && first < size;
    }
    if (PySlice_Unpack(item, &first, &last, &by)) return false;
    *count = PySlice_AdjustIndices(size, &first, &last, by);
    if (*count > 1) *step = by; /* else it is never taken */
    *start = *count ? first : 0;
    return true;
}

/* None, for Python to say what is wrong, but where a bound has raised something of its own. */
static PyObject *cut_failed(void) {
    PyObject *error = PyErr_Occurred(), *usual[] = {PyExc_TypeError, PyExc_ValueError,
                                                    PyExc_OverflowError};
    bool known = !error;
    for (int i = 0; i < 3 && !known; i++) known = PyErr_GivenExceptionMatches(error, usual[i]);
    if (!known) return NULL;
    PyErr_Clear();
    Py_RETURN_NONE;
}

static PyObject *cut_plan(const mg_array *x, PyObject *index) {
    bool tuple = PyTuple_Check(index);
    int items = tuple ? (int)PyTuple_Size(index) : 1, taken = 0, axis = 0, kept = 0;
    int64_t start[MG_MAX_NDIM], step[MG_MAX_NDIM], size[MG_MAX_NDIM];
    int64_t shown[CUT_ITEMS + MG_MAX_NDIM];
    bool dots = false, whole = true, same = true;
    for (int i = 0; i < items && items <= CUT_ITEMS; i++) {
        PyObject *item = tuple ? PyTuple_GetItem(index, i) : index;
        if (PyLong_CheckExact(item) || PySlice_Check(item)) taken++;
        else if (item == Py_Ellipsis && !dots) dots = true;
        else if (item != Py_None) Py_RETURN_NONE;
    }
    if (items > CUT_ITEMS || taken > x->ndim) Py_RETURN_NONE;
    for (int i = 0; i <= items; i++) {
        PyObject *item = i == items ? Py_Ellipsis : tuple ? PyTuple_GetItem(index, i) : index;
        if (item == Py_None) {
            shown[kept++] = 1;
            same = false;
        } else if (item == Py_Ellipsis) { /* so many axes as they are; at the end what is left */
            for (int n = i == items ? x->ndim - axis : x->ndim - taken; n > 0; n--, axis++) {
                start[axis] = 0;
                step[axis] = 1;
                shown[kept++] = size[axis] = x->shape[axis];
            }
        } else {
            int64_t all = x->shape[axis];
            if (!cut_axis(item, all, &start[axis], &step[axis], &size[axis])) return cut_failed();
            if (size[axis] != all || step[axis] != 1) whole = false;
            if (PySlice_Check(item)) shown[kept++] = size[axis];
            else same = false;
            axis++;
        }
    }
    int n = x->ndim;
    if (whole && same) return Py_BuildValue("i()", MG_VIEW_NONE);
    if (whole) return Py_BuildValue("i(N)", MG_VIEW_RESHAPE, cut_tuple(shown, kept));
    PyObject *a = cut_tuple(start, n), *b = cut_tuple(step, n), *c = cut_tuple(size, n);
    if (same) return Py_BuildValue("i(NNN)", MG_VIEW_SLICE, a, b, c);
    return Py_BuildValue("i(NNNN)", MG_VIEW_SLICE_RESHAPE, a, b, c, cut_tuple(shown, kept));
}

/* cut(x, index): the number of the view that integers, slices, None and ... make, or MG_VIEW_NONE for x
 * as it is, and its arguments. None for all other indices, and for wrong ones; raises what a bound
 * of a slice does. */
static PyObject *tensor_cut(PyObject *unused, PyObject *const *given, Py_ssize_t count) {
    (void)unused;
    PyObject *handle = count == 2 && tensor_is(given[0]) ? tensor_handle(given[0]) : NULL;
    if (!handle) return PyErr_Format(PyExc_TypeError, "cut(tensor, index)");
    Py_INCREF(handle); /* a slice's bounds may be anything, and give x other memory */
    PyObject *made = cut_plan(handle_array(handle), given[1]);
    Py_DECREF(handle);
    return made;
}
MG_PLANNING_END

/* ---- operators ---- */

static PyObject *tensor_operator(PyObject *used, PyObject *a, PyObject *b) {
    PyObject *both[] = {a, b}, *run = PyTuple_GetItem(used, 0), *otherwise = PyTuple_GetItem(used, 1);
    PyObject *made = operation_run(PyCFunction_GetSelf(run), both, 2);
    if (made != Py_NotImplemented) return made;
    Py_DECREF(made);
    return PyObject_CallFunctionObjArgs(otherwise, a, b, NULL);
}

#define TENSOR_OPERATOR(name, which)                                                           \
    static PyObject *name(PyObject *a, PyObject *b) {                                          \
        return tensor_operator(tensor_uses[which], a, b);                                      \
    }
TENSOR_OPERATOR(tensor_add, ADD)
TENSOR_OPERATOR(tensor_sub, SUB)
TENSOR_OPERATOR(tensor_mul, MUL)
TENSOR_OPERATOR(tensor_div, DIV)
static PyObject *tensor_pow(PyObject *a, PyObject *b, PyObject *modulo) {
    if (modulo == Py_None) return tensor_operator(tensor_uses[POW], a, b);
    Py_INCREF(Py_NotImplemented);
    return Py_NotImplemented;
}

/* ---- what Python gets ---- */

static PyObject *tensor_use(PyObject *unused, PyObject *const *given, Py_ssize_t count) {
    (void)unused;
    for (Py_ssize_t i = 0; i < count && i < USES; i++) {
        Py_INCREF(given[i]);
        Py_XDECREF(tensor_uses[i]);
        tensor_uses[i] = given[i];
    }
    Py_RETURN_NONE;
}

#define TENSOR_FIELD(name, place) {name, T_OBJECT_EX, offsetof(tensor, fields[place]), 0, NULL}
static PyMemberDef tensor_members[] = {
    TENSOR_FIELD("_h", TENSOR_HANDLE),
    TENSOR_FIELD("_edge", TENSOR_EDGE),
    TENSOR_FIELD("_shape", TENSOR_SHAPE),
    TENSOR_FIELD("grad", TENSOR_GRAD),
    TENSOR_FIELD("_alias", TENSOR_ALIAS),
    TENSOR_FIELD("_views", TENSOR_VIEWS),
    {"__weaklistoffset__", T_PYSSIZET, offsetof(tensor, weak), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};
static PyGetSetDef tensor_getters[] = {
    {"shape", tensor_shape, NULL, "The size of each dimension.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};
static PyType_Slot tensor_slots[] = {{Py_tp_dealloc, (void *)tensor_free},
                                     {Py_tp_traverse, (void *)tensor_traverse},
                                     {Py_tp_clear, (void *)tensor_clear},
                                     {Py_tp_members, tensor_members},
                                     {Py_tp_getset, tensor_getters},
                                     {Py_nb_add, (void *)tensor_add},
                                     {Py_nb_subtract, (void *)tensor_sub},
                                     {Py_nb_multiply, (void *)tensor_mul},
                                     {Py_nb_true_divide, (void *)tensor_div},
                                     {Py_nb_power, (void *)tensor_pow},
                                     {0, NULL}};
static PyType_Spec tensor_spec = {"minigrad.dispatch.Fields", sizeof(tensor), 0,
                                  Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
                                  tensor_slots};
static PyMethodDef tensor_functions[] = {
    {"wrap", (PyCFunction)(void (*)(void))tensor_wrap, METH_FASTCALL, NULL},
    {"operation", operation_new, METH_VARARGS, NULL},
    {"single", single_new, METH_VARARGS, NULL},
    {"link", (PyCFunction)(void (*)(void))tensor_link, METH_FASTCALL, NULL},
    {"cut", (PyCFunction)(void (*)(void))tensor_cut, METH_FASTCALL, NULL},
    {"use", (PyCFunction)(void (*)(void))tensor_use, METH_FASTCALL, NULL},
};

mg_object *mg_tensor_parts(void) {
    enum { FUNCTIONS = sizeof tensor_functions / sizeof *tensor_functions };
    tensor_class = (PyTypeObject *)PyType_FromSpec(&tensor_spec);
    single_names[0] = PyUnicode_InternFromString("refs");
    single_names[1] = PyUnicode_InternFromString("current");
    PyObject *made = PyTuple_New(1 + FUNCTIONS);
    if (made) PyTuple_SetItem(made, 0, (PyObject *)tensor_class);
    for (int i = 0; made && i < FUNCTIONS; i++)
        PyTuple_SetItem(made, 1 + i, PyCFunction_NewEx(&tensor_functions[i], NULL, NULL));
    return (mg_object *)made;
}

#endif
