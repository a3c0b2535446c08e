/* module.c: the extension module minigrad._speed. */
#include "speed.h"

#include <string.h>

static const char *const name_texts[NAMES] = {"refs", "current", "limit", "vjp", "graph_vjp", "rules", "step"};

/* The number of an operation; -1 with an error set if there is none. */
static int operation_number(const mg_core *core, const char *name) {
    for (int i = 3 * core->elementwise_count(); i < core->run_count(); i++)
        if (strcmp(core->run_name(i), name) == 0) return i;
    PyErr_Format(PyExc_ImportError, "the core has no operation %s: build both extension modules", name);
    return -1;
}

static bool read_signatures(speed_state *s) {
    int count = s->core->run_count();
    PyMem_Free(s->signatures);
    s->operations = 0;
    s->signatures = PyMem_Calloc((size_t)count, sizeof *s->signatures);
    if (!s->signatures) return PyErr_NoMemory();
    for (int i = 0; i < count; i++) {
        const char *letters = s->core->run_signature(i), *end = strchr(letters, ':');
        s->signatures[i] = (speed_signature){letters, (int)(end - letters), end[1]};
    }
    s->operations = count;
    return true;
}

/* connect(core, check_result, tracers): receives the address of mg_core, and the two objects that
 * calls need. */
static PyObject *speed_connect(PyObject *module, PyObject *const *args, Py_ssize_t count) {
    speed_state *s = state_of(module);
    if (count != 3) return PyErr_Format(PyExc_TypeError, "connect(core, check_result, tracers)");
    s->core = PyLong_AsVoidPtr(args[0]);
    if (!s->core) return PyErr_Occurred() ? NULL : PyErr_Format(PyExc_ValueError, "connect: no core");
    for (int i = 0; i < 2; i++) {
        Py_INCREF(args[1 + i]);
        Py_XDECREF(s->uses[USE_CHECK_RESULT + i]);
        s->uses[USE_CHECK_RESULT + i] = args[1 + i];
    }
    struct {
        int *number;
        const char *name;
    } wanted[] = {
        {&s->kernel_cast, "cast"},         {&s->kernel_copy, "copy"},   {&s->kernel_accumulate, "accumulate"},
        {&s->kernel_saved, "saved_array"}, {&s->kernel_empty, "empty"}, {&s->kernel_tensor, "python_float"},
        {&s->kernel_full, "full"},         {&s->kernel_view_reshape, "view_reshape"},
        {&s->kernel_view_slice, "view_slice"}, {&s->kernel_view_slice_reshape, "view_slice_reshape"},
    };
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
        if ((*wanted[i].number = operation_number(s->core, wanted[i].name)) < 0) return NULL;
    if (!read_signatures(s)) return NULL;
    s->core->set_gil_hook(gil_give_up);
    Py_RETURN_NONE;
}

/* use(*objects): receives the other objects that the accelerator needs, in the order of
 * speed_use. */
static PyObject *speed_use_objects(PyObject *module, PyObject *const *args, Py_ssize_t count) {
    speed_state *s = state_of(module);
    if (count != USES - USE_RESULT) return PyErr_Format(PyExc_TypeError, "use: %i objects", USES - USE_RESULT);
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject **place = &s->uses[USE_RESULT + i], *before = *place;
        Py_INCREF(*place = args[i]);
        Py_XDECREF(before);
    }
    Py_RETURN_NONE;
}

/* wrap(array, edge=None) */
static PyObject *speed_wrap(PyObject *module, PyObject *const *args, Py_ssize_t count) {
    if (count != 1 && count != 2) return PyErr_Format(PyExc_TypeError, "wrap(array, edge=None)");
    speed_state *s = state_of(module);
    PyObject *edge = count == 2 ? args[1] : Py_None;
    if (!array_is(s, args[0])) {
        PyErr_SetString(PyExc_TypeError, "wrap takes an array");
        return batched_again(s, "batched_wrap", args[0], edge, NULL);
    }
    Py_INCREF(args[0]);
    return tensor_around(s, args[0], edge, Py_None);
}

/* parent_of(x) */
static PyObject *speed_parent_of(PyObject *module, PyObject *x) {
    speed_state *s = state_of(module);
    return tensor_is(s, x) ? tensor_parent(s, x) : PyErr_Format(PyExc_TypeError, "parent_of(tensor)");
}

/* commit(kernel, args, changes): runs a kernel that writes, unless its number is None, and then
 * makes the changes. A change (object, name, value) sets an attribute, or deletes it if the value
 * is Ellipsis. Nothing is changed if the kernel fails. No bytecode runs in between, so an interrupt
 * comes before all or after. */
