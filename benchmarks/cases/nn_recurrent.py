"""One layer of long short-term memory, all steps and their gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.cases.common import both_ways
from benchmarks.registry import faster


def _lstm_jax(jax: Any, x: Any, w: Any, u: Any, b: Any) -> Any:
    def step(state: Any, own: Any) -> Any:
        h, c = state
        i, f, g, o = jax.numpy.split(own + h @ u.T, 4, -1)
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jax.numpy.tanh(g)
        h = jax.nn.sigmoid(o) * jax.numpy.tanh(c)
        return (h, c), h

    zeros = jax.numpy.zeros((x.shape[1], u.shape[1]), x.dtype)
    return jax.lax.scan(step, (zeros, zeros), x @ w.T + b)[1]


def _lstm(steps: int, batch: int, size: int, quick: bool) -> None:
    def inputs(rng: Any) -> list[np.ndarray]:
        bound = size**-0.5
        return [
            rng.standard_normal((steps, batch, size), dtype=np.float32),
            rng.standard_normal((steps, batch, size), dtype=np.float32),
            rng.uniform(-bound, bound, (4 * size, size)).astype(np.float32),
            rng.uniform(-bound, bound, (4 * size, size)).astype(np.float32),
            rng.uniform(-bound, bound, 4 * size).astype(np.float32),
        ]

    def eager(lib: Any) -> Callable[..., Any]:
        """The function behind nn.LSTM of each library, which takes the weights as inputs."""
        if lib.name == "minigrad":
            f, state = lib.functional, lib.xp.zeros(2, batch, size)
            return lambda x, w, u, b: f.lstm_steps(f.linear(x, w, b), state, u).select(0, 0)
        first, none = lib.xp.zeros(1, batch, size), lib.xp.zeros(4 * size)
        rest = (True, 1, 0.0, False, False, False)
        return lambda x, w, u, b: lib.xp.lstm(x, (first, first), [w, u, b, none], *rest)[0]

    flops = 16.0 * steps * batch * size**2
    both_ways(
        "nn",
        f"lstm {size} units, {steps} steps of {batch}",
        inputs,
        eager,
        _lstm_jax,
        work={"flops": (flops, 3 * flops)},
        quick=(quick, quick),
        targets=[faster(1.2)],
    )


_lstm(64, 32, 128, True)
_lstm(20, 64, 256, False)
