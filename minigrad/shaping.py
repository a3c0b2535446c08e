"""Changes of shape, layout and dtype as functions, and how operations read their arguments."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from minigrad._c import lib
from minigrad.creation import size_of
from minigrad.dispatch import TensorBase, apply, strong_operand
from minigrad.dtypes import as_dtype
from minigrad.ops import shape as _s

if TYPE_CHECKING:
    from minigrad._tensor import Tensor

__all__ = [
    "broadcast_to",
    "cat",
    "clone",
    "contiguous",
    "expand",
    "flatten",
    "flip",
    "narrow",
    "permute",
    "reshape",
    "split",
    "squeeze",
    "stack",
    "sum_to_size",
    "to",
    "transpose",
    "unsqueeze",
    "view",
]

# ---- arguments -----------------------------------------------------------------------------------


def tensor_operand(op: str, x: Any) -> Tensor:
    """``x`` as a tensor; TypeError naming the operation for anything else."""
    if isinstance(x, TensorBase):
        return x  # type: ignore[return-value]
    return strong_operand(op, x)  # type: ignore[no-any-return]


def one_dim(op: str, dim: Any, ndim: int) -> int:
    """A dimension counted from the front; IndexError if there is none such."""
    try:
        axis: int = dim.__index__()
    except AttributeError:
        raise TypeError(f"[{op}] dim must be an integer, not {type(dim).__name__}") from None
    if not -ndim <= axis < ndim:
        raise IndexError(
            f"[{op}] dim {axis} is out of range for {ndim} dimensions"
            + (f": use {-ndim}..{ndim - 1}" if ndim else "")
        )
    return axis % ndim


def one_size(op: str, size: Any) -> int:
    """An integer; TypeError for anything else."""
    try:
        return int(size.__index__())
    except AttributeError:
        raise TypeError(f"[{op}] a size is an integer, not {type(size).__name__}") from None


_EVERY = tuple(tuple(range(ndim)) for ndim in range(lib.MG_MAX_NDIM + 1))


def some_dims(op: str, dim: Any, ndim: int) -> tuple[int, ...]:
    """Dimensions counted from the front, in order; None means all."""
    if dim is None:
        return _EVERY[ndim]
    if not isinstance(dim, (tuple, list)):
        return (one_dim(op, dim, ndim),)
    axes = sorted([one_dim(op, d, ndim) for d in dim])
    for before, after in itertools.pairwise(axes):
        if before == after:
            raise ValueError(f"[{op}] dim {after} is given twice in {tuple(dim)}")
    return tuple(axes)


def spelled(op: str, dim: Any, keepdim: bool, numpy: dict[str, Any]) -> tuple[Any, bool]:
    """NumPy's spelling: ``axis`` for dim, ``keepdims`` for keepdim."""
    for name, value in numpy.items():
        if name == "axis" and dim is None:
            dim = value
        elif name == "keepdims":
            keepdim = value
        else:
            raise TypeError(f"[{op}] unexpected argument {name!r} (dim/axis, keepdim/keepdims)")
    return dim, bool(keepdim)


# ---- shapes --------------------------------------------------------------------------------------


def reshape(x: Tensor, *shape: Any) -> Tensor:
    """The same elements in another shape, one size of which may be -1; a view where possible."""
    x = tensor_operand("reshape", x)
    return apply(_s.RESHAPE, (x,), (size_of("reshape", shape),))


def view(x: Tensor, *shape: Any) -> Tensor:
    """As reshape, but ValueError where it would need a copy."""
    x = tensor_operand("view", x)
    return apply(_s.VIEW, (x,), (size_of("view", shape),))


def permute(x: Tensor, *dims: Any) -> Tensor:
    """The dimensions in another order; a view."""
    x = tensor_operand("permute", x)
    order = size_of("permute", dims)
    if len(order) != x._h.ndim:
        raise ValueError(f"[permute] {len(order)} dims given for {x._h.ndim} dimensions")
    axes = tuple([one_dim("permute", d, x._h.ndim) for d in order])
    return apply(_s.PERMUTE, (x,), (axes,))


