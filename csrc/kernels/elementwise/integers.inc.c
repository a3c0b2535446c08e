/* integers.inc.c: the loops of elementwise.def for int64 and bool; a part of elementwise.c. */

MG_INLINE uint64_t u(int64_t x) { return (uint64_t)x; }

/* Divisors of 0 and negative exponents have been refused, but another thread may write them
 * meanwhile. The code below must then neither trap nor loop forever. */

/* Wraps around. */
static uint64_t i_pow(int64_t base, uint64_t exponent) {
    uint64_t power = 1, square = u(base);
    for (; exponent; exponent >>= 1, square *= square)
        if (exponent & 1) power *= square;
    return power;
}
/* True unless b is 0 or -1; the least integer has no quotient by -1. */
MG_INLINE bool i_divides(int64_t b) { return u(b) + 1 > 1; }
/* Rounds down like Python; a division by -1 wraps around. */
MG_INLINE int64_t i_floor_divide(int64_t a, int64_t b) {
    if (!i_divides(b)) return (int64_t)(u(a) * u(b));
    return a / b - (a % b != 0 && (a < 0) != (b < 0));
}
MG_INLINE int64_t i_fmod(int64_t a, int64_t b) { return i_divides(b) ? a % b : 0; }
MG_INLINE int64_t i_remainder(int64_t a, int64_t b) {
    int64_t r = i_fmod(a, b);
    return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

/* The tests of floats (isnan and others), on integers. */
#define r_isinf(x) ((void)(x), false)
#define r_signbit(x) ((x) < 0)
#define UNARY_INTEGER(name, TYPE, TO, expression)                                                  \
    static void name(void *out, const void *const *in, int64_t n) {                                \
        const TYPE *restrict vx = in[0];                                                           \
        nditer_full_vectors(n, sizeof(TO));                                                        \
        MG_APART for (int64_t i = 0; i < n; i++) {                                                 \
            TYPE x = vx[i];                                                                        \
            ((TO *restrict)out)[i] = (TO)(expression);                                             \
        }                                                                                          \
    }
#define BINARY_INTEGER(name, TYPE, TO, expression)                                                 \
    static void name(void *out, const void *const *in, int64_t n) {                                \
        const TYPE *restrict va = in[0], *restrict vb = in[1];                                     \
        nditer_full_vectors(n, sizeof(TO));                                                        \
        MG_APART for (int64_t i = 0; i < n; i++) {                                                 \
            TYPE a = va[i], b = vb[i];                                                             \
            ((TO *restrict)out)[i] = (TO)(expression);                                             \
        }                                                                                          \
    }
#define TEST(name, expression)                                                                     \
    UNARY_INTEGER(name##_kernel_i64, int64_t, uint8_t, expression)                                 \
    UNARY_INTEGER(name##_kernel_b8, int8_t, uint8_t, expression)
#define COMPARE(name, expression)                                                                  \
    BINARY_INTEGER(name##_kernel_i64, int64_t, uint8_t, expression)                                \
    BINARY_INTEGER(name##_kernel_b8, uint8_t, uint8_t, expression)
#define INT_UNARY(name, expression)                                                                \
    UNARY_INTEGER(name##_kernel_i64, int64_t, int64_t, expression)
#define INT_BINARY(name, expression)                                                               \
    BINARY_INTEGER(name##_kernel_i64, int64_t, int64_t, expression)
#define BOOL_UNARY(name, expression) UNARY_INTEGER(name##_kernel_b8, uint8_t, uint8_t, expression)
#define BOOL_BINARY(name, expression) BINARY_INTEGER(name##_kernel_b8, uint8_t, uint8_t, expression)
#include "elementwise.def"
#undef r_isinf
#undef r_signbit
#undef UNARY_INTEGER
#undef BINARY_INTEGER
