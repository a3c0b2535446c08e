"""L-BFGS, a quasi-Newton method with limited memory, with PyTorch's arguments and state.

The two-loop recursion is algorithm 7.4 of Nocedal & Wright, Numerical Optimization (2006). The line
search is algorithms 3.5 and 3.6 of the same book. As in PyTorch it has the safeguards of Schmidt's
minFunc (2005).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from numbers import Real
from typing import Any, NamedTuple

from minigrad.functions.arguments import integer
from minigrad.functions.creation import foreign_values, tensor, zeros_like
from minigrad.functions.grad_modes import enable_grad, no_grad
from minigrad.functions.shaping import cat
from minigrad.optim.by_parameter import check_fit, check_ranges, check_switches
from minigrad.optim.optimizers import Closure, Group, Optimizer, _count, _with_gradients

__all__ = ["LBFGS"]


class LBFGS(Optimizer):
    """L-BFGS (Liu & Nocedal 1989), with steps of ``lr`` or a line search for the Wolfe conditions.

    ``step(closure)`` makes up to ``max_iter`` iterations with up to ``max_eval`` calls of the
    closure (by default ``1.25 * max_iter``). The closure sets the gradients to 0, computes them and
    returns the loss. It ends when no element of the gradient is above ``tolerance_grad``, or when
    the step or the change of the loss is within ``tolerance_change``. The curvature is estimated
    from the last ``history_size`` steps. ``line_search_fn`` is None or "strong_wolfe". There is one
    group of parameters. The state is kept with the first parameter. ``maximize`` ascends the
    gradient.

    If the closure raises an error, the parameters are restored.

    >>> import minigrad as mg
    >>> x = mg.tensor([-1.0, 1.0], dtype=mg.float64, requires_grad=True)
    >>> optimizer = mg.optim.LBFGS(
    ...     [x], max_iter=100, tolerance_change=1e-12, line_search_fn="strong_wolfe"
    ... )
    >>> def closure():
    ...     optimizer.zero_grad()
    ...     loss = (1 - x[0]) ** 2 + 100 * (x[1] - x[0] ** 2) ** 2
    ...     loss.backward()
    ...     return loss
    >>> loss = optimizer.step(closure)
    >>> [round(v, 6) for v in x.tolist()]
    [1.0, 1.0]
    """

    _beyond_pytorch = frozenset(["maximize"])
    _needed = frozenset(["func_evals", "n_iter"])
    _vectors = frozenset(["d", "prev_flat_grad"])
    _histories = frozenset(["old_dirs", "old_stps", "ro"])
    _numbers = frozenset(["t", "H_diag", "prev_loss"])
    _remembered = _needed | _vectors | _histories | _numbers | {"al"}

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1,
        max_iter: int = 20,
        max_eval: int | None = None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 100,
        line_search_fn: str | None = None,
        *,
        maximize: bool = False,
        **switches: Any,
    ) -> None:
        if max_eval is None:
            max_eval = integer("LBFGS", "max_iter", max_iter, 1) * 5 // 4
        defaults = {
            "lr": lr,
            "max_iter": max_iter,
            "max_eval": max_eval,
            "tolerance_grad": tolerance_grad,
            "tolerance_change": tolerance_change,
            "history_size": history_size,
            "line_search_fn": line_search_fn,
            "maximize": maximize,
        }
        super().__init__(params, defaults, **switches)

    def add_param_group(self, param_group: Mapping[str, Any]) -> None:
        """Set the parameters. Raises ValueError for a second group."""
        if self.param_groups:
            raise ValueError(f"[{self._name}] there can be one group of parameters only")
        super().add_param_group(param_group)

    def _check(self, options: Group) -> None:
        check_ranges(self._name, options, ("lr", "tolerance_grad", "tolerance_change"))
        check_switches(self._name, options, "maximize")
        for option in ("max_iter", "max_eval", "history_size"):
            integer(self._name, option, options[option], 1)
        if options["line_search_fn"] not in (None, "strong_wolfe"):
            raise ValueError(
                f"[{self._name}] line_search_fn is {options['line_search_fn']!r}, but must be None "
                "or 'strong_wolfe'"
            )

    def step(self, closure: Closure | None = None) -> Any:
        """Iterate, and return the loss before the first iteration."""
        if closure is None:
            raise TypeError(
                f"[{self._name}] step needs a function that computes the loss and its gradients: "
                "step(closure)"
            )
        group = self.param_groups[0]
        self._check(group)
        params = group["params"]
        with no_grad():
            origin = [p.detach().clone() for p in params]
            try:
                loss, state = self._iterate(group, _Objective(self._name, group, closure))
            except BaseException:
                _put(params, origin)
                raise
        self.state[params[0]] = state
        return loss

    def _iterate(self, group: Group, objective: _Objective) -> tuple[Any, dict[str, Any]]:
        """Returns the first loss of the closure, and the new state."""
        state = {"func_evals": 0, "n_iter": 0, **self.state.get(group["params"][0], {})}
        f, g = objective.now()
        loss, tolerance = objective.loss, group["tolerance_change"]
        for left in reversed(range(group["max_iter"])):
            if _largest(g) <= group["tolerance_grad"]:
                break
            state["n_iter"] += 1
            d = _direction(group, state, g)
            state |= {"d": d, "t": _first_rate(group, state, g)}
            state |= {"prev_flat_grad": g, "prev_loss": f}
            slope = _dot(g, d)
            if slope > -tolerance:
                break
            if group["line_search_fn"]:
                start = _Point(0.0, f, g, slope)
                most = group["max_eval"] - objective.calls
                end = _line_search(objective.along(d), start, state["t"], _largest(d), most)
                state["t"], f, g = end.t, end.f, end.g
                objective.move(d, end.t)
            else:
                objective.move(d, state["t"])
                if left:  # the loss after the last step is not computed
                    f, g = objective.now()
            if objective.calls >= group["max_eval"] or not left:
                break
            small = _largest(d) * state["t"] <= tolerance
            if small or abs(f - state["prev_loss"]) < tolerance:
                break
        state["func_evals"] += objective.calls
        return loss, state

    # ---- its state ----

    def _take_state(self, state_dict: Mapping[str, Any]) -> None:
        """Load a state, without PyTorch's unused entries for a step."""
        super()._take_state(state_dict)
        for state in self.state.values():
            state.pop("al", None)

    def _check_state(self, groups: Any, states: Any) -> None:
        super()._check_state(groups, states)
        for place, state in states.items():
            kept = [state.get(name) or [] for name in sorted(self._histories)]
            name = f"[{self._name}] the state of parameter {place}"
            if not all(isinstance(some, (list, tuple)) for some in kept):
                raise TypeError(f"{name} has {', '.join(sorted(self._histories))} as lists")
            if len({len(some) for some in kept}) > 1:
                raise ValueError(f"{name} has histories of {list(map(len, kept))} steps")
            begun = self._vectors | self._histories | self._numbers
            missing = [key for key in sorted(begun) if state.get(key) is None]
            if state["n_iter"] and missing:
                raise ValueError(f"{name} lacks {', '.join(missing)}")

    def _taken(self, place: int, p: Any, key: str, value: Any) -> Any:
        name = f"[{self._name}] the state {key!r} of parameter {place}"
        if key == "al":
            return None
        if key in self._needed:
            return _count(name, value)
        if key in self._numbers:
            return _number(name, value)
        if key == "ro":
            return [_number(name, one) for one in value]
        many = value if key in self._histories else [value]
        vectors = [self._vector(name, one) for one in many]
        return vectors if key in self._histories else vectors[0]

    def _vector(self, name: str, value: Any) -> Any:
        """A copy of a vector with an element for each element of all parameters."""
        like = _flat([p.detach() for p in self._parameters()])
        if tuple(getattr(value, "shape", (None,))) != like.shape:
            raise ValueError(f"{name} is no tensor of shape {tuple(like.shape)}")
        return tensor(foreign_values(name, value), like.dtype)


