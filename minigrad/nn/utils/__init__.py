"""Utilities for parameters: gradient clipping and more."""

from __future__ import annotations

import math
from collections.abc import Iterable
from importlib import import_module
from typing import TYPE_CHECKING, Any

from minigrad import functions as f
from minigrad.functions.arguments import listed_tensors, real
from minigrad.functions.grad_modes import no_grad
from minigrad.runtime.native import call, kernels
from minigrad.runtime.recorders import give_up
from minigrad.tape.tensor_base import TensorBase

if TYPE_CHECKING:
    from minigrad._tensor import Tensor

__all__ = ["clip_grad_norm", "clip_grad_norm_", "clip_grad_value_", "skip_init"]

# Names that are loaded at first use, by module; a name may be a module itself.
_HOMES = {
    "convert_parameters": "parameters_to_vector vector_to_parameters",
    "fusion": "fuse_conv_bn_eval fuse_conv_bn_weights fuse_linear_bn_eval fuse_linear_bn_weights",
    "weights": "remove_spectral_norm remove_weight_norm spectral_norm weight_norm",
    "": "parametrizations parametrize rnn",
}
_LATER = {name: home for home, names in _HOMES.items() for name in names.split()}
__all__ += list(_LATER)


def __getattr__(name: str) -> Any:
    home = _LATER.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no {name}", name=name, obj=None)
    found = import_module(f"{__name__}.{home or name}")
    if home:
        found = getattr(found, name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted(__all__)


def skip_init(module_cls: Any, *args: Any, **kwargs: Any) -> Any:
    """A module of this class. Unlike in PyTorch, its parameters are initialised.

    >>> import minigrad as mg
    >>> mg.nn.utils.skip_init(mg.nn.Linear, 2, 3)
    Linear(in_features=2, out_features=3, bias=True)
    """
    return module_cls(*args, **kwargs)


def _gradients(op: str, parameters: Any) -> list[Any]:
    given = [parameters] if isinstance(parameters, TensorBase) else listed_tensors(op, parameters)
    for place, p in enumerate(given):
        if not isinstance(p, TensorBase):
            raise TypeError(f"[{op}] parameter {place} is {type(p).__name__}, not a Tensor")
    return [p.grad for p in given if p.grad is not None]


@no_grad
def clip_grad_norm_(
    parameters: Tensor | Iterable[Tensor],
    max_norm: float,
    norm_type: float | str = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """Scale all gradients so that their total norm is at most ``max_norm``.

    Returns the total norm before scaling. ``norm_type`` is its order: inf means the largest
    element. With ``error_if_nonfinite`` a norm that is not finite raises RuntimeError. Otherwise
    infinite gradients become NaN. Finite gradients are scaled right even if their norm overflows.
    ``foreach`` is accepted and changes nothing.

    >>> import minigrad as mg
    >>> x = mg.tensor([3.0, 4.0], requires_grad=True)
    >>> (x**2).sum().backward()
    >>> mg.nn.utils.clip_grad_norm_(x, 1.0).item()
    10.0
    >>> [round(g, 4) for g in x.grad.tolist()]
    [0.6, 0.8]
    """
    bound = real("clip_grad_norm_", "max_norm", max_norm)
    order = real("clip_grad_norm_", "norm_type", math.inf if norm_type == "inf" else norm_type)
    gradients = _gradients("clip_grad_norm_", parameters)
    total = _whole_norm(gradients, order)
    if error_if_nonfinite:
        give_up("clip_grad_norm_", "asks in Python whether the norm is finite")
    if error_if_nonfinite and not total.isfinite():
        raise RuntimeError(f"[clip_grad_norm_] the norm of the gradients is {total.item()}")
    factor = (bound / (total + 1e-6)).clamp(max=1.0)  # as in PyTorch, a little below the bound
    extreme = total.dtype.is_floating_point and call(kernels.roots_extreme, total._h)
    if extreme and bound != 0.0:
        give_up("clip_grad_norm_", "meets a norm that is 0, or at the end of the range")
    if extreme and bound != 0.0 and total.isinf():  # the norm of scaled gradients may be finite
        part = 2.0**-64
        smaller = _whole_norm([g * part for g in gradients], order)
        if smaller.isfinite():
            factor = bound * part / smaller
    for g in gradients:
        g.mul_(factor)
    return total


def _whole_norm(gradients: list[Any], order: float) -> Tensor:
    norms: list[Any] = [f.vector_norm(g, order) for g in gradients] or [0.0]
    return f.vector_norm(f.stack(norms), order)


@no_grad
def clip_grad_value_(
    parameters: Tensor | Iterable[Tensor], clip_value: float, foreach: bool | None = None
) -> None:
    """Clip every element of the gradients to [-clip_value, clip_value].

    ``foreach`` is accepted and changes nothing.
    """
    bound = real("clip_grad_value_", "clip_value", clip_value)
    for g in _gradients("clip_grad_value_", parameters):
        g.clamp_(-bound, bound)


def clip_grad_norm(*args: Any, **kwargs: Any) -> Tensor:
    """:func:`clip_grad_norm_` under PyTorch's older name."""
    norm: Tensor = clip_grad_norm_(*args, **kwargs)
    return norm