def transpose(x: Tensor, dim0: int | None = None, dim1: int | None = None) -> Tensor:
    """Two dimensions swapped; all of them reversed where none is named, as NumPy does."""
    x = tensor_operand("transpose", x)
    order = list(range(x._h.ndim))
    if dim0 is None or dim1 is None:
        order.reverse()
    else:
        a, b = one_dim("transpose", dim0, x._h.ndim), one_dim("transpose", dim1, x._h.ndim)
        order[a], order[b] = order[b], order[a]
    return apply(_s.PERMUTE, (x,), (tuple(order),))


def expand(x: Tensor, *size: Any) -> Tensor:
    """Size-1 dimensions repeated, and new ones in front, without a copy; -1 keeps a size."""
    x = tensor_operand("expand", x)
    shape = size_of("expand", size)
    added = len(shape) - x._h.ndim
    if added < 0:
        raise ValueError(f"[expand] shape {x.shape} cannot expand to {shape}: too few dimensions")
    if -1 in shape:
        if -1 in shape[: added if added > 0 else 0]:
            raise ValueError(f"[expand] -1 keeps a size, but a new dimension has none: {shape}")
        own = x.shape
        shape = tuple([own[d - added] if n == -1 else n for d, n in enumerate(shape)])
    return apply(_s.EXPAND, (x,), (shape,))


def broadcast_to(x: Tensor, size: Any) -> Tensor:
    """As expand."""
    return expand(x, size)


def sum_to_size(x: Tensor, *size: Any) -> Tensor:
    """The sum over the dimensions along which ``size`` would be broadcast to x's shape."""
    x = tensor_operand("sum_to_size", x)
    return apply(_s.SUM_TO, (x,), (size_of("sum_to_size", size),))


def squeeze(x: Tensor, dim: Any = None) -> Tensor:
    """Without the dimensions of size 1: all, or those named that have size 1."""
    x = tensor_operand("squeeze", x)
    shape = x.shape
    axes = some_dims("squeeze", dim, len(shape))
    kept = [n for d, n in enumerate(shape) if d not in axes or n != 1]
    return apply(_s.VIEW, (x,), (tuple(kept),))


def unsqueeze(x: Tensor, dim: int) -> Tensor:
    """With a new dimension of size 1 at ``dim``."""
    x = tensor_operand("unsqueeze", x)
    shape = list(x.shape)
    shape.insert(one_dim("unsqueeze", dim, len(shape) + 1), 1)
    return apply(_s.VIEW, (x,), (tuple(shape),))


