"""PyTorch's import path ``nn.modules`` of layers and losses."""

from importlib import import_module
from typing import Any

from minigrad.nn import *  # noqa: F403
from minigrad.nn import __all__ as __all__


def __getattr__(name: str) -> Any:
    if name not in ("loss", "module"):  # loaded at first use
        raise AttributeError(f"module {__name__!r} has no {name}", name=name, obj=None)
    return import_module(f"{__name__}.{name}")
