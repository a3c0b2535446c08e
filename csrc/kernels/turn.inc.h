/* turn.inc.h: the transposition of one float width; read twice by turn.h. */
#include "real.h"

/* Transposes LANES rows in place: log2(LANES) perfect shuffles of the list of rows. */
MG_INLINE void R(v_turn)(vec *rows) {
    MG_UNROLL
    for (int s = 1; s < LANES; s *= 2) {
        vec next[LANES];
        MG_UNROLL
        for (int i = 0; i < LANES / 2; i++) {
            next[2 * i] = TURN_SHUFFLE(rows[i], rows[i + LANES / 2], R(TURN_LO));
            next[2 * i + 1] = TURN_SHUFFLE(rows[i], rows[i + LANES / 2], R(TURN_HI));
        }
        MG_UNROLL
        for (int i = 0; i < LANES; i++) rows[i] = next[i];
    }
}
