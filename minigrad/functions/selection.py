"""Functions for gather, and for selection by index or condition.

Every form of index becomes int64 arrays of one shape for the first dimensions. One gather reads
them. The gradient adds up repeated positions in order.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, overload

from minigrad.functions.arguments import (
    broadcast_shape,
    common_shape,
    named_dim,
    one_dim,
    renamed,
    size_of,
    tensor_operand,
)
from minigrad.functions.elementwise import floor_divide, ge, logical_or, lt, ne, remainder
from minigrad.functions.operands import as_operand, check_range, operand_error
from minigrad.functions.shaping import expand, permute, ravel, reshape, to
from minigrad.ops import indexing as _i
from minigrad.ops import pointwise as _p
from minigrad.runtime.dtypes import bool_, float32, int64, promoted_dtype, uint8
from minigrad.runtime.native import Array, call, kernels
from minigrad.tape.apply import apply, operation
from minigrad.tape.tensor_base import TensorBase, wrap

if TYPE_CHECKING:
    from minigrad._tensor import Tensor

__all__ = [
    "argwhere",
    "gather",
    "index_select",
    "masked_fill",
    "masked_select",
    "nonzero",
    "take",
    "take_along_dim",
    "unravel_index",
    "where",
]

# Tensors of one shape. None stands for the positions along an axis of this shape.
Index = Sequence["Tensor | None"]
Places = tuple[Array | None, ...]  # the handles of an Index

# ---- index arrays --------------------------------------------------------------------------------


def index_operand(op: str, index: Any) -> Tensor:
    """``index`` as an int64 tensor. Raises TypeError for other than integers."""
    if not isinstance(index, TensorBase):
        index = tensor_operand(op, index)
        if not index.size:  # an empty list becomes a float tensor
            index = to(index, int64)
    if index.dtype is int64:
        return index
    if not (index.dtype.is_storage and index.dtype.kind == 1):
        raise TypeError(f"[{op}] indices must be integers, not {index.dtype.name}")
    return to(index, int64)


def mask_operand(op: str, mask: Any) -> Tensor:
    """``mask`` as a bool tensor. Raises TypeError for other dtypes."""
    found = tensor_operand(op, mask)
    if found.dtype is not bool_:
        raise TypeError(f"[{op}] the mask must be bool, not {found.dtype.name}: compare it first")
    return found


def fitting(op: str, x: Tensor, value: Any) -> Tensor:
    """``value`` as a tensor of x's dtype. Raises TypeError for values that x cannot hold."""
    found = as_operand(value)
    if found is None:
        raise operand_error(op, value)
    if found._h.dtype == x._h.dtype and not found._h.weak:
        return found
    if found.dtype.kind > x.dtype.kind:
        raise TypeError(
            f"[{op}] a value of dtype {found.dtype.name} does not fit into {x.dtype.name}: convert "
            "one of them with .to()"
        )
    if found._h.weak:
        check_range(op, found._h, x._h.dtype)
    return to(found, x.dtype)


def replacing(op: str, x: Tensor, src: Any, shape: tuple[int, ...]) -> Tensor:
    """``src`` in x's dtype. Raises ValueError if its shape is not that of the replaced part."""
    found = fitting(op, x, src)
    if found.shape != shape:
        raise ValueError(f"[{op}] src has shape {found.shape}, but what it replaces {shape}")
    return found


def along(index: Tensor, axis: int) -> Index:
    """Index arrays with ``index`` for one axis, and None, the positions, for the other axes."""
    return (*(None,) * axis, index, *(None,) * (index._h.ndim - axis - 1))


def handles(index: Index, *users: TensorBase) -> Places:
    """The handles of index arrays, copied if a graph keeps them.

    The caller may overwrite the originals.
    """
    for x in users:
        if x._edge is not None:
            return tuple([None if i is None else call(kernels.copy, i._h) for i in index])
    return tuple([None if i is None else i._h for i in index])


