"""Functions with a derivative of one's own, where PyTorch's programs import them from."""

from minigrad.autograd import Function, once_differentiable

__all__ = ["Function", "once_differentiable"]
