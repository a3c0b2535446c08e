/* f64.h: constants of the templates for double: ends of ranges, minimax polynomials and tables.
 *
 * The polynomials are our own, by Remez's and Lawson's methods. Coefficients were rounded one by
 * one, and the rest refitted. A comment gives the function fitted and the largest error, which is
 * relative unless another weight is named.
 */
#ifndef MG_VMATH_COEFFICIENTS_F64_H
#define MG_VMATH_COEFFICIENTS_F64_H

#include "vmath/piecewise.h"

#define V_TYPE_F64 double
#define V_EXPONENT_F64 0xfff0000000000000u
#define V_INDEX_F64 48
#define V_MAGIC_F64 0x1.8p52
#define V_SMALLEST_F64 0x1p-1022
#define V_SMALLEST_BITS_F64 0x0010000000000000u
#define V_INF_BITS_F64 0x7ff0000000000000u
#define V_LN2_LOW_F64 0x1.abc9e3b39803fp-56 /* ln 2 - V_LN2_F64 */
#define V_EXP_LOW_F64 -746.0
#define V_EXP_HIGH_F64 710.0
#define V_EXP2_LOW_F64 -1076.0
#define V_EXP2_HIGH_F64 1025.0
#define V_EIGHTHS_MAGIC_F64 0x1.8p49
#define V_EIGHTHS_USUAL_F64 1000.0 /* up to here powers of two are normal numbers */
#define V_EIGHTHS_SHIFT_F64 49
#define V_EIGHTHS_LN2_HI_F64 0x1.62e42fefa0000p-1 /* 39 bits */
#define V_EIGHTHS_LN2_LO_F64 0x1.cf79abc9e3b3ap-40
#define V_EXPM1_LOW_F64 -38.0
#define V_EXPM1_NEAR_F64 23.0 /* a power of two */
#define V_POWER_MAGIC_F64 0x1.8p48
#define V_POWER_LAST_F64 1023.9375
#define V_ONE_LOST_F64 0x1p53 /* from here x - 1 rounds to x for even x */
#define V_GROWTH_MAGIC_F64 V_EIGHTHS_MAGIC_F64
#define V_GATE_SCALE_F64 128
#define V_GATE_UNIT_F64 0x1p-128
#define V_GATE_HIGH_F64 700.0 /* from here on 1 + e^-x is 1 */
#define V_GELU_ALL_F64 20.0   /* the same for GELU */
#define V_SIGMOID_HIGH_F64 750.0
#define V_SOFTPLUS_LOW_F64 -750.0
#define V_SILU_LOW_F64 -760.0
#define V_GELU_HIGH_F64 22.0
#define V_SQRT_HALF_F64 0x1.6a09e667f3bcdp-1
#define V_RSQRT_F64 0x5fe6eb50c7b537a9u
#define V_RSQRT_STEPS_F64 2
#define V_RSQRT_SCALE_F64 0x1p54
#define V_RSQRT_BACK_F64 0x1p27
#define V_LOG_USUAL_F64 1022 /* k is less for nearly all normal numbers */
#define V_LOG_FIRST_F64 0x3fe7821000000000u /* the bits of a number near 3/4 */
#define V_LOG_BASE_FIRST_F64 0x3fe80a0000000000u
#define V_POW_FIRST_F64 0x3fe8480000000000u
#define V_POW_USUAL_F64 700.0
#define V_POW_LIMIT_F64 800.0
#define V_LOG_POWER_F64 0x1p122
#define V_LOG_OF_POWER_F64 0x1.52417db067f38p+6
#define V_LOG2_POWER_F64 0x1p64
#define V_LOG2_OF_POWER_F64 64
#define V_LOG10_POWER_F64 0x1p54
#define V_LOG10_OF_POWER_F64 0x1.041704c068efp+4
#define V_LOG1P_LARGE_F64 0x1p900
#define V_LOG1P_USUAL_F64 900
#define V_LOG10E_F64 0x1.bcb7b1526e50ep-2
#define V_LOG10_2_HI_F64 0x1.34413509f78p-2
#define V_LOG10_2_LO_F64 0x1.fef311f12b358p-46
#define V_GELU_FIRST_F64 0x1.9884533d43p+0 /* 2 sqrt(2 / pi) to 40 bits */
#define V_GELU_FIRST_LOW_F64 0x1.942343f2cf14p-42
#define V_GELU_THIRD_F64 0x1.2444f2a4d8b4bp-4 /* 0.044715 times V_GELU_FIRST */
#define V_GELU_THIRD_LOW_F64 -0x1.6c843a29d1c7p-61

