"""The gamma distribution and what is made of it: beta, Dirichlet, chi-squared, Student's t."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from minigrad import functions as f
from minigrad._numpy import np
from minigrad.autograd import Function, once_differentiable
from minigrad.creation import tensor
from minigrad.distributions import constraints
from minigrad.distributions.distribution import Distribution, floats
from minigrad.random import drawing, randn

__all__ = ["Beta", "Chi2", "Dirichlet", "Gamma", "StudentT"]


def _slope(a: Any, x: Any) -> Any:
    """dx / da of samples x of the gamma distribution of shape a, their probability held fixed.

    By implicit differentiation (Figurnov et al. 2018) it is -(dP / da) / (dP / dx). With the series
    P = x^a e^-x / Gamma(a) * S, S = sum of x^n / (a (a + 1) ... (a + n)), this is
    -x (S (log(x) - digamma(a)) + dS / da).
    """
    term = 1.0 / a
    inverse = 1.0 / a  # the sum of 1 / (a + k)
    s, ds = term.copy(), -term * inverse
    for n in range(1, 200_000):
        inverse = inverse + 1.0 / (a + n)
        term = term * (x / (a + n))
        s += term
        ds -= term * inverse
        if n % 16 == 0 and bool((term * inverse <= 1e-17 * np.abs(ds)).all()):
            break
    return -x * (s * (np.log(x) - f.digamma(tensor(a)).numpy()) + ds)


class _StandardGamma(Function):
    """Samples of the gamma distribution of rate 1, with a gradient by the shape."""

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
        return g * tensor(_slope(np.atleast_1d(a), np.atleast_1d(x)).reshape(a.shape), ctx.dtype)


def standard_gamma(a: Any) -> Any:
    """Samples of rate 1, one for each shape."""
    return _StandardGamma.apply(a)


class Gamma(Distribution):
    """The gamma distribution of a shape, ``concentration``, and a ``rate``.

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
        """From 0 on."""
        return constraints.nonnegative

    def rsample(self, sample_shape: Sequence[int] = ()) -> Any:
        """Values with gradients by both parameters."""
        return standard_gamma(self.concentration.expand(self._extended(sample_shape))) / self.rate

    def log_prob(self, value: Any) -> Any:
        """a log(r) + (a - 1) log(x) - r x - log(Gamma(a))."""
        x, a, r = self._check_sample(value), self.concentration, self.rate
        return f.xlogy(a, r) + f.xlogy(a - 1, x) - r * x - f.lgamma(a)

    def entropy(self) -> Any:
        """a - log(r) + log(Gamma(a)) + (1 - a) digamma(a)."""
        a = self.concentration
        return a - f.log(self.rate) + f.lgamma(a) + (1 - a) * f.digamma(a)

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


class Chi2(Gamma):
    """The chi-squared distribution of ``df`` degrees of freedom."""

    def __init__(self, df: Any, validate_args: bool | None = None) -> None:
        (df,) = floats(df)
        super().__init__(df / 2, 0.5, validate_args)

    @property
    def df(self) -> Any:
        """The degrees of freedom."""
        return self.concentration * 2


class Dirichlet(Distribution):
    """Vectors of numbers that add up to 1, of shapes ``concentration`` along the last dimension."""

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
        """Values with a gradient by the concentration."""
        x = standard_gamma(self.concentration.expand(self._extended(sample_shape)))
        return x / f.sum(x, -1, keepdim=True)

    def log_prob(self, value: Any) -> Any:
        """sum of (a - 1) log(x), + log(Gamma(sum of a)) - sum of log(Gamma(a))."""
        x, a = self._check_sample(value), self.concentration
        return f.sum(f.xlogy(a - 1, x), -1) + f.lgamma(f.sum(a, -1)) - f.sum(f.lgamma(a), -1)

    def entropy(self) -> Any:
        """The entropy in nats."""
        a = self.concentration
        total, k = f.sum(a, -1), a.shape[-1]
        log = f.sum(f.lgamma(a), -1) - f.lgamma(total)
        return log - (k - total) * f.digamma(total) - f.sum((a - 1) * f.digamma(a), -1)

    @property
    def mean(self) -> Any:
        """a over its sum."""
        return self.concentration / f.sum(self.concentration, -1, keepdim=True)

    @property
    def mode(self) -> Any:
        """(a - 1) over its sum; where no a is above 1, the largest one alone."""
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


class Beta(Distribution):
    """Numbers from 0 to 1: the first part of a Dirichlet distribution of two."""

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
        """From 0 to 1."""
        return constraints.unit_interval

    def rsample(self, sample_shape: Sequence[int] = ()) -> Any:
        """Values with gradients by both parameters."""
        return self._both.rsample(sample_shape)[..., 0]

    def log_prob(self, value: Any) -> Any:
        """(a - 1) log(x) + (b - 1) log(1 - x) - log(B(a, b))."""
        x, a, b = self._check_sample(value), self.concentration1, self.concentration0
        log = f.lgamma(a) + f.lgamma(b) - f.lgamma(a + b)
        return f.xlogy(a - 1, x) + _xlog1py(b - 1, -x) - log

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


def _xlog1py(x: Any, y: Any) -> Any:
    from minigrad import special

    return special.xlog1py(x, y)


class StudentT(Distribution):
    """Student's t distribution of ``df`` degrees of freedom, moved and stretched."""

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
        """Values with gradients by all parameters."""
        shape = self._extended(sample_shape)
        z = 2 * standard_gamma((self.df / 2).expand(shape))
        return self.loc + self.scale * randn(shape, dtype=self.df.dtype) * f.rsqrt(z / self.df)

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the density."""
        z, n = (self._check_sample(value) - self.loc) / self.scale, self.df
        log = f.log(self.scale) + 0.5 * f.log(n) + 0.5 * math.log(math.pi)
        log = log + f.lgamma(n / 2) - f.lgamma((n + 1) / 2)
        return -0.5 * (n + 1) * f.log1p(z**2 / n) - log

    def entropy(self) -> Any:
        """The entropy in nats."""
        n = self.df
        log = f.lgamma(n / 2) + math.lgamma(0.5) - f.lgamma((n + 1) / 2)
        change = f.digamma((n + 1) / 2) - f.digamma(n / 2)
        return f.log(self.scale) + (n + 1) / 2 * change + 0.5 * f.log(n) + log

    @property
    def mean(self) -> Any:
        """The location; NaN for df up to 1."""
        return f.where(self.df > 1, self.loc, math.nan)

    @property
    def mode(self) -> Any:
        """The location."""
        return self.loc

    @property
    def variance(self) -> Any:
        """scale^2 df / (df - 2); infinite for df up to 2, NaN up to 1."""
        n = f.where(self.df > 2, self.df, 3.0)
        found = f.where(self.df > 2, self.scale**2 * n / (n - 2), math.inf)
        return f.where(self.df > 1, found, math.nan)
