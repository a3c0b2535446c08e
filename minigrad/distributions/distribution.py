"""Distribution, the base class: shapes, checks, and methods derived from log_prob and rsample."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from minigrad import functions as f
from minigrad.distributions import constraints
from minigrad.functions.creation import tensor
from minigrad.functions.grad_modes import no_grad
from minigrad.runtime.dtypes import default_dtype
from minigrad.tape.tensor_base import Size, TensorBase

__all__ = ["Distribution", "floats"]


def floats(*given: Any) -> tuple[Any, ...]:
    """Parameters as tensors of floats, broadcast together. Numbers take the tensors' dtype."""
    kinds = [x.dtype for x in given if isinstance(x, TensorBase) and x.dtype.is_floating_point]
    dtype = max(kinds, key=lambda kind: kind.itemsize, default=default_dtype())
    made: list[Any] = [x if isinstance(x, TensorBase) else tensor(x, dtype) for x in given]
    made = [x if x.dtype.is_floating_point else x.to(dtype) for x in made]
    return tuple(f.broadcast_tensors(*made)) if len(made) > 1 else tuple(made)


class Distribution:
    """Base class: a batch of shape ``batch_shape`` of distributions of values of ``event_shape``.

    A subclass sets ``arg_constraints`` (by the name of a parameter), ``support`` and
    ``has_rsample``. It defines ``log_prob``, and ``rsample`` or ``sample``. Parameters, and values
    given to ``log_prob``, are checked unless ``validate_args`` is False. Invalid values raise
    ValueError.
    """

    arg_constraints: ClassVar[Mapping[str, constraints.Constraint]] = {}
    has_rsample = False
    has_enumerate_support = False
    _validate_args: bool = True

    def __init__(
        self,
        batch_shape: Sequence[int] = (),
        event_shape: Sequence[int] = (),
        validate_args: bool | None = None,
    ) -> None:
        self._batch_shape, self._event_shape = Size(batch_shape), Size(event_shape)
        if validate_args is not None:
            self._validate_args = bool(validate_args)
        if self._validate_args:
            for name, rule in self.arg_constraints.items():
                value = self.__dict__.get(name)
                if value is not None and not constraints.is_dependent(rule):
                    self._check(f"the parameter {name}", rule, value)

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """Set the default of ``validate_args``."""
        Distribution._validate_args = bool(value)

    def _check(self, what: str, rule: constraints.Constraint, value: Any) -> None:
        if not bool(rule.check(value.detach()).all()):
            raise ValueError(
                f"[{type(self).__name__}] {what} must be {rule}, but has values that are not"
            )

    def _validate_sample(self, value: Any) -> Any:
        """Check a value and return it as a tensor."""
        x: Any = value if isinstance(value, TensorBase) else tensor(value)
        if not self._validate_args:
            return x
        shape, event = x.shape, self.event_shape
        if len(event) and (len(shape) < len(event) or shape[len(shape) - len(event) :] != event):
            raise ValueError(
                f"[{type(self).__name__}] a value has the shape {shape}, but must end in {event}"
            )
        self._check("a value", self.support, x)
        return x

    @property
    def support(self) -> constraints.Constraint:
        """The constraint that the values fulfil."""
        return constraints.real

    @property
    def batch_shape(self) -> Size:
        """The shape of the batch: one distribution for each element."""
        return self._batch_shape

    @property
    def event_shape(self) -> Size:
        """The shape of one value."""
        return self._event_shape

    def _extended_shape(self, sample_shape: Sequence[int] = ()) -> Size:
        return Size((*_sizes(sample_shape), *self.batch_shape, *self.event_shape))

    def _get_checked_instance(self, kind: type, _instance: Any = None) -> Any:
        """An empty instance, which ``expand`` of the class ``kind`` fills, as in PyTorch.

        Raises NotImplementedError for a subclass with another constructor.
        """
        if _instance is None and type(self).__init__ != kind.__init__:  # type: ignore[misc]
            raise NotImplementedError(
                f"[{type(self).__name__}] has an __init__ of its own and needs an expand as well"
            )
        return object.__new__(type(self)) if _instance is None else _instance

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Any:
        """The distribution with its parameters expanded to a larger batch shape."""
        made = copy.copy(self)
        made._batch_shape = Size(batch_shape)
        for name in self._parameters():
            value = self.__dict__[name]
            event = value.shape[len(self.batch_shape) :]
            made.__dict__[name] = value.expand((*batch_shape, *event))
        return made

    def _parameters(self) -> list[str]:
        return [name for name in self.arg_constraints if self.__dict__.get(name) is not None]

    def sample(self, sample_shape: Sequence[int] = ()) -> Any:
        """Samples of the shape ``sample_shape + batch_shape + event_shape``, without a gradient."""
        with no_grad():
            return self.rsample(sample_shape).detach()

    def rsample(self, sample_shape: Sequence[int] = ()) -> Any:
        """Samples that are differentiable with respect to the parameters.

        Raises NotImplementedError if the distribution has no such samples.
        """
        raise NotImplementedError(f"[{type(self).__name__}] samples have no gradient: use sample")

    def sample_n(self, n: int) -> Any:
        """``sample((n,))``."""
        return self.sample((n,))

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the density, or of the probability, of values, in the batch's shape."""
        raise NotImplementedError(f"[{type(self).__name__}] log_prob")

    def cdf(self, value: Any) -> Any:
        """The probability of numbers up to ``value``."""
        raise NotImplementedError(f"[{type(self).__name__}] cdf")

    def icdf(self, value: Any) -> Any:
        """The quantile: the inverse of :meth:`cdf`."""
        raise NotImplementedError(f"[{type(self).__name__}] icdf")

    def entropy(self) -> Any:
        """The entropy in nats."""
        raise NotImplementedError(f"[{type(self).__name__}] entropy")

    def enumerate_support(self, expand: bool = True) -> Any:
        """All possible values, along a new first dimension."""
        raise NotImplementedError(f"[{type(self).__name__}] enumerate_support")

    def perplexity(self) -> Any:
        """exp(entropy)."""
        return f.exp(self.entropy())

    @property
    def mean(self) -> Any:
        """The mean."""
        raise NotImplementedError(f"[{type(self).__name__}] mean")

    @property
    def mode(self) -> Any:
        """The most likely value."""
        raise NotImplementedError(f"[{type(self).__name__}] mode")

    @property
    def variance(self) -> Any:
        """The variance."""
        raise NotImplementedError(f"[{type(self).__name__}] variance")

    @property
    def stddev(self) -> Any:
        """The standard deviation."""
        return f.sqrt(self.variance)

    def __repr__(self) -> str:
        parts = []
        for name in self._parameters():
            value = self.__dict__[name]
            parts.append(f"{name}: {value if value.numel() == 1 else value.shape}")
        return f"{type(self).__name__}({', '.join(parts)})"


def _sizes(given: Any) -> tuple[int, ...]:
    return (given,) if isinstance(given, int) else tuple(given)
