"""Optimizers SGD, Adam, AdamW and RMSprop, with PyTorch's arguments, operations and state.

A step of a group is one call of C: one pass over its parameters, gradients and state. All groups
are checked before the first parameter changes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from itertools import chain
from math import inf
from numbers import Real
from operator import is_
from typing import TYPE_CHECKING, Any, NamedTuple

from minigrad.functions.arguments import renamed
from minigrad.functions.creation import foreign_values, tensor, zeros_like
from minigrad.functions.grad_modes import enable_grad
from minigrad.optim.hooks import Hooked
from minigrad.runtime.dtypes import by_code
from minigrad.runtime.native import Array, call, kernels, title_of
from minigrad.runtime.recorders import give_up, stepped
from minigrad.tape.grad_mode import begin, end
from minigrad.tape.tensor_base import TensorBase
from minigrad.tape.writing import write

if TYPE_CHECKING:
    from minigrad._tensor import Tensor

__all__ = ["SGD", "Adam", "AdamW", "Optimizer", "RMSprop"]

Group = dict[str, Any]
Closure = Callable[[], Any]

_IN_PYTHON = "computes the step in Python"
_BESIDE_OPTIONS = frozenset(["params", "param_names", "initial_lr"])  # initial_lr is for schedules
# Options that choose among PyTorch's implementations of a step. minigrad has one.
_SWITCHES = frozenset(["capturable", "differentiable", "foreach", "fused"])
# Other options that PyTorch saves.
_PYTORCHS_OWN = _SWITCHES | frozenset(
    ["decoupled_weight_decay", "max_lr", "min_lr", "max_momentum", "base_momentum", "swa_lr"]
)


class Optimizer(Hooked):
    """Base class of optimizers: groups of parameters with options, and a state per parameter.

    ``params`` has tensors, or pairs of a name and a tensor as from ``model.named_parameters()``. It
    may also have dicts with "params" and options that differ from ``defaults``. The options are in
    ``param_groups``, and may be changed between steps. A group's names are its "param_names".
    ``state`` maps a parameter to a dict, which is empty at first.

    A subclass defines ``step``, as in PyTorch. It may instead define ``_update(group)``, which is
    called with recording off, and ``_check(options)``, which is called for each group before.

    Every optimizer accepts PyTorch's ``foreach``, ``fused`` and ``capturable``, for all parameters
    or in a group. These choose among PyTorch's implementations. They are checked and change
    nothing. ``differentiable`` can only be False, since no step is recorded.

    Raises TypeError unless all parameters are float tensors. Raises ValueError for no parameters,
    and for options out of range. Raises it also for a parameter that is given twice, is no leaf or
    is not contiguous, and for missing or duplicate names.
    """

    _remembered: frozenset[str] = frozenset()  # names of state entries; empty: any
    _needed: frozenset[str] = frozenset()  # names that a state must have unless it is empty
    _beyond_pytorch: frozenset[str] = frozenset()  # options that PyTorch's states lack

    def __init__(self, params: Iterable[Any], defaults: Mapping[str, Any], **switches: Any) -> None:
        self.defaults = dict(defaults)
        self.param_groups: list[Group] = []
        self.state: dict[Any, dict[str, Any]] = defaultdict(dict)
        self._name = type(self).__name__
        _check_switches(self._name, switches)
        self._sound: dict[int, tuple[Any, ...]] = {}  # id of a group -> its checked values
        if isinstance(params, TensorBase) or not isinstance(params, Iterable):
            raise TypeError(
                f"[{self._name}] params is a {type(params).__name__}, but must be a list of "
                "tensors: [x], or model.parameters()"
            )
        given = list(params)
        if not given:
            raise ValueError(
                f"[{self._name}] there are no parameters to optimize: a module finds no layers in "
                "a Python list or dict, but in mg.nn.ModuleList or ModuleDict; and "
                "model.parameters() can be gone through once, so call it anew for each use"
            )
        if isinstance(given[0], dict):
            for group in given:
                self.add_param_group(group)
        else:
            self.add_param_group({"params": given})

    def add_param_group(self, param_group: Mapping[str, Any]) -> None:
        """Add a group of parameters: a dict with "params" and any options that are not the
        defaults.
        """
        if not isinstance(param_group, Mapping) or "params" not in param_group:
            raise TypeError(f"[{self._name}] a parameter group is a dict with 'params'")
        known = {*self.defaults, *_BESIDE_OPTIONS, *_SWITCHES}
        unknown = [key for key in param_group if key not in known]
        if unknown:
            raise ValueError(
                f"[{self._name}] no option {unknown[0]!r}: there are {', '.join(self.defaults)}"
            )
        names, params = self._named(param_group["params"])
        if names is None:
            names = param_group.get("param_names")
        self._check_names(names, params)
        seen = {id(p) for group in self.param_groups for p in group["params"]}
        for place, p in enumerate(params):
            self._check_parameter(place, p)
            if id(p) in seen:
                raise ValueError(f"[{self._name}] parameter {place} is given twice")
            seen.add(id(p))
        switches = {k: v for k, v in param_group.items() if k in _SWITCHES - self.defaults.keys()}
        _check_switches(self._name, switches)
        own = {k: v for k, v in param_group.items() if k not in switches}
        group = {**self.defaults, **own, "params": params}
        if names is not None:
            group["param_names"] = list(names)
        self._check(group)
        self.param_groups.append(group)

    def _named(self, params: Any) -> tuple[list[str] | None, list[Any]]:
        """The names and the parameters of a group. The names are None unless it has pairs."""
        given: list[Any] = [params] if isinstance(params, TensorBase) else list(params)
        pairs = [isinstance(one, tuple) for one in given]
        if not any(pairs):
            return None, given
        if not all(pairs) or any(len(one) != 2 for one in given):
            raise ValueError(
                f"[{self._name}] the parameters of a group are all tensors, or all pairs of a name "
                "and a tensor"
            )
        return [name for name, _ in given], [p for _, p in given]

    def _check_names(self, names: Any, params: list[Any]) -> None:
        """Raise an error unless all parameters have names, if other groups have names."""
        if self.param_groups and (names is None) == ("param_names" in self.param_groups[0]):
            raise ValueError(f"[{self._name}] either all groups have names or none has")
        if names is None:
            return
        wrong = [name for name in names if not isinstance(name, str)]
        if wrong or len(names) != len(params):
            raise TypeError(f"[{self._name}] param_names is a list of a name for each parameter")
        known = [name for group in self.param_groups for name in group["param_names"]]
        if len({*known, *names}) < len(known) + len(names):
            raise ValueError(f"[{self._name}] two parameters have one name")

    def _check_parameter(self, place: int, p: Any) -> None:
        name = f"[{self._name}] parameter {place}"
        if not isinstance(p, TensorBase):
            raise TypeError(f"{name} is a {type(p).__name__}, not a Tensor")
        if p.dtype.is_storage or not p.dtype.is_floating_point:
            raise TypeError(f"{name} is {p.dtype.name}: only float tensors can be optimized")
        if not p.is_leaf:  # type: ignore[attr-defined]
            raise ValueError(
                f"{name} is the result of an operation: optimize the leaves it came from"
            )
        if not p._h.contiguous:
            raise ValueError(f"{name} is a view that is not contiguous: optimize what it views")

    def _check(self, options: Group) -> None:
        """Raise a ValueError for options out of range."""

    def _update(self, group: Group) -> None:
        """Update the parameters of a group."""
        raise NotImplementedError(f"[{self._name}] has no _update method")

    def step(self, closure: Closure | None = None) -> Any:
        """Update every parameter that has a gradient. If one cannot be updated, none is.

        ``closure``, if given, is called first. It computes the gradients and returns the loss,
        which ``step`` returns.

        Raises ValueError for options out of range. Raises ValueError for gradients or state of a
        shape other than their parameter's, and TypeError for another dtype.
        """
        loss = None
        if closure is not None:
            if not callable(closure):
                raise TypeError(
                    f"[{self._name}.step] a closure is a function that returns the loss, not "
                    f"{type(closure).__name__}; the learning rate is an option, "
                    f"mg.optim.{self._name}(params, lr=0.1)"
                )
            with enable_grad():
                loss = closure()
        for group in self.param_groups:
            self._check_changed(group)
        scope = begin(False)
        try:
            self._update_all()
        finally:
            scope.open = False
            end(scope)
        return loss

    def _check_changed(self, group: Group) -> None:
        """Check options that changed since the last step. Lists are always checked."""
        known = self._sound.get(id(group), ())
        if len(known) == len(group) and all(map(is_, group.values(), known)):
            return
        self._check(group)
        lists = [key for key, value in group.items() if isinstance(value, list)]
        constant = set(lists) <= {"params", "param_names"}
        self._sound[id(group)] = tuple(group.values()) if constant else ()

    def _update_all(self) -> None:
        give_up(f"{self._name}.step", _IN_PYTHON)
        for group in self.param_groups:
            self._update(group)

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Set the gradients of all parameters to None, or to 0."""
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.grad = None if set_to_none else zeros_like(p)

    # ---- its state ----

    def state_dict(self) -> dict[str, Any]:
        """The options, and the state by the parameters' positions, as dicts.

        Tensors are not copied.
        """
        self._call("state_before")
        made: dict[str, Any] = self._changed("state_after", self._state_by_place())
        return made

    def _state_by_place(self) -> dict[str, Any]:
        """The state before hooks change it."""
        places = {p: place for place, p in enumerate(self._parameters())}
        groups = [
            {**group, "params": [places[p] for p in group["params"]]} for group in self.param_groups
        ]
        return {
            "state": {places[p]: dict(state) for p, state in self.state.items()},
            "param_groups": groups,
        }

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Load a copy of the options and state of an optimizer of the same kind of parameters.

        A state of PyTorch's for the same optimizer is accepted too. Entries belong to parameters by
        position, not by name.

        Raises ValueError if groups, numbers of parameters, options, shapes or dtypes differ. Raises
        it also for numbers out of range, and for the state of another optimizer. Raises TypeError
        unless it is a state. An error changes nothing.
        """
        if self._hooks and isinstance(state_dict, Mapping):
            state_dict = self._changed("load_before", dict(state_dict))
        self._take_state(state_dict)
        self._call("load_after")

    def _take_state(self, state_dict: Mapping[str, Any]) -> None:
        """Load a state after the hooks."""
        if not isinstance(state_dict, Mapping) or not {"state", "param_groups"} <= set(state_dict):
            raise TypeError(
                f"[{self._name}] a state is what state_dict gives: a dict with 'state' and "
                f"'param_groups', not {type(state_dict).__name__}"
            )
        groups, states = state_dict["param_groups"], state_dict["state"]
        self._check_state(groups, states)
        sizes = [len(group["params"]) for group in self.param_groups]
        given = [len(group["params"]) for group in groups]
        if sizes != given:
            raise ValueError(
                f"[{self._name}] the state is for groups of {given} parameters, here are {sizes}"
            )
        places = list(chain.from_iterable(group["params"] for group in groups))
        self._check_places(places, states)
        loaded: dict[Any, dict[str, Any]] = defaultdict(dict)
        for place, p in zip(places, self._parameters(), strict=True):
            held = {k: v for k, v in states.get(place, {}).items() if v is not None}
            if held:
                loaded[p] = {key: self._taken(place, p, key, v) for key, v in held.items()}
        both = zip(self.param_groups, groups, strict=True)
        merged = [self._merged(number, own, group) for number, (own, group) in enumerate(both)]
        self.state = loaded
        self.param_groups = merged

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)

    def _check_state(self, groups: Any, states: Any) -> None:
        """Raise an error unless these are dicts with the entries of this optimizer's state.

        A user's subclass may have more entries.
        """
        if not isinstance(states, Mapping) or not all(
            isinstance(state, Mapping) for state in states.values()
        ):
            raise TypeError(f"[{self._name}] 'state' is a dict with a dict for each parameter")
        if not isinstance(groups, (list, tuple)) or not all(
            isinstance(group, Mapping) and isinstance(group.get("params"), (list, tuple))
            for group in groups
        ):
            raise TypeError(f"[{self._name}] 'param_groups' is a list of dicts with 'params'")
        own = self._is_ours()
        for place, state in states.items():
            held = {key for key, value in state.items() if value is not None}
            if own and self._remembered and not self._remembered.issuperset(state):
                raise ValueError(
                    f"[{self._name}] the state of parameter {place} holds {', '.join(state)}, but "
                    f"may hold {', '.join(sorted(self._remembered))}: is it another method's?"
                )
            missing = self._needed - held if held else ()
            if missing:
                raise ValueError(
                    f"[{self._name}] the state of parameter {place} holds {', '.join(state)}, but "
                    f"not {', '.join(sorted(missing))}: is it another method's?"
                )

    def _check_places(self, places: list[Any], states: Mapping[Any, Any]) -> None:
        """Raise an error unless saved parameters are numbered, and all state belongs to them."""
        if not all(isinstance(place, int) and not isinstance(place, bool) for place in places):
            raise TypeError(f"[{self._name}] 'params' of a saved group is a list of integers")
        if len(set(places)) < len(places):
            raise ValueError(f"[{self._name}] the saved groups name a parameter twice: {places}")
        foreign = [place for place in states if place not in places]
        if foreign:
            raise ValueError(
                f"[{self._name}] there is state of parameter {foreign[0]!r}, which is in no group"
            )

    def _merged(self, number: int, own: Group, saved: Mapping[str, Any]) -> Group:
        """The checked options of a saved group, with the parameters and names of this group."""
        foreign = _PYTORCHS_OWN - self.defaults.keys()
        options = {k: v for k, v in saved.items() if k not in foreign}
        unknown = [key for key in options if key not in {*self.defaults, *own, *_BESIDE_OPTIONS}]
        missing = [key for key in self.defaults if key not in {*options, *self._beyond_pytorch}]
        if unknown or missing:
            raise ValueError(
                f"[{self._name}] saved group {number} "
                + (f"has an option {unknown[0]!r}" if unknown else f"lacks {missing[0]!r}")
                + f", the options are {', '.join(self.defaults)}: is it another method's?"
            )
        # A group without a schedule has no initial rate.
        if "initial_lr" in options:
            _check_range(self._name, "initial_lr", options["initial_lr"])
        kept: Group = {key: own[key] for key in ("params", "param_names") if key in own}
        options.pop("param_names", None)
        group: Group = {**own, **options, **kept}
        self._check(group)
        return group

    def _taken(self, place: int, p: Any, key: str, value: Any) -> Any:
        """A copy of a state entry: a tensor like the parameter, or a number of steps."""
        name = f"[{self._name}] the state {key!r} of parameter {place}"
        if key == "step" and key in self._remembered:
            return _count(name, value)
        if not hasattr(value, "shape"):
            if key in self._remembered:
                raise TypeError(f"{name} is a {type(value).__name__}, but must be a tensor")
            return value
        if tuple(value.shape) != p.shape and (self._is_ours() or key in self._remembered):
            raise ValueError(f"{name} has shape {tuple(value.shape)}, the parameter {p.shape}")
        try:
            found = foreign_values(f"{self._name}: the state {key!r}", value)
        except TypeError as error:
            raise TypeError(f"{name} cannot be read: {error}") from None
        if not found.dtype.is_floating_point:
            if not self._is_ours() and key not in self._remembered:
                return tensor(found)
            raise TypeError(f"{name} is {found.dtype.name}, the parameter {p.dtype.name}")
        return tensor(found, p.dtype)

    def _is_ours(self) -> bool:
        """False for a user's class, whose state may have any entries."""
        return type(self).__module__.startswith("minigrad.optim.")

    def _parameters(self) -> list[Tensor]:
        return [p for group in self.param_groups for p in group["params"]]

    def __repr__(self) -> str:
        lines = []
        for place, group in enumerate(self.param_groups):
            options = ", ".join(f"{k}={v}" for k, v in group.items() if k != "params")
            lines.append(f"  group {place}: {len(group['params'])} parameters, {options}\n")
        return f"{self._name}(\n{''.join(lines)})"


