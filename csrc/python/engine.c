/* engine.c: the engine: the backward pass over the tape.
 *
 * A pass is a loop over nodes, youngest first. It calls Python for rules in Python, hooks,
 * unbroadcasting, errors and tracers. The pass is defined in minigrad/tape/engine.py.
 */
#include "speed.h"

#include <stdlib.h>

/* ---- calls of Python ---- */

PyObject *engine_callback(speed_state *s, const char *name, PyObject *a, PyObject *b, PyObject *c) {
    /* Interned, so always the same string: Python's cache of attributes holds the strings it saw. */
    PyObject *attribute = PyUnicode_InternFromString(name);
    PyObject *function = attribute ? PyObject_GetAttr(s->uses[USE_ENGINE], attribute) : NULL;
    PyObject *made = function ? PyObject_CallFunctionObjArgs(function, a, b, c, NULL) : NULL;
    Py_XDECREF(attribute);
    Py_XDECREF(function);
    return made;
}

void engine_raise(speed_state *s, const char *name, PyObject *a, PyObject *b) {
    PyObject *error = engine_callback(s, name, a, b, NULL);
    if (error) PyErr_SetObject((PyObject *)Py_TYPE(error), error);
    Py_XDECREF(error);
}

PyObject *batched_again(speed_state *s, const char *name, PyObject *a, PyObject *b, PyObject *c) {
    PyObject *type, *error, *trace;
    bool usual = PyErr_Occurred() && (PyErr_ExceptionMatches(PyExc_TypeError) ||
                                      PyErr_ExceptionMatches(PyExc_AttributeError));
    if (!usual || !a || !s->uses[USE_ENGINE]) return NULL;
    PyErr_Fetch(&type, &error, &trace);
    PyObject *found = engine_callback(s, name, a, b, c), *made = NULL;
    if (found == Py_None) {
        PyErr_Restore(type, error, trace);
    } else { /* a tuple of the result, or an error that explains */
        if (found && PyTuple_Check(found) && PyTuple_Size(found) == 1) made = Py_NewRef(PyTuple_GetItem(found, 0));
        Py_XDECREF(type);
        Py_XDECREF(error);
        Py_XDECREF(trace);
    }
    Py_XDECREF(found);
    return made;
}

/* ---- the grad map: a hash table from edge to the gradient accumulated so far ---- */

/* The gradient accumulated so far for an edge. A node's entry goes when the node runs. The entry of
 * a leaf, or of an input of the pass, stays to the end. */
typedef struct {
    PyObject *edge, *g;
    Py_ssize_t turn; /* order in which the edges were reached */
    bool owned;      /* g is a sum made in this pass, and may be added to in place */
    bool shared;     /* g was handed to a leaf as it came, so others may hold it */
} edge_grad;

/* Hash table by the edge's address, with linear probing and deletion that leaves no tombstones (D.
 * E. Knuth, "The Art of Computer Programming" vol. 3, 1998, algorithm 6.4 R). */
typedef struct {
    edge_grad *slots;
    Py_ssize_t room, used, turns; /* room: a power of two */
    edge_grad few[8];               /* enough for a small graph */
} grad_map;

static Py_ssize_t grad_map_home(const grad_map *all, const PyObject *edge) {
    uint64_t mixed = (uint64_t)(uintptr_t)edge * 0x9e3779b97f4a7c15; /* Knuth, section 6.4 */
    return (Py_ssize_t)(mixed >> 32) & (all->room - 1);
}

/* The slot of an edge, or the free slot where it belongs. */
static edge_grad *grad_map_slot(const grad_map *all, const PyObject *edge) {
    Py_ssize_t at = grad_map_home(all, edge);
    while (all->slots[at].edge && all->slots[at].edge != edge) at = (at + 1) & (all->room - 1);
    return &all->slots[at];
}

