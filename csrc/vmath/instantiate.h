/* instantiate.h: instances of the function templates (*.inc.h) for one number and for several
 * vectors.
 *
 * Each template has four instances. v_name_f32 and v_name_f64 take one number, w_name_f32 and
 * w_name_f64 several vectors. simd/num.h says how a template is written.
 *
 * The table shows the largest errors seen, in units of the last place, with fma and without.
 *
 * Floats were compared with double precision. The samples are every 7th to every 500th number, and
 * all numbers near 1 and where errors are largest. With fma, all numbers were tried for asin, acos,
 * atan and tan, and all from 2^-12 on for exp and the gates. Without fma, every 13th was tried for
 * these and for logarithms. Powers had some millions of samples.
 *
 * Doubles had one or two million samples: uniform, dense around 0 and 1, of all sizes, and at the
 * ends of the range. exp, exp2, tanh and the gates had six to nine million, most of them where
 * errors are largest, such as subnormal results. Doubles were compared with long double. Functions
 * from asin on, and powers, were compared with 113 bits.
 *
 *               float        double                  float        double
 *      exp      0.92 0.92    0.81 0.81    sigmoid    0.85 0.85    0.79 0.82
 *      exp2     0.92 0.92    0.79 0.80    softplus   0.82 0.80    0.83 0.84
 *      expm1    0.77 0.78    0.82 0.84    silu       0.89 0.89    0.79 0.80
 *      sinh     0.84 0.84    0.77 0.77    gelu_tanh  0.99 1.19    0.67 0.67
 *      cosh     0.55 0.56    0.61 0.64    asin       0.76 0.76    0.63 0.65
 *      log      0.81 0.80    0.80 0.80    acos       0.69 0.71    0.60 0.65
 *      log2     0.98 1.52    0.94 1.31    atan       0.89 0.86    0.86 0.86
 *      log10    1.00 1.57    0.98 1.33    atan2      0.82 0.82    0.82 0.82
 *      log1p    0.81 0.80    0.80 0.80    tan        0.54 0.53    0.56 0.56
 *      tanh     0.78 0.76    0.86 0.85    erf, erfc  0.88 0.87    0.93 0.93
 *      pow      0.78 0.78    0.78 0.75    ndtr       0.81 0.81    0.88 0.88
 *                                         gelu       0.95 1.16    0.90 0.90
 */
#ifndef MG_VMATH_INSTANTIATE_H
#define MG_VMATH_INSTANTIATE_H

#include "coefficients/constants.h"
#include "coefficients/erf.h"
#include "coefficients/f32.h"
#include "coefficients/f64.h"
#include "coefficients/gelu_f32.h"
#include "coefficients/inverse_trig.h"
#include "simd/num.h"

/* Both numbers of a row of a table of logarithms. Four bits of i choose the row. */
typedef const float (*v_log_rows_f32)[16];
#define LOG_ROW(num, name, width)                                                                  \
    MG_INLINE void name##_log_row_##width(v_log_rows_##width table, num i, num *c, num *t) {       \
        *c = name##_look_up_##width(table[0], i), *t = name##_look_up_##width(table[1], i);        \
    }
LOG_ROW(float, s, f32)
#if MG_HAS_WIDE
LOG_ROW(wide_f32, w, f32)
#endif
#if MG_LANE_BY_LANE
MG_INLINE void s_log_row_f64(v_log_rows_f64 table, double i, double *c, double *t) {
    const double *row = table[v_bits_f64(i) & 15u];
    *c = row[0], *t = row[1];
}
MG_INLINE void w_log_row_f64(v_log_rows_f64 table, wide_f64 i, wide_f64 *c, wide_f64 *t) {
    _Alignas(32) double at[4 * WIDE_VECTORS];
    w_store_f64(at, w_and_f64(w_shift_left_f64(i, 4), 15 << 4));
    w_load_pairs(table, at, c, t);
}
#else
LOG_ROW(double, s, f64)
#if MG_HAS_WIDE
/* Loads the table for each block: its four registers serve better for the values in flight. */
MG_INLINE void w_log_row_f64(v_log_rows_f64 table, wide_f64 i, wide_f64 *c, wide_f64 *t) {
    MG_ANEW(table);
    *c = w_look_up_f64(table[0], i), *t = w_look_up_f64(table[1], i);
}
#endif
#endif
#undef LOG_ROW

