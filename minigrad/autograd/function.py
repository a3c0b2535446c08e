"""PyTorch's import path of ``autograd.Function``."""

from minigrad.autograd import Function, once_differentiable

__all__ = ["Function", "once_differentiable"]
