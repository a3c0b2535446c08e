/* replay.c: runs of recorded programs, and the class of functions that try them first.
 *
 * The run is defined in minigrad/_compile/recorded.py. A Replay checks the same conditions, on a
 * description that minigrad/_compile/replaying.py makes. It gives Ellipsis if one does not hold,
 * before anything is changed; the call then takes the way in Python.
 */
#include "replay.h"

#include <string.h>

/* ---- what is given ---- */

bool replay_give(replay_run *c, PyObject *array) {
    if (!array || !array_is(c->r->s, array)) return false;
    c->arrays[c->given_count] = handle_array(array);
    c->given[c->given_count++] = Py_NewRef(array); /* a kernel may give up the lock */
    return true;
}

static bool replay_gather(replay_run *c) {
    for (Py_ssize_t i = 0; i < c->r->source_count; i++) {
        const replay_source *from = &c->r->sources[i];
        PyObject *x = from->array;
        if (from->from != FROM_CONSTANT) {
            x = target_of(c, &from->of);
            if (from->from == FROM_GRAD) x = tensor_field(x, TENSOR_GRAD);
            if (!tensor_is(c->r->s, x)) return false;
            x = tensor_field(x, TENSOR_ARRAY);
        }
        if (!replay_give(c, x)) return false;
    }
    return true;
}

/* ---- running ---- */

/* Calls an operation of programs. The core's answer. */
static int replay_core(replay *r, int number, int count, mg_array **arrays, const int64_t *ints, const double *floats,
                       mg_arrays *out) {
    void *outer = gil_enter();
    int code = r->s->core->run(number, count, arrays, &(mg_args){ints, floats, NULL}, out);
    gil_leave(outer);
    return code;
}

static bool replay_accepts(replay_run *c) {
    int64_t ints[] = {c->r->address, c->given_count};
    mg_arrays out;
    return replay_core(c->r, c->r->accepts, (int)c->given_count, c->arrays, ints, NULL, &out) != 0;
}

/* Runs the program. False if it did not come to its end. */
static bool replay_program(replay_run *c) {
    replay *r = c->r;
    int64_t *numbers = c->ints - 3;
    mg_arrays out;
    numbers[0] = r->address;
    numbers[1] = c->given_count;
    numbers[2] = r->int_count;
    numbers[3 + r->int_count] = r->float_count;
    return !replay_core(r, r->run, (int)c->given_count, c->arrays, numbers, c->floats, &out);
}

static bool replay_take(replay_run *c) {
    replay *r = c->r;
    mg_arrays out;
    for (; c->made_count < r->result_count; c->made_count++) {
        int64_t ints[] = {r->address, r->results[c->made_count]};
        PyObject *array = NULL;
        if (r->s->core->run(r->take, 0, NULL, &(mg_args){ints, NULL, NULL}, &out))
            PyErr_SetString(PyExc_RuntimeError, "[compile] a result is missing");
        else array = array_object(r->s, out.made[0]);
        if (!(c->made[c->made_count] = array)) break;
    }
    replay_core(r, r->end, 0, NULL, &r->address, NULL, &out);
    return c->made_count == r->result_count;
}

/* ---- what a call leaves ---- */

static PyObject *replay_kept(const replay_run *c, Py_ssize_t place) {
    return place < c->given_count ? c->given[place] : c->made[place - c->given_count];
}

/* The arrays that the call keeps for backward, as minigrad/_compile/history.py has them. */
static PyObject *replay_saved(const replay_run *c) {
    replay *r = c->r;
    PyObject *saved = PyTuple_New(r->group_count / 3), *loose = PyTuple_New(r->loose_count), *both = NULL;
    bool done = saved && loose;
    for (Py_ssize_t i = 0; done && i < r->group_count; i += 3) {
        mg_array *arrays[3];
        for (int k = 0; k < 3; k++)
            arrays[k] = r->groups[i + k] < 0 ? NULL : handle_array(replay_kept(c, r->groups[i + k]));
        PyObject *group = array_save(r->s, arrays[0], arrays[1], arrays[2], r->s->kernel_saved);
        done = group && !PyTuple_SetItem(saved, i / 3, group);
    }
    for (Py_ssize_t i = 0; done && i < r->loose_count; i++)
        done = !PyTuple_SetItem(loose, i, Py_NewRef(replay_kept(c, r->loose[i])));
    if (done) both = PyTuple_Pack(2, saved, loose);
    Py_XDECREF(saved);
    Py_XDECREF(loose);
    return both;
}

