/* elementwise.inc.c: the loops of elementwise.def for one float width.
 *
 * Each row becomes small inline functions. A loop takes one as a constant argument and is inlined.
 * The compiler thus vectorises each operation, and a profiler can name it.
 */
#include "simd/real.h"

#define ONE REAL_C(1)
#define HALF REAL_C(0.5)
#define LN2 REAL_C(0x1.62e42fefa39efp-1)
#define LOG10E REAL_C(0x1.bcb7b1526e50ep-2)
#define v_log R(v_log)
#define v_floor R(v_floor)
#define v_ceil R(v_ceil)
#define v_trunc R(v_trunc)
#define v_round R(v_round)
#define v_fmax R(v_fmax)
#define v_fmin R(v_fmin)
#define v_copysign R(v_copysign)
#define r_isinf R(r_isinf)
#define r_signbit R(v_signbit)
#define r_sign R(r_sign)
#define v_abs R(v_abs)
#define v_sqrt R(v_sqrt)
#define r_maximum R(r_maximum)
#define r_minimum R(r_minimum)
#define r_maximum_by R(r_maximum_by)
#define r_root_above R(r_root_above)
#define r_bounded R(r_bounded)
#define r_hard_gate R(r_hard_gate)
#define r_softsign R(r_softsign)
#define r_softsign_by R(r_softsign_by)

/* ---- parts of rows ----- */

MG_INLINE bool r_isinf(real x) { return v_abs(x) == (real)V_INF_F32; }
MG_INLINE real r_sign(real x) { return x > 0 ? 1 : x < 0 ? -1 : x == 0 ? 0 : x; }
/* The result is NaN if either operand is. */
MG_INLINE real r_maximum(real a, real b) { return a > b || a != a ? a : b; }
MG_INLINE real r_minimum(real a, real b) { return a < b || a != a ? a : b; }
/* Ties are shared equally. A NaN takes all. */
MG_INLINE real r_maximum_by(real a, real b) {
    real by_value = a > b ? 1 : a < b ? 0 : HALF; /* HALF also if one is NaN */
    real by_nan = b != b ? by_value : 1;
    return a != a ? by_nan : b != b ? 0 : by_value;
}

MG_INLINE real r_bounded(real x, real low, real high) { return x <= low ? low : x >= high ? high : x; }
MG_INLINE real r_softsign(real x) {
    real a = v_abs(x);
    return a == (real)V_INF_F32 ? v_copysign(ONE, x) : x / (ONE + a);
}
MG_INLINE real r_softsign_by(real x) {
    real part = ONE / (ONE + v_abs(x));
    return part * part;
}
MG_INLINE real r_hard_gate(real x) { return (r_bounded(x, -3, 3) + 3) / 6; }

/* sqrt(1 + y^2), never less than |y|, and equal to |y| long before y^2 overflows */
MG_INLINE real r_root_above(real y) {
    real a = v_abs(y), z = a < REAL_C(0x1p40) ? a : REAL_C(0x1p40);
    real root = v_sqrt(fma_real(z, z, ONE));
    return root > a ? root : a;
}

/* ---- the loops ---- */

typedef real (*R(unary_fn))(real x);
typedef real (*R(unary_partial))(real x, real y);
typedef void (*R(chunk_fn))(real *restrict out, const real *restrict x, int64_t n);
typedef void (*R(chunk_pair))(real *restrict out, const real *restrict a, const real *restrict b,
                              int64_t n);
typedef void (*R(chunk_partial))(real *restrict partial, const real *restrict a,
                                 const real *restrict b, const real *restrict y, int64_t n);
typedef void (*R(chunk_vjp))(real *out, const real *g, const real *restrict a,
                             const real *restrict b, const real *restrict y, int64_t n);
typedef real (*R(binary_fn))(real a, real b);
typedef real (*R(binary_partial))(real a, real b, real y);
typedef bool (*R(test_fn))(real x);
typedef bool (*R(compare_fn))(real a, real b);

/* out = f(x) */
MG_INLINE void R(unary_loop)(void *out, const void *const *in, int64_t n, R(unary_fn) f) {
    real *restrict o = out;
    const real *restrict x = in[0];
    nditer_full_vectors(n, sizeof(real));
    MG_APART
    for (int64_t i = 0; i < n; i++) o[i] = f(x[i]);
}

/* out = g * partial; in: g, x, y. An upstream gradient of exactly zero is never multiplied by a
 * pole. */
MG_INLINE void R(unary_vjp_loop)(void *out, const void *const *in, int64_t n, R(unary_partial) d) {
    real *o = out; /* may be g itself */
    const real *g = in[0], *restrict x = in[1], *restrict y = in[2];
    nditer_full_vectors(n, sizeof(real));
    MG_APART
    for (int64_t i = 0; i < n; i++) {
        real partial = d(x[i], y[i]);
        o[i] = g[i] == 0 ? 0 : g[i] * partial;
    }
}

#if MG_HAS_OVER
/* The same with sign times the inverse, or the inverse root, of the value of d. */
MG_INLINE void R(over_vjp_loop)(void *out, const void *const *in, int64_t n, vec (*d)(vec x, vec y),
                                vec (*inverse)(vec), real sign) {
    real *o = out; /* may be g itself */
    const real *g = in[0], *restrict x = in[1], *restrict y = in[2];
    nditer_full_vectors(n, sizeof(real));
    for (int64_t i = 0; i < n; i += LANES) {
        vec partial = inverse(d(v_load(x + i), v_load(y + i)));
        v_store(o + i, R(v_times)(v_load(g + i), sign * partial));
    }
}
#endif

MG_INLINE void R(binary_loop)(void *out, const void *const *in, int64_t n, R(binary_fn) f) {
    real *restrict o = out;
    const real *restrict a = in[0], *restrict b = in[1];
    nditer_full_vectors(n, sizeof(real));
    MG_APART
    for (int64_t i = 0; i < n; i++) o[i] = f(a[i], b[i]);
}