def row_handles(op: str, x: Tensor, axis: int, index: Tensor, *users: TensorBase) -> Places:
    """:func:`handles` of a one-dimensional index of an axis, at all positions of earlier axes."""
    if index._h.ndim > 1:
        raise ValueError(f"[{op}] the index has {index._h.ndim} dimensions, but must have one")
    (one,) = handles((index,), *users)
    shape = (*x.shape[:axis], index._h.size)
    return (*(None,) * axis, call(kernels.view_expand, one, shape))


def picked(x: Tensor, indices: Tensor, axis: int) -> Tensor:
    """The elements of x at ``indices`` along ``axis``. Other axes of both have the same sizes."""
    return apply(_i.GATHER, (x,), (handles(along(indices, axis), x),))


def gather_rows(x: Tensor, index: Index, op: str = "index") -> Tensor:
    """x[i0, i1, ...] for int64 tensors of one shape, for the first dimensions."""
    return gathered(x, handles(index, x), op)


def gathered(x: Tensor, places: Places, op: str) -> Tensor:
    """Gather by index handles. Errors of indices out of range name the operation ``op``."""
    try:
        return apply(_i.GATHER, (x,), (places,))
    except IndexError as error:
        raise renamed(op, error) from None


# ---- by position ---------------------------------------------------------------------------------


def gather(input: Tensor, dim: int, index: Tensor, *, sparse_grad: bool = False) -> Tensor:
    """Elements along a dimension: ``y[i, j] = input[index[i, j], j]``, here for dim 0.

    The result has the index's shape, which may be smaller than the input's outside ``dim``.
    Negative indices count from the end. Gradients are dense: ``sparse_grad`` changes nothing.

    >>> import minigrad as mg
    >>> mg.gather(mg.tensor([[1.0, 2.0], [3.0, 4.0]]), 1, mg.tensor([[1], [0]]))
    tensor([[2.],
            [3.]])
    """
    x, index = tensor_operand("gather", input), index_operand("gather", index)
    axis = checked_index("gather", x, dim, index)
    if not x._h.ndim or not index.size:
        return gather_rows(ravel(x), [index], "gather")
    return gather_rows(x, along(index, axis), "gather")


def checked_index(op: str, x: Tensor, dim: int, index: Tensor) -> int:
    """Check an index with as many dimensions as x, and return ``dim`` counted from the front."""
    axis = one_dim(op, dim, max(x._h.ndim, 1))
    if not index._h.size or (not x._h.ndim and index._h.ndim <= 1):
        return axis  # an empty index may have any shape; a 0-d x counts as a vector
    if index._h.ndim != x._h.ndim:
        raise ValueError(f"[{op}] {index._h.ndim} dimensions of indices for {x._h.ndim} of x")
    shape, index_shape = x.shape, index.shape
    if index_shape != shape:
        for d, (n, m) in enumerate(zip(shape, index_shape, strict=True)):
            if m > n and d != axis:
                raise ValueError(
                    f"[{op}] the index of shape {index_shape} is larger than x, of shape {shape}, "
                    f"in dim {d}: only dim {axis} may be"
                )
    return axis


def take(input: Tensor, index: Tensor) -> Tensor:
    """The elements of the flattened input at the indices, in the index's shape."""
    x, index = tensor_operand("take", input), index_operand("take", index)
    return gather_rows(ravel(x), [index], "take")


