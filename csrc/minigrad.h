/* minigrad.h: declarations of the C core for Python. The kernels are in ops.def, and mg_run calls
 * them. The C compiler reads the whole file. cffi reads the part between the marks, as it knows
 * plain declarations only.
 *
 * Functions that make an array return NULL on failure. Functions that write return 0 or an error
 * code. mg_error() has the code for the calling thread. Returned arrays are new and contiguous
 * unless the name says view. mg_release releases them. Every function checks its input.
 */
#ifndef MINIGRAD_H
#define MINIGRAD_H
#include <stdint.h>
#include <stddef.h>
/* cffi: begin */

enum { MG_MAX_NDIM = 16 };

/* Below zero are the storage dtypes, which are moved and converted, but not computed in. The others
 * follow in the order of promotion. */
enum mg_dtype {
    MG_UINT8 = -6,
    MG_INT8,
    MG_INT16,
    MG_INT32,
    MG_FLOAT16,
    MG_BFLOAT16,
    MG_BOOL,
    MG_INT64,
    MG_FLOAT32,
    MG_FLOAT64
};

enum mg_error_code {
    MG_OK,
    MG_ENOMEM,    /* no memory */
    MG_ESIZE,     /* the number of elements or bytes overflows */
    MG_ENDIM,     /* more than MG_MAX_NDIM dimensions */
    MG_ESHAPE,    /* shapes do not fit together; mg_error_detail(0), (1): the sizes that differ */
    MG_EDTYPE,    /* dtype not supported here */
    MG_EAXIS,     /* axis out of range or repeated; detail: the axis */
    MG_EINDEX,    /* index out of range; detail: the index, the size */
    MG_EEMPTY,    /* no identity for an empty reduction; detail: the axis */
    MG_ESTALE,    /* a saved array was overwritten; detail: its position */
    MG_EREADONLY, /* write to read-only memory */
    MG_EOVERLAP,  /* write to an array whose elements overlap */
    MG_EZERO,     /* integer division by zero */
    MG_ESINGULAR, /* a matrix of a stack is singular or not positive definite; detail: number */
    MG_EARG       /* any other bad argument */
};

enum mg_recurrence { MG_RNN_TANH, MG_RNN_RELU, MG_GRU, MG_LSTM };

/* ---- arrays ---------------------------------------------------------------------------------- */

typedef struct mg_buffer mg_buffer;

/* A view of a buffer. Immutable once made. Strides count elements and may be 0 or negative. */
typedef struct mg_array {
    char *data; /* the element at index 0, 0, ... */
    mg_buffer *buffer;
    int64_t size; /* product of shape */
    int32_t dtype;
    int32_t ndim;
    int32_t refs;
    int32_t weak;    /* a Python number, which takes the other operand's dtype */
    int32_t adapted; /* an input of the operation that made it was broadcast or cast */
    int32_t spare;   /* this operation is its last reader, and may write over it */
    int64_t shape[16];
    int64_t strides[16];
} mg_array;

/* Several arrays that a function makes at once. The caller releases them; some may be NULL. */
typedef struct {
    int32_t count;
    mg_array *made[4];
} mg_arrays;

int mg_error(void);
int64_t mg_error_detail(int i);

void mg_release(mg_array *a);
/* The first element as a float, or as an integer; 0 for an empty array. */
double mg_item_float(const mg_array *a);
int64_t mg_item_int(const mg_array *a);
int mg_contiguous_now(const mg_array *a);
int mg_alike(const mg_array *a, const mg_array *b); /* same shape and dtype? */
/* True if two elements share memory. */
int mg_overlaps_itself(const mg_array *a);
/* the write clock when the buffer was made or last written */
int64_t mg_version(const mg_array *a);
/* a new time, later than all buffers made or written so far */
int64_t mg_clock_tick(void);
int64_t mg_pins(const mg_array *a);
int mg_writable(const mg_array *a);
uint64_t mg_buffer_id(const mg_array *a);
/* True for contiguous, writable memory that no other array, saved array or NumPy view shares. */
int mg_sole_owner(const mg_array *a);
void mg_seal(mg_array *a); /* makes the buffer read-only for good */
void mg_share(mg_array *a, int count); /* count +1 / -1: NumPy got / dropped a writable view */
/* Sets the owner of borrowed memory. `release` is called with it after the last array on the
 * memory. 0, or MG_EARG if the memory has an owner. */
int mg_set_owner(mg_array *a, void *owner, void (*release)(void *owner));

/* ---- what the tape saves --------------------------------------------------------------------- */

