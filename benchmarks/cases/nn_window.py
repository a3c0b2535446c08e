"""Layers that slide a window: convolution in one and two dimensions, and pooling.

jax gets images with the channels last, as its users do: this is up to five times as fast. The time
of torch is the faster one of channels first and channels last. Pools differ by up to a factor of
twenty.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from math import prod
from typing import Any

import numpy as np

from benchmarks.cases.common import both_ways
from benchmarks.registry import faster

TARGETS = [faster(1.2)]
_AXES = {1: "H", 2: "HW"}


def _channels_last(image: Any) -> Any:
    return np.ascontiguousarray(np.moveaxis(image, 1, -1))


def _channels_first(image: Any) -> Any:
    return np.moveaxis(image, -1, 1)


def _uniform(rng: Any, *shape: int) -> np.ndarray:
    return np.asarray(rng.uniform(-1, 1, shape), dtype=np.float32)


# ---- convolution ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Convolution:
    """A convolution with the same size in all spatial dimensions."""

    batch: int
    channels: tuple[int, int]
    image: int
    kernel: int
    dimensions: int = 2
    stride: int = 1
    padding: int = 0
    dilation: int = 1
    groups: int = 1
    quick: bool = False

    @property
    def out(self) -> int:
        """The spatial size of the result."""
        reach = self.dilation * (self.kernel - 1) + 1
        return (self.image + 2 * self.padding - reach) // self.stride + 1

    @property
    def name(self) -> str:
        """The name in the table."""
        image = "x".join([str(self.image)] * self.dimensions)
        kernel = "x".join([str(self.kernel)] * self.dimensions)
        plain = {"stride": 1, "dilation": 1, "groups": 1}
        special = "".join(
            f" {field} {getattr(self, field)}"
            for field, usual in plain.items()
            if getattr(self, field) != usual
        )
        shape = f"{self.batch}x{self.channels[0]}x{image} to {self.channels[1]}"
        return f"conv{self.dimensions}d {kernel} {shape}{special}"

    @property
    def flops(self) -> float:
        """FLOPs of the forward pass."""
        taps = self.channels[0] // self.groups * self.kernel**self.dimensions
        return 2.0 * self.batch * self.channels[1] * self.out**self.dimensions * taps

    def inputs(self, rng: Any) -> list[np.ndarray]:
        """Upstream gradient, images, weights, bias."""
        taps = (self.channels[0] // self.groups, *[self.kernel] * self.dimensions)
        return [
            _uniform(rng, self.batch, self.channels[1], *[self.out] * self.dimensions),
            _uniform(rng, self.batch, self.channels[0], *[self.image] * self.dimensions),
            _uniform(rng, self.channels[1], *taps) / np.float32(prod(taps) ** 0.5),
            _uniform(rng, self.channels[1]),
        ]

    def eager(self, lib: Any) -> Callable[..., Any]:
        """minigrad's and torch's function."""
        return partial(
            getattr(lib.functional, f"conv{self.dimensions}d"),
            stride=self.stride,
            padding=self.padding,
            dilation=self.dilation,
            groups=self.groups,
        )

    def jax(self, jax: Any, x: Any, w: Any, b: Any) -> Any:
        """jax's general convolution, with the channels last."""
        axes = _AXES[self.dimensions]
        y = jax.lax.conv_general_dilated(
            x,
            w,
            (self.stride,) * self.dimensions,
            [(self.padding, self.padding)] * self.dimensions,
            rhs_dilation=(self.dilation,) * self.dimensions,
            dimension_numbers=(f"N{axes}C", f"{axes}IO", f"N{axes}C"),
            feature_group_count=self.groups,
        )
        return y + b

    def numpy(self, x: Any, w: Any, b: Any) -> Any:
        """NumPy's product with all windows, for one group."""
        spatial = tuple(range(2, 2 + self.dimensions))
        around = [(0, 0)] * 2 + [(self.padding, self.padding)] * self.dimensions
        reach = (self.dilation * (self.kernel - 1) + 1,) * self.dimensions
        windows = np.lib.stride_tricks.sliding_window_view(np.pad(x, around), reach, spatial)
        steps = [slice(None, None, self.stride)] * self.dimensions
        taps = [slice(None, None, self.dilation)] * self.dimensions
        windows = windows[(slice(None), slice(None), *steps, *taps)]
        last = tuple(range(2 + self.dimensions, 2 + 2 * self.dimensions))
        y = np.tensordot(windows, w, ((1, *last), (1, *spatial))) + b
        return np.moveaxis(y, -1, 1)


def _jax_layout(inputs: Sequence[Any]) -> list[Any]:
    *images, w, b = inputs
    return [*map(_channels_last, images), np.ascontiguousarray(np.moveaxis(w, (1, 0), (-2, -1))), b]


def _compared(name: str, results: list[Any]) -> list[Any]:
    """The result and the gradients, with the channels first."""
    if name != "jax":
        return results
    y, *gradients = results
    if not gradients:
        return [_channels_first(y)]
    dx, dw, db = gradients
    return [_channels_first(y), _channels_first(dx), np.moveaxis(dw, (-2, -1), (1, 0)), db]


