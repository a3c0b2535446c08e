"""PyTorch's import path of the older class ``autograd.Variable``."""

from typing import Any

__all__ = ["Variable"]  # noqa: F822 - found below


def __getattr__(name: str) -> Any:
    if name != "Variable":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from minigrad._tensor.typed_classes import Variable

    return Variable
