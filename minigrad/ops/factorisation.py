"""Eigenvalues, singular values, QR and the matrix exponential.

Values come from LAPACK through :func:`~minigrad.ops.linalg.through_numpy`; see there for how the
several results of one factorisation make a row.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from math import inf, nan
from typing import Any, NamedTuple

import numpy as np

from minigrad._c import Handle, call, lib
from minigrad.ops.linalg import SOLVE_TRIANGULAR, Array, T, through_numpy, where_finite
from minigrad.ops.table import Row, custom, zero

_EPSILON = {"float32": 2.0**-23, "float64": 2.0**-52}


def _equal(values: T, gaps: T) -> T:
    """Whether pairs are equal up to rounding, which includes each with itself."""
    scale = values.detach().abs().amax(-1, True)
    # those of 2 I, turned, are up to three such units apart
    rounding = 4 * values.shape[-1] * _EPSILON[values.dtype.name] * scale
    return gaps.detach().abs() <= rounding.unsqueeze(-1)


def _inverse_gaps(values: T, gaps: T) -> T:
    """1 / gaps, and 0 for the pairs that are equal up to rounding, which includes each with itself.

    What such a pair would add to a derivative is 0 for functions of the space its vectors span, and
    depends on the choice of those for others: see :func:`_unknown`.
    """
    return gaps.masked_fill(_equal(values, gaps), inf).reciprocal() if values.size else gaps


# A packed factorisation has a last row, which nothing reads. The gradient of that row is a mark: 1
# where the values were used, 2 where the vectors were, 3 where both were.
OF_VALUES, OF_VECTORS = 1.0, 2.0


def _mark_vjp(g: T, mark: float) -> T:
    rows = g.shape[-2] - 1
    last = g.narrow(-2, rows, 1).detach() * 0.0 + mark
    return g.narrow(-2, 0, rows).cat_with(last, -2)


MARKED = custom(
    "marked",
    lambda y, mark: call(lib.mg_copy, y),
    _mark_vjp,
    doc="a packed factorisation of which the values, or the vectors, are used",
)


def _of_slope(g: T) -> float:
    """The mark of vectors beside a gradient of the values, which may come of the values too."""
    return OF_VALUES + OF_VECTORS if g.requires_grad else OF_VECTORS


def _unknown(equal: T, twist: T, g: T, values: T, vectors: T) -> T:
    """For each matrix, whether its gradient does not exist, or cannot be found from these.

    Where a function of the vectors alone changes as those of an equal pair turn, by the twist, it
    has no gradient. Where the values are used too, as in V f(w) V^T, what an equal pair adds is the
    derivative of f, which they do not tell: unless neither has a gradient here.
    """
    size = vectors.abs().amax((-2, -1), True)
    turns = twist.abs() > _EPSILON[g.dtype.name] ** 0.5 * size
    both = g[..., -1:, :1] == OF_VALUES + OF_VECTORS
    used = ((values != 0.0) | (vectors != 0.0).any(-2).unsqueeze(-2)) & both
    return (equal & (turns | used | used.mT)).any((-2, -1)).unsqueeze(-1).unsqueeze(-1)


def _pairs(values: T, gaps: T) -> T:
    """The equal pairs, without those of each with itself."""
    return _equal(values, gaps) & ~np.eye(values.shape[-1], dtype=bool)


def _spread(row: T, cluster: T) -> T:
    """How far apart the entries of a row are within the cluster of each."""
    return row.masked_fill(~cluster, -inf).amax(-1, True) - row.masked_fill(~cluster, inf).amin(
        -1, True
    )


def _same(equal: T, gs: T) -> T:
    """The pairs of equal values whose clusters have values that are treated alike."""
    cluster = equal | np.eye(equal.shape[-1], dtype=bool)
    tolerance = _EPSILON[gs.dtype.name] ** 0.5
    size = gs.abs().masked_fill(~cluster, 0.0).amax(-1, True)
    same = _spread(gs, cluster) <= tolerance * size
    return equal & same & same.mT


def _plain(equal: T, *inners: T) -> T:
    """The pairs of equal values that add nothing whatever the function is of.

    A pair of a product such as V f(w) V^T adds G_ij f', and a function of the space of the vectors
    adds nothing. Where f(w) is not 0, which the diagonal of ``inner`` tells, G_ij is 0 where
    ``inner`` is. A diagonal of 0 may be that of one vector alone.
    """
    off: Any = 0.0
    size: Any = 0.0
    for inner in inners:
        off = abs(inner).maximum(abs(inner.mT)).maximum(off)
        diagonal = abs(inner.diagonal(0, -2, -1))
        size = diagonal.unsqueeze(-1).minimum(diagonal.unsqueeze(-2)).maximum(size)
    return equal & (size > 0.0) & (off <= _EPSILON[size.dtype.name] ** 0.5 * size)


def _separate(equal: T, gs: T, *inners: T) -> T:
    """The pairs of equal values that add nothing: the function is a sum of one of the values alone,
    which treats equal ones alike, and one of the space of their vectors alone.

    For a function of both in one, such as V f(w) V^T, the gradient of the values is in proportion
    to the diagonal of ``inner``. Here it is the same for equal values, and that diagonal is not.
    """
    cluster = equal | np.eye(equal.shape[-1], dtype=bool)
    tolerance = _EPSILON[gs.dtype.name] ** 0.5
    apart, still = equal & False, equal
    for inner in inners:
        diagonal = inner.diagonal(0, -2, -1).unsqueeze(-2)
        differ = _spread(diagonal, cluster) > tolerance * diagonal.abs().amax(-1, True)
        apart = apart | (differ & differ.mT)
        still = still & (abs(inner - inner.mT) <= tolerance * abs(inner).amax((-2, -1), True))
    return _same(equal, gs) & apart & still


class _Share(NamedTuple):
    """What a node gives a gradient for beside equal values, of matrices that others may have too.

    ``matrices`` were factorised by the operation ``name``. ``gs`` is the gradient of the values,
    and ``inner``, a tuple, what those of the vectors come to among themselves. Both are 0 where
    the node itself knows what the pair adds.
    """

    name: str
    matrices: T
    equal: T
    gs: T
    inner: tuple[T, ...]

    def conflicts(self, other: _Share) -> T | None:
        """For each matrix, whether my values and the other's vectors may be those of one f."""
        mine, yours = self.matrices, other.matrices
        if (
            not other.inner
            or self.name != other.name
            or mine.shape != yours.shape
            or mine.dtype is not yours.dtype
        ):
            return None
        scale = mine.abs().amax((-2, -1), True)
        rounding = 16 * max(mine.shape[-2:]) * _EPSILON[mine.dtype.name]
        same = ((mine - yours).abs() <= rounding * scale).all((-2, -1))
        both = self.equal & other.equal & ((self.gs != 0.0) | (self.gs.mT != 0.0))
        known = _plain(both, *other.inner) | _separate(both, self.gs, *other.inner)
        return same & (both & ~known).any((-2, -1))


