"""Methods of Tensor that create a tensor of the same dtype, such as ``new_zeros``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from minigrad.functions import creation
from minigrad.runtime.devices import on_cpu

if TYPE_CHECKING:
    from minigrad._tensor import Tensor

__all__ = [
    "new",
    "new_empty",
    "new_full",
    "new_ones",
    "new_tensor",
    "new_zeros",
]


def new_zeros(
    self: Tensor,
    *sizes: Any,
    size: Any = None,
    dtype: Any = None,
    requires_grad: bool = False,
    device: Any = None,
    pin_memory: bool = False,
) -> Tensor:
    """A tensor of zeros of the given size, in this tensor's dtype unless another is given."""
    return creation.zeros(
        *sizes,
        size=size,
        dtype=dtype or self.dtype,
        requires_grad=requires_grad,
        device=device,
    )


def new_ones(
    self: Tensor,
    *sizes: Any,
    size: Any = None,
    dtype: Any = None,
    requires_grad: bool = False,
    device: Any = None,
    pin_memory: bool = False,
) -> Tensor:
    """A tensor of ones of the given size, in this tensor's dtype unless another is given."""
    return creation.ones(
        *sizes,
        size=size,
        dtype=dtype or self.dtype,
        requires_grad=requires_grad,
        device=device,
    )


def new_empty(
    self: Tensor,
    *sizes: Any,
    size: Any = None,
    dtype: Any = None,
    requires_grad: bool = False,
    device: Any = None,
    pin_memory: bool = False,
) -> Tensor:
    """An uninitialised tensor, in this tensor's dtype unless another is given."""
    return creation.empty(
        *sizes,
        size=size,
        dtype=dtype or self.dtype,
        requires_grad=requires_grad,
        device=device,
    )


def new_full(
    self: Tensor,
    size: Any,
    fill_value: float,
    *,
    dtype: Any = None,
    requires_grad: bool = False,
    device: Any = None,
    pin_memory: bool = False,
) -> Tensor:
    """A tensor filled with one value, in this tensor's dtype unless another is given."""
    on_cpu(device)
    kind = dtype or self.dtype
    return creation.full(size, fill_value, dtype=kind, requires_grad=requires_grad)


def new_tensor(
    self: Tensor,
    data: Any,
    *,
    dtype: Any = None,
    requires_grad: bool = False,
    device: Any = None,
    pin_memory: bool = False,
) -> Tensor:
    """A tensor with a copy of the data, in this tensor's dtype unless another is given."""
    on_cpu(device)
    return creation.tensor(data, dtype or self.dtype, requires_grad)


def new(self: Tensor, *args: Any, device: Any = None) -> Tensor:
    """A tensor of this dtype with the given sizes or data: PyTorch's older form."""
    return creation.of_sizes_or_data("new", args, self.dtype, device)
