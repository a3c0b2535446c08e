/* erf.h: tables of erf.inc.h, in both float widths.
 *
 * Each table has a function f of a on 16 pieces. The top bits of b = 1 + a, or 1 + STEP a, modulo
 * 16, are a piece's number. There are four pieces for b from 2 to 4, four up to 8, and four up to
 * 16. The last four pieces are for b from 1 to 2.
 *
 * Row 0 is the point c about which a piece is expanded. c makes f(c) very nearly equal to the
 * number in row 1 (S. Gal, "Computing elementary functions: a new approach for achieving high
 * accuracy and good performance", LNCS 235, 1986). All other rows are the coefficients of (f(c + d)
 * - f(c)) / d. The largest error, relative to f, is 2^-27 in float and 2^-55 in double.
 */
#ifndef MG_VMATH_COEFFICIENTS_ERF_H
#define MG_VMATH_COEFFICIENTS_ERF_H

#include "vmath/piecewise.h"

#define V_PIECE_ROWS_F32 8
#define V_PIECE_ROWS_F64 16
#define V_TANH_HIGH_F32 14.0f
#define V_TANH_HIGH_F64 19.125
#define V_TANH_STEP_F32 1.0f
#define V_TANH_STEP_F64 0.78125
#define V_ERF_HIGH_F32 4.0f
#define V_ERF_HIGH_F64 6.0
#define V_ERFC_HIGH_F32 10.25f
#define V_ERFC_HIGH_F64 28.0
#define V_ERFC_STEP_F32 1.0f
#define V_ERFC_STEP_F64 0.5
#define V_NORMAL_HIGH_F32 14.75f
#define V_NORMAL_HIGH_F64 39.5
#define V_NORMAL_STEP_F32 1.0f
#define V_NORMAL_STEP_F64 0.375
#define V_SQRT_HALF_OVER_PI_F32 0x1.988454p-2f
#define V_SQRT_HALF_OVER_PI_F64 0x1.9884533d43651p-2
#define V_TWO_OVER_ROOT_PI_F32 0x1.20dd76p+0f
#define V_TWO_OVER_ROOT_PI_F64 0x1.20dd750429b6dp+0

/* tanh a. The piece at 0, marked by -0, starts from a instead. */
V_TABLE_8(tanh,
    (0x1.3fed1ep+0f, 0x1.bfec0ap+0f, 0x1.1fea62p+1f, 0x1.5ff05ep+1f, 0x1.bfeb86p+1f,
     0x1.1fed18p+2f, 0x1.5fe8bep+2f, 0x1.9fef1cp+2f, 0x1.ffd12p+2f, 0x1.4p+3f, 0x1.8p+3f,
     0x1.cp+3f, 0, 0x1.7ff0f8p-2f, 0x1.4003d8p-1f, 0x1.bfe934p-1f),
    (0x1.b247a4p-1f, 0x1.e1f76ep-1f, 0x1.f4bc14p-1f, 0x1.fbd406p-1f, 0x1.ff10ep-1f, 0x1.ffdf94p-1f,
     0x1.fffb9cp-1f, 0x1.ffff68p-1f, 0x1.fffff8p-1f, 0x1p+0f, 0x1p+0f, 0x1p+0f, -0.0f,
     0x1.6ee824p-2f, 0x1.1bf728p-1f, 0x1.685adp-1f),
    (0x1.1f48fcp-2f, 0x1.d27108p-4f, 0x1.64863cp-5f, 0x1.09e80cp-6f, 0x1.ddd2ap-9f,
     0x1.035938p-11f, 0x1.190056p-14f, 0x1.30004ap-17f, 0x1.e61c12p-22f, 0, 0, 0, 0,
     0x1.be446cp-1f, 0x1.6281dp-1f, 0x1.02603cp-1f),
    (-0x1.e75a3p-3f, -0x1.b71498p-4f, -0x1.5cae0ap-5f, -0x1.07bd62p-6f, -0x1.dcf286p-9f,
     -0x1.03484ep-11f, -0x1.18fd56p-14f, -0x1.30065ep-17f, -0x1.03d1c8p-22f, 0, 0, 0,
     -0x1.269682p-20f, -0x1.3fcd44p-2f, -0x1.893bc2p-2f, -0x1.6bb2fap-2f),
    (0x1.bbc34p-4f, 0x1.01df12p-4f, 0x1.bc56dp-6f, 0x1.59e694p-7f, 0x1.3c81a8p-9f, 0x1.592ca4p-12f,
     0x1.763ad8p-15f, 0x1.9513cp-18f, 0x1.42c3f6p-22f, 0, 0, 0, -0x1.5544c8p-2f, -0x1.6dd6d6p-3f,
     -0x1.240152p-6f, 0x1.4ee266p-4f),
    (-0x1.9b79c2p-7f, -0x1.8182dep-6f, -0x1.943be2p-7f, -0x1.4e8892p-8f, -0x1.3a468cp-10f,
     -0x1.58ea16p-13f, -0x1.76463ep-16f, -0x1.9470a8p-19f, -0x1.7850e2p-21f, 0, 0, 0,
     -0x1.364e32p-10f, 0x1.584fecp-3f, 0x1.1a629ap-3f, 0x1.f269f6p-5f),
    (-0x1.430544p-6f, 0x1.c7f5b4p-9f, 0x1.04d184p-8f, 0x1.f634b8p-10f, 0x1.015c2ep-11f,
     0x1.1f1cc6p-14f, 0x1.3831f4p-17f, 0x1.4fe24ap-20f, 0x1.1dbad2p-24f, 0, 0, 0, 0x1.25095cp-3f,
     0x1.31e726p-6f, -0x1.bcc15p-5f, -0x1.de1994p-5f),
    (0x1.eed94p-7f, 0x1.12dc0cp-9f, -0x1.77c6dap-11f, -0x1.1def84p-11f, -0x1.4aac7ep-13f,
     -0x1.7b673ep-16f, -0x1.9de8eap-19f, -0x1.c914f2p-22f, 0x1.6cdabap-22f, 0, 0, 0,
     -0x1.2eea54p-5f, -0x1.1e5452p-4f, -0x1.867944p-6f, 0x1.b02018p-7f))
