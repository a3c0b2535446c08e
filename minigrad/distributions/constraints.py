"""Constraints: which values a parameter or a sample may have."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = [
    "Constraint",
    "boolean",
    "greater_than",
    "integer_interval",
    "interval",
    "lower_cholesky",
    "nonnegative",
    "nonnegative_integer",
    "one_hot",
    "positive",
    "positive_definite",
    "real",
    "real_vector",
    "simplex",
    "unit_interval",
]


class Constraint:
    """A named condition; ``check(value)`` is a tensor of bools, one for each value.

    ``event_dim`` counts the last dimensions that make one value together.
    """

    def __init__(
        self, name: str, check: Callable[[Any], Any], event_dim: int = 0, is_discrete: bool = False
    ) -> None:
        self.name, self._check = name, check
        self.event_dim, self.is_discrete = event_dim, is_discrete

    def check(self, value: Any) -> Any:
        """Whether each value fulfils it."""
        return self._check(value)

    def __repr__(self) -> str:
        return self.name


def interval(low: Any, high: Any) -> Constraint:
    """Values from low to high."""
    return Constraint(f"Interval({low}, {high})", lambda x: (x >= low) & (x <= high))


def greater_than(low: Any) -> Constraint:
    """Values above low."""
    return Constraint(f"GreaterThan({low})", lambda x: x > low)


def integer_interval(low: Any, high: Any) -> Constraint:
    """Whole numbers from low to high."""
    return Constraint(
        f"IntegerInterval({low}, {high})",
        lambda x: (x % 1 == 0) & (x >= low) & (x <= high),
        is_discrete=True,
    )


def _is_simplex(x: Any) -> Any:
    return (x >= 0).all(-1) & ((x.sum(-1) - 1).abs() < 1e-6)


def _is_lower_cholesky(x: Any) -> Any:
    lower = (x.tril() == x).flatten(-2).all(-1)
    return lower & (x.diagonal(0, -2, -1) > 0).all(-1)


def _is_positive_definite(x: Any) -> Any:
    from minigrad import linalg

    alike = ((x - x.mT).abs() <= 1e-6).flatten(-2).all(-1)
    return alike & (linalg.eigvalsh(x.detach())[..., 0] > 0)


real = Constraint("Real()", lambda x: x == x)
real_vector = Constraint("RealVector()", lambda x: (x == x).all(-1), 1)
positive = Constraint("Positive()", lambda x: x > 0)
nonnegative = Constraint("NonNegative()", lambda x: x >= 0)
nonnegative_integer = Constraint(
    "NonNegativeInteger()", lambda x: (x % 1 == 0) & (x >= 0), is_discrete=True
)
unit_interval = Constraint("UnitInterval()", lambda x: (x >= 0) & (x <= 1))
boolean = Constraint("Boolean()", lambda x: (x == 0) | (x == 1), is_discrete=True)
simplex = Constraint("Simplex()", _is_simplex, 1)
one_hot = Constraint(
    "OneHot()", lambda x: ((x == 0) | (x == 1)).all(-1) & (x.sum(-1) == 1), 1, True
)
lower_cholesky = Constraint("LowerCholesky()", _is_lower_cholesky, 2)
positive_definite = Constraint("PositiveDefinite()", _is_positive_definite, 2)
