"""Distributions composed of other distributions: independent dimensions, transforms, mixtures."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

from minigrad import functions as f
from minigrad.distributions import constraints
from minigrad.distributions.discrete import Categorical
from minigrad.distributions.distribution import Distribution
from minigrad.distributions.transforms.base import ComposeTransform, Transform, last_added
from minigrad.functions.grad_modes import no_grad
from minigrad.tape.tensor_base import Size

__all__ = ["Independent", "MixtureSameFamily", "TransformedDistribution"]


class Independent(Distribution):
    """A distribution whose last batch dimensions become dimensions of one value.

    >>> import minigrad as mg
    >>> d = mg.distributions.Independent(mg.distributions.Normal(mg.zeros(4, 3), 1.0), 1)
    >>> d.batch_shape, d.event_shape, d.log_prob(mg.zeros(4, 3)).shape
    ((4,), (3,), (4,))
    """

    def __init__(
        self,
        base_distribution: Distribution,
        reinterpreted_batch_ndims: int,
        validate_args: bool | None = None,
    ) -> None:
        batch, n = base_distribution.batch_shape, reinterpreted_batch_ndims
        if n > len(batch):
            raise ValueError(
                f"[Independent] {n} dimensions are to be parts, but the batch has {len(batch)}"
            )
        self.base_dist: Any = base_distribution
        self.reinterpreted_batch_ndims = n
        event = (*batch[len(batch) - n :], *base_distribution.event_shape)
        super().__init__(batch[: len(batch) - n], event, validate_args)

    @property
    def has_rsample(self) -> bool:  # type: ignore[override]
        """Taken from the base."""
        return bool(self.base_dist.has_rsample)

    @property
    def has_enumerate_support(self) -> bool:  # type: ignore[override]
        """Taken from the base; False if a value has several parts."""
        return bool(self.base_dist.has_enumerate_support) and not self.reinterpreted_batch_ndims

    @property
    def support(self) -> constraints.Constraint:
        """The base's support, for values with more dimensions."""
        n = self.reinterpreted_batch_ndims
        return constraints.independent(self.base_dist.support, n) if n else self.base_dist.support

    def _validate_sample(self, value: Any) -> Any:
        return value

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Any:
        """The distribution with its parameters expanded to a larger batch shape."""
        n = self.reinterpreted_batch_ndims
        base = self.base_dist.expand((*batch_shape, *self.event_shape[:n]))
        return Independent(base, n, validate_args=False)

    def sample(self, sample_shape: Sequence[int] = ()) -> Any:
        """Samples of the base."""
        return self.base_dist.sample(sample_shape)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Any:
        """Differentiable samples of the base."""
        return self.base_dist.rsample(sample_shape)

    def log_prob(self, value: Any) -> Any:
        """The sum over the parts."""
        return last_added(self.base_dist.log_prob(value), self.reinterpreted_batch_ndims)

    def enumerate_support(self, expand: bool = True) -> Any:
        """All values of the base. Raises NotImplementedError if a value has several parts."""
        if self.reinterpreted_batch_ndims:
            raise NotImplementedError("[Independent] the values of several parts are not counted")
        return self.base_dist.enumerate_support(expand)

    def entropy(self) -> Any:
        """The sum over the parts."""
        return last_added(self.base_dist.entropy(), self.reinterpreted_batch_ndims)

    @property
    def mean(self) -> Any:
        """Taken from the base."""
        return self.base_dist.mean

    @property
    def mode(self) -> Any:
        """Taken from the base."""
        return self.base_dist.mode

    @property
    def variance(self) -> Any:
        """Taken from the base."""
        return self.base_dist.variance

    def __repr__(self) -> str:
        return f"Independent({self.base_dist}, {self.reinterpreted_batch_ndims})"


