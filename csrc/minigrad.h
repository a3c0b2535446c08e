/* minigrad.h: everything that Python may call. Read twice: by the C compiler and by cffi's cdef,
 * so it holds plain declarations only (the guard and includes are stripped for cffi).
 *
 * Functions that make an array return NULL on failure, functions that write return 0 or an error
 * code; mg_error() tells the calling thread which. Arrays that come back are new and contiguous
 * unless the name says view; they are released with mg_release. Every function checks its input.
 */
#ifndef MINIGRAD_H
#define MINIGRAD_H
#include <stdint.h>
#include <stddef.h>
/* cffi: begin */

enum { MG_MAX_NDIM = 16 };

enum mg_dtype { MG_BOOL, MG_INT64, MG_FLOAT32, MG_FLOAT64 }; /* in order of promotion */

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
    MG_EARG       /* any other bad argument */
};

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

/* Several arrays that a function makes at once, for the caller to release; some may be NULL. */
typedef struct {
    int32_t count;
    mg_array *made[4];
} mg_arrays;

int mg_error(void);
int64_t mg_error_detail(int i);

void mg_release(mg_array *a);
mg_array *mg_empty(int dtype, int ndim, const int64_t *shape);
mg_array *mg_full(int dtype, int ndim, const int64_t *shape, double value, int64_t integer);
mg_array *mg_weak_float(double value);
mg_array *mg_weak_int(int64_t value);
mg_array *mg_weak_bool(int value);
/* Foreign memory, kept by `owner` until the last array on it goes: then mg_on_release(owner). */
mg_array *mg_borrow(void *data, int dtype, int ndim, const int64_t *shape, const int64_t *strides,
                    int writable, int64_t owner, void (*on_release)(int64_t));
/* First and last element as floats or integers: what a Python number is made from. */
double mg_item_float(const mg_array *a);
int64_t mg_item_int(const mg_array *a);

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

mg_array *mg_view_reshape(mg_array *a, int ndim, const int64_t *shape); /* one -1 allowed; ESHAPE if it
                                                                           cannot be a view */
mg_array *mg_reshape(mg_array *a, int ndim, const int64_t *shape);      /* view, else a copy */
mg_array *mg_view_permute(mg_array *a, int ndim, const int32_t *axes);
mg_array *mg_view_expand(mg_array *a, int ndim, const int64_t *shape);
/* A reduction's result seen at every element that was reduced: `a` has or lacks the reduced axes of
 * `shape`, and they repeat without a copy. */
mg_array *mg_view_spread(mg_array *a, int ndim, const int64_t *shape, int naxes,
                         const int32_t *axes);
/* a[start : : step] on every axis, `count` elements each. */
mg_array *mg_view_slice(mg_array *a, const int64_t *start, const int64_t *step,
                        const int64_t *count);
/* The array of this shape in whose memory `a` and `b` lie, if they are two slices of it that begin
 * at these places of an axis and else cut nothing off. NULL, without an error, if that leaves the
 * memory. */
mg_array *mg_view_around(mg_array *a, mg_array *b, int axis, int64_t a_start, int64_t b_start,
                         const int64_t *shape);
/* The diagonal of the last two axes as the last one; offset counts to the right of the main one. */
mg_array *mg_view_diagonal(mg_array *a, int64_t offset);
mg_array *mg_view_alias(mg_array *a);
int mg_contiguous_now(const mg_array *a);
int mg_alike(const mg_array *a, const mg_array *b); /* in shape and dtype? */
/* Any two elements in the same place? */
int mg_overlaps_itself(const mg_array *a);

/* ---- copies and writes ------------------------------------------------------------------------- */

mg_array *mg_copy(mg_array *a);
mg_array *mg_cast(mg_array *a, int dtype); /* a copy also when the dtype stays */
/* 0, or why `a` must not be written: read-only memory, or elements that overlap. */
int mg_check_writable(const mg_array *a);
/* dst[...] = src, broadcast and cast; advances the write clock. Overlap is safe. */
int mg_write(mg_array *dst, mg_array *src);
/* dst += src for equal shapes and dtypes; for gradients the caller owns. */
int mg_accumulate(mg_array *dst, mg_array *src);
/* Sum of `a` over the axes along which `shape` was broadcast to a's shape. */
mg_array *mg_sum_to(mg_array *a, int ndim, const int64_t *shape);
/* Arrays of one dtype laid side by side along an axis, on which alone their sizes may differ. */
mg_array *mg_concatenate(int count, mg_array **arrays, int axis);
mg_array *mg_stack(int count, mg_array **arrays, int axis); /* of one shape, along a new axis */
/* The matrices of the last two axes, 0 above the diagonal that lies `offset` to the right of the main
 * one, or where not `lower` below it. */