/*  c, T = tanh c and 1 - T^2; p / z and q of z = d^2 in tanh d = d (q + p) / q, 2^-60 to 0.64 */
#define V_TANH_PIECES(ROW)                                                                         \
    ROW(0x1.98c8d9c17eae1p+0, 0x1.d7a5e93b981d4p-1, 0x1.3618288075e98p-3)                          \
    ROW(0x1.1ffe4e77a451ep+1, 0x1.f4bf8b6231c8p-1, 0x1.6419c1b929058p-5)                           \
    ROW(0x1.709d3bf7be518p+1, 0x1.fcc83800a90c8p-1, 0x1.9a98a4ba79bedp-7)                          \
    ROW(0x1.c2a0d518daf97p+1, 0x1.ff1ac62afcec8p-1, 0x1.ca0d09c412f94p-9)                          \
    ROW(0x1.1df226d6bdd24p+2, 0x1.ffdd8237df32cp-1, 0x1.13e4f5b87e7ap-11)                          \
    ROW(0x1.70c29ac0e8f77p+2, 0x1.fffd68258661cp-1, 0x1.4bec659f74736p-15)                         \
    ROW(0x1.c2ac616d664cep+2, 0x1.ffffccab6a334p-1, 0x1.9aa499d060bb9p-19)                         \
    ROW(0x1.0a43b836d809ap+3, 0x1.fffffc06205eep-1, 0x1.fcefce961baddp-23)                         \
    ROW(0x1.473f9e8b6ab56p+3, 0x1.ffffffe97d5e5p-1, 0x1.682a1af815263p-28)                         \
    ROW(0x1.99b43f07b84f3p+3, 0x1.ffffffffdeb23p-1, 0x1.0a6e7ffff755bp-35)                         \
    ROW(0x1.ed212bf764925p+3, 0x1.ffffffffffd1ap-1, 0x1.72ffffffffef3p-43)                         \
    ROW(0x1.1e903071d777ep+4, 0x1.ffffffffffffbp-1, 0x1.3fffffffffffep-50)                         \
    ROW(0, 0, 0x1p+0)                                                                              \
    ROW(0, 0, 0x1p+0)                                                                              \
    ROW(0x1.979c14b97110bp-1, 0x1.52df0ae46e4d9p-1, 0x1.1fb7227469263p-1)                          \
    ROW(0x1.1d8a3bd4e7541p+0, 0x1.9ca6bd0f09bc3p-1, 0x1.66d6e2dddd8a7p-2)
#define V_C(c, t, s) c,
#define V_T(c, t, s) t,
#define V_S(c, t, s) s,
#define V_ROW(c, t, s) {c, t},
static const __attribute__((unused)) double v_tanh_table_f64[3][16] = {
    {V_TANH_PIECES(V_C)}, {V_TANH_PIECES(V_T)}, {V_TANH_PIECES(V_S)}};
static const __attribute__((unused, aligned(16))) double v_tanh_rows_f64[17][2] = {
    V_TANH_PIECES(V_ROW)};
#undef V_C
#undef V_T
#undef V_S
#undef V_ROW
static const __attribute__((unused)) double v_tanh_p_fit_f64[] = {
    -0x1.5555555555553p-2, -0x1.4fce80ae10edfp-6, -0x1.a172a1a7a418ap-13};
static const __attribute__((unused)) double v_tanh_q_fit_f64[] = {
    1, 0x1.d89051ba3cb0cp-2, 0x1.7d8b56e215ae9p-6, 0x1.b0dafd5c5f908p-13};
/* erf a. The piece at 0, marked by -0, starts from a instead. */
V_TABLE_8(erf,
    (0x1.3c09d8p+0f, 0x1.bc1a3cp+0f, 0x1.1e22fap+1f, 0x1.5e01ecp+1f, 0x1.bcp+1f, 0x1p+2f, 0x1p+2f,
     0x1p+2f, 0x1p+2f, 0x1p+2f, 0x1p+2f, 0x1p+2f, 0, 0x1.781d64p-2f, 0x1.3c18ccp-1f,
     0x1.bc1ef6p-1f),
    (0x1.d69d44p-1f, 0x1.f8c0dep-1f, 0x1.ff3232p-1f, 0x1.fff19p-1f, 0x1.ffffep-1f, 0x1p+0f,
     0x1p+0f, 0x1p+0f, 0x1p+0f, 0x1p+0f, 0x1p+0f, 0x1p+0f, -0.0f, 0x1.96103p-2f, 0x1.3c1ae8p-1f,
     0x1.8f65bcp-1f),
    (0x1.f761c6p-3f, 0x1.c7e36ap-5f, 0x1.f3a978p-8f, 0x1.4ec798p-11f, 0x1.c285fep-18f, 0, 0, 0, 0,
     0, 0, 0, 0x1.06eba8p-3f, 0x1.f8d164p-1f, 0x1.8aa1b6p-1f, 0x1.103d5ep-1f),
    (-0x1.36b7fcp-2f, -0x1.8b6f7cp-4f, -0x1.173e08p-6f, -0x1.c9b032p-10f, -0x1.73b536p-16f, 0, 0,
     0, 0, 0, 0, 0, -0x1.0f225ep-21f, -0x1.72d6cp-2f, -0x1.e745d4p-2f, -0x1.d84b5ap-2f),
    (0x1.57a18ep-3f, 0x1.7d6afap-4f, 0x1.768e8cp-6f, 0x1.8509aep-9f, 0x1.a5c38ap-15f, 0, 0, 0, 0,
     0, 0, 0, -0x1.811eeap-2f, -0x1.eb773ep-3f, -0x1.f44542p-5f, 0x1.6e7c1cp-4f),
    (-0x1.3e3f1p-9f, -0x1.8d976ep-5f, -0x1.45879ep-6f, -0x1.c88998p-9f, -0x1.7ec48p-14f, 0, 0, 0,
     0, 0, 0, 0, -0x1.410b76p-11f, 0x1.517976p-3f, 0x1.6b6ce4p-3f, 0x1.d6c1p-4f),
    (-0x1.8ecc16p-5f, 0x1.51a966p-8f, 0x1.62a678p-7f, 0x1.86a7b2p-9f, 0x1.f4ad62p-14f, 0, 0, 0, 0,
     0, 0, 0, 0x1.e2ea9ap-4f, 0x1.83d5a4p-5f, -0x1.9e5884p-6f, -0x1.0eee72p-4f),
    (0x1.4f9cc2p-6f, 0x1.29d378p-7f, -0x1.6a433cp-9f, -0x1.b648f8p-10f, -0x1.423b44p-14f, 0, 0, 0,
     0, 0, 0, 0, -0x1.372c2p-6f, -0x1.92ab02p-5f, -0x1.4fe8f6p-5f, -0x1.6fce7p-7f))
