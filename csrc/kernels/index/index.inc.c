/* index.inc.c: rows combined into rows at given offsets, in order, for one element type; a
 * template.
 *
 * The file that includes it defines ELEMENT, INDEX_NAME(name), and ARITHMETIC, the type in which
 * ELEMENT wraps around.
 */

MG_INLINE ELEMENT INDEX_NAME(index_combined)(int op, ELEMENT a, ELEMENT b) {
    switch (op) {
    case MG_SUM: return (ELEMENT)((ARITHMETIC)a + (ARITHMETIC)b);
    case MG_PROD: return (ELEMENT)((ARITHMETIC)a * (ARITHMETIC)b);
    /* if two do not compare, one is NaN, and so is the sum */
    case MG_MAX: return b <= a ? a : b > a ? b : (ELEMENT)(a + b);
    default: return b >= a ? a : b < a ? b : (ELEMENT)(a + b);
    }
}

MG_INLINE void INDEX_NAME(index_rows_by)(int op, ELEMENT *to, const ELEMENT *from,
                                         const index_plan *plan, int64_t begin, int64_t end) {
    if (plan->row == 1 && !plan->order) {
        for (int64_t k = begin; k < end; k++) {
            ELEMENT *one = to + plan->offsets[k];
            *one = INDEX_NAME(index_combined)(op, *one, from[k]);
        }
        return;
    }
    for (int64_t k = begin; k < end; k++) {
        int64_t i = k;
        if (plan->order) i = index_sorted(plan, (const char *)from, sizeof(ELEMENT), k, end);
        ELEMENT *restrict row = to + plan->offsets[i];
        const ELEMENT *restrict value = from + i * plan->row;
        MG_APART for (int64_t j = 0; j < plan->row; j++) /* not vectorised for all types */
            row[j] = INDEX_NAME(index_combined)(op, row[j], value[j]);
    }
}

static void INDEX_NAME(index_rows)(int op, void *to, const void *from, const index_plan *plan,
                                   int64_t begin, int64_t end) {
    switch (op) {
    case MG_SUM: INDEX_NAME(index_rows_by)(MG_SUM, to, from, plan, begin, end); break;
    case MG_PROD: INDEX_NAME(index_rows_by)(MG_PROD, to, from, plan, begin, end); break;
    case MG_MAX: INDEX_NAME(index_rows_by)(MG_MAX, to, from, plan, begin, end); break;
    default: INDEX_NAME(index_rows_by)(MG_MIN, to, from, plan, begin, end);
    }
}

#undef ELEMENT
#undef ARITHMETIC
#undef INDEX_NAME
