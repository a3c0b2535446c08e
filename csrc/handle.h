/* handle.h: what Python holds of an array, or of saved arrays.
 *
 * cffi would make two objects of each result: a pointer, and one that releases what it points to. A
 * handle is both in one, and that takes a third off the time of a small operation. cffi still reads
 * and makes everything else; the macros at the end are where its wrappers come by. */
#ifndef MG_HANDLE_H
#define MG_HANDLE_H

#include "base/platform.h"
#include "minigrad.h"

typedef struct {
    PyObject_HEAD
    void *held;
} handle;

typedef struct _cffi_ctypedescr handle_ctype;

/* Python's classes of handles, made when first needed. */
static PyTypeObject *handle_array_class, *handle_saved_class;

/* cffi's types of what functions take, in the order in which `know` is given them. */
enum { HANDLE_ARRAY, HANDLE_ARRAYS, HANDLE_STORED, HANDLE_STORED_ARRAYS, HANDLE_SAVED, HANDLE_TYPES };
static handle_ctype *handle_types[HANDLE_TYPES];

/* ---- fields ---- */

static mg_array *handle_array(PyObject *self) { return ((handle *)self)->held; }

static PyObject *handle_int(PyObject *self, void *offset) {
    return PyLong_FromLong(*(int32_t *)((char *)handle_array(self) + (size_t)offset));
}
static PyObject *handle_address(PyObject *self, void *offset) {
    return PyLong_FromVoidPtr(*(void **)((char *)handle_array(self) + (size_t)offset));
}
static PyObject *handle_size(PyObject *self, void *unused) {
    (void)unused;
    return PyLong_FromLongLong(handle_array(self)->size);
}

/* Shape or strides, as a tuple. */
static PyObject *handle_each_axis(PyObject *self, void *offset) {
    const int64_t *values = (int64_t *)((char *)handle_array(self) + (size_t)offset);
    int ndim = handle_array(self)->ndim;
    PyObject *made = PyTuple_New(ndim);
    for (int d = 0; made && d < ndim; d++) {
        PyObject *value = PyLong_FromLongLong(values[d]);
        if (!value || PyTuple_SetItem(made, d, value) < 0) Py_CLEAR(made);
    }
    return made;
}

/* As a pointer of cffi's; it does not keep the array. */
static PyObject *handle_pointer(PyObject *self, void *unused) {
    (void)unused;
    return _cffi_from_c_pointer(((handle *)self)->held, handle_types[HANDLE_ARRAY]);
}

