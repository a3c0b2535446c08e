/* random.c: uniform numbers of the counter-based generator Philox 4x64, in NumPy's order.
 *
 * The generator has ten rounds (Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as
 * 1, 2, 3", SC 2011). Each value of the counter gives four words, independently of all other
 * values. Threads therefore share a draw by ranges of the counter.
 */
#include "threads/pool.h"
#include "kernels/iterate/nditer.h"
#include "simd/transpose.h"

#include <string.h>

/* The number of rounds of Philox. */
enum { RANDOM_ROUNDS = 10 };

/* The multipliers, and the numbers added to the keys after every round. */
#define RANDOM_M0 0xD2E7470EE14C6C93u
#define RANDOM_M1 0xCA5A826395121157u
#define RANDOM_W0 0x9E3779B97F4A7C15u
#define RANDOM_W1 0xBB67AE8584CAA73Bu

/* The state as NumPy keeps it. The words of the current counter from `position` on are not yet
 * used. If has_half, the next 32-bit number is `half`, the upper half of the last word. */
typedef struct {
    uint64_t counter[4], key[2], words[4], position, has_half, half;
} random_state;

__extension__ typedef unsigned __int128 random_product;

/* The four words of the counter `ahead` beyond the current one. */
MG_INLINE void random_words(uint64_t *words, const random_state *s, uint64_t ahead) {
    uint64_t c[4], k0 = s->key[0], k1 = s->key[1];
    for (int i = 0; i < 4; i++) ahead = __builtin_add_overflow(s->counter[i], ahead, &c[i]);
    for (int round = 0; round < RANDOM_ROUNDS; round++) {
        random_product a = (random_product)RANDOM_M0 * c[0];
        random_product b = (random_product)RANDOM_M1 * c[2];
        c[0] = (uint64_t)(b >> 64) ^ c[1] ^ k0;
        c[1] = (uint64_t)b;
        c[2] = (uint64_t)(a >> 64) ^ c[3] ^ k1;
        c[3] = (uint64_t)a;
        k0 += RANDOM_W0;
        k1 += RANDOM_W1;
    }
    memcpy(words, c, sizeof c);
}

#if MG_VECTOR_BYTES == 64
/* Counters are computed in several vectors at once. A round waits for the round before, while the
 * vectors do not wait for each other. */
enum { RANDOM_LANES = 8, RANDOM_SIDE = 4, RANDOM_MANY = RANDOM_LANES * RANDOM_SIDE };
typedef uint64_t random_vec __attribute__((vector_size(64)));

/* The products of the lower halves of each lane. */
MG_INLINE random_vec random_halves(random_vec a, random_vec b) {
    return (random_vec)_mm512_mul_epu32((__m512i)a, (__m512i)b);
}

/* The upper and the lower half of m * v, from four products of halves. No intermediate sum
 * overflows. */
MG_INLINE void random_times(uint64_t m, random_vec v, random_vec *high, random_vec *low) {
    random_vec none = {0}, lower = none + 0xFFFFFFFFu, above = v >> 32;
    random_vec m_low = none + m, m_high = none + (m >> 32);
    random_vec first = random_halves(m_low, v);
    random_vec cross = random_halves(m_low, above) + (first >> 32);
    random_vec other = random_halves(m_high, v) + (cross & lower);
    *high = random_halves(m_high, above) + (cross >> 32) + (other >> 32);
    *low = (random_vec)_mm512_mask_shuffle_epi32((__m512i)first, 0xAAAA, (__m512i)other,
                                                 _MM_PERM_CCAA);
}

