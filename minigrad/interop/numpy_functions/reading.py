"""Parsing of arguments of NumPy's functions on tensors, and the error for unsupported ones."""

from __future__ import annotations

from typing import Any

import numpy as np

from minigrad import functions as f
from minigrad._tensor.inplace import overwrite
from minigrad.functions import creation
from minigrad.functions.arguments import renamed
from minigrad.functions.operands import tensor_operands
from minigrad.runtime.dtypes import by_name
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
    """The error for a function, or an argument, that tensors do not support."""
    return TypeError(
        f"[numpy.{name}] {why}: convert with x.detach().numpy() to leave the graph, or use "
        "minigrad's own functions"
    )


def values_of(x: Any) -> Any:
    """Convert tensors to NumPy arrays, also in lists and tuples. Other values are unchanged."""
    if isinstance(x, TensorBase):
        return x.detach().numpy()  # type: ignore[attr-defined]
    if type(x) in (list, tuple):
        return type(x)(map(values_of, x))
    return x


def as_tensors(found: Any) -> Any:
    """Convert NumPy arrays to tensors, also in lists and tuples, if the dtype is supported."""
    if isinstance(found, (np.ndarray, np.generic)) and found.dtype.name in by_name:
        return creation.tensor(np.asarray(found))
    if isinstance(found, (list, tuple)):
        made = [as_tensors(x) for x in found]
        return type(found)(*made) if hasattr(found, "_fields") else type(found)(made)
    return found


def beside(op: str, a: Any, value: Any) -> Any:
    """A value as a tensor. Numbers and lists get the float dtype of the tensor ``a``."""
    return tensor_operands(f"numpy.{op}", a, value)[1]


def exactly(x: Any) -> Any:
    """A value as a tensor. Numbers and lists get the dtype that NumPy gives them."""
    return x if isinstance(x, TensorBase) else creation.asarray(np.asarray(values_of(x)))


def as_line(x: Any) -> Any:
    """A 0-d tensor as a vector of one element, as NumPy's functions along an axis treat it."""
    return x if x.ndim else f.reshape(x, (1,))


def check_cast(name: str, given: Any, target: Any, casting: str = "same_kind") -> None:
    """Raise a TypeError if NumPy would not cast the one dtype to the other."""
    can_cast: Any = np.can_cast
    if not can_cast(given.name, target.name, casting):
        raise TypeError(
            f"[numpy.{name}] {given.name} is not cast to {target.name} by casting={casting!r}: "
            f"use x.to({target!r}) first"
        )


def write_over(name: str, target: Any, result: Any) -> Any:
    """Write a result, broadcast and cast, over a tensor, on the tape. Returns the tensor."""
    try:
        return overwrite(f"numpy.{name}", target, result)
    except ValueError as error:
        raise renamed(f"numpy.{name}", error) from None
