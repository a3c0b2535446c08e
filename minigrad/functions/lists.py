"""Conversion of nested lists and tuples of numbers to arrays, and back."""

from __future__ import annotations

import math
from itertools import chain
from typing import TYPE_CHECKING, Any

from minigrad.runtime.dtypes import bool_, by_code, float32, int64
from minigrad.runtime.native import Array, call, ffi, kernels, lib, widened
from minigrad.tape.speed import accelerator
from minigrad.tape.tensor_base import wrap

if TYPE_CHECKING:
    from minigrad._tensor import Tensor

__all__ = ["from_lists", "to_lists"]

_C_TYPES = {
    "bool": "unsigned char *",
    "int64": "int64_t *",
    "float32": "float *",
    "float64": "double *",
}
_LISTS = (list, tuple)
_INT64 = range(-(2**63), 2**63)


def from_lists(data: Any, floats: int, weak: bool, /) -> Tensor | None:
    """A tensor of a Python number, or of nested lists and tuples of Python numbers.

    Floats get the dtype with the code ``floats``. The result is None for other data, and for wrong
    lists.
    """
    flat = _flat(data)
    if flat is None:
        return None
    numbers, shape = flat
    kinds = set(map(type, numbers))
    if not kinds <= {bool, int, float}:
        return None
    if int in kinds and any(type(n) is int and n not in _INT64 for n in numbers):
        return None
    code = floats if float in kinds or not kinds else int64.code if int in kinds else bool_.code
    made = _allocated(code, shape)
    if numbers:
        values = [float(n) for n in numbers] if code >= float32.code else numbers
        _memory(made, code)[0 : len(values)] = values
    if weak:
        made.mark_weak()
    return wrap(made)


def _allocated(code: int, shape: tuple[int, ...]) -> Array:
    """An uninitialised array. A MemoryError names ``tensor``."""
    try:
        return call(kernels.empty, code, shape)
    except MemoryError as error:
        raise MemoryError(str(error).replace("[empty]", "[tensor]", 1)) from None


def _flat(data: Any) -> tuple[list[Any], tuple[int, ...]] | None:
    """The items of nested lists in order, and the shape. None if the sizes of lists differ."""
    numbers, shape = [data], list[int]()
    while numbers and type(numbers[0]) in _LISTS:
        size = len(numbers[0])
        if len(shape) == lib.MG_MAX_NDIM:
            return None
        if any(type(each) not in _LISTS or len(each) != size for each in numbers):
            return None
        shape.append(size)
        numbers = list(chain.from_iterable(numbers))
    return numbers, tuple(shape)


def to_lists(handle: Array, /) -> Any:
    """The elements as nested lists of numbers, or one number for a 0-d array."""
    x = widened(handle)
    if not x.contiguous:
        x = call(kernels.copy, x)
    shape = x.shape
    values = ffi.unpack(_memory(x, x.dtype), x.size) if x.size else []
    if x.dtype == bool_.code:
        values = [byte != 0 for byte in values]
    for axis in range(len(shape) - 1, -1, -1):
        size, rows = shape[axis], math.prod(shape[:axis])
        values = [values[i * size : (i + 1) * size] for i in range(rows)]
    return values[0]


def _memory(x: Array, code: int) -> Any:
    return ffi.cast(_C_TYPES[by_code[code].name], x.data)


if accelerator:
    from_lists, to_lists = accelerator.from_lists, accelerator.to_lists
