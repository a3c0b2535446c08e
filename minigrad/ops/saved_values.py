"""Values that a forward saves for its backward beside the three arrays of a node."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from minigrad.runtime.native import Array, save, saved_handle

__all__ = ["SavedValues"]

T = Any  # a Tensor; this layer stands below it


class SavedValues:
    """An operand of a row, or none, and what its kernel made: an argument of the row.

    ``tensor`` makes a tensor of the saved operand, with the place on the tape that it had.
    """

    __slots__ = ("_made", "_saved", "_tensor", "_unsaved")

    _saved: Any

    def __init__(self, operand: T | None, tensor: Callable[[Array], T]) -> None:
        self._unsaved = None if operand is None else operand._h  # until the forward has saved it
        self._tensor = tensor

    def take(self) -> Array | None:
        """The operand for the forward, or None."""
        operand, self._unsaved = self._unsaved, None
        return operand

    def save(self, operand: Array | None, *made: Array) -> None:
        """Save both, by the forward."""
        self._saved, self._made = save(operand, *made), len(made)

    def handles(self, op: str) -> tuple[Array | None, ...]:
        """The operand or None, and what was made; RuntimeError if one was overwritten."""
        made = [saved_handle(self._saved, i, op) for i in range(1, self._made + 1)]
        return self._operand(op), *made

    def operand(self, op: str) -> T | None:
        """The operand for a formula; RuntimeError if it was overwritten."""
        handle = self._operand(op)
        return None if handle is None else self._tensor(handle)

    def _operand(self, op: str) -> Array | None:
        given = self._saved.buffer(0)
        return saved_handle(self._saved, 0, op) if given else None
