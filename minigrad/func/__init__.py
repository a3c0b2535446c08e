"""Function transforms (``torch.func``): ``grad``, ``vmap``, ``functional_call`` and their kin."""

from minigrad.func.batching import vmap
from minigrad.func.custom import custom_vjp
from minigrad.func.gradients import grad, value_and_grad
from minigrad.func.implicit import custom_root, fixed_point
from minigrad.func.modules import functional_call

__all__ = [
    "custom_root",
    "custom_vjp",
    "fixed_point",
    "functional_call",
    "grad",
    "value_and_grad",
    "vmap",
]
