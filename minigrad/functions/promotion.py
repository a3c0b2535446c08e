"""Functions for dtype promotion and limits: ``result_type``, ``can_cast``, ``finfo``, ``iinfo``.

Operations that move values (``cat``, ``where``, an index) keep the dtype. For two dtypes the result
has the dtype of :func:`promote_types`, as in PyTorch. Arithmetic first widens storage dtypes:
integers to int64 and halves to float32. :func:`result_type` gives the dtype of its result.
"""

from __future__ import annotations

import functools
from typing import Any

from minigrad.functions.operands import as_operand, operand_error
from minigrad.runtime.dtypes import DType, as_dtype, float32, promoted_dtype
from minigrad.tape.tensor_base import TensorBase

__all__ = [
    "can_cast",
    "finfo",
    "iinfo",
    "is_floating_point",
    "promote_types",
    "result_type",
]


# For each float dtype: stored bits of the significand, exponent of the least normal number.
_FLOATS = {
    "float16": (10, -14),
    "bfloat16": (7, -126),
    "float32": (23, -126),
    "float64": (52, -1022),
}


class finfo:  # noqa: N801 - PyTorch's and NumPy's name
    """The limits of a float dtype, by default float32: bits, eps, max, min, tiny, resolution.

    ``tiny``, or ``smallest_normal``, is the smallest positive normal number. ``eps`` is the gap
    above 1. Raises TypeError for other dtypes.

    >>> import minigrad as mg
    >>> mg.finfo(mg.float16).max, mg.finfo(mg.bfloat16).eps
    (65504.0, 0.0078125)
    """

    __slots__ = ("bits", "dtype", "eps", "max", "min", "resolution", "smallest_normal", "tiny")

    def __init__(self, dtype: Any = float32) -> None:
        kind = as_dtype(dtype)
        if not kind.is_floating_point:
            raise TypeError(f"[finfo] {kind.name} holds no floats: use iinfo")
        stored, least = _FLOATS[kind.name]
        self.bits = 8 * kind.itemsize
        self.dtype = kind.name
        self.eps = 2.0**-stored
        self.max = (2.0 - self.eps) * 2.0 ** (1 - least)
        self.min = -self.max
        self.tiny = self.smallest_normal = 2.0**least
        self.resolution = 10.0 ** -int(stored * 0.30103)  # reliable decimal digits

    def __repr__(self) -> str:
        return (
            f"finfo(resolution={self.resolution:g}, min={self.min:g}, max={self.max:g}, "
            f"eps={self.eps:g}, smallest_normal={self.tiny:g}, tiny={self.tiny:g}, "
            f"dtype={self.dtype})"
        )


class iinfo:  # noqa: N801
    """The limits of an integer dtype: bits, min, max. Raises TypeError for other dtypes.

    >>> import minigrad as mg
    >>> mg.iinfo(mg.uint8).max, mg.iinfo(mg.int16).min
    (255, -32768)
    """

    __slots__ = ("bits", "dtype", "max", "min")

    def __init__(self, dtype: Any) -> None:
        kind = as_dtype(dtype)
        if kind.kind != 1:
            raise TypeError(f"[iinfo] {kind.name} holds no integers")
        self.bits = 8 * kind.itemsize
        self.dtype = kind.name
        self.max: int = 2 ** (self.bits - kind.is_signed) - 1
        self.min: int = -self.max - 1 if kind.is_signed else 0

    def __repr__(self) -> str:
        return f"iinfo(min={self.min}, max={self.max}, dtype={self.dtype})"


def promote_types(type1: Any, type2: Any) -> DType:
    """The common dtype of two dtypes, as in PyTorch.

    >>> import minigrad as mg
    >>> mg.promote_types(mg.uint8, mg.int8), mg.promote_types(mg.int64, mg.float16)
    (minigrad.int16, minigrad.float16)
    """
    return promoted_dtype(as_dtype(type1), as_dtype(type2))


def result_type(*operands: Any) -> DType:
    """The dtype of arithmetic on these tensors, Python numbers and dtypes.

    A Python number can only raise the kind, from bool to integer to float.

    >>> import minigrad as mg
    >>> mg.result_type(mg.zeros(2, dtype=mg.uint8), 1), mg.result_type(mg.float16, mg.int32)
    (minigrad.int64, minigrad.float32)
    """
    strong: list[DType] = []
    numbers: list[DType] = []
    for given in operands:
        if isinstance(given, (DType, type, str)):
            strong.append(as_dtype(given))
            continue
        found = as_operand(given)
        if found is None:
            raise operand_error("result_type", given)
        (numbers if found._h.weak else strong).append(found.dtype)
    if not strong and not numbers:
        raise ValueError("[result_type] needs at least one operand")
    kinds = [kind.wide for kind in strong]
    for number in numbers:
        if number.kind > max([kind.kind for kind in kinds], default=-1):
            kinds.append(number if number.kind < 2 else float32)
    return functools.reduce(promoted_dtype, kinds)


def can_cast(from_: Any, to: Any) -> bool:
    """True if a conversion does not lower the kind, from float to integer to bool.

    As in PyTorch, a conversion to fewer bits is allowed.

    >>> import minigrad as mg
    >>> mg.can_cast(mg.float64, mg.float16), mg.can_cast(mg.float32, mg.int64)
    (True, False)
    """
    return as_dtype(from_).kind <= as_dtype(to).kind


def is_floating_point(input: Any) -> bool:
    """True if the tensor's dtype is a float. Raises TypeError for anything but a tensor."""
    if not isinstance(input, TensorBase):
        raise TypeError(f"[is_floating_point] expected a Tensor, not {type(input).__name__}")
    return input.dtype.is_floating_point
