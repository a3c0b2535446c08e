/* view.h: rows with one input and other arguments, of which views are one call of a kernel and the rest
 * one of Python's function of it; and which views indices and cuts make. */
#ifndef MG_VIEW_H
#define MG_VIEW_H

#include "operation.h"

/* ---- rows with one input and other arguments ---- */

MG_PLANNING

typedef struct {
    PyObject *row, *forward; /* as in a holder */
    int view; /* by which number the view is known here, if it is one */
    int wants_shape, keeps_input, keeps_result;
} single;

/* The numbers of a tuple; how many, or -1. */
static int single_numbers(PyObject *given, int64_t *numbers) {
    Py_ssize_t count = PyTuple_Check(given) ? PyTuple_Size(given) : -1;
    if (count > MG_MAX_NDIM) return -1;
    for (Py_ssize_t i = 0; i < count; i++) {
        numbers[i] = PyLong_AsLongLong(PyTuple_GetItem(given, i));
        if (numbers[i] == -1 && PyErr_Occurred()) return -1;
    }
    return (int)count;
}

/* NULL where it is not known, or its arguments are wrong. */
static mg_array *single_view(int view, mg_array *x, PyObject *args) {
    int64_t numbers[4][MG_MAX_NDIM];
    int32_t axes[MG_MAX_NDIM];
    int given = (int)PyTuple_Size(args), count[4];
    if (view == MG_VIEW_OTHER || given > 4) return NULL;
    for (int i = 0; i < given; i++) {
        count[i] = single_numbers(PyTuple_GetItem(args, i), numbers[i]);
        if (count[i] < 0) return NULL;
        if (view >= MG_VIEW_SLICE && i < 3 && count[i] != x->ndim) return NULL;
    }
    switch (view) {
    case MG_VIEW_RESHAPE: return mg_view_reshape(x, count[0], numbers[0]);
    case MG_VIEW_OR_COPY: return mg_reshape(x, count[0], numbers[0]);
    case MG_VIEW_EXPAND: return mg_view_expand(x, count[0], numbers[0]);
    case MG_VIEW_PERMUTE:
        for (int d = 0; d < count[0]; d++) axes[d] = (int32_t)numbers[0][d];
        return mg_view_permute(x, count[0], axes);
    }
    mg_array *part = mg_view_slice(x, numbers[0], numbers[1], numbers[2]);
    if (view == MG_VIEW_SLICE || !part) return part;
    mg_array *shown = mg_view_reshape(part, count[3], numbers[3]);
    mg_release(part);
    return shown;
}

/* Calls a function of Python's on an array and a tuple of other arguments. */
static PyObject *single_ask(PyObject *function, PyObject *handle, PyObject *args) {
    PyObject *all = PyTuple_New(1 + PyTuple_Size(args));
    for (Py_ssize_t i = 0; all && i < PyTuple_Size(all); i++) {
        PyObject *one = i ? PyTuple_GetItem(args, i - 1) : handle;
        Py_INCREF(one);
        PyTuple_SetItem(all, i, one);
    }
    PyObject *made = all ? PyObject_Call(function, all, NULL) : NULL;
    Py_XDECREF(all);
    return made;
}

/* The result; Python's forward where it is none of these views, failed or is watched. */
static PyObject *single_forward(const single *self, PyObject *handle, PyObject *args) {
    if (self->view && !PyList_Size(tensor_uses[TRACERS])) {
        mg_array *made;
        Py_BEGIN_ALLOW_THREADS
        made = single_view(self->view, handle_array(handle), args);
        Py_END_ALLOW_THREADS
        PyErr_Clear();
        if (made) return handle_around(made);
    }
    return single_ask(self->forward, handle, args);
}

static PyObject *single_names[3]; /* "refs", "current" and "limit", of what knows a tensor's views */
enum { SINGLE_OFTEN = 15 };        /* how often the limit is looked at, as bits */

