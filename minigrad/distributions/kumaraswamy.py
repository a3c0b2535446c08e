"""The Kumaraswamy distribution, of numbers from 0 to 1."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from minigrad import functions as f
from minigrad.distributions import constraints
from minigrad.distributions.continuous import EULER, uniform
from minigrad.distributions.distribution import Distribution, floats
from minigrad.distributions.stable import log1m_exp, log_beta

__all__ = ["Kumaraswamy"]


class Kumaraswamy(Distribution):
    """Numbers x from 0 to 1 with P(X <= x) = 1 - (1 - x^a)^b (Kumaraswamy 1980).

    a is ``concentration1`` and b is ``concentration0``.

    >>> import minigrad as mg
    >>> d = mg.distributions.Kumaraswamy(1.0, 2.0)
    >>> d.cdf(mg.tensor(0.5)), round(d.mean.item(), 4)
    (tensor(0.75), 0.3333)
    """

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
    def support(self) -> constraints.Constraint:
        """Numbers from 0 to 1."""
        return constraints.unit_interval

    def _quantile(self, log_above: Any) -> Any:
        """The value for the probability above it, given as a logarithm."""
        return f.exp(log1m_exp(log_above / self.concentration0) / self.concentration1)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Any:
        """Samples, differentiable with respect to both parameters."""
        u = uniform(self._extended_shape(sample_shape), self.concentration1.dtype)
        return self._quantile(f.log(u))

    def _log_power_above(self, x: Any) -> Any:
        """log(1 - x^a)."""
        return log1m_exp(self.concentration1 * f.log(x))

    def log_prob(self, value: Any) -> Any:
        """log(a b) + (a - 1) log(x) + (b - 1) log(1 - x^a)."""
        x, a, b = self._validate_sample(value), self.concentration1, self.concentration0
        log = _times(b - 1, self._log_power_above(x))
        return f.log(a) + f.log(b) + f.xlogy(a - 1, x) + log

    def cdf(self, value: Any) -> Any:
        """1 - (1 - x^a)^b."""
        x = self._validate_sample(value)
        return -f.expm1(self.concentration0 * self._log_power_above(x))

    def icdf(self, value: Any) -> Any:
        """The quantile."""
        return self._quantile(f.log1p(-value))

    def entropy(self) -> Any:
        """(1 - 1 / b) + (1 - 1 / a) H_b - log(a b), with the harmonic number H_b."""
        a, b = self.concentration1, self.concentration0
        harmonic = f.digamma(b + 1) + EULER
        return (1 - 1 / b) + (1 - 1 / a) * harmonic - f.log(a) - f.log(b)

    def _moment(self, n: int) -> Any:
        """The mean of x^n: b B(1 + n / a, b)."""
        a, b = self.concentration1, self.concentration0
        return f.exp(f.log(b) + log_beta(1 + n / a, b))

    @property
    def mean(self) -> Any:
        """b B(1 + 1 / a, b)."""
        return self._moment(1)

    @property
    def mode(self) -> Any:
        """((a - 1) / (a b - 1))^(1 / a). It is NaN for a or b below 1, and where both are 1."""
        a, b = self.concentration1, self.concentration0
        inside = (a >= 1) & (b >= 1) & (a * b > 1)
        a, b = f.where(inside, a, 2.0), f.where(inside, b, 2.0)
        return f.where(inside, ((a - 1) / (a * b - 1)) ** (1 / a), math.nan)

    @property
    def variance(self) -> Any:
        """b B(1 + 2 / a, b) less the mean squared."""
        return self._moment(2) - self.mean**2


def _times(x: Any, y: Any) -> Any:
    """x y, and 0 where x is 0, whatever y."""
    return f.where(x == 0, 0.0, x * y)
