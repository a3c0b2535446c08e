"""Gradients of decompositions with equal eigenvalues or singular values.

Vectors of equal values may be rotated among themselves. The gradients of values and vectors may
still determine what such a pair adds to the gradient of the matrix. If they do not, the gradient of
the matrix is NaN.
"""

from __future__ import annotations

import threading
from math import inf, nan
from typing import Any, NamedTuple

import numpy as np

from minigrad.ops.linalg import T
from minigrad.runtime.passes import pass_depth, pass_number

EPSILON = {"float32": 2.0**-23, "float64": 2.0**-52}

# A packed factorisation has a last row that nothing reads. The gradient of this row is a mark: 1 if
# the values were used, 2 if the vectors were, 3 if both were.
OF_VALUES, OF_VECTORS = 1.0, 2.0


def equal_to(values: T, gaps: T) -> T:
    """For each pair of values, whether they are equal up to rounding. Each value equals itself."""
    scale = values.detach().abs().amax(-1, True)
    # eigenvalues of a rotated 2 I are up to three such units apart
    rounding = 4 * values.shape[-1] * EPSILON[values.dtype.name] * scale
    return gaps.detach().abs() <= rounding.unsqueeze(-1)


def inverse_gaps(values: T, gaps: T) -> T:
    """1 / gaps, and 0 for pairs that are equal up to rounding. Each value equals itself.

    Such a pair adds 0 to the derivative of a function of the space that its vectors span. For other
    functions the derivative depends on the choice of vectors: see :func:`is_unknown`.
    """
    return gaps.masked_fill(equal_to(values, gaps), inf).reciprocal() if values.size else gaps


def equal_pairs(values: T, gaps: T) -> T:
    """The pairs of different values that are equal up to rounding."""
    return equal_to(values, gaps) & ~np.eye(values.shape[-1], dtype=bool)


def equal_singular_values(values: T, square: bool) -> T:
    """The pairs of equal singular values. If the matrix is not square, 0 is paired with itself."""
    s, rest = values.unsqueeze(-2), ~np.eye(values.shape[-1], dtype=bool)
    equal = equal_to(values, s - values.unsqueeze(-1)) & rest
    # a value of 0 equals the zero values that the factorisation leaves out
    return equal if square else equal | (equal_to(values, s) & ~rest)


# ---- one factorisation ---------------------------------------------------------------------------


def is_unknown(equal: T, twist: T, g: T, values: T, vectors: T) -> T:
    """For each matrix, True if its gradient does not exist or these arguments do not determine it.

    ``twist`` is the change of a function as the vectors of an equal pair are rotated. If a function
    of the vectors alone changes so, it has no gradient. If the values are used too, as in V f(w)
    V^T, an equal pair adds the derivative of f. The values and vectors do not determine this
    derivative, unless both have a gradient of 0 here.
    """
    size = vectors.abs().amax((-2, -1), True)
    turns = twist.abs() > EPSILON[g.dtype.name] ** 0.5 * size
    both = g[..., -1:, :1] == OF_VALUES + OF_VECTORS
    used = ((values != 0.0) | (vectors != 0.0).any(-2).unsqueeze(-2)) & both
    return (equal & (turns | used | used.mT)).any((-2, -1)).unsqueeze(-1).unsqueeze(-1)


def _spread(row: T, cluster: T) -> T:
    """For each entry of a row, the largest less the smallest entry of its cluster."""
    least = row.masked_fill(~cluster, inf).amin(-1, True)
    return row.masked_fill(~cluster, -inf).amax(-1, True) - least


def _same(equal: T, gs: T) -> T:
    """The pairs of equal values in clusters whose values all have the same gradient."""
    cluster = equal | np.eye(equal.shape[-1], dtype=bool)
    tolerance = EPSILON[gs.dtype.name] ** 0.5
    size = gs.abs().masked_fill(~cluster, 0.0).amax(-1, True)
    same = _spread(gs, cluster) <= tolerance * size
    return equal & same & same.mT


