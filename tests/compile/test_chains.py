"""Chains of elementwise operations in recorded programs: the same bits as one by one."""

from __future__ import annotations

import numpy as np
import pytest

import minigrad as mg

UNARY = [
    "exp",
    "tanh",
    "sigmoid",
    "sin",
    "square",
    "abs",
    "neg",
    "relu",
    "sqrt",
    "log1p",
    "reciprocal",
    "erf",
    "cos",
]
BINARY = ["add", "sub", "mul", "div", "maximum", "atan2", "hypot", "logaddexp"]
SHAPES = [(), (1,), (7,), (64,), (3, 65), (5, 1, 33), (70, 513), (0, 4), (2, 40000)]


def expression(rng, leaves, depth):
    """A random expression: a function of the list of leaves, as text and as a closure."""
    if depth == 0 or rng.random() < 0.1:
        k = int(rng.integers(len(leaves) + 1))
        if k == len(leaves):
            number = float(rng.choice([0.5, -2.0, 3.0]))
            return lambda xs: number
        return lambda xs: xs[k]
    kind = rng.random()
    a = expression(rng, leaves, depth - 1)
    if kind < 0.45:
        name = str(rng.choice(UNARY))
        return lambda xs: getattr(mg, name)(mg.as_tensor(a(xs)) if name != "neg" else -a(xs))
    b = expression(rng, leaves, depth - 1)
    if kind < 0.85:
        name = str(rng.choice(BINARY))
        return lambda xs: getattr(mg, name)(xs[0] * 0 + a(xs), b(xs))
    if kind < 0.92:
        power = float(rng.choice([2.0, -1.0, 3.0, 0.5, 2.5]))
        return lambda xs: (xs[0] * 0 + a(xs)) ** power
    c = expression(rng, leaves, depth - 1)
    return lambda xs: mg.where(xs[0] * 0 + a(xs) > b(xs), xs[0] * 0 + b(xs), c(xs))


def same(a, b):
    """True for the same bits; the sign of a NaN does not count."""
    a, b = [np.where(np.isnan(x), np.nan, x) for x in (a.detach().numpy(), b.detach().numpy())]
    return a.shape == b.shape and a.dtype == b.dtype and a.tobytes() == b.tobytes()


@pytest.mark.parametrize("seed", range(36))
def test_random_expressions_forward_and_backward(seed):
    rng = np.random.default_rng(seed)
    shape = SHAPES[seed % len(SHAPES)]
    dtype = mg.float64 if seed % 4 == 3 else mg.float32
    shapes = [shape, shape, shape[-1:], (1,) * len(shape)]
    function = expression(rng, shapes, 5)

    def step(*xs):
        leaves = [x.detach().requires_grad_() for x in xs]
        y = mg.as_tensor(function(leaves))
        if y.requires_grad:
            y.sum().backward()
        return y.detach(), [leaf.grad for leaf in leaves]

    compiled = mg.compile(step, fullgraph=True)
    for _ in range(3):
        xs = [mg.tensor(rng.standard_normal(s), dtype=dtype) for s in shapes]
        (y, grads), (z, others) = step(*xs), compiled(*xs)
        assert same(y, z)
        assert [g is None for g in grads] == [g is None for g in others]
        assert all(same(g, h) for g, h in zip(grads, others, strict=True) if g is not None)
    assert compiled.recordings == 1
