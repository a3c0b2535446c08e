"""Transforms of vectors and matrices: simplexes, Cholesky factors, parts along a dimension."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from minigrad import functions as f
from minigrad import linalg
from minigrad.distributions import constraints
from minigrad.distributions.transforms.base import Transform, last_added
from minigrad.functions.creation import arange, zeros, zeros_like
from minigrad.nn.functional import logsigmoid
from minigrad.tape.tensor_base import Size

__all__ = [
    "CatTransform",
    "CorrCholeskyTransform",
    "LowerCholeskyTransform",
    "PositiveDefiniteTransform",
    "SoftmaxTransform",
    "StackTransform",
    "StickBreakingTransform",
    "lower_matrix",
    "matrix_size",
    "places",
]


# ---- simplexes -----------------------------------------------------------------------------------


def _needs_vector(name: str, shape: Sequence[int]) -> Sequence[int]:
    if not shape:
        raise ValueError(f"[{name}] a value needs a dimension")
    return shape


class SoftmaxTransform(Transform):
    """softmax(x). It is not invertible: ``inv`` gives one of the possible vectors, log(y)."""

    bijective = False
    domain = constraints.real_vector
    codomain = constraints.simplex

    def _call(self, x: Any) -> Any:
        return f.softmax(x, -1)

    def _inverse(self, y: Any) -> Any:
        return f.log(y)

    def forward_shape(self, shape: Sequence[int]) -> Sequence[int]:
        """The same shape. Raises ValueError for a 0-d value."""
        return _needs_vector("SoftmaxTransform", shape)

    inverse_shape = forward_shape


class StickBreakingTransform(Transform):
    """Stick breaking: n numbers become n + 1 parts of 1. Each takes a share of the rest.

    The share is sigmoid(x - log(number of later parts)), so that zeros become equal parts. The
    parts are computed by their logarithms. The inverse computes the rest as the sum of the later
    parts. Neither cancels.
    """

    domain = constraints.real_vector
    codomain = constraints.simplex

    @staticmethod
    def _offset(x: Any) -> Any:
        """The logarithms of n, ..., 1 along the last dimension of n."""
        return f.log(f.flip(arange(1, x.shape[-1] + 1, dtype=x.dtype), (0,)))

    def _logs(self, x: Any) -> tuple[Any, Any]:
        """The logarithms of the shares, and of the stick left before and after each."""
        u = x - self._offset(x)
        left = f.cumsum(logsigmoid(-u), -1)
        left = f.cat([zeros_like(x[..., :1]), left], -1)
        return logsigmoid(u), left

    def _call(self, x: Any) -> Any:
        share, left = self._logs(x)
        return f.exp(f.cat([share + left[..., :-1], left[..., -1:]], -1))

    def _inverse(self, y: Any) -> Any:
        after = f.flip(f.cumsum(f.flip(y[..., 1:], (-1,)), -1), (-1,))
        cropped = y[..., :-1]
        return f.log(cropped) - f.log(after) + self._offset(cropped)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        """The sum of the logarithms of dy_i / dx_i, as the matrix is triangular."""
        share, left = self._logs(x)
        return f.sum(share + left[..., 1:], -1)

    def forward_shape(self, shape: Sequence[int]) -> Sequence[int]:
        """The last size plus 1. Raises ValueError for a 0-d value."""
        _needs_vector("StickBreakingTransform", shape)
        return Size((*shape[:-1], shape[-1] + 1))

    def inverse_shape(self, shape: Sequence[int]) -> Sequence[int]:
        """The last size less 1. Raises ValueError for a 0-d value."""
        _needs_vector("StickBreakingTransform", shape)
        return Size((*shape[:-1], shape[-1] - 1))


# ---- matrices ------------------------------------------------------------------------------------


def _diagonal(x: Any) -> Any:
    return f.diagonal(x, 0, -2, -1)


class LowerCholeskyTransform(Transform):
    """The lower triangle of a square matrix, with exp applied to the diagonal."""

    bijective = False
    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.lower_cholesky

    def _call(self, x: Any) -> Any:
        return f.tril(x, -1) + f.diag_embed(f.exp(_diagonal(x)))

    def _inverse(self, y: Any) -> Any:
        return f.tril(y, -1) + f.diag_embed(f.log(_diagonal(y)))


class PositiveDefiniteTransform(Transform):
    """L L^T, where L is the result of :class:`LowerCholeskyTransform`."""

    bijective = False
    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.positive_definite

    def _call(self, x: Any) -> Any:
        factor = LowerCholeskyTransform()(x)
        return factor @ factor.mT

    def _inverse(self, y: Any) -> Any:
        return LowerCholeskyTransform().inv(linalg.cholesky(y))


class CorrCholeskyTransform(Transform):
    """n (n - 1) / 2 numbers become the Cholesky factor of an n x n correlation matrix.

    Element j of a row is tanh(x_j) times the sech(x_k) of all k before it. The diagonal is the
    product of all sech, so the row has length 1. The sech are multiplied as logarithms. The inverse
    computes the rest of a row's squared length as the sum of the later squares, so no step cancels.
    Sources are Lewandowski, Kurowicka and Joe 2009, and the Stan reference manual, "Cholesky
    factors of correlation matrices".
    """

    domain = constraints.real_vector
    codomain = constraints.corr_cholesky

    @staticmethod
    def _log_sech(x: Any) -> Any:
        size = f.abs(x)
        return math.log(2) - size + logsigmoid(2 * size)

    def _call(self, x: Any) -> Any:
        n = matrix_size("CorrCholeskyTransform", x.shape[-1])
        rows = lower_matrix(x, n)
        log = f.cumsum(lower_matrix(self._log_sech(x), n), -1)
        before = f.cat([zeros_like(log[..., :1]), log[..., :-1]], -1)
        return f.tril(f.tanh(rows) * f.exp(before), -1) + f.diag_embed(f.exp(_diagonal(before)))

    def _inverse(self, y: Any) -> Any:
        squares = f.flip(f.tril(y) ** 2, (-1,))
        after = f.flip(f.cumsum(squares, -1), (-1,))  # sum of this and all later squares
        n = y.shape[-1]
        at = places(n)
        below = f.reshape(y, (*y.shape[:-2], n * n))[..., at]
        rest = f.reshape(after, (*y.shape[:-2], n * n))[..., at + 1]
        return f.asinh(below / f.sqrt(rest))

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        """The sum of (i - j + 1) log(sech(x_ij)) over the rows i and columns j below."""
        n = matrix_size("CorrCholeskyTransform", x.shape[-1])
        at = places(n)
        weights = f.to(at // n - at % n + 1, x.dtype)
        return f.sum(weights * self._log_sech(x), -1)

    def forward_shape(self, shape: Sequence[int]) -> Sequence[int]:
        """A matrix for each vector. Raises ValueError if its size is not n (n - 1) / 2."""
        _needs_vector("CorrCholeskyTransform", shape)
        n = matrix_size("CorrCholeskyTransform", shape[-1])
        return Size((*shape[:-1], n, n))

    def inverse_shape(self, shape: Sequence[int]) -> Sequence[int]:
        """A vector for each matrix. Raises ValueError if it is not square."""
        if len(shape) < 2 or shape[-1] != shape[-2]:
            raise ValueError(f"[CorrCholeskyTransform] {tuple(shape)} is not of square matrices")
        n = shape[-1]
        return Size((*shape[:-2], n * (n - 1) // 2))


def matrix_size(name: str, count: int) -> int:
    """The n with n (n - 1) / 2 = ``count``."""
    n = (1 + math.isqrt(1 + 8 * count)) // 2
    if n * (n - 1) // 2 != count:
        raise ValueError(f"[{name}] {count} numbers are not n (n - 1) / 2 for a whole n")
    return n


def places(n: int, diag: int = -1) -> Any:
    """The positions of the elements up to a diagonal of an n x n matrix, row by row."""
    rows, columns = f.tril_indices(n, n, diag)
    return rows * n + columns


def lower_matrix(x: Any, n: int, diag: int = -1) -> Any:
    """n x n matrices with the vectors' elements up to a diagonal, and 0 above it."""
    at = f.expand(places(n, diag), x.shape)
    flat = f.scatter(zeros((*x.shape[:-1], n * n), dtype=x.dtype), -1, at, x)
    return f.reshape(flat, (*x.shape[:-1], n, n))