static bool grad_map_grow(grad_map *all) {
    grad_map grown = {.room = 2 * all->room};
    grown.slots = PyMem_Calloc((size_t)grown.room, sizeof *grown.slots);
    if (!grown.slots) return PyErr_NoMemory();
    for (edge_grad *one = all->slots; one < all->slots + all->room; one++)
        if (one->edge) *grad_map_slot(&grown, one->edge) = *one;
    if (all->slots != all->few) PyMem_Free(all->slots);
    all->slots = grown.slots;
    all->room = grown.room;
    return true;
}

/* Adds an edge that has no gradient yet. */
static edge_grad *grad_map_add(grad_map *all, PyObject *edge, PyObject *g) {
    if (4 * all->used >= 3 * all->room && !grad_map_grow(all)) return NULL;
    edge_grad *slot = grad_map_slot(all, edge);
    Py_INCREF(edge);
    Py_INCREF(g);
    *slot = (edge_grad){.edge = edge, .g = g, .turn = all->turns++};
    all->used++;
    return slot;
}

/* Removes an edge and returns its gradient. */
static PyObject *grad_map_take(grad_map *all, PyObject *edge) {
    edge_grad *hole = grad_map_slot(all, edge);
    PyObject *g = hole->g, *key = hole->edge;
    Py_ssize_t last = all->room - 1, at = hole - all->slots;
    for (Py_ssize_t next = (at + 1) & last; all->slots[next].edge; next = (next + 1) & last) {
        Py_ssize_t home = grad_map_home(all, all->slots[next].edge);
        /* it is found without filling the hole */
        if (((next - home) & last) < ((next - at) & last)) continue;
        all->slots[at] = all->slots[next];
        at = next;
    }
    all->slots[at] = (edge_grad){NULL};
    if (key) all->used--;
    Py_XDECREF(key);
    return g;
}

static int grad_map_earlier(const void *a, const void *b) {
    Py_ssize_t one = ((const edge_grad *)a)->turn, other = ((const edge_grad *)b)->turn;
    return (one > other) - (one < other);
}

/* Moves all entries to the front, in the order in which they were reached. Look-ups no longer work
 * afterwards. */
static void grad_map_sort(grad_map *all) {
    Py_ssize_t count = 0;
    for (Py_ssize_t at = 0; at < all->room; at++) {
        edge_grad one = all->slots[at];
        all->slots[at].edge = NULL;
        if (one.edge) all->slots[count++] = one;
    }
    qsort(all->slots, (size_t)count, sizeof *all->slots, grad_map_earlier);
}

static void grad_map_free(grad_map *all) {
    for (edge_grad *one = all->slots; one < all->slots + all->room; one++) {
        if (!one->edge) continue;
        Py_DECREF(one->edge);
        Py_XDECREF(one->g);
    }
    if (all->slots != all->few) PyMem_Free(all->slots);
}

/* ---- edge grads: a gradient for each edge from a node to its parents ---- */

typedef struct {
    Py_ssize_t count;
    struct outgoing_edge {
        PyObject *parent, *g; /* NULL if no gradient is needed, or the rule returned none */
    } *edges, few[OPERANDS];  /* few nodes have more parents */
} outgoing;

/* Makes room for `count` edges. */
static bool outgoing_open(outgoing *all, Py_ssize_t count) {
    size_t bytes = (size_t)count * sizeof *all->edges;
    struct outgoing_edge *edges = count <= OPERANDS ? all->few : PyMem_Malloc(bytes);
    if (!edges) return PyErr_NoMemory();
    for (Py_ssize_t i = 0; i < count; i++) edges[i] = (struct outgoing_edge){NULL, NULL};
    all->edges = edges;
    all->count = count;
    return true;
}

static void outgoing_close(outgoing *all) {
    for (Py_ssize_t i = 0; i < all->count; i++) {
        Py_XDECREF(all->edges[i].parent);
        Py_XDECREF(all->edges[i].g);
    }
    if (all->count > OPERANDS) PyMem_Free(all->edges);
    all->count = 0;
}

/* NULL for None, else a new reference. */
static PyObject *outgoing_some(PyObject *x) {
    if (x == Py_None) return NULL;
    Py_INCREF(x);
    return x;
}