mg_array *mg_triangle(mg_array *a, int64_t offset, int lower);
mg_array *mg_arange(int dtype, double start, double step, int64_t start_int, int64_t step_int,
                    int64_t count);

/* ---- what the tape saves ----------------------------------------------------------------------- */

/* Up to three arrays and the time they were saved. While it lives their buffers are pinned: NumPy
 * gets read-only views of them. Memory that NumPy can already write is copied instead. */
typedef struct mg_saved {
    mg_array *arrays[3];
    int64_t time;
} mg_saved;

mg_saved *mg_save(mg_array *a, mg_array *b, mg_array *c); /* NULL for a place not needed */
void mg_unsave(mg_saved *saved);
mg_array *mg_saved_array(mg_saved *saved, int i); /* ESTALE if overwritten since */
uint64_t mg_saved_buffer(const mg_saved *saved, int i); /* 0 where there is none */
/* Python gets these as they are: the class of the tape's nodes; and that of what a tensor holds, with
 * the functions wrap, operation and use. */
typedef struct mg_object mg_object;
mg_object *mg_node_class(void);
mg_object *mg_tensor_parts(void);
mg_object *mg_back_parts(void);

int64_t mg_version(const mg_array *a); /* the write clock at the buffer's last in-place write */
int64_t mg_pins(const mg_array *a);
int mg_writable(const mg_array *a);
uint64_t mg_buffer_id(const mg_array *a);
/* Contiguous, writable memory that no other array, saved array or NumPy view can see? */
int mg_sole_owner(const mg_array *a);
void mg_seal(mg_array *a); /* never writable again */
void mg_share(mg_array *a, int count); /* count +1 / -1: NumPy holds / dropped a writable view */

/* ---- elementwise ------------------------------------------------------------------------------- */

int mg_op_count(void);
const char *mg_op_name(int op); /* NULL out of range */
int mg_op_arity(int op);
int mg_op_has_vjp(int op); /* whether mg_unary_vjp or mg_binary_vjp is offered */
mg_array *mg_unary(int op, mg_array *x);
mg_array *mg_binary(int op, mg_array *a, mg_array *b);
/* x between low and high; of crossed bounds high counts, and NaN in any is the result. */
mg_array *mg_clamp(mg_array *x, mg_array *low, mg_array *high);
mg_array *mg_where(mg_array *condition, mg_array *a, mg_array *b);
enum mg_of_three { MG_CLAMP, MG_WHERE }; /* by which operation.h knows these */
/* Gradient for input `i` from the upstream gradient g; saved holds (x, y) or (a, b, y). */
mg_array *mg_unary_vjp(int op, mg_array *g, mg_saved *saved);
/* For the inputs i with bit i of `wanted`, in one pass. */
mg_arrays *mg_binary_vjp(int op, int wanted, mg_array *g, mg_saved *saved);

/* ---- reductions -------------------------------------------------------------------------------- */

enum mg_reduction { MG_SUM, MG_MEAN, MG_PROD, MG_MAX, MG_MIN, MG_ALL, MG_ANY };

/* naxes < 0: all axes. */
mg_array *mg_reduce(int op, mg_array *x, int naxes, const int32_t *axes, int keepdims);
mg_array *mg_arg_reduce(int op, mg_array *x, int axis, int all, int keepdims);
mg_array *mg_var(mg_array *x, int naxes, const int32_t *axes, double correction, int root,
                 int keepdims); /* or, with `root`, the standard deviation */
mg_array *mg_norm(mg_array *x, int naxes, const int32_t *axes, int keepdims); /* p = 2 */
mg_array *mg_spread_vjp(mg_array *g, mg_array *x, mg_array *y, int naxes, const int32_t *axes,
                        double scale, int centred, int keepdims);
