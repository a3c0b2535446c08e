"""Functions for inverses, determinants and linear systems of stacks of matrices."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from minigrad.functions.arguments import integer, one_dim, real, tensor_operand, tensor_operands
from minigrad.functions.creation import eye
from minigrad.functions.elementwise import add, log, mul
from minigrad.functions.products import alike, matmul, scaled
from minigrad.functions.reductions import as_float
from minigrad.functions.shaping import (
    permute,
    reshape,
    squeeze,
    transpose,
    unsqueeze,
)
from minigrad.ops import linalg as _l
from minigrad.runtime.dtypes import float32
from minigrad.tape.apply import apply
from minigrad.tape.tensor_base import TensorBase

if TYPE_CHECKING:
    from minigrad._tensor import Tensor

__all__ = [
    "cholesky",
    "cholesky_inverse",
    "cholesky_solve",
    "det",
    "inverse",
    "logdet",
    "matrix_exp",
    "matrix_power",
    "pinverse",
    "slogdet",
]

# ---- arguments -----------------------------------------------------------------------------------


def matrices(op: str, x: Any, square: bool = False) -> Tensor:
    """A matrix or a stack of matrices.

    Integers become float32. Raises ValueError for other shapes.
    """
    x = tensor_operand(op, x)
    if x._h.ndim < 2:
        raise ValueError(f"[{op}] takes a matrix or a stack of matrices, not shape {x.shape}")
    if square and x.shape[-1] != x.shape[-2]:
        raise ValueError(
            f"[{op}] the matrices must be square, not {x.shape[-2]} x {x.shape[-1]}; "
            "pinv and lstsq take any"
        )
    return as_float(op, x)


# ---- inverses ------------------------------------------------------------------------------------


def inv(A: Any) -> Tensor:
    """The inverse: A @ inv(A) is the identity.

    The input is a stack of square matrices with any batch shape. Integers give float32. A matrix
    with NaN or infinity gives NaN. A nearly singular matrix gives large numbers with few right
    digits. To solve a system, ``solve`` is faster and more accurate.

    Raises ValueError for shapes that are not square, and LinAlgError, a ValueError, for a singular
    matrix.

    >>> import minigrad as mg
    >>> mg.linalg.inv(mg.tensor([[2.0, 0.0], [0.0, 4.0]])).tolist()
    [[0.5, 0.0], [0.0, 0.25]]
    """
    return apply(_l.INV, (matrices("inv", A, square=True),))


def inverse(input: Any) -> Tensor:
    """:func:`minigrad.linalg.inv` under another name."""
    return inv(input)


def pinv(
    A: Any,
    *,
    atol: Any = None,
    rtol: Any = None,
    hermitian: bool = False,
) -> Tensor:
    """The Moore-Penrose pseudoinverse, V diag(1 / s) U^T from the singular values s of A.

    Shape (..., m, n) gives (..., n, m). Singular values up to max(atol, rtol * largest) count as 0.
    By default ``atol`` is 0 and ``rtol`` is max(m, n) * eps of the dtype. If only ``atol`` is
    given, ``rtol`` is 0. Each is a number, or a tensor with a number per matrix.

    ``hermitian`` says that A is symmetric. The gradient is then symmetric too. The gradient is
    right if the rank does not change nearby. A matrix with NaN or infinity gives NaN.
    """
    x = matrices("pinv", A)
    if hermitian:
        x = symmetric("pinv", x)
    return apply(_l.PINV, (x,), tolerances("pinv", x, atol, rtol))


def pinverse(input: Any, rcond: float = 1e-15) -> Tensor:
    """:func:`minigrad.linalg.pinv` with ``rtol=rcond``."""
    return pinv(input, rtol=rcond)


def tolerances(op: str, x: Tensor, atol: Any, rtol: Any) -> tuple[Any, Any]:
    """(rtol, atol) of pinv and matrix_rank with defaults.

    They broadcast to singular values (..., k).
    """
    absolute = 0.0 if atol is None else _tolerance(op, "atol", atol, x)
    if rtol is not None:
        return _tolerance(op, "rtol", rtol, x), absolute
    relative = max(x.shape[-2:]) * (2.0**-23 if x.dtype is float32 else 2.0**-52)
    if isinstance(absolute, float):
        return 0.0 if absolute > 0 else relative, absolute
    return np.where(absolute > 0, 0.0, relative), absolute


def _tolerance(op: str, name: str, value: Any, x: Tensor) -> Any:
    """A tolerance: one number, or a tensor with a number per matrix of a stack."""
    if not isinstance(value, TensorBase):
        return real(op, name, value)
    batch = x.shape[:-2]
    if value.shape not in ((), batch):
        raise ValueError(
            f"[{op}] {name} has shape {value.shape}, but must be one number or of shape {batch}, "
            "one for each matrix"
        )
    return np.asarray(value.detach())[..., None]  # type: ignore[attr-defined]


def symmetric(op: str, x: Tensor) -> Tensor:
    """(A + A^T) / 2, which equals a symmetric A and makes the gradient symmetric."""
    if x.shape[-1] != x.shape[-2]:
        raise ValueError(f"[{op}] symmetric matrices are square, not {x.shape}")
    return mul(add(x, x.mT), 0.5)


# ---- determinants --------------------------------------------------------------------------------


def det(input: Any) -> Tensor:
    """The determinant of every matrix: 1 for size 0, NaN for a matrix with NaN.

    The gradient is the matrix of cofactors, computed without division by the determinant. The first
    and second derivatives are right for singular matrices too. Raises ValueError for shapes that
    are not square.

    >>> import minigrad as mg
    >>> mg.det(mg.tensor([[1.0, 2.0], [3.0, 5.0]])).item()
    -1.0
    """
    return apply(_l.DET, (matrices("det", input, square=True),))


class Slogdet(NamedTuple):
    """The sign of a determinant, and the logarithm of its magnitude."""

    sign: Any
    logabsdet: Any


def slogdet(input: Any) -> Slogdet:
    """The sign and log|det(input)|, for determinants that overflow: sign * exp(logabsdet).

    A singular matrix has sign 0 and logarithm -inf. Its gradient is infinite, NaN where a cofactor
    is 0, and 0 for a zero upstream gradient. Raises ValueError for shapes that are not square.
    """
    both = apply(_l.SLOGDET, (matrices("slogdet", input, square=True),))
    return Slogdet(both[..., 0].detach(), both[..., 1])


def logdet(input: Any) -> Tensor:
    """log(det(A)): -inf for a singular matrix, NaN for a negative determinant."""
    sign, logabsdet = slogdet(matrices("logdet", input, square=True))
    return add(logabsdet, log(sign))


# ---- systems -------------------------------------------------------------------------------------


def solve(A: Any, B: Any, *, left: bool = True) -> Tensor:
    """X with A @ X = B, or with X @ A = B for ``left=False``.

    A has shape (..., n, n). B is a vector, or a stack of vectors if its shape is A's without the
    last dimension. Otherwise B is a stack of matrices (..., n, k), or (..., k, n) for
    ``left=False``. Batch dimensions are broadcast. Integers become float32. Raises ValueError for
    other shapes, and LinAlgError, a ValueError, for a singular A.

    >>> import minigrad as mg
    >>> mg.linalg.solve(mg.tensor([[2.0, 0.0], [0.0, 4.0]]), mg.tensor([2.0, 2.0])).tolist()
    [1.0, 0.5]
    """
    a = matrices("solve", A, square=True)
    b = as_float("solve", B)
    if b._h.ndim == 1 and b.shape[0] != a.shape[-1]:
        raise ValueError(f"[solve] shapes {a.shape} of A and {b.shape} of B do not fit")
    vector = b._h.ndim == 1 or (b._h.ndim == a._h.ndim - 1 and b.shape == a.shape[:-1])
    if vector:
        b = unsqueeze(b, -1)
        x = _solve_matrix("solve", _l.SOLVE, a if left else a.mT, b)
        return squeeze(x, -1)
    if left:
        return _solve_matrix("solve", _l.SOLVE, a, b)
    return _from_the_right("solve", _l.SOLVE, a, b)


def solve_triangular(
    A: Any,
    B: Any,
    *,
    upper: bool,
    left: bool = True,
    unitriangular: bool = False,
) -> Tensor:
    """X with A @ X = B, or X @ A = B for ``left=False``, for a triangular A.

    ``upper`` says which triangle is read. With ``unitriangular`` its diagonal counts as ones. The
    shapes are (..., n, n) and (..., n, k), or (..., k, n) for ``left=False``. Batch dimensions are
    broadcast. Raises ValueError for other shapes, and LinAlgError, a ValueError, for a 0 on the
    diagonal.
    """
    op = "solve_triangular"
    a, b = matrices(op, A, square=True), matrices(op, B)
    if left:
        return _solve_matrix(op, _l.SOLVE_TRIANGULAR, a, b, upper, unitriangular)
    return _from_the_right(op, _l.SOLVE_TRIANGULAR, a, b, not upper, unitriangular)


def _from_the_right(op: str, row: Any, a: Tensor, b: Tensor, *args: Any) -> Tensor:
    """Solve X A = B as A^T X^T = B^T."""
    if b._h.ndim < 2 or b.shape[-1] != a.shape[-1]:
        raise ValueError(f"[{op}] X @ A = B: shapes {a.shape} of A and {b.shape} of B do not fit")
    return transpose(_solve_matrix(op, row, a.mT, b.mT, *args), -2, -1)


def _solve_matrix(op: str, row: Any, a: Tensor, b: Tensor, *args: Any) -> Tensor:
    if b._h.ndim < 2 or b.shape[-2] != a.shape[-1]:
        raise ValueError(f"[{op}] A @ X = B: shapes {a.shape} of A and {b.shape} of B do not fit")
    return apply(row, alike(op, a, b), args)


def cholesky(input: Any, upper: bool = False) -> Tensor:
    """Lower triangular L with L @ L^T = A, or upper triangular U with U^T @ U = A.

    A is symmetric and positive definite. Only the lower triangle is read, or the upper one for
    ``upper``. The gradient is symmetric. NaN or infinity in this triangle gives NaN. Raises
    ValueError for shapes that are not square, and LinAlgError, a ValueError, for a matrix that is
    not positive definite.

    >>> import minigrad as mg
    >>> mg.cholesky(mg.tensor([[4.0, 2.0], [2.0, 5.0]])).tolist()
    [[2.0, 0.0], [1.0, 2.0]]
    """
    x = matrices("cholesky", input, square=True)
    if upper:
        return apply(_l.CHOLESKY, (x.mT,)).mT
    return apply(_l.CHOLESKY, (x,))


def cholesky_solve(B: Any, L: Any, upper: bool = False) -> Tensor:
    """X with A @ X = B, from a Cholesky factor: L with A = L @ L^T, or U with A = U^T @ U.

    The shapes are (..., n, k) and (..., n, n). Batch dimensions are broadcast.
    """
    factor = matrices("cholesky_solve", L, square=True)
    first = solve_triangular(factor.mT if upper else factor, B, upper=False)
    return solve_triangular(factor if upper else factor.mT, first, upper=True)


def cholesky_inverse(L: Any, upper: bool = False) -> Tensor:
    """The inverse of A, from its Cholesky factor."""
    factor = matrices("cholesky_inverse", L, square=True)
    return cholesky_solve(eye(factor.shape[-1], dtype=factor.dtype), factor, upper)


# ---- powers --------------------------------------------------------------------------------------


def matrix_power(input: Any, n: int) -> Tensor:
    """input @ input @ ... @ input, n times. For n = 0 it is the identity.

    A negative n gives the power of the inverse. Repeated squaring takes at most 2 log2(n) products.
    Integers stay integers for n >= 0. Raises ValueError for shapes that are not square.
    """
    x = tensor_operand("matrix_power", input)
    checked = matrices("matrix_power", x, square=True)
    power = integer("matrix_power", "n", n)
    if power == 0:
        return add(scaled(x, 0), eye(x.shape[-1], dtype=x.dtype))
    square = inv(checked) if power < 0 else x
    power = abs(power)
    product = None
    while True:
        if power & 1:
            product = square if product is None else matmul(product, square)
        power >>= 1
        if not power:
            return product  # type: ignore[return-value]
        square = matmul(square, square)


def matrix_exp(input: Any) -> Tensor:
    """The matrix exponential exp(A) = I + A + A @ A / 2! + A @ A @ A / 3! + ...

    The method is scaling and squaring with a Pade approximation (Higham, 2005). A matrix with NaN
    or infinity gives NaN. Raises ValueError for shapes that are not square.
    """
    from minigrad.ops.factorisation import MATRIX_EXP

    return apply(MATRIX_EXP, (matrices("matrix_exp", input, square=True),))


def tensorinv(A: Any, ind: int = 2) -> Tensor:
    """The inverse with respect to tensordot, of a tensor seen as a square matrix.

    A's first ``ind`` dimensions are the rows, the others the columns. Shape (*first, *last) gives
    (*last, *first). Raises ValueError if the numbers of rows and columns differ.
    """
    x = as_float("tensorinv", A)
    ind = integer("tensorinv", "ind", ind, 1)
    first, last = x.shape[:ind], x.shape[ind:]
    n = math.prod(first)
    if n != math.prod(last):
        raise ValueError(f"[tensorinv] {first} and {last} have {n} and {math.prod(last)} elements")
    return reshape(inv(reshape(x, (n, n))), (*last, *first))


def tensorsolve(A: Any, B: Any, dims: Any = None) -> Tensor:
    """X with tensordot(A, X, X.ndim) = B. X has the shape of A's dimensions after the first B.ndim.

    The dimensions ``dims`` of A are first moved to its end. Raises ValueError unless A has as many
    elements as B has, squared.
    """
    a, b = tensor_operands("tensorsolve", A, B)
    if dims is not None:
        if not isinstance(dims, (tuple, list)):
            raise TypeError(f"[tensorsolve] dims is a list, not {type(dims).__name__}")
        moved = [one_dim("tensorsolve", d, a._h.ndim) for d in dims]
        a = permute(a, [d for d in range(a._h.ndim) if d not in moved] + moved)
    shape, n = a.shape[b._h.ndim :], b.size
    if math.prod(shape) != n or a.size != n * n:
        raise ValueError(f"[tensorsolve] shapes {a.shape} of A and {b.shape} of B do not fit")
    return reshape(solve(reshape(a, (n, n)), reshape(b, (n,))), shape)
