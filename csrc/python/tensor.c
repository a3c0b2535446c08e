/* tensor.c: the classes Size, a shape, and Fields, the fields of a tensor: its array and its place
 * on the tape. */
#include "speed.h"

/* ---- shapes ---- */

/* Converts a tuple, which is taken over, to a Size. */
static PyObject *size_of_tuple(PyTypeObject *class, PyObject *items) {
    Py_ssize_t count = items ? PyTuple_Size(items) : 0;
    PyObject *made = items ? PyType_GenericAlloc(class, count) : NULL;
    for (Py_ssize_t i = 0; made && i < count; i++) {
        PyObject *item = PyTuple_GetItem(items, i);
        Py_INCREF(item);
        if (PyTuple_SetItem(made, i, item)) Py_CLEAR(made);
    }
    Py_XDECREF(items);
    return made;
}

static PyObject *size_of_array(speed_state *s, const mg_array *array) {
    PyObject *made = PyType_GenericAlloc(s->size_type, array->ndim);
    for (int d = 0; made && d < array->ndim; d++) {
        PyObject *value = PyLong_FromLongLong(array->shape[d]);
        if (!value || PyTuple_SetItem(made, d, value)) Py_CLEAR(made);
    }
    return made;
}

/* Applies a method of tuple to the items and an operand, and converts the result to a Size. */
static PyObject *size_as_tuple(PyObject *self, binaryfunc run, PyObject *operand) {
    PyObject *items = PyTuple_GetSlice(self, 0, PyTuple_Size(self));
    PyObject *made = items ? run(items, operand) : NULL;
    Py_XDECREF(items);
    return size_of_tuple(Py_TYPE(self), made);
}

static PyObject *size_item(PyObject *self, PyObject *index) {
    if (PySlice_Check(index)) return size_as_tuple(self, PyObject_GetItem, index);
    Py_ssize_t at = PyNumber_AsSsize_t(index, PyExc_IndexError);
    if (at == -1 && PyErr_Occurred()) return NULL;
    PyObject *item = PyTuple_GetItem(self, at < 0 ? at + PyTuple_Size(self) : at);
    Py_XINCREF(item);
    return item;
}

static PyObject *size_concat(PyObject *self, PyObject *other) {
    return size_as_tuple(self, PySequence_Concat, other);
}

static PyObject *size_numel(PyObject *self, PyObject *unused) {
    (void)unused;
    PyObject *product = PyLong_FromLong(1);
    for (Py_ssize_t i = 0; product && i < PyTuple_Size(self); i++) {
        PyObject *before = product;
        product = PyNumber_Multiply(before, PyTuple_GetItem(self, i));
        Py_DECREF(before);
    }
    return product;
}

static PyMethodDef size_methods[] = {
    {"numel", size_numel, METH_NOARGS, "numel()\n--\n\nThe number of elements of such a shape."},
    {NULL, NULL, 0, NULL},
};
static PyType_Slot size_slots[] = {
    {Py_tp_doc, "A shape: a tuple of the size of each dimension, with numel().\n\n"
                ">>> import minigrad as mg\n"
                ">>> mg.zeros(2, 3, 4).shape[1:].numel()\n"
                "12\n"},
    {Py_tp_methods, size_methods},
    {Py_mp_subscript, (void *)size_item},
    {Py_sq_concat, (void *)size_concat},
    {0, NULL},
};
static PyType_Spec size_spec = {"minigrad.Size", 0, 0, Py_TPFLAGS_DEFAULT, size_slots};

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

/* The module state that was used last: see tensor_state. */
static speed_state *latest;

