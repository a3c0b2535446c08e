/* f32.h: constants of the templates for float: ends of ranges, minimax polynomials and tables.
 *
 * The polynomials are our own, by Remez's and Lawson's methods. Coefficients were rounded one by
 * one, and the rest refitted. A comment gives the function fitted and the largest error, which is
 * relative unless another weight is named.
 */
#ifndef MG_VMATH_COEFFICIENTS_F32_H
#define MG_VMATH_COEFFICIENTS_F32_H

#define V_TYPE_F32 float
#define V_SIGN_F32 0x80000000u
#define V_EXPONENT_F32 0xff800000u
#define V_INDEX_F32 19
#define V_MAGIC_F32 0x1.8p23f
#define V_SMALLEST_F32 0x1p-126f
#define V_SMALLEST_BITS_F32 0x00800000u
#define V_INF_BITS_F32 0x7f800000u
#define V_LN2_F32 0x1.62e43p-1f
#define V_LN2_LOW_F32 -0x1.05c61p-29f /* ln 2 - V_LN2_F32 */
#define V_EXP_LOW_F32 -104.0f
#define V_EXP_HIGH_F32 89.0f
#define V_EXP2_LOW_F32 -151.0f
#define V_EXP2_HIGH_F32 129.0f
#define V_EIGHTHS_MAGIC_F32 0x1.8p20f
#define V_EIGHTHS_USUAL_F32 125.0f /* up to here powers of two are normal numbers */
#define V_EIGHTHS_SHIFT_F32 20
#define V_EIGHTHS_LN2_HI_F32 0x1.62ep-1f
#define V_EIGHTHS_LN2_LO_F32 0x1.0bfbe8p-15f
#define V_EXPM1_LOW_F32 -18.0f
#define V_EXPM1_NEAR_F32 23.0f /* a power of two */
#define V_POWER_MAGIC_F32 0x1.8p19f
#define V_POWER_LAST_F32 127.9375f
#define V_GROWTH_MAGIC_F32 V_POWER_MAGIC_F32
#define V_ONE_LOST_F32 0x1p24f /* from here x - 1 rounds to x for even x */
#define V_GATE_SCALE_F32 64
#define V_GATE_UNIT_F32 0x1p-64f
#define V_GATE_NEAR_F32 11.0f
#define V_GATE_NEAR_POWER_F32 15.8125f /* the power of two, a little nearer to 0 */
#define V_GATE_LAST_F32 112.0f /* from here e^-x is negligible */
#define V_RECIPROCAL_F32 0x7ef311c7u /* these bits less the bits of s: about 1 / s */
#define V_SIGMOID_HIGH_F32 105.0f
#define V_SOFTPLUS_LOW_F32 -110.0f
#define V_GELU_HIGH_F32 11.0f
#define V_RSQRT_F32 0x5f375400u
#define V_RSQRT_STEPS_F32 1
#define V_RSQRT_SCALE_F32 0x1p24f
#define V_RSQRT_BACK_F32 0x1p12f
#define V_LOG_USUAL_F32 126 /* k is less for nearly all normal numbers */
#define V_LOG_FIRST_F32 0x3f405000u /* the bits of a number near 3/4 */
#define V_LOG_BASE_FIRST_F32 V_LOG_FIRST_F32
#define V_POW_FIRST_F32 0x3f424000u
#define V_POW_USUAL_F32 87.0f
#define V_POW_LIMIT_F32 128.0f
#define V_LOG_POWER_F32 0x1p32f
#define V_LOG_OF_POWER_F32 0x1.62e43p+4f
#define V_LOG2_POWER_F32 0x1p64f
#define V_LOG2_OF_POWER_F32 64
#define V_LOG10_POWER_F32 0x1p29f
#define V_LOG10_OF_POWER_F32 0x1.175b18p+3f
#define V_LOG1P_LARGE_F32 0x1p90f
#define V_LOG1P_USUAL_F32 90
#define V_LOG10E_F32 0x1.bcb7b2p-2f
#define V_LOG10_2_HI_F32 0x1.344p-2f
#define V_LOG10_2_LO_F32 0x1.3509f8p-18f
#define V_GELU_FIRST_F32 0x1.9884p+0f /* 2 sqrt(2 / pi) to 16 bits */
#define V_GELU_FIRST_LOW_F32 0x1.4cf50ep-18f
#define V_GELU_THIRD_F32 0x1.2444f2p-4f /* 0.044715 times V_GELU_FIRST */
#define V_GELU_THIRD_LOW_F32 0x1.49b16ap-29f

