/* arrivals.h: the edges that a run back has reached, and what has come to each. */
#ifndef MG_ARRIVALS_H
#define MG_ARRIVALS_H

#include "base/platform.h"

#include <stdlib.h>

/* What has come to an edge: to a node, as long as it waits; to a leaf, or to what is wanted, all of it. */
typedef struct {
    PyObject *edge, *g;
    Py_ssize_t turn; /* in which order they were reached */
    bool owned;      /* g was made here by adding, and may be added to */
    bool shared;     /* g was handed on to a leaf as it came */
} arrival;

/* They are found by where the edge lies: linear probing, and no holes are left behind (D. E. Knuth, "The
 * Art of Computer Programming" vol. 3, 1998, algorithm 6.4 R). */
typedef struct {
    arrival *slots;
    Py_ssize_t room, used, turns; /* room: a power of two */
    arrival few[8];               /* a small graph needs no more */
} arrivals;

static Py_ssize_t arrivals_home(const arrivals *all, const PyObject *edge) {
    uint64_t mixed = (uint64_t)(uintptr_t)edge * 0x9e3779b97f4a7c15; /* Knuth, section 6.4 */
    return (Py_ssize_t)(mixed >> 32) & (all->room - 1);
}

/* The slot of an edge, or the free one where it would be. */
static arrival *arrivals_slot(const arrivals *all, const PyObject *edge) {
    Py_ssize_t at = arrivals_home(all, edge);
    while (all->slots[at].edge && all->slots[at].edge != edge) at = (at + 1) & (all->room - 1);
    return &all->slots[at];
}

static bool arrivals_grow(arrivals *all) {
    arrivals grown = {.room = 2 * all->room};
    grown.slots = PyMem_Calloc((size_t)grown.room, sizeof *grown.slots);
    if (!grown.slots) return PyErr_NoMemory();
    for (arrival *one = all->slots; one < all->slots + all->room; one++)
        if (one->edge) *arrivals_slot(&grown, one->edge) = *one;
    if (all->slots != all->few) PyMem_Free(all->slots);
    all->slots = grown.slots;
    all->room = grown.room;
    return true;
}

/* Of an edge that has none yet. */
static arrival *arrivals_add(arrivals *all, PyObject *edge, PyObject *g) {
    if (4 * all->used >= 3 * all->room && !arrivals_grow(all)) return NULL;
    arrival *slot = arrivals_slot(all, edge);
    Py_INCREF(edge);
    Py_INCREF(g);
    *slot = (arrival){.edge = edge, .g = g, .turn = all->turns++};
    all->used++;
    return slot;
}

/* Takes an edge out; its gradient. */
static PyObject *arrivals_take(arrivals *all, PyObject *edge) {
    arrival *hole = arrivals_slot(all, edge);
    PyObject *g = hole->g, *key = hole->edge;
    Py_ssize_t last = all->room - 1, at = hole - all->slots;
    for (Py_ssize_t next = (at + 1) & last; all->slots[next].edge; next = (next + 1) & last) {
        Py_ssize_t home = arrivals_home(all, all->slots[next].edge);
        if (((next - home) & last) < ((next - at) & last)) continue; /* it is found without the hole */
        all->slots[at] = all->slots[next];
        at = next;
    }
    all->slots[at] = (arrival){NULL};
    if (key) all->used--;
    Py_XDECREF(key);
    return g;
}

static int arrivals_earlier(const void *a, const void *b) {
    Py_ssize_t one = ((const arrival *)a)->turn, other = ((const arrival *)b)->turn;
    return (one > other) - (one < other);
}

/* All of them in the order in which they were reached, at the front; nothing is found from then on. */
static void arrivals_sort(arrivals *all) {
    Py_ssize_t count = 0;
    for (Py_ssize_t at = 0; at < all->room; at++) {
        arrival one = all->slots[at];
        all->slots[at].edge = NULL;
        if (one.edge) all->slots[count++] = one;
    }
    qsort(all->slots, (size_t)count, sizeof *all->slots, arrivals_earlier);
}

static void arrivals_free(arrivals *all) {
    for (arrival *one = all->slots; one < all->slots + all->room; one++) {
        if (!one->edge) continue;
        Py_DECREF(one->edge);
        Py_XDECREF(one->g);
    }
    if (all->slots != all->few) PyMem_Free(all->slots);
}

#endif
