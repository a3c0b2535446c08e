"""Partial derivatives of the elementwise operations in mpmath, exact at every magnitude.

Each function takes and returns mpmath numbers at the working precision, NaN where there is no
derivative. None uses the engine.
"""

from __future__ import annotations

import mpmath
from mpmath import mpf

__all__ = ["PARTIALS"]

NAN, INF = mpmath.nan, mpmath.inf


def _over(a, b):
    """a / b with the result of floats: infinite at a pole."""
    if b != 0:
        return a / b
    return NAN if a == 0 or mpmath.isnan(a) else INF * mpmath.sign(a)


def _root(x):
    return NAN if x < 0 else mpmath.sqrt(x)


def _log(x):
    return NAN if x < 0 else -INF if x == 0 else mpmath.log(x)


def _one_over(scale):
    return lambda x: _over(mpf(1), x * scale())


def _nothing(*_):
    return mpf(0)


def _one(*_):
    return mpf(1)


def _sigmoid(x):
    return 1 / (1 + mpmath.exp(-x))


def _sigmoid_slope(x):
    e = mpmath.exp(-abs(x))
    return e / (1 + e) ** 2


def _density(x):
    return mpmath.exp(-x * x / 2) / mpmath.sqrt(2 * mpmath.pi)


def _normal(x):
    if abs(x) > 1e6:
        return mpf(x > 0)
    return mpmath.erfc(-x / mpmath.sqrt(2)) / 2


def _erf_slope(x):
    return 2 / mpmath.sqrt(mpmath.pi) * mpmath.exp(-x * x)


def _erfcx(x):
    if x < 1e3:
        return mpmath.exp(x * x) * mpmath.erfc(x)
    term, total = mpf(1), mpf(0)
    for k in range(12):
        total += term
        term *= -(2 * k + 1) / (2 * x * x)
    return total / (x * mpmath.sqrt(mpmath.pi))


def _erfcx_slope(x):
    if x < 1e3:
        return 2 * x * _erfcx(x) - 2 / mpmath.sqrt(mpmath.pi)
    term, total = mpf(1), mpf(0)
    for k in range(12):
        term *= -(2 * k + 1) / (2 * x * x)
        total += term
    return total * 2 / mpmath.sqrt(mpmath.pi)


def _erfinv_slope(x):
    if abs(x) >= 1:
        return NAN if abs(x) > 1 else INF
    return mpmath.sqrt(mpmath.pi) / 2 * mpmath.exp(mpmath.erfinv(x) ** 2)


def _sinc_slope(x):
    if abs(x) < 1e-30:
        return -(mpmath.pi**2) * x / 3
    return (mpmath.cospi(x) - mpmath.sinpi(x) / (mpmath.pi * x)) / x


def _gelu_tanh_slope(x):
    if abs(x) > 1e4:
        return mpf(x > 0)
    c, k = 2 * mpmath.sqrt(2 / mpmath.pi), mpf("0.044715")
    u = c * (x + k * x**3)
    return _sigmoid(u) + x * _sigmoid_slope(u) * c * (1 + 3 * k * x * x)


def _polygamma(n):
    def f(x):
        if x < -9 or (x <= 0 and x == mpmath.floor(x)):
            return None  # slow, or a pole
        return mpmath.psi(n, x)

    return f


def _scaled_bessel(n, x, order=0):
    """exp(-|x|) I_n(x), or its derivative, by the asymptotic series from 300 on."""
    size = abs(x)
    if size < 300:
        y = mpmath.besseli(n, size) * mpmath.exp(-size)
        if order:
            near = mpmath.besseli(n + 1, size) * mpmath.exp(-size)
            y = near - y + (n * y / size if size else mpf(n) / 2)
    else:
        m, y, term = 4 * n**2, mpf(0), 1 / mpmath.sqrt(2 * mpmath.pi * size)
        for k in range(1, 40):
            y += -term * (k - mpf(1) / 2) / size if order else term
            term *= -(m - (2 * k - 1) ** 2) / (k * 8 * size)
    return -y if x < 0 and (n + order) % 2 else y


def _bessel(n, x):
    return _scaled_bessel(n, x) * mpmath.exp(abs(x))


def _larger(a, b):
    return mpf(1) if a > b else mpf(1) / 2 if a == b else mpf(0)


def _power(a, b):
    if a == 0:
        return mpf(b == 0) if b >= 0 else INF
    if a < 0 and b != mpmath.floor(b):
        return NAN
    size = mpmath.exp(b * mpmath.log(abs(a)))
    return -size if a < 0 and int(b) % 2 else size


def _power_by_base(a, b):
    return mpf(0) if b == 0 else b * _power(a, b - 1)


def _power_by_exponent(a, b):
    if a == 0:
        return mpf(0) if b >= 0 else -INF
    return NAN if a < 0 else _power(a, b) * mpmath.log(a)


def _quotient(rounded):
    return lambda a, b: NAN if b == 0 else -rounded(a / b)


def _angle(a, b):
    return mpf(0) if a == b == 0 else b / (a * a + b * b)


def _leg(a, b):
    return mpf(0) if a == b == 0 else a / mpmath.sqrt(a * a + b * b)


def _times(log):
    return lambda a, b: mpf(0) if a == 0 and log(b) in (NAN, -INF) else log(b)


def _inside(low, high, value=1):
    return lambda x: mpf(value) if low < x < high else mpf(0)


def _ln2():
    return mpmath.log(2)


