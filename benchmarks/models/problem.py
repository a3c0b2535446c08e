"""Description of a model, and its training step for each library."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from benchmarks.libraries import fastest

__all__ = ["RATE", "RULES", "WAYS", "Problem", "Way", "fastest_way", "options_of", "zeros_for"]

RATE, DECAY, MOMENTUM, ALPHA = 1e-4, 1e-2, 0.9, 0.99
BETA1, BETA2, EPSILON = 0.9, 0.999, 1e-8


# ---- optimisers ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Rule:
    """An optimiser's arithmetic.

    ``jax(jnp, step, parameter, gradient, *state)`` returns the new parameter and state.
    ``numpy(step, parameter, gradient, *state)`` updates both in place.
    """

    jax: Callable[..., Any]
    numpy: Callable[..., None]
    arrays: int


def _sgd(jnp: Any, count: Any, p: Any, g: Any, m: Any) -> Any:
    m = MOMENTUM * m + g
    return p - RATE * m, m


def _sgd_in_place(count: int, p: Any, g: Any, m: Any) -> None:
    m *= MOMENTUM
    m += g
    p -= RATE * m


def _adam(jnp: Any, count: Any, p: Any, g: Any, m: Any, v: Any) -> Any:
    m = BETA1 * m + (1 - BETA1) * g
    v = BETA2 * v + (1 - BETA2) * (g * g)
    rate, scale = RATE / (1 - BETA1**count), (1 - BETA2**count) ** -0.5
    return p - rate * m / (jnp.sqrt(v) * scale + EPSILON), m, v


def _adam_in_place(count: int, p: Any, g: Any, m: Any, v: Any) -> None:
    m *= BETA1
    m += (1 - BETA1) * g
    v *= BETA2
    square = g * g
    square *= 1 - BETA2
    v += square
    root = np.sqrt(v, out=square)
    root *= (1 - BETA2**count) ** -0.5
    root += EPSILON
    moved = np.divide(m, root, out=root)
    moved *= RATE / (1 - BETA1**count)
    p -= moved


def _adamw(jnp: Any, count: Any, p: Any, g: Any, m: Any, v: Any) -> Any:
    return _adam(jnp, count, p * (1 - RATE * DECAY), g, m, v)


def _adamw_in_place(count: int, p: Any, g: Any, m: Any, v: Any) -> None:
    p *= 1 - RATE * DECAY
    _adam_in_place(count, p, g, m, v)


def _rmsprop(jnp: Any, count: Any, p: Any, g: Any, v: Any) -> Any:
    v = ALPHA * v + (1 - ALPHA) * (g * g)
    return p - RATE * g / (jnp.sqrt(v) + EPSILON), v


def _rmsprop_in_place(count: int, p: Any, g: Any, v: Any) -> None:
    v *= ALPHA
    square = g * g
    square *= 1 - ALPHA
    v += square
    root = np.sqrt(v, out=square)
    root += EPSILON
    moved = np.divide(g, root, out=root)
    moved *= RATE
    p -= moved


RULES = {
    "SGD": Rule(_sgd, _sgd_in_place, 1),
    "Adam": Rule(_adam, _adam_in_place, 2),
    "AdamW": Rule(_adamw, _adamw_in_place, 2),
    "RMSprop": Rule(_rmsprop, _rmsprop_in_place, 1),
}
Way = dict[str, bool]
WAYS: dict[str, Way] = {
    "optimiser by loop": {"foreach": False},
    "optimiser by foreach": {"foreach": True},
    "fused optimiser": {"fused": True},
}


def options_of(name: str) -> dict[str, float]:
    """The options for minigrad's and torch's optimiser."""
    extra = {"SGD": {"momentum": MOMENTUM}, "AdamW": {"weight_decay": DECAY}}
    return {"lr": RATE} | extra.get(name, {})


def fastest_way(make: Callable[[Way], Callable[[], Any]]) -> Callable[[], Any]:
    """torch's step by a loop, by foreach or fused: the fastest on this machine.

    ``make(way)`` makes the step, with ``way`` as the optimiser's arguments.
    """
    return fastest({name: partial(make, way) for name, way in WAYS.items()})


def zeros_for(name: str, weights: Sequence[Any]) -> list[list[np.ndarray]]:
    """The state of each weight before the first step."""
    return [[np.zeros_like(w) for _ in range(RULES[name].arrays)] for w in weights]


# ---- a model and its training step ---------------------------------------------------------------


class Problem(ABC):
    """A classifier with its batch and optimiser.

    A step is forward, cross entropy, backward and optimiser. It returns the loss and all weights.
    """

    name: str
    optimiser: str
    flops: float  # FLOPs of the matrix products and convolutions of a step

    @abstractmethod
    def tiny(self) -> Problem:
        """A tiny version of the problem, which loads the same code."""

    @abstractmethod
    def inputs(self, rng: Any) -> list[np.ndarray]:
        """The batch, the labels, then the weights in the order of the module's parameters."""

    @abstractmethod
    def module(self, lib: Any) -> Any:
        """minigrad's or torch's module, from the batch to logits by rows."""

    @abstractmethod
    def jax(self, jax: Any, weights: Sequence[Any], x: Any) -> Any:
        """The logits in jax."""

    def by_hand(self, x: Any, labels: Any, weights: list[Any]) -> tuple[Any, list[Any]]:
        """Loss and gradients in NumPy."""
        raise NotImplementedError

    def builders(self, torch_way: Way | None = None) -> dict[str, Callable[..., Callable[[], Any]]]:
        """Builders of the training step. torch's optimiser runs in this way, or in the fastest."""
        torch = self._torch if torch_way is None else partial(self._eager, way=torch_way)
        found = {"minigrad": self._eager, "torch": torch, "jax": self._jax}
        if type(self).by_hand is not Problem.by_hand:
            found["numpy"] = self._numpy
        return found

    def _torch(self, lib: Any, *inputs: Any) -> Callable[[], Any]:
        return fastest_way(lambda way: self._eager(lib, *inputs, way=way))

    def _eager(
        self, lib: Any, x: Any, labels: Any, *weights: Any, way: Way | None = None
    ) -> Callable[[], Any]:
        model = lib.placed(self.module(lib))
        parameters = list(model.parameters())
        with lib.xp.no_grad():
            for parameter, values in zip(parameters, weights, strict=True):
                parameter.copy_(lib.array(values))
        optimiser = getattr(lib.optim, self.optimiser)(
            parameters, **options_of(self.optimiser), **(way or {})
        )
        cross_entropy, x, labels = lib.functional.cross_entropy, lib.array(x), lib.array(labels)

        def step() -> Any:
            optimiser.zero_grad()
            loss = cross_entropy(model(x), labels)
            loss.backward()
            optimiser.step()
            return (loss, *parameters)

        return step

    def _numpy(self, lib: Any, x: Any, labels: Any, *given: Any) -> Callable[[], Any]:
        x, labels, weights = lib.array(x), lib.array(labels), [lib.array(w) for w in given]
        rule, states, count = RULES[self.optimiser].numpy, zeros_for(self.optimiser, given), 0

        def step() -> Any:
            nonlocal count
            count += 1
            loss, gradients = self.by_hand(x, labels, weights)
            for w, g, state in zip(weights, gradients, states, strict=True):
                rule(count, w, g, *state)
            return (loss, *weights)

        return step

    def _jax(self, lib: Any, x: Any, labels: Any, *given: Any) -> Callable[[], Any]:
        jax, x, labels = lib.xp, lib.array(x), lib.array(labels)
        jnp, rule = jax.numpy, RULES[self.optimiser].jax

        def loss_of(weights: Any, x: Any, labels: Any) -> Any:
            logits = self.jax(jax, weights, x)
            chosen = jnp.take_along_axis(logits, labels[:, None], 1)[:, 0]
            return (jax.nn.logsumexp(logits, 1) - chosen).mean()

        def moved(state: Any, x: Any, labels: Any) -> Any:
            weights, states, count = state
            count = count + 1
            loss, gradients = jax.value_and_grad(loss_of)(weights, x, labels)
            triples = zip(weights, gradients, states, strict=True)
            found = [rule(jnp, count, w, g, *kept) for w, g, kept in triples]
            return loss, ([w for w, *_ in found], [kept for _, *kept in found], count)

        compiled = jax.jit(moved, donate_argnums=0)
        zeros = zeros_for(self.optimiser, given)
        state: Any = (
            [lib.array(w) for w in given],
            [[lib.array(z) for z in kept] for kept in zeros],
            lib.array(np.float32(0)),
        )

        def step() -> Any:
            nonlocal state
            loss, state = compiled(state, x, labels)
            return (loss, *state[0])

        return step
