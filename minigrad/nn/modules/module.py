"""PyTorch's import path of the class Module."""

from minigrad.nn.global_hooks import *  # noqa: F403
from minigrad.nn.global_hooks import __all__ as __all__
from minigrad.nn.module import Module as Module

__all__ += ["Module"]
