"""Embeddings, and their sums, means and maxima in bags."""

from __future__ import annotations

import re

import numpy as np
import pytest
from torch_layers import same_as_torch

import minigrad as mg
from minigrad import nn

F = nn.functional
LINE = np.array([1, 2, 4, 5, 4, 3, 2, 9, 1])
OFFSETS = np.array([0, 4, 4, 6])


def bags(classes, offsets):
    return np.split(classes, offsets[1:])


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_bags_by_numpy(mode, rng):
    table = rng.standard_normal((10, 3))
    whole = {"sum": np.sum, "mean": np.mean, "max": np.max}[mode]
    expected = [whole(table[b], 0) if len(b) else np.zeros(3) for b in bags(LINE, OFFSETS)]
    found = F.embedding_bag(mg.tensor(LINE), mg.tensor(table), mg.tensor(OFFSETS), mode=mode)
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-14)
    rows = F.embedding_bag(mg.tensor(LINE.reshape(3, 3)), mg.tensor(table), mode=mode)
    np.testing.assert_allclose(rows.numpy(), whole(table[LINE.reshape(3, 3)], 1), rtol=1e-14)


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
@pytest.mark.parametrize("padding", [None, 4])
def test_gradients_of_bags(mode, padding, rng):
    table = mg.tensor(rng.standard_normal((10, 2)), requires_grad=True)
    if padding is not None:  # whose row gets none, as it says
        bag = F.embedding_bag(
            mg.tensor(LINE), table, mg.tensor(OFFSETS), mode=mode, padding_idx=padding
        )
        bag.sum().backward()
        assert table.grad[padding].tolist() == [0.0, 0.0]
        return
    assert mg.gradcheck(
        lambda w: F.embedding_bag(mg.tensor(LINE), w, mg.tensor(OFFSETS), mode=mode), (table,)
    )
    if mode == "sum":
        factors = mg.tensor(rng.standard_normal(9), requires_grad=True)
        assert mg.gradcheck(
            lambda w, s: F.embedding_bag(
                mg.tensor(LINE), w, mg.tensor(OFFSETS), mode="sum", per_sample_weights=s
            ),
            (table, factors),
        )


def test_a_bag_of_padding_alone_is_zero():
    table = mg.tensor([[1.0], [-2.0]])
    for mode in ("sum", "mean", "max"):
        found = F.embedding_bag(mg.tensor([[1, 1], [0, 1]]), table, mode=mode, padding_idx=1)
        assert found.tolist() == [[0.0], [1.0]]


def test_scale_grad_by_freq(restore_random):
    layer = nn.Embedding(4, 2, scale_grad_by_freq=True)
    layer(mg.tensor([1, 1, 1, 2])).sum().backward()
    assert layer.weight.grad.tolist() == [[0, 0], [1, 1], [1, 1], [0, 0]]
    layer = nn.EmbeddingBag(4, 2, scale_grad_by_freq=True, mode="sum")
    layer(mg.tensor([1, 1, 1, 2]), mg.tensor([0, 2])).sum().backward()
    assert layer.weight.grad.tolist() == [[0, 0], [1, 1], [1, 1], [0, 0]]


def test_from_pretrained():
    table = mg.tensor([[1.0, 2.0], [3.0, 4.0]])
    layer = nn.Embedding.from_pretrained(table, freeze=False, padding_idx=-1)
    assert layer.weight.requires_grad
    assert layer.padding_idx == 1
    assert layer.weight.tolist() == table.tolist()  # the padding too
    bag = nn.EmbeddingBag.from_pretrained(table, mode="sum")
    assert not bag.weight.requires_grad
    assert bag(mg.tensor([[0, 1]])).tolist() == [[4.0, 6.0]]


@pytest.mark.parametrize(
    "make",
    [
        lambda n: n.Embedding(10, 3),
        lambda n: n.Embedding(10, 3, padding_idx=-6),
        lambda n: n.Embedding(10, 3, 2, 1.5, 1.0),
        lambda n: n.Embedding(10, 3, scale_grad_by_freq=True),
    ],
)
def test_embedding_as_pytorch(make):
    same_as_torch(make, LINE.reshape(3, 3), rtol=1e-6)  # PyTorch adds 1e-7 to norms


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
@pytest.mark.parametrize(
    "rest", [{}, {"padding_idx": 4}, {"max_norm": 1.0}, {"include_last_offset": True}]
)
def test_embedding_bag_as_pytorch(mode, rest):
    ends = np.append(OFFSETS, 9) if "include_last_offset" in rest else OFFSETS
    near = 1e-6 if "max_norm" in rest else 1e-9  # PyTorch adds 1e-7 to norms
    same_as_torch(lambda n: n.EmbeddingBag(10, 3, mode=mode, **rest), LINE, ends, rtol=near)
    if "include_last_offset" not in rest:
        make = lambda n: n.EmbeddingBag(10, 3, mode=mode, **rest)  # noqa: E731
        same_as_torch(make, LINE.reshape(3, 3), rtol=near)


def test_weighted_bags_as_pytorch(rng):
    same_as_torch(
        lambda n: n.EmbeddingBag(10, 3, mode="sum", padding_idx=2),
        LINE,
        OFFSETS,
        rng.standard_normal(9),
        call=lambda layer, x, o, w: layer(x, o, per_sample_weights=w),
    )


X, W = mg.tensor([0, 1]), mg.ones(2, 2)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: F.embedding_bag(X, W), ValueError, "a line of classes needs offsets"),
        (
            lambda: F.embedding_bag(X, W, mg.tensor([1])),
            ValueError,
            "[embedding_bag] offsets is [1]: it starts with 0, does not fall, and ends within the "
            "2 classes",
        ),
        (
            lambda: F.embedding_bag(X, W, mg.tensor([0, 3])),
            ValueError,
            "[embedding_bag] offsets is [0, 3]",
        ),
        (
            lambda: F.embedding_bag(X, W, mg.tensor([0]), mode="min"),
            ValueError,
            "[embedding_bag] mode is 'min', but must be 'sum', 'mean' or 'max'",
        ),
        (
            lambda: F.embedding_bag(X, W, mg.tensor([0]), per_sample_weights=mg.ones(2)),
            ValueError,
            "[embedding_bag] per_sample_weights are for mode 'sum', not 'mean'",
        ),
        (
            lambda: nn.Embedding(3, 2, padding_idx=3),
            ValueError,
            "[Embedding] padding_idx 3 is not in 0..2",
        ),
        (
            lambda: nn.Embedding.from_pretrained(mg.ones(3)),
            ValueError,
            "[Embedding.from_pretrained] embeddings has shape (3,), but must be (classes, size)",
        ),
    ],
)
def test_refusals(call, error, text):
    with pytest.raises(error, match=re.escape(text)):
        call()
