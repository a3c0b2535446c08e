"""The elementwise functions that take more than tensors, and those that answer with a bool."""

from __future__ import annotations

import math
import operator

import numpy as np
import oracle
import pytest
from scipy import special as scipy_special

import minigrad as mg
from minigrad import elementwise, special
from minigrad.ops import TABLE
from minigrad.row_functions import binary, unary

INF, NAN = math.inf, math.nan


def arrays(rng, *shapes):
    return [rng.normal(size=s) for s in shapes]


# ---- names ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("names", "f"),
    [
        ("absolute", mg.abs),
        ("negative", mg.neg),
        ("sgn", mg.sign),
        ("fix", mg.trunc),
        ("clip", mg.clamp),
        ("arcsin", mg.asin),
        ("arccos", mg.acos),
        ("arctan", mg.atan),
        ("arctan2", mg.atan2),
        ("arcsinh", mg.asinh),
        ("arccosh", mg.acosh),
        ("arctanh", mg.atanh),
        ("multiply", mg.mul),
        ("subtract", mg.sub),
        ("divide", mg.div),
        ("less", mg.lt),
        ("less_equal", mg.le),
        ("greater", mg.gt),
        ("greater_equal", mg.ge),
        ("not_equal", mg.ne),
    ],
)
def test_other_names(names, f):
    assert getattr(mg, names) is f


def test_special_names():
    assert special.expit is mg.sigmoid
    assert special.gammaln is mg.lgamma
    assert special.psi is mg.digamma
    for name in special.__all__:
        assert callable(getattr(special, name))
        assert getattr(special, name).__doc__


def test_every_function_explains_itself():
    for name in elementwise.__all__:
        assert ". " in getattr(mg, name).__doc__.replace("\n", " ") + " ", name


# ---- arithmetic ----------------------------------------------------------------------------------


def test_alpha(rng):
    a, b = arrays(rng, (3, 4), (4,))
    for f, sign in ((mg.add, 1), (mg.sub, -1)):
        oracle.assert_same(f(mg.tensor(a), mg.tensor(b), alpha=2).numpy(), a + sign * 2 * b)
        oracle.assert_same(f(mg.tensor(a), 1.5, alpha=2).numpy(), a + sign * 3)
        oracle.check_gradients(lambda x, y, f=f: f(x, y, alpha=-0.5), [a, b], rng)
    got = mg.tensor([1, 2]).add(mg.tensor([3, 4]), alpha=10)
    assert got.tolist() == [31, 42]
    assert got.dtype is mg.int64


@pytest.mark.parametrize("mode", ["trunc", "floor"])
@pytest.mark.parametrize("dtype", [np.int64, np.float32, np.float64])
def test_division_with_rounding(mode, dtype, rng):
    a = rng.integers(-50, 50, 200).astype(dtype)
    b = rng.choice([-7, -3, -1, 1, 2, 9], 200).astype(dtype)
    got = mg.div(mg.tensor(a), mg.tensor(b), rounding_mode=mode).numpy()
    want = np.trunc(a / b) if mode == "trunc" else np.floor(a / b)
    np.testing.assert_array_equal(got, want)
    assert got.dtype == dtype
    if dtype is np.float64:
        f = lambda x, y: mg.div(x, y, rounding_mode=mode)  # noqa: E731
        xs = [mg.tensor(t, requires_grad=True) for t in (a, b)]
        for g in mg.grad(f(*xs).sum(), xs, create_graph=True):
            assert not g.detach().numpy().any()


def test_division_modes_are_checked():
    with pytest.raises(ValueError, match=r"\[div\] rounding_mode is 'up': use None, 'trunc' or"):
        mg.div(mg.ones(2), 2, rounding_mode="up")
    with pytest.raises(ZeroDivisionError):
        mg.div(mg.tensor([1]), mg.tensor([0]), rounding_mode="trunc")
    assert (mg.tensor([7]) / 2).dtype is mg.float32


