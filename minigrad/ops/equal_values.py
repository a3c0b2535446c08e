"""Gradients of decompositions with equal eigenvalues or singular values.

Vectors of equal values may turn among themselves. The form of the gradients of values and vectors
may tell what such a pair adds to the gradient of the matrix. Where it does not, that is NaN.
"""

from __future__ import annotations

import threading
from math import inf, nan
from typing import Any, NamedTuple

import numpy as np

from minigrad.ops.linalg import T
from minigrad.runtime.passes import pass_depth, pass_number

EPSILON = {"float32": 2.0**-23, "float64": 2.0**-52}

# A packed factorisation has a last row, which nothing reads. The gradient of that row is a mark: 1
# where the values were used, 2 where the vectors were, 3 where both were.
OF_VALUES, OF_VECTORS = 1.0, 2.0


def equal_to(values: T, gaps: T) -> T:
    """For each pair, whether its values are equal up to rounding; each is so with itself."""
    scale = values.detach().abs().amax(-1, True)
    # those of 2 I, turned, are up to three such units apart
    rounding = 4 * values.shape[-1] * EPSILON[values.dtype.name] * scale
    return gaps.detach().abs() <= rounding.unsqueeze(-1)


def inverse_gaps(values: T, gaps: T) -> T:
    """1 / gaps, and 0 for the pairs that are equal up to rounding, which includes each with itself.

    The share of such a pair in a derivative is 0 for functions of the space its vectors span. For
    others it depends on the choice of vectors: see :func:`is_unknown`.
    """
    return gaps.masked_fill(equal_to(values, gaps), inf).reciprocal() if values.size else gaps


def equal_pairs(values: T, gaps: T) -> T:
    """The equal pairs, without those of each with itself."""
    return equal_to(values, gaps) & ~np.eye(values.shape[-1], dtype=bool)


def equal_singular_values(values: T, square: bool) -> T:
    """The equal pairs of singular values; of no square matrix, those of 0 with themselves too."""
    s, rest = values.unsqueeze(-2), ~np.eye(values.shape[-1], dtype=bool)
    equal = equal_to(values, s - values.unsqueeze(-1)) & rest
    # a value of 0 equals those that are left out
    return equal if square else equal | (equal_to(values, s) & ~rest)


# ---- one factorisation ---------------------------------------------------------------------------


def is_unknown(equal: T, twist: T, g: T, values: T, vectors: T) -> T:
    """For each matrix, whether its gradient does not exist, or cannot be found from these.

    Where a function of the vectors alone changes as those of an equal pair turn, by the twist, it
    has no gradient. Where the values are used too, as in V f(w) V^T, what an equal pair adds is the
    derivative of f, which they do not tell: unless neither has a gradient here.
    """
    size = vectors.abs().amax((-2, -1), True)
    turns = twist.abs() > EPSILON[g.dtype.name] ** 0.5 * size
    both = g[..., -1:, :1] == OF_VALUES + OF_VECTORS
    used = ((values != 0.0) | (vectors != 0.0).any(-2).unsqueeze(-2)) & both
    return (equal & (turns | used | used.mT)).any((-2, -1)).unsqueeze(-1).unsqueeze(-1)


def _spread(row: T, cluster: T) -> T:
    """How far apart the entries of a row are within the cluster of each."""
    least = row.masked_fill(~cluster, inf).amin(-1, True)
    return row.masked_fill(~cluster, -inf).amax(-1, True) - least


def _same(equal: T, gs: T) -> T:
    """The pairs of equal values whose clusters have values that are treated alike."""
    cluster = equal | np.eye(equal.shape[-1], dtype=bool)
    tolerance = EPSILON[gs.dtype.name] ** 0.5
    size = gs.abs().masked_fill(~cluster, 0.0).amax(-1, True)
    same = _spread(gs, cluster) <= tolerance * size
    return equal & same & same.mT


