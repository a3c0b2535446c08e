/* plan.h: where boxes lie, and which of them are worked on together. */
#ifndef MG_BOX_PLAN_H
#define MG_BOX_PLAN_H

#include "memory/array.h"
#include "kernels/sizes.h"
#include "simd/vec.h"

enum {
    BOX_AXES = 3,
    BOX_WIDE = MG_VECTOR_BYTES / 8,  /* doubles in a vector */
    BOX_AHEAD = 2048,                /* bytes that are asked for before they are needed */
    BOX_IN_CACHE = 4 << 20,          /* bytes of planes that a cache near by may well hold */
    BOX_MASKS = MG_VECTOR_BYTES > 16, /* a load of the first n lanes costs what a load costs */
    BOX_PAIRWISE = MG_VECTOR_BYTES > 32, /* maxima of lines are joined two lines at a time */
    BOX_SHORT = MG_VECTOR_BYTES > 32 /* a row of tiles is worth a vector that it does not fill */
};

typedef enum { BOX_SUM, BOX_SPREAD, BOX_MAX, BOX_ARGMAX, BOX_MAX_VJP } box_op;

/* What sums of lines are made of: columns, or two at a time, which lie side by side or, of planes that
 * are lanes, in two vectors. */
typedef enum { BOX_COLUMNS, BOX_PAIRS, BOX_VECTORS } box_sums;

/* Boxes on three axes, those of mg_boxes last. Those on the last axis from even0 to even1 have one
 * size and one divisor, and lie `apart` from each other. Tiles are all of one kind there, and none
 * reaches into the next; they may cover their lines. */
typedef struct {
    int64_t count[BOX_AXES], step[BOX_AXES], n[BOX_AXES];
    const int64_t *start[BOX_AXES], *size[BOX_AXES], *divisor[BOX_AXES];
    int64_t even0, even1, apart, most; /* how many of them a strip holds, if any */
    bool single;                /* is the only box all of a plane? */
    bool tiled, covers, paired; /* are tiles made of pairs of columns? */
    bool fills;                 /* is every element of a plane in one tile, of several columns? */
    bool pairs;                 /* tiles of two columns and at most two lines, in even rows */
    bool halves;                /* such, and a line of them is a vector at least */
    bool doubles;               /* such, and every element of a plane is in one */
    int64_t joined;             /* rows of boxes whose tiles make one line */
    int64_t below;              /* lines from one such row to the next, or 0 if they differ */
    int64_t whole;              /* size of the only box of several axes, which are now the last */
    int64_t ahead;              /* bytes that pairs and single boxes are asked for ahead */
    int64_t reach;              /* from the first element of a box to its last, at most */
} box_set;

/* The boxes that agree on the first two axes: which, over how many lines they reach, by what to
 * divide. */
typedef struct {
    int64_t i0, i1, left, lines;
    double divisor;
} box_row;

/* The n boxes from i on of each of some rows: as many as are worked on together. */
typedef struct {
    box_row row;
    int64_t rows, i, n;
} box_batch;

MG_INLINE void box_enter(const box_set *b, box_row *row) {
    row->lines = b->size[0][row->i0] * b->size[1][row->i1];
    if (b->divisor[0])
        row->divisor = (double)b->divisor[0][row->i0] * (double)b->divisor[1][row->i1];
}

/* There is at least one. */
static box_row box_first(const box_set *b) {
    box_row row = {.left = b->count[0] * b->count[1]};
    box_enter(b, &row);
    return row;
}

/* On by so many rows. */
MG_INLINE void box_next(const box_set *b, box_row *row, int64_t rows) {
    if ((row->left -= rows) == 0) return;
    for (row->i1 += rows; row->i1 >= b->count[1]; row->i1 -= b->count[1]) row->i0++;
    box_enter(b, row);
}

/* How many rows of a batch are worked on in one go: all if they are alike. */
MG_INLINE int64_t box_rows(const box_set *b, const box_batch *t) {
    return b->below > 0 ? t->rows : 1;
}

