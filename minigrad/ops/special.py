"""Rows of activations and special functions of one or two inputs. Kernels: elementwise.def."""

from __future__ import annotations

from math import inf, nan, pi, sqrt
from typing import Any

from minigrad.ops.composed import polygamma, with_partials
from minigrad.ops.derivatives import (
    erfcx_derivative,
    i0e_partial,
    i1_partial,
    i1e_partial,
    log_ndtr_partial,
)
from minigrad.ops.table import pointwise, with_numbers
from minigrad.runtime.native import kernels

T = Any  # a Tensor, whose class this layer may not import


def _leaky_partial(a: T, b: T) -> T:
    above = (a > 0.0).to(a.dtype)
    return above + (1.0 - above).scale(b)


# ---- activations ---------------------------------------------------------------------------------

RELU = pointwise(
    "relu",
    lambda y: 1.0 - (y <= 0.0),
    domain=[(0.1, 3)],
    special=[(0.0, 0.0), (-1.0, 0.0), (nan, nan), (inf, inf)],
    doc="max(x, 0); its derivative at 0 is 0, and NaN passes",
)
RELU6 = pointwise(
    "relu6",
    lambda y: 1.0 - (y <= 0.0) - (y >= 6.0),
    domain=[(0.1, 5.9)],
    special=[(-1.0, 0.0), (-0.0, 0.0), (7.0, 6.0), (nan, nan), (inf, 6.0), (-inf, 0.0)],
    doc="min(max(x, 0), 6); its derivative at 0 and 6 is 0, and NaN passes",
)
HARDSIGMOID = pointwise(
    "hardsigmoid",
    lambda x: (1.0 - (x <= -3.0) - (x >= 3.0)).to(x.dtype) / 6.0,
    domain=[(-2.9, 2.9)],
    special=[(-3.0, 0.0), (0.0, 0.5), (3.0, 1.0), (nan, nan), (inf, 1.0), (-inf, 0.0)],
    accuracy=1,
    doc="min(max(x + 3, 0), 6) / 6; its derivative at -3 and 3 is 0",
)
HARDSWISH = pointwise(
    "hardswish",
    lambda x: (x / 3.0 + 0.5).masked_fill(x <= -3.0, 0.0).masked_fill(x >= 3.0, 1.0),
    domain=[(-2.9, 2.9)],
    special=[(-3.0, 0.0), (0.0, 0.0), (4.0, 4.0), (nan, nan), (inf, inf), (-inf, 0.0)],
    accuracy=2,
    doc="x hardsigmoid(x); at -inf it is 0, and its derivative is 0 at -3 and 1 at 3",
)
LEAKY = pointwise(
    "leaky",
    lambda a, b: _leaky_partial(a, b),
    lambda a: a.masked_fill(a > 0.0, 0.0),
    domain=[(-3, -0.1), (-2, 2)],
    special=[(2.0, nan, 2.0), (-2.0, 0.5, -1.0), (0.0, inf, nan), (nan, 1.0, nan), (inf, 0.0, inf)],
    doc="a above 0, a b below; by a its derivative at 0 is b",
)
SHRINK = with_numbers(
    "shrink",
    kernels.shrink,
    kernels.shrink_vjp,
    lambda g, x, low, high, level, shift: g.masked_fill((x >= low) * (x <= high), 0.0),
    taken=2,
    doc="a level from low to high, with slope 0; beyond, x, nearer to 0 by a shift",
)
HARDTANH = with_numbers(
    "hardtanh",
    kernels.hardtanh,
    kernels.hardtanh_vjp,
    lambda g, x, low, high: g.masked_fill((x <= low) + (x >= high), 0.0),
    doc="x between low and high, on which its derivative is 0",
)


def _elu_partial(x: T, height: float, width: float, slope: float) -> T:
    # At 0 the derivative is the one from below. The second derivative is 0, as on a straight line.
    curve = (x.clamp(max=0.0) / width).exp() * (height / width)
    return curve.where(x < 0.0, height / width).where(x <= 0.0, slope)


ELU = with_numbers(
    "elu",
    kernels.elu,
    kernels.elu_vjp,
    lambda g, x, height, width, slope: g.scale(_elu_partial(x, height, width, slope)),
    doc="slope * x above 0, height * (exp(x / width) - 1) below",
)
SOFTSIGN = pointwise(
    "softsign",
    lambda x: (1.0 / (1.0 + x.abs())).square(),
    domain=[(0.1, 3)],
    special=[(0.0, 0.0), (1.0, 0.5), (inf, 1.0), (-inf, -1.0), (nan, nan)],
    accuracy=2,
    doc="x / (1 + |x|); at infinity it is 1 or -1",
)
SIGMOID = pointwise(
    "sigmoid",
    lambda y: y * (1.0 - y),
    domain=[(-4, 4)],
    special=[(0.0, 0.5), (inf, 1.0), (-inf, 0.0), (1000.0, 1.0), (-1000.0, 0.0)],
    accuracy=1,
    doc="1 / (1 + exp(-x))",
)
SOFTPLUS = pointwise(
    "softplus",
    lambda x, y=None: x.sigmoid(),
    domain=[(-4, 4)],
    special=[(1000.0, 1000.0), (-1000.0, 0.0), (inf, inf), (-inf, 0.0), (nan, nan)],
    accuracy=1,
    doc="log(1 + exp(x)), at every x: no threshold beyond which it is taken for x",
)
LOGSIGMOID = pointwise(
    "logsigmoid",
    lambda x, y=None: (-x).sigmoid(),
    domain=[(-4, 4)],
    special=[(-1000.0, -1000.0), (1000.0, -0.0), (inf, -0.0), (-inf, -inf), (nan, nan)],
    accuracy=1,
    doc="log(sigmoid(x)) = -softplus(-x)",
)


