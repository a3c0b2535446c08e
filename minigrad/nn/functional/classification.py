"""Losses of classes, one of several or yes and no, as functions."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from minigrad import functions as f
from minigrad._c import Handle, call, lib, no_class
from minigrad.arguments import integer, tensor_operand
from minigrad.creation import arange
from minigrad.dispatch import apply, wrap
from minigrad.dtypes import int64
from minigrad.nn.functional.activation import softplus
from minigrad.nn.functional.operands import (
    check_reduction,
    floats,
    one_shape,
    real,
    reduced,
    weighted,
)
from minigrad.ops.contraction import MEAN_NLL
from minigrad.ops.loss import CROSS_ENTROPY, WEIGHTED_CROSS_ENTROPY
from minigrad.selection import gather_rows

if TYPE_CHECKING:
    from minigrad._tensor import Tensor

__all__ = [
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "cross_entropy",
    "multi_margin_loss",
    "multilabel_soft_margin_loss",
    "nll_loss",
    "soft_margin_loss",
]
# ---- one of several classes ----------------------------------------------------------------------


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
    check_reduction("nll_loss", reduction)
    ignore_index = integer("nll_loss", "ignore_index", ignore_index)
    if weight is None and reduction == "mean" and x.ndim == 2 and t.dtype is int64:
        picked = _mean_nll(x, t, ignore_index) if t.shape == x.shape[:1] else None
        if picked is not None:
            return picked
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
    check_reduction(op, reduction)
    ignore_index = integer(op, "ignore_index", ignore_index)
    label_smoothing = real(op, "label_smoothing", label_smoothing)
    if not 0.0 <= label_smoothing <= 1.0:
        raise ValueError(f"[{op}] label_smoothing is {label_smoothing}, but must be in [0, 1]")
    if not x._h.ndim:
        raise ValueError(f"[{op}] a 0-d input has no classes")
    if t.dtype.is_floating_point:
        class_dim = 0 if x.ndim == 1 else 1
        log_p = f.log_softmax(x, class_dim)
        return _soft(log_p, t, weight, reduction, label_smoothing, class_dim)
    rows, flat = _classes_last(op, x, t)
    w = None if weight is None else _class_weight(op, weight, rows.shape[1], x)
    if rows.size and x.dtype.is_floating_point:
        losses = _cross_entropy(rows, flat, w, ignore_index, label_smoothing, reduction)
        return losses.reshape(t.shape) if reduction == "none" else losses
    log_p = f.log_softmax(rows, 1)
    return _nll(op, log_p, flat, w, ignore_index, reduction, label_smoothing).reshape(
        t.shape if reduction == "none" else ()
    )


_REDUCTIONS = {"none": lib.MG_LOSS_NONE, "sum": lib.MG_LOSS_SUM, "mean": lib.MG_LOSS_MEAN}


def _cross_entropy(
    x: Tensor, t: Tensor, w: Tensor | None, ignore_index: int, smoothing: float, reduction: str
) -> Tensor:
    """Of rows of scores, in one kernel; the targets may be written to afterwards."""
    if x._edge is not None or (w is not None and w._edge is not None):
        t = wrap(call(lib.mg_copy, t._h))
    h = x._h
    stats = call(lib.mg_empty, h.dtype, 2, (2, h.shape[0]))
    options = (t, stats, ignore_index, smoothing, _REDUCTIONS[reduction])
    if w is None:
        return apply(CROSS_ENTROPY, (x,), (options,))
    return apply(WEIGHTED_CROSS_ENTROPY, (x, w), (options,))


def multi_margin_loss(
    input: Tensor,  # noqa: A002
    target: Tensor,
    p: int = 1,
    margin: float = 1.0,
    weight: Tensor | None = None,
    reduction: str = "mean",
) -> Tensor:
    """How far classes come within a margin of the right one:
    ``sum over i != t of weight[t] * max(0, margin - input[t] + input[i])**p / C``.

    ``input`` holds scores in shape (N, C) or (C,), ``target`` int64 classes in shape (N,) or (),
    where (1,) will do;
    ``p`` is 1 or 2. The gradient where a score just reaches the margin is 0. The mean divides by
    the number of targets. Raises as :func:`nll_loss`, and ValueError for another p.
    """
    op = "multi_margin_loss"
    x, t = floats(op, input)[0], tensor_operand(op, target)
    check_reduction(op, reduction)
    if p not in (1, 2):
        raise ValueError(f"[{op}] p is {p}, but must be 1 or 2")
    if x.ndim > 2:
        raise ValueError(f"[{op}] input has shape {x.shape}, but must be (N, C) or (C,)")
    x = x.reshape(x.shape or 1)  # as in PyTorch, a number is the score of one class
    rows, flat = _classes_last(op, x, t.reshape(()) if x.ndim == t.ndim == t.size == 1 else t)
    classes = rows.shape[1]
    _check_classes(op, flat, classes)
    right = gather_rows(rows, [arange(flat.size), flat]).unsqueeze(1)
    excess = f.relu(real(op, "margin", margin) - right + rows)
    if p == 2:
        excess = f.square(excess)
    if weight is not None:
        excess = gather_rows(_class_weight(op, weight, classes, x), [flat]).unsqueeze(1) * excess
    others = arange(classes) != flat.unsqueeze(1)
    losses = f.where(others, excess, 0.0).sum(1) / classes
    return reduced(losses.reshape(t.shape), reduction)


# ---- yes and no ----------------------------------------------------------------------------------


def binary_cross_entropy(
    input: Tensor,  # noqa: A002
    target: Tensor,
    weight: Tensor | None = None,
    reduction: str = "mean",
) -> Tensor:
    """``-weight * (t * log(x) + (1 - t) * log(1 - x))`` of probabilities x and targets t.

    Both have one shape and are between 0 and 1, to which ``weight`` is broadcast. A logarithm is at
    least -100 and its slope at most 1e12, so that a probability of 0 or 1 on the wrong side has a
    finite loss, 100. With scores, :func:`binary_cross_entropy_with_logits` needs no such bounds.

    Raises ValueError where shapes differ and for values outside [0, 1], NaN included.

    >>> import minigrad as mg
    >>> binary_cross_entropy(mg.tensor([0.0, 1.0]), mg.tensor([1.0, 1.0])).item()
    50.0
    """
    op = "binary_cross_entropy"
    x, t = one_shape(op, input, target, reduction)
    bounds = []
    for name, p in (("input", x), ("target", t)):
        low, high = [v.item() for v in f.aminmax(p.detach())] if p.size else (0.0, 1.0)
        if not (low >= 0.0 and high <= 1.0):
            raise ValueError(
                f"[{op}] {name} has values from {low} to {high}, but probabilities are in [0, 1]"
            )
        bounds += [low, high]
    log_x, log_rest = f.log(x), f.log1p(-x)
    if bounds[0] < _LEAST:  # few inputs need a bound
        log_x = _bounded_log(x, log_x)
    if 1.0 - bounds[1] < _LEAST:
        log_rest = _bounded_log(1.0 - x, log_rest)
    losses = -(t * log_x + (1.0 - t) * log_rest)
    return reduced(weighted(op, "weight", weight, losses), reduction)


_LEAST = 1e-12  # the probability from which on a logarithm has no bound


def _bounded_log(p: Tensor, log_p: Tensor) -> Tensor:
    """log(p), but at least -100, and with a slope of at most 1e12."""
    low = f.clamp(log_p, -100.0).detach() + (p - p.detach()) * 1e12  # the value plus an exact 0
    return f.where(p < _LEAST, low, log_p)  # type: ignore[no-any-return]


def binary_cross_entropy_with_logits(
    input: Tensor,  # noqa: A002
    target: Tensor,
    weight: Tensor | None = None,
    reduction: str = "mean",
    pos_weight: Tensor | None = None,
) -> Tensor:
    """``weight * ((1 - t) * softplus(x) + pos_weight * t * softplus(-x))`` of scores x, targets t:
    the cross entropy of the probability ``sigmoid(x)``, without overflow.

    Both have one shape, to which ``weight`` and ``pos_weight`` are broadcast. A factor of 0 hides
    an infinite score, so that one on the right side has the loss 0.

    Raises ValueError where shapes do not fit.

    >>> import minigrad as mg
    >>> binary_cross_entropy_with_logits(mg.tensor([-1000.0]), mg.tensor([1.0])).item()
    1000.0
    """
    op = "binary_cross_entropy_with_logits"
    x, t = one_shape(op, input, target, reduction)
    losses = _binary(x, t, weighted(op, "pos_weight", pos_weight, t))
    return reduced(weighted(op, "weight", weight, losses), reduction)


def _binary(x: Tensor, t: Tensor, hits: Tensor) -> Tensor:
    return (1.0 - t).scale(softplus(x)) + hits.scale(softplus(-x))


def soft_margin_loss(input: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:  # noqa: A002
    """``log(1 + exp(-t * x))``, without overflow, of scores x and targets t of 1 and -1.

    Raises ValueError where the shapes differ.
    """
    x, t = one_shape("soft_margin_loss", input, target, reduction)
    return reduced(softplus(-t * x), reduction)


def multilabel_soft_margin_loss(
    input: Tensor,  # noqa: A002
    target: Tensor,
    weight: Tensor | None = None,
    reduction: str = "mean",
) -> Tensor:
    """:func:`binary_cross_entropy_with_logits`, averaged over the classes, the last dimension.

    ``weight`` is broadcast to the input. Raises ValueError where shapes do not fit.
    """
    op = "multilabel_soft_margin_loss"
    x, t = one_shape(op, input, target, reduction)
    if not x.ndim:
        raise ValueError(f"[{op}] a 0-d input has no classes")
    losses = weighted(op, "weight", weight, _binary(x, t, t))
    return reduced(losses.mean(-1), reduction)


# ---- what they are made of -----------------------------------------------------------------------


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


def _check_classes(op: str, target: Tensor, classes: int) -> None:
    if target.size and not _all_classes(target, classes):
        wrong = next(v for v in target.tolist() if not 0 <= v < classes)
        raise IndexError(f"[{op}] {no_class(wrong, classes)}")


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
    if len(shape) == 2:
        return x, t
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
    _check_classes(op, safe, classes)
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
    return reduced(losses, reduction)
