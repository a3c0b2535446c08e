"""Activations against NumPy and SciPy in a wider type: values, derivatives, edges, modules."""

from __future__ import annotations

import dataclasses
import inspect
import math
import pickle

import numpy as np
import oracle
import pytest
import ulp
from scipy import special

import minigrad as mg
from minigrad import nn
from minigrad.nn import functional as F
from minigrad.ops import TABLE

INF, NAN = math.inf, math.nan
ALPHA, SCALE = 1.6732632423543772848170429916717, 1.0507009873554804934193349852946


def sigmoid(x):
    return np.where(x >= 0, 1 / (1 + np.exp(-abs(x))), np.exp(-abs(x)) / (1 + np.exp(-abs(x))))


def softplus(x):
    return np.maximum(x, 0) + np.log1p(np.exp(-abs(x)))


def elu(x, alpha=1.0, width=1.0):
    return np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0) / width))


def gelu_tanh(x):
    return x / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


# name: (arguments, reference, kinks)
CASES = {
    "relu": ({}, lambda x: np.maximum(x, 0), [0]),
    "relu6": ({}, lambda x: np.clip(x, 0, 6), [0, 6]),
    "leaky_relu": ({"negative_slope": 0.25}, lambda x: np.where(x > 0, x, x / 4), [0]),
    "rrelu": ({"lower": 0.25, "upper": 0.75}, lambda x: np.where(x > 0, x, x / 2), [0]),
    "threshold": ({"threshold": 0.5, "value": -3.0}, lambda x: np.where(x > 0.5, x, -3), [0.5]),
    "hardtanh": ({"min_val": -2.0, "max_val": 0.5}, lambda x: np.clip(x, -2, 0.5), [-2, 0.5]),
    "hardsigmoid": ({}, lambda x: np.clip(x + 3, 0, 6) / 6, [-3, 3]),
    "hardswish": ({}, lambda x: x * np.clip(x + 3, 0, 6) / 6, [-3, 3]),
    "softshrink": (
        {"lambd": 0.75},
        lambda x: np.sign(x) * np.maximum(abs(x) - 0.75, 0),
        [-0.75, 0.75],
    ),
    "hardshrink": ({"lambd": 0.75}, lambda x: np.where(abs(x) > 0.75, x, 0), [-0.75, 0.75]),
    "elu": ({"alpha": 1.5}, lambda x: elu(x, 1.5), [0]),
    "celu": ({"alpha": 1.5}, lambda x: elu(x, 1.5, 1.5), [0]),
    "selu": ({}, lambda x: SCALE * elu(x, ALPHA), [0]),
    "gelu": ({}, lambda x: x * special.ndtr(x.astype(np.float64)), []),
    "gelu_tanh": ({"approximate": "tanh"}, gelu_tanh, []),
    "silu": ({}, lambda x: x * sigmoid(x), []),
    "mish": ({}, lambda x: x * np.tanh(softplus(x)), []),
    "softplus": ({"beta": 2.0}, lambda x: softplus(2 * x) / 2, []),
    "logsigmoid": ({}, lambda x: -softplus(-x), []),
    "softsign": ({}, lambda x: x / (1 + abs(x)), []),
    "tanhshrink": ({}, lambda x: x - np.tanh(x), []),
    "sigmoid": ({}, sigmoid, []),
    "tanh": ({}, np.tanh, []),
}
every = pytest.mark.parametrize("name", CASES)
by_dtype = pytest.mark.parametrize("dtype", [np.float32, np.float64])


def function(name):
    arguments = CASES[name][0]
    f = getattr(F, name.removesuffix("_tanh"))
    return lambda x, **more: f(x, **arguments, **more)


def points(rng, kinks, count=40):
    """Points with a distance from the kinks."""
    x = rng.uniform(-8, 8, 3 * count)
    return x[[min([abs(v - k) for k in kinks], default=1) > 0.05 for v in x]][:count]


# ---- values and derivatives ----------------------------------------------------------------------


@every
@by_dtype
def test_values(rng, name, dtype):
    x = np.concatenate([points(rng, [], 300), [*CASES[name][2], 0.0, 20.0, -20.0]]).astype(dtype)
    expected = CASES[name][1](x.astype(oracle.wide(dtype)))
    y = function(name)(mg.tensor(x))
    assert y.numpy().dtype == dtype
    eps = np.finfo(dtype).eps
    np.testing.assert_allclose(y.numpy(), expected, rtol=6 * eps, atol=eps)


@every
def test_derivatives(rng, name):
    oracle.check_gradients(function(name), [points(rng, CASES[name][2]).reshape(5, 8)], rng)


@every
@pytest.mark.parametrize("layout", oracle.LAYOUTS)
def test_any_layout(rng, name, layout):
    f, values = function(name), rng.uniform(-4, 4, (3, 1, 5))
    plain = mg.tensor(values, requires_grad=True)
    strided = oracle.tensor_in_layout(values, layout, requires_grad=True)
    oracle.assert_same(f(strided).detach().numpy(), f(plain).detach().numpy())
    (got,), (want,) = (mg.grad(f(x).sum(), (x,)) for x in (strided, plain))
    oracle.assert_same(got.numpy(), want.numpy())