def partials_of_product(equal: T, inner: T, gw: T) -> tuple[T, T]:
    """The clusters of equal values whose share of the gradient is known, and f' / f there.

    V f(w) V^T has gw_i = r inner_ii with one r = f' / (2 f) in a cluster, and a pair adds
    r inner_ij (Daleckii and Krein, 1965). Functions of w and of V V^T apart have equal gw_i there:
    only where the inner_ii differ is it known that the function is none such.
    """
    cluster = equal | np.eye(inner.shape[-1], dtype=bool)
    tolerance = EPSILON[inner.dtype.name] ** 0.5
    diagonal = inner.diagonal(0, -2, -1).unsqueeze(-2)
    size = diagonal.abs().amax(-1, True)
    mine = (diagonal / size.masked_fill(size == 0.0, 1.0)).masked_fill(~cluster, 0.0)
    ratio = (mine * gw).sum(-1, True) / mine.square().sum(-1, True)
    off = (gw - ratio * mine).abs().masked_fill(~cluster, 0.0).amax(-1, True)
    largest = gw.abs().masked_fill(~cluster, 0.0).amax(-1, True)
    # a slope of 0 may be one of values that were found elsewhere
    close = (off <= tolerance * largest) & (largest > 0.0)
    apart = _spread(mine, cluster) > tolerance
    still = (inner - inner.mT).abs() <= tolerance * inner.abs().amax((-2, -1), True)
    return equal & close.mT & apart.mT & close & apart & still, ratio / size


def linear_pairs(values: T, s: T, equal: T, of_u: T, of_v: T, gs: T) -> tuple[T, T, T]:
    """The pairs of equal values at which f is linear; their gradient; 1 / s of those that are 0.

    U f(S) V^T with f(s) = c s at such a value, and 0 at one that is 0 but for rounding, has
    gU = G V c S and gV = G^T U c S with G the gradient of the product. Then U^T gU S^-1 and its
    like of V are both c U^T G V, whose diagonal is gS. Where these differ the gradient is not
    known, nor where gS is the same for equal values and that matrix symmetric and not 0 between
    them: a sum of functions of U U^T, of S and of V V^T may have the same. A value that is exactly
    0 tells nothing.
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
    # functions of U, of S and of V apart may agree with those of such a product
    tolerance = EPSILON[s.dtype.name] ** 0.5 * size
    alike = ((block - block.mT).abs() <= tolerance) & (block.abs() > tolerance)
    told = told & ~(_same(equal & rest & ~(near | near.mT), gs) & alike)
    return told, 0.5 * (block + other), inverse.masked_fill(~near, 0.0)


def without_cotangent(equal: T, *inners: T) -> T:
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
    return equal & (size > 0.0) & (off <= EPSILON[size.dtype.name] ** 0.5 * size)


def separate(equal: T, gs: T, *inners: T) -> T:
    """The pairs of equal values that add nothing: the function is a sum of one of the values alone,
    which treats equal ones alike, and one of the space of their vectors alone.

    For a function of both in one, such as V f(w) V^T, the gradient of the values is in proportion
    to the diagonal of ``inner``. Here it is the same for equal values, and that diagonal is not.
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
    """Gradients at one node beside equal values, of matrices that other nodes may have too.

    ``matrices`` were factorised by the operation ``name``. ``gs`` is the gradient of the values,
    and ``inner``, a tuple, what those of the vectors come to among themselves. Both are 0 where
    the node itself knows what the pair adds.
    """

    name: str
    matrices: T
    equal: T
    gs: T
    inner: tuple[T, ...]

    def conflicts(self, other: Share) -> T | None:
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
        rounding = 16 * max(mine.shape[-2:]) * EPSILON[mine.dtype.name]
        same = ((mine - yours).abs() <= rounding * scale).all((-2, -1))
        both = self.equal & other.equal & ((self.gs != 0.0) | (self.gs.mT != 0.0))
        known = without_cotangent(both, *other.inner) | separate(both, self.gs, *other.inner)
        return same & (both & ~known).any((-2, -1))


class _Shares(threading.local):
    """The shares of the backward that runs, and of those that it runs inside, by depth.

    They are kept until the next one that has any.
    """

    def __init__(self) -> None:
        self.by_depth: dict[int, tuple[int, list[Share]]] = {}

    def of_run(self) -> list[Share]:
        """The shares of the innermost backward."""
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
