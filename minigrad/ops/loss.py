"""The cross entropy of rows of scores with a class each."""

from __future__ import annotations

from typing import Any

from minigrad._c import NULL, Handle, call, lib
from minigrad.ops.composed import product
from minigrad.ops.indexing import SCATTER_ADD
from minigrad.ops.table import custom

T = Any  # a Tensor; this layer stands below it

# ``target`` and ``weight`` (or None) are tensors that nobody else writes; ``stats`` is an array
# that the forward fills for the fused backward.


def _weights(weight: T) -> Handle:
    return NULL if weight is None else weight._h


def _forward(
    x: Handle,
    target: T,
    weight: T,
    stats: Handle,
    ignore: int,
    smoothing: float,
    reduction: int,
) -> Handle:
    return call(
        lib.mg_cross_entropy,
        x,
        target._h,
        _weights(weight),
        stats,
        ignore,
        smoothing,
        reduction,
    )


def _fused(
    g: Handle,
    x: Handle,
    target: T,
    weight: T,
    stats: Handle,
    ignore: int,
    smoothing: float,
    reduction: int,
) -> Handle:
    return call(
        lib.mg_cross_entropy_vjp,
        g,
        x,
        target._h,
        _weights(weight),
        stats,
        ignore,
        smoothing,
        reduction,
    )


def _vjp(
    g: T,
    x: T,
    target: T,
    weight: T,
    stats: Handle,
    ignore: int,
    smoothing: float,
    reduction: int,
) -> T:
    """g (softmax(x) sum(q) - q), where q is what a row's target gives to each class."""
    rows, classes = x.shape
    counted = target != ignore
    safe = target.where(counted, 0)
    counts = counted.to(x.dtype)
    share = counts if weight is None else counts * weight[safe]
    right, spread = share * (1.0 - smoothing), smoothing / classes
    if reduction == lib.MG_LOSS_MEAN:
        g = g / share.sum()
    g = g.expand((rows,))
    everywhere = counts * (spread * (classes if weight is None else weight.sum()))
    by_p = (right + everywhere).scale(g).unsqueeze(1)
    numbers = call(lib.mg_arange, lib.MG_INT64, 0.0, 1.0, 0, 1, rows)
    at_target = right.scale(g).apply_row(SCATTER_ADD, x.shape, (numbers, safe._h))
    dx = product(by_p, x.softmax(1)) - at_target
    if smoothing:
        each = counts.scale(g).unsqueeze(1) * spread
        dx = dx - (each if weight is None else each * weight)
    return dx


CROSS_ENTROPY = custom(
    "cross_entropy",
    _forward,
    _vjp,
    fused=[_fused],
    doc="-log(softmax(x)) at the target of each row, weighted, smoothed and reduced",
)