/* Reads a Python sequence with an item for each edge: the parents, or the gradients. */
static bool outgoing_take(outgoing *all, PyObject *given, bool parents) {
    PyObject *each = given ? PySequence_Tuple(given) : NULL;
    Py_ssize_t count = each ? PyTuple_Size(each) : 0;
    bool done = each && (!parents || outgoing_open(all, count));
    for (Py_ssize_t i = 0; done && i < count && i < all->count; i++) {
        struct outgoing_edge *one = &all->edges[i];
        *(parents ? &one->parent : &one->g) = outgoing_some(PyTuple_GetItem(each, i));
    }
    Py_XDECREF(each);
    return done;
}

/* ---- the pass ---- */

typedef struct {
    grad_map reached;
    node **queue; /* heap of nodes that have a gradient, youngest first */
    Py_ssize_t waiting, room;
    /* None, or sets: edges whose gradients are kept, and nodes that lead to those */
    PyObject *needed, *reaches_inputs;
    PyObject *g;               /* gradient of the node that runs; NULL at the roots */
    outgoing made;                 /* the edge grads made by the last rule */
    speed_state *s;
    bool retain, graph;
    bool ends; /* the pass ends at the edges in `needed`, whose hooks belong to another pass */
} pass;

static bool pass_push(pass *p, node *one) {
    if (p->waiting == p->room) {
        Py_ssize_t room = p->room ? 2 * p->room : 16;
        node **grown = PyMem_Realloc(p->queue, (size_t)room * sizeof *grown);
        if (!grown) return PyErr_NoMemory();
        p->queue = grown;
        p->room = room;
    }
    Py_ssize_t at = p->waiting++;
    for (; at && p->queue[(at - 1) / 2]->serial < one->serial; at = (at - 1) / 2)
        p->queue[at] = p->queue[(at - 1) / 2];
    p->queue[at] = one;
    Py_INCREF(one);
    return true;
}

/* Removes the youngest node from the heap. */
static node *pass_pop(pass *p) {
    node **queue = p->queue, *youngest = queue[0], *last = queue[--p->waiting];
    Py_ssize_t at = 0;
    for (Py_ssize_t below = 1; below < p->waiting; below = 2 * at + 1) {
        if (below + 1 < p->waiting && queue[below]->serial < queue[below + 1]->serial) below++;
        if (queue[below]->serial < last->serial) break;
        queue[at] = queue[below];
        at = below;
    }
    queue[at] = last;
    return youngest;
}

static bool pass_noted(PyObject *set, PyObject *edge) { return PySet_Contains(set, edge) > 0; }

/* Adds a gradient to a parent's. */
static bool pass_hand(pass *p, PyObject *parent, PyObject *back) {
    edge_grad *to = grad_map_slot(&p->reached, parent);
    bool as_it_came = !p->g || back == p->g;
    if (!to->edge) {
        if (!(to = grad_map_add(&p->reached, parent, back))) return false;
        to->shared = as_it_came;
        return !node_is(p->s, parent) || pass_push(p, (node *)parent);
    }
    PyObject *held = to->g, *made = NULL;
    if (to->owned) return accumulate_into(p->s, held, back);
    /* a rule has just made it, and nobody else holds it */
    if (!p->graph && !as_it_came && accumulate_sole(p->s, back)) {
        if (accumulate_into(p->s, back, held)) Py_INCREF(made = back);
    } else {
        made = PyNumber_Add(held, back);
    }
    if (!made) return false;
    to->g = made;
    to->shared = false;
    to->owned = !p->graph && tensor_is(p->s, made);
    Py_DECREF(held);
    return true;
}

/* The edge to the next node, if that is clear without the heap, as in a chain. The heap must then
 * be empty, and no other edge may lead to a node. */
