"""Registry of transforms from all numbers to the values that a constraint allows.

``biject_to(constraint)`` is a bijective transform, for densities. ``transform_to(constraint)`` is a
transform for optimisation. It may be cheaper, and need not be injective.

>>> import minigrad as mg
>>> from minigrad.distributions import constraints, transform_to
>>> transform_to(constraints.positive)(mg.tensor([0.0, -1.0])) > 0
tensor([ True,  True])
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from minigrad.distributions import constraints as c
from minigrad.distributions import transforms as t

__all__ = ["ConstraintRegistry", "biject_to", "transform_to"]

Factory = Callable[[Any], t.Transform]


class ConstraintRegistry:
    """A table from classes of constraints to functions that create transforms."""

    def __init__(self) -> None:
        self._factories: dict[type, Factory] = {}

    def register(self, constraint: Any, factory: Factory | None = None) -> Any:
        """Register a function that creates transforms for a class of constraints.

        An instance stands for its class. Without ``factory`` this is a decorator. Raises TypeError
        unless ``constraint`` is a constraint.
        """
        if factory is None:
            return lambda given: self.register(constraint, given)
        kind = type(constraint) if isinstance(constraint, c.Constraint) else constraint
        if not isinstance(kind, type) or not issubclass(kind, c.Constraint):
            raise TypeError(f"[register] needs a Constraint, its class or one, not {constraint!r}")
        self._factories[kind] = factory
        return factory

    def __call__(self, constraint: Any) -> t.Transform:
        """The transform for a constraint. Raises NotImplementedError if none was registered.

        A subclass uses the transform of its nearest registered base class.
        """
        for kind in type(constraint).__mro__:
            if kind in self._factories:
                return self._factories[kind](constraint)
        raise NotImplementedError(f"[ConstraintRegistry] there is no transform for {constraint!r}")


biject_to = ConstraintRegistry()
transform_to = ConstraintRegistry()


def _both(*given: Any) -> Callable[[Factory], Factory]:
    """A decorator: register a function with both registries."""

    def register(factory: Factory) -> Factory:
        for constraint in given:
            biject_to.register(constraint, factory)
            transform_to.register(constraint, factory)
        return factory

    return register


@_both(c.real)
def _real(constraint: Any) -> t.Transform:
    return t.identity_transform


@_both(c.positive, c.nonnegative)
def _positive(constraint: Any) -> t.Transform:
    return t.ExpTransform()


@_both(c.greater_than, c.greater_than_eq)
def _above(constraint: Any) -> t.Transform:
    return t.ComposeTransform([t.ExpTransform(), t.AffineTransform(constraint.lower_bound, 1)])


@_both(c.less_than)
def _below(constraint: Any) -> t.Transform:
    return t.ComposeTransform([t.ExpTransform(), t.AffineTransform(constraint.upper_bound, -1)])


@_both(c.unit_interval)
def _unit(constraint: Any) -> t.Transform:
    return t.SigmoidTransform()


@_both(c.interval, c.half_open_interval)
def _between(constraint: Any) -> t.Transform:
    low, high = constraint.lower_bound, constraint.upper_bound
    if isinstance(low, (int, float)) and (low, high) == (0, 1):
        return t.SigmoidTransform()
    return t.ComposeTransform([t.SigmoidTransform(), t.AffineTransform(low, high - low)])


@_both(c.corr_cholesky)
def _corr_cholesky(constraint: Any) -> t.Transform:
    return t.CorrCholeskyTransform()


biject_to.register(c.simplex, lambda constraint: t.StickBreakingTransform())
transform_to.register(c.simplex, lambda constraint: t.SoftmaxTransform())
transform_to.register(c.lower_cholesky, lambda constraint: t.LowerCholeskyTransform())
for _definite in (c.positive_definite, c.positive_semidefinite):
    transform_to.register(_definite, lambda constraint: t.PositiveDefiniteTransform())


def _register_parts(registry: ConstraintRegistry) -> None:
    """Register composed constraints: their transforms compose transforms of the registry."""

    def independent(constraint: Any) -> t.Transform:
        base = registry(constraint.base_constraint)
        return t.IndependentTransform(base, constraint.reinterpreted_batch_ndims)

    def cat(constraint: Any) -> t.Transform:
        parts = [registry(part) for part in constraint.cseq]
        return t.CatTransform(parts, constraint.dim, constraint.lengths)

    def stack(constraint: Any) -> t.Transform:
        return t.StackTransform([registry(part) for part in constraint.cseq], constraint.dim)

    for constraint, factory in ((c.independent, independent), (c.cat, cat), (c.stack, stack)):
        registry.register(constraint, factory)


_register_parts(biject_to)
_register_parts(transform_to)
