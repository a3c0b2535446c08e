"""Losses of sequences of labels, of several classes and of very many: by hand and as in PyTorch."""

from __future__ import annotations

import itertools
import re
from math import inf

import numpy as np
import pytest
from torch_layers import same_as_torch

import minigrad as mg
from minigrad import nn

F = nn.functional

# ---- sequences of labels -------------------------------------------------------------------------


def by_paths(log_probs, labels, blank):
    """The loss from its definition: all paths, one by one."""
    times, classes = log_probs.shape
    total = 0.0
    for path in itertools.product(range(classes), repeat=times):
        said = [c for c, _ in itertools.groupby(path) if c != blank]
        if said == list(labels):
            total += np.exp(sum(log_probs[t, c] for t, c in enumerate(path)))
    return -np.log(total) if total else inf


@pytest.mark.parametrize("blank", [0, 2])
@pytest.mark.parametrize("labels", [[], [1], [1, 1], [1, 0, 1], [1, 1, 1], [1] * 5])
def test_all_paths(blank, labels, rng):
    labels = [3 if n == blank else n for n in labels]
    x = rng.standard_normal((5, 4))
    found = F.ctc_loss(mg.tensor(x), mg.tensor(labels, "int64"), [5], [len(labels)], blank, "none")
    assert found.shape == ()
    np.testing.assert_allclose(found.item(), by_paths(x, labels, blank), rtol=1e-12)


def test_lengths_and_forms_of_targets(rng):
    x = rng.standard_normal((6, 3, 4))
    rows = np.array([[1, 2, 1], [3, 3, 0], [2, 0, 0]])
    times, sizes = [6, 4, 1], [3, 2, 1]
    expected = [
        by_paths(x[:n, k], rows[k, :m], 0)
        for k, (n, m) in enumerate(zip(times, sizes, strict=True))
    ]
    line = np.concatenate([row[:m] for row, m in zip(rows, sizes, strict=True)])
    for targets in (rows, line):
        for as_tensors in (False, True):
            lengths = [mg.tensor(n) if as_tensors else n for n in (times, sizes)]
            given = mg.tensor(x), mg.tensor(targets), *lengths
            np.testing.assert_allclose(
                F.ctc_loss(*given, reduction="none").numpy(), expected, 1e-12
            )
            mean = np.mean(np.divide(expected, sizes))
            assert F.ctc_loss(*given).item() == pytest.approx(mean, rel=1e-12)
            assert nn.CTCLoss(reduction="sum")(*given).item() == pytest.approx(sum(expected))


def test_nothing_to_say():
    none = mg.zeros(0, 2).long()
    assert F.ctc_loss(mg.ones(3, 0, 4), none, [], [], reduction="none").shape == (0,)
    alone = mg.zeros(1, 0).long()
    assert F.ctc_loss(mg.ones(0, 1, 4), alone, [0], [0], reduction="none").tolist() == [0.0]
    late = F.ctc_loss(mg.ones(2, 1, 4), mg.tensor([[1]]), [0], [1], reduction="none")
    assert late.tolist() == [inf]


def test_gradients_of_sequences(rng):
    x = mg.tensor(rng.standard_normal((4, 3, 3)), requires_grad=True)
    targets = mg.tensor([[1, 1], [2, 1], [1, 2]])

    def loss(v):
        return F.ctc_loss(v, targets, [4, 2, 3], [2, 1, 0], reduction="none")

    assert mg.gradcheck(loss, (x,))
    assert mg.gradgradcheck(loss, (x,))


def test_infinite_losses():
    x = mg.zeros(2, 2, 3, requires_grad=True)
    targets = mg.tensor([[1, 1], [1, 2]])
    assert F.ctc_loss(x, targets, [2, 2], [2, 2]).item() == inf
    losses = F.ctc_loss(x, targets, [2, 2], [2, 2], reduction="none", zero_infinity=True)
    assert losses.tolist() == [0.0, 0.0]  # one path of probability 1, which is log 0
    losses.sum().backward()
    assert not x.grad[:, 0].any()
    assert x.grad[:, 1].tolist() == [[0, -1, 0], [0, 0, -1]]
    # A class that cannot be is no path, and gets no NaN.
    y = mg.tensor([[-inf, 0.0], [-1.0, -inf]], requires_grad=True)
    F.ctc_loss(y, mg.tensor([1]), [2], [1]).backward()
    assert y.grad.tolist() == [[0, -1], [-1, 0]]


