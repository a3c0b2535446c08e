"""The incomplete gamma function, and the derivative of gamma samples by their shape."""

from __future__ import annotations

from typing import Any

from minigrad import functions as f
from minigrad.autograd import Function, once_differentiable
from minigrad.functions.creation import tensor
from minigrad.runtime.lazy_numpy import np

__all__ = ["incomplete_gamma", "sample_partial"]


def _slope_by_series(a: Any, x: Any) -> Any:
    """dx / da of samples x of the gamma distribution with shape a, at fixed probability.

    By implicit differentiation (Figurnov et al. 2018) it is -(dP / da) / (dP / dx). Insert the
    series P = x^a e^-x / Gamma(a) * S, S = sum of x^n / (a (a + 1) ... (a + n)). The result is -x
    (S (log(x) - digamma(a)) + dS / da).
    """
    term = 1.0 / a
    inverse = 1.0 / a  # the sum of 1 / (a + k)
    s, ds = term.copy(), -term * inverse
    for n in range(1, 200_000):
        inverse = inverse + 1.0 / (a + n)
        term = term * (x / (a + n))
        s += term
        ds -= term * inverse
        if n % 16 == 0 and not bool((term * inverse > 1e-17 * np.abs(ds)).any()):
            break
    return -x * (s * (np.log(x) - f.digamma(tensor(a)).numpy()) + ds)


_LARGE = 1e7  # larger shapes use expansions, whose next term is below 1e-10


def sample_partial(a: Any, x: Any) -> Any:
    """dx / da of samples x of the gamma distribution with shape a, at fixed probability.

    For large a it is 1 + z / (2 a^(1/2)). This follows from the expansion of Cornish and Fisher
    1938: x is a + z a^(1/2) + (z^2 - 1) / 3 and smaller terms. z is the normal quantile of the same
    probability.
    """
    large = a > _LARGE
    series = _slope_by_series(np.where(large, 1.0, a), np.where(large, 1.0, x))
    size = np.where(large, a, 1.0)
    away = np.where(large, x - a, 0.0)
    away = away - (away**2 / size - 1) / 3
    return np.where(large, 1 + away / (2 * size), series)


def _less_log(d: Any) -> Any:
    """d - log(1 + d)."""
    small = np.abs(d) < 0.3
    s = np.where(small, d / (2 + d), 0.0)
    odd = sum(s ** (2 * n) / (2 * n + 3) for n in range(14))
    return np.where(small, s * d - 2 * s**3 * odd, d - np.log1p(d))


_TEMME = (  # c_0(e) and c_1(e) of Temme 1979
    (-1 / 3, 1 / 12, -2 / 135, 1 / 864, 1 / 2835, -139 / 777600, 1 / 25515),
    (-1 / 540, -1 / 288, 1 / 378),
)


def _uniform(a: Any, x: Any, upper: bool) -> Any:
    """P(a, x) or Q(a, x) for a large a, by the error function (Temme 1979)."""
    d = (x - a) / a
    e = np.sign(d) * np.sqrt(2 * _less_log(d))
    z = e * np.sqrt(a / 2)
    tail = f.erfc(tensor(z if upper else -z)).numpy() / 2
    near = np.clip(e, -0.1, 0.1)  # beyond, the exponential is 0
    c0, c1 = (np.polyval(c[::-1], near) for c in _TEMME)
    rest = np.exp(-(z**2)) / np.sqrt(2 * np.pi * a) * (c0 + c1 / a)
    return tail + rest if upper else tail - rest


def _log_density(a: Any, x: Any) -> Any:
    """log(x^a e^-x / Gamma(a)). For a large a the large terms cancel analytically.

    With x = a (1 + d) it is -a (d - log(1 + d)) + log(a / 2 pi) / 2, less the remainder of
    Stirling's formula (as in Temme 1994).
    """
    large = a > 30
    z = np.where(large, a, 30.0)
    d = (x - z) / z
    rest = (1 / 12 - (1 / 360 - (1 / 1260 - 1 / (1680 * z**2)) / z**2) / z**2) / z
    stirling = -z * _less_log(d) + 0.5 * np.log(z / (2 * np.pi)) - rest
    z = np.where(large, 1.0, a)
    plain = z * np.log(x) - x - f.lgamma(tensor(z)).numpy()
    return np.where(large, stirling, plain)