V_TABLE_16(erf,
    (0x1.3eeb45beba8f4p+0, 0x1.bf6e8589b3decp+0, 0x1.1f9e017e4697dp+1, 0x1.609c89850707fp+1,
     0x1.bf06ca927cdp+1, 0x1.1fc9f388e21a1p+2, 0x1.5fda48a9b5dc6p+2, 0x1.8p+2, 0x1.8p+2, 0x1.8p+2,
     0x1.8p+2, 0x1.8p+2, 0, 0x1.7e3415229d52cp-2, 0x1.4042b58ec9ef1p-1, 0x1.c037abed1137p-1),
    (0x1.d802c4ea5500cp-1, 0x1.f91d9d40c8208p-1, 0x1.ff3d75d493489p-1, 0x1.fff32c70d73b8p-1,
     0x1.ffffe5a68bb45p-1, 0x1.fffffffe424cdp-1, 0x1.fffffffffffbcp-1, 0x1p+0, 0x1p+0, 0x1p+0,
     0x1p+0, 0x1p+0, 0, 0x1.9c0da53bb2fe2p-2, 0x1.3f4c585c53e72p-1, 0x1.918f7d2ae9b9ap-1),
    (0x1.e986ec7bed3efp-3, 0x1.b3b3e196013b3p-5, 0x1.da6a9ff07fa3dp-8, 0x1.2b667c8a1d3eep-11,
     0x1.7e23ea9a11e92p-18, 0x1.0071701113122p-29, 0x1.7bd7678d925c4p-44, 0, 0, 0, 0, 0,
     0x1.06eba8214db69p-3, 0x1.f6999965a2badp-1, 0x1.86a9bd6c02387p-1, 0x1.0c784407a90bep-1),
    (-0x1.30ebbefd8d8b3p-2, -0x1.7cc198bb56198p-4, -0x1.0a812cf0e1bc6p-6, -0x1.9c63fe87397b5p-10,
     -0x1.4da56ceed297ap-16, -0x1.2049799c09d1bp-27, -0x1.050ad362e67e8p-41, 0, 0, 0, 0, 0,
     -0x1.3aaaf1402e5e8p-61, -0x1.772fb9cbb0282p-2, -0x1.e8b9f999c1dd7p-2, -0x1.d60cd930f84e3p-2),
    (0x1.574f1f795bedp-3, 0x1.7308f76469f75p-4, 0x1.67b0db8e4aae2p-6, 0x1.61bb3b3fb82adp-9,
     0x1.747c4da057b12p-15, 0x1.a56da90a53e85p-26, 0x1.d66ff860dbe4cp-40, 0, 0, 0, 0, 0,
     -0x1.812746b0379e4p-2, -0x1.e36af339bd1fcp-3, -0x1.c51f1619061c8p-5, 0x1.7d65909e8b5c3p-4),
    (-0x1.52022f0abb2ffp-8, -0x1.8aa6718ba64f7p-5, -0x1.3b478dbf81e6cp-6, -0x1.a27e687e3287bp-9,
     -0x1.2969ad82c3dfap-14, -0x1.c1bc4732e380dp-25, -0x1.38549da65871fp-38, 0, 0, 0, 0, 0,
     -0x1.002dc69307402p-46, 0x1.54574f44c456ep-3, 0x1.693f2001252fap-3, 0x1.cbcaa0be4c771p-4),
    (-0x1.86eaae0b0487ep-5, 0x1.aa44fb5fdd79p-8, 0x1.5eef2f5426a63p-7, 0x1.6305ff705716cp-9,
     0x1.6799af4d5a47bp-14, 0x1.74dbbf2271a36p-24, 0x1.45ea1513318c3p-37, 0, 0, 0, 0, 0,
     0x1.ce2f21a050229p-4, 0x1.78da216c07f56p-5, -0x1.c33569e91587bp-6, -0x1.136c964f6f85dp-4),
    (0x1.5b32888b5e0e8p-6, 0x1.28ca0f4c8d0dbp-7, -0x1.7aceaec63a083p-9, -0x1.accf6d9872b28p-10,
     -0x1.534fe160a1548p-14, -0x1.f2e984165246dp-24, -0x1.164b8b4ff2a47p-36, 0, 0, 0, 0, 0,
     -0x1.adb6d7e68b23ep-36, -0x1.99eaa49e46946p-5, -0x1.524a5f63fc3b8p-5, -0x1.51eb91fe57f91p-7),
    (0x1.f490a1f0b179dp-9, -0x1.8de7d2c2f4e78p-8, -0x1.6c1c7abc607ecp-11, 0x1.50e5d0a8252e5p-11,
     0x1.f9e9488dada43p-15, 0x1.141a36b497632p-23, 0x1.8d19cd825ec6cp-36, 0, 0, 0, 0, 0,
     -0x1.b82ce286dd20dp-6, -0x1.7019a57c21e52p-8, 0x1.c8b1b23b1c59bp-7, 0x1.3091bad341951p-6),
    (-0x1.778bfbe9b1088p-8, 0x1.7556ec76870fbp-11, 0x1.089dc0f1f06a2p-10, -0x1.81f31d8fd11a6p-14,
     -0x1.284a62d31b538p-15, -0x1.00f042a61ce4p-23, -0x1.e0b89b90759b1p-36, 0, 0, 0, 0, 0,
     -0x1.ed7b0b0f6b674p-28, 0x1.708770cbc4292p-7, 0x1.b519d3fad6d64p-8, -0x1.e73f128e9d9d6p-10),
    (0x1.ba660a398063ep-11, 0x1.d9f64af54b62fp-11, -0x1.82ee447ba14a2p-12, -0x1.1fcb94f732ed1p-14,
     0x1.07269299dd293p-16, 0x1.9636e71d1cep-24, 0x1.04d817e84d8c4p-35, 0, 0, 0, 0, 0,
     0x1.565cfd34dfdb7p-8, 0x1.4de36a3e439f4p-13, -0x1.dcba327e14022p-9, -0x1.aa6099c09e131p-9),
    (0x1.a7e12e458b437p-11, -0x1.d017b0e07b514p-12, -0x1.c93814d1ad3b9p-17, 0x1.c65a9f057f546p-15,
     -0x1.39de2f576167bp-18, -0x1.11dd492413f15p-24, -0x1.0375b2bb82c38p-35, 0, 0, 0, 0, 0,
     -0x1.089958cc55da6p-21, -0x1.06e1b76dbcf6dp-9, -0x1.84aaa3710422ep-11, 0x1.dd291fb0f46f8p-11),
    (-0x1.50b04f26ca73fp-12, -0x1.ecb0176ec9c46p-18, 0x1.14aaa8c094db4p-14, -0x1.0ac4dc15969f8p-16,
     0x1.b136661a324ccp-22, 0x1.39d9381e3ca87p-25, 0x1.76fc30a1da6fap-36, 0, 0, 0, 0, 0,
     -0x1.bee9bbe8b7006p-11, 0x1.e69ea3ebb9f7p-14, 0x1.652eb3852a0c2p-11, 0x1.957202c46de21p-12),
    (-0x1.d3415f20e5a28p-15, 0x1.220fa5a8ffa37p-14, -0x1.7afdb5b4f4887p-16, -0x1.e905595236aecp-21,
     0x1.0011d216c6ee3p-21, -0x1.326bfef543bdp-26, -0x1.69a45876b9b4ap-37, 0, 0, 0, 0, 0,
     -0x1.11a7499482722p-17, 0x1.1203cf44b5403p-15, 0x1.18a3a7474709ap-11, -0x1.5caf54e3e9d54p-11),
    (0x1.ca2850bdac749p-15, -0x1.1b08bbfaebf07p-16, -0x1.bb613e70ebe7fp-20, 0x1.60c61319930b7p-19,
     -0x1.51031c7096b29p-22, 0x1.02ca91a88fb48p-27, 0x1.f3813c1762055p-37, 0, 0, 0, 0, 0,
     0x1.22e987cafb523p-13, -0x1.3eeef3c86fe7bp-13, -0x1.56aed2e7d8d69p-13, 0x1.7936002f07c84p-16),
    (-0x1.8f606485f5d45p-19, -0x1.367cca40fb6aap-18, 0x1.b17abaed82c9ap-19, -0x1.d7b555341c2d6p-21,
     0x1.6c343b6b7da1ep-24, -0x1.3024cc1658f4bp-29, -0x1.f7ee2d5926586p-37, 0, 0, 0, 0, 0,
     -0x1.95f12df3391f9p-16, 0x1.3d0134d0d93e4p-8, -0x1.28c6353f9a235p-7, 0x1.1bcfeaec7b619p-7))