static PyObject *speed_commit(PyObject *module, PyObject *const *args, Py_ssize_t count) {
    enum { MOST = 16 };
    if (count != 3 || !PyTuple_Check(args[1]) || !PyList_Check(args[2]) || PyTuple_Size(args[1]) >= MOST)
        return PyErr_Format(PyExc_TypeError, "commit(kernel, args, changes)");
    if (args[0] != Py_None) {
        PyObject *all[MOST] = {args[0]};
        Py_ssize_t more = PyTuple_Size(args[1]);
        for (Py_ssize_t i = 0; i < more; i++) all[1 + i] = PyTuple_GetItem(args[1], i);
        PyObject *done = speed_call(module, all, 1 + more);
        if (!done) return NULL;
        Py_DECREF(done);
    }
    for (Py_ssize_t i = 0; i < PyList_Size(args[2]); i++) {
        PyObject *change = PyList_GetItem(args[2], i), *value = PyTuple_GetItem(change, 2);
        if (!value || PyObject_SetAttr(PyTuple_GetItem(change, 0), PyTuple_GetItem(change, 1),
                                       value == Py_Ellipsis ? NULL : value))
            return NULL;
    }
    Py_RETURN_NONE;
}

static PyMethodDef speed_functions[] = {
    METHOD("connect", speed_connect, METH_FASTCALL),
    METHOD("use", speed_use_objects, METH_FASTCALL),
    METHOD("call", speed_call, METH_FASTCALL),
    METHOD("save", speed_save, METH_FASTCALL),
    METHOD("save_as_is", speed_save_as_is, METH_O),
    METHOD("keep", speed_keep, METH_FASTCALL),
    METHOD("wrap", speed_wrap, METH_FASTCALL),
    METHOD("parent_of", speed_parent_of, METH_O),
    METHOD("operation", apply_operation, METH_VARARGS),
    METHOD("link", speed_link, METH_FASTCALL),
    METHOD("basic_index", speed_basic_index, METH_FASTCALL),
    METHOD("split", speed_split, METH_VARARGS),
    METHOD("from_lists", speed_from_lists, METH_FASTCALL),
    METHOD("to_lists", speed_to_lists, METH_O),
    METHOD("commit", speed_commit, METH_FASTCALL),
    METHOD("into_grads", engine_into_grads, METH_FASTCALL),
    METHOD("run_pass", engine_gradients, METH_VARARGS),
    METHOD("rule", vjp_rule, METH_VARARGS),
    METHOD("replayed_pass", replayed_pass, METH_O),
    METHOD("one", engine_one, METH_O),
    METHOD("grad_uses", tensor_grad_uses, METH_NOARGS),
    METHOD("pass_depth", engine_depth, METH_NOARGS),
    METHOD("pass_number", engine_number, METH_NOARGS),
    {NULL, NULL, 0, NULL},
};

static int speed_exec(PyObject *module) {
    speed_state *s = state_of(module);
    for (int i = 0; i < NAMES; i++)
        if (!(s->names[i] = PyUnicode_InternFromString(name_texts[i]))) return -1;
    if (!array_make_types(s, module) || !node_make_type(s, module) || !tensor_make_types(s, module))
        return -1;
    struct {
        const char *name;
        PyTypeObject *type;
    } types[] = {{"Array", s->array_type},
                 {"Saved", s->saved_type},
                 {"Node", s->node_type},
                 {"Size", s->size_type},
                 {"Fields", s->tensor_type}};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (PyModule_AddObjectRef(module, types[i].name, (PyObject *)types[i].type)) return -1;
    return replay_make_types(module) ? 0 : -1;
}

static int speed_traverse(PyObject *module, visitproc visit, void *arg) {
    speed_state *s = state_of(module);
    Py_VISIT(s->array_type);
    Py_VISIT(s->saved_type);
    Py_VISIT(s->size_type);
    Py_VISIT(s->node_type);
    Py_VISIT(s->tensor_type);
    for (int i = 0; i < USES; i++) Py_VISIT(s->uses[i]);
    for (int i = 0; i < DTYPES; i++) Py_VISIT(s->ones[i]);
    return 0;
}

static int speed_clear(PyObject *module) {
    speed_state *s = state_of(module);
    tensor_forget(s);
    for (int i = 0; i < DTYPES; i++) Py_CLEAR(s->ones[i]);
    for (int i = 0; i < USES; i++) Py_CLEAR(s->uses[i]);
    for (int i = 0; i < NAMES; i++) Py_CLEAR(s->names[i]);
    Py_CLEAR(s->array_type);
    Py_CLEAR(s->saved_type);
    Py_CLEAR(s->size_type);
    Py_CLEAR(s->node_type);
    node_forget(s);
    Py_CLEAR(s->tensor_type);
    return 0;
}

static void speed_free(void *module) {
    speed_clear(module);
    PyMem_Free(state_of(module)->signatures);
}

static PyModuleDef_Slot speed_slots[] = {{Py_mod_exec, (void *)speed_exec}, {0, NULL}};
static PyModuleDef speed_module = {
    PyModuleDef_HEAD_INIT,
    .m_name = "minigrad._speed",
    .m_doc = "The accelerator of the tape: see minigrad.tape, which defines what is here.",
    .m_size = sizeof(speed_state),
    .m_methods = speed_functions,
    .m_slots = speed_slots,
    .m_traverse = speed_traverse,
    .m_clear = speed_clear,
    .m_free = speed_free,
};

PyMODINIT_FUNC PyInit__speed(void) { return PyModuleDef_Init(&speed_module); }