@every
def test_no_elements_one_element_and_integers(name):
    f = function(name)
    x = mg.zeros(2, 0, dtype=mg.float64, requires_grad=True)
    y = f(x)
    assert (y.shape, y.dtype) == ((2, 0), mg.float64)
    (g,) = mg.grad(y, (x,), mg.zeros(2, 0, dtype=mg.float64), create_graph=True)
    assert (g.shape, g.dtype) == ((2, 0), mg.float64)
    assert f(2.0).shape == ()
    whole = f(mg.tensor([-3, 2]))
    stays = name in ("relu", "relu6", "threshold")
    assert whole.dtype is (mg.int64 if stays else mg.float32)
    np.testing.assert_array_equal(whole.numpy(), f(mg.tensor([-3.0, 2.0])).numpy())


@every
def test_nan_stays(name):
    assert math.isnan(function(name)(NAN).item())


# The limits where a product would be inf * 0, with the slopes there.
LIMITS = {
    "relu": [(INF, 1), (0, 0)],
    "relu6": [(6, 0), (0, 0)],
    "leaky_relu": [(INF, 1), (-INF, 0.25)],
    "rrelu": [(INF, 1), (-INF, 0.5)],
    "threshold": [(INF, 1), (-3, 0)],
    "hardtanh": [(0.5, 0), (-2, 0)],
    "hardsigmoid": [(1, 0), (0, 0)],
    "hardswish": [(INF, 1), (0, 0)],
    "softshrink": [(INF, 1), (-INF, 1)],
    "hardshrink": [(INF, 1), (-INF, 1)],
    "elu": [(INF, 1), (-1.5, 0)],
    "celu": [(INF, 1), (-1.5, 0)],
    "selu": [(INF, SCALE), (-SCALE * ALPHA, 0)],
    "gelu": [(INF, 1), (0, 0)],
    "gelu_tanh": [(INF, 1), (0, 0)],
    "silu": [(INF, 1), (0, 0)],
    "mish": [(INF, 1), (0, 0)],
    "softplus": [(INF, 1), (0, 0)],
    "logsigmoid": [(0, 0), (-INF, 1)],
    "softsign": [(1, 0), (-1, 0)],
    "tanhshrink": [(INF, 1), (-INF, 1)],
    "sigmoid": [(1, 0), (0, 0)],
    "tanh": [(1, 0), (-1, 0)],
}


@every
@by_dtype
@pytest.mark.parametrize("graph", [False, True], ids=["fused", "formula"])
def test_infinity_has_the_limits_and_no_curvature(name, dtype, graph):
    x = mg.tensor(np.array([INF, -INF], dtype), requires_grad=True)
    y = function(name)(x)
    (g,) = mg.grad(y.sum(), (x,), create_graph=graph)
    values, slopes = np.array(LIMITS[name], dtype).T
    np.testing.assert_array_equal(y.detach().numpy(), values)
    np.testing.assert_array_equal(g.detach().numpy(), slopes)
    if g.requires_grad:
        np.testing.assert_array_equal(mg.grad(g.sum(), (x,))[0].numpy(), [0, 0])


# name: at a kink of that function the value, the slope and the second derivative
KINKS = [
    ("relu", {}, 0.0, 0.0, 0.0),
    ("leaky_relu", {"negative_slope": 3.0}, 0.0, 0.0, 3.0),
    ("rrelu", {"lower": 0.25, "upper": 0.75}, 0.0, 0.0, 0.5),
    ("relu6", {}, 6.0, 6.0, 0.0),
    ("threshold", {"threshold": 1.0, "value": 5.0}, 1.0, 5.0, 0.0),
    ("hardsigmoid", {}, -3.0, 0.0, 0.0),
    ("hardsigmoid", {}, 3.0, 1.0, 0.0),
    ("hardswish", {}, -3.0, 0.0, 0.0),
    ("hardswish", {}, 3.0, 3.0, 1.0),
    ("softshrink", {}, 0.5, 0.0, 0.0),
    ("hardshrink", {}, -0.5, 0.0, 0.0),
    ("elu", {"alpha": 0.5}, 0.0, 0.0, 0.5),
    ("elu", {"alpha": 2.0}, 0.0, 0.0, 2.0),
    ("celu", {"alpha": 49.0}, 0.0, 0.0, 1.0),
    ("selu", {}, 0.0, 0.0, SCALE * ALPHA),
    ("softsign", {}, 0.0, 0.0, 1.0),
    ("prelu", {"weight": 0.25}, 0.0, 0.0, 0.25),
]


@pytest.mark.parametrize(("name", "arguments", "at", "value", "slope"), KINKS)
@pytest.mark.parametrize("graph", [False, True], ids=["fused", "formula"])
def test_kinks(name, arguments, at, value, slope, graph):
    x = mg.tensor(at, mg.float64, requires_grad=True)
    y = getattr(F, name)(x, **arguments)
    (g,) = mg.grad(y, (x,), create_graph=graph)
    assert (y.item(), g.item()) == (value, slope)
    if g.requires_grad:
        assert mg.grad(g, (x,))[0].item() == 0.0


# ---- accuracy where naive forms lose it ----------------------------------------------------------


@by_dtype
def test_small_results_keep_their_digits(dtype):
    x = np.array([-50.0, -60.0, -80.0], dtype)
    wide, eps = x.astype(oracle.wide(dtype)), float(np.finfo(dtype).eps)
    for name in ("mish", "silu", "softplus"):
        got = getattr(F, name)(mg.tensor(x)).numpy()
        expected = np.exp(wide) * (1 if name == "softplus" else wide)
        np.testing.assert_allclose(got, expected, rtol=6 * eps)
    tail = 1e-9 if dtype == np.float32 else 1e-17
    for f in (F.elu, F.celu, F.selu):
        y = f(mg.tensor([-tail], mg.tensor(x).dtype)).item()
        assert y == pytest.approx(-tail * (SCALE * ALPHA if f is F.selu else 1), rel=4 * eps)


