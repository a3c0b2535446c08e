"""Reductions and what normalises with them: values, layouts, derivatives, ties, accuracy."""

from __future__ import annotations

import itertools
import math
import warnings

import numpy as np
import oracle
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import special

import minigrad as mg
from minigrad._c import lib

NUMPY = {
    "sum": np.sum,
    "mean": np.mean,
    "prod": np.prod,
    "amax": np.max,
    "amin": np.min,
    "var": lambda x, axis, keepdims=False: np.var(x, axis=axis, keepdims=keepdims, ddof=1),
    "std": lambda x, axis, keepdims=False: np.std(x, axis=axis, keepdims=keepdims, ddof=1),
    "nansum": np.nansum,
    "nanmean": np.nanmean,
    "logsumexp": lambda x, axis, keepdims=False: np.log(np.exp(x).sum(axis, keepdims=keepdims)),
    "all": np.all,
    "any": np.any,
}
DIFFERENTIABLE = [name for name in NUMPY if name not in ("all", "any")]
SHAPES = [(), (1,), (7,), (3, 4), (2, 1, 5), (2, 3, 4, 3)]


def axis_subsets(ndim):
    """None, every single axis from either end, and every set of axes in a mixed order."""
    yield None
    yield from range(-ndim, ndim)
    for count in range(ndim + 1):
        for axes in itertools.combinations(range(ndim), count):
            yield axes
            if count > 1:
                yield tuple(a - ndim if i % 2 else a for i, a in enumerate(reversed(axes)))


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", NUMPY)
@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=["float32", "float64"])
def test_every_set_of_axes(name, shape, dtype, rng):
    x = rng.normal(size=shape).astype(dtype)
    if name in ("all", "any"):
        x = x * (rng.uniform(size=shape) < 0.7)
        x = x.astype(dtype)
    t = mg.tensor(x)
    for axes, keep in itertools.product(axis_subsets(len(shape)), [False, True]):
        got = getattr(mg, name)(t, dim=axes, keepdim=keep)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # NumPy warns of a variance of one element
            want = NUMPY[name](x.astype(np.float64), axis=axes, keepdims=keep)
        assert got.shape == np.shape(want), (axes, keep)
        assert got.numpy().dtype == (np.bool_ if name in ("all", "any") else dtype)
        tolerance = 2e-6 if dtype is np.float32 else 1e-14
        np.testing.assert_allclose(
            got.numpy(), want, rtol=tolerance, atol=tolerance, err_msg=str(axes)
        )
        spelled = getattr(mg, name)(t, axis=axes, keepdims=keep)
        oracle.assert_same(spelled.numpy(), got.numpy())
        oracle.assert_same(getattr(t, name)(axes, keepdim=keep).numpy(), got.numpy())


@pytest.mark.parametrize("name", ["sum", "mean", "prod", "amax", "amin", "all", "any"])
@pytest.mark.parametrize("dtype", [np.int64, np.bool_])
def test_integers_and_booleans(name, dtype, rng):
    x = rng.integers(-4, 5, (3, 5)).astype(dtype)
    for axis in (None, 0, 1):
        got = getattr(mg, name)(mg.tensor(x), axis).numpy()
        want = NUMPY[name](x, axis=axis)
        if name == "mean":
            assert got.dtype == np.float32
            np.testing.assert_allclose(got, want, rtol=1e-6)
        else:
            oracle.assert_same(got, np.asarray(want))


@pytest.mark.parametrize("name", ["sum", "prod", "amax", "amin", "all", "any"])
@pytest.mark.parametrize("dtype", [np.int64, np.bool_])
@pytest.mark.parametrize("rows", [1, 63, 64, 65, 130])  # 64 are done together
def test_rows_of_integers_and_booleans(name, dtype, rows, rng):
    for n in (1, 7, 64, 129):
        x = rng.integers(-1, 3, (rows, n)).astype(dtype)
        for axis in (0, 1):
            got = getattr(mg, name)(mg.tensor(x), axis).numpy()
            oracle.assert_same(got, np.asarray(NUMPY[name](x, axis=axis)))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_of_any_length(dtype, rng):
    """Whole blocks and lanes, and what is left of them."""
    for n in range(1, 300):
        x = (rng.permutation(2 * n)[:n] - n).astype(dtype)  # sums are exact
        t = mg.tensor(np.stack([x, x, x])[1:2])
        assert mg.sum(t, 1).item() == x.sum()
        assert mg.amax(t, 1).item() == x.max()
        assert mg.amin(t, 1).item() == x.min()
        assert mg.sum(t * t, 1).item() == (x * x).sum()
        assert mg.prod(mg.tensor(np.sign(x) + (x == 0))[None], 1).item() == (-1) ** (x < 0).sum()
        y = x.copy()
        y[rng.integers(n)] = np.nan
        assert np.isnan(mg.amax(mg.tensor(y)[None], 1).item())
        assert np.isnan(mg.amin(mg.tensor(y)[None], 1).item())


@pytest.mark.parametrize("name", DIFFERENTIABLE)
@pytest.mark.parametrize("axes", [None, 0, -1, (0, 2), (1,), (0, 1, 2), ()], ids=str)
@pytest.mark.parametrize("keep", [False, True])
def test_derivatives(name, axes, keep, rng):
    if name in ("var", "std") and axes == ():
        pytest.skip("the variance of one element has no value")
    x = rng.permutation(np.linspace(-1.5, 1.5, 12)).reshape(2, 3, 2)  # no ties, no zeros
    op = getattr(mg, name)
    oracle.check_gradients(lambda t: op(t, dim=axes, keepdim=keep), [x], rng)