/* The words of RANDOM_MANY counters, from `ahead` on. */
static MG_NOINLINE void random_many(uint64_t *words, const random_state *s, uint64_t ahead) {
    random_vec c[RANDOM_SIDE][4], none = {0}, lane = {0, 1, 2, 3, 4, 5, 6, 7};
    uint64_t k0 = s->key[0], k1 = s->key[1], first;
    if (__builtin_add_overflow(s->counter[0], ahead, &first) || first + RANDOM_MANY < first) {
        /* the carry changes the counter's higher words */
        for (uint64_t i = 0; i < RANDOM_MANY; i++)
            random_words(words + 4 * i, s, ahead + i);
        return;
    }
    for (int k = 0; k < RANDOM_SIDE; k++) {
        c[k][0] = lane + (first + (uint64_t)k * RANDOM_LANES);
        for (int i = 1; i < 4; i++) c[k][i] = none + s->counter[i];
    }
    MG_ROLLED
    for (int round = 0; round < RANDOM_ROUNDS; round++) {
        MG_UNROLL
        for (int k = 0; k < RANDOM_SIDE; k++) {
            random_vec high[2], low[2];
            random_times(RANDOM_M0, c[k][0], &high[0], &low[0]);
            random_times(RANDOM_M1, c[k][2], &high[1], &low[1]);
            c[k][0] = high[1] ^ c[k][1] ^ (none + k0);
            c[k][1] = low[1];
            c[k][2] = high[0] ^ c[k][3] ^ (none + k1);
            c[k][3] = low[0];
        }
        k0 += RANDOM_W0;
        k1 += RANDOM_W1;
    }
    for (int k = 0; k < RANDOM_SIDE; k++) { /* transpose: each counter's four words side by side */
        random_vec transposed[4];
        MG_UNROLL
        for (int i = 0; i < 2; i++) {
            transposed[i] = TRANSPOSE_SHUFFLE(c[k][i], c[k][i + 2], TRANSPOSE_LO_f64);
            transposed[i + 2] = TRANSPOSE_SHUFFLE(c[k][i], c[k][i + 2], TRANSPOSE_HI_f64);
        }
        MG_UNROLL
        for (int i = 0; i < 4; i += 2) {
            c[k][i] = TRANSPOSE_SHUFFLE(transposed[i], transposed[i + 1], TRANSPOSE_LO_f64);
            c[k][i + 1] = TRANSPOSE_SHUFFLE(transposed[i], transposed[i + 1], TRANSPOSE_HI_f64);
        }
    }
    memcpy(words, c, sizeof c);
}

#else
enum { RANDOM_MANY = 1 }; /* with narrower vectors, no faster than counter by counter */
MG_INLINE void random_many(uint64_t *words, const random_state *s, uint64_t ahead) {
    random_words(words, s, ahead);
}
#endif

static void random_advance(random_state *s, uint64_t counters) {
    for (int i = 0; i < 4; i++)
        counters = __builtin_add_overflow(s->counter[i], counters, &s->counter[i]);
}

static uint64_t random_next(random_state *s) {
    if (s->position >= 4) {
        random_advance(s, 1);
        random_words(s->words, s, 0);
        s->position = 0;
    }
    return s->words[s->position++];
}

static uint32_t random_next_half(random_state *s) {
    if (s->has_half) {
        s->has_half = 0;
        return (uint32_t)s->half;
    }
    uint64_t word = random_next(s);
    s->has_half = 1;
    s->half = word >> 32;
    return (uint32_t)word;
}

/* ---- numbers made from words ---- */

enum random_kind { RANDOM_FLOAT32, RANDOM_FLOAT64, RANDOM_KEEP };

typedef struct {
    int kind;
    char *out;
    uint32_t least; /* RANDOM_KEEP: true if 24 random bits are at least this */
    int64_t counters;
    const random_state *state;
} random_job;

/* Converts n numbers: from 32 bits each, or in double from 64. */
static void random_convert(const random_job *job, int64_t at, const void *bits, int64_t n) {
    const uint32_t *halves = bits;
    const uint64_t *words = bits;
    if (job->kind == RANDOM_FLOAT32) {
        float *restrict out = (float *)job->out + at;
        for (int64_t i = 0; i < n; i++) out[i] = (float)(int32_t)(halves[i] >> 8) * 0x1p-24f;
    } else if (job->kind == RANDOM_FLOAT64) {
        double *restrict out = (double *)job->out + at;
        for (int64_t i = 0; i < n; i++) out[i] = (double)(int64_t)(words[i] >> 11) * 0x1p-53;
    } else {
        uint8_t *restrict out = (uint8_t *)job->out + at;
        for (int64_t i = 0; i < n; i++) out[i] = halves[i] >> 8 >= job->least;
    }
}

static void random_block(void *context, int64_t block) {
    const random_job *job = context;
    int64_t each = job->kind == RANDOM_FLOAT64 ? 4 : 8;
    int64_t end = mg_min((block + 1) * RANDOM_BLOCK, job->counters);
    for (int64_t i = block * RANDOM_BLOCK; i < end; i += RANDOM_WORDS / 4) {
        uint64_t words[RANDOM_WORDS];
        int64_t n = mg_min(RANDOM_WORDS / 4, end - i);
        for (int64_t j = 0; j < n; j += RANDOM_MANY) /* rounded up to whole vectors */
            random_many(words + 4 * j, job->state, (uint64_t)(i + j) + 1);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
        for (int64_t j = 0; each == 8 && j < 4 * n; j++) words[j] = words[j] << 32 | words[j] >> 32;
#endif
        random_convert(job, i * each, words, n * each);
    }
}

