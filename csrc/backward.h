/* backward.h: how gradients run back over the tape.
 *
 * The run is a loop over nodes, youngest first. Rules that Python has, hooks and gradients that have to
 * be made fit are brought to it, as is what fails or is watched; backprop.py says what is done when. */
#ifndef MG_BACKWARD_H
#define MG_BACKWARD_H

#include "adding.h"
#include "arrivals.h"
#include "flow.h"
#include "rule.h"

typedef struct {
    arrivals reached;
    node **queue; /* nodes that have a gradient: a heap, youngest first */
    Py_ssize_t waiting, room;
    PyObject *wanted, *useful; /* None, or sets: whose gradients are kept, and what leads to those */
    PyObject *g;               /* NULL at the roots */
    flow made;                 /* of it, by the last rule */
    bool retain, graph;
    bool ends; /* what is wanted is where the run ends, and its hooks are another run's */
} walk;

static bool walk_push(walk *w, node *one) {
    if (w->waiting == w->room) {
        Py_ssize_t room = w->room ? 2 * w->room : 16;
        node **grown = PyMem_Realloc(w->queue, (size_t)room * sizeof *grown);
        if (!grown) return PyErr_NoMemory();
        w->queue = grown;
        w->room = room;
    }
    Py_ssize_t at = w->waiting++;
    for (; at && w->queue[(at - 1) / 2]->serial < one->serial; at = (at - 1) / 2)
        w->queue[at] = w->queue[(at - 1) / 2];
    w->queue[at] = one;
    Py_INCREF(one);
    return true;
}

/* The youngest, of those that wait. */
static node *walk_pop(walk *w) {
    node **queue = w->queue, *youngest = queue[0], *last = queue[--w->waiting];
    Py_ssize_t at = 0;
    for (Py_ssize_t below = 1; below < w->waiting; below = 2 * at + 1) {
        if (below + 1 < w->waiting && queue[below]->serial < queue[below + 1]->serial) below++;
        if (queue[below]->serial < last->serial) break;
        queue[at] = queue[below];
        at = below;
    }
    queue[at] = last;
    return youngest;
}

static bool walk_noted(PyObject *set, PyObject *edge) { return PySet_Contains(set, edge) > 0; }

/* Hands a gradient to a parent. */
static bool walk_hand(walk *w, PyObject *parent, PyObject *back) {
    arrival *to = arrivals_slot(&w->reached, parent);
    bool as_it_came = !w->g || back == w->g;
    if (!to->edge) {
        if (!(to = arrivals_add(&w->reached, parent, back))) return false;
        to->shared = as_it_came;
        return !node_is(parent) || walk_push(w, (node *)parent);
    }
    PyObject *held = to->g, *made = NULL;
    if (to->owned) return back_accumulate(held, back);
    if (!w->graph && !as_it_came && back_sole(back)) { /* by the last rule, and nobody else has it */
        if (back_accumulate(back, held)) Py_INCREF(made = back);
    } else {
        made = PyNumber_Add(held, back);
    }
    if (!made) return false;
    to->g = made;
    to->shared = false;
    to->owned = !w->graph && tensor_is(made);
    Py_DECREF(held);
    return true;
}

/* The edge to the node that is next where that is clear, as in a chain: nobody else waits, and no
 * other edge leads to a node. */
static struct flow_edge *walk_next_edge(walk *w) {
    struct flow_edge *found = NULL;
    for (Py_ssize_t i = 0; i < w->made.count; i++) {
        struct flow_edge *one = &w->made.edges[i];
        if (!one->g || !one->parent || !node_is(one->parent)) continue;
        if (found || w->waiting) return NULL;
        found = one;
    }
    return found;
}

/* Hands the gradients to the parents, and goes on to the youngest node that has one: it has all of it.
 * Returns that, with its gradient as g; NULL for none, or an error. */
static node *walk_on(walk *w) {
    struct flow_edge *direct = walk_next_edge(w), next = {NULL, NULL};
    if (direct) {
        next = *direct;
        *direct = (struct flow_edge){NULL, NULL};
    }
    for (Py_ssize_t i = 0; i < w->made.count; i++) {
        struct flow_edge *one = &w->made.edges[i];
        if (!one->parent || !one->g || walk_hand(w, one->parent, one->g)) continue;
        Py_XDECREF(next.parent);
        Py_XDECREF(next.g);
        return NULL;
    }
    if (!direct && w->waiting) {
        next.parent = (PyObject *)walk_pop(w);
        next.g = arrivals_take(&w->reached, next.parent);
    }
    flow_close(&w->made);
    Py_XDECREF(w->g);
    w->g = next.g;
    return (node *)next.parent;
}