static struct outgoing_edge *pass_next_edge(pass *p) {
    struct outgoing_edge *found = NULL;
    for (Py_ssize_t i = 0; i < p->made.count; i++) {
        struct outgoing_edge *one = &p->made.edges[i];
        if (!one->g || !one->parent || !node_is(p->s, one->parent)) continue;
        if (found || p->waiting) return NULL;
        found = one;
    }
    return found;
}

/* Hands the gradients to the parents and moves on to the youngest node that has a gradient. No
 * younger node is left, so the gradient is complete. Returns the node and sets p->g. NULL if there
 * is none, or with an error set. */
static node *pass_on(pass *p) {
    struct outgoing_edge *direct = pass_next_edge(p), next = {NULL, NULL};
    if (direct) {
        next = *direct;
        *direct = (struct outgoing_edge){NULL, NULL};
    }
    for (Py_ssize_t i = 0; i < p->made.count; i++) {
        struct outgoing_edge *one = &p->made.edges[i];
        if (!one->parent || !one->g || pass_hand(p, one->parent, one->g)) continue;
        Py_XDECREF(next.parent);
        Py_XDECREF(next.g);
        return NULL;
    }
    if (!direct && p->waiting) {
        next.parent = (PyObject *)pass_pop(p);
        next.g = grad_map_take(&p->reached, next.parent);
    }
    outgoing_close(&p->made);
    Py_XDECREF(p->g);
    p->g = next.g;
    return (node *)next.parent;
}

/* Turns a slice gradient into a full gradient; others stay. Takes over the reference. */
static PyObject *pass_whole(const pass *p, PyObject *g) {
    if ((PyObject *)Py_TYPE(g) != p->s->uses[USE_SLICE_GRAD]) return g;
    PyObject *made = PyObject_CallMethod(g, "whole", NULL);
    Py_DECREF(g);
    return made;
}

/* True if the gradient has the shape and dtype of the input. */
static bool pass_fits(const pass *p, PyObject *g, PyObject *input) {
    if (g == Py_None) return true;
    PyObject *held = tensor_is(p->s, g) ? ((tensor *)g)->fields[TENSOR_ARRAY] : NULL;
    if (!held || !array_is(p->s, held)) return false;
    const mg_array *array = handle_array(held);
    PyObject *shape = PyTuple_GetItem(input, 0);
    bool fits = PyTuple_Size(shape) == array->ndim;
    for (int d = 0; fits && d < array->ndim; d++)
        fits = PyLong_AsLongLong(PyTuple_GetItem(shape, d)) == array->shape[d];
    return fits && PyLong_AsLong(PyTuple_GetItem(input, 1)) == array->dtype;
}

/* Undoes broadcasting and casts of the inputs. */
static bool pass_unbroadcast(pass *p, PyObject *inputs) {
    for (Py_ssize_t i = 0; i < p->made.count; i++) {
        PyObject **place = &p->made.edges[i].g, *g = *place;
        PyObject *input = g ? PyTuple_GetItem(inputs, i) : NULL;
        if (!g || (input && pass_fits(p, g, input))) continue;
        *place = input ? engine_callback(p->s, "unbroadcast", g, input, NULL) : NULL;
        Py_DECREF(g);
        if (!*place) return false;
    }
    return true;
}

/* Opens an edge for each parent that the node has now. Its rule may run another backward, which
 * frees the node. */
static bool pass_reach(pass *p, node *at) {
    Py_ssize_t count = Py_SIZE(at);
    if (!count) engine_raise(p->s, "freed_error", (PyObject *)at, NULL);
    if (!count || !outgoing_open(&p->made, count)) return false;
    for (Py_ssize_t i = 0; i < count; i++) p->made.edges[i].parent = outgoing_some(at->parents[i]);
    return true;
}

/* Replaces the gradient by a copy unless nobody else has its memory. */
static bool pass_own(const pass *p, PyObject **g) {
    if (accumulate_writable_alone(p->s, *g)) return true;
    PyObject *copy = p->graph ? PyObject_CallMethod(*g, "clone", NULL) : accumulate_copied(p->s, *g);
    if (!copy) return false;
    Py_DECREF(*g);
    *g = copy;
    return true;
}

