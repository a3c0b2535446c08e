"""Sorting, order statistics, searching and counting: values against NumPy, layouts, derivatives."""

from __future__ import annotations

import math

import numpy as np
import oracle
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import minigrad as mg
from minigrad.runtime.native import call, kernels

INF, NAN = math.inf, math.nan
DTYPES = [np.float32, np.float64, np.int64, np.bool_]
SPECIAL = [0.0, -0.0, 1.0, -2.0, 3.0, 1e-40, INF, -INF, NAN]


def drawn(rng, shape, dtype, few=True):
    """Values with many ties, and with NaN and infinities where there are such."""
    if np.dtype(dtype).kind == "f":
        return (
            rng.choice(SPECIAL, shape).astype(dtype)
            if few
            else rng.normal(size=shape).astype(dtype)
        )
    if dtype is np.int64 and not few:
        return rng.integers(-(2**63), 2**63 - 1, shape)
    return rng.integers(-3, 4, shape).astype(dtype)


def descending(x, axis):
    """NumPy's stable order from the largest down, NaN first."""
    back = np.flip(x, axis)
    return np.flip(x.shape[axis] - 1 - np.argsort(back, axis, kind="stable"), axis)


# ---- sort ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "shape",
    [(1,), (5,), (63,), (64,), (65,), (128,), (129,), (3000,), (20, 70), (2, 60, 3)],
    ids=str,
)
@pytest.mark.parametrize("few", [True, False], ids=["ties", "any"])
def test_sort_is_stable_along_every_axis(dtype, shape, few, rng):
    x = drawn(rng, shape, dtype, few)
    for axis in range(-len(shape), len(shape)):
        for down in (False, True):
            want = descending(x, axis) if down else np.argsort(x, axis, kind="stable")
            values, indices = mg.sort(mg.tensor(x), axis, down)
            oracle.assert_same(indices.numpy(), want)
            oracle.assert_same(values.numpy(), np.take_along_axis(x, want, axis))
            oracle.assert_same(mg.argsort(mg.tensor(x), axis, descending=down).numpy(), want)
        oracle.assert_same(
            mg.tensor(x).argsort(axis=axis).numpy(), np.argsort(x, axis, kind="stable")
        )


@settings(max_examples=100)
@given(data=st.data())
def test_sort_of_any_strides(data):
    shape = data.draw(hnp.array_shapes(min_dims=1, max_dims=4, max_side=7))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    dtype = data.draw(st.sampled_from(DTYPES))
    a, x = oracle.any_view(data, shape, lambda s: drawn(rng, s, dtype))
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    oracle.assert_same(mg.argsort(x, axis).numpy(), np.argsort(a, axis, kind="stable"))
    oracle.assert_same(mg.argsort(x, axis, True).numpy(), descending(a, axis))


def test_any_number_of_threads_sorts_alike(rng):
    x = mg.tensor(rng.integers(0, 50, (37, 300)).astype(np.float32))
    before = mg.get_num_threads()
    found = []
    for threads in (1, 3):
        mg.set_num_threads(threads)
        found.append([mg.argsort(x, axis).numpy() for axis in (0, 1)])
    mg.set_num_threads(before)
    for one, three in zip(*found, strict=True):
        oracle.assert_same(one, three)


PICKS = {
    "sort": lambda t, axis: t.sort(axis).values,
    "sort descending": lambda t, axis: t.sort(axis, descending=True).values,
    "topk": lambda t, axis: t.topk(2, axis).values,
    "bottomk": lambda t, axis: t.topk(2, axis, largest=False).values,
    "kthvalue": lambda t, axis: t.kthvalue(2, axis, keepdim=True).values,
    "median": lambda t, axis: t.median(axis).values,
    "nanmedian": lambda t, axis: t.nanmedian(axis).values,
    "median of all": lambda t, axis: t.median(),
    "quantile": lambda t, axis: t.quantile(0.3, axis),
    "quantiles": lambda t, axis: t.quantile(mg.tensor([0.1, 0.5, 0.9]), axis, keepdim=True),
    "quantile of all": lambda t, axis: t.quantile(0.77),
    "nanquantile": lambda t, axis: t.nanquantile(0.77, axis),
    "unique": lambda t, axis: mg.unique(t, dim=axis),
}


