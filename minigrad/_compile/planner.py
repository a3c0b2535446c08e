"""The planner: from the steps of a recording to a plan that all passes have improved."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from minigrad._compile.passes import PASSES
from minigrad._compile.plan import Layout, Plan, compact, own_constants
from minigrad._compile.recorder import Recorder, Step

__all__ = ["improved", "planned"]


def planned(
    recorder: Recorder,
    order: list[int],
    given: int,
    constants: Sequence[int],
    numbers: dict[int, int],
    results: Sequence[int],
    without: Collection[str] = (),
) -> Plan:
    """The plan of what was recorded, after all passes but those ``without`` which it is made.

    ``order`` has the recorder's slots, the given ones first, and ``numbers`` their places there.
    """
    arrays = [recorder.values[slot].array for slot in order]
    plan = Plan(
        tuple([Layout.of(x) for x in arrays]),
        given,
        tuple([_renumbered(step, numbers) for step in recorder.steps]),
        tuple(results),
        {k: arrays[k].item() for k in constants if arrays[k].weak and not arrays[k].ndim},
    )
    return improved(plan, constants, without)


def improved(start: Plan, constants: Sequence[int], without: Collection[str]) -> Plan:
    """A plan after all passes but those ``without`` which it is made."""
    plan, counts = own_constants(start, constants), dict[str, int]()
    for name, improve in PASSES.items():
        if name not in without:
            before, plan = len(plan.steps), improve(plan)
            counts[name] = before - len(plan.steps)
    return replace(compact(plan), start=start, counts=counts)


def _renumbered(step: Step, numbers: dict[int, int]) -> Step:
    to = {**numbers, -1: -1}
    return Step(
        step.number,
        [to[slot] for slot in step.inputs],
        None if step.saved is None else [to[slot] for slot in step.saved],
        step.ints,
        step.floats,
        [to[slot] for slot in step.outputs],
        step.expected,
        step.line,
        step.move,
    )
