"""Slice gradients: gradients that are zero outside a few slices of a tensor.

A slice gradient keeps only the slices, and becomes a tensor when all slices have come. Embedding
each slice in zeros would make every row of a loop over a table cost the whole table.
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
Slice = tuple[Array, Shape, Shape, Shape]  # values; start, step and count on every axis


def _add_to(x: Array, values: Array, *place: Shape) -> None:
    part = call(kernels.view_slice, x, *place)
    call(kernels.write, part, call(ADD.id, part, values))


def _long_strides(x: Array) -> list[int]:
    """The strides of the axes that have more than one element."""
    return [step for step, n in zip(x.strides, x.shape, strict=True) if n > 1]


@final
class SliceGrad:
    """The gradient of one or several slices of a tensor of the given shape."""

    __slots__ = ("elements_left", "shape", "slices")

    def __init__(self, shape: Shape, *first: Any) -> None:
        self.shape = shape
        self.slices: list[Slice] = [first]
        # Slices may overlap. They are added up when they hold over twice the tensor's elements.
        self.elements_left = 2 * math.prod(shape) - first[0].size

    def __add__(self, other: Any) -> Any:
        if type(other) is not SliceGrad:
            x = call(kernels.copy, other._h)
            self.add_to(x)
            return wrap(x)
        self.slices += other.slices
        self.elements_left -= sum([values.size for values, *_ in other.slices])
        if self.elements_left < 0:
            axes = len(self.shape)
            return SliceGrad(self.shape, self._assemble(), (0,) * axes, (1,) * axes, self.shape)
        return self

    __radd__ = __add__

    def add_to(self, x: Array) -> None:
        """Add this gradient to an array of the tensor's shape, in place."""
        for values, *place in self.slices:
            _add_to(x, values, *place)

    def whole(self) -> Any:
        """The gradient as a tensor of the tensor's shape."""
        return wrap(self._assemble())

    def _assemble(self) -> Array:
        shape, slices, dtype = self.shape, self.slices, self.slices[0][0].dtype
        axis = self._split_axis()
        disjoint = axis is not None or len(slices) == 1
        if disjoint and sum([values.size for values, *_ in slices]) == math.prod(shape):
            x = None if axis is None else self._view_around_slices(axis)
            if x is not None:
                return x
            x = call(kernels.empty, dtype, shape)
        else:
            x = call(kernels.full, dtype, shape, 0.0, 0)
        for values, *place in slices:
            if disjoint:
                call(kernels.write, call(kernels.view_slice, x, *place), values)
            else:
                _add_to(x, values, *place)
        return x

    def _split_axis(self) -> int | None:
        """The axis along which the slices follow each other without overlap, or None."""
        counts = [count for _, _, _, count in self.slices]
        split_axes = [d for d, n in enumerate(self.shape) if any(count[d] != n for count in counts)]
        if len(counts) == 1 or len(split_axes) != 1:
            return None
        axis, ranges = split_axes[0], []
        for _, start, step, count in self.slices:
            ends = start[axis], start[axis] + (count[axis] - 1) * step[axis]
            ranges.append((min(ends), max(ends)))
        ranges.sort()
        return axis if all(a[1] < b[0] for a, b in pairwise(ranges)) else None

    def _view_around_slices(self, axis: int) -> Array | None:
        """A view of the slices' memory as the whole gradient, without a copy; None if impossible.

        The slices must lie in memory exactly as slices of one array would. Attention lays out the
        gradients of its queries, keys and values in this way.
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
            if part.data != values.data or _long_strides(part) != _long_strides(values):
                return None
        return x
