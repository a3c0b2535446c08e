"""Functions for matrix and tensor products."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from minigrad.functions.arguments import (
    listed_tensors,
    named_dim,
    older_form,
    one_dim,
    tensor_operands,
)
from minigrad.functions.elementwise import add, mul, scale, sub
from minigrad.functions.reductions import as_float, vector_norm
from minigrad.functions.reductions import sum as total
from minigrad.functions.row_functions import binary
from minigrad.functions.shaping import (
    cat,
    expand,
    pieces,
    reshape,
    to,
    unsqueeze,
)
from minigrad.ops import contraction as _c
from minigrad.runtime.dtypes import float64
from minigrad.runtime.lazy_numpy import np
from minigrad.tape.apply import apply
from minigrad.tape.tensor_base import TensorBase

if TYPE_CHECKING:
    from minigrad._tensor import Tensor

__all__ = [
    "addbmm",
    "addmm",
    "addmv",
    "addr",
    "baddbmm",
    "bmm",
    "cdist",
    "cross",
    "dot",
    "ger",
    "kron",
    "matmul",
    "mm",
    "mv",
    "outer",
    "vdot",
]

matmul = binary(_c.MATMUL)
matmul.__doc__ = """The matrix product by NumPy's rules, y[i, k] = sum over j of a[i, j] * b[j, k].

Vectors count as a row on the left and a column on the right, and the added dimension is removed
from the result; leading dimensions are broadcast. Raises ValueError where inner sizes differ and
for 0-d operands.

>>> import minigrad as mg
>>> (mg.ones(2, 3) @ mg.ones(3)).tolist()
[3.0, 3.0]
"""


def alike(op: str, a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """Cast and broadcast two stacks of matrices to one dtype and one batch shape."""
    if a.dtype is b.dtype and a.shape[:-2] == b.shape[:-2]:
        return a, b
    dtype = float64 if float64 in (a.dtype, b.dtype) else a.dtype
    try:
        batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    except ValueError:
        raise ValueError(
            f"[{op}] the batch dimensions of {a.shape} and {b.shape} do not broadcast"
        ) from None
    return tuple(  # type: ignore[return-value]
        [expand(to(x, dtype), (*batch, *x.shape[-2:])) for x in (a, b)]
    )


# ---- products of fixed shapes --------------------------------------------------------------------


def _pair(op: str, a: Any, a_ndim: int, b: Any, b_ndim: int) -> tuple[Tensor, Tensor]:
    """Two operands, checked to have these numbers of dimensions."""
    x, y = tensor_operands(op, a, b)
    if x._h.ndim != a_ndim or y._h.ndim != b_ndim:
        raise ValueError(
            f"[{op}] takes {a_ndim}-d and {b_ndim}-d tensors, not shapes {x.shape} and {y.shape}; "
            "matmul broadcasts"
        )
    return x, y


def _product(op: str, a: Any, a_ndim: int, b: Any, b_ndim: int) -> Tensor:
    """The matrix product of two operands with these numbers of dimensions, without broadcasting."""
    x, y = _pair(op, a, a_ndim, b, b_ndim)
    inner = y.shape[0 if b_ndim == 1 else -2]
    if x.shape[-1] != inner:
        raise ValueError(
            f"[{op}] inner dimensions differ: {x.shape} @ {y.shape}, {x.shape[-1]} != {inner}"
        )
    if a_ndim == 3 and x.shape[0] != y.shape[0]:
        raise ValueError(f"[{op}] batch sizes differ: {x.shape} @ {y.shape}")
    return matmul(x, y)


def mm(input: Any, mat2: Any) -> Tensor:
    """The product of two matrices: shapes (n, k) and (k, m) give (n, m).

    Raises ValueError for other shapes.
    """
    return _product("mm", input, 2, mat2, 2)


def bmm(input: Any, mat2: Any) -> Tensor:
    """Products of the matrices of two stacks: shapes (s, n, k) and (s, k, m) give (s, n, m)."""
    return _product("bmm", input, 3, mat2, 3)


def mv(input: Any, vec: Any) -> Tensor:
    """A matrix times a vector: shapes (n, k) and (k,) give (n,)."""
    return _product("mv", input, 2, vec, 1)


def dot(input: Any, tensor: Any) -> Tensor:
    """The sum of input * tensor for two vectors of one length.

    Raises ValueError for other shapes.
    """
    return _product("dot", input, 1, tensor, 1)


def vdot(input: Any, other: Any) -> Tensor:
    """:func:`dot` under another name: real numbers are their own conjugates."""
    return _product("vdot", input, 1, other, 1)


def outer(input: Any, vec2: Any) -> Tensor:
    """The products a[i] * b[j]: vectors of lengths n and m give (n, m)."""
    x, y = _pair("outer", input, 1, vec2, 1)
    return mul(unsqueeze(x, 1), y)


def ger(input: Any, vec2: Any) -> Tensor:
    """:func:`outer` under BLAS's name."""
    return outer(input, vec2)