/* The node of the call. */
static PyObject *replay_node(const replay_run *c) {
    replay *r = c->r;
    PyObject *made = replay_saved(c), *none = PyTuple_New(0), *edge = NULL;
    PyObject **fields = PyMem_Calloc((size_t)(NODE_GIVEN + r->end_count), sizeof *fields);
    Py_ssize_t parents = 0;
    if (!fields) PyErr_NoMemory();
    bool done = made && none && fields;
    for (; done && parents < r->end_count; parents += done) {
        PyObject *parent = tensor_parent(r->s, target_of(c, &r->ends[parents]));
        done = parent != NULL;
        fields[NODE_GIVEN + parents] = parent;
    }
    if (done) {
        fields[NODE_OP] = r->op;
        fields[NODE_SAVED] = made;
        fields[NODE_ARGS] = none;
        fields[NODE_INPUTS] = Py_None;
        edge = node_record(r->s, fields, NODE_GIVEN + parents);
    }
    while (parents > 0) Py_DECREF(fields[NODE_GIVEN + --parents]);
    PyMem_Free(fields);
    Py_XDECREF(made);
    Py_XDECREF(none);
    return edge;
}

/* A tensor for a result with a history: its edge is the node, or one of its outputs. */
static PyObject *replay_living(const replay_run *c, Py_ssize_t number, PyObject *edge) {
    replay *r = c->r;
    PyObject *array = c->made[r->living[number]], *own = Py_NewRef(edge);
    if (r->living_count > 1) {
        PyObject *none = PyTuple_New(0), *fields[] = {r->output_ops[number], Py_None, none, Py_None, edge};
        Py_DECREF(own);
        own = none ? node_record(r->s, fields, NODE_GIVEN + 1) : NULL;
        Py_XDECREF(none);
    }
    PyObject *made = own ? tensor_around(r->s, Py_NewRef(array), own, Py_None) : NULL;
    Py_XDECREF(own);
    return made;
}

static bool replay_leave(replay_run *c) {
    replay *r = c->r;
    PyObject *edge = r->op ? replay_node(c) : NULL;
    if (r->op && !edge) return false;
    for (; c->left_count < r->left_count; c->left_count++) {
        const replay_left *l = &r->leaving[c->left_count];
        PyObject *x;
        if (l->from == LEFT_MADE) x = tensor_around(r->s, Py_NewRef(c->made[l->number]), l->edge, Py_None);
        else if (l->from == LEFT_LIVING) x = replay_living(c, l->number, edge);
        else if (l->from == LEFT_TENSOR) x = Py_NewRef(target_of(c, &l->of));
        else x = Py_NewRef(tensor_field(target_of(c, &l->of), TENSOR_GRAD));
        if (!(c->left[c->left_count] = x)) break;
    }
    Py_XDECREF(edge);
    return c->left_count == r->left_count;
}

static void replay_set_grad(const replay_run *c, const replay_target *of, PyObject *grad) {
    PyObject **field = &((tensor *)target_of(c, of))->fields[TENSOR_GRAD], *before = *field;
    *field = Py_NewRef(grad);
    Py_XDECREF(before);
}

static void replay_grads(const replay_run *c) {
    for (Py_ssize_t i = 0; i < c->r->grad_count; i++) {
        const replay_gradient *g = &c->r->grads[i];
        replay_set_grad(c, &g->of, g->place < 0 ? Py_None : c->left[g->place]);
    }
}

/* A part of the result: the next output for Ellipsis, the value for (value,), else a container from
 * (kind, parts, keys). */
