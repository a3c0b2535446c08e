"""Scatter functions, which return new tensors: write, add or combine values at indices.

They are the inverses of the gathers in ``selection``. At repeated indices the last value written
wins and gets the whole gradient. Values are added or combined in the order of the index.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from minigrad.functions.arguments import (
    common_shape,
    integer,
    listed_tensors,
    one_dim,
    renamed,
    tensor_operand,
)
from minigrad.functions.creation import ones_like
from minigrad.functions.elementwise import div
from minigrad.functions.selection import (
    Places,
    along,
    checked_index,
    fitting,
    handles,
    index_operand,
    mask_operand,
    nonzero,
    replacing,
    row_handles,
)
from minigrad.functions.shaping import expand, narrow, ravel, reshape, widen
from minigrad.ops import indexing as _i
from minigrad.ops import shape as _s
from minigrad.ops.table import Row
from minigrad.runtime.dtypes import bool_, uint8
from minigrad.runtime.native import call, kernels
from minigrad.tape.apply import apply
from minigrad.tape.tensor_base import TensorBase

if TYPE_CHECKING:
    from minigrad._tensor import Tensor

__all__ = [
    "index_add",
    "index_copy",
    "index_fill",
    "index_put",
    "index_reduce",
    "masked_scatter",
    "put",
    "scatter",
    "scatter_add",
    "scatter_reduce",
    "select_scatter",
    "slice_scatter",
]


def _at(op: str, row: Row, x: Tensor, value: Tensor, places: Places, *args: Any) -> Tensor:
    """Apply a row of ops.indexing: x with values at the positions of the index arrays."""
    try:
        return apply(row, (x, value), (places, *args))
    except IndexError as error:
        raise renamed(op, error) from None


def _shaped_as(x: Tensor, line: Tensor) -> Tensor:
    """The result in the shape of x, if x is 0-d and was treated as a line of one element."""
    return line if x._h.ndim else reshape(line, ())


def _blanked(op: str, x: Tensor, places: Places) -> Tensor:
    try:
        return apply(_i.BLANK, (x,), (places,))
    except IndexError as error:
        raise renamed(op, error) from None


def _fitted(op: str, x: Tensor, value: Any, shape: tuple[int, ...]) -> Tensor:
    """``value`` in x's dtype, broadcast to the shape of the written elements."""
    found = fitting(op, x, value)
    try:
        return expand(found, shape)
    except ValueError:
        raise ValueError(
            f"[{op}] values of shape {found.shape} do not fit places of shape {shape}"
        ) from None


# ---- by index arrays -----------------------------------------------------------------------------


def index_put(
    input: Tensor, indices: Sequence[Any], values: Any, accumulate: bool = False
) -> Tensor:
    """A copy of the input after ``input[indices] = values``, or ``+=`` if ``accumulate``.

    ``indices`` are int64 tensors for the first dimensions, broadcast together. A bool tensor stands
    for the positions where it is true. ``values`` are broadcast to the positions, and cast to the
    input's dtype.

    >>> import minigrad as mg
    >>> mg.index_put(mg.zeros(3), [mg.tensor([0, 0, 1])], mg.tensor([1.0, 2.0, 3.0]))
    tensor([2., 3., 0.])
    """
    op = "index_put"
    x = widen(tensor_operand(op, input)) if accumulate else tensor_operand(op, input)
    arrays: list[Tensor] = []
    for item in listed_tensors(op, indices):
        is_mask = isinstance(item, TensorBase) and item.dtype in (bool_, uint8)  # as in x[item]
        arrays += nonzero(item, as_tuple=True) if is_mask else [index_operand(op, item)]
    if not 0 < len(arrays) <= x._h.ndim:
        raise IndexError(f"[{op}] {len(arrays)} indices for {x._h.ndim} dimensions")
    block = common_shape(op, *arrays)
    arrays = [expand(a, block) for a in arrays]
    source = _fitted(op, x, values, block + x.shape[len(arrays) :])
    return _at(
        op, _i.INDEX_ADD if accumulate else _i.INDEX_PUT, x, source, handles(arrays, x, source)
    )


