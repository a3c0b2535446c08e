"""Functions that change shape, layout or dtype. They return views where possible."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from minigrad.functions.arguments import (
    common_shape,
    integer,
    listed,
    named_dim,
    one_dim,
    piece_count,
    promoted,
    several,
    size_of,
    some_dims,
    tensor_operand,
)
from minigrad.functions.creation import zeros_like
from minigrad.ops import shape as _s
from minigrad.runtime.dtypes import DType, as_dtype, bool_
from minigrad.runtime.native import call, kernels, lib
from minigrad.tape.apply import apply, check_keeps_grad, operation
from minigrad.tape.grad_mode import is_grad_enabled
from minigrad.tape.speed import accelerator
from minigrad.tape.tensor_base import TensorBase, wrap

if TYPE_CHECKING:
    from minigrad._tensor import Tensor

    _View = Callable[[TensorBase, tuple[Any, ...]], Tensor]

__all__ = [
    "adjoint",
    "broadcast_tensors",
    "broadcast_to",
    "cat",
    "clone",
    "concat",
    "concatenate",
    "conj",
    "contiguous",
    "expand",
    "expand_as",
    "flatten",
    "imag",
    "moveaxis",
    "movedim",
    "narrow",
    "narrow_copy",
    "permute",
    "ravel",
    "real",
    "reshape",
    "reshape_as",
    "select",
    "squeeze",
    "stack",
    "sum_to_size",
    "swapaxes",
    "swapdims",
    "t",
    "to",
    "transpose",
    "type_as",
    "unbind",
    "unflatten",
    "unfold",
    "unsqueeze",
    "view",
    "view_as",
]

_reshape: _View = operation(_s.RESHAPE)
_view: _View = operation(_s.VIEW)
_permute: _View = operation(_s.PERMUTE)
_expand: _View = operation(_s.EXPAND)
_slice: _View = operation(_s.SLICE)
_slice_view: _View = operation(_s.SLICE_VIEW)

# ---- shapes --------------------------------------------------------------------------------------


def reshape(input: Tensor, *shape: Any, **named: Any) -> Tensor:
    """The same elements in another shape. One size may be -1. The result is a view if possible.

    With NumPy's ``order="F"`` the first index runs fastest, in the input and in the result. Raises
    ValueError if the numbers of elements differ.

    >>> import minigrad as mg
    >>> mg.reshape(mg.tensor([[1, 2], [3, 4]]), -1, order="F")
    tensor([1, 3, 2, 4])
    """
    x = tensor_operand("reshape", input)
    if not named:
        return _reshape(x, (size_of("reshape", shape),))
    order = named.pop("order", "C")
    to = size_of("reshape", listed("reshape", shape, named, "shape"))
    return in_order("reshape", x, to, order)


def in_order(op: str, x: Tensor, size: tuple[int, ...], order: Any, orders: str = "CFA") -> Tensor:
    """x in another shape, with the elements read and placed in one of NumPy's orders.

    In order C the last index runs fastest, in order F (Fortran) the first. A and K take the order
    in memory, if it is one of the two.
    """
    if not isinstance(order, str) or order not in tuple(orders):
        raise ValueError(f"[{op}] order is {order!r}, but must be one of {', '.join(orders)}")
    turned = x if order == "C" else transpose(x)
    if order in ("A", "K") and (x.is_contiguous() or not turned.is_contiguous()):
        if order == "K" and not x.is_contiguous():
            raise ValueError(
                f"[{op}] order='K' is of memory in the order of C or F: use one of both"
            )
        order = "C"
    if order == "C":
        return _reshape(x, (size,))
    return transpose(_reshape(turned, (size[::-1],)))


def reshape_as(x: Tensor, other: Tensor) -> Tensor:
    """``reshape(x, other.shape)``."""
    return reshape(x, tensor_operand("reshape_as", other).shape)


def view(x: Tensor, *shape: Any, dtype: Any = None) -> Tensor:
    """:func:`reshape` without a copy. Raises ValueError if a copy is needed.

    A dtype of the same size may stand in place of the shape. The same bits are then read as this
    dtype, without a history. Raises RuntimeError for a tensor that requires grad, ValueError for a
    dtype of another size.

    >>> import minigrad as mg
    >>> mg.tensor([1.0]).view(mg.int32)
    tensor([1065353216], dtype=minigrad.int32)
    """
    x = tensor_operand("view", x)
    if len(shape) == 1 and isinstance(shape[0], (DType, str, type)):
        return _seen_as(x, as_dtype(shape[0]))
    if dtype is not None:
        return _seen_as(x, as_dtype(dtype))
    return _view(x, (size_of("view", shape),))


def _seen_as(x: Tensor, kind: DType) -> Tensor:
    if x.dtype.itemsize != kind.itemsize:
        raise ValueError(
            f"[view] elements of {x.dtype.name} have {x.dtype.itemsize} bytes, those of "
            f"{kind.name} {kind.itemsize}: a view needs the same size, to(dtype) converts"
        )
    if kind is bool_ and x.dtype is not bool_:
        raise ValueError("[view] the bits of a bool are 0 or 1 alone: use x != 0")
    if x._edge is not None:
        raise RuntimeError(
            "[view] bits have no gradient: detach() before the view as another dtype"
        )
    return wrap(call(kernels.view_as, x._h, kind.code))


def view_as(x: Tensor, other: Tensor) -> Tensor:
    """``view(x, other.shape)``."""
    return view(x, tensor_operand("view_as", other).shape)


def ravel(input: Tensor, order: str = "C") -> Tensor:
    """All elements in one dimension, in NumPy's order C, F, A or K. A view if possible."""
    x = tensor_operand("ravel", input)
    return in_order("ravel", x, (x.size,), order, "CFAK")


