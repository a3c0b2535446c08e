"""Snapshots of all that a recorded call may change, taken before and after a run of it."""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from minigrad._compile.differences import copied, difference_of
from minigrad._compile.plan import writes
from minigrad._compile.recorder import Recorder
from minigrad._tensor.inplace import catch_up
from minigrad.random import default_generator
from minigrad.runtime.native import Array, call, kernels
from minigrad.tape.tensor_base import TensorBase
from minigrad.tape.writing import Change, commit

__all__ = ["Memo", "Snapshot", "State"]

_SCALARS = (bool, int, float, complex, str, bytes, type(None))
_CONTAINERS = (dict, defaultdict, OrderedDict, list)
_GIVEN = ("argument", "captured", "grad")


class Memo:
    """Notes on a recording for its verification: the source of each slot, and the writes.

    ``sources`` has a kind and a source for each slot of the recorder, and for a constant its array.
    ``written`` has the kind and source of each array from outside that a step wrote into.
    """

    def __init__(self, recorder: Recorder) -> None:
        values = recorder.values
        roots = {values[slot].array.buffer for step in recorder.steps for slot in writes(step)}
        self.sources = [(v.kind, v.array if v.kind == "constant" else v.source) for v in values]
        for k, v in enumerate(values):
            if v.kind == "constant" and v.source is not None:
                self.sources[k] = v.kind, v.source
        self.written = [
            (v.kind, v.source) for v in values if v.kind in _GIVEN and v.array.buffer in roots
        ]


@dataclass
class _Held:
    """A container and what was in it."""

    own: Any
    items: Any


@dataclass
class Snapshot:
    """Contents of the places of a :class:`State` at one time."""

    memory: list[Array]
    grads: list[Any]  # the tensors in the grad of each known tensor
    values: list[Array | None]  # copies of these, where the program changes gradients
    moved: list[Array]
    python: list[_Held]
    generators: list[Any]


class State:
    """The places that a recorded call may change.

    These are memory from outside that it writes, gradients, tensors that get other memory, options
    and states of optimizers, schedules, and generators of random numbers.
    """

    def __init__(self, recorded: Any, tensors: list[Any]) -> None:
        self.recorded, self.tensors = recorded, tensors
        surroundings, plan = recorded.surroundings, recorded.plan
        known = {id(x): x for x in (*tensors, *surroundings.tensors.values())}
        self.known = list(known.values())
        self.names = [self._name(x) for x in self.known]
        self._uses_grads = recorded._uses_grads
        roots = {plan.layouts[slot].root for step in plan.steps for slot in writes(step)}
        given = zip(recorded._arrays(tensors), plan.layouts, strict=False)
        arrays = {id(array): ("a tensor", array) for array, x in given if x.root in roots}
        for kind, source in recorded.memo.written:
            array = recorded._array((kind, source), tensors)
            name = recorded.name_of(source)
            arrays[id(array)] = f"{name}.grad" if kind == "grad" else name, array
        self.arrays = list(arrays.values())
        moved = [tensors[x] if type(x) is int else x for x, _ in recorded._moved]
        self.moved = [(x, self._name(x)) for x in moved]
        self._tape = [_tape_of(x) for x in moved]
        self.containers: list[tuple[str, Any]] = [
            (type(x).__name__, vars(x)) for x in surroundings.schedules
        ]
        for optimizer in surroundings.optimizers:
            name = type(optimizer).__name__
            self.containers.append((f"{name}.param_groups", optimizer.param_groups))
            self.containers.append((f"{name}.state", optimizer.state))
        own = default_generator()
        asked = [own, *[own if x is None else x for x in recorded._generators]]
        self.generators = list({id(x): x for x in asked}.values())

    def _name(self, x: Any) -> str:
        for place, argument in enumerate(self.tensors):
            if argument is x:
                return str(self.recorded.name_of(place))
        return str(self.recorded.name_of(x))

    def take(self) -> Snapshot:
        """The contents of these places now."""
        grads = [x._grad for x in self.known]
        return Snapshot(
            [copied(array) for _, array in self.arrays],
            grads,
            [None if g is None or not self._uses_grads else copied(g._h) for g in grads],
            [copied(x._h) for x, _ in self.moved],
            [_held(container) for _, container in self.containers],
            [(x.get_state(), x._chosen) for x in self.generators],
        )

    def restore(self, before: Snapshot) -> None:
        """Put back what was there. Memory is written only where it changed.

        Expanded arrays cannot be written. They change only with an array that can.
        """
        for x, grad in zip(self.known, before.grads, strict=True):
            if x._grad is not grad:
                x._grad = grad
        for changes in self._tape:
            commit(None, (), changes)
        for (_, array), copy in zip(self.arrays, before.memory, strict=True):
            if not array.overlapping and difference_of(array, copy) is not None:
                call(kernels.write, array, copy)
        for held in before.python:
            _put_back(held)
        for generator, (state, chosen) in zip(self.generators, before.generators, strict=True):
            generator.set_state(state)
            generator._chosen = chosen

    def difference(self, program: Snapshot, function: Snapshot) -> tuple[str, str, Any] | None:
        """The first place that the program and the function left different.

        The result has its name, what differs, and the array that is there now; None for no
        difference. The state must be that of the function.
        """
        places = [(f"{name}.grad", x._grad) for name, x in zip(self.names, self.known, strict=True)]
        places += self.arrays
        places += [(name, x) for x, name in self.moved]
        first_values = [*program.values, *program.memory, *program.moved]
        second_values = [*function.values, *function.memory, *function.moved]
        for (name, place), first, second in zip(places, first_values, second_values, strict=True):
            array = getattr(place, "_h", place)
            if first is None or second is None:
                if first is not second:
                    was = "no gradient" if first is None else "a gradient"
                    now = "none" if second is None else "one"
                    return name, f"the program left {was} and the function {now}", array
                continue
            text = difference_of(first, second)
            if text is not None:
                return name, text, array
        return self._other_value(program, function)

    def _other_value(self, program: Snapshot, function: Snapshot) -> tuple[str, str, Any] | None:
        both = zip(self.containers, program.python, function.python, strict=True)
        for (name, _), first, second in both:
            for place, text in _differences(name, first, second):
                return place, text, None
        states = zip(program.generators, function.generators, strict=True)
        for (first, _), (second, _) in states:
            if repr(first) != repr(second):
                text = "the program drew other numbers from it, or more or fewer, than the function"
                return "a generator of random numbers", text, None
        return None


