"""Continuous distributions of one number whose samples are functions of uniform or normal noise."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from minigrad import functions as f
from minigrad import special
from minigrad.distributions import constraints
from minigrad.distributions.distribution import Distribution, floats
from minigrad.distributions.exp_family import ExponentialFamily
from minigrad.distributions.stable import log_gamma_curvature
from minigrad.random import rand, randn

__all__ = [
    "EULER",
    "Cauchy",
    "Exponential",
    "Gumbel",
    "HalfCauchy",
    "HalfNormal",
    "Laplace",
    "LogNormal",
    "Normal",
    "Pareto",
    "Uniform",
    "Weibull",
    "uniform",
]

_HALF_LOG_2PI = 0.5 * math.log(2 * math.pi)
EULER = 0.5772156649015329


def uniform(shape: Any, dtype: Any) -> Any:
    """Uniform numbers in (0, 1)."""
    tiny = 2.0**-126 if dtype.itemsize == 4 else 2.0**-1022
    return f.clamp(rand(shape, dtype=dtype), min=tiny)


class _LocationScale(Distribution):
    """Base of distributions of ``loc + scale * noise``."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}  # noqa: RUF012
    has_rsample = True

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale = floats(loc, scale)
        super().__init__(self.loc.shape, validate_args=validate_args)

    def _noise(self, shape: Any) -> Any:
        raise NotImplementedError

    def rsample(self, sample_shape: Sequence[int] = ()) -> Any:
        """Samples, differentiable with respect to the location and the scale."""
        return self.loc + self.scale * self._noise(self._extended_shape(sample_shape))

    def _standard(self, value: Any) -> Any:
        return (self._validate_sample(value) - self.loc) / self.scale

    @property
    def mean(self) -> Any:
        """The location."""
        return self.loc

    @property
    def mode(self) -> Any:
        """The location."""
        return self.loc


class Normal(_LocationScale, ExponentialFamily):
    """The normal distribution with mean ``loc`` and standard deviation ``scale``.

    >>> import minigrad as mg
    >>> d = mg.distributions.Normal(mg.tensor([0.0, 1.0]), 2.0)
    >>> d.batch_shape, d.rsample((3,)).shape, d.variance
    ((2,), (3, 2), tensor([4., 4.]))
    """

    def _noise(self, shape: Any) -> Any:
        return randn(shape, dtype=self.loc.dtype)

    def log_prob(self, value: Any) -> Any:
        """-(x - loc)^2 / (2 scale^2) - log(scale) - log(2 pi) / 2."""
        return -0.5 * self._standard(value) ** 2 - f.log(self.scale) - _HALF_LOG_2PI

    def cdf(self, value: Any) -> Any:
        """The probability of numbers up to ``value``."""
        return special.ndtr(self._standard(value))

    def icdf(self, value: Any) -> Any:
        """The quantile."""
        return self.loc + self.scale * f.erfinv(2 * value - 1) * math.sqrt(2)

    def entropy(self) -> Any:
        """log(scale) + (1 + log(2 pi)) / 2."""
        return f.log(self.scale) + (0.5 + _HALF_LOG_2PI)

    @property
    def stddev(self) -> Any:
        """The scale."""
        return self.scale

    @property
    def variance(self) -> Any:
        """The scale squared."""
        return self.scale**2

    @property
    def _natural_params(self) -> tuple[Any, ...]:
        return self.loc / self.scale**2, -0.5 / self.scale**2

    def _log_normalizer(self, *natural_params: Any) -> Any:
        x, y = natural_params
        return -0.25 * x**2 / y + 0.5 * f.log(-math.pi / y)

    @property
    def _mean_carrier_measure(self) -> Any:
        return 0.0


