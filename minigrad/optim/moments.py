"""Optimizers like Adam: running means of gradients, and of their squares or magnitudes.

Adamax, NAdam, RAdam and SparseAdam have PyTorch's arguments, order of operations and state. Lion is
not in PyTorch.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from minigrad.functions.creation import zeros_like
from minigrad.functions.elementwise import maximum
from minigrad.functions.selection import where
from minigrad.optim.by_parameter import (
    ByParameter,
    Numbers,
    check_pair,
    check_ranges,
    check_switches,
    chosen,
    decay,
    decayed,
    mixed,
    mixing,
    shrinking,
    shrunk,
)
from minigrad.optim.optimizers import Group

__all__ = ["Adamax", "Lion", "NAdam", "RAdam", "SparseAdam"]


class _Moments(ByParameter):
    """Base of optimizers with running means "exp_avg" of gradients, "exp_avg_sq" of squares."""

    _remembered = _needed = frozenset(["step", "exp_avg", "exp_avg_sq"])
    _switches: tuple[str, ...] = ("maximize",)
    _ranges: tuple[str, ...] = ("lr", "eps", "weight_decay")

    def _check(self, options: Group) -> None:
        check_ranges(self._name, options, self._ranges)
        check_pair(self._name, "betas", options["betas"])
        check_switches(self._name, options, *self._switches)

    def _begun(self, group: Group, p: Any) -> dict[str, Any]:
        names = self._needed - self._numbers - {"step"}
        return {name: zeros_like(p) for name in sorted(names)}

    def _numbers_of(self, group: Group) -> Numbers:
        """The numbers for :meth:`_means`, lr and eps."""
        first, second = map(float, group["betas"])
        n = {"first": first, "second": second, "rest": 1 - second}
        n["lr"], n["eps"] = float(group["lr"]), float(group["eps"])
        n["new near"], n["new"] = mixing(1 - first)
        return n

    def _means(self, n: Numbers, g: Any, state: dict[str, Any]) -> tuple[Any, Any]:
        """Update the two running means with a gradient."""
        mean = state["exp_avg"] = mixed(state["exp_avg"], g, n["new near"], n["new"])
        squares = state["exp_avg_sq"] * n["second"] + g * g * n["rest"]
        state["exp_avg_sq"] = squares
        return mean, squares


class Adamax(_Moments):
    """Adamax (Kingma & Ba 2015, algorithm 2): Adam with a running maximum of magnitudes.

    The maximum is ``u = max(betas[1] * u, abs(g) + eps)``. m is the running mean of gradients,
    which decays by ``betas[0]``. The step is ``p -= lr / (1 - betas[0]**step) * m / u``.
    ``weight_decay`` times the parameter is added to the gradient. ``maximize`` ascends the
    gradient.

    >>> import minigrad as mg
    >>> w = mg.tensor([1.0], requires_grad=True)
    >>> optimizer = mg.optim.Adamax([w], lr=0.25)
    >>> w.grad = mg.tensor([5.0])
    >>> optimizer.step()
    >>> w
    tensor([0.75], requires_grad=True)
    """

    _remembered = _needed = frozenset(["step", "exp_avg", "exp_inf"])

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        *,
        maximize: bool = False,
        **switches: Any,
    ) -> None:
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "maximize": maximize,
        }
        super().__init__(params, defaults, **switches)

    def _numbers_of(self, group: Group) -> Numbers:
        return super()._numbers_of(group) | decay(group)

    def _count(self, n: Numbers, state: dict[str, Any]) -> None:
        n["rate"] = n["lr"] / (1 - n["first"] ** state["step"])

    def _moved(self, n: Numbers, p: Any, g: Any, state: dict[str, Any]) -> Any:
        g = decayed(n, p, g)
        mean = state["exp_avg"] = mixed(state["exp_avg"], g, n["new near"], n["new"])
        largest = maximum(state["exp_inf"] * n["second"], g.abs() + n["eps"])
        state["exp_inf"] = largest
        return p - mean / largest * n["rate"]


class _Decaying(_Moments):
    """Base of optimizers whose weight decay is added to the gradient, or shrinks the parameter."""

    _switches = ("maximize", "decoupled_weight_decay")

    def _numbers_of(self, group: Group) -> Numbers:
        decays = shrinking if group["decoupled_weight_decay"] else decay
        return super()._numbers_of(group) | decays(group)


class NAdam(_Decaying):
    """NAdam (Dozat 2016): Adam with Nesterov's momentum.

    The momentum of step t is ``betas[0] * (1 - 0.96**(t * momentum_decay) / 2)``. ``weight_decay``
    times the parameter is added to the gradient, or shrinks the parameter if
    ``decoupled_weight_decay``. ``maximize`` ascends the gradient.

    >>> import minigrad as mg
    >>> w = mg.tensor([1.0], requires_grad=True)
    >>> optimizer = mg.optim.NAdam([w], betas=(0.0, 0.0), lr=0.25)
    >>> w.grad = mg.tensor([5.0])
    >>> optimizer.step()
    >>> w
    tensor([0.75], requires_grad=True)
    """

    _remembered = _needed = frozenset(["step", "exp_avg", "exp_avg_sq", "mu_product"])
    _numbers = frozenset(["mu_product"])
    _ranges = ("lr", "eps", "weight_decay", "momentum_decay")

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum_decay: float = 4e-3,
        decoupled_weight_decay: bool = False,
        *,
        maximize: bool = False,
        **switches: Any,
    ) -> None:
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "momentum_decay": momentum_decay,
            "decoupled_weight_decay": decoupled_weight_decay,
            "maximize": maximize,
        }
        super().__init__(params, defaults, **switches)

    def _begun(self, group: Group, p: Any) -> dict[str, Any]:
        return {**super()._begun(group, p), "mu_product": 1.0}

    def _numbers_of(self, group: Group) -> Numbers:
        return super()._numbers_of(group) | {"decay of first": float(group["momentum_decay"])}

    def _count(self, n: Numbers, state: dict[str, Any]) -> None:
        first, lr, t, slower = n["first"], n["lr"], state["step"], n["decay of first"]
        now, after = (first * (1 - 0.5 * 0.96 ** (k * slower)) for k in (t, t + 1))
        product = state["mu_product"] = float(state["mu_product"]) * now
        n["left"] = 1 - n["second"] ** t
        n["of g"] = lr * (1 - now) / (1 - product)
        n["of mean"] = lr * after / (1 - product * after)

    def _moved(self, n: Numbers, p: Any, g: Any, state: dict[str, Any]) -> Any:
        p, g = shrunk(n, p), decayed(n, p, g)
        mean, squares = self._means(n, g, state)
        size = (squares / n["left"]).sqrt() + n["eps"]
        return p - g / size * n["of g"] - mean / size * n["of mean"]


class RAdam(_Decaying):
    """RAdam (Liu et al. 2020): Adam with rectified variance of the adaptive rate.

    In the first steps this variance is unknown, and only the running mean of gradients is used.

    ``weight_decay`` times the parameter is added to the gradient, or shrinks the parameter if
    ``decoupled_weight_decay``. ``maximize`` ascends the gradient.

    >>> import minigrad as mg
    >>> w = mg.tensor([1.0], requires_grad=True)
    >>> optimizer = mg.optim.RAdam([w], lr=0.25)
    >>> w.grad = mg.tensor([2.0])
    >>> optimizer.step()
    >>> w
    tensor([0.5], requires_grad=True)
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        decoupled_weight_decay: bool = False,
        *,
        maximize: bool = False,
        **switches: Any,
    ) -> None:
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "decoupled_weight_decay": decoupled_weight_decay,
            "maximize": maximize,
        }
        super().__init__(params, defaults, **switches)

    def _count(self, n: Numbers, state: dict[str, Any]) -> None:
        second, t = n["second"], state["step"]
        rate, left = n["lr"] / (1 - n["first"] ** t), 1 - second**t
        # The effective number of gradients in the running mean of squares, in the limit and now.
        most = 2 / (1 - second) - 1
        length = most - 2 * t * second**t / left
        n["adapts"], n["rate"] = float(length > 5), rate
        if length <= 5:
            return
        rectified = math.sqrt(
            (length - 4) * (length - 2) * most / ((most - 4) * (most - 2) * length)
        )
        n["rate"] = rate * rectified * math.sqrt(left)

    def _moved(self, n: Numbers, p: Any, g: Any, state: dict[str, Any]) -> Any:
        p, g = shrunk(n, p), decayed(n, p, g)
        mean, squares = self._means(n, g, state)
        size = chosen(n["adapts"], lambda: squares.sqrt() + n["eps"], lambda: 1.0)
        return p - mean / size * n["rate"]


