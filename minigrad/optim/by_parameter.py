"""Base class of optimizers written in tensor operations, one parameter at a time.

A step computes the new values of all parameters before it writes the first. A failing step
therefore changes no parameter. A subclass defines the first state of a parameter, the numbers of a
step, and the new values and state for a gradient.

While a recorder is active, the numbers of a step are tensors that a recorded program makes anew for
each run. A :class:`Turn` gives their values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from math import inf, isfinite
from numbers import Real
from types import MappingProxyType
from typing import Any

from minigrad.functions.arguments import renamed
from minigrad.functions.selection import where
from minigrad.optim.optimizers import (
    Group,
    Optimizer,
    _check_range,
    _check_switch,
    _handles,
    _misfit,
    _next_step,
    _with_gradients,
)
from minigrad.runtime.native import call, kernels
from minigrad.runtime.recorders import active, give_up, live, live_before, running
from minigrad.tape.tensor_base import TensorBase

__all__ = ["ByParameter"]

_Move = tuple[Any, Any, dict[str, Any]]  # a parameter, its new values, its new state
Numbers = dict[str, Any]


class ByParameter(Optimizer):
    """Base of optimizers whose ``_moved`` returns one parameter's new values and writes nothing."""

    _numbers: frozenset[str] = frozenset()  # state entries that are numbers, besides "step"
    _counted = True  # True if the state has a "step"
    _counts: tuple[str, ...] = ("step",)  # names of state entries that are numbers
    # The id of a group -> its checked values, and the numbers made of these.
    _made: Mapping[int, tuple[Any, Numbers]] = MappingProxyType({})
    _in_place = False  # True if new state is written into the tensors of the old, as programs do

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls._counts = (*["step"] * cls._counted, *sorted(cls._numbers))

    def _begun(self, group: Group, p: Any) -> dict[str, Any]:
        """The state of a parameter before its first step, without the "step"."""
        raise NotImplementedError

    def _numbers_of(self, group: Group) -> Numbers:
        """The numbers of a group's steps, by name, but for those that depend on the state.

        Floats may differ between steps that are computed in the same way. Other values choose what
        is computed.
        """
        raise NotImplementedError

    def _count(self, n: Numbers, state: dict[str, Any]) -> None:
        """Add the numbers that depend on the state's, and write new numbers to the state.

        Its "step" counts from 1.
        """

    def _moved(self, n: Numbers, p: Any, g: Any, state: dict[str, Any]) -> Any:
        """The new values of ``p`` for the gradient ``g`` of a loss to minimise.

        ``n`` are the numbers of the step. ``state`` is a new dict for this step, to which new
        tensors are written.
        """
        raise NotImplementedError

    def _moves(self, group: Group) -> list[_Move]:
        params = _with_gradients(group)
        states = [self._state_of(group, p) for p in params]
        self._check_step(params, states)
        if running and active() is not None:
            return self._recorded_moves(group, params, states)
        n, maximize, moves = self._known_numbers(group), group.get("maximize"), []
        last: list[Any] | None = None
        counted: dict[str, Any] = {}
        for p, state in zip(params, states, strict=True):
            now = [state[name] for name in self._counts]
            if now != last:
                last, counted = now, state
                self._count(n, state)
            else:
                for name in self._numbers:
                    state[name] = counted[name]
            moves.append((p, self._moved(n, p, -p.grad if maximize else p.grad, state), state))
        return moves

    def _known_numbers(self, group: Group) -> Numbers:
        """The numbers of a group, which are kept until an option changes."""
        sound = self._sound.get(id(group))
        known = self._made.get(id(group))
        if known is None or known[0] is not sound or not sound:
            known = sound, self._numbers_of(group)
            self._made = {**self._made, id(group): known}
        return known[1]

    def _recorded_moves(
        self, group: Group, params: list[Any], states: list[dict[str, Any]]
    ) -> list[_Move]:
        """The moves of a step that is recorded, by tensors of its numbers."""
        earlier = {p: turn for turn in live_before() for p in turn.written}
        known: dict[Any, tuple[Numbers, Turn]] = {}
        moves = []
        for p, state in zip(params, states, strict=True):
            counts = {name: state[name] for name in self._counts}
            key = (*counts.values(), earlier.get(p))
            if key not in known:
                n = self._numbers_of(group)
                self._count(n, counts)
                turn = Turn(self, group, _form(group, n), earlier.get(p), counts)
                floats = [name for name, x in n.items() if type(x) is float]
                tensors = live([n[name] for name in floats], turn)
                known[key] = n | dict(zip(floats, tensors, strict=True)), turn
            n, turn = known[key]
            turn.written.append(p)
            turn.states.append(self.state.get(p, {}))
            state.update(turn.counts)
            g = -p.grad if group.get("maximize") else p.grad
            moves.append((p, self._moved(n, p, g, state), state))
        return moves

    def _renewed(self, turn: Turn) -> tuple[list[float], Callable[[], None]] | None:
        """The numbers of the next step, and what notes it; None if it is computed otherwise."""
        for group in self.param_groups:
            self._check_changed(group)
        if turn.before is None:
            counts = {name: turn.states[0][name] for name in self._counts}
            for name, count in counts.items():
                if [state[name] for state in turn.states] != [count] * len(turn.states):
                    return None
        else:
            counts = dict(turn.before.counts)
        if self._counted:
            counts["step"] = _next_step(self._name, counts)
        n = self._known_numbers(turn.group)
        self._count(n, counts)
        if _form(turn.group, n) != turn.form:
            return None
        turn.counts = counts
        return [x for x in n.values() if type(x) is float], partial(_note, turn.states, counts)

    def _state_of(self, group: Group, p: Any) -> dict[str, Any]:
        """The state of p as a new dict, with the number of the next step."""
        state = dict(self.state.get(p, ()))
        if not state.keys() >= self._needed:
            state = {**self._begun(group, p), **state}
        if self._counted:
            state["step"] = _next_step(self._name, {"step": 0, **state})
        return state

    def _check_step(self, params: list[Any], states: list[dict[str, Any]]) -> None:
        """Raise an error unless gradients and states fit the parameters, which must be writable."""
        names = sorted(self._like_parameter()) if params else []
        kept = [_handles(name, [state[name] for state in states]) for name in names]
        check_fit(self._name, params, kept)

    def _like_parameter(self) -> frozenset[str]:
        """The names of state entries that are tensors of the parameter's shape."""
        return self._remembered - self._numbers - {"step"}

    def _update(self, group: Group) -> None:
        self._write(self._moves(group))

    def _update_all(self) -> None:
        if type(self)._update is not ByParameter._update:  # a subclass with its own step
            super()._update_all()
            return
        if self._hooks:
            give_up(f"{self._name}.step", "calls hooks")
        self._write([move for group in self.param_groups for move in self._moves(group)])

    def _write(self, moves: list[_Move]) -> None:
        if not self._in_place and active() is not None:
            self._in_place = True
        for p, new, state in moves:
            p.copy_(new)
            held = self.state.setdefault(p, {})
            if self._in_place:
                state = {name: _over(held.get(name), x) for name, x in state.items()}
            held.update(state)

    def _taken(self, place: int, p: Any, key: str, value: Any) -> Any:
        if key not in self._numbers:
            return super()._taken(place, p, key, value)
        name = f"[{self._name}] the state {key!r} of parameter {place}"
        number = value.item() if getattr(value, "shape", None) == () else value
        if isinstance(number, bool) or not isinstance(number, Real):
            raise TypeError(f"{name} is a {type(value).__name__}, but must be a number")
        if not isfinite(number):
            raise ValueError(f"{name} is {number}, but must be finite")
        return float(number)


