/* minigrad.h: everything that Python may call, the kernels of kernels.def among it. Read twice: by the
 * C compiler and by cffi's cdef, so it holds plain declarations only (the guard and includes are
 * stripped for cffi).
 *
 * Functions that make an array return NULL on failure, functions that write return 0 or an error
 * code; mg_error() tells the calling thread which. Arrays that come back are new and contiguous
 * unless the name says view; they are released with mg_release. Every function checks its input.
 */
#ifndef MINIGRAD_H
#define MINIGRAD_H
#include <stdint.h>
#include <stddef.h>
#define mg_stored mg_array
/* cffi: begin */

enum { MG_MAX_NDIM = 16 };

/* Below zero the storage dtypes: moved and converted, but not computed in. Then the others, in order of
 * promotion. */
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
    MG_EDTYPE,    /* not offered for this dtype */
    MG_EAXIS,     /* axis out of range or repeated; detail: the axis */
    MG_EINDEX,    /* index out of range; detail: the index, the size */
    MG_EEMPTY,    /* no identity for an empty reduction; detail: the axis */
    MG_ESTALE,    /* a saved array was overwritten; detail: its position */
    MG_EREADONLY, /* write into read-only memory */
    MG_EOVERLAP,  /* write into an array whose elements overlap */
    MG_EZERO,     /* an integer divided by zero */
    MG_ESINGULAR, /* a matrix of a stack is singular, or not positive definite; detail: its number */
    MG_EARG       /* any other bad argument */
};

enum mg_recurrence { MG_RNN_TANH, MG_RNN_RELU, MG_GRU, MG_LSTM };

/* ---- arrays ------------------------------------------------------------------------------------ */

typedef struct mg_buffer mg_buffer;

/* A view of a buffer. Immutable once made. Strides count elements and may be 0 or negative. */
typedef struct mg_array {
    char *data; /* the element at index 0, 0, ... */
    mg_buffer *buffer;
    int64_t size; /* product of shape */
    int32_t dtype;
    int32_t ndim;
    int32_t refs;
    int32_t weak;    /* Python's numbers, which take the other operand's dtype */
    int32_t adapted; /* some input of the op that made it was broadcast or cast */
    int64_t shape[16];
    int64_t strides[16];
} mg_array;

/* An array of any dtype. To C it is an mg_array; to cffi a type of its own, so that a storage dtype is
 * refused wherever a function takes an mg_array (handle.h). */
typedef struct mg_stored mg_stored;

/* Several arrays that a function makes at once, for the caller to release; some may be NULL. */
typedef struct {
    int32_t count;
    mg_array *made[4];
} mg_arrays;

int mg_error(void);
int64_t mg_error_detail(int i);

void mg_release(mg_stored *a);
mg_array *mg_empty(int dtype, int ndim, const int64_t *shape);
mg_array *mg_weak_float(double value);
mg_array *mg_weak_int(int64_t value);
mg_array *mg_weak_bool(int value);
/* Foreign memory, which somebody else keeps: see `keep` in shown.h. */
mg_array *mg_borrow(void *data, int dtype, int ndim, const int64_t *shape, const int64_t *strides,
                    int writable);
/* First and last element as floats or integers: what a Python number is made from. */
double mg_item_float(const mg_stored *a);
int64_t mg_item_int(const mg_stored *a);

/* ---- views ------------------------------------------------------------------------------------- */

/* Views as view.h makes them, by these numbers. The last two take a start, step and count for every
 * axis; the last then another shape. */
enum mg_view {
    MG_VIEW_NONE,
    MG_VIEW_OTHER, /* one that Python makes */
    MG_VIEW_RESHAPE,
    MG_VIEW_OR_COPY,
    MG_VIEW_PERMUTE,
    MG_VIEW_EXPAND,
    MG_VIEW_SLICE,
    MG_VIEW_SLICE_RESHAPE
};

mg_array *mg_view_reshape(mg_stored *a, int ndim, const int64_t *shape); /* one -1 allowed; ESHAPE if it
                                                                           cannot be a view */
mg_array *mg_reshape(mg_stored *a, int ndim, const int64_t *shape);      /* view, else a copy */
mg_array *mg_view_permute(mg_stored *a, int ndim, const int32_t *axes);
mg_array *mg_view_expand(mg_stored *a, int ndim, const int64_t *shape);
/* A reduction's result seen at every element that was reduced: `a` has or lacks the reduced axes of
 * `shape`, and they repeat without a copy. */
mg_array *mg_view_spread(mg_stored *a, int ndim, const int64_t *shape, int naxes,
                         const int32_t *axes);