def _silu_partial(x: T) -> T:
    t = x.clamp(-800.0, 800.0)  # beyond, the derivative is 0 or 1; no factor becomes infinite
    y = t.sigmoid()
    return y + t * y * (-t).sigmoid()


SILU = pointwise(
    "silu",
    lambda x, y=None: _silu_partial(x),
    domain=[(-4, 4)],
    special=[(0.0, 0.0), (inf, inf), (-inf, -0.0), (nan, nan)],
    accuracy=1,
    doc="x sigmoid(x); at -inf it is 0 and so is its derivative",
)


def _normal_density(x: T) -> T:
    return (1.0 / sqrt(2.0 * pi)) * (-0.5 * x * x).exp()


def _gelu_partial(x: T) -> T:
    t = x.clamp(-40.0, 40.0)  # beyond, the derivative is 0 or 1
    return t.apply_row(NDTR) + t * _normal_density(t)


GELU = pointwise(
    "gelu",
    lambda x, y=None: _gelu_partial(x),
    domain=[(-4, 4)],
    special=[(0.0, 0.0), (inf, inf), (-inf, -0.0), (nan, nan)],
    accuracy=1,
    doc="x ndtr(x), x times the normal distribution; at -inf it is 0 and so is its derivative",
)

_GELU_SCALE, _GELU_CUBE = 2.0 * sqrt(2.0 / pi), 0.044715


def _gelu_tanh_partial(x: T) -> T:
    t = x.clamp(-40.0, 40.0)
    z = _GELU_CUBE * (t * t)
    u = _GELU_SCALE * t * (1.0 + z)
    y = u.sigmoid()
    return y + t * (_GELU_SCALE * (1.0 + 3.0 * z)) * (y * (-u).sigmoid())


GELU_TANH = pointwise(
    "gelu_tanh",
    lambda x, y=None: _gelu_tanh_partial(x),
    domain=[(-4, 4)],
    special=[(0.0, 0.0), (inf, inf), (-inf, -0.0), (nan, nan)],
    accuracy=1,
    doc="x sigmoid(2 u) with u = sqrt(2 / pi) (x + 0.044715 x^3), GELU's tanh form",
)

# ---- the error function and the normal distribution ----------------------------------------------


def _erf_partial(x: T) -> T:
    return (2.0 / sqrt(pi)) * (-(x * x)).exp()


ERF = pointwise(
    "erf",
    lambda x: _erf_partial(x),
    domain=[(-3, 3)],
    special=[(0.0, 0.0), (-0.0, -0.0), (inf, 1.0), (-inf, -1.0), (nan, nan)],
    accuracy=1,
    doc="the error function 2 / sqrt(pi) times the integral of exp(-t^2) from 0 to x",
)
ERFC = pointwise(
    "erfc",
    lambda x: -_erf_partial(x),
    domain=[(-3, 3)],
    special=[(0.0, 1.0), (inf, 0.0), (-inf, 2.0), (nan, nan)],
    accuracy=1,
    doc="1 - erf(x), precise where that is small",
)
ERFCX = pointwise(
    "erfcx",
    lambda x: erfcx_derivative(x),
    domain=[(-2, 3)],
    special=[(0.0, 1.0), (-26.68, inf), (inf, 0.0), (-inf, inf), (nan, nan)],
    accuracy=(1, 2.5),
    doc="exp(x^2) erfc(x)",
)
ERFINV = pointwise(
    "erfinv",
    lambda y: (0.5 * sqrt(pi)) * (y * y).exp(),
    domain=[(-0.9, 0.9)],
    special=[(0.0, 0.0), (-0.0, -0.0), (1.0, inf), (-1.0, -inf), (1.5, nan)],
    accuracy=1,
    doc="the y with erf(y) = x; NaN beyond -1 and 1",
)
NDTR = pointwise(
    "ndtr",
    lambda x: _normal_density(x),
    domain=[(-3, 3)],
    special=[(0.0, 0.5), (inf, 1.0), (-inf, 0.0), (nan, nan)],
    accuracy=1,
    doc="the standard normal distribution up to x, erfc(-x / sqrt(2)) / 2",
)
LOG_NDTR = pointwise(
    "log_ndtr",
    lambda x: log_ndtr_partial(x),
    domain=[(-4, 3)],
    special=[(inf, 0.0), (-inf, -inf), (nan, nan)],
    accuracy=1,
    doc="log(ndtr(x)), also where ndtr(x) underflows",
)