/* Which line of a plane is line q of the boxes of a row, and where it starts. */
MG_INLINE int64_t box_number(const box_set *b, const box_row *row, int64_t q) {
    int64_t size1 = b->size[1][row->i1], j0 = q < size1 ? 0 : q / size1, j1 = q - j0 * size1;
    int64_t at0 = b->start[0][row->i0] + j0 * b->step[0];
    return at0 * b->n[1] + b->start[1][row->i1] + j1 * b->step[1];
}
MG_INLINE int64_t box_line(const box_set *b, const box_row *row, int64_t q) {
    return box_number(b, row, q) * b->n[2];
}

/* Where the first pairs start, and how far it is to their second line, 0 if there is none, and to
 * the next row of them. */
static int64_t box_pairs_first(const box_set *b, int64_t *gap, int64_t *below) {
    *gap = b->size[1][0] == 2 ? b->step[1] * b->n[2] : 0;
    *below = b->below * b->n[2];
    return b->start[1][0] * b->n[2] + b->start[2][0];
}

/* How many boxes from i on, at most so many, differ in nothing but the place. */
MG_INLINE int64_t box_alike(const box_set *b, int64_t i, int64_t most) {
    return i < b->even0 || i >= b->even1 ? 1 : mg_min(most, b->even1 - i);
}

/* From the first column of box i to its last. */
MG_INLINE int64_t box_reach(const box_set *b, int64_t i) {
    return (b->size[2][i] - 1) * b->step[2] + 1;
}

/* Is a row worked on with all the columns of its lines? */
MG_INLINE bool box_by_lines(const box_set *b) { return !b->tiled && b->n[2] <= BOX_STRIP; }

/* How many boxes from i on are worked on together: of a short line, or which a strip holds. */
MG_INLINE int64_t box_together(const box_set *b, int64_t i) {
    return mg_min(b->count[2] - i, box_by_lines(b) ? BOX_STRIP : box_alike(b, i, b->most));
}

/* The columns of a batch in a row: their number, and the first. */
MG_INLINE int64_t box_width(const box_set *b, const box_batch *t, int64_t *first) {
    bool whole = box_by_lines(b);
    *first = whole ? 0 : b->start[2][t->i];
    return whole ? b->n[2] : (t->n - 1) * b->apart + box_reach(b, t->i);
}

MG_INLINE box_batch box_batch_at(const box_set *b, box_row row, int64_t i) {
    if (row.left == 0) return (box_batch){.row = row};
    return (box_batch){row, mg_min(b->joined, row.left), i, box_together(b, i)};
}

static box_batch box_first_batch(const box_set *b) { return box_batch_at(b, box_first(b), 0); }

static void box_next_batch(const box_set *b, box_batch *t) {
    int64_t i = t->i + t->n;
    if (i == b->count[2]) box_next(b, &t->row, t->rows);
    *t = box_batch_at(b, t->row, i == b->count[2] ? 0 : i);
}

/* The elements of box i from j on that a strip holds: their number in *size, and the columns. */
MG_INLINE int64_t box_piece(const box_set *b, int64_t i, int64_t j, int64_t *size) {
    int64_t step = b->step[2];
    *size = mg_min(b->size[2][i] - j, mg_max(BOX_STRIP / step, 1));
    return (*size - 1) * step + 1;
}

/* ---- reading --------------------------------------------------------------------------------- */

MG_INLINE bool box_is_even(const box_set *b, int64_t i, int64_t mid) {
    const int64_t *divisor = b->divisor[2];
    return b->size[2][i] == b->size[2][mid] && (!divisor || divisor[i] == divisor[mid]) &&
           b->start[2][i] == b->start[2][mid] + (i - mid) * b->apart;
}

/* The longest even run on the last axis that holds the box in the middle. */
static void box_find_even(box_set *b) {
    const int64_t *start = b->start[2];
    int64_t count = b->count[2], mid = count / 2;
    b->even0 = b->even1 = mid;
    b->apart = mid > 0 ? mg_max(start[mid] - start[mid - 1], 1) : count > 0 ? box_reach(b, 0) : 1;
    while (b->even1 < count && box_is_even(b, b->even1, mid)) b->even1++;
    while (b->even0 > 0 && box_is_even(b, b->even0 - 1, mid)) b->even0--;
}

