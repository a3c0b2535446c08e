"""Optimizers, and schedules of their learning rates in :mod:`minigrad.optim.lr_scheduler`."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from minigrad.optim.optimizers import SGD, Adam, AdamW, Optimizer, RMSprop

if TYPE_CHECKING:
    from minigrad.optim import lr_scheduler

__all__ = ["SGD", "Adam", "AdamW", "Optimizer", "RMSprop", "lr_scheduler"]


def __getattr__(name: str) -> Any:
    if name not in ("lr_scheduler", "optimizer"):  # loaded when first asked for
        # Without an object Python adds no guess, as "divide" for "device".
        raise AttributeError(f"module {__name__!r} has no {name}", name=name, obj=None)
    return import_module(f"minigrad.optim.{name}")
