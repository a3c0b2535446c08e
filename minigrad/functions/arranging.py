"""Joining, splitting, flipping and tiling, as functions made of views and ``cat``."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from minigrad.functions.arguments import (
    integer,
    listed,
    listed_tensors,
    named_dim,
    one_dim,
    piece_count,
    renamed,
    row_of_numbers,
    several,
    size_of,
    some_dims,
    tensor_operand,
    tensor_operands,
)
from minigrad.functions.creation import arange, tensor, zeros
from minigrad.functions.selection import gather_rows, index_operand, index_select
from minigrad.functions.shaping import (
    cat,
    clone,
    expand,
    narrow,
    pieces,
    ravel,
    reshape,
    stack,
    transpose,
    unsqueeze,
)
from minigrad.ops import shape as _s
from minigrad.runtime.dtypes import int64
from minigrad.runtime.native import call, kernels
from minigrad.tape.apply import apply
from minigrad.tape.tensor_base import TensorBase, wrap

if TYPE_CHECKING:
    from minigrad._tensor import Tensor

    Shape = tuple[int, ...]

__all__ = [
    "atleast_1d",
    "atleast_2d",
    "atleast_3d",
    "cartesian_prod",
    "chunk",
    "column_stack",
    "combinations",
    "dsplit",
    "dstack",
    "flip",
    "fliplr",
    "flipud",
    "hsplit",
    "hstack",
    "meshgrid",
    "repeat",
    "repeat_interleave",
    "roll",
    "rot90",
    "row_stack",
    "split",
    "split_with_sizes",
    "tensor_split",
    "tile",
    "vsplit",
    "vstack",
]

# ---- at least so many dimensions -----------------------------------------------------------------


def _at_least(op: str, ndim: int, tensors: Sequence[Any]) -> Any:
    """Add dimensions where NumPy does. The result is one tensor, or a tuple for several."""
    made = []
    for x in several(op, tensors):
        if x._h.ndim == 0:
            x = reshape(x, (1,))
        if x._h.ndim == 1 and ndim > 1:
            x = unsqueeze(x, 0)
        if x._h.ndim == 2 and ndim > 2:
            x = unsqueeze(x, 2)
        made.append(x)
    is_one = len(tensors) == 1 and not isinstance(tensors[0], (tuple, list))
    return made[0] if is_one else tuple(made)


def atleast_1d(*tensors: Any) -> Any:
    """A tensor with at least 1 dimension: a 0-d tensor becomes (1,).

    A tuple for several tensors.
    """
    return _at_least("atleast_1d", 1, tensors)


def atleast_2d(*tensors: Any) -> Any:
    """A tensor with at least 2 dimensions: (n,) becomes (1, n), 0-d (1, 1). A tuple for several."""
    return _at_least("atleast_2d", 2, tensors)


def atleast_3d(*tensors: Any) -> Any:
    """A tensor with at least 3 dimensions: (n,) becomes (1, n, 1), (m, n) becomes (m, n, 1).

    A 0-d tensor becomes (1, 1, 1). The result is a tuple for several tensors.
    """
    return _at_least("atleast_3d", 3, tensors)


# ---- joining -------------------------------------------------------------------------------------


def hstack(tensors: Sequence[Any]) -> Tensor:
    """Concatenate along the second dimension, or vectors along their only dimension."""
    parts = atleast_1d(listed_tensors("hstack", tensors))
    return cat(parts, 0 if parts and parts[0]._h.ndim == 1 else 1)


def vstack(tensors: Sequence[Any]) -> Tensor:
    """Concatenate along the first dimension. A vector counts as one row."""
    return cat(atleast_2d(listed_tensors("vstack", tensors)), 0)


def row_stack(tensors: Sequence[Any]) -> Tensor:
    """Another name of vstack."""
    return vstack(tensors)


def dstack(tensors: Sequence[Any]) -> Tensor:
    """Concatenate along the third dimension, after :func:`atleast_3d`."""
    return cat(atleast_3d(listed_tensors("dstack", tensors)), 2)


def column_stack(tensors: Sequence[Any]) -> Tensor:
    """Concatenate along the second dimension. A vector counts as one column."""
    parts = tensor_operands("column_stack", *listed_tensors("column_stack", tensors))
    return hstack([reshape(x, (x.size, 1)) if x._h.ndim < 2 else x for x in parts])


def meshgrid(*tensors: Any, indexing: str = "ij") -> tuple[Tensor, ...]:
    """Grids of coordinates, as views: the i-th tensor varies along dimension i.

    ``indexing="xy"`` swaps the first two dimensions, as in a plot.

    >>> import minigrad as mg
    >>> a, b = mg.meshgrid(mg.tensor([1, 2]), mg.tensor([3, 4, 5]))
    >>> a
    tensor([[1, 1, 1],
            [2, 2, 2]])
    """
    if indexing not in ("ij", "xy"):
        raise ValueError(f"[meshgrid] indexing is 'ij' or 'xy', not {indexing!r}")
    given = several("meshgrid", tensors)
    for x in given:
        if x._h.ndim > 1:
            raise ValueError(f"[meshgrid] expected vectors, but one has shape {x.shape}")
    shape = tuple([x.size for x in given])
    ones = (1,) * len(shape)
    grids = [
        expand(reshape(x, (*ones[:d], x.size, *ones[d + 1 :])), shape) for d, x in enumerate(given)
    ]
    swapped = indexing == "xy" and len(given) > 1
    return tuple([transpose(x, 0, 1) if swapped else x for x in grids])


def cartesian_prod(*tensors: Any) -> Tensor:
    """All combinations of one element from each vector, as rows. One vector is returned as is."""
    given = several("cartesian_prod", tensors)
    if len(given) == 1:
        return given[0]
    for x in given:
        if x._h.ndim > 1:
            raise ValueError(f"[cartesian_prod] expected vectors, but one has shape {x.shape}")
    sizes, columns = [x._h.size for x in given], []
    for d, x in enumerate(given):
        spread = math.prod(sizes[:d]), sizes[d], math.prod(sizes[d + 1 :])
        columns.append(_spread("cartesian_prod", x, (1, sizes[d], 1), spread, (math.prod(sizes),)))
    return stack(columns, 1)


def combinations(
    input: Tensor,
    r: int = 2,
    with_replacement: bool = False,
) -> Tensor:
    """All combinations of r elements of a vector in their order, as rows.

    An element occurs at most once, or repeatedly if ``with_replacement`` is True.

    Raises ValueError unless the input is a vector, and for a negative r.

    >>> import minigrad as mg
    >>> mg.combinations(mg.tensor([1, 2, 3]))
    tensor([[1, 2],
            [1, 3],
            [2, 3]])
    """
    x, count = tensor_operand("combinations", input), integer("combinations", "r", r, 0)
    if x._h.ndim != 1:
        raise ValueError(f"[combinations] expected a vector, but the shape is {x.shape}")
    if not count:
        return narrow(x, 0, 0, 0)
    of = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    rows = list(of(range(x._h.size), count))
    picked = tensor(rows, int64) if rows else zeros(0, count, dtype=int64)
    return gather_rows(x, (picked,))


# ---- cutting -------------------------------------------------------------------------------------


def split(
    tensor: Tensor, split_size_or_sections: Any, dim: int = 0, **numpy: Any
) -> tuple[Tensor, ...]:
    """Pieces as views: of one size (the last may be shorter), or of the sizes in a list."""
    x = tensor_operand("split", tensor)
    axis = one_dim("split", named_dim("split", dim, numpy) if numpy else dim, x._h.ndim)
    total = x.shape[axis]
    if isinstance(split_size_or_sections, (tuple, list)):
        sizes = [integer("split", "a size", n) for n in split_size_or_sections]
        if sum(sizes) != total or min(sizes, default=0) < 0:
            raise ValueError(f"[split] the sizes {sizes} add up to {sum(sizes)}, not to {total}")
        return pieces(x, axis, tuple(itertools.accumulate(sizes, initial=0)))
    step = integer("split", "the size of a piece", split_size_or_sections)
    if step < 1 and (step < 0 or total):
        raise ValueError(f"[split] the size of a piece is {step}, but must be at least 1")
    piece_count("split", -(-total // (step or 1)))
    return pieces(x, axis, (*range(0, total or 1, step or 1), total))


def split_with_sizes(input: Tensor, split_sizes: Sequence[int], dim: int = 0) -> tuple[Tensor, ...]:
    """Pieces of the given sizes, as views."""
    if not isinstance(split_sizes, (tuple, list)):
        raise TypeError(
            f"[split_with_sizes] split_sizes is a list of sizes, not {type(split_sizes).__name__}"
        )
    return split(input, split_sizes, dim)


def chunk(input: Tensor, chunks: int, dim: int = 0, **numpy: Any) -> tuple[Tensor, ...]:
    """At most ``chunks`` pieces of one size, as views. The last may be shorter.

    There may be fewer pieces: 5 elements in 4 chunks give 2, 2 and 1. See tensor_split.
    """
    x = tensor_operand("chunk", input)
    axis = one_dim("chunk", named_dim("chunk", dim, numpy) if numpy else dim, x._h.ndim)
    count = integer("chunk", "chunks", chunks, 1)
    total = x.shape[axis]
    piece_count("chunk", min(count, total) or count)
    step = -(-total // count)
    return pieces(x, axis, (*range(0, total, step), total) if total else (0,) * (count + 1))


def tensor_split(
    input: Tensor, indices_or_sections: Any, dim: int = 0, **numpy: Any
) -> tuple[Tensor, ...]:
    """Exactly so many pieces, or pieces that begin at each index, as views.

    The first pieces are larger by one if the size is not divisible.

    As in NumPy's array_split, indices beyond the end give empty pieces. Negative indices count from
    the end.

    >>> import minigrad as mg
    >>> [p.tolist() for p in mg.tensor_split(mg.arange(5), 3)]
    [[0, 1], [2, 3], [4]]
    """
    x = tensor_operand("tensor_split", input)
    axis = one_dim("tensor_split", named_dim("tensor_split", dim, numpy), x._h.ndim)
    return _tensor_split("tensor_split", x, indices_or_sections, axis)


def _tensor_split(op: str, x: Tensor, sections: Any, axis: int) -> tuple[Tensor, ...]:
    total = x.shape[axis]
    if isinstance(sections, TensorBase):
        sections = sections.tolist()  # type: ignore[attr-defined]
    if not isinstance(sections, (tuple, list)):
        count = piece_count(op, integer(op, "the number of pieces", sections, 1))
        size, larger = divmod(total, count)
        return pieces(x, axis, tuple([i * size + min(i, larger) for i in range(count + 1)]))
    bounds = [
        0,
        *[slice(integer(op, "an index", n), None).indices(total)[0] for n in sections],
        total,
    ]
    return pieces(x, axis, tuple(bounds))


def _split_at(op: str, x: Any, sections: Any, axis: int, least: int) -> tuple[Tensor, ...]:
    x = tensor_operand(op, x)
    if x._h.ndim < least:
        raise ValueError(f"[{op}] expected at least {least} dimensions, not {x._h.ndim}")
    if not isinstance(sections, (tuple, list, TensorBase)):
        count = integer(op, "the number of pieces", sections)
        if count < 1 or x.shape[axis] % count:
            raise ValueError(
                f"[{op}] size {x.shape[axis]} does not split into {count} equal pieces"
            )
    return _tensor_split(op, x, sections, axis)


def hsplit(input: Tensor, indices_or_sections: Any) -> tuple[Tensor, ...]:
    """tensor_split into equal pieces along the second dimension, or the first of a vector."""
    axis = 0 if tensor_operand("hsplit", input)._h.ndim == 1 else 1
    return _split_at("hsplit", input, indices_or_sections, axis, 1)


def vsplit(input: Tensor, indices_or_sections: Any) -> tuple[Tensor, ...]:
    """tensor_split into equal pieces along the first of at least two dimensions."""
    return _split_at("vsplit", input, indices_or_sections, 0, 2)


def dsplit(input: Tensor, indices_or_sections: Any) -> tuple[Tensor, ...]:
    """tensor_split into equal pieces along the third dimension."""
    return _split_at("dsplit", input, indices_or_sections, 2, 3)


# ---- turning -------------------------------------------------------------------------------------


def flip(input: Tensor, *dims: Any, **named: Any) -> Tensor:
    """A view with the elements in reverse order along the given dimensions.

    As in NumPy, all dimensions are reversed if none is given.
    """
    x = tensor_operand("flip", input)
    given = listed("flip", dims, named, "dims", "axis") if named else dims
    if len(given) == 1 and (isinstance(given[0], (tuple, list)) or row_of_numbers(given[0])):
        given = tuple(given[0])
    elif not given:
        given = tuple(range(x._h.ndim))
    shape = x.shape
    start, step = [0] * len(shape), [1] * len(shape)
    for d in some_dims("flip", given, len(shape)):
        start[d], step[d] = max(shape[d] - 1, 0), -1
    return apply(_s.SLICE, (x,), (tuple(start), tuple(step), shape))


def fliplr(input: Tensor) -> Tensor:
    """A view with the columns, the second dimension, in reverse order."""
    x = tensor_operand("fliplr", input)
    if x._h.ndim < 2:
        raise ValueError(f"[fliplr] expected at least 2 dimensions, not {x._h.ndim}")
    return flip(x, 1)


def flipud(input: Tensor) -> Tensor:
    """A view with the rows, the first dimension, in reverse order."""
    x = tensor_operand("flipud", input)
    if x._h.ndim < 1:
        raise ValueError("[flipud] expected at least 1 dimension, not 0")
    return flip(x, 0)


def rot90(input: Tensor, k: int = 1, dims: Sequence[int] = (0, 1)) -> Tensor:
    """A view rotated by k quarter turns in the plane of two dims, from the first to the second."""
    x = tensor_operand("rot90", input)
    if not isinstance(dims, (tuple, list)) or len(dims) != 2:
        raise ValueError(f"[rot90] dims are two dimensions, not {dims}")
    a, b = (one_dim("rot90", d, x._h.ndim) for d in dims)
    if a == b:
        raise ValueError(f"[rot90] dim {a} is given twice in {tuple(dims)}")
    quarters = integer("rot90", "k", k) % 4
    if quarters == 2:
        return flip(x, a, b)
    turned = flip(x, b) if quarters == 1 else x
    turned = transpose(turned, a, b) if quarters else flip(x, ())
    return flip(turned, b) if quarters == 3 else turned


def roll(input: Tensor, shifts: Any, dims: Any = None, **numpy: Any) -> Tensor:
    """The elements shifted by ``shifts``. Elements shifted past the end reappear at the start.

    Each given dimension has its own shift. Without dimensions all elements are shifted in row-major
    order.

    >>> import minigrad as mg
    >>> mg.roll(mg.arange(5), 2)
    tensor([3, 4, 0, 1, 2])
    """
    x = tensor_operand("roll", input)
    dims = named_dim("roll", dims, numpy)
    steps = shifts if isinstance(shifts, (tuple, list)) else (shifts,)
    if dims is None or (isinstance(dims, (tuple, list)) and not dims):
        if len(steps) != 1:
            raise ValueError(f"[roll] {len(steps)} shifts without dims: name one for each")
        return reshape(_rolled(ravel(x), 0, integer("roll", "a shift", steps[0])), x.shape)
    axes = dims if isinstance(dims, (tuple, list)) else (dims,)
    if len(axes) != len(steps):
        raise ValueError(f"[roll] {len(steps)} shifts for {len(axes)} dims: give one for each")
    for axis, step in zip(axes, steps, strict=True):
        x = _rolled(x, one_dim("roll", axis, x._h.ndim), integer("roll", "a shift", step))
    return x


def _rolled(x: Tensor, axis: int, shift: int) -> Tensor:
    n = x.shape[axis]
    on = shift % n if n else 0
    return apply(_s.ROLL, (x,), (axis, n, on)) if on else clone(x)


# ---- repeating -----------------------------------------------------------------------------------


def repeat(x: Tensor, *repeats: Any, **named: Any) -> Tensor:
    """A copy with the tensor repeated so many times along each dimension.

    More repeats than dimensions add dimensions in front. This is PyTorch's repeat. NumPy's repeat
    is repeat_interleave.

    >>> import minigrad as mg
    >>> mg.repeat(mg.tensor([1, 2]), 2, 2)
    tensor([[1, 2, 1, 2],
            [1, 2, 1, 2]])
    """
    x = tensor_operand("repeat", x)
    times = size_of("repeat", listed("repeat", repeats, named, "repeats"))
    if len(times) < x._h.ndim:
        raise ValueError(f"[repeat] {len(times)} repeats for {x._h.ndim} dimensions")
    if min(times, default=0) < 0:
        raise ValueError(f"[repeat] {times}: a number of repeats cannot be negative")
    return _repeated("repeat", x, times)


def _repeated(op: str, x: Tensor, times: Sequence[int]) -> Tensor:
    """Put a new dimension before each repeated one, expand it, and merge the two."""
    added = len(times) - x._h.ndim
    shape = (1,) * added + x.shape
    apart: list[int] = []
    spread: list[int] = []
    for n, k in zip(shape, times, strict=True):
        apart += [1, n] if k != 1 and n != 1 else [n]
        spread += [k, n] if k != 1 and n != 1 else [k if n == 1 else n]
    whole = tuple([n * k for n, k in zip(shape, times, strict=True)])
    return _spread(op, x, tuple(apart), tuple(spread), whole)


def _spread(op: str, x: Tensor, apart: Shape, spread: Shape, to: Shape) -> Tensor:
    """A copy of x, reshaped to ``apart``, expanded to ``spread`` and reshaped to ``to``."""
    try:
        return apply(_s.REPEAT, (x,), (apart, spread, to))
    except (ValueError, MemoryError) as error:
        raise renamed(op, error) from None


def tile(input: Tensor, *dims: Any, **named: Any) -> Tensor:
    """:func:`repeat` as NumPy's tile: missing repeats at the front count as 1."""
    x = tensor_operand("tile", input)
    times = size_of("tile", listed("tile", dims, named, "dims"))
    if min(times, default=0) < 0:
        raise ValueError(f"[tile] {times}: a number of repeats cannot be negative")
    return _repeated("tile", x, (1,) * (x._h.ndim - len(times)) + times)