/* in: g, a, b, y */
MG_INLINE void R(binary_vjp_loop)(void *out, const void *const *in, int64_t n, R(binary_partial) d) {
    real *o = out; /* may be g itself */
    const real *g = in[0], *restrict a = in[1], *restrict b = in[2], *restrict y = in[3];
    nditer_full_vectors(n, sizeof(real));
    MG_APART
    for (int64_t i = 0; i < n; i++) {
        real partial = d(a[i], b[i], y[i]);
        o[i] = g[i] == 0 ? 0 : g[i] * partial;
    }
}

/* o = g * sign * partial; o may be g */
static MG_NOINLINE void R(scale_loop)(real *o, const real *g, const real *restrict partial, int64_t n,
                                      real sign) {
    nditer_full_vectors(n, sizeof(real));
    MG_APART
    for (int64_t i = 0; i < n; i++) o[i] = g[i] == 0 ? 0 : g[i] * (sign * partial[i]);
}

/* The same with the partial from a function of chunks, times a sign. */
MG_INLINE void R(pair_vjp_loop)(void *out, const void *const *in, int64_t n, R(chunk_fn) d,
                                real sign) {
    real partial[NDITER_CHUNK];
    real *o = out; /* may be g itself */
    const real *g = in[0], *restrict x = in[1];
    for (int64_t at = 0; at < n; at += NDITER_CHUNK) {
        int64_t m = mg_min(NDITER_CHUNK, n - at);
        d(partial, x + at, m);
        R(scale_loop)(o + at, g + at, partial, m, sign);
    }
}

/* in: g, a, b, y */
MG_INLINE void R(pair_vjp_loop_2)(void *out, const void *const *in, int64_t n, R(chunk_partial) d) {
    real partial[NDITER_CHUNK];
    real *o = out; /* may be g itself */
    const real *g = in[0], *restrict a = in[1], *restrict b = in[2], *restrict y = in[3];
    for (int64_t at = 0; at < n; at += NDITER_CHUNK) {
        int64_t m = mg_min(NDITER_CHUNK, n - at);
        d(partial, a + at, b + at, y + at, m);
        R(scale_loop)(o + at, g + at, partial, m, ONE);
    }
}

/* A chunk at a time, by a function that multiplies by the gradient itself. */
MG_INLINE void R(chunk_vjp_loop)(void *out, const void *const *in, int64_t n, R(chunk_vjp) d) {
    real *o = out; /* may be g itself */
    const real *g = in[0], *restrict a = in[1], *restrict b = in[2], *restrict y = in[3];
    for (int64_t at = 0; at < n; at += NDITER_CHUNK)
        d(o + at, g + at, a + at, b + at, y + at, mg_min(NDITER_CHUNK, n - at));
}

MG_INLINE void R(test_loop)(void *out, const void *const *in, int64_t n, R(test_fn) f) {
    uint8_t *restrict o = out;
    const real *restrict x = in[0];
    nditer_full_vectors(n, sizeof *o);
    MG_APART
    for (int64_t i = 0; i < n; i++) o[i] = f(x[i]);
}

MG_INLINE void R(compare_loop)(void *out, const void *const *in, int64_t n, R(compare_fn) f) {
    uint8_t *restrict o = out;
    const real *restrict a = in[0], *restrict b = in[1];
    nditer_full_vectors(n, sizeof *o);
    MG_APART
    for (int64_t i = 0; i < n; i++) o[i] = f(a[i], b[i]);
}

/* ---- long functions, and chunks of them ---- */

/* A step is two vectors, which compilers interleave. n is a multiple of the step, as in every
 * kernel. */
#define BLOCK (2 * LANES)
MG_INLINE void R(long_loop)(real *restrict out, const real *restrict x, int64_t n, R(unary_fn) f) {
    for (int64_t at = 0; at < n; at += BLOCK)
        MG_APART
        for (int i = 0; i < BLOCK; i++) out[at + i] = f(x[at + i]);
}
MG_INLINE void R(long_loop_2)(real *restrict out, const real *restrict a, const real *restrict b,
                              int64_t n, R(binary_fn) f) {
    for (int64_t at = 0; at < n; at += BLOCK)
        MG_APART
        for (int i = 0; i < BLOCK; i++) out[at + i] = f(a[at + i], b[at + i]);
}

