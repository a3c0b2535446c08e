"""Pooling: maxima and means of windows, of one size or adapted to an output size.

What a window keeps after the padding is cut off is a box; a kernel takes the sums or finds the
maxima of all boxes.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from minigrad.creation import tensor
from minigrad.dispatch import apply
from minigrad.dtypes import bool_
from minigrad.nn.functional.spatial import (
    Sizes,
    integer,
    per_axis,
    require_floats,
    spatial_input,
)
from minigrad.ops.window import BOX_ARGMAX, BOX_SUM, Boxes
from minigrad.selection import take_along_dim

if TYPE_CHECKING:
    from minigrad._tensor import Tensor

__all__ = [
    "adaptive_avg_pool1d",
    "adaptive_avg_pool2d",
    "adaptive_avg_pool3d",
    "adaptive_max_pool1d",
    "adaptive_max_pool2d",
    "adaptive_max_pool3d",
    "avg_pool1d",
    "avg_pool2d",
    "avg_pool3d",
    "max_pool1d",
    "max_pool2d",
    "max_pool3d",
]

# ---- where the boxes lie -------------------------------------------------------------------------


class _Axis:
    """The windows along one dimension of n elements, with padding."""

    def __init__(
        self, n: int, kernel: int, stride: int, padding: int, dilation: int, ceil_mode: bool
    ) -> None:
        self.n, self.kernel, self.dilation, self.padding = n, kernel, dilation, padding
        room = n + 2 * padding - dilation * (kernel - 1) - 1
        count = (room + (stride - 1 if ceil_mode else 0)) // stride + 1
        if ceil_mode and (count - 1) * stride >= n + padding:
            count -= 1  # the last window would start behind the input
        self.firsts = [c * stride - padding for c in range(count)]

    def boxes(self) -> tuple[list[int], list[int]]:
        """The start and the size of what each window keeps of the input."""
        gap = self.dilation
        starts = [at if at >= 0 else at % gap for at in self.firsts]
        ends = [min(at + gap * (self.kernel - 1), self.n - 1) for at in self.firsts]
        return starts, [(end - at) // gap + 1 for at, end in zip(starts, ends, strict=True)]

    def counts(self) -> list[int]:
        """How many elements each window has, those of the padding included."""
        end = self.n + self.padding
        return [min(at + self.kernel, end) - at for at in self.firsts]


def _axes(
    op: str,
    x: Tensor,
    axes: int,
    kernel_size: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    ceil_mode: bool,
) -> list[_Axis]:
    kernel = per_axis(op, "kernel_size", kernel_size, axes, 1)
    unset = stride is None or (isinstance(stride, (tuple, list)) and not stride)
    steps = kernel if unset else per_axis(op, "stride", stride, axes, 1)
    pads = per_axis(op, "padding", padding, axes, 0)
    gaps = per_axis(op, "dilation", dilation, axes, 1)
    sizes = x.shape[-axes:]
    for k, p in zip(kernel, pads, strict=True):
        if p > k // 2:
            raise ValueError(f"[{op}] padding {p} is more than half of the kernel size {k}")
    found = [
        _Axis(*numbers, bool(ceil_mode))
        for numbers in zip(sizes, kernel, steps, pads, gaps, strict=True)
    ]
    if min(sizes) < 1 or not all(axis.firsts for axis in found):
        raise ValueError(
            f"[{op}] no window of {kernel} with dilation {gaps} fits into the input of spatial "
            f"size {sizes} with padding {pads}"
        )
    if any(min(axis.boxes()[1]) < 1 for axis in found):
        raise ValueError(
            f"[{op}] a window of {kernel} with dilation {gaps} lies in the padding {pads} of the "
            f"spatial size {sizes} only: it has no element"
        )
    return found


def _boxes(starts_and_sizes: list[tuple[list[int], list[int]]], step: Sizes) -> Boxes:
    return Boxes(
        tuple([len(starts) for starts, _ in starts_and_sizes]),
        tuple([at for starts, _ in starts_and_sizes for at in starts]),
        tuple([n for _, sizes in starts_and_sizes for n in sizes]),
        step,
    )


def _adaptive(op: str, x: Tensor, axes: int, output_size: Any) -> Boxes:
    """Box i of m takes the elements from floor(i * n / m) to ceil((i + 1) * n / m)."""
    sizes = x.shape[-axes:]
    given = output_size if isinstance(output_size, (tuple, list)) else (output_size,) * axes
    if len(given) == axes:
        given = [n if m is None else m for m, n in zip(given, sizes, strict=True)]
    wanted = per_axis(op, "output_size", given, axes, 0)
    if min(sizes) < 1:
        raise ValueError(f"[{op}] the input of shape {x.shape} has an empty spatial dimension")
    found = []
    for n, m in zip(sizes, wanted, strict=True):
        starts = [i * n // m for i in range(m)]
        found.append((starts, [-(-(i + 1) * n // m) - at for i, at in enumerate(starts)]))
    return _boxes(found, (1,) * axes)


# ---- what is done with them ----------------------------------------------------------------------


def _maxima(x: Tensor, boxes: Boxes, return_indices: bool) -> Any:
    """The element at the place of each maximum, to which alone the gradient goes."""
    axes = len(boxes.counts)
    places = apply(BOX_ARGMAX, (x.detach(),), (boxes,))
    lead, volume = math.prod(x.shape[:-axes]), math.prod(x.shape[-axes:])
    at = places.reshape(lead, math.prod(boxes.counts))
    values = take_along_dim(x.reshape(lead, volume), at, 1).reshape(places.shape)
    return (values, places) if return_indices else values


def _means(x: Tensor, boxes: Boxes, counts: list[list[int]]) -> Tensor:
    """The sum of each box by its number of elements: the product of its counts along the axes."""
    sums = apply(BOX_SUM, (x,), (boxes,))
    if all(len(set(along)) <= 1 for along in counts):
        return sums / math.prod(along[0] if along else 1 for along in counts)
    divisor = tensor(1.0, x.dtype)
    for along in counts:
        divisor = divisor.unsqueeze(-1) * tensor(along, x.dtype)
    return sums / divisor


def _max_pool(
    axes: int,
    input: Any,  # noqa: A002
    kernel_size: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    ceil_mode: bool,
    return_indices: bool,
) -> Any:
    op = f"max_pool{axes}d"
    x = _ordered(op, spatial_input(op, input, axes))
    found = _axes(op, x, axes, kernel_size, stride, padding, dilation, ceil_mode)
    step = tuple([axis.dilation for axis in found])
    return _maxima(x, _boxes([axis.boxes() for axis in found], step), return_indices)


def _avg_pool(
    axes: int,
    input: Any,  # noqa: A002
    kernel_size: Any,
    stride: Any,
    padding: Any,
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: Any,
) -> Tensor:
    op = f"avg_pool{axes}d"
    x = require_floats(op, spatial_input(op, input, axes))
    found = _axes(op, x, axes, kernel_size, stride, padding, 1, ceil_mode)
    boxes = _boxes([axis.boxes() for axis in found], (1,) * axes)
    if divisor_override is not None:
        divisor = integer(op, "divisor_override", divisor_override, -(2**63))
        if divisor == 0:
            raise ValueError(f"[{op}] divisor_override is 0")
        return apply(BOX_SUM, (x,), (boxes,)) / divisor
    return _means(x, boxes, [a.counts() if count_include_pad else a.boxes()[1] for a in found])


def _adaptive_avg_pool(axes: int, input: Any, output_size: Any) -> Tensor:  # noqa: A002
    op = f"adaptive_avg_pool{axes}d"
    x = require_floats(op, spatial_input(op, input, axes))
    boxes = _adaptive(op, x, axes, output_size)
    ends = [sum(boxes.counts[: k + 1]) for k in range(axes)]
    counts = [list(boxes.sizes[e - n : e]) for e, n in zip(ends, boxes.counts, strict=True)]
    return _means(x, boxes, counts)


def _adaptive_max_pool(
    axes: int,
    input: Any,  # noqa: A002
    output_size: Any,
    return_indices: bool,
) -> Any:
    op = f"adaptive_max_pool{axes}d"
    x = _ordered(op, spatial_input(op, input, axes))
    return _maxima(x, _adaptive(op, x, axes, output_size), return_indices)


def _ordered(op: str, x: Tensor) -> Tensor:
    if x.dtype is bool_:
        raise TypeError(f"[{op}] offered for numbers, not bool")
    return x


# ---- public --------------------------------------------------------------------------------------


def max_pool1d(
    input: Tensor,  # noqa: A002
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """As :func:`max_pool2d`, over one spatial dimension.

    >>> import minigrad as mg
    >>> max_pool1d(mg.tensor([[1.0, 3.0, 2.0, 0.0]]), 2, stride=1).tolist()
    [[3.0, 3.0, 2.0]]
    """
    return _max_pool(1, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


def max_pool2d(
    input: Tensor,  # noqa: A002
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """The maximum of each window: ``y[n, c, i, j]`` is the largest ``x[n, c, i*s - p + k*d,
    j*s - p + l*d]`` over k and l below the kernel size; what lies outside x does not count.

    ``input`` has shape (N, C, H, W) or (C, H, W). ``kernel_size``, ``stride`` s (that of the kernel
    unless given), ``padding`` p (at most half of the kernel) and ``dilation`` d are an integer or
    one for each dimension. The output has ``(H + 2 * p - d * (kernel_size - 1) - 1) / s + 1`` rows,
    rounded down, or up with ``ceil_mode`` as long as the last window starts inside the input or
    the padding before it.

    The gradient goes to one element of a window: the first of equal ones, and the first NaN where
    there is one. With ``return_indices`` the result is ``(values, indices)``: where in the H * W
    elements of its plane each maximum is. Integers are accepted.

    Raises ValueError where no window fits, or one would have no element; TypeError for bool.

    >>> import minigrad as mg
    >>> max_pool2d(mg.arange(16).reshape(1, 4, 4), 2).tolist()
    [[[5, 7], [13, 15]]]
    """
    return _max_pool(2, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


def max_pool3d(
    input: Tensor,  # noqa: A002
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """As :func:`max_pool2d`, over three spatial dimensions."""
    return _max_pool(3, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


def avg_pool1d(
    input: Tensor,  # noqa: A002
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Tensor:
    """As :func:`avg_pool2d`, over one spatial dimension.

    >>> import minigrad as mg
    >>> avg_pool1d(mg.tensor([[1.0, 3.0, 2.0, 0.0]]), 2).tolist()
    [[2.0, 1.0]]
    """
    return _avg_pool(1, input, kernel_size, stride, padding, ceil_mode, count_include_pad, None)


def avg_pool2d(
    input: Tensor,  # noqa: A002
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """The mean of each window: the sum of ``x[n, c, i*s - p + k, j*s - p + l]`` over k and l below
    the kernel size, divided by their number.

    ``input`` has shape (N, C, H, W) or (C, H, W). ``kernel_size``, ``stride`` s (that of the kernel
    unless given) and ``padding`` p (at most half of the kernel) are an integer or one for each
    dimension; ``ceil_mode`` is that of :func:`max_pool2d`. The zeros of the padding are counted
    unless ``count_include_pad`` is false; what a window has beyond them never is.
    ``divisor_override`` replaces the number. Sums are formed in float64.

    Raises ValueError where no window fits, TypeError for other than floats.

    >>> import minigrad as mg
    >>> avg_pool2d(mg.ones(1, 2, 2), 2, padding=1, count_include_pad=False).tolist()
    [[[1.0, 1.0], [1.0, 1.0]]]
    """
    return _avg_pool(
        2, input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
    )


def avg_pool3d(
    input: Tensor,  # noqa: A002
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """As :func:`avg_pool2d`, over three spatial dimensions."""
    return _avg_pool(
        3, input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
    )


def adaptive_avg_pool1d(input: Tensor, output_size: Any) -> Tensor:  # noqa: A002
    """As :func:`adaptive_avg_pool2d`, over one spatial dimension.

    >>> import minigrad as mg
    >>> adaptive_avg_pool1d(mg.tensor([[1.0, 2.0, 6.0]]), 2).tolist()
    [[1.5, 4.0]]
    """
    return _adaptive_avg_pool(1, input, output_size)


def adaptive_avg_pool2d(input: Tensor, output_size: Any) -> Tensor:  # noqa: A002
    """The mean of each of ``output_size`` parts: part i of m of H rows takes those from
    ``floor(i * H / m)`` to ``ceil((i + 1) * H / m)``, likewise columns.

    ``input`` has shape (N, C, H, W) or (C, H, W); ``output_size`` is an integer or one for each
    dimension, where None keeps the input's. Raises ValueError for an empty spatial dimension,
    TypeError for other than floats.
    """
    return _adaptive_avg_pool(2, input, output_size)


def adaptive_avg_pool3d(input: Tensor, output_size: Any) -> Tensor:  # noqa: A002
    """As :func:`adaptive_avg_pool2d`, over three spatial dimensions."""
    return _adaptive_avg_pool(3, input, output_size)


def adaptive_max_pool1d(
    input: Tensor,  # noqa: A002
    output_size: Any,
    return_indices: bool = False,
) -> Any:
    """As :func:`adaptive_max_pool2d`, over one spatial dimension."""
    return _adaptive_max_pool(1, input, output_size, return_indices)


def adaptive_max_pool2d(
    input: Tensor,  # noqa: A002
    output_size: Any,
    return_indices: bool = False,
) -> Any:
    """The maximum of each of ``output_size`` parts, which are those of :func:`adaptive_avg_pool2d`;
    gradients and indices are those of :func:`max_pool2d`.
    """
    return _adaptive_max_pool(2, input, output_size, return_indices)


def adaptive_max_pool3d(
    input: Tensor,  # noqa: A002
    output_size: Any,
    return_indices: bool = False,
) -> Any:
    """As :func:`adaptive_max_pool2d`, over three spatial dimensions."""
    return _adaptive_max_pool(3, input, output_size, return_indices)