def kron(input: Any, other: Any) -> Tensor:
    """The Kronecker product: a with every element replaced by this element times b.

    Dimensions are matched from the last. Their sizes multiply.

    >>> import minigrad as mg
    >>> mg.kron(mg.tensor([1.0, 2.0]), mg.tensor([1.0, 1.0, 0.0])).tolist()
    [1.0, 1.0, 0.0, 2.0, 2.0, 0.0]
    """
    x, y = tensor_operands("kron", input, other)
    ndim = max(x._h.ndim, y._h.ndim)
    of_x = (1,) * (ndim - x._h.ndim) + x.shape
    of_y = (1,) * (ndim - y._h.ndim) + y.shape
    blocks = reshape(x, tuple([size for n in of_x for size in (n, 1)]))
    inside = reshape(y, tuple([size for n in of_y for size in (1, n)]))
    sizes = tuple([n * m for n, m in zip(of_x, of_y, strict=True)])
    return reshape(mul(blocks, inside), sizes)


# ---- a product added to something ----------------------------------------------------------------


def _added(op: str, input: Any, product: Tensor, beta: float, alpha: float) -> Tensor:
    """beta * input + alpha * product, in the product's shape."""
    _, x = tensor_operands(op, product, input)
    try:
        x = expand(x, product.shape)
    except ValueError:
        raise ValueError(
            f"[{op}] the input {x.shape} does not broadcast to the product's shape {product.shape}"
        ) from None
    return add(x if beta == 1 else scaled(x, beta), product if alpha == 1 else mul(product, alpha))


def scaled(x: Tensor, factor: float) -> Tensor:
    """factor * x. A factor of 0 gives 0, also for NaN and infinities."""
    return scale(factor, x) if x.dtype.is_floating_point else mul(x, factor)


def _older_form(op: str, given: Sequence[Any], beta: float, alpha: float) -> tuple[Any, ...]:
    """The operands, beta and alpha of PyTorch's older (beta, input, alpha, a, b)."""
    x, factor, *rest = given
    if not isinstance(x, TensorBase):  # the arguments of a method begin with the tensor
        x, factor = factor, x
    if len(rest) == 3:
        alpha, *rest = older_form(op, "alpha", alpha, rest, 2)
    beta, *rest = older_form(op, "beta", beta, (factor, *rest), 2)
    return x, *rest, beta, alpha


def addmm(
    input: Any,
    mat1: Any,
    mat2: Any,
    *older: Any,
    beta: float = 1,
    alpha: float = 1,
) -> Tensor:
    """beta * input + alpha * (mat1 @ mat2) for matrices. The input is broadcast.

    With ``beta=0`` the input is ignored, also where it is NaN or infinite. PyTorch's older forms
    are accepted: ``addmm(beta, input, alpha, mat1, mat2)``, with or without alpha, also as methods.
    """
    if older:
        given = (input, mat1, mat2, *older)
        input, mat1, mat2, beta, alpha = _older_form("addmm", given, beta, alpha)
    return _added("addmm", input, _product("addmm", mat1, 2, mat2, 2), beta, alpha)


def addmv(
    input: Any,
    mat: Any,
    vec: Any,
    *older: Any,
    beta: float = 1,
    alpha: float = 1,
) -> Tensor:
    """beta * input + alpha * (mat @ vec) for a matrix and a vector. The rest is as for addmm."""
    if older:
        given = (input, mat, vec, *older)
        input, mat, vec, beta, alpha = _older_form("addmv", given, beta, alpha)
    return _added("addmv", input, _product("addmv", mat, 2, vec, 1), beta, alpha)


