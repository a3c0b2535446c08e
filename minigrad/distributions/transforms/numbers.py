"""Elementwise transforms of numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from minigrad import functions as f
from minigrad.distributions import constraints
from minigrad.distributions.transforms.base import Transform, broadcast, last_added
from minigrad.functions.creation import zeros_like
from minigrad.nn.functional import logsigmoid

__all__ = [
    "AbsTransform",
    "AffineTransform",
    "CumulativeDistributionTransform",
    "ExpTransform",
    "PowerTransform",
    "SigmoidTransform",
    "SoftplusTransform",
    "TanhTransform",
]


class ExpTransform(Transform):
    """exp(x)."""

    codomain = constraints.positive

    def _call(self, x: Any) -> Any:
        return f.exp(x)

    def _inverse(self, y: Any) -> Any:
        return f.log(y)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        """x."""
        return x


class AffineTransform(Transform):
    """``loc + scale * x``, for values with ``event_dim`` dimensions."""

    def __init__(self, loc: Any, scale: Any, event_dim: int = 0, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.loc, self.scale, self._event_dim = loc, scale, event_dim

    @property
    def event_dim(self) -> int:
        """The number of dimensions of a value."""
        return self._event_dim

    @property
    def domain(self) -> Any:
        """All numbers."""
        n = self._event_dim
        return constraints.independent(constraints.real, n) if n else constraints.real

    codomain = domain

    @property
    def sign(self) -> Any:
        """The sign of scale."""
        if isinstance(self.scale, (int, float)):
            return (self.scale > 0) - (self.scale < 0)
        return f.sign(self.scale)

    def _call(self, x: Any) -> Any:
        return self.loc + self.scale * x

    def _inverse(self, y: Any) -> Any:
        return (y - self.loc) / self.scale

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        """log|scale|, for each value."""
        one = abs(self.scale)
        log = math.log(one) if isinstance(one, (int, float)) else f.log(one)
        return last_added(zeros_like(x) + log, self._event_dim)

    def forward_shape(self, shape: Sequence[int]) -> Sequence[int]:
        """The shape, broadcast with the shapes of loc and scale."""
        return broadcast(shape, self.loc, self.scale)

    inverse_shape = forward_shape


class SigmoidTransform(Transform):
    """1 / (1 + exp(-x)). As in PyTorch, the inverse replaces 0 and 1 by the next numbers inside."""

    codomain = constraints.unit_interval

    def _call(self, x: Any) -> Any:
        return f.sigmoid(x)

    def _inverse(self, y: Any) -> Any:
        single = y.dtype.itemsize == 4
        y = f.clamp(y, 2.0**-126 if single else 2.0**-1022, 1 - 2.0 ** (-24 if single else -53))
        return f.log(y) - f.log1p(-y)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        """-softplus(x) - softplus(-x)."""
        return logsigmoid(x) + logsigmoid(-x)


class TanhTransform(Transform):
    """tanh(x)."""

    codomain = constraints.interval(-1.0, 1.0)

    def _call(self, x: Any) -> Any:
        return f.tanh(x)

    def _inverse(self, y: Any) -> Any:
        return f.atanh(y)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        """2 (log(2) - x - softplus(-2 x)), a form that does not cancel."""
        return 2 * (math.log(2) - x + logsigmoid(2 * x))


class SoftplusTransform(Transform):
    """log(1 + exp(x))."""

    codomain = constraints.positive

    def _call(self, x: Any) -> Any:
        return -logsigmoid(-x)

    def _inverse(self, y: Any) -> Any:
        return y + f.log(-f.expm1(-y))

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        """log(sigmoid(x))."""
        return logsigmoid(x)


class PowerTransform(Transform):
    """x to the power of ``exponent``, for positive x."""

    domain = constraints.positive
    codomain = constraints.positive

    def __init__(self, exponent: Any, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.exponent = exponent

    @property
    def sign(self) -> Any:
        """The sign of the exponent."""
        if isinstance(self.exponent, (int, float)):
            return (self.exponent > 0) - (self.exponent < 0)
        return f.sign(self.exponent)

    def _call(self, x: Any) -> Any:
        return x**self.exponent

    def _inverse(self, y: Any) -> Any:
        return y ** (1 / self.exponent)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        """log|exponent y / x|."""
        return f.log(f.abs(self.exponent * y / x))

    def forward_shape(self, shape: Sequence[int]) -> Sequence[int]:
        """The shape, broadcast with the shape of the exponent."""
        return broadcast(shape, self.exponent)

    inverse_shape = forward_shape


class AbsTransform(Transform):
    """|x|. It is not invertible: ``inv`` gives the positive value."""

    bijective = False
    codomain = constraints.nonnegative

    def _call(self, x: Any) -> Any:
        return f.abs(x)

    def _inverse(self, y: Any) -> Any:
        return y


class CumulativeDistributionTransform(Transform):
    """The distribution function of a distribution of numbers. Its inverse is the quantile."""

    codomain = constraints.unit_interval

    def __init__(self, distribution: Any, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.distribution = distribution

    @property
    def domain(self) -> Any:
        """The support of the distribution."""
        return self.distribution.support

    def _call(self, x: Any) -> Any:
        return self.distribution.cdf(x)

    def _inverse(self, y: Any) -> Any:
        return self.distribution.icdf(y)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        """The logarithm of the density."""
        return self.distribution.log_prob(x)
