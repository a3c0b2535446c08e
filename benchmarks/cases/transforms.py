"""Transforms of functions: Hessians, gradients of each sample, and tangents.

minigrad and torch have the same names, so they share code. jax is jitted.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from benchmarks.registry import Case, faster, register, time_ratio

# ---- the Hessian of a function of 20 parameters --------------------------------------------------

PARAMETERS = 20


def _valley(x: Any) -> Any:
    """Rosenbrock's function of some coordinates."""
    return (100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2).sum()


def _hessian(lib: Any, x: Any) -> Callable[[], Any]:
    return partial(lib.xp.func.hessian(_valley), lib.array(x))


def _jax_hessian(lib: Any, x: Any) -> Callable[[], Any]:
    return partial(lib.xp.jit(lib.xp.hessian(_valley)), lib.array(x))


register(
    Case(
        "transforms",
        f"hessian of Rosenbrock's function of {PARAMETERS} parameters",
        lambda rng: [rng.uniform(-1, 1, PARAMETERS).astype(np.float32)],
        {"minigrad": _hessian, "torch": _hessian, "jax": _jax_hessian},
        targets=[faster(5, "torch"), time_ratio(3, "jax")],
    )
)

# ---- gradients of each sample --------------------------------------------------------------------

SIZES, BATCH = (64, 128, 10), 256


def _network(rng: Any) -> list[np.ndarray]:
    """Two weights, two biases, inputs and labels."""
    first, hidden, last = SIZES
    shapes = [(hidden, first), (hidden,), (last, hidden), (last,), (BATCH, first)]
    arrays = [rng.uniform(-0.3, 0.3, shape).astype(np.float32) for shape in shapes]
    return [*arrays, rng.integers(0, last, BATCH)]


def _each_sample(lib: Any, *inputs: Any) -> Callable[[], Any]:
    *parameters, x, labels = [lib.array(v) for v in inputs]
    functional = lib.functional

    def loss(w: Any, b: Any, v: Any, c: Any, x: Any, label: Any) -> Any:
        hidden = functional.relu(functional.linear(x, w, b))
        return functional.cross_entropy(functional.linear(hidden, v, c), label)

    of_one = lib.xp.func.grad(loss, argnums=(0, 1, 2, 3))
    of_all = lib.xp.func.vmap(of_one, in_dims=(None, None, None, None, 0, 0))
    return partial(of_all, *parameters, x, labels)


def _jax_each_sample(lib: Any, *inputs: Any) -> Callable[[], Any]:
    jax = lib.xp

    def loss(w: Any, b: Any, v: Any, c: Any, x: Any, label: Any) -> Any:
        hidden = jax.nn.relu(w @ x + b)
        return -jax.nn.log_softmax(v @ hidden + c)[label]

    of_one = jax.grad(loss, argnums=(0, 1, 2, 3))
    of_all = jax.jit(jax.vmap(of_one, in_axes=(None, None, None, None, 0, 0)))
    return partial(of_all, *[lib.array(v) for v in inputs])


register(
    Case(
        "transforms",
        f"gradients of each of {BATCH} samples, MLP {'-'.join(map(str, SIZES))}",
        _network,
        {"minigrad": _each_sample, "torch": _each_sample, "jax": _jax_each_sample},
        targets=[faster(2, "torch")],
    )
)

# ---- a tangent beside the forward ----------------------------------------------------------------


def _forward_of(xp: Any, w: Any, b: Any, v: Any, c: Any, x: Any) -> Any:
    return xp.tanh(x @ w.T + b) @ v.T + c


def _tangent(lib: Any, *inputs: Any) -> Callable[[], Any]:
    *parameters, x = [lib.array(v) for v in inputs[:-1]]
    function = partial(_forward_of, lib.xp, *parameters)
    return partial(lib.xp.func.jvp, function, (x,), (x,))


def _jax_tangent(lib: Any, *inputs: Any) -> Callable[[], Any]:
    *parameters, x = [lib.array(v) for v in inputs[:-1]]
    function = partial(_forward_of, lib.xp.numpy, *parameters)
    return partial(lib.xp.jit(partial(lib.xp.jvp, function)), (x,), (x,))


def _forward(lib: Any, *inputs: Any) -> Callable[[], Any]:
    return partial(_forward_of, lib.xp, *[lib.array(v) for v in inputs[:-1]])


register(
    Case(
        "transforms",
        f"jvp of an MLP {'-'.join(map(str, SIZES))}, batch {BATCH}",
        _network,
        {"minigrad": _tangent, "torch": _tangent, "jax": _jax_tangent, "forward": _forward},
        targets=[time_ratio(2.5, "forward"), time_ratio(1, "torch")],
        compared=lambda library, results: results[:1],
        note="by the inputs; 'forward' is minigrad's forward alone, and only values are compared",
    )
)
