"""Gradients of functions of tensors, as functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from minigrad import autograd
from minigrad.func.trees import leaves, mapped
from minigrad.functions.grad_modes import enable_grad
from minigrad.tape.grad_mode import is_grad_enabled
from minigrad.tape.node import Node
from minigrad.tape.tensor_base import TensorBase

__all__ = ["grad", "value_and_grad"]


def grad(
    func: Callable[..., Any], argnums: int | tuple[int, ...] = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """The function that computes the gradient of ``func`` with respect to one of its arguments.

    ``func`` returns a tensor of one element, or, with ``has_aux``, a pair of that and of anything
    else, which is returned beside the gradient. An argument is a tensor of floats, or a dict, list
    or tuple of such, and its gradient has the same structure. ``argnums`` numbers the positional
    argument, or several for a tuple of gradients. The function can be differentiated again.

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
        places = _places(argnums, len(args))
        fresh = {k: mapped(_fresh, args[k]) for k in places}
        given = [fresh.get(k, x) for k, x in enumerate(args)]
        with enable_grad():
            output = func(*given, **kwargs)
        value, aux = _parted(output, has_aux)
        inputs = [x for k in places for x in leaves(fresh[k])]
        recorded = is_grad_enabled() and _has_others(value, inputs)
        found = iter(_gradients(value, inputs, recorded))
        trees = tuple(mapped(lambda _: next(found), fresh[k]) for k in places)
        value, aux = (value, aux) if recorded else (_off(value), mapped(_off, aux))
        return (value, aux) if has_aux else value, trees if isinstance(argnums, tuple) else trees[0]

    return value_and_gradient


def _places(argnums: int | tuple[int, ...], count: int) -> list[int]:
    """The numbers of the arguments to differentiate by."""
    given = argnums if isinstance(argnums, tuple) else (argnums,)
    for k in given:
        if isinstance(k, bool) or not isinstance(k, int):
            raise TypeError(f"[grad] argnums must be integers, not {type(k).__name__}")
        if not -count <= k < count:
            raise ValueError(f"[grad] argnums is {k}, but there are {count} positional arguments")
    return [k % count for k in given]


def _parted(output: Any, has_aux: bool) -> tuple[Any, Any]:
    """The value to differentiate, and what comes beside it."""
    if has_aux and not (isinstance(output, tuple) and len(output) == 2):
        raise TypeError("[grad] with has_aux the function must return a pair, of a tensor and more")
    value, aux = output if has_aux else (output, None)
    if not isinstance(value, TensorBase):
        raise TypeError(f"[grad] the function must return a tensor, not {type(value).__name__}")
    if value._h.size != 1:
        raise RuntimeError(
            f"[grad] the function returned the shape {value.shape}, but must return one element"
        )
    return value, aux


def _fresh(x: Any) -> Any:
    """A tensor to differentiate by, with the values of x, and on its graph if it has one."""
    if not isinstance(x, TensorBase):
        raise TypeError(f"[grad] an argument to differentiate by holds {type(x).__name__}")
    return x.view(x.shape) if x.requires_grad else x.detach().requires_grad_()  # type: ignore[attr-defined]


def _off(x: Any) -> Any:
    return x.detach() if isinstance(x, TensorBase) else x  # type: ignore[attr-defined]


def _gradients(value: Any, inputs: list[Any], recorded: bool) -> tuple[Any, ...]:
    if not value.requires_grad:
        return tuple(x.detach() * 0 for x in inputs)
    return autograd.grad(value, inputs, create_graph=recorded)


def _has_others(value: Any, inputs: list[Any]) -> bool:
    """True if the graph of value leads to more than these inputs: a gradient may depend on it."""
    own = {id(x) for x in inputs if x.is_leaf}
    seen: set[int] = set()
    waiting = [value.grad_fn]
    while waiting:
        at = waiting.pop()
        if id(at) in seen:
            continue
        seen.add(id(at))
        if isinstance(at, Node):
            waiting.extend(at.parents or ())
        elif at is not None and id(at) not in own:
            return True
    return value.grad_fn is None and value.requires_grad