/* True if the rule of this operation is the user's code. Such code may write to the gradient it is
 * given, and keep what it returns. */
static bool pass_lends(const pass *p, PyObject *op) {
    return op && (PyObject *)Py_TYPE(op) != p->s->uses[USE_ROW] && PyObject_HasAttrString(op, "lends");
}

/* Runs a user's rule on a gradient of its own. A later write to arrays that the user keeps changes
 * none of the gradients that the rule returned. */
static bool pass_lend(pass *p, node *at, PyObject *rule) {
    PyObject *given = pass_own(p, &p->g) ? PyObject_CallFunctionObjArgs(rule, at, p->g, NULL) : NULL;
    bool done = outgoing_take(&p->made, given, false);
    Py_XDECREF(given);
    Py_DECREF(p->g); /* the rule may have returned it, so it counts as new */
    Py_INCREF(p->g = Py_None);
    for (Py_ssize_t i = 0; done && i < p->made.count; i++) {
        PyObject **g = &p->made.edges[i].g;
        done = !*g || !tensor_is(p->s, *g) || pass_own(p, g);
    }
    return done;
}

/* The rule of an operation. A row stores a pair of rules once it has run backward. */
static PyObject *pass_rule_of(const pass *p, PyObject *op) {
    if ((PyObject *)Py_TYPE(op) != p->s->uses[USE_ROW])
        return PyObject_GetAttr(op, p->s->names[p->graph ? NAME_GRAPH_VJP : NAME_VJP]);
    PyObject *both = PyObject_GetAttr(op, p->s->names[NAME_RULES]);
    if (both == Py_None) {
        Py_DECREF(both);
        both = engine_callback(p->s, "rules", op, NULL, NULL);
    }
    PyObject *found = both ? PyTuple_GetItem(both, p->graph) : NULL;
    Py_XINCREF(found);
    Py_XDECREF(both);
    return found;
}

/* Runs the rule of a node and stores the edge grads. */
static bool pass_rule(pass *p, node *at) {
    PyObject *op = at->fields[NODE_OP], *each[OPERANDS];
    PyObject *found = pass_rule_of(p, op ? op : Py_None);
    if (!found) return false;
    const void *rule = tensor_is(p->s, p->g) ? vjp_found(found) : NULL;
    bool done;
    if (rule) {
        bool over = !p->graph;
        done = vjp_run(rule, at, p->g, &over, each);
        for (int i = 0; done && i < vjp_arity(rule); i++) p->made.edges[i].g = each[i];
        if (done && over) { /* g became the result, so it counts as new */
            Py_DECREF(p->g);
            Py_INCREF(p->g = Py_None);
        }
    } else if (pass_lends(p, op)) {
        done = pass_lend(p, at, found);
    } else {
        PyObject *given = PyObject_CallFunctionObjArgs(found, at, p->g, NULL);
        done = outgoing_take(&p->made, given, false);
        Py_XDECREF(given);
    }
    Py_DECREF(found);
    return done;
}

/* True if one of the hooks may keep, or write to, the gradient that it is given. */
static bool pass_meddles(PyObject *hooks) {
    bool meddles = !PyList_Check(hooks);
    for (Py_ssize_t i = 0; !meddles && i < PyList_Size(hooks); i++)
        meddles = !PyObject_HasAttrString(PyList_GetItem(hooks, i), "only_reads");
    return meddles;
}

/* Runs the hooks of a node or leaf on a gradient and returns the gradient that they make. Takes
 * over g. A later write to arrays that a hook keeps does not change the returned gradient. */
static PyObject *pass_hooked(const pass *p, PyObject *edge, PyObject *hooks, PyObject *g) {
    g = pass_whole(p, g);
    if (!g || !hooks || hooks == Py_None) return g;
    PyObject *alone = accumulate_writable_alone(p->s, g) ? Py_True : Py_False;
    bool meddles = pass_meddles(hooks);
    PyObject *made = engine_callback(p->s, p->graph ? "hooked" : "hooked_off_tape", edge, g, alone);
    Py_DECREF(g);
    if (made && meddles && !pass_own(p, &made)) Py_CLEAR(made);
    return made;
}

