/* array.c: the classes Array and Saved, and calls of the core's operations. */
#include "speed.h"

#include <string.h>

/* ---- the interpreter's lock ---- */

/* State of the interpreter's lock in this thread. NULL outside calls of the core; the address of
 * this variable while a call holds the lock. Else the thread state that is needed to take the lock
 * back. */
static _Thread_local void *gil;

void *gil_enter(void) {
    void *outer = gil;
    gil = &gil;
    return outer;
}

void gil_leave(void *outer) {
    if (gil != &gil) PyEval_RestoreThread(gil);
    gil = outer;
}

void gil_give_up(void) {
    if (gil == &gil) gil = PyEval_SaveThread();
}

/* ---- fields ---- */

static PyObject *numbers_tuple(const int64_t *values, int count) {
    PyObject *made = PyTuple_New(count);
    for (int d = 0; made && d < count; d++) {
        PyObject *value = PyLong_FromLongLong(values[d]);
        if (!value || PyTuple_SetItem(made, d, value) < 0) Py_CLEAR(made);
    }
    return made;
}
PyObject *array_shape(const mg_array *array) { return numbers_tuple(array->shape, array->ndim); }

static const mg_core *core_of(PyObject *self) { return ((handle *)self)->core; }

#define ARRAY_GETTER(name, value)                                                              \
    static PyObject *array_get_##name(PyObject *self, void *unused) {                          \
        const mg_array *x = handle_array(self);                                                \
        (void)unused, (void)x;                                                                 \
        return value;                                                                          \
    }
ARRAY_GETTER(data, PyLong_FromVoidPtr(x->data))
ARRAY_GETTER(buffer, PyLong_FromUnsignedLongLong(core_of(self)->buffer_id(x)))
ARRAY_GETTER(size, PyLong_FromLongLong(x->size))
ARRAY_GETTER(dtype, PyLong_FromLong(x->dtype))
ARRAY_GETTER(ndim, PyLong_FromLong(x->ndim))
ARRAY_GETTER(weak, PyLong_FromLong(x->weak))
ARRAY_GETTER(adapted, PyLong_FromLong(x->adapted))
ARRAY_GETTER(shape, array_shape(x))
ARRAY_GETTER(strides, numbers_tuple(x->strides, x->ndim))
ARRAY_GETTER(version, PyLong_FromLongLong(core_of(self)->version(x)))
ARRAY_GETTER(pins, PyLong_FromLongLong(core_of(self)->pins(x)))
ARRAY_GETTER(writable, PyBool_FromLong(core_of(self)->writable(x)))
ARRAY_GETTER(contiguous, PyBool_FromLong(core_of(self)->contiguous_now(x)))
ARRAY_GETTER(sole, PyBool_FromLong(core_of(self)->sole_owner(x)))
ARRAY_GETTER(overlapping, PyBool_FromLong(core_of(self)->overlaps_itself(x)))

#define ARRAY_FIELD(name) {#name, array_get_##name, NULL, NULL, NULL}
static PyGetSetDef array_fields[] = {
    ARRAY_FIELD(data),       ARRAY_FIELD(buffer),  ARRAY_FIELD(size),     ARRAY_FIELD(dtype),
    ARRAY_FIELD(ndim),       ARRAY_FIELD(weak),    ARRAY_FIELD(adapted),  ARRAY_FIELD(shape),
    ARRAY_FIELD(strides),    ARRAY_FIELD(version), ARRAY_FIELD(pins),     ARRAY_FIELD(writable),
    ARRAY_FIELD(contiguous), ARRAY_FIELD(sole),    ARRAY_FIELD(overlapping),
    {NULL, NULL, NULL, NULL, NULL},
};

/* ---- methods ---- */

static PyObject *array_alike(PyObject *self, PyObject *other) {
    if (Py_TYPE(other) != Py_TYPE(self)) return PyErr_Format(PyExc_TypeError, "alike(array)");
    return PyBool_FromLong(core_of(self)->alike(handle_array(self), handle_array(other)));
}

static PyObject *array_item(PyObject *self, PyObject *unused) {
    (void)unused;
    const mg_array *x = handle_array(self);
    bool real = is_float(x->dtype) || x->dtype == MG_FLOAT16 || x->dtype == MG_BFLOAT16;
    return real ? PyFloat_FromDouble(core_of(self)->item_float(x))
                : PyLong_FromLongLong(core_of(self)->item_int(x));
}

