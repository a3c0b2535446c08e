/* inverse_trig.h: constants of inverse_trig.inc.h and tan.inc.h, in both float widths. */
#ifndef MG_VMATH_COEFFICIENTS_INVERSE_TRIG_H
#define MG_VMATH_COEFFICIENTS_INVERSE_TRIG_H

/* pi is PI + PI_LOW. Halves and quarters of both are exact. */
#define V_PI_F32 0x1.921fb6p+1f
#define V_PI_LOW_F32 -0x1.777a5cp-24f
#define V_PI_F64 0x1.921fb54442d18p+1
#define V_PI_LOW_F64 0x1.1a62633145c07p-53
#define V_HALF_RECIPROCAL_F32 0x7e7311c7u /* these bits less the bits of s: about 1 / (2 s) */
#define V_HALF_RECIPROCAL_F64 0x7fce623822fc16e6u
#define V_PIECE_INDEX_F32 21
#define V_PIECE_INDEX_F64 50
#define V_ATAN_HIGH_F32 0x1p30f
#define V_ATAN_HIGH_F64 0x1p60
#define V_RATIO_ONE_F32 0x3f751eb8u /* the bits of 1, less half of what a ratio gains */
#define V_RATIO_ONE_F64 0x3feea3d70a3d70a4u
#define V_ATAN2_LOW_F32 0x21800000u /* the bits of 2^-60 and 2^60, in double of 2^-500 and 2^500 */
#define V_ATAN2_HIGH_F32 0x5d800000u
#define V_ATAN2_LOW_F64 0x20b0000000000000u
#define V_ATAN2_HIGH_F64 0x5f30000000000000u
#define V_ATAN2_SCALE_F32 0x1p50f
#define V_ATAN2_SCALE_F64 0x1p200
#define V_ATAN2_TINY_F32 0x1p-100f
#define V_ATAN2_TINY_F64 0x1p-900
#define V_ATAN2_NOTHING_F32 0x1p-120f /* less than all squares except 0 */
#define V_ATAN2_NOTHING_F64 0x1p-1000
/* 16 / pi, and pi / 16 in three parts */
#define V_TURNS_F32 0x1.45f306p+2f
#define V_TURNS_F64 0x1.45f306dc9c883p+2
#define V_TURN_1_F32 0x1.921fb4p-3f
#define V_TURN_2_F32 0x1.444p-27f
#define V_TURN_3_F32 0x1.68c234p-42f
#define V_TURN_1_F64 0x1.921fb54442d18p-3
#define V_TURN_2_F64 0x1.1a626331p-57
#define V_TURN_3_F64 0x1.1701b839a252p-91

/* (asin(s) - s) / s^3 of z = s^2, 0 <= s <= 1/2, of floats weighed against asin s: 2^-27.6 */
static const __attribute__((unused)) float v_asin_fit_f32[] = {
    0x1.5555c8p-3f, 0x1.330204p-4f, 0x1.747bb8p-5f, 0x1.8c3e5p-6f, 0x1.595c6p-5f};
static const __attribute__((unused)) double v_asin_fit_f64[] = {
    0x1.5555555555578p-3, 0x1.333333332df1fp-4, 0x1.6db6db722abadp-5, 0x1.f1c71a8bec783p-6,
    0x1.6e8bdfdc6b921p-6, 0x1.1c49decd3cedep-6, 0x1.ca212f8117c83p-7, 0x1.757843c91d7abp-7,
    0x1.61867acc68263p-7, 0x1.e19ef1944c44dp-9, 0x1.64ec6f005d754p-6, -0x1.59d6ad7083d7cp-6,
    0x1.0bda0f157234dp-5};
/* (atan(t) - t) / t^3 of z = t^2, |t| <= 0.272, weighed against atan t: 2^-31, in double 2^-58 */
static const __attribute__((unused)) float v_atan_fit_f32[] = {
    -0x1.55554ep-2f, 0x1.99910cp-3f, -0x1.230986p-3f, 0x1.8f1e4cp-4f};
static const __attribute__((unused)) double v_atan_fit_f64[] = {
    -0x1.5555555555555p-2, 0x1.99999999993c4p-3, -0x1.249249240f721p-3, 0x1.c71c7139ac1eep-4,
    -0x1.745cf0e17f88fp-4, 0x1.3b0dd10c51372p-4, -0x1.1088fcd1eb12ap-4, 0x1.d35b07fc24a93p-5,
    -0x1.40db982675ac2p-5};
/* (tan(r) - r) / r^3 of z = r^2, |r| <= pi/32, weighed against tan r: 2^-29, in double 2^-57 */
static const __attribute__((unused)) float v_tan_fit_f32[] = {0x1.5554cp-2f, 0x1.1292d6p-3f};
static const __attribute__((unused)) double v_tan_fit_f64[] = {
    0x1.555555555556p-2, 0x1.11111110f515ap-3, 0x1.ba1ba32145422p-5, 0x1.664c222ad8804p-6,
    0x1.2550455c309cep-7};