def flatten(
    input: Tensor, start_dim: int | str = 0, end_dim: int = -1, *, order: str = "C"
) -> Tensor:
    """The dimensions from start_dim to end_dim merged into one. A view if possible.

    If all dimensions are merged, elements may be read in another of NumPy's orders:
    ``flatten("F")`` or with ``order``.
    """
    x = tensor_operand("flatten", input)
    if isinstance(start_dim, str):
        order, start_dim = start_dim, 0
    if order != "C":
        if (start_dim, end_dim) != (0, -1):
            raise ValueError(
                f"[flatten] order={order!r} is of all dimensions, not from some to some"
            )
        return in_order("flatten", x, (x.size,), order, "CFAK")
    shape = x.shape
    if not shape:
        return reshape(x, (1,))
    a, b = one_dim("flatten", start_dim, len(shape)), one_dim("flatten", end_dim, len(shape))
    if a > b:
        raise ValueError(f"[flatten] start_dim {start_dim} comes after end_dim {end_dim}")
    return reshape(x, (*shape[:a], math.prod(shape[a : b + 1]), *shape[b + 1 :]))


def unflatten(input: Tensor, dim: int, sizes: Sequence[int]) -> Tensor:
    """A view with one dimension split into several of the given sizes. One size may be -1.

    >>> import minigrad as mg
    >>> mg.unflatten(mg.zeros(2, 12), 1, (3, -1)).shape
    (2, 3, 4)
    """
    x = tensor_operand("unflatten", input)
    shape = x.shape
    axis, new = one_dim("unflatten", dim, len(shape)), list(size_of("unflatten", (sizes,)))
    size = shape[axis]
    if new.count(-1) > 1:
        raise ValueError(f"[unflatten] only one of {sizes} can be -1")
    if -1 in new:  # in an empty tensor reshape cannot infer it
        known = math.prod([n for n in new if n != -1])
        if not known:
            raise ValueError(f"[unflatten] any size could stand for -1 in {sizes}")
        new[new.index(-1)] = size // known
    if not new or min(new) < 0 or math.prod(new) != size:
        raise ValueError(f"[unflatten] size {size} of dim {axis} is not the product of {sizes}")
    return _view(x, ((*shape[:axis], *new, *shape[axis + 1 :]),))


