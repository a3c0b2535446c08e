"""Layers and losses as functions; names, arguments and meaning are PyTorch's."""

from __future__ import annotations

from minigrad.nn.functional import activation, dense, loss
from minigrad.nn.functional.activation import *  # noqa: F403 - each __all__ is a topic's operations
from minigrad.nn.functional.dense import *  # noqa: F403
from minigrad.nn.functional.loss import *  # noqa: F403

TOPICS = (activation, dense, loss)

__all__ = sorted(name for topic in TOPICS for name in topic.__all__)
