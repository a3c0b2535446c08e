"""The operations as functions, gathered: Tensor's methods and operators are these functions."""

from __future__ import annotations

from minigrad import elementwise, products, reductions, selection, shaping
from minigrad.elementwise import *  # noqa: F403 - each __all__ is the public operations of a topic
from minigrad.products import *  # noqa: F403
from minigrad.reductions import *  # noqa: F403
from minigrad.selection import *  # noqa: F403
from minigrad.shaping import *  # noqa: F403

TOPICS = (elementwise, reductions, shaping, selection, products)

# What does not start with a tensor, or means something else as a method.
NOT_METHODS = frozenset(("cat", "stack", "where"))

__all__ = sorted(name for topic in TOPICS for name in topic.__all__)
