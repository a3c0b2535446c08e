/* gemm.inc.c: the loops around the micro-kernel (the macro-kernel among them) and the choice
 * between them; a template for each float width. */
#include "simd/real.h"

/* A product cut into blocks; one call of a block function computes one. */
typedef struct {
    real *c;
    const real *plus, *a, *b;
    const mg_gemm_shape *shape;
    int64_t plus_row;
    int64_t rows, cols, across; /* height and width of a block; blocks in a row of blocks */
} R(gemm_grid);

/* Height of the next tile when `rows` are left. The last two tiles share what remains. */
MG_INLINE int R(gemm_height)(int64_t rows) {
    return (int)(rows >= 2 * GEMM_MR ? GEMM_MR : rows > GEMM_MR ? (rows + 1) / 2 : rows);
}

/* True if B need not be packed. There are few rows or columns, or all of B stays in L2. Or a block
 * of all rows of A stays in L2, so that B passes only once. */
MG_INLINE bool R(gemm_is_small)(const mg_gemm_shape *s) {
    return s->m <= 4 * GEMM_MR || s->n <= 3 * GEMM_NR ||
           s->n * s->k * (int)sizeof(real) <= GEMM_DIRECT ||
           s->m * GEMM_KC_DIRECT * (int)sizeof(real) <= GEMM_DIRECT / 4;
}

/* True if all rows of B fall into one set of L1. Packing B then pays even for few rows of A. */
MG_INLINE bool R(gemm_collides)(const mg_gemm_shape *s) {
    return GEMM_PACKS && s->b_col == 1 && s->k > 32 && s->b_row * (int)sizeof(real) % 4096 == 0;
}

/* True if B must be packed, provided that enough rows of A share it. Its rows are not contiguous,
 * or fall into the same sets of L1, or its vectors cross cache lines. */
MG_INLINE bool R(gemm_lies_badly)(const mg_gemm_shape *s) {
    int64_t bytes = s->b_row * (int)sizeof(real);
    return s->b_col != 1 || (s->k > 128 && (bytes % 2048 == 0 || bytes % 64 != 0)) ||
           R(gemm_collides)(s);
}

/* Depth of the blocks that k is cut into: as equal as multiples of 8 allow. With few rows of A and
 * long rows of B, B is not packed. The depth is then limited so that the pages of B's rows stay in
 * the first-level TLB. It depends on the sizes alone, so the bits of C do too. */
MG_INLINE int64_t R(gemm_depth)(const mg_gemm_shape *s) {
    if (s->k <= GEMM_PAGES) return s->k;
    bool few = s->m <= 4 * GEMM_MR && s->n * (int)sizeof(real) > 2048;
    int64_t most = few ? GEMM_PAGES : R(gemm_is_small)(s) ? GEMM_KC_DIRECT : GEMM_KC;
    return mg_min(s->k, gemm_round_up(mg_ceil_div(s->k, mg_ceil_div(s->k, most)), 8));
}

/* True for few steps and a large C, whose traffic takes the time. Tiles then go along the rows of
 * C. */
MG_INLINE bool R(gemm_is_shallow)(const mg_gemm_shape *s) {
    return s->k <= 128 && s->m * s->n * (int)sizeof(real) > GEMM_DIRECT;
}

/* True if B is packed nevertheless: its rows take a page or more, and enough rows of C share
 * them. */
MG_INLINE bool R(gemm_goes_along)(const mg_gemm_shape *s) {
    return R(gemm_is_shallow)(s) && mg_min(s->m, s->n) * (int)sizeof(real) >= 4096;
}

/* ---- without packing ------------------------------------------------------------------------- */

/* True if an unpacked panel of B fills more than half of the ways of the L1 sets that its rows fall
 * into. */
MG_INLINE bool R(gemm_crowds)(const mg_gemm_shape *s) {
    int64_t bytes = s->b_row * (int)sizeof(real);
    return GEMM_RUNS && s->k * mg_min(bytes & -bytes, 4096) > 4 * 4096;
}

/* True if rows of A are copied, as they fall into the same sets of L1 or run across many cache
 * lines. In the latter case the rows of a tile share lines, which L1 holds if they are few. For few
 * panels of B, Zen 4 prefetches them from L2. */
