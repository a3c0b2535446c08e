"""The edge table's rows on shapes and indexing, and what belongs to them.

Movement is exact, and so are its derivatives. Decisions are needed for two gradients only: at a
place that several things were written to, and of ties.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from oracle import assert_row

import minigrad as mg

INF, NAN = math.inf, math.nan
I001 = mg.tensor([0, 0, 1])
by_dtype = pytest.mark.parametrize("dtype", [mg.float32, mg.float64], ids=lambda d: d.name)


# ---- repeated places -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "read",
    [
        lambda t: t[[0, 0, 1]],
        lambda t: t.gather(0, I001),
        lambda t: t.index_select(0, I001),
        lambda t: t.take(I001),
        lambda t: t.take_along_dim(I001, 0),
        lambda t: mg.nn.functional.embedding(I001, t.unsqueeze(1)).squeeze(1),
    ],
)
def test_reading_a_place_twice_adds_the_gradients(read):
    assert_row(read, ([5.0, 6.0, 7.0],), [5.0, 5.0, 6.0], ([2, 1, 0],), ([0, 0, 0],))


@pytest.mark.parametrize(
    "write",
    [
        lambda x, v: x.index_put([I001], v),
        lambda x, v: x.scatter(0, I001, v),
        lambda x, v: x.index_copy(0, I001, v),
    ],
)
def test_of_writes_to_one_place_the_last_wins_and_gets_all_of_the_gradient(write):
    x, v = [7.0, 8.0, 9.0], [1.0, 2.0, 3.0]
    assert_row(write, (x, v), [2.0, 3.0, 9.0], ([0, 0, 1], [0, 1, 1]), ([0, 0, 0], [0, 0, 0]))
    # An overwritten value counts for nothing, whatever it is.
    assert_row(write, ([NAN, INF, 9.0], [NAN, 2.0, 3.0]), [2.0, 3.0, 9.0], ([0, 0, 1], [0, 1, 1]))


def test_the_loser_of_a_write_gets_nothing_from_an_infinite_gradient():
    for graph in (False, True):
        x, v = (mg.tensor([1.0, 2.0], requires_grad=True) for _ in range(2))
        y = x.index_put([mg.tensor([0, 0])], v)
        g = mg.tensor([INF, NAN])
        by_x, by_v = mg.grad(y, (x, v), g, create_graph=graph)
        np.testing.assert_array_equal(by_x.detach().numpy(), [0, NAN])
        np.testing.assert_array_equal(by_v.detach().numpy(), [0, INF])


@by_dtype
def test_sums_at_one_place_are_made_in_the_order_of_the_index(dtype):
    big = 2.0 ** (24 if dtype is mg.float32 else 53)
    for values, total in (([big, 1.0, -big], 0.0), ([big, -big, 1.0], 1.0)):
        v, at = mg.tensor(values, dtype), mg.tensor([1, 1, 1])
        for y in (
            mg.scatter_add(mg.zeros(3, dtype=dtype), 0, at, v),
            mg.index_add(mg.zeros(3, dtype=dtype), 0, at, v),
            mg.index_put(mg.zeros(3, dtype=dtype), [at], v, True),
        ):
            assert y.tolist() == [0, total, 0]
        x = mg.zeros(3, dtype=dtype, requires_grad=True)
        assert mg.grad(x[at], x, v)[0].tolist() == [0, total, 0]


def test_adding_to_nothing_keeps_the_sign_of_zero():
    y = mg.index_add(mg.tensor([-0.0, -0.0]), 0, mg.tensor([1]), mg.tensor([-0.0]))
    assert [math.copysign(1, v) for v in y.tolist()] == [-1, -1]


# ---- products and extrema ------------------------------------------------------------------------


AT = mg.tensor([0, 0, 0, 1])


def product(x, v, **options):
    return mg.scatter_reduce(x, 0, AT, v, "prod", **options)


@pytest.mark.parametrize(
    ("v", "y", "by_x", "by_v"),
    [
        ([2.0, 3.0, 4.0, 5.0], 48.0, 24, [24, 16, 12]),
        ([0.0, 3.0, 4.0, 5.0], 0.0, 0, [24, 0, 0]),
        ([0.0, 0.0, 4.0, 5.0], 0.0, 0, [0, 0, 0]),
        ([0.0, 0.0, 0.0, 5.0], 0.0, 0, [0, 0, 0]),
        ([INF, 3.0, 4.0, 5.0], INF, INF, [24, INF, INF]),
    ],
)
def test_a_product_of_what_meets_at_a_place_never_divides(v, y, by_x, by_v):
    x = [2.0, 1.0, 7.0]
    assert_row(product, (x, v), [y, 5.0, 7.0], ([by_x, 5, 1], [*by_v, 1]))
    without = [g / 2 for g in by_v]
    assert_row(
        lambda x, v: product(x, v, include_self=False),
        (x, v),
        [y / 2, 5.0, 7.0],
        ([0, 0, 1], [*without, 1]),
    )


def test_second_derivatives_of_a_product_with_zeros():
    """The gradient of 2 * a * b at a = b = 0 is 0, and its derivatives are 2 each."""
    x, v = ([2.0],), [0.0, 0.0]
    f = lambda x, v: mg.scatter_reduce(x, 0, mg.tensor([0, 0]), v, "prod")  # noqa: E731
    assert_row(f, (*x, v), [0.0], ([0], [0, 0]), ([0], [2, 2]))


@pytest.mark.parametrize("name", ["amax", "amin"])
def test_ties_of_an_extremum_share_the_gradient(name):
    sign = 1.0 if name == "amax" else -1.0
    at = mg.tensor([0, 0, 0, 1, 1])

    def extremum(include):
        return lambda x, v: mg.scatter_reduce(x, 0, at, v, name, include_self=include)

    x, v = np.array([3.0, 5.0, 4.0]) * sign, np.array([3.0, 3.0, 1.0, 5.0, 2.0]) * sign
    y = (np.array([3.0, 5.0, 4.0]) * sign).tolist()
    third = 1 / 3
    assert_row(
        extremum(True),
        (x, v),
        y,
        ([third, 0.5, 1], [third, third, 0, 0.5, 0]),
        ([0, 0, 0], [0] * 5),
    )
    assert_row(extremum(False), (x, v), y, ([0, 0, 1], [0.5, 0.5, 0, 1, 0]), ([0, 0, 0], [0] * 5))


@pytest.mark.parametrize("name", ["amax", "amin"])
def test_nan_wins_an_extremum_and_takes_the_gradient(name):
    at = mg.tensor([0, 0, 1, 1])
    f = lambda x, v: mg.scatter_reduce(x, 0, at, v, name)  # noqa: E731
    x, v = [1.0, NAN, 1.0], [NAN, 2.0, 1.0, 2.0]
    assert_row(f, (x, v), [NAN, NAN, 1.0], ([0, 1, 1], [1, 0, 0, 0]))


@pytest.mark.parametrize("name", ["amax", "amin"])
def test_what_is_not_the_extremum_gets_nothing_from_an_infinite_gradient(name):
    x, v = mg.tensor([1.0], requires_grad=True), mg.tensor([1.0, 2.0, 0.0], requires_grad=True)
    y = mg.scatter_reduce(x, 0, mg.tensor([0, 0, 0]), v, name)
    for graph in (False, True):
        by_x, by_v = mg.grad(y, (x, v), mg.tensor([INF]), True, graph)
        assert by_x.tolist() == [0]
        assert by_v.tolist() == ([0, INF, 0] if name == "amax" else [0, 0, INF])


def test_extrema_of_only_infinities_without_self():
    f = lambda x, v: mg.scatter_reduce(x, 0, mg.tensor([0]), v, "amax", include_self=False)  # noqa: E731
    assert_row(f, ([1.0, 2.0], [-INF]), [-INF, 2.0], ([0, 1], [1]))


# ---- choosing and broadcasting -------------------------------------------------------------------


def test_what_was_not_chosen_counts_for_nothing():
    mask = mg.tensor([True, False])
    for f in (
        lambda x: mg.where(mask, 0.0, x.log()),
        lambda x: x.log().masked_fill(mask, 0.0),
        lambda x: x.log().index_fill(0, mg.tensor([0]), 0.0),
        lambda x: x.log().slice_scatter(mg.zeros(1, dtype=mg.float64), 0, 0, 1),
        lambda x: x.log().masked_scatter(mask, mg.zeros(1, dtype=mg.float64)),
    ):
        assert_row(f, ([0.0, 2.0],), [0.0, math.log(2.0)], ([0, 0.5],), ([0, -0.25],))


@by_dtype
@pytest.mark.parametrize("graph", [False, True])
def test_gradients_have_the_inputs_shape_and_dtype(dtype, graph):
    """Also where there is nothing in it, or the axis was broadcast."""
    for shape in ((0,), (0, 3), (2, 0), (2, 1)):
        x = mg.zeros(shape, dtype=dtype, requires_grad=True)
        for y in (
            x.expand(4, *shape),
            x.repeat(*[2] * len(shape)),
            mg.pad(x, (1, 1)),
            x.roll(1, 0),
            x[mg.zeros(0, dtype=mg.int64)],
            x.index_select(-1, mg.zeros(0, dtype=mg.int64)),
            x.masked_select(x != x),
            x.flip(0),
            mg.cat([x, x], -1),
            x.unfold(0, 0, 1),
        ):
            (g,) = mg.grad(y, x, mg.ones(y.shape, dtype=dtype), True, graph)
            assert g.shape == shape
            assert g.dtype is dtype
    x = mg.zeros(2, dtype=dtype, requires_grad=True)
    (g,) = mg.grad(x.expand(0, 2), x, mg.zeros(0, 2, dtype=dtype), create_graph=graph)
    assert g.tolist() == [0, 0]


LINEAR = {
    "index_put": lambda x: x.index_put([I001], x[:3]),
    "scatter_add": lambda x: x.scatter_add(0, I001, x),
    "index_add": lambda x: x.index_add(0, I001, x[:3]),
    "gather": lambda x: x.gather(0, I001),
    "slice_scatter": lambda x: x.slice_scatter(x[:2], 0, 1, 3),
    "diagonal": lambda x: x.diag().diagonal(),
    "pad": lambda x: mg.pad(x, (1, 2), value=3.0),
    "unfold": lambda x: x.unfold(0, 2, 1),
    "roll": lambda x: x.roll(2),
    "amax": lambda x: x.scatter_reduce(0, I001, x, "amax"),
    "masked_fill": lambda x: x.masked_fill(x > 2, 0.0),
}


@pytest.mark.parametrize("name", LINEAR)
def test_second_derivatives_of_linear_operations_are_zeros(name):
    """Zeros with a graph, never an error and never a lazy nothing."""
    x = mg.tensor([1.0, -2.0, 3.0, 0.5], mg.float64, requires_grad=True)
    y = LINEAR[name](x)
    (g,) = mg.grad(y.sum(), x, create_graph=True)
    (gg,) = mg.grad((g * x).sum(), x)  # d/dx (g . x) = g where g does not depend on x
    np.testing.assert_array_equal(gg.numpy(), g.detach().numpy())
