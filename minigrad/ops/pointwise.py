"""Elementwise arithmetic, rounding, extremes and comparisons.

The kernels, and the derivatives that are used most once more in C, are in elementwise.def.
"""

from __future__ import annotations

from math import inf, nan
from typing import Any

from minigrad.ops.composed import with_partials
from minigrad.ops.table import custom, pointwise, with_numbers, zero
from minigrad.runtime.native import Array, kernels, lib

T = Any  # a Tensor; this layer stands below it

# ---- one input -----------------------------------------------------------------------------------

NEG = pointwise("neg", -1.0, domain=[(-3, 3)], special=[(inf, -inf), (0.0, -0.0)], doc="-x")
ABS = pointwise(
    "abs",
    lambda x: x.sign(),
    domain=[(0.1, 3)],
    special=[(-0.0, 0.0), (-inf, inf)],
    doc="|x|; its derivative at 0 is 0",
)
SIGN = pointwise(
    "sign",
    0.0,
    domain=[(0.1, 3)],
    special=[(0.0, 0.0), (-inf, -1.0), (nan, nan)],
    doc="-1, 0 or 1; its derivative is 0 everywhere",
)
SQUARE = pointwise(
    "square", lambda x: 2.0 * x, domain=[(-3, 3)], special=[(3.0, 9.0), (-inf, inf)], doc="x * x"
)
RECIPROCAL = pointwise(
    "reciprocal",
    lambda y: -(y * y),
    domain=[(0.2, 3)],
    special=[(0.0, inf), (-0.0, -inf), (inf, 0.0), (4.0, 0.25)],
    doc="1 / x",
)
FLOOR = pointwise(
    "floor",
    0.0,
    domain=[(0.1, 0.9)],
    special=[(-0.0, -0.0), (-1.5, -2.0), (inf, inf), (nan, nan)],
    doc="the largest integer not above x; its derivative is 0 everywhere",
)
CEIL = pointwise(
    "ceil",
    0.0,
    domain=[(0.1, 0.9)],
    special=[(-0.0, -0.0), (1.5, 2.0), (-0.5, -0.0), (-inf, -inf), (nan, nan)],
    doc="the smallest integer not below x; its derivative is 0 everywhere",
)
TRUNC = pointwise(
    "trunc",
    0.0,
    domain=[(0.1, 0.9)],
    special=[(-0.0, -0.0), (-1.5, -1.0), (-0.5, -0.0), (inf, inf), (nan, nan)],
    doc="x without its fraction, rounded towards 0; its derivative is 0 everywhere",
)
ROUND = pointwise(
    "round",
    0.0,
    domain=[(0.6, 1.4)],
    special=[(0.5, 0.0), (1.5, 2.0), (2.5, 2.0), (-0.5, -0.0), (inf, inf), (nan, nan)],
    doc="the nearest integer, halves to the even one; its derivative is 0 everywhere",
)

ISNAN = zero("isnan", 1, "whether x is NaN; of integers never")
ISINF = zero("isinf", 1, "whether x is inf or -inf; of integers never")
ISFINITE = zero("isfinite", 1, "whether x is neither infinite nor NaN; of integers always")
SIGNBIT = zero("signbit", 1, "whether the sign bit is set, also of -0.0; of integers x < 0")
LOGICAL_NOT = zero("logical_not", 1, "x == 0, as bool")
BITWISE_NOT = zero("bitwise_not", 1, "the complement of every bit of an int64, and `not` of a bool")

# ---- two inputs ----------------------------------------------------------------------------------


def _maximum_partial(a: T, b: T) -> T:
    """1 where ``a`` wins, 1/2 at a tie, all to a NaN; piecewise constant."""
    return 0.5 * ((a > b) * 1.0 + (a >= b)) + (a != a) * (1.0 - 0.5 * (b != b))


def _fmax_partial(a: T, b: T) -> T:
    """1 where ``a`` wins, 1/2 at a tie, nothing to a NaN beside a number; piecewise constant."""
    return 0.5 * ((a > b) * 1.0 + (a >= b)) + (b != b) * (1.0 - 0.5 * (a != a))


_LEAST = {lib.MG_FLOAT32: 2.0**-126, lib.MG_FLOAT64: 2.0**-1022}  # of the normal numbers


def _pow_by_base(a: T, b: T) -> T:
    """b a^(b - 1)"""
    return with_partials(
        _pow_partial_value(a.detach(), b.detach(), 1),
        (a, b),
        lambda a, b: _pow_by_base_twice(a, b),
        lambda a, b: _power_less(a, b, 1) + _times_log(_pow_by_base(a, b), a, b - 1.0),
    )


