"""Layers for upsampling, pixel shuffle, fold and unfold."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from minigrad.functions.arguments import integer
from minigrad.nn import functional as F  # noqa: N812 - its usual name
from minigrad.nn.module import Module

if TYPE_CHECKING:
    from minigrad._tensor import Tensor

__all__ = [
    "ChannelShuffle",
    "Fold",
    "PixelShuffle",
    "PixelUnshuffle",
    "Unfold",
    "Upsample",
    "UpsamplingBilinear2d",
    "UpsamplingNearest2d",
]


class Upsample(Module):
    """:func:`minigrad.nn.functional.interpolate` as a module.

    >>> import minigrad as mg
    >>> layer = mg.nn.Upsample(scale_factor=2)
    >>> layer
    Upsample(scale_factor=2.0, mode='nearest')
    >>> layer(mg.ones(1, 1, 2, 2)).shape
    (1, 1, 4, 4)
    """

    def __init__(
        self,
        size: Any = None,
        scale_factor: Any = None,
        mode: str = "nearest",
        align_corners: bool | None = None,
        recompute_scale_factor: bool | None = None,
    ) -> None:
        self.size = size
        if isinstance(scale_factor, (tuple, list)):
            self.scale_factor: Any = tuple(map(float, scale_factor))
        else:
            self.scale_factor = None if scale_factor is None else float(scale_factor)
        self.mode = mode
        self.align_corners = align_corners
        self.recompute_scale_factor = recompute_scale_factor

    def forward(self, x: Tensor) -> Tensor:
        """Resample the spatial dimensions of x."""
        return F.interpolate(
            x,
            self.size,
            self.scale_factor,
            self.mode,
            self.align_corners,
            self.recompute_scale_factor,
        )

    def extra_repr(self) -> str:
        """The size, or the factor, and the mode."""
        if self.scale_factor is None:
            return f"size={self.size!r}, mode={self.mode!r}"
        return f"scale_factor={self.scale_factor!r}, mode={self.mode!r}"


class UpsamplingNearest2d(Upsample):
    """:class:`Upsample` of (N, C, H, W) with ``mode="nearest"``."""

    def __init__(self, size: Any = None, scale_factor: Any = None) -> None:
        super().__init__(size, scale_factor)


class UpsamplingBilinear2d(Upsample):
    """:class:`Upsample` of (N, C, H, W) with ``mode="bilinear"`` and ``align_corners=True``."""

    def __init__(self, size: Any = None, scale_factor: Any = None) -> None:
        super().__init__(size, scale_factor, "bilinear", True)


class PixelShuffle(Module):
    """:func:`minigrad.nn.functional.pixel_shuffle` as a module.

    >>> import minigrad as mg
    >>> mg.nn.PixelShuffle(2)(mg.ones(1, 8, 3, 3)).shape
    (1, 2, 6, 6)
    """

    def __init__(self, upscale_factor: int) -> None:
        self.upscale_factor = integer("PixelShuffle", "upscale_factor", upscale_factor, 1)

    def forward(self, x: Tensor) -> Tensor:
        """Turn channels into finer pixels."""
        return F.pixel_shuffle(x, self.upscale_factor)

    def extra_repr(self) -> str:
        """The factor."""
        return f"upscale_factor={self.upscale_factor}"


class PixelUnshuffle(Module):
    """:func:`minigrad.nn.functional.pixel_unshuffle` as a module."""

    def __init__(self, downscale_factor: int) -> None:
        self.downscale_factor = integer("PixelUnshuffle", "downscale_factor", downscale_factor, 1)

    def forward(self, x: Tensor) -> Tensor:
        """Turn pixels into channels."""
        return F.pixel_unshuffle(x, self.downscale_factor)

    def extra_repr(self) -> str:
        """The factor."""
        return f"downscale_factor={self.downscale_factor}"


class ChannelShuffle(Module):
    """:func:`minigrad.nn.functional.channel_shuffle` as a module.

    >>> import minigrad as mg
    >>> mg.nn.ChannelShuffle(2)(mg.arange(4).reshape(1, 4, 1)).flatten().tolist()
    [0, 2, 1, 3]
    """

    def __init__(self, groups: int) -> None:
        self.groups = integer("ChannelShuffle", "groups", groups, 1)

    def forward(self, x: Tensor) -> Tensor:
        """The channels in another order."""
        return F.channel_shuffle(x, self.groups)

    def extra_repr(self) -> str:
        """The number of groups."""
        return f"groups={self.groups}"


class Fold(Module):
    """:func:`minigrad.nn.functional.fold` as a module.

    >>> import minigrad as mg
    >>> mg.nn.Fold((4, 5), (2, 2))(mg.ones(1, 12, 12)).shape
    (1, 3, 4, 5)
    """

    def __init__(
        self,
        output_size: Any,
        kernel_size: Any,
        dilation: Any = 1,
        padding: Any = 0,
        stride: Any = 1,
    ) -> None:
        self.output_size = output_size
        self.kernel_size = kernel_size
        self.dilation = dilation
        self.padding = padding
        self.stride = stride

    def forward(self, x: Tensor) -> Tensor:
        """Add columns at the positions of their windows."""
        return F.fold(
            x, self.output_size, self.kernel_size, self.dilation, self.padding, self.stride
        )

    def extra_repr(self) -> str:
        """The arguments."""
        return (
            f"output_size={self.output_size}, kernel_size={self.kernel_size}, "
            f"dilation={self.dilation}, padding={self.padding}, stride={self.stride}"
        )


class Unfold(Module):
    """:func:`minigrad.nn.functional.unfold` as a module.

    >>> import minigrad as mg
    >>> mg.nn.Unfold((2, 3))(mg.ones(2, 5, 3, 4)).shape
    (2, 30, 4)
    """

    def __init__(
        self, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1
    ) -> None:
        self.kernel_size = kernel_size
        self.dilation = dilation
        self.padding = padding
        self.stride = stride

    def forward(self, x: Tensor) -> Tensor:
        """Turn windows into columns."""
        return F.unfold(x, self.kernel_size, self.dilation, self.padding, self.stride)

    def extra_repr(self) -> str:
        """The arguments."""
        return (
            f"kernel_size={self.kernel_size}, dilation={self.dilation}, padding={self.padding}, "
            f"stride={self.stride}"
        )
