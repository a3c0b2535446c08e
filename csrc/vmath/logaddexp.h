/* logaddexp.h: log(e^a + e^b) and log2(2^a + 2^b) of doubles. */
#ifndef MG_VMATH_LOGADDEXP_H
#define MG_VMATH_LOGADDEXP_H

#include "log.h"

/* Results of logaddexp and logaddexp2 for infinities and NaN. */
MG_INLINE double v_logaddexp_edges_f64(double a, double b, double y) {
    double m = a > b ? a : b;
    y = v_abs_f64(m) < V_INF_F64 ? y : m;
    return ((a != a) | (b != b)) ? a + b : y;
}

/* m + log(1 + e^-|a - b|), m = max(a, b). If the terms cancel to less than |m| / 2, the error is
 * 0.728 units of m, at (-0x1.843328b56297ep-3, -0x1.196021b018121p+0). Elsewhere it is 0.969 units
 * of the result, at (-0x1.c269968b46304p-3, -0x1.1d3e9f8310eccp+0). */
MG_INLINE double v_logaddexp_f64(double a, double b) {
    double m = a > b ? a : b, o = a > b ? b : a;
    v_pair_f64 d = v_sum_f64(o, -m);
    double low = d.high > -800.0 ? d.low : 0.0;
    v_exp_parts_f64 p = v_exp_split_f64(v_limit_f64(d.high, 800.0), low, 1024.0);
    v_pair_f64 log = v_log_pair_f64(v_log1p_exp_split_f64(p)), y = v_sum_f64(m, log.high);
    return v_logaddexp_edges_f64(a, b, y.high + (y.low + log.low));
}
/* The same with powers and logarithms of 2. A power near the subnormal numbers is multiplied by
 * log2 e before it is scaled, since scaling first would round twice. The error is 0.909 units of m
 * at (-0x1.f3480fae50a5p-3, -0x1.9d8653f5b34ep+0) if the terms cancel. Elsewhere it is 0.926 units
 * of the result at (-0x1.becf6e4f23628p-3, -0x1.a3ef4a92ec41fp+0). */
MG_INLINE double v_logaddexp2_f64(double a, double b) {
    double m = a > b ? a : b, o = a > b ? b : a;
    v_pair_f64 d = v_sum_f64(o, -m);
    double low = d.high > -1100.0 ? d.low : 0.0;
    v_exp_parts_f64 p = v_exp2_split_f64(v_limit_f64(d.high, 1100.0), low, 1024.0);
    v_pair_f64 log = v_log2_pair_f64(v_log1p_exp_split_f64(p)), y = v_sum_f64(m, log.high);
    v_pair_f64 e = v_exp_pair_f64(p), t = v_product_f64(e.high, V_LOG2E_F64);
    t.low += fma_f64(e.high, V_LOG2E_LOW_F64, e.low * V_LOG2E_F64);
    double tiny = m + v_scale_bits_f64(t.high + t.low, p.n);
    return v_logaddexp_edges_f64(a, b, d.high < -1000.0 ? tiny : y.high + (y.low + log.low));
}

#endif