def test_integer_division_is_pythons():
    numbers = [-(2**63), -7, -1, 0, 1, 5, 2**63 - 1]
    divisors = [-(2**63), -3, -1, 1, 2, 2**63 - 1]
    for a in numbers:
        for b in divisors:
            x, y = mg.tensor(a), mg.tensor(b)
            if (a, b) != (-(2**63), -1):  # which wraps around
                assert mg.floor_divide(x, y).item() == a // b
            assert mg.remainder(x, y).item() == a % b
            assert mg.fmod(x, y).item() == int(math.copysign(1, a)) * (abs(a) % abs(b))
    assert mg.floor_divide(mg.tensor(-(2**63)), -1).item() == -(2**63)


@pytest.mark.parametrize("dtype", [mg.float32, mg.float64], ids=lambda dtype: dtype.name)
@pytest.mark.parametrize("graph", [False, True])
def test_round_to_more_decimals_than_there_are(dtype, graph):
    large = 3e38 if dtype is mg.float32 else 1.7e308
    values = [0.0, -0.0, 1.5, -2.25, large, -large, np.inf, -np.inf, np.nan]
    x = mg.tensor(values, dtype=dtype, requires_grad=True)
    for decimals in (20, 45, 400, 2**70):
        y = mg.round(x, decimals=decimals)
        np.testing.assert_array_equal(y.detach().numpy()[4:], x.detach().numpy()[4:])
        np.testing.assert_allclose(y.detach().numpy()[:4], x.detach().numpy()[:4], rtol=3e-7)
        (g,) = mg.grad(y.sum(), x, create_graph=graph)
        assert g.tolist() == [0.0] * 9
    for decimals in (-45, -309, -(2**70)):
        if decimals > -309 and dtype is mg.float64:
            continue
        y = mg.round(x, decimals=decimals)
        assert y.tolist()[:6] == [0.0] * 6
        assert np.isnan(y.tolist()[8])


@pytest.mark.parametrize("decimals", [0, 1, 3, -1, -2])
def test_round(decimals, rng):
    x = rng.normal(size=300) * 100
    got = mg.round(mg.tensor(x), decimals=decimals)
    np.testing.assert_allclose(got.numpy(), np.round(x, decimals), rtol=1e-15)
    leaf = mg.tensor(x, requires_grad=True)
    (g,) = mg.grad(mg.round(leaf, decimals=decimals).sum(), leaf, create_graph=True)
    assert g.detach().numpy().tolist() == [0] * 300


def test_round_of_integers():
    x = mg.tensor([15, -25])
    assert mg.round(x).tolist() == mg.round(x, decimals=2).tolist() == [15, -25]
    with pytest.raises(TypeError, match=r"\[round\] decimals=-1 is for floats: convert int64"):
        mg.round(x, decimals=-1)


def test_positive():
    x = mg.ones(2)
    assert mg.positive(x) is x
    with pytest.raises(TypeError, match=r"\[positive\] not offered for bool"):
        mg.positive(x > 0)


# ---- bounds --------------------------------------------------------------------------------------


def test_clamp_values(rng):
    x, low, high = rng.normal(size=(4, 5)), rng.normal(size=5), rng.normal(size=(4, 1))
    t, lo, hi = (mg.tensor(v) for v in (x, low, high))
    oracle.assert_same(mg.clamp(t, lo, hi).numpy(), np.clip(x, low, high))
    oracle.assert_same(mg.clamp(t, -0.5, 0.5).numpy(), np.clip(x, -0.5, 0.5))
    oracle.assert_same(mg.clamp(t, lo).numpy(), np.maximum(x, low))
    oracle.assert_same(mg.clamp(t, max=hi).numpy(), np.minimum(x, high))
    oracle.assert_same(mg.clamp_min(t, 0.1).numpy(), np.maximum(x, 0.1))
    oracle.assert_same(t.clamp_max(0.1).numpy(), np.minimum(x, 0.1))
    oracle.check_gradients(mg.clamp, [x, np.full(5, -0.4), np.full((4, 1), 0.3)], rng)
    oracle.check_gradients(lambda v: mg.clamp(v, -0.5, 0.5), [x], rng)


