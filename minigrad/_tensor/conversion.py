"""Methods of Tensor that convert it to Python numbers, lists and NumPy arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from minigrad.functions.creation import to_numpy
from minigrad.functions.lists import to_lists
from minigrad.runtime.lazy_numpy import np
from minigrad.runtime.native import lib
from minigrad.tape.hooks import forwards, note_leaving

if TYPE_CHECKING:
    from minigrad._tensor import Tensor

__all__ = [
    "item",
    "numpy",
    "tolist",
]


def item(self: Tensor) -> float | int | bool:
    """The only element as a Python number. Raises ValueError unless there is exactly one."""
    h = self._h
    if h.size != 1:
        raise ValueError(f"[item] a tensor of shape {self.shape} has {h.size} elements, not one")
    if forwards:
        note_leaving(self)
    if self.dtype.is_floating_point:
        return float(h.item())
    value = int(h.item())
    return bool(value) if h.dtype == lib.MG_BOOL else value


def tolist(self: Tensor) -> Any:
    """The elements as nested lists of Python numbers, or one number for 0 dimensions."""
    if forwards:
        note_leaving(self)
    return to_lists(self._h)


def numpy(self: Tensor, *, force: bool = False) -> np.ndarray[Any, Any]:
    """A NumPy array on the same memory. It is read-only while a graph needs this memory.

    Raises RuntimeError for a tensor that requires grad: use ``detach().numpy()``, or ``force=True``
    for the same effect.
    """
    if force:
        return self.detach().numpy()
    if self._edge is not None:
        raise RuntimeError(
            "[numpy] this tensor requires grad, which NumPy cannot follow; use x.detach().numpy()"
        )
    if forwards:
        note_leaving(self)
    return to_numpy(self._h)