MG_INLINE bool box_same(int64_t count, const int64_t *numbers) {
    for (int64_t i = 1; numbers && i < count; i++) {
        MG_AS_IT_IS;
        if (numbers[i] != numbers[0]) return false;
    }
    return true;
}

/* Is every place on an axis in just one box? */
MG_INLINE bool box_fills(const box_set *b, int d) {
    int64_t i = 0, end = 0;
    while (i < b->count[d] && b->start[d][i] == end) end += b->size[d][i++];
    return i == b->count[d] && end == b->n[d] && b->step[d] == 1;
}

/* What every row of boxes on the second axis lies below the one before, or 0; there are several. */
static int64_t box_rise(const box_set *b) {
    const int64_t *start = b->start[1];
    int64_t rise = start[1] - start[0];
    for (int64_t i = 2; i < b->count[1]; i++) {
        MG_AS_IT_IS;
        if (start[i] - start[i - 1] != rise) return 0;
    }
    return rise;
}

/* Are the boxes tiles, how many rows of them make a line? */
static void box_find_tiles(box_set *b) {
    int64_t count = b->count[2], rows = b->count[0] * b->count[1], width = count * b->apart;
    b->joined = b->most = 1;
    b->below = 0;
    b->pairs = b->halves = b->doubles = false;
    if (rows * count == 0) return;
    b->most = mg_max((BOX_STRIP - box_reach(b, b->even0)) / b->apart + 1, 1);
    b->tiled = b->even0 == 0 && b->even1 == count && box_reach(b, 0) <= b->apart;
    b->paired = b->tiled && b->step[2] == 1 && b->size[2][0] % 2 == 0 && b->apart % 2 == 0;
    b->covers = b->tiled && width == b->n[2] && b->size[2][0] == b->apart;
    b->fills = b->covers && 2 < b->apart && b->apart <= BOX_STRIP;
    b->fills = b->fills && box_fills(b, 0) && box_fills(b, 1);
    if (!b->tiled || width > BOX_STRIP || !box_same(b->count[0], b->divisor[0]) ||
        !box_same(b->count[1], b->divisor[1]))
        return;
    b->joined = mg_ceil_div(rows, mg_ceil_div(rows, BOX_STRIP / width));
    b->even1 = b->joined * count;
    bool flat = b->n[0] == 1 && b->count[0] == 1;
    if (flat && rows > 1 && box_same(rows, b->size[1])) b->below = box_rise(b);
    b->pairs = b->below > 0 && b->paired && b->apart == 2 && b->size[1][0] <= 2;
    b->halves = b->pairs && width >= 2 * BOX_WIDE;
    b->doubles = b->pairs && b->covers && box_fills(b, 1);
}

MG_INLINE bool box_is_whole(const box_set *b, int d) {
    return b->count[d] == 1 && b->size[d][0] == b->n[d];
}

/* The last axes become one where their only box is all of them. */
static void box_join(box_set *b) {
    static const int64_t one = 1;
    for (int d = BOX_AXES - 2; d >= 0 && box_is_whole(b, d) && box_is_whole(b, BOX_AXES - 1); d--) {
        b->whole = b->n[2] *= b->n[d];
        b->size[2] = &b->whole;
        b->size[d] = &one;
        b->n[d] = b->step[2] = 1;
    }
}

/* The boxes on axes of sizes n as those on three; 0, or why they do not lie in n. */
static int box_read(box_set *b, const int64_t *n, const mg_boxes *from) {
    static const int64_t zero = 0, one = 1;
    const int64_t *starts = from->starts, *sizes = from->sizes, *divisors = from->divisors;
    if (from->axes < 1 || from->axes > BOX_AXES)
        return mg_fail_code(MG_ENDIM, from->axes, BOX_AXES);
    for (int d = 0; d < BOX_AXES; d++) {
        int k = d - (BOX_AXES - (int)from->axes);
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
    box_join(b);
    box_find_even(b);
    box_find_tiles(b);
    b->single = b->count[0] * b->count[1] == 1 && b->n[0] * b->n[1] == 1 && box_is_whole(b, 2);
    b->reach = 0;
    for (int d = 0; d < BOX_AXES; d++) {
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
