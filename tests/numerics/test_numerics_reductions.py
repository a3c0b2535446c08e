"""The edge table's rows on reductions, scans, sorting and softmax, and on empty ones."""

from __future__ import annotations

import math

import numpy as np
import pytest
from oracle import assert_row, derivatives

import minigrad as mg

INF, NAN = math.inf, math.nan
DTYPES = (mg.float32, mg.float64)
by_dtype = pytest.mark.parametrize("dtype", DTYPES, ids=["float32", "float64"])


# ---- extrema, sorting, order ---------------------------------------------------------------------


def test_extrema_share_ties():
    for f in (
        mg.amax,
        mg.max,
        lambda t: t.aminmax().max,
        lambda t: t.amax(0),
        lambda t: t.max((0,)),
    ):
        assert_row(f, ([1.0, 3.0, 3.0],), 3.0, ([0, 0.5, 0.5],), ([0, 0, 0],))
        assert_row(f, ([1.0, NAN, NAN],), NAN, ([0, 0.5, 0.5],), ([0, 0, 0],))
    for f in (mg.amin, mg.min, lambda t: t.aminmax(dim=0).min):
        assert_row(f, ([3.0, 1.0, 1.0],), 1.0, ([0, 0.5, 0.5],), ([0, 0, 0],))
    for f in (lambda t: t.max(0).values, lambda t: t.max(dim=0, keepdim=True)[0].sum()):
        assert_row(f, ([1.0, 3.0, 3.0],), 3.0, ([0, 1, 0],), ([0, 0, 0],))


def test_running_extrema_follow_the_index():
    def values(t):
        return t.cummax(0).values

    assert_row(values, ([1.0, 3.0, 3.0],), [1.0, 3.0, 3.0], ([1, 2, 0],), ([0, 0, 0],))
    assert_row(values, ([1.0, NAN, 3.0],), [1.0, NAN, NAN], ([1, 2, 0],), ([0, 0, 0],))
    assert_row(
        lambda t: t.cummin(0).values,
        ([2.0, 2.0, NAN],),
        [2.0, 2.0, NAN],
        ([2, 0, 1],),
        ([0, 0, 0],),
    )
    assert mg.tensor([1.0, 3.0, 3.0]).cummax(0).indices.tolist() == [0, 1, 1]


def test_argmax_takes_the_first_and_nan_first():
    for f in (mg.argmax, mg.argmin):
        assert f(mg.tensor([2.0, 2.0])).item() == 0
        assert f(mg.tensor([2.0, NAN, NAN])).item() == 1
        assert not f(mg.tensor([2.0], requires_grad=True)).requires_grad


@by_dtype
def test_sorting_is_stable_and_its_gradient_follows(dtype):
    weight = mg.tensor([1.0, 2.0, 3.0], dtype)
    x = [2.0, 1.0, 2.0]
    for f, y, g in (
        (lambda t: t.sort().values, [1.0, 2.0, 2.0], [2, 1, 3]),
        (lambda t: t.sort(descending=True).values, [2.0, 2.0, 1.0], [1, 3, 2]),
        (lambda t: t.topk(3).values, [2.0, 2.0, 1.0], [1, 3, 2]),
    ):
        assert mg.tensor(x).sort().values.tolist() == sorted(x)

        def weighted(t, f=f):
            return f(t) * weight

        assert_row(
            weighted,
            (x,),
            [a * b for a, b in zip(y, [1, 2, 3], strict=True)],
            (g,),
            ([0] * 3,),
            dtype=dtype,
        )


def test_median():
    whole = mg.median

    def along(t):
        return t.median(0).values

    for f in (whole, along, mg.nanmedian):
        assert_row(f, ([4.0, 1.0, 3.0, 2.0],), 2.5, ([0, 0, 0.5, 0.5],), ([0] * 4,))
        assert_row(f, ([4.0, 1.0, 3.0],), 3.0, ([0, 0, 1],), ([0] * 3,))
    assert_row(whole, ([2.0, 1.0, 2.0, 2.0, 2.0],), 2.0, ([0.25, 0, 0.25, 0.25, 0.25],), ([0] * 5,))
    assert_row(whole, ([2.0, 1.0, 2.0],), 2.0, ([0.5, 0, 0.5],), ([0] * 3,))
    assert_row(whole, ([2.0, 1.0, 2.0, 1.0],), 1.5, ([0.25] * 4,), ([0] * 4,))
    assert_row(whole, ([NAN, 1.0, NAN],), NAN, ([0.5, 0, 0.5],), ([0] * 3,))
    assert_row(along, ([2.0, 1.0, 2.0],), 2.0, ([1, 0, 0],), ([0] * 3,))
    assert_row(along, ([2.0, NAN, 3.0],), NAN, ([0, 1, 0],), ([0] * 3,))
    assert mg.tensor([4.0, 1.0, 3.0, 2.0]).median(0).indices.item() == 3  # the lower middle one