/* Takes the dead from a list of weak references. Nothing of Python's runs between its two ends. */
static bool single_keep_living(PyObject *refs) {
    PyObject *living = PyList_New(0);
    Py_ssize_t count = PyList_Size(refs);
    bool done = living;
    for (Py_ssize_t i = 0; done && i < count; i++) {
        PyObject *ref = PyList_GetItem(refs, i), *shown = PyObject_CallFunctionObjArgs(ref, NULL);
        if (shown != Py_None) done = shown && !PyList_Append(living, ref);
        Py_XDECREF(shown);
    }
    done = done && !PyList_SetSlice(refs, 0, count, living);
    Py_XDECREF(living);
    return done;
}

/* Forgets the dead, if there may be many. */
static bool single_sort_out(PyObject *views, PyObject *refs) {
    PyObject *limit = PyObject_GetAttr(views, single_names[2]);
    bool few = limit && PyList_Size(refs) < PyLong_AsSsize_t(limit), done = few;
    Py_XDECREF(limit);
    if (few || !limit) return done;
    PyObject *current = PyObject_GetAttr(views, single_names[1]);
    done = current && single_keep_living(refs) && single_keep_living(current);
    Py_ssize_t next = 2 * PyList_Size(refs);
    limit = done ? PyLong_FromSsize_t(next > SINGLE_OFTEN ? next : SINGLE_OFTEN + 1) : NULL;
    done = limit && !PyObject_SetAttr(views, single_names[2], limit);
    Py_XDECREF(limit);
    Py_XDECREF(current);
    return done;
}

/* Lists `view` among the views of `base`; `alias`, which is taken over, is what it knows of that. */
static bool single_list(PyObject *view, PyObject *base, PyObject *alias) {
    PyObject **place = &((tensor *)base)->fields[TENSOR_VIEWS];
    if (!*place) {
        PyObject *first = PyObject_CallFunctionObjArgs(tensor_uses[VIEWS], NULL);
        if (*place) Py_XDECREF(first); /* another thread's is there by now */
        else *place = first;
    }
    PyObject *views = *place, *ref = NULL;
    Py_XINCREF(views); /* whatever becomes of the base's */
    if (views && alias) ref = PyWeakref_NewRef(view, NULL);
    PyObject **known = &((tensor *)view)->fields[TENSOR_ALIAS], *before = *known;
    *known = alias;
    Py_XDECREF(before);
    bool done = ref;
    for (int i = 0; done && i < 2; i++) {
        PyObject *refs = PyObject_GetAttr(views, single_names[i]);
        done = refs && !PyList_Append(refs, ref);
        if (done && !i && !(PyList_Size(refs) & SINGLE_OFTEN)) done = single_sort_out(views, refs);
        Py_XDECREF(refs);
    }
    Py_XDECREF(views);
    Py_XDECREF(ref);
    return done;
}

/* Notes that `view` shows the memory of `base` through a row of the table. */
static bool single_link(PyObject *view, PyObject *base, PyObject *row, PyObject *args) {
    return single_list(view, base, PyTuple_Pack(3, base, row, args));
}

/* Marks a view of which the tape knows nothing: its alias is a weak reference to the topmost tensor, which
 * tells it of a write on the tape. The view of a marked one has the same mark, and was told the same. */
static bool single_mark(PyObject *view, PyObject *base) {
    PyObject **fields = ((tensor *)view)->fields, *alias, *ref;
    while ((alias = ((tensor *)base)->fields[TENSOR_ALIAS]) && PyTuple_Size(alias) == 3)
        base = PyTuple_GetItem(alias, 0);
    ref = alias ? PyTuple_GetItem(alias, 0) : PyWeakref_NewRef(base, NULL);
    if (alias) Py_INCREF(ref);
    PyObject *edge = alias ? ((tensor *)base)->fields[TENSOR_EDGE] : NULL;
    if (edge && edge != Py_True) {
        Py_INCREF(edge);
        Py_DECREF(fields[TENSOR_EDGE]); /* None: it is new */
        fields[TENSOR_EDGE] = edge;
    }
    PyObject *mark = ref ? PyTuple_Pack(1, ref) : NULL;
    PyObject *top = mark ? PyObject_CallFunctionObjArgs(ref, NULL) : NULL;
    bool done = top, lost = top == Py_None; /* nobody writes into it any more */
    if (done && !lost) done = single_list(view, top, mark);
    else if (done) fields[TENSOR_ALIAS] = mark;
    else Py_XDECREF(mark);
    Py_XDECREF(top);
    Py_XDECREF(ref);
    return done;
}

