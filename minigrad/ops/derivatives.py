"""Derivatives of every order of erfcx and the modified Bessel functions.

Differentiating the usual first derivative by the chain rule subtracts nearly equal numbers. For
erfcx and the scaled Bessel functions this happens far from 0, and for i1 near 0. The series and
continued fractions of this module do not cancel.
"""

from __future__ import annotations

from math import comb, inf, pi, sqrt
from typing import Any

from minigrad.ops.composed import with_partials
from minigrad.ops.table import TABLE
from minigrad.runtime.native import lib

T = Any  # a Tensor, whose class this layer may not import

__all__ = ["erfcx_derivative", "i0e_partial", "i1_partial", "i1e_partial", "log_ndtr_partial"]


def _is_double(x: T) -> bool:
    return bool(x._h.dtype == lib.MG_FLOAT64)


# ---- the error function --------------------------------------------------------------------------

_FRACTION_FROM = 2.5  # from here on _FRACTION_TERMS suffice in float32 and float64
_FRACTION_TERMS = (12, 40)


def erfcx_derivative(x: T, n: int = 1) -> T:
    """The n-th derivative of exp(x^2) erfc(x)."""
    value = _erfcx_value(x.detach(), n)
    return with_partials(value, (x,), lambda x: erfcx_derivative(x, n + 1))


def _erfcx_value(x: T, n: int) -> T:
    """D_n by the recurrence D_k = 2 x D_(k-1) + 2 (k - 1) D_(k-2), or by a continued fraction.

    D_n is (-1)^n 2^n n! exp(x^2) times the n-th repeated integral of erfc (NIST Digital Library of
    Mathematical Functions, 7.18.9 to 7.18.13).
    """
    far = x > _FRACTION_FROM
    near = x.masked_fill(far, 0.0)
    before = near.apply_row(TABLE["erfcx"])
    value = 2.0 * near * before - 2.0 / sqrt(pi)
    for k in range(2, n + 1):
        before, value = value, 2.0 * (near * value + float(k - 1) * before)
    if not far.any():
        return value
    x = x.masked_fill(far.logical_not(), 3.0)
    beyond = x.apply_row(TABLE["erfcx"])
    for k in range(1, n + 1):
        beyond = beyond * (float(-k) / _integral_ratio(x, k))
    return beyond.where(far, value)


def _integral_ratio(x: T, n: int) -> T:
    """The (n - 1)-th repeated integral of erfc divided by twice the n-th.

    This is the continued fraction x + (n + 1) / 2 / (x + (n + 2) / 2 / (x + ...)).
    """
    fraction = x
    for j in range(n + _FRACTION_TERMS[_is_double(x)], n, -1):
        fraction = x + (0.5 * j) / fraction
    return fraction


def _erfcx_ratio(x: T) -> T:
    """The ratio r of the derivative of exp(x^2) erfc(x) to the function; r' = 2 x r + 2 - r^2."""

    def value(x: T) -> T:
        far = x > _FRACTION_FROM
        near = x.masked_fill(far, 0.0)
        ratio = 2.0 * near - (2.0 / sqrt(pi)) / near.apply_row(TABLE["erfcx"])
        return (-1.0 / _integral_ratio(x.where(far, 3.0), 1)).where(far, ratio)

    def partial(x: T) -> T:
        r = _erfcx_ratio(x)
        return 2.0 * (x * r + 1.0) - r.square()

    return with_partials(value(x.detach()), (x,), partial)


def log_ndtr_partial(x: T) -> T:
    """sqrt(2 / pi) / erfcx(-x / sqrt(2)). Its derivative is itself times -erfcx' / erfcx."""
    scale = -sqrt(0.5)
    value = sqrt(2.0 / pi) / (scale * x.detach()).apply_row(TABLE["erfcx"])
    return with_partials(
        value, (x,), lambda x: log_ndtr_partial(x).scale(-scale * _erfcx_ratio(scale * x))
    )


# ---- Bessel functions ----------------------------------------------------------------------------

_SERIES_BELOW, _SERIES_TERMS = 12.0, 40


def _bessel(n: int, x: T) -> T:
    """I_n(x)."""
    if n < 2:
        return x.apply_row(TABLE["i1" if n else "i0"])
    return with_partials(
        _bessel_value(n, x.detach()),
        (x,),
        lambda x: 0.5 * _bessel(n - 1, x) + 0.5 * _bessel(n + 1, x),
    )


