"""PyTorch's namespace ``torch.utils``, whose parts are loaded at first use."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from minigrad.utils import checkpoint, data, tensorboard

__all__ = ["checkpoint", "data", "tensorboard"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module(f"{__name__}.{name}")
