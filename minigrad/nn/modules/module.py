"""The class Module where PyTorch's programs import it from."""

from minigrad.nn.global_hooks import *  # noqa: F403
from minigrad.nn.global_hooks import __all__ as __all__
from minigrad.nn.module import Module as Module

__all__ += ["Module"]