mg_array *mg_logsumexp(mg_array *x, int naxes, const int32_t *axes, int keepdims);
mg_array *mg_logsumexp_vjp(mg_array *g, mg_array *x, mg_array *y, int naxes, const int32_t *axes,
                           int keepdims);
mg_array *mg_extremum_vjp(mg_array *g, mg_array *x, mg_array *y, int naxes, const int32_t *axes,
                          int keepdims);
mg_array *mg_softmax(mg_array *x, int axis);
mg_array *mg_log_softmax(mg_array *x, int axis);
mg_array *mg_softmax_vjp(mg_array *g, mg_array *y, int axis);
mg_array *mg_log_softmax_vjp(mg_array *g, mg_array *y, int axis);

/* ---- normalisation ----------------------------------------------------------------------------- */

/* Rows of w's size brought to mean 0 (if centred) and variance 1, times w, plus b, all of them float
 * arrays of one dtype. `stats`, 4 values for each row, is written for the backward: the mean, what
 * its rounding lost, 1 / sqrt(var + eps), and the variance. */
mg_array *mg_norm_rows(mg_array *x, mg_array *w, mg_array *b, mg_array *stats, int centred,
                       double eps);
/* The gradients of x, w and b. */
mg_arrays *mg_norm_rows_vjp(mg_array *g, mg_array *x, mg_array *w, mg_array *stats, int centred);
/* The same for x of shape (N, C, ...), w and b of shape (C,): by channel, or by `groups` groups of a
 * sample's channels; with the means and variances given, by those. */
mg_array *mg_norm_channels(mg_array *x, mg_array *w, mg_array *b, mg_array *stats, int groups,
                           mg_array *mean, mg_array *var, double eps);
mg_arrays *mg_norm_channels_vjp(mg_array *g, mg_array *x, mg_array *w, mg_array *stats, int groups,
                                int own);
/* running = (1 - momentum) running + momentum factor now, a channel's mean or variance each. */
int mg_norm_track(mg_array *running, mg_array *stats, int variance, double momentum,
                  double factor);

/* ---- cross entropy ------------------------------------------------------------------------------- */

enum mg_loss_reduction { MG_LOSS_NONE, MG_LOSS_SUM, MG_LOSS_MEAN };

/* The cross entropy of rows of scores x with int64 classes, weighted by class unless w is NULL:
 * one for each row, their sum, or that over the sum of the targets' weights. Targets equal to
 * `ignore` count nothing; EINDEX for others that are no class. `stats`, (2, rows), is written for
 * the backward. */
mg_array *mg_cross_entropy(mg_array *x, mg_array *target, mg_array *w, mg_array *stats,
                           int64_t ignore, double smoothing, int reduction);
mg_array *mg_cross_entropy_vjp(mg_array *g, mg_array *x, mg_array *target, mg_array *w,
                               mg_array *stats, int64_t ignore, double smoothing, int reduction);

/* ---- scans and sorting ------------------------------------------------------------------------- */

/* Along one axis, from the first element to the last. bool gives int64. */
mg_array *mg_cumsum(mg_array *x, int axis, int back); /* or from the last to the first */
mg_array *mg_cumprod(mg_array *x, int axis);
mg_array *mg_logcumsumexp(mg_array *x, int axis);
/* y[i] = b[i] + a[i] * y[i - 1], and y[0] = b[0]; a product with 0 is 0 whatever a[i] is. */
mg_array *mg_recurrence(mg_array *a, mg_array *b, int axis);
/* Where the running maximum and minimum are: the first of ties; the first NaN beats all numbers. */
mg_array *mg_cummax(mg_array *x, int axis);
mg_array *mg_cummin(mg_array *x, int axis);
/* The places of the elements in sorted order, ties in their own order; NaN is the largest. */
mg_array *mg_argsort(mg_array *x, int axis, int descending);
mg_array *mg_topk(mg_array *x, int64_t k, int axis, int largest); /* the first k of these */
/* Where values go in lines that are sorted upwards: before those equal to them, or (right) after.
 * One line for all values, or one for each line of values. */
mg_array *mg_searchsorted(mg_array *sorted, mg_array *values, int right);

