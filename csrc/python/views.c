/* views.c: views of tensors by a basic index or a split, and the links from a view to its base. */
#include "speed.h"

#include <string.h>

/* Part of the stable ABI since 3.7. */
PyAPI_FUNC(int) PySlice_Unpack(PyObject *slice, Py_ssize_t *start, Py_ssize_t *stop, Py_ssize_t *step);
PyAPI_FUNC(Py_ssize_t) PySlice_AdjustIndices(Py_ssize_t length, Py_ssize_t *start, Py_ssize_t *stop,
                                             Py_ssize_t step);

/* ---- the views of a tensor ---- */

enum { VIEWS_OFTEN = 15 }; /* the limit is checked after every VIEWS_OFTEN + 1 views (a bit mask) */

/* Removes dead weak references from a list. Between reading and replacing the list no Python code
 * runs. */
static bool views_keep_living(PyObject *refs) {
    PyObject *living = PyList_New(0);
    Py_ssize_t count = PyList_Size(refs);
    bool done = living;
    for (Py_ssize_t i = 0; done && i < count; i++) {
        PyObject *ref = PyList_GetItem(refs, i), *view = PyObject_CallFunctionObjArgs(ref, NULL);
        if (view != Py_None) done = view && !PyList_Append(living, ref);
        Py_XDECREF(view);
    }
    done = done && !PyList_SetSlice(refs, 0, count, living);
    Py_XDECREF(living);
    return done;
}

/* Removes dead references from the lists, if there may be many. */
static bool views_sort_out(speed_state *s, PyObject *views, PyObject *refs) {
    PyObject *limit = PyObject_GetAttr(views, s->names[NAME_LIMIT]);
    bool few = limit && PyList_Size(refs) < PyLong_AsSsize_t(limit), done = few;
    Py_XDECREF(limit);
    if (few || !limit) return done;
    PyObject *current = PyObject_GetAttr(views, s->names[NAME_CURRENT]);
    done = current && views_keep_living(refs) && views_keep_living(current);
    Py_ssize_t next = 2 * PyList_Size(refs);
    limit = done ? PyLong_FromSsize_t(next > VIEWS_OFTEN ? next : VIEWS_OFTEN + 1) : NULL;
    done = limit && !PyObject_SetAttr(views, s->names[NAME_LIMIT], limit);
    Py_XDECREF(limit);
    Py_XDECREF(current);
    return done;
}

/* Lists `view` among the views of `base`. `alias`, which is taken over, becomes the view's note of
 * its base. */
static bool views_list(speed_state *s, PyObject *view, PyObject *base, PyObject *alias) {
    PyObject **place = &((tensor *)base)->fields[TENSOR_VIEWS];
    if (!*place) {
        PyObject *first = PyObject_CallFunctionObjArgs(s->uses[USE_VIEWS], NULL);
        if (*place) Py_XDECREF(first); /* another thread has set it meanwhile */
        else *place = first;
    }
    PyObject *views = *place, *ref = NULL;
    Py_XINCREF(views); /* keeps it alive, whatever happens to the base */
    if (views && alias) ref = PyWeakref_NewRef(view, NULL);
    PyObject **known = &((tensor *)view)->fields[TENSOR_ALIAS], *before = *known;
    *known = alias;
    Py_XDECREF(before);
    bool done = ref;
    for (int i = NAME_REFS; done && i <= NAME_CURRENT; i++) {
        PyObject *refs = PyObject_GetAttr(views, s->names[i]);
        done = refs && !PyList_Append(refs, ref);
        if (done && i == NAME_REFS && !(PyList_Size(refs) & VIEWS_OFTEN))
            done = views_sort_out(s, views, refs);
        Py_XDECREF(refs);
    }
    Py_XDECREF(views);
    Py_XDECREF(ref);
    return done;
}

bool views_link(speed_state *s, PyObject *view, PyObject *base, PyObject *row, PyObject *args) {
    return views_list(s, view, base, PyTuple_Pack(3, base, row, args));
}

/* The alias of a marked view is a weak reference to the topmost tensor. The topmost tensor tells
 * the view of a write that is on the tape. A view of a marked view has the same mark, and already
 * has the edge of the same write. */
