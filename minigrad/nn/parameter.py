"""PyTorch's import path of the class Parameter."""

from minigrad.nn.module import Parameter

__all__ = ["Parameter"]
