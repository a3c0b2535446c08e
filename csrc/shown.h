/* shown.h: an array as NumPy reads it, by the structure of its array interface (version 3), and arrays
 * on memory that is NumPy's. */
#ifndef MG_SHOWN_H
#define MG_SHOWN_H

#include "memory/array.h"
#include "view.h"

MG_PLANNING

/* What a NumPy array on a C array's memory keeps alive; where that array may be written to, it is
 * lent until this goes. */
typedef struct {
    PyObject_HEAD
    PyObject *handle;
    bool lent;
} shown;

/* As NumPy has it in ndarraytypes.h. */
typedef struct {
    int two, ndim;
    char kind;
    int itemsize, flags;
    Py_ssize_t *shape, *strides;
    void *data;
    PyObject *description;
    Py_ssize_t sizes[2][MG_MAX_NDIM];
} shown_layout;

enum { SHOWN_IN_ORDER = 0x1, SHOWN_ALIGNED = 0x100, SHOWN_NATIVE = 0x200, SHOWN_WRITABLE = 0x400 };

static void shown_layout_free(PyObject *capsule) { PyMem_Free(PyCapsule_GetPointer(capsule, NULL)); }

static PyObject *shown_struct(PyObject *self, void *unused) {
    (void)unused;
    const mg_array *x = handle_array(((shown *)self)->handle);
    shown_layout *made = PyMem_Malloc(sizeof *made);
    if (!made) return PyErr_NoMemory();
    int itemsize = (int)mg_itemsize(x->dtype);
    *made = (shown_layout){.two = 2, .ndim = x->ndim, .itemsize = itemsize, .data = x->data};
    int wide = mg_wide(x->dtype);
    made->kind = x->dtype == MG_UINT8 ? 'u' : wide == MG_BOOL ? 'b' : wide == MG_INT64 ? 'i' : 'f';
    made->flags = SHOWN_ALIGNED | SHOWN_NATIVE | (((shown *)self)->lent ? SHOWN_WRITABLE : 0) |
                  (mg_contiguous_now(x) ? SHOWN_IN_ORDER : 0);
    made->shape = made->sizes[0];
    made->strides = made->sizes[1];
    for (int d = 0; d < x->ndim; d++) {
        made->shape[d] = (Py_ssize_t)x->shape[d];
        made->strides[d] = (Py_ssize_t)x->strides[d] * itemsize;
    }
    PyObject *capsule = PyCapsule_New(made, NULL, shown_layout_free);
    if (!capsule) PyMem_Free(made);
    return capsule;
}

static void shown_free(PyObject *object) {
    PyTypeObject *class = Py_TYPE(object);
    shown *self = (shown *)object;
    if (self->lent) mg_share(handle_array(self->handle), -1);
    Py_DECREF(self->handle);
    PyObject_Free(object);
    Py_DECREF(class);
}

static PyGetSetDef shown_fields[] = {{"__array_struct__", shown_struct, NULL, NULL, NULL},
                                     {NULL, NULL, NULL, NULL, NULL}};
static PyType_Slot shown_slots[] = {{Py_tp_dealloc, (void *)shown_free},
                                    {Py_tp_new, (void *)handle_refuse},
                                    {Py_tp_getset, shown_fields},
                                    {0, NULL}};
static PyType_Spec shown_spec = {"minigrad.Shown", sizeof(shown), 0, Py_TPFLAGS_DEFAULT, shown_slots};

/* shown(handle): read-only while a graph needs the memory. */
static PyObject *tensor_shown(PyObject *unused, PyObject *const *given, Py_ssize_t count) {
    static PyTypeObject *class;
    (void)unused;
    if (count != 1 || Py_TYPE(given[0]) != handle_array_class)
        return PyErr_Format(PyExc_TypeError, "shown(array)");
    if (handle_array(given[0])->dtype == MG_BFLOAT16)
        return PyErr_Format(PyExc_TypeError,
                            "[numpy] NumPy has no bfloat16: use x.float().numpy(), or "
                            "x.view(mg.int16).numpy() for the bits");
    if (!class) class = (PyTypeObject *)PyType_FromSpec(&shown_spec);
    shown *made = class ? PyObject_New(shown, class) : NULL;
    if (!made) return NULL;
    Py_INCREF(given[0]);
    made->handle = given[0];
    mg_array *x = handle_array(given[0]);
    made->lent = mg_pins(x) == 0 && mg_writable(x);
    if (made->lent) mg_share(x, 1);
    return (PyObject *)made;
}

/* On any thread, with the interpreter's lock or without. */
static void shown_release(void *owner) {
    PyGILState_STATE state = PyGILState_Ensure();
    Py_DECREF((PyObject *)owner);
    PyGILState_Release(state);
}

/* keep(handle, owner): the owner of a handle's borrowed memory lives until the last array on it has gone.
 * No step of bytecode is in that, where Ctrl-C could come and be lost. */
static PyObject *tensor_keep(PyObject *unused, PyObject *const *given, Py_ssize_t count) {
    (void)unused;
    if (count != 2 || Py_TYPE(given[0]) != handle_array_class)
        return PyErr_Format(PyExc_TypeError, "keep(array, owner)");
    mg_buffer *buffer = handle_array(given[0])->buffer;
    if (!buffer->borrowed || buffer->release)
        return PyErr_Format(PyExc_ValueError, "keep: the memory has an owner");
    Py_INCREF(given[1]);
    buffer->owner = given[1];
    buffer->release = shown_release;
    Py_RETURN_NONE;
}
MG_PLANNING_END

#endif
