"""Functions for diagonals, triangles and blocks of matrices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from minigrad.functions.arguments import integer, one_dim, promoted, renamed, tensor_operand
from minigrad.functions.creation import zeros
from minigrad.functions.selection import replacing
from minigrad.functions.shaping import clone, movedim, ravel, reshape, to
from minigrad.ops import shape as _s
from minigrad.runtime.devices import on_cpu
from minigrad.runtime.dtypes import int64
from minigrad.runtime.native import call, kernels
from minigrad.tape.apply import apply
from minigrad.tape.tensor_base import wrap

if TYPE_CHECKING:
    from minigrad._tensor import Tensor

__all__ = [
    "block_diag",
    "diag",
    "diag_embed",
    "diagflat",
    "diagonal",
    "diagonal_scatter",
    "tril",
    "tril_indices",
    "triu",
    "triu_indices",
]

# ---- diagonals -----------------------------------------------------------------------------------


def _planes(op: str, x: Tensor, dim1: int, dim2: int) -> tuple[int, int]:
    """Check that two dimensions differ, and count them from the front."""
    axes = one_dim(op, dim1, x._h.ndim), one_dim(op, dim2, x._h.ndim)
    if axes[0] == axes[1]:
        raise ValueError(f"[{op}] dim1 and dim2 are both {axes[0]}, but must differ")
    return axes


def diagonal(input: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """A view of ``input[i, i + offset]`` for all i. The diagonal becomes the last dimension.

    ``dim1`` and ``dim2`` replace the first two dimensions. A positive offset is above the main
    diagonal, a negative one below. An offset outside the plane gives size 0.
    """
    x = tensor_operand("diagonal", input)
    axes = _planes("diagonal", x, dim1, dim2)
    if axes != (x._h.ndim - 2, x._h.ndim - 1):
        x = movedim(x, axes, (-2, -1))
    return apply(_s.DIAGONAL, (x,), (integer("diagonal", "offset", offset),))


def diag_embed(input: Tensor, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """Square planes of zeros whose diagonals are the last dimension of the input.

    The planes are dimensions dim1 and dim2 of the result. This is the inverse of diagonal.
    """
    x = tensor_operand("diag_embed", input)
    if not x._h.ndim:
        raise ValueError("[diag_embed] expected at least 1 dimension, not 0")
    shape, shift = x.shape, integer("diag_embed", "offset", offset)
    n = shape[-1] + abs(shift)
    planes = apply(_s.DIAG_EMBED, (x,), ((*shape[:-1], n, n), shift))
    axes = _planes("diag_embed", planes, dim1, dim2)
    last = (planes._h.ndim - 2, planes._h.ndim - 1)
    return planes if axes == last else movedim(planes, last, axes)


def diag(input: Tensor, diagonal: int = 0) -> Tensor:  # PyTorch's name of the argument
    """The diagonal matrix of a vector, or a copy of the diagonal of a matrix.

    >>> import minigrad as mg
    >>> mg.diag(mg.tensor([1.0, 2.0]))
    tensor([[1., 0.],
            [0., 2.]])
    """
    x = tensor_operand("diag", input)
    if x._h.ndim not in (1, 2):
        raise ValueError(f"[diag] expected a vector or a matrix, not {x._h.ndim} dimensions")
    if x._h.ndim == 1:
        return diag_embed(x, diagonal)
    return clone(apply(_s.DIAGONAL, (x,), (integer("diag", "diagonal", diagonal),)))


def diagflat(input: Tensor, offset: int = 0) -> Tensor:
    """A matrix with the flattened input on a diagonal."""
    return diag_embed(ravel(input), offset)


def diagonal_scatter(
    input: Tensor,
    src: Tensor,
    offset: int = 0,
    dim1: int = 0,
    dim2: int = 1,
) -> Tensor:
    """``input`` with ``src`` in place of ``diagonal(input, offset, dim1, dim2)``."""
    op = "diagonal_scatter"
    x = tensor_operand(op, input)
    axes = _planes(op, x, dim1, dim2)
    shift = integer(op, "offset", offset)
    last = (x._h.ndim - 2, x._h.ndim - 1)
    planes = x if axes == last else movedim(x, axes, last)
    shape = call(kernels.view_diagonal, planes._h, shift).shape
    written = apply(_s.DIAGONAL_PUT, (planes, replacing(op, x, src, shape)), (shift,))
    return written if axes == last else movedim(written, last, axes)


# ---- triangles -----------------------------------------------------------------------------------


def _keep(op: str, x: Any, diagonal: int, lower: bool) -> Tensor:
    x = tensor_operand(op, x)
    if x._h.ndim < 2:
        raise ValueError(f"[{op}] expected at least 2 dimensions, not {x._h.ndim}")
    offset = integer(op, "diagonal", diagonal)
    rows, columns = x.shape[-2:]
    offset = min(max(offset, -rows), columns)  # further off is the same
    return apply(_s.TRIANGLE, (x,), (offset, lower))


def tril(input: Tensor, diagonal: int = 0) -> Tensor:
    """The lower triangle of the last two dimensions, with 0 above diagonal number ``diagonal``."""
    return _keep("tril", input, diagonal, True)


def triu(input: Tensor, diagonal: int = 0) -> Tensor:
    """The upper triangle of the last two dimensions, with 0 below diagonal number ``diagonal``."""
    return _keep("triu", input, diagonal, False)


def _indices(
    op: str, row: Any, col: Any, offset: int, dtype: Any, device: Any, lower: bool
) -> Tensor:
    on_cpu(device)
    rows, columns = integer(op, "row", row, 0), integer(op, "col", col, 0)
    shift = min(max(integer(op, "offset", offset), -rows), columns)  # further off is the same
    try:
        found = call(kernels.triangle_indices, rows, columns, shift, lower)
    except (ValueError, MemoryError) as error:
        raise renamed(op, error) from None
    return to(wrap(found), dtype)


def tril_indices(
    row: int, col: int, offset: int = 0, *, dtype: Any = int64, device: Any = None
) -> Tensor:
    """The positions of the lower triangle of a (row, col) matrix, shape (2, n): rows, columns."""
    return _indices("tril_indices", row, col, offset, dtype, device, True)


def triu_indices(
    row: int, col: int, offset: int = 0, *, dtype: Any = int64, device: Any = None
) -> Tensor:
    """The positions of the upper triangle of a (row, col) matrix, shape (2, n): rows, columns."""
    return _indices("triu_indices", row, col, offset, dtype, device, False)


# ---- blocks --------------------------------------------------------------------------------------


def block_diag(*tensors: Any) -> Tensor:
    """A matrix with the given matrices along its diagonal, and zeros around. A vector is a row.

    >>> import minigrad as mg
    >>> mg.block_diag(mg.tensor([[1, 2]]), mg.tensor(3))
    tensor([[1, 2, 0],
            [0, 0, 3]])
    """
    if not tensors:
        return zeros(1, 0)
    blocks = []
    for x in promoted("block_diag", tensors):
        if x._h.ndim > 2:
            raise ValueError(f"[block_diag] expected matrices, but one has shape {x.shape}")
        blocks.append(x if x._h.ndim == 2 else reshape(x, (1, x.size)))
    places, row, column = [], 0, 0
    for x in blocks:
        size = x.shape
        places.append(((row, column), size))
        row, column = row + size[0], column + size[1]
    return apply(_s.BLOCKS, tuple(blocks), ((row, column), tuple(places)))