def addr(
    input: Any,
    vec1: Any,
    vec2: Any,
    *older: Any,
    beta: float = 1,
    alpha: float = 1,
) -> Tensor:
    """beta * input + alpha * outer(vec1, vec2). The rest is as for addmm."""
    if older:
        given = (input, vec1, vec2, *older)
        input, vec1, vec2, beta, alpha = _older_form("addr", given, beta, alpha)
    x, y = _pair("addr", vec1, 1, vec2, 1)
    return _added("addr", input, mul(unsqueeze(x, 1), y), beta, alpha)


def baddbmm(
    input: Any,
    batch1: Any,
    batch2: Any,
    *older: Any,
    beta: float = 1,
    alpha: float = 1,
) -> Tensor:
    """beta * input + alpha * (batch1 @ batch2) for stacks of matrices. The rest is as for addmm."""
    if older:
        given = (input, batch1, batch2, *older)
        input, batch1, batch2, beta, alpha = _older_form("baddbmm", given, beta, alpha)
    return _added("baddbmm", input, _product("baddbmm", batch1, 3, batch2, 3), beta, alpha)


def addbmm(
    input: Any,
    batch1: Any,
    batch2: Any,
    *older: Any,
    beta: float = 1,
    alpha: float = 1,
) -> Tensor:
    """beta * input + alpha * (the sum over the stack of batch1 @ batch2).

    The rest is as for addmm.
    """
    if older:
        given = (input, batch1, batch2, *older)
        input, batch1, batch2, beta, alpha = _older_form("addbmm", given, beta, alpha)
    return _added("addbmm", input, total(_product("addbmm", batch1, 3, batch2, 3), 0), beta, alpha)


# ---- chains of matrices --------------------------------------------------------------------------


def multi_dot(tensors: Sequence[Any]) -> Tensor:
    """The product of two or more matrices, in the order that takes the fewest multiplications.

    A vector in first place counts as a row, in last place as a column. Raises ValueError for shapes
    that do not fit. The order is found by dynamic programming (Cormen et al., Introduction to
    Algorithms, 15.2).
    """
    found = tensor_operands("multi_dot", *listed_tensors("multi_dot", tensors))
    if len(found) < 2:
        raise ValueError(f"[multi_dot] takes at least two matrices, not {len(found)}")
    row, column = found[0]._h.ndim == 1, found[-1]._h.ndim == 1
    if row:
        found[0] = unsqueeze(found[0], 0)
    if column:
        found[-1] = unsqueeze(found[-1], 1)
    for k, x in enumerate(found):
        if x._h.ndim != 2:
            raise ValueError(f"[multi_dot] operand {k} has shape {x.shape}, but must be a matrix")
    for k, (x, y) in enumerate(itertools.pairwise(found)):
        if x.shape[1] != y.shape[0]:
            raise ValueError(
                f"[multi_dot] operands {k} and {k + 1} do not fit: {x.shape} @ {y.shape}"
            )
    sizes = [found[0].shape[0], *[x.shape[1] for x in found]]
    y = _in_order(found, _best_splits(tuple(sizes)), 0, len(found) - 1)
    if not (row or column):
        return y
    return reshape(y, (sizes[0],) * (not row) + (sizes[-1],) * (not column))


@lru_cache(256)
def _best_splits(sizes: tuple[int, ...]) -> dict[tuple[int, int], int]:
    """For each run of matrices i..j, the matrix after which to split the product.

    Matrix k has the shape sizes[k] x sizes[k + 1].
    """
    count = len(sizes) - 1
    cost = {(i, i): 0 for i in range(count)}
    splits = {}
    for length in range(1, count):
        for i in range(count - length):
            j = i + length
            ways = [
                cost[i, k] + cost[k + 1, j] + sizes[i] * sizes[k + 1] * sizes[j + 1]
                for k in range(i, j)
            ]
            cost[i, j] = min(ways)
            splits[i, j] = i + ways.index(cost[i, j])
    return splits