void tensor_forget(speed_state *s) {
    __atomic_compare_exchange_n(&latest, &s, NULL, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

/* The module state that a tensor's class was made with, or NULL for other objects. Tensor is a
 * Python class derived from Fields. The state that was used last is tried first. */
static speed_state *tensor_state(PyObject *x) {
    speed_state *s = __atomic_load_n(&latest, __ATOMIC_RELAXED);
    PyTypeObject *class = Py_TYPE(x);
    if (s && (PyObject *)class == s->uses[USE_RESULT]) return s;
    while (class && PyType_GetSlot(class, Py_tp_dealloc) != (void *)tensor_free)
        class = PyType_GetSlot(class, Py_tp_base);
    if (!class) return NULL;
    s = PyType_GetModuleState(class);
    __atomic_store_n(&latest, s, __ATOMIC_RELAXED);
    return s;
}

PyObject *tensor_array(const speed_state *s, PyObject *x) {
    PyObject *array = ((tensor *)x)->fields[TENSOR_ARRAY];
    if (array && array_is(s, array)) return array;
    PyErr_SetString(PyExc_AttributeError, "a tensor that holds no array has no attribute '_h'");
    return NULL;
}

PyObject *tensor_around(speed_state *s, PyObject *array, PyObject *edge, PyObject *shape) {
    PyTypeObject *class = (PyTypeObject *)s->uses[USE_RESULT];
    tensor *made = array ? (tensor *)PyType_GenericAlloc(class, 0) : NULL;
    if (!made) {
        Py_XDECREF(array);
        return NULL;
    }
    PyObject *fields[] = {array, edge, shape, Py_None};
    for (int i = 0; i < 4; i++) {
        if (i) Py_INCREF(fields[i]);
        made->fields[i] = fields[i];
    }
    return (PyObject *)made;
}

PyObject *tensor_of(speed_state *s, mg_array *made) {
    return tensor_around(s, array_object(s, made), Py_None, Py_None);
}

PyObject *tensor_shape(speed_state *s, PyObject *self) {
    PyObject **fields = ((tensor *)self)->fields, *shape = fields[TENSOR_SHAPE];
    if (!shape || shape == Py_None) {
        PyObject *array = tensor_array(s, self);
        if (!array) return NULL;
        Py_INCREF(array); /* allocating a tuple may collect garbage, which may run Python code */
        PyObject *made = size_of_array(s, handle_array(array));
        Py_DECREF(array);
        if (!made) return NULL;
        shape = fields[TENSOR_SHAPE];
        fields[TENSOR_SHAPE] = made;
        Py_XDECREF(shape);
        shape = made;
    }
    Py_INCREF(shape);
    return shape;
}

bool tensor_record(speed_state *s, PyObject *made, PyObject *const *given, Py_ssize_t count) {
    PyObject *made_node = node_record(s, given, count), **fields = ((tensor *)made)->fields;
    if (!made_node) return false;
    Py_DECREF(fields[TENSOR_EDGE]); /* None, as the tensor is new */
    fields[TENSOR_EDGE] = made_node;
    return true;
}

PyObject *tensor_parent(const speed_state *s, PyObject *x) {
    PyObject *edge = ((tensor *)x)->fields[TENSOR_EDGE];
    if ((PyObject *)Py_TYPE(x) == s->uses[USE_STALE_VIEW]) edge = PyObject_GetAttrString(x, "_edge");
    else if (edge) Py_INCREF(edge);
    else {
        PyErr_SetString(PyExc_AttributeError, "a tensor made of nothing has no attribute '_edge'");
        return batched_again((speed_state *)s, "batched_parent", x, NULL, NULL);
    }
    if (edge != Py_True) return edge;
    Py_DECREF(edge);
    Py_INCREF(x);
    return x;
}

/* ---- operators ---- */

static PyObject *tensor_operator(speed_use which, PyObject *a, PyObject *b) {
    speed_state *s = tensor_state(a);
    if (!s) s = tensor_state(b);
    PyObject *both[] = {a, b}, *used = s ? s->uses[which] : NULL;
    if (!used) Py_RETURN_NOTIMPLEMENTED; /* the module is not ready yet */
    PyObject *run = PyTuple_GetItem(used, 0), *otherwise = PyTuple_GetItem(used, 1);
    PyObject *made = apply_run(PyCFunction_GetSelf(run), both, 2);
    if (made != Py_NotImplemented) return made;
    Py_DECREF(made);
    return PyObject_CallFunctionObjArgs(otherwise, a, b, NULL);
}

#define TENSOR_OPERATOR(name, which)                                                           \
    static PyObject *name(PyObject *a, PyObject *b) { return tensor_operator(which, a, b); }
TENSOR_OPERATOR(tensor_add, USE_ADD)
TENSOR_OPERATOR(tensor_sub, USE_SUB)
TENSOR_OPERATOR(tensor_mul, USE_MUL)
TENSOR_OPERATOR(tensor_div, USE_DIV)
static PyObject *tensor_pow(PyObject *a, PyObject *b, PyObject *modulo) {
    if (modulo != Py_None) Py_RETURN_NOTIMPLEMENTED;
    return tensor_operator(USE_POW, a, b);
}

/* ---- attributes ---- */

static PyObject *tensor_get_shape(PyObject *self, void *unused) {
    (void)unused;
    return tensor_shape(tensor_state(self), self);
}

/* How often this thread read or set the `grad` of a tensor. A recorder compares it. */
static _Thread_local long long tensor_grad_count;

PyObject *tensor_grad_uses(PyObject *module, PyObject *unused) {
    (void)module, (void)unused;
    return PyLong_FromLongLong(tensor_grad_count);
}

static PyObject *tensor_get_grad(PyObject *self, void *unused) {
    (void)unused;
    tensor_grad_count++;
    PyObject *held = ((tensor *)self)->fields[TENSOR_GRAD];
    if (!held) held = Py_None;
    Py_INCREF(held);
    return held;
}

/* True if g may be assigned to `grad`. Gradients from a backward pass are not checked. The tensor
 * may have got other values since. */
static bool tensor_takes_grad(speed_state *s, PyObject *self, PyObject *g) {
    if (g == Py_None) return true;
    PyObject *array = tensor_array(s, self);
    PyObject *other = array && tensor_is(s, g) ? tensor_array(s, g) : NULL;
    if (PyErr_Occurred()) return false;
    if (other && g != self && s->core->alike(handle_array(array), handle_array(other))) return true;
    engine_raise(s, "misfit_error", self, g);
    return false;
}

static int tensor_set_grad(PyObject *self, PyObject *g, void *unused) {
    (void)unused;
    tensor_grad_count++;
    if (!g) g = Py_None; /* the attribute is deleted */
    if (!tensor_takes_grad(tensor_state(self), self, g)) return -1;
    PyObject **place = &((tensor *)self)->fields[TENSOR_GRAD], *held = *place;
    Py_INCREF(g);
    *place = g;
    Py_XDECREF(held);
    return 0;
}

#define TENSOR_FIELD(name, place) {name, T_OBJECT_EX, offsetof(tensor, fields[place]), 0, NULL}
static PyMemberDef tensor_members[] = {
    TENSOR_FIELD("_h", TENSOR_ARRAY),
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
    {"shape", tensor_get_shape, NULL, "The size of each dimension.", NULL},
    {"grad", tensor_get_grad, tensor_set_grad,
     "The gradient that backward calls added up, or None.", NULL},
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
static PyType_Spec tensor_spec = {"minigrad.tape.tensor_base.Fields", sizeof(tensor), 0,
                                  Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
                                  tensor_slots};

bool tensor_make_types(speed_state *s, PyObject *module) {
    PyObject *bases = PyTuple_Pack(1, (PyObject *)&PyTuple_Type);
    if (bases) s->size_type = (PyTypeObject *)PyType_FromModuleAndSpec(module, &size_spec, bases);
    Py_XDECREF(bases);
    s->tensor_type = (PyTypeObject *)PyType_FromModuleAndSpec(module, &tensor_spec, NULL);
    return s->size_type && s->tensor_type;
}
