"""Function transforms (``torch.func``): ``grad``, ``vmap``, ``functional_call`` and their kin."""

from minigrad.func.batching import vmap
from minigrad.func.gradients import grad, value_and_grad
from minigrad.func.modules import functional_call

__all__ = ["functional_call", "grad", "value_and_grad", "vmap"]
