"""Reference values and partial derivatives of the elementwise operations, by name.

References take and return arrays of a wide type (see oracle.wide): SciPy and NumPy in double for
float32, long double or mpmath for float64. None uses the engine.
"""

from __future__ import annotations

import mpmath
import numpy as np
from scipy import special

LONG = np.longdouble


def _long(value):
    """An mpmath number as a long double."""
    high = float(value)
    return LONG(high) + LONG(float(value - high)) if np.isfinite(high) else LONG(high)


def _exactly(narrow, exact):
    """A reference in double by ``narrow`` (SciPy's), and in long double by mpmath's ``exact``.

    ``exact`` serves finite numbers. It may fail at a pole or for large numbers, where ``narrow`` is
    right.
    """

    def at(*values):
        if np.isfinite(values).all():
            try:
                with mpmath.workdps(40):
                    return _long(exact(*[mpmath.mpf(float(v)) for v in values]))
            except (ValueError, ArithmeticError):
                pass
        return LONG(narrow(*[np.float64(v) for v in values]))

    def reference(*inputs):
        if inputs[0].dtype == np.float64:
            return narrow(*inputs)
        values = zip(*[x.ravel() for x in inputs], strict=True)
        return np.array([at(*v) for v in values], LONG).reshape(inputs[0].shape)

    reference.is_slow = True
    return reference


def _sigmoid(x):
    e = np.exp(-np.abs(x))
    return np.where(np.isnan(x), x, np.where(x >= 0, 1 / (1 + e), e / (1 + e)))


def _relu(x):
    return np.where(x <= 0, 0, x)


def _hardsigmoid(x):
    return (np.clip(x, -3, 3) + 3) / 6


def _scale(a, b):
    return np.where(a == 0, 0, a * b)


def _of_numbers(choose):
    """np.fmax from np.maximum. NumPy's fmax of a number and a signalling NaN is NaN on aarch64."""

    def reference(a, b):
        return choose(np.where(a != a, b, a), np.where(b != b, a, b))

    return reference


def _softplus(x):
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


def _silu(x):
    return np.where(np.isinf(x), np.maximum(x, -0.0), x * _sigmoid(x))


def _sinc(x):
    whole = np.round(x)
    turned = np.sin(LONG_PI.astype(x.dtype) * (x - whole)) * np.where(whole % 2 == 0, 1, -1)
    y = turned / (LONG_PI.astype(x.dtype) * x)
    return np.where(x == 0, 1, np.where(np.isinf(x), 0, y))


LONG_PI = LONG(3.141592653589793) + LONG(1.2246467991473532e-16)


def _gelu(x):
    return mpmath.ncdf(x) * x


def _gelu_tanh(x):
    u = mpmath.sqrt(2 / mpmath.pi) * (x + mpmath.mpf("0.044715") * x**3)
    return 0 if u < -1e6 else x / (1 + mpmath.exp(-2 * u))


def _double_gelu_tanh(x):
    u = np.sqrt(2 / np.pi) * x * (1 + 0.044715 * x * x)
    return np.where(np.isinf(x), np.maximum(x, -0.0), _scale(_sigmoid(2 * u), x))


def _double_gelu(x):
    return np.where(np.isinf(x), np.maximum(x, -0.0), x * special.ndtr(x))


def _log_ndtr(x):
    return mpmath.log(mpmath.ncdf(x)) if x < 5 else mpmath.log1p(-mpmath.ncdf(-x))


def _scaled_bessel(order):
    def f(x):
        if abs(x) < 1e4:
            return mpmath.besseli(order, x) * mpmath.exp(-abs(x))
        m, total, term = 4 * order**2, mpmath.mpf(0), mpmath.mpf(1)
        for k in range(1, 20):  # the asymptotic series
            total += term
            term *= -(m - (2 * k - 1) ** 2) / (k * 8 * abs(x))
        return total / mpmath.sqrt(2 * mpmath.pi * abs(x)) * (-1 if order and x < 0 else 1)

    return f


def _bessel(order):
    return lambda x: (
        mpmath.besseli(order, x) if abs(x) < 1e4 else mpmath.sign(x) ** order / mpmath.mpf(0)
    )


def _logaddexp(a, b):
    return max(a, b) + mpmath.log1p(mpmath.exp(-abs(a - b)))


def _logaddexp2(a, b):
    return max(a, b) + mpmath.log1p(mpmath.mpf(2) ** -abs(a - b)) / mpmath.log(2)


