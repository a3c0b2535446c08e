"""Explanations: what a compiled function recorded, as fields and as a text."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from minigrad._compile.recorded import Recorded
from minigrad.runtime.dtypes import by_code

__all__ = ["Explanation", "ProgramExplanation"]


@dataclass(frozen=True)
class ProgramExplanation:
    """One program: its kernels before and after planning, and what it depends on."""

    recorded: int  # kernels that were recorded
    kernels: dict[str, int]  # kernels that a run calls, and how often
    bytes: int  # of the arrays that a run makes
    constants: list[str]  # dtypes and shapes of the arrays that were frozen
    draws: int  # random tensors and steps of schedules
    guards: list[str]  # the places that are compared for each call

    @classmethod
    def of(cls, recorded: Recorded) -> ProgramExplanation:
        """The explanation of a recorded call."""
        plan = recorded.plan
        kernels = Counter(step.name for step in plan.steps)
        made = {slot for step in plan.steps for slot in step.outputs if slot >= 0}
        views = {slot for s in plan.steps if s.name.startswith("view_") for slot in s.outputs}
        sizes = [_bytes(plan.layouts[slot]) for slot in made - views]
        return cls(
            len(recorded.steps),
            dict(kernels.most_common()),
            sum(sizes),
            list(recorded.constants),
            len(recorded.acts),
            [name for guard in recorded.guards for name in guard.names],
        )

    def __str__(self) -> str:
        kernels = ", ".join(
            [f"{name} x {count}" if count > 1 else name for name, count in self.kernels.items()]
        )
        lines = [
            f"{sum(self.kernels.values())} kernels of {self.recorded} recorded: {kernels}",
            f"{self.bytes} bytes are made in a run",
            f"{len(self.constants)} constants: {', '.join(self.constants) or 'none'}",
            f"{self.draws} draws and steps of schedules",
            f"{len(self.guards)} guards: {', '.join(self.guards) or 'none'}",
        ]
        return "\n".join(["  " + line for line in lines])


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


def _bytes(layout: Any) -> int:
    size = by_code[layout.dtype].itemsize
    for n in layout.shape:
        size *= n
    return int(size)
