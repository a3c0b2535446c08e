"""Dropout layers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from minigrad.functions.arguments import real
from minigrad.nn import functional as F  # noqa: N812 - its usual name
from minigrad.nn.module import Module

if TYPE_CHECKING:
    from minigrad._tensor import Tensor

__all__ = ["AlphaDropout", "Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "FeatureAlphaDropout"]


class Dropout(Module):
    """:func:`minigrad.nn.functional.dropout` in training, nothing in evaluation.

    Raises ValueError unless ``p`` is a probability.

    >>> import minigrad as mg
    >>> mg.nn.Dropout(0.2).eval()(mg.ones(3)).tolist()
    [1.0, 1.0, 1.0]
    """

    _function = staticmethod(F.dropout)

    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        op = type(self).__name__
        if not 0.0 <= real(op, "p", p) <= 1.0:
            raise ValueError(f"[{op}] p is {p}, but a probability is between 0 and 1")
        self.p = p
        self.inplace = inplace

    def forward(self, x: Tensor) -> Tensor:
        """Apply dropout to x."""
        return self._function(x, self.p, self.training, self.inplace)

    def extra_repr(self) -> str:
        """The arguments."""
        return f"p={self.p}, inplace={self.inplace}"


class Dropout1d(Dropout):
    """:func:`minigrad.nn.functional.dropout1d` in training, nothing in evaluation."""

    _function = staticmethod(F.dropout1d)


class Dropout2d(Dropout):
    """:func:`minigrad.nn.functional.dropout2d` in training, nothing in evaluation."""

    _function = staticmethod(F.dropout2d)


class Dropout3d(Dropout):
    """:func:`minigrad.nn.functional.dropout3d` in training, nothing in evaluation."""

    _function = staticmethod(F.dropout3d)


class AlphaDropout(Dropout):
    """:func:`minigrad.nn.functional.alpha_dropout` in training, nothing in evaluation."""

    _function = staticmethod(F.alpha_dropout)


class FeatureAlphaDropout(Dropout):
    """:func:`minigrad.nn.functional.feature_alpha_dropout` in training, nothing in evaluation."""

    _function = staticmethod(F.feature_alpha_dropout)