class _Shares(threading.local):
    """The shares of the backward that runs, and of those that it runs inside, by depth.

    They are kept until the next one that has any.
    """

    def __init__(self) -> None:
        self.by_depth: dict[int, tuple[int, list[_Share]]] = {}

    def of_run(self) -> list[_Share]:
        """The shares of the innermost backward."""
        depth, number = lib.mg_back_depth(), lib.mg_back_number()
        for ended in [d for d, (n, _) in self.by_depth.items() if d > depth]:
            del self.by_depth[ended]
        found, shares = self.by_depth.get(depth, (0, []))
        if found != number:
            shares = []
            self.by_depth[depth] = (number, shares)
        return shares


_shares = _Shares()


def _met(whole: T, mine: _Share) -> T:
    """``whole``, NaN for matrices whose values one node used and whose vectors another one did.

    V f(w) V^T with V and w from two calls and f(w) summed beside V V^T have the same gradients of
    w and V, but not of the matrix, and neither node sees both. The second of the two says NaN.
    """
    shares = _shares.of_run()
    for other in shares:
        for a, b in ((mine, other), (other, mine)):
            found = a.conflicts(b)
            if found is not None and found.any():
                whole = whole.masked_fill(found.unsqueeze(-1).unsqueeze(-1), nan)
    shares.append(mine)
    return whole