static PyObject *replay_part(const replay_run *c, PyObject *part, Py_ssize_t *next) {
    if (part == Py_Ellipsis) return Py_NewRef(c->left[c->r->outputs[(*next)++]]);
    if (PyTuple_Size(part) == 1) return Py_NewRef(PyTuple_GetItem(part, 0));
    Py_ssize_t kind = replay_number(part, 0);
    PyObject *parts = PyTuple_GetItem(part, 1), *keys = PyTuple_GetItem(part, 2);
    Py_ssize_t count = PyTuple_Size(parts);
    PyObject *made = kind == PARTS_TUPLE ? PyTuple_New(count) : kind == PARTS_LIST ? PyList_New(count) : PyDict_New();
    for (Py_ssize_t i = 0; made && i < count; i++) {
        PyObject *item = replay_part(c, PyTuple_GetItem(parts, i), next);
        int failed = !item;
        if (item && kind == PARTS_TUPLE) failed = PyTuple_SetItem(made, i, item);
        else if (item && kind == PARTS_LIST) failed = PyList_SetItem(made, i, item);
        else if (item) {
            failed = PyDict_SetItem(made, PyTuple_GetItem(keys, i), item);
            Py_DECREF(item);
        }
        if (failed) Py_CLEAR(made);
    }
    return made;
}

/* The outputs of the call, filled into its result. */
static PyObject *replay_outputs(const replay_run *c) {
    replay *r = c->r;
    Py_ssize_t next = 0;
    if (PyTuple_Check(r->fill) || r->fill == Py_Ellipsis) return replay_part(c, r->fill, &next);
    PyObject *found = PyList_New(r->output_count), *result = NULL;
    for (Py_ssize_t i = 0; found && i < r->output_count; i++)
        PyList_SetItem(found, i, Py_NewRef(c->left[r->outputs[i]]));
    if (found) result = PyObject_CallFunctionObjArgs(r->fill, found, NULL);
    Py_XDECREF(found);
    return result;
}

static PyObject *list_of(PyObject **items, Py_ssize_t count) {
    PyObject *made = PyList_New(count);
    for (Py_ssize_t i = 0; made && i < count; i++) PyList_SetItem(made, i, Py_NewRef(items[i] ? items[i] : Py_None));
    return made;
}

/* The result after the program stopped, as Python finds it. */
static PyObject *replay_stopped(replay_run *c) {
    replay *r = c->r;
    PyObject *given = list_of(c->given, c->given_count), *result = NULL;
    for (Py_ssize_t i = 0; i < r->event_count; i++) replay_note(c, i);
    PyObject *notes = list_of(c->notes, r->event_count);
    if (notes && given)
        result = PyObject_CallFunctionObjArgs(r->stopped, c->args, c->named ? c->named : Py_None,
                                              c->back ? c->back : Py_None, c->copies ? c->copies : Py_None, notes,
                                              given, NULL);
    Py_XDECREF(notes);
    Py_XDECREF(given);
    return result;
}

/* Undoes what events did. Ellipsis. */
static PyObject *replay_back(const replay_run *c) {
    for (Py_ssize_t i = 0; c->back && i < PyList_Size(c->back); i++) {
        PyObject *done = PyObject_CallFunctionObjArgs(PyList_GetItem(c->back, i), NULL);
        if (!done) return NULL;
        Py_DECREF(done);
    }
    return Py_NewRef(Py_Ellipsis);
}

/* Copies the arrays that are put back if a question is answered in another way. */
static bool replay_copy(replay_run *c) {
    replay *r = c->r;
    if (!(c->copies = PyList_New(r->undo_count))) return false;
    for (Py_ssize_t i = 0; i < r->undo_count; i++) {
        mg_array *in = handle_array(c->given[r->undo[i]]);
        mg_arrays out;
        if (replay_core(r, r->s->kernel_copy, 1, &in, NULL, NULL, &out)) return PyErr_NoMemory();
        PyObject *copy = array_object(r->s, out.made[0]);
        if (!copy || PyList_SetItem(c->copies, i, copy)) return false;
    }
    return true;
}

