"""Numerically stable helper functions for densities, without cancellation in their whole range.

Near a removable singularity, values and derivatives come from a series, so gradients are as
accurate as values. All functions are elementwise and made of tensor operations.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

from minigrad import functions as f

__all__ = [
    "digamma_gap",
    "expm1_ratio",
    "gamma_entropy",
    "langevin",
    "langevin_derivative",
    "log1m_exp",
    "log1p_ratio",
    "log_beta",
    "log_gamma_curvature",
    "log_gamma_gap",
    "log_poisson",
    "log_sinh_ratio",
    "polynomial",
    "split",
]


def polynomial(coefficients: Sequence[float], t: Any) -> Any:
    """The sum of c_n t^n, by Horner's rule."""
    total: Any = coefficients[-1]
    for c in reversed(coefficients[:-1]):
        total = total * t + c
    return total


def split(t: Any, bound: float, near: Callable[[Any], Any], far: Callable[[Any], Any]) -> Any:
    """``near(t)`` where abs(t) < ``bound``, else ``far(t)``. Each gets only values of its range."""
    inside = f.abs(t) < bound
    return f.where(inside, near(f.where(inside, t, 0.0)), far(f.where(inside, bound, t)))


# ---- 0 / 0 at 0 ----------------------------------------------------------------------------------

_EXPM1 = [1 / math.factorial(n + 1) for n in range(15)]
_ATANH = [1 / (2 * n + 1) for n in range(17)]


def expm1_ratio(t: Any) -> Any:
    """(exp(t) - 1) / t, which is 1 at 0."""
    return split(t, 0.5, lambda t: polynomial(_EXPM1, t), lambda t: f.expm1(t) / t)


def log1p_ratio(t: Any) -> Any:
    """log(1 + t) / t, which is 1 at 0."""

    def near(t: Any) -> Any:  # log(1 + t) = 2 atanh(t / (2 + t))
        return 2 / (2 + t) * polynomial(_ATANH, (t / (2 + t)) ** 2)

    return split(t, 0.5, near, lambda t: f.log1p(t) / t)


def log1m_exp(t: Any) -> Any:
    """log(1 - exp(t)) for t from minus infinity to 0 (Maechler 2012)."""
    low = t < -math.log(2)
    far = f.log1p(-f.exp(f.where(low, t, -1.0)))
    return f.where(low, far, f.log(-f.expm1(f.where(low, -0.5, t))))


def _coth_coefficients(count: int) -> list[float]:
    """c_n of x coth(x) = sum of c_n x^(2 n): cosh(x) over sinh(x) / x, exactly."""
    found: list[Fraction] = []
    for n in range(count):
        c = Fraction(1, math.factorial(2 * n))
        for k, earlier in enumerate(found):
            c -= earlier / math.factorial(2 * (n - k) + 1)
        found.append(c)
    return [float(c) for c in found]


_COTH = _coth_coefficients(20)[1:]
_COTH_SLOPE = [(2 * n + 1) * c for n, c in enumerate(_COTH)]
_LOG_SINH = [c / (2 * n + 2) for n, c in enumerate(_COTH)]


def log_sinh_ratio(x: Any) -> Any:
    """log(sinh(x) / x), which is 0 at 0."""

    def far(x: Any) -> Any:
        size = f.abs(x)
        return size - f.log(2 * size) + f.log1p(-f.exp(-2 * size))

    return split(x, 1.0, lambda x: x**2 * polynomial(_LOG_SINH, x**2), far)


def langevin(x: Any) -> Any:
    """Langevin's function coth(x) - 1 / x, the derivative of log(sinh(x) / x)."""
    return split(x, 1.0, lambda x: x * polynomial(_COTH, x**2), lambda x: 1 / f.tanh(x) - 1 / x)


def langevin_derivative(x: Any) -> Any:
    """1 / x^2 - 1 / sinh(x)^2, the derivative of Langevin's function."""

    def far(x: Any) -> Any:
        e = f.exp(-2 * f.abs(x))
        return x**-2 - 4 * e / (1 - e) ** 2

    return split(x, 1.0, lambda x: polynomial(_COTH_SLOPE, x**2), far)


def _log1p_less(t: Any) -> Any:
    """log(1 + t) - t."""

    def near(t: Any) -> Any:  # with s = t / (2 + t) it is 2 atanh(s) - t
        s = t / (2 + t)
        return s * (2 * s**2 * polynomial(_ATANH[1:], s**2) - t)

    return split(t, 0.5, near, lambda t: f.log1p(t) - t)


# ---- differences of log(Gamma) -------------------------------------------------------------------

