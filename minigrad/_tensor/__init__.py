"""The class Tensor, with one file for each group of its methods."""

from minigrad._tensor.tensor import Tensor

__all__ = ["Tensor"]