def test_clamp_dtypes():
    x = mg.tensor([-5, 0, 2**62])
    assert mg.clamp(x, -1, 3).tolist() == [-1, 0, 3]
    assert mg.clamp(x, -1).tolist() == [-1, 0, 2**62]
    assert mg.clamp(x, max=1).tolist() == [-5, 0, 1]
    assert mg.clamp(x, -0.5, 3).dtype is mg.float32
    assert mg.clamp(x, max=mg.tensor(1.5, mg.float64)).dtype is mg.float64
    assert mg.clamp(mg.ones(2), 0, mg.tensor([1.0, 2.0], mg.float64)).dtype is mg.float64
    assert mg.clamp(mg.ones(2), 0.5, 2).dtype is mg.float32
    assert mg.clamp(mg.ones(0, 3), 0).shape == (0, 3)


def test_clamp_is_checked():
    with pytest.raises(ValueError, match=r"\[clamp\] neither min nor max is given"):
        mg.clamp(mg.ones(2))
    with pytest.raises(TypeError, match=r"\[clamp\] expected a Tensor, a number or an array"):
        mg.clamp(mg.ones(2), "low")
    with pytest.raises(ValueError, match=r"\[clamp\]"):
        mg.clamp(mg.ones(2), mg.ones(3))
    with pytest.raises(TypeError, match=r"\[clamp\] not offered for bool"):
        mg.clamp(mg.tensor([True]), False, True)


def test_nan_to_num_keeps_integers():
    x = mg.tensor([1, 2])
    assert mg.nan_to_num(x) is x


# ---- several inputs ------------------------------------------------------------------------------


def test_lerp_addcmul_addcdiv(rng):
    a, b, c = arrays(rng, (3, 4), (4,), (3, 1))
    x, y, z = (mg.tensor(v) for v in (a, b, c))
    np.testing.assert_allclose(mg.lerp(x, y, 0.3).numpy(), a + 0.3 * (b - a), rtol=1e-13)
    np.testing.assert_allclose(mg.lerp(x, y, z).numpy(), a + c * (b - a), rtol=1e-12, atol=1e-14)
    oracle.assert_same(mg.lerp(x, y, 1).numpy(), np.broadcast_to(b, (3, 4)).copy())
    oracle.assert_same(mg.addcmul(x, y, z, value=0.5).numpy(), a + b * c * 0.5)
    oracle.assert_same(mg.addcdiv(x, y, z, value=2).numpy(), a + b / c * 2)
    for f in (
        mg.lerp,
        lambda p, q, r: mg.lerp(p, q, 0.7) + r,
        lambda p, q, r: mg.addcmul(p, q, r, value=-1.5),
        lambda p, q, r: mg.addcdiv(p, q, r + 5.0, value=2),
    ):
        oracle.check_gradients(f, [a, b, np.where(np.abs(np.abs(c) - 0.5) < 0.01, 0.2, c)], rng)
    assert mg.lerp(mg.ones(2), mg.zeros(2), 0.3).dtype is mg.float32


def test_logit_with_eps(rng):
    x = np.array([0.0, 0.001, 0.3, 0.9999, 1.0])
    got = mg.logit(mg.tensor(x), eps=0.01).numpy()
    np.testing.assert_allclose(got, scipy_special.logit(np.clip(x, 0.01, 0.99)), rtol=1e-14)
    leaf = mg.tensor(x, requires_grad=True)
    (g,) = mg.grad(mg.logit(leaf, eps=0.01).sum(), leaf)
    np.testing.assert_allclose(g.numpy(), [0, 0, 1 / 0.21, 0, 0], rtol=1e-14)


@pytest.mark.parametrize("n", [0, 1, 2, 3, 5])
def test_polygamma(n, rng):
    x = np.concatenate([rng.uniform(0.05, 20, 40), rng.uniform(-5, -0.1, 20), [1e4, 0.5, 1.0]])
    x = x[np.abs(x - np.round(x)) > 0.02]
    want = scipy_special.polygamma(n, x)
    np.testing.assert_allclose(mg.polygamma(n, mg.tensor(x)).numpy(), want, rtol=2e-12)
    np.testing.assert_allclose(mg.tensor(x).polygamma(n).numpy(), want, rtol=2e-12)
    oracle.check_gradients(lambda t: mg.polygamma(n, t), [rng.uniform(1, 5, 4)], rng, rtol=1e-7)
    assert mg.polygamma(n, mg.tensor([3])).dtype is mg.float32


