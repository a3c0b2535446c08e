/* gemm.inc.c: the loops around the micro-kernel, and which of them a shape takes. */
#include "real.h"

/* A share of the output, computed by one call of a block function. */
typedef struct {
    real *c;
    const real *a, *b;
    const mg_gemm_shape *shape;
    int64_t rows, cols, across; /* height and width of a block; blocks in a row of blocks */
} R(gemm_grid);

/* Height of the next tile when `rows` are left: the last two share what remains. */
MG_INLINE int R(gemm_height)(int64_t rows) {
    return (int)(rows >= 2 * GEMM_MR ? GEMM_MR : rows > GEMM_MR ? (rows + 1) / 2 : rows);
}

/* ---- without packing A ----------------------------------------------------------------------- */

/* Reads A where it lies, and B too where the vectors of its rows can be loaded directly; otherwise
 * copies one sliver of B at a time. For small products and for those narrow in m or n. Where the
 * rows of B are long it takes few at a time, so that their pages stay in the first-level TLB. */
static void R(gemm_direct)(real *c, const real *a, const real *b, const mg_gemm_shape *s, int64_t m,
                           int64_t n) {
    _Alignas(64) real sliver[GEMM_SLIVER(GEMM_NR, R(GEMM_KC))];
    int64_t deepest = s->n * (int)sizeof(real) > 2048 ? GEMM_PAGES : R(GEMM_KC);
    for (int64_t p = 0; p < s->k; p += deepest) {
        int64_t depth = mg_min(deepest, s->k - p);
        for (int64_t j = 0; j < n; j += GEMM_NR) {
            int cols = (int)mg_min(GEMM_NR, n - j);
            const real *bj = b + p * s->b_row + j * s->b_col;
            int64_t b_row = s->b_row;
            if (s->b_col != 1 || (!GEMM_MASKS && cols % LANES)) {
                R(gemm_pack_b)(sliver, bj, s->b_row, s->b_col, cols, depth);
                bj = sliver;
                b_row = GEMM_NR;
            }
            for (int64_t i = 0; i < m;) {
                int rows = R(gemm_height)(m - i);
                R(gemm_tile_any)(rows, cols, c + i * s->c_row + j, s->c_row,
                                 a + i * s->a_row + p * s->a_col, s->a_row, s->a_col, bj, b_row,
                                 depth, p > 0);
                i += rows;
            }
        }
    }
}

static void R(gemm_direct_block)(void *context, int64_t block) {
    const R(gemm_grid) *g = context;
    const mg_gemm_shape *s = g->shape;
    int64_t i = block / g->across * g->rows, j = block % g->across * g->cols;
    R(gemm_direct)(g->c + i * s->c_row + j, g->a + i * s->a_row, g->b + j * s->b_col, s,
                   mg_min(g->rows, s->m - i), mg_min(g->cols, s->n - j));
}

/* ---- with both operands packed --------------------------------------------------------------- */

typedef struct {
    R(gemm_grid) grid;
    int64_t depth, slivers_a, slivers_b;
    real *packed_a, *packed_b;
    bool add;
} R(gemm_packing);

/* Slivers that one block copies. */
enum { R(GEMM_PACK_SLIVERS) = 4 };

static void R(gemm_pack_block)(void *context, int64_t block) {
    const R(gemm_packing) *t = context;
    const R(gemm_grid) *g = &t->grid;
    const mg_gemm_shape *s = g->shape;
    int64_t end = mg_min((block + 1) * R(GEMM_PACK_SLIVERS), t->slivers_a + t->slivers_b);
    for (int64_t i = block * R(GEMM_PACK_SLIVERS); i < end; i++) {
        if (i < t->slivers_a) {
            int64_t row = i * GEMM_MR;
            R(gemm_pack_a)(t->packed_a + i * GEMM_SLIVER(GEMM_MR, t->depth), g->a + row * s->a_row,
                           s->a_row, s->a_col, (int)mg_min(GEMM_MR, s->m - row), t->depth);
        } else {
            int64_t sliver = i - t->slivers_a, col = sliver * GEMM_NR;
            if (s->b_col == 1 && i + 4 <= end && col + 4 * GEMM_NR <= s->n) {
                R(gemm_pack_b4)(t->packed_b + sliver * GEMM_SLIVER(GEMM_NR, t->depth), g->b + col,
                                s->b_row, t->depth);
                i += 3;
                continue;
            }
            R(gemm_pack_b)(t->packed_b + sliver * GEMM_SLIVER(GEMM_NR, t->depth),
                           g->b + col * s->b_col, s->b_row, s->b_col,
                           (int)mg_min(GEMM_NR, s->n - col), t->depth);
        }
    }
}

