"""Changes of shape, layout and dtype, all linear: views where possible, else copies."""

from __future__ import annotations

from typing import Any

from minigrad.ops.pointwise import ADD
from minigrad.ops.table import Row, custom, linear, variadic
from minigrad.runtime.native import Array, call, kernels

Shape = tuple[int, ...]


def _inverse(axes: Shape) -> Shape:
    inverse = [0] * len(axes)
    for place, axis in enumerate(axes):
        inverse[axis] = place
    return tuple(inverse)


RESHAPE = linear(
    "reshape",
    kernels.reshape,
    lambda g, shape, to: g.reshape(shape),
    doc="the same elements in another shape; a view where the strides allow, else a copy",
    view=True,
)
VIEW = linear(
    "view",
    kernels.view_reshape,
    lambda g, shape, to: g.reshape(shape),
    doc="the same elements in another shape, always a view",
    view=True,
    jvp=lambda t, to: t.reshape(to),  # the strides of a tangent are its own
)
PERMUTE = linear(
    "permute",
    kernels.view_permute,
    lambda g, axes: g.permute(_inverse(axes)),
    doc="the axes in another order; a view",
    view=True,
)
EXPAND = linear(
    "expand",
    kernels.view_expand,
    lambda g, shape, to: g.sum_to_size(shape),
    doc="size-1 and new axes repeated without a copy",
    view=True,
)
SUM_TO = linear(
    "sum_to_size",
    kernels.sum_to,
    lambda g, shape, to: g.expand(shape),
    doc="the sum over the axes along which a smaller shape would be broadcast",
)
COPY = linear("clone", kernels.copy, lambda g: g, doc="a contiguous copy")
CAST = linear(
    "to",
    lambda x, dtype, was: call(kernels.cast, x, dtype.code),
    lambda g, dtype, was: g.to(was),
    doc="the same values in another dtype",
)


def _joined(kernel: Any) -> Any:
    """The forward of a row of any number of arrays, an axis, and what only its gradient needs."""

    def forward(*parts_axis_more: Any) -> Array:
        *parts, axis, _ = parts_axis_more
        return call(kernel, parts, axis)

    return forward


CAT = variadic(
    "cat",
    _joined(kernels.concatenate),
    lambda g, i, axis, bounds: g.narrow(axis, bounds[i], bounds[i + 1] - bounds[i]),
    doc="arrays side by side along an axis",
)
STACK = variadic(
    "stack",
    _joined(kernels.stack),
    lambda g, i, axis, count: g.select(axis, i),
    doc="arrays of one shape side by side along a new axis",
)


def _slice(x: Array, start: Shape, step: Shape, count: Shape) -> Array:
    return call(kernels.view_slice, x, start, step, count)


def _filled(like: Array, to: Shape, value: float | int | bool) -> Array:
    integer = 0 if isinstance(value, float) else int(value)
    return call(kernels.full, like.dtype, to, float(value), integer)


def _put(x: Array, value: Array, start: Shape, step: Shape, count: Shape) -> Array:
    """x itself, with a slice of it written."""
    call(kernels.write, _slice(x, start, step, count), value)
    return x


SLICE = linear(
    "slice",
    kernels.view_slice,
    lambda g, shape, start, step, count: _apply(EMBED, g, shape, start, step, count),
    doc="start, step and count on every axis; a view",
    view=True,
)
EMBED: Row = linear(
    "embed",
    lambda x, to, start, step, count: _put(_filled(x, to, 0), x, start, step, count),
    lambda g, to, start, step, count: _apply(SLICE, g, start, step, count),
    doc="zeros of a shape with the input written into a slice: the transpose of slice",
)
SLICE_VIEW = linear(
    "slice_view",
    kernels.view_slice_reshape,
    lambda g, shape, start, step, count, to: _apply(
        EMBED, g.reshape(count), shape, start, step, count
    ),
    doc="a slice without the axes that an integer picked, or with new ones; a view",
    view=True,
)
PAD: Row = linear(
    "pad",
    lambda x, to, start, value: _put(_filled(x, to, value), x, start, (1,) * len(to), x.shape),
    lambda g, shape, to, start, value: _apply(SLICE, g, start, (1,) * len(to), shape),
    jvp=lambda t, to, start, value: _apply(PAD, t, to, start, 0.0),
    doc="one value everywhere, but the input from a start on",
)
SLICE_BLANK: Row = linear(
    "slice_blank",
    lambda x, *at: _put(call(kernels.copy, x), call(kernels.python_int, 0), *at),
    lambda g, start, step, count: _apply(SLICE_BLANK, g, start, step, count),
    doc="the input with 0 in a slice",
)
SLICE_PUT = custom(
    "slice_scatter",
    lambda x, value, *at: _put(call(kernels.copy, x), value, *at),
    lambda g, start, step, count: _apply(SLICE_BLANK, g, start, step, count),
    lambda g, start, step, count: _apply(SLICE, g, start, step, count),
    jvp=(
        lambda t, start, step, count: _apply(SLICE_BLANK, t, start, step, count),
        lambda t, shape, start, step, count: _apply(EMBED, t, shape, start, step, count),
    ),
    doc="the input with a slice of it replaced by another",
)