def squeeze(input: Tensor, dim: Any = None, **numpy: Any) -> Tensor:
    """A view without the dimensions of size 1: all of them, or only the given ones."""
    x = tensor_operand("squeeze", input)
    if numpy:
        dim = named_dim("squeeze", dim, numpy)
    shape = x.shape
    if dim is None:
        return _view(x, (tuple([n for n in shape if n != 1]),))
    axes = some_dims("squeeze", dim, len(shape) or 1)  # as in PyTorch, a 0-d tensor has dim 0
    return _view(x, (tuple([n for d, n in enumerate(shape) if d not in axes or n != 1]),))


def unsqueeze(input: Tensor, dim: int) -> Tensor:
    """A view with a new dimension of size 1 at ``dim``."""
    x = tensor_operand("unsqueeze", input)
    shape = list(x.shape)
    shape.insert(one_dim("unsqueeze", dim, len(shape) + 1), 1)
    return _view(x, (tuple(shape),))


# ---- the order of dimensions ---------------------------------------------------------------------


def permute(input: Tensor, *dims: Any, **named: Any) -> Tensor:
    """A view with the dimensions in another order."""
    x = tensor_operand("permute", input)
    order = size_of("permute", listed("permute", dims, named, "dims") if named else dims)
    if len(order) != x._h.ndim:
        raise ValueError(f"[permute] {len(order)} dims given for {x._h.ndim} dimensions")
    axes = tuple([one_dim("permute", d, x._h.ndim) for d in order])
    return _permute(x, (axes,))


def transpose(input: Tensor, dim0: int | None = None, dim1: int | None = None) -> Tensor:
    """A view with two dimensions swapped, or all reversed if none is given, as in NumPy."""
    x = tensor_operand("transpose", input)
    ndim = x._h.ndim
    order = list(range(ndim))
    if dim0 is None or dim1 is None:
        order.reverse()
    elif ndim or (
        dim0 not in (0, -1) or dim1 not in (0, -1)
    ):  # as in PyTorch, a 0-d tensor has dim 0
        a, b = one_dim("transpose", dim0, ndim), one_dim("transpose", dim1, ndim)
        order[a], order[b] = order[b], order[a]
    return _permute(x, (tuple(order),))


def swapaxes(input: Tensor, axis0: int, axis1: int) -> Tensor:
    """Two dimensions swapped; a view."""
    return transpose(input, axis0, axis1)


def swapdims(input: Tensor, dim0: int, dim1: int) -> Tensor:
    """Two dimensions swapped; a view."""
    return transpose(input, dim0, dim1)


def t(input: Tensor) -> Tensor:
    """A view of a matrix, transposed. A vector or a 0-d tensor is unchanged."""
    x = tensor_operand("t", input)
    if x._h.ndim > 2:
        raise ValueError(f"[t] expected at most 2 dimensions, not {x._h.ndim}: use mT or transpose")
    return transpose(x)


def movedim(input: Tensor, source: Any, destination: Any) -> Tensor:
    """A view with the dimensions ``source`` moved to ``destination``, the others in order.

    >>> import minigrad as mg
    >>> mg.movedim(mg.zeros(2, 3, 4), 0, -1).shape
    (3, 4, 2)
    """
    x = tensor_operand("movedim", input)
    ndim = x._h.ndim
    if isinstance(source, int) and isinstance(destination, int):
        return _moved(x, one_dim("movedim", source, ndim), one_dim("movedim", destination, ndim))
    froms, tos = (
        [one_dim("movedim", d, ndim) for d in (dims if isinstance(dims, (tuple, list)) else [dims])]
        for dims in (source, destination)
    )
    if len(froms) != len(tos):
        raise ValueError(f"[movedim] {len(froms)} dims to move to {len(tos)} places")
    if len(set(froms)) < len(froms) or len(set(tos)) < len(tos):
        raise ValueError(f"[movedim] a dim is given twice: {source} to {destination}")
    rest = iter([d for d in range(ndim) if d not in froms])
    placed = dict(zip(tos, froms, strict=True))
    order = tuple([placed[d] if d in placed else next(rest) for d in range(ndim)])
    return _permute(x, (order,))


