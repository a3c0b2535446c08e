/* transpose.inc.h: the transposes of one float width; read twice by transpose.h. */
#include "real.h"

/* Transposes LANES rows in place. Each of log2(LANES) steps takes neighbouring rows apart into what
 * has even and what has odd numbers, the elements of each 16 bytes first and then these blocks: the
 * shuffles that cost least. */
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

/* A square: to[l * to_row + i] = from[i * from_row + l], plus what is added to each row of `from`,
 * unless that is NULL. All is read before it is written. */
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

/* LANES elements, each two from the last. It reads nothing beyond the last one. */
MG_INLINE vec R(v_evens)(const real *p) {
    return TRANSPOSE_SHUFFLE(v_load(p), v_load(p + LANES - 1), R(TRANSPOSE_EVENS));
}
