/* transpose.inc.h: the transposes of one float width; transpose.h includes it twice. */
#include "real.h"

/* Transposes LANES rows in place. Each of log2(LANES) steps splits neighbouring rows by even and
 * odd numbers. The first steps move elements within 16 bytes, and later steps move blocks of 16
 * bytes. These shuffles cost least. */
MG_INLINE void R(v_transpose)(vec *rows) {
    MG_UNROLL
    for (int s = 1; s < LANES; s *= 2) {
        const bool inside = s * sizeof(real) < 16;
        vec next[LANES];
        MG_UNROLL
        for (int i = 0; i < LANES / 2; i++) {
            vec a = rows[2 * i], b = rows[2 * i + 1];
            next[i] = inside ? TRANSPOSE_SHUFFLE(a, b, R(TRANSPOSE_EVEN)) : TRANSPOSE_SHUFFLE(a, b, R(TRANSPOSE_FIRST));
            next[i + LANES / 2] =
                inside ? TRANSPOSE_SHUFFLE(a, b, R(TRANSPOSE_ODD)) : TRANSPOSE_SHUFFLE(a, b, R(TRANSPOSE_SECOND));
        }
        MG_UNROLL
        for (int i = 0; i < LANES; i++) rows[i] = next[i];
    }
}

/* Transposes a square: to[l * to_row + i] = from[i * from_row + l], after adding *plus to each row
 * of `from`. `plus` may be NULL. All is read before anything is written. */
static MG_NOINLINE void R(v_transpose_square)(real *to, int64_t to_row, const real *from,
                                         int64_t from_row, const vec *plus) {
    vec lines[LANES];
    MG_UNROLL
    for (int l = 0; l < LANES; l++) lines[l] = v_load(from + l * from_row);
    if (plus) {
        MG_UNROLL
        for (int l = 0; l < LANES; l++) lines[l] += *plus;
    }
    R(v_transpose)(lines);
    MG_UNROLL
    for (int l = 0; l < LANES; l++) v_store(to + l * to_row, lines[l]);
}

/* LANES elements at even offsets. Reads nothing beyond the last one. */
MG_INLINE vec R(v_evens)(const real *p) {
    return TRANSPOSE_SHUFFLE(v_load(p), v_load(p + LANES - 1), R(TRANSPOSE_EVENS));
}
