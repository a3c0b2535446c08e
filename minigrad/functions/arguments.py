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
    """Return ``x`` if it is a tensor. Raises TypeError naming the operation for anything else."""
    if isinstance(x, TensorBase):
        return x  # type: ignore[return-value]
    return strong_operand(op, x)


def several(op: str, tensors: Sequence[Any]) -> list[Tensor]:
    """The tensors of ``f(a, b)`` or of ``f([a, b])``."""
    if len(tensors) == 1 and isinstance(tensors[0], (tuple, list)):
        tensors = tensors[0]
    return tensor_operands(op, *tensors)


def listed_tensors(op: str, tensors: Any) -> list[Any]:
    """The elements of a list or another iterable. Raises TypeError for anything else."""
    if isinstance(tensors, TensorBase):
        raise TypeError(f"[{op}] expected a list of tensors, not one: [x], or x.unbind() for rows")
    try:
        return list(tensors)
    except TypeError:
        raise TypeError(
            f"[{op}] expected a list of tensors, not {type(tensors).__name__}"
        ) from None


def promoted(op: str, tensors: Sequence[Any]) -> list[Tensor]:
    """The tensors cast to their common dtype. Raises ValueError for an empty list."""
    found = tensor_operands(op, *listed_tensors(op, tensors))
    if not found:
        raise ValueError(f"[{op}] needs at least one tensor")
    codes = [x._h.dtype for x in found]
    if codes.count(codes[0]) == len(codes):
        return found
    dtype = functools.reduce(promoted_dtype, map(by_code.__getitem__, codes))
    return [x if x.dtype is dtype else apply(_s.CAST, (x,), (dtype, x.dtype)) for x in found]


def common_shape(op: str, *tensors: Tensor) -> tuple[int, ...]:
    """The shape to which tensors broadcast. Raises ValueError if there is none."""
    return broadcast_shape(op, *[x.shape for x in tensors])


def broadcast_shape(op: str, *shapes: tuple[int, ...]) -> tuple[int, ...]:
    """The shape to which shapes broadcast. Raises ValueError if there is none."""
    shape: list[int] = []
    for sizes in itertools.zip_longest(*map(reversed, shapes), fillvalue=1):
        wider = {n for n in sizes if n != 1}
        if len(wider) > 1:
            given = ", ".join(map(str, shapes))
            raise ValueError(f"[{op}] shapes {given} do not broadcast together")
        shape.append(wider.pop() if wider else 1)
    return tuple(reversed(shape))


def renamed(op: str, error: Exception) -> Exception:
    """The error of a kernel, with the name of the operation that called it."""
    return type(error)(f"[{op}] {str(error).partition('] ')[2]}")


# ---- numbers -------------------------------------------------------------------------------------

# errors that __index__ of a wrong argument raises
_NO_INTEGER = AttributeError, TypeError, ValueError


def integer(op: str, name: str, value: Any, least: int | None = None) -> int:
    """An integer argument.

    Raises TypeError for anything else, ValueError for an integer below ``least``.
    """
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
    """A number, or a tensor or array of one element, as a float.

    Raises TypeError for anything else.

    A tensor that requires grad raises TypeError too, since it would get no gradient.
    """
    if type(value) is float:
        return value
    if isinstance(value, TensorBase) and value._edge is not None:
        raise TypeError(
            f"[{op}] {name} is a tensor that requires grad, but gets none: give a number"
        )
    try:
        if not isinstance(value, (str, bytes, bytearray)):
            # NumPy converts only arrays without dimensions to numbers.
            return float(value.item() if hasattr(value, "item") else value)
    except OverflowError:
        raise OverflowError(f"[{op}] {name} is too large for a float") from None
    except (TypeError, ValueError):
        pass
    raise TypeError(f"[{op}] {name} must be a number, not {type(value).__name__}")


def older_form(op: str, name: str, keyword: Any, given: Sequence[Any], operands: int) -> Any:
    """The factor and the operands of PyTorch's older form ``addcmul(x, value, a, b)``."""
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
    """A Python or NumPy bool.

    Raises TypeError for anything else, such as a number that is meant as another dim.
    """
    if value is True or value is False:
        return value
    if getattr(getattr(value, "dtype", None), "kind", "") == "b" and not value.ndim:
        return bool(value)
    raise TypeError(
        f"[{op}] {name} must be True or False, not {type(value).__name__}: "
        "several dims are a tuple, dim=(0, 1)"
    )


_MOST_PIECES = 2**24  # tensors of about 300 bytes each


def piece_count(op: str, count: int) -> int:
    """A number of pieces of a tensor. Raises MemoryError for more pieces than memory holds."""
    if count > _MOST_PIECES:
        raise MemoryError(f"[{op}] no memory for {count} tensors")
    return count


# ---- dimensions and sizes ------------------------------------------------------------------------


def one_dim(op: str, dim: Any, ndim: int) -> int:
    """A dimension counted from the front. Raises IndexError for a dimension out of range."""
    if type(dim) is int and -ndim <= dim < ndim:
        return dim if dim >= 0 else dim + ndim
    # Python takes a bool for a number, but the caller meant another argument
    wrong = isinstance(dim, bool)
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
    """True for a range, and for an array or tensor of one dimension."""
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
        if not any(isinstance(n, bool) for n in size):  # Python takes a bool for a number
            return tuple([n.__index__() for n in size])
        raise TypeError
    except _NO_INTEGER:
        if len(size) == 1 and row_of_numbers(size[0]):
            return size_of(op, list(size[0][: lib.MG_MAX_NDIM + 1]))  # a range may be of any length
        raise TypeError(f"[{op}] sizes are integers, got {tuple(size)}") from None


_EVERY = tuple(tuple(range(ndim)) for ndim in range(lib.MG_MAX_NDIM + 1))


def some_dims(op: str, dim: Any, ndim: int) -> tuple[int, ...]:
    """Dimensions counted from the front, in order; None means all.

    As in PyTorch, dims 0 and -1 are allowed for a 0-d tensor, and no dimension is reduced.
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
    """dim and keepdim, also if given in NumPy's spelling as ``axis`` and ``keepdims``.

    ``keepdims`` may be a number.
    """
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
    """The numbers of ``f(x, 1, 2)``, of ``f(x, (1, 2))`` or of ``f(x, dims=(1, 2))``."""
    for name, value in named.items():
        if name not in names or values:
            raise TypeError(f"[{op}] unexpected argument {name!r} ({' or '.join(names)})")
        values = (value,)
    return values


def named_dim(op: str, dim: Any, numpy: dict[str, Any]) -> Any:
    """dim, or ``axis`` in its place. Raises TypeError for any other keyword."""
    for name, value in numpy.items():
        if name != "axis":
            raise TypeError(f"[{op}] unexpected argument {name!r} (dim or axis)")
        dim = value
    return dim
