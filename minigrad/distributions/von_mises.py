"""The von Mises distribution, of angles."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from minigrad import functions as f
from minigrad import special
from minigrad.distributions import constraints
from minigrad.distributions.distribution import Distribution, floats
from minigrad.distributions.stable import polynomial
from minigrad.functions.creation import tensor
from minigrad.random import drawing
from minigrad.runtime.lazy_numpy import np

__all__ = ["VonMises"]


def _away_coefficients(count: int) -> list[float]:
    """a_n of I1(k) / I0(k) = 1 - sum of a_n k^-n, from A' = 1 - A / k - A^2."""
    a = [0.5]
    for n in range(2, count + 1):
        product = sum(a[i] * a[n - 2 - i] for i in range(n - 1))
        a.append(((n - 2) * a[-1] + product) / 2)
    return a


_AWAY = _away_coefficients(24)
_LARGE = 40.0  # from here on all terms of the series decrease


def _away(k: Any) -> Any:
    """1 - I1(k) / I0(k), which is near 1 / (2 k) for a large k."""
    large = k > _LARGE
    z = f.where(large, k, _LARGE)
    series = polynomial(_AWAY, 1 / z) / z
    z = f.where(large, 1.0, k)
    return f.where(large, series, 1 - special.i1e(z) / special.i0e(z))


class VonMises(Distribution):
    """Angles around ``loc`` with a density proportional to exp(k cos(x - loc)).

    k is ``concentration``. Samples lie between -pi and pi. ``mean`` and ``variance`` are circular.

    >>> import minigrad as mg
    >>> d = mg.distributions.VonMises(mg.tensor(0.0), mg.tensor(4.0))
    >>> d.sample((2,)).shape, round(d.variance.item(), 4)
    ((2,), 0.1365)
    """

    arg_constraints = {  # noqa: RUF012
        "loc": constraints.real,
        "concentration": constraints.positive,
    }

    def __init__(self, loc: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self.loc, self.concentration = floats(loc, concentration)
        super().__init__(self.loc.shape, validate_args=validate_args)

    def sample(self, sample_shape: Sequence[int] = ()) -> Any:
        """Angles from -pi to pi, by rejection (Best and Fisher 1979)."""
        shape = self._extended_shape(sample_shape)
        k = self.concentration.detach().expand(shape).numpy().astype(np.float64)
        angles = drawing().vonmises(0.0, k) + self.loc.detach().numpy().astype(np.float64)
        wrapped = (angles + math.pi) % (2 * math.pi) - math.pi
        return tensor(np.asarray(wrapped), self.loc.dtype)

    def _log_scale(self) -> Any:
        """log(2 pi I0(k)) - k."""
        return math.log(2 * math.pi) + f.log(special.i0e(self.concentration))

    def log_prob(self, value: Any) -> Any:
        """k (cos(x - loc) - 1) - log(2 pi I0(k) exp(-k))."""
        half = (self._validate_sample(value) - self.loc) / 2
        return -2 * self.concentration * f.sin(half) ** 2 - self._log_scale()

    def entropy(self) -> Any:
        """log(2 pi I0(k)) - k I1(k) / I0(k)."""
        return self._log_scale() + self.concentration * _away(self.concentration)

    @property
    def mean(self) -> Any:
        """The location, which is the circular mean."""
        return self.loc

    @property
    def mode(self) -> Any:
        """The location."""
        return self.loc

    @property
    def variance(self) -> Any:
        """The circular variance, 1 - I1(k) / I0(k)."""
        return _away(self.concentration)