/* What the derivative needs; None for nothing. */
static PyObject *single_saved(const single *self, PyObject *input, PyObject *result) {
    if (!self->keeps_input && !self->keeps_result) Py_RETURN_NONE;
    mg_array *x = self->keeps_input ? handle_array(input) : NULL;
    mg_array *y = self->keeps_result ? handle_array(result) : NULL;
    mg_saved *saved;
    Py_BEGIN_ALLOW_THREADS
    saved = mg_save(x, NULL, y);
    Py_END_ALLOW_THREADS
    if (saved) return handle_around_saved(saved);
    return PyObject_CallFunction(tensor_uses[SETTLE], "OO()", Py_None, self->forward);
}

/* Gives the result its place on the tape, and among the views of x. */
static bool single_record(const single *self, PyObject *x, PyObject *input, PyObject *args,
                          tensor *made) {
    PyObject *given[NODE_GIVEN + 1] = {self->row, NULL, args, Py_None, tensor_parent(x)};
    PyObject *handle = made->fields[TENSOR_HANDLE], *parent = given[NODE_GIVEN], *shape = NULL;
    bool tracked = parent != Py_None && handle_array(handle)->dtype >= MG_FLOAT32;
    bool done = parent, shares = handle_array(handle)->buffer == handle_array(input)->buffer;
    if (!done || (!tracked && !shares)) goto out;
    bool paused = operation_paused();
    done = !PyErr_Occurred(); /* asking runs bytecode, which an interrupt may end */
    if (done && shares)
        done = paused ? single_mark((PyObject *)made, x)
                      : single_link((PyObject *)made, x, self->row, args);
    if (!done || !tracked || paused) goto out;
    PyObject *first = self->wants_shape ? tensor_shape(x, NULL) : NULL;
    PyObject *before = first ? PyTuple_Pack(1, first) : NULL;
    if (before) given[NODE_ARGS] = shape = PySequence_Concat(before, args);
    Py_XDECREF(first);
    Py_XDECREF(before);
    given[NODE_SAVED] = single_saved(self, input, handle);
    done = given[NODE_ARGS] && given[NODE_SAVED] && !PyErr_Occurred() &&
           tensor_record(made, given, NODE_GIVEN + 1);
    Py_XDECREF(shape);
    Py_XDECREF(given[NODE_SAVED]);
out:
    Py_XDECREF(parent);
    return done && !PyErr_Occurred();
}

/* link(view, base, row, args) */
static PyObject *tensor_link(PyObject *unused, PyObject *const *given, Py_ssize_t count) {
    (void)unused;
    if (count != 4 || !tensor_is(given[0]) || !tensor_is(given[1]))
        return PyErr_Format(PyExc_TypeError, "link(view, base, row, args)");
    if (!single_link(given[0], given[1], given[2], given[3])) return NULL;
    Py_RETURN_NONE;
}

/* run(x, args): the result for a tensor, recorded. */
static PyObject *single_run(PyObject *capsule, PyObject *const *given, Py_ssize_t count) {
    const single *self = PyCapsule_GetPointer(capsule, NULL);
    if (count != 2 || !tensor_is(given[0]) || !PyTuple_Check(given[1]))
        return PyErr_Format(PyExc_TypeError, "run(tensor, arguments)");
    PyObject *input = tensor_handle(given[0]);
    if (!input) return NULL;
    Py_INCREF(input); /* others may replace it meanwhile */
    PyObject *made = tensor_around(single_forward(self, input, given[1]), Py_None, Py_None);
    if (made && !single_record(self, given[0], input, given[1], (tensor *)made)) Py_CLEAR(made);
    Py_DECREF(input);
    return made;
}

static PyMethodDef single_method = METHOD("run", single_run, METH_FASTCALL);

/* single(row, forward, view, wants_shape, keeps_input, keeps_result) */
static PyObject *single_new(PyObject *unused, PyObject *args) {
    (void)unused;
    single *made = PyMem_Malloc(sizeof *made);
    if (!made) return PyErr_NoMemory();
    if (!PyArg_ParseTuple(args, "OOiiii", &made->row, &made->forward, &made->view, &made->wants_shape,
                          &made->keeps_input, &made->keeps_result)) {
        PyMem_Free(made);
        return NULL;
    }
    return holder_function(&single_method, made);
}