@by_dtype
def test_subnormal_results_are_rounded_once(dtype, rng):
    low, high = (-103, -85) if dtype == np.float32 else (-744, -705)
    x = rng.uniform(low, high, 4000).astype(dtype)
    wide = x.astype(oracle.LONG)
    for name, expected in (("sigmoid", np.exp(wide)), ("silu", wide * np.exp(wide))):
        got = getattr(F, name)(mg.from_numpy(x)).numpy()
        assert oracle.ulps(got, expected).max() <= oracle.accuracy(TABLE[name], dtype), name


@by_dtype
def test_gates_keep_the_sign_of_zero(dtype):
    x = mg.from_numpy(np.array([0.0, -0.0, -np.inf], dtype))
    for y in (F.silu(x), F.gelu(x, approximate="tanh"), F.gelu(x)):
        np.testing.assert_array_equal(y.numpy(), 0)
        assert np.signbit(y.numpy()).tolist() == [False, True, True]


@by_dtype
def test_the_slope_of_softsign_far_out(dtype):
    x = mg.tensor(np.array([1e3, -1e6, 1e15], dtype), requires_grad=True)
    (g,) = mg.grad(F.softsign(x).sum(), (x,))
    expected = (1 + np.abs(x.detach().numpy().astype(np.float64))) ** -2
    np.testing.assert_allclose(g.numpy(), expected, rtol=6 * np.finfo(dtype).eps)


def test_softplus_has_no_threshold_unless_one_is_given():
    x = mg.tensor([19.0, 21.0, 36.0], mg.float64)
    exact = 21.0 + math.log1p(math.exp(-21.0))
    assert F.softplus(x)[1].item() == exact != 21.0
    assert F.softplus(x, 1.0, 20.0)[1].item() == 21.0
    assert F.softplus(x, 1.0, 20.0)[0].item() == F.softplus(x)[0].item()
    halves = F.softplus(x.clone().requires_grad_(), beta=0.5, threshold=10.0)
    assert halves.tolist()[1:] == [21.0, 36.0]
    assert halves[0].item() == pytest.approx(2 * math.log1p(math.exp(9.5)), rel=1e-15)


# ---- in place ------------------------------------------------------------------------------------

IN_PLACE = [n for n in CASES if "inplace" in inspect.signature(getattr(F, n, F.gelu)).parameters]


def test_what_pytorch_offers_in_place():
    names = """relu relu6 leaky_relu rrelu threshold hardtanh hardsigmoid hardswish elu celu selu
    silu mish"""
    assert set(IN_PLACE) == set(names.split())


@pytest.mark.parametrize("name", IN_PLACE)
def test_in_place(rng, name):
    f, values = function(name), rng.uniform(-4, 4, 7)
    x = mg.tensor(values)
    assert f(x, inplace=True) is x
    expected = f(mg.tensor(values))
    np.testing.assert_array_equal(x.numpy(), expected.numpy())

    def overwritten(t):
        t = t * 1.0
        return f(t, inplace=True)

    a, b = (mg.tensor(values, requires_grad=True) for _ in range(2))
    firsts = [
        mg.grad(y, (t,), mg.tensor(values), create_graph=True)[0]
        for y, t in ((overwritten(a), a), (f(b), b))
    ]
    np.testing.assert_array_equal(firsts[0].detach().numpy(), firsts[1].detach().numpy())


@pytest.mark.parametrize("name", IN_PLACE)
def test_in_place_refuses(name):
    f = function(name)
    with pytest.raises(RuntimeError, match=rf"\[{name}\].*in place.*requires grad"):
        f(mg.ones(2, requires_grad=True), inplace=True)
    with pytest.raises(TypeError, match=rf"\[{name}\] only a Tensor of floats.*int64"):
        f(mg.tensor([1, 2]), inplace=True)
    with pytest.raises(TypeError, match=rf"\[{name}\] only a Tensor of floats.*list"):
        f([1.0], inplace=True)
    with pytest.raises(ValueError, match="share one place"):
        f(mg.ones(1).expand(3), inplace=True)


def test_in_place_through_a_view():
    x = mg.tensor([[-1.0, 2.0], [-3.0, 4.0]], requires_grad=True)
    y = x * 2
    F.leaky_relu(y[0], 0.5, inplace=True)
    assert y.tolist() == [[-1, 4], [-6, 8]]
    assert mg.grad(y.sum(), (x,))[0].tolist() == [[1, 2], [2, 2]]


# ---- prelu and rrelu -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shape", "weight", "over"),
    [
        ((3, 2, 4), (2,), (2, 1)),
        ((3, 2), (2,), (2,)),
        ((2, 3, 2, 2), (1,), (1,)),
        ((5,), (1,), (1,)),
        ((), (1,), ()),
        ((3, 2), (), ()),
        ((0, 2), (2,), (2,)),
    ],
)
def test_prelu(rng, shape, weight, over):
    x, w = rng.uniform(0.1, 2, shape) * rng.choice([-1, 1], shape), rng.uniform(0, 1, weight)
    y = F.prelu(mg.tensor(x), mg.tensor(w))
    np.testing.assert_array_equal(y.numpy(), np.where(x > 0, x, x * w.reshape(over)))
    oracle.check_gradients(F.prelu, [x, w], rng)


