"""The continuous Bernoulli distribution, of numbers from 0 to 1."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from minigrad import functions as f
from minigrad.distributions import constraints
from minigrad.distributions.discrete import OfTrials
from minigrad.distributions.exp_family import ExponentialFamily
from minigrad.distributions.stable import (
    expm1_ratio,
    langevin,
    langevin_derivative,
    log1p_ratio,
    log_sinh_ratio,
)
from minigrad.random import rand

__all__ = ["ContinuousBernoulli"]


class ContinuousBernoulli(OfTrials, ExponentialFamily):
    """Numbers x from 0 to 1 with the density C p^x (1 - p)^(1 - x) (Loaiza-Ganem 2019).

    Give ``probs`` or ``logits``. All results are functions of the logit t that are smooth at 0: C =
    t / (2 sinh(t / 2)) / sqrt(p (1 - p)). ``lims`` is the interval around 1/2 where PyTorch takes a
    Taylor series. It changes nothing here.

    >>> import minigrad as mg
    >>> d = mg.distributions.ContinuousBernoulli(probs=0.5)
    >>> d.mean, d.log_prob(mg.tensor(0.3)).abs() < 1e-6
    (tensor(0.5), tensor(True))
    """

    has_rsample = True

    def __init__(
        self,
        probs: Any = None,
        logits: Any = None,
        lims: tuple[float, float] = (0.499, 0.501),
        validate_args: bool | None = None,
    ) -> None:
        given = self._take(probs, logits)
        super().__init__(given.shape, validate_args=validate_args)

    @property
    def support(self) -> constraints.Constraint:
        """Numbers from 0 to 1."""
        return constraints.unit_interval

    def rsample(self, sample_shape: Sequence[int] = ()) -> Any:
        """Samples, differentiable with respect to the parameter."""
        shape = self._extended_shape(sample_shape)
        return self.icdf(rand(shape, dtype=self.logits.dtype))

    def log_prob(self, value: Any) -> Any:
        """t (x - 1 / 2) - log(sinh(t / 2) / (t / 2))."""
        x, t = self._validate_sample(value), self.logits
        return t * (x - 0.5) - log_sinh_ratio(t / 2)

    def cdf(self, value: Any) -> Any:
        """(exp(t x) - 1) / (exp(t) - 1)."""
        x, t = self._validate_sample(value), self.logits
        low = f.where(t > 0, -t, t)
        found = x * expm1_ratio(low * x) / expm1_ratio(low)
        mirrored = x * f.exp(low * (1 - x)) * expm1_ratio(low * x) / expm1_ratio(low)
        return f.clamp(f.where(t > 0, mirrored, found), 0.0, 1.0)

    def icdf(self, value: Any) -> Any:
        """The quantile log(1 + u (exp(t) - 1)) / t."""
        t = self.logits
        high = t > 80.0  # where exp(t) may overflow
        z = f.where(high, 0.0, t)
        first = value * expm1_ratio(z)
        near = first * log1p_ratio(z * first)
        z = f.where(high, t, 100.0)
        far = 1 + f.log(value + (1 - value) * f.exp(-z)) / z
        return f.where(high, far, near)

    def entropy(self) -> Any:
        """log(sinh(t / 2) / (t / 2)) - t / 2 L(t / 2), with Langevin's function L."""
        h = self.logits / 2
        return log_sinh_ratio(h) - h * langevin(h)

    @property
    def mean(self) -> Any:
        """(1 + L(t / 2)) / 2, with Langevin's function L."""
        return 0.5 + 0.5 * langevin(self.logits / 2)

    @property
    def variance(self) -> Any:
        """L'(t / 2) / 4."""
        return langevin_derivative(self.logits / 2) / 4

    @property
    def _natural_params(self) -> tuple[Any, ...]:
        return (self.logits,)

    def _log_normalizer(self, *natural_params: Any) -> Any:
        (t,) = natural_params
        return t / 2 + log_sinh_ratio(t / 2)

    @property
    def _mean_carrier_measure(self) -> Any:
        return 0.0
