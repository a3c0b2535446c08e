"""Values that a forward saves for its backward in addition to the three arrays of a node."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from minigrad.runtime.native import Array, save, saved_handle

__all__ = ["SavedValues"]

T = Any  # a Tensor, whose class this layer may not import


class SavedValues:
    """Argument of a row: an operand, or None, and the arrays that the kernel saved.

    ``tensor`` makes a tensor of the saved operand and its edge at the time of saving.
    """

    __slots__ = ("_made", "_saved", "_tensor", "_unsaved", "edge")

    _saved: Any

    def __init__(self, operand: T | None, edge: Any, tensor: Callable[[Array, Any], T]) -> None:
        # the operand until the forward saves it
        self._unsaved = None if operand is None else operand._h
        self._tensor = tensor
        self.edge = edge  # of the operand

    def like(self, saved: Any, edge: Any) -> SavedValues:
        """The same argument with other arrays, and with another edge of the operand."""
        made = SavedValues(None, edge, self._tensor)
        made._saved, made._made = saved, self._made
        return made

    def take(self) -> Array | None:
        """The operand for the forward, or None."""
        operand, self._unsaved = self._unsaved, None
        return operand

    def save(self, operand: Array | None, *made: Array) -> None:
        """Save the operand and the kernel's arrays. The forward calls this."""
        self._saved, self._made = save(operand, *made), len(made)

    def handles(self, op: str) -> tuple[Array | None, ...]:
        """The operand or None, and the kernel's arrays.

        Raises RuntimeError if one was overwritten.
        """
        made = [saved_handle(self._saved, i, op) for i in range(1, self._made + 1)]
        return self._operand(op), *made

    def operand(self, op: str) -> T | None:
        """The operand as a tensor for a formula. Raises RuntimeError if it was overwritten."""
        handle = self._operand(op)
        return None if handle is None else self._tensor(handle, self.edge)

    def _operand(self, op: str) -> Array | None:
        given = self._saved.buffer(0)
        return saved_handle(self._saved, 0, op) if given else None
