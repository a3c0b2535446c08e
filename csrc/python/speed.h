/* speed.h: types, state and shared functions of minigrad._speed, the accelerator of the tape.
 *
 * The tape is defined in Python, in minigrad/runtime/native.py and minigrad/tape. The accelerator
 * does the same faster. All Python objects that it keeps are in the module's state. It calls the C
 * core through mg_core, the table that the cffi module hands over.
 */
#ifndef MG_SPEED_H
#define MG_SPEED_H

#ifndef Py_GIL_DISABLED
#define Py_LIMITED_API 0x030A0000
#endif
#include <Python.h>
#include <structmember.h>

#include "../base/platform.h"
#include "../minigrad.h"

/* An entry of a method table. The cast is needed as the function's type depends on the calling
 * convention. */
#define METHOD(name, function, called) {name, (PyCFunction)(void (*)(void))(function), called, NULL}

enum { OPERANDS = 3 }; /* the most inputs of an operation that takes no list of inputs */

/* ---- state ---- */

/* Objects that the accelerator gets from Python: see `use` in module.c. */
typedef enum {
    /* function: raises the error of a failed call, or reports a call to tracers */
    USE_CHECK_RESULT,
    USE_TRACERS,      /* list: the tracers */
    USE_RESULT,       /* the class of results */
    USE_STALE_VIEW,   /* the class of views whose edge must be looked up again */
    USE_ENABLED,      /* function: true if operations are recorded in this thread */
    /* list: the no_grad scopes of all threads; operations are recorded while it is empty */
    USE_PAUSES,
    USE_INTS,         /* dict: the tensors of recently used Python integers */
    USE_FLOATS,       /* dict: the same for Python floats */
    USE_COPIED,       /* function: a contiguous copy that is not on the tape */
    USE_SLICE_GRAD,   /* the class of slice gradients */
    USE_VIEWS,        /* the class that records a tensor's views */
    USE_ROW,          /* the class of rows of the op table */
    USE_ENGINE,       /* object with the functions that a backward pass calls */
    /* a pair for each operator: the operation, and a function for operands that are no tensors */
    USE_ADD,
    USE_SUB,
    USE_MUL,
    USE_DIV,
    USE_POW,
    USES,
} speed_use;

typedef enum {
    NAME_REFS,
    NAME_CURRENT,
    NAME_LIMIT,
    NAME_VJP,
    NAME_GRAPH_VJP,
    NAME_RULES,
    NAME_STEP,
    NAMES
} speed_name;

enum { DTYPES = MG_FLOAT64 + 1 };

/* The signature of an operation: see mg_run_signature. */
typedef struct {
    const char *letters; /* of the arguments, followed by a colon */
    int count;           /* number of arguments */
    char result;
} speed_signature;

typedef struct {
    const mg_core *core;
    speed_signature *signatures; /* by operation number */
    int operations;
    PyTypeObject *array_type, *saved_type, *size_type, *node_type, *tensor_type;
    PyObject *uses[USES];
    PyObject *names[NAMES]; /* interned */
    /* arrays of a single 1, the gradient of a scalar with respect to itself */
    PyObject *ones[DTYPES];
    /* numbers of operations */
    int kernel_add, kernel_cast, kernel_copy, kernel_accumulate, kernel_saved, kernel_empty,
        kernel_tensor, kernel_full, kernel_view_reshape, kernel_view_slice, kernel_view_slice_reshape;
    int elementwise; /* number of elementwise operations */
    /* Freed nodes for new ones, linked by `weak`, and how many there are and may be. */
    PyObject *free_nodes;
    Py_ssize_t free_count, free_limit;
} speed_state;

/* ---- the interpreter's lock ---- */

/* A call of the core holds the interpreter's lock until the core gives it up: see base/gil.h. */
void *gil_enter(void);
void gil_leave(void *outer);
void gil_give_up(void); /* the core's hook */

/* ---- batched tensors ---- */

/* Tensors that vmap cuts into slices hold no array. A call that fails for that is made again in Python: see
 * minigrad/runtime/batched.py. The function there gets up to three arguments. It returns a tuple of the
 * result, which takes the place of the error, or None, which lets the error stand. */
PyObject *batched_again(speed_state *s, const char *name, PyObject *a, PyObject *b, PyObject *c);

