"""Recorded calls: a program, when it may run, and what a call leaves behind."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from minigrad._compile.arguments import filled, template
from minigrad._compile.passes import PASSES
from minigrad._compile.plan import Layout, Plan, own_constants, writes
from minigrad._compile.program import Differs, Misfit, Program
from minigrad._compile.recorder import Recorder, Step, place_of
from minigrad._compile.surroundings import Guard, first_difference
from minigrad._tensor.inplace import replace
from minigrad.nn.module import changes
from minigrad.runtime import recorders
from minigrad.runtime.accelerator import speed
from minigrad.runtime.batched import running as vmaps
from minigrad.runtime.dtypes import defaults
from minigrad.runtime.native import call, kernels
from minigrad.tape.apply import apply
from minigrad.tape.grad_mode import is_grad_enabled
from minigrad.tape.hooks import watchers
from minigrad.tape.node import LEAF, Node
from minigrad.tape.tensor_base import TensorBase, parent_of, result_type, wrap

__all__ = ["Recorded", "planned"]


class Recorded:
    """A recorded call: the program, the places of its arrays, and what the call leaves behind."""

    def __init__(
        self,
        attempt: Any,
        result: Any,
        outputs: list[Any],
        views: dict[int, tuple[Any, list[Any]]],
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
        places = {id(x): k for k, x in enumerate(attempt.tensors)}
        held = surroundings.tensors
        self._held = [(k, x if id(x) in held else None) for k, x in enumerate(attempt.tensors)]
        self._held_ids = set(held)
        self._shared = [[self._source(*one) for one in pair] for pair in recorder.shared]
        # Leaves among the arguments, by number, and captured tensors, each with two conditions:
        # whether it has no grad (None where that does not matter), and its edge.
        uses_grads = attempt.uses_grads or bool(grads)
        self.leaves = [
            (
                places.get(id(x), x),
                grad is None if uses_grads and edge is LEAF else None,
                ... if type(edge) is Node else edge,
            )
            for x, (_, edge, grad) in zip(attempt.known, attempt.before, strict=True)
            if edge is LEAF or id(x) not in places
        ]
        self.steps = recorder.steps
        self._places = places
        self._lay_out(recorder, history.slots if history else [])
        numbers = {slot: k for k, slot in enumerate(self._order)}
        self._results: list[int] = []
        self._living = [self._result(x._h, recorder, numbers) for x in living]
        number = {id(x): k for k, x in enumerate(living)}
        first = {id(x): k for k, x in reversed(list(enumerate(outputs)))}
        # Where each tensor comes from that is handed out: a word, a number or tensor, and more.
        self._outputs: list[tuple[str, Any, Any]] = []
        for k, x in enumerate(outputs):
            if first[id(x)] != k:
                self._outputs.append(("same", first[id(x)], None))
            elif id(x) in views:
                base, rows = views[id(x)]
                self._outputs.append(("view", first[id(base)], rows))
            elif id(x) in number:
                self._outputs.append(("living", number[id(x)], None))
            else:
                self._outputs.append(self._target(x, recorder, numbers, places))
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
        arrays = [recorder.values[slot].array for slot in self._order[: self._given]]
        plan = self._planned(recorder, numbers)
        given = plan.given_roots()
        places_of_writes = [
            (k, slot)
            for k, step in enumerate(plan.steps)
            for slot in writes(step)
            if plan.layouts[slot].root in given
        ]
        last = max([k for k, step in enumerate(plan.steps) if step.expected >= 0], default=-1)
        early = {plan.layouts[slot].root for k, slot in places_of_writes if k < last}
        self._undo = [k for k in range(self._given) if plan.layouts[k].root in early]
        self.program = Program(
            len(plan.layouts), arrays, plan.steps, plan.results, bool(places_of_writes)
        )
        self._acts = any(not isinstance(event, Step) for event in recorder.events)
        self.acts = [
            event if callable(event) else recorder.values[event].source
            for event in recorder.events
            if not isinstance(event, Step)
        ]
        self._events = [self._event(event, recorder) for event in recorder.events]
        recorder.values.clear()
        plain = len(attempt.kind[0]) == len(attempt.tensors) + 1 and attempt.kind[0][0] is tuple
        self._plain = plain and all(type(x) is result_type() for x in attempt.tensors)
        self._argument_edges = tuple([x._edge for x in attempt.tensors])
        self._records = is_grad_enabled()
        self.fast = self._accelerated()

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
        self._with_grad = [self._places.get(id(x), x) for x in source["grad"]]
        values = [recorder.values[s] for s in by_kind["constant"]]
        self._hidden = [recorder.values[s].array for s in by_kind["hidden"]]
        self._constants = [v.array if v.source is None else v.source for v in values]
        given = [slot for k in _KINDS for slot in by_kind[k]]
        self._drawn = by_kind["drawn"]
        self._given = len(given)
        self._order = given + made

    @staticmethod
    def _event(event: Any, recorder: Recorder) -> Event:
        if isinstance(event, Step):
            return _move(event)
        return _act(event if callable(event) else recorder.values[event].source)

    def _planned(self, recorder: Recorder, numbers: dict[int, int]) -> Plan:
        """The plan of the program, after all passes."""
        first = self._given - len(self._drawn) - len(self._constants)
        constants = range(first, first + len(self._constants))
        return planned(recorder, self._order, self._given, constants, numbers, self._results)

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

    def _source(self, kind: str, source: Any) -> Callable[[Sequence[Any]], Any]:
        """A function of the arguments that gives the array of a source."""
        if kind == "argument":
            return lambda tensors: tensors[source]._h
        if kind == "captured":
            return lambda tensors: source._h
        return lambda tensors: source._grad and source._grad._h

    def difference(self, tensors: list[Any]) -> str | None:
        """What differs from the recorded call, besides the arrays; None if nothing does."""
        for (k, own), x in zip(self._held, tensors, strict=True):
            if x is not own and (own is not None or id(x) in self._held_ids):
                return f"argument {k} is, or was, a tensor that the function also reaches"
        for pair in self._shared:
            one, other = [array(tensors) for array in pair]
            if one is None or other is None or place_of(one) != place_of(other):
                return "tensors that shared memory do so no longer"
        changed = first_difference(self.guards)
        if changed is not None:
            return changed
        if changes.count != self.changes:
            if not self.surroundings.modules_hold():
                return self.surroundings.modules_difference()
            self.changes = changes.count
            self.fast = self._accelerated()
        for target, without, edge in self.leaves:
            x = tensors[target] if type(target) is int else target
            if x._edge is not edge and not (edge is ... and type(x._edge) is Node):
                return f"{self._name(x)} requires grad in another way"
            if without is not None and (x._grad is None) is not without:
                return f"{self._name(x)} has another grad"
        return None

    def fits(self, tensors: list[Any]) -> bool:
        """True if these tensors look like those of the recorded call."""
        looks = [look[:3] for look in self.program.looks[: len(self._arguments)]]
        given = [tensors[k]._h for k in self._arguments]
        return looks == [(x.dtype, x.shape, x.strides) for x in given]

    def _name(self, x: Any) -> str:
        return self.surroundings.names.get(id(x), "an argument")

    def misfit(self, tensors: list[Any]) -> str:
        """Which array is not as in the recorded call."""
        return "an array has another shape, dtype or layout, or shares other memory"

    # ---- running ----

    def _accelerated(self) -> Callable[[tuple[Any, ...]], Any] | None:
        """The same run by the accelerator, for calls of tensors alone; None if it has none.

        The function returns Ellipsis, or NotImplemented if the program stopped: see replay.c.
        """
        if speed is None or not self._plain or self._acts or self._undo or self._moved:
            return None
        if self._shared or any(own is not None for _, own in self._held):
            return None
        if self._history is not None or any(x[0] in ("same", "view") for x in self._outputs):
            return None
        if any(edge is ... for *_, edge in self.leaves):
            return None
        guards = [(g.where, g.place, g.value) for g in self.guards]
        guards.append((changes.__dict__, "count", self.changes))
        guards.append((defaults, 0, defaults[0]))
        sources = [(0, k) for k in self._arguments]
        sources += [(1, x) for x in self._captured]
        sources += [(2 if type(x) is int else 3, x) for x in self._with_grad]
        sources += [(4, x) for x in (*self._hidden, *self._constants)]
        given = ("made", "argument", "captured")
        outputs = [(given.index(source), value, edge) for source, value, edge in self._outputs]
        description = (
            self.program.address,
            self._argument_edges,
            frozenset(self._held_ids),
            (recorders.running, vmaps, watchers),
            self._records,
            tuple(guards),
            tuple(self.leaves),
            tuple(sources),
            tuple(self._events),
            tuple(self.program.results),
            tuple([(x, place if is_set else None) for x, place, is_set in self._grads]),
            tuple(outputs),
            None if self._single else partial(filled, self._template),
            (kernels.program_run, kernels.program_take, kernels.program_end),
        )
        return speed.replay(description, LEAF)

    def stopped(self, tensors: Sequence[Any], args: Any) -> Any:
        """The result after the accelerator's run stopped; Misfit if it did not begin."""
        try:
            made = self.program.finish()
        except Differs:
            return self.function(*args)
        for event in self._events:
            note = event([], [])
            if note is not None:
                note()
        return self._left_behind([], made, tensors)

    def run(self, tensors: list[Any], args: Any, kwargs: Any) -> Any:
        """The result of the program for these arguments."""
        given = [tensors[k]._h for k in self._arguments]
        given += [x._h for x in self._captured]
        if self._with_grad:
            holders = [tensors[x] if type(x) is int else x for x in self._with_grad]
            given += [x._grad._h for x in holders]
        given += self._hidden
        given += self._constants
        done: list[Any] = []
        if self._acts and not self.program.accepts(given):
            raise Misfit
        ints: list[int] = []
        floats: list[float] = []
        notes = []
        for event in self._events:
            note = event(ints, floats, done)
            if note is not None:
                notes.append(note)
        given += [x._h for x in done if isinstance(x, TensorBase)]
        undo = [(given[k], call(kernels.copy, given[k])) for k in self._undo]
        try:
            made = self.program.run(given, ints, floats)
        except Differs:
            for array, copy in undo:
                call(kernels.write, array, copy)
            return _redone(done, self.function, args, kwargs)
        for note in notes:
            note()
        return self._left_behind(given, made, tensors)

    def _left_behind(self, given: list[Any], made: list[Any], tensors: Sequence[Any]) -> Any:
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
        found: list[Any] = []
        for source, value, edge in self._outputs:
            if source == "made":
                found.append(wrap(made[value], edge))
            elif source == "living":
                found.append(living[value])
            elif source in ("same", "view"):
                found.append(None)
            else:
                found.append(tensors[value] if source == "argument" else value)
        if any(x is None for x in found):
            found = [self._seen(found, k) for k in range(len(found))]
        return found[0] if self._single else filled(self._template, found)

    def _seen(self, found: list[Any], k: int) -> Any:
        """The k-th result, which may be another one or a view of another one."""
        if found[k] is None:
            _, value, rows = self._outputs[k]
            x = self._seen(found, value)
            for row, args in rows or ():
                x = apply(row, (x,), args)
            found[k] = x
        return found[k]


_KINDS = ("argument", "captured", "grad", "hidden", "constant", "drawn")


def planned(
    recorder: Recorder,
    order: list[int],
    given: int,
    constants: Sequence[int],
    numbers: dict[int, int],
    results: Sequence[int],
) -> Plan:
    """The plan of what was recorded, after all passes.

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
    plan = own_constants(plan, constants)
    for improve in PASSES.values():
        plan = improve(plan)
    return plan


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


Event = Callable[..., Any]  # of the lists of live integers and floats, and of what was done


def _move(step: Step) -> Event:
    """The event that reads the numbers of an optimizer's step anew."""
    reals = len(step.floats)
    renew = step.move.renew

    def event(ints: list[int], floats: list[float], done: Any = None) -> Any:
        move = renew()
        if move is None:
            raise Misfit
        options = move.options
        ints.extend(map(int, options[reals:]))
        floats.extend(map(float, options[:reals]))
        return move.note

    return event


def _act(run: Callable[[], Any]) -> Event:
    """The event that draws, or does something else in Python."""

    def event(ints: list[int], floats: list[float], done: list[Any]) -> None:
        done.append(run())

    return event


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
