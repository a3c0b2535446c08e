"""Functions for losses of classification: cross entropy, binary cross entropy, margins."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from minigrad import functions as f
from minigrad.functions.arguments import integer, tensor_operand
from minigrad.functions.reductions import as_float
from minigrad.functions.selection import index_operand
from minigrad.functions.shaping import widen
from minigrad.nn.functional.activation import softplus
from minigrad.nn.functional.dense import linear
from minigrad.nn.functional.operands import (
    check_reduction,
    floats,
    legacy_reduction,
    one_shape,
    real,
    reduced,
    weighted,
)
from minigrad.ops.loss import CROSS_ENTROPY, ENTROPY, MULTI_MARGIN, NLL, SCORES, WEIGHTED_SCORES
from minigrad.runtime.batched import BatchedValueError, by_rules
from minigrad.runtime.dtypes import int64
from minigrad.runtime.native import call, kernels, lib
from minigrad.tape.apply import apply
from minigrad.tape.tensor_base import wrap

if TYPE_CHECKING:
    from minigrad._tensor import Tensor

__all__ = [
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "cross_entropy",
    "linear_cross_entropy",
    "multi_margin_loss",
    "multilabel_margin_loss",
    "multilabel_soft_margin_loss",
    "nll_loss",
    "soft_margin_loss",
]
# ---- one of several classes ----------------------------------------------------------------------


def nll_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    ignore_index: int = -100,
    reduction: str = "mean",
    *,
    size_average: bool | None = None,
    reduce: bool | None = None,
) -> Tensor:
    """The negative log-likelihood of classes: ``-weight[t] * input[t]`` for each target t.

    ``input`` has log-probabilities of shape (C,), (N, C) or (N, C, d1, ...). ``target`` has int64
    classes in the same shape without C. Targets equal to ``ignore_index`` do not count. The mean
    divides by the sum of the targets' weights.

    Raises ValueError if shapes do not fit, IndexError for a target that is no class, TypeError for
    targets that are not int64.
    """
    if size_average is not None or reduce is not None:
        reduction = legacy_reduction(size_average, reduce)
    op = "nll_loss"
    x, t = tensor_operand(op, input), tensor_operand(op, target)
    _check_order(op, x, t)
    x = as_float(op, x)
    check_reduction(op, reduction)
    ignore_index = integer(op, "ignore_index", ignore_index)
    return _of_classes(op, x, t, weight, ignore_index, 0.0, reduction)


def cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    ignore_index: int = -100,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
    *,
    size_average: bool | None = None,
    reduce: bool | None = None,
) -> Tensor:
    """The cross entropy of unnormalised scores with target classes or class probabilities.

    ``input`` has scores of shape (C,), (N, C) or (N, C, d1, ...). ``target`` has int64 classes in
    the same shape without C, or probabilities in the shape of the input. ``weight`` has shape (C,).
    Targets equal to ``ignore_index`` do not count. ``label_smoothing`` in [0, 1] mixes the targets
    with the uniform distribution (Szegedy et al. 2016). The mean divides by the sum of the targets'
    weights. For probabilities it divides by the number of targets.

    Raises ValueError if shapes do not fit, IndexError for a target that is no class, TypeError for
    targets that are neither int64 nor floats.

    >>> import minigrad as mg
    >>> scores = mg.tensor([[2.0, 2.0], [0.0, 0.0]])
    >>> round(cross_entropy(scores, mg.tensor([0, 1])).item(), 4)
    0.6931
    """
    if size_average is not None or reduce is not None:
        reduction = legacy_reduction(size_average, reduce)
    op = "cross_entropy"
    x, t = tensor_operand(op, input), tensor_operand(op, target)
    _check_order(op, x, t)
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
    if x.dtype.is_storage or not x.dtype.is_floating_point:
        x = as_float(op, x)
    return _of_classes(op, x, t, weight, ignore_index, label_smoothing, reduction)


def linear_cross_entropy(
    input: Tensor,
    linear_weight: Tensor,
    target: Tensor,
    *,
    linear_bias: Tensor | None = None,
    weight: Tensor | None = None,
    reduction: str = "mean",
    ignore_index: int | None = None,
    label_smoothing: float = 0.0,
    options: Any = None,
) -> Tensor:
    """The cross entropy of a linear layer's outputs: ``cross_entropy(linear(input, ...), target)``.

    ``input`` has shape (in,) or (N, in). ``linear_weight`` has shape (C, in), or (C, d1, ..., in)
    for several targets per row. ``linear_bias`` has the same shape without in. All other arguments
    are those of cross_entropy. ``ignore_index`` is -100 unless given. ``options`` say how PyTorch
    cuts the batch to save memory. They change nothing here: all scores are computed at once.

    Raises ValueError if shapes do not fit, and the errors of cross_entropy.

    >>> import minigrad as mg
    >>> x, w = mg.tensor([[1.0, 2.0]]), mg.tensor([[1.0, 0.0], [0.0, 0.5]])
    >>> round(linear_cross_entropy(x, w, mg.tensor([1])).item(), 4)
    0.6931
    """
    op = "linear_cross_entropy"
    x, w = tensor_operand(op, input), tensor_operand(op, linear_weight)
    if x.ndim not in (1, 2) or w.ndim < 2 or w.shape[-1] != x.shape[-1]:
        raise ValueError(
            f"[{op}] input of shape {x.shape} and linear_weight {w.shape}: (in,) or (N, in) and "
            "(C, ..., in) are needed"
        )
    bias = None if linear_bias is None else f.ravel(tensor_operand(op, linear_bias))
    scores = linear(x, f.reshape(w, (-1, w.shape[-1])), bias)
    return cross_entropy(
        f.reshape(scores, (*x.shape[:-1], *w.shape[:-1])),
        target,
        weight,
        -100 if ignore_index is None else ignore_index,
        reduction,
        label_smoothing,
    )


def _check_order(op: str, x: Tensor, t: Tensor) -> None:
    """Raise a TypeError if classes come first and scores second, unless both may be scores."""
    if t.dtype.is_floating_point and x.dtype is int64:
        raise TypeError(
            f"[{op}] the input holds int64, the target {t.dtype.name}: are they swapped? "
            f"It is {op}(scores, classes)"
        )


# For each loss its rows without and with weights, and its kind.
_ROWS = {
    "cross_entropy": (*CROSS_ENTROPY, lib.MG_OF_SCORES),
    "nll_loss": (*NLL, lib.MG_OF_LOGS),
    "multi_margin_loss": (*MULTI_MARGIN, lib.MG_OF_MARGINS),
}
_REDUCTIONS = {"none": lib.MG_LOSS_NONE, "sum": lib.MG_LOSS_SUM, "mean": lib.MG_LOSS_MEAN}


def _of_classes(
    op: str,
    x: Tensor,
    t: Tensor,
    weight: Any,
    ignore_index: int,
    smoothing: float,
    reduction: str,
    square: bool = False,
) -> Tensor:
    """Run a loss of classes as one kernel. ``square`` holds for margin losses.

    Targets are copied if a graph keeps them, so the caller may write to them later.
    """
    shape = t.shape
    row, weighted_row, kind = _ROWS[op]
    x, t = _lined_up(op, x, t)
    classes = x.shape[1]
    w = None if weight is None else _class_weight(op, weight, classes, x)
    if x._edge is not None or (w is not None and w._edge is not None):
        t = wrap(call(kernels.copy, t._h))
    scores = kind == lib.MG_OF_SCORES
    stats = call(kernels.empty, x._h.dtype, (2, t._h.size)) if scores else None
    options = (t, stats, ignore_index, smoothing, _REDUCTIONS[reduction], kind + square)
    try:
        if w is None:
            losses = apply(row, (x,), (options,))
        else:
            losses = apply(weighted_row, (x, w), (options,))
    except IndexError as error:
        raise IndexError(str(error).replace("[cross_entropy]", f"[{op}]", 1)) from None
    return losses.reshape(shape) if reduction == "none" and len(shape) != 1 else losses


def multi_margin_loss(
    input: Tensor,
    target: Tensor,
    p: int = 1,
    margin: float = 1.0,
    weight: Tensor | None = None,
    reduction: str = "mean",
    *,
    size_average: bool | None = None,
    reduce: bool | None = None,
) -> Tensor:
    """``sum over i != t of weight[t] * max(0, margin - input[t] + input[i])**p / C``.

    ``input`` has scores of shape (N, C) or (C,). ``target`` has int64 classes of shape (N,), or of
    shape () or (1,). ``p`` is 1 or 2. The gradient is 0 where a score just reaches the margin. The
    mean divides by the number of targets. Raises the errors of :func:`nll_loss`, and ValueError for
    another p.
    """
    if size_average is not None or reduce is not None:
        reduction = legacy_reduction(size_average, reduce)
    op = "multi_margin_loss"
    x, t = floats(op, input)[0], tensor_operand(op, target)
    check_reduction(op, reduction)
    if p not in (1, 2):
        raise ValueError(f"[{op}] p is {p}, but must be 1 or 2")
    if x.ndim > 2:
        raise ValueError(f"[{op}] input has shape {x.shape}, but must be (N, C) or (C,)")
    if not x.ndim:
        x = x.reshape(1)  # as in PyTorch, a 0-d input is the score of one class
    margin, shape = real(op, "margin", margin), t.shape
    if x.ndim == t.ndim == t._h.size == 1:
        t = t.reshape(())
    losses = _of_classes(op, x, t, weight, _NONE, margin, reduction, p == 2)
    return losses.reshape(shape) if t.shape != shape and reduction == "none" else losses


# ---- yes and no ----------------------------------------------------------------------------------


def binary_cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    reduction: str = "mean",
    *,
    size_average: bool | None = None,
    reduce: bool | None = None,
) -> Tensor:
    """``-weight * (t * log(x) + (1 - t) * log(1 - x))`` of probabilities x and targets t.

    Both have the same shape and values between 0 and 1. ``weight`` is broadcast to this shape. A
    logarithm is at least -100 and its derivative at most 1e12. A wrong probability of 0 or 1
    therefore has a finite loss, 100. :func:`binary_cross_entropy_with_logits` takes scores and
    needs no such bounds.

    Raises ValueError if shapes differ, and for values outside [0, 1] or NaN.

    >>> import minigrad as mg
    >>> binary_cross_entropy(mg.tensor([0.0, 1.0]), mg.tensor([1.0, 1.0])).item()
    50.0
    """
    if size_average is not None or reduce is not None:
        reduction = legacy_reduction(size_average, reduce)
    op = "binary_cross_entropy"
    x, t = one_shape(op, input, target, reduction)
    losses = apply(ENTROPY, (x, t))
    y = reduced(losses, reduction) if weight is None else losses
    total = y if reduction != "none" and weight is None else f.sum(losses.detach())
    try:
        wrong = math.isnan(total.item())
    except BatchedValueError:
        x, t = by_rules("every_slice")(x), by_rules("every_slice")(t)
        wrong = bool(f.any(f.isnan(by_rules("every_slice")(total))))
    if wrong:
        for name, p in (("input", x), ("target", t)):
            low, high = [v.item() for v in f.aminmax(p.detach())] if p.size else (0.0, 1.0)
            if not (low >= 0.0 and high <= 1.0):
                raise ValueError(
                    f"[{op}] {name} has values from {low} to {high}, but probabilities are in "
                    "[0, 1]"
                )
    return y if weight is None else reduced(weighted(op, "weight", weight, losses), reduction)


def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    reduction: str = "mean",
    pos_weight: Tensor | None = None,
    *,
    size_average: bool | None = None,
    reduce: bool | None = None,
) -> Tensor:
    """``weight * ((1 - t) * softplus(x) + pos_weight * t * softplus(-x))`` of scores x, targets t.

    This is the cross entropy of the probability ``sigmoid(x)``, without overflow. Both have the
    same shape, to which ``weight`` and ``pos_weight`` are broadcast. A factor of 0 times an
    infinite term is 0, so an infinite score on the right side has the loss 0.

    Raises ValueError if shapes do not fit.

    >>> import minigrad as mg
    >>> binary_cross_entropy_with_logits(mg.tensor([-1000.0]), mg.tensor([1.0])).item()
    1000.0
    """
    if size_average is not None or reduce is not None:
        reduction = legacy_reduction(size_average, reduce)
    op = "binary_cross_entropy_with_logits"
    x, t = one_shape(op, input, target, reduction)
    if pos_weight is None:
        losses = apply(SCORES, tuple(floats(op, x, t)))
    else:
        hits = weighted(op, "pos_weight", pos_weight, t)
        losses = apply(WEIGHTED_SCORES, tuple(floats(op, x, t, hits)))
    return reduced(weighted(op, "weight", weight, losses), reduction)


def soft_margin_loss(
    input: Tensor,
    target: Tensor,
    reduction: str = "mean",
    *,
    size_average: bool | None = None,
    reduce: bool | None = None,
) -> Tensor:
    """``log(1 + exp(-t * x))`` of scores x and targets t of 1 and -1, without overflow.

    Raises ValueError if the shapes differ.
    """
    if size_average is not None or reduce is not None:
        reduction = legacy_reduction(size_average, reduce)
    x, t = one_shape("soft_margin_loss", input, target, reduction)
    return reduced(softplus(-t * x), reduction)


def multilabel_margin_loss(
    input: Tensor,
    target: Tensor,
    reduction: str = "mean",
) -> Tensor:
    """``sum(max(0, 1 - (x[j] - x[i]))) / C`` over all targets j and all other classes i.

    ``input`` has shape (N, C) or (C,). ``target`` is int64 of the same shape. The targets of a row
    are the classes before its first negative number. Raises ValueError if the shapes differ,
    IndexError for a target that is no class.

    >>> import minigrad as mg
    >>> x = mg.tensor([0.1, 0.2, 0.4, 0.8])
    >>> round(multilabel_margin_loss(x, mg.tensor([3, 0, -1, 1])).item(), 6)
    0.85
    """
    op = "multilabel_margin_loss"
    x, t = as_float(op, input), index_operand(op, target)
    check_reduction(op, reduction)
    if not x.ndim and not t.ndim:  # as in PyTorch, a 0-d tensor is one class
        x, t = x.reshape((1,)), t.reshape((1,))
    if x.ndim not in (1, 2) or x.shape != t.shape:
        raise ValueError(
            f"[{op}] input has shape {x.shape}, target {t.shape}: both must be (N, C) or (C,)"
        )
    classes = x.shape[-1]
    counts = f.cumprod((t >= 0).to(int64), -1) > 0
    places = f.where(counts, t, 0)
    try:
        most = f.amax(places).item() if t.size else -1
    except BatchedValueError:
        most = f.amax(by_rules("every_slice")(places)).item()
    if most >= classes:
        raise IndexError(f"[{op}] a target is not in 0..{classes - 1}")
    named = f.scatter_add(f.mul(places, 0), -1, places, counts.to(int64)) > 0
    margins = 1.0 - x.gather(-1, places).unsqueeze(-1) + x.unsqueeze(-2)
    paired = counts.unsqueeze(-1) & ~named.unsqueeze(-2)
    losses = f.where(paired, f.clamp(margins, 0.0), 0.0).sum((-1, -2)) / max(classes, 1)
    return reduced(losses, reduction)


def multilabel_soft_margin_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    reduction: str = "mean",
    *,
    size_average: bool | None = None,
    reduce: bool | None = None,
) -> Tensor:
    """:func:`binary_cross_entropy_with_logits`, averaged over the classes, the last dimension.

    ``weight`` is broadcast to the input. Raises ValueError if shapes do not fit.
    """
    if size_average is not None or reduce is not None:
        reduction = legacy_reduction(size_average, reduce)
    op = "multilabel_soft_margin_loss"
    x, t = one_shape(op, input, target, reduction)
    if not x.ndim:
        raise ValueError(f"[{op}] a 0-d input has no classes")
    losses = weighted(op, "weight", weight, apply(SCORES, (x, t)))
    return reduced(losses.mean(-1), reduction)


# ---- what they are made of -----------------------------------------------------------------------


_NONE = -(1 << 63)  # ``ignore_index`` if all targets count
_FEW = 16  # number of adjacent columns that are faster as rows


def _lined_up(op: str, x: Tensor, t: Tensor) -> tuple[Tensor, Tensor]:
    """Check shapes and dtype, and reshape: input to (N, C) or (N, C, pixels), target to one dim.

    (N, C, pixels) is for inputs in which the pixels of a class are adjacent.
    """
    shape = x.shape
    t = widen(t)
    if t.dtype is not int64:
        raise TypeError(
            f"[{op}] target classes must be integers, not {t.dtype.name}: "
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
        pixels = math.prod(shape[2:])
        last = x.permute(0, *range(2, len(shape)), 1)
        if pixels >= _FEW and not last.is_contiguous():
            return x.reshape((shape[0], classes, pixels)), t.reshape((t._h.size,))
        x = last
    return x.reshape((t._h.size, classes)), t.reshape((t._h.size,))


def _class_weight(op: str, weight: Any, classes: int, like: Tensor) -> Tensor:
    w = tensor_operand(op, weight)
    if w.shape != (classes,):
        raise ValueError(f"[{op}] weight has shape {w.shape}, but there are {classes} classes")
    return w.to(like.dtype)


def _soft(
    log_p: Tensor, t: Tensor, weight: Any, reduction: str, smoothing: float, class_dim: int
) -> Tensor:
    """The cross entropy with class probabilities, where 0 * log(0) is 0."""
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