class Laplace(_LocationScale):
    """The Laplace distribution: exp(-|x - loc| / scale) / (2 scale)."""

    def _noise(self, shape: Any) -> Any:
        u = rand(shape, dtype=self.loc.dtype) - 0.5
        least = 2.0**-24 if u.dtype.itemsize == 4 else 2.0**-53
        return -f.sign(u) * f.log1p(f.clamp(-2 * f.abs(u), min=-1 + least))

    def log_prob(self, value: Any) -> Any:
        """-|x - loc| / scale - log(2 scale)."""
        return -f.abs(self._standard(value)) - f.log(2 * self.scale)

    def cdf(self, value: Any) -> Any:
        """The probability of numbers up to ``value``."""
        z = self._standard(value)
        tail = 0.5 * f.exp(-f.abs(z))
        return f.where(z < 0, tail, 1 - tail)

    def icdf(self, value: Any) -> Any:
        """The quantile."""
        p = f.broadcast_tensors(value, self.loc)[0]
        low = p < 0.5
        return self.loc + self.scale * f.where(low, f.log(2 * p), -f.log(2 * (1 - p)))

    def entropy(self) -> Any:
        """1 + log(2 scale)."""
        return 1 + f.log(2 * self.scale)

    @property
    def variance(self) -> Any:
        """2 scale^2."""
        return 2 * self.scale**2


class Cauchy(_LocationScale):
    """The Cauchy distribution. Its mean does not exist (NaN), and its variance is infinite."""

    def _noise(self, shape: Any) -> Any:
        return f.tan(math.pi * (uniform(shape, self.loc.dtype) - 0.5))

    def log_prob(self, value: Any) -> Any:
        """-log(pi scale (1 + ((x - loc) / scale)^2))."""
        return -math.log(math.pi) - f.log(self.scale) - f.log1p(self._standard(value) ** 2)

    def cdf(self, value: Any) -> Any:
        """The probability of numbers up to ``value``."""
        z = self._standard(value)
        return f.atan2(f.to(z == z, z.dtype), -z) / math.pi

    def icdf(self, value: Any) -> Any:
        """The quantile."""
        low = value < 0.25  # where value - 1/2 has lost digits
        tail = -1 / f.tan(math.pi * f.where(low, value, 0.25))
        return self.loc + self.scale * f.where(low, tail, f.tan(math.pi * (value - 0.5)))

    def entropy(self) -> Any:
        """log(4 pi scale)."""
        return math.log(4 * math.pi) + f.log(self.scale)

    @property
    def mean(self) -> Any:
        """NaN."""
        return self.loc * math.nan

    @property
    def variance(self) -> Any:
        """Infinity."""
        return self.loc * 0 + math.inf


class Gumbel(_LocationScale):
    """The Gumbel distribution of largest values."""

    def _noise(self, shape: Any) -> Any:
        return -f.log(-f.log(uniform(shape, self.loc.dtype)))

    def log_prob(self, value: Any) -> Any:
        """-(z + exp(-z)) - log(scale), with z = (x - loc) / scale."""
        z = self._standard(value)
        return -z - f.exp(-z) - f.log(self.scale)

    def cdf(self, value: Any) -> Any:
        """exp(-exp(-z))."""
        return f.exp(-f.exp(-self._standard(value)))

    def icdf(self, value: Any) -> Any:
        """The quantile."""
        return self.loc - self.scale * f.log(-f.log(value))

    def entropy(self) -> Any:
        """log(scale) + 1 + Euler's constant."""
        return f.log(self.scale) + (1 + EULER)

    @property
    def mean(self) -> Any:
        """loc + Euler's constant * scale."""
        return self.loc + EULER * self.scale

    @property
    def variance(self) -> Any:
        """pi^2 / 6 scale^2."""
        return (math.pi**2 / 6) * self.scale**2