/* (e^r - 1 - r) / r^2, the error relative to e^r: 2^-28.2 */
static const __attribute__((unused)) float v_exp_fit_f32[] = {
    0x1.fffffcp-2f, 0x1.555492p-3f, 0x1.5558b2p-5f, 0x1.123994p-7f, 0x1.6a4b44p-10f};
/* e^(r - s) - 1 for |r| <= ln 2 / 16, and 2^r e^-s - 1 for |r| <= 1 / 16, with s = -0.002564316.
 * The error relative to the power is 2^-25.7 in both. */
static const __attribute__((unused)) float v_exp_eighths_fit_f32[] = {
    0x1.5089f8p-9f, 0x1.00a846p+0f, 0x1.00b28ap-1f, 0x1.562cf8p-3f};
static const __attribute__((unused)) float v_exp2_eighths_fit_f32[] = {
    0x1.5089f8p-9f, 0x1.63cd76p-1f, 0x1.ed52f6p-3f, 0x1.c7db4cp-5f};
/* e^s 2^(i/8), less i units of the bit to which k is shifted. Adding k, shifted, then gives e^s
 * 2^(k/8). */
static const __attribute__((unused)) float v_eighths_scaled_f32[8] = {
    0x1.feb052p-1f, 0x1.16747cp+0f, 0x1.2fa848p+0f, 0x1.4b2404p+0f,
    0x1.691c8ap+0f, 0x1.89cb7cp+0f, 0x1.ad6fb4p+0f, 0x1.d44dbcp+0f};
static const __attribute__((unused)) float v_eighths_table_f32[8] = {
    0x1.feb052p-1f, 0x1.f6747cp-1f, 0x1.efa848p-1f, 0x1.eb2404p-1f,
    0x1.e91c8ap-1f, 0x1.e9cb7cp-1f, 0x1.ed6fb4p-1f, 0x1.f44dbcp-1f};
/* For |r| <= ln 2 / 32: (e^r - 1 - r) / r^2, and as functions of r^2 (sinh r - r) / r^3 and (cosh
 * r - 1) / r^2. The error relative to r is 2^-31.5. The error of the last, relative to 1, is
 * 2^-45. */
static const __attribute__((unused)) float v_short_exp_fit_f32[] = {0x1p-1f, 0x1.55570cp-3f,
                                                                    0x1.555632p-5f};
static const __attribute__((unused)) float v_short_sinh_fit_f32[] = {0x1.55570cp-3f};
static const __attribute__((unused)) float v_short_cosh_fit_f32[] = {0x1p-1f, 0x1.55569p-5f};
/* (log(1 + r) - r) / r^2: 2^-26.6 */
static const __attribute__((unused)) float v_log_fit_f32[] = {
    -0x1.ffffcap-2f, 0x1.5555eap-2f, -0x1.00d79ap-2f, 0x1.989fd2p-3f};
/* ((log(1 + r) - r) / r^2 + 1 / 2) / r, the error relative to the logarithm that has this r:
 * 2^-35.3 */
static const __attribute__((unused)) float v_pow_fit_f32[] = {
    0x1.55555p-2f, -0x1.000116p-2f, 0x1.9a12fep-3f, -0x1.4d2c56p-3f};
/* log(1 + r) / r - c to bases 2 and 10, where c is the float nearest to the value at 0: 2^-26.6 */
static const __attribute__((unused)) float v_log2_fit_f32[] = {
    0x1.2bdbaap-26f, -0x1.71544ep-1f, 0x1.ec71dap-2f, -0x1.728eb4p-2f, 0x1.267d72p-2f};
static const __attribute__((unused)) float v_log10_fit_f32[] = {
    -0x1.6dd06p-27f, -0x1.bcb782p-3f, 0x1.287b36p-3f, -0x1.be2f16p-4f, 0x1.62951ep-4f};

