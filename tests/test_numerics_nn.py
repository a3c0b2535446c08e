"""The edge table's rows on activations, losses and similarities: value, gradient, second
derivative, in both float dtypes. The curves themselves are in test_numerics_elementwise.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from test_numerics import assert_row, derivatives

import minigrad as mg
from minigrad.nn import functional as F

INF, NAN = math.inf, math.nan
by_dtype = pytest.mark.parametrize("dtype", [mg.float32, mg.float64], ids=["float32", "float64"])


def in_dtype(f, dtype):
    """f computed in a dtype, between float64 numbers."""
    return lambda *xs: f(*[x.to(dtype) for x in xs]).to(mg.float64)


# ---- activations ---------------------------------------------------------------------------------


@by_dtype
def test_relu(dtype):
    f = in_dtype(F.relu, dtype)
    assert_row(f, ([0.0, -0.0, NAN],), [0.0, 0.0, NAN], ([0, 0, 1],), ([0, 0, 0],))


@by_dtype
def test_leaky_relu_at_zero_has_the_slope(dtype):
    for slope in (0.25, 2.0, -1.0, 0.0):
        f = in_dtype(lambda x, s=slope: F.leaky_relu(x, s), dtype)
        assert_row(f, (0.0,), 0.0 * slope, (slope,), (0,))
    assert derivatives(in_dtype(F.leaky_relu, dtype), 0.0)[1] == [mg.tensor(0.01, dtype).item()]


@by_dtype
def test_elu_at_zero(dtype):
    for f in (F.elu, F.celu):
        assert_row(in_dtype(f, dtype), ([0.0, -0.0],), [0.0, -0.0], ([1, 1],), ([0, 0],))


@by_dtype
def test_bounded_lines_are_flat_on_their_bounds(dtype):
    f = in_dtype(F.hardtanh, dtype)
    assert_row(f, ([-1.0, 1.0, 0.5],), [-1.0, 1.0, 0.5], ([0, 0, 1],), ([0, 0, 0],))
    f = in_dtype(F.relu6, dtype)
    assert_row(f, ([0.0, 6.0, 3.0],), [0.0, 6.0, 3.0], ([0, 0, 1],), ([0, 0, 0],))


@by_dtype
def test_softplus_without_a_threshold(dtype):
    f = in_dtype(F.softplus, dtype)
    assert_row(f, ([1000.0, -1000.0, INF, -INF],), [1000, 0, INF, 0], ([1, 0, 1, 0],), ([0] * 4,))
    at = 10.0 if dtype is mg.float32 else 25.0
    y, (g,), (gg,) = derivatives(f, at)
    e, eps = math.exp(-at), 1e-7 if dtype is mg.float32 else 1e-15
    assert y == pytest.approx(at + math.log1p(e), rel=eps)
    assert y != at
    assert g == pytest.approx(1 / (1 + e), rel=eps)
    assert gg == pytest.approx(e / (1 + e) ** 2, abs=eps)  # y (1 - y) is exact to eps only


@by_dtype
def test_logsigmoid(dtype):
    f = in_dtype(F.logsigmoid, dtype)
    assert_row(f, ([1000.0, -1000.0],), [-0.0, -1000.0], ([0, 1],), ([0, 0],))
    y, g, gg = derivatives(f, 0.0)
    assert y == pytest.approx(-math.log(2), rel=1e-7)
    assert (g, gg) == ([0.5], [-0.25])


@by_dtype
@pytest.mark.parametrize("f", [F.silu, F.gelu, lambda x: F.gelu(x, "tanh"), F.mish, F.hardswish])
def test_gated_units_at_infinity(f, dtype):
    assert_row(
        in_dtype(lambda x: f(x) + 0.0, dtype), ([-INF, INF],), [0, INF], ([0, 1],), ([0, 0],)
    )


@by_dtype
def test_the_tail_of_gelu(dtype):
    """0.5 x erfc(-x / sqrt(2)) keeps its digits where 1 + erf(x / sqrt(2)) has none."""
    y, (g,), _ = derivatives(in_dtype(F.gelu, dtype), -10.0)
    tail = math.erfc(10 / math.sqrt(2)) / 2
    density = math.exp(-50) / math.sqrt(2 * math.pi)
    rel = 1e-6 if dtype is mg.float32 else 1e-13
    assert y == pytest.approx(-10 * tail, rel=rel, abs=0)
    assert g == pytest.approx(tail - 10 * density, rel=rel, abs=0)


@by_dtype
def test_softmax_of_a_row_of_minus_infinity(dtype):
    row = ([-INF, -INF],)
    for f, empty in ((F.softmax, 0.0), (F.log_softmax, -INF)):
        y, (g,) = derivatives(in_dtype(lambda x, f=f: f(x, 0), dtype), *row, graph=False)
        assert np.isnan(y).all()
        assert np.isnan(g).all()
        mask = mg.tensor([False, False])
        masked = in_dtype(lambda x, f=f, m=mask: f(x, 0, where=m), dtype)
        assert_row(masked, row, [empty, empty], ([0, 0],), ([0, 0],))


# ---- losses --------------------------------------------------------------------------------------


@by_dtype
def test_l1_loss_at_zero(dtype):
    f = in_dtype(lambda x, t: F.l1_loss(x, t, "sum"), dtype)
    assert_row(f, ([0.0, 1.0], [0.0, 1.0]), 0.0, ([0, 0], [0, 0]), ([0, 0], [0, 0]))


@by_dtype
@pytest.mark.parametrize("loss", [F.huber_loss, F.smooth_l1_loss])
def test_huber_and_smooth_l1_at_delta(loss, dtype):
    f = in_dtype(lambda x, t: loss(x, t, "none"), dtype)
    x, t = [1.0, -1.0, 0.5], [0.0, 0.0, 0.0]
    assert_row(f, (x, t), [0.5, 0.5, 0.125], ([1, -1, 0.5], [-1, 1, -0.5]), ([0] * 3, [0] * 3))
    x_only = in_dtype(lambda x: loss(x, mg.zeros(3), "none"), dtype)
    assert_row(x_only, (x,), [0.5, 0.5, 0.125], ([1, -1, 0.5],), ([0, 0, 1],))


@by_dtype
def test_bce_on_the_wrong_side(dtype):
    """The same clamp as PyTorch's: 100 each, and a slope of 1e12."""
    f = in_dtype(lambda x: F.binary_cross_entropy(x, mg.tensor([1.0, 0.0])), dtype)
    for graph in (False, True):
        y, (g,) = derivatives(f, [0.0, 1.0], graph=graph)[:2]
        assert y == 100.0
        assert g == pytest.approx([-5e11, 5e11], rel=1e-7)
    assert derivatives(f, [0.0, 1.0])[2] == [[0, 0]]


