"""Search for the operation at fault, over the catalogue of sample calls."""

from __future__ import annotations

import numpy as np
import pytest
from samples import CATALOGUE

import minigrad as mg
from minigrad.autograd.steps import node_steps
from minigrad.checking.inputs import direction, values_of, write
from minigrad.checking.suspect import suspect

SMOOTH = {
    f"{name}-{k}": sample
    for name, samples in CATALOGUE.items()
    for k, sample in enumerate(samples)
    if sample.smooth
}
every_sample = pytest.mark.parametrize("sample", SMOOTH.values(), ids=SMOOTH)
STEP = 2.0**-20
pytestmark = pytest.mark.usefixtures("restore_random")


class Enlarged(mg.Function):
    """A copy, with a gradient that is half as large again."""

    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, g):
        return 1.5 * g


def recorded(sample, xs):
    """The float results of a sample that have a graph; the same random numbers each time."""
    mg.manual_seed(0)
    return [y for y in sample(*xs) if isinstance(y, mg.Tensor) and y.grad_fn is not None]


def leaves(sample):
    return [mg.tensor(x, requires_grad=True) for x in sample.inputs()]


def found(run, k, x, j, rng):
    """The report of an error of the j-th result by the k-th input, and the derivative."""
    start, u = values_of(x), direction(rng, x.shape)
    y = run()[j]
    v = direction(rng, y.shape)
    with np.errstate(all="ignore"):
        (g,) = mg.grad(y, x, mg.tensor(v, y.dtype), materialize_grads=True)
        parts = values_of(g) * u

        def run_at(t):
            def moved():
                write(x, start + t * u)
                return run()[j]

            return moved

        try:
            off = 1e-3 * (1 + float(np.abs(parts).sum()))
            return suspect(run_at, x, u, v, STEP, off), abs(float(parts.sum()))
        finally:
            write(x, start)


@every_sample
def test_steps_push_the_gradients_of_backward(sample, rng):
    xs = leaves(sample)
    for j in range(len(recorded(sample, xs))):
        y = recorded(sample, xs)[j]
        g = mg.tensor(direction(rng, y.shape), y.dtype)
        expected = mg.grad(recorded(sample, xs)[j], xs, g, allow_unused=True)
        totals = {}
        for step in node_steps(y.grad_fn, g):
            for parent, gi in zip(step.node.parents, step.gradients, strict=True):
                assert gi is None or parent is not None
                if gi is not None and isinstance(parent, mg.Tensor):
                    totals[parent] = totals[parent] + gi if parent in totals else gi
        for x, want in zip(xs, expected, strict=True):
            assert (x in totals) == (want is not None)
            if want is not None:
                np.testing.assert_allclose(totals[x].numpy(), want.numpy(), 1e-12, 1e-14)


@every_sample
def test_only_a_fault_is_found(sample, rng):
    xs = leaves(sample)
    for j in range(len(recorded(sample, xs))):
        for k, x in enumerate(xs):
            text, _ = found(lambda: recorded(sample, xs), k, x, j, rng)
            assert text == ""
    for k, x in enumerate(xs):
        given = [*xs[:k], None, *xs[k + 1 :]]

        def run(given=given, k=k, x=x):
            given[k] = Enlarged.apply(x)
            return recorded(sample, given)

        for j in range(len(recorded(sample, xs))):
            text, size = found(run, k, x, j, rng)
            if size > 0.1:
                assert "'Enlarged'" in text