def test_prelu_hides_what_passes():
    x = mg.tensor([INF, -2.0], requires_grad=True)
    w = mg.tensor([0.5], requires_grad=True)
    by_x, by_w = mg.grad(F.prelu(x, w).sum(), (x, w))
    assert by_x.tolist() == [1, 0.5]
    assert by_w.tolist() == [-2]


@pytest.mark.parametrize("shape", [(3,), (2, 1), (0,)])
def test_prelu_refuses(shape):
    with pytest.raises(ValueError, match=r"\[prelu\] weight has shape .* \(4, 2\) has 2"):
        F.prelu(mg.ones(4, 2), mg.ones(shape))


def test_rrelu_in_training():
    x = mg.full((1000,), -1.0, dtype=mg.float64).requires_grad_()
    g = mg.Generator().manual_seed(3)
    slopes = -F.rrelu(x, 0.25, 0.75, True, generator=g)
    values = slopes.detach().numpy()
    assert 0.25 <= values.min() < 0.26
    assert 0.74 < values.max() <= 0.75
    (by_x,) = mg.grad((-slopes).sum(), (x,))
    np.testing.assert_array_equal(by_x.numpy(), values)
    again = F.rrelu(x, 0.25, 0.75, True, generator=g.manual_seed(3))
    np.testing.assert_array_equal(again.detach().numpy(), -values)
    assert F.rrelu(mg.ones(3), training=True, generator=g).tolist() == [1, 1, 1]
    layer = nn.RReLU(0.5, 0.5)
    assert layer.eval()(mg.tensor([-2.0])).item() == -1.0


# ---- along a dimension ---------------------------------------------------------------------------


@pytest.mark.parametrize("dim", [0, 1, -1])
def test_glu(rng, dim):
    x = rng.uniform(-3, 3, (4, 2, 6))
    a, b = np.split(x, 2, dim)
    y = F.glu(mg.tensor(x), dim)
    np.testing.assert_allclose(y.numpy(), a * sigmoid(b), rtol=1e-15)
    oracle.check_gradients(lambda t: F.glu(t, dim), [x], rng)


def test_glu_refuses():
    assert F.glu(mg.zeros(2, 0)).shape == (2, 0)
    with pytest.raises(ValueError, match=r"\[glu\] dim -1 .*\(2, 3\) has size 3.*even"):
        F.glu(mg.zeros(2, 3))
    with pytest.raises(IndexError, match=r"\[glu\] dim 2"):
        F.glu(mg.zeros(2, 4), 2)
    with pytest.raises(IndexError, match=r"\[glu\]"):
        F.glu(mg.tensor(1.0))


@pytest.mark.parametrize("name", ["softmax", "log_softmax", "softmin"])
def test_softmax_and_its_kin(rng, name):
    x = rng.uniform(-3, 3, (3, 4))
    z = -x if name == "softmin" else x
    for dim in (0, 1, -2):
        reference = special.log_softmax(z, dim) if "log" in name else special.softmax(z, dim)
        y = getattr(F, name)(mg.tensor(x), dim)
        np.testing.assert_allclose(y.numpy(), reference, rtol=1e-14)
    assert getattr(F, name)(mg.tensor([1, 2]), 0, dtype=mg.float64).dtype is mg.float64
    oracle.check_gradients(lambda t: getattr(F, name)(t, 1), [x], rng)
    for shape, guess in (((4,), 0), ((3, 4), 1), ((2, 3, 2), 0), ((1, 2, 3, 2), 1)):
        t = mg.tensor(x.ravel()[: np.prod(shape)].reshape(shape))
        with pytest.warns(UserWarning, match=rf"without dim .* {guess} here: say dim={guess}$"):
            y = getattr(F, name)(t)
        oracle.assert_same(y.numpy(), getattr(F, name)(t, guess).numpy())


def test_gumbel_softmax_with_given_noise(rng):
    x, noise = rng.uniform(-2, 2, (2, 3, 5, 4))
    for dim in (0, 1, -1):
        y = F.gumbel_softmax(mg.tensor(x), 0.5, dim=dim, noise=mg.tensor(noise))
        np.testing.assert_allclose(y.numpy(), special.softmax((x + noise) * 2, dim), rtol=1e-14)
        hard = F.gumbel_softmax(mg.tensor(x), 0.5, True, dim=dim, noise=mg.tensor(noise))
        best = np.expand_dims((x + noise).argmax(dim), dim)
        expected = np.zeros(x.shape)
        np.put_along_axis(expected, best, 1.0, dim)
        np.testing.assert_array_equal(hard.numpy(), expected)  # exact zeros and ones
    oracle.check_gradients(lambda t, n: F.gumbel_softmax(t, 0.5, dim=1, noise=n), [x, noise], rng)
    t = mg.tensor(x, requires_grad=True)
    soft, hard = (
        mg.grad(F.gumbel_softmax(t, 0.5, h, noise=mg.tensor(noise)), (t,), mg.tensor(x))[0]
        for h in (False, True)
    )
    np.testing.assert_array_equal(soft.numpy(), hard.numpy())  # straight through


