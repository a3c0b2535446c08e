"""Second derivatives where a first one jumps are those of the first gradient that was computed.

At a kink a first gradient is a choice. Both paths make the same one, and the choice is linear in
the upstream gradient. The second derivatives of several inputs are symmetric. By one input the
second derivative is that of one of the two sides, or 0.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import minigrad as mg
import minigrad.nn.functional as F


def unreduced(loss, **options):
    return lambda a, b: loss(a, b, reduction="none", **options)


ONE = {
    "relu": (F.relu, [0.0]),
    "relu6": (F.relu6, [0.0, 6.0]),
    "leaky_relu": (lambda x: F.leaky_relu(x, 0.3), [0.0]),
    "rrelu": (lambda x: F.rrelu(x, 0.2, 0.4), [0.0]),
    "elu": (lambda x: F.elu(x, 0.7), [0.0]),
    "celu": (lambda x: F.celu(x, 1.7), [0.0]),
    "selu": (F.selu, [0.0]),
    "hardtanh": (lambda x: F.hardtanh(x, -1.5, 0.5), [-1.5, 0.5]),
    "hardsigmoid": (F.hardsigmoid, [-3.0, 3.0]),
    "hardswish": (F.hardswish, [-3.0, 3.0]),
    "hardshrink": (lambda x: F.hardshrink(x, 0.5), [-0.5, 0.5]),
    "softshrink": (lambda x: F.softshrink(x, 0.5), [-0.5, 0.5]),
    "softsign": (F.softsign, [0.0]),
    "softplus": (lambda x: F.softplus(x, 1.5, 3.0), [2.0]),
    "threshold": (lambda x: F.threshold(x, 0.5, -1.0), [0.5]),
    "abs": (mg.abs, [0.0]),
    "clamp": (lambda x: mg.clamp(x, -1.0, 2.0), [-1.0, 2.0]),
    "crossed clamp": (lambda x: mg.clamp(x, 2.0, 1.0), [1.0, 1.5, 2.0]),
    "abs of a square": (lambda x: x * x.abs(), [0.0]),
}
TWO = {
    "prelu": (lambda x, w: F.prelu(x, w), [(0.0, 0.25), (-0.0, 0.25), (0.0, 0.0)]),
    "maximum": (mg.maximum, [(1.5, 1.5), (0.0, -0.0)]),
    "minimum": (mg.minimum, [(1.5, 1.5)]),
    "fmax": (mg.fmax, [(1.5, 1.5)]),
    "fmin": (mg.fmin, [(1.5, 1.5)]),
    "hypot": (mg.hypot, [(0.0, 0.0)]),
    "where": (lambda a, b: mg.where(a > b, a * b, b * b), [(1.5, 1.5)]),
    "clamp by a lower": (lambda x, b: mg.clamp(x, b, 2.0), [(1.0, 1.0), (1.5, 3.0), (2.0, 3.0)]),
    "clamp by an upper": (lambda x, b: mg.clamp(x, -2.0, b), [(1.0, 1.0), (-3.0, -3.0)]),
    "huber": (unreduced(F.huber_loss, delta=1.25), [(1.25, 0.0), (-1.25, 0.0), (2.0, 2.0)]),
    "smooth_l1": (unreduced(F.smooth_l1_loss, beta=1.25), [(1.25, 0.0), (0.0, 1.25)]),
    "l1": (unreduced(F.l1_loss), [(2.0, 2.0)]),
}
CASES = [
    pytest.param(f, point if isinstance(point, tuple) else (point,), id=f"{name}-{point}")
    for table in (ONE, TWO)
    for name, (f, points) in table.items()
    for point in points
]
UPSTREAM = 1.75


def gradients(f, point, dtype, graph):
    xs = [mg.tensor([x], dtype, requires_grad=True) for x in point]
    v = mg.tensor([UPSTREAM], dtype, requires_grad=graph)
    return xs, v, mg.grad(f(*xs), xs, v, create_graph=graph)


def second(f, point, dtype):
    """First and second derivatives, and those of the first ones by the upstream gradient."""
    xs, v, firsts = gradients(f, point, dtype, graph=True)
    rows = [mg.grad(g.sum(), [*xs, v], retain_graph=True) for g in firsts]
    table = np.array([[h.item() for h in row] for row in rows])
    return np.array([g.item() for g in firsts]), table[:, :-1], table[:, -1]


@pytest.mark.parametrize("dtype", [mg.float32, mg.float64], ids=str)
@pytest.mark.parametrize(("f", "point"), CASES)
def test_at_a_kink(f, point, dtype):
    near = 1e-5 if dtype is mg.float32 else 1e-12
    firsts, seconds, by_upstream = second(f, point, dtype)
    _, _, fused = gradients(f, point, dtype, graph=False)
    np.testing.assert_allclose([g.item() for g in fused], firsts, near)
    np.testing.assert_allclose(by_upstream * UPSTREAM, firsts, near)
    np.testing.assert_allclose(seconds, seconds.T, near)
    if dtype is mg.float64 and f is not mg.hypot:  # whose second derivative has no bound there
        step = 1e-7
        around = itertools.product(*[(x - step, x + step) for x in point])
        sides = np.array([second(f, moved, dtype)[1] for moved in around])
        allowed = np.concatenate([sides, np.zeros_like(sides[:1]), sides.mean(0)[None]])
        assert (np.abs(allowed - seconds).min(0) < 1e-5).all(), (seconds, sides)