/* ---- indices that make views ---- */

enum { CUT_ITEMS = 64 };

/* In the stable ABI since 3.7; cffi asks for an older one, whose headers lack them. */
PyAPI_FUNC(int) PySlice_Unpack(PyObject *slice, Py_ssize_t *start, Py_ssize_t *stop, Py_ssize_t *step);
PyAPI_FUNC(Py_ssize_t) PySlice_AdjustIndices(Py_ssize_t length, Py_ssize_t *start, Py_ssize_t *stop,
                                             Py_ssize_t step);

static PyObject *cut_tuple(const int64_t *numbers, int count) {
    PyObject *made = PyTuple_New(count);
    for (int i = 0; made && i < count; i++) {
        PyObject *number = PyLong_FromLongLong(numbers[i]);
        if (!number || PyTuple_SetItem(made, i, number)) Py_CLEAR(made);
    }
    return made;
}

/* What an integer or slice takes of an axis of so many elements; false where it is wrong. */
static bool cut_axis(PyObject *item, int64_t size, int64_t *start, int64_t *step, int64_t *count) {
    Py_ssize_t first, last = 0, by = 1;
    *count = *step = 1;
    if (PyLong_CheckExact(item)) {
        first = PyLong_AsSsize_t(item);
        if (first < 0) first += size;
        *start = first;
        return !PyErr_Occurred() && first >= 0 && first < size;
    }
    if (PySlice_Unpack(item, &first, &last, &by)) return false;
    *count = PySlice_AdjustIndices(size, &first, &last, by);
    if (*count > 1) *step = by; /* else it is never taken */
    *start = *count ? first : 0;
    return true;
}

/* None, for Python to say what is wrong, but where a bound has raised something of its own. */
static PyObject *cut_failed(void) {
    PyObject *error = PyErr_Occurred(), *usual[] = {PyExc_TypeError, PyExc_ValueError,
                                                    PyExc_OverflowError};
    bool known = !error;
    for (int i = 0; i < 3 && !known; i++) known = PyErr_GivenExceptionMatches(error, usual[i]);
    if (!known) return NULL;
    PyErr_Clear();
    Py_RETURN_NONE;
}

static Py_ssize_t cut_count(PyObject *index) {
    return PyTuple_Check(index) ? PyTuple_Size(index) : 1;
}
static PyObject *cut_item(PyObject *index, Py_ssize_t i) {
    return PyTuple_Check(index) ? PyTuple_GetItem(index, i) : index;
}

/* How many axes an index takes, of those that are integers, slices, None and one ...; -1 for others. */
static int cut_taken(PyObject *index) {
    Py_ssize_t items = cut_count(index);
    int taken = 0;
    bool dots = false;
    if (items > CUT_ITEMS) return -1;
    for (Py_ssize_t i = 0; i < items; i++) {
        PyObject *item = cut_item(index, i);
        if (PyLong_CheckExact(item) || PySlice_Check(item)) taken++;
        else if (item == Py_Ellipsis && !dots) dots = true;
        else if (item != Py_None) return -1;
    }
    return taken;
}