/* (e^r - 1 - r) / r^2, the error relative to e^r: 2^-57.9 */
static const __attribute__((unused)) double v_exp_fit_f64[] = {
    0x1.000000000000ap-1, 0x1.55555555555p-3, 0x1.55555555506a8p-5, 0x1.11111111264b5p-7,
    0x1.6c16c1847da4ap-10, 0x1.a01a0131da67bp-13, 0x1.a0199948cd598p-16, 0x1.71df14f4c80b1p-19,
    0x1.28ae148a5258p-22, 0x1.ad990863d48cfp-26};
/* e^(r - s) - 1 for |r| <= ln 2 / 16, and 2^r e^-s - 1 for |r| <= 1 / 16, with e^s = 1 + 5410646734
 * 2^-52. The errors relative to the power are 2^-58.5 and 2^-58.4. */
static const __attribute__((unused)) double v_exp_eighths_fit_f64[] = {
    -0x1.427fd169a41c9p-20, 0x1.ffffd7b005d2dp-1, 0x1.ffffd7b006007p-2, 0x1.55553a75586a5p-3,
    0x1.55553a666d87cp-5, 0x1.1110fbbc2417bp-7, 0x1.6c1ce07ce5d0cp-10, 0x1.a011930d80773p-13};
static const __attribute__((unused)) double v_exp2_eighths_fit_f64[] = {
    -0x1.427fd169a41b3p-20, 0x1.62e413fe60421p-1, 0x1.ebfbb93ba5413p-3, 0x1.c6b069a37970cp-5,
    0x1.3b2a9e1d99209p-7, 0x1.5d87e2d935054p-10, 0x1.430e74bda5101p-13, 0x1.ffd2d4deff271p-17};
/* e^s 2^(i/8), less i units of the bit to which k is shifted. Adding k, shifted, then gives e^s
 * 2^(k/8). */
static const __attribute__((unused)) double v_eighths_scaled_f64[8] = {
    0x1.00001427feacep+0, 0x1.172b99c2d8be1p+0, 0x1.306ff89b68e5ep+0, 0x1.4bfdc77712184p+0,
    0x1.6a0a02e949695p+0, 0x1.8ace733876d29p+0, 0x1.ae8a1b7bb80f3p+0, 0x1.d581b2c7332cep+0};
static const __attribute__((unused)) double v_eighths_table_f64[8] = {
    0x1.00001427feacep+0, 0x1.f72b99c2d8be1p-1, 0x1.f06ff89b68e5ep-1, 0x1.ebfdc77712184p-1,
    0x1.ea0a02e949695p-1, 0x1.eace733876d29p-1, 0x1.ee8a1b7bb80f3p-1, 0x1.f581b2c7332cep-1};
/* For |r| <= ln 2 / 32: (e^r - 1 - r) / r^2, and as functions of r^2 (sinh r - r) / r^3 and (cosh r
 * - 1) / r^2. The errors relative to r are 2^-57 and 2^-61. The error of the last, relative to 1,
 * is 2^-58. The last numbers before infinity give r up to ln 2 / 16. There the errors relative to
 * e^r are 2^-54 and 2^-56. */
static const __attribute__((unused)) double v_short_exp_fit_f64[] = {
    0x1p-1, 0x1.5555555555de9p-3, 0x1.55555554cf2f2p-5, 0x1.111110094999ep-7,
    0x1.6c1816097dea1p-10, 0x1.a1c264478412dp-13};
static const __attribute__((unused)) double v_short_sinh_fit_f64[] = {
    0x1.55555555555cep-3, 0x1.1111110b1e578p-7, 0x1.a01f57a6a61d5p-13};