/* Runs one node: its hooks and its rule. A node that is needed but leads to no needed input runs
 * only its hooks. */
static bool pass_step(pass *p, node *at) {
    PyObject *self = (PyObject *)at;
    bool needed = p->needed != Py_None && pass_noted(p->needed, self);
    bool reaches = p->reaches_inputs == Py_None || pass_noted(p->reaches_inputs, self);
    if (!needed && !reaches) return true;
    if (needed && p->ends) {
        p->g = pass_whole(p, p->g);
        return p->g && grad_map_add(&p->reached, self, p->g);
    }
    if (p->g) p->g = pass_hooked(p, self, at->fields[NODE_HOOKS], p->g);
    if (!p->g) return false;
    if (needed && !grad_map_add(&p->reached, self, p->g)) return false;
    if (!reaches) return true;
    if (!pass_reach(p, at) || !pass_rule(p, at)) return false;
    PyObject *inputs = at->fields[NODE_INPUTS];
    if (inputs && inputs != Py_None) {
        Py_INCREF(inputs); /* Python code may make the node lose them */
        bool done = pass_unbroadcast(p, inputs);
        Py_DECREF(inputs);
        if (!done) return false;
    }
    if (!p->retain) node_release(at);
    return true;
}

/* Called between nodes now and then. A call of Python handles Ctrl-C, and lets waiting threads run.
 * (Giving up the lock and taking it back would not: the threads would wake, find the lock taken,
 * and wait anew.) */
static bool pass_pause(const pass *p) {
    PyObject *done = engine_callback(p->s, "pause", NULL, NULL, NULL);
    Py_XDECREF(done);
    return done;
}

static bool pass_unwanted(const pass *p, PyObject *edge) {
    return p->needed != Py_None && !pass_noted(p->needed, edge);
}

/* Runs the hooks of leaves on their gradients, all of them before any leaf gets its gradient. If
 * one fails, no leaf is changed. Hooks may keep what they return, so the gradients count as
 * shared. */
static bool pass_hook_leaves(pass *p) {
    if (p->ends) return true;
    for (edge_grad *one = p->reached.slots; one < p->reached.slots + p->reached.used; one++) {
        PyObject *hooks = tensor_is(p->s, one->edge) ? ((tensor *)one->edge)->fields[TENSOR_HOOKS] : NULL;
        if (!hooks || !PyList_Size(hooks) || pass_unwanted(p, one->edge)) continue;
        if (!(one->g = pass_hooked(p, one->edge, hooks, one->g))) return false;
        one->shared = true;
    }
    return true;
}

/* True if a leaf ceased to require a gradient after something was computed from it. */
static bool pass_ceased(const pass *p, PyObject *leaf) {
    return tensor_is(p->s, leaf) && ((tensor *)leaf)->fields[TENSOR_EDGE] != Py_True;
}

/* True if nothing is to be done with the gradient of an edge. The gradients of nodes are for hooks
 * only. */
static bool pass_seen(const pass *p, PyObject *edge, bool into_grads) {
    return (into_grads && (node_is(p->s, edge) || pass_ceased(p, edge))) || pass_unwanted(p, edge);
}

/* Completes slice gradients, and copies gradients that others hold for leaves that have no `grad`
 * yet. All this happens before any leaf gets its gradient, so that lack of memory changes none. */
static bool pass_ready(pass *p, bool into_grads) {
    bool done = true;
    for (Py_ssize_t i = 0; done && i < p->reached.used; i++) {
        edge_grad *one = &p->reached.slots[i];
        if (pass_seen(p, one->edge, into_grads)) continue;
        one->g = pass_whole(p, one->g);
        done = one->g;
        if (!done || !into_grads) continue;
        if (!tensor_is(p->s, one->edge)) {
            PyErr_SetString(PyExc_TypeError, "gradients end at tensors");
            return false;
        }
        if (!accumulate_leaf_empty(p->s, one->edge) || (!one->shared && accumulate_sole(p->s, one->g)))
            continue;
        PyObject *made = accumulate_copied(p->s, one->g);
        done = made;
        if (!done) continue;
        Py_DECREF(one->g);
        one->g = made;
        one->shared = false;
    }
    return done;
}

