"""Elementwise operations. The kernels, and the same derivatives in C, are in elementwise.def."""

from __future__ import annotations

from math import inf, nan
from typing import Any

from minigrad._c import call, lib
from minigrad.ops.table import custom, pointwise, zero

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
EXP = pointwise(
    "exp",
    lambda y: y,
    domain=[(-3, 3)],
    special=[(0.0, 1.0), (inf, inf), (-inf, 0.0), (nan, nan)],
    doc="e to the power x",
)
LOG = pointwise(
    "log",
    lambda x: 1.0 / x,
    domain=[(0.1, 4)],
    special=[(1.0, 0.0), (0.0, -inf), (-1.0, nan), (inf, inf)],
    doc="the natural logarithm",
)
SQRT = pointwise(
    "sqrt",
    lambda y: 0.5 / y,
    domain=[(0.1, 4)],
    special=[(0.0, 0.0), (-0.0, -0.0), (4.0, 2.0), (-1.0, nan), (inf, inf)],
    doc="the square root",
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
SIN = pointwise(
    "sin",
    lambda x: x.cos(),
    domain=[(-4, 4)],
    special=[(0.0, 0.0), (-0.0, -0.0), (inf, nan)],
    doc="the sine of x radians",
)
COS = pointwise(
    "cos",
    lambda x: -x.sin(),
    domain=[(-4, 4)],
    special=[(0.0, 1.0), (-inf, nan)],
    doc="the cosine of x radians",
)
TANH = pointwise(
    "tanh",
    lambda y: 1.0 - y * y,
    domain=[(-3, 3)],
    special=[(inf, 1.0), (-inf, -1.0), (0.0, 0.0), (-0.0, -0.0), (1000.0, 1.0)],
    doc="the hyperbolic tangent",
)
SIGMOID = pointwise(
    "sigmoid",
    lambda y: y * (1.0 - y),
    domain=[(-4, 4)],
    special=[(0.0, 0.5), (inf, 1.0), (-inf, 0.0), (1000.0, 1.0), (-1000.0, 0.0)],
    doc="1 / (1 + exp(-x))",
)
RELU = pointwise(
    "relu",
    lambda y: 1.0 - (y <= 0.0),
    domain=[(0.1, 3)],
    special=[(0.0, 0.0), (-1.0, 0.0), (nan, nan), (inf, inf)],
    doc="max(x, 0); its derivative at 0 is 0, and NaN passes",
)

# ---- two inputs ----------------------------------------------------------------------------------


def _maximum_partial(a: T, b: T) -> T:
    """1 where ``a`` wins, 1/2 at a tie, all to a NaN; piecewise constant."""
    return 0.5 * ((a > b) * 1.0 + (a >= b)) + (a != a) * (1.0 - 0.5 * (b != b))


def _pow_by_base(a: T, b: T) -> T:
    return b.scale(a ** (b - 1.0))  # x^0 is constant: 0 * x^-1 is never formed


def _pow_by_exponent(a: T, b: T, y: T) -> T:
    # A power of 0 has no slope although its logarithm is infinite; nor has 0^0, one-sided.
    counts = (y != 0.0) * (1.0 - (a == 0.0) * (b == 0.0))
    return counts.scale(y * a.log())


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
    doc="a to the power b",
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

# ---- three inputs, and dtype ---------------------------------------------------------------------

WHERE = custom(
    "where",
    lambda c, a, b: call(lib.mg_where, c, a, b),
    None,
    lambda g, c: c.scale(g),
    lambda g, c: (c == 0).scale(g),
    doc="a where the condition c holds, else b",
)