def take_along_dim(input: Tensor, indices: Tensor, dim: int | None = None, **numpy: Any) -> Tensor:
    """The elements input[..., indices[..., k, ...], ...] along a dimension.

    Other sizes agree or are broadcast. Without a dimension both are flattened. The indices may come
    from argsort or argmax.

    >>> import minigrad as mg
    >>> x = mg.tensor([[3.0, 1.0], [2.0, 5.0]])
    >>> mg.take_along_dim(x, mg.argmax(x, 1, keepdim=True), 1)
    tensor([[3.],
            [5.]])
    """
    op = "take_along_dim"
    x, indices = tensor_operand(op, input), index_operand(op, indices)
    if numpy:
        dim = named_dim(op, dim, numpy)
    if dim is None:
        return take(x, ravel(indices))
    axis = one_dim(op, dim, x._h.ndim)
    if indices._h.ndim != x._h.ndim:
        raise ValueError(f"[{op}] {indices._h.ndim} dimensions of indices for {x._h.ndim} of x")
    own, theirs = list(x.shape), list(indices.shape)
    sizes = own[axis], theirs[axis]
    own[axis] = theirs[axis] = 1
    if own != theirs:
        others = broadcast_shape(op, tuple(own), tuple(theirs))
        x, indices = (
            expand(t, (*others[:axis], size, *others[axis + 1 :]))
            for t, size in zip((x, indices), sizes, strict=True)
        )
    return gather_rows(x, along(indices, axis), op)


def unravel_index(indices: Tensor, shape: Any) -> tuple[Tensor, ...]:
    """Convert flat positions in a tensor of a given shape to an index for each dimension.

    Raises ValueError for positions out of range.

    >>> import minigrad as mg
    >>> mg.unravel_index(mg.tensor([4, 5]), (2, 3))
    (tensor([1, 1]), tensor([1, 2]))
    """
    op = "unravel_index"
    place = index_operand(op, indices)
    sizes = size_of(op, (shape,))
    count = math.prod(sizes)
    outside = masked_select(place, logical_or(lt(place, 0), ge(place, count)))
    if outside._h.size:
        wrong = outside[0].item()
        raise ValueError(f"[{op}] {wrong} is not a position in the shape {sizes}")
    found: list[Tensor] = []
    for size in reversed(sizes):
        found.append(remainder(place, size))
        place = floor_divide(place, size)
    return tuple(reversed(found))


def index_select(input: Tensor, dim: int, index: Tensor) -> Tensor:
    """The entries along a dimension at the positions of a one-dimensional index, in its order."""
    x, index = tensor_operand("index_select", input), index_operand("index_select", index)
    axis = one_dim("index_select", dim, max(x._h.ndim, 1))
    if not x._h.ndim:
        if index.size != 1:
            raise ValueError(f"[index_select] of a number one entry is selected, not {index.size}")
        return reshape(gather_rows(ravel(x), [ravel(index)], "index_select"), ())
    return gathered(x, row_handles("index_select", x, axis, index, x), "index_select")


# ---- by condition --------------------------------------------------------------------------------


def _true_handles(mask: Tensor) -> tuple[Array, ...]:
    found, ndim = call(kernels.nonzero, mask._h), mask._h.ndim
    n = found.size // ndim
    lines = [call(kernels.view_slice, found, (d, 0), (1, 1), (1, n)) for d in range(ndim)]
    return tuple([call(kernels.view_reshape, line, (n,)) for line in lines])


def true_places(mask: Tensor) -> tuple[Tensor, ...]:
    """The positions where a mask is true, as one tensor for each dimension."""
    return tuple([wrap(line) for line in _true_handles(mask)])


def masked_rows(x: Tensor, mask: Tensor) -> Tensor:
    """x[mask] for a mask with at least one dimension, whose shape is the start of x's shape."""
    if mask._h.ndim == 1 or not x._h.contiguous:
        return apply(_i.GATHER, (x,), (_true_handles(mask),))
    line = call(kernels.reshape, mask._h, (mask._h.size,))
    found = call(kernels.nonzero, line)
    places = call(kernels.view_reshape, found, (found.size,))
    return apply(_i.MASKED, (x,), (mask._h.ndim, places))


