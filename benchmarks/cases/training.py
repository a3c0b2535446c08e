"""A whole training step of a small classifier: forward, loss, backward and optimiser.

All libraries start from the same weights and see the same batch in every step. What is checked are
the loss and all weights after the first step.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.registry import Case, register, time_ratio

SGD_RATE, ADAM_RATE = 0.01, 1e-4
BETA1, BETA2, EPSILON = 0.9, 0.999, 1e-8


@dataclass(frozen=True)
class _Problem:
    sizes: tuple[int, ...]
    batch: int
    optimiser: str  # SGD or Adam

    def inputs(self, rng: Any) -> list[np.ndarray]:
        """The batch, its labels, then weight and bias of each layer as nn.Linear has them."""
        x = rng.standard_normal((self.batch, self.sizes[0]), dtype=np.float32)
        found = [x, rng.integers(0, self.sizes[-1], self.batch)]
        for fan_in, fan_out in zip(self.sizes, self.sizes[1:], strict=False):
            bound = fan_in**-0.5
            found.append(rng.uniform(-bound, bound, (fan_out, fan_in)).astype(np.float32))
            found.append(rng.uniform(-bound, bound, fan_out).astype(np.float32))
        return found

    @property
    def name(self) -> str:
        """For the table."""
        return f"MLP {'-'.join(map(str, self.sizes))}, batch {self.batch}, {self.optimiser}"

    @property
    def flops(self) -> float:
        """Of the matrix products; the first layer needs no gradient of its input."""
        products = [a * b for a, b in zip(self.sizes, self.sizes[1:], strict=False)]
        return 2.0 * self.batch * (3 * sum(products) - products[0])


# ---- minigrad and torch --------------------------------------------------------------------------


def _eager(problem: _Problem) -> Callable[..., Any]:
    def build(lib: Any, x: Any, labels: Any, *weights: Any) -> Any:
        nn = importlib.import_module(f"{lib.name}.nn")
        functional = importlib.import_module(f"{lib.name}.nn.functional")
        optim = importlib.import_module(f"{lib.name}.optim")
        layers: list[Any] = []
        for i in range(0, len(weights), 2):
            linear = nn.Linear(weights[i].shape[1], weights[i].shape[0])
            with lib.xp.no_grad():
                linear.weight.copy_(lib.array(weights[i]))
                linear.bias.copy_(lib.array(weights[i + 1]))
            layers += [linear, nn.ReLU()]
        model = nn.Sequential(*layers[:-1])
        parameters = list(model.parameters())
        if problem.optimiser == "SGD":
            optimiser = optim.SGD(parameters, lr=SGD_RATE)
        else:
            optimiser = optim.Adam(parameters, lr=ADAM_RATE)
        x, labels = lib.array(x), lib.array(labels)

        def step() -> Any:
            optimiser.zero_grad()
            loss = functional.cross_entropy(model(x), labels)
            loss.backward()
            optimiser.step()
            return (loss, *parameters)

        return step

    return build


# ---- NumPy by hand -------------------------------------------------------------------------------


def _numpy_gradients(x: Any, labels: Any, weights: list[Any]) -> tuple[Any, list[Any]]:
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


def _numpy(problem: _Problem) -> Callable[..., Any]:
    def build(lib: Any, x: Any, labels: Any, *given: Any) -> Any:
        x, labels = lib.array(x), lib.array(labels)
        weights = [lib.array(w) for w in given]
        first = [np.zeros_like(w) for w in weights]
        second = [np.zeros_like(w) for w in weights]
        count = 0

        def sgd() -> Any:
            loss, gradients = _numpy_gradients(x, labels, weights)
            for w, g in zip(weights, gradients, strict=True):
                w -= SGD_RATE * g
            return (loss, *weights)

        def adam() -> Any:
            nonlocal count
            count += 1
            loss, gradients = _numpy_gradients(x, labels, weights)
            rate, scale = ADAM_RATE / (1 - BETA1**count), (1 - BETA2**count) ** -0.5
            for w, g, m, v in zip(weights, gradients, first, second, strict=True):
                m *= BETA1
                m += (1 - BETA1) * g
                v *= BETA2
                v += (1 - BETA2) * g * g
                w -= rate * m / (np.sqrt(v) * scale + EPSILON)
            return (loss, *weights)

        return sgd if problem.optimiser == "SGD" else adam

    return build


# ---- jax -----------------------------------------------------------------------------------------


def _jax(problem: _Problem) -> Callable[..., Any]:
    def build(lib: Any, x: Any, labels: Any, *given: Any) -> Any:
        jax, jnp = lib.xp, lib.xp.numpy
        x, labels = lib.array(x), lib.array(labels)

        def loss_of(weights: Any) -> Any:
            h = x
            for i in range(0, len(weights), 2):
                h = h @ weights[i].T + weights[i + 1]
                if i + 2 < len(weights):
                    h = jnp.maximum(h, 0)
            rows = jnp.arange(len(h))
            return -jax.nn.log_softmax(h)[rows, labels].mean()

        def sgd(state: Any) -> Any:
            weights, _, _, count = state
            loss, gradients = jax.value_and_grad(loss_of)(weights)
            moved = [w - SGD_RATE * g for w, g in zip(weights, gradients, strict=True)]
            return loss, (moved, [], [], count)

        def adam(state: Any) -> Any:
            weights, first, second, count = state
            loss, gradients = jax.value_and_grad(loss_of)(weights)
            count = count + 1
            rate, scale = ADAM_RATE / (1 - BETA1**count), (1 - BETA2**count) ** -0.5
            first = [BETA1 * m + (1 - BETA1) * g for m, g in zip(first, gradients, strict=True)]
            second = [
                BETA2 * v + (1 - BETA2) * g * g for v, g in zip(second, gradients, strict=True)
            ]
            moved = [
                w - rate * m / (jnp.sqrt(v) * scale + EPSILON)
                for w, m, v in zip(weights, first, second, strict=True)
            ]
            return loss, (moved, first, second, count)

        is_sgd = problem.optimiser == "SGD"
        compiled = jax.jit(sgd if is_sgd else adam, donate_argnums=0)
        moments = [[] if is_sgd else [lib.array(np.zeros_like(w)) for w in given] for _ in range(2)]
        state = ([lib.array(w) for w in given], *moments, lib.array(np.float32(0)))

        def step() -> Any:
            nonlocal state
            loss, state = compiled(state)
            return (loss, *state[0])

        return step

    return build


# ---- the cases -----------------------------------------------------------------------------------

for _problem in (
    _Problem((64, 128, 10), 64, "SGD"),
    _Problem((784, 256, 128, 10), 128, "Adam"),
):
    register(
        Case(
            "training",
            _problem.name,
            _problem.inputs,
            {
                "minigrad": _eager(_problem),
                "numpy": _numpy(_problem),
                "torch": _eager(_problem),
                "jax": _jax(_problem),
            },
            flops=_problem.flops,
            # The first step of Adam has the size of the rate whatever the gradient's: where that is
            # 0 but for rounding, its sign is arbitrary.
            tolerance=1e-4 if _problem.optimiser == "SGD" else 4e-3,
            targets=[time_ratio(1.0, "torch")],
        )
    )