/* One block of C from packed slivers: a sliver of B serves all those of A, which pass from L2,
 * while the next sliver of B is fetched. */
static void R(gemm_packed_block)(void *context, int64_t block) {
    const R(gemm_packing) *t = context;
    const R(gemm_grid) *g = &t->grid;
    const mg_gemm_shape *s = g->shape;
    int64_t i0 = block / g->across * g->rows, i1 = mg_min(i0 + g->rows, s->m);
    int64_t j0 = block % g->across * g->cols, j1 = mg_min(j0 + g->cols, s->n);
    for (int64_t j = j0; j < j1; j += GEMM_NR) {
        const real *b = t->packed_b + j / GEMM_NR * GEMM_SLIVER(GEMM_NR, t->depth);
        const real *ahead = b + GEMM_SLIVER(GEMM_NR, t->depth), *fetch = ahead;
        int cols = (int)mg_min(GEMM_NR, j1 - j);
        for (int64_t i = i0; i < i1; i += GEMM_MR) {
            const real *a = t->packed_a + i / GEMM_MR * GEMM_SLIVER(GEMM_MR, t->depth);
            real *c = g->c + i * s->c_row + j;
            if (cols == GEMM_NR && i1 - i >= GEMM_MR) {
                R(gemm_tile_packed)(c, s->c_row, a, b, t->depth, t->add, fetch);
                fetch += t->depth * 64 / (int)sizeof(real);
                if (fetch >= ahead + GEMM_NR * t->depth) fetch = ahead;
            } else
                R(gemm_tile_any)((int)mg_min(GEMM_MR, i1 - i), cols, c, s->c_row, a, 1, GEMM_MR, b,
                                 GEMM_NR, t->depth, t->add);
        }
    }
}

MG_INLINE int64_t R(gemm_round_up)(int64_t n, int64_t unit) { return mg_ceil_div(n, unit) * unit; }

/* Depth of the blocks that k is cut into: as equal as multiples of 8 allow. */
MG_INLINE int64_t R(gemm_depth)(int64_t k) {
    return mg_min(k, R(gemm_round_up)(mg_ceil_div(k, mg_ceil_div(k, R(GEMM_KC))), 8));
}

static void R(gemm_packed)(real *c, const real *a, const real *b, const mg_gemm_shape *shape,
                           real *scratch) {
    int64_t m = shape->m, n = shape->n, k = shape->k, deepest = R(gemm_depth)(k);
    for (int64_t j = 0; j < n; j += GEMM_NS)
        for (int64_t p = 0; p < k; p += deepest)
            for (int64_t i = 0; i < m; i += GEMM_MS / GEMM_MR * GEMM_MR) {
                mg_gemm_shape s = *shape;
                s.m = mg_min(GEMM_MS / GEMM_MR * GEMM_MR, m - i);
                s.n = mg_min(GEMM_NS, n - j);
                R(gemm_packing) t = {
                    .grid = {.c = c + i * s.c_row + j,
                             .a = a + i * s.a_row + p * s.a_col,
                             .b = b + p * s.b_row + j * s.b_col,
                             .shape = &s},
                    .depth = mg_min(deepest, k - p),
                    .slivers_a = mg_ceil_div(s.m, GEMM_MR),
                    .slivers_b = i == 0 ? mg_ceil_div(s.n, GEMM_NR) : 0,
                    .add = p > 0,
                };
                t.packed_b = scratch;
                t.packed_a = scratch + mg_ceil_div(s.n, GEMM_NR) * GEMM_SLIVER(GEMM_NR, t.depth);
                bool threads = s.m * s.n * t.depth >= MG_GEMM_THREAD_WORK;

                int64_t slivers = t.slivers_a + t.slivers_b;
                int64_t copies = mg_ceil_div(slivers, R(GEMM_PACK_SLIVERS));
                if (threads)
                    mg_parallel_for(copies, R(gemm_pack_block), &t);
                else
                    for (int64_t x = 0; x < copies; x++) R(gemm_pack_block)(&t, x);

                /* Blocks as high as L2 allows; narrower ones when there are few. */
                t.grid.rows = mg_min(R(GEMM_MC), s.m);
                t.grid.cols = s.n;
                while (threads && t.grid.cols > 4 * GEMM_NR &&
                       mg_ceil_div(s.m, t.grid.rows) * mg_ceil_div(s.n, t.grid.cols) < 16)
                    t.grid.cols = R(gemm_round_up)(mg_ceil_div(t.grid.cols, 2), GEMM_NR);
                t.grid.across = mg_ceil_div(s.n, t.grid.cols);
                int64_t blocks = mg_ceil_div(s.m, t.grid.rows) * t.grid.across;
                if (threads)
                    mg_parallel_for(blocks, R(gemm_packed_block), &t);
                else
                    for (int64_t x = 0; x < blocks; x++) R(gemm_packed_block)(&t, x);
            }
}

