"""Memory from before a call: what derivatives of the operations that the call recorded need of it.

A checkpoint calls its function again in backward, and a root its residual. Both keep pins of such
memory, by which a later write into it is noticed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from minigrad.runtime.lazy_numpy import np
from minigrad.runtime.native import Array, Saved, call, kernels, lib, save_as_is, saved_handle
from minigrad.runtime.numpy_view import numpy_view
from minigrad.tape.engine import topological_order
from minigrad.tape.node import Node, next_serial

__all__ = ["Before"]


class Before:
    """The time before a call, from when this is made."""

    def __init__(self) -> None:
        self.clock = int(lib.mg_clock_tick())
        self.serial = next_serial()
        self._pins: list[tuple[Saved, int]] = []
        self._copied: list[tuple[Array, Array]] = []  # memory of NumPy's, and a copy

    def pin(self, array: Array) -> None:
        """Pin an array, whatever needs it."""
        saved = save_as_is(array)
        if saved.buffer(0) == array.buffer:
            self._pins.append((saved, 0))
        else:  # a copy, since NumPy can write into the array unnoticed
            self._copied.append((array, saved_handle(saved, 0)))

    def pin_shared(self, array: Array) -> None:
        """Pin an array if NumPy can write into it unnoticed."""
        if save_as_is(array).buffer(0) != array.buffer:
            self.pin(array)

    def keep(self, edges: Iterable[Any]) -> None:
        """Pin what the nodes that the call recorded, and that lead to these edges, saved of it."""
        roots = [edge for edge in edges if type(edge) is Node]
        for node in topological_order(roots, self.serial):
            if node.serial > self.serial:
                self._pins += self._used(node)

    def _used(self, node: Node) -> Iterator[tuple[Saved, int]]:
        for saved in _saved_in((node.saved, node.args)):
            for place in range(3):
                if not saved.buffer(place):
                    continue
                try:
                    array = saved_handle(saved, place)
                except RuntimeError:  # the call wrote into it since
                    yield saved, place
                else:
                    if array.version < self.clock:
                        yield save_as_is(array), 0

    def check(self, op: str) -> None:
        """RuntimeError if some of it was overwritten."""
        for pin, place in self._pins:
            saved_handle(pin, place, op)
        for array, copy in self._copied:
            if _bytes(array) != _bytes(copy):
                raise RuntimeError(
                    f"[{op}] NumPy wrote into a tensor that backward computes with again: give a "
                    "clone() of it, or run backward before the write"
                )


def _bytes(array: Array) -> bytes:
    return bytes(np.asarray(numpy_view(call(kernels.copy, array))).data)


# Objects on the tape that hold what a node saved, by the names of their classes, and where.
_HOLDERS = {
    "Before": "_pins",
    "Packed": "arrays",
    "PackedArray": "pin",
    "PackedValues": "_packed",
    "SavedValues": "_saved",
    "_Part": "before",
    "_Unpack": "pin",
}


def _saved_in(x: Any) -> Iterator[Saved]:
    """The saved arrays in what a node holds."""
    if isinstance(x, Saved):
        yield x
    elif isinstance(x, (tuple, list)):
        for item in x:
            yield from _saved_in(item)
    elif type(x).__name__ in _HOLDERS:
        yield from _saved_in(getattr(x, _HOLDERS[type(x).__name__]))
