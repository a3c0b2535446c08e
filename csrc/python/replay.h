/* replay.h: recorded calls as the accelerator makes them: the description, read into structs. */
#ifndef MG_REPLAY_H
#define MG_REPLAY_H

#include "speed.h"

/* Where an array comes from: the tensor of a target, its gradient, or a constant. */
enum { FROM_TENSOR, FROM_GRAD, FROM_CONSTANT };
/* Kinds of tensors that a call leaves: a result of the program, a result with a history, a target,
 * the gradient of a target. */
enum { LEFT_MADE, LEFT_LIVING, LEFT_TENSOR, LEFT_GRAD };
/* Kinds of edges: none, that of a leaf, a node. A value that is no tensor must equal a constant. */
enum { EDGE_NONE, EDGE_LEAF, EDGE_NODE, EDGE_CONSTANT };
/* Kinds of guards: an item of a container, the content of a cell, all items of a list, all keys or
 * all values of a dict, a length, all items of a mapping, an attribute, a key that a dict lacks, and
 * a function that says whether the guard holds. The numbers are those of Check in
 * minigrad/_compile/surroundings.py. */
enum { GUARD_ITEM, GUARD_CELL, GUARD_LIST, GUARD_KEYS, GUARD_VALUES, GUARD_LENGTH, GUARD_ITEMS, GUARD_ATTRIBUTE,
       GUARD_ABSENT, GUARD_CALL };
/* Kinds of events: a step of an optimizer, and something that is done in Python. */
enum { EVENT_MOVE, EVENT_ACT };

/* The parts of the description, a tuple. A target is a number of a value, or a tensor. */
enum {
    PART_ADDRESS,  /* of the program */
    PART_VALUES,   /* tuple of (kind of edge, constant or tensor or None), for each value given */
    PART_NAMES,    /* tuple: names of the last values, which are given by name */
    PART_IDLE,     /* tuple of lists that must be empty */
    PART_RECORDS,  /* bool: operations are recorded */
    PART_GUARDS,   /* tuple of (kind, container, key, value) */
    PART_LEAVES,   /* tuple of (target, True if it has no grad or None, kind of edge) */
    PART_SOURCES,  /* tuple of (where from, target or array) */
    PART_EVENTS,   /* tuple: see read_event */
    PART_RESULTS,  /* tuple: the slots of the results */
    PART_HISTORY,  /* None, or a tuple: see read_history */
    PART_LEFT,     /* tuple of (kind, number or target, edge) */
    PART_GRADS,    /* tuple of (target, number of what is left or None) */
    PART_OUTPUTS,  /* tuple: numbers of what is left */
    PART_FILL,     /* the result as replay_part takes it, or a function of the list of outputs */
    PART_BEGIN,    /* None, or a function that notes how to undo what events do */
    PART_UNDO,     /* tuple: numbers of given arrays to copy, as a question may come after a write */
    PART_STOPPED,  /* function: the result after the program stopped */
    PART_CLEARED,  /* tuple of targets whose gradients are dropped before the run */
    PART_OPERATIONS, /* tuple of numbers: run, accepts, take, end */
    PARTS,
};

/* Containers in a result. */
enum { PARTS_TUPLE, PARTS_LIST, PARTS_DICT };

enum { MOST_VALUES = 64, FEW_BYTES = 4096 };

typedef struct {
    Py_ssize_t place; /* of a value; -1 for a tensor */
    PyObject *tensor;
} replay_target;

typedef struct {
    int kind;
    PyObject *where, *key, *value;
    getter cell;
} replay_guard;

typedef struct {
    replay_target of;
    int without; /* 1 if it has no grad, 0 if it has one, -1 if that does not count */
    int edge;
} replay_leaf;

typedef struct {
    int from;
    replay_target of;
    PyObject *array;
} replay_source;

typedef struct {
    int kind;
    PyObject *run;     /* a function; for a step, of lists that get the integers and the floats */
    PyObject *group;   /* dict of the options of a step */
    PyObject *counted; /* tuple of dicts with a number of steps */
    Py_ssize_t ints, floats, step;  /* how many there are; which integer is the number of the step */
    bool known;                     /* the numbers below are those of the options below */
    long turn;                      /* counts the times that options were noted */
    PyObject **options;             /* keys and values of the group */
    Py_ssize_t option_count, room;
    int64_t *kept_ints;
    double *kept_floats;
} replay_event;

typedef struct {
    int from;
    Py_ssize_t number;
    replay_target of;
    PyObject *edge;
} replay_left;

typedef struct {
    replay_target of;
    Py_ssize_t place; /* -1 for None */
} replay_gradient;

typedef struct {
    PyObject_HEAD
    speed_state *s;
    PyObject *description; /* all objects below are its own, but for options */
    int64_t address;
    int run, accepts, take, end;
    bool records, acts;
    Py_ssize_t value_count, name_count, guard_count, leaf_count, source_count, drawn_count, event_count,
        result_count, left_count, grad_count, output_count, int_count, float_count, idle_count;
    int *edges;
    PyObject **constants, **names, **idle;
    replay_guard *guards;
    replay_leaf *leaves;
    replay_source *sources;
    replay_event *events;
    int64_t *results;
    replay_left *leaving;
    replay_gradient *grads;
    Py_ssize_t *outputs, *undo, undo_count;
    PyObject *fill, *begin, *stopped;
    /* the history: places of arrays by threes, of further arrays, ends of the graph, operations */
    Py_ssize_t group_count, loose_count, end_count, living_count, *groups, *loose, *living;
    replay_target *ends, *cleared;
    Py_ssize_t cleared_count;
    PyObject *op, **output_ops;
    size_t room; /* bytes for one call */
} replay;

/* The state of one call. */
typedef struct {
    replay *r;
    PyObject *args, *named;
    PyObject *values[MOST_VALUES];
    int64_t *ints;
    double *floats;
    mg_array **arrays;
    PyObject **given, **made, **left, **notes; /* own references */
    Py_ssize_t given_count, made_count, left_count, ints_used, floats_used;
    PyObject *back;   /* list of functions that undo what events did */
    PyObject *copies; /* list of arrays as they were */
} replay_run;

MG_INLINE PyObject *target_of(const replay_run *c, const replay_target *t) {
    return t->place < 0 ? t->tensor : c->values[t->place];
}

/* A field of a tensor, borrowed; None if it is empty. */
MG_INLINE PyObject *tensor_field(PyObject *x, int field) {
    PyObject *held = ((tensor *)x)->fields[field];
    return held ? held : Py_None;
}

/* Reads the description. False with an error set if it is none. */
bool replay_read(replay *r);
/* An item of a tuple as a number; -1 for None. */
Py_ssize_t replay_number(PyObject *tuple, Py_ssize_t i);

/* True if the call is like the recorded one, as far as Python objects say. */
bool replay_fits(replay_run *c);
/* True for the same object, and for equal integers, floats or texts. 0.0 is not -0.0. */
bool replay_same(PyObject *now, PyObject *value);

/* Gives the program one more array, borrowed here. False if it is none. */
bool replay_give(replay_run *c, PyObject *array);

/* Runs the events of a call. 1 if done, 0 if the call does not fit, -1 with an error set. */
int replay_events(replay_run *c);
/* Calls the functions that note the steps of optimizers. */
bool replay_notes(replay_run *c);
/* Gets the note of a step that the call did without. */
void replay_note(replay_run *c, Py_ssize_t i);
/* Forgets what is known of an event's options. */
void event_forget(replay_event *e);

#endif
