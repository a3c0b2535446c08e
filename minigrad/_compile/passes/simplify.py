"""Passes that leave steps out: copies, repeated steps, and steps whose results nobody reads."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

from minigrad._compile.plan import Plan, is_effect, is_view, reads, with_slots, writes
from minigrad._compile.recorder import NONE, Step
from minigrad.runtime.native import kernels

__all__ = ["drop_aliases", "drop_copies", "drop_unused", "reuse_results", "sum_into_new"]


def drop_aliases(plan: Plan) -> Plan:
    """Read arrays themselves in place of views of all of them, as ``detach`` makes."""
    to: dict[int, int] = {}
    steps = []
    for step in plan.steps:
        if step.name == "view_alias" and step.outputs[0] not in plan.results:
            source = step.inputs[0]
            to[step.outputs[0]] = to.get(source, source)
        else:
            steps.append(step)
    return plan.renamed(to, steps)


def sum_into_new(plan: Plan) -> Plan:
    """Make sums of gradients new arrays, where they are written into memory of the program's own.

    A step that writes nothing can join a chain.
    """
    given = plan.given_roots()
    made = Counter(_root(plan, slot) for step in plan.steps for slot in step.outputs)
    others = Counter(
        _root(plan, slot)
        for step in plan.steps
        if step.name != "accumulate"
        for slot in writes(step)
    )
    layouts, to, steps = list(plan.layouts), dict[int, int](), []
    for recorded in plan.steps:
        step = with_slots(recorded, to)
        if step.name == "accumulate":
            first = recorded.inputs[0]
            root = plan.layouts[first].root
            if root not in given and made[root] == 1 and not others[root]:
                to[first] = len(layouts)
                layouts.append(plan.layouts[first]._replace(root=-len(layouts) - 1))
                step = replace(step, number=kernels.add, outputs=[to[first]])
        steps.append(step)
    results = tuple([to.get(slot, slot) for slot in plan.results])
    return replace(plan, layouts=tuple(layouts), steps=tuple(steps), results=results)


def drop_copies(plan: Plan) -> Plan:
    """Leave out copies of contiguous arrays of which neither the array nor the copy is written.

    The recorder holds every array, so the tape copies gradients that it would hand over. A copy
    that is a result stays, unless the program made the array and only copies it.
    """
    uses, written, given = plan.uses(), _written_roots(plan), plan.given_roots()
    results = {plan.layouts[slot].root for slot in plan.results}
    made = Counter(_root(plan, slot) for step in plan.steps for slot in step.outputs)
    to: dict[int, int] = {}
    steps = []
    for step in plan.steps:
        if step.name == "copy":
            (source,), (copy,) = step.inputs, step.outputs
            layout, root = plan.layouts[source], plan.layouts[copy].root
            free = layout.contiguous and not layout.weak and not {layout.root, root} & written
            only = (
                layout.root not in given | results
                and made[layout.root] == 1
                and len(uses[source]) == 1
            )
            if free and (root not in results or only):
                to[copy] = to.get(source, source)
                continue
        steps.append(step)
    return plan.renamed(to, steps)


def _root(plan: Plan, slot: int) -> int:
    return NONE if slot == NONE else plan.layouts[slot].root


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
            or step.move is not None
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