MG_INLINE bool R(gemm_copies)(const mg_gemm_shape *s) {
    bool few = s->k <= 128 || (s->n <= 3 * GEMM_NR && mg_system_zen() == 4);
    bool in_lines = s->a_row == 1 && few;
    return s->k > LANES && !in_lines &&
           (s->a_col == 1 ? s->a_row * (int)sizeof(real) % 2048 == 0
                          : s->n > GEMM_NR && s->m > GEMM_MR / 2);
}

/* True if B must be packed, but one panel at a time into L1, just before its use, while A is not
 * packed. That pays if no more rows of A share B than B has columns, and packing A would cost as
 * much. An operand from beyond L2 is better packed by the first tile that reads it. */
static MG_NOINLINE bool R(gemm_panels)(const mg_gemm_shape *s) {
    bool beside = s->n <= 2 * s->m && s->n * s->k * (int)sizeof(real) <= GEMM_DIRECT;
    return s->m > 4 * GEMM_MR && s->m <= s->n && s->n > 3 * GEMM_NR && s->a_col == 1 &&
           (s->b_col != 1 ? R(gemm_is_small)(s)
                          : beside && (R(gemm_lies_badly)(s) || R(gemm_crowds)(s))) &&
           !R(gemm_copies)(s) && !R(gemm_is_shallow)(s);
}

/* Reads B in place if the vectors of its rows can be loaded directly and that pays. Else one panel
 * of B at a time is copied. A is read in place too, or, if its layout is bad, from a copy of a
 * tile's rows, which serves all of B. */
static void R(gemm_direct)(real *c, const real *plus, int64_t plus_row, const real *a,
                           const real *b, const mg_gemm_shape *s, int64_t m, int64_t n) {
    enum { ROW = GEMM_KC_DIRECT + 64 / sizeof(real) };
    _Alignas(64) real panel[GEMM_PANEL(GEMM_NR, GEMM_KC_DIRECT)], tile[GEMM_MR * ROW];
    bool copies = R(gemm_copies)(s), along = copies || R(gemm_is_shallow)(s);
    bool in_vectors = GEMM_MASKS || n % LANES == 0;
    bool panels = s->b_col != 1 || (m > 4 * GEMM_MR && R(gemm_panels)(s));
    int64_t whole = panels ? 0 : in_vectors ? n : n / GEMM_NR * GEMM_NR;
    int64_t deepest = mg_min(R(gemm_depth)(s), GEMM_KC_DIRECT);
    for (int64_t p = 0; p < s->k; p += deepest) {
        int64_t depth = mg_min(deepest, s->k - p);
        for (int64_t j = 0, end; j < n; j = end) {
            const real *from_b = b + p * s->b_row + j * s->b_col;
            int64_t b_row = s->b_row;
            if (j < whole) {
                end = along ? whole : mg_min(j + GEMM_NR, whole);
            } else {
                end = mg_min(j + GEMM_NR, n);
                R(gemm_pack_b)(panel, from_b, s->b_row, s->b_col, (int)(end - j), depth);
                from_b = panel;
                b_row = GEMM_NR;
            }
            for (int64_t i = 0, rows; i < m; i += rows) {
                rows = R(gemm_height)(m - i);
                const real *from_a = a + i * s->a_row + p * s->a_col;
                int64_t a_row = s->a_row, a_col = s->a_col;
                if (copies) {
                    R(gemm_copy_a)(tile, ROW, from_a, a_row, a_col, (int)rows, depth);
                    from_a = tile;
                    a_row = a_col == 1 ? ROW : 1;
                    a_col = a_col == 1 ? 1 : GEMM_MR;
                }
                int64_t x = j;
#if GEMM_RUNS
                /* A run is not faster for few steps. It is slower if A and B are read in place and
                 * B crowds L1. */
                int64_t run = 0;
                if (rows == GEMM_MR && a_col == 1 && (along || end - j == GEMM_NR) &&
                    depth >= 48 && (from_b == panel || copies || !R(gemm_crowds)(s)))
                    run = along ? (end - j) / GEMM_NR : mg_max(1, (m - i) / GEMM_MR - 1);
                if (run > 0) {
                    R(gemm_tiles) t = {
                        .c = c + i * s->c_row + j,
                        .plus = plus ? plus + i * plus_row + j : NULL,
                        .a = from_a,
                        .b = from_b,
                        .c_row = s->c_row,
                        .plus_row = plus_row,
                        .a_row = a_row,
                        .b_row = b_row,
                        .k = depth,
                        .tiles = run,
                        .c_next = along ? GEMM_NR : GEMM_MR * s->c_row,
                        .plus_next = along ? GEMM_NR : GEMM_MR * plus_row,
                        .a_next = along ? 0 : GEMM_MR * a_row,
                        .b_next = along ? GEMM_NR : 0,
                    };
                    R(gemm_run_lying)(&t);
                    x += along ? run * GEMM_NR : GEMM_NR;
                    rows = along ? GEMM_MR : run * GEMM_MR;
                }
#endif
                for (; x < end; x += GEMM_NR)
                    R(gemm_micro_kernel_any)((int)rows, (int)mg_min(GEMM_NR, end - x),
                                     c + i * s->c_row + x, s->c_row, from_a, a_row, a_col,
                                     from_b + (x - j), b_row, depth,
                                     plus ? plus + i * plus_row + x : NULL, plus_row);
            }
        }
        plus = c;
        plus_row = s->c_row;
    }
}