static const __attribute__((unused)) double v_short_cosh_fit_f64[] = {
    0x1p-1, 0x1.55555550551a1p-5, 0x1.6c1b13d138368p-10};
/* (log(1 + r) - r) / r^2, the error relative to r: 2^-56.5 */
static const __attribute__((unused)) double v_log_fit_f64[] = {
    -0x1.fffffffffffd5p-2, 0x1.5555555555b3fp-2, -0x1.000000009ee4cp-2, 0x1.9999998488e22p-3,
    -0x1.5555422f5882ep-3, 0x1.2492ee63ace19p-3, -0x1.006c8e408e466p-3, 0x1.c461d253e60d6p-4};
/* ((log(1 + r) - r) / r^2 + 1 / 2) / r, the error relative to the logarithm that has this r:
 * 2^-69.7 */
static const __attribute__((unused)) double v_pow_fit_f64[] = {
    0x1.5555555555555p-2, -0x1.fffffffffffefp-3, 0x1.999999999a909p-3, -0x1.5555555584cbcp-3,
    0x1.2492491e41c99p-3, -0x1.fffffbe45710ap-4, 0x1.c71c789df3213p-4, -0x1.99a9e0cd0d7c9p-4,
    0x1.74f5414d248bbp-4, -0x1.406f487ac7969p-4};
/* log(1 + r) / r - c to bases 2 and 10, where c is the double nearest to the value at 0: 2^-57 */
static const __attribute__((unused)) double v_log2_fit_f64[] = {
    0x1.9e719bff9cf47p-56, -0x1.71547652b8309p-1, 0x1.ec709dc3a01c9p-2, -0x1.715476529cf7bp-2,
    0x1.2776c51032cf6p-2, -0x1.ec709ef26dd61p-3, 0x1.a6175b6259ac1p-3, -0x1.7151c7278dd5ep-3,
    0x1.48533978c7978p-3, -0x1.2a2176cb431a7p-3, 0x1.0a667074f9de4p-3};
static const __attribute__((unused)) double v_log10_fit_f64[] = {
    0x1.aca96df8ba3c2p-57, -0x1.bcb7b1526e51cp-3, 0x1.287a7636f420ep-3, -0x1.bcb7b1524cbd4p-4,
    0x1.63c627769998dp-4, -0x1.287a76efac116p-4, 0x1.fc3f9d724aa55p-5, -0x1.bcb47023cc0edp-5,
    0x1.8b5799bafbfc1p-5, -0x1.66fe91712bc01p-5, 0x1.40d9742133d99p-5};
/* c in m c = 1 + r, and -log c. The four bits of m after those of V_LOG_FIRST choose the row. */
#if MG_LANE_BY_LANE /* for w_load_pairs */
typedef const double (*v_log_rows_f64)[2];
#define V_BOTH(c, t) {c, t},
#define V_LOG_TABLE(name, ROWS)                                                                    \
    static const __attribute__((unused, aligned(16))) double v_##name##_table_f64[17][2] = {       \
        ROWS(V_BOTH)};
#else
typedef const double (*v_log_rows_f64)[16];
#define V_C(c, t) c,
#define V_T(c, t) t,
#define V_LOG_TABLE(name, ROWS)                                                                    \
    static const __attribute__((unused)) double v_##name##_table_f64[2][16] = {{ROWS(V_C)},        \
                                                                              {ROWS(V_T)}};
#endif
#define V_LOG_ROWS(ROW)                                                                            \
    ROW(0x1.55380292025cp+0, -0x1.263e2501c7p-2) ROW(0x1.47930e1e9fcdp+0, -0x1.f8e8d8133p-3)       \
    ROW(0x1.3afab4c31cd6p+0, -0x1.a89c644cp-3) ROW(0x1.2f5120607bfcp+0, -0x1.5b579b477ep-3)        \
    ROW(0x1.247cbdada9d5p+0, -0x1.10e2125452p-3) ROW(0x1.1a6780638c57p+0, -0x1.9212a11e1cp-4)      \
    ROW(0x1.10fe4c721307p+0, -0x1.073ffc5bep-4) ROW(0x1.060418998082p+0, -0x1.7c91d3fbfp-6)        \
    ROW(0x1p+0, 0) ROW(0x1.e1a77261d855p-1, 0x1.f484afc228p-5)                                     \
    ROW(0x1.c6e851dd30dfp-1, 0x1.e445b0fb6p-4) ROW(0x1.aef9a33c0dafp-1, 0x1.60d14bbc7cp-3)         \
    ROW(0x1.996f608bc644p-1, 0x1.c9d2a4a11ep-3) ROW(0x1.85f21532ab73p-1, 0x1.16da580565p-2)        \
    ROW(0x1.743a31df253ap-1, 0x1.4678b77b8cp-2) ROW(0x1.640c97f75197p-1, 0x1.73f94ea232p-2)
