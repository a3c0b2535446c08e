"""The gamma distribution and distributions derived from it: inverse gamma, beta, F, Student's t."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from minigrad import functions as f
from minigrad import special
from minigrad.autograd import Function, once_differentiable
from minigrad.distributions import constraints
from minigrad.distributions.distribution import Distribution, floats
from minigrad.distributions.exp_family import ExponentialFamily
from minigrad.distributions.incomplete_gamma import incomplete_gamma, sample_partial
from minigrad.distributions.stable import (
    digamma_gap,
    gamma_entropy,
    log_beta,
    log_gamma_gap,
    log_poisson,
)
from minigrad.functions.creation import tensor
from minigrad.random import drawing, randn
from minigrad.runtime.lazy_numpy import np

__all__ = [
    "Beta",
    "Chi2",
    "Dirichlet",
    "FisherSnedecor",
    "Gamma",
    "InverseGamma",
    "StudentT",
    "standard_gamma",
]


class _StandardGamma(Function):
    """Function: samples of the gamma distribution with rate 1, differentiable by the shape."""

    @staticmethod
    def forward(ctx: Any, a: Any) -> Any:
        shape = a.detach().numpy().astype(np.float64)
        least = 2.0**-126 if a.dtype.itemsize == 4 else 2.0**-1022
        drawn = np.maximum(np.asarray(drawing().standard_gamma(shape)), least)
        ctx.dtype = a.dtype
        ctx.save_for_backward(tensor(shape), tensor(drawn))
        return tensor(drawn, a.dtype)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, g: Any) -> Any:
        a, x = (v.numpy() for v in ctx.saved_tensors)
        if not a.size:
            return g
        slope = sample_partial(np.atleast_1d(a), np.atleast_1d(x))
        return g * tensor(slope.reshape(a.shape), ctx.dtype)


def standard_gamma(a: Any) -> Any:
    """Samples of the gamma distribution with rate 1, one for each shape."""
    return _StandardGamma.apply(a)


class Gamma(ExponentialFamily):
    """The gamma distribution with a shape, ``concentration``, and a ``rate``.

    >>> import minigrad as mg
    >>> d = mg.distributions.Gamma(mg.tensor(3.0), 2.0)
    >>> d.mean, d.variance
    (tensor(1.5), tensor(0.75))
    """

    arg_constraints = {  # noqa: RUF012
        "concentration": constraints.positive,
        "rate": constraints.positive,
    }
    has_rsample = True

    def __init__(self, concentration: Any, rate: Any, validate_args: bool | None = None) -> None:
        self.concentration, self.rate = floats(concentration, rate)
        super().__init__(self.concentration.shape, validate_args=validate_args)

    @property
    def support(self) -> constraints.Constraint:
        """Non-negative numbers."""
        return constraints.nonnegative

    def rsample(self, sample_shape: Sequence[int] = ()) -> Any:
        """Samples, differentiable with respect to both parameters."""
        shape = self._extended_shape(sample_shape)
        return standard_gamma(self.concentration.expand(shape)) / self.rate

    def log_prob(self, value: Any) -> Any:
        """a log(r) + (a - 1) log(x) - r x - log(Gamma(a))."""
        x, a, r = self._validate_sample(value), self.concentration, self.rate
        return log_poisson(a - 1, r * x) + f.log(r)

    def cdf(self, value: Any) -> Any:
        """The regularised incomplete gamma function P(a, r x), with all gradients."""
        return incomplete_gamma(self.concentration, self.rate * self._validate_sample(value))

    def entropy(self) -> Any:
        """a - log(r) + log(Gamma(a)) + (1 - a) digamma(a)."""
        return gamma_entropy(self.concentration) - f.log(self.rate)

    @property
    def mean(self) -> Any:
        """a / r."""
        return self.concentration / self.rate

    @property
    def mode(self) -> Any:
        """(a - 1) / r, or 0."""
        return f.clamp((self.concentration - 1) / self.rate, min=0.0)

    @property
    def variance(self) -> Any:
        """a / r^2."""
        return self.concentration / self.rate**2

    @property
    def _natural_params(self) -> tuple[Any, ...]:
        return self.concentration - 1, -self.rate

    def _log_normalizer(self, *natural_params: Any) -> Any:
        a, r = natural_params[0] + 1, -natural_params[1]
        return f.lgamma(a) - a * f.log(r)

    @property
    def _mean_carrier_measure(self) -> Any:
        return 0.0


class InverseGamma(Distribution):
    """The distribution of 1 / x, x with a gamma distribution of ``concentration`` and ``rate``.

    >>> import minigrad as mg
    >>> d = mg.distributions.InverseGamma(mg.tensor(3.0), 2.0)
    >>> d.mean, d.mode
    (tensor(1.), tensor(0.5))
    """

    arg_constraints = {  # noqa: RUF012
        "concentration": constraints.positive,
        "rate": constraints.positive,
    }
    has_rsample = True

    def __init__(self, concentration: Any, rate: Any, validate_args: bool | None = None) -> None:
        self.concentration, self.rate = floats(concentration, rate)
        super().__init__(self.concentration.shape, validate_args=validate_args)

    @property
    def base_dist(self) -> Gamma:
        """The gamma distribution of the reciprocals."""
        return Gamma(self.concentration, self.rate, validate_args=False)

    @property
    def support(self) -> constraints.Constraint:
        """Positive numbers."""
        return constraints.positive

    def rsample(self, sample_shape: Sequence[int] = ()) -> Any:
        """Samples, differentiable with respect to both parameters."""
        return 1 / self.base_dist.rsample(sample_shape)

    def log_prob(self, value: Any) -> Any:
        """a log(r) - (a + 1) log(x) - r / x - log(Gamma(a))."""
        x, a, r = self._validate_sample(value), self.concentration, self.rate
        return log_poisson(a - 1, r / x) + f.log(r) - 2 * f.log(x)

    def cdf(self, value: Any) -> Any:
        """The upper incomplete gamma function Q(a, r / x), with all gradients."""
        x = self.rate / self._validate_sample(value)
        return incomplete_gamma(self.concentration, x, upper=True)

    def entropy(self) -> Any:
        """a + log(r) + log(Gamma(a)) - (1 + a) digamma(a)."""
        a = self.concentration
        return gamma_entropy(a) + f.log(self.rate) - 2 * f.digamma(a)

    @property
    def mean(self) -> Any:
        """r / (a - 1). It is infinite for a up to 1."""
        a = f.where(self.concentration > 1, self.concentration, 2.0)
        return f.where(self.concentration > 1, self.rate / (a - 1), math.inf)

    @property
    def mode(self) -> Any:
        """r / (a + 1)."""
        return self.rate / (self.concentration + 1)

    @property
    def variance(self) -> Any:
        """r^2 / ((a - 1)^2 (a - 2)). It is infinite for a up to 2."""
        a = f.where(self.concentration > 2, self.concentration, 3.0)
        found = (self.rate / (a - 1)) ** 2 / (a - 2)
        return f.where(self.concentration > 2, found, math.inf)


class Chi2(Gamma):
    """The chi-squared distribution with ``df`` degrees of freedom."""

    def __init__(self, df: Any, validate_args: bool | None = None) -> None:
        (df,) = floats(df)
        super().__init__(df / 2, 0.5, validate_args)

    @property
    def df(self) -> Any:
        """The degrees of freedom."""
        return self.concentration * 2


class Dirichlet(ExponentialFamily):
    """The Dirichlet distribution of vectors that add up to 1, with shapes ``concentration``."""

    arg_constraints = {  # noqa: RUF012
        "concentration": constraints.independent(constraints.positive, 1)
    }
    has_rsample = True

    def __init__(self, concentration: Any, validate_args: bool | None = None) -> None:
        (self.concentration,) = floats(concentration)
        if not self.concentration.ndim:
            raise ValueError("[Dirichlet] concentration needs a dimension, of the parts")
        shape = self.concentration.shape
        super().__init__(shape[:-1], shape[-1:], validate_args)

    @property
    def support(self) -> constraints.Constraint:
        """Vectors that add up to 1."""
        return constraints.simplex

    def rsample(self, sample_shape: Sequence[int] = ()) -> Any:
        """Samples, differentiable with respect to the concentration."""
        x = standard_gamma(self.concentration.expand(self._extended_shape(sample_shape)))
        return x / f.sum(x, -1, keepdim=True)

    def log_prob(self, value: Any) -> Any:
        """sum of (a - 1) log(x), + log(Gamma(sum of a)) - sum of log(Gamma(a))."""
        x, a = self._validate_sample(value), self.concentration
        return f.sum(f.xlogy(a - 1, x), -1) + f.lgamma(f.sum(a, -1)) - f.sum(f.lgamma(a), -1)

    def entropy(self) -> Any:
        """The entropy in nats."""
        a = self.concentration
        total, k = f.sum(a, -1), a.shape[-1]
        log = f.sum(f.lgamma(a), -1) - f.lgamma(total)
        return log - (k - total) * f.digamma(total) - f.sum((a - 1) * f.digamma(a), -1)

    @property
    def mean(self) -> Any:
        """a divided by its sum."""
        return self.concentration / f.sum(self.concentration, -1, keepdim=True)

    @property
    def mode(self) -> Any:
        """(a - 1) divided by its sum. If no a is above 1, it is 1 at the largest a."""
        a = f.clamp(self.concentration - 1, min=0.0)
        total = f.sum(a, -1, keepdim=True)
        largest = f.amax(self.concentration, -1, keepdim=True)
        alone = f.to(self.concentration == largest, a.dtype)
        return f.where(total > 0, a / f.where(total > 0, total, 1.0), alone)

    @property
    def variance(self) -> Any:
        """m (1 - m) / (sum of a + 1)."""
        m = self.mean
        return m * (1 - m) / (f.sum(self.concentration, -1, keepdim=True) + 1)

    @property
    def _natural_params(self) -> tuple[Any, ...]:
        return (self.concentration - 1,)

    def _log_normalizer(self, *natural_params: Any) -> Any:
        a = natural_params[0] + 1
        return f.sum(f.lgamma(a), -1) - f.lgamma(f.sum(a, -1))

    @property
    def _mean_carrier_measure(self) -> Any:
        return 0.0


class Beta(ExponentialFamily):
    """The beta distribution on [0, 1]: the first of two parts of a Dirichlet distribution."""

    arg_constraints = {  # noqa: RUF012
        "concentration1": constraints.positive,
        "concentration0": constraints.positive,
    }
    has_rsample = True

    def __init__(
        self, concentration1: Any, concentration0: Any, validate_args: bool | None = None
    ) -> None:
        self.concentration1, self.concentration0 = floats(concentration1, concentration0)
        super().__init__(self.concentration1.shape, validate_args=validate_args)

    @property
    def _both(self) -> Dirichlet:
        return Dirichlet(f.stack([self.concentration1, self.concentration0], -1), False)

    @property
    def support(self) -> constraints.Constraint:
        """Numbers from 0 to 1."""
        return constraints.unit_interval

    def rsample(self, sample_shape: Sequence[int] = ()) -> Any:
        """Samples, differentiable with respect to both parameters."""
        return self._both.rsample(sample_shape)[..., 0]

    def log_prob(self, value: Any) -> Any:
        """(a - 1) log(x) + (b - 1) log(1 - x) - log(B(a, b))."""
        x, a, b = self._validate_sample(value), self.concentration1, self.concentration0
        return f.xlogy(a - 1, x) + special.xlog1py(b - 1, -x) - log_beta(a, b)

    def entropy(self) -> Any:
        """The entropy in nats."""
        return self._both.entropy()

    @property
    def mean(self) -> Any:
        """a / (a + b)."""
        return self.concentration1 / (self.concentration1 + self.concentration0)

    @property
    def mode(self) -> Any:
        """(a - 1) / (a + b - 2)."""
        return self._both.mode[..., 0]

    @property
    def variance(self) -> Any:
        """a b / ((a + b)^2 (a + b + 1))."""
        total = self.concentration1 + self.concentration0
        return self.concentration1 * self.concentration0 / (total**2 * (total + 1))

    @property
    def _natural_params(self) -> tuple[Any, ...]:
        return self.concentration1 - 1, self.concentration0 - 1

    def _log_normalizer(self, *natural_params: Any) -> Any:
        return log_beta(natural_params[0] + 1, natural_params[1] + 1)

    @property
    def _mean_carrier_measure(self) -> Any:
        return 0.0


class FisherSnedecor(Distribution):
    """The F distribution with ``df1`` and ``df2`` degrees of freedom, of a ratio of mean squares.

    >>> import minigrad as mg
    >>> d = mg.distributions.FisherSnedecor(mg.tensor(4.0), 6.0)
    >>> d.mean, d.mode
    (tensor(1.5), tensor(0.375))
    """

    arg_constraints = {"df1": constraints.positive, "df2": constraints.positive}  # noqa: RUF012
    has_rsample = True

    def __init__(self, df1: Any, df2: Any, validate_args: bool | None = None) -> None:
        self.df1, self.df2 = floats(df1, df2)
        super().__init__(self.df1.shape, validate_args=validate_args)

    @property
    def support(self) -> constraints.Constraint:
        """Positive numbers."""
        return constraints.positive

    def rsample(self, sample_shape: Sequence[int] = ()) -> Any:
        """Samples, differentiable with respect to both parameters."""
        shape = self._extended_shape(sample_shape)
        above = standard_gamma((self.df1 / 2).expand(shape)) / self.df1
        return above * self.df2 / standard_gamma((self.df2 / 2).expand(shape))

    def log_prob(self, value: Any) -> Any:
        """a log(r) + (a - 1) log(x) - (a + b) log(1 + r x) - log(B(a, b)).

        a and b are half the degrees of freedom, and r is a / b.
        """
        x, a, b = self._validate_sample(value), self.df1 / 2, self.df2 / 2
        r = a / b
        return a * f.log(r) + (a - 1) * f.log(x) - (a + b) * f.log1p(r * x) - log_beta(a, b)

    @property
    def mean(self) -> Any:
        """df2 / (df2 - 2). It is NaN for df2 up to 2."""
        n = f.where(self.df2 > 2, self.df2, 3.0)
        return f.where(self.df2 > 2, n / (n - 2), math.nan)

    @property
    def mode(self) -> Any:
        """(df1 - 2) / df1 * df2 / (df2 + 2). It is NaN for df1 up to 2."""
        found = (self.df1 - 2) / self.df1 * self.df2 / (self.df2 + 2)
        return f.where(self.df1 > 2, found, math.nan)

    @property
    def variance(self) -> Any:
        """2 df2^2 (df1 + df2 - 2) / (df1 (df2 - 2)^2 (df2 - 4)). It is NaN for df2 up to 4."""
        n = f.where(self.df2 > 4, self.df2, 5.0)
        found = 2 * n**2 * (self.df1 + n - 2) / (self.df1 * (n - 2) ** 2 * (n - 4))
        return f.where(self.df2 > 4, found, math.nan)


class StudentT(Distribution):
    """Student's t distribution with ``df`` degrees of freedom, a location and a scale."""

    arg_constraints = {  # noqa: RUF012
        "df": constraints.positive,
        "loc": constraints.real,
        "scale": constraints.positive,
    }
    has_rsample = True

    def __init__(
        self, df: Any, loc: Any = 0.0, scale: Any = 1.0, validate_args: bool | None = None
    ) -> None:
        self.df, self.loc, self.scale = floats(df, loc, scale)
        super().__init__(self.df.shape, validate_args=validate_args)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Any:
        """Samples, differentiable with respect to all parameters."""
        shape = self._extended_shape(sample_shape)
        z = 2 * standard_gamma((self.df / 2).expand(shape))
        return self.loc + self.scale * randn(shape, dtype=self.df.dtype) * f.rsqrt(z / self.df)

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the density."""
        z, n = (self._validate_sample(value) - self.loc) / self.scale, self.df
        log = f.log(self.scale) + 0.5 * f.log(n) + 0.5 * math.log(math.pi)
        log = log - log_gamma_gap(n / 2, 0.5)
        return -0.5 * (n + 1) * f.log1p(z**2 / n) - log

    def entropy(self) -> Any:
        """The entropy in nats."""
        n = self.df
        log = math.lgamma(0.5) - log_gamma_gap(n / 2, 0.5)
        change = digamma_gap(n / 2, 0.5)
        return f.log(self.scale) + (n + 1) / 2 * change + 0.5 * f.log(n) + log

    @property
    def mean(self) -> Any:
        """The location. It is NaN for df up to 1."""
        return f.where(self.df > 1, self.loc, math.nan)

    @property
    def mode(self) -> Any:
        """The location."""
        return self.loc

    @property
    def variance(self) -> Any:
        """scale^2 df / (df - 2). It is infinite for df up to 2, NaN up to 1."""
        n = f.where(self.df > 2, self.df, 3.0)
        found = f.where(self.df > 2, self.scale**2 * n / (n - 2), math.inf)
        return f.where(self.df > 1, found, math.nan)
