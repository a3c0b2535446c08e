"""Reverse mode as functions: gradients, and products of vectors with Jacobians."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from minigrad.autograd.recording import zeros_for
from minigrad.func.calls import Call, flat_like
from minigrad.functions.creation import ones_like

__all__ = ["grad", "grad_and_value", "value_and_grad", "vjp"]


def grad(
    func: Callable[..., Any], argnums: int | tuple[int, ...] = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """The function that computes the gradient of ``func`` with respect to one of its arguments.

    ``func`` returns a tensor of one element, or, with ``has_aux``, a pair of that and of anything
    else, which is returned beside the gradient. An argument is a tensor of floats, or a dict, list,
    tuple or dataclass of such, and its gradient has the same structure. ``argnums`` numbers the
    positional argument, or several for a tuple of gradients. The function can be differentiated
    again.

    Raises ValueError for an argument that is not there and TypeError for a value that is not a
    tensor. An output of more or less than one element is a RuntimeError.

    >>> import minigrad as mg
    >>> mg.func.grad(mg.sin)(mg.tensor(0.0))
    tensor(1.)
    >>> mg.func.grad(mg.func.grad(lambda x: x**3))(mg.tensor(2.0))
    tensor(12.)
    """
    both = value_and_grad(func, argnums, has_aux)

    def gradient(*args: Any, **kwargs: Any) -> Any:
        value, found = both(*args, **kwargs)
        return (found, value[1]) if has_aux else found

    return gradient


def value_and_grad(
    func: Callable[..., Any], argnums: int | tuple[int, ...] = 0, has_aux: bool = False
) -> Callable[..., tuple[Any, Any]]:
    """The function that computes ``func`` and its gradient, as a pair; else as :func:`grad`.

    >>> import minigrad as mg
    >>> mg.func.value_and_grad(lambda x: (x**2).sum())(mg.tensor([1.0, 2.0]))
    (tensor(5.), tensor([2., 4.]))
    """

    def value_and_gradient(*args: Any, **kwargs: Any) -> tuple[Any, Any]:
        call = Call("grad", func, args, kwargs, argnums, has_aux)
        value, recording = call.one_element(), call.recording
        found = recording.pull([ones_like(value)], retain_graph=False)
        made = [
            zeros_for(g, x.shape, x.dtype) for g, x in zip(found, recording.inputs, strict=True)
        ]
        return call.with_aux(call.shown_output()), call.like_args(made)

    return value_and_gradient


def grad_and_value(
    func: Callable[..., Any], argnums: int | tuple[int, ...] = 0, has_aux: bool = False
) -> Callable[..., tuple[Any, Any]]:
    """As :func:`value_and_grad`, in PyTorch's order: the gradient first.

    >>> import minigrad as mg
    >>> mg.func.grad_and_value(lambda x: (x**2).sum())(mg.tensor([1.0, 2.0]))
    (tensor([2., 4.]), tensor(5.))
    """
    both = value_and_grad(func, argnums, has_aux)

    def gradient_and_value(*args: Any, **kwargs: Any) -> tuple[Any, Any]:
        value, found = both(*args, **kwargs)
        return found, value

    return gradient_and_value


def vjp(func: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """``func(*primals)``, and the function that multiplies vectors with its Jacobian.

    That function takes a vector as the output is nested and shaped. It returns a tuple, of a
    product for each of the ``primals``. It may be called again and again, with one recording of
    ``func``. With ``has_aux`` ``func`` returns a pair, and what is second in it is returned third.

    Raises ValueError for a vector that does not fit the output. TypeError where ``func`` returns
    something else than tensors.

    >>> import minigrad as mg
    >>> y, pull = mg.func.vjp(mg.exp, mg.zeros(2))
    >>> pull(mg.tensor([1.0, 3.0]))
    (tensor([1., 3.]),)
    """
    call = Call("vjp", func, primals, {}, tuple(range(len(primals))), has_aux)
    recording = call.recording

    def pull(cotangents: Any, retain_graph: bool = True, create_graph: bool | None = None) -> Any:
        upstream = flat_like("vjp", "the vector", cotangents, call.output, "the output")
        found = recording.pull(upstream, retain_graph, create_graph)
        made = [
            zeros_for(g, x.shape, x.dtype) for g, x in zip(found, recording.inputs, strict=True)
        ]
        return call.like_args(made)

    return call.with_aux(call.shown_output(), pull)