@by_dtype
def test_bce_with_logits(dtype):
    bce = F.binary_cross_entropy_with_logits
    f = in_dtype(lambda x: bce(x, mg.tensor(1.0)), dtype)
    y, g, gg = derivatives(f, 0.0)
    assert y == pytest.approx(math.log(2), rel=1e-7)
    assert (g, gg) == ([-0.5], [0.25])
    right = in_dtype(lambda x: bce(x, mg.tensor([0.0, 1.0]), reduction="none"), dtype)
    assert_row(right, ([-INF, INF],), [0.0, 0.0], ([0, 0],), ([0, 0],))
    wrong = in_dtype(lambda x: bce(x, mg.tensor([1.0, 0.0]), reduction="none"), dtype)
    assert_row(wrong, ([-INF, INF],), [INF, INF], ([-1, 1],), ([0, 0],))


# ---- the zero vector -----------------------------------------------------------------------------


@by_dtype
def test_normalize_and_cosine_similarity_of_the_zero_vector(dtype):
    zero, other = [0.0, 0.0], [3.0, 4.0]
    f = in_dtype(lambda x: F.normalize(x, dim=0), dtype)
    assert_row(f, (zero,), zero, ([0, 0],), ([0, 0],))
    f = in_dtype(lambda a, b: F.cosine_similarity(a, b, 0), dtype)
    assert_row(f, (zero, other), 0.0, ([0, 0], [0, 0]), ([0, 0], [0, 0]))
    assert_row(f, (zero, zero), 0.0, ([0, 0], [0, 0]), ([0, 0], [0, 0]))
    f = in_dtype(lambda a, b: F.cosine_embedding_loss(a, b, mg.tensor(1)), dtype)
    assert_row(f, (zero, other), 1.0, ([0, 0], [0, 0]), ([0, 0], [0, 0]))


@by_dtype
def test_distances_of_equal_points(dtype):
    f = in_dtype(lambda a, b: F.pairwise_distance(a, b, eps=0.0), dtype)
    assert_row(f, ([1.0, 2.0], [1.0, 2.0]), 0.0, ([0, 0], [0, 0]), ([0, 0], [0, 0]))
