"""Functions for images: unfold, fold, pixel shuffle and interpolation."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from minigrad.functions.arguments import integer, tensor_operand
from minigrad.functions.creation import tensor
from minigrad.nn.functional.pooling import (
    adaptive_avg_pool1d,
    adaptive_avg_pool2d,
    adaptive_avg_pool3d,
)
from minigrad.nn.functional.spatial import (
    Sizes,
    check_places,
    cropped,
    fit,
    padded,
    per_axis,
    require_floats,
)
from minigrad.ops.indexing import RESAMPLE
from minigrad.ops.window import FOLD_WINDOWS, WINDOWS
from minigrad.runtime.recorders import cached
from minigrad.tape.apply import apply

if TYPE_CHECKING:
    from minigrad._tensor import Tensor

__all__ = [
    "channel_shuffle",
    "fold",
    "interpolate",
    "pixel_shuffle",
    "pixel_unshuffle",
    "unfold",
    "upsample",
]

# ---- windows as columns --------------------------------------------------------------------------


def unfold(
    input: Tensor,
    kernel_size: Any,
    dilation: Any = 1,
    padding: Any = 0,
    stride: Any = 1,
) -> Tensor:
    """All windows of an image as columns (im2col): (N, C, H, W) gives (N, C * K * L, windows).

    Row ``(c * K + k) * L + l`` has element (k, l) of channel c of every window, with windows in
    row-major order. The arguments are those of :func:`conv2d`. (C, H, W) is accepted too. Unlike
    the method :meth:`Tensor.unfold` this is not a view. The transpose is :func:`fold`.

    Raises ValueError if no window fits.

    >>> import minigrad as mg
    >>> unfold(mg.arange(6).reshape(1, 2, 3), 2).tolist()
    [[0, 1], [1, 2], [3, 4], [4, 5]]
    """
    op = "unfold"
    x = tensor_operand(op, input)
    if x.ndim not in (3, 4):
        raise ValueError(f"[{op}] the input has shape {x.shape}, but must be (N, C, H, W)")
    kernel = per_axis(op, "kernel_size", kernel_size, 2, 1)
    gaps = per_axis(op, "dilation", dilation, 2, 1)
    around = per_axis(op, "padding", padding, 2, 0)
    steps = per_axis(op, "stride", stride, 2, 1)
    wide = padded(x, around, around)
    at = fit(op, wide.shape[-2:], kernel, steps, gaps)
    seen = apply(WINDOWS, (wide,), (at,))  # (..., C, windows, inside)
    columns = seen.permute(*range(x.ndim - 2), -2, -1, -4, -3).clone()
    rows = x.shape[-3] * math.prod(kernel)
    return columns.reshape(*x.shape[:-3], rows, math.prod(at.counts))


def fold(
    input: Tensor,
    output_size: Any,
    kernel_size: Any,
    dilation: Any = 1,
    padding: Any = 0,
    stride: Any = 1,
) -> Tensor:
    """Add columns at the positions of their windows in an image of ``output_size`` (col2im).

    This is the transpose of :func:`unfold`: (N, C * K * L, windows) gives (N, C, H, W). Without the
    batch, two dimensions give three. Overlapping elements are summed in a fixed order. Raises
    ValueError if the number of rows or columns does not fit, TypeError unless the dtype is a float.

    >>> import minigrad as mg
    >>> fold(mg.ones(4, 2), (2, 3), 2).tolist()
    [[[1.0, 2.0, 1.0], [1.0, 2.0, 1.0]]]
    """
    op = "fold"
    x = require_floats(op, tensor_operand(op, input))
    if x.ndim not in (2, 3):
        raise ValueError(
            f"[{op}] the input has shape {x.shape}, but must be (N, channels * kernel, windows)"
        )
    size = per_axis(op, "output_size", output_size, 2, 1)
    kernel = per_axis(op, "kernel_size", kernel_size, 2, 1)
    gaps = per_axis(op, "dilation", dilation, 2, 1)
    around = per_axis(op, "padding", padding, 2, 0)
    steps = per_axis(op, "stride", stride, 2, 1)
    wide = tuple([n + 2 * p for n, p in zip(size, around, strict=True)])
    at = fit(op, wide, kernel, steps, gaps)
    channels, left = divmod(x.shape[-2], math.prod(kernel))
    if left or x.shape[-1] != math.prod(at.counts):
        raise ValueError(
            f"[{op}] the input has shape {x.shape}, but an output of {size} by kernel {kernel} has "
            f"(channels * {math.prod(kernel)}, {math.prod(at.counts)})"
        )
    lead = x.shape[:-2]
    seen = x.reshape(*lead, channels, *kernel, *at.counts)
    seen = seen.permute(*range(len(lead) + 1), -2, -1, -4, -3)
    y = apply(FOLD_WINDOWS, (seen,), ((*lead, channels, *wide), at))
    return cropped(y, around, size).contiguous()


# ---- pixels and channels -------------------------------------------------------------------------


def pixel_shuffle(input: Tensor, upscale_factor: int) -> Tensor:
    """Turn channels into finer pixels: (..., C * r * r, H, W) gives (..., C, H * r, W * r).

    ``y[..., c, h * r + i, w * r + j] = x[..., (c * r + i) * r + j, h, w]`` (Shi et al. 2016).
    Raises ValueError if r * r does not divide the channels.

    >>> import minigrad as mg
    >>> pixel_shuffle(mg.arange(4).reshape(4, 1, 1), 2).tolist()
    [[[0, 1], [2, 3]]]
    """
    op = "pixel_shuffle"
    x, r = tensor_operand(op, input), integer(op, "upscale_factor", upscale_factor, 1)
    if x.ndim < 3 or x.shape[-3] % (r * r):
        raise ValueError(
            f"[{op}] the input has shape {x.shape}, but must be (..., C * {r * r}, H, W)"
        )
    *lead, channels, height, width = x.shape
    parts = x.reshape(*lead, channels // (r * r), r, r, height, width)
    order = (*range(len(lead) + 1), -2, -4, -1, -3)
    shape = (*lead, channels // (r * r), height * r, width * r)
    return parts.permute(order).clone().reshape(shape)


def pixel_unshuffle(input: Tensor, downscale_factor: int) -> Tensor:
    """The inverse of :func:`pixel_shuffle`: (..., C, H * r, W * r) gives (..., C * r * r, H, W).

    Raises ValueError if r does not divide height and width.
    """
    op = "pixel_unshuffle"
    x, r = tensor_operand(op, input), integer(op, "downscale_factor", downscale_factor, 1)
    if x.ndim < 3 or x.shape[-2] % r or x.shape[-1] % r:
        raise ValueError(
            f"[{op}] the input has shape {x.shape}, but must be (..., C, H * {r}, W * {r})"
        )
    *lead, channels, height, width = x.shape
    parts = x.reshape(*lead, channels, height // r, r, width // r, r)
    order = (*range(len(lead) + 1), -3, -1, -4, -2)
    shape = (*lead, channels * r * r, height // r, width // r)
    return parts.permute(order).clone().reshape(shape)


def channel_shuffle(input: Tensor, groups: int) -> Tensor:
    """Transpose the channels of (N, C, ...), seen as (groups, C / groups) (Zhang et al. 2018).

    Raises ValueError if the groups do not divide the channels.

    >>> import minigrad as mg
    >>> channel_shuffle(mg.arange(6).reshape(1, 6, 1), 2).flatten().tolist()
    [0, 3, 1, 4, 2, 5]
    """
    op = "channel_shuffle"
    x, count = tensor_operand(op, input), integer(op, "groups", groups, 1)
    if x.ndim < 3 or x.shape[1] % count:
        raise ValueError(
            f"[{op}] the input has shape {x.shape}, but must be (N, C, ...), C divisible by {count}"
        )
    batch, channels, *space = x.shape
    parts = x.reshape(batch, count, channels // count, *space)
    return parts.transpose(1, 2).clone().reshape(x.shape)


# ---- other sizes ---------------------------------------------------------------------------------

# Resampling of an axis. Each function gives, for every element, the positions and weights of its
# sources.
Terms = list[tuple[list[int], list[float]]]


def _nearest(n: int, m: int, step: float | None, _: bool) -> Terms:
    """The element at floor(i * step)."""
    places = [i * n // m if step is None else int(i * step) for i in range(m)]
    return [([min(at, n - 1) for at in places], [])]


def _nearest_exact(n: int, m: int, step: float | None, _: bool) -> Terms:
    """The element whose centre is nearest: floor((i + 1/2) * step)."""
    places = [
        (2 * i + 1) * n // (2 * m) if step is None else int((i + 0.5) * step) for i in range(m)
    ]
    return [([min(at, n - 1) for at in places], [])]


def _position(i: int, n: int, m: int, step: float | None, align_corners: bool) -> float:
    """The position of element i of m among n elements, aligned by corner centres or by edges."""
    if align_corners:
        return i * (n - 1) / (m - 1) if m > 1 else 0.0
    return (i + 0.5) * (n / m if step is None else step) - 0.5


def _linear(n: int, m: int, step: float | None, align_corners: bool) -> Terms:
    """The two neighbours, weighted linearly. Beyond the ends it is the last element alone."""
    at = [min(max(_position(i, n, m, step, align_corners), 0.0), n - 1.0) for i in range(m)]
    left = [int(a) for a in at]
    part = [a - b for a, b in zip(at, left, strict=True)]
    right = [min(b + 1, n - 1) for b in left]
    return [(left, [1.0 - p for p in part]), (right, part)]


def _cubic(n: int, m: int, step: float | None, align_corners: bool) -> Terms:
    """Four neighbours, weighted by the cubic convolution of Keys 1981, a = -3/4.

    The ends repeat.
    """
    at = [_position(i, n, m, step, align_corners) for i in range(m)]
    left = [math.floor(a) for a in at]
    terms = []
    for offset in (-1, 0, 1, 2):
        distance = [abs(b + offset - a) for a, b in zip(at, left, strict=True)]
        places = [min(max(b + offset, 0), n - 1) for b in left]
        terms.append((places, [_cubic_weight(d) for d in distance]))
    return terms


def _cubic_weight(d: float) -> float:
    a = -0.75
    if d <= 1.0:
        return ((a + 2.0) * d - (a + 3.0)) * d * d + 1.0
    return ((a * d - 5.0 * a) * d + 8.0 * a) * d - 4.0 * a


_AREA = {1: adaptive_avg_pool1d, 2: adaptive_avg_pool2d, 3: adaptive_avg_pool3d}

# mode: (the terms of an axis, the number of spatial dimensions; None: any)
_MODES: dict[str, tuple[Callable[[int, int, float | None, bool], Terms], int | None]] = {
    "nearest": (_nearest, None),
    "nearest-exact": (_nearest_exact, None),
    "linear": (_linear, 1),
    "bilinear": (_linear, 2),
    "trilinear": (_linear, 3),
    "bicubic": (_cubic, 2),
}


def _in_c(terms: Terms, dtype: Any) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """The terms as arrays: all positions, and all weights."""
    places = tuple([tensor(places)._h for places, _ in terms])
    return places, tuple([tensor(weights, dtype)._h for _, weights in terms if weights])


@cached(32)
def _terms(
    terms_of: Callable[..., Terms], n: int, m: int, step: float | None, align: bool, dtype: Any
) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    return _in_c(terms_of(n, m, step, align), dtype)


_MANY_TERMS = 1024  # longer terms are not cached


def _target(
    x: Tensor, size: Any, scale_factor: Any, recompute: Any
) -> tuple[Sizes, Sequence[float | None]]:
    """The output sizes, and the input's step from element to element if a factor gives it."""
    op, axes = "interpolate", x.ndim - 2
    if (size is None) == (scale_factor is None):
        raise ValueError(f"[{op}] give one of size and scale_factor: {size} and {scale_factor}")
    if size is not None:
        if recompute:
            raise ValueError(f"[{op}] recompute_scale_factor is for scale_factor, not for size")
        return per_axis(op, "size", size, axes, 1), (None,) * axes
    many = isinstance(scale_factor, (tuple, list))
    factors = tuple(map(float, scale_factor)) if many else (float(scale_factor),) * axes
    if len(factors) != axes or not all(0.0 < s < math.inf for s in factors):
        raise ValueError(
            f"[{op}] scale_factor is {scale_factor}, but must be a positive number, or one for "
            f"each of {axes} spatial dimensions"
        )
    sizes = tuple([math.floor(n * s) for n, s in zip(x.shape[2:], factors, strict=True)])
    return sizes, (None,) * axes if recompute else [1.0 / s for s in factors]


