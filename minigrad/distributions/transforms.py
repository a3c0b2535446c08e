"""Transforms: invertible functions, with the logarithm of how they stretch."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from minigrad import functions as f
from minigrad.distributions import constraints
from minigrad.nn.functional import logsigmoid

__all__ = [
    "AbsTransform",
    "AffineTransform",
    "ComposeTransform",
    "ExpTransform",
    "PowerTransform",
    "SigmoidTransform",
    "SoftplusTransform",
    "TanhTransform",
    "Transform",
    "identity_transform",
]


class Transform:
    """An invertible function: ``t(x)``, ``t.inv(y)``, ``t.log_abs_det_jacobian(x, y)``.

    ``event_dim`` counts the last dimensions that are transformed together.
    """

    event_dim = 0
    bijective = True
    sign = 1
    codomain = constraints.real

    def __call__(self, x: Any) -> Any:
        """The function of x."""
        raise NotImplementedError

    def _inverse(self, y: Any) -> Any:
        raise NotImplementedError

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        """log|dy / dx|."""
        raise NotImplementedError

    @property
    def inv(self) -> Transform:
        """The inverse transform."""
        return _Inverse(self)

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.__dict__ == getattr(other, "__dict__", None)

    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class _Inverse(Transform):
    """The inverse of a transform."""

    def __init__(self, of: Transform) -> None:
        self._of = of

    @property
    def event_dim(self) -> int:  # type: ignore[override]
        """As of the transform."""
        return self._of.event_dim

    def __call__(self, x: Any) -> Any:
        """The inverse function of x."""
        return self._of._inverse(x)

    def _inverse(self, y: Any) -> Any:
        return self._of(y)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        """Minus that of the transform."""
        return -self._of.log_abs_det_jacobian(y, x)

    @property
    def inv(self) -> Transform:
        """The transform."""
        return self._of


class ExpTransform(Transform):
    """exp(x)."""

    codomain = constraints.positive

    def __call__(self, x: Any) -> Any:
        """exp(x)."""
        return f.exp(x)

    def _inverse(self, y: Any) -> Any:
        return f.log(y)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        """x."""
        return x


class AffineTransform(Transform):
    """``loc + scale * x``."""

    def __init__(self, loc: Any, scale: Any, event_dim: int = 0) -> None:
        self.loc, self.scale, self.event_dim = loc, scale, event_dim

    def __call__(self, x: Any) -> Any:
        """loc + scale x."""
        return self.loc + self.scale * x

    def _inverse(self, y: Any) -> Any:
        return (y - self.loc) / self.scale

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        """log|scale|, for each value."""
        one = abs(self.scale)
        log = math.log(one) if isinstance(one, (int, float)) else f.log(one)
        return _last_added(x * 0 + log, self.event_dim)


class SigmoidTransform(Transform):
    """1 / (1 + exp(-x))."""

    codomain = constraints.unit_interval

    def __call__(self, x: Any) -> Any:
        """1 / (1 + exp(-x))."""
        return f.sigmoid(x)

    def _inverse(self, y: Any) -> Any:
        return f.log(y) - f.log1p(-y)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        """-softplus(x) - softplus(-x)."""
        return logsigmoid(x) + logsigmoid(-x)


class TanhTransform(Transform):
    """tanh(x)."""

    codomain = constraints.interval(-1.0, 1.0)

    def __call__(self, x: Any) -> Any:
        """tanh(x)."""
        return f.tanh(x)

    def _inverse(self, y: Any) -> Any:
        return f.atanh(y)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        """2 (log(2) - x - softplus(-2 x)), which does not cancel."""
        return 2 * (math.log(2) - x + logsigmoid(2 * x))


class SoftplusTransform(Transform):
    """log(1 + exp(x))."""

    codomain = constraints.positive

    def __call__(self, x: Any) -> Any:
        """log(1 + exp(x))."""
        return -logsigmoid(-x)

    def _inverse(self, y: Any) -> Any:
        return y + f.log(-f.expm1(-y))

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        """log(sigmoid(x))."""
        return logsigmoid(x)


class PowerTransform(Transform):
    """x to the power of ``exponent``, for positive x."""

    codomain = constraints.positive

    def __init__(self, exponent: Any) -> None:
        self.exponent = exponent

    def __call__(self, x: Any) -> Any:
        """x^exponent."""
        return x**self.exponent

    def _inverse(self, y: Any) -> Any:
        return y ** (1 / self.exponent)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        """log|exponent y / x|."""
        return f.log(f.abs(self.exponent * y / x))


class AbsTransform(Transform):
    """|x|, which is not invertible: the inverse is the positive value."""

    bijective = False
    codomain = constraints.nonnegative

    def __call__(self, x: Any) -> Any:
        """|x|."""
        return f.abs(x)

    def _inverse(self, y: Any) -> Any:
        return y


class ComposeTransform(Transform):
    """Transforms one after the other."""

    def __init__(self, parts: Sequence[Transform]) -> None:
        self.parts = list(parts)

    @property
    def event_dim(self) -> int:  # type: ignore[override]
        """The most of the parts'."""
        return max([part.event_dim for part in self.parts], default=0)

    def __call__(self, x: Any) -> Any:
        """The last transform of that before it of x."""
        for part in self.parts:
            x = part(x)
        return x

    def _inverse(self, y: Any) -> Any:
        for part in reversed(self.parts):
            y = part._inverse(y)
        return y

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        """The sum over the parts."""
        total: Any = 0.0
        for part in self.parts:
            z = part(x)
            found = part.log_abs_det_jacobian(x, z)
            total = total + _last_added(found, self.event_dim - part.event_dim)
            x = z
        return total


def _last_added(x: Any, dims: int) -> Any:
    """The sum over the last dimensions."""
    return f.sum(x, tuple(range(-dims, 0))) if dims else x


identity_transform = ComposeTransform([])
