"""Layers on rows of features: linear, cross entropy, normalisation, dropout, embedding."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from benchmarks.cases.common import both_ways, eager_backward, plain
from benchmarks.registry import BACKWARD, Case, faster, register

TARGETS = [faster(1.2)]
EPSILON = 1e-5


def _upstream(rng: Any, *shape: int) -> np.ndarray:
    return np.asarray(rng.uniform(0.5, 1.5, shape), dtype=np.float32)


# ---- linear, bias and relu in one ----------------------------------------------------------------


def _linear_by_hand(g: Any, x: Any, w: Any, b: Any) -> Any:
    y = np.maximum(x @ w.T + b, 0)
    d = g * (y > 0)
    return y, d @ w, d.T @ x, d.sum(0)


def _linear(batch: int, fan_in: int, fan_out: int, quick: bool) -> None:
    def inputs(rng: Any) -> list[np.ndarray]:
        bound = fan_in**-0.5
        return [
            _upstream(rng, batch, fan_out),
            rng.standard_normal((batch, fan_in), dtype=np.float32),
            rng.uniform(-bound, bound, (fan_out, fan_in)).astype(np.float32),
            rng.uniform(-bound, bound, fan_out).astype(np.float32),
        ]

    def eager(lib: Any) -> Callable[..., Any]:
        linear, relu = lib.functional.linear, lib.functional.relu
        return lambda x, w, b: relu(linear(x, w, b))

    flops = 2.0 * batch * fan_in * fan_out
    both_ways(
        "nn",
        f"linear and relu {batch}x{fan_in} to {fan_out}",
        inputs,
        eager,
        lambda jax, x, w, b: jax.nn.relu(x @ w.T + b),
        lambda x, w, b: np.maximum(x @ w.T + b, 0),
        _linear_by_hand,
        {"flops": (flops, 3 * flops)},
        (quick, quick),
        targets=TARGETS,
    )


_linear(32, 64, 64, False)
_linear(128, 784, 256, True)
_linear(256, 1024, 1024, False)

# ---- cross entropy from logits -------------------------------------------------------------------


def _cross_entropy_by_hand(x: Any, labels: Any) -> Any:
    z = x - x.max(1, keepdims=True)
    return np.mean(np.log(np.exp(z).sum(1)) - z[np.arange(len(x)), labels])


def _cross_entropy_gradient(g: Any, x: Any, labels: Any) -> Any:
    rows = np.arange(len(x))
    z = x - x.max(1, keepdims=True)
    d = np.exp(z)
    total = d.sum(1, keepdims=True)
    loss = np.mean(np.log(total[:, 0]) - z[rows, labels])
    d *= g / (len(x) * total)
    d[rows, labels] -= g / len(x)
    return loss, d


def _cross_entropy_jax(jax: Any, x: Any, labels: Any) -> Any:
    chosen = jax.numpy.take_along_axis(x, labels[:, None], 1)[:, 0]
    return (jax.nn.logsumexp(x, 1) - chosen).mean()


def _cross_entropy(rows: int, classes: int, quick: bool) -> None:
    def inputs(rng: Any) -> list[np.ndarray]:
        logits = rng.standard_normal((rows, classes), dtype=np.float32)
        return [_upstream(rng), logits, rng.integers(0, classes, rows)]

    size = 4.0 * rows * classes
    both_ways(
        "nn",
        f"cross entropy {rows}x{classes}",
        inputs,
        lambda lib: lib.functional.cross_entropy,
        _cross_entropy_jax,
        _cross_entropy_by_hand,
        _cross_entropy_gradient,
        {"reads": (size, 2 * size), "writes": (0, size), "footprint": (size, 2 * size)},
        (quick, quick),
        targets=TARGETS,
    )


_cross_entropy(128, 1000, True)
_cross_entropy(1024, 50_000, False)

# ---- normalisation -------------------------------------------------------------------------------


def _scales(rng: Any, size: int) -> np.ndarray:
    return np.asarray(rng.uniform(0.5, 1.5, size), dtype=np.float32)


def _standardised(x: Any, axes: Any) -> tuple[Any, Any]:
    centred = x - x.mean(axes, keepdims=True)
    scale = 1 / np.sqrt(np.square(centred).mean(axes, keepdims=True) + x.dtype.type(EPSILON))
    return centred * scale, scale


def _standardised_jax(jax: Any, x: Any, axes: Any) -> Any:
    centred = x - x.mean(axes, keepdims=True)
    return centred * jax.lax.rsqrt((centred * centred).mean(axes, keepdims=True) + EPSILON)


def _through_standardised(d: Any, z: Any, scale: Any, axes: Any) -> Any:
    """The gradient of the input of a standardisation, from the gradient of its result."""
    return scale * (d - d.mean(axes, keepdims=True) - z * (d * z).mean(axes, keepdims=True))


def _affine_by_hand(axes: Any, kept: Any, shape: Any) -> tuple[Any, Any]:
    """Forward, and forward with backward, of ``w * standardised + b``. w, b have axes ``kept``."""

    def forward(x: Any, w: Any, b: Any) -> Any:
        return _standardised(x, axes)[0] * w.reshape(shape) + b.reshape(shape)

    def both(g: Any, x: Any, w: Any, b: Any) -> Any:
        z, scale = _standardised(x, axes)
        y = z * w.reshape(shape) + b.reshape(shape)
        dx = _through_standardised(g * w.reshape(shape), z, scale, axes)
        return y, dx, (g * z).sum(kept), g.sum(kept)

    return forward, both


def _traffic(size: float) -> dict[str, tuple[float, float]]:
    """The traffic of a layer that reads x for the result, and x and g for the gradient."""
    footprint = (2 * size, 4 * size)
    return {"reads": (size, 3 * size), "writes": (size, 2 * size), "footprint": footprint}


def _layer_norm(rows: int, features: int, quick: bool) -> None:
    def inputs(rng: Any) -> list[np.ndarray]:
        x = rng.standard_normal((rows, features), dtype=np.float32)
        return [_upstream(rng, rows, features), x, _scales(rng, features), _scales(rng, features)]

    def eager(lib: Any) -> Callable[..., Any]:
        norm = lib.functional.layer_norm
        return lambda x, w, b: norm(x, (features,), w, b, EPSILON)

    both_ways(
        "nn",
        f"layer_norm {rows}x{features}",
        inputs,
        eager,
        lambda jax, x, w, b: _standardised_jax(jax, x, -1) * w + b,
        *_affine_by_hand(-1, 0, (features,)),
        _traffic(4.0 * rows * features),
        (quick, quick),
        targets=TARGETS,
    )


def _rms_norm(rows: int, features: int, quick: bool) -> None:
    def inputs(rng: Any) -> list[np.ndarray]:
        x = rng.standard_normal((rows, features), dtype=np.float32)
        return [_upstream(rng, rows, features), x, _scales(rng, features)]

    def eager(lib: Any) -> Callable[..., Any]:
        norm = lib.functional.rms_norm
        return lambda x, w: norm(x, (features,), w, EPSILON)

    def scale_of(x: Any) -> Any:
        return 1 / np.sqrt(np.square(x).mean(-1, keepdims=True) + x.dtype.type(EPSILON))

    def both(g: Any, x: Any, w: Any) -> Any:
        scale = scale_of(x)
        z, d = x * scale, g * w
        return z * w, scale * (d - z * (d * z).mean(-1, keepdims=True)), (g * z).sum(0)

    def jax(jax: Any, x: Any, w: Any) -> Any:
        return x * jax.lax.rsqrt((x * x).mean(-1, keepdims=True) + EPSILON) * w

    both_ways(
        "nn",
        f"rms_norm {rows}x{features}",
        inputs,
        eager,
        jax,
        lambda x, w: x * scale_of(x) * w,
        both,
        _traffic(4.0 * rows * features),
        (quick, quick),
        targets=TARGETS,
    )


def _batch_norm(shape: tuple[int, ...], quick: bool) -> None:
    axes = (0, *range(2, len(shape)))
    channels = (1, shape[1], *[1] * (len(shape) - 2))

    def inputs(rng: Any) -> list[np.ndarray]:
        x = rng.standard_normal(shape, dtype=np.float32)
        return [_upstream(rng, *shape), x, _scales(rng, shape[1]), _scales(rng, shape[1])]

    def eager(lib: Any) -> Callable[..., Any]:
        norm = lib.functional.batch_norm
        return lambda x, w, b: norm(x, None, None, w, b, training=True, eps=EPSILON)

    def jax(jax: Any, x: Any, w: Any, b: Any) -> Any:
        return _standardised_jax(jax, x, axes) * w.reshape(channels) + b.reshape(channels)

    both_ways(
        "nn",
        f"batch_norm {'x'.join(map(str, shape))}",
        inputs,
        eager,
        jax,
        *_affine_by_hand(axes, axes, channels),
        _traffic(4.0 * float(np.prod(shape))),
        (quick, quick),
        images=len(shape) == 4,
        tolerance=2e-4,  # torch with the channels last adds a channel one by one
        targets=TARGETS,
        note="training, without running statistics",
    )


_layer_norm(1024, 128, True)
_layer_norm(4096, 768, False)
_rms_norm(1024, 128, True)
_rms_norm(4096, 768, False)
_batch_norm((256, 512), True)
_batch_norm((64, 64, 28, 28), False)

# ---- dropout: random, so only the means agree ----------------------------------------------------

_P = 0.1


def _dropout_numpy(backward: bool) -> Callable[..., Any]:
    def build(lib: Any, *inputs: Any) -> Callable[[], Any]:
        rng, (g, x) = np.random.default_rng(0), map(lib.array, inputs)

        def call() -> Any:
            mask = (rng.random(x.shape, dtype=np.float32) >= _P) * np.float32(1 / (1 - _P))
            return (x * mask, g * mask) if backward else x * mask

        return call

    return build


def _dropout_jax(backward: bool) -> Callable[..., Any]:
    def build(lib: Any, *inputs: Any) -> Callable[[], Any]:
        jax, (g, x) = lib.xp, map(lib.array, inputs)
        state = jax.random.key(0)

        def dropped(key: Any, x: Any) -> Any:
            kept = jax.random.bernoulli(key, np.float32(1 - _P), x.shape)
            return jax.numpy.where(kept, x / (1 - _P), 0)

        def step(state: Any, g: Any, x: Any) -> Any:
            state, key = jax.random.split(state)
            if not backward:
                return state, dropped(key, x)
            y, vjp = jax.vjp(partial(dropped, key), x)
            return state, y, *vjp(g)

        compiled = jax.jit(step)

        def call() -> Any:
            nonlocal state
            state, *found = compiled(state, g, x)
            return found

        return call

    return build


def _dropout_forward(lib: Any, g: Any, x: Any) -> Callable[[], Any]:
    return plain(lambda lib: partial(lib.functional.dropout, p=_P))(lib, x)


_dropout_both = eager_backward(lambda lib: partial(lib.functional.dropout, p=_P))
for _backward, _eager, _moved in ((False, _dropout_forward, 1), (True, _dropout_both, 2)):
    _case = Case(
        "nn",
        "dropout 2^20" + (BACKWARD if _backward else ""),
        lambda rng: [_upstream(rng, 2**20), _upstream(rng, 2**20)],
        {
            "minigrad": _eager,
            "numpy": _dropout_numpy(_backward),
            "torch": _eager,
            "jax": _dropout_jax(_backward),
        },
        reads=_moved * 2**22,
        writes=_moved * 2**22,
        tolerance=1e-2,
        targets=TARGETS,
        note="the means agree",
        compared=lambda _, results: [r.mean() for r in results],
    )
    register(_case)

# ---- embedding -----------------------------------------------------------------------------------


def _embedding_by_hand(g: Any, table: Any, indices: Any) -> Any:
    d = np.zeros_like(table)
    np.add.at(d, indices, g)
    return table[indices], d


def _embedding(words: int, features: int, batch: int, length: int, quick: bool) -> None:
    def inputs(rng: Any) -> list[np.ndarray]:
        table = rng.standard_normal((words, features), dtype=np.float32)
        indices = rng.integers(0, words, (batch, length))
        return [_upstream(rng, batch, length, features), table, indices]

    def eager(lib: Any) -> Callable[..., Any]:
        embedding = lib.functional.embedding
        return lambda table, indices: embedding(indices, table)

    taken, table = 4.0 * batch * length * features, 4.0 * words * features
    both_ways(
        "nn",
        f"embedding {batch}x{length} of {words}x{features}",
        inputs,
        eager,
        lambda jax, table, indices: table[indices],
        lambda table, indices: table[indices],
        _embedding_by_hand,
        {"reads": (taken, 2 * taken), "writes": (taken, taken + table)},
        (quick, quick),
        targets=TARGETS,
    )


_embedding(256, 128, 16, 64, True)
_embedding(10_000, 256, 64, 128, False)