def _bessel_value(n: int, x: T) -> T:
    size = x.abs()
    half = (0.5 * size).exp()
    value = (_scaled(n, size) * half) * half
    return (value * x.sign() if n % 2 else value).where(size != inf, x**n)


def _scaled(n: int, size: T) -> T:
    """exp(-x) I_n(x) for x >= 0: the power series, and for larger x the recurrence from I_0."""
    if n < 2:
        return size.apply_row(TABLE["i1e" if n else "i0e"])
    near = size < _SERIES_BELOW
    x = size.where(near, 1.0)
    square, series = (0.5 * x).square(), 1.0
    for k in range(_SERIES_TERMS, 0, -1):
        series = 1.0 + series * (square / float(k * (k + n)))
    power = (-x).exp()
    for k in range(1, n + 1):
        power = power * (x * (0.5 / k))
    x = size.masked_fill(near, _SERIES_BELOW)
    before, value = _scaled(0, x), _scaled(1, x)
    for k in range(1, n):
        before, value = value, before - (2.0 * k / x) * value
    return (power * series).where(near, value)


def i1_partial(x: T, y: T) -> T:
    """I_0(x) - I_1(x) / x, where y is I_1(x)."""
    x_, y_ = x.detach(), y.detach()
    i0 = x_.i0()
    value = (i0 - _over_x(y_, x_)).where(i0 != inf, inf)
    return with_partials(value, (x,), lambda x: 0.75 * _bessel(1, x) + 0.25 * _bessel(3, x))


def _over_x(y: T, x: T) -> T:
    """y / x for y = I_1(x) or y = exp(-|x|) I_1(x), and the limit 1/2 near 0."""
    tiny = x.abs() < 2.0**-60
    return (y / x.masked_fill(tiny, 1.0)).masked_fill(tiny, 0.5)


def i0e_partial(x: T, y: T) -> T:
    """The derivative of y = exp(-|x|) I_0(x). It is 0 at 0, since y is even."""
    x_ = x.detach()
    near = x_.apply_row(TABLE["i1e"]) - x_.sign() * y.detach()
    return _scaled_partial(0, x, near)


def i1e_partial(x: T, y: T) -> T:
    """The derivative of y = exp(-|x|) I_1(x)."""
    x_, y_ = x.detach(), y.detach()
    near = x_.apply_row(TABLE["i0e"]) - x_.sign() * y_ - _over_x(y_, x_)
    return _scaled_partial(1, x, near)


def _scaled_partial(n: int, x: T, near: T) -> T:
    value = _far_or(n, 1, x.detach(), near)
    return with_partials(value, (x,), lambda x: _scaled_derivative(n, 2, x))


def _scaled_derivative(n: int, m: int, x: T) -> T:
    """The m-th derivative of exp(-|x|) I_n(x), by Leibniz's rule and 2 I_n' = I_(n-1) + I_(n+1)."""
    x_ = x.detach()
    size, sign = x_.abs(), x_.sign()
    near, above = 0.0, sign.square()  # the derivative of |x| at 0 counts as 0
    for j in range(m + 1):
        part = sum(comb(j, i) * _scaled(abs(n - j + 2 * i), size) for i in range(j + 1))
        part = part * (0.5**j * comb(m, j) * (-1.0) ** (m - j))
        near = near + (part if j == m else part * above)
    if (n + m) % 2:
        near = near * sign
    value = _far_or(n, m, x_, near)
    return with_partials(value, (x,), lambda x: _scaled_derivative(n, m + 1, x))


# start and number of terms of the asymptotic series, in float32 and float64
_FAR = ((12.0, 14), (24.0, 30))


def _far_or(n: int, m: int, x: T, near: T) -> T:
    """``near``, replaced for large x by the asymptotic series differentiated term by term.

    M. Abramowitz and I. A. Stegun, "Handbook of Mathematical Functions", 1964, 9.7.1.
    """
    start, terms = _FAR[_is_double(x)]
    size = x.abs()
    far = size >= start
    if not far.any():
        return near
    size = size.where(far, start)
    weights, a = [], 1.0
    for k in range(terms):
        rising = 1.0
        for i in range(m):
            rising *= 0.5 + k + i
        weights.append(a * rising)
        a *= -(4.0 * n * n - (2.0 * k + 1.0) ** 2) / (8.0 * (k + 1))
    series, part = weights[-1], 1.0 / size
    for w in weights[-2::-1]:
        series = w + part * series
    value = series * ((-1.0) ** m / sqrt(2.0 * pi)) * size ** (-0.5 - m)
    return (value * x.sign() if (n + m) % 2 else value).where(far, near)
