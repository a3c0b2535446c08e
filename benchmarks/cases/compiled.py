"""Compiled steps: recorded once by ``mg.compile`` and replayed, beside jax.jit and eager torch.

The column 'eager' is minigrad without a program.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from benchmarks.models import PROBLEMS
from benchmarks.models.mlp import Mlp
from benchmarks.registry import BACKWARD, Case, Target, faster, register, time_ratio

# ---- training steps ------------------------------------------------------------------------------

_TARGETS: dict[str, list[Target]] = {
    "MLP 4-": [faster(8, "jax"), faster(30, "torch")],
    "MLP 64-": [faster(2.5)],
    "MLP 784-": [faster(1.25)],
    "MLP 1024-": [faster(1.1)],
    "LeNet": [faster(2.2)],
    "GPT": [faster(1.8)],
}
_MORE = (Mlp((4, 16, 16, 3), 32, "Adam"), Mlp((64, 128, 10), 64, "SGD"))


def _compiled(build: Callable[..., Any]) -> Callable[..., Any]:
    """A builder whose call is compiled."""

    def builder(lib: Any, *inputs: Any) -> Callable[[], Any]:
        call: Callable[[], Any] = lib.xp.compile(build(lib, *inputs), fullgraph=True)
        return call

    return builder


for _problem in (*PROBLEMS.values(), *_MORE):
    _builders = {k: v for k, v in _problem.builders().items() if k != "numpy"}
    _builders |= {"minigrad": _compiled(_builders["minigrad"]), "eager": _builders["minigrad"]}
    register(
        Case(
            "compiled",
            f"{_problem.name}, compiled",
            _problem.inputs,
            _builders,
            flops=_problem.flops,
            quick=not _problem.name.startswith(("MLP 1024", "GPT")),
            tolerance=1e-4 if _problem.optimiser == "SGD" else 4e-3,
            targets=[
                t for start, ts in _TARGETS.items() if _problem.name.startswith(start) for t in ts
            ],
            note="minigrad: one recorded program; jax: one jitted step; torch: eager",
        )
    )

# ---- small models --------------------------------------------------------------------------------

_SMALL_RATE = 1e-2


def _line_loss(xp: Any, parameters: Any, x: Any, y: Any) -> Any:
    """The mean squared error of a line."""
    slope, start = parameters
    return ((slope * x + start - y) ** 2).mean()


def _series_loss(xp: Any, parameters: Any, x: Any, y: Any) -> Any:
    """The mean squared error of a recurrent model that follows each series by one number."""
    into, again, bias, out, skip, start = parameters
    h, loss = into * 0, 0.0
    for now, wanted in zip(x, y, strict=True):
        h = xp.tanh(now * into + h @ again + bias)
        loss = loss + ((h @ out + now * skip + start - wanted) ** 2).mean()
    return loss


def _small_inputs(shapes: list[tuple[int, ...]], size: tuple[int, ...], rng: Any) -> list[Any]:
    made = [0.5 * rng.standard_normal(shape) for shape in (size, size, *shapes)]
    return [np.asarray(x, dtype=np.float32) for x in made]


def _small_builders(
    loss_of: Callable[..., Any], steps: int | None
) -> dict[str, Callable[..., Callable[[], Any]]]:
    """Builders of a step of gradient descent. ``steps`` is the length of series."""

    def split(values: Any) -> Any:
        return values if steps is None else [values[k] for k in range(steps)]

    def eager(lib: Any, x: Any, y: Any, *given: Any) -> Callable[[], Any]:
        parameters = [lib.array(values, requires_grad=True) for values in given]
        optimiser = lib.optim.SGD(parameters, lr=_SMALL_RATE)
        x, y = split(lib.array(x)), split(lib.array(y))

        def step() -> Any:
            optimiser.zero_grad()
            loss = loss_of(lib.xp, parameters, x, y)
            loss.backward()
            optimiser.step()
            return (loss, *parameters)

        return step

    def jitted(lib: Any, x: Any, y: Any, *given: Any) -> Callable[[], Any]:
        jax, x, y = lib.xp, lib.array(x), lib.array(y)

        def moved(parameters: Any) -> Any:
            loss, gradients = jax.value_and_grad(
                lambda parameters: loss_of(jax.numpy, parameters, split(x), split(y))
            )(parameters)
            pairs = zip(parameters, gradients, strict=True)
            return loss, [p - _SMALL_RATE * g for p, g in pairs]

        compiled, parameters = jax.jit(moved), [lib.array(values) for values in given]

        def step() -> Any:
            nonlocal parameters
            loss, parameters = compiled(parameters)
            return (loss, *parameters)

        return step

    return {"minigrad": _compiled(eager), "eager": eager, "torch": eager, "jax": jitted}


_SMALL: list[tuple[str, Callable[..., Any], list[tuple[int, ...]], tuple[int, ...], int | None]] = [
    ("line of 2 parameters through 50 points, SGD", _line_loss, [(), ()], (50,), None),
    (
        "recurrent model of 20 parameters, 8 series of 20 steps, SGD",
        _series_loss,
        [(1, 3), (3, 3), (3,), (3, 1), (1,), (1,)],
        (20, 8, 1),
        20,
    ),
]
for _title, _loss, _shapes, _size_of, _steps in _SMALL:
    register(
        Case(
            "compiled",
            f"{_title}, compiled",
            partial(_small_inputs, _shapes, _size_of),
            _small_builders(_loss, _steps),
            tolerance=1e-4,
            targets=[faster(10, "torch")],
            note="minigrad: one recorded program; jax: one jitted step; torch: eager",
        )
    )

# ---- elementwise expressions ---------------------------------------------------------------------


def _expression(xp: Any, a: Any, b: Any, c: Any) -> Any:
    return xp.tanh(a * b + c) * a - b


def _eager_call(lib: Any, *inputs: Any) -> Callable[[], Any]:
    return partial(_expression, lib.xp, *[lib.array(x) for x in inputs])


def _replayed(lib: Any, *inputs: Any) -> Callable[[], Any]:
    function = lib.xp.compile(partial(_expression, lib.xp), fullgraph=True)
    return partial(function, *[lib.array(x) for x in inputs])


def _jitted(lib: Any, *inputs: Any) -> Callable[[], Any]:
    function = lib.xp.jit(partial(_expression, lib.xp.numpy))
    return partial(function, *[lib.array(x) for x in inputs])


def _three(size: int, rng: Any) -> list[np.ndarray]:
    return [rng.standard_normal(size, dtype=np.float32) for _ in range(3)]


for _power in (12, 16, 20, 24):
    register(
        Case(
            "compiled",
            f"tanh(a*b+c)*a-b of 2^{_power}, compiled",
            partial(_three, 1 << _power),
            {"minigrad": _replayed, "torch": _eager_call, "jax": _jitted, "eager": _eager_call},
            reads=12 << _power,
            writes=4 << _power,
            quick=_power < 20,
            targets=[faster(2)],
        )
    )


def _both_ways(name: str) -> dict[str, Callable[..., Callable[[], Any]]]:
    """Builders of a function and its gradient with the upstream gradient 1."""

    def step(lib: Any, x: Any) -> Any:
        y = getattr(lib.xp, name)(x)
        y.sum().backward()
        g, x.grad = x.grad, None
        return y.detach(), g

    def eager(lib: Any, values: Any) -> Callable[[], Any]:
        return partial(step, lib, lib.array(values, requires_grad=True))

    def replayed(lib: Any, values: Any) -> Callable[[], Any]:
        function = lib.xp.compile(partial(step, lib), fullgraph=True)
        return partial(function, lib.array(values, requires_grad=True))

    def jitted(lib: Any, values: Any) -> Callable[[], Any]:
        jax = lib.xp
        function = getattr(jax.nn if name == "relu" else jax.numpy, name)

        def loss(x: Any) -> Any:
            y = function(x)
            return y.sum(), y

        def both(x: Any) -> Any:
            (_, y), g = jax.value_and_grad(loss, has_aux=True)(x)
            return y, g

        return partial(jax.jit(both), lib.array(values))

    return {"minigrad": replayed, "eager": eager, "torch": eager, "jax": jitted}


for _name in ("log", "relu", "sqrt", "tanh"):
    register(
        Case(
            "compiled",
            f"{_name} of 2^20{BACKWARD}, compiled",
            lambda rng: [rng.uniform(0.5, 2.0, 1 << 20).astype(np.float32)],
            _both_ways(_name),
            reads=4 << 20,
            writes=8 << 20,
            quick=False,
            targets=[time_ratio(1.0)],
        )
    )

# ---- overhead ------------------------------------------------------------------------------------

CHAIN = 1000


def _sum_of_many(x: Any) -> Any:
    y = x
    for _ in range(CHAIN):
        y = y + x
    return y


def _square(x: Any) -> Any:
    return x**2 + 3 * x


def _gradient_of(function: Callable[[Any], Any]) -> dict[str, Callable[..., Callable[[], Any]]]:
    def step(x: Any) -> Any:
        y = function(x).sum()
        y.backward()
        g, x.grad = x.grad, None
        return y.detach(), g

    def eager(lib: Any, values: Any) -> Callable[[], Any]:
        return partial(step, lib.array(values, requires_grad=True))

    def replayed(lib: Any, values: Any) -> Callable[[], Any]:
        return partial(lib.xp.compile(step, fullgraph=True), lib.array(values, requires_grad=True))

    def jitted(lib: Any, values: Any) -> Callable[[], Any]:
        both = lib.xp.value_and_grad(lambda x: function(x).sum())
        return partial(lib.xp.jit(both), lib.array(values))

    return {"minigrad": replayed, "eager": eager, "torch": eager, "jax": jitted}


_OVERHEAD: list[tuple[str, int, Callable[[Any], Any], Target]] = [
    (f"{CHAIN} chained adds of 8 elements", 8, _sum_of_many, time_ratio(1.0, "jax")),
    ("x**2 + 3*x of one element", 1, _square, faster(8, "jax")),
]
for _title, _size, _function, _target in _OVERHEAD:
    register(
        Case(
            "compiled",
            f"{_title}{BACKWARD}, compiled",
            lambda rng, size=_size: [rng.standard_normal(size, dtype=np.float32)],
            _gradient_of(_function),
            targets=[_target],
        )
    )