def test_polygamma_is_checked():
    with pytest.raises(ValueError, match=r"\[polygamma\] n is -1, but must be at least 0"):
        mg.polygamma(-1, mg.ones(2))
    with pytest.raises(TypeError, match=r"\[polygamma\] n must be an integer, not float"):
        mg.polygamma(1.5, mg.ones(2))


# ---- questions -----------------------------------------------------------------------------------

ODD = [0.0, -0.0, 1.0, 1.0 + 1e-7, 1e-9, NAN, INF, -INF, 1e300]


@pytest.mark.parametrize("equal_nan", [False, True])
@pytest.mark.parametrize("tolerances", [(1e-5, 1e-8), (0.0, 0.0), (0.5, 3.0)])
def test_isclose(equal_nan, tolerances):
    a, b = (v.ravel() for v in np.meshgrid(ODD, ODD))
    with np.errstate(all="ignore"):
        want = np.isclose(a, b, *tolerances, equal_nan)
    got = mg.isclose(mg.tensor(a), mg.tensor(b), *tolerances, equal_nan)
    oracle.assert_same(got.numpy(), want)
    assert mg.allclose(mg.tensor(a), mg.tensor(a), equal_nan=equal_nan) is equal_nan
    assert mg.isclose(mg.tensor([1, 5]), mg.tensor([1, 6])).tolist() == [True, False]
    assert mg.isclose(mg.tensor([True]), mg.tensor([False])).tolist() == [False]
    assert mg.isclose(1.0, 1.0 + 1e-9).item() is True
    assert mg.isclose(0.1, mg.tensor([0.1], mg.float64), 0, 0).tolist() == [True]
    with pytest.raises(TypeError, match=r"\[isclose\] expected a Tensor, a number or an array"):
        mg.isclose(mg.ones(1), "one")


def test_isclose_is_checked():
    with pytest.raises(ValueError, match=r"\[isclose\] rtol=-1 and atol=0 must not be negative"):
        mg.isclose(mg.ones(1), mg.ones(1), -1, 0)


def test_equal():
    x = mg.tensor([1.0, NAN])
    assert mg.equal(x[:1], x[:1]) is True
    assert mg.equal(x, x) is False
    assert mg.equal(mg.ones(2), mg.ones(1)) is False
    assert mg.equal(mg.ones(2), mg.ones(2, dtype=mg.float64)) is True
    assert mg.equal(mg.ones(0), mg.ones(0)) is True
    assert mg.allclose(mg.ones(3), mg.ones(1)) is True


def test_infinite_of_either_sign():
    x = mg.tensor([INF, -INF, NAN, 0.0], requires_grad=True)
    assert mg.isposinf(x).tolist() == [True, False, False, False]
    assert mg.isneginf(x).tolist() == [False, True, False, False]
    assert mg.isposinf(mg.tensor([1])).tolist() == [False]


def test_heaviside_gives_its_gradient_to_the_value_at_zero():
    x = mg.tensor([-1.0, 0.0, 2.0], requires_grad=True)
    v = mg.tensor([5.0, 0.25, 7.0], requires_grad=True)
    y = mg.heaviside(x, v)
    assert y.tolist() == [0, 0.25, 1]
    assert [g.tolist() for g in mg.grad(y.sum(), (x, v))] == [[0, 0, 0], [0, 1, 0]]
    assert mg.heaviside(mg.tensor([-1, 0, 3]), mg.tensor(9)).tolist() == [0, 9, 1]


