"""Gradients of every elementwise operation at every magnitude, by both rules, against mpmath.

The fused kernel serves an ordinary backward, the formula one with ``create_graph``. Both must be
right from the smallest subnormal number to the largest, not only near 1.
"""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
from exact_partials import PARTIALS
from test_ops import POINTWISE, function_of

import minigrad as mg

by_row = pytest.mark.parametrize("row", POINTWISE, ids=lambda row: row.name)
by_dtype = pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=["float32", "float64"])

NEAR = [1e-20, 1e-12, 1e-8, 1e-4, 0.3, 0.5, 0.9, 1, 1.5, 2, 3, 5.5, 9.3, 20, 60, 1e3, 1e4, 1e8]
SIZES = {
    np.float32: [1e-45, 1e-42, 1e-40, 1.2e-38, 3e-38, 1e-30, *NEAR, 90, 2**24, 2**24 + 2]
    + [1e12, 1e20, 1e30, 1e38, 3e38, 3.4e38],
    np.float64: [5e-324, 1e-318, 1e-310, 2.3e-308, 1e-300, 1e-160, 1e-100, *NEAR, 300, 710]
    + [2**53, 2**53 + 2, 1e20, 1e100, 1e154, 1e200, 1e300, 1.7e308],
}
# A difference of slopes takes more, for which mpmath is slow where there is no closed form.
SPECIAL_FUNCTIONS = {"gelu", "erf", "erfc", "erfcx", "erfinv", "ndtr", "log_ndtr"}
SPECIAL_FUNCTIONS |= {"lgamma", "digamma", "trigamma", "i0", "i0e", "i1", "i1e"}
# Made of the rounded result, or of differences: an absolute error, in units of eps.
ABSOLUTE = {"tanh": 2, "sigmoid": 1, "i0e": 2, "i1e": 2, "trigamma": 4, "lgamma": 1, "digamma": 1}
ABSOLUTE |= {"logaddexp": 0.5, "logaddexp2": 0.5, "hypot": 1, "softplus": 1, "logsigmoid": 1}
ABSOLUTE |= {"silu": 2, "gelu": 2, "gelu_tanh": 2, "hardswish": 1, "sinc": 4, "entr": 1}


def magnitudes(row, dtype, rng, count):
    """Finite inputs of all sizes and signs; of two inputs a random choice of pairs, and ties."""
    values = np.array(SIZES[dtype], dtype)
    values = np.concatenate([values, -values, [dtype(0)]])
    if row.arity == 1:
        return [values]
    a, b = (rng.choice(values, count) for _ in range(2))
    a[::10] = b[::10]
    return [a, b]


def gradients(row, inputs, graph, upstream=1.0):
    xs = [mg.tensor(x, requires_grad=True) for x in inputs]
    g = mg.full_like(xs[0], upstream)
    found = mg.grad(function_of(row)(*xs), xs, g, create_graph=graph)
    return [f.detach().numpy() for f in found]


def kind(x):
    """NaN, infinity with its sign, or a number."""
    return np.where(np.isnan(x), 3, np.where(np.isinf(x), np.sign(x), 2))


def evaluated(f, values):
    """An mpmath number, or None where the reference has no say."""
    try:
        y = f(*values)
    except (ValueError, ArithmeticError):
        return None
    return None if y is None or isinstance(y, (complex, mpmath.mpc)) else mpmath.mpf(y)


def digits(row, dtype):
    if row.name in SPECIAL_FUNCTIONS:
        return 100
    return 150 if dtype is np.float32 else 700


def allowed(row, f, values, want, info):
    """How far a gradient may be from ``want``.

    16 ULP; what inputs that are 2 ULP away would make; what is below the normal numbers; and what
    rounding the result, or the terms of a difference, leaves.
    """
    limit = 16 * float(info.eps) * abs(want) + float(info.tiny)
    for place in range(len(values)):
        for side in (-1, 1):
            moved = list(values)
            moved[place] *= 1 + side * 2 * mpmath.mpf(float(info.eps))
            there = evaluated(f, moved)
            if there is not None and mpmath.isfinite(there):
                limit += abs(there - want)
    return limit + ABSOLUTE.get(row.name, 0) * float(info.eps)