@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_softmax_derivatives(name, axis, rng):
    x = rng.normal(size=(2, 3, 2))
    oracle.check_gradients(lambda t: getattr(mg, name)(t, axis), [x], rng)


@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=["float32", "float64"])
@pytest.mark.parametrize(
    "shape",
    [(1,), (5,), (3, 17), (4, 1, 300), (2, 5000), (70, 40), (300, 5), (9000, 3), (70_000,)],
    ids=str,
)
def test_softmax_values(name, dtype, shape, rng):
    x = (10 * rng.normal(size=shape)).astype(dtype)
    for axis in range(-len(shape), len(shape)):
        got = getattr(mg, name)(mg.tensor(x), axis).numpy()
        want = getattr(special, name)(x.astype(np.longdouble), axis=axis)
        # x - max is rounded once, and exp makes that a relative error of its size
        below = np.abs(x.max(axis, keepdims=True) - x)
        bound = below + 8 if name == "softmax" else np.abs(want) + 8
        unit = np.finfo(dtype).eps * (want if name == "softmax" else 1)
        assert (np.abs(got - want) <= bound * unit).all()


@pytest.mark.parametrize("name", ["softmax", "log_softmax", "logsumexp", "var", "std", "norm"])
@pytest.mark.parametrize("shape", [(300, 5), (9000, 3), (70_000,), (2, 300, 20), (40, 7)], ids=str)
def test_kernels_of_gradients_agree_with_the_formulas(name, shape, rng):
    x = mg.tensor(rng.normal(size=shape), requires_grad=True)
    for axis in range(len(shape)):
        y = getattr(mg, name)(x, dim=axis)
        g = mg.tensor(rng.normal(size=y.shape))
        (fused,) = mg.grad(y, x, g, retain_graph=True)
        (formula,) = mg.grad(y, x, g, create_graph=True)
        np.testing.assert_allclose(fused.numpy(), formula.detach().numpy(), 1e-12, 1e-15)


@pytest.mark.parametrize("value", [math.nan, math.inf])
@pytest.mark.parametrize("shape", [(300, 5), (70_000, 1)], ids=str)
def test_a_long_softmax_line_without_a_maximum_is_nan(value, shape):
    x = np.zeros(shape, np.float32)
    x[200, 0] = value
    for y in (mg.softmax(mg.tensor(x), 0).numpy(), mg.log_softmax(mg.tensor(x), 0).numpy()):
        assert np.isnan(y[:, 0]).all()
        assert np.isfinite(y[:, 1:]).all()


def test_softmax_of_a_number_is_one():
    x = mg.tensor(3.0, requires_grad=True)
    y = mg.softmax(x, 0)
    assert y.shape == ()
    assert y.item() == 1.0
    y.backward()
    assert x.grad.item() == 0.0


def test_softmax_does_not_overflow():
    x = mg.tensor([1e38, 1e38, -1e38])
    np.testing.assert_array_equal(mg.softmax(x, 0).numpy(), [0.5, 0.5, 0])
    np.testing.assert_allclose(mg.log_softmax(x, 0).numpy()[:2], -math.log(2), rtol=1e-6)
    assert mg.logsumexp(x).item() == np.float32(1e38)


# ---- layouts -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [*NUMPY, "argmax", "argmin"])
@pytest.mark.parametrize("layout", oracle.LAYOUTS)
@pytest.mark.parametrize("shape", [(37, 70), (3, 1, 257), (9, 8, 33)], ids=str)
def test_layouts_give_the_same_bits(name, layout, shape, rng):
    x = rng.normal(size=shape).astype(np.float32)
    for axis in (None, *range(len(shape))):
        want = getattr(mg, name)(mg.tensor(x), dim=axis).numpy()
        got = getattr(mg, name)(oracle.tensor_in_layout(x, layout), dim=axis).numpy()
        oracle.assert_same(got, want)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("rows", [1, 4, 130, 700])
