"""Random programs of operations, views and writes, differentiated by every transform."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import minigrad as mg
from minigrad.func import grad, hessian, jacfwd, jacrev, jvp, vjp, vmap
from minigrad.nn import functional as F


class Cube(mg.autograd.Function):
    """x^3, with a derivative of its own."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x * x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 3 * x * x * g


def first_written(a, b, c):
    y = a.clone()
    y[0] = b[1] * c
    return y


def written_through_a_view(a, b, c):
    y = a * 1.0
    y[1:].mul_(b[1:])
    return y


def added_in_place(a, b, c):
    y = a * 1.0
    y.add_(b)
    return y.mul_(y)


def copied_and_assigned(a, b, c):
    y = mg.zeros_like(a)
    y.copy_(a)
    y[mg.tensor([1, 0])] = b[:2]
    return y


def beside_a_constant(a, b, c):
    with mg.no_grad():
        scale = a * c
    return scale.detach() * 0.0 + a * b


# The results of some are kept in a range where differences say something.
STEPS = (
    lambda a, b, c: (a * b + c).clamp(-5, 5),
    lambda a, b, c: (a - b).tanh(),
    lambda a, b, c: a.exp().clamp(max=3.0) if c > 0 else (a * a + 1).sqrt(),
    lambda a, b, c: (mg.cumsum(a, 0) * b).clamp(-5, 5),
    lambda a, b, c: a.flip(0) + b,
    first_written,
    written_through_a_view,
    lambda a, b, c: mg.stack([a, b]).softmax(0)[0],
    lambda a, b, c: mg.where(a > b, a * b, b),
    lambda a, b, c: (a.sum() * b).clamp(-5, 5),
    lambda a, b, c: (mg.outer(a, b) @ a).clamp(-5, 5),
    lambda a, b, c: mg.sort(a)[0] * b,
    lambda a, b, c: added_in_place(a, b, c).clamp(-5, 5),
    lambda a, b, c: mg.cat([a[:1], b[1:]]),
    lambda a, b, c: F.layer_norm(a, a.shape) + b,
    copied_and_assigned,
    beside_a_constant,
    lambda a, b, c: Cube.apply(a).clamp(-5, 5) * b,
    lambda a, b, c: mg.checkpoint(lambda p, q: (p * q).sin(), a, b, use_reentrant=False),
)


def program(rng):
    """A function of two vectors: each step takes two of the earlier results."""
    steps = [
        (STEPS[rng.integers(len(STEPS))], *rng.integers(0, 8, 2).tolist(), rng.normal())
        for _ in range(rng.integers(3, 9))
    ]

    def function(x, y):
        values = [x.clone(), y.sin(), x * y]
        for step, i, j, c in steps:
            values.append(step(values[i % len(values)], values[j % len(values)], c))
        return values[-1] + values[-2]

    return function


def looped(function, *batches):
    """A function of each slice, the results stacked."""
    results = [function(*given) for given in zip(*batches, strict=True)]
    if isinstance(results[0], tuple):
        return tuple(map(mg.stack, zip(*results, strict=True)))
    return mg.stack(results)


def check(seed):
    rng = np.random.default_rng(seed)
    n, function = int(rng.integers(2, 5)), program(rng)
    xs, ys = (mg.tensor(rng.normal(size=(3, n))) for _ in range(2))
    x, y, u, t, s = (mg.tensor(rng.normal(size=n)) for _ in range(5))
    before = x.clone(), y.clone()

    def scalar(a, b):
        return (function(a, b) * u).sum()

    # <u, J t> = <J^T u, t>, and both are what differences say.
    value, pushed = jvp(function, (x, y), (t, s))
    same, pull = vjp(function, x, y)
    by_x, by_y = pull(u)
    forward = (u * pushed).sum().item()
    assert mg.equal(value, same)
    assert forward == pytest.approx(
        ((by_x * t).sum() + (by_y * s).sum()).item(), rel=1e-8, abs=1e-8
    )
    h = 1e-6
    ahead, behind = scalar(x + h * t, y + h * s), scalar(x - h * t, y - h * s)
    assert forward == pytest.approx(((ahead - behind) / (2 * h)).item(), rel=1e-4, abs=1e-4)

    # Any two modes give the same second derivatives.
    of_x = [
        transform(lambda a: scalar(a, y))(x)
        for transform in (hessian, lambda f: jacrev(jacrev(f)), lambda f: jacfwd(jacfwd(f)))
    ]
    assert mg.allclose(of_x[0], of_x[1])
    assert mg.allclose(of_x[0], of_x[2])

    # All slices together are each slice alone.
    def tangent(a, b):
        return jvp(function, (a, b), (t, s))[1]

    for each in (function, tangent, grad(scalar, (0, 1))):
        together, alone = vmap(each)(xs, ys), looped(each, xs, ys)
        pairs = (
            zip(together, alone, strict=True) if isinstance(alone, tuple) else [(together, alone)]
        )
        assert all(mg.allclose(a, b) for a, b in pairs)
    assert mg.equal(x, before[0])
    assert mg.equal(y, before[1])


def check_all(seeds):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", r"\[vmap\] .* runs once for each slice")
        for seed in seeds:
            check(seed)


def test_programs():
    check_all(range(150))


@pytest.mark.exhaustive
def test_many_programs():
    check_all(range(150, 5000))


# ---- faults that were found ----------------------------------------------------------------------


@pytest.mark.usefixtures("restore_random")
def test_a_function_that_writes_before_it_draws_writes_once():
    x, count = mg.ones(3, 2), mg.zeros(())

    def function(row):
        count.add_(1.0)
        row.mul_(2.0)
        return row + mg.randn(())

    vmap(function, randomness="different")(x)
    assert x.tolist() == [[2.0, 2.0]] * 3
    assert count.item() == 3.0


def test_a_tangent_that_goes_through_unchanged_is_a_copy_inside_vmap():
    x, t = mg.ones(3), mg.ones(3)

    def function(row):
        jvp(lambda z: z, (x,), (t,))[1].mul_(5.0)
        return row

    vmap(function)(mg.ones(2))
    assert t.tolist() == [1.0] * 3


@pytest.mark.parametrize("how", [{}, {"fallback": "loop"}, {"chunk_size": 1}])
def test_one_result_for_all_slices_must_be_one(how):
    text = r"\[vmap\] out_dims is None for a result that differs from slice to slice"
    with pytest.raises(ValueError, match=text):
        vmap(lambda x: x * 2, out_dims=None, **how)(mg.arange(3.0))
    same = vmap(lambda x: (x, mg.ones(2)), out_dims=(0, None), **how)(mg.arange(3.0))
    assert [r.tolist() for r in same] == [[0.0, 1.0, 2.0], [1.0, 1.0]]