def _moved(x: Tensor, source: int, destination: int) -> Tensor:
    """A view with one dimension moved. Both positions are counted from the front."""
    order = [d for d in range(x._h.ndim) if d != source]
    order.insert(destination, source)
    return _permute(x, (tuple(order),))


def moveaxis(input: Tensor, source: Any, destination: Any) -> Tensor:
    """:func:`movedim` under NumPy's name."""
    return movedim(input, source, destination)


# ---- repeated without a copy ---------------------------------------------------------------------


def expand(x: Tensor, *size: Any, **named: Any) -> Tensor:
    """A view with size-1 dimensions repeated, and new dimensions in front. -1 keeps a size."""
    x = tensor_operand("expand", x)
    shape = size_of("expand", listed("expand", size, named, "size") if named else size)
    added = len(shape) - x._h.ndim
    if added < 0:
        raise ValueError(f"[expand] shape {x.shape} cannot expand to {shape}: too few dimensions")
    if -1 in shape:
        if -1 in shape[: added if added > 0 else 0]:
            raise ValueError(f"[expand] -1 keeps a size, but a new dimension has none: {shape}")
        own = x.shape
        shape = tuple([own[d - added] if n == -1 else n for d, n in enumerate(shape)])
    return _expand(x, (shape,))


def expand_as(x: Tensor, other: Tensor) -> Tensor:
    """``expand(x, other.shape)``."""
    return expand(x, tensor_operand("expand_as", other).shape)


def broadcast_to(input: Tensor, shape: Any) -> Tensor:
    """:func:`expand` under NumPy's name."""
    return expand(input, shape)


def broadcast_tensors(*tensors: Any) -> tuple[Tensor, ...]:
    """The tensors expanded to their common shape.

    >>> import minigrad as mg
    >>> [t.shape for t in mg.broadcast_tensors(mg.zeros(3, 1), mg.zeros(4))]
    [(3, 4), (3, 4)]
    """
    given = several("broadcast_tensors", tensors)
    shape = common_shape("broadcast_tensors", *given)
    return tuple([expand(x, shape) for x in given])


def sum_to_size(x: Tensor, *size: Any) -> Tensor:
    """The sum over the dimensions along which a tensor of ``size`` broadcasts to x's shape."""
    x = tensor_operand("sum_to_size", x)
    return apply(_s.SUM_TO, (x,), (size_of("sum_to_size", size),))


# ---- parts ---------------------------------------------------------------------------------------


def narrow(input: Tensor, dim: int, start: int, length: int) -> Tensor:
    """A view of ``length`` elements from ``start`` on along a dimension."""
    x = tensor_operand("narrow", input)
    axis = one_dim("narrow", dim, x._h.ndim)
    shape = x.shape
    at, count = integer("narrow", "start", start), integer("narrow", "length", length)
    first = at + shape[axis] if at < 0 else at
    if first < 0 or count < 0 or first + count > shape[axis]:
        raise IndexError(
            f"[narrow] start {at} and length {count} leave size {shape[axis]} of dim {dim}"
        )
    return pieces(x, axis, (first, first + count))[0]


def narrow_copy(input: Tensor, dim: int, start: int, length: int) -> Tensor:
    """A copy of :func:`minigrad.narrow`'s result."""
    return clone(narrow(input, dim, start, length))


def _split(
    run: Any, x: Tensor, axis: int, bounds: tuple[int, ...], drop: bool, /
) -> tuple[Tensor, ...]:
    """The pieces from each bound to the next along an axis.

    ``run`` is the :func:`operation` of a slice. If ``drop`` is true, pieces are single entries
    without the axis, and ``run`` is that of a slice_view.
    """
    shape = x._h.shape
    before, after = shape[:axis], shape[axis + 1 :]
    step, dropped = (1,) * len(shape), (before + after,) if drop else ()
    found = []
    for first, last in itertools.pairwise(bounds):
        count = max(last - first, 0)
        start = (*(0,) * axis, first if count else 0, *(0,) * len(after))
        found.append(run(x, (start, step, (*before, count, *after), *dropped)))
    return tuple(found)


