"""Hooks of leaves, handles that remove hooks, and who is told of what the tape does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["LeafHooks", "Removable", "forwards", "note_leaving", "watchers"]

# The forwards of Functions that run, in any thread, each a function that is told of tensors whose
# values become Python's or NumPy's.
forwards: list[Callable[[Any], None]] = []
# The tools that are told of the nodes of backward passes: see minigrad.tape.watching.
watchers: list[Any] = []


def note_leaving(x: Any) -> None:
    """Tell the forwards that run that the values of x leave the tape."""
    for told in tuple(forwards):
        told(x)


class LeafHooks(list[Callable[..., Any]]):
    """Hooks that the gradient of a leaf passes through; ``after`` wait until it is in ``grad``."""

    __slots__ = ("after",)

    def __init__(self) -> None:
        super().__init__()
        self.after: list[Callable[[Any], Any]] = []


class Removable:
    """Removes a hook when ``remove`` is called, or it itself: once, whatever else is registered.

    As a context it removes the hook at the end.
    """

    __slots__ = ("_hook", "_hooks")

    def __init__(self, hooks: list[Any], hook: Callable[..., Any]) -> None:
        self._hooks = hooks
        self._hook = hook

    def remove(self) -> None:
        """Remove the hook."""
        hooks, self._hooks = self._hooks, []
        if self._hook in hooks:
            hooks.remove(self._hook)

    __call__ = remove

    def __enter__(self) -> Removable:
        return self

    def __exit__(self, *error: object) -> None:
        self.remove()