def _pow_by_base_twice(a: T, b: T) -> T:
    """b (b - 1) a^(b - 2)"""
    return with_partials(
        _pow_partial_value(a.detach(), b.detach(), 2),
        (a, b),
        lambda a, b: b.scale((b - 1.0).scale((b - 2.0).scale(_power_less(a, b, 3)))),
        lambda a, b: (
            (2.0 * b - 1.0).scale(_power_less(a, b, 2))
            + _times_log(_pow_by_base_twice(a, b), a, b - 2.0)
        ),
    )


def _power_less(a: T, b: T, n: int) -> T:
    """a^(b - n) for a whole n, with derivatives of this form again."""
    return with_partials(
        _power_less_value(a.detach(), b.detach(), n),
        (a, b),
        lambda a, b: (b - float(n)).scale(_power_less(a, b, n + 1)),
        lambda a, b: _times_log(_power_less(a, b, n), a, b - float(n)),
    )


def _power_less_value(a: T, b: T, n: int) -> T:
    """The power by the rounded exponent, times that by what rounding lost; even or odd as b is."""
    less = b - float(n)
    y = a**less
    back = less + float(n)
    lost = (b - back) - (float(n) + (less - back))  # exactly (Knuth's two-sum)
    rounds = (lost != 0.0) & (lost == lost)
    if not rounds.any():
        return y
    size, power = a.abs(), y.abs()
    rounds = rounds & (size != inf)
    moves = (size != 0.0) & (power != 0.0) & (power != inf)
    exact = (power * size**lost).where(moves, power)
    sign = (-1.0) ** n * b.masked_fill(b == b, -1.0) ** b  # of (-1)^(b - n); NaN for no integer
    return (exact * sign).where(a < 0.0, exact).where(rounds, y)


def _pow_partial_value(a: T, b: T, n: int) -> T:
    """b a^(b - 1) or b (b - 1) a^(b - 2), by halves of the power where that leaves the range."""
    power = _power_less_value(a, b, n)
    y = b.scale(power if n == 1 else (b - 1.0).scale(power))
    size = power.abs()
    far = ((size < _LEAST[a._h.dtype]) | (size == inf)) & (y == y)
    if not far.any():
        return y
    half = a.abs() ** (0.5 * (b - float(n)))
    better = (b * half) * (half if n == 1 else (b - 1.0) * half)
    return better.copysign(y).where(far & (better == better), y)


def _pow_by_exponent(a: T, b: T, y: T) -> T:
    """a^b log(a); its own derivatives take the power anew, since y may be overwritten by then."""
    return with_partials(
        _times_log(y.detach(), a.detach(), b.detach()),
        (a, b),
        lambda a, b: _power_less(a, b, 1) + _times_log(_pow_by_base(a, b), a, b - 1.0),
        lambda a, b: _times_log(_pow_by_exponent(a, b, a.detach() ** b.detach()), a, b),
    )


def _times_log(y: T, a: T, b: T) -> T:
    """y log(a): NaN for negative a, 0 for a power of 0 that is 0 and, one-sided, for 0^0."""
    counts = 1.0 - (a == 0.0) * (b == 0.0)
    return counts.scale(y.xlogy(a.masked_fill(a < 0.0, nan)))


def _whole_quotient(a: T, b: T, y: T) -> T:
    """a / b as the integer it is without the remainder y: a / b itself may round up to the next."""
    return (a / b - y / b).round()


def _leg(a: T, b: T) -> T:
    """a / hypot(a, b), and 0 at the origin; in its derivatives nothing cancels."""

    def over(x: T, h: T) -> T:
        return (h != 0.0).scale(x / h)

    return with_partials(
        over(a.detach(), a.detach().hypot(b.detach())),
        (a, b),
        lambda a, b: _leg(b, a) * over(_leg(b, a), a.hypot(b)),
        lambda a, b: -over(_leg(a, b) * _leg(b, a), a.hypot(b)),
    )


def _angle_partial(a: T, b: T) -> T:
    """b / (a^2 + b^2), in units of the larger; 0 at the origin (least norm) and far out."""
    size = a.abs().fmax(b.abs()).detach()
    none = ((a == 0.0) & (b == 0.0)) | (size == inf)
    size = size.masked_fill(none, 1.0)
    a, b = a / size, b / size
    return none.logical_not().scale(b / (a * a + b * b) / size)


