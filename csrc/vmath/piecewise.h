/* piecewise.h: tables of piecewise polynomials, and how each lane of a vector looks up its piece.
 *
 * A table has a row for each coefficient. With AVX-512 one instruction looks a row up, so that
 * tables are stored by row. AVX2 has no such instruction for 16 numbers, and permuting eight
 * numbers occupies the units of two multiply-adds. But one AVX2 shuffle looks up 32 bytes among 16,
 * so that floats are looked up byte by byte. Doubles, and floats with 32 pieces, are stored by
 * piece, with coefficients in the order of use. The pieces of all lanes are loaded whole and
 * transposed, a few rows at a time.
 */
#ifndef MG_VMATH_PIECEWISE_H
#define MG_VMATH_PIECEWISE_H

#include "simd/wide.h"

#define MG_LANE_BY_LANE (MG_HAS_WIDE && MG_VECTOR_BYTES == 32)

/* A row is given as (...) of 16 numbers. A table of 32 pieces has two for each row. */
#define V_ITEM_0(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p) a
#define V_ITEM_1(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p) b
#define V_ITEM_2(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p) c
#define V_ITEM_3(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p) d
#define V_ITEM_4(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p) e
#define V_ITEM_5(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p) f
#define V_ITEM_6(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p) g
#define V_ITEM_7(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p) h
#define V_ITEM_8(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p) i
#define V_ITEM_9(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p) j
#define V_ITEM_10(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p) k
#define V_ITEM_11(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p) l
#define V_ITEM_12(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p) m
#define V_ITEM_13(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p) n
#define V_ITEM_14(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p) o
#define V_ITEM_15(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p) p
#define V_EACH_PIECE(P, ...)                                                                       \
    P(V_ITEM_0, __VA_ARGS__), P(V_ITEM_1, __VA_ARGS__), P(V_ITEM_2, __VA_ARGS__),                  \
    P(V_ITEM_3, __VA_ARGS__), P(V_ITEM_4, __VA_ARGS__), P(V_ITEM_5, __VA_ARGS__),                  \
    P(V_ITEM_6, __VA_ARGS__), P(V_ITEM_7, __VA_ARGS__), P(V_ITEM_8, __VA_ARGS__),                  \
    P(V_ITEM_9, __VA_ARGS__), P(V_ITEM_10, __VA_ARGS__), P(V_ITEM_11, __VA_ARGS__),                \
    P(V_ITEM_12, __VA_ARGS__), P(V_ITEM_13, __VA_ARGS__), P(V_ITEM_14, __VA_ARGS__),               \
    P(V_ITEM_15, __VA_ARGS__)
#define V_LIST(...) __VA_ARGS__
#define V_PIECE_16(I, r0, r1, r2, r3, r4, r5, r6, r7, r8, r9, r10, r11, r12, r13, r14, r15)        \
    {I r0, I r15, I r14, I r13, I r12, I r11, I r10, I r9, I r8, I r7, I r6, I r5, I r4, I r3,     \
    I r2, I r1}
#define V_PIECE_7_LOW(I, l0, h0, l1, h1, l2, h2, l3, h3, l4, h4, l5, h5, l6, h6)                   \
    {I l0, I l6, I l5, I l4, I l3, I l2, I l1}
#define V_PIECE_7_HIGH(I, l0, h0, l1, h1, l2, h2, l3, h3, l4, h4, l5, h5, l6, h6)                  \
    {I h0, I h6, I h5, I h4, I h3, I h2, I h1}
#if MG_LANE_BY_LANE
#define V_TABLE(name, ...)                                                                         \
    static const __attribute__((unused)) _Alignas(64) double w_##name##_table_f64[16][16] = {      \
        V_EACH_PIECE(V_PIECE_16, __VA_ARGS__)};
#define V_TABLE_7(...)                                                                             \
    {V_EACH_PIECE(V_PIECE_7_LOW, __VA_ARGS__), V_EACH_PIECE(V_PIECE_7_HIGH, __VA_ARGS__)}
