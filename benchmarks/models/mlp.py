"""A multilayer perceptron with relu between its layers."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from benchmarks.models.problem import Problem

__all__ = ["Mlp", "linear_weights"]


def linear_weights(rng: Any, fan_in: int, fan_out: int, bias: bool = True) -> list[np.ndarray]:
    """Weight and bias of a layer, drawn as in nn.Linear."""
    bound = fan_in**-0.5
    shapes = [(fan_out, fan_in), (fan_out,)] if bias else [(fan_out, fan_in)]
    return [rng.uniform(-bound, bound, shape).astype(np.float32) for shape in shapes]


class Mlp(Problem):
    """A multilayer perceptron with these layer sizes."""

    def __init__(self, sizes: tuple[int, ...], batch: int, optimiser: str) -> None:
        self.sizes, self.batch, self.optimiser = sizes, batch, optimiser
        self.name = f"MLP {'-'.join(map(str, sizes))}, batch {batch}, {optimiser}"
        products = [a * b for a, b in pairwise(sizes)]
        # The first layer needs no gradient of its input.
        self.flops = 2.0 * batch * (3 * sum(products) - products[0])

    def tiny(self) -> Mlp:
        return Mlp((2,) * len(self.sizes), 2, self.optimiser)

    def inputs(self, rng: Any) -> list[np.ndarray]:
        x = rng.standard_normal((self.batch, self.sizes[0]), dtype=np.float32)
        found = [x, rng.integers(0, self.sizes[-1], self.batch)]
        for fan_in, fan_out in pairwise(self.sizes):
            found += linear_weights(rng, fan_in, fan_out)
        return found

    def module(self, lib: Any) -> Any:
        layers: list[Any] = []
        for fan_in, fan_out in pairwise(self.sizes):
            layers += [lib.nn.Linear(fan_in, fan_out), lib.nn.ReLU()]
        return lib.nn.Sequential(*layers[:-1])

    def jax(self, jax: Any, weights: Sequence[Any], x: Any) -> Any:
        for i in range(0, len(weights), 2):
            x = x @ weights[i].T + weights[i + 1]
            if i + 2 < len(weights):
                x = jax.nn.relu(x)
        return x

    def by_hand(self, x: Any, labels: Any, weights: list[Any]) -> tuple[Any, list[Any]]:
        rows = np.arange(len(x))
        seen = []  # the input of each layer
        h = x
        for i in range(0, len(weights), 2):
            seen.append(h)
            h = h @ weights[i].T + weights[i + 1]
            if i + 2 < len(weights):
                h = np.maximum(h, 0)
        z = h - h.max(1, keepdims=True)
        d = np.exp(z)
        total = d.sum(1, keepdims=True)
        loss = np.mean(np.log(total[:, 0]) - z[rows, labels])
        d /= total
        d[rows, labels] -= 1
        d /= len(x)
        gradients: list[Any] = [None] * len(weights)
        for i in range(len(weights) - 2, -1, -2):
            h = seen[i // 2]
            gradients[i], gradients[i + 1] = d.T @ h, d.sum(0)
            if i:
                d = d @ weights[i] * (h > 0)
        return loss, gradients
