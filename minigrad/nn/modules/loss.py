"""PyTorch's import path of losses, and base classes for users' losses."""

from __future__ import annotations

from typing import Any

from minigrad.nn.functional.operands import legacy_reduction
from minigrad.nn.losses import *  # noqa: F403
from minigrad.nn.losses import __all__ as _losses
from minigrad.nn.module import Module

__all__ = [*_losses, "_Loss", "_WeightedLoss"]


class _Loss(Module):
    """Base class of users' losses. It has a ``reduction``."""

    def __init__(
        self, size_average: Any = None, reduce: Any = None, reduction: str = "mean"
    ) -> None:
        older = size_average is not None or reduce is not None
        self.reduction = legacy_reduction(size_average, reduce) if older else reduction


class _WeightedLoss(_Loss):
    """Base class of users' losses. It has a ``reduction``, and a buffer ``weight``."""

    def __init__(
        self,
        weight: Any = None,
        size_average: Any = None,
        reduce: Any = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.register_buffer("weight", weight)