static void R(gemm_direct_block)(void *context, int64_t block) {
    const R(gemm_grid) *g = context;
    const mg_gemm_shape *s = g->shape;
    int64_t i = block / g->across * g->rows, j = block % g->across * g->cols;
    R(gemm_direct)(g->c + i * s->c_row + j, g->plus ? g->plus + i * g->plus_row + j : NULL,
                   g->plus_row, g->a + i * s->a_row, g->b + j * s->b_col, s,
                   mg_min(g->rows, s->m - i), mg_min(g->cols, s->n - j));
}

/* ---- with both operands packed --------------------------------------------------------------- */

/* A block of rows of A, packed into L2, times all of B, which the first block of rows packs. */
typedef struct {
    const mg_gemm_shape *shape;
    real *c, *packed_a, *packed_b;
    const real *plus, *a, *b;
    int64_t plus_row, rows, cols, depth, group; /* group: panels of B that one block does */
    bool packs_b, reads_b; /* packs_b: packs the panels of B; reads_b: reads B in place */
    /* packs each group to a place of its own: for more rows of A, or for several threads */
    bool keeps_b;
    bool along;   /* tiles go along rows of C */
} R(gemm_packing);

static void R(gemm_pack_block)(void *context, int64_t block) {
    const R(gemm_packing) *t = context;
    const mg_gemm_shape *s = t->shape;
    int64_t i = block * GEMM_MR;
    R(gemm_pack_a)(t->packed_a + block * GEMM_PANEL(GEMM_MR, t->depth), t->a + i * s->a_row,
                   s->a_row, s->a_col, (int)mg_min(GEMM_MR, t->rows - i), t->depth);
}

/* Tile (i, j) of C from a tile of B at b with row stride b_row. B is packed to `kept` unless that
 * is NULL. */
static MG_NOINLINE void R(gemm_macro_tile)(const R(gemm_packing) *t, int64_t i, int64_t j,
                                            const real *b, int64_t b_row, real *kept,
                                            const real *ahead, int64_t ahead_row, int64_t share) {
    const real *a = t->packed_a + i / GEMM_MR * GEMM_PANEL(GEMM_MR, t->depth);
    real *c = t->c + i * t->shape->c_row + j;
    const real *plus = t->plus ? t->plus + i * t->plus_row + j : NULL;
    int rows = (int)mg_min(GEMM_MR, t->rows - i), cols = (int)mg_min(GEMM_NR, t->cols - j);
    if (cols < GEMM_NR || rows < GEMM_MR)
        R(gemm_micro_kernel_any)(rows, cols, c, t->shape->c_row, a, 1, GEMM_MR, b, b_row, t->depth, plus,
                         t->plus_row);
    else
        R(gemm_micro_kernel_packed)(c, t->shape->c_row, a, b, b_row, t->depth, plus, t->plus_row, kept,
                            ahead, ahead_row, share);
}