/* ---- matrix products --------------------------------------------------------------------------- */

enum mg_product { MG_MATMUL, MG_LINEAR };

mg_array *mg_matmul(mg_array *a, mg_array *b);
/* x @ w^T + bias, of one float dtype, for x (..., in), w (out, in) and bias (out) or NULL. */
mg_array *mg_linear(mg_array *x, mg_array *w, mg_array *bias);
mg_array *mg_bilinear(int product, mg_array *a, mg_array *b); /* by number, like mg_binary */
/* The gradients of the operands i with bit i of `wanted` (2: the bias), from g and what of the operands
 * was saved. */
mg_arrays *mg_bilinear_vjp(int product, int wanted, mg_array *g, mg_saved *saved);

/* ---- attention --------------------------------------------------------------------------------- */

/* softmax(q k^T * scale + mask) v with batch axes broadcast; mask is NULL, added, or, if it is
 * bool, says which keys a query sees. The result y, and the statistics of its rows. y and the
 * gradients lie in memory as the operands do, contiguous or not. */
mg_arrays *mg_attention(mg_array *q, mg_array *k, mg_array *v, mg_array *mask, double scale,
                        int causal);
/* The gradients of q, k and v, their batch axes not yet summed; and with by_mask a fourth, that of an
 * added mask, in the shape of the scores. */
mg_arrays *mg_attention_vjp(mg_array *g, mg_array *q, mg_array *k, mg_array *v, mg_array *mask,
                            mg_array *y, mg_array *statistics, double scale, int causal,
                            int by_mask);

/* ---- indexing ---------------------------------------------------------------------------------- */

/* 0, or MG_EINDEX: an index is not in 0..n - 1. */
int mg_index_within(mg_array *index, int64_t n);
/* x[i0, i1, ...] with `count` int64 index arrays of equal shape on x's first axes; negative indices
 * count from the end. Shape: index shape, then x's remaining axes. Here and below NULL, in place of
 * the k-th but not of all, stands for the positions on axis k of the others. */
mg_array *mg_gather(mg_array *x, int count, mg_array **indices);
/* zeros(shape)[i0, i1, ...] += g, repeated indices added in order. */
mg_array *mg_scatter_add(int ndim, const int64_t *shape, int count, mg_array **indices, mg_array *g);
/* A copy of x with [i0, i1, ...] op= value, repeated indices in order; op is MG_SUM, MG_PROD, MG_MAX or
 * MG_MIN, and value has x's dtype and the picked shape. Of booleans, sums are or and products and. */
mg_array *mg_scatter_reduce(int op, mg_array *x, int count, mg_array **indices, mg_array *value);
/* x[i0, i1, ...] = value, broadcast and cast; the last of repeated indices wins. */
int mg_scatter_write(mg_array *x, int count, mg_array **indices, mg_array *value);
/* For each position in the index arrays the one before it, counted in order, with the same indices into
 * an array of this shape; the number of positions where there is none. */
mg_array *mg_index_previous(int ndim, const int64_t *shape, int count, mg_array **indices);
/* 0 repeats[0] times, 1 repeats[1] times and so on. */
mg_array *mg_repeat_positions(mg_array *repeats);
/* The positions of true elements: ndim arrays as the rows of one (ndim, count) array. */
mg_array *mg_nonzero(mg_array *mask);

/* ---- windows and boxes ------------------------------------------------------------------------- */

/* The windows on the last `axes` axes of a: window c of an axis takes the elements
 * c * stride + k * dilation, k < kernel. Shape: the axes before those, the windows, inside one. */
mg_array *mg_view_windows(mg_array *a, int axes, const int64_t *count, const int64_t *kernel,
                          const int64_t *stride, const int64_t *dilation);
/* Its transpose: zeros(shape) with all windows added to where they were seen. */
mg_array *mg_fold_windows(mg_array *g, int ndim, const int64_t *shape, int axes,
                          const int64_t *stride, const int64_t *dilation);
/* Boxes on the last one to three axes: box i of an axis takes the elements start + j * step,
 * j < size. `starts` and `sizes` hold those of the first axis, then of the next; so do `divisors`,
 * whose product divides the sum of a box (NULL: 1). */