PARTIALS = {
    "neg": [lambda x: mpf(-1)],
    "abs": [mpmath.sign],
    "sign": [_nothing],
    "square": [lambda x: 2 * x],
    "reciprocal": [lambda x: -_over(mpf(1), x * x)],
    "floor": [_nothing],
    "ceil": [_nothing],
    "trunc": [_nothing],
    "round": [_nothing],
    "exp": [mpmath.exp],
    "exp2": [lambda x: mpmath.exp(x * _ln2()) * _ln2()],
    "expm1": [mpmath.exp],
    "log": [_one_over(_one)],
    "log2": [_one_over(_ln2)],
    "log10": [_one_over(lambda: mpmath.log(10))],
    "log1p": [lambda x: _over(mpf(1), 1 + x)],
    "sqrt": [lambda x: _over(mpf(1), 2 * _root(x))],
    "rsqrt": [lambda x: -_over(mpf(1), 2 * x * _root(x))],
    "cbrt": [lambda x: _over(mpf(1), 3 * mpmath.cbrt(abs(x)) ** 2)],
    "sin": [mpmath.cos],
    "cos": [lambda x: -mpmath.sin(x)],
    "tan": [lambda x: 1 / mpmath.cos(x) ** 2],
    "asin": [lambda x: _over(mpf(1), _root((1 - x) * (1 + x)))],
    "acos": [lambda x: -_over(mpf(1), _root((1 - x) * (1 + x)))],
    "atan": [lambda x: 1 / (1 + x * x)],
    "sinc": [_sinc_slope],
    "sinh": [mpmath.cosh],
    "cosh": [mpmath.sinh],
    "tanh": [lambda x: 1 / mpmath.cosh(x) ** 2],
    "asinh": [lambda x: 1 / mpmath.sqrt(1 + x * x)],
    "acosh": [lambda x: _over(mpf(1), _root(x - 1) * _root(x + 1))],
    "atanh": [lambda x: _over(mpf(1), (1 - x) * (1 + x)) if abs(x) <= 1 else None],
    "relu": [_inside(0, INF)],
    "relu6": [_inside(0, 6)],
    "hardsigmoid": [lambda x: _inside(-3, 3)(x) / 6],
    "hardswish": [lambda x: mpf(1) if x >= 3 else mpf(0) if x <= -3 else (2 * x + 3) / 6],
    "softsign": [lambda x: 1 / (1 + abs(x)) ** 2],
    "sigmoid": [_sigmoid_slope],
    "softplus": [_sigmoid],
    "logsigmoid": [lambda x: _sigmoid(-x)],
    "silu": [lambda x: _sigmoid(x) + x * _sigmoid_slope(x)],
    "gelu": [lambda x: _normal(x) + x * _density(x)],
    "gelu_tanh": [_gelu_tanh_slope],
    "erf": [_erf_slope],
    "erfc": [lambda x: -_erf_slope(x)],
    "erfcx": [_erfcx_slope],
    "erfinv": [_erfinv_slope],
    "ndtr": [_density],
    "log_ndtr": [lambda x: mpmath.sqrt(2 / mpmath.pi) / _erfcx(-x / mpmath.sqrt(2))],
    "entr": [lambda x: -1 - _log(x)],
    "lgamma": [_polygamma(0)],
    "digamma": [_polygamma(1)],
    "trigamma": [_polygamma(2)],
    "i0": [lambda x: _bessel(1, x)],
    "i0e": [lambda x: mpf(0) if x == 0 else _scaled_bessel(0, x, 1)],
    "i1": [lambda x: mpf(1) / 2 if x == 0 else _bessel(0, x) - _bessel(1, x) / x],
    "i1e": [lambda x: _scaled_bessel(1, x, 1)],
    "add": [_one, _one],
    "sub": [_one, lambda a, b: mpf(-1)],
    "mul": [lambda a, b: b, lambda a, b: a],
    "div": [lambda a, b: _over(mpf(1), b), lambda a, b: -_over(a, b * b)],
    "pow": [_power_by_base, _power_by_exponent],
    "maximum": [_larger, lambda a, b: _larger(b, a)],
    "minimum": [lambda a, b: _larger(-a, -b), lambda a, b: _larger(-b, -a)],
    "fmax": [_larger, lambda a, b: _larger(b, a)],
    "fmin": [lambda a, b: _larger(-a, -b), lambda a, b: _larger(-b, -a)],
    "fmod": [_one, _quotient(lambda q: mpmath.floor(q) if q > 0 else mpmath.ceil(q))],
    "remainder": [_one, _quotient(mpmath.floor)],
    "floor_divide": [_nothing, _nothing],
    "atan2": [_angle, lambda a, b: -_angle(b, a)],
    "hypot": [_leg, lambda a, b: _leg(b, a)],
    "copysign": [lambda a, b: mpmath.sign(a) * (1 if b >= 0 else -1), _nothing],
    "nextafter": [lambda a, b: mpf(a != b), _nothing],
    "logaddexp": [lambda a, b: _sigmoid(a - b), lambda a, b: _sigmoid(b - a)],
    "logaddexp2": [
        lambda a, b: _sigmoid((a - b) * _ln2()),
        lambda a, b: _sigmoid((b - a) * _ln2()),
    ],
    "xlogy": [_times(_log), lambda a, b: mpf(0) if a == 0 else _over(a, b)],
    "xlog1py": [
        _times(lambda b: _log(1 + b)),
        lambda a, b: mpf(0) if a == 0 else _over(a, 1 + b),
    ],
    "scale": [lambda a, b: b, lambda a, b: a],
    "leaky": [lambda a, b: mpf(1) if a > 0 else b, lambda a, b: mpf(0) if a > 0 else a],
    "frac": [_one],
    "logit": [lambda x: _over(mpf(1), x * (1 - x)) if 0 <= x <= 1 else None],
    "deg2rad": [lambda x: mpmath.pi / 180],
    "rad2deg": [lambda x: 180 / mpmath.pi],
    "heaviside": [_nothing, lambda a, b: mpf(a == 0)],
}