#if GEMM_RUNS
/* Computes `tiles` tiles from (i, j) on with the panel of B at b, where all panels are packed. */
static void R(gemm_macro_run)(const R(gemm_packing) *t, int64_t i, int64_t j, const real *b,
                               const real *ahead, int64_t ahead_row, int64_t share, int64_t tiles) {
    const mg_gemm_shape *s = t->shape;
    int64_t panel = GEMM_PANEL(GEMM_MR, t->depth);
    R(gemm_tiles) run = {
        .c = t->c + i * s->c_row + j,
        .plus = t->plus ? t->plus + i * t->plus_row + j : NULL,
        .a = t->packed_a + i / GEMM_MR * panel,
        .b = b,
        .ahead = ahead,
        .c_row = s->c_row,
        .plus_row = t->plus_row,
        .ahead_row = ahead_row,
        .k = t->depth,
        .share = share,
        .tiles = tiles,
        .c_next = t->along ? GEMM_NR : GEMM_MR * s->c_row,
        .plus_next = t->along ? GEMM_NR : GEMM_MR * t->plus_row,
        .a_next = t->along ? 0 : panel,
        .b_next = t->along ? GEMM_PANEL(GEMM_NR, t->depth) : 0,
    };
    R(gemm_run_packed)(&run);
}
#endif

/* The macro-kernel for a group of panels of B, packed or in place. Each panel of B serves all
 * panels of A, which stream from L2, while the next panel of B is prefetched. With tiles along rows
 * of C, each panel of A serves all panels of the group instead. Panels of B with contiguous rows
 * are packed by the first tile that reads them. */
static MG_NOINLINE void R(gemm_macro_kernel)(void *context, int64_t block) {
    const R(gemm_packing) *t = context;
    const mg_gemm_shape *s = t->shape;
    int64_t panel = GEMM_PANEL(GEMM_NR, t->depth);
    int64_t j = block * t->group * GEMM_NR, end = mg_min(j + t->group * GEMM_NR, t->cols);
    real *packed = t->packed_b + (t->keeps_b ? block * t->group * panel : 0);
    bool lies = t->reads_b && (GEMM_MASKS || (end - j) % GEMM_NR == 0), packs = t->packs_b && !lies;
    bool keeps = packs && s->b_col == 1;
    /* panels up to here are read in place */
    int64_t whole = lies ? end : keeps ? j + (end - j) / GEMM_NR * GEMM_NR : j;
    int64_t tiles = mg_ceil_div(t->rows, GEMM_MR), across = mg_ceil_div(end - j, GEMM_NR);
    int64_t outer = t->along ? tiles : across, inner = t->along ? across : tiles;
    /* or fetches the place of the next panel */
    bool fetches = !lies && !t->along && (keeps || t->keeps_b);
    int64_t share = fetches ? mg_ceil_div(t->depth, tiles) : 0; /* rows of B for a tile */
    for (int64_t o = 0; o < outer; o++)
        for (int64_t q = 0; q < inner; q++) {
            int64_t down = t->along ? o : q, right = t->along ? q : o;
            int64_t x = j + right * GEMM_NR, next = x + GEMM_NR;
            real *own = packed + right * panel;
            bool reads = x < whole && (lies || down == 0), follows = keeps && next < whole;
            if (packs && down == 0 && !reads)
                R(gemm_pack_b)(own, t->b + x * s->b_col, s->b_row, s->b_col,
                               (int)mg_min(GEMM_NR, end - x), t->depth);
            const real *ahead = follows ? t->b + next : own + panel;
            int64_t ahead_row = follows ? s->b_row : GEMM_NR;
#if GEMM_RUNS
            /* This tile and the full tiles that follow it. */
            int64_t run = (t->along ? (end - j) / GEMM_NR : t->rows / GEMM_MR) - q;
            bool full = t->along ? down > 0 && (down + 1) * GEMM_MR <= t->rows : next <= end;
            if (run > 0 && full && !reads) {
                R(gemm_macro_run)(t, down * GEMM_MR, x, own, ahead + down * share * ahead_row,
                                   ahead_row, share, run);
                q += run - 1;
                continue;
            }
#endif
            R(gemm_macro_tile)(t, down * GEMM_MR, x, reads ? t->b + x : own,
                                reads ? s->b_row : GEMM_NR, reads && keeps ? own : NULL,
                                ahead + down * share * ahead_row, ahead_row, share);
        }
}

