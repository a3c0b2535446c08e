"""The logistic-normal distribution, of vectors that add up to 1."""

from __future__ import annotations

from typing import Any

from minigrad.distributions.composed import TransformedDistribution
from minigrad.distributions.continuous import Normal
from minigrad.distributions.transforms import StickBreakingTransform

__all__ = ["LogisticNormal"]


class LogisticNormal(TransformedDistribution):
    """Normally distributed vectors after stick breaking: n numbers become n + 1 parts of 1.

    >>> import minigrad as mg
    >>> d = mg.distributions.LogisticNormal(mg.zeros(3), mg.ones(3))
    >>> d.event_shape, d.sample().sum().allclose(mg.tensor(1.0))
    ((4,), True)
    """

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        base: Any = Normal(loc, scale, validate_args=validate_args)
        if not base.batch_shape:
            base = base.expand((1,))
        super().__init__(base, StickBreakingTransform(), validate_args)

    @property
    def loc(self) -> Any:
        """The location of the normal distribution."""
        return self.base_dist.base_dist.loc

    @property
    def scale(self) -> Any:
        """The scale of the normal distribution."""
        return self.base_dist.base_dist.scale
