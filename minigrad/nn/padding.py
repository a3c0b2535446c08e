"""Padding layers: :func:`minigrad.nn.functional.pad` with its amounts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from minigrad.functions.arguments import integer
from minigrad.nn import functional as F  # noqa: N812 - its usual name
from minigrad.nn.module import Module

if TYPE_CHECKING:
    from minigrad._tensor import Tensor

__all__ = [
    "CircularPad1d",
    "CircularPad2d",
    "CircularPad3d",
    "ConstantPad1d",
    "ConstantPad2d",
    "ConstantPad3d",
    "ReflectionPad1d",
    "ReflectionPad2d",
    "ReflectionPad3d",
    "ReplicationPad1d",
    "ReplicationPad2d",
    "ReplicationPad3d",
    "ZeroPad1d",
    "ZeroPad2d",
    "ZeroPad3d",
]


class _Pad(Module):
    """Base of padding layers of the last ``axes`` dimensions. One number stands for all amounts."""

    axes: ClassVar[int]
    mode: ClassVar[str]

    def __init__(self, padding: Any) -> None:
        op, count = type(self).__name__, 2 * self.axes
        many = isinstance(padding, (tuple, list))
        amounts = tuple([integer(op, "padding", n) for n in (padding if many else (padding,))])
        if many and len(amounts) != count:
            raise ValueError(f"[{op}] padding is {padding}: give a number or {count} of them")
        self.padding = amounts if many else amounts * count

    def forward(self, x: Tensor) -> Tensor:
        """x with its borders."""
        least = self.axes + 1
        if x.ndim not in (least, least + 1):
            raise ValueError(
                f"[{type(self).__name__}] the input has shape {x.shape}, but must have {least} or "
                f"{least + 1} dimensions"
            )
        return F.pad(x, self.padding, self.mode)

    def extra_repr(self) -> str:
        """The amounts."""
        return str(self.padding)


class _ConstantPad(_Pad):
    value: float

    def __init__(self, padding: Any, value: float) -> None:
        super().__init__(padding)
        self.value = value

    def forward(self, x: Tensor) -> Tensor:
        """x with its borders."""
        return F.pad(x, self.padding, "constant", self.value)

    def extra_repr(self) -> str:
        """The amounts and the value."""
        return f"padding={self.padding}, value={self.value}"


class ConstantPad1d(_ConstantPad):
    """Like :class:`ConstantPad2d`, for the last dimension."""

    axes = 1


class ConstantPad2d(_ConstantPad):
    """Add elements of one value around the last two dimensions. Negative amounts remove elements.

    ``padding`` is a number for all sides or (left, right, top, bottom). The input has two or more
    dimensions. Raises ValueError for another number of amounts, TypeError unless they are integers.

    >>> import minigrad as mg
    >>> mg.nn.ConstantPad2d((1, 0, 0, 1), 7.0)(mg.ones(1, 2)).tolist()
    [[7.0, 1.0, 1.0], [7.0, 7.0, 7.0]]
    """

    axes = 2


class ConstantPad3d(_ConstantPad):
    """Like :class:`ConstantPad2d`, for the last three dimensions, (..., front, back)."""

    axes = 3


class _ZeroPad(_ConstantPad):
    def __init__(self, padding: Any) -> None:
        super().__init__(padding, 0.0)

    def forward(self, x: Tensor) -> Tensor:
        """x with its borders."""
        return F.pad(x, self.padding)

    extra_repr = _Pad.extra_repr


class ZeroPad1d(_ZeroPad):
    """Like :class:`ZeroPad2d`, for the last dimension."""

    axes = 1


class ZeroPad2d(_ZeroPad):
    """:class:`ConstantPad2d` with zeros.

    >>> import minigrad as mg
    >>> mg.nn.ZeroPad2d(1)
    ZeroPad2d((1, 1, 1, 1))
    """

    axes = 2


class ZeroPad3d(_ZeroPad):
    """Like :class:`ZeroPad2d`, for the last three dimensions."""

    axes = 3


class ReflectionPad1d(_Pad):
    """Like :class:`ReflectionPad2d`, for inputs of shape (N, C, L) or (C, L)."""

    axes, mode = 1, "reflect"


class ReflectionPad2d(_Pad):
    """Pad by mirrored elements, without the border itself.

    ``padding`` is a number for all sides or (left, right, top, bottom). The input has shape (N, C,
    H, W) or (C, H, W). Raises ValueError for other shapes, and if there are too few elements to
    reflect.

    >>> import minigrad as mg
    >>> mg.nn.ReflectionPad2d((1, 1, 0, 0))(mg.tensor([[[1.0, 2.0, 3.0]]])).tolist()
    [[[2.0, 1.0, 2.0, 3.0, 2.0]]]
    """

    axes, mode = 2, "reflect"


class ReflectionPad3d(_Pad):
    """Like :class:`ReflectionPad2d`, for inputs of shape (N, C, D, H, W) or (C, D, H, W)."""

    axes, mode = 3, "reflect"


class ReplicationPad1d(_Pad):
    """Like :class:`ReplicationPad2d`, for inputs of shape (N, C, L) or (C, L)."""

    axes, mode = 1, "replicate"


class ReplicationPad2d(_Pad):
    """Pad by repeating the elements at the border. Arguments are as for :class:`ReflectionPad2d`.

    >>> import minigrad as mg
    >>> mg.nn.ReplicationPad2d((2, 1, 0, 0))(mg.tensor([[[1.0, 2.0]]])).tolist()
    [[[1.0, 1.0, 1.0, 2.0, 2.0]]]
    """

    axes, mode = 2, "replicate"


class ReplicationPad3d(_Pad):
    """Like :class:`ReplicationPad2d`, for inputs of shape (N, C, D, H, W) or (C, D, H, W)."""

    axes, mode = 3, "replicate"


class CircularPad1d(_Pad):
    """Like :class:`CircularPad2d`, for inputs of shape (N, C, L) or (C, L)."""

    axes, mode = 1, "circular"


class CircularPad2d(_Pad):
    """Pad by the elements of the opposite side. Arguments are as for :class:`ReflectionPad2d`.

    >>> import minigrad as mg
    >>> mg.nn.CircularPad2d((1, 1, 0, 0))(mg.tensor([[[1.0, 2.0, 3.0]]])).tolist()
    [[[3.0, 1.0, 2.0, 3.0, 1.0]]]
    """

    axes, mode = 2, "circular"


class CircularPad3d(_Pad):
    """Like :class:`CircularPad2d`, for inputs of shape (N, C, D, H, W) or (C, D, H, W)."""

    axes, mode = 3, "circular"
