"""Base class of optimizers written in tensor operations, one parameter at a time.

A step computes the new values of all parameters before it writes the first. A failing step
therefore changes no parameter. A subclass defines the first state of a parameter, and the new
values and state for a gradient.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import inf, isfinite
from numbers import Real
from typing import Any

from minigrad.functions.arguments import renamed
from minigrad.optim.optimizers import (
    _IN_PYTHON,
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
from minigrad.runtime.recorders import give_up

__all__ = ["ByParameter"]

_Move = tuple[Any, Any, dict[str, Any]]  # a parameter, its new values, its new state


class ByParameter(Optimizer):
    """Base of optimizers whose ``_moved`` returns one parameter's new values and writes nothing."""

    _numbers: frozenset[str] = frozenset()  # state entries that are numbers, besides "step"
    _counted = True  # True if the state has a "step"

    def _begun(self, group: Group, p: Any) -> dict[str, Any]:
        """The state of a parameter before its first step, without the "step"."""
        raise NotImplementedError

    def _moved(self, group: Group, p: Any, g: Any, state: dict[str, Any]) -> Any:
        """The new values of ``p`` for the gradient ``g`` of a loss to minimise.

        ``state`` is a new dict for this step, to which new entries are written. Its "step" counts
        from 1.
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
        give_up(f"{self._name}.step", _IN_PYTHON)
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
    """Raise an error unless gradients and state fit the parameters, which must be writable."""
    gradients = _handles("grad", [p.grad for p in params])
    three = (*kept, None, None, None)[:3]
    try:
        call(kernels.step_check, _handles("", params), gradients, *three)
    except (TypeError, ValueError, MemoryError) as error:
        raise _misfit(renamed(name, error), params, kept) from None


def decayed(group: Group, p: Any, g: Any) -> Any:
    """The gradient plus ``weight_decay`` times the parameter."""
    decay = group["weight_decay"]
    return g.add(p, alpha=decay) if decay else g


def shrunk(group: Group, p: Any) -> Any:
    """The parameter times ``1 - lr * weight_decay``."""
    decay = group["weight_decay"]
    return p * (1 - group["lr"] * decay) if decay else p


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
