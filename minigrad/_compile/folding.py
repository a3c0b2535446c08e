"""Constant folding: what a recording computes from constants alone becomes a constant."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from minigrad._compile.cost import size_of
from minigrad._compile.plan import is_effect, is_view, reads, writes
from minigrad._compile.recorder import NONE, Recorder, Step
from minigrad.runtime.native import Array

__all__ = ["fold_constants"]

# Bytes of an array up to which it is kept. A larger one is made anew, and its memory is shared.
MOST_BYTES = 1 << 20


def fold_constants(recorder: Recorder, results: Iterable[Array] = ()) -> None:
    """Turn arrays that depend on constants alone into constants, and drop the steps that made them.

    The recorder still holds each array. It has the values that the step made if no step writes into
    its memory. Memory of ``results`` is made anew for each run, since somebody may write into it.
    """
    values = recorder.values
    written = {values[slot].array.buffer for step in recorder.steps for slot in writes(step)}
    written |= {array.buffer for array in results}
    steps = []
    for step in recorder.steps:
        made = [slot for slot in step.outputs if slot != NONE]
        touched = {values[slot].array.buffer for slot in (*reads(step), *made)}
        known = all(values[slot].kind == "constant" for slot in reads(step))
        alive = is_effect(step) or step.move is not None or step.name == "empty" or not made
        if alive or not known or touched & written or not _is_small(recorder, step):
            steps.append(step)
            continue
        for slot in made:
            values[slot] = replace(values[slot], kind="constant")
    recorder.steps = steps


def _is_small(recorder: Recorder, step: Step) -> bool:
    made = [slot for slot in step.outputs if slot != NONE]
    return (
        is_view(step) or sum([size_of(recorder.values[slot].array) for slot in made]) <= MOST_BYTES
    )