/* c in m c = 1 + r, and -log c. The four bits of m after those of V_LOG_FIRST choose the row. */
static const __attribute__((unused)) float v_log_table_f32[2][16] = {
    {0x1.4dac4cp+0f, 0x1.41b39cp+0f, 0x1.35c0cp+0f, 0x1.29ddb4p+0f, 0x1.1e1064p+0f, 0x1.147d58p+0f,
     0x1p+0f, 0x1p+0f, 0x1p+0f, 0x1.d21148p-1f, 0x1.b882a8p-1f, 0x1.a49908p-1f, 0x1.8f119p-1f,
     0x1.7d29p-1f, 0x1.6ba228p-1f, 0x1.5b7348p-1f},
    {-0x1.0f58p-2f, -0x1.d3dcp-3f, -0x1.8658p-3f, -0x1.3634p-3f, -0x1.c6dp-4f, -0x1.3b6p-4f, 0, 0,
     0, 0x1.81p-4f, 0x1.34p-3f, 0x1.92bcp-3f, 0x1.fe58p-3f, 0x1.2e3p-2f, 0x1.5e64p-2f,
     0x1.8d02p-2f},
};
static const __attribute__((unused)) float v_log2_table_f32[2][16] = {
    {0x1.4d0912p+0f, 0x1.402b7p+0f, 0x1.345356p+0f, 0x1.28cc0ep+0f, 0x1.1e6abp+0f, 0x1.15375ep+0f,
     0x1p+0f, 0x1p+0f, 0x1p+0f, 0x1.d384dep-1f, 0x1.ba6bc8p-1f, 0x1.a4657ep-1f, 0x1.8df568p-1f,
     0x1.7c270cp-1f, 0x1.6b7b36p-1f, 0x1.5c18bep-1f},
    {-0x1.84a4p-2f, -0x1.4a7p-2f, -0x1.12cp-2f, -0x1.b4e8p-3f, -0x1.4bb8p-3f, -0x1.d68p-4f, 0, 0, 0,
     0x1.0c88p-3f, 0x1.af9p-3f, 0x1.2338p-2f, 0x1.744p-2f, 0x1.b7ep-2f, 0x1.fa2p-2f, 0x1.1d02p-1f},
};
static const __attribute__((unused)) float v_log10_table_f32[2][16] = {
    {0x1.4f38cp+0f, 0x1.3fdbc2p+0f, 0x1.33e878p+0f, 0x1.276f48p+0f, 0x1.20c4ecp+0f, 0x1.1411fep+0f,
     0x1p+0f, 0x1p+0f, 0x1p+0f, 0x1.d6ed7p-1f, 0x1.babc4ap-1f, 0x1.a1bc9p-1f, 0x1.8d904cp-1f,
     0x1.7c2f12p-1f, 0x1.6a506ep-1f, 0x1.5e67b4p-1f},
    {-0x1.df9cp-4f, -0x1.8c28p-4f, -0x1.486cp-4f, -0x1.fdb8p-5f, -0x1.ac88p-5f, -0x1.0c88p-5f, 0, 0,
     0, 0x1.298p-5f, 0x1.029p-4f, 0x1.69f4p-4f, 0x1.c2p-4f, 0x1.08c2p-3f, 0x1.3394p-3f,
     0x1.514ep-3f},
};

/* c, and -log c in two parts, for powers. c has so few bits that m c - 1 is exact. */
static const __attribute__((unused)) float v_pow_table_f32[3][16] = {
    {0x1.48p+0f, 0x1.4p+0f, 0x1.3p+0f, 0x1.28p+0f, 0x1.2p+0f, 0x1.1p+0f, 0x1.08p+0f, 0x1p+0f,
     0x1.fp-1f, 0x1.dp-1f, 0x1.bp-1f, 0x1.ap-1f, 0x1.88p-1f, 0x1.78p-1f, 0x1.68p-1f, 0x1.58p-1f},
    {-0x1.fb9p-3f, -0x1.c9p-3f, -0x1.5ff4p-3f, -0x1.2954p-3f, -0x1.e27p-4f, -0x1.f0ap-5f,
     -0x1.f82p-6f, 0, 0x1.041p-5f, 0x1.9338p-4f, 0x1.5bf4p-3f, 0x1.a94p-3f, 0x1.1178p-2f,
     0x1.3c26p-2f, 0x1.68acp-2f, 0x1.973ap-2f},
    {-0x1.86d5e4p-19f, 0x1.070cacp-20f, 0x1.f1eb0ep-20f, -0x1.2f82p-19f, -0x1.db8abcp-22f,
     -0x1.86008cp-20f, -0x1.361cfp-19f, 0, 0x1.76279ep-19f, -0x1.0d1536p-19f, 0x1.ad50f6p-25f,
     -0x1.2c3752p-19f, 0x1.d044fcp-19f, -0x1.b1199ap-19f, 0x1.07d38ep-19f, 0x1.a189acp-21f},
};

