"""Pooling layers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from minigrad.nn import functional as F  # noqa: N812 - its usual name
from minigrad.nn.module import Module

if TYPE_CHECKING:
    from minigrad._tensor import Tensor

__all__ = [
    "AdaptiveAvgPool1d",
    "AdaptiveAvgPool2d",
    "AdaptiveAvgPool3d",
    "AdaptiveMaxPool1d",
    "AdaptiveMaxPool2d",
    "AdaptiveMaxPool3d",
    "AvgPool1d",
    "AvgPool2d",
    "AvgPool3d",
    "LPPool1d",
    "LPPool2d",
    "LPPool3d",
    "MaxPool1d",
    "MaxPool2d",
    "MaxPool3d",
]


class _MaxPool(Module):
    axes: int

    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        dilation: Any = 1,
        return_indices: bool = False,
        ceil_mode: bool = False,
    ) -> None:
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding = padding
        self.dilation = dilation
        self.return_indices = return_indices
        self.ceil_mode = ceil_mode

    def forward(self, x: Tensor) -> Any:
        """The maxima, with their indices if these are wanted."""
        return getattr(F, f"max_pool{self.axes}d")(
            x,
            self.kernel_size,
            self.stride,
            self.padding,
            self.dilation,
            self.ceil_mode,
            self.return_indices,
        )

    def extra_repr(self) -> str:
        """The arguments."""
        return (
            f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}, "
            f"dilation={self.dilation}, ceil_mode={self.ceil_mode}"
        )


class MaxPool1d(_MaxPool):
    """:func:`minigrad.nn.functional.max_pool1d` as a module."""

    axes = 1


class MaxPool2d(_MaxPool):
    """:func:`minigrad.nn.functional.max_pool2d` as a module.

    >>> import minigrad as mg
    >>> mg.nn.MaxPool2d(2)(mg.ones(1, 3, 4, 6)).shape
    (1, 3, 2, 3)
    """

    axes = 2


class MaxPool3d(_MaxPool):
    """:func:`minigrad.nn.functional.max_pool3d` as a module."""

    axes = 3


class _AvgPool(Module):
    axes: int

    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> None:
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding = padding
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad
        self.divisor_override = divisor_override

    def forward(self, x: Tensor) -> Tensor:
        """The means."""
        arguments = [
            self.kernel_size,
            self.stride,
            self.padding,
            self.ceil_mode,
            self.count_include_pad,
        ]
        if self.divisor_override is not None:
            arguments.append(self.divisor_override)
        return getattr(F, f"avg_pool{self.axes}d")(x, *arguments)

    def extra_repr(self) -> str:
        """The arguments."""
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class AvgPool1d(_AvgPool):
    """:func:`minigrad.nn.functional.avg_pool1d` as a module."""

    axes = 1

    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> None:
        super().__init__(kernel_size, stride, padding, ceil_mode, count_include_pad)


class AvgPool2d(_AvgPool):
    """:func:`minigrad.nn.functional.avg_pool2d` as a module."""

    axes = 2


class AvgPool3d(_AvgPool):
    """:func:`minigrad.nn.functional.avg_pool3d` as a module."""

    axes = 3


class _AdaptiveAvgPool(Module):
    axes: int

    def __init__(self, output_size: Any) -> None:
        self.output_size = output_size

    def forward(self, x: Tensor) -> Tensor:
        """The means."""
        return getattr(F, f"adaptive_avg_pool{self.axes}d")(x, self.output_size)

    def extra_repr(self) -> str:
        """The argument."""
        return f"output_size={self.output_size}"


class AdaptiveAvgPool1d(_AdaptiveAvgPool):
    """:func:`minigrad.nn.functional.adaptive_avg_pool1d` as a module."""

    axes = 1


class AdaptiveAvgPool2d(_AdaptiveAvgPool):
    """:func:`minigrad.nn.functional.adaptive_avg_pool2d` as a module."""

    axes = 2


class AdaptiveAvgPool3d(_AdaptiveAvgPool):
    """:func:`minigrad.nn.functional.adaptive_avg_pool3d` as a module."""

    axes = 3


class _AdaptiveMaxPool(Module):
    axes: int

    def __init__(self, output_size: Any, return_indices: bool = False) -> None:
        self.output_size = output_size
        self.return_indices = return_indices

    def forward(self, x: Tensor) -> Any:
        """The maxima, with their indices if these are wanted."""
        pool = getattr(F, f"adaptive_max_pool{self.axes}d")
        return pool(x, self.output_size, self.return_indices)

    extra_repr = _AdaptiveAvgPool.extra_repr


class AdaptiveMaxPool1d(_AdaptiveMaxPool):
    """:func:`minigrad.nn.functional.adaptive_max_pool1d` as a module."""

    axes = 1


class AdaptiveMaxPool2d(_AdaptiveMaxPool):
    """:func:`minigrad.nn.functional.adaptive_max_pool2d` as a module."""

    axes = 2


class AdaptiveMaxPool3d(_AdaptiveMaxPool):
    """:func:`minigrad.nn.functional.adaptive_max_pool3d` as a module."""

    axes = 3


class _LPPool(Module):
    axes: int

    def __init__(
        self, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False
    ) -> None:
        self.norm_type = norm_type
        self.kernel_size = kernel_size
        self.stride = stride
        self.ceil_mode = ceil_mode

    def forward(self, x: Tensor) -> Tensor:
        """The norms of the windows."""
        pool = getattr(F, f"lp_pool{self.axes}d")
        norms: Tensor = pool(
            x, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode
        )
        return norms

    def extra_repr(self) -> str:
        """The arguments."""
        return (
            f"norm_type={self.norm_type}, kernel_size={self.kernel_size}, stride={self.stride}, "
            f"ceil_mode={self.ceil_mode}"
        )


class LPPool1d(_LPPool):
    """:func:`minigrad.nn.functional.lp_pool1d` as a module."""

    axes = 1


class LPPool2d(_LPPool):
    """:func:`minigrad.nn.functional.lp_pool2d` as a module."""

    axes = 2


class LPPool3d(_LPPool):
    """:func:`minigrad.nn.functional.lp_pool3d` as a module."""

    axes = 3
