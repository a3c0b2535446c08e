"""Trees of tensors: dicts, lists, tuples and dataclasses of them, nested as they like."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from typing import Any

__all__ = ["Tree", "leaves", "mapped", "structure"]

Tree = Any  # a tensor, or a dict, list, tuple or dataclass of trees


def mapped(function: Callable[..., Any], tree: Tree, *others: Tree) -> Tree:
    """A tree like this one with ``function`` of each of its leaves, and of those of others like it.

    Raises KeyError, IndexError, AttributeError or TypeError where another tree is not like the
    first.
    """
    if isinstance(tree, dict):
        found = {
            key: mapped(function, x, *(other[key] for other in others)) for key, x in tree.items()
        }
        return _dict_like(tree, found)
    if isinstance(tree, (list, tuple)):
        parts = (
            mapped(function, x, *(other[place] for other in others)) for place, x in enumerate(tree)
        )
        return type(tree)(*parts) if hasattr(tree, "_fields") else type(tree)(parts)
    if _is_record(tree):
        made = copy.copy(tree)
        for name in _names(tree):
            x = mapped(function, getattr(tree, name), *(getattr(other, name) for other in others))
            object.__setattr__(made, name, x)  # a frozen one, too
        return made
    return function(tree, *others)


def _dict_like(tree: dict[Any, Any], found: dict[Any, Any]) -> Any:
    """A dict of the class of the tree, which may take other arguments than a dict does."""
    if type(tree) is dict:
        return found
    made = copy.copy(tree)
    made.update(found)
    return made


def _is_record(tree: Tree) -> bool:
    return is_dataclass(tree) and not isinstance(tree, type)


def _names(tree: Tree) -> list[str]:
    return [field.name for field in fields(tree)]


def leaves(tree: Tree) -> Iterator[Any]:
    """The leaves of a tree, from left to right."""
    if isinstance(tree, dict):
        for x in tree.values():
            yield from leaves(x)
    elif isinstance(tree, (list, tuple)):
        for x in tree:
            yield from leaves(x)
    elif _is_record(tree):
        for name in _names(tree):
            yield from leaves(getattr(tree, name))
    else:
        yield tree


def structure(tree: Tree) -> Any:
    """What two trees share that differ in their leaves alone; a list is like a tuple."""
    if isinstance(tree, dict):
        return {key: structure(x) for key, x in tree.items()}
    if isinstance(tree, (list, tuple)):
        return [structure(x) for x in tree]
    if _is_record(tree):
        return type(tree), {name: structure(getattr(tree, name)) for name in _names(tree)}
    return None
