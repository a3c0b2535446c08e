/* sqrt.inc.h: square roots of a chunk; a template for each float width. */
#include "simd/real.h"

/* out[i] = sqrt x[i], whole blocks; out and x do not overlap. */
static inline void R(v_sqrt_chunk)(real *restrict out, const real *restrict x, int64_t n) {
#if defined(__AVX512F__)
    const int64_t block = WIDE_VECTORS * LANES;
    const bool roots = mg_system_roots();
    const R(wide_bits) first = R(v_bits)(BY_WIDTH(0x1p-60, 0x1p-900));
    if (n % block) __builtin_unreachable();
    for (int64_t i = 0; i < n; i += block) {
        R(wide) a = R(w_load)(x + i), s;
        bool usual = R(w_within_bits)(a, first, R(v_bits)((real)V_INF_F32));
        if (MG_UNLIKELY(!usual)) s = R(w_sqrt)(a);
        else s = roots ? R(w_root_by)(a, WIDE_VECTORS / 2) : R(w_root_by)(a, 0);
        R(w_store)(out + i, s);
    }
#else
    for (int64_t i = 0; i < n; i++) out[i] = R(v_sqrt)(x[i]);
#endif
}