/* Height of the blocks that m is cut into: as equal as tiles allow. There is one block if no full
 * tile would be left over. */
MG_INLINE int64_t R(gemm_rows)(int64_t m) {
    int64_t most = gemm_most_rows(R(GEMM_MC));
    if (m < most + GEMM_MR) return m;
    return mg_min(m, gemm_round_up(mg_ceil_div(m, mg_ceil_div(m, most)), GEMM_MR));
}

static void R(gemm_packed)(real *c, const real *plus, int64_t plus_row, const real *a,
                           const real *b, const mg_gemm_shape *s, real *scratch) {
    int64_t deepest = R(gemm_depth)(s), highest = R(gemm_rows)(s->m);
    int64_t room_a = mg_ceil_div(highest, GEMM_MR) * GEMM_PANEL(GEMM_MR, deepest);
    bool threads = s->m * s->n * s->k >= MG_GEMM_THREAD_WORK && mg_get_num_threads() > 1;
    bool along = R(gemm_goes_along)(s);
    bool reads_b = !GEMM_RUNS && !along && !R(gemm_lies_badly)(s) && R(gemm_is_small)(s);
    /* Panels that are packed together make long runs, but there must be at least four shares. */
    int64_t most = along ? GEMM_ALONG : GEMM_GROUP;
    int64_t group = mg_max(1, mg_min(s->n / (4 * GEMM_NR), most));
    for (int64_t j = 0; j < s->n; j += GEMM_NC)
        for (int64_t p = 0; p < s->k; p += deepest)
            for (int64_t i = 0; i < s->m; i += highest) {
                const real *first = plus ? plus + i * plus_row + j : NULL;
                R(gemm_packing) t = {
                    .shape = s,
                    .c = c + i * s->c_row + j,
                    .plus = p > 0 ? c + i * s->c_row + j : first,
                    .plus_row = p > 0 ? s->c_row : plus_row,
                    .packed_a = scratch,
                    .packed_b = scratch + room_a,
                    .a = a + i * s->a_row + p * s->a_col,
                    .b = b + p * s->b_row + j * s->b_col,
                    .rows = mg_min(highest, s->m - i),
                    .cols = mg_min(GEMM_NC, s->n - j),
                    .depth = mg_min(deepest, s->k - p),
                    .group = (i > 0 && !along) || reads_b ? 1 : group,
                    .packs_b = i == 0,
                    .reads_b = reads_b,
                    .keeps_b = threads || s->m > highest,
                    .along = along,
                };
                mg_parallel_if(threads, mg_ceil_div(t.rows, GEMM_MR), R(gemm_pack_block), &t);
                mg_parallel_if(threads, mg_ceil_div(t.cols, t.group * GEMM_NR),
                               R(gemm_macro_kernel), &t);
            }
}

/* ---- vectors --------------------------------------------------------------------------------- */

/* The product as row vector (x, x_step) times matrix (b_row, b_col) with n outputs. If neither rows
 * nor columns are contiguous, the sums have the order of a contiguous matrix. `dots`: a matrix
 * times a column vector, which sums by dot products. */
typedef struct {
    real *y;
    const real *x, *b;
    int64_t x_step, b_row, b_col, n, k, cols;
    bool dots;
} R(gemm_vector);

static void R(gemm_vector_block)(void *context, int64_t block) {
    const R(gemm_vector) *t = context;
    int64_t j = block * t->cols, n = mg_min(t->cols, t->n - j);
    const real *b = t->b + j * t->b_col;
    bool rows = t->b_col == 1 && t->b_row != 0, columns = t->b_row == 1 && t->b_col != 0;
    if (t->n == 1 || (t->dots ? !rows || (columns && t->k > 1) : columns && !rows))
        R(gemm_vector_cols)(t->y + j, t->x, t->x_step, b, t->b_row, t->b_col, n, t->k, t->n == 1);
    else if (t->b_col == 1)
        R(gemm_vector_rows)(t->y + j, t->x, t->x_step, b, t->b_row, n, t->k);
    else
        R(gemm_vector_steps)(t->y + j, t->x, t->x_step, b, t->b_row, t->b_col, n, t->k);
}

