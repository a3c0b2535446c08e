"""Convolution layers."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from minigrad.functions.arguments import integer
from minigrad.nn import functional as F  # noqa: N812 - its usual name
from minigrad.nn.functional.spatial import Sizes, per_axis
from minigrad.nn.layers import redraw, uniform_parameter
from minigrad.nn.module import Module
from minigrad.runtime.devices import on_cpu
from minigrad.runtime.dtypes import as_dtype

if TYPE_CHECKING:
    from minigrad._tensor import Tensor

__all__ = [
    "Conv1d",
    "Conv2d",
    "Conv3d",
    "ConvTranspose1d",
    "ConvTranspose2d",
    "ConvTranspose3d",
]


class _Convolution(Module):
    """Base of convolutions and transposed convolutions: sizes, weight and bias."""

    axes: int
    transposed = False

    def _set(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any,
        dilation: Any,
        groups: int,
        bias: bool,
        dtype: Any,
    ) -> None:
        op, axes = type(self).__name__, self.axes
        self.in_channels = integer(op, "in_channels", in_channels, 0)
        self.out_channels = integer(op, "out_channels", out_channels, 0)
        self.groups = integer(op, "groups", groups, 1)
        if in_channels % groups or out_channels % groups:
            raise ValueError(
                f"[{op}] groups={groups} must divide in_channels={in_channels} and "
                f"out_channels={out_channels}"
            )
        self.kernel_size = per_axis(op, "kernel_size", kernel_size, axes, 1)
        self.stride = per_axis(op, "stride", stride, axes, 1)
        self.dilation = per_axis(op, "dilation", dilation, axes, 1)
        first, second = in_channels, out_channels
        if not self.transposed:
            first, second = second, first
        shape = (first, second // groups, *self.kernel_size)
        inputs = math.prod(shape[1:])
        bound = 1.0 / math.sqrt(inputs) if inputs else 0.0
        kind = as_dtype(dtype)
        self.weight = uniform_parameter(op, shape, bound, kind)
        self.bias = uniform_parameter(op, (out_channels,), bound, kind) if bias else None

    def reset_parameters(self) -> None:
        """Draw new starting values."""
        inputs = math.prod(self.weight.shape[1:])
        redraw(self, 1.0 / math.sqrt(inputs) if inputs else 0.0)

    def extra_repr(self) -> str:
        """The sizes, and the arguments that differ from their defaults."""
        one, none = (1,) * self.axes, (0,) * self.axes
        usual = {"padding": none, "dilation": one, "output_padding": none, "groups": 1}
        parts = [
            f"{self.in_channels}, {self.out_channels}",
            f"kernel_size={self.kernel_size}, stride={self.stride}",
        ]
        for name, value in usual.items():
            own = getattr(self, name, value)
            if own != value:
                parts.append(f"{name}={own}")
        if self.bias is None:
            parts.append("bias=False")
        mode = getattr(self, "padding_mode", "zeros")
        return ", ".join(parts if mode == "zeros" else [*parts, f"padding_mode={mode}"])


class _Conv(_Convolution):
    """Base of convolutions. A subclass sets the number of dimensions."""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        on_cpu(device)
        op = type(self).__name__
        self._set(in_channels, out_channels, kernel_size, stride, dilation, groups, bias, dtype)
        named = isinstance(padding, str)
        if named and padding not in ("same", "valid"):
            raise ValueError(f"[{op}] padding is {padding!r}, but must be 'same' or 'valid'")
        if padding_mode not in ("zeros", "reflect", "replicate", "circular"):
            raise ValueError(
                f"[{op}] padding_mode is {padding_mode!r}, but must be 'zeros', 'reflect', "
                "'replicate' or 'circular'"
            )
        self.padding = padding if named else per_axis(op, "padding", padding, self.axes, 0)
        self.padding_mode = padding_mode

    def forward(self, x: Tensor) -> Tensor:
        """The convolution of x with the weight."""
        convolution = getattr(F, f"conv{self.axes}d")
        padding = self.padding
        if self.padding_mode != "zeros":
            x, padding = F.pad(x, self._around(), self.padding_mode), 0
        return convolution(
            x, self.weight, self.bias, self.stride, padding, self.dilation, self.groups
        )

    def _around(self) -> Sizes:
        """Padding before and after each dimension, the last one first."""
        around: list[int] = []
        for axis in reversed(range(self.axes)):
            if self.padding == "same":
                total = self.dilation[axis] * (self.kernel_size[axis] - 1)
                around += [total // 2, total - total // 2]
            else:
                around += [0 if self.padding == "valid" else self.padding[axis]] * 2
        return tuple(around)


class Conv1d(_Conv):
    """Like :class:`Conv2d`, over one spatial dimension: (N, C, L)."""

    axes = 1


class Conv2d(_Conv):
    """:func:`minigrad.nn.functional.conv2d` as a module with a weight and a bias.

    Inputs have shape (N, in_channels, H, W) or (in_channels, H, W).

    The weight has shape (out_channels, in_channels / groups, *kernel_size). Weight and bias start
    in U(-b, b) with b = 1 / sqrt(in_channels / groups * the kernel's size), as in PyTorch. The
    values around the input follow ``padding_mode``: "zeros", "reflect", "replicate" or "circular".

    >>> import minigrad as mg
    >>> layer = mg.nn.Conv2d(3, 8, 3, padding="same")
    >>> layer(mg.ones(2, 3, 5, 5)).shape
    (2, 8, 5, 5)
    """

    axes = 2


class Conv3d(_Conv):
    """Like :class:`Conv2d`, over three spatial dimensions: (N, C, D, H, W)."""

    axes = 3


class _ConvTranspose(_Convolution):
    """Base of transposed convolutions. A subclass sets the number of dimensions."""

    transposed = True

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        output_padding: Any = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Any = 1,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        on_cpu(device)
        op = type(self).__name__
        self._set(in_channels, out_channels, kernel_size, stride, dilation, groups, bias, dtype)
        if padding_mode != "zeros":
            raise ValueError(f"[{op}] padding_mode is {padding_mode!r}, but only 'zeros' is there")
        self.padding = per_axis(op, "padding", padding, self.axes, 0)
        self.output_padding = per_axis(op, "output_padding", output_padding, self.axes, 0)

    def forward(self, x: Tensor, output_size: Any = None) -> Tensor:
        """The transposed convolution of x. ``output_size`` chooses one of the possible sizes."""
        convolution = getattr(F, f"conv_transpose{self.axes}d")
        extra = self.output_padding if output_size is None else self._extra(x, output_size)
        return convolution(
            x, self.weight, self.bias, self.stride, self.padding, extra, self.groups, self.dilation
        )

    def _extra(self, x: Tensor, output_size: Any) -> Sizes:
        """The output_padding for this output size. Only the last entries of a longer size count."""
        op = type(self).__name__
        many = isinstance(output_size, (tuple, list))
        sizes = per_axis(
            op, "output_size", output_size[-self.axes :] if many else output_size, self.axes, 1
        )
        least = [
            (n - 1) * s - 2 * p + d * (k - 1) + 1
            for n, k, s, p, d in zip(
                x.shape[-self.axes :],
                self.kernel_size,
                self.stride,
                self.padding,
                self.dilation,
                strict=True,
            )
        ]
        extra = tuple([m - n for m, n in zip(sizes, least, strict=True)])
        if any(not 0 <= e < s for e, s in zip(extra, self.stride, strict=True)):
            raise ValueError(
                f"[{op}] output_size {sizes} is out of reach: from {x.shape} it is at least "
                f"{tuple(least)}, and less than the stride {self.stride} more"
            )
        return extra


class ConvTranspose1d(_ConvTranspose):
    """Like :class:`ConvTranspose2d`, over one spatial dimension."""

    axes = 1


class ConvTranspose2d(_ConvTranspose):
    """:func:`minigrad.nn.functional.conv_transpose2d` as a module with a weight and a bias.

    The weight has shape (in_channels, out_channels / groups, *kernel_size). Weight and bias start
    in U(-b, b) with b = 1 / sqrt(out_channels / groups * the kernel's size), as in PyTorch.
    ``output_size`` in a call sets the output's size. A convolution of this size must give the
    input's size.

    >>> import minigrad as mg
    >>> layer = mg.nn.ConvTranspose2d(3, 8, 3, stride=2, padding=1)
    >>> layer(mg.ones(2, 3, 5, 5)).shape, layer(mg.ones(2, 3, 5, 5), output_size=10).shape
    ((2, 8, 9, 9), (2, 8, 10, 10))
    """

    axes = 2


class ConvTranspose3d(_ConvTranspose):
    """Like :class:`ConvTranspose2d`, over three spatial dimensions."""

    axes = 3


_ConvNd, _ConvTransposeNd = _Convolution, _ConvTranspose  # PyTorch's names of the base classes
