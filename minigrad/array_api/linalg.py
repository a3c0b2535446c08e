"""Linear algebra of the array API standard, on tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from minigrad import functions as f
from minigrad import linalg
from minigrad.array_api.functions import matrix_transpose, tensordot, vecdot
from minigrad.functions.products import matmul
from minigrad.linalg import det, eigh, eigvalsh, inv, matrix_power, qr, slogdet, solve, svdvals

if TYPE_CHECKING:
    from minigrad._tensor import Tensor

__all__ = [
    "cholesky",
    "cross",
    "det",
    "diagonal",
    "eigh",
    "eigvalsh",
    "inv",
    "matmul",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "matrix_transpose",
    "outer",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "svd",
    "svdvals",
    "tensordot",
    "trace",
    "vecdot",
    "vector_norm",
]


def cholesky(x: Tensor, /, *, upper: bool = False) -> Tensor:
    """The Cholesky factor L of a positive definite x = L L^T, or its transpose."""
    return linalg.cholesky(x, upper=upper)


def cross(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Tensor:
    """The vector product along an axis of 3 elements."""
    return linalg.cross(x1, x2, dim=axis)


def diagonal(x: Tensor, /, *, offset: int = 0) -> Tensor:
    """The diagonals of matrices."""
    return linalg.diagonal(x, offset=offset)


def matrix_norm(x: Tensor, /, *, keepdims: bool = False, ord: Any = "fro") -> Tensor:  # noqa: A002
    """A norm of each matrix."""
    return linalg.matrix_norm(x, ord, keepdim=keepdims)


def matrix_rank(x: Tensor, /, *, rtol: Any = None) -> Tensor:
    """The number of singular values above ``rtol`` times the largest."""
    return linalg.matrix_rank(x, rtol=rtol)


def outer(x1: Tensor, x2: Tensor, /) -> Tensor:
    """The products of all pairs of elements of two vectors."""
    return f.outer(x1, x2)


def pinv(x: Tensor, /, *, rtol: Any = None) -> Tensor:
    """The pseudo-inverse. Singular values up to ``rtol`` times the largest count as 0."""
    return linalg.pinv(x, rtol=rtol)


def svd(x: Tensor, /, *, full_matrices: bool = True) -> linalg.SVD:
    """The singular value decomposition x = U S Vh."""
    return linalg.svd(x, full_matrices)


def trace(x: Tensor, /, *, offset: int = 0, dtype: Any = None) -> Tensor:
    """The sums of diagonals of matrices."""
    return f.sum(linalg.diagonal(x, offset=offset), -1, dtype=dtype)


def vector_norm(
    x: Tensor,
    /,
    *,
    axis: Any = None,
    keepdims: bool = False,
    ord: float = 2,  # noqa: A002
) -> Tensor:
    """A norm of vectors, or of all elements."""
    return f.vector_norm(x, ord, axis, keepdims)
