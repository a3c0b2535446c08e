/* tables.c: tables of float functions, split into bytes for AVX2's look-ups.
 *
 * They are filled before the first call.
 */
#include "tables.h"
#include "piecewise_f32.h"

#if MG_LANE_BY_LANE
v_bytes_f32 v_tanh_bytes, v_erf_bytes, v_erfcx_bytes, v_normal_bytes;

/* The numbers of a table of 16 pieces, the lowest byte first. */
static void bytes_of(v_bytes_f32 *bytes, v_rows_f32 table) {
    for (int i = 0; i < 8 * 4 * 16; i++)
        bytes->of[i >> 6][i >> 4 & 3][i & 15] =
            (uint8_t)(v_bits_f32(table[i >> 6][i & 15]) >> 8 * (i >> 4 & 3));
}

void v_begin(void) {
    bytes_of(&v_tanh_bytes, v_tanh_table_f32);
    bytes_of(&v_erf_bytes, v_erf_table_f32);
    bytes_of(&v_erfcx_bytes, v_erfcx_table_f32);
    bytes_of(&v_normal_bytes, v_normal_table_f32);
}
#else
void v_begin(void) {}
#endif
