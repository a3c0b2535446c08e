/* speed.h: the accelerator of the tape, minigrad._speed: its types, its state and what its files share.
 *
 * The tape is defined in Python, in minigrad/runtime/native.py and minigrad/tape; what is here does the same
 * faster. All Python objects that it keeps are in the state of the module. It calls the C core through
 * the table that the cffi module hands over (mg_core). */
#ifndef MG_SPEED_H
#define MG_SPEED_H

#ifndef Py_GIL_DISABLED
#define Py_LIMITED_API 0x030A0000
#endif
#include <Python.h>
#include <structmember.h>

#include "../base/platform.h"
#include "../minigrad.h"

/* A row of a table of methods, whose functions differ in type by how they are called. */
#define METHOD(name, function, called) {name, (PyCFunction)(void (*)(void))(function), called, NULL}

enum { OPERANDS = 3 }; /* the most inputs of an operation, but for one of a list of them */

/* ---- state ---- */

/* Objects that the accelerator has from Python: see `use` in module.c. */
typedef enum {
    USE_CHECK_RESULT, /* a function: raises the error of a call that failed, or tells a tracer of it */
    USE_TRACERS,      /* a list: those who watch */
    USE_RESULT,       /* the class of results */
    USE_STALE_VIEW,   /* the class of views whose edge has to be asked for */
    USE_ENABLED,      /* a function: is anything recorded in this thread? */
    USE_PAUSES,       /* a list: the no_grad scopes of all threads; while it is empty all is recorded */
    USE_INTS,         /* a dict: the tensors of Python's integers in recent use */
    USE_FLOATS,       /* and of its floats */
    USE_COPIED,       /* a function: a contiguous copy without a history */
    USE_SLICE_GRAD,   /* the class of gradients of slices */
    USE_VIEWS,        /* the class of what knows a tensor's views */
    USE_ROW,          /* the class of rows of the op table */
    USE_ENGINE,       /* an object with the functions that a backward pass calls */
    USE_ADD,          /* a pair: the operation, and a function for operands that are no tensors; so .. */
    USE_SUB,          /* .. for each operator */
    USE_MUL,
    USE_DIV,
    USE_POW,
    USES,
} speed_use;

typedef enum { NAME_REFS, NAME_CURRENT, NAME_LIMIT, NAME_VJP, NAME_GRAPH_VJP, NAME_RULES, NAMES } speed_name;

enum { DTYPES = MG_FLOAT64 + 1 };

/* An operation's signature: see mg_run_signature. */
typedef struct {
    const char *letters; /* of the arguments, and then a colon */
    int count;           /* of the arguments */
    char result;
} speed_signature;

typedef struct {
    const mg_core *core;
    speed_signature *signatures; /* by number */
    int operations;
    PyTypeObject *array_type, *saved_type, *size_type, *node_type, *tensor_type;
    PyObject *uses[USES];
    PyObject *names[NAMES]; /* interned */
    PyObject *ones[DTYPES]; /* arrays of a single 1, the gradient of a scalar with respect to itself */
    int kernel_add, kernel_cast, kernel_copy, kernel_accumulate, kernel_saved, kernel_empty,
        kernel_tensor, kernel_full, kernel_view_reshape, kernel_view_slice, kernel_view_slice_reshape; /* numbers of operations */
    int elementwise; /* how many elementwise operations there are */
} speed_state;

/* ---- the interpreter's lock ---- */

/* A call of the core keeps the lock until the core gives it up: see base/gil.h. */
void *gil_enter(void);
void gil_leave(void *outer);
void gil_give_up(void); /* the core's hook */

/* ---- batched tensors ---- */

/* Tensors that vmap cuts into slices hold no array. A call that fails for that is made again in Python: see
 * minigrad/runtime/batched.py. The function there gets up to three arguments. It returns a tuple of the
 * result, which takes the place of the error, or None, which lets the error stand. */
PyObject *batched_again(speed_state *s, const char *name, PyObject *a, PyObject *b, PyObject *c);

/* ---- arrays ---- */

/* The object by which Python holds an array, or saved arrays. It may be freed after the module's state. */
typedef struct {
    PyObject_HEAD
    void *held;
    const mg_core *core;
} handle;