bool views_mark(speed_state *s, PyObject *view, PyObject *base) {
    PyObject **fields = ((tensor *)view)->fields, *alias, *ref;
    while ((alias = ((tensor *)base)->fields[TENSOR_ALIAS]) && PyTuple_Size(alias) == 3)
        base = PyTuple_GetItem(alias, 0);
    ref = alias ? PyTuple_GetItem(alias, 0) : PyWeakref_NewRef(base, NULL);
    if (alias) Py_INCREF(ref);
    PyObject *edge = alias ? ((tensor *)base)->fields[TENSOR_EDGE] : NULL;
    if (edge && edge != Py_True) {
        Py_INCREF(edge);
        Py_DECREF(fields[TENSOR_EDGE]); /* None, as the tensor is new */
        fields[TENSOR_EDGE] = edge;
    }
    PyObject *mark = ref ? PyTuple_Pack(1, ref) : NULL;
    PyObject *top = mark ? PyObject_CallFunctionObjArgs(ref, NULL) : NULL;
    /* the topmost tensor is gone, so nobody writes to it any more */
    bool done = top, lost = top == Py_None;
    if (done && !lost) done = views_list(s, view, top, mark);
    else if (done) fields[TENSOR_ALIAS] = mark;
    else Py_XDECREF(mark);
    Py_XDECREF(top);
    Py_XDECREF(ref);
    return done;
}

/* link(view, base, row, args) */
PyObject *speed_link(PyObject *module, PyObject *const *args, Py_ssize_t count) {
    speed_state *s = state_of(module);
    if (count != 4 || !tensor_is(s, args[0]) || !tensor_is(s, args[1]))
        return PyErr_Format(PyExc_TypeError, "link(view, base, row, args)");
    if (!views_link(s, args[0], args[1], args[2], args[3])) return NULL;
    Py_RETURN_NONE;
}

/* ---- basic indices ---- */

enum { INDEX_ITEMS = 64 };

static PyObject *index_tuple(const int64_t *numbers, int count) {
    PyObject *made = PyTuple_New(count);
    for (int i = 0; made && i < count; i++) {
        PyObject *number = PyLong_FromLongLong(numbers[i]);
        if (!number || PyTuple_SetItem(made, i, number)) Py_CLEAR(made);
    }
    return made;
}

/* The elements that an integer or slice selects from an axis. False if the item is wrong. */
static bool index_axis(PyObject *item, int64_t size, int64_t *start, int64_t *step, int64_t *count) {
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
    if (*count > 1) *step = by; /* with one element the step is never taken */
    *start = *count ? first : 0;
    return true;
}

/* None, so that Python reports what is wrong; NULL if a slice's bound raised an error of its
 * own. */
static PyObject *index_failed(void) {
    PyObject *error = PyErr_Occurred(), *usual[] = {PyExc_TypeError, PyExc_ValueError,
                                                    PyExc_OverflowError};
    bool known = !error;
    for (int i = 0; i < 3 && !known; i++) known = PyErr_GivenExceptionMatches(error, usual[i]);
    if (!known) return NULL;
    PyErr_Clear();
    Py_RETURN_NONE;
}

static Py_ssize_t index_count(PyObject *index) {
    return PyTuple_Check(index) ? PyTuple_Size(index) : 1;
}
static PyObject *index_item(PyObject *index, Py_ssize_t i) {
    return PyTuple_Check(index) ? PyTuple_GetItem(index, i) : index;
}

/* Number of axes that a basic index (integers, slices, None and one ...) takes; -1 for any other
 * index. */
static int index_taken(PyObject *index) {
    Py_ssize_t items = index_count(index);
    int taken = 0;
    bool dots = false;
    if (items > INDEX_ITEMS) return -1;
    for (Py_ssize_t i = 0; i < items; i++) {
        PyObject *item = index_item(index, i);
        if (PyLong_CheckExact(item) || PySlice_Check(item)) taken++;
        else if (item == Py_Ellipsis && !dots) dots = true;
        else if (item != Py_None) return -1;
    }
    return taken;
}

