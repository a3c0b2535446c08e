"""Optimizers: SGD, Adam, AdamW, RMSprop; PyTorch's arguments, order of operations and state.

A step is one call of C for a group: one pass over its parameters, their gradients and their state.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import chain
from math import inf
from numbers import Real
from typing import TYPE_CHECKING, Any

from minigrad._c import NULL, Handle, lib, run
from minigrad.creation import tensor, zeros_like
from minigrad.dispatch import TensorBase, write
from minigrad.dtypes import by_code
from minigrad.tape import begin, enable_grad, end

if TYPE_CHECKING:
    from minigrad._tensor import Tensor

__all__ = ["SGD", "Adam", "AdamW", "Optimizer", "RMSprop"]

Group = dict[str, Any]
Closure = Callable[[], Any]


class Optimizer:
    """Parameters in groups with options of their own, and what a method remembers of each.

    ``params`` holds tensors, or dicts with "params" and options that differ from ``defaults``. The
    options stand in ``param_groups`` and may be changed between steps; ``state`` maps a parameter
    to a dict. A method of one's own defines ``_update(group)``, which is called with recording off,
    and ``_check(options)``.

    Raises TypeError for what are no float tensors, ValueError for no parameters, for one that is
    given twice, not a leaf or not contiguous, and for options out of range.
    """

    _remembered: frozenset[str] = frozenset()  # names in the state of a parameter; empty: any

    def __init__(self, params: Iterable[Any], defaults: Mapping[str, Any]) -> None:
        self.defaults = dict(defaults)
        self.param_groups: list[Group] = []
        self.state: dict[Any, dict[str, Any]] = {}
        self._name = type(self).__name__
        if isinstance(params, TensorBase) or not isinstance(params, Iterable):
            raise TypeError(
                f"[{self._name}] params is a {type(params).__name__}, but must be a list of "
                "tensors: [x], or model.parameters()"
            )
        given = list(params)
        if not given:
            raise ValueError(f"[{self._name}] there are no parameters to optimize")
        if isinstance(given[0], dict):
            for group in given:
                self.add_param_group(group)
        else:
            self.add_param_group({"params": given})

    def add_param_group(self, param_group: Mapping[str, Any]) -> None:
        """Optimize more parameters: a dict with "params" and options that are not the defaults."""
        if not isinstance(param_group, Mapping) or "params" not in param_group:
            raise TypeError(f"[{self._name}] a parameter group is a dict with 'params'")
        known = {*self.defaults, "params", "initial_lr"}  # the last is for schedules
        unknown = [key for key in param_group if key not in known]
        if unknown:
            raise ValueError(
                f"[{self._name}] no option {unknown[0]!r}: there are {', '.join(self.defaults)}"
            )
        params = param_group["params"]
        params = [params] if isinstance(params, TensorBase) else list(params)
        seen = {id(p) for group in self.param_groups for p in group["params"]}
        for place, p in enumerate(params):
            self._check_parameter(place, p)
            if id(p) in seen:
                raise ValueError(f"[{self._name}] parameter {place} is given twice")
            seen.add(id(p))
        group = {**self.defaults, **param_group, "params": params}
        self._check(group)
        self.param_groups.append(group)

    def _check_parameter(self, place: int, p: Any) -> None:
        name = f"[{self._name}] parameter {place}"
        if not isinstance(p, TensorBase):
            raise TypeError(f"{name} is a {type(p).__name__}, not a Tensor")
        if not p.dtype.is_floating_point:
            raise TypeError(f"{name} is {p.dtype.name}: only float tensors can be optimized")
        if not p.is_leaf:  # type: ignore[attr-defined]
            raise ValueError(
                f"{name} is the result of an operation: optimize the leaves it came from"
            )
        if not lib.mg_contiguous_now(p._h):
            raise ValueError(f"{name} is a view that is not contiguous: optimize what it views")

    def _check(self, options: Group) -> None:
        """ValueError for options out of range."""

    def _update(self, group: Group) -> None:
        """Move the parameters of a group."""
        raise NotImplementedError(f"[{self._name}] has no _update method")

    def step(self, closure: Closure | None = None) -> Any:
        """Move every parameter that has a gradient.

        ``closure``, if given, is called first; it computes the gradients and returns the loss,
        which is returned.
        """
        loss = None
        if closure is not None:
            with enable_grad():
                loss = closure()
        scope = begin(False)
        try:
            for group in self.param_groups:
                self._update(group)
        finally:
            scope.open = False
            end(scope)
        return loss

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients of all parameters, or set them to 0."""
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.grad = None if set_to_none else zeros_like(p)

    # ---- its state ----

    def state_dict(self) -> dict[str, Any]:
        """Options, and state by the parameters' positions, as dicts; tensors are not copied."""
        places = {p: place for place, p in enumerate(self._parameters())}
        groups = [
            {**group, "params": [places[p] for p in group["params"]]} for group in self.param_groups
        ]
        return {
            "state": {places[p]: dict(state) for p, state in self.state.items()},
            "param_groups": groups,
        }

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Take over a copy of the options and state of an optimizer of parameters like these.

        Raises ValueError where groups, numbers of parameters or shapes differ, or it is the state
        of another method, TypeError for what is no state; nothing is changed then.
        """
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
        saved_places = chain.from_iterable(group["params"] for group in groups)
        loaded = {}
        for place, p in zip(saved_places, self._parameters(), strict=True):
            if place in states:
                held = {key: v for key, v in states[place].items() if v is not None}
                if held:
                    loaded[p] = {key: self._taken(place, p, key, v) for key, v in held.items()}
        merged = [
            {**own, **group, "params": own["params"]}
            for own, group in zip(self.param_groups, groups, strict=True)
        ]
        for group in merged:
            self._check(group)
        self.state = loaded
        self.param_groups = merged

    def _check_state(self, groups: Any, states: Any) -> None:
        """Whether these are dicts, and hold what this method remembers: a class that was made of it
        elsewhere may remember more.
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
        known = self._remembered if type(self).__module__ == __name__ else frozenset()
        for place, state in states.items() if known else ():
            if not known.issuperset(state) or (state and "step" in known and "step" not in state):
                raise ValueError(
                    f"[{self._name}] the state of parameter {place} holds {', '.join(state)}, but "
                    f"may hold {', '.join(sorted(known))}: is it another method's?"
                )

    def _taken(self, place: int, p: Any, key: str, value: Any) -> Any:
        if not hasattr(value, "shape"):
            return value
        if tuple(value.shape) != p.shape:
            raise ValueError(
                f"[{self._name}] the state {key!r} of parameter {place} has shape "
                f"{tuple(value.shape)}, the parameter {p.shape}"
            )
        return tensor(value, p.dtype)

    def _parameters(self) -> list[Tensor]:
        return [p for group in self.param_groups for p in group["params"]]

    def __repr__(self) -> str:
        lines = []
        for place, group in enumerate(self.param_groups):
            options = ", ".join(f"{k}={v}" for k, v in group.items() if k != "params")
            lines.append(f"  group {place}: {len(group['params'])} parameters, {options}\n")
        return f"{self._name}(\n{''.join(lines)})"