static PyObject *array_mark_weak(PyObject *self, PyObject *unused) {
    (void)unused;
    handle_array(self)->weak = 1;
    Py_RETURN_NONE;
}

static PyObject *array_freeze(PyObject *self, PyObject *unused) {
    (void)unused;
    core_of(self)->seal(handle_array(self));
    Py_RETURN_NONE;
}

static PyObject *array_share(PyObject *self, PyObject *count) {
    long number = PyLong_AsLong(count);
    if (number == -1 && PyErr_Occurred()) return NULL;
    core_of(self)->share(handle_array(self), (int)number);
    Py_RETURN_NONE;
}

static PyObject *saved_buffer(PyObject *self, PyObject *i) {
    long place = PyLong_AsLong(i);
    if (place == -1 && PyErr_Occurred()) return NULL;
    return PyLong_FromUnsignedLongLong(core_of(self)->saved_buffer(handle_saved(self), (int)place));
}

static PyMethodDef array_methods[] = {
    METHOD("alike", array_alike, METH_O),
    METHOD("item", array_item, METH_NOARGS),
    METHOD("mark_weak", array_mark_weak, METH_NOARGS),
    METHOD("freeze", array_freeze, METH_NOARGS),
    METHOD("share", array_share, METH_O),
    {NULL, NULL, 0, NULL},
};
static PyMethodDef saved_methods[] = {METHOD("buffer", saved_buffer, METH_O), {NULL, NULL, 0, NULL}};

/* ---- the classes ---- */

/* Releases what an object holds. That may free the owner of borrowed memory, which may run Python
 * code. Python code must not see an error that is set, so the error is put aside meanwhile. */
static void handle_free(PyObject *self, void (*release)(void *held)) {
    PyTypeObject *class = Py_TYPE(self);
    PyObject *error = NULL, *value = NULL, *trace = NULL;
    bool failing = PyErr_Occurred();
    if (failing) PyErr_Fetch(&error, &value, &trace);
    release(((handle *)self)->held);
    if (failing) PyErr_Restore(error, value, trace);
    PyObject_Free(self);
    Py_DECREF(class);
}
static void array_free(PyObject *self) {
    handle_free(self, (void (*)(void *))core_of(self)->release);
}
static void saved_free(PyObject *self) {
    handle_free(self, (void (*)(void *))core_of(self)->unsave);
}

static PyObject *handle_refuse(PyTypeObject *class, PyObject *args, PyObject *named) {
    (void)class, (void)args, (void)named;
    return PyErr_Format(PyExc_TypeError, "arrays come from kernels");
}

static PyType_Slot array_slots[] = {{Py_tp_dealloc, (void *)array_free},
                                    {Py_tp_new, (void *)handle_refuse},
                                    {Py_tp_getset, array_fields},
                                    {Py_tp_methods, array_methods},
                                    {0, NULL}};
static PyType_Slot saved_slots[] = {{Py_tp_dealloc, (void *)saved_free},
                                    {Py_tp_new, (void *)handle_refuse},
                                    {Py_tp_methods, saved_methods},
                                    {0, NULL}};
static PyType_Spec array_spec = {"minigrad.Array", sizeof(handle), 0, Py_TPFLAGS_DEFAULT, array_slots};
static PyType_Spec saved_spec = {"minigrad.Saved", sizeof(handle), 0, Py_TPFLAGS_DEFAULT, saved_slots};

bool array_make_types(speed_state *s, PyObject *module) {
    s->array_type = (PyTypeObject *)PyType_FromModuleAndSpec(module, &array_spec, NULL);
    s->saved_type = (PyTypeObject *)PyType_FromModuleAndSpec(module, &saved_spec, NULL);
    return s->array_type && s->saved_type;
}

/* Creates an object. Takes over `held` even if there is no memory for the object. */
static PyObject *handle_new(speed_state *s, PyTypeObject *class, void *held, void (*release)(void *)) {
    handle *made = PyObject_New(handle, class);
    if (made) {
        made->held = held;
        made->core = s->core;
    } else {
        release(held);
    }
    return (PyObject *)made;
}
PyObject *array_object(speed_state *s, mg_array *array) {
    return handle_new(s, s->array_type, array, (void (*)(void *))s->core->release);
}
PyObject *saved_object(speed_state *s, mg_saved *saved) {
    return handle_new(s, s->saved_type, saved, (void (*)(void *))s->core->unsave);
}

/* ---- arguments ---- */

