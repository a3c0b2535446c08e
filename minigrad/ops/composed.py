"""Elementwise operations composed of others: a formula each, and no kernel."""

from __future__ import annotations

import math
from math import inf, nan, pi
from typing import Any

from minigrad.ops.table import composition, custom

T = Any  # a Tensor; this layer stands below it


def _logit(x: T) -> T:
    """2 atanh(2 x - 1) in the middle, where the logarithms of the other form cancel."""
    middle = (x - 0.5).abs() < 0.25
    outer = x.where(middle.logical_not(), 0.125)
    inner = 2.0 * (2.0 * x - 1.0).atanh()
    return inner.where(middle, outer.log() - (-outer).log1p())


FRAC = composition(
    "frac",
    lambda x: x - x.trunc(),
    domain=[(0.1, 0.9)],
    special=[(1.5, 0.5), (-1.5, -0.5), (3.0, 0.0), (inf, nan), (nan, nan)],
    doc="the fraction x - trunc(x), with the sign of x",
)
LOGIT = composition(
    "logit",
    _logit,
    domain=[(0.1, 0.9)],
    special=[(0.5, 0.0), (0.0, -inf), (1.0, inf), (-0.5, nan), (1.5, nan)],
    accuracy=3,
    doc="log(x / (1 - x)), the inverse of the sigmoid",
)
DEG2RAD = composition(
    "deg2rad",
    lambda x: x * (pi / 180.0),
    domain=[(-360, 360)],
    special=[(0.0, 0.0), (180.0, pi), (inf, inf)],
    accuracy=1.5,
    doc="x degrees in radians, x pi / 180",
)
RAD2DEG = composition(
    "rad2deg",
    lambda x: x * (180.0 / pi),
    domain=[(-6, 6)],
    special=[(0.0, 0.0), (inf, inf)],
    accuracy=1.5,
    doc="x radians in degrees, 180 x / pi",
)
HEAVISIDE = composition(
    "heaviside",
    lambda a, b: b.where(a == 0.0, a.sign().maximum(0)),
    domain=[(0.1, 3), (-3, 3)],
    special=[(0.0, 0.25, 0.25), (-1.0, 5.0, 0.0), (2.0, 5.0, 1.0), (nan, 0.0, nan)],
    doc="0 for negative a, b for a = 0, 1 for positive a; no gradient with respect to a",
)


def product(a: T, b: T) -> T:
    """a * b, and 0 where either is 0, whatever the other is; its derivatives are those of a * b."""
    return a.scale(b).where(a == 0.0, b.scale(a))


# ---- values whose derivatives are known ----------------------------------------------------------

# A formula that follows from another by the chain rule may cancel where one of its own does not.

_WITH_PARTIAL = custom(
    "with_partial",
    lambda x, value, by_x: value._h,
    lambda g, x, value, by_x: g.scale(by_x(x)),
    symmetric=True,
    doc="a value that was made of x, whose partial derivative is a function of x",
)
_WITH_PARTIALS = custom(
    "with_partials",
    lambda a, b, value, by_a, by_b: value._h,
    lambda g, a, b, value, by_a, by_b: g.scale(by_a(a, b)),
    lambda g, a, b, value, by_a, by_b: g.scale(by_b(a, b)),
    symmetric=True,
    doc="a value that was made of a and b, whose partial derivatives are functions of both",
)


def with_partials(value: T, inputs: tuple[T, ...], *partials: Any) -> T:
    """``value``, made of one or two inputs off the tape, with those functions as derivatives."""
    first, *beside = [x if x.shape == value.shape else x.expand(value.shape) for x in inputs]
    row = _WITH_PARTIALS if beside else _WITH_PARTIAL
    return first.apply_row(row, value, *partials, beside=tuple(beside))


# ---- polygamma functions -------------------------------------------------------------------------

# Bernoulli numbers B2, B4, ... over (2 j)!
_BERNOULLI = [1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510, 43867 / 798]
_BERNOULLI = [b / math.factorial(2 * j + 2) for j, b in enumerate(_BERNOULLI)]


def _zeta(s: int, x: T) -> T:
    """The sum of 1 / (x + k)^s over k = 0, 1, ... for x > 0.

    The first terms one by one, the rest by the formula of Euler and Maclaurin (NIST Digital Library
    of Mathematical Functions, 2.10.1).
    """
    count = s + 10
    total = x ** float(-s)
    for k in range(1, count):
        total = total + (x + float(k)) ** float(-s)
    z = x + float(count)
    total = total + z ** float(1 - s) / (s - 1.0) + 0.5 * z ** float(-s)
    rising = float(s)
    for j, b in enumerate(_BERNOULLI):
        total = total + b * rising * z ** float(-s - 2 * j - 1)
        rising *= (s + 2 * j + 1) * (s + 2 * j + 2)
    return total


def _cotangent_derivative(n: int, x: T) -> T:
    """The n-th derivative of pi cot(pi x), a polynomial in c = cot: c' = -pi (1 + c^2)."""
    poly = [0.0, pi]
    for _ in range(n):
        derivative = [i * p for i, p in enumerate(poly)][1:]
        poly = [0.0] * (len(poly) + 1)
        for i, p in enumerate(derivative):
            poly[i] -= pi * p
            poly[i + 2] -= pi * p
    part = x - x.round()  # at the halves, where the cotangent is 0, that of the complement is exact
    near = part.abs() < 0.25
    far = part.sign() * (pi * (0.5 - part.abs())).tan()
    c = (1.0 / (pi * part).tan()).where(near, far)
    total = poly[-1]
    for p in poly[-2::-1]:
        total = p + c * total
    return total


def polygamma(n: int, x: T) -> T:
    """The n-th derivative of digamma for n >= 1; x <= 0.5 is reflected to 1 - x."""
    low = x < 0.5
    right = x.where(low.logical_not(), 1.0 - x)
    value = (-1.0) ** (n + 1) * math.factorial(n) * _zeta(n + 1, right)
    left = x.where(low, 0.25)
    return ((-1.0) ** n * value - _cotangent_derivative(n, left)).where(low, value)