static PyObject *index_plan(const speed_state *s, const mg_array *x, PyObject *index) {
    int items = (int)index_count(index), taken = index_taken(index), axis = 0, kept = 0;
    int64_t start[MG_MAX_NDIM], step[MG_MAX_NDIM], size[MG_MAX_NDIM];
    int64_t shown[INDEX_ITEMS + MG_MAX_NDIM];
    bool whole = true, same = true;
    if (taken < 0 || taken > x->ndim) Py_RETURN_NONE;
    for (int i = 0; i <= items; i++) {
        PyObject *item = i == items ? Py_Ellipsis : index_item(index, i);
        if (item == Py_None) {
            shown[kept++] = 1;
            same = false;
        } else if (item == Py_Ellipsis) { /* as many axes as needed; at the end all that are left */
            for (int n = i == items ? x->ndim - axis : x->ndim - taken; n > 0; n--, axis++) {
                start[axis] = 0;
                step[axis] = 1;
                shown[kept++] = size[axis] = x->shape[axis];
            }
        } else {
            int64_t all = x->shape[axis];
            if (!index_axis(item, all, &start[axis], &step[axis], &size[axis])) return index_failed();
            if (size[axis] != all || step[axis] != 1) whole = false;
            if (PySlice_Check(item)) shown[kept++] = size[axis];
            else same = false;
            axis++;
        }
    }
    int n = x->ndim;
    if (whole && same) return Py_BuildValue("i()", -1);
    if (whole) return Py_BuildValue("i(N)", s->kernel_view_reshape, index_tuple(shown, kept));
    PyObject *a = index_tuple(start, n), *b = index_tuple(step, n), *c = index_tuple(size, n);
    if (same) return Py_BuildValue("i(NNN)", s->kernel_view_slice, a, b, c);
    return Py_BuildValue("i(NNNN)", s->kernel_view_slice_reshape, a, b, c, index_tuple(shown, kept));
}

/* basic_index(x, index): the view that integers, slices, None and ... make. Returns the number of a
 * view kernel and its arguments. The number is -1 if the view is x itself. None for all other
 * indices and for wrong ones. Raises what the bound of a slice raises. */
PyObject *speed_basic_index(PyObject *module, PyObject *const *args, Py_ssize_t count) {
    speed_state *s = state_of(module);
    PyObject *array = count == 2 && tensor_is(s, args[0]) ? tensor_array(s, args[0]) : NULL;
    if (!array) {
        if (!PyErr_Occurred()) return PyErr_Format(PyExc_TypeError, "basic_index(tensor, index)");
        return batched_again(s, "batched_index", args[0], args[1], NULL);
    }
    Py_INCREF(array); /* bounds of a slice may run Python code, which may give x another array */
    PyObject *made = index_plan(s, handle_array(array), args[1]);
    Py_DECREF(array);
    return made;
}

/* ---- split ---- */

/* split(run, x, axis, bounds, drop): a tuple of slices from each bound to the next along an axis.
 * `run` is the function of the slice row. If `drop`, each slice has one element and loses the
 * axis. */
PyObject *speed_split(PyObject *module, PyObject *args) {
    speed_state *s = state_of(module);
    PyObject *run, *x, *bounds;
    int axis, drop;
    if (!PyArg_ParseTuple(args, "OOiO!i", &run, &x, &axis, &PyTuple_Type, &bounds, &drop)) return NULL;
    PyObject *array = PyCFunction_Check(run) && tensor_is(s, x) ? tensor_array(s, x) : NULL;
    if (!array) {
        if (!PyErr_Occurred()) PyErr_SetString(PyExc_TypeError, "split(run, tensor, axis, bounds, drop)");
        return batched_again(s, "batched_split", args, NULL, NULL);
    }
    const mg_array *from = handle_array(array);
    int n = from->ndim;
    Py_ssize_t pieces = PyTuple_Size(bounds) - 1;
    int64_t start[MG_MAX_NDIM] = {0}, step[MG_MAX_NDIM], size[MG_MAX_NDIM], kept[MG_MAX_NDIM];
    for (int d = 0; d < n; d++) {
        step[d] = 1;
        size[d] = from->shape[d];
        if (d != axis) kept[d - (d > axis)] = size[d];
    }
    PyObject *made = PyTuple_New(pieces), *by = index_tuple(step, n), *to = index_tuple(kept, n - 1);
    for (Py_ssize_t i = 0; made && i < pieces; i++) {
        int64_t at = PyLong_AsLongLong(PyTuple_GetItem(bounds, i));
        int64_t count = PyLong_AsLongLong(PyTuple_GetItem(bounds, i + 1)) - at;
        size[axis] = count > 0 ? count : 0;
        start[axis] = count > 0 ? at : 0;
        PyObject *a = index_tuple(start, n), *c = index_tuple(size, n);
        PyObject *row = drop ? Py_BuildValue("(NONO)", a, by, c, to) : Py_BuildValue("(NON)", a, by, c);
        PyObject *both[] = {x, row}, *piece = row ? apply_run(PyCFunction_GetSelf(run), both, 2) : NULL;
        Py_XDECREF(row);
        if (!piece || PyTuple_SetItem(made, i, piece)) Py_CLEAR(made);
    }
    Py_XDECREF(by);
    Py_XDECREF(to);
    return made;
}