/* Calls the hooks that run after a gradient was accumulated into a leaf. */
static bool pass_tell_leaves(const pass *p) {
    bool done = true;
    for (Py_ssize_t i = 0; done && i < p->reached.used; i++) {
        PyObject *leaf = p->reached.slots[i].edge;
        if (pass_seen(p, leaf, true) || !((tensor *)leaf)->fields[TENSOR_HOOKS]) continue;
        PyObject *told = engine_callback(p->s, "accumulated_off_tape", leaf, NULL, NULL);
        done = told;
        Py_XDECREF(told);
    }
    return done;
}

/* The gradients of a pass for each edge that is asked for, as a dict. None if they were added to
 * the `grad` of leaves instead. */
static PyObject *pass_found(pass *p, bool into_grads) {
    PyObject *found = into_grads ? Py_None : PyDict_New();
    if (into_grads) Py_INCREF(found);
    grad_map_sort(&p->reached);
    if (found && (!pass_hook_leaves(p) || !pass_ready(p, into_grads))) Py_CLEAR(found);
    for (Py_ssize_t i = 0; found && i < p->reached.used; i++) {
        edge_grad *one = &p->reached.slots[i];
        if (pass_seen(p, one->edge, into_grads)) continue;
        if (!(into_grads ? accumulate_leaf(p->s, one->edge, one->g, one->shared)
                         : PyDict_SetItem(found, one->edge, one->g) == 0))
            Py_CLEAR(found);
    }
    if (found && into_grads && !pass_tell_leaves(p)) Py_CLEAR(found);
    return found;
}

/* How many passes may be nested, as when a Function's backward calls backward. A pass takes 2 KB or
 * more of the thread's stack. Python's recursion limit, once raised, no longer guards it. */
enum { PASS_DEPTH = 1000 };
static _Thread_local int pass_depth;
static _Thread_local int64_t pass_runs; /* passes of this thread so far */
static _Thread_local int64_t pass_current; /* number of the innermost pass; 0 for none */

/* Runs a pass from the roots and their gradients in p->made, if `done` says that they could be
 * made. */
static PyObject *pass_run(pass *p, bool done, bool into_grads) {
    if (done && pass_depth >= PASS_DEPTH) {
        engine_raise(p->s, "nested_error", NULL, NULL);
        done = false;
    }
    pass_depth++;
    int64_t outer = pass_current;
    pass_current = ++pass_runs;
    p->reached.slots = p->reached.few;
    p->reached.room = sizeof p->reached.few / sizeof *p->reached.few;
    unsigned steps = 0;
    for (node *at; done && (at = pass_on(p));) {
        done = pass_step(p, at) && (++steps % 256 || pass_pause(p));
        Py_DECREF(at);
    }
    PyObject *found = done && !PyErr_Occurred() ? pass_found(p, into_grads) : NULL;
    pass_depth--;
    pass_current = outer;
    while (p->waiting) Py_DECREF(p->queue[--p->waiting]);
    PyMem_Free(p->queue);
    grad_map_free(&p->reached);
    outgoing_close(&p->made);
    Py_XDECREF(p->g);
    return found;
}

/* The upstream gradient 1 of a single element. Its memory is shared, so writes are refused. Each
 * call returns a tensor of its own, as a tensor also carries notes of its views. */
