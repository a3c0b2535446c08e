"""``custom_vjp``: functions of NumPy's arrays, or of tensors, with derivatives that are given."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from minigrad.autograd import Function, once_differentiable
from minigrad.functions.creation import tensor
from minigrad.runtime.lazy_numpy import is_numpys, np
from minigrad.tape.tensor_base import TensorBase

__all__ = ["custom_vjp"]


def custom_vjp(
    forward: Callable[..., Any], vjp: Callable[..., Any], *, tensors: bool = False
) -> Callable[..., Any]:
    """The function ``forward`` on tensors, whose gradients ``vjp`` computes.

    It is for what the tape cannot follow: a solver, a compiled function, a call of C. ``forward``
    gets a read-only NumPy array for each tensor, and other arguments as they are. It returns an
    array, a number, or a tuple of these. ``vjp(g, *args)`` gets the upstream gradient, a tuple of
    them for several results, and the arguments of ``forward``. It may write over g. It returns a
    gradient for each positional argument, alone or in a tuple, None where there is none. If it has
    a parameter ``output``, it gets by that name what ``forward`` returned. Keyword arguments go to
    both.

    With ``tensors`` both get and return tensors. Then ``vjp`` is recorded where gradients are to be
    differentiated again. Otherwise a second derivative is a RuntimeError.

    Errors name ``forward``: TypeError for results and gradients that are no arrays of floats,
    RuntimeError for gradients of a wrong number or shape, and where an argument was overwritten
    before backward. TypeError for a tensor by keyword that requires grad.

    >>> import minigrad as mg
    >>> import numpy as np
    >>> sin = mg.func.custom_vjp(np.sin, lambda g, x: g * np.cos(x))
    >>> x = mg.tensor([0.0, 1.0], requires_grad=True)
    >>> sin(x).sum().backward()
    >>> x.grad
    tensor([1.       , 0.5403023])
    """
    for given in (forward, vjp):
        if not callable(given):
            raise TypeError(f"[custom_vjp] expected a function, not {type(given).__name__}")
    name = getattr(forward, "__name__", type(forward).__name__)
    base = _OfTensors if tensors else _OfArrays
    wants_output = _has_output(vjp)
    cls = type(name, (base,), {"rule": (forward, vjp, wants_output), "__module__": __name__})

    def function(*args: Any, **kwargs: Any) -> Any:
        for key, x in kwargs.items():
            if isinstance(x, TensorBase) and x._edge is not None:
                raise TypeError(
                    f"[{name}] the argument {key} requires grad: give it by position, not by name"
                )
        return cls.apply(kwargs, *args)  # type: ignore[attr-defined]

    function.__name__ = function.__qualname__ = name
    function.__doc__ = getattr(forward, "__doc__", None)
    return function


def _has_output(vjp: Callable[..., Any]) -> bool:
    try:
        return "output" in inspect.signature(vjp).parameters
    except (TypeError, ValueError):  # a function in C without a signature
        return False


class _OfTensors(Function):
    """Forward and backward by functions of tensors, the class attribute ``rule``."""

    generate_vmap_rule = True
    rule: tuple[Any, Any, bool]  # the functions, and whether the second takes the output
    kwargs: dict[str, Any]
    names: list[str]  # of the tensors by keyword
    count: int  # of results
    places: list[int]  # of the tensors among the arguments
    others: list[Any]  # the arguments that are none

    @staticmethod
    def forward(ctx: Any, kwargs: dict[str, Any], *args: Any) -> Any:
        result = ctx.rule[0](*map(ctx.given, args), **kwargs)
        outputs = result if isinstance(result, tuple) else (result,)
        made = tuple([ctx.tensor_of(y, f"output {k}") for k, y in enumerate(outputs)])
        ctx.names = [key for key, x in kwargs.items() if isinstance(x, TensorBase)]
        ctx.kwargs = {key: x for key, x in kwargs.items() if key not in ctx.names}
        ctx.count = len(made)
        ctx.places = [k for k, x in enumerate(args) if isinstance(x, TensorBase)]
        ctx.others = [None if isinstance(x, TensorBase) else x for x in args]
        kept = made if ctx.rule[2] else ()
        tensors = [args[k] for k in ctx.places], kept, [kwargs[key] for key in ctx.names]
        ctx.save_for_backward(*[x for some in tensors for x in some])
        return made if isinstance(result, tuple) else made[0]

    @staticmethod
    def backward(ctx: Any, *upstream: Any) -> Any:
        saved, args = ctx.saved_tensors, list(ctx.others)
        for k, x in zip(ctx.places, saved, strict=False):
            args[k] = ctx.given(x)
        g = tuple(map(ctx.lent, upstream))
        first, last = len(ctx.places), len(saved) - len(ctx.names)
        kwargs = {**ctx.kwargs, **dict(zip(ctx.names, saved[last:], strict=True))}
        if ctx.rule[2]:
            output = tuple(map(ctx.given, saved[first:last]))
            kwargs["output"] = output if ctx.count > 1 else output[0]
        returned = ctx.rule[1](g if ctx.count > 1 else g[0], *args, **kwargs)
        gradients = list(returned) if isinstance(returned, (tuple, list)) else [returned]
        return None, *ctx.checked(gradients, args)

    def checked(self, gradients: list[Any], args: list[Any]) -> list[Any]:
        """The gradients as tensors, one for each argument."""
        name = type(self).__name__
        if len(gradients) != len(args):
            raise RuntimeError(
                f"[{name}] vjp returned {len(gradients)} gradients for {len(args)} arguments: one "
                "each, None where there is none"
            )
        made: list[Any] = []
        for k, (g, x) in enumerate(zip(gradients, args, strict=True)):
            if g is None or k not in self.places:
                made.append(None)
                continue
            g = self.tensor_of(g, f"gradient {k}")
            if not g.dtype.is_floating_point:
                raise TypeError(f"[{name}] gradient {k} is {g.dtype.name}: gradients are floats")
            if g.shape != x.shape:
                raise RuntimeError(
                    f"[{name}] vjp returned shape {g.shape} as gradient {k} for an argument of "
                    f"shape {tuple(x.shape)}"
                )
            made.append(g)
        return made

    def given(self, x: Any) -> Any:
        """The value that the functions get for an argument."""
        return x

    lent = given  # an upstream gradient

    def tensor_of(self, y: Any, what: str) -> Any:
        """A result of the functions as a tensor."""
        if not isinstance(y, TensorBase):
            raise TypeError(f"[{type(self).__name__}] {what} is {type(y).__name__}, not a Tensor")
        return y


class _OfArrays(_OfTensors):
    """The same by functions of NumPy's arrays, which can be differentiated once."""

    generate_vmap_rule = False
    backward = staticmethod(once_differentiable(_OfTensors.backward))

    def given(self, x: Any) -> Any:
        """A read-only array on a tensor's memory; anything else as it is."""
        if not isinstance(x, TensorBase):
            return x
        view = x.detach().numpy().view()  # type: ignore[attr-defined]
        view.flags.writeable = False
        return view

    def lent(self, g: Any) -> Any:
        """An array of the upstream gradient, which vjp may write over."""
        array = g.detach().numpy()
        return array if array.flags.writeable else array.copy()

    def tensor_of(self, y: Any, what: str) -> Any:
        """A copy of an array, or a number, as a tensor."""
        known = is_numpys("ndarray", y) or is_numpys("generic", y) or isinstance(y, (int, float))
        if not known or np.asarray(y).dtype.kind not in "biuf":
            kind = y.dtype if is_numpys("ndarray", y) else type(y).__name__
            raise TypeError(
                f"[{type(self).__name__}] {what} is {kind}, not an array of real numbers"
            )
        return tensor(y)
