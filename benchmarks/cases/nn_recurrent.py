"""One layer of LSTM or GRU: all steps and their gradients."""

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


def _gru_jax(jax: Any, x: Any, w: Any, u: Any, b: Any, c: Any) -> Any:
    def step(h: Any, own: Any) -> Any:
        own, inner = jax.numpy.split(own, 3, -1), jax.numpy.split(h @ u.T + c, 3, -1)
        r, z = (jax.nn.sigmoid(own[k] + inner[k]) for k in (0, 1))
        n = jax.numpy.tanh(own[2] + r * inner[2])
        h = n + z * (h - n)
        return h, h

    zeros = jax.numpy.zeros((x.shape[1], u.shape[1]), x.dtype)
    return jax.lax.scan(step, zeros, x @ w.T + b)[1]


def _layer(kind: str, steps: int, batch: int, size: int, quick: bool) -> None:
    """A row for LSTM, whose two biases are merged, or for GRU, which has both."""
    lstm = kind == "LSTM"
    wide = (4 if lstm else 3) * size

    def inputs(rng: Any) -> list[np.ndarray]:
        bound = size**-0.5
        weights = [(wide, size), (wide, size), (wide,), (wide,)][: 3 if lstm else 4]
        return [
            rng.standard_normal((steps, batch, size), dtype=np.float32),
            rng.standard_normal((steps, batch, size), dtype=np.float32),
            *[rng.uniform(-bound, bound, shape).astype(np.float32) for shape in weights],
        ]

    def eager(lib: Any) -> Callable[..., Any]:
        """The function behind each library's layer, which takes the weights as inputs."""
        if lib.name == "minigrad":
            f, first = lib.functional, lib.xp.zeros(batch, size)
            states, run = (first, first) if lstm else (first,), f.recurrent.layer_steps
            return lambda x, w, u, b, c=None: run(kind, f.linear(x, w, b), states, u, c)[0]
        first, none = lib.xp.zeros(1, batch, size), lib.xp.zeros(wide)
        rest = (True, 1, 0.0, False, False, False)
        state, run = (first, first) if lstm else first, getattr(lib.xp, kind.lower())
        return lambda x, w, u, b, c=none: run(x, state, [w, u, b, c], *rest)[0]

    flops = 4.0 * steps * batch * wide * size
    both_ways(
        "nn",
        f"{kind.lower()} {size} units, {steps} steps of {batch}",
        inputs,
        eager,
        _lstm_jax if lstm else _gru_jax,
        work={"flops": (flops, 3 * flops)},
        quick=(quick, quick),
        targets=[faster(1.2)],
    )


_layer("LSTM", 64, 32, 128, True)
_layer("LSTM", 20, 64, 256, False)
_layer("GRU", 64, 32, 128, True)