def test_columns_whose_results_are_neighbours_and_apart(rows, dtype, rng):
    apart = rng.standard_normal((3, rows, 37)).astype(dtype)
    apart[:, :, 5] = -0.0
    apart[1, rows // 2, 7] = np.nan
    for name in ("sum", "amax", "var", "logsumexp", "norm"):
        f = getattr(mg, name)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the variance of one row
            # Axes 37 and 3 are kept of memory that holds (3, rows, 37): a run's results lie apart.
            turned = f(mg.tensor(apart).permute(2, 0, 1), dim=2).numpy()
            each = [f(mg.tensor(plane), dim=0).numpy() for plane in apart]
        np.testing.assert_array_equal(turned, np.stack(each, axis=1))
        assert name not in ("sum", "norm") or not np.signbit(turned[5]).any()
        assert (rows == 1 and name == "var") or np.isnan(turned).sum() == 1


@pytest.mark.parametrize("n", [129, 1023, 1024, 1025, 1900, 2048, 3333, 9000, 8192 * 6 + 5])
@pytest.mark.parametrize("name", ["sum", "norm", "amax", "amin", "prod", "logsumexp"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=["float32", "float64"])
def test_long_rows_are_joined_as_columns_are(name, n, dtype, rng):
    """Rows take eight blocks at a time, columns one; zeros of both signs show who comes first.

    Blocks of several rows are joined side by side by logsumexp, and of the longest rows several
    chunks are rows of their own.
    """
    x = (rng.normal(size=(4, n)) * 2 ** rng.normal(size=(4, n))).astype(dtype)
    x[1] = np.copysign(0, x[1])
    x[2, rng.integers(n, size=9)] = np.inf
    x[3] = -np.inf
    x[3, n // 2] = 3 if name == "amax" else -np.inf
    rows = getattr(mg, name)(mg.tensor(x), dim=1).numpy()
    columns = getattr(mg, name)(mg.tensor(np.ascontiguousarray(x.T)), dim=0).numpy()
    oracle.assert_same(rows, columns)
    if name in ("amax", "amin"):
        oracle.assert_same(rows + 0, NUMPY[name](x, axis=1) + 0)


@pytest.mark.parametrize("name", [*DIFFERENTIABLE, "softmax", "log_softmax"])
@pytest.mark.parametrize("layout", oracle.LAYOUTS)
def test_gradients_of_layouts_are_the_same_bits(name, layout, rng):
    x = rng.normal(size=(9, 8, 33)).astype(np.float32)
    for axis in range(3):
        op = getattr(mg, name)
        a = mg.tensor(x, requires_grad=True)
        y = op(a, axis)
        g = rng.normal(size=y.shape).astype(np.float32)
        (want,) = mg.grad(y, a, mg.tensor(g))
        b = oracle.tensor_in_layout(x, layout, True)
        (got,) = mg.grad(op(b, axis), b, oracle.tensor_in_layout(g, layout))
        oracle.assert_same(got.numpy(), want.numpy())


@pytest.mark.parametrize("name", [*DIFFERENTIABLE, "argmax", "all"])
def test_stride_zero(name, rng):
    x = rng.normal(size=(5, 1, 4))
    spread = mg.tensor(x).expand(5, 6, 4)
    for axis in (None, 0, 1, 2):
        got = getattr(mg, name)(spread, dim=axis)
        want = getattr(mg, name)(mg.tensor(np.broadcast_to(x, (5, 6, 4)).copy()), dim=axis)
        oracle.assert_same(got.numpy(), want.numpy())


@settings(max_examples=150)
@given(data=st.data())
def test_any_strides(data):
    """Views of any strides over any axes: whole numbers, so that every order of summing agrees."""
    shape = data.draw(hnp.array_shapes(min_dims=0, max_dims=5, min_side=1, max_side=6))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    a, x = oracle.any_view(data, shape, lambda s: rng.integers(-9, 9, s).astype(np.float32))
    axes = tuple(data.draw(st.sets(st.integers(0, len(shape) - 1)))) if shape else ()
    for name in ("sum", "amax", "amin", "all", "any"):
        want = NUMPY[name](a, axis=axes)
        oracle.assert_same(getattr(mg, name)(x, axes).numpy() + 0, np.asarray(want) + 0)
    if shape:
        axis = data.draw(st.integers(0, len(shape) - 1))
        oracle.assert_same(x.argmax(axis).numpy(), np.asarray(a.argmax(axis)))
        np.testing.assert_allclose(
            x.softmax(axis).numpy(), special.softmax(a, axis), rtol=1e-5, atol=1e-7
        )


@settings(max_examples=60)
@given(data=st.data())
def test_long_axes_among_short_ones(data):
    """The block sizes inside the kernels: axes around powers of two, reduced and not."""
    sides = st.sampled_from([1, 2, 3, 7, 8, 16, 17, 31, 33, 63, 65, 127, 129, 255, 257, 1023, 1025])
    shape = tuple(data.draw(st.lists(sides, min_size=1, max_size=3)))
    while math.prod(shape) > 200_000:
        shape = shape[:-1]
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    dtype = data.draw(st.sampled_from([np.float32, np.float64]))
    a = rng.integers(-9, 9, shape).astype(dtype)
    order = data.draw(st.permutations(range(len(shape))))
    x = mg.tensor(a.transpose(order)).permute(*np.argsort(order).tolist())
    axes = tuple(data.draw(st.sets(st.integers(0, len(shape) - 1))))
    for name in ("sum", "amax", "amin"):
        want = NUMPY[name](a, axis=axes)
        oracle.assert_same(getattr(mg, name)(x, axes).numpy() + 0, np.asarray(want) + 0)
    count = math.prod(shape[d] for d in axes)
    if count > 1:
        want = a.astype(np.float64).var(axes, ddof=1)
        np.testing.assert_allclose(x.var(axes).numpy(), want, rtol=1e-5, atol=1e-6)
    axis = data.draw(st.integers(0, len(shape) - 1))
    oracle.assert_same(x.argmin(axis).numpy(), np.asarray(a.argmin(axis)))


@pytest.mark.parametrize("width", [64, 128, 200, 300, 1000, 1100])
@pytest.mark.parametrize("name", ["sum", "norm", "amax", "amin"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=["float32", "float64"])
def test_wide_columns_are_joined_as_rows_are(name, width, dtype, rng):
    """Many columns go side by side while they are numbers; zeros show who comes first."""
    x = rng.normal(size=(400, width)).astype(dtype)
    x[:, ::5] = np.copysign(0, x[:, ::5])
    for odd in ([], [np.inf, -np.inf], [np.nan]):  # the sum of the second is no number either
        for value in odd:
            at = rng.integers(0, 400), rng.integers(0, width)
            x[at] = value
        columns = getattr(mg, name)(mg.tensor(x), dim=0).numpy()
        rows = getattr(mg, name)(mg.tensor(np.ascontiguousarray(x.T)), dim=1).numpy()
        oracle.assert_same(columns, rows)
        if name in ("amax", "amin"):
            oracle.assert_same(columns + 0, NUMPY[name](x, axis=0) + 0)


# ---- NaN and infinities --------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 2, 5, 16, 33, 1000, 1024, 5000])
@pytest.mark.parametrize("name", ["sum", "mean", "prod", "amax", "amin", "var", "logsumexp"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=["float32", "float64"])
def test_nan_is_seen_wherever_it_stands(name, n, dtype, rng):
    for at in {0, n // 3, n - 1}:
        x = rng.normal(size=n).astype(dtype)
        x[at] = np.nan
        assert math.isnan(getattr(mg, name)(mg.tensor(x)).item()), at
        rows = np.stack([x, np.ones(n, dtype)])
        for axis, table in ((1, rows), (0, np.ascontiguousarray(rows.T))):
            got = getattr(mg, name)(mg.tensor(table), axis).numpy()
            assert np.isnan(got[0])
            assert not np.isnan(got[1]) or (name == "var" and n == 1)


def test_infinities():
    inf, nan = math.inf, math.nan
    for values in ([1.0, inf, 2.0], [inf, -inf, 1.0], [-inf, -inf, 3.0]):
        x = np.array(values)
        with np.errstate(all="ignore"):
            for name in ("sum", "mean", "prod", "amax", "amin"):
                np.testing.assert_array_equal(
                    getattr(mg, name)(mg.tensor(x)).item(), NUMPY[name](x, axis=None)
                )
    assert math.isnan(mg.var(mg.tensor([1.0, inf, 2.0])).item())
    assert mg.logsumexp(mg.tensor([1.0, inf, 2.0])).item() == inf
    assert math.isnan(mg.logsumexp(mg.tensor([1.0, inf, nan])).item())


# ---- empties -------------------------------------------------------------------------------------

OF_NOTHING = {
    "sum": 0.0,
    "prod": 1.0,
    "mean": math.nan,
    "logsumexp": -math.inf,
    "all": True,
    "any": False,
}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_extrema_of_rows_of_every_length(dtype, rng):
    """The last step of a row sees some elements twice, and nothing beside the row."""
    for n in range(1, 300):
        x = rng.standard_normal((3, n + 7)).astype(dtype)
        x[:, 0] = np.nan
        x[:, n + 1 :] = np.nan
        x[2, rng.integers(1, n + 1, 5)] = np.inf, -np.inf, np.inf, -np.inf, 0
        row = x[:, 1 : n + 1]
        t = mg.from_numpy(x)[:, 1 : n + 1]
        np.testing.assert_array_equal(t.amax(1).numpy(), row.max(1))
        np.testing.assert_array_equal(t.amin(1).numpy(), row.min(1))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [127, 128, 300, 1024, 8193])
def test_rows_beside_others_are_as_rows_alone(n, dtype, rng):
    """Some are read four at a time: each has the same bits, and keeps its NaN to itself."""
    x = rng.standard_normal((7, n)).astype(dtype)
    x[2, n // 2] = np.nan
    x[5, [3, -1]] = np.inf, -np.inf
    x[6] = np.where(x[6] > 0, -0.0, 0.0)
    for call in (mg.sum, mg.mean, mg.amax, mg.amin, mg.linalg.norm):
        together = call(mg.tensor(x), axis=1).numpy()
        alone = np.stack([call(mg.tensor(row), axis=0).numpy() for row in x])
        assert together.tobytes() == alone.tobytes()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(5, 128), (6, 257), (1, 16387), (3, 20001), (140003,)])
def test_the_first_place_wins_wherever_rows_are_cut(shape, dtype, rng):
    x = rng.integers(-9, 9, shape).astype(dtype)  # many ties
    last, numbers = x.copy(), x.copy()
    last[..., -1], last[..., 0] = 50, -50
    numbers[..., [x.shape[-1] // 3, x.shape[-1] - 2]] = np.nan
    for case in (x, last, -last, numbers):
        for name in ("argmax", "argmin"):
            found = getattr(mg, name)(mg.tensor(case), axis=-1).numpy()
            assert np.array_equal(found, getattr(np, name)(case, axis=-1))


@pytest.mark.parametrize("name", OF_NOTHING)
def test_of_nothing(name):
    x = mg.zeros(3, 0)
    np.testing.assert_array_equal(getattr(mg, name)(x).numpy(), OF_NOTHING[name])
    np.testing.assert_array_equal(getattr(mg, name)(x, 1).numpy(), [OF_NOTHING[name]] * 3)
    assert getattr(mg, name)(x, 0).shape == (0,)
    assert getattr(mg, name)(x, 0, True).shape == (1, 0)


@pytest.mark.parametrize("name", ["sum", "prod", "mean", "logsumexp", "amax", "amin", "var"])
def test_gradient_of_nothing_has_its_shape(name):
    for graph in (False, True):
        x = mg.zeros(3, 0, requires_grad=True)
        y = getattr(mg, name)(x, 0)
        assert y.shape == (0,)
        (g,) = mg.grad(y, x, mg.zeros(0), create_graph=graph)
        assert g.shape == (3, 0)
    if name in ("amax", "amin"):
        return
    x = mg.zeros(0, requires_grad=True)
    (g,) = mg.grad(getattr(mg, name)(x), x)
    assert g.shape == (0,)


@pytest.mark.parametrize("name", ["amax", "amin", "argmax", "argmin"])
def test_extremum_of_nothing_is_refused(name):
    with pytest.raises(ValueError, match=r"empty dim 1 of shape \(3, 0\)"):
        getattr(mg, name)(mg.zeros(3, 0), 1)
    with pytest.raises(ValueError, match="no result for an empty"):
        getattr(mg, name)(mg.zeros(0))
    assert getattr(mg, name)(mg.zeros(3, 0), 0).shape == (0,)
    assert getattr(mg, name)(mg.zeros(0, 3), 1).shape == (0,)


@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
@pytest.mark.parametrize("shape", [(0,), (3, 0), (0, 3)], ids=str)
def test_softmax_of_nothing(name, shape):
    x = mg.zeros(shape, requires_grad=True)
    y = getattr(mg, name)(x, -1)
    assert y.shape == shape
    (g,) = mg.grad(y, x, mg.ones(shape))
    assert g.shape == shape


# ---- ties ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("graph", [False, True])
def test_ties_share_the_gradient(graph):
    x = mg.tensor([[1.0, 3.0, 3.0], [2.0, 2.0, 2.0]], requires_grad=True)
    (g,) = mg.grad(x.amax(1), x, mg.tensor([2.0, 3.0]), create_graph=graph)
    np.testing.assert_array_equal(g.detach().numpy(), [[0, 1, 1], [1, 1, 1]])
    (g,) = mg.grad(x.amin(), x, create_graph=graph)
    np.testing.assert_array_equal(g.detach().numpy(), [[1, 0, 0], [0, 0, 0]])
    (g,) = mg.grad(x.max(), x, create_graph=graph)
    np.testing.assert_array_equal(g.detach().numpy(), [[0, 0.5, 0.5], [0, 0, 0]])


def test_nans_share_the_gradient_of_a_nan():
    x = mg.tensor([1.0, math.nan, 5.0, math.nan], requires_grad=True)
    for graph in (False, True):
        (g,) = mg.grad(x.amax(), x, create_graph=graph)
        np.testing.assert_array_equal(g.detach().numpy(), [0, 0.5, 0, 0.5])


def test_max_with_dim_gives_the_gradient_to_one_index():
    x = mg.tensor([[1.0, 3.0, 3.0], [2.0, 2.0, 2.0]], requires_grad=True)
    values, indices = x.max(1)
    np.testing.assert_array_equal(values.detach().numpy(), [3, 2])
    np.testing.assert_array_equal(indices.numpy(), [1, 0])
    (g,) = mg.grad(values, x, mg.tensor([2.0, 3.0]))
    np.testing.assert_array_equal(g.numpy(), [[0, 2, 0], [3, 0, 0]])
    pair = x.min(dim=0, keepdim=True)
    np.testing.assert_array_equal(pair.values.detach().numpy(), [[1, 2, 2]])
    np.testing.assert_array_equal(pair.indices.numpy(), [[0, 1, 1]])


@pytest.mark.parametrize("name", ["argmax", "argmin"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, np.bool_])
@settings(max_examples=30)
@given(data=st.data())
def test_arg_extremum_as_numpy(name, dtype, data):
    """The first of ties, and the first NaN before everything."""
    shape = data.draw(hnp.array_shapes(max_dims=3, max_side=40))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    values = (
        [0, 1, 2] if dtype in (np.int64, np.bool_) else [0.0, -0.0, 1, -2, np.inf, -np.inf, np.nan]
    )
    weights = None if len(values) == 3 else [0.2, 0.2, 0.2, 0.2, 0.09, 0.09, 0.02]
    x = rng.choice(values, shape, p=weights).astype(dtype)
    for axis in (None, *range(-len(shape), len(shape))):
        for keep in (False, True):
            got = getattr(mg, name)(mg.tensor(x), axis, keep)
            want = getattr(np, name)(x, axis=axis, keepdims=keep)
            oracle.assert_same(got.numpy(), np.asarray(want))


def test_argmax_never_requires_grad():
    x = mg.tensor([1.0, 2.0], requires_grad=True)
    assert not x.argmax().requires_grad
    assert x.argmax().dtype is mg.int64


# ---- what is made of other reductions ------------------------------------------------------------


def test_dtype_is_cast_to_first():
    x = mg.tensor([1.5, 2.5], requires_grad=True)
    for f, want in ((mg.sum, 4.0), (mg.mean, 2.0), (mg.prod, 3.75), (mg.nansum, 4.0)):
        y = f(x, dtype=mg.float64)
        assert y.dtype is mg.float64
        assert y.item() == want
        assert mg.grad(y, x)[0].dtype is mg.float32
    assert mg.sum(x, dtype=mg.int64).item() == 3
    assert mg.mean(mg.tensor([1, 2]), dtype=mg.float64).dtype is mg.float64
    assert mg.norm(x, dtype=mg.float64).dtype is mg.float64


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, np.bool_])
def test_counts_and_extrema(dtype, rng):
    x = rng.integers(-2, 3, (4, 5)).astype(dtype)
    for axis in (None, 0, (0, 1), -1):
        got = mg.count_nonzero(mg.tensor(x), axis).numpy()
        oracle.assert_same(got, np.asarray(np.count_nonzero(x, axis)))
        low, high = mg.aminmax(mg.tensor(x), dim=axis, keepdim=True)
        oracle.assert_same(low.numpy(), x.min(axis, keepdims=True))
        oracle.assert_same(high.numpy(), x.max(axis, keepdims=True))
        if axis != -1:
            oracle.assert_same(mg.max(mg.tensor(x), (0, 1)).numpy(), np.asarray(x.max()))
    assert mg.count_nonzero(mg.tensor([math.nan, 0.0, -0.0])).item() == 1
    assert mg.aminmax(mg.tensor([3.0, 1.0])).max.item() == 3


def test_max_in_all_forms():
    x, y = mg.tensor([[1.0, 5.0], [7.0, 2.0]]), mg.tensor([3.0, 3.0])
    assert mg.max(x).item() == 7
    assert mg.max(x, y).tolist() == mg.max(x, other=y).tolist() == [[3, 5], [7, 3]]
    assert mg.min(x, y).tolist() == [[1, 3], [3, 2]]
    assert mg.max(x, keepdim=True).shape == mg.min(x, keepdims=True).shape == (1, 1)
    assert mg.max(x, 1).indices.tolist() == x.max(axis=1)[1].tolist() == [1, 0]
    assert mg.max(mg.tensor([[1, 4]]), 1).values.dtype is mg.int64


@pytest.mark.parametrize("p", [0, 0.5, 1, 1.5, 2, 3, 4, math.inf, -math.inf, -1, -2.5])
@pytest.mark.parametrize("axes", [None, 0, (0, 2), (2, 1)], ids=str)
def test_norms(p, axes, rng):
    x = rng.uniform(0.5, 2, (2, 3, 2)) * rng.choice([-1, 1], (2, 3, 2))
    size = np.abs(x)
    if p == 0:
        want = (x != 0).sum(axes).astype(float)
    elif abs(p) == math.inf:
        want = (size.max if p > 0 else size.min)(axes)
    else:
        want = (size**p).sum(axes) ** (1 / p)
    for f in (mg.norm, mg.vector_norm):
        np.testing.assert_allclose(f(mg.tensor(x), p, axes).numpy(), want, rtol=1e-13)
    kept = mg.norm(mg.tensor(x), p, axes, True).numpy()
    np.testing.assert_allclose(kept.reshape(want.shape), want, rtol=1e-13)
    oracle.check_gradients(lambda t: mg.vector_norm(t, p, axes), [x], rng)


@pytest.mark.parametrize("layout", oracle.LAYOUTS)
@pytest.mark.parametrize("p", [1, 2, 3, math.inf])
def test_norms_of_layouts_are_the_same_bits(p, layout, rng):
    x = rng.normal(size=(9, 1, 33)).astype(np.float32)
    for axis in range(3):
        a, b = mg.tensor(x, requires_grad=True), oracle.tensor_in_layout(x, layout, True)
        y, z = a.norm(p, axis), b.norm(p, axis)
        oracle.assert_same(z.detach().numpy(), y.detach().numpy())
        g = rng.normal(size=y.shape).astype(np.float32)
        (want,) = mg.grad(y, a, mg.tensor(g))
        (got,) = mg.grad(z, b, oracle.tensor_in_layout(g, layout))
        oracle.assert_same(got.numpy(), want.numpy())


def test_errors_of_norm():
    with pytest.raises(ValueError, match=r"\[norm\] 'nuc' is a norm of matrices"):
        mg.norm(mg.ones(2, 2, 2), "nuc")
    with pytest.raises(ValueError, match=r"\[norm\] 'max' is no vector norm"):
        mg.norm(mg.ones(2, 2), "max")


def test_the_nuclear_norm_by_its_name():
    x = np.random.default_rng(0).standard_normal((3, 4, 2))
    want = np.linalg.norm(x, "nuc", axis=(0, 2))
    np.testing.assert_allclose(mg.norm(mg.tensor(x), "nuc", (0, 2)).numpy(), want)
    kept = mg.tensor(x).norm("nuc", (0, 2), keepdim=True)
    assert kept.shape == (1, 4, 1)
    t = mg.tensor(x[0], requires_grad=True)
    (g,) = mg.grad(t.norm("nuc"), t)
    u, _, vt = np.linalg.svd(x[0], full_matrices=False)
    np.testing.assert_allclose(g.numpy(), u @ vt)
    with pytest.raises(ValueError, match="the order is NaN"):
        mg.norm(mg.ones(2), math.nan)
    assert mg.norm(mg.tensor([3, 4])).item() == 5
    assert mg.norm(mg.tensor([math.nan, 0.0]), 0).item() == 1
    assert mg.norm(mg.ones(2), "fro", 0).item() == mg.norm(mg.ones(2), None).item()


@pytest.mark.parametrize("shape", [(3, 3), (2, 5), (5, 2), (0, 3), (1, 1)], ids=str)
def test_trace(shape, rng):
    x = rng.normal(size=shape)
    for layout in oracle.LAYOUTS:
        got = mg.trace(oracle.tensor_in_layout(x, layout)).item()
        assert got == pytest.approx(np.trace(x), rel=1e-14)
    oracle.check_gradients(mg.trace, [x], rng)
    assert mg.trace(mg.tensor([[1, 2], [3, 4]])).item() == 5
    with pytest.raises(ValueError, match=r"\[trace\] of a matrix, not of shape \(2,\)"):
        mg.trace(mg.ones(2))


# ---- variance ------------------------------------------------------------------------------------


def test_var_in_all_forms(rng):
    x = rng.normal(size=(3, 4))
    t = mg.tensor(x)
    for f, g in ((mg.var, np.var), (mg.std, np.std)):
        for got, want in (
            (f(t), g(x, ddof=1)),
            (f(t, False), g(x)),
            (f(t, unbiased=False), g(x)),
            (f(t, 0), g(x, 0, ddof=1)),
            (f(t, 0, False), g(x, 0)),
            (f(t, (0, 1), True, True), g(x, (0, 1), ddof=1, keepdims=True)),
            (f(t, 1, correction=2, keepdim=True), g(x, 1, ddof=2, keepdims=True)),
            (f(t, axis=1, ddof=0, keepdims=True), g(x, 1, keepdims=True)),
        ):
            assert got.shape == want.shape
            np.testing.assert_allclose(got.numpy(), want, rtol=1e-14)
    for f, g in ((mg.var_mean, np.var), (mg.std_mean, np.std)):
        spread, mean = f(t, 1, correction=0, keepdim=True)
        np.testing.assert_allclose(spread.numpy(), g(x, 1, keepdims=True), rtol=1e-14)
        np.testing.assert_allclose(mean.numpy(), x.mean(1, keepdims=True), rtol=1e-14)
    with pytest.raises(TypeError, match=r"\[std\] give one of correction, ddof and unbiased"):
        mg.std(t, unbiased=True, correction=0)


@pytest.mark.parametrize("ddof", [0, 1, 2, 0.5])
def test_var_correction(ddof, rng):
    x = rng.normal(size=(4, 5))
    want = ((x - x.mean(0)) ** 2).sum(0) / (4 - ddof)
    for given_as in ({"correction": ddof}, {"ddof": ddof}):
        got = mg.var(mg.tensor(x), 0, **given_as).numpy()
        np.testing.assert_allclose(got, want, rtol=1e-14)
    oracle.check_gradients(lambda t: t.var(0, correction=ddof), [x[:, :2]], rng)


@pytest.mark.parametrize("axis", [None, 0, 1, (0, 2), (0, 1, 2)], ids=str)
def test_the_mean_of_integers_whose_sum_is_beyond_int64(axis, rng):
    """And where large ones cancel, it is that of the exact sum."""
    x = rng.integers(2**62, 2**63 - 1, (5, 8, 3)) * rng.choice([-1, 1, 1], (5, 8, 3))
    x[:, ::2] = 2**62 - rng.integers(0, 5, (5, 4, 3))
    exact = np.array([float(v) for v in x.astype(object).sum(axis, keepdims=True).ravel()])
    got = mg.mean(mg.tensor(x), axis, keepdim=True).numpy()
    np.testing.assert_allclose(got.ravel(), exact / (x.size / exact.size), rtol=1e-6)
    assert mg.tensor([2**62 + 1, -(2**62)]).mean().item() == 0.5
    assert mg.tensor([-(2**63)] * 3).mean().item() == -(2.0**63)
    assert mg.tensor([2**63 - 1] * 1000).mean().item() == 2.0**63


def test_var_of_a_large_mean():
    """Two passes: the mean's size does not eat the digits of the variance."""
    x = np.float32(10000) + np.linspace(-1, 1, 4096, dtype=np.float32)
    want = x.astype(np.float64).var(ddof=1)
    for shape, axis in (((4096,), 0), ((64, 64), (0, 1))):
        got = mg.var(mg.tensor(x.reshape(shape)), axis).item()
        assert got == pytest.approx(want, rel=3e-7)
    columns = np.repeat(x[:, None], 20, 1)
    np.testing.assert_allclose(mg.var(mg.tensor(columns), 0).numpy(), want, rtol=3e-7)


@pytest.mark.parametrize("axes", [0, 2, (0, 2), (0, 1, 2)], ids=str)
def test_var_about_a_large_mean_and_an_outlier(axes, rng):
    x = rng.normal(1e4, 1, (40, 3, 300)).astype(np.float32)
    np.testing.assert_allclose(
        mg.var(mg.tensor(x), axes).numpy(), x.astype(np.float64).var(axes, ddof=1), rtol=1e-6
    )
    x[0, 0, 0] = 0
    np.testing.assert_allclose(
        mg.var(mg.tensor(x), axes).numpy(), x.astype(np.float64).var(axes, ddof=1), rtol=1e-6
    )


def test_var_of_what_overflows():
    x = mg.tensor([3e38, 3e38])
    assert mg.var(x).item() == 0  # where the sum that NumPy takes overflows
    assert mg.var(mg.tensor([1e30, -1e30])).item() == math.inf
    assert mg.var(mg.full((1000,), 0.1)).item() < 1e-20


# ---- accuracy of sums ----------------------------------------------------------------------------


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("layout", ["contiguous", "transposed", "reversed"])
def test_long_float32_sums_along_every_axis(axis, layout, rng):
    """Pairwise in blocks: the error of n terms of one sign grows with log n, not with n."""
    shape = [3, 3, 3]
    shape[axis] = 100_000
    x = rng.uniform(0, 1, shape).astype(np.float32)
    got = oracle.tensor_in_layout(x, layout).sum(axis).numpy()
    exact = np.apply_along_axis(math.fsum, axis, x.astype(np.float64))
    assert np.abs(got / exact - 1).max() < 12 * 2.0**-24
    mean = oracle.tensor_in_layout(x, layout).mean(axis).numpy()
    assert np.abs(mean / (exact / 100_000) - 1).max() < 13 * 2.0**-24
    var = oracle.tensor_in_layout(x, layout).var(axis, correction=0).numpy()
    assert np.abs(var / x.astype(np.float64).var(axis) - 1).max() < 13 * 2.0**-24


def test_a_million_tenths():
    assert mg.full((1_000_000,), 0.1).sum().item() == pytest.approx(100000.0, rel=3e-7)
    assert mg.full((1_000_000, 2), 0.1).sum(0).tolist() == pytest.approx([100000.0] * 2, rel=3e-7)


# ---- elements that share memory ------------------------------------------------------------------

REDUCED = {
    "sum": mg.sum,
    "mean": mg.mean,
    "prod": mg.prod,
    "amax": mg.amax,
    "amin": mg.amin,
    "all": mg.all,
    "any": mg.any,
    "var": mg.var,
    "std": mg.std,
    "norm": lambda x, *dim: mg.norm(x, 2, *dim),
    "logsumexp": lambda x, dim=tuple(range(9)): mg.logsumexp(x, dim[: x.ndim]),
    "argmax": lambda x, dim=None: mg.argmax(x, dim if dim is None else dim[0]),
    "argmin": lambda x, dim=None: mg.argmin(x, dim if dim is None else dim[0]),
    "count_nonzero": mg.count_nonzero,
}
EXPANDED = (
    ((1,), (70_001,)),
    ((1, 3), (9000, 3)),
    ((3, 1), (3, 9000)),
    ((2, 1, 3), (2, 300, 3)),
    ((1, 2, 1), (5, 2, 7)),
    ((1, 4, 1, 2), (3, 4, 70, 2)),
    ((7, 1), (7, 0)),
)


def steps_of(x):
    """A view whose elements are neighbours along no axis."""
    wide = np.zeros(tuple(2 * n for n in x.shape), x.dtype)
    wide[tuple(slice(None, None, 2) for _ in x.shape)] = x
    return mg.from_numpy(wide)[tuple(slice(None, None, 2) for _ in x.shape)]


@pytest.mark.parametrize("name", REDUCED)
@pytest.mark.parametrize(("own", "shape"), EXPANDED)
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, np.bool_])
def test_expanded_arrays_are_reduced_as_their_copies(name, own, shape, dtype, rng):
    """To the same bits, over all axes and over each."""
    drawn = rng.uniform(-3, 3, own)
    values = drawn > 0 if dtype is np.bool_ else drawn.astype(dtype)
    for x in (mg.tensor(values).expand(shape), steps_of(values).expand(shape)):
        for dim in (None, *[(d,) for d in range(len(shape))], (0, len(shape) - 1)):
            rest = () if dim is None else (tuple(sorted(set(dim))),)
            results = []
            for y in (x, x.clone()):
                try:
                    results.append(REDUCED[name](y, *rest).numpy())
                except (TypeError, ValueError) as error:
                    results.append(str(error))
            if isinstance(results[0], str) or isinstance(results[1], str):
                assert results[0] == results[1]
            else:
                oracle.assert_same(*results)


@pytest.mark.parametrize("name", [n for n in REDUCED if n != "count_nonzero"])  # of truth values
def test_expanded_arrays_are_not_copied(name):
    """They may be larger than any memory."""
    n = 2**22
    one, integer, truth = (mg.ones(1, 1, dtype=t) for t in (mg.float32, mg.int64, mg.bool))
    for x in (one, integer, truth):
        if name in ("var", "std", "norm", "logsumexp") and x is not one:
            continue
        y = x.expand(2, n)
        room = 2 * n  # bytes, of which elements of one would take as many
        before = lib.mg_cache_bytes() + lib.mg_live_bytes()
        REDUCED[name](y)
        REDUCED[name](y, (1,))
        assert lib.mg_cache_bytes() + lib.mg_live_bytes() - before < room / 16


def test_what_is_beyond_counting_is_refused():
    for f in (mg.sum, mg.var, mg.logsumexp):
        with pytest.raises(MemoryError, match="no memory for 140737488355328 bytes"):
            f(mg.ones(1).expand(2**45), 0)
    assert mg.ones(1, dtype=mg.int64).expand(2**45).sum().item() == 2**45
    assert (
        mg.full((1,), 3).expand(2**40).prod().item()
        == (pow(3, 2**40, 2**64) + 2**63) % 2**64 - 2**63
    )


# ---- errors --------------------------------------------------------------------------------------

REDUCTIONS = [*NUMPY]


@pytest.mark.parametrize("name", REDUCTIONS)
def test_wrong_axes(name):
    x, op = mg.ones(2, 3), getattr(mg, name)
    with pytest.raises(
        IndexError, match=rf"\[{name}\] dim 2 is out of range for 2 dimensions: use -2\.\.1"
    ):
        op(x, 2)
    with pytest.raises(IndexError, match="dim -3 is out of range"):
        op(x, (0, -3))
    with pytest.raises(ValueError, match="dim 1 is given twice"):
        op(x, (1, -1))
    with pytest.raises(TypeError, match="dim must be an integer, not float"):
        op(x, 1.0)
    if name not in ("var", "std"):  # True would be `unbiased` there
        with pytest.raises(TypeError, match="dim must be an integer, not bool"):
            op(x, True)
    with pytest.raises(TypeError, match="unexpected argument 'axes'"):
        op(x, axes=1)


KEEPING = [
    *["sum", "mean", "prod", "nansum", "nanmean", "logsumexp", "amax", "amin", "max", "min"],
    *["argmax", "argmin", "all", "any", "count_nonzero", "median", "nanmedian", "norm"],
    *["vector_norm", "var", "std", "var_mean", "std_mean", "quantile", "nanquantile", "kthvalue"],
]


@pytest.mark.parametrize("name", KEEPING)
def test_a_second_dim_is_not_taken_for_keepdim(name):
    """``x.sum(0, 1)`` would be one dimension, and kept, where two are meant."""
    number = {"norm": (2,), "vector_norm": (2,), "quantile": (0.5,), "nanquantile": (0.5,)}
    args = (mg.ones(2, 3), *number.get(name, ()), *((1,) if name == "kthvalue" else ()), 0)
    f = getattr(mg, name)
    with pytest.raises(TypeError, match=rf"^\[{name}\] (keepdim|unbiased) must be .*dim=\(0, 1\)"):
        f(*args, 1)
    for kept in ({"keepdim": True}, {"keepdim": np.True_}, {"keepdims": 1}):
        y = f(*args, **kept)
        assert (y if isinstance(y, mg.Tensor) else y[0]).shape == (1, 3)


def test_a_second_dim_is_not_taken_for_keepdim_by_linalg():
    x = mg.ones(2, 3)
    for f, args in ((mg.linalg.norm, (None, 0)), (mg.linalg.matrix_norm, ("fro", (0, 1)))):
        with pytest.raises(TypeError, match=r"norm\] keepdim must be True or False, not int"):
            f(x, *args, 1)
    with pytest.raises(TypeError, match=r"^\[aminmax\] keepdim must be True or False, not int"):
        mg.aminmax(x, dim=0, keepdim=1)