# ---- parts along a dimension ---------------------------------------------------------------------


class _Several(Transform):
    """Base of transforms with a transform for each part along a dimension."""

    def __init__(self, tseq: Sequence[Transform], dim: int = 0, cache_size: int = 0) -> None:
        name = type(self).__name__
        if not tseq or not all(isinstance(t, Transform) for t in tseq):
            raise ValueError(f"[{name}] tseq must be transforms, and not empty")
        super().__init__(cache_size)
        self.transforms = [t.with_cache(cache_size) for t in tseq] if cache_size else list(tseq)
        self.dim = dim

    @property
    def bijective(self) -> Any:
        """True if all transforms are bijective."""
        return all(t.bijective for t in self.transforms)

    def _apart(self, value: Any) -> Sequence[Any]:
        """The parts of a value."""
        raise NotImplementedError

    def _together(self, parts: Sequence[Any]) -> Any:
        raise NotImplementedError

    def _call(self, x: Any) -> Any:
        pairs = zip(self.transforms, self._apart(x), strict=True)
        return self._together([t(part) for t, part in pairs])

    def _inverse(self, y: Any) -> Any:
        pairs = zip(self.transforms, self._apart(y), strict=True)
        return self._together([t._inv_call(part) for t, part in pairs])

    def _logs(self, x: Any, y: Any) -> Sequence[Any]:
        parts = zip(self.transforms, self._apart(x), self._apart(y), strict=True)
        return [t.log_abs_det_jacobian(a, b) for t, a, b in parts]


