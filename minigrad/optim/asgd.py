"""Averaged stochastic gradient descent, with PyTorch's arguments, order of operations and state."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from minigrad.functions.creation import zeros_like
from minigrad.optim.by_parameter import (
    ByParameter,
    Numbers,
    check_ranges,
    check_switches,
    chosen,
    decay,
    decayed,
)
from minigrad.optim.optimizers import Group

__all__ = ["ASGD"]


class ASGD(ByParameter):
    """Averaged stochastic gradient descent (Polyak & Juditsky 1992), in the form of Bottou 2010.

    The rate of the step after step t is ``lr / (1 + lambd * lr * t)**alpha``. Each step first
    shrinks the parameter by ``lambd`` times its rate. The state "ax" is the mean of the values
    after step ``t0 + 1``. Before this step it is the last value. ``weight_decay`` times the
    parameter is added to the gradient. ``maximize`` ascends the gradient.

    >>> import minigrad as mg
    >>> w = mg.tensor([1.0], requires_grad=True)
    >>> optimizer = mg.optim.ASGD([w], lr=0.25, lambd=0.0, t0=0)
    >>> for _ in range(3):
    ...     w.grad = mg.tensor([1.0])
    ...     optimizer.step()
    >>> w, optimizer.state[w]["ax"]
    (tensor([0.25], requires_grad=True), tensor([0.375]))
    """

    _remembered = _needed = frozenset(["step", "eta", "mu", "ax"])
    _numbers = frozenset(["eta", "mu"])

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-2,
        lambd: float = 1e-4,
        alpha: float = 0.75,
        t0: float = 1e6,
        weight_decay: float = 0,
        *,
        maximize: bool = False,
        **switches: Any,
    ) -> None:
        defaults = {
            "lr": lr,
            "lambd": lambd,
            "alpha": alpha,
            "t0": t0,
            "weight_decay": weight_decay,
            "maximize": maximize,
        }
        super().__init__(params, defaults, **switches)

    def _check(self, options: Group) -> None:
        check_ranges(self._name, options, ("lr", "lambd", "alpha", "t0", "weight_decay"))
        check_switches(self._name, options, "maximize")

    def _begun(self, group: Group, p: Any) -> dict[str, Any]:
        return {"eta": float(group["lr"]), "mu": 1.0, "ax": zeros_like(p)}

    def _numbers_of(self, group: Group) -> Numbers:
        return {key: float(group[key]) for key in ("lr", "lambd", "alpha", "t0")} | decay(group)

    def _count(self, n: Numbers, state: dict[str, Any]) -> None:
        eta, mu, lr, lambd = float(state["eta"]), float(state["mu"]), n["lr"], n["lambd"]
        n["shrink"], n["eta"], n["mu"], n["first"] = 1 - lambd * eta, eta, mu, float(mu == 1)
        state["eta"] = lr / (1 + lambd * lr * state["step"]) ** n["alpha"]
        state["mu"] = 1 / max(1.0, state["step"] - n["t0"])

    def _moved(self, n: Numbers, p: Any, g: Any, state: dict[str, Any]) -> Any:
        g = decayed(n, p, g)
        moved, mean = p * n["shrink"] - g * n["eta"], state["ax"]
        if type(n["first"]) is float and n["first"]:
            state["ax"] = moved  # a copy, since the parameter will be overwritten
        else:
            state["ax"] = chosen(n["first"], lambda: moved, lambda: mean + (moved - mean) * n["mu"])
        return moved