@pytest.mark.parametrize("name", PICKS)
@pytest.mark.parametrize("shape", [(4, 3), (3, 2, 2)], ids=str)
def test_derivatives(name, shape, rng):
    x = rng.permutation(np.linspace(-2, 2, math.prod(shape))).reshape(shape)  # no ties
    for axis in range(len(shape)):
        oracle.check_gradients(lambda t, axis=axis: PICKS[name](t, axis), [x], rng)


@pytest.mark.parametrize("name", PICKS)
@pytest.mark.parametrize("layout", oracle.LAYOUTS)
def test_layouts_give_the_same_bits(name, layout, rng):
    x = rng.integers(-5, 6, (4, 1, 6)).astype(np.float32)
    for axis in range(3):
        if x.shape[axis] == 1 and name in ("topk", "bottomk", "kthvalue"):
            continue
        a = mg.tensor(x, requires_grad=True)
        b = oracle.tensor_in_layout(x, layout, True)
        y, z = PICKS[name](a, axis), PICKS[name](b, axis)
        oracle.assert_same(z.detach().numpy(), y.detach().numpy())
        g = rng.normal(size=y.shape).astype(np.float32)
        (want,) = mg.grad(y, a, mg.tensor(g))
        (got,) = mg.grad(z, b, oracle.tensor_in_layout(g, layout if g.ndim else "contiguous"))
        oracle.assert_same(got.numpy(), want.numpy())


def test_the_gradient_of_ties_follows_the_order():
    x = mg.tensor([2.0, 1.0, 2.0, 2.0], requires_grad=True)
    (g,) = mg.grad(x.sort().values, x, mg.tensor([1.0, 2.0, 3.0, 4.0]))
    assert g.tolist() == [2, 1, 3, 4]
    (g,) = mg.grad(x.topk(2).values, x, mg.tensor([1.0, 2.0]))
    assert g.tolist() == [1, 0, 2, 0]


def test_indices_may_be_overwritten():
    """The graph keeps its own."""
    x = mg.tensor([3.0, 1.0, 2.0], requires_grad=True)
    values, indices = x.sort()
    indices.zero_()
    (g,) = mg.grad(values, x, mg.tensor([1.0, 2.0, 3.0]))
    assert g.tolist() == [3, 1, 2]


