"""Changes of shape, layout and dtype: views where they can be, and copies. All of them linear."""

from __future__ import annotations

from typing import Any

from minigrad._c import Handle, call, ffi, lib, run
from minigrad.ops.table import Row, linear, variadic

Shape = tuple[int, ...]


def _inverse(axes: Shape) -> Shape:
    inverse = [0] * len(axes)
    for place, axis in enumerate(axes):
        inverse[axis] = place
    return tuple(inverse)


RESHAPE = linear(
    "reshape",
    lambda x, to: call(lib.mg_reshape, x, len(to), to),
    lambda g, shape, to: g.reshape(shape),
    doc="the same elements in another shape; a view where the strides allow, else a copy",
)
VIEW = linear(
    "view",
    lambda x, to: call(lib.mg_view_reshape, x, len(to), to),
    lambda g, shape, to: g.reshape(shape),
    doc="the same elements in another shape, always a view",
)
PERMUTE = linear(
    "permute",
    lambda x, axes: call(lib.mg_view_permute, x, len(axes), axes),
    lambda g, axes: g.permute(_inverse(axes)),
    doc="the axes in another order; a view",
)
EXPAND = linear(
    "expand",
    lambda x, to: call(lib.mg_view_expand, x, len(to), to),
    lambda g, shape, to: g.sum_to_size(shape),
    doc="size-1 and new axes repeated without a copy",
)
SUM_TO = linear(
    "sum_to_size",
    lambda x, to: call(lib.mg_sum_to, x, len(to), to),
    lambda g, shape, to: g.expand(shape),
    doc="the sum over the axes along which a smaller shape would be broadcast",
)
COPY = linear("clone", lambda x: call(lib.mg_copy, x), lambda g: g, doc="a contiguous copy")
CAST = linear(
    "to",
    lambda x, dtype, was: call(lib.mg_cast, x, dtype.code),
    lambda g, dtype, was: g.to(was),
    doc="the same values in another dtype",
)


def _concatenate(*parts_axis_sizes: Any) -> Handle:
    *parts, axis, _ = parts_axis_sizes
    return call(lib.mg_concatenate, len(parts), ffi.new("mg_array *[]", parts), axis)


CAT = variadic(
    "cat",
    _concatenate,
    lambda g, i, axis, sizes: g.narrow(axis, sum(sizes[:i]) if sizes[i] else 0, sizes[i]),
    doc="arrays side by side along an axis",
)


def _slice(x: Handle, start: Shape, step: Shape, count: Shape) -> Handle:
    return call(lib.mg_view_slice, x, start, step, count)


def _embed(x: Handle, to: Shape, start: Shape, step: Shape, count: Shape) -> Handle:
    """Zeros, with x written where a slice would have read."""
    out = call(lib.mg_full, x.dtype, len(to), to, 0.0, 0)
    run(lib.mg_write, _slice(out, start, step, count), x)
    return out


SLICE = linear(
    "slice",
    _slice,
    lambda g, shape, start, step, count: _apply(EMBED, g, shape, start, step, count),
    doc="start, step and count on every axis; a view",
)
EMBED: Row = linear(
    "embed",
    _embed,
    lambda g, to, start, step, count: _apply(SLICE, g, start, step, count),
    doc="zeros of a shape with the input written into a slice: the transpose of slice",
)


def _apply(row: Row, x: Any, *args: Any) -> Any:
    """The row on a tensor; the tensor knows how."""
    return x.apply_row(row, *args)
