/* non_temporal.inc.c: kernels that write with non-temporal stores, past the caches; a part of
 * elementwise.c.
 *
 * They exist for functions that take about as long as memory does, if a vector is a cache line.
 * Each gives the bits of its usual kernel. A block of several vectors with numbers that the loop
 * cannot handle is left to the usual kernel.
 */

#define HAS_NON_TEMPORAL (MG_HAS_WIDE && MG_VECTOR_BYTES == 64)
#if HAS_NON_TEMPORAL
enum { STREAM_LINE = MG_VECTOR_BYTES / 4, STREAM_BLOCK = WIDE_VECTORS * STREAM_LINE };
MG_INLINE void stream_put(float *to, wide_f32 y) {
    for (int k = 0; k < WIDE_VECTORS; k++) v_stream(to + k * STREAM_LINE, y.v[k]);
}

MG_INLINE void stream_map(float *restrict to, const float *restrict x, int64_t n,
                           wide_f32 (*f)(wide_f32)) {
    nditer_full_vectors(n, sizeof(float));
    for (int64_t i = 0; i < n; i += STREAM_BLOCK) stream_put(to + i, f(w_load_f32(x + i)));
}
static void tanh_non_temporal(void *out, const void *const *in, int64_t n) {
    stream_map(out, in[0], n, w_tanh_f32);
}
static void exp_non_temporal(void *out, const void *const *in, int64_t n) {
    stream_map(out, in[0], n, w_exp_f32);
}

/* `near` reports whether its result is right for the whole block. */
MG_INLINE void stream_near(float *restrict to, const float *restrict x, int64_t n,
                           wide_f32 (*near)(wide_f32, bool *), mg_kernel any) {
    nditer_full_vectors(n, sizeof(float));
    for (int64_t i = 0; i < n; i += STREAM_BLOCK) {
        bool right;
        wide_f32 y = near(w_load_f32(x + i), &right);
        if (MG_LIKELY(right)) stream_put(to + i, y);
        else any(to + i, (const void *[]){x + i}, STREAM_BLOCK);
    }
}
static void log_non_temporal(void *out, const void *const *in, int64_t n) {
    stream_near(out, in[0], n, w_log_near_f32, log_kernel_f32);
}
MG_INLINE wide_f32 sqrt_near(wide_f32 x, bool *right) {
    *right = w_within_bits_f32(x, v_bits_f32(0x1p-60f), v_bits_f32(V_INF_F32));
    return w_root_by_f32(x, 0);
}
static void sqrt_non_temporal(void *out, const void *const *in, int64_t n) {
    stream_near(out, in[0], n, sqrt_near, sqrt_kernel_f32);
}
static void sigmoid_non_temporal(void *out, const void *const *in, int64_t n) {
    stream_near(out, in[0], n, w_sigmoid_near_f32, sigmoid_kernel_f32);
}
static void silu_non_temporal(void *out, const void *const *in, int64_t n) {
    stream_near(out, in[0], n, w_silu_near_f32, silu_kernel_f32);
}
MG_INLINE wide_f32 gelu_near(wide_f32 x, bool *right) {
    *right = w_within_bits_f32(x, 0, v_bits_f32(v_gelu_pieces.low));
    return w_by_pieces_f32(x, &v_gelu_pieces, false);
}
static void gelu_non_temporal(void *out, const void *const *in, int64_t n) {
    stream_near(out, in[0], n, gelu_near, gelu_kernel_f32);
}

/* sin(|x| + shift pi/2) with the sign of x under the mask `odd`, flipped by `turn`. With g the
 * result is multiplied by g, and is 0 where g is 0. */
static MG_NOINLINE void stream_trig(float *restrict to, const float *restrict g,
                                    const float *restrict x, int64_t n, uint32_t shift, uint32_t odd,
                                    uint32_t turn, mg_kernel any) {
    nditer_full_vectors(n, sizeof(float));
    for (int64_t i = 0; i < n; i += STREAM_BLOCK) {
        wide_f32 a = w_load_f32(x + i);
        if (MG_UNLIKELY(!w_below_f32(w_abs_f32(a), V_TRIG_MAX_F32))) {
            any(to + i, g ? (const void *[]){g + i, x + i} : (const void *[]){x + i}, STREAM_BLOCK);
            continue;
        }
        wide_f32 sign = w_xor_f32(w_and_f32(a, odd), w_set_f32(v_from_bits_f32(turn)));
        wide_f32 y = w_trig_f32(a, shift, sign);
        if (g) {
            wide_f32 by = w_load_f32(g + i);
            y = w_choose_zero_f32(by, ~V_SIGN_F32, w_set_f32(0), w_mul_f32(by, y));
        }
        stream_put(to + i, y);
    }
}
#define STREAM_TRIG(name, g, x, shift, odd, turn, any)                                             \
    static void name(void *out, const void *const *in, int64_t n) {                                \
        stream_trig(out, g, x, n, shift, odd, turn, any);                                          \
    }
STREAM_TRIG(sin_non_temporal, NULL, in[0], 0, V_SIGN_F32, 0, sin_kernel_f32)
STREAM_TRIG(cos_non_temporal, NULL, in[0], 1, 0, 0, cos_kernel_f32)
STREAM_TRIG(sin_vjp_non_temporal, in[0], in[1], 1, 0, 0, sin_vjp_f32)
STREAM_TRIG(cos_vjp_non_temporal, in[0], in[1], 0, V_SIGN_F32, V_SIGN_F32, cos_vjp_f32)
#undef STREAM_TRIG
#endif

/* The version of a kernel with non-temporal stores for an array of `size` elements, or NULL. The
 * last three are faster than memory, except on Zen 4, whose 64-byte vectors are done in halves. */
static mg_kernel non_temporal_of(mg_kernel kernel, int64_t size) {
    if (size <= NDITER_BLOCK) return NULL;
#if HAS_NON_TEMPORAL
    static const mg_kernel both[][2] = {
        {sin_kernel_f32, sin_non_temporal},
        {cos_kernel_f32, cos_non_temporal},
        {sin_vjp_f32, sin_vjp_non_temporal},
        {cos_vjp_f32, cos_vjp_non_temporal},
        {tanh_kernel_f32, tanh_non_temporal},
        {silu_kernel_f32, silu_non_temporal},
        {sigmoid_kernel_f32, sigmoid_non_temporal},
        {gelu_kernel_f32, gelu_non_temporal},
        {exp_kernel_f32, exp_non_temporal},
        {log_kernel_f32, log_non_temporal},
        {sqrt_kernel_f32, sqrt_non_temporal},
    };
    size_t count = sizeof both / sizeof *both - (mg_system_zen() == 4 ? 0 : 3);
    for (size_t i = 0; i < count; i++)
        if (both[i][0] == kernel) return both[i][1];
#endif
    (void)kernel;
    return NULL;
}
