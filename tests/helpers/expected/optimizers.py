"""References of optimizers in NumPy, step by step, and of learning rates in closed form."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Array = Any
State = dict[str, Any]


@dataclass(frozen=True)
class Method:
    """Protocol: the values after step ``t`` from the values before, the gradient and the state.

    The rate is 0.1. The options are those of the optimizer.
    """

    step: Callable[..., Array]
    options: dict[str, Any] = field(default_factory=dict)


def sgd(
    p: Array,
    g: Array,
    s: State,
    t: int,
    lr: float = 0.1,
    momentum: float = 0.0,
    dampening: float = 0.0,
    weight_decay: float = 0.0,
    nesterov: bool = False,
) -> Array:
    """Sutskever et al. 2013, in PyTorch's form."""
    d = g + weight_decay * p
    if momentum:
        s["v"] = momentum * s["v"] + (1 - dampening) * d if "v" in s else d
        d = d + momentum * s["v"] if nesterov else s["v"]
    return p - lr * d


def adam(
    p: Array,
    g: Array,
    s: State,
    t: int,
    lr: float = 0.1,
    betas: tuple[float, float] = (0.9, 0.999),
    eps: float = 1e-8,
    weight_decay: float = 0.0,
    amsgrad: bool = False,
    decoupled: bool = False,
) -> Array:
    """Kingma and Ba 2015. Decoupled weight decay: Loshchilov and Hutter 2019."""
    if decoupled:
        p = p * (1 - lr * weight_decay)
    else:
        g = g + weight_decay * p
    s["m"] = betas[0] * s.get("m", 0) + (1 - betas[0]) * g
    s["v"] = betas[1] * s.get("v", 0) + (1 - betas[1]) * g * g
    s["largest"] = np.maximum(s.get("largest", 0), s["v"])
    second = (s["largest"] if amsgrad else s["v"]) / (1 - betas[1] ** t)
    return p - lr * s["m"] / (1 - betas[0] ** t) / (np.sqrt(second) + eps)


def adamw(*args: Any, **options: Any) -> Array:
    """Like :func:`adam`, with decoupled weight decay."""
    return adam(*args, **options, decoupled=True)


def rmsprop(
    p: Array,
    g: Array,
    s: State,
    t: int,
    lr: float = 0.1,
    alpha: float = 0.99,
    eps: float = 1e-8,
    weight_decay: float = 0.0,
    momentum: float = 0.0,
    centered: bool = False,
) -> Array:
    """Hinton's lecture 6 of 2012; centred by Graves 2013."""
    d = g + weight_decay * p
    s["square"] = alpha * s.get("square", 0) + (1 - alpha) * d * d
    s["mean"] = alpha * s.get("mean", 0) + (1 - alpha) * d
    variance = s["square"] - s["mean"] ** 2 if centered else s["square"]
    s["v"] = momentum * s.get("v", 0) + d / (np.sqrt(variance) + eps)
    return p - lr * s["v"]


def _by_adagrad(p: Array, g: Array, s: State, t: int) -> Array:
    s["sum"] = s.get("sum", 0.25) + g * g
    return p - 0.1 / (1 + (t - 1) * 0.5) * g / (np.sqrt(s["sum"]) + 1e-10)


def _by_adadelta(p: Array, g: Array, s: State, t: int) -> Array:
    s["v"] = 0.9 * s.get("v", 0) + 0.1 * g * g
    step = np.sqrt(s.get("d", 0) + 1e-6) / np.sqrt(s["v"] + 1e-6) * g
    s["d"] = 0.9 * s.get("d", 0) + 0.1 * step * step
    return p - 0.1 * step


def _by_adafactor(p: Array, g: Array, s: State, t: int) -> Array:
    share = t**-0.8
    rms = np.sqrt(np.mean(p * p))
    s["row"] = (1 - share) * s.get("row", 0) + share * np.mean(g * g, axis=-1, keepdims=True)
    s["col"] = (1 - share) * s.get("col", 0) + share * np.mean(g * g, axis=-2, keepdims=True)
    step = g / np.sqrt(s["row"] @ s["col"] / np.mean(s["row"], axis=-2, keepdims=True))
    step = step / max(1, np.sqrt(np.mean(step * step)))
    return p - max(1e-3, rms) * min(0.1, t**-0.5) * step


def _by_adamax(p: Array, g: Array, s: State, t: int) -> Array:
    s["m"] = 0.9 * s.get("m", 0) + 0.1 * g
    s["u"] = np.maximum(0.999 * s.get("u", 0), np.abs(g) + 1e-8)
    return p - 0.1 / (1 - 0.9**t) * s["m"] / s["u"]


