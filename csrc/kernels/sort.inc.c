/* sort.inc.c: a stable sort of keys with their places, for keys and places of one width.
 *
 * The includer defines SORT_WORD, the unsigned type, and S(name). */

typedef struct {
    SORT_WORD key, place;
} S(sort_item);

static void S(sort_insert)(S(sort_item) *items, int64_t n) {
    for (int64_t i = 1; i < n; i++) {
        S(sort_item) item = items[i];
        int64_t to = i;
        for (; to > 0 && items[to - 1].key > item.key; to--) items[to] = items[to - 1];
        items[to] = item;
    }
}

/* By one byte after the other, the least significant first; a byte that is the same in all keys
 * needs no pass. Returns the one of the two arrays that holds the result. */
static S(sort_item) *S(sort_radix)(S(sort_item) *items, S(sort_item) *other, int64_t n) {
    enum { DIGITS = sizeof(SORT_WORD) };
    int64_t count[DIGITS][256] = {{0}};
    for (int64_t i = 0; i < n; i++)
        for (int d = 0; d < DIGITS; d++) count[d][items[i].key >> 8 * d & 255]++;
    for (int d = 0; d < DIGITS; d++) {
        if (count[d][items[0].key >> 8 * d & 255] == n) continue;
        int64_t start = 0;
        for (int b = 0; b < 256; b++) {
            int64_t size = count[d][b];
            count[d][b] = start;
            start += size;
        }
        for (int64_t i = 0; i < n; i++) other[count[d][items[i].key >> 8 * d & 255]++] = items[i];
        S(sort_item) *sorted = other;
        other = items;
        items = sorted;
    }
    return items;
}

/* places[i * stride] = where in the line the i-th element of its sorted order is; there is room for
 * 2 n items at `scratch`. */
MG_INLINE void S(sort_line)(int dtype, bool descending, int64_t *places, const void *x,
                            int64_t first, int64_t stride, int64_t n, void *scratch) {
    S(sort_item) *items = scratch;
    for (int64_t i = 0; i < n; i++) {
        SORT_WORD key = S(sort_key)(dtype, x, first + i * stride);
        items[i].key = descending ? (SORT_WORD)~key : key;
        items[i].place = (SORT_WORD)i;
    }
    if (n <= SORT_SHORT) S(sort_insert)(items, n);
    else items = S(sort_radix)(items, items + n, n);
    for (int64_t i = 0; i < n; i++) places[i * stride] = (int64_t)items[i].place;
}