split_in_python = _split
if accelerator:
    _split = accelerator.split


def pieces(x: Tensor, axis: int, bounds: tuple[int, ...]) -> tuple[Tensor, ...]:
    """Views of the pieces from each bound to the next along an axis. Bounds are in range."""
    return _split(_slice, x, axis, bounds, False)


def select(input: Tensor, dim: int, index: int) -> Tensor:
    """A view of entry ``index`` along a dimension, without this dimension."""
    x = tensor_operand("select", input)
    axis, at = one_dim("select", dim, x._h.ndim), integer("select", "index", index)
    size = x.shape[axis]
    if not -size <= at < size:
        raise IndexError(f"[select] index {at} is out of range for dim {axis} of size {size}")
    return _split(_slice_view, x, axis, (at % size, at % size + 1), True)[0]


def unbind(input: Tensor, dim: int = 0, **numpy: Any) -> tuple[Tensor, ...]:
    """Views of all entries along a dimension, without this dimension."""
    x = tensor_operand("unbind", input)
    axis = one_dim("unbind", named_dim("unbind", dim, numpy), x._h.ndim)
    count = piece_count("unbind", x.shape[axis])
    return _split(_slice_view, x, axis, tuple(range(count + 1)), True)


def unfold(x: Tensor, dimension: int, size: int, step: int) -> Tensor:
    """A view of windows of ``size`` elements along a dimension, ``step`` apart.

    Window i has the elements ``i * step`` to ``i * step + size - 1``. The dimension becomes that of
    the windows. A new last dimension has their elements. An element in several windows gets the sum
    of their gradients, in a fixed order.

    >>> import minigrad as mg
    >>> mg.unfold(mg.arange(5), 0, 3, 2)
    tensor([[0, 1, 2],
            [2, 3, 4]])
    """
    x = tensor_operand("unfold", x)
    size, step = integer("unfold", "size", size), integer("unfold", "step", step)
    n = x.shape[one_dim("unfold", dimension, x._h.ndim)] if x._h.ndim else 1
    if not 0 <= size <= n or step < 1:
        raise ValueError(
            f"[unfold] windows of {size} elements, {step} apart, in {n}: the size is at most that, "
            "the step at least 1"
        )
    if not x._h.ndim:  # as in PyTorch, a 0-d tensor is one window
        return narrow(reshape(x, (1,)), 0, 0, size)
    axis, count = one_dim("unfold", dimension, x._h.ndim), (n - size) // step + 1
    last = x._h.ndim - 1
    line = x if axis == last else _moved(x, axis, last)
    if size == 0:
        line = unsqueeze(narrow(line, -1, 0, 0), -2)
        windows = expand(line, (*line.shape[:-2], count, 0))
    else:
        from minigrad.ops.window import WINDOWS, Windows

        at = Windows((count,), (size,), (step,), (1,))
        windows = apply(WINDOWS, (line,), (at,))
    return windows if axis == last else _moved(windows, last, axis)


# ---- side by side --------------------------------------------------------------------------------


def cat(tensors: Sequence[Any], dim: int = 0, **numpy: Any) -> Tensor:
    """Concatenate tensors along a dimension. All other sizes must agree."""
    if numpy:
        dim = named_dim("cat", dim, numpy)
    parts = promoted("cat", tensors)
    shapes = [p.shape for p in parts]
    if (0,) in shapes:  # as in PyTorch, tensors of shape (0,) are ignored
        parts = [p for p in parts if p.shape != (0,)] or parts
        shapes = [p.shape for p in parts]
    first = shapes[0]
    axis = one_dim("cat", dim, len(first))
    bounds = [0]
    for shape in shapes:
        if shape != first and (
            len(shape) != len(first)
            or shape[:axis] != first[:axis]
            or shape[axis + 1 :] != first[axis + 1 :]
        ):
            raise ValueError(f"[cat] shapes {first} and {shape} differ outside dim {axis}")
        bounds.append(bounds[-1] + shape[axis])
    return apply(_s.CAT, tuple(parts), (axis, tuple(bounds)))