# Coefficients of Stirling's series: B_2n / (2 n (2 n - 1)) for n = 1, 2, ...
_STIRLING = [
    1 / 12,
    -1 / 360,
    1 / 1260,
    -1 / 1680,
    1 / 1188,
    -691 / 360360,
    1 / 156,
    -3617 / 122400,
]
_LARGE = 10.0


def _stirling_rest(x: Any) -> Any:
    """The remainder of Stirling's formula for log(Gamma(x)), for x >= 10."""
    return polynomial(_STIRLING, x**-2) / x


def log_gamma_gap(x: Any, a: Any) -> Any:
    """log(Gamma(x + a)) - log(Gamma(x)) for a >= 0. x may be large.

    For x >= 10 the leading terms of Stirling's formula cancel analytically, as in the function
    algdiv of DiDonato and Morris 1992 (algorithm 708).
    """
    large = x >= _LARGE
    z = f.where(large, x, _LARGE)
    stirling = (z - 0.5) * f.log1p(a / z) + a * (f.log(z + a) - 1)
    stirling = stirling + (_stirling_rest(z + a) - _stirling_rest(z))
    z = f.where(large, 1.0, x)
    return f.where(large, stirling, f.lgamma(z + a) - f.lgamma(z))


def log_beta(a: Any, b: Any) -> Any:
    """log(B(a, b)). One or both may be large."""
    less, more = f.minimum(a, b), f.maximum(a, b)
    return f.lgamma(less) - log_gamma_gap(more, less)


def digamma_gap(x: Any, a: Any) -> Any:
    """digamma(x + a) - digamma(x) for a >= 0. x may be large."""
    large = x >= _LARGE
    z = f.where(large, x, _LARGE)
    series = f.log1p(a / z) + a / (2 * z * (z + a)) + (_digamma_rest(z) - _digamma_rest(z + a))
    z = f.where(large, 1.0, x)
    return f.where(large, series, f.digamma(z + a) - f.digamma(z))


def _digamma_rest(x: Any) -> Any:
    """log(x) - 1 / (2 x) - digamma(x), for x >= 10."""
    slopes = [(2 * n + 1) * c for n, c in enumerate(_STIRLING)]
    return polynomial(slopes, x**-2) * x**-2


def log_poisson(x: Any, rate: Any) -> Any:
    """x log(rate) - rate - log(Gamma(x + 1)). Both may be large.

    For x >= 30 it is -x (u - log(1 + u)) - log(2 pi x) / 2 with u = rate / x - 1, less the
    remainder of Stirling's formula (Loader 2000).
    """
    large = x.detach() >= 30
    if not bool(large.any()):
        return f.xlogy(x, rate) - rate - f.lgamma(x + 1)
    z = f.where(large, x, 30.0)
    found = z * _log1p_less((rate - z) / z) - 0.5 * f.log(2 * math.pi * z) - _stirling_rest(z)
    z = f.where(large, 0.0, x)
    return f.where(large, found, f.xlogy(z, rate) - rate - f.lgamma(z + 1))


def gamma_entropy(a: Any) -> Any:
    """a + log(Gamma(a)) + (1 - a) digamma(a), the entropy of a gamma distribution of rate 1."""
    large = a >= _LARGE
    z = f.where(large, a, _LARGE)
    rest = _stirling_rest(z) + (z - 1) * (0.5 / z + _digamma_rest(z))
    found = 0.5 * f.log(2 * math.pi * z) + rest
    z = f.where(large, 1.0, a)
    return f.where(large, found, z + f.lgamma(z) + (1 - z) * f.digamma(z))


def _zeta(n: int) -> float:
    """Riemann's zeta function of an integer n >= 2, by the Euler-Maclaurin formula."""
    m = 100.0
    rest = m ** (1 - n) / (n - 1) + m**-n / 2 + n * m ** (-n - 1) / 12
    rest -= n * (n + 1) * (n + 2) * m ** (-n - 3) / 720
    return math.fsum(float(k) ** -n for k in range(1, 100)) + rest


_CURVATURE = [(-1) ** n * _zeta(n) * (2**n - 2) / n for n in range(2, 27)]


def log_gamma_curvature(t: Any) -> Any:
    """log(Gamma(1 + 2 t)) - 2 log(Gamma(1 + t)), which is near pi^2 / 6 t^2 at 0."""
    return split(
        t,
        0.1,
        lambda t: t**2 * polynomial(_CURVATURE, t),
        lambda t: f.lgamma(1 + 2 * t) - 2 * f.lgamma(1 + t),
    )
