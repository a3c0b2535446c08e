"""Functions for grid sampling: images interpolated at points (Jaderberg et al. 2015)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from minigrad import functions as f
from minigrad.functions.arguments import size_of, tensor_operand
from minigrad.functions.creation import arange, ones, ones_like
from minigrad.nn.functional.operands import floats

if TYPE_CHECKING:
    from minigrad._tensor import Tensor

__all__ = ["affine_grid", "grid_sample"]

_A = -0.75  # Keys 1981


def affine_grid(theta: Tensor, size: Sequence[int], align_corners: bool | None = None) -> Tensor:
    """The images of all pixels' positions under affine maps, for :func:`grid_sample`.

    For a ``size`` (N, C, H, W), ``theta`` has shape (N, 2, 3) and the result (N, H, W, 2). For (N,
    C, D, H, W), ``theta`` has shape (N, 3, 4) and the result (N, D, H, W, 3). Points are (x, y) or
    (x, y, z). The coordinates -1 and 1 are the edges of the image, or with ``align_corners`` the
    centres of its outer pixels.

    Raises ValueError for shapes that do not fit.

    >>> import minigrad as mg
    >>> same = mg.tensor([[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]])
    >>> affine_grid(same, (1, 1, 1, 2), align_corners=False).tolist()
    [[[[-0.5, 0.0], [0.5, 0.0]]]]
    """
    op = "affine_grid"
    (maps,) = floats(op, theta)
    sizes = size_of(op, tuple(size))
    axes = len(sizes) - 2
    if axes not in (2, 3) or maps.shape != (sizes[0], axes, axes + 1) or min(sizes) < 1:
        raise ValueError(
            f"[{op}] theta has shape {maps.shape} and size is {sizes}: they must be (N, 2, 3) and "
            "(N, C, H, W), or (N, 3, 4) and (N, C, D, H, W), of sizes above 0"
        )
    lines = [_line(n, bool(align_corners)).to(maps.dtype) for n in sizes[2:]]
    points = f.meshgrid(*lines, indexing="ij")[::-1]  # x, the last dimension, comes first
    base = f.stack((*points, ones(sizes[2:], dtype=maps.dtype)), -1).reshape(-1, axes + 1)
    grid = f.matmul(base, maps.mT)
    return grid.reshape(sizes[0], *sizes[2:], axes)


def _line(n: int, align: bool) -> Tensor:
    """The coordinates of n pixels, between -1 and 1."""
    if align:
        return arange(n, dtype="float64") * (2.0 / max(n - 1, 1)) - (1.0 if n > 1 else 0.0)
    return (2.0 * arange(n, dtype="float64") + (1.0 - n)) / n


def grid_sample(
    input: Tensor,
    grid: Tensor,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool | None = None,
) -> Tensor:
    """The values of images at points: (N, C, H, W) and (N, Ho, Wo, 2) give (N, C, Ho, Wo).

    (N, C, D, H, W) and (N, Do, Ho, Wo, 3) are accepted too. Points are (x, y) or (x, y, z). The
    coordinates -1 and 1 are the edges of the image, or with ``align_corners`` the centres of its
    outer pixels.

    ``mode`` is "bilinear", also for three axes, "nearest", where points get no gradient, or
    "bicubic", for images only (Keys 1981, a = -3/4). ``padding_mode`` gives the values outside:
    "zeros", "border" for the nearest pixel, or "reflection" for the image mirrored at its edges.

    Raises ValueError for unknown modes and shapes that do not fit, TypeError unless the dtype is a
    float.

    >>> import minigrad as mg
    >>> image = mg.tensor([[[[0.0, 4.0]]]])
    >>> grid_sample(image, mg.tensor([[[[0.0, 0.0], [0.5, 0.0]]]]), align_corners=True).tolist()
    [[[[2.0, 3.0]]]]
    """
    op = "grid_sample"
    x, points = floats(op, tensor_operand(op, input), tensor_operand(op, grid))
    axes = x.ndim - 2
    if (
        axes not in (2, 3)
        or points.ndim != axes + 2
        or points.shape[0] != x.shape[0]
        or points.shape[-1] != axes
        or min(x.shape[2:]) < 1
    ):
        raise ValueError(
            f"[{op}] input {x.shape} and grid {points.shape} do not fit: (N, C, H, W) and (N, Ho, "
            "Wo, 2), or (N, C, D, H, W) and (N, Do, Ho, Wo, 3), of an image that is not empty"
        )
    if mode not in ("bilinear", "nearest", "bicubic") or (mode == "bicubic" and axes == 3):
        raise ValueError(
            f"[{op}] mode is {mode!r}, but must be 'bilinear', 'nearest' or, for images, 'bicubic'"
        )
    if padding_mode not in ("zeros", "border", "reflection"):
        raise ValueError(
            f"[{op}] padding_mode is {padding_mode!r}, but must be 'zeros', 'border' or "
            "'reflection'"
        )
    align, shape = bool(align_corners), points.shape[1:-1]
    lines = points.reshape(x.shape[0], math.prod(shape), axes)
    along = [
        _Axis(lines[..., axes - 1 - k], n, mode, padding_mode, align)
        for k, n in enumerate(x.shape[2:])
    ]
    plane = x.flatten(2)
    total: Any = None
    for taps in itertools.product(*[axis.taps() for axis in along]):
        place: Any = 0
        inside, weight = taps[0][1], taps[0][2]
        for k, (at, within, share) in enumerate(taps):
            place = place * x.shape[2 + k] + at
            if k:
                inside, weight = inside & within, weight * share
        index = place.unsqueeze(1).expand(x.shape[0], x.shape[1], place.shape[1])
        part = plane.gather(2, index) * weight.unsqueeze(1)
        part = f.where(inside.unsqueeze(1), part, 0.0)
        total = part if total is None else total + part
    return total.reshape(*x.shape[:2], *shape)


class _Axis:
    """The coordinates of points along one axis of n pixels, which lie at 0, ..., n - 1."""

    def __init__(self, at: Tensor, n: int, mode: str, padding: str, align: bool) -> None:
        self.n, self.mode, self.padding, self.align = n, mode, padding, align
        self.at = (at + 1.0) * (0.5 * (n - 1)) if align else ((at + 1.0) * n - 1.0) * 0.5
        if mode != "bicubic":  # for bicubic the neighbours are brought inside instead
            self.at = self._inside(self.at)

    def _inside(self, at: Tensor) -> Tensor:
        """Coordinates moved into the image according to ``padding``."""
        if self.padding == "zeros":
            return at
        if self.padding == "reflection":
            low, span = (0.0, float(self.n - 1)) if self.align else (-0.5, float(self.n))
            if span == 0.0:
                return at * 0.0
            far = f.abs(at - low)
            turns = f.floor(far.detach() / span)
            rest = far - turns * span
            at = f.where(f.eq(f.remainder(turns, 2.0), 0.0), rest, span - rest) + low
        return f.clamp(at, 0.0, float(self.n - 1))

    def taps(self) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        """For each neighbour of the points: its position, whether it is inside, and its weight."""
        if self.mode == "nearest":
            yield self._tap(f.round(self.at.detach()), ones_like(self.at.detach()))
            return
        first = f.floor(self.at.detach())
        part = self.at - first
        if self.mode == "bilinear":
            yield self._tap(first, 1.0 - part)
            yield self._tap(first + 1.0, part)
            return
        for step, distance in ((-1, part + 1.0), (0, part), (1, 1.0 - part), (2, 2.0 - part)):
            d = distance
            if step in (0, 1):
                share = ((_A + 2.0) * d - (_A + 3.0)) * d * d + 1.0
            else:
                share = ((_A * d - 5.0 * _A) * d + 8.0 * _A) * d - 4.0 * _A
            yield self._tap(self._inside(first + float(step)), share)

    def _tap(self, place: Tensor, share: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        inside = (place >= 0.0) & (place <= self.n - 1.0)
        return f.where(inside, place, 0.0).long(), inside, share
