"""Rows of eigenvalues, singular values, QR and the matrix exponential.

LAPACK computes the values through :func:`~minigrad.ops.linalg.through_numpy`.
``minigrad.ops.linalg`` says how a row packs the several results of a factorisation.
"""

from __future__ import annotations

from collections.abc import Callable
from math import nan
from typing import Any

import numpy as np

from minigrad.ops.equal_values import (
    OF_VALUES,
    OF_VECTORS,
    Share,
    equal_pairs,
    equal_singular_values,
    inverse_gaps,
    is_unknown,
    linear_pairs,
    meet,
    partials_of_product,
    separate,
    without_cotangent,
)
from minigrad.ops.linalg import SOLVE_TRIANGULAR, NumpyArray, T, through_numpy, where_finite
from minigrad.ops.table import Row, custom, zero
from minigrad.runtime.native import Array, call, kernels, lib


def _mark_vjp(g: T, mark: float) -> T:
    rows = g.shape[-2] - 1
    last = g.narrow(-2, rows, 1).detach() * 0.0 + mark
    return g.narrow(-2, 0, rows).cat_with(last, -2)


MARKED = custom(
    "marked",
    lambda y, mark: call(kernels.copy, y),
    _mark_vjp,
    jvp=[lambda t, mark: t],
    doc="a packed factorisation of which the values, or the vectors, are used",
)


def _of_slope(g: T) -> float:
    """The mark for used vectors, or for both where the values have a gradient."""
    return OF_VALUES + OF_VECTORS if g.requires_grad else OF_VECTORS


def _forward(name: str, function: Callable[..., NumpyArray]) -> Callable[..., Array]:
    return lambda a, *args: through_numpy(name, where_finite(lambda a: function(a, *args)), a)


# ---- eigenvalues ---------------------------------------------------------------------------------


def _eigh(a: NumpyArray, uplo: Any) -> NumpyArray:
    w, v = np.linalg.eigh(a, uplo)
    return np.concatenate([w[..., None, :], v, np.zeros_like(w[..., None, :])], -2)


def _eigh_vjp(g: T, y: T) -> T:
    """V (diag(gw) + F * (V^T gV)) V^T with F_ij = 1 / (w_j - w_i), symmetric."""
    w, v = y[..., 0, :], y[..., 1:-1, :]
    gw, gv = g[..., :1, :], g[..., 1:-1, :]
    gaps, inner = w.unsqueeze(-2) - w.unsqueeze(-1), v.mT @ gv
    whole = (v * gw + v @ (inverse_gaps(w, gaps) * inner)) @ v.mT
    whole = 0.5 * (whole + whole.mT)
    if w.size and (equal := equal_pairs(w, gaps)).any():
        told, ratio = partials_of_product(equal, inner.detach(), gw.detach())
        if told.any():
            block = (ratio * inner).masked_fill(~told, 0.0)
            block = v @ (0.5 * (block + block.mT)) @ v.mT
            whole = whole + _once(block)
            equal = equal & ~told
        gw, gv, inner = gw.detach(), gv.detach(), inner.detach()
        known = separate(equal, gw, inner) | without_cotangent(equal, inner)
        lost = is_unknown(equal & ~known, inner - inner.mT, g.detach(), gw, gv)
        whole = whole.masked_fill(lost, nan)
        matrices = ((v * w.unsqueeze(-2)) @ v.mT).detach()
        whole = meet(whole, Share("eigh", matrices, equal, gw, (inner,)))
    return whole


def _refuse_equal(name: str, values: str, equal: T) -> None:
    """RuntimeError where vectors of equal values would have a tangent: they may turn anyhow."""
    if equal.any():
        raise RuntimeError(
            f"[{name}] in forward mode, the vectors of equal values have no derivative: use "
            f"{values} if you need the values alone, or reverse mode"
        )


def _packed(*rows: T) -> T:
    """Rows one above the other, and the last, which nothing reads."""
    whole = rows[0]
    for more in rows[1:]:
        whole = whole.cat_with(more, -2)
    return whole.cat_with(whole.narrow(-2, 0, 1).detach() * 0.0, -2)