/* Gradients of slices as one; all others as they are. Takes it over. */
static PyObject *walk_whole(PyObject *g) {
    if ((PyObject *)Py_TYPE(g) != tensor_uses[PART]) return g;
    PyObject *made = PyObject_CallMethod(g, "whole", NULL);
    Py_DECREF(g);
    return made;
}

/* Has the gradient the shape and dtype of the input, which may have been broadcast or cast? */
static bool walk_fits(PyObject *g, PyObject *input) {
    if (g == Py_None) return true;
    PyObject *handle = tensor_is(g) ? ((tensor *)g)->fields[TENSOR_HANDLE] : NULL;
    if (!handle || Py_TYPE(handle) != handle_array_class) return false;
    const mg_array *array = handle_array(handle);
    PyObject *shape = PyTuple_GetItem(input, 0);
    bool fits = PyTuple_Size(shape) == array->ndim;
    for (int d = 0; fits && d < array->ndim; d++)
        fits = PyLong_AsLongLong(PyTuple_GetItem(shape, d)) == array->shape[d];
    return fits && PyLong_AsLong(PyTuple_GetItem(input, 1)) == array->dtype;
}

/* Undoes broadcasting and casts of the inputs. */
static bool walk_adapt(flow *made, PyObject *adapted) {
    for (Py_ssize_t i = 0; i < made->count; i++) {
        PyObject **place = &made->edges[i].g, *g = *place;
        PyObject *input = g ? PyTuple_GetItem(adapted, i) : NULL;
        if (!g || (input && walk_fits(g, input))) continue;
        *place = input ? back_ask("unadapted", g, input) : NULL;
        Py_DECREF(g);
        if (!*place) return false;
    }
    return true;
}

/* Edges to the parents that a node has now: its rule may run another backward, which frees it. */
static bool walk_reach(walk *w, node *at) {
    Py_ssize_t count = Py_SIZE(at);
    if (!count) back_raise("freed_error", (PyObject *)at, NULL);
    if (!count || !flow_open(&w->made, count)) return false;
    for (Py_ssize_t i = 0; i < count; i++) w->made.edges[i].parent = flow_some(at->parents[i]);
    return true;
}

/* Makes the gradient a copy of itself unless nobody else has its memory. */
static bool walk_own(const walk *w, PyObject **g) {
    if (back_writable_alone(*g)) return true;
    PyObject *copy = w->graph ? PyObject_CallMethod(*g, "clone", NULL) : back_copied(*g, NULL);
    if (!copy) return false;
    Py_DECREF(*g);
    *g = copy;
    return true;
}

/* True if the rule of this operation is the user's code. It may write over the gradient it is given, and
 * keep what it returns. */
static bool walk_lends(PyObject *op) {
    return op && (PyObject *)Py_TYPE(op) != tensor_uses[ROW] && PyObject_HasAttrString(op, "lends");
}

/* Runs a rule of the user's on a gradient of its own. A later write to what the user keeps changes none of
 * the gradients that the rule returned. */
static bool walk_lend(walk *w, node *at, PyObject *rule) {
    PyObject *given = walk_own(w, &w->g) ? PyObject_CallFunctionObjArgs(rule, at, w->g, NULL) : NULL;
    bool done = flow_take(&w->made, given, false);
    Py_XDECREF(given);
    Py_DECREF(w->g); /* it has not come as it is, and may be what the rule returned */
    Py_INCREF(w->g = Py_None);
    for (Py_ssize_t i = 0; done && i < w->made.count; i++) {
        PyObject **g = &w->made.edges[i].g;
        done = !*g || !tensor_is(*g) || walk_own(w, g);
    }
    return done;
}

/* Puts to the edges what the rule of a node makes of its gradient. */
static bool walk_rule(walk *w, node *at) {
    static PyObject *names[2];
    PyObject **name = &names[w->graph], *op = at->fields[NODE_OP], *each[OPERANDS];
    if (!*name) *name = PyUnicode_InternFromString(w->graph ? "graph_vjp" : "vjp");
    PyObject *found = *name ? PyObject_GetAttr(op ? op : Py_None, *name) : NULL;
    if (!found) return false;
    bool done;
    if (PyCFunction_Check(found) && PyCFunction_GetFunction(found) == rule_method.ml_meth &&
        tensor_is(w->g)) {
        const rule *rule = PyCapsule_GetPointer(PyCFunction_GetSelf(found), NULL);
        bool over = !w->graph;
        done = rule_run(rule, at, w->g, &over, each);
        for (int i = 0; done && i < rule->arity; i++) w->made.edges[i].g = each[i];
        if (done && over) { /* g is what was made: it has not come as it is */
            Py_DECREF(w->g);
            Py_INCREF(w->g = Py_None);
        }
    } else if (walk_lends(op)) {
        done = walk_lend(w, at, found);
    } else {
        PyObject *given = PyObject_CallFunctionObjArgs(found, at, w->g, NULL);
        done = flow_take(&w->made, given, false);
        Py_XDECREF(given);
    }
    Py_DECREF(found);
    return done;
}

