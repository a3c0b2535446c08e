"""Kernels of a function beside the steps of its program: the first one that differs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from minigrad._compile.cost import title
from minigrad._compile.differences import copied, difference_of
from minigrad._compile.plan import Plan, is_view, reads, writes
from minigrad._compile.program import Differs, Misfit, Program
from minigrad._compile.recorder import NONE, Recorder, Step
from minigrad.runtime.native import kernels

__all__ = ["Located", "Run", "Watching", "first_difference_of", "name_at", "other_step"]


class Watching(Recorder):
    """A recorder that keeps a copy of what each step makes or writes, at the time of the step."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self._seen: dict[int, tuple[Step, dict[int, Any]]] = {}  # by id of the step, which it holds
        self._raw: set[int] = set()  # buffers that begin with whatever was in memory

    def _record(self, number: int, args: tuple[Any, ...], made: Any) -> None:
        count = len(self.steps)
        super()._record(number, args, made)
        for step in self.steps[count:]:
            if step.name == "empty":
                self._raw.add(self.values[step.outputs[0]].array.buffer)
            self._seen[id(step)] = (
                step,
                {slot: copied(self.values[slot].array) for slot in self._left_by(step)},
            )

    def _left_by(self, step: Step) -> list[int]:
        """The slots that a step makes or writes.

        A view of more elements than memory does not count, nor memory that begins with no values.
        """
        if is_view(step) and step.inputs:
            source, made = (self.values[k].array.size for k in (step.inputs[0], step.outputs[0]))
            if made > source:
                return []
        return [k for k in touched(step) if self.values[k].array.buffer not in self._raw]

    def seen(self, step: Step) -> dict[int, Any]:
        """The copies of a step's results, by slot."""
        return self._seen[id(step)][1] if id(step) in self._seen else {}


def touched(step: Step) -> list[int]:
    """The slots that a step makes or writes."""
    return [slot for slot in (*step.outputs, *writes(step)) if slot != NONE]


def _at(step: Step) -> str:
    """Where a step was recorded."""
    return "" if step.line is None else f" at {step.line[0]}:{step.line[1]}"


def called(step: Step) -> str:
    """The name of a step's kernel and its line."""
    return f"{title(step)}{_at(step)}"


def name_at(recorder: Recorder, slot: int | None) -> str:
    """The last kernel that made or wrote a slot's memory, and its line."""
    if slot is None:
        return ""
    root = recorder.values[slot].array.buffer
    for step in reversed(recorder.steps):
        if root in [recorder.values[k].array.buffer for k in touched(step)]:
            return called(step)
    return ""


# ---- is the function what was recorded? ----------------------------------------------------------


def other_step(recorded: Any, recorder: Recorder) -> str:
    """The first step that the function makes otherwise than in the recording, or "".

    A question that gets another answer ends the comparison: the program stops there too.
    """
    known: set[Any] = set()
    for number, (was, now) in enumerate(zip(recorded.steps, recorder.steps, strict=False)):
        if was.number != now.number:
            return f"kernel {number} was {called(was)} and is now {called(now)}"
        if was.move is None and (was.ints, list(map(float.hex, was.floats))) != (
            now.ints,
            list(map(float.hex, now.floats)),
        ):
            first, second = _other_numbers(was, now)
            return f"kernel {number}, {called(now)}, had {first} and has now {second}"
        text = _other_constant(recorded, recorder, was, now, known)
        if text:
            return f"kernel {number}, {called(now)}, {text}"
        if was.expected != now.expected:
            return ""
    if recorder.failed:
        return recorder.failed
    counts = len(recorded.steps), len(recorder.steps)
    if counts[0] != counts[1]:
        longer = recorded.steps if counts[0] > counts[1] else recorder.steps
        extra = longer[min(counts)]
        return (
            f"it ran {counts[0]} kernels and runs {counts[1]} now; only one of both has "
            f"{called(extra)}"
        )
    return ""


def _other_numbers(was: Step, now: Step) -> tuple[Any, Any]:
    if was.ints != now.ints:
        return was.ints, now.ints
    pairs = zip(was.floats, now.floats, strict=True)
    return next(pair for pair in pairs if float.hex(pair[0]) != float.hex(pair[1]))


def _other_constant(
    recorded: Any, recorder: Recorder, was: Step, now: Step, known: set[Any]
) -> str:
    sources = recorded.memo.sources
    pairs = zip((*was.inputs, *(was.saved or ())), (*now.inputs, *(now.saved or ())), strict=False)
    for first, second in pairs:
        if NONE in (first, second) or (first, second) in known:
            continue
        known.add((first, second))
        kind, source = sources[first]
        value = recorder.values[second]
        if kind != "constant" or value.kind != "constant":
            continue
        array = value.array if value.source is None else value.source
        text = difference_of(source, array)
        if text is not None:
            return "takes a constant that changed: " + text.replace(
                "function has", "function now has"
            )
    return ""


# ---- the first step that differs -----------------------------------------------------------------


class Run(NamedTuple):
    """A run of a plan: what was recorded, the plan, and what a run is given.

    ``order`` has the recorder's slots by their number before planning.
    """

    recorded: list[Step]
    order: list[int]
    plan: Plan
    given: list[Any]
    ints: list[int]
    floats: list[float]
    writes: bool


