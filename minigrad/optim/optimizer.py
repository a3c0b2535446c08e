"""PyTorch's import path of the class Optimizer."""

from minigrad.optim.optimizers import Optimizer

__all__ = ["Optimizer", "required"]

required = object()  # the default of an argument that has to be given, in old optimizers