V_LOG_TABLE(log, V_LOG_ROWS)
#define V_LOG2_ROWS(ROW)                                                                           \
    ROW(0x1.4dbe83e509bf9p+0, -0x1.87c8053d64p-2) ROW(0x1.41258c5c57d4fp+0, -0x1.4ef04c5d52p-2)    \
    ROW(0x1.34ff6d412ea36p+0, -0x1.15f7a9d536p-2) ROW(0x1.29be0b7823d2p+0, -0x1.be4d3410f8p-3)     \
    ROW(0x1.1ee7ea6bb1c66p+0, -0x1.50c2bc88b8p-3) ROW(0x1.15a9945da71f6p+0, -0x1.e000a68ad8p-4)    \
    ROW(0x1p+0, 0) ROW(0x1p+0, 0) ROW(0x1p+0, 0) ROW(0x1.d26f10c83623p-1, 0x1.1365b2f48cp-3)       \
    ROW(0x1.b96f7cc2bd5bdp-1, 0x1.b626c8e584p-3) ROW(0x1.a308eeb47508fp-1, 0x1.2802dd87b4p-2)      \
    ROW(0x1.8ef37378c03e7p-1, 0x1.709218f1bp-2) ROW(0x1.7c5e23e817ec7p-1, 0x1.b709f5fa3p-2)        \
    ROW(0x1.6bca3f75e500dp-1, 0x1.f8dee6c964p-2) ROW(0x1.5b938632d84bap-1, 0x1.1e1ce64a35p-1)
V_LOG_TABLE(log2, V_LOG2_ROWS)
#define V_LOG10_ROWS(ROW)                                                                          \
    ROW(0x1.4e4c15ffabc1dp+0, -0x1.dab26549d8p-4) ROW(0x1.4139dd8bb178bp+0, -0x1.93bef2b71cp-4)    \
    ROW(0x1.3487e73f45d11p+0, -0x1.4c042ad2c4p-4) ROW(0x1.295722466b09bp+0, -0x1.0a4c05e46cp-4)    \
    ROW(0x1.1e9e740d3b37fp+0, -0x1.91f0a75ab8p-5) ROW(0x1.14ee888f0b793p+0, -0x1.179db52ba8p-5)    \
    ROW(0x1p+0, 0) ROW(0x1p+0, 0) ROW(0x1p+0, 0) ROW(0x1.d357d98306ae6p-1, 0x1.44aeaa0fep-5)       \
    ROW(0x1.b98319686f0bcp-1, 0x1.077c1c049p-4) ROW(0x1.a31839e80b96dp-1, 0x1.642ded1cacp-4)       \
    ROW(0x1.8ea02a2603abbp-1, 0x1.bd412b3dc4p-4) ROW(0x1.7c7aee779a435p-1, 0x1.081097c53ep-3)      \
    ROW(0x1.6b709bbec1d1p-1, 0x1.30d1a79ffcp-3) ROW(0x1.5be152722bbadp-1, 0x1.57bca6fe5p-3)
V_LOG_TABLE(log10, V_LOG10_ROWS)
#undef V_LOG_ROWS
#undef V_LOG2_ROWS
#undef V_LOG10_ROWS
#undef V_LOG_TABLE
#undef V_BOTH
#undef V_C
#undef V_T