def test_gumbel_softmax_draws_in_proportion():
    p = np.array([0.5, 0.2, 0.3])
    g = mg.Generator().manual_seed(0)
    drawn = F.gumbel_softmax(mg.tensor(np.log(p)).expand(20000, 3), hard=True, generator=g)
    np.testing.assert_allclose(drawn.numpy().mean(0), p, atol=0.015)
    assert F.gumbel_softmax(mg.tensor(3.0), hard=True, generator=g).item() == 1.0
    with pytest.raises(ValueError, match=r"noise has shape \(3,\), the logits \(2,\)"):
        F.gumbel_softmax(mg.zeros(2), noise=mg.zeros(3))


# ---- integers ------------------------------------------------------------------------------------


def test_bounded_integers_stay_integers():
    values = np.array([-(2**62) - 1, -3, 0, 1, 2, 3, 5, 9, 2**24 + 1, 2**62 + 1])
    x = mg.tensor(values)
    for got, want in (
        (F.relu6(x), np.clip(values, 0, 6)),
        (F.hardtanh(x), np.clip(values, -1, 1)),
        (F.hardtanh(x, -2, 2**62), np.clip(values, -2, 2**62)),
        (F.threshold(x, 2, -7), np.where(values > 2, values, -7)),
        (F.threshold(x, 2.5, 0.0), np.where(values > 2.5, values, 0)),
        (F.threshold(x, 2**24, 1), np.where(values > 2**24, values, 1)),
        (nn.Threshold(-1.0, 4.0)(x), np.where(values > -1, values, 4)),
    ):
        oracle.assert_same(got.numpy(), want)
    for made in (F.hardtanh(x, -2.5, 2.0), F.threshold(x, 1.0, 0.5), F.threshold(x, INF, 0.0)):
        assert made.dtype is mg.float32
    assert F.hardtanh(mg.tensor([True])).dtype is mg.float32
    assert F.relu6(mg.tensor([True, False])).tolist() == [1, 0]


# ---- what is refused -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda x: F.gelu(x, "fast"), ValueError, r"\[gelu\] approximate is 'fast'"),
        (lambda x: F.hardtanh(x, 1.0, -1.0), ValueError, r"\[hardtanh\] min_val 1.0 is above"),
        (lambda x: nn.Hardtanh(1.0, -1.0), ValueError, r"\[hardtanh\]"),
        (lambda x: F.softshrink(x, -0.5), ValueError, r"\[softshrink\] lambd is -0.5"),
        (lambda x: F.celu(x, 0.0), ValueError, r"\[celu\] alpha must not be 0"),
        (lambda x: F.rrelu(x, 0.5, 0.25), ValueError, r"\[rrelu\] lower 0.5 is above upper"),
        (lambda x: F.elu("x"), TypeError, r"\[elu\]"),
    ],
)
def test_errors(call, error, text):
    with pytest.raises(error, match=text):
        call(mg.ones(2))


# ---- modules -------------------------------------------------------------------------------------

MODULES = [  # as in PyTorch: how it is made, and how it shows
    (nn.ReLU(), "ReLU()"),
    (nn.ReLU(True), "ReLU(inplace=True)"),
    (nn.ReLU6(), "ReLU6()"),
    (nn.LeakyReLU(0.2, True), "LeakyReLU(negative_slope=0.2, inplace=True)"),
    (nn.RReLU(0.25, 0.5), "RReLU(lower=0.25, upper=0.5)"),
    (nn.PReLU(3), "PReLU(num_parameters=3)"),
    (nn.Threshold(0.1, 20.0), "Threshold(threshold=0.1, value=20.0)"),
    (nn.Hardtanh(-1.0, 2.0), "Hardtanh(min_val=-1.0, max_val=2.0)"),
    (nn.Hardsigmoid(), "Hardsigmoid()"),
    (nn.Hardswish(), "Hardswish()"),
    (nn.Hardshrink(), "Hardshrink(0.5)"),
    (nn.Softshrink(0.25), "Softshrink(0.25)"),
    (nn.ELU(0.5), "ELU(alpha=0.5)"),
    (nn.CELU(), "CELU(alpha=1.0)"),
    (nn.SELU(), "SELU()"),
    (nn.GELU("tanh"), "GELU(approximate='tanh')"),
    (nn.SiLU(), "SiLU()"),
    (nn.Mish(), "Mish()"),
    (nn.Softplus(2.0, 20.0), "Softplus(beta=2.0, threshold=20.0)"),
    (nn.Sigmoid(), "Sigmoid()"),
    (nn.Tanh(), "Tanh()"),
    (nn.LogSigmoid(), "LogSigmoid()"),
    (nn.Softsign(), "Softsign()"),
    (nn.Tanhshrink(), "Tanhshrink()"),
    (nn.GLU(), "GLU(dim=-1)"),
    (nn.Softmax(1), "Softmax(dim=1)"),
    (nn.LogSoftmax(dim=0), "LogSoftmax(dim=0)"),
    (nn.Softmin(1), "Softmin(dim=1)"),
    (nn.Softmax2d(), "Softmax2d()"),
]


def test_every_activation_has_its_module():
    assert {type(m).__name__ for m, _ in MODULES} == set(nn.activations.__all__)


