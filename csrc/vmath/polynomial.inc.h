/* polynomial.inc.h: polynomials with constant coefficients T(name_fit); a template (simd/num.h). */

/* c[0] + c[1] x + ...: independent pairs of terms, added up by Horner's rule in x^2. */
MG_INLINE num F(polynomial)(num x, const C(TYPE) *c, int count) {
    int i = count - 2 + count % 2;
    num square = n_mul(x, x), y = i < count - 1 ? n_line(x, c[i + 1], c[i]) : n_set(c[i]);
    for (i -= 2; i >= 0; i -= 2) y = n_fma(y, square, n_line(x, c[i + 1], c[i]));
    return y;
}
/* The same by Horner's rule, with the fewest operations. Each operation waits for the one
 * before. */
MG_INLINE num F(horner)(num x, const C(TYPE) *c, int count) {
    num y = n_set(c[count - 1]);
    for (int i = count - 2; i >= 0; i--) y = n_fma(y, x, n_set(c[i]));
    return y;
}
#undef POLYNOMIAL
#undef HORNER
#undef SHORT
#define POLYNOMIAL(x, name)                                                                        \
    F(polynomial)(x, T(name##_fit), (int)(sizeof T(name##_fit) / sizeof(C(TYPE))))

#define HORNER(x, name)                                                                            \
    F(horner)(x, T(name##_fit), (int)(sizeof T(name##_fit) / sizeof(C(TYPE))))

/* A short polynomial: by Horner's rule in float, where the chain does not set the time, by pairs in
 * double. */
#define SHORT(x, name) (sizeof(C(TYPE)) == 4 ? HORNER(x, name) : POLYNOMIAL(x, name))

