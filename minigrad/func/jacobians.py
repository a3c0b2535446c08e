"""Jacobians and Hessians as functions, and products of Hessians with vectors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from minigrad.autograd.recording import columns, rows, zeros_for
from minigrad.func.calls import Call
from minigrad.func.gradients import value_and_grad, vjp
from minigrad.func.tangents import jvp

__all__ = ["hessian", "hvp", "jacfwd", "jacobian", "jacrev", "vhp"]

Argnums = int | tuple[int, ...]


def jacrev(
    func: Callable[..., Any],
    argnums: Argnums = 0,
    *,
    has_aux: bool = False,
    chunk_size: int | None = None,
) -> Callable[..., Any]:
    """The function that computes the Jacobian of ``func`` by reverse mode.

    A Jacobian has the shape of the output, followed by that of the argument. Outputs may be nested,
    and each stands for the Jacobians by all arguments, nested as those are: a tuple of them for a
    tuple of ``argnums``. With ``has_aux`` it is a pair of this and of what ``func`` returns second.

    ``func`` runs once. An upstream gradient for each element of the output is pulled through what
    it recorded, ``chunk_size`` of them at once, by default all or many. Take :func:`jacfwd` where
    the argument has fewer elements than the output. Hooks and rules of an autograd.Function get
    one gradient at a time: where there are any, each element of the output has its own pass.

    >>> import minigrad as mg
    >>> mg.func.jacrev(lambda x: x**2)(mg.tensor([1.0, 2.0]))
    tensor([[2., 0.],
            [0., 4.]])
    """
    return _jacobian("jacrev", func, argnums, has_aux, chunk_size)


def jacfwd(
    func: Callable[..., Any],
    argnums: Argnums = 0,
    has_aux: bool = False,
    *,
    chunk_size: int | None = None,
    randomness: str = "error",
) -> Callable[..., Any]:
    """The function that computes the Jacobian of ``func`` by forward mode; as :func:`jacrev`.

    ``func`` runs once. A tangent for each element of the argument is pushed through what it
    recorded, ``chunk_size`` of them at once, by default all or many. ``randomness`` is PyTorch's
    and changes nothing.

    >>> import minigrad as mg
    >>> mg.func.jacfwd(lambda x: x**2)(mg.tensor([1.0, 2.0]))
    tensor([[2., 0.],
            [0., 4.]])
    """
    return _jacobian("jacfwd", func, argnums, has_aux, chunk_size)


def jacobian(
    func: Callable[..., Any],
    argnums: Argnums = 0,
    *,
    has_aux: bool = False,
) -> Callable[..., Any]:
    """The function that computes the Jacobian of ``func``, in the mode that takes fewer passes.

    >>> import minigrad as mg
    >>> mg.func.jacobian(lambda x: x.sum() * mg.ones(3))(mg.ones(2)).shape
    (3, 2)
    """
    return _jacobian("jacobian", func, argnums, has_aux)


def _jacobian(
    op: str,
    func: Callable[..., Any],
    argnums: Argnums,
    has_aux: bool,
    chunk_size: int | None = None,
) -> Callable[..., Any]:
    def of(*args: Any, **kwargs: Any) -> Any:
        call = Call(op, func, args, kwargs, argnums, has_aux)
        ys, xs = call.recording.outputs, call.recording.inputs
        forward = op == "jacfwd"
        if op == "jacobian":
            forward = sum([x._h.size for x in xs]) < sum([y._h.size for y in ys])
        if forward:
            found = [columns(call.recording, k, None, chunk_size) for k in range(len(xs))]
            by_output = [[column[i] for column in found] for i in range(len(ys))]
        else:
            by_output = [rows(call.recording, i, None, chunk_size) for i in range(len(ys))]
        made = [
            call.like_args(
                [zeros_for(j, (*y.shape, *x.shape), x.dtype) for j, x in zip(each, xs, strict=True)]
            )
            for y, each in zip(ys, by_output, strict=True)
        ]
        return call.with_aux(call.like_output(made))

    return of


def hessian(func: Callable[..., Any], argnums: Argnums = 0) -> Callable[..., Any]:
    """The function that computes the second derivatives of ``func``: jacfwd of jacrev.

    For an output of one element a Hessian has twice the shape of the argument. ``func`` runs once,
    and so does its gradient, through which a tangent is pushed for each element of the argument.

    >>> import minigrad as mg
    >>> mg.func.hessian(lambda x: (x**3).sum())(mg.tensor([1.0, 2.0]))
    tensor([[ 6.,  0.],
            [ 0., 12.]])
    """
    return jacfwd(jacrev(func, argnums), argnums)


def hvp(func: Callable[..., Any], primals: Any, tangents: Any, has_aux: bool = False) -> Any:
    """``func(*primals)``, one element, and the product of its Hessian with the ``tangents``.

    The product is a tuple, as the primals are. It is computed forward over reverse: a tangent is
    pushed through the gradient. With ``has_aux`` what ``func`` returns second is returned third.

    >>> import minigrad as mg
    >>> x, v = mg.tensor([1.0, 2.0]), mg.tensor([1.0, 0.0])
    >>> mg.func.hvp(lambda x: (x**3).sum(), (x,), (v,))
    (tensor(9.), (tensor([6., 0.]),))
    """
    gradients = _gradients_and_value(func, primals, has_aux)
    _, product, (value, *aux) = jvp(gradients, primals, tangents, has_aux=True)
    return (value, product, *aux)


def vhp(func: Callable[..., Any], primals: Any, vectors: Any, has_aux: bool = False) -> Any:
    """``func(*primals)``, one element, and the product of ``vectors`` with its Hessian.

    That is the product of :func:`hvp`, computed reverse over reverse.

    >>> import minigrad as mg
    >>> x, v = mg.tensor([1.0, 2.0]), mg.tensor([0.0, 1.0])
    >>> mg.func.vhp(lambda x: (x**3).sum(), (x,), (v,))
    (tensor(9.), (tensor([ 0., 12.]),))
    """
    gradients = _gradients_and_value(func, primals, has_aux)
    _, pull, (value, *aux) = vjp(gradients, *primals, has_aux=True)
    return (value, pull(tuple(vectors)), *aux)


def _gradients_and_value(
    func: Callable[..., Any], primals: Any, has_aux: bool
) -> Callable[..., Any]:
    """The gradients by all arguments, and beside them the value and what comes with it."""
    both = value_and_grad(func, tuple(range(len(primals))), has_aux)

    def gradients(*args: Any) -> Any:
        value, found = both(*args)
        return found, tuple(value) if has_aux else (value,)

    return gradients