# ---- norms ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("p", [0, 0.5, 1, 1.5, 2, 3, 4, INF, -INF, -1, "fro"])
def test_norm_of_a_zero_vector(p):
    """0, and with it both derivatives."""
    share = ([0.0, 0.0],)
    assert_row(lambda t: t.norm(p), ([0.0, 0.0],), 0.0, share, share)
    if p != "fro":

        def f(t):
            return mg.vector_norm(t, p, 0)

        assert_row(f, ([0.0, -0.0],), 0.0, share, share)


def test_norm_with_an_element_of_zero():
    assert_row(lambda t: t.norm(1), ([0.0, -2.0],), 2.0, ([0, -1],), ([0, 0],))
    for p in (1.5, 3.0, 4.0, -2.0):
        y, (g,), (gg,) = derivatives(lambda t, p=p: t.norm(p), [0.0, -2.0])
        assert y == (0 if p < 0 else pytest.approx(2, rel=1e-6))
        assert g[0] == 0
        assert g[1] == (0 if p < 0 else pytest.approx(-1, rel=1e-6))
        assert gg == pytest.approx([0, 0], abs=1e-6)
    assert_row(lambda t: t.norm(0.5), ([0.0, 4.0],), 4.0, ([0, 1],), ([0, 0],))
    assert_row(lambda t: t.norm(0), ([0.0, 4.0],), 1.0, ([0, 0],), ([0, 0],))
    assert_row(lambda t: t.norm(), ([0.0, 4.0],), 4.0, ([0, 1],), ([0.25, 0],))
    assert_row(lambda t: t.norm(-1), ([0.0, 4.0],), 0.0, ([0, 0],), ([0, 0],))


def test_norm_inf_shares_ties_with_sign():
    def f(t):
        return t.norm(INF)

    assert_row(f, ([2.0, -2.0, 1.0],), 2.0, ([0.5, -0.5, 0],), ([0, 0, 0],))

    def f(t):
        return t.norm(-INF)

    assert_row(f, ([2.0, -2.0, 3.0],), 2.0, ([0.5, -0.5, 0],), ([0, 0, 0],))


# ---- products and sums ---------------------------------------------------------------------------


def test_products_with_zeros():
    prod = mg.prod
    assert_row(prod, ([2.0, 0.0, 4.0],), 0.0, ([0, 8, 0],), ([4, 6, 2],))
    assert_row(prod, ([0.0, 0.0, 4.0],), 0.0, ([0, 0, 0],), ([4, 4, 0],))
    assert_row(prod, ([0.0, 0.0, 0.0],), 0.0, ([0, 0, 0],), ([0, 0, 0],))
    assert_row(prod, ([INF, 2.0, 3.0],), INF, ([6, INF, INF],))


def test_cumprod_with_zeros():
    """y = (a, ab, abc): the gradient of their sum is (1 + b + bc, a + ac, ab)."""

    def f(t):
        return t.cumprod(0)

    for a, b, c in ((2.0, 3.0, 4.0), (0.0, 3.0, 4.0), (2.0, 0.0, 4.0), (0.0, 0.0, 4.0), (0.0,) * 3):
        first = [1 + b + b * c, a + a * c, a * b]
        second = [1 + c + b, 1 + c + a, b + a]  # the rows of the Hessian of a + ab + abc, added up
        assert_row(f, ([a, b, c],), [a, a * b, a * b * c], (first,), (second,))


def test_cumsum():
    def f(t):
        return t.cumsum(0)

    assert_row(f, ([1.0, 2.0, 3.0],), [1.0, 3.0, 6.0], ([3, 2, 1],), ([0, 0, 0],))
    assert_row(f, ([INF, -INF, 3.0],), [INF, NAN, NAN], ([3, 2, 1],), ([0, 0, 0],))


def test_nansum_and_nanmean():
    assert_row(mg.nansum, ([NAN, 2.0],), 2.0, ([0, 1],), ([0, 0],))
    assert_row(mg.nanmean, ([NAN, 2.0, 4.0],), 3.0, ([0, 0.5, 0.5],), ([0] * 3,))
    assert_row(mg.nansum, ([NAN, NAN],), 0.0, ([0, 0],), ([0, 0],))
    assert_row(mg.nanmean, ([NAN, NAN],), NAN, ([0, 0],))


# ---- exponentials --------------------------------------------------------------------------------