def concat(tensors: Sequence[Any], dim: int = 0, **numpy: Any) -> Tensor:
    """As cat."""
    return cat(tensors, dim, **numpy)


def concatenate(tensors: Sequence[Any], dim: int = 0, **numpy: Any) -> Tensor:
    """As cat."""
    return cat(tensors, dim, **numpy)


def stack(tensors: Sequence[Any], dim: int = 0, **numpy: Any) -> Tensor:
    """Stack tensors of one shape along a new dimension."""
    if numpy:
        dim = named_dim("stack", dim, numpy)
    parts = promoted("stack", tensors)
    for part in parts:
        if part.shape != parts[0].shape:
            raise ValueError(f"[stack] shapes differ: {parts[0].shape} and {part.shape}")
    shape = parts[0].shape
    axis = one_dim("stack", dim, len(shape) + 1)
    if len(shape) == lib.MG_MAX_NDIM:
        raise ValueError(
            f"[stack] {len(shape) + 1} dimensions where at most {len(shape)} are possible"
        )
    return apply(_s.STACK, tuple(parts), (axis, len(parts)))


# ---- memory and dtype ----------------------------------------------------------------------------


def clone(input: Tensor, *, memory_format: Any = None) -> Tensor:
    """A contiguous copy that passes gradients on. ``memory_format`` changes nothing."""
    x = tensor_operand("clone", input)
    return apply(_s.COPY, (x,))


def contiguous(x: Tensor, memory_format: Any = None) -> Tensor:
    """x itself if it is contiguous, else a contiguous copy.

    ``memory_format`` is accepted and changes nothing: there is no channels-last layout.
    """
    x = tensor_operand("contiguous", x)
    return x if x._h.contiguous else clone(x)


def to(x: Tensor, dtype: Any) -> Tensor:
    """x cast to another dtype, or x itself if it has this dtype. Gradients are cast back."""
    x = tensor_operand("to", x)
    if dtype is None:
        raise TypeError("[to] a dtype is needed: x.to(mg.float32)")
    target, was = as_dtype(dtype), x.dtype
    if target is was and not x._h.weak:
        return x
    if x._edge is not None and target.is_storage and is_grad_enabled():
        check_keeps_grad("to", target)
    return apply(_s.CAST, (x,), (target, was))


def widen(x: Tensor) -> Tensor:
    """x in its compute dtype: x itself unless it has a storage dtype."""
    return to(x, x.dtype.wide) if x._h.dtype < 0 else x


def stored_as(y: Tensor, dtype: Any) -> Tensor:
    """A result cast to ``dtype``, if this is a storage dtype."""
    if dtype is None or not as_dtype(dtype).is_storage:
        return y
    return to(y, dtype)


def adjoint(input: Tensor) -> Tensor:
    """A view with the last two dimensions swapped, as ``input.mT``.

    Raises ValueError for fewer dimensions.
    """
    x = tensor_operand("adjoint", input)
    if x._h.ndim < 2:
        raise ValueError(f"[adjoint] the tensor has {x._h.ndim} dimensions, but needs 2 or more")
    return transpose(x, -2, -1)


def type_as(x: Tensor, other: Tensor) -> Tensor:
    """``to(x, other.dtype)``."""
    return to(x, tensor_operand("type_as", other).dtype)


def conj(input: Tensor) -> Tensor:
    """The input itself: minigrad has no complex dtypes, and reals are their own conjugates."""
    return tensor_operand("conj", input)


def real(input: Tensor) -> Tensor:
    """The input itself, which is real."""
    return tensor_operand("real", input)


def imag(input: Tensor) -> Tensor:
    """Zeros, the imaginary parts of real numbers, as in NumPy. PyTorch raises an error."""
    return zeros_like(tensor_operand("imag", input))