/* ---- arrays ---- */

/* The Python object that holds an array, or saved arrays. It may outlive the module's state, hence
 * `core`. */
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
/* A new Python object for an array. Takes over the reference. */
PyObject *array_object(speed_state *s, mg_array *array);
PyObject *saved_object(speed_state *s, mg_saved *saved);
/* The shape of an array as a tuple. */
PyObject *array_shape(const mg_array *array);
/* Saves up to three arrays for a derivative. An error names operation `number`. */
PyObject *array_save(speed_state *s, mg_array *a, mg_array *b, mg_array *c, int number);

/* ---- calls ---- */

/* The arguments of one call of an operation, as mg_run takes them. Valid until request_free. */
typedef struct {
    mg_array **in, *few[8];
    PyObject **objects, *few_objects[8]; /* the Python objects that hold the arrays */
    int n, room;
    int64_t *ints, few_ints[64];
    int n_ints, room_ints;
    double floats[32];
    int n_floats;
    mg_saved *saved;
    PyObject *saved_by;
} request;

/* Reads arguments by an operation's signature. False with an error set if they do not fit. */
bool request_read(speed_state *s, request *r, int number, PyObject *const *args, Py_ssize_t count);
void request_free(request *r);
/* Runs the operation. Returns the core's error code, or the answer of a question. */
int request_run(speed_state *s, const request *r, int number, mg_arrays *out);
/* Raises the error of a failed call, or reports a call to the tracers. False if an error is set. */
bool call_check(speed_state *s, bool failed, int number, PyObject *const *args, Py_ssize_t count,
                PyObject *made);
bool call_watched(const speed_state *s);
/* Casts an array from a storage dtype to the dtype that it is computed in. */
PyObject *array_widened(speed_state *s, PyObject *array);
PyObject *speed_call(PyObject *module, PyObject *const *args, Py_ssize_t count);
PyObject *speed_save(PyObject *module, PyObject *const *args, Py_ssize_t count);
PyObject *speed_save_as_is(PyObject *module, PyObject *array);
PyObject *speed_keep(PyObject *module, PyObject *const *args, Py_ssize_t count);

/* ---- nodes ---- */

enum { NODE_SMALL = 2 }; /* a node with one parent would be no smaller */
enum { NODE_OP, NODE_SAVED, NODE_ARGS, NODE_INPUTS, NODE_GIVEN, NODE_HOOKS = NODE_GIVEN, NODE_FIELDS };

typedef struct {
    PyObject_VAR_HEAD /* number of parents; 0 once the graph was freed */
    PyObject *weak;
    long long serial : 63;
    unsigned long long is_small : 1; /* has room for NODE_SMALL parents */
    PyObject *fields[NODE_FIELDS];
    PyObject *parents[];
} node;

bool node_make_type(speed_state *s, PyObject *module);
void node_forget(speed_state *s); /* gives the memory of freed nodes back */
MG_INLINE bool node_is(const speed_state *s, PyObject *x) { return Py_TYPE(x) == s->node_type; }
/* Creates a node from `count` objects: first the fields, then the parents. */
PyObject *node_record(speed_state *s, PyObject *const *given, Py_ssize_t count);
/* Releases the parents and all else that only the node's own backward needs. */
void node_release(node *self);

/* ---- tensors ---- */

