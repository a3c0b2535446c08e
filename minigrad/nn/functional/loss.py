"""Functions for losses of numbers and of distributions."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from minigrad import functions as f
from minigrad.functions.arguments import common_shape
from minigrad.nn.functional.operands import (
    check_reduction,
    floats,
    legacy_reduction,
    one_shape,
    real,
    reduced,
)
from minigrad.ops.loss import HUBER
from minigrad.runtime.batched import BatchedValueError, by_rules
from minigrad.tape.apply import apply

if TYPE_CHECKING:
    from minigrad._tensor import Tensor

__all__ = [
    "gaussian_nll_loss",
    "huber_loss",
    "kl_div",
    "l1_loss",
    "mse_loss",
    "poisson_nll_loss",
    "smooth_l1_loss",
]

# ---- differences ---------------------------------------------------------------------------------


def _difference(op: str, input: Any, target: Any, reduction: str) -> Tensor:
    x, t = one_shape(op, input, target, reduction)
    return x - t


def _weight(op: str, weight: Any, losses: Tensor) -> Tensor:
    w, losses = floats(op, weight, losses)
    if w.shape != losses.shape:
        raise ValueError(f"[{op}] weight has shape {w.shape}, but the input {losses.shape}")
    return w


def _averaged(op: str, losses: Tensor, weight: Any, reduction: str) -> Tensor:
    """Reduce the losses. With weights the mean divides by the sum of weights."""
    if weight is None:
        return reduced(losses, reduction)
    w = _weight(op, weight, losses)
    losses = w.scale(losses)
    return losses.sum() / w.sum() if reduction == "mean" else reduced(losses, reduction)


def mse_loss(
    input: Tensor,
    target: Tensor,
    reduction: str = "mean",
    weight: Tensor | None = None,
    *,
    size_average: bool | None = None,
    reduce: bool | None = None,
) -> Tensor:
    """The squared differences ``weight * (x - t)**2`` of two tensors, by default their mean.

    Both tensors have the same shape, and so has ``weight``. With a weight the mean divides by the
    sum of weights. ``reduction`` may also be "sum" or "none". Raises ValueError if the shapes
    differ.

    >>> import minigrad as mg
    >>> mse_loss(mg.tensor([1.0, 2.0]), mg.tensor([1.0, 4.0])).item()
    2.0
    """
    if size_average is not None or reduce is not None:
        reduction = legacy_reduction(size_average, reduce)
    losses = f.square(_difference("mse_loss", input, target, reduction))
    return _averaged("mse_loss", losses, weight, reduction)


def l1_loss(
    input: Tensor,
    target: Tensor,
    reduction: str = "mean",
    weight: Tensor | None = None,
    *,
    size_average: bool | None = None,
    reduce: bool | None = None,
) -> Tensor:
    """The absolute differences ``weight * |x - t|``. The gradient is 0 where a difference is 0.

    Arguments are as for :func:`mse_loss`.
    """
    if size_average is not None or reduce is not None:
        reduction = legacy_reduction(size_average, reduce)
    losses = f.abs(_difference("l1_loss", input, target, reduction))
    return _averaged("l1_loss", losses, weight, reduction)


def huber_loss(
    input: Tensor,
    target: Tensor,
    reduction: str = "mean",
    delta: float = 1.0,
    weight: Tensor | None = None,
    *,
    size_average: bool | None = None,
    reduce: bool | None = None,
) -> Tensor:
    """For d = |x - t|: ``d**2 / 2`` if d < ``delta``, else ``delta * (d - delta / 2)``.

    The source is Huber 1964. The second derivative at delta is 0. ``weight`` has the input's shape.
    Unlike in :func:`mse_loss` the mean divides by the number of elements. Raises ValueError if
    shapes differ and for a delta that is not positive.

    >>> import minigrad as mg
    >>> huber_loss(mg.tensor([1.0, 3.0]), mg.zeros(2), "none", delta=2.0).tolist()
    [0.5, 4.0]
    """
    if size_average is not None or reduce is not None:
        reduction = legacy_reduction(size_average, reduce)
    op = "huber_loss"
    delta = real(op, "delta", delta)
    if not delta > 0.0:
        raise ValueError(f"[{op}] delta is {delta}, but must be positive")
    losses = apply(HUBER, one_shape(op, input, target, reduction), (delta, 0.5, delta))
    if weight is not None:
        losses = _weight(op, weight, losses).scale(losses)
    return reduced(losses, reduction)


def smooth_l1_loss(
    input: Tensor,
    target: Tensor,
    reduction: str = "mean",
    beta: float = 1.0,
    *,
    size_average: bool | None = None,
    reduce: bool | None = None,
) -> Tensor:
    """For d = |x - t|: ``d**2 / (2 * beta)`` if d < ``beta``, else ``d - beta / 2``.

    It is ``huber_loss / beta``, and for a beta of 0 :func:`l1_loss`. The second derivative at beta
    is 0. Raises ValueError if the shapes differ and for a negative beta.
    """
    if size_average is not None or reduce is not None:
        reduction = legacy_reduction(size_average, reduce)
    op = "smooth_l1_loss"
    beta = real(op, "beta", beta)
    if not beta >= 0.0:
        raise ValueError(f"[{op}] beta is {beta}, but must not be negative")
    if beta == 0.0:
        return reduced(f.abs(_difference(op, input, target, reduction)), reduction)
    pair = one_shape(op, input, target, reduction)
    return reduced(apply(HUBER, pair, (beta, 0.5 / beta, 1.0)), reduction)


# ---- distributions -------------------------------------------------------------------------------


def kl_div(
    input: Tensor,
    target: Tensor,
    reduction: str = "mean",
    log_target: bool = False,
    *,
    size_average: bool | None = None,
    reduce: bool | None = None,
) -> Tensor:
    """The Kullback-Leibler divergence of log-probabilities x from probabilities t.

    Its terms are ``t * (log(t) - x)``. With ``log_target`` the targets are logarithms too. A
    probability of 0 adds 0, whatever x is. ``reduction`` may also be "batchmean", the sum divided
    by the size of the first dimension. "batchmean" is the divergence itself, and "mean" is not.

    Raises ValueError if the shapes differ.

    >>> import minigrad as mg
    >>> x = mg.tensor([[0.5, 0.5]]).log()
    >>> round(kl_div(x, mg.tensor([[1.0, 0.0]]), reduction="batchmean").item(), 4)
    0.6931
    """
    if size_average is not None or reduce is not None:
        reduction = legacy_reduction(size_average, reduce)
    op = "kl_div"
    if reduction != "batchmean":
        check_reduction(op, reduction)
    x, t = one_shape(op, input, target, "none")
    if log_target:
        never = t == -math.inf
        likely = f.where(never, 0.0, t)
        losses: Tensor = f.where(never, 0.0, f.exp(likely) * (likely - x))
    else:
        losses = f.xlogy(t, t) - t.scale(x)
    if reduction == "batchmean":
        return losses.sum() / x.shape[0] if x.ndim else losses
    return reduced(losses, reduction)


_HALF_LOG_2PI = 0.5 * math.log(2.0 * math.pi)


def gaussian_nll_loss(
    input: Tensor,
    target: Tensor,
    var: Any,
    full: bool = False,
    eps: float = 1e-6,
    reduction: str = "mean",
    *,
    size_average: bool | None = None,
    reduce: bool | None = None,
) -> Tensor:
    """``(log(var) + (x - t)**2 / var) / 2``: the negative log-likelihood of normal distributions.

    The means are x, the variances ``var`` and the samples t. ``full`` adds the constant ``log(2 *
    pi) / 2``. A variance below ``eps`` counts as eps, and has the gradient at eps. ``target`` and
    ``var`` are broadcast to the input's shape. ``var`` has as many dimensions as the input, or
    lacks the last one, or is a number.

    Raises ValueError for shapes that do not fit and for negative variances.
    """
    if size_average is not None or reduce is not None:
        reduction = legacy_reduction(size_average, reduce)
    op = "gaussian_nll_loss"
    check_reduction(op, reduction)
    x, t, v = floats(op, input, target, var)
    if v.ndim and v.shape == x.shape[:-1]:
        v = v.unsqueeze(-1)
    for name, given in (("target", t), ("var", v)):
        if common_shape(op, x, given) != x.shape or (given is v and v.ndim not in (0, x.ndim)):
            raise ValueError(
                f"[{op}] {name} has shape {given.shape}, but must have that of the input "
                f"{x.shape}, or sizes of 1 in it"
            )
    seen: Tensor = v
    try:
        least = f.amin(v.detach()).item() if v.size else math.inf
    except BatchedValueError:
        seen = by_rules("every_slice")(v)
        least = f.amin(seen).item()
    if not least >= 0.0 and f.any(seen < 0.0).item():  # NaN counts as the smallest
        raise ValueError(f"[{op}] var has negative entries, but a variance is not negative")
    if not least >= eps:
        v = f.where(v < eps, (v - v.detach()) + eps, v)  # the value is eps, the gradient goes to v
    away = x - t
    losses = 0.5 * (f.log(v) + away * (away / v))  # the square might overflow
    return reduced(losses + _HALF_LOG_2PI if full else losses, reduction)


def poisson_nll_loss(
    input: Tensor,
    target: Tensor,
    log_input: bool = True,
    full: bool = False,
    eps: float = 1e-8,
    reduction: str = "mean",
    *,
    size_average: bool | None = None,
    reduce: bool | None = None,
) -> Tensor:
    """``exp(x) - t * x``: the negative log-likelihood of counts t of Poisson distributions.

    x is the logarithm of the expectation. Without ``log_input`` x is the expectation, and the loss
    is ``x - t * log(x + eps)``. ``full`` adds Stirling's approximation of ``log(t!)`` where t is
    above 1: ``t * log(t) - t + log(2 * pi * t) / 2``. A count of 0 times an infinite logarithm is
    0. Input and target are broadcast together, as in PyTorch. Raises ValueError if they cannot be
    broadcast.
    """
    if size_average is not None or reduce is not None:
        reduction = legacy_reduction(size_average, reduce)
    op = "poisson_nll_loss"
    check_reduction(op, reduction)
    x, t = floats(op, input, target)
    losses = f.exp(x) - t.scale(x) if log_input else x - t.scale(f.log(x + eps))
    if full:
        many = f.where(t > 1.0, t, 1.0)
        stirling = many * f.log(many) - many + (f.log(many) * 0.5 + _HALF_LOG_2PI)
        losses = losses + f.where(t > 1.0, stirling, 0.0)
    return reduced(losses, reduction)
