"""Muon, an optimizer of matrices, with PyTorch's arguments and state."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from minigrad.functions.arguments import integer, real
from minigrad.functions.creation import zeros_like
from minigrad.optim.by_parameter import (
    ByParameter,
    Numbers,
    check_ranges,
    check_switches,
    mixed,
    mixing,
    shrinking,
    shrunk,
)
from minigrad.optim.optimizers import Group

__all__ = ["Muon"]


class Muon(ByParameter):
    """Muon (Jordan et al. 2024): momentum, made nearly orthogonal by a Newton-Schulz iteration.

    The direction of a step is ``U @ V.T`` of the singular value decomposition of a matrix u.
    Without ``nesterov`` u is m, the running mean of gradients. With ``nesterov`` u is the value of
    m after the same gradient again. The iteration ``x = a x + b (x x') x + c (x x')**2 x`` brings
    the singular values near 1. It has ``ns_steps`` rounds, and ``ns_coefficients`` are a, b, c. It
    runs in the parameter's dtype. PyTorch's runs in bfloat16, so results agree to about two digits
    only.

    ``adjust_lr_fn`` adjusts the rate to the shape. "original" (also for None) multiplies it by
    ``sqrt(max(1, rows / columns))``. "match_rms_adamw" multiplies it by ``0.2 * sqrt(max(rows,
    columns))`` (Liu et al. 2025). ``weight_decay`` shrinks the parameter as in :class:`AdamW`.
    ``maximize`` ascends the gradient.

    Raises ValueError for parameters that are no matrices: give these to another optimizer.

    >>> import minigrad as mg
    >>> w = mg.zeros(2, 3, requires_grad=True)
    >>> optimizer = mg.optim.Muon([w], lr=0.1, ns_coefficients=(1.5, -0.5, 0.0), ns_steps=20)
    >>> w.grad = mg.tensor([[2.0, 0.0, 0.0], [0.0, 0.0, -5.0]])
    >>> optimizer.step()
    >>> w.detach().round(decimals=4)
    tensor([[-0.1,  0. ,  0. ],
            [ 0. ,  0. ,  0.1]])
    """

    _beyond_pytorch = frozenset(["maximize"])
    _remembered = _needed = frozenset(["momentum_buffer"])
    _counted = False

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        weight_decay: float = 0.1,
        momentum: float = 0.95,
        nesterov: bool = True,
        ns_coefficients: tuple[float, float, float] = (3.4445, -4.7750, 2.0315),
        eps: float = 1e-7,
        ns_steps: int = 5,
        adjust_lr_fn: str | None = None,
        *,
        maximize: bool = False,
        **switches: Any,
    ) -> None:
        defaults = {
            "lr": lr,
            "weight_decay": weight_decay,
            "momentum": momentum,
            "nesterov": nesterov,
            "ns_coefficients": ns_coefficients,
            "eps": eps,
            "ns_steps": ns_steps,
            "adjust_lr_fn": adjust_lr_fn,
            "maximize": maximize,
        }
        super().__init__(params, defaults, **switches)

    def _check_parameter(self, place: int, p: Any) -> None:
        super()._check_parameter(place, p)
        if p.ndim != 2:
            raise ValueError(
                f"[{self._name}] parameter {place} has shape {tuple(p.shape)}, but must be a "
                "matrix: give others to another optimizer, such as AdamW"
            )

    def _check(self, options: Group) -> None:
        name, abc = self._name, options["ns_coefficients"]
        check_ranges(name, options, ("lr", "weight_decay", "momentum", "eps"))
        check_switches(name, options, "nesterov", "maximize")
        if not isinstance(abc, (tuple, list)) or len(abc) != 3:
            raise ValueError(f"[{name}] ns_coefficients must be three numbers, not {abc!r}")
        for place, number in enumerate(abc):
            real(name, f"ns_coefficients[{place}]", number)
        if integer(name, "ns_steps", options["ns_steps"], 0) >= 100:
            raise ValueError(f"[{name}] ns_steps is {options['ns_steps']}, but must be below 100")
        if options["adjust_lr_fn"] not in (None, "original", "match_rms_adamw"):
            raise ValueError(
                f"[{name}] adjust_lr_fn is {options['adjust_lr_fn']!r}, but must be None, "
                "'original' or 'match_rms_adamw'"
            )

    def _begun(self, group: Group, p: Any) -> dict[str, Any]:
        return {"momentum_buffer": zeros_like(p)}

    def _numbers_of(self, group: Group) -> Numbers:
        momentum, (a, b, c) = float(group["momentum"]), map(float, group["ns_coefficients"])
        n = {"a": a, "b": b, "c": c, "eps": float(group["eps"]), "lr": float(group["lr"])}
        for option in ("nesterov", "ns_steps", "adjust_lr_fn"):
            n[option] = group[option]
        n["new near"], n["new"] = mixing(1 - momentum)
        n["old near"], n["old"] = mixing(momentum)
        return n | shrinking(group)

    def _moved(self, n: Numbers, p: Any, g: Any, state: dict[str, Any]) -> Any:
        rows, columns = p.shape
        mean = mixed(state["momentum_buffer"], g, n["new near"], n["new"])
        state["momentum_buffer"] = mean
        if not p.numel():
            return p.detach()
        update = mixed(g, mean, n["old near"], n["old"]) if n["nesterov"] else mean
        update = _orthogonal(update, (n["a"], n["b"], n["c"]), n["ns_steps"], n["eps"])
        if n["adjust_lr_fn"] == "match_rms_adamw":
            factor = 0.2 * math.sqrt(max(rows, columns))
        else:
            factor = math.sqrt(max(1, rows / columns))
        return shrunk(n, p) - update * (n["lr"] * factor)


def _orthogonal(x: Any, abc: tuple[Any, Any, Any], steps: int, eps: Any) -> Any:
    """A matrix with the singular vectors of x, and singular values near 1."""
    a, b, c = abc
    tall = x.shape[0] > x.shape[1]
    x = x.T if tall else x
    x = x / x.norm().clamp(min=eps)  # then no singular value is above 1
    for _ in range(steps):
        gram = x @ x.T
        x = x * a + (gram * b + (gram @ gram) * c) @ x
    return x.T if tall else x