static PyGetSetDef handle_array_fields[] = {
    {"data", handle_address, NULL, NULL, (void *)offsetof(mg_array, data)},
    {"buffer", handle_address, NULL, NULL, (void *)offsetof(mg_array, buffer)},
    {"size", handle_size, NULL, NULL, NULL},
    {"dtype", handle_int, NULL, NULL, (void *)offsetof(mg_array, dtype)},
    {"ndim", handle_int, NULL, NULL, (void *)offsetof(mg_array, ndim)},
    {"weak", handle_int, NULL, NULL, (void *)offsetof(mg_array, weak)},
    {"adapted", handle_int, NULL, NULL, (void *)offsetof(mg_array, adapted)},
    {"shape", handle_each_axis, NULL, NULL, (void *)offsetof(mg_array, shape)},
    {"strides", handle_each_axis, NULL, NULL, (void *)offsetof(mg_array, strides)},
    {"pointer", handle_pointer, NULL, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

/* ---- the classes ---- */

/* The owner of borrowed memory goes with it, which may run Python: it must not see an error that is on
 * its way. */
static void handle_give_back(void *held, bool array) {
    PyObject *error = NULL, *value = NULL, *trace = NULL;
    bool failing = PyErr_Occurred();
    if (failing) PyErr_Fetch(&error, &value, &trace);
    if (array) mg_release(held);
    else mg_unsave(held);
    if (failing) PyErr_Restore(error, value, trace);
}
static void handle_free(PyObject *self) {
    PyTypeObject *class = Py_TYPE(self);
    handle_give_back(((handle *)self)->held, class == handle_array_class);
    PyObject_Free(self);
    Py_DECREF(class);
}

static PyObject *handle_refuse(PyTypeObject *class, PyObject *args, PyObject *named) {
    (void)class, (void)args, (void)named;
    return PyErr_Format(PyExc_TypeError, "handles come from kernels");
}

static PyType_Slot handle_array_slots[] = {{Py_tp_dealloc, (void *)handle_free},
                                           {Py_tp_new, (void *)handle_refuse},
                                           {Py_tp_getset, handle_array_fields},
                                           {0, NULL}};
static PyType_Slot handle_saved_slots[] = {
    {Py_tp_dealloc, (void *)handle_free}, {Py_tp_new, (void *)handle_refuse}, {0, NULL}};
static PyType_Spec handle_array_spec = {"minigrad.Array", sizeof(handle), 0, Py_TPFLAGS_DEFAULT,
                                        handle_array_slots};
static PyType_Spec handle_saved_spec = {"minigrad.Saved", sizeof(handle), 0, Py_TPFLAGS_DEFAULT,
                                        handle_saved_slots};

/* None for NULL. Takes over what is held, whether there is memory for a handle or not. */
static PyObject *handle_new(PyTypeObject **class, PyType_Spec *spec, void *held) {
    if (!held) Py_RETURN_NONE;
    if (!*class) *class = (PyTypeObject *)PyType_FromSpec(spec);
    handle *made = *class ? PyObject_New(handle, *class) : NULL;
    if (made) made->held = held;
    else handle_give_back(held, class == &handle_array_class);
    return (PyObject *)made;
}
static PyObject *handle_around(mg_array *array) {
    return handle_new(&handle_array_class, &handle_array_spec, array);
}
static PyObject *handle_around_saved(mg_saved *saved) {
    return handle_new(&handle_saved_class, &handle_saved_spec, saved);
}

/* ---- where cffi's wrappers come by ---- */

static MG_NOINLINE PyObject *handle_of_array(char *array, handle_ctype *ctype) {
    (void)ctype;
    return handle_around((mg_array *)array);
}

/* Several, as a tuple. They are copied first: other calls may run while Python makes objects. */
static MG_NOINLINE PyObject *handle_of_arrays(char *address, handle_ctype *ctype) {
    (void)ctype;
    if (!address) Py_RETURN_NONE;
    mg_arrays several = *(mg_arrays *)address;
    PyObject *made = PyTuple_New(several.count);
    for (int i = 0; i < several.count; i++) {
        PyObject *one = handle_around(several.made[i]);
        if (!made) Py_CLEAR(one);
        if (!one || PyTuple_SetItem(made, i, one) < 0) Py_CLEAR(made);
    }
    return made;
}

static MG_NOINLINE PyObject *handle_of_saved(char *saved, handle_ctype *ctype) {
    (void)ctype;
    return handle_around_saved((mg_saved *)saved);
}

static MG_NOINLINE PyObject *handle_of_object(char *object, handle_ctype *ctype) {
    (void)ctype;
    return (PyObject *)object;
}

static MG_NOINLINE PyObject *handle_of_none(char *address, handle_ctype *ctype) {
    return _cffi_from_c_pointer(address, ctype);
}

/* Of a list or tuple, whatever a class of its own says of its length; of others 0. */
static Py_ssize_t handle_count(PyObject *given) {
    return PyTuple_Check(given) ? PyTuple_Size(given) : PyList_Check(given) ? PyList_Size(given) : 0;
}
/* The first of handles in a list or tuple, in which None stands for no array; else NULL. Borrowed. */
static PyObject *handle_first(PyObject *given) {
    bool tuple = PyTuple_Check(given);
    Py_ssize_t count = handle_count(given);
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *one = tuple ? PyTuple_GetItem(given, i) : PyList_GetItem(given, i);
        if (one != Py_None) return Py_TYPE(one) == handle_array_class ? one : NULL;
    }
    return NULL;
}

/* know(types): cffi's. */
static PyObject *handle_know(PyObject *unused, PyObject *const *given, Py_ssize_t count) {
    (void)unused;
    if (count != HANDLE_TYPES) return PyErr_Format(PyExc_TypeError, "know(types)");
    for (int i = 0; i < HANDLE_TYPES; i++) {
        Py_INCREF(given[i]);
        handle_types[i] = (handle_ctype *)given[i];
    }
    Py_RETURN_NONE;
}

/* Does a function take the handle as an argument of this type? A storage dtype only where it says so. */
MG_INLINE bool handle_fits(handle_ctype *ctype, PyObject *given) {
    if (Py_TYPE(given) == handle_saved_class) return ctype == handle_types[HANDLE_SAVED];
    if (Py_TYPE(given) != handle_array_class) return false;
    return ctype == handle_types[HANDLE_ARRAY] ? handle_array(given)->dtype >= MG_BOOL
                                               : ctype == handle_types[HANDLE_STORED];
}

/* A handle as an argument is what it holds, if that is what the function takes; several of them are an
 * array, in room that the wrapper frees after the call. Whether it failed. */
static MG_NOINLINE bool handle_argument(handle_ctype *ctype, PyObject *given, char **to,
                                        struct _cffi_freeme_s **room) {
    if (handle_fits(ctype, given)) {
        *to = ((handle *)given)->held;
        return false;
    }
    bool any = ctype == handle_types[HANDLE_STORED_ARRAYS];
    bool several = (any || ctype == handle_types[HANDLE_ARRAYS]) && handle_first(given);
    Py_ssize_t size = several ? handle_count(given) * (Py_ssize_t)sizeof(mg_array *)
                              : _cffi_prepare_pointer_call_argument(ctype, given, to);
    if (size == 0) return false;
    *to = NULL; /* cffi makes room, and fills it with what is none of ours */
    PyObject *filled = several ? PyTuple_New(0) : given;
    bool failed = size < 0 || !filled || _cffi_convert_array_argument(ctype, filled, to, size, room) < 0;
    if (failed && !PyErr_Occurred()) PyErr_NoMemory(); /* which cffi does not say */
    if (several) Py_XDECREF(filled);
    Py_ssize_t count = several ? size / (Py_ssize_t)sizeof(mg_array *) : 0;
    handle_ctype *each = handle_types[any ? HANDLE_STORED : HANDLE_ARRAY];
    for (Py_ssize_t i = 0; !failed && i < count; i++) {
        PyObject *one = PySequence_GetItem(given, i);
        failed = !one || (one != Py_None && !handle_fits(each, one));
        if (!failed) ((mg_array **)*to)[i] = one == Py_None ? NULL : handle_array(one);
        else if (one) PyErr_SetString(PyExc_TypeError, "handles of arrays only");
        Py_XDECREF(one);
    }
    if (failed && *room) _cffi_free_array_arguments(*room); /* the wrapper returns without it */
    return failed;
}

/* Expanded where `result` is what the function returned. */
#undef _cffi_from_c_pointer
#define _cffi_from_c_pointer(address, ctype)                                                   \
    _Generic(result, mg_array *: handle_of_array, mg_arrays *: handle_of_arrays,               \
             mg_saved *: handle_of_saved, mg_object *: handle_of_object,                       \
             default: handle_of_none)(address, ctype)
/* cffi would make room for an array on the stack of each wrapper, 80 bytes of code for each pointer that
 * it takes; where a failure is all that is left to meet, there is none. */
#undef _cffi_prepare_pointer_call_argument
#define _cffi_prepare_pointer_call_argument(ctype, given, to)                                  \
    (handle_argument(ctype, given, to, &large_args_free) ? -1 : 0)
#define _cffi_convert_array_argument(ctype, given, to, size, room) (-1)

#endif