def flatten(x: Tensor, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    """The dimensions from start_dim to end_dim as one."""
    x = tensor_operand("flatten", x)
    shape = x.shape
    if not shape:
        return reshape(x, (1,))
    a, b = one_dim("flatten", start_dim, len(shape)), one_dim("flatten", end_dim, len(shape))
    if a > b:
        raise ValueError(f"[flatten] start_dim {start_dim} comes after end_dim {end_dim}")
    count = 1
    for n in shape[a : b + 1]:
        count *= n
    return apply(_s.RESHAPE, (x,), ((*shape[:a], count, *shape[b + 1 :]),))


def flip(x: Tensor, dims: Any) -> Tensor:
    """The elements in reverse order along the dimensions named; a view."""
    x = tensor_operand("flip", x)
    axes = some_dims("flip", dims, x._h.ndim)
    shape = x.shape
    start = tuple([n - 1 if d in axes and n else 0 for d, n in enumerate(shape)])
    step = tuple([-1 if d in axes else 1 for d in range(len(shape))])
    return apply(_s.SLICE, (x,), (start, step, shape))


def narrow(x: Tensor, dim: int, start: int, length: int) -> Tensor:
    """``length`` elements from ``start`` on along a dimension; a view."""
    x = tensor_operand("narrow", x)
    axis = one_dim("narrow", dim, x._h.ndim)
    shape = x.shape
    first = start + shape[axis] if start < 0 else start
    if first < 0 or length < 0 or first + length > shape[axis]:
        raise IndexError(
            f"[narrow] start {start} and length {length} leave size {shape[axis]} of dim {dim}"
        )
    begin = tuple([first if d == axis and length else 0 for d in range(len(shape))])
    count = tuple([length if d == axis else n for d, n in enumerate(shape)])
    return apply(_s.SLICE, (x,), (begin, (1,) * len(shape), count))


def split(x: Tensor, split_size_or_sections: Any, dim: int = 0) -> tuple[Tensor, ...]:
    """Views of pieces of one size (the last may be shorter), or of the sizes in a list."""
    x = tensor_operand("split", x)
    axis = one_dim("split", dim, x._h.ndim)
    total = x.shape[axis]
    if isinstance(split_size_or_sections, (tuple, list)):
        sizes = list(split_size_or_sections)
        if sum(sizes) != total:
            raise ValueError(f"[split] the sizes {sizes} add up to {sum(sizes)}, not to {total}")
    else:
        step = one_size("split", split_size_or_sections)
        if step < 1:
            raise ValueError(f"[split] the size of a piece is {step}, but must be at least 1")
        sizes = [min(step, total - at) for at in range(0, total, step)] or [0]
    pieces, at = [], 0
    for size in sizes:
        pieces.append(narrow(x, axis, at if size else 0, size))
        at += size
    return tuple(pieces)


def _promoted(op: str, tensors: Sequence[Any]) -> list[Tensor]:
    found = [tensor_operand(op, t) for t in tensors]
    if not found:
        raise ValueError(f"[{op}] needs at least one tensor")
    dtype = max((t.dtype for t in found), key=lambda d: d.code)
    return [to(t, dtype) for t in found]


def cat(tensors: Sequence[Any], dim: int = 0, **numpy: Any) -> Tensor:
    """Tensors laid side by side along a dimension; all other sizes must agree."""
    if numpy:
        dim, _ = spelled("cat", None, False, numpy)
    parts = _promoted("cat", tensors)
    axis = one_dim("cat", dim, parts[0]._h.ndim)
    for part in parts:
        same = len(part.shape) == len(parts[0].shape) and all(
            n == m or d == axis
            for d, (n, m) in enumerate(zip(part.shape, parts[0].shape, strict=True))
        )
        if not same:
            raise ValueError(
                f"[cat] shapes {parts[0].shape} and {part.shape} differ outside dim {axis}"
            )
    return apply(_s.CAT, tuple(parts), (axis, tuple([t.shape[axis] for t in parts])))


def stack(tensors: Sequence[Any], dim: int = 0, **numpy: Any) -> Tensor:
    """Tensors of one shape side by side along a new dimension."""
    if numpy:
        dim, _ = spelled("stack", None, False, numpy)
    parts = _promoted("stack", tensors)
    for part in parts:
        if part.shape != parts[0].shape:
            raise ValueError(f"[stack] shapes differ: {parts[0].shape} and {part.shape}")
    axis = one_dim("stack", dim, parts[0]._h.ndim + 1)
    return cat([unsqueeze(t, axis) for t in parts], axis)


def clone(x: Tensor) -> Tensor:
    """A contiguous copy with a gradient."""
    x = tensor_operand("clone", x)
    return apply(_s.COPY, (x,))


def contiguous(x: Tensor) -> Tensor:
    """x itself where its elements lie in order without gaps, else a copy."""
    x = tensor_operand("contiguous", x)
    return x if lib.mg_contiguous_now(x._h) else clone(x)


def to(x: Tensor, dtype: Any) -> Tensor:
    """The same values in another dtype, x itself where it has it; gradients are cast back."""
    x = tensor_operand("to", x)
    wanted, was = as_dtype(dtype), x.dtype
    if wanted is was and not x._h.weak:
        return x
    return apply(_s.CAST, (x,), (wanted, was))
