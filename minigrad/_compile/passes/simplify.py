"""Passes that leave steps out: copies, repeated steps, and steps whose results nobody reads."""

from __future__ import annotations

from typing import Any

from minigrad._compile.plan import Plan, is_effect, is_view, reads, with_slots, writes
from minigrad._compile.recorder import NONE, Step

__all__ = ["drop_copies", "drop_unused", "reuse_results"]


def drop_copies(plan: Plan) -> Plan:
    """Leave out copies of contiguous arrays that the program made and that nobody else reads.

    The recorder holds every array, so the tape copies gradients that it would hand over.
    """
    uses, given, written = plan.uses(), plan.given_roots(), _written_roots(plan)
    results = {plan.layouts[slot].root for slot in plan.results}
    shared: dict[int, int] = {}  # root -> how many arrays that the program makes lie there
    for step in plan.steps:
        for slot in step.outputs:
            if slot != NONE:
                shared[plan.layouts[slot].root] = shared.get(plan.layouts[slot].root, 0) + 1
    to: dict[int, int] = {}
    steps = []
    for step in plan.steps:
        if step.name == "copy":
            (source,), (copy,) = step.inputs, step.outputs
            layout = plan.layouts[source]
            alone = (
                layout.contiguous
                and not layout.weak
                and layout.root not in given
                and layout.root not in written
                and layout.root not in results
                and plan.layouts[copy].root not in written
                and shared.get(layout.root) == 1
                and len(uses[source]) == 1
            )
            if alone:
                to[copy] = to.get(source, source)
                continue
        steps.append(step)
    return plan.renamed(to, steps)


def _written_roots(plan: Plan) -> set[int]:
    return {plan.layouts[slot].root for step in plan.steps for slot in writes(step)}


def reuse_results(plan: Plan) -> Plan:
    """Compute equal steps on equal arrays once, where nothing they touch is written or kept."""
    written = _written_roots(plan)
    kept = {plan.layouts[slot].root for slot in plan.results}
    known: dict[Any, list[int]] = {}
    to: dict[int, int] = {}
    steps = []
    for recorded in plan.steps:
        step = with_slots(recorded, to)
        roots = {plan.layouts[slot].root for slot in (*reads(step), *step.outputs) if slot != NONE}
        if (
            is_effect(step)
            or step.name in ("empty",)
            or roots & written
            or _made(plan, step) & kept
        ):
            steps.append(recorded)
            continue
        key = _key(step)
        before = known.get(key)
        if before is None:
            known[key] = step.outputs
            steps.append(recorded)
        else:
            to.update(zip(step.outputs, before, strict=True))
    return plan.renamed(to, steps)


def _made(plan: Plan, step: Step) -> set[int]:
    return {plan.layouts[slot].root for slot in step.outputs if slot != NONE}


def _key(step: Step) -> Any:
    saved = None if step.saved is None else tuple(step.saved)
    floats = tuple(map(float.hex, step.floats))
    return step.number, tuple(step.inputs), saved, tuple(step.ints), floats


def drop_unused(plan: Plan) -> Plan:
    """Leave out steps that only make arrays nobody reads."""
    needed = set(plan.results)
    effects = {plan.layouts[slot].root for slot in range(plan.given)}
    steps: list[Step] = []
    read_roots = {plan.layouts[slot].root for slot in plan.results}
    for step in reversed(plan.steps):
        outputs = [slot for slot in step.outputs if slot != NONE]
        used = any(slot in needed for slot in outputs)
        touched = {plan.layouts[slot].root for slot in writes(step)}
        matters = bool(touched & (effects | read_roots)) if touched else is_effect(step)
        if used or matters:
            steps.append(step)
            needed.update(reads(step))
            read_roots.update(plan.layouts[slot].root for slot in reads(step))
            if is_view(step):
                read_roots.update(plan.layouts[slot].root for slot in outputs)
    return plan.with_steps(steps[::-1])
