"""The backward pass that runs in this thread: how deep it is inside others, and its number."""

from __future__ import annotations

from _thread import _local

from minigrad.runtime.accelerator import speed

__all__ = ["Passes", "pass_depth", "pass_number", "passes"]


class Passes(_local):
    """Counts of the backward passes of a thread."""

    def __init__(self) -> None:
        self.depth = 0  # how many run inside one another; 0 for none
        self.number = 0  # of the innermost, which no other one of the thread has; 0 for none
        self.begun = 0  # so far


passes = Passes()


def pass_depth() -> int:
    """How deep the backward pass that calls a rule now is inside others; 0 for none."""
    return passes.depth


def pass_number() -> int:
    """Its number, which no other backward pass of the thread has."""
    return passes.number


if speed is not None:
    pass_depth, pass_number = speed.pass_depth, speed.pass_number