/* c and atan c, by piece */
static const __attribute__((unused)) float v_atan_table_f32[2][16] = {
    {0x1.f5ff1ap+0f, 0x1.3b706p+1f, 0x1.7b57a2p+1f, 0x1.90af44p+2f, 0, 0, 0, 0, 0x1.2eb998p-2f,
     0x1.c0675p-2f, 0x1.20a0d8p-1f, 0x1.5f4b04p-1f, 0x1.bacb0ap-1f, 0x1.1ca056p+0f, 0x1.5cd59cp+0f,
     0x1.9bb314p+0f},
    {0x1.1965ccp+0f, 0x1.2f70bcp+0f, 0x1.3ed05cp+0f, 0x1.69938cp+0f, 0, 0, 0, 0, 0x1.26576p-2f,
     0x1.a6a5ap-2f, 0x1.06d208p-1f, 0x1.33e408p-1f, 0x1.6d13b8p-1f, 0x1.ad3588p-1f, 0x1.e019dp-1f,
     0x1.03b5c4p+0f}};
static const __attribute__((unused)) double v_atan_table_f64[2][16] = {
    {0x1.f5502f767e167p+0, 0x1.3a127ac450f08p+1, 0x1.7ba6d582798c1p+1, 0x1.910d87d6c5dc2p+2, 0, 0,
     0, 0, 0x1.2e5433eb15fe9p-2, 0x1.bffc1a9ce6472p-2, 0x1.1f85892bfbf11p-1, 0x1.5ee873956c525p-1,
     0x1.bab78ff4b32dp-1, 0x1.1c87019422ap+0, 0x1.5c7739f7b1bacp+0, 0x1.9c38456f4216bp+0},
    {0x1.1941a837442dp+0, 0x1.2f0d6d992032ap+0, 0x1.3ee08a04ca494p+0, 0x1.699ceb3f3e472p+0, 0, 0, 0,
     0, 0x1.25fa1f91bedbp-2, 0x1.a64ba714e51e8p-2, 0x1.05fad8546b42cp-1, 0x1.33a0fdef61778p-1,
     0x1.6d08934010608p-1, 0x1.ad1edf3f3fc6p-1, 0x1.dfd7b0c238ebcp-1, 0x1.03dadf011ac56p+0}};
/* The sine and the cosine of n pi/16. Each pair is scaled so that its ratio is exact to ten bits
 * more than a number has. Floats have -0 for the sine of no turns, so that arguments keep their
 * sign. */
static const __attribute__((unused)) float v_tan_table_f32[2][16] = {
    {-0x0p+0f, 0x1.8460ap-2f, 0x1.7d9436p-1f, 0x1.52b7c4p+0f, 0x1p+0f, 0x1.43d24cp+0f,
     0x1.cfcf14p+0f, 0x1.35e196p+0f, 0x1p+0f, 0x1.969616p+0f, 0x1.af7b88p+0f, 0x1.5edc7cp+0f,
     0x1p+0f, -0x1.d52b1p-1f, -0x1.d795cep-2f, -0x1.4fc0dp-2f},
    {0x1p+0f, 0x1.e82056p+0f, 0x1.cc9b46p+0f, 0x1.faed54p+0f, 0x1p+0f, 0x1.b0bdbep-1f,
     0x1.803b5cp-1f, 0x1.ed1d16p-3f, 0x0p+0f, -0x1.43800ap-2f, -0x1.6573acp-1f, -0x1.d4e042p-1f,
     -0x1p+0f, 0x1.5f1476p+0f, 0x1.1ca078p+0f, 0x1.a5fc7ep+0f}};
static const __attribute__((unused)) double v_tan_table_f64[2][16] = {
    {0x0p+0, 0x1.ad91f0db62c0fp-3, 0x1.10523fff32bf8p-1, 0x1.3e935cce2332ep+0, 0x1p+0,
     0x1.732f7847aed63p+0, 0x1.01999fde996a8p+0, 0x1.73414babaee4ap+0, 0x1p+0, 0x1.b245dffb612b9p+0,
     0x1.21b41a2fd030fp+0, 0x1.77313e6d9aa3p+0, 0x1p+0, -0x1.2c3ceb6cd6badp+0,
     -0x1.54b81a90b0a2fp-1, -0x1.4508b6fa2857fp-2},
    {0x1p+0, 0x1.0df307400f126p+0, 0x1.48b88b3d652c8p+0, 0x1.dcc839bbf62bcp+0, 0x1p+0,
     0x1.f0094e2837edcp-1, 0x1.aace49c5a8366p-2, 0x1.27638e715d282p-2, 0x0p+0,
     -0x1.59876f42bb291p-2, -0x1.dfff1ba8aacebp-2, -0x1.f5641b1a5cbf2p-1, -0x1p+0,
     0x1.c1567ec821db8p+0, 0x1.9b48cea0fdeb2p+0, 0x1.98839d4c2edd1p+0}};

#endif
