/* constants.h: ln 2 and log2 e in parts. */
#ifndef MG_VMATH_COEFFICIENTS_CONSTANTS_H
#define MG_VMATH_COEFFICIENTS_CONSTANTS_H

/* ln 2 = HI + LO; HI has 15 bits, so that n * HI is exact with and without fma. */
#define V_LN2_HI_F32 0x1.62e4p-1f
#define V_LN2_LO_F32 0x1.7f7d1cp-20f
#define V_LOG2E_F32 0x1.715476p+0f

/* ln 2 = HI + LO; HI has 42 bits, so that n * HI is exact with and without fma. */
#define V_LN2_HI_F64 0x1.62e42fefa38p-1
#define V_LN2_LO_F64 0x1.ef35793c7673p-45
#define V_LN2_F64 0x1.62e42fefa39efp-1
#define V_LOG2E_F64 0x1.71547652b82fep+0

/* log2 e less V_LOG2E_F64. */
#define V_LOG2E_LOW_F64 0x1.777d0ffda0d24p-56

#endif