ADD = pointwise("add", 1.0, 1.0, domain=[(-3, 3), (-3, 3)], doc="a + b")
SUB = pointwise("sub", 1.0, -1.0, domain=[(-3, 3), (-3, 3)], doc="a - b")
MUL = pointwise("mul", lambda b: b, lambda a: a, domain=[(-3, 3), (-3, 3)], doc="a * b")
DIV = pointwise(
    "div",
    lambda b: 1.0 / b,
    lambda b, y: -(y / b),
    domain=[(-3, 3), (0.3, 3)],
    special=[(1.0, 0.0, inf), (0.0, 0.0, nan), (1.0, inf, 0.0)],
    doc="a / b; integers give the default float dtype",
)
POW = pointwise(
    "pow",
    _pow_by_base,
    _pow_by_exponent,
    domain=[(0.2, 3), (-2, 3)],
    special=[
        (0.0, 0.0, 1.0),
        (nan, 0.0, 1.0),
        (1.0, nan, 1.0),
        (-2.0, 3.0, -8.0),
        (0.0, -1.0, inf),
    ],
    accuracy=1,
    doc="a to the power b; of int64, b >= 0",
)
MAXIMUM = pointwise(
    "maximum",
    lambda a, b: _maximum_partial(a, b),
    lambda a, b: _maximum_partial(b, a),
    domain=[(-3, -0.1), (0.1, 3)],
    special=[(1.0, 2.0, 2.0), (nan, 1.0, nan), (1.0, nan, nan)],
    doc="the larger of a and b; a tie shares the gradient, NaN wins",
)
MINIMUM = pointwise(
    "minimum",
    lambda a, b: _maximum_partial(-a, -b),
    lambda a, b: _maximum_partial(-b, -a),
    domain=[(-3, -0.1), (0.1, 3)],
    special=[(1.0, 2.0, 1.0), (nan, 1.0, nan), (1.0, nan, nan)],
    doc="the smaller of a and b; a tie shares the gradient, NaN wins",
)
FMAX = pointwise(
    "fmax",
    lambda a, b: _fmax_partial(a, b),
    lambda a, b: _fmax_partial(b, a),
    domain=[(-3, -0.1), (0.1, 3)],
    special=[(1.0, 2.0, 2.0), (nan, 1.0, 1.0), (1.0, nan, 1.0), (nan, nan, nan)],
    doc="the larger of a and b, or the one that is not NaN; a tie shares the gradient",
)
FMIN = pointwise(
    "fmin",
    lambda a, b: _fmax_partial(-a, -b),
    lambda a, b: _fmax_partial(-b, -a),
    domain=[(-3, -0.1), (0.1, 3)],
    special=[(1.0, 2.0, 1.0), (nan, 1.0, 1.0), (1.0, nan, 1.0), (nan, nan, nan)],
    doc="the smaller of a and b, or the one that is not NaN; a tie shares the gradient",
)
FMOD = pointwise(
    "fmod",
    1.0,
    lambda a, b, y: -_whole_quotient(a, b, y),
    domain=[(3.1, 3.3), (1.15, 1.5)],
    special=[
        (-7.0, 3.0, -1.0),
        (7.0, -3.0, 1.0),
        (1.0, 0.0, nan),
        (inf, 1.0, nan),
        (2.0, inf, 2.0),
    ],
    doc="the exact remainder a - b trunc(a / b), which has the sign of a",
)
REMAINDER = pointwise(
    "remainder",
    1.0,
    lambda a, b, y: -_whole_quotient(a, b, y),
    domain=[(3.1, 3.3), (1.15, 1.5)],
    special=[
        (-7.0, 3.0, 2.0),
        (7.0, -3.0, -2.0),
        (1.0, 0.0, nan),
        (inf, 1.0, nan),
        (2.0, inf, 2.0),
    ],
    doc="the exact remainder a - b floor(a / b), which has the sign of b, as Python's %",
)
FLOOR_DIVIDE = pointwise(
    "floor_divide",
    0.0,
    0.0,
    domain=[(3.1, 3.3), (1.15, 1.5)],
    special=[(-7.0, 3.0, -3.0), (7.0, -3.0, -3.0), (1.0, 0.0, inf), (0.0, 0.0, nan)],
    doc="the largest integer not above a / b, as Python's //; its derivative is 0 everywhere",
)
ATAN2 = pointwise(
    "atan2",
    lambda a, b: _angle_partial(a, b),
    lambda a, b: -_angle_partial(b, a),
    domain=[(0.2, 3), (-3, 3)],
    special=[(0.0, 0.0, 0.0), (-0.0, 1.0, -0.0), (inf, 1.0, 1.5707963267948966)],
    accuracy=1,
    doc="the angle of the point (b, a) in radians, from -pi to pi; its gradient at (0, 0) is 0",
)
HYPOT = pointwise(
    "hypot",
    lambda a, b, y=None: _leg(a, b),
    lambda a, b, y=None: _leg(b, a),
    domain=[(0.2, 3), (-3, 3)],
    special=[(3.0, -4.0, 5.0), (0.0, -0.0, 0.0), (inf, nan, inf), (nan, -inf, inf)],
    accuracy=1,
    doc="sqrt(a^2 + b^2) without overflow on the way; its gradient at (0, 0) is 0",
)
COPYSIGN = pointwise(
    "copysign",
    lambda a, y: a.sign() * y.sign(),
    0.0,
    domain=[(0.1, 3), (0.1, 3)],
    special=[(1.0, -0.0, -1.0), (-2.0, 3.0, 2.0), (0.0, -1.0, -0.0), (-inf, 1.0, inf)],
    doc="|a| with the sign of b; the derivative with respect to a is 0 at a = 0, as that of abs",
)
NEXTAFTER = pointwise(
    "nextafter",
    lambda a, b: a != b,
    0.0,
    domain=[(-3, 3), (4, 5)],
    special=[(inf, inf, inf), (nan, 1.0, nan), (1.0, nan, nan)],
    doc="the next number after a towards b; its derivatives are 1 and 0, and both 0 where a = b",
)
SCALE = pointwise(
    "scale",
    lambda b: b,
    lambda a: a,
    domain=[(0.1, 3), (-3, 3)],
    special=[(0.0, inf, 0.0), (0.0, nan, 0.0), (2.0, 3.0, 6.0)],
    doc="a * b, and 0 where a is 0 whatever b is: how a gradient meets a partial derivative",
)

