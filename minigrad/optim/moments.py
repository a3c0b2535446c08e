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
    check_pair,
    check_ranges,
    check_switches,
    decayed,
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

    def _means(self, group: Group, g: Any, state: dict[str, Any]) -> tuple[Any, Any]:
        """Update the two running means with a gradient."""
        first, second = group["betas"]
        mean = state["exp_avg"] = state["exp_avg"].lerp(g, 1 - first)
        squares = (state["exp_avg_sq"] * second).addcmul(g, g, value=1 - second)
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

    def _moved(self, group: Group, p: Any, g: Any, state: dict[str, Any]) -> Any:
        first, second = group["betas"]
        g = decayed(group, p, g)
        mean = state["exp_avg"] = state["exp_avg"].lerp(g, 1 - first)
        largest = maximum(state["exp_inf"] * second, g.abs() + group["eps"])
        state["exp_inf"] = largest
        return p.addcdiv(mean, largest, value=-group["lr"] / (1 - first ** state["step"]))


class _Decaying(_Moments):
    """Base of optimizers whose weight decay is added to the gradient, or shrinks the parameter."""

    _switches = ("maximize", "decoupled_weight_decay")

    def _prepared(self, group: Group, p: Any, g: Any) -> tuple[Any, Any]:
        """The parameter and the gradient after weight decay."""
        if group["decoupled_weight_decay"]:
            return shrunk(group, p), g
        return p, decayed(group, p, g)


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

    def _moved(self, group: Group, p: Any, g: Any, state: dict[str, Any]) -> Any:
        (first, second), lr, t = group["betas"], group["lr"], state["step"]
        p, g = self._prepared(group, p, g)
        mean, squares = self._means(group, g, state)
        now, after = (first * (1 - 0.5 * 0.96 ** (k * group["momentum_decay"])) for k in (t, t + 1))
        product = state["mu_product"] = state["mu_product"] * now
        size = (squares / (1 - second**t)).sqrt() + group["eps"]
        moved = p.addcdiv(g, size, value=-lr * (1 - now) / (1 - product))
        return moved.addcdiv(mean, size, value=-lr * after / (1 - product * after))


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

    def _moved(self, group: Group, p: Any, g: Any, state: dict[str, Any]) -> Any:
        (first, second), t = group["betas"], state["step"]
        p, g = self._prepared(group, p, g)
        mean, squares = self._means(group, g, state)
        rate, left = group["lr"] / (1 - first**t), 1 - second**t
        # The effective number of gradients in the running mean of squares, in the limit and now.
        most = 2 / (1 - second) - 1
        length = most - 2 * t * second**t / left
        if length <= 5:
            return p.add(mean, alpha=-rate)
        rectified = math.sqrt(
            (length - 4) * (length - 2) * most / ((most - 4) * (most - 2) * length)
        )
        value = -rate * rectified * math.sqrt(left)
        return p.addcdiv(mean, squares.sqrt() + group["eps"], value=value)


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

    def _moved(self, group: Group, p: Any, g: Any, state: dict[str, Any]) -> Any:
        (first, second), t = group["betas"], state["step"]
        before = {name: state[name] for name in ("exp_avg", "exp_avg_sq")}
        mean, squares = self._means(group, g, state)
        rate = group["lr"] * math.sqrt(1 - second**t) / (1 - first**t)
        moved = p.addcdiv(mean, squares.sqrt() + group["eps"], value=-rate)
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

    def _moved(self, group: Group, p: Any, g: Any, state: dict[str, Any]) -> Any:
        (now, later), mean = group["betas"], state["exp_avg"]
        state["exp_avg"] = mean.lerp(g, 1 - later)
        return shrunk(group, p).add(mean.lerp(g, 1 - now).sign(), alpha=-group["lr"])
