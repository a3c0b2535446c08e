/* node.h: a node of the tape, one recorded operation.
 *
 * Every operation with a gradient makes one. As a class of Python's it took three times as long, and
 * 192 bytes in three objects in place of 112 in one. What the fields mean is said in tape.py. */
#ifndef MG_NODE_H
#define MG_NODE_H

#include "base/platform.h"
#include "minigrad.h"

#include <structmember.h>

/* These are in the stable ABI of Python 3.10, the oldest supported; cffi asks for an older one. */
#ifndef METH_FASTCALL
#define METH_FASTCALL 0x0080
#endif
PyAPI_FUNC(PyObject *) PyObject_GenericGetDict(PyObject *, void *);
PyAPI_FUNC(int) PyObject_GenericSetDict(PyObject *, PyObject *, void *);
/* A row of a table of methods, whose functions differ in type by how they are called. */
#define METHOD(name, function, called) {name, (PyCFunction)(void (*)(void))(function), called, NULL}

enum { NODE_FEW = 2 }; /* all have room for so many parents: that of one would be no smaller */
enum { NODE_OP, NODE_SAVED, NODE_ARGS, NODE_ADAPTED, NODE_GIVEN, NODE_HOOKS = NODE_GIVEN, NODE_FIELDS };

typedef struct {
    PyObject_VAR_HEAD /* the number of parents: none once the graph was freed */
    PyObject *weak;
    long long serial; /* twice the number, and 1 more where there are more than few parents */
    PyObject *fields[NODE_FIELDS];
    PyObject *parents[];
} node;

/* ---- making and freeing ---- */

/* Nodes that were freed, linked where weak references were, for those that are made next: Python would
 * give the pages of a long graph back, and the system clear them for the next one. */
static struct {
    node *top;
    Py_ssize_t count, allowed;
} node_kept;

static node *node_take(PyTypeObject *class, Py_ssize_t parents) {
    node *self = parents <= NODE_FEW ? node_kept.top : NULL;
    if (!self) return PyObject_GC_NewVar(node, class, parents < NODE_FEW ? NODE_FEW : parents);
    node_kept.top = (node *)self->weak;
    node_kept.count--;
    return (node *)PyObject_InitVar((PyVarObject *)self, class, parents);
}

static void node_give(node *self) {
    enum { GRANT = 64 << 10, SIZE = sizeof *self + NODE_FEW * sizeof(PyObject *) };
    bool few = !(self->serial & 1);
    if (few && node_kept.count == node_kept.allowed && mg_cache_grant(GRANT))
        node_kept.allowed += GRANT / SIZE;
    if (!few || node_kept.count >= node_kept.allowed) {
        PyObject_GC_Del(self);
        return;
    }
    self->weak = (PyObject *)node_kept.top;
    node_kept.top = self;
    node_kept.count++;
}

static PyObject *node_record(PyObject *class, PyObject *const *given, Py_ssize_t count) {
    static long long made;
    if (count <= NODE_GIVEN)
        return PyErr_Format(PyExc_TypeError, "record(op, saved, args, adapted, *parents)");
    Py_ssize_t parents = count - NODE_GIVEN;
    node *self = node_take((PyTypeObject *)class, parents);
    if (!self) return NULL;
    Py_SET_SIZE((PyVarObject *)self, parents);
    for (Py_ssize_t i = 0; i < count; i++) {
        Py_INCREF(given[i]);
        *(i < NODE_GIVEN ? &self->fields[i] : &self->parents[i - NODE_GIVEN]) = given[i];
    }
    Py_INCREF(Py_None);
    self->fields[NODE_HOOKS] = Py_None;
    self->weak = NULL;
    self->serial = __atomic_fetch_add(&made, 2, __ATOMIC_RELAXED) | (parents > NODE_FEW);
    PyObject_GC_Track(self);
    return (PyObject *)self;
}

static int node_traverse(PyObject *object, visitproc visit, void *arg) {
    node *self = (node *)object;
    Py_VISIT(Py_TYPE(object));
    for (int i = 0; i < NODE_FIELDS; i++) Py_VISIT(self->fields[i]);
    for (Py_ssize_t i = 0; i < Py_SIZE(self); i++) Py_VISIT(self->parents[i]);
    return 0;
}

static int node_clear(PyObject *object) {
    node *self = (node *)object;
    Py_ssize_t count = Py_SIZE(self);
    Py_SET_SIZE((PyVarObject *)self, 0);
    for (Py_ssize_t i = 0; i < count; i++) Py_DECREF(self->parents[i]);
    for (int i = 0; i < NODE_FIELDS; i++) Py_CLEAR(self->fields[i]);
    return 0;
}

/* What a node is the last to hold goes with it, and so on: one after the other, however deep the
 * graph. Those that wait are a list, linked where weak references were. */
static void node_free(PyObject *self) {
    static _Thread_local PyObject *waiting;
    static _Thread_local bool freeing;
    PyObject_GC_UnTrack(self);
    if (((node *)self)->weak) PyObject_ClearWeakRefs(self);
    ((node *)self)->weak = waiting;
    waiting = self;
    if (freeing) return;
    freeing = true;
    while ((self = waiting)) {
        waiting = ((node *)self)->weak;
        PyTypeObject *class = Py_TYPE(self);
        node_clear(self);
        node_give((node *)self);
        Py_DECREF(class);
    }
    freeing = false;
}