static const __attribute__((unused)) double v_pow_table_f64[3][16] = {
    {0x1.48p+0, 0x1.4p+0, 0x1.3p+0, 0x1.28p+0, 0x1.2p+0, 0x1.1p+0, 0x1.08p+0, 0x1p+0, 0x1.fp-1,
     0x1.dp-1, 0x1.bp-1, 0x1.ap-1, 0x1.88p-1, 0x1.78p-1, 0x1.68p-1, 0x1.58p-1},
    {-0x1.fb9186d5e4p-3, -0x1.c8ff7c79aap-3, -0x1.5ff3070a7ap-3, -0x1.29552f82p-3,
     -0x1.e27076e2bp-4, -0x1.f0a30c0118p-5, -0x1.f829b0e78p-6, 0, 0x1.0415d89e78p-5,
     0x1.9335e5d594p-4, 0x1.5bf406b544p-3, 0x1.a93ed3c8aep-3, 0x1.1178e8227ep-2,
     0x1.3c25277333p-2, 0x1.68ac83e9c7p-2, 0x1.973a343135p-2},
    {0x1.d572aab993c87p-47, 0x1.7794f689f8434p-45, 0x1.8586f183bebf2p-44, 0x1.5b967f4471dfcp-44,
     0x1.a342c2af0003cp-45, 0x1.d599e83368e91p-45, -0x1.980267c7e09e4p-45, 0,
     -0x1.dddc7f461c516p-44, 0x1.3115c3abd47dap-45, -0x1.27023eb68981cp-46,
     -0x1.8724350562169p-45, 0x1.1ef78ce2d07f2p-44, 0x1.83b54b606bd5cp-46, -0x1.7af966c548a3p-44,
     0x1.ab73b16bf4984p-44},
};

/* c, and a quarter of 1 / c. i units of the bit to which i is shifted are subtracted from c and
 * added to 1 / 4c. Adding or subtracting n and i, so shifted, then gives 2^n c and 2^-n / 4c. The
 * third row is i ln 2 / 16 - log c. */
static const __attribute__((unused)) double v_power_table_f64[3][16] = {
    {0x1p+0, 0x1.fb550cb86b544p-1, 0x1.f72b5cf6cf374p-1, 0x1.f38894e507874p-1,
     0x1.f06f9a28c76fcp-1, 0x1.ede97b6b3a9p-1, 0x1.ebfe924e92abp-1, 0x1.eaaffd4d8278p-1,
     0x1.ea0a897535544p-1, 0x1.ea113f82808b4p-1, 0x1.eacf4e4e93fd4p-1, 0x1.ec49b6c394f6cp-1,
     0x1.ee8a6f06bbcbcp-1, 0x1.f1996ec4fce1cp-1, 0x1.f580efcfce80cp-1, 0x1.fa4a65790c458p-1},
    {0x1p-2, 0x1.fa4bda14ee808p-3, 0x1.f581cf17c6ef4p-3, 0x1.f1984ed13d69cp-3,
     0x1.ee8a5d4178d38p-3, 0x1.ec4a46c468e2p-3, 0x1.eacd43d50afc4p-3, 0x1.ea11d367e0f04p-3,
     0x1.ea09435afb944p-3, 0x1.eab084ec5c05p-3, 0x1.ebfcdaf59bc38p-3, 0x1.ede9ea75696c4p-3,
     0x1.f06f8d97fd758p-3, 0x1.f387da2d8e8ecp-3, 0x1.f72be1ba6f01cp-3, 0x1.fb55d7e2e8ee8p-3},
    {0, 0x1.d3a8a7fa32513p-18, 0x1.1cc2662ef87e2p-19, -0x1.a1f836a18331p-17, 0x1.da1e0c0058ce3p-19,
     0x1.77c96bec677d5p-17, -0x1.6122ab86fa7d6p-17, 0x1.7ba05414f148ap-18, -0x1.cd2db21573141p-18,
     0x1.4f35b1c7cf36dp-22, -0x1.446e4776286bbp-17, -0x1.89e9e032f3045p-18, -0x1.175302a5897a3p-18,
     0x1.6833b01ab792ep-19, 0x1.5899c48cbf27dp-18, 0x1.368d3e2dba744p-18}};

#endif