def test_nextafter(rng):
    values = np.array([*ODD, 5e-324, -5e-324, 2.0, -1e308])
    for dtype in (np.float32, np.float64):
        with np.errstate(all="ignore"):
            a, b = (v.ravel().astype(dtype) for v in np.meshgrid(values, values))
            want = np.nextafter(a, b)
        got = mg.nextafter(mg.tensor(a), mg.tensor(b)).numpy()
        ignored = (a == 0) & (b == 0)  # the sign: C and NumPy's libraries differ
        oracle.assert_same(got[~ignored], want[~ignored])
    x = mg.ones(2, requires_grad=True)
    assert mg.grad(mg.nextafter(x, mg.tensor([2.0, 1.0])).sum(), [x])[0].tolist() == [1, 0]


def test_bits_of_integers_with_numbers():
    x = mg.tensor([5, -6])
    assert mg.bitwise_and(x, 3).tolist() == [1, 2]
    assert mg.bitwise_xor(7, x).tolist() == [2, -3]
    assert mg.bitwise_left_shift(x, 64).tolist() == [0, 0]
    assert mg.bitwise_right_shift(x, 64).tolist() == [0, -1]
    assert mg.bitwise_left_shift(x, mg.tensor([1, 2])).tolist() == [10, -24]
    assert mg.bitwise_or(x > 0, mg.tensor([False, True])).tolist() == [True, True]
    with pytest.raises(TypeError, match=r"\[bitwise_and\] not offered for"):
        mg.bitwise_and(x, 1.5)


@pytest.mark.parametrize("f", [mg.atan2, mg.hypot, mg.logaddexp, mg.xlogy, mg.copysign])
def test_floats_of_integers(f):
    got = f(mg.tensor([3, 4]), mg.tensor([4, 2]))
    assert got.dtype is mg.float32
    np.testing.assert_array_equal(
        got.numpy(), f(mg.tensor([3.0, 4.0]), mg.tensor([4.0, 2.0])).numpy()
    )


def test_reflected_numbers_and_arrays():
    x = mg.tensor([1.0, 2.0])
    for f, g in ((mg.atan2, np.arctan2), (mg.fmod, np.fmod), (mg.floor_divide, operator.floordiv)):
        np.testing.assert_allclose(f(5.0, x).numpy(), g(5.0, x.numpy()), rtol=1e-6)
        np.testing.assert_allclose(
            f(np.float32([3, 5]), x).numpy(), g(np.float32([3, 5]), x.numpy()), rtol=1e-6
        )
    with pytest.raises(TypeError, match=r"\[atan2\] expected a Tensor, a number or an array"):
        mg.atan2(x, "one")


@pytest.mark.parametrize("f", [mg.logaddexp, mg.logaddexp2])
@pytest.mark.parametrize("size", [1, 31, 511, 512, 513, 1500, 66000])
def test_floats_by_way_of_doubles(f, size, rng):
    a, b = np.float32(rng.normal(scale=20, size=(2, size)))
    a[::7], b[::9], b[::11] = np.inf, -np.inf, np.nan
    got = f(mg.tensor(a), mg.tensor(b)).numpy()
    doubles = f(mg.tensor(np.float64(a)), mg.tensor(np.float64(b))).numpy()
    np.testing.assert_array_equal(got, np.float32(doubles))


