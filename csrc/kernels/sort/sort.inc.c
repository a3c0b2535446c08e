/* sort.inc.c: a stable sort of keys with their indices, for keys and indices of one width; a
 * template.
 *
 * The file that includes it defines SORT_WORD, an unsigned type; SORT_SIGNED, the signed type of
 * that width; and SORT_REAL, the float type of that width. It also defines SORT_VEC(name) for
 * vectors of SORT_REAL, and S(name) for all names. SORT_COMPARED is true if vectors of such words
 * can be compared.
 */

typedef struct {
    SORT_WORD key, place;
} S(sort_item);

/* ---- short lines ---- */

enum {
    S(SORT_SHORT) = SORT_SHORT_BYTES / sizeof(SORT_WORD),
    S(SORT_WIDE) = MG_VECTOR_BYTES / sizeof(SORT_WORD)
};

typedef SORT_SIGNED S(sort_vec) __attribute__((vector_size(MG_VECTOR_BYTES)));

typedef union {
    SORT_SIGNED word[S(SORT_SHORT)];
    S(sort_vec) vec[SORT_SHORT_BYTES / MG_VECTOR_BYTES];
} S(sort_words);

/* Reads the keys of a short line as signed integers, whose order vectors can compare. The rest of
 * the last vector is 0. A contiguous line is read by vectors: loading a vector from words just
 * written waits for all of these stores. Returns the number of elements with the greatest key. */
MG_INLINE int64_t S(sort_keys)(const sort_job *job, int64_t first, S(sort_words) *keys) {
    const SORT_WORD sign = (SORT_WORD)1 << (8 * sizeof(SORT_WORD) - 1);
    const SORT_SIGNED flip = job->descending ? -1 : 0;
    int64_t n = job->lines.n, count = mg_ceil_div(n, S(SORT_WIDE)), greatest = 0;
    if (job->lines.inner > 1 || job->dtype == MG_BOOL) {
        keys->vec[count - 1] = (S(sort_vec)){0};
        for (int64_t i = 0; i < n; i++) {
            MG_AS_IT_IS;
            SORT_WORD key = S(sort_key)(job->dtype, job->x, first + i * job->lines.inner);
            keys->word[i] = (SORT_SIGNED)(key ^ sign) ^ flip;
            greatest += key == (SORT_WORD)-1;
        }
        return greatest;
    }
    const SORT_REAL *x = (const SORT_REAL *)job->x + first;
    S(sort_vec) many = {0}; /* the number of greatest keys, negated, in each lane */
    MG_ROLLED
    for (int64_t v = 0; v < count; v++) {
        int64_t from = v * S(SORT_WIDE), left = mg_min(n - from, S(SORT_WIDE));
        SORT_VEC(vec) some = left < S(SORT_WIDE) ? SORT_VEC(v_load_n)(x + from, (int)left)
                                             : SORT_VEC(v_load)(x + from);
        S(sort_vec) key = (S(sort_vec))some;
        if (job->dtype != MG_INT64) { /* as in order.h */
            S(sort_vec) nan = (S(sort_vec))(some != some);
            key = (S(sort_vec))(some + (SORT_REAL)0);
            key ^= key >> (8 * sizeof(SORT_WORD) - 1) & (SORT_SIGNED)~sign;
            key = (nan & (SORT_SIGNED)~sign) | (~nan & key);
        }
        many += key == (SORT_SIGNED)~sign;
        keys->vec[v] = key ^ flip;
    }
    if (job->task == SORT_FIRST) return 0;
    MG_ROLLED
    for (int l = 0; l < S(SORT_WIDE); l++) {
        MG_AS_IT_IS;
        greatest -= many[l];
    }
    return greatest;
}

/* ranks[i] = the number of elements of a short line that come before element i in sorted order.
 * Each element is compared with each other one, a vector at a time, which is faster than branching.
 * Returns the result of sort_keys. */
static int64_t S(sort_short)(const sort_job *job, int64_t first, S(sort_words) *ranks) {
    S(sort_words) keys;
    int64_t greatest = S(sort_keys)(job, first, &keys), n = job->lines.n;
    S(sort_vec) lane;
    for (int l = 0; l < S(SORT_WIDE); l++) lane[l] = l;
    MG_ROLLED
    for (int64_t v = 0, from = 0; from < n; v++, from += S(SORT_WIDE)) {
        S(sort_vec) some = keys.vec[v], rank = {0};
        int64_t to = mg_min(from + S(SORT_WIDE), n), j = 0;
        for (; j < from; j++) rank -= keys.word[j] <= some;
        for (; j < to; j++) {
            S(sort_vec) before = (SORT_SIGNED)(j - from) < lane;
            rank -= (keys.word[j] < some) | ((keys.word[j] == some) & before);
        }
        for (; j < n; j++) rank -= keys.word[j] < some;
        ranks->vec[v] = rank;
    }
    return greatest;
}

/* ---- long lines ---- */

/* Radix sort by bytes, the least significant first. A byte that is the same in all keys needs no
 * pass. Returns the one of the two arrays that holds the result. */
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

static void S(sort_insert)(S(sort_item) *items, int64_t n) {
    for (int64_t i = 1; i < n; i++) {
        S(sort_item) item = items[i];
        int64_t to = i;
        for (; to > 0 && items[to - 1].key > item.key; to--) items[to] = items[to - 1];
        items[to] = item;
    }
}