/* e^(a^2) erfc a */
V_TABLE_8(erfcx,
    (0x1.408d74p+0f, 0x1.c0ad0cp+0f, 0x1.200c22p+1f, 0x1.5fac86p+1f, 0x1.c009aap+1f,
     0x1.20549ap+2f, 0x1.5f768cp+2f, 0x1.9f70dep+2f, 0x1.0066e2p+3f, 0x1.350b8cp+3f, 0, 0,
     0x1.fb6ed2p-4f, 0x1.807b7ep-2f, 0x1.3fe68ap-1f, 0x1.bec172p-1f),
    (0x1.78308cp-2f, 0x1.237534p-2f, 0x1.d9331ap-3f, 0x1.8cf33ep-3f, 0x1.3e0436p-3f,
     0x1.f525eap-4f, 0x1.9e2754p-4f, 0x1.5fec24p-4f, 0x1.1e3778p-4f, 0x1.dc0ac8p-5f, 0, 0,
     0x1.bf9c1p-1f, 0x1.5f02c8p-1f, 0x1.1d21b8p-1f, 0x1.dc3e02p-2f),
    (-0x1.aab97cp-3f, -0x1.0ba32ep-3f, -0x1.6a57fep-4f, -0x1.036f26p-4f, -0x1.5278aap-5f,
     -0x1.a9549ep-6f, -0x1.2466a8p-6f, -0x1.a7fcccp-7f, -0x1.197b24p-7f, -0x1.8636eap-8f, 0, 0,
     -0x1.d2d37p-1f, -0x1.3a242ap-1f, -0x1.bada4p-2f, -0x1.4459eep-2f),
    (0x1.b41af8p-4f, 0x1.c75fc4p-5f, 0x1.05fbc8p-5f, 0x1.44780cp-6f, 0x1.5d444p-7f, 0x1.61a2b6p-8f,
     0x1.96e59p-9f, 0x1.f9518cp-10f, 0x1.12ce7cp-10f, 0x1.3e396cp-11f, 0, 0, 0x1.85c6e4p-1f,
     0x1.d21eacp-2f, 0x1.25910ep-2f, 0x1.827244p-3f),
    (-0x1.99cc3ap-5f, -0x1.6b3c8ep-6f, -0x1.6851e4p-7f, -0x1.861122p-8f, -0x1.5e34fep-9f,
     -0x1.20579ep-10f, -0x1.1729dep-11f, -0x1.29f9e6p-12f, -0x1.0a5498p-13f, -0x1.02349cp-14f, 0,
     0, -0x1.1704c8p-1f, -0x1.2e2df6p-2f, -0x1.59e6a8p-3f, -0x1.9f543cp-4f),
    (0x1.66fedp-6f, 0x1.121162p-7f, 0x1.da0d94p-9f, 0x1.c468e8p-10f, 0x1.56072ap-11f,
     0x1.cd9efap-13f, 0x1.79f822p-14f, 0x1.5bd65ap-15f, 0x1.0050dcp-16f, 0x1.a0f14p-18f, 0, 0,
     0x1.633244p-2f, 0x1.60a82cp-3f, 0x1.7301p-4f, 0x1.9a6f2cp-5f),
    (-0x1.2cd634p-7f, -0x1.8edeb8p-9f, -0x1.2f86c2p-10f, -0x1.fd7488p-12f, -0x1.4d7252p-13f,
     -0x1.70d67ep-15f, -0x1.fe5132p-17f, -0x1.9646a6p-18f, -0x1.f62eb8p-20f, -0x1.50e8c2p-21f, 0,
     0, -0x1.9e8114p-3f, -0x1.7ae14ep-4f, -0x1.728fb4p-5f, -0x1.7c61bap-6f),
    (0x1.d74108p-9f, 0x1.12ec38p-10f, 0x1.715a5ep-12f, 0x1.13557ep-13f, 0x1.35ee94p-15f,
     0x1.1eb2e8p-17f, 0x1.4d1e04p-19f, 0x1.d7b032p-21f, 0x1.e12794p-23f, 0x1.0d5f72p-24f, 0, 0,
     0x1.bc51a8p-4f, 0x1.79790ap-5f, 0x1.578fb8p-6f, 0x1.50f282p-7f))