#else
#define V_TABLE(name, ...)                                                                         \
    static const __attribute__((unused)) double (*const w_##name##_table_f64)[16] =                \
        v_##name##_table_f64;
#define V_TABLE_7(...) {V_ROWS_7(__VA_ARGS__)}
#endif
#define V_ROWS_7(l0, h0, l1, h1, l2, h2, l3, h3, l4, h4, l5, h5, l6, h6)                           \
    {V_LIST l0, V_LIST h0}, {V_LIST l1, V_LIST h1}, {V_LIST l2, V_LIST h2},                        \
    {V_LIST l3, V_LIST h3}, {V_LIST l4, V_LIST h4}, {V_LIST l5, V_LIST h5},                        \
    {V_LIST l6, V_LIST h6}
#define V_TABLE_8(name, r0, r1, r2, r3, r4, r5, r6, r7)                                            \
    static const __attribute__((unused)) float v_##name##_table_f32[8][16] = {                     \
        {V_LIST r0}, {V_LIST r1}, {V_LIST r2}, {V_LIST r3}, {V_LIST r4}, {V_LIST r5},              \
        {V_LIST r6}, {V_LIST r7}};                                                                 \
    static const __attribute__((unused)) float (*const w_##name##_table_f32)[16] =                 \
        v_##name##_table_f32;
#define V_TABLE_16(name, r0, r1, r2, r3, r4, r5, r6, r7, r8, r9, r10, r11, r12, r13, r14, r15)     \
    static const __attribute__((unused)) double v_##name##_table_f64[16][16] = {                   \
        {V_LIST r0}, {V_LIST r1}, {V_LIST r2}, {V_LIST r3}, {V_LIST r4}, {V_LIST r5},              \
        {V_LIST r6}, {V_LIST r7}, {V_LIST r8}, {V_LIST r9}, {V_LIST r10}, {V_LIST r11},            \
        {V_LIST r12}, {V_LIST r13}, {V_LIST r14}, {V_LIST r15}};                                   \
    V_TABLE(name, r0, r1, r2, r3, r4, r5, r6, r7, r8, r9, r10, r11, r12, r13, r14, r15)

typedef const float (*w_rows_f32)[16];
typedef const double (*w_rows_f64)[16];
typedef const float (*v_rows_f32)[16];
typedef const double (*v_rows_f64)[16];

#if MG_LANE_BY_LANE
#define V_PIECE_SHIFT_F64 7
typedef struct {
    _Alignas(32) uint32_t of[WIDE_VECTORS][8];
} w_offsets_f32;
typedef struct {
    _Alignas(32) uint64_t of[WIDE_VECTORS][4];
} w_offsets_f64;
MG_INLINE w_offsets_f32 w_offsets_of_f32(wide_f32 i) {
    w_offsets_f32 at;
    __builtin_memcpy(&at, &i, sizeof at);
    return at;
}
MG_INLINE w_offsets_f64 w_offsets_of_f64(wide_f64 i) {
    w_offsets_f64 at;
    __builtin_memcpy(&at, &i, sizeof at);
    return at;
}
/* The 16 bytes at a and the 16 bytes at b, by a load of both halves and a blend. Inserting a half
 * instead would occupy the units that transpose vectors. (A compiler would use an insert if it saw
 * both loads.) */
MG_INLINE vec_f32 v_halves(const void *a, const void *b) {
    vec_f32 low = _mm256_castps128_ps256(_mm_loadu_ps(a)), high = _mm256_broadcast_ps(b);
    __asm__("" : "+x"(high));
    return _mm256_blend_ps(low, high, 0xf0);
}
/* Four numbers of each lane, from the byte offsets of the lanes' pieces. */
MG_INLINE void v_four_f32(const float *table, const uint32_t *at, vec_f32 r[4]) {
    const char *p = (const char *)table;
    vec_f32 a = v_halves(p + at[0], p + at[4]), b = v_halves(p + at[1], p + at[5]);
    vec_f32 c = v_halves(p + at[2], p + at[6]), d = v_halves(p + at[3], p + at[7]);
    vec_f64 ab = _mm256_castps_pd(_mm256_unpacklo_ps(a, b));
    vec_f64 cd = _mm256_castps_pd(_mm256_unpacklo_ps(c, d));
    r[0] = _mm256_castpd_ps(_mm256_unpacklo_pd(ab, cd));
    r[1] = _mm256_castpd_ps(_mm256_unpackhi_pd(ab, cd));
    ab = _mm256_castps_pd(_mm256_unpackhi_ps(a, b));
    cd = _mm256_castps_pd(_mm256_unpackhi_ps(c, d));
    r[2] = _mm256_castpd_ps(_mm256_unpacklo_pd(ab, cd));
    r[3] = _mm256_castpd_ps(_mm256_unpackhi_pd(ab, cd));
}
/* The same where a load of 32 bytes crosses no cache line, so that the blend can be a load. Pieces
 * have 128 bytes. */
