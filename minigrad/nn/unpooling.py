"""Max unpooling layers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from minigrad.nn import functional as F  # noqa: N812 - its usual name
from minigrad.nn.functional.spatial import per_axis
from minigrad.nn.module import Module

if TYPE_CHECKING:
    from minigrad._tensor import Tensor

__all__ = ["MaxUnpool1d", "MaxUnpool2d", "MaxUnpool3d"]


class _MaxUnpool(Module):
    axes: ClassVar[int]

    def __init__(self, kernel_size: Any, stride: Any = None, padding: Any = 0) -> None:
        op, axes = type(self).__name__, self.axes
        self.kernel_size = per_axis(op, "kernel_size", kernel_size, axes, 1)
        self.stride = per_axis(op, "stride", kernel_size if stride is None else stride, axes, 1)
        self.padding = per_axis(op, "padding", padding, axes, 0)

    def forward(self, x: Tensor, indices: Tensor, output_size: Any = None) -> Tensor:
        """The values of x at the positions in ``indices``, and zeros elsewhere."""
        unpool = getattr(F, f"max_unpool{self.axes}d")
        found: Tensor = unpool(x, indices, self.kernel_size, self.stride, self.padding, output_size)
        return found

    def extra_repr(self) -> str:
        """The arguments."""
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class MaxUnpool1d(_MaxUnpool):
    """Like :class:`MaxUnpool2d`, over one spatial dimension."""

    axes = 1


class MaxUnpool2d(_MaxUnpool):
    """:func:`minigrad.nn.functional.max_unpool2d` as a module.

    >>> import minigrad as mg
    >>> pool = mg.nn.MaxPool2d(2, return_indices=True)
    >>> y, places = pool(mg.arange(4.0).reshape(1, 2, 2))
    >>> mg.nn.MaxUnpool2d(2)(y, places).tolist()
    [[[0.0, 0.0], [0.0, 3.0]]]
    """

    axes = 2


class MaxUnpool3d(_MaxUnpool):
    """Like :class:`MaxUnpool2d`, over three spatial dimensions."""

    axes = 3