static bool request_grow(request *r, int more) {
    if (r->n + more <= r->room) return true;
    int room = 2 * r->room + more;
    mg_array **in = PyMem_Malloc((size_t)room * sizeof *in);
    PyObject **objects = PyMem_Malloc((size_t)room * sizeof *objects);
    if (!in || !objects) {
        PyMem_Free(in);
        PyMem_Free(objects);
        return PyErr_NoMemory();
    }
    memcpy(in, r->in, (size_t)r->n * sizeof *in);
    memcpy(objects, r->objects, (size_t)r->n * sizeof *objects);
    if (r->in != r->few) PyMem_Free(r->in);
    if (r->objects != r->few_objects) PyMem_Free(r->objects);
    r->in = in;
    r->objects = objects;
    r->room = room;
    return true;
}

static bool request_grow_ints(request *r, Py_ssize_t more) {
    if (r->n_ints + more <= r->room_ints) return true;
    int room = 2 * r->room_ints + (int)more;
    int64_t *ints = PyMem_Malloc((size_t)room * sizeof *ints);
    if (!ints) return PyErr_NoMemory();
    memcpy(ints, r->ints, (size_t)r->n_ints * sizeof *ints);
    if (r->ints != r->few_ints) PyMem_Free(r->ints);
    r->ints = ints;
    r->room_ints = room;
    return true;
}

void request_free(request *r) {
    for (int i = 0; i < r->n; i++) Py_XDECREF(r->objects[i]);
    Py_XDECREF(r->saved_by);
    if (r->in != r->few) PyMem_Free(r->in);
    if (r->objects != r->few_objects) PyMem_Free(r->objects);
    if (r->ints != r->few_ints) PyMem_Free(r->ints);
}

static bool misfit(speed_state *s, int number, const char *what, PyObject *given) {
    PyErr_Format(PyExc_TypeError, "[%s] takes %s, not %R", s->core->run_title(number), what,
                 (PyObject *)Py_TYPE(given));
    return false;
}

PyObject *array_widened(speed_state *s, PyObject *array) {
    int dtype = handle_array(array)->dtype, wide = dtype <= MG_INT32 ? MG_INT64 : MG_FLOAT32;
    mg_array *in = handle_array(array);
    mg_args args = {.ints = (int64_t[]){wide}};
    mg_arrays out;
    Py_INCREF(array);
    void *outer = gil_enter();
    int code = s->core->run(s->kernel_cast, 1, &in, &args, &out);
    gil_leave(outer);
    Py_DECREF(array);
    if (!code) return array_object(s, out.made[0]);
    PyObject *given[] = {array, PyLong_FromLong(wide)};
    if (given[1]) call_check(s, true, s->kernel_cast, given, 2, Py_None);
    Py_XDECREF(given[1]);
    return NULL;
}

static bool request_array(speed_state *s, request *r, int number, char kind, PyObject *x, bool widens) {
    if (!request_grow(r, 1)) return false;
    r->in[r->n] = NULL;
    r->objects[r->n] = NULL;
    if (x == Py_None && kind != 'a' && kind != 's') {
        r->n++;
        return true;
    }
    if (!array_is(s, x)) return misfit(s, number, "arrays", x);
    if (is_storage(handle_array(x)->dtype) && kind != 's' && kind != 'S') {
        if (!widens) {
            PyErr_Format(PyExc_TypeError, "[%s] does not write storage dtypes",
                         s->core->run_title(number));
            return false;
        }
        x = array_widened(s, x);
        if (!x) return false;
    } else {
        Py_INCREF(x);
    }
    r->in[r->n] = handle_array(x);
    r->objects[r->n++] = x;
    return true;
}

static bool request_int(speed_state *s, request *r, int number, PyObject *x) {
    int64_t value = PyLong_AsLongLong(x);
    if (value == -1 && PyErr_Occurred()) {
        if (PyErr_ExceptionMatches(PyExc_OverflowError))
            PyErr_Format(PyExc_ValueError, "[%s] a size or index is beyond int64",
                         s->core->run_title(number));
        return false;
    }
    if (!request_grow_ints(r, 1)) return false;
    r->ints[r->n_ints++] = value;
    return true;
}

static bool request_float(request *r, PyObject *x) {
    if (r->n_floats == sizeof r->floats / sizeof *r->floats) {
        PyErr_SetString(PyExc_ValueError, "too many numbers");
        return false;
    }
    double value = PyFloat_AsDouble(x);
    if (value == -1 && PyErr_Occurred()) return false;
    r->floats[r->n_floats++] = value;
    return true;
}