def test_logsumexp_of_infinities():
    f = mg.logsumexp
    assert_row(f, ([-INF, -INF],), -INF, ([0, 0],), ([0, 0],))
    assert_row(f, ([-INF, 2.0],), 2.0, ([0, 1],), ([0, 0],))
    assert_row(f, ([INF, 2.0, INF],), INF, ([1, 0, 1],), ([0, 0, 0],))


@pytest.mark.parametrize("columns", [False, True])
@pytest.mark.parametrize("n", [63, 64, 65, 77, 1000])
def test_shares_of_long_lines(n, columns):
    """Lines are looked at once, for what makes their shares anything but g exp(x - y)."""
    x = np.random.default_rng(n).standard_normal((6, n)).astype(np.float32)
    g = np.float32([2, 0, 1, 3, 0, 1])
    x[1, 3] = -INF
    x[2] = -INF
    x[3, [5, -1]] = INF
    x[4, 7] = NAN
    x[5, -1] = -INF
    with np.errstate(divide="ignore", invalid="ignore"):
        want = np.exp(x - np.log(np.exp(x, dtype=np.float64).sum(1, keepdims=True))) * g[:, None]
    want[[1, 2, 4]] = 0
    want[3] = 3 * (x[3] == INF)
    for some in ([0, 5], range(6)):  # plain ones alone, and all
        lines = np.tile(some, 20)  # enough for columns to be long side by side
        t = mg.tensor(x[lines].T.copy() if columns else x[lines], requires_grad=True)
        (t.logsumexp(0 if columns else 1) * mg.tensor(g[lines])).sum().backward()
        got = t.grad.numpy().T if columns else t.grad.numpy()
        np.testing.assert_allclose(got, want[lines], rtol=2e-6, atol=1e-7)


def test_logcumsumexp_of_infinities():
    def f(t):
        return t.logcumsumexp(0)

    assert_row(f, ([-INF, -INF],), [-INF, -INF], ([0, 0],), ([0, 0],))
    assert_row(f, ([-INF, 2.0],), [-INF, 2.0], ([0, 1],), ([0, 0],))
    assert_row(f, ([2.0, -INF],), [2.0, 2.0], ([2, 0],), ([0, 0],))
    assert_row(f, ([2.0, INF],), [2.0, INF], ([1, 1],), ([0, 0],))
    assert_row(f, ([INF, 2.0],), [INF, INF], ([2, 0],), ([0, 0],))


@by_dtype
def test_softmax_of_a_row_without_finite_elements(dtype):
    for f in (mg.softmax, mg.log_softmax):
        assert np.isnan(f(mg.tensor([-INF, -INF], dtype), 0).numpy()).all()
    none = mg.tensor([False, False])
    for f, y in ((mg.softmax, 0.0), (mg.log_softmax, -INF)):

        def masked(t, f=f):
            return f(t, 0, where=none)

        assert_row(masked, ([-INF, 1.0],), [y, y], ([0, 0],), ([0, 0],), dtype=dtype)


def test_log_softmax_with_some_minus_infinity():
    """g - softmax * sum(g), with 0 * -inf = 0."""

    def f(t):
        return t.log_softmax(0)

    assert_row(f, ([-INF, 1.0],), [-INF, 0.0], ([1, -1],), ([0, 0],))


# ---- spread --------------------------------------------------------------------------------------


@by_dtype
def test_variance_by_default(dtype):
    x = mg.tensor([1.0, 2.0, 3.0, 4.0, 0.0], dtype)
    assert mg.var(x).item() == 2.5  # correction 1, as in PyTorch
    for given in ({"correction": 0}, {"ddof": 0}, {"unbiased": False}):
        assert mg.var(x, **given).item() == 2.0
        assert mg.var_mean(x, **given)[0].item() == 2.0
    assert mg.var(x, False).item() == mg.var(x, 0, False).item() == 2.0


def test_no_spread():
    for f in (mg.std, lambda t: mg.std_mean(t)[0], lambda t: t.std(0, correction=0)):
        assert_row(f, ([3.0, 3.0, 3.0],), 0.0, ([0, 0, 0],), ([0, 0, 0],))
    assert_row(mg.var, ([3.0, 3.0, 3.0],), 0.0, ([0, 0, 0],), ([0, 0, 0],))


@by_dtype
def test_no_degrees_of_freedom(dtype):
    for f in (mg.var, mg.std):
        assert_row(f, ([3.0],), NAN, ([NAN],), dtype=dtype)
        assert_row(f, ([3.0],), NAN, ([0],), upstream=0.0, dtype=dtype)
        x = mg.ones(2, 1, dtype=dtype, requires_grad=True)
        y = f(x, 1)
        assert y.shape == (2,)
        assert np.isnan(mg.grad(y.sum(), x)[0].numpy()).all()
        assert f(mg.tensor([1.0, 2.0], dtype), correction=3).item() == INF  # as NumPy
    assert_row(lambda t: mg.var(t, correction=3), ([1.0, 2.0],), INF, ([-INF, INF],))


