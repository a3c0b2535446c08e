/* plan.h: plans of pooling: where windows lie, and which windows are worked on together. */
#ifndef MG_POOL_PLAN_H
#define MG_POOL_PLAN_H

#include "memory/array.h"
#include "kernels/sizes.h"
#include "simd/vec.h"

enum {
    POOL_AXES = 3,
    POOL_WIDE = MG_VECTOR_BYTES / 8,  /* doubles in a vector */
    POOL_AHEAD = 2048,                /* bytes to prefetch ahead */
    POOL_IN_CACHE = 4 << 20,          /* bytes of planes that a near cache may well hold */
    POOL_MASKS = MG_VECTOR_BYTES > 16, /* a masked load costs no more than a load */
    POOL_PAIRWISE = MG_VECTOR_BYTES > 32, /* maxima of lines are joined two lines at a time */
    POOL_SHORT = MG_VECTOR_BYTES > 32 /* a row of tiles is worth a vector that it does not fill */
};

typedef enum { POOL_SUM, POOL_SPREAD, POOL_MAX, POOL_ARGMAX, POOL_MAX_VJP } pool_op;

/* The terms of sums of lines: columns, or pairs of columns. The two of a pair lie side by side, or
 * in two vectors if the lanes are planes. */
typedef enum { POOL_COLUMNS, POOL_PAIRS, POOL_VECTORS } pool_sums;

/* Pooling windows on three axes; those of mg_windows are the last ones. Windows even0 to even1 on
 * the last axis have one size and one divisor, and lie `apart` from each other. Tiles are windows
 * that are all alike on the last axis and do not overlap there. They may cover their lines. */
typedef struct {
    int64_t count[POOL_AXES], step[POOL_AXES], n[POOL_AXES];
    const int64_t *start[POOL_AXES], *size[POOL_AXES], *divisor[POOL_AXES];
    int64_t even0, even1, apart, most; /* most: number of such windows that a strip holds, if any */
    bool single;                /* the only window is the whole plane */
    bool tiled, covers, paired; /* paired: tiles are made of pairs of columns */
    /* every element of a plane is in one tile, and tiles have several columns */
    bool fills;
    /* tiles of two columns and at most two lines, in evenly spaced rows */
    bool pairs;
    bool halves;                /* pairs, and a line of them has at least a vector */
    bool doubles;               /* pairs, and every element of a plane is in one of them */
    int64_t joined;             /* rows of windows whose tiles are put into one line */
    /* lines from one such row to the next, or 0 if the distances differ */
    int64_t below;
    /* size of the only window of several axes, which are now the last axis */
    int64_t whole;
    int64_t ahead;              /* prefetch distance in bytes for pairs and single windows */
    int64_t reach;              /* from the first element of a window to its last, at most */
} pool_set;

/* A row of windows: those with the same place on the first two axes. `i0`, `i1`: the place. `left`:
 * rows from here on. `lines`: lines that each window covers. `divisor`: product of the divisors on
 * the first two axes. */
typedef struct {
    int64_t i0, i1, left, lines;
    double divisor;
} pool_row;

/* Windows i to i + n of each of some rows, which are worked on together. */
typedef struct {
    pool_row row;
    int64_t rows, i, n;
} pool_batch;

MG_INLINE void pool_enter(const pool_set *b, pool_row *row) {
    row->lines = b->size[0][row->i0] * b->size[1][row->i1];
    if (b->divisor[0])
        row->divisor = (double)b->divisor[0][row->i0] * (double)b->divisor[1][row->i1];
}

/* The first row. There is at least one. */
static pool_row pool_first(const pool_set *b) {
    pool_row row = {.left = b->count[0] * b->count[1]};
    pool_enter(b, &row);
    return row;
}

/* Moves on by `rows` rows. */
MG_INLINE void pool_next(const pool_set *b, pool_row *row, int64_t rows) {
    if ((row->left -= rows) == 0) return;
    for (row->i1 += rows; row->i1 >= b->count[1]; row->i1 -= b->count[1]) row->i0++;
    pool_enter(b, row);
}

/* Number of rows of a batch that are worked on in one go: all rows if they are alike. */
MG_INLINE int64_t pool_rows(const pool_set *b, const pool_batch *t) {
    return b->below > 0 ? t->rows : 1;
}

/* Line q of the windows of a row, as the number of a line of the plane, and as the offset of its
 * start. */
MG_INLINE int64_t pool_number(const pool_set *b, const pool_row *row, int64_t q) {
    int64_t size1 = b->size[1][row->i1], j0 = q < size1 ? 0 : q / size1, j1 = q - j0 * size1;
    int64_t at0 = b->start[0][row->i0] + j0 * b->step[0];
    return at0 * b->n[1] + b->start[1][row->i1] + j1 * b->step[1];
}
MG_INLINE int64_t pool_line(const pool_set *b, const pool_row *row, int64_t q) {
    return pool_number(b, row, q) * b->n[2];
}

