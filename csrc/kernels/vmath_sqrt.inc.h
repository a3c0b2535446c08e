/* vmath_sqrt.inc.h: square roots of a chunk, of one float width. */
#include "real.h"

/* out[i] = sqrt x[i], whole blocks; out and x do not overlap. The instruction for 64 bytes takes 12
 * cycles in float and 24 in double, most of which its unit is busy with nothing else. Newton's
 * steps from a root's inverse good to 14 bits take a half and a third of that. The last has an
 * exact residual and rounds correctly, so that the bits are the instruction's (P. Markstein, "IA-64
 * and elementary functions", 2000, chapter 9): tried for every fraction of a float and both
 * parities of the exponent, and for those fractions of a double whose root is nearest to the middle
 * between two. */
static inline void R(v_sqrt_chunk)(real *restrict out, const real *restrict x, int64_t n) {
#if defined(__AVX512F__)
    const int64_t block = WIDE_VECTORS * LANES;
    const real least = BY_WIDTH(0x1p-60, 0x1p-900); /* no residual underflows */
    if (n % block) __builtin_unreachable();
    for (int64_t i = 0; i < n; i += block) {
        R(wide) a = R(w_load)(x + i), s;
        if (MG_LIKELY(R(w_inside)(a, least, (real)V_INF_F32))) {
            R(wide) half = R(w_set)(REAL_C(0.5)), y = R(w_rough_root_inverse)(a), e;
            R(wide) h = R(w_mul)(y, half);
            s = R(w_mul)(a, y);
            for (int step = 0; step < (sizeof(real) == 4 ? 1 : 2); step++) {
                e = R(w_fnma)(s, h, half);
                s = R(w_fma)(s, e, s);
                h = R(w_fma)(h, e, h);
            }
            s = R(w_fma)(R(w_fnma)(s, s, a), h, s);
        } else {
            s = R(w_sqrt)(a);
        }
        R(w_store)(out + i, s);
    }
#else
    for (int64_t i = 0; i < n; i++) out[i] = R(v_sqrt)(x[i]);
#endif
}