typedef struct mg_boxes {
    int64_t axes;
    int64_t count[3], step[3];
    const int64_t *starts, *sizes, *divisors;
} mg_boxes;

mg_array *mg_box_sum(mg_array *x, const mg_boxes *boxes);
/* Its transpose: zeros(shape) with g added to all elements of each box. */
mg_array *mg_box_spread(mg_array *g, int ndim, const int64_t *shape, const mg_boxes *boxes);
/* The maxima, and where each is, counted through those axes: the first of ties, NaN first. */
mg_array *mg_box_max(mg_array *x, const mg_boxes *boxes);
mg_array *mg_box_argmax(mg_array *x, const mg_boxes *boxes);
/* zeros of x's shape with g added to the maximum of each box. */
mg_array *mg_box_max_vjp(mg_array *g, mg_array *x, const mg_boxes *boxes);

/* ---- convolutions ------------------------------------------------------------------------------ */

/* One on the last one to three axes, whose sizes stand first. Output i takes with tap k of the kernel
 * the input i * stride + k * dilation - before; beyond the inputs are zeros. */
typedef struct mg_conv {
    int64_t axes, groups;
    int64_t size[3], kernel[3], counts[3], stride[3], dilation[3], before[3];
} mg_conv;

/* Floats x (batch, channels, *size), w (outs, channels / groups, *kernel), and g or y
 * (batch, outs, *counts). The convolution; with `bias` (outs), which may be NULL. */
mg_array *mg_conv_sum(mg_array *x, mg_array *w, mg_array *bias, const mg_conv *conv);
/* Its transposes: of the shape of x, and of the shape of w. */
mg_array *mg_conv_spread(mg_array *g, mg_array *w, const mg_conv *conv);
mg_array *mg_conv_weight(mg_array *g, mg_array *x, const mg_conv *conv);

/* ---- random numbers ----------------------------------------------------------------------------- */

/* Drawn from NumPy's Philox, either from its `state`, which goes forward: four words of counter, two of
 * key, four given out, the next of those; whether half a word is left, and that. Or one by one from
 * `source`, as NumPy gives it to C. Uniform in [0, 1); or whether a float32 of these is at least p. */
mg_array *mg_uniform(int dtype, int ndim, const int64_t *shape, uint64_t *state, const void *source);
mg_array *mg_keep(float p, int ndim, const int64_t *shape, uint64_t *state, const void *source);
/* x * factor where `keep` is true, else 0. */
mg_array *mg_drop(mg_array *x, mg_array *keep, double factor);

/* ---- optimiser steps --------------------------------------------------------------------------- */

/* One pass over `count` parameters; each, its state and its gradient are float arrays of one dtype and
 * shape. State may be NULL where a method works without: momentum, a running maximum, a mean. */
int mg_sgd_step(int count, mg_array **p, mg_array **g, mg_array **momentum_buffer, double lr,
                double momentum, double dampening, double weight_decay, int nesterov,
                int maximize);
int mg_adam_step(int count, mg_array **p, mg_array **g, mg_array **m, mg_array **v, mg_array **v_max,
                 double lr, double beta1, double beta2, double eps, double weight_decay,
                 int decoupled, int64_t step, int maximize);
int mg_rmsprop_step(int count, mg_array **p, mg_array **g, mg_array **square,
                    mg_array **momentum_buffer, mg_array **mean, double lr, double alpha, double eps,
                    double weight_decay, double momentum, int maximize);

/* ---- the process ------------------------------------------------------------------------------- */

const char *mg_isa(void);      /* what this module was compiled for */
const char *mg_best_isa(void); /* what processor and operating system allow */
const char *mg_compiler(void);
int mg_get_num_threads(void);
int mg_set_num_threads(int n);
void mg_cache_clear(void);
int64_t mg_cache_bytes(void);
int64_t mg_live_bytes(void);
/* cffi: end */

/* Does mg_linear take them? */
int mg_linear_fits(const mg_array *x, const mg_array *w, const mg_array *bias);
/* Whether so many bytes more may lie in the cache from now on, of what it keeps for good. */
int mg_cache_grant(int64_t room);
/* A copy, and another one where one reading serves both: where `a` is contiguous; else NULL. */
mg_array *mg_copy_twice(mg_array *a, mg_array **also);

#endif