class CatTransform(_Several):
    """Transforms of parts of the ``lengths`` along a dimension.

    Parts keep their lengths. ``lengths`` is by default 1 for each part.
    """

    def __init__(
        self,
        tseq: Sequence[Transform],
        dim: int = 0,
        lengths: Sequence[int] | None = None,
        cache_size: int = 0,
    ) -> None:
        super().__init__(tseq, dim, cache_size)
        self.lengths = [1] * len(tseq) if lengths is None else list(lengths)
        if len(self.lengths) != len(self.transforms):
            raise ValueError(
                f"[CatTransform] {len(self.lengths)} lengths for {len(self.transforms)} transforms"
            )

    @property
    def event_dim(self) -> int:
        """The largest event_dim of the parts."""
        return max(t.event_dim for t in self.transforms)

    @property
    def length(self) -> int:
        """The sum of the lengths."""
        return sum(self.lengths)

    @property
    def domain(self) -> Any:
        """The domains of the parts."""
        return constraints.cat([t.domain for t in self.transforms], self.dim, self.lengths)

    @property
    def codomain(self) -> Any:
        """The codomains of the parts."""
        return constraints.cat([t.codomain for t in self.transforms], self.dim, self.lengths)

    def _rebuilt(self, cache_size: int) -> Transform:
        return type(self)(self.transforms, self.dim, self.lengths, cache_size)

    def _apart(self, value: Any) -> Sequence[Any]:
        size = value.shape[self.dim]
        if size != self.length:
            raise ValueError(f"[CatTransform] dimension {self.dim} is {size}, not {self.length}")
        parts: Sequence[Any] = f.split(value, self.lengths, self.dim)
        return parts

    def _together(self, parts: Sequence[Any]) -> Any:
        return f.cat(parts, self.dim)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        """The parts' log-determinants, concatenated, or summed if ``dim`` is inside a value."""
        dim = self.dim if self.dim < 0 else self.dim - x.ndim
        most, found = self.event_dim, []
        for t, log in zip(self.transforms, self._logs(x, y), strict=True):
            found.append(last_added(log, most - t.event_dim))
        return f.cat(found, dim + most) if dim + most < 0 else sum(found)


class StackTransform(_Several):
    """Transforms of the slices along a dimension, one for each."""

    @property
    def domain(self) -> Any:
        """The domains of the slices' transforms."""
        return constraints.stack([t.domain for t in self.transforms], self.dim)

    @property
    def codomain(self) -> Any:
        """The codomains of the slices' transforms."""
        return constraints.stack([t.codomain for t in self.transforms], self.dim)

    def _rebuilt(self, cache_size: int) -> Transform:
        return type(self)(self.transforms, self.dim, cache_size)

    def _apart(self, value: Any) -> Sequence[Any]:
        size = value.shape[self.dim]
        if size != len(self.transforms):
            raise ValueError(
                f"[StackTransform] dimension {self.dim} is {size}, not {len(self.transforms)}"
            )
        parts: Sequence[Any] = f.unbind(value, self.dim)
        return parts

    def _together(self, parts: Sequence[Any]) -> Any:
        return f.stack(parts, self.dim)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        """The slices' log-determinants, stacked, or summed if ``dim`` is inside a value."""
        most = max(t.domain.event_dim for t in self.transforms)
        found = [
            last_added(log, most - t.domain.event_dim)
            for t, log in zip(self.transforms, self._logs(x, y), strict=True)
        ]
        return sum(found) if self.dim + most < 0 else f.stack(found, self.dim)
