"""References of functions that resize, sample and rearrange planes."""

from __future__ import annotations

import itertools
import math

import numpy as np

from expected.base import each, prefixed
from expected.windows import per_axis


def _source(i, n, m, align_corners):
    if align_corners:
        return i * (n - 1) / (m - 1) if m > 1 else 0
    return (i + 0.5) * n / m - 0.5


def _cubic(t, a=-0.75):
    """Keys 1981, with PyTorch's a."""
    t = abs(t)
    if t <= 1:
        return (a + 2) * t**3 - (a + 3) * t**2 + 1
    return a * (t**3 - 5 * t**2 + 8 * t - 4) if t < 2 else 0.0


def _line_matrix(n, m, mode, align_corners):
    """The matrix of weights of the n samples of a line for each of m positions."""
    y = np.zeros((m, n))
    for i in range(m):
        if mode == "nearest":
            y[i, i * n // m] = 1
        elif mode == "nearest-exact":
            y[i, int((i + 0.5) * n / m)] = 1
        elif mode == "area":
            y[i, i * n // m : -(-(i + 1) * n // m)] = 1
        elif mode == "bicubic":
            at = _source(i, n, m, align_corners)
            for k in range(math.floor(at) - 1, math.floor(at) + 3):
                y[i, min(max(k, 0), n - 1)] += _cubic(at - k)
        else:
            at = np.clip(_source(i, n, m, align_corners), 0, n - 1)
            low = int(at)
            y[i, low] += 1 - (at - low)
            y[i, min(low + 1, n - 1)] += at - low
        y[i] /= y[i].sum()
    return y


def _interpolate(
    x,
    size=None,
    scale_factor=None,
    mode="nearest",
    align_corners=None,
    recompute_scale_factor=None,
):
    axes = x.ndim - 2
    sizes = per_axis(size, axes) if size is not None else None
    for k in range(axes):
        n = x.shape[2 + k]
        m = sizes[k] if sizes else int(n * scale_factor)
        lines = _line_matrix(n, m, mode, align_corners)
        x = np.moveaxis(np.moveaxis(x, 2 + k, -1) @ lines.T, -1, 2 + k)
    return x


def _affine_grid(theta, size, align_corners=False):
    n, _, h, w = size

    def ends(m):
        return np.linspace(-1, 1, m) if align_corners else (2 * np.arange(m) + 1) / m - 1

    y, x = np.meshgrid(ends(h), ends(w), indexing="ij")
    points = np.stack([x, y, np.ones((h, w))], -1)
    return np.stack([points @ t.T for t in theta[:n]])


def _within(at, n, padding_mode, align_corners):
    """A coordinate moved into the plane according to the padding mode."""
    if padding_mode == "reflection":
        low, high = (0, n - 1) if align_corners else (-0.5, n - 0.5)
        span = high - low
        offset = abs(at - low) % (2 * span) if span else 0.0
        at = low + min(offset, 2 * span - offset)
    return at if padding_mode == "zeros" else min(max(at, 0), n - 1)


def _weights(at, n, mode, padding_mode, align_corners):
    """The samples of a line that count at a coordinate, and their weights."""
    whole = math.floor(at)
    if mode == "bicubic":  # each sample is moved into the plane separately
        taps = [(k, _cubic(at - k)) for k in range(whole - 1, whole + 3)]
        taps = [(round(_within(k, n, padding_mode, align_corners)), w) for k, w in taps]
    else:
        at = _within(at, n, padding_mode, align_corners)
        whole = math.floor(at)
        taps = (
            [(round(at), 1.0)]
            if mode == "nearest"
            else [
                (whole, 1 - (at - whole)),
                (whole + 1, at - whole),
            ]
        )
    return [(k, w) for k, w in taps if 0 <= k < n]


def _grid_sample(x, grid, mode="bilinear", padding_mode="zeros", align_corners=False):
    sizes = x.shape[2:]
    y = np.zeros((*x.shape[:2], *grid.shape[1:3]))
    for n, i, j in np.ndindex(grid.shape[:3]):
        rows, columns = (
            _weights(
                (g + 1) / 2 * (m - 1) if align_corners else ((g + 1) * m - 1) / 2,
                m,
                mode,
                padding_mode,
                align_corners,
            )
            for g, m in zip(grid[n, i, j, ::-1], sizes, strict=True)
        )
        for (a, v), (b, w) in itertools.product(rows, columns):
            y[n, :, i, j] += v * w * x[n, :, a, b]
    return y


def _pixel_shuffle(x, r):
    n, c, h, w = x.shape
    y = np.empty((n, c // r**2, h * r, w * r))
    for k, i, j in np.ndindex(c // r**2, r, r):
        y[:, k, i::r, j::r] = x[:, k * r * r + i * r + j]
    return y


def _pixel_unshuffle(x, r):
    *rest, c, h, w = x.shape
    y = np.empty((*rest, c * r**2, h // r, w // r))
    for k, i, j in np.ndindex(c, r, r):
        y[..., k * r * r + i * r + j, :, :] = x[..., k, i::r, j::r]
    return y


def _channel_shuffle(x, groups):
    return np.stack(
        [x[:, k :: x.shape[1] // groups] for k in range(x.shape[1] // groups)], 1
    ).reshape(x.shape)


PLANES = prefixed(
    "nn.functional.",
    {
        **each("interpolate upsample", _interpolate),
        "affine_grid": _affine_grid,
        "grid_sample": _grid_sample,
        "channel_shuffle": _channel_shuffle,
        "pixel_shuffle": _pixel_shuffle,
        "pixel_unshuffle": _pixel_unshuffle,
    },
)