# ---- the ends of loops ---------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, np.bool_])
def test_every_length(dtype, rng):
    """Kernels take whole vectors; what is left at the end is padded, or computed once more."""
    a, b = (rng.integers(1, 100, 200).astype(dtype) for _ in range(2))
    rows = np.ascontiguousarray(np.broadcast_to(b, (3, 200)))
    for n in (*range(1, 140), 199):
        x, y = mg.from_numpy(a[:n]), mg.from_numpy(b[:n])
        np.testing.assert_array_equal((x * y).numpy(), a[:n] * b[:n])
        np.testing.assert_array_equal((x < y).numpy(), a[:n] < b[:n])
        np.testing.assert_array_equal(mg.where(x < y, x, y).numpy(), np.minimum(a[:n], b[:n]))
        np.testing.assert_array_equal(x.to(mg.float64).numpy(), a[:n].astype(np.float64))
        many = mg.from_numpy(rows)[:, :n]  # rows that do not follow each other
        np.testing.assert_array_equal((many * x).numpy(), rows[:, :n] * a[:n])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "row", [r for r in TABLE.values() if r.family == "pointwise"], ids=lambda row: row.name
)
def test_an_element_does_not_depend_on_its_neighbours(row, dtype, rng):
    """What is rare has a way of its own, which all of its block then go: it leads to the same bits.

    Else these would depend on the instruction set, whose blocks differ, and on the memory layout.
    """
    edges = np.array([0, -0.0, np.inf, -np.inf, np.nan, -1, 1, 1e-30, -1e30, 1e30], dtype)
    f = unary(row) if row.arity == 1 else binary(row)

    def run(xs, cotangent):
        leaves = [mg.tensor(x).requires_grad_() for x in xs]
        y = f(*leaves)
        slopes = mg.grad(y, leaves, mg.tensor(cotangent)) if y.requires_grad else ()
        return [t.detach().numpy() for t in (y, *slopes)]

    for low, high in ((0, 1), (0.01, 80), (-3, 3)):
        xs = [rng.uniform(low, high, 512).astype(dtype) for _ in range(row.arity)]
        cotangent = rng.normal(size=512).astype(dtype)
        alone = run(xs, cotangent)
        for apart in (1, 40):  # elements between two edges
            at = np.arange(512) + np.arange(512) // apart
            among = [np.resize(np.repeat(edges, k), at[-1] + 2) for k in (1, 10)[: row.arity]]
            for y, x in zip(among, xs, strict=True):
                y[at] = x
            ones = np.ones(at[-1] + 2, dtype)
            ones[at] = cotangent
            for got, want in zip(run(among, ones), alone, strict=True):
                oracle.assert_same(got[at], want)


@pytest.mark.parametrize("f", [mg.exp, mg.exp2, mg.expm1])
def test_powers_beside_those_out_of_range(f, rng):
    """Blocks in which all powers are normal numbers, or not too large, have a shorter way."""
    for x in (rng.uniform(-690, 690, 4096), rng.uniform(-15.9, 15.9, 4096)):
        alone, among = f(mg.tensor(x)).numpy(), np.repeat(x, 2)
        edges = [-800.0, 705, -705, 1100, -1100, 709.75, -744.5, 16, np.nan]
        among[1::2] = np.resize(edges, x.size)
        np.testing.assert_array_equal(f(mg.tensor(among)).numpy()[::2], alone)


@pytest.mark.parametrize("name", ["expm1", "erf", "erfc", "ndtr", "gelu"])
def test_slopes_beside_those_out_of_range(name, rng):
    """The same of slopes; where they are not normal numbers, too."""
    f = unary(TABLE[name])

    def slopes(x):
        leaf = mg.tensor(x).requires_grad_()
        return mg.grad(f(leaf).sum(), leaf)[0].numpy()

    for far in (18, 26, 36):
        x = rng.uniform(-far, far, 4096)
        alone, among = slopes(x), np.repeat(x, 2)
        edges = np.array([0, 27, -27.2, 37.5, -38.4, 39.6, 700, -701, 1e300, -INF, INF, NAN])
        among[1::2] = np.resize(edges, x.size)
        np.testing.assert_array_equal(slopes(among)[::2], alone)
        np.testing.assert_array_equal(slopes(among)[1 : 2 * edges.size : 2], slopes(edges))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("power", [3, 0.5, -0.5])
