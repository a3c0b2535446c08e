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


LINES = [(5,), (64,), (3, 7), (1, 1), (2, 3, 129), (300, 500), (8192,), (4, 8193), (0, 4)]
ENDS = {
    "sum of all": lambda y: y.sum(),
    "mean of rows": lambda y: y.mean(-1),
    "largest, kept axes": lambda y: y.amax(-1, keepdim=True),
    "least of all": lambda y: y.amin() if y.numel() else y,
    "sum of columns": lambda y: y.sum(0),
    "of terms that are used again": lambda y: y / y.sum(-1, keepdim=True),
    "two of the same terms": lambda y: y.sum(-1) + y.mean(-1),
    "of many axes": lambda y: y.sum(tuple(range(y.ndim))),
}


@pytest.mark.parametrize("dtype", [mg.float32, mg.float64])
@pytest.mark.parametrize("end", ENDS)
def test_reductions_at_the_end_of_a_chain(end, dtype):
    rng = np.random.default_rng(0)
    for shape in LINES:
        if end == "largest, kept axes" and not shape[-1]:
            continue
        f = mg.compile(lambda x, w: ENDS[end]((x * w + 1) ** 2), fullgraph=True)
        for _ in range(2):
            x, w = [mg.tensor(rng.standard_normal(s), dtype=dtype) for s in (shape, shape[-1:])]
            assert same(f(x, w), ENDS[end]((x * w + 1) ** 2)), shape


def test_a_reduction_over_the_last_axes_ends_a_chain_that_nobody_else_reads():
    def kernels(f, *xs):
        f = mg.compile(f)
        f(*xs)
        return f.explain().programs[0].kernels

    x = mg.ones(6, 5)
    assert kernels(lambda x: (x * x).sum(-1), x) == {"chain_reduce": 1}
    assert kernels(lambda x: x.exp().mean(), x) == {"chain_reduce": 1}
    assert "chain_reduce" not in kernels(lambda x: (x * x).sum(0), x)
    assert "chain_reduce" not in kernels(lambda x: (lambda y: (y, y.sum()))(x.exp()), x)
    assert "chain_reduce" not in kernels(lambda x: (x > 0).sum(), x)
    assert "chain_reduce" not in kernels(lambda x: (x.exp() + 1).sum(-1), mg.ones(6, 1))


def test_a_nan_and_an_infinity_reach_the_reduction():
    x = mg.tensor([[1.0, float("nan")], [float("inf"), 2.0], [-float("inf"), float("inf")]])
    for end in (mg.sum, mg.amax, mg.amin, mg.mean):
        f = mg.compile(lambda x, end=end: end(x * 2 + 1, -1))
        f(x)
        assert same(f(x), end(x * 2 + 1, -1))
