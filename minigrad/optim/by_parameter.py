"""Base class of optimizers written in tensor operations, one parameter at a time.

A step computes the new values of all parameters before it writes the first, so one that fails
moves none. A method says what it remembers of a parameter at first, and what a gradient makes of
the two.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import inf, isfinite
from numbers import Real
from typing import Any

from minigrad._c import NULL, failure, lib
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

__all__ = ["ByParameter"]

_Move = tuple[Any, Any, dict[str, Any]]  # a parameter, its new values and its new state


class ByParameter(Optimizer):
    """A method whose ``_moved`` gives the new values of one parameter, and writes nothing."""

    _numbers: frozenset[str] = frozenset()  # names in a state that are numbers, besides "step"
    _counted = True  # whether a state has a "step"

    def _begun(self, group: Group, p: Any) -> dict[str, Any]:
        """The state of a parameter before its first step, without the "step"."""
        raise NotImplementedError

    def _moved(self, group: Group, p: Any, g: Any, state: dict[str, Any]) -> Any:
        """The new values of ``p`` for a gradient that points uphill.

        ``state`` is a dict of this step's own, whose "step" counts from 1: new entries go into it.
        """
        raise NotImplementedError

    def _moves(self, group: Group) -> list[_Move]:
        params = _with_gradients(group)
        states = [self._state_of(group, p) for p in params]
        self._check_step(params, states)
        moves = []
        for p, state in zip(params, states, strict=True):
            g = -p.grad if group.get("maximize") else p.grad
            moves.append((p, self._moved(group, p, g, state), state))
        return moves

    def _state_of(self, group: Group, p: Any) -> dict[str, Any]:
        """The state of p, as a new dict that counts the step to be made."""
        state = dict(self.state.get(p, ()))
        if not state.keys() >= self._needed:
            state = {**self._begun(group, p), **state}
        if self._counted:
            state["step"] = _next_step(self._name, {"step": 0, **state})
        return state

    def _check_step(self, params: list[Any], states: list[dict[str, Any]]) -> None:
        """Whether gradients and states fit the parameters, and these can be written."""
        names = sorted(self._like_parameter()) if params else []
        kept = [_handles(name, [state[name] for state in states]) for name in names]
        check_fit(self._name, params, kept)

    def _like_parameter(self) -> frozenset[str]:
        """Names in a state that are tensors of the parameter's shape."""
        return self._remembered - self._numbers - {"step"}

    def _update(self, group: Group) -> None:
        self._write(self._moves(group))

    def _update_all(self) -> None:
        if type(self)._update is not ByParameter._update:  # a class made of this steps by itself
            super()._update_all()
            return
        self._write([move for group in self.param_groups for move in self._moves(group)])

    def _write(self, moves: list[_Move]) -> None:
        for p, new, state in moves:
            p.copy_(new)
            self.state.setdefault(p, {}).update(state)

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


# ---- what methods share --------------------------------------------------------------------------


def check_fit(name: str, params: list[Any], kept: list[list[Any]]) -> None:
    """Whether gradients and state fit the parameters, and these can be written."""
    gradients = _handles("grad", [p.grad for p in params])
    three = (*kept, NULL, NULL, NULL)[:3]
    if lib.mg_step_check(len(params), _handles("", params), gradients, *three):
        call = (len(params), None, gradients, *kept)
        raise _misfit(failure(lib.mg_step_check, call, name), params, kept)


def decayed(group: Group, p: Any, g: Any) -> Any:
    """The gradient plus ``weight_decay`` times the parameter."""
    decay = group["weight_decay"]
    return g.add(p, alpha=decay) if decay else g


def shrunk(group: Group, p: Any) -> Any:
    """The parameter times ``1 - lr * weight_decay``."""
    decay = group["weight_decay"]
    return p * (1 - group["lr"] * decay) if decay else p


def check_ranges(name: str, options: Group, names: Iterable[str], below: float = inf) -> None:
    """Whether these options are in [0, below)."""
    for option in names:
        _check_range(name, option, options[option], below)


def check_switches(name: str, options: Group, *names: str) -> None:
    """Whether these options are True or False."""
    for option in names:
        _check_switch(name, option, options[option])


def check_pair(name: str, option: str, value: Any, below: float = 1.0) -> None:
    """Whether it is two numbers in [0, below)."""
    if not isinstance(value, (tuple, list)) or len(value) != 2:
        raise ValueError(f"[{name}] {option} must be two numbers, not {value!r}")
    for place, number in enumerate(value):
        _check_range(name, f"{option}[{place}]", number, below)
