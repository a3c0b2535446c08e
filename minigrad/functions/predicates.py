"""Predicates on objects, tensors and shapes under PyTorch's names, such as ``is_tensor``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeGuard

from minigrad.functions.arguments import broadcast_shape, tensor_operand
from minigrad.tape.tensor_base import Size, TensorBase

if TYPE_CHECKING:
    from minigrad._tensor import Tensor

__all__ = [
    "broadcast_shapes",
    "get_device",
    "is_complex",
    "is_conj",
    "is_nonzero",
    "is_same_size",
    "is_storage",
    "is_tensor",
    "numel",
    "typename",
]


def is_tensor(obj: Any) -> TypeGuard[Tensor]:
    """True for tensors.

    >>> import minigrad as mg
    >>> mg.is_tensor(mg.ones(2)), mg.is_tensor([1])
    (True, False)
    """
    return isinstance(obj, TensorBase)


def is_storage(obj: Any) -> bool:
    """False: minigrad has no storage objects."""
    return False


def numel(input: Tensor) -> int:
    """The number of elements."""
    return int(tensor_operand("numel", input)._h.size)


def is_nonzero(input: Tensor) -> bool:
    """True unless the only element is 0. Raises RuntimeError for more or fewer elements."""
    x = tensor_operand("is_nonzero", input)
    if x._h.size != 1:
        raise RuntimeError(f"[is_nonzero] a tensor of shape {x.shape} has not one element")
    return bool(x.item())


def is_same_size(input: Tensor, other: Tensor) -> bool:
    """True if two tensors have the same shape."""
    x, y = tensor_operand("is_same_size", input), tensor_operand("is_same_size", other)
    return x.shape == y.shape


def is_complex(input: Tensor) -> bool:
    """False: minigrad has no complex dtypes."""
    return False


def is_conj(input: Tensor) -> bool:
    """False: minigrad has no complex dtypes."""
    return False


def get_device(input: Tensor) -> int:
    """-1, as in PyTorch: the CPU has no index."""
    return -1


def typename(obj: Any) -> str:
    """The name of an object's class, such as "minigrad.FloatTensor"."""
    if isinstance(obj, TensorBase):
        return str(obj.type())  # type: ignore[attr-defined]
    return f"{type(obj).__module__}.{type(obj).__qualname__}".removeprefix("builtins.")


def broadcast_shapes(*shapes: Any) -> Size:
    """The shape to which tensors of these shapes are broadcast together.

    Raises ValueError for shapes that cannot be broadcast.

    >>> import minigrad as mg
    >>> mg.broadcast_shapes((2, 1), (3,))
    (2, 3)
    """
    sizes = [(s,) if isinstance(s, int) else tuple(s) for s in shapes]
    found: tuple[int, ...] = ()
    for size in sizes:
        found = broadcast_shape("broadcast_shapes", found, size)
    return Size(found)