static PyObject *cut_plan(const mg_array *x, PyObject *index) {
    int items = (int)cut_count(index), taken = cut_taken(index), axis = 0, kept = 0;
    int64_t start[MG_MAX_NDIM], step[MG_MAX_NDIM], size[MG_MAX_NDIM];
    int64_t shown[CUT_ITEMS + MG_MAX_NDIM];
    bool whole = true, same = true;
    if (taken < 0 || taken > x->ndim) Py_RETURN_NONE;
    for (int i = 0; i <= items; i++) {
        PyObject *item = i == items ? Py_Ellipsis : cut_item(index, i);
        if (item == Py_None) {
            shown[kept++] = 1;
            same = false;
        } else if (item == Py_Ellipsis) { /* so many axes as they are; at the end what is left */
            for (int n = i == items ? x->ndim - axis : x->ndim - taken; n > 0; n--, axis++) {
                start[axis] = 0;
                step[axis] = 1;
                shown[kept++] = size[axis] = x->shape[axis];
            }
        } else {
            int64_t all = x->shape[axis];
            if (!cut_axis(item, all, &start[axis], &step[axis], &size[axis])) return cut_failed();
            if (size[axis] != all || step[axis] != 1) whole = false;
            if (PySlice_Check(item)) shown[kept++] = size[axis];
            else same = false;
            axis++;
        }
    }
    int n = x->ndim;
    if (whole && same) return Py_BuildValue("i()", MG_VIEW_NONE);
    if (whole) return Py_BuildValue("i(N)", MG_VIEW_RESHAPE, cut_tuple(shown, kept));
    PyObject *a = cut_tuple(start, n), *b = cut_tuple(step, n), *c = cut_tuple(size, n);
    if (same) return Py_BuildValue("i(NNN)", MG_VIEW_SLICE, a, b, c);
    return Py_BuildValue("i(NNNN)", MG_VIEW_SLICE_RESHAPE, a, b, c, cut_tuple(shown, kept));
}

/* cut(x, index): the number of the view that integers, slices, None and ... make, or MG_VIEW_NONE for x
 * as it is, and its arguments. None for all other indices, and for wrong ones; raises what a bound
 * of a slice does. */
static PyObject *tensor_cut(PyObject *unused, PyObject *const *given, Py_ssize_t count) {
    (void)unused;
    PyObject *handle = count == 2 && tensor_is(given[0]) ? tensor_handle(given[0]) : NULL;
    if (!handle) return PyErr_Format(PyExc_TypeError, "cut(tensor, index)");
    Py_INCREF(handle); /* a slice's bounds may be anything, and give x other memory */
    PyObject *made = cut_plan(handle_array(handle), given[1]);
    Py_DECREF(handle);
    return made;
}

/* ---- pieces ---- */

/* spans(run, x, axis, bounds, drop): from each bound to the next along an axis, in a tuple, by the
 * function of a slice's row; where `drop` is true of one element each, without the axis. */
static PyObject *tensor_spans(PyObject *unused, PyObject *args) {
    (void)unused;
    PyObject *run, *x, *bounds;
    int axis, drop;
    if (!PyArg_ParseTuple(args, "OOiO!i", &run, &x, &axis, &PyTuple_Type, &bounds, &drop)) return NULL;
    PyObject *handle = PyCFunction_Check(run) && tensor_is(x) ? tensor_handle(x) : NULL;
    if (!handle) return PyErr_Format(PyExc_TypeError, "spans(run, tensor, axis, bounds, drop)");
    const mg_array *from = handle_array(handle);
    int n = from->ndim;
    Py_ssize_t pieces = PyTuple_Size(bounds) - 1;
    int64_t start[MG_MAX_NDIM] = {0}, step[MG_MAX_NDIM], size[MG_MAX_NDIM], kept[MG_MAX_NDIM];
    for (int d = 0; d < n; d++) {
        step[d] = 1;
        size[d] = from->shape[d];
        if (d != axis) kept[d - (d > axis)] = size[d];
    }
    PyObject *made = PyTuple_New(pieces), *by = cut_tuple(step, n), *to = cut_tuple(kept, n - 1);
    for (Py_ssize_t i = 0; made && i < pieces; i++) {
        int64_t at = PyLong_AsLongLong(PyTuple_GetItem(bounds, i));
        int64_t count = PyLong_AsLongLong(PyTuple_GetItem(bounds, i + 1)) - at;
        size[axis] = count > 0 ? count : 0;
        start[axis] = count > 0 ? at : 0;
        PyObject *a = cut_tuple(start, n), *c = cut_tuple(size, n);
        PyObject *row = drop ? Py_BuildValue("(NONO)", a, by, c, to) : Py_BuildValue("(NON)", a, by, c);
        PyObject *both[] = {x, row}, *piece = row ? single_run(PyCFunction_GetSelf(run), both, 2) : NULL;
        Py_XDECREF(row);
        if (!piece || PyTuple_SetItem(made, i, piece)) Py_CLEAR(made);
    }
    Py_XDECREF(by);
    Py_XDECREF(to);
    return made;
}
MG_PLANNING_END

#endif