class Uniform(Distribution):
    """The uniform distribution on [low, high). The log-density outside is -infinity.

    Raises ValueError if low is not below high.
    """

    arg_constraints = {"low": constraints.real, "high": constraints.real}  # noqa: RUF012
    has_rsample = True

    def __init__(self, low: Any, high: Any, validate_args: bool | None = None) -> None:
        self.low, self.high = floats(low, high)
        super().__init__(self.low.shape, validate_args=validate_args)
        if self._validate_args and not bool((self.low < self.high).all()):
            raise ValueError("[Uniform] low must be below high")

    @property
    def support(self) -> constraints.Constraint:
        """Numbers from low to high."""
        return constraints.interval(self.low.detach(), self.high.detach())

    def rsample(self, sample_shape: Sequence[int] = ()) -> Any:
        """Samples, differentiable with respect to the bounds."""
        u = rand(self._extended_shape(sample_shape), dtype=self.low.dtype)
        return self.low + u * (self.high - self.low)

    def log_prob(self, value: Any) -> Any:
        """-log(high - low) inside, -infinity outside."""
        x = self._validate_sample(value)
        inside = (x >= self.low) & (x < self.high)
        return f.where(inside, -f.log(self.high - self.low), -math.inf)

    def cdf(self, value: Any) -> Any:
        """(x - low) / (high - low), from 0 to 1."""
        return f.clamp((self._validate_sample(value) - self.low) / (self.high - self.low), 0.0, 1.0)

    def icdf(self, value: Any) -> Any:
        """The quantile."""
        return self.low + value * (self.high - self.low)

    def entropy(self) -> Any:
        """log(high - low)."""
        return f.log(self.high - self.low)

    @property
    def mean(self) -> Any:
        """The middle."""
        return (self.low + self.high) / 2

    @property
    def mode(self) -> Any:
        """NaN: all values are equally likely."""
        return self.high * math.nan

    @property
    def variance(self) -> Any:
        """(high - low)^2 / 12."""
        return (self.high - self.low) ** 2 / 12


class Exponential(ExponentialFamily):
    """The exponential distribution of waiting times with a ``rate``."""

    arg_constraints = {"rate": constraints.positive}  # noqa: RUF012
    has_rsample = True

    def __init__(self, rate: Any, validate_args: bool | None = None) -> None:
        (self.rate,) = floats(rate)
        super().__init__(self.rate.shape, validate_args=validate_args)

    @property
    def support(self) -> constraints.Constraint:
        """Non-negative numbers."""
        return constraints.nonnegative

    def rsample(self, sample_shape: Sequence[int] = ()) -> Any:
        """Samples, differentiable with respect to the rate."""
        return -f.log(uniform(self._extended_shape(sample_shape), self.rate.dtype)) / self.rate

    def log_prob(self, value: Any) -> Any:
        """log(rate) - rate x."""
        return f.log(self.rate) - self.rate * self._validate_sample(value)

    def cdf(self, value: Any) -> Any:
        """1 - exp(-rate x)."""
        return -f.expm1(-self.rate * self._validate_sample(value))

    def icdf(self, value: Any) -> Any:
        """The quantile."""
        return -f.log1p(-value) / self.rate

    def entropy(self) -> Any:
        """1 - log(rate)."""
        return 1 - f.log(self.rate)

    @property
    def mean(self) -> Any:
        """1 / rate."""
        return 1 / self.rate

    @property
    def mode(self) -> Any:
        """0."""
        return self.rate * 0

    @property
    def variance(self) -> Any:
        """1 / rate^2."""
        return self.rate**-2

    @property
    def _natural_params(self) -> tuple[Any, ...]:
        return (-self.rate,)

    def _log_normalizer(self, *natural_params: Any) -> Any:
        return -f.log(-natural_params[0])

    @property
    def _mean_carrier_measure(self) -> Any:
        return 0.0