/* ---- vectors --------------------------------------------------------------------------------- */

/* The product seen as row vector (x, x_step) times matrix (b_row, b_col) with n outputs. */
typedef struct {
    real *y;
    const real *x, *b;
    int64_t x_step, b_row, b_col, n, k, cols;
} R(gemm_vector);

static void R(gemm_vector_block)(void *context, int64_t block) {
    const R(gemm_vector) *t = context;
    int64_t j = block * t->cols, n = mg_min(t->cols, t->n - j);
    if (t->b_row == 1 && (t->b_col != 1 || t->n == 1))
        R(gemm_vector_cols)(t->y + j, t->x, t->x_step, t->b + j * t->b_col, t->b_col, n, t->k);
    else
        R(gemm_vector_rows)(t->y + j, t->x, t->x_step, t->b + j, t->b_row, n, t->k);
}

/* ---- choice ---------------------------------------------------------------------------------- */

/* Packing A pays when each of its elements is used for several slivers of B, and packing B when
 * enough rows of A share it. */
MG_INLINE bool R(gemm_packs)(const mg_gemm_shape *s) {
    return s->m > 4 * GEMM_MR && s->n > 3 * GEMM_NR && s->m * s->n * s->k > 128 * 128 * 128;
}

static void R(gemm_vector_product)(real *c, const real *a, const real *b, const mg_gemm_shape *s) {
    R(gemm_vector) t = {c, a, b, s->a_col, s->b_row, s->b_col, s->n, s->k, s->n};
    if (s->n == 1 && s->m > 1)
        t = (R(gemm_vector)){c, b, a, s->b_row, s->a_col, s->a_row, s->m, s->k, s->m};
    if (t.n == 1 && t.b_row != 1) /* a dot product: the contiguous one plays the matrix */
        t = (R(gemm_vector)){c, t.b, t.x, t.b_row, t.x_step, 0, 1, s->k, 1};
    if (t.n * t.k < MG_GEMM_THREAD_WORK) {
        R(gemm_vector_block)(&t, 0);
        return;
    }
    t.cols = mg_max(R(gemm_round_up)(mg_ceil_div(t.n, 16), 64), 64);
    mg_parallel_for(mg_ceil_div(t.n, t.cols), R(gemm_vector_block), &t);
}

/* A vector kernel takes it: one side is a vector, and the matrix lies along its rows or columns. */
MG_INLINE bool R(gemm_is_vector)(const mg_gemm_shape *s) {
    return (s->m == 1 && s->n == 1) || (s->m == 1 && (s->b_col == 1 || s->b_row == 1)) ||
           (s->n == 1 && s->c_row == 1 && (s->a_col == 1 || s->a_row == 1));
}

size_t R(mg_gemm_scratch)(const mg_gemm_shape *s) {
    if (R(gemm_is_vector)(s) || !R(gemm_packs)(s)) return 0;
    int64_t k = R(gemm_depth)(s->k);
    int64_t a = mg_ceil_div(mg_min(s->m, GEMM_MS), GEMM_MR) * GEMM_SLIVER(GEMM_MR, k);
    int64_t b = mg_ceil_div(mg_min(s->n, GEMM_NS), GEMM_NR) * GEMM_SLIVER(GEMM_NR, k);
    return (size_t)(a + b) * sizeof(real);
}

void R(mg_gemm)(real *c, const real *a, const real *b, const mg_gemm_shape *s, void *scratch) {
    if (R(gemm_is_vector)(s)) {
        R(gemm_vector_product)(c, a, b, s);
    } else if (R(gemm_packs)(s)) {
        R(gemm_packed)(c, a, b, s, scratch);
    } else if (s->m * s->n * s->k < MG_GEMM_THREAD_WORK) {
        R(gemm_direct)(c, a, b, s, s->m, s->n);
    } else {
        R(gemm_grid) g = {c, a, b, s, s->m, s->n, 1};
        /* Cut the longer side; the cuts fall between tiles. */
        if (s->m > s->n) {
            g.rows = mg_max(R(gemm_round_up)(mg_ceil_div(s->m, 32), GEMM_MR), 2 * GEMM_MR);
        } else {
            g.cols = mg_max(R(gemm_round_up)(mg_ceil_div(s->n, 32), GEMM_NR), GEMM_NR);
            g.across = mg_ceil_div(s->n, g.cols);
        }
        mg_parallel_for(mg_ceil_div(s->m, g.rows) * g.across, R(gemm_direct_block), &g);
    }
}