def _forward(name: str, function: Callable[..., Array]) -> Callable[..., Handle]:
    return lambda a, *args: through_numpy(name, where_finite(lambda a: function(a, *args)), a)


# ---- eigenvalues ---------------------------------------------------------------------------------


def _eigh(a: Array, uplo: Any) -> Array:
    w, v = np.linalg.eigh(a, uplo)
    return np.concatenate([w[..., None, :], v, np.zeros_like(w[..., None, :])], -2)


def _told(equal: T, inner: T, gw: T) -> tuple[T, T]:
    """The clusters of equal values whose share of the gradient is known, and f' / f there.

    V f(w) V^T has gw_i = r inner_ii with one r = f' / (2 f) in a cluster, and a pair adds
    r inner_ij (Daleckii and Krein, 1965). Functions of w and of V V^T apart have equal gw_i there:
    only where the inner_ii differ is it known that the function is none such.
    """
    cluster = equal | np.eye(inner.shape[-1], dtype=bool)
    tolerance = _EPSILON[inner.dtype.name] ** 0.5
    diagonal = inner.diagonal(0, -2, -1).unsqueeze(-2)
    size = diagonal.abs().amax(-1, True)
    mine = (diagonal / size.masked_fill(size == 0.0, 1.0)).masked_fill(~cluster, 0.0)
    ratio = (mine * gw).sum(-1, True) / mine.square().sum(-1, True)
    off = (gw - ratio * mine).abs().masked_fill(~cluster, 0.0).amax(-1, True)
    largest = gw.abs().masked_fill(~cluster, 0.0).amax(-1, True)
    # a slope of 0 may be one of values that were found elsewhere
    close = (off <= tolerance * largest) & (largest > 0.0)
    least = mine.masked_fill(~cluster, inf).amin(-1, True)
    apart = mine.masked_fill(~cluster, -inf).amax(-1, True) - least > tolerance
    still = (inner - inner.mT).abs() <= tolerance * inner.abs().amax((-2, -1), True)
    return equal & close.mT & apart.mT & close & apart & still, ratio / size


def _eigh_vjp(g: T, y: T) -> T:
    """V (diag(gw) + F * (V^T gV)) V^T with F_ij = 1 / (w_j - w_i), symmetric."""
    w, v = y[..., 0, :], y[..., 1:-1, :]
    gw, gv = g[..., :1, :], g[..., 1:-1, :]
    gaps, inner = w.unsqueeze(-2) - w.unsqueeze(-1), v.mT @ gv
    whole = (v * gw + v @ (_inverse_gaps(w, gaps) * inner)) @ v.mT
    whole = 0.5 * (whole + whole.mT)
    if w.size and (equal := _pairs(w, gaps)).any():
        told, ratio = _told(equal, inner.detach(), gw.detach())
        if told.any():
            block = (ratio * inner).masked_fill(~told, 0.0)
            block = v @ (0.5 * (block + block.mT)) @ v.mT
            whole = whole + _once(block)
            equal = equal & ~told
        gw, gv, inner = gw.detach(), gv.detach(), inner.detach()
        known = _separate(equal, gw, inner) | _plain(equal, inner)
        unknown = _unknown(equal & ~known, inner - inner.mT, g.detach(), gw, gv)
        whole = whole.masked_fill(unknown, nan)
        matrices = ((v * w.unsqueeze(-2)) @ v.mT).detach()
        whole = _met(whole, _Share("eigh", matrices, equal, gw, (inner,)))
    return whole


EIGH = custom(
    "eigh",
    _forward("eigh", _eigh),
    lambda g, y, uplo: _eigh_vjp(g, y),
    doc="the eigenvalues of symmetric matrices, in ascending order, above their eigenvectors",
)


def _eigenvalues_vjp(g: T, x: T, uplo: Any) -> T:
    y = x.apply_row(EIGH, uplo).apply_row(MARKED, _of_slope(g))
    w, v = y.detach()[..., 0, :], y[..., 1:-1, :]
    whole = (v * g.unsqueeze(-2)) @ v.mT
    whole = 0.5 * (whole + whole.mT)
    if w.size and (equal := _pairs(w, w.unsqueeze(-2) - w.unsqueeze(-1))).any():
        v, gw = v.detach(), g.detach().unsqueeze(-2)
        matrices = (v * w.unsqueeze(-2)) @ v.mT
        whole = _met(whole, _Share("eigh", matrices, equal, gw, ()))
    return whole


