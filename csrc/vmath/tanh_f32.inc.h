/* tanh_f32.inc.h: tanh of floats, an odd piecewise function (erf.inc.h); a template. */

MG_INLINE F(stage) F(tanh_first)(num x) { return F(odd_first)(x, C(TANH_HIGH), C(TANH_STEP)); }
MG_INLINE num F(tanh_last)(F(stage) s, num x) { return F(odd_last)(s, x, F(tanh_table)); }
MG_INLINE num F(tanh)(num x) { return F(tanh_last)(F(tanh_first)(x), x); }
