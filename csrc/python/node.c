/* node.c: the class Node, one recorded operation. Its fields are explained in
 * minigrad/tape/node.py. */
#include "speed.h"

/* ---- memory ----
 *
 * Small nodes that were freed serve again. Otherwise the pages of a long graph go back to the system,
 * which clears them for the next graph, and the garbage collector runs while the next graph grows. */

static node *node_take(speed_state *s, Py_ssize_t parents) {
    node *self = parents <= NODE_SMALL ? (node *)s->free_nodes : NULL;
    if (self) {
        s->free_nodes = self->weak;
        s->free_count--;
        return (node *)PyObject_InitVar((PyVarObject *)self, s->node_type, parents);
    }
    self = PyObject_GC_NewVar(node, s->node_type, parents < NODE_SMALL ? NODE_SMALL : parents);
    if (self) Py_SET_SIZE((PyVarObject *)self, parents);
    return self;
}

static void node_give(speed_state *s, node *self) {
    enum { GRANT = 64 << 10, SIZE = sizeof *self + NODE_SMALL * sizeof(PyObject *) };
    bool keep = self->is_small && s->node_type; /* the type is NULL once the module is cleared */
    if (keep && s->free_count == s->free_limit && s->core->cache_grant(GRANT))
        s->free_limit += GRANT / SIZE;
    if (!keep || s->free_count >= s->free_limit) {
        PyObject_GC_Del(self);
        return;
    }
    self->weak = s->free_nodes;
    s->free_nodes = (PyObject *)self;
    s->free_count++;
}

void node_forget(speed_state *s) {
    for (PyObject *self; (self = s->free_nodes);) {
        s->free_nodes = ((node *)self)->weak;
        PyObject_GC_Del(self);
    }
    s->free_count = s->free_limit = 0;
}

/* ---- making and freeing ---- */

PyObject *node_record(speed_state *s, PyObject *const *given, Py_ssize_t count) {
    static long long serials;
    if (count <= NODE_GIVEN)
        return PyErr_Format(PyExc_TypeError, "record(op, saved, args, inputs, *parents)");
    Py_ssize_t parents = count - NODE_GIVEN;
    node *self = node_take(s, parents);
    if (!self) return NULL;
    for (Py_ssize_t i = 0; i < count; i++) {
        Py_INCREF(given[i]);
        *(i < NODE_GIVEN ? &self->fields[i] : &self->parents[i - NODE_GIVEN]) = given[i];
    }
    Py_INCREF(Py_None);
    self->fields[NODE_HOOKS] = Py_None;
    self->weak = NULL;
    self->serial = __atomic_fetch_add(&serials, 1, __ATOMIC_RELAXED);
    self->is_small = parents <= NODE_SMALL;
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

/* Frees a node, and then the nodes that it was the last to hold, in a loop rather than by
 * recursion. Deep graphs thus need no deep stack. Waiting nodes form a list, linked by the field
 * `weak`. */
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
        node_give(PyType_GetModuleState(class), (node *)self);
        Py_DECREF(class);
    }
    freeing = false;
}

void node_release(node *self) {
    PyObject *saved = self->fields[NODE_SAVED], *args = self->fields[NODE_ARGS];
    Py_ssize_t count = Py_SIZE(self);
    Py_SET_SIZE((PyVarObject *)self, 0);
    for (int i = NODE_SAVED; i <= NODE_ARGS; i++) {
        Py_INCREF(Py_None);
        self->fields[i] = Py_None;
    }
    for (Py_ssize_t i = 0; i < count; i++) Py_DECREF(self->parents[i]);
    Py_XDECREF(saved); /* NULL if somebody deleted it */
    Py_XDECREF(args);
}

/* ---- attributes and methods ---- */

static PyObject *node_get_parents(PyObject *object, void *unused) {
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

static PyObject *node_get_serial(PyObject *self, void *unused) {
    (void)unused;
    return PyLong_FromLongLong(((node *)self)->serial);
}

static PyObject *node_get_needs_grad(PyObject *self, void *unused) {
    (void)unused;
    long bits = 0;
    for (Py_ssize_t i = 0; i < Py_SIZE(self) && i < 16; i++)
        bits |= (long)(((node *)self)->parents[i] != Py_None) << i;
    return PyLong_FromLong(bits);
}

static PyObject *node_class_record(PyObject *class, PyObject *const *given, Py_ssize_t count) {
    return node_record(PyType_GetModuleState((PyTypeObject *)class), given, count);
}

static PyObject *node_method_release(PyObject *self, PyObject *unused) {
    (void)unused;
    node_release((node *)self);
    Py_RETURN_NONE;
}

static PyObject *node_name(PyObject *self, PyObject *unused) {
    (void)unused;
    /* NULL while a reference cycle is being broken */
    PyObject *op = ((node *)self)->fields[NODE_OP];
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
    NODE_FIELD("input_meta", NODE_INPUTS),
    NODE_FIELD("hooks", NODE_HOOKS),
    {"__weaklistoffset__", T_PYSSIZET, offsetof(node, weak), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};
static PyGetSetDef node_getters[] = {
    {"parents", node_get_parents, NULL, NULL, NULL},
    {"needs_grad", node_get_needs_grad, NULL, NULL, NULL},
    {"serial", node_get_serial, NULL, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};
static PyMethodDef node_methods[] = {
    METHOD("record", node_class_record, METH_FASTCALL | METH_CLASS),
    METHOD("release", node_method_release, METH_NOARGS),
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
static PyType_Spec node_spec = {"minigrad.tape.node.Node", sizeof(node), sizeof(PyObject *),
                                Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, node_slots};

bool node_make_type(speed_state *s, PyObject *module) {
    s->node_type = (PyTypeObject *)PyType_FromModuleAndSpec(module, &node_spec, NULL);
    return s->node_type;
}