MG_INLINE mg_array *handle_array(PyObject *self) { return ((handle *)self)->held; }
MG_INLINE mg_saved *handle_saved(PyObject *self) { return ((handle *)self)->held; }
MG_INLINE bool array_is(const speed_state *s, PyObject *x) { return Py_TYPE(x) == s->array_type; }
MG_INLINE bool saved_is(const speed_state *s, PyObject *x) { return Py_TYPE(x) == s->saved_type; }
MG_INLINE bool is_storage(int dtype) { return dtype < MG_BOOL; }
MG_INLINE bool is_float(int dtype) { return dtype >= MG_FLOAT32; }

bool array_make_types(speed_state *s, PyObject *module);
/* A new array, which is taken over, as an object. */
PyObject *array_object(speed_state *s, mg_array *array);
PyObject *saved_object(speed_state *s, mg_saved *saved);
/* The shape of an array, or its strides, as a tuple. */
PyObject *array_shape(const mg_array *array);
/* Saves up to three arrays for a derivative; the error is that of the operation. */
PyObject *array_save(speed_state *s, mg_array *a, mg_array *b, mg_array *c, int number);

/* ---- calls ---- */

/* One call of an operation: its arguments as mg_run takes them, until request_free. */
typedef struct {
    mg_array **in, *few[8];
    PyObject **objects, *few_objects[8]; /* which hold the arrays */
    int n, room;
    int64_t *ints, few_ints[64];
    int n_ints, room_ints;
    double floats[32];
    int n_floats;
    mg_saved *saved;
    PyObject *saved_by;
} request;

/* Reads arguments by an operation's signature; false, with an error, for others. */
bool request_read(speed_state *s, request *r, int number, PyObject *const *args, Py_ssize_t count);
void request_free(request *r);
/* Runs it; the core's code, or answer. */
int request_run(speed_state *s, const request *r, int number, mg_arrays *out);
/* Raises the error of a call that failed, or tells a tracer of one that did not; false on error. */
bool call_check(speed_state *s, bool failed, int number, PyObject *const *args, Py_ssize_t count,
                PyObject *made);
bool call_watched(const speed_state *s);
/* A cast of an array from a storage dtype to the one that is computed in. */
PyObject *array_widened(speed_state *s, PyObject *array);
PyObject *speed_call(PyObject *module, PyObject *const *args, Py_ssize_t count);
PyObject *speed_save(PyObject *module, PyObject *const *args, Py_ssize_t count);
PyObject *speed_save_as_is(PyObject *module, PyObject *array);
PyObject *speed_keep(PyObject *module, PyObject *const *args, Py_ssize_t count);

/* ---- nodes ---- */

enum { NODE_OP, NODE_SAVED, NODE_ARGS, NODE_INPUTS, NODE_GIVEN, NODE_HOOKS = NODE_GIVEN, NODE_FIELDS };

typedef struct {
    PyObject_VAR_HEAD /* the number of parents: none once the graph was freed */
    PyObject *weak;
    long long serial;
    PyObject *fields[NODE_FIELDS];
    PyObject *parents[];
} node;

bool node_make_type(speed_state *s, PyObject *module);
MG_INLINE bool node_is(const speed_state *s, PyObject *x) { return Py_TYPE(x) == s->node_type; }
/* A node of these fields and parents, `count` in all. */
PyObject *node_record(speed_state *s, PyObject *const *given, Py_ssize_t count);
/* Lets go of the parents, and of all else that only its own backward needs. */
void node_release(node *self);

/* ---- tensors ---- */

enum {
    TENSOR_ARRAY,
    TENSOR_EDGE,
    TENSOR_SHAPE,
    TENSOR_GRAD,
    TENSOR_ALIAS,
    TENSOR_VIEWS,
    TENSOR_HOOKS, /* of a leaf; a result's are its node's */
    TENSOR_DICT,  /* attributes that users set: a dict once there is one */
    TENSOR_FIELDS,
};

typedef struct {
    PyObject_HEAD
    PyObject *weak;
    PyObject *fields[TENSOR_FIELDS];
} tensor;