static PyObject *replay_go(replay_run *c) {
    replay *r = c->r;
    if (!replay_gather(c)) return Py_NewRef(Py_Ellipsis);
    if ((r->acts || r->cleared_count) && !replay_accepts(c)) return Py_NewRef(Py_Ellipsis);
    if (r->acts && !(c->back = PyObject_CallFunctionObjArgs(r->begin, NULL))) return NULL;
    int ready = replay_events(c);
    if (ready < 0) return NULL;
    if (!ready) return replay_back(c);
    if (r->undo_count && !replay_copy(c)) return NULL;
    for (Py_ssize_t i = 0; i < r->cleared_count; i++) replay_set_grad(c, &r->cleared[i], Py_None);
    if (!replay_program(c)) return replay_stopped(c);
    if (!replay_take(c) || !replay_notes(c) || !replay_leave(c)) return NULL;
    replay_grads(c);
    return replay_outputs(c);
}

/* Runs the program for a call that fits. */
static PyObject *replay_fitted(replay_run *c) {
    const replay *r = c->r;
    int64_t few[FEW_BYTES / 8], *memory = r->room <= FEW_BYTES ? few : PyMem_Malloc(r->room);
    if (!memory) return PyErr_NoMemory();
    Py_ssize_t most = r->source_count + r->drawn_count;
    memset(memory, 0, r->room);
    c->ints = memory + 3;
    c->floats = (double *)(c->ints + r->int_count + 1);
    c->arrays = (mg_array **)(c->floats + r->float_count);
    c->given = (PyObject **)(c->arrays + most);
    c->made = c->given + most;
    c->left = c->made + r->result_count;
    c->notes = c->left + r->left_count;
    c->given_count = c->made_count = c->left_count = c->ints_used = c->floats_used = 0;
    c->back = c->copies = NULL;
    PyObject *result = replay_go(c);
    for (Py_ssize_t i = 0; i < r->event_count; i++) Py_XDECREF(c->notes[i]);
    while (c->left_count > 0) Py_DECREF(c->left[--c->left_count]);
    while (c->made_count > 0) Py_DECREF(c->made[--c->made_count]);
    while (c->given_count > 0) Py_DECREF(c->given[--c->given_count]);
    Py_XDECREF(c->back);
    Py_XDECREF(c->copies);
    if (memory != few) PyMem_Free(memory);
    return result;
}

/* The result of a call, or Ellipsis if it takes another way. */
static PyObject *replay_try(replay *r, PyObject *args, PyObject *named) {
    replay_run c;
    c.r = r;
    c.args = args;
    c.named = named;
    PyObject *result = NULL;
    Py_INCREF(r); /* the function may be recorded again meanwhile */
    if (replay_fits(&c)) result = replay_fitted(&c);
    else if (!PyErr_Occurred() || PyErr_ExceptionMatches(PyExc_Exception)) {
        PyErr_Clear();
        result = Py_NewRef(Py_Ellipsis);
    }
    Py_DECREF(r);
    return result;
}

/* ---- the class of replays ---- */

static int replay_traverse(PyObject *self, visitproc visit, void *arg) {
    replay *r = (replay *)self;
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(r->description);
    for (Py_ssize_t i = 0; r->events && i < r->event_count; i++)
        for (Py_ssize_t k = 0; k < r->events[i].option_count; k++) Py_VISIT(r->events[i].options[k]);
    return 0;
}

static void replay_free(PyObject *self) {
    PyTypeObject *class = Py_TYPE(self);
    replay *r = (replay *)self;
    PyObject_GC_UnTrack(self);
    for (Py_ssize_t i = 0; r->events && i < r->event_count; i++) {
        replay_event *e = &r->events[i];
        event_forget(e);
        PyMem_Free(e->options);
        PyMem_Free(e->kept_ints);
        PyMem_Free(e->kept_floats);
    }
    void *blocks[] = {r->edges, r->constants, r->names, r->idle, r->guards, r->leaves, r->sources, r->events,
                      r->results, r->leaving, r->grads, r->outputs, r->undo, r->groups, r->loose, r->living, r->ends,
                      r->output_ops, r->cleared};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) PyMem_Free(blocks[i]);
    Py_XDECREF(r->description);
    PyObject_GC_Del(self);
    Py_DECREF(class);
}

