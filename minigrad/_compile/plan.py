"""Plans: the steps of a recorded call before they become a program, and what is known of arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from minigrad._compile.recorder import NONE, Step
from minigrad.runtime.native import Array, kernels, names, signatures

__all__ = [
    "Layout",
    "Plan",
    "compact",
    "is_effect",
    "is_view",
    "own_constants",
    "reads",
    "with_slots",
    "writes",
]


class Layout(NamedTuple):
    """Dtype, shape and memory of an array. Arrays on one buffer have the same ``root``."""

    dtype: int
    shape: tuple[int, ...]
    contiguous: bool
    weak: bool
    root: int

    @classmethod
    def of(cls, array: Array) -> Layout:
        """The layout of an array of the recording."""
        return cls(array.dtype, array.shape, array.contiguous, bool(array.weak), array.buffer)


@dataclass(frozen=True)
class Plan:
    """Steps on slots. The first ``given`` slots are handed over; ``results`` are kept."""

    layouts: tuple[Layout, ...]
    given: int
    steps: tuple[Step, ...]
    results: tuple[int, ...]
    numbers: Mapping[int, float]  # the values of Python's numbers, by slot
    origins: tuple[int, ...] = ()  # for each slot its number before ``compact``
    start: Plan | None = None  # the plan before the passes
    counts: Mapping[str, int] = field(default_factory=dict)  # steps that each pass took away

    def with_steps(self, steps: Sequence[Step]) -> Plan:
        """The same plan with other steps."""
        return replace(self, steps=tuple(steps))

    def renamed(self, to: dict[int, int], steps: Sequence[Step]) -> Plan:
        """These steps, and the results, with other slots in place of some."""
        results = tuple([to.get(slot, slot) for slot in self.results])
        return replace(self, steps=tuple([with_slots(s, to) for s in steps]), results=results)

    def uses(self) -> dict[int, list[int]]:
        """For each slot the numbers of the steps that read it."""
        found: dict[int, list[int]] = {}
        for k, step in enumerate(self.steps):
            for slot in reads(step):
                found.setdefault(slot, []).append(k)
        return found

    def given_roots(self) -> set[int]:
        """The buffers of given arrays."""
        return {layout.root for layout in self.layouts[: self.given]}


def with_slots(step: Step, to: dict[int, int]) -> Step:
    """A step that reads other slots in place of some."""
    saved = None if step.saved is None else [to.get(slot, slot) for slot in step.saved]
    return replace(step, inputs=[to.get(slot, slot) for slot in step.inputs], saved=saved)


def reads(step: Step) -> list[int]:
    """The slots that a step reads."""
    return [slot for slot in (*step.inputs, *(step.saved or ())) if slot != NONE]


# Kernels that write into arrays that they are given, and which arrays these are.
_FIRST = slice(0, 1)
_STATISTICS = slice(3, 4)
_WRITTEN: dict[str, Any] = {
    **dict.fromkeys(("write", "accumulate", "scatter_write", "norm_track"), _FIRST),
    **dict.fromkeys(("norm_rows", "norm_channels", "cross_entropy"), _STATISTICS),
}
_STEPS = ("sgd_step", "adam_step", "rmsprop_step")


def writes(step: Step) -> list[int]:
    """The slots whose memory a step writes, besides those that it makes."""
    name = step.name
    if name in _STEPS:  # all but the gradients, which come second
        count = step.ints[0]
        return [s for s in (*step.inputs[:count], *step.inputs[2 * count :]) if s != NONE]
    return [s for s in step.inputs[_WRITTEN.get(name, slice(0))] if s != NONE]


def is_effect(step: Step) -> bool:
    """True if a step does more than make its results: it writes, asks or checks."""
    return signatures[step.number][-1] in "s?" or bool(writes(step))


_VIEWS = frozenset(number for number, name in enumerate(names) if name.startswith("view_"))


def is_view(step: Step) -> bool:
    """True if the result of a step shares memory with its input, or may."""
    return step.number in _VIEWS or step.name == "reshape"


def own_constants(plan: Plan, constants: Sequence[int]) -> Plan:
    """Copy constants that a run would hand out, or write into, at the start of each run.

    Views that the program makes of such a constant lie on the copy.
    """
    exposed = {plan.layouts[slot].root for slot in plan.results}
    exposed |= {plan.layouts[slot].root for step in plan.steps for slot in writes(step)}
    layouts, copies, to = list(plan.layouts), [], dict[int, int]()
    roots: dict[int, int] = {}
    for slot in constants:
        root = layouts[slot].root
        if root in exposed:
            to[slot] = len(layouts)
            roots[root] = -len(layouts)
            layouts.append(layouts[slot]._replace(contiguous=True))
            copies.append(Step(kernels.copy, [slot], None, [], [], [to[slot]]))
    if not copies:
        return plan
    for slot in range(plan.given, len(layouts)):
        root = layouts[slot].root
        layouts[slot] = layouts[slot]._replace(root=roots.get(root, root))
    made = replace(plan, layouts=tuple(layouts)).renamed(to, plan.steps)
    return made.with_steps([*copies, *made.steps])


def compact(plan: Plan) -> Plan:
    """Number the slots that are left from 0 on, those given first."""
    used = dict.fromkeys([*range(plan.given), *plan.results])
    for step in plan.steps:
        used.update(dict.fromkeys([*reads(step), *[slot for slot in step.outputs if slot != NONE]]))
    to = {slot: k for k, slot in enumerate(used)} | {NONE: NONE}
    steps = [
        replace(with_slots(step, to), outputs=[to[slot] for slot in step.outputs])
        for step in plan.steps
    ]
    return replace(
        plan,
        layouts=tuple([plan.layouts[slot] for slot in used]),
        steps=tuple(steps),
        results=tuple([to[slot] for slot in plan.results]),
        numbers={to[slot]: value for slot, value in plan.numbers.items() if slot in to},
        origins=tuple(used),
    )
