/* parts.h: what Python gets: the class that Tensor is made of, with its operators, and functions. */
#ifndef MG_PARTS_H
#define MG_PARTS_H

#include "asked.h"
#include "join.h"
#include "lists.h"
#include "shown.h"
#include "view.h"

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
    if (modulo != Py_None) Py_RETURN_NOTIMPLEMENTED;
    return tensor_operator(tensor_uses[POW], a, b);
}

/* ---- grad ---- */

static PyObject *tensor_grad(PyObject *self, void *unused) {
    (void)unused;
    PyObject *held = ((tensor *)self)->fields[TENSOR_GRAD];
    if (!held) held = Py_None;
    Py_INCREF(held);
    return held;
}

/* May it be assigned? What a run back brings is not asked: the tensor may have got other values since. */
static bool tensor_takes(PyObject *self, PyObject *g) {
    if (g == Py_None) return true;
    PyObject *handle = tensor_handle(self), *other = handle && tensor_is(g) ? tensor_handle(g) : NULL;
    if (PyErr_Occurred()) return false;
    if (other && g != self && mg_alike(handle_array(handle), handle_array(other))) return true;
    back_raise("misfit_error", self, g);
    return false;
}

static int tensor_set_grad(PyObject *self, PyObject *g, void *unused) {
    (void)unused;
    if (!g) g = Py_None; /* it is deleted */
    if (!tensor_takes(self, g)) return -1;
    PyObject **place = &((tensor *)self)->fields[TENSOR_GRAD], *held = *place;
    Py_INCREF(g);
    *place = g;
    Py_XDECREF(held);
    return 0;
}

/* ---- what Python gets ---- */

/* parent_of(x) */
static PyObject *tensor_parent_of(PyObject *unused, PyObject *x) {
    (void)unused;
    return tensor_is(x) ? tensor_parent(x) : PyErr_Format(PyExc_TypeError, "parent_of(tensor)");
}

static PyObject *tensor_use(PyObject *unused, PyObject *const *given, Py_ssize_t count) {
    (void)unused;
    for (Py_ssize_t i = 0; i < count && i < USES; i++) {
        Py_INCREF(given[i]);
        Py_XDECREF(tensor_uses[i]);
        tensor_uses[i] = given[i];
    }
    Py_RETURN_NONE;
}

/* commit(kernel, args, changes): calls a kernel, unless it is None, and, where that succeeds, makes the
 * changes: (object, name, value) sets an attribute, and deletes it where the value is Ellipsis.
 * Returns the kernel's code. No bytecode runs in between: an interrupt comes before all or after. */
static PyObject *tensor_commit(PyObject *unused, PyObject *const *given, Py_ssize_t count) {
    (void)unused;
    if (count != 3 || !PyTuple_Check(given[1]) || !PyList_Check(given[2]))
        return PyErr_Format(PyExc_TypeError, "commit(kernel, args, changes)");
    long code = 0;
    if (given[0] != Py_None) {
        PyObject *made = PyObject_Call(given[0], given[1], NULL);
        if (!made) return NULL;
        code = PyLong_AsLong(made);
        Py_DECREF(made);
    }
    for (Py_ssize_t i = 0; !code && i < PyList_Size(given[2]); i++) {
        PyObject *change = PyList_GetItem(given[2], i), *value = PyTuple_GetItem(change, 2);
        if (!value || PyObject_SetAttr(PyTuple_GetItem(change, 0), PyTuple_GetItem(change, 1),
                                       value == Py_Ellipsis ? NULL : value))
            return NULL;
    }
    return PyErr_Occurred() ? NULL : PyLong_FromLong(code);
}

#define TENSOR_FIELD(name, place) {name, T_OBJECT_EX, offsetof(tensor, fields[place]), 0, NULL}
static PyMemberDef tensor_members[] = {
    TENSOR_FIELD("_h", TENSOR_HANDLE),
    TENSOR_FIELD("_edge", TENSOR_EDGE),
    TENSOR_FIELD("_shape", TENSOR_SHAPE),
    TENSOR_FIELD("_grad", TENSOR_GRAD),
    TENSOR_FIELD("_alias", TENSOR_ALIAS),
    TENSOR_FIELD("_views", TENSOR_VIEWS),
    TENSOR_FIELD("_hooks", TENSOR_HOOKS),
    {"__weaklistoffset__", T_PYSSIZET, offsetof(tensor, weak), READONLY, NULL},
    {"__dictoffset__", T_PYSSIZET, offsetof(tensor, fields[TENSOR_DICT]), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};
static PyGetSetDef tensor_getters[] = {
    {"shape", tensor_shape, NULL, "The size of each dimension.", NULL},
    {"grad", tensor_grad, tensor_set_grad, "The gradient that backward calls added up, or None.", NULL},
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, "Attributes of one's own.", NULL},
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
    METHOD("wrap", tensor_wrap, METH_FASTCALL),
    METHOD("operation", operation_new, METH_VARARGS),
    METHOD("single", single_new, METH_VARARGS),
    METHOD("parent_of", tensor_parent_of, METH_O),
    METHOD("link", tensor_link, METH_FASTCALL),
    METHOD("cut", tensor_cut, METH_FASTCALL),
    METHOD("spans", tensor_spans, METH_VARARGS),
    METHOD("join", tensor_join, METH_FASTCALL),
    METHOD("shown", tensor_shown, METH_FASTCALL),
    METHOD("keep", tensor_keep, METH_FASTCALL),
    METHOD("from_lists", tensor_from_lists, METH_FASTCALL),
    METHOD("to_lists", tensor_to_lists, METH_O),
    METHOD("use", tensor_use, METH_FASTCALL),
    METHOD("commit", tensor_commit, METH_FASTCALL),
    METHOD("know", handle_know, METH_FASTCALL),
};

mg_object *mg_tensor_parts(void) {
    enum { FUNCTIONS = sizeof tensor_functions / sizeof *tensor_functions };
    const char *names[] = {"refs", "current", "limit"};
    for (int i = 0; i < 3; i++)
        if (!(single_names[i] = PyUnicode_InternFromString(names[i]))) return NULL;
    if (!size_make_class()) return NULL;
    tensor_class = (PyTypeObject *)PyType_FromSpec(&tensor_spec);
    PyObject *made = tensor_class ? PyTuple_New(2 + FUNCTIONS) : NULL;
    if (!made) return NULL;
    Py_INCREF(tensor_class); /* Python's, beside ours */
    PyTuple_SetItem(made, 0, (PyObject *)tensor_class);
    Py_INCREF(size_class);
    PyTuple_SetItem(made, 1, (PyObject *)size_class);
    for (int i = 0; made && i < FUNCTIONS; i++) {
        PyObject *function = PyCFunction_NewEx(&tensor_functions[i], NULL, NULL);
        if (!function || PyTuple_SetItem(made, 2 + i, function)) Py_CLEAR(made);
    }
    return (mg_object *)made;
}

#endif