def _check_range(name: str, option: str, value: Any, below: float = inf) -> None:
    """Raise a ValueError unless 0 <= value < below."""
    if (type(value) is float or type(value) is int) and 0 <= value < below:
        return
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"[{name}] {option} must be a number, not {type(value).__name__}")
    if not 0.0 <= float(value) < below:
        rule = "not be negative or infinite" if below == inf else f"be in [0, {below:g})"
        raise ValueError(f"[{name}] {option} is {value}, but must {rule}")


def _check_switch(name: str, option: str, value: Any) -> None:
    """Raise an error unless the value is True or False, or 1 or 0."""
    if value is not True and value is not False and value not in (0, 1):
        raise TypeError(f"[{name}] {option} must be True or False, not {value!r}")


def _check_switches(name: str, switches: Mapping[str, Any]) -> None:
    """Raise an error unless these are PyTorch's flags with a valid value: True, False or None."""
    for switch, value in switches.items():
        if switch not in _SWITCHES:
            raise TypeError(f"[{name}] got an unexpected keyword argument {switch!r}")
        if value is not None:
            _check_switch(name, switch, value)
    if switches.get("differentiable"):
        raise NotImplementedError(
            f"[{name}] differentiable=True is not offered: a step is not recorded. Write the step "
            "as operations on tensors to differentiate it"
        )
    if switches.get("foreach") and switches.get("fused"):
        raise ValueError(f"[{name}] foreach and fused cannot both be True")