EQ = zero("eq", 2, "a == b")
NE = zero("ne", 2, "a != b")
LT = zero("lt", 2, "a < b")
LE = zero("le", 2, "a <= b")
GT = zero("gt", 2, "a > b")
GE = zero("ge", 2, "a >= b")
LOGICAL_AND = zero("logical_and", 2, "whether a and b both differ from 0, as bool")
LOGICAL_OR = zero("logical_or", 2, "whether a or b differs from 0, as bool")
LOGICAL_XOR = zero("logical_xor", 2, "whether exactly one of a and b differs from 0, as bool")
BITWISE_AND = zero("bitwise_and", 2, "the bits set in both a and b; int64 and bool")
BITWISE_OR = zero("bitwise_or", 2, "the bits set in a or b; int64 and bool")
BITWISE_XOR = zero("bitwise_xor", 2, "the bits set in just one of a and b; int64 and bool")
BITWISE_LEFT_SHIFT = zero(
    "bitwise_left_shift", 2, "a 2^b in int64, which wraps around; 0 where b is not in 0..63"
)
BITWISE_RIGHT_SHIFT = zero(
    "bitwise_right_shift", 2, "a / 2^b rounded down in int64; for b not in 0..63 as by 63"
)

# ---- three inputs --------------------------------------------------------------------------------


def _where_takes(condition: Array, a: Array, b: Array) -> bool:
    """Whether values are moved as they are: two storage dtypes have none that holds both."""
    storage = min(condition.dtype, a.dtype, b.dtype) < lib.MG_BOOL
    return not storage or (condition.dtype >= lib.MG_BOOL and a.dtype == b.dtype)


WHERE = custom(
    "where",
    kernels.where,
    None,
    lambda g, c: g.where(c, 0.0),
    lambda g, c: g.masked_fill(c, 0.0),
    takes=_where_takes,
    symmetric=True,
    doc="a where the condition c holds, else b",
)


# Where x is what came out, it gets the gradient, at a bound too (it is inclusive: a parameter that
# was projected onto its bound can still leave it). This is the one place that says so. Where the
# lower bound is above the result, bounds are crossed: the result is the upper one, whatever x is.
def _clamp_passes(x: T, b: T, y: T) -> T:
    return (x == y) * (b <= y)


def _clamp_raised(x: T, b: T, y: T) -> T:
    return (x < y) * (b == y)


def _clamp_lowered(x: T, b: T, y: T) -> T:
    return (x > y) + (b > y)


CLAMP = custom(
    "clamp",
    kernels.clamp,
    lambda g, x, b, y: g.where(_clamp_passes(x, b, y), 0.0),
    lambda g, x, b, y: g.where(_clamp_raised(x, b, y), 0.0),
    lambda g, x, b, y: g.where(_clamp_lowered(x, b, y), 0.0),
    symmetric=True,
    doc="x between the bounds b (low) and high",
)
CLIP = with_numbers(
    "clip",
    kernels.clip,
    kernels.clip_vjp,
    lambda g, x, low, high: g.where((x >= low) * (x <= high), 0.0),
    doc="x between two numbers; on them its derivative is 1",
)
