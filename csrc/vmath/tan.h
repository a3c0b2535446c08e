/* tan.h: tangent of every argument, for both float widths.
 *
 * Read trig.h first.
 */
#ifndef MG_VMATH_TAN_H
#define MG_VMATH_TAN_H

#include "instantiate.h"
#include "trig.h"

/* Right for every x. */
static MG_NOINLINE double v_tan_any_f64(double x) {
    if (!(v_abs_f64(x) > V_TRIG_MAX_F64 && v_abs_f64(x) < V_INF_F64)) {
        return v_tan_f64(x);
    }
    v_trig_parts_f64 p = trig_reduce_large(x);
    v_tan_terms_f64 t = v_tan_reduce_f64(p.r);
    t.turns = v_from_bits_f64(v_bits_f64(t.turns) + 8 * p.quadrant);
    t.r_low += p.r_low;
    return v_copysign_f64(1.0, x) * v_tan_of_f64(t);
}
MG_INLINE float v_tan_any_f32(float x) {
    return v_abs_f32(x) > V_TRIG_MAX_F32 ? (float)v_tan_any_f64((double)x) : v_tan_f32(x);
}

#if !MG_HAS_WIDE
#define w_tan_f32 v_tan_f32
#define w_tan_f64 v_tan_f64
#endif
/* out[i] = tan x[i], whole blocks; out and x do not overlap. */
static inline void v_tan_chunk_f32(float *restrict out, const float *restrict x, int64_t n) {
    w_map_inside_f32(out, x, n, w_tan_f32, v_tan_any_f32, V_TRIG_MAX_F32);
}
MG_CHAINS
static inline void v_tan_chunk_f64(double *restrict out, const double *restrict x, int64_t n) {
    w_map_inside_f64(out, x, n, w_tan_f64, v_tan_any_f64, V_TRIG_MAX_F64);
}
MG_CHAINS_END

#endif
