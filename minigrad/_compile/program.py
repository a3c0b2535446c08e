"""Programs: recorded steps in the form that C runs, and their runs.

The list of integers and the list of floats of a program are laid out in ``csrc/program/program.c``.
"""

from __future__ import annotations

from collections.abc import Sequence
from time import sleep
from typing import Any

from minigrad._compile.recorder import NONE, Step
from minigrad.runtime.native import Array, call, failure, ffi, kernels, lib, signatures

__all__ = ["Differs", "Misfit", "Program"]

_DONE, _PAUSED, _FAILED, _DIFFERS, _MISFIT, _BUSY, _AGAIN = range(7)


class Differs(Exception):  # noqa: N818 - no error: the function runs instead
    """A question about values was answered in another way than in the recording."""


class Misfit(Exception):  # noqa: N818 - no error: another program may fit
    """The arrays are not like those of the recording."""


class Program:
    """Steps on numbered arrays, of which the first are ``given`` for each run.

    The given arrays must look like those here. ``writes`` says whether their memory is written;
    then they must also share memory with one another as these do. ``results`` are the slots whose
    arrays a run keeps.
    """

    def __init__(
        self,
        slots: int,
        given: Sequence[Array],
        steps: Sequence[Step],
        results: Sequence[int],
        writes: bool,
    ) -> None:
        self.given = len(given)
        self.steps = list(steps)
        self.results = list(results)
        self.slots, self.writes = slots, writes
        live = [k for k, step in enumerate(self.steps) if step.move is not None]
        code: list[int] = [slots, len(given), len(self.steps)]
        numbers = [(k, place) for k in live for place in _numbers(self.steps[k])]
        code += [len(numbers)]
        code += [sum(len(self.steps[k].floats) for k in live)]
        code.append(int(writes))
        first: dict[int, int] = {}
        self.looks: list[tuple[int, tuple[int, ...], tuple[int, ...], int]] = []
        for k, array in enumerate(given):
            alias = first.setdefault(array.buffer, k)
            self.looks.append((array.dtype, array.shape, array.strides, alias))
            code += [array.dtype, array.ndim, *array.shape, *array.strides, alias]
        floats: list[float] = []
        for step, released in zip(self.steps, self._releases(), strict=True):
            code += [step.number, step.expected, len(step.inputs), *step.inputs]
            code += [0] if step.saved is None else [1, *step.saved]
            code += [len(step.ints), *step.ints, len(step.floats)]
            code += [len(step.outputs), *step.outputs, len(released), *released]
            floats += step.floats
        for k, place in numbers:
            code += [k, place]
        for k in live:
            for place in range(len(self.steps[k].floats)):
                code += [k, place]
        self.code, self.floats = code, floats
        self._pointer = _new(code, floats)
        self.address = int(ffi.cast("intptr_t", self._pointer))

    def _releases(self) -> list[list[int]]:
        """For each step the slots that no later step reads, which are not results or given."""
        kept = {*range(self.given), *self.results, NONE}
        found: list[list[int]] = []
        for step in reversed(self.steps):
            used = {*step.inputs, *(step.saved or ()), *step.outputs} - kept
            kept |= used
            found.append(sorted(used))
        return found[::-1]

    def accepts(self, given: list[Array]) -> bool:
        """True if the first given arrays are like those of the recording."""
        return bool(call(kernels.program_accepts, self.address, given))

    def run(self, given: list[Array], ints: list[int], floats: list[float]) -> list[Array]:
        """Run on these arrays and live numbers, and return the arrays of the results."""
        while call(kernels.program_run, self.address, given, ints, floats):
            if not self.is_busy():
                return self.finish()
            sleep(0)  # another thread runs the program
        return self._results()

    @staticmethod
    def is_busy() -> bool:
        """True if the last run of this thread did not begin, as another thread ran the program."""
        return bool(lib.mg_program_state() == _BUSY)

    def _results(self) -> list[Array]:
        try:
            return [call(kernels.program_take, self.address, slot) for slot in self.results]
        finally:
            call(kernels.program_end, self.address)

    def finish(self) -> list[Array]:
        """The results of a run that stopped. It goes on after a pause, and else is an error.

        Raises Misfit if the run did not begin, and Differs if a question was answered otherwise.
        """
        state = lib.mg_program_state()
        if state in (_MISFIT, _BUSY, _AGAIN):
            raise Misfit
        try:
            while state == _PAUSED:
                if not call(kernels.program_resume, self.address):
                    return [call(kernels.program_take, self.address, slot) for slot in self.results]
                state = lib.mg_program_state()
            raise Differs if state == _DIFFERS else self._failure()
        finally:
            call(kernels.program_end, self.address)

    def _failure(self) -> Exception:
        """The error of the step that failed, as that of the call."""
        step = self.steps[self.stopped]
        args: list[Any] = []
        arrays, ints = iter(step.inputs), iter(step.ints)
        for kind in signatures[step.number].split(":")[0]:
            if kind in "asm":
                args.append(self._slot(next(arrays)))
            elif kind in "AS":
                args.append([self._slot(next(arrays)) for _ in range(next(ints))])
            elif kind in "IL":
                args.append([next(ints) for _ in range(next(ints))])
            elif kind in "ip":
                args.append(next(ints))
        return failure(step.number, tuple(args))

    @property
    def stopped(self) -> int:
        """The number of the step at which the last run stopped."""
        return int(lib.mg_program_at(self._pointer))

    def _slot(self, slot: int) -> Any:
        return None if slot == NONE else call(kernels.program_slot, self.address, slot)


def _numbers(step: Step) -> list[int]:
    """The places of an optimizer's integers, among which are lengths of lists of arrays."""
    takes = signatures[step.number].split(":")[0]
    return [i for i, kind in enumerate(takes.replace("d", "")) if kind == "i"]


def _new(code: list[int], floats: list[float]) -> Any:
    pointer = lib.mg_program_new(
        len(code), ffi.new("int64_t[]", code), len(floats), ffi.new("double[]", floats)
    )
    if not pointer:
        if lib.mg_error() == lib.MG_ENOMEM:
            raise MemoryError("[compile] no memory for a program")
        raise ValueError(f"[compile] no program: an error at number {lib.mg_error_detail(0)}")
    return ffi.gc(pointer, lib.mg_program_free)