def put(input: Tensor, index: Tensor, source: Any, accumulate: bool = False) -> Tensor:
    """A copy of the input with elements of ``source`` written, or added, at flat indices.

    The source has as many elements as the index, and the input's dtype. This is the inverse of
    :func:`minigrad.take`.

    Raises ValueError if the numbers of elements differ.

    >>> import minigrad as mg
    >>> mg.put(mg.zeros(2, 2), mg.tensor([1, 2]), mg.tensor([5.0, 7.0]))
    tensor([[0., 5.],
            [7., 0.]])
    """
    x, index = tensor_operand("put", input), index_operand("put", index)
    values = fitting("put", x, source)
    if values._h.size != index._h.size:
        raise ValueError(
            f"[put] the source has {values._h.size} elements for {index._h.size} places"
        )
    made = index_put(ravel(x), (ravel(index),), ravel(values), accumulate)
    return reshape(made, x.shape)


def masked_scatter(input: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """A copy of the input with the elements of ``source``, in order, where the mask is true.

    The input and the mask are broadcast together. Raises ValueError if the source has too few
    elements.
    """
    op = "masked_scatter"
    x, mask = tensor_operand(op, input), mask_operand(op, mask)
    found = fitting(op, x, source)
    shape: tuple[int, ...] = x.shape
    if mask.shape != shape:
        shape = common_shape(op, x, mask)
        x, mask = expand(x, shape), expand(mask, shape)
    flat = call(kernels.reshape, mask._h, (mask._h.size,))
    places = call(kernels.nonzero, flat)
    places = call(kernels.view_reshape, places, (places.size,))
    if found._h.size < places.size:
        raise ValueError(f"[{op}] the source has {found._h.size} elements for {places.size} places")
    (kept,) = handles((mask,), x, found)
    return apply(_i.MASKED_PUT, (x, found), (kept, places))


# ---- along a dimension, element by element -------------------------------------------------------


def _elements(
    op: str, x: Tensor, dim: int, index: Any, source: Any, row: Row | None = None
) -> tuple[Tensor, Tensor, Places]:
    """x, the values and the index arrays of a scatter. A 0-d x counts as a line of one element.

    A single value stays as it is if a row writes it: the kernel broadcasts it.
    """
    index = index_operand(op, index)
    axis = checked_index(op, x, dim, index)
    value = fitting(op, x, source)
    if not index._h.size:  # nothing to write, whatever the shapes
        x, index = (x if x._h.ndim else ravel(x)), reshape(index, (0,) * max(x._h.ndim, 1))
        return x, reshape(narrow(ravel(value), 0, 0, 0), index.shape), handles(along(index, axis))
    index_shape = index.shape
    if value._h.ndim and value.shape != index_shape:
        if value._h.ndim != index._h.ndim:
            raise ValueError(f"[{op}] {value._h.ndim} dimensions of src for {index._h.ndim} of x")
        for d, n in enumerate(index_shape):
            if n > value.shape[d]:
                raise ValueError(
                    f"[{op}] the index of shape {index_shape} is larger than src, of shape "
                    f"{value.shape}, in dim {d}"
                )
            if n < value.shape[d]:
                value = narrow(value, d, 0, n)
    if not x._h.ndim:
        x, index = ravel(x), ravel(index)
    one = row is _i.INDEX_PUT and not value._h.ndim and value._edge is None
    if value.shape != index.shape and not one:
        value = expand(value, index.shape)
    return x, value, handles(along(index, axis), x, value)


def scatter(
    input: Tensor,
    dim: int,
    index: Tensor,
    src: Any = None,
    reduce: str | None = None,
    *,
    value: Any = None,
) -> Tensor:
    """A copy of the input after ``input[index[i, j], j] = src[i, j]``, here for dim 0.

    This is the inverse of gather, for any number of dimensions.

    ``src`` is a tensor at least as large as the index, or one number, also given as ``value``. With
    ``reduce`` values are added ("add") or multiplied ("multiply").

    >>> import minigrad as mg
    >>> mg.scatter(mg.zeros(2, 2), 1, mg.tensor([[1], [0]]), 5.0)
    tensor([[0., 5.],
            [5., 0.]])
    """
    x = tensor_operand("scatter", input)
    source = src if value is None else value
    if source is None:
        raise TypeError("[scatter] needs src, a tensor, or value, a number")
    rows = {None: _i.INDEX_PUT, "add": _i.INDEX_ADD, "multiply": _i.SCATTER_PROD}
    if reduce not in rows:
        raise ValueError(f"[scatter] reduce is 'add', 'multiply' or None, not {reduce!r}")
    x = x if reduce is None else widen(x)
    row = rows[reduce]
    line, values, places = _elements("scatter", x, dim, index, source, row)
    return _shaped_as(x, _at("scatter", row, line, values, places))


def scatter_add(input: Tensor, dim: int, index: Tensor, src: Tensor) -> Tensor:
    """A copy of the input after ``input[index[i, j], j] += src[i, j]``, here for dim 0."""
    x = widen(tensor_operand("scatter_add", input))
    line, values, places = _elements("scatter_add", x, dim, index, src)
    return _shaped_as(x, _at("scatter_add", _i.INDEX_ADD, line, values, places))


def scatter_reduce(
    input: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    """A copy of the input where the values of ``src`` with the same index are combined.

    ``reduce`` is "sum", "prod", "mean", "amax" or "amin". The old element takes part if
    ``include_self`` is True. Elements without a value keep theirs. Ties of an extremum share its
    gradient evenly. The gradient of a product is computed without division.

    >>> import minigrad as mg
    >>> index, src = mg.tensor([0, 0, 1]), mg.tensor([1.0, 2.0, 3.0])
    >>> mg.scatter_reduce(mg.zeros(3), 0, index, src, "amax")
    tensor([2., 3., 0.])
    """
    x = widen(tensor_operand("scatter_reduce", input))
    line, values, places = _elements("scatter_reduce", x, dim, index, src)
    return _shaped_as(x, _reduced("scatter_reduce", line, values, places, reduce, include_self))


def _reduced(
    op: str, x: Tensor, values: Tensor, places: Places, reduce: str, include: bool
) -> Tensor:
    if reduce in ("amax", "amin"):
        row = _i.SCATTER_AMAX if reduce == "amax" else _i.SCATTER_AMIN
        return _at(op, row, x, values, places, bool(include))
    if reduce == "prod":
        start = x if include else _at(op, _i.INDEX_PUT, x, ones_like(values), places)
        return _at(op, _i.SCATTER_PROD, start, values, places)
    if reduce not in ("sum", "mean"):
        raise ValueError(f"[{op}] reduce is sum, prod, mean, amax or amin, not {reduce!r}")
    start = x if include else _blanked(op, x, places)
    total = _at(op, _i.INDEX_ADD, start, values, places)
    if reduce == "sum":
        return total
    count = ones_like(x) if include else _blanked(op, ones_like(x), places)
    count = _at(op, _i.INDEX_ADD, count, ones_like(values), places)
    return div(total, count, rounding_mode=None if x.dtype.is_floating_point else "floor")


# ---- along a dimension, entry by entry -----------------------------------------------------------


def _entries(
    op: str, x: Tensor, dim: int, index: Any, source: Any
) -> tuple[Tensor, Tensor, Places]:
    """:func:`_elements` for a one-dimensional index of whole entries along ``dim``."""
    index = index_operand(op, index)
    axis = one_dim(op, dim, max(x._h.ndim, 1))
    line = x if x._h.ndim else reshape(x, (1,))
    count = index._h.size
    shape = (*line.shape[:axis], count, *line.shape[axis + 1 :])
    value = fitting(op, x, source)
    places = row_handles(op, line, axis, index, line, value)
    if value._h.ndim and value.shape != shape:
        raise ValueError(
            f"[{op}] the source has shape {value.shape}, but {count} entries along dim {axis} of "
            f"{x.shape} have shape {shape}"
        )
    return line, value if value.shape == shape else expand(value, shape), places


def index_add(input: Tensor, dim: int, index: Tensor, source: Tensor, *, alpha: Any = 1) -> Tensor:
    """A copy of the input with ``alpha * source`` added to entries along ``dim`` at the index."""
    x = widen(tensor_operand("index_add", input))
    line, values, places = _entries("index_add", x, dim, index, source)
    scaled = values if alpha == 1 else fitting("index_add", x, values * alpha)
    return _shaped_as(x, _at("index_add", _i.INDEX_ADD, line, scaled, places))


def index_copy(input: Tensor, dim: int, index: Tensor, source: Tensor) -> Tensor:
    """A copy of the input with the entries along ``dim`` in the index replaced by ``source``."""
    x = tensor_operand("index_copy", input)
    line, values, places = _entries("index_copy", x, dim, index, source)
    return _shaped_as(x, _at("index_copy", _i.INDEX_PUT, line, values, places))


def index_fill(input: Tensor, dim: int, index: Tensor, value: Any) -> Tensor:
    """A copy of the input with the entries along ``dim`` in the index filled with ``value``.

    ``value`` is a number or a 0-d tensor.
    """
    x = tensor_operand("index_fill", input)
    if isinstance(value, TensorBase) and value._h.ndim:
        raise ValueError(f"[index_fill] the value has shape {value.shape}, but must be one number")
    if isinstance(value, TensorBase) and value._edge is not None:
        line, values, places = _entries("index_fill", x, dim, index, value)
    else:  # the kernel broadcasts it
        values, index = fitting("index_fill", x, value), index_operand("index_fill", index)
        axis = one_dim("index_fill", dim, max(x._h.ndim, 1))
        line = x if x._h.ndim else reshape(x, (1,))
        places = row_handles("index_fill", line, axis, index, line)
    return _shaped_as(x, _at("index_fill", _i.INDEX_PUT, line, values, places))


def index_reduce(
    input: Tensor,
    dim: int,
    index: Tensor,
    source: Tensor,
    reduce: str,
    *,
    include_self: bool = True,
) -> Tensor:
    """scatter_reduce for whole entries along ``dim``: "prod", "mean", "amax" or "amin"."""
    x = widen(tensor_operand("index_reduce", input))
    line, values, places = _entries("index_reduce", x, dim, index, source)
    return _shaped_as(x, _reduced("index_reduce", line, values, places, reduce, include_self))


# ---- into what would be a view -------------------------------------------------------------------


def slice_scatter(
    input: Tensor,
    src: Tensor,
    dim: int = 0,
    start: int | None = None,
    end: int | None = None,
    step: int = 1,
) -> Tensor:
    """A copy of ``input`` with ``input[start:end:step]`` along a dimension replaced by ``src``."""
    op = "slice_scatter"
    x = tensor_operand(op, input)
    axis = one_dim(op, dim, x._h.ndim)
    step = integer(op, "step", step, 1)
    shape = x.shape
    first, last, by = slice(start, end, step).indices(shape[axis])
    count = len(range(first, last, by))
    to_write = (*shape[:axis], count, *shape[axis + 1 :])
    value = replacing(op, x, src, to_write)
    begin = tuple([first if d == axis and count else 0 for d in range(len(shape))])
    steps = tuple([by if d == axis and count > 1 else 1 for d in range(len(shape))])
    return apply(_s.SLICE_PUT, (x, value), (begin, steps, to_write))


def select_scatter(input: Tensor, src: Tensor, dim: int, index: int) -> Tensor:
    """A copy of ``input`` with entry ``index`` along a dimension replaced by ``src``."""
    op = "select_scatter"
    x = tensor_operand(op, input)
    axis = one_dim(op, dim, x._h.ndim)
    size, at = x.shape[axis], integer(op, "index", index)
    if not -size <= at < size:
        raise IndexError(f"[{op}] index {at} is out of range for dim {axis} of size {size}")
    at %= size
    shape, others = x.shape, x._h.ndim - axis - 1
    value = replacing(op, x, src, (*shape[:axis], *shape[axis + 1 :]))
    where = (
        (*(0,) * axis, at, *(0,) * others),
        (1,) * len(shape),
        (*shape[:axis], 1, *shape[axis + 1 :]),
    )
    return apply(_s.SLICE_PUT, (x, reshape(value, where[2])), where)