def _eigh_push(t: T, y: T, uplo: Any) -> T:
    """With K = V^T dA V: dw is its diagonal, and dV = V (F * K) with F_ij = 1 / (w_j - w_i)."""
    w, v = y[..., 0, :], y[..., 1:-1, :]
    gaps = w.unsqueeze(-2) - w.unsqueeze(-1)
    if w.size:
        _refuse_equal("eigh", "eigvalsh", equal_pairs(w, gaps))
    inner = v.mT @ (0.5 * (t + t.mT)) @ v
    slopes = inner.diagonal(0, -2, -1).unsqueeze(-2)
    return _packed(slopes, v @ (inverse_gaps(w, gaps) * inner))


def _values_push(t: T, u: T, v: T) -> T:
    """u_i^T dA v_i."""
    return (u * (t @ v)).sum(-2)


def _marked_vectors(x: T, row: Row, *args: Any) -> T:
    """A factorisation whose vectors stand in a derivative of the values."""
    return x.apply_row(row, *args).apply_row(MARKED, OF_VALUES + OF_VECTORS)


EIGH = custom(
    "eigh",
    _forward("eigh", _eigh),
    lambda g, y, uplo: _eigh_vjp(g, y),
    jvp=[_eigh_push],
    doc="the eigenvalues of symmetric matrices, in ascending order, above their eigenvectors",
)


def _eigenvalues_vjp(g: T, x: T, uplo: Any) -> T:
    y = x.apply_row(EIGH, uplo).apply_row(MARKED, _of_slope(g))
    w, v = y.detach()[..., 0, :], y[..., 1:-1, :]
    whole = (v * g.unsqueeze(-2)) @ v.mT
    whole = 0.5 * (whole + whole.mT)
    if w.size and (equal := equal_pairs(w, w.unsqueeze(-2) - w.unsqueeze(-1))).any():
        v, gw = v.detach(), g.detach().unsqueeze(-2)
        matrices = (v * w.unsqueeze(-2)) @ v.mT
        whole = meet(whole, Share("eigh", matrices, equal, gw, ()))
    return whole


def _eigenvalues_push(t: T, x: T, uplo: Any) -> T:
    v = _marked_vectors(x, EIGH, uplo)[..., 1:-1, :]
    return _values_push(0.5 * (t + t.mT), v, v)


EIGENVALUES = custom(
    "eigvalsh",
    _forward("eigvalsh", lambda a, uplo: np.linalg.eigvalsh(a, uplo)),
    _eigenvalues_vjp,
    jvp=[lambda t, x, uplo: _eigenvalues_push(t, x, uplo)],
    doc="the eigenvalues alone, in a third of the time; the vectors are found for the gradient",
)

# ---- singular values -----------------------------------------------------------------------------


def _svd(a: NumpyArray) -> NumpyArray:
    u, s, vt = np.linalg.svd(a, full_matrices=False)
    row = s[..., None, :]
    return np.concatenate([u, row, vt.swapaxes(-1, -2), np.zeros_like(row)], -2)


def _once(x: T) -> T:
    """x with an infinite derivative, for a gradient that cannot be differentiated again."""
    return x.detach() + (x - x.detach()).sqrt() if x.requires_grad else x


