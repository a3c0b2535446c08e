"""Rows of elementary functions: exponentials, logarithms, roots and trigonometry."""

from __future__ import annotations

import math
from math import inf, nan, pi
from typing import Any

from minigrad.ops.table import pointwise

T = Any  # a Tensor, whose class this layer may not import

_LN2, _LOG2E, _LOG10E = 0.6931471805599453, 1.4426950408889634, 0.4342944819032518

# ---- exponentials and logarithms -----------------------------------------------------------------

EXP = pointwise(
    "exp",
    lambda y: y,
    domain=[(-3, 3)],
    special=[(0.0, 1.0), (inf, inf), (-inf, 0.0), (nan, nan)],
    accuracy=1,
    doc="e to the power x",
)
EXP2 = pointwise(
    "exp2",
    lambda y: y * _LN2,
    domain=[(-3, 3)],
    special=[(0.0, 1.0), (3.0, 8.0), (-1.0, 0.5), (inf, inf), (-inf, 0.0), (nan, nan)],
    accuracy=1,
    doc="2 to the power x",
)
EXPM1 = pointwise(
    "expm1",
    lambda x: x.exp(),
    domain=[(-3, 3)],
    special=[(0.0, 0.0), (-0.0, -0.0), (inf, inf), (-inf, -1.0), (nan, nan)],
    accuracy=1,
    doc="exp(x) - 1, precise near 0",
)
LOG = pointwise(
    "log",
    lambda x: 1.0 / x,
    domain=[(0.1, 4)],
    special=[(1.0, 0.0), (0.0, -inf), (-1.0, nan), (inf, inf)],
    accuracy=1,
    doc="the natural logarithm; NaN below 0",
)
LOG2 = pointwise(
    "log2",
    lambda x: _LOG2E / x,
    domain=[(0.1, 4)],
    special=[(1.0, 0.0), (8.0, 3.0), (0.5, -1.0), (0.0, -inf), (-1.0, nan), (inf, inf)],
    accuracy=1,
    doc="the logarithm to base 2; NaN below 0",
)
LOG10 = pointwise(
    "log10",
    lambda x: _LOG10E / x,
    domain=[(0.1, 4)],
    special=[(1.0, 0.0), (1000.0, 3.0), (0.0, -inf), (-1.0, nan), (inf, inf)],
    accuracy=1,
    doc="the logarithm to base 10; NaN below 0",
)
LOG1P = pointwise(
    "log1p",
    lambda x: 1.0 / (1.0 + x),
    domain=[(-0.5, 3)],
    special=[(0.0, 0.0), (-0.0, -0.0), (-1.0, -inf), (-2.0, nan), (inf, inf)],
    accuracy=1,
    doc="log(1 + x), precise near 0",
)


def _logaddexp_partial(a: T, b: T, y: T, log: float = 1.0) -> T:
    """The share e^a / (e^a + e^b): 1/2 for equal a and b, also infinite ones.

    If both terms are 0 the share is 0.

    ``log`` is the natural logarithm of the base.
    """
    difference = (a - b).where((a != b) + a.isfinite(), 0.0)
    return (y != -inf).scale((difference if log == 1.0 else difference * log).sigmoid())


LOGADDEXP = pointwise(
    "logaddexp",
    lambda a, b, y: _logaddexp_partial(a, b, y),
    lambda a, b, y: _logaddexp_partial(b, a, y),
    domain=[(-3, 3), (-3, 3)],
    special=[
        (-inf, -inf, -inf),
        (-inf, 2.0, 2.0),
        (inf, -inf, inf),
        (inf, inf, inf),
        (1.0, nan, nan),
    ],
    accuracy=1,
    doc="log(exp(a) + exp(b)) without overflow; the gradient of two -inf is 0",
)
LOGADDEXP2 = pointwise(
    "logaddexp2",
    lambda a, b, y: _logaddexp_partial(a, b, y, _LN2),
    lambda a, b, y: _logaddexp_partial(b, a, y, _LN2),
    domain=[(-3, 3), (-3, 3)],
    special=[(-inf, -inf, -inf), (-inf, 2.0, 2.0), (1.0, 1.0, 2.0), (inf, inf, inf)],
    accuracy=1,
    doc="log2(2^a + 2^b) without overflow; the gradient of two -inf is 0",
)

# ---- roots ---------------------------------------------------------------------------------------

SQRT = pointwise(
    "sqrt",
    lambda y: 0.5 / y,
    domain=[(0.1, 4)],
    special=[(0.0, 0.0), (-0.0, -0.0), (4.0, 2.0), (-1.0, nan), (inf, inf)],
    doc="the square root; NaN below 0",
)
RSQRT = pointwise(
    "rsqrt",
    lambda y: -0.5 * (y * y * y),
    domain=[(0.1, 4)],
    special=[(4.0, 0.5), (0.0, inf), (-0.0, -inf), (-1.0, nan), (inf, 0.0)],
    accuracy=1,
    doc="1 / sqrt(x)",
)
CBRT = pointwise(
    "cbrt",
    lambda y: 1.0 / (3.0 * (y * y)),
    domain=[(0.1, 4)],
    special=[(27.0, 3.0), (-8.0, -2.0), (0.0, 0.0), (-0.0, -0.0), (-inf, -inf)],
    accuracy=1,
    doc="the real cube root",
)

# ---- angles --------------------------------------------------------------------------------------

