"""Scaled dot-product attention, causal and not."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from benchmarks.cases.common import both_ways
from benchmarks.registry import faster


def _weights(q: Any, k: Any, causal: bool) -> Any:
    s = q @ np.swapaxes(k, -1, -2) * np.float32(q.shape[-1] ** -0.5)
    if causal:
        s[..., np.triu(np.ones(s.shape[-2:], bool), 1)] = -np.inf
    s -= s.max(-1, keepdims=True)
    np.exp(s, out=s)
    s /= s.sum(-1, keepdims=True)
    return s


def _both(causal: bool, g: Any, q: Any, k: Any, v: Any) -> Any:
    p = _weights(q, k, causal)
    dv = np.swapaxes(p, -1, -2) @ g
    dp = g @ np.swapaxes(v, -1, -2)
    ds = p * (dp - (dp * p).sum(-1, keepdims=True)) * np.float32(q.shape[-1] ** -0.5)
    return p @ v, ds @ k, np.swapaxes(ds, -1, -2) @ q, dv


def _attention_jax(causal: bool, jax: Any, q: Any, k: Any, v: Any) -> Any:
    jnp = jax.numpy
    s = jnp.einsum("bhqd,bhkd->bhqk", q, k) * q.shape[-1] ** -0.5
    if causal:
        s = jnp.where(jnp.tril(jnp.ones(s.shape[-2:], bool)), s, -jnp.inf)
    return jnp.einsum("bhqk,bhkd->bhqd", jax.nn.softmax(s, -1), v)


def _attention(batch: int, heads: int, length: int, features: int, causal: bool) -> None:
    shape = (batch, heads, length, features)

    def inputs(rng: Any) -> list[np.ndarray]:
        return [rng.standard_normal(shape, dtype=np.float32) for _ in range(4)]

    def eager(lib: Any) -> Callable[..., Any]:
        return partial(lib.functional.scaled_dot_product_attention, is_causal=causal)

    flops = 4.0 * batch * heads * length**2 * features / (2 if causal else 1)
    both_ways(
        "nn",
        f"attention {'x'.join(map(str, shape))}{' causal' if causal else ''}",
        inputs,
        eager,
        partial(_attention_jax, causal),
        lambda q, k, v: _weights(q, k, causal) @ v,
        partial(_both, causal),
        {"flops": (flops, 3 * flops)},
        (length == 64, length == 64),
        targets=[faster(1.2)],
    )


for _shape in ((16, 4, 64, 32), (4, 8, 256, 64), (1, 8, 1024, 64)):
    for _causal in (False, True):
        _attention(*_shape, _causal)
