"""The cross entropy of rows of scores with a class each."""

from __future__ import annotations

from typing import Any

from minigrad._c import NULL, Handle, call, lib
from minigrad.ops.composed import product
from minigrad.ops.indexing import SCATTER_ADD
from minigrad.ops.table import custom

T = Any  # a Tensor; this layer stands below it

# What rows are given beside scores and weights: the targets, a tensor that nobody else writes; an
# array that the forward fills for the fused backward; the target that counts nothing; the share of
# all classes in each target; and the reduction.
Options = tuple[T, Handle, int, float, int]


def _loss(x: Handle, w: Handle, options: Options) -> Handle:
    target, stats, ignore, smoothing, reduction = options
    return call(lib.mg_cross_entropy, x, target._h, w, stats, ignore, smoothing, reduction)


def _fused(g: Handle, x: Handle, w: Handle, options: Options) -> Handle:
    target, stats, ignore, smoothing, reduction = options
    return call(lib.mg_cross_entropy_vjp, g, x, target._h, w, stats, ignore, smoothing, reduction)


def _shares(g: T, x: T, w: T, options: Options) -> tuple[T, T, T, T]:
    """Of each row: does it count, its target, that class's weight, and its upstream gradient."""
    target, _, ignore, _, reduction = options
    counted = target != ignore
    safe, counts = target.where(counted, 0), counted.to(x.dtype)
    share = counts if w is None else counts * w[safe]
    if reduction == lib.MG_LOSS_MEAN:
        g = g / share.sum()
    return counts, safe, share, g.expand(target.shape)


def _by_scores(g: T, x: T, w: T, options: Options) -> T:
    """g (softmax(x) sum(q) - q), where q is what a row's target gives to each class."""
    rows, classes = x.shape
    smoothing = options[3]
    counts, safe, share, g = _shares(g, x, w, options)
    right, spread = share * (1.0 - smoothing), smoothing / classes
    everywhere = counts * (spread * (classes if w is None else w.sum()))
    by_p = (right + everywhere).scale(g).unsqueeze(1)
    numbers = call(lib.mg_arange, lib.MG_INT64, 0.0, 1.0, 0, 1, rows)
    at_target = right.scale(g).apply_row(SCATTER_ADD, x.shape, (numbers, safe._h))
    dx = product(by_p, x.softmax(1)) - at_target
    if smoothing:
        each = counts.scale(g).unsqueeze(1) * spread
        dx = dx - (each if w is None else each * w)
    return dx


def _by_weights(g: T, x: T, w: T, options: Options) -> T:
    """The losses that a class's weight multiplies; a mean's weights divide the whole, too."""
    classes, smoothing = x.shape[1], options[3]
    counts, safe, share, g = _shares(g, x, w, options)
    losses = -x.log_softmax(1)
    picked = losses.gather(1, safe.unsqueeze(1)).squeeze(1) * (1.0 - smoothing)
    by_target = counts.scale(g).scale(picked)
    everywhere = counts.scale(g).unsqueeze(1).scale(losses * (smoothing / classes))
    if options[4] == lib.MG_LOSS_MEAN:
        spread = (w * losses).sum(1) * (smoothing / classes)
        total = share.scale(picked) + counts.scale(spread)
        by_target = by_target - counts.scale(g) * (total.sum() / share.sum())
    dw = by_target.apply_row(SCATTER_ADD, w.shape, (safe._h,))
    return dw + everywhere.sum((0,)) if smoothing else dw


CROSS_ENTROPY = custom(
    "cross_entropy",
    lambda x, options: _loss(x, NULL, options),
    lambda g, x, options: _by_scores(g, x, None, options),
    fused=[lambda g, x, options: _fused(g, x, NULL, options)],
    doc="-log(softmax(x)) at the target of each row, smoothed and reduced",
)
WEIGHTED_CROSS_ENTROPY = custom(
    "weighted_cross_entropy",
    _loss,
    lambda g, a, b, options: _by_scores(g, a, b, options),
    lambda g, a, b, options: _by_weights(g, a, b, options),
    fused=[_fused, None],
    doc="the same with a weight for each class",
)