# ---- the function that is minimized --------------------------------------------------------------


class _Objective:
    """The loss as a function of one vector of all parameters, negated if ``maximize``."""

    def __init__(self, name: str, group: Group, closure: Closure) -> None:
        self.name, self.group, self.closure = name, group, closure
        self.params: list[Any] = group["params"]
        self.calls = 0
        self.loss: Any = None  # first loss of the closure

    def now(self) -> tuple[float, Any]:
        """The value and the gradient at the present parameters."""
        with enable_grad():
            loss = self.closure()
        if not hasattr(loss, "__float__"):
            kind = type(loss).__name__
            raise TypeError(f"[{self.name}] the closure returned {kind}, but must return the loss")
        self.loss = loss if not self.calls else self.loss
        self.calls += 1
        check_fit(self.name, _with_gradients(self.group), [])
        grads = [zeros_like(p) if p.grad is None else p.grad for p in self.params]
        f, g = float(loss), _flat(grads)
        return (-f, -g) if self.group["maximize"] else (f, g)

    def move(self, d: Any, t: float) -> None:
        """Add t times d to the parameters."""
        _put(self.params, _further(self.params, d, t))

    def along(self, d: Any) -> Callable[[float], _Point]:
        """A function of t: value and gradient at t times d from here. Parameters are restored."""
        origin = [p.detach().clone() for p in self.params]

        def at(t: float) -> _Point:
            self.move(d, t)
            f, g = self.now()
            _put(self.params, origin)
            return _Point(t, f, g, _dot(g, d))

        return at


