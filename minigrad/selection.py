"""Picking and placing elements by index, as functions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from minigrad._c import call, lib
from minigrad.creation import arange
from minigrad.dispatch import apply, wrap
from minigrad.dtypes import bool_, int64
from minigrad.elementwise import ne
from minigrad.ops import indexing as _i
from minigrad.shaping import expand, narrow, one_dim, reshape, tensor_operand

if TYPE_CHECKING:
    from minigrad._tensor import Tensor

__all__ = [
    "nonzero",
    "take_along_dim",
]


def gather_rows(x: Tensor, index: Sequence[Tensor]) -> Tensor:
    """x[i0, i1, ...] for int64 tensors of one shape on the first dimensions."""
    handles = tuple([i._h for i in index])
    if x._edge is not None:  # the graph's own copy: the caller may overwrite theirs
        handles = tuple([call(lib.mg_copy, h) for h in handles])
    return apply(_i.GATHER, (x,), (handles,))


def take_along_dim(x: Tensor, indices: Tensor, dim: int) -> Tensor:
    """x[..., indices[..., k, ...], ...] along a dimension; other sizes agree or are broadcast."""
    x, indices = tensor_operand("take_along_dim", x), tensor_operand("take_along_dim", indices)
    if indices.dtype is not int64:
        raise TypeError(f"[take_along_dim] indices must be int64, not {indices.dtype.name}")
    axis = one_dim("take_along_dim", dim, x._h.ndim)
    if indices._h.ndim != x._h.ndim:
        raise ValueError(
            f"[take_along_dim] {indices._h.ndim} dimensions of indices for {x._h.ndim} of x"
        )
    shape = tuple(
        [
            m if d == axis else max(n, m)
            for d, (n, m) in enumerate(zip(x.shape, indices.shape, strict=True))
        ]
    )
    grid = []
    for d, n in enumerate(shape):
        if d == axis:
            grid.append(expand(indices, shape))
        else:
            along = reshape(arange(n), tuple([n if k == d else 1 for k in range(len(shape))]))
            grid.append(expand(along, shape))
    source = expand(x, tuple([x.shape[d] if d == axis else n for d, n in enumerate(shape)]))
    return gather_rows(source, grid)


def nonzero(mask: Tensor) -> tuple[Tensor, ...]:
    """The positions of true elements, as one int64 tensor per dimension (NumPy's form)."""
    given = tensor_operand("nonzero", mask)
    x = given if given.dtype is bool_ else ne(given, 0)
    found = wrap(call(lib.mg_nonzero, x._h))
    return tuple(
        [reshape(narrow(found, 0, d, 1), (-1 if found.size else 0,)) for d in range(x._h.ndim)]
    )