class Located(NamedTuple):
    """A step of a plan that differs from the function's kernel, and what differs."""

    step: Step
    text: str


class _Expected(NamedTuple):
    """The result that a step of a plan should make or write, and the function's kernel of it."""

    number: int
    slot: int
    kernel: Step
    array: Any


def first_difference_of(run: Run, recorder: Any) -> Located | None:
    """The first step of a plan that differs from the function's kernel.

    The plan runs with a copy after each step.
    """
    plan, ours = run.plan, _Kernels(run, recorder)
    steps: list[Step] = []
    taken: list[_Expected] = []
    slots = len(plan.layouts)
    for number, step in enumerate(plan.steps):
        steps.append(step)
        for one in ours.of(number, step):
            copy = slots + len(taken)
            steps.append(Step(kernels.copy, [one.slot], None, [], [], [copy]))
            taken.append(one)
    copies = range(slots, slots + len(taken))
    program = Program(slots + len(taken), run.given, steps, copies, run.writes)
    try:
        made = program.run(run.given, run.ints, run.floats)
    except (Differs, Misfit):
        return None
    for one, result in zip(taken, made, strict=True):
        text = difference_of(result, one.array)
        if text is not None:
            step, kernel = plan.steps[one.number], one.kernel
            same = step.number == kernel.number
            beside = _at(kernel) if same else f", where the function calls {called(kernel)}"
            place = f"step {one.number} of {len(plan.steps)}{_which(step, one.slot)}"
            missing = ours.missing_before(kernel)
            more = "" if missing is None else f". The program lacks {called(missing)}"
            return Located(step, f"{title(step)}{beside} ({place}): {text}{more}")
    return None


def _which(step: Step, slot: int) -> str:
    """Which output or written input of a step a slot is."""
    if slot in step.outputs:
        return f", output {step.outputs.index(slot)}" if len(step.outputs) > 1 else ""
    return f", what it writes into input {step.inputs.index(slot)}"


class _Kernels:
    """The kernels of the function, which the steps of a plan are compared with.

    A step that makes a slot is the kernel that makes the recorder's slot. Steps that write meet the
    writing kernels in order.
    """

    def __init__(self, run: Run, recorder: Any) -> None:
        self.run, self.recorder = run, recorder
        self.before = [run.order[k] if k < len(run.order) else None for k in run.plan.origins]
        for step in run.plan.steps:  # copies of constants stand for the constants
            if step.number == kernels.copy and self.before[step.outputs[0]] is None:
                self.before[step.outputs[0]] = self.before[step.inputs[0]]
        self.made: dict[int, tuple[Step, Any]] = {}
        self.left: list[tuple[Step, Step]] = []  # writing steps of the recording, and kernels
        self.missing: list[Step] = []
        for was, now in zip(run.recorded, recorder.steps, strict=False):
            seen = recorder.seen(now)
            for first, second in zip(was.outputs, now.outputs, strict=False):
                if second in seen and first != NONE:
                    self.made[first] = now, seen[second]
            if writes(was):
                self.left.append((was, now))

    def of(self, number: int, step: Step) -> Iterator[_Expected]:
        """The results that a step should make and write, as far as they are known."""
        for slot in step.outputs:
            before = None if slot == NONE else self.before[slot]
            if before is not None and before in self.made:
                yield _Expected(number, slot, *self.made[before])
        written = writes(step)
        kernel = self._writing(step, written) if written else None
        if kernel is not None:
            seen = self.recorder.seen(kernel)
            for slot, other in zip(written, writes(kernel), strict=False):
                array = seen.get(other)
                if array is not None and array.shape == self.run.plan.layouts[slot].shape:
                    yield _Expected(number, slot, kernel, array)

    def _writing(self, step: Step, written: list[int]) -> Step | None:
        """The kernel that a writing step is, if that is sure. Those before are missing in the plan.

        It writes the same slots, or is the only one of its line.
        """
        slots = [self.before[slot] for slot in written]
        alike = [
            place
            for place, (was, _) in enumerate(self.left)
            if (was.number, was.line) == (step.number, step.line)
        ]
        same = [place for place in alike if writes(self.left[place][0]) == slots]
        if not alike:
            return None
        place = (same or alike)[0]
        self.missing += [now for _, now in self.left[:place]]
        kernel = self.left[place][1]
        del self.left[: place + 1]
        return kernel if same or len(alike) == 1 else None

    def missing_before(self, kernel: Step) -> Step | None:
        """The last kernel before this one that writes memory it reads, and that the plan lacks.

        Sums in place do not count: a pass makes new arrays of them.
        """
        values = self.recorder.values
        buffers = {values[slot].array.buffer for slot in reads(kernel)}
        missing = [*self.missing, *[now for _, now in self.left]]
        order = {id(step): place for place, step in enumerate(self.recorder.steps)}
        found = [
            step
            for step in missing
            if step.number != kernels.accumulate
            and order[id(step)] < order[id(kernel)]
            and any(values[slot].array.buffer in buffers for slot in writes(step))
        ]
        return found[-1] if found else None
