/* pair.h: arithmetic on unevaluated sums of two doubles.
 *
 * It serves steps whose rounding error would otherwise reach the result (T. J. Dekker, "A
 * floating-point technique for extending the available precision", Numer. Math. 18, 1971). The sum
 * of any two numbers is by D. E. Knuth, The Art of Computer Programming 2, 4.2.2. The low part is
 * at most about one unit in the last place of the high part.
 */
#ifndef MG_VMATH_PAIR_H
#define MG_VMATH_PAIR_H

#include "simd/scalar.h"

typedef struct {
    double high, low;
} v_pair_f64;

/* a + b without loss for |a| >= |b|, or a = 0 */
MG_INLINE v_pair_f64 v_fast_sum_f64(double a, double b) {
    double s = a + b;
    return (v_pair_f64){s, (a - s) + b};
}
/* a + b without loss for any two */
MG_INLINE v_pair_f64 v_sum_f64(double a, double b) {
    double s = a + b, t = s - a;
    return (v_pair_f64){s, (a - (s - t)) + (b - t)};
}
MG_INLINE v_pair_f64 v_product_f64(double a, double b) {
    double p = a * b;
    return (v_pair_f64){p, v_mul_low_f64(a, b, p)};
}
/* For a divisor in the range of a float. */
MG_INLINE v_pair_f64 v_quotient_f64(v_pair_f64 a, v_pair_f64 b) {
    double inverse = v_reciprocal_f64(b.high), q = a.high * inverse;
    v_pair_f64 p = v_product_f64(q, b.high);
    double residual = ((a.high - p.high) - p.low) + (a.low - q * b.low);
    return v_fast_sum_f64(q, residual * inverse);
}
/* For a square root in the range of a float. */
MG_INLINE v_pair_f64 v_root_f64(v_pair_f64 a) {
    double r = __builtin_sqrt(a.high);
    v_pair_f64 p = v_product_f64(r, r);
    double residual = ((a.high - p.high) - p.low) + a.low;
    return (v_pair_f64){r, residual * (0.5 * v_reciprocal_f64(r))};
}

#endif