def _size(value: Any) -> Any:
    """The magnitude of a number. Anything else is returned as is."""
    return abs(value) if isinstance(value, Real) and not isinstance(value, bool) else value


_MOST_STEPS = 2**53  # all integers up to here are exact in float64


def _count(name: str, value: Any) -> int:
    """A number of steps. As in PyTorch it may be a float or a tensor of one element."""
    if type(value) is int and 0 <= value <= _MOST_STEPS:
        return value
    if getattr(value, "shape", None) == ():
        value = value.item()
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"{name} is a {type(value).__name__}, but must be a number of steps")
    most: Any = 2 * _MOST_STEPS  # a larger integer may overflow a float
    number = float(min(value, most))
    if not 0 <= number <= _MOST_STEPS or number % 1:
        raise ValueError(f"{name} is {value}, but must be a whole number from 0 to 2**53")
    return int(number)


# ---- steps in C ----------------------------------------------------------------------------------


class Move(NamedTuple):
    """A call of C that updates parameters.

    ``kept`` has the arrays of each state entry, or None. ``note`` is called afterwards. ``renew``
    gives the move of the next step, with the same parameters and state: None if there is no such
    move. A recorded program calls it.

    The accelerator need not call it while all values in ``group`` and at ``places`` are the same.
    ``note`` then adds one to the "step" of each state in ``counted``. Entry ``step_at`` of the
    options is the number of the step.
    """

    kernel: int
    params: list[Any]
    kept: list[Any]
    options: tuple[Any, ...]
    note: Callable[[], Any] | None = None
    renew: Callable[[], Move | None] = lambda: None
    group: Group = {}  # noqa: RUF012 - never written
    counted: tuple[dict[str, Any], ...] = ()
    step_at: int = -1
    places: tuple[tuple[dict[str, Any], str], ...] = ()  # dicts and keys


