"""Tutorial classes: micrograd's ``Value``, ``Variable``, drawings of a graph, and its backward."""

from importlib import import_module
from typing import Any

__all__ = ["dot", "draw", "names", "scalar", "trace", "variable"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module(f"{__name__}.{name}")
