"""Derivatives of every operation inside ``vmap``: cotangents, tangents and the second order."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from samples import CATALOGUE
from slices import SIZE, batches, floats

import minigrad as mg
from minigrad import func

# cov asks for the least of its weights, lstsq for ranks; batch_norm writes statistics.
LEFT_OUT = {"cov-2", "linalg.lstsq-0", "nn.functional.batch_norm-0"}
ALL = {
    f"{name}-{k}": sample
    for name, samples in CATALOGUE.items()
    for k, sample in enumerate(samples)
    if sample.shapes and sample.smooth and not sample.random and not name.endswith("_")
}
NAMES = [name for name in ALL if name not in LEFT_OUT]
FEW = NAMES[::12]
by_name = pytest.mark.parametrize(
    "name", [n if n in FEW else pytest.param(n, marks=pytest.mark.exhaustive) for n in NAMES]
)


@pytest.fixture(autouse=True)
def _quiet():
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", r"\[vmap\] .* has no batching rule")
        yield


def drawn(like, seed):
    rng = np.random.default_rng(seed + like.numel())
    return mg.tensor(rng.uniform(0.5, 1.5, tuple(like.shape)) * rng.choice([-1, 1]))


def function_of(sample):
    return lambda *xs: tuple(y for y in floats(sample(*xs)) if y.is_floating_point())


def near(found, want, rtol=1e-6):
    for k, got in enumerate(found):
        each = mg.stack([one[k] for one in want])
        assert got.shape == each.shape
        got, each = got.detach().numpy(), each.detach().numpy()
        np.testing.assert_allclose(got, each, rtol=rtol, atol=1e-8, equal_nan=True)


@by_name
def test_cotangents_run_through_one_graph(name):
    sample = ALL[name]
    leaves = [mg.tensor(x, requires_grad=True) for x in sample.inputs()]
    ys = [y for y in function_of(sample)(*leaves) if y.requires_grad]

    def pull(*cotangents):
        return mg.grad(ys, leaves, cotangents, retain_graph=True, materialize_grads=True)

    cotangents = [[drawn(y, k) for y in ys] for k in range(SIZE)]
    want = [pull(*one) for one in cotangents]
    near(mg.vmap(pull)(*[mg.stack(each) for each in zip(*cotangents, strict=True)]), want)


@by_name
def test_tangents_and_second_derivatives(name):
    sample = ALL[name]
    function = function_of(sample)
    numbers = tuple(range(len(sample.shapes)))
    xs = [mg.tensor(x) for x in batches(sample)]
    ts = [mg.stack([drawn(x[0], k + 5 * i) for k in range(SIZE)]) for i, x in enumerate(xs)]

    def push(x, t):
        return func.jvp(function, tuple(x), tuple(t))[1]

    def total(*x):
        weighed = [(y * drawn(y, 1)).sum() for y in function(*x)]
        return sum(weighed, mg.tensor(0.0, dtype=mg.float64))

    def twice(x, t):
        def along(*x):
            slopes = func.grad(total, numbers)(*x)
            return sum((slope * one).sum() for slope, one in zip(slopes, t, strict=True))

        return func.grad(along, numbers)(*x)

    first = [x[0] for x in xs]
    near(
        mg.vmap(lambda *t: push(first, t))(*ts),
        [push(first, [t[k] for t in ts]) for k in range(SIZE)],
    )
    slices = [([x[k] for x in xs], [t[k] for t in ts]) for k in range(SIZE)]
    near(mg.vmap(push)(xs, ts), [push(*one) for one in slices])
    near(mg.vmap(twice)(xs, ts), [twice(*one) for one in slices], 1e-5)