enum {
    TENSOR_ARRAY,
    TENSOR_EDGE,
    TENSOR_SHAPE,
    TENSOR_GRAD,
    TENSOR_ALIAS,
    TENSOR_VIEWS,
    TENSOR_HOOKS, /* of a leaf; the hooks of a result are its node's */
    TENSOR_DICT,  /* attributes that users set: NULL until the first one */
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
/* The tensor's array, borrowed. AttributeError if the tensor has none. */
PyObject *tensor_array(const speed_state *s, PyObject *x);
/* A tensor with these fields. Takes over the array, which may be NULL. */
PyObject *tensor_around(speed_state *s, PyObject *array, PyObject *edge, PyObject *shape);
/* Wraps a new array, which is taken over, in a tensor that is not on the tape. */
PyObject *tensor_of(speed_state *s, mg_array *made);
/* The shape as a Size. */
PyObject *tensor_shape(speed_state *s, PyObject *self);
/* Records a result: its edge becomes a node made from `count` objects, as in node_record. */
bool tensor_record(speed_state *s, PyObject *made, PyObject *const *given, Py_ssize_t count);
/* The parent of a node for this input: None, a node, or the leaf itself. */
PyObject *tensor_parent(const speed_state *s, PyObject *x);

/* ---- applying rows ---- */

/* First fields of the structs behind functions made at run time: the objects that the function
 * needs. */
typedef struct {
    PyObject *module, *first, *second;
    speed_state *s;
} holder;

/* A function that gets the struct `made` in a capsule as its self. Takes over the struct. */
PyObject *holder_function(PyMethodDef *method, holder *made, PyObject *module);

PyObject *apply_operation(PyObject *module, PyObject *args);
/* Calls a function made by apply_operation. */
PyObject *apply_run(PyObject *function, PyObject *const *given, Py_ssize_t count);
/* True if this thread is in a scope in which nothing is recorded. */
bool apply_paused(const speed_state *s);

/* ---- views ---- */

/* Records that `view` shares the memory of `base`, by a view row of the op table and its
 * arguments. */
bool views_link(speed_state *s, PyObject *view, PyObject *base, PyObject *row, PyObject *args);
/* Marks a view that is not on the tape. */
bool views_mark(speed_state *s, PyObject *view, PyObject *base);
PyObject *speed_link(PyObject *module, PyObject *const *args, Py_ssize_t count);
PyObject *speed_basic_index(PyObject *module, PyObject *const *args, Py_ssize_t count);
PyObject *speed_split(PyObject *module, PyObject *args);

/* ---- recorded programs ---- */

/* The classes Replay and Caller. */
bool replay_make_types(PyObject *module);
PyObject *replayed_pass(PyObject *module, PyObject *description);

/* ---- lists ---- */

PyObject *speed_from_lists(PyObject *module, PyObject *const *args, Py_ssize_t count);
PyObject *speed_to_lists(PyObject *module, PyObject *array);

/* ---- backward ---- */

/* Calls a function of the engine's module in Python. Arguments that are NULL are left out. */
PyObject *engine_callback(speed_state *s, const char *name, PyObject *a, PyObject *b, PyObject *c);
/* Raises an error that a function of the engine's module makes of these. */
void engine_raise(speed_state *s, const char *name, PyObject *a, PyObject *b);

/* True if x is a tensor whose memory has no other owner. */
bool accumulate_sole(speed_state *s, PyObject *x);
/* True if the caller's reference is the only one to the gradient and to its memory. */
bool accumulate_alone(speed_state *s, PyObject *g);
bool accumulate_unseen(speed_state *s, PyObject *g);
bool accumulate_writable_alone(speed_state *s, PyObject *g);
/* Adds a gradient to one that may be written. */
bool accumulate_into(speed_state *s, PyObject *to, PyObject *g);
PyObject *accumulate_copied(speed_state *s, PyObject *g);
bool accumulate_leaf_empty(speed_state *s, PyObject *leaf);
/* Adds a gradient to a leaf's `grad`, which never shares memory with another tensor. */
bool accumulate_leaf(speed_state *s, PyObject *leaf, PyObject *g, bool shared);

PyObject *vjp_rule(PyObject *module, PyObject *args);
/* The struct of a function made by vjp_rule; NULL for other functions. */
void *vjp_found(PyObject *function);
/* Computes the gradients of a node's inputs; an entry is NULL if none is needed. False with an
 * error set. `over`: on entry true if the first gradient may reuse the memory of g, on return true
 * if it does. */
bool vjp_run(const void *rule, node *of, PyObject *g, bool *over, PyObject *made[OPERANDS]);
int vjp_arity(const void *rule);

PyObject *engine_into_grads(PyObject *module, PyObject *const *args, Py_ssize_t count);
PyObject *engine_gradients(PyObject *module, PyObject *args);
PyObject *engine_one(PyObject *module, PyObject *dtype);
PyObject *tensor_grad_uses(PyObject *module, PyObject *unused);
PyObject *engine_depth(PyObject *module, PyObject *unused);
PyObject *engine_number(PyObject *module, PyObject *unused);

MG_INLINE speed_state *state_of(PyObject *module) { return PyModule_GetState(module); }

#endif
