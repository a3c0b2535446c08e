"""Connectionist temporal classification: the likelihood of a sequence of labels as a loss.

The method is that of Graves et al. 2006. The row of a sequence has its labels with a blank before,
between and after them. For each position of the row, ``alpha`` has the log-probability of all paths
that end there.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from minigrad import functions as f
from minigrad.functions.arguments import integer, tensor_operand
from minigrad.functions.creation import arange, full_like, tensor, zeros
from minigrad.functions.selection import index_operand
from minigrad.nn.functional.operands import check_reduction, reduced
from minigrad.nn.functional.spatial import require_floats

if TYPE_CHECKING:
    from minigrad._tensor import Tensor

__all__ = ["ctc_loss"]

_OP = "ctc_loss"


def _lengths(name: str, given: Any, count: int, most: int | None) -> list[int]:
    """Check the lengths: one for each sequence."""
    values = given.tolist() if hasattr(given, "tolist") else given
    values = [values] if isinstance(values, int) else list(values)
    lengths = [integer(_OP, f"a length of {name}", n, 0) for n in values]
    if len(lengths) != count:
        raise ValueError(f"[{_OP}] {name} has {len(lengths)} lengths for {count} sequences")
    if most is not None and max(lengths, default=0) > most:
        raise ValueError(f"[{_OP}] {name} has a length of {max(lengths)}, more than {most}")
    return lengths


def _rows(targets: Tensor, lengths: list[int], classes: int) -> Tensor:
    """The labels of each sequence as a row, filled up with 0."""
    longest = max(lengths, default=0)
    if targets.ndim == 1:
        if sum(lengths) != targets.shape[0]:
            raise ValueError(
                f"[{_OP}] targets has {targets.shape[0]} labels in a line, but target_lengths is "
                f"{sum(lengths)} in all"
            )
        starts = [sum(lengths[:k]) for k in range(len(lengths))]
        places = tensor(starts, "int64").reshape(-1, 1) + arange(longest)
        inside = arange(longest) < tensor(lengths, "int64").reshape(-1, 1)
        rows = targets[f.where(inside, places, 0)] if longest else zeros(len(lengths), 0).long()
    elif targets.ndim == 2 and targets.shape[0] == len(lengths) and targets.shape[1] >= longest:
        rows = targets[:, :longest]
        inside = arange(longest) < tensor(lengths, "int64").reshape(-1, 1)
    else:
        raise ValueError(
            f"[{_OP}] targets has shape {targets.shape}, but must be "
            f"({len(lengths)}, {longest}) or all labels in a line"
        )
    rows = f.where(inside, rows, 0)
    if rows.size and not 0 <= rows.amin().item() <= rows.amax().item() < classes:
        raise IndexError(f"[{_OP}] a label is not in 0..{classes - 1}")
    return rows


def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Any,
    target_lengths: Any,
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> Tensor:
    """``-log p(labels)``, where p sums the probabilities of all paths with these labels.

    ``log_probs`` has shape (T, N, C), or (T, C) for one sequence: log-probabilities of C classes at
    each time. A path has a class at each time. Its labels are the path without repetitions, and
    then without ``blank``. ``targets`` has the labels, of shape (N, S), or all sequences in one
    vector. The lengths are lists or tensors. They give each sequence's part of ``log_probs`` and
    ``targets``.

    The mean divides each loss by its number of labels first. The loss is infinite if no path fits.
    With ``zero_infinity`` it is then 0 and has no gradient. The gradient is exact for
    ``log_probs``. PyTorch's is meant for the input of log_softmax, where both agree.

    Raises ValueError for lengths and shapes that do not fit, IndexError for labels that are no
    class.

    >>> import minigrad as mg
    >>> even = mg.full((2, 1, 2), 0.5).log()
    >>> ctc_loss(even, mg.tensor([[1]]), [2], [1]).exp().item()  # 3 of 4 paths: 01, 10, 11
    1.3333333730697632
    """
    x, t = require_floats(_OP, tensor_operand(_OP, log_probs)), index_operand(_OP, targets)
    check_reduction(_OP, reduction)
    if x.ndim == 2:
        losses = _losses(x.unsqueeze(1), t.reshape(1, -1), input_lengths, target_lengths, blank)
    elif x.ndim == 3:
        losses = _losses(x, t, input_lengths, target_lengths, blank)
    else:
        raise ValueError(f"[{_OP}] log_probs has shape {x.shape}, but must be (T, N, C) or (T, C)")
    count = x.shape[1] if x.ndim == 3 else 1
    if zero_infinity:
        losses = f.where(f.eq(losses, math.inf), 0.0, losses)
    if reduction == "mean":
        labels = tensor(_lengths("target_lengths", target_lengths, count, None), x.dtype)
        return (losses / labels.clamp(min=1.0)).mean()
    return reduced(losses if x.ndim == 3 else losses[0], reduction)


def _losses(
    x: Tensor, targets: Tensor, input_lengths: Any, target_lengths: Any, blank: int
) -> Tensor:
    times, count, classes = x.shape
    blank = integer(_OP, "blank", blank)
    if not 0 <= blank < classes:
        raise ValueError(f"[{_OP}] blank is {blank}, but must be one of {classes} classes")
    durations = _lengths("input_lengths", input_lengths, count, times)
    lengths = _lengths("target_lengths", target_lengths, count, None)
    labels = _rows(targets, lengths, classes)
    places = 2 * labels.shape[1] + 1
    row = f.stack((full_like(labels, blank), labels), 2).reshape(count, places - 1)
    row = f.cat((row, zeros(count, 1, dtype="int64") + blank), 1)  # blank, label, blank, ...
    emitted = f.gather(x, 2, row.expand(times, count, places))
    # A label may follow another label without a blank between them, unless both are equal.
    other = (row[:, 2:] != row[:, :-2]) & (row[:, 2:] != blank) if places > 2 else None
    left = tensor(durations, "int64")
    never = zeros(count, places, dtype=x.dtype) - math.inf
    alpha = f.where(arange(places) < 2, emitted[0], never) if times else never
    for now in range(1, max(durations, default=0)):
        ways = [alpha, f.cat((never[:, :1], alpha[:, :-1]), 1)]
        if other is not None:
            ways.append(f.cat((never[:, :2], f.where(other, alpha[:, :-2], -math.inf)), 1))
        step = f.logsumexp(f.stack(ways), 0) + emitted[now]
        alpha = f.where((now < left).unsqueeze(1), step, alpha)
    last = 2 * tensor(lengths, "int64").unsqueeze(1)
    ends = (arange(places) == last) | (arange(places) == last - 1)
    losses = -f.logsumexp(f.where(ends, alpha, -math.inf), 1)
    # losses of sequences without any time step
    nothing = tensor([0.0 if not n else math.inf for n in lengths], x.dtype)
    return f.where(left == 0, nothing, losses)