/* a[start : : step] on every axis, `count` elements each. */
mg_array *mg_view_slice(mg_stored *a, const int64_t *start, const int64_t *step,
                        const int64_t *count);
/* The array of this shape in whose memory `a` and `b` lie, if they are two slices of it that begin
 * at these places of an axis and else cut nothing off. NULL, without an error, if that leaves the
 * memory. */
mg_array *mg_view_around(mg_stored *a, mg_stored *b, int axis, int64_t a_start, int64_t b_start,
                         const int64_t *shape);
/* The diagonal of the last two axes as the last one; offset counts to the right of the main one. */
mg_array *mg_view_diagonal(mg_stored *a, int64_t offset);
mg_array *mg_view_alias(mg_stored *a);
/* Its bits as those of another dtype of the same size. */
mg_array *mg_view_as(mg_stored *a, int dtype);
int mg_contiguous_now(const mg_stored *a);
int mg_alike(const mg_stored *a, const mg_stored *b); /* in shape and dtype? */
/* Any two elements in the same place? */
int mg_overlaps_itself(const mg_stored *a);

/* ---- what the tape saves ----------------------------------------------------------------------- */

/* Up to three arrays, as rules compute in them, and the time they were saved. While it lives their buffers are pinned: NumPy
 * gets read-only views of them. Memory that NumPy can already write is copied instead. */
typedef struct mg_saved {
    mg_array *arrays[3];
    int64_t time;
} mg_saved;

mg_saved *mg_save(mg_stored *a, mg_stored *b, mg_stored *c); /* NULL for a place not needed */
mg_saved *mg_save_as_is(mg_stored *a); /* one, in its own dtype, which no rule computes with */
void mg_unsave(mg_saved *saved);
mg_array *mg_saved_array(mg_saved *saved, int i); /* ESTALE if overwritten since */
uint64_t mg_saved_buffer(const mg_saved *saved, int i); /* 0 where there is none */
/* Python gets these as they are: the class of the tape's nodes; and that of what a tensor holds, with
 * the functions wrap, operation and use. */
typedef struct mg_object mg_object;
mg_object *mg_node_class(void);
mg_object *mg_tensor_parts(void);
mg_object *mg_back_parts(void);
/* The backward of this thread that calls a rule now: how deep it is inside others, 0 for none, and its
 * number, which no other backward of the thread has. */
int mg_back_depth(void);
int64_t mg_back_number(void);

int64_t mg_version(const mg_stored *a); /* the write clock when the buffer was made or last written */
int64_t mg_clock_tick(void);           /* a new time, later than all that was made or written */
int64_t mg_pins(const mg_stored *a);
int mg_writable(const mg_stored *a);
uint64_t mg_buffer_id(const mg_stored *a);
/* Contiguous, writable memory that no other array, saved array or NumPy view can see? */
int mg_sole_owner(const mg_stored *a);
void mg_seal(mg_stored *a); /* never writable again */
void mg_share(mg_stored *a, int count); /* count +1 / -1: NumPy holds / dropped a writable view */

/* ---- what kernels take -------------------------------------------------------------------------- */

enum mg_of_three { MG_CLAMP, MG_WHERE }; /* by which operation.h knows these */
enum mg_reduction { MG_SUM, MG_MEAN, MG_PROD, MG_MAX, MG_MIN, MG_ALL, MG_ANY };
enum mg_loss_reduction { MG_LOSS_NONE, MG_LOSS_SUM, MG_LOSS_MEAN };
enum { MG_QR_COLUMNS = 64 }; /* of the widest matrix that mg_qr takes */
enum mg_class_loss { MG_OF_SCORES, MG_OF_LOGS, MG_OF_MARGINS, MG_OF_SQUARES };
enum mg_mixed_kind {
    MG_LEVEL, MG_LEVEL_VJP, MG_BAND, MG_BAND_VJP, MG_CLIP, MG_CLIP_VJP, MG_BEND, MG_BEND_VJP,
    MG_HUBER, MG_HUBER_VJP, MG_ENTROPY, MG_ENTROPY_VJP, MG_SCORES, MG_SCORES_VJP
};
enum mg_product { MG_MATMUL, MG_LINEAR };

/* Boxes on the last one to three axes: box i of an axis takes the elements start + j * step,
 * j < size. `starts` and `sizes` hold those of the first axis, then of the next; so do `divisors`,
 * whose product divides the sum of a box (NULL: 1). */
typedef struct mg_boxes {
    int64_t axes;
    int64_t count[3], step[3];
    const int64_t *starts, *sizes, *divisors;
} mg_boxes;

/* One on the last one to three axes, whose sizes stand first. Output i takes with tap k of the kernel
 * the input i * stride + k * dilation - before; beyond the inputs are zeros. */
