"""The backward passes of this thread: the depth of nesting, and the number of the innermost."""

from __future__ import annotations

from _thread import _local

from minigrad.runtime.accelerator import speed

__all__ = ["Passes", "pass_depth", "pass_number", "passes"]


class Passes(_local):
    """Counts of the backward passes of a thread."""

    def __init__(self) -> None:
        self.depth = 0  # passes nested in one another; 0: none runs
        self.number = 0  # number of the innermost pass, unique in the thread; 0: none runs
        self.begun = 0  # passes begun so far


passes = Passes()


def pass_depth() -> int:
    """The depth of nesting of the running backward pass; 0 if none runs."""
    return passes.depth


def pass_number() -> int:
    """The number of the running backward pass, unique in its thread."""
    return passes.number


if speed is not None:
    pass_depth, pass_number = speed.pass_depth, speed.pass_number