def _lower_series(a: Any, x: Any) -> Any:
    """The sum of x^n / (a (a + 1) ... (a + n)). P is x^a e^-x / Gamma(a) times this sum."""
    term = 1.0 / a
    total = term.copy()
    for n in range(1, 200_000):
        term = term * (x / (a + n))
        total += term
        if n % 16 == 0 and not bool((term > 1e-17 * total).any()):
            break
    return total


def _upper_fraction(a: Any, x: Any) -> Any:
    """A continued fraction by Lentz's method. Q is x^a e^-x / Gamma(a) times this fraction."""
    b = x + 1 - a
    c, d = np.full_like(x, 1e300), 1 / b
    total = d.copy()
    for n in range(1, 200_000):
        step = n * (a - n)
        b = b + 2
        d = 1 / (step * d + b)
        c = b + step / c
        total *= c * d
        if n % 16 == 0 and not bool((np.abs(c * d - 1) > 5e-16).any()):
            break
    return total


def _regularised(a: Any, x: Any, upper: bool) -> Any:
    """P(a, x), or Q(a, x) = 1 - P(a, x), each accurate where it is small."""
    with np.errstate(all="ignore"):
        inside = (x > 0) & (x < np.inf)
        density = np.exp(_log_density(a, np.where(inside, x, 1.0)))
        large = inside & (a > _LARGE)
        uniform = _uniform(np.where(large, a, 1e9), np.where(large, x, 1e9), upper)
        a, given, x = np.where(large, 1.0, a), a, np.where(large, 1.0, x)
        by_series = inside & (x < a + 1)
        low = density * _lower_series(a, np.where(by_series, x, 0.0))
        high = density * _upper_fraction(a, np.where(by_series | ~inside, a + 1, x))
        found = np.where(by_series, 1 - low, high) if upper else np.where(by_series, low, 1 - high)
        found = np.where(large, uniform, found)
        edge = np.where(x > 0, float(not upper), float(upper))
        return np.where(inside, found, np.where(np.isnan(x) | np.isnan(given), np.nan, edge))


class _IncompleteGamma(Function):
    """Function: P(a, x) or Q(a, x), differentiable by both."""

    @staticmethod
    def forward(ctx: Any, a: Any, x: Any, upper: bool) -> Any:
        shape, value = (np.asarray(v.detach().numpy(), np.float64) for v in (a, x))
        ctx.dtype, ctx.upper = x.dtype, upper
        ctx.save_for_backward(tensor(shape), tensor(value))
        return tensor(np.asarray(_regularised(shape, value, upper)), x.dtype)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, g: Any) -> Any:
        a, x = (np.atleast_1d(v.numpy()) for v in ctx.saved_tensors)
        with np.errstate(all="ignore"):
            inside = (x > 0) & (x < np.inf)
            x = np.where(inside, x, 1.0)
            log = _log_density(a, x)
            density = np.where(inside, np.exp(log) / x, 0.0)
            seen = log > -650  # beyond, the derivative underflows before the series overflows
            slope = sample_partial(np.where(seen, a, 1.0), np.where(seen, x, 1.0))
            by_shape = np.where(seen, -density * slope, 0.0)
        sign = -1.0 if ctx.upper else 1.0
        found = (tensor((sign * v).reshape(g.shape), ctx.dtype) for v in (by_shape, density))
        by_a, by_x = found
        return g * by_a, g * by_x, None


def incomplete_gamma(a: Any, x: Any, upper: bool = False) -> Any:
    """The regularised incomplete gamma function P(a, x), or Q(a, x) if ``upper``.

    Both have gradients, and are accurate where they are small. A series is used below a + 1 and a
    continued fraction above (Press et al. 2007, section 6.2).
    """
    a, x = f.broadcast_tensors(a, x)
    return _IncompleteGamma.apply(a, x, upper)