def _put(params: list[Any], values: Iterable[Any]) -> None:
    for p, value in zip(params, values, strict=True):
        p.copy_(value)


def _further(params: list[Any], d: Any, t: float) -> list[Any]:
    found, place = [], 0
    for p in params:
        part = d[place : place + p.numel()].reshape(p.shape)
        found.append(p.detach().add(part, alpha=t))
        place += p.numel()
    return found


def _flat(tensors: list[Any]) -> Any:
    return cat([x.reshape(-1) for x in tensors])


def _dot(a: Any, b: Any) -> float:
    return float(a.dot(b).item())


def _largest(x: Any) -> float:
    """The largest magnitude of an element; 0 for no elements."""
    return float(x.abs().max().item()) if x.numel() else 0.0


def _number(name: str, value: Any) -> float:
    number = value.item() if getattr(value, "shape", None) in ((), (1,)) else value
    if isinstance(number, bool) or not isinstance(number, Real):
        raise TypeError(f"{name} is a {type(value).__name__}, but must be a number")
    return float(number)


# ---- where to, and how far -----------------------------------------------------------------------


def _first_rate(group: Group, state: dict[str, Any], g: Any) -> float:
    """The first step size along the direction."""
    if state["n_iter"] > 1:
        return float(group["lr"])
    total = float(g.abs().sum().item())
    return float(group["lr"]) * min(1.0, 1.0 / total)


def _direction(group: Group, state: dict[str, Any], g: Any) -> Any:
    """Minus the approximate inverse Hessian times the gradient, by the two-loop recursion."""
    if state["n_iter"] == 1:
        state |= {"old_dirs": [], "old_stps": [], "ro": [], "H_diag": 1.0}
        return -g
    y, s = g - state["prev_flat_grad"], state["d"] * state["t"]
    curvature = _dot(y, s)
    if curvature > 1e-10:
        for name, value in (("old_dirs", y), ("old_stps", s), ("ro", 1 / curvature)):
            state[name] = [*state[name], value][-group["history_size"] :]
        state["H_diag"] = curvature / _dot(y, y)
    steps = list(zip(state["old_dirs"], state["old_stps"], state["ro"], strict=True))
    q, parts = -g, []
    for y, s, ro in reversed(steps):
        parts.append(_dot(s, q) * ro)
        q = q.add(y, alpha=-parts[-1])
    r = q * state["H_diag"]
    for (y, s, ro), part in zip(steps, reversed(parts), strict=True):
        r = r.add(s, alpha=part - _dot(y, r) * ro)
    return r


