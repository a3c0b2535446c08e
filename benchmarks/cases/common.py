"""Builders that several groups share.

minigrad and torch share an interface, and so the code here: ``lib.xp`` is either of the two. NumPy
is written by hand, with the gradients as fresh arrays; jax is jitted and returns the forward result
as well, so that it cannot be optimised away.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from benchmarks.registry import Builder

__all__ = ["by_hand", "eager_backward", "jax_backward", "jitted", "ones_like", "plain"]


def plain(function: Callable[..., Any]) -> Builder:
    """The operation on the arrays, with nothing around it.

    ``function(xp)`` picks the operation from a library.
    """

    def build(lib: Any, *inputs: Any) -> Callable[[], Any]:
        return partial(function(lib.xp), *[lib.array(v) for v in inputs])

    return build


def jitted(function: Callable[..., Any]) -> Builder:
    """``function(jax.numpy, *arrays)`` under jax.jit."""

    def build(lib: Any, *inputs: Any) -> Callable[[], Any]:
        compiled = lib.xp.jit(partial(function, lib.xp.numpy))
        return partial(compiled, *[lib.array(v) for v in inputs])

    return build


def eager_backward(function: Callable[..., Any]) -> Builder:
    """``y = function(xp, *xs)``, then backward from the upstream gradient, the first input."""

    def build(lib: Any, upstream: Any, *inputs: Any) -> Callable[[], Any]:
        xp, g = lib.xp, lib.array(upstream)
        xs = [lib.array(v, requires_grad=True) for v in inputs]

        def call() -> Any:
            for x in xs:
                x.grad = None
            y = function(xp, *xs)
            y.backward(g)
            return (y, *[x.grad for x in xs])

        return call

    return build


def jax_backward(function: Callable[..., Any]) -> Builder:
    """As :func:`eager_backward`, with jax.vjp under jax.jit."""

    def build(lib: Any, upstream: Any, *inputs: Any) -> Callable[[], Any]:
        jax = lib.xp

        def both(g: Any, *xs: Any) -> Any:
            y, vjp = jax.vjp(partial(function, jax.numpy), *xs)
            return (y, *vjp(g))

        return partial(jax.jit(both), lib.array(upstream), *[lib.array(v) for v in inputs])

    return build


def by_hand(function: Callable[..., Any]) -> Builder:
    """``function(*arrays)`` written for NumPy."""

    def build(lib: Any, *inputs: Any) -> Callable[[], Any]:
        return partial(function, *[lib.array(v) for v in inputs])

    return build


def ones_like(values: Any) -> np.ndarray:
    """The upstream gradient."""
    return np.ones_like(values)