/* Replay(description) */
static PyObject *replay_new(PyTypeObject *class, PyObject *args, PyObject *named) {
    PyObject *description;
    if (named || !PyArg_ParseTuple(args, "O!:Replay", &PyTuple_Type, &description)) return NULL;
    if (PyTuple_Size(description) != PARTS) return PyErr_Format(PyExc_TypeError, "Replay(description)");
    replay *r = (replay *)PyType_GenericAlloc(class, 0);
    if (!r) return NULL;
    r->s = PyType_GetModuleState(class);
    r->description = Py_NewRef(description);
    if (!replay_read(r)) Py_CLEAR(r);
    return (PyObject *)r;
}

static PyObject *replay_call(PyObject *self, PyObject *args, PyObject *named) {
    return replay_try((replay *)self, args, named);
}

static PyType_Slot replay_slots[] = {{Py_tp_doc, "A recorded call; a call of it gives Ellipsis if it does not fit."},
                                     {Py_tp_new, (void *)replay_new},
                                     {Py_tp_dealloc, (void *)replay_free},
                                     {Py_tp_traverse, (void *)replay_traverse},
                                     {Py_tp_call, (void *)replay_call},
                                     {0, NULL}};
static PyType_Spec replay_spec = {"minigrad._speed.Replay", sizeof(replay), 0,
                                  Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, replay_slots};

/* ---- the base of compiled functions ---- */

typedef struct {
    PyObject_HEAD
    PyObject *replays; /* list */
} caller;

static int caller_traverse(PyObject *self, visitproc visit, void *arg) {
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(((caller *)self)->replays);
    return 0;
}

static int caller_clear(PyObject *self) {
    Py_CLEAR(((caller *)self)->replays);
    return 0;
}

static void caller_free(PyObject *self) {
    PyTypeObject *class = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    caller_clear(self);
    PyObject_GC_Del(self);
    Py_DECREF(class);
}

/* The result of the first replay that fits, or of the method `_call`. */
static PyObject *caller_call(PyObject *self, PyObject *args, PyObject *named) {
    PyObject *replays = Py_XNewRef(((caller *)self)->replays), *result = Py_Ellipsis;
    for (Py_ssize_t i = 0; result == Py_Ellipsis && replays && i < PyList_Size(replays); i++) {
        result = replay_try((replay *)PyList_GetItem(replays, i), args, named);
        if (result == Py_Ellipsis) Py_DECREF(result);
    }
    Py_XDECREF(replays);
    if (result != Py_Ellipsis) return result;
    PyObject *method = PyObject_GetAttrString(self, "_call");
    result = method ? PyObject_Call(method, args, named) : NULL;
    Py_XDECREF(method);
    return result;
}

static PyMemberDef caller_members[] = {
    {"_replays", T_OBJECT_EX, offsetof(caller, replays), 0, NULL},
    {NULL, 0, 0, 0, NULL},
};
static PyType_Slot caller_slots[] = {{Py_tp_doc, "Base of functions that try replays before their own method `_call`."},
                                     {Py_tp_dealloc, (void *)caller_free},
                                     {Py_tp_traverse, (void *)caller_traverse},
                                     {Py_tp_clear, (void *)caller_clear},
                                     {Py_tp_call, (void *)caller_call},
                                     {Py_tp_members, caller_members},
                                     {0, NULL}};
static PyType_Spec caller_spec = {"minigrad._speed.Caller", sizeof(caller), 0,
                                  Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, caller_slots};

bool replay_make_types(PyObject *module) {
    PyType_Spec *specs[] = {&replay_spec, &caller_spec};
    const char *names[] = {"Replay", "Caller"};
    for (int i = 0; i < 2; i++) {
        PyObject *type = PyType_FromModuleAndSpec(module, specs[i], NULL);
        if (!type || PyModule_AddObjectRef(module, names[i], type)) return false;
        Py_DECREF(type);
    }
    return true;
}
