"""Inputs, outputs and upstream gradients of a function whose derivatives are checked."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from minigrad.functions.arguments import listed_tensors
from minigrad.functions.creation import from_numpy, numpy_dtype, tensor
from minigrad.tape.tensor_base import TensorBase

__all__ = [
    "Array",
    "as_tuple",
    "direction",
    "interleaved",
    "is_checked",
    "layouts",
    "outputs_of",
    "unit",
    "values_of",
    "write",
]

Array = np.ndarray[Any, Any]


def as_tuple(values: Any) -> tuple[Any, ...]:
    """A tensor, or a sequence of arguments, as a tuple."""
    if isinstance(values, TensorBase):
        return (values,)
    return tuple(listed_tensors("gradcheck", values))


def is_checked(x: Any) -> bool:
    """True for a tensor that requires grad."""
    return isinstance(x, TensorBase) and x._edge is not None


def outputs_of(func: Callable[..., Any], args: Sequence[Any]) -> list[Any]:
    """The outputs that hold floats."""
    result = func(*args)
    outputs = as_tuple(result) if isinstance(result, (TensorBase, tuple, list)) else (result,)
    if not outputs or not all(isinstance(y, TensorBase) for y in outputs):
        raise TypeError(f"[gradcheck] func returned {result!r}, not a tensor or several")
    return [y for y in outputs if y.dtype.is_floating_point]


def values_of(x: Any) -> Array:
    """A copy in NumPy."""
    return np.array(x.detach().numpy())


def write(x: Any, values: Any) -> None:
    """Write values into the memory of a tensor, whatever the tape holds."""
    x.detach().copy_(from_numpy(np.asarray(values)))


def direction(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Random sixteenths of either sign between 1/2 and 1.

    None is near 0, where a fault would hide; and being short in binary, they leave x + h u exact.
    """
    return np.asarray(rng.integers(8, 17, shape) / 16 * rng.choice((-1.0, 1.0), shape))


def unit(shape: tuple[int, ...], e: int) -> Array:
    """1 at one element, counted in row-major order, else 0."""
    u = np.zeros(shape)
    u.flat[e] = 1
    return u


def interleaved(v: Any) -> Any:
    """The same values, every other one in memory, with NaN between them."""
    spread = np.full((*v.shape, 2), np.nan, numpy_dtype(v.dtype))
    spread[..., 0] = values_of(v)
    return tensor(spread)[..., 0]


def layouts(upstream: Sequence[Any]) -> Iterator[tuple[str, list[tuple[Any, Any]]]]:
    """Ways for upstream gradients to lie in memory: pairs of equal values, contiguous and not."""
    yield "strided", [(v, interleaved(v)) for v in upstream]
    yield "transposed", [(v, v.T.clone().T) for v in upstream]
    rows = [(v[:1] if v.ndim and v.size else v).expand(v.shape) for v in upstream]
    yield "broadcast rows", [(v.clone(), v) for v in rows]
    ones = [tensor(0.75, v.dtype).expand(v.shape) for v in upstream]
    yield "one number broadcast", [(v.clone(), v) for v in ones]
