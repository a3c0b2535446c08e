"""Reductions and softmax of a 4096x1024 array along each axis and over all of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.cases.common import by_hand, eager_backward, jax_backward, jitted
from benchmarks.registry import Case, register

SHAPE = (4096, 1024)
LONG = 2**24
_SIZE = SHAPE[0] * SHAPE[1]


def _logsumexp(x: Any, axis: Any) -> Any:
    top = x.max(axis, keepdims=True)
    return np.squeeze(top, axis) + np.log(np.exp(x - top).sum(axis))


def _softmax(x: Any, axis: Any) -> Any:
    y = np.exp(x - x.max(axis, keepdims=True))
    y /= y.sum(axis, keepdims=True)
    return y


def _log_softmax(x: Any, axis: Any) -> Any:
    y = x - x.max(axis, keepdims=True)
    y -= np.log(np.exp(y).sum(axis, keepdims=True))
    return y


# name: NumPy by hand, minigrad and torch, jax. `axis` is an int, or None for all.
_Both = tuple[Callable[..., Any], Callable[..., Any], Callable[..., Any]]


def _every(axis: Any) -> Any:
    """All dimensions, for the functions of torch that do not take None."""
    return (0, 1) if axis is None else axis


def _same(name: str) -> _Both:
    """A function of one name and meaning in all libraries; a method in NumPy and jax."""
    return (
        lambda x, d: getattr(x, name)(d),
        lambda xp, x, d: getattr(xp, name)(x, d),
        lambda jax, x, d: getattr(x, name)(d),
    )


_REDUCTIONS: dict[str, _Both] = {
    "sum": _same("sum"),
    "mean": _same("mean"),
    "max": (
        lambda x, d: x.max(d),
        lambda xp, x, d: xp.amax(x, _every(d)),
        lambda jax, x, d: x.max(d),
    ),
    "argmax": _same("argmax"),
    "var": (
        lambda x, d: x.var(d, ddof=1),
        lambda xp, x, d: xp.var(x, d),
        lambda jax, x, d: x.var(d, ddof=1),
    ),
    "logsumexp": (
        _logsumexp,
        lambda xp, x, d: xp.logsumexp(x, _every(d)),
        lambda jax, x, d: jax.nn.logsumexp(x, d),
    ),
    "softmax": (
        _softmax,
        lambda xp, x, d: xp.softmax(x, d),
        lambda jax, x, d: jax.nn.softmax(x, d),
    ),
    "log_softmax": (
        _log_softmax,
        lambda xp, x, d: xp.log_softmax(x, d),
        lambda jax, x, d: jax.nn.log_softmax(x, d),
    ),
}


def _sum_gradient(g: Any, x: Any, axis: Any) -> Any:
    y = x.sum(axis)
    up = g if axis is None else np.expand_dims(g, axis)
    return y, np.broadcast_to(up, x.shape).copy()


def _softmax_gradient(g: Any, x: Any, axis: Any) -> Any:
    y = _softmax(x, axis)
    return y, y * (g - (g * y).sum(axis, keepdims=True))


_GRADIENTS: dict[str, Callable[..., Any]] = {"sum": _sum_gradient, "softmax": _softmax_gradient}


def _eager(function: Callable[..., Any], axis: Any) -> Any:
    def build(lib: Any, values: Any) -> Any:
        xp, x = lib.xp, lib.array(values)
        return lambda: function(xp, x, axis)

    return build


def _jitted(function: Callable[..., Any], axis: Any) -> Any:
    def build(lib: Any, values: Any) -> Any:
        return jitted(lambda jnp, x: function(lib.xp, x, axis))(lib, values)

    return build


def _jax_backward(function: Callable[..., Any], axis: Any) -> Any:
    def build(lib: Any, g: Any, values: Any) -> Any:
        return jax_backward(lambda jnp, x: function(lib.xp, x, axis))(lib, g, values)

    return build


def _declare(name: str, axis: int | None, shape: tuple[int, ...], where: str) -> None:
    numpy, eager, jax = _REDUCTIONS[name]
    keeps_shape = name in ("softmax", "log_softmax")

    def values(rng: Any) -> np.ndarray:
        return rng.standard_normal(shape, dtype=np.float32)

    def with_upstream(rng: Any) -> list[np.ndarray]:
        x = values(rng)
        like = x if keeps_shape else x.sum(axis)
        return [np.asarray(rng.uniform(0.5, 1.5, np.shape(like)), dtype=np.float32), x]

    size = float(np.prod(shape))
    register(
        Case(
            "reductions",
            f"{name} {where}",
            lambda rng: [values(rng)],
            {
                "minigrad": _eager(eager, axis),
                "numpy": by_hand(lambda x: numpy(x, axis)),
                "torch": _eager(eager, axis),
                "jax": _jitted(jax, axis),
            },
            bytes=4 * size * (2 if keeps_shape else 1),
            # A sum of random signs cancels: its error is that of the terms, not of the result.
            tolerance=2e-4,
        )
    )
    if name not in _GRADIENTS:
        return
    gradient = _GRADIENTS[name]
    both = eager_backward(lambda xp, x: eager(xp, x, axis))
    register(
        Case(
            "reductions",
            f"{name} {where}, forward+backward",
            with_upstream,
            {
                "minigrad": both,
                "numpy": by_hand(lambda g, x: gradient(g, x, axis)),
                "torch": both,
                "jax": _jax_backward(jax, axis),
            },
            bytes=4 * size * (5 if keeps_shape else 2),
            tolerance=2e-4,
        )
    )


for _name in _REDUCTIONS:
    _declare(_name, 0, SHAPE, "4096x1024 axis 0")
    _declare(_name, 1, SHAPE, "4096x1024 axis 1")
    if _name in ("softmax", "log_softmax"):
        _declare(_name, 0, (_SIZE,), "2^22 vector")
    else:
        _declare(_name, None, SHAPE, "4096x1024 all")
_declare("sum", 0, (LONG,), "2^24 vector")
