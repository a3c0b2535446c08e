"""Running sums, products and extrema, and masked softmax: values, layouts, derivatives."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import oracle
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import minigrad as mg
from minigrad.ops import scan as rows

INF, NAN = math.inf, math.nan


def _logcumsumexp(x, axis):
    return np.logaddexp.accumulate(x.astype(np.longdouble), axis)


NUMPY = {
    "cumsum": np.cumsum,
    "cumprod": np.cumprod,
    "logcumsumexp": _logcumsumexp,
    "cummax": np.maximum.accumulate,
    "cummin": np.minimum.accumulate,
}
SHAPES = [(1,), (7,), (3, 4), (2, 1, 5), (4, 130), (130, 3), (2, 3, 2, 3)]


def scan(name, x, axis):
    """The values of a scan, of one that has indices too."""
    out = getattr(mg, name)(x, axis)
    return out.values if name in ("cummax", "cummin") else out


@pytest.mark.parametrize("name", NUMPY)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=["float32", "float64"])
def test_values_along_every_axis(name, shape, dtype, rng):
    x = rng.uniform(0.5, 1.5, shape).astype(dtype) * rng.choice([-1, 1], shape).astype(dtype)
    for axis in range(-len(shape), len(shape)):
        got = scan(name, mg.tensor(x), axis)
        assert got.numpy().dtype == dtype
        want = NUMPY[name](x.astype(np.longdouble), axis)
        eps = np.finfo(dtype).eps
        np.testing.assert_allclose(got.numpy(), want.astype(float), rtol=4 * eps, atol=4 * eps)
        spelled = getattr(mg, name)(mg.tensor(x), axis=axis)
        spelled = spelled.values if name in ("cummax", "cummin") else spelled
        oracle.assert_same(spelled.numpy(), got.numpy())


@pytest.mark.parametrize("dtype", [np.int64, np.bool_])
@pytest.mark.parametrize("name", ["cumsum", "cumprod", "cummax", "cummin"])
def test_integers_and_booleans(name, dtype, rng):
    x = rng.integers(-4, 5, (3, 5)).astype(dtype)
    for axis in (0, 1):
        oracle.assert_same(scan(name, mg.tensor(x), axis).numpy(), NUMPY[name](x, axis=axis))
    big = np.array([2**62, 2**62, 3])
    oracle.assert_same(mg.cumsum(mg.tensor(big), 0).numpy(), np.cumsum(big))


def test_dtype_is_cast_to_first():
    x = mg.tensor([1.7, 2.7], requires_grad=True)
    assert mg.cumsum(x, 0, dtype=mg.int64).tolist() == [1, 3]
    y = mg.cumprod(x, 0, dtype=mg.float64)
    assert y.dtype is mg.float64
    (g,) = mg.grad(y.sum(), x)
    assert g.dtype is mg.float32
    assert mg.logcumsumexp(mg.tensor([0, 0]), 0).dtype is mg.float32


@pytest.mark.parametrize("name", NUMPY)
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_derivatives(name, axis, rng):
    x = rng.permutation(np.linspace(-1.5, 1.5, 12)).reshape(2, 3, 2)  # no ties, no zeros
    oracle.check_gradients(lambda t: scan(name, t, axis), [x], rng)


def test_derivatives_of_a_recurrence(rng):
    a, b = rng.normal(size=(2, 3, 4, 2))
    oracle.check_gradients(lambda a, b: a.apply_row(rows.RECURRENCE, 1, beside=(b,)), [a, b], rng)


def test_a_recurrence_by_hand(rng):
    a, b = rng.normal(size=(2, 5, 3))
    want = b.copy()
    for i in range(1, 5):
        want[i] += a[i] * want[i - 1]
    got = mg.tensor(a).apply_row(rows.RECURRENCE, 0, beside=(mg.tensor(b),))
    np.testing.assert_allclose(got.numpy(), want, rtol=1e-15)


@pytest.mark.parametrize("zeros", [(), (0,), (3,), (1, 4), (0, 2, 4), (0, 1, 2, 3, 4)], ids=str)
def test_cumprod_with_any_number_of_zeros(zeros, rng):
    x = rng.uniform(0.5, 1.5, (5, 2))
    x[list(zeros)] = 0
    oracle.check_gradients(lambda t: mg.cumprod(t, 0), [x], rng, atol=1e-8)


def test_a_third_derivative_of_cumprod():
    """x^n as the product of n equal factors."""
    x = mg.tensor(1.5, mg.float64, requires_grad=True)
    y = mg.cumprod(x.expand(5), 0)[-1]
    for want in (5 * 1.5**4, 20 * 1.5**3, 60 * 1.5**2):
        (y,) = mg.grad(y, x, create_graph=True)
        assert y.item() == pytest.approx(want, rel=1e-14)


# ---- layouts and threads -------------------------------------------------------------------------


@pytest.mark.parametrize("name", NUMPY)
@pytest.mark.parametrize("layout", oracle.LAYOUTS)
def test_layouts_give_the_same_bits(name, layout, rng):
    x = rng.normal(size=(9, 1, 40)).astype(np.float32)
    g = rng.normal(size=x.shape).astype(np.float32)
    for axis in range(3):
        a = mg.tensor(x, requires_grad=True)
        b = oracle.tensor_in_layout(x, layout, True)
        y, z = scan(name, a, axis), scan(name, b, axis)
        oracle.assert_same(z.detach().numpy(), y.detach().numpy())
        (want,) = mg.grad(y, a, mg.tensor(g))
        (got,) = mg.grad(z, b, oracle.tensor_in_layout(g, layout))
        oracle.assert_same(got.numpy(), want.numpy())


@pytest.mark.parametrize("name", NUMPY)
def test_stride_zero(name, rng):
    x = rng.normal(size=(5, 1, 4))
    whole = np.broadcast_to(x, (5, 6, 4)).copy()
    for axis in range(3):
        got = scan(name, mg.tensor(x).expand(5, 6, 4), axis)
        oracle.assert_same(got.numpy(), scan(name, mg.tensor(whole), axis).numpy())


@settings(max_examples=80)
@given(data=st.data())
def test_any_strides(data):
    shape = data.draw(hnp.array_shapes(min_dims=1, max_dims=4, max_side=6))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    dtype = data.draw(st.sampled_from([np.float32, np.float64, np.int64, np.bool_]))
    a, x = oracle.any_view(data, shape, lambda s: rng.integers(-3, 4, s).astype(dtype))
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    for name in ("cumsum", "cumprod", "cummax", "cummin"):
        got = scan(name, x, axis).numpy()
        want = NUMPY[name](a, axis=axis)
        assert got.dtype == want.dtype
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("name", NUMPY)
@pytest.mark.parametrize("shape", [(100_000,), (300, 400), (5, 40_000), (40_000, 5)], ids=str)
def test_any_number_of_threads_gives_the_same_bits(name, shape, rng):
    x = rng.uniform(-1, 1, shape).astype(np.float32)
    before = mg.get_num_threads()
    found = []
    for threads in (1, 3):
        mg.set_num_threads(threads)
        found.append([scan(name, mg.tensor(x), axis).numpy() for axis in range(len(shape))])
    mg.set_num_threads(before)
    for one, three in zip(*found, strict=True):
        oracle.assert_same(one, three)


@pytest.mark.parametrize("shape", [(7,), (100_003,), (3, 70), (40, 3), (2, 40_000), (2, 9, 2)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=["float32", "float64"])
def test_the_gradient_of_cumsum_runs_back(shape, dtype, rng):
    g = rng.integers(-9, 9, shape).astype(dtype)  # whose sums are exact
    for axis in range(len(shape)):
        x = mg.zeros(shape, dtype=mg.tensor(g).dtype, requires_grad=True)
        (got,) = mg.grad(x.cumsum(axis), x, mg.tensor(g))
        oracle.assert_same(got.numpy() + 0, np.flip(np.flip(g, axis).cumsum(axis), axis) + 0)


# ---- accuracy ------------------------------------------------------------------------------------


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("layout", ["contiguous", "transposed", "reversed", "stepped"])
def test_a_long_float32_cumsum(axis, layout, rng):
    shape = [2, 2]
    shape[axis] = 500_000
    x = rng.uniform(0, 1, shape).astype(np.float32)
    got = mg.cumsum(oracle.tensor_in_layout(x, layout), axis).numpy()
    oracle.assert_ulps(got, x.astype(np.longdouble).cumsum(axis), 0.501)


def test_a_long_float64_cumsum(rng):
    """Exact sums in fractions; the rounding error is carried along."""
    x = rng.uniform(0, 1, 20_000)
    exact, total = [], Fraction(0)
    for value in x:
        total += Fraction(value)
        exact.append(float(total))
    got = mg.cumsum(mg.tensor(x), 0).numpy()
    assert np.max(np.abs(got - exact) / np.spacing(exact)) <= 1
    assert np.mean(got == exact) > 0.99


def test_cancellation_in_a_cumsum():
    x = np.array([1e16, 1.0, 1.0, -1e16, 1.0])
    assert mg.cumsum(mg.tensor(x), 0).tolist()[-2:] == [2.0, 3.0]


@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=["float32", "float64"])
def test_a_long_logcumsumexp(dtype, rng):
    x = rng.uniform(-30, 30, 20_000).astype(dtype)
    got = mg.logcumsumexp(mg.tensor(x), 0).numpy()
    oracle.assert_ulps(got[100:], _logcumsumexp(x, 0)[100:], 3)


# ---- NaN, infinities, nothing --------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=["float32", "float64"])
@settings(max_examples=40)
@given(data=st.data())
def test_special_values(dtype, data):
    special = st.sampled_from([0.0, -0.0, 1.0, -2.0, 3.0, INF, -INF, NAN])
    values = data.draw(st.lists(special, min_size=1, max_size=9))
    x = np.array(values, dtype)
    for name in NUMPY:
        with np.errstate(all="ignore"):
            want = NUMPY[name](x, 0).astype(dtype)
        for wide in (x, np.stack([x] * 3, 1)):
            got = scan(name, mg.tensor(wide), 0).numpy()
            got = got if got.ndim == 1 else got[:, 1]
            np.testing.assert_allclose(got, want, rtol=1e-6, err_msg=name)


@settings(max_examples=40)
@given(data=st.data())
def test_places_of_running_extrema(data):
    """The first of ties; the first NaN stays."""
    values = st.sampled_from([0.0, -0.0, 1.0, -2.0, INF, NAN])
    x = np.array(data.draw(st.lists(values, min_size=1, max_size=9)))
    for name, argument in (("cummax", np.argmax), ("cummin", np.argmin)):
        want = [argument(x[: i + 1]) for i in range(len(x))]
        assert getattr(mg, name)(mg.tensor(x), 0).indices.tolist() == want


@pytest.mark.parametrize("name", NUMPY)
@pytest.mark.parametrize("shape", [(0,), (3, 0), (0, 3)], ids=str)
def test_nothing(name, shape):
    for axis in range(len(shape)):
        x = mg.zeros(shape, requires_grad=True)
        for graph in (False, True):
            y = scan(name, x, axis)
            assert y.shape == shape
            (g,) = mg.grad(y, x, mg.zeros(shape), create_graph=graph)
            assert g.shape == shape


@pytest.mark.parametrize("name", NUMPY)
def test_a_number_is_a_line_of_one(name):
    x = mg.tensor(3.0, requires_grad=True)
    for dim in (0, -1):
        y = scan(name, x, dim)
        assert y.shape == ()
        assert y.item() == 3
        assert mg.grad(y, x)[0].item() == 1
    with pytest.raises(IndexError, match="dim 1 is out of range"):
        scan(name, x, 1)


@pytest.mark.parametrize("name", NUMPY)
def test_errors(name):
    op = getattr(mg, name)
    with pytest.raises(TypeError, match=rf"\[{name}\] a dim is needed"):
        op(mg.ones(2))
    with pytest.raises(IndexError, match=rf"\[{name}\] dim 2 is out of range for 1 dim"):
        op(mg.ones(2), 2)
    with pytest.raises(TypeError, match=rf"\[{name}\] dim must be an integer"):
        op(mg.ones(2), 0.5)
    with pytest.raises(TypeError, match=rf"\[{name}\] expected"):
        op("text", 0)
    with pytest.raises(TypeError, match="unexpected argument 'axes'"):
        op(mg.ones(2), axes=0)


# ---- differences ---------------------------------------------------------------------------------


def test_diff(rng):
    x = rng.normal(size=(3, 5))
    for n in range(4):
        for axis in (0, 1, -1):
            got = mg.diff(mg.tensor(x), n, axis).numpy()
            oracle.assert_same(got, np.diff(x, n, axis))
    beside = rng.normal(size=(3, 2))
    got = mg.diff(mg.tensor(x), 1, 1, mg.tensor(beside), mg.tensor(beside[:, :1]))
    oracle.assert_same(got.numpy(), np.diff(x, 1, 1, beside, beside[:, :1]))
    flags = rng.integers(0, 2, 9).astype(bool)
    oracle.assert_same(mg.diff(mg.tensor(flags)).numpy(), np.diff(flags))
    oracle.check_gradients(lambda t: mg.diff(t, 2, 1), [x], rng)
    assert mg.diff(mg.ones(1)).shape == (0,)
    assert mg.diff(mg.ones(0), 3).shape == (0,)
    with pytest.raises(ValueError, match="n is -1"):
        mg.diff(mg.ones(3), -1)
    with pytest.raises(ValueError, match="a number has no neighbours"):
        mg.diff(mg.tensor(1.0))


# ---- softmax of a part ---------------------------------------------------------------------------


def _masked(x, mask, axis, log):
    kept = np.where(mask, x, -np.inf)
    with np.errstate(all="ignore"):
        total = np.exp(kept).sum(axis, keepdims=True)
        if log:
            return np.where(mask, kept - np.log(total), -np.inf)
        return np.where(mask, np.exp(kept) / total, 0)


@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
@pytest.mark.parametrize("axis", [0, 1])
def test_softmax_where(name, axis, rng):
    x = rng.normal(size=(4, 5))
    mask = rng.uniform(size=(4, 5)) < 0.6
    mask[1] = False
    mask[:, 2] = False
    op, where = getattr(mg, name), mg.tensor(mask)
    got = op(mg.tensor(x), axis, where=where).numpy()
    np.testing.assert_allclose(got, _masked(x, mask, axis, name == "log_softmax"), 1e-14, 1e-15)

    def kept(t):
        return mg.where(where, op(t, axis, where=where), 0.0)

    oracle.check_gradients(kept, [x], rng)


@pytest.mark.parametrize("graph", [False, True])
def test_what_softmax_leaves_out_gets_no_gradient(graph):
    """Nor does a row without any element, to second order too, whatever its values."""
    values = [[1.0, 2.0, NAN], [INF, NAN, 3.0]]
    mask = mg.tensor([[True, True, False], [False, False, False]])
    for op, nothing in ((mg.softmax, 0.0), (mg.log_softmax, -INF)):
        x = mg.tensor(values, mg.float64, requires_grad=True)
        y = op(x, 1, where=mask)
        assert y.tolist()[1] == [nothing] * 3
        assert y.tolist()[0][2] == nothing
        (g,) = mg.grad(y, x, mg.tensor([[1.0, 0, 3], [4, 5, 6]], mg.float64), create_graph=graph)
        assert g.tolist()[1] == [0, 0, 0]
        assert g.tolist()[0][2] == 0
        assert np.isfinite(g.detach().numpy()).all()
        if graph:
            (gg,) = mg.grad(g.square().sum(), x)
            assert np.isfinite(gg.numpy()).all()
            assert gg.tolist()[1] == [0, 0, 0]


def test_softmax_dtype_and_softmin(rng):
    x = rng.normal(size=(2, 3)).astype(np.float32)
    y = mg.softmax(mg.tensor(x), 1, dtype=mg.float64)
    assert y.dtype is mg.float64
    oracle.assert_same(y.numpy(), mg.softmax(mg.tensor(x.astype(np.float64)), 1).numpy())
    assert mg.softmax(mg.tensor([1, 1]), 0, dtype=mg.float32).tolist() == [0.5, 0.5]
    oracle.assert_same(mg.softmin(mg.tensor(x), 1).numpy(), mg.softmax(mg.tensor(-x), 1).numpy())
    oracle.check_gradients(lambda t: mg.softmin(t, 1), [x.astype(float)], rng)


# ---- bounded norms -------------------------------------------------------------------------------


@pytest.mark.parametrize("p", [1, 2, 3.0, float("inf")])
@pytest.mark.parametrize("dim", [0, 1, -1])
def test_renorm_scales_down_to_the_bound(p, dim, rng):
    x = rng.normal(size=(3, 4, 2))
    got = mg.renorm(mg.tensor(x), p, dim, 1.5).numpy()
    lines, made = np.moveaxis(x, dim, 0), np.moveaxis(got, dim, 0)
    for line, out in zip(lines, made, strict=True):
        norm = np.linalg.norm(line.ravel(), p)
        if norm > 1.5:
            np.testing.assert_allclose(out, line * 1.5 / norm, rtol=1e-6)
            assert np.linalg.norm(out.ravel(), p) <= 1.5
        else:
            np.testing.assert_array_equal(out, line)


def test_errors_of_renorm():
    with pytest.raises(ValueError, match=r"\[renorm\] input has 1 dimensions"):
        mg.renorm(mg.ones(3), 2, 0, 1.0)
    with pytest.raises(ValueError, match=r"\[renorm\] p is 0.0 and maxnorm 1.0"):
        mg.renorm(mg.ones(3, 3), 0, 0, 1.0)
    with pytest.raises(TypeError, match=r"\[renorm\] not offered for int64"):
        mg.renorm(mg.ones(3, 3, dtype=mg.int64), 2, 0, 1.0)
