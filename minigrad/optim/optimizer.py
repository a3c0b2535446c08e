"""The base class of optimizers where PyTorch's programs import it from."""

from minigrad.optim.optimizers import Optimizer

__all__ = ["Optimizer", "required"]

required = object()  # the default of an argument that has to be given, in old optimizers
