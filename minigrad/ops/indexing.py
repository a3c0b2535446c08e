"""Elements picked by integer arrays.

``index`` is a tuple of int64 handles of one shape, on the first axes; the Tensor layer brings every
NumPy index form to this one by views.
"""

from __future__ import annotations

from typing import Any

from minigrad._c import Handle, call, ffi, lib
from minigrad.ops.table import Row, linear

Index = tuple[Handle, ...]


def _pointers(index: Index) -> Any:
    return ffi.new("mg_array *[]", index)


def _apply(row: Row, x: Any, *args: Any) -> Any:
    return x.apply_row(row, *args)


GATHER = linear(
    "index",
    lambda x, index: call(lib.mg_gather, x, len(index), _pointers(index)),
    lambda g, shape, index: _apply(SCATTER_ADD, g, shape, index),
    doc="x[i0, i1, ...] with equal-shaped integer arrays on the first axes",
)
SCATTER_ADD: Row = linear(
    "index_put_zeros",
    lambda g, to, index: call(lib.mg_scatter_add, len(to), to, len(index), _pointers(index), g),
    lambda g, to, index: _apply(GATHER, g, index),
    doc="zeros(to)[i0, i1, ...] += x, repeated indices added in order",
)
