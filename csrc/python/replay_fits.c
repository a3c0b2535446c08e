/* replay_fits.c: whether a call is like a recorded one, as far as Python objects say.
 *
 * The conditions are defined in minigrad/_compile/recorded.py.
 */
#include "replay.h"

#include <string.h>

bool replay_same(PyObject *now, PyObject *value) {
    if (now == value) return true;
    if (!now || !value || Py_TYPE(now) != Py_TYPE(value)) return false;
    if (PyFloat_CheckExact(now)) {
        double a = PyFloat_AsDouble(now), b = PyFloat_AsDouble(value);
        return a == b && memcmp(&a, &b, sizeof a) == 0;
    }
    return (PyLong_CheckExact(now) || PyUnicode_CheckExact(now)) &&
           PyObject_RichCompareBool(now, value, Py_EQ) == 1;
}

static bool guard_list_holds(const replay_guard *g) {
    Py_ssize_t count = PyTuple_Size(g->value);
    if (PyList_Size(g->where) != count) return false;
    for (Py_ssize_t i = 0; i < count; i++)
        if (!replay_same(PyList_GetItem(g->where, i), PyTuple_GetItem(g->value, i))) return false;
    return true;
}

static bool guard_dict_holds(const replay_guard *g) {
    Py_ssize_t count = PyTuple_Size(g->value), at = 0;
    PyObject *key, *value;
    if (PyDict_Size(g->where) != count) return false;
    for (Py_ssize_t i = 0; i < count && PyDict_Next(g->where, &at, &key, &value); i++)
        if (!replay_same(g->kind == GUARD_KEYS ? key : value, PyTuple_GetItem(g->value, i))) return false;
    return true;
}

static bool guard_items_hold(const replay_guard *g) {
    Py_ssize_t count = PyTuple_Size(g->value);
    if (PyObject_Size(g->where) != count) return false;
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *now = PyObject_GetItem(g->where, PyTuple_GetItem(g->key, i));
        bool holds = replay_same(now, PyTuple_GetItem(g->value, i));
        Py_XDECREF(now);
        if (!holds) return false;
    }
    return true;
}

static bool guard_holds(const replay_guard *g) {
    PyObject *now = NULL;
    bool holds;
    switch (g->kind) {
    case GUARD_LIST: return guard_list_holds(g);
    case GUARD_KEYS:
    case GUARD_VALUES: return guard_dict_holds(g);
    case GUARD_ITEMS: return guard_items_hold(g);
    case GUARD_LENGTH: return PyObject_Size(g->where) == PyLong_AsSsize_t(g->value);
    case GUARD_CALL:
        now = PyObject_CallFunctionObjArgs(g->where, NULL);
        holds = now == Py_True;
        Py_XDECREF(now);
        return holds;
    case GUARD_ABSENT: return !PyDict_GetItemWithError(g->where, g->key);
    case GUARD_CELL: now = g->cell(g->where, NULL); break;
    case GUARD_ATTRIBUTE: now = PyObject_GetAttr(g->where, g->key); break;
    default:
        if (PyDict_Check(g->where)) return replay_same(PyDict_GetItemWithError(g->where, g->key), g->value);
        now = PyObject_GetItem(g->where, g->key);
    }
    holds = replay_same(now, g->value);
    Py_XDECREF(now);
    return holds;
}

static bool edge_fits(const speed_state *s, PyObject *x, int kind) {
    PyObject *edge = tensor_field(x, TENSOR_EDGE);
    if (kind == EDGE_NODE) return node_is(s, edge);
    return edge == (kind == EDGE_LEAF ? Py_True : Py_None);
}

/* True if a tensor has hooks of its own. */
static bool tensor_hooked(PyObject *x) {
    PyObject *hooks = tensor_field(x, TENSOR_HOOKS);
    if (hooks == Py_None) return false;
    if (PyObject_Size(hooks)) return true;
    PyObject *after = PyObject_GetAttrString(hooks, "after");
    bool some = !after || PyObject_Size(after);
    Py_XDECREF(after);
    return some;
}

/* Lays the arguments of a call out as values. */
static bool replay_values(replay_run *c) {
    replay *r = c->r;
    Py_ssize_t count = PyTuple_Size(c->args), names = c->named ? PyDict_Size(c->named) : 0, at = 0;
    if (names != r->name_count || count + names != r->value_count) return false;
    for (Py_ssize_t i = 0; i < count; i++) c->values[i] = PyTuple_GetItem(c->args, i);
    for (Py_ssize_t i = 0; i < names; i++) {
        PyObject *key;
        if (!PyDict_Next(c->named, &at, &key, &c->values[count + i]) || !replay_same(key, r->names[i])) return false;
    }
    return true;
}

static bool replay_values_fit(const replay_run *c) {
    const replay *r = c->r;
    for (Py_ssize_t i = 0; i < r->value_count; i++) {
        PyObject *x = c->values[i];
        if (r->edges[i] == EDGE_CONSTANT) {
            if (!replay_same(x, r->constants[i])) return false;
            continue;
        }
        if ((PyObject *)Py_TYPE(x) != r->s->uses[USE_RESULT] || !edge_fits(r->s, x, r->edges[i])) return false;
        if ((r->constants[i] != Py_None && x != r->constants[i]) || tensor_hooked(x)) return false;
        for (Py_ssize_t k = 0; k < i; k++)
            if (x == c->values[k]) return false;
    }
    return true;
}

bool replay_fits(replay_run *c) {
    replay *r = c->r;
    speed_state *s = r->s;
    if (call_watched(s) || !replay_values(c) || !replay_values_fit(c)) return false;
    for (Py_ssize_t i = 0; i < r->idle_count; i++)
        if (PyList_Size(r->idle[i])) return false;
    if (apply_paused(s) == r->records) return false;
    for (Py_ssize_t i = 0; i < r->leaf_count; i++) {
        const replay_leaf *l = &r->leaves[i];
        PyObject *x = target_of(c, &l->of);
        if (l->without >= 0 && (tensor_field(x, TENSOR_GRAD) == Py_None) != l->without) return false;
        if (!edge_fits(s, x, l->edge)) return false;
        for (Py_ssize_t k = 0; l->of.tensor && k < r->value_count; k++)
            if (x == c->values[k]) return false;
    }
    for (Py_ssize_t i = 0; i < r->guard_count; i++)
        if (!guard_holds(&r->guards[i])) return false;
    return true;
}