for _c in (
    _Convolution(16, (64, 64), 1024, 5, dimensions=1, padding=2),
    _Convolution(32, (3, 64), 32, 3, padding=1, quick=True),
    _Convolution(64, (1, 6), 28, 5, padding=2),
    _Convolution(8, (64, 64), 56, 3, padding=1),
    _Convolution(8, (64, 128), 56, 3, stride=2, padding=1),
    _Convolution(8, (64, 64), 28, 3, padding=2, dilation=2),
    _Convolution(8, (64, 64), 28, 3, padding=1, groups=4),
    _Convolution(8, (64, 256), 56, 1),
    _Convolution(8, (64, 64), 56, 3, padding=1, groups=64),
    _Convolution(8, (512, 512), 7, 3, padding=1),
):
    both_ways(
        "nn",
        _c.name,
        _c.inputs,
        _c.eager,
        _c.jax,
        _c.numpy if _c.groups == 1 else None,
        None,
        {"flops": (_c.flops, 3 * _c.flops)},
        (_c.quick, _c.quick),
        _jax_layout,
        _c.dimensions == 2,
        compared=_compared,
        targets=TARGETS,
        note="NumPy by hand: forward only, without groups",
    )

# ---- pooling -------------------------------------------------------------------------------------

_IMAGES = (16, 64, 56, 56)


def _windows_jax(jax: Any, x: Any, kind: str, size: int, stride: int, padding: int) -> Any:
    """jax's pools with the channels last. Adjacent windows are axes, whose gradients are faster."""
    if size == stride:
        batch, rows, columns, channels = x.shape
        windows = x.reshape(batch, rows // size, size, columns // size, size, channels)
        return windows.max((2, 4)) if kind == "max" else windows.mean((2, 4))
    add, start = (jax.lax.max, -np.inf) if kind == "max" else (jax.lax.add, 0.0)
    around = [(0, 0), (padding, padding), (padding, padding), (0, 0)]
    y = jax.lax.reduce_window(x, start, add, (1, size, size, 1), (1, stride, stride, 1), around)
    return y if kind == "max" else y / size**2


def _windows_numpy(x: Any, kind: str, size: int, stride: int, padding: int) -> Any:
    """Slices of the image, one for each position in the window."""
    around = [(0, 0)] * 2 + [(padding, padding)] * 2
    if padding:
        x = np.pad(x, around, constant_values=-np.inf if kind == "max" else 0)
    rows, columns = ((n - size) // stride + 1 for n in x.shape[2:])
    y = None
    for i in range(size):
        for j in range(size):
            part = x[:, :, i : i + rows * stride : stride, j : j + columns * stride : stride]
            if y is None:
                y = part.copy()
            elif kind == "max":
                np.maximum(y, part, out=y)
            else:
                y += part
    return y if kind == "max" else y / np.float32(size**2)


def _pooling(kind: str, size: int, stride: int, padding: int, adaptive: int = 0) -> None:
    image = (_IMAGES[2] + 2 * padding - size) // stride + 1

    def inputs(rng: Any) -> list[np.ndarray]:
        return [_uniform(rng, *_IMAGES[:2], image, image), _uniform(rng, *_IMAGES)]

    def eager(lib: Any) -> Callable[..., Any]:
        if adaptive:
            return partial(getattr(lib.functional, f"adaptive_{kind}_pool2d"), output_size=adaptive)
        pool = getattr(lib.functional, f"{kind}_pool2d")
        return partial(pool, kernel_size=size, stride=stride, padding=padding)

    window = f"{size}x{size}" + (f" stride {stride}" if stride != size else "")
    name = f"adaptive_{kind}_pool2d to {adaptive}x{adaptive}" if adaptive else ""
    whole = 4.0 * prod(_IMAGES)
    taken = 4.0 * prod(_IMAGES[:2]) * image**2
    both_ways(
        "nn",
        f"{name or f'{kind}_pool2d {window}'}, {'x'.join(map(str, _IMAGES))}",
        inputs,
        eager,
        lambda jax, x: _windows_jax(jax, x, kind, size, stride, padding),
        lambda x: _windows_numpy(x, kind, size, stride, padding),
        None,
        {"reads": (whole, whole + taken), "writes": (taken, whole + taken)},
        (size == 2, size == 2),
        lambda inputs: list(map(_channels_last, inputs)),
        True,
        compared=lambda name, results: (
            list(map(_channels_first, results)) if name == "jax" else results
        ),
        targets=TARGETS,
        note="NumPy by hand: forward only",
    )


_pooling("max", 2, 2, 0)
_pooling("max", 3, 2, 1)
_pooling("avg", 2, 2, 0)
_pooling("avg", 8, 8, 0, adaptive=7)
_pooling("avg", 56, 56, 0, adaptive=1)
_pooling("max", 8, 8, 0, adaptive=7)
