"""Operations on small arrays, whose time is the libraries' overhead around their kernels."""

from __future__ import annotations

import operator
from functools import partial
from typing import Any

import numpy as np

from benchmarks.cases.common import by_hand, jax_backward, jitted, plain
from benchmarks.registry import Builder, Case, register, time_ratio

EIGHT = (8, 8)
CHAIN = 1000


def _two(rng: Any) -> list[np.ndarray]:
    return [rng.uniform(-1, 1, EIGHT).astype(np.float32) for _ in range(2)]


# ---- one operation -------------------------------------------------------------------------------


def _recorded_add(lib: Any, a: Any, b: Any) -> Any:
    return partial(operator.add, lib.array(a, requires_grad=True), lib.array(b, requires_grad=True))


_add = plain(lambda lib: operator.add)
_jax_add = jitted(lambda jax, a, b: a + b)

register(
    Case(
        "overhead",
        "add 8x8 recorded",
        _two,
        {"minigrad": _recorded_add, "numpy": _add, "torch": _recorded_add, "jax": _jax_add},
        targets=[time_ratio(0.4, "torch")],
        note="both inputs require grad; NumPy and jax have nothing to record",
    )
)
register(
    Case(
        "overhead",
        "add 8x8",
        _two,
        {"minigrad": _add, "numpy": _add, "torch": _add, "jax": _jax_add},
        note="no input requires grad",
    )
)

# ---- a tiny graph --------------------------------------------------------------------------------


def _tiny_eager(lib: Any, a: Any, b: Any) -> Any:
    a, b = lib.array(a, requires_grad=True), lib.array(b, requires_grad=True)

    def call() -> Any:
        a.grad = b.grad = None
        loss = (a * b + a).exp().sum()
        loss.backward()
        return loss, a.grad, b.grad

    return call


def _tiny_numpy(a: Any, b: Any) -> Any:
    y = np.exp(a * b + a)
    return y.sum(), y * b + y, y * a


def _tiny_jax(lib: Any, a: Any, b: Any) -> Any:
    def loss(a: Any, b: Any) -> Any:
        return lib.xp.numpy.exp(a * b + a).sum()

    def both(a: Any, b: Any) -> Any:
        value, grads = lib.xp.value_and_grad(loss, (0, 1))(a, b)
        return value, *grads

    return partial(lib.xp.jit(both), lib.array(a), lib.array(b))


register(
    Case(
        "overhead",
        "(a*b+a).exp().sum() 8x8, forward+backward",
        _two,
        {
            "minigrad": _tiny_eager,
            "numpy": by_hand(_tiny_numpy),
            "torch": _tiny_eager,
            "jax": _tiny_jax,
        },
        targets=[time_ratio(0.3, "torch")],
    )
)

# ---- the tutorial's first gradient ---------------------------------------------------------------


def _square_eager(lib: Any, x: Any) -> Any:
    x = lib.array(x, requires_grad=True)

    def call() -> Any:
        x.grad = None
        y = x**2 + 3 * x
        y.backward()
        return y, x.grad

    return call


def _square_jax(lib: Any, x: Any) -> Any:
    return partial(lib.xp.jit(lib.xp.value_and_grad(lambda x: x**2 + 3 * x)), lib.array(x))


register(
    Case(
        "overhead",
        "x**2 + 3*x of a scalar, forward+backward",
        lambda rng: [np.asarray(2.0, dtype=np.float32)],
        {
            "minigrad": _square_eager,
            "numpy": by_hand(lambda x: (x**2 + 3 * x, 2 * x + 3)),
            "torch": _square_eager,
            "jax": _square_jax,
        },
        targets=[time_ratio(0.4, "torch")],
    )
)

# ---- a long chain --------------------------------------------------------------------------------


def _chain_eager(lib: Any, g: Any, x: Any) -> Any:
    g, x = lib.array(g), lib.array(x, requires_grad=True)

    def call() -> Any:
        x.grad = None
        y = x
        for _ in range(CHAIN):
            y = y + x
        y.backward(g)
        return y, x.grad

    return call


def _chain_numpy(g: Any, x: Any) -> Any:
    y = x
    for _ in range(CHAIN):
        y = y + x
    dx = g.copy()  # from the first term
    for _ in range(CHAIN):
        dx += g  # one for each added x
    return y, dx


def _chain_of_adds(jax: Any, x: Any) -> Any:
    del jax
    y = x
    for _ in range(CHAIN):
        y = y + x
    return y


_chain: dict[str, Builder] = {
    "minigrad": _chain_eager,
    "numpy": by_hand(_chain_numpy),
    "torch": _chain_eager,
}
register(
    Case(
        "overhead",
        f"{CHAIN} chained adds of 8 elements, forward+backward",
        lambda rng: [np.ones(8, np.float32), rng.uniform(-1, 1, 8).astype(np.float32)],
        _chain | {"jax": jax_backward(_chain_of_adds)},
        targets=[time_ratio(0.35, "torch")],
    )
)

# ---- does an operation cost more in a long graph? ------------------------------------------------

LONG_CHAIN = 10**6


def _adds(length: int, times: int) -> Builder:
    """``times`` graphs of ``length`` adds, each forward and backward."""

    def build(lib: Any, g: Any, x: Any) -> Any:
        g, x = lib.array(g), lib.array(x, requires_grad=True)

        def call() -> Any:
            for _ in range(times):
                x.grad = None
                y = x
                for _ in range(length):
                    y = y + x
                y.backward(g)
            return x.grad / length

        return call

    return build


register(
    Case(
        "overhead",
        "10^6 chained adds of one element, forward+backward",
        lambda rng: [np.ones(1, np.float32), np.ones(1, np.float32)],
        {
            "minigrad": _adds(LONG_CHAIN, 1),
            "torch": _adds(LONG_CHAIN, 1),
            "short": _adds(CHAIN, LONG_CHAIN // CHAIN),
        },
        quick=False,
        tolerance=1e-2,
        targets=[time_ratio(1.1, "short"), time_ratio(0.35, "torch")],
        note="one graph of a million nodes, beside a thousand of a thousand ('short'); "
        "NumPy has no graph, and jax would compile for minutes",
    )
)