def partials_of_product(equal: T, inner: T, gw: T) -> tuple[T, T]:
    """The clusters of equal values whose part of the gradient is known, and f' / f in them.

    In V f(w) V^T, gw_i = r inner_ii with one r = f' / (2 f) per cluster. A pair adds r inner_ij
    (Daleckii and Krein, 1965). A sum of functions of w and of V V^T has equal gw_i in a cluster.
    Only where the inner_ii differ is it known that the function is no such sum.
    """
    cluster = equal | np.eye(inner.shape[-1], dtype=bool)
    tolerance = EPSILON[inner.dtype.name] ** 0.5
    diagonal = inner.diagonal(0, -2, -1).unsqueeze(-2)
    size = diagonal.abs().amax(-1, True)
    mine = (diagonal / size.masked_fill(size == 0.0, 1.0)).masked_fill(~cluster, 0.0)
    ratio = (mine * gw).sum(-1, True) / mine.square().sum(-1, True)
    off = (gw - ratio * mine).abs().masked_fill(~cluster, 0.0).amax(-1, True)
    largest = gw.abs().masked_fill(~cluster, 0.0).amax(-1, True)
    # a gradient of 0 may belong to values from another factorisation
    close = (off <= tolerance * largest) & (largest > 0.0)
    apart = _spread(mine, cluster) > tolerance
    still = (inner - inner.mT).abs() <= tolerance * inner.abs().amax((-2, -1), True)
    return equal & close.mT & apart.mT & close & apart & still, ratio / size


def linear_pairs(values: T, s: T, equal: T, of_u: T, of_v: T, gs: T) -> tuple[T, T, T]:
    """Pairs of equal values at which f is linear; their gradient; 1 / s of the values that are 0.

    Take U f(S) V^T with f(s) = c s at such a value, and 0 at a value that is 0 up to rounding. Let
    G be the gradient of the product. Then gU = G V c S and gV = G^T U c S. U^T gU S^-1 and V^T gV
    S^-1 both become c U^T G V, whose diagonal is gS.

    Where the two differ, the gradient is not known. It is not known either where gS is the same for
    equal values, and that matrix is symmetric and not 0 between them. A sum of functions of U U^T,
    of S and of V V^T may have the same gradients. A value that is exactly 0 gives no information.
    """
    near = equal_to(values, s)
    small = (near | equal.any(-2).unsqueeze(-2)) & (s != 0.0)
    inverse = s.masked_fill(~small, inf).reciprocal()
    block, other = of_u * inverse, (of_v * inverse).mT
    size = gs.abs().amax(-1, True).maximum(block.abs().amax((-2, -1), True))
    rest = ~np.eye(s.shape[-1], dtype=bool)
    every = small & small.mT & (equal | ~rest)
    off = (block - other).abs().maximum((block - gs).abs().masked_fill(rest, 0.0))
    wrong = every & ~(off <= EPSILON[s.dtype.name] ** 0.5 * size)
    told = every & ~wrong.any((-2, -1)).unsqueeze(-1).unsqueeze(-1)
    # a sum of functions of U, of S and of V may have the same gradients as such a product
    tolerance = EPSILON[s.dtype.name] ** 0.5 * size
    alike = ((block - block.mT).abs() <= tolerance) & (block.abs() > tolerance)
    told = told & ~(_same(equal & rest & ~(near | near.mT), gs) & alike)
    return told, 0.5 * (block + other), inverse.masked_fill(~near, 0.0)


def without_cotangent(equal: T, *inners: T) -> T:
    """The pairs of equal values that add 0 for every function with these gradients.

    In a product such as V f(w) V^T a pair adds G_ij f'. A function of the space of the vectors adds
    0. Where f(w) is not 0, as the diagonal of ``inner`` shows, G_ij is 0 where ``inner`` is 0. A
    diagonal of 0 may come from one vector alone.
    """
    off: Any = 0.0
    size: Any = 0.0
    for inner in inners:
        off = abs(inner).maximum(abs(inner.mT)).maximum(off)
        diagonal = abs(inner.diagonal(0, -2, -1))
        size = diagonal.unsqueeze(-1).minimum(diagonal.unsqueeze(-2)).maximum(size)
    return equal & (size > 0.0) & (off <= EPSILON[size.dtype.name] ** 0.5 * size)


