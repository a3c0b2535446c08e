"""Class of ``x.size``: an int, the number of elements, that can be called for the shape."""

from __future__ import annotations

from typing import Any, overload

from minigrad.functions.arguments import one_dim
from minigrad.tape.tensor_base import Size

__all__ = ["Count"]


class Count(int):
    """The number of elements of a tensor. A call returns the shape."""

    shape: Size

    @overload
    def __call__(self, dim: None = None) -> Size: ...
    @overload
    def __call__(self, dim: int) -> int: ...
    def __call__(self, dim: int | None = None) -> Size | int:
        """The shape, or the size of one dimension. Raises IndexError for a missing dimension."""
        return self.shape if dim is None else self.shape[one_dim("size", dim, len(self.shape))]

    def __reduce__(self) -> tuple[Any, ...]:
        return int, (int(self),)
