"""The arguments of a compiled function: tensors, and the form of everything else.

Two calls with the same form differ in their tensors alone.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import fields, is_dataclass
from typing import Any

from minigrad.tape.tensor_base import TensorBase

__all__ = ["HOLE", "TENSOR", "each", "filled", "flatten", "template"]

TENSOR = "tensor"
_SCALARS = (bool, int, float, complex, str, bytes, type(None))


def flatten(x: Any, tensors: list[Any], others: list[Any]) -> Any:
    """The form of a value. Its tensors are appended to ``tensors``, its objects to ``others``."""
    if isinstance(x, TensorBase):
        tensors.append(x)
        return TENSOR
    kind = type(x)
    if isinstance(x, (list, tuple)):
        return kind, *[flatten(item, tensors, others) for item in x]
    if isinstance(x, dict):
        return kind, *[(key, flatten(item, tensors, others)) for key, item in x.items()]
    if isinstance(x, _SCALARS):
        return kind, str(x) if isinstance(x, (float, complex)) else x
    if is_dataclass(x) and not isinstance(x, type):
        items = [flatten(getattr(x, field.name), tensors, others) for field in fields(x)]
        return kind, *items
    others.append(x)
    return kind, id(x)


class _Hole:
    """The place of a tensor in a template."""


HOLE = _Hole()


def template(x: Any) -> Any:
    """A value with holes in place of its tensors, so that it keeps none alive."""
    return HOLE if isinstance(x, TensorBase) else each(template, x)


def filled(x: Any, tensors: list[Any]) -> Any:
    """A template with these tensors in its holes."""
    made = iter(tensors)

    def fill(x: Any) -> Any:
        return next(made) if x is HOLE else each(fill, x)

    return fill(x)


def each(function: Callable[[Any], Any], x: Any) -> Any:
    """A container like x with what the function makes of each item; anything else itself."""
    if isinstance(x, (list, tuple)):
        items = [function(item) for item in x]
        return type(x)(*items) if hasattr(x, "_fields") else type(x)(items)
    if isinstance(x, dict):
        return {key: function(item) for key, item in x.items()}
    if is_dataclass(x) and not isinstance(x, type):
        made = copy(x)
        for field in fields(x):
            object.__setattr__(made, field.name, function(getattr(x, field.name)))
        return made
    return x
