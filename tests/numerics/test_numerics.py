"""The edge table's rows on ties, singular points, ``where``, powers, broadcasting and the graph.

Each row is a test; where it is of numbers it asserts value, gradient and second derivative, in
float32 and float64. The rows of other topics are in the files beside this one: elementwise, linalg,
nn (with the losses), reductions, shapes.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from oracle import assert_row, derivatives

import minigrad as mg

INF, NAN = math.inf, math.nan
by_graph = pytest.mark.parametrize("graph", [False, True], ids=["fused", "formula"])


# ---- kinks ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("f", [mg.maximum, mg.minimum])
def test_a_tie_is_shared(f):
    assert_row(f, (2.0, 2.0), 2.0, (0.5, 0.5), (0, 0))
    assert_row(f, (0.0, -0.0), f(mg.tensor(0.0), mg.tensor(-0.0)).item(), (0.5, 0.5), (0, 0))
    assert_row(f, (INF, INF), INF, (0.5, 0.5), (0, 0))


@pytest.mark.parametrize("f", [mg.maximum, mg.minimum])
def test_nan_takes_the_gradient(f):
    assert_row(f, (NAN, 1.0), NAN, (1, 0), (0, 0))
    assert_row(f, (1.0, NAN), NAN, (0, 1), (0, 0))
    assert_row(f, (NAN, NAN), NAN, (0.5, 0.5), (0, 0))


def test_max_shares_ties():
    for f in (mg.amax, mg.max, lambda t: t.amax(0)):
        assert_row(f, ([1.0, 3.0, 3.0],), 3.0, ([0, 0.5, 0.5],), ([0, 0, 0],))
    assert_row(lambda t: t.max(0).values, ([1.0, 3.0, 3.0],), 3.0, ([0, 1, 0],), ([0, 0, 0],))


def test_argmax_of_ties_and_nan():
    assert mg.tensor([1.0, 3.0, 3.0]).argmax().item() == 1
    assert mg.tensor([1.0, NAN, 3.0, NAN]).argmax().item() == 1
    assert mg.tensor([1.0, NAN, -3.0]).argmin().item() == 1
    assert not mg.tensor([1.0], requires_grad=True).argmax().requires_grad


def test_abs_at_zero():
    assert_row(mg.abs, ([0.0, -0.0],), [0.0, 0.0], ([0, 0],), ([0, 0],))


def test_sign_is_flat_everywhere():
    assert_row(mg.sign, ([-2.0, 0.0, 3.0],), [-1.0, 0.0, 1.0], ([0, 0, 0],), ([0, 0, 0],))


def test_relu():
    assert_row(mg.relu, ([0.0, -1.0, 2.0],), [0.0, 0.0, 2.0], ([0, 0, 1],), ([0, 0, 0],))
    assert_row(mg.relu, (NAN,), NAN, (1,), (0,))


# ---- singular points -----------------------------------------------------------------------------


def test_sqrt_at_zero():
    assert_row(mg.sqrt, (0.0,), 0.0, (INF,), (-INF,))
    assert_row(mg.sqrt, (0.0,), 0.0, (0,), upstream=0.0)


def test_zero_times_sqrt():
    assert_row(lambda x: 0.0 * mg.sqrt(x), (0.0,), 0.0, (0,), (0,))


@pytest.mark.parametrize(
    "f", [lambda x: x ** (1 / 3), lambda x: mg.pow(x, mg.tensor(0.25, mg.float64))]
)
def test_a_root_at_zero(f):
    assert_row(f, (0.0,), 0.0, (INF,))
    assert_row(f, (0.0,), 0.0, (0,), upstream=0.0)
    assert_row(lambda x: 0.0 * f(x), (0.0,), 0.0, (0,))


def test_log():
    assert_row(mg.log, ([0.0, -1.0],), [-INF, NAN], ([INF, -1],), ([-INF, -1],))
    assert_row(mg.log, ([0.0, -0.0],), [-INF, -INF], ([0, 0],), upstream=0.0)


def test_division_by_zero():
    assert_row(mg.div, (1.0, 0.0), INF, (INF, -INF))
    assert_row(mg.div, (0.0, 0.0), NAN, (INF, NAN))
    assert_row(mg.div, (1.0, 0.0), INF, (0, 0), upstream=0.0)
    assert_row(mg.reciprocal, (0.0,), INF, (-INF,), (INF,))
    assert_row(mg.reciprocal, (0.0,), INF, (0,), upstream=0.0)


@pytest.mark.parametrize(
    ("f", "slope", "curve"),
    [
        (mg.log, 0.5, -0.25),
        (mg.sqrt, 2**-1.5, -(2**-3.5)),
        (mg.reciprocal, -0.25, 0.25),
        (lambda x: x**-1.5, -1.5 * 2**-2.5, 3.75 * 2**-3.5),
        (lambda x: mg.log(mg.sqrt(x)), 0.25, -0.125),
        (lambda x: mg.sqrt(mg.sqrt(x)), 0.25 * 2**-0.75, -0.1875 * 2**-1.75),
        (lambda x: mg.log(x * mg.sqrt(x)), 0.75, -0.375),
    ],
)
def test_where_drops_a_branch_with_a_pole(f, slope, curve):
    """where(x > 0, log(x), 0) has the right gradient at 0, unlike in PyTorch and JAX."""

    def kept(x):
        return mg.where(x > 0, f(x), 0.0)

    _, (g,), (gg,) = derivatives(kept, [0.0, -1.0, 2.0, INF])
    y = [0.0, 0.0, f(mg.tensor(2.0, mg.float64)).item(), f(mg.tensor(INF)).item()]
    assert_row(
        kept, ([0.0, -1.0, 2.0, INF],), y, ([0, 0, slope, g[3]],), ([0, 0, curve, gg[3]],), within=1
    )


@by_graph
def test_where_drops_nan_and_infinity(graph):
    for bad in (NAN, INF, -INF):
        x = mg.tensor([1.0, 2.0], requires_grad=True)
        y = mg.where(mg.tensor([True, False]), x * 3, x * bad)
        (g,) = mg.grad(y[:1].sum(), x, create_graph=graph)
        assert g.tolist() == [3, 0]


# ---- powers --------------------------------------------------------------------------------------


@pytest.mark.parametrize("a", [0.0, -0.0, NAN, INF, -INF, -2.0, 3.0])
def test_to_the_power_zero_the_base_does_not_matter(a):
    for f in (lambda x: x**0.0, lambda x: x**0, lambda x: mg.pow(x, mg.tensor(0.0, mg.float64))):
        assert_row(f, (a,), 1.0, (0,))


def test_the_exponents_gradient_at_base_zero():
    assert_row(
        lambda b: mg.pow(mg.tensor(0.0, mg.float64), b),
        ([2.0, 0.0, -1.0],),
        [0.0, 1.0, INF],
        ([0, 0, -INF],),
    )


def test_a_negative_base():
    found = derivatives(mg.pow, -2.0, 3.0)
    assert found[0] == -8
    assert found[1][0] == 12
    assert math.isnan(found[1][1])
    x = mg.tensor(-2.0, requires_grad=True)
    (g,) = mg.grad(x ** mg.tensor(3.0), x)  # the exponent's NaN is not even computed
    assert g.item() == 12


@pytest.mark.parametrize("dtype", [mg.float32, mg.float64], ids=lambda d: d.name)
def test_second_derivatives_of_a_square_at_zero(dtype):
    """x^2 by an exponent that requires a gradient: closed forms, never log(0) * 0."""
    x, b = (mg.tensor(v, dtype, requires_grad=True) for v in (0.0, 2.0))
    (by_x,) = mg.grad(x**b, x, create_graph=True)
    assert by_x.item() == 0
    assert mg.grad(by_x, (x, b), retain_graph=True)[0].item() == 2
    assert mg.grad(by_x, (x, b))[1].item() == 0


def test_a_number_to_a_power():
    assert_row(lambda x: 0.0**x, ([0.0, 1.0],), [1.0, 0.0], ([0, 0],), ([0, 0],))
    assert_row(lambda x: 0.0**x, (-1.0,), INF, (-INF,))
    assert_row(lambda x: 1.0**x, ([0.0, 5.0],), [1.0, 1.0], ([0, 0],), ([0, 0],))


def test_whole_powers_of_negative_numbers_to_second_order():
    assert_row(lambda x: x**3.0, ([-2.0, 0.0],), [-8.0, 0.0], ([12, 0],), ([-12, 0],))
    assert_row(lambda x: x**2, ([-2.0, 0.0],), [4.0, 0.0], ([-4, 0],), ([2, 2],))
    assert_row(lambda x: x**1.0, ([-2.0, 0.0],), [-2.0, 0.0], ([1, 1],), ([0, 0],))


# ---- reductions ----------------------------------------------------------------------------------


def test_prod_with_zeros():
    assert_row(mg.prod, ([2.0, 0.0, 4.0],), 0.0, ([0, 8, 0],), ([4, 6, 2],))
    assert_row(mg.prod, ([0.0, 0.0, 4.0],), 0.0, ([0, 0, 0],), ([4, 4, 0],))
    assert_row(mg.prod, ([0.0, 0.0, 0.0],), 0.0, ([0, 0, 0],), ([0, 0, 0],))
    assert_row(mg.prod, ([0.0, 0.0, 0.0, 2.0],), 0.0, ([0] * 4,), ([0] * 4,))


def test_logsumexp_of_infinities():
    assert_row(mg.logsumexp, ([-INF, -INF],), -INF, ([0, 0],), ([0, 0],))
    assert_row(mg.logsumexp, ([-INF, 2.0],), 2.0, ([0, 1],), ([0, 0],))
    assert_row(mg.logsumexp, ([INF, 2.0],), INF, ([1, 0],), ([0, 0],))
    assert_row(mg.logsumexp, ([INF, INF, -INF],), INF, ([1, 1, 0],), ([0, 0, 0],))


def test_softmax_of_minus_infinity():
    assert np.isnan(mg.softmax(mg.tensor([-INF, -INF]), 0).numpy()).all()
    assert np.isnan(mg.log_softmax(mg.tensor([-INF, -INF]), 0).numpy()).all()
    assert_row(lambda t: mg.softmax(t, 0), ([-INF, 1.0],), [0.0, 1.0], ([0, 0],), ([0, 0],))


@by_graph
def test_log_softmax_with_some_minus_infinity(graph):
    x = mg.tensor([-INF, 1.0, 1.0], requires_grad=True)
    y = mg.log_softmax(x, 0)
    np.testing.assert_allclose(y.detach().numpy(), [-INF, -math.log(2), -math.log(2)], rtol=1e-6)
    (g,) = mg.grad(y, x, mg.tensor([0.0, 1.0, 0.0]), create_graph=graph)
    np.testing.assert_allclose(g.detach().numpy(), [0, 0.5, -0.5], rtol=1e-6)
    if graph:
        (gg,) = mg.grad(g[1], x)
        np.testing.assert_allclose(gg.numpy(), [0, -0.25, 0.25], rtol=1e-6)


def test_var():
    assert mg.var(mg.tensor([1.0, 2.0, 3.0, 4.0])).item() == pytest.approx(
        5 / 3
    )  # correction=1, as torch
    assert mg.var(mg.tensor([1.0, 2.0, 3.0, 4.0]), correction=0).item() == 1.25
    assert mg.var(mg.tensor([1.0, 2.0, 3.0, 4.0]), ddof=0).item() == 1.25
    assert_row(mg.var, ([3.0, 3.0, 3.0],), 0.0, ([0, 0, 0],))


def test_var_without_degrees_of_freedom():
    assert_row(mg.var, ([3.0],), NAN, ([NAN],))
    x = mg.ones(2, 1, requires_grad=True)
    y = x.var(1)
    assert y.shape == (2,)
    assert np.isnan(y.detach().numpy()).all()
    assert np.isnan(mg.grad(y.sum(), x)[0].numpy()).all()
    with np.testing.assert_no_warnings():
        want = INF  # NumPy divides by max(n - ddof, 0)
    assert mg.var(mg.tensor([1.0, 2.0]), correction=3).item() == want


def test_nothing():
    with pytest.raises(ValueError, match="empty"):
        mg.zeros(0).max()
    assert mg.zeros(0, 3).amax(1).shape == (0,)
    for f, y in ((mg.sum, 0.0), (mg.prod, 1.0), (mg.mean, NAN), (mg.logsumexp, -INF)):
        assert_row(f, ([],), y, ([],))


# ---- broadcasting and indexing -------------------------------------------------------------------


@by_graph
def test_broadcasting_against_a_size_of_zero(graph):
    x, y = mg.ones(2, requires_grad=True), mg.ones(0, 2, requires_grad=True)
    z = x + y
    assert z.shape == (0, 2)
    by_x, by_y = mg.grad(z, (x, y), mg.zeros(0, 2), create_graph=graph)
    assert by_x.tolist() == [0, 0]
    assert by_y.shape == (0, 2)


@by_graph
def test_broadcast_axes_are_summed(graph):
    x, y = mg.ones(3, 1, requires_grad=True), mg.ones(2, 1, 4, requires_grad=True)
    by_x, by_y = mg.grad((x * y).sum(), (x, y), create_graph=graph)
    assert by_x.tolist() == [[8]] * 3
    assert by_y.tolist() == [[[3] * 4]] * 2


def test_repeated_indices():
    assert_row(
        lambda t: t[[0, 0, 1]], ([1.0, 2.0, 3.0],), [1.0, 1.0, 2.0], ([2, 1, 0],), ([0, 0, 0],)
    )


def test_repeated_assignment():
    def assigned(x, v):
        y = x.clone()
        y[[0, 0, 1]] = v
        return y

    x, v = [7.0, 8.0, 9.0], [1.0, 2.0, 3.0]
    assert_row(assigned, (x, v), [2.0, 3.0, 9.0], ([0, 0, 1], [0, 1, 1]), ([0, 0, 0], [0, 0, 0]))


# ---- no overflow on the way ----------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [mg.float32, mg.float64])
def test_saturation(dtype):
    x = mg.tensor([1000.0, -1000.0, INF, -INF], dtype, requires_grad=True)
    for f, want in ((mg.sigmoid, [1, 0, 1, 0]), (mg.tanh, [1, -1, 1, -1])):
        for graph in (False, True):
            y = f(x)
            assert y.tolist() == want
            (g,) = mg.grad(y.sum(), x, create_graph=graph)
            assert g.tolist() == [0, 0, 0, 0]


def test_exact_points_and_the_range_of_exp():
    for dtype, top, bottom in ((mg.float32, 88.72, -103.9), (mg.float64, 709.78, -745.1)):
        x = mg.tensor([0.0, top, bottom], dtype)
        one, large, small = mg.exp(x).tolist()
        assert one == 1
        assert math.isfinite(large)
        assert 0 < small < 1e-44
        assert mg.log(mg.tensor(1.0, dtype)).item() == 0
        assert mg.cos(mg.tensor(0.0, dtype)).item() == 1


@pytest.mark.parametrize("f", [mg.sin, mg.tanh, mg.neg])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_odd_functions_are_odd(f, dtype, rng):
    x = (rng.normal(size=5000) * 10.0 ** rng.integers(-30, 30, 5000)).astype(dtype)
    np.testing.assert_array_equal(f(mg.tensor(-x)).numpy(), -f(mg.tensor(x)).numpy())


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_nothing_overshoots_its_range(dtype, rng):
    x = np.concatenate(
        [rng.uniform(-400, 400, 100000), np.arange(-2000, 2000) * (math.pi / 2)]
    ).astype(dtype)
    for f, low, high in ((mg.sin, -1, 1), (mg.cos, -1, 1), (mg.tanh, -1, 1), (mg.sigmoid, 0, 1)):
        y = f(mg.tensor(x)).numpy()
        assert y.min() >= low
        assert y.max() <= high


# ---- dtypes --------------------------------------------------------------------------------------


def test_dtypes():
    assert (mg.tensor([7]) / mg.tensor([2])).dtype is mg.float32
    assert (mg.ones(1) + mg.tensor(np.ones(1, np.int32))).dtype is mg.float32
    for number in (1.0, np.float64(1)):
        assert (mg.ones(1) + number).dtype is mg.float32
        assert (number + mg.ones(1)).dtype is mg.float32
    assert (mg.ones(1) + mg.tensor(1.0, mg.float64)).dtype is mg.float64


# ---- the graph -----------------------------------------------------------------------------------


def test_an_input_that_is_not_used():
    x, y = mg.ones(2, requires_grad=True), mg.ones(2, requires_grad=True)
    (x * 2).sum().backward()
    assert y.grad is None
    assert [g.tolist() for g in mg.grad((x * 2).sum(), (x, y))] == [[2, 2], [0, 0]]
    assert mg.grad((x * 2).sum(), (x, y), allow_unused=True)[1] is None


LINEAR = {
    "sum": mg.sum,
    "mean": mg.mean,
    "neg": mg.neg,
    "add": lambda x: x + x,
    "reshape": lambda x: x.reshape(4),
    "permute": lambda x: x.T,
    "expand": lambda x: x.expand(3, 2, 2),
    "slice": lambda x: x[:, ::-1],
    "index": lambda x: x[[0, 0]],
    "cat": lambda x: mg.cat([x, x]),
    "clone": mg.clone,
    "to": lambda x: x.float(),
    "sum_to_size": lambda x: x.sum_to_size(1, 2),
    "scale": lambda x: x * 3,
    "abs": mg.abs,
    "sign": mg.sign,
    "relu": mg.relu,
    "amax": mg.amax,
    "maximum": lambda x: mg.maximum(x, 0.0),
    "where": lambda x: mg.where(x > 0, x, -x),
    "tie": lambda x: mg.maximum(x, x),
}


def test_a_gradient_that_is_zero_by_chance_has_slopes_of_its_own():
    """Where it is multiplied with another 0, too: the fourth derivative of (x^2)^2 at 0 is 24."""
    for f in (
        lambda x: x.square().square(),
        lambda x: (x * x) * (x * x),
        lambda x: (x**2.0) ** 2.0,
    ):
        x = mg.tensor([0.0, 1.0], mg.float64, requires_grad=True)
        y = f(x)
        for want in ([0, 4], [0, 12], [0, 24], [24, 24]):
            (y,) = mg.grad(y.sum(), x, create_graph=True)
            assert y.tolist() == want


@pytest.mark.parametrize("name", LINEAR)
def test_second_derivatives_of_linear_operations_are_zeros(name):
    """Zeros with a graph, never an error and never a lazy nothing."""
    x = mg.tensor([[1.0, -2.0], [3.0, 0.0]], mg.float64, requires_grad=True)
    y = LINEAR[name](x)
    (g,) = mg.grad(y.sum(), x, create_graph=True)
    (gg,) = mg.grad((g * x).sum(), x)  # d/dx (g . x) = g where g does not depend on x
    np.testing.assert_array_equal(gg.numpy(), g.detach().numpy())


def test_nothing_of_ours_changes_the_floating_point_mode():
    x = mg.tensor(np.full(100, 1e-30, np.float32))
    assert (x * 1e-10).numpy()[0] > 0  # subnormals are neither flushed
    assert np.float32(1e-30) * np.float32(1e-10) > 0  # nor is NumPy made to flush them
    mg.exp(x), mg.matmul(x, x), mg.sum(x)
    assert np.float32(1e-30) * np.float32(1e-10) > 0
