"""Relaxed categorical distributions: categories as vectors that add up to 1, with gradients."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from minigrad import functions as f
from minigrad.distributions import constraints
from minigrad.distributions.composed import TransformedDistribution
from minigrad.distributions.continuous import uniform
from minigrad.distributions.discrete import Categorical
from minigrad.distributions.distribution import Distribution, floats
from minigrad.distributions.transforms import ExpTransform

__all__ = ["ExpRelaxedCategorical", "RelaxedOneHotCategorical"]


class ExpRelaxedCategorical(Distribution):
    """The logarithms of :class:`RelaxedOneHotCategorical` (Maddison et al. 2017)."""

    arg_constraints = {"logits": constraints.real_vector}  # noqa: RUF012
    has_rsample = True

    def __init__(
        self,
        temperature: Any,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        one = Categorical(probs, logits, validate_args)
        self.logits = one.logits
        (self.temperature,) = floats(temperature)
        super().__init__(one.batch_shape, one.logits.shape[-1:], validate_args)

    @property
    def probs(self) -> Any:
        """The probabilities of the categories."""
        return f.softmax(self.logits, -1)

    @property
    def param_shape(self) -> Any:
        """The shape of the parameters."""
        return self.logits.shape

    @property
    def support(self) -> constraints.Constraint:
        """Vectors whose exponentials add up to 1."""
        return constraints.real_vector

    def rsample(self, sample_shape: Sequence[int] = ()) -> Any:
        """Samples, differentiable with respect to the parameters and the temperature."""
        u = uniform(self._extended_shape(sample_shape), self.logits.dtype)
        scores = (self.logits - f.log(-f.log(u))) / self.temperature
        return f.log_softmax(scores, -1)

    def log_prob(self, value: Any) -> Any:
        """log((n - 1)! T^(n - 1)) + sum of log_softmax(t - T x) of the logits t."""
        x, n = self._validate_sample(value), self.event_shape[0]
        scores = f.log_softmax(self.logits - x * self.temperature, -1)
        return f.sum(scores, -1) + (n - 1) * f.log(self.temperature) + math.lgamma(n)


class RelaxedOneHotCategorical(TransformedDistribution):
    """Positive vectors that add up to 1, which are nearly one-hot if ``temperature`` is low.

    This is the Gumbel-softmax or Concrete distribution (Jang et al. 2017, Maddison et al. 2017).
    Give ``probs`` or ``logits``, with the categories along the last dimension.

    >>> import minigrad as mg
    >>> d = mg.distributions.RelaxedOneHotCategorical(mg.tensor(0.5), logits=mg.zeros(2, 3))
    >>> d.batch_shape, d.rsample().shape
    ((2,), (2, 3))
    """

    def __init__(
        self,
        temperature: Any,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        base = ExpRelaxedCategorical(temperature, probs, logits, validate_args)
        # The cache keeps the last logarithms, so the density of a sample that was rounded to 0 is
        # right.
        super().__init__(base, ExpTransform(cache_size=1), validate_args)

    @property
    def support(self) -> constraints.Constraint:
        """Vectors that add up to 1."""
        return constraints.simplex

    @property
    def temperature(self) -> Any:
        """The temperature."""
        return self.base_dist.temperature

    @property
    def logits(self) -> Any:
        """The logarithms of the probabilities."""
        return self.base_dist.logits

    @property
    def probs(self) -> Any:
        """The probabilities of the categories."""
        return self.base_dist.probs
