/* loops.c: benchmark loops of the machine's limits: multiply-adds in registers, and moves of data.
 *
 * limits.py compiles this for the machine at hand, once with REAL as float and once as double. There
 * is nothing of minigrad in it. The compiler is kept from seeing with which values chains of
 * multiply-adds start and that a repetition finds the data as it was, and from turning a copy into a
 * call of memcpy, which chooses its stores itself. */
#include <stddef.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#if defined(__AVX512F__)
#define WIDTH 64
#elif defined(__AVX__)
#define WIDTH 32
#else
#define WIDTH 16
#endif

typedef REAL vec __attribute__((vector_size(WIDTH)));
enum { LANES = WIDTH / sizeof(REAL), CHAINS = 12 }; /* chains cover the latency of two FMA units */

double flops_per_round(void) { return 2.0 * CHAINS * LANES; }

double fma_rounds(size_t rounds)
{
    volatile REAL start = 0; /* were it known, a chain that stays at 1 would be left out */
    vec chain[CHAINS], factor, term;
    for (int i = 0; i < LANES; i++) {
        factor[i] = (REAL)0.999;
        term[i] = (REAL)0.001;
        for (int c = 0; c < CHAINS; c++) chain[c][i] = start + (REAL)c;
    }
    for (size_t r = 0; r < rounds; r++) {
#pragma GCC unroll 12
        for (int c = 0; c < CHAINS; c++) chain[c] = chain[c] * factor + term;
    }
    double sum = 0;
    for (int c = 0; c < CHAINS; c++) sum += (double)chain[c][0];
    return sum;
}

/* ---- moving data ----------------------------------------------------------------------------- */

/* A store past the caches: the line is not read first, as an ordinary store has to. */
static inline void stream(vec *to, vec v)
{
#if defined(__AVX512F__)
    _mm512_stream_si512((void *)to, (__m512i)v);
#elif defined(__AVX__)
    _mm256_stream_si256((void *)to, (__m256i)v);
#elif defined(__x86_64__)
    _mm_stream_si128((void *)to, (__m128i)v);
#else
    *to = v;
#endif
}

int has_streaming_stores(void)
{
#if defined(__x86_64__)
    return 1;
#else
    return 0;
#endif
}

/* How data is written. Asking for it ahead helps beyond the caches, and costs a little in them. */
enum { ORDINARY, ORDINARY_AHEAD, STREAMING_AHEAD };
enum { AHEAD = 2048 / WIDTH }; /* vectors */

/* out[0, n) from `sources` arrays of n vectors, one behind the other; n is a multiple of 4, and out
 * may be in itself. */
static inline __attribute__((always_inline)) void
write_loop(vec *out, const vec *in, size_t n, int sources, int how)
{
    const vec one = (vec){0} + 1;
    for (size_t i = 0; i < n; i += 4) {
#pragma GCC unroll 4
        for (size_t k = i; k < i + 4; k++) {
            if (how != ORDINARY && sources > 0) __builtin_prefetch(in + k + AHEAD);
            if (how != ORDINARY && sources > 1) __builtin_prefetch(in + n + k + AHEAD);
            if (how == ORDINARY_AHEAD) __builtin_prefetch(out + k + AHEAD, 1);
            vec v = sources > 0 ? in[k] : one;
            if (sources > 1) v += in[n + k];
            if (how == STREAMING_AHEAD) stream(out + k, v);
            else out[k] = v;
        }
    }
}

/* Four parts at once: the processor reads ahead in each of them. */
static inline vec read_loop(const vec *in, size_t n)
{
    vec sum[8] = {0};
    const size_t part = n / 4;
    for (size_t i = 0; i + 2 <= part; i += 2) {
#pragma GCC unroll 4
        for (size_t k = 0; k < 4; k++) {
            sum[k] += in[k * part + i];
            sum[k + 4] += in[k * part + i + 1];
        }
    }
    return ((sum[0] + sum[1]) + (sum[2] + sum[3])) + ((sum[4] + sum[5]) + (sum[6] + sum[7]));
}

static inline __attribute__((always_inline)) void
move_once(vec *out, const vec *in, size_t reads, size_t writes, int how)
{
    const size_t extra = reads > writes && out != in ? reads - writes : 0;
    const size_t sums = (extra < writes ? extra : writes) & ~(size_t)3; /* written from two reads */
    const size_t copies = ((reads < writes ? reads : writes) - sums) & ~(size_t)3;
    write_loop(out, in, sums, 2, how);
    write_loop(out + sums, in + 2 * sums, copies, 1, how);
    write_loop(out + sums + copies, in, (writes - sums - copies) & ~(size_t)3, 0, how);
    vec sum = read_loop(in + 2 * sums + copies, reads - 2 * sums - copies);
    __asm__ volatile("" : : "m"(sum), "r"(out), "r"(in) : "memory");
}

/* Read and write so many vectors, each once. With out == in the first ones read are overwritten. */
void move(void *out, const void *in, size_t reads, size_t writes, int how, size_t repeats)
{
    for (size_t r = 0; r < repeats; r++) {
        if (how == STREAMING_AHEAD) move_once(out, in, reads, writes, STREAMING_AHEAD);
        else if (how == ORDINARY_AHEAD) move_once(out, in, reads, writes, ORDINARY_AHEAD);
        else move_once(out, in, reads, writes, ORDINARY);
    }
}

int vector_bytes(void) { return WIDTH; }
