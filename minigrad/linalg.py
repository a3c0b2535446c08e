"""Linear algebra (``mg.linalg``): inverses, systems, factorisations and norms of matrices.

All functions take stacks of matrices: the last two dimensions are the matrix, all others a batch.
Values are computed in float64, also for float32. Eigenvalues and singular values come from NumPy's
LAPACK. Derivatives are formulas of tensor operations, and can be differentiated to any order.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

from numpy.linalg import LinAlgError

from minigrad.functions.arguments import (
    named_dim,
    one_dim,
    renamed,
    spelled,
    tensor_operand,
    tensor_operands,
)
from minigrad.functions.creation import empty, eye, zeros
from minigrad.functions.elementwise import abs as magnitude
from minigrad.functions.elementwise import div, gt, maximum, mul, square, sub
from minigrad.functions.products import alike, cross_along, matmul, multi_dot, vecdot
from minigrad.functions.reductions import amax, amin, as_float, vector_norm
from minigrad.functions.reductions import sum as total
from minigrad.functions.selection import masked_fill, where
from minigrad.functions.shaping import (
    cat,
    narrow,
    permute,
    pieces,
    squeeze,
    unsqueeze,
)
from minigrad.functions.solving import (
    cholesky,
    cholesky_inverse,
    cholesky_solve,
    det,
    inv,
    matrices,
    matrix_exp,
    matrix_power,
    pinv,
    slogdet,
    solve,
    solve_triangular,
    symmetric,
    tensorinv,
    tensorsolve,
    tolerances,
)
from minigrad.ops import factorisation as _f
from minigrad.ops.equal_values import OF_VALUES, OF_VECTORS
from minigrad.tape.apply import apply

if TYPE_CHECKING:
    from minigrad._tensor import Tensor

__all__ = [
    "LinAlgError",
    "cholesky",
    "cholesky_inverse",
    "cholesky_solve",
    "cond",
    "cross",
    "det",
    "diagonal",
    "eigh",
    "eigvalsh",
    "inv",
    "lstsq",
    "matmul",
    "matrix_exp",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "multi_dot",
    "norm",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "solve_triangular",
    "svd",
    "svdvals",
    "tensorinv",
    "tensorsolve",
    "vecdot",
    "vector_norm",
]

# ---- factorisations ------------------------------------------------------------------------------


class QR(NamedTuple):
    """The factors of A = Q @ R."""

    Q: Any
    R: Any


def qr(A: Any, mode: str = "reduced") -> QR:
    """Q with orthonormal columns and upper triangular R, with Q @ R = A.

    The matrix is m x n, and k = min(m, n). ``"reduced"`` gives Q (m, k) and R (k, n),
    ``"complete"`` Q (m, m) and R (m, n). ``"r"`` gives an empty Q and the reduced R. The additional
    columns of a complete Q are any completion of the basis, and have no gradient.

    For the gradient the first k columns of A must be independent: backward raises LinAlgError if R
    has a 0 on its diagonal. A matrix with NaN or infinity gives NaN.
    """
    x = matrices("qr", A)
    if mode not in ("reduced", "complete", "r"):
        raise ValueError(f"[qr] mode is 'reduced', 'complete' or 'r', not {mode!r}")
    m, n = x.shape[-2:]
    k = min(m, n)
    both = apply(_f.QR, (x if n == k else narrow(x, -1, 0, k),))
    q, r = pieces(both, both._h.ndim - 2, (0, m, m + k))
    if n > k:  # the other columns lie in the span of Q
        r = cat([r, matmul(q.mT, narrow(x, -1, k, n - k))], -1)
    if mode == "r":
        return QR(empty(0, dtype=x.dtype), r)
    if mode == "complete" and m > k:
        q = cat([q, _complement(q)], -1)
        r = cat([r, zeros(*r.shape[:-2], m - k, n, dtype=r.dtype)], -2)
    return QR(q, r)


def _complement(q: Tensor) -> Tensor:
    """Orthonormal columns that complete the columns of q to a basis, without a gradient."""
    m, k = q.shape[-2:]
    return narrow(apply(_f.BASIS, (q.detach(),)), -1, k, m - k)


class SVD(NamedTuple):
    """The factors of A = U @ diag(S) @ Vh."""

    U: Any
    S: Any
    Vh: Any


def svd(A: Any, full_matrices: bool = True, *, driver: str | None = None) -> SVD:
    """The singular value decomposition: A = U @ diag(S) @ Vh, with S descending.

    The matrix is m x n, and k = min(m, n). U is (m, m), S (k,) and Vh (n, n). With
    ``full_matrices=False`` U is (m, k) and Vh (k, n). The additional columns and rows of full
    matrices have no gradient. A matrix with NaN or infinity gives NaN. ``driver`` is for GPUs, and
    changes nothing.

    U and Vh are determined up to signs, so a gradient has a meaning only for functions that do not
    depend on the signs. At two equal singular values there is a gradient for functions of U @ Vh,
    and for functions that treat equal values alike. Functions of the spaces that vectors of equal
    values span have a gradient too. Other functions of vectors get NaN. The same holds for
    functions of vectors and values: see eigh.

    At values of 0, functions of the vectors alone omit the terms that divide by 0. In a product of
    low rank, values are 0 up to rounding. U f(S) Vh with f(0) = 0 has a gradient there, but the
    derivative of this gradient is not finite.
    """
    x = matrices("svd", A)
    m, n = x.shape[-2:]
    k = min(m, n)
    every = apply(_f.SVD, (x,))
    axis, ends = every._h.ndim - 2, (0, m, m + 1, m + 1 + n)
    u, _, v = pieces(apply(_f.MARKED, (every,), (OF_VECTORS,)), axis, ends)
    s = narrow(apply(_f.MARKED, (every,), (OF_VALUES,)), axis, m, 1)
    if full_matrices and m > k:
        u = cat([u, _complement(u)], -1)
    if full_matrices and n > k:
        v = cat([v, _complement(v)], -1)
    return SVD(u, squeeze(s, -2), v.mT)


def svdvals(A: Any, *, driver: str | None = None) -> Tensor:
    """The singular values in descending order, as in ``svd(A).S``."""
    return apply(_f.SINGULAR_VALUES, (matrices("svdvals", A),))


class Eigh(NamedTuple):
    """The factors of A = eigenvectors @ diag(eigenvalues) @ eigenvectors^T."""

    eigenvalues: Any
    eigenvectors: Any


def eigh(A: Any, UPLO: str = "L") -> Eigh:
    """The eigenvalues of a symmetric matrix in ascending order, and its eigenvectors as columns.

    Only the lower triangle is read, or the upper one for ``UPLO="U"``. The gradient is symmetric. A
    matrix with NaN or infinity gives NaN. Raises ValueError for shapes that are not square.

    Eigenvectors are determined up to signs, so a gradient has a meaning only for functions that do
    not depend on the signs. At two equal eigenvalues, functions of the values alone have a gradient
    if they treat equal values alike. Functions of the vectors alone have a gradient if they depend
    only on the space that the two vectors span.

    Functions of both have a gradient if their cotangent G determines it. This is so if V^T G V has
    different diagonal entries there, or no entries off the diagonal. An example is V f(w) V^T,
    whose gradient has no finite derivative. Other examples are sums of f(w) and functions of the
    space. All other functions get NaN. The same holds for functions of vectors and values from two
    calls, such as eigvalsh(A) and eigh(A).
    """
    both = apply(_f.EIGH, (matrices("eigh", A, square=True),), (_triangle("eigh", UPLO),))
    values = apply(_f.MARKED, (both,), (OF_VALUES,))
    return Eigh(values[..., 0, :], apply(_f.MARKED, (both,), (OF_VECTORS,))[..., 1:-1, :])


def eigvalsh(A: Any, UPLO: str = "L") -> Tensor:
    """The eigenvalues of a symmetric matrix in ascending order, as in ``eigh(A).eigenvalues``."""
    x = matrices("eigvalsh", A, square=True)
    return apply(_f.EIGENVALUES, (x,), (_triangle("eigvalsh", UPLO),))


def _triangle(op: str, name: Any) -> Any:
    if name not in ("L", "U", "l", "u"):
        raise ValueError(f"[{op}] UPLO is 'L' or 'U', not {name!r}")
    return name


# ---- least squares and rank ----------------------------------------------------------------------


def matrix_rank(
    A: Any,
    *,
    atol: Any = None,
    rtol: Any = None,
    hermitian: bool = False,
) -> Tensor:
    """The number of singular values above max(atol, rtol * largest), as int64.

    The defaults are those of pinv.
    """
    x = matrices("matrix_rank", A).detach()
    if hermitian:
        x = symmetric("matrix_rank", x)
    return _rank(svdvals(x), *tolerances("matrix_rank", x, atol, rtol))


def _rank(s: Tensor, rtol: Any, atol: Any) -> Tensor:
    limit = mul(narrow(s, -1, 0, min(1, s.shape[-1])), rtol)
    if not (isinstance(atol, float) and atol == 0.0):
        limit = maximum(limit, atol)
    return total(gt(s, limit), -1)


class Lstsq(NamedTuple):
    """A least-squares solution, its residuals, and the rank and singular values of the matrix."""

    solution: Any
    residuals: Any
    rank: Any
    singular_values: Any


def lstsq(A: Any, B: Any, rcond: float | None = None, *, driver: str | None = None) -> Lstsq:
    """The least-squares solution X: it minimises the sum of (A @ X - B)^2.

    If there are several solutions, X has the least norm. Shapes (..., m, n) and (..., m, k), or
    (..., m) for vectors, give (..., n, k) or (..., n). The result is pinv(A) @ B, with ``rcond`` as
    rtol. LAPACK's ``driver`` is accepted and has no effect. ``residuals`` are the sums of squares
    of each column if m > n and all matrices have rank n. Otherwise they are empty.

    A matrix of full rank is solved by QR.
    """
    a, b = matrices("lstsq", A), as_float("lstsq", B)
    if driver not in (None, "gels", "gelsy", "gelsd", "gelss"):
        raise ValueError(f"[lstsq] driver is gels, gelsy, gelsd or gelss, not {driver!r}")
    vector = b._h.ndim == a._h.ndim - 1 and b.shape == a.shape[:-1]
    if vector:
        b = unsqueeze(b, -1)
    if b._h.ndim < 2 or b.shape[-2] != a.shape[-2]:
        raise ValueError(f"[lstsq] shapes {a.shape} of A and {b.shape} of B do not fit")
    a, b = alike("lstsq", a, b)
    m, n = a.shape[-2:]
    s = svdvals(a.detach())
    rank = _rank(s, *tolerances("lstsq", a, None, rcond))
    full = rank == min(m, n)
    if bool(full.all()):
        x = _of_full_rank(a, b)
    else:
        each = unsqueeze(unsqueeze(full, -1), -1)
        regular = where(each, a, eye(m, n, dtype=a.dtype))
        x = where(each, _of_full_rank(regular, b), matmul(pinv(a, rtol=rcond), b))
    if m > n and bool(full.all()):
        residuals = total(square(sub(matmul(a, x), b)), -2)
    else:
        residuals = empty(0, dtype=a.dtype)
    return Lstsq(squeeze(x, -1) if vector else x, residuals, rank, s)


def _of_full_rank(a: Tensor, b: Tensor) -> Tensor:
    if a.shape[-2] >= a.shape[-1]:
        q, r = qr(a)
        return solve_triangular(r, matmul(q.mT, b), upper=True)
    q, r = qr(a.mT)
    return matmul(q, solve_triangular(r.mT, b, upper=False))


# ---- norms ---------------------------------------------------------------------------------------


def norm(
    A: Any,
    ord: Any = None,  # noqa: A002
    dim: Any = None,
    keepdim: bool = False,
    *,
    dtype: Any = None,
    **numpy: Any,
) -> Tensor:
    """A vector or a matrix norm.

    Without ``ord`` it is the 2-norm over ``dim``, or over all elements. With ``ord`` one dimension
    gives a vector norm, and two dimensions a matrix norm. The dimensions are ``dim``, or all of a
    tensor with one or two dimensions.
    """
    x = tensor_operand("norm", A)
    if numpy or type(keepdim) is not bool:
        dim, keepdim = spelled("norm", dim, keepdim, numpy)
    if ord is None:
        return vector_norm(x, 2, dim, keepdim, dtype=dtype)
    if dim is None:
        if x._h.ndim not in (1, 2):
            raise ValueError(f"[norm] with ord and no dim, takes 1 or 2 dimensions, not {x.shape}")
        dim = tuple(range(x._h.ndim))
    if isinstance(dim, (tuple, list)) and len(dim) == 2:
        return matrix_norm(x, ord, dim, keepdim, dtype=dtype)
    return vector_norm(x, ord, dim, keepdim, dtype=dtype)


def matrix_norm(
    A: Any,
    ord: Any = "fro",  # noqa: A002
    dim: Any = (-2, -1),
    keepdim: bool = False,
    *,
    dtype: Any = None,
    **numpy: Any,
) -> Tensor:
    """The norm of the matrices in two dimensions.

    ``"fro"`` is the square root of the sum of squares, and ``"nuc"`` the sum of the singular
    values. 2 is the largest singular value and -2 the smallest. inf is the largest sum of
    magnitudes of a row, and -inf the smallest. 1 and -1 are the same for columns.

    Ties share the gradient evenly. The gradient is 0 for a singular value of 0. It is 0 for a
    matrix of zeros, except for -1, -2 and -inf. All norms of an empty matrix are 0, but the
    smallest value of an empty matrix raises ValueError.
    """
    x = as_float("matrix_norm", A, dtype)
    if numpy or type(keepdim) is not bool:
        named, keepdim = spelled("matrix_norm", None, keepdim, numpy)
        dim = dim if named is None else named
    if not isinstance(dim, (tuple, list)) or len(dim) != 2:
        raise ValueError(f"[matrix_norm] dim is a pair of dimensions, not {dim}")
    rows, columns = (one_dim("matrix_norm", d, x._h.ndim) for d in dim)
    if rows == columns:
        raise ValueError(f"[matrix_norm] the dims {tuple(dim)} are one and the same")
    if ord == "fro":
        return vector_norm(x, 2, (rows, columns), keepdim)
    if (rows, columns) != (x._h.ndim - 2, x._h.ndim - 1):
        others = [d for d in range(x._h.ndim) if d not in (rows, columns)]
        x = permute(x, [*others, rows, columns])
    try:
        y = _last_two_norm(x, ord)
    except ValueError as error:
        raise renamed("matrix_norm", error) from None
    if keepdim:
        for d in sorted((rows, columns)):
            y = unsqueeze(y, d)
    return y


def _last_two_norm(x: Tensor, order: Any) -> Tensor:
    if order == "nuc":
        return vector_norm(svdvals(x), 1, -1)
    if order in (1, 2, math.inf) and 0 in x.shape[-2:]:
        return total(magnitude(x), (-2, -1))  # 0 for an empty matrix, as no magnitude is below 0
    if order in (2, -2):
        return vector_norm(svdvals(x), math.copysign(math.inf, order), -1)
    if order in (1, -1, math.inf, -math.inf):
        sums = total(magnitude(x), -2 if order in (1, -1) else -1)
        return (amax if order > 0 else amin)(sums, -1)
    raise ValueError(f"[matrix_norm] ord is 'fro', 'nuc', inf, 1, 2 or their negatives: {order!r}")


def cond(A: Any, p: Any = None) -> Tensor:
    """The condition number, norm(A) * norm(inv(A)) in the matrix norm ``p``.

    In the 2-norm, the default, it is the largest singular value divided by the smallest, for any
    shape. -2 gives the reciprocal. The result is inf if the smallest singular value is 0. In other
    norms it is inf if inv raises an error for a singular matrix. It is 0 for an empty matrix. Other
    norms raise ValueError for matrices that are not square.
    """
    x = matrices("cond", A, square=p not in (None, 2, -2))
    if 0 in x.shape[-2:]:
        return zeros(x.shape[:-2], dtype=x.dtype)
    if p in (None, 2, -2):
        s = svdvals(x)
        largest, smallest = narrow(s, -1, 0, 1), narrow(s, -1, s.shape[-1] - 1, 1)
        return squeeze(div(smallest, largest) if p == -2 else div(largest, smallest), -1)
    singular = unsqueeze(unsqueeze(slogdet(x.detach()).sign == 0, -1), -1)
    regular = where(singular, eye(x.shape[-1], dtype=x.dtype), x)
    number = mul(matrix_norm(x, p), matrix_norm(inv(regular), p))
    return masked_fill(number, singular[..., 0, 0], math.inf)


# ---- along dimensions ----------------------------------------------------------------------------


def cross(input: Any, other: Any, *, dim: int = -1, **numpy: Any) -> Tensor:
    """The cross product of 3-vectors along a dimension. The other dimensions are broadcast."""
    x, y = tensor_operands("cross", input, other)
    return cross_along("cross", x, y, named_dim("cross", dim, numpy))


def diagonal(A: Any, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """A view of the diagonals of the matrices in two dimensions, as a last dimension."""
    return tensor_operand("diagonal", A).diagonal(offset, dim1, dim2)