def interpolate(
    input: Tensor,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Tensor:
    """Resample the spatial dimensions, one to three after (N, C), to another size.

    The new size is ``size``, or ``floor(n * scale_factor)``. Both are a number, or one for each
    dimension. Element i of m has the position ``(i + 1/2) * n / m - 1/2`` among the n elements of
    the input. A given factor replaces m / n unless ``recompute_scale_factor`` is True. With
    ``align_corners`` the position is ``i * (n - 1) / (m - 1)``. ``mode`` says how the element is
    computed:

    - "nearest": the element at ``floor(i * n / m)``; "nearest-exact": at
      ``floor((i + 1/2) * n / m)``;
    - "linear", "bilinear", "trilinear" for 1, 2, 3 dimensions: the neighbours on both sides along
      each dimension, weighted linearly, with the ends repeated;
    - "bicubic" for 2 dimensions: four neighbours along each (Keys 1981, a = -3/4);
    - "area": the mean of the elements, :func:`adaptive_avg_pool2d`.

    Neighbours with weight 0 do not spread infinities or NaN. ``antialias`` is not supported. Raises
    ValueError for sizes and modes that do not fit. Raises TypeError unless the dtype is a float.
    The nearest modes take other dtypes too.

    >>> import minigrad as mg
    >>> interpolate(mg.tensor([[[0.0, 4.0]]]), size=4, mode="linear").tolist()
    [[[0.0, 1.0, 3.0, 4.0]]]
    """
    op = "interpolate"
    x = tensor_operand(op, input)
    axes = x.ndim - 2
    if not 1 <= axes <= 3 or min(x.shape[2:]) < 1:
        raise ValueError(
            f"[{op}] the input has shape {x.shape}, but must be (batch, channels, ...) with 1 to 3 "
            "dimensions of space that are not empty"
        )
    if antialias:
        raise ValueError(f"[{op}] antialias is not offered; mode='area' averages")
    sizes, steps = _target(x, size, scale_factor, recompute_scale_factor)
    if mode == "area":
        terms_of, fits = None, None
    elif mode in _MODES:
        terms_of, fits = _MODES[mode]
    else:
        raise ValueError(f"[{op}] mode is {mode!r}, but must be one of {[*_MODES, 'area']}")
    if fits not in (None, axes):
        raise ValueError(f"[{op}] mode {mode!r} is for {fits} dimensions of space, not {axes}")
    if align_corners is not None and terms_of not in (_linear, _cubic):
        raise ValueError(f"[{op}] align_corners has no meaning for mode {mode!r}")
    if min(sizes) < 1:
        raise ValueError(f"[{op}] the output would have spatial size {sizes}: it must not be empty")
    check_places(op, sizes)
    if terms_of is None:
        return _AREA[axes](x, sizes)
    if terms_of in (_linear, _cubic):
        x = require_floats(op, x)
    order = list(enumerate(zip(sizes, steps, strict=True)))
    if math.prod(sizes) > math.prod(x.shape[2:]):  # the last axis, element by element, while small
        order.reverse()
    for k, (m, step) in order:
        find: Any = _terms if m <= _MANY_TERMS else _terms.__wrapped__  # type: ignore[attr-defined]
        terms = find(terms_of, x.shape[2 + k], m, step, bool(align_corners), x.dtype)
        x = apply(RESAMPLE, (x,), (2 + k, terms))
    return x.contiguous()


def upsample(
    input: Tensor,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
) -> Tensor:
    """:func:`interpolate` under PyTorch's older name."""
    return interpolate(input, size, scale_factor, mode, align_corners)
