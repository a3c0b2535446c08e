"""PyTorch's import path of the class Optimizer."""

from minigrad.optim.optimizers import Optimizer

__all__ = ["Optimizer", "required"]

required = object()  # default of a required argument, in older optimizers
