"""The memory of an array as NumPy reads it."""

from __future__ import annotations

import sys
from typing import Any

from minigrad._c import Handle, lib
from minigrad.dtypes import bfloat16, by_code
from minigrad.tape.speed import accelerator
from minigrad.tape_in_c import keep

__all__ = ["keep", "numpy_view"]


class _View:
    """What a NumPy array on the memory keeps alive. A writable array is lent until this goes."""

    __slots__ = ("__array_interface__", "_handle", "_lent")

    def __init__(self, handle: Handle) -> None:
        dtype = by_code[handle.dtype]
        lent = not lib.mg_pins(handle) and bool(lib.mg_writable(handle))
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
            lib.mg_share(handle, 1)
            self._lent = True

    def __del__(self) -> None:
        if self._lent:
            lib.mg_share(self._handle, -1)


_ORDER = "<" if sys.byteorder == "little" else ">"


def numpy_view(handle: Handle, /) -> Any:
    """What NumPy makes an array of, on the same memory; read-only while a graph needs that."""
    if handle.dtype == bfloat16.code:
        raise TypeError(
            "[numpy] NumPy has no bfloat16: use x.float().numpy(), or "
            "x.view(mg.int16).numpy() for the bits"
        )
    return _View(handle)


if accelerator:
    numpy_view = accelerator.numpy_view
