"""The class Parameter where PyTorch's programs import it from."""

from minigrad.nn.module import Parameter

__all__ = ["Parameter"]
