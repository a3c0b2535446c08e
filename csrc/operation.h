/* operation.h: operations that are one call of a kernel.
 *
 * An operation calls its kernel, makes the Tensor and the node: Python sees to operands that are no
 * tensors, to failures and to what watches. From Python's bytecode each of these steps took as long
 * as adding up 64 numbers. */
#ifndef MG_OPERATION_H
#define MG_OPERATION_H

#include "memory/array.h"
#include "tensor.h"

enum { OPERANDS = 3 };

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
    if (op->pointwise && op->arity == 3)
        return (op->number == MG_WHERE ? mg_where : mg_clamp)(x[0], x[1], x[2]);
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
    return handle_around_saved(saved);
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
        done = given[NODE_SAVED] && given[NODE_ARGS] && given[NODE_ADAPTED] && !PyErr_Occurred() &&
               tensor_record(made, given, NODE_GIVEN + op->arity);
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
    if (!found) Py_RETURN_NOTIMPLEMENTED;
    Py_INCREF(found); /* what is known may be forgotten meanwhile */
    *number = found;
    PyObject *made = operation_run(capsule, both, 2);
    Py_DECREF(found);
    return made;
}

/* Is it `where`, of two operands of one dtype? */
static bool operation_moves(const operation_call *call) {
    mg_array *const *x = call->arrays;
    return call->op->arity == 3 && call->op->pointwise && call->op->number == MG_WHERE &&
           !mg_is_storage(x[0]->dtype) && x[1]->dtype == x[2]->dtype;
}

/* The result of operands some of which have a storage dtype: of those in the dtypes that they are computed
 * in. `where` alone moves them as they are; of two dtypes Python says in which. */
static MG_NOINLINE PyObject *operation_widened(PyObject *capsule, PyObject *const *inputs,
                                               const operation_call *call) {
    PyObject *wide[OPERANDS] = {NULL}, *made = NULL;
    int arity = call->op->arity, done = 0;
    if (arity == 3 && call->op->pointwise && call->op->number == MG_WHERE) Py_RETURN_NOTIMPLEMENTED;
    for (; done < arity; done++) {
        PyObject *handle = call->handles[done];
        mg_array *x = call->arrays[done], *cast;
        if (!mg_is_storage(x->dtype)) {
            Py_INCREF(wide[done] = inputs[done]);
            continue;
        }
        Py_INCREF(handle);
        Py_BEGIN_ALLOW_THREADS
        cast = mg_cast(x, mg_wide(x->dtype));
        Py_END_ALLOW_THREADS
        Py_DECREF(handle);
        if (!cast && !operation_settle(call, Py_None)) break;
        if (!(wide[done] = tensor_of(cast))) break;
    }
    if (done == arity) made = operation_run(capsule, wide, arity);
    for (int i = 0; i < arity; i++) Py_XDECREF(wide[i]);
    return made;
}

/* The result; NotImplemented where the kernel does not take such operands. */
static PyObject *operation_run(PyObject *capsule, PyObject *const *inputs, Py_ssize_t count) {
    operation_call call = {.op = PyCapsule_GetPointer(capsule, NULL), .inputs = inputs};
    bool fits = count == call.op->arity, stored = false;
    for (int i = 0; fits && i < count; i++) {
        fits = tensor_is(inputs[i]);
        if (!fits) break;
        call.handles[i] = tensor_handle(inputs[i]);
        if (!call.handles[i]) return NULL;
        call.shapes[i] = ((tensor *)inputs[i])->fields[TENSOR_SHAPE];
        call.arrays[i] = handle_array(call.handles[i]);
        stored |= mg_is_storage(call.arrays[i]->dtype);
    }
    if (fits && stored && !operation_moves(&call)) return operation_widened(capsule, inputs, &call);
    if (!fits && count == 2 && call.op->pointwise && call.op->arity == 2)
        return operation_beside_number(capsule, inputs);
    if (!fits || !operation_fits(call.op, call.arrays)) Py_RETURN_NOTIMPLEMENTED;
    for (int i = 0; i < count; i++) { /* others may replace them meanwhile */
        Py_INCREF(call.handles[i]);
        Py_XINCREF(call.shapes[i]);
    }
    Py_BEGIN_ALLOW_THREADS
    call.arrays[count] = operation_kernel(call.op, call.arrays);
    Py_END_ALLOW_THREADS
    PyObject *handle = handle_around(call.arrays[count]);
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

static PyMethodDef operation_method = METHOD("run", operation_run, METH_FASTCALL);

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

#endif
