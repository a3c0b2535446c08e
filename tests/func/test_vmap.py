"""``vmap`` is a loop over slices and ``stack``: values and gradients of every operation."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from samples import CATALOGUE
from slices import SIZE, batches, by_loop, by_vmap, floats, how

import minigrad as mg
from minigrad.func import dispatch
from minigrad.func.batching_rules import _RULES
from minigrad.ops import TABLE

F = mg.nn.functional
ALL = {
    f"{name}-{k}": sample
    for name, samples in CATALOGUE.items()
    for k, sample in enumerate(samples)
    if sample.shapes
}
# Samples that ask for the value of a slice, whose shapes depend on it, or that write a value of
# each slice into statistics that all of them share.
_REFUSED = """
allclose-0 allclose-1 equal-0 equal-1 linalg.lstsq-0 cov-2 gradient-2 unique-0 unique-1
unique_consecutive-0 unique_consecutive-1 histogram-0 argwhere-0 nonzero-0
nn.functional.batch_norm-0
"""
REFUSED = _REFUSED.split()
SMOOTH = {name: sample for name, sample in ALL.items() if sample.smooth}


def dims_of(count):
    """All inputs cut, and each alone."""
    yield [0] * count
    if count > 1:
        yield from ([0 if i == j else None for i in range(count)] for j in range(count))


def near(got, want, rtol=1e-6):
    assert got.shape == want.shape
    assert got.dtype is want.dtype
    got, want = got.detach().numpy(), want.detach().numpy()
    np.testing.assert_allclose(got, want, rtol=rtol, atol=1e-9, equal_nan=True)


def weighed(results):
    """One number of all float results, each element with another weight."""
    total = mg.tensor(0.0, dtype=mg.float64)
    for y in floats(results):
        if y.is_floating_point():
            weights = np.random.default_rng(y.numel()).uniform(0.5, 1.5, tuple(y.shape))
            total = total + (y * mg.tensor(weights)).sum()
    return total


@pytest.fixture(autouse=True)
def _quiet():
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", r"\[vmap\] .* has no batching rule")
        yield


# ---- every operation -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name in ALL if name not in REFUSED])
def test_values_are_those_of_a_loop(name):
    sample = ALL[name]
    data = batches(sample)
    for dims in dims_of(len(data)):
        xs = [mg.tensor(x if d == 0 else x[0]) for x, d in zip(data, dims, strict=True)]
        want = by_loop(sample, xs, dims)
        found = by_vmap(sample, xs, dims)
        assert len(found) == len(want)
        for got, one in zip(found, want, strict=True):
            near(got, one)


@pytest.mark.parametrize("name", REFUSED)
def test_what_depends_on_the_values_of_slices_is_refused(name):
    sample = ALL[name]
    data = batches(sample)
    xs = [mg.tensor(x) for x in data]
    text = r"in vmap (this tensor|the shape)|that vmap has for each slice"
    with pytest.raises(RuntimeError, match=text):
        by_vmap(sample, xs, [0] * len(xs))


@pytest.mark.parametrize("name", [name for name in SMOOTH if name not in REFUSED])
def test_gradients_are_those_of_a_loop(name):
    """Both of a graph through vmap and, by ``func.grad``, inside it."""
    sample = SMOOTH[name]
    data = batches(sample)
    numbers = tuple(range(len(data)))

    def inside(*xs):
        return mg.func.grad(lambda *ys: weighed(sample(*ys)), numbers)(*xs)

    for dims in dims_of(len(data)):
        xs = [mg.tensor(x if d == 0 else x[0]) for x, d in zip(data, dims, strict=True)]
        leaves = [x.clone().requires_grad_() for x in xs]
        want = mg.grad(weighed(by_loop(sample, leaves, dims)), leaves, materialize_grads=True)
        found = mg.grad(weighed(by_vmap(sample, leaves, dims)), leaves, materialize_grads=True)
        for got, one in zip(found, want, strict=True):
            near(got, one)
        each = []
        for k in range(SIZE):
            each.append(inside(*[x if d is None else x[k] for x, d in zip(xs, dims, strict=True)]))
        found = mg.vmap(inside, tuple(dims), **how(sample))(*xs)
        for got, slices in zip(found, zip(*each, strict=True), strict=True):
            near(got, mg.stack(slices))


@pytest.mark.parametrize("name", [name for name in ALL if name not in REFUSED])
def test_any_axis_may_be_cut(name):
    """Each axis of the first input that the sample takes as a batch."""
    sample = ALL[name]
    data = batches(sample)
    first = mg.tensor(data[0])
    others = [mg.tensor(x[0]) for x in data[1:]]
    want = by_loop(sample, [first.clone(), *others], [0] + [None] * len(others))
    for axis in range(1, first.ndim):
        moved = mg.movedim(first, 0, axis).clone()
        found = by_vmap(sample, [moved, *others], [axis] + [None] * len(others))
        for got, one in zip(found, want, strict=True):
            near(got, one)


def test_every_rule_has_a_row():
    assert set(_RULES) <= set(TABLE)


def test_an_operation_without_a_rule_says_so_once():
    dispatch._said.clear()
    x = mg.ones(3, 2, 2)
    with pytest.warns(UserWarning, match=r"^\[vmap\] block_diag has no batching rule: it runs"):
        mg.vmap(mg.block_diag)(x, x)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mg.vmap(mg.block_diag)(x, x)