class _Fused(Optimizer):
    """Base of optimizers whose step of a group is in C, by the calls of ``_moves(group)``."""

    def _moves(self, group: Group) -> list[Move]:
        """The calls that update the parameters of a group. Preparing them changes nothing."""
        raise NotImplementedError

    def _remember(self, states: dict[Any, dict[str, Any]], steps: list[int]) -> None:
        """Record the state of the updated parameters."""
        for state, step in zip(states.values(), steps, strict=True):
            state["step"] = step
        self.state.update(states)

    def _update(self, group: Group) -> None:
        _carry_out(self._moves(group))

    def _update_all(self) -> None:
        if type(self)._update is not _Fused._update:  # a subclass with its own step
            super()._update_all()
            return
        if self._hooks:
            give_up(f"{self._name}.step", "calls hooks")
        _carry_out([move for group in self.param_groups for move in self._moves(group)])


def _carry_out(moves: list[Move]) -> None:
    """Update parameters. If one call cannot be made, none is: C checks a call before it writes."""
    if len(moves) > 1:
        ready = [_ready_gradients(move) for move in moves]
    else:
        ready = [[p.grad._h for p in params] for _, params, *_ in moves]
    for place, move in enumerate(moves):
        kernel, params, kept, options, note, *_ = move
        handles = [p._h for p in params]
        pinned = [p for p, h in zip(params, handles, strict=True) if h.pins]
        try:
            call(kernel, handles, ready[place], *kept, *options)
            stepped(move)
        except MemoryError:
            if not place:
                raise
            for k in range(len(params)):  # a single parameter needs no extra memory
                own = [[some[k]] if isinstance(some, list) else some for some in kept]
                call(kernel, [handles[k]], [ready[place][k]], *own, *options)
        except (TypeError, ValueError) as error:
            raise _misfit(error, params, kept) from None
        for p in pinned:  # a graph saved it: note the place of the write
            write(None, p)
        if note is not None:
            note()


