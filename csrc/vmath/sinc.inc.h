/* sinc.inc.h: sinc; a template for each float width. */
#include "simd/real.h"

#define v_abs R(v_abs)
#define v_bits R(v_bits)
#define v_residual R(v_residual)

/* sin(pi x) / (pi x), 1 at 0 and the limit 0 at infinity. With x = n + r, n an integer and both
 * exact, sinc x = (-1)^n (r / x) sinc r. The quotient and sinc r are carried as sums of two. Error
 * 0.643 at -0x1.47f9bep+4, without fma 0.633. In double 0.622 at 0x1.5294b0507776cp+19, without fma
 * 0.612. */
MG_INLINE real R(v_sinc)(real x) {
    const real whole = BY_WIDTH(0x1p23, 0x1p52); /* from here all numbers are integers */
    real a = v_abs(x) < whole ? v_abs(x) : whole;
    real t = a + whole, n = t - whole, r = a - n;
    real z = r * r, z_low = -v_residual(r, r, z);
    real first = BY_WIDTH(V_SINC_FIRST_F32, V_SINC_FIRST_F64), rest = R(v_sinc_rest)(z);
    real k = first + rest, k_low = (first - k) + rest;
    real w = z * k, w_low = fma_real(z, k_low, fma_real(z_low, k, -v_residual(z, k, w)));
    real s = 1 + w, s_low = ((1 - s) + w) + w_low;
    real num = n == 0 ? 1 : r, den = n == 0 ? 1 : a;
    real inverse = 1 / den, q = num * inverse, q_low = v_residual(q, den, num) * inverse;
    real y = q * s, y_low = fma_real(q, s_low, fma_real(q_low, s, -v_residual(q, s, y)));
    y += y_low;
    y = v_bits(t) & 1 ? -y : y;
    return x == x ? (r == 0 ? (n == 0 ? 1 : 0) : y) : x;
}

#undef v_abs
#undef v_bits
#undef v_residual