bool tensor_make_types(speed_state *s, PyObject *module);
MG_INLINE bool tensor_is(const speed_state *s, PyObject *x) {
    return (PyObject *)Py_TYPE(x) == s->uses[USE_RESULT] || PyObject_TypeCheck(x, s->tensor_type);
}
void tensor_forget(speed_state *s);
/* The tensor's array, borrowed; AttributeError where it has none. */
PyObject *tensor_array(const speed_state *s, PyObject *x);
/* A tensor of these fields; takes over the array, which may be NULL. */
PyObject *tensor_around(speed_state *s, PyObject *array, PyObject *edge, PyObject *shape);
/* A new array, which is taken over, as a tensor that the tape knows nothing of. */
PyObject *tensor_of(speed_state *s, mg_array *made);
/* The shape, as a Size. */
PyObject *tensor_shape(speed_state *s, PyObject *self);
/* Gives a result its place on the tape: a node of these fields and parents, `count` in all. */
bool tensor_record(speed_state *s, PyObject *made, PyObject *const *given, Py_ssize_t count);
/* The parent of a node for this input: None, a node, or the leaf. */
PyObject *tensor_parent(const speed_state *s, PyObject *x);

/* ---- applying rows ---- */

/* How the structs of functions begin that hold what they were made of. */
typedef struct {
    PyObject *module, *first, *second;
    speed_state *s;
} holder;

/* The function of a method that gets this struct, which is taken over, as a capsule. */
PyObject *holder_function(PyMethodDef *method, holder *made, PyObject *module);

PyObject *apply_operation(PyObject *module, PyObject *args);
/* The result of a function of apply_operation. */
PyObject *apply_run(PyObject *function, PyObject *const *given, Py_ssize_t count);
/* Whether this thread is in a scope in which nothing is recorded. */
bool apply_paused(const speed_state *s);

/* ---- views ---- */

/* Notes that `view` shows the memory of `base` through a row of the table. */
bool views_link(speed_state *s, PyObject *view, PyObject *base, PyObject *row, PyObject *args);
/* Marks a view of which the tape knows nothing. */
bool views_mark(speed_state *s, PyObject *view, PyObject *base);
PyObject *speed_link(PyObject *module, PyObject *const *args, Py_ssize_t count);
PyObject *speed_basic_index(PyObject *module, PyObject *const *args, Py_ssize_t count);
PyObject *speed_split(PyObject *module, PyObject *args);

/* ---- lists ---- */

PyObject *speed_from_lists(PyObject *module, PyObject *const *args, Py_ssize_t count);
PyObject *speed_to_lists(PyObject *module, PyObject *array);

/* ---- backward ---- */

/* Calls a function of the engine's module. Arguments that are NULL are none. */
PyObject *engine_callback(speed_state *s, const char *name, PyObject *a, PyObject *b, PyObject *c);
/* Raises an error that a function of the engine's module makes of these. */
void engine_raise(speed_state *s, const char *name, PyObject *a, PyObject *b);

/* A gradient that lies where it may be written over. */
bool accumulate_sole(speed_state *s, PyObject *x);
/* True if the caller's reference is the only one to the gradient and to its memory. */
bool accumulate_alone(speed_state *s, PyObject *g);
bool accumulate_unseen(speed_state *s, PyObject *g);
bool accumulate_writable_alone(speed_state *s, PyObject *g);
/* Adds a gradient to one that may be added to. */
bool accumulate_into(speed_state *s, PyObject *to, PyObject *g);
PyObject *accumulate_copied(speed_state *s, PyObject *g);
bool accumulate_leaf_empty(speed_state *s, PyObject *leaf);
/* Adds a gradient to a leaf's `grad`, which never shares memory with anything else. */
bool accumulate_leaf(speed_state *s, PyObject *leaf, PyObject *g, bool shared);

PyObject *vjp_rule(PyObject *module, PyObject *args);
/* Whether a function is a rule of vjp_rule; and then its struct. */
void *vjp_found(PyObject *function);
/* The gradients of a node's inputs, NULL where none is needed; none, and false, where that failed.
 * *over: may the first of them take the place of g, and does it? */
bool vjp_run(const void *rule, node *of, PyObject *g, bool *over, PyObject *made[OPERANDS]);
int vjp_arity(const void *rule);

PyObject *engine_into_grads(PyObject *module, PyObject *const *args, Py_ssize_t count);
PyObject *engine_gradients(PyObject *module, PyObject *args);
PyObject *engine_one(PyObject *module, PyObject *dtype);
PyObject *engine_depth(PyObject *module, PyObject *unused);
PyObject *engine_number(PyObject *module, PyObject *unused);

MG_INLINE speed_state *state_of(PyObject *module) { return PyModule_GetState(module); }

#endif