V_TABLE_16(erfcx,
    (0x1.40f855e573bfcp+1, 0x1.c0d2f15ee661fp+1, 0x1.1fcc4c4802528p+2, 0x1.5f6672924fe72p+2,
     0x1.bf3452c24ecfcp+2, 0x1.2090c309b9b69p+3, 0x1.5fa78139aae08p+3, 0x1.9ff45d10ee45bp+3,
     0x1.0079a972de1f5p+4, 0x1.4064c76a4186dp+4, 0x1.8059c26b572a7p+4, 0x1.afc58945c80ccp+4,
     0x1.02ea984ca2af8p-2, 0x1.805231e6b088ep-1, 0x1.407505a92bd15p+0, 0x1.c0c84a9c17c2dp+0),
    (0x1.ae94963337d21p-3, 0x1.3d7f5c5a9d1p-3, 0x1.f608c47f0f492p-4, 0x1.9e39b84350b78p-4,
     0x1.476e633777442p-4, 0x1.fd6fc46865ecap-5, 0x1.a2dc38f9913e4p-5, 0x1.6285a80c0d949p-5,
     0x1.1fc5a147c952p-5, 0x1.cd0af22c3cb3dp-6, 0x1.807831c9e8ef8p-6, 0x1.564e12dc3a6e1p-6,
     0x1.89560bccf57acp-1, 0x1.036f191dd2caap-1, 0x1.7844e9a609d96p-2, 0x1.2366f6cfe51cbp-2),
    (-0x1.2efbeeec4482dp-4, -0x1.5166a9565cdbp-5, -0x1.aace252f55f43p-6, -0x1.2480404555a0dp-6,
     -0x1.6f8fa11c2b499p-7, -0x1.be8d0a7477cd7p-8, -0x1.2e7368d393c39p-8, -0x1.b1d6569d8d358p-9,
     -0x1.1e21b11c97bd9p-9, -0x1.6f77cf1ef3d96p-10, -0x1.ff464f6fd0011p-11, -0x1.955a97cbd18b5p-11,
     -0x1.7ad254c23bccfp-1, -0x1.7881f066fe53ap-2, -0x1.aae3189fff16dp-3, -0x1.0b8af2f8fbb7cp-3),
    (0x1.959e0e99b4e8bp-6, 0x1.5ba86043b046dp-7, 0x1.6370d5c1b501bp-8, 0x1.971a444b74181p-9,
     0x1.98bb83e0f3da4p-10, 0x1.85254645f0e9ep-11, 0x1.b30b24e71c72cp-12, 0x1.08aeeb259b32bp-12,
     0x1.1bf4d9d9dfc17p-13, 0x1.248639fc2114ap-14, 0x1.53a8b0d3527fap-15, 0x1.dfb02b0ba0ba5p-16,
     0x1.298d440a14a66p-1, 0x1.d88098d9a5494p-3, 0x1.b455a292967e5p-4, 0x1.c725c793cdd8ap-5),
    (-0x1.03c231034343bp-7, -0x1.5c2bb6ef8cb1cp-9, -0x1.224a924e77f08p-10, -0x1.175b6d3c1b53p-11,
     -0x1.c25bba1f3d81fp-13, -0x1.512cfe0361a07p-14, -0x1.37a5b26e8caeap-15,
     -0x1.420ad378b014dp-16, -0x1.19430d21d92cep-17, -0x1.d12874834e2b3p-19,
     -0x1.c2e8cc22271dap-20, -0x1.1ba23944c6f0bp-20, -0x1.94c8181b35d9dp-2, -0x1.098fb7ae0c53fp-3,
     -0x1.9a1a41a9ece6p-5, -0x1.6b07709e8da0cp-6),
    (0x1.3fbd58375e34fp-9, 0x1.5395710782331p-11, 0x1.d1791cf5bcfbbp-13, 0x1.7a41e1223e578p-14,
     0x1.ebcd18c568dbfp-16, 0x1.227fca2590757p-17, 0x1.bcc2b65c23302p-19, 0x1.86b88571ac7bfp-20,
     0x1.1610edacea79ep-21, 0x1.7162178c6056p-23, 0x1.2b0b097b76f01p-24, 0x1.4f30b3a31167ap-25,
     0x1.ecc16213ce2ddp-3, 0x1.112a2d30cce93p-4, 0x1.674efbff3ccb9p-6, 0x1.11e28274a587dp-7),
    (-0x1.7b9e835912a7cp-11, -0x1.43204a92433c4p-13, -0x1.6eac25fcf9e73p-15,
     -0x1.f98ec340350d4p-17, -0x1.0a32089991008p-18, -0x1.f1caadcf80f11p-21,
     -0x1.3c24215953b1cp-22, -0x1.d8b68a689f3b1p-24, -0x1.1263c2aa0e709p-25,
     -0x1.24f868d6caf82p-27, -0x1.8c4ff8d2be578p-29, -0x1.8bd982d4c77d4p-30, -0x1.11fd07cf4c5fbp-3,
     -0x1.04dcc2789255ap-5, -0x1.2857a107ba3e8p-7, -0x1.8979ed0dacb8bp-9),
    (0x1.b40b73900eac1p-13, 0x1.2c6afbc6c69cdp-15, 0x1.1c07ff8f1878cp-17, 0x1.4da3bd0d26795p-19,
     0x1.1db8d07515eebp-21, 0x1.a82c4aa5566fdp-24, 0x1.bfb83f4d0330dp-26, 0x1.1d288e826fe3ap-27,
     0x1.0e4169dd599a6p-29, 0x1.d02a2ae0e8206p-32, 0x1.0662fb7b4fc9ep-33, 0x1.d32b8dffd5f07p-35,
     0x1.1a519305fd433p-4, 0x1.d35bdf9e037a2p-7, 0x1.cf8bf57abd185p-9, 0x1.0e808b628a377p-10),
    (-0x1.e5c87fd74b1eep-15, -0x1.114427d724148p-17, -0x1.b104b15082047p-20,
     -0x1.b30ff2d83cc0bp-22, -0x1.302440ae3d9fbp-24, -0x1.677fd61ba6046p-27,
     -0x1.3bd5c49eb7d13p-29, -0x1.5715dd22f5714p-31, -0x1.09b047ad1b8a6p-33,
     -0x1.6f408ec09cba8p-36, -0x1.5b2450d543d8p-38, -0x1.137bfb823a993p-39, -0x1.1056c25c0549ep-5,
     -0x1.8bcaeaa73934p-8, -0x1.59c6ab6eb9bc9p-10, -0x1.656cdee055056p-12),
    (0x1.07050241e9fa8p-16, 0x1.e6f610a46ed83p-20, 0x1.4508cb1041a3cp-22, 0x1.1859cbc7352cfp-24,
     0x1.41213def0f3b9p-27, 0x1.2f12faec2eb84p-30, 0x1.bbefc5a58b9e4p-33, 0x1.9ba5c7085494cp-35,
     0x1.04b73b5afbc81p-37, 0x1.223938b43100fp-40, 0x1.cae36161052f8p-43, 0x1.44be794b82666p-44,
     0x1.efc6e6238ba13p-7, 0x1.3ed00af8f083ep-9, 0x1.ee4182865c058p-12, 0x1.c76bf3ddbc282p-14),
    (-0x1.155b94fb7aa05p-18, -0x1.a973746df4d41p-22, -0x1.e0cb2d5b42f8p-25, -0x1.653c7b2d1d1f2p-27,
     -0x1.5063d606c2cf4p-30, -0x1.fc5947f146ac3p-34, -0x1.36d8f02a1832dp-36, -0x1.ec9133e25131p-39,
     -0x1.febc9143d240fp-42, -0x1.ca26f0fb7612fp-45, -0x1.2f0c10f60a2dcp-47,
     -0x1.7df782bb1f4abp-49, -0x1.ac71f676cf4d5p-8, -0x1.eae9a342994bfp-11, -0x1.53bbfb9b0b71ep-13,
     -0x1.18963c1bd2356p-15),
    (0x1.1d4814dee3b78p-20, 0x1.6cd64a2d80753p-24, 0x1.5e7e751e9d147p-27, 0x1.c27f623c917adp-30,
     0x1.5da27dd9b8ae5p-33, 0x1.a820d43d1359p-37, 0x1.b1c30088e30f3p-40, 0x1.25e0b33206388p-42,
     0x1.f357bb6ca1f9bp-46, 0x1.6927a667626a5p-49, 0x1.8f6a7c34169f9p-52, 0x1.60f3dcc5ad7aep-54,
     0x1.6149fb79b3d82p-9, 0x1.6aadf4a54bd53p-12, 0x1.c2990e1c57d06p-15, 0x1.4f3572f51c0bp-17),
    (-0x1.1e50fef5ea592p-22, -0x1.3329366fad16cp-26, -0x1.f8371f966124p-30, -0x1.183f27a1c098fp-32,
     -0x1.68346636c17ddp-36, -0x1.5fe04789e2ae2p-40, -0x1.2d62006a82eafp-43,
     -0x1.5dbd5da620172p-46, -0x1.e6c4381a9a2cp-50, -0x1.1c3ebf6361629p-53, -0x1.07363ce42d25p-56,
     -0x1.cbdaefb3ad512p-58, -0x1.17056291216bcp-10, -0x1.01f6c2f03c939p-13,
     -0x1.21032ecb87209p-16, -0x1.84f65c88e0696p-19),
    (0x1.18f91ddb8bf01p-24, 0x1.fbd6abe62ad6dp-29, 0x1.6d5c58a146428p-32, 0x1.3f4fc42307129p-35,
     0x1.714d8f1d6cdd3p-39, 0x1.2308c1495df86p-43, 0x1.9e086a6b2ace4p-47, 0x1.a3834a5e7aaa4p-50,
     0x1.d9f6eb07a1b4bp-54, 0x1.c2463a662c252p-58, 0x1.8a01723b770b9p-61, 0x1.1e47240daf9b6p-56,
     0x1.a7ec914be803dp-12, 0x1.64a9dc3dc097p-15, 0x1.66ceec899ecabp-18, 0x1.af6be7deaca5ep-21),
    (-0x1.1c237b2a112a2p-26, -0x1.ad08332d65b3ap-31, -0x1.ffc88f051ca7cp-35,
     -0x1.d0439735baf2cp-38, -0x1.8c9c85b39a264p-42, -0x1.f0762ab3e0c32p-47,
     -0x1.2907bb1134bb8p-50, -0x1.f4942851f9a91p-54, -0x1.e632f849f19dbp-58,
     -0x1.6cca3b1a31791p-62, -0x1.f51f719bfd127p-66, 0x1.033d685648fe6p-60, -0x1.3ef520ebab993p-13,
     -0x1.e24edb74ffa69p-17, -0x1.ba5057199fc22p-20, -0x1.e4fc3743f51e9p-23),
    (0x1.134fbb0ecc99p-28, 0x1.6930b2ff62198p-33, 0x1.40cd1273792b3p-39, 0x1.39fb477fe6a0bp-38,
     0x1.85e162d0ebeeep-45, 0x1.88f5ebe8d6381p-50, 0x1.0b67a4dd1059fp-53, 0x1.0ed82f4806105p-58,
     0x1.dd87f3d5e96bdp-62, 0x1.c943a9e8fc365p-67, -0x1.5f75799dfb3acp-68, -0x1.461c73cb8552ep-58,
     0x1.c23655b65dfb2p-15, 0x1.c8a61dd151804p-19, 0x1.1e4292ecda2a1p-21, 0x1.12aa51c8cb01cp-23))
