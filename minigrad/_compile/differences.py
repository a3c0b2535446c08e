"""Comparisons of two arrays bit for bit, and texts that say where they differ."""

from __future__ import annotations

from typing import Any

from minigrad.functions.creation import to_numpy
from minigrad.runtime.dtypes import by_code
from minigrad.runtime.lazy_numpy import np
from minigrad.runtime.native import Array, call, kernels, lib

__all__ = ["copied", "difference_of", "look_of"]


def copied(array: Array) -> Array:
    """A contiguous copy, which no later write changes."""
    made: Array = call(kernels.copy, array)
    return made


def look_of(array: Any) -> str:
    """The dtype and shape of an array as a text."""
    return f"{by_code[array.dtype].name}{tuple(array.shape)}"


def difference_of(program: Array, function: Array) -> str | None:
    """Where the program's array and the function's differ; None for the same bits.

    NaN is equal to NaN, whatever its bits are. 0.0 and -0.0 differ. The text gives the first index
    at which they differ, both values there, and how many elements differ.
    """
    if (program.dtype, program.shape) != (function.dtype, function.shape):
        return f"the program has {look_of(program)} and the function has {look_of(function)}"
    first, second = _elements(program), _elements(function)
    if first.tobytes() == second.tobytes():
        return None
    unequal = _bits(first) != _bits(second)
    if first.dtype.kind == "f":
        unequal &= ~(np.isnan(first) & np.isnan(second))
    count = int(unequal.sum())
    if not count:
        return None
    place = int(unequal.reshape(-1).argmax())
    index = tuple([int(i) for i in np.unravel_index(place, first.shape)])
    values = first.reshape(-1)[place], second.reshape(-1)[place]
    both = f"the program has {values[0]!s} and the function has {values[1]!s}"
    if not index:
        return both
    at = index[0] if len(index) == 1 else index
    return f"at index {at} of {look_of(program)} {both}; {count} of {first.size} elements differ"


def _elements(array: Array) -> Any:
    """The elements as NumPy's array. bfloat16, which NumPy lacks, becomes float32."""
    made = copied(array)
    return to_numpy(call(kernels.cast, made, lib.MG_FLOAT32) if made.dtype == _BFLOAT16 else made)


_BFLOAT16 = lib.MG_BFLOAT16


def _bits(x: Any) -> Any:
    return np.ascontiguousarray(x).reshape(x.shape).view(f"u{x.dtype.itemsize}")