class LogNormal(Distribution):
    """The distribution of exp(x) for normal x with ``loc`` and ``scale``."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}  # noqa: RUF012
    has_rsample = True

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale = floats(loc, scale)
        super().__init__(self.loc.shape, validate_args=validate_args)

    @property
    def base_dist(self) -> Normal:
        """The normal distribution of the logarithms."""
        return Normal(self.loc, self.scale, validate_args=False)

    @property
    def support(self) -> constraints.Constraint:
        """Positive numbers."""
        return constraints.positive

    def rsample(self, sample_shape: Sequence[int] = ()) -> Any:
        """Samples, differentiable with respect to the parameters."""
        return f.exp(self.base_dist.rsample(sample_shape))

    def log_prob(self, value: Any) -> Any:
        """The normal log-density at log(x), less log(x)."""
        log = f.log(self._validate_sample(value))
        return self.base_dist.log_prob(log) - log

    def cdf(self, value: Any) -> Any:
        """The normal distribution function at log(x)."""
        return self.base_dist.cdf(f.log(self._validate_sample(value)))

    def icdf(self, value: Any) -> Any:
        """The quantile."""
        return f.exp(self.base_dist.icdf(value))

    def entropy(self) -> Any:
        """The entropy of the normal distribution plus loc."""
        return self.base_dist.entropy() + self.loc

    @property
    def mean(self) -> Any:
        """exp(loc + scale^2 / 2)."""
        return f.exp(self.loc + self.scale**2 / 2)

    @property
    def mode(self) -> Any:
        """exp(loc - scale^2)."""
        return f.exp(self.loc - self.scale**2)

    @property
    def variance(self) -> Any:
        """(exp(scale^2) - 1) exp(2 loc + scale^2)."""
        return f.expm1(self.scale**2) * f.exp(2 * self.loc + self.scale**2)


class _Half(Distribution):
    """Base of distributions of absolute values of a distribution around 0."""

    arg_constraints = {"scale": constraints.positive}  # noqa: RUF012
    has_rsample = True
    _whole: Any = Normal

    def __init__(self, scale: Any, validate_args: bool | None = None) -> None:
        (self.scale,) = floats(scale)
        super().__init__(self.scale.shape, validate_args=validate_args)

    @property
    def base_dist(self) -> Any:
        """The distribution before absolute values are taken."""
        return self._whole(self.scale * 0, self.scale, validate_args=False)

    @property
    def support(self) -> constraints.Constraint:
        """Non-negative numbers."""
        return constraints.nonnegative

    def rsample(self, sample_shape: Sequence[int] = ()) -> Any:
        """Samples, differentiable with respect to the scale."""
        return f.abs(self.base_dist.rsample(sample_shape))

    def log_prob(self, value: Any) -> Any:
        """The logarithm of twice the base's density, and -infinity below 0."""
        x = self._validate_sample(value)
        return f.where(x >= 0, self.base_dist.log_prob(x) + math.log(2), -math.inf)

    def entropy(self) -> Any:
        """The base's entropy less log(2)."""
        return self.base_dist.entropy() - math.log(2)

    @property
    def mode(self) -> Any:
        """0."""
        return self.scale * 0


class HalfNormal(_Half):
    """The distribution of absolute values of a normal distribution around 0."""

    def cdf(self, value: Any) -> Any:
        """erf(x / (sqrt(2) scale))."""
        return f.erf(self._validate_sample(value) / (math.sqrt(2) * self.scale))

    def icdf(self, value: Any) -> Any:
        """The quantile."""
        return math.sqrt(2) * self.scale * f.erfinv(value)

    @property
    def mean(self) -> Any:
        """scale sqrt(2 / pi)."""
        return self.scale * math.sqrt(2 / math.pi)

    @property
    def variance(self) -> Any:
        """scale^2 (1 - 2 / pi)."""
        return self.scale**2 * (1 - 2 / math.pi)


class HalfCauchy(_Half):
    """The distribution of absolute values of a Cauchy distribution around 0."""

    _whole = Cauchy

    def cdf(self, value: Any) -> Any:
        """2 atan(x / scale) / pi."""
        return f.atan(self._validate_sample(value) / self.scale) * (2 / math.pi)

    def icdf(self, value: Any) -> Any:
        """The quantile."""
        return self.scale * f.tan(value * (math.pi / 2))

    @property
    def mean(self) -> Any:
        """Infinity."""
        return self.scale * 0 + math.inf

    @property
    def variance(self) -> Any:
        """Infinity."""
        return self.scale * 0 + math.inf