def _svd_vjp(g: T, y: T, m: int) -> T:
    """Townsend, "Differentiating the singular value decomposition" (2016), for real matrices.

    The gradient is U (K + diag(gS)) V^T, plus the parts outside the spaces of U and V: (I - U U^T)
    gU S^-1 V^T and U S^-1 gV^T (I - V V^T). Let a and b be the skew parts X - X^T of U^T gU and V^T
    gV. Then K_ij is (a_ij s_j + s_i b_ij) / (s_j^2 - s_i^2). The form below divides by the
    difference of two singular values. Its dividend is 0 if a function depends on U V^T, which is
    unique, but not on U alone.
    """
    u, s, v = y[..., :m, :], y[..., m : m + 1, :], y[..., m + 1 : -1, :]
    gu, gs, gv = g[..., :m, :], g[..., m : m + 1, :], g[..., m + 1 : -1, :]
    values, column = s.squeeze(-2), s.mT
    of_u, of_v = u.mT @ gu, v.mT @ gv
    a, b = of_u - of_u.mT, of_v - of_v.mT
    inner = (a + b) * inverse_gaps(values, s - column) + (a - b) * inverse_gaps(values, s + column)
    whole = (u * gs + u @ (0.5 * inner)) @ v.mT
    inverse, k = inverse_gaps(values, s), s.shape[-1]

    def beyond(inverse: T, total: T) -> T:
        """``total`` plus the parts outside the spaces of U and V."""
        if u.shape[-2] > k:
            total = total + ((gu - u @ of_u) * inverse) @ v.mT
        return total + (u * inverse) @ (gv - v @ of_v).mT if v.shape[-2] > k else total

    whole = beyond(inverse, whole)
    if not values.size:
        return whole
    rest = ~np.eye(k, dtype=bool)
    if (equal := equal_singular_values(values, u.shape[-2] == v.shape[-2])).any():
        told, block, inverse = linear_pairs(values, s, equal, of_u, of_v, gs)
        if told.any():
            block = (block - 0.5 * inner).masked_fill(~(told & rest), 0.0)
            inverse = inverse.masked_fill(~told.any(-2).unsqueeze(-2), 0.0)
            whole = whole + _once(beyond(inverse, u @ block @ v.mT))
            equal = equal & ~told
        lone = (s.detach() * column.detach()) != 0.0  # at 0 the subgradient of least norm is taken
        twist = (a + b).detach().masked_fill(~lone, 0.0)
        vectors = gu.detach().cat_with(gv.detach(), -2)
        inner = (of_u.detach(), of_v.detach())
        equal_left = equal & ~without_cotangent(equal & rest, *inner)
        lost = is_unknown(equal_left, twist, g.detach(), gs.detach(), vectors)
        whole = whole.masked_fill(lost, nan)
        whole = meet(whole, Share("svd", ((u * s) @ v.mT).detach(), equal, gs.detach(), inner))
    return whole


def _svd_push(t: T, y: T, shape: tuple[int, ...]) -> T:
    """The tangents of U, S and V; Townsend (2016), as above.

    With K = U^T dA V, dS is its diagonal. U^T dU and V^T dV are the skew matrices with
    (K_ij s_j + s_i K_ji) / (s_j^2 - s_i^2) and (s_i K_ij + K_ji s_j) / (s_j^2 - s_i^2).
    """
    m, n = shape[-2:]
    u, s, v = y[..., :m, :], y[..., m : m + 1, :], y[..., m + 1 : -1, :]
    values, column = s.squeeze(-2), s.mT
    if values.size:
        _refuse_equal("svd", "svdvals", equal_singular_values(values, m == n))
    inner = u.mT @ t @ v
    apart = (inner + inner.mT) * inverse_gaps(values, s - column)
    beside = (inner - inner.mT) * inverse_gaps(values, s + column)
    du, dv = u @ (0.5 * (apart + beside)), v @ (0.5 * (apart - beside))
    inverse = inverse_gaps(values, s)
    if m > values.shape[-1]:
        du = du + (t @ v - u @ inner) * inverse
    if n > values.shape[-1]:
        dv = dv + (t.mT @ u - v @ inner.mT) * inverse
    return _packed(du, inner.diagonal(0, -2, -1).unsqueeze(-2), dv)


SVD = custom(
    "svd",
    _forward("svd", _svd),
    # the number of rows of U comes from the shape of A
    lambda g, y, shape: _svd_vjp(g, y, shape[-2]),
    jvp=[_svd_push],
    doc="U, the singular values in descending order and V, one above the other",
)


def _singular_values_vjp(g: T, x: T) -> T:
    y, (m, n) = x.apply_row(SVD).apply_row(MARKED, _of_slope(g)), x.shape[-2:]
    whole = (y[..., :m, :] * g.unsqueeze(-2)) @ y[..., m + 1 : -1, :].mT
    values = y.detach()[..., m, :]
    if values.size and (equal := equal_singular_values(values, m == n)).any():
        whole = meet(whole, Share("svd", x.detach(), equal, g.detach().unsqueeze(-2), ()))
    return whole