def _ready_gradients(move: Move) -> list[Array]:
    """The gradients in a form that C reads. Raises an error if the call could not be made."""
    kernel, params, kept, *_ = move
    gradients, states = _handles("grad", [p.grad for p in params]), [*kept, None, None][:3]
    try:
        call(kernels.step_check, _handles("", params), gradients, *states)
    except (TypeError, ValueError, MemoryError) as error:
        raise _misfit(renamed(title_of(kernel), error), params, kept) from None
    for k, (p, g) in enumerate(zip(params, gradients, strict=True)):
        if not g.contiguous or g.buffer == p._h.buffer:
            gradients[k] = call(kernels.copy, g)
    return gradients


def _misfit(error: Exception, params: list[Any], kept: list[Any]) -> Exception:
    """The error of a step for a gradient or state of another shape or dtype than its parameter."""
    op, _, _ = str(error).partition(" ")
    if not isinstance(error, (TypeError, ValueError)):
        return error
    for place, p in enumerate(params):
        states = [("state is still", some[place]) for some in kept if isinstance(some, list)]
        for what, h in [("gradient is", p.grad._h), *states]:
            if h.shape != p.shape or h.dtype != p._h.dtype:
                return type(error)(
                    f"{op} a parameter is {p.dtype.name} of shape {p.shape}, its {what} "
                    f"{by_code[h.dtype].name} of shape {tuple(h.shape)}"
                )
    return error