def test_variance_of_a_large_mean_in_float32():
    x = np.float32(10000) + np.linspace(-1, 1, 5000, dtype=np.float32)
    for values, axis in ((x, 0), (np.repeat(x[:, None], 7, 1), 0), (np.repeat(x[None], 7, 0), 1)):
        want = values.astype(np.float64).var(axis, ddof=1)
        np.testing.assert_allclose(mg.var(mg.tensor(values), axis).numpy(), want, rtol=1e-6)
        np.testing.assert_allclose(mg.std(mg.tensor(values), axis).numpy(), want**0.5, rtol=1e-6)


# ---- what is dropped ----------------------------------------------------------------------------


ALONG = {
    "var": lambda t: mg.var(t, 1),
    "std": lambda t: mg.std(t, 1),
    "logsumexp": lambda t: mg.logsumexp(t, 1),
    "norm": lambda t: mg.norm(t, 2, 1),
    "norm 3": lambda t: mg.norm(t, 3, 1),
    "norm 0.5": lambda t: mg.norm(t, 0.5, 1),
    "prod": lambda t: mg.prod(t, 1),
    "cumprod": lambda t: mg.cumprod(t, 1).sum(1),
    "logcumsumexp": lambda t: mg.logcumsumexp(t, 1).sum(1),
    "mean of log": lambda t: mg.mean(t.log(), 1),
    "scatter_reduce": lambda t: t.scatter_reduce(1, (t != t).long(), t, "prod").sum(1),
}


@pytest.mark.parametrize("spoilt", [INF, -INF, NAN, 0.0])
@pytest.mark.parametrize("f", ALONG.values(), ids=ALONG)
def test_a_row_that_is_dropped_counts_for_nothing(f, spoilt):
    """However infinite its derivatives are, to second order; rule 2 for what is no map."""
    good = [1.0, 2.0, 4.0]
    keep = mg.tensor([False, True])
    alone = [derivatives(lambda t: f(t.reshape(1, 3))[0], good, dtype=d) for d in DTYPES]
    for row in ([spoilt] * 3, [1.0, spoilt, 2.0]):
        for dtype, (y, (g,), (gg,)) in zip(DTYPES, alone, strict=True):
            assert_row(
                lambda t: mg.where(keep, f(t), 0.0),
                ([row, good],),
                [0.0, y],
                ([[0, 0, 0], g],),
                ([[0, 0, 0], gg],),
                dtype=dtype,
                within=1,
            )


# ---- nothing -------------------------------------------------------------------------------------


def test_extrema_of_nothing():
    for f in (mg.amax, mg.amin, mg.max, mg.min, mg.argmax, mg.argmin):
        with pytest.raises(ValueError, match="empty dim 0"):
            f(mg.zeros(0))
        with pytest.raises(ValueError, match=r"empty dim 1 of shape \(3, 0\)"):
            f(mg.zeros(3, 0), 1)
    for graph in (False, True):
        for f in (lambda t: t.amax(1), lambda t: t.max(1).values, lambda t: t.norm(INF, 1)):
            x = mg.zeros(0, 3, requires_grad=True)
            y = f(x)
            assert y.shape == (0,)
            assert mg.grad(y, x, mg.zeros(0), create_graph=graph)[0].shape == (0, 3)


def test_sums_of_nothing():
    for f, y in (
        (mg.sum, 0.0),
        (mg.nansum, 0.0),
        (mg.prod, 1.0),
        (mg.mean, NAN),
        (mg.nanmean, NAN),
        (mg.median, NAN),
        (mg.logsumexp, -INF),
        (mg.norm, 0.0),
        (lambda t: mg.norm(t, 3), 0.0),
        (lambda t: mg.norm(t, 1), 0.0),
    ):
        assert_row(f, ([],), y, ([],))
    for f in (mg.var, mg.std):
        assert_row(f, ([],), NAN, ([],))


def test_real_zeros_as_second_derivatives():
    """Linear operations, ties and sorting: a zero with a graph, never an error."""
    for f in (
        mg.sum,
        mg.mean,
        mg.nansum,
        mg.nanmean,
        mg.amax,
        mg.median,
        mg.trace,
        lambda t: t.cumsum(0),
        lambda t: t.cummax(1).values,
        lambda t: t.sort(0).values,
        lambda t: t.quantile(0.3),
        lambda t: t.diff(),
        lambda t: t.norm(1),
        lambda t: t.norm(INF),
    ):
        _, _, second = derivatives(f, [[1.0, -2.0], [3.0, 0.0]])
        assert second == [[[0, 0], [0, 0]]]