def _check_range(name: str, option: str, value: Any, below: float = inf) -> None:
    """Whether 0 <= value < below."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"[{name}] {option} must be a number, not {type(value).__name__}")
    if not 0.0 <= float(value) < below:
        rule = "not be negative or infinite" if below == inf else f"be in [0, {below:g})"
        raise ValueError(f"[{name}] {option} is {value}, but must {rule}")


def _handles(tensors: Iterable[Any]) -> list[Handle]:
    return [x._h for x in tensors]


def _move(kernel: Any, params: list[Any], *args: Any) -> None:
    """Run a step on parameters; for those that a graph saved, note where they were written."""
    handles = [p._h for p in params]
    pinned = [p for p, h in zip(params, handles, strict=True) if lib.mg_pins(h)]
    try:
        run(kernel, len(params), handles, [p.grad._h for p in params], *args)
    except (TypeError, ValueError) as error:
        raise _misfit(error, params, [x for x in args if isinstance(x, list)]) from None
    for p in pinned:
        write(lambda: 0, p)


def _misfit(error: Exception, params: list[Any], kept: list[list[Handle]]) -> Exception:
    """The error of a step in which something has another shape or dtype than its parameter."""
    op, _, _ = str(error).partition(" ")
    for place, p in enumerate(params):
        others = [("gradient is", p.grad._h), *[("state is still", some[place]) for some in kept]]
        for what, h in others:
            if h.shape != p.shape or h.dtype != p._h.dtype:
                return type(error)(
                    f"{op} a parameter is {p.dtype.name} of shape {p.shape}, its {what} "
                    f"{by_code[h.dtype].name} of shape {tuple(h.shape)}"
                )
    return error


def _with_gradients(group: Group) -> list[Any]:
    return [p for p in group["params"] if p.grad is not None]


def _grown(state: dict[str, Any] | None, p: Any, names: Iterable[str]) -> dict[str, Any]:
    """What is remembered of p, a new dict if that is nothing; zeros for what is missing."""
    if state is None:
        state = {"step": 0}
    for name in names:
        if name not in state:
            state[name] = zeros_like(p)
    return state


class SGD(Optimizer):
    """Stochastic gradient descent, with momentum (Sutskever et al. 2013, in PyTorch's form).

    With g the gradient (plus ``weight_decay`` times the parameter) and b the running momentum,
    which starts as the first g: ``b = momentum * b + (1 - dampening) * g; p -= lr * b``, or with
    ``nesterov`` ``p -= lr * (g + momentum * b)``. ``maximize`` goes uphill.

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
    ) -> None:
        defaults = {
            "lr": lr,
            "momentum": momentum,
            "dampening": dampening,
            "weight_decay": weight_decay,
            "nesterov": nesterov,
            "maximize": maximize,
        }
        super().__init__(params, defaults)

    def _check(self, options: Group) -> None:
        for option in ("lr", "momentum", "weight_decay"):
            _check_range(self._name, option, options[option])
        if options["nesterov"] and (options["momentum"] <= 0 or options["dampening"] != 0):
            raise ValueError(f"[{self._name}] nesterov needs a momentum > 0 and a dampening of 0")

    def _update(self, group: Group) -> None:
        params, momentum, lr = _with_gradients(group), group["momentum"], group["lr"]
        decay, maximize = group["weight_decay"], group["maximize"]
        if not momentum:
            _move(lib.mg_sgd_step, params, NULL, lr, 0.0, 0.0, decay, False, maximize)
            return
        states = {p: {"momentum_buffer": zeros_like(p)} for p in params if p not in self.state}
        known = {**self.state, **states} if states else self.state
        old = [p for p in params if p not in states] if states else params
        # The first gradient enters undampened.
        for some, dampening in ((list(states), 0.0), (old, group["dampening"])):
            if some:
                buffers = [known[p]["momentum_buffer"]._h for p in some]
                options = (lr, momentum, dampening, decay, group["nesterov"], maximize)
                _move(lib.mg_sgd_step, some, buffers, *options)
        self.state.update(states)