/* ---- choice ---------------------------------------------------------------------------------- */

/* True if an unpacked B crowds L1, and is larger than stays in L2 or shared by many rows of A. */
MG_INLINE bool R(gemm_crowded)(const mg_gemm_shape *s) {
    bool beyond = s->n * s->k * (int)sizeof(real) > GEMM_DIRECT && !R(gemm_copies)(s);
    return R(gemm_crowds)(s) && (beyond || (s->n >= 128 && s->m >= 256 && s->m > s->n));
}

/* True if packing pays: B is not small, has a bad layout or crowds L1. Packing also pays if the
 * rows of A are not contiguous, and for few steps that make a large C. A packed product has threads
 * within itself, instead of one for each product of a stack. Small products are therefore not
 * packed. */
MG_INLINE bool R(gemm_packs)(const mg_gemm_shape *s) {
    bool collides = R(gemm_collides)(s);
    return s->m > (collides ? GEMM_MR : 4 * GEMM_MR) && s->n > 3 * GEMM_NR &&
           s->m * s->n * s->k > (collides ? MG_GEMM_THREAD_WORK - 1 : 128 * 128 * 128) &&
           (s->a_col != 1 || R(gemm_lies_badly)(s) || !R(gemm_is_small)(s) ||
            R(gemm_goes_along)(s) || R(gemm_crowded)(s)) &&
           !R(gemm_panels)(s);
}

MG_INLINE R(gemm_vector) R(gemm_vector_of)(real *c, const real *a, const real *b,
                                           const mg_gemm_shape *s) {
    R(gemm_vector) t = {c, a, b, s->a_col, s->b_row, s->b_col, s->n, s->k, s->n, false};
    if (s->n == 1 && s->m > 1)
        t = (R(gemm_vector)){c, b, a, s->b_row, s->a_col, s->a_row, s->m, s->k, s->m, true};
    if (t.n == 1 && t.b_row != 1) /* a dot product: the contiguous operand plays the matrix */
        t = (R(gemm_vector)){c, t.b, t.x, t.b_row, t.x_step, 0, 1, s->k, 1, true};
    return t;
}

static void R(gemm_vector_product)(real *c, const real *a, const real *b, const mg_gemm_shape *s) {
    R(gemm_vector) t = R(gemm_vector_of)(c, a, b, s);
    bool threads = t.n * t.k >= MG_GEMM_THREAD_WORK / 8 && mg_get_num_threads() > 1;
    /* Memory bandwidth is the limit: wider blocks read longer pieces of rows. */
    if (threads && t.b_col != 1) {
        t.cols = gemm_round_up(mg_ceil_div(t.n, 16), 64);
    } else if (threads) {
        int64_t share = mg_ceil_div(t.n, mg_get_num_threads());
        t.cols = gemm_round_up(mg_min(mg_max(share, 512), 2048), 64);
    }
    mg_parallel_if(threads, mg_ceil_div(t.n, t.cols), R(gemm_vector_block), &t);
}

/* True if one side is a vector, which has kernels of its own. */
MG_INLINE bool R(gemm_is_vector)(const mg_gemm_shape *s) {
    return s->m == 1 || (s->n == 1 && s->c_row == 1);
}

/* True if one tile does it all, and B is so small that it is quickly copied to where the tile reads
 * it. */
MG_INLINE bool R(gemm_is_tiny)(const mg_gemm_shape *s) {
    return s->m <= GEMM_MR && s->k <= GEMM_TINY && s->n <= GEMM_TINY && s->n <= GEMM_NR;
}

static MG_NOINLINE void R(gemm_tiny)(real *c, const real *plus, int64_t plus_row, const real *a,
                                     const real *b, const mg_gemm_shape *s) {
    _Alignas(64) real rows[GEMM_TINY * GEMM_NR];
    for (int64_t p = 0; p < s->k; p++) {
        MG_UNROLL
        for (int v = 0; v < GEMM_NV; v++) v_store(rows + p * GEMM_NR + v * LANES, v_set1(0));
        for (int64_t j = 0; j < s->n; j++) {
            MG_AS_IT_IS;
            rows[p * GEMM_NR + j] = b[p * s->b_row + j * s->b_col];
        }
    }
    R(gemm_micro_kernel_any)((int)s->m, (int)s->n, c, s->c_row, a, s->a_row, s->a_col, rows, GEMM_NR, s->k,
                     plus, plus_row);
}

