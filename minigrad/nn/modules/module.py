"""The class Module where PyTorch's programs import it from."""

from minigrad.nn.module import Module

__all__ = ["Module"]