def _handles(what: str, tensors: Iterable[Any]) -> list[Array]:
    """The handles of tensors. Raises TypeError for anything else."""
    try:
        return [x._h for x in tensors]
    except AttributeError:
        raise TypeError(f"[step] {what} of a parameter is no tensor") from None


def _count_up(states: list[dict[str, Any]], step: int) -> None:
    """Note the number of the step that was made."""
    for state in states:
        state["step"] = step


def _with_gradients(group: Group) -> list[Any]:
    return [p for p in group["params"] if p.grad is not None]


def _grown(state: dict[str, Any] | None, p: Any, names: Iterable[str]) -> dict[str, Any]:
    """The state of p: the dict itself, or a new dict with zeros for missing arrays."""
    found = {"step": 0} if state is None else state
    for name in names:
        if name not in found:
            found = {**found, name: zeros_like(p)}
    return found


def _next_step(name: str, state: dict[str, Any]) -> int:
    """The number of the next step."""
    done = state.get("step")
    if not (type(done) is int and 0 <= done < _MOST_STEPS):
        done = _count(f"[{name}] the state 'step' of a parameter", done)
    return done + 1


class SGD(_Fused):
    """Stochastic gradient descent, with momentum (Sutskever et al. 2013, in PyTorch's form).

    g is the gradient plus ``weight_decay`` times the parameter. b is the running momentum, which
    starts as the first g. A step is ``b = momentum * b + (1 - dampening) * g; p -= lr * b``. With
    ``nesterov`` it is ``p -= lr * (g + momentum * b)``. ``maximize`` ascends the gradient.

    >>> import minigrad as mg
    >>> x = mg.tensor(5.0, requires_grad=True)
    >>> optimizer = mg.optim.SGD([x], lr=0.25)
    >>> for _ in range(20):
    ...     optimizer.zero_grad()
    ...     ((x - 3) ** 2).backward()
    ...     optimizer.step()
    >>> round(x.item(), 3)
    3.0
    """

    _remembered = frozenset(["momentum_buffer"])
    _needed = frozenset(["momentum_buffer"])

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: float = 0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        **switches: Any,
    ) -> None:
        defaults = {
            "lr": lr,
            "momentum": momentum,
            "dampening": dampening,
            "weight_decay": weight_decay,
            "nesterov": nesterov,
            "maximize": maximize,
        }
        super().__init__(params, defaults, **switches)

    def _check(self, options: Group) -> None:
        for option in ("lr", "momentum", "weight_decay"):
            _check_range(self._name, option, options[option])
        for option in ("nesterov", "maximize"):
            _check_switch(self._name, option, options[option])
        dampening = options["dampening"]
        if type(dampening) not in (float, int) or not -inf < dampening < inf:
            _check_range(self._name, "the size of dampening", _size(dampening))
        if options["nesterov"] and (options["momentum"] <= 0 or dampening != 0):
            raise ValueError(f"[{self._name}] nesterov needs a momentum > 0 and a dampening of 0")

    def _moves(self, group: Group) -> list[Move]:
        params = _with_gradients(group)
        if not group["momentum"]:
            return [self._move(group, params, None, None)]
        # The first gradient is not dampened.
        new = {p: {"momentum_buffer": zeros_like(p)} for p in params if p not in self.state}
        old = [p for p in params if p not in new] if new else params
        known = {**self.state, **new} if new else self.state
        moves = []
        for some, first in ((list(new), new), (old, None)):
            if some:
                name = "momentum_buffer"
                buffers = _handles(name, [known[p][name] for p in some])
                moves.append(self._move(group, some, buffers, first))
        return moves

    def _move(self, group: Group, params: list[Any], buffers: Any, first: Any) -> Move:
        """The step of some parameters; ``first`` is the new state if it is their first step."""
        momentum, dampening, nesterov = group["momentum"], group["dampening"], group["nesterov"]
        if buffers is None:
            momentum, dampening, nesterov = 0.0, 0.0, False
        elif first is not None:
            dampening = 0.0
        options = (group["lr"], momentum, dampening, group["weight_decay"], nesterov)
        note = None if first is None else partial(self.state.update, first)
        renew = partial(self._renewed, group, params, buffers, first)
        last = (*options, group["maximize"])
        return Move(kernels.sgd_step, params, [buffers], last, note, renew, group)

    def _renewed(self, group: Group, params: list[Any], buffers: Any, first: Any) -> Move | None:
        if first is not None or bool(group["momentum"]) != (buffers is not None):
            return None
        self._check_changed(group)
        return self._move(group, params, buffers, None)


