"""Functions for pooling: maxima and means of windows of one size, or adapted to an output size.

A pooling window is the part of a window outside the padding. One kernel computes the means or the
maxima of all pooling windows. Their positions are computed once for each size and cached.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from minigrad import functions as f
from minigrad.functions.arguments import integer, real
from minigrad.nn.functional.spatial import (
    Sizes,
    check_places,
    per_axis,
    require_floats,
    spatial_input,
)
from minigrad.ops.window import POOL_ARGMAX, POOL_MAX, POOL_SUM, PoolingWindows
from minigrad.runtime.dtypes import bool_
from minigrad.tape.apply import apply

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
    "lp_pool1d",
    "lp_pool2d",
    "lp_pool3d",
    "max_pool1d",
    "max_pool2d",
    "max_pool3d",
]

# ---- places of the windows -----------------------------------------------------------------------


class _Axis(NamedTuple):
    """Pooling windows along one dimension, and their sizes with the padding."""

    starts: list[int]
    sizes: list[int]
    wide: list[int]


def _along(
    op: str, n: int, kernel: int, stride: int, padding: int, dilation: int, ceil_mode: bool
) -> _Axis | None:
    """The windows along n elements with padding, or None if no window fits."""
    room = n + 2 * padding - dilation * (kernel - 1) - 1
    count = (room + (stride - 1 if ceil_mode else 0)) // stride + 1
    if ceil_mode and (count - 1) * stride >= n + padding:
        count -= 1  # the last window would start after the input
    if count < 1 or n < 1:
        return None
    check_places(op, (count,))
    firsts = [c * stride - padding for c in range(count)]
    starts = [at if at >= 0 else at % dilation for at in firsts]
    ends = [min(at + dilation * (kernel - 1), n - 1) for at in firsts]
    return _Axis(
        starts,
        [(end - at) // dilation + 1 for at, end in zip(starts, ends, strict=True)],
        [min(at + kernel, n + padding) - at for at in firsts],
    )


def _pooling_windows(
    axes: Sequence[_Axis], step: Sizes, divisors: Sequence[list[int]] = ()
) -> PoolingWindows:
    return PoolingWindows(
        tuple([len(axis.starts) for axis in axes]),
        tuple([at for axis in axes for at in axis.starts]),
        tuple([n for axis in axes for n in axis.sizes]),
        step,
        tuple([n for along in divisors for n in along]),
    )


@lru_cache(512, typed=True)  # typed: 1 is not True
def _windows(
    op: str,
    sizes: Sizes,
    kernel: Sizes,
    stride: Sizes,
    pads: Sizes,
    gaps: Sizes,
    ceil_mode: bool,
    divide_by: int | bool | None,
) -> PoolingWindows:
    """The pooling windows of these sizes.

    ``divide_by`` says by what sums are divided: a number, the number of elements with the padding
    (True) or without it (False), or nothing (None).
    """
    for k, p in zip(kernel, pads, strict=True):
        if p > k // 2:
            raise ValueError(f"[{op}] padding {p} is more than half of the kernel size {k}")
    along = zip(sizes, kernel, stride, pads, gaps, strict=True)
    found = [axis for numbers in along if (axis := _along(op, *numbers, ceil_mode))]
    if len(found) < len(sizes):
        raise ValueError(
            f"[{op}] no window of {kernel} with dilation {gaps} fits into the input of spatial "
            f"size {sizes} with padding {pads}"
        )
    if any(min(axis.sizes) < 1 for axis in found):
        raise ValueError(
            f"[{op}] a window of {kernel} with dilation {gaps} lies in the padding {pads} of the "
            f"spatial size {sizes} only: it has no element"
        )
    if divide_by is None:
        return _pooling_windows(found, gaps)
    if isinstance(divide_by, bool):
        return _pooling_windows(
            found, gaps, [axis.wide if divide_by else axis.sizes for axis in found]
        )
    shares = [divide_by] + [1] * (len(found) - 1)
    return _pooling_windows(
        found, gaps, [[n] * len(a.starts) for n, a in zip(shares, found, strict=True)]
    )


def _read(
    op: str,
    x: Tensor,
    axes: int,
    kernel_size: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    ceil_mode: bool,
    divide_by: int | bool | None = None,
) -> PoolingWindows:
    """Parse the arguments of a pool, and return its windows."""
    kernel = per_axis(op, "kernel_size", kernel_size, axes, 1)
    unset = stride is None or (isinstance(stride, (tuple, list)) and not stride)
    steps = kernel if unset else per_axis(op, "stride", stride, axes, 1)
    pads = per_axis(op, "padding", padding, axes, 0)
    gaps = per_axis(op, "dilation", dilation, axes, 1)
    return _windows(op, x.shape[-axes:], kernel, steps, pads, gaps, bool(ceil_mode), divide_by)


@lru_cache(512)
def _parts(sizes: Sizes, output_sizes: Sizes, divide: bool) -> PoolingWindows:
    """The windows of adaptive pooling: window i of m is floor(i n / m) to ceil((i + 1) n / m)."""
    found = []
    for n, m in zip(sizes, output_sizes, strict=True):
        starts = [i * n // m for i in range(m)]
        counts = [-(-(i + 1) * n // m) - at for i, at in enumerate(starts)]
        found.append(_Axis(starts, counts, counts))
    return _pooling_windows(
        found, (1,) * len(sizes), [axis.sizes for axis in found] if divide else ()
    )


def _adaptive(op: str, x: Tensor, axes: int, output_size: Any, divide: bool) -> PoolingWindows:
    sizes = x.shape[-axes:]
    given = output_size if isinstance(output_size, (tuple, list)) else (output_size,) * axes
    if len(given) == axes:
        given = [n if m is None else m for m, n in zip(given, sizes, strict=True)]
    output_sizes = per_axis(op, "output_size", given, axes, 0)
    if min(sizes) < 1:
        raise ValueError(f"[{op}] the input of shape {x.shape} has an empty spatial dimension")
    check_places(op, output_sizes)
    return _parts(sizes, output_sizes, divide)


# ---- what is done with them ----------------------------------------------------------------------


def _maxima(x: Tensor, windows: PoolingWindows, return_indices: bool) -> Any:
    values = apply(POOL_MAX, (x,), (windows,))
    return (values, apply(POOL_ARGMAX, (x,), (windows,))) if return_indices else values


def _max_pool(
    axes: int,
    input: Any,
    kernel_size: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    ceil_mode: bool,
    return_indices: bool,
) -> Any:
    op = f"max_pool{axes}d"
    x = _ordered(op, spatial_input(op, input, axes))
    windows = _read(op, x, axes, kernel_size, stride, padding, dilation, ceil_mode)
    return _maxima(x, windows, return_indices)


def _avg_pool(
    axes: int,
    input: Any,
    kernel_size: Any,
    stride: Any,
    padding: Any,
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: Any,
) -> Tensor:
    op = f"avg_pool{axes}d"
    x = require_floats(op, spatial_input(op, input, axes))
    divide_by: int | bool = bool(count_include_pad)
    if divisor_override is not None:
        divide_by = integer(op, "divisor_override", divisor_override, -(2**63))
        if divide_by == 0:
            raise ValueError(f"[{op}] divisor_override is 0")
    windows = _read(op, x, axes, kernel_size, stride, padding, 1, ceil_mode, divide_by)
    return apply(POOL_SUM, (x,), (windows,))


def _adaptive_avg_pool(axes: int, input: Any, output_size: Any) -> Tensor:
    op = f"adaptive_avg_pool{axes}d"
    x = require_floats(op, spatial_input(op, input, axes))
    return apply(POOL_SUM, (x,), (_adaptive(op, x, axes, output_size, True),))


def _adaptive_max_pool(
    axes: int,
    input: Any,
    output_size: Any,
    return_indices: bool,
) -> Any:
    op = f"adaptive_max_pool{axes}d"
    x = _ordered(op, spatial_input(op, input, axes))
    return _maxima(x, _adaptive(op, x, axes, output_size, False), return_indices)


def _lp_pool(
    axes: int,
    input: Any,
    norm_type: float,
    kernel_size: Any,
    stride: Any,
    ceil_mode: bool,
) -> Tensor:
    op = f"lp_pool{axes}d"
    order = real(op, "norm_type", norm_type)
    if order == 0.0:
        raise ValueError(f"[{op}] norm_type is 0: there is no such norm")
    x = require_floats(op, spatial_input(op, input, axes))
    windows = _read(op, x, axes, kernel_size, stride, 0, 1, ceil_mode, 1)
    total = apply(POOL_SUM, (f.pow(x, order),), (windows,))
    none = f.eq(total, 0.0)  # where the root has no finite derivative
    root = f.pow(f.where(none, 1.0, total), 1.0 / order)
    return f.where(none, 0.0, root)


def _ordered(op: str, x: Tensor) -> Tensor:
    if x.dtype is bool_:
        raise TypeError(f"[{op}] offered for numbers, not bool")
    return x


# ---- public --------------------------------------------------------------------------------------


def max_pool1d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """Like :func:`max_pool2d`, over one spatial dimension.

    >>> import minigrad as mg
    >>> max_pool1d(mg.tensor([[1.0, 3.0, 2.0, 0.0]]), 2, stride=1).tolist()
    [[3.0, 3.0, 2.0]]
    """
    return _max_pool(1, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


def max_pool2d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """The maximum of each window.

    ``y[n, c, i, j]`` is the largest ``x[n, c, i*s - p + k*d, j*s - p + l*d]``. k and l run from 0
    to the kernel size less 1. Positions outside x do not count.

    ``input`` has shape (N, C, H, W) or (C, H, W). ``kernel_size``, ``stride`` s, ``padding`` p and
    ``dilation`` d are an integer or one for each dimension. The stride is by default the kernel's
    size. The padding is at most half of the kernel's size. The output has ``(H + 2 * p - d *
    (kernel_size - 1) - 1) / s + 1`` rows, rounded down. ``ceil_mode`` rounds up, as long as the
    last window starts inside the input or the padding before it.

    The gradient goes to one element of a window: the first of equal maxima, or the first NaN. With
    ``return_indices`` the result is ``(values, indices)``. An index is the position of a maximum in
    the H * W elements of its plane. Integers are accepted.

    Raises ValueError if no window fits, or a window would have no element. Raises TypeError for
    bool.

    >>> import minigrad as mg
    >>> max_pool2d(mg.arange(16).reshape(1, 4, 4), 2).tolist()
    [[[5, 7], [13, 15]]]
    """
    return _max_pool(2, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


def max_pool3d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """Like :func:`max_pool2d`, over three spatial dimensions."""
    return _max_pool(3, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


def avg_pool1d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Tensor:
    """Like :func:`avg_pool2d`, over one spatial dimension.

    >>> import minigrad as mg
    >>> avg_pool1d(mg.tensor([[1.0, 3.0, 2.0, 0.0]]), 2).tolist()
    [[2.0, 1.0]]
    """
    return _avg_pool(1, input, kernel_size, stride, padding, ceil_mode, count_include_pad, None)


def avg_pool2d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """The mean of each window.

    It is the sum of ``x[n, c, i*s - p + k, j*s - p + l]``, divided by the number of elements. k and
    l run from 0 to the kernel size less 1.

    ``input`` has shape (N, C, H, W) or (C, H, W). ``kernel_size``, ``stride`` s and ``padding`` p
    are an integer or one for each dimension. The stride is by default the kernel's size. The
    padding is at most half of the kernel's size. ``ceil_mode`` is that of :func:`max_pool2d`.

    The zeros of the padding count unless ``count_include_pad`` is False. Positions beyond the
    padding never count. ``divisor_override`` replaces the number of elements. Sums are computed in
    float64. For a whole plane, pairs are added first.

    Raises ValueError if no window fits, TypeError unless the dtype is a float.

    >>> import minigrad as mg
    >>> avg_pool2d(mg.ones(1, 2, 2), 2, padding=1, count_include_pad=False).tolist()
    [[[1.0, 1.0], [1.0, 1.0]]]
    """
    return _avg_pool(
        2, input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
    )


def avg_pool3d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """Like :func:`avg_pool2d`, over three spatial dimensions."""
    return _avg_pool(
        3, input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
    )


def lp_pool1d(
    input: Tensor,
    norm_type: float,
    kernel_size: Any,
    stride: Any = None,
    ceil_mode: bool = False,
) -> Tensor:
    """Like :func:`lp_pool2d`, over one spatial dimension.

    >>> import minigrad as mg
    >>> lp_pool1d(mg.tensor([[3.0, 4.0]]), 2, 2).tolist()
    [[5.0]]
    """
    return _lp_pool(1, input, norm_type, kernel_size, stride, ceil_mode)


def lp_pool2d(
    input: Tensor,
    norm_type: float,
    kernel_size: Any,
    stride: Any = None,
    ceil_mode: bool = False,
) -> Tensor:
    """``sum(x**p)**(1/p)`` of each window, where p is ``norm_type``.

    Where the sum is 0, the result and the gradient are 0. As in PyTorch x itself is raised to the
    power, not its magnitude, so negative elements stay negative for an odd p. Other arguments are
    those of :func:`avg_pool2d`. Raises ValueError for p = 0 and if no window fits.
    """
    return _lp_pool(2, input, norm_type, kernel_size, stride, ceil_mode)


def lp_pool3d(
    input: Tensor,
    norm_type: float,
    kernel_size: Any,
    stride: Any = None,
    ceil_mode: bool = False,
) -> Tensor:
    """Like :func:`lp_pool2d`, over three spatial dimensions."""
    return _lp_pool(3, input, norm_type, kernel_size, stride, ceil_mode)


def adaptive_avg_pool1d(input: Tensor, output_size: Any) -> Tensor:
    """Like :func:`adaptive_avg_pool2d`, over one spatial dimension.

    >>> import minigrad as mg
    >>> adaptive_avg_pool1d(mg.tensor([[1.0, 2.0, 6.0]]), 2).tolist()
    [[1.5, 4.0]]
    """
    return _adaptive_avg_pool(1, input, output_size)


def adaptive_avg_pool2d(input: Tensor, output_size: Any) -> Tensor:
    """The mean of each of ``output_size`` parts of the input.

    Part i of m has the rows from ``floor(i * H / m)`` to ``ceil((i + 1) * H / m)``. The same holds
    for columns. ``input`` has shape (N, C, H, W) or (C, H, W). ``output_size`` is an integer or one
    for each dimension. None keeps the input's size. Raises ValueError for an empty spatial
    dimension, TypeError unless the dtype is a float.
    """
    return _adaptive_avg_pool(2, input, output_size)


def adaptive_avg_pool3d(input: Tensor, output_size: Any) -> Tensor:
    """Like :func:`adaptive_avg_pool2d`, over three spatial dimensions."""
    return _adaptive_avg_pool(3, input, output_size)


def adaptive_max_pool1d(
    input: Tensor,
    output_size: Any,
    return_indices: bool = False,
) -> Any:
    """Like :func:`adaptive_max_pool2d`, over one spatial dimension."""
    return _adaptive_max_pool(1, input, output_size, return_indices)


def adaptive_max_pool2d(
    input: Tensor,
    output_size: Any,
    return_indices: bool = False,
) -> Any:
    """The maximum of each of ``output_size`` parts of the input.

    The parts are those of :func:`adaptive_avg_pool2d`. Gradients and indices are as in
    :func:`max_pool2d`.
    """
    return _adaptive_max_pool(2, input, output_size, return_indices)


def adaptive_max_pool3d(
    input: Tensor,
    output_size: Any,
    return_indices: bool = False,
) -> Any:
    """Like :func:`adaptive_max_pool2d`, over three spatial dimensions."""
    return _adaptive_max_pool(3, input, output_size, return_indices)