def _double_trigamma(x):
    with np.errstate(all="ignore"):
        turn = np.where(x == np.floor(x), 0, np.sin(np.pi * (x - np.round(x))))
        reflected = (np.pi / turn) ** 2 - special.polygamma(1, 1 - np.minimum(x, 0))
    return np.where(x < -9, reflected, special.polygamma(1, np.maximum(x, -9.5)))


def _trigamma(x):
    if x < -9:  # reflected, since mpmath is slow there; fails at the poles
        return (mpmath.pi / mpmath.sinpi(x)) ** 2 - mpmath.psi(1, 1 - x)
    return mpmath.psi(1, x)


def _lgamma(x):
    return mpmath.loggamma(x).real


def _pow(a, b):
    """NumPy's power, in double for infinite bases: the GNU C library errs with (-inf)^-(2^63)."""
    y = np.power(a, b)
    if a.dtype.kind != "f":
        return y
    return np.where(np.isinf(a), np.power(a.astype(np.float64), b.astype(np.float64)), y)


def _logit(x):
    middle = 2 * np.arctanh(2 * x - 1)  # the logarithms of the other form cancel here
    return np.where(np.abs(x - 0.5) < 0.25, middle, np.log(x) - np.log1p(-x))


def _xlogy(a, b):
    return np.where((a == 0) & ~np.isnan(b), 0, a * np.log(b))


def _xlog1py(a, b):
    return np.where((a == 0) & ~np.isnan(b), 0, a * np.log1p(b))


def _entr(x):
    y = np.where(x < 0, -np.inf, np.where(np.isinf(x), -x, -x * np.log(x)))
    return np.where(x == 0, 0, y)


POINTWISE = {
    "neg": np.negative,
    "abs": np.abs,
    "sign": np.sign,
    "square": np.square,
    "reciprocal": lambda x: 1 / x,
    "floor": np.floor,
    "ceil": np.ceil,
    "trunc": np.trunc,
    "round": np.round,
    "exp": np.exp,
    "exp2": np.exp2,
    "expm1": np.expm1,
    "log": np.log,
    "log2": np.log2,
    "log10": np.log10,
    "log1p": np.log1p,
    "sqrt": np.sqrt,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "cbrt": np.cbrt,
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "sinc": _sinc,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "tanh": np.tanh,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
    "relu": _relu,
    "relu6": lambda x: np.minimum(_relu(x), 6),
    "hardsigmoid": _hardsigmoid,
    "hardswish": lambda x: _scale(_hardsigmoid(x), x),
    "softsign": lambda x: np.where(np.isinf(x), np.sign(x), x / (1 + abs(x))),
    "sigmoid": _sigmoid,
    "softplus": _softplus,
    "logsigmoid": lambda x: -_softplus(-x),
    "silu": _silu,
    "gelu": _exactly(_double_gelu, _gelu),
    "gelu_tanh": _exactly(_double_gelu_tanh, _gelu_tanh),
    "erf": _exactly(special.erf, mpmath.erf),
    "erfc": _exactly(special.erfc, mpmath.erfc),
    "erfcx": _exactly(special.erfcx, lambda x: mpmath.exp(x * x) * mpmath.erfc(x)),
    "erfinv": _exactly(special.erfinv, mpmath.erfinv),
    "ndtr": _exactly(special.ndtr, mpmath.ncdf),
    "log_ndtr": _exactly(special.log_ndtr, _log_ndtr),
    "entr": _entr,
    "lgamma": _exactly(lambda x: np.where(np.isinf(x), np.inf, special.gammaln(x)), _lgamma),
    "digamma": _exactly(special.digamma, mpmath.digamma),
    "trigamma": _exactly(_double_trigamma, _trigamma),
    "i0": _exactly(lambda x: np.where(np.isinf(x), np.inf, special.i0(x)), _bessel(0)),
    "i0e": _exactly(special.i0e, _scaled_bessel(0)),
    "i1": _exactly(lambda x: np.where(np.isinf(x), x, special.i1(x)), _bessel(1)),
    "i1e": _exactly(special.i1e, _scaled_bessel(1)),
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "pow": _pow,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "fmax": _of_numbers(np.maximum),
    "fmin": _of_numbers(np.minimum),
    "fmod": np.fmod,
    "remainder": np.remainder,
    "floor_divide": np.floor_divide,
    "atan2": np.arctan2,
    "hypot": np.hypot,
    "copysign": np.copysign,
    "nextafter": np.nextafter,
    "logaddexp": _exactly(np.logaddexp, _logaddexp),
    "logaddexp2": _exactly(np.logaddexp2, _logaddexp2),
    "xlogy": _xlogy,
    "xlog1py": _xlog1py,
    "scale": _scale,
    "leaky": lambda a, b: np.where(a > 0, a, a * b),
    "frac": lambda x: x - np.trunc(x),
    "logit": _logit,
    "deg2rad": np.deg2rad,
    "rad2deg": np.rad2deg,
    "heaviside": np.heaviside,
}