@pytest.mark.parametrize("reduction", ["none", "sum", "mean"])
def test_sequences_as_pytorch(reduction):
    rows = np.array([[1, 2, 2], [3, 3, 0], [2, 0, 0], [1, 1, 1]])
    times, sizes = [7, 6, 3, 2], [3, 2, 0, 3]
    for zero in (True, False) if reduction == "none" else (True,):
        same_as_torch(
            lambda n: n.CTCLoss(reduction=reduction, zero_infinity=zero),  # noqa: B023
            (7, 4 if zero else 3, 4),
            rows if zero else rows[:3],
            call=lambda loss, x, t: loss(
                x.log_softmax(2), t, tuple(times[: len(t)]), tuple(sizes[: len(t)])
            ),
        )


# ---- margins -------------------------------------------------------------------------------------


def test_margins_of_several_classes(rng):
    x = rng.standard_normal((3, 4))
    targets = np.array([[3, 0, -1, 1], [2, -1, 0, 0], [-1, 1, 2, 3]])
    expected = []
    for row, named in zip(x, ([3, 0], [2], []), strict=True):
        rest = [i for i in range(4) if i not in named]
        expected.append(sum(max(0, 1 - row[j] + row[i]) for j in named for i in rest) / 4)
    found = F.multilabel_margin_loss(mg.tensor(x), mg.tensor(targets), "none")
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-12)
    assert mg.gradcheck(
        lambda v: F.multilabel_margin_loss(v, mg.tensor(targets)),
        (mg.tensor(x, requires_grad=True),),
    )
    for reduction in ("mean", "sum", "none"):
        same_as_torch(lambda n: n.MultiLabelMarginLoss(reduction=reduction), (3, 4), targets)  # noqa: B023
    same_as_torch(lambda n: n.MultiLabelMarginLoss(), (4,), targets[0])


# ---- very many classes ---------------------------------------------------------------------------


def test_adaptive_softmax(rng, restore_random):
    layer = nn.AdaptiveLogSoftmaxWithLoss(6, 12, [3, 7], 2.0).double()
    x, t = mg.tensor(rng.standard_normal((5, 6)), requires_grad=True), mg.tensor([0, 2, 3, 6, 11])
    whole = layer.log_prob(x)
    np.testing.assert_allclose(whole.exp().sum(1).detach().numpy(), 1.0, rtol=1e-12)
    output, loss = layer(x, t)
    picked = whole.gather(1, t.unsqueeze(1))[:, 0].detach().numpy()
    np.testing.assert_allclose(output.detach().numpy(), picked, rtol=1e-12)
    assert loss.item() == pytest.approx(-picked.mean())
    assert layer.predict(x).shape == (5,)
    assert mg.gradcheck(lambda v: layer(v, t).output, (x,))
    assert layer(x[0], t[0]).output.shape == ()


@pytest.mark.parametrize("bias", [True, False])
def test_adaptive_softmax_as_pytorch(bias):
    same_as_torch(
        lambda n: n.AdaptiveLogSoftmaxWithLoss(8, 20, [4, 10], div_value=2.0, head_bias=bias),
        (5, 8),
        np.array([0, 3, 4, 19, 9]),
        call=lambda m, x, t: (*m(x, t), m.log_prob(x), m.predict(x)),
    )


X, T = mg.zeros(4, 1, 3), mg.tensor([[1, 2]])


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (
            lambda: F.ctc_loss(X, T, [5], [2]),
            ValueError,
            "[ctc_loss] input_lengths has a length of 5, more than 4",
        ),
        (
            lambda: F.ctc_loss(X, T, [4, 4], [2]),
            ValueError,
            "[ctc_loss] input_lengths has 2 lengths for 1 sequences",
        ),
        (
            lambda: F.ctc_loss(X, T, [4], [3]),
            ValueError,
            "[ctc_loss] targets has shape (1, 2), but must be (1, 3) or all labels in a line",
        ),
        (
            lambda: F.ctc_loss(X, mg.tensor([1, 2]), [4], [1]),
            ValueError,
            "[ctc_loss] targets has 2 labels in a line, but target_lengths is 1 in all",
        ),
        (
            lambda: F.ctc_loss(X, T + 1, [4], [2]),
            IndexError,
            "[ctc_loss] a label is not in 0..2",
        ),
        (
            lambda: F.ctc_loss(X, T, [4], [2], blank=3),
            ValueError,
            "[ctc_loss] blank is 3, but must be one of 3 classes",
        ),
        (
            lambda: F.multilabel_margin_loss(mg.ones(3), mg.tensor([3, 0, 0])),
            IndexError,
            "[multilabel_margin_loss] a target is not in 0..2",
        ),
        (
            lambda: nn.AdaptiveLogSoftmaxWithLoss(4, 10, [3, 10]),
            ValueError,
            "[AdaptiveLogSoftmaxWithLoss] cutoffs is [3, 10], but must rise within 1..9",
        ),
    ],
)
def test_refusals(call, error, text):
    with pytest.raises(error, match=re.escape(text)):
        call()