/* Reads a list argument: its length, then its items. */
static bool request_list(speed_state *s, request *r, int number, char kind, PyObject *list, bool widens) {
    if (!request_grow_ints(r, 1)) return false;
    if (list == Py_None) {
        r->ints[r->n_ints++] = -1;
        return true;
    }
    bool tuple = PyTuple_Check(list);
    if (!tuple && !PyList_Check(list)) return misfit(s, number, "lists", list);
    Py_ssize_t count = tuple ? PyTuple_Size(list) : PyList_Size(list);
    if (count > INT32_MAX) return PyErr_NoMemory();
    r->ints[r->n_ints++] = count;
    /* the list may change, as converting a number may run Python code */
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *x = tuple ? PyTuple_GetItem(list, i) : PyList_GetItem(list, i);
        if (!x) return false;
        bool done = kind == 'A' || kind == 'S' ? request_array(s, r, number, kind, x, widens)
                    : kind == 'D'              ? request_float(r, x)
                                               : request_int(s, r, number, x);
        if (!done) return false;
    }
    return true;
}

bool request_read(speed_state *s, request *r, int number, PyObject *const *args, Py_ssize_t count) {
    r->in = r->few;
    r->objects = r->few_objects;
    r->ints = r->few_ints;
    r->n = r->n_ints = r->n_floats = 0;
    r->room = sizeof r->few / sizeof *r->few;
    r->room_ints = sizeof r->few_ints / sizeof *r->few_ints;
    r->saved = NULL;
    r->saved_by = NULL;
    if (number < 0 || number >= s->operations) {
        PyErr_Format(PyExc_ValueError, "no operation has the number %i", number);
        return false;
    }
    const char *signature = s->signatures[number].letters;
    Py_ssize_t needed = s->signatures[number].count;
    /* trailing arrays may be left out */
    while (needed > count && signature[needed - 1] == 'm') needed--;
    if (needed != count) {
        PyErr_Format(PyExc_TypeError, "[%s] takes %s, not %zd arguments", s->core->run_title(number),
                     signature, count);
        return false;
    }
    bool widens = s->signatures[number].result != 's';
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *x = args[i];
        bool done;
        switch (signature[i]) {
        case 'a':
        case 's':
        case 'm': done = request_array(s, r, number, signature[i], x, widens); break;
        case 'i':
        case 'p': done = request_int(s, r, number, x); break;
        case 'd': done = request_float(r, x); break;
        case 'k':
            done = saved_is(s, x) || misfit(s, number, "saved arrays", x);
            if (done) {
                Py_INCREF(r->saved_by = x);
                r->saved = handle_saved(x);
            }
            break;
        default: done = request_list(s, r, number, signature[i], x, widens);
        }
        if (!done) return false;
    }
    for (Py_ssize_t i = count; i < s->signatures[number].count; i++)
        if (!request_array(s, r, number, signature[i], Py_None, false)) return false;
    return true;
}

int request_run(speed_state *s, const request *r, int number, mg_arrays *out) {
    mg_args args = {.ints = r->ints, .floats = r->floats, .saved = r->saved};
    void *outer = gil_enter();
    int code = s->core->run(number, r->n, r->in, &args, out);
    gil_leave(outer);
    return code;
}

/* ---- calls ---- */

bool call_watched(const speed_state *s) {
    return s->uses[USE_TRACERS] && PyList_Size(s->uses[USE_TRACERS]);
}

bool call_check(speed_state *s, bool failed, int number, PyObject *const *args, Py_ssize_t count,
                PyObject *made) {
    PyObject *given = PyTuple_New(count);
    for (Py_ssize_t i = 0; given && i < count; i++) {
        PyObject *one = args[i] ? args[i] : Py_None;
        Py_INCREF(one);
        PyTuple_SetItem(given, i, one);
    }
    PyObject *done = given ? PyObject_CallFunction(s->uses[USE_CHECK_RESULT], "OiOO",
                                                   failed ? Py_True : Py_False, number, given, made)
                           : NULL;
    Py_XDECREF(given);
    Py_XDECREF(done);
    return done;
}

