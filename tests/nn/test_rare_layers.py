"""Layers that few programs use: fractional pooling, a linear loss, and old channel norms."""

from __future__ import annotations

import numpy as np
import pytest
from torch_layers import same_as_torch

import minigrad as mg
import minigrad.nn.functional as F
from minigrad import nn

pytestmark = pytest.mark.usefixtures("restore_random")

# ---- fractional pooling --------------------------------------------------------------------------

POOLS = {2: F.fractional_max_pool2d, 3: F.fractional_max_pool3d}


def test_windows_by_hand():
    x = mg.arange(7.0).reshape(1, 1, 7).expand(1, 7, 7)
    samples = mg.tensor([[[0.5, 0.5]]])
    values, where = F.fractional_max_pool2d(x, 2, 3, None, True, samples)
    # The step is 2.5: starts are 0, int(3.75) - int(1.25) = 2, and 5.
    assert values.tolist() == [[[1.0, 3.0, 6.0]] * 3]
    assert where.tolist() == [[[1, 3, 6], [15, 17, 20], [36, 38, 41]]]


@pytest.mark.parametrize("axes", [2, 3])
@pytest.mark.parametrize("size", ["one", "each", "ratio"])
def test_fractional_pools_are_pytorchs(axes, size, rng):
    torch = pytest.importorskip("torch")
    theirs = getattr(torch.nn.functional, f"fractional_max_pool{axes}d")
    given = {
        "one": {"output_size": 4},
        "each": {"output_size": (1, 4, 3)[:axes]},
        "ratio": {"output_ratio": (0.5, 0.7, 0.4)[:axes]},
    }[size]
    x, samples = rng.normal(size=(2, 3, 9, 8, 7)[: axes + 2]), rng.uniform(size=(2, 3, axes))
    found = []
    for m, pool in ((mg, POOLS[axes]), (torch, theirs)):
        leaf, u = m.tensor(x, requires_grad=True), m.tensor(samples)
        y, where = pool(leaf, 2, return_indices=True, _random_samples=u, **given)
        (y * y).sum().backward()
        found.append([y.detach().numpy(), where.numpy(), leaf.grad.numpy()])
    for a, b in zip(*found, strict=True):
        np.testing.assert_array_equal(a, b)


def test_fractional_layers_draw_their_windows():
    x = mg.rand(2, 3, 20, 20)
    layer = nn.FractionalMaxPool2d(3, output_size=(6, 9))
    first, second = layer(x), layer(x)
    assert first.shape == second.shape == (2, 3, 6, 9)
    assert not mg.equal(first, second)
    assert nn.FractionalMaxPool3d(2, output_ratio=0.5)(mg.rand(3, 8, 8, 8)).shape == (3, 4, 4, 4)
    fixed = nn.FractionalMaxPool2d(3, 6, _random_samples=mg.rand(2, 3, 2))
    assert mg.equal(fixed(x), fixed(x))


def test_fractional_pools_of_an_empty_batch():
    assert F.fractional_max_pool2d(mg.ones(0, 2, 6, 6), 2, 3).shape == (0, 2, 3, 3)
    assert F.fractional_max_pool3d(mg.ones(0, 2, 6, 6, 6), 2, 3).shape == (0, 2, 3, 3, 3)


def test_errors_of_fractional_pools():
    x = mg.ones(1, 1, 5, 5)
    for wrong in ({}, {"output_size": 2, "output_ratio": 0.5}):
        with pytest.raises(ValueError, match="give output_size or output_ratio, one of both"):
            F.fractional_max_pool2d(x, 2, **wrong)
        with pytest.raises(ValueError, match=r"\[FractionalMaxPool2d\] give output_size or"):
            nn.FractionalMaxPool2d(2, **wrong)
    with pytest.raises(ValueError, match="5 windows of 2 do not fit into a size of 5"):
        F.fractional_max_pool2d(x, 2, 5)
    with pytest.raises(ValueError, match=r"output_ratio is 1\.5, but must be between 0 and 1"):
        F.fractional_max_pool2d(x, 2, output_ratio=1.5)
    with pytest.raises(ValueError, match="the input has 2 dimensions: 3 or 4"):
        F.fractional_max_pool2d(x[0, 0], 2, 2)
    with pytest.raises(ValueError, match=r"_random_samples of shape \(1, 2\)"):
        F.fractional_max_pool2d(x, 2, 2, _random_samples=mg.rand(1, 2))


