"""Relaxed Bernoulli distributions: trials as numbers from 0 to 1, with gradients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from minigrad import functions as f
from minigrad.distributions import constraints
from minigrad.distributions.composed import TransformedDistribution
from minigrad.distributions.continuous import uniform
from minigrad.distributions.discrete import OfTrials
from minigrad.distributions.distribution import floats
from minigrad.distributions.transforms import SigmoidTransform
from minigrad.nn.functional import logsigmoid

__all__ = ["LogitRelaxedBernoulli", "RelaxedBernoulli"]


class LogitRelaxedBernoulli(OfTrials):
    """The logits of :class:`RelaxedBernoulli`: a logistic distribution (Maddison et al. 2017)."""

    has_rsample = True

    def __init__(
        self,
        temperature: Any,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        given = self._take(probs, logits)
        (self.temperature,) = floats(temperature)
        super().__init__(given.shape, validate_args=validate_args)

    @property
    def support(self) -> constraints.Constraint:
        """All numbers."""
        return constraints.real

    def rsample(self, sample_shape: Sequence[int] = ()) -> Any:
        """Samples, differentiable with respect to the parameter and the temperature."""
        u = uniform(self._extended_shape(sample_shape), self.logits.dtype)
        return (f.log(u) - f.log1p(-u) + self.logits) / self.temperature

    def log_prob(self, value: Any) -> Any:
        """log(T) + t - T x - 2 log(1 + exp(t - T x)) of the logit t and the temperature T."""
        away = self.logits - self._validate_sample(value) * self.temperature
        return f.log(self.temperature) + logsigmoid(away) + logsigmoid(-away)


class RelaxedBernoulli(TransformedDistribution):
    """Numbers from 0 to 1, which are near 0 or 1 if the ``temperature`` is low.

    This is the Gumbel-softmax or Concrete distribution of two categories (Jang et al. 2017,
    Maddison et al. 2017). Give ``probs`` or ``logits``.

    >>> import minigrad as mg
    >>> d = mg.distributions.RelaxedBernoulli(mg.tensor(0.5), logits=mg.zeros(3))
    >>> d.rsample((2,)).shape
    (2, 3)
    """

    def __init__(
        self,
        temperature: Any,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        base = LogitRelaxedBernoulli(temperature, probs, logits, validate_args)
        # The cache keeps the last logits, so the density of a sample that was rounded to 1 is
        # right.
        super().__init__(base, SigmoidTransform(cache_size=1), validate_args)

    @property
    def temperature(self) -> Any:
        """The temperature."""
        return self.base_dist.temperature

    @property
    def logits(self) -> Any:
        """log(p / (1 - p))."""
        return self.base_dist.logits

    @property
    def probs(self) -> Any:
        """The probability of success."""
        return self.base_dist.probs
