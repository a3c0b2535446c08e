"""Slice gradients: the gradient of one slice of a tensor or of several, put together when all came.

The gradient of a slice is 0 elsewhere in the tensor. If each were embedded in zeros and added to
the others, each row of a loop over a table would cost the whole table.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any, final

from minigrad.ops.pointwise import ADD
from minigrad.runtime.native import Array, call, kernels
from minigrad.tape.tensor_base import wrap

__all__ = ["SliceGrad"]

Shape = tuple[int, ...]
Slice = tuple[Array, Shape, Shape, Shape]  # values, and start, step and count on every axis


def _add_to(x: Array, values: Array, *place: Shape) -> None:
    part = call(kernels.view_slice, x, *place)
    call(kernels.write, part, call(ADD.id, part, values))


def _steps(x: Array) -> list[int]:
    """The strides that matter."""
    return [step for step, n in zip(x.strides, x.shape, strict=True) if n > 1]


@final
class SliceGrad:
    """The gradient of one slice of a tensor or of several, instead of a tensor of its shape."""

    __slots__ = ("room", "shape", "slices")

    def __init__(self, shape: Shape, *one: Any) -> None:
        self.shape = shape
        self.slices: list[Slice] = [one]
        # Slices may overlap: where they hold more than twice the tensor they are added up.
        self.room = 2 * math.prod(shape) - one[0].size

    def __add__(self, other: Any) -> Any:
        if type(other) is not SliceGrad:
            x = call(kernels.copy, other._h)
            self.add_to(x)
            return wrap(x)
        self.slices += other.slices
        self.room -= sum([values.size for values, *_ in other.slices])
        if self.room < 0:
            axes = len(self.shape)
            return SliceGrad(self.shape, self._joined(), (0,) * axes, (1,) * axes, self.shape)
        return self

    __radd__ = __add__

    def add_to(self, x: Array) -> None:
        """Add it to an array of the whole shape."""
        for one in self.slices:
            _add_to(x, *one)

    def whole(self) -> Any:
        """As a tensor."""
        return wrap(self._joined())

    def _joined(self) -> Array:
        shape, slices, dtype = self.shape, self.slices, self.slices[0][0].dtype
        axis = self._cut()
        apart = axis is not None or len(slices) == 1
        if apart and sum([values.size for values, *_ in slices]) == math.prod(shape):
            x = None if axis is None else self._as_they_lie(axis)
            if x is not None:
                return x
            x = call(kernels.empty, dtype, shape)
        else:
            x = call(kernels.full, dtype, shape, 0.0, 0)
        for values, *place in slices:
            if apart:
                call(kernels.write, call(kernels.view_slice, x, *place), values)
            else:
                _add_to(x, values, *place)
        return x

    def _cut(self) -> int | None:
        """The axis along which the slices follow one another, without overlap."""
        counts = [count for _, _, _, count in self.slices]
        cut = [d for d, n in enumerate(self.shape) if any(count[d] != n for count in counts)]
        if len(counts) == 1 or len(cut) != 1:
            return None
        axis, spans = cut[0], []
        for _, start, step, count in self.slices:
            ends = start[axis], start[axis] + (count[axis] - 1) * step[axis]
            spans.append((min(ends), max(ends)))
        spans.sort()
        return axis if all(a[1] < b[0] for a, b in pairwise(spans)) else None

    def _as_they_lie(self, axis: int) -> Array | None:
        """The whole in the memory where the slices are, if they lie there as they do in it.

        Attention lays the gradients of its queries, keys and values so.
        """
        (a, a_start, *_), (b, b_start, *_) = self.slices[:2]
        try:
            x = call(kernels.view_around, a, b, axis, a_start[axis], b_start[axis], self.shape)
        except ValueError:
            return None
        if x.overlapping:
            return None
        for values, *place in self.slices:
            part = call(kernels.view_slice, x, *place)
            if part.data != values.data or _steps(part) != _steps(values):
                return None
        return x