# ---- recorded steps ------------------------------------------------------------------------------


@dataclass(eq=False)
class Turn:
    """Parameters of a group whose states have the same numbers, in a step that is recorded.

    ``form`` says how the step is computed. ``before`` is the turn of the same parameters in an
    earlier step of the same recording. ``counts`` are the numbers of the state after the step.
    """

    optimizer: ByParameter
    group: Group
    form: Any
    before: Turn | None
    counts: Numbers
    written: list[Any] = field(default_factory=list)  # the parameters
    states: list[dict[str, Any]] = field(default_factory=list)

    @property
    def renew(self) -> Callable[[], Any]:
        """A function that gives the numbers of the next step."""
        return partial(self.optimizer._renewed, self)


def _form(group: Group, n: Numbers) -> Any:
    """All values that choose how a step is computed: everything but floats."""
    chosen = [(name, None if type(x) is float else x) for name, x in n.items()]
    return bool(group.get("maximize")), chosen


def _note(states: list[dict[str, Any]], counts: Numbers) -> None:
    """Note the numbers of a step that was made."""
    for state in states:
        state.update(counts)


def _over(old: Any, new: Any) -> Any:
    """The new value, written into the old tensor if there is one."""
    written: Any = old
    return written.copy_(new) if isinstance(old, TensorBase) and old is not new else new


