"""Forward mode as functions: products of Jacobians with vectors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from minigrad.autograd.recording import zeros_for
from minigrad.func.calls import Call, flat_like

__all__ = ["jvp", "linearize"]


def jvp(
    func: Callable[..., Any],
    primals: Any,
    tangents: Any,
    *,
    strict: bool = False,
    has_aux: bool = False,
) -> Any:
    """``func(*primals)``, and the product of its Jacobian with the ``tangents``.

    Both are tuples. Tangents are nested and shaped as the primals, and the product as the output.
    An output that does not depend on the primals has a tangent of zeros, or is a RuntimeError if
    ``strict``. With ``has_aux`` ``func`` returns a pair, and what is second in it is returned
    third. The cost is that of ``func`` and of a pass through what it recorded. All of it can be
    differentiated again.

    Raises ValueError for tangents that do not fit the primals, RuntimeError where a hook changes
    gradients on the way, or an autograd.Function has no derivative that can be transposed.

    >>> import minigrad as mg
    >>> mg.func.jvp(mg.sin, (mg.tensor(0.0),), (mg.tensor(2.0),))
    (tensor(0.), tensor(2.))
    """
    if not isinstance(primals, (tuple, list)) or not isinstance(tangents, (tuple, list)):
        raise TypeError("[jvp] primals and tangents are tuples, of one value for each argument")
    call = Call("jvp", func, primals, {}, tuple(range(len(primals))), has_aux)
    push = _push_of(call, strict)
    return call.with_aux(call.shown_output(), push(*tangents))


def linearize(func: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """``func(*primals)``, and the function that multiplies its Jacobian with tangents.

    That function takes a tangent for each of the ``primals``. It pushes them through one recording
    of ``func``, however often it is called. Errors are those of :func:`jvp`.

    >>> import minigrad as mg
    >>> y, push = mg.func.linearize(lambda x: x**2, mg.tensor([1.0, 2.0]))
    >>> push(mg.tensor([1.0, 0.0])), push(mg.tensor([0.0, 1.0]))
    (tensor([2., 0.]), tensor([0., 4.]))
    """
    call = Call("linearize", func, primals, {}, tuple(range(len(primals))), has_aux)
    return call.with_aux(call.shown_output(), _push_of(call, False))


def _push_of(call: Call, strict: bool) -> Callable[..., Any]:
    """The Jacobian of a call as a function of tangents, one for each argument."""

    def push(*tangents: Any) -> Any:
        given = flat_like(call.op, "a tangent", list(tangents), list(call.args), "the primals")
        found = call.recording.push(given)
        if strict and any(t is None for t in found):
            raise RuntimeError(f"[{call.op}] an output does not depend on the primals (strict)")
        outputs = call.recording.outputs
        return call.like_output(
            [zeros_for(t, y.shape, y.dtype) for t, y in zip(found, outputs, strict=True)]
        )

    return push