def separate(equal: T, gs: T, *inners: T) -> T:
    """The pairs of equal values that add 0 because the function is a sum of two.

    One summand depends on the values alone, and treats equal values alike. The other depends on the
    space of their vectors alone.

    In a function that combines both, such as V f(w) V^T, the gradient of the values is proportional
    to the diagonal of ``inner``. Here this gradient is the same for equal values, and the diagonal
    is not.
    """
    cluster = equal | np.eye(equal.shape[-1], dtype=bool)
    tolerance = EPSILON[gs.dtype.name] ** 0.5
    apart, still = equal & False, equal
    for inner in inners:
        diagonal = inner.diagonal(0, -2, -1).unsqueeze(-2)
        differ = _spread(diagonal, cluster) > tolerance * diagonal.abs().amax(-1, True)
        apart = apart | (differ & differ.mT)
        still = still & (abs(inner - inner.mT) <= tolerance * abs(inner).amax((-2, -1), True))
    return _same(equal, gs) & apart & still


# ---- two factorisations of one matrix ------------------------------------------------------------


class Share(NamedTuple):
    """Gradients that one node contributes at equal values of matrices that other nodes may share.

    ``matrices`` were factorised by the operation ``name``. ``gs`` is the gradient of the values.
    ``inner`` is a tuple with the products of the vectors and their gradients. Both are 0 where the
    node alone determines what the pair adds.
    """

    name: str
    matrices: T
    equal: T
    gs: T
    inner: tuple[T, ...]

    def conflicts(self, other: Share) -> T | None:
        """For each matrix, whether these values and the other's vectors may belong to one f."""
        mine, yours = self.matrices, other.matrices
        if (
            not other.inner
            or self.name != other.name
            or mine.shape != yours.shape
            or mine.dtype is not yours.dtype
        ):
            return None
        scale = mine.abs().amax((-2, -1), True)
        rounding = 16 * max(mine.shape[-2:]) * EPSILON[mine.dtype.name]
        same = ((mine - yours).abs() <= rounding * scale).all((-2, -1))
        both = self.equal & other.equal & ((self.gs != 0.0) | (self.gs.mT != 0.0))
        known = without_cotangent(both, *other.inner) | separate(both, self.gs, *other.inner)
        return same & (both & ~known).any((-2, -1))


class _Shares(threading.local):
    """The shares of the running backward passes of a thread, by depth of nesting.

    Shares are kept until the next pass of the same depth has some.
    """

    def __init__(self) -> None:
        self.by_depth: dict[int, tuple[int, list[Share]]] = {}

    def of_run(self) -> list[Share]:
        """The shares of the innermost backward pass."""
        depth, number = pass_depth(), pass_number()
        for ended in [d for d, (n, _) in self.by_depth.items() if d > depth]:
            del self.by_depth[ended]
        found, shares = self.by_depth.get(depth, (0, []))
        if found != number:
            shares = []
            self.by_depth[depth] = (number, shares)
        return shares


_shares = _Shares()


def meet(whole: T, mine: Share) -> T:
    """``whole``, with NaN for matrices whose values and vectors were used by different nodes.

    Let V and w come from two calls. Consider V f(w) V^T, and a sum of f(w) and a function of V V^T.
    Both have the same gradients of w and V, but not the same gradient of the matrix. Neither node
    sees both, so the second of the two gives NaN.
    """
    shares = _shares.of_run()
    for other in shares:
        for a, b in ((mine, other), (other, mine)):
            found = a.conflicts(b)
            if found is not None and found.any():
                whole = whole.masked_fill(found.unsqueeze(-1).unsqueeze(-1), nan)
    shares.append(mine)
    return whole
