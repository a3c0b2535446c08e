"""Parsing and checking of arguments: tensors, dimensions, sizes and NumPy's spellings."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from minigrad.functions.operands import strong_operand
from minigrad.functions.operands import tensor_operands as tensor_operands
from minigrad.ops import shape as _s
from minigrad.runtime.dtypes import by_code, promoted_dtype
from minigrad.runtime.native import lib
from minigrad.tape.apply import apply
from minigrad.tape.tensor_base import TensorBase

if TYPE_CHECKING:
    from minigrad._tensor import Tensor

# ---- tensors -------------------------------------------------------------------------------------


def tensor_operand(op: str, x: Any) -> Tensor:
    """``x`` as a tensor; TypeError naming the operation for anything else."""
    if isinstance(x, TensorBase):
        return x  # type: ignore[return-value]
    return strong_operand(op, x)


def several(op: str, tensors: Sequence[Any]) -> list[Tensor]:
    """The tensors given one by one, or as one list or tuple."""
    if len(tensors) == 1 and isinstance(tensors[0], (tuple, list)):
        tensors = tensors[0]
    return tensor_operands(op, *tensors)


def listed_tensors(op: str, tensors: Any) -> list[Any]:
    """Elements of a list or of another iterable; TypeError for what has none."""
    if isinstance(tensors, TensorBase):
        raise TypeError(f"[{op}] expected a list of tensors, not one: [x], or x.unbind() for rows")
    try:
        return list(tensors)
    except TypeError:
        raise TypeError(
            f"[{op}] expected a list of tensors, not {type(tensors).__name__}"
        ) from None


def promoted(op: str, tensors: Sequence[Any]) -> list[Tensor]:
    """The tensors in the dtype they have together; ValueError if there are none."""
    found = tensor_operands(op, *listed_tensors(op, tensors))
    if not found:
        raise ValueError(f"[{op}] needs at least one tensor")
    codes = [x._h.dtype for x in found]
    if codes.count(codes[0]) == len(codes):
        return found
    dtype = functools.reduce(promoted_dtype, map(by_code.__getitem__, codes))
    return [x if x.dtype is dtype else apply(_s.CAST, (x,), (dtype, x.dtype)) for x in found]


def common_shape(op: str, *tensors: Tensor) -> tuple[int, ...]:
    """The shape to which tensors broadcast; ValueError if there is none."""
    return broadcast_shape(op, *[x.shape for x in tensors])


def broadcast_shape(op: str, *shapes: tuple[int, ...]) -> tuple[int, ...]:
    """The shape to which shapes broadcast; ValueError if there is none."""
    shape: list[int] = []
    for sizes in itertools.zip_longest(*map(reversed, shapes), fillvalue=1):
        wider = {n for n in sizes if n != 1}
        if len(wider) > 1:
            given = ", ".join(map(str, shapes))
            raise ValueError(f"[{op}] shapes {given} do not broadcast together")
        shape.append(wider.pop() if wider else 1)
    return tuple(reversed(shape))


def renamed(op: str, error: Exception) -> Exception:
    """The error of a kernel, in the name of the operation it was called for."""
    return type(error)(f"[{op}] {str(error).partition('] ')[2]}")


# ---- numbers -------------------------------------------------------------------------------------

_NO_INTEGER = AttributeError, TypeError, ValueError  # what a wrong argument's __index__ raises


def integer(op: str, name: str, value: Any, least: int | None = None) -> int:
    """An integer argument; TypeError for anything else, ValueError for one below ``least``."""
    if type(value) is int and least is None:
        return value
    try:
        found = int(value.__index__())
    except _NO_INTEGER:
        raise TypeError(f"[{op}] {name} must be an integer, not {type(value).__name__}") from None
    if least is not None and found < least:
        raise ValueError(f"[{op}] {name} is {found}, but must be at least {least}")
    return found


def real(op: str, name: str, value: Any) -> float:
    """A number, or a tensor or array of one element, as a float; TypeError for anything else.

    That is also a tensor that requires grad, which would get no gradient.
    """
    if type(value) is float:
        return value
    if isinstance(value, TensorBase) and value._edge is not None:
        raise TypeError(
            f"[{op}] {name} is a tensor that requires grad, but gets none: give a number"
        )
    try:
        if not isinstance(value, (str, bytes, bytearray)):
            # NumPy itself makes numbers only of arrays without dimensions.
            return float(value.item() if hasattr(value, "item") else value)
    except OverflowError:
        raise OverflowError(f"[{op}] {name} is too large for a float") from None
    except (TypeError, ValueError):
        pass
    raise TypeError(f"[{op}] {name} must be a number, not {type(value).__name__}")


def older_form(op: str, name: str, keyword: Any, given: Sequence[Any], operands: int) -> Any:
    """A factor and the operands after it, of PyTorch's older ``addcmul(x, value, a, b)``."""
    if len(given) != 1 + operands:
        raise TypeError(
            f"[{op}] takes {1 + operands} operands, and {name} before the last "
            + ("one" if operands == 1 else str(operands))
            + f", but {1 + len(given)} arguments were given"
        )
    if keyword != 1:
        raise TypeError(f"[{op}] {name} is given twice")
    real(op, name, given[0])
    return given