def test_powers_by_numbers_that_have_kernels_of_their_own(power, dtype, rng):
    """At most a unit off, C99's signs and limits, and slopes as those by a tensor."""
    x = np.concatenate([rng.normal(size=4099), np.exp(rng.uniform(-29, 29, 4099))])
    x = np.concatenate([x, -x]).astype(dtype)
    leaf = mg.tensor(x, requires_grad=True)
    y = leaf**power
    with np.errstate(all="ignore"):
        wanted = x.astype(np.longdouble) ** power
        slope = power * x.astype(np.longdouble) ** (power - 1)
    units = np.spacing(np.abs(wanted).astype(dtype))
    real = ~np.isnan(wanted)
    off = np.abs(y.detach().numpy() - wanted) / units
    assert off[real].max() <= 1
    assert np.isnan(y.detach().numpy()[~real]).all()
    g = rng.normal(size=x.size).astype(dtype)
    y.backward(mg.tensor(g))
    tolerance = 4 * np.finfo(dtype).eps
    np.testing.assert_allclose(leaf.grad.numpy()[real], (g * slope)[real], rtol=tolerance)

    edges = np.array([0.0, -0.0, INF, -INF, NAN, 1, -1, 1e-30, 1e13, -1e13], dtype)
    for length in (10, 50):  # in a block of their own, and among others
        at = mg.tensor(np.resize(edges, length), requires_grad=True)
        by_number, by_tensor = at**power, at ** mg.full(length, power, dtype=at.dtype)
        a, b = by_number.detach().numpy(), by_tensor.detach().numpy()
        np.testing.assert_allclose(a, b, rtol=tolerance)
        np.testing.assert_array_equal(np.signbit(a)[b == 0], np.signbit(b)[b == 0])
        slopes = [mg.grad(y.sum(), at)[0].numpy() for y in (by_number, by_tensor)]
        np.testing.assert_allclose(*slopes, rtol=tolerance)


def test_powers_that_are_exact():
    n = np.arange(-1080.0, 1024)
    np.testing.assert_array_equal(mg.exp2(mg.tensor(n)).numpy(), np.ldexp(1.0, n.astype(int)))
    small = np.ldexp([1.0, -1, 0, -0.0], -55)
    for f in (mg.exp, mg.exp2):
        np.testing.assert_array_equal(f(mg.tensor(small)).numpy(), np.ones(4))


@pytest.mark.parametrize("n", [1, 31, 64, 65, 100, 255, 33000])
def test_gradients_add_up_in_place_at_every_length(n, rng):
    x = mg.tensor(rng.integers(1, 9, n).astype(np.float32), requires_grad=True)
    for _ in range(3):
        (x * x).backward(mg.ones(n))
    np.testing.assert_array_equal(x.grad.numpy(), 6 * x.detach().numpy())


def test_large_arrays_are_computed_to_the_end(rng):
    """Beyond the caches memory is asked for ahead; copies too."""
    a, b = (rng.integers(1, 100, 1_200_007).astype(np.float32) for _ in range(2))
    x, y = mg.from_numpy(a), mg.from_numpy(b)
    np.testing.assert_array_equal((x + y).numpy(), a + b)
    np.testing.assert_array_equal((x + 1).numpy(), a + 1)
    np.testing.assert_array_equal(x.clone().numpy(), a)


@pytest.mark.parametrize("f", [mg.mul, mg.div, mg.pow, mg.atan2, mg.hypot, mg.logaddexp])
@pytest.mark.parametrize("shapes", [((70_001,),) * 2, ((1_200_007,),) * 2, ((300, 1), (1, 301))])
def test_both_gradients_of_large_arrays_in_one_pass(f, shapes, rng):
    a, b = (mg.tensor(rng.uniform(0.5, 2, s).astype(np.float32)) for s in shapes)
    g = mg.tensor(rng.normal(size=np.broadcast_shapes(*shapes)).astype(np.float32))
    x, y = (v.clone().requires_grad_() for v in (a, b))
    f(x, y).backward(g)
    for leaf, alone in ((x, lambda x: f(x, b)), (y, lambda y: f(a, y))):
        other = leaf.detach().clone().requires_grad_()
        alone(other).backward(g)
        np.testing.assert_array_equal(leaf.grad.numpy(), other.grad.numpy())


def test_one_pass_notices_what_was_overwritten():
    x = mg.ones(70_000, requires_grad=True)
    a, b = x * 2, x * 3
    y = a * b
    b.zero_()
    with pytest.raises(RuntimeError, match=r"\[mul\] a tensor saved for backward was overwritten"):
        y.sum().backward()


def test_polygamma_whose_factorial_overflows_is_refused():
    assert np.isfinite(mg.polygamma(170, mg.tensor(2.0, dtype=mg.float64)).item())
    for n in (171, 2**40):
        with pytest.raises(ValueError, match=r"\[polygamma\] n is .*, but must be at most 170"):
            mg.polygamma(n, mg.tensor(2.0))
