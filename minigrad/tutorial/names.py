"""Names of tensors for pictures and tables, as the caller gives them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from minigrad.nn.module import Module
from minigrad.tape.tensor_base import TensorBase
from minigrad.tutorial.scalar import Value

__all__ = ["names_by_id", "shown", "tensor_of"]

_MOST_SHOWN = 6  # elements of an array that is shown by its values


def tensor_of(x: Any) -> Any:
    """The tensor behind a Tensor, Variable or Value; None for other objects."""
    if isinstance(x, Value):
        return x.tensor
    return x if isinstance(x, TensorBase) else None


def names_by_id(op: str, names: Mapping[str, Any] | Module | None) -> dict[int, str]:
    """The names of tensors by their ``id``: of a dict, or of a module's parameters.

    TypeError for what has no names.
    """
    if names is None:
        return {}
    if isinstance(names, Module):
        return {id(p): name for name, p in names.named_parameters()}
    if not isinstance(names, Mapping):
        raise TypeError(
            f"[{op}] names is {type(names).__name__}: give a dict from names to tensors, or a "
            "module for the names of its parameters"
        )
    return {id(tensor_of(x)): name for name, x in names.items()}


def shown(x: Any) -> str:
    """A tensor by its values if they are few, else its shape and dtype."""
    if x is None:
        return "none"
    if x.numel() <= _MOST_SHOWN:
        return _nested(x.tolist())
    return f"{tuple(x.shape)} {x.dtype.name}"


def _nested(values: Any) -> str:
    if isinstance(values, list):
        return "[" + ", ".join(map(_nested, values)) + "]"
    return f"{values:.4g}" if isinstance(values, float) else str(values)