MG_INLINE vec_f64 v_halves_at(const char *a, const char *b, int at) {
    vec_f32 low, high;
    if (at % 64 == 48) {
        low = _mm256_castps128_ps256(_mm_loadu_ps((const float *)(a + at)));
        high = _mm256_loadu_ps((const float *)(b + at - 16));
        return _mm256_castps_pd(_mm256_blend_ps(low, high, 0xf0));
    }
    low = _mm256_loadu_ps((const float *)(a + at));
    high = _mm256_broadcast_ps((const __m128 *)(b + at));
    __asm__("" : "+x"(high));
    return _mm256_castps_pd(_mm256_blend_ps(high, low, 0x0f));
}
/* Two numbers of each lane, from row `row` of its piece. */
MG_INLINE void v_pair_of_f64(const char *const *piece, int row, vec_f64 r[2]) {
    vec_f64 a = v_halves_at(piece[0], piece[2], 8 * row);
    vec_f64 b = v_halves_at(piece[1], piece[3], 8 * row);
    r[0] = _mm256_unpacklo_pd(a, b);
    r[1] = _mm256_unpackhi_pd(a, b);
}
/* f(c + d) = start + q d. All vectors go in step, as each one mostly waits for its own results. */
MG_INLINE void v_pieces_at(wide_f64 a, const char *const *piece, wide_f64 *start, wide_f64 *q,
                           wide_f64 *d) {
    vec_f64 r[2];
    for (int k = 0; k < WIDE_VECTORS; k++) {
        v_pair_of_f64(piece + 4 * k, 0, r);
        d->v[k] = a.v[k] - r[0], q->v[k] = r[1];
    }
    MG_UNROLL
    for (int row = 2; row < 14; row += 2)
        for (int k = 0; k < WIDE_VECTORS; k++) {
            v_pair_of_f64(piece + 4 * k, row, r);
            q->v[k] = v_fma_f64(v_fma_f64(q->v[k], d->v[k], r[0]), d->v[k], r[1]);
        }
    for (int k = 0; k < WIDE_VECTORS; k++) {
        v_pair_of_f64(piece + 4 * k, 14, r);
        q->v[k] = v_fma_f64(q->v[k], d->v[k], r[0]), start->v[k] = r[1];
    }
}
MG_INLINE void v_find_pieces_f64(wide_f64 a, w_rows_f64 table, const w_offsets_f64 *at,
                                 wide_f64 *start, wide_f64 *q, wide_f64 *d) {
    const char *piece[4 * WIDE_VECTORS];
    for (int i = 0; i < 4 * WIDE_VECTORS; i++) piece[i] = (const char *)table + at->of[i / 4][i % 4];
    v_pieces_at(a, piece, start, q, d);
}
/* The polynomial for a piece of logistic_f32.inc.h. *w receives the coefficient that has other data
 * in its last bits. */
MG_INLINE vec_f32 v_short_piece_f32(vec_f32 a, const float (*table)[8], const uint32_t *at,
                                    vec_f32 *w) {
    vec_f32 r[4];
    v_four_f32(table[0], at, r);
    vec_f32 d = a - r[0], q = (vec_f32)((wide_bits_vec_f32)r[1] << 16);
    q = v_fma_f32(v_fma_f32(v_fma_f32(q, d, r[1]), d, r[2]), d, r[3]);
    *w = r[2];
    v_four_f32(table[0] + 4, at, r);
    for (int k = 0; k < 3; k++) q = v_fma_f32(q, d, r[k]);
    return q;
}

/* The numbers of a table of 16 pieces, split into bytes, lowest first. */
typedef struct {
    _Alignas(16) uint8_t of[8][4][16];
} v_bytes_f32;
/* The pieces of four vectors from 1 + a, a byte for each lane, in the form that v_look_up_bytes
 * takes. */
MG_INLINE __m256i v_pieces_of(const vec_f32 b[4]) {
    __m256i i[4], mask = _mm256_set1_epi16(15);
    for (int k = 0; k < 4; k++) i[k] = _mm256_srli_epi32(_mm256_castps_si256(b[k]), 21);
    i[0] = _mm256_and_si256(_mm256_packs_epi32(i[0], i[1]), mask);
    i[2] = _mm256_and_si256(_mm256_packs_epi32(i[2], i[3]), mask);
    return _mm256_packus_epi16(i[0], i[2]);
}
/* Looks up a number for each lane of four vectors. Unpacking undoes the order in which packing has
 * put the lanes. */
MG_INLINE void v_look_up_bytes(const uint8_t bytes[4][16], __m256i i, vec_f32 r[4]) {
    __m256i b[4];
    for (int k = 0; k < 4; k++) {
        __m128i table = _mm_load_si128((const __m128i *)bytes[k]);
        b[k] = _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(table), i);
    }
    __m256i low = _mm256_unpacklo_epi8(b[0], b[1]), low_2 = _mm256_unpackhi_epi8(b[0], b[1]);
    __m256i high = _mm256_unpacklo_epi8(b[2], b[3]), high_2 = _mm256_unpackhi_epi8(b[2], b[3]);
    r[0] = _mm256_castsi256_ps(_mm256_unpacklo_epi16(low, high));
    r[1] = _mm256_castsi256_ps(_mm256_unpackhi_epi16(low, high));
    r[2] = _mm256_castsi256_ps(_mm256_unpacklo_epi16(low_2, high_2));
    r[3] = _mm256_castsi256_ps(_mm256_unpackhi_epi16(low_2, high_2));
}
#endif

#endif