static PyObject *pass_one(speed_state *s, int dtype) {
    if (!s->ones[dtype]) {
        mg_args args = {.ints = (int64_t[]){dtype, 0, 1}, .floats = (double[]){1}};
        mg_arrays out;
        if (s->core->run(s->kernel_full, 0, NULL, &args, &out)) return PyErr_NoMemory();
        s->core->seal(out.made[0]);
        s->ones[dtype] = array_object(s, out.made[0]);
    }
    Py_XINCREF(s->ones[dtype]);
    return tensor_around(s, s->ones[dtype], Py_None, Py_None);
}

/* The given upstream gradient, or 1, in the common cases; NULL if Python must look at it. Edges are
 * read before arrays, as reading an edge may run Python code that replaces an array. */
static PyObject *pass_upstream(speed_state *s, PyObject *output, PyObject *given) {
    PyObject *edge = tensor_is(s, given) ? tensor_parent(s, given) : NULL;
    bool plain = edge == Py_None;
    Py_XDECREF(edge);
    PyObject *array = PyErr_Occurred() ? NULL : tensor_array(s, output);
    PyObject *other = array && plain ? tensor_array(s, given) : NULL;
    if (array && given == Py_None && handle_array(array)->ndim == 0)
        return pass_one(s, handle_array(array)->dtype);
    if (!other || !s->core->alike(handle_array(array), handle_array(other))) return NULL;
    Py_INCREF(given);
    return given;
}

/* into_grads(output, gradient, retain_graph) */
PyObject *engine_into_grads(PyObject *module, PyObject *const *given, Py_ssize_t count) {
    speed_state *s = state_of(module);
    pass p = {.needed = Py_None, .reaches_inputs = Py_None, .s = s};
    if (count != 3 || !tensor_is(s, given[0]))
        return PyErr_Format(PyExc_TypeError, "[backward] expected a Tensor to start from");
    int retain = PyObject_IsTrue(given[2]);
    PyObject *edge = retain < 0 ? NULL : tensor_parent(s, given[0]);
    if (!edge) return NULL;
    PyObject *g = edge == Py_None ? NULL : pass_upstream(s, given[0], given[1]);
    PyObject *both = g || PyErr_Occurred() ? NULL : engine_callback(s, "start", given[0], given[1], NULL);
    if (both) {
        Py_DECREF(edge);
        Py_INCREF(edge = PyTuple_GetItem(both, 0));
        Py_INCREF(g = PyTuple_GetItem(both, 1));
        Py_DECREF(both);
    }
    outgoing_open(&p.made, 1);
    p.made.edges[0] = (struct outgoing_edge){edge, g};
    p.retain = retain;
    return pass_run(&p, g, true);
}

/* one(dtype) */
PyObject *engine_one(PyObject *module, PyObject *dtype) {
    long code = PyLong_AsLong(dtype);
    if (code >= 0 && code < DTYPES) return pass_one(state_of(module), (int)code);
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_ValueError, "one(dtype): no such dtype");
    return NULL;
}

/* gradients(roots, upstream, retain_graph, create_graph, needed, reaches_inputs, into_grads, ends):
 * the gradients by edge, or None after adding them to the `grad` of leaves. */
PyObject *engine_gradients(PyObject *module, PyObject *args) {
    pass p = {.s = state_of(module)};
    PyObject *roots, *upstream;
    int retain, graph, into_grads, ends;
    if (!PyArg_ParseTuple(args, "OOppOOpp", &roots, &upstream, &retain, &graph, &p.needed, &p.reaches_inputs,
                          &into_grads, &ends))
        return NULL;
    p.retain = retain;
    p.graph = graph;
    p.ends = ends;
    bool done = outgoing_take(&p.made, roots, true) && outgoing_take(&p.made, upstream, false);
    return pass_run(&p, done, into_grads);
}

/* The depth of nesting of this thread's innermost pass, 0 for none; and the pass's number, unique
 * in the thread. */
PyObject *engine_depth(PyObject *module, PyObject *unused) {
    (void)module, (void)unused;
    return PyLong_FromLong(pass_depth);
}
PyObject *engine_number(PyObject *module, PyObject *unused) {
    (void)module, (void)unused;
    return PyLong_FromLongLong(pass_current);
}
