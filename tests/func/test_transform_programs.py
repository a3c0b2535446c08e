"""Random programs of operations, views and writes, differentiated by every transform."""

from __future__ import annotations

import contextlib
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


class Both(mg.autograd.Function):
    """x y and sin x, where a gradient that is missing is None."""

    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        ctx.set_materialize_grads(False)
        return x * y, x.sin()

    @staticmethod
    def backward(ctx, g, h):
        x, y = ctx.saved_tensors
        by_sine = None if h is None else h * x.cos()
        if g is None:
            return by_sine, None
        return g * y if by_sine is None else g * y + by_sine, g * x


W = mg.tensor([1.3, 0.7, 0.9, 1.1], dtype=mg.float64, requires_grad=True)


def copies():
    return mg.autograd.graph.saved_tensors_hooks(lambda x: x.clone(), lambda x: x)


def packed(a, b, c):
    with copies():
        return (a * b).tanh() * a.exp().clamp(max=3.0)


def packed_views(a, b, c):
    with mg.autograd.graph.saved_tensors_hooks(lambda x: [x], lambda x: x[0]):
        y = a * 1.0
        y[1:].mul_(b[1:])
        return y.softmax(0) * Cube.apply(b).clamp(-5, 5)


def checkpoints(a, b, c):
    def inner(p, q):
        return mg.checkpoint(lambda r: (r * q).sin(), p) + p * W[: len(p)]

    return mg.checkpoint(inner, a, b)


def writes_in_a_checkpoint(a, b, c):
    def function(given, q):
        y = given["p"] * 1.0
        y[0] = q[1] * given["p"][0]
        y.mul_(q)
        return y.tanh(), (y * q).clamp(-5, 5)

    s, t = mg.checkpoint(function, {"p": a}, q=b)
    return s * t + s


def packed_checkpoint(a, b, c):
    with copies():
        return mg.checkpoint(lambda p: (p * b).tanh(), a) * a.sin()


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
    lambda a, b, c: sum(Both.apply(a, b)).clamp(-5, 5),
    lambda a, b, c: Both.apply(a, b)[1] * b,
    packed,
    packed_views,
    checkpoints,
    writes_in_a_checkpoint,
    packed_checkpoint,
    lambda a, b, c: grad(lambda p: (p.sin() * b * p).sum())(a),
    lambda a, b, c: vjp(lambda p: mg.checkpoint(lambda q: (q * b).tanh(), p), a)[1](b)[0],
    lambda a, b, c: jvp(lambda p: p.tanh() * b + p * W[: len(p)], (a,), (b,))[1].clamp(-5, 5),
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


def check_all(seeds, check=check):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", r"\[vmap\] .* runs once for each slice")
        for seed in seeds:
            check(seed)


def test_programs():
    check_all(range(150))


@pytest.mark.exhaustive
def test_many_programs():
    check_all(range(150, 5000))


# ---- tools and errors around programs ------------------------------------------------------------


def all_results(function, n, rng):
    """The results of each transform of a program."""
    xs, ys = (mg.tensor(rng.normal(size=(3, n))) for _ in range(2))
    x, y, u, t, s = (mg.tensor(rng.normal(size=n)) for _ in range(5))

    def scalar(a, b):
        return (function(a, b) * u).sum()

    def tangent(a, b):
        return jvp(function, (a, b), (t, s))[1]

    value, pull = vjp(function, x, y)
    made = [value, *pull(u), *pull(t), *jvp(function, (x, y), (t, s))]
    for transform in (hessian, lambda f: jacrev(jacrev(f)), lambda f: jacrev(jacfwd(f))):
        made.append(transform(lambda a: scalar(a, y))(x))
    made += [vmap(function)(xs, ys), vmap(tangent)(xs, ys), *vmap(grad(scalar, (0, 1)))(xs, ys)]
    leaves = [*(z.clone().requires_grad_() for z in (x, y)), W]
    W.grad = None
    scalar(*leaves[:2]).backward()
    made += [mg.zeros(1) if leaf.grad is None else leaf.grad for leaf in leaves]
    return [z.detach() for z in made]


class Stopped(Exception):
    """An error in the middle of a program."""


def check_around(seed):
    """Tools that watch change no bit, packing changes no value, and an error leaves nothing."""
    rng = np.random.default_rng(seed)
    n, function = int(rng.integers(2, 5)), program(rng)
    state, left = rng.bit_generator.state, int(rng.integers(1, 12))

    def results(function=function):
        rng.bit_generator.state = state
        return all_results(function, n, rng)

    def stopped(a, b):
        nonlocal left
        left -= 1
        made = function(a, b)
        if left == 0:
            raise Stopped
        return made

    want = results()
    for tool in (mg.detect_anomaly, mg.profile):
        with tool():
            assert all(map(mg.equal, results(), want))
    with copies():
        assert all(map(mg.allclose, results(), want))
    with contextlib.suppress(Stopped):
        results(stopped)
    assert all(map(mg.equal, results(), want))


def test_tools_and_errors_around_programs():
    check_all(range(5), check_around)


@pytest.mark.exhaustive
def test_tools_and_errors_around_many_programs():
    check_all(range(5, 1000), check_around)


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