/* Offset of the first pairs, the distance to their second line (0 if there is none), and to the
 * next row of pairs. */
static int64_t pool_pairs_first(const pool_set *b, int64_t *gap, int64_t *below) {
    *gap = b->size[1][0] == 2 ? b->step[1] * b->n[2] : 0;
    *below = b->below * b->n[2];
    return b->start[1][0] * b->n[2] + b->start[2][0];
}

/* Number of windows from i on, at most `most`, that differ only in their place. */
MG_INLINE int64_t pool_alike(const pool_set *b, int64_t i, int64_t most) {
    return i < b->even0 || i >= b->even1 ? 1 : mg_min(most, b->even1 - i);
}

/* Number of columns from the first to the last of window i. */
MG_INLINE int64_t pool_reach(const pool_set *b, int64_t i) {
    return (b->size[2][i] - 1) * b->step[2] + 1;
}

/* True if a row is worked on with all the columns of its lines. */
MG_INLINE bool pool_by_lines(const pool_set *b) { return !b->tiled && b->n[2] <= POOL_STRIP; }

/* Number of windows from i on that are worked on together: all of a short line, or as many as a
 * strip holds. */
MG_INLINE int64_t pool_together(const pool_set *b, int64_t i) {
    return mg_min(b->count[2] - i, pool_by_lines(b) ? POOL_STRIP : pool_alike(b, i, b->most));
}

/* The columns of a batch in a row: their number, and the first. */
MG_INLINE int64_t pool_width(const pool_set *b, const pool_batch *t, int64_t *first) {
    bool whole = pool_by_lines(b);
    *first = whole ? 0 : b->start[2][t->i];
    return whole ? b->n[2] : (t->n - 1) * b->apart + pool_reach(b, t->i);
}

MG_INLINE pool_batch pool_batch_at(const pool_set *b, pool_row row, int64_t i) {
    if (row.left == 0) return (pool_batch){.row = row};
    return (pool_batch){row, mg_min(b->joined, row.left), i, pool_together(b, i)};
}

static pool_batch pool_first_batch(const pool_set *b) { return pool_batch_at(b, pool_first(b), 0); }

static void pool_next_batch(const pool_set *b, pool_batch *t) {
    int64_t i = t->i + t->n;
    if (i == b->count[2]) pool_next(b, &t->row, t->rows);
    *t = pool_batch_at(b, t->row, i == b->count[2] ? 0 : i);
}

/* The elements of window i from element j on that a strip holds: their number in *size. Returns
 * their columns. */
MG_INLINE int64_t pool_piece(const pool_set *b, int64_t i, int64_t j, int64_t *size) {
    int64_t step = b->step[2];
    *size = mg_min(b->size[2][i] - j, mg_max(POOL_STRIP / step, 1));
    return (*size - 1) * step + 1;
}

/* ---- reading --------------------------------------------------------------------------------- */

MG_INLINE bool pool_is_even(const pool_set *b, int64_t i, int64_t mid) {
    const int64_t *divisor = b->divisor[2];
    return b->size[2][i] == b->size[2][mid] && (!divisor || divisor[i] == divisor[mid]) &&
           b->start[2][i] == b->start[2][mid] + (i - mid) * b->apart;
}

/* Finds the longest run of evenly spaced windows on the last axis that holds the window in the
 * middle. */
static void pool_find_even(pool_set *b) {
    const int64_t *start = b->start[2];
    int64_t count = b->count[2], mid = count / 2;
    b->even0 = b->even1 = mid;
    b->apart = mid > 0 ? mg_max(start[mid] - start[mid - 1], 1) : count > 0 ? pool_reach(b, 0) : 1;
    while (b->even1 < count && pool_is_even(b, b->even1, mid)) b->even1++;
    while (b->even0 > 0 && pool_is_even(b, b->even0 - 1, mid)) b->even0--;
}

MG_INLINE bool pool_same(int64_t count, const int64_t *numbers) {
    for (int64_t i = 1; numbers && i < count; i++) {
        MG_AS_IT_IS;
        if (numbers[i] != numbers[0]) return false;
    }
    return true;
}

/* True if every element of an axis is in exactly one window. */
MG_INLINE bool pool_fills(const pool_set *b, int d) {
    int64_t i = 0, end = 0;
    while (i < b->count[d] && b->start[d][i] == end) end += b->size[d][i++];
    return i == b->count[d] && end == b->n[d] && b->step[d] == 1;
}

/* The distance between rows of windows on the second axis, or 0 if it varies. There are at least
 * two rows. */
static int64_t pool_rise(const pool_set *b) {
    const int64_t *start = b->start[1];
    int64_t rise = start[1] - start[0];
    for (int64_t i = 2; i < b->count[1]; i++) {
        MG_AS_IT_IS;
        if (start[i] - start[i - 1] != rise) return 0;
    }
    return rise;
}

