"""Recorded calls: a program, when it may run, and what a call leaves behind."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from functools import partial
from operator import is_
from typing import Any

from minigrad._compile.arguments import filled, form_of, template
from minigrad._compile.cost import size_of
from minigrad._compile.events import Event, act_event, live_event, move_event
from minigrad._compile.folding import fold_constants
from minigrad._compile.plan import Plan, reads, writes
from minigrad._compile.planner import planned
from minigrad._compile.program import Differs, Misfit, Program
from minigrad._compile.recorder import Live, Recorder, Step, place_of
from minigrad._compile.replaying import replay_of, values_of
from minigrad._compile.surroundings import Guard, first_difference
from minigrad._tensor.inplace import replace
from minigrad.nn.module import changes
from minigrad.random import default_generator
from minigrad.runtime.dtypes import by_code
from minigrad.runtime.native import call, kernels
from minigrad.tape.grad_mode import is_grad_enabled
from minigrad.tape.hooks import hook_changes, hooks_of
from minigrad.tape.node import Node
from minigrad.tape.tensor_base import TensorBase, link, mark, parent_of, wrap

__all__ = ["Recorded"]

LEAST_CLEARED = 1 << 16  # bytes of gradients


class Recorded:
    """A recorded call: the program, the places of its arrays, and what the call leaves behind.

    A *target* is the number of an argument, or a captured tensor.
    """

    def __init__(
        self,
        attempt: Any,
        result: Any,
        outputs: list[Any],
        left: list[Any],
        grads: list[tuple[Any, Any]],
        moved: list[tuple[Any, Any]],
        history: Any = None,
        living: Sequence[Any] = (),
    ) -> None:
        recorder, surroundings = attempt.recorder, attempt.surroundings
        self.kind = attempt.kind
        self.function, self.options = attempt.function, attempt.options
        self.steps = recorder.steps
        self._remember(attempt, attempt.uses_grads or bool(grads) or _reads_grads(recorder))
        arrays = [x._h for x in (*left, *[x for _, x in moved])]
        if "fold_constants" not in self.options.without:
            fold_constants(recorder, arrays)
        slots = [recorder.slot_of(array) for array in arrays]
        kept = [slot for slot in slots if slot is not None]
        self._lay_out(recorder, [*kept, *(history.slots if history else ())])
        numbers = {slot: k for k, slot in enumerate(self._order)}
        self._results: list[int] = []
        known = self._known_tensors(attempt)
        place = {id(x): k for k, x in enumerate(left)}
        number = {id(x): k for k, x in enumerate(living)}
        self.left = [
            known.get(id(x))
            or (
                ("living", number[id(x)], None)
                if id(x) in number
                else ("made", self._result(x._h, recorder, numbers), x._edge)
            )
            for x in left
        ]
        self._outputs = [place[id(x)] for x in outputs]
        self.cleared = self._to_clear(attempt)
        self._grads = [(target, None if g is None else place[id(g)]) for target, g in grads]
        self._moved = [(target, self._result(x._h, recorder, numbers)) for target, x in moved]
        self.links = _links(left, place, known, number)
        self._living = [self._result(x._h, recorder, numbers) for x in living]
        self._history = history
        self._kept = [self._kept_at(numbers[slot]) for slot in history.slots] if history else []
        self._single = isinstance(result, TensorBase)
        self._reached = surroundings.reached
        self._template = template(result, self._reached)
        arrays = [recorder.values[slot].array for slot in self._order[: self._given]]
        self.layouts = [_look(x) for x in arrays]
        self.plan = plan = self._planned(recorder, numbers)
        given = plan.given_roots()
        places_of_writes = [
            (k, slot)
            for k, step in enumerate(plan.steps)
            for slot in writes(step)
            if plan.layouts[slot].root in given
        ]
        last = max([k for k, step in enumerate(plan.steps) if step.expected >= 0], default=-1)
        early = {plan.layouts[slot].root for k, slot in places_of_writes if k < last}
        self._first_write = min([k for k, _ in places_of_writes], default=len(plan.steps))
        self._undo = [k for k in range(self._given) if plan.layouts[k].root in early]
        self.program = Program(
            len(plan.layouts), arrays, plan.steps, plan.results, bool(places_of_writes)
        )
        self.constants = [
            f"{by_code[x.dtype].name}{x.shape}" for x in self._constants if not x.weak
        ]
        # Functions that draw, or step a schedule.
        self.acts = [
            e if callable(e) else recorder.values[e].source
            for e in recorder.events
            if not isinstance(e, (Step, Live))
        ]
        self._generators = list({id(g): g for g in recorder.generators}.values())
        at = {id(step.move): k for k, step in enumerate(plan.steps) if step.move is not None}
        events = [e for e in recorder.events if not isinstance(e, Step) or id(e.move) in at]
        self._events = [self._event(event, recorder) for event in events]
        self.moves = [e if isinstance(e, (Step, Live)) else None for e in events]
        self._steps_of_events = [at[id(e.move)] if isinstance(e, Step) else 0 for e in events]
        for place_of_event, e in enumerate(events):
            if isinstance(e, Live):
                roots = {x._h.buffer for x in e.turn.written}
                written = [k for k, slot in places_of_writes if plan.layouts[slot].root in roots]
                self._steps_of_events[place_of_event] = max(written, default=0)
        recorder.values.clear()
        self.values = values_of(attempt.arguments)
        self.names = attempt.argument_names
        self.records = is_grad_enabled()
        self._misses = 0  # calls that fit, and that the accelerator did not make
        self.fast = replay_of(self)

    def _remember(self, attempt: Any, uses_grads: bool) -> None:
        """Note all that must be as it was, besides the arrays.

        Whether a tensor has a grad counts only if the function ``uses_grads``.
        """
        self.surroundings = attempt.surroundings
        self.guards: list[Guard] = [*self.surroundings.guards, *self.surroundings.state_guards]
        self.changes, self.hooks = changes.count, hook_changes.count
        self._uses_grads = uses_grads
        places: dict[int, int] = {}
        self._pattern = [places.setdefault(id(x), k) for k, x in enumerate(attempt.tensors)]
        self._own = [self._captured_id(x) for x in attempt.tensors]
        self._merged = attempt.merged
        watched = [
            (x, target, edge, grad is None if uses_grads else None)
            for x, target, (_, edge, grad) in zip(
                attempt.known, attempt.targets, attempt.before, strict=True
            )
        ]
        captured = [one for one in watched if type(one[1]) is not int]
        self._watched = [x for x, *_ in captured]
        self._edges = [Node if type(edge) is Node else edge for *_, edge, _ in captured]
        self._without = [without for *_, without in captured]
        self._hooks = [hooks_of(x) for x in self._watched]
        self._given_grads = [
            (k, without, edge) for _, k, edge, without in watched if type(k) is int
        ]

    def _to_clear(self, attempt: Any) -> list[Any]:
        """The targets whose grad a run drops before its first kernel, as the function does.

        The run then does not hold old gradients beside new ones. Less than ``LEAST_CLEARED`` bytes
        are not worth the time.
        """
        used = [*self._with_grad, *[value for source, value, _ in self.left if source == "grad"]]
        bytes_of = {
            id(target): size_of(grad._h)
            for target, (_, _, grad) in zip(attempt.targets, attempt.before, strict=True)
            if grad is not None
        }
        found = [t for t in attempt.cleared if not any(t is x for x in used)]
        return found if sum([bytes_of[id(t)] for t in found]) >= LEAST_CLEARED else []

    def _captured_id(self, x: Any) -> int:
        """The id of a tensor that the function also reaches without the arguments, else 0."""
        return id(x) if id(x) in self.surroundings.tensors else 0

    @staticmethod
    def _known_tensors(attempt: Any) -> dict[int, tuple[str, Any, Any]]:
        """How a call finds the tensors that were there before, by the ids of those recorded."""
        found: dict[int, tuple[str, Any, Any]] = {}
        for x, target, (_, _, grad) in zip(
            attempt.known, attempt.targets, attempt.before, strict=True
        ):
            if grad is not None:
                found[id(grad)] = ("grad", target, None)
            found[id(x)] = ("captured" if x is target else "argument", target, None)
        return found

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
        constants = [recorder.values[s] for s in by_kind["constant"]]
        self._constants = [x.array if x.source is None else x.source for x in constants]
        given = [slot for k in _KINDS for slot in by_kind[k]]
        self._drawn = by_kind["drawn"]
        self._given = len(given)
        self._order = given + made

    def _event(self, event: Any, recorder: Recorder) -> Event:
        if isinstance(event, Step):
            return move_event(event)
        if isinstance(event, Live):
            return live_event(event.turn, self.places_of(event))
        return act_event(event if callable(event) else recorder.values[event].source)

    def places_of(self, event: Live) -> list[int]:
        """Which of the numbers of a turn the program has."""
        moves = [step.move for step in self.plan.steps if isinstance(step.move, Live)]
        return [move.place for move in moves if move.turn is event.turn]

    def _planned(self, recorder: Recorder, numbers: dict[int, int]) -> Plan:
        """The plan of the program, after all passes."""
        results, without = self._results, self.options.without
        constants = self.constant_slots
        return planned(recorder, self._order, self._given, constants, numbers, results, without)

    @property
    def constant_slots(self) -> range:
        """The slots of constants in the plan."""
        first = self._given - len(self._drawn) - len(self._constants)
        return range(first, first + len(self._constants))

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

    # ---- does it fit? ----

    def difference(self, tensors: list[Any]) -> str | None:
        """The first difference from the recorded call, besides the arrays, or None."""
        changed = first_difference(self.guards)
        if changed is not None:
            return changed
        if changes.count != self.changes:
            if not self.surroundings.modules_hold():
                return self.surroundings.modules_difference()
            self.changes = changes.count
            self.fast = replay_of(self)
        places: dict[int, int] = {}
        if [places.setdefault(id(x), k) for k, x in enumerate(tensors)] != self._pattern:
            return "other arguments are the same tensor"
        if [self._captured_id(x) for x in tensors] != self._own:
            return "an argument is a tensor that the function reaches, or no longer is"
        for k, without, _ in self._given_grads:
            if without is not None and (tensors[k]._grad is None) is not without:
                return self._other_grad(self.name_of(k), without)
        watched = self._watched
        same = not self._uses_grads or [x._grad is None for x in watched] == self._without
        if not same or not all(map(is_, map(_kind_of_edge, watched), self._edges)):
            return self._other_leaf()
        if hook_changes.count != self.hooks:
            if [hooks_of(x) for x in watched] != self._hooks:
                return "a tensor has other hooks"
            self.hooks = hook_changes.count
            self.fast = replay_of(self)
        for first, second in self._merged:
            if place_of(self._array(first, tensors)) != place_of(self._array(second, tensors)):
                return "two tensors lie no longer on the same memory"
        self._missed()
        return None

    def _missed(self) -> None:
        """Describe the call anew for the accelerator, which did not see that it fits.

        That is worth the time at the first such call, and ever less often after it.
        """
        self._misses += 1
        if self.fast is not None and not self._misses & (self._misses - 1):
            self.fast = replay_of(self)

    @staticmethod
    def _other_grad(name: str, without: bool) -> str:
        was, now = ("None", "a tensor") if without else ("a tensor", "None")
        return f"{name}.grad was {was} and is {now}"

    def _other_leaf(self) -> str:
        for x, edge, without in zip(self._watched, self._edges, self._without, strict=True):
            name = self.name_of(x)
            if without is not None and (x._grad is None) is not without:
                return self._other_grad(name, without)
            if _kind_of_edge(x) is not edge:
                was, now = edge is not None, x._edge is not None
                return f"{name} required grad: {was}, and requires it now: {now}"
        return "a tensor changed"

    def name_of(self, target: Any) -> str:
        """The name of an argument or captured tensor."""
        if type(target) is int:
            return self.argument_names[target] if self.argument_names else f"argument {target}"
        return self.surroundings.names.get(id(target), "a tensor")

    argument_names: list[str] = []  # noqa: RUF012 - set when the arguments are known
    memo: Any = None  # what a verification needs to know

    def _array(self, place: tuple[str, Any], tensors: list[Any]) -> Any:
        kind, target = place
        x = tensors[target] if type(target) is int else target
        return x._grad._h if kind == "grad" else x._h

    def leaves(self) -> list[tuple[Any, bool | None]]:
        """Arguments by number and captured tensors, and whether each has no grad if that counts."""
        given = [(k, without) for k, without, _ in self._given_grads]
        return [*given, *zip(self._watched, self._without, strict=True)]

    def fits(self, tensors: list[Any]) -> bool:
        """True if these tensors look like those of the recorded call."""
        looks = [look[:3] for look in self.program.looks[: len(self._arguments)]]
        given = [tensors[k]._h for k in self._arguments]
        return looks == [(x.dtype, x.shape, x.strides) for x in given]

    def misfit(self, tensors: list[Any]) -> str:
        """Name the array that is not as in the recorded call, or say that sharing differs."""
        given = self._arrays(tensors)
        names = [self.name_of(k) for k in (*self._arguments, *self._captured)]
        names += [f"{self.name_of(k)}.grad" for k in self._with_grad]
        for name, before, array in zip(names, self.layouts, given, strict=False):
            now = _look(array)
            if now[:3] != before[:3]:
                return f"{name} was {_said(before)} and is {_said(now)}"
        return (
            "other tensors share memory than in the recording, or an optimizer takes another step"
        )

    # ---- running ----

    def _arrays(self, tensors: list[Any]) -> list[Any]:
        """The arrays that the program is given, but for those drawn."""
        given = [tensors[k]._h for k in self._arguments]
        given += [x._h for x in self._captured]
        for k in self._with_grad:
            given.append((tensors[k] if type(k) is int else k)._grad._h)
        given += self._constants
        return given

    def stopped(
        self, args: Any, kwargs: Any, back: Any, copies: Any, notes: list[Any], given: list[Any]
    ) -> Any:
        """The result after the accelerator's run stopped; Ellipsis if it did not begin.

        ``back`` has functions that undo what events did, and ``copies`` the arrays of ``_undo``.
        """
        kwargs = kwargs or {}
        tensors: list[Any] = []
        form_of(args, kwargs, tensors, [])
        try:
            made = self.program.finish()
        except Misfit:
            for go_back in back or ():
                go_back()
            return ...
        except BaseException as error:
            self._put_back(error, given, copies or ())
            return self._failed(error, back or [], notes, args, kwargs)
        return self._finished(given, made, notes, tensors)

    def run(self, tensors: list[Any], args: Any, kwargs: Any) -> Any:
        """The result of the program for these arguments."""
        given = self._arrays(tensors)
        done: list[Any] = []
        back: list[Any] = []
        if self.acts:
            if not self.program.accepts(given):
                raise Misfit
            back = self._ways_back()
        elif self.cleared and not self.program.accepts(given):
            raise Misfit
        ints: list[int] = []
        floats: list[float] = []
        try:
            notes = [event(ints, floats, done) for event in self._events]
        except Misfit:
            for go_back in back:
                go_back()
            raise
        given += [x._h for x in done if isinstance(x, TensorBase)]
        copies = [call(kernels.copy, given[k]) for k in self._undo]
        for target in self.cleared:
            (tensors[target] if type(target) is int else target)._grad = None
        try:
            made = self.program.run(given, ints, floats)
        except Misfit:
            for go_back in back:
                go_back()
            raise
        except BaseException as error:
            self._put_back(error, given, copies)
            return self._failed(error, back, notes, args, kwargs)
        return self._finished(given, made, notes, tensors)

    def _put_back(self, error: BaseException, given: Sequence[Any], copies: Sequence[Any]) -> None:
        """Restore written arrays, if a question was answered in another way."""
        if isinstance(error, Differs):
            for k, copy in zip(self._undo, copies, strict=True):
                call(kernels.write, given[k], copy)

    def _failed(
        self, error: BaseException, back: list[Any], notes: list[Any], args: Any, kwargs: Any
    ) -> Any:
        """The function's own result, if the program changed nothing; else the error.

        The function tells more of an error. Optimizers note the steps that were made before it.
        """
        unchanged = isinstance(error, Exception) and self.program.stopped < self._first_write
        if isinstance(error, Differs) or unchanged:
            for go_back in back:
                go_back()
            return self.function(*args, **kwargs)
        for place, note in zip(self._steps_of_events, notes, strict=True):
            if note is not None and place < self.program.stopped:
                note()
        raise error

    def _finished(
        self, given: list[Any], made: list[Any], notes: list[Any], tensors: Sequence[Any]
    ) -> Any:
        for note in notes:
            if note is not None:
                note()
        return self._left_behind(given, made, tensors)

    def _ways_back(self) -> list[Callable[[], Any]]:
        """Functions that undo what is drawn, and what schedules do."""
        found: list[Callable[[], Any]] = []
        for generator in self._generators:
            own = default_generator() if generator is None else generator
            found.append(partial(own.set_state, own.get_state()))
        for schedule in self.surroundings.schedules:
            held = [vars(schedule), *schedule.optimizer.param_groups]
            found += [partial(_restore, one, dict(one)) for one in held]
        return found

    def _left_behind(self, given: list[Any], made: list[Any], tensors: Sequence[Any]) -> Any:
        living = []
        if self._history is not None:
            arrays = [*given, *made]
            ends = [tensors[x] if type(x) is int else x for x in self._history.ends]
            edges = self._history.edges(
                [arrays[k] for k in self._kept], [parent_of(x) for x in ends]
            )
            living = [wrap(made[k], edge) for k, edge in zip(self._living, edges, strict=True)]
        found: list[Any] = []
        for source, value, edge in self.left:
            if source == "made":
                found.append(wrap(made[value], edge))
            elif source == "living":
                found.append(living[value])
            else:
                x: Any = tensors[value] if type(value) is int else value
                found.append(x._grad if source == "grad" else x)
        for target, place in self._grads:
            x = tensors[target] if type(target) is int else target
            x._grad = None if place is None else found[place]
        for target, place in self._moved:
            replace(tensors[target] if type(target) is int else target, made[place])
        for view, base, *how in self.links:
            if how:
                link(found[view], found[base], *how)
            else:
                mark(found[view], (weakref.ref(found[base]),))
        if self._single:
            return found[self._outputs[0]]
        return filled(self._template, [found[k] for k in self._outputs], self._reached)


def _reads_grads(recorder: Recorder) -> bool:
    """True if a step reads or writes a gradient that was there before."""
    return "grad" in [recorder.values[s].kind for step in recorder.steps for s in reads(step)]


def _links(
    left: list[Any], place: dict[int, int], known: dict[int, Any], living: dict[int, int]
) -> list[Any]:
    """Which of the tensors are views of others, as ``link`` and ``mark`` take it."""
    found = []
    for x in left:
        alias: Any = () if id(x) in known or id(x) in living else getattr(x, "_alias", ())
        base = alias[0]() if len(alias) == 1 else alias[0] if alias else None
        if base is not None and id(base) in place:
            found.append((place[id(x)], place[id(base)], *alias[1:]))
    return found


def _restore(held: dict[str, Any], before: dict[str, Any]) -> None:
    held.clear()
    held.update(before)


def _kind_of_edge(x: Any) -> Any:
    return Node if type(x._edge) is Node else x._edge


def _look(array: Any) -> tuple[str, tuple[int, ...], tuple[int, ...]]:
    strides = [s if n > 1 else 0 for n, s in zip(array.shape, array.strides, strict=True)]
    return by_code[array.dtype].name, array.shape, tuple(strides)


def _said(look: tuple[str, tuple[int, ...], tuple[int, ...]]) -> str:
    name, shape, strides = look
    return f"{name}{shape} with strides {strides}"


_KINDS = ("argument", "captured", "grad", "constant", "drawn")