/* Up to three arrays in the dtypes that derivatives compute in, and the time they were saved. While
 * a mg_saved lives, the buffers are pinned: NumPy gets read-only views of them. Memory that NumPy
 * can already write is copied instead. */
typedef struct mg_saved {
    mg_array *arrays[3];
    int64_t time;
} mg_saved;

mg_saved *mg_save(mg_array *a, mg_array *b, mg_array *c); /* NULL for an array that is not needed */
/* one array in its own dtype; no derivative computes with it */
mg_saved *mg_save_as_is(mg_array *a);
void mg_unsave(mg_saved *saved);
uint64_t mg_saved_buffer(const mg_saved *saved, int i); /* 0 if there is none */

/* ---- running kernels ------------------------------------------------------------------------- */

/* Arguments of an operation besides arrays: integers and floats, each in the order of its
 * parameters. A list is its length (-1 for None), followed by its items. */
typedef struct mg_args {
    const int64_t *ints;
    const double *floats;
    mg_saved *saved;
} mg_args;

/* Runs an operation on n arrays, arrays in its lists included. Returns 0 or an error code; an
 * operation that is a question returns its answer. */
int mg_run(int op, int n, mg_array *const *in, const mg_args *args, mg_arrays *out);
/* As mg_run, with the members of mg_args apart. cffi makes C arrays of Python's lists for the call. */
int mg_call(int op, int n, mg_array *const *in, const int64_t *ints, const double *floats, mg_saved *saved,
            mg_arrays *out);
/* mg_call of an operation with one result; NULL after an error. */
mg_array *mg_call_one(int op, int n, mg_array *const *in, const int64_t *ints, const double *floats,
                      mg_saved *saved);
int mg_run_count(void); /* operations are numbered from 0 */
const char *mg_run_name(int op);
const char *mg_run_title(int op); /* name of the public operation, for errors */
/* Letters of the arguments in order, a colon, and the letter of the result.
 * a array, s array of any dtype, m array or NULL, A S lists of such arrays, k saved arrays, i
 * integer, d float, p address, I L lists of integers, D list of floats.
 * Results: 1 an array, n several, s nothing, ? an answer. */
const char *mg_run_signature(int op);
/* Elementwise operations have the numbers 0 to mg_elementwise_count() - 1. The derivative of number
 * i is number mg_elementwise_count() + i, if it is offered. */
int mg_elementwise_count(void);
int mg_elementwise_has_vjp(int op);

/* ---- recorded programs ----------------------------------------------------------------------- */

typedef struct mg_program mg_program;

/* Why a run stopped: it is done, it pauses for signals, a step failed, a question was answered in
 * another way than in the recording, or arrays or numbers given were not as many as expected. */
enum mg_program_state {
    MG_PROGRAM_DONE,
    MG_PROGRAM_PAUSED,
    MG_PROGRAM_FAILED,
    MG_PROGRAM_DIFFERS,
    MG_PROGRAM_MISFIT,
    MG_PROGRAM_BUSY, /* in another thread */
    MG_PROGRAM_AGAIN /* in this thread, within its own run */
};

/* A program from its list of integers and its floats: see program/program.c. NULL and MG_EARG for
 * a list that is no program. */
mg_program *mg_program_new(int64_t count, const int64_t *code, int64_t floats, const double *values);
void mg_program_free(mg_program *program);
int mg_program_state(void); /* of this thread's last run */
int mg_program_at(const mg_program *program); /* the step at which the last run stopped */

/* ---- arguments of kernels -------------------------------------------------------------------- */

enum mg_reduction { MG_SUM, MG_MEAN, MG_PROD, MG_MAX, MG_MIN, MG_ALL, MG_ANY };
enum mg_loss_reduction { MG_LOSS_NONE, MG_LOSS_SUM, MG_LOSS_MEAN };
enum { MG_QR_COLUMNS = 64 }; /* columns of the widest matrix that mg_qr takes */
enum mg_class_loss { MG_OF_SCORES, MG_OF_LOGS, MG_OF_MARGINS, MG_OF_SQUARES };
enum mg_mixed_kind {
    MG_SHRINK, MG_SHRINK_VJP, MG_HARDTANH, MG_HARDTANH_VJP, MG_CLAMP, MG_CLAMP_VJP, MG_ELU, MG_ELU_VJP,
    MG_HUBER, MG_HUBER_VJP, MG_BCE, MG_BCE_VJP, MG_BCE_LOGITS, MG_BCE_LOGITS_VJP
};
/* Kinds of instructions of mg_chain: an operation, a derivative by one input (of the upstream gradient, the
 * inputs and the result), where, clamp. */