# ---- a linear layer and its loss -----------------------------------------------------------------


def test_linear_cross_entropy_is_both_in_turn(rng):
    x, w, b = (mg.tensor(rng.normal(size=s), requires_grad=True) for s in ((4, 3), (5, 3), (5,)))
    target, weight = mg.tensor([0, 4, 2, 1]), mg.tensor(rng.uniform(0.5, 2, 5))
    options = {"weight": weight, "label_smoothing": 0.1, "ignore_index": 2}
    whole = F.linear_cross_entropy(x, w, target, linear_bias=b, **options)
    parts = F.cross_entropy(F.linear(x, w, b), target, **options)
    assert whole.item() == parts.item()
    for g, h in zip(mg.grad(whole, [x, w, b]), mg.grad(parts, [x, w, b]), strict=True):
        assert mg.equal(g, h)


CLASSES = np.array([[1, 0], [2, 2], [0, 1]])
LOSSES = {
    "plain": (lambda nn: nn.LinearCrossEntropyLoss(4, 5), [(3, 4), np.array([0, 4, 2])]),
    "one": (lambda nn: nn.LinearCrossEntropyLoss(4, 5, bias=True), [(4,), np.array(3)]),
    "several": (
        lambda nn: nn.LinearCrossEntropyLoss(4, 3, out_features=(2,), bias=True),
        [(3, 4), CLASSES],
    ),
    "none": (
        lambda nn: nn.LinearCrossEntropyLoss(4, 5, reduction="none", label_smoothing=0.2),
        [(3, 4), np.array([0, 4, 2])],
    ),
    "probabilities": (
        lambda nn: nn.LinearCrossEntropyLoss(4, 2, reduction="sum"),
        [(3, 4), np.full((3, 2), 0.5)],
    ),
}


@pytest.mark.parametrize(("make", "inputs"), LOSSES.values(), ids=LOSSES)
def test_linear_losses_are_pytorchs(make, inputs):
    torch = pytest.importorskip("torch")
    if not hasattr(torch.nn, "LinearCrossEntropyLoss"):
        pytest.skip("PyTorch has it from 2.13 on")
    same_as_torch(make, *inputs)


def test_options_change_nothing():
    options = nn.LinearCrossEntropyOptions(batch_chunk_size=2)
    loss = nn.LinearCrossEntropyLoss(2, 3, options=options)
    assert "options=LinearCrossEntropyOptions(allow_retain_graph=False" in repr(loss)
    x, target = mg.rand(5, 2), mg.tensor([0, 1, 2, 0, 1])
    assert loss(x, target).item() == F.cross_entropy(loss.linear(x), target).item()


def test_errors_of_linear_losses():
    with pytest.raises(ValueError, match=r"\[linear_cross_entropy\] input of shape \(1, 4\)"):
        F.linear_cross_entropy(mg.ones(1, 4), mg.ones(3, 2), mg.tensor([0]))


# ---- channel norms -------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5])
def test_norms_across_maps_by_hand(size, rng):
    x = rng.normal(size=(2, 7, 3, 2))
    got = nn.CrossMapLRN2d(size, alpha=0.3, beta=0.6, k=2)(mg.tensor(x))
    reach = (size + 1) // 2 - 1
    for c in range(7):
        around = (x[:, max(c - reach, 0) : c + reach + 1] ** 2).sum(1)
        want = x[:, c] / (2 + 0.3 / size * around) ** 0.6
        np.testing.assert_allclose(got[:, c].numpy(), want, rtol=1e-12)