/* True if one of the hooks may keep, or write over, the gradient that it is given. */
static bool walk_meddles(PyObject *hooks) {
    bool meddles = !PyList_Check(hooks);
    for (Py_ssize_t i = 0; !meddles && i < PyList_Size(hooks); i++)
        meddles = !PyObject_HasAttrString(PyList_GetItem(hooks, i), "only_reads");
    return meddles;
}

/* A gradient as what hooks make of it: of a node, or of a leaf. Takes it over. A later write to what a hook
 * keeps does not change it. */
static PyObject *walk_hooked(const walk *w, PyObject *edge, PyObject *hooks, PyObject *g) {
    g = walk_whole(g);
    if (!g || !hooks || hooks == Py_None) return g;
    PyObject *alone = back_writable_alone(g) ? Py_True : Py_False;
    bool meddles = walk_meddles(hooks);
    PyObject *made = back_ask_of(w->graph ? "hooked" : "hooked_off_tape", edge, g, alone);
    Py_DECREF(g);
    if (made && meddles && !walk_own(w, &made)) Py_CLEAR(made);
    return made;
}

/* One node: its hooks, its rule; of those that are wanted but lead to none that is, its hooks. */
static bool walk_step(walk *w, node *at) {
    PyObject *self = (PyObject *)at;
    bool wanted = w->wanted != Py_None && walk_noted(w->wanted, self);
    bool useful = w->useful == Py_None || walk_noted(w->useful, self);
    if (!wanted && !useful) return true;
    if (wanted && w->ends) {
        w->g = walk_whole(w->g);
        return w->g && arrivals_add(&w->reached, self, w->g);
    }
    if (w->g) w->g = walk_hooked(w, self, at->fields[NODE_HOOKS], w->g);
    if (!w->g) return false;
    if (wanted && !arrivals_add(&w->reached, self, w->g)) return false;
    if (!useful) return true;
    if (!walk_reach(w, at) || !walk_rule(w, at)) return false;
    PyObject *adapted = at->fields[NODE_ADAPTED];
    if (adapted && adapted != Py_None) {
        Py_INCREF(adapted); /* the node may lose it to what Python is asked for */
        bool done = walk_adapt(&w->made, adapted);
        Py_DECREF(adapted);
        if (!done) return false;
    }
    if (!w->retain) Py_XDECREF(node_release(self, NULL));
    return true;
}

/* Between nodes now and then: a call of Python's sees Ctrl-C, and lets other threads have their turn if
 * they have waited for theirs. (To give the lock up and take it back would wake them only to find it
 * taken, and they would wait anew.) */
static bool walk_pause(void) {
    PyObject *done = back_ask("pause", NULL, NULL);
    Py_XDECREF(done);
    return done;
}

static bool walk_unwanted(const walk *w, PyObject *edge) {
    return w->wanted != Py_None && !walk_noted(w->wanted, edge);
}

/* Has the hooks of leaves change their gradients, all of them before a leaf gets its own: if one fails,
 * none does. They may hold what they return. */
static bool walk_hook_leaves(walk *w) {
    if (w->ends) return true;
    for (arrival *one = w->reached.slots; one < w->reached.slots + w->reached.used; one++) {
        PyObject *hooks = tensor_is(one->edge) ? ((tensor *)one->edge)->fields[TENSOR_HOOKS] : NULL;
        if (!hooks || !PyList_Size(hooks) || walk_unwanted(w, one->edge)) continue;
        if (!(one->g = walk_hooked(w, one->edge, hooks, one->g))) return false;
        one->shared = true;
    }
    return true;
}

/* Has a leaf ceased to require a gradient since something was computed from it? */
static bool walk_ceased(PyObject *leaf) {
    return tensor_is(leaf) && ((tensor *)leaf)->fields[TENSOR_EDGE] != Py_True;
}

