"""Function transforms (``torch.func``): derivatives, ``vmap``, and modules as functions."""

from minigrad.func.batching import vmap
from minigrad.func.custom import custom_vjp
from minigrad.func.gradients import grad, grad_and_value, value_and_grad, vjp
from minigrad.func.implicit import custom_root, fixed_point
from minigrad.func.jacobians import hessian, hvp, jacfwd, jacobian, jacrev, vhp
from minigrad.func.modules import functional_call, stack_module_state
from minigrad.func.tangents import jvp, linearize

__all__ = [
    "custom_root",
    "custom_vjp",
    "fixed_point",
    "functional_call",
    "grad",
    "grad_and_value",
    "hessian",
    "hvp",
    "jacfwd",
    "jacobian",
    "jacrev",
    "jvp",
    "linearize",
    "stack_module_state",
    "value_and_grad",
    "vhp",
    "vjp",
    "vmap",
]