EIGENVALUES = custom(
    "eigvalsh",
    _forward("eigvalsh", lambda a, uplo: np.linalg.eigvalsh(a, uplo)),
    _eigenvalues_vjp,
    doc="the eigenvalues alone, in a third of the time; the vectors are found for the gradient",
)

# ---- singular values -----------------------------------------------------------------------------


def _svd(a: Array) -> Array:
    u, s, vt = np.linalg.svd(a, full_matrices=False)
    row = s[..., None, :]
    return np.concatenate([u, row, vt.swapaxes(-1, -2), np.zeros_like(row)], -2)


def _linear(values: T, s: T, equal: T, of_u: T, of_v: T, gs: T) -> tuple[T, T, T]:
    """The pairs of equal values at which f is linear; their gradient; 1 / s of those that are 0.

    U f(S) V^T with f(s) = c s at such a value, and 0 at one that is 0 but for rounding, has
    gU = G V c S and gV = G^T U c S with G the gradient of the product. Then U^T gU S^-1 and its
    like of V are both c U^T G V, whose diagonal is gS. Where these differ the gradient is not
    known, nor where gS is the same for equal values and that matrix symmetric and not 0 between
    them: a sum of functions of U U^T, of S and of V V^T may have the same. A value that is exactly
    0 tells nothing.
    """
    near = _equal(values, s)
    small = (near | equal.any(-2).unsqueeze(-2)) & (s != 0.0)
    inverse = s.masked_fill(~small, inf).reciprocal()
    block, other = of_u * inverse, (of_v * inverse).mT
    size = gs.abs().amax(-1, True).maximum(block.abs().amax((-2, -1), True))
    rest = ~np.eye(s.shape[-1], dtype=bool)
    every = small & small.mT & (equal | ~rest)
    off = (block - other).abs().maximum((block - gs).abs().masked_fill(rest, 0.0))
    wrong = every & ~(off <= _EPSILON[s.dtype.name] ** 0.5 * size)
    told = every & ~wrong.any((-2, -1)).unsqueeze(-1).unsqueeze(-1)
    # functions of U, of S and of V apart may agree with those of such a product
    tolerance = _EPSILON[s.dtype.name] ** 0.5 * size
    alike = ((block - block.mT).abs() <= tolerance) & (block.abs() > tolerance)
    told = told & ~(_same(equal & rest & ~(near | near.mT), gs) & alike)
    return told, 0.5 * (block + other), inverse.masked_fill(~near, 0.0)


def _once(x: T) -> T:
    """x, whose own gradient is infinite."""
    return x.detach() + (x - x.detach()).sqrt() if x.requires_grad else x


def _equal_singular(values: T, square: bool) -> T:
    """The equal pairs of singular values; of no square matrix, those of 0 with themselves too."""
    s, rest = values.unsqueeze(-2), ~np.eye(values.shape[-1], dtype=bool)
    equal = _equal(values, s - values.unsqueeze(-1)) & rest
    # a value of 0 equals those that are left out
    return equal if square else equal | (_equal(values, s) & ~rest)