def _singular_values_push(t: T, x: T) -> T:
    y, m = _marked_vectors(x, SVD), x.shape[-2]
    return _values_push(t, y[..., :m, :], y[..., m + 1 : -1, :])


SINGULAR_VALUES = custom(
    "svdvals",
    _forward("svdvals", lambda a: np.linalg.svd(a, compute_uv=False)),
    _singular_values_vjp,
    jvp=[lambda t, x: _singular_values_push(t, x)],
    doc="the singular values alone, likewise",
)

# ---- QR ------------------------------------------------------------------------------------------


def _qr(a: Array) -> Array:
    if a.shape[-1] <= lib.MG_QR_COLUMNS:
        return call(kernels.qr, a)
    return _large_qr(a)


_large_qr = _forward("qr", lambda a: np.concatenate(np.linalg.qr(a), -2))


def _qr_vjp(g: T, y: T, m: int) -> T:
    """(gQ + Q copy(M)) R^-T, M = R gR^T - gQ^T Q. copy mirrors the lower triangle to the upper.

    Seeger et al., "Auto-differentiating linear algebra" (2017), section on LQ, transposed.
    """
    q, r, gq, gr = y[..., :m, :], y[..., m:, :], g[..., :m, :], g[..., m:, :]
    inner = r @ gr.triu().mT - gq.mT @ q
    inner = inner.tril() + inner.tril(-1).mT
    # X R^-T is the transpose of R^-1 X^T
    whole = (gq + q @ inner).mT
    return r.apply_row(SOLVE_TRIANGULAR, True, False, beside=(whole,)).mT


QR = custom(
    "qr",
    _qr,
    lambda g, y, shape: _qr_vjp(g, y, shape[-2]),
    doc="Q and below it R, of matrices with at least as many rows as columns",
)

BASIS = zero(
    "basis",
    1,
    "orthonormal columns filled up to a basis",
    forward=_forward("qr", lambda a: np.linalg.qr(a, "complete")[0]),
)

# ---- the exponential -----------------------------------------------------------------------------

_PADE = (
    64764752532480000, 32382376266240000, 7771770303897600, 1187353796428800, 129060195264000,
    10559470521600, 670442572800, 33522128640, 1323241920, 40840800, 960960, 16380, 182, 1,
)  # fmt: skip
_LARGEST_NORM = 5.371920351148152  # largest norm at which the approximation is exact in float64


@np.errstate(all="ignore")
def _matrix_exp(a: NumpyArray) -> NumpyArray:
    """Higham, "The scaling and squaring method for the matrix exponential revisited" (2005)."""
    norm = np.minimum(np.abs(a).sum(-2).max(-1, initial=0), np.finfo(np.float64).max)
    halvings = np.ceil(np.log2(np.maximum(norm / _LARGEST_NORM, 1))).astype(int)[..., None, None]
    x = np.ldexp(a, -halvings, order="C")  # row-major: BLAS sums other layouts in another order
    square, power = x @ x, np.eye(a.shape[-1])
    even, odd = np.zeros_like(x), np.zeros_like(x)
    for k in range(0, len(_PADE), 2):
        even, odd = even + _PADE[k] * power, odd + _PADE[k + 1] * power
        power = power @ square
    odd = x @ odd
    y = np.linalg.solve(even - odd, even + odd)
    for k in range(halvings.max(initial=0)):
        y = np.where(k < halvings, y @ y, y)
    return y


def _matrix_exp_vjp(g: T, x: T) -> T:
    """The upper right of exp([[A^T, G], [0, A^T]]): Al-Mohy and Higham (2009), theorem 2.1."""
    n, xt = x.shape[-1], x.mT
    upper, lower = xt.cat_with(g, -1), (xt.detach() * 0.0).cat_with(xt, -1)
    return upper.cat_with(lower, -2).apply_row(MATRIX_EXP)[..., :n, n:]


MATRIX_EXP: Row = custom(
    "matrix_exp",
    _forward("matrix_exp", _matrix_exp),
    _matrix_exp_vjp,
    jvp=[lambda t, x: _matrix_exp_vjp(t, x.mT)],
    doc="the exponential, the sum of A^k / k! for k from 0 on",
)
