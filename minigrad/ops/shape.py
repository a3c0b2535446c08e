"""Changes of shape, layout and dtype, all linear: views where possible, else copies."""

from __future__ import annotations

from typing import Any

from minigrad._c import Handle, call, lib, run, shape_of
from minigrad.ops.pointwise import ADD
from minigrad.ops.table import Row, custom, linear, variadic

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
    view=lib.MG_VIEW_OR_COPY,
)
VIEW = linear(
    "view",
    lambda x, to: call(lib.mg_view_reshape, x, len(to), to),
    lambda g, shape, to: g.reshape(shape),
    doc="the same elements in another shape, always a view",
    view=lib.MG_VIEW_RESHAPE,
)
PERMUTE = linear(
    "permute",
    lambda x, axes: call(lib.mg_view_permute, x, len(axes), axes),
    lambda g, axes: g.permute(_inverse(axes)),
    doc="the axes in another order; a view",
    view=lib.MG_VIEW_PERMUTE,
)
EXPAND = linear(
    "expand",
    lambda x, to: call(lib.mg_view_expand, x, len(to), to),
    lambda g, shape, to: g.sum_to_size(shape),
    doc="size-1 and new axes repeated without a copy",
    view=lib.MG_VIEW_EXPAND,
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


def _joined(kernel: Any) -> Any:
    """The forward of a row of any number of arrays, an axis, and what only its gradient needs."""

    def forward(*parts_axis_more: Any) -> Handle:
        *parts, axis, _ = parts_axis_more
        return call(kernel, len(parts), parts, axis)

    return forward


CAT = variadic(
    "cat",
    _joined(lib.mg_concatenate),
    lambda g, i, axis, bounds: g.narrow(axis, bounds[i], bounds[i + 1] - bounds[i]),
    doc="arrays side by side along an axis",
)
STACK = variadic(
    "stack",
    _joined(lib.mg_stack),
    lambda g, i, axis, count: g.select(axis, i),
    doc="arrays of one shape side by side along a new axis",
)


def _slice(x: Handle, start: Shape, step: Shape, count: Shape) -> Handle:
    return call(lib.mg_view_slice, x, start, step, count)


def _filled(like: Handle, to: Shape, value: float | int | bool) -> Handle:
    integer = 0 if isinstance(value, float) else int(value)
    return call(lib.mg_full, like.dtype, len(to), to, float(value), integer)


def _put(x: Handle, value: Handle, start: Shape, step: Shape, count: Shape) -> Handle:
    """x itself, with a slice of it written."""
    run(lib.mg_write, _slice(x, start, step, count), value)
    return x


SLICE = linear(
    "slice",
    _slice,
    lambda g, shape, start, step, count: _apply(EMBED, g, shape, start, step, count),
    doc="start, step and count on every axis; a view",
    view=lib.MG_VIEW_SLICE,
)
EMBED: Row = linear(
    "embed",
    lambda x, to, start, step, count: _put(_filled(x, to, 0), x, start, step, count),
    lambda g, to, start, step, count: _apply(SLICE, g, start, step, count),
    doc="zeros of a shape with the input written into a slice: the transpose of slice",
)
SLICE_VIEW = linear(
    "slice_view",
    lambda x, start, step, count, to: call(
        lib.mg_view_reshape, _slice(x, start, step, count), len(to), to
    ),
    lambda g, shape, start, step, count, to: _apply(
        EMBED, g.reshape(count), shape, start, step, count
    ),
    doc="a slice without the axes that an integer picked, or with new ones; a view",
    view=lib.MG_VIEW_SLICE_RESHAPE,
)
PAD = linear(
    "pad",
    lambda x, to, start, value: _put(_filled(x, to, value), x, start, (1,) * len(to), shape_of(x)),
    lambda g, shape, to, start, value: _apply(SLICE, g, start, (1,) * len(to), shape),
    doc="one value everywhere, but the input from a start on",
)
SLICE_BLANK: Row = linear(
    "slice_blank",
    lambda x, *at: _put(call(lib.mg_copy, x), call(lib.mg_weak_int, 0), *at),
    lambda g, start, step, count: _apply(SLICE_BLANK, g, start, step, count),
    doc="the input with 0 in a slice",
)
SLICE_PUT = custom(
    "slice_scatter",
    lambda x, value, *at: _put(call(lib.mg_copy, x), value, *at),
    lambda g, start, step, count: _apply(SLICE_BLANK, g, start, step, count),
    lambda g, start, step, count: _apply(SLICE, g, start, step, count),
    doc="the input with a slice of it replaced by another",
)


def _diagonal(x: Handle, offset: int) -> Handle:
    return call(lib.mg_view_diagonal, x, offset)


def _embed_diagonal(x: Handle, to: Shape, offset: int) -> Handle:
    out = _filled(x, to, 0)
    run(lib.mg_write, _diagonal(out, offset), x)
    return out


DIAGONAL = linear(
    "diagonal",
    _diagonal,
    lambda g, shape, offset: _apply(DIAG_EMBED, g, shape, offset),
    doc="the diagonal of the last two axes; a view",
    view=lib.MG_VIEW_OTHER,
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
    lambda x, axis, spans: call(lib.mg_spans, x, axis, len(spans) // 3, spans),
    lambda g, shape, axis, spans: _apply(SPANS_ADDED, g, axis, shape[axis], spans),
    fused=lambda g, shape, axis, spans: _spans_added(g, axis, shape[axis], spans),
    doc="parts of an axis side by side",
)


def _spans_added(g: Handle, axis: int, size: int, spans: Shape) -> Handle:
    return call(lib.mg_spans_added, ADD.id, g, axis, size, len(spans) // 3, spans)


SPANS_ADDED: Row = linear(
    "spans_added",
    _spans_added,
    lambda g, axis, size, spans: _apply(SPANS, g, axis, spans),
    doc="zeros with what lies side by side added to parts of an axis",
)


def _rolled(x: Handle, axis: int, n: int, shift: int) -> Handle:
    return call(lib.mg_spans, x, axis, 2, (n - shift, 1, shift, 0, 1, n - shift))


ROLL: Row = linear(
    "roll",
    _rolled,
    lambda g, axis, n, shift: _apply(ROLL, g, axis, n, n - shift),
    fused=lambda g, axis, n, shift: _rolled(g, axis, n, n - shift),
    doc="the elements moved on along an axis of n, the last ones to its start",
)


def _repeated(x: Handle, apart: Shape, spread: Shape, to: Shape) -> Handle:
    seen = call(lib.mg_view_expand, call(lib.mg_reshape, x, len(apart), apart), len(spread), spread)
    return call(lib.mg_view_reshape, call(lib.mg_copy, seen), len(to), to)


REPEAT: Row = linear(
    "repeat",
    _repeated,
    lambda g, shape, apart, spread, to: g.reshape(spread).sum_to_size(apart).reshape(shape),
    fused=lambda g, shape, apart, spread, to: call(
        lib.mg_view_reshape,
        call(lib.mg_sum_to, call(lib.mg_reshape, g, len(spread), spread), len(apart), apart),
        len(shape),
        shape,
    ),
    doc="a copy in which new axes, and those of size 1, repeat what there is",
)


def _diagonal_put(x: Handle, value: Handle, offset: int) -> Handle:
    out = call(lib.mg_copy, x)
    run(lib.mg_write, _diagonal(out, offset), value)
    return out


DIAGONAL_BLANK: Row = linear(
    "diagonal_blank",
    lambda x, offset: _diagonal_put(x, call(lib.mg_weak_int, 0), offset),
    lambda g, offset: _apply(DIAGONAL_BLANK, g, offset),
    doc="the input with 0 on the diagonal of the last two axes",
)
DIAGONAL_PUT = custom(
    "diagonal_scatter",
    _diagonal_put,
    lambda g, offset: _apply(DIAGONAL_BLANK, g, offset),
    lambda g, offset: _apply(DIAGONAL, g, offset),
    doc="the input with the diagonal of the last two axes replaced",
)


def _blocks(*given: Any) -> Handle:
    *parts, to, places = given
    out = _filled(parts[0], to, 0)
    for part, (start, size) in zip(parts, places, strict=True):
        run(lib.mg_write, _slice(out, start, (1, 1), size), part)
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
    lambda x, offset, lower: call(lib.mg_triangle, x, offset, lower),
    lambda g, offset, lower: _apply(TRIANGLE, g, offset, lower),
    doc="the last two axes up to a diagonal, or from one on, and 0 elsewhere",
)


def _apply(row: Row, x: Any, *args: Any) -> Any:
    """The row on a tensor; the tensor knows how."""
    return x.apply_row(row, *args)
