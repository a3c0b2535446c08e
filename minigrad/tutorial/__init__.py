"""Tutorial classes: micrograd's ``Value``, ``Variable``, and drawings of a graph."""

from importlib import import_module
from typing import Any

__all__ = ["draw", "scalar", "variable"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module(f"{__name__}.{name}")