/* Finds out whether the windows are tiles, and how many rows of tiles make a line. */
static void pool_find_tiles(pool_set *b) {
    int64_t count = b->count[2], rows = b->count[0] * b->count[1], width = count * b->apart;
    b->joined = b->most = 1;
    b->below = 0;
    b->pairs = b->halves = b->doubles = false;
    if (rows * count == 0) return;
    b->most = mg_max((POOL_STRIP - pool_reach(b, b->even0)) / b->apart + 1, 1);
    b->tiled = b->even0 == 0 && b->even1 == count && pool_reach(b, 0) <= b->apart;
    b->paired = b->tiled && b->step[2] == 1 && b->size[2][0] % 2 == 0 && b->apart % 2 == 0;
    b->covers = b->tiled && width == b->n[2] && b->size[2][0] == b->apart;
    b->fills = b->covers && 2 < b->apart && b->apart <= POOL_STRIP;
    b->fills = b->fills && pool_fills(b, 0) && pool_fills(b, 1);
    if (!b->tiled || width > POOL_STRIP || !pool_same(b->count[0], b->divisor[0]) ||
        !pool_same(b->count[1], b->divisor[1]))
        return;
    b->joined = mg_ceil_div(rows, mg_ceil_div(rows, POOL_STRIP / width));
    b->even1 = b->joined * count;
    bool flat = b->n[0] == 1 && b->count[0] == 1;
    if (flat && rows > 1 && pool_same(rows, b->size[1])) b->below = pool_rise(b);
    b->pairs = b->below > 0 && b->paired && b->apart == 2 && b->size[1][0] <= 2;
    b->halves = b->pairs && width >= 2 * POOL_WIDE;
    b->doubles = b->pairs && b->covers && pool_fills(b, 1);
}

MG_INLINE bool pool_is_whole(const pool_set *b, int d) {
    return b->count[d] == 1 && b->size[d][0] == b->n[d];
}

/* Joins the last axes if their only window is all of them. */
static void pool_join(pool_set *b) {
    static const int64_t one = 1;
    for (int d = POOL_AXES - 2; d >= 0 && pool_is_whole(b, d) && pool_is_whole(b, POOL_AXES - 1); d--) {
        b->whole = b->n[2] *= b->n[d];
        b->size[2] = &b->whole;
        b->size[d] = &one;
        b->n[d] = b->step[2] = 1;
    }
}

/* Converts windows on axes of sizes n to three axes. 0, or an error code if they do not lie within
 * n. */
static int pool_read(pool_set *b, const int64_t *n, const mg_windows *from) {
    static const int64_t zero = 0, one = 1;
    const int64_t *starts = from->starts, *sizes = from->sizes, *divisors = from->divisors;
    if (from->axes < 1 || from->axes > POOL_AXES)
        return mg_fail_code(MG_ENDIM, from->axes, POOL_AXES);
    for (int d = 0; d < POOL_AXES; d++) {
        int k = d - (POOL_AXES - (int)from->axes);
        b->n[d] = k < 0 ? 1 : n[k];
        b->count[d] = k < 0 ? 1 : from->count[k];
        b->step[d] = k < 0 ? 1 : from->step[k];
        b->start[d] = k < 0 ? &zero : starts;
        b->size[d] = k < 0 ? &one : sizes;
        b->divisor[d] = !divisors ? NULL : k < 0 ? &one : divisors;
        if (k < 0) continue;
        if (b->count[d] < 0 || b->step[d] < 1) return mg_fail_code(MG_EARG, 0, 0);
        for (int64_t i = 0; i < b->count[d]; i++) {
            if (sizes[i] < 1 || starts[i] < 0) return mg_fail_code(MG_EARG, sizes[i], starts[i]);
            if (starts[i] >= b->n[d] || (sizes[i] - 1) > (b->n[d] - 1 - starts[i]) / b->step[d])
                return mg_fail_code(MG_EINDEX, starts[i], b->n[d]);
        }
        starts += b->count[d];
        sizes += b->count[d];
        if (divisors) divisors += b->count[d];
    }
    pool_join(b);
    pool_find_even(b);
    pool_find_tiles(b);
    b->single = b->count[0] * b->count[1] == 1 && b->n[0] * b->n[1] == 1 && pool_is_whole(b, 2);
    b->reach = 0;
    for (int d = 0; d < POOL_AXES; d++) {
        int64_t longest = 1;
        for (int64_t i = 0; i < b->count[d]; i++) {
            MG_AS_IT_IS;
            longest = mg_max(longest, b->size[d][i]);
        }
        b->reach = b->reach * b->n[d] + (longest - 1) * b->step[d];
    }
    return MG_OK;
}

#endif