def _in_order(
    found: Sequence[Tensor], splits: dict[tuple[int, int], int], i: int, j: int
) -> Tensor:
    if i == j:
        return found[i]
    k = splits[i, j]
    return matmul(_in_order(found, splits, i, k), _in_order(found, splits, k + 1, j))


# ---- vectors along a dimension -------------------------------------------------------------------


def vecdot(x: Any, y: Any, *, dim: int = -1, **numpy: Any) -> Tensor:
    """The sum of x * y along a dimension. The other dimensions are broadcast.

    Raises ValueError if the sizes along ``dim`` differ, even if one is 1.
    """
    a, b = tensor_operands("vecdot", x, y)
    dim = named_dim("vecdot", dim, numpy)
    product = mul(a, b)
    axis = one_dim("vecdot", dim, product.ndim) - product.ndim
    sizes = [t.shape[axis] if t.ndim >= -axis else 1 for t in (a, b)]
    if sizes[0] != sizes[1]:
        raise ValueError(
            f"[vecdot] shapes {a.shape} and {b.shape} have {sizes[0]} and {sizes[1]} elements "
            f"along dim {dim}, which is not broadcast: both must have as many"
        )
    return total(product, dim)


def cross(input: Any, other: Any, dim: int | None = None, **numpy: Any) -> Tensor:
    """The cross product of 3-vectors along ``dim``. The other dimensions are broadcast.

    ``dim`` is by default the first dimension of size 3. Raises ValueError if a size along ``dim``
    is not 3.
    """
    x, y = tensor_operands("cross", input, other)
    dim = named_dim("cross", dim, numpy)
    if dim is None:
        if 3 not in x.shape:
            raise ValueError(f"[cross] no dimension of {x.shape} has size 3")
        dim = x.shape.index(3)
    return cross_along("cross", x, y, dim)


def cross_along(op: str, x: Tensor, y: Tensor, dim: int) -> Tensor:
    """(x_1 y_2 - x_2 y_1, x_2 y_0 - x_0 y_2, x_0 y_1 - x_1 y_0) along a dimension."""
    if x._h.ndim != y._h.ndim:
        raise ValueError(f"[{op}] shapes {x.shape} and {y.shape} differ in number of dimensions")
    axis = one_dim(op, dim, x._h.ndim)
    if x.shape[axis] != 3 or y.shape[axis] != 3:
        raise ValueError(f"[{op}] dim {dim} of shapes {x.shape} and {y.shape} must have size 3")

    def turned(t: Tensor) -> Tensor:
        """The components shifted cyclically: component i + 1 in place i."""
        first, rest = pieces(t, axis, (0, 1, 3))
        return cat((rest, first), axis)

    return turned(sub(mul(x, turned(y)), mul(turned(x), y)))


_COMPUTE_MODES = (
    "use_mm_for_euclid_dist_if_necessary",
    "use_mm_for_euclid_dist",
    "donot_use_mm_for_euclid_dist",
)


def cdist(x1: Any, x2: Any, p: float = 2.0, compute_mode: str = _COMPUTE_MODES[0]) -> Tensor:
    """The p-norm of every difference x1[i] - x2[j].

    Shapes (..., n, k) and (..., m, k) give (..., n, m).

    Norms are always computed from differences, so that small distances are exact. ``compute_mode``
    is checked and has no effect. The gradient between equal points is 0.
    """
    x, y = tensor_operands("cdist", x1, x2)
    if compute_mode not in _COMPUTE_MODES:
        raise ValueError(f"[cdist] compute_mode is one of {_COMPUTE_MODES}, not {compute_mode!r}")
    if x._h.ndim < 2 or y._h.ndim < 2 or x.shape[-1] != y.shape[-1]:
        raise ValueError(f"[cdist] takes (..., n, k) and (..., m, k), not {x.shape} and {y.shape}")
    if p == 2 or not x.shape[-1]:  # all norms of an empty vector are 0
        return apply(_c.CDIST, alike("cdist", as_float("cdist", x), as_float("cdist", y)))
    return vector_norm(sub(unsqueeze(x, -2), unsqueeze(y, -3)), p, -1)
