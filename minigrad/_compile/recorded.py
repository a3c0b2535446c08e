"""Recorded calls: a program, when it may run, and what a call leaves behind."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from functools import partial
from operator import attrgetter, is_
from typing import Any

from minigrad._compile.arguments import filled, template
from minigrad._compile.passes import PASSES
from minigrad._compile.plan import Layout, Plan, own_constants, writes
from minigrad._compile.program import Differs, Misfit, Program
from minigrad._compile.recorder import Recorder, Step, place_of
from minigrad._compile.surroundings import Guard, first_difference
from minigrad._tensor.inplace import replace
from minigrad.nn.module import changes
from minigrad.random import default_generator
from minigrad.runtime.dtypes import by_code
from minigrad.runtime.native import call, kernels, signatures
from minigrad.tape.hooks import hook_changes, hooks_of
from minigrad.tape.tensor_base import TensorBase, link, mark, wrap

__all__ = ["Recorded"]


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
    ) -> None:
        recorder, surroundings = attempt.recorder, attempt.surroundings
        self.kind = attempt.kind
        self.function = attempt.function
        self.steps = recorder.steps
        self._remember(attempt)
        slots = [recorder.slot_of(x._h) for x in (*left, *[x for _, x in moved])]
        self._lay_out(recorder, {slot for slot in slots if slot is not None})
        numbers = {slot: k for k, slot in enumerate(self._order)}
        self._results: list[int] = []
        known = self._known_tensors(attempt)
        place = {id(x): k for k, x in enumerate(left)}
        self._left = [
            known.get(id(x)) or ("made", self._result(x._h, recorder, numbers), x._edge)
            for x in left
        ]
        self._outputs = [place[id(x)] for x in outputs]
        self._grads = [(target, None if g is None else place[id(g)]) for target, g in grads]
        self._moved = [(target, self._result(x._h, recorder, numbers)) for target, x in moved]
        self._links = _links(left, place, known)
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
        self._generators = list({id(g): g for g in recorder.generators}.values())
        self._acts = any(not isinstance(event, Step) for event in recorder.events)
        at = {id(step.move): k for k, step in enumerate(plan.steps) if step.move is not None}
        self._events = [
            self._event(event, recorder, at)
            for event in recorder.events
            if not isinstance(event, Step) or id(event.move) in at
        ]
        recorder.values.clear()

    def _remember(self, attempt: Any) -> None:
        """What must be as it was, besides the arrays."""
        self.surroundings = attempt.surroundings
        self.guards: list[Guard] = [*self.surroundings.guards, *self.surroundings.state_guards]
        self.changes, self.hooks = changes.count, hook_changes.count
        places: dict[int, int] = {}
        self._pattern = [places.setdefault(id(x), k) for k, x in enumerate(attempt.tensors)]
        self._own = [self._captured_id(x) for x in attempt.tensors]
        self._merged = attempt.merged
        watched = [
            (x, target, edge, grad is None)
            for x, target, (_, edge, grad) in zip(
                attempt.known, attempt.targets, attempt.before, strict=True
            )
        ]
        captured = [one for one in watched if type(one[1]) is not int]
        self._watched = [x for x, *_ in captured]
        self._edges = [edge for *_, edge, _ in captured]
        self._without = [without for *_, without in captured]
        self._hooks = [hooks_of(x) for x in self._watched]
        self._given_grads = [(k, without) for _, k, edge, without in watched if type(k) is int]

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

    def _lay_out(self, recorder: Recorder, results: set[int]) -> None:
        """The order of slots: those given that are used, by kind, then those made."""
        used = set(results)
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

    @staticmethod
    def _event(event: Any, recorder: Recorder, at: dict[int, int]) -> Event:
        if isinstance(event, Step):
            return _move(event, at[id(event.move)])
        return _act(event if callable(event) else recorder.values[event].source)

    def _planned(self, recorder: Recorder, numbers: dict[int, int]) -> Plan:
        """The plan of the program, after all passes."""
        arrays = [recorder.values[slot].array for slot in self._order]
        first = self._given - len(self._drawn) - len(self._constants)
        constants = range(first, first + len(self._constants))
        plan = Plan(
            tuple([Layout.of(x) for x in arrays]),
            self._given,
            tuple([_renumbered(step, numbers) for step in recorder.steps]),
            tuple(self._results),
            {k: arrays[k].item() for k in constants if arrays[k].weak and not arrays[k].ndim},
        )
        plan = own_constants(plan, constants)
        for improve in PASSES.values():
            plan = improve(plan)
        return plan

    def _result(self, array: Any, recorder: Recorder, numbers: dict[int, int]) -> int:
        """The place of an array among the results of the program."""
        slot = recorder.slot_of(array)
        if slot is None or slot not in numbers:
            raise RuntimeError("[compile] a result is unknown")
        number = numbers[slot]
        if number not in self._results:
            self._results.append(number)
        return self._results.index(number)

    # ---- does it fit? ----

    def difference(self, tensors: list[Any]) -> str | None:
        """What differs from the recorded call, besides the arrays; None if nothing does."""
        changed = first_difference(self.guards)
        if changed is not None:
            return changed
        if changes.count != self.changes:
            if not self.surroundings.modules_hold():
                return self.surroundings.modules_difference()
            self.changes = changes.count
        places: dict[int, int] = {}
        if [places.setdefault(id(x), k) for k, x in enumerate(tensors)] != self._pattern:
            return "other arguments are the same tensor"
        if [self._captured_id(x) for x in tensors] != self._own:
            return "an argument is a tensor that the function reaches, or no longer is"
        for k, without in self._given_grads:
            if (tensors[k]._grad is None) is not without:
                return self._other_grad(self.name_of(k), without)
        watched = self._watched
        if [x._grad is None for x in watched] != self._without or not all(
            map(is_, map(_edge, watched), self._edges)
        ):
            return self._other_leaf()
        if hook_changes.count != self.hooks:
            if [hooks_of(x) for x in watched] != self._hooks:
                return "a tensor has other hooks"
            self.hooks = hook_changes.count
        for first, second in self._merged:
            if place_of(self._array(first, tensors)) != place_of(self._array(second, tensors)):
                return "two tensors lie no longer on the same memory"
        return None

    @staticmethod
    def _other_grad(name: str, without: bool) -> str:
        was, now = ("None", "a tensor") if without else ("a tensor", "None")
        return f"{name}.grad was {was} and is {now}"

    def _other_leaf(self) -> str:
        for x, edge, without in zip(self._watched, self._edges, self._without, strict=True):
            name = self.name_of(x)
            if (x._grad is None) is not without:
                return self._other_grad(name, without)
            if x._edge is not edge:
                was, now = edge is not None, x._edge is not None
                return f"{name} required grad: {was}, and requires it now: {now}"
        return "a tensor changed"

    def name_of(self, target: Any) -> str:
        """The name of an argument or captured tensor."""
        if type(target) is int:
            return self.argument_names[target] if self.argument_names else f"argument {target}"
        return self.surroundings.names.get(id(target), "a tensor")

    argument_names: list[str] = []  # noqa: RUF012 - set when the arguments are known

    def _array(self, place: tuple[str, Any], tensors: list[Any]) -> Any:
        kind, target = place
        x = tensors[target] if type(target) is int else target
        return x._grad._h if kind == "grad" else x._h

    def misfit(self, tensors: list[Any]) -> str:
        """Which array is not as in the recorded call."""
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

    def run(self, tensors: list[Any], args: Any, kwargs: Any) -> Any:
        """The result of the program for these arguments."""
        given = self._arrays(tensors)
        done: list[Any] = []
        back: list[Any] = []
        if self._acts:
            if not self.program.accepts(given):
                raise Misfit
            back = self._ways_back()
        ints: list[int] = []
        floats: list[float] = []
        notes: list[Any] = []
        for event in self._events:
            event(ints, floats, done, notes)
        given += [x._h for x in done if isinstance(x, TensorBase)]
        undo = [(given[k], call(kernels.copy, given[k])) for k in self._undo]
        try:
            made = self.program.run(given, ints, floats)
        except Differs:
            for array, copy in undo:
                call(kernels.write, array, copy)
            return self._instead(back, args, kwargs)
        except Misfit:
            for go_back in back:
                go_back()
            raise
        except Exception:
            if self.program.stopped < self._first_write:  # the function tells more of the error
                return self._instead(back, args, kwargs)
            self._settle(notes)
            raise
        except BaseException:
            self._settle(notes)
            raise
        for _, note in notes:
            note()
        return self._left_behind(made, tensors)

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

    def _instead(self, back: list[Any], args: Any, kwargs: Any) -> Any:
        """The result of the function itself, after a program that changed nothing."""
        for go_back in back:
            go_back()
        return self.function(*args, **kwargs)

    def _settle(self, notes: list[Any]) -> None:
        """After an error, note the optimizer steps that were made before it."""
        for place, note in notes:
            if place < self.program.stopped:
                note()

    def _left_behind(self, made: list[Any], tensors: list[Any]) -> Any:
        found = []
        for source, value, edge in self._left:
            if source == "made":
                found.append(wrap(made[value], edge))
            else:
                x = tensors[value] if type(value) is int else value
                found.append(x._grad if source == "grad" else x)
        for target, place in self._grads:
            x = tensors[target] if type(target) is int else target
            x._grad = None if place is None else found[place]
        for target, place in self._moved:
            replace(tensors[target] if type(target) is int else target, made[place])
        for view, base, *how in self._links:
            if how:
                link(found[view], found[base], *how)
            else:
                mark(found[view], (weakref.ref(found[base]),))
        if self._single:
            return found[self._outputs[0]]
        return filled(self._template, [found[k] for k in self._outputs], self._reached)


def _links(left: list[Any], place: dict[int, int], known: dict[int, Any]) -> list[Any]:
    """Which of the tensors are views of others, as ``link`` and ``mark`` take it."""
    found = []
    for x in left:
        alias = getattr(x, "_alias", ()) if id(x) not in known else ()
        base = alias[0]() if len(alias) == 1 else alias[0] if alias else None
        if base is not None and id(base) in place:
            found.append((place[id(x)], place[id(base)], *alias[1:]))
    return found


def _restore(held: dict[str, Any], before: dict[str, Any]) -> None:
    held.clear()
    held.update(before)


_edge = attrgetter("_edge")


def _look(array: Any) -> tuple[str, tuple[int, ...], tuple[int, ...]]:
    strides = [s if n > 1 else 0 for n, s in zip(array.shape, array.strides, strict=True)]
    return by_code[array.dtype].name, array.shape, tuple(strides)


def _said(look: tuple[str, tuple[int, ...], tuple[int, ...]]) -> str:
    name, shape, strides = look
    return f"{name}{shape} with strides {strides}"


_KINDS = ("argument", "captured", "grad", "constant", "drawn")


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


Event = Callable[[list[int], list[float], list[Any], list[Any]], None]


def _move(step: Step, place: int) -> Event:
    """The event that reads the numbers of an optimizer's step anew."""
    counts = step.ints[: signatures[step.number].count("A")]  # before all other integers
    reals = len(step.floats)
    renew = step.move.renew

    def event(ints: list[int], floats: list[float], done: list[Any], notes: list[Any]) -> None:
        move = renew()
        if move is None:
            raise Misfit
        options = move.options
        ints.extend(counts)
        ints.extend(map(int, options[reals:]))
        floats.extend(map(float, options[:reals]))
        if move.note is not None:
            notes.append((place, move.note))

    return event


def _act(run: Callable[[], Any]) -> Event:
    """The event that draws, or does something else in Python."""

    def event(ints: list[int], floats: list[float], done: list[Any], notes: list[Any]) -> None:
        done.append(run())

    return event
