"""One optimiser step over 20 parameters with gradients. torch uses its fastest implementation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.models.problem import RULES, Way, fastest_way, options_of, zeros_for
from benchmarks.registry import Case, faster, register

_SHAPES = [(256, 256), (256,)] * 10


def _inputs(rng: Any) -> list[np.ndarray]:
    """Parameters, then their gradients."""
    return [rng.uniform(0.5, 1.5, shape).astype(np.float32) for shape in (*_SHAPES, *_SHAPES)]


def _step_of(lib: Any, name: str, values: Any, way: Way | None = None) -> Callable[[], Any]:
    half = len(values) // 2
    parameters = [lib.array(v, requires_grad=True) for v in values[:half]]
    for p, gradient in zip(parameters, values[half:], strict=True):
        p.grad = lib.array(gradient)
    optimiser = getattr(lib.optim, name)(parameters, **options_of(name), **(way or {}))

    def step() -> Any:
        optimiser.step()
        return parameters

    return step


def _minigrad(name: str) -> Callable[..., Any]:
    return lambda lib, *values: _step_of(lib, name, values)


def _torch(name: str) -> Callable[..., Any]:
    return lambda lib, *values: fastest_way(lambda way: _step_of(lib, name, values, way))


def _numpy(name: str) -> Callable[..., Any]:
    rule = RULES[name].numpy

    def build(lib: Any, *values: Any) -> Callable[[], Any]:
        half, count = len(values) // 2, 0
        gradients = [lib.array(v) for v in values[half:]]
        weights, states = [lib.array(p) for p in values[:half]], zeros_for(name, values[:half])

        def step() -> Any:
            nonlocal count
            count += 1
            for w, g, state in zip(weights, gradients, states, strict=True):
                rule(count, w, g, *state)
            return weights

        return step

    return build


def _jax(name: str) -> Callable[..., Any]:
    rule = RULES[name].jax

    def build(lib: Any, *values: Any) -> Callable[[], Any]:
        jax, half = lib.xp, len(values) // 2
        gradients = [lib.array(v) for v in values[half:]]
        state: Any = (
            [lib.array(p) for p in values[:half]],
            [[lib.array(z) for z in kept] for kept in zeros_for(name, values[:half])],
            lib.array(np.float32(0)),
        )

        def moved(state: Any, gradients: Any) -> Any:
            weights, states, count = state
            count = count + 1
            triples = zip(weights, gradients, states, strict=True)
            found = [rule(jax.numpy, count, w, g, *kept) for w, g, kept in triples]
            return [w for w, *_ in found], [kept for _, *kept in found], count

        compiled = jax.jit(moved, donate_argnums=0)

        def step() -> Any:
            nonlocal state
            state = compiled(state, gradients)
            return state[0]

        return step

    return build


def _exists(name: str) -> bool:
    import minigrad

    return hasattr(minigrad.optim, name)


_SIZE = 4.0 * sum(int(np.prod(shape)) for shape in _SHAPES)
for _name, _rule in RULES.items():
    if not _exists(_name):
        continue
    _case = Case(
        "nn",
        f"{_name} step, 20 parameters",
        _inputs,
        {
            "minigrad": _minigrad(_name),
            "numpy": _numpy(_name),
            "torch": _torch(_name),
            "jax": _jax(_name),
        },
        reads=(2 + _rule.arrays) * _SIZE,
        writes=(1 + _rule.arrays) * _SIZE,
        footprint=(2 + _rule.arrays) * _SIZE,
        in_place=True,
        targets=[faster(1.2)],
        note="torch: the fastest of loop, foreach and fused; NumPy in place",
    )
    register(_case)
