"""Sliding windows and pooling windows on the last axes, for pooling and convolution.

The rows are linear but for one, and each other's transposes. ``Windows`` says where windows of one
size lie. A row shows them all at once as a view. The windows lie on the axes they slide along, and
their elements on new axes at the end. ``PoolingWindows`` says, axis by axis, where windows of any
size lie, whose sum or maximum is taken.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, NamedTuple

from minigrad.ops.indexing import GATHER, SCATTER_ADD
from minigrad.ops.pointwise import ADD
from minigrad.ops.table import Row, custom, linear, zero
from minigrad.runtime.native import Array, call, kernels, lib

Sizes = tuple[int, ...]


class Windows(NamedTuple):
    """Window c of an axis takes the elements c * stride + k * dilation, k < kernel."""

    counts: Sizes
    kernel: Sizes
    stride: Sizes
    dilation: Sizes


class PoolingWindows(NamedTuple):
    """Pooling window i of an axis takes the elements start + j * step, j < size.

    ``starts`` and ``sizes`` hold those of the first axis, then of the next, as do ``divisors``. The
    sum of a window is divided by the product of its divisors along the axes.
    """

    counts: Sizes
    starts: Sizes
    sizes: Sizes
    step: Sizes
    divisors: Sizes = ()


@lru_cache(512)
def _numbers(at: PoolingWindows) -> Sizes:
    """Pooling windows as kernels take them: see ``op_read_windows`` in csrc."""
    return (len(at.counts), *at.counts, *at.step, *at.starts, *at.sizes, *at.divisors)


def _apply(row: Row, x: Any, *args: Any) -> Any:
    """The row on a tensor; the tensor knows how."""
    return x.apply_row(row, *args)


WINDOWS = linear(
    "windows",
    lambda x, at: call(kernels.view_windows, x, *at),
    lambda g, shape, at: _apply(FOLD_WINDOWS, g, shape, at),
    doc="all windows on the last axes, as a view",
    view=True,
)
FOLD_WINDOWS: Row = linear(
    "fold_windows",
    lambda g, to, at: call(kernels.fold_windows, g, to, at.stride, at.dilation),
    lambda g, to, at: _apply(WINDOWS, g, at),
    doc="zeros of a shape with all windows added to where they lie: the transpose of windows",
)
POOL_SUM = linear(
    "pool_sum",
    lambda x, at: call(kernels.pool_sum, x, _numbers(at)),
    lambda g, shape, at: _apply(POOL_SUM_TRANSPOSE, g, shape, at),
    doc="the sum of every pooling window on the last axes, by its divisor",
)
POOL_SUM_TRANSPOSE: Row = linear(
    "pool_sum_transpose",
    lambda g, to, at: call(kernels.pool_sum_vjp, g, to, _numbers(at)),
    lambda g, to, at: _apply(POOL_SUM, g, at),
    doc="zeros of a shape with x added to all elements of its window: pool_sum transposed",
)
POOL_ARGMAX = zero(
    "pool_argmax",
    1,
    "where the maximum of every window is in the last axes: the first of ties, NaN first",
    forward=lambda x, at: call(kernels.pool_argmax, x, _numbers(at)),
)


def _maxima(x: Any, at: PoolingWindows) -> Array:
    """Where the maxima are: in x as one line, where plane i starts at i * volume."""
    axes = len(at.counts)
    lead, volume = math.prod(x.shape[:-axes]), math.prod(x.shape[-axes:])
    planes = call(kernels.arange, lib.MG_INT64, 0.0, 0.0, 0, volume, lead)
    places = call(kernels.pool_argmax, x._h, _numbers(at))
    places = call(kernels.reshape, places, (lead, math.prod(at.counts)))
    index: Array = call(ADD.id, places, call(kernels.reshape, planes, (lead, 1)))
    return index


def _to_maxima(g: Any, x: Any, at: PoolingWindows) -> Any:
    """g added to the maxima."""
    index = _maxima(x, at)
    spread = _apply(SCATTER_ADD, g.reshape(index.shape), (math.prod(x.shape),), (index,))
    return spread.reshape(x.shape)


def _from_maxima(t: Any, x: Any, at: PoolingWindows) -> Any:
    """t at the maxima."""
    taken = _apply(GATHER, t.reshape((math.prod(x.shape),)), (_maxima(x, at),))
    return taken.reshape((*x.shape[: -len(at.counts)], *at.counts))


POOL_MAX = custom(
    "pool_max",
    lambda x, at: call(kernels.pool_max, x, _numbers(at)),
    _to_maxima,
    fused=(lambda g, x, at: call(kernels.pool_max_vjp, g, x, _numbers(at)),),
    jvp=[lambda t, x, at: _from_maxima(t, x, at)],
    doc="the maximum of every window on the last axes; its gradient goes to the first of ties",
)
