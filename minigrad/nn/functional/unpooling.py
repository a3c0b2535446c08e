"""Functions for max unpooling: maxima are put back at the positions that pooling found."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from minigrad import functions as f
from minigrad.functions.arguments import size_of
from minigrad.functions.creation import zeros
from minigrad.functions.selection import index_operand
from minigrad.nn.functional.spatial import Sizes, per_axis, spatial_input
from minigrad.runtime.native import call, kernels

if TYPE_CHECKING:
    from minigrad._tensor import Tensor

__all__ = ["max_unpool1d", "max_unpool2d", "max_unpool3d"]


def _output_size(
    op: str, shape: Sizes, kernel: Sizes, steps: Sizes, pads: Sizes, output_size: Any
) -> Sizes:
    """The spatial sizes of the output. ``output_size`` is checked: pooling it must be possible."""
    sizes = zip(shape[-len(kernel) :], kernel, steps, pads, strict=True)
    usual = tuple([(n - 1) * s + k - 2 * p for n, k, s, p in sizes])
    if output_size is None:
        return usual
    given = size_of(op, tuple(output_size))
    given = given[-len(kernel) :] if len(given) in (len(shape), len(kernel) + 2) else given
    if len(given) != len(kernel):
        raise ValueError(
            f"[{op}] output_size is {tuple(output_size)}, but needs {len(kernel)} sizes"
        )
    if any(abs(m - n) >= s for m, n, s in zip(given, usual, steps, strict=True)):
        raise ValueError(
            f"[{op}] output_size {given} is out of reach: it is {usual}, or differs from that by "
            f"less than the stride {steps}"
        )
    return given


def _max_unpool(
    axes: int,
    input: Any,
    indices: Any,
    kernel_size: Any,
    stride: Any,
    padding: Any,
    output_size: Any,
) -> Tensor:
    op = f"max_unpool{axes}d"
    x, places = spatial_input(op, input, axes), index_operand(op, indices)
    if x.shape != places.shape:
        raise ValueError(f"[{op}] the input has shape {x.shape}, but the indices {places.shape}")
    kernel = per_axis(op, "kernel_size", kernel_size, axes, 1)
    unset = stride is None or (isinstance(stride, (tuple, list)) and not stride)
    steps = kernel if unset else per_axis(op, "stride", stride, axes, 1)
    pads = per_axis(op, "padding", padding, axes, 0)
    sizes = _output_size(op, x.shape, kernel, steps, pads, output_size)
    if min(sizes) < 0:
        raise ValueError(f"[{op}] the output would have spatial size {sizes}: there is none")
    count = math.prod(sizes)
    try:
        call(kernels.index_within, places._h, count)
    except IndexError:
        raise IndexError(
            f"[{op}] an index is not in 0..{count - 1}, the places of {sizes}"
        ) from None
    lead = x.shape[:-axes]
    empty = zeros((*lead, count), dtype=x.dtype)
    line = (*lead, math.prod(x.shape[-axes:]))
    filled = f.scatter(empty, -1, places.reshape(line), x.reshape(line))
    return filled.reshape((*lead, *sizes))


def max_unpool1d(
    input: Tensor,
    indices: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    output_size: Any = None,
) -> Tensor:
    """Like :func:`max_unpool2d`, over one spatial dimension."""
    return _max_unpool(1, input, indices, kernel_size, stride, padding, output_size)


def max_unpool2d(
    input: Tensor,
    indices: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    output_size: Any = None,
) -> Tensor:
    """A partial inverse of :func:`max_pool2d`: values at ``indices``, zeros elsewhere.

    The output has ``(H - 1) * stride + kernel_size - 2 * padding`` rows, and likewise columns
    (Zeiler and Fergus 2014). ``output_size`` may differ from this by less than the stride. One of
    several values for the same position is kept. Raises ValueError for sizes that do not fit,
    IndexError for an index outside the output.

    >>> import minigrad as mg
    >>> max_unpool2d(mg.tensor([[[5.0]]]), mg.tensor([[[1]]]), 2).tolist()
    [[[0.0, 5.0], [0.0, 0.0]]]
    """
    return _max_unpool(2, input, indices, kernel_size, stride, padding, output_size)


def max_unpool3d(
    input: Tensor,
    indices: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    output_size: Any = None,
) -> Tensor:
    """Like :func:`max_unpool2d`, over three spatial dimensions."""
    return _max_unpool(3, input, indices, kernel_size, stride, padding, output_size)