def repeat_interleave(
    input: Tensor,
    repeats: Any = None,
    dim: int | None = None,
    *,
    output_size: int | None = None,
    **numpy: Any,
) -> Tensor:
    """Repeat each entry along a dimension, next to itself. This is NumPy's repeat.

    ``repeats`` is one number for all entries, or a tensor with a number for each. Without a
    dimension the input is flattened. ``repeat_interleave(repeats)`` repeats 0, 1, 2 and so on.
    ``output_size``, if given, must be the size of the result.

    >>> import minigrad as mg
    >>> mg.repeat_interleave(mg.tensor([1, 2]), mg.tensor([1, 3]))
    tensor([1, 2, 2, 2])
    """
    op = "repeat_interleave"
    x, dim = tensor_operand(op, input), named_dim(op, dim, numpy)
    if repeats is None:
        x, repeats = arange(x._h.size), x
    axis = 0 if dim is None else one_dim(op, dim, x._h.ndim)
    line = ravel(x) if dim is None else x
    n = line.shape[axis]
    positions = None
    if type(repeats) is not int:
        times = index_operand(op, repeats)
        if times._h.ndim > 1 or times._h.size not in (1, n):
            raise ValueError(
                f"[{op}] repeats of shape {times.shape} for size {n}: one number or {n}"
            )
        if times._h.size == 1:
            repeats = int(times.item())
        else:
            positions = call(kernels.repeat_positions, times._h)
    if positions is None and repeats < 0:
        raise ValueError(f"[{op}] a number of repeats cannot be negative")
    size = n * repeats if positions is None else positions.size
    if output_size is not None and output_size != size:
        raise ValueError(f"[{op}] output_size is {output_size}, but {size} come out")
    if positions is not None:
        return index_select(line, axis, wrap(positions))
    before, after = line.shape[: axis + 1], line.shape[axis + 1 :]
    spread = (*before, repeats, *after)
    return _spread(op, line, (*before, 1, *after), spread, (*before[:-1], size, *after))