class Pareto(Distribution):
    """The Pareto distribution: numbers above ``scale``, with tails of the power ``alpha``."""

    arg_constraints = {  # noqa: RUF012
        "scale": constraints.positive,
        "alpha": constraints.positive,
    }
    has_rsample = True

    def __init__(self, scale: Any, alpha: Any, validate_args: bool | None = None) -> None:
        self.scale, self.alpha = floats(scale, alpha)
        super().__init__(self.scale.shape, validate_args=validate_args)

    @property
    def support(self) -> constraints.Constraint:
        """Numbers from scale on."""
        return constraints.greater_than_eq(self.scale.detach())

    def rsample(self, sample_shape: Sequence[int] = ()) -> Any:
        """Samples, differentiable with respect to the parameters."""
        u = uniform(self._extended_shape(sample_shape), self.scale.dtype)
        return self.scale * f.exp(-f.log(u) / self.alpha)

    def log_prob(self, value: Any) -> Any:
        """log(alpha) + alpha log(scale) - (alpha + 1) log(x)."""
        x = self._validate_sample(value)
        return f.log(self.alpha) + self.alpha * f.log(self.scale) - (self.alpha + 1) * f.log(x)

    def cdf(self, value: Any) -> Any:
        """1 - (scale / x)^alpha."""
        return -f.expm1(self.alpha * f.log(self.scale / self._validate_sample(value)))

    def icdf(self, value: Any) -> Any:
        """The quantile."""
        return self.scale * f.exp(-f.log1p(-value) / self.alpha)

    def entropy(self) -> Any:
        """log(scale / alpha) + 1 + 1 / alpha."""
        return f.log(self.scale / self.alpha) + 1 + 1 / self.alpha

    @property
    def mean(self) -> Any:
        """alpha scale / (alpha - 1). It is infinite for alpha up to 1."""
        a = self.alpha
        return f.where(a > 1, a * self.scale / f.where(a > 1, a - 1, 1.0), math.inf)

    @property
    def mode(self) -> Any:
        """The scale."""
        return self.scale

    @property
    def variance(self) -> Any:
        """Infinite for alpha up to 2."""
        a = f.where(self.alpha > 2, self.alpha, 3.0)
        found = self.scale**2 * a / ((a - 1) ** 2 * (a - 2))
        return f.where(self.alpha > 2, found, math.inf)


class Weibull(Distribution):
    """The Weibull distribution with a ``scale`` and a shape, ``concentration``."""

    arg_constraints = {  # noqa: RUF012
        "scale": constraints.positive,
        "concentration": constraints.positive,
    }
    has_rsample = True

    def __init__(self, scale: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self.scale, self.concentration = floats(scale, concentration)
        super().__init__(self.scale.shape, validate_args=validate_args)

    @property
    def support(self) -> constraints.Constraint:
        """Positive numbers."""
        return constraints.positive

    def rsample(self, sample_shape: Sequence[int] = ()) -> Any:
        """Samples, differentiable with respect to the parameters."""
        waits = -f.log(uniform(self._extended_shape(sample_shape), self.scale.dtype))
        return self.scale * waits ** (1 / self.concentration)

    def log_prob(self, value: Any) -> Any:
        """log(k / s) + (k - 1) log(x / s) - (x / s)^k."""
        z = self._validate_sample(value) / self.scale
        k = self.concentration
        return f.log(k / self.scale) + (k - 1) * f.log(z) - z**k

    def cdf(self, value: Any) -> Any:
        """1 - exp(-(x / s)^k)."""
        return -f.expm1(-((self._validate_sample(value) / self.scale) ** self.concentration))

    def icdf(self, value: Any) -> Any:
        """The quantile."""
        return self.scale * (-f.log1p(-value)) ** (1 / self.concentration)

    def entropy(self) -> Any:
        """Euler's constant (1 - 1 / k) + log(s / k) + 1."""
        k = self.concentration
        return EULER * (1 - 1 / k) + f.log(self.scale / k) + 1

    @property
    def mean(self) -> Any:
        """s gamma(1 + 1 / k)."""
        return self.scale * f.exp(f.lgamma(1 + 1 / self.concentration))

    @property
    def mode(self) -> Any:
        """s ((k - 1) / k)^(1 / k), or 0."""
        k = self.concentration
        return self.scale * f.clamp((k - 1) / k, min=0.0) ** (1 / k)

    @property
    def variance(self) -> Any:
        """s^2 (gamma(1 + 2 / k) - gamma(1 + 1 / k)^2)."""
        t = 1 / self.concentration
        return (self.scale * f.exp(f.lgamma(1 + t))) ** 2 * f.expm1(log_gamma_curvature(t))