class Adam(_Fused):
    """Adam (Kingma & Ba 2015, algorithm 1); with ``amsgrad`` as in Reddi et al. 2018.

    ``weight_decay`` times the parameter is added to the gradient. With ``decoupled_weight_decay``
    it shrinks the parameter instead, as in :class:`AdamW`. ``maximize`` ascends the gradient.
    """

    _decoupled = False
    _remembered = frozenset(["step", "exp_avg", "exp_avg_sq", "max_exp_avg_sq"])
    _needed = frozenset(["step", "exp_avg", "exp_avg_sq"])

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        decoupled_weight_decay: bool = False,
        **switches: Any,
    ) -> None:
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "amsgrad": amsgrad,
            "maximize": maximize,
        }
        _check_switch(type(self).__name__, "decoupled_weight_decay", decoupled_weight_decay)
        self._decoupled = self._decoupled or bool(decoupled_weight_decay)
        super().__init__(params, defaults, **switches)

    def _check(self, options: Group) -> None:
        for option in ("lr", "eps", "weight_decay"):
            _check_range(self._name, option, options[option])
        betas = options["betas"]
        if not isinstance(betas, (tuple, list)) or len(betas) != 2:
            raise ValueError(f"[{self._name}] betas must be two numbers, not {betas!r}")
        for place, beta in enumerate(betas):
            _check_range(self._name, f"betas[{place}]", beta, 1.0)
        for option in ("amsgrad", "maximize"):
            _check_switch(self._name, option, options[option])

    def _state_by_place(self) -> dict[str, Any]:
        """The state. As in PyTorch the groups have ``decoupled_weight_decay``."""
        state = super()._state_by_place()
        for group in state["param_groups"]:
            group["decoupled_weight_decay"] = self._decoupled
        return state

    def _take_state(self, state_dict: Mapping[str, Any]) -> None:
        """Load a state, with its ``decoupled_weight_decay`` except for AdamW."""
        super()._take_state(state_dict)
        if not type(self)._decoupled:
            self._decoupled = self._decoupled_in(state_dict["param_groups"]).pop()

    def _decoupled_in(self, groups: Any) -> set[bool]:
        return {bool(g.get("decoupled_weight_decay", self._decoupled)) for g in groups}

    def _check_state(self, groups: Any, states: Any) -> None:
        super()._check_state(groups, states)
        if len(self._decoupled_in(groups)) > 1:
            raise ValueError(
                f"[{self._name}] decoupled_weight_decay differs between the saved groups, but is "
                "one for an optimizer"
            )

    def _moves(self, group: Group) -> list[Move]:
        names = ["exp_avg", "exp_avg_sq"] + ["max_exp_avg_sq"] * bool(group["amsgrad"])
        by_step: dict[int, dict[Any, dict[str, Any]]] = {}
        for p in _with_gradients(group):
            state = _grown(self.state.get(p), p, names)
            by_step.setdefault(_next_step(self._name, state), {})[p] = state
        moves = []
        for step, states in by_step.items():
            kept: list[Any] = []
            for name in names:
                kept.append(_handles(name, [state[name] for state in states.values()]))
            kept += [None] * (3 - len(kept))
            moves.append(self._move(group, states, kept, step))
        return moves

    def _move(self, group: Group, states: dict[Any, Any], kept: list[Any], step: int) -> Move:
        options = (group["lr"], *group["betas"], group["eps"], group["weight_decay"])
        last = (self._decoupled, step, group["maximize"])
        note = partial(self._remember, states, [step] * len(states))
        made = Move(
            kernels.adam_step,
            list(states),
            kept,
            (*options, *last),
            note,
            group=group,
            counted=tuple(states.values()),
            step_at=len(options) + 1,
            places=((vars(self), "_decoupled"),),
        )
        return made._replace(renew=partial(self._renewed, group, states, kept, made))

    def _renewed(
        self, group: Group, states: dict[Any, Any], kept: list[Any], move: Move
    ) -> Move | None:
        held = list(states.values())
        done = [state.get("step") for state in held]
        step = _next_step(self._name, held[0])
        if done.count(done[0]) < len(done) or bool(group["amsgrad"]) != (kept[2] is not None):
            return None
        self._check_changed(group)
        options = (group["lr"], *group["betas"], group["eps"], group["weight_decay"])
        last = (self._decoupled, step, group["maximize"])
        return move._replace(options=(*options, *last), note=partial(_count_up, held, step))


