/* sort.inc.c: a stable sort of keys with their places, for keys and places of one width.
 *
 * The includer defines SORT_WORD, the unsigned type, SORT_SIGNED, and S(name). */

typedef struct {
    SORT_WORD key, place;
} S(sort_item);

/* ---- short lines ---- */

enum { S(SORT_SHORT) = SORT_SHORT_BYTES / sizeof(SORT_WORD) };

typedef SORT_SIGNED S(sort_vec) __attribute__((vector_size(MG_VECTOR_BYTES)));

typedef union {
    SORT_SIGNED word[S(SORT_SHORT)];
    S(sort_vec) vec[SORT_SHORT_BYTES / MG_VECTOR_BYTES];
} S(sort_words);

/* ranks[i] = how many of a short line's elements come before element i in sorted order: each is
 * compared with each, a vector of them at a time, which is sooner done than branching. Vectors
 * compare signed integers. Returns how many elements have the greatest key there is. */
static int64_t S(sort_short)(const sort_job *job, int64_t first, S(sort_vec) *ranks) {
    enum { WIDE = MG_VECTOR_BYTES / sizeof(SORT_WORD) };
    S(sort_words) keys;
    const SORT_WORD sign = (SORT_WORD)1 << (8 * sizeof(SORT_WORD) - 1);
    const SORT_WORD flip = job->descending ? (SORT_WORD)~sign : sign;
    int64_t n = job->lines.n, count = mg_ceil_div(n, WIDE), greatest = 0;
    keys.vec[count - 1] = (S(sort_vec)){0};
    for (int64_t i = 0; i < n; i++) {
        SORT_WORD key = S(sort_key)(job->dtype, job->x, first + i * job->lines.inner);
        keys.word[i] = (SORT_SIGNED)(key ^ flip);
        greatest += key == (SORT_WORD)-1;
    }
    S(sort_vec) lane;
    for (int l = 0; l < WIDE; l++) lane[l] = l;
    for (int64_t v = 0; v < count; v++) {
        S(sort_vec) some = keys.vec[v], rank = {0};
        int64_t from = v * WIDE, to = mg_min(from + WIDE, n), j = 0;
        for (; j < from; j++) rank -= keys.word[j] <= some;
        for (; j < to; j++) {
            S(sort_vec) before = (SORT_SIGNED)(j - from) < lane;
            rank -= (keys.word[j] < some) | ((keys.word[j] == some) & before);
        }
        for (; j < n; j++) rank -= keys.word[j] < some;
        ranks[v] = rank;
    }
    return greatest;
}

/* ---- long lines ---- */

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

/* places[i * stride] = where in the line the i-th element of its sorted order is, for the first
 * `found`; there is room for 2 n items at `scratch`. */
static void S(sort_line)(const sort_job *job, int64_t *places, int64_t first, void *scratch) {
    int64_t n = job->lines.n, stride = job->lines.inner;
    if (n <= S(SORT_SHORT)) {
        S(sort_words) ranks;
        S(sort_short)(job, first, ranks.vec);
        for (int64_t i = 0; i < n; i++)
            if ((int64_t)ranks.word[i] < job->found) places[(int64_t)ranks.word[i] * stride] = i;
        return;
    }
    S(sort_item) *items = scratch;
    for (int64_t i = 0; i < n; i++) {
        SORT_WORD key = S(sort_key)(job->dtype, job->x, first + i * stride);
        items[i].key = job->descending ? (SORT_WORD)~key : key;
        items[i].place = (SORT_WORD)i;
    }
    items = S(sort_radix)(items, items + n, n);
    for (int64_t i = 0; i < job->found; i++) places[i * stride] = (int64_t)items[i].place;
}

/* ---- the element of a rank ---- */

/* What is the key of a rank in sorted order, the how manieth of those that have it that is, and how
 * many have it. By one byte after the other, the most significant first, of the keys that agree
 * with it so far (Hoare's selection, with 256 parts at a time); these are kept at `some`. */
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

/* Where the n-th of the keys that equal one is. */
static int64_t S(place_of)(const SORT_WORD *keys, SORT_WORD key, int64_t nth) {
    int64_t i = 0;
    for (;; i++)
        if (keys[i] == key && nth-- == 0) return i;
}

/* The places of one or two elements in sorted order, the second next to the first or the same;
 * there is room for 2 n keys at `scratch`. */
static void S(rank_line)(const sort_job *job, int64_t *places, int64_t first, void *scratch) {
    int64_t n = job->lines.n, inner = job->lines.inner, greatest = 0, lower, upper;
    if (n <= S(SORT_SHORT)) {
        S(sort_words) ranks;
        greatest = S(sort_short)(job, first, ranks.vec);
        ranks_asked(job, greatest, &lower, &upper);
        for (int64_t i = 0; i < n; i++) {
            if ((int64_t)ranks.word[i] == lower) places[0] = i;
            if ((int64_t)ranks.word[i] == upper) places[inner * (job->found - 1)] = i;
        }
        return;
    }
    SORT_WORD *keys = scratch, *some = keys + n;
    for (int64_t i = 0; i < n; i++) {
        keys[i] = S(sort_key)(job->dtype, job->x, first + i * inner);
        greatest += keys[i] == (SORT_WORD)-1;
    }
    ranks_asked(job, greatest, &lower, &upper);
    S(sort_rank) at = S(select)(keys, some, n, lower);
    places[0] = S(place_of)(keys, at.key, at.nth);
    if (job->found == 1) return;
    if (upper > lower && ++at.nth == at.equal) { /* the least of the keys above it */
        SORT_WORD least = (SORT_WORD)-1;
        for (int64_t i = 0; i < n; i++)
            least = keys[i] > at.key && keys[i] < least ? keys[i] : least;
        at = (S(sort_rank)){least, 0, 1};
    }
    places[inner] = upper > lower ? S(place_of)(keys, at.key, at.nth) : places[0];
}
