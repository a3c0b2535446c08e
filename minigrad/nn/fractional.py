"""Fractional max pooling layers."""

from __future__ import annotations

from typing import Any, ClassVar

from minigrad._tensor import Tensor
from minigrad.nn import functional as F  # noqa: N812 - its usual name
from minigrad.nn.module import Module

__all__ = ["FractionalMaxPool2d", "FractionalMaxPool3d"]


class _FractionalMaxPool(Module):
    axes: ClassVar[int]
    _random_samples: Tensor | None

    def __init__(
        self,
        kernel_size: Any,
        output_size: Any = None,
        output_ratio: Any = None,
        return_indices: bool = False,
        _random_samples: Tensor | None = None,
    ) -> None:
        op = type(self).__name__
        if (output_size is None) == (output_ratio is None):
            raise ValueError(f"[{op}] give output_size or output_ratio, one of both")
        self.kernel_size = kernel_size
        self.output_size = output_size
        self.output_ratio = output_ratio
        self.return_indices = return_indices
        self.register_buffer("_random_samples", _random_samples)

    def forward(self, x: Tensor) -> Any:
        """The maxima, and with return_indices their positions."""
        return getattr(F, f"fractional_max_pool{self.axes}d")(
            x,
            self.kernel_size,
            self.output_size,
            self.output_ratio,
            self.return_indices,
            self._random_samples,
        )


class FractionalMaxPool2d(_FractionalMaxPool):
    """:func:`minigrad.nn.functional.fractional_max_pool2d` as a module.

    >>> import minigrad as mg
    >>> mg.nn.FractionalMaxPool2d(2, output_ratio=0.5)(mg.ones(1, 3, 8, 8)).shape
    (1, 3, 4, 4)
    """

    axes = 2


class FractionalMaxPool3d(_FractionalMaxPool):
    """:func:`minigrad.nn.functional.fractional_max_pool3d` as a module."""

    axes = 3