/* e^(a^2 / 2) times the normal distribution at -a. */
V_TABLE_8(normal,
    (0x1.3f1bf8p+0f, 0x1.c07e86p+0f, 0x1.205cdp+1f, 0x1.607f36p+1f, 0x1.bf7c34p+1f, 0x1.1f731cp+2f,
     0x1.605f68p+2f, 0x1.9fbe5ep+2f, 0x1.ff21c2p+2f, 0x1.400d2p+3f, 0x1.7f731p+3f, 0x1.bfd1e2p+3f,
     0x1.ff265p-4f, 0x1.7e121cp-2f, 0x1.40cc92p-1f, 0x1.c11984p-1f),
    (0x1.d962bap-3f, 0x1.7b0f18p-3f, 0x1.3a5ee6p-3f, 0x1.0b6934p-3f, 0x1.b407d6p-4f,
     0x1.5bf74ep-4f, 0x1.1fd61cp-4f, 0x1.ebf04ep-5f, 0x1.931352p-5f, 0x1.439686p-5f,
     0x1.0edfe2p-5f, 0x1.d0b70ap-6f, 0x1.d0c1ccp-2f, 0x1.8535e2p-2f, 0x1.4acd68p-2f,
     0x1.1e257ap-2f),
    (-0x1.c5e5d2p-4f, -0x1.31e5cap-4f, -0x1.b33cb8p-5f, -0x1.427652p-5f, -0x1.b6db6p-6f,
     -0x1.1cd9ccp-6f, -0x1.8a54ecp-7f, -0x1.220472p-7f, -0x1.87fde2p-8f, -0x1.fbca56p-9f,
     -0x1.64d05p-9f, -0x1.070316p-9f, -0x1.5e84cep-2f, -0x1.074bd8p-2f, -0x1.927f8cp-3f,
     -0x1.3b0c66p-3f),
    (0x1.7cfa7ap-5f, 0x1.bc69c4p-6f, 0x1.14f766p-6f, 0x1.6b3dfp-7f, 0x1.a3c6eap-8f, 0x1.c1f0f8p-9f,
     0x1.0723fap-9f, 0x1.4f3716p-10f, 0x1.77f3a8p-11f, 0x1.8ac374p-12f, 0x1.d2ef58p-13f,
     0x1.2841b2p-13f, 0x1.a503d4p-3f, 0x1.22f86cp-3f, 0x1.996a4ap-4f, 0x1.27f2ep-4f),
    (-0x1.209744p-6f, -0x1.28a9dcp-7f, -0x1.48aebp-8f, -0x1.8203c8p-9f, -0x1.7fd2d8p-10f,
     -0x1.57e52ap-11f, -0x1.56b694p-12f, -0x1.7c32a6p-13f, -0x1.63ba2ep-14f, -0x1.301fe4p-15f,
     -0x1.2f8b42p-16f, -0x1.4c134ap-17f, -0x1.b05082p-4f, -0x1.16ac6p-4f, -0x1.6da66cp-5f,
     -0x1.ee0448p-6f),
    (0x1.923b2cp-8f, 0x1.710cdap-9f, 0x1.6f5d3cp-10f, 0x1.85de5ap-11f, 0x1.512352p-12f,
     0x1.fe20b2p-14f, 0x1.b43c18p-15f, 0x1.a79846p-16f, 0x1.4c6186p-17f, 0x1.d08c9cp-19f,
     0x1.883354p-20f, 0x1.727922p-21f, 0x1.8a055cp-5f, 0x1.ddfdf6p-6f, 0x1.26d6dp-6f,
     0x1.773f88p-7f),
    (-0x1.078bf2p-9f, -0x1.b42c92p-11f, -0x1.884286p-12f, -0x1.7d028cp-13f, -0x1.2279acp-14f,
     -0x1.757e5p-16f, -0x1.12a2eep-17f, -0x1.d70cd6p-19f, -0x1.399e86p-20f, -0x1.65745ep-22f,
     -0x1.fd17ep-24f, -0x1.a1e188p-25f, -0x1.4a8eaap-6f, -0x1.7bf7acp-7f, -0x1.b57758p-8f,
     -0x1.063ae2p-8f),
    (0x1.3ee474p-11f, 0x1.e6edep-13f, 0x1.9010cp-14f, 0x1.5ff84p-15f, 0x1.d81016p-17f,
     0x1.06c6d2p-18f, 0x1.526d4ep-20f, 0x1.fb60a2p-22f, 0x1.1b384p-23f, 0x1.0bf5f2p-25f,
     0x1.41fc7ep-27f, 0x1.cf9a94p-29f, 0x1.fbdcb2p-8f, 0x1.0fbf72p-8f, 0x1.360c7p-9f,
     0x1.5aae68p-10f))
