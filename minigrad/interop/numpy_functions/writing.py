"""NumPy's functions that write into tensors, on the tape."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from minigrad import functions as f
from minigrad.functions import creation
from minigrad.interop.numpy_functions.reading import (
    beside,
    check_cast,
    refused,
    values_of,
    write_over,
)
from minigrad.tape.tensor_base import TensorBase

__all__ = ["TABLE", "place"]


def place(op: str, target: Any, values: Any, write: Callable[[Any, Any], Any]) -> None:
    """Write values into a tensor at the positions where ``write``, a NumPy function, writes them.

    The write is on the tape. If the target is an array, the values must need no gradient.
    """
    if not isinstance(target, TensorBase):
        if isinstance(values, TensorBase) and values._edge is not None:
            raise refused(op, "a tensor that requires grad cannot be written into an array")
        write(target, values_of(values))
        return
    new = f.ravel(f.to(beside(op, target, values), target.dtype))
    shape = np.shape(values_of(values))
    source = np.full(target.shape, -1)
    write(source, np.arange(new.size).reshape(shape))
    if (source >= 0).any():
        chosen = new[creation.tensor(np.maximum(source, 0))]
        mask = creation.tensor(source >= 0)
        write_over(op, target, f.where(mask, chosen, f.clone(target)))  # type: ignore[arg-type]


def _copyto(dst: Any, src: Any, casting: str = "same_kind", where: Any = True) -> None:
    if isinstance(dst, TensorBase):
        check_cast("copyto", beside("copyto", dst, src).dtype, dst.dtype, casting)
    mask = values_of(where)
    place("copyto", dst, src, lambda a, v: np.copyto(a, v, where=mask))


def _put(a: Any, ind: Any, v: Any, mode: str = "raise") -> None:
    at = values_of(ind)
    place("put", a, v, lambda a, v: np.put(a, at, v, mode=mode))  # type: ignore[arg-type]


def _put_along_axis(arr: Any, indices: Any, values: Any, axis: Any = -1) -> None:
    at = values_of(indices)
    place("put_along_axis", arr, values, lambda a, v: np.put_along_axis(a, at, v, axis))


def _putmask(a: Any, mask: Any, values: Any) -> None:
    chosen = values_of(mask)
    place("putmask", a, values, lambda a, v: np.putmask(a, chosen, v))


def _place(arr: Any, mask: Any, vals: Any) -> None:
    chosen = values_of(mask)
    place("place", arr, vals, lambda a, v: np.place(a, chosen, v))


def _fill_diagonal(a: Any, val: Any, wrap: bool = False) -> None:
    place("fill_diagonal", a, val, lambda a, v: np.fill_diagonal(a, v, wrap))


TABLE: dict[str, Callable[..., Any]] = {
    "copyto": _copyto,
    "fill_diagonal": _fill_diagonal,
    "place": _place,
    "put": _put,
    "put_along_axis": _put_along_axis,
    "putmask": _putmask,
}
