"""Losses as functions."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from minigrad import functions as f
from minigrad._c import Handle, call, lib
from minigrad.creation import arange
from minigrad.dispatch import apply
from minigrad.dtypes import int64
from minigrad.ops.contraction import MEAN_NLL
from minigrad.selection import gather_rows
from minigrad.shaping import tensor_operand

if TYPE_CHECKING:
    from minigrad._tensor import Tensor

__all__ = ["cross_entropy", "l1_loss", "mse_loss", "nll_loss"]

_REDUCTIONS = ("mean", "sum", "none")


def _check_reduction(op: str, reduction: str) -> None:
    if reduction not in _REDUCTIONS:
        raise ValueError(f"[{op}] reduction is {reduction!r}, but must be 'mean', 'sum' or 'none'")


def _reduced(loss: Tensor, reduction: str) -> Tensor:
    return loss if reduction == "none" else loss.mean() if reduction == "mean" else loss.sum()


def _difference(op: str, input: Any, target: Any, reduction: str) -> Tensor:  # noqa: A002
    """input - target for equal shapes: broadcasting a loss is nearly always a mistake."""
    _check_reduction(op, reduction)
    x, t = tensor_operand(op, input), tensor_operand(op, target)
    if x.shape != t.shape:
        raise ValueError(
            f"[{op}] input has shape {x.shape}, target {t.shape}: a loss does not broadcast; "
            "give both one shape, with reshape or squeeze"
        )
    return x - t


def mse_loss(input: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:  # noqa: A002
    """The squared differences of two tensors of one shape: their mean, sum, or all of them.

    Raises ValueError where the shapes differ.

    >>> import minigrad as mg
    >>> mse_loss(mg.tensor([1.0, 2.0]), mg.tensor([1.0, 4.0])).item()
    2.0
    """
    return _reduced(_difference("mse_loss", input, target, reduction).square(), reduction)


def l1_loss(input: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:  # noqa: A002
    """The absolute differences of two tensors of one shape; the gradient at 0 is 0.

    Raises ValueError where the shapes differ.
    """
    return _reduced(_difference("l1_loss", input, target, reduction).abs(), reduction)


def nll_loss(
    input: Tensor,  # noqa: A002
    target: Tensor,
    weight: Tensor | None = None,
    ignore_index: int = -100,
    reduction: str = "mean",
) -> Tensor:
    """The negative log-likelihood of classes: ``-weight[t] * input[t]`` for each target t.

    ``input`` holds log-probabilities in shape (C,), (N, C) or (N, C, d1, ...), ``target`` int64
    classes in the same shape without C. Targets equal to ``ignore_index`` count nothing. The mean
    divides by the sum of the targets' weights.

    Raises ValueError where shapes do not fit, IndexError for a target that is no class, TypeError
    for targets that are not int64.
    """
    x, t = tensor_operand("nll_loss", input), tensor_operand("nll_loss", target)
    _check_reduction("nll_loss", reduction)
    return _nll("nll_loss", x, t, weight, ignore_index, reduction, 0.0)


def cross_entropy(
    input: Tensor,  # noqa: A002
    target: Tensor,
    weight: Tensor | None = None,
    ignore_index: int = -100,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """The cross entropy of unnormalised scores with classes or with class probabilities.

    ``input`` holds scores in shape (C,), (N, C) or (N, C, d1, ...). ``target`` holds either int64
    classes in the same shape without C, or probabilities in the shape of the input. ``weight`` has
    shape (C,). Targets equal to ``ignore_index`` count nothing; ``label_smoothing`` in [0, 1] mixes
    the targets with the uniform distribution (Szegedy et al. 2016). The mean divides by the sum of
    the targets' weights, for probabilities by their number.

    Raises ValueError where shapes do not fit, IndexError for a target that is no class, TypeError
    for targets that are neither int64 nor floats.

    >>> import minigrad as mg
    >>> scores = mg.tensor([[2.0, 2.0], [0.0, 0.0]])
    >>> round(cross_entropy(scores, mg.tensor([0, 1])).item(), 4)
    0.6931
    """
    op = "cross_entropy"
    x, t = tensor_operand(op, input), tensor_operand(op, target)
    _check_reduction(op, reduction)
    if not 0.0 <= label_smoothing <= 1.0:
        raise ValueError(f"[{op}] label_smoothing is {label_smoothing}, but must be in [0, 1]")
    hx = x._h
    if not hx.ndim:
        raise ValueError(f"[{op}] a 0-d input has no classes")
    class_dim = 0 if hx.ndim == 1 else 1
    log_p = f.log_softmax(x, class_dim)
    if t.dtype.is_floating_point:
        return _soft(log_p, t, weight, reduction, label_smoothing, class_dim)
    plain = weight is None and reduction == "mean" and label_smoothing == 0.0
    if plain and hx.ndim == 2 and t.dtype is int64 and t.shape == x.shape[:1]:
        picked = _mean_nll(log_p, t, ignore_index)
        if picked is not None:
            return picked
    return _nll(op, log_p, t, weight, ignore_index, reduction, label_smoothing)


def _mean_nll(log_p: Tensor, target: Tensor, ignore_index: int) -> Tensor | None:
    """The common case in one row: all targets are classes and count. None if some may not."""
    count, classes = log_p.shape
    if not count or 0 <= ignore_index < classes or not _all_classes(target, classes):
        return None
    rows = _row_numbers(count)
    kept = target._h if log_p._edge is None else call(lib.mg_copy, target._h)
    return apply(MEAN_NLL, (log_p,), (rows, kept))


@lru_cache(maxsize=16)
def _row_numbers(count: int) -> Handle:
    """0, 1, ... count - 1; the same few batch sizes come again and again."""
    return call(lib.mg_arange, int64.code, 0.0, 1.0, 0, 1, count)


def _all_classes(target: Tensor, classes: int) -> bool:
    low, high = (
        lib.mg_item_int(call(lib.mg_reduce, op, target._h, -1, (0,), False))
        for op in (lib.MG_MIN, lib.MG_MAX)
    )
    return bool(low >= 0 and high < classes)


def _classes_last(op: str, x: Tensor, t: Tensor) -> tuple[Tensor, Tensor]:
    """The input as (M, C) and the target as (M,), after a check of their shapes and dtype."""
    shape = x.shape
    if t.dtype is not int64:
        raise TypeError(
            f"[{op}] target classes must be int64, not {t.dtype.name}: "
            "convert them with .to(mg.int64)"
        )
    if not shape:
        raise ValueError(f"[{op}] a 0-d input has no classes")
    expected = shape[:1] + shape[2:] if len(shape) > 1 else ()
    if t.shape != expected:
        raise ValueError(
            f"[{op}] input has shape {shape}, target {t.shape}: "
            f"classes for this input have shape {expected}"
        )
    classes = shape[0 if len(shape) == 1 else 1]
    if len(shape) > 2:
        x = x.permute(0, *range(2, len(shape)), 1)
    return x.reshape((t.size, classes)), t.reshape((t.size,))


def _class_weight(op: str, weight: Any, classes: int, like: Tensor) -> Tensor:
    w = tensor_operand(op, weight)
    if w.shape != (classes,):
        raise ValueError(f"[{op}] weight has shape {w.shape}, but there are {classes} classes")
    return w.to(like.dtype)


def _nll(
    op: str,
    x: Tensor,
    t: Tensor,
    weight: Any,
    ignore_index: int,
    reduction: str,
    smoothing: float,
) -> Tensor:
    """nll_loss with every option; the rest of the loss of smoothed targets comes on top."""
    rows, flat = _classes_last(op, x, t)
    classes = rows.shape[1]
    counts = flat != ignore_index
    safe = f.where(counts, flat, 0)
    if safe.size and not _all_classes(safe, classes):
        wrong = next(v for v in safe.tolist() if not 0 <= v < classes)
        raise IndexError(
            f"[{op}] target {wrong} is no class: there are {classes}, 0..{classes - 1}"
        )
    index = [arange(flat.size), safe]
    shares = counts.to(x.dtype)
    if weight is not None:
        w = _class_weight(op, weight, classes, x)
        shares = shares * gather_rows(w, [safe])
    # scale, not mul: an ignored row counts 0 even where its input is infinite or NaN
    losses = shares.scale(-gather_rows(rows, index))
    if smoothing:
        spread = rows if weight is None else w.scale(rows)
        rest = counts.to(x.dtype).scale(-spread.sum(1))
        losses = losses * (1.0 - smoothing) + rest * (smoothing / classes)
    if reduction == "none":
        return losses.reshape(t.shape)
    return losses.sum() if reduction == "sum" else losses.sum() / shares.sum()


def _soft(
    log_p: Tensor, t: Tensor, weight: Any, reduction: str, smoothing: float, class_dim: int
) -> Tensor:
    """The cross entropy with class probabilities; 0 * log(0) is 0."""
    op, shape = "cross_entropy", log_p.shape
    if t.shape != shape:
        raise ValueError(
            f"[{op}] input has shape {shape}, target {t.shape}: probabilities need the input's "
            "shape, classes the dtype int64"
        )
    classes = shape[class_dim]
    if smoothing:
        t = t * (1.0 - smoothing) + smoothing / classes
    if weight is not None:
        w = _class_weight(op, weight, classes, log_p)
        t = t * w.reshape((classes,) + (1,) * (len(shape) - 1 - class_dim))
    losses = -t.scale(log_p).sum(class_dim)
    if reduction == "none":
        return losses
    count = losses.size
    return losses.sum() / count if reduction == "mean" else losses.sum()