@pytest.mark.parametrize(("module", "text"), MODULES, ids=[t for _, t in MODULES])
def test_modules(rng, module, text):
    assert repr(module) == repr(pickle.loads(pickle.dumps(module))) == text
    values = rng.uniform(-3, 3, (2, 3, 4, 6))
    x = mg.tensor(values, mg.float32)
    if isinstance(module, nn.PReLU):
        expected = F.prelu(x, module.weight)
    elif isinstance(module, nn.Softmax2d):
        expected = F.softmax(x, 1)
    else:
        fields = {f.name: getattr(module, f.name) for f in dataclasses.fields(module)}
        fields.pop("inplace", None)
        expected = type(module)._function(x, **fields)
    if isinstance(module, nn.RReLU):
        module = nn.RReLU(module.lower, module.upper).eval()
    np.testing.assert_array_equal(module(x).detach().numpy(), expected.detach().numpy())


def test_an_inplace_module_writes():
    x = mg.tensor([-1.0, 2.0])
    assert nn.ReLU(inplace=True)(x) is x
    assert x.tolist() == [0, 2]


@pytest.mark.parametrize(
    "cls", [getattr(nn, n) for n in nn.activations.__all__ if n not in ("PReLU", "Softmax2d")]
)
def test_arguments_of_modules_are_those_of_the_function(cls):
    """The same names and order, and the same defaults where the function has one."""
    own = list(inspect.signature(cls).parameters.values())
    theirs = inspect.signature(cls._function).parameters
    assert [p.name for p in own] == [n for n in theirs if n in cls._arguments]
    for p in own:
        assert p.default in (theirs[p.name].default, inspect.Parameter.empty)


def test_prelu_learns():
    layer = nn.PReLU(2, 0.1, dtype=mg.float64)
    assert layer.state_dict()["weight"].tolist() == [0.1, 0.1]
    layer(mg.tensor([[-1.0, 3.0], [-2.0, -5.0]], mg.float64)).sum().backward()
    assert layer.weight.grad.tolist() == [-3, -5]


def test_a_subclass_is_an_ordinary_class():
    class Gate(nn.Hardtanh):
        scale: float

        def __init__(self, scale):
            super().__init__(0.0, 1.0)
            self.scale = scale

        def forward(self, x):
            return super().forward(x) * self.scale

    assert Gate(3.0)(mg.tensor([-1.0, 0.5, 4.0])).tolist() == [0, 1.5, 3]
    assert repr(Gate(3.0)) == "Gate(min_val=0.0, max_val=1.0)"


def test_tanh_in_double_where_its_pieces_meet():
    """Around every boundary, and where it becomes 1, which it never exceeds."""
    b = np.array([2.0**e * (1 + k / 4) for e in range(4) for k in range(4)] + [2.0**4])
    middle = np.append((b - 1) / 0.78125, [19.0615, 19.125])
    x = (middle[:, None] * (1 + np.arange(-40, 41) * 2.0**-52)).ravel()
    y, want = mg.tanh(mg.from_numpy(x)).numpy(), np.tanh(x.astype(np.longdouble))
    assert (np.abs(y - want) <= np.spacing(want.astype(np.float64))).all()
    assert y.max() == 1
    np.testing.assert_array_equal(mg.tanh(mg.from_numpy(-x)).numpy(), -y)


@pytest.mark.parametrize(("dtype", "end"), [(np.float32, 120), (np.float64, 1000)])
def test_slopes_of_an_angle_at_the_ends_of_the_range(dtype, end, rng):
    """Operands are scaled where a square would leave the range."""
    size = 2.0 ** rng.integers(-end, end, 500)
    a, b = (
        (size * rng.uniform(0.5, 2, 500) * rng.choice([-1, 1], 500)).astype(dtype) for _ in range(2)
    )
    b[::7] *= dtype(2.0**-20)
    x, y = (mg.from_numpy(v).requires_grad_() for v in (a, b))
    got = np.array([g.numpy() for g in mg.grad(mg.arctan2(x, y).sum(), (x, y))])
    wide_a, wide_b = a.astype(np.longdouble), b.astype(np.longdouble)
    square = wide_a**2 + wide_b**2
    want = np.array([wide_b / square, -wide_a / square])
    normal = np.abs(want) >= np.finfo(dtype).tiny
    assert normal.mean() > 0.9
    unit = np.finfo(dtype).eps
    np.testing.assert_allclose(got[normal], want[normal], rtol=3 * unit)
    np.testing.assert_allclose(got, want, rtol=3 * unit, atol=2 * np.finfo(dtype).tiny * unit)


@by_dtype
def test_slope_of_a_hyperbolic_sine_up_to_the_largest_number(dtype, rng):
    """From the result, whose square leaves the range long before."""
    end = np.log(np.finfo(dtype).max)
    x = np.concatenate([rng.uniform(-end, end, 500), rng.uniform(-1, 1, 500), [0, -0.0]])
    t = mg.tensor(x.astype(dtype), requires_grad=True)
    (got,) = mg.grad(mg.sinh(t).sum(), t)
    want = np.cosh(x.astype(dtype).astype(np.longdouble))
    np.testing.assert_allclose(got.numpy(), want, rtol=2 * np.finfo(dtype).eps)
    assert (got.numpy() >= 1).all()
    edges = mg.tensor(np.array([np.inf, -np.inf, np.nan], dtype), requires_grad=True)
    for graph in (False, True):
        (got,) = mg.grad(mg.sinh(edges).sum(), edges, create_graph=graph)
        np.testing.assert_array_equal(got.detach().numpy(), [np.inf, np.inf, np.nan])
    (second,) = mg.grad(got.sum(), edges)
    np.testing.assert_array_equal(second.numpy(), [np.inf, -np.inf, np.nan])


