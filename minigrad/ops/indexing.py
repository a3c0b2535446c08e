"""Gather by integer arrays, and scatter: writing, adding and combining at indices.

``index`` is a tuple of int64 handles of one shape, on the first axes. The Tensor layer brings every
NumPy index form to this one by views. None in place of one of the handles stands for the position
on that axis of the others. An index picks a *row*: the axes that are left.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

from minigrad.ops.table import Row, custom, linear
from minigrad.runtime.native import Array, call, kernels, lib

T = Any  # a Tensor; this layer stands below it
Index = tuple[Array | None, ...]
Shape = tuple[int, ...]


def _apply(row: Row, x: T, *args: Any, beside: tuple[T, ...] = ()) -> T:
    return x.apply_row(row, *args, beside=beside)


def _written(x: Array, index: Index, value: Array) -> Array:
    """x itself, written into."""
    call(kernels.scatter_write, x, index, value)
    return x


def _count(n: int) -> Array:
    """0, 1, ... n - 1."""
    return call(kernels.arange, lib.MG_INT64, 0.0, 0.0, 0, 1, n)


def _first(index: Index) -> Array:
    """One that is an array; all have its shape."""
    return next(array for array in index if array is not None)


def _explicit(index: Index) -> tuple[Array, ...]:
    """The index with arrays for positions."""
    shape = _first(index).shape
    arrays = []
    for d, array in enumerate(index):
        if array is None:
            line = (shape[d],) + (1,) * (len(shape) - d - 1)
            array = call(kernels.reshape, _count(shape[d]), line)
            array = call(kernels.view_expand, array, shape)
        arrays.append(array)
    return tuple(arrays)


def _shaped_as(like: Array, x: Array) -> Array:
    return call(kernels.reshape, x, like.shape)


def _gather(x: Array, index: Index) -> Array:
    return call(kernels.gather, x, index)


def _scatter_add(g: Array, to: Shape, index: Index) -> Array:
    return call(kernels.scatter_add, to, index, g)


# ---- sums ----------------------------------------------------------------------------------------

GATHER = linear(
    "index",
    _gather,
    lambda g, shape, index: _apply(SCATTER_ADD, g, shape, index),
    fused=_scatter_add,
    doc="x[i0, i1, ...] with equal-shaped integer arrays on the first axes",
)
SCATTER_ADD: Row = linear(
    "index_put_zeros",
    _scatter_add,
    lambda g, to, index: _apply(GATHER, g, index),
    doc="zeros(to)[i0, i1, ...] += x, repeated indices added in order",
)


def _combined(op: int, x: Array, value: Array, index: Index) -> Array:
    return call(kernels.scatter_reduce, op, x, index, value)


INDEX_ADD = custom(
    "index_add",
    lambda x, value, index: _combined(lib.MG_SUM, x, value, index),
    lambda g, index: g,
    lambda g, index: _apply(GATHER, g, index),
    jvp=(
        lambda t, index: t,
        lambda t, shape, index: _apply(SCATTER_ADD, t, shape, index),
    ),
    doc="x with [i0, i1, ...] += value, repeated indices added in order",
)

PICK = linear(
    "pick",
    lambda x, index, to: call(kernels.view_reshape, _gather(x, index), to),
    lambda g, shape, index, to: _apply(SCATTER_ADD, g.reshape(_first(index).shape), shape, index),
    fused=lambda g, shape, index, to: _scatter_add(_shaped_as(_first(index), g), shape, index),
    doc="what an index picks, in another shape",
)


def _merged(shape: Shape, axes: int) -> Shape:
    """A shape with its first axes as one."""
    return (prod(shape[:axes]), *shape[axes:])


def _masked(x: Array, axes: int, places: Array) -> Array:
    line = _merged(x.shape, axes)
    return _gather(call(kernels.view_reshape, x, line), (places,))


def _unmasked(g: Array, shape: Shape, axes: int, places: Array) -> Array:
    made = _scatter_add(g, _merged(shape, axes), (places,))
    return call(kernels.view_reshape, made, shape)


MASKED: Row = linear(
    "masked",
    _masked,
    lambda g, shape, axes, places: _apply(SCATTER_ADD, g, _merged(shape, axes), (places,)).reshape(
        shape
    ),
    fused=_unmasked,
    jvp=lambda t, axes, places: _apply(MASKED, t.contiguous(), axes, places),
    doc="what of a contiguous array is at some places of its first axes, counted through these",
)

# ---- weighted sums along an axis ----------------------------------------------------------------

# Positions on the axis and their weights, one array of each for every term of the sums. Without
# weights there is one term.
Terms = tuple[tuple[Array, ...], tuple[Array, ...]]


def _resampled(x: Array, axis: int, terms: Terms) -> Array:
    places, weights = terms
    if weights:
        return call(kernels.resample, x, axis, places, weights)
    return _gather(x, _rows(x.shape[:axis], places[0]))


def _resampled_back(g: Array, to: Shape, axis: int, terms: Terms) -> Array:
    places, weights = terms
    if weights:
        return call(kernels.resample_vjp, g, axis, to[axis], places, weights)
    return _scatter_add(g, to, _rows(to[:axis], places[0]))


def _rows(before: Shape, places: Array) -> Index:
    """Places on an axis, at all positions on the axes before it."""
    shape = (*before, places.size)
    return (*(None,) * len(before), call(kernels.view_expand, places, shape))


RESAMPLE = linear(
    "resample",
    _resampled,
    lambda g, shape, axis, terms: _apply(RESAMPLE_TRANSPOSE, g, shape, axis, terms),
    fused=_resampled_back,
    doc="weighted sums of elements of an axis, at positions given for each result",
)
RESAMPLE_TRANSPOSE: Row = linear(
    "resample_transpose",
    _resampled_back,
    lambda g, to, axis, terms: _apply(RESAMPLE, g, axis, terms),
    doc="zeros of a shape with x added at the positions of resample: its transpose",
)

# ---- writes: of repeated indices the last one wins -----------------------------------------------


GATHER_LAST: Row = linear(
    "index_last",
    kernels.gather_last,
    lambda g, shape, index: _apply(SCATTER_LAST, g, shape, index),
    doc="x[i0, i1, ...], but 0 where a later position has the same indices",
)
SCATTER_LAST: Row = linear(
    "index_put_last",
    lambda g, to, index: _written(call(kernels.full, g.dtype, to, 0.0, 0), index, g),
    lambda g, to, index: _apply(GATHER_LAST, g, index),
    doc="zeros(to)[i0, i1, ...] = x, the last of repeated indices wins",
)
BLANK: Row = linear(
    "index_blank",
    lambda x, index: _written(call(kernels.copy, x), index, call(kernels.python_int, 0)),
    lambda g, index: _apply(BLANK, g, index),
    doc="x with 0 at [i0, i1, ...]",
)
INDEX_PUT = custom(
    "index_put",
    lambda x, value, index: _written(call(kernels.copy, x), index, value),
    lambda g, index: _apply(BLANK, g, index),
    lambda g, index: _apply(GATHER_LAST, g, index),
    jvp=(
        lambda t, index: _apply(BLANK, t, index),
        lambda t, shape, index: _apply(SCATTER_LAST, t, shape, index),
    ),
    doc="x with [i0, i1, ...] = value, the last of repeated indices wins",
)


def _line(x: Array) -> Array:
    return call(kernels.reshape, x, (x.size,))


def _masked_put(x: Array, value: Array, mask: Array, places: Array) -> Array:
    out = call(kernels.copy, x)
    first = call(kernels.view_slice, _line(value), (0,), (1,), (places.size,))
    _written(_line(out), (places,), first)
    return out


def _masked_taken(g: Array, to: Shape, places: Array) -> Array:
    """The first elements of zeros: those of g at the places."""
    out = call(kernels.full, g.dtype, to, 0.0, 0)
    first = call(kernels.view_slice, _line(out), (0,), (1,), (places.size,))
    call(kernels.write, first, _gather(_line(g), (places,)))
    return out


def _masked_spread(g: Array, to: Shape, places: Array) -> Array:
    """Its transpose."""
    out = call(kernels.full, g.dtype, to, 0.0, 0)
    first = call(kernels.view_slice, _line(g), (0,), (1,), (places.size,))
    _written(_line(out), (places,), first)
    return out


MASK_BLANK: Row = linear(
    "mask_blank",
    lambda x, mask: call(kernels.where, mask, call(kernels.python_int, 0), x),
    lambda g, mask: _apply(MASK_BLANK, g, mask),
    doc="the input with 0 where a mask is true",
)
MASK_TAKEN: Row = linear(
    "mask_taken",
    _masked_taken,
    lambda g, shape, to, places: _apply(MASK_SPREAD, g, shape, places),
    doc="zeros of a shape that begin with what is at some places",
)
MASK_SPREAD: Row = linear(
    "mask_spread",
    _masked_spread,
    lambda g, shape, to, places: _apply(MASK_TAKEN, g, shape, places),
    doc="zeros of a shape with the first elements of the input at some places",
)
MASKED_PUT = custom(
    "masked_scatter",
    _masked_put,
    lambda g, mask, places: _apply(MASK_BLANK, g, mask),
    lambda g, b, mask, places: _apply(MASK_TAKEN, g, b.shape, places),
    jvp=(
        lambda t, mask, places: _apply(MASK_BLANK, t, mask),
        lambda t, shape, mask, places: _apply(MASK_SPREAD, t, shape, places),
    ),
    doc="x with the first elements of a value where a mask is true, in order",
)

# ---- products and extrema ------------------------------------------------------------------------


def _before(value: T, to: Shape, index: tuple[Array, ...]) -> T:
    """For each row of ``value``, the product of all that came before it at the same place.

    Each row is multiplied with the one before it at its place, then with what that one gathered,
    and so on: log2 steps, as many as a place has rows, and no division. The last row is a 1, which
    stands for "none before".
    """
    n = index[0].size
    to = to[: len(index)]
    previous = call(kernels.index_previous, to, index)
    previous = call(kernels.reshape, previous, (n,))
    end = call(kernels.full, lib.MG_INT64, (1,), 0.0, n)
    jump = call(kernels.concatenate, (previous, end), 0)
    gathered = value.cat_with(_ones(value[:1]), 0)
    while _smallest(jump) < n:
        gathered = gathered * _apply(GATHER, gathered, (jump,))
        jump = _gather(jump, (jump,))
    return _apply(GATHER, gathered, (previous,))


def _ones(x: T) -> T:
    x = x.detach()
    return ((x == x) | (x != x)).to(x.dtype)


def _smallest(x: Array) -> int:
    return call(kernels.amin, x, None, False).item()


def _backwards(index: tuple[Array, ...]) -> tuple[Array, ...]:
    """The index arrays, flat, from their last position to the first."""
    flat = []
    for array in index:
        n = array.size
        line = call(kernels.reshape, array, (n,))
        flat.append(call(kernels.view_slice, line, (max(n - 1, 0),), (-1,), (n,)))
    return tuple(flat)


def _prod_by_x(g: T, a: T, b: T, index: Index) -> T:
    return g.scale(_apply(SCATTER_PROD, _ones(a), index, beside=(b,)))


def _prod_by_value(g: T, a: T, b: T, index: Index) -> T:
    """x and all other rows at the place: those before times those after."""
    picked = _apply(GATHER, g.scale(a), index)
    if not b.size:
        return picked
    arrays = _explicit(index)
    rows = b.reshape((arrays[0].size, *b.shape[arrays[0].ndim :]))
    before = _before(rows, a.shape, arrays)
    after = _before(rows.flip(0), a.shape, _backwards(arrays)).flip(0)
    return picked.scale((before * after).reshape(b.shape))


SCATTER_PROD: Row = custom(
    "scatter_prod",
    lambda x, value, index: _combined(lib.MG_PROD, x, value, index),
    _prod_by_x,
    _prod_by_value,
    doc="x with [i0, i1, ...] *= value, repeated indices in order",
)


def _same(a: T, b: T) -> T:
    return ((a == b) | ((a != a) & (b != b))).to(a.dtype)


def _hits(a: T, b: T, y: T, index: Index, include: bool) -> tuple[T, T, T]:
    """1 where x and where value hold the extremum, and how many hold it, place by place."""
    a, b, y = a.detach(), b.detach(), y.detach()
    by_value = _same(b, _apply(GATHER, y, index))
    by_x = _same(a, y) if include else _apply(BLANK, _same(a, y), index)
    return by_x, by_value, by_x + _apply(SCATTER_ADD, by_value, y.shape, index)


def _extremum_by_x(g: T, a: T, b: T, y: T, index: Index, include: bool) -> T:
    by_x, _, count = _hits(a, b, y, index, include)
    return (by_x / count).scale(g)


def _extremum_by_value(g: T, a: T, b: T, y: T, index: Index, include: bool) -> T:
    _, by_value, count = _hits(a, b, y, index, include)
    return by_value.scale(_apply(GATHER, g / count, index))


def _extremum(op: int) -> Callable[[Array, Array, Index, bool], Array]:
    def forward(x: Array, value: Array, index: Index, include: bool) -> Array:
        # Without x, any of the values at a place is a start.
        start = x if include else _written(call(kernels.copy, x), index, value)
        return _combined(op, start, value, index)

    return forward


SCATTER_AMAX, SCATTER_AMIN = (
    custom(
        name,
        _extremum(op),
        _extremum_by_x,
        _extremum_by_value,
        doc=f"x with the {what} of x and value at [i0, i1, ...]; ties share the gradient",
    )
    for name, op, what in (
        ("scatter_amax", lib.MG_MAX, "maximum"),
        ("scatter_amin", lib.MG_MIN, "minimum"),
    )
)
