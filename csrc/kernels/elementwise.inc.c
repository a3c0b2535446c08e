/* elementwise.inc.c: the loops of elementwise.def for one float width.
 *
 * A row becomes small inline functions; a loop takes one as a constant argument and is inlined, so the
 * compiler vectorises it for that operation and a profiler can name it. */
#include "real.h"

#define ONE REAL_C(1)
#define HALF REAL_C(0.5)
#define v_exp_chunk R(v_exp_chunk)
#define v_log R(v_log)
#define v_log_chunk R(v_log_chunk)
#define v_sin_chunk R(v_sin_chunk)
#define v_cos_chunk R(v_cos_chunk)
#define v_tanh_chunk R(v_tanh_chunk)
#define v_sigmoid_chunk R(v_sigmoid_chunk)
#define v_pow R(v_pow)
#define v_pow_chunk R(v_pow_chunk)
#define r_abs R(r_abs)
#define r_sign R(r_sign)
#define r_sqrt R(r_sqrt)
#define r_maximum R(r_maximum)
#define r_minimum R(r_minimum)
#define r_maximum_by R(r_maximum_by)
#define r_pow_by_base R(r_pow_by_base)
#define r_pow_by_exponent R(r_pow_by_exponent)

/* ---- pieces of rows ---- */

MG_INLINE real r_abs(real x) { return (real)(sizeof(real) == 4 ? __builtin_fabsf((float)x) : __builtin_fabs((double)x)); }
MG_INLINE real r_sqrt(real x) { return (real)(sizeof(real) == 4 ? __builtin_sqrtf((float)x) : __builtin_sqrt((double)x)); }
MG_INLINE real r_sign(real x) { return x > 0 ? 1 : x < 0 ? -1 : x == 0 ? 0 : x; }
/* NaN in either operand is the result. */
MG_INLINE real r_maximum(real a, real b) { return a > b || a != a ? a : b; }
MG_INLINE real r_minimum(real a, real b) { return a < b || a != a ? a : b; }
/* A tie is shared; a NaN takes all. */
MG_INLINE real r_maximum_by(real a, real b) {
    real by_value = a > b ? 1 : a < b ? 0 : HALF; /* HALF also when one is NaN */
    real by_nan = b != b ? by_value : 1;
    return a != a ? by_nan : b != b ? 0 : by_value;
}
/* x^0 is constant; 0 * x^-1 must not be formed. */
MG_INLINE real r_pow_by_base(real a, real b) { return b == 0 ? 0 : b * v_pow(a, b - 1); }
/* Where the power is 0 its logarithm's pole does not count; at 0^0 the one-sided derivative is 0. */
MG_INLINE real r_pow_by_exponent(real a, real b, real y) {
    return y == 0 || (a == 0 && b == 0) ? 0 : y * v_log(a);
}

/* ---- the loops ---- */

typedef real (*R(unary_fn))(real x);
typedef real (*R(unary_partial))(real x, real y);
typedef void (*R(chunk_fn))(real *restrict out, const real *restrict x, int64_t n);
typedef real (*R(binary_fn))(real a, real b);
typedef real (*R(binary_partial))(real a, real b, real y);
typedef bool (*R(compare_fn))(real a, real b);

/* out = f(x) */
MG_INLINE void R(unary_loop)(void *out, const void *const *in, int64_t n, R(unary_fn) f) {
    real *restrict o = out;
    const real *restrict x = in[0];
    for (int64_t i = 0; i < n; i++) o[i] = f(x[i]);
}

/* out = g * partial; in: g, x, y. An exactly zero upstream gradient is never multiplied with a pole. */
MG_INLINE void R(unary_vjp_loop)(void *out, const void *const *in, int64_t n, R(unary_partial) d) {
    real *restrict o = out;
    const real *restrict g = in[0], *restrict x = in[1], *restrict y = in[2];
    for (int64_t i = 0; i < n; i++) {
        real partial = d(x[i], y[i]);
        o[i] = g[i] == 0 ? 0 : g[i] * partial;
    }
}

MG_INLINE void R(pair_vjp_loop)(void *out, const void *const *in, int64_t n, R(chunk_fn) d,
                                   real sign) {
    real partial[NDITER_CHUNK];
    real *restrict o = out;
    const real *restrict g = in[0], *restrict x = in[1];
    for (int64_t at = 0; at < n; at += NDITER_CHUNK) {
        int64_t m = mg_min(NDITER_CHUNK, n - at);
        d(partial, x + at, m);
        for (int64_t i = 0; i < m; i++) o[at + i] = g[at + i] == 0 ? 0 : g[at + i] * (sign * partial[i]);
    }
}

