"""How NumPy's functions on tensors read their arguments, and the error where they cannot."""

from __future__ import annotations

from typing import Any

import numpy as np

from minigrad import creation
from minigrad import functions as f
from minigrad.arguments import renamed
from minigrad.dtypes import by_name
from minigrad.inplace import overwrite
from minigrad.operands import tensor_operands
from minigrad.tape.tensor_base import TensorBase

__all__ = [
    "as_line",
    "as_tensors",
    "beside",
    "check_cast",
    "exactly",
    "refused",
    "values_of",
    "write_over",
]


def refused(name: str, why: str) -> TypeError:
    """The error of a function, or an argument of it, that tensors do not have."""
    return TypeError(
        f"[numpy.{name}] {why}: convert with x.detach().numpy() to leave the graph, or use "
        "minigrad's own functions"
    )


def values_of(x: Any) -> Any:
    """Tensors as NumPy's arrays, in lists and tuples too; all else as it is."""
    if isinstance(x, TensorBase):
        return x.detach().numpy()  # type: ignore[attr-defined]
    if type(x) in (list, tuple):
        return type(x)(map(values_of, x))
    return x


def as_tensors(found: Any) -> Any:
    """NumPy's arrays as tensors, in lists and tuples too, where there is a tensor of the dtype."""
    if isinstance(found, (np.ndarray, np.generic)) and found.dtype.name in by_name:
        return creation.tensor(np.asarray(found))
    if isinstance(found, (list, tuple)):
        made = [as_tensors(x) for x in found]
        return type(found)(*made) if hasattr(found, "_fields") else type(found)(made)
    return found


def beside(op: str, a: Any, value: Any) -> Any:
    """A value as a tensor; numbers and lists in the float dtype of the tensor beside them."""
    return tensor_operands(f"numpy.{op}", a, value)[1]


def exactly(x: Any) -> Any:
    """A value as a tensor; of numbers and lists the dtype is NumPy's."""
    return x if isinstance(x, TensorBase) else creation.asarray(np.asarray(values_of(x)))


def as_line(x: Any) -> Any:
    """A number as a vector of one, which NumPy's functions along an axis take it for."""
    return x if x.ndim else f.reshape(x, (1,))


def check_cast(name: str, given: Any, wanted: Any, casting: str = "same_kind") -> None:
    """TypeError where NumPy would not cast the one dtype to the other."""
    can_cast: Any = np.can_cast
    if not can_cast(given.name, wanted.name, casting):
        raise TypeError(
            f"[numpy.{name}] {given.name} is not cast to {wanted.name} by casting={casting!r}: "
            f"use x.to({wanted!r}) first"
        )


def write_over(name: str, target: Any, result: Any) -> Any:
    """Write a result, broadcast and cast, over a tensor, on the tape; returns the tensor."""
    try:
        return overwrite(f"numpy.{name}", target, result)
    except ValueError as error:
        raise renamed(f"numpy.{name}", error) from None