#define LONG_UNARY(name)                                                                           \
    static void R(v_##name##_chunk)(real *restrict out, const real *restrict x, int64_t n) {       \
        R(long_loop)(out, x, n, R(v_##name));                                                      \
    }
#define LONG_BINARY(name)                                                                          \
    static void R(v_##name##_chunk)(real *restrict out, const real *restrict a,                    \
                                    const real *restrict b, int64_t n) {                           \
        R(long_loop_2)(out, a, b, n, R(v_##name));                                                 \
    }
LONG_UNARY(cbrt)
LONG_UNARY(asinh)
LONG_UNARY(acosh)
LONG_UNARY(atanh)
LONG_UNARY(sinc)
LONG_BINARY(hypot)

/* Float functions that are computed in double, as short polynomials would show where terms cancel.
 * They use the double versions, which need not exist twice. Error 0.500, both, over two million
 * pairs, normally distributed with deviations from 0.1 to 300. */
#if ELEMENTWISE_WIDTH == 32
typedef void (*doubles_fn)(double *restrict out, const double *restrict a, const double *restrict b,
                           int64_t n);
static MG_NOINLINE void by_doubles(float *restrict out, const float *restrict a,
                                   const float *restrict b, int64_t n, doubles_fn f) {
    double x[NDITER_CHUNK], y[NDITER_CHUNK], z[NDITER_CHUNK];
    for (int64_t at = 0; at < n; at += NDITER_CHUNK) {
        int64_t m = mg_min(NDITER_CHUNK, n - at);
        nditer_full_vectors(m, sizeof(real));
        MG_APART
        for (int64_t i = 0; i < m; i++) x[i] = (double)a[at + i];
        MG_APART
        for (int64_t i = 0; i < m; i++) y[i] = (double)b[at + i];
        f(z, x, y, m);
        MG_APART
        for (int64_t i = 0; i < m; i++) out[at + i] = (float)z[i];
    }
}
#define AS_DOUBLES_BINARY(name)                                                                    \
    static void v_##name##_chunk_f64(double *restrict out, const double *restrict a,               \
                                     const double *restrict b, int64_t n);                         \
    static void v_##name##_chunk_f32(float *restrict out, const float *restrict a,                 \
                                     const float *restrict b, int64_t n) {                         \
        by_doubles(out, a, b, n, v_##name##_chunk_f64);                                            \
    }
#else
#define AS_DOUBLES_BINARY(name) LONG_BINARY(name)
#endif
AS_DOUBLES_BINARY(logaddexp)
AS_DOUBLES_BINARY(logaddexp2)
#undef AS_DOUBLES_BINARY

/* Functions whose formula depends on the argument, one number at a time. */
#define SCALAR_UNARY(name)                                                                         \
    static void R(v_##name##_chunk)(real *restrict out, const real *restrict x, int64_t n) {       \
        for (int64_t i = 0; i < n; i++) out[i] = R(v_##name)(x[i]);                                \
    }
SCALAR_UNARY(log_ndtr)
SCALAR_UNARY(erfcx)
SCALAR_UNARY(erfinv)
SCALAR_UNARY(lgamma)
SCALAR_UNARY(digamma)
SCALAR_UNARY(trigamma)
SCALAR_UNARY(i0)
SCALAR_UNARY(i0e)
SCALAR_UNARY(i1)
SCALAR_UNARY(i1e)
static void R(v_nextafter_chunk)(real *restrict out, const real *restrict a, const real *restrict b,
                                 int64_t n) {
    nditer_full_vectors(n, sizeof(real));
    MG_APART
    for (int64_t i = 0; i < n; i++) out[i] = R(v_nextafter)(a[i], b[i]);
}

/* ---- built from functions of a chunk ---------- */

/* a's share of e^a + e^b. It is one half if both are equal, also for +inf, and 0 if both are
 * -inf. */
static void R(logaddexp_by_a_chunk)(real *restrict partial, const real *restrict a,
                                    const real *restrict b, const real *restrict y, int64_t n) {
    real more[NDITER_CHUNK];
    more[0] = 0; /* n is not 0, but the compiler does not know that and warns */
    nditer_full_vectors(n, sizeof(real));
    MG_APART
    for (int64_t i = 0; i < n; i++) more[i] = a[i] == b[i] ? 0 : a[i] - b[i];
    R(v_sigmoid_chunk)(partial, more, n);
    MG_APART
    for (int64_t i = 0; i < n; i++) partial[i] = y[i] == -(real)V_INF_F32 ? 0 : partial[i];
}
static void R(logaddexp_by_b_chunk)(real *restrict partial, const real *restrict a,
                                    const real *restrict b, const real *restrict y, int64_t n) {
    R(logaddexp_by_a_chunk)(partial, b, a, y, n);
}

/* out holds the logarithm of b, or of 1 + b. */
static void R(times_log)(real *restrict out, const real *restrict a, const real *restrict b,
                         int64_t n) {
    nditer_full_vectors(n, sizeof(real));
    MG_APART
    for (int64_t i = 0; i < n; i++) out[i] = a[i] == 0 && b[i] == b[i] ? 0 : a[i] * out[i];
}
static void R(v_xlogy_chunk)(real *restrict out, const real *restrict a, const real *restrict b,
                             int64_t n) {
    R(v_log_chunk)(out, b, n);
    R(times_log)(out, a, b, n);
}
static void R(v_xlog1py_chunk)(real *restrict out, const real *restrict a, const real *restrict b,
                               int64_t n) {
    R(v_log1p_chunk)(out, b, n);
    R(times_log)(out, a, b, n);
}
/* At (0, 0) the function is 0, and so is its partial, although log 0 is infinite. */
static void R(xlogy_by_a_chunk)(real *restrict partial, const real *restrict a,
                                const real *restrict b, const real *restrict y, int64_t n) {
    (void)y;
    R(v_log_chunk)(partial, b, n);
    nditer_full_vectors(n, sizeof(real));
    MG_APART
    for (int64_t i = 0; i < n; i++) partial[i] = a[i] == 0 && b[i] <= 0 ? 0 : partial[i];
}
static void R(xlogy_by_b_chunk)(real *restrict partial, const real *restrict a,
                                const real *restrict b, const real *restrict y, int64_t n) {
    (void)y;
    nditer_full_vectors(n, sizeof(real));
    MG_APART
    for (int64_t i = 0; i < n; i++) partial[i] = a[i] == 0 ? 0 : a[i] / b[i];
}

static void R(atan2_by_a_chunk)(real *out, const real *g, const real *restrict a,
                                const real *restrict b, const real *restrict y, int64_t n) {
    (void)y;
    R(v_angle_vjp_chunk)(out, g, a, b, n, 1);
}
static void R(atan2_by_b_chunk)(real *out, const real *g, const real *restrict a,
                                const real *restrict b, const real *restrict y, int64_t n) {
    (void)y;
    R(v_angle_vjp_chunk)(out, g, b, a, n, -1);
}

static void R(v_entr_chunk)(real *restrict out, const real *restrict x, int64_t n) {
    R(v_log_chunk)(out, x, n);
    nditer_full_vectors(n, sizeof(real));
    MG_APART
    for (int64_t i = 0; i < n; i++) {
        real y = x[i] == (real)V_INF_F32 ? -x[i] : -x[i] * out[i];
        out[i] = x[i] == 0 ? 0 : x[i] < 0 ? -(real)V_INF_F32 : y;
    }
}
static void R(v_entr_partial_chunk)(real *restrict out, const real *restrict x, int64_t n) {
    R(v_log_chunk)(out, x, n);
    nditer_full_vectors(n, sizeof(real));
    MG_APART
    for (int64_t i = 0; i < n; i++) out[i] = -ONE - out[i];
}

/* The partial b a^(b-1). Its magnitude is computed from the square root h of a power. If |a| < 1/2:
 * h b h, with h^2 = |a|^(b-1). Else: h / |a| b h, with h^2 = |a|^b, as b - 1 would lose digits.
 * Factors near the ends of the range are thus multiplied last. x^0 is constant, so 0 * x^-1 must
 * not be formed. */
static MG_NOINLINE void R(pow_by_any_base)(real *restrict partial, const real *restrict a,
                                           const real *restrict b, const real *restrict y,
                                           int64_t n) {
    real size[NDITER_CHUNK], half[NDITER_CHUNK], root[NDITER_CHUNK];
    nditer_full_vectors(n, sizeof(real));
    MG_APART
    for (int64_t i = 0; i < n; i++) half[i] = b[i] - 1;
    R(v_pow_chunk)(partial, a, half, n);
    MG_APART
    for (int64_t i = 0; i < n; i++) {
        size[i] = v_abs(a[i]);
        half[i] = (size[i] < HALF ? half[i] : b[i]) * HALF;
    }
    R(v_pow_chunk)(root, size, half, n);
    MG_APART
    for (int64_t i = 0; i < n; i++) {
        real h = root[i], rough = b[i] * partial[i];
        real exact = h / (size[i] < HALF ? 1 : size[i]) * b[i] * h;
        exact = ((rough == rough) & (exact == exact)) ? v_copysign(exact, rough) : rough;
        /* b - 1, rounded, may be even although b is, or an integer although b is none. */
        bool negative = (a[i] < 0) & (size[i] < (real)V_INF_F32) & (v_abs(b[i]) < (real)V_INF_F32);
        real sign = R(v_signbit)(y[i]) ? b[i] : -b[i];
        exact = negative ? y[i] == y[i] ? v_copysign(exact, sign) : y[i] : exact;
        partial[i] = b[i] == 0 ? 0 : exact;
    }
}
/* b y / a; at a = 0 the value of a^(b-1), for b > 0. */
MG_INLINE real R(pow_by_base)(real a, real b, real y) {
    real at_zero = b > 1 ? 0 : b < 1 ? (real)V_INF_F32 : 1;
    return b == 0 ? 0 : y == 0 ? at_zero : b * y / a;
}
/* The first bit is set where that formula fails: b y is not finite, or y is not normal and so lacks
 * digits. A power of 0 that is 0 is no failure. */
MG_INLINE R(one_bits) R(pow_outside)(real a, real b, real y) {
    const R(one_bits) first = R(v_bits)(BY_WIDTH(0x1p-126, 0x1p-1022));
    const R(one_bits) last = R(v_bits)((real)V_INF_F32) - 1;
    R(one_bits) small = a == 0 ? 0 : R(v_bits)(v_abs(y)) - first;
    return small | (last - R(v_bits)(v_abs(b * y)));
}
static MG_NOINLINE void R(pow_by_base_unit)(real *out, const real *g, const real *restrict a,
                                            const real *restrict b, const real *restrict y) {
    enum { UNIT = 4 * LANES };
    const R(one_bits) first_bit = (R(one_bits))1 << (8 * sizeof(real) - 1);
    real partial[UNIT];
    R(one_bits) outside = 0;
    MG_APART
    for (int i = 0; i < UNIT; i++) outside |= R(pow_outside)(a[i], b[i], y[i]);
    bool any = outside & first_bit;
    if (any) R(pow_by_any_base)(partial, a, b, y, UNIT);
    if (any)
        MG_APART
        for (int i = 0; i < UNIT; i++)
            partial[i] = R(pow_outside)(a[i], b[i], y[i]) & first_bit
                             ? partial[i]
                             : R(pow_by_base)(a[i], b[i], y[i]);
    else
        MG_APART
        for (int i = 0; i < UNIT; i++) partial[i] = R(pow_by_base)(a[i], b[i], y[i]);
    MG_APART
    for (int i = 0; i < UNIT; i++) out[i] = g[i] == 0 ? 0 : g[i] * partial[i];
}
/* A power of 0 hides the pole of its logarithm. At 0^0 the one-sided derivative is 0. */
static MG_NOINLINE void R(pow_by_exponent_unit)(real *out, const real *g, const real *restrict a,
                                                const real *restrict b, const real *restrict y,
                                                const real *restrict log) {
    real partial[4 * LANES];
    MG_APART
    for (int i = 0; i < 4 * LANES; i++) {
        bool pole = ((y[i] == 0) & (a[i] >= 0)) | ((a[i] == 0) & (b[i] == 0));
        partial[i] = pole ? 0 : y[i] * log[i];
    }
    MG_APART
    for (int i = 0; i < 4 * LANES; i++) out[i] = g[i] == 0 ? 0 : g[i] * partial[i];
}
/* Both have a faster way for nearly all units. Nothing is written before it is known to be right,
 * as out may be g. */
static MG_NOINLINE void R(pow_by_base_chunk)(real *out, const real *g, const real *restrict a,
                                             const real *restrict b, const real *restrict y,
                                             int64_t n) {
    for (int64_t at = 0; at < n; at += 4 * LANES) {
        bool right = MG_HAS_WIDE;
#if MG_HAS_WIDE
        R(wide) made[4 / WIDE_VECTORS];
        MG_UNROLL
        for (int w = 0; w < 4 / WIDE_VECTORS; w++) {
            int64_t i = at + w * WIDE_VECTORS * LANES;
            bool these;
            R(wide) partial = R(w_pow_base_partial)(R(w_load)(a + i), R(w_load)(b + i),
                                                R(w_load)(y + i), &these);
            made[w] = R(w_times_partial)(R(w_load)(g + i), partial);
            right &= these;
        }
        MG_UNROLL
        for (int w = 0; right && w < 4 / WIDE_VECTORS; w++)
            R(w_store)(out + at + w * WIDE_VECTORS * LANES, made[w]);
#endif
        if (MG_UNLIKELY(!right)) R(pow_by_base_unit)(out + at, g + at, a + at, b + at, y + at);
    }
}
static void R(pow_by_exponent_chunk)(real *out, const real *g, const real *restrict a,
                                     const real *restrict b, const real *restrict y, int64_t n) {
    real log[NDITER_CHUNK];
    R(v_log_chunk)(log, a, n);
    for (int64_t at = 0; at < n; at += 4 * LANES) {
        bool right = MG_HAS_WIDE; /* no logarithm is infinite or NaN */
#if MG_HAS_WIDE
        R(wide) made[4 / WIDE_VECTORS];
        MG_UNROLL
        for (int w = 0; w < 4 / WIDE_VECTORS; w++) {
            int64_t i = at + w * WIDE_VECTORS * LANES;
            R(wide) l = R(w_load)(log + i), partial = R(w_times_partial)(R(w_load)(y + i), l);
            made[w] = R(w_times_partial)(R(w_load)(g + i), partial);
            right &= R(w_within_bits)(R(w_abs)(l), 0, R(v_bits)((real)V_INF_F32));
        }
        MG_UNROLL
        for (int w = 0; right && w < 4 / WIDE_VECTORS; w++)
            R(w_store)(out + at + w * WIDE_VECTORS * LANES, made[w]);
#endif
        if (MG_UNLIKELY(!right))
            R(pow_by_exponent_unit)(out + at, g + at, a + at, b + at, y + at, log + at);
    }
}

/* ---- a function and a kernel for every row ---- */

#define ROW_ARGUMENTS void *out, const void *const *in, int64_t n
#define UNARY(name, forward, by_x)                                                                 \
    UNARY_FORWARD(name, forward)                                                                   \
    UNARY_VJP(name, by_x)
#define UNARY_CHUNK(name, forward, by_x)                                                           \
    UNARY_FORWARD_CHUNK(name, forward)                                                             \
    UNARY_VJP(name, by_x)
#define UNARY_PAIR(name, forward, sign, by_x)                                                      \
    UNARY_FORWARD_CHUNK(name, forward)                                                             \
    static void R(name##_vjp)(ROW_ARGUMENTS) { R(pair_vjp_loop)(out, in, n, R(by_x), sign); }
#define UNARY_RESULT(name, forward, by_x)                                                          \
    UNARY_FORWARD_CHUNK(name, forward)                                                             \
    static void R(name##_vjp)(ROW_ARGUMENTS) {                                                     \
        R(by_x)(out, in[0], in[1], in[2], n);                                                      \
    }
#define OVER_VJP(name, d, inverse, sign)                                                           \
    MG_INLINE vec R(name##_d)(vec x, vec y) { (void)x, (void)y; return d; }                        \
    static void R(name##_vjp)(ROW_ARGUMENTS) {                                                     \
        R(over_vjp_loop)(out, in, n, R(name##_d), inverse, sign);                                  \
    }
/* floats are divided as fast, whatever other work there is */
#if MG_HAS_OVER && ELEMENTWISE_WIDTH == 64
#define UNARY_OVER(name, forward, d)                                                               \
    UNARY_FORWARD_CHUNK(name, forward)                                                             \
    OVER_VJP(name, d, R(v_over), ONE)
#else
#define UNARY_OVER(name, forward, d) UNARY_CHUNK(name, forward, ONE / (d))
#endif
#if MG_HAS_OVER
#define UNARY_ROOT_ABOVE(name, forward)                                                            \
    UNARY_FORWARD_CHUNK(name, forward)                                                             \
    OVER_VJP(name, y, R(v_root_above), ONE)
#define UNARY_OVER_ROOT(name, forward, sign, d)                                                    \
    UNARY_FORWARD_CHUNK(name, forward)                                                             \
    OVER_VJP(name, d, R(v_over_root), sign)
#else
#define UNARY_ROOT_ABOVE(name, forward) UNARY_CHUNK(name, forward, r_root_above(y))
#define UNARY_OVER_ROOT(name, forward, sign, d) UNARY_CHUNK(name, forward, sign / v_sqrt(d))
#endif
#define UNARY_FORWARD(name, forward)                                                               \
    MG_INLINE real R(name##_f)(real x) { return forward; }                                         \
    static void R(name##_kernel)(ROW_ARGUMENTS) { R(unary_loop)(out, in, n, R(name##_f)); }
#define UNARY_FORWARD_CHUNK(name, forward)                                                         \
    static void R(name##_kernel)(ROW_ARGUMENTS) { R(forward)(out, in[0], n); }
#define UNARY_VJP(name, by_x)                                                                      \
    MG_INLINE real R(name##_d)(real x, real y) { (void)x, (void)y; return by_x; }                  \
    static void R(name##_vjp)(ROW_ARGUMENTS) { R(unary_vjp_loop)(out, in, n, R(name##_d)); }
#define BINARY(name, forward, by_a, by_b)                                                          \
    BINARY_FORWARD(name, forward)                                                                  \
    BINARY_VJP(name, by_a, by_b)
#define BINARY_CHUNK(name, forward, by_a, by_b)                                                    \
    BINARY_FORWARD_CHUNK(name, forward)                                                            \
    BINARY_VJP(name, by_a, by_b)
#define BINARY_PAIR(name, forward, by_a, by_b)                                                     \
    BINARY_FORWARD_CHUNK(name, forward)                                                            \
    static void R(name##_vjp_a)(ROW_ARGUMENTS) { R(pair_vjp_loop_2)(out, in, n, R(by_a)); }        \
    static void R(name##_vjp_b)(ROW_ARGUMENTS) { R(pair_vjp_loop_2)(out, in, n, R(by_b)); }
#define BINARY_RESULT(name, forward, by_a, by_b)                                                   \
    BINARY_FORWARD_CHUNK(name, forward)                                                            \
    static void R(name##_vjp_a)(ROW_ARGUMENTS) { R(chunk_vjp_loop)(out, in, n, R(by_a)); }         \
    static void R(name##_vjp_b)(ROW_ARGUMENTS) { R(chunk_vjp_loop)(out, in, n, R(by_b)); }
#define BINARY_FORWARD(name, forward)                                                              \
    MG_INLINE real R(name##_f)(real a, real b) { return forward; }                                 \
    static void R(name##_kernel)(ROW_ARGUMENTS) { R(binary_loop)(out, in, n, R(name##_f)); }
#define BINARY_FORWARD_CHUNK(name, forward)                                                        \
    static void R(name##_kernel)(ROW_ARGUMENTS) { R(forward)(out, in[0], in[1], n); }
#define BINARY_VJP(name, by_a, by_b)                                                               \
    MG_INLINE real R(name##_da)(real a, real b, real y) { (void)a, (void)b, (void)y; return by_a; } \
    MG_INLINE real R(name##_db)(real a, real b, real y) { (void)a, (void)b, (void)y; return by_b; } \
    static void R(name##_vjp_a)(ROW_ARGUMENTS) { R(binary_vjp_loop)(out, in, n, R(name##_da)); }   \
    static void R(name##_vjp_b)(ROW_ARGUMENTS) { R(binary_vjp_loop)(out, in, n, R(name##_db)); }
#define TEST(name, expression)                                                                     \
    MG_INLINE bool R(name##_f)(real x) { return expression; }                                      \
    static void R(name##_kernel)(ROW_ARGUMENTS) { R(test_loop)(out, in, n, R(name##_f)); }
#define COMPARE(name, expression)                                                                  \
    MG_INLINE bool R(name##_f)(real a, real b) { return expression; }                              \
    static void R(name##_kernel)(ROW_ARGUMENTS) { R(compare_loop)(out, in, n, R(name##_f)); }
#include "elementwise.def"
/* The partial by the base if the power was not saved: `make` recomputes it; in: g, a, b */
MG_INLINE void R(pow_vjp_alone_loop)(ROW_ARGUMENTS, R(chunk_pair) make) {
    real power[NDITER_CHUNK];
    real *o = out; /* may be g itself */
    const real *g = in[0], *restrict a = in[1], *restrict b = in[2];
    for (int64_t at = 0; at < n; at += NDITER_CHUNK) {
        int64_t m = mg_min(NDITER_CHUNK, n - at);
        make(power, a + at, b + at, m);
        R(pow_by_base_chunk)(o + at, g + at, a + at, b + at, power, m);
    }
}
static void R(pow_vjp_alone)(ROW_ARGUMENTS) { R(pow_vjp_alone_loop)(out, in, n, R(v_pow_chunk)); }

#if MG_HAS_FMA
/* Powers by Python scalars, as exact as pow, which needs fused multiply-adds. In x^2 x, the
 * rounding error of x^2 is added. Roots differ from powers only at -0 and -inf. */
MG_INLINE real R(cube)(real x) {
    real square = x * x, rest = -R(v_residual)(x, x, square), plain = square * x;
    real better = R(fma)(square, x, rest * x);
    /* the sign of 0 may be lost */
    return v_copysign(v_abs(plain) < (real)V_INF_F32 ? better : plain, x);
}
static void R(cube_kernel)(ROW_ARGUMENTS) { R(unary_loop)(out, in, n, R(cube)); }
MG_INLINE real R(cube_partial)(real x, real y) {
    (void)y;
    return 3 * (x * x);
}
static void R(cube_vjp_alone)(ROW_ARGUMENTS) { R(unary_vjp_loop)(out, in, n, R(cube_partial)); }

static void R(half_power_chunk)(real *restrict out, const real *restrict a, const real *restrict b,
                                int64_t n) {
    (void)b;
    R(v_sqrt_chunk)(out, a, n);
    nditer_full_vectors(n, sizeof(real));
    MG_APART
    for (int64_t i = 0; i < n; i++) out[i] = v_abs(a[i]) == (real)V_INF_F32 ? v_abs(a[i]) : out[i] + 0;
}
static void R(less_half_power_chunk)(real *restrict out, const real *restrict a,
                                     const real *restrict b, int64_t n) {
    (void)b;
    R(v_rsqrt_chunk)(out, a, n);
    nditer_full_vectors(n, sizeof(real));
    MG_APART
    for (int64_t i = 0; i < n; i++)
        out[i] = v_abs(a[i]) == (real)V_INF_F32 ? 0 : a[i] == 0 ? (real)V_INF_F32 : out[i];
}
#define POWER(name)                                                                                \
    static void R(name##_kernel)(ROW_ARGUMENTS) { R(name##_chunk)(out, in[0], in[1], n); }         \
    static void R(name##_vjp_alone)(ROW_ARGUMENTS) {                                               \
        R(pow_vjp_alone_loop)(out, in, n, R(name##_chunk));                                        \
    }
POWER(half_power)
POWER(less_half_power)
#undef POWER
#endif

/* in: x, low, high. The bounds are applied in this order, so if they cross, the upper bound counts.
 * In one loop the compiler would read `high` only conditionally, and not vectorise. */
static void R(clamp)(ROW_ARGUMENTS) {
    real *restrict o = out;
    const real *restrict x = in[0], *restrict low = in[1], *restrict high = in[2];
    nditer_full_vectors(n, sizeof(real));
    MG_APART
    for (int64_t i = 0; i < n; i++) o[i] = r_maximum(x[i], low[i]);
    MG_APART
    for (int64_t i = 0; i < n; i++) o[i] = r_minimum(o[i], high[i]);
}

/* ---- fused operations ------ */

/* The loops of mg_fused. Numbers come as arrays of equal elements. Each comment lists the operands
 * in `in`. */
#define MIXED_ARGUMENTS void *out, const void *const *in, int64_t n

MG_INLINE real R(mixed_product)(real a, real b) { return a == 0 ? 0 : a * b; }
MG_INLINE bool R(is_between)(real x, real low, real high) { return (x >= low) & (x <= high); }
MG_INLINE bool R(is_beyond)(real x, real low, real high) { return (x <= low) | (x >= high); }

/* x, low, high, value, shift: the value for x from low to high. Beyond, x is moved towards 0 by the
 * shift. That gives soft shrink, hard shrink and threshold. */
static void R(shrink)(MIXED_ARGUMENTS) {
    real *restrict o = out;
    const real *restrict x = in[0], *restrict low = in[1], *restrict high = in[2];
    const real *restrict value = in[3], *restrict shift = in[4];
    nditer_full_vectors(n, sizeof(real));
    MG_APART
    for (int64_t i = 0; i < n; i++) {
        real flat = value[i], beyond = v_copysign(v_abs(x[i]) - shift[i], x[i]);
        o[i] = R(is_between)(x[i], low[i], high[i]) ? flat : beyond;
    }
}
/* g, x, low, high; NaN counts as beyond */
static void R(shrink_vjp)(MIXED_ARGUMENTS) {
    real *restrict o = out;
    const real *restrict g = in[0], *restrict x = in[1], *restrict low = in[2], *restrict high = in[3];
    nditer_full_vectors(n, sizeof(real));
    MG_APART
    for (int64_t i = 0; i < n; i++) {
        real passed = g[i];
        o[i] = R(is_between)(x[i], low[i], high[i]) ? 0 : passed;
    }
}
/* g, x, low, high: the derivative of hardtanh, 0 on the bounds too. */
static void R(hardtanh_vjp)(MIXED_ARGUMENTS) {
    real *restrict o = out;
    const real *restrict g = in[0], *restrict x = in[1], *restrict low = in[2], *restrict high = in[3];
    nditer_full_vectors(n, sizeof(real));
    MG_APART
    for (int64_t i = 0; i < n; i++) {
        real passed = g[i];
        o[i] = R(is_beyond)(x[i], low[i], high[i]) ? 0 : passed;
    }
}
/* g, x, low, high: the derivative of clamp, 1 on the bounds, and 0 at NaN. */
static void R(clamp_vjp)(MIXED_ARGUMENTS) {
    real *restrict o = out;
    const real *restrict g = in[0], *restrict x = in[1], *restrict low = in[2], *restrict high = in[3];
    nditer_full_vectors(n, sizeof(real));
    MG_APART
    for (int64_t i = 0; i < n; i++) {
        real passed = g[i];
        o[i] = R(is_between)(x[i], low[i], high[i]) ? passed : 0;
    }
}

/* x, height, width, gain: height (e^(x / width) - 1) below 0, and gain x above. */
static void R(elu)(MIXED_ARGUMENTS) {
    real part[NDITER_CHUNK], curve[NDITER_CHUNK];
    for (int64_t at = 0, m; at < n; at += m) {
        real *restrict o = (real *)out + at;
        const real *restrict x = (const real *)in[0] + at, *restrict height = (const real *)in[1] + at;
        const real *restrict width = (const real *)in[2] + at;
        const real *restrict gain = (const real *)in[3] + at;
        m = mg_min(n - at, NDITER_CHUNK);
        nditer_full_vectors(m, sizeof(real));
        MG_APART
        for (int64_t i = 0; i < m; i++) part[i] = (x[i] < 0 ? x[i] : 0) / width[i];
        R(expm1_kernel)(curve, (const void *[]){part}, m);
        MG_APART
        for (int64_t i = 0; i < m; i++) {
            real below = curve[i] * height[i], line = x[i] * gain[i];
            o[i] = x[i] < 0 ? below : line;
        }
    }
}
/* g, x, height, width, gain: the derivative at 0 is that below 0. */
static void R(elu_vjp)(MIXED_ARGUMENTS) {
    real part[NDITER_CHUNK], curve[NDITER_CHUNK];
    for (int64_t at = 0, m; at < n; at += m) {
        real *restrict o = (real *)out + at;
        const real *restrict g = (const real *)in[0] + at, *restrict x = (const real *)in[1] + at;
        const real *restrict height = (const real *)in[2] + at;
        const real *restrict width = (const real *)in[3] + at, *restrict gain = (const real *)in[4] + at;
        m = mg_min(n - at, NDITER_CHUNK);
        nditer_full_vectors(m, sizeof(real));
        MG_APART
        for (int64_t i = 0; i < m; i++) part[i] = (x[i] < 0 ? x[i] : 0) / width[i];
        R(exp_kernel)(curve, (const void *[]){part}, m);
        MG_APART
        for (int64_t i = 0; i < m; i++) {
            real below = curve[i] * (height[i] / width[i]), line = gain[i];
            o[i] = R(mixed_product)(g[i], x[i] <= 0 ? below : line);
        }
    }
}

/* x, t, bound, square, line; with d = x - t: square d^2, or from the bound on line (|d| - bound /
 * 2). */
static void R(huber)(MIXED_ARGUMENTS) {
    real *restrict o = out;
    const real *restrict x = in[0], *restrict t = in[1], *restrict bound = in[2];
    const real *restrict square = in[3], *restrict line = in[4];
    nditer_full_vectors(n, sizeof(real));
    MG_APART
    for (int64_t i = 0; i < n; i++) {
        real size = v_abs(x[i] - t[i]), near = size * size * square[i];
        real far = (size - HALF * bound[i]) * line[i];
        o[i] = size < bound[i] ? near : far;
    }
}
/* g, x, t, 2 square, line */
static void R(huber_vjp)(MIXED_ARGUMENTS) {
    real *restrict o = out;
    const real *restrict g = in[0], *restrict x = in[1], *restrict t = in[2];
    const real *restrict twice = in[3], *restrict line = in[4];
    nditer_full_vectors(n, sizeof(real));
    MG_APART
    for (int64_t i = 0; i < n; i++) {
        real partial = twice[i] * (x[i] - t[i]), most = line[i];
        o[i] = R(mixed_product)(g[i], r_bounded(partial, -most, most));
    }
}

/* x, t: the cross entropy of a probability x with target t. Each logarithm is at least -100. NaN if
 * the target is no probability. */
static void R(entropy)(MIXED_ARGUMENTS) {
    real rest[NDITER_CHUNK], yes[NDITER_CHUNK], no[NDITER_CHUNK];
    for (int64_t at = 0, m; at < n; at += m) {
        real *restrict o = (real *)out + at;
        const real *restrict x = (const real *)in[0] + at, *restrict t = (const real *)in[1] + at;
        m = mg_min(n - at, NDITER_CHUNK);
        nditer_full_vectors(m, sizeof(real));
        MG_APART
        for (int64_t i = 0; i < m; i++) rest[i] = -x[i];
        R(log_kernel)(yes, (const void *[]){x}, m);
        R(log1p_kernel)(no, (const void *[]){rest}, m);
        MG_APART
        for (int64_t i = 0; i < m; i++) {
            real y = r_maximum(yes[i], -100), r = r_maximum(no[i], -100);
            real loss = -(t[i] * y + (1 - t[i]) * r);
            o[i] = (t[i] >= 0) & (t[i] <= 1) ? loss : REAL_C(__builtin_nanf(""));
        }
    }
}
/* g, x, t: by x, where the partials of the logarithms are at most 1e12. */
static void R(entropy_vjp)(MIXED_ARGUMENTS) {
    real *restrict o = out;
    const real *restrict g = in[0], *restrict x = in[1], *restrict t = in[2];
    nditer_full_vectors(n, sizeof(real));
    MG_APART
    for (int64_t i = 0; i < n; i++) {
        real y = r_maximum(x[i], REAL_C(1e-12)), r = r_maximum(1 - x[i], REAL_C(1e-12));
        o[i] = R(mixed_product)(g[i], (1 - t[i]) / r - t[i] / y);
    }
}

/* x, t, hits: (1 - t) softplus(x) + hits softplus(-x). A factor of 0 hides an infinite score. */
static void R(entropy_of_scores)(MIXED_ARGUMENTS) {
    real size[NDITER_CHUNK], both[NDITER_CHUNK];
    for (int64_t at = 0, m; at < n; at += m) {
        real *restrict o = (real *)out + at;
        const real *restrict x = (const real *)in[0] + at, *restrict t = (const real *)in[1] + at;
        const real *restrict hits = (const real *)in[2] + at;
        m = mg_min(n - at, NDITER_CHUNK);
        nditer_full_vectors(m, sizeof(real));
        MG_APART
        for (int64_t i = 0; i < m; i++) size[i] = -v_abs(x[i]);
        R(softplus_kernel)(both, (const void *[]){size}, m);
        MG_APART
        for (int64_t i = 0; i < m; i++) {
            real misses = 1 - t[i], h = hits[i], by = x[i] > 0 ? misses : h;
            o[i] = R(mixed_product)(misses + h, both[i]) + R(mixed_product)(by, v_abs(x[i]));
        }
    }
}
/* g, x, t, hits: by x. */
static void R(entropy_of_scores_vjp)(MIXED_ARGUMENTS) {
    real size[NDITER_CHUNK], e[NDITER_CHUNK];
    for (int64_t at = 0, m; at < n; at += m) {
        real *restrict o = (real *)out + at;
        const real *restrict g = (const real *)in[0] + at, *restrict x = (const real *)in[1] + at;
        const real *restrict t = (const real *)in[2] + at, *restrict hits = (const real *)in[3] + at;
        m = mg_min(n - at, NDITER_CHUNK);
        nditer_full_vectors(m, sizeof(real));
        MG_APART
        for (int64_t i = 0; i < m; i++) size[i] = -v_abs(x[i]);
        R(exp_kernel)(e, (const void *[]){size}, m);
        MG_APART
        for (int64_t i = 0; i < m; i++) {
            real misses = 1 - t[i], h = hits[i];
            real by = x[i] > 0 ? misses : h, other = x[i] > 0 ? h : misses;
            real partial = (by - other * e[i]) / (1 + e[i]); /* 1 / (1 + e) is the sigmoid of |x| */
            o[i] = R(mixed_product)(g[i], x[i] > 0 ? partial : -partial);
        }
    }
}
#undef MIXED_ARGUMENTS

#undef ROW_ARGUMENTS
#undef UNARY_VJP
#undef OVER_VJP
#undef BINARY_VJP
#undef LONG_UNARY
#undef LONG_BINARY
#undef SCALAR_UNARY
#undef BLOCK
#undef ONE
#undef HALF
#undef LN2
#undef LOG10E
#undef v_log
#undef v_floor
#undef v_ceil
#undef v_trunc
#undef v_round
#undef v_fmax
#undef v_fmin
#undef v_copysign
#undef r_isinf
#undef r_signbit
#undef r_sign
#undef v_abs
#undef v_sqrt
#undef r_maximum
#undef r_minimum
#undef r_maximum_by
#undef r_root_above
#undef r_bounded
#undef r_hard_gate
#undef r_softsign
#undef r_softsign_by