/* Is nothing to be done with what has come to an edge? Hooks see the gradients of nodes. */
static bool walk_seen(const walk *w, PyObject *edge, bool into_grads) {
    return (into_grads && (node_is(edge) || walk_ceased(edge))) || walk_unwanted(w, edge);
}

/* Puts gradients of slices together, and copies for leaves that have none yet what others hold, too: all
 * of them before a leaf gets its own, so that what there is no memory for changes none. */
static bool walk_ready(walk *w, bool into_grads) {
    PyObject *copy = NULL; /* of the gradient that comes next */
    bool done = true;
    for (Py_ssize_t i = 0; done && i < w->reached.used; i++) {
        arrival *one = &w->reached.slots[i], *next = i + 1 < w->reached.used ? one + 1 : NULL;
        PyObject *made = copy, *spare = copy = NULL;
        if (!walk_seen(w, one->edge, into_grads)) {
            one->g = walk_whole(one->g);
            done = one->g;
            if (done && into_grads && !tensor_is(one->edge)) {
                PyErr_SetString(PyExc_TypeError, "gradients end at tensors");
                done = false;
            }
            bool again = next && one->shared && next->g == one->g && back_empty(next->edge);
            if (done && into_grads && !made && back_empty(one->edge) &&
                (one->shared || !back_sole(one->g))) {
                made = back_copied(one->g, again ? &spare : NULL);
                done = made;
            }
            if (done && made) {
                Py_DECREF(one->g);
                Py_INCREF(one->g = made);
                one->shared = false;
            }
        }
        Py_XDECREF(made);
        copy = spare;
    }
    Py_XDECREF(copy);
    return done;
}

/* Calls the hooks that wait until the gradients of leaves are there. */
static bool walk_tell_leaves(const walk *w) {
    bool done = true;
    for (Py_ssize_t i = 0; done && i < w->reached.used; i++) {
        PyObject *leaf = w->reached.slots[i].edge;
        if (walk_seen(w, leaf, true) || !((tensor *)leaf)->fields[TENSOR_HOOKS]) continue;
        PyObject *told = back_ask("accumulated_off_tape", leaf, NULL);
        done = told;
        Py_XDECREF(told);
    }
    return done;
}

/* What a run comes to for each edge that is wanted: a dict, or None where it is added to the leaves'
 * `grad`. */
static PyObject *walk_found(walk *w, bool into_grads) {
    PyObject *found = into_grads ? Py_None : PyDict_New();
    if (into_grads) Py_INCREF(found);
    arrivals_sort(&w->reached);
    if (found && (!walk_hook_leaves(w) || !walk_ready(w, into_grads))) Py_CLEAR(found);
    for (Py_ssize_t i = 0; found && i < w->reached.used; i++) {
        arrival *one = &w->reached.slots[i];
        if (walk_seen(w, one->edge, into_grads)) continue;
        if (!(into_grads ? back_deliver(one->edge, one->g, one->shared)
                         : PyDict_SetItem(found, one->edge, one->g) == 0))
            Py_CLEAR(found);
    }
    if (found && into_grads && !walk_tell_leaves(w)) Py_CLEAR(found);
    return found;
}

/* How many runs may be inside one another, as where a Function's backward calls backward: each takes 2 KB
 * or more of the thread's stack, which Python's own limit, once it is raised, guards no more. */
enum { WALK_DEPTH = 1000 };
static _Thread_local int walk_depth;
static _Thread_local int64_t walk_runs; /* of this thread so far */
static _Thread_local int64_t walk_current; /* the number of the run that is innermost; 0 for none */

/* From what is made: the roots and their gradients, if that was `done`. */
static PyObject *walk_run(walk *w, bool done, bool into_grads) {
    if (done && walk_depth >= WALK_DEPTH) {
        back_raise("nested_error", NULL, NULL);
        done = false;
    }
    walk_depth++;
    int64_t outer = walk_current;
    walk_current = ++walk_runs;
    w->reached.slots = w->reached.few;
    w->reached.room = sizeof w->reached.few / sizeof *w->reached.few;
    unsigned steps = 0;
    for (node *at; done && (at = walk_on(w));) {
        done = walk_step(w, at) && (++steps % 256 || walk_pause());
        Py_DECREF(at);
    }
    PyObject *found = done && !PyErr_Occurred() ? walk_found(w, into_grads) : NULL;
    walk_depth--;
    walk_current = outer;
    while (w->waiting) Py_DECREF(w->queue[--w->waiting]);
    PyMem_Free(w->queue);
    arrivals_free(&w->reached);
    flow_close(&w->made);
    Py_XDECREF(w->g);
    return found;
}

