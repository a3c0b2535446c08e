"""The edge table's rows on elementwise operations, but those of powers, poles and extremes."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
from oracle import assert_row, derivatives

import minigrad as mg
from minigrad import special
from minigrad.ops import TABLE
from minigrad.row_functions import unary

INF, NAN = math.inf, math.nan
by_dtype = pytest.mark.parametrize("dtype", [mg.float32, mg.float64], ids=["float32", "float64"])
softplus, logsigmoid, silu, gelu, gelu_tanh = (
    unary(TABLE[name]) for name in ("softplus", "logsigmoid", "silu", "gelu", "gelu_tanh")
)


# ---- kinks ---------------------------------------------------------------------------------------


def test_rounding_is_flat_everywhere():
    x = [-1.5, -0.5, 0.0, 0.5, 2.0, INF]
    flat = ([0] * 6,)
    for f, y in (
        (mg.floor, [-2.0, -1.0, 0.0, 0.0, 2.0, INF]),
        (mg.ceil, [-1.0, -0.0, 0.0, 1.0, 2.0, INF]),
        (mg.trunc, [-1.0, -0.0, 0.0, 0.0, 2.0, INF]),
        (mg.round, [-2.0, -0.0, 0.0, 0.0, 2.0, INF]),
        (mg.sign, [-1.0, -1.0, 0.0, 1.0, 1.0, 1.0]),
    ):
        assert_row(f, (x,), y, flat, flat)
    assert_row(mg.floor_divide, ([-7.0], [3.0]), [-3.0], ([0], [0]), ([0], [0]))
    assert_row(mg.frac, ([1.5, 2.0],), [0.5, 0.0], ([1, 1],), ([0, 0],))


def test_fmax_and_fmin():
    for f in (mg.fmax, mg.fmin):
        assert_row(f, (2.0, 2.0), 2.0, (0.5, 0.5), (0, 0))
        assert_row(f, (INF, INF), INF, (0.5, 0.5), (0, 0))
        assert_row(f, (NAN, 1.0), 1.0, (0, 1), (0, 0))
        assert_row(f, (1.0, NAN), 1.0, (1, 0), (0, 0))
        assert_row(f, (NAN, NAN), NAN, (0.5, 0.5), (0, 0))
    assert_row(mg.fmax, (1.0, 2.0), 2.0, (0, 1), (0, 0))
    assert_row(mg.fmin, (1.0, 2.0), 1.0, (1, 0), (0, 0))


def test_clip_with_numbers():
    def f(x):
        return mg.clamp(x, -1.0, 2.0)

    x, y = [-3.0, -1.0, 0.5, 2.0, 5.0, NAN], [-1.0, -1.0, 0.5, 2.0, 2.0, NAN]
    assert_row(f, (x,), y, ([0, 1, 1, 1, 0, 0],), ([0] * 6,))

    def crossed(x):
        return mg.clamp(x, 2.0, 1.0)

    x = [0.0, 1.0, 1.5, 2.0, 3.0]
    assert_row(crossed, (x,), [1.0] * 5, ([0] * 5,), ([0] * 5,))
    for bounds in ((NAN, 1.0), (0.0, NAN), (NAN, None)):

        def f(x, b=bounds):
            return mg.clamp(x, *b)

        assert_row(f, (0.5,), NAN, (0,), (0,))
    for f in (lambda x: mg.clamp(x, 0.0), lambda x: mg.clamp(x, max=0.0)):
        assert_row(f, (0.0,), 0.0, (1,), (0,))
        assert_row(f, (0.0,), 0.0, (0,), upstream=0.0)


def test_clip_with_tensors():
    f = mg.clamp
    assert_row(f, (1.0, 1.0, 3.0), 1.0, (1, 0, 0), (0, 0, 0))  # on a bound: all to x
    assert_row(f, (3.0, 1.0, 3.0), 3.0, (1, 0, 0), (0, 0, 0))
    assert_row(f, (0.0, 1.0, 3.0), 1.0, (0, 1, 0), (0, 0, 0))
    assert_row(f, (4.0, 1.0, 3.0), 3.0, (0, 0, 1), (0, 0, 0))
    assert_row(f, (0.0, 2.0, 1.0), 1.0, (0, 0, 1), (0, 0, 0))  # crossed: the upper one
    for x in (1.0, 1.5, 2.0, 3.0):
        assert_row(f, (x, 2.0, 1.0), 1.0, (0, 0, 1), (0, 0, 0))
    assert_row(f, (0.0, 2.0, 2.0), 2.0, (0, 1, 0), (0, 0, 0))
    assert_row(f, (NAN, 1.0, 3.0), NAN, (0, 0, 0), (0, 0, 0))
    assert_row(f, (2.0, NAN, 3.0), NAN, (0, 0, 0), (0, 0, 0))


def test_copysign_at_zero():
    f = mg.copysign
    assert_row(f, (0.0, -2.0), -0.0, (0, 0), (0, 0))  # the least norm of -1 and 1
    assert_row(f, (3.0, -0.0), -3.0, (-1, 0), (0, 0))


# ---- singular points -----------------------------------------------------------------------------


def test_roots_and_inverses_at_their_ends():
    for f, x, y, g in (
        (mg.cbrt, 0.0, 0.0, INF),
        (mg.rsqrt, 0.0, INF, -INF),
        (mg.asin, 1.0, math.pi / 2, INF),
        (mg.asin, -1.0, -math.pi / 2, INF),
        (mg.acos, 1.0, 0.0, -INF),
        (mg.acosh, 1.0, 0.0, INF),
        (mg.atanh, 1.0, INF, INF),
        (mg.atanh, -1.0, -INF, INF),
        (mg.erfinv, 1.0, INF, INF),
        (mg.erfinv, -1.0, -INF, INF),
        (special.entr, 0.0, 0.0, INF),
        (mg.log2, 0.0, -INF, INF),
        (mg.log10, 0.0, -INF, INF),
        (mg.log1p, -1.0, -INF, INF),
        (mg.logit, 0.0, -INF, INF),
        (mg.logit, 1.0, INF, INF),
    ):
        assert_row(f, (x,), y, (g,))
        assert_row(f, (x,), y, (0,), upstream=0.0)
        finite = 0.0 if math.isfinite(y) else NAN
        assert_row(lambda x, f=f: 0.0 * abs(f(x)), (x,), finite, (0,))


@by_dtype
def test_where_drops_their_branches(dtype):
    """Rule 2 for all of them: a branch that was not taken contributes nothing, to any order."""
    fs = (mg.cbrt, mg.rsqrt, mg.asin, mg.acosh, mg.atanh, mg.erfinv, mg.log2, mg.log1p, mg.logit)
    for f in (*fs, special.entr, mg.lgamma, mg.digamma, mg.tan):
        x = mg.tensor([0.0, -1.0, 1.0, INF, NAN], dtype, requires_grad=True)
        y = mg.where(mg.tensor([False] * 5), f(x), x)
        (g,) = mg.grad(y.sum(), x, create_graph=True)
        assert g.tolist() == [1] * 5
        assert mg.grad(g.sum(), x)[0].tolist() == [0] * 5


@by_dtype
def test_hypot_and_atan2_at_the_origin(dtype):
    for zeros in ((0.0, 0.0), (-0.0, 0.0)):
        assert_row(mg.hypot, zeros, 0.0, (0, 0), (0, 0), dtype=dtype)
        assert_row(mg.atan2, zeros, zeros[0], (0, 0), (0, 0), dtype=dtype)
    assert_row(mg.atan2, (0.0, -0.0), math.pi, (0, 0), (0, 0), dtype=dtype)
    big = 1e38 if dtype is mg.float32 else 1e308
    assert_row(
        mg.hypot,
        (big, big),
        math.sqrt(2) * float(np.float64(big)),
        (0.5**0.5,) * 2,
        dtype=dtype,
        within=1,
    )
    assert_row(mg.atan2, (1.0, 1.0), math.pi / 4, (0.5, -0.5), dtype=dtype, within=1)


def test_fmod_and_remainder():
    assert_row(mg.fmod, (-7.0, 3.0), -1.0, (1, 2), (0, 0))
    assert_row(mg.remainder, (-7.0, 3.0), 2.0, (1, 3), (0, 0))
    assert_row(mg.fmod, (6.0, 3.0), 0.0, (1, -2), (0, 0))
    assert_row(mg.fmod, (1.0, 0.0), NAN, (0, 0), upstream=0.0)
    # 0.7 / 0.1 rounds up to 7, but 0.7 contains 0.1 only six times
    assert_row(mg.fmod, (0.7, 0.1), math.fmod(0.7, 0.1), (1, -6), (0, 0), dtype=mg.float64)


def test_xlogy_and_xlog1py():
    f = mg.xlogy
    assert_row(f, (0.0, 0.0), 0.0, (0, 0))
    assert_row(mg.xlogy, (0.0, 2.0), 0.0, (math.log(2), 0), within=1)
    assert_row(f, (0.0, -1.0), 0.0, (0, 0))
    assert_row(f, (0.0, NAN), NAN, (NAN, 0))
    assert_row(f, (2.0, 0.0), -INF, (-INF, INF))
    assert_row(f, (2.0, 0.0), -INF, (0, 0), upstream=0.0)
    f = special.xlog1py
    assert_row(f, (0.0, -1.0), 0.0, (0, 0))
    assert_row(special.xlog1py, (0.0, 1.0), 0.0, (math.log(2), 0), within=1)


# ---- limits --------------------------------------------------------------------------------------


@by_dtype
def test_logaddexp(dtype):
    for f in (mg.logaddexp, mg.logaddexp2):
        assert_row(f, (-INF, -INF), -INF, (0, 0), (0, 0), dtype=dtype)
        assert_row(f, (INF, INF), INF, (0.5, 0.5), (0, 0), dtype=dtype)
        assert_row(f, (-INF, 2.0), 2.0, (0, 1), (0, 0), dtype=dtype)
        assert_row(f, (1000.0, -1000.0), 1000.0, (1, 0), (0, 0), dtype=dtype)
    found = derivatives(mg.logaddexp, 1.7, 1.7, dtype=dtype)
    assert found[1] == [0.5, 0.5]  # exactly
    x = mg.tensor([1.7], dtype, requires_grad=True)
    (g,) = mg.grad(mg.logaddexp(x, mg.tensor([1.7], dtype)).sum(), x, create_graph=True)
    assert mg.grad(g.sum(), x)[0].item() == 0.25  # not flattened by the treatment of ties


def test_sigmoids_far_out():
    x = [1000.0, -1000.0, INF, -INF]
    assert_row(softplus, (x,), [1000.0, 0.0, INF, 0.0], ([1, 0, 1, 0],), ([0] * 4,))
    y = [-0.0, -1000.0, -0.0, -INF]
    assert_row(logsigmoid, (x,), y, ([0, 1, 0, 1],), ([0] * 4,))
    assert_row(silu, (x,), [1000.0, -0.0, INF, -0.0], ([1, 0, 1, 0],), ([0] * 4,))
    for f in (gelu, gelu_tanh):
        y = [1000.0, -0.0, INF, -0.0]
        assert_row(f, (x,), y, ([1, 0, 1, 0],), ([0] * 4,))
    assert_row(
        softplus,
        (25.0,),
        25.0 + math.log1p(math.exp(-25)),
        (1 / (1 + math.exp(-25)),),
        within=1,
    )
    assert_row(logsigmoid, (0.0,), -math.log(2), (0.5,), (-0.25,), within=1)


def test_gelu_in_its_tail():
    """Where 1 + erf has lost every digit."""
    phi = math.exp(-50) / math.sqrt(2 * math.pi)
    cdf = 7.619853024160526e-24  # ndtr(-10)
    assert_row(gelu, (-10.0,), -10 * cdf, (cdf - 10 * phi,), within=10)


def test_log_ndtr_in_its_tail():
    with mpmath.workdps(40):
        x = mpmath.mpf(-100)
        y = float(mpmath.log(mpmath.ncdf(x)))
        slope = float(mpmath.npdf(x) / mpmath.ncdf(x))
    assert_row(special.log_ndtr, (-100.0,), y, (slope,), within=1)
    assert_row(special.log_ndtr, ([INF, 50.0],), [0.0, 0.0], ([0, 0],), ([0, 0],))


def test_sinc_at_zero():
    assert_row(
        mg.sinc,
        ([0.0, -0.0],),
        [1.0, 1.0],
        ([0, 0],),
        ([-(math.pi**2) / 3] * 2,),
        within=1,
    )
    # to fourth order and close to 0, where the closed form cancels
    x = mg.tensor([0.0, 1e-4, 1e-2], mg.float64, requires_grad=True)
    y, orders = mg.sinc(x), []
    for _ in range(4):
        (y,) = mg.grad(y.sum(), x, create_graph=True)
        orders.append(y.detach().numpy())
    t, p = np.array([0.0, 1e-4, 1e-2]), math.pi
    series = [
        sum(
            (-1) ** k
            * p ** (2 * k)
            * t ** (2 * k - n)
            / math.factorial(2 * k + 1)
            * math.perm(2 * k, n)
            for k in range((n + 1) // 2, 9)
        )
        for n in range(1, 5)
    ]
    np.testing.assert_allclose(orders, series, rtol=1e-13)
    assert_row(mg.sinc, (INF,), 0.0, (0,))


def test_powers_to_the_power_zero_and_of_zero():
    f = mg.pow
    for a in (0.0, NAN, INF):
        assert derivatives(f, a, 0.0)[1][0] == 0
    assert_row(f, (0.0, 2.0), 0.0, (0, 0))
    assert_row(f, (0.0, 0.0), 1.0, (0, 0))


@by_dtype
def test_nan_to_num(dtype):
    x = [NAN, INF, -INF, 2.0]
    largest = float(np.finfo(np.float32 if dtype is mg.float32 else np.float64).max)
    f = mg.nan_to_num
    assert_row(f, (x,), [0.0, largest, -largest, 2.0], ([0, 0, 0, 1],), ([0] * 4,), dtype=dtype)

    def f(t):
        return mg.nan_to_num(t, 1.0, 2.0, 3.0)

    assert_row(f, (x,), [1.0, 2.0, 3.0, 2.0], ([0, 0, 0, 1],), ([0] * 4,), dtype=dtype)

    def f(t):
        return mg.nan_to_num(t, INF)  # what replaces NaN is not replaced again

    assert_row(f, (x,), [INF, largest, -largest, 2.0], ([0, 0, 0, 1],), ([0] * 4,), dtype=dtype)

    def f(t):
        return mg.nan_to_num(t, posinf=-INF)

    ends = [largest, -largest, -0.0, INF]
    wanted = [largest, -largest, -0.0, -INF]
    assert_row(f, (ends,), wanted, ([1, 1, 1, 0],), ([0] * 4,), dtype=dtype)


@by_dtype
def test_lerp_meets_its_ends(dtype):
    f = mg.lerp
    assert_row(
        f, (0.1, 0.75, 1.0), 0.75, (0, 1, mg.sub(0.75, mg.tensor(0.1, dtype)).item()), dtype=dtype
    )
    assert_row(
        f, (0.5, 0.7, 0.0), 0.5, (1, 0, mg.sub(mg.tensor(0.7, dtype), 0.5).item()), dtype=dtype
    )
    assert_row(f, (1.0, 3.0, 0.25), 1.5, (0.75, 0.25, 2.0), dtype=dtype)


def test_bessel_functions_at_zero():
    assert_row(mg.i0, (0.0,), 1.0, (0,), (0.5,))
    assert_row(special.i1, (0.0,), 0.0, (0.5,), (0,))
    assert_row(special.i0e, (0.0,), 1.0, (0,))
    assert_row(special.i1e, (0.0,), 0.0, (0.5,))


@pytest.mark.parametrize("dtype", [mg.float32, mg.float64])
def test_rare_numbers_beside_others(dtype):
    """A number has the same logarithm, and slopes of atan2, whatever stands beside it."""
    f = np.finfo(np.float32 if dtype == mg.float32 else np.float64)
    odd = [0.0, -0.0, -1.0, np.inf, -np.inf, np.nan]
    odd += [f.tiny / 8, f.tiny, f.tiny * 1.5, f.max, f.max / 3]
    for function in (mg.log, mg.log2, mg.log10, mg.log1p):
        for x in odd:
            alone = function(mg.tensor([x], dtype=dtype)).numpy()[0]
            among = np.full(200, 0.75)
            among[::7] = x
            y = function(mg.tensor(among, dtype=dtype)).numpy()
            usual = function(mg.tensor([0.75] * 200, dtype=dtype)).numpy()[0]
            np.testing.assert_array_equal(y[::7], np.full(29, alone))
            np.testing.assert_array_equal(np.delete(y, np.s_[::7]), np.full(171, usual))
    for x in odd:
        a = mg.tensor([0.1, x] * 50, dtype=dtype, requires_grad=True)
        b = mg.tensor([0.3, 0.7] * 50, dtype=dtype, requires_grad=True)
        mg.atan2(a, b).sum().backward()
        c = mg.tensor([0.1] * 100, dtype=dtype, requires_grad=True)
        d = mg.tensor([0.3] * 100, dtype=dtype, requires_grad=True)
        mg.atan2(c, d).sum().backward()
        np.testing.assert_array_equal(a.grad.numpy()[::2], c.grad.numpy()[:50])
        np.testing.assert_array_equal(b.grad.numpy()[::2], d.grad.numpy()[:50])
        assert np.isnan(x) or np.isfinite(a.grad.numpy()).all()


@by_dtype
@pytest.mark.parametrize("name", ["exp", "exp2"])
def test_an_exponent_beyond_the_range_changes_no_neighbour(name, dtype, rng):
    """What is far beyond is infinite or 0, whatever reducing it to a remainder makes of it."""
    f, width = getattr(mg, name), 4 if dtype is mg.float32 else 8
    usual = mg.tensor(rng.normal(size=200), dtype).numpy()
    alone = f(mg.tensor(usual)).numpy()
    largest = float(np.finfo(f"f{width}").max)
    for value in (*(s * v for s in (1, -1) for v in (1e4, 1e9, 1e30, largest, INF)), NAN):
        for at in (0, 17, 199):
            x = usual.copy()
            x[at] = value
            y = f(mg.tensor(x)).numpy()
            np.testing.assert_equal(y[at], NAN if value != value else INF if value > 0 else 0.0)
            assert np.delete(y, at).tobytes() == np.delete(alone, at).tobytes()
            whole = f(mg.tensor(np.full(130, value, x.dtype))).numpy()
            np.testing.assert_equal(whole, np.full(130, y[at]))
