"""Trees of tensors: dicts, lists and tuples of them, nested as they like."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

__all__ = ["Tree", "leaves", "mapped"]

Tree = Any  # a tensor, or a dict, list or tuple of trees


def mapped(function: Callable[..., Any], tree: Tree, *others: Tree) -> Tree:
    """A tree like this one with ``function`` of each of its leaves, and of those of others like it.

    Raises KeyError, IndexError or TypeError where another tree is not like the first.
    """
    if isinstance(tree, dict):
        return type(tree)(
            (key, mapped(function, x, *(other[key] for other in others))) for key, x in tree.items()
        )
    if isinstance(tree, (list, tuple)):
        found = (
            mapped(function, x, *(other[place] for other in others)) for place, x in enumerate(tree)
        )
        return type(tree)(*found) if hasattr(tree, "_fields") else type(tree)(found)
    return function(tree, *others)


def leaves(tree: Tree) -> Iterator[Any]:
    """The leaves of a tree, from left to right."""
    if isinstance(tree, dict):
        for x in tree.values():
            yield from leaves(x)
    elif isinstance(tree, (list, tuple)):
        for x in tree:
            yield from leaves(x)
    else:
        yield tree