enum mg_chain_kind { MG_CHAIN_FORWARD, MG_CHAIN_VJP, MG_CHAIN_WHERE, MG_CHAIN_CLAMP };
enum mg_product { MG_MATMUL, MG_LINEAR };

/* Pooling windows on the last one to three axes. Window i of an axis takes start + j * step for j <
 * size. `starts` and `sizes` hold the values of the first axis, then of the next. `divisors`
 * does so too; their product divides the sum of a window (NULL: 1). */
typedef struct mg_windows {
    int64_t axes;
    int64_t count[3], step[3];
    const int64_t *starts, *sizes, *divisors;
} mg_windows;

/* A convolution on the last one to three axes, whose sizes come first. For output i, tap k of the
 * kernel reads the input i * stride + k * dilation - before. Beyond the inputs are zeros. */
typedef struct mg_conv {
    int64_t axes, groups;
    int64_t size[3], kernel[3], counts[3], stride[3], dilation[3], before[3];
} mg_conv;

/* ---- the process ----------------------------------------------------------------------------- */

/* Instruction sets that have kernels and that the processor and operating system allow. The first
 * is the one that all machines of a kind have, the last the best; NULL after the last. */
const char *mg_isa_offered(int i);
int mg_isa_use(int i); /* must be the first call: selects the kernels of that number */
const char *mg_isa(void);
const char *mg_compiler(void);
int mg_get_num_threads(void);
void mg_cache_clear(void);
int64_t mg_cache_bytes(void);
int64_t mg_live_bytes(void);
/* For tests: requests number first..last for blocks from the system fail, counted from 1. Nothing
 * is cached meanwhile; (1, 0) ends that. Returns the number of requests since the last call. */
int64_t mg_deny_blocks(int64_t first, int64_t last);
/* One more (1) or one fewer (-1) measures the times of mg_run; when its last call in this thread that was
 * measured began and ended, in nanoseconds of a clock that only goes forward. */
void mg_run_measure(int more);
int64_t mg_run_begun(void);
int64_t mg_run_ended(void);
/* Functions of C for the accelerator, which links to none of them: see python/speed.h. */
typedef struct mg_core mg_core;
const mg_core *mg_core_table(void);
/* cffi: end */

struct mg_core {
    int (*run)(int op, int n, mg_array *const *in, const mg_args *args, mg_arrays *out);
    int (*run_count)(void);
    const char *(*run_name)(int op);
    const char *(*run_title)(int op);
    const char *(*run_signature)(int op);
    int (*elementwise_count)(void);
    int (*error)(void);
    void (*release)(mg_array *a);
    double (*item_float)(const mg_array *a);
    int64_t (*item_int)(const mg_array *a);
    double (*real_at)(int dtype, const char *at);
    int64_t (*whole_at)(int dtype, const char *at);
    int (*contiguous_now)(const mg_array *a);
    int (*alike)(const mg_array *a, const mg_array *b);
    int (*overlaps_itself)(const mg_array *a);
    int64_t (*version)(const mg_array *a);
    int64_t (*pins)(const mg_array *a);
    int (*writable)(const mg_array *a);
    uint64_t (*buffer_id)(const mg_array *a);
    int (*sole_owner)(const mg_array *a);
    void (*seal)(mg_array *a);
    void (*share)(mg_array *a, int count);
    int (*set_owner)(mg_array *a, void *owner, void (*release)(void *owner));
    mg_saved *(*save)(mg_array *a, mg_array *b, mg_array *c);
    mg_saved *(*save_as_is)(mg_array *a);
    void (*unsave)(mg_saved *saved);
    uint64_t (*saved_buffer)(const mg_saved *saved, int i);
    void (*set_gil_hook)(void (*hook)(void));
    int (*cache_grant)(int64_t room);
};

#include "base/platform.h"
enum { MG_DISTANCE_LOST = 1, MG_DISTANCE_ZERO = 2 }; /* a square left the range; a square is 0 */
enum { MG_DISTANCE_RUN = 256 }; /* points that stay in cache while all others pass */

/* Types by which ops.def says what a kernel takes and returns. */
#define mg_stored mg_array
#define mg_maybe mg_array
#define mg_optional mg_array
typedef int mg_status, mg_answer;

/* Outside their own files, kernels are pointers to those of the instruction set in use. */
#ifndef MG_KERNEL
#define MG_KERNEL(type, name, args, operation) extern MG_OWN type(*name) args;
#endif
#define MG_CORE(type, name, args, operation) type name args;
#include "ops.def"

/* Reserves room in the cache for small blocks, which keep it for good. True if granted. */
int mg_cache_grant(int64_t room);

#endif