def _diagonal(x: Array, offset: int) -> Array:
    return call(kernels.view_diagonal, x, offset)


def _embed_diagonal(x: Array, to: Shape, offset: int) -> Array:
    out = _filled(x, to, 0)
    call(kernels.write, _diagonal(out, offset), x)
    return out


DIAGONAL = linear(
    "diagonal",
    _diagonal,
    lambda g, shape, offset: _apply(DIAG_EMBED, g, shape, offset),
    doc="the diagonal of the last two axes; a view",
    view=True,
)
DIAG_EMBED: Row = linear(
    "diag_embed",
    _embed_diagonal,
    lambda g, to, offset: _apply(DIAGONAL, g, offset),
    doc="zeros of a shape with the input on the diagonal of the last two axes",
)


# Parts of an axis: the start, step and count of each, one after the other.
SPANS: Row = linear(
    "spans",
    kernels.spans,
    lambda g, shape, axis, spans: _apply(SPANS_ADDED, g, axis, shape[axis], spans),
    fused=lambda g, shape, axis, spans: _spans_added(g, axis, shape[axis], spans),
    doc="parts of an axis side by side",
)


def _spans_added(g: Array, axis: int, size: int, spans: Shape) -> Array:
    return call(kernels.spans_added, ADD.id, g, axis, size, spans)


SPANS_ADDED: Row = linear(
    "spans_added",
    _spans_added,
    lambda g, axis, size, spans: _apply(SPANS, g, axis, spans),
    doc="zeros with what lies side by side added to parts of an axis",
)


def _rolled(x: Array, axis: int, n: int, shift: int) -> Array:
    return call(kernels.spans, x, axis, (n - shift, 1, shift, 0, 1, n - shift))


ROLL: Row = linear(
    "roll",
    _rolled,
    lambda g, axis, n, shift: _apply(ROLL, g, axis, n, n - shift),
    fused=lambda g, axis, n, shift: _rolled(g, axis, n, n - shift),
    doc="the elements moved on along an axis of n, the last ones to its start",
)


def _repeated(x: Array, apart: Shape, spread: Shape, to: Shape) -> Array:
    seen = call(kernels.view_expand, call(kernels.reshape, x, apart), spread)
    return call(kernels.view_reshape, call(kernels.copy, seen), to)


REPEAT: Row = linear(
    "repeat",
    _repeated,
    lambda g, shape, apart, spread, to: g.reshape(spread).sum_to_size(apart).reshape(shape),
    fused=lambda g, shape, apart, spread, to: call(
        kernels.view_reshape,
        call(kernels.sum_to, call(kernels.reshape, g, spread), apart),
        shape,
    ),
    doc="a copy in which new axes, and those of size 1, repeat what there is",
)


def _diagonal_put(x: Array, value: Array, offset: int) -> Array:
    out = call(kernels.copy, x)
    call(kernels.write, _diagonal(out, offset), value)
    return out


DIAGONAL_BLANK: Row = linear(
    "diagonal_blank",
    lambda x, offset: _diagonal_put(x, call(kernels.python_int, 0), offset),
    lambda g, offset: _apply(DIAGONAL_BLANK, g, offset),
    doc="the input with 0 on the diagonal of the last two axes",
)
DIAGONAL_PUT = custom(
    "diagonal_scatter",
    _diagonal_put,
    lambda g, offset: _apply(DIAGONAL_BLANK, g, offset),
    lambda g, offset: _apply(DIAGONAL, g, offset),
    jvp=(
        lambda t, offset: _apply(DIAGONAL_BLANK, t, offset),
        lambda t, shape, offset: _apply(DIAG_EMBED, t, shape, offset),
    ),
    doc="the input with the diagonal of the last two axes replaced",
)


def _blocks(*given: Any) -> Array:
    *parts, to, places = given
    out = _filled(parts[0], to, 0)
    for part, (start, size) in zip(parts, places, strict=True):
        call(kernels.write, _slice(out, start, (1, 1), size), part)
    return out


def _block(g: Any, i: int, to: Shape, places: tuple[tuple[Shape, Shape], ...]) -> Any:
    return _apply(SLICE, g, places[i][0], (1, 1), places[i][1])


BLOCKS = variadic(
    "block_diag",
    _blocks,
    _block,
    doc="matrices along the diagonal of one, with zeros around",
)
TRIANGLE: Row = linear(
    "triangle",
    kernels.triangle,
    lambda g, offset, lower: _apply(TRIANGLE, g, offset, lower),
    doc="the last two axes up to a diagonal, or from one on, and 0 elsewhere",
)


def _apply(row: Row, x: Any, *args: Any) -> Any:
    """The row on a tensor; the tensor knows how."""
    return x.apply_row(row, *args)