def _by_asgd(p: Array, g: Array, s: State, t: int) -> Array:
    eta = 0.1 / (1 + 0.5 * 0.1 * (t - 1)) ** 0.75
    return p - eta * (0.5 * p + g)


def _moments(g: Array, s: State) -> Any:
    s["m"] = 0.9 * s.get("m", 0) + 0.1 * g
    s["v"] = 0.999 * s.get("v", 0) + 0.001 * g * g
    return s["m"], s["v"]


def _by_nadam(p: Array, g: Array, s: State, t: int) -> Array:
    m, v = _moments(g, s)
    now, after = (0.9 * (1 - 0.5 * 0.96 ** (k * 0.004)) for k in (t, t + 1))
    s["product"] = s.get("product", 1) * now
    mean = after * m / (1 - s["product"] * after) + (1 - now) * g / (1 - s["product"])
    return p - 0.1 * mean / (np.sqrt(v / (1 - 0.999**t)) + 1e-8)


def _by_radam(p: Array, g: Array, s: State, t: int) -> Array:
    m, _ = _moments(g, s)
    return p - 0.1 * m / (1 - 0.9**t)  # rectification begins with the sixth step


def _by_sparse_adam(p: Array, g: Array, s: State, t: int) -> Array:
    m, v = _moments(g, s)
    return p - 0.1 * np.sqrt(1 - 0.999**t) / (1 - 0.9**t) * m / (np.sqrt(v) + 1e-8)


def _by_lion(p: Array, g: Array, s: State, t: int) -> Array:
    m = s.get("m", 0)
    s["m"] = 0.99 * m + 0.01 * g
    return p * (1 - 0.1 * 0.2) - 0.1 * np.sign(0.9 * m + 0.1 * g)


def _by_rprop(p: Array, g: Array, s: State, t: int) -> Array:
    turned = s.get("g", 0) * g
    s["size"] = s.get("size", 0.1) * np.select([turned > 0, turned < 0], [1.2, 0.5], 1.0)
    s["g"] = np.where(turned < 0, 0, g)
    return p - s["size"] * np.sign(s["g"])


def _by_muon(p: Array, g: Array, s: State, t: int) -> Array:
    s["m"] = 0.95 * s.get("m", 0) + 0.05 * g
    x = 0.05 * g + 0.95 * s["m"]
    x = x / np.linalg.norm(x)
    for _ in range(5):
        gram = x @ x.T
        x = 3.4445 * x - 4.775 * gram @ x + 2.0315 * gram @ gram @ x
    rows, columns = p.shape
    return p * (1 - 0.1 * 0.1) - 0.1 * np.sqrt(max(1, rows / columns)) * x


def lbfgs(x: Array, gradient: Callable[[Array], Array], lr: float, iterations: int) -> Array:
    """L-BFGS: Nocedal and Wright 2006, algorithm 7.4, with steps of ``lr`` and all pairs kept.

    The first step is shortened to the length ``lr`` in the 1-norm.
    """
    pairs: list[tuple[Array, Array]] = []
    g = gradient(x)
    for k in range(iterations):
        q, shares = g, []
        for s, y in reversed(pairs):
            shares.append(s @ q / (y @ s))
            q = q - shares[-1] * y
        if pairs:
            s, y = pairs[-1]
            q = q * (s @ y) / (y @ y)
        for (s, y), share in zip(pairs, reversed(shares), strict=True):
            q = q + s * (share - y @ q / (y @ s))
        step = -lr * q * (1 if k else min(1.0, 1 / abs(g).sum()))
        after = gradient(x + step)
        pairs.append((step, after - g))
        x, g = x + step, after
    return x


def _with(step: Callable[..., Array], **options: Any) -> Method:
    """A formula with some of its options set."""
    return Method(lambda *args: step(*args, **options), options)


OPTIMIZERS: dict[str, Method] = {
    "SGD": _with(sgd, momentum=0.9, nesterov=True, weight_decay=0.1),
    "Adam": _with(adam, weight_decay=0.1),
    "AdamW": _with(adamw, weight_decay=0.1),
    "RMSprop": _with(rmsprop, momentum=0.9, centered=True),
    "Adagrad": Method(_by_adagrad, {"initial_accumulator_value": 0.25, "lr_decay": 0.5}),
    "Adadelta": Method(_by_adadelta),
    "Adafactor": Method(_by_adafactor),
    "Adamax": Method(_by_adamax),
    "ASGD": Method(_by_asgd, {"lambd": 0.5}),
    "NAdam": Method(_by_nadam),
    "RAdam": Method(_by_radam),
    "SparseAdam": Method(_by_sparse_adam),
    "Lion": Method(_by_lion, {"weight_decay": 0.2}),
    "Rprop": Method(_by_rprop),
    "Muon": Method(_by_muon),
}

