"""Optimizers that scale each entry's step by the size or the sign of its past gradients.

They are Adagrad, Adadelta, Adafactor and Rprop, with PyTorch's arguments, order of operations and
state.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from minigrad.functions.creation import full_like, zeros, zeros_like
from minigrad.functions.promotion import finfo
from minigrad.functions.selection import where
from minigrad.optim.by_parameter import (
    ByParameter,
    Numbers,
    check_pair,
    check_ranges,
    check_switches,
    decay,
    decayed,
    mixed,
    mixing,
    shrinking,
    shrunk,
)
from minigrad.optim.optimizers import Group, _check_range, _size
from minigrad.runtime.dtypes import float64
from minigrad.runtime.recorders import active
from minigrad.tape.tensor_base import TensorBase

__all__ = ["Adadelta", "Adafactor", "Adagrad", "Rprop"]


class Adagrad(ByParameter):
    """Adagrad (Duchi, Hazan & Singer 2011).

    A step is the gradient divided by the root of the sum of its squares. The sum starts at
    ``initial_accumulator_value``. The rate falls as ``lr / (1 + (step - 1) * lr_decay)``.
    ``weight_decay`` times the parameter is added to the gradient. ``maximize`` ascends the
    gradient.

    >>> import minigrad as mg
    >>> w = mg.tensor([1.0], requires_grad=True)
    >>> optimizer = mg.optim.Adagrad([w], lr=0.5)
    >>> w.grad = mg.tensor([5.0])
    >>> optimizer.step()
    >>> w
    tensor([0.5], requires_grad=True)
    """

    _remembered = _needed = frozenset(["step", "sum"])

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-2,
        lr_decay: float = 0,
        weight_decay: float = 0,
        initial_accumulator_value: float = 0,
        eps: float = 1e-10,
        *,
        maximize: bool = False,
        **switches: Any,
    ) -> None:
        defaults = {
            "lr": lr,
            "lr_decay": lr_decay,
            "eps": eps,
            "weight_decay": weight_decay,
            "initial_accumulator_value": initial_accumulator_value,
            "maximize": maximize,
        }
        super().__init__(params, defaults, **switches)

    def _check(self, options: Group) -> None:
        names = ("lr", "lr_decay", "weight_decay", "initial_accumulator_value", "eps")
        check_ranges(self._name, options, names)
        check_switches(self._name, options, "maximize")

    def _begun(self, group: Group, p: Any) -> dict[str, Any]:
        return {"sum": full_like(p, group["initial_accumulator_value"])}

    def _numbers_of(self, group: Group) -> Numbers:
        return {key: float(group[key]) for key in ("lr", "lr_decay", "eps")} | decay(group)

    def _count(self, n: Numbers, state: dict[str, Any]) -> None:
        n["rate"] = n["lr"] / (1 + (state["step"] - 1) * n["lr_decay"])

    def _moved(self, n: Numbers, p: Any, g: Any, state: dict[str, Any]) -> Any:
        g = decayed(n, p, g)
        total = state["sum"] = state["sum"] + g * g
        return p - g / (total.sqrt() + n["eps"]) * n["rate"]


class Adadelta(ByParameter):
    """Adadelta (Zeiler 2012).

    A step is g * sqrt(d) / sqrt(m), where g is the gradient. d is the running mean of past squared
    steps, m of squared gradients. Both means decay by ``rho``. ``eps`` is added under both roots.
    ``weight_decay`` times the parameter is added to the gradient. ``maximize`` ascends the
    gradient.

    >>> import minigrad as mg
    >>> w = mg.tensor([1.0], requires_grad=True)
    >>> optimizer = mg.optim.Adadelta([w], rho=0.0, eps=1.0)
    >>> w.grad = mg.tensor([0.75])
    >>> optimizer.step()
    >>> round(w.item(), 6)
    0.4
    """

    _remembered = _needed = frozenset(["step", "square_avg", "acc_delta"])

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0,
        *,
        maximize: bool = False,
        **switches: Any,
    ) -> None:
        defaults = {
            "lr": lr,
            "rho": rho,
            "eps": eps,
            "weight_decay": weight_decay,
            "maximize": maximize,
        }
        super().__init__(params, defaults, **switches)

    def _check(self, options: Group) -> None:
        check_ranges(self._name, options, ("lr", "eps", "weight_decay", "rho"))
        if options["rho"] > 1:
            raise ValueError(f"[{self._name}] rho is {options['rho']}, but must be in [0, 1]")
        check_switches(self._name, options, "maximize")

    def _begun(self, group: Group, p: Any) -> dict[str, Any]:
        return {"square_avg": zeros_like(p), "acc_delta": zeros_like(p)}

    def _numbers_of(self, group: Group) -> Numbers:
        rho = float(group["rho"])
        n = {"rho": rho, "rest": 1 - rho, "eps": float(group["eps"]), "lr": float(group["lr"])}
        return n | decay(group)

    def _moved(self, n: Numbers, p: Any, g: Any, state: dict[str, Any]) -> Any:
        rho, rest, eps = n["rho"], n["rest"], n["eps"]
        g = decayed(n, p, g)
        squares = state["square_avg"] = state["square_avg"] * rho + g * g * rest
        delta = (state["acc_delta"] + eps).sqrt() / (squares + eps).sqrt() * g
        state["acc_delta"] = state["acc_delta"] * rho + delta * delta * rest
        return p - delta * n["lr"]


class Rprop(ByParameter):
    """Resilient backpropagation (Riedmiller & Braun 1993): only the signs of gradients count.

    Each element has a step size, at first ``lr``. The step size is multiplied by ``etas[1]`` while
    the gradient keeps its sign. When the sign changes, it is multiplied by ``etas[0]``, and no step
    is made. It stays within ``step_sizes``. ``maximize`` ascends the gradient.

    >>> import minigrad as mg
    >>> w = mg.tensor([1.0, 1.0], requires_grad=True)
    >>> optimizer = mg.optim.Rprop([w], lr=0.25)
    >>> w.grad = mg.tensor([5.0, -0.01])
    >>> optimizer.step()
    >>> w
    tensor([0.75, 1.25], requires_grad=True)
    """

    _remembered = _needed = frozenset(["step", "prev", "step_size"])

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-2,
        etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50),
        *,
        maximize: bool = False,
        **switches: Any,
    ) -> None:
        defaults = {"lr": lr, "etas": etas, "step_sizes": step_sizes, "maximize": maximize}
        super().__init__(params, defaults, **switches)

    def _check(self, options: Group) -> None:
        _check_range(self._name, "lr", options["lr"])
        for option in ("etas", "step_sizes"):
            check_pair(self._name, option, options[option], math.inf)
        shrink, grow = options["etas"]
        if not 0 < shrink < 1 < grow:
            raise ValueError(
                f"[{self._name}] etas is {options['etas']}, but must be below and above 1"
            )
        check_switches(self._name, options, "maximize")

    def _begun(self, group: Group, p: Any) -> dict[str, Any]:
        return {"prev": zeros_like(p), "step_size": full_like(p, group["lr"])}

    def _numbers_of(self, group: Group) -> Numbers:
        (shrink, grow), (least, most) = group["etas"], group["step_sizes"]
        n = {"shrink": float(shrink), "grow": float(grow)}
        return n | {"least": float(least), "most": float(most)}

    def _moved(self, n: Numbers, p: Any, g: Any, state: dict[str, Any]) -> Any:
        shrink, grow = n["shrink"], n["grow"]
        turn = (g * state["prev"]).sign()  # 1: same sign, -1: sign changed, 0 or NaN: unknown
        factor = full_like(p, 1.0).masked_fill(turn > 0, grow).masked_fill(turn < 0, shrink)
        size = state["step_size"] = (state["step_size"] * factor).clamp(n["least"], n["most"])
        prev = state["prev"] = g.masked_fill(turn < 0, 0.0)
        return p.addcmul(prev.sign(), size, value=-1)


class Adafactor(ByParameter):
    """Adafactor (Shazeer & Stern 2018): Adam with a factored second moment of matrices.

    A parameter with two or more dimensions keeps only the mean squares of the gradient's rows and
    columns, along the last two dimensions. The running mean of step t weighs the new value by
    ``t**beta2_decay``. The rate is ``min(lr, 1 / sqrt(t))`` times the root mean square of the
    parameter, or times ``eps[1]`` if that is larger. An update with a root mean square above ``d``
    is scaled down to ``d``. ``eps[0]`` is the smallest root of a mean square, by default the
    machine epsilon of the parameter's dtype. ``weight_decay`` shrinks the parameter as in
    :class:`AdamW`. ``maximize`` ascends the gradient.

    >>> import minigrad as mg
    >>> w = mg.tensor([3.0, 4.0], requires_grad=True)
    >>> optimizer = mg.optim.Adafactor([w], lr=0.1)
    >>> w.grad = mg.tensor([1.0, 1.0])
    >>> optimizer.step()
    >>> w
    tensor([2.6464467, 3.6464467], requires_grad=True)
    """

    _remembered = frozenset(["step", "row_var", "col_var", "variance"])
    _needed = frozenset(["step"])

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-2,
        beta2_decay: float = -0.8,
        eps: tuple[float | None, float] = (None, 1e-3),
        d: float = 1.0,
        weight_decay: float = 0.0,
        *,
        maximize: bool = False,
        **switches: Any,
    ) -> None:
        defaults = {
            "lr": lr,
            "beta2_decay": beta2_decay,
            "eps": eps,
            "d": d,
            "weight_decay": weight_decay,
            "maximize": maximize,
        }
        super().__init__(params, defaults, **switches)

    def _check(self, options: Group) -> None:
        name, eps = self._name, options["eps"]
        check_ranges(name, options, ("lr", "d", "weight_decay"))
        if not isinstance(eps, (tuple, list)) or len(eps) != 2:
            raise ValueError(f"[{name}] eps must be two numbers, or None and one, not {eps!r}")
        for place, number in enumerate(eps):
            if place or number is not None:
                _check_range(name, f"eps[{place}]", number)
        if options["d"] < 1:
            raise ValueError(f"[{name}] d is {options['d']}, but must be at least 1")
        decay = options["beta2_decay"]
        _check_range(name, "the size of beta2_decay", _size(decay))
        if decay > 0:
            raise ValueError(f"[{name}] beta2_decay is {decay}, but must not be above 0")
        check_switches(name, options, "maximize")

    def _like_parameter(self) -> frozenset[str]:
        return frozenset()

    def _check_step(self, params: list[Any], states: list[dict[str, Any]]) -> None:
        super()._check_step(params, states)
        for p, state in zip(params, states, strict=True):
            for name, shape in self._shapes(p).items():
                held = state.get(name)
                if not isinstance(held, TensorBase) or (held.shape, held.dtype) != (shape, p.dtype):
                    raise ValueError(
                        f"[{self._name}] the state {name!r} of a parameter of shape "
                        f"{tuple(p.shape)} must be {p.dtype.name} of shape {shape}"
                    )

    def _begun(self, group: Group, p: Any) -> dict[str, Any]:
        return {name: zeros(shape, dtype=p.dtype) for name, shape in self._shapes(p).items()}

    def _shapes(self, p: Any) -> dict[str, tuple[int, ...]]:
        """The shapes of the state of p."""
        shape = tuple(p.shape)
        if len(shape) < 2:
            return {"variance": shape}
        return {"row_var": (*shape[:-1], 1), "col_var": (*shape[:-2], 1, shape[-1])}

    def _taken(self, place: int, p: Any, key: str, value: Any) -> Any:
        if key == "step":
            return super()._taken(place, p, key, value)
        shape = self._shapes(p).get(key)
        if shape is None:
            raise ValueError(
                f"[{self._name}] a parameter of shape {tuple(p.shape)} has no state {key!r}"
            )
        return super()._taken(place, zeros(shape, dtype=p.dtype), key, value)

    def _numbers_of(self, group: Group) -> Numbers:
        least, floor = group["eps"]
        n = {key: float(group[key]) for key in ("lr", "beta2_decay", "d")} | shrinking(group)
        return n | {"least": None if least is None else float(least), "floor": float(floor)}

    def _count(self, n: Numbers, state: dict[str, Any]) -> None:
        near, n["share"] = mixing(state["step"] ** n["beta2_decay"])
        n["near"] = float(near)  # no switch, since the weights of the first steps are large
        n["rate"] = min(n["lr"], 1 / math.sqrt(state["step"]))

    def _moved(self, n: Numbers, p: Any, g: Any, state: dict[str, Any]) -> Any:
        if not p.numel():
            return p.detach()
        least = finfo(p.dtype).eps if n["least"] is None else n["least"]
        near, share = n["near"], n["share"]
        rate = _larger(_rms(p), n["floor"]) * n["rate"]
        if p.ndim < 2:
            mean = state["variance"] = mixed(state["variance"], g * g, near, share)
        else:
            squares = g * g
            row = mixed(state["row_var"], squares.mean(-1, keepdim=True), near, share)
            column = mixed(state["col_var"], squares.mean(-2, keepdim=True), near, share)
            state["row_var"], state["col_var"] = row, column
            mean = row @ column / row.mean(-2, keepdim=True).clamp(min=least)
        update = mean.clamp(min=least * least).rsqrt() * g
        scale = rate / _larger(_rms(update) / n["d"], 1.0)
        return shrunk(n, p) - update * (scale if type(scale) is float else scale.to(p.dtype))


def _rms(x: Any) -> Any:
    """The root mean square in float64: a number, or while recording a 0-d tensor."""
    norm = x.norm()
    whole = float(norm.item()) if active() is None else norm.to(float64)
    return whole / math.sqrt(x.numel())


def _larger(x: Any, least: Any) -> Any:
    """The larger of two numbers, which is ``least`` if x is NaN."""
    return where(x > least, x, least) if isinstance(x, TensorBase) else max(least, x)
