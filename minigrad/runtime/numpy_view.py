"""NumPy views: an array's memory as NumPy reads it."""

from __future__ import annotations

import sys
from typing import Any

from minigrad.runtime.dtypes import bfloat16, by_code
from minigrad.runtime.native import Array

__all__ = ["numpy_view"]


class _View:
    """Object that a NumPy array keeps alive. A writable array counts as shared while this lives."""

    __slots__ = ("__array_interface__", "_handle", "_lent")

    def __init__(self, handle: Array) -> None:
        dtype = by_code[handle.dtype]
        lent = not handle.pins and handle.writable
        letter = "u" if not dtype.is_signed and dtype.kind else "bif"[dtype.kind]
        self._handle, self._lent = handle, False
        self.__array_interface__ = {
            "version": 3,
            "typestr": f"{dtype.byteorder.replace('=', _ORDER)}{letter}{dtype.itemsize}",
            "shape": handle.shape,
            "strides": tuple([step * dtype.itemsize for step in handle.strides]),
            "data": (handle.data, not lent),
        }
        if lent:
            handle.share(1)
            self._lent = True

    def __del__(self) -> None:
        if self._lent:
            self._handle.share(-1)


_ORDER = "<" if sys.byteorder == "little" else ">"


def numpy_view(handle: Array, /) -> Any:
    """An object that NumPy reads as an array on this memory, read-only while a graph needs it."""
    if handle.dtype == bfloat16.code:
        raise TypeError(
            "[numpy] NumPy has no bfloat16: use x.float().numpy(), or "
            "x.view(mg.int16).numpy() for the bits"
        )
    return _View(handle)