@overload
def nonzero(input: Tensor, *, as_tuple: Literal[True]) -> tuple[Tensor, ...]: ...
@overload
def nonzero(input: Tensor, *, as_tuple: Literal[False] = False) -> Tensor: ...
def nonzero(input: Tensor, *, as_tuple: bool = False) -> Any:
    """The positions of the elements that are not 0, in row-major order, as int64.

    The result is an (n, ndim) tensor. With ``as_tuple`` it is a tensor of size n for each
    dimension, which ``input[...]`` takes. A 0-d input then counts as one element.

    >>> import minigrad as mg
    >>> mg.nonzero(mg.tensor([[0.0, 2.0], [3.0, 0.0]]))
    tensor([[0, 1],
            [1, 0]])
    """
    given = tensor_operand("nonzero", input)
    if as_tuple and not given._h.ndim:
        given = reshape(given, (1,))
    mask = given if given.dtype is bool_ else ne(given, 0)
    if as_tuple:
        return true_places(mask)
    return permute(wrap(call(kernels.nonzero, mask._h)), 1, 0)


def argwhere(input: Tensor) -> Tensor:
    """The positions of the elements that are not 0, as rows: ``nonzero(input)``."""
    return nonzero(tensor_operand("argwhere", input))


@overload
def where(condition: Any) -> tuple[Tensor, ...]: ...
@overload
def where(condition: Any, input: Any, other: Any) -> Tensor: ...
def where(condition: Any, input: Any = None, other: Any = None) -> Any:
    """``input`` where the condition is true, else ``other``. The three are broadcast together.

    Elements that were not chosen get a gradient of exactly 0, also if they are infinite or NaN. A
    call with the condition alone gives ``nonzero(condition, as_tuple=True)``.

    >>> import minigrad as mg
    >>> x = mg.tensor([-1.0, 2.0])
    >>> mg.where(x > 0, x, 0.0)
    tensor([0., 2.])
    """
    if input is None and other is None:
        return nonzero(condition, as_tuple=True)
    c = tensor_operand("where", condition)
    if c.dtype is not bool_:
        if c.dtype is not uint8:  # a mask in PyTorch's older form
            raise TypeError(
                f"[where] the condition must be bool, not {c.dtype.name}: compare it first"
            )
        c = ne(c, 0)
    x, y = as_operand(input), as_operand(other)
    for given, found in ((input, x), (other, y)):
        if found is None:
            raise operand_error("where", given)
    made = operation(_p.WHERE)(c, x, y)
    if made is NotImplemented:
        made = operation(_p.WHERE)(c, *_of_one_dtype(x, y))
    return made


def _of_one_dtype(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """Two operands, one of a storage dtype, cast to their common dtype.

    A Python number only raises the kind.
    """
    kind = promoted_dtype(x.dtype, y.dtype)
    for number, strong in ((x, y), (y, x)):
        if number._h.weak:
            raises = number.dtype.kind > strong.dtype.kind
            kind = strong.dtype if not raises else float32 if number.dtype.kind == 2 else int64
            check_range("where", number._h, kind.code)
    return to(x, kind), to(y, kind)


def masked_fill(input: Tensor, mask: Tensor, value: Any) -> Tensor:
    """A copy of the input with ``value``, a number or a 0-d tensor, where the mask is true.

    The result has the input's dtype. The value may require grad. Raises TypeError for a value that
    the dtype cannot hold.
    """
    x, mask = tensor_operand("masked_fill", input), mask_operand("masked_fill", mask)
    if isinstance(value, TensorBase) and value._h.ndim:
        raise ValueError(f"[masked_fill] the value has shape {value.shape}, but must be one number")
    return where(mask, fitting("masked_fill", x, value), x)


def masked_select(input: Tensor, mask: Tensor) -> Tensor:
    """The elements of the input where the mask is true, in row-major order, as one dimension.

    Input and mask are broadcast together.
    """
    x, mask = tensor_operand("masked_select", input), mask_operand("masked_select", mask)
    shape: tuple[int, ...] = x.shape
    if shape and mask.shape == shape:
        return masked_rows(x, mask)
    shape = common_shape("masked_select", x, mask)
    if not shape:
        x, mask, shape = reshape(x, (1,)), reshape(mask, (1,)), (1,)
    return masked_rows(_seen(x, shape), _seen(mask, shape))


def _seen(x: Tensor, shape: tuple[int, ...]) -> Tensor:
    return x if x.shape == shape else expand(x, shape)