/* All elements of a line in sorted order. `items` has room for 2 n. *greatest is increased by the
 * number of elements with the greatest key. Short lines come here only if vectors of such words
 * cannot be compared. */
static S(sort_item) *S(sort_items)(const sort_job *job, int64_t first, S(sort_item) *items,
                                   int64_t *greatest) {
    int64_t n = job->lines.n;
    for (int64_t i = 0; i < n; i++) {
        SORT_WORD key = S(sort_key)(job->dtype, job->x, first + i * job->lines.inner);
        *greatest += key == (SORT_WORD)-1;
        items[i].key = job->descending ? (SORT_WORD)~key : key;
        items[i].place = (SORT_WORD)i;
    }
    if (SORT_COMPARED || n > S(SORT_SHORT)) return S(sort_radix)(items, items + n, n);
    S(sort_insert)(items, n);
    return items;
}

/* places[i * stride] = the index in the line of the i-th element in sorted order, for the first
 * `found` elements. `scratch` has room for 2 n items. */
static void S(sort_line)(const sort_job *job, int64_t *places, int64_t first, void *scratch) {
    int64_t n = job->lines.n, stride = job->lines.inner, greatest = 0;
    if (SORT_COMPARED && n <= S(SORT_SHORT)) {
        S(sort_words) ranks;
        S(sort_short)(job, first, &ranks);
        for (int64_t i = 0; i < n; i++)
            if ((int64_t)ranks.word[i] < job->found) places[(int64_t)ranks.word[i] * stride] = i;
        return;
    }
    const S(sort_item) *items = S(sort_items)(job, first, scratch, &greatest);
    for (int64_t i = 0; i < job->found; i++) places[i * stride] = (int64_t)items[i].place;
}

/* ---- selection by rank -------- */

/* Selects the key of a rank in sorted order. `nth`: the element's number among those with that key.
 * `equal`: the number of elements with that key. Bytes are compared one after the other, the most
 * significant first, among the keys that agree so far. That is Hoare's selection with 256 parts at
 * a time. The keys that agree are kept at `some`. */
typedef struct {
    SORT_WORD key;
    int64_t nth, equal;
} S(sort_rank);

static S(sort_rank) S(select)(const SORT_WORD *keys, SORT_WORD *some, int64_t n, int64_t rank) {
    for (int shift = 8 * sizeof(SORT_WORD) - 8;; shift -= 8) {
        int64_t count[256] = {0}, left = 0;
        unsigned digit = 0;
        for (int64_t i = 0; i < n; i++) count[keys[i] >> shift & 255]++;
        for (; rank >= count[digit]; digit++) rank -= count[digit];
        if (count[digit] < n || keys != some) {
            for (int64_t i = 0; i < n; i++) {
                some[left] = keys[i];
                left += (keys[i] >> shift & 255) == digit;
            }
            keys = some;
            n = left;
        }
        if (n == 1 || shift == 0) return (S(sort_rank)){keys[0], rank, n};
    }
}

/* The index of the n-th element that equals the key. */
static int64_t S(place_of)(const SORT_WORD *keys, SORT_WORD key, int64_t nth) {
    int64_t i = 0;
    for (;; i++)
        if (keys[i] == key && nth-- == 0) return i;
}

/* The indices of the elements of the ranks that are asked for. `scratch` has room for 2 n keys, or
 * for 2 n items if the line is sorted. */
static void S(rank_line)(const sort_job *job, int64_t *places, int64_t first, void *scratch) {
    int64_t n = job->lines.n, inner = job->lines.inner, greatest = 0, found = job->found;
    if (SORT_COMPARED && n <= S(SORT_SHORT)) {
        S(sort_words) ranks;
        greatest = S(sort_short)(job, first, &ranks);
        for (int64_t f = 0; f < found; f++) {
            int64_t rank = rank_asked(job, greatest, f);
            for (int64_t i = 0; i < n; i++)
                if ((int64_t)ranks.word[i] == rank) places[f * inner] = i;
        }
        return;
    }
    if (job->sorts || n <= S(SORT_SHORT)) {
        const S(sort_item) *items = S(sort_items)(job, first, scratch, &greatest);
        for (int64_t f = 0; f < found; f++)
            places[f * inner] = (int64_t)items[rank_asked(job, greatest, f)].place;
        return;
    }
    SORT_WORD *keys = scratch, *some = keys + n;
    for (int64_t i = 0; i < n; i++) {
        keys[i] = S(sort_key)(job->dtype, job->x, first + i * inner);
        greatest += keys[i] == (SORT_WORD)-1;
    }
    int64_t lower = rank_asked(job, greatest, 0), upper = rank_asked(job, greatest, found - 1);
    S(sort_rank) at = S(select)(keys, some, n, lower);
    places[0] = S(place_of)(keys, at.key, at.nth);
    if (found == 1) return;
    if (upper > lower && ++at.nth == at.equal) { /* the least key above it */
        SORT_WORD least = (SORT_WORD)-1;
        for (int64_t i = 0; i < n; i++)
            least = keys[i] > at.key && keys[i] < least ? keys[i] : least;
        at = (S(sort_rank)){least, 0, 1};
    }
    places[inner] = upper > lower ? S(place_of)(keys, at.key, at.nth) : places[0];
}
