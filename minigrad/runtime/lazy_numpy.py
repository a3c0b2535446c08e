"""Lazy import of NumPy: loaded at the first use of one of its names.

Modules write ``from minigrad.runtime.lazy_numpy import np`` in place of ``import numpy as np``.
Programs that only use lists and numbers never load NumPy. Modules that always need NumPy import it
directly.
"""

from __future__ import annotations

from sys import modules
from typing import TYPE_CHECKING, Any

__all__ = ["is_numpys", "np"]

if TYPE_CHECKING:
    import numpy as np
else:
    np = modules[__name__]


def __getattr__(name: str) -> Any:
    if name.startswith("_"):  # tools that inspect all modules ask for these names
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import numpy

    found = globals()[name] = getattr(numpy, name)
    return found


class _Kinds(dict[str, Any]):
    """NumPy's classes as attributes; each is the empty tuple until NumPy is loaded."""

    def __missing__(self, name: str) -> Any:
        found = getattr(modules.get("numpy"), name, ())
        if found:
            self[name] = found
        return found


_kinds = _Kinds()


def is_numpys(kind: str, x: Any) -> bool:
    """``isinstance(x, numpy.<kind>)`` without loading NumPy; False before NumPy is loaded."""
    return isinstance(x, _kinds[kind])