@pytest.mark.parametrize("dtype", DTYPES)
def test_topk_and_kthvalue(dtype, rng):
    x = drawn(rng, (5, 9), dtype)
    for axis, n in ((0, 5), (1, 9), (-1, 9)):
        for k in (0, 1, 3, n):
            for largest in (True, False):
                want = descending(x, axis) if largest else np.argsort(x, axis, kind="stable")
                want = np.take(want, range(k), axis)
                values, indices = mg.topk(mg.tensor(x), k, axis, largest)
                oracle.assert_same(indices.numpy(), want)
                oracle.assert_same(values.numpy(), np.take_along_axis(x, want, axis))
            if k:
                kth = mg.kthvalue(mg.tensor(x), k, axis)
                np.testing.assert_array_equal(
                    kth.values.numpy(), np.take(np.sort(x, axis, kind="stable"), k - 1, axis)
                )
                assert mg.kthvalue(mg.tensor(x), k, axis, True).values.shape == tuple(
                    1 if d == axis % 2 else m for d, m in enumerate(x.shape)
                )


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [1, 2, 20, 64, 65, 128, 129, 130, 1000, 5001])
@pytest.mark.parametrize("few", [True, False], ids=["ties", "any"])
def test_ranks_are_those_of_the_stable_order(dtype, n, few, rng):
    """Lines with NaN and without, in rows and in columns."""
    x = drawn(rng, (4, n), dtype, few)
    if np.dtype(dtype).kind == "f":
        x[0] = np.abs(np.nan_to_num(x[0]))
        x[1] = NAN
    order = np.argsort(x, 1, kind="stable")
    whole = x == x
    count = whole.sum(1)
    lower = np.where(whole.all(1), (n - 1) // 2, n - 1)
    for t, axis in ((mg.tensor(x), 1), (mg.tensor(x.T.copy()), 0)):
        for k in {1, (n + 1) // 2, n}:
            oracle.assert_same(t.kthvalue(k, axis).indices.numpy(), order[:, k - 1])
        oracle.assert_same(t.median(axis).indices.numpy(), order[range(4), lower])
        below = np.maximum(count - 1, 0) // 2
        oracle.assert_same(t.nanmedian(axis).indices.numpy(), order[range(4), below])
    for row in x:
        if np.isfinite(row).all() and dtype is not np.int64:
            want = np.median(row.astype(np.float64))
            np.testing.assert_allclose(mg.tensor(row).median().item(), want, rtol=1e-6)


def test_no_rank_of_nothing_is_made():
    """The kernels refuse it themselves, whatever is looked at before them."""
    nothing = mg.zeros(3, 0)._h
    for kernel, args in ((kernels.median, (1, 0)), (kernels.order_statistics, ((0,), 0, 1))):
        with pytest.raises(ValueError, match="bad argument"):
            call(kernel, nothing, *args)


def test_nan_is_searched_after_infinity():
    line = [-INF, 1.0, INF, INF, NAN, NAN]
    values = [NAN, INF, -INF, 1.0, -0.0] * 5
    for dtype in (np.float32, np.float64):
        s, v = np.array(line, dtype), np.array(values, dtype)
        for side in ("left", "right"):
            got = mg.searchsorted(mg.tensor(s), mg.tensor(v), side=side).numpy()
            oracle.assert_same(got, np.searchsorted(s, v, side))


@pytest.mark.parametrize("shape", [(0,), (3, 0), (0, 3)], ids=str)
def test_sorting_nothing(shape):
    for axis in range(len(shape)):
        x = mg.zeros(shape, requires_grad=True)
        for f in (lambda t, a=axis: t.sort(a), lambda t, a=axis: t.topk(0, a)):
            values, indices = f(x)
            assert values.shape == indices.shape
            (g,) = mg.grad(values, x, mg.zeros(values.shape))
            assert g.shape == shape


def test_a_number_is_a_line_of_one():
    x = mg.tensor(3.0, requires_grad=True)
    for found in (x.sort(), x.topk(1), x.kthvalue(1), x.median(0), x.sort(0, True)):
        assert found.values.shape == found.indices.shape == ()
        assert found.values.item() == 3
        assert found.indices.item() == 0
        assert mg.grad(found.values, x)[0].item() == 1
    assert x.argsort().item() == 0
    assert x.median().item() == x.quantile(0.4).item() == 3


def test_errors_of_sorting():
    x = mg.ones(3)
    with pytest.raises(ValueError, match=r"\[topk\] k is 4, but must be in 0\.\.3"):
        x.topk(4)
    with pytest.raises(ValueError, match=r"\[kthvalue\] k is 0, but must be in 1\.\.3"):
        x.kthvalue(0)
    for name in ("sort", "argsort"):
        with pytest.raises(IndexError, match=rf"\[{name}\] dim 1 is out of range"):
            getattr(mg, name)(x, 1)
        with pytest.raises(TypeError, match=rf"\[{name}\] expected"):
            getattr(mg, name)("text")
    with pytest.raises(TypeError, match=r"\[topk\] k must be an integer, not float"):
        x.topk(1.5)


# ---- median and quantiles ------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
@pytest.mark.parametrize("shape", [(1,), (2,), (5,), (4, 7), (3, 4, 5)], ids=str)
def test_median_as_numpy(dtype, shape, rng):
    x = rng.integers(-9, 10, shape).astype(dtype)
    kind = np.float32 if dtype is np.int64 else dtype
    oracle.assert_same(mg.median(mg.tensor(x)).numpy(), np.asarray(np.median(x), kind))
    oracle.assert_same(
        mg.median(mg.tensor(x), keepdim=True).numpy(), np.median(x, keepdims=True).astype(kind)
    )
    for axis in range(-len(shape), len(shape)):
        for keep in (False, True):
            values, indices = mg.median(mg.tensor(x), axis, keep)
            oracle.assert_same(values.numpy(), np.asarray(np.median(x, axis, keepdims=keep), kind))
            order = np.argsort(x, axis, kind="stable")
            want = np.take(order, [(x.shape[axis] - 1) // 2], axis)
            oracle.assert_same(indices.numpy(), want if keep else np.squeeze(want, axis))
        oracle.assert_same(
            mg.median(mg.tensor(x), axis=axis).values.numpy(), np.asarray(np.median(x, axis), kind)
        )


def test_median_with_nan(rng):
    x = rng.normal(size=(5, 6))
    x[1, 3] = x[1, 4] = x[4, 0] = NAN
    x[2] = NAN
    assert math.isnan(mg.median(mg.tensor(x)).item())
    assert mg.nanmedian(mg.tensor(x)).item() == np.nanmedian(x)
    values, indices = mg.median(mg.tensor(x), 1)
    np.testing.assert_array_equal(values.numpy(), np.median(x, 1))
    assert indices.numpy()[[1, 2, 4]].tolist() == [4, 5, 0]
    with pytest.warns(RuntimeWarning, match="All-NaN"):
        want = np.nanmedian(x, 1)
    np.testing.assert_array_equal(mg.nanmedian(mg.tensor(x), 1).values.numpy(), want)


def test_arrays_and_lists_are_taken():
    assert mg.median([True, False]).item() == 0.5
    assert mg.median(np.array([2**62, 2**62])).item() == 2.0**62
    assert mg.histc([0.5, 1.5], 2, 0, 2).tolist() == [1, 1]
    assert mg.quantile([0, 1, 2], 0.25).item() == 0.5
    assert mg.unique([2, 1, 2]).tolist() == mg.sort([2, 1]).values.tolist() == [1, 2]
    assert mg.bincount([1, 1]).tolist() == [0, 2]
    assert mg.searchsorted([1, 2], 2).item() == mg.bucketize(2, [1, 2]).item() == 1
    assert mg.topk(np.ones(3), 1).indices.tolist() == [0]


def test_median_of_extremes():
    top = np.finfo(np.float32).max
    assert mg.median(mg.tensor([top, top, top])).item() == top
    assert mg.median(mg.tensor([INF, INF, 1.0])).item() == INF
    assert mg.median(mg.tensor([-INF, 1.0, 2.0, INF])).item() == 1.5
    assert math.isnan(mg.median(mg.tensor([-INF, INF])).item())
    assert math.isnan(mg.median(mg.zeros(0)).item())
    x = mg.zeros(0, requires_grad=True)
    assert mg.grad(x.median(), x)[0].shape == (0,)
    with pytest.raises(ValueError, match=r"\[median\] no index in an empty dim 0"):
        mg.zeros(0, 2).median(0)


@pytest.mark.parametrize("method", ["linear", "lower", "higher", "midpoint", "nearest"])
@pytest.mark.parametrize("shape", [(1,), (2,), (5,), (4, 6), (3, 4, 5)], ids=str)
def test_quantile_as_numpy(method, shape, rng):
    x = rng.normal(size=shape)
    for q in (0.0, 0.25, 0.3, 0.5, 1.0, [0.1, 0.9], [0.5]):
        for axis in (None, *range(-len(shape), len(shape))):
            for keep in (False, True):
                want = np.quantile(x, q, axis, method=method, keepdims=keep)
                for share in (q, np.array(q), mg.tensor(q, mg.float64)):
                    got = mg.quantile(mg.tensor(x), share, axis, keep, interpolation=method)
                    assert got.shape == want.shape
                    np.testing.assert_allclose(got.numpy(), want, rtol=1e-13, atol=1e-15)


def test_quantile_with_nan_and_infinities(rng):
    x = rng.normal(size=(5, 6))
    x[1, 3] = x[1, 4] = x[4, 0] = NAN
    q = [0.0, 0.2, 0.5, 1.0]
    np.testing.assert_allclose(mg.quantile(mg.tensor(x), q, 1).numpy(), np.quantile(x, q, 1))
    np.testing.assert_allclose(mg.nanquantile(mg.tensor(x), q, 1).numpy(), np.nanquantile(x, q, 1))
    np.testing.assert_allclose(mg.nanquantile(mg.tensor(x), 0.3).numpy(), np.nanquantile(x, 0.3))
    assert np.isnan(mg.nanquantile(mg.full((3,), NAN), [0.0, 0.5, 1.0]).numpy()).all()
    assert mg.quantile(mg.tensor([INF, INF, INF]), 0.3).item() == INF
    assert mg.quantile(mg.tensor([-INF, 1.0, INF]), [0.25, 0.5, 0.75]).tolist() == [-INF, 1, INF]
    assert mg.quantile(mg.full((7,), 0.1), 0.3).item() == np.float32(0.1)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_quantiles_of_long_lines(dtype, rng):
    """One share is selected, several sort the line; both find the same."""
    x = rng.normal(size=(3, 400)).astype(dtype)
    x[1, 7] = NAN
    shares = [0.1, 0.333, 0.5, 0.9, 1.0]
    want = np.quantile(x.astype(np.float64), shares, 1)
    together = mg.quantile(mg.tensor(x), mg.tensor(shares, mg.float64), 1).numpy()
    np.testing.assert_allclose(together, want, rtol=1e-6 if dtype is np.float32 else 1e-14)
    for share, row in zip(shares, together, strict=True):
        oracle.assert_same(mg.quantile(mg.tensor(x), share, 1).numpy(), row)
    oracle.assert_same(mg.quantile(mg.tensor(x.T), 0.333, 0).numpy(), together[1])


def test_the_slope_of_a_quantile_by_its_share(rng):
    x = rng.permutation(np.linspace(-2, 2, 12)).reshape(3, 4)
    for q in (np.array([0.3, 0.61]), np.array(0.4)):
        oracle.check_gradients(lambda t, s: t.quantile(s, 1), [x, q], rng)
        oracle.check_gradients(lambda t, s: t.nanquantile(s, 1), [x, q], rng)
    q = mg.tensor([0.0, 1.0], requires_grad=True)
    (g,) = mg.grad(mg.tensor([1.0, 2.0, 5.0]).quantile(q).sum(), q)
    assert g.tolist() == [0, 0]


def test_the_median_keeps_the_sign_of_zero():
    for x in ([-0.0], [-0.0] * 3):
        t = mg.tensor(x, requires_grad=True)
        assert math.copysign(1.0, t.median().item()) == -1
        assert math.copysign(1.0, t.median(0).values.item()) == -1


def test_errors_of_quantile():
    x = mg.ones(3)
    with pytest.raises(ValueError, match=r"\[quantile\] q is 1\.5, but must be in 0\.\.1"):
        x.quantile(1.5)
    with pytest.raises(ValueError, match="q is nan"):
        x.quantile([0.5, NAN])
    with pytest.raises(ValueError, match="interpolation 'cubic' is none of linear"):
        x.quantile(0.5, interpolation="cubic")
    with pytest.raises(ValueError, match="no quantile of nothing"):
        mg.zeros(0).quantile(0.5)
    with pytest.raises(ValueError, match="q has 2 dimensions"):
        x.quantile([[0.5]])
    with pytest.raises(IndexError, match="dim 1 is out of range"):
        x.quantile(0.5, 1)


# ---- searching -----------------------------------------------------------------------------------


@settings(max_examples=80)
@given(data=st.data())
def test_searchsorted_as_numpy(data):
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    dtype = data.draw(st.sampled_from([np.float32, np.float64, np.int64]))
    line = np.sort(drawn(rng, data.draw(st.integers(0, 12)), dtype))
    a, x = oracle.any_view(
        data, data.draw(hnp.array_shapes(min_dims=0, max_dims=3)), lambda s: drawn(rng, s, dtype)
    )
    for right in (False, True):
        want = np.searchsorted(line, a, side="right" if right else "left")
        oracle.assert_same(
            mg.searchsorted(mg.tensor(line), x, right=right).numpy(), np.asarray(want)
        )
        oracle.assert_same(mg.bucketize(x, mg.tensor(line), right=right).numpy(), np.asarray(want))


def test_searchsorted_in_many_lines(rng):
    lines, values = np.sort(rng.normal(size=(3, 2, 6))), rng.normal(size=(3, 2, 4))
    got = mg.searchsorted(mg.tensor(lines), mg.tensor(values)).numpy()
    for place in np.ndindex(3, 2):
        np.testing.assert_array_equal(got[place], np.searchsorted(lines[place], values[place]))
    order = rng.permuted(np.broadcast_to(np.arange(6), lines.shape), axis=-1)
    shuffled = np.empty_like(lines)
    np.put_along_axis(shuffled, order, lines, -1)
    again = mg.searchsorted(mg.tensor(shuffled), mg.tensor(values), sorter=mg.tensor(order))
    oracle.assert_same(again.numpy(), got)


def test_searchsorted_compares_exactly():
    """Numbers take on the line's dtype; arrays of other dtypes are compared as they are."""
    assert mg.searchsorted(mg.tensor([0.1]), 0.1).item() == 0
    assert mg.searchsorted(mg.tensor([1, 2, 3]), 1.5).item() == 1
    assert mg.searchsorted(mg.tensor([1, 2]), mg.tensor([1.5, 2.5])).tolist() == [1, 2]
    assert mg.searchsorted(mg.tensor([0.1]), mg.tensor([0.1], mg.float64)).tolist() == [0]
    assert mg.searchsorted(mg.tensor([0.1], mg.float64), mg.tensor([0.1])).tolist() == [1]


def test_errors_of_searching():
    line = mg.tensor([1.0, 2.0])
    with pytest.raises(ValueError, match="neither one line nor a line for each"):
        mg.searchsorted(mg.ones(2, 3), mg.ones(3, 3))
    with pytest.raises(ValueError, match="neither one line"):
        mg.searchsorted(mg.ones(2, 3), 1.0)
    with pytest.raises(ValueError, match="side is 'left' with right=True"):
        mg.searchsorted(line, 1.0, right=True, side="left")
    with pytest.raises(ValueError, match="side is 'middle'"):
        mg.searchsorted(line, 1.0, side="middle")
    with pytest.raises(ValueError, match=r"\[bucketize\] boundaries have 2"):
        mg.bucketize(1.0, mg.ones(2, 2))
    for wrong in ([0], [[0, 1]], [0, 1, 1]):
        with pytest.raises(ValueError, match=r"\[searchsorted\] a sorter of shape"):
            mg.searchsorted(line, 1.0, sorter=mg.tensor(wrong))
    with pytest.raises(IndexError, match=r"\[searchsorted\] index 2 is out of range"):
        mg.searchsorted(line, 1.0, sorter=mg.tensor([0, 2]))
    assert mg.searchsorted(line, 1.0, side="right").item() == 1


# ---- counting ------------------------------------------------------------------------------------


def test_bincount(rng):
    x, w = rng.integers(0, 7, 40), rng.normal(size=40)
    for least in (0, 3, 20):
        got = mg.bincount(mg.tensor(x), minlength=least).numpy()
        oracle.assert_same(got, np.bincount(x, minlength=least))
        got = mg.bincount(mg.tensor(x), mg.tensor(w), least).numpy()
        oracle.assert_same(got, np.bincount(x, w, least))
    assert mg.bincount(mg.tensor(x), mg.tensor(x)).dtype is mg.float64
    assert mg.bincount(mg.zeros(0, dtype=mg.int64)).shape == (0,)
    assert mg.bincount(mg.zeros(0, dtype=mg.int64), minlength=2).tolist() == [0, 0]
    oracle.check_gradients(lambda t: mg.bincount(mg.tensor(x), t), [w], rng)
    with pytest.raises(ValueError, match="-1 in x"):
        mg.bincount(mg.tensor([1, -1]))
    with pytest.raises(TypeError, match="counts int64, not float32"):
        mg.bincount(mg.ones(2))
    with pytest.raises(ValueError, match="weights of shape"):
        mg.bincount(mg.tensor([1, 2]), mg.ones(3))
    with pytest.raises(ValueError, match="x has 2 dimensions"):
        mg.bincount(mg.ones(2, 2, dtype=mg.int64))
    for beyond in (2**63 - 1, 2**62):
        with pytest.raises((ValueError, MemoryError), match=r"\[bincount\] "):
            mg.bincount(mg.tensor([beyond]))
    with pytest.raises(ValueError, match="minlength is -1"):
        mg.bincount(mg.tensor([1]), minlength=-1)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_histc(dtype, rng):
    x = rng.normal(size=(20, 30)).astype(dtype)
    for bins, low, high in ((10, 0, 0), (7, -1, 1), (1, 0, 0.5), (100, -3, 3)):
        got = mg.histc(mg.tensor(x), bins, low, high)
        span = None if low == high else (low, high)
        want, _ = np.histogram(x.astype(np.float64), bins, span)
        oracle.assert_same(got.numpy(), want.astype(dtype))
    assert mg.histc(mg.tensor([1.0, 1.0, NAN]), 4, 0, 2).tolist() == [0, 0, 2, 0]
    assert mg.histc(mg.tensor([5.0, 5.0]), 2).tolist() == [0, 2]
    assert mg.histc(mg.tensor([1, 2, 1]), 4, 0, 3).tolist() == [0, 2, 1, 0]
    assert mg.histc(mg.zeros(0), 3).tolist() == [0, 0, 0]
    assert not mg.histc(mg.ones(2, requires_grad=True)).requires_grad
    with pytest.raises(ValueError, match="bins is 0"):
        mg.histc(mg.ones(2), 0)
    with pytest.raises(ValueError, match="no finite range"):
        mg.histc(mg.ones(2), 3, 2, 1)
    with pytest.raises(ValueError, match="no finite range"):
        mg.histc(mg.tensor([1.0, INF]))


def test_histc_of_parts_that_round_to_nothing(rng):
    """As the edges say, however many of them are the same number."""
    for low, high, bins in (
        (1e16, 1e16 + 4, 50),
        (0.0, 5e-324, 3),
        (-1e300, 1e300, 7),
        (0.1, 0.7, 6),
    ):
        edges = low + np.arange(bins + 1) * ((high - low) / bins)
        edges[-1] = high
        x = np.concatenate(
            [edges, np.nextafter(edges, INF), rng.uniform(low, high, 50), [NAN, INF]]
        )
        inside = x[(x >= low) & (x <= high)]
        part = np.searchsorted(edges[:-1], inside, "right") - 1
        want = np.bincount(np.minimum(part, bins - 1), minlength=bins)
        np.testing.assert_array_equal(mg.histc(mg.tensor(x), bins, low, high).numpy(), want)


# ---- unique --------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(0,), (1,), (9,), (4, 5)], ids=str)
def test_unique(dtype, shape, rng):
    x = drawn(rng, shape, dtype)
    want = np.unique(x, return_counts=True, equal_nan=False)
    values, inverse, counts = mg.unique(mg.tensor(x), return_inverse=True, return_counts=True)
    np.testing.assert_array_equal(values.numpy(), want[0])
    np.testing.assert_array_equal(counts.numpy(), want[1])
    np.testing.assert_array_equal(values.numpy()[inverse.numpy()], x)
    np.testing.assert_array_equal(np.bincount(inverse.numpy().ravel()), want[1])
    np.testing.assert_array_equal(mg.unique(mg.tensor(x)).numpy(), want[0])


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_unique_slices(axis, rng):
    x = rng.integers(0, 2, (6, 3, 2) if axis == 0 else (2, 7))
    want = np.unique(x, return_inverse=True, return_counts=True, axis=axis)
    got = mg.unique(mg.tensor(x), return_inverse=True, return_counts=True, dim=axis)
    for a, b in zip(got, want, strict=True):
        np.testing.assert_array_equal(a.numpy(), b.reshape(a.shape))
    assert mg.unique(mg.zeros(0, 2), dim=0).shape == (0, 2)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(70, 1), (70, 2), (1, 3), (5, 0), (0, 0), (33, 4, 2)], ids=str)
def test_unique_slices_of_every_dtype(dtype, shape, rng):
    x = rng.integers(0, 3, shape).astype(dtype)
    if np.dtype(dtype).kind == "f":
        x[x == 1] = -0.0
    values, inverse, counts = mg.unique(
        mg.tensor(x), dim=0, return_inverse=True, return_counts=True
    )
    rows = x.reshape(shape[0], -1 if x.size else 0)
    want = sorted({tuple(row) for row in rows.tolist()})
    assert values.reshape(len(want), rows.shape[1]).tolist() == [list(row) for row in want]
    place = [want.index(tuple(row)) for row in rows.tolist()]
    assert inverse.tolist() == place
    assert counts.tolist() == [place.count(i) for i in range(len(want))]


def test_nan_is_like_no_other_in_slices():
    x = mg.tensor([[1.0, NAN], [1.0, NAN], [0.0, 2.0], [0.0, 2.0]])
    _, inverse, counts = mg.unique(x, dim=0, return_inverse=True, return_counts=True)
    assert inverse.tolist() == [1, 2, 0, 0]
    assert counts.tolist() == [2, 1, 1]
    assert mg.unique_consecutive(x, dim=0).shape == (3, 2)


def test_unique_consecutive():
    x = mg.tensor([1, 1, 2, 2, 3, 1, 1, 2])
    values, inverse, counts = mg.unique_consecutive(x, return_inverse=True, return_counts=True)
    assert values.tolist() == [1, 2, 3, 1, 2]
    assert inverse.tolist() == [0, 0, 1, 1, 2, 3, 3, 4]
    assert counts.tolist() == [2, 2, 1, 2, 1]
    rows = mg.tensor([[1, 2], [1, 2], [0, 2]])
    assert mg.unique_consecutive(rows, dim=0).tolist() == [[1, 2], [0, 2]]


def test_the_first_of_equals_has_the_gradient():
    x = mg.tensor([2.0, 1.0, 2.0], requires_grad=True)
    (g,) = mg.grad(mg.unique(x), x, mg.tensor([5.0, 7.0]))
    assert g.tolist() == [7, 5, 0]