class _Point(NamedTuple):
    """A point of a line: distance, value, gradient, and directional derivative."""

    t: float
    f: float
    g: Any
    slope: float


_DECREASE, _CURVATURE = 1e-4, 0.9  # the constants of the Wolfe conditions
_WIDTH = 1e-9  # smallest width of a bracket, relative to the largest move


def _line_search(
    at: Callable[[float], _Point], start: _Point, t: float, longest: float, most: int
) -> _Point:
    """A point with the strong Wolfe conditions, or the lowest point that was found."""

    def too_high(point: _Point) -> bool:
        return point.f > start.f + _DECREASE * point.t * start.slope

    def flat(point: _Point) -> bool:
        return abs(point.slope) <= -_CURVATURE * start.slope

    # Extend the step until such points lie between the last two (algorithm 3.5).
    last, point, looks = start, at(t), 0
    while looks < most:
        if too_high(point) or (looks > 1 and point.f >= last.f):
            break
        if flat(point):
            return point
        if point.slope >= 0:
            break
        bounds = point.t + 0.01 * (point.t - last.t), 10 * point.t
        last, point = point, at(_cubic_minimum(last, point, bounds))
        looks += 1
    else:
        last = start
    # Narrow the bracket (algorithm 3.6).
    bracket, stuck = [last, point], False
    while looks < most:
        ends = sorted(p.t for p in bracket)
        if (ends[1] - ends[0]) * longest < _WIDTH:
            break
        t = _cubic_minimum(bracket[0], bracket[1], (ends[0], ends[1]))
        t, stuck = _off_the_ends(t, ends[0], ends[1], stuck)
        point = at(t)
        looks += 1
        low = _lower(bracket)
        if too_high(point) or point.f >= bracket[low].f:
            bracket[1 - low] = point
            continue
        done = flat(point)
        if not done and point.slope * (bracket[1 - low].t - bracket[low].t) >= 0:
            bracket[1 - low] = bracket[low]
        bracket[low] = point
        if done:
            return point
    return bracket[_lower(bracket)]


def _lower(bracket: list[_Point]) -> int:
    """The index of the lower of two points."""
    return 0 if bracket[0].f <= bracket[1].f else 1


def _off_the_ends(t: float, low: float, high: float, stuck: bool) -> tuple[float, bool]:
    """Keep t away from the ends of a bracket, and say whether t was near an end.

    If t is near an end for the second time, or outside, it becomes a point a tenth of the width
    from this end.
    """
    margin = 0.1 * (high - low)
    if min(high - t, t - low) >= margin:
        return t, False
    if not (stuck or t >= high or t <= low):
        return t, True
    return (high - margin if high - t < t - low else low + margin), False


def _cubic_minimum(a: _Point, b: _Point, bounds: tuple[float, float]) -> float:
    """The minimiser, within bounds, of the cubic through two points with their slopes (3.59)."""
    if b.t < a.t:
        a, b = b, a
    low, high = bounds
    d1 = a.slope + b.slope - _ratio(3 * (a.f - b.f), a.t - b.t)
    square = d1 * d1 - a.slope * b.slope
    if not square >= 0:
        return (low + high) / 2
    d2 = math.sqrt(square)
    t = b.t - (b.t - a.t) * _ratio(b.slope + d2 - d1, b.slope - a.slope + 2 * d2)
    return (low + high) / 2 if math.isnan(t) else min(max(t, low), high)


def _ratio(a: float, b: float) -> float:
    """a / b with IEEE results if b is 0."""
    if b:
        return a / b
    return math.copysign(math.inf, a) if a else math.nan
