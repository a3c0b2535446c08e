"""The arguments of a compiled function: tensors, and the form of everything else.

Two calls with the same form differ in their tensors alone.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import fields, is_dataclass
from inspect import signature
from typing import Any

from minigrad.runtime.dtypes import DType
from minigrad.runtime.lazy_numpy import is_numpys
from minigrad.runtime.size import Size
from minigrad.tape.tensor_base import TensorBase

__all__ = [
    "HOLE",
    "difference",
    "each",
    "filled",
    "flatten",
    "form_of",
    "is_value",
    "names_of",
    "parts",
    "shown",
    "template",
]

_SCALARS = (bool, int, float, complex, str, bytes, type(None))
_PLAIN = (list, tuple, dict, OrderedDict, defaultdict, Size)  # containers that are made anew
_VALUES = (range, slice, DType)  # objects that are known by their text


def form_of(args: Any, kwargs: Any, tensors: list[Any], others: list[Any]) -> Any:
    """The form of the arguments of a call, as :func:`flatten` of both."""
    form = flatten(args, tensors, others)
    return (form, flatten(kwargs, tensors, others)) if kwargs else form


def flatten(x: Any, tensors: list[Any], others: list[Any]) -> Any:
    """The form of a value. Its tensors are appended to ``tensors``, its objects to ``others``."""
    kind = type(x)
    if isinstance(x, TensorBase):
        tensors.append(x)
        return kind
    if isinstance(x, (list, tuple)):
        items = [flatten(item, tensors, others) for item in x]
        return kind, *items, *_beside(x, tensors, others)
    if isinstance(x, dict):
        named = [(key, flatten(item, tensors, others)) for key, item in x.items()]
        return kind, *named, *_beside(x, tensors, others)
    if isinstance(x, _SCALARS):
        return kind, str(x) if isinstance(x, (float, complex)) else x
    if is_dataclass(x) and not isinstance(x, type):
        items = [flatten(getattr(x, field.name), tensors, others) for field in fields(x)]
        return kind, *items, *_beside(x, tensors, others)
    if isinstance(x, _VALUES):
        return kind, str(x)
    others.append(x)
    if is_numpys("generic", x) and not x.dtype.hasobject:
        return kind, str(x.dtype), x.tobytes()
    return kind, id(x)


def _beside(x: Any, tensors: list[Any], others: list[Any]) -> list[tuple[str, Any]]:
    """The forms of a container's own attributes. Its class is appended to ``others``."""
    if type(x) in _PLAIN:
        return []
    others.append(type(x))
    return [(key, flatten(item, tensors, others)) for key, item in _own(x).items()]


def _own(x: Any) -> dict[str, Any]:
    """The attributes of a container that are not its items or fields."""
    held = getattr(x, "__dict__", None) or {}
    known = {field.name for field in fields(x)} if is_dataclass(x) else set()
    return {key: item for key, item in held.items() if key not in known}


# ---- names and differences -----------------------------------------------------------------------


def names_of(function: Callable[..., Any], args: Any, kwargs: Any) -> list[str]:
    """The names of the tensors among the arguments, in the order of :func:`flatten`."""
    return [name for name, x in _named(function, args, kwargs) if isinstance(x, TensorBase)]


def _named(function: Callable[..., Any], args: Any, kwargs: Any) -> Iterator[tuple[str, Any]]:
    try:
        parameters = list(signature(function).parameters.values())
    except (TypeError, ValueError):
        parameters = []
    plain = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    for place, x in enumerate(args):
        yield from _leaves(plain[place] if place < len(plain) else f"args[{place}]", x)
    for key, x in kwargs.items():
        yield from _leaves(key, x)


def _leaves(name: str, x: Any) -> Iterator[tuple[str, Any]]:
    """The values in nested containers, with their names."""
    if isinstance(x, (list, tuple)):
        yield f"len({name})", len(x)
        for place, item in enumerate(x):
            yield from _leaves(f"{name}[{place}]", item)
    elif isinstance(x, dict):
        yield f"the keys of {name}", tuple(x)
        for key, item in x.items():
            yield from _leaves(f"{name}[{key!r}]", item)
    elif is_dataclass(x) and not isinstance(x, type):
        for field in fields(x):
            yield from _leaves(f"{name}.{field.name}", getattr(x, field.name))
    else:
        yield name, x
        return
    for key, item in _own(x).items():
        yield from _leaves(f"{name}.{key}", item)


def shown(function: Callable[..., Any], args: Any, kwargs: Any) -> dict[str, str]:
    """The arguments as texts by name: what is told of them when a later call differs."""
    return {name: _text(x) for name, x in _named(function, args, kwargs)}


def _text(x: Any) -> str:
    if isinstance(x, TensorBase):
        more = ", requires grad" if x._edge is not None else ""
        return f"a {type(x).__name__} of {x.dtype.name}{tuple(x.shape)}{more}"
    return repr(x) if isinstance(x, (*_SCALARS, *_VALUES, tuple)) else f"a {type(x).__name__}"


def difference(old: dict[str, str], new: dict[str, str]) -> str:
    """The first argument that differs, as it was and as it is."""
    for name in {**old, **new}:
        before, now = old.get(name, "absent"), new.get(name, "absent")
        if before != now:
            return f"{name} was {before} and is {now}"
    return ""


# ---- results -------------------------------------------------------------------------------------


def parts(x: Any, reached: set[int]) -> Iterator[Any]:
    """The values in the containers of a result. A container that was ``reached`` is one value."""
    plain = type(x) in _PLAIN or isinstance(x, tuple) or (is_dataclass(x) and not _is_class(x))
    if not plain or (id(x) in reached and not isinstance(x, tuple)):
        yield x
        return
    items = x.values() if isinstance(x, dict) else x if isinstance(x, (list, tuple)) else None
    for item in items if items is not None else [getattr(x, f.name) for f in fields(x)]:
        yield from parts(item, reached)


def _is_class(x: Any) -> bool:
    return isinstance(x, type)


def is_value(x: Any) -> bool:
    """True for a part of a result that is the same object for every call."""
    return isinstance(x, (*_SCALARS, *_VALUES, type)) or x is ... or x is NotImplemented


class _Hole:
    """The place of a tensor in a template."""


HOLE = _Hole()


def template(x: Any, reached: set[int]) -> Any:
    """A value with holes in place of its tensors, so that it keeps none alive."""
    if id(x) in reached and not isinstance(x, (TensorBase, tuple)):
        return x
    return HOLE if isinstance(x, TensorBase) else each(lambda item: template(item, reached), x)


def filled(x: Any, tensors: list[Any], reached: set[int]) -> Any:
    """A template with these tensors in its holes."""
    return _filled(x, iter(tensors), reached)


def _filled(x: Any, tensors: Iterator[Any], reached: set[int]) -> Any:
    if x is HOLE:
        return next(tensors)
    if id(x) in reached and not isinstance(x, tuple):
        return x
    return each(lambda item: _filled(item, tensors, reached), x)


def each(function: Callable[[Any], Any], x: Any) -> Any:
    """A container like x with what the function makes of each item; anything else itself."""
    if isinstance(x, (list, tuple)):
        items = [function(item) for item in x]
        return type(x)(*items) if hasattr(x, "_fields") else type(x)(items)
    made: Any
    if isinstance(x, dict):
        made = copy(x)
        for key, item in x.items():
            made[key] = function(item)
        return made
    if is_dataclass(x) and not isinstance(x, type):
        made = copy(x)
        for field in fields(x):
            object.__setattr__(made, field.name, function(getattr(x, field.name)))
        return made
    return x
