"""Lazy import of NumPy, which is loaded when something of it is first used.

``from minigrad.runtime.lazy_numpy import np`` stands in place of ``import numpy as np``. Programs
of lists and numbers never load NumPy. Modules that are of no use without NumPy import it directly.
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
    if name.startswith("_"):  # which are asked of every module, by whoever looks through them
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import numpy

    found = globals()[name] = getattr(numpy, name)
    return found


class _Kinds(dict[str, Any]):
    """NumPy's classes by their names; of each (), as long as nobody has loaded NumPy."""

    def __missing__(self, name: str) -> Any:
        found = getattr(modules.get("numpy"), name, ())
        if found:
            self[name] = found
        return found


_kinds = _Kinds()


def is_numpys(kind: str, x: Any) -> bool:
    """``isinstance(x, numpy.<kind>)``, which nothing can be before NumPy is loaded."""
    return isinstance(x, _kinds[kind])