@by_dtype
@pytest.mark.parametrize(("name", "slope"), [("expm1", np.exp), ("cosh", np.sinh)])
def test_slopes_that_are_another_function(name, slope, dtype, rng):
    """Partials of several vectors at a time; a gradient of exactly 0 meets no infinity."""
    end = np.log(np.finfo(dtype).max)
    x = np.concatenate([rng.uniform(-end / 2, end, 501), rng.uniform(-1, 1, 500), [0, -0.0]])
    g = rng.standard_normal(x.size).astype(dtype)
    t = mg.tensor(x.astype(dtype), requires_grad=True)
    (got,) = mg.grad(getattr(mg, name)(t), t, mg.tensor(g))
    with np.errstate(over="ignore"):
        want = slope(x.astype(dtype).astype(np.longdouble)) * g
    here = np.abs(want) < np.finfo(dtype).max / 4
    np.testing.assert_allclose(got.numpy()[here], want[here], rtol=2 * np.finfo(dtype).eps)
    edges = mg.tensor(np.array([np.inf, np.inf, -np.inf, np.nan], dtype), requires_grad=True)
    g = mg.tensor(np.array([2, 0, 0, 1], dtype))
    (got,) = mg.grad(getattr(mg, name)(edges), edges, g)
    np.testing.assert_array_equal(got.numpy(), [np.inf, 0, 0, np.nan])


@pytest.mark.parametrize(
    ("name", "lowest"), [("sigmoid", -15.5), ("silu", -14.5), ("gelu", -5.5), ("gelu_tanh", -5.125)]
)
def test_gates_of_floats_down_to_the_end_of_their_pieces(name, lowest):
    """The last pieces before the exponential takes over, where the function falls fastest."""
    x = np.linspace(lowest - 0.01, 0.7 * lowest, 400_001).astype(np.float32)
    report = ulp.measure(TABLE[name], np.float32, [(x,)])
    assert report.ok, report


@by_dtype
@pytest.mark.parametrize("spoilt", [0, 1, 40])
def test_slope_of_a_power_by_its_base(dtype, spoilt, rng):
    """From the result, but in blocks where that has lost digits or operands are not usual."""
    end, n = np.finfo(dtype).maxexp, 1000
    base = 2.0 ** rng.uniform(-end / 2, end / 2, n) * rng.choice([-1, 1], n)
    power = np.round(rng.uniform(-0.8, 0.8, n) * end / np.log2(np.abs(base)))
    some = rng.choice(n, spoilt, replace=False)
    base[some] = np.resize([0, 2.0 ** (-0.6 * end), np.inf, -1, np.nan], spoilt)
    power[some] = np.resize([3, 2, 0.5, np.inf, 0, -1, 0], spoilt)
    a, b = base.astype(dtype), power.astype(dtype)
    xs = [mg.tensor(v, requires_grad=True) for v in (a, b)]
    got = mg.grad((xs[0] ** xs[1]).sum(), xs)[0].numpy()
    alone = mg.grad((xs[0] ** mg.tensor(b)).sum(), xs[0])[0].numpy()
    wide_a, wide_b = a.astype(np.longdouble), b.astype(np.longdouble)
    with np.errstate(all="ignore"):
        want = np.where(wide_b == 0, 0, wide_b * wide_a ** (wide_b - 1)).astype(dtype)
    least = np.finfo(dtype).smallest_subnormal
    for slopes in (got, alone):
        np.testing.assert_allclose(slopes, want, rtol=3 * np.finfo(dtype).eps, atol=least)


@by_dtype
def test_slopes_of_powers_at_the_ends_of_the_range(dtype, rng):
    """Where the power, its quotient by the base or its product with the exponent leave it."""
    info, n = np.finfo(dtype), 20_000
    base = 2.0 ** np.where(
        rng.integers(0, 2, n), rng.uniform(-1, 1, n) * info.maxexp, rng.normal(0, 5, n)
    )
    base[::50] = info.smallest_subnormal * rng.integers(1, 1000, base[::50].size)
    a = base.astype(dtype)
    scale = np.log2(a.astype(np.longdouble))
    # Relative to the power or the partial, but for the exponent in front; or anything small.
    with np.errstate(divide="ignore"):
        b = rng.choice([-1, 1], n) * info.maxexp * rng.uniform(0.9, 1.1, n) / scale
    b += rng.integers(0, 2, n)
    b[::8] = 10.0 ** rng.uniform(-30, 0, b[::8].size) * rng.choice([-1, 1], b[::8].size)
    usual = np.isfinite(b) & (np.abs(b) < 1e30)
    a, b = a[usual], b[usual].astype(dtype)
    xs = [mg.tensor(v, requires_grad=True) for v in (a, b)]
    with np.errstate(all="ignore"):
        want = b * a.astype(np.longdouble) ** (b.astype(np.longdouble) - 1)
        unit = np.spacing(np.abs(want).astype(dtype)).astype(np.longdouble)
    inside = np.abs(want) < float(info.max) * (1 - 4 * float(info.eps))
    for slopes in (
        mg.grad((xs[0] ** xs[1]).sum(), xs)[0].numpy(),
        mg.grad((xs[0] ** mg.tensor(b)).sum(), xs[0])[0].numpy(),
    ):
        assert (np.abs(slopes - want)[inside] <= 4 * unit[inside]).all()
        assert (np.abs(slopes)[~inside] > 0.99 * float(info.max)).all()