def yes_or_no(op: str, name: str, value: Any) -> bool:
    """A bool of Python's or NumPy's; TypeError for anything else, as a number that is meant to be
    another dim.
    """
    if value is True or value is False:
        return value
    if getattr(getattr(value, "dtype", None), "kind", "") == "b" and not value.ndim:
        return bool(value)
    raise TypeError(
        f"[{op}] {name} must be True or False, not {type(value).__name__}: "
        "several dims are a tuple, dim=(0, 1)"
    )


_MOST_PIECES = 2**24  # tensors, of some 300 bytes each


def piece_count(op: str, count: int) -> int:
    """Number of pieces of a tensor; MemoryError for more than there would be room for."""
    if count > _MOST_PIECES:
        raise MemoryError(f"[{op}] no memory for {count} tensors")
    return count


# ---- dimensions and sizes ------------------------------------------------------------------------


def one_dim(op: str, dim: Any, ndim: int) -> int:
    """A dimension counted from the front; IndexError if there is none such."""
    if type(dim) is int and -ndim <= dim < ndim:
        return dim if dim >= 0 else dim + ndim
    wrong = isinstance(dim, bool)  # a number to Python, but meant for another argument
    try:
        axis: int = dim.__index__()
    except _NO_INTEGER:
        wrong = True
    if wrong:
        raise TypeError(f"[{op}] dim must be an integer, not {type(dim).__name__}")
    if not -ndim <= axis < ndim:
        raise IndexError(
            f"[{op}] dim {axis} is out of range for {ndim} dimensions"
            + (f": use {-ndim}..{ndim - 1}" if ndim else "")
        )
    return axis % ndim


def row_of_numbers(given: Any) -> bool:
    """Is it a range, an array or a tensor, of one dimension?"""
    return isinstance(given, range) or getattr(given, "ndim", 0) == 1


def size_of(op: str, size: Sequence[Any]) -> tuple[int, ...]:
    """A shape given as ``f(2, 3)`` or ``f((2, 3))``."""
    if len(size) == 1 and isinstance(size[0], (tuple, list)):
        size = size[0]
    for n in size:
        if type(n) is not int:
            break
    else:
        return tuple(size)
    try:
        if not any(isinstance(n, bool) for n in size):  # a number to Python alone
            return tuple([n.__index__() for n in size])
        raise TypeError
    except _NO_INTEGER:
        if len(size) == 1 and row_of_numbers(size[0]):
            return size_of(op, list(size[0][: lib.MG_MAX_NDIM + 1]))  # a range may be of any length
        raise TypeError(f"[{op}] sizes are integers, got {tuple(size)}") from None


_EVERY = tuple(tuple(range(ndim)) for ndim in range(lib.MG_MAX_NDIM + 1))


def some_dims(op: str, dim: Any, ndim: int) -> tuple[int, ...]:
    """Dimensions counted from the front, in order; None means all.

    A number counts as a row of one, as in PyTorch: its dims are 0 and -1, and there is none to
    reduce.
    """
    if dim is None:
        return _EVERY[ndim]
    if not ndim:
        for d in dim if isinstance(dim, (tuple, list)) else (dim,):
            one_dim(op, d, 1)
        return ()
    if not isinstance(dim, (tuple, list)):
        return (one_dim(op, dim, ndim),)
    axes = sorted([one_dim(op, d, ndim) for d in dim])
    for before, after in itertools.pairwise(axes):
        if before == after:
            raise ValueError(f"[{op}] dim {after} is given twice in {tuple(dim)}")
    return tuple(axes)


def spelled(op: str, dim: Any, keepdim: bool, numpy: dict[str, Any]) -> tuple[Any, bool]:
    """NumPy's spelling: ``axis`` for dim, ``keepdims``, which may be a number, for keepdim."""
    if not numpy and type(keepdim) is bool:
        return dim, keepdim
    keepdim = yes_or_no(op, "keepdim", keepdim)
    for name, value in numpy.items():
        if name == "axis" and dim is None:
            dim = value
        elif name == "keepdims":
            keepdim = value
        else:
            raise TypeError(f"[{op}] unexpected argument {name!r} (dim/axis, keepdim/keepdims)")
    return dim, bool(keepdim)


def listed(op: str, values: Sequence[Any], named: dict[str, Any], *names: str) -> Sequence[Any]:
    """The numbers of ``f(x, 1, 2)``, ``f(x, (1, 2))`` or by keyword, ``f(x, dims=(1, 2))``."""
    for name, value in named.items():
        if name not in names or values:
            raise TypeError(f"[{op}] unexpected argument {name!r} ({' or '.join(names)})")
        values = (value,)
    return values


def named_dim(op: str, dim: Any, numpy: dict[str, Any]) -> Any:
    """``axis`` where it was given for dim; TypeError for any other keyword."""
    for name, value in numpy.items():
        if name != "axis":
            raise TypeError(f"[{op}] unexpected argument {name!r} (dim or axis)")
        dim = value
    return dim
