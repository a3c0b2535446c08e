"""The generalized Pareto distribution of values above a threshold."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from minigrad import functions as f
from minigrad.distributions import constraints
from minigrad.distributions.continuous import uniform
from minigrad.distributions.distribution import Distribution, floats
from minigrad.distributions.stable import expm1_ratio, log1p_ratio

__all__ = ["GeneralizedPareto"]


class GeneralizedPareto(Distribution):
    """Values from ``loc`` on with P(X > x) = (1 + k z)^(-1 / k), z = (x - loc) / scale.

    k is ``concentration``. k = 0 is the exponential distribution. For a negative k values end at
    loc - scale / k. Values and gradients are smooth in k at 0.

    >>> import minigrad as mg
    >>> d = mg.distributions.GeneralizedPareto(0.0, 1.0, 0.0)
    >>> d.log_prob(mg.tensor(2.0)), d.entropy()
    (tensor(-2.), tensor(1.))
    """

    arg_constraints = {  # noqa: RUF012
        "loc": constraints.real,
        "scale": constraints.positive,
        "concentration": constraints.real,
    }
    has_rsample = True

    def __init__(
        self, loc: Any, scale: Any, concentration: Any, validate_args: bool | None = None
    ) -> None:
        self.loc, self.scale, self.concentration = floats(loc, scale, concentration)
        super().__init__(self.loc.shape, validate_args=validate_args)

    @property
    def support(self) -> constraints.Constraint:
        """Numbers from loc on, up to loc - scale / k where k is negative."""
        low, k = self.loc.detach(), self.concentration.detach()
        end = low - self.scale.detach() / f.where(k < 0, k, -1.0)
        return constraints.interval(low, f.where(k < 0, end, math.inf))

    def _hazard(self, x: Any) -> Any:
        """The cumulative hazard log(1 + k z) / k: minus the log of the probability above x."""
        z = (x - self.loc) / self.scale
        return z * log1p_ratio(self.concentration * z)

    def _at(self, hazard: Any) -> Any:
        """The value with a given cumulative hazard."""
        return self.loc + self.scale * hazard * expm1_ratio(self.concentration * hazard)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Any:
        """Samples, differentiable with respect to all parameters."""
        return self._at(-f.log(uniform(self._extended_shape(sample_shape), self.loc.dtype)))

    def log_prob(self, value: Any) -> Any:
        """-(1 + k) log(1 + k z) / k - log(scale)."""
        hazard = self._hazard(self._validate_sample(value))
        return -(1 + self.concentration) * hazard - f.log(self.scale)

    def cdf(self, value: Any) -> Any:
        """1 - (1 + k z)^(-1 / k)."""
        return -f.expm1(-self._hazard(self._validate_sample(value)))

    def icdf(self, value: Any) -> Any:
        """The quantile."""
        return self._at(-f.log1p(-value))

    def entropy(self) -> Any:
        """log(scale) + k + 1."""
        return f.log(self.scale) + self.concentration + 1

    @property
    def mean(self) -> Any:
        """loc + scale / (1 - k). It is infinite for k from 1 on."""
        k = f.where(self.concentration < 1, self.concentration, 0.0)
        return f.where(self.concentration < 1, self.loc + self.scale / (1 - k), math.inf)

    @property
    def mode(self) -> Any:
        """The location."""
        return self.loc

    @property
    def variance(self) -> Any:
        """scale^2 / ((1 - k)^2 (1 - 2 k)). It is infinite for k from 1 / 2 on."""
        k = f.where(self.concentration < 0.5, self.concentration, 0.0)
        found = self.scale**2 / ((1 - k) ** 2 * (1 - 2 * k))
        return f.where(self.concentration < 0.5, found, math.inf)