@by_dtype
def test_slopes_of_powers_at_special_points(dtype):
    """Each base with each exponent, alone and among others."""
    least, most = np.finfo(dtype).smallest_subnormal, np.finfo(dtype).max
    sizes = [0, least, 0.5, 1, 2, 2.5, most, np.inf]
    bases = [*sizes, *[-v for v in sizes], np.nan]
    exponents = [0, 0.25, 0.5, 1, 1.5, 2, 3, 300, np.inf]
    exponents = [*exponents, *[-v for v in exponents], np.nan]
    a, b = (v.ravel().astype(dtype) for v in np.meshgrid(bases, exponents))
    with np.errstate(all="ignore"):
        want = np.where(b == 0, 0, b * a.astype(np.longdouble) ** (b - 1)).astype(dtype)

    def slopes(a, b):
        x = mg.tensor(a, requires_grad=True)
        return mg.grad((x ** mg.tensor(b)).sum(), x)[0].numpy()

    each = np.concatenate([slopes(a[i : i + 1], b[i : i + 1]) for i in range(a.size)])
    for found in (slopes(a, b), each):
        np.testing.assert_allclose(found, want, rtol=3 * np.finfo(dtype).eps, atol=least)


GATES = {  # functions x q(u), and u', of which the slope by the result has the condition above 0
    "silu": (F.silu, lambda x: np.ones_like(x)),
    "gelu_tanh": (lambda x: F.gelu(x, "tanh"), lambda x: 1.6 * (1 + 0.134145 * x * x)),
    "gelu": (F.gelu, np.zeros_like),
}
by_gate = pytest.mark.parametrize("name", GATES)


@by_dtype
@by_gate
def test_slopes_of_gates_by_the_result(name, dtype, rng):
    f, steep = GATES[name]
    x = np.concatenate([rng.uniform(-3, 6, 3000), 1e-3 * rng.normal(size=500)]).astype(dtype)
    t = mg.tensor(x, requires_grad=True)
    y = f(t)
    (got,) = mg.grad(y.sum(), t)
    want, q = oracle.PARTIALS[name][0](x.astype(np.longdouble)), y.detach().numpy() / x
    bound = 6 * (np.abs(want) + q) + np.maximum(x, 0) * steep(x)
    assert (np.abs(got.numpy() - want) <= np.finfo(dtype).eps * bound).all()
    tiny, most = np.finfo(dtype).tiny, np.finfo(dtype).max
    edges = [0.0, -0.0, tiny, -tiny, most, -most, np.inf, -np.inf, np.nan]
    t = mg.tensor(np.array(edges, dtype), requires_grad=True)
    (got,) = mg.grad(f(t).sum(), t)
    np.testing.assert_array_equal(got.numpy(), [0.5] * 4 + [1, 0, 1, 0, np.nan])


@by_dtype
@by_gate
def test_gates_whose_result_was_overwritten(name, dtype, rng):
    """The tape keeps it for the slope, which can do without it; but not without x."""
    f, _ = GATES[name]
    x = mg.tensor(rng.normal(size=300).astype(dtype), requires_grad=True)
    (want,) = mg.grad(f(x).sum(), x)
    for graph in (False, True):
        y = f(x)
        y += 1
        (got,) = mg.grad(y.sum(), x, create_graph=graph)
        if graph:
            unit = np.finfo(dtype).eps
            np.testing.assert_allclose(got.detach().numpy(), want.numpy(), atol=8 * unit)
        else:
            np.testing.assert_array_equal(got.numpy(), want.numpy())
    z = x * 1
    y = f(z)
    y += 1
    z += 1
    with pytest.raises(RuntimeError, match="overwritten in place"):
        y.sum().backward()


@by_dtype
@pytest.mark.parametrize("name", ["erf", "erfc", "ndtr"])
def test_slopes_of_error_functions_far_out(name, dtype, rng):
    """The square's rounding, which the exponential would make 50 units, is made good."""
    end = 9 if dtype is np.float32 else 26
    x = rng.uniform(-end, end, 3000).astype(dtype)
    t = mg.tensor(x, requires_grad=True)
    (got,) = mg.grad(getattr(mg.special, name)(t).sum(), t)
    wide = x.astype(np.longdouble)
    pi = np.arctan2(np.longdouble(0), -1)
    want = np.exp(-wide * wide / 2) / np.sqrt(2 * pi)
    if name != "ndtr":
        want = (2 if name == "erf" else -2) / np.sqrt(pi) * np.exp(-wide * wide)
    unit = np.finfo(dtype).eps
    np.testing.assert_allclose(got.numpy(), want, rtol=3 * unit, atol=np.finfo(dtype).tiny * unit)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("relu", ()),
        ("leaky_relu", (0.2,)),
        ("rrelu", (0.1, 0.3)),
        ("threshold", (0.5, -1.0)),
        ("hardtanh", (-0.5, 0.7)),
        ("elu", (0.7,)),
        ("celu", (0.7,)),
        ("selu", ()),
    ],
)
def test_those_written_over_their_input(name, arguments, rng):
    values = rng.standard_normal(20)
    x = mg.tensor(values)
    assert getattr(F, f"{name}_")(x, *arguments) is x
    assert x.tolist() == getattr(F, name)(mg.tensor(values), *arguments).tolist()
