"""Losses that are one kernel: of differences, of probabilities, and of scores of classes."""

from __future__ import annotations

from typing import Any

from minigrad.ops.composed import product
from minigrad.ops.indexing import SCATTER_ADD
from minigrad.ops.special import HARDTANH, SOFTPLUS
from minigrad.ops.table import Row, custom
from minigrad.runtime.native import Array, call, kernels, lib

T = Any  # a Tensor; this layer stands below it

# ---- elementwise ---------------------------------------------------------------------------------


def _huber_partial(a: T, b: T, bound: float, square: float) -> T:
    """Its own derivative is 0 at the bound."""
    return (a - b).apply_row(HARDTANH, -bound, bound) * (2.0 * square)


def _huber_fused(g: Array, a: Array, b: Array, square: float, line: float) -> Array:
    return call(kernels.huber_loss_vjp, (g, a, b), (2.0 * square, line))


HUBER = custom(
    "huber",
    lambda a, b, bound, square, line: call(kernels.huber_loss, (a, b), (bound, square, line)),
    lambda g, a, b, bound, square, line: g.scale(_huber_partial(a, b, bound, square)),
    lambda g, a, b, bound, square, line: g.scale(_huber_partial(b, a, bound, square)),
    fused=[
        lambda g, a, b, bound, square, line: _huber_fused(g, a, b, square, line),
        lambda g, a, b, bound, square, line: _huber_fused(g, b, a, square, line),
    ],
    symmetric=True,
    doc="square * (a - b)^2, and from the bound on line * (|a - b| - bound / 2)",
)

_LEAST = 1e-12  # the probability from which on a logarithm has no bound


def _bounded_log(p: T, log_p: T) -> T:
    """log(p), but at least -100, and with a slope of at most 1e12."""
    low = log_p.clamp(-100.0).detach() + (p - p.detach()) * 1e12  # the value plus an exact 0
    return low.where(p < _LEAST, log_p)


ENTROPY = custom(
    "entropy",
    lambda a, b: call(kernels.binary_cross_entropy, (a, b), ()),
    lambda g, a, b: g.scale((1.0 - b) / (1.0 - a).clamp(_LEAST) - b / a.clamp(_LEAST)),
    lambda g, a: g.scale(_bounded_log(1.0 - a, (-a).log1p()) - _bounded_log(a, a.log())),
    fused=[lambda g, a, b: call(kernels.binary_cross_entropy_vjp, (g, a, b), ()), None],
    symmetric=True,
    doc="-(b log(a) + (1 - b) log(1 - a)), each logarithm at least -100",
)
SCORES = custom(
    "entropy_of_scores",
    lambda a, b: call(kernels.binary_cross_entropy_with_logits, (a, b, b), ()),
    lambda g, a, b: g.scale((1.0 - b).scale(a.sigmoid()) - b.scale((-a).sigmoid())),
    lambda g, a: g.scale(-a),  # softplus(-a) - softplus(a), which cancel
    fused=[
        lambda g, a, b: call(kernels.binary_cross_entropy_with_logits_vjp, (g, a, b, b), ()),
        None,
    ],
    symmetric=True,
    doc="(1 - b) softplus(a) + b softplus(-a)",
)
# "values" are the hits, by which the place of the third that is kept is known.
WEIGHTED_SCORES = custom(
    "weighted_entropy_of_scores",
    lambda a, b, values: call(kernels.binary_cross_entropy_with_logits, (a, b, values), ()),
    lambda g, a, b, values: g.scale((1.0 - b).scale(a.sigmoid()) - values.scale((-a).sigmoid())),
    lambda g, a: g.scale(-a.apply_row(SOFTPLUS)),
    lambda g, a: g.scale((-a).apply_row(SOFTPLUS)),
    fused=[
        lambda g, a, b, values: call(
            kernels.binary_cross_entropy_with_logits_vjp, (g, a, b, values), ()
        ),
        None,
        None,
    ],
    symmetric=True,
    doc="(1 - b) softplus(a) + hits softplus(-a)",
)

# ---- one of several classes ----------------------------------------------------------------------

# Beside scores, (N, C) or (N, C, pixels), and weights there are: the targets in one dimension, a
# tensor that nobody else writes; an array that the forward fills for the fused backward; the target
# that counts nothing; the share of all classes in each target, or the margin; the reduction; and
# what kind of loss it is.
Options = tuple[T, Array, int, float, int, int]


def _loss(x: Array, w: Array | None, options: Options) -> Array:
    target, stats, ignore, share, reduction, kind = options
    return call(kernels.cross_entropy, x, target._h, w, stats, ignore, share, reduction, kind)


def _fused(g: Array, x: Array, w: Array | None, options: Options) -> Array:
    target, stats, ignore, share, reduction, kind = options
    return call(
        kernels.cross_entropy_vjp, g, x, target._h, w, stats, ignore, share, reduction, kind
    )


def _rows(x: T) -> T:
    """The scores of each target as a row."""
    return x if x.ndim == 2 else x.permute(0, 2, 1).reshape((x.shape[0] * x.shape[2], x.shape[1]))


def _at_targets(values: T, shape: tuple[int, ...], target: T) -> T:
    """Zeros but for one value in each row."""
    numbers = call(kernels.arange, lib.MG_INT64, 0.0, 1.0, 0, 1, shape[0])
    return values.apply_row(SCATTER_ADD, shape, (numbers, target._h))