def has_say(row, values, info):
    """Whether the bounds of ``allowed`` hold: a hypotenuse that leaves the range lacks digits."""
    if row.name != "hypot":
        return True
    size = mpmath.sqrt(values[0] ** 2 + values[1] ** 2)
    return size == 0 or float(info.tiny) <= size <= float(info.max)


def check(row, dtype, rng, count):
    info = np.finfo(dtype)
    inputs = magnitudes(row, dtype, rng, count)
    rules = [gradients(row, inputs, graph) for graph in (False, True)]
    with mpmath.workdps(700 if row.name in ("pow", "xlog1py") else 60):  # for b - 1 and 1 + b
        for place, f in enumerate(PARTIALS[row.name]):
            for k in range(inputs[0].size):
                values = [mpmath.mpf(float(x[k])) for x in inputs]
                want = evaluated(f, values)
                if want is None or not has_say(row, values, info):
                    continue
                limit = allowed(row, f, values, want, info) if mpmath.isfinite(want) else 0
                for graph, found in enumerate(rules):
                    got = found[place][k]
                    text = f"by input {place} at {values}, graph={bool(graph)}: {got}, not {want}"
                    if not mpmath.isfinite(want):
                        assert kind(got) == kind(float(want)), text
                    elif np.isinf(got):  # of the right sign, and just what does not fit
                        assert got * want > 0, text
                        assert abs(want) + limit >= float(info.max), text
                    else:
                        assert not np.isnan(got), text
                        top = min(max(want, -float(info.max)), float(info.max))
                        assert abs(mpmath.mpf(float(got)) - top) <= limit, text


@by_dtype
@by_row
def test_gradients_at_every_magnitude(row, dtype, rng):
    check(row, dtype, rng, 40)


@pytest.mark.exhaustive
@by_dtype
@by_row
def test_gradients_at_more_pairs_of_magnitudes(row, dtype, rng):
    check(row, dtype, rng, 1000)


@by_dtype
@by_row
def test_both_rules_agree_in_kind(row, dtype, rng):
    """NaN, infinite or not, at all pairs of magnitudes, zeros, infinities and NaN."""
    values = np.array(SIZES[dtype], dtype)
    values = np.concatenate([values, -values, np.array([0, -0.0, np.inf, -np.inf, np.nan], dtype)])
    inputs = [x.ravel() for x in np.meshgrid(*[values] * row.arity, indexing="ij")]
    if row.name == "pow":  # the sign of a pole at -0 is that of a rounded exponent
        inputs = [x[inputs[0] != 0] for x in inputs]
    info = np.finfo(dtype)
    for upstream in (1.0, -1e-20, 1e10):
        fused, formula = (gradients(row, inputs, graph, upstream) for graph in (False, True))
        for place, (a, b) in enumerate(zip(fused, formula, strict=True)):
            ends = (np.abs(a) > info.max * 0.999) & (np.abs(b) > info.max * 0.999)
            edge = ends & (np.sign(a) == np.sign(b))
            wrong = (kind(a) != kind(b)) & ~edge
            at = [x[wrong][:3] for x in inputs]
            assert not wrong.any(), f"input {place} at {at}: {a[wrong][:3]} and {b[wrong][:3]}"


# ---- second derivatives --------------------------------------------------------------------------

# Kinks, steps and constants; and those whose slopes are made of the rounded result.
WITHOUT_SECOND = {"sign", "floor", "ceil", "trunc", "round", "floor_divide", "nextafter", "frac"}
WITHOUT_SECOND |= {"copysign", "heaviside", "fmod", "remainder", "maximum", "minimum", "fmax"}
WITHOUT_SECOND |= {"fmin", "trigamma", "relu", "relu6", "hardsigmoid", "hardswish", "abs", "leaky"}


