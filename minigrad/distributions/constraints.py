"""Constraints: conditions on the values of parameters and samples.

``check(value)`` of a constraint is a bool tensor, with one element for each value. Names are
PyTorch's.

>>> import minigrad as mg
>>> from minigrad.distributions import constraints
>>> constraints.positive.check(mg.tensor([-1.0, 2.0]))
tensor([False,  True])
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from minigrad import functions as f
from minigrad.functions.creation import full

__all__ = [
    "Constraint",
    "MixtureSameFamilyConstraint",
    "boolean",
    "cat",
    "corr_cholesky",
    "dependent",
    "dependent_property",
    "greater_than",
    "greater_than_eq",
    "half_open_interval",
    "independent",
    "integer_interval",
    "interval",
    "is_dependent",
    "less_than",
    "lower_cholesky",
    "lower_triangular",
    "multinomial",
    "nonnegative",
    "nonnegative_integer",
    "one_hot",
    "positive",
    "positive_definite",
    "positive_integer",
    "positive_semidefinite",
    "real",
    "real_vector",
    "simplex",
    "square",
    "stack",
    "symmetric",
    "unit_interval",
]


class Constraint:
    """A condition on values. A subclass defines ``check``.

    ``event_dim`` is the number of last dimensions that make up one value. ``is_discrete`` says
    whether the values are integers.
    """

    is_discrete: Any = False
    event_dim: Any = 0

    def check(self, value: Any) -> Any:
        """True for each value that fulfils the condition."""
        raise NotImplementedError(f"[{type(self).__name__}] check")

    def __repr__(self) -> str:
        return f"{type(self).__name__.lstrip('_')}()"


# ---- known only with the other parameters --------------------------------------------------------


class _Dependent(Constraint):
    """A condition that depends on other parameters, so it cannot be checked."""

    def __init__(self, *, is_discrete: Any = NotImplemented, event_dim: Any = NotImplemented):
        self.is_discrete, self.event_dim = is_discrete, event_dim

    def __call__(self, *, is_discrete: Any = None, event_dim: Any = None) -> _Dependent:
        return _Dependent(
            is_discrete=self.is_discrete if is_discrete is None else is_discrete,
            event_dim=self.event_dim if event_dim is None else event_dim,
        )

    def check(self, value: Any) -> Any:
        """Raise a ValueError: the condition is not known."""
        raise ValueError("[Constraint] a dependent constraint needs the other parameters")


class dependent_property(property, _Dependent):  # noqa: N801 - PyTorch's name
    """A property whose value is a constraint that depends on the parameters.

    It is a decorator, with or without the arguments ``is_discrete`` and ``event_dim``.
    """

    def __init__(
        self,
        fn: Callable[[Any], Any] | None = None,
        *,
        is_discrete: Any = NotImplemented,
        event_dim: Any = NotImplemented,
    ) -> None:
        property.__init__(self, fn)
        _Dependent.__init__(self, is_discrete=is_discrete, event_dim=event_dim)

    def __call__(self, fn: Any) -> Any:  # type: ignore[override]
        """The property for a function, with the arguments of this one."""
        return type(self)(fn, is_discrete=self.is_discrete, event_dim=self.event_dim)


def is_dependent(constraint: Any) -> bool:
    """True if the condition depends on other parameters."""
    return isinstance(constraint, _Dependent)


# ---- numbers -------------------------------------------------------------------------------------


class _Real(Constraint):
    """All numbers except NaN."""

    def check(self, value: Any) -> Any:
        return value == value


class _Bounded(Constraint):
    """Values above ``lower_bound``, below ``upper_bound``, or between both."""

    def __init__(self, *bounds: Any) -> None:
        self._bounds = bounds
        self.lower_bound, self.upper_bound = bounds[0], bounds[-1]

    def __repr__(self) -> str:
        return f"{type(self).__name__.lstrip('_')}({', '.join(map(str, self._bounds))})"


class _GreaterThan(_Bounded):
    def __init__(self, lower_bound: Any) -> None:
        super().__init__(lower_bound)

    def check(self, value: Any) -> Any:
        return value > self.lower_bound


class _GreaterThanEq(_Bounded):
    def __init__(self, lower_bound: Any) -> None:
        super().__init__(lower_bound)

    def check(self, value: Any) -> Any:
        return value >= self.lower_bound


class _LessThan(_Bounded):
    def __init__(self, upper_bound: Any) -> None:
        super().__init__(upper_bound)

    def check(self, value: Any) -> Any:
        return value < self.upper_bound


class _Interval(_Bounded):
    def __init__(self, lower_bound: Any, upper_bound: Any) -> None:
        super().__init__(lower_bound, upper_bound)

    def check(self, value: Any) -> Any:
        return (value >= self.lower_bound) & (value <= self.upper_bound)


class _HalfOpenInterval(_Interval):
    def check(self, value: Any) -> Any:
        return (value >= self.lower_bound) & (value < self.upper_bound)


class _Boolean(Constraint):
    is_discrete = True

    def check(self, value: Any) -> Any:
        return (value == 0) | (value == 1)


class _IntegerInterval(_Interval):
    is_discrete = True

    def check(self, value: Any) -> Any:
        return (value % 1 == 0) & super().check(value)


class _IntegerGreaterThanEq(_GreaterThanEq):
    is_discrete = True

    def check(self, value: Any) -> Any:
        return (value % 1 == 0) & super().check(value)


class _Plain:
    """A bounded condition whose name includes the bounds."""

    def __repr__(self) -> str:
        return f"{type(self).__name__.lstrip('_')}()"


class _Positive(_Plain, _GreaterThan):
    pass


class _NonNegative(_Plain, _GreaterThanEq):
    pass


class _UnitInterval(_Plain, _Interval):
    pass


class _PositiveInteger(_Plain, _IntegerGreaterThanEq):
    pass


class _NonNegativeInteger(_Plain, _IntegerGreaterThanEq):
    pass


# ---- vectors and matrices ------------------------------------------------------------------------


class _OneHot(Constraint):
    is_discrete = True
    event_dim = 1

    def check(self, value: Any) -> Any:
        return ((value == 0) | (value == 1)).all(-1) & (value.sum(-1) == 1)


class _Simplex(Constraint):
    event_dim = 1

    def check(self, value: Any) -> Any:
        return (value >= 0).all(-1) & ((value.sum(-1) - 1).abs() < 1e-6)


class _Multinomial(Constraint):
    is_discrete = True
    event_dim = 1

    def __init__(self, upper_bound: Any) -> None:
        self.upper_bound = upper_bound

    def check(self, value: Any) -> Any:
        whole = ((value >= 0) & (value % 1 == 0)).all(-1)
        return whole & (value.sum(-1) == self.upper_bound)

    def __repr__(self) -> str:
        return f"Multinomial(upper_bound={self.upper_bound})"


class _Matrix(Constraint):
    event_dim = 2


class _Square(_Matrix):
    def check(self, value: Any) -> Any:
        return full(value.shape[:-2], value.shape[-1] == value.shape[-2], dtype="bool")


class _LowerTriangular(_Matrix):
    def check(self, value: Any) -> Any:
        return (value.tril() == value).flatten(-2).all(-1)


class _LowerCholesky(_LowerTriangular):
    def check(self, value: Any) -> Any:
        return super().check(value) & (value.diagonal(0, -2, -1) > 0).all(-1)


class _CorrCholesky(_LowerCholesky):
    """Lower triangles with a positive diagonal and rows of length 1."""

    def check(self, value: Any) -> Any:
        off = (f.sqrt((value**2).sum(-1)) - 1).abs()
        eps = 2.0**-23 if value.dtype.itemsize == 4 else 2.0**-52
        return super().check(value) & (off <= 10 * value.shape[-1] * eps).all(-1)


class _Symmetric(_Square):
    def check(self, value: Any) -> Any:
        if value.shape[-1] != value.shape[-2]:
            return super().check(value)
        return f.isclose(value, value.mT, atol=1e-6).flatten(-2).all(-1)


class _OfEigenvalues(_Symmetric):
    def check(self, value: Any) -> Any:
        from minigrad import linalg

        alike = super().check(value)
        # eigenvalues of a triangle of an asymmetric matrix are not the matrix's
        if not bool(alike.all()):
            return alike
        return alike & self._allows(linalg.eigvalsh(value.detach())[..., 0])

    def _allows(self, least: Any) -> Any:
        raise NotImplementedError


class _PositiveDefinite(_OfEigenvalues):
    def _allows(self, least: Any) -> Any:
        return least > 0


class _PositiveSemidefinite(_OfEigenvalues):
    def _allows(self, least: Any) -> Any:
        return least >= 0


# ---- made of others ------------------------------------------------------------------------------


class _Independent(Constraint):
    """A condition on all parts of a value, along the last dimensions."""

    def __init__(self, base_constraint: Constraint, reinterpreted_batch_ndims: int) -> None:
        self.base_constraint = base_constraint
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims
        self.is_discrete = base_constraint.is_discrete
        self.event_dim = base_constraint.event_dim + reinterpreted_batch_ndims

    def check(self, value: Any) -> Any:
        found = self.base_constraint.check(value)
        n = self.reinterpreted_batch_ndims
        if found.ndim < n:
            raise ValueError(f"[Independent] a value has {value.ndim} dimensions, not {n} or more")
        return found.flatten(-n).all(-1) if n else found

    def __repr__(self) -> str:
        return f"Independent({self.base_constraint}, {self.reinterpreted_batch_ndims})"


class _RealVector(_Plain, _Independent):
    pass


class MixtureSameFamilyConstraint(Constraint):
    """The condition of a mixture: a value must fulfil the conditions of all components."""

    def __init__(self, base_constraint: Constraint) -> None:
        self.base_constraint = base_constraint
        self.is_discrete, self.event_dim = base_constraint.is_discrete, base_constraint.event_dim

    def check(self, value: Any) -> Any:
        """True for each value that fulfils the conditions of all components."""
        return self.base_constraint.check(value.unsqueeze(-1 - self.event_dim)).all(-1)

    def __repr__(self) -> str:
        return f"MixtureSameFamilyConstraint({self.base_constraint})"


class _Several(Constraint):
    """Base of conditions on parts along a dimension."""

    def __init__(self, cseq: Sequence[Constraint], dim: int = 0) -> None:
        self.cseq, self.dim = list(cseq), dim
        self.is_discrete = any(c.is_discrete for c in self.cseq)


class _Cat(_Several):
    def __init__(
        self, cseq: Sequence[Constraint], dim: int = 0, lengths: Sequence[int] | None = None
    ) -> None:
        super().__init__(cseq, dim)
        self.lengths = [1] * len(self.cseq) if lengths is None else list(lengths)
        self.event_dim = max(c.event_dim for c in self.cseq)

    def check(self, value: Any) -> Any:
        parts = f.split(value, self.lengths, self.dim)
        found = [c.check(v) for c, v in zip(self.cseq, parts, strict=True)]
        return f.cat(found, self.dim)


class _Stack(_Several):
    def __init__(self, cseq: Sequence[Constraint], dim: int = 0) -> None:
        super().__init__(cseq, dim)
        most = max(c.event_dim for c in self.cseq)
        self.event_dim = most + 1 if self.dim + most < 0 else most

    def check(self, value: Any) -> Any:
        parts = f.unbind(value, self.dim)
        found = [c.check(v) for c, v in zip(self.cseq, parts, strict=True)]
        return f.stack(found, self.dim)


# ---- names ---------------------------------------------------------------------------------------

dependent = _Dependent()
greater_than, greater_than_eq, less_than = _GreaterThan, _GreaterThanEq, _LessThan
interval, half_open_interval, integer_interval = _Interval, _HalfOpenInterval, _IntegerInterval
independent, cat, stack, multinomial = _Independent, _Cat, _Stack, _Multinomial

real = _Real()
real_vector = _RealVector(real, 1)
positive = _Positive(0.0)
nonnegative = _NonNegative(0.0)
unit_interval = _UnitInterval(0.0, 1.0)
boolean = _Boolean()
positive_integer = _PositiveInteger(1)
nonnegative_integer = _NonNegativeInteger(0)
one_hot = _OneHot()
simplex = _Simplex()
square = _Square()
symmetric = _Symmetric()
lower_triangular = _LowerTriangular()
lower_cholesky = _LowerCholesky()
corr_cholesky = _CorrCholesky()
positive_definite = _PositiveDefinite()
positive_semidefinite = _PositiveSemidefinite()