def _log_size(x):
    return np.where(x < 0, np.maximum(np.log(np.abs(x)), 0.125), 0)


# The size of terms that may cancel. The error is then in ULP of this size.
TERMS = {
    "logaddexp": np.maximum,
    "logaddexp2": np.maximum,
    "lgamma": lambda x: np.where(x < 0, 0.125, 0),
    "digamma": _log_size,
}

TESTS = {
    "isnan": np.isnan,
    "isinf": np.isinf,
    "isfinite": np.isfinite,
    "signbit": lambda x: np.signbit(x) if x.dtype.kind == "f" else x < 0,
    "logical_not": np.logical_not,
}

COMPARISONS = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "logical_and": np.logical_and,
    "logical_or": np.logical_or,
    "logical_xor": np.logical_xor,
}

BITS = {
    "bitwise_not": np.invert,
    "bitwise_and": np.bitwise_and,
    "bitwise_or": np.bitwise_or,
    "bitwise_xor": np.bitwise_xor,
    "bitwise_left_shift": np.left_shift,
    "bitwise_right_shift": np.right_shift,
}


def _sigmoid_slope(x):
    e = np.exp(-np.abs(x))
    return e / (1 + e) ** 2


def _density(x):
    return np.exp(-x * x / 2) / np.sqrt(2 * np.pi)


def _erf_slope(x):
    return 2 / np.sqrt(np.pi) * np.exp(-x * x)


def _gelu_tanh_slope(x):
    c = 2 * np.sqrt(2 / np.pi)
    u = c * (x + 0.044715 * x**3)
    return _sigmoid(u) + x * _sigmoid_slope(u) * c * (1 + 3 * 0.044715 * x * x)


def _sinc_slope(x):
    return np.where(x == 0, 0, (np.cos(np.pi * x) - _sinc(x)) / x)


def _in_double(f):
    return lambda x: f(x.astype(np.float64))


def _one(*inputs):
    return np.ones_like(inputs[0])


def _none(*inputs):
    return np.zeros_like(inputs[0])