def slope_of_slope(f, place, values):
    """The derivative of a partial derivative by an input, by a difference in many digits."""
    step = abs(values[place]) * mpmath.mpf(10) ** -35
    ends = [list(values), list(values)]
    ends[0][place] -= step
    ends[1][place] += step
    low, high = (evaluated(f, end) for end in ends)
    if low is None or high is None or not step:
        return None
    return (high - low) / (2 * step)


def check_second(row, dtype, rng, count):
    """Finite where it is finite, and right to a thousandth of it or of the terms that cancel."""
    info = np.finfo(dtype)
    inputs = [x[x != 0] for x in magnitudes(row, dtype, rng, 60)] if row.arity == 1 else None
    inputs = inputs or magnitudes(row, dtype, rng, count)
    xs = [mg.tensor(x, requires_grad=True) for x in inputs]
    firsts = mg.grad(function_of(row)(*xs).sum(), xs, create_graph=True)
    with mpmath.workdps(digits(row, dtype)):
        for place, f in enumerate(PARTIALS[row.name]):
            first = firsts[place]
            if not first.requires_grad:
                continue
            seconds = mg.grad(first.sum(), xs, retain_graph=True)
            for by, second in enumerate(seconds):
                for k in range(inputs[0].size):
                    values = [mpmath.mpf(float(x[k])) for x in inputs]
                    partial, at = evaluated(f, values), abs(values[by])
                    if partial is None or not abs(partial) < float(info.max) or not at:
                        continue
                    if at > 1e25 and row.name in ("sin", "cos", "tan", "logaddexp", "logaddexp2"):
                        continue  # less than the differences' step
                    want = slope_of_slope(f, by, values)
                    if want is None or not abs(want) < float(info.max) / 1e3:
                        continue
                    if not has_say(row, values, info):
                        continue
                    got = second.numpy()[k]
                    # one rounding of the slope, or of the input, moves it so far
                    terms = abs(partial) / at + ABSOLUTE.get(row.name, 0)
                    limit = abs(want) * 1e-3 + 64 * float(info.eps) * terms + float(info.tiny)
                    text = f"{place}, {by} at {values}: {got}, not {mpmath.nstr(want, 8)}"
                    assert np.isfinite(got), text
                    assert abs(mpmath.mpf(float(got)) - want) <= limit, text


@by_dtype
@pytest.mark.parametrize(
    "row", [r for r in POINTWISE if r.name not in WITHOUT_SECOND], ids=lambda row: row.name
)
def test_second_derivatives_at_every_magnitude(row, dtype, rng):
    check_second(row, dtype, rng, 20)


@pytest.mark.parametrize("row", [r for r in POINTWISE if r.arity == 2], ids=lambda row: row.name)
@pytest.mark.parametrize("shapes", [((3, 4), (4,)), ((), (3,)), ((2, 1), (1, 3))], ids=str)
def test_derivatives_of_broadcast_operands_have_their_shapes(row, shapes, rng):
    """To third order, and with the values of operands that were expanded before."""
    arrays = [rng.uniform(*d, shape) for d, shape in zip(row.domain, shapes, strict=True)]
    found = []
    for expanded in (False, True):
        xs = [mg.tensor(a, requires_grad=True) for a in arrays]
        whole = mg.broadcast_tensors(*xs) if expanded else xs
        y = function_of(row)(*whole).sum()
        for _ in range(3):
            if not y.requires_grad:
                break
            gs = mg.grad(y, xs, create_graph=True)
            assert [g.shape for g in gs] == [x.shape for x in xs]
            found.append([g.detach().numpy() for g in gs])
            y = sum((g * (k + 2.0)).sum() for k, g in enumerate(gs))
    orders = len(found) // 2
    for plain, expanded in zip(found[:orders], found[orders:], strict=True):
        for a, b in zip(plain, expanded, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9)