/* ---- what Python sees ---- */

static PyObject *node_parents(PyObject *object, void *unused) {
    (void)unused;
    node *self = (node *)object;
    if (!Py_SIZE(self)) Py_RETURN_NONE;
    PyObject *made = PyTuple_New(Py_SIZE(self));
    for (Py_ssize_t i = 0; made && i < Py_SIZE(self); i++) {
        Py_INCREF(self->parents[i]);
        PyTuple_SetItem(made, i, self->parents[i]);
    }
    return made;
}

static PyObject *node_serial(PyObject *self, void *unused) {
    (void)unused;
    return PyLong_FromLongLong(((node *)self)->serial >> 1);
}

static PyObject *node_wanted(PyObject *self, void *unused) {
    (void)unused;
    long bits = 0;
    for (Py_ssize_t i = 0; i < Py_SIZE(self) && i < 16; i++)
        bits |= (long)(((node *)self)->parents[i] != Py_None) << i;
    return PyLong_FromLong(bits);
}

/* Lets go of the parents, and of all else that only its own backward needs. */
static PyObject *node_release(PyObject *object, PyObject *unused) {
    (void)unused;
    node *self = (node *)object;
    PyObject *saved = self->fields[NODE_SAVED], *args = self->fields[NODE_ARGS];
    Py_ssize_t count = Py_SIZE(self);
    Py_SET_SIZE((PyVarObject *)self, 0);
    for (int i = NODE_SAVED; i <= NODE_ARGS; i++) {
        Py_INCREF(Py_None);
        self->fields[i] = Py_None;
    }
    for (Py_ssize_t i = 0; i < count; i++) Py_DECREF(self->parents[i]);
    Py_XDECREF(saved); /* none where someone deleted it */
    Py_XDECREF(args);
    Py_RETURN_NONE;
}

static PyObject *node_name(PyObject *self, PyObject *unused) {
    (void)unused;
    PyObject *op = ((node *)self)->fields[NODE_OP]; /* gone where a cycle is being broken */
    return PyObject_GetAttrString(op ? op : Py_None, "name");
}

static PyObject *node_repr(PyObject *self) {
    PyObject *name = node_name(self, NULL);
    PyObject *text = name ? PyUnicode_FromFormat("<%S>", name) : NULL;
    Py_XDECREF(name);
    return text;
}

static PyObject *node_refuse(PyTypeObject *class, PyObject *args, PyObject *named) {
    (void)class, (void)args, (void)named;
    return PyErr_Format(PyExc_TypeError, "nodes come from operations");
}

#define NODE_FIELD(name, place) {name, T_OBJECT_EX, offsetof(node, fields[place]), 0, NULL}
static PyMemberDef node_members[] = {
    NODE_FIELD("op", NODE_OP),
    NODE_FIELD("saved", NODE_SAVED),
    NODE_FIELD("args", NODE_ARGS),
    NODE_FIELD("adapted", NODE_ADAPTED),
    NODE_FIELD("hooks", NODE_HOOKS),
    {"__weaklistoffset__", T_PYSSIZET, offsetof(node, weak), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};
static PyGetSetDef node_getters[] = {
    {"parents", node_parents, NULL, NULL, NULL},
    {"wanted", node_wanted, NULL, NULL, NULL},
    {"serial", node_serial, NULL, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};
static PyMethodDef node_methods[] = {
    METHOD("record", node_record, METH_FASTCALL | METH_CLASS),
    METHOD("release", node_release, METH_NOARGS),
    METHOD("name", node_name, METH_NOARGS),
    {NULL, NULL, 0, NULL},
};
static char node_doc[] = "One recorded operation.";
static PyType_Slot node_slots[] = {{Py_tp_doc, node_doc},
                                   {Py_tp_dealloc, (void *)node_free},
                                   {Py_tp_traverse, (void *)node_traverse},
                                   {Py_tp_clear, (void *)node_clear},
                                   {Py_tp_repr, (void *)node_repr},
                                   {Py_tp_new, (void *)node_refuse},
                                   {Py_tp_members, node_members},
                                   {Py_tp_getset, node_getters},
                                   {Py_tp_methods, node_methods},
                                   {0, NULL}};
static PyType_Spec node_spec = {"minigrad.tape.Node", sizeof(node), sizeof(PyObject *),
                                Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, node_slots};

static PyObject *node_class;

static bool node_is(PyObject *x) { return (PyObject *)Py_TYPE(x) == node_class; }

mg_object *mg_node_class(void) {
    if (node_class) { /* as all that is kept of Python here, it is that of one import */
        PyErr_SetString(PyExc_ImportError,
                        "minigrad is imported already, and cannot be twice in one process: the "
                        "modules of the first import were taken out of sys.modules, or this is a "
                        "subinterpreter");
        return NULL;
    }
    node_class = PyType_FromSpec(&node_spec);
    Py_XINCREF(node_class);
    return (mg_object *)node_class;
}

#endif
