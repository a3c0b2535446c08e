"""The edge table's rows on activations, losses and similarities.

The curves themselves are in test_numerics_elementwise.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from oracle import assert_row, derivatives

import minigrad as mg
from minigrad.nn import functional as F

INF, NAN = math.inf, math.nan
by_dtype = pytest.mark.parametrize("dtype", [mg.float32, mg.float64], ids=["float32", "float64"])


# ---- activations ---------------------------------------------------------------------------------


def test_relu():
    f = F.relu
    assert_row(f, ([0.0, -0.0, NAN],), [0.0, 0.0, NAN], ([0, 0, 1],), ([0, 0, 0],))


@by_dtype
def test_leaky_relu_at_zero_has_the_slope(dtype):
    for slope in (0.25, 2.0, -1.0, 0.0):

        def f(x, s=slope):
            return F.leaky_relu(x, s)

        assert_row(f, (0.0,), 0.0 * slope, (slope,), (0,), dtype=dtype)
    assert derivatives(F.leaky_relu, 0.0, dtype=dtype)[1] == [mg.tensor(0.01, dtype).item()]


def test_elu_at_zero():
    for f in (F.elu, F.celu):
        assert_row(f, ([0.0, -0.0],), [0.0, -0.0], ([1, 1],), ([0, 0],))


def test_bounded_lines_are_flat_on_their_bounds():
    f = F.hardtanh
    assert_row(f, ([-1.0, 1.0, 0.5],), [-1.0, 1.0, 0.5], ([0, 0, 1],), ([0, 0, 0],))
    f = F.relu6
    assert_row(f, ([0.0, 6.0, 3.0],), [0.0, 6.0, 3.0], ([0, 0, 1],), ([0, 0, 0],))


@by_dtype
def test_softplus_without_a_threshold(dtype):
    f = F.softplus
    assert_row(
        f,
        ([1000.0, -1000.0, INF, -INF],),
        [1000, 0, INF, 0],
        ([1, 0, 1, 0],),
        ([0] * 4,),
        dtype=dtype,
    )
    at = 10.0 if dtype is mg.float32 else 25.0
    y, (g,), (gg,) = derivatives(f, at, dtype=dtype)
    e, eps = math.exp(-at), 1e-7 if dtype is mg.float32 else 1e-15
    assert y == pytest.approx(at + math.log1p(e), rel=eps)
    assert y != at
    assert g == pytest.approx(1 / (1 + e), rel=eps)
    assert gg == pytest.approx(e / (1 + e) ** 2, abs=eps)  # y (1 - y) is exact to eps only


def test_logsigmoid():
    f = F.logsigmoid
    assert_row(f, ([1000.0, -1000.0],), [-0.0, -1000.0], ([0, 1],), ([0, 0],))
    y, g, gg = derivatives(f, 0.0)
    assert y == pytest.approx(-math.log(2), rel=1e-7)
    assert (g, gg) == ([0.5], [-0.25])


@pytest.mark.parametrize("f", [F.silu, F.gelu, lambda x: F.gelu(x, "tanh"), F.mish, F.hardswish])
def test_gated_units_at_infinity(f):
    assert_row(lambda x: f(x) + 0.0, ([-INF, INF],), [0, INF], ([0, 1],), ([0, 0],))


@by_dtype
def test_the_tail_of_gelu(dtype):
    """0.5 x erfc(-x / sqrt(2)) keeps its digits where 1 + erf(x / sqrt(2)) has none."""
    y, (g,), _ = derivatives(F.gelu, -10.0, dtype=dtype)
    tail = math.erfc(10 / math.sqrt(2)) / 2
    density = math.exp(-50) / math.sqrt(2 * math.pi)
    rel = 1e-6 if dtype is mg.float32 else 1e-13
    assert y == pytest.approx(-10 * tail, rel=rel, abs=0)
    assert g == pytest.approx(tail - 10 * density, rel=rel, abs=0)


def test_softmax_of_a_row_of_minus_infinity():
    row = ([-INF, -INF],)
    for f, empty in ((F.softmax, 0.0), (F.log_softmax, -INF)):
        y, (g,) = derivatives(lambda x, f=f: f(x, 0), *row, graph=False)
        assert np.isnan(y).all()
        assert np.isnan(g).all()
        mask = mg.tensor([False, False])

        def masked(x, f=f, m=mask):
            return f(x, 0, where=m)

        assert_row(masked, row, [empty, empty], ([0, 0],), ([0, 0],))


# ---- losses --------------------------------------------------------------------------------------


def test_l1_loss_at_zero():
    def f(x, t):
        return F.l1_loss(x, t, "sum")

    assert_row(f, ([0.0, 1.0], [0.0, 1.0]), 0.0, ([0, 0], [0, 0]), ([0, 0], [0, 0]))


@pytest.mark.parametrize("loss", [F.huber_loss, F.smooth_l1_loss])
def test_huber_and_smooth_l1_at_delta(loss):
    def f(x, t):
        return loss(x, t, "none")

    x, t = [1.0, -1.0, 0.5], [0.0, 0.0, 0.0]
    assert_row(f, (x, t), [0.5, 0.5, 0.125], ([1, -1, 0.5], [-1, 1, -0.5]), ([0] * 3, [0] * 3))

    def x_only(x):
        return loss(x, mg.zeros(3), "none")

    assert_row(x_only, (x,), [0.5, 0.5, 0.125], ([1, -1, 0.5],), ([0, 0, 1],))


def test_bce_on_the_wrong_side():
    """The same clamp as PyTorch's: 100 each, and a slope of 1e12."""

    def f(x):
        return F.binary_cross_entropy(x, mg.tensor([1.0, 0.0]))

    for graph in (False, True):
        y, (g,) = derivatives(f, [0.0, 1.0], graph=graph)[:2]
        assert y == 100.0
        assert g == pytest.approx([-5e11, 5e11], rel=1e-7)
    assert derivatives(f, [0.0, 1.0])[2] == [[0, 0]]


