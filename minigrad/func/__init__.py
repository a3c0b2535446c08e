"""Functions of functions: gradients of functions of tensors, and modules called as functions."""

from minigrad.func.gradients import grad, value_and_grad
from minigrad.func.modules import functional_call

__all__ = ["functional_call", "grad", "value_and_grad"]