SIN = pointwise(
    "sin",
    lambda x: x.cos(),
    domain=[(-4, 4)],
    special=[(0.0, 0.0), (-0.0, -0.0), (inf, nan)],
    accuracy=1,
    doc="the sine of x radians",
)
COS = pointwise(
    "cos",
    lambda x: -x.sin(),
    domain=[(-4, 4)],
    special=[(0.0, 1.0), (-inf, nan)],
    accuracy=1,
    doc="the cosine of x radians",
)
TAN = pointwise(
    "tan",
    lambda y: 1.0 + y * y,
    domain=[(-1.3, 1.3)],
    special=[(0.0, 0.0), (-0.0, -0.0), (inf, nan)],
    accuracy=1,
    doc="the tangent of x radians",
)


def _one_less_square(x: T) -> T:
    """1 - x^2, as a product of exact factors near 1 and -1, with an exact derivative near 0."""
    return (1.0 - x * x).where(x.abs() < 0.5, (1.0 - x) * (1.0 + x))


ASIN = pointwise(
    "asin",
    lambda x: _one_less_square(x).rsqrt(),
    domain=[(-0.9, 0.9)],
    special=[(0.0, 0.0), (-0.0, -0.0), (1.0, pi / 2), (-1.0, -pi / 2), (1.5, nan)],
    accuracy=1,
    doc="the angle from -pi/2 to pi/2 whose sine is x; NaN beyond -1 and 1",
)
ACOS = pointwise(
    "acos",
    lambda x: -_one_less_square(x).rsqrt(),
    domain=[(-0.9, 0.9)],
    special=[(1.0, 0.0), (-1.0, pi), (0.0, pi / 2), (1.5, nan)],
    accuracy=1,
    doc="the angle from 0 to pi whose cosine is x; NaN beyond -1 and 1",
)
ATAN = pointwise(
    "atan",
    lambda x: (1.0 / x.hypot(1.0)).square(),
    domain=[(-3, 3)],
    special=[(0.0, 0.0), (-0.0, -0.0), (inf, pi / 2), (-inf, -pi / 2)],
    accuracy=1,
    doc="the angle from -pi/2 to pi/2 whose tangent is x",
)

_SINC_TERMS = [  # coefficients of sinc'(x) / x in powers of x^2
    2 * k * (-1) ** k * pi ** (2 * k) / math.factorial(2 * k + 1) for k in range(1, 15)
]


def _sinc_partial(x: T, y: T) -> T:
    """(cos(pi x) - sinc(x)) / x, and its series near 0, where the two terms cancel."""
    near = x.abs() < 0.5
    t, far = x.where(near, 0.0), x.where(near.logical_not(), 1.0)
    z, series = t * t, _SINC_TERMS[-1]
    for c in _SINC_TERMS[-2::-1]:
        series = c + z * series
    turn = (far - 2.0 * (0.5 * far).round()).where(far.isfinite(), 0.0)  # exact, in [-1, 1]
    return (t * series).where(near, ((pi * turn).cos() - y) / far)


SINC = pointwise(
    "sinc",
    lambda x, y: _sinc_partial(x, y),
    domain=[(-3, 3)],
    special=[(0.0, 1.0), (1.0, 0.0), (0.5, 2 / pi), (inf, 0.0), (nan, nan)],
    accuracy=1,
    doc="sin(pi x) / (pi x), and 1 at 0",
)

# ---- hyperbolic ----------------------------------------------------------------------------------


def _root_above(y: T) -> T:
    """sqrt(1 + y^2), and |y| for large y, so that the derivative at infinity is not NaN."""
    return y.clamp(-(2.0**40), 2.0**40).hypot(1.0).maximum(y.abs())


SINH = pointwise(
    "sinh",
    _root_above,
    domain=[(-3, 3)],
    special=[(0.0, 0.0), (-0.0, -0.0), (inf, inf), (-inf, -inf)],
    accuracy=1,
    doc="the hyperbolic sine, (exp(x) - exp(-x)) / 2",
)
COSH = pointwise(
    "cosh",
    lambda x: x.sinh(),
    domain=[(-3, 3)],
    special=[(0.0, 1.0), (inf, inf), (-inf, inf)],
    accuracy=1,
    doc="the hyperbolic cosine, (exp(x) + exp(-x)) / 2",
)
TANH = pointwise(
    "tanh",
    lambda y: 1.0 - y * y,
    domain=[(-3, 3)],
    special=[(inf, 1.0), (-inf, -1.0), (0.0, 0.0), (-0.0, -0.0), (1000.0, 1.0)],
    accuracy=1,
    doc="the hyperbolic tangent, sinh(x) / cosh(x)",
)
ASINH = pointwise(
    "asinh",
    lambda x: 1.0 / x.hypot(1.0),
    domain=[(-3, 3)],
    special=[(0.0, 0.0), (-0.0, -0.0), (inf, inf), (-inf, -inf)],
    accuracy=1,
    doc="the inverse hyperbolic sine, log(x + sqrt(x^2 + 1))",
)
ACOSH = pointwise(
    "acosh",
    lambda x: (x - 1.0).rsqrt() * (x + 1.0).rsqrt(),
    domain=[(1.2, 4)],
    special=[(1.0, 0.0), (0.5, nan), (-2.0, nan), (inf, inf)],
    accuracy=1,
    doc="the inverse hyperbolic cosine, log(x + sqrt(x^2 - 1)); NaN below 1",
)
ATANH = pointwise(
    "atanh",
    lambda x: 1.0 / _one_less_square(x),
    domain=[(-0.9, 0.9)],
    special=[(0.0, 0.0), (-0.0, -0.0), (1.0, inf), (-1.0, -inf), (1.5, nan)],
    accuracy=1,
    doc="the inverse hyperbolic tangent, log((1 + x) / (1 - x)) / 2; NaN beyond -1 and 1",
)