# ---- learning rates ------------------------------------------------------------------------------

RATE = 0.5  # the base rate


def _cosine(start: float, end: float, share: float) -> float:
    return end + (start - end) * (1 + math.cos(math.pi * share)) / 2


def _one_cycle(t: int) -> float:
    """Up to 1 in the first 30 % of 20 steps, then down to a ten-thousandth of the start, 0.04."""
    up = 0.3 * 20 - 1
    return _cosine(0.04, 1.0, t / up) if t <= up else _cosine(1.0, 4e-6, (t - up) / (19 - up))


def _cyclic(t: int) -> float:
    """Up from 0.1 to 0.9 in four steps, and down in four."""
    return 0.1 + 0.8 * (1 - abs(t % 8 - 4) / 4)


def _restarts(t: int) -> float:
    """Periods of 3, 6, 12, ... steps, each from the base rate down to 0.01."""
    start, period = 0, 3
    while t >= start + period:
        start, period = start + period, 2 * period
    return _cosine(RATE, 0.01, (t - start) / period)


def _plateau(t: int) -> float:
    """The metric is 1 at each step. After the first, each third step halves the rate."""
    return RATE * 0.5 ** (max(t - 1, 0) // 3)


# For each schedule: a function that makes it from the module and an optimizer, and the rate at step
# t.
SCHEDULES: dict[str, tuple[Callable[[Any, Any], Any], Callable[[int], float]]] = {
    "LambdaLR": (lambda s, o: s.LambdaLR(o, lambda t: 1 / (1 + t)), lambda t: RATE / (1 + t)),
    "MultiplicativeLR": (
        lambda s, o: s.MultiplicativeLR(o, lambda t: t / (t + 1)),
        lambda t: RATE / (t + 1),
    ),
    "StepLR": (lambda s, o: s.StepLR(o, 3, 0.5), lambda t: RATE * 0.5 ** (t // 3)),
    "MultiStepLR": (
        lambda s, o: s.MultiStepLR(o, [2, 5], 0.1),
        lambda t: RATE * 0.1 ** ((t >= 2) + (t >= 5)),
    ),
    "ConstantLR": (
        lambda s, o: s.ConstantLR(o, 0.25, 4),
        lambda t: RATE * (0.25 if t < 4 else 1),
    ),
    "LinearLR": (
        lambda s, o: s.LinearLR(o, 0.2, 0.8, 6),
        lambda t: RATE * (0.2 + 0.6 * min(t, 6) / 6),
    ),
    "ExponentialLR": (lambda s, o: s.ExponentialLR(o, 0.9), lambda t: RATE * 0.9**t),
    "PolynomialLR": (
        lambda s, o: s.PolynomialLR(o, 8, 2.0),
        lambda t: RATE * max(0.0, 1 - t / 8) ** 2,
    ),
    "CosineAnnealingLR": (
        lambda s, o: s.CosineAnnealingLR(o, 12, 0.01),
        lambda t: _cosine(RATE, 0.01, t / 12),
    ),
    "CosineAnnealingWarmRestarts": (
        lambda s, o: s.CosineAnnealingWarmRestarts(o, 3, 2, 0.01),
        _restarts,
    ),
    "OneCycleLR": (lambda s, o: s.OneCycleLR(o, 1.0, total_steps=20), _one_cycle),
    "CyclicLR": (
        lambda s, o: s.CyclicLR(o, 0.1, 0.9, step_size_up=4, cycle_momentum=False),
        _cyclic,
    ),
    "ChainedScheduler": (
        lambda s, o: s.ChainedScheduler([s.ConstantLR(o, 0.5, 3), s.ExponentialLR(o, 0.9)]),
        lambda t: RATE * 0.9**t * (0.5 if t < 3 else 1),
    ),
    "SequentialLR": (
        lambda s, o: s.SequentialLR(o, [s.ConstantLR(o, 0.1, 9), s.ExponentialLR(o, 0.9)], [4]),
        lambda t: RATE * (0.1 if t < 4 else 0.9 ** (t - 4)),
    ),
    "ReduceLROnPlateau": (
        lambda s, o: s.ReduceLROnPlateau(o, factor=0.5, patience=2),
        _plateau,
    ),
}