#define C(name) V_##name##_F32
#define T(name) v_##name##_f32
#define LANE_BY_LANE 0
#define ROUGH_ROOTS 0
#define num float
#define P(name) s_##name##_f32
#define F(name) v_##name##_f32
#include "polynomial.inc.h"
#include "exp.inc.h"
#include "log.inc.h"
#include "hyperbolic.inc.h"
#include "growth_f32.inc.h"
#include "logistic.inc.h"
#include "gelu.inc.h"
#include "pow.inc.h"
#include "erf.inc.h"
#include "partials.inc.h"
#include "tanh_f32.inc.h"
#include "logistic_f32.inc.h"
#include "gelu_f32.inc.h"
#include "inverse_trig.inc.h"
#include "tan.inc.h"
#include "rsqrt.inc.h"
#undef LANE_BY_LANE
#undef num
#undef P
#undef F
#if MG_HAS_WIDE
#define LANE_BY_LANE 0
#define num wide_f32
#define P(name) w_##name##_f32
#define F(name) w_##name##_f32
#include "polynomial.inc.h"
#include "exp.inc.h"
#include "log.inc.h"
#include "hyperbolic.inc.h"
#include "growth_f32.inc.h"
#include "logistic.inc.h"
#include "gelu.inc.h"
#include "pow.inc.h"
#include "erf.inc.h"
#include "partials.inc.h"
#undef LANE_BY_LANE
#define LANE_BY_LANE MG_LANE_BY_LANE
#include "tanh_f32.inc.h"
#include "logistic_f32.inc.h"
#include "gelu_f32.inc.h"
#include "inverse_trig.inc.h"
#include "tan.inc.h"
#undef ROUGH_ROOTS
#define ROUGH_ROOTS 1
#include "rsqrt.inc.h"
#undef LANE_BY_LANE
#undef num
#undef P
#undef F
#endif
#undef C
#undef T
#undef ROUGH_ROOTS
#define ROUGH_ROOTS 0
#define C(name) V_##name##_F64
#define T(name) v_##name##_f64
#define LANE_BY_LANE 0
#define num double
#define P(name) s_##name##_f64
#define F(name) v_##name##_f64
#include "polynomial.inc.h"
#include "exp.inc.h"
#include "log.inc.h"
#include "hyperbolic.inc.h"
#include "growth_f64.inc.h"
#include "logistic.inc.h"
#include "gelu.inc.h"
#include "pow.inc.h"
#include "erf.inc.h"
#include "partials.inc.h"
#include "tanh_f64.inc.h"
#include "logistic_f64.inc.h"
#include "gelu_f64.inc.h"
#include "inverse_trig.inc.h"
#include "tan.inc.h"
#include "rsqrt.inc.h"
#undef LANE_BY_LANE
#undef num
#undef P
#undef F
#if MG_HAS_WIDE
#define LANE_BY_LANE MG_LANE_BY_LANE
#define num wide_f64
#define P(name) w_##name##_f64
#define F(name) w_##name##_f64
#include "polynomial.inc.h"
#include "exp.inc.h"
#include "log.inc.h"
#include "hyperbolic.inc.h"
#include "growth_f64.inc.h"
#include "logistic.inc.h"
#include "gelu.inc.h"
#include "pow.inc.h"
#include "erf.inc.h"
#include "partials.inc.h"
#include "tanh_f64.inc.h"
#include "logistic_f64.inc.h"
#include "gelu_f64.inc.h"
#include "inverse_trig.inc.h"
#include "tan.inc.h"
#undef ROUGH_ROOTS
#define ROUGH_ROOTS MG_ROUGH_ROOTS
#include "rsqrt.inc.h"
#undef LANE_BY_LANE
#undef num
#undef P
#undef F
#endif
#undef C
#undef T
#undef ROUGH_ROOTS

#endif
