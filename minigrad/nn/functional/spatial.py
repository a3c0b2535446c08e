"""Shared helpers of operations on spatial dimensions: the dimensions after the channels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from minigrad.functions.arguments import integer, tensor_operand
from minigrad.functions.creation import check_room
from minigrad.functions.shaping import widen
from minigrad.ops.shape import EMBED, SLICE
from minigrad.ops.window import Windows
from minigrad.runtime.dtypes import bool_
from minigrad.tape.apply import apply

if TYPE_CHECKING:
    from minigrad._tensor import Tensor

__all__: list[str] = []

Sizes = tuple[int, ...]


def per_axis(op: str, name: str, value: Any, axes: int, least: int) -> Sizes:
    """A tuple with an integer for each spatial dimension, from one integer or one for each."""
    if not isinstance(value, (tuple, list)):
        return (integer(op, name, value, least),) * axes
    found = tuple([integer(op, name, v, least) for v in value])
    if len(found) == 1:
        return found * axes
    if len(found) != axes:
        raise ValueError(
            f"[{op}] {name} is {tuple(value)}, but there are {axes} spatial dimensions: "
            f"give one integer or {axes}"
        )
    return found


def check_places(op: str, sizes: Sizes) -> None:
    """Raise a MemoryError if positions, about 100 bytes each in Python, would not fit in memory."""
    check_room(op, (100, sum(sizes)), bool_)


def spatial_input(op: str, input: Any, axes: int) -> Tensor:
    """The input as a tensor of shape (N, C, ...) or, without a batch, (C, ...)."""
    x = tensor_operand(op, input)
    if x.ndim not in (axes + 1, axes + 2):
        raise ValueError(
            f"[{op}] the input has shape {x.shape}, but must have {axes + 2} dimensions, "
            f"(batch, channels, {axes} of space), or {axes + 1} without the batch"
        )
    return x


def require_floats(op: str, x: Tensor) -> Tensor:
    """``x`` in its compute dtype. Raises TypeError unless it is a float."""
    if not x.dtype.is_floating_point:
        raise TypeError(
            f"[{op}] offered for floats, not {x.dtype.name}: convert it with .to(mg.float32)"
        )
    return widen(x)


def padded(x: Tensor, before: Sizes, after: Sizes) -> Tensor:
    """x with zeros added around the last dimensions."""
    if not any(before) and not any(after):
        return x
    lead, shape = x.ndim - len(before), x.shape
    around = zip(shape[lead:], before, after, strict=True)
    to = shape[:lead] + tuple([n + b + a for n, b, a in around])
    return apply(EMBED, (x,), (to, (0,) * lead + before, (1,) * x.ndim, shape))


def cropped(x: Tensor, start: Sizes, count: Sizes) -> Tensor:
    """A view of ``count`` elements from ``start`` on along each of the last dimensions."""
    lead = x.ndim - len(start)
    if x.shape[lead:] == count:
        return x
    begin = tuple([s if n else 0 for s, n in zip(start, count, strict=True)])
    return apply(SLICE, (x,), ((0,) * lead + begin, (1,) * x.ndim, x.shape[:lead] + count))


def fit(op: str, sizes: Sizes, kernel: Sizes, stride: Sizes, dilation: Sizes) -> Windows:
    """The number of windows that fit into these sizes. Raises ValueError if no window fits."""
    reach = tuple([d * (k - 1) + 1 for k, d in zip(kernel, dilation, strict=True)])
    if any(r > n for r, n in zip(reach, sizes, strict=True)):
        raise ValueError(
            f"[{op}] no window fits: it spans {reach}, the input with its padding only {sizes}"
        )
    count = tuple([(n - r) // s + 1 for n, r, s in zip(sizes, reach, stride, strict=True)])
    return Windows(count, kernel, stride, dilation)