/* The result of an operation as a Python object, by the result letter of its signature. */
static PyObject *call_result(speed_state *s, char kind, int code, const mg_arrays *out) {
    if (kind == '?') return PyBool_FromLong(code);
    if (kind == '1') return array_object(s, out->made[0]);
    if (kind == 's') Py_RETURN_NONE;
    PyObject *made = PyTuple_New(out->count);
    for (int i = 0; i < out->count; i++) {
        PyObject *one = out->made[i] ? array_object(s, out->made[i]) : Py_NewRef(Py_None);
        if (!made) Py_CLEAR(one);
        if (!one || PyTuple_SetItem(made, i, one) < 0) Py_CLEAR(made);
    }
    return made;
}

/* call(number, *args) */
PyObject *speed_call(PyObject *module, PyObject *const *args, Py_ssize_t count) {
    speed_state *s = state_of(module);
    long number = count ? PyLong_AsLong(args[0]) : -1;
    if (number == -1 && PyErr_Occurred()) return NULL;
    request r;
    mg_arrays out;
    PyObject *made = NULL;
    if (request_read(s, &r, (int)number, args + 1, count - 1)) {
        char kind = s->signatures[number].result;
        int code = request_run(s, &r, (int)number, &out);
        if (code && kind != '?') call_check(s, true, (int)number, args + 1, count - 1, Py_None);
        else made = call_result(s, kind, code, &out);
        if (made && call_watched(s) && !call_check(s, false, (int)number, args + 1, count - 1, made))
            Py_CLEAR(made);
    }
    request_free(&r);
    if (made) return made;
    PyObject *rest = count ? PyTuple_New(count - 1) : NULL;
    for (Py_ssize_t i = 1; rest && i < count; i++) PyTuple_SetItem(rest, i - 1, Py_NewRef(args[i]));
    if (rest) made = batched_again(s, "batched_call", args[0], rest, NULL);
    Py_XDECREF(rest);
    return made;
}

/* ---- what the tape saves ---- */

PyObject *array_save(speed_state *s, mg_array *a, mg_array *b, mg_array *c, int number) {
    void *outer = gil_enter();
    mg_saved *saved = s->core->save(a, b, c);
    gil_leave(outer);
    if (saved) return saved_object(s, saved);
    call_check(s, true, number, NULL, 0, Py_None);
    return NULL;
}

static bool save_array(speed_state *s, PyObject *x, mg_array **to) {
    *to = NULL;
    if (x == Py_None) return true;
    if (!array_is(s, x)) {
        PyErr_SetString(PyExc_TypeError, "save takes arrays");
        return false;
    }
    *to = handle_array(x);
    return true;
}

/* save(a, b=None, c=None) */
PyObject *speed_save(PyObject *module, PyObject *const *args, Py_ssize_t count) {
    speed_state *s = state_of(module);
    mg_array *arrays[3] = {NULL};
    if (count < 1 || count > 3) return PyErr_Format(PyExc_TypeError, "save(a, b, c)");
    for (Py_ssize_t i = 0; i < count; i++)
        if (!save_array(s, args[i], &arrays[i])) return NULL;
    return array_save(s, arrays[0], arrays[1], arrays[2], s->kernel_saved);
}

/* save_as_is(x) */
PyObject *speed_save_as_is(PyObject *module, PyObject *array) {
    speed_state *s = state_of(module);
    mg_array *x;
    if (!save_array(s, array, &x) || !x) return PyErr_Format(PyExc_TypeError, "save_as_is(array)");
    void *outer = gil_enter();
    mg_saved *saved = s->core->save_as_is(x);
    gil_leave(outer);
    if (saved) return saved_object(s, saved);
    call_check(s, true, s->kernel_saved, NULL, 0, Py_None);
    return NULL;
}

/* ---- borrowed memory ---- */

/* Called on any thread, with or without the interpreter's lock. */
static void owner_release(void *owner) {
    PyGILState_STATE state = PyGILState_Ensure();
    Py_DECREF((PyObject *)owner);
    PyGILState_Release(state);
}

/* keep(array, owner): no bytecode runs in between, so that Ctrl-C cannot lose the reference. */
PyObject *speed_keep(PyObject *module, PyObject *const *args, Py_ssize_t count) {
    speed_state *s = state_of(module);
    if (count != 2 || !array_is(s, args[0])) return PyErr_Format(PyExc_TypeError, "keep(array, owner)");
    if (s->core->set_owner(handle_array(args[0]), args[1], owner_release))
        return PyErr_Format(PyExc_ValueError, "keep: the memory has an owner");
    Py_INCREF(args[1]);
    Py_RETURN_NONE;
}
