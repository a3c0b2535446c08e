"""Passes of the planner: each takes a plan and returns one that computes the same in less time.

A pass is a function of a :class:`~minigrad._compile.plan.Plan`. ``PASSES`` lists them in order.
What a step makes keeps its slot: a slot has the values of the recorded step that made it, at the
time of the step. A verified call compares by that. New slots are numbered after those of the plan.
"""

from __future__ import annotations

from collections.abc import Callable

from minigrad._compile.passes.fuse import fuse_elementwise
from minigrad._compile.passes.simplify import (
    drop_aliases,
    drop_copies,
    drop_unused,
    reuse_results,
    sum_into_new,
)
from minigrad._compile.plan import Plan

__all__ = ["PASSES"]

PASSES: dict[str, Callable[[Plan], Plan]] = {
    "drop_aliases": drop_aliases,
    "sum_into_new": sum_into_new,
    "drop_copies": drop_copies,
    "reuse_results": reuse_results,
    "drop_unused": drop_unused,
    "fuse_elementwise": fuse_elementwise,
}