# ---- what methods share --------------------------------------------------------------------------


def check_fit(name: str, params: list[Any], kept: list[list[Any]]) -> None:
    """Raise an error unless gradients and state fit the parameters, which must be writable."""
    gradients = _handles("grad", [p.grad for p in params])
    three = (*kept, None, None, None)[:3]
    try:
        call(kernels.step_check, _handles("", params), gradients, *three)
    except (TypeError, ValueError, MemoryError) as error:
        raise _misfit(renamed(name, error), params, kept) from None


def decay(group: Group) -> Numbers:
    """The numbers for :func:`decayed`."""
    return {"decay": float(group["weight_decay"])} if group["weight_decay"] else {}


def decayed(n: Numbers, p: Any, g: Any) -> Any:
    """The gradient plus ``weight_decay`` times the parameter."""
    return g + p * n["decay"] if "decay" in n else g


def shrinking(group: Group) -> Numbers:
    """The numbers for :func:`shrunk`."""
    shrinks = group["weight_decay"]
    return {"shrink": 1 - float(group["lr"]) * float(shrinks)} if shrinks else {}


def shrunk(n: Numbers, p: Any) -> Any:
    """The parameter times ``1 - lr * weight_decay``."""
    return p * n["shrink"] if "shrink" in n else p


def mixing(weight: float) -> tuple[bool, float]:
    """Whether :func:`mixed` goes from the first tensor, and the share of the difference."""
    near = -0.5 < weight < 0.5
    return near, float(weight) if near else -(1.0 - weight)


def mixed(a: Any, b: Any, near: Any, share: Any) -> Any:
    """``a.lerp(b, weight)``, by what :func:`mixing` makes of the weight."""
    if near is True:
        return a + (b - a) * share
    return chosen(near, lambda: a, lambda: b) + (b - a) * share


def chosen(choice: Any, one: Callable[[], Any], other: Callable[[], Any]) -> Any:
    """One value if the choice is true, else the other. A tensor is true above 0."""
    if type(choice) is float or type(choice) is bool:
        return one() if choice else other()
    return where(choice > 0, one(), other())


def check_ranges(name: str, options: Group, names: Iterable[str], below: float = inf) -> None:
    """Raise a ValueError unless these options are in [0, below)."""
    for option in names:
        _check_range(name, option, options[option], below)


def check_switches(name: str, options: Group, *names: str) -> None:
    """Raise an error unless these options are True or False."""
    for option in names:
        _check_switch(name, option, options[option])


def check_pair(name: str, option: str, value: Any, below: float = 1.0) -> None:
    """Raise an error unless the option is two numbers in [0, below)."""
    if not isinstance(value, (tuple, list)) or len(value) != 2:
        raise ValueError(f"[{name}] {option} must be two numbers, not {value!r}")
    for place, number in enumerate(value):
        _check_range(name, f"{option}[{place}]", number, below)
