"""Elementwise functions in the second-level cache (2^16) and in memory (2^24), both ways."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.cases.common import by_hand, eager_backward, jax_backward, jitted, ones_like, plain
from benchmarks.registry import Case, Target, faster, register, time_ratio


@dataclass(frozen=True)
class _Op:
    """A function in each library, its gradients by hand, its domain."""

    name: str
    numpy: Callable[..., Any]
    gradients: Callable[..., tuple[Any, ...]]  # of (upstream, result, *inputs)
    jax: Callable[..., Any]  # from jax.numpy and the inputs
    domains: tuple[tuple[float, float], ...]
    saved: int  # arrays that the backward reads beside the upstream gradient
    transcendental: bool = False


def _sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


_ANY, _POSITIVE = (-4.0, 4.0), (0.1, 4.0)


def _unary(
    name: str, numpy: Any, slope: Any, jax: Any, domain: Any = _ANY, transcendental: bool = True
) -> _Op:
    """``slope`` takes (upstream, result, input) to the gradient."""
    return _Op(name, numpy, lambda *a: (slope(*a),), jax, (domain,), 1, transcendental)


_OPS = [
    _unary("exp", np.exp, lambda g, y, x: g * y, lambda j, x: j.exp(x)),
    _unary("log", np.log, lambda g, y, x: g / x, lambda j, x: j.log(x), _POSITIVE),
    _unary("tanh", np.tanh, lambda g, y, x: g * (1 - y * y), lambda j, x: j.tanh(x)),
    # minigrad and torch have a sigmoid; NumPy has none, so it is spelled out there.
    _unary(
        "sigmoid", _sigmoid, lambda g, y, x: g * (y * (1 - y)), lambda j, x: 1 / (1 + j.exp(-x))
    ),
    _unary("sin", np.sin, lambda g, y, x: g * np.cos(x), lambda j, x: j.sin(x)),
    _unary("sqrt", np.sqrt, lambda g, y, x: g / (2 * y), lambda j, x: j.sqrt(x), _POSITIVE, False),
    _Op(
        "add",
        np.add,
        lambda g, y, a, b: (g.copy(), g.copy()),  # arrays of their own, as .grad of two leaves is
        lambda j, a, b: a + b,
        (_ANY, _ANY),
        0,
    ),
    _Op(
        "mul",
        np.multiply,
        lambda g, y, a, b: (g * b, g * a),
        lambda j, a, b: a * b,
        (_ANY, _ANY),
        2,
    ),
    _Op(
        "div",
        np.divide,
        lambda g, y, a, b: (g / b, -g * y / b),
        lambda j, a, b: a / b,
        (_ANY, _POSITIVE),
        2,
    ),
    _Op(
        "pow",
        np.power,
        lambda g, y, a, b: (g * b * a ** (b - 1), g * y * np.log(a)),
        lambda j, a, b: a**b,
        (_POSITIVE, _ANY),
        3,
    ),
]

_L2, _L3, _MEMORY = 2**16, 2**20, 2**24


def _operands(op: _Op, size: int, dtype: str, backward: bool) -> Callable[[Any], list[np.ndarray]]:
    def inputs(rng: Any) -> list[np.ndarray]:
        xs = [rng.uniform(low, high, size).astype(dtype) for low, high in op.domains]
        return [ones_like(xs[0]), *xs] if backward else xs

    return inputs


def _targets(op: _Op, size: int, dtype: str, backward: bool) -> list[Target]:
    if size == _MEMORY:
        return [time_ratio(1.0, "numpy")]
    if size == _L2 and dtype == "float32" and op.transcendental and not backward:
        return [faster(2.0, "numpy")]
    return []


def _numpy_backward(op: _Op) -> Callable[..., Any]:
    def both(g: Any, *xs: Any) -> Any:
        y = op.numpy(*xs)
        return y, *op.gradients(g, y, *xs)

    return both


def _declare(op: _Op, size: int, dtype: str, backward: bool) -> None:
    def eager(xp: Any) -> Any:
        return getattr(xp, op.name)

    arrays = len(op.domains) + 1 + (1 + op.saved + len(op.domains) if backward else 0)
    if backward:
        both = eager_backward(lambda xp, *xs: getattr(xp, op.name)(*xs))
        builders = {
            "minigrad": both,
            "numpy": by_hand(_numpy_backward(op)),
            "torch": both,
            "jax": jax_backward(op.jax),
        }
    else:
        builders = {
            "minigrad": plain(eager),
            "numpy": by_hand(op.numpy),
            "torch": plain(eager),
            "jax": jitted(op.jax),
        }
    register(
        Case(
            "elementwise",
            f"{op.name} 2^{size.bit_length() - 1}" + (", forward+backward" if backward else ""),
            _operands(op, size, dtype, backward),
            builders,
            dtype=dtype,
            bytes=arrays * size * np.dtype(dtype).itemsize,
            quick=size != _MEMORY,
            full=size != _L3,
            tolerance=2e-5 if dtype == "float32" else 1e-13,
            targets=_targets(op, size, dtype, backward),
        )
    )


for _op in _OPS:
    for _size in (_L2, _L3, _MEMORY):
        for _backward in (False, True):
            _declare(_op, _size, "float32", _backward)
            if _op.name in ("exp", "log", "tanh"):
                _declare(_op, _size, "float64", _backward)