V_TABLE_16(normal,
    (0x1.ab2e6ca3e869bp+1, 0x1.29febab1e116ap+2, 0x1.7f98a5844f346p+2, 0x1.d537dac4305e8p+2,
     0x1.2adfab8fe77c8p+3, 0x1.80462be7221a2p+3, 0x1.d62b19e529f68p+3, 0x1.158ed177ad73bp+4,
     0x1.55a2e8878b83bp+4, 0x1.ab1a709d1c158p+4, 0x1.0021610901affp+5, 0x1.288f770974fe5p+5,
     0x1.51ce424d3b709p-2, 0x1.008a847ff5d64p+0, 0x1.aae609eaadb8dp+0, 0x1.2a20f5fa9a87ap+1),
    (0x1.c61e6a991218ap-4, 0x1.509a2ed4313b8p-4, 0x1.099a024fe2521p-4, 0x1.b5e54db698c3ap-5,
     0x1.5a08b9164de3dp-5, 0x1.0e4d11ecf7c2dp-5, 0x1.bad4a05fef4dbp-6, 0x1.778c32c91f61bp-6,
     0x1.3172e81ceee75p-6, 0x1.e908e569bf785p-7, 0x1.97e96922f5c7cp-7, 0x1.606360b0ed578p-7,
     0x1.90dea6a4358e4p-2, 0x1.0b8f24a296ddep-2, 0x1.885e3fef1fdbfp-3, 0x1.32440ada43e5ap-3),
    (-0x1.da0c83f3bbe21p-6, -0x1.0b28474b72859p-6, -0x1.5111539ae94adp-7, -0x1.cd80944e86e74p-8,
     -0x1.21f5926eb9236p-8, -0x1.635075f5b2a29p-9, -0x1.dddcc424707b8p-10, -0x1.581d3c72cbaa9p-10,
     -0x1.c7c7cbf4e5329p-11, -0x1.244dcbd335f0fp-11, -0x1.96e997d581a14p-12,
     -0x1.2fc049de9e2fap-12, -0x1.14464e269cfbbp-2, -0x1.18c8d1eac215dp-3, -0x1.4576786c548d5p-4,
     -0x1.9ecd7e973af4ap-5),
    (0x1.d4cff6b860069p-8, 0x1.99e9f5206f6dp-9, 0x1.a221c52fd876bp-10, 0x1.de95ab84b937bp-11,
     0x1.e0e159352fc02p-12, 0x1.d0037e7468d14p-13, 0x1.00af873640458p-13, 0x1.3a4b4c521e8bdp-14,
     0x1.53518f99f9676p-15, 0x1.5cf1f454187fdp-16, 0x1.9585e81c67f9dp-17, 0x1.05a341505835dp-17,
     0x1.35badd63e9428p-3, 0x1.fb7b138abb331p-5, 0x1.e401ccdc889fp-6, 0x1.02eef02fe2151p-6),
    (-0x1.ba230829e07d7p-10, -0x1.30d6ab614c4dcp-11, -0x1.fbb348986f7e2p-13,
     -0x1.e8b06d5e29429p-14, -0x1.8ab909aa563a6p-15, -0x1.2d0a79b91566ep-16, -0x1.128c68b3827p-17,
     -0x1.1e23fa669a978p-18, -0x1.f8269190fbdfp-20, -0x1.9ffcb2389e086p-21, -0x1.93bfaae638c28p-22,
     -0x1.c266a9d1ae2a4p-23, -0x1.2c3fa687c4dc8p-4, -0x1.99b91369c3441p-6, -0x1.49d2a44859a13p-7,
     -0x1.2e0560e386279p-8),
    (0x1.8faea1cb21ab1p-12, 0x1.b88ca7f5d1d0ap-14, 0x1.2e0e583e51522p-15, 0x1.ebabf93dac3b8p-17,
     0x1.40d143dffa53bp-18, 0x1.84286c1e2489bp-20, 0x1.24619afbcf64dp-21, 0x1.03af12c40a2ebp-22,
     0x1.75bb3df487eb3p-24, 0x1.ef3a5de700f55p-26, 0x1.919877535e8d9p-27, 0x1.83657f06ec9ebp-28,
     0x1.0434a6fd7495p-5, 0x1.2e2fb0eb7e371p-7, 0x1.a202b4524b2bep-9, 0x1.4c49757010408p-10),
    (-0x1.5bbbaf2642f85p-14, -0x1.35f289cb338b8p-16, -0x1.6097c4e2eac7ap-18,
     -0x1.e7b02011ba22ep-20, -0x1.0241c4ac0ce9fp-21, -0x1.f1645d6acd68dp-24,
     -0x1.360a16dbdd7f9p-25, -0x1.d5de3378978ccp-27, -0x1.1477377fa0b98p-28,
     -0x1.2660cec52fa54p-30, -0x1.8f122870433bdp-32, -0x1.4cf74aceeeed1p-33, -0x1.9bba0c8811c38p-7,
     -0x1.9d4bf63c04777p-9, -0x1.f1c85b8dafc7fp-11, -0x1.5b50bdc6b7c71p-12),
    (0x1.2425898be164dp-16, 0x1.a95f4791349f9p-19, 0x1.94276480c205ap-21, 0x1.dd2a003db666fp-23,
     0x1.9bec0c4de330ep-25, 0x1.3cbf8e90dd0cep-27, 0x1.475fbea10bf9ap-29, 0x1.a7c3b04cbd146p-31,
     0x1.982b7da580a02p-33, 0x1.5d7f3ac78f1afp-35, 0x1.8c2edab6c4244p-37, 0x1.1dfa5f646ac46p-38,
     0x1.2daa90e6700b3p-8, 0x1.08dbb98bc1f24p-10, 0x1.18a6b3eb6148fp-12, 0x1.5acd9d53ebf0cp-14),
    (-0x1.db5aea17f7b0ep-19, -0x1.1d20a1960befdp-21, -0x1.c7476323edd06p-24,
     -0x1.ccc0e099da3aap-26, -0x1.4587dcf09c1b4p-28, -0x1.9103c5d89a038p-31,
     -0x1.583becfc9cf98p-33, -0x1.7d01d66ba5ad9p-35, -0x1.2cae0caa71b15p-37,
     -0x1.9e5f6b19f9334p-40, -0x1.88f0e8e21f8fcp-42, -0x1.eae4035662087p-44,
     -0x1.9dadaf9b641bdp-10, -0x1.40abefa296cb1p-12, -0x1.2d765aef23aafp-14,
     -0x1.4c4ad6b30fef2p-16),
    (0x1.775f48bd6684p-21, 0x1.75e2d4e4d82ebp-24, 0x1.f86e0bf0183acp-27, 0x1.b7493af61f7aep-29,
     0x1.fdf7745ff283cp-32, 0x1.f8b885a646705p-35, 0x1.68787d5eff83p-37, 0x1.55840ee69bb3cp-39,
     0x1.ba137a7d96f4cp-42, 0x1.eaa04b0742ab3p-45, 0x1.855ac96c0191fp-47, 0x1.a5079f20ab4cdp-49,
     0x1.0b8ca53fb0878p-11, 0x1.710ab2781bed2p-14, 0x1.35f26c63a5a9ep-16, 0x1.32a1a9e29beeap-18),
    (-0x1.204cf6908a862p-23, -0x1.e020ae316e231p-27, -0x1.1309a050f7dbdp-29,
     -0x1.9db1de7501fbap-32, -0x1.8c021a64064dp-35, -0x1.3bcaae2b1ddb8p-38, -0x1.77efd6fa18447p-41,
     -0x1.313105cfc0842p-43, -0x1.445113af68169p-46, -0x1.2210d02502b0dp-49,
     -0x1.816fa25b5e584p-52, -0x1.68cf86611f52ap-54, -0x1.487cc151c7c6cp-13,
     -0x1.95b7c48802c3ep-16, -0x1.3237be433f717p-18, -0x1.11532f512279cp-20),
    (0x1.af7985c84fc2dp-26, 0x1.2e379faff5f0dp-29, 0x1.27622ab2a183fp-32, 0x1.80614f2a2b268p-35,
     0x1.30ec218d903ap-38, 0x1.88e94ced1c7fp-42, 0x1.861eb178507f5p-45, 0x1.106ae6a8f3217p-47,
     0x1.dae0c1be395dcp-51, 0x1.5693243423a14p-54, 0x1.7d4c8b9e5b4fbp-57, 0x1.31037563fabb4p-59,
     0x1.80b8ee9dc1d8dp-15, 0x1.abdc7631ffaa3p-18, 0x1.23b5cbb380b9dp-20, 0x1.d7608dd51fb91p-23),
    (-0x1.3ac8ebbb1577ep-28, -0x1.7528b9b1bd73ep-32, -0x1.388a632734736p-35,
     -0x1.624ae8fafe58ap-38, -0x1.d120ea98ec43ap-42, -0x1.e5e486fa97ba8p-46,
     -0x1.931e70018eda2p-49, -0x1.e42242fbc0205p-52, -0x1.5a92e35c6dcb8p-55,
     -0x1.93cb37d835a1cp-59, -0x1.78a0e3b1642e6p-62, -0x1.0afff29943538p-64,
     -0x1.af8c1bf1cc4ddp-17, -0x1.b22a9a85b355cp-20, -0x1.0c87605295a7fp-22,
     -0x1.8c209f9699627p-25),
    (0x1.c11917dce7e99p-31, 0x1.c4ba0b348a2abp-35, 0x1.46562e995af71p-38, 0x1.823af5a183bbp-41,
     0x1.6033c2cef941dp-45, 0x1.2b7ffe92446fcp-49, 0x1.c5ba4e7d595adp-53, 0x1.430046690b39dp-56,
     0x1.f9112e6f2909p-60, 0x1.d5e88970b797fp-64, 0x1.68f55e6c53dd7p-67, 0x1.70ff7f915b16cp-68,
     0x1.d2a14b1fa2739p-19, 0x1.a6d2754397e71p-22, 0x1.d48e42563d006p-25, 0x1.7baad18f3457cp-27),
    (-0x1.48328fbf0b582p-33, -0x1.1725e63442ed9p-37, -0x1.582964d555785p-41,
     -0x1.1f3cef9784333p-44, -0x1.17cfe072e6999p-48, -0x1.7ba7a12e79ee9p-53,
     -0x1.da0c434c850b9p-57, -0x1.4bf64c605a1eap-60, -0x1.839abb247ec29p-64,
     -0x1.1ff8b6d99044ap-68, -0x1.744d1ce8ebe4fp-72, -0x1.7830813b98f49p-77,
     -0x1.ef1039127e1ecp-21, -0x1.9aa6cd63bab3dp-24, -0x1.a4d3cd19807a7p-27,
     -0x1.c10b7ef81faa3p-30),
    (0x1.c385de742c554p-36, 0x1.467612b52aeedp-40, 0x1.54e60f9c59d6cp-44, -0x1.28bb66e9d25eap-44,
     0x1.a482a075cb39p-52, 0x1.b7c5f7300bcd5p-57, -0x1.15ca77b35ffe9p-59, 0x1.23870703cc594p-60,
     0x1.1d71724c13f04p-68, 0x1.c769e495455fp-73, 0x1.96bbc1c0c503p-76, -0x1.8e554387761c6p-73,
     0x1.be1f8f728920bp-23, 0x1.e189546d9b12p-26, 0x1.8be996e1aa83fp-28, -0x1.0fb9b1bd8541bp-28))

#endif
