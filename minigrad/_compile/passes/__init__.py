"""Passes of the planner: each takes a plan and returns one that computes the same in less time.

A pass is a function of a :class:`~minigrad._compile.plan.Plan`. ``PASSES`` lists them in order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from minigrad._compile.passes.fuse import fuse_elementwise
from minigrad._compile.passes.simplify import (
    drop_aliases,
    drop_copies,
    drop_unused,
    reuse_results,
    sum_into_new,
)
from minigrad._compile.plan import Layout, Plan, own_constants
from minigrad._compile.recorder import Step
from minigrad.runtime.native import Array

__all__ = ["PASSES", "planned"]

PASSES: dict[str, Callable[[Plan], Plan]] = {
    "drop_aliases": drop_aliases,
    "sum_into_new": sum_into_new,
    "drop_copies": drop_copies,
    "reuse_results": reuse_results,
    "drop_unused": drop_unused,
    "fuse_elementwise": fuse_elementwise,
}


def planned(
    arrays: Sequence[Array],
    given: int,
    steps: Sequence[Step],
    results: Sequence[int],
    constants: Sequence[int],
) -> Plan:
    """The plan of recorded steps, after all passes.

    ``arrays`` are those of all slots, as they were in the recording. ``constants`` are the given
    slots whose arrays are always the same.
    """
    numbers = {k: arrays[k].item() for k in constants if arrays[k].weak and not arrays[k].ndim}
    layouts = tuple([Layout.of(x) for x in arrays])
    plan = Plan(layouts, given, tuple(steps), tuple(results), numbers)
    plan = own_constants(plan, constants)
    for improve in PASSES.values():
        plan = improve(plan)
    return plan