/* True if one tile does it all, and reads B in place. */
MG_INLINE bool R(gemm_is_tile)(const mg_gemm_shape *s) {
    return s->m <= GEMM_MR && s->n <= GEMM_NR && s->k <= GEMM_PAGES && s->b_col == 1 &&
           (GEMM_MASKS || s->n % LANES == 0);
}

size_t R(mg_gemm_scratch)(const mg_gemm_shape *s) {
    if (R(gemm_is_vector)(s) || !R(gemm_packs)(s)) return 0;
    int64_t k = R(gemm_depth)(s);
    int64_t a = mg_ceil_div(R(gemm_rows)(s->m), GEMM_MR) * GEMM_PANEL(GEMM_MR, k);
    int64_t b = mg_ceil_div(mg_min(s->n, GEMM_NC), GEMM_NR) * GEMM_PANEL(GEMM_NR, k);
    return (size_t)(a + b) * sizeof(real);
}

void R(mg_gemm)(real *c, const real *plus, int64_t plus_row, const real *a, const real *b,
                const mg_gemm_shape *s, void *scratch) {
    bool tiny = R(gemm_is_tiny)(s);
    if (R(gemm_is_vector)(s) && !tiny) {
        R(gemm_vector_product)(c, a, b, s);
        for (int64_t i = 0; plus && i < s->m; i++)
            for (int64_t j = 0; j < s->n; j++) c[i * s->c_row + j] += plus[i * plus_row + j];
    } else if (R(gemm_is_tile)(s) || (tiny && GEMM_MASKS && s->n == 1)) {
        R(gemm_micro_kernel_any)((int)s->m, (int)s->n, c, s->c_row, a, s->a_row, s->a_col, b, s->b_row,
                         s->k, plus, plus_row);
    } else if (tiny) {
        R(gemm_tiny)(c, plus, plus_row, a, b, s);
    } else if (R(gemm_packs)(s)) {
        R(gemm_packed)(c, plus, plus_row, a, b, s, scratch);
    /* too small to pay for planning, with its divisions */
    } else if (s->m * s->n * s->k <= GEMM_SMALL) {
        R(gemm_direct)(c, plus, plus_row, a, b, s, s->m, s->n);
    } else {
        /* Cuts the longer side, or the side that tiles do not go along. The cuts fall between
         * tiles. Rows of A that are copied should be copied once, instead of again for each
         * block. */
        R(gemm_grid) g = {c, plus, a, b, s, plus_row, s->m, s->n, 1};
        bool threads = s->m * s->n * s->k >= MG_GEMM_THREAD_WORK && mg_get_num_threads() > 1;
        bool copies = R(gemm_copies)(s), along = R(gemm_is_shallow)(s) || (threads && copies);
        if (s->m > s->n || (along && s->m > 4 * GEMM_MR)) {
            int64_t rows = gemm_round_up(mg_ceil_div(s->m, 32), GEMM_MR);
            g.rows = mg_min(mg_max(rows, 2 * GEMM_MR), R(GEMM_MC));
        } else if (threads) {
            g.cols = gemm_round_up(mg_ceil_div(s->n, copies ? 8 : 32), GEMM_NR);
            g.across = mg_ceil_div(s->n, g.cols);
            if (g.across < 16 && s->m >= 8 * GEMM_MR && !R(gemm_panels)(s))
                g.rows = gemm_round_up(mg_ceil_div(s->m, 2), GEMM_MR);
        }
        mg_parallel_if(threads, mg_ceil_div(s->m, g.rows) * g.across, R(gemm_direct_block), &g);
    }
}

void R(mg_gemm_block)(real *c, const real *a, const real *b, const mg_gemm_shape *s, bool add) {
    if (!add && R(gemm_is_vector)(s)) {
        R(gemm_vector) t = R(gemm_vector_of)(c, a, b, s);
        R(gemm_vector_block)(&t, 0);
    } else {
        R(gemm_direct)(c, add ? c : NULL, s->c_row, a, b, s, s->m, s->n);
    }
}
