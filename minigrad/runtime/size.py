"""The class of shapes: a tuple whose slices and sums are shapes too."""

from __future__ import annotations

import math
from typing import Any, SupportsIndex, overload

__all__ = ["Size"]


class Size(tuple[int, ...]):
    """A shape: a tuple of the size of each dimension, with numel().

    >>> import minigrad as mg
    >>> mg.zeros(2, 3, 4).shape[1:].numel()
    12
    """

    __slots__ = ()

    @overload
    def __getitem__(self, index: SupportsIndex, /) -> int: ...
    @overload
    def __getitem__(self, index: slice, /) -> Size: ...
    def __getitem__(self, index: Any, /) -> Any:
        found = tuple.__getitem__(self, index)
        return Size(found) if isinstance(index, slice) else found

    def __add__(self, other: Any, /) -> Size:
        return Size(tuple.__add__(self, other))

    def numel(self) -> int:
        """The number of elements of a tensor of this shape."""
        return math.prod(self)


Size.__module__ = "minigrad"