/* Fills n numbers of a kind: one by one up to the next counter, then by whole counters. */
static void random_fill(random_job job, int64_t n, random_state *s) {
    int64_t each = job.kind == RANDOM_FLOAT64 ? 4 : 8, size = job.kind == RANDOM_KEEP ? 1 : 32 / each;
    int64_t done = 0;
    while (done < n) {
        bool between = s->position < 4 || (each == 8 && s->has_half);
        if (!between && n - done >= each) {
            random_job rest = job;
            rest.out += done * size;
            rest.state = s;
            rest.counters = (n - done) / each;
            mg_parallel_for(mg_ceil_div(rest.counters, RANDOM_BLOCK), random_block, &rest);
            random_advance(s, (uint64_t)rest.counters);
            random_words(s->words, s, 0);
            if (each == 8) s->half = s->words[3] >> 32;
            done += rest.counters * each;
            continue;
        }
        uint64_t bits = each == 8 ? random_next_half(s) : random_next(s);
        uint32_t half = (uint32_t)bits;
        random_convert(&job, done++, each == 8 ? (void *)&half : (void *)&bits, 1);
    }
}

/* A generator as NumPy hands it to C, in random/bitgen.h. */
typedef struct {
    void *state;
    uint64_t (*next_word)(void *state);
    uint32_t (*next_half)(void *state);
    double (*next_double)(void *state);
    uint64_t (*next_raw)(void *state);
} random_source;

/* Draws n numbers one by one from a generator of NumPy. */
static void random_ask(const random_job *job, int64_t n, const random_source *source) {
    for (int64_t i = 0; i < n; i++) {
        uint64_t word = job->kind == RANDOM_FLOAT64 ? source->next_word(source->state) : 0;
        uint32_t half = job->kind == RANDOM_FLOAT64 ? 0 : source->next_half(source->state);
        random_convert(job, i, job->kind == RANDOM_FLOAT64 ? (void *)&word : (void *)&half, 1);
    }
}

static mg_array *random_draw(random_job job, int dtype, int ndim, const int64_t *shape,
                             uint64_t *state, const void *source) {
    mg_array *made = mg_new(dtype, ndim, shape);
    if (!made) return NULL;
    job.out = made->data;
    if (source) {
        random_ask(&job, made->size, source);
        return made;
    }
    random_state s;
    memcpy(&s, state, sizeof s);
    random_fill(job, made->size, &s);
    memcpy(state, &s, sizeof s);
    return made;
}

mg_array *mg_uniform(int dtype, int ndim, const int64_t *shape, uint64_t *state, const void *source) {
    if (!mg_is_float(dtype)) return mg_fail(MG_EDTYPE, dtype, 0);
    random_job job = {.kind = dtype == MG_FLOAT32 ? RANDOM_FLOAT32 : RANDOM_FLOAT64};
    return random_draw(job, dtype, ndim, shape, state, source);
}

mg_array *mg_dropout_mask(float p, int ndim, const int64_t *shape, uint64_t *state, const void *source) {
    if (!(p >= 0 && p <= 1)) return mg_fail(MG_EARG, 0, 0);
    uint32_t least = (uint32_t)(p * 0x1p24f);
    least += (float)least < p * 0x1p24f;
    random_job job = {.kind = RANDOM_KEEP, .least = least};
    return random_draw(job, MG_BOOL, ndim, shape, state, source);
}

/* ---- dropout ---- */

/* y = x * factor where `keep` is true, else 0, whatever x is. */
static void random_drop_f32(void *out, const void *const *in, int64_t n) {
    float *restrict y = out;
    const float *restrict x = in[0], factor = *(const float *)in[2];
    const uint8_t *restrict keep = in[1];
    for (int64_t i = 0; i < n; i++) y[i] = keep[i] ? x[i] * factor : 0;
}
static void random_drop_f64(void *out, const void *const *in, int64_t n) {
    double *restrict y = out;
    const double *restrict x = in[0], factor = *(const double *)in[2];
    const uint8_t *restrict keep = in[1];
    for (int64_t i = 0; i < n; i++) y[i] = keep[i] ? x[i] * factor : 0;
}

mg_array *mg_apply_mask(mg_array *x, mg_array *keep, double factor) {
    if (!mg_is_float(x->dtype) || keep->dtype != MG_BOOL)
        return mg_fail(MG_EDTYPE, x->dtype, keep->dtype);
    int ndim;
    int64_t shape[MG_MAX_NDIM];
    if (mg_broadcast_shape(2, (mg_array *[]){x, keep}, &ndim, shape)) return NULL;
    mg_array *y = mg_new(x->dtype, ndim, shape), *number = mg_full(x->dtype, 0, NULL, factor, 0);
    if (y && number) {
        mg_kernel kernel = x->dtype == MG_FLOAT32 ? random_drop_f32 : random_drop_f64;
        mg_nditer_run(y, 3, (mg_array *[]){x, keep, number}, kernel);
    } else {
        mg_release(y);
        y = NULL;
    }
    mg_release(number);
    return y;
}