# ---- entropies -----------------------------------------------------------------------------------

ENTR = pointwise(
    "entr",
    lambda x: -1.0 - x.log(),
    domain=[(0.1, 3)],
    special=[(0.0, 0.0), (1.0, -0.0), (-1.0, -inf), (inf, -inf), (nan, nan)],
    accuracy=2,
    doc="-x log(x), 0 at 0 and -inf below",
)


def _ratio(a: T, b: T) -> T:
    """a / b, and 0 where a is 0, whatever b is. The derivative by a is 1 / b there too."""
    hole = (a == 0.0) & ((b == 0.0) | (b != b))
    return a.scale(1.0 / b).where(hole, a / b)


XLOGY = pointwise(
    "xlogy",
    # at (0, 0) the function and its derivative are 0, not log 0
    lambda a, b: (1.0 - (a == 0.0) * (b <= 0.0)).scale(b.log()),
    lambda a, b: _ratio(a, b),
    domain=[(0.1, 3), (0.1, 3)],
    special=[(0.0, 0.0, 0.0), (0.0, -1.0, 0.0), (0.0, inf, 0.0), (0.0, nan, nan), (2.0, 1.0, 0.0)],
    accuracy=2,
    doc="a log(b), and 0 where a is 0 unless b is NaN",
)


def _over_one_plus(a: T, b: T) -> T:
    """a / (1 + b), and 0 where a is 0, whatever b is."""
    value = a.detach().scale(1.0 / (1.0 + b.detach()))
    return with_partials(
        value,
        (a, b),
        lambda a, b: 1.0 / (1.0 + b),
        lambda a, b: -_over_one_plus(a, b).scale(1.0 / (1.0 + b)),
    )


XLOG1PY = pointwise(
    "xlog1py",
    lambda a, b: (1.0 - (a == 0.0) * (b <= -1.0)).scale(b.log1p()),
    lambda a, b: _over_one_plus(a, b),
    domain=[(0.1, 3), (-0.5, 3)],
    special=[(0.0, -1.0, 0.0), (0.0, -2.0, 0.0), (0.0, inf, 0.0), (0.0, nan, nan), (2.0, 0.0, 0.0)],
    accuracy=2,
    doc="a log(1 + b), and 0 where a is 0 unless b is NaN",
)

# ---- gamma functions -----------------------------------------------------------------------------


def _digamma_partial(x: T) -> T:
    return x.apply_row(TRIGAMMA)


LGAMMA = pointwise(
    "lgamma",
    lambda x: x.digamma(),
    domain=[(0.2, 5)],
    special=[(1.0, 0.0), (2.0, 0.0), (0.0, inf), (-1.0, inf), (inf, inf), (nan, nan)],
    accuracy=(1, 2),
    doc="the logarithm of |gamma(x)|, the integral of t^(x - 1) exp(-t) from 0 to infinity",
)
DIGAMMA = pointwise(
    "digamma",
    lambda x: _digamma_partial(x),
    domain=[(0.2, 5)],
    special=[(0.0, -inf), (-0.0, inf), (-1.0, nan), (inf, inf), (nan, nan)],
    accuracy=(1, 3),
    doc="the derivative of lgamma; NaN at negative integers, where that has poles",
)
TRIGAMMA = pointwise(
    "trigamma",
    lambda x: polygamma(2, x),
    domain=[(0.2, 5)],
    special=[(0.0, inf), (-1.0, inf), (inf, 0.0), (nan, nan)],
    accuracy=(1, 4.5),
    doc="the derivative of digamma",
)

# ---- Bessel functions ----------------------------------------------------------------------------


def _i0_partial(x: T) -> T:
    return x.apply_row(I1)


I0 = pointwise(
    "i0",
    lambda x: _i0_partial(x),
    domain=[(-4, 4)],
    special=[(0.0, 1.0), (inf, inf), (-inf, inf), (nan, nan)],
    accuracy=(1, 3),
    doc="the modified Bessel function of the first kind of order 0: sum of (x / 2)^2k / k!^2",
)
I0E = pointwise(
    "i0e",
    lambda x, y: i0e_partial(x, y),
    domain=[(0.1, 4)],
    special=[(0.0, 1.0), (inf, 0.0), (-inf, 0.0), (nan, nan)],
    accuracy=(1, 2.5),
    doc="exp(-|x|) i0(x)",
)
I1 = pointwise(
    "i1",
    lambda x, y: i1_partial(x, y),
    domain=[(-4, 4)],
    special=[(0.0, 0.0), (-0.0, -0.0), (inf, inf), (-inf, -inf), (nan, nan)],
    accuracy=(1, 3),
    doc="the modified Bessel function of the first kind of order 1, the derivative of i0",
)
I1E = pointwise(
    "i1e",
    lambda x, y: i1e_partial(x, y),
    domain=[(0.1, 4)],
    special=[(0.0, 0.0), (-0.0, -0.0), (inf, 0.0), (-inf, -0.0), (nan, nan)],
    accuracy=(1, 2.5),
    doc="exp(-|x|) i1(x)",
)