typedef struct mg_conv {
    int64_t axes, groups;
    int64_t size[3], kernel[3], counts[3], stride[3], dilation[3], before[3];
} mg_conv;

/* ---- linear systems ----------------------------------------------------------------------------- */

/* Stacks of square float matrices, computed in doubles; ESINGULAR where there is no result, with the
 * number of the matrix. X with A X = B, for B of A's batch shape and dtype, and the inverse. */
mg_array *mg_solve(mg_array *a, mg_array *b);
mg_array *mg_inv(mg_array *a);
/* The same for a triangle of A, whose diagonal counts as ones if `unit`. */
mg_array *mg_solve_triangular(mg_array *a, mg_array *b, int upper, int unit);
/* Lower triangular L with L L^T = A, of which the lower triangle is read. */
mg_array *mg_cholesky(mg_array *a);
/* Determinants; or their signs and the logarithms of their magnitudes, side by side. */
mg_array *mg_det(mg_array *a, int logarithm);
/* Q and below it R of matrices with at least as many rows as columns. */
mg_array *mg_qr(mg_array *a);

/* ---- distances ----------------------------------------------------------------------------------- */

/* |a_i - b_j|, (..., n, m), of points in float arrays (..., n, k) and (..., m, k) of one dtype; and
 * from it the gradients of both. */
mg_array *mg_cdist(mg_array *a, mg_array *b);
mg_arrays *mg_cdist_vjp(mg_array *g, mg_array *a, mg_array *b, mg_array *d);

/* ---- counting ---------------------------------------------------------------------------------- */

/* How often 0, 1, 2, ... are in an int64 array, of at least so many of them; EARG for what is less. */
mg_array *mg_bincount(mg_array *x, int64_t size);
/* 1 at the place of each class along a new last axis of `count`, or, where that is below 0, of as many
 * as there are classes; else 0. EINDEX for a class outside. */
mg_array *mg_one_hot(mg_array *classes, int64_t count);
/* The rows and columns, as (2, n), of a matrix's lower triangle up to the diagonal that lies `offset` to
 * the right of the main one, or of the upper one from it on. */
mg_array *mg_triangle_indices(int64_t rows, int64_t columns, int64_t offset, int lower);
/* How many elements are in each of some equal parts of [low, high], a finite range; the last has high. */
mg_array *mg_histc(mg_array *x, int64_t bins, double low, double high);
/* Of the rows of a matrix that differ from the one before them, in sorted order if `arrange`: where the
 * first of those that are alike is, how many are, and, with `inverse`, which of them each row is like. */
mg_arrays *mg_distinct(mg_array *x, int arrange, int inverse);
/* Up to four parts of an axis side by side, each a start, a step and a count; and its transpose, zeros of
 * that size along the axis with what lies side by side added to them. `add` is the operation's number. */
mg_array *mg_spans(mg_stored *x, int axis, int count, const int64_t *spans);
mg_array *mg_spans_added(int add, mg_array *g, int axis, int64_t size, int count,
                         const int64_t *spans);
/* a + part * (b - a) for a `part` of a's shape or one for all lines; where that is not finite, parts of
 * 0 hide what they are of. */
mg_array *mg_between(mg_array *a, mg_array *b, mg_array *part);

/* ---- the process ------------------------------------------------------------------------------- */

/* Instruction sets that there are kernels for and that processor and operating system allow, from the
 * one that all machines of a kind have to the best; NULL from the last on. */
const char *mg_isa_offered(int i);
int mg_isa_use(int i); /* first of all calls, by that number: these are the kernels from now on */
const char *mg_isa(void);
const char *mg_compiler(void);
int mg_get_num_threads(void);
int mg_set_num_threads(int n);
void mg_cache_clear(void);
int64_t mg_cache_bytes(void);
int64_t mg_live_bytes(void);
/* For tests: from now on the blocks number first..last, counted from 1, that are asked of the system are
 * not there, and nothing is cached; (1, 0) ends that. The number of blocks asked for since the last call. */
int64_t mg_deny_blocks(int64_t first, int64_t last);
/* cffi: end */

#include "base/platform.h"
enum { MG_DISTANCE_LOST = 1, MG_DISTANCE_ZERO = 2 }; /* a square left the range; or is 0 */
enum { MG_DISTANCE_RUN = 256 }; /* points that lie in cache while all others pass */

/* To all but themselves kernels are pointers to those in use. */
#ifndef MG_KERNEL
#define MG_KERNEL(type, name, args) extern MG_OWN type(*name) args;
#endif
#include "kernels.def"
#undef MG_KERNEL

/* Whether so many bytes more may lie in the cache from now on, of what it keeps for good. */
int mg_cache_grant(int64_t room);

#endif