class Adam(Optimizer):
    """Adam (Kingma & Ba 2015, algorithm 1); with ``amsgrad`` as in Reddi et al. 2018.

    ``weight_decay`` times the parameter is added to the gradient; :class:`AdamW` shrinks the
    parameter instead. ``maximize`` goes uphill.
    """

    _decoupled = False
    _remembered = frozenset(["step", "exp_avg", "exp_avg_sq", "max_exp_avg_sq"])

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
    ) -> None:
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "amsgrad": amsgrad,
            "maximize": maximize,
        }
        super().__init__(params, defaults)

    def _check(self, options: Group) -> None:
        for option in ("lr", "eps", "weight_decay"):
            _check_range(self._name, option, options[option])
        betas = options["betas"]
        if not isinstance(betas, (tuple, list)) or len(betas) != 2:
            raise ValueError(f"[{self._name}] betas must be two numbers, not {betas!r}")
        for place, beta in enumerate(betas):
            _check_range(self._name, f"betas[{place}]", beta, 1.0)

    def _update(self, group: Group) -> None:
        names = ["exp_avg", "exp_avg_sq"] + ["max_exp_avg_sq"] * bool(group["amsgrad"])
        params, states = _with_gradients(group), {}
        by_step: dict[int, list[Any]] = {}
        for p in params:
            state = states[p] = _grown(self.state.get(p), p, names)
            by_step.setdefault(state["step"] + 1, []).append(p)
        options = (group["lr"], *group["betas"], group["eps"], group["weight_decay"])
        for step, some in by_step.items():
            kept = [_handles(states[p][name] for p in some) for name in names]
            kept += [NULL] * (3 - len(kept))
            last = (self._decoupled, step, group["maximize"])
            _move(lib.mg_adam_step, some, *kept, *options, *last)
            for p in some:
                states[p]["step"] = step
                self.state[p] = states[p]


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
    ) -> None:
        super().__init__(params, lr, betas, eps, weight_decay, amsgrad, maximize=maximize)


class RMSprop(Optimizer):
    """RMSprop (Tieleman & Hinton 2012): steps by the gradient over the root of its mean square.

    That mean forgets by ``alpha``; with ``centered`` it is taken about the mean gradient (Graves
    2013). With ``momentum`` what is stepped by builds up, as in :class:`SGD`. ``maximize`` goes
    uphill.

    >>> import minigrad as mg
    >>> w = mg.tensor([1.0], requires_grad=True)
    >>> optimizer = mg.optim.RMSprop([w], lr=0.01)
    >>> w.grad = mg.tensor([5.0])
    >>> optimizer.step()
    >>> w
    tensor([0.9], requires_grad=True)
    """

    _remembered = frozenset(["step", "square_avg", "momentum_buffer", "grad_avg"])

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
        super().__init__(params, defaults)

    def _check(self, options: Group) -> None:
        for option in ("lr", "eps", "weight_decay", "momentum", "alpha"):
            _check_range(self._name, option, options[option])

    def _update(self, group: Group) -> None:
        wanted = {
            "square_avg": True,
            "momentum_buffer": group["momentum"] > 0,
            "grad_avg": group["centered"],
        }
        names = [name for name, use in wanted.items() if use]
        params = _with_gradients(group)
        states = {p: _grown(self.state.get(p), p, names) for p in params}
        kept = [
            _handles(states[p][name] for p in params) if use else NULL
            for name, use in wanted.items()
        ]
        options = (group["lr"], group["alpha"], group["eps"], group["weight_decay"])
        _move(lib.mg_rmsprop_step, params, *kept, *options, group["momentum"], group["maximize"])
        for p, state in states.items():
            state["step"] += 1
            self.state[p] = state