def _tape_of(x: Any) -> list[Change]:
    """The changes that give a tensor back its memory, its base and its views."""
    catch_up(x)
    views = getattr(x, "_views", None)
    changes: list[Change] = [(x, "_h", x._h), (x, "_shape", None)]
    changes += [(x, key, getattr(x, key)) for key in ("_alias", "_views") if hasattr(x, key)]
    living = [] if views is None else [reference() for reference in views.refs]
    return changes + [(view, "_alias", view._alias) for view in living if view is not None]


def _held(x: Any) -> Any:
    """A container with what is in it, and containers in it likewise; anything else itself."""
    if type(x) not in _CONTAINERS:
        return x
    if isinstance(x, dict):
        return _Held(x, {key: _held(value) for key, value in x.items()})
    return _Held(x, [_held(value) for value in x])


def _put_back(x: Any) -> Any:
    """A container with its old contents again."""
    if not isinstance(x, _Held):
        return x
    own = x.own
    if isinstance(own, dict):
        items = {key: _put_back(value) for key, value in x.items.items()}
        own.clear()
        own.update(items)
    else:
        own[:] = [_put_back(value) for value in x.items]
    return own


def _differences(name: str, first: Any, second: Any) -> Iterator[tuple[str, str]]:
    """The places in two held containers that differ, each with a text."""
    if isinstance(first, _Held) and isinstance(second, _Held):
        if len(first.items) != len(second.items):
            sizes = f"{len(first.items)} and the function {len(second.items)}"
            yield name, f"the program left {sizes} items"
        elif isinstance(first.items, dict):
            for key, value in first.items.items():
                shown = f"[{key!r}]" if isinstance(key, _SCALARS) else "[...]"
                yield from _differences(name + shown, value, second.items.get(key))
        else:
            for k, value in enumerate(first.items):
                yield from _differences(f"{name}[{k}]", value, second.items[k])
    elif isinstance(first, TensorBase) and isinstance(second, TensorBase):
        text = None if first is second else difference_of(first._h, second._h)
        if text is not None:
            yield name, text
    elif not _same_number(first, second):
        yield name, f"the program left {first!r} and the function {second!r}"


def _same_number(first: Any, second: Any) -> bool:
    """True for equal numbers or texts, for NaN twice, and for what is no number or text."""
    if not isinstance(first, _SCALARS) and not isinstance(second, _SCALARS):
        return True
    return type(first) is type(second) and (first == second or first != first)
