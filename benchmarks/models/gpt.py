"""A transformer that predicts the next token, like GPT-2 (Radford et al. 2019)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks.models.mlp import linear_weights
from benchmarks.models.problem import Problem

__all__ = ["Gpt"]

_EPSILON = 1e-5


class Gpt(Problem):
    """Blocks of causal attention and a GELU network, normalised before each."""

    def __init__(
        self,
        layers: int,
        width: int,
        heads: int,
        length: int,
        batch: int,
        words: int,
        optimiser: str,
    ) -> None:
        self.layers, self.width, self.heads = layers, width, heads
        self.length, self.batch, self.words, self.optimiser = length, batch, words, optimiser
        self.name = f"GPT {layers} layers of {width}, {batch}x{length} tokens, {optimiser}"
        dense = layers * 12 * width**2 + words * width
        attention = layers * length * width  # two products, half of each masked
        self.flops = 6.0 * batch * length * (dense + attention)

    def tiny(self) -> Gpt:
        return Gpt(1, 8, 2, 4, 2, 8, self.optimiser)

    def inputs(self, rng: Any) -> list[np.ndarray]:
        d, words = self.width, self.words

        def scales() -> list[np.ndarray]:
            return [
                rng.uniform(low, low + 0.2, d).astype(np.float32)
                for low in (0.9, -0.1)  # weight, bias
            ]

        def table(rows: int) -> np.ndarray:
            return np.asarray(0.1 * rng.standard_normal((rows, d)), dtype=np.float32)

        tokens = rng.integers(0, words, (self.batch, self.length))
        found = [tokens, rng.integers(0, words, self.batch * self.length)]
        found += [table(words), table(self.length)]
        for _ in range(self.layers):
            found += scales() + linear_weights(rng, d, 3 * d, False)
            found += linear_weights(rng, d, d, False) + scales()
            found += linear_weights(rng, d, 4 * d) + linear_weights(rng, 4 * d, d)
        return found + scales() + linear_weights(rng, d, words, False)

    def module(self, lib: Any) -> Any:
        nn, functional, heads = lib.nn, lib.functional, self.heads
        width, length, words, layers = self.width, self.length, self.words, self.layers
        positions = lib.array(np.arange(length))

        class Block(nn.Module):  # type: ignore[misc, name-defined]
            def __init__(self) -> None:
                super().__init__()
                self.norm1 = nn.LayerNorm(width, eps=_EPSILON)
                self.qkv = nn.Linear(width, 3 * width, bias=False)
                self.projection = nn.Linear(width, width, bias=False)
                self.norm2 = nn.LayerNorm(width, eps=_EPSILON)
                self.wide = nn.Linear(width, 4 * width)
                self.narrow = nn.Linear(4 * width, width)

            def forward(self, x: Any) -> Any:
                batch = len(x)
                q, k, v = (
                    part.reshape(batch, length, heads, -1).transpose(1, 2)
                    for part in self.qkv(self.norm1(x)).split(width, 2)
                )
                mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
                x = x + self.projection(mixed.transpose(1, 2).reshape(batch, length, width))
                inner = functional.gelu(self.wide(self.norm2(x)), approximate="tanh")
                return x + self.narrow(inner)

        class Net(nn.Module):  # type: ignore[misc, name-defined]
            def __init__(self) -> None:
                super().__init__()
                self.tokens = nn.Embedding(words, width)
                self.positions = nn.Embedding(length, width)
                self.blocks = nn.Sequential(*[Block() for _ in range(layers)])
                self.norm = nn.LayerNorm(width, eps=_EPSILON)
                self.head = nn.Linear(width, words, bias=False)

            def forward(self, tokens: Any) -> Any:
                x = self.tokens(tokens) + self.positions(positions)
                return self.head(self.norm(self.blocks(x))).reshape(-1, words)

        return Net()

    def jax(self, jax: Any, weights: Sequence[Any], x: Any) -> Any:
        jnp, left = jax.numpy, iter(weights)
        batch, length, heads = self.batch, self.length, self.heads

        def normalised(x: Any) -> Any:
            w, b = next(left), next(left)
            centred = x - x.mean(-1, keepdims=True)
            scale = jax.lax.rsqrt((centred * centred).mean(-1, keepdims=True) + _EPSILON)
            return centred * scale * w + b

        def linear(x: Any, bias: bool = True) -> Any:
            y = x @ next(left).T
            return y + next(left) if bias else y

        mask = jnp.tril(jnp.ones((length, length), bool))
        words, positions = next(left), next(left)
        x = words[x] + positions
        for _ in range(self.layers):
            split = linear(normalised(x), False).reshape(batch, length, 3, heads, -1)
            q, k, v = (split[:, :, i] for i in range(3))
            s = jnp.einsum("bqhd,bkhd->bhqk", q, k) * q.shape[-1] ** -0.5
            p = jax.nn.softmax(jnp.where(mask, s, -jnp.inf), -1)
            mixed = jnp.einsum("bhqk,bkhd->bqhd", p, v).reshape(batch, length, -1)
            x = x + linear(mixed, False)
            x = x + linear(jax.nn.gelu(linear(normalised(x)), approximate=True))
        return linear(normalised(x), False).reshape(batch * length, -1)
