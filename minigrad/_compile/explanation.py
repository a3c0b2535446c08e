"""Explanations: what a compiled function recorded, as fields and as a text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from minigrad._compile.cost import cost_of, members_of, peak_scratch, size_of
from minigrad._compile.differences import look_of
from minigrad._compile.plan import Layout, Plan, is_view
from minigrad._compile.recorded import Recorded
from minigrad._compile.recorder import NONE, Step
from minigrad.runtime.dtypes import by_code

__all__ = ["Explanation", "ProgramExplanation", "StepExplanation"]


@dataclass(frozen=True)
class StepExplanation:
    """One step of a program: its kernel, the arrays it reads and makes, and what it costs.

    Arrays are texts such as ``float32(3, 4)``, and ``float32`` for Python's numbers. ``str`` of a
    step is a line.
    """

    kernel: str
    members: list[str]  # the kernels in a chain; empty for other steps
    inputs: list[str]
    outputs: list[str]
    bytes: int  # read and written
    flops: int
    line: tuple[str, int] | None  # of the user's program

    @classmethod
    def of(cls, plan: Plan, step: Step) -> StepExplanation:
        """The explanation of a step of a plan."""
        read, made = (
            [_look(plan.layouts[slot]) for slot in slots if slot != NONE]
            for slots in ([*step.inputs, *(step.saved or ())], step.outputs)
        )
        return cls(step.name, members_of(step), read, made, *cost_of(plan, step), step.line)

    def __str__(self) -> str:
        name = f"{self.kernel} ({', '.join(self.members)})" if self.members else self.kernel
        arrays = f"{', '.join(self.inputs)} -> {', '.join(self.outputs) or 'none'}"
        line = "" if self.line is None else f"  {self.line[0]}:{self.line[1]}"
        return f"{name}  {arrays}{line}"


@dataclass(frozen=True)
class ProgramExplanation:
    """One program: its kernels before and after planning, its costs, and what it depends on.

    Costs are those of one run. FLOPs count as in :class:`minigrad.profile`: a multiplication and an
    addition are two. The memory that a kernel needs inside is not counted.
    """

    recorded: int  # kernels that were recorded
    kernels: dict[str, int]  # kernels that a run calls, and how often
    fusions: list[list[str]]  # the kernels in each chain
    passes: dict[str, int]  # steps that each pass of the planner took away
    without: list[str]  # passes that were switched off
    bytes: int  # of the arrays that a run makes
    moved: int  # bytes that a run reads and writes
    flops: int  # floating-point operations of a run
    scratch: int  # bytes: the most that live at once of arrays that a run makes and drops
    constants: list[str]  # dtypes and shapes of the arrays that were frozen
    numbers: list[float]  # Python's numbers that were frozen
    questions: int  # questions about values, whose answers were frozen
    draws: int  # random tensors and steps of schedules
    guards: list[str]  # the places that are compared for each call
    before: list[StepExplanation] = field(repr=False)  # recorded steps, without folded constants
    steps: list[StepExplanation] = field(repr=False)  # the steps that a run makes
    backward: list[ProgramExplanation]  # passes by which results were differentiated outside

    @classmethod
    def of(cls, recorded: Recorded) -> ProgramExplanation:
        """The explanation of a recorded call."""
        history, without = recorded._history, sorted(recorded.options.without)
        passes = [] if history is None else history.passes()
        backward = [
            cls._of(one.plan, one.steps, without, _constants(one.plan, one.constants))
            for one in passes
        ]
        return cls._of(
            recorded.plan,
            recorded.steps,
            without,
            list(recorded.constants),
            draws=len(recorded.acts),
            guards=[name for guard in recorded.guards for name in guard.names],
            backward=backward,
        )

    @classmethod
    def _of(
        cls,
        plan: Plan,
        recorded: Sequence[Step],
        without: list[str],
        constants: list[str],
        draws: int = 0,
        guards: Sequence[str] = (),
        backward: Sequence[ProgramExplanation] = (),
    ) -> ProgramExplanation:
        start = plan.start or plan
        steps = [StepExplanation.of(plan, step) for step in plan.steps]
        made = {slot for step in plan.steps for slot in step.outputs if slot != NONE}
        made -= {slot for s in plan.steps if is_view(s) for slot in s.outputs}
        read = {slot for step in plan.steps for slot in step.inputs}
        return cls(
            recorded=len(recorded),
            kernels=dict(Counter(step.name for step in plan.steps).most_common()),
            fusions=[step.members for step in steps if step.members],
            passes={"fold_constants": len(recorded) - len(start.steps), **plan.counts},
            without=without,
            bytes=sum([size_of(plan.layouts[slot]) for slot in made]),
            moved=sum([step.bytes for step in steps]),
            flops=sum([step.flops for step in steps]),
            scratch=peak_scratch(plan),
            constants=constants,
            numbers=[value for slot, value in plan.numbers.items() if slot in read],
            questions=sum([step.expected >= 0 for step in plan.steps]),
            draws=draws,
            guards=list(guards),
            before=[StepExplanation.of(start, step) for step in start.steps],
            steps=steps,
            backward=list(backward),
        )

    def listing(self, planned: bool = True) -> str:
        """The steps of a run, a line for each; those that were recorded if not ``planned``.

        A line has the number of the step, its kernel, the dtypes and shapes of the arrays that it
        reads and makes, and the line of the program that called it.
        """
        steps = self.steps if planned else self.before
        return "\n".join([f"{number:4} {step}" for number, step in enumerate(steps)])

    def __str__(self) -> str:
        kernels = ", ".join(
            [f"{name} x {count}" if count > 1 else name for name, count in self.kernels.items()]
        )
        sizes = ", ".join([f"{len(members)} kernels" for members in self.fusions])
        passes = [f"{name} {count}" for name, count in self.passes.items()]
        passes += [f"{name} is off" for name in self.without]
        numbers = ", ".join(map(repr, self.numbers))
        lines = [
            f"{sum(self.kernels.values())} kernels of {self.recorded} recorded: {kernels}",
            f"{len(self.fusions)} chains: {sizes or 'none'}",
            f"steps that passes took away: {', '.join(passes) or 'none'}",
            f"{self.bytes:,} bytes are made, {self.moved:,} read and written in a run",
            f"{self.flops:,} floating-point operations in a run",
            f"{self.scratch:,} bytes of scratch memory at most",
            f"{len(self.constants)} constants: {', '.join(self.constants) or 'none'}",
            f"{len(self.numbers)} numbers: {numbers or 'none'}",
            f"{self.questions} questions about values",
            f"{self.draws} draws and steps of schedules",
            f"{len(self.guards)} guards: {', '.join(self.guards) or 'none'}",
        ]
        for number, one in enumerate(self.backward):
            lines += [f"backward pass {number}:", str(one)]
        return "\n".join(["  " + line for text in lines for line in text.split("\n")])


@dataclass(frozen=True)
class Explanation:
    """Result of ``explain()`` of a compiled function; ``str`` of it is the text."""

    name: str
    recordings: int
    reasons: list[str]
    programs: list[ProgramExplanation] = field(default_factory=list)

    def __str__(self) -> str:
        lines = [f"{self.name}: {self.recordings} recordings, {len(self.programs)} programs"]
        lines += [f"recorded again: {reason}" for reason in self.reasons]
        for number, program in enumerate(self.programs):
            lines += [f"program {number}:", str(program)]
        return "\n".join(lines)


def _constants(plan: Plan, slots: range) -> list[str]:
    """The dtypes and shapes of constants that are not Python's numbers."""
    return [look_of(plan.layouts[k]) for k in slots if not plan.layouts[k].weak]


def _look(layout: Layout) -> str:
    """The dtype and shape of an array; for Python's numbers the dtype alone."""
    return by_code[layout.dtype].name if layout.weak and not layout.shape else look_of(layout)