class TransformedDistribution(Distribution):
    """The distribution of the values of a base distribution after transforms.

    >>> import minigrad as mg
    >>> from minigrad.distributions import Normal, TransformedDistribution, transforms
    >>> d = TransformedDistribution(Normal(0.0, 1.0), transforms.ExpTransform())
    >>> bool(d.sample() > 0)
    True
    """

    def __init__(
        self,
        base_distribution: Distribution,
        transforms: Transform | Sequence[Transform],
        validate_args: bool | None = None,
    ) -> None:
        parts = [transforms] if isinstance(transforms, Transform) else list(transforms)
        if not all(isinstance(part, Transform) for part in parts):
            raise ValueError(f"[{type(self).__name__}] transforms must be one or a list of them")
        whole = ComposeTransform(parts)
        shape = (*base_distribution.batch_shape, *base_distribution.event_shape)
        own, taken = len(base_distribution.event_shape), whole.domain.event_dim
        if len(shape) < taken:
            raise ValueError(
                f"[{type(self).__name__}] the transforms take values of {taken} dimensions, but "
                f"the base has the shape {shape}"
            )
        given = tuple(whole.forward_shape(shape))
        wide = tuple(whole.inverse_shape(given))
        if wide != shape:
            base_distribution = base_distribution.expand(wide[: len(wide) - own])
        if taken > own:
            base_distribution = Independent(base_distribution, taken - own)
        self.base_dist: Any = base_distribution
        self.transforms, self._whole = parts, whole
        at = len(given) - whole.codomain.event_dim - max(own - taken, 0)
        super().__init__(given[:at], given[at:], validate_args)

    @property
    def has_rsample(self) -> bool:  # type: ignore[override]
        """Taken from the base."""
        return bool(self.base_dist.has_rsample)

    @property
    def support(self) -> Any:
        """The codomain of the last transform."""
        if not self.transforms:
            return self.base_dist.support
        found: Any = self.transforms[-1].codomain
        more = len(self.event_shape) - found.event_dim
        return constraints.independent(found, more) if more > 0 else found

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Any:
        """The distribution with its parameters expanded to a larger batch shape."""
        made = copy.copy(self)
        shape = (*batch_shape, *self.event_shape)
        wide = tuple(self._whole.inverse_shape(shape))
        made.base_dist = self.base_dist.expand(wide[: len(wide) - len(self.base_dist.event_shape)])
        made._batch_shape = Size(batch_shape)
        return made

    def sample(self, sample_shape: Sequence[int] = ()) -> Any:
        """Samples without a gradient."""
        with no_grad():
            return self._whole(self.base_dist.sample(sample_shape))

    def rsample(self, sample_shape: Sequence[int] = ()) -> Any:
        """Samples, differentiable with respect to the parameters of base and transforms."""
        return self._whole(self.base_dist.rsample(sample_shape))

    def log_prob(self, value: Any) -> Any:
        """The base's log_prob at the inverse, less the log-determinants of the transforms."""
        y, total = self._validate_sample(value), 0.0
        event = len(self.event_shape)
        for part in reversed(self.transforms):
            x = part.inv(y)
            event += part.domain.event_dim - part.codomain.event_dim
            log = part.log_abs_det_jacobian(x, y)
            total = total - last_added(log, event - part.domain.event_dim)
            y = x
        base = self.base_dist.log_prob(y)
        return total + last_added(base, event - len(self.base_dist.event_shape))

    def cdf(self, value: Any) -> Any:
        """The base's cdf at the inverse, for monotonic transforms."""
        found = self.base_dist.cdf(self._whole.inv(self._validate_sample(value)))
        return self._turned(found)

    def icdf(self, value: Any) -> Any:
        """The quantile, for monotonic transforms."""
        return self._whole(self.base_dist.icdf(self._turned(value)))

    def _turned(self, p: Any) -> Any:
        """p, or 1 - p where the transforms decrease."""
        sign = self._whole.sign
        if isinstance(sign, (int, float)):
            return p if sign > 0 else 1 - p
        return f.where(sign > 0, p, 1 - p)


class MixtureSameFamily(Distribution):
    """A mixture: components along the last batch dimension, with categorical weights.

    >>> import minigrad as mg
    >>> from minigrad.distributions import Categorical, MixtureSameFamily, Normal
    >>> weights = Categorical(mg.tensor([0.5, 0.5]))
    >>> d = MixtureSameFamily(weights, Normal(mg.tensor([-1.0, 1.0]), 0.5))
    >>> d.batch_shape, d.mean
    ((), tensor(0.))
    """

    def __init__(
        self,
        mixture_distribution: Categorical,
        component_distribution: Distribution,
        validate_args: bool | None = None,
    ) -> None:
        if not isinstance(mixture_distribution, Categorical):
            raise ValueError("[MixtureSameFamily] the weights must be a Categorical")  # noqa: TRY004
        parts = component_distribution.batch_shape
        count = mixture_distribution.param_shape[-1]
        if not parts or parts[-1] != count:
            raise ValueError(
                f"[MixtureSameFamily] {count} weights for components of the batch shape {parts}"
            )
        self.mixture_distribution = mixture_distribution
        self.component_distribution = component_distribution
        super().__init__(parts[:-1], component_distribution.event_shape, validate_args)

    @property
    def support(self) -> constraints.Constraint:
        """The support of all components."""
        return constraints.MixtureSameFamilyConstraint(self.component_distribution.support)

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Any:
        """The distribution with its parameters expanded to a larger batch shape."""
        count = self.mixture_distribution.param_shape[-1]
        return MixtureSameFamily(
            self.mixture_distribution.expand(batch_shape),
            self.component_distribution.expand((*batch_shape, count)),
            validate_args=False,
        )

    def _validate_sample(self, value: Any) -> Any:
        return value

    def _weighted(self, x: Any) -> Any:
        """The weighted mean of the components' values."""
        n = len(self.event_shape)
        p = self.mixture_distribution.probs
        p = f.reshape(p, (*p.shape, *(1,) * n))
        return f.sum(p * x, -1 - n)

    def sample(self, sample_shape: Sequence[int] = ()) -> Any:
        """Samples: a component is drawn first, then its value."""
        n = len(self.event_shape)
        picked = self.mixture_distribution.expand(self.batch_shape).sample(sample_shape)
        values = self.component_distribution.sample(sample_shape)
        index = f.reshape(picked, (*picked.shape, *(1,) * (n + 1)))
        index = index.expand((*picked.shape, 1, *self.event_shape))
        return f.squeeze(f.gather(values, len(picked.shape), index), len(picked.shape))

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the weighted sum of the components' densities."""
        n = len(self.event_shape)
        x = f.unsqueeze(value, -1 - n)
        log = self.component_distribution.log_prob(x)
        return f.logsumexp(log + self.mixture_distribution.logits, -1)

    def cdf(self, value: Any) -> Any:
        """The weighted mean of the components' distribution functions."""
        found = self.component_distribution.cdf(f.unsqueeze(value, -1))
        return f.sum(found * self.mixture_distribution.probs, -1)

    @property
    def mean(self) -> Any:
        """The weighted mean of the components' means."""
        return self._weighted(self.component_distribution.mean)

    @property
    def variance(self) -> Any:
        """The mean of the variances plus the variance of the means."""
        own = self.component_distribution
        away = own.mean - f.unsqueeze(self.mean, -1 - len(self.event_shape))
        return self._weighted(own.variance) + self._weighted(away**2)

    def __repr__(self) -> str:
        return f"MixtureSameFamily({self.mixture_distribution}, {self.component_distribution})"