/* c, and a quarter of 1 / c. i units of the bit to which i is shifted are subtracted from c and
 * added to 1 / 4c. Adding or subtracting n and i, so shifted, then gives 2^n c and 2^-n / 4c. The
 * third row is i ln 2 / 16 - log c. */
static const __attribute__((unused)) float v_power_table_f32[3][16] = {
    {0x1p+0f, 0x1.fb4f5p-1f, 0x1.f71a7p-1f, 0x1.f37cap-1f, 0x1.f07f6p-1f, 0x1.ee0248p-1f,
     0x1.ec1cp-1f, 0x1.eab27p-1f, 0x1.e9e7fp-1f, 0x1.ea0f28p-1f, 0x1.eaefap-1f, 0x1.ec4768p-1f,
     0x1.ee8ab8p-1f, 0x1.f198p-1f, 0x1.f578cp-1f, 0x1.fa4758p-1f},
    {0x1p-2f, 0x1.fa566p-3f, 0x1.f59e48p-3f, 0x1.f1aacp-3f, 0x1.ee741p-3f, 0x1.ec2a2p-3f,
     0x1.eaaa48p-3f, 0x1.ea0f28p-3f, 0x1.ea2bep-3f, 0x1.eab27p-3f, 0x1.ebe1bp-3f, 0x1.edebb2p-3f,
     0x1.f06f5ap-3f, 0x1.f388c8p-3f, 0x1.f730cp-3f, 0x1.fb5782p-3f},
    {0, 0x1.7cdbd6p-14f, 0x1.f52d6cp-13f, 0x1.35e18ep-13f, -0x1.a0f9e8p-13f, -0x1.33b8cap-12f,
     -0x1.760c5cp-12f, -0x1.6fd9e2p-16f, 0x1.805p-12f, 0x1.6fd9a8p-16f, -0x1.59621ep-12f,
     0x1.0c588ep-16f, -0x1.c4e28ep-18f, 0x1.fbba24p-17f, 0x1.333c72p-14f, 0x1.e5ae3ap-16f}};
/* For 1 + e^-x: constants c of eight bits near 2^(i/16), and log c - i ln 2 / 16 - 1.3e-8. The last
 * term halves the largest error of n ln 2. The polynomial is (e^-r - 1 + r) / r^2 for |r| <=
 * 0.0247: 2^-28.5. */
static const __attribute__((unused)) float v_gate_table_f32[2][16] = {
    {0x1p+0f, 0x1.fcp-1f, 0x1.f8p-1f, 0x1.f4p-1f, 0x1.fp-1f, 0x1.eep-1f, 0x1.ecp-1f, 0x1.eap-1f,
     0x1.eap-1f, 0x1.eap-1f, 0x1.eap-1f, 0x1.ecp-1f, 0x1.eep-1f, 0x1.f2p-1f, 0x1.f6p-1f,
     0x1.fap-1f},
    {-0x1.bead36p-27f, 0x1.461588p-9f, 0x1.851ea8p-9f, 0x1.a6610ep-10f, -0x1.789552p-10f,
     0x1.165332p-12f, 0x1.ca550ap-16f, -0x1.04e894p-9f, -0x1.c01a36p-14f, -0x1.7672ccp-13f,
     -0x1.0bd9bp-9f, -0x1.6b3956p-11f, -0x1.485edcp-10f, 0x1.d196dcp-11f, 0x1.13a1e6p-10f,
     -0x1.39498ep-11f}};
static const __attribute__((unused)) float v_gate_fit_f32[] = {0x1.0002bcp-1f, -0x1.5555aep-3f};

#endif