# Partial derivatives on the smooth part of each domain.
PARTIALS = {
    "neg": [lambda x: -np.ones_like(x)],
    "abs": [np.sign],
    "sign": [_none],
    "square": [lambda x: 2 * x],
    "reciprocal": [lambda x: -1 / x**2],
    "floor": [_none],
    "ceil": [_none],
    "trunc": [_none],
    "round": [_none],
    "exp": [np.exp],
    "exp2": [lambda x: np.exp2(x) * np.log(2)],
    "expm1": [np.exp],
    "log": [lambda x: 1 / x],
    "log2": [lambda x: 1 / (x * np.log(2))],
    "log10": [lambda x: 1 / (x * np.log(10))],
    "log1p": [lambda x: 1 / (1 + x)],
    "sqrt": [lambda x: 0.5 / np.sqrt(x)],
    "rsqrt": [lambda x: -0.5 * x**-1.5],
    "cbrt": [lambda x: 1 / (3 * np.cbrt(x) ** 2)],
    "sin": [np.cos],
    "cos": [lambda x: -np.sin(x)],
    "tan": [lambda x: 1 / np.cos(x) ** 2],
    "asin": [lambda x: 1 / np.sqrt(1 - x * x)],
    "acos": [lambda x: -1 / np.sqrt(1 - x * x)],
    "atan": [lambda x: 1 / (1 + x * x)],
    "sinc": [_sinc_slope],
    "sinh": [np.cosh],
    "cosh": [np.sinh],
    "tanh": [lambda x: 1 / np.cosh(x) ** 2],
    "asinh": [lambda x: 1 / np.sqrt(1 + x * x)],
    "acosh": [lambda x: 1 / np.sqrt(x * x - 1)],
    "atanh": [lambda x: 1 / (1 - x * x)],
    "relu": [lambda x: (x > 0) * np.ones_like(x)],
    "relu6": [lambda x: ((x > 0) & (x < 6)) * np.ones_like(x)],
    "hardsigmoid": [lambda x: (abs(x) < 3) * np.ones_like(x) / 6],
    "hardswish": [lambda x: np.where(x >= 3, 1, np.where(x <= -3, 0, (2 * x + 3) / 6))],
    "softsign": [lambda x: 1 / (1 + abs(x)) ** 2],
    "sigmoid": [_sigmoid_slope],
    "softplus": [_sigmoid],
    "logsigmoid": [lambda x: _sigmoid(-x)],
    "silu": [lambda x: _sigmoid(x) + x * _sigmoid_slope(x)],
    "gelu": [_in_double(lambda x: special.ndtr(x) + x * _density(x))],
    "gelu_tanh": [_gelu_tanh_slope],
    "erf": [_erf_slope],
    "erfc": [lambda x: -_erf_slope(x)],
    "erfcx": [_in_double(lambda x: 2 * x * special.erfcx(x) - 2 / np.sqrt(np.pi))],
    "erfinv": [_in_double(lambda x: np.sqrt(np.pi) / 2 * np.exp(special.erfinv(x) ** 2))],
    "ndtr": [_density],
    "log_ndtr": [_in_double(lambda x: np.sqrt(2 / np.pi) / special.erfcx(-x / np.sqrt(2)))],
    "entr": [lambda x: -1 - np.log(x)],
    "lgamma": [_in_double(special.digamma)],
    "digamma": [_in_double(lambda x: special.polygamma(1, x))],
    "trigamma": [_in_double(lambda x: special.polygamma(2, x))],
    "i0": [_in_double(special.i1)],
    "i0e": [_in_double(lambda x: special.i1e(x) - np.sign(x) * special.i0e(x))],
    "i1": [_in_double(lambda x: special.i0(x) - special.i1(x) / x)],
    "i1e": [_in_double(lambda x: special.i0e(x) - special.i1e(x) * (np.sign(x) + 1 / x))],
    "add": [_one, _one],
    "sub": [_one, lambda a, b: -np.ones_like(a)],
    "mul": [lambda a, b: b, lambda a, b: a],
    "div": [lambda a, b: 1 / b, lambda a, b: -a / b**2],
    "pow": [lambda a, b: b * a ** (b - 1), lambda a, b: a**b * np.log(a)],
    "maximum": [lambda a, b: (a > b) * np.ones_like(a), lambda a, b: (b > a) * np.ones_like(a)],
    "minimum": [lambda a, b: (a < b) * np.ones_like(a), lambda a, b: (b < a) * np.ones_like(a)],
    "fmax": [lambda a, b: (a > b) * np.ones_like(a), lambda a, b: (b > a) * np.ones_like(a)],
    "fmin": [lambda a, b: (a < b) * np.ones_like(a), lambda a, b: (b < a) * np.ones_like(a)],
    "fmod": [_one, lambda a, b: -np.trunc(a / b)],
    "remainder": [_one, lambda a, b: -np.floor(a / b)],
    "floor_divide": [_none, _none],
    "atan2": [lambda a, b: b / (a * a + b * b), lambda a, b: -a / (a * a + b * b)],
    "hypot": [lambda a, b: a / np.hypot(a, b), lambda a, b: b / np.hypot(a, b)],
    "copysign": [lambda a, b: np.sign(a) * np.sign(b), _none],
    "nextafter": [lambda a, b: (a != b) * np.ones_like(a), _none],
    "logaddexp": [lambda a, b: _sigmoid(a - b), lambda a, b: _sigmoid(b - a)],
    "logaddexp2": [
        lambda a, b: _sigmoid((a - b) * np.log(2)),
        lambda a, b: _sigmoid((b - a) * np.log(2)),
    ],
    "xlogy": [lambda a, b: np.log(b), lambda a, b: a / b],
    "xlog1py": [lambda a, b: np.log1p(b), lambda a, b: a / (1 + b)],
    "scale": [lambda a, b: b, lambda a, b: a],
    "leaky": [lambda a, b: np.where(a > 0, 1, b), lambda a, b: np.where(a > 0, 0, a)],
    "frac": [_one],
    "logit": [lambda x: 1 / (x * (1 - x))],
    "deg2rad": [lambda x: np.full_like(x, np.pi / 180)],
    "rad2deg": [lambda x: np.full_like(x, 180 / np.pi)],
    "heaviside": [_none, _none],
}