class SparseAdam(_Moments):
    """Adam that skips rows without a gradient, for embeddings.

    Gradients are dense: rows along the first dimension that are all 0 count as absent. As in
    PyTorch with sparse gradients, their moments do not decay and their parameters do not move.
    ``maximize`` ascends the gradient.

    >>> import minigrad as mg
    >>> w = mg.tensor([[1.0], [1.0]], requires_grad=True)
    >>> optimizer = mg.optim.SparseAdam([w], lr=0.25)
    >>> w.grad = mg.tensor([[5.0], [0.0]])
    >>> optimizer.step()
    >>> w
    tensor([[0.75],
            [1.  ]], requires_grad=True)
    """

    _ranges = ("lr", "eps")

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        maximize: bool = False,
        **switches: Any,
    ) -> None:
        defaults = {"lr": lr, "betas": betas, "eps": eps, "maximize": maximize}
        super().__init__(params, defaults, **switches)

    def _count(self, n: Numbers, state: dict[str, Any]) -> None:
        first, second, t = n["first"], n["second"], state["step"]
        n["rate"] = n["lr"] * math.sqrt(1 - second**t) / (1 - first**t)

    def _moved(self, n: Numbers, p: Any, g: Any, state: dict[str, Any]) -> Any:
        before = {name: state[name] for name in ("exp_avg", "exp_avg_sq")}
        mean, squares = self._means(n, g, state)
        moved = p - mean / (squares.sqrt() + n["eps"]) * n["rate"]
        present = g != 0
        if g.ndim > 1:
            present = present.any(dim=tuple(range(1, g.ndim)), keepdim=True)
        for name, old in before.items():
            state[name] = where(present, state[name], old)
        return where(present, moved, p)