class AdamW(Adam):
    """Adam with decoupled weight decay (Loshchilov & Hutter 2019): ``p *= 1 - lr * weight_decay``.

    >>> import minigrad as mg
    >>> w = mg.tensor([1.0], requires_grad=True)
    >>> optimizer = mg.optim.AdamW([w], lr=0.1, weight_decay=0.5)
    >>> w.grad = mg.zeros(1)
    >>> optimizer.step()
    >>> w
    tensor([0.95], requires_grad=True)
    """

    _decoupled = True

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        **switches: Any,
    ) -> None:
        super().__init__(
            params, lr, betas, eps, weight_decay, amsgrad, maximize=maximize, **switches
        )


class RMSprop(_Fused):
    """RMSprop (Tieleman & Hinton 2012): the gradient divided by the root of its mean square.

    The running mean decays by ``alpha``. With ``centered`` it is the variance, around the mean
    gradient (Graves 2013). ``momentum`` accumulates steps as in :class:`SGD`. ``maximize`` ascends
    the gradient.

    >>> import minigrad as mg
    >>> w = mg.tensor([1.0], requires_grad=True)
    >>> optimizer = mg.optim.RMSprop([w], lr=0.01)
    >>> w.grad = mg.tensor([5.0])
    >>> optimizer.step()
    >>> w
    tensor([0.9], requires_grad=True)
    """

    _remembered = frozenset(["step", "square_avg", "momentum_buffer", "grad_avg"])
    _needed = frozenset(["step", "square_avg"])

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum: float = 0,
        centered: bool = False,
        *,
        maximize: bool = False,
        **switches: Any,
    ) -> None:
        defaults = {
            "lr": lr,
            "momentum": momentum,
            "alpha": alpha,
            "eps": eps,
            "centered": centered,
            "weight_decay": weight_decay,
            "maximize": maximize,
        }
        super().__init__(params, defaults, **switches)

    def _check(self, options: Group) -> None:
        for option in ("lr", "eps", "weight_decay", "momentum", "alpha"):
            _check_range(self._name, option, options[option])
        for option in ("centered", "maximize"):
            _check_switch(self._name, option, options[option])

    def _moves(self, group: Group) -> list[Move]:
        chosen = {
            "square_avg": True,
            "momentum_buffer": group["momentum"] > 0,
            "grad_avg": group["centered"],
        }
        kinds = [name for name, use in chosen.items() if use]
        states = {p: _grown(self.state.get(p), p, kinds) for p in _with_gradients(group)}
        steps = [_next_step(self._name, state) for state in states.values()]
        kept = [
            _handles(name, [state[name] for state in states.values()]) if use else None
            for name, use in chosen.items()
        ]
        return [self._move(group, states, kept, steps)]

    def _move(
        self, group: Group, states: dict[Any, Any], kept: list[Any], steps: list[int]
    ) -> Move:
        names = ["lr", "alpha", "eps", "weight_decay", "momentum", "maximize"]
        options = tuple([group[name] for name in names])
        note = partial(self._remember, states, steps)
        renew = partial(self._renewed, group, states, kept)
        counted = tuple(states.values())
        return Move(kernels.rmsprop_step, list(states), kept, options, note, renew, group, counted)

    def _renewed(self, group: Group, states: dict[Any, Any], kept: list[Any]) -> Move | None:
        if [group["momentum"] > 0, bool(group["centered"])] != [x is not None for x in kept[1:]]:
            return None
        self._check_changed(group)
        steps = [_next_step(self._name, state) for state in states.values()]
        return self._move(group, states, kept, steps)