MG_INLINE void R(binary_loop)(void *out, const void *const *in, int64_t n, R(binary_fn) f) {
    real *restrict o = out;
    const real *restrict a = in[0], *restrict b = in[1];
    for (int64_t i = 0; i < n; i++) o[i] = f(a[i], b[i]);
}

/* in: g, a, b, y */
MG_INLINE void R(binary_vjp_loop)(void *out, const void *const *in, int64_t n, R(binary_partial) d) {
    real *restrict o = out;
    const real *restrict g = in[0], *restrict a = in[1], *restrict b = in[2], *restrict y = in[3];
    for (int64_t i = 0; i < n; i++) {
        real partial = d(a[i], b[i], y[i]);
        o[i] = g[i] == 0 ? 0 : g[i] * partial;
    }
}

MG_INLINE void R(compare_loop)(void *out, const void *const *in, int64_t n, R(compare_fn) f) {
    uint8_t *restrict o = out;
    const real *restrict a = in[0], *restrict b = in[1];
    for (int64_t i = 0; i < n; i++) o[i] = f(a[i], b[i]);
}

/* ---- a function and a kernel for every row ---- */

#define ROW_ARGUMENTS void *out, const void *const *in, int64_t n
#define UNARY(name, forward, by_x)                                                                  \
    MG_INLINE real R(name##_f)(real x) { return forward; }                                          \
    static void R(name##_kernel)(ROW_ARGUMENTS) { R(unary_loop)(out, in, n, R(name##_f)); }         \
    UNARY_VJP(name, by_x)
#define UNARY_CHUNK(name, forward, by_x)                                                            \
    static void R(name##_kernel)(ROW_ARGUMENTS) { forward(out, in[0], n); }                         \
    UNARY_VJP(name, by_x)
#define UNARY_VJP(name, by_x)                                                                       \
    MG_INLINE real R(name##_d)(real x, real y) { (void)x, (void)y; return by_x; }                   \
    static void R(name##_vjp)(ROW_ARGUMENTS) { R(unary_vjp_loop)(out, in, n, R(name##_d)); }
#define UNARY_PAIR(name, forward, sign, by_x)                                                       \
    static void R(name##_kernel)(ROW_ARGUMENTS) { forward(out, in[0], n); }                         \
    static void R(name##_vjp)(ROW_ARGUMENTS) { R(pair_vjp_loop)(out, in, n, by_x, sign); }
#define BINARY(name, forward, by_a, by_b)                                                           \
    MG_INLINE real R(name##_f)(real a, real b) { return forward; }                                  \
    static void R(name##_kernel)(ROW_ARGUMENTS) { R(binary_loop)(out, in, n, R(name##_f)); }        \
    BINARY_VJP(name, by_a, by_b)
#define BINARY_CHUNK(name, forward, by_a, by_b)                                                     \
    static void R(name##_kernel)(ROW_ARGUMENTS) { forward(out, in[0], in[1], n); }                  \
    BINARY_VJP(name, by_a, by_b)
#define BINARY_VJP(name, by_a, by_b)                                                                \
    MG_INLINE real R(name##_da)(real a, real b, real y) { (void)a, (void)b, (void)y; return by_a; } \
    MG_INLINE real R(name##_db)(real a, real b, real y) { (void)a, (void)b, (void)y; return by_b; } \
    static void R(name##_vjp_a)(ROW_ARGUMENTS) { R(binary_vjp_loop)(out, in, n, R(name##_da)); }    \
    static void R(name##_vjp_b)(ROW_ARGUMENTS) { R(binary_vjp_loop)(out, in, n, R(name##_db)); }
#define COMPARE(name, expression)                                                                   \
    MG_INLINE bool R(name##_f)(real a, real b) { return expression; }                               \
    static void R(name##_kernel)(ROW_ARGUMENTS) { R(compare_loop)(out, in, n, R(name##_f)); }
#define INT_UNARY(name, expression)
#define INT_BINARY(name, expression)
#define BOOL_BINARY(name, expression)
#include "elementwise.def"

#undef ROW_ARGUMENTS
#undef UNARY_VJP
#undef BINARY_VJP
#undef ONE
#undef HALF
#undef v_exp_chunk
#undef v_log
#undef v_log_chunk
#undef v_sin_chunk
#undef v_cos_chunk
#undef v_tanh_chunk
#undef v_sigmoid_chunk
#undef v_pow
#undef v_pow_chunk
#undef r_abs
#undef r_sign
#undef r_sqrt
#undef r_maximum
#undef r_minimum
#undef r_maximum_by
#undef r_pow_by_base
#undef r_pow_by_exponent
