"""Arrays of batched tensors: what stands in a tensor's place for the array that it lacks.

``vmap`` runs a function once, on tensors that hold all slices and show the shape of one. Such a
tensor has no array. Its ``_h`` is a BatchedArray: the shape and dtype of one slice, and nothing
that a kernel takes. A kernel, a row or a view that meets one fails, and the code of that failure
asks here. Ordinary tensors never come here.

The functions that the accelerator calls return a tuple of the result, or None where nothing is
batched and the error stands.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from functools import cache
from typing import Any

__all__ = ["BatchedArray", "BatchedOperandError", "BatchedValueError", "by_rules", "running"]


running: list[Any] = []  # the levels of all vmaps that run now


class BatchedOperandError(TypeError):
    """A batched tensor where only an ordinary one will do."""


class BatchedValueError(RuntimeError):
    """A question about a batched tensor that each slice may answer in its own way."""


class BatchedArray:
    """The array that a batched tensor shows: that of one slice, without its values.

    ``held`` is the array of all slices, the batch in front.
    """

    __slots__ = ("dtype", "held", "level", "shape")

    weak = False

    def __init__(self, level: Any, held: Any) -> None:
        self.level = level
        self.held = held
        self.shape = held.shape[1:]
        self.dtype = held.dtype

    @property
    def ndim(self) -> int:
        """The number of dimensions of a slice."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements of a slice."""
        count = 1
        for n in self.shape:
            count *= n
        return count

    @property
    def strides(self) -> tuple[int, ...]:
        """The steps of a slice."""
        strides: tuple[int, ...] = self.held.strides[1:]
        return strides

    @property
    def contiguous(self) -> bool:
        """Whether the elements of a slice lie in row-major order without gaps."""
        step = 1
        for n, stride in zip(reversed(self.shape), reversed(self.strides), strict=True):
            if n > 1 and stride != step:
                return False
            step *= n
        return True

    def item(self) -> Any:
        """RuntimeError: every slice has its own."""
        raise by_rules("no_value")("item")

    def __getattr__(self, name: str) -> Any:
        raise BatchedOperandError(
            f"[vmap] this asks for {name!r} of a tensor's memory, and in vmap a tensor has none of "
            'its own: take the operation out of vmap, or call vmap with fallback="loop"'
        )


@cache
def by_rules(name: str) -> Callable[..., Any]:
    """A function of the rules, which are loaded with the first vmap."""
    found: Callable[..., Any] = getattr(importlib.import_module("minigrad.func.dispatch"), name)
    return found


def arrays_in(values: Any) -> list[BatchedArray]:
    """The batched arrays in nested lists and tuples."""
    found = []
    for x in values:
        if type(x) is BatchedArray:
            found.append(x)
        elif isinstance(x, (list, tuple)):
            found += arrays_in(x)
    return found


def _is_batched(x: Any) -> bool:
    return type(x) is BatchedArray or hasattr(type(x), "_level")


def _holds_batched(values: Any) -> bool:
    return any(
        _holds_batched(x) if isinstance(x, (list, tuple)) else _is_batched(x) for x in values
    )


def batched_row(row: Any, inputs: Any, args: Any) -> Any:
    """A row of the op table on batched tensors; args are None for all axes of a reduction."""
    if not any(map(_is_batched, inputs)) and not _holds_batched(args or ()):
        return None
    return (by_rules("row")(row, inputs, args),)


def batched_call(number: int, args: Any) -> Any:
    """A kernel on batched arrays."""
    return (by_rules("kernel")(number, args),) if arrays_in(args) else None


def batched_wrap(handle: Any, edge: Any) -> Any:
    """A batched array as a tensor; anything else is refused."""
    return (by_rules("wrapped")(handle, edge),) if type(handle) is BatchedArray else None


def batched_parent(x: Any) -> Any:
    """BatchedOperandError: its place on the tape is that of the tensor with all slices."""
    if _is_batched(x):
        raise by_rules("no_parent")()
    return None


def batched_index(x: Any, index: Any) -> Any:
    """The view that a basic index makes."""
    return (by_rules("basic_index")(x, index),) if _is_batched(x) else None


def batched_lists(array: Any) -> Any:
    """RuntimeError: the values of slices differ."""
    if type(array) is BatchedArray:
        raise by_rules("lists")()
    return None


def batched_split(args: Any) -> Any:
    """Pieces along an axis."""
    return (by_rules("split")(*args),) if _is_batched(args[1]) else None
