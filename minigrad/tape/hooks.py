"""Hooks of leaves, handles that remove hooks, and listeners for values that leave the tape."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = [
    "LeafHooks",
    "Removable",
    "forwards",
    "hook_changes",
    "hooks_of",
    "note_leaving",
    "watchers",
]

# One listener for each running Function.forward of any thread. A listener gets each tensor whose
# values become Python's or NumPy's.
forwards: list[Callable[[Any], None]] = []
# The tools that are told of the nodes of backward passes: see minigrad.tape.watching.
watchers: list[Any] = []


def note_leaving(x: Any) -> None:
    """Tell every listener that the values of x leave the tape."""
    for note in tuple(forwards):
        note(x)


class LeafHooks(list[Callable[..., Any]]):
    """Hooks that get the gradient of a leaf.

    Hooks in ``after`` run after ``grad`` was set.
    """

    __slots__ = ("after",)

    def __init__(self) -> None:
        super().__init__()
        self.after: list[Callable[[Any], Any]] = []


class _Changes:
    """How often hooks of leaves came or went."""

    def __init__(self) -> None:
        self.count = 0


hook_changes = _Changes()


def hooks_of(leaf: Any) -> tuple[Any, ...]:
    """The hooks of a tensor, of both kinds."""
    hooks = getattr(leaf, "_hooks", None)
    return () if hooks is None else (*hooks, *hooks.after)


class Removable:
    """Handle that removes one hook, by ``remove()`` or by a call of the handle.

    The hook is removed once, even if the same function was registered again. As a context manager
    the handle removes the hook at the end.
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
            hook_changes.count += 1

    __call__ = remove

    def __enter__(self) -> Removable:
        return self

    def __exit__(self, *error: object) -> None:
        self.remove()