def test_bce_with_logits():
    bce = F.binary_cross_entropy_with_logits

    def f(x):
        return bce(x, mg.tensor(1.0))

    y, g, gg = derivatives(f, 0.0)
    assert y == pytest.approx(math.log(2), rel=1e-7)
    assert (g, gg) == ([-0.5], [0.25])

    def right(x):
        return bce(x, mg.tensor([0.0, 1.0]), reduction="none")

    assert_row(right, ([-INF, INF],), [0.0, 0.0], ([0, 0],), ([0, 0],))

    def wrong(x):
        return bce(x, mg.tensor([1.0, 0.0]), reduction="none")

    assert_row(wrong, ([-INF, INF],), [INF, INF], ([-1, 1],), ([0, 0],))


# ---- the zero vector -----------------------------------------------------------------------------


def test_normalize_and_cosine_similarity_of_the_zero_vector():
    zero, other = [0.0, 0.0], [3.0, 4.0]

    def f(x):
        return F.normalize(x, dim=0)

    assert_row(f, (zero,), zero, ([0, 0],), ([0, 0],))

    def f(a, b):
        return F.cosine_similarity(a, b, 0)

    assert_row(f, (zero, other), 0.0, ([0, 0], [0, 0]), ([0, 0], [0, 0]))
    assert_row(f, (zero, zero), 0.0, ([0, 0], [0, 0]), ([0, 0], [0, 0]))

    def f(a, b):
        return F.cosine_embedding_loss(a, b, mg.tensor(1))

    assert_row(f, (zero, other), 1.0, ([0, 0], [0, 0]), ([0, 0], [0, 0]))


def test_distances_of_equal_points():
    def f(a, b):
        return F.pairwise_distance(a, b, eps=0.0)

    assert_row(f, ([1.0, 2.0], [1.0, 2.0]), 0.0, ([0, 0], [0, 0]), ([0, 0], [0, 0]))
