"""Recorded calls: a program, when it may run, and what a call leaves behind."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from minigrad._compile.arguments import filled, template
from minigrad._compile.program import Differs, Misfit, Program
from minigrad._compile.recorder import Recorder, Step
from minigrad._compile.surroundings import Guard
from minigrad._tensor.inplace import replace
from minigrad.nn.module import changes
from minigrad.runtime import recorders
from minigrad.runtime.native import call, kernels, signatures
from minigrad.tape.node import LEAF
from minigrad.tape.tensor_base import TensorBase, parent_of, wrap

__all__ = ["Recorded", "renumbered", "written"]

# Kernels that write into arrays that they are given, and the positions of these arrays.
_WRITES: dict[str, Callable[[Step], list[int]]] = {
    "write": lambda s: s.inputs[:1],
    "accumulate": lambda s: s.inputs[:1],
    "scatter_write": lambda s: s.inputs[:1],
    "norm_track": lambda s: s.inputs[:1],
    "norm_rows": lambda s: s.inputs[3:4],
    "norm_channels": lambda s: s.inputs[3:4],
    "cross_entropy": lambda s: s.inputs[3:4],
    "sgd_step": lambda s: [*s.inputs[: s.ints[0]], *s.inputs[2 * s.ints[0] :]],
    "adam_step": lambda s: [*s.inputs[: s.ints[0]], *s.inputs[2 * s.ints[0] :]],
    "rmsprop_step": lambda s: [*s.inputs[: s.ints[0]], *s.inputs[2 * s.ints[0] :]],
}


def written(step: Step) -> list[int]:
    """The slots whose memory a step writes, besides those it makes."""
    found = _WRITES.get(step.name)
    return [] if found is None else found(step)


class Recorded:
    """A recorded call: the program, the places of its arrays, and what the call leaves behind."""

    def __init__(
        self,
        attempt: Any,
        result: Any,
        outputs: list[Any],
        grads: list[tuple[Any, Any]],
        moved: list[Any],
        history: Any = None,
        living: Sequence[Any] = (),
    ) -> None:
        recorder, surroundings = attempt.recorder, attempt.surroundings
        self.kind = attempt.kind
        self.function = attempt.function
        self.guards: list[Guard] = surroundings.guards
        self.surroundings = surroundings
        self.changes = changes.count
        self.events = recorder.events
        self.leaves = [x for x in attempt.known if x._edge is LEAF]
        before = {
            id(x): grad for x, (_, _, grad) in zip(attempt.known, attempt.before, strict=True)
        }
        self.without_grad = [before[id(x)] is None for x in self.leaves]
        self.steps = recorder.steps
        self._lay_out(recorder, history.slots if history else [])
        numbers = {slot: k for k, slot in enumerate(self._order)}
        places = {id(x): k for k, x in enumerate(attempt.tensors)}
        self._results: list[int] = []
        first: dict[int, int] = {}
        self._outputs = [
            self._target(x, recorder, numbers, places)
            if first.setdefault(id(x), k) == k
            else ("same", first[id(x)], None)
            for k, x in enumerate(outputs)
        ]
        self._living = [self._result(x._h, recorder, numbers) for x in living]
        number = {id(x): k for k, x in enumerate(living)}
        for k, x in enumerate(outputs):
            if id(x) in number and self._outputs[k][0] == "made":
                self._outputs[k] = "living", number[id(x)], None
        self._grads = [
            (places.get(id(x), x), g is not None and self._result(g._h, recorder, numbers), g)
            for x, g in grads
        ]
        self._moved = [(places.get(id(x), x), self._result(x._h, recorder, numbers)) for x in moved]
        self._grads = [(x, slot, g is not None) for x, slot, g in self._grads]
        self._history = history
        self._kept = [self._kept_at(numbers[slot]) for slot in history.slots] if history else []
        self._single = isinstance(result, TensorBase)
        self._template = template(result)
        steps = [renumbered(step, numbers) for step in recorder.steps]
        arrays = [recorder.values[slot].array for slot in self._order[: self._given]]
        buffers = {x.buffer for x in arrays}
        held = [(k, slot) for k, step in enumerate(recorder.steps) for slot in written(step)]
        outer = [(k, s) for k, s in held if recorder.values[s].array.buffer in buffers]
        questions = [k for k, step in enumerate(steps) if step.expected >= 0]
        last = questions[-1] if questions else -1
        early = {recorder.values[s].array.buffer for k, s in outer if k < last}
        self._undo = [k for k, x in enumerate(arrays) if x.buffer in early]
        self.program = Program(len(self._order), arrays, steps, self._results, bool(outer))
        self.moves = [e for e in self.events if isinstance(e, Step)]
        self._needs_check = len(self.moves) < len(self.events)
        recorder.values.clear()

    # ---- layout ----

    def _lay_out(self, recorder: Recorder, kept: list[int]) -> None:
        """The order of slots: those given that are used or kept, by kind, then those made."""
        used: set[int] = set(kept)
        for step in recorder.steps:
            used.update(step.inputs, step.saved or ())
        by_kind: dict[str, list[int]] = {k: [] for k in _KINDS}
        made = []
        for slot, value in enumerate(recorder.values):
            if value.kind == "made":
                made.append(slot)
            elif slot in used or value.kind == "drawn":
                by_kind[value.kind].append(slot)
        source = {k: [recorder.values[s].source for s in slots] for k, slots in by_kind.items()}
        self._arguments: list[int] = source["argument"]
        self._captured: list[Any] = source["captured"]
        self._with_grad: list[Any] = source["grad"]
        self._constants = [recorder.values[s].array for s in by_kind["constant"]]
        given = [slot for k in _KINDS for slot in by_kind[k]]
        self._drawn = by_kind["drawn"]
        self._makes = {slot: recorder.values[slot].source for slot in self._drawn}
        self._given = len(given)
        self._order = given + made

    def _result(self, array: Any, recorder: Recorder, numbers: dict[int, int]) -> int:
        """The place of an array among the results of the program."""
        slot = recorder.slot_of(array)
        if slot is None or slot not in numbers:
            raise RuntimeError("[compile] a result is unknown")
        number = numbers[slot]
        if number not in self._results:
            self._results.append(number)
        return self._results.index(number)

    def _kept_at(self, number: int) -> int:
        """The place of a kept array among those given and the results."""
        if number < self._given:
            return number
        if number not in self._results:
            self._results.append(number)
        return self._given + self._results.index(number)

    def _target(
        self, x: Any, recorder: Recorder, numbers: dict[int, int], places: dict[int, int]
    ) -> tuple[str, Any, Any]:
        if id(x) in places:
            return "argument", places[id(x)], None
        if id(x) in self.surroundings.tensors:
            return "captured", x, None
        return "made", self._result(x._h, recorder, numbers), x._edge

    # ---- does it fit? ----

    def difference(self, tensors: list[Any]) -> str | None:
        """What differs from the recorded call, besides the arrays; None if nothing does."""
        for guard in self.guards:
            if not guard.holds():
                return guard.difference()
        if changes.count != self.changes:
            if not self.surroundings.modules_hold():
                return self.surroundings.modules_difference()
            self.changes = changes.count
        for x, without in zip(self.leaves, self.without_grad, strict=True):
            if (x._grad is None) is not without or x._edge is not LEAF:
                return f"{self.surroundings.names.get(id(x), 'an argument')} has another grad"
        return None

    def misfit(self, tensors: list[Any]) -> str:
        """Which array is not as in the recorded call."""
        return "an array has another shape, dtype or layout, or shares other memory"

    # ---- running ----

    def run(self, tensors: list[Any], args: Any, kwargs: Any) -> Any:
        """The result of the program for these arguments."""
        given = [tensors[k]._h for k in self._arguments]
        given += [x._h for x in self._captured]
        given += [x._grad._h for x in self._with_grad]
        given += self._constants
        if self._needs_check and not self.program.accepts(given):
            raise Misfit
        ints: list[int] = []
        floats: list[float] = []
        notes = []
        done: list[Any] = []
        if self.events:
            moves = [step.move.renew() for step in self.moves]
            if None in moves:
                raise Misfit
            renewed = iter(moves)
            for event in self.events:
                if isinstance(event, Step):
                    next(renewed)
                    move = event.move.renew()
                    if move is None:
                        raise Misfit
                    notes.append(move.note)
                    _numbers_of(event, move, ints, floats)
                elif callable(event):
                    done.append(event())
                else:
                    x = self._makes[event]()
                    done.append(x)
                    given.append(x._h)
        undo = [(given[k], call(kernels.copy, given[k])) for k in self._undo]
        try:
            made = self.program.run(given, ints, floats)
        except Differs:
            for array, copy in undo:
                call(kernels.write, array, copy)
            return _redone(done, self.function, args, kwargs)
        for note in notes:
            if note is not None:
                note()
        return self._left_behind(given, made, tensors)

    def _left_behind(self, given: list[Any], made: list[Any], tensors: list[Any]) -> Any:
        for target, place, is_set in self._grads:
            x = tensors[target] if type(target) is int else target
            x._grad = wrap(made[place]) if is_set else None
        for target, place in self._moved:
            replace(tensors[target] if type(target) is int else target, made[place])
        living = []
        if self._history is not None:
            arrays = [*given, *made]
            ends = [tensors[x] if type(x) is int else x for x in self._history.ends]
            edges = self._history.edges(
                [arrays[k] for k in self._kept], [parent_of(x) for x in ends]
            )
            living = [wrap(made[k], edge) for k, edge in zip(self._living, edges, strict=True)]
        found = []
        for source, value, edge in self._outputs:
            if source == "made":
                found.append(wrap(made[value], edge))
            elif source == "living":
                found.append(living[value])
            elif source == "same":
                found.append(found[value])
            else:
                found.append(tensors[value] if source == "argument" else value)
        return found[0] if self._single else filled(self._template, found)


_KINDS = ("argument", "captured", "grad", "constant", "drawn")


def renumbered(step: Step, numbers: dict[int, int]) -> Step:
    """A step on other slots: ``numbers`` has those of a program by those of a recorder."""
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


def _numbers_of(step: Step, move: Any, ints: list[int], floats: list[float]) -> None:
    """The integers and floats of an optimizer's step, in the order of the recorded ones."""
    counts = iter(step.ints)
    takes = signatures[step.number].split(":")[0]
    options = iter(move.options)
    for kind in takes:
        if kind == "A":
            ints.append(next(counts))
        elif kind == "d":
            floats.append(float(next(options)))
        else:
            next(counts)
            ints.append(int(next(options)))


class _Redone:
    """Stands for a recorder while a function runs again: it draws what was drawn already."""

    def __init__(self, done: list[Any]) -> None:
        self.done = done

    def draw(self, make: Callable[[], Any]) -> Any:
        return self.done.pop(0) if self.done else make()

    repeat = draw

    def keep(self, x: Any) -> None:
        pass

    def step(self, move: Any) -> None:
        pass

    def give_up(self, op: str, why: str) -> None:
        pass


def _redone(done: list[Any], function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    redone = _Redone(done)
    recorders.own.recorder = redone
    recorders.running.append(redone)
    try:
        return function(*args, **kwargs)
    finally:
        recorders.running.remove(redone)
        recorders.own.recorder = None