class Lion(ByParameter):
    """Lion (Chen et al. 2023, algorithm 2): equal steps, by the sign of a mean of gradients.

    A step is ``p -= lr * sign(betas[0] * m + (1 - betas[0]) * g)``, where m is the running mean of
    gradients. Then m is updated with ``betas[1]``. ``weight_decay`` shrinks the parameter as in
    :class:`AdamW`. ``maximize`` ascends the gradient.

    >>> import minigrad as mg
    >>> w = mg.tensor([1.0, 1.0], requires_grad=True)
    >>> optimizer = mg.optim.Lion([w], lr=0.25)
    >>> w.grad = mg.tensor([5.0, -0.01])
    >>> optimizer.step()
    >>> w
    tensor([0.75, 1.25], requires_grad=True)
    """

    _remembered = _needed = frozenset(["exp_avg"])
    _counted = False

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-4,
        betas: tuple[float, float] = (0.9, 0.99),
        weight_decay: float = 0.0,
        *,
        maximize: bool = False,
        **switches: Any,
    ) -> None:
        defaults = {"lr": lr, "betas": betas, "weight_decay": weight_decay, "maximize": maximize}
        super().__init__(params, defaults, **switches)

    def _check(self, options: Group) -> None:
        check_ranges(self._name, options, ("lr", "weight_decay"))
        check_pair(self._name, "betas", options["betas"])
        check_switches(self._name, options, "maximize")

    def _begun(self, group: Group, p: Any) -> dict[str, Any]:
        return {"exp_avg": zeros_like(p)}

    def _numbers_of(self, group: Group) -> Numbers:
        now, later = map(float, group["betas"])
        n = {"lr": float(group["lr"])} | shrinking(group)
        n["now near"], n["now"] = mixing(1 - now)
        n["later near"], n["later"] = mixing(1 - later)
        return n

    def _moved(self, n: Numbers, p: Any, g: Any, state: dict[str, Any]) -> Any:
        mean = state["exp_avg"]
        state["exp_avg"] = mixed(mean, g, n["later near"], n["later"])
        direction = mixed(mean, g, n["now near"], n["now"]).sign()
        return shrunk(n, p) - direction * n["lr"]