def _shares(g: T, x: T, w: T, options: Options) -> tuple[T, T, T, T]:
    """For each row: whether it counts, its target, that class's weight, its upstream gradient."""
    target, _, ignore, _, reduction, _ = options
    counted = target != ignore
    safe, counts = target.where(counted, 0), counted.to(x.dtype)
    share = counts if w is None else counts * w[safe]
    if reduction == lib.MG_LOSS_MEAN:
        g = g / share.sum()
    return counts, safe, share, g.expand(target.shape)


def _by_scores(g: T, x: T, w: T, options: Options) -> T:
    """g (softmax(x) sum(q) - q), where q is what a row's target gives to each class; or -g q."""
    rows = _rows(x)
    classes = rows.shape[1]
    _, _, _, smoothing, _, kind = options
    counts, safe, share, g = _shares(g, x, w, options)
    right, spread = share * (1.0 - smoothing), smoothing / max(classes, 1)
    dx = -_at_targets(right.scale(g), rows.shape, safe)
    if kind == lib.MG_OF_SCORES:
        everywhere = counts * (spread * (classes if w is None else w.sum()))
        dx = product((right + everywhere).scale(g).unsqueeze(1), rows.softmax(1)) + dx
    if smoothing:
        each = counts.scale(g).unsqueeze(1) * spread
        dx = dx - (each if w is None else each * w)
    return dx if x.ndim == 2 else dx.reshape((x.shape[0], x.shape[2], classes)).permute(0, 2, 1)


def _by_weights(g: T, x: T, w: T, options: Options) -> T:
    """The losses that a class's weight multiplies; a mean's weights divide the whole, too."""
    _, _, _, smoothing, reduction, kind = options
    classes = x.shape[1]
    counts, safe, share, g = _shares(g, x, w, options)
    losses = -(_rows(x).log_softmax(1) if kind == lib.MG_OF_SCORES else _rows(x))
    picked = losses.gather(1, safe.unsqueeze(1)).squeeze(1) * (1.0 - smoothing)
    by_target = counts.scale(g).scale(picked)
    everywhere = counts.scale(g).unsqueeze(1).scale(losses * (smoothing / max(classes, 1)))
    if reduction == lib.MG_LOSS_MEAN:
        total = share.scale(picked)
        if smoothing:
            total = total + counts.scale((w * losses).sum(1) * (smoothing / max(classes, 1)))
        by_target = by_target - counts.scale(g) * (total.sum() / share.sum())
    dw = by_target.apply_row(SCATTER_ADD, w.shape, (safe._h,))
    return dw + everywhere.sum((0,)) if smoothing else dw


def _excess(x: T, options: Options) -> T:
    """How far scores come above the right one less the margin; 0 for that itself."""
    target, margin = options[0], options[3]
    right = _at_targets((target == target).to(x.dtype), x.shape, target) != 0.0
    return (x - x.gather(1, target.unsqueeze(1)) + margin).masked_fill(right, 0.0)


def _margin_by_scores(g: T, x: T, w: T, options: Options) -> T:
    target, _, _, _, reduction, kind = options
    rows, classes = x.shape
    share = g.expand(target.shape) / (classes * (rows if reduction == lib.MG_LOSS_MEAN else 1))
    if w is not None:
        share = share * w[target]
    excess = _excess(x, options)
    partial = excess.relu() * 2.0 if kind == lib.MG_OF_SQUARES else 1.0 - (excess <= 0.0)
    dx = share.unsqueeze(1).scale(partial.to(x.dtype))
    return dx - _at_targets(dx.sum((1,)), x.shape, target)


def _margin_by_weights(g: T, x: T, w: T, options: Options) -> T:
    target, _, _, _, reduction, kind = options
    rows, classes = x.shape
    excess = _excess(x, options).relu()
    losses = (excess.square() if kind == lib.MG_OF_SQUARES else excess).sum((1,)) / classes
    if reduction == lib.MG_LOSS_MEAN:
        g = g / rows
    return g.expand(target.shape).scale(losses).apply_row(SCATTER_ADD, w.shape, (target._h,))


def _pushed(t: T, pull: Any, options: Options) -> T:
    """The tangent of the loss: each target's depends on its own scores alone."""
    if options[4] == lib.MG_LOSS_NONE:
        return _rows(t.scale(pull(t.new_ones(options[0].shape)))).sum((1,))
    return t.scale(pull(t.new_ones(()))).sum()


def _of_classes(name: str, by_scores: Any, by_weights: Any, doc: str) -> tuple[Row, Row]:
    """The row without weights, and that with a weight for each class."""
    return custom(
        name,
        lambda x, options: _loss(x, None, options),
        lambda g, x, options: by_scores(g, x, None, options),
        fused=[lambda g, x, options: _fused(g, x, None, options)],
        jvp=[_pushed],
        doc=doc,
    ), custom(
        f"weighted_{name}",
        _loss,
        lambda g, a, b, options: by_scores(g, a, b, options),
        lambda g, a, b, options: by_weights(g, a, b, options),
        fused=[_fused, None],
        jvp=[_pushed, None],
        doc=f"{doc}, with a weight for each class",
    )


CROSS_ENTROPY = _of_classes(
    "cross_entropy",
    _by_scores,
    _by_weights,
    "-log(softmax(x)) at each target, smoothed and reduced",
)
NLL = _of_classes("nll_loss", _by_scores, _by_weights, "-x at each target, reduced")
MULTI_MARGIN = _of_classes(
    "multi_margin_loss",
    _margin_by_scores,
    _margin_by_weights,
    "how far scores come within a margin of the target's, reduced",
)