def _svd_vjp(g: T, y: T, m: int) -> T:
    """Townsend, "Differentiating the singular value decomposition" (2016), for real matrices.

    U (K + diag(gS)) V^T, and what U and V leave out, (I - U U^T) gU S^-1 V^T and
    U S^-1 gV^T (I - V V^T). With a and b the skew parts X - X^T of U^T gU and V^T gV, K_ij is
    (a_ij s_j + s_i b_ij) / (s_j^2 - s_i^2). In the form below, what is divided by the difference of
    two singular values is 0 where a function depends on U V^T, which is unique, but not on U alone.
    """
    u, s, v = y[..., :m, :], y[..., m : m + 1, :], y[..., m + 1 : -1, :]
    gu, gs, gv = g[..., :m, :], g[..., m : m + 1, :], g[..., m + 1 : -1, :]
    values, column = s.squeeze(-2), s.mT
    of_u, of_v = u.mT @ gu, v.mT @ gv
    a, b = of_u - of_u.mT, of_v - of_v.mT
    inner = (a + b) * _inverse_gaps(values, s - column) + (a - b) * _inverse_gaps(
        values, s + column
    )
    whole = (u * gs + u @ (0.5 * inner)) @ v.mT
    inverse, k = _inverse_gaps(values, s), s.shape[-1]

    def beyond(inverse: T, total: T) -> T:
        """total, and what U and V leave out."""
        if u.shape[-2] > k:
            total = total + ((gu - u @ of_u) * inverse) @ v.mT
        return total + (u * inverse) @ (gv - v @ of_v).mT if v.shape[-2] > k else total

    whole = beyond(inverse, whole)
    if not values.size:
        return whole
    rest = ~np.eye(k, dtype=bool)
    if (equal := _equal_singular(values, u.shape[-2] == v.shape[-2])).any():
        told, block, inverse = _linear(values, s, equal, of_u, of_v, gs)
        if told.any():
            block = (block - 0.5 * inner).masked_fill(~(told & rest), 0.0)
            inverse = inverse.masked_fill(~told.any(-2).unsqueeze(-2), 0.0)
            whole = whole + _once(beyond(inverse, u @ block @ v.mT))
            equal = equal & ~told
        lone = (s.detach() * column.detach()) != 0.0  # at 0 the least of several is taken
        twist = (a + b).detach().masked_fill(~lone, 0.0)
        vectors = gu.detach().cat_with(gv.detach(), -2)
        inner = (of_u.detach(), of_v.detach())
        unknown = equal & ~_plain(equal & rest, *inner)
        whole = whole.masked_fill(_unknown(unknown, twist, g.detach(), gs.detach(), vectors), nan)
        whole = _met(whole, _Share("svd", ((u * s) @ v.mT).detach(), equal, gs.detach(), inner))
    return whole


SVD = custom(
    "svd",
    _forward("svd", _svd),
    # the number of rows of U comes from the shape of A
    lambda g, y, shape: _svd_vjp(g, y, shape[-2]),
    doc="U, the singular values in descending order and V, one above the other",
)


def _singular_values_vjp(g: T, x: T) -> T:
    y, (m, n) = x.apply_row(SVD).apply_row(MARKED, _of_slope(g)), x.shape[-2:]
    whole = (y[..., :m, :] * g.unsqueeze(-2)) @ y[..., m + 1 : -1, :].mT
    values = y.detach()[..., m, :]
    if values.size and (equal := _equal_singular(values, m == n)).any():
        whole = _met(whole, _Share("svd", x.detach(), equal, g.detach().unsqueeze(-2), ()))
    return whole


SINGULAR_VALUES = custom(
    "svdvals",
    _forward("svdvals", lambda a: np.linalg.svd(a, compute_uv=False)),
    _singular_values_vjp,
    doc="the singular values alone, likewise",
)

# ---- QR ------------------------------------------------------------------------------------------


def _qr(a: Handle) -> Handle:
    if a.shape[-1] <= lib.MG_QR_COLUMNS:
        return call(lib.mg_qr, a)
    return _large_qr(a)


_large_qr = _forward("qr", lambda a: np.concatenate(np.linalg.qr(a), -2))


def _qr_vjp(g: T, y: T, m: int) -> T:
    """(gQ + Q copy(M)) R^-T with M = R gR^T - gQ^T Q, whose lower triangle is copied upward.

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
_LARGEST_NORM = 5.371920351148152  # for which that approximation is exact in float64


@np.errstate(all="ignore")
def _matrix_exp(a: Array) -> Array:
    """Higham, "The scaling and squaring method for the matrix exponential revisited" (2005)."""
    norm = np.minimum(np.abs(a).sum(-2).max(-1, initial=0), np.finfo(np.float64).max)
    halvings = np.ceil(np.log2(np.maximum(norm / _LARGEST_NORM, 1))).astype(int)[..., None, None]
    x = np.ldexp(a, -halvings, order="C")  # BLAS sums other layouts in another order
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
    doc="the exponential, the sum of A^k / k! for k from 0 on",
)