enum { BACK_DTYPES = MG_FLOAT64 + 1 };

/* The upstream gradient of a single element, 1. Its memory is shared, so sealed against writes; it is a
 * tensor of its own, which takes along what is noted of its views. */
static PyObject *walk_one(int dtype) {
    static PyObject *ones[BACK_DTYPES];
    if (!ones[dtype]) {
        mg_array *one = mg_full(dtype, 0, NULL, 1, 1);
        if (!one) return PyErr_NoMemory();
        mg_seal(one);
        ones[dtype] = handle_around(one);
    }
    Py_XINCREF(ones[dtype]);
    return tensor_around(ones[dtype], Py_None, Py_None);
}

/* The upstream gradient as it is, or 1, where nothing has to be said or done about it. Arrays are
 * looked at after edges: to ask for one may run Python, which may put another array in a tensor. */
static PyObject *walk_upstream(PyObject *output, PyObject *given) {
    PyObject *edge = tensor_is(given) ? tensor_parent(given) : NULL;
    bool plain = edge == Py_None;
    Py_XDECREF(edge);
    PyObject *handle = PyErr_Occurred() ? NULL : tensor_handle(output);
    PyObject *other = handle && plain ? tensor_handle(given) : NULL;
    if (handle && given == Py_None && handle_array(handle)->ndim == 0)
        return walk_one(handle_array(handle)->dtype);
    if (!other || !mg_alike(handle_array(handle), handle_array(other))) return NULL;
    Py_INCREF(given);
    return given;
}

/* into_grads(output, gradient, retain_graph) */
static PyObject *walk_into_grads(PyObject *unused, PyObject *const *given, Py_ssize_t count) {
    (void)unused;
    walk w = {.wanted = Py_None, .useful = Py_None};
    if (count != 3 || !tensor_is(given[0]))
        return PyErr_Format(PyExc_TypeError, "[backward] expected a Tensor to start from");
    int retain = PyObject_IsTrue(given[2]);
    PyObject *edge = retain < 0 ? NULL : tensor_parent(given[0]);
    if (!edge) return NULL;
    PyObject *g = edge == Py_None ? NULL : walk_upstream(given[0], given[1]);
    PyObject *both = g || PyErr_Occurred() ? NULL : back_ask("start", given[0], given[1]);
    if (both) {
        Py_DECREF(edge);
        Py_INCREF(edge = PyTuple_GetItem(both, 0));
        Py_INCREF(g = PyTuple_GetItem(both, 1));
        Py_DECREF(both);
    }
    flow_open(&w.made, 1);
    w.made.edges[0] = (struct flow_edge){edge, g};
    w.retain = retain;
    return walk_run(&w, g, true);
}

/* one(dtype) */
static PyObject *walk_one_of(PyObject *unused, PyObject *dtype) {
    (void)unused;
    long code = PyLong_AsLong(dtype);
    if (code >= 0 && code < BACK_DTYPES) return walk_one((int)code);
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_ValueError, "one(dtype): no such dtype");
    return NULL;
}

/* gradients(roots, upstream, retain_graph, create_graph, wanted, useful, into_grads, ends): by edge, or
 * None and added to the leaves' `grad`. */
static PyObject *walk_gradients(PyObject *unused, PyObject *args) {
    (void)unused;
    walk w = {NULL};
    PyObject *roots, *upstream;
    int retain, graph, into_grads, ends;
    if (!PyArg_ParseTuple(args, "OOppOOpp", &roots, &upstream, &retain, &graph, &w.wanted, &w.useful,
                          &into_grads, &ends))
        return NULL;
    w.retain = retain;
    w.graph = graph;
    w.ends = ends;
    bool done = flow_take(&w.made, roots, true) && flow_take(&w.made, upstream, false);
    return walk_run(&w, done, into_grads);
}

/* ---- what Python gets ---- */

static PyMethodDef back_functions[] = {
    METHOD("into_grads", walk_into_grads, METH_FASTCALL),
    METHOD("gradients", walk_gradients, METH_VARARGS),
    METHOD("rule", rule_new, METH_VARARGS),
    METHOD("one", walk_one_of, METH_O),
};

mg_object *mg_back_parts(void) {
    PyObject *made[4];
    for (int i = 0; i < 4; i++) made[i] = PyCFunction_NewEx(&back_functions[i], NULL, NULL);
    return (mg_object *)Py_BuildValue("NNNN", made[0], made[1], made[2], made[3]);
}

int mg_back_depth(void) { return walk_depth; }
int64_t mg_back_number(void) { return walk_current; }

#endif
